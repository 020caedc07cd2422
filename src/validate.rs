//! What this target refuses, said before anything else happens, for the whole function at once.

use crate::abi::limit::StackLimit;
use crate::abi::sig::SigInfo;
use crate::abi::slots;
use crate::error::{CompileError, Refusal};
use crate::intrinsics::{self, Reserved};
use crate::isa::Isa;
use crate::settings::Atomics;
pub use crate::types::is_covered;
use crate::types::{TYPE_HELP, is_vector};
use cranelift_codegen::ir::{
    AbiParam, ArgumentPurpose, Endianness, FuncRef, Function, GlobalValueData, Inst, InstructionData, Opcode, SigRef,
    StackSlot, types,
};
use cranelift_codegen::settings::ProbestackStrategy;
use npu_mc::tables::IntrinsicKind;

/// Checks the whole function.
///
/// # Errors
///
/// [`CompileError::Unsupported`] with every construct that is refused.
pub fn run(func: &Function, isa: &Isa) -> Result<(), CompileError> {
    let name = func.name.to_string();
    let whole = |what: String, help: Option<&str>| Refusal {
        function: name.clone(),
        inst: None,
        srcloc: None,
        what,
        help: help.map(str::to_owned),
    };
    let mut refusals = Vec::new();
    match SigInfo::new(&func.signature, &name) {
        Ok(sig) => {
            if let Err(reason) = StackLimit::new(func, &sig) {
                let what = format!("a stack limit that cannot be computed at entry ({reason})");
                refusals.push(whole(
                    what,
                    Some("make it from a `vmctx` argument or a symbol, with i32 sums and loads"),
                ));
            }
        }
        Err(found) => refusals.extend(found),
    }
    if isa.flags().enable_probestack() && isa.flags().probestack_strategy() == ProbestackStrategy::Outline {
        let help = "there is no routine for it; set probestack_strategy=inline";
        refusals.push(whole("probestack_strategy=outline".to_owned(), Some(help)));
    }
    if let Some(slot) = func.dynamic_stack_slots.keys().next() {
        let what = format!("a dynamic stack slot ({slot})");
        refusals.push(whole(what, Some("use a stack slot of fixed size")));
    }
    if func.layout.entry_block().is_none() {
        refusals.push(whole(
            "a function without blocks".to_owned(),
            Some("declare what is defined elsewhere in the functions that call it, or in the module"),
        ));
    }
    for block in func.layout.blocks() {
        for inst in func.layout.block_insts(block) {
            if let Some((what, help)) = refuse_inst(func, isa, inst) {
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

/// Whether the instruction is refused for what it is; whether it can be lowered shows later.
pub fn refuses(func: &Function, inst: Inst, isa: &Isa) -> bool {
    refuse_inst(func, isa, inst).is_some()
}

type Reason = (String, Option<&'static str>);

fn refuse_inst(func: &Function, isa: &Isa, inst: Inst) -> Option<Reason> {
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
    refuse_opcode(opcode, isa)
        .map(|help| (opcode.to_string(), help))
        .or_else(|| refuse_big_endian(func, inst))
        .or_else(|| refuse_lanes(func, inst))
        .or_else(|| refuse_atomic(func, isa, inst))
        .or_else(|| refuse_callee(func, data))
        .or_else(|| refuse_global(func, data))
        .or_else(|| refuse_stack_map(func, inst))
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
fn refuse_opcode(opcode: Opcode, isa: &Isa) -> Option<Option<&'static str>> {
    Some(match opcode {
        Opcode::TryCall | Opcode::TryCallIndirect | Opcode::GetExceptionHandlerAddress => {
            Some("return an error code: there are no exceptions")
        }
        Opcode::TlsValue => Some("index an array by the number of the thread"),
        Opcode::GetPinnedReg | Opcode::SetPinnedReg if !isa.flags().enable_pinned_reg() => {
            Some("switch on enable_pinned_reg")
        }
        Opcode::StackSwitch => Some("start another hardware thread: a thread has one stack"),
        Opcode::Debugtrap => Some("there is no breakpoint to go on from; use trap"),
        Opcode::DynamicStackAddr => Some("use a stack slot of fixed size"),
        _ => return None,
    })
}

/// Vectors are in memory as the machine has them.
fn refuse_big_endian(func: &Function, inst: Inst) -> Option<Reason> {
    let data = &func.dfg.insts[inst];
    let big = func.dfg.mem_flags[data.memflags()?].explicit_endianness() == Some(Endianness::Big);
    let values = func
        .dfg
        .inst_values(inst)
        .chain(func.dfg.inst_results(inst).iter().copied());
    let ty = values
        .map(|value| func.dfg.value_type(value))
        .find(|&ty| is_vector(ty))?;
    big.then(|| {
        (
            format!("{}.{ty} in big-endian order", data.opcode()),
            Some("use the flag little"),
        )
    })
}

/// Conversions that take lanes to a scalar, or a scalar to lanes, which CLIF's verifier lets pass.
fn refuse_lanes(func: &Function, inst: Inst) -> Option<Reason> {
    let opcode = func.dfg.insts[inst].opcode();
    let converts = matches!(
        opcode,
        Opcode::FcvtToSint
            | Opcode::FcvtToUint
            | Opcode::FcvtToSintSat
            | Opcode::FcvtToUintSat
            | Opcode::FcvtFromSint
            | Opcode::FcvtFromUint
    );
    let from = func.dfg.value_type(func.dfg.inst_values(inst).next()?);
    let to = func.dfg.value_type(*func.dfg.inst_results(inst).first()?);
    (converts && is_vector(from) != is_vector(to)).then(|| {
        let what = format!("{opcode} {BETWEEN_LANES}");
        (what, Some("convert scalars to scalars and vectors to vectors"))
    })
}

/// What is said about conversions between scalars and vectors.
const BETWEEN_LANES: &str = "between types with different numbers of lanes";

/// Atomic operations: the hardware has none, but an aligned access of at most a word is one.
fn refuse_atomic(func: &Function, isa: &Isa, inst: Inst) -> Option<Reason> {
    let (opcode, ty) = match func.dfg.insts[inst] {
        InstructionData::LoadNoOffset { opcode, .. } | InstructionData::AtomicRmw { opcode, .. } => {
            (opcode, func.dfg.ctrl_typevar(inst))
        }
        InstructionData::AtomicCas { opcode, .. } => (opcode, func.dfg.ctrl_typevar(inst)),
        InstructionData::StoreNoOffset { opcode, args, .. } => (opcode, func.dfg.value_type(args[0])),
        _ => return None,
    };
    let is_atomic = matches!(
        opcode,
        Opcode::AtomicLoad | Opcode::AtomicStore | Opcode::AtomicRmw | Opcode::AtomicCas
    );
    if is_atomic && ty.bits() > 32 {
        return Some((
            format!("{opcode}.{ty}"),
            Some("a thread reads or writes at most a word at once: i32, i16 and i8"),
        ));
    }
    let needs_setting = matches!(opcode, Opcode::AtomicRmw | Opcode::AtomicCas);
    (needs_setting && isa.settings().atomics == Atomics::Refuse).then(|| {
        let help = "the hardware has no such operation; the setting `atomics=single_thread` makes it a plain sequence";
        (format!("{opcode}.{ty}"), Some(help))
    })
}

fn refuse_callee(func: &Function, data: &InstructionData) -> Option<Reason> {
    match *data {
        InstructionData::Call { func_ref, opcode, .. } => refuse_intrinsic(func, func_ref, opcode)
            .or_else(|| refuse_signature(func, opcode, func.dfg.ext_funcs[func_ref].signature)),
        InstructionData::FuncAddr { func_ref, .. } => {
            intrinsics::classify(func, func_ref)?;
            let what = "the address of an intrinsic".to_owned();
            Some((what, Some("it is an instruction: wrap it in a function")))
        }
        InstructionData::CallIndirect { sig_ref, opcode, .. } => refuse_signature(func, opcode, sig_ref),
        _ => None,
    }
}

fn refuse_intrinsic(func: &Function, callee: FuncRef, opcode: Opcode) -> Option<Reason> {
    match intrinsics::classify(func, callee)? {
        Reserved::Unknown(name) => match intrinsics::Builder::find(name) {
            Ok(info) => {
                let what = format!(
                    "the intrinsic %{name} with this signature: it takes ({}) and gives ({})",
                    info.params, info.result
                );
                Some((what, None))
            }
            Err(_) => {
                let what = format!("the intrinsic %{name}, which there is not");
                Some((what, Some("see the list of intrinsics in the documentation")))
            }
        },
        Reserved::Intrinsic(info) if info.kind == IntrinsicKind::Missing => {
            Some((format!("the intrinsic %{}", info.name), Some(info.summary)))
        }
        Reserved::Intrinsic(_) if opcode == Opcode::ReturnCall => {
            let what = "a tail call of an intrinsic".to_owned();
            Some((what, Some("it is an instruction: call it and return")))
        }
        Reserved::Intrinsic(_) => None,
    }
}

/// Where a slot with more alignment than the stack starts is only known at run time.
fn refuse_stack_map(func: &Function, inst: Inst) -> Option<Reason> {
    let entries = func.dfg.user_stack_map_entries(inst)?;
    let over_aligned = |slot: StackSlot| slots::is_over_aligned(&func.sized_stack_slots[slot]);
    let entry = entries.iter().find(|entry| over_aligned(entry.slot))?;
    let what = format!(
        "a stack map entry in {}, which is aligned to more than the stack",
        entry.slot
    );
    Some((what, Some("use a slot with the alignment of its type")))
}

fn refuse_signature(func: &Function, opcode: Opcode, sig: SigRef) -> Option<Reason> {
    let by_value = |param: &AbiParam| matches!(param.purpose, ArgumentPurpose::StructArgument(_));
    let leaves = matches!(opcode, Opcode::ReturnCall | Opcode::ReturnCallIndirect);
    if leaves && func.dfg.signatures[sig].params.iter().any(by_value) {
        let what = format!("{opcode} with a structure passed by value");
        return Some((
            what,
            Some("its copy would be in the frame that is gone: pass a pointer"),
        ));
    }
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
