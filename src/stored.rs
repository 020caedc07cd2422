//! Compiled code as bytes, and back: what a cache of it keeps.
//!
//! # Contract
//!
//! [`CompiledCode::from_bytes`] of what [`CompiledCode::to_bytes`] gave is equal to the original in every field. The bytes are for the same build of
//! the compiler alone: they have no version and no checksum, which whoever keeps them adds. Reading does not panic on any bytes, and takes memory in
//! proportion to their number; but what is not damaged so badly that it cannot be read is taken as it is.
//!
//! The types of Cranelift have no form of their own unless `cranelift-codegen` is built with serde, which would be at the cost of all that do not use
//! a cache. So every type has its form here; structs are taken apart and put together with all fields, so that a new one is not forgotten.

use crate::code::{
    CallSite, CompiledCode, DebugTagPos, DebugTags, ExceptionHandler, FrameLayout, LabelLoc, LabelRange, Reloc,
    RelocTarget, SrcLocRange, StackMap, StackMapEntry, Trap,
};
use crate::passes::Stage;
use crate::remarks::{LoopOutcome, LoopRemark, Reason, Vectorised};
use cranelift_codegen::entity::EntityRef;
use cranelift_codegen::ir::{
    Block, DebugTag, ExceptionTag, ExternalName, Inst, KnownSymbol, LibCall, Opcode, SourceLoc, StackSlot, TrapCode,
    Type, UserExternalNameRef, ValueLabel, types,
};
use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroU8;

/// Bytes that are not compiled code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotCode {
    /// How many bytes were read before it showed.
    pub offset: usize,
}

impl fmt::Display for NotCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the bytes are not compiled code: fault at offset {}", self.offset)
    }
}

impl std::error::Error for NotCode {}

impl CompiledCode {
    /// All of it as bytes, the same for equal code.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.put(&mut out);
        out
    }

    /// The code that was made into these bytes by the same compiler.
    ///
    /// # Errors
    ///
    /// If they are not of this form, or there are more.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, NotCode> {
        let mut input = Input { rest: bytes };
        let code = Self::take(&mut input).filter(|_| input.rest.is_empty());
        code.ok_or(NotCode {
            offset: bytes.len() - input.rest.len(),
        })
    }
}

/// Bytes that are read from the start.
struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(bytes)
    }

    /// How many elements follow. Each takes a byte at least, so no more memory is kept ready than there are bytes.
    fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(u32::take(self)?).ok()?;
        (count <= self.rest.len()).then_some(count)
    }
}

/// What has a form in bytes.
trait Stored: Sized {
    fn put(&self, out: &mut Vec<u8>);
    fn take(input: &mut Input<'_>) -> Option<Self>;
}

macro_rules! numbers {
    ($($ty:ty)*) => {
        $(impl Stored for $ty {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn take(input: &mut Input<'_>) -> Option<Self> {
                let bytes = input.bytes(size_of::<Self>())?;
                Some(Self::from_le_bytes(bytes.try_into().ok()?))
            }
        })*
    };
}

numbers! { u8 u32 u64 usize i32 i64 }

impl Stored for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
    fn take(input: &mut Input<'_>) -> Option<Self> {
        match u8::take(input)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

/// A count, as 32 bits. Code has never so much of anything that it does not fit; if it had, reading would refuse it.
fn put_count(count: usize, out: &mut Vec<u8>) {
    u32::try_from(count).unwrap_or(u32::MAX).put(out);
}

/// A text or bytes.
fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_count(bytes.len(), out);
    out.extend_from_slice(bytes);
}

fn take_text<'a>(input: &mut Input<'a>) -> Option<&'a str> {
    let count = input.count()?;
    std::str::from_utf8(input.bytes(count)?).ok()
}

impl Stored for String {
    fn put(&self, out: &mut Vec<u8>) {
        put_bytes(self.as_bytes(), out);
    }
    fn take(input: &mut Input<'_>) -> Option<Self> {
        take_text(input).map(str::to_owned)
    }
}

