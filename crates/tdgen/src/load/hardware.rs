//! Loads instruction formats, execution units, and the hardware's decoding of words and opcodes.

use super::{Loader, constant_bits, fault, field_span, identifier, int_in, pascal, text_or_empty};
use crate::model::{HwField, HwFieldKind, HwFormat, HwOp, HwOpTable, Named};
use std::collections::HashMap;
use tablegen::{BitValue, Diagnostic, Record};

impl<'a> Loader<'a> {
    pub(super) fn formats_and_units(&mut self) {
        self.target.formats = self.named("InstFormat");
        self.format_index = index(&self.target.formats);
        self.target.units = self.named("HwUnit");
        self.unit_index = index(&self.target.units);
        self.target.statuses = self.named("HwStatus");
    }

    fn named(&mut self, class: &str) -> Vec<Named> {
        let mut out: Vec<Named> = Vec::new();
        self.each(class, |loader, record| {
            let name = record.string("Name")?.to_owned();
            identifier(&pascal(&name), field_span(record, "Name"))?;
            if out.iter().any(|o| pascal(&o.name) == pascal(&name)) {
                loader.fault(record.span(), format!("two records have the name `{name}`"));
            }
            out.push(Named {
                name,
                record: record.name().to_owned(),
                doc: text_or_empty(record, "Summary")?,
                span: record.span(),
            });
            Ok(())
        });
        out
    }

    /// Loads the layouts and the tables of their opcodes.
    pub(super) fn hardware(&mut self) {
        let statuses = index(&self.target.statuses);
        // For each format its opcode table and its largest code.
        let mut table_of: HashMap<String, (usize, u8)> = HashMap::new();
        self.each("HwLayout", |loader, record| {
            let mut layout = layout(record)?;
            let op_name = record.string("OpName")?;
            identifier(op_name, field_span(record, "OpName"))?;
            let Some(op) = layout.fields.iter_mut().find(|f| f.name == "op") else {
                return Err(fault(record.span(), format!("`{}` has no field `op`", record.name())));
            };
            op.kind = HwFieldKind::Operation;
            let largest = ((1u16 << op.width.min(8)) - 1) as u8;
            let tables = &mut loader.target.hw_ops;
            layout.ops = tables
                .iter()
                .position(|table| table.name == op_name)
                .unwrap_or(tables.len());
            if layout.ops == tables.len() {
                table_of.insert(record.def_field("Format")?.name().to_owned(), (layout.ops, largest));
                tables.push(HwOpTable {
                    name: op_name.to_owned(),
                    ops: Vec::new(),
                });
            }
            loader.target.hw_formats.push(layout);
            Ok(())
        });
        self.each("HwOp", |loader, record| {
            let format = record.def_field("Format")?;
            let Some(&(table, largest)) = table_of.get(format.name()) else {
                return Err(fault(
                    field_span(record, "Format"),
                    format!(
                        "no `HwLayout` with operations has the format `{}` of `{}`",
                        format.name(),
                        record.name()
                    ),
                ));
            };
            let op = hw_op(record, &loader.unit_index, &statuses, largest)?;
            let ops = &mut loader.target.hw_ops[table].ops;
            if let Some(other) = ops.iter().find(|o| o.code == op.code || o.variant == op.variant) {
                let message = format!(
                    "`{}` has the code or the name of `{}` in the same format",
                    op.record, other.record
                );
                return Err(super::also(fault(op.span, message), other.span, "the other one"));
            }
            ops.push(op);
            Ok(())
        });
        for table in &mut self.target.hw_ops {
            table.ops.sort_by_key(|op| op.code);
        }
    }
}

fn index(named: &[Named]) -> HashMap<String, usize> {
    named.iter().enumerate().map(|(i, n)| (n.record.clone(), i)).collect()
}

