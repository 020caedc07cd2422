//! Kernels: functions for one work-item, which ask for their work-item by imports from `npu`.
//!
//! The CLIF of a kernel has calls of the reserved names of `naplespu-spmd`. Only a dispatch can
//! execute it; an ordinary call of the function traps.

use crate::config::NPU;
use crate::error::{Result, WasmError};
use crate::parse::Import;
use crate::traps;
use crate::types::{FuncType, ValueType};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{
    ExternalName, Function, GlobalValue, GlobalValueData, Inst, InstBuilder, InstBuilderBase, InstructionData, Opcode,
    SourceLoc, Type, UserFuncName, Value, types,
};
use cranelift_module::{DataId, FuncId};
use naplespu_spmd::builtins::{self, Builtin};

/// A function that asks for its work-item.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The function, which traps if it is called.
    pub id: FuncId,
    /// The CLIF of one work-item.
    pub function: Function,
    /// The name of the first import that it calls, such as `npu.global_id_x`.
    pub operation: String,
    /// The offset of that call in the binary module, in bytes.
    pub offset: u64,
    /// The shadow stack pointer, if the kernel uses it.
    pub stack_pointer: Option<DataId>,
}

/// Uses of the work-item in a function during translation.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    /// The first import of a work-item function that the function calls, and the offset.
    pub first: Option<(String, u64)>,
    /// The thread-local object that the function uses, which is the shadow stack pointer.
    pub stack: Option<DataId>,
}

/// Returns the built-in function of an import. The module may call it with other types.
pub(crate) fn builtin(import: &Import<'_>) -> Option<Builtin> {
    let builtin = Builtin::parse(import.name).filter(|_| import.module == NPU)?;
    // The pass itself makes calls of this one.
    (builtin != Builtin::AllKnown).then_some(builtin)
}

/// Checks the type of an import of a built-in function. Truth values are words.
pub(crate) fn check_type(import: &Import<'_>, builtin: Builtin, given: &FuncType) -> Result<()> {
    let (params, result) = builtin.signature();
    let word = |ty: Type| {
        if ty == types::F32 {
            ValueType::F32
        } else {
            ValueType::I32
        }
    };
    let fits = given.params.iter().copied().eq(params.into_iter().map(word))
        && given.results.iter().copied().eq(result.into_iter().map(word));
    if fits {
        return Ok(());
    }
    Err(WasmError::IncompatibleImport {
        offset: import.offset,
        module: import.module.to_owned(),
        name: import.name.to_owned(),
        why: "a function of another type".to_owned(),
    })
}

/// Takes the CLIF of a kernel out of a function, which then only traps.
pub(crate) fn take(id: FuncId, func: &mut Function, uses: Uses) -> Option<Kernel> {
    let (operation, offset) = uses.first?;
    let mut outside = Function::with_name_signature(func.name.clone(), func.signature.clone());
    let block = outside.dfg.make_block();
    outside.layout.append_block(block);
    for param in &func.signature.params {
        outside.dfg.append_block_param(block, param.value_type);
    }
    let mut cursor = FuncCursor::new(&mut outside).at_bottom(block);
    cursor.set_srcloc(u32::try_from(offset).map_or(SourceLoc::default(), SourceLoc::new));
    cursor.ins().trap(traps::OUTSIDE_OF_DISPATCH);
    Some(Kernel {
        id,
        function: std::mem::replace(func, outside),
        operation,
        offset,
        stack_pointer: uses.stack,
    })
}

/// The alignment of frames on the shadow stack in bytes.
const FRAME_ALIGN: u32 = 16;

