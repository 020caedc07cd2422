//! Loads records into typed tables and reports every fault of the description.
//!
//! Loading continues after a fault, so one build shows all of them; a target is returned only if
//! there was none. One file per topic: registers, operand classes, encodings, assembly text,
//! instructions, relations, calling conventions, hardware opcodes, other tables.

mod asm;
mod calling;
mod encoding;
mod hardware;
mod instructions;
mod mapping;
mod operands;
mod plain;
mod registers;
mod semantics;
mod settings;

use crate::model::Target;
pub(crate) use calling::value_variant;
pub(crate) use registers::file_of;
use std::collections::{HashMap, HashSet};
use tablegen::{Diagnostic, Label, Parsed, Record, RecordKeeper, Severity, Span};

/// Checks the records and resolves them into tables.
///
/// # Errors
///
/// Returns all faults, in the order of the topics. Errors of the parser are not repeated.
pub fn load(parsed: &Parsed) -> Result<Target, Vec<Diagnostic>> {
    let mut loader = Loader {
        parsed,
        records: &parsed.records,
        target: Target::default(),
        faults: Vec::new(),
        register_index: HashMap::new(),
        format_index: HashMap::new(),
        unit_index: HashMap::new(),
        kind_index: HashMap::new(),
        instruction_index: HashMap::new(),
    };
    loader.registers();
    loader.register_classes();
    loader.formats_and_units();
    loader.hardware();
    loader.instructions();
    loader.mappings();
    loader.calling();
    loader.plain();
    loader.settings();
    loader.semantics();
    // Each use of a faulty class repeats its fault.
    let mut seen = HashSet::new();
    loader
        .faults
        .retain(|fault| seen.insert((fault.message.clone(), fault.span())));
    if loader.faults.is_empty() {
        Ok(loader.target)
    } else {
        Err(loader.faults)
    }
}

/// The state of loading: the tables and faults so far, and a map from record names to table
/// indices.
struct Loader<'a> {
    parsed: &'a Parsed,
    records: &'a RecordKeeper,
    target: Target,
    faults: Vec<Diagnostic>,
    register_index: HashMap<String, usize>,
    format_index: HashMap<String, usize>,
    unit_index: HashMap<String, usize>,
    kind_index: HashMap<String, usize>,
    instruction_index: HashMap<String, usize>,
}

/// Creates a fault with its location.
pub(crate) fn fault(span: Span, message: impl Into<String>) -> Diagnostic {
    Diagnostic {
        severity: Severity::Error,
        message: message.into(),
        labels: vec![Label {
            span,
            message: String::new(),
            primary: true,
        }],
        notes: Vec::new(),
    }
}

/// Adds a second location to a fault.
pub(crate) fn also(mut diagnostic: Diagnostic, span: Span, message: impl Into<String>) -> Diagnostic {
    diagnostic.labels.push(Label {
        span,
        message: message.into(),
        primary: false,
    });
    diagnostic
}

/// Adds the record to a fault whose location is in a class or another file instead of the record.
fn in_record(diagnostic: Diagnostic, record: Record<'_>) -> Diagnostic {
    let here = record.span();
    let elsewhere = |span: Span| span.file != here.file || span.start < here.start;
    match diagnostic.span() {
        Some(span) if elsewhere(span) => also(diagnostic, here, format!("in the record `{}`", record.name())),
        _ => diagnostic,
    }
}

impl<'a> Loader<'a> {
    fn fault(&mut self, span: Span, message: impl Into<String>) {
        self.faults.push(fault(span, message));
    }

    /// Returns the value, or records the error and returns `None`.
    fn note<T, E: Into<Diagnostic>>(&mut self, result: Result<T, E>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.faults.push(error.into());
                None
            }
        }
    }

    /// Runs a loader over all records of a class; a record that cannot be read is skipped and its
    /// fault recorded.
    fn each(&mut self, class: &str, mut load: impl FnMut(&mut Self, Record<'a>) -> Result<(), Diagnostic>) {
        for record in self.records.defs_derived_from(class) {
            if let Err(diagnostic) = load(self, record) {
                self.faults.push(in_record(diagnostic, record));
            }
        }
    }

    /// Returns the index of a record that an earlier topic loaded. A missing record already has a
    /// fault, or is of a kind that is not allowed here.
    fn index(
        index: &HashMap<String, usize>,
        what: &str,
        record: Record<'_>,
        used_at: Span,
    ) -> Result<usize, Diagnostic> {
        index
            .get(record.name())
            .copied()
            .ok_or_else(|| fault(used_at, format!("`{}` is not a usable {what}", record.name())))
    }

    /// Converts register records to indices.
    fn register_list(&self, registers: &[Record<'_>], used_at: Span) -> Result<Vec<usize>, Diagnostic> {
        registers
            .iter()
            .map(|r| Self::index(&self.register_index, "register", *r, used_at))
            .collect()
    }
}

/// Returns the span of a field's value, or of the record if the field does not exist.
pub(crate) fn field_span(record: Record<'_>, field: &str) -> Span {
    record.field(field).map_or_else(|| record.span(), |f| f.span())
}

/// Reads an integer field, which must be in a range.
fn int_in(record: Record<'_>, field: &str, range: std::ops::RangeInclusive<i64>) -> Result<i64, Diagnostic> {
    let value = record.int(field)?;
    if range.contains(&value) {
        Ok(value)
    } else {
        Err(fault(
            field_span(record, field),
            format!(
                "`{field}` of `{}` is {value}, not in {}..={}",
                record.name(),
                range.start(),
                range.end()
            ),
        ))
    }
}

/// Reads a field of constant bits as a number.
fn constant_bits(record: Record<'_>, field: &str) -> Result<u32, Diagnostic> {
    let mut value = 0;
    for (i, bit) in record.bits(field)?.iter().enumerate() {
        match bit {
            tablegen::BitValue::Zero => {}
            tablegen::BitValue::One if i < 32 => value |= 1 << i,
            _ => {
                return Err(fault(
                    field_span(record, field),
                    format!("`{field}` of `{}` has to be constant bits", record.name()),
                ));
            }
        }
    }
    Ok(value)
}

/// Reads a string field; the text is empty if the field is missing or unset.
pub(crate) fn text_or_empty(record: Record<'_>, field: &str) -> Result<String, Diagnostic> {
    if record.field(field).is_none() {
        return Ok(String::new());
    }
    Ok(record.opt_string(field)?.map(str::to_owned).unwrap_or_default())
}

/// Checks a name that becomes a Rust identifier.
pub(crate) fn identifier(name: &str, span: Span) -> Result<(), Diagnostic> {
    let mut chars = name.chars();
    let begins = chars.next().is_some_and(|c| c.is_ascii_alphabetic());
    let goes_on = chars.all(|c| c.is_ascii_alphanumeric() || c == '_');
    if begins && goes_on && !KEYWORDS.contains(&name) {
        Ok(())
    } else {
        Err(fault(span, format!("`{name}` cannot be a name in Rust")))
    }
}

/// Rust keywords, which cannot be names.
pub(crate) const KEYWORDS: &[&str] = &[
    "Self", "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro",
    "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static", "struct", "super",
    "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// Converts `load32_s8` and `load-word` to `Load32S8` and `LoadWord`.
pub(crate) fn pascal(name: &str) -> String {
    let mut out = String::new();
    for part in name.split(|c: char| !c.is_ascii_alphanumeric()) {
        let mut chars = part.chars();
        if let Some(first) = chars.next() {
            out.extend(first.to_uppercase());
            out.push_str(chars.as_str());
        }
    }
    out
}
