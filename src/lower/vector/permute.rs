//! Single lanes, and lanes that change places.

use super::Lanes;
use crate::inst::LANES;
use crate::lower::context::Lower;
use crate::lower::words::Word;
use cranelift_codegen::ir::{Type, Value};
use npu_mc::Opcode as Op;
use regalloc2::RegClass;

/// Lane indices below this are lanes.
const COUNT: u32 = LANES as u32;

/// The lanes of `x` that the lanes of the index name.
fn shuffle_by(ctx: &mut Lower<'_>, x: Lanes, index: Lanes) -> Lanes {
    let srcs = [ctx.vector_reg(x), ctx.vector_reg(index)];
    Lanes::Reg(ctx.emit_op(Op::SHUFFLEI_32, &srcs, 0, RegClass::Vector))
}

/// A scalar in every lane.
pub fn splat(ctx: &mut Lower<'_>, x: Value) -> Lanes {
    match ctx.words(x).low() {
        Word::Const(number) => Lanes::Const(number),
        Word::Reg(reg) => Lanes::Scalar(reg),
    }
}

/// The vector with another scalar in one lane.
pub fn insert_lane(ctx: &mut Lower<'_>, x: Value, scalar: Value, lane: u8) -> Lanes {
    let (old, new) = (ctx.lanes(x), splat(ctx, scalar));
    ctx.masked_move(Lower::lane_bit(lane), new, old)
}

/// The scalar in the first lane, zeros in the others.
pub fn scalar_to_vector(ctx: &mut Lower<'_>, x: Value) -> Lanes {
    let new = splat(ctx, x);
    ctx.masked_move(Lower::lane_bit(0), new, Lanes::Const(0))
}

/// The scalar in a lane.
pub fn extract_lane(ctx: &mut Lower<'_>, x: Value, lane: u8) -> Word {
    let x = ctx.lanes(x);
    let x = ctx.vector_reg(x);
    Word::Reg(ctx.emit_op(Op::GET_LANEIimm, &[x], i32::from(lane), RegClass::Int))
}

/// The lanes of both vectors that the bytes name, those of `y` from sixteen on.
pub fn shuffle(ctx: &mut Lower<'_>, x: Value, y: Value, bytes: &[u8]) -> Lanes {
    let mut index = [0; LANES];
    let mut from_y = 0;
    for (lane, &byte) in bytes.iter().enumerate().take(LANES) {
        index[lane] = u32::from(byte) % COUNT;
        if u32::from(byte) >= COUNT {
            from_y |= 1 << lane;
        }
    }
    if ctx.func.dfg.resolve_aliases(x) == ctx.func.dfg.resolve_aliases(y) {
        from_y = 0;
    }
    let all = u32::from(crate::inst::ALL_LANES);
    let in_place = index.iter().zip(0..).all(|(&from, lane)| from == lane);
    let pick = |ctx: &mut Lower<'_>, value: Value| {
        let lanes = ctx.lanes(value);
        if in_place || lanes.is_splat() {
            return lanes;
        }
        let index = ctx.each_lane(|lane| index.get(lane as usize).copied().unwrap_or(0));
        shuffle_by(ctx, lanes, index)
    };
    if from_y == all {
        return pick(ctx, y);
    }
    let of_x = pick(ctx, x);
    if from_y == 0 {
        return of_x;
    }
    let of_y = pick(ctx, y);
    ctx.masked_move(Word::Const(from_y), of_y, of_x)
}

/// The lanes of `x` that the lanes of `index` name, zeros for those that name none.
pub fn swizzle(ctx: &mut Lower<'_>, ty: Type, x: Value, index: Value) -> Lanes {
    let (x, index) = (ctx.lanes(x), ctx.lanes(index));
    let index = ctx.zero_extended(ty, index);
    let beyond = ctx.vector_compare(Op::SGTUISVV_U_32, index, Lanes::Const(COUNT - 1));
    // The hardware wants nothing above the four bits.
    let index = ctx.vector_op(Op::ANDVVV_U_32, index, Lanes::Const(COUNT - 1));
    let picked = shuffle_by(ctx, x, index);
    ctx.masked_move(beyond, Lanes::Const(0), picked)
}

/// Sums of neighbours, those of `x` in the lower half and those of `y` in the upper one.
pub fn add_pairs(ctx: &mut Lower<'_>, x: Value, y: Value) -> Lanes {
    let mut sums = |value: Value| {
        let lanes = ctx.lanes(value);
        let neighbour = ctx.each_lane(|lane| lane ^ 1);
        let other = shuffle_by(ctx, lanes, neighbour);
        let sums = ctx.vector_op(Op::ADDVVV_U_32, lanes, other);
        let every_second = ctx.each_lane(|lane| 2 * lane % COUNT);
        shuffle_by(ctx, sums, every_second)
    };
    let (low, high) = (sums(x), sums(y));
    ctx.masked_move(Word::Const(0xff00), high, low)
}
