//! Loads registers and register classes.

use super::{Loader, constant_bits, fault, field_span, identifier, int_in};
use crate::model::{RegFile, Register, RegisterClass};
use std::collections::{HashMap, HashSet};
use tablegen::{Diagnostic, Record};

impl<'a> Loader<'a> {
    /// Loads registers through the member lists of register classes, because the class determines
    /// the file.
    pub(super) fn registers(&mut self) {
        let mut dwarf_of: HashMap<u16, String> = HashMap::new();
        for class in self.records.defs_derived_from("RegisterClass") {
            let Some(file) = self.note(file_of(class)) else {
                continue;
            };
            let Some(members) = self.note(class.list_of_defs("MemberList")) else {
                continue;
            };
            for record in members {
                if self.register_index.contains_key(record.name()) {
                    continue;
                }
                match register(record, file) {
                    Ok(register) => {
                        if let Some(other) = dwarf_of.insert(register.dwarf, register.record.clone()) {
                            self.fault(
                                register.span,
                                format!(
                                    "`{}` has the DWARF number {} of `{other}`",
                                    register.record, register.dwarf
                                ),
                            );
                        }
                        self.target.registers.push(register);
                        self.register_index.insert(record.name().to_owned(), usize::MAX);
                    }
                    Err(diagnostic) => self.faults.push(diagnostic),
                }
            }
        }
        for record in self.records.defs_derived_from("Register") {
            if !self.register_index.contains_key(record.name()) {
                self.fault(
                    record.span(),
                    format!("register `{}` is in no register class", record.name()),
                );
            }
        }
        self.target.registers.sort_by_key(|r| (r.file, r.number));
        for (i, r) in self.target.registers.iter().enumerate() {
            self.register_index.insert(r.record.clone(), i);
        }
        self.check_register_numbers();
    }

    /// Checks that the numbers in each file are 0, 1, 2, ..., because they index the tables, and
    /// that names are unique.
    fn check_register_numbers(&mut self) {
        let mut faults = Vec::new();
        let mut names = HashSet::new();
        for file in [RegFile::Scalar, RegFile::Vector] {
            let registers = self.target.registers.iter().filter(|r| r.file == file);
            for (expected, r) in registers.enumerate() {
                if usize::from(r.number) != expected {
                    faults.push(fault(
                        r.span,
                        format!(
                            "`{}` has encoding {} where {expected} is next in its file; encodings must be \
                             unique and without gaps",
                            r.record, r.number
                        ),
                    ));
                    break;
                }
                if !names.insert(r.asm_name.as_str()) {
                    faults.push(fault(r.span, format!("two registers have the name `{}`", r.asm_name)));
                }
            }
        }
        self.faults.extend(faults);
    }

    pub(super) fn register_classes(&mut self) {
        self.each("RegisterClass", |loader, record| {
            let class = loader.register_class(record)?;
            loader.target.classes.push(class);
            Ok(())
        });
    }

    fn register_class(&self, record: Record<'a>) -> Result<RegisterClass, Diagnostic> {
        let list = |field: &str| -> Result<Vec<usize>, Diagnostic> {
            let registers = record.list_of_defs(field)?;
            self.register_list(&registers, field_span(record, field))
        };
        let all = list("MemberList")?;
        let members = list("AllocationOrder")?;
        let reserved = list("Reserved")?;
        let mut covered: Vec<usize> = members.iter().chain(&reserved).copied().collect();
        covered.sort_unstable();
        let mut expected = all;
        expected.sort_unstable();
        if covered != expected {
            return Err(fault(
                field_span(record, "AllocationOrder"),
                format!(
                    "`AllocationOrder` and `Reserved` of `{}` together have to be `MemberList`, each register \
                     once",
                    record.name()
                ),
            ));
        }
        identifier(record.name(), record.span())?;
        Ok(RegisterClass {
            record: record.name().to_owned(),
            file: file_of(record)?,
            members,
            reserved,
            spill_size: int_in(record, "SpillSize", 1..=4096)? as u32,
            spill_align: int_in(record, "SpillAlignment", 1..=4096)? as u32,
            span: record.span(),
        })
    }
}

fn register(record: Record<'_>, file: RegFile) -> Result<Register, Diagnostic> {
    let number = constant_bits(record, "HWEncoding")?;
    let number = u8::try_from(number).map_err(|_| {
        fault(
            field_span(record, "HWEncoding"),
            format!("encoding {number} of `{}` is above 255", record.name()),
        )
    })?;
    identifier(record.string("AsmName")?, field_span(record, "AsmName"))?;
    Ok(Register {
        record: record.name().to_owned(),
        asm_name: record.string("AsmName")?.to_owned(),
        file,
        number,
        dwarf: int_in(record, "DwarfNumber", 0..=0xFFFF)? as u16,
        span: record.span(),
    })
}

/// Returns the file of a register class, by its letter in instruction shapes.
pub(crate) fn file_of(class: Record<'_>) -> Result<RegFile, Diagnostic> {
    match class.string("Shape")? {
        "s" => Ok(RegFile::Scalar),
        "v" => Ok(RegFile::Vector),
        other => Err(fault(
            field_span(class, "Shape"),
            format!(
                "register class `{}` has shape `{other}`; known are `s` (scalar) and `v` (vector)",
                class.name()
            ),
        )),
    }
}