fn hw_op(
    record: Record<'_>,
    units: &HashMap<String, usize>,
    statuses: &HashMap<String, usize>,
    largest: u8,
) -> Result<HwOp, Diagnostic> {
    let name = record.string("Name")?.to_owned();
    let code = constant_bits(record, "Code")?;
    if code > u32::from(largest) {
        return Err(fault(
            field_span(record, "Code"),
            format!(
                "code {code} of `{}` is above {largest}, the largest of its format",
                record.name()
            ),
        ));
    }
    let def = |field: &str, what: &str, index: &HashMap<String, usize>| {
        let value = record.def_field(field)?;
        Loader::index(index, what, value, field_span(record, field))
    };
    let byte = |field: &str| -> Result<u8, Diagnostic> { Ok(int_in(record, field, 0..=255)? as u8) };
    identifier(&pascal(&name), field_span(record, "Name"))?;
    Ok(HwOp {
        record: record.name().to_owned(),
        variant: pascal(&name),
        name,
        code: code as u8,
        unit: def("Unit", "unit", units)?,
        latency: byte("Latency")?,
        fp_slot: u8::try_from(int_in(record, "FpSlot", -1..=255)?).ok(),
        status: def("Status", "status", statuses)?,
        scratchpad_status: def("ScratchpadStatus", "status", statuses)?,
        scratchpad_latency: byte("ScratchpadLatency")?,
        access_bytes: byte("AccessBytes")?,
        alignment: byte("Alignment")?,
        span: record.span(),
    })
}

/// Reads the fields of a layout from its `Inst` bits.
fn layout(record: Record<'_>) -> Result<HwFormat, Diagnostic> {
    let span = field_span(record, "Inst");
    let signed = record.list_of_strings("SignedFields")?;
    let mut format = HwFormat {
        record: record.name().to_owned(),
        variant: record.string("Name")?.to_owned(),
        doc: text_or_empty(record, "Summary")?,
        ops: 0,
        base: 0,
        fixed: 0,
        fields: Vec::new(),
        span: record.span(),
    };
    let bits = record.bits("Inst")?;
    if bits.len() != 32 {
        return Err(fault(span, format!("`Inst` has {} bits, not 32", bits.len())));
    }
    for (i, bit) in bits.iter().enumerate() {
        match bit {
            BitValue::Zero => format.fixed |= 1 << i,
            BitValue::One => {
                format.fixed |= 1 << i;
                format.base |= 1 << i;
            }
            BitValue::Unset => {}
            BitValue::Field { field, index } => match format.fields.iter_mut().find(|f| f.name == *field) {
                Some(f) if *index == u32::from(f.width) && i == usize::from(f.lsb + f.width) => {
                    f.width += 1;
                }
                None if *index == 0 => format.fields.push(HwField {
                    name: (*field).to_owned(),
                    lsb: i as u8,
                    width: 1,
                    kind: HwFieldKind::Number {
                        signed: signed.iter().any(|s| s == field),
                    },
                }),
                _ => {
                    return Err(fault(
                        span,
                        format!(
                            "field `{field}` of `{}` is not one run of bits of `Inst` in order",
                            record.name()
                        ),
                    ));
                }
            },
        }
    }
    format.fields.reverse();
    registers(record, &mut format)?;
    identifier(&format.variant, field_span(record, "Name"))?;
    for f in &format.fields {
        identifier(&f.name, field_span(record, &f.name))?;
    }
    if let Some(name) = signed.iter().find(|s| !format.fields.iter().any(|f| f.name == **s)) {
        return Err(no_field(record, "SignedFields", name));
    }
    Ok(format)
}

/// Sets the kinds of register fields and of the bits that select their register files.
fn registers(record: Record<'_>, format: &mut HwFormat) -> Result<(), Diagnostic> {
    for name in record.list_of_strings("RegisterFields")? {
        let mut kind = HwFieldKind::Scalar;
        let file = format!("{name}_v");
        if let Some(file) = format.fields.iter_mut().find(|f| f.name == file && f.width == 1) {
            file.kind = HwFieldKind::File;
            kind = HwFieldKind::Register { vector: file.lsb };
        }
        match format.fields.iter_mut().find(|f| f.name == name && f.width <= 8) {
            Some(field) => field.kind = kind,
            None => return Err(no_field(record, "RegisterFields", name)),
        }
    }
    Ok(())
}

fn no_field(record: Record<'_>, list: &str, name: &str) -> Diagnostic {
    let message = format!("`{}` has no such field `{name}`", record.name());
    fault(field_span(record, list), message)
}
