//! The assembler: source text to instructions, sections, symbols and relocations.
//!
//! # Contract
//!
//! * [`assemble`] gives an [`Object`] or all faults of the source, each with the bytes of the source it is about. Nothing is
//!   read or written but its arguments; the same source gives the same object.
//! * What an instruction looks like is td's `AsmString`, which the printer uses too. So the text of every instruction that
//!   [`encode`](crate::encode()) takes is read back as the same word: [`instruction`] reads it alone.
//! * Every operand is checked for kind and range. Nothing is cut off silently.
//! * Any text is fine: nothing panics, the work is bounded by the length of the source and [`Options::most_bytes`], and the
//!   spans of faults are inside the source, on character boundaries.
//! * Addresses and relocations are the business of a linker, the crate `npu-link`.
//!
//! # Structure
//!
//! | file | what it does |
//! |---|---|
//! | `fault` | faults with spans, and near words |
//! | `lexer`, `cursor` | tokens |
//! | `expr`, `value` | expressions, and what they come to |
//! | `symbol` | the symbol table |
//! | `operand` | operands, and the opcode that takes them |
//! | `assembler` | statements; the state of an assembly |
//! | `directive` | directives |
//! | `resolve` | what waited for symbols; relocations |
//! | `object` | the result |
//! | `listing` | names as text |
//! | `warn` | code that meets an erratum of the hardware |
//!
//! # Limits
//!
//! One source gives one object. There are no macros, no conditional assembly and no subsections. Debug directives (`.loc`,
//! `.cfi_*`) are read and ignored.

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

/// How to assemble.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes that all sections may store together.
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
/// All faults, in the order of the source; never empty.
pub fn assemble(source: &str, options: &Options) -> Result<Object, Vec<Fault>> {
    let (object, faults) = assembler::run(source, options);
    if faults.is_empty() { Ok(object) } else { Err(faults) }
}

/// Reads one instruction without symbols.
///
/// # Errors
///
/// All faults of the text, among them that it is not one instruction.
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
