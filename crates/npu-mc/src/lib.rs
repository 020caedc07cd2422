//! The machine-code layer of the NaplesPU: the meaning and the encoding of instruction words.
//!
//! The build script generates all facts about the machine (register names and numbers, opcodes,
//! encodings, assembly syntax, operand ranges, the calling convention, relocations, errata) from
//! the TableGen description in `td/`. The source files only contain the types of these tables and
//! the code that uses them:
//!
//! | module | contents |
//! |---|---|
//! | [`reg`] | register newtypes, one per register file |
//! | [`inst`] | [`Opcode`], its descriptors, [`Inst`] and its operands |
//! | [`encode`](mod@encode) | [`Inst`] to word; checks the kind and range of every operand |
//! | [`decode`](mod@decode) | word to [`Inst`]; as strict as the assembler's own tables |
//! | [`print`](mod@print) | the assembler's text of an [`Inst`] |
//! | [`semantics`] | the effect of an [`Inst`], over any algebra of bit vectors |
//! | [`raw`] | the instruction that the hardware decodes from any word, for simulators |
//! | [`asm`] | the assembler: text to instructions, sections, symbols and relocations |
//! | [`disasm`](mod@disasm) | bytes to text that assembles to the same bytes, with labels |
//! | [`relation`] | opcode to related opcode (register to immediate form, unmasked to masked, ...) |
//! | [`cc`] | locations of arguments and results, callee-saved registers |
//! | [`env`](mod@env) | which registers an allocator may use |
//! | [`reloc`] | relocations and ELF constants |
//! | [`machine`] | control registers, memory map, trap reasons |
//! | [`tables`] | the enums and tables that td declares |
//! | [`errata`] | the hardware's bugs |
//!
//! # Contract
//!
//! * No function panics or depends on the host. Only [`asm`], [`semantics`] and functions that
//!   return texts allocate.
//! * `decode` is strict: a word is an instruction only if every bit that the assembler fixes has
//!   its value. Bits that both the hardware and the assembler ignore ([`InstDesc::ignored`]) may
//!   have any value; `encode` writes their canonical value. For every word that decodes,
//!   `encode(&decode(word)?)` returns the same word except for the ignored bits.
//! * Two opcodes may share an encoding (`leal` and `moveil`). `decode` returns only one of them:
//!   the one with [`InstDesc::decodable`].
//!
//! # Limits
//!
//! One instruction is one 32-bit word, stored little-endian. Operands of an [`Inst`] cannot be
//! symbols: an instruction that refers to a symbol is encoded with 0 and fixed up through
//! [`reloc::apply`].

#![deny(missing_docs)]

/// The version of this package.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

pub mod asm;
pub mod cc;
pub mod decode;
mod desc;
pub mod disasm;
pub mod encode;
pub mod env;
pub mod errata;
mod generated;
pub mod inst;
pub mod machine;
pub mod print;
pub mod raw;
pub mod reg;
pub mod relation;
pub mod reloc;
pub mod semantics;

/// The enums and tables of td's `GenericEnum` and `GenericTable` records.
///
/// Each such record adds a table to this module, with a lookup function for each key.
pub mod tables {
    include!(concat!(env!("OUT_DIR"), "/tables.rs"));
}

pub use decode::{DecodeError, decode};
pub use encode::{EncodeError, encode};
pub use inst::{Format, Inst, InstDesc, InstFlags, Opcode, Operand, OperandDesc, OperandKind, Operands, Unit};
pub use raw::{RawInst, split};
pub use reg::{Reg, RegFile, SReg, VReg};
