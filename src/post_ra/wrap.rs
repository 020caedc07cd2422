//! Shrink-wrapping: sets up the frame only on the paths that need it.
//!
//! A function that contains calls saves registers at entry and restores them before it returns,
//! even on a path without a call. If such a path exists, the frame setup moves to the point where
//! the other paths leave it. The blocks before that point, the early blocks, have no frame:
//! registers that the frame would have saved are renamed there, and moved to their original names
//! where the frame is set up. The return block shared by both kinds of paths is duplicated for the
//! early blocks.

use super::cfg::{Liveness, successors};
use super::copyprop::as_move;
use super::effects::{Conventions, Effects, RegSet};
use super::func::{CallKind, Fixup, FrameStep, Label, MachFunction, McInst};
use super::value_locations;
use crate::code::LabelLoc;
use crate::inst::reg::machine;
use crate::provenance::Producer;
use npu_mc::{Inst, Opcode, Operand, Reg, SReg};
use smallvec::SmallVec;

/// The maximum number of instructions in copies of the last block.
const MAX_COPIED: usize = 16;

/// Moves the setup of the frame, if a path then needs no frame. `free` are the registers that the
/// calling convention lets a function change.
pub fn run(func: &mut MachFunction, free: RegSet, conventions: &Conventions) {
    if func.insts().first().is_none_or(|first| first.frame != FrameStep::Enter) {
        return;
    }
    func.find_effects();
    let makes_fp =
        |(inst, effects): (&McInst, &Effects)| inst.frame == FrameStep::Enter && effects.writes.contains(machine::FP);
    if func.insts.iter().zip(&func.effects).any(makes_fp) {
        // A stack walk by frame pointers needs one in every function.
        return;
    }
    let Some(paths) = Paths::new(func) else { return };
    let liveness = Liveness::new(func, conventions);
    let Some(renames) = Renames::new(func, &paths, &liveness, free, conventions) else {
        return;
    };
    rewrite(func, &paths, &renames);
}

/// The blocks with and without a frame.
struct Paths {
    /// For each block whether it is entered, and left again, without a frame.
    early: Vec<bool>,
    /// The frame is set up before this block. All its predecessors are early.
    start: usize,
    /// The block that ends both kinds of paths, if there is one.
    last: Option<usize>,
}

impl Paths {
    fn new(func: &MachFunction) -> Option<Self> {
        if needs_frame(func, 0) {
            return None;
        }
        let count = func.block_count();
        let succs: Vec<SmallVec<[usize; 2]>> = (0..count).map(|block| successors(func, block)).collect();
        let needs_frame: Vec<bool> = (0..count).map(|block| needs_frame(func, block)).collect();
        if !needs_frame.contains(&true) {
            return None;
        }
        let mut preds: Vec<SmallVec<[usize; 2]>> = vec![SmallVec::new(); count];
        for (block, succs) in succs.iter().enumerate() {
            succs.iter().for_each(|&succ| preds[succ].push(block));
        }
        let returns = |block: usize| {
            func.terminator(block)
                .is_some_and(|last| last.inst.opcode == Opcode::JRET)
        };
        // The blocks from which a return is reachable without a frame, and those from which a block
        // that needs a frame is reachable.
        let can_return = reached((0..count).filter(|&block| returns(block)), &preds, |block| {
            !needs_frame[block]
        });
        let can_need = reached((0..count).filter(|&block| needs_frame[block]), &preds, |_| true);
        if !can_return[0] {
            return None;
        }
        let early = reached([0].into_iter(), &succs, |block| can_return[block]);
        // The paths must diverge at a single block.
        let mut starts = (0..count)
            .filter(|&block| !early[block] && can_need[block] && preds[block].iter().any(|&pred| early[pred]));
        let (Some(start), None) = (starts.next(), starts.next()) else {
            return None;
        };
        if preds[start].iter().any(|&pred| !early[pred]) || func.block_range(start).is_empty() {
            return None;
        }
        let late = reached([start].into_iter(), &succs, |_| true);
        let mut shared = (0..count).filter(|&block| early[block] && late[block]);
        let last = match (shared.next(), shared.next()) {
            (None, _) => None,
            (Some(block), None) if returns(block) => Some(block),
            _ => return None,
        };
        if let Some(last) = last {
            let body = func.insts()[func.block_range(last)].iter();
            let length = body.filter(|inst| inst.frame == FrameStep::None).count();
            let copies = preds[last].iter().filter(|&&pred| early[pred]).count();
            if length * copies > MAX_COPIED || preds[last].iter().any(|&pred| func.block_range(pred).is_empty()) {
                return None;
            }
        }
        Some(Self { early, start, last })
    }
}

