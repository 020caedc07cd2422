//! The instruction set manual in Markdown: registers, formats as bit diagrams, and for every
//! instruction its encoding, assembly, meaning, unit, latency and errata.
//!
//! Each instruction has an example with its word, computed from the operand bits in td. This is
//! independent of the tables of `npu-mc`, so a comparison checks both.

use std::collections::BTreeMap;
use std::fmt::Write;

use tablegen::{Diagnostic, Parsed, Record, ValueKind};

use crate::load::load;
use crate::model::{AsmPiece, HwFormat, Instruction, OperandRange, RegFile, Target};
use crate::semantics::operation_text;

/// The largest number of patterns shown for an instruction; the others are only counted.
const PATTERNS_SHOWN: usize = 2;

macro_rules! line {
    ($out:expr, $($text:tt)*) => {{
        // Writing to a string cannot fail.
        let _ = writeln!($out, $($text)*);
    }};
}

/// Generates the manual of a target as Markdown.
///
/// # Errors
///
/// Returns all faults of the description that [`load`](crate::load()) finds, and fields of the
/// wrong kind.
pub fn isa_manual(parsed: &Parsed) -> Result<String, Vec<Diagnostic>> {
    let target = load(parsed)?;
    manual(parsed, &target).map_err(|fault| vec![*fault])
}

type Fallible<T> = Result<T, Box<Diagnostic>>;

/// Converts an access error (a field of the wrong kind) to a fault.
fn access(error: impl Into<Diagnostic>) -> Box<Diagnostic> {
    Box::new(error.into())
}

fn manual(parsed: &Parsed, target: &Target) -> Fallible<String> {
    let mut out = String::new();
    line!(out, "# The instruction set\n");
    line!(
        out,
        "Generated from the target description by `npu-tblgen --gen-isa-manual`; do not edit. Bit 31 is the most significant bit of a word.\n"
    );
    registers(parsed, target, &mut out)?;
    formats(target, &mut out);
    units(target, &mut out);
    let patterns = Patterns::read(parsed)?;
    line!(out, "## Instructions\n");
    line!(
        out,
        "{} instructions, under the names of their records. `$name` in the assembly is an operand. The operation is that of the hardware, with \
         its errata: `dst[i]` is a lane, `x[7:0]` are bits, `++` concatenates bits, unsigned compares and shifts have a `u`, signed ones an `s`. \
         \"Selected for\" shows patterns of the compiler that the instruction implements alone: `(operation type:$operand, ...)`, as written in td. The latency is the number of cycles from issue to the issue of an \
         instruction that uses the result; 0 without a result.\n",
        target.instructions.len()
    );
    for (format, named) in target.formats.iter().enumerate() {
        let members =
            || (0..target.instructions.len()).filter(move |&index| target.instructions[index].format == format);
        if members().next().is_none() {
            continue;
        }
        line!(out, "### Format {}\n", named.name);
        for index in members() {
            instruction_entry(parsed, target, index, &patterns, &mut out)?;
        }
    }
    errata_table(target, &mut out);
    Ok(out)
}

/// Consecutive registers without a role, shown as one row.
struct Run {
    first: usize,
    last: usize,
}

fn registers(parsed: &Parsed, target: &Target, out: &mut String) -> Fallible<()> {
    line!(out, "## Registers\n");
    line!(
        out,
        "| registers | file | number | DWARF | role |\n|---|---|---|---|---|"
    );
    let role = |index: usize| -> Fallible<String> {
        let Some(record) = parsed.records.def(&target.registers[index].record) else {
            return Ok(String::new());
        };
        crate::load::text_or_empty(record, "Role").map_err(Box::new)
    };
    let mut runs: Vec<(Run, String)> = Vec::new();
    for index in 0..target.registers.len() {
        let role = role(index)?;
        match runs.last_mut() {
            Some((run, last))
                if role.is_empty()
                    && last.is_empty()
                    && target.registers[run.first].file == target.registers[index].file =>
            {
                run.last = index;
            }
            _ => runs.push((
                Run {
                    first: index,
                    last: index,
                },
                role,
            )),
        }
    }
    for (run, role) in &runs {
        let (first, last) = (&target.registers[run.first], &target.registers[run.last]);
        let range = |first: String, last: String| {
            if first == last {
                first
            } else {
                format!("{first} to {last}")
            }
        };
        line!(
            out,
            "| {} | {} | {} | {} | {role} |",
            range(format!("`{}`", first.asm_name), format!("`{}`", last.asm_name)),
            file_name(first.file),
            range(first.number.to_string(), last.number.to_string()),
            range(first.dwarf.to_string(), last.dwarf.to_string()),
        );
    }
    line!(
        out,
        "\n| class | file | never allocated | spill slot |\n|---|---|---|---|"
    );
    for class in &target.classes {
        let reserved: Vec<String> = class
            .reserved
            .iter()
            .map(|index| format!("`{}`", target.registers[*index].asm_name))
            .collect();
        line!(
            out,
            "| `{}` | {} | {} | {} bytes, aligned to {} |",
            class.record,
            file_name(class.file),
            reserved.join(", "),
            class.spill_size,
            class.spill_align
        );
    }
    out.push('\n');
    Ok(())
}

