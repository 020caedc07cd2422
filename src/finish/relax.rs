//! Branch relaxation: branches that do not reach.
//!
//! A branch reaches 128 KiB in either direction. One that has to go further becomes a sequence that adds the distance
//! to its own address. A sequence is longer than the branch it replaces and may push others out of reach, so this
//! repeats until nothing changes; it ends because branches only ever grow.
//!
//! A near call reaches as far, and where its callee is the linker knows, which puts a veneer next to the function if that is too far. In a long function
//! the veneer may be out of reach as well, so calls there take the whole address of the callee.

use super::expand::HALVES;
use super::func::{CallKind, Fixup, FrameStep, Label, MachFunction, McInst};
use crate::error::CompileError;
use crate::inst::ops::fits;
use crate::inst::reg::machine;
use crate::reason::Maker;
use npu_mc::machine::INSTRUCTION_SIZE;
use npu_mc::reloc::Reloc as RelocKind;
use npu_mc::{Inst, Opcode, Operand, OperandKind};
use rustc_hash::{FxHashMap, FxHashSet};

/// Bytes of one instruction.
const WORD: u32 = INSTRUCTION_SIZE;

/// Instructions of a function from which on its calls are far: half of what a call reaches, so that a veneer can stand on either side, and others
/// beside it.
const LONG: usize = 1 << 14;

fn reaches(from: usize, to: usize) -> bool {
    let distance = (to as i64 - from as i64) * i64::from(WORD);
    i32::try_from(distance).is_ok_and(|distance| fits(OperandKind::Brtarget18, distance))
}

/// Replaces every branch that does not reach, and near calls of a long function. With `links_by_hand` an indirect call does not write the right address
/// to return to ([`Erratum::IndirectCallLink`](npu_mc::errata::Erratum::IndirectCallLink)).
///
/// # Errors
///
/// [`CompileError::TooLarge`] for a branch table that cannot reach its own veneers.
pub fn run(func: &mut MachFunction, links_by_hand: bool) -> Result<(), CompileError> {
    if func.insts().len() > LONG {
        far_calls(func, links_by_hand);
    }
    let mut veneers: FxHashSet<Label> = FxHashSet::default();
    // The distance from one end to the other decides at once for all but huge functions.
    while !reaches(0, func.insts().len()) {
        let mut far = vec![false; func.insts().len()];
        for (index, inst) in func.insts().iter().enumerate() {
            let (Fixup::Branch(target) | Fixup::TableEntry { target, .. }) = inst.fixup else {
                continue;
            };
            far[index] = !reaches(index, func.position(target)?);
            if far[index] && veneers.contains(&target) {
                return Err(CompileError::TooLarge(
                    "a branch table is too long for its entries to reach the code after it".to_owned(),
                ));
            }
        }
        if !far.contains(&true) {
            break;
        }
        replace(func, &far, &mut veneers)?;
    }
    Ok(())
}

/// Calls by the whole address of the callee.
fn far_calls(func: &mut MachFunction, links_by_hand: bool) {
    let scratch = Operand::from(machine::SCRATCH);
    func.rebuild(|func, _, call| {
        let target = match &call.fixup {
            Fixup::Reloc {
                kind: RelocKind::Branch,
                target,
                addend,
            } if call.call != CallKind::None => (target.clone(), *addend),
            _ => return func.push(call),
        };
        let plain = |inst| McInst {
            frame: call.frame,
            ..McInst::plain(inst, call.origin.remade_by(Maker::Relax))
        };
        for (op, kind) in HALVES {
            func.push(McInst {
                fixup: Fixup::Reloc {
                    kind,
                    target: target.0.clone(),
                    addend: target.1,
                },
                ..plain(Inst::new(op, [scratch, Operand::Imm(0)]))
            });
        }
        let jump = if call.call == CallKind::TailCall {
            Opcode::JUMPREG
        } else if links_by_hand {
            let distance = (2 * WORD).cast_signed();
            func.push(McInst {
                glued: true,
                ..plain(Inst::new(
                    Opcode::ADDSSI,
                    [machine::RA.into(), machine::PC.into(), distance.into()],
                ))
            });
            Opcode::JUMPREG
        } else {
            Opcode::JMPSR_REG
        };
        func.push(McInst {
            call: call.call,
            trap: call.trap,
            glued: call.glued,
            ..plain(Inst::new(jump, [scratch]))
        });
    });
}

