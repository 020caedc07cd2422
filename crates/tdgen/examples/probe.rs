//! Which statements of td decide nothing: takes out one `def` or `defm` after the other and runs all back ends.
//!
//!     cargo run --release -p tdgen --example probe            # all statements
//!     cargo run --release -p tdgen --example probe -- Errata  # of files whose name contains this
//!
//! A statement decides something if the description is refused without it, or if what is generated from it changes. The rest is
//! printed, with file and line.

#![deny(missing_docs)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A statement in a file.
struct Statement {
    file: PathBuf,
    line: usize,
    start: usize,
    end: usize,
}

/// The statements of a text that begin with `def` or `defm`.
fn statements(file: &Path, text: &str) -> Vec<Statement> {
    let mut found = Vec::new();
    let mut at = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let start = at + line.len() - line.trim_start().len();
        let word = line.trim_start().split([' ', ':', '<']).next();
        let inside = found.last().is_some_and(|last: &Statement| start < last.end);
        if matches!(word, Some("def" | "defm")) && !inside {
            found.push(Statement {
                file: file.to_owned(),
                line: number + 1,
                start,
                end: end_of(text, start),
            });
        }
        at += line.len();
    }
    found
}

/// Where a statement ends: behind its `;`, or behind the brace that closes its body.
fn end_of(text: &str, start: usize) -> usize {
    let (mut depth, mut quoted, mut comment) = (0i32, false, false);
    let mut previous = '\0';
    for (at, c) in text[start..].char_indices() {
        match c {
            '\n' => comment = false,
            _ if comment => {}
            '"' => quoted = !quoted,
            _ if quoted => {}
            '/' if previous == '/' => comment = true,
            '{' | '[' | '(' | '<' => depth += 1,
            ']' | ')' => depth -= 1,
            '>' if previous != '-' => depth -= 1,
            '}' => {
                depth -= 1;
                if depth == 0 {
                    return start + at + 1;
                }
            }
            ';' if depth == 0 => return start + at + 1,
            _ => {}
        }
        previous = c;
    }
    text.len()
}

fn main() -> ExitCode {
    match probe(std::env::args().nth(1).as_deref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn probe(filter: Option<&str>) -> Result<(), String> {
    let td = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../td");
    let copy = std::env::temp_dir().join(format!("td-{}", std::process::id()));
    std::fs::create_dir_all(&copy).map_err(|error| format!("{}: {error}", copy.display()))?;
    let mut files = Vec::new();
    let entries = std::fs::read_dir(&td).map_err(|error| format!("{}: {error}", td.display()))?;
    for entry in entries {
        let path = entry.map_err(|error| error.to_string())?.path();
        if path.extension().is_some_and(|extension| extension == "td") {
            files.push(path);
        }
    }
    files.sort();
    let read = |path: &Path| std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()));
    let write = |path: &Path, text: &str| {
        let path = copy.join(path.file_name().unwrap_or_default());
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    for path in &files {
        write(path, &read(path)?)?;
    }
    let whole = tdgen::build::all(&copy)?;
    let (mut refused, mut changed, mut nothing) = (0, 0, Vec::new());
    for path in &files {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if filter.is_some_and(|filter| !name.contains(filter)) {
            continue;
        }
        let text = read(path)?;
        for statement in statements(path, &text) {
            // Lines stay where they are: what is generated names them.
            let lines = text[statement.start..statement.end].matches('\n').count();
            let without = format!(
                "{}{}{}",
                &text[..statement.start],
                "\n".repeat(lines),
                &text[statement.end..]
            );
            write(path, &without)?;
            match tdgen::build::all(&copy) {
                Err(_) => refused += 1,
                Ok(generated) if generated != whole => changed += 1,
                Ok(_) => nothing.push((statement.file, statement.line)),
            }
        }
        write(path, &text)?;
    }
    std::fs::remove_dir_all(&copy).map_err(|error| format!("{}: {error}", copy.display()))?;
    eprintln!(
        "{refused} are refused if they are taken out, {changed} change what is generated, {} decide nothing",
        nothing.len()
    );
    for (file, line) in nothing {
        let text = read(&file)?;
        let shown = text.lines().nth(line - 1).unwrap_or_default().trim().to_owned();
        eprintln!(
            "td/{}:{line}: {shown}",
            file.file_name().unwrap_or_default().to_string_lossy()
        );
    }
    Ok(())
}
