//! Vectors of sixteen lanes, one register each.
//!
//! `i32x16` and `f32x16` fill their lanes; `i16x16` and `i8x16` have one element a lane, and the upper bits of a lane mean
//! nothing, as in narrow scalars. An operand that is a scalar in every lane stays a scalar or a constant as long as
//! instructions take it as one ([`Lanes`]). Compares give a bit a lane in a scalar register ([`mask`]).

pub mod arithmetic;
pub mod compare;
pub mod float;
pub mod mask;
pub mod memory;
pub mod permute;
pub mod rounding;
pub(super) mod rules;

use super::constants::Constant;
use super::context::{Lower, ValueRegs, sign_extend};
use super::words::{self, Word};
use crate::inst::ops::immediate_range;
use crate::inst::reg::Reg;
use crate::inst::{LANES, MInst, Srcs};
pub use crate::types::is_vector;
use cranelift_codegen::ir::{InstructionData, Opcode, Type, Value, ValueDef};
use npu_mc::{Opcode as Op, OperandKind, relation};
use regalloc2::{RegClass, VReg};

/// How many insertions into a constant vector are followed.
const MAX_DEPTH: u32 = 24;

/// A vector operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lanes {
    /// A vector register.
    Reg(Reg),
    /// The constant in every lane.
    Const(u32),
    /// The scalar in every lane, as a value of its own.
    Value {
        /// The scalar.
        scalar: Value,
        /// The vector.
        vector: Value,
    },
    /// A scalar register in every lane.
    Scalar(Reg),
}

impl Lanes {
    /// Whether all lanes are known to be the same.
    pub fn is_splat(self) -> bool {
        !matches!(self, Self::Reg(_))
    }
}

/// Whether the lanes of the type fill theirs.
pub fn is_full(ty: Type) -> bool {
    ty.lane_bits() == 32
}

