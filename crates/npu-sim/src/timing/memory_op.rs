//! The operations of the load/store unit.

use super::decode::NO_REGISTER;

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemoryKind {
    Load,
    Store,
    Flush,
    Invalidate,
    IoRead,
    IoWrite,
}

/// An operation for the load/store unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryOp {
    /// The first cycle in which it can access the cache.
    pub from: u64,
    pub line: u32,
    pub kind: MemoryKind,
    pub register: u8,
}

impl MemoryOp {
    pub const NONE: MemoryOp = MemoryOp {
        from: u64::MAX,
        line: 0,
        kind: MemoryKind::Load,
        register: NO_REGISTER,
    };
}
