//! Tests every operation on boundary operands: the definition, the fast interpreter and
//! translations agree.
//!
//! A program is a loop that takes operands from a table, executes one operation and stores its
//! result. The tables are long, so that the loops are translated.

use super::common::{sreg, vreg};
use super::loops::{ADD, BASE, DATA, SUB, branch, load, mem, ri, rr};
use super::random::compare;
use npu_mc::machine::{IO_BASE, SCRATCHPAD_SIZE};
use npu_mc::raw::{AluOp, MemOp};
use npu_sim::{Lanes, Machine, Stop};

/// Boundary values of shift amounts, signs, carries, and floats.
const CORNERS: [u32; 40] = [
    0,
    1,
    2,
    3,
    7,
    8,
    15,
    16,
    17,
    30,
    31,
    32,
    33,
    63,
    64,
    65,
    127,
    128,
    255,
    256,
    0x7fff,
    0x8000,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    0xffff_8000,
    0xffff_ff80,
    0xffff_fffe,
    0xffff_ffff,
    // 1.0, -1.5, infinities, NaNs, the smallest values, 2^31, 200.0.
    0x3f80_0000,
    0xbfc0_0000,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0x0080_0000,
    0x007f_ffff,
    0x4f00_0000,
    0x4348_0000,
];

/// Immediates at the ends of their field and at shift amounts.
const IMMEDIATES: [i32; 12] = [0, 1, 7, 15, 16, 31, 32, 33, 63, 64, 255, -256];

/// The address of the operands.
const TABLE: u32 = DATA + 0x1_0000;

/// Registers: the counter, the address in the table, the address for results.
const COUNT: u32 = 1;
const FROM: u32 = 12;
const TO: u32 = 13;

const LOAD: u32 = 2;
const STORE: u32 = 34;
const LOAD_VECTOR: u32 = 9;
const STORE_VECTOR: u32 = 38;

/// Returns a `movei` of 16 bits.
fn movei(register: u32, value: u32) -> u32 {
    0x6200_0000 | register << 18 | value << 2
}

/// Iterates over all operations.
fn operations() -> impl Iterator<Item = AluOp> {
    (0..64).filter_map(AluOp::from_code)
}

/// Returns whether the thread hangs at the operation, or its result never arrives.
fn ends(op: AluOp) -> bool {
    matches!(op, AluOp::F32tof64 | AluOp::F64tof32 | AluOp::Crp)
}

/// Returns a loop around a body; each iteration increments the addresses by `from` and `to` bytes.
fn around(body: &[u32], (from, to): (u32, u32)) -> Vec<u32> {
    let mut words = body.to_vec();
    words.push(ri(ADD, FROM, FROM, from));
    words.push(ri(ADD, TO, TO, to));
    words.push(ri(SUB, COUNT, COUNT, 1));
    words.push(branch(true, COUNT, -(words.len() as i32)));
    words
}

/// Runs a loop by all three methods and compares the results; returns whether most of its
/// instructions were translated. `mask` is the lane mask.
fn check(what: &str, words: &[u32], table: &[u32], iterations: u32, mask: u32) -> bool {
    let ways = [Some(2), None, None].map(|after| {
        let mut machine = load(words, after);
        for (word, address) in table.iter().zip((TABLE..).step_by(4)) {
            machine.memory_mut().write_u32(address, *word).unwrap();
        }
        let thread = machine.thread_mut(0);
        for register in 0..8 {
            thread.set_vector(vreg(register), Lanes([0x1234_5678; 16]));
        }
        for (register, value) in [
            (59, mask),
            (COUNT as u8, iterations),
            (FROM as u8, TABLE),
            (TO as u8, DATA),
        ] {
            thread.set_scalar(sreg(register), value);
        }
        thread.set_pc(BASE);
        machine
    });
    let [mut translated, mut fast, mut defined] = ways;
    let steps = u64::from(iterations) * words.len() as u64;
    let ended = defined.run_traced(0, steps, &mut |_| {});
    let context = format!("{what}, lanes {mask:#06x}");
    for (machine, way) in [(&mut fast, "fast interpreter"), (&mut translated, "translation")] {
        let stop = machine.run(0, steps);
        assert_eq!(stop, ended, "{context}: {way}");
        let same = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| compare(0, machine, &defined)));
        assert!(same.is_ok(), "{context}: {way} and the definition differ");
    }
    10 * translated.translated_instructions() > 8 * steps
}

