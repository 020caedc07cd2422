//! Lowers loads and stores of vectors.
//!
//! The hardware's vector accesses require an address that is aligned to their size. A possibly
//! misaligned access goes through an area of the frame. In the scratchpad, a vector of words
//! requires only word alignment. Elements of other sizes are not packed there. Accesses that the
//! scratchpad cannot do at once go lane by lane.
//!
//! In main memory, vectors of bytes and half-words are packed. A store packs them, but a load reads
//! the wrong elements (erratum `packed_vector_loads`). So the cache line of the vector is loaded as
//! words; each lane gets the word that contains its element, and shifts it down.
//!
//! A vector with fewer lanes that is aligned to its size also lies within one line. Reading the
//! other bytes of the line is safe: a cache holds whole lines, the end of memory is the end of a
//! line, and concurrent writes affect only unused lanes. Writing them is not safe, and stores to
//! main memory ignore the mask. But a store of packed elements writes only its sixteen elements. So
//! any sixteen bytes are stored as `i8x16`, and any thirty-two as `i16x16`; eight bytes or fewer
//! are stored as words.

use super::parts::part_offset;
use super::{LaneRules, Lanes, is_full, is_long, is_short, permute};
use crate::abi::slots;
use crate::inst::ops::{load_op, store_op};
use crate::inst::reg::Reg;
use crate::inst::{AMode, LANES, MInst};
use crate::lower::access::MemoryAccess;
use crate::lower::address;
use crate::lower::call;
use crate::lower::context::{InstOutput, Lower, Rules};
use crate::lower::words::{Word, WordRules, Words};
use crate::runtime::Routine;
use crate::shape::{vector_of, vector_registers};
use crate::spaces::Space;
use cranelift_codegen::ir::{InstructionData, MemFlags, Type, Value, ValueDef, types};
use npu_mc::errata::Erratum;
use npu_mc::machine::{CACHE_LINE, VECTOR_SLOT};
use regalloc2::RegClass;
use smallvec::{SmallVec, smallvec};

/// The size of a word, in bytes.
const WORD: u32 = npu_mc::machine::WORD_SLOT;

/// Returns the number of elements of the type in a word.
fn per_word(ty: Type) -> u32 {
    32 / ty.lane_bits()
}

/// Returns the size of a vector of the type in memory, in bytes.
fn size(ty: Type) -> u32 {
    ty.bytes()
}

/// Returns the address of each lane, and the size of a lane in bytes.
fn places(ctx: &mut Lower<'_>, ty: Type, pointer: Value, offset: i32) -> (impl Iterator<Item = AMode> + use<>, u8) {
    let addr = ctx.address(pointer, offset, size(ty));
    let bytes = (ty.lane_bits() / 8) as u8;
    let place = move |lane: i32| address::plus(addr, lane * i32::from(bytes));
    ((0..ty.lane_count().cast_signed()).map(place), bytes)
}

fn load_by_lanes(ctx: &mut Lower<'_>, ty: Type, flags: MemFlags, pointer: Value, offset: i32) -> Lanes {
    let (places, bytes) = places(ctx, ty, pointer, offset);
    let access = ctx.memory_access(flags, pointer, offset).of_number(bytes.into());
    let mut result = None;
    for (addr, lane) in places.zip(0..) {
        let element = Lanes::Scalar(ctx.load_bytes(access, addr, bytes));
        result = Some(match result {
            Some(others) => ctx.lane_select(Lower::lane_bit(lane), element, others),
            // The first element is put in all lanes.
            None => element,
        });
    }
    result.unwrap_or(Lanes::Const(0))
}

fn store_by_lanes(ctx: &mut Lower<'_>, ty: Type, flags: MemFlags, value: Value, pointer: Value, offset: i32) {
    let lanes = ctx.lanes(value);
    let vector = Lanes::Reg(ctx.vector_reg(lanes));
    let (places, bytes) = places(ctx, ty, pointer, offset);
    let access = ctx.memory_access(flags, pointer, offset).of_number(bytes.into());
    for (addr, lane) in places.zip(0..) {
        let element = ctx.lane(vector, lane);
        ctx.store_bytes(access, element, addr, bytes);
    }
}

