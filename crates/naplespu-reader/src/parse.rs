//! Parses `.clif` files with recovery from errors.
//!
//! `cranelift-reader` stops at its first error and reports only the line. This module splits a file
//! with an error at its `function` lines and parses the pieces separately. A single run thus
//! reports the first error of every function. The column is determined by a search in the line.

use super::diagnostic::{Diagnostic, Source};
use super::header::Header;
use super::panics::{Panic, PanicIn, caught};
use cranelift_codegen::ir::entities::AnyEntity;
use cranelift_codegen::ir::{
    Function, Opcode, RelSourceLoc, SourceLoc, ValueLabel, ValueLabelAssignments, ValueLabelStart,
};
use cranelift_codegen::isa::CallConv;
use cranelift_codegen::verifier::VerifierErrors;
use cranelift_reader::{ParseError, ParseOptions, SourceMap, TestFile, parse_test};
use std::collections::HashMap;
use std::ops::Range;

/// The largest entity number (`v123`, `block7`). The reader creates all entities up to the largest
/// one.
const MAX_ENTITY: u64 = 1_000_000;

/// A comment of the file.
#[derive(Clone, Debug)]
pub struct Comment {
    /// The entity before it; the function itself for comments before its preamble and after its
    /// end.
    pub entity: AnyEntity,
    /// The text with its `;`.
    pub text: String,
    /// The byte offset of the `;`.
    pub offset: usize,
}

/// A function of the file.
#[derive(Debug)]
pub struct FunctionCase {
    /// The function.
    pub func: Function,
    /// Its name as CLIF prints it, `%name` or `u0:0`.
    pub name: String,
    /// Its comments, in order.
    pub comments: Vec<Comment>,
    /// The locations of entity definitions; lines are relative to [`FunctionCase::line_offset`].
    map: SourceMap,
    /// The line of the `function` keyword.
    pub line: usize,
    /// The difference between lines of the file and lines of the reader.
    line_offset: usize,
}

impl FunctionCase {
    /// Returns the line that defines an entity of the function, or that of the function if it is
    /// unknown.
    pub fn line_of(&self, entity: AnyEntity) -> usize {
        self.map
            .location(entity)
            .map_or(self.line, |at| at.line_number + self.line_offset)
    }

    /// Returns the function with lines of its file as source locations. Its compiled code is the
    /// same.
    pub fn with_lines(&self) -> Function {
        let mut func = self.func.clone();
        let blocks: Vec<_> = func.layout.blocks().collect();
        for block in blocks {
            let insts: Vec<_> = func.layout.block_insts(block).collect();
            for inst in insts {
                func.set_srcloc(inst, SourceLoc::new(self.line_of(inst.into()) as u32));
            }
        }
        func
    }

    /// Returns the function with lines of its file as source locations and each value labelled by
    /// its number, for debuggers. Its compiled code is the same.
    pub fn with_debug_info(&self) -> Function {
        let mut func = self.with_lines();
        let blocks: Vec<_> = func.layout.blocks().collect();
        let insts: Vec<_> = blocks
            .iter()
            .flat_map(|&block| func.layout.block_insts(block))
            .collect();
        func.dfg.collect_debug_info();
        let parameters = blocks.iter().flat_map(|&block| func.dfg.block_params(block).to_vec());
        let results = insts.iter().flat_map(|&inst| func.dfg.inst_results(inst).to_vec());
        let values: Vec<_> = parameters.chain(results).collect();
        if let Some(labels) = &mut func.dfg.values_labels {
            for value in values {
                let start = ValueLabelStart {
                    from: RelSourceLoc::default(),
                    label: ValueLabel::from_u32(value.as_u32()),
                };
                labels.insert(value, ValueLabelAssignments::Starts(vec![start]));
            }
        }
        func
    }

    /// Returns one diagnostic for each verifier error, at the line of the entity in question.
    pub fn verifier_diagnostics(&self, source: &Source, errors: &VerifierErrors) -> Vec<Diagnostic> {
        let mut list = Vec::new();
        for error in &errors.0 {
            let span = source.code_span(self.line_of(error.location));
            let mut diagnostic = Diagnostic::new(
                error.message.clone(),
                span,
                format!("in {} of {}", error.location, self.name),
            );
            if let Some(context) = &error.context {
                diagnostic = diagnostic.note(context.clone());
            }
            list.push(diagnostic);
        }
        list
    }
}

