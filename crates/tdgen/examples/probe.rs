//! Finds parts of td that decide nothing: makes one change after the other and runs all back ends.
//!
//!     cargo run --release -p tdgen --example probe                    # removes each `def` and `defm`
//!     cargo run --release -p tdgen --example probe -- Errata          # in files whose name contains this
//!     cargo run --release -p tdgen --example probe -- --changes       # changes numbers and texts, removes elements of lists
//!     cargo run --release -p tdgen --example probe -- --changes=7     # every seventh of them
//!
//! A part decides something if the description is refused after the change, or if the generated
//! text changes. All other parts are printed with file and line. The example `code_hashes` of
//! `naplespu-filetests` finds whether generated code changes as well.

#![deny(missing_docs)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A change of a td file.
struct Change {
    line: usize,
    start: usize,
    end: usize,
    /// The new text.
    text: String,
}

impl Change {
    /// Creates a change that replaces a part of the text.
    fn new(text: &str, start: usize, end: usize, new: String) -> Self {
        Self {
            line: text[..start].matches('\n').count() + 1,
            start,
            end,
            text: new,
        }
    }

    /// Creates a change that removes a part. Line numbers stay the same, because generated text
    /// contains them.
    fn removal(text: &str, start: usize, end: usize) -> Self {
        let lines = text[start..end].matches('\n').count();
        Self::new(text, start, end, "\n".repeat(lines))
    }

    fn apply(&self, text: &str) -> String {
        format!("{}{}{}", &text[..self.start], self.text, &text[self.end..])
    }
}

/// Returns the removals of all statements that begin with `def` or `defm`.
fn statements(text: &str) -> Vec<Change> {
    let mut found: Vec<Change> = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at + line.len() - line.trim_start().len();
        let word = line.trim_start().split([' ', ':', '<']).next();
        let inside = found.last().is_some_and(|last| start < last.end);
        if matches!(word, Some("def" | "defm")) && !inside {
            found.push(Change::removal(text, start, end_of(text, start)));
        }
        at += line.len();
    }
    found
}

/// Returns changes of all numbers and texts, and removals of elements of lists of names.
fn changes(text: &str) -> Vec<Change> {
    let mut found = Vec::new();
    let bytes = text.as_bytes();
    let is_word = |at: usize| bytes.get(at).is_some_and(|c| c.is_ascii_alphanumeric() || *c == b'_');
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text[at..];
        let end_of_line = at + rest.find('\n').unwrap_or(rest.len());
        match bytes[at] {
            b'/' if rest.starts_with("//") => at = end_of_line,
            b'#' if rest.starts_with("#ifndef") || rest.starts_with("#define") => at = end_of_line,
            b'"' => {
                let end = at + 1 + rest[1..].find('"').unwrap_or(rest.len() - 2);
                let is_include = text[..at].trim_end().ends_with("include");
                if !is_include {
                    found.push(Change::new(text, at + 1, end, format!("{}x", &text[at + 1..end])));
                }
                at = end + 1;
            }
            c if c.is_ascii_digit() && !is_word(at.wrapping_sub(1)) => {
                let end = (at..).find(|&at| !is_word(at)).unwrap_or(text.len());
                let new = match &text[at..end] {
                    "0" => "1".to_owned(),
                    number => format!("!add({number}, 1)"),
                };
                found.push(Change::new(text, at, end, new));
                at = end;
            }
            b'[' | b',' => {
                // An element that is a plain name, with the separator after it.
                let start = at + 1;
                let end = start
                    + text[start..]
                        .find([',', ']', '[', '(', '<', ';', '"', '/'])
                        .unwrap_or(0);
                let element = text[start..end].trim();
                let in_list = text[..=at].rfind('[') > text[..=at].rfind([']', '<', '(']);
                if in_list && element.starts_with(|c: char| c.is_ascii_alphabetic()) && bytes[end] == b',' {
                    found.push(Change::removal(text, start, end + 1));
                }
                at += 1;
            }
            _ => at += 1,
        }
        while !text.is_char_boundary(at) {
            at += 1;
        }
    }
    found
}

/// Returns the end of a statement: after its `;`, or after the closing brace of its body.
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
    match probe() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn probe() -> Result<(), String> {
    let (mut step, mut changed_only, mut filter) = (1, false, String::new());
    for argument in std::env::args().skip(1) {
        match argument.strip_prefix("--changes") {
            Some(number) => {
                changed_only = true;
                if let Some(number) = number.strip_prefix('=') {
                    step = number.parse().map_err(|error| format!("{argument}: {error}"))?;
                }
            }
            None => filter = argument,
        }
    }
    let td = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../td");
    let copy = std::env::temp_dir().join(format!("td-{}", std::process::id()));
    std::fs::create_dir_all(&copy).map_err(|error| format!("{}: {error}", copy.display()))?;
    let mut files: Vec<PathBuf> = Vec::new();
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
    let (mut refused, mut changed, mut nothing) = (0, 0, 0);
    for path in &files {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.contains(&filter) {
            continue;
        }
        let text = read(path)?;
        let all = if changed_only {
            changes(&text)
        } else {
            statements(&text)
        };
        for change in all.iter().step_by(step) {
            write(path, &change.apply(&text))?;
            match tdgen::build::all(&copy) {
                Err(_) => refused += 1,
                Ok(generated) if generated != whole => changed += 1,
                Ok(_) => {
                    nothing += 1;
                    let line = text.lines().nth(change.line - 1).unwrap_or_default().trim();
                    let part = &text[change.start..change.end];
                    let part = if changed_only {
                        format!("`{}` of ", part.trim())
                    } else {
                        String::new()
                    };
                    eprintln!("td/{name}:{}: {part}{line}", change.line);
                }
            }
        }
        write(path, &text)?;
    }
    std::fs::remove_dir_all(&copy).map_err(|error| format!("{}: {error}", copy.display()))?;
    eprintln!("{refused} changes are refused, {changed} change what is generated, {nothing} decide nothing");
    Ok(())
}
