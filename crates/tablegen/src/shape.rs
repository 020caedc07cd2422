//! Data that many records share, stored once: field declarations, lists of classes, and chains of
//! instantiations.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::source::{FileId, Span};
use crate::strings::Symbol;
use crate::value::{ClassId, TypeId};

/// A span of the source, as a 4-byte index.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Place(u32);

/// The table of all spans.
#[derive(Debug, Default)]
pub(crate) struct Places {
    spans: Vec<Span>,
    /// For each span, that of the last declaration or assignment of the field; it differs from the
    /// span itself if the value was written elsewhere.
    setters: Vec<Place>,
    /// Spans of values that a field received again, by the span of the value and the earlier span
    /// of the field.
    again: FxHashMap<(Place, Place), Place>,
}

impl Places {
    pub(crate) fn add(&mut self, span: Span) -> Place {
        let last = self.spans.len().wrapping_sub(1);
        if self.spans.last() == Some(&span) && self.setters[last].0 as usize == last {
            return Place(last as u32);
        }
        let place = Place(self.spans.len() as u32);
        self.spans.push(span);
        self.setters.push(place);
        place
    }
    /// Adds the span of an argument that is the value of `field` in a class.
    pub(crate) fn add_passed(&mut self, argument: Span, field: Place) -> Place {
        let place = Place(self.spans.len() as u32);
        self.spans.push(argument);
        self.setters.push(self.setter(field));
        place
    }
    /// Adds the span of a value that a field receives because it is declared or inherited again.
    /// This does not count as an assignment.
    pub(crate) fn add_again(&mut self, value: Place, earlier: Place) -> Place {
        if let Some(known) = self.again.get(&(value, earlier)) {
            return *known;
        }
        let place = self.add_passed(self.span(value), earlier);
        self.again.insert((value, earlier), place);
        place
    }
    /// Adds the span of a value that is assigned to a field; `name` is the span of the field's
    /// name.
    pub(crate) fn add_value(&mut self, value: Span, name: Span) -> Place {
        let name = self.add(name);
        self.add_passed(value, name)
    }
    /// Returns where the field itself was declared or set last.
    pub(crate) fn setter(&self, place: Place) -> Place {
        self.setters.get(place.0 as usize).copied().unwrap_or(place)
    }
    pub(crate) fn span(&self, place: Place) -> Span {
        let nowhere = Span::new(FileId(0), 0, 0);
        self.spans.get(place.0 as usize).copied().unwrap_or(nowhere)
    }
}

/// The declaration of a field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldDecl {
    pub(crate) name: Symbol,
    pub(crate) ty: TypeId,
    /// The span of the declaration.
    pub(crate) decl: Place,
    /// Whether it was declared with `field`, so that it may stay unresolved.
    pub(crate) nonconcrete: bool,
}

/// The fields of a class or record, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    pub(crate) fields: Vec<FieldDecl>,
    /// Whether some field was declared with `field`.
    pub(crate) has_nonconcrete: bool,
    /// The positions of fields, by a hash of their names with linear probing. The number of slots
    /// is a power of two, and at most half of them are used.
    index: Vec<u32>,
}

/// An empty slot of an index.
const FREE: u32 = u32::MAX;

impl Layout {
    /// Returns the first slot for a name.
    fn slot(&self, name: Symbol) -> usize {
        (name.0.wrapping_mul(0x9E37_79B9) >> 16) as usize & self.index.len().wrapping_sub(1)
    }

    pub(crate) fn find(&self, name: Symbol) -> Option<usize> {
        let mut slot = self.slot(name);
        // The search ends at an empty slot. Only a layout without fields has no slots.
        loop {
            let at = *self.index.get(slot)?;
            let field = self.fields.get(at as usize)?;
            if field.name == name {
                return Some(at as usize);
            }
            slot = (slot + 1) & (self.index.len() - 1);
        }
    }

    /// Adds a field with a new name.
    pub(crate) fn push(&mut self, field: FieldDecl) {
        self.fields.push(field);
        self.has_nonconcrete |= field.nonconcrete;
        if self.fields.len() * 2 > self.index.len() {
            let slots = (self.fields.len() * 4).next_power_of_two();
            self.index = vec![FREE; slots];
            for at in 0..self.fields.len() {
                self.enter(at);
            }
        } else {
            self.enter(self.fields.len() - 1);
        }
    }

    /// Adds the field at `at` to the index.
    fn enter(&mut self, at: usize) {
        let mut slot = self.slot(self.fields[at].name);
        while self.index[slot] != FREE {
            slot = (slot + 1) & (self.index.len() - 1);
        }
        self.index[slot] = at as u32;
    }
}

/// The union of two layouts, and the position in it of each field of the second one.
#[derive(Clone, Debug)]
pub(crate) struct Joined {
    pub(crate) layout: Arc<Layout>,
    pub(crate) positions: Arc<[u32]>,
}

/// The two layouts of a union. They are kept alive because their addresses are the key.
type Kept = (Arc<Layout>, Arc<Layout>);

/// A cache of unions of layouts.
#[derive(Debug, Default)]
pub(crate) struct Joins {
    known: FxHashMap<(usize, usize), (Joined, Kept)>,
}

