//! `clif-util isa`: prints registers, instructions and settings of the target, or one instruction.

use crate::{Outcome, output};
use clap::ValueEnum;
use cranelift_codegen::settings as shared;
use cranelift_naplespu::settings as target;
use npu_mc::inst::OperandRange;
use npu_mc::{Opcode, RegFile, SReg, VReg, env, semantics};
use std::fmt::Write as _;

/// List registers, instructions with their encodings, and settings
#[derive(clap::Args)]
pub struct Args {
    /// Only these parts, or the instructions with this record name or mnemonic
    #[arg(value_name = "PART|INSTRUCTION", value_parser = asked)]
    parts: Vec<Asked>,
}

/// A requested part.
#[derive(Clone)]
enum Asked {
    Part(Part),
    Instructions(Vec<Opcode>),
}

fn asked(text: &str) -> Result<Asked, String> {
    if let Ok(part) = Part::from_str(text, false) {
        return Ok(Asked::Part(part));
    }
    let opcodes: Vec<Opcode> = match Opcode::from_name(text) {
        Some(opcode) => vec![opcode],
        None => Opcode::ALL
            .iter()
            .copied()
            .filter(|opcode| opcode.desc().mnemonic == text)
            .collect(),
    };
    if opcodes.is_empty() {
        return Err(format!(
            "it is neither a part (registers, instructions, settings) nor an instruction; `{} isa instructions` lists them",
            "clif-util"
        ));
    }
    Ok(Asked::Instructions(opcodes))
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Registers with their DWARF numbers and their use by the compiler
    Registers,
    /// Instructions with their encodings
    Instructions,
    /// Settings of the target and of Cranelift
    Settings,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Outcome {
    let all = [Part::Registers, Part::Instructions, Part::Settings];
    let mut text = String::new();
    for part in all {
        let wanted = |asked: &Asked| matches!(asked, Asked::Part(one) if *one == part);
        if !args.parts.is_empty() && !args.parts.iter().any(wanted) {
            continue;
        }
        if !text.is_empty() {
            text.push('\n');
        }
        match part {
            Part::Registers => registers(&mut text),
            Part::Instructions => instructions(&mut text),
            Part::Settings => settings(&mut text),
        }
    }
    for asked in &args.parts {
        if let Asked::Instructions(opcodes) = asked {
            for opcode in opcodes {
                if !text.is_empty() {
                    text.push('\n');
                }
                instruction(&mut text, *opcode);
            }
        }
    }
    output::print(text.as_bytes())
}

// Writing to a string does not fail, so the results of `writeln!` below are ignored.

fn registers(text: &mut String) {
    let _ = writeln!(text, "Registers\n");
    let _ = writeln!(text, "{:<8}{:>6}{:>7}  use", "name", "number", "DWARF");
    for reg in SReg::all() {
        row(text, RegFile::Scalar, reg.name(), reg.number(), reg.dwarf());
    }
    for reg in VReg::all() {
        row(text, RegFile::Vector, reg.name(), reg.number(), reg.dwarf());
    }
}

fn row(text: &mut String, file: RegFile, name: &str, number: u8, dwarf: u16) {
    let class = env::class(file);
    let role = if class.reserved.contains(&number) {
        "reserved"
    } else if class.non_preferred.contains(&number) {
        "callee-saved"
    } else if class.preferred.contains(&number) {
        "caller-saved"
    } else {
        "not allocated"
    };
    let _ = writeln!(text, "{name:<8}{number:>6}{dwarf:>7}  {role}");
}

fn instructions(text: &mut String) {
    let _ = writeln!(
        text,
        "Instructions (bit 31 first; letters are operand bits, `-` bits that the decoder ignores)\n"
    );
    let width = Opcode::ALL.iter().map(|op| op.name().len()).max().unwrap_or(0);
    let _ = writeln!(
        text,
        "{:<width$}  {:<32}  {:>7}  assembly",
        "name", "encoding", "latency"
    );
    for op in Opcode::ALL {
        let desc = op.desc();
        let _ = writeln!(
            text,
            "{:<width$}  {}  {:>7}  {}",
            desc.name,
            desc.template(),
            desc.latency,
            desc.asm
        );
    }
}

/// Appends the description of one instruction.
fn instruction(text: &mut String, opcode: Opcode) {
    let desc = opcode.desc();
    let _ = writeln!(text, "{}: {}", desc.name, desc.asm);
    let _ = writeln!(text, "    encoding   {}", desc.template());
    for operand in desc.operands {
        let what = match operand.kind.range() {
            OperandRange::Register(RegFile::Scalar) => "scalar register".to_owned(),
            OperandRange::Register(RegFile::Vector) => "vector register".to_owned(),
            OperandRange::Immediate { min, max, .. } => format!("number from {min} to {max}"),
        };
        let how = match (operand.is_def, desc.reads_dst) {
            (false, _) => "",
            (true, false) => ", written",
            (true, true) => ", read and written",
        };
        let _ = writeln!(text, "    operand    {}: {what}{how}", operand.name);
    }
    let _ = writeln!(text, "    operation  {}", semantics::operation(opcode));
    let _ = writeln!(text, "    unit       {}, latency {}", desc.unit.name(), desc.latency);
    let _ = writeln!(text, "    defined    {}", desc.place);
}

fn settings(text: &mut String) {
    let _ = writeln!(
        text,
        "Settings of the target (`--set NAME=VALUE`, or on `target` and `set` lines)\n"
    );
    for setting in target::Setting::ALL {
        let setting = setting.info();
        let _ = writeln!(
            text,
            "{} = {}\n    {} ({})",
            setting.name, setting.default, setting.description, setting.values
        );
    }
    let _ = writeln!(text, "\nSettings of Cranelift\n");
    let flags = shared::Flags::new(shared::builder()).to_string();
    let defaults: Vec<(&str, &str)> = flags.lines().filter_map(|line| line.split_once(" = ")).collect();
    for setting in shared::builder().iter() {
        let default = defaults.iter().find(|(name, _)| *name == setting.name);
        let default = default.map_or("", |(_, value)| value.trim_matches('"'));
        let values = match setting.values {
            Some(values) => values.join(", "),
            None if matches!(default, "true" | "false") => "true, false".to_owned(),
            None => "a number".to_owned(),
        };
        let _ = writeln!(
            text,
            "{} = {default}\n    {} ({values})",
            setting.name, setting.description
        );
    }
}
