//! Compares the semantics of td with the simulator's definition of each instruction: both register
//! files, lanes, lane mask, memory, scratchpad, pc, traps and control effects, on boundary values
//! and random operands.
//!
//! `NAPLESPU_SEMANTICS` is the number of trials per instruction, [`TRIALS`] by default; 100000
//! takes minutes in a release build:
//!
//!     NAPLESPU_SEMANTICS=100000 cargo test --release -p npu-sim --test sim semantics

mod bits;
mod mended;
mod number;

use super::common::{Random, sreg, vreg};
use bits::Bits;
use npu_mc::inst::OperandRange;
use npu_mc::machine::{LANES, SCRATCHPAD_SIZE, TRAP_VECTOR, TrapReason};
use npu_mc::semantics::{ControlEffect, Space, execute, operation};
use npu_mc::{Format, Inst, Opcode, Operand, Operands, Reg, RegFile, SReg, encode};
use npu_sim::{Config, Control, Hazard, Lanes, Machine, Progress, Step};
use number::Evaluator;

/// The default number of trials per instruction: all pairs of boundary values, and some more.
const TRIALS: u32 = (CORNERS.len() * CORNERS.len()) as u32 + 40;

/// The address of the accessed memory, away from the code.
const DATA: u32 = 0x10_0000;
/// The number of its bytes, all of which are compared.
const DATA_SIZE: u32 = 512;
const CODE: u32 = 0x1_0000;

/// Boundary values of integers and floats.
const CORNERS: [u32; 24] = [
    0,
    1,
    2,
    15,
    16,
    31,
    32,
    33,
    63,
    64,
    0x7f,
    0x80,
    0xff,
    0x8000,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    0xffff_ffff,
    0x3f80_0000,
    0x4300_0000,
    0x7f80_0000,
    0xffc0_0000,
];

fn trials() -> u32 {
    match std::env::var("NAPLESPU_SEMANTICS") {
        Ok(count) => count.parse().expect("NAPLESPU_SEMANTICS is a number"),
        Err(_) => TRIALS,
    }
}

fn machine(random: &mut Random) -> Machine {
    let mut machine = Machine::new(Config {
        memory_limit: 1 << 24,
        ..Config::default()
    });
    for address in (DATA..DATA + DATA_SIZE).step_by(4) {
        machine.memory_mut().write_u32(address, random.word()).unwrap();
    }
    for byte in machine.scratchpad_mut() {
        *byte = random.word() as u8;
    }
    machine
}

/// Returns a value for a register; `corner` is the number of the boundary value of the trial.
fn value(random: &mut Random, corner: Option<u32>) -> u32 {
    match (corner, random.below(8)) {
        (Some(corner), _) => CORNERS[corner as usize % CORNERS.len()],
        (None, 0..=2) => CORNERS[random.below(CORNERS.len() as u32) as usize],
        (None, 3) => random.below(70),
        (None, _) => random.word(),
    }
}

/// Returns a random well-formed instruction.
fn instruction(opcode: Opcode, random: &mut Random) -> Inst {
    let mut operands = Operands::new();
    for described in opcode.desc().operands {
        operands.push(match described.kind.range() {
            OperandRange::Register(file) => {
                // Special registers, and few others, so that operands are shared.
                let number = match random.below(16) {
                    0 => 59,
                    1 => 63,
                    2 => 62,
                    n => (n % 5) as u8,
                };
                match file {
                    RegFile::Scalar => Operand::S(sreg(number)),
                    RegFile::Vector => Operand::V(vreg(number)),
                }
            }
            OperandRange::Immediate { min, max, .. } => Operand::Imm(match random.below(8) {
                0 => min,
                1 => max,
                2 => 0i32.clamp(min, max),
                3 => (random.below(70) as i32).clamp(min, max),
                _ => min.wrapping_add((random.next() % (i64::from(max) - i64::from(min) + 1) as u64) as i32),
            }),
        });
    }
    Inst { opcode, operands }
}

