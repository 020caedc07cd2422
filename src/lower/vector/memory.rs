//! Loads and stores of vectors.
//!
//! The hardware's own accesses want an address that is aligned to their size; what may be misaligned goes through an area of
//! the frame. In the scratchpad a vector of words only wants to be aligned to words, and elements of other sizes are far apart;
//! what its accesses cannot do goes lane by lane. Vectors of bytes and half-words are packed in memory. Storing packs; loading reads the wrong elements (erratum
//! `packed_vector_loads`), so the line that the vector is in is loaded as words, every lane gets the word that has its element,
//! and shifts it down.

use super::{LaneRules, Lanes, is_full};
use crate::inst::ops::{load_op, store_op};
use crate::inst::reg::Reg;
use crate::inst::{AMode, LANES, MInst};
use crate::lower::address;
use crate::lower::call;
use crate::lower::context::{Lower, Rules};
use crate::lower::words::{Word, WordRules, Words};
use crate::runtime::Routine;
use crate::spaces::{self, Space};
use cranelift_codegen::ir::{MemFlags, Type, Value, types};
use npu_mc::errata::Erratum;
use npu_mc::machine::{CACHE_LINE, VECTOR_SLOT};
use regalloc2::RegClass;

/// Bytes of a word.
const WORD: u32 = npu_mc::machine::WORD_SLOT;

/// How many elements of the type are in a word.
fn per_word(ty: Type) -> u32 {
    32 / ty.lane_bits()
}

/// Bytes that a vector of the type has in memory.
fn size(ty: Type) -> u32 {
    ty.bytes()
}

/// Whether an access can be one of the hardware's.
fn is_plain(ctx: &Lower<'_>, ty: Type, flags: MemFlags, pointer: Value, offset: i32) -> bool {
    u8::try_from(size(ty)).is_ok_and(|bytes| ctx.is_plain_access(flags, pointer, offset, bytes))
}

/// Whether one access does for sixteen words, which are so many bytes.
pub fn is_words_access(ctx: &Lower<'_>, flags: MemFlags, pointer: Value, offset: i32, bytes: u8) -> bool {
    let aligned = if in_scratchpad(ctx, flags) { WORD as u8 } else { bytes };
    ctx.is_plain_access(flags, pointer, offset, aligned)
}

/// Whether one access does for sixteen packed elements, which are so many bytes.
pub fn is_packed_access(ctx: &Lower<'_>, flags: MemFlags, pointer: Value, offset: i32, bytes: u8) -> bool {
    !in_scratchpad(ctx, flags) && ctx.is_plain_access(flags, pointer, offset, bytes)
}

fn in_scratchpad(ctx: &Lower<'_>, flags: MemFlags) -> bool {
    spaces::of_flags(ctx.func, flags) == Space::Scratchpad
}

/// The address of each lane, and the bytes of one.
fn places(ctx: &mut Lower<'_>, ty: Type, pointer: Value, offset: i32) -> (impl Iterator<Item = AMode> + use<>, u8) {
    let addr = ctx.address(pointer, offset, size(ty));
    let bytes = (ty.lane_bits() / 8) as u8;
    let place = move |lane: i32| address::plus(addr, lane * i32::from(bytes));
    ((0..LANES as i32).map(place), bytes)
}

fn load_by_lanes(ctx: &mut Lower<'_>, ty: Type, flags: MemFlags, pointer: Value, offset: i32) -> Lanes {
    let (places, bytes) = places(ctx, ty, pointer, offset);
    let mut result = Lanes::Const(0);
    for (addr, lane) in places.zip(0..) {
        let element = ctx.load_bytes(flags, addr, bytes);
        result = ctx.lane_select(Lower::lane_bit(lane), Lanes::Scalar(element), result);
    }
    result
}

fn store_by_lanes(ctx: &mut Lower<'_>, ty: Type, flags: MemFlags, value: Value, pointer: Value, offset: i32) {
    let lanes = ctx.lanes(value);
    let vector = Lanes::Reg(ctx.vector_reg(lanes));
    let (places, bytes) = places(ctx, ty, pointer, offset);
    for (addr, lane) in places.zip(0..) {
        let src = ctx.lane(vector, lane);
        ctx.store_bytes(flags, src, addr, bytes);
    }
}

/// A register with the address.
fn address_reg(ctx: &mut Lower<'_>, addr: AMode) -> Reg {
    if let AMode::Reg { base, offset: 0 } = addr {
        return base;
    }
    let dst = Reg::Virtual(ctx.new_vreg(RegClass::Int));
    ctx.emit(MInst::Address { dst, addr });
    dst
}

/// A place in the frame for one vector.
fn area(ctx: &mut Lower<'_>) -> AMode {
    let area = ctx.new_local(VECTOR_SLOT, VECTOR_SLOT);
    AMode::Local { area, offset: 0 }
}

/// Copies some bytes.
fn copy(ctx: &mut Lower<'_>, to: Reg, from: Reg, bytes: u32) {
    let bytes = Reg::Virtual(ctx.constant(bytes));
    call::routine(ctx, Routine::Copy, &[to, from, bytes]);
}

