//! Loads operand classes and the operands of instructions; splits compound operands into parts.

use super::registers::file_of;
use super::{Loader, also, fault, field_span, identifier, int_in, pascal};
use crate::model::{OperandKind, OperandRange};
use tablegen::{Diagnostic, Record, Span, Value, ValueKind};

/// An operand as written in `OutOperandList` or `InOperandList`.
pub(super) struct Listed<'a> {
    /// The name without `$`.
    pub(super) name: String,
    /// The class.
    pub(super) class: Record<'a>,
    /// The names of the sub-operands of a compound operand, if there are any.
    pub(super) sub_names: Option<Vec<Option<String>>>,
    /// Whether it is in `OutOperandList`.
    pub(super) is_def: bool,
    /// Its location.
    pub(super) span: Span,
}

/// One encoded part: a simple operand, or a sub-operand of a compound one.
#[derive(Debug)]
pub(super) struct Part {
    /// The name of its field.
    pub(super) name: String,
    /// Index into `Target::operand_kinds`.
    pub(super) kind: usize,
    /// Whether it is written.
    pub(super) is_def: bool,
    /// Its location.
    pub(super) span: Span,
}

/// Names and texts of an instruction's compound operands.
pub(super) struct Compound {
    /// The name in the operand list.
    pub(super) name: String,
    /// The sub-operand names of the class, each with the name in this instruction.
    pub(super) renamed: Vec<(String, String)>,
    /// Its assembly text, with the names of the class.
    pub(super) format: String,
    /// The operand class.
    pub(super) class: String,
    /// The location of its text.
    pub(super) span: Span,
}

