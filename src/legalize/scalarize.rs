//! Splits vectors that lowering has no registers for into scalar lanes, in signatures, block
//! parameters and all instructions.
//!
//! Vectors of at most sixty-four lanes of `i8`, `i16`, `i32` or `f32` stay vectors, with sixteen
//! lanes per register. Each lane of any other vector becomes an ordinary scalar, for arithmetic, calls,
//! memory and Cranelift's optimizer. A block parameter, argument or result becomes one for each
//! lane, in order. This file also expands two more kinds of instructions lane by lane: those that
//! the machine does not implement for the number of lanes, and those that mix both kinds of
//! vectors. Vectors that are cheaper as scalars are split too (`partitions.rs`).

use super::conditions::Legality;
use super::rules::{rules as rules_of, unsupported};
use super::zeros::zero;
use super::{casts, pairs, partitions};
use crate::error::{CompileError, Refusal};
use crate::intrinsics::PseudoCalls;
use crate::isa::Isa;
use crate::shape::{is_long, is_short, is_split, parts, register_type, vector_registers};
use crate::spaces::{self, Space};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::function::FunctionStencil;
use cranelift_codegen::ir::{
    AbiParam, Block, BlockArg, BlockCall, Function, Inst, InstBuilder, InstructionData, MemFlagsData, Opcode, SigRef,
    Signature, Type, Value, ValueDef, ValueList, types,
};
use npu_mc::machine::CACHE_LINE;
use npu_mc::tables::{LegalizeAction, LegalizeCondition};
use rustc_hash::{FxHashMap, FxHashSet};

/// The opcodes that move lanes between registers. CLIF has them on few lanes of fixed size only, so
/// on several registers they originate from vectors of dynamic size.
const ACROSS: [Opcode; 8] = [
    Opcode::SwidenLow,
    Opcode::SwidenHigh,
    Opcode::UwidenLow,
    Opcode::UwidenHigh,
    Opcode::Snarrow,
    Opcode::Unarrow,
    Opcode::Uunarrow,
    Opcode::IaddPairwise,
];

/// Replaces each parameter and result of the signature by its parts. Returns whether the signature
/// changed.
fn split_signature(signature: &mut Signature) -> bool {
    let split = |params: &[AbiParam]| -> Vec<AbiParam> {
        let each = |param: &AbiParam| {
            let param = *param;
            parts(param.value_type).map(move |value_type| AbiParam { value_type, ..param })
        };
        params.iter().flat_map(each).collect()
    };
    let mut params = signature.params.iter().chain(&signature.returns);
    if !params.any(|param| is_split(param.value_type)) {
        return false;
    }
    signature.params = split(&signature.params);
    signature.returns = split(&signature.returns);
    true
}

/// Rewrites the function.
///
/// Returns the refused instructions, which have no form on lanes. Zeros replace their results.
///
/// # Errors
///
/// [`CompileError::Internal`] if an invariant does not hold.
pub fn run(func: &mut Function, isa: &Isa) -> Result<Vec<Refusal>, CompileError> {
    let cfg = ControlFlowGraph::with_function(func);
    let domtree = DominatorTree::with_function(func, &cfg);
    let order: Vec<Block> = domtree.cfg_rpo().copied().collect();
    remove_others(func, &order);
    casts::run(func, &order);
    align_slots(func, &order);
    let mut calls = PseudoCalls::default();
    pairs::run(func, &order, &mut calls)?;
    split_signature(&mut func.signature);
    let mut results = FxHashMap::default();
    let all: Vec<_> = func.dfg.signatures.keys().collect();
    for sig in all {
        let signature = &mut func.dfg.signatures[sig];
        let types: Vec<Type> = signature.returns.iter().map(|param| param.value_type).collect();
        if split_signature(signature) {
            results.insert(sig, types);
        }
    }
    let name = func.name.to_string();
    let legality = Legality::new(isa.flags(), isa.settings());
    let as_lanes = partitions::find(func, &order, &cfg, &domtree, legality);
    let mut splitter = Splitter {
        as_lanes,
        parts: FxHashMap::default(),
        truths: FxHashMap::default(),
        cursor: FuncCursor::new(func),
        legality,
        refusals: Vec::new(),
        results,
        name,
        calls: &mut calls,
    };
    for &block in &order {
        splitter.split_params(block);
    }
    for &block in &order {
        let insts: Vec<Inst> = splitter.cursor.func.layout.block_insts(block).collect();
        for inst in insts {
            splitter.cursor.goto_inst(inst);
            splitter.cursor.use_srcloc(inst);
            let signature = splitter.cursor.func.dfg.call_signature(inst);
            let calls = signature.is_some_and(|sig| splitter.results.contains_key(&sig));
            splitter.visit(inst, calls);
        }
    }
    let Splitter { parts, refusals, .. } = splitter;
    if let Some(mut labels) = func.dfg.values_labels.take() {
        labels.retain(|&value, _| !parts.contains_key(&value) && !is_split(func.dfg.value_type(value)));
        func.dfg.values_labels = Some(labels);
    }
    func.dfg.resolve_all_aliases();
    calls.check()?;
    Ok(refusals)
}

