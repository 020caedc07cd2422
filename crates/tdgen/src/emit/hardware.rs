//! The hardware's view: word layouts and opcode numbers.

use super::{decoder, line, named_enum, variants};
use crate::load::pascal;
use crate::model::{HwField, HwOpTable, Target};
use crate::tree::{self, Candidate};

pub(super) fn emit(target: &Target, out: &mut String) {
    let statuses = variants(&target.statuses);
    named_enum(
        out,
        "How well the hardware does what an operation's name says.",
        "HwStatus",
        &statuses,
    );
    for table in &target.hw_ops {
        op_enum(target, table, out);
    }
    layouts(target, out);
}

fn op_enum(target: &Target, table: &HwOpTable, out: &mut String) {
    let name = &table.name;
    line!(
        out,
        "\n/// Hardware operations, from td's `HwOp` records; the discriminant is the opcode field."
    );
    line!(
        out,
        "#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]"
    );
    line!(out, "#[repr(u8)]");
    line!(out, "pub enum {name} {{");
    for op in &table.ops {
        line!(out, "    /// `{}`, the td record `{}`.", op.name, op.record);
        line!(out, "    {} = {},", op.variant, op.code);
    }
    line!(out, "}}");
    let status = |i: usize| pascal(&target.statuses[i].name);
    line!(out, "impl {name} {{");
    line!(out, "    /// All of them by code.");
    line!(out, "    pub const ALL: &'static [{name}] = &[");
    for op in &table.ops {
        line!(out, "        {name}::{},", op.variant);
    }
    line!(out, "    ];");
    line!(out, "    const INFO: &'static [HwOpInfo] = &[");
    for op in &table.ops {
        line!(
            out,
            "        HwOpInfo {{ name: {:?}, unit: Unit::{}, latency: {}, fp_slot: {:?}, status: HwStatus::{}, \
             scratchpad_status: HwStatus::{}, scratchpad_latency: {}, access_bytes: {}, alignment: {} }},",
            op.name,
            pascal(&target.units[op.unit].name.to_lowercase()),
            op.latency,
            op.fp_slot,
            status(op.status),
            status(op.scratchpad_status),
            op.scratchpad_latency,
            op.access_bytes,
            op.alignment
        );
    }
    line!(out, "    ];");
    line!(
        out,
        "    /// The operation with this number, or `None` where the hardware has none."
    );
    line!(out, "    pub const fn from_code(code: u8) -> Option<{name}> {{");
    line!(out, "        Some(match code {{");
    for op in &table.ops {
        line!(out, "            {} => {name}::{},", op.code, op.variant);
    }
    line!(out, "            _ => return None,");
    line!(out, "        }})\n    }}");
    line!(out, "    /// The number in the opcode field.");
    line!(out, "    pub const fn code(self) -> u8 {{ self as u8 }}");
    line!(out, "    /// What td says about the operation.");
    line!(out, "    pub const fn info(self) -> &'static HwOpInfo {{");
    line!(out, "        let index = match self {{");
    for (i, op) in table.ops.iter().enumerate() {
        line!(out, "            {name}::{} => {i},", op.variant);
    }
    line!(out, "        }};\n        &Self::INFO[index]\n    }}");
    line!(out, "    /// The hardware's name.");
    line!(
        out,
        "    pub const fn name(self) -> &'static str {{ self.info().name }}"
    );
    line!(
        out,
        "    /// The execution unit; for a memory operation that of main memory."
    );
    line!(out, "    pub const fn unit(self) -> Unit {{ self.info().unit }}");
    line!(
        out,
        "    /// Cycles from issue to the issue of a dependent instruction; 0 without a result."
    );
    line!(out, "    pub const fn latency(self) -> u8 {{ self.info().latency }}");
    line!(out, "}}");
}

fn layouts(target: &Target, out: &mut String) {
    line!(
        out,
        "\n/// A word as the hardware splits it, from td's `HwLayout` records. Numbers are as in the word; nothing"
    );
    line!(out, "/// is checked.");
    line!(out, "#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]");
    line!(out, "pub enum RawInst {{");
    for layout in &target.hw_formats {
        line!(out, "    /// {}", layout.doc);
        line!(out, "    {} {{", layout.variant);
        for f in &layout.fields {
            let bits = match f.width {
                1 => format!("Bit {}.", f.lsb),
                _ => format!("Bits {}-{}.", f.lsb + f.width - 1, f.lsb),
            };
            let sign = if f.signed { " Sign-extended." } else { "" };
            line!(out, "        /// {bits}{sign}");
            line!(out, "        {}: {},", f.name, field_type(f));
        }
        line!(out, "    }},");
    }
    line!(out, "    /// No layout: the hardware drops the word at decode.");
    line!(out, "    Undefined,");
    line!(out, "}}");
    let candidates: Vec<Candidate> = target
        .hw_formats
        .iter()
        .enumerate()
        .map(|(id, l)| Candidate {
            base: l.base,
            fixed: l.fixed,
            id,
        })
        .collect();
    line!(out, "\n/// Splits a word as the hardware does. Never fails.");
    line!(out, "#[inline]");
    line!(out, "pub const fn split(word: u32) -> RawInst {{");
    let leaf = |id: usize| {
        let layout = &target.hw_formats[id];
        let fields: Vec<String> = layout
            .fields
            .iter()
            .map(|f| format!("{}: {}", f.name, field_value(f)))
            .collect();
        format!("RawInst::{} {{ {} }}", layout.variant, fields.join(", "))
    };
    decoder::node(out, &tree::build(&candidates), 1, &leaf, "RawInst::Undefined");
    line!(out, "}}");
}

fn field_type(f: &HwField) -> &'static str {
    match (f.signed, f.width) {
        (true, _) => "i32",
        (false, 1) => "bool",
        (false, 2..=8) => "u8",
        (false, _) => "u32",
    }
}

fn field_value(f: &HwField) -> String {
    let (lsb, width) = (u32::from(f.lsb), u32::from(f.width));
    if f.signed {
        // Through a signed shift: the field's top bit to bit 31 and back.
        let up = match 32 - lsb - width {
            0 => "word".to_owned(),
            up => format!("(word << {up})"),
        };
        return format!("({up} as i32) >> {}", 32 - width);
    }
    let value = decoder::field(lsb, width);
    match field_type(f) {
        "bool" => format!("{value} != 0"),
        "u8" => format!("({value}) as u8"),
        _ => value,
    }
}