/// Creates an area of the frame for one vector.
fn area(ctx: &mut Lower<'_>) -> AMode {
    let area = ctx.new_local(VECTOR_SLOT, VECTOR_SLOT);
    AMode::Local { area, offset: 0 }
}

/// Copies some bytes with a routine.
fn copy(ctx: &mut Lower<'_>, to: Reg, from: Reg, bytes: u32) {
    let bytes = Reg::Virtual(ctx.constant(bytes));
    call::routine(ctx, Routine::Copy, &[to, from, bytes]);
}

/// Loads a vector from `pointer` + `offset` that no single access can load.
pub fn load(ctx: &mut Lower<'_>, ty: Type, flags: MemFlags, pointer: Value, offset: i32) -> Lanes {
    let access = ctx.memory_access(flags, pointer, offset);
    let aligned = access.is_aligned(size(ty));
    if access.space == Space::Scratchpad && (!aligned || is_short(ty)) {
        return load_by_lanes(ctx, ty, flags, pointer, offset);
    }
    let lanes = load_in_order(ctx, ty, access, pointer, offset);
    match access.big_endian {
        true => ctx.lane_bswap(held(ty), lanes),
        false => lanes,
    }
}

/// Loads such a vector, ignoring the byte order.
fn load_in_order(ctx: &mut Lower<'_>, ty: Type, access: MemoryAccess, pointer: Value, offset: i32) -> Lanes {
    let aligned = access.is_aligned(size(ty));
    if let Some((line, first)) = known_line(ctx, ty, pointer, offset) {
        return unpack(ctx, ty, line, Word::Const(first));
    }
    if size(ty) <= WORD || size(ty) == 2 * WORD && !aligned {
        let words = load_words(ctx, ty, access, pointer, offset);
        return from_words(ctx, ty, words);
    }
    if !aligned {
        let from = ctx.address(pointer, offset, WORD);
        let from = ctx.address_reg(from);
        if size(ty) == types::I8X16.bytes() {
            let bytes = load_bytes(ctx, Word::Reg(from));
            return match ty {
                types::I8X16 => bytes,
                _ => recast(ctx, types::I8X16, ty, bytes),
            };
        }
        let area = area(ctx);
        let to = ctx.address_reg(area);
        copy(ctx, to, from, size(ty));
        return load_packed(ctx, ty, area);
    }
    let in_line = CACHE_LINE - 1;
    let addr = ctx.address(pointer, offset, WORD);
    if size(ty) == CACHE_LINE {
        return ctx.load_lanes(ty, addr);
    }
    let addr = Word::Reg(ctx.address_reg(addr));
    let base = ctx.word_and(addr, Word::Const(!in_line));
    let base = ctx.reg(base);
    let word = ctx.word_srl(addr, WORD.trailing_zeros());
    let first = ctx.word_and(word, Word::Const(CACHE_LINE / WORD - 1));
    unpack(ctx, ty, AMode::Reg { base, offset: 0 }, first)
}

