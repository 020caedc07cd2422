//! Runs the examples and checks their output.

#[path = "../../examples/toy_language/brook/mod.rs"]
mod brook;
#[path = "../../examples/device.rs"]
mod device;
#[path = "../../examples/jit.rs"]
mod jit;
#[path = "../../examples/kernels_cores/main.rs"]
mod kernels_cores;
#[path = "../../examples/matmul_cores/main.rs"]
mod matmul_cores;
#[path = "../../examples/matmul_threads/main.rs"]
mod matmul_threads;

use std::fs;
use std::path::Path;
use std::sync::Mutex;

#[test]
fn jit_prints_a_result() {
    let text = jit::run().unwrap();
    assert!(text.starts_with("gcd(1071, 462) = 21, after "), "{text}");
    jit::main().unwrap();
    let source = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/jit.rs")).unwrap();
    assert!(source.lines().count() < 60, "it is meant to be short");
}

/// The section "Device" of `docs/embedding.md` must contain the kernel, lines of the example in
/// order in each block, and the output. `CRANELIFT_TEST_BLESS=1` updates the output in the
/// document.
#[test]
fn device_is_what_the_document_shows() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("docs/embedding.md");
    let document = fs::read_to_string(&path).unwrap();
    let (_, rest) = document.split_once("\n## Device").unwrap();
    let section = rest.split_once("\n## ").map_or(rest, |(section, _)| section);
    let source = fs::read_to_string(root.join("examples/device.rs")).unwrap();
    let printed = device::run().unwrap();
    let mut kinds = Vec::new();
    for block in section.split("```").skip(1).step_by(2) {
        let (kind, text) = block.split_once('\n').unwrap();
        match kind {
            "clif reciprocals.clif" => {
                assert_eq!(
                    text,
                    fs::read_to_string(root.join("examples/reciprocals.clif")).unwrap()
                );
            }
            "rust" => {
                let mut lines = source.lines();
                for line in text.lines() {
                    assert!(
                        lines.any(|other| other == line),
                        "`{line}` is not in the program, or elsewhere"
                    );
                }
            }
            "text" if std::env::var_os("CRANELIFT_TEST_BLESS").is_some_and(|v| v == "1") => {
                fs::write(
                    &path,
                    document.replace(&format!("```{block}```"), &format!("```text\n{printed}```")),
                )
                .unwrap();
            }
            "text" => assert_eq!(text, printed, "CRANELIFT_TEST_BLESS=1 rewrites it"),
            other => panic!("{other}"),
        }
        kinds.push(kind);
    }
    assert_eq!(kinds.iter().filter(|kind| **kind == "rust").count(), 4);
    assert!(kinds.contains(&"text") && kinds.contains(&"clif reciprocals.clif"));
    // The document explains the zero, and the second launch has none.
    assert!(printed.starts_with("trap: int_divz in %part") && printed.contains("1000000 / 501 = 1996"));
    device::main().unwrap();
}

/// Compares the block of `docs/kernels.md` after a command with a text; `CRANELIFT_TEST_BLESS=1`
/// updates it.
fn check_block(command: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/kernels.md");
    let document = fs::read_to_string(&path).unwrap();
    let start = format!("{command}\n\n```text\n");
    let (before, rest) = document.split_once(&start).unwrap();
    let (shown, after) = rest.split_once("```").unwrap();
    if blesses() {
        fs::write(&path, format!("{before}{start}{text}```{after}")).unwrap();
    } else {
        assert_eq!(shown, text, "CRANELIFT_TEST_BLESS=1 rewrites it");
    }
}

fn blesses() -> bool {
    std::env::var_os("CRANELIFT_TEST_BLESS").is_some_and(|v| v == "1")
}

/// Tests that bless write the same document one after the other.
static DOCUMENT: Mutex<()> = Mutex::new(());

#[test]
fn cores_share_a_convolution_and_a_histogram() {
    let table = kernels_cores::table().unwrap();
    let last = table.lines().last().unwrap();
    let numbers: Vec<f64> = last.split_whitespace().map(|number| number.parse().unwrap()).collect();
    assert!(numbers[2] >= 7.0 && numbers[4] >= 4.0, "{table}");
    let guard = DOCUMENT.lock();
    check_block("--example kernels_cores", &table);
    drop(guard);
    let run = kernels_cores::run(kernels_cores::Kernel::Convolution, 8).unwrap();
    // No tile serves more than twice the data lines of another one.
    let served = |tile: usize| run.misses.homes[tile].misses();
    let served: Vec<u64> = (0..8).map(served).collect();
    assert!(
        served.iter().max() <= served.iter().min().map(|least| 2 * least).as_ref(),
        "{}",
        run.text
    );
    for part in ["image: 64 lines, cores 0-7, homes 0-7", "kernel: ", "stack of thread "] {
        assert!(run.text.contains(part), "{part}\n{}", run.text);
    }
    let picture = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/pictures/mesh.svg");
    if blesses() {
        fs::write(picture, run.map).unwrap();
    } else {
        assert!(
            fs::read_to_string(picture).unwrap() == run.map,
            "CRANELIFT_TEST_BLESS=1 rewrites it"
        );
    }
    kernels_cores::main().unwrap();
}

