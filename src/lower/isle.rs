//! The Rust side of the ISLE rules: extractors that match CLIF and constructors that emit machine
//! instructions.

use super::context::{InstOutput, Lower, ValueRegs, sign_extend};
use super::vector::mask::MaskOf;
use super::vector::{Lanes, Splat, float as lane_float, memory as lane_memory, parts, permute};
use super::words::{Word, Words};
use super::{address, call, intrinsics, tail};
use crate::inst::ops::{CONSTANT_OP, immediate_range};
use crate::inst::reg::{Gpr, Reg, Vector};
use crate::inst::{AMode, Access, Cond, LANES, MInst, SelectWord};
use crate::legalize::Legality;
use crate::runtime::Routine;
use crate::shape::type_sets;
use clif_opt::facts;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::immediates::{Offset32, Uimm8};
use cranelift_codegen::ir::{
    BlockCall, FuncRef, GlobalValue, Immediate, Inst, InstructionData, MemFlags, Opcode, SigRef, StackSlot, TrapCode,
    Type, Value, ValueList, types,
};
use npu_mc::errata::Erratum;
use npu_mc::{Opcode as Op, OperandKind};
use regalloc2::RegClass;
use smallvec::{SmallVec, smallvec};

/// A 9-bit signed immediate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Simm9(pub i16);

/// A 16-bit immediate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Imm16(pub u16);

/// The maximum number of bytes that an access at one address touches.
const WORD: u32 = npu_mc::machine::WORD_SLOT;

/// The result of a constructor without a result.
pub(super) type Unit = ();
type ValueSlice = (ValueList, usize);
type ValueArray2 = [Value; 2];
type ValueArray3 = [Value; 3];
type BlockArray2 = [BlockCall; 2];

/// The code that the ISLE compiler generates from the rules.
#[expect(
    dead_code,
    unused_imports,
    unused_variables,
    non_snake_case,
    unreachable_patterns,
    clippy::all,
    reason = "generated code is judged by the tests of its generator, not by lints"
)]
pub(super) mod generated {
    use super::*;
    use cranelift_codegen::ir::types::*;
    include!(concat!(env!("OUT_DIR"), "/lower_isle.rs"));
}

/// Lowers one instruction. Returns `None` if no rule covers it.
pub fn lower(ctx: &mut Lower<'_>, inst: Inst) -> Option<InstOutput> {
    generated::constructor_lower(ctx, inst)
        .or_else(|| generated::constructor_lower_words(ctx, inst))
        .or_else(|| generated::constructor_lower_by_routine(ctx, inst))
}

/// Returns the 9-bit immediate of a number, if it fits.
pub(super) fn simm9(number: i64) -> Option<Simm9> {
    let (lowest, highest) = immediate_range(OperandKind::Simm9);
    let number = i32::try_from(number).ok()?;
    if (lowest..=highest).contains(&number) {
        i16::try_from(number).ok().map(Simm9)
    } else {
        None
    }
}

/// Returns the immediate of a number that always fits: a width, a bit position or a small mask.
pub(super) fn small(number: u32) -> Simm9 {
    Simm9((number & 0xff) as i16)
}

/// Defines constructors that call a function elsewhere.
macro_rules! delegate {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $out:ty = $path:path;)*) => {$(
        fn $name(&mut self, $($arg: $ty),*) -> $out {
            $path(self, $($arg),*)
        }
    )*};
}

/// Defines constructors and extractors that call a method of the same name.
macro_rules! methods {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $out:ty;)*) => {$(
        fn $name(&mut self, $($arg: $ty),*) -> $out {
            Lower::$name(self, $($arg),*)
        }
    )*};
}

/// Defines emitters of one machine instruction. Their names list the kinds of destination and
/// sources: `s` scalar, `v` vector, `i` 9-bit immediate, `w` 16-bit immediate, `t` the tied old
/// value of the destination, `m` an address.
macro_rules! emitters {
    ($($name:ident: $out:ident <- $class:ident, ($($reg:ident: $kind:ident),*);)*) => {$(
        fn $name(&mut self, op: &Op, $($reg: $kind),*) -> $out {
            $out(self.emit_op(*op, &[$($reg.0),*], 0, RegClass::$class))
        }
    )*};
}