/// A parsed file.
#[derive(Debug)]
pub struct ClifFile {
    /// The name and text.
    pub source: Source,
    /// The header lines.
    pub header: Header,
    /// The comments before the first function.
    pub preamble: Vec<Comment>,
    /// The functions without syntax errors.
    pub functions: Vec<FunctionCase>,
    /// The errors of header and functions, in file order.
    pub faults: Vec<Diagnostic>,
}

impl ClifFile {
    /// Parses a file.
    pub fn parse(name: &str, bytes: &[u8]) -> ClifFile {
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let text = String::from_utf8_lossy(bytes);
                let at = error.valid_up_to();
                return ClifFile {
                    source: Source::new(name, text),
                    header: Header::default(),
                    preamble: Vec::new(),
                    functions: Vec::new(),
                    faults: vec![
                        Diagnostic::new("not UTF-8 text", at..at + 1, "this byte")
                            .note("CLIF is text; `disasm` reads binaries"),
                    ],
                };
            }
        };
        let source = Source::new(name, text);
        let mut faults = Vec::new();
        let header = Header::read(text, &mut faults);
        let mut file = ClifFile {
            source,
            header,
            preamble: Vec::new(),
            functions: Vec::new(),
            faults,
        };
        let blanked = file.header.blanked(text);
        let large = large_entities(&blanked);
        if large.is_empty() {
            file.parse_functions(&blanked);
        }
        file.faults.extend(large);
        file.check_names();
        let key = |d: &Diagnostic| d.span.as_ref().map_or(0, |s| s.start);
        file.faults.sort_by_key(key);
        file
    }

    /// Returns the function with this name (`%name`).
    pub fn function(&self, name: &str) -> Option<&FunctionCase> {
        self.functions.iter().find(|f| f.name == name)
    }

    fn parse_functions(&mut self, text: &str) {
        let conv = if self.header.has_test("run") {
            // The reader's default on hosts with the System V convention.
            CallConv::SystemV
        } else {
            CallConv::Fast
        };
        match read(text, conv) {
            Ok(parsed) => self.take(parsed, text, 0),
            Err(whole) => {
                let before = self.faults.len();
                for piece in pieces(text) {
                    let line_offset = text[..piece.start].bytes().filter(|&b| b == b'\n').count();
                    match read(&text[piece.clone()], conv) {
                        Ok(parsed) => self.take(parsed, text, line_offset),
                        Err(error) => {
                            let fault = self.reader_fault(error, line_offset, piece);
                            self.faults.push(fault);
                        }
                    }
                }
                if self.faults.len() == before {
                    // The pieces parse separately, so the error concerns the whole file.
                    let fault = self.reader_fault(whole, 0, 0..text.len());
                    self.faults.push(fault);
                }
            }
        }
    }

    fn take(&mut self, parsed: TestFile<'_>, text: &str, line_offset: usize) {
        let base = text.as_ptr() as usize;
        let comments = |list: Vec<cranelift_reader::Comment<'_>>| -> Vec<Comment> {
            list.into_iter()
                .map(|c| Comment {
                    entity: c.entity,
                    text: c.text.trim_end().to_owned(),
                    // Comments are slices of the text.
                    offset: (c.text.as_ptr() as usize).saturating_sub(base),
                })
                .collect()
        };
        self.preamble.extend(comments(parsed.preamble_comments));
        for (func, details) in parsed.functions {
            self.functions.push(FunctionCase {
                name: func.name.to_string(),
                func,
                line: details.location.line_number + line_offset,
                line_offset,
                map: details.map,
                comments: comments(details.comments),
            });
        }
    }

    fn reader_fault(&self, error: Result<ParseError, Panic>, line_offset: usize, piece: Range<usize>) -> Diagnostic {
        match error {
            Ok(error) => {
                let line = error.location.line_number.max(1) + line_offset;
                let code = self.source.code_span(line);
                let span = blamed(&error.message, &self.source.text[code.clone()])
                    .map_or(code.clone(), |r| code.start + r.start..code.start + r.end);
                let hint = opcode_hint(&error.message);
                let fault = Diagnostic::new(error.message, span, "here");
                match hint {
                    Some(hint) => fault.note(hint),
                    None => fault,
                }
            }
            Err(panic) => {
                let line = self.source.position(piece.start).0;
                Diagnostic::new(
                    "the CLIF reader gave up",
                    self.source.code_span(line),
                    "in this function",
                )
                .panicked(PanicIn::Reader, &panic)
            }
        }
    }

    /// Reports duplicate function names, because run lines call functions by name.
    fn check_names(&mut self) {
        let mut lines = HashMap::new();
        for case in &self.functions {
            if let Some(first) = lines.insert(case.name.clone(), case.line) {
                self.faults.push(
                    Diagnostic::new(
                        format!("function {} is defined twice", case.name),
                        self.source.code_span(case.line),
                        "second definition",
                    )
                    .note(format!("the first one is at line {first}")),
                );
            }
        }
    }
}

