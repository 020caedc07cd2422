//! What many records have in common, stored once: the declarations of their fields, the lists of their classes, the chains of
//! places they came through.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::source::{FileId, Span};
use crate::strings::Symbol;
use crate::value::{ClassId, TypeId};

/// A place in the source, in four bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Place(u32);

/// All places.
#[derive(Debug, Default)]
pub(crate) struct Places {
    spans: Vec<Span>,
    /// For each the place where a field was declared or set, if the place itself is that of a value that came from elsewhere.
    setters: Vec<Place>,
    /// Places of values that a field got once more, by the place of the value and the earlier one of the field.
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
    /// The place of an argument that `field`, written in a class, passes on.
    pub(crate) fn add_passed(&mut self, argument: Span, field: Place) -> Place {
        let place = Place(self.spans.len() as u32);
        self.spans.push(argument);
        self.setters.push(self.setter(field));
        place
    }
    /// The place of a value that a field gets by being declared or inherited once more, which does not count as setting it.
    pub(crate) fn add_again(&mut self, value: Place, earlier: Place) -> Place {
        if let Some(known) = self.again.get(&(value, earlier)) {
            return *known;
        }
        let place = self.add_passed(self.span(value), earlier);
        self.again.insert((value, earlier), place);
        place
    }
    /// The place of a value that is given to a field whose name stands at `name`.
    pub(crate) fn add_value(&mut self, value: Span, name: Span) -> Place {
        let name = self.add(name);
        self.add_passed(value, name)
    }
    /// Where the field itself was declared or set last.
    pub(crate) fn setter(&self, place: Place) -> Place {
        self.setters.get(place.0 as usize).copied().unwrap_or(place)
    }
    pub(crate) fn span(&self, place: Place) -> Span {
        let nowhere = Span::new(FileId(0), 0, 0);
        self.spans.get(place.0 as usize).copied().unwrap_or(nowhere)
    }
}

/// What a field is, whatever its value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldDecl {
    pub(crate) name: Symbol,
    pub(crate) ty: TypeId,
    /// Where it was declared.
    pub(crate) decl: Place,
    /// Declared with `field`: may stay unresolved.
    pub(crate) nonconcrete: bool,
}

/// The fields of a class or record, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    pub(crate) fields: Vec<FieldDecl>,
    /// Some field was declared with `field`.
    pub(crate) has_nonconcrete: bool,
    /// Where fields are in the row, by a hash of their names: a power of two of slots, at most half of them filled. A field whose slot
    /// is taken is in the next free one.
    index: Vec<u32>,
}

/// A slot of an index without a field.
const FREE: u32 = u32::MAX;

impl Layout {
    /// The slot where the search for a name starts.
    fn slot(&self, name: Symbol) -> usize {
        (name.0.wrapping_mul(0x9E37_79B9) >> 16) as usize & self.index.len().wrapping_sub(1)
    }

    pub(crate) fn find(&self, name: Symbol) -> Option<usize> {
        let mut slot = self.slot(name);
        // There always is a free slot, but for the layout without fields, which has no slot at all.
        loop {
            let at = *self.index.get(slot)?;
            let field = self.fields.get(at as usize)?;
            if field.name == name {
                return Some(at as usize);
            }
            slot = (slot + 1) & (self.index.len() - 1);
        }
    }

    /// Adds a field of a name it does not have.
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

    /// Puts the field at `at` into the index.
    fn enter(&mut self, at: usize) {
        let mut slot = self.slot(self.fields[at].name);
        while self.index[slot] != FREE {
            slot = (slot + 1) & (self.index.len() - 1);
        }
        self.index[slot] = at as u32;
    }
}

/// Two layouts put together: the result, and where each field of the second one is in it.
#[derive(Clone, Debug)]
pub(crate) struct Joined {
    pub(crate) layout: Arc<Layout>,
    pub(crate) positions: Arc<[u32]>,
}

/// The layouts joined are kept alive, as their addresses are the key.
type Kept = (Arc<Layout>, Arc<Layout>);

/// Layouts that were put together before.
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

/// A list of classes, each distinct one stored once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct ClassList(u32);

impl ClassList {
    pub(crate) const EMPTY: ClassList = ClassList(0);
}

/// All lists of classes.
#[derive(Debug)]
pub(crate) struct ClassLists {
    lists: Vec<Box<[ClassId]>>,
    /// The type of a record with these classes, once it was asked for.
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

    /// `list` with one more class at its end.
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

    /// `list` with the parents of `class` and `class` itself at its end, or the class it then has twice.
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

/// The `defm`s and class values a record came through.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Chain(u32);

impl Chain {
    pub(crate) const EMPTY: Chain = Chain(u32::MAX);
}

/// A place in a chain.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Link {
    pub(crate) span: Span,
    /// Dumps show it: llvm-tblgen forgets those that were passed through a loop or `if`.
    pub(crate) shown: bool,
}

/// All chains: each is a place and the chain it continues.
#[derive(Debug, Default)]
pub(crate) struct Chains {
    links: Vec<(Chain, Link)>,
    known: FxHashMap<(Chain, Link), Chain>,
}

impl Chains {
    /// `chain` with one more place, farther out.
    pub(crate) fn push(&mut self, chain: Chain, link: Link) -> Chain {
        *self.known.entry((chain, link)).or_insert_with(|| {
            self.links.push((chain, link));
            Chain(self.links.len() as u32 - 1)
        })
    }
    /// The places, the innermost first.
    pub(crate) fn spans(&self, chain: Chain) -> Vec<Span> {
        self.links(chain).map(|link| link.span).collect()
    }
    /// The places that dumps show, the innermost first.
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