impl<T: Stored> Stored for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        put_count(self.len(), out);
        self.iter().for_each(|element| element.put(out));
    }
    fn take(input: &mut Input<'_>) -> Option<Self> {
        (0..input.count()?).map(|_| T::take(input)).collect()
    }
}

impl<T: Stored> Stored for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }
    fn take(input: &mut Input<'_>) -> Option<Self> {
        Some(if bool::take(input)? {
            Some(T::take(input)?)
        } else {
            None
        })
    }
}

impl<A: Stored, B: Stored> Stored for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }
    fn take(input: &mut Input<'_>) -> Option<Self> {
        Some((A::take(input)?, B::take(input)?))
    }
}

/// In the order of the keys.
impl Stored for HashMap<ValueLabel, Vec<LabelRange>> {
    fn put(&self, out: &mut Vec<u8>) {
        let mut labels: Vec<_> = self.iter().collect();
        labels.sort_unstable_by_key(|(label, _)| label.as_u32());
        put_count(labels.len(), out);
        for (label, ranges) in labels {
            label.put(out);
            ranges.put(out);
        }
    }
    fn take(input: &mut Input<'_>) -> Option<Self> {
        Some(Vec::<(ValueLabel, Vec<LabelRange>)>::take(input)?.into_iter().collect())
    }
}

macro_rules! entities {
    ($($ty:ty)*) => {
        $(impl Stored for $ty {
            fn put(&self, out: &mut Vec<u8>) {
                self.as_u32().put(out);
            }
            fn take(input: &mut Input<'_>) -> Option<Self> {
                // The largest number stands for none.
                let number = u32::take(input).filter(|number| *number != u32::MAX)?;
                Some(Self::new(usize::try_from(number).ok()?))
            }
        })*
    };
}

entities! { Inst Block ValueLabel ExceptionTag StackSlot UserExternalNameRef }

/// What is known by its name.
macro_rules! named {
    ($($ty:ty)*) => {
        $(impl Stored for $ty {
            fn put(&self, out: &mut Vec<u8>) {
                self.to_string().put(out);
            }
            fn take(input: &mut Input<'_>) -> Option<Self> {
                take_text(input)?.parse().ok()
            }
        })*
    };
}

named! { Opcode LibCall KnownSymbol Stage }

impl Stored for SourceLoc {
    fn put(&self, out: &mut Vec<u8>) {
        self.bits().put(out);
    }
    fn take(input: &mut Input<'_>) -> Option<Self> {
        u32::take(input).map(Self::new)
    }
}

impl Stored for TrapCode {
    fn put(&self, out: &mut Vec<u8>) {
        self.as_raw().get().put(out);
    }
    fn take(input: &mut Input<'_>) -> Option<Self> {
        NonZeroU8::new(u8::take(input)?).map(Self::from_raw)
    }
}

/// The types of which all others have one or several; a type is stored as the place here and the number of lanes.
const LANES: [Type; 10] = [
    types::INVALID,
    types::I8,
    types::I16,
    types::I32,
    types::I64,
    types::I128,
    types::F16,
    types::F32,
    types::F64,
    types::F128,
];

impl Stored for Type {
    fn put(&self, out: &mut Vec<u8>) {
        let dynamic = self.is_dynamic_vector();
        let fixed = if dynamic { self.dynamic_to_vector() } else { None }.unwrap_or(*self);
        let place = LANES.iter().position(|lane| *lane == fixed.lane_type());
        // There is no other type; reading would refuse it.
        place.unwrap_or(LANES.len()).put(out);
        fixed.lane_count().put(out);
        dynamic.put(out);
    }
    fn take(input: &mut Input<'_>) -> Option<Self> {
        let lane = *LANES.get(usize::take(input)?)?;
        let count = u32::take(input)?;
        let fixed = if count == 1 { lane } else { lane.by(count)? };
        match bool::take(input)? {
            true => fixed.is_vector().then(|| fixed.vector_to_dynamic()).flatten(),
            false => Some(fixed),
        }
    }
}

