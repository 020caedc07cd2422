//! Upper limits of the variables of a loop nest, computed before the nest is entered.

use super::form::{LinearForm, LoopNest, Variable};
use crate::edit::{self, Edge};
use crate::facts;
use crate::loops::{self, Bound, CountedExit, NaturalLoop};
use cranelift_codegen::Context;
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{Block, Function, InstructionData, Value, types};

/// The maximum number of blocks before a loop that are searched for the test that guards its entry.
const MAX_BLOCKS: usize = 4;

/// A condition before the nest under which a limit is valid.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Precondition {
    /// The masked bits of the form are 0.
    Zero(LinearForm, u32),
    /// The two forms compare so.
    Compare(IntCC, LinearForm, LinearForm),
}

impl Precondition {
    /// Returns whether the condition holds, if both sides are constant.
    pub fn known(&self) -> Option<bool> {
        match self {
            Precondition::Zero(form, mask) => Some(form.as_number()? & mask == 0),
            Precondition::Compare(condition, left, right) => {
                let (left, right) = (left.as_number()?, right.as_number()?);
                let (low, high) = (left.cast_signed(), right.cast_signed());
                Some(match condition {
                    IntCC::Equal => left == right,
                    IntCC::NotEqual => left != right,
                    IntCC::SignedLessThan => low < high,
                    IntCC::SignedLessThanOrEqual => low <= high,
                    IntCC::SignedGreaterThan => low > high,
                    IntCC::SignedGreaterThanOrEqual => low >= high,
                    IntCC::UnsignedLessThan => left < right,
                    IntCC::UnsignedLessThanOrEqual => left <= right,
                    IntCC::UnsignedGreaterThan => left > right,
                    IntCC::UnsignedGreaterThanOrEqual => left >= right,
                })
            }
        }
    }
}

/// The limit of a variable: `((distance * factor) >> shift) + addend`.
#[derive(Clone, Debug)]
pub struct Limit {
    /// An invariant form.
    pub distance: LinearForm,
    /// An odd factor.
    pub factor: u32,
    /// The shift of the product to the right.
    pub shift: u32,
    /// A constant added afterwards. The sum does not overflow.
    pub addend: u32,
    /// The conditions under which the limit is valid.
    pub preconditions: Vec<Precondition>,
}

impl Limit {
    /// Returns the limit if it is constant.
    pub fn constant(&self) -> Option<u32> {
        let distance = self.distance.as_number()?;
        Some((distance.wrapping_mul(self.factor) >> self.shift).wrapping_add(self.addend))
    }
}

/// Returns the counted exits of each loop that test an i32.
pub fn exits(ctx: &Context, all: &[NaturalLoop]) -> Vec<Vec<CountedExit>> {
    let counted = |lp| {
        let mut exits = loops::counted_exits(ctx, lp);
        exits.retain(|exit| exit.variable.ty == types::I32);
        // Exits with a constant count come first, because they need no test at run time.
        exits.sort_by_key(|exit| exit.count.unwrap_or(u64::MAX));
        exits
    };
    all.iter().map(counted).collect()
}