/// Returns the blocks that are reachable from the given blocks along `edges`, through blocks
/// accepted by `through`. The given blocks are included if `through` accepts them.
fn reached(
    from: impl Iterator<Item = usize>,
    edges: &[SmallVec<[usize; 2]>],
    through: impl Fn(usize) -> bool,
) -> Vec<bool> {
    let mut found = vec![false; edges.len()];
    let mut todo: Vec<usize> = from.filter(|&block| through(block)).collect();
    while let Some(block) = todo.pop() {
        if !std::mem::replace(&mut found[block], true) {
            todo.extend(edges[block].iter().filter(|&&next| !found[next] && through(next)));
        }
    }
    found
}

/// Returns whether the block needs the frame, apart from its setup and removal.
///
/// Calls, uses of the stack or of the link, and computed jumps need it.
fn needs_frame(func: &MachFunction, block: usize) -> bool {
    let reserved: RegSet = [machine::SP, machine::FP, machine::RA].into_iter().collect();
    func.block_range(block).any(|index| {
        let (inst, effects) = (&func.insts()[index], &func.effects[index]);
        let is_plain_return = inst.inst.opcode == Opcode::JRET;
        // The result is all ones for any source.
        let is_constant = inst.inst.opcode == Opcode::ORSSI && inst.inst.operands.get(2) == Some(&Operand::Imm(-1));
        inst.frame == FrameStep::None
            && !is_plain_return
            && !is_constant
            && (inst.call != CallKind::None
                || effects.reads.or(effects.writes).meets(reserved)
                || inst.inst.opcode == Opcode::JUMPREG)
    })
}

/// The register renames in early blocks.
struct Renames {
    /// For each register that the frame saves and early blocks use, its replacement.
    list: Vec<(SReg, SReg)>,
    /// The entries of `list` whose register is live where the frame is set up.
    moved_at_start: Vec<(SReg, SReg)>,
    /// The registers that the frame saves.
    saved: RegSet,
}

impl Renames {
    fn new(
        func: &MachFunction,
        paths: &Paths,
        liveness: &Liveness,
        free: RegSet,
        conventions: &Conventions,
    ) -> Option<Self> {
        let saved: RegSet = enters(func)
            .filter(|inst| inst.inst.desc().flags.may_store())
            .filter_map(|inst| inst.inst.operands.first()?.reg())
            .collect();
        let mut named = RegSet::EMPTY;
        let mut written = RegSet::EMPTY;
        let mut moves: Vec<(SReg, Option<SReg>)> = Vec::new();
        let mut live = liveness.live_in(paths.start);
        for block in (0..func.block_count()).filter(|&block| paths.early[block]) {
            live = live.or(liveness.live_in(block)).or(liveness.live_out(block));
            // An edge to a path that never ends and needs no frame.
            let others = successors(func, block);
            let mut others = others.iter().filter(|&&succ| !paths.early[succ] && succ != paths.start);
            if others.any(|&succ| liveness.live_in(succ).meets(saved)) {
                return None;
            }
            for index in func.block_range(block) {
                let (inst, effects) = (&func.insts()[index], &func.effects[index]);
                if inst.frame != FrameStep::None || inst.inst.opcode == Opcode::JRET {
                    continue;
                }
                named = named.or(effects.reads).or(effects.writes);
                for reg in effects.writes.and(saved).scalars().iter() {
                    if let Reg::S(reg) = reg {
                        let source = as_move(inst, conventions).map(|(_, from)| from);
                        moves.push((reg, source.filter(|_| !written.contains(Reg::S(reg)))));
                    }
                }
                written = written.or(effects.writes);
            }
        }
        if named.and(saved).scalars() != named.and(saved) {
            // Vector registers are not renamed.
            return None;
        }
        let mut others = free
            .scalars()
            .without(named.or(live))
            .iter()
            .filter_map(|reg| match reg {
                Reg::S(reg) => Some(reg),
                Reg::V(_) => None,
            });
        let mut list = Vec::new();
        for reg in named.and(saved).iter() {
            let Reg::S(reg) = reg else { continue };
            // A copy of a register that does not change is redundant.
            let mut sources = moves.iter().filter(|(to, _)| *to == reg).map(|(_, from)| *from);
            let original = match (sources.next(), sources.next()) {
                (Some(Some(from)), None) => Some(from),
                _ => None,
            };
            let original = original.filter(|&from| free.without(written).contains(Reg::S(from)));
            list.push((
                reg,
                match original {
                    Some(from) => from,
                    None => others.next()?,
                },
            ));
        }
        let needed = liveness.live_in(paths.start);
        let moved_at_start = list.iter().copied().filter(|(reg, _)| needed.contains(Reg::S(*reg)));
        Some(Self {
            moved_at_start: moved_at_start.collect(),
            list,
            saved,
        })
    }

