//! Shrink-wrapping: the frame is made only on the ways that need it.
//!
//! A function that calls saves registers at entry and restores them before it returns, also where it returns without a call.
//! If there is such a way, the frame is made where the others part from it instead. Blocks before that place, the early ones,
//! do without a frame: registers that it would have saved are renamed there, and handed over where it is made. The block that
//! both ways return by is copied for the early ones.

use super::cfg::{Liveness, successors};
use super::copyprop::as_move;
use super::effects::{Conventions, Effects, RegSet};
use super::func::{CallKind, Fixup, FrameStep, Label, MachFunction, McInst};
use super::places;
use crate::code::LabelLoc;
use crate::inst::reg::machine;
use crate::reason::Maker;
use npu_mc::{Inst, Opcode, Operand, Reg, SReg};
use smallvec::SmallVec;

/// The most instructions that copies of the last block may have.
const MAX_COPIED: usize = 16;

/// Moves the making of the frame, if that saves a way the frame. `free` are the registers that the convention lets a function
/// change.
pub fn run(func: &mut MachFunction, free: RegSet, conventions: &Conventions) {
    if func.insts().first().is_none_or(|first| first.frame != FrameStep::Enter) {
        return;
    }
    func.find_effects();
    let makes_fp =
        |(inst, effects): (&McInst, &Effects)| inst.frame == FrameStep::Enter && effects.writes.contains(machine::FP);
    if func.insts.iter().zip(&func.effects).any(makes_fp) {
        // Whoever walks the stack by it wants every function to have it.
        return;
    }
    let Some(ways) = Ways::new(func) else { return };
    let liveness = Liveness::new(func, conventions);
    let Some(names) = Names::new(func, &ways, &liveness, free, conventions) else {
        return;
    };
    rewrite(func, &ways, &names);
}

/// Which blocks stand where.
struct Ways {
    /// Blocks that are reached, and left again, without a frame.
    early: Vec<bool>,
    /// Where the frame is made: before this block, which only early ones lead to.
    start: usize,
    /// The block that ends both ways, if there is one.
    last: Option<usize>,
}

