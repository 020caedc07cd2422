//! Removes functions and run lines from files.

use super::cases::Case;

/// Returns the text of a file with only the given functions and run lines.
///
/// A comment directly before a removed function is removed. A comment between empty lines is kept
/// if a function follows before the next such comment.
pub fn text(case: &Case, functions: &[bool], lines: &[bool]) -> String {
    let source = &case.file.source;
    let text: Vec<&str> = source.text.split_inclusive('\n').collect();
    let mut keep = vec![true; text.len()];
    for (line, _) in case.lines.list().iter().zip(lines).filter(|(_, kept)| !**kept) {
        let number = source.position(line.offset()).0 - 1;
        // A run line after code on the same line is kept.
        if text[number].trim_start().starts_with(';') {
            keep[number] = false;
        }
    }
    let starts: Vec<usize> = case.file.functions.iter().map(|case| case.line - 1).collect();
    let is_comment = |line: &str| line.trim_start().starts_with(';');
    let mut begins = Vec::new();
    for &start in &starts {
        let mut begin = start;
        while begin > 0 && is_comment(text[begin - 1]) && !is_run(text[begin - 1]) {
            begin -= 1;
        }
        begins.push(begin);
    }
    for (index, &start) in starts.iter().enumerate() {
        if functions[index] {
            continue;
        }
        let limit = begins.get(index + 1).copied().unwrap_or(text.len());
        let close = (start..limit).find(|&at| text[at].starts_with('}')).unwrap_or(start);
        let mut end = close + 1;
        // The text up to the next separate comment.
        while end < limit && (text[end].trim().is_empty() || is_run(text[end])) {
            end += 1;
        }
        let begin = if index == 0 { start } else { begins[index] };
        // Run lines of other functions may be in the range; those of this one are already removed.
        (begin..end)
            .filter(|&at| !is_run(text[at]))
            .for_each(|at| keep[at] = false);
    }
    remove_idle_headings(&text, &mut keep, &starts);
    let mut out = String::new();
    let mut last = "";
    for (line, _) in text.iter().zip(keep).filter(|(_, keep)| *keep) {
        let is_blank = |line: &str| line.trim().is_empty();
        if is_blank(line) && is_blank(last) {
            continue;
        }
        if line.starts_with("function") && !is_blank(last) && (is_run(last) || !is_comment(last)) {
            out.push('\n');
        }
        out += line;
        last = line;
    }
    out.trim_end().to_owned() + "\n"
}

/// Returns whether a line of text is a run line.
fn is_run(line: &str) -> bool {
    line.trim_start().starts_with(';') && naplespu_filetests::expect::is_run_line(line)
}

/// Removes comments between empty lines if no function follows before the next such comment or the
/// end.
fn remove_idle_headings(text: &[&str], keep: &mut [bool], starts: &[usize]) {
    let first = starts.first().copied().unwrap_or(text.len());
    let mut heading: Option<std::ops::Range<usize>> = None;
    let mut at = first;
    while at < text.len() {
        let line = text[at].trim();
        if keep[at] && line.starts_with("function") {
            heading = None;
        } else if keep[at] && line.starts_with(';') && !is_run(text[at]) && at > 0 && text[at - 1].trim().is_empty() {
            let mut end = at;
            while end < text.len() && text[end].trim_start().starts_with(';') {
                end += 1;
            }
            if text.get(end).is_none_or(|line| line.trim().is_empty()) {
                if let Some(old) = heading.replace(at..end) {
                    keep[old].fill(false);
                }
                at = end;
                continue;
            }
        }
        at += 1;
    }
    if let Some(old) = heading {
        keep[old].fill(false);
    }
}
