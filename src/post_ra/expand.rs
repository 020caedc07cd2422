//! Expansion of VCode and its register assignment to machine instructions: block order and
//! branches, moves, frame accesses, constants, calls, prologue and epilogues.

use super::func::{CallKind, Fixup, FrameStep, Label, MachFunction, McInst};
use super::value_locations::Positions;
use crate::abi::registers::spill_unit;
use crate::code::RelocTarget;
use crate::error::CompileError;
use crate::frame::Frame;
use crate::inst::ops::{fits, immediate_range, load_op, store_op};
use crate::inst::reg::{self, from_preg, machine};
use crate::inst::{ALL_LANES, AMode, Cond, LaneMask, MInst};
use crate::isa::Isa;
use crate::provenance::Producer;
use crate::regalloc::assign;
use crate::vcode::{Origin, VCode};
use cranelift_codegen::ir::TrapCode;
use npu_mc::errata::Erratum;
use npu_mc::machine::{ControlRegister, INSTRUCTION_SIZE, ThreadStatus, VECTOR_SLOT};
use npu_mc::reloc::Reloc as RelocKind;
use npu_mc::{Inst, Opcode, Operand, OperandKind, Operands, Reg, SReg};
use regalloc2::{Allocation, Block, Edit, InstOrEdit, Output, RegClass};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Registers that the trap sequence overwrites in addition to `tr`. The thread stops there.
const TRAP_SCRATCH: [SReg; 2] = [SReg::S48, SReg::S49];

/// The trap code of a debug trap, after which a debugger may resume the thread.
const NO_TRAP_CODE: u8 = 0;

/// The two instructions that form an address, with their relocations.
pub(super) const HALVES: [(Opcode, RelocKind); 2] = [
    (Opcode::LEAH, RelocKind::AbsHighLea),
    (Opcode::LEAL, RelocKind::AbsLowLea),
];

/// The maximum number of consecutive empty blocks that are skipped at once.
const MAX_EMPTY_CHAIN: usize = 64;

/// Bytes of one instruction.
pub(super) const WORD: u32 = INSTRUCTION_SIZE;

/// Expands the function.
///
/// # Errors
///
/// [`CompileError::Internal`] if an operand has no register, or a slot has no location.
pub fn expand(mut vcode: VCode, output: &Output, frame: &Frame, isa: &Isa) -> Result<MachFunction, CompileError> {
    let insts = std::mem::take(&mut vcode.insts);
    let pool = std::mem::take(&mut vcode.pool);
    let mut e = Expander {
        vcode: &vcode,
        frame,
        isa,
        func: MachFunction::default(),
        block_labels: Vec::new(),
        traps: BTreeMap::new(),
        origin: Origin::default(),
        pool_base: None,
    };
    e.run(insts, output)?;
    e.func.pool = pool.into_vectors();
    Ok(e.func)
}

/// The state of the expansion of one function.
pub(super) struct Expander<'a> {
    pub(super) vcode: &'a VCode,
    pub(super) frame: &'a Frame,
    pub(super) isa: &'a Isa,
    pub(super) func: MachFunction,
    pub(super) block_labels: Vec<Label>,
    traps: BTreeMap<u8, (TrapCode, Label)>,
    pub(super) origin: Origin,
    /// The number of instructions after the last load of a constant vector, and the vector whose
    /// address that load used.
    pool_base: Option<(usize, u32)>,
}

/// Returns the machine register of an operand.
pub(super) fn machine_reg(reg: reg::Reg) -> Result<Reg, CompileError> {
    reg.as_real()
        .ok_or_else(|| CompileError::internal("regalloc", reg, "a machine register for every operand"))
}