impl Stored for npu_mc::Reg {
    fn put(&self, out: &mut Vec<u8>) {
        (self.file() == npu_mc::RegFile::Vector).put(out);
        self.number().put(out);
    }
    fn take(input: &mut Input<'_>) -> Option<Self> {
        let file = match bool::take(input)? {
            true => npu_mc::RegFile::Vector,
            false => npu_mc::RegFile::Scalar,
        };
        Self::new(file, u8::take(input)?)
    }
}

impl Stored for npu_mc::reloc::Reloc {
    fn put(&self, out: &mut Vec<u8>) {
        self.number().put(out);
    }
    fn take(input: &mut Input<'_>) -> Option<Self> {
        Self::from_number(u8::take(input)?.into())
    }
}

macro_rules! structs {
    ($($ty:ident { $($field:ident)* })*) => {
        $(impl Stored for $ty {
            fn put(&self, out: &mut Vec<u8>) {
                let Self { $($field,)* } = self;
                $($field.put(out);)*
            }
            fn take(input: &mut Input<'_>) -> Option<Self> {
                Some(Self { $($field: Stored::take(input)?,)* })
            }
        })*
    };
}

structs! {
    CompiledCode {
        bytes pool_start relocs traps srclocs insts value_labels_ranges stack_maps call_sites debug_tags frame block_starts stages loops
    }
    Reloc { offset kind target addend }
    Trap { offset code inst srcloc }
    SrcLocRange { start end loc }
    StackMap { return_offset entries }
    StackMapEntry { ty offset }
    CallSite { return_offset popped handlers }
    DebugTags { offset pos tags }
    LabelRange { start end loc }
    FrameLayout {
        size incoming_args tail_args popped saved spills stack_slots outgoing_args frame_pointer
    }
    LoopRemark { header srcloc outcome }
    Vectorised { lanes rounds reductions unaligned_loads alignment_check overlap_checks scalar_cost vector_cost }
}

/// An enum is stored as a number, and the fields of the variant.
macro_rules! enums {
    ($($ty:ident { $($number:literal = $variant:ident $(($($field:ident),*))? $({$($named:ident),*})?,)* })*) => {
        $(impl Stored for $ty {
            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$variant $(($($field),*))? $({$($named),*})? => {
                        out.push($number);
                        $($($field.put(out);)*)?
                        $($($named.put(out);)*)?
                    })*
                }
            }
            fn take(input: &mut Input<'_>) -> Option<Self> {
                match u8::take(input)? {
                    $($number => {
                        $($(let $field = Stored::take(input)?;)*)?
                        $($(let $named = Stored::take(input)?;)*)?
                        Some(Self::$variant $(($($field),*))? $({$($named),*})?)
                    })*
                    _ => None,
                }
            }
        })*
    };
}

enums! {
    RelocTarget { 0 = Name(name), 1 = Function, 2 = Runtime(routine), }
    ExceptionHandler { 0 = Tag(tag, offset), 1 = Default(offset), 2 = Context(offset), }
    DebugTagPos { 0 = Post, 1 = Pre, }
    LabelLoc { 0 = Reg(reg), 1 = Stack(offset), }
    DebugTag { 0 = User(number), 1 = StackSlot(slot), }
    LoopOutcome { 0 = Vectorised(how), 1 = Scalar(reason), }
    Reason {
        0 = NotCounted,
        1 = Counter(ty, step),
        2 = Branches(block),
        3 = Effect(opcode),
        4 = Operation(opcode, ty),
        5 = Carried(ty),
        6 = FloatReduction(opcode),
        7 = ShiftAmount(opcode),
        8 = MixedWidths(opcode),
        9 = Address(opcode),
        10 = Stride(bytes, element),
        11 = SamePlace,
        12 = Element(ty),
        13 = Memory(opcode),
        14 = Distance(bytes),
        15 = Overlap(pairs),
        16 = Alignment(opcode),
        17 = NoArrays,
        18 = FewRounds(most),
        19 = ManyLoops(loops),
        20 = Cost { vector, scalar },
    }
}

