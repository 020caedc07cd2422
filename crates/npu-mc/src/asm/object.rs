//! What a source assembles to: sections, symbols and relocations.
//!
//! This is what an object file holds, as data. The crate `npu-link` gives the sections addresses.

use super::fault::Span;
use crate::inst::Inst;
use crate::reloc::Reloc;

pub use super::symbol::{Binding, SectionId, SymbolId, SymbolKind};

/// An assembled source.
#[derive(Clone, Debug, Default)]
pub struct Object {
    /// The sections, in the order in which the source names them; `.text` is always the first.
    pub sections: Vec<Section>,
    /// All symbols, also those that are not defined here.
    pub symbols: Vec<Symbol>,
    /// Places that wait for an address, in the order of the source.
    pub relocations: Vec<Relocation>,
    /// What each statement became, in the order of the source.
    pub lines: Vec<Line>,
}

/// A section.
#[derive(Clone, Debug)]
pub struct Section {
    /// The name.
    pub name: String,
    /// It takes memory when the program runs.
    pub alloc: bool,
    /// The program may write it.
    pub write: bool,
    /// It holds instructions.
    pub exec: bool,
    /// It holds nothing but zeros, which are not stored.
    pub nobits: bool,
    /// Alignment of its start in bytes, a power of two.
    pub align: u32,
    /// Bytes from its start to its end.
    pub size: u64,
    /// The stored bytes, by rising offset; between them are zeros.
    pub pieces: Vec<Piece>,
}

/// Stored bytes of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Offset of the first byte in the section.
    pub offset: u32,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl Section {
    /// The stored bytes from an offset on that are next to each other.
    pub fn bytes_at(&self, offset: u32) -> &[u8] {
        let Some(piece) = self.piece(offset) else { return &[] };
        let piece = &self.pieces[piece];
        &piece.bytes[(offset - piece.offset) as usize..]
    }

    /// The same, to be changed.
    pub fn bytes_at_mut(&mut self, offset: u32) -> &mut [u8] {
        let Some(piece) = self.piece(offset) else {
            return &mut [];
        };
        let piece = &mut self.pieces[piece];
        &mut piece.bytes[(offset - piece.offset) as usize..]
    }

    /// The piece that holds the byte.
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
    /// The name; of a numeric label what refers to it.
    pub name: String,
    /// What it stands for.
    pub value: SymbolValue,
    /// Who sees it.
    pub binding: Binding,
    /// What it is.
    pub kind: SymbolKind,
    /// Bytes, if the source says how many.
    pub size: Option<u32>,
    /// Nobody outside may see it: a numeric label, or a name that starts with `.L`.
    pub private: bool,
    /// Where it is defined, or else where it was first named.
    pub span: Span,
}

/// What a symbol stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SymbolValue {
    /// It is defined elsewhere.
    Undefined,
    /// A number.
    Number(i64),
    /// A place.
    Place {
        /// In this section,
        section: SectionId,
        /// so many bytes after its start.
        offset: u32,
    },
    /// A place near a symbol that is defined elsewhere.
    Near {
        /// The symbol.
        symbol: SymbolId,
        /// Bytes after it.
        addend: i64,
    },
}

/// A place that waits for an address.
#[derive(Clone, Debug)]
pub struct Relocation {
    /// The section with the place.
    pub section: SectionId,
    /// Offset of the word there.
    pub offset: u32,
    /// What is done to the word.
    pub kind: Reloc,
    /// What it refers to.
    pub target: Target,
    /// Added to the address of the target.
    pub addend: i64,
    /// The operand in the source.
    pub span: Span,
}

/// What a relocation refers to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// The start of a section.
    Section(SectionId),
    /// A symbol.
    Symbol(SymbolId),
}

/// A statement and what it became.
#[derive(Clone, Debug)]
pub struct Line {
    /// The statement.
    pub span: Span,
    /// The section it stands in.
    pub section: SectionId,
    /// The offset there.
    pub offset: u32,
    /// How many bytes it makes.
    pub len: u32,
    /// The instruction, if it is one, with 0 for an address that is not known.
    pub inst: Option<Inst>,
}
