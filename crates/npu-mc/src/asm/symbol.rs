//! The symbols of a source: labels, assigned values and undefined names.

use super::expr::Expr;
use super::fault::{Fault, Span};
use std::collections::HashMap;

/// The index of a symbol in an [`Object`](super::Object).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SymbolId(pub(super) u32);

impl SymbolId {
    /// Creates the id for an index in the list.
    pub const fn new(index: u32) -> Self {
        Self(index)
    }

    /// Returns the index in the list.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The index of a section in an [`Object`](super::Object).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SectionId(pub(super) u32);

impl SectionId {
    /// Creates the id for an index in the list.
    pub const fn new(index: u32) -> Self {
        Self(index)
    }

    /// Returns the index in the list.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The visibility of a symbol.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Binding {
    /// Visible in this source only.
    #[default]
    Local,
    /// Visible everywhere.
    Global,
    /// Visible everywhere, but a global symbol of the same name replaces it.
    Weak,
}

/// The kind of a symbol, set by `.type`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum SymbolKind {
    /// Unspecified.
    #[default]
    None,
    /// Code.
    Function,
    /// Data.
    Object,
}

/// The definition of a symbol.
#[derive(Clone, Debug, Default)]
pub(super) enum Definition {
    /// Undefined so far. Another object may define it.
    #[default]
    None,
    /// An offset in a section.
    Label { section: SectionId, offset: u32 },
    /// A value assigned by `.set`.
    Assigned(Expr),
}

/// The assembler's data about a symbol.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) definition: Definition,
    /// The span of its definition, or of its first use if it is undefined.
    pub(super) span: Span,
    pub(super) binding: Option<Binding>,
    pub(super) kind: SymbolKind,
    pub(super) size: Option<Expr>,
    /// Whether the assembler created it for a numeric label.
    pub(super) hidden: bool,
    /// Whether an unresolved expression refers to it.
    pub(super) awaited: bool,
}

/// The symbol table.
#[derive(Default)]
pub(super) struct Symbols {
    pub(super) list: Vec<Entry>,
    by_name: HashMap<String, SymbolId>,
    /// For each numeric label, the symbol of its last definition, and that of its next definition
    /// if a use refers to it.
    numeric: HashMap<u32, Numeric>,
}

#[derive(Default)]
struct Numeric {
    last: Option<SymbolId>,
    next: Option<SymbolId>,
}

impl Symbols {
    fn add(&mut self, name: String, span: Span, hidden: bool) -> SymbolId {
        // The number of symbols is less than the number of bytes in the source, whose length has
        // been checked.
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

    /// Returns the symbol with this name; creates it if it does not exist.
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

    /// Returns the symbol that `1b` or `1f` refers to at this position.
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

    /// Returns the symbol that the label `1:` defines at this position.
    pub(super) fn define_local(&mut self, number: u32, span: &Span) -> SymbolId {
        let waiting = self.numeric.entry(number).or_default().next.take();
        let id = waiting.unwrap_or_else(|| self.add(format!("{number}b"), span.clone(), true));
        self.numeric.entry(number).or_default().last = Some(id);
        id
    }
}
