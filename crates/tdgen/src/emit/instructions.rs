//! Generates opcodes, descriptors and relations.

use super::{line, named_enum, register_slice, variants};
use crate::load::pascal;
use crate::model::{AsmPiece, Flags, Instruction, OperandRange, Target};
use std::collections::HashMap;

pub(super) fn emit(target: &Target, out: &mut String) {
    let formats = variants(&target.formats);
    named_enum(
        out,
        "The instruction formats (`docs/machine/formats.md`).",
        "Format",
        &formats,
    );
    let units = variants(&target.units);
    named_enum(out, "The execution units (`docs/machine/pipeline.md`).", "Unit", &units);
    operand_kinds(target, out);
    opcodes(target, out);
    let most = target.instructions.iter().map(|i| i.operands.len()).max();
    line!(out, "\n/// The largest number of encoded operands of an instruction.");
    line!(out, "pub const MAX_OPERANDS: usize = {};", most.unwrap_or(0));
    descriptors(target, out);
}

fn operand_kinds(target: &Target, out: &mut String) {
    // All classes of a register file share one kind.
    line!(
        out,
        "\n/// The kinds of encoded operands, from td's register and operand classes.\n\
         #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]\n#[repr(u8)]\npub enum OperandKind {{"
    );
    let mut ranges = String::new();
    for kind in &target.operand_kinds {
        line!(out, "    /// The td class `{}`.\n    {},", kind.record, kind.name);
        match kind.range {
            OperandRange::Register(file) => line!(ranges, "    OperandRange::Register(RegFile::{file:?}),"),
            OperandRange::Immediate {
                min, max, bits, signed, ..
            } => line!(
                ranges,
                "    OperandRange::Immediate {{ min: {min}, max: {max}, bits: {bits}, signed: {signed} }},"
            ),
        }
    }
    let count = target.operand_kinds.len();
    line!(
        out,
        "}}\npub(crate) static OPERAND_RANGES: [OperandRange; {count}] = [\n{ranges}];"
    );
}

fn opcodes(target: &Target, out: &mut String) {
    let (mut variants, mut list, mut by_name) = (String::new(), String::new(), String::new());
    let mut names: Vec<&str> = Vec::new();
    for i in &target.instructions {
        line!(variants, "    /// `{}`\n    {},", i.asm, i.record);
        line!(list, "        Opcode::{},", i.record);
        names.push(&i.record);
    }
    names.sort_unstable();
    for name in &names {
        line!(by_name, "    Opcode::{name},");
    }
    line!(
        out,
        "\n/// The encodable instructions under their td record names.\n\
         #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]\n\
         #[expect(non_camel_case_types, reason = \"the names are those of the td records\")]\n#[repr(u16)]\n\
         pub enum Opcode {{\n{variants}}}\n\
         impl Opcode {{\n    /// All opcodes in td's order.\n    pub const ALL: &'static [Opcode] = &[\n{list}    ];\n}}\n\
         pub(crate) static OPCODES_BY_NAME: [Opcode; {}] = [\n{by_name}];",
        names.len()
    );
}

fn descriptors(target: &Target, out: &mut String) {
    // Many instructions have the same operands or the same text after the mnemonic, so equal lists
    // are shared.
    let mut lists: HashMap<String, usize> = HashMap::new();
    let mut bodies: Vec<String> = Vec::new();
    let mut list_of = Vec::new();
    for i in &target.instructions {
        let body = operand_list(target, i);
        let next = bodies.len();
        let index = *lists.entry(body.clone()).or_insert(next);
        if index == next {
            bodies.push(body);
        }
        list_of.push(index);
    }
    for (index, body) in bodies.iter().enumerate() {
        line!(out, "static OPERANDS_{index}: &[OperandDesc] = &[{body}];");
    }
    line!(
        out,
        "pub(crate) static DESCS: [InstDesc; {}] = [",
        target.instructions.len()
    );
    for (i, list) in target.instructions.iter().zip(list_of) {
        line!(out, "    InstDesc {{");
        line!(
            out,
            "        name: {:?}, place: {:?}, mnemonic: {:?}, asm: {:?},",
            i.record,
            i.place,
            i.mnemonic,
            i.asm
        );
        line!(
            out,
            "        base: {:#010x}, fixed: {:#010x}, ignored: {:#010x}, decodable: {},",
            i.base,
            i.fixed,
            i.ignored,
            i.decodable
        );
        line!(
            out,
            "        format: Format::{}, unit: Unit::{}, latency: {}, fp_slot: {:?}, flags: {},",
            pascal(&target.formats[i.format].name.to_lowercase()),
            pascal(&target.units[i.unit].name.to_lowercase()),
            i.latency,
            i.fp_slot,
            flags(i.flags)
        );
        line!(
            out,
            "        operands: OPERANDS_{list}, num_defs: {}, reads_dst: {}, masked: {}, scratchpad: {},",
            i.operands.iter().filter(|o| o.is_def).count(),
            i.reads_dst,
            i.masked,
            i.scratchpad
        );
        line!(
            out,
            "        implicit_uses: {}, implicit_defs: {},",
            register_slice(target, &i.uses),
            register_slice(target, &i.defs)
        );
        line!(out, "        print: &[{}],", pieces(i));
        line!(out, "    }},");
    }
    line!(out, "];");
}