fn file_name(file: RegFile) -> &'static str {
    match file {
        RegFile::Scalar => "scalar",
        RegFile::Vector => "vector",
    }
}

/// A run of bits of a word and its contents.
struct Cell {
    lsb: u8,
    width: u8,
    text: String,
}

impl Cell {
    /// Returns the bit numbers: `31-24`, or `0` for one bit.
    fn bits(&self) -> String {
        let top = self.lsb + self.width - 1;
        if self.width == 1 {
            top.to_string()
        } else {
            format!("{top}-{}", self.lsb)
        }
    }
}

fn formats(target: &Target, out: &mut String) {
    line!(out, "## Formats\n");
    for format in &target.hw_formats {
        line!(out, "### Layout {}\n", format.variant);
        if !format.doc.is_empty() {
            line!(out, "{}\n", format.doc);
        }
        line!(out, "```text\n{}```\n", diagram(&format_cells(format)));
    }
}

/// Returns the fields of a format, with the fixed and unused bits between them.
fn format_cells(format: &HwFormat) -> Vec<Cell> {
    cells(|bit| {
        let field = format.fields.iter().position(|f| bit >= f.lsb && bit < f.lsb + f.width);
        match field {
            Some(index) => Bit::Field(index),
            None if format.fixed >> bit & 1 == 1 => Bit::Constant(format.base >> bit & 1 == 1),
            None => Bit::Unused,
        }
    })
    .into_iter()
    .map(|(lsb, width, what)| Cell {
        lsb,
        width,
        text: match what {
            Bit::Field(index) => format.fields[index].name.clone(),
            Bit::Constant(_) => constant(format.base, lsb, width),
            Bit::Unused => "-".repeat(usize::from(width.min(3))),
        },
    })
    .collect()
}

/// The use of a bit of a word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bit {
    /// A bit of the field or operand with this index.
    Field(usize),
    Constant(bool),
    /// An ignored bit.
    Unused,
}

impl Bit {
    fn goes_with(self, other: Bit) -> bool {
        self == other || matches!((self, other), (Bit::Constant(_), Bit::Constant(_)))
    }
}

/// Returns the runs of bits of one kind as (lowest bit, width, kind), most significant first.
fn cells(kind: impl Fn(u8) -> Bit) -> Vec<(u8, u8, Bit)> {
    let mut runs: Vec<(u8, u8, Bit)> = Vec::new();
    for bit in (0..32).rev() {
        let what = kind(bit);
        match runs.last_mut() {
            Some((lsb, width, last)) if last.goes_with(what) => {
                *lsb = bit;
                *width += 1;
            }
            _ => runs.push((bit, 1, what)),
        }
    }
    runs
}

/// Formats bits as digits.
fn constant(word: u32, lsb: u8, width: u8) -> String {
    (lsb..lsb + width)
        .rev()
        .map(|bit| if word >> bit & 1 == 1 { '1' } else { '0' })
        .collect()
}

/// Draws a word as a row of boxes, with bit numbers above.
fn diagram(cells: &[Cell]) -> String {
    let (mut numbers, mut edge, mut row) = (String::new(), String::new(), String::new());
    for cell in cells {
        let bits = cell.bits().replace('-', " ");
        // The width of a box is proportional to its bits, unless its texts need more.
        let width = usize::from(cell.width * 2).max(cell.text.len() + 2).max(bits.len() + 1);
        let numbered = match bits.split_once(' ') {
            Some((top, low)) => format!("{top}{low:>space$}", space = width - top.len()),
            None => format!("{bits:>width$}"),
        };
        let _ = write!(numbers, " {numbered}");
        let _ = write!(edge, "+{}", "-".repeat(width));
        let _ = write!(row, "|{:^width$}", cell.text);
    }
    format!("{numbers}\n{edge}+\n{row}|\n{edge}+\n")
}

fn units(target: &Target, out: &mut String) {
    line!(out, "## Units\n");
    line!(out, "| unit | instructions |\n|---|---|");
    for (index, unit) in target.units.iter().enumerate() {
        let count = target.instructions.iter().filter(|i| i.unit == index).count();
        line!(out, "| {} | {count} |", unit.name);
    }
    out.push('\n');
}

