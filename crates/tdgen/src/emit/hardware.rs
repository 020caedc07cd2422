//! Generates the hardware's operations and the type of instructions as the hardware decodes them.

use super::{decoder, line, named_enum, variants};
use crate::load::pascal;
use crate::model::{HwField, HwFieldKind, HwFormat, HwOpTable, Target};
use crate::rust_names::snake;
use crate::tree::{self, Candidate};

pub(super) fn emit(target: &Target, out: &mut String) {
    let statuses = variants(&target.statuses);
    named_enum(
        out,
        "How well the hardware does what an operation's name says.",
        "HwStatus",
        &statuses,
    );
    for (index, table) in target.hw_ops.iter().enumerate() {
        op_enum(target, table, out);
        op_macro(target, index, table, out);
    }
    instruction(target, out);
}

fn op_enum(target: &Target, table: &HwOpTable, out: &mut String) {
    let name = &table.name;
    let [mut variants, mut list, mut infos, mut codes, mut indices] = [const { String::new() }; 5];
    let status = |i: usize| pascal(&target.statuses[i].name);
    for (index, op) in table.ops.iter().enumerate() {
        let (variant, code) = (&op.variant, op.code);
        line!(
            variants,
            "    /// `{}`, the td record `{}`.\n    {variant} = {code},",
            op.name,
            op.record
        );
        line!(list, "        {name}::{variant},");
        line!(
            infos,
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
        line!(codes, "            {code} => {name}::{variant},");
        line!(indices, "            {name}::{variant} => {index},");
    }
    line!(
        out,
        "\n/// Hardware operations, from td's `HwOp` records; the discriminant is the opcode field.\n\
         #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]\n#[repr(u8)]\n\
         pub enum {name} {{\n{variants}}}\n\
         impl {name} {{\n    /// All of them by code.\n    pub const ALL: &'static [{name}] = &[\n{list}    ];\n    \
         const INFO: &'static [HwOpInfo] = &[\n{infos}    ];\n    \
         /// The operation with this number; `None` if the hardware has none.\n    \
         pub const fn from_code(code: u8) -> Option<{name}> {{\n        Some(match code {{\n{codes}            \
         _ => return None,\n        }})\n    }}\n    \
         /// The number in the opcode field.\n    pub const fn code(self) -> u8 {{ self as u8 }}\n    \
         /// The facts of td about the operation.\n    pub const fn info(self) -> &'static HwOpInfo {{\n        \
         let index = match self {{\n{indices}        }};\n        &Self::INFO[index]\n    }}\n    \
         /// The hardware's name.\n    pub const fn name(self) -> &'static str {{ self.info().name }}\n    \
         /// The execution unit; for a memory operation that of main memory.\n    \
         pub const fn unit(self) -> Unit {{ self.info().unit }}\n    \
         /// Cycles from issue to the issue of a dependent instruction; 0 without a result.\n    \
         pub const fn latency(self) -> u8 {{ self.info().latency }}\n}}"
    );
}

/// Generates a macro that calls another macro with the operations of a table.
fn op_macro(target: &Target, index: usize, table: &HwOpTable, out: &mut String) {
    let layouts = target.hw_formats.iter().filter(|layout| layout.ops == index);
    let others: Vec<&HwFormat> = layouts.skip(1).collect();
    line!(
        out,
        "\n/// Calls a macro with all operations of [`{0}`](crate::raw::{0}) by code. The name of an operation is followed\n\
         /// by one more name for each further layout that has it.\n\
         #[macro_export]\nmacro_rules! for_each_{1} {{\n    ($with:ident) => {{ $with! {{",
        table.name,
        snake(&table.name)
    );
    for op in &table.ops {
        let has = |layout: &&&HwFormat| op_field(layout).is_some_and(|field| u32::from(op.code) < 1 << field.width);
        let names = others
            .iter()
            .filter(has)
            .map(|layout| format!(", {}{}", op.variant, layout.variant));
        line!(out, "        {}{};", op.variant, names.collect::<String>());
    }
    line!(out, "    }} }};\n}}");
}

fn op_field(layout: &HwFormat) -> Option<&HwField> {
    layout.fields.iter().find(|field| field.kind == HwFieldKind::Operation)
}

/// Generates a type with the fields of a layout, generic over the operation.
fn layout_type(layout: &HwFormat, out: &mut String) {
    let (name, mut fields, mut values) = (&layout.variant, String::new(), String::new());
    for f in &layout.fields {
        let bits = match f.width {
            1 => format!("Bit {}.", f.lsb),
            _ => format!("Bits {}-{}.", f.lsb + f.width - 1, f.lsb),
        };
        let more = match f.kind {
            HwFieldKind::Operation | HwFieldKind::File => continue,
            HwFieldKind::Number { signed: true } => " Sign-extended.".to_owned(),
            HwFieldKind::Register { vector } => format!(" Bit {vector} is set for a vector."),
            HwFieldKind::Number { signed: false } | HwFieldKind::Scalar => String::new(),
        };
        line!(fields, "    /// {bits}{more}\n    pub {}: {},", f.name, field_type(f));
        line!(values, "            {}: {},", f.name, field_value(f));
    }
    line!(
        out,
        "\n/// {}\n#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]\npub struct {name}<Op> {{\n    \
         /// The operation, or its number if no operation has it.\n    pub op: Op,\n{fields}}}\n\
         impl<Op> {name}<Op> {{\n    const fn of(word: u32, op: Op) -> Self {{\n        \
         {name} {{\n            op,\n{values}        }}\n    }}\n}}",
        layout.doc
    );
}

/// The suffix of the variant for opcode numbers without an operation, after the name of the layout.
const UNASSIGNED: &str = "Unassigned";

/// Generates the type of decoded instructions and its decoder.
fn instruction(target: &Target, out: &mut String) {
    let (mut variants, mut infos) = (String::new(), String::new());
    for layout in &target.hw_formats {
        layout_type(layout, out);
        let (name, doc, ops) = (&layout.variant, &layout.doc, &target.hw_ops[layout.ops].name);
        line!(variants, "    /// {doc}\n    {name}({name}<{ops}>),");
        line!(
            variants,
            "    /// {doc} No operation has the number.\n    {name}{UNASSIGNED}({name}<u8>),"
        );
        line!(infos, "            RawInst::{name}(inst) => Some(inst.op.info()),");
        line!(infos, "            RawInst::{name}{UNASSIGNED}(_) => None,");
    }
    line!(
        out,
        "\n/// A word as the hardware decodes it, from td's `HwLayout` and `HwOp` records: the fields of a layout, with one of its\n\
         /// operations or a number that has none. Whether the fields make sense is not checked.\n\
         #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]\npub enum RawInst {{\n{variants}    \
         /// No layout: the hardware drops the word at decode.\n    Undefined,\n}}\n\
         impl RawInst {{\n    /// The facts of td about the operation; `None` if there is no operation.\n    \
         pub const fn info(&self) -> Option<&'static HwOpInfo> {{\n        match self {{\n{infos}            \
         RawInst::Undefined => None,\n        }}\n    }}\n}}\n\n\
         /// Decodes a word as the hardware does. Never fails.\n#[inline]\npub const fn split(word: u32) -> RawInst {{"
    );
    let candidate = |(id, layout): (usize, &HwFormat)| Candidate {
        base: layout.base,
        fixed: layout.fixed,
        id,
    };
    let candidates: Vec<Candidate> = target.hw_formats.iter().enumerate().map(candidate).collect();
    let leaf = |id: usize| {
        let layout = &target.hw_formats[id];
        let (name, ops) = (&layout.variant, &target.hw_ops[layout.ops].name);
        format!(
            "{{ let code = {}; match {ops}::from_code(code) {{ Some(op) => RawInst::{name}({name}::of(word, op)), \
             None => RawInst::{name}{UNASSIGNED}({name}::of(word, code)) }} }}",
            op_field(layout).map_or_else(String::new, field_value)
        )
    };
    decoder::node(out, &tree::build(&candidates), 1, &leaf, "RawInst::Undefined");
    line!(out, "}}");
}

fn field_type(f: &HwField) -> &'static str {
    match (f.kind, f.width) {
        (HwFieldKind::Scalar, _) => "SReg",
        (HwFieldKind::Register { .. }, _) => "Reg",
        (HwFieldKind::Number { signed: true }, _) => "i32",
        (_, 1) => "bool",
        (_, 2..=8) => "u8",
        (_, _) => "u32",
    }
}

fn field_value(f: &HwField) -> String {
    let (lsb, width) = (u32::from(f.lsb), u32::from(f.width));
    let value = decoder::field(lsb, width);
    match f.kind {
        HwFieldKind::Scalar => format!("SReg::of_field(({value}) as u8)"),
        HwFieldKind::Register { vector } => format!(
            "if {} != 0 {{ Reg::V(VReg::of_field(({value}) as u8)) }} else {{ Reg::S(SReg::of_field(({value}) as u8)) }}",
            decoder::field(u32::from(vector), 1)
        ),
        // Sign-extends by shifts: moves the top bit of the field to bit 31 and back.
        HwFieldKind::Number { signed: true } => {
            let up = match 32 - lsb - width {
                0 => "word".to_owned(),
                up => format!("(word << {up})"),
            };
            format!("({up} as i32) >> {}", 32 - width)
        }
        HwFieldKind::Number { signed: false } | HwFieldKind::Operation | HwFieldKind::File => match field_type(f) {
            "bool" => format!("{value} != 0"),
            "u8" => format!("({value}) as u8"),
            _ => value,
        },
    }
}
