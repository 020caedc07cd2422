//! Changes of the text of a description.

/// A change of a td file.
pub struct Change {
    /// The line of the file, from 1.
    pub line: usize,
    /// The first byte that is replaced.
    pub start: usize,
    /// The byte after the last one that is replaced.
    pub end: usize,
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

    /// Returns the text after the change.
    pub fn apply(&self, text: &str) -> String {
        format!("{}{}{}", &text[..self.start], self.text, &text[self.end..])
    }
}

/// Returns the removals of all statements that begin with `def` or `defm`.
pub fn statements(text: &str) -> Vec<Change> {
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
pub fn changes(text: &str) -> Vec<Change> {
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
