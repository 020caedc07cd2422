//! Shuffles by constants, and parts of vectors. How many instructions one takes depends on all of its bytes (whether lanes stay in place, which vectors
//! they come from, whether these are the same), which no pattern can say; the instructions themselves come from the rules.

use super::{LaneRules, Lanes, memory};
use crate::inst::LANES;
use crate::legalize::moved_lanes;
use crate::lower::context::Lower;
use crate::lower::words::Word;
use crate::shape::register_type;
use cranelift_codegen::ir::{Immediate, InstructionData, Opcode, Type, Value, ValueDef, types};

/// How many shuffles of one another are followed.
const MAX_DEPTH: u32 = 8;

/// Lane indices below this are lanes.
const COUNT: u32 = LANES as u32;

/// The upper half of the lanes of a vector of the type.
pub fn upper_half(ctx: &mut Lower<'_>, ty: Type, x: Lanes) -> Lanes {
    from_lane(ctx, x, ty.lane_count() / 2)
}

/// The lanes from one on.
fn from_lane(ctx: &mut Lower<'_>, x: Lanes, first: u32) -> Lanes {
    if first == 0 || x.is_splat() {
        return x;
    }
    let index = ctx.each_lane(|lane| (lane + first) % COUNT);
    ctx.shuffle_lanes(x, index)
}

/// The first lanes of `x`, as many as the type has, and those of `y` behind them.
pub fn concat(ctx: &mut Lower<'_>, ty: Type, x: Lanes, y: Lanes) -> Lanes {
    let count = ty.lane_count();
    let moved = match y.is_splat() {
        true => y,
        false => {
            let index = ctx.each_lane(|lane| lane.wrapping_sub(count) % COUNT);
            ctx.shuffle_lanes(y, index)
        }
    };
    let upper = u32::from(crate::inst::ALL_LANES) & u32::MAX << count;
    ctx.lane_select(Word::Const(upper), moved, x)
}

/// A vector that a shuffle takes lanes of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// A value.
    Value(Value),
    /// A shuffle of bytes that moves whole lanes.
    Shuffled(Value),
}

/// The lanes of a cast to the type, if a shuffle of bytes moves whole lanes of what was cast to bytes.
pub fn whole_lanes(ctx: &mut Lower<'_>, ty: Type, value: Value) -> Option<Lanes> {
    let (args, imm) = shuffled(ctx, value)?;
    let index = moved_lanes(ctx.func, ty, imm)?;
    let [x, y] = args.map(|arg| source(ctx, ty, arg, MAX_DEPTH));
    let (x, y) = (x?, y?);
    let count = ty.lane_count();
    // The other lanes go along with the first ones.
    let numbers = index
        .iter()
        .map(|&lane| if lane < count { lane } else { lane - count + COUNT });
    let bytes: Vec<u8> = numbers.cycle().take(LANES).map(|lane| lane as u8).collect();
    Some(choose(ctx, ty, x, y, &bytes))
}

fn shuffled(ctx: &Lower<'_>, value: Value) -> Option<([Value; 2], Immediate)> {
    let dfg = &ctx.func.dfg;
    let ValueDef::Result(inst, 0) = dfg.value_def(value) else {
        return None;
    };
    match dfg.insts[inst] {
        InstructionData::Shuffle { args, imm, .. } => Some((args, imm)),
        _ => None,
    }
}

/// What a value was cast from, or shuffled, in as many lanes as the type has.
fn source(ctx: &Lower<'_>, ty: Type, value: Value, depth: u32) -> Option<Source> {
    let depth = depth.checked_sub(1)?;
    if let Some((args, imm)) = shuffled(ctx, value) {
        moved_lanes(ctx.func, ty, imm)?;
        for arg in args {
            source(ctx, ty, arg, depth)?;
        }
        return Some(Source::Shuffled(value));
    }
    let dfg = &ctx.func.dfg;
    let ValueDef::Result(inst, 0) = dfg.value_def(value) else {
        return None;
    };
    let InstructionData::LoadNoOffset {
        opcode: Opcode::Bitcast,
        arg,
        ..
    } = dfg.insts[inst]
    else {
        return None;
    };
    let from = dfg.value_type(arg);
    (from.lane_count() == ty.lane_count() && register_type(from).is_some()).then_some(Source::Value(arg))
}

/// The lanes of both vectors that the bytes name, those of `y` from sixteen on. There is a byte for each lane.
pub fn shuffle(ctx: &mut Lower<'_>, x: Value, y: Value, bytes: &[u8]) -> Lanes {
    choose(ctx, types::I8X16, Source::Value(x), Source::Value(y), bytes)
}

fn choose(ctx: &mut Lower<'_>, ty: Type, x: Source, y: Source, bytes: &[u8]) -> Lanes {
    let mut index = [0; LANES];
    let mut from_y = 0;
    if bytes.len() != LANES {
        ctx.set_internal(format_args!("shuffle {bytes:?}"), "a byte for each lane");
    }
    for (lane, &byte) in bytes.iter().enumerate().take(LANES) {
        index[lane] = u32::from(byte) % COUNT;
        if u32::from(byte) >= COUNT {
            from_y |= 1 << lane;
        }
    }
    if x == y {
        from_y = 0;
    }
    let all = u32::from(crate::inst::ALL_LANES);
    let in_place = index.iter().zip(0..).all(|(&from, lane)| from == lane);
    let pick = |ctx: &mut Lower<'_>, source: Source| {
        let lanes = match source {
            Source::Value(value) => ctx.lanes(value),
            Source::Shuffled(value) => memory::cast(ctx, ty, value),
        };
        if in_place || lanes.is_splat() {
            return lanes;
        }
        let index = ctx.constant_in_reg(&index);
        ctx.shuffle_lanes(lanes, index)
    };
    if from_y == all {
        return pick(ctx, y);
    }
    let of_x = pick(ctx, x);
    if from_y == 0 {
        return of_x;
    }
    let of_y = pick(ctx, y);
    ctx.lane_select(Word::Const(from_y), of_y, of_x)
}
