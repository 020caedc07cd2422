//! Random machine functions have the same effects before and after each pass on machine
//! instructions, and after all of them.
//!
//! Functions consist of moves, arithmetic, memory accesses, vector instructions under masks, halves
//! of constants, branches, two forms of loops, and frames. The test compares the state that a
//! caller may read afterwards: results, callee-saved registers, vectors, the lane mask, and memory.
//! `NAPLESPU_FUZZ_CASES=n` sets the number of functions.

use cranelift_naplespu::abi::registers::RegisterSet;
use cranelift_naplespu::internals::{MachFunction, parse_function, run_pass};
use npu_mc::asm;
use npu_mc::cc;
use npu_mc::{Reg, SReg, VReg};
use npu_sim::{Config, Lanes, Machine, Stop};
use std::fmt::Write;

/// The passes in pipeline order.
const PASSES: [&str; 7] = [
    "copyprop",
    "wrap",
    "masks",
    "rotation",
    "loop_copies",
    "rename",
    "sched",
];

const CODE: u32 = 0x1000;
const DATA: u32 = 0x2_0000;
const STACK: u32 = 0x3_0000;
const STEPS: u64 = 40_000;

/// Registers for arithmetic: arguments, other caller-saved registers, and some callee-saved ones.
const SCALARS: [u32; 14] = [0, 1, 2, 3, 8, 9, 10, 11, 12, 20, 21, 50, 51, 52];
/// Two base addresses that are close to each other, and loop counters.
const BASES: [u32; 2] = [30, 31];
const COUNTERS: [u32; 2] = [40, 41];

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as u32) % limit
    }

    fn scalar(&mut self) -> u32 {
        // Few registers, so that instructions depend on one another.
        let few = if self.below(3) == 0 { SCALARS.len() as u32 } else { 6 };
        let at = if self.below(4) == 0 {
            SCALARS.len() as u32 - 1 - self.below(3)
        } else {
            self.below(few)
        };
        SCALARS[at as usize]
    }
}

/// The text of a function under construction.
struct Source {
    text: String,
    random: Random,
    labels: u32,
    /// Whether the function has a frame and may access the stack.
    frame: bool,
}

