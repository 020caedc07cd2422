//! The operations that td declares: operations that become enums, and memories.

use super::graph::{Operation, Operations};
use crate::load::{fault, field_span, identifier, text_or_empty};
use tablegen::{Diagnostic, Record, RecordKeeper};

impl Operations {
    /// Reads the declarations.
    pub(crate) fn read(records: &RecordKeeper) -> (Operations, Vec<Diagnostic>) {
        let mut faults = Vec::new();
        let mut of = |class: &str, operands: Option<usize>| {
            let mut list: Vec<Operation> = Vec::new();
            for record in records.defs_derived_from(class) {
                match operation(record, operands) {
                    Ok(one) => {
                        if let Some(other) = list.iter().find(|o| o.variant == one.variant) {
                            let message = format!("`{}` has the name of `{}`", one.record, other.record);
                            faults.push(fault(one.span, message));
                        }
                        list.push(one);
                    }
                    Err(diagnostic) => faults.push(diagnostic),
                }
            }
            list
        };
        let operations = Operations {
            unary: of("BvUnary", Some(1)),
            binary: of("BvBinary", Some(2)),
            floats: of("FloatFunction", None),
            spaces: of("MemorySpace", Some(0)),
        };
        (operations, faults)
    }

    /// Returns the position of a record in a list.
    pub(crate) fn find(list: &[Operation], record: Record<'_>) -> Option<usize> {
        list.iter().position(|one| one.record == record.name())
    }
}

fn operation(record: Record<'_>, operands: Option<usize>) -> Result<Operation, Diagnostic> {
    let variant = record.string("Name")?.to_owned();
    identifier(&variant, field_span(record, "Name"))?;
    let operands = match operands {
        Some(operands) => operands,
        None => match record.int("Operands")? {
            count @ 1..=3 => count as usize,
            count => {
                let message = format!("`{}` has {count} operands, not 1 to 3", record.name());
                return Err(fault(field_span(record, "Operands"), message));
            }
        },
    };
    Ok(Operation {
        record: record.name().to_owned(),
        variant,
        notation: record.string("Notation")?.to_owned(),
        doc: text_or_empty(record, "Summary")?,
        compare: record.is_a("BvCompare"),
        operands,
        span: record.span(),
    })
}
