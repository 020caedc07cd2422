//! Vectors of fewer than sixteen lanes of at most 32 bits, each in a register of sixteen.
//!
//! What is done to each lane is the instruction on sixteen lanes, and the contents of unused lanes do not matter: the unit does not trap, and
//! what depends on more than one lane names those that count. What has no form here is done lane by lane by `scalarize.rs`. `accesses.rs` has loads and stores.

use super::scalarize::Splitter;
use crate::inst::LANES;
use crate::shape::{is_other, is_split, is_vector, register_type};
use cranelift_codegen::cursor::Cursor;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    Endianness, Immediate, Inst, InstBuilder, InstructionData, MemFlags, MemFlagsData, Opcode, StackSlotData,
    StackSlotKind, Type, Value, ValueDef, types,
};
use npu_mc::machine::{CACHE_LINE, WORD_SLOT as WORD};
use npu_mc::tables::LegalizeAction;

/// The vector of sixteen lanes whose register holds a vector of fewer.
pub fn widened(ty: Type) -> Option<Type> {
    register_type(ty).filter(|&wide| wide != ty)
}

/// What the bits of a cast were first: a vector or scalar of this type.
#[derive(Clone, Copy)]
pub struct Root {
    ty: Type,
    source: Source,
}

/// Where a root is.
#[derive(Clone, Copy)]
enum Source {
    /// A value of the program.
    Value(Value),
    /// A register that no value of the program has.
    Register(Value),
}

/// What an instruction becomes.
pub enum Form {
    /// A value in place of the result.
    Value(Value),
    /// The lanes of the result.
    Lanes(Vec<Value>),
    /// Something without a result.
    Nothing,
    /// A value that is made when somebody asks for it.
    Later,
}

/// How deep compares are looked for behind logic.
const MAX_DEPTH: u32 = 8;

/// What is done to each lane alone.
fn is_lanewise(opcode: Opcode) -> bool {
    use Opcode::{
        AvgRound, Band, Bitselect, Blendv, Bnot, Bor, Bxor, Ceil, Fabs, Fadd, Fcmp, Fcopysign, FcvtFromSint,
        FcvtFromUint, FcvtToSintSat, FcvtToUintSat, Fdiv, Floor, Fma, Fmax, Fmin, Fmul, Fneg, Fsub, Iabs, Iadd, Icmp,
        Imul, Ineg, Ishl, Isub, Nearest, Popcnt, Rotl, Rotr, SaddSat, Select, SelectSpectreGuard, Smax, Smin, Smulhi,
        Sqrt, Sshr, SsubSat, Trunc, UaddSat, Umax, Umin, Umulhi, Ushr, UsubSat,
    };
    matches!(
        opcode,
        AvgRound
            | Band
            | Bitselect
            | Blendv
            | Bnot
            | Bor
            | Bxor
            | Ceil
            | Fabs
            | Fadd
            | Fcmp
            | Fcopysign
            | FcvtFromSint
            | FcvtFromUint
            | FcvtToSintSat
            | FcvtToUintSat
            | Fdiv
            | Floor
            | Fma
            | Fmax
            | Fmin
            | Fmul
            | Fneg
            | Fsub
            | Iabs
            | Iadd
            | Icmp
            | Imul
            | Ineg
            | Ishl
            | Isub
            | Nearest
            | Popcnt
            | Rotl
            | Rotr
            | SaddSat
            | Select
            | SelectSpectreGuard
            | Smax
            | Smin
            | Smulhi
            | Sqrt
            | Sshr
            | SsubSat
            | Trunc
            | UaddSat
            | Umax
            | Umin
            | Umulhi
            | Ushr
            | UsubSat
    )
}

