//! Runs in a copy of the sources with the example of docs/td.md added, not in these sources.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::settings;
use cranelift_naplespu::isa;
use naplespu_jit::Program;
use npu_mc::{Inst, Opcode, Operand, SReg, asm, decode, disasm, encode};

const CLIF: &str = "function %f(i32, i32) -> i32 {
block0(v0: i32, v1: i32):
    v2 = bnot v0
    v3 = band v2, v1
    return v3
}";

#[test]
fn the_instruction_works_everywhere() {
    let inst = Inst::new(Opcode::ANDNSSS_32, [SReg::S0, SReg::S1, SReg::S2].map(Operand::S));
    let word = encode(&inst).unwrap();
    assert_eq!(word >> 24, 51);
    assert_eq!(decode(word).unwrap(), inst);
    assert_eq!(asm::instruction("andn_i32 s0, s1, s2").unwrap(), inst);
    assert_eq!(disasm::word_text(word), "andn_i32 s0, s1, s2");

    let isa = isa::lookup_by_name("naplespu").unwrap().finish(settings::Flags::new(settings::builder())).unwrap();
    let mut program = Program::new(isa);
    for function in cranelift_reader::parse_functions(CLIF).unwrap() {
        program.define(&function).unwrap();
    }
    let bytes = program.code("f").unwrap().bytes.clone();
    let words = bytes.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().unwrap()));
    let selected = words.filter_map(|word| decode(word).ok()).filter(|inst| inst.opcode == Opcode::ANDNSSS_32);
    assert_eq!(selected.count(), 1);
    let arguments = [DataValue::I32(0b0101), DataValue::I32(0b0110)];
    assert_eq!(program.call("f", &arguments).unwrap(), [DataValue::I32(0b0010)]);
}
