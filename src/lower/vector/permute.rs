//! Lowers shuffles by constants, and extraction of vector parts. The cost of a shuffle depends on
//! all of its bytes: whether lanes stay in position, and which vectors they come from. Patterns
//! cannot express this. The instructions themselves come from the rules.

use super::{LaneRules, Lanes, memory};
use crate::inst::LANES;
use crate::legalize::moved_lanes;
use crate::lower::context::Lower;
use crate::lower::words::Word;
use crate::shape::register_type;
use cranelift_codegen::ir::{Immediate, InstructionData, Opcode, Type, Value, ValueDef, types};

/// The number of nested shuffles that are followed.
const MAX_DEPTH: u32 = 8;

/// Lane indices below this bound are in the first vector.
const COUNT: u32 = LANES as u32;

/// Returns the upper half of a vector of the type.
pub fn upper_half(ctx: &mut Lower<'_>, ty: Type, x: Lanes) -> Lanes {
    from_lane(ctx, x, ty.lane_count() / 2)
}

/// Returns the lanes from `first` on, moved to the first lanes.
fn from_lane(ctx: &mut Lower<'_>, x: Lanes, first: u32) -> Lanes {
    if first == 0 || x.is_splat() {
        return x;
    }
    let index = ctx.each_lane(|lane| (lane + first) % COUNT);
    ctx.shuffle_lanes(x, index)
}

/// Concatenates the lanes of `x` and `y`, each with the lane count of the type.
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

/// A source vector of a shuffle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// A value.
    Value(Value),
    /// A byte shuffle that moves whole lanes.
    Shuffled(Value),
}

/// Returns the lanes of a cast to the type, if the operand is a byte shuffle that moves whole lanes
/// of a vector that was cast to bytes.
pub fn whole_lanes(ctx: &mut Lower<'_>, ty: Type, value: Value) -> Option<Lanes> {
    let (args, imm) = shuffled(ctx, value)?;
    let index = moved_lanes(ctx.func, ty, imm)?;
    let [x, y] = args.map(|arg| source(ctx, ty, arg, MAX_DEPTH));
    let (x, y) = (x?, y?);
    let count = ty.lane_count();
    // The unused lanes get the same indices as the first lanes.
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

/// Returns the source of a value that is a cast or a shuffle, if it has the lane count of the type.
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

/// Selects a lane for each byte; lanes of `y` are numbered from sixteen on.
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
