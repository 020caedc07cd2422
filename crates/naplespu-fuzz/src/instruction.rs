//! The state of a generator of functions. Adds one instruction of any opcode, with operands in scope.

use crate::eval::{self, Floats};
use crate::programs::params::{Count, Param};
use crate::random::Dice;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::immediates::{Ieee16, Ieee32, Ieee64, Imm64, Offset32};
use cranelift_codegen::ir::instructions::{InstructionFormat, ResolvedConstraint};
use cranelift_codegen::ir::{
    AbiParam, AliasRegion, AliasRegionData, ArgumentPurpose, AtomicRmwOp, Block, BlockArg, BlockCall, ConstantData,
    DynamicStackSlot, DynamicStackSlotData, DynamicTypeData, Endianness, ExceptionTable, ExceptionTableData,
    ExceptionTableItem, ExceptionTag, ExtFuncData, ExternalName, FuncRef, Function, GlobalValue, GlobalValueData, Inst,
    InstBuilder, InstBuilderBase, InstructionData, JumpTable, JumpTableData, KnownSymbol, LibCall, MemFlags,
    MemFlagsData, Opcode, SigRef, Signature, StackSlot, StackSlotKind, TrapCode, Type, UserExternalName, Value,
    ValueList, types,
};
use cranelift_codegen::isa::CallConv;
use cranelift_naplespu::Isa;
use cranelift_naplespu::internals::refuses;
use naplespu_filetests::reduce::constant;
use naplespu_reader::panics::caught;

/// Vector types. Those that fit a register are more frequent; the others represent each kind.
const VECTORS: &[Type] = {
    use types::*;
    &[
        I8X16, I8X16, I16X16, I16X16, I32X16, I32X16, F32X16, F32X16, I8X8, I8X32, I16X2, I16X8, I32X2, I32X4, I64X2,
        I64X8, I128X2, F16X8, F32X4, F64X2, F64X8,
    ]
};

/// Scalar types.
const SCALARS: &[Type] = {
    use types::*;
    &[I8, I16, I32, I32, I64, I128, F16, F32, F64, F128]
};

/// The instructions and statements of a function.
#[derive(Clone, Debug, Default)]
pub struct Style {
    /// The opcodes of instructions; frequent ones are repeated.
    pub opcodes: Vec<Opcode>,
    /// The types of values; frequent ones are repeated. Not used unless `is_evaluated`.
    pub types: Vec<Type>,
    /// The evaluator supports all instructions.
    pub is_evaluated: bool,
    /// Amounts of shifts are constants, as the vectorizer requires.
    pub constant_amounts: bool,
    /// Functions access memory at parameters. Other functions access stack slots.
    pub memory: bool,
    /// The types of elements in memory.
    pub elements: Vec<Type>,
    /// Loops can be vectorized: 32-bit counters, steps that fit, no early exits.
    pub plain: bool,
    /// `plain` holds, and every access moves by one element per iteration.
    pub pure: bool,
    /// `pure` holds, and accesses have few different constant offsets, so that many of them
    /// overlap.
    pub near: bool,
    /// Checks that trap.
    pub checks: bool,
    /// Early exits.
    pub exits: bool,
    /// Accesses promise alias regions.
    pub regions: bool,
    /// Accesses promise alignment where it holds.
    pub aligned: bool,
    /// The largest depth of a loop nest.
    pub depth: usize,
    /// The float operations.
    pub floats: Floats,
}

/// A base for addresses: `value + bias` lies within the memory.
#[derive(Clone, Debug)]
pub struct Base {
    pub value: Value,
    /// The constant to add.
    pub bias: u32,
    /// The alignment of the sum in bytes.
    pub align: u32,
    /// If the base is an induction variable, its increment per iteration in bytes, and the number
    /// of open loops up to and including its loop. Addresses then need no counter.
    pub moves: Option<(i64, usize)>,
    /// The stack slot that holds the address, if each access reloads it.
    pub slot: Option<StackSlot>,
    /// The alias region.
    pub region: u32,
}

/// A condition, and whether a branch is taken if it is not 0.
pub type Test = (Value, bool);

/// A loop: its counter and the values that are computed before it.
#[derive(Clone, Debug)]
pub struct Loop {
    pub count: Count,
    /// The counter. Before the loop is open, the first value of the counter.
    pub counter: Value,
    pub bound: Value,
    /// Whether the loop is tested at the start of an iteration.
    pub at_start: bool,
    /// Whether the test compares the counter of the next iteration.
    pub next: bool,
    /// The stack slot that the bound is reloaded from in each iteration, if it is in memory.
    pub slot: Option<StackSlot>,
    /// The block after the loop.
    pub exit: Block,
    /// The arguments for `exit`: values that dominate the whole loop.
    pub out: Vec<Value>,
    /// Whether a branch in the loop's body leaves it.
    pub is_left: bool,
}

