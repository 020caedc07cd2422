//! Lowers vectors, in registers of sixteen lanes.
//!
//! `i32x16` and `f32x16` fill their lanes. `i16x16` and `i8x16` have one element per lane, and the
//! upper bits of a lane are undefined, as in narrow scalars. A vector with fewer lanes occupies the
//! first lanes of a register, and the others are undefined; lane operations apply to all of them. A
//! vector with more lanes occupies several registers, and the same rules apply lane operations to
//! each of them (`lower/each_part.rs`). An operand with the same scalar in every lane stays a
//! scalar or a constant as long as instructions accept it ([`Lanes`]). Compares produce one bit per
//! lane in a scalar register ([`mask`]).
//!
//! td selects the instructions of lane operations (`NaplesPULaneNodes.td`,
//! `NaplesPUVectorPatterns.td`). This module has the queries of rules about operands, and
//! operations without an instruction: routines, accesses that the hardware lacks, and shuffles by
//! constants.

pub mod float;
pub mod mask;
pub mod memory;
pub mod parts;
pub mod permute;
pub(super) mod rules;

use super::constants::Constant;
use super::context::{Lower, ValueRegs, sign_extend};
use super::words::Word;
use crate::inst::reg::Reg;
use crate::inst::{AMode, LANES, MInst};
pub use crate::shape::{is_long, is_short};
use crate::shape::{register_type, vector_registers};
use cranelift_codegen::ir::{InstructionData, Opcode, Type, Value, ValueDef};
use regalloc2::{RegClass, VReg};
use smallvec::SmallVec;

/// The number of insertions into a constant vector that are followed.
const MAX_DEPTH: u32 = 24;

/// A vector operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lanes {
    /// A vector register.
    Reg(Reg),
    /// A constant in every lane.
    Const(u32),
    /// A scalar value in every lane.
    Value {
        /// The scalar.
        scalar: Value,
        /// The vector.
        vector: Value,
    },
    /// A scalar register in every lane.
    Scalar(Reg),
}

/// An operand with the same value in every lane, for an instruction that accepts a scalar register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Splat(pub Lanes);

/// The ISLE rules that algorithms in Rust call.
pub trait LaneRules {
    /// Selects the lanes in the mask from `x`, the others from `y`.
    fn lane_select(&mut self, mask: Word, x: Lanes, y: Lanes) -> Lanes;

    /// Adds lanes.
    fn lane_add(&mut self, x: Lanes, y: Lanes) -> Lanes;

    /// Returns the bitwise conjunction of lanes.
    fn lane_and(&mut self, x: Lanes, y: Lanes) -> Lanes;

    /// Shifts lanes left.
    fn lane_shl(&mut self, x: Lanes, by: Lanes) -> Lanes;

    /// Returns a mask of the lanes where `x` is less than `y`, unsigned.
    fn lane_less(&mut self, x: Lanes, y: Lanes) -> Word;

    /// Shifts lanes right, unsigned.
    fn lane_srl(&mut self, x: Lanes, by: Lanes) -> Lanes;

    /// Returns, for each lane of the index, the lane of `x` with that number.
    fn shuffle_lanes(&mut self, x: Lanes, index: Lanes) -> Lanes;

    /// Extracts a lane as a scalar.
    fn lane(&mut self, x: Lanes, lane: u8) -> Reg;

    /// Loads a vector of the type in one access.
    fn load_lanes(&mut self, ty: Type, addr: AMode) -> Lanes;

    /// Stores a vector of the type in one access.
    fn store_lanes(&mut self, ty: Type, x: Lanes, addr: AMode);

    /// Stores the lanes in the mask, to the scratchpad or to main memory.
    fn store_some_lanes(&mut self, ty: Type, scratchpad: bool, mask: Word, x: Lanes, addr: AMode);

    /// Returns a mask of the nonzero lanes of the current part.
    fn nonzero_lanes(&mut self, x: Value) -> Word;

