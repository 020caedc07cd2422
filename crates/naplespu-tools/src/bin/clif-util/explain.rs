//! The provenance of each instruction as text, for `compile --explain`.

use cranelift_codegen::ir::Function;
use cranelift_naplespu::CompiledCode;
use cranelift_naplespu::explain::Explanation;
use npu_mc::machine::INSTRUCTION_SIZE;
use std::fmt::Write as _;

/// The column of the explanation, unless the instruction is longer.
const COLUMN: usize = 40;

/// Returns the assembly of the function with, for each instruction, its td record, its rules and
/// the instruction of the optimized CLIF that it comes from.
pub fn rules(code: &CompiledCode, explanation: &Explanation, func: &Function) -> String {
    let mut text = String::new();
    let mut words = code.bytes.chunks_exact(INSTRUCTION_SIZE as usize);
    let mut insts = explanation.insts.iter();
    for line in code.asm(Some(&func.params)).lines() {
        if !line.starts_with(' ') {
            // The start of a block.
            text.push_str(line);
        } else if let (Some(known), Some(word)) = (insts.next(), words.next()) {
            // Writing to a string does not fail.
            let _ = write!(text, "{line:COLUMN$} ; {}: {}", record(word), known.reason);
            if let Some(inst) = known.inst {
                let _ = write!(text, " ; {}", func.dfg.display_inst(inst));
            }
        } else if line.trim_start().starts_with(".long") {
            let _ = write!(text, "{line} ; constant vector");
        } else {
            let _ = write!(text, "{line:COLUMN$} ; padding");
        }
        text.push('\n');
    }
    text
}

/// Returns the name of the td record of an instruction.
fn record(word: &[u8]) -> &'static str {
    let word = word
        .iter()
        .rev()
        .fold(0u32, |value, &byte| value << 8 | u32::from(byte));
    npu_mc::decode(word).map_or(".long", |inst| inst.desc().name)
}