/// Returns all pairs of boundary values.
fn pairs() -> Vec<u32> {
    let all = CORNERS.iter().flat_map(|a| CORNERS.iter().flat_map(move |b| [*a, *b]));
    all.collect()
}

#[test]
fn scalar_operations_agree() {
    let table = pairs();
    let iterations = (CORNERS.len() * CORNERS.len()) as u32;
    let mut translated = 0;
    for op in operations().filter(|&op| !ends(op)) {
        let code = op as u32;
        let (x, y, result) = (2, 3, 4);
        let registers = [
            mem(LOAD, x, FROM, 0),
            mem(LOAD, y, FROM, 4),
            rr(code, result, x, y),
            mem(STORE, result, TO, 0),
        ];
        translated += u32::from(check(
            &format!("{op:?} of scalars"),
            &around(&registers, (8, 4)),
            &table,
            iterations,
            0xffff,
        ));
        if code >= 32 {
            continue;
        }
        for immediate in IMMEDIATES {
            let body = [
                mem(LOAD, x, FROM, 0),
                ri(code, result, x, immediate as u32),
                mem(STORE, result, TO, 0),
            ];
            let words = around(&body, (4, 4));
            let what = format!("{op:?} of a scalar and {immediate}");
            translated += u32::from(check(&what, &words, &CORNERS, CORNERS.len() as u32, 0xffff));
        }
    }
    if cfg!(feature = "jit") {
        assert!(translated > 300, "{translated} loops are translated");
    }
}

/// Returns lines of operands: the first half of each has the first operands, the second half the
/// second ones.
fn lines() -> (Vec<u32>, u32) {
    let mut table = Vec::new();
    let mut all: Vec<(u32, u32)> = CORNERS
        .iter()
        .flat_map(|a| CORNERS.iter().map(move |b| (*a, *b)))
        .collect();
    // Neighboring lanes have unrelated values.
    let half = all.len() / 2;
    all.rotate_left(half);
    let mut add = |chunk: &[(u32, u32)], scalar: Option<u32>| {
        table.extend(chunk.iter().map(|pair| pair.0));
        table.extend(chunk.iter().map(|pair| pair.1));
        if let (Some(scalar), Some(place)) = (scalar, table.len().checked_sub(15)) {
            table[place] = scalar;
        }
    };
    for chunk in all.chunks_exact(16) {
        add(chunk, None);
    }
    // The scalar operand is that of the second lane: here it takes every boundary value.
    for (chunk, scalar) in all.chunks_exact(16).zip(CORNERS) {
        add(chunk, Some(scalar));
    }
    let iterations = (table.len() / 32) as u32;
    (table, iterations)
}