    /// Returns the highest bit of each lane of the current part, as a mask.
    fn high_lanes(&mut self, x: Value) -> Word;

    /// Returns the union of two masks.
    fn mask_or(&mut self, a: Word, b: Word) -> Word;

    /// Returns the intersection of two masks.
    fn mask_and(&mut self, a: Word, b: Word) -> Word;

    /// Clears the bits of a register above the mask.
    fn mask_clean(&mut self, mask: Word) -> Word;

    /// Returns the current part of the result of an instruction that widens, narrows or adds pairs;
    /// `None` for other instructions.
    fn part_across(&mut self, opcode: Opcode, ty: Type, args: &[Value]) -> Option<Lanes>;

    /// Reverses the bytes of each element of the type.
    fn lane_bswap(&mut self, ty: Type, x: Lanes) -> Lanes;

    /// Copies the scalar to every lane of a vector register.
    fn lane_splat(&mut self, scalar: Reg) -> Reg;
}

impl Lower<'_> {
    /// Returns an operand with the word in every lane.
    pub fn lanes_of_word(&mut self, word: Word) -> Lanes {
        match word {
            Word::Const(number) => Lanes::Const(number),
            Word::Reg(_) | Word::Missing => Lanes::Scalar(self.reg(word)),
        }
    }
}

impl Lanes {
    /// Returns the constant that is in every lane, if the operand is one.
    pub fn constant(self) -> Option<u32> {
        match self {
            Self::Const(number) => Some(number),
            _ => None,
        }
    }

    /// Returns whether all lanes are known to be the same.
    pub fn is_splat(self) -> bool {
        !matches!(self, Self::Reg(_))
    }
}

/// Returns whether elements of the type fill their lanes.
pub fn is_full(ty: Type) -> bool {
    ty.lane_bits() == 32
}

/// Returns the lanes of a part of a constant vector, sign-extended to 32 bits. The vector's bytes
/// repeat if they do not fill the part.
fn lanes_of_bytes(ty: Type, part: u8, bytes: &[u8]) -> [u32; LANES] {
    let mut lanes = [0; LANES];
    let elements = bytes.chunks_exact(ty.lane_bits() as usize / 8).cycle();
    for (lane, bytes) in lanes.iter_mut().zip(elements.skip(usize::from(part) * LANES)) {
        let number = bytes.iter().rev().fold(0, |n, &byte| n << 8 | u64::from(byte));
        *lane = sign_extend(number, ty.lane_bits());
    }
    lanes
}

/// Returns a constant shift amount in the opposite direction, modulo the width.
pub fn modulo_back(amount: Word, width: u32) -> Word {
    match amount {
        Word::Const(number) => Word::Const(number.wrapping_neg() % width),
        Word::Reg(_) | Word::Missing => amount,
    }
}

