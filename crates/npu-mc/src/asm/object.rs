//! The result of an assembly: sections, symbols and relocations.
//!
//! These are the contents of an object file as data. The crate `npu-link` assigns addresses to the
//! sections.

use super::fault::Span;
use crate::inst::Inst;
use crate::reloc::Reloc;

pub use super::symbol::{Binding, SectionId, SymbolId, SymbolKind};

/// An assembled source.
#[derive(Clone, Debug, Default)]
pub struct Object {
    /// The sections, in the order of their first use in the source. `.text` is always the first.
    pub sections: Vec<Section>,
    /// All symbols, including undefined ones.
    pub symbols: Vec<Symbol>,
    /// The relocations, in the order of the source.
    pub relocations: Vec<Relocation>,
    /// The statements and their results, in the order of the source.
    pub lines: Vec<Line>,
}

/// A section.
#[derive(Clone, Debug)]
pub struct Section {
    /// The name.
    pub name: String,
    /// Whether it occupies memory when the program runs.
    pub alloc: bool,
    /// Whether the program may write it.
    pub write: bool,
    /// Whether it contains instructions.
    pub exec: bool,
    /// Whether it contains only zeros, which are not stored.
    pub nobits: bool,
    /// Alignment of its start in bytes, a power of two.
    pub align: u32,
    /// Size in bytes.
    pub size: u64,
    /// The stored bytes, in ascending order of offset, with zeros between the pieces.
    pub pieces: Vec<Piece>,
}

/// A contiguous run of stored bytes of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Offset of the first byte in the section.
    pub offset: u32,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl Section {
    /// Returns the contiguous stored bytes from an offset on.
    pub fn bytes_at(&self, offset: u32) -> &[u8] {
        let Some(piece) = self.piece(offset) else { return &[] };
        let piece = &self.pieces[piece];
        &piece.bytes[(offset - piece.offset) as usize..]
    }

    /// Returns the contiguous stored bytes from an offset on, mutably.
    pub fn bytes_at_mut(&mut self, offset: u32) -> &mut [u8] {
        let Some(piece) = self.piece(offset) else {
            return &mut [];
        };
        let piece = &mut self.pieces[piece];
        &mut piece.bytes[(offset - piece.offset) as usize..]
    }

    /// Returns the index of the piece that contains the byte.
    fn piece(&self, offset: u32) -> Option<usize> {
        let next = self.pieces.partition_point(|p| p.offset <= offset);
        let index = next.checked_sub(1)?;
        let piece = &self.pieces[index];
        ((offset - piece.offset) as usize <= piece.bytes.len()).then_some(index)
    }
}

/// A symbol.
#[derive(Clone, Debug)]
pub struct Symbol {
    /// The name. For a numeric label it is the text that refers to it.
    pub name: String,
    /// The value.
    pub value: SymbolValue,
    /// The visibility.
    pub binding: Binding,
    /// The kind.
    pub kind: SymbolKind,
    /// Size in bytes, if the source defines it.
    pub size: Option<u32>,
    /// Whether it is invisible outside of the source: a numeric label, or a name that starts with
    /// `.L`.
    pub private: bool,
    /// The span of its definition, or of its first use if it is undefined.
    pub span: Span,
}

/// The value of a symbol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SymbolValue {
    /// It is defined elsewhere.
    Undefined,
    /// A number.
    Number(i64),
    /// An address in a section.
    Place {
        /// The section.
        section: SectionId,
        /// Bytes from the start of the section.
        offset: u32,
    },
    /// An address relative to a symbol that is defined elsewhere.
    Near {
        /// The symbol.
        symbol: SymbolId,
        /// Bytes from the symbol.
        addend: i64,
    },
}

/// A word whose value depends on an address.
#[derive(Clone, Debug)]
pub struct Relocation {
    /// The section that contains the word.
    pub section: SectionId,
    /// Offset of the word in the section.
    pub offset: u32,
    /// The type of the relocation.
    pub kind: Reloc,
    /// The section or symbol that it refers to.
    pub target: Target,
    /// The number that is added to the address of the target.
    pub addend: i64,
    /// The span of the operand.
    pub span: Span,
}

/// The target of a relocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// The start of a section.
    Section(SectionId),
    /// A symbol.
    Symbol(SymbolId),
}

/// A statement and its result.
#[derive(Clone, Debug)]
pub struct Line {
    /// The statement.
    pub span: Span,
    /// The section that contains it.
    pub section: SectionId,
    /// Its offset in the section.
    pub offset: u32,
    /// Size in bytes.
    pub len: u32,
    /// The instruction, if the statement is one. An unknown address in it is 0.
    pub inst: Option<Inst>,
}
