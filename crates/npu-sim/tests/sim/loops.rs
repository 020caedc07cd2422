//! Random loops, most of which are simple enough for translation.

use super::common::{Random, sreg, vreg};
use npu_sim::{Config, Lanes, Machine};

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

/// Returns a word of a loop before its last `left` words. Most are scalar integer operations; s20
/// and s21 are counters, s12 and s13 addresses.
pub fn word(random: &mut Random, left: u32) -> u32 {
    let [d, a, b] = [(); 3].map(|()| random.below(10));
    let any = random.word();
    match random.below(32) {
        0..=8 => rr(1 + random.below(25), d, a, b),
        9..=13 => ri(1 + random.below(25), d, a, any),
        14 => mem([2, 34][any as usize & 1], d, 12 + random.below(2), any & 0x7c) | 1 << 1,
        15 | 16 => 0x6000_0000 | random.below(3) << 24 | d << 18 | any & 0x3_fffc,
        17..=20 => {
            let op = [0, 1, 2, 4, 5][random.below(5) as usize];
            mem(op, d, 12 + random.below(2), any & 0x7c)
        }
        21..=23 => mem(32 + random.below(3), d, 12 + random.below(2), any & 0x7c),
        24..=26 => branch(any & 1 != 0, d, 1 + random.below(left.clamp(1, 6)) as i32),
        27 => jump(any & 8 == 8, 1 + random.below(left.clamp(1, 4)) as i32),
        28 => rr(48 + random.below(3), d, a, b),
        // Undecoded words, floats, and occasional misaligned or special accesses.
        29 => [0x5f00_0000, rr(32 + random.below(14), d, a, b)][random.below(2) as usize],
        30 if random.below(6) == 0 => any,
        30 => ri(ADD, 12, 12, 4 * random.below(3)),
        _ if random.below(8) == 0 => mem([2, 34, 4, 32][random.below(4) as usize], d, a, any),
        _ => rr(ADD, d, a, b) | random.below(2) << 1,
    }
}

/// Returns a vector operation that is rare in compiled code: packed accesses, the scratchpad, lanes
/// by number, halves.
fn rare_vector_word(random: &mut Random, [d, a, b]: [u32; 3]) -> u32 {
    let any = random.word();
    let shared = 1 << 1;
    match random.below(12) {
        0 => mem(36 + random.below(2), d, 12 + random.below(2), 16 * random.below(12)),
        1 | 2 => mem(9, d, 12 + random.below(2), any & 0x7c) | shared,
        3 | 4 => mem(38, d, 12 + random.below(2), any & 0x7c) | shared,
        // Small numbers, which are valid lanes.
        5 | 6 => ri(2, d, a, 15) | 6,
        7 => rr(24, d, a, b) | 7 << 1,
        8 => rr(25, d, a, b) | 2 << 1,
        9 => ri(25, d, a, random.below(18)) | 1 << 1,
        10 => rr(50, d, a, b) | 2 << 1,
        _ => 0x6000_0002 | random.below(2) << 24 | d << 18 | any & 0x3_fffc,
    }
}

/// Returns a word of a loop on vectors.
pub fn vector_word(random: &mut Random, left: u32) -> u32 {
    let [d, a, b] = [(); 3].map(|()| random.below(8));
    let operation = match random.below(5) {
        0 => 32 + random.below(5),
        1 => [43, 44, 45, 48, 49][random.below(5) as usize],
        _ => random.below(14),
    };
    let shift = 9 + random.below(3);
    match random.below(24) {
        // Two vectors, a vector and a scalar, a scalar and a vector, a vector and an immediate.
        0..=6 => rr(operation, d, a, b) | 7 << 1,
        7 | 8 => rr(operation, d, a, b) | 6 << 1,
        9 => rr(operation, d, a, b) | 5 << 1,
        10 => ri(operation & 31, d, a, random.word()) | 6,
        11 => ri(shift, d, a, random.below(70)) | 6,
        12 => rr(shift, d, a, b) | 6 << 1,
        // A scalar or an immediate in all lanes.
        13 => rr(32, d, a, b) | 4 << 1,
        14 => 0x6200_0002 | d << 18 | random.word() & 0x3_fffc,
        // Compares of floats, and occasionally of integers.
        15 => rr(37 + random.below(6), d, a, b) | (2 + random.below(2)) << 1,
        16 if random.below(16) == 0 => rr(16, d, a, b) | 3 << 1,
        16 => ri(14, d, a, b),
        17 => rr(32, 59, a, 0),
        18 => 0x6200_0000 | 59 << 18 | (random.word() & 0xffff | (random.below(2) * 0xffff)) << 2,
        19 => mem(9, d, 12 + random.below(2), 64 * random.below(3)),
        20 => mem(
            [7, 8, 11, 12, 9][random.below(5) as usize],
            d,
            12 + random.below(2),
            16 * random.below(12),
        ),
        21 => mem(38, d, 12 + random.below(2), 64 * random.below(3)),
        22 => rare_vector_word(random, [d, a, b]),
        _ => word(random, left),
    }
}

