//! Profitability of vectorization, in machine instructions.
//!
//! With eight threads, the instruction count determines the time of a loop. With one thread, fewer
//! instructions also take less time, because the latencies of vector instructions are not longer
//! than those of scalar ones.

use super::access::{Access, AlignmentCheck, Extension, Form};
use super::depend::Check;
use super::values::{ITERATIONS_PER_VECTOR, Values, is_pure};
use crate::cost;
use crate::remarks::Reason;
use cranelift_codegen::ir::{Inst, Opcode};

/// The cost of a call of a runtime routine.
const CALL: u32 = 40;

/// The machine instructions of the test of the trip count.
const TEST: u64 = 6;

/// The largest number of vector iterations that may be necessary for vectorization to be profitable:
/// the test at run time selects the scalar loop for fewer.
const MAX_BREAK_EVEN: u64 = 8;

/// The cost of a loop.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// Machine instructions of a scalar iteration.
    pub scalar: u32,
    /// Machine instructions of a vector iteration.
    pub vector: u32,
    /// Machine instructions before and after the vector loop.
    pub overhead: u32,
}

/// Estimates the costs of both loops.
pub fn of(
    values: &Values<'_>,
    accesses: &[Access],
    alignment: &[AlignmentCheck],
    checks: &[Check],
    may_carry: &[bool],
) -> Costs {
    let func = values.func;
    let mut costs = Costs {
        // After unrolling, about one instruction for counting and one for addresses remain in each
        // iteration.
        scalar: 1,
        // The exit test and the branch.
        vector: 2,
        overhead: 8,
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
                // A conditional: the branch and jumps, or a masked move.
                costs.scalar += 2;
                costs.vector += 3;
            }
        }
    }
    // Accesses with equal terms share a pointer.
    let mut bases: Vec<_> = accesses
        .iter()
        .filter(|access| access.form != Form::Invariant)
        .map(|access| &access.near.terms)
        .collect();
    bases.sort_unstable();
    bases.dedup();
    costs.vector += bases.len() as u32;
    costs.overhead += 2 * bases.len() as u32;
    costs.vector += values.counting.len() as u32;
    costs.overhead += 4 * values.counting.len() as u32;
    // Four shuffles, each with a constant, and the operation.
    costs.overhead += 20 * values.reductions.len() as u32;
    costs.overhead += checks.len() as u32 * 5;
    if !alignment.is_empty() {
        costs.overhead += 4;
    }
    costs
}

impl Costs {
    fn access(&mut self, access: &Access, carries: bool) {
        self.scalar += 1;
        let narrow = access.size() < 4;
        match access.form {
            Form::Invariant => {
                self.overhead += 2;
                return;
            }
            Form::TwoLines(position) => {
                // Lines of narrow elements are unpacked.
                let line = if narrow { 8 } else { 1 };
                self.vector += if carries { 4 + line } else { 5 + 2 * line };
                self.overhead += if carries { 5 + line } else { 4 };
                if position.is_none() {
                    self.vector += 1;
                    self.overhead += 12;
                }
            }
            Form::Aligned if access.store => self.vector += 1,
            // Unpacking of narrow elements.
            Form::Aligned if narrow => {
                self.vector += 8;
                self.overhead += 4;
            }
            Form::Aligned => self.vector += 1,
        }
        self.vector += match access.extension {
            Extension::None => 0,
            Extension::Zeros | Extension::Sign => 1,
        };
    }

    /// Decides whether vectorization is profitable for a constant or a maximum number of
    /// iterations. Returns the trip count from which it is, a multiple of sixteen.
    ///
    /// # Errors
    ///
    /// [`Reason::Cost`] if it is not profitable.
    pub fn decide(&self, iterations: Option<u64>, most: Option<u64>) -> Result<u64, Reason> {
        let [scalar, vector, overhead] = [self.scalar, self.vector, self.overhead].map(u64::from);
        // A margin, since the estimate is rough.
        let pays = |vector: u64, scalar: u64| vector * 10 <= scalar * 8;
        let least = match iterations {
            Some(iterations) => {
                let all = iterations / ITERATIONS_PER_VECTOR * vector + overhead;
                let remainder = iterations % ITERATIONS_PER_VECTOR * scalar;
                pays(all + remainder, iterations * scalar).then_some(ITERATIONS_PER_VECTOR)
            }
            None => {
                // If more than one vector iteration is impossible, the overhead counts three times,
                // because some executions have none.
                let times = if most.is_some_and(|most| most < 2 * ITERATIONS_PER_VECTOR) {
                    3
                } else {
                    1
                };
                let mut counts = (1..=MAX_BREAK_EVEN).map(|vectors| vectors * ITERATIONS_PER_VECTOR);
                counts.find(|&count| {
                    let all = count / ITERATIONS_PER_VECTOR * vector + times * overhead + TEST;
                    most.is_none_or(|most| count <= most) && pays(all, count * scalar)
                })
            }
        };
        least.ok_or(Reason::Cost {
            vector: self.vector,
            overhead: self.overhead,
            scalar: self.scalar.saturating_mul(ITERATIONS_PER_VECTOR as u32),
        })
    }
}

/// Estimates the cost of an instruction of the scalar loop.
fn scalar_weight(values: &Values<'_>, inst: Inst) -> u32 {
    match values.func.dfg.insts[inst].opcode() {
        opcode if !is_pure(opcode) => 1,
        _ => cost::scalar(values.legality, values.func, inst).unwrap_or(CALL),
    }
}