#[test]
fn cores_share_a_matrix_product() {
    let table = matmul_cores::table().unwrap();
    let speedups = table.lines().skip(1).filter_map(|line| line.split_whitespace().nth(2));
    let speedups: Vec<f64> = speedups.map(|speedup| speedup.parse().unwrap()).collect();
    let wanted = [1.0, 1.8, 3.3, 5.5];
    assert!(
        speedups.iter().zip(wanted).all(|(&found, wanted)| found >= wanted),
        "{table}"
    );
    let guard = DOCUMENT.lock();
    check_block("--example matmul_cores", &table);
    drop(guard);
    matmul_cores::main().unwrap();
}

#[test]
fn threads_share_a_matrix_product() {
    // `run` returns an error if a product is wrong. More threads take less time; eight threads take
    // less than half the time of one.
    let runs = matmul_threads::run(&[1, 2, 4, 8]).unwrap();
    assert!(runs.windows(2).all(|pair| pair[1].cycles < pair[0].cycles));
    assert!(runs[3].cycles * 2 < runs[0].cycles);
    assert_eq!(matmul_threads::table(&runs).lines().count(), 5);
    matmul_threads::main().unwrap();
}

/// The last comment of a program contains its output.
#[test]
fn programs_in_the_toy_language() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/toy_language/programs");
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let source = fs::read_to_string(&path).unwrap();
        let (_, expected) = source.rsplit_once("\nend\n").unwrap();
        let expected: String = expected.lines().map(|line| line[2..].to_owned() + "\n").collect();
        assert_eq!(brook::run(&source).unwrap(), expected, "{}", path.display());
        count += 1;
    }
    assert!(count >= 3);
}

fn fault(source: &str) -> String {
    brook::run(source).unwrap_err().to_string()
}

#[test]
fn faults_of_programs_have_lines() {
    for (source, expected) in [
        ("func main()\n  print x\nend", "line 2: `x` is not known"),
        ("func main()\n  x = 1\nend", "line 2: this is neither a variable"),
        ("func main()\n  main(1)\nend", "line 2: `main` takes 0 arguments, not 1"),
        (
            "func main()\n  let x = \nend",
            "line 3: an expression expected, not `end`",
        ),
        (
            "func main()\n  print \"open",
            "line 2: the text does not end on its line",
        ),
        (
            "func main()\n  print 4294967296\nend",
            "line 2: 4294967296 does not fit into 32 bits",
        ),
        ("func main()\n  let x = 1 & 2\nend", "line 2: `&` means nothing"),
        (
            "func main()\n\n",
            "line 2: an expression expected, not the end of the program",
        ),
        ("array a[1]\narray a[2]", "line 2: `a` is there already"),
        ("array a = [b]", "line 1: `b` is not known"),
        ("let x = 1", "line 1: `func` or `array` expected, not `let`"),
        ("func other()\nend", "there is no function `main`"),
    ] {
        let text = fault(source);
        assert!(text.starts_with(expected), "{source}\n{text}");
    }
    let deep = format!("func main()\nprint {}1\nend", "(".repeat(100_000));
    assert_eq!(fault(&deep), "line 2: more than 100 levels");
    let long = format!("func main()\nprint 1{}\nend", " + 1".repeat(100_000));
    assert_eq!(fault(&long), "line 2: more than 100 levels");
}

#[test]
fn traps_of_programs_have_lines() {
    let divided = "func main()\n  let zero = 0\n  print 1,\n    2 / zero\nend";
    assert_eq!(fault(divided), "line 4: a division by zero in `main`");
    let outside = "array a[3]\nfunc get(i)\n  return a[i]\nend\nfunc main()\n  print get(2)\n  print get(-1)\nend";
    assert_eq!(fault(outside), "line 3: an index outside of its array in `get`");
    let endless = "func main()\n  let i = 1\n  while i do\n    i = i * 3\n  end\nend";
    assert!(fault(endless).starts_with("no result after 100000000 instructions in %main"));
}