/// Returns a hint for the reader's message on an unknown opcode.
fn opcode_hint(message: &str) -> Option<String> {
    let name = message.strip_prefix("Unknown opcode: '")?.strip_suffix('\'')?;
    let opcodes = || Opcode::all().iter().map(ToString::to_string);
    if let Some(base) = name.strip_suffix("_imm") {
        // These opcodes of older versions had an immediate as the last operand; that of `irsub_imm`
        // was the minuend.
        let used = match base {
            "irsub" => Some("isub v9, v0".to_owned()),
            "icmp" => Some("icmp eq v0, v9".to_owned()),
            base => opcodes()
                .find(|opcode| opcode == base)
                .map(|opcode| format!("{opcode} v0, v9")),
        };
        if let Some(used) = used {
            let condition = if base == "icmp" { "eq " } else { "" };
            return Some(format!(
                "CLIF no longer has this opcode: in place of `{name} {condition}v0, 5`, write `v9 = iconst.i32 5` \
                 and `{used}`"
            ));
        }
    }
    let known: Vec<String> = opcodes().collect();
    let near = nearest(name, known.iter().map(String::as_str))?;
    Some(format!("did you mean `{near}`?"))
}

/// Returns the candidate that is most similar to `name`, if it is similar enough for a hint.
pub(crate) fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.len() / 3).clamp(1, 3);
    let near = candidates.map(|candidate| (strsim::osa_distance(name, candidate), candidate));
    near.filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Parses a text. A panic of the reader is the inner error.
fn read(text: &str, conv: CallConv) -> Result<TestFile<'_>, Result<ParseError, Panic>> {
    let options = ParseOptions {
        default_calling_convention: conv,
        ..ParseOptions::default()
    };
    match caught(|| parse_test(text, options)) {
        Ok(Ok(file)) => Ok(file),
        Ok(Err(error)) => Err(Ok(error)),
        Err(panic) => Err(Err(panic)),
    }
}

