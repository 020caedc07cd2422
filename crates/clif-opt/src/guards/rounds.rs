//! How far what changes in a nest goes at most, as what is computed before the nest is entered.

use super::form::{Form, Nest, Variable};
use crate::bits;
use crate::edit::{self, Edge};
use crate::loops::{self, Bound, CountedExit, NaturalLoop};
use cranelift_codegen::Context;
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{Block, Function, InstructionData, Value, types};

/// How many blocks before a loop are looked at for the test that leads to it.
const BLOCKS: usize = 4;

/// Something that has to hold before the nest for a limit to be one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Need {
    /// The bits of this mask are 0.
    Zero(Form, u32),
    /// The two compare so.
    Compare(IntCC, Form, Form),
}

impl Need {
    /// Whether it holds, if that is known from constants.
    pub fn known(&self) -> Option<bool> {
        match self {
            Need::Zero(form, mask) => Some(form.as_number()? & mask == 0),
            Need::Compare(condition, left, right) => {
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

/// The largest number of a variable: the distance, times an odd number, shifted to the right, and `more`.
#[derive(Clone, Debug)]
pub struct Limit {
    /// A number that is the same in all rounds.
    pub distance: Form,
    /// The odd number.
    pub factor: u32,
    /// How far the product is shifted.
    pub shift: u32,
    /// What is added then. With it, the sum is below 2^32 if the distance is.
    pub more: u32,
    /// When all that is so.
    pub needs: Vec<Need>,
}

impl Limit {
    /// The number, if it is known.
    pub fn constant(&self) -> Option<u32> {
        let distance = self.distance.as_number()?;
        Some((distance.wrapping_mul(self.factor) >> self.shift).wrapping_add(self.more))
    }
}

/// Exits that count, of each loop.
pub fn exits(ctx: &Context, all: &[NaturalLoop]) -> Vec<Vec<CountedExit>> {
    let counted = |lp| {
        let mut exits = loops::counted_exits(ctx, lp);
        exits.retain(|exit| exit.variable.ty == types::I32);
        // Numbers that are known ask for nothing at run time.
        exits.sort_by_key(|exit| exit.count.unwrap_or(u64::MAX));
        exits
    };
    all.iter().map(counted).collect()
}

impl Nest<'_> {
    /// The limit of a variable, if one is known before the nest.
    pub fn limit(&self, variable: Variable, exits: &[Vec<CountedExit>]) -> Option<Limit> {
        match variable {
            Variable::Rounds(place) => exits[place].iter().find_map(|exit| self.rounds(place, exit)),
            Variable::Param(param) => self.tested(param),
            Variable::Small(value) => Some(Limit {
                distance: Form::number(u32::try_from(bits::largest(self.func, value)).ok()?),
                factor: 1,
                shift: 0,
                more: 0,
                needs: Vec::new(),
            }),
        }
    }

    /// The rounds before the exit leaves.
    fn rounds(&self, place: usize, exit: &CountedExit) -> Option<Limit> {
        let variable = exit.variable;
        let mut first = if place == self.top {
            Form::of(variable.param)
        } else {
            self.form(self.entry_value(place, variable.index)?)?
        };
        first.constant = first.constant.wrapping_add((exit.offset & u64::from(u32::MAX)) as u32);
        let bound = match exit.bound {
            Bound::Constant(number) => Form::number((number & u64::from(u32::MAX)) as u32),
            Bound::Value(value) => self.form(value)?,
        };
        let step = variable.signed_step();
        let pace = u32::try_from(step.unsigned_abs()).ok()?;
        let up = step > 0;
        let distance = match up {
            true => bound.clone().minus(&first),
            false => first.clone().minus(&bound),
        };
        if !distance.is_invariant() {
            return None;
        }
        if exit.leaves == IntCC::Equal {
            let shift = pace.trailing_zeros();
            let needs = match shift {
                0 => Vec::new(),
                _ => vec![Need::Zero(distance.clone(), (1 << shift) - 1)],
            };
            // Of a multiple of the pace this makes the quotient, and more than is asked for of a distance that wraps.
            let odd = (loops::inverse(u64::from(pace >> shift)) & u64::from(u32::MAX)) as u32;
            return Some(Limit {
                distance,
                factor: odd,
                shift,
                more: 0,
                needs,
            });
        }
        // Such a compare is one of the numbers themselves, not of their distance.
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
        let mut needs = vec![Need::Compare(order, first, bound.clone())];
        // The last step must not pass the largest or smallest number of the type.
        let room = (pace - 1).checked_add(beyond)?;
        if room > 0 {
            let last = match (up, signed) {
                (true, false) => u32::MAX.wrapping_sub(room),
                (true, true) => (u32::MAX >> 1).wrapping_sub(room),
                (false, false) => room,
                (false, true) => (1 << 31) | room,
            };
            // A pace of half of all numbers leaves no room with signs.
            if signed && room >> 31 != 0 {
                return None;
            }
            needs.push(Need::Compare(order, bound, Form::number(last)));
        }
        let shift = pace.ilog2();
        // The quotient may have a rest, and its divisor may be smaller than the pace.
        let more = beyond + u32::from(pace > 1);
        Some(Limit {
            distance,
            factor: 1,
            shift,
            more,
            needs,
        })
    }

    /// The parameter of the loop that goes in step with the one of this place, and that is tested before every round.
    pub fn companion(&self, place: usize, index: usize) -> Option<(usize, Value)> {
        let step = self.step(place, index)?;
        let params = self.func.dfg.block_params(self.loops[place].header);
        let mut candidates = params.iter().copied().enumerate();
        candidates.find(|&(other, param)| {
            self.func.dfg.value_type(param) == types::I32
                && self.step(place, other).as_ref() == Some(&step)
                && self.test(place, other).is_some()
        })
    }

    /// What a round adds to the parameter, if that is the same in all rounds of its loop.
    fn step(&self, place: usize, index: usize) -> Option<Form> {
        let lp = &self.loops[place];
        let next = *edit::args(self.func, lp.back)?.get(index)?;
        let param = *self.func.dfg.block_params(lp.header).get(index)?;
        // Within the loop by itself, where parameters of its header are not taken apart.
        let mut step = Nest { top: place, ..*self }.form_to(next, 0)?;
        let others = std::mem::take(&mut step.others);
        (others.as_slice() == [(param, 1)] && step.is_invariant()).then_some(step)
    }

    /// What the parameter is below, or at most, in all rounds but the first.
    fn test(&self, place: usize, index: usize) -> Option<(IntCC, Value, Form)> {
        let back = self.loops[place].back;
        let next = *edit::args(self.func, back)?.get(index)?;
        let (condition, bound) = below(self.func, back, next)?;
        let limit = self.form_to(bound, 0)?;
        limit.is_invariant().then_some((condition, bound, limit))
    }

    /// The limit of a parameter that is tested before every round.
    fn tested(&self, param: Value) -> Option<Limit> {
        let (place, index) = self.header_of(param)?;
        let (condition, bound, mut distance) = self.test(place, index)?;
        let mut needs = Vec::new();
        if !self.is_entered_below(place, index, condition, bound) {
            let first = match place == self.top {
                true => Form::of(param),
                false => self.form(self.entry_value(place, index)?)?,
            };
            if !first.is_invariant() {
                return None;
            }
            needs.push(Need::Compare(condition, first, distance.clone()));
        }
        if condition == IntCC::UnsignedLessThan {
            distance.constant = distance.constant.wrapping_sub(1);
        }
        Some(Limit {
            distance,
            factor: 1,
            shift: 0,
            more: 0,
            needs,
        })
    }

    /// Whether all ways to the loop test that the parameter compares so with the bound.
    fn is_entered_below(&self, place: usize, index: usize, condition: IntCC, bound: Value) -> bool {
        let entries = &self.loops[place].entries;
        entries.iter().all(|&entry| {
            let value = edit::args(self.func, entry).and_then(|args| args.get(index).copied());
            let Some(value) = value else { return false };
            let mut edge = entry;
            for _ in 0..BLOCKS {
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

    /// The edge to the block, if there is one only.
    fn only_edge_to(&self, block: Block) -> Option<Edge> {
        let mut preds = self.cfg.pred_iter(block);
        let (inst, more) = (preds.next()?.inst, preds.next().is_some());
        let to = |number: &usize| edit::target(self.func, Edge { inst, number: *number }) == Some(block);
        let mut numbers = (0..edit::destinations(self.func, inst).len()).filter(to);
        let (number, twice) = (numbers.next()?, numbers.next().is_some());
        (!more && !twice).then_some(Edge { inst, number })
    }
}

/// What the value is certainly below, or at most, where the edge is taken.
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
