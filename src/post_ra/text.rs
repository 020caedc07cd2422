//! The text form of a machine function. `--emit` prints it, and tests of single passes are written
//! in it.
//!
//! Each line is one instruction in assembler syntax, with a label in place of a distance that is
//! not yet known. Further properties of the instruction follow after semicolons: `glued`, `call`,
//! `tail_call`, `enter` and `leave` for the frame, `trap`, `far_high`, `far_low`, `entry`, and
//! `times` for the number of repetitions. Printed functions also show relocations.

use super::func::{CallKind, Fixup, FrameStep, Label, MachFunction, McInst};
use crate::vcode::Origin;
use cranelift_codegen::ir::TrapCode;
use npu_mc::Operand;
use rustc_hash::FxHashMap;
use std::fmt;

/// The minimum number of equal consecutive instructions that are printed as one.
const MANY: usize = 16;

impl fmt::Display for MachFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for block in 0..self.block_count() {
            if let Some(label) = self.label(block) {
                writeln!(f, "{label}:")?;
            }
            let mut insts = &self.insts()[self.block_range(block)];
            while let [inst, ..] = insts {
                let text = inst.to_string();
                let same = insts.iter().take_while(|other| other.inst == inst.inst);
                let times = same.take_while(|other| other.to_string() == text).count();
                let printed = if times >= MANY { times } else { 1 };
                match printed {
                    1 => writeln!(f, "    {text}")?,
                    _ => writeln!(f, "    {text} ; times {times}")?,
                }
                insts = &insts[printed..];
            }
        }
        Ok(())
    }
}

impl fmt::Display for McInst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.inst.to_string();
        let (target, note) = match &self.fixup {
            Fixup::None => (None, String::new()),
            Fixup::Branch(target) => (Some(target), String::new()),
            Fixup::TableEntry { target, end } => (Some(target), format!("entry {end}")),
            Fixup::FarHigh { target, after } => (Some(target), format!("far_high {after}")),
            Fixup::FarLow { target, after } => (Some(target), format!("far_low {after}")),
            Fixup::Address { kind, target } => (Some(target), format!("{} address", kind.name())),
            Fixup::Pool { kind, index } => (None, format!("{} pool {index}", kind.name())),
            Fixup::Reloc { kind, target, addend } => (None, format!("{} {target}{addend:+}", kind.name())),
        };
        match target {
            Some(label) => write!(f, "{}{label}", text.strip_suffix('0').unwrap_or(&text))?,
            None => f.write_str(&text)?,
        }
        let call = match self.call {
            CallKind::None => "",
            CallKind::Call => "call",
            CallKind::TailCall => "tail_call",
        };
        let frame = match self.frame {
            FrameStep::None => "",
            FrameStep::Enter => "enter",
            FrameStep::Leave => "leave",
        };
        let glued = if self.glued { "glued" } else { "" };
        let trap = self.trap.map_or_else(String::new, |code| format!("trap {code}"));
        for note in [note.as_str(), call, frame, glued, &trap] {
            if !note.is_empty() {
                write!(f, " ; {note}")?;
            }
        }
        Ok(())
    }
}

/// Parses the printed form, without relocations. A comment starts with `//`.
///
/// # Errors
///
/// A message with the number of the first line that cannot be parsed.
pub fn parse(text: &str) -> Result<MachFunction, String> {
    let mut func = MachFunction::default();
    let mut labels: FxHashMap<String, Label> = FxHashMap::default();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split("//").next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        if let Some(name) = line.strip_suffix(':') {
            let label = label(&mut func, &mut labels, name);
            if func.block_of(label).is_some() {
                return Err(format!("line {number}: label `{name}` is defined twice"));
            }
            func.bind(label);
            continue;
        }
        let wrong = |error: String| format!("line {number}: {error}");
        let (line, times) = match line.rsplit_once("; times ") {
            Some((line, times)) => (line, times.parse::<usize>().map_err(|error| wrong(error.to_string()))?),
            None => (line, 1),
        };
        let inst = instruction(&mut func, &mut labels, line).map_err(wrong)?;
        std::iter::repeat_n(inst, times).for_each(|inst| func.push(inst));
    }
    match labels.iter().find(|(_, label)| func.block_of(**label).is_none()) {
        Some((name, _)) => Err(format!("label `{name}` is not defined")),
        None => Ok(func),
    }
}

fn label(func: &mut MachFunction, labels: &mut FxHashMap<String, Label>, name: &str) -> Label {
    *labels.entry(name.to_owned()).or_insert_with(|| func.new_label())
}

fn instruction(func: &mut MachFunction, labels: &mut FxHashMap<String, Label>, line: &str) -> Result<McInst, String> {
    let mut parts = line.split(';').map(str::trim);
    let code = parts.next().unwrap_or_default();
    // A label is the last operand of a branch.
    let (text, target) = match code.rsplit_once([' ', ',']) {
        Some((_, last)) if last.starts_with('L') => {
            let target = label(func, labels, last);
            (format!("{}0", &code[..code.len() - last.len()]), Some(target))
        }
        _ => (code.to_owned(), None),
    };
    let inst = npu_mc::asm::instruction(&text).map_err(|faults| match faults.first() {
        Some(fault) => format!("{code}: {}", fault.message),
        None => code.to_owned(),
    })?;
    let mut mc = McInst::plain(inst, Origin::default());
    if let Some(target) = target {
        if !matches!(inst.operands.last(), Some(Operand::Imm(0))) {
            return Err(format!("{code}: the instruction has no operand for a label"));
        }
        mc.fixup = Fixup::Branch(target);
    }
    for note in parts {
        let (word, rest) = note.split_once(' ').unwrap_or((note, ""));
        match word {
            "glued" => mc.glued = true,
            "call" => mc.call = CallKind::Call,
            "tail_call" => mc.call = CallKind::TailCall,
            "enter" => mc.frame = FrameStep::Enter,
            "leave" => mc.frame = FrameStep::Leave,
            "trap" => {
                mc.trap = Some(
                    rest.parse::<TrapCode>()
                        .map_err(|()| format!("`{rest}` is not a trap code"))?,
                )
            }
            "entry" | "far_high" | "far_low" => {
                let target = target.ok_or_else(|| format!("{code}: `{word}` needs a label"))?;
                let after = || rest.parse::<u32>().map_err(|error| format!("{rest}: {error}"));
                mc.fixup = match word {
                    "entry" => Fixup::TableEntry {
                        target,
                        end: label(func, labels, rest),
                    },
                    "far_high" => Fixup::FarHigh {
                        target,
                        after: after()?,
                    },
                    _ => Fixup::FarLow {
                        target,
                        after: after()?,
                    },
                };
            }
            _ => return Err(format!("unknown property `{note}`")),
        }
    }
    Ok(mc)
}
