//! The crate and `include/npu.h` declare the same operations.

use std::collections::BTreeSet;

/// Returns the texts between each occurrence of `before` and the next `after`.
fn between<'a>(text: &'a str, before: &'a str, after: char) -> impl Iterator<Item = &'a str> {
    text.split(before)
        .skip(1)
        .filter_map(move |rest| rest.split_once(after))
        .map(|(name, _)| name)
}

#[test]
fn the_crate_and_the_header_declare_the_same() {
    let rust = include_str!("../src/lib.rs");
    // Only declarations in blocks of `extern "C"` are `safe`.
    // A function has the name of its import, except for `#[link_name]`.
    let names = between(rust, "safe fn ", '(').map(|name| if name == "flush_line" { "flush" } else { name });
    let names: BTreeSet<&str> = names.collect();
    let header = include_str!("../../../include/npu.h");
    let imports: BTreeSet<&str> = between(header, "\nNPU_IMPORT(", ')').collect();
    assert_eq!(names, imports);
    assert!(names.contains("thread_id") && rust.contains("#[link_name = \"flush\"]\n    safe fn flush_line("));
}