/// Sets the registers of an instruction and the lane mask.
fn prepare(machine: &mut Machine, inst: &Inst, random: &mut Random, trial: u32) {
    let corners = CORNERS.len() as u32;
    let pairs = trial < corners * corners;
    let thread = machine.thread_mut(0);
    let mut source = 0;
    for (described, operand) in inst.desc().operands.iter().zip(inst.operands.iter()) {
        let Some(register) = operand.reg() else { continue };
        let corner = match (pairs && !described.is_def, source) {
            (true, 0) => Some(trial % corners),
            (true, _) => Some(trial / corners),
            (false, _) => None,
        };
        source += u32::from(!described.is_def);
        thread.set_scalar(sreg(register.number()), value(random, corner));
        let mut lanes = [0; LANES as usize];
        for lane in &mut lanes {
            let here = random.below(2) == 0;
            *lane = value(random, corner.filter(|_| here));
        }
        thread.set_vector(vreg(register.number()), Lanes(lanes));
    }
    if random.below(2) == 0 {
        let mask = match random.below(8) {
            0 => 0,
            1..=3 => 0xffff,
            _ => random.word(),
        };
        thread.set_scalar(SReg::RM, mask);
    }
    if random.below(4) == 0 {
        thread.set_mask(random.word() as u16);
    }
    // An address in the compared memory.
    let operands = inst.desc().operands.iter().zip(inst.operands.iter());
    let offset = operands
        .clone()
        .find_map(|(d, o)| (d.name == "off").then(|| o.imm()).flatten());
    let base = operands
        .clone()
        .find_map(|(d, o)| (d.name == "base").then(|| o.reg()).flatten());
    if let (Some(offset), Some(base)) = (offset, base) {
        let align = [1, 1, 2, 4, 16, 32, 64, 64][random.below(8) as usize];
        let address = DATA + 64 + random.below(DATA_SIZE - 192) / align * align;
        let wrapped = if inst.desc().scratchpad {
            random.word() & 0xffff_0000
        } else {
            0
        };
        thread.set_scalar(
            sreg(base.number()),
            address.wrapping_sub(offset as u32).wrapping_add(wrapped),
        );
    }
    thread.set_pc(CODE + 4 * random.below(64));
}

/// The effects of an instruction by the semantics, independent of the machine.
struct Expected {
    scalars: Vec<(u8, Bits)>,
    lanes: Vec<(u8, u32, Bits)>,
    mask: Option<Bits>,
    bytes: Vec<(Space, u32, Option<u8>)>,
    trap: Option<TrapReason>,
    stuck: Option<Option<Reg>>,
    effect: Option<ControlEffect<Bits>>,
    control_read: Option<u64>,
}

fn evaluate(machine: &Machine, inst: &Inst, pc: u32, knows: bool) -> Expected {
    let mut evaluator = Evaluator::new(machine, knows);
    execute(inst, pc, &mut evaluator).expect("the instruction is well-formed");
    Expected {
        scalars: evaluator.scalars,
        lanes: evaluator.lanes,
        mask: evaluator.mask,
        bytes: evaluator.bytes,
        trap: evaluator.trap,
        stuck: evaluator.stuck,
        effect: evaluator.effect,
        control_read: evaluator.control_read,
    }
}

/// The compared state.
#[derive(Clone, PartialEq)]
struct State {
    scalars: [u32; 64],
    vectors: [Lanes; 64],
    mask: u32,
    data: [u8; DATA_SIZE as usize],
    scratchpad: [u8; DATA_SIZE as usize],
}

fn state(machine: &Machine) -> State {
    let thread = machine.thread(0);
    let mut data = [0; DATA_SIZE as usize];
    machine.memory().read(DATA, &mut data);
    let at = (DATA % SCRATCHPAD_SIZE) as usize;
    let mut scratchpad = [0; DATA_SIZE as usize];
    scratchpad.copy_from_slice(&machine.scratchpad()[at..at + DATA_SIZE as usize]);
    State {
        // The register of the pc cannot be read.
        scalars: std::array::from_fn(|n| if n == 63 { 0 } else { thread.scalar(sreg(n as u8)) }),
        vectors: std::array::from_fn(|n| *thread.vector(vreg(n as u8))),
        mask: u32::from(thread.mask()),
        data,
        scratchpad,
    }
}

