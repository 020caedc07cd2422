//! Minimal functions around one CLIF instruction, for any opcode and controlling type.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::immediates::{Ieee16, Ieee32, Ieee64, Imm64};
use cranelift_codegen::ir::instructions::{InstructionFormat, ResolvedConstraint};
use cranelift_codegen::ir::{
    AbiParam, AtomicRmwOp, Block, BlockCall, ConstantData, DynamicStackSlotData, DynamicTypeData, ExceptionTableData,
    ExtFuncData, ExternalName, Function, GlobalValueData, Inst, InstBuilder, InstBuilderBase, InstructionData,
    JumpTableData, MemFlagsData, Opcode, Signature, StackSlotData, StackSlotKind, TrapCode, Type, UserFuncName, Value,
    ValueList, types,
};
use cranelift_codegen::isa::CallConv;
use cranelift_codegen::settings;
use cranelift_naplespu::verify_function;
use naplespu_reader::panics::caught;

/// A function around one instruction.
pub struct Form {
    pub func: Function,
    pub inst: Inst,
}

/// The memory flags with their own row in the table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Without the flag `aligned`, or not a load or store of CLIF that may be misaligned.
    Plain,
    /// With the flag `aligned`.
    Aligned,
}

impl Access {
    pub fn of(opcode: Opcode) -> &'static [Self] {
        match opcode.format() {
            InstructionFormat::Load | InstructionFormat::Store => &[Self::Aligned, Self::Plain],
            _ => &[Self::Plain],
        }
    }

    pub fn note(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Aligned => " aligned",
        }
    }
}

/// The types with a column in the table.
pub fn columns() -> Vec<Type> {
    use types::*;
    let scalars = [I8, I16, I32, I64, I128, F16, F32, F64, F128];
    let lanes = [I8, I16, I32, I64, F16, F32, F64];
    scalars
        .into_iter()
        .chain(lanes.into_iter().filter_map(|lane| lane.by(16)))
        .collect()
}

/// All vectors without a column.
pub fn other_vectors() -> Vec<Type> {
    use types::*;
    let mut all = Vec::new();
    for lane in [I8, I16, I32, I64, I128, F16, F32, F64, F128] {
        for lanes in [2, 4, 8, 32] {
            let Some(ty) = lane.by(lanes) else { continue };
            all.push(ty);
            all.extend(ty.vector_to_dynamic());
        }
    }
    all
}

