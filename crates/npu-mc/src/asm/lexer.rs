//! The lexer: source text to tokens.
//!
//! The lexer reads the whole source before parsing starts. For text that is no token, it reports a
//! fault and emits a [`Kind::Bad`]; the parser then skips the statement and continues with the next
//! one.

use super::fault::{Fault, Span};
use std::borrow::Cow;

/// The kind of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind<'s> {
    /// A mnemonic, directive, register or symbol. `.` alone is the current address.
    Word(&'s str),
    /// A number.
    Number(i128),
    /// `1b` (the nearest `1:` before it) or `1f` (the next one).
    Local { number: u32, backward: bool },
    /// A quoted string.
    String(Vec<u8>),
    /// An operator or another mark.
    Mark(&'static str),
    /// End of a line, or `;`.
    End,
    /// Text for which a fault has been reported.
    Bad,
}

/// A token and its span.
#[derive(Clone, Debug)]
pub(super) struct Token<'s> {
    pub(super) kind: Kind<'s>,
    pub(super) span: Span,
}

/// The marks; a longer mark precedes its prefixes.
const MARKS: [&str; 29] = [
    "<<", ">>", "<=", ">=", "==", "!=", "<>", "&&", "||", ",", ":", "(", ")", "+", "-", "*", "/", "%", "&", "|", "^",
    "~", "!", "<", ">", "=", "@", "[", "]",
];

/// Splits a source into tokens. The last token is an [`Kind::End`].
pub(super) fn lex<'s>(source: &'s str, faults: &mut Vec<Fault>) -> Vec<Token<'s>> {
    let mut lexer = Lexer {
        source,
        at: 0,
        faults,
        tokens: Vec::with_capacity(source.len() / 4 + 1),
    };
    while lexer.at < source.len() {
        lexer.token();
    }
    lexer.push(Kind::End, source.len());
    lexer.tokens
}

/// Returns whether a symbol of this name needs no quotes, unless it is a register.
pub(super) fn is_word(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(starts_word) && bytes.all(continues_word) && text != "."
}

fn starts_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'.' | b'$')
}

fn continues_word(byte: u8) -> bool {
    starts_word(byte) || byte.is_ascii_digit()
}

struct Lexer<'s, 'f> {
    source: &'s str,
    at: usize,
    faults: &'f mut Vec<Fault>,
    tokens: Vec<Token<'s>>,
}

