//! What this target refuses, said before anything else happens, for the whole function at once.

use crate::abi::sig::SigInfo;
use crate::error::{CompileError, Refusal};
use crate::intrinsics::{self, Reserved};
use cranelift_codegen::ir::{AliasRegion, Function, GlobalValueData, Inst, InstructionData, Opcode, Type, types};
use npu_mc::machine::{SCRATCHPAD_SPACE, SCRATCHPAD_SPACE_DOC};

/// What to use instead of a type that is not covered.
pub const TYPE_HELP: &str = "integers of 8 to 128 bits and floats of 16 to 128 bits are";

/// Whether values of the type are compiled.
pub fn is_covered(ty: Type) -> bool {
    ty.is_int() || ty.is_float()
}

/// Whether the alias region stands for scratchpad memory.
pub fn is_scratchpad(func: &Function, region: AliasRegion) -> bool {
    let id = func.dfg.alias_regions[region].user_id;
    id == SCRATCHPAD_SPACE || id == SCRATCHPAD_SPACE_DOC
}

/// Checks the whole function.
///
/// # Errors
///
/// [`CompileError::Unsupported`] with every construct that is refused.
pub fn run(func: &Function) -> Result<(), CompileError> {
    let name = func.name.to_string();
    let mut refusals = match SigInfo::new(&func.signature, &name) {
        Ok(_) => Vec::new(),
        Err(refusals) => refusals,
    };
    if let Some(slot) = func.dynamic_stack_slots.keys().next() {
        refusals.push(Refusal {
            function: name.clone(),
            inst: None,
            srcloc: None,
            what: format!("a dynamic stack slot ({slot})"),
            help: Some("use a stack slot of fixed size".to_owned()),
        });
    }
    if func.stack_limit.is_some() {
        refusals.push(Refusal {
            function: name.clone(),
            inst: None,
            srcloc: None,
            what: "a stack limit".to_owned(),
            help: None,
        });
    }
    for block in func.layout.blocks() {
        for inst in func.layout.block_insts(block) {
            if let Some((what, help)) = refuse_inst(func, inst) {
                refusals.push(Refusal {
                    function: name.clone(),
                    inst: Some((inst, func.dfg.display_inst(inst).to_string())),
                    srcloc: Some(func.srcloc(inst)).filter(|loc| !loc.is_default()),
                    what,
                    help: help.map(str::to_owned),
                });
            }
        }
    }
    if refusals.is_empty() {
        Ok(())
    } else {
        Err(CompileError::Unsupported(refusals))
    }
}

type Reason = (String, Option<&'static str>);

fn refuse_inst(func: &Function, inst: Inst) -> Option<Reason> {
    let data = &func.dfg.insts[inst];
    let opcode = data.opcode();
    let covered = func
        .dfg
        .inst_values(inst)
        .chain(func.dfg.inst_results(inst).iter().copied())
        .map(|value| func.dfg.value_type(value))
        .find(|&ty| !is_covered(ty));
    if let Some(ty) = covered {
        return Some((format!("{opcode} with a value of type {ty}"), Some(TYPE_HELP)));
    }
    refuse_opcode(opcode)
        .map(|help| (opcode.to_string(), help))
        .or_else(|| refuse_memory(func, data))
        .or_else(|| refuse_callee(func, data))
        .or_else(|| refuse_global(func, data))
        .or_else(|| refuse_float(func, inst))
}

/// Arithmetic in formats that are only stored and moved.
fn refuse_float(func: &Function, inst: Inst) -> Option<Reason> {
    let opcode = func.dfg.insts[inst].opcode();
    let has = |ty| {
        let mut values = func
            .dfg
            .inst_values(inst)
            .chain(func.dfg.inst_results(inst).iter().copied());
        values.any(|value| func.dfg.value_type(value) == ty)
    };
    let arithmetic = matches!(
        opcode,
        Opcode::Fadd
            | Opcode::Fsub
            | Opcode::Fmul
            | Opcode::Fdiv
            | Opcode::Fmin
            | Opcode::Fmax
            | Opcode::Sqrt
            | Opcode::Ceil
            | Opcode::Floor
            | Opcode::Trunc
            | Opcode::Nearest
            | Opcode::Fma
            | Opcode::Fcmp
            | Opcode::Fpromote
            | Opcode::Fdemote
            | Opcode::FcvtToSint
            | Opcode::FcvtToUint
            | Opcode::FcvtToSintSat
            | Opcode::FcvtToUintSat
            | Opcode::FcvtFromSint
            | Opcode::FcvtFromUint
    );
    if arithmetic && has(types::F128) {
        return Some((format!("{opcode} with a value of type f128"), Some("compute in f64")));
    }
    if opcode == Opcode::Fma && has(types::F16) {
        return Some((
            format!("{opcode} with a value of type f16"),
            Some("compute in f64 and round with fdemote"),
        ));
    }
    None
}

/// Opcodes that are refused whatever the type, with what to use instead.
fn refuse_opcode(opcode: Opcode) -> Option<Option<&'static str>> {
    Some(match opcode {
        Opcode::TryCall | Opcode::TryCallIndirect | Opcode::GetExceptionHandlerAddress => {
            Some("return an error code: there are no exceptions")
        }
        Opcode::AtomicLoad | Opcode::AtomicStore | Opcode::AtomicRmw | Opcode::AtomicCas => {
            Some("the hardware has no atomic access; a load or store of an aligned word is not torn")
        }
        Opcode::TlsValue => Some("index an array by the number of the thread"),
        Opcode::GetPinnedReg | Opcode::SetPinnedReg => Some("pass the value as an argument"),
        Opcode::StackSwitch | Opcode::Debugtrap | Opcode::DynamicStackAddr => None,
        _ => return None,
    })
}

fn refuse_memory(func: &Function, data: &InstructionData) -> Option<Reason> {
    let region = func.dfg.mem_flags[data.memflags()?].alias_region()?;
    is_scratchpad(func, region).then(|| (format!("{} in the scratchpad", data.opcode()), Some("use main memory")))
}

fn refuse_callee(func: &Function, data: &InstructionData) -> Option<Reason> {
    match *data {
        InstructionData::Call { func_ref, opcode, .. } => {
            match intrinsics::classify(func, func_ref) {
                Some(Reserved::Unknown(name)) => {
                    let what = format!("the intrinsic %{name} with this signature");
                    return Some((what, Some("see the list of intrinsics in the documentation")));
                }
                Some(Reserved::Instruction(_)) if opcode == Opcode::ReturnCall => {
                    let what = "a tail call of an intrinsic".to_owned();
                    return Some((what, Some("it is an instruction: call it and return")));
                }
                _ => {}
            }
            refuse_signature(func, func.dfg.ext_funcs[func_ref].signature)
        }
        InstructionData::CallIndirect { sig_ref, .. } => refuse_signature(func, sig_ref),
        _ => None,
    }
}

fn refuse_signature(func: &Function, sig: cranelift_codegen::ir::SigRef) -> Option<Reason> {
    let refusals = SigInfo::new(&func.dfg.signatures[sig], "").err()?;
    let first = refusals.into_iter().next()?;
    Some((format!("a call with {}", first.what), None))
}

fn refuse_global(func: &Function, data: &InstructionData) -> Option<Reason> {
    let InstructionData::UnaryGlobalValue { global_value, opcode } = *data else {
        return None;
    };
    match func.global_values[global_value] {
        GlobalValueData::Symbol { tls: false, .. } => None,
        GlobalValueData::Symbol { .. } => Some(("a thread-local symbol".to_owned(), None)),
        _ => Some((format!("{opcode} of a value that is no symbol"), None)),
    }
}
