//! Hoistable guards of a loop nest, and their preconditions.

use super::form::{LinearForm, LoopNest, SPAN, Variable};
use super::limits::{Limit, Precondition};
use crate::edit;
use crate::loops::{self, CountedExit};
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Opcode, Value, ValueDef, types};

/// The maximum number of bound checks before a nest.
const MAX_BOUND_CHECKS: usize = 12;

/// The maximum number of variables that increase a number, and of variables that decrease it.
const MAX_VARYING: usize = 3;

/// A check in a loop that normally succeeds.
#[derive(Clone, Copy, Debug)]
pub enum Guard {
    /// Traps if the check fails.
    Trap(Inst),
    /// A branch that leaves to cold code if the check fails; normally takes the destination with
    /// this number.
    Branch(Inst, usize),
}

/// The condition of a guard.
enum Test {
    /// An unsigned number is at most the bound, or below it if `strict`.
    AtMost { number: Value, bound: Value, strict: bool },
    /// The masked bits are 0.
    Zero(Value, u32),
}

/// Numbers that differ by constants and have the same bound.
#[derive(Debug)]
pub struct BoundCheck {
    /// One of the numbers.
    pub number: LinearForm,
    /// The constants to add to `number` for the smallest and for the largest of the numbers.
    pub offsets: (i32, i32),
    /// The unsigned upper bound, inclusive.
    pub bound: LinearForm,
}

/// The guards that a versioned nest omits, and the tests that replace them.
#[derive(Debug, Default)]
pub struct Plan {
    /// The guards.
    pub guards: Vec<Guard>,
    /// The numbers that must not exceed their bounds in any iteration.
    pub bound_checks: Vec<BoundCheck>,
    /// The limits of the variables.
    pub limits: Vec<(Variable, Limit)>,
    /// Other preconditions.
    pub preconditions: Vec<Precondition>,
}

impl Plan {
    /// Plans the versioning of the nest.
    pub fn of(nest: &LoopNest<'_>, exits: &[Vec<CountedExit>]) -> Plan {
        let mut plan = Plan::default();
        let warm = |block: &&Block| !nest.func.layout.is_cold(**block);
        for &block in nest.outermost().blocks.iter().filter(warm) {
            for inst in nest.func.layout.block_insts(block) {
                if let Some((guard, test)) = recognize(nest.func, inst)
                    && plan.add(nest, exits, &test).is_some()
                {
                    plan.guards.push(guard);
                }
            }
        }
        plan
    }

    /// Adds the preconditions under which the test succeeds in all iterations. Returns `None` if
    /// they are unknown or too many.
    fn add(&mut self, nest: &LoopNest<'_>, exits: &[Vec<CountedExit>], test: &Test) -> Option<()> {
        match *test {
            Test::Zero(value, mask) => {
                let mut form = nest.form(value)?;
                let matters = |factor: u32| factor & mask != 0;
                if form.varying.iter().any(|term| matters(term.1)) || form.unknown.iter().any(|term| matters(term.1)) {
                    return None;
                }
                form.varying.clear();
                form.unknown.clear();
                form.invariant.retain(|term| matters(term.1));
                form.constant &= mask;
                let precondition = Precondition::Zero(form, mask);
                if precondition.known() == Some(false) {
                    return None;
                }
                self.precondition(precondition);
            }
            Test::AtMost { number, bound, strict } => {
                let number = nest.form(number)?;
                let mut bound = nest.form(bound)?;
                if !number.unknown.is_empty() || !bound.is_invariant() {
                    return None;
                }
                let grows = |term: &&(Variable, u32)| term.1.cast_signed() > 0;
                let up = number.varying.iter().filter(grows).count();
                if up > MAX_VARYING || number.varying.len() - up > MAX_VARYING {
                    return None;
                }
                let mut preconditions = Vec::new();
                if strict {
                    preconditions.push(Precondition::Compare(
                        IntCC::UnsignedGreaterThanOrEqual,
                        bound.clone(),
                        LinearForm::number(1),
                    ));
                    bound.constant = bound.constant.wrapping_sub(1);
                }
                let mut limits = Vec::new();
                for &(variable, factor) in &number.varying {
                    let limit = nest.limit(variable, exits)?;
                    if limit.constant().is_some_and(|limit| limit > max_for_factor(factor)) {
                        return None;
                    }
                    preconditions.extend(limit.preconditions.iter().cloned());
                    limits.push((variable, limit));
                }
                if preconditions
                    .iter()
                    .any(|precondition| precondition.known() == Some(false))
                    || !self.add_bound_check(number, &bound)
                {
                    return None;
                }
                for precondition in preconditions {
                    self.precondition(precondition);
                }
                for (variable, limit) in limits {
                    if self.limits.iter().all(|known| known.0 != variable) {
                        self.limits.push((variable, limit));
                    }
                }
            }
        }
        Some(())
    }