impl<'s> Lexer<'s, '_> {
    fn rest(&self) -> &'s str {
        &self.source[self.at..]
    }

    /// Appends a token that ends at the current position.
    fn push(&mut self, kind: Kind<'s>, start: usize) {
        let span = start..self.at;
        self.tokens.push(Token { kind, span });
    }

    fn bad(&mut self, start: usize, message: impl Into<String>, label: impl Into<String>) {
        self.faults.push(Fault::new(start..self.at, message, label));
        self.push(Kind::Bad, start);
    }

    /// Returns the end of the longest run of bytes that the predicate accepts.
    fn run(&self, from: usize, accept: impl Fn(u8) -> bool) -> usize {
        let bytes = &self.source.as_bytes()[from..];
        from + bytes.iter().position(|&b| !accept(b)).unwrap_or(bytes.len())
    }

    fn token(&mut self) {
        let start = self.at;
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return };
        match first {
            '\n' | ';' => {
                self.at += 1;
                self.push(Kind::End, start);
            }
            ' ' | '\t' | '\r' | '\x0b' | '\x0c' => self.at += 1,
            '#' => self.at = self.run(start, |b| b != b'\n'),
            '/' if rest.starts_with("//") => self.at = self.run(start, |b| b != b'\n'),
            '/' if rest.starts_with("/*") => match rest[2..].find("*/") {
                Some(end) => self.at += end + 4,
                None => {
                    self.at = start + 2;
                    self.bad(start, "unterminated comment", "there is no `*/` after it");
                    self.at = self.source.len();
                }
            },
            '0'..='9' => self.number(),
            '"' => self.string(),
            '\'' => self.character(),
            c if c.is_ascii() && starts_word(c as u8) => {
                self.at = self.run(start, continues_word);
                let word = &self.source[start..self.at];
                self.push(Kind::Word(word), start);
            }
            c => match MARKS.iter().find(|mark| rest.starts_with(**mark)) {
                Some(mark) => {
                    self.at += mark.len();
                    self.push(Kind::Mark(mark), start);
                }
                None => {
                    self.at += c.len_utf8();
                    let what = c.escape_debug();
                    self.bad(start, format!("unexpected character `{what}`"), "not part of any token");
                }
            },
        }
    }

    fn number(&mut self) {
        let start = self.at;
        let end = self.run(start, continues_word);
        let text = &self.source[start..end];
        self.at = end;
        let digits = text.trim_end_matches(['b', 'f']);
        if digits.len() + 1 == text.len() && digits.bytes().all(|b| b.is_ascii_digit()) {
            let backward = text.ends_with('b');
            match digits.parse() {
                Ok(number) => self.push(Kind::Local { number, backward }, start),
                Err(_) => self.bad(start, "the number of this label is too large", "at most 4294967295"),
            }
            return;
        }
        let (radix, digits, what) = match text.as_bytes() {
            [b'0', b'x' | b'X', ..] => (16, &text[2..], "hexadecimal"),
            [b'0', b'b' | b'B', ..] => (2, &text[2..], "binary"),
            [b'0', _, ..] => (8, &text[1..], "octal (leading zero)"),
            _ => (10, text, "decimal"),
        };
        if digits.is_empty() || !digits.bytes().all(|b| (b as char).is_digit(radix)) {
            self.bad(start, format!("`{text}` is not a number"), format!("not {what} digits"));
            return;
        }
        match u64::from_str_radix(digits, radix) {
            Ok(value) => self.push(Kind::Number(i128::from(value)), start),
            Err(_) => self.bad(start, format!("{text} is too large"), "numbers have at most 64 bits"),
        }
    }

    /// Returns the quoted text that starts at the current position, up to the closing quote on the
    /// same line. Returns `None` after it has reported a fault.
    fn quoted(&mut self, quote: u8, what: &str) -> Option<&'s str> {
        let start = self.at;
        let bytes = self.source.as_bytes();
        let mut at = start + 1;
        loop {
            match bytes.get(at) {
                Some(b'\\') if bytes.get(at + 1).is_some_and(|&b| b != b'\n') => at += 2,
                Some(&b) if b == quote => break,
                None | Some(b'\n') => {
                    self.at = at.min(bytes.len());
                    self.bad(start, format!("unterminated {what}"), "no closing quote on this line");
                    return None;
                }
                Some(_) => at += 1,
            }
        }
        self.at = at + 1;
        Some(&self.source[start + 1..at])
    }

    fn string(&mut self) {
        let start = self.at;
        let Some(text) = self.quoted(b'"', "string") else {
            return;
        };
        match unescape(text) {
            Ok(bytes) => self.push(Kind::String(bytes), start),
            Err((at, why)) => {
                let end = self.at;
                let from = start + 1 + at;
                let len = 1 + self.source[from + 1..].chars().next().map_or(0, char::len_utf8);
                self.faults.push(Fault::new(from..(from + len).min(end), why, "here"));
                self.push(Kind::Bad, start);
            }
        }
    }

    fn character(&mut self) {
        let start = self.at;
        let Some(text) = self.quoted(b'\'', "character") else {
            return;
        };
        match unescape(text).as_deref() {
            Ok([byte]) => self.push(Kind::Number(i128::from(*byte)), start),
            Ok(_) => self.bad(start, "this is not one character", "one byte between the quotes"),
            Err((_, why)) => {
                let why = why.clone();
                self.bad(start, why, "here");
            }
        }
    }
}

