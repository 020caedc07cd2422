//! The tests before a nest.

use super::form::{self, Form, Variable};
use super::plan::{Bounded, Plan};
use super::rounds::{Limit, Need};
use crate::Error;
use crate::linear;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, Function, Inst, InstBuilder, Value, types};
use rustc_hash::FxHashMap;

/// Writes what a plan asks for to the end of a block.
pub struct Emitter<'f> {
    cursor: FuncCursor<'f>,
    /// The blocks of the nest.
    nest: &'f [Block],
    /// What stands here for values of the nest.
    here: FxHashMap<Value, Value>,
    limits: FxHashMap<Variable, Value>,
    conditions: Vec<Value>,
}

impl<'f> Emitter<'f> {
    /// At the end of `block`, before the nest of these blocks; `here` says what the parameters of the nest's header are there.
    pub fn new(func: &'f mut Function, block: Block, nest: &'f [Block], here: FxHashMap<Value, Value>) -> Self {
        Self {
            cursor: FuncCursor::new(func).at_bottom(block),
            nest,
            here,
            limits: FxHashMap::default(),
            conditions: Vec::new(),
        }
    }

    /// Computes whether the nest can do without its checks; `None`: always.
    ///
    /// # Errors
    ///
    /// [`Error::Internal`] if the plan has no limit for something that changes.
    pub fn run(mut self, plan: &Plan) -> Result<Option<Value>, Error> {
        for need in &plan.needs {
            let condition = self.need(need);
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
        for bounded in &plan.bounded {
            self.bounded(bounded)?;
        }
        let Self {
            mut cursor, conditions, ..
        } = self;
        Ok(conditions.into_iter().reduce(|all, one| cursor.ins().band(all, one)))
    }

    fn need(&mut self, need: &Need) -> Value {
        match need {
            Need::Zero(form, mask) => {
                let value = self.value(form);
                let mask = self.number(*mask);
                let bits = self.cursor.ins().band(value, mask);
                let zero = self.number(0);
                self.cursor.ins().icmp(IntCC::Equal, bits, zero)
            }
            Need::Compare(condition, left, right) => {
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
        self.plus(value, limit.more)
    }

    /// The smallest number and what is added for the largest are at most the bound together, and nothing wraps.
    fn bounded(&mut self, bounded: &Bounded) -> Result<(), Error> {
        let mut lowest = bounded.number.clone();
        lowest.constant = lowest.constant.wrapping_add_signed(bounded.around.0);
        let changes = std::mem::take(&mut lowest.changes);
        let (lowest, most) = (self.value(&lowest), self.value(&bounded.most));
        self.push(IntCC::UnsignedLessThanOrEqual, lowest, most);
        let (down, up): (Vec<_>, Vec<_>) = changes.into_iter().partition(|term| term.1.cast_signed() < 0);
        let wide = bounded.around.1.wrapping_sub(bounded.around.0).cast_unsigned();
        if let Some(more) = self.span(&up, wide)? {
            let room = self.cursor.ins().isub(most, lowest);
            self.push(IntCC::UnsignedLessThanOrEqual, more, room);
        }
        if let Some(less) = self.span(&down, 0)? {
            self.push(IntCC::UnsignedLessThanOrEqual, less, lowest);
        }
        Ok(())
    }

    /// How far the changes go together, without their signs; `None`: not at all.
    fn span(&mut self, changes: &[(Variable, u32)], constant: u32) -> Result<Option<Value>, Error> {
        let of = |&(variable, factor): &(Variable, u32)| {
            let limit = self.limits.get(&variable);
            let limit = limit.ok_or_else(|| Error::internal("guards", format!("{variable:?}"), "a limit"))?;
            Ok((*limit, factor.cast_signed().unsigned_abs()))
        };
        let terms = changes.iter().map(of).collect::<Result<Vec<(Value, u32)>, Error>>()?;
        Ok(match linear::add_terms(&mut self.cursor, None, &terms) {
            Some(sum) => Some(self.plus(sum, constant)),
            None => (constant != 0).then(|| self.number(constant)),
        })
    }

    fn push(&mut self, condition: IntCC, left: Value, right: Value) {
        let holds = self.cursor.ins().icmp(condition, left, right);
        self.conditions.push(holds);
    }

    /// A sum without what changes.
    fn value(&mut self, form: &Form) -> Value {
        let terms: Vec<(Value, u32)> = form
            .start
            .iter()
            .map(|&(value, factor)| (self.here(value), factor))
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

    /// What a value of a start is here: itself, a parameter, or the same load again.
    fn here(&mut self, value: Value) -> Value {
        if let Some(&known) = self.here.get(&value) {
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
        self.here.insert(value, own);
        own
    }

    fn is_inside(&self, inst: Inst) -> bool {
        let block = self.cursor.func.layout.inst_block(inst);
        block.is_some_and(|block| self.nest.contains(&block))
    }
}