impl LoopNest<'_> {
    /// Returns the limit of a variable, if it can be computed before the nest.
    pub fn limit(&self, variable: Variable, exits: &[Vec<CountedExit>]) -> Option<Limit> {
        match variable {
            Variable::Iterations(loop_index) => exits[loop_index]
                .iter()
                .find_map(|exit| self.iteration_limit(loop_index, exit)),
            Variable::Param(param) => self.tested(param),
            Variable::Small(value) => Some(Limit {
                distance: LinearForm::number(u32::try_from(facts::largest(self.func, value)).ok()?),
                factor: 1,
                shift: 0,
                addend: 0,
                preconditions: Vec::new(),
            }),
        }
    }

    /// Returns the limit of the number of completed iterations before the exit leaves.
    fn iteration_limit(&self, loop_index: usize, exit: &CountedExit) -> Option<Limit> {
        let variable = exit.variable;
        let mut first = if loop_index == self.outermost {
            LinearForm::of(variable.param)
        } else {
            self.form(self.entry_value(loop_index, variable.index)?)?
        };
        first.constant = first.constant.wrapping_add((exit.offset & u64::from(u32::MAX)) as u32);
        let bound = match exit.bound {
            Bound::Constant(number) => LinearForm::number((number & u64::from(u32::MAX)) as u32),
            Bound::Value(value) => self.form(value)?,
        };
        let step = variable.signed_step();
        let step_size = u32::try_from(step.unsigned_abs()).ok()?;
        let up = step > 0;
        let distance = match up {
            true => bound.clone().minus(&first),
            false => first.clone().minus(&bound),
        };
        if !distance.is_invariant() {
            return None;
        }
        if exit.leaves == IntCC::Equal {
            let shift = step_size.trailing_zeros();
            let preconditions = match shift {
                0 => Vec::new(),
                _ => vec![Precondition::Zero(distance.clone(), (1 << shift) - 1)],
            };
            // Multiplication by the inverse of the odd part divides multiples of the step exactly.
            // Otherwise the variable wraps around, and the result exceeds the quotient.
            let odd = (loops::inverse(u64::from(step_size >> shift)) & u64::from(u32::MAX)) as u32;
            return Some(Limit {
                distance,
                factor: odd,
                shift,
                addend: 0,
                preconditions,
            });
        }
        // An order compares the numbers themselves, not their distance.
        if !first.is_invariant() || !bound.is_invariant() {
            return None;
        }
        let (goes_up, beyond, signed) = match exit.leaves {
            IntCC::UnsignedGreaterThanOrEqual => (true, 0, false),
            IntCC::UnsignedGreaterThan => (true, 1, false),
            IntCC::SignedGreaterThanOrEqual => (true, 0, true),
            IntCC::SignedGreaterThan => (true, 1, true),
            IntCC::UnsignedLessThanOrEqual => (false, 0, false),
            IntCC::UnsignedLessThan => (false, 1, false),
            IntCC::SignedLessThanOrEqual => (false, 0, true),
            IntCC::SignedLessThan => (false, 1, true),
            IntCC::Equal | IntCC::NotEqual => return None,
        };
        if goes_up != up {
            return None;
        }
        let order = match (up, signed) {
            (true, false) => IntCC::UnsignedLessThanOrEqual,
            (true, true) => IntCC::SignedLessThanOrEqual,
            (false, false) => IntCC::UnsignedGreaterThanOrEqual,
            (false, true) => IntCC::SignedGreaterThanOrEqual,
        };
        let mut preconditions = vec![Precondition::Compare(order, first, bound.clone())];
        // The last step must not exceed the range of the type.
        let room = (step_size - 1).checked_add(beyond)?;
        if room > 0 {
            let last = match (up, signed) {
                (true, false) => u32::MAX.wrapping_sub(room),
                (true, true) => (u32::MAX >> 1).wrapping_sub(room),
                (false, false) => room,
                (false, true) => (1 << 31) | room,
            };
            // A step of 2^31 leaves no margin for signed numbers.
            if signed && room >> 31 != 0 {
                return None;
            }
            preconditions.push(Precondition::Compare(order, bound, LinearForm::number(last)));
        }
        let shift = step_size.ilog2();
        // Rounds up: the shift discards a remainder. It divides by at most the step, so the limit
        // is not too small.
        let addend = beyond + u32::from(step_size > 1);
        Some(Limit {
            distance,
            factor: 1,
            shift,
            addend,
            preconditions,
        })
    }

    /// Returns another header parameter with the same step that is tested before every iteration.
    pub fn companion(&self, loop_index: usize, index: usize) -> Option<(usize, Value)> {
        let step = self.step(loop_index, index)?;
        let params = self.func.dfg.block_params(self.loops[loop_index].header);
        let mut candidates = params.iter().copied().enumerate();
        candidates.find(|&(other, param)| {
            self.func.dfg.value_type(param) == types::I32
                && self.step(loop_index, other).as_ref() == Some(&step)
                && self.test(loop_index, other).is_some()
        })
    }

    /// Returns the increment of the parameter in an iteration, if it is invariant in its loop.
    fn step(&self, loop_index: usize, index: usize) -> Option<LinearForm> {
        let lp = &self.loops[loop_index];
        let next = *edit::args(self.func, lp.back_edge)?.get(index)?;
        let param = *self.func.dfg.block_params(lp.header).get(index)?;
        // Treats the loop alone, without expanding its header parameters.
        let mut step = LoopNest {
            outermost: loop_index,
            ..*self
        }
        .form_to(next, 0)?;
        let unknown = std::mem::take(&mut step.unknown);
        (unknown.as_slice() == [(param, 1)] && step.is_invariant()).then_some(step)
    }

    /// Returns the bound that the parameter is below, or at most, in all iterations but the first.
    fn test(&self, loop_index: usize, index: usize) -> Option<(IntCC, Value, LinearForm)> {
        let back = self.loops[loop_index].back_edge;
        let next = *edit::args(self.func, back)?.get(index)?;
        let (condition, bound) = below(self.func, back, next)?;
        let limit = self.form_to(bound, 0)?;
        limit.is_invariant().then_some((condition, bound, limit))
    }

    /// Returns the limit of a parameter that is tested before every iteration.
    fn tested(&self, param: Value) -> Option<Limit> {
        let (loop_index, index) = self.header_of(param)?;
        let (condition, bound, mut distance) = self.test(loop_index, index)?;
        let mut preconditions = Vec::new();
        if !self.is_tested_at_entry(loop_index, index, condition, bound) {
            let first = match loop_index == self.outermost {
                true => LinearForm::of(param),
                false => self.form(self.entry_value(loop_index, index)?)?,
            };
            if !first.is_invariant() {
                return None;
            }
            preconditions.push(Precondition::Compare(condition, first, distance.clone()));
        }
        if condition == IntCC::UnsignedLessThan {
            distance.constant = distance.constant.wrapping_sub(1);
        }
        Some(Limit {
            distance,
            factor: 1,
            shift: 0,
            addend: 0,
            preconditions,
        })
    }

    /// Returns whether all paths into the loop test the parameter against the bound with this
    /// condition.
    fn is_tested_at_entry(&self, loop_index: usize, index: usize, condition: IntCC, bound: Value) -> bool {
        let entries = &self.loops[loop_index].entries;
        entries.iter().all(|&entry| {
            let value = edit::args(self.func, entry).and_then(|args| args.get(index).copied());
            let Some(value) = value else { return false };
            let mut edge = entry;
            for _ in 0..MAX_BLOCKS {
                match below(self.func, edge, value) {
                    Some(found) if found == (condition, bound) => return true,
                    _ => {}
                }
                let block = self.func.layout.inst_block(edge.inst);
                match block.and_then(|block| self.only_edge_to(block)) {
                    Some(before) => edge = before,
                    None => return false,
                }
            }
            false
        })
    }

    /// Returns the edge to the block, if it is the only one.
    fn only_edge_to(&self, block: Block) -> Option<Edge> {
        let mut preds = self.cfg.pred_iter(block);
        let (inst, more) = (preds.next()?.inst, preds.next().is_some());
        let to = |number: &usize| edit::target(self.func, Edge { inst, number: *number }) == Some(block);
        let mut numbers = (0..edit::destinations(self.func, inst).len()).filter(to);
        let (number, twice) = (numbers.next()?, numbers.next().is_some());
        (!more && !twice).then_some(Edge { inst, number })
    }
}

/// Returns the condition (unsigned less, or less or equal) and the bound of the value that the edge
/// implies.
fn below(func: &Function, edge: Edge, value: Value) -> Option<(IntCC, Value)> {
    let InstructionData::Brif { arg, .. } = func.dfg.insts[edge.inst] else {
        return None;
    };
    let (mut condition, [left, right]) = loops::compared(func, arg)?;
    if edge.number == 1 {
        condition = condition.complement();
    }
    let value = func.dfg.resolve_aliases(value);
    let is = |other: Value| func.dfg.resolve_aliases(other) == value;
    let bound = if is(left) {
        right
    } else if is(right) {
        condition = condition.swap_args();
        left
    } else {
        return None;
    };
    let below = matches!(condition, IntCC::UnsignedLessThan | IntCC::UnsignedLessThanOrEqual);
    below.then(|| (condition, func.dfg.resolve_aliases(bound)))
}
