//! Tests the page of `compile --emit=html`.
//!
//! Except for its style and script the page is XML, so it is parsed as XML and compared with the
//! other outputs.

use roxmltree::{Document, Node, ParsingOptions};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn clif_util(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_clif-util"))
        .args(arguments)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the page without its style and script, and the removed text.
fn split(page: &str) -> (String, String) {
    let mut rest = String::new();
    let mut cut = String::new();
    let mut left = page;
    for name in ["style", "script"] {
        let (before, after) = left.split_once(&format!("<{name}>")).unwrap();
        let (inside, after) = after.split_once(&format!("</{name}>")).unwrap();
        rest += before;
        cut += inside;
        left = after;
    }
    (rest + left, cut)
}

/// Calls `look` with the page as a tree, after checks that apply to all pages.
fn checked(page: &str, look: impl FnOnce(&Document<'_>)) {
    let (text, cut) = split(page);
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(&text, options).unwrap();
    // The page does not load anything.
    for word in ["http", "url(", "@import", "import(", "fetch(", "src="] {
        assert!(!cut.contains(word), "{word}");
    }
    let elements: HashSet<&str> = document
        .descendants()
        .filter(Node::is_element)
        .map(|n| n.tag_name().name())
        .collect();
    let known = [
        "html", "head", "meta", "title", "body", "header", "h1", "h2", "h3", "p", "div", "span", "b", "i", "small",
        "code", "pre", "nav", "a", "section", "details", "summary", "ul", "li",
    ];
    assert!(elements.iter().all(|name| known.contains(name)), "{elements:?}");
    let mut ids = HashSet::new();
    for node in document.descendants() {
        if let Some(id) = node.attribute("id") {
            assert!(ids.insert(id), "two elements are {id}");
        }
    }
    for node in document.descendants() {
        for attribute in node.attributes() {
            let name = attribute.name();
            assert!(
                !name.starts_with("on") && !["src", "srcset", "action", "data"].contains(&name),
                "{name}"
            );
            match name {
                "href" => assert!(
                    ids.contains(attribute.value().strip_prefix('#').unwrap()),
                    "{}",
                    attribute.value()
                ),
                "data-c" | "data-o" | "data-v" | "data-x" | "data-r" | "data-t" => {
                    for id in attribute.value().split_whitespace() {
                        assert!(ids.contains(id), "{name} leads to {id}");
                    }
                }
                _ => {}
            }
        }
    }
    // Each instruction has an origin and bytes.
    for row in rows(&document, "asm") {
        if row.has_attribute("id") {
            assert!(row.attribute("data-r").is_some_and(|rules| !rules.is_empty()) != row.has_attribute("data-m"));
            assert!(row.has_attribute("data-x") && row.has_attribute("data-y"));
            // A rule belongs to a CLIF instruction, which must exist.
            assert!(!row.has_attribute("data-r") || row.has_attribute("data-o") && row.has_attribute("data-v"));
        }
    }
    look(&document);
}

fn has_class(node: &Node<'_, '_>, class: &str) -> bool {
    node.attribute("class")
        .is_some_and(|all| all.split(' ').any(|one| one == class))
}

/// Returns the lines of a column for all functions.
fn rows<'a>(document: &'a Document<'a>, column: &'a str) -> impl Iterator<Item = Node<'a, 'a>> {
    let columns = document
        .descendants()
        .filter(move |node| has_class(node, "column") && has_class(node, column));
    columns.flat_map(|column| column.descendants().filter(|node| has_class(node, "r")))
}

fn text(node: Node<'_, '_>) -> String {
    node.descendants()
        .filter_map(|node| node.text().filter(|_| node.is_text()))
        .collect()
}

/// Returns the lines that `compile` prints for an output.
fn printed(form: &str, file: &str, settings: &[&str]) -> Vec<String> {
    let arguments = ["compile", "--emit", form, file];
    let text = clif_util(&[&arguments, settings].concat());
    let lines = text
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with(";;"));
    lines.map(str::to_owned).collect()
}

