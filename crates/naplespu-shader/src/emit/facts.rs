//! Upper bounds of values, from their definitions and from the conditions on the way to a block.
//!
//! A bound is the largest possible value as an unsigned number. An index whose bound is less than
//! the length of its array needs no check.

use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{DataFlowGraph, InstructionData, Opcode, Value, ValueDef, types};
use std::collections::HashMap;

/// The largest nonnegative `i32`.
const MAX_SIGNED: u32 = i32::MAX as u32;

/// The largest number of definitions between a value and one that contributes to its bound.
const DEPTH: u32 = 8;

/// The bounds at the current place.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// Bounds that hold wherever the value is defined.
    known: HashMap<Value, u32>,
    /// Bounds by conditions.
    bounds: Vec<(Value, u32)>,
    /// Pairs of which the first is less than the second, as unsigned numbers.
    less: Vec<(Value, Value)>,
    /// The operands of `a && b` and `a || b` that were made with branches: if the value is true
    /// (false for `||`), both operands are.
    combined: HashMap<Value, (bool, Value, Value)>,
}

/// A state of the conditions, for [`Facts::restore`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark(usize, usize);

impl Facts {
    /// Returns the current state of the conditions.
    pub fn mark(&self) -> Mark {
        Mark(self.bounds.len(), self.less.len())
    }

    /// Removes the conditions that were added after the mark.
    pub fn restore(&mut self, mark: Mark) {
        self.bounds.truncate(mark.0);
        self.less.truncate(mark.1);
    }

    /// Records a bound that holds wherever the value is defined.
    pub fn know(&mut self, value: Value, bound: u32) {
        self.known.insert(value, bound);
    }

    /// Records that a value is `condition && other`, or `!condition || other`.
    pub fn combine(&mut self, value: Value, is_or: bool, condition: Value, other: Value) {
        self.combined.insert(value, (is_or, condition, other));
    }

    /// Returns the bound of an `i8` or `i32`. The result for other types has no meaning.
    pub fn bound(&self, dfg: &DataFlowGraph, value: Value) -> u32 {
        self.bound_in(dfg, value, DEPTH)
    }

    /// Returns whether the first number is less than the second, as unsigned numbers.
    pub fn is_less(&self, dfg: &DataFlowGraph, a: Value, b: Value) -> bool {
        let same = |one: Value, other: Value| dfg.resolve_aliases(one) == dfg.resolve_aliases(other);
        self.less.iter().any(|(x, y)| same(*x, a) && same(*y, b))
            || constant(dfg, b).is_some_and(|limit| self.bound(dfg, a) < limit)
    }

    fn bound_in(&self, dfg: &DataFlowGraph, value: Value, depth: u32) -> u32 {
        let value = dfg.resolve_aliases(value);
        let whole = match dfg.value_type(value) {
            types::I8 => 0xff,
            _ => u32::MAX,
        };
        let mut bound = self.known.get(&value).copied().unwrap_or(whole);
        for (one, limit) in &self.bounds {
            if dfg.resolve_aliases(*one) == value {
                bound = bound.min(*limit);
            }
        }
        let ValueDef::Result(inst, 0) = dfg.value_def(value) else {
            return bound;
        };
        if depth == 0 {
            return bound;
        }
        let of = |value: Value| self.bound_in(dfg, value, depth - 1);
        let defined = match dfg.insts[inst] {
            InstructionData::UnaryImm { .. } => constant(dfg, value).unwrap_or(whole),
            InstructionData::Unary {
                opcode: Opcode::Uextend,
                arg,
            } => of(arg),
            InstructionData::IntCompare { .. } | InstructionData::FloatCompare { .. } => 1,
            InstructionData::Ternary {
                opcode: Opcode::Select,
                args: [_, a, b],
            } => of(a).max(of(b)),
            InstructionData::Binary { opcode, args: [a, b] } => match opcode {
                Opcode::Band => of(a).min(of(b)),
                Opcode::Bor | Opcode::Bxor => ones(of(a) | of(b)),
                Opcode::Umin => of(a).min(of(b)),
                Opcode::Umax => of(a).max(of(b)),
                Opcode::Iadd => of(a).checked_add(of(b)).unwrap_or(whole),
                Opcode::Imul => of(a).checked_mul(of(b)).unwrap_or(whole),
                Opcode::Ishl => match constant(dfg, b) {
                    Some(shift @ 0..32) if of(a).leading_zeros() >= shift => of(a) << shift,
                    _ => whole,
                },
                Opcode::Ushr => match constant(dfg, b) {
                    Some(shift @ 0..32) => of(a) >> shift,
                    _ => of(a),
                },
                Opcode::Udiv => match constant(dfg, b) {
                    Some(divisor @ 1..) => of(a) / divisor,
                    _ => whole,
                },
                Opcode::Urem => of(a).min(of(b).saturating_sub(1)),
                // The remainder of a nonnegative number by a positive constant.
                Opcode::Srem => match constant(dfg, b) {
                    Some(divisor @ 1..=MAX_SIGNED) if of(a) <= MAX_SIGNED => of(a).min(divisor - 1),
                    _ => whole,
                },
                Opcode::Sdiv => match constant(dfg, b) {
                    Some(divisor @ 1..=MAX_SIGNED) if of(a) <= MAX_SIGNED => of(a) / divisor,
                    _ => whole,
                },
                _ => whole,
            },
            _ => whole,
        };
        bound.min(defined)
    }

