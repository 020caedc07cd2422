//! The operations of the M format (`docs/machine/memory.md`).

use npu_mc::raw::MemOp;
use npu_mc::{Reg, SReg, VReg};

/// The data movement of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    Load(Load),
    Store(Store),
}

/// The destination of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// A scalar register.
    Scalar(Extension),
    /// A vector register, under the lane mask.
    Vector(Extension),
    /// A scalar register, which becomes 0: the hardware has no gather.
    Gather,
}

/// The source of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    /// A scalar register.
    Scalar,
    /// A vector register; in the scratchpad under the lane mask.
    Vector,
    /// A scalar register; in the scratchpad it is stored to sixteen words.
    Splat,
}

/// The extension of a loaded value to a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extension {
    Signed8,
    Signed16,
    Unsigned8,
    Unsigned16,
    /// The whole word.
    Word,
}

impl Extension {
    /// Returns the register value for a loaded word.
    #[inline(always)]
    pub const fn apply(self, word: u32) -> u32 {
        match self {
            Extension::Signed8 => word as i8 as u32,
            Extension::Signed16 => word as i16 as u32,
            Extension::Unsigned8 => word & 0xff,
            Extension::Unsigned16 => word & 0xffff,
            Extension::Word => word,
        }
    }
}

/// Returns the effect of an operation.
pub(crate) const fn moves(op: MemOp) -> Move {
    match op {
        MemOp::Load32S8 => Move::Load(Load::Scalar(Extension::Signed8)),
        MemOp::Load32S16 => Move::Load(Load::Scalar(Extension::Signed16)),
        MemOp::Load32U8 => Move::Load(Load::Scalar(Extension::Unsigned8)),
        MemOp::Load32U16 => Move::Load(Load::Scalar(Extension::Unsigned16)),
        MemOp::Load32 | MemOp::Load32U | MemOp::Load64 => Move::Load(Load::Scalar(Extension::Word)),
        MemOp::LoadV16i8 => Move::Load(Load::Vector(Extension::Signed8)),
        MemOp::LoadV16i16 => Move::Load(Load::Vector(Extension::Signed16)),
        MemOp::LoadV16u8 => Move::Load(Load::Vector(Extension::Unsigned8)),
        MemOp::LoadV16u16 => Move::Load(Load::Vector(Extension::Unsigned16)),
        MemOp::LoadV16i32 | MemOp::LoadV16u32 | MemOp::LoadV8i64 => Move::Load(Load::Vector(Extension::Word)),
        MemOp::LoadgI8
        | MemOp::LoadgI16
        | MemOp::LoadgI32
        | MemOp::LoadgI64
        | MemOp::LoadgU8
        | MemOp::LoadgU16
        | MemOp::LoadgU32 => Move::Load(Load::Gather),
        MemOp::Store328 | MemOp::Store3216 | MemOp::Store32 | MemOp::Store64 => Move::Store(Store::Scalar),
        MemOp::StoreV16i8 | MemOp::StoreV16i16 | MemOp::StoreV16i32 | MemOp::StoreV8i64 => Move::Store(Store::Vector),
        MemOp::Stores8 | MemOp::Stores16 | MemOp::Stores32 => Move::Store(Store::Splat),
    }
}

/// The number of bytes of the scalar or of a lane.
pub(crate) const fn access_size(op: MemOp) -> u32 {
    op.info().access_bytes as u32
}

/// Returns whether scalars or lanes have 64 bits. No unit supports them: such stores do nothing,
/// such loads take the low word.
pub(crate) const fn is_double(op: MemOp) -> bool {
    access_size(op) > 4
}

/// The alignment that main memory checks, in bytes.
pub(crate) const fn alignment(op: MemOp) -> u32 {
    op.info().alignment as u32
}

/// Returns whether an opcode is in the store half of the opcode space; the hardware uses this for
/// unassigned opcodes too.
pub(crate) const fn is_store(op: u8) -> bool {
    op >= 32
}

/// Returns whether an operation moves a vector register.
pub(crate) const fn is_vector_access(op: MemOp) -> bool {
    match moves(op) {
        Move::Load(Load::Vector(_)) | Move::Store(Store::Vector) => true,
        Move::Load(Load::Scalar(_) | Load::Gather) | Move::Store(Store::Scalar | Store::Splat) => false,
    }
}

/// Returns the register with this number that an operation loads or stores.
pub(crate) const fn moved(op: MemOp, number: u8) -> Reg {
    if is_vector_access(op) {
        Reg::V(VReg::of_field(number))
    } else {
        Reg::S(SReg::of_field(number))
    }
}

/// Returns the extension of the lanes of a vector load, and `Word` for other operations.
pub(crate) const fn lane_extension(op: MemOp) -> Extension {
    match moves(op) {
        Move::Load(Load::Vector(extension)) => extension,
        Move::Load(Load::Scalar(_) | Load::Gather) | Move::Store(_) => Extension::Word,
    }
}