/// Splits a text before each line that starts with `function`. Text before the first such line is a
/// piece only if it contains more than comments.
fn pieces(text: &str) -> Vec<Range<usize>> {
    let mut starts = Vec::new();
    let mut at = 0;
    let mut first_code = None;
    for line in text.split_inclusive('\n') {
        let code = line.split(';').next().unwrap_or("").trim();
        if code.split_whitespace().next() == Some("function") {
            starts.push(at);
        } else if starts.is_empty() && !code.is_empty() && first_code.is_none() {
            first_code = Some(at);
        }
        at += line.len();
    }
    if let Some(code) = first_code {
        starts.insert(0, code);
    } else if let Some(first) = starts.first_mut() {
        // Preamble comments belong to the first function.
        *first = 0;
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts.iter().copied().zip(ends).map(|(a, b)| a..b).collect()
}

/// Returns the word of `line` that `message` is about: a quoted word, or a name in both.
fn blamed(message: &str, line: &str) -> Option<Range<usize>> {
    let mut candidates: Vec<&str> = Vec::new();
    for quote in ['\'', '`', '"'] {
        candidates.extend(message.split(quote).skip(1).step_by(2));
    }
    let is_name = |w: &&str| w.contains(|c: char| c.is_ascii_digit()) || w.starts_with('%') || w.contains('.');
    candidates.extend(
        message
            .split(|c: char| c.is_whitespace() || matches!(c, ',' | ':' | '(' | ')'))
            .filter(is_name),
    );
    candidates.into_iter().find_map(|word| {
        let word_char = |c: char| c.is_alphanumeric() || matches!(c, '_' | '%');
        line.match_indices(word).find_map(|(at, found)| {
            let open = line[..at].chars().next_back().is_none_or(|c| !word_char(c));
            let close = line[at + found.len()..].chars().next().is_none_or(|c| !word_char(c));
            (!found.is_empty() && open && close).then(|| at..at + found.len())
        })
    })
}

/// Reports entity numbers that would make the reader create millions of entities.
fn large_entities(text: &str) -> Vec<Diagnostic> {
    const KINDS: [&str; 11] = [
        "v", "block", "ss", "dss", "dt", "gv", "sig", "fn", "jt", "const", "region",
    ];
    let mut faults = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        if byte == b';' {
            at += text[at..].find('\n').unwrap_or(text.len() - at);
            continue;
        }
        if !(byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'%') {
            at += 1;
            continue;
        }
        let length = bytes[at..]
            .iter()
            .skip(1)
            .take_while(|b| b.is_ascii_alphanumeric() || **b == b'_')
            .count()
            + 1;
        let word = &text[at..at + length];
        let digits = word.trim_start_matches(|c: char| c.is_ascii_lowercase());
        let kind = &word[..word.len() - digits.len()];
        if digits.len() >= 7
            && digits.bytes().all(|b| b.is_ascii_digit())
            && KINDS.contains(&kind)
            && digits.parse().map_or(true, |n: u64| n > MAX_ENTITY)
        {
            faults.push(
                Diagnostic::new(
                    format!("`{word}` has too large a number"),
                    at..at + length,
                    format!("at most {kind}{MAX_ENTITY}"),
                )
                .note("all entities up to the largest number are made; number them from 0"),
            );
        }
        at += length;
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> ClifFile {
        ClifFile::parse("t.clif", text.as_bytes())
    }

    #[test]
    fn run_lines_keep_their_place() {
        let text = "test run\ntarget naplespu\n\n; pre\nfunction %f() -> i32 {\nblock0: ; b\n  v0 = iconst.i32 1\n  return v0\n}\n; run: %f() == 1\n";
        let file = parse(text);
        assert!(file.faults.is_empty(), "{:?}", file.faults);
        assert_eq!(file.preamble[0].text, "; pre");
        let case = file.function("%f").unwrap();
        assert_eq!((case.line, case.func.signature.call_conv), (5, CallConv::SystemV));
        let last = case.comments.last().unwrap();
        assert_eq!(&text[last.offset..], "; run: %f() == 1\n");
    }

    #[test]
    fn every_function_shows_its_first_error() {
        let text = "function %a() {\nblock0:\n  v1 = foo v0\n  return\n}\n\nfunction %b() {\nblock0:\n  return\n}\nfunction %c() {\nblock0:\n  jump block7(v9)\n  return v1,\n}\n";
        let file = parse(text);
        let places: Vec<_> = file
            .faults
            .iter()
            .map(|d| file.source.position(d.span.clone().unwrap().start))
            .collect();
        assert_eq!(places.len(), 2, "{:?}", file.faults);
        assert_eq!(places[0], (3, 8));
        assert!(places[1].0 > 11);
        assert_eq!(file.functions.len(), 1);
        assert_eq!(file.functions[0].line, 7);
    }

    #[test]
    fn huge_numbers_are_refused_before_they_cost_memory() {
        let file = parse("function %f() {\nblock0:\n  v4294967294 = iconst.i32 1\n  return\n}\n");
        assert_eq!(file.faults.len(), 1);
        assert!(
            parse("function %v99999999() {\nblock0:\n  return ; v99999999\n}\n")
                .faults
                .is_empty()
        );
    }

    #[test]
    fn double_definitions_and_binaries_are_faults() {
        let one = "function %f() {\nblock0:\n  return\n}\n";
        assert_eq!(parse(&one.repeat(2)).faults.len(), 1);
        assert_eq!(ClifFile::parse("b", b"ok\n\xff\xfe").faults.len(), 1);
        assert!(parse("").faults.is_empty());
        assert_eq!(
            parse("garbage\nfunction %f() {\nblock0:\n  return\n}\n").faults.len(),
            1
        );
    }

    #[test]
    fn no_cut_of_a_file_panics() {
        let text = "test run\nset opt_level=speed\ntarget naplespu\nfunction %f(i32, i64) -> i32 fast {\n    ss0 = explicit_slot 8\n    jt0 = jump_table [block1]\nblock0(v0: i32, v1: i64):\n  br_table v0, block1, [block1]\nblock1:\n  v2 = vconst.i8x16 0x00\n  store notrap aligned v0, v0+8\n  return v0\n}\n; run: %f(1, 2) == 1\n";
        for end in 0..text.len() {
            parse(&text[..end]);
            parse(&text[end..]);
        }
    }
}
