//! The symbols of a source: labels, assigned values and names that are defined elsewhere.

use super::expr::Expr;
use super::fault::{Fault, Span};
use std::collections::HashMap;

/// A symbol of an [`Object`](super::Object), by its place in the list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SymbolId(pub(super) u32);

impl SymbolId {
    /// The symbol at this place in the list.
    pub const fn new(index: u32) -> Self {
        Self(index)
    }

    /// The place in the list.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A section of an [`Object`](super::Object), by its place in the list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SectionId(pub(super) u32);

impl SectionId {
    /// The section at this place in the list.
    pub const fn new(index: u32) -> Self {
        Self(index)
    }

    /// The place in the list.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Who sees a symbol.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Binding {
    /// This source alone.
    #[default]
    Local,
    /// Everybody.
    Global,
    /// Everybody, unless there is a global one of the same name.
    Weak,
}

/// What `.type` says a symbol is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum SymbolKind {
    /// Nothing was said.
    #[default]
    None,
    /// Code.
    Function,
    /// Data.
    Object,
}

/// What a symbol stands for.
#[derive(Clone, Debug, Default)]
pub(super) enum Definition {
    /// Nothing yet; maybe it is defined elsewhere.
    #[default]
    None,
    /// A place in a section.
    Label { section: SectionId, offset: u32 },
    /// What `.set` gave it.
    Assigned(Expr),
}

/// All that the assembler knows of a symbol.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) definition: Definition,
    /// Where it is defined, or else where it was first met.
    pub(super) span: Span,
    pub(super) binding: Option<Binding>,
    pub(super) kind: SymbolKind,
    pub(super) size: Option<Expr>,
    /// Made by the assembler: a numeric label.
    pub(super) hidden: bool,
    /// An expression refers to it that has to wait for its value.
    pub(super) awaited: bool,
}

/// The symbol table.
#[derive(Default)]
pub(super) struct Symbols {
    pub(super) list: Vec<Entry>,
    by_name: HashMap<String, SymbolId>,
    /// For each numeric label the symbol of its last definition, and of the next one if something waits for it.
    numeric: HashMap<u32, Numeric>,
}

#[derive(Default)]
struct Numeric {
    last: Option<SymbolId>,
    next: Option<SymbolId>,
}

impl Symbols {
    fn add(&mut self, name: String, span: Span, hidden: bool) -> SymbolId {
        // There are fewer symbols than bytes in the source, whose length has been checked.
        let id = SymbolId(self.list.len() as u32);
        self.list.push(Entry {
            name,
            definition: Definition::None,
            span,
            binding: None,
            kind: SymbolKind::None,
            size: None,
            hidden,
            awaited: false,
        });
        id
    }

    /// The symbol of this name, a new one if need be.
    pub(super) fn named(&mut self, name: &str, span: &Span) -> SymbolId {
        if let Some(&id) = self.by_name.get(name) {
            return id;
        }
        let id = self.add(name.to_owned(), span.clone(), false);
        self.by_name.insert(name.to_owned(), id);
        id
    }

    pub(super) fn get(&self, id: SymbolId) -> &Entry {
        &self.list[id.index()]
    }

    pub(super) fn get_mut(&mut self, id: SymbolId) -> &mut Entry {
        &mut self.list[id.index()]
    }

    /// The symbol that `1b` or `1f` means here.
    pub(super) fn local(&mut self, number: u32, backward: bool, span: &Span) -> Result<SymbolId, Fault> {
        let known = self.numeric.entry(number).or_default();
        let found = if backward { known.last } else { known.next };
        match found {
            Some(id) => Ok(id),
            None if backward => Err(Fault::new(
                span.clone(),
                format!("there is no label `{number}:` before this"),
                "refers to nothing",
            )),
            None => {
                let id = self.add(format!("{number}f"), span.clone(), true);
                self.numeric.entry(number).or_default().next = Some(id);
                Ok(id)
            }
        }
    }

    /// The symbol that the label `1:` defines here.
    pub(super) fn define_local(&mut self, number: u32, span: &Span) -> SymbolId {
        let waiting = self.numeric.entry(number).or_default().next.take();
        let id = waiting.unwrap_or_else(|| self.add(format!("{number}b"), span.clone(), true));
        self.numeric.entry(number).or_default().last = Some(id);
        id
    }
}
