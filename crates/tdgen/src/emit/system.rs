//! Generates relocations, ELF and machine constants, errata.

use super::line;
use crate::load::pascal;
use crate::model::{Constant, RelocFormula, Target};

pub(super) fn emit(target: &Target, out: &mut String) {
    relocations(target, out);
    constants(target, out);
    value_enum(
        out,
        "TrapReason",
        "Why the hardware trapped (`docs/machine/control.md`).",
        &target.trap_reasons,
    );
    value_enum(
        out,
        "ThreadStatus",
        "The state of a hardware thread (`docs/machine/control.md`).",
        &target.thread_statuses,
    );
    errata(target, out);
}

fn relocations(target: &Target, out: &mut String) {
    let variant = |name: &str| pascal(&name.trim_start_matches("R_NPU_").to_lowercase());
    line!(
        out,
        "\n/// The relocation types, from td's `Reloc` records; the discriminant is the number in ELF."
    );
    line!(
        out,
        "#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]"
    );
    line!(out, "#[repr(u8)]");
    line!(out, "pub enum Reloc {{");
    for r in &target.relocations {
        line!(out, "    /// `{}`", r.name);
        line!(out, "    {} = {},", variant(&r.name), r.number);
    }
    line!(out, "}}");
    line!(out, "impl Reloc {{");
    let all: Vec<String> = target
        .relocations
        .iter()
        .map(|r| format!("Reloc::{}", variant(&r.name)))
        .collect();
    line!(out, "    /// All types by number.");
    line!(out, "    pub const ALL: &'static [Reloc] = &[{}];", all.join(", "));
    line!(out, "    /// The facts of td about the type.");
    line!(out, "    pub const fn info(self) -> &'static RelocInfo {{");
    line!(out, "        match self {{");
    for r in &target.relocations {
        let formula = match r.formula {
            RelocFormula::None => "None",
            RelocFormula::Abs => "Abs",
            RelocFormula::Pc => "Pc",
            RelocFormula::AbsHigh => "AbsHigh",
            RelocFormula::AbsLow => "AbsLow",
        };
        line!(
            out,
            "            Reloc::{} => &RelocInfo {{ name: {:?}, formula: Formula::{formula}, lsb: {}, width: {}, \
             signed: {} }},",
            variant(&r.name),
            r.name,
            r.lsb,
            r.width,
            r.signed
        );
    }
    line!(out, "        }}\n    }}\n}}");
}

fn constants(target: &Target, out: &mut String) {
    line!(out, "\n/// Machine constants.");
    line!(out, "pub(crate) mod constants {{");
    for c in &target.constants {
        let doc = if c.doc.is_empty() { &c.name } else { &c.doc };
        line!(out, "    /// {doc}");
        line!(out, "    pub const {}: u32 = {:#x};", c.name, c.value);
    }
    line!(out, "}}");
    line!(out, "\n/// ELF constants.");
    line!(out, "pub mod elf {{");
    for c in &target.elf {
        line!(out, "    /// {}", c.doc);
        line!(out, "    pub const {}: i64 = {};", c.name, c.value);
    }
    for t in &target.texts {
        line!(out, "    /// {}", t.doc);
        line!(out, "    pub const {}: &str = {:?};", t.name, t.text);
    }
    line!(out, "}}");
}

/// Generates an enum whose discriminants are the machine's values.
fn value_enum(out: &mut String, name: &str, doc: &str, list: &[Constant]) {
    let [mut variants, mut names, mut values] = [const { String::new() }; 3];
    for c in list {
        let (variant, value) = (pascal(&c.name), c.value);
        let doc = if c.doc.is_empty() {
            format!("`{}`", c.name)
        } else {
            c.doc.clone()
        };
        line!(variants, "    /// {doc}\n    {variant} = {value:#x},");
        line!(names, "            {name}::{variant} => {:?},", c.name);
        line!(values, "            {value:#x} => {name}::{variant},");
    }
    line!(
        out,
        "\n/// {doc} The discriminant is the machine's number.\n\
         #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]\n#[repr(u32)]\npub enum {name} {{\n{variants}}}\n\
         impl {name} {{\n    /// The machine's number.\n    pub const fn value(self) -> u32 {{ self as u32 }}\n    \
         /// The name in td.\n    pub const fn name(self) -> &'static str {{\n        match self {{\n{names}        }}\n    }}\n    \
         /// The one with this number.\n    pub const fn from_value(value: u32) -> Option<{name}> {{\n        \
         Some(match value {{\n{values}            _ => return None,\n        }})\n    }}\n}}"
    );
}

fn errata(target: &Target, out: &mut String) {
    let [mut variants, mut all, mut infos] = [const { String::new() }; 3];
    for e in &target.errata {
        let variant = pascal(&e.name);
        let instructions = e
            .instructions
            .iter()
            .map(|&index| format!("Opcode::{}", target.instructions[index].record));
        let instructions: Vec<String> = instructions.collect();
        line!(variants, "    /// {}\n    {variant},", e.summary);
        all += &format!("Erratum::{variant}, ");
        line!(
            infos,
            "            Erratum::{variant} => &ErratumInfo {{ name: {:?}, summary: {:?}, effect: {:?}, workaround: {:?}, \
             is_setting: {}, reference: {:?}, instructions: &[{}] }},",
            e.name,
            e.summary,
            e.effect,
            e.workaround,
            e.is_setting,
            e.reference,
            instructions.join(", ")
        );
    }
    line!(
        out,
        "\n/// The errata, from td's `Erratum` records.\n\
         #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]\npub enum Erratum {{\n{variants}}}\n\
         impl Erratum {{\n    /// All errata in td's order.\n    pub const ALL: &'static [Erratum] = &[{all}];\n    \
         /// The facts of td about the erratum.\n    pub const fn info(self) -> &'static ErratumInfo {{\n        \
         match self {{\n{infos}        }}\n    }}\n}}"
    );
}