    /// Returns the largest value of a variable for which no sum overflows, or `None` if no sum can
    /// overflow.
    pub fn largest(&self, variable: Variable) -> Option<u32> {
        let in_sum = |check: &BoundCheck| {
            let varying = &check.number.varying;
            let &(_, factor) = varying.iter().find(|term| term.0 == variable)?;
            let alone = varying.len() == 1 && check.offsets.0 == check.offsets.1;
            let counts = factor.cast_signed().unsigned_abs() == 1;
            (!(alone && counts)).then(|| max_for_factor(factor))
        };
        self.bound_checks.iter().filter_map(in_sum).min()
    }

    fn precondition(&mut self, precondition: Precondition) {
        if precondition.known() != Some(true) && !self.preconditions.contains(&precondition) {
            self.preconditions.push(precondition);
        }
    }

    /// Adds a number with its bound. Returns `false` if there are too many.
    fn add_bound_check(&mut self, number: LinearForm, bound: &LinearForm) -> bool {
        for known in &mut self.bound_checks {
            let same_terms = known.number.invariant == number.invariant && known.number.varying == number.varying;
            let constants = known.bound.invariant.is_empty() && bound.invariant.is_empty();
            if !same_terms || !(constants || known.bound == *bound) {
                continue;
            }
            let distance = number.constant.wrapping_sub(known.number.constant).cast_signed();
            let offsets = (known.offsets.0.min(distance), known.offsets.1.max(distance));
            if offsets.1.abs_diff(offsets.0) < SPAN {
                known.offsets = offsets;
                known.bound.constant = match constants {
                    true => known.bound.constant.min(bound.constant),
                    false => bound.constant,
                };
                return true;
            }
        }
        if self.bound_checks.len() == MAX_BOUND_CHECKS {
            return false;
        }
        self.bound_checks.push(BoundCheck {
            number,
            offsets: (0, 0),
            bound: bound.clone(),
        });
        true
    }
}

/// Returns the largest permitted value of a variable with this factor.
fn max_for_factor(factor: u32) -> u32 {
    SPAN / factor.cast_signed().unsigned_abs()
}

/// Returns the instruction as a guard with its condition.
fn recognize(func: &Function, inst: Inst) -> Option<(Guard, Test)> {
    match func.dfg.insts[inst] {
        InstructionData::CondTrap { opcode, arg, .. } => {
            let (mut bad, operands) = loops::compared(func, arg)?;
            if opcode == Opcode::Trapz {
                bad = bad.complement();
            }
            Some((Guard::Trap(inst), at_most(func, bad, operands)?))
        }
        InstructionData::Brif { arg, .. } => {
            let is_cold = |number| {
                let target = edit::target(func, edit::Edge { inst, number });
                target.is_some_and(|target| func.layout.is_cold(target))
            };
            let stays = match (is_cold(0), is_cold(1)) {
                (true, false) => 1,
                (false, true) => 0,
                _ => return None,
            };
            let guard = Guard::Branch(inst, stays);
            if let Some((mut bad, operands)) = loops::compared(func, arg) {
                if stays == 0 {
                    bad = bad.complement();
                }
                return Some((guard, at_most(func, bad, operands)?));
            }
            let ValueDef::Result(masked, 0) = func.dfg.value_def(func.dfg.resolve_aliases(arg)) else {
                return None;
            };
            let InstructionData::Binary {
                opcode: Opcode::Band,
                args: [value, mask],
            } = func.dfg.insts[masked]
            else {
                return None;
            };
            let mask = u32::try_from(loops::constant(func, mask)?).ok()?;
            let low_bits = mask & mask.wrapping_add(1) == 0;
            let fits = stays == 1 && low_bits && func.dfg.value_type(value) == types::I32;
            fits.then_some((guard, Test::Zero(value, mask)))
        }
        _ => None,
    }
}

/// Returns the test that fails if the two numbers satisfy `bad`.
fn at_most(func: &Function, bad: IntCC, [left, right]: [Value; 2]) -> Option<Test> {
    if func.dfg.value_type(left) != types::I32 {
        return None;
    }
    let (number, bound, strict) = match bad {
        IntCC::UnsignedGreaterThan => (left, right, false),
        IntCC::UnsignedGreaterThanOrEqual => (left, right, true),
        IntCC::UnsignedLessThan => (right, left, false),
        IntCC::UnsignedLessThanOrEqual => (right, left, true),
        _ => return None,
    };
    Some(Test::AtMost { number, bound, strict })
}
