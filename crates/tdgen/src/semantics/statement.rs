//! Reads statements: converts dags to the statements of an instruction.

use super::graph::{Output, Statement};
use super::read::{Fallible, LANES, Reader, STATEMENTS, WORD, arg_text, operator_name};
use tablegen::{Dag, Value};

impl<'a> Reader<'a, '_> {
    /// Reads the statements of a list.
    pub(crate) fn statements(&mut self, list: &[Value<'a>]) -> Fallible<Vec<Statement>> {
        let mut out = Vec::new();
        for value in list {
            self.statement(*value, false, &mut out)?;
        }
        Ok(out)
    }

    fn inner(&mut self, args: &[(Value<'a>, Option<&'a str>)], lane: bool) -> Fallible<Vec<Statement>> {
        let mut out = Vec::new();
        for (value, _) in args {
            self.statement(*value, lane, &mut out)?;
        }
        Ok(out)
    }

    /// Reads a statement and appends it. `lane`: the statement is inside `do_each_lane`.
    fn statement(&mut self, value: Value<'a>, lane: bool, out: &mut Vec<Statement>) -> Fallible<()> {
        let Some(dag) = value.as_dag() else {
            return self.wrong(format!("`{}` is not a statement", arg_text((value, None))));
        };
        self.statements += 1;
        if self.statements > STATEMENTS {
            return self.wrong(format!("the semantics have more than {STATEMENTS} statements"));
        }
        let name = dag.operator_def().map_or("", |operator| operator.name());
        let made = match name {
            "do_nothing" => {
                let [] = self.arguments(dag)?;
                return Ok(());
            }
            "do_set" => match self.set(dag)? {
                Some(set) => set,
                None => return Ok(()),
            },
            "do_set_of_lanes" => match self.set_of_lanes(dag)? {
                Some(set) => set,
                None => return Ok(()),
            },
            "do_store" => self.store(dag)?,
            "do_each_lane" if lane => return self.wrong("`do_each_lane` inside `do_each_lane`"),
            "do_each_lane" => Statement::EachLane(self.inner(&dag.args(), true)?),
            "do_trap_if" => self.trap(dag, lane)?,
            "do_never_if" => {
                let [condition] = self.arguments(dag)?;
                let condition = self.value_of(condition, 1)?;
                Statement::NeverIf(condition, self.written())
            }
            "do_erratum" => {
                let [erratum, is, ought] = self.arguments(dag)?;
                let erratum = self.erratum(erratum)?;
                let is = self.inner(&[is], lane)?;
                Statement::Erratum(erratum, is, self.inner(&[ought], lane)?)
            }
            _ => self.control(dag, name)?,
        };
        if !lane && let Some(text) = self.lanewise(&made) {
            let message = format!("{text} uses a value that differs between lanes, but is executed once");
            return self.wrong(message);
        }
        out.push(made);
        Ok(())
    }

    /// Returns the name of the statement if it executes once but uses a value that differs between
    /// lanes.
    fn lanewise(&self, statement: &Statement) -> Option<&'static str> {
        let (name, ids): (&str, Vec<u16>) = match *statement {
            Statement::Store {
                address,
                value,
                condition,
                ..
            } => ("`do_store`", vec![address, value, condition]),
            Statement::TrapIf(_, condition, _) => ("`do_trap_if`", vec![condition]),
            Statement::NeverIf(condition, _) => ("`do_never_if`", vec![condition]),
            Statement::Jump(a) | Statement::Flush(a) | Statement::Invalidate(a) => ("a jump or an access", vec![a]),
            Statement::Branch(a, b) => ("`do_branch`", vec![a, b]),
            Statement::Barrier(a, b) => ("`do_barrier`", vec![a, b]),
            Statement::WriteControl(a, b) => ("`do_write_control`", vec![a, b]),
            Statement::Set { .. } | Statement::EachLane(_) | Statement::Erratum(..) => return None,
        };
        ids.iter().any(|id| self.node(*id).per_lane).then_some(name)
    }

    /// Returns the register of the result, if the instruction has one.
    fn written(&self) -> Option<Output> {
        let output = self.output().ok()?;
        let written = match output {
            Output::Register(_) => true,
            Output::Scalar(index) | Output::Vector(index) => self.context.operands[usize::from(index)].is_def,
        };
        written.then_some(output)
    }

    /// Reads a `do_set`. Returns `None` if the statements have a `do_set_of_lanes` that applies
    /// instead.
    fn set(&mut self, dag: Dag<'a>) -> Fallible<Option<Statement>> {
        let args = dag.args();
        if !(1..=2).contains(&args.len()) {
            return self.wrong(format!("`do_set` has {} operands, not 1 or 2", args.len()));
        }
        let output = self.output()?;
        let value = self.value_of(args[0], WORD)?;
        if self.node(value).per_lane && !matches!(output, Output::Vector(_)) {
            return if self.sets_of_lanes() {
                Ok(None)
            } else {
                self.wrong("the result of a scalar register differs between lanes, and there is no `do_set_of_lanes`")
            };
        }
        let mask = match args.get(1) {
            Some(mask) => self.value_of(*mask, LANES)?,
            None => self.low_half(value)?,
        };
        Ok(Some(Statement::Set { output, value, mask }))
    }

    /// Returns whether the statements have a `do_set_of_lanes`.
    fn sets_of_lanes(&self) -> bool {
        self.context.of_lanes
    }

    /// Reads a `do_set_of_lanes`. Returns `None` if `do_set` applies.
    fn set_of_lanes(&mut self, dag: Dag<'a>) -> Fallible<Option<Statement>> {
        let [value] = self.arguments(dag)?;
        let output = self.output()?;
        let value = self.value_of(value, WORD)?;
        if self.node(value).per_lane {
            return self.wrong("the value of `do_set_of_lanes` differs between lanes");
        }
        if !self.reads_vector() || matches!(output, Output::Vector(_)) {
            return Ok(None);
        }
        let mask = self.low_half(value)?;
        Ok(Some(Statement::Set { output, value, mask }))
    }

    /// Returns whether a source of the instruction is a vector register.
    fn reads_vector(&self) -> bool {
        self.nodes
            .iter()
            .any(|node| matches!(node.kind, super::NodeKind::Vector(_)))
    }

    fn store(&mut self, dag: Dag<'a>) -> Fallible<Statement> {
        let args = dag.args();
        if !(4..=5).contains(&args.len()) {
            return self.wrong(format!("`do_store` has {} operands, not 4 or 5", args.len()));
        }
        let bytes = self.number(dag, args[1], 1..=64)?;
        Ok(Statement::Store {
            space: self.space(args[0])?,
            bytes,
            address: self.value_of(args[2], WORD)?,
            value: self.value_of(args[3], bytes * 8)?,
            condition: self.condition(args.get(4))?,
        })
    }

    fn trap(&mut self, dag: Dag<'a>, lane: bool) -> Fallible<Statement> {
        let args = dag.args();
        let [reason, condition, inner @ ..] = args.as_slice() else {
            return self.wrong(format!("`do_trap_if` has {} operands, not 2 or more", args.len()));
        };
        let reasons = &self.context.target.trap_reasons;
        let found = reason.0.as_def().filter(|record| record.is_a("TrapReason"));
        let found = found.and_then(|record| {
            let name = record.string("Name").ok()?;
            reasons.iter().position(|reason| reason.name == name)
        });
        let Some(found) = found else {
            return self.wrong(format!("`{}` is not a trap reason", arg_text(*reason)));
        };
        let condition = self.value_of(*condition, 1)?;
        Ok(Statement::TrapIf(found, condition, self.inner(inner, lane)?))
    }

    fn control(&mut self, dag: Dag<'a>, name: &str) -> Fallible<Statement> {
        Ok(match name {
            "do_jump" => {
                let [target] = self.arguments(dag)?;
                Statement::Jump(self.value_of(target, WORD)?)
            }
            "do_branch" => {
                let [condition, target] = self.arguments(dag)?;
                let condition = self.value_of(condition, 1)?;
                Statement::Branch(condition, self.value_of(target, WORD)?)
            }
            "do_barrier" => {
                let [number, others] = self.arguments(dag)?;
                let number = self.value_of(number, 9)?;
                Statement::Barrier(number, self.value_of(others, 7)?)
            }
            "do_write_control" => {
                let [number, value] = self.arguments(dag)?;
                let number = self.value_of(number, 6)?;
                Statement::WriteControl(number, self.value_of(value, WORD)?)
            }
            "do_flush" => {
                let [address] = self.arguments(dag)?;
                Statement::Flush(self.value_of(address, WORD)?)
            }
            "do_invalidate" => {
                let [address] = self.arguments(dag)?;
                Statement::Invalidate(self.value_of(address, WORD)?)
            }
            _ => return self.wrong(format!("`{}` is not a statement", operator_name(dag))),
        })
    }
}