/// Returns the cache line of the vector and the vector's first word in it, if they are known at
/// compile time.
fn known_line(ctx: &mut Lower<'_>, ty: Type, pointer: Value, offset: i32) -> Option<(AMode, u32)> {
    let in_line = CACHE_LINE.cast_signed() - 1;
    let func = ctx.func;
    let slot = match func.dfg.value_def(pointer) {
        ValueDef::Result(inst, 0) => match func.dfg.insts[inst] {
            InstructionData::StackAddr { stack_slot, offset, .. } => Some((stack_slot, i32::from(offset))),
            _ => None,
        },
        _ => None,
    };
    let slot = slot.filter(|&(slot, _)| slots::slot_alignment(&func.sized_stack_slots[slot]) == CACHE_LINE);
    let place = match slot {
        Some((_, start)) => start.checked_add(offset)?,
        None if ctx.known_alignment(pointer) >= u64::from(CACHE_LINE) => offset,
        None => return None,
    };
    let within = (place & in_line).cast_unsigned();
    if size(ty) <= WORD || !within.is_multiple_of(WORD) || within + size(ty) > CACHE_LINE {
        return None;
    }
    let line = match slot {
        Some((slot, _)) => AMode::Slot {
            slot,
            offset: place & !in_line,
        },
        None => ctx.address(pointer, place & !in_line, WORD),
    };
    Some((line, within / WORD))
}

/// Loads the bytes of a vector of at most two words.
fn load_words(ctx: &mut Lower<'_>, ty: Type, access: MemoryAccess, pointer: Value, offset: i32) -> Words {
    let bytes = size(ty).min(WORD) as u8;
    let access = access.in_order(bytes.into());
    let addr = ctx.address(pointer, offset, size(ty));
    Words::new((0..size(ty).div_ceil(WORD)).map(|word| {
        let addr = address::plus(addr, (word * WORD).cast_signed());
        Word::Reg(ctx.load_bytes(access, addr, bytes))
    }))
}

/// Loads the vector at the start of an area of the frame.
fn load_packed(ctx: &mut Lower<'_>, ty: Type, area: AMode) -> Lanes {
    load_part(ctx, ty, area, 0)
}

/// Loads the vector at an offset, in bytes, in an area of the frame.
fn load_part(ctx: &mut Lower<'_>, ty: Type, area: AMode, offset: i32) -> Lanes {
    if is_full(ty) || !ctx.isa.has_erratum(Erratum::PackedVectorLoads) {
        return ctx.load_lanes(held(ty), address::plus(area, offset));
    }
    let within = offset & (CACHE_LINE.cast_signed() - 1);
    let line = address::plus(area, offset - within);
    unpack(ctx, ty, line, Word::Const(within.cast_unsigned() / WORD))
}

/// Returns the type of the register that holds a vector.
fn held(ty: Type) -> Type {
    vector_of(ty.lane_type()).unwrap_or(ty)
}

/// Loads sixteen bytes from any address: selects words from the lines of the first and the last
/// byte, which may be the same line.
fn load_bytes(ctx: &mut Lower<'_>, first: Word) -> Lanes {
    let line = |ctx: &mut Lower<'_>, address: Word| {
        let base = ctx.word_and(address, Word::Const(CACHE_LINE.wrapping_neg()));
        let base = ctx.reg(base);
        ctx.load_lanes(types::I32X16, AMode::Reg { base, offset: 0 })
    };
    let lower = line(ctx, first);
    let last = ctx.word_add(first, Word::Const(LANES as u32 - 1));
    let upper = line(ctx, last);
    let place = ctx.word_and(first, Word::Const(CACHE_LINE - 1));
    let word = ctx.word_srl(place, WORD.trailing_zeros());
    let numbers = ctx.each_lane(|lane| lane);
    // Words below the first one are from the second line, if there are two lines.
    let word = ctx.lanes_of_word(word);
    let below = ctx.lane_less(numbers, word);
    let words = ctx.lane_select(below, upper, lower);
    let place = ctx.lanes_of_word(place);
    let bytes = ctx.lane_add(numbers, place);
    let index = ctx.lane_srl(bytes, Lanes::Const(WORD.trailing_zeros()));
    let index = ctx.lane_and(index, Lanes::Const(LANES as u32 - 1));
    let words = ctx.shuffle_lanes(words, index);
    let bits = ctx.lane_shl(bytes, Lanes::Const(3));
    let distance = ctx.lane_and(bits, Lanes::Const(32 - 8));
    ctx.lane_srl(words, distance)
}