/// The name of a routine of the runtime.
impl Stored for &'static str {
    fn put(&self, out: &mut Vec<u8>) {
        put_bytes(self.as_bytes(), out);
    }
    fn take(input: &mut Input<'_>) -> Option<Self> {
        crate::runtime::static_name(take_text(input)?)
    }
}

impl Stored for ExternalName {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::User(name) => {
                out.push(0);
                name.put(out);
            }
            Self::TestCase(name) => {
                out.push(1);
                put_bytes(name.raw(), out);
            }
            Self::LibCall(call) => {
                out.push(2);
                call.put(out);
            }
            Self::KnownSymbol(symbol) => {
                out.push(3);
                symbol.put(out);
            }
        }
    }
    fn take(input: &mut Input<'_>) -> Option<Self> {
        Some(match u8::take(input)? {
            0 => Self::User(Stored::take(input)?),
            // Printing a name wants text.
            1 => Self::testcase(take_text(input)?),
            2 => Self::LibCall(Stored::take(input)?),
            3 => Self::KnownSymbol(Stored::take(input)?),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comes_back<T: Stored + PartialEq + fmt::Debug>(value: T) {
        let mut bytes = Vec::new();
        value.put(&mut bytes);
        let mut input = Input { rest: &bytes };
        assert_eq!(T::take(&mut input), Some(value));
        assert!(input.rest.is_empty());
        for cut in 0..bytes.len() {
            assert_eq!(T::take(&mut Input { rest: &bytes[..cut] }), None);
        }
    }

    #[test]
    fn types_come_back() {
        for lane in LANES {
            comes_back(lane);
            for lanes in [2, 4, 8, 16, 64, 256] {
                lane.by(lanes).into_iter().for_each(comes_back);
            }
        }
        comes_back(types::I32X4XN);
    }

    #[test]
    fn the_number_for_none_is_no_entity() {
        let largest = u32::MAX.to_le_bytes();
        assert_eq!(Inst::take(&mut Input { rest: &largest }), None);
        comes_back(Inst::from_u32(u32::MAX - 1));
    }

    #[test]
    fn names_come_back() {
        Opcode::all().iter().copied().for_each(comes_back);
        LibCall::all_libcalls().iter().copied().for_each(comes_back);
        Stage::ALL.iter().copied().for_each(comes_back);
        comes_back(KnownSymbol::CoffTlsIndex);
        comes_back(ExternalName::testcase("name"));
        comes_back(ExternalName::User(UserExternalNameRef::new(7)));
        for routine in crate::runtime::Routine::ALL {
            comes_back(RelocTarget::Runtime(routine.name()));
        }
    }

    #[test]
    fn remarks_come_back() {
        comes_back(LoopRemark {
            header: Block::new(3),
            srcloc: SourceLoc::new(9),
            outcome: LoopOutcome::Scalar(Reason::Cost { vector: 7, scalar: 5 }),
        });
        comes_back(LoopOutcome::Scalar(Reason::Operation(Opcode::Fma, types::F32X16)));
        comes_back(Some(Vectorised {
            lanes: 16,
            rounds: Some(1 << 40),
            reductions: 1,
            unaligned_loads: 2,
            alignment_check: true,
            overlap_checks: 3,
            scalar_cost: 4,
            vector_cost: 5,
        }));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let fault = |bytes: &[u8]| CompiledCode::from_bytes(bytes).err().map(|fault| fault.offset);
        assert_eq!(fault(&[]), Some(0));
        // More bytes than there are.
        assert_eq!(fault(&[0xff; 8]), Some(4));
        let mut bytes = CompiledCode::default().to_bytes();
        assert_eq!(fault(&bytes), None);
        bytes.push(0);
        assert_eq!(fault(&bytes), Some(bytes.len() - 1));
    }
}
