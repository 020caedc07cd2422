//! A workaround for the erratum "lost result before a taken branch" (`docs/errata.md`; td record
//! `ErratumLostResult`).
//!
//! The scoreboard of a thread has one busy bit for each register. A taken branch clears the bit of
//! the instruction that issued in the cycle before it. If the result of that instruction arrives
//! after the first instructions at the target issue:
//!
//! - an instruction there that reads the register reads its old value;
//! - an instruction there that writes the register sets the bit again, the late result clears it,
//!   and the next reader reads the late result instead of the new one.
//!
//! Results of loads are late, and so are results of the float unit with a latency of
//! [`LOST_RESULT`](npu_mc::machine::LOST_RESULT) or more. All other results of the integer, memory
//! and branch units are late if results of the float unit, which have priority, occupy the write
//! port in the cycles before. Only the first instructions at the target ([`WINDOW`]) meet a result
//! delayed in this way.
//!
//! So no instruction with such a result may directly precede a branch, unless the branch reads the
//! result and waits for it. A distance of two instructions is safe. The pass exchanges the
//! instruction with an independent one before it. If that is not possible, it inserts an
//! instruction without effect. A `nop` does not help, because it does not occupy an issue slot.
//!
//! A call loses its own result, the return address, in the same way. [`wait_before_call`] keeps
//! float results away from it.
//!
//! Float results of other threads count as well. The pass assumes that other threads run the same
//! code: it protects functions with float instructions, and does not protect a function without any
//! from float results of other threads.

use crate::inst::reg::machine;
use crate::post_ra::edit::Editor;
use crate::post_ra::effects::{Effects, Loss, RegSet};
use crate::post_ra::func::{CallKind, Fixup, MachFunction, McInst};
use crate::provenance::Producer;
use npu_mc::{Inst, Opcode, Operand, Reg, Unit};

/// The number of instructions at a branch target that can meet an integer result delayed by float
/// results. Six float results in a row delay it up to a read by the second instruction and a write
/// by the third. The fourth is included because an exchange can move the next instruction forward
/// by one.
const WINDOW: usize = 4;

/// The number of consecutive float results that make the return address of a call late.
const LATE_LINK: usize = 4;

/// The number of instructions before a call whose float results can arrive directly before its
/// return address.
const BEFORE_CALL: usize = 8;

/// Makes the order of instructions safe.
pub fn run(func: &mut MachFunction) {
    let has_floats = has_floats(func);
    // Indices rise: a wait precedes the instructions of the call, and all other changes directly
    // precede the branch.
    let mut found: Vec<(usize, Change)> = Vec::new();
    for block in 0..func.block_count() {
        let range = func.block_range(block);
        let Some(branch) = range.end.checked_sub(1).filter(|&branch| branch >= range.start) else {
            continue;
        };
        if has_floats && let Some((at, wait)) = wait_before_call(func.insts(), branch) {
            found.push((at, Change::Insert(wait)));
        } else if is_hazard(func, branch, has_floats) {
            let exchange = branch >= range.start + 2 && can_exchange(func, branch, has_floats);
            let change = if exchange {
                Change::Exchange
            } else {
                Change::Insert(separator(&func.insts()[branch]))
            };
            found.push((branch, change));
        }
    }
    if found.is_empty() {
        return;
    }
    let mut edit = Editor::without_effects(func);
    for (at, change) in found {
        match change {
            Change::Exchange => edit.reorder(at - 2..at, &[1, 0]),
            Change::Insert(inst) => edit.insert(at, inst),
        }
    }
    edit.finish();
}

/// A change that makes a branch safe.
enum Change {
    /// An exchange of the two instructions before the branch.
    Exchange,
    /// An inserted instruction.
    Insert(McInst),
}

/// Returns whether the function contains instructions of the float unit.
pub fn has_floats(func: &MachFunction) -> bool {
    func.insts().iter().any(|inst| inst.inst.desc().unit == Unit::Fp)
}

/// Returns whether the branch at the index can cause the loss of the result of the instruction
/// before it.
fn is_hazard(func: &MachFunction, branch: usize, has_floats: bool) -> bool {
    let insts = func.insts();
    let Some(before) = branch.checked_sub(1).and_then(|index| insts.get(index)) else {
        return false;
    };
    let Some(taken) = insts.get(branch).filter(|inst| inst.is_branch()) else {
        return false;
    };
    let touched = touched_at_target(func, branch, has_floats);
    !before.glued && is_lost(&Effects::of(&before.inst), &Effects::of(&taken.inst), touched)
}

