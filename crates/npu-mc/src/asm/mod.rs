//! The assembler: source text to instructions, sections, symbols and relocations.
//!
//! # Contract
//!
//! * [`assemble`] returns an [`Object`] or all faults of the source. Each fault has a span of the
//!   source. The result depends only on the arguments, and no files are read or written.
//! * The syntax of an instruction is td's `AsmString`, which the printer uses too. Therefore the
//!   printed text of every instruction that [`encode`](crate::encode()) accepts assembles to the
//!   same word. [`instruction`] reads one instruction.
//! * The kind and range of every operand are checked. No value is truncated silently.
//! * Any text is valid input: the assembler never panics. The length of the source and
//!   [`Options::most_bytes`] bound the work. The spans of faults are inside the source, on
//!   character boundaries.
//! * Addresses and relocations are resolved by a linker, the crate `npu-link`.
//!
//! # Structure
//!
//! | file | contents |
//! |---|---|
//! | `fault` | faults with spans, suggestions for misspelt words |
//! | `lexer`, `cursor` | tokens |
//! | `expr`, `value` | expressions and their values |
//! | `symbol` | the symbol table |
//! | `operand` | operands, and the choice of the opcode |
//! | `assembler` | statements and the state of an assembly |
//! | `directive` | directives |
//! | `resolve` | fixups and relocations |
//! | `object` | the result |
//! | `listing` | names as text |
//! | `warn` | warnings about code that meets an erratum |
//!
//! # Limits
//!
//! One source becomes one object. There are no macros, no conditional assembly and no subsections.
//! Debug directives (`.loc`, `.cfi_*`) are parsed and ignored.

mod assembler;
mod cursor;
mod directive;
mod expr;
mod fault;
mod lexer;
mod listing;
mod object;
mod operand;
mod resolve;
mod symbol;
mod value;
mod warn;

pub use fault::{Fault, Span, nearest};
pub use listing::symbol_text;
pub use object::{
    Binding, Line, Object, Piece, Relocation, Section, SectionId, Symbol, SymbolId, SymbolKind, SymbolValue, Target,
};
pub use resolve::out_of_reach;
pub use warn::warnings;

use crate::inst::Inst;

/// Options of the assembler.
#[derive(Clone, Debug)]
pub struct Options {
    /// The maximum number of bytes stored in all sections together.
    pub most_bytes: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options { most_bytes: 64 << 20 }
    }
}

/// Assembles a source.
///
/// # Errors
///
/// Returns all faults, in the order of the source; the list is never empty.
pub fn assemble(source: &str, options: &Options) -> Result<Object, Vec<Fault>> {
    let (object, faults) = assembler::run(source, options);
    if faults.is_empty() { Ok(object) } else { Err(faults) }
}

/// Assembles one instruction without symbols.
///
/// # Errors
///
/// Returns all faults of the text. A text that is not exactly one instruction is a fault.
pub fn instruction(text: &str) -> Result<Inst, Vec<Fault>> {
    let object = assemble(text, &Options { most_bytes: 64 })?;
    let whole = 0..text.len();
    match object.lines.as_slice() {
        [line] if object.relocations.is_empty() => {
            let fault = || vec![Fault::new(whole, "this is not an instruction", "a directive")];
            line.inst.ok_or_else(fault)
        }
        [_] => Err(vec![Fault::new(
            whole,
            "this instruction refers to a symbol",
            "it has to be linked",
        )]),
        lines => {
            let message = format!("these are {} statements, not one instruction", lines.len());
            Err(vec![Fault::new(whole, message, "here")])
        }
    }
}
