//! The model of operations on lanes of up to 32 bits, and the values to test.

use super::{LANES, Lanes};

/// Bits of float edge cases: zeros, subnormals, around one half, one, the limits of integers, the
/// largest, infinities, NaNs.
pub const FLOAT_EDGES: [u32; 28] = [
    0,
    0x8000_0000,
    1,
    0x8000_0001,
    0x007f_ffff,
    0x0080_0000,
    0x3eff_ffff,
    0x3f00_0000,
    0x3f80_0000,
    0x3f80_0001,
    0xbf80_0000,
    0x4048_f5c3,
    0xc048_f5c3,
    0x42c8_0000,
    0xc2c8_0000,
    0x437f_0000,
    0x4b80_0000,
    0x4eff_ffff,
    0x4f00_0000,
    0xcf00_0000,
    0x7f7f_ffff,
    0xff7f_ffff,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0xffc1_2345,
    0x7f80_0001,
    0x40a0_0000,
];

/// Truncates a value to `width` bits.
pub fn truncate(width: u32, value: u32) -> u32 {
    value & (u32::MAX >> (32 - width))
}

/// Returns a lane as a signed number.
pub fn extend(width: u32, lane: u32) -> i64 {
    i64::from((lane << (32 - width)).cast_signed() >> (32 - width))
}

/// Computes an operation on two lanes.
pub fn integer(op: &str, width: u32, a: u32, b: u32) -> u32 {
    let (sa, sb) = (extend(width, a), extend(width, b));
    let (ua, ub) = (i64::from(truncate(width, a)), i64::from(truncate(width, b)));
    let (min, max) = (-(1i64 << (width - 1)), (1i64 << (width - 1)) - 1);
    let most = (1i64 << width) - 1;
    let result = match op {
        "iadd" => ua + ub,
        "isub" => ua - ub,
        "imul" => sa * sb,
        "band" => ua & ub,
        "bor" => ua | ub,
        "bxor" => ua ^ ub,
        "smin" => sa.min(sb),
        "smax" => sa.max(sb),
        "umin" => ua.min(ub),
        "umax" => ua.max(ub),
        "smulhi" => (sa * sb) >> width,
        "umulhi" => ((ua.cast_unsigned() * ub.cast_unsigned()) >> width).cast_signed(),
        "sadd_sat" => (sa + sb).clamp(min, max),
        "ssub_sat" => (sa - sb).clamp(min, max),
        "uadd_sat" => (ua + ub).min(most),
        "usub_sat" => (ua - ub).max(0),
        "avg_round" => (ua + ub + 1) >> 1,
        _ => panic!("no operation `{op}`"),
    };
    truncate(width, result as u32)
}

/// Computes an operation on one lane.
pub fn integer_unary(op: &str, width: u32, a: u32) -> u32 {
    let a = truncate(width, a);
    let result = match op {
        "bnot" => !a,
        "ineg" => a.wrapping_neg(),
        "iabs" => extend(width, a).unsigned_abs() as u32,
        "popcnt" => a.count_ones(),
        _ => panic!("no operation `{op}`"),
    };
    truncate(width, result)
}

/// Shifts or rotates by an amount modulo the width.
pub fn shift(op: &str, width: u32, a: u32, by: i64) -> u32 {
    let by = by.rem_euclid(width.into()) as u32;
    let a = u64::from(truncate(width, a));
    let result = match op {
        "ishl" => a << by,
        "ushr" => a >> by,
        "sshr" => (extend(width, a as u32) >> by).cast_unsigned(),
        "rotl" => a << by | a >> (width - by),
        "rotr" => a >> by | a << (width - by),
        _ => panic!("no operation `{op}`"),
    };
    truncate(width, result as u32)
}

/// Returns whether a condition of `icmp` holds.
pub fn integer_holds(condition: &str, width: u32, a: u32, b: u32) -> bool {
    let signed = extend(width, a).cmp(&extend(width, b));
    let unsigned = truncate(width, a).cmp(&truncate(width, b));
    match condition {
        "eq" => signed.is_eq(),
        "ne" => signed.is_ne(),
        "slt" => signed.is_lt(),
        "sle" => signed.is_le(),
        "sgt" => signed.is_gt(),
        "sge" => signed.is_ge(),
        "ult" => unsigned.is_lt(),
        "ule" => unsigned.is_le(),
        "ugt" => unsigned.is_gt(),
        "uge" => unsigned.is_ge(),
        _ => panic!("no condition `{condition}`"),
    }
}

/// A pseudorandom generator (splitmix64) that is seeded by a name, so it is the same on all hosts.
pub struct Random(u64);

impl Random {
    pub fn new(name: &str) -> Random {
        let fnv = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Random(name.bytes().fold(0xcbf2_9ce4_8422_2325, fnv))
    }

