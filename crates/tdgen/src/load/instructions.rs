//! Loads `Instruction` records: operands, encoding, text, properties. Then checks that the decoder
//! can tell all instructions apart.

use super::asm::pieces;
use super::encoding::encoding;
use super::operands::{Compound, Listed, Part};
use super::{Loader, also, fault, field_span, identifier, in_record, int_in};
use crate::isle::place;
use crate::model::{Flags, Instruction, Operand};
use crate::semantics::graph::Semantics;
use crate::tree::Candidate;
use std::collections::HashSet;
use tablegen::{Diagnostic, Record};

impl<'a> Loader<'a> {
    /// Loads all records with an encoding. An `Instruction` without `Inst` is a pseudo-instruction
    /// of the compiler.
    pub(super) fn instructions(&mut self) {
        for record in self.records.defs_derived_from("Instruction") {
            if record.field("Inst").is_none() {
                continue;
            }
            match self.instruction(record) {
                Ok(instruction) => {
                    self.instruction_index
                        .insert(record.name().to_owned(), self.target.instructions.len());
                    self.target.instructions.push(instruction);
                }
                Err(faults) => {
                    let faults = faults.into_iter().map(|fault| in_record(fault, record));
                    self.faults.extend(faults);
                }
            }
        }
        self.check_overlaps();
    }

    fn instruction(&mut self, record: Record<'a>) -> Result<Instruction, Vec<Diagnostic>> {
        let one = |diagnostic: Diagnostic| vec![diagnostic];
        let mut listed = self.listed(record, "OutOperandList", true).map_err(one)?;
        listed.extend(self.listed(record, "InOperandList", false).map_err(one)?);
        let tied = tied_inputs(record, &listed).map_err(one)?;
        listed.retain(|operand| !tied.contains(&operand.name));

        let mut parts: Vec<Part> = Vec::new();
        let mut compounds: Vec<Compound> = Vec::new();
        for operand in &listed {
            let (more, compound) = self.parts(operand).map_err(one)?;
            for part in more {
                if parts.iter().any(|p| p.name == part.name) {
                    return Err(one(fault(
                        part.span,
                        format!("`{}` has two operands named `${}`", record.name(), part.name),
                    )));
                }
                parts.push(part);
            }
            compounds.extend(compound);
        }
        let encoding = encoding(record, &parts, &self.target.operand_kinds)?;
        self.finish(record, parts, &compounds, encoding, !tied.is_empty())
            .map_err(one)
    }

    fn finish(
        &self,
        record: Record<'a>,
        parts: Vec<Part>,
        compounds: &[Compound],
        encoding: super::encoding::Encoding,
        reads_dst: bool,
    ) -> Result<Instruction, Diagnostic> {
        identifier(record.name(), record.span())?;
        let asm = record.string("AsmString")?.to_owned();
        let pieces = pieces(record, &asm, &parts, compounds)?;
        let mnemonic = asm.split_whitespace().next().unwrap_or_default().to_owned();
        if mnemonic.is_empty() || mnemonic.contains('$') {
            return Err(fault(
                field_span(record, "AsmString"),
                format!("`AsmString` of `{}` does not begin with a mnemonic", record.name()),
            ));
        }
        let fp_slot = match record.opt_def("Op")? {
            Some(op) => u8::try_from(int_in(op, "FpSlot", -1..=255)?).ok(),
            None => None,
        };
        let registers = |field: &str| -> Result<Vec<usize>, Diagnostic> {
            self.register_list(&record.list_of_defs(field)?, field_span(record, field))
        };
        let operands = parts.into_iter().zip(encoding.runs);
        Ok(Instruction {
            record: record.name().to_owned(),
            place: place(self.parsed, record),
            mnemonic,
            asm,
            format: Self::index(
                &self.format_index,
                "instruction format",
                record.def_field("Format")?,
                field_span(record, "Format"),
            )?,
            operands: operands
                .map(|(part, runs)| Operand {
                    name: part.name,
                    kind: part.kind,
                    is_def: part.is_def,
                    runs,
                })
                .collect(),
            pieces,
            reads_dst,
            uses: registers("Uses")?,
            defs: registers("Defs")?,
            masked: record.bit("isMasked")?,
            scratchpad: record.bit("isScratchpad")?,
            unit: Self::index(
                &self.unit_index,
                "unit",
                record.def_field("Unit")?,
                field_span(record, "Unit"),
            )?,
            latency: int_in(record, "Latency", 0..=255)? as u8,
            fp_slot,
            flags: flags(record)?,
            base: encoding.base,
            fixed: encoding.fixed,
            ignored: encoding.ignored,
            decodable: !record.bit("isCodeGenOnly")? && !record.bit("isAsmParserOnly")?,
            span: record.span(),
            inst_span: field_span(record, "Inst"),
            semantics: Semantics::default(),
        })
    }

