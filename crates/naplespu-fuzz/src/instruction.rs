//! Generates one instruction of any opcode, with operands in scope.

use super::anything::{End, append, is_call, refused, straight_opcodes};
use arbitrary::{Result, Unstructured};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::immediates::{Ieee16, Ieee32, Ieee64, Imm64, Offset32};
use cranelift_codegen::ir::instructions::{InstructionFormat, ResolvedConstraint};
use cranelift_codegen::ir::{
    AbiParam, AliasRegionData, ArgumentPurpose, AtomicRmwOp, Block, BlockArg, BlockCall, ConstantData,
    DynamicStackSlotData, DynamicTypeData, Endianness, ExceptionTableData, ExceptionTableItem, ExceptionTag,
    ExtFuncData, ExternalName, FuncRef, Function, GlobalValue, GlobalValueData, InstructionData, JumpTableData,
    LibCall, MemFlags, MemFlagsData, Opcode, SigRef, Signature, StackSlotData, StackSlotKind, TrapCode, Type,
    UserExternalName, Value, ValueList, types,
};
use cranelift_codegen::isa::CallConv;
use cranelift_naplespu::Isa;
use naplespu_reader::panics::caught;
use naplespu_reduce::constant;

/// Vector types. Those that fit a register are more frequent; the others represent each kind.
const VECTORS: &[Type] = &[
    types::I8X16,
    types::I8X16,
    types::I16X16,
    types::I16X16,
    types::I32X16,
    types::I32X16,
    types::F32X16,
    types::F32X16,
    types::I8X8,
    types::I8X32,
    types::I16X2,
    types::I16X8,
    types::I32X2,
    types::I32X4,
    types::I64X2,
    types::I64X8,
    types::I128X2,
    types::F16X8,
    types::F32X4,
    types::F64X2,
    types::F64X8,
];

/// Scalar types.
const SCALARS: &[Type] = &[
    types::I8,
    types::I16,
    types::I32,
    types::I32,
    types::I64,
    types::I128,
    types::F16,
    types::F32,
    types::F64,
    types::F128,
];

/// A function under construction, and the bytes for random choices.
pub(super) struct Generator<'a, 'u> {
    pub u: &'a mut Unstructured<'u>,
    isa: &'a Isa,
    /// Whether to avoid what the compiler refuses.
    pub tame: bool,
    pub func: Function,
    pub blocks: Vec<Block>,
    /// The block that receives instructions.
    pub current: Block,
    /// The values that dominate the current position.
    pub scope: Vec<Value>,
    convention: CallConv,
}

fn is_address(opcode: Opcode, index: usize) -> bool {
    use InstructionFormat::{AtomicCas, AtomicRmw, Load, LoadNoOffset, Store, StoreNoOffset};
    match opcode.format() {
        // `bitcast` shares its format with loads.
        _ if opcode == Opcode::Bitcast => false,
        Load | LoadNoOffset | AtomicRmw | AtomicCas => index == 0,
        Store | StoreNoOffset => index == 1,
        _ => false,
    }
}

impl<'a, 'u> Generator<'a, 'u> {
    pub fn new(u: &'a mut Unstructured<'u>, isa: &'a Isa, tame: bool, convention: CallConv) -> Self {
        Self {
            u,
            isa,
            tame,
            func: Function::new(),
            blocks: Vec::new(),
            current: Block::from_u32(0),
            scope: Vec::new(),
            convention,
        }
    }

    /// Chooses a type.
    pub fn ty(&mut self) -> Result<Type> {
        if self.u.ratio(1, 5)? {
            return self.u.choose(VECTORS).copied();
        }
        let ty = *self.u.choose(SCALARS)?;
        if self.tame || self.u.ratio(2, 3)? {
            return Ok(ty);
        }
        let lanes = 1u32 << self.u.int_in_range(1..=6)?;
        let vector = ty.by(lanes);
        Ok(match vector {
            Some(vector) if self.u.ratio(1, 8)? => vector.vector_to_dynamic().unwrap_or(vector),
            Some(vector) => vector,
            None => ty,
        })
    }