/// For each instruction (by name) the patterns that it implements alone, shortest first.
struct Patterns {
    by_instruction: BTreeMap<String, Vec<String>>,
}

impl Patterns {
    fn read(parsed: &Parsed) -> Fallible<Self> {
        let mut by_instruction: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for record in parsed.records.defs_derived_from("Instruction") {
            for value in record.list("Pattern").map_err(access)? {
                by_instruction
                    .entry(record.name().to_owned())
                    .or_default()
                    .push(value.to_string());
            }
        }
        for record in parsed.records.defs_derived_from("Pat") {
            let result = record.dag("ResultInstr").map_err(access)?;
            let alone = result
                .args()
                .iter()
                .all(|(arg, _)| !matches!(arg.kind(), ValueKind::Dag(_)));
            let Some(operator) = result.operator_def() else {
                continue;
            };
            if alone && operator.is_a("Instruction") {
                let pattern = record.value("PatternToMatch").map_err(access)?;
                by_instruction
                    .entry(operator.name().to_owned())
                    .or_default()
                    .push(pattern.to_string());
            }
        }
        for patterns in by_instruction.values_mut() {
            patterns.sort_by_key(|text| (text.len(), text.clone()));
            patterns.dedup();
        }
        Ok(Self { by_instruction })
    }
}

fn instruction_entry(
    parsed: &Parsed,
    target: &Target,
    index: usize,
    patterns: &Patterns,
    out: &mut String,
) -> Fallible<()> {
    let instruction = &target.instructions[index];
    line!(out, "#### {}\n", instruction.record);
    line!(out, "`{}`\n", instruction.asm);
    let cells = instruction_cells(target, instruction);
    let heads: Vec<String> = cells.iter().map(Cell::bits).collect();
    let texts: Vec<String> = cells.iter().map(|cell| format!("`{}`", cell.text)).collect();
    line!(out, "| {} |", heads.join(" | "));
    line!(out, "|{}", "---|".repeat(cells.len()));
    line!(out, "| {} |\n", texts.join(" | "));
    if !instruction.operands.is_empty() {
        line!(out, "* operands: {}", operands(target, instruction));
    }
    let record = parsed.records.def(&instruction.record);
    line!(
        out,
        "* operation: `{}`",
        operation_text(target, instruction).replace('|', "\\|")
    );
    line!(out, "* selected for: {}", selected_for(instruction, record, patterns)?);
    line!(
        out,
        "* unit: {}; latency: {}",
        target.units[instruction.unit].name,
        instruction.latency
    );
    let notes = notes(target, instruction);
    if !notes.is_empty() {
        line!(out, "* {}", notes.join("; "));
    }
    let errata = target
        .errata
        .iter()
        .filter(|erratum| erratum.instructions.contains(&index));
    let links: Vec<String> = errata.map(|erratum| format!("[{}](#errata)", erratum.name)).collect();
    if !links.is_empty() {
        line!(out, "* errata: {}", links.join(", "));
    }
    let (text, word) = example(target, instruction);
    line!(out, "* example: `{text}` is `0x{word:08x}`\n");
    Ok(())
}

fn instruction_cells(target: &Target, instruction: &Instruction) -> Vec<Cell> {
    // The layout with the fixed bits of the instruction determines the boundaries of constant
    // fields.
    let layout = target
        .hw_formats
        .iter()
        .find(|layout| layout.fixed & !instruction.fixed == 0 && (layout.base ^ instruction.base) & layout.fixed == 0);
    let field_of =
        |bit: u8| layout.and_then(|layout| layout.fields.iter().position(|f| bit >= f.lsb && bit < f.lsb + f.width));
    let mut cells_of = Vec::new();
    for (lsb, width, what) in cells(|bit| {
        let operand = instruction.operands.iter().position(|operand| {
            operand
                .runs
                .iter()
                .any(|run| bit >= run.inst_lsb && bit < run.inst_lsb + run.width)
        });
        match operand {
            Some(index) => Bit::Field(index),
            None if instruction.fixed >> bit & 1 == 1 => Bit::Constant(true),
            None => Bit::Unused,
        }
    }) {
        match what {
            Bit::Field(index) => cells_of.push(Cell {
                lsb,
                width,
                text: instruction.operands[index].name.clone(),
            }),
            Bit::Constant(_) => {
                let mut top = lsb + width;
                for bit in (lsb..lsb + width).rev() {
                    if bit == lsb || field_of(bit) != field_of(bit - 1) {
                        cells_of.push(Cell {
                            lsb: bit,
                            width: top - bit,
                            text: constant(instruction.base, bit, top - bit),
                        });
                        top = bit;
                    }
                }
            }
            Bit::Unused => cells_of.push(Cell {
                lsb,
                width,
                text: "-".to_owned(),
            }),
        }
    }
    cells_of
}