/// The terms of an address.
#[derive(Clone, Debug)]
pub struct Sum {
    pub size: u32,
    pub base: Base,
    pub index: Vec<Value>,
    pub total: u32,
    pub align: u32,
}

impl Style {
    /// Returns whether values may be constants. The optimizer folds constants of floats by IEEE 754.
    pub fn has_constants(&self) -> bool {
        self.floats != Floats::Any
    }

    /// Returns the style of programs that the evaluator supports, without memory.
    pub fn evaluated() -> Self {
        Self {
            is_evaluated: true,
            aligned: true,
            floats: Floats::Strict,
            ..Self::default()
        }
    }
}

/// A function under construction, and the source of random choices.
pub struct Generator<'a, 'u, 'd> {
    pub dice: &'u mut Dice<'d>,
    pub isa: &'a Isa,
    /// Whether to avoid what the compiler refuses.
    pub tame: bool,
    pub style: Style,
    pub func: Function,
    /// The block that receives instructions.
    pub current: Block,
    /// The values that dominate the current position.
    pub scope: Vec<Value>,
    pub convention: CallConv,
    /// The targets of the next terminator.
    pub targets: Vec<Block>,
    pub params: Vec<Param>,
    /// The bases in scope.
    pub bases: Vec<Base>,
    /// The open loops, the innermost last.
    pub open: Vec<Loop>,
    /// The last address that the current block computed.
    pub last: Option<Sum>,
    /// The number of statements that may still be added.
    pub budget: i64,
    pub callees: Vec<FuncRef>,
}

/// Returns whether the opcode accesses memory, which includes the atomics.
fn is_access(opcode: Opcode) -> bool {
    // `bitcast` shares its format with loads.
    (opcode.can_load() || opcode.can_store()) && opcode != Opcode::Bitcast
}

fn is_address(opcode: Opcode, index: usize) -> bool {
    use InstructionFormat::{Store, StoreNoOffset};
    is_access(opcode) && index == usize::from(matches!(opcode.format(), Store | StoreNoOffset))
}

/// The calling conventions; those that the compiler supports are first.
pub const CONVENTIONS: [CallConv; 8] = [
    CallConv::Fast,
    CallConv::SystemV,
    CallConv::Tail,
    CallConv::PreserveAll,
    CallConv::Winch,
    CallConv::Probestack,
    CallConv::WindowsFastcall,
    CallConv::AppleAarch64,
];

/// Returns the types of parameters or results.
pub fn types_of(params: &[AbiParam]) -> Vec<Type> {
    params.iter().map(|param| param.value_type).collect()
}

/// Returns all opcodes that do not end a block.
pub fn straight_opcodes() -> impl Iterator<Item = Opcode> {
    let ends = |opcode: &Opcode| opcode.is_terminator() || opcode.is_branch();
    Opcode::all().iter().copied().filter(move |opcode| !ends(opcode))
}

/// Returns the opcodes without effects besides results and traps.
pub fn pure_opcodes() -> impl Iterator<Item = Opcode> {
    use InstructionFormat::{
        DynamicStackAddr, ExceptionHandlerAddress, FuncAddr, StackAddr, UnaryGlobalValue as Global,
    };
    straight_opcodes().filter(|&opcode| match opcode.format() {
        DynamicStackAddr | ExceptionHandlerAddress | FuncAddr | StackAddr | Global => false,
        // Cranelift panics if `extract_vector` has an operand that is no dynamic vector.
        _ if opcode == Opcode::ExtractVector => false,
        _ => !is_access(opcode) && !opcode.is_call() && !opcode.other_side_effects(),
    })
}

/// Returns whether the opcode is valid with these two types. `ctrl` is the controlling type, and
/// `ty` is the type of an operand that `ctrl` does not determine.
fn fits(opcode: Opcode, ctrl: Type, ty: Type) -> bool {
    match opcode {
        Opcode::Uextend | Opcode::Sextend | Opcode::Fpromote => ty.bits() < ctrl.bits(),
        Opcode::Ireduce | Opcode::Fdemote => ty.bits() > ctrl.bits(),
        Opcode::Bitcast => ty.bits() == ctrl.bits() && ty != ctrl,
        Opcode::VhighBits => ty.lane_count() <= ctrl.bits(),
        _ if opcode.format() == InstructionFormat::Unary => {
            ty.lane_count() == ctrl.lane_count() && (!ty.is_vector() || ty.lane_bits() == ctrl.lane_bits())
        }
        _ => true,
    }
}

