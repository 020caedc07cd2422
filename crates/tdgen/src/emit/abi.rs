//! Generates calling conventions, callee-saved lists and the register classes for the allocator.

use super::{line, register_slice};
use crate::model::{Action, RegFile, Target};

pub(super) fn emit(target: &Target, out: &mut String) {
    value_types(target, out);
    for (i, convention) in target.conventions.iter().enumerate() {
        line!(out, "static ACTIONS_{i}: &[Action] = &[");
        for action in &convention.actions {
            line!(out, "    {},", action_text(target, action));
        }
        line!(out, "];");
        line!(out, "/// The td record `{}`.", convention.record);
        line!(
            out,
            "pub static {}: Convention = Convention {{ name: {:?}, actions: ACTIONS_{i} }};",
            convention.record.to_uppercase(),
            convention.record
        );
    }
    for saved in &target.callee_saved {
        line!(out, "\n/// The td record `{}`, in save order.", saved.record);
        line!(
            out,
            "pub static {}: &[Reg] = {};",
            saved.record.to_uppercase(),
            register_slice(target, &saved.registers)
        );
    }
    classes(target, out);
}

fn value_types(target: &Target, out: &mut String) {
    let types = &target.value_types;
    line!(out, "\n/// The value types of the calling conventions.");
    line!(
        out,
        "#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]"
    );
    line!(out, "#[repr(u8)]");
    line!(out, "pub enum ValueType {{");
    for t in types {
        line!(out, "    /// `{}`, {} bits.", t.record, t.bits);
        line!(out, "    {},", t.variant);
    }
    line!(out, "}}");
    line!(out, "impl ValueType {{");
    let all: Vec<String> = types.iter().map(|t| format!("ValueType::{}", t.variant)).collect();
    line!(out, "    /// All value types in td's order.");
    line!(out, "    pub const ALL: &'static [ValueType] = &[{}];", all.join(", "));
    for (doc, function, ty, value) in [
        ("The td record name.", "name", "&'static str", 0),
        ("Size in bits.", "bits", "u32", 1),
        ("Number of lanes, 1 for a scalar.", "lanes", "u32", 2),
        (
            "The name in CLIF, empty if CLIF has no such type.",
            "clif_name",
            "&'static str",
            3,
        ),
    ] {
        line!(out, "    /// {doc}");
        line!(out, "    pub const fn {function}(self) -> {ty} {{");
        line!(out, "        match self {{");
        for t in types {
            let value = match value {
                0 => format!("{:?}", t.record),
                1 => t.bits.to_string(),
                2 => t.lanes.to_string(),
                _ => format!("{:?}", t.clif),
            };
            line!(out, "            ValueType::{} => {value},", t.variant);
        }
        line!(out, "        }}\n    }}");
    }
    line!(out, "}}");
}

fn action_text(target: &Target, action: &Action) -> String {
    let ty = |index: usize| format!("ValueType::{}", target.value_types[index].variant);
    match action {
        Action::IfType(types, inner) => {
            let types: Vec<String> = types.iter().map(|t| ty(*t)).collect();
            let inner = action_text(target, inner);
            format!("Action::IfType(&[{}], &{inner})", types.join(", "))
        }
        Action::Promote(to) => format!("Action::Promote({})", ty(*to)),
        Action::Split { part, count } => {
            format!("Action::Split {{ part: {}, count: {count} }}", ty(*part))
        }
        Action::ToReg(list) => format!("Action::ToReg({})", register_slice(target, list)),
        Action::ToStack(size, align) => {
            format!("Action::ToStack {{ size: {size}, align: {align} }}")
        }
        Action::Delegate(to) => format!("Action::Delegate(ACTIONS_{to})"),
    }
}

fn classes(target: &Target, out: &mut String) {
    let numbers = |list: &[usize]| {
        let numbers: Vec<String> = list.iter().map(|r| target.registers[*r].number.to_string()).collect();
        format!("&[{}]", numbers.join(", "))
    };
    for class in &target.classes {
        let saved = |r: &usize| target.callee_saved.iter().any(|s| s.registers.contains(r));
        let (kept, free): (Vec<usize>, Vec<usize>) = class.members.iter().copied().partition(saved);
        let file = match class.file {
            RegFile::Scalar => "Scalar",
            RegFile::Vector => "Vector",
        };
        line!(out, "\n/// The td register class `{}`.", class.record);
        line!(
            out,
            "pub static {}: ClassInfo = ClassInfo {{",
            class.record.to_uppercase()
        );
        line!(out, "    name: {:?},", class.record);
        line!(out, "    file: RegFile::{file},");
        line!(out, "    preferred: {},", numbers(&free));
        line!(out, "    non_preferred: {},", numbers(&kept));
        line!(out, "    reserved: {},", numbers(&class.reserved));
        line!(out, "    spill_size: {},", class.spill_size);
        line!(out, "    spill_align: {},", class.spill_align);
        line!(out, "}};");
    }
}
