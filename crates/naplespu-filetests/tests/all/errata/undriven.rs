//! Follows the undriven upper halves of vector compares through finished code, from the compare to
//! their uses.
//!
//! The analysis depends only on the assembly text of instructions. It covers scalar registers and
//! words of the stack over the whole control-flow graph. For a register it records only whether its
//! upper half may be undriven and whether its value is known.

use npu_mc::{Inst, Operand, Reg, SReg};
use std::collections::BTreeMap;

/// The facts before an instruction.
#[derive(Clone, Default, PartialEq)]
struct State {
    /// Scalar registers whose upper half may be undriven, as a bit set.
    registers: u64,
    /// Words of the stack whose upper half may be undriven, by their distance from `sp`.
    stack: u128,
    /// Registers with known values.
    values: BTreeMap<u8, u32>,
}

impl State {
    fn is_undriven(&self, reg: SReg) -> bool {
        self.registers >> reg.number() & 1 != 0
    }

    /// Merges another state into this one. Returns whether this one changed.
    fn join(&mut self, other: &State) -> bool {
        let before = self.clone();
        self.registers |= other.registers;
        self.stack |= other.stack;
        self.values.retain(|reg, value| other.values.get(reg) == Some(value));
        *self != before
    }

    fn define(&mut self, reg: SReg, undriven: bool, value: Option<u32>) {
        let bit = 1 << reg.number();
        self.registers = if undriven {
            self.registers | bit
        } else {
            self.registers & !bit
        };
        match value {
            Some(value) => _ = self.values.insert(reg.number(), value),
            None => _ = self.values.remove(&reg.number()),
        }
    }
}

fn scalar(operand: Option<&Operand>) -> Option<SReg> {
    match operand {
        Some(Operand::S(reg)) => Some(*reg),
        _ => None,
    }
}

/// Returns the word of the stack that an access reads or writes, as a bit.
fn stack_word(inst: &Inst) -> Option<u128> {
    let base = scalar(inst.operands.get(1))?;
    let offset = u32::try_from(inst.operands.get(2)?.imm()?).ok()?;
    (base == SReg::SP && offset < 512).then(|| 1 << (offset / 4))
}

