//! Parameters of a generated function, and arguments that exercise its loops.

use crate::eval::{BYTES, Lanes};
use crate::lane::truncate;
use crate::random::Dice;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Type, types};

/// Possible addresses of that memory: below, across and above 2^31.
pub const BASES: [u32; 4] = [0x5000_0000, 0x7fff_e000, 0x7fff_e000, 0xb000_0000];

/// Trip counts around the limits of passes: vectors have sixteen lanes, and loops are unrolled up
/// to four times.
const TRIPS: [i64; 20] = [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 18, 31, 32, 33, 47, 48, 64, 100];

/// The counter of a loop and its exit test.
#[derive(Clone, Copy, Debug)]
pub struct Count {
    /// The type of the counter.
    pub ty: Type,
    /// The first value, if `param` is `None`.
    pub start: i64,
    /// The number of the parameter that is the first value.
    pub param: Option<usize>,
    /// The increment of each iteration.
    pub step: i64,
    /// The condition code of `counter, bound` under which the loop continues.
    pub stays: IntCC,
    /// The number of increments before the failing test, minus the trip count.
    pub more: i64,
    /// The largest trip count to choose.
    pub most: i64,
    /// The number of the parameter that is the bound, if it is one.
    pub bound: Option<usize>,
}

impl Count {
    /// Returns the first value if it is constant.
    pub fn first(&self) -> Option<i64> {
        self.param.is_none().then_some(self.start)
    }
}

/// A parameter.
#[derive(Clone, Copy, Debug)]
pub enum Param {
    /// An address: a multiple of `align` within the memory, minus `bias`.
    Base {
        /// The constant that accesses add to the address, besides small offsets.
        bias: u32,
        /// The alignment that accesses promise.
        align: u32,
    },
    /// A number of this type.
    Number(Type),
    /// The initial value of a counter, a small number.
    Start(Type),
    /// The bound of a loop.
    Bound(Count),
    /// A limit near `scale` times the last value of a counter, plus `offset`.
    Limit {
        /// The counter.
        count: Count,
        /// The factor.
        scale: i64,
        /// The summand.
        offset: i64,
    },
}

impl Param {
    /// Returns the type of the parameter.
    pub fn ty(&self) -> Type {
        match self {
            Self::Base { .. } | Self::Limit { .. } => types::I32,
            Self::Number(ty) | Self::Start(ty) => *ty,
            Self::Bound(count) => count.ty,
        }
    }
}

/// Truncates a number to the width of the type and sign-extends it.
pub fn wrapped(number: i64, ty: Type) -> i64 {
    let unused = 64 - ty.bits().min(64);
    (number << unused) >> unused
}

/// Chooses a trip count.
pub fn trips(dice: &mut Dice<'_>, most: i64) -> i64 {
    match dice.below(3) {
        0 => dice.range(0, most.min(40)),
        _ => dice.one_of(&TRIPS).min(most),
    }
}

/// Returns a bound that gives a loop this trip count, if the loop is entered.
pub fn bound(dice: &mut Dice<'_>, count: &Count, start: i64, trips: i64) -> i64 {
    use IntCC::{Equal, NotEqual};
    let step = |count: &Count, times: i64| start.wrapping_add(count.step.wrapping_mul(times));
    let met = step(count, trips + count.more);
    let up = [IntCC::SignedLessThan, IntCC::UnsignedLessThan].contains(&count.stays.without_equal());
    // The bound may be between two values of the counter. With equality, the counter passes it.
    let is_equal_too = count.stays != count.stays.without_equal();
    let slack = dice.range(0, count.step.abs() - 1) + i64::from(is_equal_too);
    let number = match count.stays {
        NotEqual => met,
        Equal => step(count, count.more.max(0)),
        _ if up == (count.step > 0) => met.wrapping_sub(slack * count.step.signum()),
        // Counters that reach the bound only by wrapping around.
        _ => match dice.below(3) {
            0 => 0,
            1 => dice.range(-3, 3),
            _ => step(count, -dice.range(1, 8)),
        },
    };
    let number = match dice.below(24) {
        0 => {
            let limit = dice.one_of(&[0, 1, 127, 0x7fff, 0x7fff_ffff, i64::MAX]);
            if dice.chance(1, 2) { limit } else { !limit }
        }
        1 => number.wrapping_add(dice.range(-2, 2)),
        _ => number,
    };
    wrapped(number, count.ty)
}

