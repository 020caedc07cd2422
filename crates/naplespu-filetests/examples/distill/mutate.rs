//! Makes small changes of an instruction, like those of a faulty compiler, encoder or simulator.

use npu_mc::{Inst, Opcode, OperandKind, Operands, Reg, decode, encode};

/// A changed instruction.
pub struct Mutant {
    /// The kind of change.
    pub kind: &'static str,
    /// The instruction word.
    pub word: u32,
}

/// Returns the operand kinds of an opcode, and whether each operand is written.
fn shape(opcode: Opcode) -> impl Iterator<Item = (OperandKind, bool)> {
    opcode
        .desc()
        .operands
        .iter()
        .map(|operand| (operand.kind, operand.is_def))
}

/// Returns the next opcodes, in cyclic order, with the same format and operands.
fn siblings(opcode: Opcode) -> impl Iterator<Item = Opcode> {
    let all = Opcode::ALL.len();
    let others = (1..all).map(move |step| Opcode::ALL[(opcode.index() + step) % all]);
    others.filter(move |other| {
        let (a, b) = (opcode.desc(), other.desc());
        b.decodable && a.format == b.format && shape(opcode).eq(shape(*other))
    })
}

/// Returns the instruction with one operand replaced.
fn with(inst: &Inst, index: usize, operand: npu_mc::Operand) -> Inst {
    let mut operands: Operands = inst.operands;
    operands.set(index, operand);
    Inst {
        opcode: inst.opcode,
        operands,
    }
}

/// Returns all small changes of an instruction word, or none if it does not decode.
pub fn mutants(word: u32) -> Vec<Mutant> {
    let Ok(inst) = decode(word) else {
        return Vec::new();
    };
    let mut list: Vec<(&'static str, Inst)> = Vec::new();
    for (kind, opcode) in ["sibling", "second sibling"].into_iter().zip(siblings(inst.opcode)) {
        let operands = inst.operands;
        list.push((kind, Inst { opcode, operands }));
    }
    let described = inst.desc().operands;
    let sources: Vec<usize> = (0..described.len()).filter(|&index| !described[index].is_def).collect();
    if let [a, b, ..] = sources[..]
        && described[a].kind == described[b].kind
        && inst.operands[a] != inst.operands[b]
    {
        let swapped = with(&with(&inst, a, inst.operands[b]), b, inst.operands[a]);
        list.push(("swapped", swapped));
    }
    for (index, operand) in inst.operands.iter().enumerate() {
        if let Some(reg) = operand.reg() {
            let names = ["first register", "second register", "third register"];
            if let Some(other) = Reg::new(reg.file(), reg.number() ^ 1) {
                list.push((names[index.min(2)], with(&inst, index, other.into())));
            }
        }
        if let Some(value) = operand.imm() {
            let step = if inst.desc().flags.is_branch() { 4 } else { 1 };
            list.push(("more", with(&inst, index, value.wrapping_add(step).into())));
            list.push(("less", with(&inst, index, value.wrapping_sub(step).into())));
        }
    }
    list.push(("nothing", Inst::new(Opcode::NOP, [])));
    let encoded = list.into_iter().filter_map(|(kind, inst)| {
        let word = encode(&inst).ok()?;
        Some(Mutant { kind, word })
    });
    encoded.filter(|mutant| mutant.word != word).collect()
}