impl Expander<'_> {
    fn run(&mut self, mut insts: Vec<MInst>, output: &Output) -> Result<(), CompileError> {
        let blocks = self.vcode.blocks.len();
        self.func.reserve(
            insts.len() + insts.len() / 4 + output.edits.len(),
            blocks + blocks / 4 + 1,
        );
        self.block_labels = (0..blocks).map(|_| self.func.new_label()).collect();
        let is_handler = self.handler_blocks(&insts);
        let targets = self.forward_targets(&insts, output, &is_handler);
        let kept: Vec<usize> = (0..self.vcode.blocks.len()).filter(|&b| targets[b] == b).collect();
        let mut positions = Positions::new(self.vcode, insts.len());

        for (position, &index) in kept.iter().enumerate() {
            let label = self.block_labels[index];
            self.func.bind(label);
            self.pool_base = None;
            self.func.vcode_blocks.push(label);
            let next = kept.get(position + 1).copied();
            let first = self.vcode.blocks[index].insts.start as usize;
            if is_handler.get(index) == Some(&true) {
                self.handler_landing()?;
            }
            positions.moves(first, self.func.insts().len());
            for step in output.block_insts_and_edits(self.vcode, Block::new(index)) {
                match step {
                    InstOrEdit::Edit(Edit::Move { from, to }) => self.edit(*from, *to)?,
                    InstOrEdit::Inst(number) => {
                        positions.inst(number.index(), self.func.insts().len());
                        let inst = &mut insts[number.index()];
                        assign(inst, output.inst_allocs(number));
                        self.origin = self.vcode.origins[number.index()];
                        self.origin.provenance = self.origin.provenance.with_vcode_inst(number.index());
                        if inst.is_branch() {
                            let succs = self.vcode.blocks[index].succs.iter();
                            let succs: SmallVec<[usize; 2]> = succs.map(|succ| targets[succ.index()]).collect();
                            self.branch(inst, &succs, next)?;
                        } else {
                            self.inst(inst)?;
                        }
                        positions.moves(number.index() + 1, self.func.insts().len());
                    }
                }
            }
        }
        let (spills, _) = self.frame.layout.spills;
        self.func.value_locations = positions.live_ranges(output, spills, self.func.insts().len())?;
        self.trap_sequences();
        Ok(())
    }

    /// Returns for each block whether it is an exception handler. Empty if the function has no
    /// handlers.
    fn handler_blocks(&self, insts: &[MInst]) -> Vec<bool> {
        let mut found = Vec::new();
        if self.vcode.has_handlers {
            found.resize(self.vcode.blocks.len(), false);
            for block in &self.vcode.blocks {
                let last = block.insts.end.checked_sub(1).and_then(|last| insts.get(last as usize));
                if let Some(MInst::TryCall(info)) = last {
                    for handler in &info.handlers {
                        if let Some(succ) = block.succs.get(handler.succ) {
                            found[succ.index()] = true;
                        }
                    }
                }
            }
        }
        found
    }

    /// Returns for each block the block that replaces it as a branch target: the block itself, or
    /// its successor if it contains only a jump.
    fn forward_targets(&self, insts: &[MInst], output: &Output, is_handler: &[bool]) -> Vec<usize> {
        let count = self.vcode.blocks.len();
        let only_jump: Vec<bool> = (0..count)
            .map(|index| {
                let range = &self.vcode.blocks[index].insts;
                index != 0
                    && range.len() == 1
                    && is_handler.get(index) != Some(&true)
                    && matches!(insts[range.start as usize], MInst::Jump)
                    && output
                        .block_insts_and_edits(self.vcode, Block::new(index))
                        .all(|step| match step {
                            InstOrEdit::Edit(Edit::Move { from, to }) => from == to,
                            InstOrEdit::Inst(_) => true,
                        })
            })
            .collect();
        if !only_jump.contains(&true) {
            return (0..count).collect();
        }
        let mut target: Vec<Option<usize>> = vec![None; count];
        for start in 0..count {
            let mut path = Vec::new();
            let mut at = start;
            // A cycle of empty blocks has no other target, so the walk ends when it repeats a
            // block.
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

    pub(super) fn push(&mut self, inst: Inst, fixup: Fixup) {
        let mut inst = McInst::plain(inst, self.origin);
        inst.fixup = fixup;
        self.func.push(inst);
    }

    pub(super) fn op<const N: usize>(&mut self, op: Opcode, operands: [Operand; N]) {
        self.push(Inst::new(op, operands), Fixup::None);
    }

    pub(super) fn glue_last(&mut self) {
        if let Some(last) = self.func.last_mut() {
            last.glued = true;
        }
    }

    // Moves.

    fn edit(&mut self, from: Allocation, to: Allocation) -> Result<(), CompileError> {
        if from == to {
            return Ok(());
        }
        let reg = |allocation: Allocation| allocation.as_reg().and_then(from_preg);
        match (reg(from), reg(to), from.as_stack(), to.as_stack()) {
            (Some(from), Some(to), _, _) => {
                self.origin = self.origin.without_inst(Producer::Move);
                self.move_reg(to, from);
            }
            (Some(from), None, _, Some(slot)) => {
                self.origin = self.origin.without_inst(Producer::Spill);
                let addr = self.spill_offset(slot.index());
                self.access(store_op(class_of(from)), from, machine::SP, addr);
            }
            (None, Some(to), Some(slot), _) => {
                self.origin = self.origin.without_inst(Producer::Reload);
                let addr = self.spill_offset(slot.index());
                self.access(load_op(class_of(to)), to, machine::SP, addr);
            }
            _ => {
                let edit = format_args!("move {to}, {from}");
                return Err(CompileError::internal("expand", edit, "a register on one side"));
            }
        }
        Ok(())
    }

    fn spill_offset(&self, slot: usize) -> i64 {
        i64::from(self.frame.layout.spills.0) + slot as i64 * i64::from(spill_unit())
    }

    pub(super) fn move_reg(&mut self, dst: Reg, src: Reg) {
        if dst == src {
            return;
        }
        let op = match (dst, src) {
            (Reg::S(_), _) => Opcode::MOVE_SS_32,
            (Reg::V(_), Reg::S(_)) => Opcode::MOVE_VS_32,
            (Reg::V(_), Reg::V(_)) => Opcode::MOVE_VV_32,
        };
        self.op(op, [dst.into(), src.into()]);
    }

    // Memory.

    /// Returns base register and offset of an address. The offset may exceed the range of an
    /// immediate.
    pub(super) fn resolve(&self, addr: AMode<Reg>) -> Result<(Reg, i64), CompileError> {
        let layout = &self.frame.layout;
        let (list, index, offset) = match addr {
            AMode::Reg { base, offset } => return Ok((base, offset.into())),
            AMode::Incoming { offset } => return Ok((machine::SP, i64::from(layout.size) + i64::from(offset))),
            AMode::Outgoing { offset } => return Ok((machine::SP, offset.into())),
            AMode::Slot { slot, offset } => (&layout.stack_slots, slot.as_u32(), offset),
            AMode::Local { area, offset } => (&self.frame.locals, area, offset),
        };
        match list.get(index as usize) {
            Some(&start) => Ok((machine::SP, i64::from(start) + i64::from(offset))),
            None => Err(CompileError::internal("expand", addr, "a slot that the frame has")),
        }
    }

    /// Returns the offset of an area of the frame from the stack pointer, in bytes.
    pub(super) fn area_offset(&self, area: u32) -> Result<u32, CompileError> {
        let start = self.frame.locals.get(area as usize).copied();
        start.ok_or_else(|| CompileError::internal("expand", format_args!("area {area}"), "an area that the frame has"))
    }

    /// Emits a load or store of `reg` at `offset` from `base`.
    pub(super) fn access(&mut self, op: Opcode, reg: Reg, base: Reg, offset: i64) {
        let narrow = i32::try_from(offset).ok().filter(|&o| fits(OperandKind::Offset9, o));
        let (base, offset) = match narrow {
            Some(offset) => (base, offset),
            None => {
                self.add_far(machine::SCRATCH, base, offset);
                (machine::SCRATCH, 0)
            }
        };
        self.op(op, [reg.into(), base.into(), offset.into()]);
    }

    /// Emits `dst` := `base` + a number that does not fit an immediate. `base` must differ from
    /// `dst`.
    fn add_far(&mut self, dst: Reg, base: Reg, number: i64) {
        self.constant(dst, (number & i64::from(u32::MAX)) as u32);
        self.op(Opcode::ADDSSS_32, [dst.into(), base.into(), dst.into()]);
    }

    pub(super) fn add(&mut self, dst: Reg, base: Reg, number: i64) {
        let fitting = |n: i64| i32::try_from(n).ok().filter(|&n| fits(OperandKind::Simm9, n));
        match fitting(number) {
            Some(0) => self.move_reg(dst, base),
            Some(n) => self.op(Opcode::ADDSSI, [dst.into(), base.into(), n.into()]),
            None if let Some(n) = fitting(-number) => {
                // A subtraction reaches one more number.
                self.op(Opcode::SUBSSI, [dst.into(), base.into(), n.into()]);
            }
            None if dst != base => self.add_far(dst, base, number),
            None => {
                self.constant(machine::SCRATCH, (number & i64::from(u32::MAX)) as u32);
                let operands = [dst.into(), base.into(), machine::SCRATCH.into()];
                self.op(Opcode::ADDSSS_32, operands);
            }
        }
    }

    // Constants.

    pub(super) fn constant(&mut self, dst: Reg, value: u32) {
        let dst = Operand::from(dst);
        let half = |n: u32| Operand::Imm((n & 0xffff).cast_signed());
        if value == u32::MAX {
            // An `or` with all ones is all ones for any source.
            self.op(Opcode::ORSSI, [dst, machine::SP.into(), Operand::Imm(-1)]);
        } else if value >> 16 == 0 {
            self.op(Opcode::MOVEISI, [dst, half(value)]);
        } else {
            self.op(Opcode::MOVEIHSI, [dst, half(value >> 16)]);
            self.op(Opcode::MOVEILSI, [dst, half(value)]);
        }
    }

    /// Emits a load of a vector from the constant pool. If no instruction was emitted since the
    /// last load, the scratch register still holds an address.
    fn pool_load(&mut self, dst: Reg, index: u32) {
        let distance = |from: u32| (i64::from(index) - i64::from(from)) * i64::from(VECTOR_SLOT);
        let near = |from: u32| i32::try_from(distance(from)).is_ok_and(|d| fits(OperandKind::Offset9, d));
        let base = match self.pool_base {
            Some((end, base)) if end == self.func.insts().len() && near(base) => base,
            _ => {
                for (op, kind) in HALVES {
                    let fixup = Fixup::Pool { kind, index };
                    self.push(Inst::new(op, [machine::SCRATCH.into(), Operand::Imm(0)]), fixup);
                }
                index
            }
        };
        self.access(load_op(RegClass::Vector), dst, machine::SCRATCH, distance(base));
        self.pool_base = Some((self.func.insts().len(), base));
    }

    fn set_mask(&mut self, mask: LaneMask<Reg>) {
        let rm = machine::MASK.into();
        match mask {
            LaneMask::Reg(reg) => self.op(Opcode::MOVE_SS_32, [rm, reg.into()]),
            LaneMask::Lanes(lanes) => self.op(Opcode::MOVEISI, [rm, i32::from(lanes).into()]),
        }
    }

    /// Emits a vector with the same word in every lane.
    fn splat(&mut self, dst: Reg, value: u32) {
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

    pub(super) fn symbol(&mut self, dst: Reg, target: &RelocTarget, addend: i64) {
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

    fn inst(&mut self, inst: &MInst) -> Result<(), CompileError> {
        match inst {
            MInst::Op { op, dst, srcs, imm } => self.plain(*op, *dst, srcs, *imm)?,
            MInst::Load { op, dst, addr } => {
                let (base, offset) = self.resolve(addr.map(&mut machine_reg)?)?;
                self.access(*op, machine_reg(*dst)?, base, offset);
            }
            MInst::Store { op, src, addr } => {
                let (base, offset) = self.resolve(addr.map(&mut machine_reg)?)?;
                self.access(*op, machine_reg(*src)?, base, offset);
            }
            MInst::Move { dst, src } => self.move_reg(machine_reg(*dst)?, machine_reg(*src)?),
            MInst::Const { dst, value } => match machine_reg(*dst)? {
                dst @ Reg::S(_) => self.constant(dst, *value),
                dst @ Reg::V(_) => self.splat(dst, *value),
            },
            MInst::PoolLoad { dst, index } => self.pool_load(machine_reg(*dst)?, *index),
            MInst::Masked {
                mask,
                op,
                dst,
                srcs,
                imm,
            } => {
                self.set_mask(mask.map(&mut machine_reg)?);
                self.plain(*op, Some(*dst), srcs, *imm)?;
                self.set_mask(LaneMask::Lanes(ALL_LANES));
            }
            MInst::MaskedStore { mask, op, src, addr } => {
                let (base, offset) = self.resolve(addr.map(&mut machine_reg)?)?;
                let mask = mask.map(&mut machine_reg)?;
                // The scratchpad never answers an access with an empty mask.
                let skip = match mask {
                    LaneMask::Reg(reg)
                        if op.desc().scratchpad && self.isa.has_erratum(Erratum::ScratchpadEmptyMask) =>
                    {
                        let skip = self.func.new_label();
                        let empty = Cond { reg, nonzero: false };
                        self.branch_if(empty, skip);
                        Some(skip)
                    }
                    _ => None,
                };
                self.set_mask(mask);
                self.access(*op, machine_reg(*src)?, base, offset);
                self.set_mask(LaneMask::Lanes(ALL_LANES));
                if let Some(skip) = skip {
                    self.func.bind(skip);
                }
            }
            MInst::SymbolAddr { dst, target, addend } => self.symbol(machine_reg(*dst)?, target, *addend),
            MInst::Address { dst, addr } => {
                let (base, offset) = self.resolve(addr.map(&mut machine_reg)?)?;
                self.add(machine_reg(*dst)?, base, offset);
            }
            MInst::Select { cond, words } => {
                if words.iter().any(|word| word.if_false != word.dst) {
                    let skip = self.func.new_label();
                    self.branch_if(cond.map(&mut machine_reg)?, skip);
                    for word in words {
                        self.move_reg(machine_reg(word.dst)?, machine_reg(word.if_false)?);
                    }
                    self.func.bind(skip);
                }
            }
            MInst::TrapIf { cond, code } => {
                let label = self.trap_label(*code);
                self.branch_if(cond.map(&mut machine_reg)?, label);
                self.mark_trap(*code);
            }
            MInst::Trap { code } => {
                let label = self.trap_label(*code);
                self.jump(label);
                self.mark_trap(*code);
            }
            MInst::DebugTrap {
                tmps: [status, register],
            } => self.debug_trap(machine_reg(*status)?, machine_reg(*register)?),
            MInst::Args { .. } => self.prologue()?,
            MInst::Return { .. } => {
                self.leave_frame(self.frame.layout.popped.into());
                self.op(Opcode::JRET, []);
            }
            MInst::Call(info) => {
                self.jump_to_callee(&info.dest, CallKind::Call)?;
                if info.popped > 0 {
                    self.call_site(info.popped, Vec::new());
                    self.add_to_sp(-i64::from(info.popped));
                }
            }
            MInst::BlockAddress { dst, block } => {
                let target = self.block_labels.get(*block).copied();
                let target = target.ok_or_else(|| CompileError::internal("expand", inst, "a block of the function"))?;
                let dst = machine_reg(*dst)?;
                for (op, kind) in HALVES {
                    self.push(
                        Inst::new(op, [dst.into(), Operand::Imm(0)]),
                        Fixup::Address { kind, target },
                    );
                }
            }
            MInst::ReturnCall(info) => {
                self.leave_frame(i64::from(self.frame.layout.popped) - i64::from(info.popped));
                self.jump_to_callee(&info.dest, CallKind::TailCall)?;
            }
            MInst::ReturnAddress { dst } => self.return_address(machine_reg(*dst)?),
            MInst::Copy {
                area,
                src,
                size,
                aligned,
                tmps,
            } => {
                let [a, b, c, d] = *tmps;
                let tmps = [machine_reg(a)?, machine_reg(b)?, machine_reg(c)?, machine_reg(d)?];
                self.copy(*area, machine_reg(*src)?, *size, *aligned, tmps)?;
            }
            MInst::Fence => {
                // A label keeps the scheduler from moving accesses across it.
                let fence = self.func.new_label();
                self.func.bind(fence);
            }
            MInst::SequencePoint => {
                // A label keeps instructions on their side of the sequence point.
                let point = self.func.new_label();
                self.func.bind(point);
                self.func
                    .sequence_points
                    .extend(self.origin.inst.map(|inst| (point, inst)));
            }
            MInst::Jump | MInst::CondBr { .. } | MInst::BrTable { .. } | MInst::TryCall(_) => {
                return Err(CompileError::internal(
                    "expand",
                    inst,
                    "an instruction that ends no block",
                ));
            }
        }
        Ok(())
    }

    fn plain(&mut self, op: Opcode, dst: Option<reg::Reg>, srcs: &[reg::Reg], imm: i32) -> Result<(), CompileError> {
        let mut regs = srcs.iter().copied();
        let mut operands = Operands::new();
        for operand in op.desc().operands {
            let reg = if operand.is_def {
                dst
            } else if operand.kind.register_file().is_some() {
                regs.next()
            } else {
                operands.push(Operand::Imm(imm));
                continue;
            };
            let reg = reg.and_then(reg::Reg::as_real);
            let reg = reg.ok_or_else(|| CompileError::internal("expand", op, "a register for every operand"))?;
            operands.push(reg.into());
        }
        self.push(Inst { opcode: op, operands }, Fixup::None);
        Ok(())
    }

    // Traps.

    pub(super) fn trap_label(&mut self, code: TrapCode) -> Label {
        if let Some(&(_, label)) = self.traps.get(&code.as_raw().get()) {
            return label;
        }
        let label = self.func.new_label();
        self.traps.insert(code.as_raw().get(), (code, label));
        label
    }

    pub(super) fn mark_trap(&mut self, code: TrapCode) {
        if let Some(last) = self.func.last_mut() {
            last.trap = Some(code);
        }
    }

    /// Emits one sequence per trap code: it writes the code to `tr` and the status to the control
    /// register, and stops the thread.
    fn trap_sequences(&mut self) {
        let [status, register] = TRAP_SCRATCH.map(Operand::from);
        self.origin = Origin::produced_by(Producer::Trap);
        for (code, label) in std::mem::take(&mut self.traps).into_values() {
            self.func.bind(label);
            self.set_trapped(code.as_raw().get(), status, register);
            let here = self.func.new_label();
            self.func.bind(here);
            self.jump(here);
        }
    }

    /// Emits writes of the trap code and the status.
    fn set_trapped(&mut self, code: u8, status: Operand, register: Operand) {
        self.op(Opcode::MOVEISI, [machine::SCRATCH.into(), i32::from(code).into()]);
        self.op(
            Opcode::MOVEISI,
            [register, i32::from(ControlRegister::ThreadStatus.number()).into()],
        );
        self.op(Opcode::MOVEISI, [status, (ThreadStatus::Trapped as i32).into()]);
        self.op(Opcode::WRITECR, [status, register]);
    }

    /// Emits a trap with a reserved code.
    ///
    /// The jump is a branch that is always taken, because a debugger can resume at the code after
    /// it. The debugger finds there the status with which the thread continues.
    fn debug_trap(&mut self, status: Reg, register: Reg) {
        let operands = [Operand::from(status), Operand::from(register)];
        self.set_trapped(NO_TRAP_CODE, operands[0], operands[1]);
        let here = self.func.new_label();
        self.func.bind(here);
        let always = Cond {
            reg: status,
            nonzero: true,
        };
        self.branch_if(always, here);
        self.op(Opcode::MOVEISI, [operands[0], (ThreadStatus::Running as i32).into()]);
        self.op(Opcode::WRITECR, operands);
    }

    // Frame.

    fn prologue(&mut self) -> Result<(), CompileError> {
        self.origin = self.origin.with_producer(Producer::Prologue);
        self.check_stack()?;
        let start = self.func.insts().len();
        let layout = &self.frame.layout;
        let (size, saved, frame_pointer) = (i64::from(layout.size), layout.saved.clone(), layout.frame_pointer);
        let (first, rest) = self.adjustments();
        self.add_to_sp(-first);
        for &(reg, offset) in &saved {
            let class = class_of(reg);
            self.access(store_op(class), reg, machine::SP, i64::from(offset) - (size - first));
        }
        self.add_to_sp(-rest);
        if frame_pointer {
            self.move_reg(machine::FP, machine::SP);
        }
        self.func.mark_since(start, FrameStep::Enter);
        Ok(())
    }

    /// Emits the restores of the saved registers and sets `sp` to its value at entry plus `above`.
    ///
    /// `sp` never decreases, whatever `above` is: if arguments of a tail call need more room than
    /// the function's own, the frame contains that room.
    fn leave_frame(&mut self, above: i64) {
        let start = self.func.insts().len();
        let layout = &self.frame.layout;
        let (size, saved) = (i64::from(layout.size), layout.saved.clone());
        let (first, rest) = self.adjustments();
        self.add_to_sp(rest);
        for &(reg, offset) in saved.iter().rev() {
            self.access(
                load_op(class_of(reg)),
                reg,
                machine::SP,
                i64::from(offset) - (size - first),
            );
        }
        self.add_to_sp(first + above);
        self.func.mark_since(start, FrameStep::Leave);
    }

    /// Returns the two steps in which the frame is allocated. The second one is 0 if the registers
    /// can be saved with short offsets after a single step.
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

    pub(super) fn add_to_sp(&mut self, number: i64) {
        if number != 0 {
            self.add(machine::SP, machine::SP, number);
        }
    }
}

fn class_of(reg: Reg) -> RegClass {
    match reg {
        Reg::S(_) => RegClass::Int,
        Reg::V(_) => RegClass::Vector,
    }
}

pub(super) fn too_large(what: &str) -> CompileError {
    CompileError::TooLarge(what.to_owned())
}
