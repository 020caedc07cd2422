//! Generates the register files.

use super::line;
use crate::model::{RegFile, Target};

pub(super) fn emit(target: &Target, out: &mut String) {
    for (file, ty, table) in [(RegFile::Scalar, "SReg", "SREGS"), (RegFile::Vector, "VReg", "VREGS")] {
        let registers: Vec<_> = target.registers.iter().filter(|r| r.file == file).collect();
        line!(out, "\npub(crate) static {table}: [RegInfo; {}] = [", registers.len());
        for r in &registers {
            line!(out, "    RegInfo {{ name: {:?}, dwarf: {} }},", r.asm_name, r.dwarf);
        }
        line!(out, "];");
        line!(out, "impl {ty} {{");
        for r in &registers {
            line!(out, "    /// `{}`, the td record `{}`.", r.asm_name, r.record);
            line!(
                out,
                "    pub const {}: {ty} = {ty}({});",
                r.asm_name.to_uppercase(),
                r.number
            );
        }
        line!(out, "}}");
    }
}
