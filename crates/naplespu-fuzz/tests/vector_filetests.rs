//! The generated files of `filetests/vector` and `filetests/shapes` are what the generators make. `CRANELIFT_TEST_BLESS=1` rewrites them.

use naplespu_fuzz::shape_files::shape_files;
use naplespu_fuzz::vector_files::{VectorFile, vector_files};
use std::collections::BTreeSet;
use std::path::Path;

/// The files that are not generated.
const BY_HAND: &[&str] = &[
    "big_endian.clif",
    "bitcast.clif",
    "calls.clif",
    "choices.clif",
    "constant_lanes.clif",
    "fcvt.clif",
    "iadd_pairwise.clif",
    "iadd_pairwise_i8x16.clif",
    "lanes.clif",
    "lanes_i8x16.clif",
    "memory.clif",
    "operands.clif",
    "operands_f32.clif",
    "parts.clif",
    "regions.clif",
    "scratchpad.clif",
    "select.clif",
    "select_i8x16.clif",
    "short.clif",
    "shuffle.clif",
    "spills.clif",
    "truth.clif",
    "truth_i8x16.clif",
];

/// The same of `filetests/shapes`.
const SHAPES_BY_HAND: &[&str] = &[
    "big_endian.clif",
    "between.clif",
    "calls.clif",
    "dynamic.clif",
    "f16.clif",
    "x86.clif",
];

#[test]
fn generated_files_are_up_to_date() {
    compare("vector", BY_HAND, vector_files());
}

#[test]
fn generated_shapes_are_up_to_date() {
    compare("shapes", SHAPES_BY_HAND, shape_files());
}

fn compare(folder: &str, by_hand: &[&str], files: Vec<VectorFile>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../filetests")
        .join(folder);
    let bless = std::env::var_os("CRANELIFT_TEST_BLESS").is_some_and(|value| value == "1");
    let mut names: BTreeSet<String> = by_hand.iter().map(|name| (*name).to_owned()).collect();
    for file in files {
        let path = folder.join(&file.name);
        if bless {
            std::fs::write(&path, &file.text).unwrap();
        }
        let there = std::fs::read_to_string(&path).unwrap_or_default();
        let message = "is not what the generator makes; CRANELIFT_TEST_BLESS=1 rewrites it";
        assert!(there == file.text, "{} {message}", path.display());
        assert!(names.insert(file.name), "two files of one name");
    }
    let found = std::fs::read_dir(&folder).unwrap();
    let found: BTreeSet<String> = found
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(found, names);
}
