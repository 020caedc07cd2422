//! The Rust part of the rules for vectors. ISLE generates one trait for all rules; its
//! implementation in `lower/isle.rs` has a line for each method here. The declarations in `isle/`
//! document the methods.

use super::mask::MaskOf;
use super::{LaneRules, Lanes, Splat, float, is_long, is_short, memory, modulo_back, permute};
use crate::inst::reg::{Gpr, Reg, Vector};
use crate::inst::{ALL_LANES, AMode, LANES, MInst};
use crate::lower::context::{InstOutput, Lower, sign_extend};
use crate::lower::isle::{Imm16, Simm9, Unit, generated, simm9, small};
use crate::lower::words::{self, Word};
use crate::runtime::Routine;
use crate::shape::{register_type, type_sets};
use cranelift_codegen::ir::immediates::{Offset32, Uimm8};
use cranelift_codegen::ir::{Immediate, Inst, MemFlags, Opcode, Type, Value};
use npu_mc::Opcode as Op;
use npu_mc::errata::Erratum;
use smallvec::smallvec;

impl Lower<'_> {
    // Masked instructions.

    pub(in crate::lower) fn emit_v_tkvv(&mut self, op: &Op, old: Vector, mask: Word, a: Vector, b: Vector) -> Vector {
        self.emit_masked(mask, *op, &[a.0, b.0], 0, old)
    }

    pub(in crate::lower) fn emit_v_tkvs(&mut self, op: &Op, old: Vector, mask: Word, a: Vector, b: Gpr) -> Vector {
        self.emit_masked(mask, *op, &[a.0, b.0], 0, old)
    }

    pub(in crate::lower) fn emit_v_tkvi(&mut self, op: &Op, old: Vector, mask: Word, a: Vector, imm: Simm9) -> Vector {
        self.emit_masked(mask, *op, &[a.0], i32::from(imm.0), old)
    }

    pub(in crate::lower) fn emit_v_tkv(&mut self, op: &Op, old: Vector, mask: Word, a: Vector) -> Vector {
        self.emit_masked(mask, *op, &[a.0], 0, old)
    }

    pub(in crate::lower) fn emit_v_tks(&mut self, op: &Op, old: Vector, mask: Word, a: Gpr) -> Vector {
        self.emit_masked(mask, *op, &[a.0], 0, old)
    }

    pub(in crate::lower) fn emit_v_tkw(&mut self, op: &Op, old: Vector, mask: Word, imm: Imm16) -> Vector {
        self.emit_masked(mask, *op, &[], i32::from(imm.0), old)
    }

    pub(in crate::lower) fn store_masked(&mut self, op: &Op, mask: Word, src: Vector, addr: AMode) -> Unit {
        let mask = self.lane_mask(mask);
        self.emit(MInst::MaskedStore {
            mask,
            op: *op,
            src: src.0,
            addr,
        });
    }

    // Operands of lane operations.

    pub(in crate::lower) fn lanes_vec(&mut self, lanes: Lanes) -> Vector {
        Vector(self.vector_reg(lanes))
    }

    pub(in crate::lower) fn vec_lanes(&mut self, reg: Vector) -> Lanes {
        Lanes::Reg(reg.0)
    }

    pub(in crate::lower) fn const_lanes(&mut self, number: u32) -> Lanes {
        Lanes::Const(number)
    }

    pub(in crate::lower) fn word_lanes(&mut self, word: Word) -> Lanes {
        self.lanes_of_word(word)
    }

    pub(in crate::lower) fn splat_const(&mut self, lanes: Lanes) -> Option<u32> {
        lanes.constant()
    }

    pub(in crate::lower) fn splat_simm9(&mut self, lanes: Lanes) -> Option<Simm9> {
        simm9(lanes.constant()?.cast_signed().into())
    }

    pub(in crate::lower) fn splat_imm16(&mut self, lanes: Lanes) -> Option<Imm16> {
        u16::try_from(lanes.constant()?).ok().map(Imm16)
    }

    pub(in crate::lower) fn splat_sext8(&mut self, lanes: Lanes) -> Option<Lanes> {
        Some(Lanes::Const(sign_extend(lanes.constant()?.into(), 8)))
    }

    pub(in crate::lower) fn splat_sext16(&mut self, lanes: Lanes) -> Option<Lanes> {
        Some(Lanes::Const(sign_extend(lanes.constant()?.into(), 16)))
    }

    pub(in crate::lower) fn splat_reg(&mut self, lanes: Lanes) -> Option<Splat> {
        lanes.is_splat().then_some(Splat(lanes))
    }

    pub(in crate::lower) fn splat_scalar(&mut self, lanes: Lanes) -> Option<Splat> {
        (lanes.is_splat() && lanes.constant().is_none()).then_some(Splat(lanes))
    }

    pub(in crate::lower) fn splat_gpr(&mut self, Splat(lanes): Splat) -> Gpr {
        let word = self.splat_word(lanes);
        Gpr(self.reg(word))
    }

    pub(in crate::lower) fn mask_const(&mut self, mask: Word) -> Option<u32> {
        Some(self.word_const(mask)? & u32::from(ALL_LANES))
    }

    pub(in crate::lower) fn fold_lanes(&mut self, op: &Op, a: u32, b: u32) -> Option<Lanes> {
        words::fold(*op, a, b).map(Lanes::Const)
    }

    pub(in crate::lower) fn fold_mask(&mut self, op: &Op, a: u32, b: u32) -> Option<Word> {
        let holds = words::fold(*op, a, b)? != 0;
        Some(Word::Const(if holds { ALL_LANES.into() } else { 0 }))
    }

    pub(in crate::lower) fn upper_half_undefined(&mut self) -> Option<Unit> {
        self.isa.has_erratum(Erratum::VectorCompareUpperHalf).then_some(())
    }

    pub(in crate::lower) fn vec_int(&mut self, ty: Type) -> Option<Type> {
        register_type(ty).filter(|&ty| type_sets::vec_int(ty))
    }

    pub(in crate::lower) fn vec(&mut self, ty: Type) -> Option<Type> {
        register_type(ty).filter(|&ty| type_sets::vec(ty))
    }

    pub(in crate::lower) fn short(&mut self, ty: Type) -> Option<Type> {
        is_short(ty).then_some(ty)
    }

    pub(in crate::lower) fn long(&mut self, ty: Type) -> Option<Type> {
        is_long(ty).then_some(ty)
    }

    pub(in crate::lower) fn in_one(&mut self, ty: Type) -> Option<Type> {
        (!is_long(ty)).then_some(ty)
    }

    pub(in crate::lower) fn used_mask(&mut self, ty: Type) -> Word {
        Word::Const(u32::from(ALL_LANES) >> (LANES as u32 - ty.lane_count().min(LANES as u32)))
    }

    pub(in crate::lower) fn other_lanes(&mut self, ty: Type, x: Value) -> Option<Unit> {
        (self.func.dfg.value_type(x).lane_count() != ty.lane_count()).then_some(())
    }

    pub(in crate::lower) fn has_parts(&mut self, ty: Type, x: Value) -> Option<Unit> {
        (is_long(ty) || is_long(self.func.dfg.value_type(x))).then_some(())
    }

    pub(in crate::lower) fn output_lanes(&mut self, lanes: Lanes) -> InstOutput {
        smallvec![self.lanes_regs(lanes)]
    }

    pub(in crate::lower) fn vec_narrow(&mut self, ty: Type) -> Option<Type> {
        register_type(ty).filter(|&ty| type_sets::vec_narrow(ty))
    }

    pub(in crate::lower) fn element_modulo_back(&mut self, ty: Type, amount: Word) -> Lanes {
        self.lanes_of_word(modulo_back(amount, ty.lane_bits()))
    }

    pub(in crate::lower) fn splat_fzero(&mut self, lanes: Lanes) -> Option<Lanes> {
        (lanes.constant()? << 1 == 0).then_some(lanes)
    }

    pub(in crate::lower) fn splat_fnan(&mut self, lanes: Lanes) -> Option<Lanes> {
        f32::from_bits(lanes.constant()?).is_nan().then_some(lanes)
    }

    pub(in crate::lower) fn splat_any_const(&mut self, lanes: Lanes) -> Option<Lanes> {
        lanes.constant().map(Lanes::Const)
    }

    pub(in crate::lower) fn lane_imm(&mut self, lane: Uimm8) -> Simm9 {
        small(u32::from(lane) % LANES as u32)
    }

    pub(in crate::lower) fn packed_loads_work(&mut self) -> Option<Unit> {
        (!self.isa.has_erratum(Erratum::PackedVectorLoads)).then_some(())
    }

    // Masks.

    pub(in crate::lower) fn mask_of(&mut self, value: Value) -> Option<MaskOf> {
        self.is_mask(value).then_some(MaskOf(value))
    }

    pub(in crate::lower) fn reg_mask_of(&mut self, value: Value) -> Option<MaskOf> {
        self.is_variable_mask(value).then_some(MaskOf(value))
    }

    pub(in crate::lower) fn sole_mask_of(&mut self, value: Value) -> Option<MaskOf> {
        self.sole_definition(value)?;
        self.reg_mask_of(value)
    }

    pub(in crate::lower) fn mask_word_of(&mut self, MaskOf(value): MaskOf) -> Word {
        self.request_mask(value)
    }

    pub(in crate::lower) fn mask_result(&mut self, mask: Word) -> Lanes {
        match self.give_mask(mask) {
            Some(unused) => unused,
            None => self.lane_select(mask, Lanes::Const(u32::MAX), Lanes::Const(0)),
        }
    }

    pub(in crate::lower) fn sole(&mut self, value: Value) -> Option<Value> {
        self.sole_definition(value).map(|_| value)
    }

    // Lanes.

    pub(in crate::lower) fn neighbour_lanes(&mut self) -> Lanes {
        self.each_lane(|lane| lane ^ 1)
    }

    pub(in crate::lower) fn even_lanes(&mut self) -> Lanes {
        self.each_lane(|lane| 2 * lane % LANES as u32)
    }

    pub(in crate::lower) fn odd_lanes(&mut self) -> Lanes {
        self.each_lane(|lane| (2 * lane + 1) % LANES as u32)
    }

    pub(in crate::lower) fn vec_shuffle(&mut self, x: Value, y: Value, mask: Immediate) -> Lanes {
        let bytes = self
            .func
            .dfg
            .immediates
            .get(mask)
            .map_or(&[][..], |data| data.as_slice());
        permute::shuffle(self, x, y, bytes)
    }

    pub(in crate::lower) fn lane_routine(&mut self, routine: &Routine, inst: Inst) -> Lanes {
        let args = self.func.dfg.inst_args(inst);
        float::operate(self, *routine, args)
    }

    pub(in crate::lower) fn vec_load(&mut self, ty: Type, flags: MemFlags, pointer: Value, offset: Offset32) -> Lanes {
        memory::load(self, ty, flags, pointer, offset.into())
    }

    pub(in crate::lower) fn vec_store(
        &mut self,
        ty: Type,
        flags: MemFlags,
        value: Value,
        p: Value,
        offset: Offset32,
    ) -> Unit {
        memory::store(self, ty, flags, value, p, offset.into());
    }
}