/// Reinterprets the bytes of a vector in one register as lanes of another type.
pub fn cast(ctx: &mut Lower<'_>, ty: Type, x: Value) -> Lanes {
    if let Some(lanes) = permute::whole_lanes(ctx, ty, x) {
        return lanes;
    }
    let lanes = ctx.lanes(x);
    recast(ctx, ctx.func.dfg.value_type(x), ty, lanes)
}

/// Reinterprets the bytes of a vector as lanes of another type, if one of the two types occupies
/// several registers.
pub fn cast_parts(ctx: &mut Lower<'_>, ty: Type, x: Value) -> InstOutput {
    let from = ctx.func.dfg.value_type(x);
    let count = ctx.known(vector_registers(ty), "a vector in registers").unwrap_or(1);
    let mut regs: SmallVec<[Reg; 4]> = SmallVec::new();
    if from.lane_bits() > ty.lane_bits() {
        let pieces = (from.lane_bits() / ty.lane_bits()) as u8;
        for part in 0..count {
            let lanes = ctx.part_lanes(x, part / pieces);
            let first = u32::from(part % pieces) * LANES as u32 / u32::from(pieces);
            let lanes = cast_to_smaller(ctx, from, ty, lanes, first);
            regs.push(ctx.vector_reg(lanes));
        }
    } else {
        let area = AMode::Local {
            area: ctx.new_local(size(ty).max(VECTOR_SLOT), VECTOR_SLOT),
            offset: 0,
        };
        for part in 0..ctx.count_parts(x) {
            let lanes = ctx.part_lanes(x, part);
            ctx.store_lanes(held(from), lanes, address::plus(area, part_offset(from, part)));
        }
        let own = if is_long(ty) { held(ty) } else { ty };
        for part in 0..count {
            let lanes = load_part(ctx, own, area, part_offset(ty, part));
            regs.push(ctx.vector_reg(lanes));
        }
    }
    smallvec![ctx.result_regs(regs)]
}

/// Reinterprets the first lanes of a vector, as laid out in memory, as lanes of another type. A
/// shuffle and a shift convert to smaller elements; a store packs elements into larger ones.
fn recast(ctx: &mut Lower<'_>, from: Type, ty: Type, lanes: Lanes) -> Lanes {
    if from.lane_bits() == ty.lane_bits() {
        return lanes;
    }
    if from.lane_bits() > ty.lane_bits() {
        return cast_to_smaller(ctx, from, ty, lanes, 0);
    }
    let area = area(ctx);
    ctx.store_lanes(held(from), lanes, area);
    load_packed(ctx, ty, area)
}

/// Reinterprets lanes from `first` on, as laid out in memory, as smaller lanes.
fn cast_to_smaller(ctx: &mut Lower<'_>, from: Type, ty: Type, lanes: Lanes, first: u32) -> Lanes {
    let parts = from.lane_bits() / ty.lane_bits();
    let elements = if lanes.is_splat() {
        lanes
    } else {
        let index = ctx.each_lane(|lane| first + lane / parts);
        ctx.shuffle_lanes(lanes, index)
    };
    let distance = ctx.each_lane(|lane| lane % parts * ty.lane_bits());
    ctx.lane_srl(elements, distance)
}

/// Extracts the elements of a line from a word on, one element per lane. The upper bits of the
/// lanes are undefined.
fn unpack(ctx: &mut Lower<'_>, ty: Type, line: AMode, first: Word) -> Lanes {
    let line = ctx.load_lanes(types::I32X16, line);
    let (count, bits) = (per_word(ty), ty.lane_bits());
    if is_full(ty) && first == Word::ZERO {
        return line;
    }
    // A lane index must be within one register.
    let within = |lane: u32| lane / count % size(ty).div_ceil(WORD);
    let index = match first {
        Word::Const(first) => ctx.each_lane(|lane| first + within(lane)),
        Word::Reg(_) | Word::Missing => {
            let first = ctx.reg(first);
            let within = ctx.each_lane(within);
            ctx.lane_add(within, Lanes::Scalar(first))
        }
    };
    let words = ctx.shuffle_lanes(line, index);
    if is_full(ty) {
        return words;
    }
    let distance = ctx.each_lane(|lane| lane % count * bits);
    ctx.lane_srl(words, distance)
}