impl Lower<'_> {
    /// Returns a vector operand, as a scalar or constant if possible. The use is counted when the
    /// operand is put in a register.
    pub fn lanes(&mut self, value: Value) -> Lanes {
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
        Lanes::Reg(self.part_reg(value))
    }

    /// Returns the register of a vector's current part, and counts a use.
    pub fn part_reg(&mut self, value: Value) -> Reg {
        let regs = self.put_in_regs(value);
        let reg = regs.as_slice().get(usize::from(self.part)).copied();
        Reg::Virtual(
            self.known(reg, "a register for the current part")
                .unwrap_or(regs.regs[0]),
        )
    }

    /// Returns the registers of a constant vector.
    pub fn constant_parts(&mut self, value: Value) -> Option<ValueRegs> {
        let count = vector_registers(self.func.dfg.value_type(value))?;
        let mut regs: SmallVec<[VReg; 4]> = SmallVec::new();
        for part in 0..count {
            let lanes = self.constant_lanes(value, part, MAX_DEPTH)?;
            regs.push(self.vector_constant(&lanes));
        }
        ValueRegs::from_slice(&regs)
    }

    /// Returns the lanes of a constant vector's current part, sign-extended to 32 bits. Lanes
    /// beyond the type repeat the others, so that a splat stays a splat.
    pub fn constant_vector(&self, value: Value) -> Option<[u32; LANES]> {
        self.constant_lanes(value, self.part, MAX_DEPTH)
    }

    fn constant_lanes(&self, value: Value, part: u8, depth: u32) -> Option<[u32; LANES]> {
        let ty = self.func.dfg.value_type(value);
        register_type(ty)?;
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
                Some(lanes_of_bytes(ty, part, bytes))
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
                let first = scalar(arg)?;
                if part == 0 {
                    lanes[0] = first;
                }
                Some(lanes)
            }
            InstructionData::TernaryImm8 {
                opcode: Opcode::Insertlane,
                args,
                imm,
            } => {
                let mut lanes = self.constant_lanes(args[0], part, depth)?;
                let number = scalar(args[1])?;
                if imm / LANES as u8 == part {
                    lanes[usize::from(imm) % LANES] = number;
                }
                Some(lanes)
            }
            InstructionData::LoadNoOffset {
                opcode: Opcode::Bitcast,
                arg,
                ..
            } => {
                let from = self.func.dfg.value_type(arg);
                let width = from.lane_bits() as usize / 8;
                let mut bytes: Vec<u8> = Vec::new();
                for part in 0..vector_registers(from)? {
                    let lanes = self.constant_lanes(arg, part, depth)?;
                    let used = lanes.iter().take(from.lane_count() as usize);
                    bytes.extend(used.flat_map(|lane| lane.to_le_bytes().into_iter().take(width)));
                }
                Some(lanes_of_bytes(ty, part, &bytes))
            }
            _ => None,
        }
    }

    /// Returns a register with the constant lanes.
    pub fn vector_constant(&mut self, lanes: &[u32; LANES]) -> VReg {
        if lanes.iter().all(|&lane| lane == lanes[0]) {
            return self.shared_constant(Constant::Splat(lanes[0]));
        }
        let number = self.vcode.pool.number(lanes);
        self.shared_constant(Constant::Lanes(number))
    }

    /// Returns a register with a function of the lane number in each lane.
    pub fn each_lane(&mut self, number: impl Fn(u32) -> u32) -> Lanes {
        let mut lanes = [0; LANES];
        for (lane, index) in lanes.iter_mut().zip(0..) {
            *lane = number(index);
        }
        self.constant_in_reg(&lanes)
    }

    /// Returns the constant lanes in a register.
    pub fn constant_in_reg(&mut self, lanes: &[u32; LANES]) -> Lanes {
        Lanes::Reg(Reg::Virtual(self.vector_constant(lanes)))
    }

    /// Returns the operand in a vector register.
    pub fn vector_reg(&mut self, lanes: Lanes) -> Reg {
        match lanes {
            Lanes::Reg(reg) => reg,
            Lanes::Const(number) => Reg::Virtual(self.shared_constant(Constant::Splat(number))),
            Lanes::Value { vector, .. } => self.part_reg(vector),
            Lanes::Scalar(reg) => self.lane_splat(reg),
        }
    }

    /// Returns the scalar of an operand with the same value in all lanes.
    pub fn splat_word(&mut self, lanes: Lanes) -> Word {
        match lanes {
            Lanes::Reg(reg) => {
                self.set_internal(reg, "a vector with equal lanes");
                Word::ZERO
            }
            Lanes::Const(number) => Word::Const(number),
            Lanes::Value { scalar, .. } => self.words(scalar).low(),
            Lanes::Scalar(reg) => Word::Reg(reg),
        }
    }

    /// Returns the registers of a result.
    pub fn lanes_regs(&mut self, lanes: Lanes) -> ValueRegs {
        let reg = self.vector_reg(lanes);
        self.result_regs([reg])
    }

    /// Selects one of two vectors with one branch.
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