/// Returns the forms of the instruction that the verifier accepts: one for each type of a freely
/// typed operand.
pub fn forms(opcode: Opcode, ctrl: Type, access: Access) -> Vec<Form> {
    let constraints = opcode.constraints();
    if constraints.ctrl_typeset().is_some_and(|set| !set.contains(ctrl)) {
        return Vec::new();
    }
    let mut free = columns();
    if ctrl.is_vector() {
        free.extend(other_vectors());
    }
    let has_free = operand_types(opcode, ctrl, None).is_none();
    let choices: Vec<Option<Type>> = if has_free {
        free.into_iter().map(Some).collect()
    } else {
        vec![None]
    };
    let conventions = [CallConv::Fast, CallConv::Tail];
    for convention in conventions {
        let found: Vec<Form> = choices
            .iter()
            .filter_map(|&free| {
                let operands = operand_types(opcode, ctrl, free)?;
                // Cranelift panics if it cannot compute the type of a result.
                caught(|| build(opcode, ctrl, operands, access, convention)).ok()?
            })
            .filter(accepted)
            .collect();
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

/// Returns the types of the fixed operands, with type `free` for free ones. Addresses have the
/// width of this target.
fn operand_types(opcode: Opcode, ctrl: Type, free: Option<Type>) -> Option<Vec<Type>> {
    let constraints = opcode.constraints();
    (0..constraints.num_fixed_value_arguments())
        .map(|index| match constraints.value_argument_constraint(index, ctrl) {
            ResolvedConstraint::Bound(ty) => Some(ty),
            ResolvedConstraint::Free(_) if is_address(opcode, index) => Some(types::I32),
            ResolvedConstraint::Free(set) => free.filter(|&ty| set.contains(ty)),
        })
        .collect()
}

fn is_address(opcode: Opcode, index: usize) -> bool {
    use InstructionFormat::*;
    match opcode.format() {
        // `bitcast` shares its format with loads.
        _ if opcode == Opcode::Bitcast => false,
        Load | LoadNoOffset | AtomicRmw | AtomicCas => index == 0,
        Store | StoreNoOffset => index == 1,
        _ => false,
    }
}

fn accepted(form: &Form) -> bool {
    // Without a Cranelift target the verifier rejects every function with these instructions, so
    // this check skips them.
    let opcode = form.func.dfg.insts[form.inst].opcode();
    if matches!(opcode, Opcode::GetPinnedReg | Opcode::SetPinnedReg) {
        return true;
    }
    let flags = settings::Flags::new(settings::builder());
    verify_function(&form.func, &flags).is_ok()
}

fn build(opcode: Opcode, ctrl: Type, operands: Vec<Type>, access: Access, convention: CallConv) -> Option<Form> {
    let mut func = Function::with_name_signature(UserFuncName::testcase("f"), Signature::new(convention));
    let entry = func.dfg.make_block();
    let mut args = Vec::new();
    for ty in operands {
        args.push(func.dfg.append_block_param(entry, ty));
        func.signature.params.push(AbiParam::new(ty));
    }
    let exits: Vec<Block> = (0..3).map(|_| func.dfg.make_block()).collect();
    let data = data(&mut func, opcode, ctrl, &args, access, convention, entry, &exits)?;
    let ends_in_try = opcode == Opcode::GetExceptionHandlerAddress;
    let start = ends_in_try.then(|| func.dfg.make_block());
    let mut cursor = FuncCursor::new(&mut func);
    if let Some(start) = start {
        // An instruction may not refer to the entry block.
        cursor.insert_block(start);
        cursor.ins().jump(entry, &[]);
    }
    cursor.insert_block(entry);
    let (inst, _) = cursor.ins().build(data, ctrl);
    if ends_in_try {
        let data = try_call(cursor.func, &exits, convention);
        cursor.ins().build(data, types::INVALID);
    } else if !opcode.is_terminator() {
        let results = cursor.func.dfg.inst_results(inst).to_vec();
        for &result in &results {
            let ty = cursor.func.dfg.value_type(result);
            cursor.func.signature.returns.push(AbiParam::new(ty));
        }
        cursor.ins().return_(&results);
    }
    if opcode.is_branch() || ends_in_try {
        for exit in exits {
            cursor.insert_block(exit);
            cursor.ins().return_(&[]);
        }
    }
    Some(Form { func, inst })
}

/// Declares a function to call, without arguments and results.
fn callee(func: &mut Function, convention: CallConv) -> cranelift_codegen::ir::FuncRef {
    let signature = func.import_signature(Signature::new(convention));
    func.import_function(ExtFuncData {
        name: ExternalName::testcase("g"),
        signature,
        colocated: true,
        patchable: false,
    })
}

fn exceptions(func: &mut Function, exits: &[Block], convention: CallConv) -> cranelift_codegen::ir::ExceptionTable {
    let signature = func.import_signature(Signature::new(convention));
    let normal = BlockCall::new(exits[0], [], &mut func.dfg.value_lists);
    let handler = BlockCall::new(exits[1], [], &mut func.dfg.value_lists);
    let item = cranelift_codegen::ir::ExceptionTableItem::Default(handler);
    func.dfg
        .exception_tables
        .push(ExceptionTableData::new(signature, normal, [item]))
}

fn try_call(func: &mut Function, exits: &[Block], convention: CallConv) -> InstructionData {
    let exception = exceptions(func, exits, convention);
    let func_ref = callee(func, convention);
    InstructionData::TryCall {
        opcode: Opcode::TryCall,
        args: ValueList::new(),
        func_ref,
        exception,
    }
}

/// Returns an instruction in the format of an opcode. The table has an arm for each format.
#[expect(clippy::too_many_arguments, reason = "everything an instruction may refer to")]
fn data(
    func: &mut Function,
    opcode: Opcode,
    ctrl: Type,
    args: &[Value],
    access: Access,
    convention: CallConv,
    entry: Block,
    exits: &[Block],
) -> Option<InstructionData> {
    use InstructionData as D;
    use InstructionFormat as F;
    let code = TrapCode::unwrap_user(1);
    let arg = |index: usize| args.get(index).copied();
    let two = || Some([arg(0)?, arg(1)?]);
    let three = || Some([arg(0)?, arg(1)?, arg(2)?]);
    let mut memory = MemFlagsData::new();
    if access == Access::Aligned {
        memory.set_aligned();
    }
    let flags = func.dfg.mem_flags.insert(memory).ok()?;
    let offset = 0.into();
    let to = |func: &mut Function, index: usize| BlockCall::new(exits[index], [], &mut func.dfg.value_lists);
    let list = |func: &mut Function| ValueList::from_slice(args, &mut func.dfg.value_lists);
    Some(match opcode.format() {
        F::AtomicCas => D::AtomicCas {
            opcode,
            args: three()?,
            flags,
        },
        F::AtomicRmw => D::AtomicRmw {
            opcode,
            args: two()?,
            flags,
            op: AtomicRmwOp::Add,
        },
        F::Binary => D::Binary { opcode, args: two()? },
        F::BinaryImm8 => D::BinaryImm8 {
            opcode,
            arg: arg(0)?,
            imm: 0,
        },
        F::BranchTable => {
            let [default, first, second] = [0, 1, 2].map(|index| to(func, index));
            let table = func.create_jump_table(JumpTableData::new(default, &[first, second]));
            D::BranchTable {
                opcode,
                arg: arg(0)?,
                table,
            }
        }
        F::Brif => D::Brif {
            opcode,
            arg: arg(0)?,
            blocks: [to(func, 0), to(func, 1)],
        },
        F::Call => D::Call {
            opcode,
            args: ValueList::new(),
            func_ref: callee(func, convention),
        },
        F::CallIndirect => {
            let sig_ref = func.import_signature(Signature::new(convention));
            D::CallIndirect {
                opcode,
                args: list(func),
                sig_ref,
            }
        }
        F::CondTrap => D::CondTrap {
            opcode,
            arg: arg(0)?,
            code,
        },
        F::DynamicStackAddr => {
            let scale = symbol(func, false);
            let ty = func.dfg.make_dynamic_ty(DynamicTypeData::new(types::I32X4, scale));
            let data = DynamicStackSlotData::new(StackSlotKind::ExplicitDynamicSlot, ty);
            D::DynamicStackAddr {
                opcode,
                dynamic_stack_slot: func.create_dynamic_stack_slot(data),
            }
        }
        F::ExceptionHandlerAddress => D::ExceptionHandlerAddress {
            opcode,
            block: entry,
            imm: Imm64::new(0),
        },
        F::FloatCompare => D::FloatCompare {
            opcode,
            args: two()?,
            cond: FloatCC::LessThan,
        },
        F::FuncAddr => D::FuncAddr {
            opcode,
            func_ref: callee(func, convention),
        },
        F::IntAddTrap => D::IntAddTrap {
            opcode,
            args: two()?,
            code,
        },
        F::IntCompare => D::IntCompare {
            opcode,
            args: two()?,
            cond: IntCC::SignedLessThan,
        },
        F::Jump => D::Jump {
            opcode,
            destination: to(func, 0),
        },
        F::Load => D::Load {
            opcode,
            arg: arg(0)?,
            flags,
            offset,
        },
        F::LoadNoOffset => D::LoadNoOffset {
            opcode,
            arg: arg(0)?,
            flags,
        },
        F::MultiAry => D::MultiAry {
            opcode,
            args: list(func),
        },
        F::NullAry => D::NullAry { opcode },
        F::Shuffle => {
            let imm = func.dfg.immediates.push(ConstantData::from(&[0u8; 16][..]));
            D::Shuffle {
                opcode,
                args: two()?,
                imm,
            }
        }
        F::StackAddr => {
            let data = StackSlotData::new(StackSlotKind::ExplicitSlot, 16, 2);
            D::StackAddr {
                opcode,
                stack_slot: func.create_sized_stack_slot(data),
                offset,
            }
        }
        F::Store => D::Store {
            opcode,
            args: two()?,
            flags,
            offset,
        },
        F::StoreNoOffset => D::StoreNoOffset {
            opcode,
            args: two()?,
            flags,
        },
        F::Ternary => D::Ternary { opcode, args: three()? },
        F::TernaryImm8 => D::TernaryImm8 {
            opcode,
            args: two()?,
            imm: 0,
        },
        F::Trap => D::Trap { opcode, code },
        F::TryCall => try_call(func, exits, convention),
        F::TryCallIndirect => {
            let exception = exceptions(func, exits, convention);
            D::TryCallIndirect {
                opcode,
                args: list(func),
                exception,
            }
        }
        F::Unary => D::Unary { opcode, arg: arg(0)? },
        F::UnaryConst => {
            let size = if ctrl.is_invalid() {
                16
            } else {
                usize::try_from(ctrl.bytes()).ok()?
            };
            let constant_handle = func.dfg.constants.insert(ConstantData::from(&vec![1u8; size][..]));
            D::UnaryConst {
                opcode,
                constant_handle,
            }
        }
        F::UnaryGlobalValue => {
            let global_value = symbol(func, opcode == Opcode::TlsValue);
            D::UnaryGlobalValue { opcode, global_value }
        }
        F::UnaryIeee16 => D::UnaryIeee16 {
            opcode,
            imm: Ieee16::with_bits(0x3c00),
        },
        F::UnaryIeee32 => D::UnaryIeee32 {
            opcode,
            imm: Ieee32::with_float(1.0),
        },
        F::UnaryIeee64 => D::UnaryIeee64 {
            opcode,
            imm: Ieee64::with_float(1.0),
        },
        F::UnaryImm => D::UnaryImm {
            opcode,
            imm: Imm64::new(1),
        },
    })
}

fn symbol(func: &mut Function, tls: bool) -> cranelift_codegen::ir::GlobalValue {
    let name = ExternalName::testcase("data");
    func.create_global_value(GlobalValueData::Symbol {
        name,
        offset: Imm64::new(0),
        colocated: true,
        tls,
    })
}
