//! The values of variables during resolution, and a cache of resolved values.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::shape::Layout;
use crate::strings::Symbol;
use crate::value::{RecordId, ValueId, name_bit};
use crate::world::Proto;

/// The values of variables.
#[derive(Default)]
pub(crate) struct Resolver {
    /// Template arguments, loop variables and `NAME`. The list is short enough for a linear search.
    pub(crate) map: SmallVec<[(Symbol, ValueId); 6]>,
    /// The set of variables that resolution may substitute, see [`name_bit`]; all bits if it may do
    /// more.
    pub(crate) reach: u64,
    /// The fields of the record that is being finished, and their current values.
    pub(crate) layout: Option<Arc<Layout>>,
    pub(crate) fields: Vec<ValueId>,
    /// The name of that record, because the record may refer to itself.
    pub(crate) self_name: Option<(Symbol, RecordId)>,
    /// Whether this is the last resolution, in which unknown names are errors.
    pub(crate) is_final: bool,
    /// Whether references to bits of unset fields are kept instead of `?`. It is set when a record
    /// is resolved against its own fields.
    pub(crate) keep_unset: bool,
    pub(crate) shadow: SmallVec<[Symbol; 4]>,
    /// Identifies the cache entries of this resolver; 0 before the first use.
    pub(crate) stamp: u32,
    /// The fields that are being resolved, to detect cycles.
    pub(crate) stack: SmallVec<[Symbol; 8]>,
    /// Whether a value became `?`, possibly after a reported fault. From then on, all results are
    /// cached so that no fault is reported twice.
    pub(crate) has_unset: bool,
    /// The number of cycles that were cut. Results that depend on a cut are not cached.
    pub(crate) cuts: u32,
}

/// The result of an operator's body for an element.
#[derive(Clone, Copy)]
struct Applied {
    body: ValueId,
    item: ValueId,
    is_final: bool,
    value: ValueId,
}

/// A cache of resolved values. An entry is valid for the resolver with the same stamp. An evicted
/// value is resolved again.
pub(crate) struct Cache {
    pub(crate) slots: Vec<(ValueId, u32, ValueId)>,
    pub(crate) stamp: u32,
    /// Results of bodies for elements: long lists of records often apply the same bodies to few
    /// distinct elements.
    applied: Vec<Applied>,
    /// Whether the result of a body depends only on the element that this variable stands for.
    pub(crate) pure: FxHashMap<(ValueId, ValueId), bool>,
}

const CACHE_SIZE: usize = 1 << 11;
const APPLIED_SIZE: usize = 1 << 12;

impl Default for Cache {
    fn default() -> Cache {
        Cache {
            slots: vec![(ValueId::UNSET, 0, ValueId::UNSET); CACHE_SIZE],
            stamp: 0,
            applied: vec![
                Applied {
                    body: ValueId::UNSET,
                    item: ValueId::UNSET,
                    is_final: false,
                    value: ValueId::UNSET,
                };
                APPLIED_SIZE
            ],
            pure: FxHashMap::default(),
        }
    }
}

impl Cache {
    fn applied_slot(body: ValueId, item: ValueId) -> usize {
        let mixed = (u64::from(body.0) | u64::from(item.0) << 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> 40) as usize & (APPLIED_SIZE - 1)
    }
    /// Returns the cached result of a body for an element. The body determines the name of its
    /// variable.
    pub(crate) fn applied(&self, body: ValueId, item: ValueId, is_final: bool) -> Option<ValueId> {
        let slot = &self.applied[Self::applied_slot(body, item)];
        ((slot.body, slot.item, slot.is_final) == (body, item, is_final)).then_some(slot.value)
    }
    pub(crate) fn put_applied(&mut self, body: ValueId, item: ValueId, is_final: bool, value: ValueId) {
        self.applied[Self::applied_slot(body, item)] = Applied {
            body,
            item,
            is_final,
            value,
        };
    }
    pub(crate) fn next_stamp(&mut self) -> u32 {
        self.stamp = self.stamp.wrapping_add(1).max(1);
        self.stamp
    }
    fn slot(id: ValueId, stamp: u32) -> usize {
        let mixed = (u64::from(id.0) | u64::from(stamp) << 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> 40) as usize & (CACHE_SIZE - 1)
    }
    pub(crate) fn get(&self, id: ValueId, stamp: u32) -> Option<ValueId> {
        let slot = &self.slots[Self::slot(id, stamp)];
        (slot.0 == id && slot.1 == stamp).then_some(slot.2)
    }
    #[inline]
    pub(crate) fn put(&mut self, id: ValueId, stamp: u32, value: ValueId) {
        self.slots[Self::slot(id, stamp)] = (id, stamp, value);
    }
}

impl Resolver {
    pub(crate) fn new() -> Resolver {
        Resolver::default()
    }
    /// Creates a resolver of a record against its own fields. `fields` is a buffer.
    pub(crate) fn of_record(proto: &Proto, is_final: bool, mut fields: Vec<ValueId>) -> Resolver {
        fields.clear();
        fields.extend(proto.cells.iter().map(|cell| cell.value));
        Resolver {
            layout: Some(Arc::clone(&proto.layout)),
            fields,
            reach: u64::MAX,
            is_final,
            keep_unset: true,
            ..Resolver::default()
        }
    }
    /// Sets the value of a variable. It invalidates all cached results.
    pub(crate) fn set(&mut self, name: Symbol, value: ValueId) {
        match self.map.iter_mut().find(|one| one.0 == name) {
            Some(one) => one.1 = value,
            None => self.map.push((name, value)),
        }
        self.reach |= name_bit(name);
        self.stamp = 0;
    }
    pub(crate) fn extend(&mut self, all: impl IntoIterator<Item = (Symbol, ValueId)>) {
        for (name, value) in all {
            self.set(name, value);
        }
    }
    /// Creates a resolver that is part of the last resolution if `is_final` is set.
    pub(crate) fn last(is_final: bool) -> Resolver {
        Resolver {
            reach: if is_final { u64::MAX } else { 0 },
            is_final,
            ..Resolver::default()
        }
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.map.is_empty() && self.fields.is_empty() && !self.is_final
    }
}