#[test]
fn vector_operations_agree() {
    let (table, iterations) = lines();
    let mut translated = 0;
    for op in operations().filter(|&op| !ends(op)) {
        let code = op as u32;
        let loads = [
            mem(LOAD_VECTOR, 1, FROM, 0),
            mem(LOAD_VECTOR, 2, FROM, 64),
            // The scalar operand equals that of some lane.
            mem(LOAD, 5, FROM, 68),
        ];
        // The V bits of destination, first and second operand.
        for (files, what) in [
            (7, "vectors"),
            (6, "a vector and a scalar"),
            (5, "a scalar and a vector"),
        ] {
            let scalar_first = files == 5;
            let word = match (files, scalar_first) {
                (_, true) => rr(code, 3, 5, 2) | files << 1,
                (7, _) => rr(code, 3, 1, 2) | files << 1,
                _ => rr(code, 3, 1, 5) | files << 1,
            };
            for mask in [0xffff, 0x5a3c, 0x0001] {
                let mut body = loads.to_vec();
                body.extend([word, mem(STORE_VECTOR, 3, TO, 0)]);
                translated += u32::from(check(
                    &format!("{op:?} of {what}"),
                    &around(&body, (128, 64)),
                    &table,
                    iterations,
                    mask,
                ));
            }
        }
        // Operations with a scalar result: compares, lanes, masks.
        for (word, what) in [
            (rr(code, 4, 1, 2) | 3 << 1, "vectors"),
            (rr(code, 4, 1, 5) | 2 << 1, "a vector and a scalar"),
        ] {
            let mut body = loads.to_vec();
            body.extend([word, mem(STORE, 4, TO, 0)]);
            translated += u32::from(check(
                &format!("{op:?} of {what} to a scalar"),
                &around(&body, (128, 4)),
                &table,
                iterations,
                0xffff,
            ));
        }
        if code >= 32 {
            continue;
        }
        for immediate in IMMEDIATES {
            let mut body = loads[..1].to_vec();
            body.extend([ri(code, 3, 1, immediate as u32) | 6, mem(STORE_VECTOR, 3, TO, 0)]);
            let what = format!("{op:?} of a vector and {immediate}");
            translated += u32::from(check(&what, &around(&body, (128, 64)), &table, 40, 0xffff));
            let mut body = loads[..1].to_vec();
            body.extend([ri(code, 4, 1, immediate as u32) | 1 << 1, mem(STORE, 4, TO, 0)]);
            let what = format!("{op:?} of a vector and {immediate} to a scalar");
            translated += u32::from(check(&what, &around(&body, (128, 4)), &table, 40, 0xffff));
        }
    }
    if cfg!(feature = "jit") {
        assert!(translated > 480, "{translated} loops are translated");
    }
}

/// Tests compares and moves that set the lane mask, and operations under it.
#[test]
fn masks_agree() {
    let (table, iterations) = lines();
    let rm = 59;
    let work = [rr(ADD, 3, 1, 2) | 7 << 1, mem(STORE_VECTOR, 3, TO, 0)];
    let all = movei(rm, 0xffff);
    let sets: [(&str, Vec<u32>); 8] = [
        ("a compare of vectors", vec![rr(16, rm, 1, 2) | 3 << 1]),
        ("a float compare", vec![rr(39, rm, 1, 2) | 3 << 1]),
        ("a compare with a number", vec![ri(14, rm, 1, 1) | 2 << 1]),
        ("a move", vec![mem(LOAD, 5, FROM, 20), rr(32, rm, 5, 0)]),
        ("a number", vec![movei(rm, 0x00ff)]),
        ("another number", vec![movei(rm, 0xff00)]),
        ("no lanes", vec![movei(rm, 0)]),
        ("bits of lanes", vec![rr(50, 6, 1, 0) | 2 << 1, rr(32, rm, 6, 0)]),
    ];
    for (what, set) in sets {
        for extra in [
            vec![],
            vec![rr(24, 4, 1, 2) | 7 << 1],
            vec![0x6000_0002 | 3 << 18 | 0x1234 << 2],
            vec![0x6100_0002 | 3 << 18 | 0x1234 << 2],
            vec![
                mem(STORE_VECTOR, 1, 14, 0) | 1 << 1,
                mem(LOAD_VECTOR, 4, 14, 0) | 1 << 1,
            ],
        ] {
            let mut body = vec![mem(LOAD_VECTOR, 1, FROM, 0), mem(LOAD_VECTOR, 2, FROM, 64)];
            body.extend(&set);
            body.extend(&extra);
            body.extend(work);
            body.push(all);
            check(what, &around(&body, (128, 64)), &table, iterations, 0xffff);
        }
    }
}