    /// Chooses a signature with the calling convention.
    pub fn signature(&mut self, convention: CallConv) -> Result<Signature> {
        let mut signature = Signature::new(convention);
        let most = if self.u.ratio(1, 8)? { 20 } else { 5 };
        for _ in 0..self.u.int_in_range(0..=most)? {
            let param = self.abi_param()?;
            signature.params.push(param);
        }
        if convention != CallConv::PreserveAll {
            let most = if self.u.ratio(1, 8)? { 14 } else { 3 };
            for _ in 0..self.u.int_in_range(0..=most)? {
                let ty = self.ty()?;
                signature.returns.push(AbiParam::new(ty));
            }
        }
        Ok(signature)
    }

    fn abi_param(&mut self) -> Result<AbiParam> {
        let ty = self.ty()?;
        let param = AbiParam::new(ty);
        Ok(match self.u.int_in_range(0..=15)? {
            0 | 1 if ty.is_int() => param.uext(),
            2 | 3 if ty.is_int() => param.sext(),
            4 => AbiParam::special(types::I32, ArgumentPurpose::StructReturn),
            5 if !self.tame => AbiParam::special(types::I32, ArgumentPurpose::VMContext),
            6 if !self.tame => {
                let size = 4 * self.u.int_in_range(0..=20)?;
                AbiParam::special(types::I32, ArgumentPurpose::StructArgument(size))
            }
            _ => param,
        })
    }

    fn name(&mut self) -> Result<ExternalName> {
        Ok(match self.u.int_in_range(0..=4)? {
            0 => {
                let name = UserExternalName::new(0, self.u.int_in_range(0..=5)?);
                ExternalName::User(self.func.declare_imported_user_function(name))
            }
            1 => ExternalName::LibCall(
                *self
                    .u
                    .choose(&[LibCall::Memcpy, LibCall::CeilF32, LibCall::Probestack])?,
            ),
            2 if !self.tame => ExternalName::KnownSymbol(cranelift_codegen::ir::KnownSymbol::ElfGlobalOffsetTable),
            _ => ExternalName::testcase(self.u.choose(&["g", "h", "__npu_udiv32"])?),
        })
    }

    pub fn symbol(&mut self, tls: bool) -> Result<GlobalValue> {
        let name = self.name()?;
        Ok(self.func.create_global_value(GlobalValueData::Symbol {
            name,
            offset: Imm64::new(self.u.int_in_range(-300..=300)?),
            colocated: self.u.arbitrary()?,
            tls,
        }))
    }

    /// Adds global values that are computed from others.
    pub fn derived_globals(&mut self) -> Result<()> {
        let all: Vec<GlobalValue> = self.func.global_values.keys().collect();
        let base = *self.u.choose(&all)?;
        let flags = MemFlagsData::trusted();
        let Ok(flags) = self.func.dfg.mem_flags.insert(flags) else {
            return Ok(());
        };
        let base = self.func.create_global_value(GlobalValueData::Load {
            base,
            offset: 8.into(),
            global_type: types::I32,
            flags,
        });
        self.func.create_global_value(GlobalValueData::IAddImm {
            base,
            offset: Imm64::new(16),
            global_type: types::I32,
        });
        self.func.create_global_value(GlobalValueData::DynScaleTargetConst {
            vector_type: types::I32X4,
        });
        Ok(())
    }

