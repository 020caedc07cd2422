//! `clif-util isa`: registers, instructions and settings of the target.

use crate::{Outcome, output};
use clap::ValueEnum;
use cranelift_codegen::settings as shared;
use cranelift_naplespu::settings as target;
use npu_mc::{Opcode, RegFile, SReg, VReg, env};
use std::fmt::Write as _;

/// List registers, instructions with their encodings, and settings
#[derive(clap::Args)]
pub struct Args {
    /// Only these parts
    #[arg(value_enum, value_name = "PART")]
    parts: Vec<Part>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Registers with their DWARF numbers and what the compiler does with them
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
        if !args.parts.is_empty() && !args.parts.contains(&part) {
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
    output::print(text.as_bytes())
}

// Writing to a string does not fail, so the results of `writeln!` below say nothing.

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