impl<'a, 'u, 'd> Generator<'a, 'u, 'd> {
    /// Creates an empty function.
    pub fn new(dice: &'u mut Dice<'d>, isa: &'a Isa, style: Style) -> Self {
        Self {
            dice,
            isa,
            tame: true,
            style,
            func: Function::new(),
            current: Block::from_u32(0),
            scope: Vec::new(),
            convention: CallConv::Fast,
            targets: Vec::new(),
            params: Vec::new(),
            bases: Vec::new(),
            open: Vec::new(),
            last: None,
            budget: 40,
            callees: Vec::new(),
        }
    }

    /// Returns a cursor at the end of the current block.
    pub fn cursor(&mut self) -> FuncCursor<'_> {
        FuncCursor::new(&mut self.func).at_bottom(self.current)
    }

    /// Returns the type of a value.
    pub fn type_of(&self, value: Value) -> Type {
        self.func.dfg.value_type(value)
    }

    /// Chooses a type.
    pub fn ty(&mut self) -> Type {
        if self.style.is_evaluated {
            let is_recent = !self.scope.is_empty() && self.dice.chance(2, 3);
            return match is_recent {
                true => self.some_type(),
                false => self.dice.one_of(&self.style.types),
            };
        }
        if self.dice.chance(1, 5) {
            return self.dice.one_of(VECTORS);
        }
        let ty = self.dice.one_of(SCALARS);
        if self.tame || self.dice.chance(2, 3) {
            return ty;
        }
        let vector = ty.by(1 << self.dice.range(1, 6));
        match vector {
            Some(vector) if self.dice.chance(1, 8) => vector.vector_to_dynamic().unwrap_or(vector),
            Some(vector) => vector,
            None => ty,
        }
    }

    /// Chooses a type, which is usually in the set.
    fn ty_in(&mut self, contains: &dyn Fn(Type) -> bool) -> Type {
        let mut ty = self.ty();
        for _ in 0..6 {
            if contains(ty) {
                break;
            }
            ty = self.ty();
        }
        ty
    }

    /// Adds a constant, if the type has constants.
    pub fn constant_of(&mut self, ty: Type, bits: u64) -> Option<Value> {
        constant(&mut self.cursor(), ty, bits)
    }

    /// Adds an integer constant.
    pub fn int(&mut self, ty: Type, number: i64) -> Value {
        let value = self.constant_of(ty, number.cast_unsigned());
        value.unwrap_or_else(|| self.cursor().ins().iconst(types::I32, number))
    }

    /// Returns a value of the type: usually one in scope, where recent values are more frequent, or
    /// a constant. Returns `None` if neither exists.
    pub fn value(&mut self, ty: Type) -> Option<Value> {
        let fitting = self.scope.iter().copied().filter(|&value| self.type_of(value) == ty);
        let fitting: Vec<Value> = fitting.collect();
        if !fitting.is_empty() && (!self.style.has_constants() || self.dice.chance(9, 10)) {
            let recent = if self.dice.chance(2, 3) { 5 } else { fitting.len() };
            return Some(self.dice.one_of(&fitting[fitting.len().saturating_sub(recent)..]));
        }
        self.number_of(ty).or(fitting.first().copied())
    }

    /// Adds a random constant, if the type has constants.
    fn number_of(&mut self, ty: Type) -> Option<Value> {
        let bits = self.dice.number(ty);
        let value = self.constant_of(ty, bits);
        self.scope.extend(value);
        value
    }

    /// Returns a vector of equal lanes: a value in scope, or a constant around the limits of
    /// immediates.
    fn equal_lanes(&mut self, vector: Type) -> Option<Value> {
        let ty = vector.lane_type();
        let lane = match self.style.has_constants() && ty.is_int() && self.dice.chance(2, 3) {
            true => {
                let power = self.dice.one_of(&[0, 8, 16, 63]).min(ty.bits() - 1);
                let number = (1i64 << power).wrapping_sub(self.dice.range(0, 1));
                let number = if self.dice.chance(1, 2) { number } else { !number };
                self.int(ty, number)
            }
            false => self.value(ty)?,
        };
        Some(self.cursor().ins().splat(vector, lane))
    }

    pub fn values(&mut self, all: &[Type]) -> Option<Vec<Value>> {
        all.iter().map(|&ty| self.value(ty)).collect()
    }

    /// Returns a value of the type, which has constants or values in scope.
    pub fn any(&mut self, ty: Type) -> Value {
        self.value(ty).unwrap_or_else(|| self.int(ty, 1))
    }

    /// Returns the low bits of a value of the type.
    pub fn low_bits(&mut self, ty: Type, mask: i64) -> Value {
        let value = self.any(ty);
        self.cursor().ins().band_imm_s(value, mask)
    }

    /// Returns the result of a comparison of values of one type, as an i8.
    pub fn compare(&mut self) -> Value {
        let ty = self.ty();
        let compared = self.compare_on(ty);
        match ty.is_vector() {
            true if self.dice.chance(1, 2) => self.cursor().ins().vany_true(compared),
            true => self.cursor().ins().vall_true(compared),
            false => compared,
        }
    }

    /// Returns the result of a comparison of values of this type.
    fn compare_on(&mut self, ty: Type) -> Value {
        let (a, mut b) = (self.any(ty), self.any(ty));
        if ty.is_vector() && self.dice.chance(1, 3) {
            b = self.equal_lanes(ty).unwrap_or(b);
        }
        if ty.is_int() && self.style.has_constants() && self.dice.chance(1, 3) {
            let number = self.dice.range(-3, 200);
            b = self.int(ty, number);
        }
        if ty.lane_type().is_float() {
            let condition = self.dice.one_of(FloatCC::all());
            return self.cursor().ins().fcmp(condition, a, b);
        }
        let condition = self.dice.one_of(IntCC::all());
        self.cursor().ins().icmp(condition, a, b)
    }

    /// Returns a value for an operand that needs more than its type.
    fn special(&mut self, opcode: Opcode, index: usize, ty: Type) -> Option<Value> {
        if !self.style.is_evaluated {
            return None;
        }
        match (opcode, index) {
            (Opcode::Ishl | Opcode::Ushr | Opcode::Sshr | Opcode::Rotl | Opcode::Rotr, 1)
                if self.style.constant_amounts || self.dice.chance(1, 2) =>
            {
                let amount = self.dice.range(0, 40);
                Some(self.int(types::I32, amount))
            }
            (Opcode::Udiv | Opcode::Urem | Opcode::Sdiv | Opcode::Srem, 1) if self.dice.chance(9, 10) => {
                if self.dice.chance(1, 3) {
                    let number = self.dice.one_of(&[1, 2, 3, 5, 7, 8, 10, 16, 100, -3, -1]);
                    return Some(self.int(ty, number));
                }
                let divisor = self.value(ty)?;
                Some(self.cursor().ins().bor_imm_s(divisor, 1))
            }
            (Opcode::Select | Opcode::SelectSpectreGuard, 0) if self.dice.chance(5, 6) => Some(self.compare()),
            // A carry is 0 or 1.
            (Opcode::UaddOverflowCin | Opcode::UsubOverflowBin, 2) => Some(self.compare()),
            (Opcode::Bitselect, 0) if ty.is_vector() && self.dice.chance(1, 2) => {
                let mask = self.compare_on(ty);
                let flags = MemFlagsData::new().with_endianness(Endianness::Little);
                Some(match ty.lane_type().is_float() {
                    true => self.cursor().ins().bitcast(ty, flags, mask),
                    false => mask,
                })
            }
            _ if ty.is_vector() && self.dice.chance(1, 5) => self.equal_lanes(ty),
            // Numbers with few bits, whose operations the compiler simplifies.
            (Opcode::Bor | Opcode::Band | Opcode::Iadd | Opcode::Ishl | Opcode::Icmp, _)
                if ty.is_int() && !ty.is_vector() && self.dice.chance(1, 12) =>
            {
                let mask = self.dice.one_of(&[1, 3, 4, 6, 15, 48, 127]);
                Some(self.low_bits(ty, mask))
            }
            _ => None,
        }
    }

    /// Chooses the type of an operand that the controlling type does not determine.
    fn free_type(&mut self, opcode: Opcode, ctrl: Type, contains: &dyn Fn(Type) -> bool) -> Option<Type> {
        if self.style.is_evaluated {
            let in_scope = self.scope.iter().map(|&value| self.type_of(value));
            let all = in_scope.chain(self.style.types.iter().copied());
            let all: Vec<Type> = all.filter(|&ty| contains(ty) && fits(opcode, ctrl, ty)).collect();
            return (!all.is_empty()).then(|| self.dice.one_of(&all));
        }
        Some(self.ty_in(contains))
    }

    /// Adds one instruction that does not end a block. Returns `None` if a choice is not possible.
    pub fn instruction(&mut self) -> Option<Inst> {
        let opcode = self.dice.one_of(&self.style.opcodes);
        self.instruction_of(opcode)
    }

    /// Adds an instruction with this opcode. Returns `None` if a choice is not possible.
    pub fn instruction_of(&mut self, opcode: Opcode) -> Option<Inst> {
        let set = opcode.constraints().ctrl_typeset();
        let ctrl = set.map_or(types::INVALID, |set| self.ty_in(&|ty| set.contains(ty)));
        self.instruction_on(opcode, ctrl)
    }

    /// Adds an instruction with this opcode and controlling type. Returns `None` if that is not
    /// possible.
    pub fn instruction_on(&mut self, opcode: Opcode, ctrl: Type) -> Option<Inst> {
        let constraints = opcode.constraints();
        let ctrl = match constraints.ctrl_typeset() {
            Some(set) if !set.contains(ctrl) => return None,
            Some(_) => ctrl,
            None => types::INVALID,
        };
        // Some instructions have only constant operands, which the compiler folds.
        let folds = self.style.is_evaluated && self.style.has_constants() && self.dice.chance(1, 20);
        let mut args = Vec::new();
        let count = if opcode.is_call() {
            0
        } else {
            constraints.num_fixed_value_arguments()
        };
        for index in 0..count {
            // Cranelift panics if it cannot compute a type.
            let ty = match caught(|| constraints.value_argument_constraint(index, ctrl)).ok()? {
                ResolvedConstraint::Bound(ty) => ty,
                ResolvedConstraint::Free(_) if is_address(opcode, index) && (self.tame || self.dice.chance(9, 10)) => {
                    types::I32
                }
                ResolvedConstraint::Free(set) => self.free_type(opcode, ctrl, &|ty| set.contains(ty))?,
            };
            args.push(match self.special(opcode, index, ty) {
                Some(arg) => arg,
                None if folds => self.number_of(ty)?,
                None => self.value(ty)?,
            });
        }
        for index in 0..constraints.num_fixed_results() {
            caught(|| constraints.result_type(index, ctrl)).ok()?;
        }
        let data = self.data(opcode, ctrl, &args)?;
        let inst = self.cursor().ins().build(data, ctrl).0;
        let is_refused = self.tame && refuses(&self.func, inst, self.isa);
        let is_half = |&result: &Value| matches!(self.type_of(result).lane_type(), types::F16 | types::F128);
        let has_unknown = self.style.is_evaluated
            && (self.func.dfg.inst_results(inst).iter().any(is_half) || !eval::supports(&self.func, inst));
        if is_refused || has_unknown {
            self.func.layout.remove_inst(inst);
            return None;
        }
        self.push_results(inst);
        Some(inst)
    }

    /// Puts the results of an instruction into scope.
    pub fn push_results(&mut self, inst: Inst) {
        self.scope.extend(self.func.dfg.inst_results(inst));
    }

    /// Chooses a signature with the calling convention.
    pub fn signature(&mut self, convention: CallConv) -> Signature {
        let mut signature = Signature::new(convention);
        let most = if self.dice.chance(1, 8) { 20 } else { 5 };
        let params = (0..self.dice.range(0, most)).map(|_| self.abi_param());
        signature.params = params.collect();
        if convention != CallConv::PreserveAll {
            let most = if self.dice.chance(1, 8) { 14 } else { 3 };
            let returns = (0..self.dice.range(0, most)).map(|_| AbiParam::new(self.ty()));
            signature.returns = returns.collect();
        }
        signature
    }

    fn abi_param(&mut self) -> AbiParam {
        let ty = self.ty();
        let param = AbiParam::new(ty);
        match self.dice.range(0, 15) {
            0 | 1 if ty.is_int() => param.uext(),
            2 | 3 if ty.is_int() => param.sext(),
            4 => AbiParam::special(types::I32, ArgumentPurpose::StructReturn),
            5 if !self.tame => AbiParam::special(types::I32, ArgumentPurpose::VMContext),
            6 if !self.tame => {
                let size = 4 * self.dice.range(0, 20);
                AbiParam::special(types::I32, ArgumentPurpose::StructArgument(size))
            }
            _ => param,
        }
    }

    fn name(&mut self) -> ExternalName {
        use LibCall::{CeilF32, Memcpy, Probestack};
        match self.dice.range(0, 4) {
            0 => {
                let name = UserExternalName::new(0, self.dice.range(0, 5));
                ExternalName::User(self.func.declare_imported_user_function(name))
            }
            1 => ExternalName::LibCall(self.dice.one_of(&[Memcpy, CeilF32, Probestack])),
            2 if !self.tame => ExternalName::KnownSymbol(KnownSymbol::ElfGlobalOffsetTable),
            _ => ExternalName::testcase(self.dice.one_of(&["g", "h", "__npu_udiv32"])),
        }
    }

    pub fn symbol(&mut self, tls: bool) -> GlobalValue {
        let name = self.name();
        self.func.create_global_value(GlobalValueData::Symbol {
            name,
            offset: Imm64::new(self.dice.range(-300, 300)),
            colocated: self.dice.chance(1, 2),
            tls,
        })
    }

    fn offset(&mut self, opcode: Opcode) -> Offset32 {
        Offset32::new(match self.dice.range(0, 5) {
            _ if opcode == Opcode::Bitcast => 0,
            0..=2 => 0,
            3 => self.dice.range(-8, 64),
            4 => 4 * self.dice.range(-70, 70),
            _ => self.dice.bits() as i32,
        })
    }

    /// Chooses the flags of an access. Those of a cast may only contain an endianness.
    fn flags_of(&mut self, opcode: Opcode) -> Option<MemFlags> {
        let mut flags = MemFlagsData::new();
        if self.style.is_evaluated {
            flags.set_endianness(Endianness::Little);
        } else {
            if self.dice.chance(1, 8) {
                let little = self.dice.chance(1, 2);
                flags.set_endianness(if little { Endianness::Little } else { Endianness::Big });
            }
            if opcode != Opcode::Bitcast {
                self.promises(&mut flags);
            }
        }
        self.func.dfg.mem_flags.insert(flags).ok()
    }

    /// Adds the flags of an access that do not change its value.
    fn promises(&mut self, flags: &mut MemFlagsData) {
        for (times, of, set) in [
            (1, 2, MemFlagsData::set_aligned as fn(&mut MemFlagsData)),
            (1, 4, MemFlagsData::set_readonly),
            (1, 4, MemFlagsData::set_notrap),
            (1, 6, MemFlagsData::set_can_move),
        ] {
            if self.dice.chance(times, of) {
                set(flags);
            }
        }
        if self.dice.chance(1, 6) {
            *flags = flags.with_trap_code(Some(TrapCode::unwrap_user(self.dice.range(1, 200))));
        }
        if self.dice.chance(1, 6) {
            let user_id = self.dice.one_of(&[0, 1, 2, 68, 77]);
            let region = self.region(user_id, "region");
            flags.set_alias_region(Some(region));
        }
    }

    /// Returns the alias region with a number.
    pub fn region(&mut self, user_id: u32, description: &str) -> AliasRegion {
        let description = description.to_owned().into();
        let region = AliasRegionData { user_id, description };
        self.func.dfg.alias_regions.insert(region)
    }

    pub fn trap(&mut self) -> TrapCode {
        match self.dice.range(0, 4) {
            0 => TrapCode::STACK_OVERFLOW,
            1 => TrapCode::HEAP_OUT_OF_BOUNDS,
            _ => TrapCode::unwrap_user(self.dice.range(1, 250)),
        }
    }

    /// Chooses the signature of a callee. The callee of a tail call has the same results as this
    /// function.
    fn callee_signature(&mut self, tail: bool) -> SigRef {
        let known = if self.tame { 3 } else { 5 };
        let convention = match tail || self.dice.chance(3, 4) {
            true => self.convention,
            false => self.dice.one_of(&CONVENTIONS[..known]),
        };
        let mut signature = self.signature(convention);
        if tail {
            signature.returns.clone_from(&self.func.signature.returns);
        }
        self.func.import_signature(signature)
    }

    pub fn import(&mut self, name: ExternalName, signature: SigRef) -> FuncRef {
        self.func.import_function(ExtFuncData {
            name,
            signature,
            colocated: !self.style.is_evaluated && self.dice.chance(1, 2),
            patchable: !self.tame && self.dice.chance(1, 10),
        })
    }

    /// Chooses arguments for a signature.
    pub fn arguments(&mut self, signature: SigRef) -> Option<Vec<Value>> {
        self.values(&types_of(&self.func.dfg.signatures[signature].params))
    }

    /// Builds a call; for a `try_call`, with an exception table whose targets are [`Self::targets`].
    fn call_data(&mut self, opcode: Opcode) -> Option<InstructionData> {
        use InstructionFormat::{CallIndirect, TryCall, TryCallIndirect};
        let sig_ref = self.callee_signature(opcode.is_return());
        let mut args = self.arguments(sig_ref)?;
        let is_indirect = matches!(opcode.format(), CallIndirect | TryCallIndirect);
        if is_indirect {
            args.insert(0, self.value(types::I32)?);
        }
        let args = ValueList::from_slice(&args, &mut self.func.dfg.value_lists);
        let exception = match opcode.format() {
            TryCall | TryCallIndirect => Some(self.exception_table(sig_ref)?),
            _ => None,
        };
        let name = self.name();
        let func_ref = (!is_indirect).then(|| self.import(name, sig_ref));
        macro_rules! of {
            ($format:ident, $($field:ident),*) => { InstructionData::$format { opcode, args, $($field),* } };
        }
        Some(match (func_ref, exception) {
            (Some(func_ref), None) => of!(Call, func_ref),
            (Some(func_ref), Some(exception)) => of!(TryCall, func_ref, exception),
            (None, None) => of!(CallIndirect, sig_ref),
            (None, Some(exception)) => of!(TryCallIndirect, exception),
        })
    }

    fn exception_table(&mut self, signature: SigRef) -> Option<ExceptionTable> {
        let results = types_of(&self.func.dfg.signatures[signature].returns);
        let targets = self.targets.clone();
        let (&normal, handlers) = targets.split_first()?;
        let normal = self.target(normal, &results)?;
        let mut items = Vec::new();
        for (tag, &target) in (0..).zip(handlers) {
            if self.dice.chance(1, 4) {
                items.extend(self.value(types::I32).map(ExceptionTableItem::Context));
            }
            let call = self.target(target, &[])?;
            items.push(ExceptionTableItem::Tag(ExceptionTag::with_number(tag)?, call));
        }
        let table = ExceptionTableData::new(signature, normal, items);
        Some(self.func.dfg.exception_tables.push(table))
    }

    /// Returns a jump target with arguments; results of a call may be among the arguments.
    fn target(&mut self, to: Block, results: &[Type]) -> Option<BlockCall> {
        let mut args = Vec::new();
        for param in self.func.dfg.block_params(to).to_vec() {
            let ty = self.type_of(param);
            let index = results.iter().position(|&result| result == ty);
            let value = self.value(ty);
            args.push(match index {
                Some(index) => BlockArg::TryCallRet(index as u32),
                None => BlockArg::Value(value?),
            });
        }
        Some(BlockCall::new(to, args, &mut self.func.dfg.value_lists))
    }

    /// Returns [`Self::targets`] with arguments.
    fn target_calls(&mut self) -> Option<Vec<BlockCall>> {
        let targets = self.targets.clone();
        targets.into_iter().map(|target| self.target(target, &[])).collect()
    }

    /// Returns a table of [`Self::targets`] with arguments.
    pub fn jump_table(&mut self) -> Option<JumpTable> {
        let calls = self.target_calls()?;
        let table = JumpTableData::new(*calls.first()?, &calls[1..]);
        Some(self.func.create_jump_table(table))
    }

    /// Builds an instruction in the format of an opcode. The table has an arm for each format.
    fn data(&mut self, opcode: Opcode, ctrl: Type, args: &[Value]) -> Option<InstructionData> {
        use InstructionData as D;
        use InstructionFormat as F;
        let arg = args.first().copied();
        macro_rules! value {
            ($field:ident = $value:expr) => {
                $value
            };
            (args) => {
                args.try_into().ok()?
            };
            (flags) => {
                self.flags_of(opcode)?
            };
            (offset) => {
                self.offset(opcode)
            };
            (code) => {
                self.trap()
            };
            (stack_slot) => {
                self.dice.key(&self.func.sized_stack_slots)?
            };
            (global_value) => {
                self.dice.key(&self.func.global_values)?
            };
        }
        macro_rules! of {
            ($format:ident, $($field:ident $(= $value:expr)?),*) => {
                D::$format { opcode, $($field: value!($field $(= $value)?)),* }
            };
        }
        Some(match opcode.format() {
            F::AtomicCas => of!(AtomicCas, args, flags),
            F::AtomicRmw => of!(AtomicRmw, args, flags, op = self.dice.one_of(AtomicRmwOp::all())),
            F::Binary => of!(Binary, args),
            F::BinaryImm8 => of!(BinaryImm8, arg = arg?, imm = self.lane_number(arg?)),
            F::BranchTable => of!(BranchTable, arg = arg?, table = self.jump_table()?),
            F::Brif => of!(Brif, arg = arg?, blocks = self.target_calls()?.try_into().ok()?),
            F::Call | F::CallIndirect | F::TryCall | F::TryCallIndirect => return self.call_data(opcode),
            F::CondTrap => of!(CondTrap, arg = arg?, code),
            F::DynamicStackAddr => of!(DynamicStackAddr, dynamic_stack_slot = self.dynamic_slot()?),
            F::ExceptionHandlerAddress => of!(
                ExceptionHandlerAddress,
                block = self.dice.one_of(&self.func.layout.blocks().collect::<Vec<_>>()),
                imm = Imm64::new(self.dice.range(0, 1))
            ),
            F::FloatCompare => of!(FloatCompare, args, cond = self.dice.one_of(FloatCC::all())),
            F::FuncAddr => {
                let (name, signature) = (self.name(), self.callee_signature(false));
                of!(FuncAddr, func_ref = self.import(name, signature))
            }
            F::IntAddTrap => of!(IntAddTrap, args, code),
            F::IntCompare => of!(IntCompare, args, cond = self.dice.one_of(IntCC::all())),
            F::Jump => of!(Jump, destination = *self.target_calls()?.first()?),
            F::Load => of!(Load, arg = arg?, flags, offset),
            F::LoadNoOffset => of!(LoadNoOffset, arg = arg?, flags),
            F::MultiAry => {
                let values = self.values(&types_of(&self.func.signature.returns))?;
                let args = ValueList::from_slice(&values, &mut self.func.dfg.value_lists);
                D::MultiAry { opcode, args }
            }
            F::NullAry => D::NullAry { opcode },
            F::Shuffle => {
                // Lanes of 1 to 8 bytes.
                let size = self.dice.one_of(&[1, 2, 4, 8]);
                let lanes = (0..16 / size).map(|_| self.dice.range(0, 32 / size - 1) * size);
                let mask = ConstantData::from_iter(lanes.flat_map(|first| first..first + size));
                of!(Shuffle, args, imm = self.func.dfg.immediates.push(mask))
            }
            F::StackAddr => of!(StackAddr, stack_slot, offset),
            F::Store => of!(Store, args, flags, offset),
            F::StoreNoOffset => of!(StoreNoOffset, args, flags),
            F::Ternary => of!(Ternary, args),
            F::TernaryImm8 => of!(TernaryImm8, args, imm = self.lane_number(arg?)),
            F::Trap => of!(Trap, code),
            F::Unary => of!(Unary, arg = arg?),
            F::UnaryConst => {
                let size = if ctrl.is_invalid() { 16 } else { ctrl.bytes() };
                let data = ConstantData::from_iter((0..size).map(|_| self.dice.bits() as u8));
                of!(UnaryConst, constant_handle = self.func.dfg.constants.insert(data))
            }
            F::UnaryGlobalValue => of!(UnaryGlobalValue, global_value),
            F::UnaryIeee16 => of!(UnaryIeee16, imm = Ieee16::with_bits(self.dice.bits() as u16)),
            F::UnaryIeee32 => of!(UnaryIeee32, imm = Ieee32::with_bits(self.dice.bits() as u32)),
            F::UnaryIeee64 => of!(UnaryIeee64, imm = Ieee64::with_bits(self.dice.bits())),
            F::UnaryImm => {
                let bits = self.dice.number(ctrl);
                let mask = u64::MAX >> (64 - ctrl.bits().clamp(1, 64));
                of!(UnaryImm, imm = Imm64::new((bits & mask).cast_signed()))
            }
        })
    }

    /// Returns a lane, in range for generated programs.
    fn lane_number(&mut self, vector: Value) -> u8 {
        match self.style.is_evaluated {
            true => self.dice.below(self.type_of(vector).lane_count() as usize) as u8,
            false => self.dice.range(0, 31),
        }
    }

    fn dynamic_slot(&mut self) -> Option<DynamicStackSlot> {
        if self.tame {
            return None;
        }
        let scale = self.symbol(false);
        let ty = self.func.dfg.make_dynamic_ty(DynamicTypeData::new(types::I32X4, scale));
        let data = DynamicStackSlotData::new(StackSlotKind::ExplicitDynamicSlot, ty);
        Some(self.func.create_dynamic_stack_slot(data))
    }
}
