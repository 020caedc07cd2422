//! VCode with its register assignment to machine instructions: block order and branches, moves, frame accesses,
//! constants, calls, prologue and epilogue.

use super::labels::Positions;
use super::{CallKind, Fixup, Item, Items, Label};
use crate::abi::registers::spill_unit;
use crate::code::RelocTarget;
use crate::frame::Frame;
use crate::inst::ops::{fits, immediate_range, load_op, store_op};
use crate::inst::reg::{Reg, from_preg};
use crate::inst::{ALL_LANES, AMode, CallDest, Cond, LaneMask, MInst, SelectWord, Srcs};
use crate::isa::Isa;
use crate::regalloc::allocated;
use crate::vcode::{Origin, VCode};
use cranelift_codegen::ir::TrapCode;
use npu_mc::errata::Erratum;
use npu_mc::machine::{ControlRegister, INSTRUCTION_SIZE, ThreadStatus, VECTOR_SLOT};
use npu_mc::reloc::Reloc as RelocKind;
use npu_mc::{Inst, Opcode, Operand, OperandKind, Operands, SReg};
use regalloc2::{Allocation, Block, Edit, InstOrEdit, Output, RegClass};
use std::collections::BTreeMap;

/// Registers that the trap sequence overwrites beside `tr`; the thread stops there.
const TRAP_SCRATCH: [u8; 2] = [48, 49];

/// The two instructions that make an address, and what the linker does to them.
const HALVES: [(Opcode, RelocKind); 2] = [
    (Opcode::LEAH, RelocKind::AbsHighLea),
    (Opcode::LEAL, RelocKind::AbsLowLea),
];

/// How many empty blocks in a row are skipped at once.
const MAX_EMPTY_CHAIN: usize = 64;

/// Bytes of one instruction.
const WORD: u32 = INSTRUCTION_SIZE;

/// Expands the function.
pub fn expand(vcode: &VCode, output: &Output, frame: &Frame, isa: &Isa) -> Items {
    let mut e = Expander {
        vcode,
        frame,
        isa,
        items: Items::default(),
        block_labels: Vec::new(),
        traps: BTreeMap::new(),
        origin: Origin::default(),
        pool_base: None,
    };
    e.run(output);
    e.items.pool = vcode.pool.clone();
    e.items
}

pub(super) struct Expander<'a> {
    pub(super) vcode: &'a VCode,
    pub(super) frame: &'a Frame,
    pub(super) isa: &'a Isa,
    pub(super) items: Items,
    block_labels: Vec<Label>,
    traps: BTreeMap<u8, (TrapCode, Label)>,
    origin: Origin,
    /// The length of the list behind the last load of a constant vector, and the vector whose address it used.
    pool_base: Option<(usize, u32)>,
}

/// The register of an operand after allocation.
pub(super) fn real(reg: Reg) -> npu_mc::Reg {
    // Every operand is constrained to a register, so allocation leaves no virtual one.
    debug_assert!(reg.as_real().is_some(), "unallocated {reg}");
    reg.as_real().unwrap_or(npu_mc::Reg::S(SReg::TR))
}

