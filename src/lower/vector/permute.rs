//! Shuffles by constants. How many instructions one takes depends on all of its bytes (whether lanes stay in place, which vectors
//! they come from, whether these are the same), which no pattern can say; the instructions themselves come from the rules.

use super::{LaneRules, Lanes};
use crate::inst::LANES;
use crate::lower::context::Lower;
use crate::lower::words::Word;
use cranelift_codegen::ir::Value;

/// Lane indices below this are lanes.
const COUNT: u32 = LANES as u32;

/// The lanes of both vectors that the bytes name, those of `y` from sixteen on. There is a byte for each lane.
pub fn shuffle(ctx: &mut Lower<'_>, x: Value, y: Value, bytes: &[u8]) -> Lanes {
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
    let pick = |ctx: &mut Lower<'_>, value: Value| {
        let lanes = ctx.lanes(value);
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