/// Returns a word of a loop on the results of vector compares: scalars with undriven upper halves,
/// lane masks, spills.
pub fn compare_word(random: &mut Random, left: u32) -> u32 {
    let [d, a, b] = [(); 3].map(|()| random.below(8));
    let any = random.word();
    match random.below(24) {
        // Compares of integers and of floats, to a scalar or the lane mask.
        0..=4 => {
            let operation = [14, 16, 20, 23, 37, 39][random.below(6) as usize];
            let to = if random.below(6) == 0 { 59 } else { d };
            rr(operation, to, a, b) | (2 + random.below(2)) << 1
        }
        5 => ri(14 + random.below(10), d, a, any) | 2 << 1,
        6 => rr(32, 59, a, 0),
        // Operations that keep the halves separate, and others.
        7..=10 => rr(
            [0, 1, 2, 3, 4, 5, 6, 13, 32, 43, 44, 45][random.below(12) as usize],
            d,
            a,
            b,
        ),
        11 | 12 => ri(1 + random.below(6), d, a, any),
        13 => ri(
            9 + random.below(3),
            d,
            a,
            [0, 15, 16, 17, 32, 64][random.below(6) as usize],
        ),
        14 => 0x6000_0000 | random.below(3) << 24 | d << 18 | any & 0x3_fffc,
        // Spills and reloads, at few addresses.
        15 | 16 => mem(34, d, 12, any & 0xc),
        17 | 18 => mem(2, d, 12, any & 0xc),
        19 => mem([9, 38][any as usize & 1], d, 12 + random.below(2), 64 * random.below(3)),
        20 => branch(any & 1 != 0, d, 1 + random.below(left.clamp(1, 6)) as i32),
        21 => rr(random.below(14), d, a, b) | 7 << 1,
        22 if any & 1 == 0 => vector_word(random, left),
        22 => rare_vector_word(random, [d, a, b]),
        _ => word(random, left),
    }
}

/// The kinds of words in a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Words {
    /// [`word`]
    Scalars,
    /// [`vector_word`]
    Vectors,
    /// [`compare_word`]
    Compares,
}

pub const BASE: u32 = 0x1000;
pub const DATA: u32 = 0x10_0000;

pub const LINK: u32 = 62;
pub const RETURN: u32 = 0x73 << 24;

/// Returns a random inner loop in an outer loop, with a leaf function after it that is called
/// directly and through s22.
fn program(random: &mut Random, of: Words) -> (Vec<u32>, u32) {
    let length = 3 + random.below(24);
    let word = match of {
        Words::Scalars => word,
        Words::Vectors => vector_word,
        Words::Compares => compare_word,
    };
    let mut words = vec![0x6200_0000 | 21 << 18 | (4 * (5 + random.below(60)))];
    let mut calls = Vec::new();
    for k in 0..length {
        match random.below(12) {
            0 => {
                calls.push(words.len());
                words.push(0);
            }
            // The link and a jump to the leaf function.
            1 => words.extend([ri(ADD, LINK, 63, 8), 0x70 << 24 | 22 << 18]),
            _ => words.push(word(random, length - k)),
        }
    }
    if of != Words::Scalars && random.below(4) != 0 {
        words.push(0x6200_0000 | 59 << 18 | 0xffff << 2);
    }
    words.push(ri(SUB, 21, 21, 1));
    words.push(branch(true, 21, -(words.len() as i32 - 1)));
    words.push(ri(SUB, 20, 20, 1));
    words.push(branch(true, 20, -(words.len() as i32)));
    // The end of the program.
    words.push(jump(false, 0));
    let leaf = words.len();
    for at in calls {
        words[at] = jump(true, (leaf - at) as i32);
    }
    words.extend((0..random.below(4)).map(|_| rr(ADD, random.below(10), random.below(10), random.below(10))));
    words.push(RETURN);
    (words, BASE + 4 * leaf as u32)
}

/// Creates a machine with a program whose loops are translated after `after` iterations.
pub fn load(words: &[u32], after: Option<u32>) -> Machine {
    let mut machine = Machine::new(Config {
        memory_limit: 1 << 24,
        translate_after: after,
        ..Config::default()
    });
    for (word, address) in words.iter().zip((BASE..).step_by(4)) {
        machine.memory_mut().write_u32(address, *word).unwrap();
    }
    machine.memory_mut().write_u32(DATA, 1).unwrap();
    machine
}

/// Creates a machine with all threads at the start of a random program.
pub fn prepared(seed: u64, of: Words, after: Option<u32>) -> Machine {
    let mut random = Random(seed);
    let (words, leaf) = program(&mut random, of);
    let mut machine = load(&words, after);
    for k in 0..64 {
        let word = random.word();
        machine.memory_mut().write_u32(DATA + 4 * k, word).unwrap();
    }
    // Occasionally the data addresses point into the code.
    let code = random.below(12) == 0;
    for number in 0..machine.threads() {
        let thread = machine.thread_mut(number);
        for register in 0..59 {
            thread.set_scalar(sreg(register), random.word());
        }
        for register in 0..8 {
            thread.set_vector(vreg(register), Lanes([(); 16].map(|()| random.word())));
        }
        thread.set_scalar(sreg(59), 0xffff);
        thread.set_scalar(sreg(12), if code { BASE } else { DATA });
        thread.set_scalar(sreg(13), DATA + 0x80);
        thread.set_scalar(sreg(20), 40);
        thread.set_scalar(sreg(22), leaf);
        // The target of the first return.
        thread.set_scalar(sreg(LINK), BASE);
        thread.set_pc(BASE);
    }
    machine
}
