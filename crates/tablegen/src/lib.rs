//! The TableGen language: turns source text into records, without LLVM.
//!
//! A program passes through these stages, each in its own file: lexer (with includes and
//! preprocessor), parser, evaluator. Each statement is evaluated before the next one is parsed. The
//! result is a [`RecordKeeper`] with typed access to the fields of records, and a list of
//! [`Diagnostic`]s. The crate is independent of targets and back ends.
//!
//! # Contract
//! - [`parse_file`] and [`parse_str`] return for every input: they do not panic, overflow the stack
//!   or loop forever. A program that nests, recurses or computes too much is stopped with an error.
//! - All errors are reported, each once, with the span of the fault. Records are complete only if
//!   there are no errors ([`Parsed::has_errors`]).
//! - The language is that of LLVM 22, with `!switch`, `!sort` and `let append`/`prepend` of later
//!   releases. Names, values, the numbers of anonymous records and all orders are the same as in
//!   llvm-tblgen.
//! - The same input yields the same records in the same order.
//!
//! # Use
//! - Programs can be on disk or in memory: [`Options::files`] is a virtual file system that takes
//!   precedence, both for the program and for its includes.
//! - Records are found by name ([`RecordKeeper::def`]) or class
//!   ([`RecordKeeper::defs_derived_from`]). Their fields are read by type ([`Record::int`],
//!   [`Record::string`], [`Record::bits`], ...), with errors that contain the span of the value
//!   ([`AccessError`]), or without a type ([`Value::kind`]).
//! - Messages are data ([`Diagnostic`]: labels with [`Span`]s, notes) or text
//!   ([`Parsed::render_diagnostics`]).
//! - [`Record::history`] returns the steps that led to a field's value, with [`Options::trace`].
//! - The outputs of llvm-tblgen are available: [`print_records`], [`print_detailed_records`],
//!   [`print_enums`], [`dump_json`].
//!
//! The folder `examples` has a program that prints records and one that prints messages.
//!
//! # Invariants
//! - Values are interned and immutable: equal values have equal ids. An id contains the flags of
//!   its value.
//! - Records with the same fields share one layout. A record itself has only values and spans.
//! - Spans are stored with the uses of values (fields, arguments), not in values.
//!
//! # Limits
//! 65,536 bits in a `bits` type, 2^20 elements of a list, 16 MiB in a string, 200 levels of nesting
//! in the source, 1,000 nested class values, and [`Options::step_limit`] steps of evaluation.
//!
//! # Example
//! ```
//! use tablegen::{Options, parse_str};
//!
//! let mut options = Options::default();
//! options.files.insert("formats.td".into(), "class Reg<int n> { int Num = n; }".to_owned());
//! let parsed = parse_str("regs.td", "include \"formats.td\" def R1 : Reg<1>;", &options);
//! assert!(!parsed.has_errors());
//! let r1 = parsed.records.def("R1").ok_or("no R1")?;
//! assert_eq!(r1.int("Num")?, 1);
//!
//! // Reading a field as another type is an error with the span of the value.
//! let wrong = r1.string("Num").unwrap_err();
//! assert_eq!(parsed.sources.location(wrong.span).line, 1);
//! assert_eq!(wrong.to_string(), "record `R1`, field `Num`: expected a string, found `1`");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(missing_docs)]

mod args;
mod ast;
mod build;
mod detailed;
mod diagnostic;
mod eval;
mod eval_bang;
mod eval_value;
mod evaluator;
mod expand;
mod fold;
mod fold_list;
pub mod fuzz;
mod history;
mod json;
mod lexer;
mod options;
mod parse_value;
mod parser;
mod print;
mod records;
mod resolve;
mod resolver;
mod shape;
mod source;
mod step;
mod strings;
mod table;
mod text;
mod token;
mod value;
mod world;

use std::path::Path;

pub use detailed::print_detailed_records;
pub use diagnostic::{Diagnostic, Label, Severity, closest, render};
pub use history::Step;
pub use json::dump_json;
pub use options::Options;
pub use print::{print_enums, print_records};
pub use records::{AccessError, BitValue, Class, Dag, Field, Record, RecordKeeper, TypeKind, Value, ValueKind};
pub use source::{FileId, Location, SourceFile, SourceMap, Span};
pub use step::StepKind;
pub use text::numeric_order;

/// The result of a program: its records and its diagnostics.
#[derive(Debug, Default)]
pub struct Parsed {
    /// The classes and records.
    pub records: RecordKeeper,
    /// Errors, warnings and the output of `dump`, in the order of their creation.
    pub diagnostics: Vec<Diagnostic>,
    /// The files that were read.
    pub sources: SourceMap,
}

impl Parsed {
    /// Returns whether the program has errors, so that its records must not be used.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }

    /// Returns the files that were read from disk, in the order of reading.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.sources.files().filter_map(SourceFile::path)
    }

    /// Returns all diagnostics as text.
    pub fn render_diagnostics(&self) -> String {
        self.diagnostics.iter().map(|one| render(one, &self.sources)).collect()
    }
}

/// Parses and evaluates the program in a file.
pub fn parse_file(path: &Path, options: &Options) -> Parsed {
    let mut sources = SourceMap::default();
    match lexer::load(path, options, &mut sources) {
        Ok(file) => parse(file, sources, options),
        Err(error) => Parsed {
            diagnostics: vec![Diagnostic::new(
                Severity::Error,
                format!("cannot read `{}`: {error}", path.display()),
            )],
            ..Parsed::default()
        },
    }
}

/// Parses and evaluates the program in `text`. `name` is the file name in messages.
pub fn parse_str(name: &str, text: &str, options: &Options) -> Parsed {
    let mut sources = SourceMap::default();
    let file = sources.add(name, None, text.to_owned());
    parse(file, sources, options)
}

/// Stack size of the evaluator in bytes. With the limits on depth, it is sufficient in builds
/// without optimization.
const STACK: usize = 256 << 20;

fn parse(file: FileId, sources: SourceMap, options: &Options) -> Parsed {
    let run = |mut sources: SourceMap| {
        let mut parser = parser::Parser::new(lexer::Lexer::new(file, options, &mut sources));
        let mut evaluator = evaluator::Evaluator::new(options.step_limit);
        evaluator.tracing = options.trace;
        // Each statement is evaluated before the next one is parsed, so that its tree is small and
        // in the cache.
        while let Some(statement) = parser.next_statement() {
            evaluator.diagnostics.append(&mut parser.lexer.diagnostics);
            std::mem::swap(&mut evaluator.w.strings, &mut parser.lexer.strings);
            evaluator.run(std::slice::from_ref(&statement));
            std::mem::swap(&mut evaluator.w.strings, &mut parser.lexer.strings);
        }
        let mut diagnostics = evaluator.diagnostics;
        diagnostics.append(&mut parser.lexer.diagnostics);
        evaluator.w.strings = parser.lexer.strings;
        Parsed {
            records: RecordKeeper::new(evaluator.w),
            diagnostics,
            sources,
        }
    };
    let result = std::thread::scope(|scope| {
        std::thread::Builder::new()
            .stack_size(STACK)
            .spawn_scoped(scope, || run(sources))
            .map(|thread| thread.join())
    });
    match result {
        Ok(Ok(parsed)) => parsed,
        _ => Parsed {
            diagnostics: vec![Diagnostic::new(Severity::Error, "the evaluator could not be run")],
            ..Parsed::default()
        },
    }
}