impl State {
    /// Applies the effects of the semantics. Undefined bits become those of `found`.
    fn apply(&mut self, expected: &Expected, found: &State) {
        let known = |value: &Bits, found: u32| {
            let (value, undefined) = value.word();
            value | found & undefined
        };
        for (register, value) in &expected.scalars {
            let n = usize::from(*register);
            self.scalars[n] = known(value, found.scalars[n]);
        }
        for (register, lane, value) in &expected.lanes {
            let (n, lane) = (usize::from(*register), *lane as usize);
            self.vectors[n].0[lane] = known(value, found.vectors[n].0[lane]);
        }
        if let Some(mask) = &expected.mask {
            self.mask = known(mask, found.mask);
        }
        for (space, address, byte) in &expected.bytes {
            let (bytes, start) = match space {
                Space::Main => (&mut self.data, DATA),
                Space::Scratchpad => (&mut self.scratchpad, DATA % SCRATCHPAD_SIZE),
            };
            // An access relative to `pc` is outside of the compared memory.
            if let Some(byte_of) = bytes.get_mut(address.wrapping_sub(start) as usize) {
                *byte_of = byte.expect("stored bytes are defined");
            }
        }
    }

    /// Returns the differences to `found`.
    fn differences(&self, found: &State) -> Vec<String> {
        let mut texts = Vec::new();
        if self == found {
            return texts;
        }
        let mut differ = |what: String, value: u32, got: u32| {
            if value != got {
                texts.push(format!("{what}: {value:#x} by td, {got:#x} by the simulator"));
            }
        };
        for n in 0..64 {
            differ(format!("s{n}"), self.scalars[n], found.scalars[n]);
            for lane in 0..LANES as usize {
                let (value, got) = (self.vectors[n].0[lane], found.vectors[n].0[lane]);
                differ(format!("v{n}[{lane}]"), value, got);
            }
        }
        differ("mask".to_owned(), self.mask, found.mask);
        for at in 0..DATA_SIZE as usize {
            let (value, got) = (self.data[at], found.data[at]);
            differ(format!("memory at +{at:#x}"), value.into(), got.into());
            let (value, got) = (self.scratchpad[at], found.scratchpad[at]);
            differ(format!("scratchpad at +{at:#x}"), value.into(), got.into());
        }
        texts
    }
}

/// Returns the differences in the control flow of the thread.
fn flow_differences(expected: &Expected, step: &Step, machine: &Machine) -> Vec<String> {
    let mut texts = Vec::new();
    let number = |bits: &Bits| bits.number().expect("it is defined") as u32;
    let next = step.pc.wrapping_add(4);
    let (mut pc, mut control) = (next, None);
    match &expected.effect {
        Some(ControlEffect::Jump { target }) => pc = number(target),
        Some(ControlEffect::Branch { condition, target }) if number(condition) == 1 => pc = number(target),
        Some(ControlEffect::Branch { .. }) => {}
        Some(ControlEffect::Barrier { id, others }) => {
            control = Some(Control::Barrier {
                id: number(id),
                participants: number(others) + 1,
            });
        }
        Some(ControlEffect::WriteControl { register, value }) => {
            control = Some(Control::Write {
                register: number(register) as u8,
                value: number(value),
            });
        }
        Some(ControlEffect::Flush { address }) => {
            control = Some(Control::Flush {
                address: number(address),
            });
        }
        Some(ControlEffect::Invalidate { address }) => {
            control = Some(Control::Invalidate {
                address: number(address),
            });
        }
        None => {}
    }
    if let Some(register) = expected.control_read {
        control = Some(Control::Read {
            register: register as u8,
        });
    }
    if expected.trap.is_some() {
        pc = TRAP_VECTOR;
    }
    if step.next_pc != pc {
        texts.push(format!("pc: {pc:#x} by td, {:#x} by the simulator", step.next_pc));
    }
    if step.effect.control != control {
        texts.push(format!("{control:?} by td, {:?} by the simulator", step.effect.control));
    }
    let trap = match step.progress {
        Progress::Trap(reason) => Some(reason),
        _ => None,
    };
    if trap != expected.trap {
        texts.push(format!("trap {:?} by td, {trap:?} by the simulator", expected.trap));
    }
    let undefined = expected.scalars.iter().any(|(_, value)| !value.is_defined())
        || expected.lanes.iter().any(|(_, _, value)| !value.is_defined());
    let reported = machine
        .findings()
        .iter()
        .any(|finding| matches!(finding.hazard, Hazard::LaneIndex | Hazard::EmptyMask));
    let compare = step.effect.scalar.is_some() && step.effect.vector.is_none();
    if undefined && !reported && !compare {
        texts.push("undefined by td, and the simulator reports nothing".to_owned());
    }
    texts
}