fn operand_list(target: &Target, i: &Instruction) -> String {
    let operands: Vec<String> = i
        .operands
        .iter()
        .map(|o| {
            let runs: Vec<String> = o
                .runs
                .iter()
                .map(|r| {
                    format!(
                        "BitRun {{ inst_lsb: {}, value_lsb: {}, width: {} }}",
                        r.inst_lsb, r.value_lsb, r.width
                    )
                })
                .collect();
            format!(
                "\n    OperandDesc {{ name: {:?}, kind: OperandKind::{}, is_def: {}, runs: &[{}] }},",
                o.name,
                target.operand_kinds[o.kind].name,
                o.is_def,
                runs.join(", ")
            )
        })
        .collect();
    operands.concat()
}

fn pieces(i: &Instruction) -> String {
    let pieces: Vec<String> = i
        .pieces
        .iter()
        .map(|piece| match piece {
            AsmPiece::Text(text) => format!("AsmPiece::Text({text:?})"),
            AsmPiece::Operand(index) => format!("AsmPiece::Operand({index})"),
            AsmPiece::OperandUnlessZero(index) => format!("AsmPiece::OperandUnlessZero({index})"),
        })
        .collect();
    pieces.join(", ")
}

fn flags(flags: Flags) -> String {
    let set = [
        (flags.branch, "BRANCH"),
        (flags.terminator, "TERMINATOR"),
        (flags.barrier, "BARRIER"),
        (flags.call, "CALL"),
        (flags.ret, "RETURN"),
        (flags.indirect, "INDIRECT"),
        (flags.load, "LOAD"),
        (flags.store, "STORE"),
        (flags.side_effects, "SIDE_EFFECTS"),
        (flags.commutable, "COMMUTABLE"),
        (flags.compare, "COMPARE"),
        (flags.move_reg, "MOVE"),
    ];
    let set = set.iter().filter(|(on, _)| *on);
    set.fold("InstFlags::empty()".to_owned(), |text, (_, name)| {
        format!("{text}.union(InstFlags::{name})")
    })
}

/// Generates one function per relation.
pub(super) fn emit_relations(target: &Target, out: &mut String) {
    line!(
        out,
        "\n/// Relations between opcodes, from td's `InstrMapping` records."
    );
    line!(out, "pub(crate) mod relations {{");
    line!(out, "    use super::Opcode;");
    for m in &target.mappings {
        let opcode = |index: usize| format!("Opcode::{}", target.instructions[index].record);
        let columns: Vec<String> = m.columns.iter().map(|c| c.join("_")).collect();
        line!(out, "\n    /// td `{}`: to {}.", m.record, columns.join(" or "));
        if let [_] = m.columns.as_slice() {
            line!(
                out,
                "    pub const fn {}(opcode: Opcode) -> Option<Opcode> {{",
                m.function
            );
            line!(out, "        Some(match opcode {{");
            for (key, targets) in &m.rows {
                if let [Some(to)] = targets.as_slice() {
                    line!(out, "            {} => {},", opcode(*key), opcode(*to));
                }
            }
        } else {
            let ty = pascal(&m.function);
            line!(
                out,
                "    pub const fn {}(opcode: Opcode, column: {ty}) -> Option<Opcode> {{",
                m.function
            );
            line!(out, "        Some(match (opcode, column) {{");
            for (key, targets) in &m.rows {
                for (to, column) in targets.iter().zip(&columns) {
                    if let Some(to) = to {
                        line!(
                            out,
                            "            ({}, {ty}::{}) => {},",
                            opcode(*key),
                            pascal(column),
                            opcode(*to)
                        );
                    }
                }
            }
        }
        line!(out, "            _ => return None,");
        line!(out, "        }})\n    }}");
        if m.columns.len() > 1 {
            line!(out, "\n    /// The columns of the relation [`{}`].", m.function);
            line!(out, "    #[derive(Clone, Copy, PartialEq, Eq, Debug)]");
            line!(out, "    pub enum {} {{", pascal(&m.function));
            for column in &columns {
                line!(out, "        /// `{column}`");
                line!(out, "        {},", pascal(column));
            }
            line!(out, "    }}");
        }
    }
    line!(out, "}}");
}