/// Returns whether the branch can cause the loss of the result of an instruction directly before
/// it. `touched` are the registers returned by [`touched_at_target`].
pub fn is_lost(before: &Effects, branch: &Effects, touched: RegSet) -> bool {
    let is_late = match before.loss {
        Loss::Never => false,
        Loss::AfterFloats => before.writes.meets(touched),
        Loss::Always => true,
    };
    is_late && !before.writes.meets(branch.reads)
}

/// Returns the registers that the first instructions at a branch target read or write, or all
/// registers if the target is in another function. Empty if the function has no float instructions,
/// because only they make it relevant.
pub fn touched_at_target(func: &MachFunction, branch: usize, has_floats: bool) -> RegSet {
    if !has_floats {
        return RegSet::EMPTY;
    }
    let insts = func.insts();
    let Some(Fixup::Branch(target)) = insts.get(branch).map(|inst| &inst.fixup) else {
        return RegSet::ALL;
    };
    let Ok(start) = func.position(*target) else {
        return RegSet::ALL;
    };
    let first = insts
        .iter()
        .skip(start)
        .take(WINDOW)
        .map(|inst| Effects::of(&inst.inst));
    first.fold(RegSet::EMPTY, |set, effects| {
        set.or(effects.depends_on()).or(effects.writes)
    })
}

/// Returns a wait for the float results before a call, with the index where it is inserted, if
/// these results would make the return address late. A callee that begins with `jret` would then
/// return to an old address.
fn wait_before_call(insts: &[McInst], call: usize) -> Option<(usize, McInst)> {
    let jump = insts.get(call).filter(|inst| inst.call == CallKind::Call)?;
    // The return address is written by the jump, or by an instruction glued to it.
    let at = (0..call)
        .rev()
        .take_while(|&index| insts[index].glued)
        .last()
        .unwrap_or(call);
    let mut pending: Vec<RegSet> = Vec::new();
    for inst in &insts[at.saturating_sub(BEFORE_CALL)..at] {
        if inst.is_branch() {
            // A taken branch causes some cycles without an issue.
            pending.clear();
            continue;
        }
        let effects = Effects::of(&inst.inst);
        let touched = effects.depends_on().or(effects.writes);
        if let Some(last) = pending.iter().rposition(|result| result.meets(touched)) {
            pending.drain(..=last);
        }
        if effects.is_float {
            pending.push(effects.writes);
        }
    }
    let awaited = pending.last().filter(|_| pending.len() >= LATE_LINK)?.iter().next()?;
    let inst = match awaited {
        Reg::S(reg) => Inst::new(Opcode::MOVE_SS_32, [machine::SCRATCH.into(), reg.into()]),
        Reg::V(reg) => Inst::new(
            Opcode::GET_LANEIimm,
            [machine::SCRATCH.into(), reg.into(), Operand::Imm(0)],
        ),
    };
    Some((at, McInst::plain(inst, jump.origin.with_producer(Producer::Hazard))))
}

/// Returns whether the instruction before the branch can be exchanged with its predecessor.
fn can_exchange(func: &MachFunction, branch: usize, has_floats: bool) -> bool {
    let insts = func.insts();
    let (first, second) = (&insts[branch - 2], &insts[branch - 1]);
    let glued = first.glued || branch >= 3 && insts[branch - 3].glued;
    let in_place = first.trap.is_some() || second.trap.is_some();
    if glued || in_place || !matches!(first.fixup, Fixup::None) {
        return false;
    }
    let (first, second) = (Effects::of(&first.inst), Effects::of(&second.inst));
    let touched = touched_at_target(func, branch, has_floats);
    if first.is_branch || is_lost(&first, &Effects::of(&insts[branch].inst), touched) {
        return false;
    }
    let share_registers =
        first.writes.meets(second.depends_on().or(second.writes)) || first.depends_on().meets(second.writes);
    let share_memory = first.touches_memory() && second.touches_memory();
    let reads_pc = first.reads.or(second.reads).contains(machine::PC);
    !(share_registers || share_memory || reads_pc)
}

/// Returns an instruction that occupies an issue slot, waits for nothing, and writes only the
/// scratch register.
fn separator(branch: &McInst) -> McInst {
    let inst = Inst::new(Opcode::MOVEISI, [machine::SCRATCH.into(), Operand::Imm(0)]);
    McInst::plain(inst, branch.origin.with_producer(Producer::Hazard))
}