impl Source {
    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        writeln!(self.text, "    {line}").unwrap();
    }

    fn label(&mut self) -> u32 {
        self.labels += 1;
        self.labels
    }

    fn bind(&mut self, label: u32) {
        writeln!(self.text, "L{label}:").unwrap();
    }

    fn instruction(&mut self) {
        let r = &mut self.random;
        let [d, a, b] = [(); 3].map(|()| r.scalar());
        let base = BASES[r.below(2) as usize];
        let offset = 4 * (r.below(6) as i32 - 2);
        let [v, w, x] = [(); 3].map(|()| r.below(5));
        let small = r.below(200) as i32 - 100;
        match r.below(26) {
            0..=5 => self.line(format_args!("move_i32 s{d}, s{a}")),
            6 | 7 => self.line(format_args!("add_i32 s{d}, s{a}, s{b}")),
            8 => self.line(format_args!("addi s{d}, s{a}, {small}")),
            9 => self.line(format_args!("xor_i32 s{d}, s{a}, s{b}")),
            10 => self.line(format_args!("mull_i32 s{d}, s{a}, s{b}")),
            11 => self.line(format_args!("sub_i32 s{d}, s{a}, s{b}")),
            12..=14 => self.line(format_args!("load32 s{d}, {offset}(s{base})")),
            15..=17 => self.line(format_args!("store32 s{a}, {offset}(s{base})")),
            18 => self.line(format_args!("addi s{base}, s{base}, {}", 4 * (small % 3))),
            19 => {
                self.line(format_args!("moveih s{d}, {}", small.unsigned_abs()));
                if small % 2 == 0 {
                    self.instruction();
                }
                self.line(format_args!("moveil s{d}, {}", 7 * small.unsigned_abs()));
            }
            20 if self.frame => self.line(format_args!("store32 s{a}, {}(sp)", 8 + offset.max(0))),
            21 if self.frame => self.line(format_args!("load32 s{d}, {}(sp)", 8 + offset.max(0))),
            20 | 21 => self.line(format_args!("add_i32 v{v}, v{w}, v{x}")),
            22 => self.line(format_args!("add_i32 v{v}, v{w}, s{a}")),
            23 => self.line(format_args!("fadd_f32 s{d}, s{a}, s{b}")),
            _ => {
                let masks = [
                    format!("movei rm, {}", 255 << (small & 7)),
                    format!("move_i32 rm, s{b}"),
                ];
                self.line(format_args!("{}", masks[usize::from(small % 3 == 0)]));
                self.line(format_args!("sub_i32 v{v}, v{w}, v{x}"));
                self.line(format_args!("movei rm, 65535"));
            }
        }
    }

    fn block(&mut self) {
        for _ in 0..self.random.below(7) {
            self.instruction();
        }
    }

    /// Adds blocks in sequence, some of them loops. `depth` counters are in use.
    fn blocks(&mut self, depth: usize) {
        for _ in 0..1 + self.random.below(3) {
            self.block();
            let condition = ["beqz", "bnez"][self.random.below(2) as usize];
            let tested = self.random.scalar();
            match self.random.below(7) {
                0 | 1 => {
                    // A branch over some instructions.
                    let label = self.label();
                    self.line(format_args!("{condition} s{tested}, L{label}"));
                    self.block();
                    self.bind(label);
                }
                2 => {
                    let [other, end] = [(); 2].map(|()| self.label());
                    self.line(format_args!("{condition} s{tested}, L{other}"));
                    self.block();
                    self.line(format_args!("jmp L{end}"));
                    self.bind(other);
                    self.block();
                    self.bind(end);
                }
                3 | 4 if depth < COUNTERS.len() => {
                    let (counter, iterations) = (COUNTERS[depth], 1 + self.random.below(5));
                    let header = self.label();
                    self.line(format_args!("movei s{counter}, {iterations}"));
                    self.bind(header);
                    self.blocks(depth + 1);
                    self.line(format_args!("subi s{counter}, s{counter}, 1"));
                    self.moves();
                    self.line(format_args!("bnez s{counter}, L{header}"));
                }
                5 if depth < COUNTERS.len() => {
                    // The loop test is in the middle.
                    let (counter, iterations) = (COUNTERS[depth], 1 + self.random.below(5));
                    let [header, end] = [(); 2].map(|()| self.label());
                    self.line(format_args!("movei s{counter}, {iterations}"));
                    self.bind(header);
                    self.block();
                    self.line(format_args!("subi s{counter}, s{counter}, 1"));
                    self.line(format_args!("beqz s{counter}, L{end}"));
                    self.moves();
                    self.line(format_args!("jmp L{header}"));
                    self.bind(end);
                }
                _ => {}
            }
        }
    }

    /// Adds moves, as between the iterations of a loop.
    fn moves(&mut self) {
        for _ in 0..self.random.below(4) {
            let (to, from) = (self.random.scalar(), self.random.scalar());
            self.line(format_args!("move_i32 s{to}, s{from}"));
        }
    }
}

fn function(seed: u64) -> String {
    let mut source = Source {
        text: String::from("L0:\n"),
        random: Random(seed),
        labels: 0,
        frame: seed.is_multiple_of(3),
    };
    let end = source.label();
    let saved = [50, 51, 52];
    if source.frame {
        source.line(format_args!("addi sp, sp, -64 ; enter"));
        for (register, offset) in saved.iter().zip((52..).step_by(4)) {
            source.line(format_args!("store32 s{register}, {offset}(sp) ; enter"));
        }
        // The function must not depend on the caller's values in callee-saved registers.
        for register in saved {
            let from = source.random.below(4);
            source.line(format_args!("addi s{register}, s{from}, {}", register % 7));
        }
        // An early path to the return, before the stack is used.
        source.frame = false;
        source.block();
        let tested = source.random.scalar();
        source.line(format_args!("beqz s{tested}, L{end}"));
        source.frame = true;
    }
    source.blocks(0);
    if source.frame {
        source.line(format_args!("store32 s0, 4(sp)"));
    }
    source.bind(end);
    if source.frame {
        for (register, offset) in saved.iter().zip((52..).step_by(4)) {
            source.line(format_args!("load32 s{register}, {offset}(sp) ; leave"));
        }
        source.line(format_args!("addi sp, sp, 64 ; leave"));
    }
    source.line(format_args!("jret"));
    source.text
}

/// Returns the bytes of a function.
fn assembled(func: &MachFunction) -> Vec<u8> {
    // Notes are not part of the code.
    let line = |line: &str| format!("{}\n", line.split(';').next().unwrap_or_default());
    let text: String = func.to_string().lines().map(line).collect();
    let object = asm::assemble(&text, &asm::Options::default()).unwrap_or_else(|faults| panic!("{faults:?}\n{text}"));
    object.sections[0]
        .pieces
        .iter()
        .flat_map(|piece| piece.bytes.clone())
        .collect()
}

/// The state that a caller may read.
#[derive(Debug, PartialEq)]
struct Seen {
    scalars: Vec<(SReg, u32)>,
    vectors: Vec<Lanes>,
    mask: u16,
    memory: Vec<u8>,
}

