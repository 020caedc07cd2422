//! What variables stand for while values are resolved, and a cache of resolved values.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::shape::Layout;
use crate::strings::Symbol;
use crate::value::{RecordId, ValueId, name_bit};
use crate::world::Proto;

/// What variables stand for.
#[derive(Default)]
pub(crate) struct Resolver {
    /// Template arguments, loop variables, `NAME`: few enough to look through.
    pub(crate) map: SmallVec<[(Symbol, ValueId); 6]>,
    /// The variables that resolution may replace, see [`name_bit`]; all of them if it does more than that.
    pub(crate) reach: u64,
    /// The fields of the record being finished, and what they are by now.
    pub(crate) layout: Option<Arc<Layout>>,
    pub(crate) fields: Vec<ValueId>,
    /// The name of that record, which it may mention itself.
    pub(crate) self_name: Option<(Symbol, RecordId)>,
    /// No later resolution will follow: unknown names are errors now.
    pub(crate) is_final: bool,
    /// Bits that would become `?` stay references (resolution against a record's own fields).
    pub(crate) keep_unset: bool,
    pub(crate) shadow: SmallVec<[Symbol; 4]>,
    /// Tells the entries of the cache apart; 0 before the first use.
    pub(crate) stamp: u32,
    /// Fields being resolved, to find cycles.
    pub(crate) stack: SmallVec<[Symbol; 8]>,
    /// Something became `?`, which may have been reported as a fault: from then on everything is remembered.
    pub(crate) has_unset: bool,
    /// Counts cycles that were cut; results computed meanwhile hold only there and are not cached.
    pub(crate) cuts: u32,
}

/// What an operator's body gave for an element.
#[derive(Clone, Copy)]
struct Applied {
    body: ValueId,
    item: ValueId,
    is_final: bool,
    value: ValueId,
}

/// Values resolved lately. A value that is found was resolved by the resolver of the same stamp; one that was pushed out is resolved
/// again.
pub(crate) struct Cache {
    pub(crate) slots: Vec<(ValueId, u32, ValueId)>,
    pub(crate) stamp: u32,
    /// Lists of many records are made from a few elements by the same bodies.
    applied: Vec<Applied>,
    /// Whether what a body gives depends on the element alone, for which this variable stands.
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
    /// What a body, which names its variable, gave for an element.
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
    /// Resolution of a record against its own fields; `fields` is a buffer.
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
    /// What was resolved before does not count any more.
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
    /// Resolution for the last time, or as part of such a one.
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
