//! Directives of WGSL that the parser refuses although it has their features.

use std::borrow::Cow;

/// Extensions that need no directive.
const EXTENSIONS: [&str; 5] = [
    "subgroups",
    "subgroups_f16",
    "chromium_experimental_subgroups",
    "unrestricted_pointer_parameters",
    "subgroup_id",
];

/// The function that WGSL has and the parser has not, in terms of others.
const ELECT: &str = "\nfn subgroupElect() -> bool { return subgroupExclusiveAdd(1u) == 0u; }\n";

/// Returns the text without these extensions in its directives. Spaces replace them, so that places in
/// the text stay the same. Definitions of missing functions follow the text.
pub(crate) fn accepted(text: &str) -> Cow<'_, str> {
    let mut cleared: Option<Vec<u8>> = None;
    let mut rest = Rest { text, at: 0 };
    while let Some((word, _)) = rest.word() {
        match word {
            "enable" | "requires" => {}
            "diagnostic" => match rest.end() {
                Some(_) => continue,
                None => break,
            },
            _ => break,
        }
        let start = rest.at - word.len();
        let (mut names, mut kept) = (Vec::new(), Vec::new());
        while let Some((name, span)) = rest.word() {
            match EXTENSIONS.contains(&name) {
                true => names.push(span),
                false => kept.push(span),
            }
            if !rest.skip(",") {
                break;
            }
        }
        // The parser reports anything else in the list.
        if !rest.skip(";") {
            break;
        }
        let end = rest.at;
        if names.is_empty() {
            continue;
        }
        // Without the other names, which follow each other with commas.
        let bytes = cleared.get_or_insert_with(|| text.as_bytes().to_vec());
        let keyword = start..start + word.len();
        blank(bytes, start..end);
        if !kept.is_empty() {
            bytes[keyword].copy_from_slice(word.as_bytes());
            bytes[end - 1] = b';';
        }
        for (index, span) in kept.iter().enumerate() {
            bytes[span.clone()].copy_from_slice(&text.as_bytes()[span.clone()]);
            if index > 0 {
                bytes[span.start - 1] = b',';
            }
        }
    }
    let text = match cleared.map(String::from_utf8) {
        Some(Ok(text)) => Cow::Owned(text),
        _ => Cow::Borrowed(text),
    };
    let calls = text.contains("subgroupElect(") && !text.contains("fn subgroupElect");
    match calls {
        true => Cow::Owned(text.into_owned() + ELECT),
        false => text,
    }
}

/// Replaces all but the ends of lines by spaces.
fn blank(bytes: &mut [u8], range: std::ops::Range<usize>) {
    for byte in bytes.get_mut(range).unwrap_or_default() {
        if !matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}

/// The text after the directives that were read.
struct Rest<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Rest<'a> {
    fn left(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Skips white space and comments.
    fn blanks(&mut self) {
        loop {
            let left = self.left();
            let trimmed = left.trim_start();
            self.at += left.len() - trimmed.len();
            if trimmed.starts_with("//") {
                self.at += trimmed.find('\n').unwrap_or(trimmed.len());
            } else if trimmed.starts_with("/*") {
                self.at += comment(trimmed);
            } else {
                return;
            }
        }
    }

    /// Returns the next word and its place.
    fn word(&mut self) -> Option<(&'a str, std::ops::Range<usize>)> {
        self.blanks();
        let left = self.left();
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let length = left.find(|letter| !is_letter(letter)).unwrap_or(left.len());
        let span = self.at..self.at + length;
        self.at = span.end;
        (length > 0).then_some((&left[..length], span))
    }

    fn skip(&mut self, token: &str) -> bool {
        self.blanks();
        let found = self.left().starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    /// Goes behind the semicolon and returns its end.
    fn end(&mut self) -> Option<usize> {
        self.at += self.left().find(';')? + 1;
        Some(self.at)
    }
}

/// Returns the length of a comment, which can contain others.
fn comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    let bytes = text.as_bytes();
    while at < bytes.len() {
        match bytes.get(at..at + 2) {
            Some(b"/*") => (depth, at) = (depth + 1, at + 2),
            Some(b"*/") => {
                (depth, at) = (depth - 1, at + 2);
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::accepted;

    #[test]
    fn extensions_are_removed_from_directives() {
        let same = |text: &str| assert_eq!(accepted(text), text);
        same("");
        same("enable f16;\nfn f() {}");
        same("fn f() {} enable subgroups;");
        same("enable subgroups");
        same("/* enable subgroups; /* */ */ struct A {}");
        assert_eq!(accepted("// x\nenable subgroups;\nfn"), "// x\n                 \nfn");
        assert_eq!(
            accepted("diagnostic(off, a.b);enable f16,subgroups , x;"),
            "diagnostic(off, a.b);enable f16            ,x;"
        );
        assert_eq!(accepted("requires\nsubgroup_id,é;"), "requires\nsubgroup_id,é;");
        assert_eq!(accepted("enable subgroups,f16;"), "enable           f16;");
        let elected = accepted("fn f() -> bool { return subgroupElect(); }");
        assert!(elected.contains("fn subgroupElect()"));
    }
}
