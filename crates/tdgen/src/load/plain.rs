//! Loads records that are plain rows of tables: relocations, ELF and machine constants, errata.

use super::{Loader, fault, field_span, identifier, int_in, pascal, text_or_empty};
use crate::model::{Constant, Erratum, OperandRange, RegFile, RelocFormula, Relocation, TextConstant};
use std::collections::HashSet;
use tablegen::{Diagnostic, Record, Span, ValueKind};

impl<'a> Loader<'a> {
    pub(super) fn plain(&mut self) {
        self.each("Reloc", |loader, record| {
            let relocation = relocation(record)?;
            loader.target.relocations.push(relocation);
            Ok(())
        });
        let numbers = self.target.relocations.iter().map(|r| (i64::from(r.number), r.span));
        let faults = twice("relocations", numbers);
        self.faults.extend(faults);
        self.target.relocations.sort_by_key(|r| r.number);

        self.each("ElfTarget", |loader, record| {
            loader.elf(record);
            Ok(())
        });
        self.each("Target", |loader, record| {
            for (field, name, doc) in [
                ("Name", "TARGET_NAME", "The target's name."),
                ("Triple", "TRIPLE", "The target triple in full."),
                ("DataLayout", "DATA_LAYOUT", "LLVM's data layout string."),
            ] {
                loader.target.texts.push(TextConstant {
                    name: name.to_owned(),
                    text: record.string(field)?.to_owned(),
                    doc: doc.to_owned(),
                });
            }
            Ok(())
        });
        self.each("Constant", |loader, record| {
            let mut constant = constant(record)?;
            constant.name = record.name().to_owned();
            loader.target.constants.push(constant);
            Ok(())
        });
        self.each("TrapReason", |loader, record| {
            loader.target.trap_reasons.push(constant(record)?);
            Ok(())
        });
        self.each("ThreadStatus", |loader, record| {
            loader.target.thread_statuses.push(constant(record)?);
            Ok(())
        });
        for (what, list) in [
            ("trap reasons", &self.target.trap_reasons),
            ("thread states", &self.target.thread_statuses),
        ] {
            let faults = twice(what, list.iter().map(|c| (c.value, c.span)));
            self.faults.extend(faults);
        }
        self.target.trap_reasons.sort_by_key(|c| c.value);
        self.target.thread_statuses.sort_by_key(|c| c.value);

        self.each("Erratum", |loader, record| {
            let instructions = loader.concerned_by(record)?;
            loader.target.errata.push(erratum(record, instructions)?);
            Ok(())
        });
        self.check_names();
    }

    /// Returns the instructions that an erratum concerns.
    fn concerned_by(&self, erratum: Record<'a>) -> Result<Vec<usize>, Diagnostic> {
        let operations: HashSet<&str> = erratum.list_of_defs("Operations")?.iter().map(Record::name).collect();
        let unit = erratum.opt_def("OnUnit")?;
        let on_vectors = erratum.bit("onVectorsOnly")?;
        let mut found = Vec::new();
        for (index, instruction) in self.target.instructions.iter().enumerate() {
            let Some(record) = self.records.def(&instruction.record) else {
                continue;
            };
            let is_named = record.opt_def("Op")?.is_some_and(|op| operations.contains(op.name()));
            let on_unit = unit.is_none_or(|unit| unit.name() == self.target.units[instruction.unit].record);
            let reads_vector = instruction.operands.iter().any(|operand| {
                let range = &self.target.operand_kinds[operand.kind].range;
                !operand.is_def && *range == OperandRange::Register(RegFile::Vector)
            });
            if is_named && on_unit && (reads_vector || !on_vectors) {
                found.push(index);
            }
        }
        Ok(found)
    }

    /// Checks that names that become variants or constants of one table differ.
    fn check_names(&mut self) {
        let target = &self.target;
        let constants =
            |list: &[Constant]| -> Vec<(String, Span)> { list.iter().map(|c| (pascal(&c.name), c.span)).collect() };
        let relocations = target.relocations.iter().map(|r| (r.name.clone(), r.span));
        let errata = target.errata.iter().map(|e| (pascal(&e.name), e.span));
        let tables = [
            ("relocations", relocations.collect()),
            ("errata", errata.collect()),
            ("trap reasons", constants(&target.trap_reasons)),
            ("thread states", constants(&target.thread_statuses)),
        ];
        let mut faults = Vec::new();
        for (what, names) in tables {
            let mut seen = HashSet::new();
            for (name, span) in names {
                if seen.contains(&name) {
                    faults.push(fault(span, format!("two {what} have the name `{name}`")));
                }
                seen.insert(name);
            }
        }
        self.faults.extend(faults);
    }