/// A vector at `pointer` + `offset`, where no single access does.
pub fn load(ctx: &mut Lower<'_>, ty: Type, flags: MemFlags, pointer: Value, offset: i32) -> Lanes {
    let scratchpad = in_scratchpad(ctx, flags);
    let packed = !is_full(ty) && (scratchpad || ctx.isa.has_erratum(Erratum::PackedVectorLoads));
    let plain = is_plain(ctx, ty, flags, pointer, offset);
    if scratchpad && !plain {
        return load_by_lanes(ctx, ty, flags, pointer, offset);
    }
    if !plain {
        let from = ctx.address(pointer, offset, WORD);
        let from = address_reg(ctx, from);
        if ty == types::I8X16 {
            return load_bytes(ctx, Word::Reg(from));
        }
        let area = area(ctx);
        let to = address_reg(ctx, area);
        copy(ctx, to, from, size(ty));
        return if packed {
            unpack(ctx, ty, area, Word::ZERO)
        } else {
            ctx.load_lanes(ty, area)
        };
    }
    let in_line = CACHE_LINE.cast_signed() - 1;
    if ctx.known_alignment(pointer) >= u64::from(CACHE_LINE) {
        // The place in the line is known.
        let addr = ctx.address(pointer, offset & !in_line, WORD);
        let first = (offset & in_line).cast_unsigned() / WORD;
        return unpack(ctx, ty, addr, Word::Const(first));
    }
    let addr = ctx.address(pointer, offset, WORD);
    let addr = Word::Reg(address_reg(ctx, addr));
    let base = ctx.word_and(addr, Word::Const(!in_line.cast_unsigned()));
    let base = ctx.reg(base);
    let word = ctx.word_srl(addr, WORD.trailing_zeros());
    let first = ctx.word_and(word, Word::Const(CACHE_LINE / WORD - 1));
    unpack(ctx, ty, AMode::Reg { base, offset: 0 }, first)
}

/// Sixteen bytes at any address: of the lines with the first and the last one, which may be the same, the words from the first on.
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
    // The words below the first one are of the second line, if there are two.
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

/// The first lanes of a vector as they are in memory, in lanes of another type. Larger elements make smaller ones by a shuffle and a
/// shift; smaller ones are packed by a store.
pub fn cast(ctx: &mut Lower<'_>, ty: Type, x: Value) -> Lanes {
    let from = ctx.func.dfg.value_type(x);
    let lanes = ctx.lanes(x);
    if from.lane_bits() > ty.lane_bits() {
        let parts = from.lane_bits() / ty.lane_bits();
        let elements = if lanes.is_splat() {
            lanes
        } else {
            let index = ctx.each_lane(|lane| lane / parts);
            ctx.shuffle_lanes(lanes, index)
        };
        let distance = ctx.each_lane(|lane| lane % parts * ty.lane_bits());
        return ctx.lane_srl(elements, distance);
    }
    let area = area(ctx);
    ctx.store_lanes(from, lanes, area);
    if !is_full(ty) && ctx.isa.has_erratum(Erratum::PackedVectorLoads) {
        unpack(ctx, ty, area, Word::ZERO)
    } else {
        ctx.load_lanes(ty, area)
    }
}

/// The elements of a line from a word on, an element a lane. Upper bits of the lanes are what happens to be there.
fn unpack(ctx: &mut Lower<'_>, ty: Type, line: AMode, first: Word) -> Lanes {
    let line = ctx.load_lanes(types::I32X16, line);
    let (count, bits) = (per_word(ty), ty.lane_bits());
    let index = match first {
        Word::Const(first) => ctx.each_lane(|lane| first + lane / count),
        Word::Reg(_) | Word::Missing => {
            let first = ctx.reg(first);
            let within = ctx.each_lane(|lane| lane / count);
            ctx.lane_add(within, Lanes::Scalar(first))
        }
    };
    let words = ctx.shuffle_lanes(line, index);
    let distance = ctx.each_lane(|lane| lane % count * bits);
    ctx.lane_srl(words, distance)
}

/// Stores a vector at `pointer` + `offset`, where no single access does.
pub fn store(ctx: &mut Lower<'_>, ty: Type, flags: MemFlags, value: Value, pointer: Value, offset: i32) {
    if in_scratchpad(ctx, flags) {
        return store_by_lanes(ctx, ty, flags, value, pointer, offset);
    }
    let lanes = ctx.lanes(value);
    let area = area(ctx);
    ctx.store_lanes(ty, lanes, area);
    let from = address_reg(ctx, area);
    let to = ctx.address(pointer, offset, WORD);
    let to = address_reg(ctx, to);
    if ty == types::I8X16 {
        call::routine(ctx, Routine::Store16, &[to, from]);
    } else {
        copy(ctx, to, from, size(ty));
    }
}

/// The packed lanes of a vector as words.
pub fn to_words(ctx: &mut Lower<'_>, ty: Type, x: Value) -> Words {
    let lanes = ctx.lanes(x);
    let area = area(ctx);
    ctx.store_lanes(ty, lanes, area);
    Words::new((0..size(ty) / WORD).map(|word| {
        let dst = Reg::Virtual(ctx.new_vreg(RegClass::Int));
        let addr = address::plus(area, (word * WORD).cast_signed());
        let op = load_op(RegClass::Int);
        ctx.emit(MInst::Load { op, dst, addr });
        Word::Reg(dst)
    }))
}

/// The lanes that are packed in the words.
pub fn from_words(ctx: &mut Lower<'_>, ty: Type, words: Words) -> Lanes {
    let area = area(ctx);
    for (&word, at) in words.as_slice().iter().zip(0..) {
        let src = ctx.reg(word);
        let addr = address::plus(area, at * WORD.cast_signed());
        let op = store_op(RegClass::Int);
        ctx.emit(MInst::Store { op, src, addr });
    }
    if ctx.isa.has_erratum(Erratum::PackedVectorLoads) {
        unpack(ctx, ty, area, Word::ZERO)
    } else {
        ctx.load_lanes(ty, area)
    }
}
