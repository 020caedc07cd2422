//! The checks of a nest that need not be done in its rounds, and what has to hold before the nest for that.

use super::form::{Form, Nest, SPAN, Variable};
use super::rounds::{Limit, Need};
use crate::edit;
use crate::loops::{self, CountedExit};
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Opcode, Value, ValueDef, types};

/// How many bounds are tested before a nest at most.
const BOUNDS: usize = 12;

/// How many variables may make a number larger, and how many smaller.
const CHANGES: usize = 3;

/// An instruction that finds out whether something is as it always is.
#[derive(Clone, Copy, Debug)]
pub enum Guard {
    /// It traps otherwise.
    Trap(Inst),
    /// A branch that goes elsewhere otherwise. It takes the destination with this number.
    Branch(Inst, usize),
}

/// What it finds out.
enum Test {
    /// One unsigned number is at most the other, or less.
    AtMost { number: Value, most: Value, less: bool },
    /// The bits of the mask are 0.
    Zero(Value, u32),
}

/// Numbers that go the same way and have the same bound.
#[derive(Debug)]
pub struct Bounded {
    /// One of them.
    pub number: Form,
    /// The constants that are added to this one for the smallest and the largest.
    pub around: (i32, i32),
    /// What they may be at most.
    pub most: Form,
}

/// What a nest can do without.
#[derive(Debug, Default)]
pub struct Plan {
    /// The instructions.
    pub guards: Vec<Guard>,
    /// What has to be below bounds in all rounds.
    pub bounded: Vec<Bounded>,
    /// How large what changes can be.
    pub limits: Vec<(Variable, Limit)>,
    /// What has to hold besides.
    pub needs: Vec<Need>,
}

impl Plan {
    /// What is known about the nest.
    pub fn of(nest: &Nest<'_>, exits: &[Vec<CountedExit>]) -> Plan {
        let mut plan = Plan::default();
        let warm = |block: &&Block| !nest.func.layout.is_cold(**block);
        for &block in nest.top().blocks.iter().filter(warm) {
            for inst in nest.func.layout.block_insts(block) {
                if let Some((guard, test)) = recognise(nest.func, inst)
                    && plan.add(nest, exits, &test).is_some()
                {
                    plan.guards.push(guard);
                }
            }
        }
        plan
    }

    /// Adds what has to hold for the test to come out well in all rounds; `None` if that is not known, or too much.
    fn add(&mut self, nest: &Nest<'_>, exits: &[Vec<CountedExit>], test: &Test) -> Option<()> {
        match *test {
            Test::Zero(value, mask) => {
                let mut form = nest.form(value)?;
                let matters = |factor: u32| factor & mask != 0;
                if form.changes.iter().any(|term| matters(term.1)) || form.others.iter().any(|term| matters(term.1)) {
                    return None;
                }
                form.changes.clear();
                form.others.clear();
                form.start.retain(|term| matters(term.1));
                form.constant &= mask;
                let need = Need::Zero(form, mask);
                if need.known() == Some(false) {
                    return None;
                }
                self.need(need);
            }
            Test::AtMost { number, most, less } => {
                let number = nest.form(number)?;
                let mut most = nest.form(most)?;
                if !number.others.is_empty() || !most.is_invariant() {
                    return None;
                }
                let grows = |term: &&(Variable, u32)| term.1.cast_signed() > 0;
                let up = number.changes.iter().filter(grows).count();
                if up > CHANGES || number.changes.len() - up > CHANGES {
                    return None;
                }
                let mut needs = Vec::new();
                if less {
                    needs.push(Need::Compare(
                        IntCC::UnsignedGreaterThanOrEqual,
                        most.clone(),
                        Form::number(1),
                    ));
                    most.constant = most.constant.wrapping_sub(1);
                }
                let mut limits = Vec::new();
                for &(variable, factor) in &number.changes {
                    let limit = nest.limit(variable, exits)?;
                    if limit.constant().is_some_and(|limit| limit > most_with(factor)) {
                        return None;
                    }
                    needs.extend(limit.needs.iter().cloned());
                    limits.push((variable, limit));
                }
                if needs.iter().any(|need| need.known() == Some(false)) || !self.bound(number, &most) {
                    return None;
                }
                for need in needs {
                    self.need(need);
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

    /// How large a variable may be for no sum to wrap. `None`: it makes none that could.
    pub fn largest(&self, variable: Variable) -> Option<u32> {
        let in_sum = |bounded: &Bounded| {
            let changes = &bounded.number.changes;
            let &(_, factor) = changes.iter().find(|term| term.0 == variable)?;
            let alone = changes.len() == 1 && bounded.around.0 == bounded.around.1;
            let counts = factor.cast_signed().unsigned_abs() == 1;
            (!(alone && counts)).then(|| most_with(factor))
        };
        self.bounded.iter().filter_map(in_sum).min()
    }

    fn need(&mut self, need: Need) {
        if need.known() != Some(true) && !self.needs.contains(&need) {
            self.needs.push(need);
        }
    }

    /// Notes a number with its bound; `false` if there are too many.
    fn bound(&mut self, number: Form, most: &Form) -> bool {
        for known in &mut self.bounded {
            let same_way = known.number.start == number.start && known.number.changes == number.changes;
            let constants = known.most.start.is_empty() && most.start.is_empty();
            if !same_way || !(constants || known.most == *most) {
                continue;
            }
            let distance = number.constant.wrapping_sub(known.number.constant).cast_signed();
            let around = (known.around.0.min(distance), known.around.1.max(distance));
            if around.1.abs_diff(around.0) < SPAN {
                known.around = around;
                known.most.constant = match constants {
                    true => known.most.constant.min(most.constant),
                    false => most.constant,
                };
                return true;
            }
        }
        if self.bounded.len() == BOUNDS {
            return false;
        }
        self.bounded.push(Bounded {
            number,
            around: (0, 0),
            most: most.clone(),
        });
        true
    }
}

/// How large a variable with this factor may be.
fn most_with(factor: u32) -> u32 {
    SPAN / factor.cast_signed().unsigned_abs()
}

/// The instruction as a guard.
fn recognise(func: &Function, inst: Inst) -> Option<(Guard, Test)> {
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

/// The test that comes out badly if the two compare so.
fn at_most(func: &Function, bad: IntCC, [left, right]: [Value; 2]) -> Option<Test> {
    if func.dfg.value_type(left) != types::I32 {
        return None;
    }
    let (number, most, less) = match bad {
        IntCC::UnsignedGreaterThan => (left, right, false),
        IntCC::UnsignedGreaterThanOrEqual => (left, right, true),
        IntCC::UnsignedLessThan => (right, left, false),
        IntCC::UnsignedLessThanOrEqual => (right, left, true),
        _ => return None,
    };
    Some(Test::AtMost { number, most, less })
}