/// Gives each lane a frame of its own on the shadow stack, above the thread's stack pointer. Returns
/// the bytes of all frames, or `None` if the kernel does not use the stack pointer as the frame of
/// a function with a constant size does.
pub(crate) fn divide_frame(func: &mut Function, pointer: DataId, lanes: u32) -> Option<u32> {
    func.dfg.resolve_all_aliases();
    let insts: Vec<Inst> = func
        .layout
        .blocks()
        .flat_map(|block| func.layout.block_insts(block))
        .collect();
    let is_cell = |value: Value| {
        let inst = func.dfg.value_def(value).inst()?;
        match func.dfg.insts[inst] {
            InstructionData::UnaryGlobalValue { global_value, .. } => {
                names_data(func, global_value, pointer).then_some(())
            }
            _ => None,
        }
    };
    let (mut loads, mut stores) = (Vec::new(), Vec::new());
    for &inst in &insts {
        match func.dfg.insts[inst] {
            InstructionData::Load { arg, .. } if is_cell(arg).is_some() => loads.push(inst),
            InstructionData::Store { args, .. } if is_cell(args[1]).is_some() => stores.push(inst),
            _ if func.dfg.inst_values(inst).any(|value| is_cell(value).is_some()) => return None,
            _ => {}
        }
    }
    let &[load] = &loads[..] else {
        return None;
    };
    let position = |inst: Inst| insts.iter().position(|&other| other == inst);
    let is_first = func.layout.inst_block(load) == func.layout.entry_block()
        && stores.iter().all(|&store| position(load) < position(store));
    if !is_first {
        return None;
    }
    let old = func.dfg.first_result(load);
    let (mut frame, mut aligned) = (0, Vec::new());
    for &inst in &insts {
        if !func.dfg.inst_values(inst).any(|value| value == old) || stores.contains(&inst) {
            continue;
        }
        let InstructionData::Binary { opcode, args: [x, y] } = func.dfg.insts[inst] else {
            return None;
        };
        let constant = func
            .dfg
            .value_def(y)
            .inst()
            .and_then(|inst| match func.dfg.insts[inst] {
                InstructionData::UnaryImm {
                    opcode: Opcode::Iconst,
                    imm,
                } => Some(imm.bits() as i32),
                _ => None,
            })?;
        let bytes = match opcode {
            Opcode::Isub if x == old => constant,
            Opcode::Iadd if x == old => constant.checked_neg()?,
            // A test of alignment.
            Opcode::Band if x == old && (0..FRAME_ALIGN.cast_signed()).contains(&constant) => {
                aligned.push(inst);
                continue;
            }
            _ => return None,
        };
        frame = frame.max(u32::try_from(bytes).ok()?.checked_next_multiple_of(FRAME_ALIGN)?);
    }
    let all = frame.checked_mul(lanes)?;
    let mut cursor = FuncCursor::new(func).after_inst(load);
    cursor.use_srcloc(load);
    let data = cursor.func.dfg.insts[load];
    let (copy, dfg) = cursor.ins().build(data, types::I32);
    let base = dfg.first_result(copy);
    let lane = builtins::import(cursor.func, "lane_id", Builtin::LaneId);
    let lane = cursor.ins().call(lane, &[]);
    let lane = cursor.func.dfg.first_result(lane);
    let [frame, above] = [frame, all].map(|bytes| cursor.ins().iconst(types::I32, i64::from(bytes)));
    let distance = cursor.ins().imul(lane, frame);
    let top = cursor.ins().iadd(base, above);
    let own = cursor.ins().isub(top, distance);
    for inst in aligned {
        func.dfg.insts[inst] = InstructionData::UnaryImm {
            opcode: Opcode::Iconst,
            imm: 0.into(),
        };
    }
    func.dfg.clear_results(load);
    func.dfg.change_to_alias(old, own);
    for inst in stores.into_iter().chain([load]) {
        func.layout.remove_inst(inst);
    }
    func.dfg.resolve_all_aliases();
    Some(all)
}

/// Returns whether a global value is the address of a data object.
fn names_data(func: &Function, global: GlobalValue, data: DataId) -> bool {
    let GlobalValueData::Symbol {
        name: ExternalName::User(key),
        ..
    } = &func.global_values[global]
    else {
        return false;
    };
    let name = func.params.user_named_funcs().get(*key);
    name.is_some_and(|name| name.namespace == 1 && name.index == data.as_u32())
}

/// Gives a function and its callees the names of a CLIF text, which `naplespu-spmd` uses. `name_of`
/// returns the name of a function.
pub(crate) fn with_names(func: &Function, id: FuncId, name_of: impl Fn(FuncId) -> String) -> Function {
    let mut func = func.clone();
    func.name = UserFuncName::testcase(name_of(id).into_bytes());
    let callees: Vec<_> = func.dfg.ext_funcs.keys().collect();
    for callee in callees {
        if let Some(id) = callee_id(&func, &func.dfg.ext_funcs[callee].name) {
            func.dfg.ext_funcs[callee].name = ExternalName::testcase(name_of(id).into_bytes());
        }
    }
    func
}

/// Returns the functions of the module that a function calls directly.
pub(crate) fn callees(func: &Function) -> impl Iterator<Item = FuncId> + '_ {
    let insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
    let called = insts.filter_map(|inst| {
        match func.dfg.insts[inst].analyze_call(&func.dfg.value_lists, &func.dfg.exception_tables) {
            cranelift_codegen::ir::instructions::CallInfo::Direct(callee, _)
            | cranelift_codegen::ir::instructions::CallInfo::DirectWithSig(callee, ..) => Some(callee),
            _ => None,
        }
    });
    called.filter_map(|callee| callee_id(func, &func.dfg.ext_funcs[callee].name))
}

fn callee_id(func: &Function, name: &ExternalName) -> Option<FuncId> {
    let ExternalName::User(key) = name else {
        return None;
    };
    let name = func.params.user_named_funcs().get(*key)?;
    // The largest number is not one of a function.
    (name.namespace == 0 && name.index < u32::MAX).then(|| FuncId::from_u32(name.index))
}
