//! Whether vectors are worth it, counted in machine instructions: with eight threads those are what a loop takes, and with one
//! thread fewer of them take less time, since what a vector instruction waits for is no more than what a scalar one waits for.

use super::access::{Access, AlignmentCheck, Extension, Form};
use super::depend::Check;
use super::values::{ROUNDS, Values, is_pure};
use crate::cost;
use crate::remarks::Reason;
use cranelift_codegen::ir::{Inst, Opcode};

/// What a routine of the runtime costs.
const CALL: u32 = 40;

/// What a loop takes.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// Machine instructions of a scalar round.
    pub scalar: u32,
    /// Those of sixteen rounds with vectors.
    pub vector: u32,
    /// Those before and after the vector loop.
    pub around: u32,
}

/// Counts both.
pub fn of(
    values: &Values<'_>,
    accesses: &[Access],
    alignment: &[AlignmentCheck],
    checks: &[Check],
    may_carry: &[bool],
) -> Costs {
    let func = values.func;
    let mut costs = Costs {
        // Unrolling leaves about one instruction a round to count, and one for addresses.
        scalar: 1,
        // The test and the branch.
        vector: 2,
        around: 8,
    };
    let access = |inst: Inst| accesses.iter().position(|access| access.inst == inst);
    for &block in &values.shape.blocks {
        for inst in func.layout.block_insts(block) {
            if let Some(number) = access(inst) {
                costs.access(&accesses[number], may_carry[number]);
            } else if values.lanewise.contains(&inst) {
                costs.vector += values.weight(inst);
                costs.scalar += scalar_weight(values, inst);
            } else if func.dfg.insts[inst].opcode() == Opcode::Brif && inst != values.shape.exit.edge.inst {
                // A choice: the branch, and jumps; a masked move.
                costs.scalar += 2;
                costs.vector += 3;
            }
        }
    }
    // Pointers are few where accesses share them.
    let mut bases: Vec<_> = accesses
        .iter()
        .filter(|access| access.form != Form::OnePlace)
        .map(|access| &access.near.terms)
        .collect();
    bases.sort_unstable();
    bases.dedup();
    costs.vector += bases.len() as u32;
    costs.around += 2 * bases.len() as u32;
    costs.vector += values.counting.len() as u32;
    costs.around += 4 * values.counting.len() as u32;
    // Four shuffles with a constant each, and the sum.
    costs.around += 20 * values.reductions.len() as u32;
    costs.around += checks.len() as u32 * 5;
    if !alignment.is_empty() {
        costs.around += 4;
    }
    costs
}

impl Costs {
    fn access(&mut self, access: &Access, carries: bool) {
        self.scalar += 1;
        let narrow = access.size() < 4;
        match access.form {
            Form::OnePlace => {
                self.around += 2;
                return;
            }
            Form::TwoLines(place) => {
                // Lines of narrow elements are unpacked.
                let line = if narrow { 8 } else { 1 };
                self.vector += if carries { 4 + line } else { 5 + 2 * line };
                self.around += if carries { 5 + line } else { 4 };
                if place.is_none() {
                    self.vector += 1;
                    self.around += 12;
                }
            }
            Form::Aligned if access.store => self.vector += 1,
            // Unpacking.
            Form::Aligned if narrow => {
                self.vector += 8;
                self.around += 4;
            }
            Form::Aligned => self.vector += 1,
        }
        self.vector += match access.extension {
            Extension::None => 0,
            Extension::Zeros | Extension::Sign => 1,
        };
    }

    /// Whether vectors are worth it for so many rounds, or for at most so many.
    ///
    /// # Errors
    ///
    /// If they are not.
    pub fn decide(&self, rounds: Option<u64>, most: Option<u64>) -> Result<(), Reason> {
        let (vector, scalar) = match rounds {
            Some(rounds) => {
                let rest = rounds % ROUNDS;
                let vector = rounds / ROUNDS * u64::from(self.vector) + u64::from(self.around);
                (vector + rest * u64::from(self.scalar), rounds * u64::from(self.scalar))
            }
            None => {
                // One round of vectors has to be worth it, with what is around it; and if that is all there can be, there has
                // to be something left for the times when there is none.
                let around = if most.is_some_and(|most| most < 2 * ROUNDS) {
                    3
                } else {
                    1
                } * self.around;
                (u64::from(self.vector + around + 6), ROUNDS * u64::from(self.scalar))
            }
        };
        let word = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        // The estimate is rough.
        if vector * 10 <= scalar * 8 {
            Ok(())
        } else {
            Err(Reason::Cost {
                vector: word(vector),
                scalar: word(scalar),
            })
        }
    }
}

/// What an instruction of the scalar loop costs.
fn scalar_weight(values: &Values<'_>, inst: Inst) -> u32 {
    match values.func.dfg.insts[inst].opcode() {
        opcode if !is_pure(opcode) => 1,
        _ => cost::scalar(values.legality, values.func, inst).unwrap_or(CALL),
    }
}