    /// Returns a value of the type: one in scope, or a constant. Returns `None` if neither exists.
    fn value(&mut self, ty: Type) -> Result<Option<Value>> {
        let fitting: Vec<Value> = {
            let of_type = self.scope.iter().filter(|&&v| self.func.dfg.value_type(v) == ty);
            of_type.copied().collect()
        };
        if !fitting.is_empty() && self.u.ratio(7, 8)? {
            return self.u.choose(&fitting).copied().map(Some);
        }
        let bits = match self.u.int_in_range(0..=3)? {
            0 => self.u.int_in_range(0..=3)?,
            1 => (1u64 << self.u.int_in_range(0..=63)?).wrapping_sub(self.u.int_in_range(0..=2)?),
            2 => self.u.int_in_range(0..=40u64)?.wrapping_neg(),
            _ => self.u.arbitrary()?,
        };
        let mut cursor = FuncCursor::new(&mut self.func).at_bottom(self.current);
        let value = constant(&mut cursor, ty, bits);
        self.scope.extend(value);
        Ok(value.or(fitting.first().copied()))
    }

    fn values(&mut self, all: &[Type]) -> Result<Option<Vec<Value>>> {
        let mut values = Vec::new();
        for &ty in all {
            match self.value(ty)? {
                Some(value) => values.push(value),
                None => return Ok(None),
            }
        }
        Ok(Some(values))
    }

    /// Adds one instruction, or nothing if a choice is not possible.
    pub fn instruction(&mut self) -> Result<()> {
        let opcodes: Vec<Opcode> = straight_opcodes().collect();
        let opcode = *self.u.choose(&opcodes)?;
        let constraints = opcode.constraints();
        let mut ctrl = types::INVALID;
        if let Some(set) = constraints.ctrl_typeset() {
            // Types of values in scope first.
            for _ in 0..6 {
                ctrl = self.ty()?;
                if set.contains(ctrl) {
                    break;
                }
            }
            if !set.contains(ctrl) {
                return Ok(());
            }
        }
        let args = if is_call(opcode) {
            Vec::new()
        } else {
            let mut all = Vec::new();
            for index in 0..constraints.num_fixed_value_arguments() {
                let resolved = caught(|| constraints.value_argument_constraint(index, ctrl));
                let ty = match resolved {
                    Ok(ResolvedConstraint::Bound(ty)) => ty,
                    Ok(ResolvedConstraint::Free(_))
                        if is_address(opcode, index) && (self.tame || self.u.ratio(9, 10)?) =>
                    {
                        types::I32
                    }
                    Ok(ResolvedConstraint::Free(set)) => {
                        let mut ty = self.ty()?;
                        for _ in 0..6 {
                            if set.contains(ty) {
                                break;
                            }
                            ty = self.ty()?;
                        }
                        ty
                    }
                    // Cranelift panics if it cannot compute a type.
                    Err(_) => return Ok(()),
                };
                all.push(ty);
            }
            match self.values(&all)? {
                Some(values) => values,
                None => return Ok(()),
            }
        };
        if (0..constraints.num_fixed_results()).any(|index| caught(|| constraints.result_type(index, ctrl)).is_err()) {
            return Ok(());
        }
        let Some(data) = self.data(opcode, ctrl, &args)? else {
            return Ok(());
        };
        let inst = append(&mut self.func, self.current, data, ctrl);
        if self.tame && refused(&self.func, inst, self.isa) {
            self.func.layout.remove_inst(inst);
            return Ok(());
        }
        self.scope.extend(self.func.dfg.inst_results(inst).to_vec());
        Ok(())
    }

    fn offset(&mut self) -> Result<i32> {
        Ok(match self.u.int_in_range(0..=5)? {
            0..=2 => 0,
            3 => self.u.int_in_range(-8..=64)?,
            4 => 4 * self.u.int_in_range(-70..=70)?,
            _ => self.u.arbitrary()?,
        })
    }