/// Returns addresses at which an access is special, for main memory and the scratchpad.
fn places(size: u32, scratchpad: bool) -> Vec<u32> {
    let mut places: Vec<u32> = (0..8).chain([16, 32, 62, 63]).map(|at| DATA + 0x100 + at).collect();
    match scratchpad {
        true => {
            let end = SCRATCHPAD_SIZE;
            places.extend([
                end - 64,
                end - 60,
                end - 4,
                end - 2,
                end - 1,
                end,
                end + 4,
                0u32.wrapping_sub(4),
            ]);
        }
        // The end of a page, and of ordinary memory.
        false => {
            let next = DATA + 0x1000;
            places.extend([next - 64, next - size, next - 1, next - 4, next]);
            places.extend([IO_BASE - 64, IO_BASE - 4, IO_BASE - 1, IO_BASE, IO_BASE + 4]);
        }
    }
    places
}

/// The number of iterations at an ordinary address before the special one.
const WARM: u32 = 12;

#[test]
fn accesses_agree() {
    let ordinary = DATA + 0x200;
    for op in (0..64).filter_map(MemOp::from_code) {
        for scratchpad in [false, true] {
            for place in places(4, scratchpad) {
                for mask in [0xffff, 0x0ff0, 0] {
                    let vector = format!("{op:?}").contains('V');
                    if mask != 0xffff && !(scratchpad && vector) {
                        continue;
                    }
                    let warm = if scratchpad { 0x100 } else { ordinary };
                    let mut table = vec![warm; WARM as usize];
                    table.extend([place, warm]);
                    // The address comes from the table; the loaded value is stored to memory.
                    let body = [
                        mem(LOAD, 6, FROM, 0),
                        rr(32, 3, 6, 0),
                        mem(op as u32, 3, 6, 0) | u32::from(scratchpad) << 1,
                        rr(ADD, 7, 7, 3),
                        mem(STORE, 7, TO, 0),
                        mem(STORE_VECTOR, 3, 14, 0),
                    ];
                    let words = around(&body, (4, 4));
                    check_access(&format!("{op:?} at {place:#x}"), &words, &table, mask);
                }
            }
        }
    }
}

/// Checks like [`check`], with space for a vector.
fn check_access(what: &str, words: &[u32], table: &[u32], mask: u32) {
    let iterations = table.len() as u32;
    let steps = u64::from(iterations) * words.len() as u64;
    let prepared = |after| {
        let mut machine: Machine = load(words, after);
        for (word, address) in table.iter().zip((TABLE..).step_by(4)) {
            machine.memory_mut().write_u32(address, *word).unwrap();
        }
        for (word, address) in CORNERS.iter().chain(&CORNERS).zip((DATA + 0x100..).step_by(4)) {
            machine.memory_mut().write_u32(address, *word).unwrap();
        }
        let thread = machine.thread_mut(0);
        thread.set_vector(
            vreg(3),
            Lanes(std::array::from_fn(|lane| 0x8182_8384u32.wrapping_mul(lane as u32 + 1))),
        );
        let registers = [
            (59, mask),
            (COUNT as u8, iterations),
            (FROM as u8, TABLE),
            (TO as u8, DATA),
            (14, DATA + 0x800),
        ];
        for (register, value) in registers {
            thread.set_scalar(sreg(register), value);
        }
        thread.set_pc(BASE);
        // The results of reads at the first address of I/O space.
        machine.push_console_input(&[0x81, 0x82, 0x83]);
        machine
    };
    let mut defined = prepared(None);
    let ended: Stop = defined.run_traced(0, steps, &mut |_| {});
    for (after, way) in [(None, "fast interpreter"), (Some(2), "translation")] {
        let mut machine = prepared(after);
        assert_eq!(machine.run(0, steps), ended, "{what}, lanes {mask:#06x}: {way}");
        let same = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| compare(0, &machine, &defined)));
        assert!(
            same.is_ok(),
            "{what}, lanes {mask:#06x}: {way} and the definition differ"
        );
    }
}