/// Returns the scalar registers that hold results or are callee-saved.
fn kept() -> Vec<SReg> {
    let mut state = cc::State::new();
    let mut places = Vec::new();
    while state.assign(&cc::RETURNS, cc::ValueType::I32, &mut places).is_ok() {}
    let results = places.iter().filter_map(|place| match place.loc {
        cc::Loc::Reg(reg) => Some(reg),
        cc::Loc::Stack { .. } => None,
    });
    let scalar = |reg: Reg| match reg {
        Reg::S(reg) => Some(reg),
        Reg::V(_) => None,
    };
    let all = results.chain(cc::CALLEE_SAVED.iter().copied());
    all.filter_map(scalar).filter(|&reg| reg != SReg::RA).collect()
}

/// Runs a function. Returns the final state and the number of the simulator's findings, or `None`
/// if the function does not end.
fn ran(bytes: &[u8], seed: u64) -> Option<(Seen, usize)> {
    let mut machine = Machine::new(Config {
        memory_limit: 1 << 22,
        ..Config::default()
    });
    machine.memory_mut().write(CODE, bytes).unwrap();
    let mut random = Random(!seed);
    for at in (DATA..DATA + 512).step_by(4) {
        let word = random.below(u32::MAX);
        machine.memory_mut().write_u32(at, word).unwrap();
    }
    let end = CODE - 16;
    let thread = machine.thread_mut(0);
    for number in 0..59 {
        let value = if random.below(4) == 0 {
            0
        } else {
            random.below(u32::MAX)
        };
        thread.set_scalar(SReg::new(number).unwrap(), value);
    }
    for number in 0..8 {
        let lanes = std::array::from_fn(|_| random.below(u32::MAX));
        thread.set_vector(VReg::new(number).unwrap(), Lanes(lanes));
    }
    let special = [(30, DATA + 200), (31, DATA + 208), (59, 0xffff)];
    for (number, value) in special {
        thread.set_scalar(SReg::new(number).unwrap(), value);
    }
    thread.set_scalar(SReg::SP, STACK);
    thread.set_scalar(SReg::RA, end);
    thread.set_pc(CODE);
    machine.add_breakpoint(end);
    if machine.run(0, STEPS) != (Stop::Breakpoint { pc: end }) {
        return None;
    }
    let mut memory = vec![0; 1024];
    machine.memory().read(DATA, &mut memory);
    let thread = machine.thread(0);
    let seen = Seen {
        scalars: kept().into_iter().map(|reg| (reg, thread.scalar(reg))).collect(),
        vectors: (0..8).filter_map(VReg::new).map(|reg| *thread.vector(reg)).collect(),
        mask: thread.mask(),
        memory,
    };
    Some((seen, machine.findings().len()))
}

/// Runs passes on a function, and then the pass that prevents lost results.
fn passed(text: &str, passes: &[&str]) -> MachFunction {
    let mut func = parse_function(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    for pass in passes.iter().chain(&["hazard"]) {
        run_pass(pass, &mut func, RegisterSet::All).unwrap_or_else(|error| panic!("{pass}: {error}\n{text}"));
    }
    func
}

#[test]
fn passes_keep_what_functions_do() {
    let cases = std::env::var("NAPLESPU_FUZZ_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok());
    let cases = cases.unwrap_or(1500);
    let (mut compared, mut changed) = (0, [0; PASSES.len()]);
    for seed in 0..cases {
        let text = function(seed);
        let plain = passed(&text, &[]);
        let Some((expected, findings)) = ran(&assembled(&plain), seed) else {
            continue;
        };
        assert_eq!(findings, 0, "seed {seed}: findings\n{plain}");
        compared += 1;
        let single = PASSES.iter().map(std::slice::from_ref);
        for (number, passes) in single.chain([&PASSES[..]]).enumerate() {
            let after = passed(&text, passes);
            if after.to_string() == plain.to_string() {
                continue;
            }
            if let Some(changed) = changed.get_mut(number) {
                *changed += 1;
            }
            let found = ran(&assembled(&after), seed);
            let is_same = found
                .as_ref()
                .is_some_and(|(seen, findings)| *seen == expected && *findings == 0);
            assert!(
                is_same,
                "seed {seed}, {passes:?}\nbefore:\n{plain}\nafter:\n{after}\n{expected:?}\n{found:?}"
            );
        }
    }
    assert!(compared > cases * 9 / 10, "{compared} of {cases} functions end");
    let least = cases / 40;
    for (pass, changed) in PASSES.iter().zip(changed) {
        assert!(changed > least, "{pass} has changed {changed} functions of {cases}");
    }
}