/// Runs trials of one instruction; returns the differences of the first failing trial.
fn compare(opcode: Opcode, trials: u32) -> Result<(), String> {
    let mut random = Random(0x5eed ^ opcode.index() as u64);
    let mut sim = machine(&mut random);
    for trial in 0..trials {
        let inst = instruction(opcode, &mut random);
        prepare(&mut sim, &inst, &mut random, trial);
        let pc = sim.thread(0).pc();
        let word = encode(&inst).map_err(|error| format!("{inst}: {error}"))?;
        sim.memory_mut().write_u32(pc, word).unwrap();
        let knows = random.below(2) == 0;
        let expected = evaluate(&sim, &inst, pc, knows);
        let mut wanted = state(&sim);
        sim.clear_findings();
        let step = sim.step(0).map_err(|stop| format!("{inst}: {stop:?}"))?;
        let found = state(&sim);
        wanted.apply(&expected, &found);
        let mut texts = wanted.differences(&found);
        texts.extend(flow_differences(&expected, &step, &sim));
        if !texts.is_empty() {
            let texts = texts.join("\n    ");
            return Err(format!(
                "{} (trial {trial}, values known: {knows}): {inst}\n    {}\n    {texts}",
                opcode.name(),
                operation(opcode)
            ));
        }
        // Operations that never complete, barriers and control registers outlive the instruction.
        if expected.stuck.is_some() || step.effect.control.is_some() {
            sim = machine(&mut random);
        }
    }
    Ok(())
}

#[test]
fn every_instruction_does_what_td_says() {
    let trials = trials();
    let wrong: Vec<String> = Opcode::ALL
        .iter()
        .filter_map(|opcode| compare(*opcode, trials).err())
        .collect();
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Ill-formed instructions are errors of the executor, because a machine that only counts its calls
/// would not notice them.
#[test]
fn ill_formed_instructions_are_errors() {
    let mut random = Random(7);
    let sim = machine(&mut random);
    for opcode in Opcode::ALL {
        let good = instruction(*opcode, &mut random);
        for index in 0..good.operands.len() {
            let mut inst = good;
            let other = match inst.operands[index] {
                Operand::Imm(_) => Operand::S(sreg(0)),
                Operand::S(_) => Operand::V(vreg(0)),
                Operand::V(_) => Operand::Imm(0),
            };
            inst.operands.set(index, other);
            assert!(execute(&inst, 0, &mut Evaluator::new(&sim, true)).is_err(), "{inst:?}");
        }
        let short: Vec<Operand> = good.operands.iter().copied().skip(1).collect();
        if !good.operands.is_empty() {
            let operands = Operands::from_slice(&short).unwrap();
            let inst = Inst { operands, ..good };
            assert!(execute(&inst, 0, &mut Evaluator::new(&sim, true)).is_err(), "{inst:?}");
        }
    }
}

#[test]
fn every_instruction_has_a_text() {
    for opcode in Opcode::ALL {
        let text = operation(*opcode);
        assert!(!text.is_empty(), "{opcode}");
        assert_eq!(
            text == "nothing",
            opcode.desc().format == Format::Nop,
            "{opcode}: {text}"
        );
    }
}