    fn flags(&mut self) -> Result<Option<MemFlags>> {
        let mut flags = MemFlagsData::new();
        if self.u.arbitrary()? {
            flags.set_aligned();
        }
        if self.u.ratio(1, 4)? {
            flags.set_readonly();
        }
        if self.u.ratio(1, 4)? {
            flags.set_notrap();
        }
        if self.u.ratio(1, 6)? {
            flags.set_can_move();
        }
        if self.u.ratio(1, 6)? {
            flags = flags.with_trap_code(Some(TrapCode::unwrap_user(self.u.int_in_range(1..=200)?)));
        }
        if self.u.ratio(1, 10)? {
            let little = self.u.arbitrary()?;
            flags.set_endianness(if little { Endianness::Little } else { Endianness::Big });
        }
        if self.u.ratio(1, 6)? {
            let region = AliasRegionData {
                user_id: *self.u.choose(&[0, 1, 2, 68, 77])?,
                description: "region".into(),
            };
            flags.set_alias_region(Some(self.func.dfg.alias_regions.insert(region)));
        }
        Ok(self.func.dfg.mem_flags.insert(flags).ok())
    }

    fn trap(&mut self) -> Result<TrapCode> {
        Ok(match self.u.int_in_range(0..=4)? {
            0 => TrapCode::STACK_OVERFLOW,
            1 => TrapCode::HEAP_OUT_OF_BOUNDS,
            _ => TrapCode::unwrap_user(self.u.int_in_range(1..=250)?),
        })
    }

    fn callee_convention(&mut self) -> Result<CallConv> {
        if self.u.ratio(3, 4)? {
            return Ok(self.convention);
        }
        let all = [
            CallConv::Fast,
            CallConv::SystemV,
            CallConv::Tail,
            CallConv::PreserveAll,
            CallConv::Winch,
        ];
        let known = if self.tame { 3 } else { all.len() };
        self.u.choose(&all[..known]).copied()
    }

    /// Chooses the signature of a callee. The callee of a tail call has the same results as this
    /// function.
    fn callee_signature(&mut self, tail: bool) -> Result<SigRef> {
        let convention = if tail {
            self.convention
        } else {
            self.callee_convention()?
        };
        let mut signature = self.signature(convention)?;
        if tail {
            signature.returns = self.func.signature.returns.clone();
        }
        Ok(self.func.import_signature(signature))
    }

    fn import(&mut self, signature: SigRef) -> Result<FuncRef> {
        let name = self.name()?;
        Ok(self.func.import_function(ExtFuncData {
            name,
            signature,
            colocated: self.u.arbitrary()?,
            patchable: !self.tame && self.u.ratio(1, 10)?,
        }))
    }

    /// Chooses arguments for a signature.
    fn arguments(&mut self, signature: SigRef) -> Result<Option<Vec<Value>>> {
        let params = self.func.dfg.signatures[signature].params.iter();
        let params: Vec<Type> = params.map(|p| p.value_type).collect();
        self.values(&params)
    }

    fn list(&mut self, values: &[Value]) -> ValueList {
        ValueList::from_slice(values, &mut self.func.dfg.value_lists)
    }

    fn call(&mut self, opcode: Opcode, tail: bool) -> Result<Option<InstructionData>> {
        let signature = self.callee_signature(tail)?;
        let Some(mut args) = self.arguments(signature)? else {
            return Ok(None);
        };
        Ok(Some(if opcode.format() == InstructionFormat::Call {
            let func_ref = self.import(signature)?;
            let args = self.list(&args);
            InstructionData::Call { opcode, args, func_ref }
        } else {
            let Some(callee) = self.value(types::I32)? else {
                return Ok(None);
            };
            args.insert(0, callee);
            let args = self.list(&args);
            InstructionData::CallIndirect {
                opcode,
                args,
                sig_ref: signature,
            }
        }))
    }