/// Chooses the arguments of one call.
pub fn arguments(dice: &mut Dice<'_>, params: &[Param], memory: u32) -> Vec<Lanes> {
    let places = places(dice, params);
    // The numbers and trip counts.
    let mut known: Vec<(i64, i64)> = Vec::new();
    let mut all: Vec<Lanes> = Vec::new();
    // The parameters that others refer to are before them.
    for (at, param) in params.iter().enumerate() {
        let ty = param.ty();
        let start = |count: &Count| count.param.map_or(count.start, |index| known[index].0);
        let mut trip_count = 0;
        let number = match param {
            Param::Base { bias, .. } => i64::from(memory.wrapping_add(places[at]).wrapping_sub(*bias).cast_signed()),
            Param::Start(_) if !dice.chance(1, 12) => dice.range(-4, 40),
            Param::Start(_) | Param::Number(_) => dice.number(ty).cast_signed(),
            Param::Bound(count) => {
                trip_count = trips(dice, count.most);
                bound(dice, count, start(count), trip_count)
            }
            Param::Limit { count, scale, offset } => {
                let trips = count.bound.map_or(count.most, |bound| known[bound].1);
                let last = start(count).wrapping_add(count.step * trips.max(1));
                let away = dice.one_of(&[0, 0, 0, 1, -1, 2, 4, -4, 1000, 1000]);
                last.wrapping_mul(*scale).wrapping_add(offset + away)
            }
        };
        known.push((number, trip_count));
        let width = ty.lane_bits();
        if !ty.is_vector() && (ty.bits() <= 64 || dice.chance(1, 2)) {
            all.push(vec![truncate(width, i128::from(number).cast_unsigned())]);
            continue;
        }
        // All lanes of a vector, and both halves of an i128.
        let mut lane = || u128::from(dice.number(ty)) << 64 | u128::from(dice.number(ty));
        let mut lanes: Lanes = (0..ty.lane_count()).map(|_| lane()).collect();
        let other = params[..at].iter().zip(&all).rfind(|(other, _)| other.ty() == ty);
        match (other, dice.below(if ty.is_vector() { 4 } else { 1 })) {
            // Every second lane is near the same lane of another vector.
            (Some((_, other)), 1) => {
                let near = lanes.iter_mut().zip(other).step_by(2);
                near.for_each(|(lane, &other)| *lane = other.wrapping_add(dice.range(0, 2)).wrapping_sub(1));
            }
            // All lanes but one are equal.
            (_, 2) => {
                let (odd, value) = (dice.below(lanes.len()), lanes[0]);
                lanes.fill(value);
                lanes[odd] = value.wrapping_add(dice.range(0, 2));
            }
            _ => {}
        }
        all.push(lanes.into_iter().map(|lane| truncate(width, lane)).collect());
    }
    all
}

/// Chooses the positions of all bases in the memory: far apart, or at a small distance from another
/// one.
fn places(dice: &mut Dice<'_>, params: &[Param]) -> Vec<u32> {
    let mut places = vec![0; params.len()];
    let mut known: Vec<u32> = Vec::new();
    let overlap = dice.below(3);
    let mut slot = 0;
    for (at, param) in params.iter().enumerate() {
        let &Param::Base { align, .. } = param else { continue };
        let step = i64::from(align);
        let place = match known.last() {
            Some(_) if overlap > 0 && dice.chance(2, 3) => {
                let other = i64::from(dice.one_of(&known));
                let distance = match dice.below(8) {
                    0 => 0,
                    1 => dice.range(-16, 16),
                    2 => dice.range(-70, 70),
                    3 => dice.range(-280, 280),
                    4 | 5 => dice.one_of(&[64, -64, 32, -32, 128, -128, 16, -16, 60, 4, -4, 68, -60]),
                    6 => dice.range(-16, 16) * dice.one_of(&[16, 16, 32, 64]),
                    _ => dice.range(-1200, 1200),
                };
                (other + distance).div_euclid(step) * step
            }
            _ => {
                let apart = i64::from(BYTES) / 2 + (slot % 4 - 2) * 1600;
                slot += 1;
                let place = match dice.below(10) {
                    0..3 => 0,
                    3..6 => dice.range(0, 3) * 16,
                    6 => 32,
                    7 => dice.range(0, 7) * 8,
                    8 => dice.range(0, 15) * 4,
                    _ => dice.range(0, 127),
                };
                (apart + place) / step * step
            }
        };
        places[at] = place.clamp(0, i64::from(BYTES) - 64) as u32 / align * align;
        known.push(places[at]);
    }
    places
}