/// Removes unreachable blocks, because their values may have no definition.
fn remove_others(func: &mut Function, order: &[Block]) {
    let reached: FxHashSet<Block> = order.iter().copied().collect();
    let others: Vec<Block> = func.layout.blocks().filter(|block| !reached.contains(block)).collect();
    for block in others {
        let insts: Vec<Inst> = func.layout.block_insts(block).collect();
        for inst in insts {
            func.layout.remove_inst(inst);
        }
        func.layout.remove_block(block);
    }
}

/// Aligns the stack slots of vectors that do not fill a cache line to cache lines. The position of
/// an access in its line is then known.
fn align_slots(func: &mut Function, order: &[Block]) {
    let FunctionStencil {
        dfg,
        layout,
        sized_stack_slots,
        ..
    } = &mut func.stencil;
    for &block in order {
        for inst in layout.block_insts(block) {
            let (pointer, ty) = match dfg.insts[inst] {
                InstructionData::Load { arg, .. } => (arg, dfg.value_type(dfg.first_result(inst))),
                InstructionData::Store { args, .. } => (args[1], dfg.value_type(args[0])),
                _ => continue,
            };
            if let ValueDef::Result(address, 0) = dfg.value_def(dfg.resolve_aliases(pointer))
                && let InstructionData::StackAddr { stack_slot, .. } = dfg.insts[address]
                && (is_short(ty) || is_long(ty))
            {
                let slot = &mut sized_stack_slots[stack_slot];
                slot.align_shift = slot.align_shift.max(CACHE_LINE.trailing_zeros() as u8);
            }
        }
    }
}

pub(super) struct Splitter<'a> {
    pub(super) cursor: FuncCursor<'a>,
    /// The lanes of split values.
    parts: FxHashMap<Value, Vec<Value>>,
    /// The values that are split although a vector register could hold them.
    as_lanes: FxHashSet<Value>,
    /// For lanes that are masks: the truth values that they were made from.
    truths: FxHashMap<Value, Value>,
    legality: Legality<'a>,
    refusals: Vec<Refusal>,
    /// The original result types of each signature that was split.
    results: FxHashMap<SigRef, Vec<Type>>,
    /// The name of the function.
    name: String,
    calls: &'a mut PseudoCalls,
}

/// The error that an instruction has no form on lanes.
pub(super) struct NoForm;

/// The lanes of a result, or an error.
pub(super) type Lanes = Result<Vec<Value>, NoForm>;

