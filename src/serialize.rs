//! Serialization of compiled code, for caches.
//!
//! # Contract
//!
//! [`CompiledCode::from_bytes`] round-trips the result of [`CompiledCode::to_bytes`] in every
//! field. The format is only valid for the same build of the compiler: it has no version and no
//! checksum, and a cache has to add them. Reading never panics, and its memory use is proportional
//! to the length of the input. Damaged input that can still be parsed is not detected.
//!
//! The types of Cranelift implement serde only if `cranelift-codegen` is built with it, at the cost
//! of all users without a cache. So this module has its own format for every type. Structs are
//! destructured and constructed with all fields, so that no new field is forgotten.

use crate::code::{
    CallSite, CompiledCode, DebugTagPos, DebugTags, ExceptionHandler, FrameLayout, LabelLoc, LabelRange, Reloc,
    RelocTarget, SrcLocRange, StackMap, StackMapEntry, Trap,
};
use crate::passes::Stage;
use crate::remarks::{LoopOutcome, LoopRemark, Reason, Vectorized};
use cranelift_codegen::entity::EntityRef;
use cranelift_codegen::ir::{
    Block, DebugTag, ExceptionTag, ExternalName, Inst, KnownSymbol, LibCall, Opcode, SourceLoc, StackSlot, TrapCode,
    Type, UserExternalNameRef, ValueLabel, types,
};
use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroU8;

/// The error for bytes that are not serialized code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotCode {
    /// The number of bytes read before the error.
    pub offset: usize,
}

impl fmt::Display for NotCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the bytes are not compiled code: fault at offset {}", self.offset)
    }
}

impl std::error::Error for NotCode {}

impl CompiledCode {
    /// Serializes the code. Equal code gives equal bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }

    /// Deserializes code that the same build of the compiler serialized.
    ///
    /// # Errors
    ///
    /// [`NotCode`] if the bytes are malformed, or if bytes are left over.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, NotCode> {
        let mut input = Input { remaining: bytes };
        let code = Self::read(&mut input).filter(|_| input.remaining.is_empty());
        code.ok_or(NotCode {
            offset: bytes.len() - input.remaining.len(),
        })
    }
}

/// A reader of bytes.
struct Input<'a> {
    remaining: &'a [u8],
}

impl<'a> Input<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.remaining.split_at_checked(count)?;
        self.remaining = rest;
        Some(bytes)
    }

    /// Reads a number of elements. Each element has at least one byte, so a larger number than the
    /// remaining bytes is an error and reserves no memory.
    fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(u32::read(self)?).ok()?;
        (count <= self.remaining.len()).then_some(count)
    }
}

/// A type with a serialized form.
trait Serialize: Sized {
    fn write(&self, out: &mut Vec<u8>);
    fn read(input: &mut Input<'_>) -> Option<Self>;
}

macro_rules! numbers {
    ($($ty:ty)*) => {
        $(impl Serialize for $ty {
            fn write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn read(input: &mut Input<'_>) -> Option<Self> {
                let bytes = input.bytes(size_of::<Self>())?;
                Some(Self::from_le_bytes(bytes.try_into().ok()?))
            }
        })*
    };
}

numbers! { u8 u32 u64 usize i32 i64 }

impl Serialize for bool {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
    fn read(input: &mut Input<'_>) -> Option<Self> {
        match u8::read(input)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

/// Writes a count as 32 bits. No count in compiled code exceeds them; if one did, reading would
/// fail.
fn write_count(count: usize, out: &mut Vec<u8>) {
    u32::try_from(count).unwrap_or(u32::MAX).write(out);
}

/// Writes text or bytes.
fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    write_count(bytes.len(), out);
    out.extend_from_slice(bytes);
}

fn read_text<'a>(input: &mut Input<'a>) -> Option<&'a str> {
    let count = input.count()?;
    std::str::from_utf8(input.bytes(count)?).ok()
}

impl Serialize for String {
    fn write(&self, out: &mut Vec<u8>) {
        write_bytes(self.as_bytes(), out);
    }
    fn read(input: &mut Input<'_>) -> Option<Self> {
        read_text(input).map(str::to_owned)
    }
}

impl<T: Serialize> Serialize for Vec<T> {
    fn write(&self, out: &mut Vec<u8>) {
        write_count(self.len(), out);
        self.iter().for_each(|element| element.write(out));
    }
    fn read(input: &mut Input<'_>) -> Option<Self> {
        (0..input.count()?).map(|_| T::read(input)).collect()
    }
}

impl<T: Serialize> Serialize for Option<T> {
    fn write(&self, out: &mut Vec<u8>) {
        self.is_some().write(out);
        if let Some(value) = self {
            value.write(out);
        }
    }
    fn read(input: &mut Input<'_>) -> Option<Self> {
        Some(if bool::read(input)? {
            Some(T::read(input)?)
        } else {
            None
        })
    }
}