#[test]
fn all_forms_are_there() {
    let files = [
        "filetests/corpus/crc32_table.clif",
        "filetests/corpus/matmul_f32.clif",
        "filetests/corpus/dot_v16.clif",
        "filetests/exceptions/catch.clif",
        "filetests/vectorize/kernels/fir.clif",
        "crates/naplespu-tools/tests/cli/inputs/explain.clif",
    ];
    for file in files {
        let file = root().join(file);
        let file = file.to_str().unwrap();
        for settings in [&["--set", "opt_level=none"][..], &["--set", "opt_level=speed"]] {
            let page = clif_util(&[&["compile", "--emit=html", file], settings].concat());
            checked(&page, |document| {
                for (column, form) in [("clif", "clif"), ("opt", "opt"), ("vcode", "presched")] {
                    let shown: Vec<String> = rows(document, column)
                        .map(text)
                        .filter(|line| !line.trim().is_empty())
                        .collect();
                    assert_eq!(shown, printed(form, file, settings), "{form} of {file}");
                }
                let bytes: Vec<String> = rows(document, "bytes")
                    .filter(|row| row.has_attribute("id"))
                    .map(|row| text(row).split(' ').rev().collect())
                    .collect();
                assert_eq!(bytes, printed("bytes", file, settings), "{file}");
                // The page formats constants differently, so lines with `.long` are not compared.
                let is_inst = |row: &Node<'_, '_>| row.has_attribute("id") && !text(*row).contains(".long");
                let shown: Vec<String> = rows(document, "asm")
                    .filter(is_inst)
                    .map(|row| text(row.children().find(|node| has_class(node, "txt")).unwrap()))
                    .collect();
                let asm = printed("asm", file, settings)
                    .into_iter()
                    .filter(|line| line.starts_with(' ') && !line.contains(".long"));
                assert_eq!(
                    shown,
                    asm.map(|line| line.trim().to_owned()).collect::<Vec<_>>(),
                    "{file}"
                );
                assert_eq!(
                    rows(document, "asm").filter(|row| row.has_attribute("id")).count(),
                    bytes.len()
                );
            });
        }
    }
}

/// Without optimization each instruction derives from itself; with optimization it derives from a
/// similar one.
#[test]
fn instructions_are_linked() {
    let file = root().join("filetests/corpus/crc32_bitwise.clif");
    let file = file.to_str().unwrap();
    let page = clif_util(&["compile", "--emit=html", "--set", "opt_level=none", file]);
    checked(&page, |document| {
        for row in rows(document, "opt").filter(|row| row.has_attribute("id")) {
            let id = row.attribute("id").unwrap();
            assert_eq!(row.attribute("data-c").unwrap(), id.replace('o', "c"), "{}", text(row));
        }
    });
    let page = clif_util(&["compile", "--emit=html", "--set", "opt_level=speed", file]);
    checked(&page, |document| {
        let all = rows(document, "opt").filter(|row| row.has_attribute("id"));
        let (linked, lost): (Vec<_>, Vec<_>) = all.partition(|row| !row.attribute("data-c").unwrap().is_empty());
        assert!(linked.len() > 20 * lost.len(), "{} {}", linked.len(), lost.len());
    });
}

/// The instructions of the loop execute once per iteration, and the sums equal those of `run
/// --timing`.
#[test]
fn cycles_are_those_of_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("loop.clif");
    let clif = "target naplespu\nfunction %sum(i32) -> i32 {\nblock0(v0: i32):\n v1 = iconst.i32 0\n jump block1(v0, v1)\nblock1(v2: i32, v3: i32):\n \
                v4 = iadd v3, v2\n v5 = iconst.i32 -1\n v6 = iadd v2, v5\n brif v6, block1(v6, v4), block2\nblock2:\n return v4\n}\n\
                ; run: %sum(10) == 55\n; run: %sum(5) == 15\n; run: %sum(3) == 7\n";
    fs::write(&file, clif).unwrap();
    let file = file.to_str().unwrap();
    let page = clif_util(&["compile", "--emit=html", file]);
    checked(&page, |document| {
        assert!(page.contains("2 of 3 run lines passed"));
        let costs: Vec<(String, (u64, u64))> = rows(document, "asm")
            .filter(|row| row.has_attribute("data-n"))
            .map(|row| {
                let number = |name| row.attribute(name).unwrap().parse().unwrap();
                let text = text(row.children().find(|node| has_class(node, "txt")).unwrap());
                (
                    text.split(' ').next().unwrap().to_owned(),
                    (number("data-n"), number("data-cy")),
                )
            })
            .collect();
        let executed = |start: &str| costs.iter().find(|(name, _)| name.starts_with(start)).unwrap().1.0;
        assert_eq!(executed("b"), 10 + 5 + 3, "{costs:?}");
        assert_eq!(executed("jret"), 3, "{costs:?}");
        let cycles: u64 = costs.iter().map(|(_, cost)| cost.1).sum();
        // One `run` fails with its exit status but still prints the report.
        let run = Command::new(env!("CARGO_BIN_EXE_clif-util"))
            .args(["run", "--timing", file])
            .output()
            .unwrap();
        let run = String::from_utf8(run.stdout).unwrap();
        let of_run = run.lines().filter_map(|line| {
            line.trim()
                .strip_prefix("sum: ")?
                .split(' ')
                .next()?
                .parse::<u64>()
                .ok()
        });
        assert_eq!(of_run.sum::<u64>(), cycles, "{run}");
    });
}

