//! Builds an object from functions and data.

use npu_mc::asm::{
    Binding, Object, Piece, Relocation, Section, SectionId, Symbol, SymbolId, SymbolKind, SymbolValue, Target,
};
use npu_mc::machine::{CACHE_LINE, INSTRUCTION_SIZE};
use npu_mc::reloc::Reloc;
use std::collections::HashMap;

/// The purpose of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Instructions, followed by constants.
    Code,
    /// Read-only data.
    ReadOnly,
    /// Writable data.
    Data,
    /// Zero-initialized data.
    Zeros,
    /// The initial values of thread-local data.
    ThreadLocal,
    /// Debug information, which is not in the program's memory.
    Debug,
}

/// A relocation at an offset of a definition.
#[derive(Clone, Debug)]
pub struct Reference {
    pub offset: u32,
    pub kind: Reloc,
    pub symbol: SymbolId,
    pub addend: i64,
}

/// The contents of a function or data object.
#[derive(Clone, Debug)]
pub struct Contents<'a> {
    pub bytes: &'a [u8],
    pub size: u32,
    pub align: u32,
    pub references: Vec<Reference>,
}

/// An object under construction.
#[derive(Debug, Default)]
pub struct Builder {
    object: Object,
    sections: HashMap<String, SectionId>,
    symbols: HashMap<String, SymbolId>,
}

impl Builder {
    /// Returns the section with this name; creates it if it does not exist.
    pub fn section(&mut self, name: &str, purpose: Purpose) -> SectionId {
        if let Some(&id) = self.sections.get(name) {
            return id;
        }
        let id = SectionId::new(self.object.sections.len() as u32);
        self.object.sections.push(Section {
            name: name.to_owned(),
            alloc: purpose != Purpose::Debug,
            write: !matches!(purpose, Purpose::Code | Purpose::ReadOnly | Purpose::Debug),
            exec: purpose == Purpose::Code,
            nobits: purpose == Purpose::Zeros,
            align: if purpose == Purpose::Debug { 1 } else { INSTRUCTION_SIZE },
            size: 0,
            pieces: Vec::new(),
        });
        self.sections.insert(name.to_owned(), id);
        id
    }

    /// Returns the symbol with this name; it is undefined until its definition.
    pub fn symbol(&mut self, name: &str) -> SymbolId {
        if let Some(&id) = self.symbols.get(name) {
            return id;
        }
        let id = SymbolId::new(self.object.symbols.len() as u32);
        self.object.symbols.push(Symbol {
            name: name.to_owned(),
            value: SymbolValue::Undefined,
            binding: Binding::Global,
            kind: SymbolKind::None,
            size: None,
            private: false,
            span: 0..0,
        });
        self.symbols.insert(name.to_owned(), id);
        id
    }

    /// Sets the binding of a symbol.
    pub fn bind(&mut self, id: SymbolId, binding: Binding) {
        if let Some(symbol) = self.object.symbols.get_mut(id.index()) {
            symbol.binding = binding;
        }
    }

    /// Defines a symbol at the end of a section and returns its offset there. Returns `None` if the
    /// section becomes too large.
    pub fn define(
        &mut self,
        id: SymbolId,
        kind: SymbolKind,
        section: SectionId,
        contents: Contents<'_>,
    ) -> Option<u32> {
        let own = self.object.sections.get_mut(section.index())?;
        let align = contents.align.max(1);
        let offset = u32::try_from(own.size.next_multiple_of(align.into())).ok()?;
        own.size = u64::from(offset.checked_add(contents.size)?);
        own.align = own.align.max(align);
        if !contents.bytes.is_empty() && !own.nobits {
            own.pieces.push(Piece {
                offset,
                bytes: contents.bytes.to_vec(),
            });
        }
        for reference in contents.references {
            self.object.relocations.push(Relocation {
                section,
                offset: offset.checked_add(reference.offset)?,
                kind: reference.kind,
                target: Target::Symbol(reference.symbol),
                addend: reference.addend,
                span: 0..0,
            });
        }
        let symbol = self.object.symbols.get_mut(id.index())?;
        symbol.value = SymbolValue::Place { section, offset };
        symbol.kind = kind;
        symbol.size = Some(contents.size);
        Some(offset)
    }

    /// Writes bytes without a symbol into an empty section. The relocations are those of the
    /// section.
    pub fn append(&mut self, section: SectionId, bytes: Vec<u8>, align: u32, relocations: Vec<Relocation>) {
        if let Some(own) = self.object.sections.get_mut(section.index()) {
            own.size = bytes.len() as u64;
            own.align = align;
            own.pieces = vec![Piece { offset: 0, bytes }];
            self.object.relocations.extend(relocations);
        }
    }

    /// Returns the object.
    pub fn finish(self) -> Object {
        self.object
    }
}

/// The default alignment of functions and data: a cache line, which is enough for every access.
pub const DEFAULT_ALIGN: u32 = CACHE_LINE;