fn replace(func: &mut MachFunction, far: &[bool], veneers: &mut FxHashSet<Label>) -> Result<(), CompileError> {
    // Entries of branch tables stay one instruction and go to a veneer after their table, one for each target.
    let mut entries: FxHashMap<usize, Label> = FxHashMap::default();
    let mut islands: FxHashMap<usize, Vec<(Label, Label)>> = FxHashMap::default();
    let mut known: FxHashMap<(usize, Label), Label> = FxHashMap::default();
    for (index, _) in far.iter().enumerate().filter(|(_, far)| **far) {
        if let Fixup::TableEntry { target, end } = func.insts()[index].fixup {
            let place = func.position(end)?;
            let veneer = *known.entry((place, target)).or_insert_with(|| {
                let veneer = func.new_label();
                veneers.insert(veneer);
                islands.entry(place).or_default().push((veneer, target));
                veneer
            });
            entries.insert(index, veneer);
        }
    }
    // A conditional branch that is too far becomes its opposite, which skips the sequence.
    let conditional = |inst: &McInst| matches!(inst.fixup, Fixup::Branch(_)) && invert(inst.inst.opcode).is_some();
    let count = func
        .insts()
        .iter()
        .zip(far)
        .filter(|(inst, far)| **far && conditional(inst))
        .count();
    let skips: Vec<Label> = (0..count).map(|_| func.new_label()).collect();
    let mut skips = skips.into_iter();
    func.rebuild(|func, index, mut inst| {
        let like = inst.clone();
        match inst.fixup {
            Fixup::Branch(target) if far[index] => {
                if let Some(inverse) = invert(inst.inst.opcode)
                    && let Some(skip) = skips.next()
                {
                    inst.inst.opcode = inverse;
                    inst.fixup = Fixup::Branch(skip);
                    inst.trap = None;
                    func.push(inst);
                    push_far_jump(func, target, &like);
                    func.bind(skip);
                } else {
                    push_far_jump(func, target, &like);
                }
            }
            Fixup::TableEntry { ref mut target, .. } => {
                if let Some(&veneer) = entries.get(&index) {
                    *target = veneer;
                }
                func.push(inst);
            }
            _ => func.push(inst),
        }
        // After the last entry of a table, so that labels at its end stay after the island.
        for &(veneer, target) in islands.get(&(index + 1)).into_iter().flatten() {
            func.bind(veneer);
            push_far_jump(func, target, &like);
        }
    });
    Ok(())
}

/// The opposite of a conditional branch; none for an unconditional one.
pub(super) fn invert(op: Opcode) -> Option<Opcode> {
    match op {
        Opcode::BEQZ => Some(Opcode::BNEZ),
        Opcode::BNEZ => Some(Opcode::BEQZ),
        _ => None,
    }
}

/// A jump to anywhere in the function: the distance is added to the address of the adding instruction.
fn push_far_jump(func: &mut MachFunction, target: Label, like: &McInst) {
    let scratch = Operand::from(machine::SCRATCH);
    let mut push = |inst, fixup, trap| {
        func.push(McInst {
            inst,
            fixup,
            origin: like.origin.remade_by(Maker::Relax),
            trap,
            glued: false,
            call: CallKind::None,
            frame: FrameStep::None,
        });
    };
    let high = Fixup::FarHigh {
        target,
        after: 2 * WORD,
    };
    push(Inst::new(Opcode::MOVEIHSI, [scratch, Operand::Imm(0)]), high, None);
    let low = Fixup::FarLow { target, after: WORD };
    push(Inst::new(Opcode::MOVEILSI, [scratch, Operand::Imm(0)]), low, None);
    let sum = Inst::new(Opcode::ADDSSS_32, [scratch, machine::PC.into(), scratch]);
    push(sum, Fixup::None, None);
    push(Inst::new(Opcode::JUMPREG, [scratch]), Fixup::None, like.trap);
}