/// The cycles at the top are those of the functions below, and those of the runtime are named.
#[test]
fn the_runtime_has_its_cycles() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("div.clif");
    let clif = "target naplespu\nfunction %div(i32, i32) -> i32 {\nblock0(v0: i32, v1: i32):\n v2 = udiv v0, v1\n return v2\n}\n\
                ; run: %div(100, 7) == 14\n";
    fs::write(&file, clif).unwrap();
    let file = file.to_str().unwrap();
    let page = clif_util(&["compile", "--emit=html", file]);
    let run = clif_util(&["run", "--timing", file]);
    let cycles = |name: &str| -> u64 {
        let row = run
            .lines()
            .find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(": "));
        row.unwrap().split(' ').next().unwrap().parse().unwrap()
    };
    let (own, routine) = (cycles("div"), cycles("__npu_udiv32"));
    assert!(page.contains(&format!(
        "passed, with {own} cycles on one thread in the functions of this page"
    )));
    assert!(page.contains(&format!(
        "{routine} cycles in routines of the runtime: <code>__npu_udiv32</code> {routine}"
    )));
    // Issues and stalls add up to the cycles of the run.
    assert!(run.contains(&format!("\n  {} cycles, ", own + routine)), "{run}");
}

/// Names and comments are escaped, whatever they contain.
#[test]
fn hostile_text_stays_text() {
    let folder = tempfile::tempdir().unwrap();
    let name = "<img src=x onerror=alert(1)> \"'&amp;--></title><script>.clif";
    let name = name.replace('/', "\u{2215}");
    let file = folder.path().join(&name);
    let clif = "target naplespu\nfunction %f() -> i32 {\nblock0:\n v0 = iconst.i32 1\n return v0\n}\n\
                ; run: %f() == 1 <script>alert(1)</script> & \"more\"\n; run: %f() == 2\n";
    fs::write(&file, clif).unwrap();
    let page = clif_util(&["compile", "--emit=html", file.to_str().unwrap()]);
    assert_eq!(page.matches("<script").count(), 1);
    checked(&page, |document| {
        let title = document.descendants().find(|node| node.has_tag_name("title")).unwrap();
        assert!(text(title).ends_with(&name), "{}", text(title));
        let lines: String = document
            .descendants()
            .filter(|node| node.has_tag_name("li"))
            .map(text)
            .collect();
        assert!(lines.contains("<script>alert(1)</script> & \"more\""), "{lines}");
    });
}

#[test]
fn a_page_is_made_alone() {
    let file = root().join("crates/naplespu-tools/tests/cli/inputs/add.clif");
    let file = file.to_str().unwrap();
    for more in ["--emit=asm", "-D", "--explain"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_clif-util"));
        let output = command.args(["compile", "--emit=html", more, file]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{more}");
    }
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let printed = clif_util(&["compile", "--emit=html", "-o", page.to_str().unwrap(), file]);
    assert!(printed.is_empty());
    assert_eq!(
        fs::read_to_string(page).unwrap(),
        clif_util(&["compile", "--emit=html", file])
    );
}
