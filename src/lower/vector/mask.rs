//! Lowers compares of lanes to lane masks.
//!
//! CLIF's compare produces lanes of all ones; the hardware produces one bit per lane in a scalar
//! register. A user that accepts the bits requests them ([`Lower::request_mask`]). The compare
//! materializes lanes only if another user requires them. Lowering runs backwards, so all requests
//! are known when the compare is lowered.

use super::Lanes;
use crate::inst::reg::{Reg, Vector};
use crate::inst::{ALL_LANES, LANES, LaneMask, MInst, Srcs};
use crate::lower::context::Lower;
use crate::lower::words::Word;
use crate::shape::register_type;
use cranelift_codegen::ir::{Inst, InstructionData, Opcode, Value, ValueDef};
use npu_mc::Opcode as Op;
use regalloc2::{RegClass, VReg};

/// The number of logical operations that are followed between a compare and its user.
const MAX_DEPTH: u32 = 8;

/// The maximum distance, in instructions, to the first of several equal compares.
const TWIN_DISTANCE: usize = 64;

/// A value that is a mask ([`Lower::is_mask`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaskOf(pub Value);

impl Lower<'_> {
    /// Returns whether each lane of the value is known to be all ones or all zeros: a compare, a
    /// constant, or a bitwise operation or cast of such values.
    pub fn is_mask(&self, value: Value) -> bool {
        self.is_mask_within(value, MAX_DEPTH)
    }

    fn is_mask_within(&self, value: Value, depth: u32) -> bool {
        if self.mask_wanted(value).is_some() || self.constant_mask(value).is_some() {
            return true;
        }
        let ValueDef::Result(inst, 0) = self.func.dfg.value_def(value) else {
            return false;
        };
        if depth == 0 || register_type(self.func.dfg.value_type(value)).is_none() {
            return false;
        }
        match self.func.dfg.insts[inst] {
            InstructionData::IntCompare { .. } | InstructionData::FloatCompare { .. } => true,
            InstructionData::Binary {
                opcode: Opcode::Band | Opcode::Bor | Opcode::Bxor,
                args,
            } => args.iter().all(|&arg| self.is_mask_within(arg, depth - 1)),
            InstructionData::Unary {
                opcode: Opcode::Bnot,
                arg,
            } => self.is_mask_within(arg, depth - 1),
            InstructionData::LoadNoOffset {
                opcode: Opcode::Bitcast,
                arg,
                ..
            } => self.has_same_lanes(value, arg) && self.is_mask_within(arg, depth - 1),
            _ => false,
        }
    }

    /// Returns the register in which users requested the mask of the current part.
    fn mask_wanted(&self, value: Value) -> Option<VReg> {
        *self.masks[value].get(usize::from(self.part))?
    }

    /// Returns whether the value is a mask but not a constant.
    pub fn is_variable_mask(&self, value: Value) -> bool {
        self.constant_mask(value).is_none() && self.is_mask(value)
    }

    /// Returns whether both are vectors with the same lane count.
    fn has_same_lanes(&self, x: Value, y: Value) -> bool {
        let [x, y] = [x, y].map(|value| self.func.dfg.value_type(value));
        register_type(x).is_some() && register_type(y).is_some() && x.lane_count() == y.lane_count()
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

    /// Returns the first of equal compares in a block. The optimizer duplicates a compare for each
    /// of its users.
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

    /// Requests the bits of a mask value. The upper bits are undefined.
    pub fn request_mask(&mut self, value: Value) -> Word {
        let value = self.first_of_its_kind(value);
        if let Some(mask) = self.constant_mask(value) {
            return Word::Const(mask.into());
        }
        if let ValueDef::Result(inst, 0) = self.func.dfg.value_def(value)
            && let InstructionData::LoadNoOffset { arg, .. } = self.func.dfg.insts[inst]
        {
            // A cast to the same lane count does not change the lanes.
            return self.request_mask(arg);
        }
        let reg = match self.mask_wanted(value) {
            Some(reg) => reg,
            None => {
                let reg = self.new_vreg(RegClass::Int);
                let part = usize::from(self.part);
                if let Some(place) = self.masks[value].get_mut(part) {
                    *place = Some(reg);
                }
                reg
            }
        };
        Word::Reg(Reg::Virtual(reg))
    }

    /// Defines the requested mask of the current instruction. Returns the register of its result if
    /// no user requires lanes, which then needs no definition.
    pub fn give_mask(&mut self, mask: Word) -> Option<Lanes> {
        let result = self.func.dfg.first_result(self.origin.inst?);
        if let Some(wanted) = self.mask_wanted(result) {
            let reg = self.reg(mask).as_virtual()?;
            self.give(wanted, reg);
        }
        if self.lowered_uses[result] > 0 {
            return None;
        }
        let regs = self.value_regs[result]?;
        let own = regs.as_slice().get(usize::from(self.part))?;
        Some(Lanes::Reg(Reg::Virtual(*own)))
    }

    /// Converts the mask to an operand of instructions.
    pub fn lane_mask(&mut self, mask: Word) -> LaneMask {
        match mask {
            Word::Const(lanes) => LaneMask::Lanes((lanes & u32::from(ALL_LANES)) as u16),
            Word::Reg(_) | Word::Missing => LaneMask::Reg(self.reg(mask)),
        }
    }

    /// Emits one masked instruction; disabled lanes keep the value of `old`.
    pub fn emit_masked(&mut self, mask: Word, op: Op, srcs: &[Reg], imm: i32, old: Vector) -> Vector {
        let dst = Reg::Virtual(self.new_vreg(RegClass::Vector));
        let mut srcs = Srcs::from_slice(srcs);
        srcs.push(old.0);
        let mask = self.lane_mask(mask);
        self.emit(MInst::Masked {
            mask,
            op,
            dst,
            srcs,
            imm,
        });
        Vector(dst)
    }

    /// Returns the value of a lane operation whose only user is the current instruction, possibly
    /// through a cast. Returns `None` if the operation involves masks, because the rules for masks
    /// produce better code.
    pub fn sole_operation(&self, mut value: Value) -> Option<Value> {
        let mut inst = self.sole_definition(value)?;
        if let InstructionData::LoadNoOffset {
            opcode: Opcode::Bitcast,
            arg,
            ..
        } = self.func.dfg.insts[inst]
            && self.has_same_lanes(value, arg)
        {
            // A cast to the same lane count does not change the lanes.
            inst = self.sole_definition(arg)?;
            value = arg;
        }
        let InstructionData::Binary { args, .. } = self.func.dfg.insts[inst] else {
            return None;
        };
        let masks = self.is_mask(value) || args.iter().any(|&arg| self.is_mask(arg));
        (!masks).then_some(value)
    }

    /// Returns the instruction that defines the value, if it is in the current block and the value
    /// is single-use.
    pub fn sole_definition(&self, value: Value) -> Option<Inst> {
        let ValueDef::Result(inst, 0) = self.func.dfg.value_def(value) else {
            return None;
        };
        let here = self.origin.inst.and_then(|at| self.func.layout.inst_block(at));
        let single = self.uses[value] == 1 && self.lowered_uses[value] == 0 && self.mask_wanted(value).is_none();
        (single && here.is_some() && self.func.layout.inst_block(inst) == here).then_some(inst)
    }

    /// Returns the mask of one lane of a register.
    pub fn lane_bit(lane: u8) -> Word {
        Word::Const(1 << (usize::from(lane) % LANES))
    }
}

impl Lower<'_> {
    /// Makes a requested register an alias of another one.
    fn give(&mut self, promised: VReg, reg: VReg) {
        let to = self.resolve(reg);
        if to != promised {
            self.aliases[promised.vreg()] = to;
        }
    }
}