/// Advances the state over an instruction. Returns an error if the instruction uses an undriven
/// half.
fn step(inst: &Inst, state: &mut State) -> Result<(), String> {
    let mnemonic = inst.desc().mnemonic;
    let operands = &inst.operands;
    let (dst, first) = (scalar(operands.first()), scalar(operands.get(1)));
    let value = |index: usize| match operands.get(index) {
        Some(Operand::S(reg)) => state.values.get(&reg.number()).copied(),
        Some(Operand::Imm(n)) => Some(n.cast_unsigned()),
        _ => None,
    };
    let undriven = |index: usize| scalar(operands.get(index)).is_some_and(|reg| state.is_undriven(reg));
    let read: Vec<SReg> = inst
        .uses()
        .filter_map(|reg| match reg {
            Reg::S(reg) if state.is_undriven(reg) => Some(reg),
            _ => None,
        })
        .collect();
    let bad = || format!("{inst} looks at {}", read[0]);
    let is_vector = |index: usize| matches!(operands.get(index), Some(Operand::V(_)));
    let compare = mnemonic.starts_with("cmp") && !mnemonic.starts_with("cmpf");
    // The result: whether its upper half is undriven, and its value.
    let (half, known) = match (mnemonic, dst) {
        // The lane mask only uses the lower half.
        ("move_i32", Some(SReg::RM)) => return Ok(()),
        ("move_i32", Some(_)) if first.is_some() => (undriven(1), value(1)),
        ("movei", Some(_)) => (false, value(1).map(|n| n & 0xffff)),
        ("and_i32" | "andi", Some(_)) => {
            let clears = |index| value(index).is_some_and(|n| n >> 16 == 0);
            let driven = |index| !undriven(index) && clears(index);
            ((undriven(1) || undriven(2)) && !driven(1) && !driven(2), None)
        }
        ("or_i32" | "ori" | "xor_i32" | "xori", Some(_)) => (undriven(1) || undriven(2), None),
        ("shl_i32" | "shli", Some(_)) if undriven(1) => match value(2) {
            Some(16..=31) if !undriven(2) => (false, None),
            _ => return Err(bad()),
        },
        // The halves of constants.
        ("moveih", Some(_)) => (false, None),
        ("moveil", Some(_)) => (undriven(0), None),
        // These instructions read at most the lower half.
        ("sext16_i32" | "sext8_i32", Some(_)) => (false, None),
        ("store32_16" | "store32_8" | "store32_16_scratchpad" | "store32_8_scratchpad", Some(_)) if !undriven(1) => {
            return Ok(());
        }
        ("store32", Some(reg)) => match stack_word(inst) {
            Some(word) if state.is_undriven(reg) => {
                state.stack |= word;
                return Ok(());
            }
            Some(word) => {
                state.stack &= !word;
                return Ok(());
            }
            None if read.is_empty() => return Ok(()),
            None => return Err(bad()),
        },
        ("load32", Some(_)) if read.is_empty() => (stack_word(inst).is_some_and(|word| state.stack & word != 0), None),
        ("addi", Some(SReg::SP)) => {
            // The frame is created or removed, so the facts about the stack are invalid.
            state.stack = 0;
            (false, None)
        }
        (_, Some(_)) if compare && (is_vector(1) || is_vector(2)) => (true, None),
        _ if !read.is_empty() => return Err(bad()),
        _ => (false, None),
    };
    for def in inst.defs() {
        if let Reg::S(reg) = def {
            state.define(reg, half, known);
        }
    }
    Ok(())
}

/// Analyzes a function. `labels` are the instructions that computed jumps can reach. Returns the
/// number of compares.
///
/// # Errors
///
/// Returns the first use of an undriven half.
pub fn check(insts: &[Inst], labels: &[usize]) -> Result<usize, String> {
    let mut states: Vec<Option<State>> = vec![None; insts.len()];
    if let Some(first) = states.first_mut() {
        *first = Some(State::default());
    }
    let mut todo = vec![0];
    let mut compares = std::collections::BTreeSet::new();
    while let Some(at) = todo.pop() {
        let (Some(inst), Some(Some(state))) = (insts.get(at), states.get(at)) else {
            continue;
        };
        let mut state = state.clone();
        step(inst, &mut state).map_err(|what| format!("{:#x}: {what}", 4 * at))?;
        if scalar(inst.operands.first()).is_some_and(|reg| state.is_undriven(reg))
            && inst.desc().mnemonic.starts_with("cmp")
        {
            compares.insert(at);
        }
        let flags = inst.desc().flags;
        let mut next = Vec::new();
        if flags.is_call() {
            // The contents of caller-saved registers are unknown after a call; callee-saved ones
            // are unchanged.
            let kept = npu_mc::cc::CALLEE_SAVED.iter().fold(0u64, |set, reg| match reg {
                Reg::S(reg) => set | 1 << reg.number(),
                Reg::V(_) => set,
            });
            state.registers &= kept;
            state.values.retain(|reg, _| kept >> reg & 1 != 0);
        } else if flags.is_branch() && !flags.is_return() {
            match inst.operands.iter().find_map(|operand| operand.imm()) {
                Some(distance) => next.extend(at.checked_add_signed(distance as isize / 4)),
                None => next.extend(labels),
            }
        }
        if !flags.is_barrier() {
            next.push(at + 1);
        }
        for to in next {
            let changed = match states.get_mut(to) {
                Some(Some(known)) => known.join(&state),
                Some(unknown) => {
                    *unknown = Some(state.clone());
                    true
                }
                None => false,
            };
            if changed {
                todo.push(to);
            }
        }
    }
    Ok(compares.len())
}
