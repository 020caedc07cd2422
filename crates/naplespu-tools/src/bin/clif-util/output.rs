//! Output of results and messages.

use crate::Stop;
use crate::progress::suspended;
use clap::builder::styling::{AnsiColor, Style};
use std::fs;
use std::io::Write as _;
use std::path::Path;

/// Writes bytes to a file, or to standard output.
pub fn write(path: Option<&Path>, bytes: &[u8]) -> Result<(), Stop> {
    match path {
        Some(path) if path.as_os_str() != "-" => fs::write(path, bytes).map_err(|error| Stop::of_file(path, &error)),
        _ => print(bytes),
    }
}

/// Writes bytes that are not text. Writes to standard output only if it is named explicitly.
pub fn write_file(path: Option<&Path>, bytes: &[u8]) -> Result<(), Stop> {
    match path {
        Some(path) => write(Some(path), bytes),
        None => Err(Stop::Usage(
            "the output is not text: pass `-o OUT`, or `-o -` for standard output".to_owned(),
        )),
    }
}

/// Writes bytes to standard output.
pub fn print(bytes: &[u8]) -> Result<(), Stop> {
    suspended(|| {
        let mut out = std::io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()?;
        Ok(())
    })
}

/// Writes messages to standard output, with colours on a terminal.
pub fn print_messages(text: &str) -> Result<(), Stop> {
    suspended(|| Ok(anstream::stdout().lock().write_all(colored(text).as_bytes())?))
}

/// Writes messages to standard error, with colours on a terminal. Errors are ignored: the exit
/// status still shows the result.
pub fn report(text: &str) {
    // The stream removes colours if standard error is no terminal, or by `NO_COLOR`.
    let _ = suspended(|| anstream::stderr().lock().write_all(colored(text).as_bytes()));
}

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const NOTE: Style = AnsiColor::Cyan.on_default().bold();

/// Colours the kind of each message, and the marks and labels below quoted lines.
fn colored(text: &str) -> String {
    let kinds = [("error", ERROR), ("warning", WARNING), ("note", NOTE)];
    let mut last = ERROR;
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let kind = kinds
            .iter()
            .find(|(kind, _)| line.strip_prefix(kind).is_some_and(|rest| rest.starts_with(':')));
        // Quoted lines have their number before the bar.
        let marked = line.find("│ ").filter(|&at| line[..at].trim().is_empty());
        let marked = marked.map(|at| at + "│ ".len());
        let marked = marked.filter(|&at| line[at..].trim_start().starts_with(['^', '-']));
        let (start, end, style) = match (kind, marked) {
            (Some((kind, style)), _) => {
                last = *style;
                (0, kind.len(), *style)
            }
            (None, Some(at)) => (at, line.trim_end().len(), last),
            (None, None) => (0, 0, last),
        };
        if start == end {
            out += line;
        } else {
            let (before, rest) = line.split_at(start);
            let (styled, after) = rest.split_at(end - start);
            out += &format!("{before}{style}{styled}{style:#}{after}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::colored;

    #[test]
    fn kinds_and_marks_have_colours() {
        let text = "error: bad\n  ┌─ f:1:2\n  │\n1 │ a b\n  │   ^ here\n\nwarning: odd\nerrors: 2\n";
        let red = "\u{1b}[1m\u{1b}[31m";
        assert_eq!(
            colored(text),
            format!(
                "{red}error\u{1b}[0m: bad\n  ┌─ f:1:2\n  │\n1 │ a b\n  │ {red}  ^ here\u{1b}[0m\n\n\
                 \u{1b}[1m\u{1b}[33mwarning\u{1b}[0m: odd\nerrors: 2\n"
            )
        );
        let plain = "3 │ -x\n│\n\u{e9}│ -\n";
        assert_eq!(colored(plain), plain);
    }
}