impl Lower<'_> {
    /// A vector operand, looked at for scalars and constants. It becomes used when it is put in a register.
    pub fn lanes(&mut self, value: Value) -> Lanes {
        let value = self.func.dfg.resolve_aliases(value);
        if let Some(lanes) = self.constant_vector(value) {
            if lanes.iter().all(|&lane| lane == lanes[0]) {
                return Lanes::Const(lanes[0]);
            }
            return Lanes::Reg(Reg::Virtual(self.vector_constant(&lanes)));
        }
        if let ValueDef::Result(inst, 0) = self.func.dfg.value_def(value)
            && let InstructionData::Unary { opcode, arg } = self.func.dfg.insts[inst]
            && opcode == Opcode::Splat
        {
            return Lanes::Value {
                scalar: arg,
                vector: value,
            };
        }
        Lanes::Reg(Reg::Virtual(self.put_in_regs(value).as_slice()[0]))
    }

    /// The lanes of a constant vector, sign-extended to 32 bits.
    pub fn constant_vector(&self, value: Value) -> Option<[u32; LANES]> {
        self.constant_lanes(value, MAX_DEPTH)
    }

    fn constant_lanes(&self, value: Value, depth: u32) -> Option<[u32; LANES]> {
        let value = self.func.dfg.resolve_aliases(value);
        let ty = self.func.dfg.value_type(value);
        if !is_vector(ty) {
            return None;
        }
        let ValueDef::Result(inst, 0) = self.func.dfg.value_def(value) else {
            return None;
        };
        let depth = depth.checked_sub(1)?;
        let scalar = |value| self.wide_constant(value).map(|c| sign_extend(c as u64, ty.lane_bits()));
        match self.func.dfg.insts[inst] {
            InstructionData::UnaryConst {
                opcode: Opcode::Vconst,
                constant_handle,
            } => {
                let bytes = self.func.dfg.constants.get(constant_handle).as_slice();
                let width = ty.lane_bits() as usize / 8;
                let mut lanes = [0; LANES];
                for (lane, bytes) in lanes.iter_mut().zip(bytes.chunks_exact(width)) {
                    let number = bytes.iter().rev().fold(0, |n, &byte| n << 8 | u64::from(byte));
                    *lane = sign_extend(number, ty.lane_bits());
                }
                Some(lanes)
            }
            InstructionData::Unary {
                opcode: Opcode::Splat,
                arg,
            } => Some([scalar(arg)?; LANES]),
            InstructionData::Unary {
                opcode: Opcode::ScalarToVector,
                arg,
            } => {
                let mut lanes = [0; LANES];
                lanes[0] = scalar(arg)?;
                Some(lanes)
            }
            InstructionData::TernaryImm8 {
                opcode: Opcode::Insertlane,
                args,
                imm,
            } => {
                let mut lanes = self.constant_lanes(args[0], depth)?;
                *lanes.get_mut(usize::from(imm))? = scalar(args[1])?;
                Some(lanes)
            }
            InstructionData::LoadNoOffset {
                opcode: Opcode::Bitcast,
                arg,
                ..
            } if is_full(ty) && is_full(self.func.dfg.value_type(arg)) => self.constant_lanes(arg, depth),
            _ => None,
        }
    }

    /// A register with the constant lanes.
    pub fn vector_constant(&mut self, lanes: &[u32; LANES]) -> VReg {
        if lanes.iter().all(|&lane| lane == lanes[0]) {
            return self.shared_constant(Constant::Splat(lanes[0]));
        }
        let index = self.vcode.pool.iter().position(|known| known == lanes);
        let index = index.unwrap_or_else(|| {
            self.vcode.pool.push(*lanes);
            self.vcode.pool.len() - 1
        });
        self.shared_constant(Constant::Lanes(u32::try_from(index).unwrap_or(0)))
    }

    /// A register with a number made of the lane's.
    pub fn each_lane(&mut self, number: impl Fn(u32) -> u32) -> Lanes {
        let mut lanes = [0; LANES];
        for (lane, index) in lanes.iter_mut().zip(0..) {
            *lane = number(index);
        }
        Lanes::Reg(Reg::Virtual(self.vector_constant(&lanes)))
    }

    /// The operand in a vector register.
    pub fn vector_reg(&mut self, lanes: Lanes) -> Reg {
        match lanes {
            Lanes::Reg(reg) => reg,
            Lanes::Const(number) => Reg::Virtual(self.shared_constant(Constant::Splat(number))),
            Lanes::Value { vector, .. } => Reg::Virtual(self.put_in_regs(vector).as_slice()[0]),
            Lanes::Scalar(reg) => self.emit_op(Op::MOVE_VS_32, &[reg], 0, RegClass::Vector),
        }
    }

    /// The operand in a vector register that something is going to be written over in part.
    pub fn fresh_reg(&mut self, lanes: Lanes) -> Reg {
        match lanes {
            Lanes::Const(number) if number >> 16 == 0 => {
                self.emit_op(Op::MOVEIVI_U, &[], number.cast_signed(), RegClass::Vector)
            }
            Lanes::Value { .. } | Lanes::Scalar(_) => {
                let scalar = self.splat_word(lanes);
                let scalar = self.reg(scalar);
                self.emit_op(Op::MOVE_VS_32, &[scalar], 0, RegClass::Vector)
            }
            _ => self.vector_reg(lanes),
        }
    }

    /// The scalar of an operand with the same in all lanes; zero for others.
    fn splat_word(&mut self, lanes: Lanes) -> Word {
        match lanes {
            Lanes::Reg(_) => Word::ZERO,
            Lanes::Const(number) => Word::Const(number),
            Lanes::Value { scalar, .. } => self.words(scalar).low(),
            Lanes::Scalar(reg) => Word::Reg(reg),
        }
    }

    /// A vector operation on vectors, given in the form that takes two of them.
    pub fn vector_op(&mut self, op: Op, a: Lanes, b: Lanes) -> Lanes {
        if let Some(known) = self.without_instruction(op, a, b) {
            return known;
        }
        let (a, b) = if a.is_splat() && !b.is_splat() && op.desc().flags.is_commutable() {
            (b, a)
        } else {
            (a, b)
        };
        let (op, srcs, imm) = self.operands(op, a, b);
        Lanes::Reg(self.emit_op(op, &srcs, imm, RegClass::Vector))
    }

    fn without_instruction(&mut self, op: Op, a: Lanes, b: Lanes) -> Option<Lanes> {
        if let (Lanes::Const(a), Lanes::Const(b)) = (a, b) {
            return words::fold(relation::to_scalar(op)?, a, b).map(Lanes::Const);
        }
        let (other, constant) = match (a, b) {
            (other, Lanes::Const(c)) => (other, c),
            (Lanes::Const(c), other) if op.desc().flags.is_commutable() => (other, c),
            _ => return None,
        };
        match (op, constant) {
            (
                Op::ADDVVV_U_32
                | Op::SUBVVV_U_32
                | Op::ORVVV_U_32
                | Op::XORVVV_U_32
                | Op::SLLVVV_U_32
                | Op::SRLVVV_U_32
                | Op::SRAVVV_U_32,
                0,
            )
            | (Op::ANDVVV_U_32, u32::MAX)
            | (Op::MULLVVV_U_32, 1) => Some(other),
            (Op::ANDVVV_U_32 | Op::MULLVVV_U_32, 0) => Some(Lanes::Const(0)),
            (Op::ORVVV_U_32, u32::MAX) => Some(Lanes::Const(u32::MAX)),
            _ => None,
        }
    }

    /// The form of an operation for these operands: with an immediate, a scalar or a vector as the second one.
    pub fn operands(&mut self, op: Op, a: Lanes, b: Lanes) -> (Op, Srcs, i32) {
        let a = self.vector_reg(a);
        if let (true, Some(with_scalar)) = (b.is_splat(), relation::to_scalar_operand(op)) {
            if let (Lanes::Const(number), Some(short)) = (b, relation::to_immediate(with_scalar)) {
                let (lowest, highest) = immediate_range(OperandKind::Simm9);
                let number = number.cast_signed();
                if (lowest..=highest).contains(&number) {
                    return (short, Srcs::from_slice(&[a]), number);
                }
            }
            let scalar = self.splat_word(b);
            let scalar = self.reg(scalar);
            return (with_scalar, Srcs::from_slice(&[a, scalar]), 0);
        }
        let b = self.vector_reg(b);
        (op, Srcs::from_slice(&[a, b]), 0)
    }

    /// A vector operation on one vector.
    pub fn vector_unary(&mut self, op: Op, a: Lanes) -> Lanes {
        let a = self.vector_reg(a);
        Lanes::Reg(self.emit_op(op, &[a], 0, RegClass::Vector))
    }

    /// The lanes zero-extended from their type.
    pub fn zero_extended(&mut self, ty: Type, lanes: Lanes) -> Lanes {
        let bits = ty.lane_bits();
        if bits == 32 {
            return lanes;
        }
        self.vector_op(Op::ANDVVV_U_32, lanes, Lanes::Const((1 << bits) - 1))
    }

    /// The lanes sign-extended from their type.
    pub fn sign_extended(&mut self, ty: Type, lanes: Lanes) -> Lanes {
        match (ty.lane_bits(), lanes) {
            (32, _) => lanes,
            (bits, Lanes::Const(number)) => Lanes::Const(sign_extend(number.into(), bits)),
            (8, _) => self.vector_unary(Op::SEXT8_32VV_U, lanes),
            _ => self.vector_unary(Op::SEXT16_32VV_U, lanes),
        }
    }

    /// The registers of a result.
    pub fn lanes_regs(&mut self, lanes: Lanes) -> ValueRegs {
        let reg = self.vector_reg(lanes);
        ValueRegs::one(reg.as_virtual().unwrap_or_else(VReg::invalid))
    }

    /// One of two vectors, by one branch.
    pub fn select_vector(&mut self, cond: crate::inst::Cond, if_true: Lanes, if_false: Lanes) -> Lanes {
        let dst = Reg::Virtual(self.new_vreg(RegClass::Vector));
        let (if_true, if_false) = (self.vector_reg(if_true), self.vector_reg(if_false));
        let word = crate::inst::SelectWord { dst, if_true, if_false };
        self.emit(MInst::Select {
            cond,
            words: smallvec::smallvec![word],
        });
        Lanes::Reg(dst)
    }
}
