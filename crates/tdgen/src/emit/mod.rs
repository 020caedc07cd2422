//! Generates Rust source of the tables: the generated module of `npu-mc`.
//!
//! The source holds data and the two decision trees; `npu-mc` has hand-written code that interprets
//! the data. The source refers to types of the modules `reg`, `inst`, `cc`, `env`, `errata`,
//! `machine`, `raw` and `reloc` of `npu-mc`.

mod abi;
mod decoder;
mod hardware;
mod instructions;
mod registers;
mod semantics;
mod settings;
mod system;

use crate::model::{Named, Target};

pub use semantics::emit_semantics;
pub use settings::emit_settings;

/// Appends a formatted line to a `String`.
macro_rules! line {
    ($out:expr, $($arg:tt)*) => {{
        $out.push_str(&format!($($arg)*));
        $out.push('\n');
    }};
}
pub(crate) use line;

/// Generates the module of `npu-mc`.
pub fn emit_mc(target: &Target) -> String {
    let mut out = String::new();
    line!(out, "// Made from the target description in td/ by tdgen.");
    line!(
        out,
        "use crate::desc::{{Action, AsmPiece, BitRun, ClassInfo, Convention, ErratumInfo, Formula, HwOpInfo, InstDesc,"
    );
    line!(out, "    InstFlags, OperandDesc, OperandRange, RegInfo, RelocInfo}};");
    line!(out, "use crate::reg::{{Reg, RegFile, SReg, VReg}};");
    registers::emit(target, &mut out);
    instructions::emit(target, &mut out);
    decoder::emit(target, &mut out);
    instructions::emit_relations(target, &mut out);
    hardware::emit(target, &mut out);
    abi::emit(target, &mut out);
    system::emit(target, &mut out);
    out
}

/// Returns a register as a constant expression.
fn register(target: &Target, index: usize) -> String {
    let r = &target.registers[index];
    match r.file {
        crate::model::RegFile::Scalar => format!("Reg::S(SReg({}))", r.number),
        crate::model::RegFile::Vector => format!("Reg::V(VReg({}))", r.number),
    }
}

/// Returns a slice of registers as a constant expression.
fn register_slice(target: &Target, list: &[usize]) -> String {
    let items: Vec<String> = list.iter().map(|r| register(target, *r)).collect();
    format!("&[{}]", items.join(", "))
}

/// Generates an enum of named records, with `ALL` and `name`.
fn named_enum(out: &mut String, doc: &str, name: &str, variants: &[(String, &Named)]) {
    let (mut list, mut names) = (String::new(), String::new());
    line!(
        out,
        "\n/// {doc}\n#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]\n#[repr(u8)]\npub enum {name} {{"
    );
    for (variant, named) in variants {
        let doc = match named.doc.as_str() {
            "" => format!("The td record `{}`.", named.record),
            doc => doc.to_owned(),
        };
        line!(out, "    /// {doc}\n    {variant},");
        list += &format!("{name}::{variant}, ");
        line!(names, "            {name}::{variant} => {:?},", named.name);
    }
    line!(
        out,
        "}}\nimpl {name} {{\n    /// All of them in td's order.\n    pub const ALL: &'static [{name}] = &[{list}];\n    \
         /// The name in td.\n    pub const fn name(self) -> &'static str {{\n        match self {{\n{names}        }}\n    }}\n}}"
    );
}

/// Returns variant names in upper camel case, `RR` as `Rr`.
fn variants(named: &[Named]) -> Vec<(String, &Named)> {
    named
        .iter()
        .map(|n| (crate::load::pascal(&n.name.to_lowercase()), n))
        .collect()
}