/// Returns the bytes of a string without its quotes, or the position and the reason of a fault.
fn unescape(text: &str) -> Result<Vec<u8>, (usize, Cow<'static, str>)> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let backslash = at - 1;
        let escaped = bytes.get(at).copied().unwrap_or(b'\\');
        at += 1;
        out.push(match escaped {
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'"' | b'\'' | b'\\' => escaped,
            b'0'..=b'7' => {
                let mut value = u32::from(escaped - b'0');
                for _ in 0..2 {
                    if let Some(digit @ b'0'..=b'7') = bytes.get(at) {
                        value = value * 8 + u32::from(digit - b'0');
                        at += 1;
                    }
                }
                u8::try_from(value).map_err(|_| (backslash, Cow::from("this octal escape is larger than 377")))?
            }
            b'x' | b'X' => {
                let digits = bytes[at..].iter().take_while(|b| b.is_ascii_hexdigit()).count();
                let value = u32::from_str_radix(&text[at..at + digits], 16).ok();
                at += digits;
                let byte = value.and_then(|v| u8::try_from(v).ok());
                byte.ok_or((backslash, Cow::from("`\\x` takes one or two hexadecimal digits")))?
            }
            _ => return Err((backslash, Cow::from("unknown escape"))),
        });
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(source: &str) -> Vec<Kind<'_>> {
        let mut faults = Vec::new();
        let tokens = lex(source, &mut faults);
        assert_eq!(faults, [], "{source}");
        tokens.into_iter().map(|t| t.kind).collect()
    }

    fn fault(source: &str) -> Fault {
        let mut faults = Vec::new();
        lex(source, &mut faults);
        assert_eq!(faults.len(), 1, "{source}: {faults:?}");
        faults.remove(0)
    }

    #[test]
    fn numbers_have_four_bases() {
        let number = |text| match kinds(text)[..] {
            [Kind::Number(n), Kind::End] => n,
            ref other => panic!("{text}: {other:?}"),
        };
        assert_eq!(number("0x1F"), 31);
        assert_eq!(number("0b101"), 5);
        assert_eq!(number("017"), 15);
        assert_eq!(number("0"), 0);
        assert_eq!(number("18446744073709551615"), i128::from(u64::MAX));
        assert_eq!(number("'a'"), 97);
        assert_eq!(number(r"'\n'"), 10);
        for bad in [
            "0x",
            "12ab",
            "0b2",
            "08",
            "0xg",
            "18446744073709551616",
            "''",
            "'ab'",
            "'a",
        ] {
            fault(bad);
        }
    }

    #[test]
    fn numeric_labels_are_not_numbers() {
        let backward = |number| Kind::Local { number, backward: true };
        assert_eq!(kinds("1b 0b 10f")[..2], [backward(1), backward(0)]);
        assert_eq!(
            kinds("10f")[0],
            Kind::Local {
                number: 10,
                backward: false
            }
        );
    }

    #[test]
    fn comments_and_separators() {
        assert_eq!(kinds("a#b;c\n").len(), 3);
        assert_eq!(kinds("a//b\n").len(), 3);
        assert_eq!(
            kinds("a/*b\n;*/c;d"),
            [Kind::Word("a"), Kind::Word("c"), Kind::End, Kind::Word("d"), Kind::End]
        );
        assert_eq!(fault("a /* b").span, 2..4);
    }

    #[test]
    fn strings_have_escapes() {
        let bytes = |text| match &kinds(text)[0] {
            Kind::String(bytes) => bytes.clone(),
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(bytes(r#""a\n\t\"\\\101\x41é""#), "a\n\t\"\\AAé".as_bytes());
        assert_eq!(fault(r#""a\q""#).span, 2..4);
        assert_eq!(fault("\"a\\\n").span, 0..3, "a line's end cannot be escaped");
    }

    #[test]
    fn a_strange_character_is_told_and_skipped() {
        let fault = fault("nop é nop");
        assert_eq!(fault.span, 4..6);
    }
}
