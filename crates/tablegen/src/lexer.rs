//! The lexer: text to tokens, on demand. A file and all its includes become one flat sequence of
//! tokens.
//!
//! The lexer handles `include` and the preprocessor, because the language allows them at any
//! position, even in a body.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::diagnostic::{Diagnostic, closest};
use crate::options::Options;
use crate::source::{FileId, SourceMap, Span};
use crate::strings::Strings;
use crate::token::{Bang, Kw, Tok, Token};

/// The maximum nesting depth of includes. Deeper nesting is considered a cycle.
const MAX_INCLUDE_DEPTH: usize = 100;
/// The maximum number of files opened in one run, counted each time. It bounds files that include
/// themselves twice.
const MAX_INCLUDES: usize = 20_000;
/// The maximum number of tokens in one run, with includes counted each time. It bounds files that
/// include each other twice.
const MAX_TOKENS: usize = 30_000_000;
/// The maximum number of errors that the lexer reports: a binary file would cause millions.
const MAX_ERRORS: usize = 100;

/// The number of tokens read at a time.
const BATCH: usize = 64;

/// An open `#ifdef`.
struct Condition {
    span: Span,
    taken: bool,
    in_else: bool,
    /// Whether the text around the condition is active.
    outer: bool,
}

/// An open file.
struct Frame {
    file: FileId,
    text: Arc<String>,
    at: usize,
    /// Whether no token precedes on this line, so that `#` may start a directive.
    line_start: bool,
    conditions: Vec<Condition>,
}

pub(crate) struct Lexer<'a> {
    options: &'a Options,
    pub(crate) sources: &'a mut SourceMap,
    /// The strings, which the evaluator borrows between statements.
    pub(crate) strings: Strings,
    macros: FxHashSet<String>,
    /// The current file, and the files that include it.
    top: Frame,
    outer: Vec<Frame>,
    /// The number of open files; 0 at the end.
    depth: usize,
    opened: usize,
    root: FileId,
    /// The tokens that were read and not dropped yet.
    pub(crate) tokens: Vec<Token>,
    /// The number of dropped tokens.
    dropped: usize,
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// The number of diagnostics of the lexer itself, including those already taken by the caller.
    errors: usize,
}

fn is_ident_start(byte: u8) -> bool {
    is_ident(byte) && !byte.is_ascii_digit()
}
fn is_ident(byte: u8) -> bool {
    IDENT[byte as usize]
}

/// The bytes of identifiers.
static IDENT: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < table.len() {
        table[byte] = (byte as u8).is_ascii_alphanumeric() || byte as u8 == b'_';
        byte += 1;
    }
    table
};

