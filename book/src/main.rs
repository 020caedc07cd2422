//! Makes a book of `docs/` and checks its links.
//!
//!     cargo run --manifest-path book/Cargo.toml [FOLDER]
//!
//! The chapters are those of `docs/SUMMARY.md`. Three are not files of `docs/`: the overview is the
//! README, the options are the output of `clif-util help`, and `npu-tblgen --gen-isa-manual` makes
//! the instruction set from `td/`. The book is written to `target/book`, or to FOLDER.

mod links;

use anyhow::{Context, Result, bail, ensure};
use mdbook_driver::MDBook;
use mdbook_driver::config::Config;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The appearance of the book; mdBook's documentation describes the keys.
const CONFIG: &str = r#"
[book]
title = "cranelift-naplespu"
description = "A compiler back end for the NaplesPU, with simulator, linker and TableGen"
src = "pages"

[output.html]
no-section-label = true
"#;

fn main() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .context("the book is not in a folder")?;
    let folder = match std::env::args_os().nth(1) {
        Some(folder) => PathBuf::from(folder),
        None => root.join("target/book"),
    };
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot replace {}", folder.display()))?;
    }
    pages(root, &folder.join("pages"))?;
    let config: Config = CONFIG.parse()?;
    let book = MDBook::load_with_config(&folder, config)?;
    chapters_are_complete(&book, &folder.join("pages"))?;
    book.build()?;
    let html = book.build_dir_for("html");
    let (links, broken) = links::check(&html)?;
    for fault in &broken {
        eprintln!("{fault}");
    }
    ensure!(broken.is_empty(), "{} of {links} links are broken", broken.len());
    println!("{}: {links} links are valid", html.join("index.html").display());
    Ok(())
}

/// Copies the documents and makes those that are generated.
fn pages(root: &Path, pages: &Path) -> Result<()> {
    copy(&root.join("docs"), pages)?;
    let readme = fs::read_to_string(root.join("README.md")).context("README.md")?;
    // The links of the README start with the folder.
    fs::write(pages.join("overview.md"), readme.replace("](docs/", "]("))?;
    fs::write(pages.join("options.md"), options(root)?)?;
    let manual = tool(
        root,
        &[
            "--bin",
            "npu-tblgen",
            "--",
            "--gen-isa-manual",
            "-I",
            "td",
            "td/NaplesPU.td",
        ],
    )?;
    fs::write(pages.join("isa-manual.md"), manual)?;
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Returns the help of the command line, with a section for each subcommand.
fn options(root: &Path) -> Result<String> {
    let help = |args: &[&str]| tool(root, &[&["--bin", "clif-util", "--", "help"], args].concat());
    let all = help(&[])?;
    let mut page = format!("# Options\n\nThe output of `clif-util help`.\n\n```text\n{all}```\n");
    let commands = all.lines().skip_while(|line| !line.starts_with("Commands:")).skip(1);
    let commands = commands.take_while(|line| !line.is_empty());
    let mut count = 0;
    for line in commands {
        // A description may continue on the next line, further to the right.
        let Some(name) = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')) else {
            continue;
        };
        let name = name.split_whitespace().next().context("a command without a name")?;
        if name != "help" {
            write!(page, "\n## {name}\n\n```text\n{}```\n", help(&[name])?)?;
            count += 1;
        }
    }
    ensure!(count > 0, "clif-util names no commands");
    Ok(page)
}

/// Returns the output of a program of the workspace.
fn tool(root: &Path, args: &[&str]) -> Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["run", "--quiet"])
        .args(args)
        .current_dir(root)
        .output()
        .context("cargo does not run")?;
    if !output.status.success() {
        bail!("{}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Checks that every document is a chapter.
fn chapters_are_complete(book: &MDBook, pages: &Path) -> Result<()> {
    let chapters: Vec<&Path> = book
        .book
        .chapters()
        .filter_map(|chapter| chapter.path.as_deref())
        .collect();
    for folder in [pages.to_owned(), pages.join("machine")] {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let name = path.strip_prefix(pages)?;
            let is_page = name.extension().is_some_and(|extension| extension == "md");
            if is_page && name != "SUMMARY.md" && !chapters.contains(&name) {
                bail!("docs/SUMMARY.md does not name {}", name.display());
            }
        }
    }
    Ok(())
}
