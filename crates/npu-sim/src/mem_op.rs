//! The operations of the M format: what they move (`docs/machine/memory.md`).

use npu_mc::raw::MemOp;
use npu_mc::{Reg, SReg, VReg};

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    Load(Load),
    Store(Store),
}

/// What a load fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// A scalar register.
    Scalar(Extension),
    /// A vector register, under the lane mask.
    Vector(Extension),
    /// A scalar register, which becomes 0: there is no gather.
    Gather,
}

/// What a store takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    /// A scalar register.
    Scalar,
    /// A vector register, in the scratchpad under the lane mask.
    Vector,
    /// A scalar register, in the scratchpad for sixteen words.
    Splat,
}

/// How the low bytes of a loaded word fill a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extension {
    Signed8,
    Signed16,
    Unsigned8,
    Unsigned16,
    /// All of it.
    Word,
}

impl Extension {
    /// The register for this word.
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

/// What the operation does.
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

/// Bytes of a scalar or a lane.
pub(crate) const fn access_size(op: MemOp) -> u32 {
    op.info().access_bytes as u32
}

/// Whether a scalar or a lane has 64 bits, which no unit moves: such stores do nothing, such loads take the low word.
pub(crate) const fn is_double(op: MemOp) -> bool {
    access_size(op) > 4
}

/// Alignment that is checked in main memory.
pub(crate) const fn alignment(op: MemOp) -> u32 {
    op.info().alignment as u32
}

/// Whether a number is in the store half of the opcode space, which the hardware goes by whether it has the operation or not.
pub(crate) const fn is_store(op: u8) -> bool {
    op >= 32
}

/// Whether an operation moves a vector register, and is masked.
pub(crate) const fn is_vector_access(op: MemOp) -> bool {
    match moves(op) {
        Move::Load(Load::Vector(_)) | Move::Store(Store::Vector) => true,
        Move::Load(Load::Scalar(_) | Load::Gather) | Move::Store(Store::Scalar | Store::Splat) => false,
    }
}

/// The register that an operation loads or stores, from its number.
pub(crate) const fn moved(op: MemOp, number: u8) -> Reg {
    if is_vector_access(op) {
        Reg::V(VReg::of_field(number))
    } else {
        Reg::S(SReg::of_field(number))
    }
}

/// How the lanes of a vector load are extended; all of the word for others.
pub(crate) const fn lane_extension(op: MemOp) -> Extension {
    match moves(op) {
        Move::Load(Load::Vector(extension)) => extension,
        Move::Load(Load::Scalar(_) | Load::Gather) | Move::Store(_) => Extension::Word,
    }
}