impl Splitter<'_> {
    pub(super) fn type_of(&self, value: Value) -> Type {
        self.cursor.func.dfg.value_type(value)
    }

    /// Returns whether a value is split into lanes.
    pub(super) fn is_in_lanes(&self, value: Value) -> bool {
        is_split(self.type_of(value)) || self.as_lanes.contains(&self.cursor.func.dfg.resolve_aliases(value))
    }

    /// Returns the lanes of a vector, split or in a register, or a scalar as a single lane.
    pub(super) fn lanes(&mut self, value: Value) -> Vec<Value> {
        let ty = self.type_of(value);
        if ty.is_vector() && !self.is_in_lanes(value) {
            let lanes = 0..ty.lane_count();
            return lanes
                .map(|lane| self.cursor.ins().extractlane(value, lane as u8))
                .collect();
        }
        self.parts(value)
    }

    /// Returns the values that replace a value: its lanes, or the value itself.
    fn parts(&mut self, value: Value) -> Vec<Value> {
        let value = self.cursor.func.dfg.resolve_aliases(value);
        self.parts.get(&value).cloned().unwrap_or_else(|| vec![value])
    }

    /// Returns whether lowering supports the instruction on vectors in registers.
    fn is_in_registers(&self, inst: Inst, opcode: Opcode) -> bool {
        let dfg = &self.cursor.func.dfg;
        let mut values = dfg.inst_values(inst).chain(dfg.inst_results(inst).iter().copied());
        if values.any(|value| self.is_in_lanes(value)) {
            return false;
        }
        let types = || {
            let values = dfg.inst_values(inst).chain(dfg.inst_results(inst).iter().copied());
            values.map(|value| dfg.value_type(value))
        };
        if types().any(is_long) {
            return self.is_in_parts(inst, opcode);
        }
        if !types().any(is_short) {
            return true;
        }
        let ty = dfg.ctrl_typevar(inst);
        let gives_vector = |&result: &Value| dfg.value_type(result).is_vector();
        match opcode {
            Opcode::SqmulRoundSat | Opcode::X86Pmulhrsw => ty.lane_type() == types::I16,
            Opcode::X86Pmaddubsw => true,
            // Lowering has rules for these on fewer lanes, whatever td says about addresses and
            // lane counts of whole registers.
            _ if opcode.can_load() || opcode.can_store() => true,
            Opcode::Snarrow | Opcode::Unarrow | Opcode::Uunarrow | Opcode::Vconst => true,
            // Half of two lanes is a scalar.
            Opcode::SwidenLow | Opcode::SwidenHigh | Opcode::UwidenLow | Opcode::UwidenHigh => {
                dfg.inst_results(inst).iter().all(gives_vector)
            }
            Opcode::Bitcast => match dfg.insts[inst] {
                InstructionData::LoadNoOffset { flags, .. } => !self.is_big(flags),
                _ => false,
            },
            // A routine cannot tell which lanes are used.
            _ => match register_type(ty).map_or(Some(LegalizeAction::Legal), |ty| self.legality.action(opcode, ty)) {
                Some(
                    LegalizeAction::Legal | LegalizeAction::Promote | LegalizeAction::Expand | LegalizeAction::Custom,
                ) => true,
                Some(
                    LegalizeAction::Split
                    | LegalizeAction::Scalarize
                    | LegalizeAction::LibCall
                    | LegalizeAction::Refused,
                )
                | None => false,
            },
        }
    }

    /// Returns whether lowering supports the instruction on vectors of several registers.
    fn is_in_parts(&self, inst: Inst, opcode: Opcode) -> bool {
        let dfg = &self.cursor.func.dfg;
        match opcode {
            Opcode::Load
            | Opcode::Store
            | Opcode::Splat
            | Opcode::ScalarToVector
            | Opcode::Vconst
            | Opcode::Extractlane
            | Opcode::Insertlane
            | Opcode::VanyTrue
            | Opcode::VallTrue
            | Opcode::VhighBits => true,
            _ if ACROSS.contains(&opcode) => false,
            Opcode::Bitcast => match dfg.insts[inst] {
                InstructionData::LoadNoOffset { flags, .. } => !self.is_big(flags),
                _ => false,
            },
            // Operations on each register separately.
            _ => {
                let ty = dfg.ctrl_typevar(inst);
                let count = vector_registers(ty);
                let values = dfg.inst_values(inst).chain(dfg.inst_results(inst).iter().copied());
                let mut types = values.map(|value| dfg.value_type(value)).filter(|ty| ty.is_vector());
                let action = register_type(ty).and_then(|ty| self.legality.action(opcode, ty));
                let has_rules = !matches!(action, Some(LegalizeAction::Split | LegalizeAction::Refused) | None);
                has_rules && types.all(|ty| vector_registers(ty) == count)
            }
        }
    }

    /// Emits a pseudo-instruction for an instruction that moves lanes between registers, which CLIF
    /// does not have on so many lanes. Returns its result.
    fn pseudo_inst(&mut self, inst: Inst, opcode: Opcode) -> Option<Value> {
        if !ACROSS.contains(&opcode) {
            return None;
        }
        let dfg = &self.cursor.func.dfg;
        let args = dfg.inst_args(inst).to_vec();
        let result = dfg.first_result(inst);
        let all = || args.iter().copied().chain([result]);
        if all().any(|value| self.is_in_lanes(value)) || !all().any(|value| is_long(self.type_of(value))) {
            return None;
        }
        let ty = self.type_of(result);
        self.calls.parts(&mut self.cursor, opcode, &args, ty)
    }

    fn split_params(&mut self, block: Block) {
        let dfg = &mut self.cursor.func.dfg;
        let types: Vec<Type> = dfg.block_param_types(block).collect();
        if !types.into_iter().any(is_split) {
            return;
        }
        let old: Vec<Value> = dfg.detach_block_params(block).as_slice(&dfg.value_lists).to_vec();
        for param in old {
            let ty = dfg.value_type(param);
            if is_split(ty) {
                let own = parts(ty).map(|part| dfg.append_block_param(block, part)).collect();
                self.parts.insert(param, own);
            } else {
                dfg.attach_block_param(block, param);
            }
        }
    }

    fn visit(&mut self, inst: Inst, calls: bool) {
        let opcode = self.cursor.func.dfg.insts[inst].opcode();
        let is_transfer = opcode.is_terminator() || opcode.is_call();
        let is_touched = match is_transfer {
            true => {
                let dfg = &self.cursor.func.dfg;
                let mut values = dfg.inst_values(inst).chain(dfg.inst_results(inst).iter().copied());
                calls || values.any(|value| self.is_in_lanes(value))
            }
            false => !self.is_in_registers(inst, opcode),
        };
        if !is_touched {
            return;
        }
        if opcode.is_terminator() && !opcode.is_return() {
            return self.branch(inst);
        }
        if is_transfer {
            return self.call(inst);
        }
        if let Some(value) = self.cast_to_register(inst).or_else(|| self.pseudo_inst(inst, opcode)) {
            return self.replace(inst, vec![value]);
        }
        match self.instruction(inst, opcode) {
            Ok(Some(lanes)) => self.replace_by_lanes(inst, lanes),
            Ok(None) => {
                self.cursor.func.layout.remove_inst(inst);
            }
            Err(NoForm) => {
                self.refuse(inst);
                self.replace_by_zeros(inst);
            }
        }
    }

    /// Replaces the result of a refused instruction by zeros, so that validation continues.
    fn replace_by_zeros(&mut self, inst: Inst) {
        match self.cursor.func.dfg.inst_results(inst) {
            [] => {
                self.cursor.func.layout.remove_inst(inst);
            }
            [result, ..] => {
                let ty = self.type_of(*result);
                if self.is_in_lanes(*result) {
                    let lanes = (0..ty.lane_count()).map(|_| zero(&mut self.cursor, ty.lane_type()));
                    let lanes = lanes.collect();
                    self.replace_by_lanes(inst, lanes);
                } else {
                    let zero = zero(&mut self.cursor, ty);
                    self.replace(inst, vec![zero]);
                }
            }
        }
    }

    fn refuse(&mut self, inst: Inst) {
        let func = &*self.cursor.func;
        let ty = func.dfg.ctrl_typevar(inst);
        let opcode = func.dfg.insts[inst].opcode();
        // td has a separate text for conversions between different lane counts, which CLIF's
        // verifier accepts.
        let count = |value: &Value| func.dfg.value_type(*value).lane_count();
        let differ = func.dfg.inst_args(inst).first().map(count) != func.dfg.inst_results(inst).first().map(count);
        let mut rules = rules_of(opcode, ty).iter();
        let rule = rules.find(|rule| differ && rule.when == LegalizeCondition::LanesDiffer);
        self.refusals.push(Refusal {
            function: self.name.clone(),
            inst: Some((inst, func.dfg.display_inst(inst).to_string())),
            srcloc: Some(func.srcloc(inst)).filter(|loc| !loc.is_default()),
            what: match rule {
                Some(rule) => rule.refusal(opcode, ty),
                None if ty.is_invalid() => format!("this {opcode}"),
                None => format!("{opcode}.{ty}"),
            },
            help: Some(rule.unwrap_or(unsupported()).nearest_form.to_owned()),
        });
    }

    /// Replaces the instruction by the lanes of its result.
    fn replace_by_lanes(&mut self, inst: Inst, lanes: Vec<Value>) {
        let result = self.cursor.func.dfg.first_result(inst);
        let parts = match self.is_in_lanes(result) {
            true => lanes,
            false => self.join(self.type_of(result), &lanes).into_iter().collect(),
        };
        self.replace(inst, parts);
    }

    /// Replaces the instruction by the parts of its result.
    fn replace(&mut self, inst: Inst, parts: Vec<Value>) {
        let result = self.cursor.func.dfg.first_result(inst);
        if self.is_in_lanes(result) {
            self.parts.insert(result, parts);
        } else {
            let dfg = &mut self.cursor.func.dfg;
            dfg.clear_results(inst);
            if let Some(&value) = parts.first() {
                dfg.change_to_alias(result, value);
            }
        }
        self.cursor.func.layout.remove_inst(inst);
    }

    /// Builds a value of the type from its lanes: a scalar, or a vector in registers.
    fn join(&mut self, ty: Type, lanes: &[Value]) -> Option<Value> {
        let (&first, rest) = lanes.split_first()?;
        if !ty.is_vector() {
            return Some(first);
        }
        if is_long(ty) {
            return self.through_frame(ty, ty.lane_type(), lanes);
        }
        let start = self.cursor.ins().splat(ty, first);
        let insert = |value, (&lane, number): (&Value, u8)| self.cursor.ins().insertlane(value, lane, number);
        Some(rest.iter().zip(1..).fold(start, insert))
    }

    /// Passes the parts of block arguments in a branch or a call with handlers.
    fn branch(&mut self, inst: Inst) {
        let dfg = &self.cursor.func.dfg;
        let calls: Vec<BlockCall> = dfg.insts[inst]
            .branch_destination(&dfg.jump_tables, &dfg.exception_tables)
            .to_vec();
        let mut new = Vec::with_capacity(calls.len());
        for call in calls {
            let lists = &self.cursor.func.dfg.value_lists;
            let block = call.block(lists);
            let args: Vec<BlockArg> = call.args(lists).collect();
            let mut split = Vec::with_capacity(args.len());
            for arg in args {
                match arg {
                    BlockArg::Value(value) if is_split(self.type_of(value)) => {
                        split.extend(self.parts(value).into_iter().map(BlockArg::Value));
                    }
                    BlockArg::TryCallRet(number) => {
                        split.extend(self.places_of_result(inst, number).map(BlockArg::TryCallRet));
                    }
                    other => split.push(other),
                }
            }
            new.push(BlockCall::new(block, split, &mut self.cursor.func.dfg.value_lists));
        }
        let dfg = &mut self.cursor.func.dfg;
        let places = dfg.insts[inst].branch_destination_mut(&mut dfg.jump_tables, &mut dfg.exception_tables);
        for (place, call) in places.iter_mut().zip(new) {
            *place = call;
        }
        if self.cursor.func.dfg.insts[inst].opcode().is_call() {
            self.pass_parts(inst);
        }
    }

    /// Returns the positions of the parts of a result in the split signature.
    fn places_of_result(&self, inst: Inst, number: u32) -> std::ops::Range<u32> {
        let dfg = &self.cursor.func.dfg;
        let own = dfg.call_signature(inst).and_then(|sig| self.results.get(&sig));
        let Some(types) = own else { return number..number + 1 };
        let count = |types: &[Type]| types.iter().map(|&ty| parts(ty).count() as u32).sum();
        let (before, from) = types.split_at(types.len().min(number as usize));
        let start: u32 = count(before);
        start..start + count(from.get(..1).unwrap_or_default())
    }

    /// Passes and receives the parts of values in a call or return.
    fn call(&mut self, inst: Inst) {
        self.pass_parts(inst);
        let dfg = &mut self.cursor.func.dfg;
        let old: Vec<Value> = dfg.inst_results(inst).to_vec();
        if !old.iter().any(|&value| is_split(dfg.value_type(value))) {
            return;
        }
        dfg.clear_results(inst);
        dfg.make_inst_results(inst, types::INVALID);
        let mut new = dfg.inst_results(inst).to_vec().into_iter();
        for value in old {
            let ty = dfg.value_type(value);
            let own: Vec<Value> = new.by_ref().take(parts(ty).count()).collect();
            if is_split(ty) {
                self.parts.insert(value, own);
            } else if let Some(&only) = own.first() {
                dfg.change_to_alias(value, only);
            }
        }
    }

    /// Replaces the operands of a call or return by their parts.
    fn pass_parts(&mut self, inst: Inst) {
        let args: Vec<Value> = self.cursor.func.dfg.inst_args(inst).to_vec();
        let mut split = Vec::with_capacity(args.len());
        for arg in args {
            match is_split(self.type_of(arg)) {
                true => split.extend(self.parts(arg)),
                false => split.push(arg),
            }
        }
        let dfg = &mut self.cursor.func.dfg;
        let list = ValueList::from_iter(split, &mut dfg.value_lists);
        match &mut dfg.insts[inst] {
            InstructionData::Call { args, .. }
            | InstructionData::CallIndirect { args, .. }
            | InstructionData::TryCall { args, .. }
            | InstructionData::TryCallIndirect { args, .. }
            | InstructionData::MultiAry { args, .. } => *args = list,
            _ => self.refuse(inst),
        }
    }

    pub(super) fn each(&mut self, value: Value, mut of: impl FnMut(&mut Self, Value) -> Value) -> Vec<Value> {
        self.lanes(value).into_iter().map(|lane| of(self, lane)).collect()
    }

    pub(super) fn pairs(
        &mut self,
        x: Value,
        y: Value,
        mut of: impl FnMut(&mut Self, Value, Value) -> Value,
    ) -> Vec<Value> {
        let (x, y) = (self.lanes(x), self.lanes(y));
        x.into_iter().zip(y).map(|(x, y)| of(self, x, y)).collect()
    }

    /// Returns the lanes of the result, or `None` for an instruction without a result.
    fn instruction(&mut self, inst: Inst, opcode: Opcode) -> Result<Option<Vec<Value>>, NoForm> {
        let data = self.cursor.func.dfg.insts[inst];
        let result = self.cursor.func.dfg.inst_results(inst).first().copied();
        let ty = result.map_or(types::INVALID, |result| self.type_of(result));
        let found = match data {
            InstructionData::Unary { arg, .. } => self.unary(opcode, ty, arg)?,
            InstructionData::Binary { args, .. } => self.binary(opcode, ty, args)?,
            InstructionData::Ternary { args, .. } => self.ternary(opcode, ty, args)?,
            InstructionData::IntCompare { cond, args, .. } => {
                let lane = ty.lane_type();
                self.pairs(args[0], args[1], |this, x, y| {
                    let bit = this.cursor.ins().icmp(cond, x, y);
                    this.mask(lane, bit)
                })
            }
            InstructionData::FloatCompare { cond, args, .. } => {
                let lane = ty.lane_type();
                self.pairs(args[0], args[1], |this, x, y| {
                    let bit = this.cursor.ins().fcmp(cond, x, y);
                    this.mask(lane, bit)
                })
            }
            InstructionData::BinaryImm8 {
                opcode: Opcode::Extractlane,
                arg,
                imm,
            } => vec![self.lanes(arg).get(usize::from(imm)).copied().ok_or(NoForm)?],
            // A part of a vector that had a dynamic size.
            InstructionData::BinaryImm8 {
                opcode: Opcode::ExtractVector,
                arg,
                imm,
            } => {
                let count = ty.lane_count() as usize;
                let mut parts = self.lanes(arg).into_iter().skip(usize::from(imm) * count);
                parts.by_ref().take(count).collect()
            }
            InstructionData::TernaryImm8 {
                opcode: Opcode::Insertlane,
                args,
                imm,
            } => {
                let mut lanes = self.lanes(args[0]);
                *lanes.get_mut(usize::from(imm)).ok_or(NoForm)? = args[1];
                lanes
            }
            InstructionData::UnaryConst {
                opcode: Opcode::Vconst,
                constant_handle,
            } => {
                let bytes = self.cursor.func.dfg.constants.get(constant_handle).as_slice().to_vec();
                let lane = ty.lane_type();
                let size = lane.bytes() as usize;
                bytes.chunks(size).map(|bytes| self.constant(lane, bytes)).collect()
            }
            InstructionData::LoadNoOffset {
                opcode: Opcode::Bitcast,
                arg,
                flags,
            } => {
                let flags = self.cursor.func.dfg.mem_flags[flags];
                self.bitcast(ty, arg, flags)?
            }
            InstructionData::Load { arg, flags, offset, .. } => {
                let space = spaces::of_flags(self.cursor.func, flags);
                let big = self.is_big(flags);
                let flags = self.cursor.func.dfg.mem_flags[flags];
                // One unaligned load of sixteen bytes is cheaper than two of eight.
                let size = ty.bytes() == types::I128.bytes() && ty.lane_bits() == 64;
                if opcode == Opcode::Load && size && !big && !flags.aligned() && space == Space::Main {
                    let whole = self.cursor.ins().load(types::I128, flags, arg, offset);
                    let (low, high) = self.cursor.ins().isplit(whole);
                    [low, high].map(|half| self.as_type(ty.lane_type(), half)).to_vec()
                } else {
                    self.load(opcode, ty, arg, flags, offset.into())?
                }
            }
            InstructionData::Store {
                opcode: Opcode::Store,
                args,
                flags,
                offset,
            } => {
                let flags = self.cursor.func.dfg.mem_flags[flags];
                self.store(args, flags, offset.into())?;
                return Ok(None);
            }
            _ => return Err(NoForm),
        };
        Ok(Some(found))
    }

    pub(super) fn iconst(&mut self, ty: Type, number: i64) -> Value {
        if ty.bits() <= 64 {
            return self.cursor.ins().iconst(ty, number);
        }
        let low = self.cursor.ins().iconst(types::I64, number);
        self.cursor.ins().sextend(ty, low)
    }

    /// Emits a constant from its bytes, least significant first.
    pub(super) fn constant(&mut self, ty: Type, bytes: &[u8]) -> Value {
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0u64, |bits, &byte| bits << 8 | u64::from(byte));
        let bits = ty.as_int();
        let value = if bits.bits() <= 64 {
            let unused = 64 - bits.bits();
            let number = (number(bytes) << unused).cast_signed() >> unused;
            self.cursor.ins().iconst(bits, number)
        } else {
            let (low, high) = bytes.split_at(bytes.len() / 2);
            let [low, high] = [low, high].map(|half| self.cursor.ins().iconst(types::I64, number(half).cast_signed()));
            self.cursor.ins().iconcat(low, high)
        };
        self.as_type(ty, value)
    }

    /// Reinterprets the bits of a value as another type of the same size.
    pub(super) fn as_type(&mut self, ty: Type, value: Value) -> Value {
        if self.type_of(value) == ty {
            return value;
        }
        let cast = self.cursor.ins().bitcast(ty, MemFlagsData::new(), value);
        if let Some(truth) = self.truth_of(value) {
            self.truths.insert(cast, truth);
        }
        cast
    }

    /// Returns all ones if the truth value is true, else zeros.
    pub(super) fn mask(&mut self, ty: Type, truth: Value) -> Value {
        let mask = self.cursor.ins().bmask(ty, truth);
        self.truths.insert(mask, truth);
        mask
    }

    /// Returns the truth value from which [`mask`](Self::mask) made a lane.
    pub(super) fn truth_of(&self, lane: Value) -> Option<Value> {
        let lane = self.cursor.func.dfg.resolve_aliases(lane);
        self.truths.get(&lane).copied()
    }
}