impl Joins {
    pub(crate) fn join(&mut self, first: &Arc<Layout>, second: &Arc<Layout>) -> Joined {
        let key = (Arc::as_ptr(first) as usize, Arc::as_ptr(second) as usize);
        if let Some((known, _)) = self.known.get(&key) {
            return known.clone();
        }
        let mut layout = Layout::clone(first);
        let mut positions = Vec::with_capacity(second.fields.len());
        for field in &second.fields {
            let at = match layout.find(field.name) {
                Some(at) => at,
                None => {
                    layout.push(*field);
                    layout.fields.len() - 1
                }
            };
            positions.push(at as u32);
        }
        let joined = Joined {
            layout: Arc::new(layout),
            positions: positions.into(),
        };
        let kept = (Arc::clone(first), Arc::clone(second));
        self.known.insert(key, (joined.clone(), kept));
        joined
    }
}

/// The id of a list of classes. Equal lists have equal ids.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct ClassList(u32);

impl ClassList {
    pub(crate) const EMPTY: ClassList = ClassList(0);
}

/// The table of all lists of classes.
#[derive(Debug)]
pub(crate) struct ClassLists {
    lists: Vec<Box<[ClassId]>>,
    /// The type of a record with these classes, computed at its first use.
    types: Vec<Option<TypeId>>,
    longer: FxHashMap<(ClassList, ClassId), ClassList>,
    inherited: FxHashMap<(ClassList, ClassId, ClassList), Result<ClassList, ClassId>>,
}

impl Default for ClassLists {
    fn default() -> ClassLists {
        ClassLists {
            lists: vec![Box::default()],
            types: vec![None],
            longer: FxHashMap::default(),
            inherited: FxHashMap::default(),
        }
    }
}

impl ClassLists {
    pub(crate) fn get(&self, list: ClassList) -> &[ClassId] {
        self.lists.get(list.0 as usize).map_or(&[], |list| list)
    }
    pub(crate) fn type_of(&self, list: ClassList) -> Option<TypeId> {
        self.types.get(list.0 as usize).copied().flatten()
    }
    pub(crate) fn set_type(&mut self, list: ClassList, ty: TypeId) {
        if let Some(slot) = self.types.get_mut(list.0 as usize) {
            *slot = Some(ty);
        }
    }

    /// Appends a class to `list`.
    pub(crate) fn push(&mut self, list: ClassList, class: ClassId) -> ClassList {
        if let Some(longer) = self.longer.get(&(list, class)) {
            return *longer;
        }
        let mut classes = self.get(list).to_vec();
        classes.push(class);
        let longer = ClassList(self.lists.len() as u32);
        self.lists.push(classes.into());
        self.types.push(None);
        self.longer.insert((list, class), longer);
        longer
    }

    /// Appends the parents of `class` and `class` itself to `list`. Fails with the class that would
    /// occur twice.
    pub(crate) fn inherit(
        &mut self,
        list: ClassList,
        class: ClassId,
        parents: ClassList,
    ) -> Result<ClassList, ClassId> {
        let key = (list, class, parents);
        if let Some(known) = self.inherited.get(&key) {
            return *known;
        }
        let mut result = Ok(list);
        for one in self.get(parents).to_vec().into_iter().chain([class]) {
            if self.get(list).contains(&one) {
                result = Err(one);
                break;
            }
            result = result.map(|list| self.push(list, one));
        }
        self.inherited.insert(key, result);
        result
    }
}

/// The chain of `defm`s and class values that instantiated a record.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Chain(u32);

impl Chain {
    pub(crate) const EMPTY: Chain = Chain(u32::MAX);
}

/// An element of a chain.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Link {
    pub(crate) span: Span,
    /// Whether dumps show it: llvm-tblgen forgets those that passed through a loop or `if`.
    pub(crate) shown: bool,
}

/// The table of all chains. Each chain is a span and the id of its inner chain.
#[derive(Debug, Default)]
pub(crate) struct Chains {
    links: Vec<(Chain, Link)>,
    known: FxHashMap<(Chain, Link), Chain>,
}

impl Chains {
    /// Extends `chain` by an outer element.
    pub(crate) fn push(&mut self, chain: Chain, link: Link) -> Chain {
        *self.known.entry((chain, link)).or_insert_with(|| {
            self.links.push((chain, link));
            Chain(self.links.len() as u32 - 1)
        })
    }
    /// Returns the spans, the innermost first.
    pub(crate) fn spans(&self, chain: Chain) -> Vec<Span> {
        self.links(chain).map(|link| link.span).collect()
    }
    /// Returns the spans that dumps show, the innermost first.
    pub(crate) fn shown(&self, chain: Chain) -> Vec<Span> {
        self.links(chain)
            .filter(|link| link.shown)
            .map(|link| link.span)
            .collect()
    }
    fn links(&self, mut chain: Chain) -> impl Iterator<Item = Link> {
        let mut out = Vec::new();
        while let Some((inner, link)) = self.links.get(chain.0 as usize) {
            out.push(*link);
            chain = *inner;
        }
        out.into_iter().rev()
    }
}