    /// Adds the consequences of a condition that holds or does not hold.
    pub fn assume(&mut self, dfg: &DataFlowGraph, condition: Value, holds: bool) {
        let condition = dfg.resolve_aliases(condition);
        if let Some(&(is_or, first, second)) = self.combined.get(&condition)
            && is_or != holds
        {
            self.assume(dfg, first, true);
            self.assume(dfg, second, !is_or);
            return;
        }
        let ValueDef::Result(inst, 0) = dfg.value_def(condition) else {
            return;
        };
        match dfg.insts[inst] {
            InstructionData::IntCompare { cond, args: [a, b], .. } => {
                let cond = if holds { cond } else { cond.complement() };
                self.compare(dfg, cond, a, b);
                self.compare(dfg, cond.swap_args(), b, a);
            }
            InstructionData::Binary {
                opcode: Opcode::Band,
                args: [a, b],
            } if holds && dfg.value_type(condition) == types::I8 => {
                self.assume(dfg, a, true);
                self.assume(dfg, b, true);
                // A bound of the second may follow from the first, or the other way around.
                self.assume(dfg, a, true);
            }
            InstructionData::Binary {
                opcode: Opcode::Bor,
                args: [a, b],
            } if !holds && dfg.value_type(condition) == types::I8 => {
                self.assume(dfg, a, false);
                self.assume(dfg, b, false);
                self.assume(dfg, a, false);
            }
            InstructionData::Binary {
                opcode: Opcode::Bxor,
                args: [a, b],
            } if constant(dfg, b) == Some(1) => self.assume(dfg, a, !holds),
            _ => {}
        }
    }

    /// Adds the consequences for `a` of `a cond b`.
    fn compare(&mut self, dfg: &DataFlowGraph, cond: IntCC, a: Value, b: Value) {
        if !matches!(dfg.value_type(a), types::I32) {
            return;
        }
        let (of_a, of_b) = (self.bound(dfg, a), self.bound(dfg, b));
        match cond {
            IntCC::Equal => self.bounds.push((a, of_b)),
            IntCC::UnsignedLessThan => {
                self.less.push((a, b));
                self.bounds.push((a, of_b.saturating_sub(1)));
            }
            IntCC::UnsignedLessThanOrEqual => self.bounds.push((a, of_b)),
            // A nonnegative number that is less than another is also less as an unsigned number.
            IntCC::SignedLessThan if of_a <= MAX_SIGNED => {
                self.less.push((a, b));
                self.bounds.push((a, of_b.min(MAX_SIGNED).saturating_sub(1)));
            }
            IntCC::SignedLessThanOrEqual if of_a <= MAX_SIGNED => self.bounds.push((a, of_b.min(MAX_SIGNED))),
            IntCC::SignedGreaterThan | IntCC::SignedGreaterThanOrEqual if of_b <= MAX_SIGNED => {
                self.bounds.push((a, MAX_SIGNED));
            }
            IntCC::SignedGreaterThan if constant(dfg, b) == Some(u32::MAX) => self.bounds.push((a, MAX_SIGNED)),
            _ => {}
        }
    }
}

/// Returns the smallest number of the form 2^n - 1 that is not less.
fn ones(number: u32) -> u32 {
    match number {
        0 => 0,
        _ => u32::MAX >> number.leading_zeros(),
    }
}

/// Returns the value of a constant, as an unsigned number.
pub(crate) fn constant(dfg: &DataFlowGraph, value: Value) -> Option<u32> {
    let value = dfg.resolve_aliases(value);
    let ValueDef::Result(inst, _) = dfg.value_def(value) else {
        return None;
    };
    match dfg.insts[inst] {
        InstructionData::UnaryImm {
            opcode: Opcode::Iconst,
            imm,
        } => Some(match dfg.value_type(value) {
            types::I8 => u32::from(imm.bits() as u8),
            _ => imm.bits() as u32,
        }),
        _ => None,
    }
}