fn operands(target: &Target, instruction: &Instruction) -> String {
    let texts: Vec<String> = instruction
        .operands
        .iter()
        .map(|operand| {
            let what = match &target.operand_kinds[operand.kind].range {
                OperandRange::Register(file) => format!("{} register", file_name(*file)),
                OperandRange::Immediate { min, max, .. } => format!("number from {min} to {max}"),
            };
            let how = match (operand.is_def, instruction.reads_dst) {
                (false, _) => "",
                (true, false) => ", written",
                (true, true) => ", read and written",
            };
            format!("`{}` {what}{how}", operand.name)
        })
        .collect();
    texts.join("; ")
}

fn selected_for(instruction: &Instruction, record: Option<Record<'_>>, patterns: &Patterns) -> Fallible<String> {
    if let Some(found) = patterns.by_instruction.get(&instruction.record) {
        let shown: Vec<String> = found
            .iter()
            .take(PATTERNS_SHOWN)
            .map(|pattern| format!("`{}`", pattern.replace('|', "\\|")))
            .collect();
        let more = match found.len().saturating_sub(PATTERNS_SHOWN) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        return Ok(format!("{}{more}", shown.join(", ")));
    }
    let reason = match record {
        Some(record) => record.string("NoPattern").map_err(access)?,
        None => "",
    };
    Ok(if reason.is_empty() {
        "no pattern selects it alone; it is part of longer sequences".to_owned()
    } else {
        format!("no pattern: {reason}")
    })
}

/// Returns the other properties of an instruction.
fn notes(target: &Target, instruction: &Instruction) -> Vec<String> {
    let flags = &instruction.flags;
    let mut notes: Vec<String> = [
        (instruction.masked, "acts on the lanes that the mask enables"),
        (instruction.scratchpad, "works on the scratchpad"),
        (flags.branch, "branches"),
        (flags.call, "calls"),
        (flags.ret, "returns"),
        (flags.barrier, "never falls through"),
        (flags.load, "loads"),
        (flags.store, "stores"),
        (flags.side_effects, "has effects beside its result"),
        (flags.commutable, "its sources can be exchanged"),
    ]
    .into_iter()
    .filter(|(is, _)| *is)
    .map(|(_, text)| text.to_owned())
    .collect();
    for (list, what) in [(&instruction.uses, "reads"), (&instruction.defs, "writes")] {
        if !list.is_empty() {
            let names: Vec<String> = list
                .iter()
                .map(|index| format!("`{}`", target.registers[*index].asm_name))
                .collect();
            notes.push(format!("also {what} {}", names.join(", ")));
        }
    }
    if !instruction.decodable {
        notes.push("assembler only: the disassembler prints another name for the same bits".to_owned());
    }
    notes
}

/// Returns an example: the instruction with registers and numbers for its operands, and its word.
fn example(target: &Target, instruction: &Instruction) -> (String, u32) {
    // The number is negative, so that the example shows the upper bits of the field.
    const NUMBER: i32 = -16;
    let mut texts = Vec::new();
    let mut word = instruction.base;
    for (index, operand) in instruction.operands.iter().enumerate() {
        let value = match &target.operand_kinds[operand.kind].range {
            OperandRange::Register(file) => {
                // Each operand gets a different register, starting at the second register of the
                // file.
                let mut members = target.registers.iter().filter(|r| r.file == *file);
                let register = members.nth(index + 1);
                texts.push(register.map_or_else(String::new, |r| r.asm_name.clone()));
                register.map_or(0, |r| u32::from(r.number))
            }
            OperandRange::Immediate { min, max, .. } => {
                let number = NUMBER.clamp(*min, *max);
                texts.push(number.to_string());
                number.cast_unsigned()
            }
        };
        for run in &operand.runs {
            let mask = crate::tree::low_mask(u32::from(run.width));
            word |= (value >> run.value_lsb & mask) << run.inst_lsb;
        }
    }
    let text = instruction
        .pieces
        .iter()
        .map(|piece| match piece {
            AsmPiece::Text(text) => text.as_str(),
            AsmPiece::Operand(index) | AsmPiece::OperandUnlessZero(index) => &texts[*index],
        })
        .collect();
    (text, word)
}

fn errata_table(target: &Target, out: &mut String) {
    line!(out, "## Errata\n");
    line!(
        out,
        "| name | what is wrong | effect | what the compiler does |\n|---|---|---|---|"
    );
    for erratum in &target.errata {
        line!(
            out,
            "| `{}` | {} | {} | {} |",
            erratum.name,
            erratum.summary,
            erratum.effect,
            erratum.workaround
        );
    }
}