    fn rename(&self, inst: &mut McInst) {
        for operand in 0..inst.inst.operands.len() {
            if let Some(&Operand::S(reg)) = inst.inst.operands.get(operand)
                && let Some(&(_, new)) = self.list.iter().find(|(old, _)| *old == reg)
            {
                inst.inst.operands.set(operand, new.into());
            }
        }
    }
}

/// Returns the instructions of the frame setup.
fn enters(func: &MachFunction) -> impl Iterator<Item = &McInst> {
    func.insts().iter().filter(|inst| inst.frame == FrameStep::Enter)
}

fn rewrite(func: &mut MachFunction, paths: &Paths, renames: &Renames) {
    let count = func.block_count();
    let enter: Vec<McInst> = enters(func).cloned().collect();
    let mut block_of = Vec::with_capacity(func.insts().len());
    for block in 0..count {
        block_of.resize(func.block_range(block).end, block);
    }
    let without_frame = |inst: &&McInst| inst.frame == FrameStep::None;
    let copy: Vec<McInst> = match paths.last {
        Some(last) => func.insts()[func.block_range(last)]
            .iter()
            .filter(without_frame)
            .cloned()
            .map(|mut inst| {
                renames.rename(&mut inst);
                inst
            })
            .filter(|inst| !is_self_move(inst))
            .collect(),
        None => Vec::new(),
    };
    let is_late = |block: usize| !paths.early[block] || Some(block) == paths.last;
    let start = func.block_range(paths.start).start;
    // An early block continues with the last block by a jump, which the copy replaces, by falling
    // through, or by a branch.
    let last_label = paths.last.and_then(|last| func.label(last));
    let mut falls = vec![false; count];
    if let Some(last) = paths.last.filter(|&last| last > 0) {
        let before = last - 1;
        let falls_in = func
            .terminator(before)
            .is_none_or(|inst| !matches!(inst.inst.opcode, Opcode::JMP | Opcode::JRET | Opcode::JUMPREG));
        falls[before] = falls_in && !is_late(before);
    }
    let jumps_to_last = |inst: &McInst| matches!(inst.fixup, Fixup::Branch(target) if Some(target) == last_label);
    // Whether the instruction is the last one of its block.
    let ends = |index: usize| block_of.get(index + 1) != Some(&block_of[index]);
    value_locations::remove(func, |index, inst, loc| {
        let block = block_of[index];
        let saved = match loc {
            LabelLoc::Reg(reg) => renames.saved.contains(reg),
            LabelLoc::Stack(_) => true,
        };
        let moves = index == start || !is_late(block);
        let copied = !is_late(block) && ends(index) && (jumps_to_last(inst) || falls[block]);
        saved && moves || copied
    });
    let mut copy_label: Option<Label> = None;
    let total = block_of.len();
    func.rebuild(|func, index, mut inst| {
        let block = block_of[index];
        if index == start {
            for inst in &enter {
                func.push(inst.clone());
            }
            for &(reg, name) in &renames.moved_at_start {
                let operands = [Operand::from(reg), name.into()];
                let origin = inst.origin.with_producer(Producer::Prologue);
                func.push(McInst::plain(Inst::new(Opcode::MOVE_SS_32, operands), origin));
            }
        }
        if is_late(block) {
            if inst.frame != FrameStep::Enter {
                func.push(inst);
            }
        } else if inst.frame == FrameStep::None {
            let jumps = jumps_to_last(&inst);
            if jumps && inst.inst.opcode == Opcode::JMP {
                copy.iter().for_each(|inst| func.push(inst.clone()));
            } else {
                renames.rename(&mut inst);
                if jumps {
                    let label = *copy_label.get_or_insert_with(|| func.new_label());
                    inst.fixup = Fixup::Branch(label);
                }
                if !is_self_move(&inst) {
                    func.push(inst);
                }
                if falls[block] && ends(index) {
                    copy.iter().for_each(|inst| func.push(inst.clone()));
                }
            }
        }
        if index + 1 == total
            && let Some(label) = copy_label
        {
            func.bind(label);
            copy.iter().for_each(|inst| func.push(inst.clone()));
        }
    });
}

/// Returns whether the instruction is a move of a register to itself.
fn is_self_move(inst: &McInst) -> bool {
    let operands = inst.inst.operands.as_ref();
    inst.inst.opcode == Opcode::MOVE_SS_32 && operands.first() == operands.get(1)
}