impl Expander<'_> {
    fn run(&mut self, output: &Output) {
        self.block_labels = (0..self.vcode.blocks.len()).map(|_| self.items.new_label()).collect();
        let targets = self.forward_targets(output);
        let kept: Vec<usize> = (0..self.vcode.blocks.len()).filter(|&b| targets[b] == b).collect();
        let mut positions = Positions::new(self.vcode);

        for (place, &index) in kept.iter().enumerate() {
            let label = self.block_labels[index];
            self.items.bind(label);
            self.pool_base = None;
            self.items.blocks.push(label);
            let next = kept.get(place + 1).copied();
            let first = self.vcode.blocks[index].insts.start as usize;
            positions.moves(first, self.items.list.len());
            for step in output.block_insts_and_edits(self.vcode, Block::new(index)) {
                match step {
                    InstOrEdit::Edit(Edit::Move { from, to }) => self.edit(*from, *to),
                    InstOrEdit::Inst(number) => {
                        positions.inst(number.index(), self.items.list.len());
                        let inst = allocated(self.vcode, output, number);
                        self.origin = self.vcode.origins[number.index()];
                        if inst.is_branch() {
                            let succs: Vec<usize> = self.vcode.blocks[index]
                                .succs
                                .iter()
                                .map(|s| targets[s.index()])
                                .collect();
                            self.branch(&inst, &succs, next);
                        } else {
                            self.inst(&inst);
                        }
                        positions.moves(number.index() + 1, self.items.list.len());
                    }
                }
            }
        }
        let (spills, _) = self.frame.layout.spills;
        self.items.places = positions.stretches(output, spills, self.items.list.len());
        self.trap_sequences();
    }

    /// For each block the block to go to instead: itself, or the next one if it holds nothing but a jump.
    fn forward_targets(&self, output: &Output) -> Vec<usize> {
        let count = self.vcode.blocks.len();
        let only_jump: Vec<bool> = (0..count)
            .map(|index| {
                index != 0
                    && output
                        .block_insts_and_edits(self.vcode, Block::new(index))
                        .all(|step| match step {
                            InstOrEdit::Edit(Edit::Move { from, to }) => from == to,
                            InstOrEdit::Inst(number) => matches!(self.vcode.insts[number.index()], MInst::Jump),
                        })
            })
            .collect();
        let mut target: Vec<Option<usize>> = vec![None; count];
        for start in 0..count {
            let mut path = Vec::new();
            let mut at = start;
            // Blocks that only lead to each other go nowhere: the walk ends where it meets itself.
            while target[at].is_none() && only_jump[at] && !path.contains(&at) && path.len() < MAX_EMPTY_CHAIN {
                path.push(at);
                at = self.vcode.blocks[at].succs[0].index();
            }
            let end = target[at].unwrap_or(at);
            target[end] = Some(end);
            for block in path {
                target[block] = Some(end);
            }
        }
        target
            .into_iter()
            .enumerate()
            .map(|(block, target)| target.unwrap_or(block))
            .collect()
    }

    fn push(&mut self, inst: Inst, fixup: Fixup) {
        self.items.list.push(Item {
            inst,
            fixup,
            origin: self.origin,
            trap: None,
            glued: false,
            call: CallKind::None,
        });
    }

    pub(super) fn op<const N: usize>(&mut self, op: Opcode, operands: [Operand; N]) {
        self.push(Inst::new(op, operands), Fixup::None);
    }

    fn glue_last(&mut self) {
        if let Some(last) = self.items.list.last_mut() {
            last.glued = true;
        }
    }

    // Moves.

    fn edit(&mut self, from: Allocation, to: Allocation) {
        if from == to {
            return;
        }
        self.origin = Origin {
            inst: None,
            ..self.origin
        };
        match (from.as_reg(), to.as_reg(), from.as_stack(), to.as_stack()) {
            (Some(from), Some(to), _, _) => {
                if let (Some(from), Some(to)) = (from_preg(from), from_preg(to)) {
                    self.move_reg(to, from);
                }
            }
            (Some(from), None, _, Some(slot)) => {
                let addr = self.spill_offset(slot.index());
                if let Some(reg) = from_preg(from) {
                    self.access(store_op(from.class()), reg, Reg::SP, addr);
                }
            }
            (None, Some(to), Some(slot), _) => {
                let addr = self.spill_offset(slot.index());
                if let Some(reg) = from_preg(to) {
                    self.access(load_op(to.class()), reg, Reg::SP, addr);
                }
            }
            // regalloc2 never moves from memory to memory.
            _ => {}
        }
    }

    fn spill_offset(&self, slot: usize) -> i64 {
        i64::from(self.frame.layout.spills.0) + slot as i64 * i64::from(spill_unit())
    }

    pub(super) fn move_reg(&mut self, dst: npu_mc::Reg, src: npu_mc::Reg) {
        if dst == src {
            return;
        }
        let op = match (dst, src) {
            (npu_mc::Reg::S(_), _) => Opcode::MOVE_SS_32,
            (npu_mc::Reg::V(_), npu_mc::Reg::S(_)) => Opcode::MOVE_VS_32,
            (npu_mc::Reg::V(_), npu_mc::Reg::V(_)) => Opcode::MOVE_VV_32,
        };
        self.op(op, [dst.into(), src.into()]);
    }

    // Memory.

    /// Base register and offset of an address; the offset may be out of an instruction's reach.
    pub(super) fn resolve(&self, addr: AMode) -> (Reg, i64) {
        let layout = &self.frame.layout;
        match addr {
            AMode::Reg { base, offset } => (base, offset.into()),
            AMode::Slot { slot, offset } => {
                let start = layout.stack_slots.get(slot.as_u32() as usize).copied().unwrap_or(0);
                (Reg::SP, i64::from(start) + i64::from(offset))
            }
            AMode::Incoming { offset } => (Reg::SP, i64::from(layout.size) + i64::from(offset)),
            AMode::Outgoing { offset } => (Reg::SP, offset.into()),
            AMode::Local { area, offset } => {
                let start = self.frame.locals.get(area as usize).copied().unwrap_or(0);
                (Reg::SP, i64::from(start) + i64::from(offset))
            }
        }
    }

    /// A load or store of `reg` at `offset` from `base`.
    pub(super) fn access(&mut self, op: Opcode, reg: npu_mc::Reg, base: Reg, offset: i64) {
        let narrow = i32::try_from(offset).ok().filter(|&o| fits(OperandKind::Offset9, o));
        let (base, offset) = match narrow {
            Some(offset) => (base, offset),
            None => {
                self.add_far(Reg::SCRATCH, base, offset);
                (Reg::SCRATCH, 0)
            }
        };
        self.op(op, [reg.into(), real(base).into(), offset.into()]);
    }

    /// `dst` := `base` + a number that is too large for an immediate. `base` is not `dst`.
    fn add_far(&mut self, dst: Reg, base: Reg, number: i64) {
        self.constant(real(dst), (number & i64::from(u32::MAX)) as u32);
        self.op(
            Opcode::ADDSSS_32,
            [real(dst).into(), real(base).into(), real(dst).into()],
        );
    }

    pub(super) fn add(&mut self, dst: Reg, base: Reg, number: i64) {
        let fitting = |n: i64| i32::try_from(n).ok().filter(|&n| fits(OperandKind::Simm9, n));
        match fitting(number) {
            Some(0) => self.move_reg(real(dst), real(base)),
            Some(n) => self.op(Opcode::ADDSSI, [real(dst).into(), real(base).into(), n.into()]),
            None if let Some(n) = fitting(-number) => {
                // One more number is in reach of a subtraction.
                self.op(Opcode::SUBSSI, [real(dst).into(), real(base).into(), n.into()]);
            }
            None if dst != base => self.add_far(dst, base, number),
            None => {
                self.constant(real(Reg::SCRATCH), (number & i64::from(u32::MAX)) as u32);
                let operands = [real(dst).into(), real(base).into(), real(Reg::SCRATCH).into()];
                self.op(Opcode::ADDSSS_32, operands);
            }
        }
    }

    // Constants.

    pub(super) fn constant(&mut self, dst: npu_mc::Reg, value: u32) {
        let dst = Operand::from(dst);
        let half = |n: u32| Operand::Imm((n & 0xffff).cast_signed());
        if value == u32::MAX {
            // An `or` with all ones is all ones whatever the source.
            self.op(Opcode::ORSSI, [dst, real(Reg::SP).into(), Operand::Imm(-1)]);
        } else if value >> 16 == 0 {
            self.op(Opcode::MOVEISI, [dst, half(value)]);
        } else {
            self.op(Opcode::MOVEIHSI, [dst, half(value >> 16)]);
            self.op(Opcode::MOVEILSI, [dst, half(value)]);
        }
    }

    /// A vector from behind the code. The address is still in the scratch register if nothing was emitted since the last one.
    fn pool_load(&mut self, dst: npu_mc::Reg, index: u32) {
        let distance = |from: u32| (i64::from(index) - i64::from(from)) * i64::from(VECTOR_SLOT);
        let near = |from: u32| i32::try_from(distance(from)).is_ok_and(|d| fits(OperandKind::Offset9, d));
        let base = match self.pool_base {
            Some((end, base)) if end == self.items.list.len() && near(base) => base,
            _ => {
                for (op, kind) in HALVES {
                    let fixup = Fixup::Pool { kind, index };
                    self.push(Inst::new(op, [real(Reg::SCRATCH).into(), Operand::Imm(0)]), fixup);
                }
                index
            }
        };
        self.access(load_op(RegClass::Vector), dst, Reg::SCRATCH, distance(base));
        self.pool_base = Some((self.items.list.len(), base));
    }

    fn set_mask(&mut self, mask: LaneMask) {
        let rm = real(Reg::MASK).into();
        match mask {
            LaneMask::Reg(reg) => self.op(Opcode::MOVE_SS_32, [rm, real(reg).into()]),
            LaneMask::Lanes(lanes) => self.op(Opcode::MOVEISI, [rm, i32::from(lanes).into()]),
        }
    }

    /// The same word in every lane.
    fn splat(&mut self, dst: npu_mc::Reg, value: u32) {
        let dst = Operand::from(dst);
        let half = |n: u32| Operand::Imm((n & 0xffff).cast_signed());
        if value == u32::MAX {
            self.op(Opcode::ORVVI_U, [dst, dst, Operand::Imm(-1)]);
            return;
        }
        self.op(Opcode::MOVEIVI_U, [dst, half(value)]);
        if value >> 16 != 0 {
            self.op(Opcode::MOVEIHVI_U, [dst, half(value >> 16)]);
        }
    }

    pub(super) fn symbol(&mut self, dst: npu_mc::Reg, target: &RelocTarget, addend: i64) {
        for (op, kind) in HALVES {
            let fixup = Fixup::Reloc {
                kind,
                target: target.clone(),
                addend,
            };
            self.push(Inst::new(op, [dst.into(), Operand::Imm(0)]), fixup);
        }
    }

    // Instructions.

    fn inst(&mut self, inst: &MInst) {
        match inst {
            MInst::Op { op, dst, srcs, imm } => self.plain(*op, *dst, srcs, *imm),
            MInst::Load { op, dst, addr } => {
                let (base, offset) = self.resolve(*addr);
                self.access(*op, real(*dst), base, offset);
            }
            MInst::Store { op, src, addr } => {
                let (base, offset) = self.resolve(*addr);
                self.access(*op, real(*src), base, offset);
            }
            MInst::Move { dst, src } => self.move_reg(real(*dst), real(*src)),
            MInst::Const { dst, value } => match real(*dst) {
                dst @ npu_mc::Reg::S(_) => self.constant(dst, *value),
                dst @ npu_mc::Reg::V(_) => self.splat(dst, *value),
            },
            MInst::PoolLoad { dst, index } => self.pool_load(real(*dst), *index),
            MInst::Masked {
                mask,
                op,
                dst,
                srcs,
                imm,
            } => {
                self.set_mask(*mask);
                self.plain(*op, Some(*dst), srcs, *imm);
                self.set_mask(LaneMask::Lanes(ALL_LANES));
            }
            MInst::MaskedStore { mask, op, src, addr } => {
                let (base, offset) = self.resolve(*addr);
                // Nothing comes back from the scratchpad for no lane.
                let skip = match mask {
                    LaneMask::Reg(reg)
                        if op.desc().scratchpad && self.isa.has_erratum(Erratum::ScratchpadEmptyMask) =>
                    {
                        let skip = self.items.new_label();
                        let empty = Cond {
                            reg: *reg,
                            nonzero: false,
                        };
                        self.branch_if(empty, skip);
                        Some(skip)
                    }
                    _ => None,
                };
                self.set_mask(*mask);
                self.access(*op, real(*src), base, offset);
                self.set_mask(LaneMask::Lanes(ALL_LANES));
                if let Some(skip) = skip {
                    self.items.bind(skip);
                }
            }
            MInst::SymbolAddr { dst, target, addend } => self.symbol(real(*dst), target, *addend),
            MInst::Address { dst, addr } => {
                let (base, offset) = self.resolve(*addr);
                self.add(*dst, base, offset);
            }
            MInst::Select { cond, words } => {
                let moved = |word: &&SelectWord| real(word.if_false) != real(word.dst);
                if words.iter().any(|word| moved(&word)) {
                    let skip = self.items.new_label();
                    self.branch_if(*cond, skip);
                    for word in words.iter().filter(moved) {
                        self.move_reg(real(word.dst), real(word.if_false));
                    }
                    self.items.bind(skip);
                }
            }
            MInst::TrapIf { cond, code } => {
                let label = self.trap_label(*code);
                self.branch_if(*cond, label);
                self.mark_trap(*code);
            }
            MInst::Trap { code } => {
                let label = self.trap_label(*code);
                self.jump(label);
                self.mark_trap(*code);
            }
            MInst::Args { .. } => self.prologue(),
            MInst::Return { .. } => {
                self.leave_frame(self.frame.layout.popped.into());
                self.op(Opcode::JRET, []);
            }
            MInst::Call(info) => {
                self.call(&info.dest);
                self.mark_call(CallKind::Call);
                self.add_to_sp(-i64::from(info.popped));
            }
            MInst::ReturnCall(info) => {
                self.leave_frame(i64::from(self.frame.layout.popped) - i64::from(info.popped));
                self.jump_to_callee(&info.dest);
            }
            MInst::ReturnAddress { dst } => self.return_address(real(*dst)),
            MInst::Copy {
                area,
                src,
                size,
                aligned,
                tmps,
            } => self.copy(*area, *src, *size, *aligned, *tmps),
            MInst::Fence => {
                // A label keeps the scheduler from moving accesses across.
                let fence = self.items.new_label();
                self.items.bind(fence);
            }
            MInst::SequencePoint => {
                // Nothing changes sides with it either.
                let point = self.items.new_label();
                self.items.bind(point);
                self.items
                    .sequence_points
                    .extend(self.origin.inst.map(|inst| (point, inst)));
            }
            MInst::Nop => {}
            // Ends of blocks are expanded by `branch`.
            MInst::Jump | MInst::CondBr { .. } | MInst::BrTable { .. } => {}
        }
    }

    fn plain(&mut self, op: Opcode, dst: Option<Reg>, srcs: &Srcs, imm: i32) {
        let desc = op.desc();
        let mut regs = srcs[..srcs.len() - usize::from(desc.reads_dst)].iter();
        let mut operands = Operands::new();
        for operand in desc.operands {
            let value = if operand.is_def {
                dst.map_or(Operand::Imm(0), |d| real(d).into())
            } else if operand.kind.register_file().is_some() {
                regs.next().map_or(Operand::Imm(0), |&r| real(r).into())
            } else {
                Operand::Imm(imm)
            };
            operands.push(value);
        }
        self.push(Inst { opcode: op, operands }, Fixup::None);
    }

    // Control flow.

    pub(super) fn jump(&mut self, target: Label) {
        self.push(Inst::new(Opcode::JMP, [Operand::Imm(0)]), Fixup::Branch(target));
    }

    pub(super) fn branch_if(&mut self, cond: Cond, target: Label) {
        let inst = Inst::new(cond.branch(), [real(cond.reg).into(), Operand::Imm(0)]);
        self.push(inst, Fixup::Branch(target));
    }

    fn branch(&mut self, inst: &MInst, succs: &[usize], next: Option<usize>) {
        let label = |block: usize| self.block_labels[block];
        match inst {
            MInst::CondBr { cond } if succs[0] != succs[1] => {
                let (taken, other) = (label(succs[0]), label(succs[1]));
                if next == Some(succs[0]) {
                    self.branch_if(cond.inverted(), other);
                } else {
                    self.branch_if(*cond, taken);
                    if next != Some(succs[1]) {
                        self.jump(other);
                    }
                }
            }
            MInst::BrTable {
                index,
                tmp,
                base,
                entries,
            } if !entries.is_empty() => {
                let labels: Vec<Label> = succs.iter().map(|&s| label(s)).collect();
                self.table(*index, *tmp, *base, entries, &labels);
            }
            _ => {
                if next != Some(succs[0]) {
                    self.jump(label(succs[0]));
                }
            }
        }
    }

    /// A branch table is a row of jumps; the index picks one. That needs no data and no relocation.
    fn table(&mut self, index: Reg, tmp: Reg, base: Reg, entries: &[u32], labels: &[Label]) {
        let default = labels[0];
        let (index, scratch, base) = (real(index), real(tmp), real(base));
        let count = u32::try_from(entries.len()).unwrap_or(u32::MAX);
        match i32::try_from(count).ok().filter(|&n| fits(OperandKind::Simm9, n)) {
            Some(n) => self.op(Opcode::SGEUISSI, [scratch.into(), index.into(), n.into()]),
            None => {
                self.constant(base, count);
                self.op(Opcode::SGEUISSS_32, [scratch.into(), index.into(), base.into()]);
            }
        }
        self.branch_if(
            Cond {
                reg: tmp,
                nonzero: true,
            },
            default,
        );
        let shift = WORD.trailing_zeros().cast_signed();
        self.op(Opcode::SLLSSI, [scratch.into(), index.into(), shift.into()]);
        // Three instructions from here to the table, this one included.
        let distance = (3 * WORD).cast_signed();
        self.op(Opcode::ADDSSI, [base.into(), real(Reg::PC).into(), distance.into()]);
        self.glue_last();
        self.op(Opcode::ADDSSS_32, [scratch.into(), scratch.into(), base.into()]);
        self.glue_last();
        self.op(Opcode::JUMPREG, [scratch.into()]);
        self.glue_last();
        let end = self.items.new_label();
        for &entry in entries {
            let target = labels.get(entry as usize).copied().unwrap_or(default);
            self.push(
                Inst::new(Opcode::JMP, [Operand::Imm(0)]),
                Fixup::TableEntry { target, end },
            );
            self.glue_last();
        }
        if let Some(last) = self.items.list.last_mut() {
            last.glued = false;
        }
        self.items.bind(end);
    }

    fn call(&mut self, dest: &CallDest) {
        match dest {
            CallDest::Near(target) => {
                let fixup = Fixup::Reloc {
                    kind: RelocKind::Branch,
                    target: target.clone(),
                    addend: 0,
                };
                self.push(Inst::new(Opcode::JMPSR_OFF, [Operand::Imm(0)]), fixup);
            }
            CallDest::Far(target) => {
                self.symbol(real(Reg::SCRATCH), target, 0);
                self.call_reg(real(Reg::SCRATCH));
            }
            CallDest::Reg(reg) => self.call_reg(real(*reg)),
        }
    }

    fn jump_to_callee(&mut self, dest: &CallDest) {
        match dest {
            CallDest::Near(target) => {
                let fixup = Fixup::Reloc {
                    kind: RelocKind::Branch,
                    target: target.clone(),
                    addend: 0,
                };
                self.push(Inst::new(Opcode::JMP, [Operand::Imm(0)]), fixup);
            }
            CallDest::Far(target) => {
                self.symbol(real(Reg::SCRATCH), target, 0);
                self.op(Opcode::JUMPREG, [real(Reg::SCRATCH).into()]);
            }
            CallDest::Reg(reg) => self.op(Opcode::JUMPREG, [real(*reg).into()]),
        }
        self.mark_call(CallKind::TailCall);
    }

    fn mark_call(&mut self, kind: CallKind) {
        if let Some(last) = self.items.list.last_mut() {
            last.call = kind;
        }
    }

    fn call_reg(&mut self, reg: npu_mc::Reg) {
        if self.isa.has_erratum(Erratum::IndirectCallLink) {
            // The hardware would link to the callee, so the link is made by hand: the address after the jump.
            let distance = (2 * WORD).cast_signed();
            self.op(
                Opcode::ADDSSI,
                [real(Reg::RA).into(), real(Reg::PC).into(), distance.into()],
            );
            self.glue_last();
            self.op(Opcode::JUMPREG, [reg.into()]);
        } else {
            self.op(Opcode::JMPSR_REG, [reg.into()]);
        }
    }

    fn return_address(&mut self, dst: npu_mc::Reg) {
        let ra = npu_mc::Reg::S(SReg::RA);
        match self.frame.layout.saved.iter().find(|(reg, _)| *reg == ra) {
            Some(&(_, offset)) => self.access(load_op(RegClass::Int), dst, Reg::SP, offset.into()),
            None => self.move_reg(dst, ra),
        }
    }

    // Traps.

    pub(super) fn trap_label(&mut self, code: TrapCode) -> Label {
        if let Some(&(_, label)) = self.traps.get(&code.as_raw().get()) {
            return label;
        }
        let label = self.items.new_label();
        self.traps.insert(code.as_raw().get(), (code, label));
        label
    }

    pub(super) fn mark_trap(&mut self, code: TrapCode) {
        if let Some(last) = self.items.list.last_mut() {
            last.trap = Some(code);
        }
    }

    /// Once a function and trap code: the code goes to `tr`, the status to the control register, the thread stops.
    fn trap_sequences(&mut self) {
        let [status, register] = TRAP_SCRATCH.map(|n| Operand::from(SReg::new(n).unwrap_or(SReg::RA)));
        self.origin = Origin::default();
        for (code, label) in std::mem::take(&mut self.traps).into_values() {
            self.items.bind(label);
            let number = i32::from(code.as_raw().get());
            self.op(Opcode::MOVEISI, [real(Reg::SCRATCH).into(), number.into()]);
            self.op(
                Opcode::MOVEISI,
                [register, i32::from(ControlRegister::ThreadStatus.number()).into()],
            );
            self.op(Opcode::MOVEISI, [status, (ThreadStatus::Trapped as i32).into()]);
            self.op(Opcode::WRITECR, [status, register]);
            let here = self.items.new_label();
            self.items.bind(here);
            self.jump(here);
        }
    }

    // Frame.

    fn prologue(&mut self) {
        self.enter();
        let layout = &self.frame.layout;
        let (size, saved, frame_pointer) = (i64::from(layout.size), layout.saved.clone(), layout.frame_pointer);
        let (first, rest) = self.adjustments();
        self.add_to_sp(-first);
        for &(reg, offset) in &saved {
            let class = class_of(reg);
            self.access(store_op(class), reg, Reg::SP, i64::from(offset) - (size - first));
        }
        self.add_to_sp(-rest);
        if frame_pointer {
            self.move_reg(real(Reg::FP), real(Reg::SP));
        }
    }

    /// Restores the registers and sets `sp` to where it was at entry, plus `above`. Whatever `above` is, `sp` does not
    /// go down: arguments of a tail call that need more room than the function's own have it in the frame.
    fn leave_frame(&mut self, above: i64) {
        let layout = &self.frame.layout;
        let (size, saved) = (i64::from(layout.size), layout.saved.clone());
        let (first, rest) = self.adjustments();
        self.add_to_sp(rest);
        for &(reg, offset) in saved.iter().rev() {
            self.access(load_op(class_of(reg)), reg, Reg::SP, i64::from(offset) - (size - first));
        }
        self.add_to_sp(first + above);
    }

    /// The frame is allocated in one step if the registers can then be saved with short offsets, else in two.
    fn adjustments(&self) -> (i64, i64) {
        let size = i64::from(self.frame.layout.size);
        let (lowest, _) = immediate_range(OperandKind::Simm9);
        if size <= -i64::from(lowest) || self.frame.layout.saved.is_empty() {
            (size, 0)
        } else {
            let save = i64::from(self.frame.save_area);
            (save, size - save)
        }
    }

    fn add_to_sp(&mut self, number: i64) {
        if number != 0 {
            self.add(Reg::SP, Reg::SP, number);
        }
    }
}

fn class_of(reg: npu_mc::Reg) -> RegClass {
    match reg {
        npu_mc::Reg::S(_) => RegClass::Int,
        npu_mc::Reg::V(_) => RegClass::Vector,
    }
}
