//! Emits the tests before a versioned loop nest.

use super::form::{self, LinearForm, Variable};
use super::limits::{Limit, Precondition};
use super::plan::{BoundCheck, Plan};
use crate::Error;
use crate::linear;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, Function, Inst, InstBuilder, Value, types};
use rustc_hash::FxHashMap;

/// Emits the tests of a plan at the end of a block.
pub struct Emitter<'f> {
    cursor: FuncCursor<'f>,
    /// The blocks of the nest.
    nest: &'f [Block],
    /// Replacements for values of the nest.
    mapped: FxHashMap<Value, Value>,
    limits: FxHashMap<Variable, Value>,
    conditions: Vec<Value>,
}

impl<'f> Emitter<'f> {
    /// Creates an emitter at the end of `block`, which enters the nest. `mapped` contains the
    /// values of the nest's header parameters in `block`.
    pub fn new(func: &'f mut Function, block: Block, nest: &'f [Block], mapped: FxHashMap<Value, Value>) -> Self {
        Self {
            cursor: FuncCursor::new(func).at_bottom(block),
            nest,
            mapped,
            limits: FxHashMap::default(),
            conditions: Vec::new(),
        }
    }

    /// Emits the condition under which no guard of the plan fails. Returns `None` if no test is
    /// needed.
    ///
    /// # Errors
    ///
    /// [`Error::Internal`] if the plan lacks the limit of a variable.
    pub fn run(mut self, plan: &Plan) -> Result<Option<Value>, Error> {
        for precondition in &plan.preconditions {
            let condition = self.precondition(precondition);
            self.conditions.push(condition);
        }
        for (variable, limit) in &plan.limits {
            let value = self.limit(limit);
            self.limits.insert(*variable, value);
            if limit.constant().is_none()
                && let Some(largest) = plan.largest(*variable)
            {
                let largest = self.number(largest);
                self.push(IntCC::UnsignedLessThanOrEqual, value, largest);
            }
        }
        for check in &plan.bound_checks {
            self.bound_check(check)?;
        }
        let Self {
            mut cursor, conditions, ..
        } = self;
        Ok(conditions.into_iter().reduce(|all, one| cursor.ins().band(all, one)))
    }

    fn precondition(&mut self, precondition: &Precondition) -> Value {
        match precondition {
            Precondition::Zero(form, mask) => {
                let value = self.value(form);
                let mask = self.number(*mask);
                let bits = self.cursor.ins().band(value, mask);
                let zero = self.number(0);
                self.cursor.ins().icmp(IntCC::Equal, bits, zero)
            }
            Precondition::Compare(condition, left, right) => {
                let (left, right) = (self.value(left), self.value(right));
                self.cursor.ins().icmp(*condition, left, right)
            }
        }
    }

    fn limit(&mut self, limit: &Limit) -> Value {
        if let Some(number) = limit.constant() {
            return self.number(number);
        }
        let mut value = self.value(&limit.distance);
        if limit.factor != 1 {
            let factor = self.number(limit.factor);
            value = self.cursor.ins().imul(value, factor);
        }
        if limit.shift != 0 {
            let shift = self.number(limit.shift);
            value = self.cursor.ins().ushr(value, shift);
        }
        self.plus(value, limit.addend)
    }

    /// Emits tests that the minimum and the maximum lie between 0 and the bound without overflow.
    fn bound_check(&mut self, check: &BoundCheck) -> Result<(), Error> {
        let mut lowest = check.number.clone();
        lowest.constant = lowest.constant.wrapping_add_signed(check.offsets.0);
        let varying = std::mem::take(&mut lowest.varying);
        let (lowest, bound) = (self.value(&lowest), self.value(&check.bound));
        self.push(IntCC::UnsignedLessThanOrEqual, lowest, bound);
        let (down, up): (Vec<_>, Vec<_>) = varying.into_iter().partition(|term| term.1.cast_signed() < 0);
        let wide = check.offsets.1.wrapping_sub(check.offsets.0).cast_unsigned();
        if let Some(more) = self.span(&up, wide)? {
            let room = self.cursor.ins().isub(bound, lowest);
            self.push(IntCC::UnsignedLessThanOrEqual, more, room);
        }
        if let Some(less) = self.span(&down, 0)? {
            self.push(IntCC::UnsignedLessThanOrEqual, less, lowest);
        }
        Ok(())
    }

    /// Emits the sum of the absolute contributions of the variables. Returns `None` if it is 0.
    fn span(&mut self, varying: &[(Variable, u32)], constant: u32) -> Result<Option<Value>, Error> {
        let of = |&(variable, factor): &(Variable, u32)| {
            let limit = self.limits.get(&variable);
            let limit = limit.ok_or_else(|| Error::internal("versioning", format!("{variable:?}"), "a limit"))?;
            Ok((*limit, factor.cast_signed().unsigned_abs()))
        };
        let terms = varying.iter().map(of).collect::<Result<Vec<(Value, u32)>, Error>>()?;
        Ok(match linear::add_terms(&mut self.cursor, None, &terms) {
            Some(sum) => Some(self.plus(sum, constant)),
            None => (constant != 0).then(|| self.number(constant)),
        })
    }

    fn push(&mut self, condition: IntCC, left: Value, right: Value) {
        let holds = self.cursor.ins().icmp(condition, left, right);
        self.conditions.push(holds);
    }

    /// Emits the invariant part of a linear form.
    fn value(&mut self, form: &LinearForm) -> Value {
        let terms: Vec<(Value, u32)> = form
            .invariant
            .iter()
            .map(|&(value, factor)| (self.map_value(value), factor))
            .collect();
        match linear::add_terms(&mut self.cursor, None, &terms) {
            Some(sum) => self.plus(sum, form.constant),
            None => self.number(form.constant),
        }
    }

    fn plus(&mut self, value: Value, constant: u32) -> Value {
        if constant == 0 {
            return value;
        }
        let constant = self.number(constant);
        self.cursor.ins().iadd(value, constant)
    }

    fn number(&mut self, number: u32) -> Value {
        self.cursor.ins().iconst(types::I32, i64::from(number.cast_signed()))
    }

    /// Returns the value before the nest: the value itself, a header parameter, or a copy of an
    /// invariant load.
    fn map_value(&mut self, value: Value) -> Value {
        if let Some(&known) = self.mapped.get(&value) {
            return known;
        }
        let func = &self.cursor.func;
        let Some(load) = func.dfg.value_def(value).inst().filter(|&inst| self.is_inside(inst)) else {
            return value;
        };
        let symbol = form::symbol(func, func.dfg.inst_args(load)[0]).filter(|&inst| self.is_inside(inst));
        let copy = self.cursor.func.dfg.clone_inst(load);
        if let Some(symbol) = symbol {
            let address = self.cursor.func.dfg.clone_inst(symbol);
            self.cursor.insert_inst(address);
            let address = self.cursor.func.dfg.first_result(address);
            self.cursor.func.dfg.map_inst_values(copy, |_| address);
        }
        self.cursor.insert_inst(copy);
        let own = self.cursor.func.dfg.first_result(copy);
        self.mapped.insert(value, own);
        own
    }

    fn is_inside(&self, inst: Inst) -> bool {
        let block = self.cursor.func.layout.inst_block(inst);
        block.is_some_and(|block| self.nest.contains(&block))
    }
}