impl Splitter<'_> {
    /// The register of a vector that one holds.
    pub(super) fn wide(&mut self, value: Value) -> Option<Value> {
        let value = self.cursor.func.dfg.resolve_aliases(value);
        let ty = self.type_of(value);
        if is_vector(ty) {
            return Some(value);
        }
        widened(ty)?;
        if self.apart.contains(&value) {
            return None;
        }
        if let Some((inst, root)) = self.later.remove(&value) {
            let here = self.cursor.position();
            let srcloc = self.cursor.srcloc();
            self.cursor.goto_inst(inst);
            self.cursor.use_srcloc(inst);
            let made = self.cast_root(root, ty);
            self.cursor.set_position(here);
            self.cursor.set_srcloc(srcloc);
            self.parts.insert(value, vec![made?]);
        }
        self.parts.get(&value)?.first().copied()
    }

    /// The instruction on whole registers; none if it has no such form, or a worse one than on single lanes.
    pub(super) fn widen(&mut self, inst: Inst, opcode: Opcode) -> Option<Form> {
        let data = self.cursor.func.dfg.insts[inst];
        let result = self.cursor.func.dfg.inst_results(inst).first().copied();
        let ty = result.map_or(types::INVALID, |result| self.type_of(result));
        if let InstructionData::LoadNoOffset {
            opcode: Opcode::Bitcast,
            arg,
            flags,
        } = data
        {
            return match self.is_big(flags) {
                true => None,
                false => self.bitcast_whole(inst, ty, arg),
            };
        }
        if let Some(form) = self.on_roots(inst, opcode) {
            return Some(form);
        }
        if is_lanewise(opcode) {
            return self.lanewise(inst, opcode, ty).map(Form::Value);
        }
        let value = match data {
            InstructionData::Unary { arg, .. } => self.widen_unary(opcode, ty, arg)?,
            InstructionData::Binary { args, .. } => self.widen_binary(opcode, ty, args)?,
            InstructionData::BinaryImm8 {
                opcode: Opcode::Extractlane,
                arg,
                imm,
            } => {
                let wide = self.wide(arg)?;
                self.cursor.ins().extractlane(wide, imm)
            }
            // Its first lanes are those of the register.
            InstructionData::BinaryImm8 {
                opcode: Opcode::ExtractVector,
                arg,
                imm,
            } => {
                let to = widened(ty)?;
                let wide = self.wide(arg)?;
                match imm {
                    0 => wide,
                    _ => {
                        let first = u32::from(imm) * ty.lane_count();
                        let words = self.as_words(wide);
                        let picked = self.pick(words, |lane| lane + first);
                        self.of_words(to, picked)
                    }
                }
            }
            InstructionData::TernaryImm8 {
                opcode: Opcode::Insertlane,
                args,
                imm,
            } => {
                let wide = self.wide(args[0])?;
                self.cursor.ins().insertlane(wide, args[1], imm)
            }
            InstructionData::UnaryConst {
                opcode: Opcode::Vconst,
                constant_handle,
            } => {
                let wide = widened(ty)?;
                // The unused lanes repeat the others, so that what is the same in all stays so.
                let bytes = self.cursor.func.dfg.constants.get(constant_handle).as_slice();
                let bytes: Vec<u8> = bytes.iter().copied().cycle().take(wide.bytes() as usize).collect();
                self.vector_constant(wide, bytes)
            }
            InstructionData::Load {
                opcode: Opcode::Load,
                arg,
                flags,
                offset,
            } if is_split(ty) => return self.load_words(ty, arg, flags, offset.into()).map(Form::Lanes),
            InstructionData::Load { arg, flags, offset, .. } => {
                self.load_whole(opcode, ty, arg, flags, offset.into())?
            }
            InstructionData::Store {
                opcode: Opcode::Store,
                args,
                flags,
                offset,
            } => {
                self.store_whole(args, flags, offset.into())?;
                return Some(Form::Nothing);
            }
            _ => return None,
        };
        Some(Form::Value(value))
    }

    pub(super) fn is_big(&self, flags: MemFlags) -> bool {
        let flags = self.cursor.func.dfg.mem_flags[flags];
        flags.explicit_endianness() == Some(Endianness::Big)
    }

    /// The same instruction on sixteen lanes.
    fn lanewise(&mut self, inst: Inst, opcode: Opcode, ty: Type) -> Option<Value> {
        register_type(ty)?;
        let ctrl = register_type(self.cursor.func.dfg.ctrl_typevar(inst))?;
        // A routine does not know which lanes are used.
        match self.legality.action(opcode, ctrl)? {
            LegalizeAction::Legal | LegalizeAction::Promote | LegalizeAction::Expand | LegalizeAction::Custom => {}
            LegalizeAction::Split | LegalizeAction::Scalarize | LegalizeAction::LibCall | LegalizeAction::Refused => {
                return None;
            }
        }
        let args: Vec<Value> = self.cursor.func.dfg.inst_args(inst).to_vec();
        let mut wide = Vec::with_capacity(args.len());
        for arg in args {
            let arg_type = self.type_of(arg);
            wide.push(match arg_type.is_vector() {
                true if arg_type.lane_count() == ty.lane_count() => self.wide(arg)?,
                true => return None,
                false => arg,
            });
        }
        let data = self.cursor.func.dfg.insts[inst];
        let ins = self.cursor.ins();
        let (new, dfg) = match (data, wide.as_slice()) {
            (InstructionData::Unary { .. }, &[x]) => ins.Unary(opcode, ctrl, x),
            (InstructionData::Binary { .. }, &[x, y]) => ins.Binary(opcode, ctrl, x, y),
            (InstructionData::Ternary { .. }, &[a, x, y]) => ins.Ternary(opcode, ctrl, a, x, y),
            (InstructionData::IntCompare { cond, .. }, &[x, y]) => ins.IntCompare(opcode, ctrl, cond, x, y),
            (InstructionData::FloatCompare { cond, .. }, &[x, y]) => ins.FloatCompare(opcode, ctrl, cond, x, y),
            _ => return None,
        };
        Some(dfg.first_result(new))
    }

    fn vector_constant(&mut self, ty: Type, bytes: Vec<u8>) -> Value {
        let constant = self.cursor.func.dfg.constants.insert(bytes.into());
        self.cursor.ins().vconst(ty, constant)
    }

    /// Sixteen words.
    pub(super) fn each_lane(&mut self, number: impl Fn(u32) -> u32) -> Value {
        let bytes = (0..LANES as u32).flat_map(|lane| number(lane).to_le_bytes()).collect();
        self.vector_constant(types::I32X16, bytes)
    }

    /// The same number in every lane of a vector of integers.
    fn in_all(&mut self, ty: Type, number: i64) -> Value {
        let lane = ty.lane_type();
        let unused = 64 - lane.bits();
        let scalar = self.cursor.ins().iconst(lane, number << unused >> unused);
        self.cursor.ins().splat(ty, scalar)
    }

    /// A register as words, whatever it holds; upper bits of narrow lanes mean nothing.
    fn as_words(&mut self, wide: Value) -> Value {
        match self.type_of(wide) {
            types::F32X16 => self.as_type(types::I32X16, wide),
            _ => self.calls.reinterpret(&mut self.cursor, wide, types::I32X16),
        }
    }

    /// Words as a register of the type.
    fn of_words(&mut self, ty: Type, words: Value) -> Value {
        match ty {
            types::F32X16 => self.as_type(ty, words),
            _ => self.calls.reinterpret(&mut self.cursor, words, ty),
        }
    }

    /// The lanes of words that the numbers name.
    pub(super) fn pick(&mut self, words: Value, number: impl Fn(u32) -> u32) -> Value {
        let index = self.each_lane(|lane| number(lane) % LANES as u32);
        self.calls.shuffle(&mut self.cursor, words, index)
    }

    /// The first lanes of one vector of words and, behind them, those of another one.
    fn concat(&mut self, [x, y]: [Value; 2], count: u32) -> Value {
        let moved = self.pick(y, |lane| lane.wrapping_sub(count));
        let upper = self.each_lane(|lane| if lane < count { 0 } else { u32::MAX });
        self.cursor.ins().bitselect(upper, moved, x)
    }

    /// The lanes of a vector of narrower integers, extended.
    pub(super) fn extend_lanes(&mut self, ty: Type, wide: Value, signed: bool) -> Option<Value> {
        if self.type_of(wide) == ty {
            return Some(wide);
        }
        let name = if signed {
            "__builtin_npu_lanes_sext"
        } else {
            "__builtin_npu_lanes_zext"
        };
        self.calls.call(&mut self.cursor, name, &[wide], Some(ty))
    }

    /// The same bits in lanes of another size.
    pub(super) fn recast(&mut self, ty: Type, wide: Value) -> Option<Value> {
        let bits = match self.type_of(wide) {
            types::F32X16 => self.as_type(types::I32X16, wide),
            _ => wide,
        };
        let own = ty.as_int();
        let made = match self.type_of(bits) == own {
            true => bits,
            false => self
                .calls
                .call(&mut self.cursor, "__builtin_npu_lanes_cast", &[bits], Some(own))?,
        };
        Some(self.as_type(ty, made))
    }

    fn widen_unary(&mut self, opcode: Opcode, ty: Type, arg: Value) -> Option<Value> {
        let count = self.type_of(arg).lane_count();
        Some(match opcode {
            Opcode::Splat => self.cursor.ins().splat(widened(ty)?, arg),
            Opcode::ScalarToVector => self.cursor.ins().scalar_to_vector(widened(ty)?, arg),
            Opcode::VanyTrue => {
                let bits = self.bits(arg, false)?;
                self.cursor.ins().icmp_imm_u(IntCC::NotEqual, bits, 0)
            }
            Opcode::VallTrue => {
                let bits = self.bits(arg, false)?;
                self.cursor.ins().icmp_imm_u(IntCC::Equal, bits, (1 << count) - 1)
            }
            Opcode::VhighBits => {
                let bits = self.bits(arg, true)?;
                match ty.bits() {
                    32 => bits,
                    ..32 => self.cursor.ins().ireduce(ty, bits),
                    _ => self.cursor.ins().uextend(ty, bits),
                }
            }
            Opcode::SwidenLow | Opcode::SwidenHigh | Opcode::UwidenLow | Opcode::UwidenHigh => {
                let (to, from) = (register_type(ty)?, register_type(self.type_of(arg))?);
                let mut wide = self.wide(arg)?;
                if matches!(opcode, Opcode::SwidenHigh | Opcode::UwidenHigh) {
                    let words = self.as_words(wide);
                    let upper = self.pick(words, |lane| lane + count / 2);
                    wide = self.of_words(from, upper);
                }
                let signed = matches!(opcode, Opcode::SwidenLow | Opcode::SwidenHigh);
                self.extend_lanes(to, wide, signed)?
            }
            _ => return None,
        })
    }

    /// A bit for each lane: its highest one, or whether any is set.
    fn bits(&mut self, arg: Value, highest: bool) -> Option<Value> {
        let ty = self.type_of(arg);
        widened(ty)?;
        let wide = self.wide(arg)?;
        Some(self.bits_of(wide, ty.lane_count(), highest))
    }

    /// The same of the first lanes of a register.
    fn bits_of(&mut self, wide: Value, count: u32, highest: bool) -> Value {
        let mut lanes = self.as_type(self.type_of(wide).as_int(), wide);
        if !highest && !self.compares(lanes, MAX_DEPTH) {
            let zero = self.in_all(self.type_of(lanes), 0);
            lanes = self.cursor.ins().icmp(IntCC::NotEqual, lanes, zero);
        }
        let bits = self.cursor.ins().vhigh_bits(types::I32, lanes);
        self.cursor.ins().band_imm_u(bits, (1 << count) - 1)
    }

    /// Whether all bits of a lane are the same because the value compares.
    fn compares(&self, value: Value, depth: u32) -> bool {
        let dfg = &self.cursor.func.dfg;
        let ValueDef::Result(inst, 0) = dfg.value_def(dfg.resolve_aliases(value)) else {
            return false;
        };
        let Some(depth) = depth.checked_sub(1) else {
            return false;
        };
        match dfg.insts[inst] {
            InstructionData::IntCompare { .. } | InstructionData::FloatCompare { .. } => true,
            InstructionData::Binary {
                opcode: Opcode::Band | Opcode::Bor | Opcode::Bxor,
                args,
            } => args.iter().all(|&arg| self.compares(arg, depth)),
            InstructionData::Unary {
                opcode: Opcode::Bnot,
                arg,
            } => self.compares(arg, depth),
            _ => false,
        }
    }

    fn widen_binary(&mut self, opcode: Opcode, ty: Type, args: [Value; 2]) -> Option<Value> {
        let from = self.type_of(args[0]);
        let to = register_type(ty)?;
        let [x, y] = [self.wide(args[0])?, self.wide(args[1])?];
        let words = types::I32X16;
        Some(match opcode {
            Opcode::Snarrow | Opcode::Unarrow | Opcode::Uunarrow => {
                let signed = opcode != Opcode::Uunarrow;
                let both = [
                    self.extend_lanes(words, x, signed)?,
                    self.extend_lanes(words, y, signed)?,
                ];
                let all = self.concat(both, from.lane_count());
                let clamped = self.clamp(opcode, ty.lane_type(), all);
                self.of_words(to, clamped)
            }
            Opcode::IaddPairwise => {
                let both = [self.as_words(x), self.as_words(y)];
                let all = self.concat(both, from.lane_count());
                let sums = self.pair_sums(all);
                self.of_words(to, sums)
            }
            Opcode::SqmulRoundSat | Opcode::X86Pmulhrsw if ty.lane_type() == types::I16 => {
                let [x, y] = [self.extend_lanes(words, x, true)?, self.extend_lanes(words, y, true)?];
                let product = self.cursor.ins().imul(x, y);
                let bits = i64::from(ty.lane_bits());
                let half = self.in_all(words, 1 << (bits - 2));
                let sum = self.cursor.ins().iadd(product, half);
                let amount = self.cursor.ins().iconst(types::I32, bits - 1);
                let mut upper = self.cursor.ins().sshr(sum, amount);
                if opcode == Opcode::SqmulRoundSat {
                    let most = self.in_all(words, (1 << (bits - 1)) - 1);
                    upper = self.cursor.ins().smin(upper, most);
                }
                self.of_words(to, upper)
            }
            Opcode::X86Pmaddubsw => {
                let [x, y] = [self.extend_lanes(words, x, false)?, self.extend_lanes(words, y, true)?];
                let products = self.cursor.ins().imul(x, y);
                let sums = self.pair_sums(products);
                let clamped = self.clamp(Opcode::Snarrow, ty.lane_type(), sums);
                self.of_words(to, clamped)
            }
            _ => return None,
        })
    }

    /// The sums of neighbouring words.
    fn pair_sums(&mut self, words: Value) -> Value {
        let even = self.pick(words, |lane| 2 * lane);
        let odd = self.pick(words, |lane| 2 * lane + 1);
        self.cursor.ins().iadd(even, odd)
    }

    /// The nearest numbers of a narrower type.
    fn clamp(&mut self, opcode: Opcode, lane: Type, words: Value) -> Value {
        let bits = lane.bits();
        let ty = self.type_of(words);
        let (least, most) = match opcode {
            Opcode::Snarrow => (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1),
            _ => (0, (1i64 << bits) - 1),
        };
        let most = self.in_all(ty, most);
        if opcode == Opcode::Uunarrow {
            return self.cursor.ins().umin(words, most);
        }
        let least = self.in_all(ty, least);
        let above = self.cursor.ins().smax(words, least);
        self.cursor.ins().smin(above, most)
    }

    /// What a value is the bits of, if it is a cast.
    fn root(&self, value: Value) -> Option<Root> {
        let value = self.cursor.func.dfg.resolve_aliases(value);
        self.roots.get(&value).copied()
    }

    /// Whether some of the values of the program are casts that more is known about.
    pub(super) fn has_roots(&self, inst: Inst) -> bool {
        let dfg = &self.cursor.func.dfg;
        !self.roots.is_empty() && dfg.inst_args(inst).iter().any(|&arg| self.root(arg).is_some())
    }

    /// The same bits as another type. What is cast several times is cast from what it was first.
    fn bitcast_whole(&mut self, inst: Inst, ty: Type, arg: Value) -> Option<Form> {
        let arg = self.cursor.func.dfg.resolve_aliases(arg);
        let root = self.root(arg).unwrap_or(Root {
            ty: self.type_of(arg),
            source: Source::Value(arg),
        });
        self.result_of_root(inst, ty, root)
    }

    /// The result of an instruction has the bits of the root.
    fn result_of_root(&mut self, inst: Inst, ty: Type, root: Root) -> Option<Form> {
        let result = self.cursor.func.dfg.first_result(inst);
        if root.ty == ty {
            return match root.source {
                Source::Register(wide) => Some(Form::Value(wide)),
                Source::Value(value) => match self.parts.get(&value) {
                    Some(parts) => Some(Form::Lanes(parts.clone())),
                    None => Some(Form::Value(value)),
                },
            };
        }
        let from_register = register_type(root.ty).is_some();
        if widened(ty).is_some() && (from_register || self.has_words(root.ty)) {
            self.roots.insert(result, root);
            self.later.insert(result, (inst, root));
            return Some(Form::Later);
        }
        if is_vector(ty) && (from_register || self.has_words(root.ty)) {
            let value = self.cast_root(root, ty)?;
            self.roots.insert(value, root);
            return Some(Form::Value(value));
        }
        if !from_register {
            return None;
        }
        let wide = self.root_register(root)?;
        let lanes = self.cast_to_scalars(wide, ty)?;
        if is_other(ty) {
            self.roots.insert(result, root);
            return Some(Form::Lanes(lanes));
        }
        lanes.first().copied().map(Form::Value)
    }

    /// The root in a register of the type.
    fn cast_root(&mut self, root: Root, ty: Type) -> Option<Value> {
        match root.source {
            Source::Value(value) => self.cast(value, ty),
            Source::Register(wide) => self.recast(register_type(ty)?, wide),
        }
    }

    /// The register of a root.
    fn root_register(&mut self, root: Root) -> Option<Value> {
        match root.source {
            Source::Value(value) => self.wide(value),
            Source::Register(wide) => Some(wide),
        }
    }

    /// What does not depend on how bits are divided into lanes is done to what the operands were before they were cast.
    pub(super) fn on_roots(&mut self, inst: Inst, opcode: Opcode) -> Option<Form> {
        if !self.has_roots(inst) {
            return None;
        }
        let ty = self.type_of(*self.cursor.func.dfg.inst_results(inst).first()?);
        let args: Vec<Value> = self.cursor.func.dfg.inst_args(inst).to_vec();
        let data = self.cursor.func.dfg.insts[inst];
        let root_type = args.iter().find_map(|&arg| self.root(arg)).map(|root| root.ty)?;
        register_type(root_type)?;
        let own_type = self.type_of(args[0]);
        if let InstructionData::Unary {
            opcode: Opcode::VanyTrue,
            arg,
        } = data
        {
            let root = self.root(arg)?;
            return self.any_of_root(root).map(Form::Value);
        }
        if let InstructionData::Shuffle { args, imm, .. } = data {
            return self.shuffle_roots(inst, ty, root_type, args, imm);
        }
        let bitwise = matches!(
            opcode,
            Opcode::Band | Opcode::Bor | Opcode::Bxor | Opcode::Bnot | Opcode::Bitselect
        );
        if !bitwise || own_type.bits() != root_type.bits() {
            return None;
        }
        let mut registers = Vec::with_capacity(args.len());
        for &arg in &args {
            registers.push(self.register_as(arg, root_type)?);
        }
        let ctrl = register_type(root_type)?;
        let ins = self.cursor.ins();
        let (new, dfg) = match *registers.as_slice() {
            [x] => ins.Unary(opcode, ctrl, x),
            [x, y] => ins.Binary(opcode, ctrl, x, y),
            [a, x, y] => ins.Ternary(opcode, ctrl, a, x, y),
            _ => return None,
        };
        let wide = dfg.first_result(new);
        let source = Source::Register(wide);
        self.result_of_root(inst, ty, Root { ty: root_type, source })
    }

    /// An operand in a register of the type, if it is a cast from there or a constant.
    fn register_as(&mut self, value: Value, ty: Type) -> Option<Value> {
        if self.type_of(value) == ty {
            return self.wide(value);
        }
        if let Some(root) = self.root(value)
            && (root.ty.lane_count(), root.ty.lane_bits()) == (ty.lane_count(), ty.lane_bits())
        {
            let register = self.root_register(root)?;
            return Some(self.as_type(register_type(ty)?, register));
        }
        let dfg = &self.cursor.func.dfg;
        let ValueDef::Result(inst, 0) = dfg.value_def(dfg.resolve_aliases(value)) else {
            return None;
        };
        let InstructionData::UnaryConst {
            opcode: Opcode::Vconst,
            constant_handle,
        } = dfg.insts[inst]
        else {
            return None;
        };
        if self.type_of(value).bits() != ty.bits() {
            return None;
        }
        let wide = register_type(ty)?;
        let bytes = dfg.constants.get(constant_handle).as_slice();
        let bytes: Vec<u8> = bytes.iter().copied().cycle().take(wide.bytes() as usize).collect();
        Some(self.vector_constant(wide, bytes))
    }

    /// Whether any bit is set, of a root with other lanes than the operand.
    fn any_of_root(&mut self, root: Root) -> Option<Value> {
        let wide = self.root_register(root)?;
        if root.ty.lane_count() == LANES as u32 {
            return Some(self.cursor.ins().vany_true(wide));
        }
        let bits = self.bits_of(wide, root.ty.lane_count(), false);
        Some(self.cursor.ins().icmp_imm_u(IntCC::NotEqual, bits, 0))
    }

    /// A shuffle of bytes that moves whole lanes of what was cast to bytes.
    fn shuffle_roots(
        &mut self,
        inst: Inst,
        ty: Type,
        root_type: Type,
        args: [Value; 2],
        imm: Immediate,
    ) -> Option<Form> {
        let size = (root_type.lane_bits() / 8) as u8;
        if size < 2 || root_type.bits() != ty.bits() || widened(root_type).is_none() {
            return None;
        }
        let bytes = self.cursor.func.dfg.immediates.get(imm)?.as_slice().to_vec();
        let mut lanes = Vec::new();
        for lane in bytes.chunks_exact(size as usize) {
            let (&first, rest) = lane.split_first()?;
            let whole = first.is_multiple_of(size) && rest.iter().zip(1..).all(|(&byte, more)| byte == first + more);
            if !whole {
                return None;
            }
            lanes.push(u32::from(first / size));
        }
        let count = root_type.lane_count();
        let [x, y] = [
            self.register_as(args[0], root_type)?,
            self.register_as(args[1], root_type)?,
        ];
        let [words_x, words_y] = [self.as_words(x), self.as_words(y)];
        let number = |lane: u32| lanes.get(lane as usize % lanes.len()).copied().unwrap_or(0);
        let from_y = |lane: u32| number(lane) >= count;
        let of_x = |this: &mut Self| this.pick(words_x, |lane| number(lane) % count);
        let of_y = |this: &mut Self| this.pick(words_y, |lane| number(lane) % count);
        let one = x == y || (0..count).all(|lane| !from_y(lane));
        let picked = if one {
            of_x(self)
        } else if (0..count).all(from_y) {
            of_y(self)
        } else {
            let (x, y) = (of_x(self), of_y(self));
            let mask = self.each_lane(|lane| if from_y(lane) { u32::MAX } else { 0 });
            self.cursor.ins().bitselect(mask, y, x)
        };
        let wide = self.of_words(register_type(root_type)?, picked);
        let source = Source::Register(wide);
        self.result_of_root(inst, ty, Root { ty: root_type, source })
    }

    /// Whether a scalar, or the lanes of a vector that no register holds, are some words, or less than one.
    pub(super) fn has_words(&self, ty: Type) -> bool {
        let bits = ty.lane_bits();
        bits.is_multiple_of(32) || !ty.is_vector() && bits == 16
    }

    /// The value's bits in a register of this type.
    fn cast(&mut self, value: Value, ty: Type) -> Option<Value> {
        let to = register_type(ty)?;
        if register_type(self.type_of(value)).is_some() {
            let wide = self.wide(value)?;
            return self.recast(to, wide);
        }
        let mut words = Vec::new();
        for lane in self.lanes(value) {
            let bits = self.as_type(self.type_of(lane).as_int(), lane);
            self.add_words(bits, &mut words);
        }
        let words = self.words_together(&words)?;
        self.recast(to, words)
    }

    /// Appends the words of an integer, the lowest first.
    pub(super) fn add_words(&mut self, value: Value, words: &mut Vec<Value>) {
        match self.type_of(value).bits() {
            32 => words.push(value),
            ..32 => words.push(self.cursor.ins().uextend(types::I32, value)),
            _ => {
                let (low, high) = self.cursor.ins().isplit(value);
                self.add_words(low, words);
                self.add_words(high, words);
            }
        }
    }

    /// A vector with these words in its first lanes.
    pub(super) fn words_together(&mut self, words: &[Value]) -> Option<Value> {
        if let &[word] = words {
            return Some(self.cursor.ins().splat(types::I32X16, word));
        }
        let area = self.area();
        let flags = MemFlagsData::trusted();
        for (&word, number) in words.iter().zip(0..LANES as i32) {
            self.cursor.ins().store(flags, word, area, number * WORD.cast_signed());
        }
        Some(self.cursor.ins().load(types::I32X16, flags, area, 0))
    }

    /// The address of a line of the frame for what goes through memory.
    fn area(&mut self) -> Value {
        let slot = *self.area.get_or_insert_with(|| {
            let alignment = CACHE_LINE.trailing_zeros() as u8;
            let data = StackSlotData::new(StackSlotKind::ExplicitSlot, CACHE_LINE, alignment);
            self.cursor.func.create_sized_stack_slot(data)
        });
        self.cursor.ins().stack_addr(types::I32, slot, 0)
    }

    /// The lanes of a vector that no register holds, or a scalar, with the bits of a register.
    pub(super) fn cast_to_scalars(&mut self, wide: Value, ty: Type) -> Option<Vec<Value>> {
        let lane = ty.lane_type();
        if !self.has_words(ty) {
            return None;
        }
        let words = self.recast(types::I32X16, wide)?;
        let count = lane.bits().div_ceil(32);
        let mut lanes = Vec::new();
        for first in 0..ty.lane_count() {
            let numbers = first * count..(first + 1) * count;
            let parts: Vec<Value> = numbers
                .map(|number| self.cursor.ins().extractlane(words, number as u8))
                .collect();
            let whole = self.together(&parts)?;
            let whole = match lane.bits() {
                ..32 => self.cursor.ins().ireduce(lane.as_int(), whole),
                _ => whole,
            };
            lanes.push(self.as_type(lane, whole));
        }
        Some(lanes)
    }

    /// The integer of these words, the lowest first.
    fn together(&mut self, words: &[Value]) -> Option<Value> {
        if let &[word] = words {
            return Some(word);
        }
        let (low, high) = words.split_at(words.len() / 2);
        let (low, high) = (self.together(low)?, self.together(high)?);
        Some(self.cursor.ins().iconcat(low, high))
    }
}