    /// Builds an instruction in the format of an opcode. The table has an arm for each format.
    fn data(&mut self, opcode: Opcode, ctrl: Type, args: &[Value]) -> Result<Option<InstructionData>> {
        use InstructionData as D;
        use InstructionFormat as F;
        let (one, two, three) = (
            args.first().copied(),
            <[Value; 2]>::try_from(args).ok(),
            <[Value; 3]>::try_from(args).ok(),
        );
        macro_rules! some {
            ($value:expr) => {
                match $value {
                    Some(value) => value,
                    None => return Ok(None),
                }
            };
        }
        Ok(Some(match opcode.format() {
            F::AtomicCas => D::AtomicCas {
                opcode,
                args: some!(three),
                flags: some!(self.flags()?),
            },
            F::AtomicRmw => D::AtomicRmw {
                opcode,
                args: some!(two),
                flags: some!(self.flags()?),
                op: *self.u.choose(AtomicRmwOp::all())?,
            },
            F::Binary => D::Binary {
                opcode,
                args: some!(two),
            },
            F::BinaryImm8 => D::BinaryImm8 {
                opcode,
                arg: some!(one),
                imm: self.u.int_in_range(0..=31)?,
            },
            F::Call | F::CallIndirect => return self.call(opcode, false),
            F::CondTrap => D::CondTrap {
                opcode,
                arg: some!(one),
                code: self.trap()?,
            },
            F::DynamicStackAddr => D::DynamicStackAddr {
                opcode,
                dynamic_stack_slot: some!(self.dynamic_slot()?),
            },
            F::ExceptionHandlerAddress => D::ExceptionHandlerAddress {
                opcode,
                block: *self.u.choose(&self.blocks)?,
                imm: Imm64::new(self.u.int_in_range(0..=1)?),
            },
            F::FloatCompare => D::FloatCompare {
                opcode,
                args: some!(two),
                cond: *self.u.choose(FloatCC::all())?,
            },
            F::FuncAddr => {
                let signature = self.callee_signature(false)?;
                let func_ref = self.import(signature)?;
                D::FuncAddr { opcode, func_ref }
            }
            F::IntAddTrap => D::IntAddTrap {
                opcode,
                args: some!(two),
                code: self.trap()?,
            },
            F::IntCompare => D::IntCompare {
                opcode,
                args: some!(two),
                cond: *self.u.choose(IntCC::all())?,
            },
            F::Load => D::Load {
                opcode,
                arg: some!(one),
                flags: some!(if opcode == Opcode::Bitcast {
                    self.cast_flags()?
                } else {
                    self.flags()?
                }),
                offset: Offset32::new(if opcode == Opcode::Bitcast { 0 } else { self.offset()? }),
            },
            F::LoadNoOffset => D::LoadNoOffset {
                opcode,
                arg: some!(one),
                flags: some!(if opcode == Opcode::Bitcast {
                    self.cast_flags()?
                } else {
                    self.flags()?
                }),
            },
            F::MultiAry => D::MultiAry {
                opcode,
                args: self.list(args),
            },
            F::NullAry => D::NullAry { opcode },
            F::Shuffle => {
                let mut mask = [0u8; 16];
                for lane in &mut mask {
                    *lane = self.u.int_in_range(0..=31)?;
                }
                D::Shuffle {
                    opcode,
                    args: some!(two),
                    imm: self.func.dfg.immediates.push(ConstantData::from(&mask[..])),
                }
            }
            F::StackAddr => {
                let slots: Vec<_> = self.func.sized_stack_slots.keys().collect();
                if slots.is_empty() {
                    return Ok(None);
                }
                D::StackAddr {
                    opcode,
                    stack_slot: *self.u.choose(&slots)?,
                    offset: Offset32::new(self.offset()?),
                }
            }
            F::Store => D::Store {
                opcode,
                args: some!(two),
                flags: some!(self.flags()?),
                offset: Offset32::new(self.offset()?),
            },
            F::StoreNoOffset => D::StoreNoOffset {
                opcode,
                args: some!(two),
                flags: some!(self.flags()?),
            },
            F::Ternary => D::Ternary {
                opcode,
                args: some!(three),
            },
            F::TernaryImm8 => D::TernaryImm8 {
                opcode,
                args: some!(two),
                imm: self.u.int_in_range(0..=31)?,
            },
            F::Unary => D::Unary {
                opcode,
                arg: some!(one),
            },
            F::UnaryConst => {
                let size = if ctrl.is_invalid() { 16 } else { ctrl.bytes() as usize };
                let mut bytes = vec![0u8; size];
                self.u.fill_buffer(&mut bytes)?;
                D::UnaryConst {
                    opcode,
                    constant_handle: self.func.dfg.constants.insert(ConstantData::from(&bytes[..])),
                }
            }
            F::UnaryGlobalValue => {
                let all: Vec<GlobalValue> = self.func.global_values.keys().collect();
                D::UnaryGlobalValue {
                    opcode,
                    global_value: *self.u.choose(&all)?,
                }
            }
            F::UnaryIeee16 => D::UnaryIeee16 {
                opcode,
                imm: Ieee16::with_bits(self.u.arbitrary()?),
            },
            F::UnaryIeee32 => D::UnaryIeee32 {
                opcode,
                imm: Ieee32::with_bits(self.u.arbitrary()?),
            },
            F::UnaryIeee64 => D::UnaryIeee64 {
                opcode,
                imm: Ieee64::with_bits(self.u.arbitrary()?),
            },
            F::UnaryImm => {
                let bits: u64 = self.u.arbitrary()?;
                let mask = if ctrl.is_int() {
                    u64::MAX >> (64 - ctrl.bits().min(64))
                } else {
                    u64::MAX
                };
                D::UnaryImm {
                    opcode,
                    imm: Imm64::new((bits & mask).cast_signed()),
                }
            }
            // `terminator` makes the ends of blocks.
            F::BranchTable | F::Brif | F::Jump | F::Trap | F::TryCall | F::TryCallIndirect => return Ok(None),
        }))
    }

