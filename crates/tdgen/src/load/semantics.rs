//! Loads the semantics of each instruction: its statements, with the values that its format names.

use super::{Loader, fault, field_span};
use crate::model::Instruction;
use crate::semantics::{Context, Operations, Reader, Semantics, in_operation};
use tablegen::{Diagnostic, Record};

impl Loader<'_> {
    /// Loads the semantics of all instructions. Needs registers, errata and trap reasons.
    pub(super) fn semantics(&mut self) {
        let (operations, faults) = Operations::read(self.records);
        self.faults.extend(faults);
        let mut all = Vec::new();
        for instruction in &self.target.instructions {
            let Some(record) = self.records.def(&instruction.record) else {
                continue;
            };
            match self.semantics_of(record, instruction, &operations) {
                Ok(semantics) => all.push(semantics),
                Err(fault) => {
                    all.push(Semantics::default());
                    self.faults.push(super::in_record(*fault, record));
                }
            }
        }
        for (instruction, semantics) in self.target.instructions.iter_mut().zip(all) {
            instruction.semantics = semantics;
        }
        self.target.operations = operations;
    }

    fn semantics_of(
        &self,
        record: Record<'_>,
        instruction: &Instruction,
        operations: &Operations,
    ) -> Result<Semantics, Box<Diagnostic>> {
        let access = |error: tablegen::AccessError| Box::new(Diagnostic::from(error));
        let operation = record.opt_def("Op").map_err(access)?;
        if record.value("Does").map_err(access)?.is_unset() {
            let message = format!("`{}` has no semantics: `Does` is unset", record.name());
            return Err(Box::new(in_operation(fault(record.span(), message), operation)));
        }
        let does = record.list("Does").map_err(access)?;
        let at_63 = record.list("DoesAt63").map_err(access)?;
        // More faults are in the operation than in the instruction.
        let span = match operation {
            Some(operation) if instruction.scratchpad => field_span(operation, "DoesInScratchpad"),
            Some(operation) => field_span(operation, "Does"),
            None => field_span(record, "Does"),
        };
        let is_of_lanes = |value: &tablegen::Value<'_>| {
            let operator = value.as_dag().and_then(|dag| dag.operator_def());
            operator.is_some_and(|operator| operator.name() == "do_set_of_lanes")
        };
        let context = Context {
            target: &self.target,
            operations,
            operands: &instruction.operands,
            inputs: record.opt_dag("Inputs").map_err(access)?,
            output: record.opt_dag("Output").map_err(access)?,
            of_lanes: does.iter().any(is_of_lanes),
            span,
        };
        let read = || -> Result<Semantics, Box<Diagnostic>> {
            let mut reader = Reader::new(context);
            let does = reader.statements(&does)?;
            let at_63 = match at_63.as_slice() {
                [] => None,
                list => Some(reader.statements(list)?),
            };
            Ok(reader.finish(does, at_63))
        };
        read().map_err(|fault| Box::new(in_operation(*fault, operation)))
    }
}