    /// Loads every number and text of the record, regardless of its name, so that a new field needs
    /// no change here.
    fn elf(&mut self, record: Record<'a>) {
        for field in record.fields() {
            let name = screaming(field.name());
            match field.value().kind() {
                ValueKind::Int(value) => self.target.elf.push(Constant {
                    name,
                    value,
                    doc: format!("`{}` of the td record `{}`.", field.name(), record.name()),
                    span: field.span(),
                }),
                ValueKind::String(text) => self.target.texts.push(TextConstant {
                    name,
                    text: text.to_owned(),
                    doc: format!("`{}` of the td record `{}`.", field.name(), record.name()),
                }),
                _ => {}
            }
        }
    }
}

/// Returns a fault for each repeated number.
fn twice(what: &str, numbers: impl Iterator<Item = (i64, Span)>) -> Vec<Diagnostic> {
    let mut seen = HashSet::new();
    numbers
        .filter(|(number, _)| !seen.insert(*number))
        .map(|(number, span)| fault(span, format!("two {what} have the number {number}")))
        .collect()
}

fn relocation(record: Record<'_>) -> Result<Relocation, Diagnostic> {
    let lsb = int_in(record, "FieldLow", 0..=31)? as u8;
    let width = int_in(record, "FieldWidth", 0..=32)? as u8;
    if lsb + width > 32 {
        return Err(fault(
            field_span(record, "FieldWidth"),
            format!("the field of `{}` goes beyond bit 31", record.name()),
        ));
    }
    let formula = record.def_field("Formula")?.string("Name")?;
    let formula = match formula {
        "none" => RelocFormula::None,
        "abs" => RelocFormula::Abs,
        "pc" => RelocFormula::Pc,
        "abs_high" => RelocFormula::AbsHigh,
        "abs_low" => RelocFormula::AbsLow,
        other => {
            return Err(fault(
                field_span(record, "Formula"),
                format!("`{other}` is not a relocation formula"),
            ));
        }
    };
    let signed = match record.def_field("Check")?.string("Name")? {
        "none" => false,
        "signed" => true,
        other => {
            return Err(fault(
                field_span(record, "Check"),
                format!("`{other}` is not a relocation check"),
            ));
        }
    };
    identifier(record.string("Name")?, field_span(record, "Name"))?;
    Ok(Relocation {
        name: record.string("Name")?.to_owned(),
        number: int_in(record, "Number", 0..=255)? as u8,
        formula,
        lsb,
        width,
        signed,
        span: record.span(),
    })
}

fn constant(record: Record<'_>) -> Result<Constant, Diagnostic> {
    let named = text_or_empty(record, "Name")?;
    identifier(record.name(), record.span())?;
    if !named.is_empty() {
        identifier(&pascal(&named), field_span(record, "Name"))?;
    }
    Ok(Constant {
        name: if named.is_empty() {
            record.name().to_owned()
        } else {
            named
        },
        value: int_in(record, "Value", 0..=0xFFFF_FFFF)?,
        doc: text_or_empty(record, "Summary")?,
        span: record.span(),
    })
}

fn erratum(record: Record<'_>, instructions: Vec<usize>) -> Result<Erratum, Diagnostic> {
    let text = |field: &str| -> Result<String, Diagnostic> {
        let text = record.string(field)?;
        if text.is_empty() {
            return Err(fault(
                record.span(),
                format!("erratum `{}` has an empty `{field}`", record.name()),
            ));
        }
        Ok(text.to_owned())
    };
    identifier(record.string("Name")?, field_span(record, "Name"))?;
    Ok(Erratum {
        record: record.name().to_owned(),
        name: text("Name")?,
        summary: text("Summary")?,
        effect: text("Effect")?,
        workaround: text("WorkAround")?,
        is_setting: record.bit("isSetting")?,
        reference: text("Reference")?,
        instructions,
        span: record.span(),
    })
}

/// Converts `TextAlign` to `TEXT_ALIGN`.
fn screaming(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_uppercase());
    }
    out
}