    /// Chooses the flags of a cast, which may only contain an endianness.
    fn cast_flags(&mut self) -> Result<Option<MemFlags>> {
        let mut flags = MemFlagsData::new();
        if self.u.ratio(1, 4)? {
            let little = self.u.arbitrary()?;
            flags.set_endianness(if little { Endianness::Little } else { Endianness::Big });
        }
        Ok(self.func.dfg.mem_flags.insert(flags).ok())
    }

    fn dynamic_slot(&mut self) -> Result<Option<cranelift_codegen::ir::DynamicStackSlot>> {
        if self.tame {
            return Ok(None);
        }
        let scale = self.symbol(false)?;
        let ty = self.func.dfg.make_dynamic_ty(DynamicTypeData::new(types::I32X4, scale));
        let data = DynamicStackSlotData::new(StackSlotKind::ExplicitDynamicSlot, ty);
        let _ = StackSlotData::new(StackSlotKind::ExplicitSlot, 4, 2);
        Ok(Some(self.func.create_dynamic_stack_slot(data)))
    }

    /// Returns a jump target with arguments for its parameters.
    fn branch(&mut self, to: Block) -> Result<Option<BlockCall>> {
        self.branch_with(to, &[])
    }

    /// Returns a jump target with arguments; results of a call may be among the arguments.
    fn branch_with(&mut self, to: Block, results: &[Type]) -> Result<Option<BlockCall>> {
        let params: Vec<Type> = {
            let params = self.func.dfg.block_params(to).iter();
            params.map(|&v| self.func.dfg.value_type(v)).collect()
        };
        let mut args = Vec::new();
        for ty in params {
            let index = results.iter().position(|&result| result == ty);
            args.push(match (index, self.value(ty)?) {
                (Some(index), _) => BlockArg::TryCallRet(index as u32),
                (None, Some(value)) => BlockArg::Value(value),
                (None, None) => return Ok(None),
            });
        }
        Ok(Some(BlockCall::new(to, args, &mut self.func.dfg.value_lists)))
    }