impl Ways {
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
        // From where a return is reached without a frame, and from where a block that needs one is.
        let can_return = reached((0..count).filter(|&block| returns(block)), &preds, |block| {
            !needs_frame[block]
        });
        let can_need = reached((0..count).filter(|&block| needs_frame[block]), &preds, |_| true);
        if !can_return[0] {
            return None;
        }
        let early = reached([0].into_iter(), &succs, |block| can_return[block]);
        // The ways part at one place only.
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

/// The blocks that are reached from some along the edges, through blocks that are let through, themselves included.
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

/// Whether something in the block, beside what makes and removes the frame, wants it: calls, the stack, the link, and what is
/// not looked into here.
fn needs_frame(func: &MachFunction, block: usize) -> bool {
    let reserved: RegSet = [machine::SP, machine::FP, machine::RA].into_iter().collect();
    func.block_range(block).any(|index| {
        let (inst, effects) = (&func.insts()[index], &func.effects[index]);
        let is_plain_return = inst.inst.opcode == Opcode::JRET;
        // All ones, whatever the source is.
        let is_constant = inst.inst.opcode == Opcode::ORSSI && inst.inst.operands.get(2) == Some(&Operand::Imm(-1));
        inst.frame == FrameStep::None
            && !is_plain_return
            && !is_constant
            && (inst.call != CallKind::None
                || effects.reads.or(effects.writes).meets(reserved)
                || inst.inst.opcode == Opcode::JUMPREG)
    })
}

/// The registers of early blocks.
struct Names {
    /// For each register that the frame saves and early blocks use, the one they use instead.
    list: Vec<(SReg, SReg)>,
    /// Those among them that the other way needs.
    handed_over: Vec<(SReg, SReg)>,
    /// The registers that the frame saves.
    saved: RegSet,
}

impl Names {
    fn new(
        func: &MachFunction,
        ways: &Ways,
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
        let mut live = liveness.live_in(ways.start);
        for block in (0..func.block_count()).filter(|&block| ways.early[block]) {
            live = live.or(liveness.live_in(block)).or(liveness.live_out(block));
            // What goes on for ever without a frame.
            let others = successors(func, block);
            let mut others = others.iter().filter(|&&succ| !ways.early[succ] && succ != ways.start);
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
            // Vectors keep their registers.
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
            // A copy of what is there all the time need not be made.
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
        let needed = liveness.live_in(ways.start);
        let handed_over = list.iter().copied().filter(|(reg, _)| needed.contains(Reg::S(*reg)));
        Some(Self {
            handed_over: handed_over.collect(),
            list,
            saved,
        })
    }

    fn rename(&self, inst: &mut McInst) {
        for place in 0..inst.inst.operands.len() {
            if let Some(&Operand::S(reg)) = inst.inst.operands.get(place)
                && let Some(&(_, new)) = self.list.iter().find(|(old, _)| *old == reg)
            {
                inst.inst.operands.set(place, new.into());
            }
        }
    }
}

/// The instructions that make the frame.
fn enters(func: &MachFunction) -> impl Iterator<Item = &McInst> {
    func.insts().iter().filter(|inst| inst.frame == FrameStep::Enter)
}

fn rewrite(func: &mut MachFunction, ways: &Ways, names: &Names) {
    let count = func.block_count();
    let enter: Vec<McInst> = enters(func).cloned().collect();
    let mut block_of = Vec::with_capacity(func.insts().len());
    for block in 0..count {
        block_of.resize(func.block_range(block).end, block);
    }
    let without_frame = |inst: &&McInst| inst.frame == FrameStep::None;
    let copy: Vec<McInst> = match ways.last {
        Some(last) => func.insts()[func.block_range(last)]
            .iter()
            .filter(without_frame)
            .cloned()
            .map(|mut inst| {
                names.rename(&mut inst);
                inst
            })
            .filter(|inst| !moves_nothing(inst))
            .collect(),
        None => Vec::new(),
    };
    let is_late = |block: usize| !ways.early[block] || Some(block) == ways.last;
    let start = func.block_range(ways.start).start;
    // Early blocks that go on with the last one: by a jump, which the copy replaces; by falling into it; or by a branch.
    let last_label = ways.last.and_then(|last| func.label(last));
    let mut falls = vec![false; count];
    if let Some(last) = ways.last.filter(|&last| last > 0) {
        let before = last - 1;
        let falls_in = func
            .terminator(before)
            .is_none_or(|inst| !matches!(inst.inst.opcode, Opcode::JMP | Opcode::JRET | Opcode::JUMPREG));
        falls[before] = falls_in && !is_late(before);
    }
    let goes_last = |inst: &McInst| matches!(inst.fixup, Fixup::Branch(target) if Some(target) == last_label);
    // Whether the instruction is the last of its block.
    let ends = |index: usize| block_of.get(index + 1) != Some(&block_of[index]);
    places::forget(func, |index, inst, loc| {
        let block = block_of[index];
        let saved = match loc {
            LabelLoc::Reg(reg) => names.saved.contains(reg),
            LabelLoc::Stack(_) => true,
        };
        let moves = index == start || !is_late(block);
        let copied = !is_late(block) && ends(index) && (goes_last(inst) || falls[block]);
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
            for &(reg, name) in &names.handed_over {
                let operands = [Operand::from(reg), name.into()];
                let origin = inst.origin.remade_by(Maker::Prologue);
                func.push(McInst::plain(Inst::new(Opcode::MOVE_SS_32, operands), origin));
            }
        }
        if is_late(block) {
            if inst.frame != FrameStep::Enter {
                func.push(inst);
            }
        } else if inst.frame == FrameStep::None {
            let jumps = goes_last(&inst);
            if jumps && inst.inst.opcode == Opcode::JMP {
                copy.iter().for_each(|inst| func.push(inst.clone()));
            } else {
                names.rename(&mut inst);
                if jumps {
                    let label = *copy_label.get_or_insert_with(|| func.new_label());
                    inst.fixup = Fixup::Branch(label);
                }
                if !moves_nothing(&inst) {
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

/// Whether the instruction is a move of a register to itself.
fn moves_nothing(inst: &McInst) -> bool {
    let operands = inst.inst.operands.as_ref();
    inst.inst.opcode == Opcode::MOVE_SS_32 && operands.first() == operands.get(1)
}