/// Stores a vector at `pointer` + `offset` that no single access can store.
pub fn store(ctx: &mut Lower<'_>, ty: Type, flags: MemFlags, value: Value, pointer: Value, offset: i32) {
    let access = ctx.memory_access(flags, pointer, offset);
    if access.space == Space::Scratchpad {
        return store_by_lanes(ctx, ty, flags, value, pointer, offset);
    }
    let mut lanes = ctx.lanes(value);
    if access.big_endian {
        lanes = ctx.lane_bswap(held(ty), lanes);
    }
    if size(ty) <= 2 * WORD {
        let words = words_of(ctx, ty, lanes);
        let bytes = size(ty).min(WORD) as u8;
        let access = access.in_order(bytes.into());
        let addr = ctx.address(pointer, offset, size(ty));
        for (&word, at) in words.as_slice().iter().zip(0..) {
            let src = ctx.reg(word);
            ctx.store_bytes(access, src, address::plus(addr, at * WORD.cast_signed()), bytes);
        }
        return;
    }
    let packed = Type::int((ty.bits() / LANES as u32) as u16).and_then(vector_of);
    if let Some(packed) = packed
        && access.is_aligned(size(ty))
    {
        let lanes = recast(ctx, ty, packed, lanes);
        let addr = ctx.address(pointer, offset, WORD);
        return ctx.store_lanes(packed, lanes, addr);
    }
    let area = area(ctx);
    ctx.store_lanes(held(ty), lanes, area);
    let from = ctx.address_reg(area);
    let to = ctx.address(pointer, offset, WORD);
    let to = ctx.address_reg(to);
    if size(ty) == types::I8X16.bytes() {
        call::routine(ctx, Routine::Store16, &[to, from]);
    } else {
        copy(ctx, to, from, size(ty));
    }
}

/// Packs the lanes of a vector into words.
pub fn to_words(ctx: &mut Lower<'_>, ty: Type, x: Value) -> Words {
    let lanes = ctx.lanes(x);
    words_of(ctx, ty, lanes)
}

fn words_of(ctx: &mut Lower<'_>, ty: Type, lanes: Lanes) -> Words {
    let words = size(ty).div_ceil(WORD);
    if is_full(ty) {
        let vector = Lanes::Reg(ctx.vector_reg(lanes));
        return Words::new((0..words as u8).map(|lane| Word::Reg(ctx.lane(vector, lane))));
    }
    let area = area(ctx);
    ctx.store_lanes(held(ty), lanes, area);
    Words::new((0..words).map(|word| {
        let dst = Reg::Virtual(ctx.new_vreg(RegClass::Int));
        let addr = address::plus(area, (word * WORD).cast_signed());
        let op = load_op(RegClass::Int);
        ctx.emit(MInst::Load { op, dst, addr });
        Word::Reg(dst)
    }))
}

/// Unpacks the lanes from words.
pub fn from_words(ctx: &mut Lower<'_>, ty: Type, words: Words) -> Lanes {
    if let &[word] = words.as_slice() {
        let word = ctx.lanes_of_word(word);
        let distance = ctx.each_lane(|lane| lane % per_word(ty) * ty.lane_bits());
        return ctx.lane_srl(word, distance);
    }
    let area = area(ctx);
    for (&word, at) in words.as_slice().iter().zip(0..) {
        let src = ctx.reg(word);
        let addr = address::plus(area, at * WORD.cast_signed());
        let op = store_op(RegClass::Int);
        ctx.emit(MInst::Store { op, src, addr });
    }
    load_packed(ctx, ty, area)
}