impl<'a> Lexer<'a> {
    /// Creates a lexer of `file` and all its includes.
    pub(crate) fn new(file: FileId, options: &'a Options, sources: &'a mut SourceMap) -> Lexer<'a> {
        let mut lexer = Lexer {
            options,
            sources,
            strings: Strings::default(),
            macros: options.defines.iter().cloned().collect(),
            top: Frame {
                file,
                text: Arc::default(),
                at: 0,
                line_start: true,
                conditions: Vec::new(),
            },
            outer: Vec::new(),
            depth: 0,
            opened: 0,
            root: file,
            tokens: Vec::new(),
            dropped: 0,
            diagnostics: Vec::new(),
            errors: 0,
        };
        lexer.open(file);
        lexer
    }

    /// Reads at least one more token. At the end of the program, every call adds [`Tok::Eof`].
    pub(crate) fn more(&mut self) {
        let count = self.tokens.len();
        while self.tokens.len() == count {
            if self.depth == 0 {
                let end = self.sources.file(self.root).map_or(0, |file| file.text().len() as u32);
                self.tokens.push(Token {
                    tok: Tok::Eof,
                    span: Span::new(self.root, end, end),
                });
                return;
            }
            // The text is shared, so that it can be read while the lexer is modified.
            let text = Arc::clone(&self.top.text);
            let (depth, opened) = (self.depth, self.opened);
            while self.depth == depth && self.opened == opened && self.tokens.len() < count + BATCH {
                self.step(&text);
            }
        }
    }

    /// Drops the first tokens.
    pub(crate) fn drop_tokens(&mut self, count: usize) {
        self.tokens.drain(..count);
        self.dropped += count;
    }

    fn open(&mut self, file: FileId) {
        if let Some(source) = self.sources.file(file) {
            let text = source.shared_text();
            let frame = Frame {
                file,
                text,
                at: 0,
                line_start: true,
                conditions: Vec::new(),
            };
            let outer = std::mem::replace(&mut self.top, frame);
            if self.depth > 0 {
                self.outer.push(outer);
            }
            self.depth += 1;
        }
    }

    fn error(&mut self, message: impl Into<String>, span: Span, label: impl Into<String>) {
        self.report(Diagnostic::error(message, span, label));
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.errors += 1;
        if self.errors <= MAX_ERRORS {
            self.diagnostics.push(diagnostic);
        }
    }

    fn span(&mut self, start: usize) -> Span {
        Span::new(self.top.file, start as u32, self.top.at as u32)
    }

    fn push(&mut self, tok: Tok, start: usize) {
        let span = self.span(start);
        self.top.line_start = false;
        self.tokens.push(Token { tok, span });
    }

    /// Ends the input.
    fn stop(&mut self) {
        self.outer.clear();
        self.depth = 0;
    }

    /// Skips blanks and comments. An unclosed comment is reported and extends to the end of the
    /// file.
    fn skip_blanks(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let mut unclosed = None;
        let frame = &mut self.top;
        let mut at = frame.at;
        loop {
            match bytes.get(at) {
                Some(b'\n') => {
                    frame.line_start = true;
                    at += 1;
                }
                Some(b' ' | b'\t' | b'\r' | 0) => at += 1,
                Some(b'/') if bytes.get(at + 1) == Some(&b'/') => at += line_length(&bytes[at..]),
                Some(b'/') if bytes.get(at + 1) == Some(&b'*') => match comment_length(&bytes[at..]) {
                    Some(length) => at += length,
                    None => {
                        unclosed = Some(Span::new(frame.file, at as u32, at as u32 + 2));
                        at = bytes.len();
                    }
                },
                _ => break,
            }
        }
        frame.at = at;
        if let Some(span) = unclosed {
            self.error("comment is not closed", span, "opened here");
        }
    }

    /// Reads one token, directive or include, or closes the file at its end.
    fn step(&mut self, text: &str) {
        self.skip_blanks(text);
        let bytes = text.as_bytes();
        let start = self.top.at;
        let Some(&first) = bytes.get(start) else {
            return self.close();
        };
        if self.dropped + self.tokens.len() >= MAX_TOKENS {
            let span = self.span(start);
            self.error("the input is too large", span, "more than 30 million tokens up to here");
            self.stop();
            return;
        }
        let next = bytes.get(start + 1).copied().unwrap_or(0);
        let mut advance = 1;
        let tok = match first {
            b'#' => {
                if self.top.line_start && self.directive(text, start) {
                    return;
                }
                Tok::Hash
            }
            b'{' => Tok::LBrace,
            b'}' => Tok::RBrace,
            b'[' if next == b'{' => return self.code(text, start),
            b'[' => Tok::LSquare,
            b']' => Tok::RSquare,
            b'(' => Tok::LParen,
            b')' => Tok::RParen,
            b'<' => Tok::Less,
            b'>' => Tok::Greater,
            b',' => Tok::Comma,
            b';' => Tok::Semi,
            b':' => Tok::Colon,
            b'=' => Tok::Equal,
            b'?' => Tok::Question,
            b'.' if bytes[start..].starts_with(b"...") => {
                advance = 3;
                Tok::Ellipsis
            }
            b'.' => Tok::Dot,
            b'"' => return self.string(text, start),
            b'$' if is_ident(next) => {
                let end = ident_end(bytes, start + 1);
                advance = end - start;
                Tok::DagVar(self.strings.intern(&text[start + 1..end]))
            }
            b'!' if is_ident_start(next) => {
                let end = ident_end(bytes, start + 1);
                advance = end - start;
                self.bang(&text[start + 1..end], start, end)
            }
            b'+' | b'-' if next.is_ascii_digit() => return self.number(text, start),
            b'-' => Tok::Minus,
            b'0'..=b'9' => return self.number(text, start),
            _ if is_ident_start(first) => return self.word(text, start),
            _ => {
                let width = text[start..].chars().next().map_or(1, char::len_utf8);
                self.top.at += width;
                let span = self.span(start);
                self.error("unexpected character", span, "not part of any TableGen construct");
                return;
            }
        };
        self.top.at += advance;
        self.push(tok, start);
    }

    fn close(&mut self) {
        for condition in std::mem::take(&mut self.top.conditions) {
            self.error(
                "`#ifdef` without `#endif`",
                condition.span,
                "still open at the end of the file",
            );
        }
        self.depth = self.depth.saturating_sub(1);
        if let Some(outer) = self.outer.pop() {
            self.top = outer;
        }
    }

    fn bang(&mut self, name: &str, start: usize, end: usize) -> Tok {
        if let Some(op) = Bang::from_text(name) {
            return Tok::Bang(op);
        }
        let span = Span::new(self.top.file, start as u32, end as u32);
        let mut message = Diagnostic::error(format!("unknown operator `!{name}`"), span, "no such operator");
        if let Some(near) = closest(name, Bang::NAMES.iter().copied()) {
            message = message.note(format!("did you mean `!{near}`?"));
        }
        self.report(message);
        Tok::UnknownBang
    }

    fn word(&mut self, text: &str, start: usize) {
        let end = ident_end(text.as_bytes(), start);
        self.top.at = end;
        let word = &text[start..end];
        match Kw::from_text(word) {
            Some(Kw::Include) => self.include(text, start),
            Some(word) => self.push(Tok::Kw(word), start),
            None => {
                let symbol = self.strings.intern(word);
                self.push(Tok::Ident(symbol), start);
            }
        }
    }

    /// Reads a number, or an identifier that starts with digits.
    fn number(&mut self, text: &str, start: usize) {
        let bytes = text.as_bytes();
        let signed = !bytes[start].is_ascii_digit();
        let digits = start + usize::from(signed);
        let mut end = digits;
        while bytes.get(end).is_some_and(u8::is_ascii_digit) {
            end += 1;
        }
        let after = bytes.get(end).copied().unwrap_or(0);
        let then = bytes.get(end + 1).copied().unwrap_or(0);
        let zero = &text[digits..end] == "0";
        // A number with a sign is decimal.
        if zero && !signed && after == b'x' && then.is_ascii_hexdigit() {
            return self.radix(text, start, 16);
        }
        if zero && !signed && after == b'b' && matches!(then, b'0' | b'1') {
            return self.radix(text, start, 2);
        }
        if !signed && is_ident_start(after) {
            let end = ident_end(bytes, start);
            self.top.at = end;
            let symbol = self.strings.intern(&text[start..end]);
            return self.push(Tok::Ident(symbol), start);
        }
        self.top.at = end;
        let number = &text[start..end];
        // A number that needs all 64 bits is the signed number with the same bits.
        let value = match number.parse::<i64>() {
            Err(_) if bytes[start] != b'-' => number.parse::<u64>().map(u64::cast_signed),
            value => value,
        };
        if value.is_err() {
            let span = self.span(start);
            self.error("number out of range", span, "does not fit into 64 bits");
        }
        self.push(Tok::Int(value.unwrap_or(0)), start);
    }

    fn radix(&mut self, text: &str, start: usize, radix: u32) {
        let bytes = text.as_bytes();
        let body = start + 2;
        let mut end = body;
        while bytes.get(end).is_some_and(|byte| char::from(*byte).is_digit(radix)) {
            end += 1;
        }
        self.top.at = end;
        let value = u64::from_str_radix(&text[body..end], radix);
        let width = u16::try_from(end - body);
        if value.is_err() || width.is_err() {
            let span = self.span(start);
            self.error("number out of range", span, "does not fit into 64 bits");
        }
        let value = value.unwrap_or(0);
        let tok = if radix == 2 {
            Tok::Binary {
                value,
                width: width.unwrap_or(1),
            }
        } else {
            Tok::Int(value.cast_signed())
        };
        self.push(tok, start);
    }

    fn string(&mut self, text: &str, start: usize) {
        match self.string_value(text, start) {
            Some(value) => {
                let symbol = self.strings.intern(&value);
                self.push(Tok::Str(symbol), start);
            }
            None => self.push(Tok::Str(crate::strings::Symbol::EMPTY), start),
        }
    }

    /// Returns the value of the string that opens at `start`, with its escapes replaced; `None` if
    /// the string is not closed on its line.
    fn string_value<'t>(&mut self, text: &'t str, start: usize) -> Option<Cow<'t, str>> {
        let bytes = text.as_bytes();
        // The text up to the last escape.
        let mut value = String::new();
        let mut at = start + 1;
        let mut copied = at;
        loop {
            match bytes.get(at) {
                Some(b'"') => break,
                None | Some(b'\n' | b'\r') => {
                    self.top.at = at;
                    let span = self.span(start);
                    self.error("string is not closed", span, "a string ends on the line it starts on");
                    return None;
                }
                Some(b'\\') => {
                    value.push_str(&text[copied..at]);
                    let escape = bytes.get(at + 1).copied().unwrap_or(0);
                    let plain = match escape {
                        b'\\' | b'\'' | b'"' => Some(char::from(escape)),
                        b't' => Some('\t'),
                        b'n' => Some('\n'),
                        _ => None,
                    };
                    if let Some(plain) = plain {
                        value.push(plain);
                        at += 2;
                    } else {
                        let span = Span::new(self.top.file, at as u32, at as u32 + 1);
                        self.error(
                            "unknown escape in a string",
                            span,
                            "only \\\\ \\' \\\" \\t and \\n exist",
                        );
                        at += 1;
                    }
                    copied = at;
                }
                Some(_) => at += 1,
            }
        }
        self.top.at = at + 1;
        if copied == start + 1 {
            return Some(Cow::Borrowed(&text[copied..at]));
        }
        value.push_str(&text[copied..at]);
        Some(Cow::Owned(value))
    }

    fn code(&mut self, text: &str, start: usize) {
        let Some(length) = text[start + 2..].find("}]") else {
            self.top.at = text.len();
            let span = Span::new(self.top.file, start as u32, start as u32 + 2);
            self.error("code fragment is not closed", span, "opened here");
            return;
        };
        let end = start + 2 + length;
        self.top.at = end + 2;
        let symbol = self.strings.intern(&text[start + 2..end]);
        self.push(Tok::Code(symbol), start);
    }

    /// Reads `include "name"` after the keyword.
    fn include(&mut self, text: &str, start: usize) {
        let keyword = self.span(start);
        self.skip_blanks(text);
        let at = self.top.at;
        if text.as_bytes().get(at) != Some(&b'"') {
            return self.error(
                "expected a file name after `include`",
                keyword.after(),
                "expected a string",
            );
        }
        let Some(name) = self.string_value(text, at) else {
            return;
        };
        self.top.line_start = false;
        let span = self.span(at);
        if self.depth >= MAX_INCLUDE_DEPTH {
            return self.error(
                format!("`{name}` has too many nested includes"),
                span,
                "100 files are open; does a file include itself?",
            );
        }
        self.opened += 1;
        if self.opened > MAX_INCLUDES {
            self.error(
                "too many files are included",
                span,
                format!("more than {MAX_INCLUDES} up to here"),
            );
            return self.stop();
        }
        match find_file(&name, self.options, self.sources) {
            Ok(file) => self.open(file),
            Err(tried) => {
                let mut message = Diagnostic::error(format!("cannot open include file `{name}`"), span, "not found");
                message.notes.push(format!("looked for {}", tried.join(", ")));
                self.report(message);
            }
        }
    }

    /// Runs the preprocessor directive at `start`; returns whether the line is one.
    fn directive(&mut self, text: &str, start: usize) -> bool {
        let bytes = text.as_bytes();
        let end = ident_end(bytes, start + 1);
        let name = &text[start + 1..end];
        if !matches!(name, "define" | "ifdef" | "ifndef" | "else" | "endif") {
            return false;
        }
        self.top.at = end;
        self.run_directive(name, text, start);
        // Skip inactive text up to the directive that ends it.
        while self
            .top
            .conditions
            .last()
            .is_some_and(|condition| !(condition.taken && condition.outer))
        {
            if !self.skip_to_directive(text) {
                break;
            }
        }
        true
    }

    /// Runs the next directive in inactive text; returns `false` at the end of the file.
    fn skip_to_directive(&mut self, text: &str) -> bool {
        let bytes = text.as_bytes();
        loop {
            self.skip_blanks(text);
            let at = self.top.at;
            let Some(&byte) = bytes.get(at) else {
                return false;
            };
            if byte == b'#' && self.top.line_start {
                let end = ident_end(bytes, at + 1);
                let name = &text[at + 1..end];
                if matches!(name, "define" | "ifdef" | "ifndef" | "else" | "endif") {
                    self.top.at = end;
                    self.run_directive(name, text, at);
                    return true;
                }
            }
            self.top.at = at + line_length(&bytes[at..]);
        }
    }

    /// Runs the directive `name` at `start`. The position is after the name.
    fn run_directive(&mut self, name: &str, text: &str, start: usize) {
        let span = self.span(start);
        let live = self
            .top
            .conditions
            .last()
            .is_none_or(|condition| condition.taken && condition.outer);
        match name {
            "define" | "ifdef" | "ifndef" => {
                let bytes = text.as_bytes();
                let mut at = self.top.at;
                while matches!(bytes.get(at), Some(b' ' | b'\t')) {
                    at += 1;
                }
                let end = ident_end(bytes, at);
                self.top.at = end;
                let macro_name = text[at..end].to_owned();
                if macro_name.is_empty() || bytes[at].is_ascii_digit() {
                    self.error(
                        format!("expected a macro name after `#{name}`"),
                        span.after(),
                        "expected a name",
                    );
                }
                if name == "define" {
                    if live && !self.macros.insert(macro_name.clone()) {
                        self.report(Diagnostic::warning(
                            format!("macro `{macro_name}` is already defined"),
                            span,
                            "defined again",
                        ));
                    }
                } else {
                    let taken = self.macros.contains(&macro_name) == (name == "ifdef");
                    self.top.conditions.push(Condition {
                        span,
                        taken,
                        in_else: false,
                        outer: live,
                    });
                }
            }
            "else" => match self.top.conditions.last_mut() {
                Some(condition) if !condition.in_else => {
                    condition.in_else = true;
                    condition.taken = !condition.taken;
                }
                Some(_) => self.error("second `#else`", span, "the condition has one already"),
                None => self.error("`#else` without `#ifdef`", span, "no condition is open"),
            },
            _ => {
                if self.top.conditions.pop().is_none() {
                    self.error("`#endif` without `#ifdef`", span, "no condition is open");
                }
            }
        }
        self.expect_line_end(text, name);
    }

    fn expect_line_end(&mut self, text: &str, name: &str) {
        self.top.line_start = false;
        self.skip_blanks(text);
        let at = self.top.at;
        if !self.top.line_start && at < text.len() {
            self.top.at = at + line_length(&text.as_bytes()[at..]);
            let span = self.span(at);
            self.error(format!("text after `#{name}`"), span, "only a comment may follow");
        }
    }
}

