//! Finds all refused constructs of a function before the compilation. `td/NaplesPULegalize.td`
//! lists the refused instructions. This module also checks signatures, stacks and intrinsics.

use crate::abi::limit::StackLimit;
use crate::abi::sig::{CalleeSignatures, SigInfo};
use crate::abi::slots;
use crate::error::{CompileError, Refusal};
use crate::intrinsics::{self, Reserved};
use crate::isa::Isa;
use crate::legalize::{self, Legality, LegalizeAction, LegalizeCondition, OpcodeSet, Rule, TypeSet};
use crate::shape::{Shape, registers_of};
use cranelift_codegen::entity::{EntityRef, EntitySet};
use cranelift_codegen::ir::{
    AbiParam, ArgumentPurpose, BlockArg, ExceptionTableData, ExceptionTableItem, FuncRef, Function, Inst,
    InstructionData, Opcode, SigRef, StackSlot, Type, types,
};
use cranelift_codegen::settings::ProbestackStrategy;
use npu_mc::tables::IntrinsicKind;

/// Checks the function. Returns the locations of its arguments and results, the signatures of its
/// callees, and the opcodes of its instructions.
///
/// `types` are the types of its values, and `callees` is the number of functions that it declared,
/// before legalization rewrote it. `refused` are the refusals of that rewrite.
///
/// # Errors
///
/// Returns [`CompileError::Unsupported`] with all refused constructs, or [`CompileError::Internal`]
/// if the legalization table has no rule for an instruction.
pub fn run(
    func: &Function,
    isa: &Isa,
    types: TypeSet,
    callees: usize,
    refused: Vec<Refusal>,
) -> Result<(SigInfo, CalleeSignatures, OpcodeSet), CompileError> {
    let name = func.name.to_string();
    let whole = |what: String, help: Option<&str>| Refusal {
        function: name.clone(),
        inst: None,
        srcloc: None,
        what,
        help: help.map(str::to_owned),
    };
    let mut refusals = Vec::new();
    let sig = SigInfo::new(&func.signature, &name);
    match &sig {
        Ok(sig) => {
            if let Err(reason) = StackLimit::new(func, sig) {
                let what = format!("a stack limit that cannot be computed at entry ({reason})");
                refusals.push(whole(
                    what,
                    Some("make it from a `vmctx` argument or a symbol, with i32 sums and loads"),
                ));
            }
        }
        Err(CompileError::Unsupported(found)) => refusals.extend(found.iter().cloned()),
        Err(_) => {}
    }
    if isa.flags().enable_probestack() && isa.flags().probestack_strategy() == ProbestackStrategy::Outline {
        let help = "the runtime has no routine for it; set probestack_strategy=inline";
        refusals.push(whole("probestack_strategy=outline".to_owned(), Some(help)));
    }
    if func.layout.entry_block().is_none() {
        refusals.push(whole(
            "a function without blocks".to_owned(),
            Some("declare functions that are defined elsewhere in their callers or in the module"),
        ));
    }
    let mut insts = Insts::new(func, isa, types, callees);
    let were_refused = !refused.is_empty();
    refusals.extend(refused);
    insts.check(&mut refusals)?;
    if were_refused {
        // Instruction numbers follow the order of the text, and rewriting preserves them.
        refusals.sort_by_key(|refusal| refusal.inst.as_ref().map(|(inst, _)| *inst));
    }
    match sig {
        Ok(sig) if refusals.is_empty() => Ok((sig, insts.signatures, insts.opcodes)),
        Err(error @ CompileError::Internal { .. }) => Err(error),
        _ => Err(CompileError::Unsupported(refusals)),
    }
}

/// Returns whether the instruction itself is refused. Lowering may still fail.
pub fn refuses(func: &Function, inst: Inst, isa: &Isa) -> bool {
    !matches!(
        Insts::new(func, isa, TypeSet::of(func), func.dfg.ext_funcs.len()).refusal(inst),
        Ok(None)
    )
}

/// The refused construct, and the nearest supported form.
type Reason = (String, Option<&'static str>);

/// The instructions of a function. Most opcodes are refused on none of the function's types, and
/// such an instruction costs only one table access.
struct Insts<'a> {
    func: &'a Function,
    legality: Legality<'a>,
    /// The types of all values, including those that no instruction in the layout uses.
    types: TypeSet,
    /// The opcodes of the checked instructions.
    opcodes: OpcodeSet,
    /// Whether a stack slot has a larger alignment than the stack.
    over_aligned: bool,
    /// Whether the function is a runtime routine, which may call pseudo-instructions.
    is_runtime: bool,
    /// The number of functions that the program declared. Legalization declared the later ones.
    callees: usize,
    /// Functions that have been checked and can be called.
    good_callees: EntitySet<FuncRef>,
    /// The signatures of calls, if they are supported.
    signatures: CalleeSignatures,
}