impl<A: Serialize, B: Serialize> Serialize for (A, B) {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
        self.1.write(out);
    }
    fn read(input: &mut Input<'_>) -> Option<Self> {
        Some((A::read(input)?, B::read(input)?))
    }
}

/// Entries are in the order of the keys.
impl Serialize for HashMap<ValueLabel, Vec<LabelRange>> {
    fn write(&self, out: &mut Vec<u8>) {
        let mut labels: Vec<_> = self.iter().collect();
        labels.sort_unstable_by_key(|(label, _)| label.as_u32());
        write_count(labels.len(), out);
        for (label, ranges) in labels {
            label.write(out);
            ranges.write(out);
        }
    }
    fn read(input: &mut Input<'_>) -> Option<Self> {
        Some(Vec::<(ValueLabel, Vec<LabelRange>)>::read(input)?.into_iter().collect())
    }
}

macro_rules! entities {
    ($($ty:ty)*) => {
        $(impl Serialize for $ty {
            fn write(&self, out: &mut Vec<u8>) {
                self.as_u32().write(out);
            }
            fn read(input: &mut Input<'_>) -> Option<Self> {
                // Entities reserve the largest number for `None`.
                let number = u32::read(input).filter(|number| *number != u32::MAX)?;
                Some(Self::new(usize::try_from(number).ok()?))
            }
        })*
    };
}

entities! { Inst Block ValueLabel ExceptionTag StackSlot UserExternalNameRef }

/// Types that are serialized by name.
macro_rules! named {
    ($($ty:ty)*) => {
        $(impl Serialize for $ty {
            fn write(&self, out: &mut Vec<u8>) {
                self.to_string().write(out);
            }
            fn read(input: &mut Input<'_>) -> Option<Self> {
                read_text(input)?.parse().ok()
            }
        })*
    };
}

named! { Opcode LibCall KnownSymbol Stage }

impl Serialize for SourceLoc {
    fn write(&self, out: &mut Vec<u8>) {
        self.bits().write(out);
    }
    fn read(input: &mut Input<'_>) -> Option<Self> {
        u32::read(input).map(Self::new)
    }
}

impl Serialize for TrapCode {
    fn write(&self, out: &mut Vec<u8>) {
        self.as_raw().get().write(out);
    }
    fn read(input: &mut Input<'_>) -> Option<Self> {
        NonZeroU8::new(u8::read(input)?).map(Self::from_raw)
    }
}

/// The lane types. A type is serialized as an index into this list and a number of lanes.
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

impl Serialize for Type {
    fn write(&self, out: &mut Vec<u8>) {
        let dynamic = self.is_dynamic_vector();
        let fixed = if dynamic { self.dynamic_to_vector() } else { None }.unwrap_or(*self);
        let index = LANES.iter().position(|lane| *lane == fixed.lane_type());
        // Any other type would be an error when it is read.
        index.unwrap_or(LANES.len()).write(out);
        fixed.lane_count().write(out);
        dynamic.write(out);
    }
    fn read(input: &mut Input<'_>) -> Option<Self> {
        let lane = *LANES.get(usize::read(input)?)?;
        let count = u32::read(input)?;
        let fixed = if count == 1 { lane } else { lane.by(count)? };
        match bool::read(input)? {
            true => fixed.is_vector().then(|| fixed.vector_to_dynamic()).flatten(),
            false => Some(fixed),
        }
    }
}

impl Serialize for npu_mc::Reg {
    fn write(&self, out: &mut Vec<u8>) {
        (self.file() == npu_mc::RegFile::Vector).write(out);
        self.number().write(out);
    }
    fn read(input: &mut Input<'_>) -> Option<Self> {
        let file = match bool::read(input)? {
            true => npu_mc::RegFile::Vector,
            false => npu_mc::RegFile::Scalar,
        };
        Self::new(file, u8::read(input)?)
    }
}

impl Serialize for npu_mc::reloc::Reloc {
    fn write(&self, out: &mut Vec<u8>) {
        self.number().write(out);
    }
    fn read(input: &mut Input<'_>) -> Option<Self> {
        Self::from_number(u8::read(input)?.into())
    }
}