    fn word(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) >> 32) as u32
    }

    fn below(&mut self, count: usize) -> usize {
        self.word() as usize % count
    }

    fn one_of(&mut self, list: &[u32]) -> u32 {
        list[self.below(list.len())]
    }

    fn shuffle<T>(&mut self, list: &mut [T]) {
        for k in (1..list.len()).rev() {
            list.swap(k, self.below(k + 1));
        }
    }

    /// Returns lanes that are edge cases, powers of two, or random.
    pub fn lanes(&mut self, width: u32) -> Lanes {
        std::array::from_fn(|_| match self.below(3) {
            0 => self.one_of(&edges(width)),
            1 => 1 << (self.word() % width),
            _ => truncate(width, self.word()),
        })
    }

    /// Returns lanes of which some are `value` or adjacent to it.
    pub fn lanes_near(&mut self, width: u32, value: u32) -> Lanes {
        let mut lanes = self.lanes(width);
        for (lane, distance) in lanes.iter_mut().zip([0, 1, u32::MAX]) {
            *lane = truncate(width, value.wrapping_add(distance));
        }
        self.shuffle(&mut lanes);
        lanes
    }

    /// Returns two vectors; some of their lanes are equal or adjacent.
    pub fn near(&mut self, width: u32) -> (Lanes, Lanes) {
        let a = self.lanes(width);
        let mut b = self.lanes(width);
        for k in 0..LANES / 2 {
            b[k] = truncate(width, a[k].wrapping_add((k as u32 % 3).wrapping_sub(1)));
        }
        (a, b)
    }

    /// Returns each pair of edge cases, then pairs of random numbers, some of them equal.
    pub fn edge_pairs(&mut self, width: u32) -> Vec<(Lanes, Lanes)> {
        let edges = edges(width);
        let mut pairs: Vec<(u32, u32)> = edges.iter().flat_map(|&a| edges.map(|b| (a, b))).collect();
        while !pairs.len().is_multiple_of(LANES) || pairs.len() < 13 * LANES {
            let (a, b) = (truncate(width, self.word()), truncate(width, self.word()));
            pairs.push((a, if self.below(8) == 0 { a } else { b }));
        }
        self.shuffle(&mut pairs);
        let vectors = pairs.chunks_exact(LANES);
        vectors
            .map(|pairs| (std::array::from_fn(|k| pairs[k].0), std::array::from_fn(|k| pairs[k].1)))
            .collect()
    }

    /// Returns pairs of vectors that are equal in all lanes, in all but one, in only one, or in
    /// none.
    pub fn almost_equal(&mut self, width: u32) -> Vec<(Lanes, Lanes)> {
        // Adjacent values have the same sign, so that signed and unsigned comparisons agree.
        let inner = |value: u32| truncate(width, value & !3 | 2);
        let mut cases = Vec::new();
        for case in 0..6 {
            let value = inner(self.word());
            let (mut a, mut b) = ([value; LANES], [value; LANES]);
            match case {
                0 => {}
                1 => a[15] += 1,
                2 => b[0] += 1,
                3 => {
                    a = [value + 1; LANES];
                    a[7] = value;
                }
                4 => {
                    b = [value + 1; LANES];
                    b[3] = value;
                }
                _ => b = [inner(!value); LANES],
            }
            cases.push((a, b));
        }
        cases
    }

    /// Returns floats: edge cases, numbers in the range of integers with a fraction, and random
    /// bits.
    pub fn floats(&mut self) -> Lanes {
        std::array::from_fn(|_| match self.below(3) {
            0 => self.one_of(&FLOAT_EDGES),
            1 => self.fraction(),
            _ => self.word(),
        })
    }

    /// Returns two vectors of floats; some of their lanes are equal.
    pub fn float_pairs(&mut self) -> (Lanes, Lanes) {
        let a = self.floats();
        let mut b = self.floats();
        b[1] = a[1];
        b[6] = a[6] ^ 1 << 31;
        (a, b)
    }

    /// Returns floats that each rounding mode rounds differently.
    pub fn fractions(&mut self) -> Lanes {
        std::array::from_fn(|k| if k % 4 == 3 { self.word() } else { self.fraction() })
    }

    /// Returns three vectors of floats. The products of the first two are close to the third.
    pub fn products(&mut self) -> Vec<Lanes> {
        let mut vector =
            |from: u32| std::array::from_fn(|_| (from + self.word() % 12) << 23 | self.word() & 0x807f_ffff);
        vec![vector(121), vector(121), vector(115)]
    }

    fn fraction(&mut self) -> u32 {
        // Exponents from 2^-2 to 2^22; some numbers end in one half.
        let halves = if self.below(4) == 0 { 0x8078_0000 } else { 0x807f_ffff };
        (125 + self.word() % 25) << 23 | self.word() & halves
    }
}

fn edges(width: u32) -> [u32; 13] {
    let (min, half) = (1u32 << (width - 1), width / 2);
    let all = u32::MAX >> (32 - width);
    [
        0,
        1,
        2,
        all,
        all - 1,
        37,
        all / 3,
        min,
        min + 1,
        min - 1,
        (1 << half) - 1,
        1 << half,
        (1 << half) + 1,
    ]
}