impl<'a> Insts<'a> {
    fn new(func: &'a Function, isa: &'a Isa, types: TypeSet, callees: usize) -> Self {
        Self {
            func,
            legality: Legality::new(isa.flags(), isa.settings()),
            types,
            opcodes: OpcodeSet::default(),
            over_aligned: func.sized_stack_slots.values().any(slots::is_over_aligned),
            is_runtime: isa.is_for_runtime(),
            callees,
            good_callees: EntitySet::new(),
            signatures: CalleeSignatures::default(),
        }
    }

    fn check(&mut self, refusals: &mut Vec<Refusal>) -> Result<(), CompileError> {
        let func = self.func;
        let every_one = self.over_aligned || !self.types.all_supported();
        for block in func.layout.blocks() {
            for inst in func.layout.block_insts(block) {
                let opcode = func.dfg.insts[inst].opcode();
                self.opcodes.insert(opcode);
                let may_refuse =
                    || self.types.may_refuse(opcode) && legalize::may_refuse(opcode, func.dfg.ctrl_typevar(inst));
                if !every_one && !may_refuse() {
                    continue;
                }
                if let Some((what, help)) = self.refusal(inst)? {
                    refusals.push(Refusal {
                        function: func.name.to_string(),
                        inst: Some((inst, func.dfg.display_inst(inst).to_string())),
                        srcloc: Some(func.srcloc(inst)).filter(|loc| !loc.is_default()),
                        what,
                        help: help.map(str::to_owned),
                    });
                }
            }
        }
        Ok(())
    }

    fn refusal(&mut self, inst: Inst) -> Result<Option<Reason>, CompileError> {
        if let Some(reason) = self.by_type(inst) {
            return Ok(Some(reason));
        }
        Ok(self.by_rule(inst)?.or_else(|| self.by_stack_map(inst)))
    }

    /// Refuses an operand or result of an unsupported type.
    fn by_type(&self, inst: Inst) -> Option<Reason> {
        if self.types.all_supported() {
            return None;
        }
        let dfg = &self.func.dfg;
        let results = dfg.inst_results(inst).iter().copied();
        let mut types = dfg.inst_values(inst).chain(results).map(|value| dfg.value_type(value));
        let ty = types.find(|&ty| Shape::of(ty).is_none())?;
        Some(reason(legalize::unsupported(), dfg.insts[inst].opcode(), ty))
    }

    /// Refuses an instruction by the legalization table.
    fn by_rule(&mut self, inst: Inst) -> Result<Option<Reason>, CompileError> {
        let opcode = self.func.dfg.insts[inst].opcode();
        let ty = self.func.dfg.ctrl_typevar(inst);
        for rule in legalize::rules(opcode, ty) {
            if rule.when == LegalizeCondition::BadCallee {
                if let Some(reason) = self.by_callee(inst) {
                    return Ok(Some(reason));
                }
            } else if self.legality.holds(rule.when, self.func, inst) {
                return Ok((rule.action == LegalizeAction::Refused).then(|| reason(rule, opcode, ty)));
            }
        }
        let form = format!("{inst}: {opcode}.{ty}");
        Err(CompileError::internal("validate", form, "a rule of legalization"))
    }