impl<'a> Loader<'a> {
    /// Returns the operands of an `(outs ...)` or `(ins ...)` dag.
    pub(super) fn listed(&self, record: Record<'a>, field: &str, is_def: bool) -> Result<Vec<Listed<'a>>, Diagnostic> {
        let dag = record.dag(field)?;
        let span = field_span(record, field);
        let mut operands = Vec::new();
        for (value, name) in dag.args() {
            let (class, sub_names) = match value.kind() {
                ValueKind::Def(class) => (Some(class), None),
                // `(MEMri $base, $off):$addr` names the sub-operands.
                ValueKind::Dag(inner) => {
                    let names = inner.args().into_iter().map(|(_, n)| n.map(str::to_owned));
                    (inner.operator_def(), Some(names.collect()))
                }
                _ => (None, None),
            };
            let class = class.ok_or_else(|| {
                fault(
                    span,
                    format!("`{field}` of `{}`: an operand class is expected", record.name()),
                )
            })?;
            if class.name() == "variable_ops" {
                continue;
            }
            let name = name.ok_or_else(|| {
                fault(
                    span,
                    format!(
                        "`{field}` of `{}`: the operand of class `{}` has no name",
                        record.name(),
                        class.name()
                    ),
                )
            })?;
            operands.push(Listed {
                name: name.to_owned(),
                class,
                sub_names,
                is_def,
                span,
            });
        }
        Ok(operands)
    }

    /// Returns the encoded parts of an operand, and the compound operand if there are several
    /// parts.
    pub(super) fn parts(&mut self, operand: &Listed<'a>) -> Result<(Vec<Part>, Option<Compound>), Diagnostic> {
        let class = operand.class;
        if !class.is_a("Operand") {
            let kind = self.operand_kind(class, operand.span)?;
            return Ok((vec![part(operand, &operand.name, kind)], None));
        }
        let subs = class.dag("MIOperandInfo")?.args();
        if subs.is_empty() {
            let kind = self.operand_kind(class, operand.span)?;
            return Ok((vec![part(operand, &operand.name, kind)], None));
        }
        let given = operand.sub_names.as_deref().unwrap_or(&[]);
        if operand.sub_names.is_some() && given.len() != subs.len() {
            return Err(fault(
                operand.span,
                format!(
                    "`{}` has {} sub-operands, but names are given for {}",
                    class.name(),
                    subs.len(),
                    given.len()
                ),
            ));
        }
        let mut parts = Vec::new();
        let mut renamed = Vec::new();
        for (i, (value, name)) in subs.into_iter().enumerate() {
            let span = field_span(class, "MIOperandInfo");
            let (Some(sub), Some(name)) = (def_of(value), name) else {
                return Err(fault(
                    span,
                    format!(
                        "`MIOperandInfo` of `{}`: every sub-operand needs a class and a name",
                        class.name()
                    ),
                ));
            };
            let kind = self.operand_kind(sub, span)?;
            let own = given.get(i).cloned().flatten().unwrap_or_else(|| name.to_owned());
            renamed.push((name.to_owned(), own.clone()));
            // The registers of an address are read, in outputs too.
            parts.push(Part {
                name: own,
                kind,
                is_def: false,
                span: operand.span,
            });
        }
        let compound = Compound {
            name: operand.name.clone(),
            renamed,
            format: class.string("AsmFormat")?.to_owned(),
            class: class.name().to_owned(),
            span: field_span(class, "AsmFormat"),
        };
        Ok((parts, Some(compound)))
    }

    /// Returns the kind of a register class or simple operand class; creates it at the first use.
    fn operand_kind(&mut self, class: Record<'a>, used_at: Span) -> Result<usize, Diagnostic> {
        if let Some(&index) = self.kind_index.get(class.name()) {
            return Ok(index);
        }
        let (name, range) = if class.is_a("RegisterClass") {
            let file = file_of(class)?;
            let name = match file {
                crate::model::RegFile::Scalar => "Gpr",
                crate::model::RegFile::Vector => "Vec",
            };
            (name.to_owned(), OperandRange::Register(file))
        } else if class.is_a("Operand") {
            (pascal(class.name()), immediate(class)?)
        } else {
            return Err(fault(
                used_at,
                format!(
                    "`{}` is not an operand class: it is neither a `RegisterClass` nor an `Operand`",
                    class.name()
                ),
            ));
        };
        // All classes of a register file share one kind: the field is the same.
        let same = self.target.operand_kinds.iter().position(|k| k.name == name);
        if let Some(same) = same {
            if self.target.operand_kinds[same].range != range {
                return Err(also(
                    fault(class.span(), format!("two operand classes have the name `{name}`")),
                    self.target.operand_kinds[same].span,
                    "the other one",
                ));
            }
            self.kind_index.insert(class.name().to_owned(), same);
            return Ok(same);
        }
        identifier(&name, class.span())?;
        let index = self.target.operand_kinds.len();
        self.target.operand_kinds.push(OperandKind {
            name,
            record: class.name().to_owned(),
            range,
            span: class.span(),
        });
        self.kind_index.insert(class.name().to_owned(), index);
        Ok(index)
    }
}

fn part(operand: &Listed<'_>, name: &str, kind: usize) -> Part {
    Part {
        name: name.to_owned(),
        kind,
        is_def: operand.is_def,
        span: operand.span,
    }
}

pub(super) fn def_of(value: Value<'_>) -> Option<Record<'_>> {
    match value.kind() {
        ValueKind::Def(record) => Some(record),
        _ => None,
    }
}

fn immediate(class: Record<'_>) -> Result<OperandRange, Diagnostic> {
    let bits = int_in(class, "SignificantBits", 1..=32)? as u32;
    let all = i64::from(i32::MIN)..=i64::from(i32::MAX);
    let min = int_in(class, "MinValue", all.clone())?;
    let max = int_in(class, "MaxValue", all)?;
    let smallest = -(1i64 << (bits - 1));
    let largest = (1i64 << bits) - 1;
    if min > max || min < smallest || max > largest {
        return Err(fault(
            field_span(class, "MinValue"),
            format!(
                "operand class `{}`: {min}..={max} is not a range of {bits}-bit numbers",
                class.name()
            ),
        ));
    }
    Ok(OperandRange::Immediate {
        min: min as i32,
        max: max as i32,
        bits,
        signed: class.bit("DecodeSigned")?,
        field_bits: int_in(class, "FieldBits", i64::from(bits)..=32)? as u32,
    })
}