impl generated::Context for Lower<'_> {
    // Provenance.

    #[cfg(feature = "explain")]
    fn rule_starts(&mut self) -> usize {
        self.current.len()
    }

    #[cfg(feature = "explain")]
    fn rule_done(&mut self, started: usize, rule: u16) {
        self.rule_chains.record_rule(started, self.current.len(), rule);
    }

    #[cfg(feature = "rule-switches")]
    fn rule_is_on(&mut self, rule: u32) -> Option<Unit> {
        crate::rule_switches::is_on(rule as usize).then_some(())
    }

    // Emitters of one machine instruction.

    emitters! {
        emit_s_s: Gpr <- Int, (a: Gpr);
        emit_s_ss: Gpr <- Int, (a: Gpr, b: Gpr);
        emit_s_v: Gpr <- Int, (a: Vector);
        emit_s_vs: Gpr <- Int, (a: Vector, b: Gpr);
        emit_s_vv: Gpr <- Int, (a: Vector, b: Vector);
        emit_v_s: Vector <- Vector, (a: Gpr);
        emit_v_v: Vector <- Vector, (a: Vector);
        emit_v_vs: Vector <- Vector, (a: Vector, b: Gpr);
        emit_v_vv: Vector <- Vector, (a: Vector, b: Vector);
    }

    fn emit_s_si(&mut self, op: &Op, a: Gpr, imm: Simm9) -> Gpr {
        Gpr(self.emit_op(*op, &[a.0], i32::from(imm.0), RegClass::Int))
    }

    fn emit_s_vi(&mut self, op: &Op, a: Vector, imm: Simm9) -> Gpr {
        Gpr(self.emit_op(*op, &[a.0], i32::from(imm.0), RegClass::Int))
    }

    fn emit_v_vi(&mut self, op: &Op, a: Vector, imm: Simm9) -> Vector {
        Vector(self.emit_op(*op, &[a.0], i32::from(imm.0), RegClass::Vector))
    }

    fn emit_s_w(&mut self, op: &Op, imm: Imm16) -> Gpr {
        Gpr(self.emit_op(*op, &[], i32::from(imm.0), RegClass::Int))
    }

    fn emit_s_tw(&mut self, op: &Op, old: Gpr, imm: Imm16) -> Gpr {
        Gpr(self.emit_op(*op, &[old.0], i32::from(imm.0), RegClass::Int))
    }

    fn emit_v_w(&mut self, op: &Op, imm: Imm16) -> Vector {
        Vector(self.emit_op(*op, &[], i32::from(imm.0), RegClass::Vector))
    }

    fn emit_v_tw(&mut self, op: &Op, old: Vector, imm: Imm16) -> Vector {
        Vector(self.emit_op(*op, &[old.0], i32::from(imm.0), RegClass::Vector))
    }

    fn emit_v_m(&mut self, op: &Op, addr: AMode) -> Vector {
        let dst = Reg::Virtual(self.new_vreg(RegClass::Vector));
        self.emit(MInst::Load { op: *op, dst, addr });
        Vector(dst)
    }

    fn emit__vm(&mut self, op: &Op, src: Vector, addr: AMode) -> Unit {
        self.emit(MInst::Store {
            op: *op,
            src: src.0,
            addr,
        });
    }

    fn emit_s_m(&mut self, op: &Op, addr: AMode) -> Gpr {
        let dst = Reg::Virtual(self.new_vreg(RegClass::Int));
        self.emit(MInst::Load { op: *op, dst, addr });
        Gpr(dst)
    }

    fn emit__sm(&mut self, op: &Op, src: Gpr, addr: AMode) -> Unit {
        self.emit(MInst::Store {
            op: *op,
            src: src.0,
            addr,
        });
    }

    // Extractors on CLIF.

    fn inst_data_value(&mut self, inst: Inst) -> (Type, InstructionData) {
        let result = self.func.dfg.inst_results(inst).first();
        let ty = result.map_or(types::INVALID, |&v| self.func.dfg.value_type(v));
        (ty, self.data_of_part(inst))
    }

    fn def_inst(&mut self, value: Value) -> Option<Inst> {
        self.defining(value)
    }

    fn value_type(&mut self, value: Value) -> Type {
        self.func.dfg.value_type(value)
    }

    fn value_list_slice(&mut self, list: ValueList) -> ValueSlice {
        (list, 0)
    }

    fn value_slice_unwrap(&mut self, slice: ValueSlice) -> Option<(Value, ValueSlice)> {
        let (list, start) = slice;
        list.get(start, &self.func.dfg.value_lists)
            .map(|value| (value, (list, start + 1)))
    }

    fn unpack_value_array_2(&mut self, array: &ValueArray2) -> (Value, Value) {
        (array[0], array[1])
    }

    fn pack_value_array_2(&mut self, a: Value, b: Value) -> ValueArray2 {
        [a, b]
    }

    fn unpack_value_array_3(&mut self, array: &ValueArray3) -> (Value, Value, Value) {
        (array[0], array[1], array[2])
    }

    fn pack_value_array_3(&mut self, a: Value, b: Value, c: Value) -> ValueArray3 {
        [a, b, c]
    }

    fn unpack_block_array_2(&mut self, array: &BlockArray2) -> (BlockCall, BlockCall) {
        (array[0], array[1])
    }

    fn pack_block_array_2(&mut self, a: BlockCall, b: BlockCall) -> BlockArray2 {
        [a, b]
    }

    // Registers and results.

    fn put_in_gpr(&mut self, value: Value) -> Gpr {
        Gpr(Reg::Virtual(self.put_in_regs(value).as_slice()[0]))
    }

    fn put_in_vec(&mut self, value: Value) -> Vector {
        Vector(self.part_reg(value))
    }

    fn output_gpr(&mut self, reg: Gpr) -> InstOutput {
        smallvec![self.as_output(reg.0)]
    }

    fn output_vec(&mut self, reg: Vector) -> InstOutput {
        smallvec![self.as_output(reg.0)]
    }

    fn output_none(&mut self, (): Unit) -> InstOutput {
        smallvec![]
    }

    fn output_pair(&mut self, a: Gpr, b: Gpr) -> InstOutput {
        smallvec![self.as_output(a.0), self.as_output(b.0)]
    }

    fn unit(&mut self) -> Unit {}

    // Types.

    fn int_fits_in_32(&mut self, ty: Type) -> Option<Type> {
        type_sets::int_fits_in_32(ty).then_some(ty)
    }

    fn int_narrow(&mut self, ty: Type) -> Option<Type> {
        type_sets::int_narrow(ty).then_some(ty)
    }

    fn width_imm(&mut self, ty: Type) -> Simm9 {
        small(ty.bits())
    }

    fn neg_spare_imm(&mut self, ty: Type) -> Simm9 {
        Simm9(-small(32 - ty.bits()).0)
    }

    fn cls_bias(&mut self, ty: Type) -> Simm9 {
        Simm9(-small(33 - ty.bits()).0)
    }

    fn amount_mask(&mut self, ty: Type) -> Simm9 {
        small(ty.bits() - 1)
    }

    fn bit_above(&mut self, ty: Type) -> u32 {
        1 << ty.bits()
    }

    fn signed_min(&mut self, ty: Type) -> u32 {
        sign_extend(1 << (ty.bits() - 1), ty.bits())
    }

    // Constants.

    fn simm9(&mut self, value: Value) -> Option<Simm9> {
        simm9(i64::from(self.signed_constant(value)?))
    }

    fn simm9_neg(&mut self, value: Value) -> Option<Simm9> {
        simm9(-i64::from(self.signed_constant(value)?))
    }

    fn uimm8(&mut self, value: Value) -> Option<Simm9> {
        simm9(self.scalar_constant(value)?.cast_signed())
    }

    fn uimm5(&mut self, value: Value) -> Option<Simm9> {
        self.as_constant(value).map(|c| small((c & 31) as u32))
    }

    fn const_i32(&mut self, value: Value) -> Option<i32> {
        self.signed_constant(value)
    }

    fn const_u32(&mut self, value: Value) -> Option<u32> {
        u32::try_from(self.scalar_constant(value)?).ok()
    }

    fn zero(&mut self, value: Value) -> Option<Value> {
        (self.as_constant(value)? == 0).then_some(value)
    }

    fn float_zero(&mut self, value: Value) -> Option<Value> {
        // Both zeros: -0.0 equals 0.0.
        (self.float_constant(value)? << 1 == 0).then_some(value)
    }

    fn float_positive(&mut self, value: Value) -> Option<Value> {
        (self.float_constant(value)? >> 31 == 0).then_some(value)
    }

    fn float_negative(&mut self, value: Value) -> Option<Value> {
        (self.float_constant(value)? >> 31 != 0).then_some(value)
    }

    fn float_nan(&mut self, value: Value) -> Option<Value> {
        f32::from_bits(self.float_constant(value)?).is_nan().then_some(value)
    }

    fn float_number(&mut self, value: Value) -> Option<Value> {
        self.float_number_bits(value).map(|_| value)
    }

    fn float_number_bits(&mut self, value: Value) -> Option<u32> {
        let bits = self.float_constant(value)?;
        (!f32::from_bits(bits).is_nan()).then_some(bits)
    }

    fn float_key(&mut self, value: Value) -> Option<i32> {
        let bits = self.float_number_bits(value)?.cast_signed();
        Some(if bits < 0 { -(bits & i32::MAX) } else { bits })
    }

    fn float_key_simm9(&mut self, value: Value) -> Option<Simm9> {
        simm9(self.float_key(value)?.into())
    }

    fn same_value(&mut self, a: Value, b: Value) -> Option<Unit> {
        (a == b).then_some(())
    }

    fn nonzero_constant(&mut self, value: Value) -> Option<Value> {
        (self.scalar_constant(value)? != 0).then_some(value)
    }

    fn not_minus_one(&mut self, value: Value) -> Option<Value> {
        (self.signed_constant(value)? != -1).then_some(value)
    }

    fn is_const(&mut self, value: Value) -> Option<Value> {
        self.wide_constant(value).map(|_| value)
    }

    fn const_amount(&mut self, ty: Type, value: Value) -> Simm9 {
        small(self.amount_of(ty, value))
    }

    fn const_amount_back(&mut self, ty: Type, value: Value) -> Simm9 {
        small(self.amount_of(ty, value).wrapping_neg() & (ty.bits() - 1))
    }

    fn simm9_const(&mut self, number: i32) -> Simm9 {
        simm9(i64::from(number)).unwrap_or_else(|| {
            self.set_internal(number, "a constant of nine bits in a rule");
            Simm9(0)
        })
    }

    fn const_gpr(&mut self, number: u32) -> Gpr {
        Gpr(Reg::Virtual(self.constant(number)))
    }

    // Vectors.

    delegate! {
        emit__kvm(op: &Op, mask: Word, src: Vector, addr: AMode) -> Unit = Lower::store_masked;
        vec_to_words(ty: Type, x: Value) -> Words = lane_memory::to_words;
        vec_from_words(ty: Type, words: Words) -> Lanes = lane_memory::from_words;
        vec_select(cond: Cond, x: Lanes, y: Lanes) -> Lanes = Lower::select_vector;
        vec_from_int(signed: bool, x: Lanes) -> Lanes = lane_float::from_int;
        vec_to_int(signed: bool, x: Value) -> Lanes = lane_float::to_int;
        vec_cast(ty: Type, x: Value) -> Lanes = lane_memory::cast;
        upper_lanes(ty: Type, x: Lanes) -> Lanes = permute::upper_half;
        concat_lanes(ty: Type, x: Lanes, y: Lanes) -> Lanes = permute::concat;
        select_parts(cond: Cond, x: Value, y: Value) -> InstOutput = parts::select;
        cast_parts(ty: Type, x: Value) -> InstOutput = lane_memory::cast_parts;
        any_part(x: Value) -> Word = parts::any;
        all_parts(x: Value) -> Word = parts::all;
        part_bits(x: Value) -> Words = parts::high_bits;
        upper_part(x: Value) -> Lanes = parts::upper;
        joined(x: Value, y: Value, factor: u8, plus: u8) -> Lanes = parts::joined;
    }

    methods! {
        // Masked instructions.
        emit_v_tkvv(op: &Op, old: Vector, mask: Word, a: Vector, b: Vector) -> Vector;
        emit_v_tkvs(op: &Op, old: Vector, mask: Word, a: Vector, b: Gpr) -> Vector;
        emit_v_tkvi(op: &Op, old: Vector, mask: Word, a: Vector, imm: Simm9) -> Vector;
        emit_v_tkv(op: &Op, old: Vector, mask: Word, a: Vector) -> Vector;
        emit_v_tks(op: &Op, old: Vector, mask: Word, a: Gpr) -> Vector;
        emit_v_tkw(op: &Op, old: Vector, mask: Word, imm: Imm16) -> Vector;

        // Operands of lane operations.
        lanes(value: Value) -> Lanes;
        lanes_vec(lanes: Lanes) -> Vector;
        vec_lanes(reg: Vector) -> Lanes;
        const_lanes(number: u32) -> Lanes;
        word_lanes(word: Word) -> Lanes;
        splat_const(lanes: Lanes) -> Option<u32>;
        splat_simm9(lanes: Lanes) -> Option<Simm9>;
        splat_imm16(lanes: Lanes) -> Option<Imm16>;
        splat_sext8(lanes: Lanes) -> Option<Lanes>;
        splat_sext16(lanes: Lanes) -> Option<Lanes>;
        splat_reg(lanes: Lanes) -> Option<Splat>;
        splat_scalar(lanes: Lanes) -> Option<Splat>;
        splat_gpr(lanes: Splat) -> Gpr;
        mask_const(mask: Word) -> Option<u32>;
        fold_lanes(op: &Op, a: u32, b: u32) -> Option<Lanes>;
        fold_mask(op: &Op, a: u32, b: u32) -> Option<Word>;
        upper_half_undefined() -> Option<Unit>;
        vec_int(ty: Type) -> Option<Type>;
        vec(ty: Type) -> Option<Type>;
        short(ty: Type) -> Option<Type>;
        long(ty: Type) -> Option<Type>;
        in_one(ty: Type) -> Option<Type>;
        used_mask(ty: Type) -> Word;
        other_lanes(ty: Type, x: Value) -> Option<Unit>;
        has_parts(ty: Type, x: Value) -> Option<Unit>;
        output_lanes(lanes: Lanes) -> InstOutput;
        vec_narrow(ty: Type) -> Option<Type>;
        element_modulo_back(ty: Type, amount: Word) -> Lanes;
        splat_fzero(lanes: Lanes) -> Option<Lanes>;
        splat_fnan(lanes: Lanes) -> Option<Lanes>;
        splat_any_const(lanes: Lanes) -> Option<Lanes>;
        lane_imm(lane: Uimm8) -> Simm9;
        packed_loads_work() -> Option<Unit>;

        // Masks.
        mask_of(value: Value) -> Option<MaskOf>;
        reg_mask_of(value: Value) -> Option<MaskOf>;
        sole_mask_of(value: Value) -> Option<MaskOf>;
        mask_word_of(mask: MaskOf) -> Word;
        mask_result(mask: Word) -> Lanes;
        sole(value: Value) -> Option<Value>;
        sole_operation(value: Value) -> Option<Value>;

        // Lanes.
        neighbour_lanes() -> Lanes;
        even_lanes() -> Lanes;
        odd_lanes() -> Lanes;
        vec_shuffle(x: Value, y: Value, mask: Immediate) -> Lanes;
        lane_routine(routine: &Routine, inst: Inst) -> Lanes;
        vec_load(ty: Type, flags: MemFlags, pointer: Value, offset: Offset32) -> Lanes;
        vec_store(ty: Type, flags: MemFlags, value: Value, p: Value, offset: Offset32) -> Unit;
    }

    fn lane_bit(&mut self, lane: Uimm8) -> Word {
        // The other parts do not have this lane.
        match usize::from(lane) / LANES == usize::from(self.part) {
            true => Lower::lane_bit(lane),
            false => Word::ZERO,
        }
    }

    // Values of several words.

    methods! {
        // Types.
        int_wide(ty: Type) -> Option<Type>;
        scalar(ty: Type) -> Option<Type>;
        computed_float(ty: Type) -> Option<Type>;
        two_word_type(ty: Type) -> Option<Type>;
        four_word_type(ty: Type) -> Option<Type>;
        sign_bit(ty: Type) -> Word;
        magnitude_bits(ty: Type) -> Word;
        smallest(ty: Type, signed: bool) -> Word;
        largest(ty: Type, signed: bool) -> Word;
        range(ty: Type) -> Word;

        // Words.
        word_gpr(word: Word) -> Gpr;
        gpr_word(reg: Gpr) -> Word;
        value_word(value: Value) -> Word;
        output_word(word: Word) -> InstOutput;
        const_word(number: u32) -> Word;
        word_const(word: Word) -> Option<u32>;
        word_simm9(word: Word) -> Option<Simm9>;
        any_const(word: Word) -> Option<Word>;
        word_amount(word: Word) -> Option<Simm9>;
        word_log2(word: Word) -> Option<Word>;
        word_log2_back(word: Word) -> Option<Word>;
        const_sext16(word: Word) -> Option<Word>;
        fold_word(op: &Op, a: u32, b: u32) -> Option<Word>;
        half_zero_const(word: Word) -> Option<Word>;
        half_nan_const(word: Word) -> Option<Word>;

        // Lists.
        words(value: Value) -> Words;
        output_words(words: Words) -> InstOutput;
        output_words_2(first: Words, second: Words) -> InstOutput;
        words_cons(first: Word, rest: Words) -> Words;
        words_first(words: Words) -> Option<(Word, Words)>;
        words_1(word: Word) -> Words;
        only_word(words: Words) -> Option<Word>;
        words_2(a: Word, b: Word) -> Words;
        two_words(words: Words) -> Option<(Word, Word)>;
        words_4(a: Word, b: Word, c: Word, d: Word) -> Words;
        four_words(words: Words) -> Option<(Word, Word, Word, Word)>;
        words_end(x: Words, y: Words) -> Words;
        low_word(words: Words) -> Word;
        top_word(words: Words) -> Word;
        with_top(words: Words, top: Word) -> Words;
        without_top(words: Words) -> Words;
        words_for(ty: Type, words: Words) -> Words;
        words_filled(ty: Type, words: Words, fill: Word) -> Words;
        repeat_for(ty: Type, word: Word) -> Words;
        repeat_like(words: Words, word: Word) -> Words;
        reversed(words: Words) -> Words;
        concat(low: Words, high: Words) -> Words;
        lower_half(words: Words) -> Words;
        upper_half(words: Words) -> Words;
        known_nonzero(words: Words) -> Option<Unit>;
        known_not_ones(words: Words) -> Option<Unit>;
        select_words(cond: Cond, x: Words, y: Words) -> Words;

        // Shift amounts.
        amount(ty: Type, value: Value) -> u32;
        amount_back(ty: Type, value: Value) -> u32;
        bits_of_amount(amount: u32) -> u32;
        bits_back(bits: u32) -> u32;
        moves_words(amount: u32) -> Option<Unit>;
        words_up(words: Words, amount: u32) -> Words;
        words_around(words: Words, amount: u32) -> Words;
        words_down(words: Words, amount: u32) -> Words;

        // Floats, routines, memory.
        library_call(inst: Inst) -> Option<Routine>;
        operand_words(inst: Inst) -> Words;
        opposite_cc(cc: &FloatCC) -> Option<FloatCC>;
        call_on_operands(routine: &Routine, inst: Inst) -> Words;
        call_words(routine: &Routine, args: Words) -> Words;
        address_for(ty: Type, pointer: Value, offset: Offset32) -> AMode;
    }

    fn hardware_float(&mut self) -> Option<Unit> {
        let legality = Legality::new(self.isa.flags(), self.isa.settings());
        (!legality.has_soft_float()).then_some(())
    }

    fn has_fpu(&mut self) -> Option<Unit> {
        self.isa.settings().has_fpu.then_some(())
    }

    fn shifts_are_modulo(&mut self) -> Option<Unit> {
        (!self.isa.has_erratum(Erratum::ShiftAmountNotModulo)).then_some(())
    }

    fn signed_const_gpr(&mut self, number: i32) -> Gpr {
        self.const_gpr(number.cast_unsigned())
    }

    // Known upper bits.

    fn known_zero_extended(&mut self, value: Value) -> Option<Value> {
        self.is_zero_extended(value, 3).then_some(value)
    }

    fn lone_narrow_load(&mut self, value: Value) -> Option<Value> {
        let narrow = self.func.dfg.value_type(value).bits() < 32;
        (narrow && self.is_lone_load(value)).then_some(value)
    }

    fn sign_extended_load(&mut self, value: Value) -> Gpr {
        self.request_signed_load(value);
        self.put_in_gpr(value)
    }

    fn boolean(&mut self, value: Value) -> Option<Value> {
        self.is_truth(value).then_some(value)
    }

    // Memory.

    fn is_one_instruction(&mut self, flags: MemFlags, pointer: Value, offset: Offset32, bytes: u8) -> Option<Unit> {
        let access = self.memory_access(flags, pointer, offset.into());
        access.is_one_instruction(bytes.into()).then_some(())
    }

    fn access(&mut self, flags: MemFlags, pointer: Value, offset: Offset32, bytes: u8) -> Access {
        self.memory_access(flags, pointer, offset.into())
            .of_number(bytes.into())
    }

    fn type_bytes(&mut self, ty: Type) -> u8 {
        ty.bytes() as u8
    }

    fn is_big_endian(&mut self, flags: MemFlags, _: Value, _: Offset32, _: u8) -> Option<Unit> {
        self.big_endian(flags)
    }

    fn access_address(&mut self, pointer: Value, offset: Offset32) -> AMode {
        self.address(pointer, i32::from(offset), WORD)
    }

    fn address_word(&mut self, addr: AMode) -> Word {
        Word::Reg(self.address_reg(addr))
    }

    fn address_at(&mut self, word: Word) -> AMode {
        AMode::Reg {
            base: self.reg(word),
            offset: 0,
        }
    }

    fn address_plus(&mut self, addr: AMode, bytes: u8) -> AMode {
        address::plus(addr, i32::from(bytes))
    }

    fn big_endian(&mut self, flags: MemFlags) -> Option<Unit> {
        Lower::is_big_endian(self, flags).then_some(())
    }

    fn atomic_address(&mut self, pointer: Value) -> AMode {
        self.address(pointer, 0, 1)
    }

    fn emit_spacer(&mut self) -> Unit {
        self.emit(MInst::Op {
            op: CONSTANT_OP,
            dst: Some(Reg::SCRATCH),
            srcs: SmallVec::new(),
            imm: 0,
        });
    }

    fn wants_sign(&mut self, inst: Inst) -> Option<Unit> {
        self.wants_signed_load(inst).then_some(())
    }

    // Conditions and control flow.

    fn nonzero(&mut self, reg: Gpr) -> Cond {
        Cond {
            reg: reg.0,
            nonzero: true,
        }
    }

    fn is_zero(&mut self, reg: Gpr) -> Cond {
        Cond {
            reg: reg.0,
            nonzero: false,
        }
    }

    fn invert(&mut self, cond: Cond) -> Cond {
        cond.inverted()
    }

    fn select_gpr(&mut self, cond: Cond, if_true: Gpr, if_false: Gpr) -> Gpr {
        let dst = Reg::Virtual(self.new_vreg(RegClass::Int));
        let (if_true, if_false) = (if_true.0, if_false.0);
        let words = smallvec![SelectWord { dst, if_true, if_false }];
        self.emit(MInst::Select { cond, words });
        Gpr(dst)
    }

    fn emit_jump(&mut self) -> Unit {
        self.emit(MInst::Jump);
    }

    fn emit_brif(&mut self, cond: Cond) -> Unit {
        self.emit(MInst::CondBr { cond });
    }

    fn emit_br_table(&mut self, index: Gpr) -> Unit {
        // If every entry is the default, a jump suffices.
        if self.table().iter().all(|&entry| entry == 0) {
            return self.emit_jump();
        }
        let tmp = Reg::Virtual(self.new_vreg(RegClass::Int));
        let base = Reg::Virtual(self.new_vreg(RegClass::Int));
        let entries = self.table().to_vec();
        let largest = |inst| facts::largest(self.func, self.func.dfg.inst_args(inst)[0]);
        let bounded = self
            .origin
            .inst
            .is_some_and(|inst| largest(inst) < entries.len() as u64);
        self.emit(MInst::BrTable {
            index: index.0,
            tmp,
            base,
            entries,
            bounded,
        });
    }

    fn trap_if(&mut self, cond: Cond, code: &TrapCode) -> Unit {
        self.emit(MInst::TrapIf { cond, code: *code });
    }

    fn emit_trap(&mut self, code: &TrapCode) -> Unit {
        self.emit(MInst::Trap { code: *code });
    }

    fn emit_sequence_point(&mut self) -> Unit {
        self.emit(MInst::SequencePoint);
    }

    fn emit_debugtrap(&mut self) -> Unit {
        let tmps = [0; 2].map(|_| Reg::Virtual(self.new_vreg(RegClass::Int)));
        self.emit(MInst::DebugTrap { tmps });
    }

    fn emit_fence(&mut self) -> Unit {
        self.emit(MInst::Fence);
    }

    // Calls.

    fn call_routine(&mut self, routine: &Routine, a: Gpr, b: Gpr) -> Gpr {
        Gpr(call::routine(self, *routine, &[a.0, b.0])[0])
    }

    fn gen_call(&mut self, callee: FuncRef, args: ValueSlice) -> Option<InstOutput> {
        let args = args.0.as_slice(&self.func.dfg.value_lists);
        intrinsics::lower(self, callee, args).or_else(|| call::direct(self, callee, args))
    }

    fn gen_call_indirect(&mut self, sig: SigRef, callee: Value, args: ValueSlice) -> Option<InstOutput> {
        let callee = self.put_in_gpr(callee);
        call::indirect(
            self,
            sig,
            callee.0,
            &args.0.as_slice(&self.func.dfg.value_lists)[args.1..],
        )
    }

    fn gen_return_call(&mut self, callee: FuncRef, args: ValueSlice) -> Option<InstOutput> {
        tail::direct(self, callee, args.0.as_slice(&self.func.dfg.value_lists))
    }

    fn gen_return_call_indirect(&mut self, sig: SigRef, callee: Value, args: ValueSlice) -> Option<InstOutput> {
        let callee = self.put_in_gpr(callee);
        let args = &args.0.as_slice(&self.func.dfg.value_lists)[args.1..];
        tail::indirect(self, sig, callee.0, args)
    }

    fn gen_return(&mut self, args: ValueSlice) -> Option<InstOutput> {
        call::finish(self, &args.0.as_slice(&self.func.dfg.value_lists)[args.1..])
    }

    // Addresses.

    fn slot_address(&mut self, slot: StackSlot, offset: Offset32) -> Gpr {
        Gpr(self.address_of_slot(slot, offset.into()))
    }

    fn function_address(&mut self, callee: FuncRef) -> Gpr {
        let target = call::target(self.func, callee);
        let dst = Reg::Virtual(self.new_vreg(RegClass::Int));
        self.emit(MInst::SymbolAddr { dst, target, addend: 0 });
        Gpr(dst)
    }

    fn symbol_address(&mut self, global: GlobalValue) -> Option<Gpr> {
        use cranelift_codegen::ir::GlobalValueData;
        let GlobalValueData::Symbol {
            name,
            offset,
            tls: false,
            ..
        } = &self.func.global_values[global]
        else {
            return None;
        };
        let (target, addend) = (crate::code::RelocTarget::Name(name.clone()), offset.bits());
        let dst = Reg::Virtual(self.new_vreg(RegClass::Int));
        self.emit(MInst::SymbolAddr { dst, target, addend });
        Some(Gpr(dst))
    }

    fn frame_pointer(&mut self) -> Gpr {
        self.vcode.uses_frame_pointer = true;
        self.read_special(Reg::FP)
    }

    fn stack_pointer(&mut self) -> Gpr {
        self.read_special(Reg::SP)
    }

    fn pinned_register(&mut self) -> Option<Gpr> {
        let reg = crate::abi::registers::pinned(self.isa.flags())?;
        Some(self.read_special(Reg::scalar(reg)))
    }

    fn set_pinned_register(&mut self, value: Gpr) -> Option<Unit> {
        let reg = crate::abi::registers::pinned(self.isa.flags())?;
        self.emit(MInst::Move {
            dst: Reg::scalar(reg),
            src: value.0,
        });
        Some(())
    }

    fn return_address(&mut self) -> Gpr {
        let dst = Reg::Virtual(self.new_vreg(RegClass::Int));
        self.emit(MInst::ReturnAddress { dst });
        Gpr(dst)
    }
}

impl Lower<'_> {
    fn as_output(&mut self, reg: Reg) -> ValueRegs {
        self.result_regs([reg])
    }

    fn read_special(&mut self, src: Reg) -> Gpr {
        let dst = Reg::Virtual(self.new_vreg(RegClass::Int));
        self.emit(MInst::Move { dst, src });
        Gpr(dst)
    }
}