    fn by_callee(&mut self, inst: Inst) -> Option<Reason> {
        let func = self.func;
        match func.dfg.insts[inst] {
            InstructionData::Call { func_ref, opcode, .. } => {
                if opcode == Opcode::Call && self.good_callees.contains(func_ref) {
                    return None;
                }
                let sig = func.dfg.ext_funcs[func_ref].signature;
                let trusted = self.is_runtime || func_ref.index() >= self.callees;
                let reason = match trusted && intrinsics::pseudo_inst(func, func_ref).is_some() {
                    true => None,
                    false => refuse_intrinsic(func, func_ref, opcode).or_else(|| self.by_signature(opcode, sig)),
                };
                if reason.is_none() && opcode == Opcode::Call {
                    self.good_callees.insert(func_ref);
                }
                reason
            }
            InstructionData::CallIndirect { sig_ref, opcode, .. } => self.by_signature(opcode, sig_ref),
            InstructionData::TryCall { func_ref, .. } if intrinsics::classify(func, func_ref).is_some() => {
                let what = "a call of an intrinsic with exception handlers".to_owned();
                Some((what, Some("it throws nothing: call it and jump")))
            }
            InstructionData::TryCall { opcode, exception, .. }
            | InstructionData::TryCallIndirect { opcode, exception, .. } => {
                let table = &func.dfg.exception_tables[exception];
                let without_registers = |item| match item {
                    ExceptionTableItem::Context(value) => registers_of(func.dfg.value_type(value)).is_none(),
                    _ => false,
                };
                if table.items().any(without_registers) {
                    let what = "an exception handler with a vector that no register holds as context".to_owned();
                    return Some((what, Some("use an integer")));
                }
                self.by_payload(table)
                    .or_else(|| self.by_signature(opcode, table.signature()))
            }
            InstructionData::FuncAddr { func_ref, .. } => {
                intrinsics::classify(func, func_ref)?;
                let what = "the address of an intrinsic".to_owned();
                Some((what, Some("it is an instruction: wrap it in a function")))
            }
            _ => None,
        }
    }

    /// Refuses `exn` arguments of handlers that the convention does not have, or whose type is
    /// neither i32 nor i64. Cranelift's verifier checks the types only for its own targets.
    fn by_payload(&self, table: &ExceptionTableData) -> Option<Reason> {
        let dfg = &self.func.dfg;
        let conv = dfg.signatures[table.signature()].call_conv;
        let words = conv.exception_payload_types(types::I32).len();
        for call in table.all_branches() {
            let params = dfg.block_params(call.block(&dfg.value_lists));
            for (arg, &param) in call.args(&dfg.value_lists).zip(params) {
                let BlockArg::TryCallExn(number) = arg else { continue };
                let ty = dfg.value_type(param);
                if number as usize >= words {
                    let what = format!("`{arg}` of a call with the convention {conv}");
                    return Some((
                        what,
                        Some("an exception carries `exn0` and `exn1`, with the convention tail or system_v"),
                    ));
                }
                if !matches!(ty, types::I32 | types::I64) {
                    let what = format!("`{arg}` of type {ty}");
                    return Some((what, Some("use an i32, or an i64 whose upper half is zero")));
                }
            }
        }
        None
    }

    fn by_signature(&mut self, opcode: Opcode, sig: SigRef) -> Option<Reason> {
        let signature = &self.func.dfg.signatures[sig];
        let by_value = |param: &AbiParam| matches!(param.purpose, ArgumentPurpose::StructArgument(_));
        let leaves = matches!(opcode, Opcode::ReturnCall | Opcode::ReturnCallIndirect);
        if leaves && signature.params.iter().any(by_value) {
            let what = format!("{opcode} with a structure passed by value");
            return Some((what, Some("its copy would be in the removed frame: pass a pointer")));
        }
        match self.signatures.get(self.func, sig) {
            Err(CompileError::Unsupported(refusals)) => {
                let first = refusals.into_iter().next()?;
                Some((format!("a call with {}", first.what), None))
            }
            // Other errors are reported where the signature is used.
            _ => None,
        }
    }

    /// Refuses stack map entries in slots with a larger alignment than the stack: their addresses
    /// are only known at run time.
    fn by_stack_map(&self, inst: Inst) -> Option<Reason> {
        let entries = self.func.dfg.user_stack_map_entries(inst)?;
        let over_aligned = |slot: StackSlot| slots::is_over_aligned(&self.func.sized_stack_slots[slot]);
        let entry = entries.iter().find(|entry| over_aligned(entry.slot))?;
        let what = format!(
            "a stack map entry in {}, which is aligned to more than the stack",
            entry.slot
        );
        Some((what, Some("use a slot with the alignment of its type")))
    }
}

/// Makes a refusal from a rule of the table.
fn reason(rule: &'static Rule, opcode: Opcode, ty: Type) -> Reason {
    (rule.refusal(opcode, ty), Some(rule.nearest_form))
}

fn refuse_intrinsic(func: &Function, callee: FuncRef, opcode: Opcode) -> Option<Reason> {
    match intrinsics::classify(func, callee)? {
        Reserved::Unknown(name) => match intrinsics::Builder::find(name) {
            Ok(info) => {
                let what = format!(
                    "the intrinsic %{name} with this signature: its parameters are ({}) and its results ({})",
                    info.params, info.result
                );
                Some((what, None))
            }
            Err(_) => {
                let what = format!("the unknown intrinsic %{name}");
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