/// The rules that the algorithms on lanes call.
impl LaneRules for Lower<'_> {
    fn lane_select(&mut self, mask: Word, x: Lanes, y: Lanes) -> Lanes {
        generated::constructor_lane_select(self, mask, x, y)
    }

    fn lane_add(&mut self, x: Lanes, y: Lanes) -> Lanes {
        generated::constructor_lane_add(self, x, y)
    }

    fn lane_and(&mut self, x: Lanes, y: Lanes) -> Lanes {
        generated::constructor_lane_and(self, x, y)
    }

    fn lane_shl(&mut self, x: Lanes, by: Lanes) -> Lanes {
        generated::constructor_lane_shl(self, x, by)
    }

    fn lane_less(&mut self, x: Lanes, y: Lanes) -> Word {
        generated::constructor_lane_setult(self, x, y)
    }

    fn lane_srl(&mut self, x: Lanes, by: Lanes) -> Lanes {
        generated::constructor_lane_srl(self, x, by)
    }

    fn shuffle_lanes(&mut self, x: Lanes, index: Lanes) -> Lanes {
        generated::constructor_lane_shuffle(self, x, index)
    }

    fn lane(&mut self, x: Lanes, lane: u8) -> Reg {
        let lane = small(lane.into());
        generated::constructor_lane_extract(self, x, lane).0
    }

    fn load_lanes(&mut self, ty: Type, addr: AMode) -> Lanes {
        generated::constructor_lane_load(self, ty, addr)
    }

    fn store_lanes(&mut self, ty: Type, x: Lanes, addr: AMode) {
        generated::constructor_lane_store(self, ty, x, addr);
    }

    fn store_some_lanes(&mut self, ty: Type, scratchpad: bool, mask: Word, x: Lanes, addr: AMode) {
        if scratchpad {
            generated::constructor_lane_store_m_scratchpad(self, mask, x, addr);
        } else {
            generated::constructor_lane_store_m(self, ty, mask, x, addr);
        }
    }

    fn nonzero_lanes(&mut self, x: Value) -> Word {
        generated::constructor_nonzero_lanes(self, x)
    }

    fn high_lanes(&mut self, x: Value) -> Word {
        generated::constructor_high_lanes(self, x)
    }

    fn mask_or(&mut self, a: Word, b: Word) -> Word {
        generated::constructor_mask_or(self, a, b)
    }

    fn mask_and(&mut self, a: Word, b: Word) -> Word {
        generated::constructor_mask_and(self, a, b)
    }

    fn mask_clean(&mut self, mask: Word) -> Word {
        generated::constructor_mask_clean(self, mask)
    }

    fn part_across(&mut self, opcode: Opcode, ty: Type, args: &[Value]) -> Option<Lanes> {
        match (opcode, args) {
            (Opcode::SwidenLow, &[x]) => generated::constructor_part_swiden_low(self, x),
            (Opcode::UwidenLow, &[x]) => generated::constructor_part_uwiden_low(self, x),
            (Opcode::SwidenHigh, &[x]) => generated::constructor_part_swiden_high(self, x),
            (Opcode::UwidenHigh, &[x]) => generated::constructor_part_uwiden_high(self, x),
            (Opcode::Snarrow, &[x, y]) => generated::constructor_part_snarrow(self, ty, x, y),
            (Opcode::Unarrow, &[x, y]) => generated::constructor_part_unarrow(self, ty, x, y),
            (Opcode::Uunarrow, &[x, y]) => generated::constructor_part_uunarrow(self, ty, x, y),
            (Opcode::IaddPairwise, &[x, y]) => Some(generated::constructor_part_iadd_pairwise(self, x, y)),
            _ => None,
        }
    }

    fn lane_bswap(&mut self, ty: Type, x: Lanes) -> Lanes {
        generated::constructor_lane_bswap(self, ty, x)
    }

    fn lane_splat(&mut self, scalar: Reg) -> Reg {
        generated::constructor_lane_splat(self, Gpr(scalar)).0
    }
}