    /// Ends the current block, with a trap if the requested terminator is not possible.
    pub fn terminator(&mut self, end: End, targets: &[Block]) -> Result<()> {
        let data = match self.end(end, targets)? {
            Some(data) => data,
            None => InstructionData::Trap {
                opcode: Opcode::Trap,
                code: self.trap()?,
            },
        };
        let ctrl = match data {
            InstructionData::Brif { arg, .. } | InstructionData::BranchTable { arg, .. } => {
                self.func.dfg.value_type(arg)
            }
            InstructionData::CallIndirect { .. } | InstructionData::TryCallIndirect { .. } => types::I32,
            _ => types::INVALID,
        };
        append(&mut self.func, self.current, data, ctrl);
        Ok(())
    }

    fn end(&mut self, end: End, targets: &[Block]) -> Result<Option<InstructionData>> {
        use InstructionData as D;
        macro_rules! some {
            ($value:expr) => {
                match $value {
                    Some(value) => value,
                    None => return Ok(None),
                }
            };
        }
        Ok(match end {
            End::Return => {
                let returns: Vec<Type> = self.func.signature.returns.iter().map(|r| r.value_type).collect();
                let values = some!(self.values(&returns)?);
                let args = self.list(&values);
                Some(D::MultiAry {
                    opcode: Opcode::Return,
                    args,
                })
            }
            End::Trap => None,
            End::TailCall => self.call(Opcode::ReturnCall, true)?,
            End::TailCallIndirect => self.call(Opcode::ReturnCallIndirect, true)?,
            End::Jump => Some(D::Jump {
                opcode: Opcode::Jump,
                destination: some!(self.branch(targets[0])?),
            }),
            End::Brif => {
                let integers = [types::I8, types::I8, types::I16, types::I32, types::I64, types::I128];
                let ty = *self.u.choose(&integers)?;
                Some(D::Brif {
                    opcode: Opcode::Brif,
                    arg: some!(self.value(ty)?),
                    blocks: [some!(self.branch(targets[0])?), some!(self.branch(targets[1])?)],
                })
            }
            End::Table => {
                let arg = some!(self.value(types::I32)?);
                let mut calls = Vec::new();
                for &target in targets {
                    calls.push(some!(self.branch(target)?));
                }
                let table = self.func.create_jump_table(JumpTableData::new(calls[0], &calls[1..]));
                Some(D::BranchTable {
                    opcode: Opcode::BrTable,
                    arg,
                    table,
                })
            }
            End::Try | End::TryIndirect => {
                let signature = self.callee_signature(false)?;
                let mut args = some!(self.arguments(signature)?);
                let results = self.func.dfg.signatures[signature].returns.iter();
                let results: Vec<Type> = results.map(|r| r.value_type).collect();
                let normal = some!(self.branch_with(targets[0], &results)?);
                let mut items = Vec::new();
                for (tag, &target) in targets[1..].iter().enumerate() {
                    if self.u.ratio(1, 4)? {
                        items.extend(self.value(types::I32)?.map(ExceptionTableItem::Context));
                    }
                    let call = some!(self.branch(target)?);
                    items.push(ExceptionTableItem::Tag(
                        some!(ExceptionTag::with_number(tag as u32)),
                        call,
                    ));
                }
                let exception = ExceptionTableData::new(signature, normal, items);
                let exception = self.func.dfg.exception_tables.push(exception);
                Some(if end == End::Try {
                    let func_ref = self.import(signature)?;
                    let args = self.list(&args);
                    D::TryCall {
                        opcode: Opcode::TryCall,
                        args,
                        func_ref,
                        exception,
                    }
                } else {
                    args.insert(0, some!(self.value(types::I32)?));
                    let args = self.list(&args);
                    D::TryCallIndirect {
                        opcode: Opcode::TryCallIndirect,
                        args,
                        exception,
                    }
                })
            }
        })
    }
}
