//! Compares of lanes, and what their users make of them.
//!
//! CLIF's compare makes lanes of all ones; the hardware makes a bit a lane in a scalar register. A user that can take the bits
//! asks for them ([`Lower::mask_of`]); lanes are made only if somebody wants lanes. Lowering goes backwards, so when the
//! compare is lowered it is known what is wanted.

use super::{Lanes, is_vector};
use crate::inst::reg::Reg;
use crate::inst::{ALL_LANES, Cond, LANES, LaneMask, MInst, Srcs};
use crate::lower::context::{InstOutput, Lower, ValueRegs};
use crate::lower::words::Word;
use cranelift_codegen::ir::{Inst, InstructionData, Opcode, Type, Value, ValueDef};
use npu_mc::errata::Erratum;
use npu_mc::{Opcode as Op, relation};
use regalloc2::RegClass;
use smallvec::smallvec;

/// How many logical operations between compares and users are followed.
const MAX_DEPTH: u32 = 8;

/// How far the first of several equal compares is looked for.
const TWIN_DISTANCE: usize = 64;

/// Puts the bits of one half of a word out of sight.
const HALF: u32 = 16;

/// An operation that can be done on some lanes.
struct Operation {
    op: Op,
    a: Value,
    b: Value,
}

impl Lower<'_> {
    /// The bits of a value whose lanes are all ones or zeros because it compares. Upper bits mean nothing.
    pub fn mask_of(&mut self, value: Value) -> Option<Word> {
        self.is_mask(value, MAX_DEPTH).then(|| self.request_mask(value))
    }

    /// Whether the instruction makes a mask first, and lanes from it if they are wanted.
    pub fn makes_mask(&self, inst: Inst) -> bool {
        let result = self.func.dfg.first_result(inst);
        self.masks[result].is_some() || self.is_mask(result, MAX_DEPTH)
    }

    fn is_mask(&self, value: Value, depth: u32) -> bool {
        let value = self.func.dfg.resolve_aliases(value);
        if self.masks[value].is_some() || self.constant_mask(value).is_some() {
            return true;
        }
        let ValueDef::Result(inst, 0) = self.func.dfg.value_def(value) else {
            return false;
        };
        if depth == 0 || !is_vector(self.func.dfg.value_type(value)) {
            return false;
        }
        match self.func.dfg.insts[inst] {
            InstructionData::IntCompare { .. } | InstructionData::FloatCompare { .. } => true,
            InstructionData::Binary {
                opcode: Opcode::Band | Opcode::Bor | Opcode::Bxor,
                args,
            } => args.iter().all(|&arg| self.is_mask(arg, depth - 1)),
            InstructionData::Unary {
                opcode: Opcode::Bnot,
                arg,
            } => self.is_mask(arg, depth - 1),
            InstructionData::LoadNoOffset {
                opcode: Opcode::Bitcast,
                arg,
                ..
            } => self.is_mask(arg, depth - 1),
            _ => false,
        }
    }

    fn constant_mask(&self, value: Value) -> Option<u16> {
        let lanes = self.constant_vector(value)?;
        let mut mask = 0;
        for (index, lane) in lanes.iter().enumerate() {
            match *lane {
                0 => {}
                u32::MAX => mask |= 1 << index,
                _ => return None,
            }
        }
        Some(mask)
    }

    /// The first of the same compares in a block: the optimizer repeats a compare for each of its users.
    fn first_of_its_kind(&self, value: Value) -> Value {
        let ValueDef::Result(inst, 0) = self.func.dfg.value_def(value) else {
            return value;
        };
        let insts = &self.func.dfg.insts;
        if !matches!(
            insts[inst],
            InstructionData::IntCompare { .. } | InstructionData::FloatCompare { .. }
        ) {
            return value;
        }
        let before = |&at: &Inst| self.func.layout.prev_inst(at);
        let twins = std::iter::successors(self.func.layout.prev_inst(inst), before)
            .take(TWIN_DISTANCE)
            .filter(|&at| insts[at] == insts[inst]);
        twins.last().map_or(value, |twin| self.func.dfg.first_result(twin))
    }

    fn request_mask(&mut self, value: Value) -> Word {
        let value = self.func.dfg.resolve_aliases(value);
        let value = self.first_of_its_kind(value);
        if let Some(mask) = self.constant_mask(value) {
            return Word::Const(mask.into());
        }
        if let ValueDef::Result(inst, 0) = self.func.dfg.value_def(value)
            && let InstructionData::LoadNoOffset { arg, .. } = self.func.dfg.insts[inst]
        {
            // A cast changes no lane.
            return self.request_mask(arg);
        }
        let reg = match self.masks[value] {
            Some(reg) => reg,
            None => {
                let reg = self.new_vreg(RegClass::Int);
                self.masks[value] = Some(reg);
                reg
            }
        };
        Word::Reg(Reg::Virtual(reg))
    }

    /// A compare, or a logical operation on masks: the mask and, if they are wanted, the lanes.
    pub fn lower_mask(&mut self, inst: Inst) -> Option<InstOutput> {
        let result = self.func.dfg.first_result(inst);
        let mask = match self.func.dfg.insts[inst] {
            InstructionData::IntCompare { cond, args, .. } => super::compare::icmp(self, cond, args),
            InstructionData::FloatCompare { cond, args, .. } => super::compare::fcmp(self, cond, args),
            InstructionData::Binary { opcode, args } => {
                let (a, b) = (self.request_mask(args[0]), self.request_mask(args[1]));
                let op = match opcode {
                    Opcode::Band => Op::ANDSSS_32,
                    Opcode::Bor => Op::ORSSS_32,
                    _ => Op::XORSSS_32,
                };
                self.binary(op, a, b)
            }
            InstructionData::Unary { arg, .. } => {
                let mask = self.request_mask(arg);
                self.other_lanes(mask)
            }
            _ => return None,
        };
        if let Some(wanted) = self.masks[result] {
            let reg = self.reg(mask).as_virtual()?;
            self.give(wanted, reg);
        }
        if self.lowered_uses[result] == 0 {
            return Some(smallvec![self.value_regs[result]?]);
        }
        let lanes = self.lanes_from_mask(mask);
        Some(smallvec![self.lanes_regs(lanes)])
    }

    /// The lanes that are not in the mask.
    pub fn other_lanes(&mut self, mask: Word) -> Word {
        match mask {
            Word::Const(lanes) => Word::Const(!lanes & u32::from(ALL_LANES)),
            Word::Reg(_) if self.isa.has_erratum(Erratum::VectorCompareUpperHalf) => {
                self.binary(Op::XORSSS_32, mask, Word::Const(u32::MAX))
            }
            // On a machine where upper bits are zero, they stay zero.
            Word::Reg(_) => self.binary(Op::XORSSS_32, mask, Word::Const(ALL_LANES.into())),
        }
    }

    /// All ones in the lanes of the mask, zeros in the others.
    pub fn lanes_from_mask(&mut self, mask: Word) -> Lanes {
        self.masked_move(mask, Lanes::Const(u32::MAX), Lanes::Const(0))
    }

    fn lane_mask(&mut self, mask: Word) -> LaneMask {
        match mask {
            Word::Const(lanes) => LaneMask::Lanes((lanes & u32::from(ALL_LANES)) as u16),
            Word::Reg(reg) => LaneMask::Reg(reg),
        }
    }

    /// `x` in the lanes of the mask, `y` in the others.
    pub fn masked_move(&mut self, mask: Word, x: Lanes, y: Lanes) -> Lanes {
        match mask {
            Word::Const(lanes) if lanes & u32::from(ALL_LANES) == 0 => return y,
            Word::Const(lanes) if lanes & u32::from(ALL_LANES) == ALL_LANES.into() => return x,
            _ if x == y => return x,
            _ => {}
        }
        let old = self.fresh_reg(y);
        let (op, srcs, imm): (Op, Srcs, i32) = match x {
            Lanes::Reg(reg) => (Op::MOVE_VV_M_32, smallvec![reg, old], 0),
            Lanes::Const(u32::MAX) => (Op::ORVVI_M, smallvec![old, old], -1),
            Lanes::Const(number) if number >> 16 == 0 => (Op::MOVEIVI_M, smallvec![old], number.cast_signed()),
            Lanes::Const(_) | Lanes::Value { .. } | Lanes::Scalar(_) => {
                let scalar = self.splat_word(x);
                (Op::MOVE_VS_M_32, smallvec![self.reg(scalar), old], 0)
            }
        };
        let mask = self.lane_mask(mask);
        Lanes::Reg(self.emit_masked(mask, op, srcs, imm))
    }

    /// The operation, given in the form for two vectors and all lanes, on the lanes of the mask; `old` in the others.
    pub fn masked_op(&mut self, mask: Word, op: Op, a: Lanes, b: Lanes, old: Lanes) -> Lanes {
        let (a, b) = if a.is_splat() && !b.is_splat() && op.desc().flags.is_commutable() {
            (b, a)
        } else {
            (a, b)
        };
        let (op, mut srcs, imm) = self.operands(op, a, b);
        let old = self.fresh_reg(old);
        match relation::to_masked(op) {
            Some(masked) => {
                srcs.push(old);
                let mask = self.lane_mask(mask);
                Lanes::Reg(self.emit_masked(mask, masked, srcs, imm))
            }
            None => {
                let result = Lanes::Reg(self.emit_op(op, &srcs, imm, RegClass::Vector));
                self.masked_move(mask, result, Lanes::Reg(old))
            }
        }
    }

    fn emit_masked(&mut self, mask: LaneMask, op: Op, srcs: Srcs, imm: i32) -> Reg {
        let dst = Reg::Virtual(self.new_vreg(RegClass::Vector));
        self.emit(MInst::Masked {
            mask,
            op,
            dst,
            srcs,
            imm,
        });
        dst
    }

    /// An operation on lanes that nobody but the instruction at hand uses, so that it can be done on some lanes only.
    fn sole_operation(&self, value: Value) -> Option<Operation> {
        let mut inst = self.sole_definition(value)?;
        if let InstructionData::LoadNoOffset {
            opcode: Opcode::Bitcast,
            arg,
            ..
        } = self.func.dfg.insts[inst]
            && is_vector(self.func.dfg.value_type(arg))
        {
            // A cast changes no lane.
            inst = self.sole_definition(arg)?;
        }
        let InstructionData::Binary { opcode, args } = self.func.dfg.insts[inst] else {
            return None;
        };
        let hardware = self.has_hardware_float();
        let op = match opcode {
            Opcode::Iadd => Op::ADDVVV_U_32,
            Opcode::Isub => Op::SUBVVV_U_32,
            Opcode::Imul => Op::MULLVVV_U_32,
            Opcode::Band => Op::ANDVVV_U_32,
            Opcode::Bor => Op::ORVVV_U_32,
            Opcode::Bxor => Op::XORVVV_U_32,
            Opcode::Fadd if hardware => Op::ADDFVVV_U_32,
            Opcode::Fsub if hardware => Op::SUBFVVV_U_32,
            Opcode::Fmul if hardware => Op::MULFVVV_U_32,
            Opcode::Fdiv if hardware => Op::DIVFVVV_U_32,
            _ => return None,
        };
        // What masks are used in is better off with the rules for masks.
        if self.makes_mask(inst) || args.iter().any(|&arg| self.is_mask(arg, MAX_DEPTH)) {
            return None;
        }
        Some(Operation {
            op,
            a: args[0],
            b: args[1],
        })
    }

    /// The instruction in the block at hand that makes the value, if it has one user.
    fn sole_definition(&self, value: Value) -> Option<Inst> {
        let value = self.func.dfg.resolve_aliases(value);
        let ValueDef::Result(inst, 0) = self.func.dfg.value_def(value) else {
            return None;
        };
        let here = self.origin.inst.and_then(|at| self.func.layout.inst_block(at));
        let single = self.uses[value] == 1 && self.lowered_uses[value] == 0 && self.masks[value].is_none();
        (single && here.is_some() && self.func.layout.inst_block(inst) == here).then_some(inst)
    }

    /// The lanes of the mask from `x`, the others from `y`.
    pub fn choose_lanes(&mut self, mask: Word, x: Value, y: Value) -> Lanes {
        if let (Word::Reg(_), Some(Operation { op, a, b })) = (mask, self.sole_operation(x)) {
            let (a, b) = (self.lanes(a), self.lanes(b));
            let old = self.lanes(y);
            return self.masked_op(mask, op, a, b, old);
        }
        let (x, y) = (self.lanes(x), self.lanes(y));
        self.masked_move(mask, x, y)
    }

    /// The mask and the operand of a value that is the operand in the lanes of the mask and zero in the others: a `band` with
    /// a compare, or the compare itself, which is -1. Only if nobody else uses the value.
    pub fn zero_elsewhere(&mut self, value: Value) -> Option<(Word, Lanes)> {
        let inst = self.sole_definition(value)?;
        if self.is_mask(value, MAX_DEPTH) {
            let mask = self.request_mask(value);
            return matches!(mask, Word::Reg(_)).then_some((mask, Lanes::Const(u32::MAX)));
        }
        let InstructionData::Binary {
            opcode: Opcode::Band,
            args: [a, b],
        } = self.func.dfg.insts[inst]
        else {
            return None;
        };
        let (mask, other) = match (self.is_mask(a, MAX_DEPTH), self.is_mask(b, MAX_DEPTH)) {
            (true, _) => (a, b),
            (false, true) => (b, a),
            (false, false) => return None,
        };
        let mask = self.request_mask(mask);
        let other = self.lanes(other);
        Some((mask, other))
    }

    /// The condition that some lane is not zero, or that all lanes are not zero.
    pub fn lanes_cond(&mut self, value: Value, all: bool) -> Cond {
        let ty = self.func.dfg.value_type(value);
        let mask = match self.mask_of(value) {
            Some(mask) if all => self.other_lanes(mask),
            Some(mask) => mask,
            None => {
                let lanes = self.lanes(value);
                let lanes = self.zero_extended(int_of(ty), lanes);
                let op = if all { Op::SEQSISVV_U_32 } else { Op::SNESISVV_U_32 };
                self.vector_compare(op, lanes, Lanes::Const(0))
            }
        };
        let bits = self.clean_or_shifted(mask);
        Cond {
            reg: self.reg(bits),
            nonzero: !all,
        }
    }

    /// A word that is zero if no lane is in the mask.
    fn clean_or_shifted(&mut self, mask: Word) -> Word {
        if self.isa.has_erratum(Erratum::VectorCompareUpperHalf) {
            self.binary(Op::SLLSSS_32, mask, Word::Const(HALF))
        } else {
            mask
        }
    }

    /// 1 if some lane is not zero (or all are not), else 0.
    pub fn lanes_truth(&mut self, value: Value, all: bool) -> Word {
        let Cond { reg, nonzero } = self.lanes_cond(value, all);
        let op = if nonzero { Op::SNESISSS_32 } else { Op::SEQSISSS_32 };
        self.binary(op, Word::Reg(reg), Word::ZERO)
    }

    /// The top bits of the lanes. Bits above the sixteenth are zero.
    pub fn high_bits(&mut self, value: Value) -> Word {
        let ty = self.func.dfg.value_type(value);
        if let Some(mask) = self.mask_of(value) {
            let clean = !self.isa.has_erratum(Erratum::VectorCompareUpperHalf);
            return match mask {
                Word::Reg(_) if clean => mask,
                _ => self.binary(Op::ANDSSS_32, mask, Word::Const(ALL_LANES.into())),
            };
        }
        let lanes = self.lanes(value);
        let lowest = self.vector_op(Op::SRLVVV_U_32, lanes, Lanes::Const(ty.lane_bits() - 1));
        let lowest = self.vector_reg(lowest);
        Word::Reg(self.emit_op(Op::CREATEMASK_32, &[lowest], 0, RegClass::Int))
    }

    /// A mask of lanes whose top bit is set.
    pub fn negative_lanes(&mut self, value: Value) -> Word {
        if let Some(mask) = self.mask_of(value) {
            return mask;
        }
        let ty = self.func.dfg.value_type(value);
        let lanes = self.lanes(value);
        let lanes = self.sign_extended(int_of(ty), lanes);
        self.vector_compare(Op::SLTSISVV_U_32, lanes, Lanes::Const(0))
    }

    /// A compare of lanes, given in the form for two vectors.
    pub fn vector_compare(&mut self, op: Op, a: Lanes, b: Lanes) -> Word {
        if let (Lanes::Const(x), Lanes::Const(y), Some(scalar)) = (a, b, relation::to_scalar(op))
            && let Some(holds) = crate::lower::words::fold(scalar, x, y)
        {
            return Word::Const(if holds == 0 { 0 } else { ALL_LANES.into() });
        }
        let (op, a, b) = match relation::swapped_compare(op) {
            Some(swapped) if a.is_splat() && !b.is_splat() => (swapped, b, a),
            _ => (op, a, b),
        };
        let (op, srcs, imm) = self.operands(op, a, b);
        Word::Reg(self.emit_op(op, &srcs, imm, RegClass::Int))
    }

    /// The mask of one lane.
    pub fn lane_bit(lane: u8) -> Word {
        Word::Const(1 << (usize::from(lane) % LANES))
    }
}

/// The type as integers.
pub fn int_of(ty: Type) -> Type {
    ty.as_int()
}

impl Lower<'_> {
    /// Lets a register that was promised stand for another one.
    fn give(&mut self, promised: regalloc2::VReg, reg: regalloc2::VReg) {
        let to = self.resolve(reg);
        if to != promised {
            self.aliases[promised.vreg()] = to;
        }
    }

    /// The result in its registers.
    pub fn vector_output(&mut self, lanes: Lanes) -> ValueRegs {
        self.lanes_regs(lanes)
    }
}
