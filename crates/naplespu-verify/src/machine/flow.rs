//! The static control flow of code, and the order of its execution.

use npu_mc::raw::{JbaOp, JraOp};
use npu_mc::{Inst, Opcode, Operand, RawInst, SReg, decode, split};
use std::collections::BTreeSet;

/// The control flow of a function's code.
pub struct Flow {
    /// The position of each instruction in reverse postorder, by number; `None` if it is
    /// unreachable.
    pub order: Vec<Option<usize>>,
    /// The instructions with more than one predecessor.
    pub joins: BTreeSet<u32>,
    /// The offset of the instruction at each position.
    pub offsets: Vec<u32>,
}

/// Returns the word at an offset.
pub fn word_at(bytes: &[u8], offset: u32) -> Option<u32> {
    let at = offset as usize;
    let word = bytes.get(at..at + 4)?;
    Some(u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
}

/// Returns the targets of consecutive jumps from an offset on: the table of a branch by a register.
pub fn table_from(bytes: &[u8], end: u32, mut offset: u32) -> Vec<u32> {
    let mut out = Vec::new();
    while offset < end
        && let Some(word) = word_at(bytes, offset)
        && let RawInst::Jra(inst) = split(word)
        && inst.op == JraOp::Jmp
    {
        out.push(offset);
        offset += 4;
    }
    out
}

/// Returns the target of a jump by a register that the three instructions before it set to a sum
/// with `pc`: the sequence for a branch that does not reach its target.
fn far_target(bytes: &[u8], offset: u32) -> Option<u32> {
    let before = |count: u32| decode(word_at(bytes, offset.checked_sub(4 * count)?)?).ok();
    let half = |inst: Inst, opcode: Opcode| match inst.operands[..] {
        [_, Operand::Imm(half)] if inst.opcode == opcode => Some(half.cast_unsigned() & 0xffff),
        _ => None,
    };
    let high = half(before(3)?, Opcode::MOVEIHSI)?;
    let low = half(before(2)?, Opcode::MOVEILSI)?;
    let sum = before(1)?;
    let adds = sum.opcode == Opcode::ADDSSS_32 && sum.operands.contains(&Operand::S(SReg::PC));
    let target = (offset - 4).wrapping_add(high << 16 | low);
    (adds && target.is_multiple_of(4)).then_some(target)
}

fn successors(bytes: &[u8], end: u32, offset: u32) -> Vec<u32> {
    let next = offset + 4;
    let Some(word) = word_at(bytes, offset) else {
        return Vec::new();
    };
    let to = |distance: i32| offset.wrapping_add_signed(distance);
    let list = match split(word) {
        RawInst::Jba(inst) => match inst.op {
            JbaOp::Beqz | JbaOp::Bnez => vec![next, to(inst.offset)],
            JbaOp::Jret | JbaOp::Jeret => Vec::new(),
            // A jump through a register is a call that returns after it, or a branch by a table.
            JbaOp::Jmp => {
                if let Some(target) = far_target(bytes, offset) {
                    return vec![target];
                }
                let mut list = table_from(bytes, end, next);
                if list.is_empty() {
                    list.push(next);
                }
                list
            }
            JbaOp::Jmpsr | JbaOp::Jsys => vec![next],
        },
        RawInst::Jra(inst) if inst.op == JraOp::Jmp => vec![to(inst.offset)],
        _ => vec![next],
    };
    list.into_iter().filter(|&at| at < end && at % 4 == 0).collect()
}

impl Flow {
    /// Analyzes the instructions before `end`.
    pub fn new(bytes: &[u8], end: u32) -> Self {
        let count = (end / 4) as usize;
        let mut order = vec![None; count];
        let mut ways = vec![0u32; count];
        let mut postorder = Vec::new();
        let mut seen = vec![false; count];
        let mut stack: Vec<(u32, Vec<u32>)> = Vec::new();
        if count > 0 {
            seen[0] = true;
            ways[0] += 1;
            stack.push((0, successors(bytes, end, 0)));
        }
        while let Some((offset, rest)) = stack.last_mut() {
            match rest.pop() {
                Some(next) => {
                    ways[(next / 4) as usize] += 1;
                    if !std::mem::replace(&mut seen[(next / 4) as usize], true) {
                        stack.push((next, successors(bytes, end, next)));
                    }
                }
                None => {
                    postorder.push(*offset);
                    stack.pop();
                }
            }
        }
        postorder.reverse();
        for (at, &offset) in postorder.iter().enumerate() {
            order[(offset / 4) as usize] = Some(at);
        }
        let joins = (0..end).step_by(4).filter(|&at| ways[(at / 4) as usize] > 1).collect();
        Self {
            order,
            joins,
            offsets: postorder,
        }
    }
}
