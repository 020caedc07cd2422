//! The erratum "lost result before a taken branch" (`docs/errata.md`; td record `ErratumLostResult`).
//!
//! The scoreboard of a thread has one busy bit for each register. A taken branch clears the bit of the instruction that
//! issued in the cycle before it. If the result of that instruction arrives after the first instructions at the target issue:
//!
//! - an instruction there that reads the register reads its old value;
//! - an instruction there that writes the register sets the bit again, the late result clears it, and the next reader reads
//!   the late result instead of the new one.
//!
//! The results of floats with a latency of [`LOST_RESULT`](npu_mc::machine::LOST_RESULT) or more and the results of loads are
//! late by themselves. All other results of the integer, memory and branch units are late if results of the float unit take
//! the write port in the cycles before: they go first. Only the first instructions at the target ([`WINDOW`]) meet a result
//! that is late in this way.
//!
//! So no instruction with such a result may stand directly before a branch, unless the branch reads the result and waits for it. A
//! distance of two instructions is safe. The pass exchanges the instruction with an independent one before it; if that is not
//! possible, it inserts an instruction without effect. A `nop` does not help: it takes no issue slot.
//!
//! A call loses its own result, the return address, in the same way. [`wait_before_call`] keeps float results away from it.
//!
//! Float results of other threads count as well. A function with float instructions is taken for code that other threads run
//! too; one without is not guarded against float results of other threads.

use crate::finish::edit::Editor;
use crate::finish::effects::{Effects, Loss, RegSet};
use crate::finish::func::{CallKind, Fixup, MachFunction, McInst};
use crate::inst::reg::machine;
use crate::reason::Maker;
use npu_mc::{Inst, Opcode, Operand, Reg, Unit};

/// Instructions at the target of a branch that can meet an integer result which float results delay. Six float results in a
/// row delay it, which reaches a reader in the second place and a writer in the third. One more, because an exchange can bring
/// the next instruction forward by one place.
const WINDOW: usize = 4;

/// Float results in a row that make the return address of a call late.
const LATE_LINK: usize = 4;

/// Instructions before a call whose float results can follow each other up to its return address.
const BEFORE_CALL: usize = 8;

/// Makes the order of instructions safe.
pub fn run(func: &mut MachFunction) {
    let has_floats = has_floats(func);
    // Indices rise: the wait stands before the call's own instructions, the rest directly before the branch.
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

/// What makes a branch safe.
enum Change {
    /// The two instructions before it change places.
    Exchange,
    /// An instruction is inserted.
    Insert(McInst),
}

/// Whether the function has instructions of the float unit.
pub fn has_floats(func: &MachFunction) -> bool {
    func.insts().iter().any(|inst| inst.inst.desc().unit == Unit::Fp)
}

/// Whether the branch at the index can make the result of the instruction before it get lost.
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

/// Whether the branch can make the result of an instruction directly before it get lost. `touched` are the registers of
/// [`touched_at_target`].
pub fn is_lost(before: &Effects, branch: &Effects, touched: RegSet) -> bool {
    let is_late = match before.loss {
        Loss::Never => false,
        Loss::BehindFloats => before.writes.meets(touched),
        Loss::Always => true,
    };
    is_late && !before.writes.meets(branch.reads)
}

/// The registers that the first instructions at the target of a branch read or write; all, if the target is in another
/// function. Empty without float instructions, which make this matter.
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

/// Where a wait for the float results before a call has to stand, and the wait, if there are so many results that the return
/// address would be late. A function that begins with `jret` would return to an old address.
fn wait_before_call(insts: &[McInst], call: usize) -> Option<(usize, McInst)> {
    let jump = insts.get(call).filter(|inst| inst.call == CallKind::Call)?;
    // The return address is written by the instruction glued to the jump, or by the jump.
    let at = (0..call)
        .rev()
        .take_while(|&index| insts[index].glued)
        .last()
        .unwrap_or(call);
    let mut pending: Vec<RegSet> = Vec::new();
    for inst in &insts[at.saturating_sub(BEFORE_CALL)..at] {
        if inst.is_branch() {
            // It issues nothing for some cycles when it is taken.
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
    Some((at, McInst::plain(inst, jump.origin.remade_by(Maker::Hazard))))
}

/// Whether the instruction before the branch can change places with the one before it.
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

/// An instruction that takes an issue slot, waits for nothing and changes nothing that anybody reads.
fn separator(branch: &McInst) -> McInst {
    let inst = Inst::new(Opcode::MOVEISI, [machine::SCRATCH.into(), Operand::Imm(0)]);
    McInst::plain(inst, branch.origin.remade_by(Maker::Hazard))
}