/// Returns the length of the rest of the line.
fn line_length(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len())
}

/// Returns the length of the comment at the start of `bytes`, which may contain nested comments;
/// `None` if it is not closed.
fn comment_length(bytes: &[u8]) -> Option<usize> {
    let mut depth = 0;
    let mut at = 0;
    while at < bytes.len() {
        match (bytes[at], bytes.get(at + 1)) {
            (b'/', Some(b'*')) => {
                depth += 1;
                at += 2;
            }
            (b'*', Some(b'/')) => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => at += 1,
        }
    }
    None
}

fn ident_end(bytes: &[u8], start: usize) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    start + rest.iter().position(|byte| !is_ident(*byte)).unwrap_or(rest.len())
}

/// Opens a file for an `include`: the name as given, then in each include folder. The error lists
/// the paths that were tried.
pub(crate) fn find_file(name: &str, options: &Options, sources: &mut SourceMap) -> Result<FileId, Vec<String>> {
    let mut tried = Vec::new();
    let candidates = std::iter::once(PathBuf::from(name)).chain(options.include_dirs.iter().map(|dir| dir.join(name)));
    for path in candidates {
        match load(&path, options, sources) {
            Ok(file) => return Ok(file),
            Err(_) => tried.push(format!("`{}`", path.display())),
        }
    }
    Err(tried)
}

/// Reads a file. Virtual files take precedence.
pub(crate) fn load(path: &Path, options: &Options, sources: &mut SourceMap) -> Result<FileId, std::io::Error> {
    let name = path.to_string_lossy();
    if let Some(file) = sources.find(&name) {
        return Ok(file);
    }
    if let Some(text) = options.files.get(path) {
        return Ok(sources.add(&name, None, text.clone()));
    }
    let bytes = std::fs::read(path)?;
    // Spans have 32 bits.
    if bytes.len() >= u32::MAX as usize {
        return Err(std::io::Error::other("the file is larger than 4 GiB"));
    }
    let text = String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    Ok(sources.add(&name, Some(path), text))
}
