//! Words of random loops, of which most are simple enough to be translated.

use super::common::Random;

pub fn rr(op: u32, dst: u32, src0: u32, src1: u32) -> u32 {
    op << 24 | dst << 18 | src0 << 12 | src1 << 6
}

pub fn ri(op: u32, dst: u32, src0: u32, imm: u32) -> u32 {
    2 << 29 | op << 24 | dst << 18 | src0 << 12 | (imm & 0x1ff) << 3
}

pub fn mem(op: u32, reg: u32, base: u32, offset: u32) -> u32 {
    2 << 30 | op << 24 | reg << 18 | base << 12 | (offset & 0x1ff) << 3
}

pub fn branch(nonzero: bool, reg: u32, words: i32) -> u32 {
    (0x75 + u32::from(nonzero)) << 24 | reg << 18 | (4 * words) as u32 & 0x3_ffff
}

pub fn jump(link: bool, words: i32) -> u32 {
    (0x78 + u32::from(link)) << 24 | (4 * words) as u32 & 0x3_ffff
}

pub const SUB: u32 = 5;
pub const ADD: u32 = 4;

/// A word of a loop: `left` more follow in it. Scalar integers mostly; s20 and s21 count, s12 and s13 are addresses.
pub fn word(random: &mut Random, left: u32) -> u32 {
    let [d, a, b] = [(); 3].map(|()| random.below(10));
    let any = random.word();
    match random.below(32) {
        0..=8 => rr(1 + random.below(25), d, a, b),
        9..=13 => ri(1 + random.below(25), d, a, any),
        14..=16 => 0x6000_0000 | random.below(3) << 24 | d << 18 | any & 0x3_fffc,
        17..=20 => {
            let op = [0, 1, 2, 4, 5][random.below(5) as usize];
            mem(op, d, 12 + random.below(2), any & 0x7c)
        }
        21..=23 => mem(32 + random.below(3), d, 12 + random.below(2), any & 0x7c),
        24..=26 => branch(any & 1 != 0, d, 1 + random.below(left.clamp(1, 6)) as i32),
        27 => jump(any & 8 == 8, 1 + random.below(left.clamp(1, 4)) as i32),
        28 => rr(48 + random.below(3), d, a, b),
        // Undecoded, floats, accesses that are misaligned or special now and then.
        29 => [0x5f00_0000, rr(32 + random.below(14), d, a, b)][random.below(2) as usize],
        30 if random.below(6) == 0 => any,
        30 => ri(ADD, 12, 12, 4 * random.below(3)),
        _ if random.below(8) == 0 => mem([2, 34, 4, 32][random.below(4) as usize], d, a, any),
        _ => rr(ADD, d, a, b) | random.below(2) << 1,
    }
}

/// A word of a loop on vectors.
pub fn vector_word(random: &mut Random, left: u32) -> u32 {
    let [d, a, b] = [(); 3].map(|()| random.below(8));
    let operation = match random.below(5) {
        0 => 32 + random.below(5),
        1 => [43, 44, 45, 48, 49][random.below(5) as usize],
        _ => random.below(14),
    };
    let shift = 9 + random.below(3);
    match random.below(24) {
        // Vectors, a vector and a scalar, a scalar and a vector, a vector and a number.
        0..=6 => rr(operation, d, a, b) | 7 << 1,
        7 | 8 => rr(operation, d, a, b) | 6 << 1,
        9 => rr(operation, d, a, b) | 5 << 1,
        10 => ri(operation & 31, d, a, random.word()) | 6,
        11 => ri(shift, d, a, random.below(70)) | 6,
        12 => rr(shift, d, a, b) | 6 << 1,
        // A scalar or a number in all lanes.
        13 => rr(32, d, a, b) | 4 << 1,
        14 => 0x6200_0002 | d << 18 | random.word() & 0x3_fffc,
        // Compares of floats, now and then of integers.
        15 => rr(37 + random.below(6), d, a, b) | (2 + random.below(2)) << 1,
        16 if random.below(16) == 0 => rr(16, d, a, b) | 3 << 1,
        16 => ri(14, d, a, b),
        17 => rr(32, 59, a, 0),
        18 => 0x6200_0000 | 59 << 18 | (random.word() & 0xffff | (random.below(2) * 0xffff)) << 2,
        19 | 20 => mem(9, d, 12 + random.below(2), 64 * random.below(3)),
        21 | 22 => mem(38, d, 12 + random.below(2), 64 * random.below(3)),
        _ => word(random, left),
    }
}