    /// Checks that any two decodable instructions differ in a bit that is constant in both.
    fn check_overlaps(&mut self) {
        let decodable: Vec<&Instruction> = self.target.instructions.iter().filter(|i| i.decodable).collect();
        let candidate = |i: &Instruction| Candidate {
            base: i.base & i.fixed,
            fixed: i.fixed,
            id: 0,
        };
        let mut faults = Vec::new();
        for (n, a) in decodable.iter().enumerate() {
            for b in &decodable[n + 1..] {
                if !candidate(a).overlaps(&candidate(b)) {
                    continue;
                }
                let what = if a.fixed == b.fixed {
                    "have the same constant bits"
                } else {
                    "have encodings in common"
                };
                let word = (a.base & a.fixed) | (b.base & b.fixed);
                let mut d = fault(
                    b.span,
                    format!("`{}` and `{}` {what}, for example {word:08x}", a.record, b.record),
                );
                d = also(d, a.span, format!("`{}` is defined here", a.record));
                d.notes.push(
                    "mark the one that the disassembler should not show `isAsmParserOnly` or `isCodeGenOnly`"
                        .to_owned(),
                );
                faults.push(d);
            }
        }
        self.faults.extend(faults);
    }
}

/// Returns the inputs that `Constraints` ties to an output; they have no separate field.
fn tied_inputs(record: Record<'_>, listed: &[Listed<'_>]) -> Result<HashSet<String>, Diagnostic> {
    let text = record.string("Constraints")?;
    let span = field_span(record, "Constraints");
    let mut tied = HashSet::new();
    for constraint in text.split(',').map(str::trim).filter(|c| !c.is_empty()) {
        let Some((left, right)) = constraint.split_once('=') else {
            return Err(fault(
                span,
                format!(
                    "constraint `{constraint}` of `{}` is not of the form `$output = $input`",
                    record.name()
                ),
            ));
        };
        let operand = |text: &str| {
            let name = text.trim().strip_prefix('$');
            let found = name.and_then(|name| listed.iter().find(|o| o.name == name));
            found.ok_or_else(|| {
                fault(
                    span,
                    format!(
                        "constraint `{constraint}` of `{}`: `{}` is not an operand of the instruction",
                        record.name(),
                        text.trim()
                    ),
                )
            })
        };
        let (a, b) = (operand(left)?, operand(right)?);
        let input = match (a.is_def, b.is_def) {
            (true, false) => b,
            (false, true) => a,
            _ => {
                return Err(fault(
                    span,
                    format!(
                        "constraint `{constraint}` of `{}` has to tie an output to an input",
                        record.name()
                    ),
                ));
            }
        };
        if a.class.name() != b.class.name() {
            return Err(fault(
                span,
                format!(
                    "constraint `{constraint}` of `{}` ties operands of class `{}` and `{}`",
                    record.name(),
                    a.class.name(),
                    b.class.name()
                ),
            ));
        }
        tied.insert(input.name.clone());
    }
    Ok(tied)
}

fn flags(record: Record<'_>) -> Result<Flags, Diagnostic> {
    let bit = |field: &str| -> Result<bool, Diagnostic> { Ok(record.bit(field)?) };
    Ok(Flags {
        branch: bit("isBranch")?,
        terminator: bit("isTerminator")?,
        barrier: bit("isBarrier")?,
        call: bit("isCall")?,
        ret: bit("isReturn")?,
        indirect: bit("isIndirectBranch")?,
        load: bit("mayLoad")?,
        store: bit("mayStore")?,
        side_effects: bit("hasSideEffects")?,
        commutable: bit("isCommutable")?,
        compare: bit("isCompare")?,
        move_reg: bit("isMoveReg")?,
    })
}