macro_rules! structs {
    ($($ty:ident { $($field:ident)* })*) => {
        $(impl Serialize for $ty {
            fn write(&self, out: &mut Vec<u8>) {
                let Self { $($field,)* } = self;
                $($field.write(out);)*
            }
            fn read(input: &mut Input<'_>) -> Option<Self> {
                Some(Self { $($field: Serialize::read(input)?,)* })
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
    Vectorized { lanes trip_count least_trip_count reductions unaligned_loads alignment_check overlap_checks scalar_cost vector_cost }
}

/// An enum is serialized as a number and the fields of the variant.
macro_rules! enums {
    ($($ty:ident { $($number:literal = $variant:ident $(($($field:ident),*))? $({$($named:ident),*})?,)* })*) => {
        $(impl Serialize for $ty {
            fn write(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$variant $(($($field),*))? $({$($named),*})? => {
                        out.push($number);
                        $($($field.write(out);)*)?
                        $($($named.write(out);)*)?
                    })*
                }
            }
            fn read(input: &mut Input<'_>) -> Option<Self> {
                match u8::read(input)? {
                    $($number => {
                        $($(let $field = Serialize::read(input)?;)*)?
                        $($(let $named = Serialize::read(input)?;)*)?
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
    LoopOutcome { 0 = Vectorized(how), 1 = Scalar(reason), }
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
        11 = SameAddress,
        12 = Element(ty),
        13 = Memory(opcode),
        14 = Distance(bytes),
        15 = Overlap(pairs),
        16 = Alignment(opcode),
        17 = NoArrays,
        18 = TooFewIterations(most),
        19 = ManyLoops(loops),
        20 = Cost { vector, overhead, scalar },
    }
}

/// The name of a routine of the runtime.
impl Serialize for &'static str {
    fn write(&self, out: &mut Vec<u8>) {
        write_bytes(self.as_bytes(), out);
    }
    fn read(input: &mut Input<'_>) -> Option<Self> {
        crate::runtime::static_name(read_text(input)?)
    }
}

impl Serialize for ExternalName {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::User(name) => {
                out.push(0);
                name.write(out);
            }
            Self::TestCase(name) => {
                out.push(1);
                write_bytes(name.raw(), out);
            }
            Self::LibCall(call) => {
                out.push(2);
                call.write(out);
            }
            Self::KnownSymbol(symbol) => {
                out.push(3);
                symbol.write(out);
            }
        }
    }
    fn read(input: &mut Input<'_>) -> Option<Self> {
        Some(match u8::read(input)? {
            0 => Self::User(Serialize::read(input)?),
            // A printed name must be text.
            1 => Self::testcase(read_text(input)?),
            2 => Self::LibCall(Serialize::read(input)?),
            3 => Self::KnownSymbol(Serialize::read(input)?),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trips<T: Serialize + PartialEq + fmt::Debug>(value: T) {
        let mut bytes = Vec::new();
        value.write(&mut bytes);
        let mut input = Input { remaining: &bytes };
        assert_eq!(T::read(&mut input), Some(value));
        assert!(input.remaining.is_empty());
        for cut in 0..bytes.len() {
            assert_eq!(
                T::read(&mut Input {
                    remaining: &bytes[..cut]
                }),
                None
            );
        }
    }

    #[test]
    fn types_round_trip() {
        for lane in LANES {
            round_trips(lane);
            for lanes in [2, 4, 8, 16, 64, 256] {
                lane.by(lanes).into_iter().for_each(round_trips);
            }
        }
        round_trips(types::I32X4XN);
    }

    #[test]
    fn the_reserved_number_is_no_entity() {
        let largest = u32::MAX.to_le_bytes();
        assert_eq!(Inst::read(&mut Input { remaining: &largest }), None);
        round_trips(Inst::from_u32(u32::MAX - 1));
    }

    #[test]
    fn names_round_trip() {
        Opcode::all().iter().copied().for_each(round_trips);
        LibCall::all_libcalls().iter().copied().for_each(round_trips);
        Stage::ALL.iter().copied().for_each(round_trips);
        round_trips(KnownSymbol::CoffTlsIndex);
        round_trips(ExternalName::testcase("name"));
        round_trips(ExternalName::User(UserExternalNameRef::new(7)));
        for routine in crate::runtime::Routine::ALL {
            round_trips(RelocTarget::Runtime(routine.name()));
        }
    }

    #[test]
    fn remarks_round_trip() {
        round_trips(LoopRemark {
            header: Block::new(3),
            srcloc: SourceLoc::new(9),
            outcome: LoopOutcome::Scalar(Reason::Cost {
                vector: 7,
                overhead: 9,
                scalar: 5,
            }),
        });
        round_trips(LoopOutcome::Scalar(Reason::Operation(Opcode::Fma, types::F32X16)));
        round_trips(Some(Vectorized {
            lanes: 16,
            trip_count: Some(1 << 40),
            least_trip_count: 48,
            reductions: 1,
            unaligned_loads: 2,
            alignment_check: true,
            overlap_checks: 3,
            scalar_cost: 4,
            vector_cost: 5,
        }));
    }

    #[test]
    fn malformed_bytes_are_rejected() {
        let fault = |bytes: &[u8]| CompiledCode::from_bytes(bytes).err().map(|fault| fault.offset);
        assert_eq!(fault(&[]), Some(0));
        // The count exceeds the remaining bytes.
        assert_eq!(fault(&[0xff; 8]), Some(4));
        let mut bytes = CompiledCode::default().to_bytes();
        assert_eq!(fault(&bytes), None);
        bytes.push(0);
        assert_eq!(fault(&bytes), Some(bytes.len() - 1));
    }
}
