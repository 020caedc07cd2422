//! Classifies values by how they differ between the lanes, and branches by whether all lanes take
//! the same way.

use crate::builtins::{self, Builtin, Extent};
use crate::facts;
use crate::linearize::Flow;
use cranelift_codegen::ir::{Block, Function, Inst, Opcode, Type, Value, ValueDef, types};
use cranelift_codegen::loop_analysis::Loop;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// How a value differs between the active lanes, and how the vector function represents it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Equal in all lanes: the scalar.
    Uniform,
    /// An `i32` that grows by this number from lane to lane: the scalar of lane 0.
    Linear(i32),
    /// A boolean: one bit for each lane in an `i32` for each sixteen lanes.
    Bits,
    /// Anything else: a vector for each sixteen lanes.
    Lanes,
}

/// The result of the analysis.
pub struct Divergence {
    forms: BTreeMap<Value, Form>,
    booleans: BTreeSet<Value>,
    defined_in: BTreeMap<Value, Block>,
    /// Blocks that end in a branch for which the active lanes can differ.
    pub divergent: BTreeSet<Block>,
    /// Blocks in which lanes meet that took different ways, or left a loop in different iterations.
    pub joined: BTreeSet<Block>,
    /// Blocks in which lanes of the function can be inactive.
    pub masked: BTreeSet<Block>,
    /// Loops that the lanes leave in different iterations.
    pub loops: HashSet<Loop>,
    /// Values with a use outside of a loop in [`Self::loops`] that contains their definition.
    pub leave_loops: BTreeSet<Value>,
}

impl Divergence {
    /// Analyzes a normalized function. Parameters of the entry have the form `params`. `is_pure`
    /// returns whether the callee of a call only computes its results from its arguments.
    pub fn new(func: &Function, flow: &Flow, params: Form, is_pure: impl Fn(Inst) -> bool) -> Self {
        let mut this = Self {
            forms: BTreeMap::new(),
            booleans: facts::booleans(func, &flow.order),
            defined_in: BTreeMap::new(),
            divergent: BTreeSet::new(),
            joined: BTreeSet::new(),
            masked: BTreeSet::new(),
            loops: HashSet::new(),
            leave_loops: BTreeSet::new(),
        };
        for &block in &flow.order {
            let results = func
                .layout
                .block_insts(block)
                .flat_map(|inst| func.dfg.inst_results(inst));
            for &value in func.dfg.block_params(block).iter().chain(results) {
                this.defined_in.insert(value, block);
            }
        }
        if let Some(&entry) = flow.order.first() {
            for &param in func.dfg.block_params(entry) {
                let form = if params == Form::Lanes {
                    this.varying(param)
                } else {
                    params
                };
                this.forms.insert(param, form);
            }
        }
        let incoming = facts::incoming(func);
        loop {
            this.find_forms(func, flow, &incoming, &is_pure);
            if !this.find_branches(func, flow) {
                break;
            }
        }
        this.find_leaving(func, flow);
        this
    }

    /// Returns the form of a value where it is defined.
    pub fn form(&self, value: Value) -> Form {
        self.forms.get(&value).copied().unwrap_or(Form::Uniform)
    }

    /// Returns the form of a value for a use in a block.
    pub fn form_at(&self, flow: &Flow, block: Block, value: Value) -> Form {
        if self.leaves_loop(flow, block, value) {
            self.varying(value)
        } else {
            self.form(value)
        }
    }

    /// Returns whether a use in this block is outside of a loop that the lanes leave in different
    /// iterations and that contains the definition.
    pub fn leaves_loop(&self, flow: &Flow, block: Block, value: Value) -> bool {
        let Some(&defined) = self.defined_in.get(&value) else {
            return false;
        };
        flow.loops_of(defined)
            .any(|around| self.loops.contains(&around) && !flow.loops.is_in_loop(block, around))
    }

    /// Returns the form of a value that differs in any way.
    pub fn varying(&self, value: Value) -> Form {
        if self.booleans.contains(&value) {
            Form::Bits
        } else {
            Form::Lanes
        }
    }

    fn find_forms(
        &mut self,
        func: &Function,
        flow: &Flow,
        incoming: &BTreeMap<Value, Vec<(Inst, Value)>>,
        is_pure: &impl Fn(Inst) -> bool,
    ) {
        loop {
            let mut changed = false;
            for (index, &block) in flow.order.iter().enumerate() {
                if index > 0 {
                    for &param in func.dfg.block_params(block) {
                        if let Some(form) = self.of_param(func, flow, block, param, incoming) {
                            changed |= self.update(param, form);
                        }
                    }
                }
                for inst in func.layout.block_insts(block) {
                    for &result in func.dfg.inst_results(inst) {
                        let form = self.of_result(func, flow, block, inst, result, is_pure);
                        changed |= self.update(result, form);
                    }
                }
            }
            if !changed {
                return;
            }
        }
    }

    /// Forms only move from `Uniform` to `Linear` to varying, so the analysis ends.
    fn update(&mut self, value: Value, form: Form) -> bool {
        let varying = self.varying(value);
        let old = self.forms.get(&value).copied();
        let new = match (old, form) {
            (None | Some(Form::Uniform), form) => form,
            (Some(old), form) if old == form => old,
            _ => varying,
        };
        self.forms.insert(value, new);
        old != Some(new)
    }

    fn of_param(
        &self,
        func: &Function,
        flow: &Flow,
        block: Block,
        param: Value,
        incoming: &BTreeMap<Value, Vec<(Inst, Value)>>,
    ) -> Option<Form> {
        if self.joined.contains(&block) {
            return Some(self.varying(param));
        }
        let mut form = None;
        for &(inst, arg) in incoming.get(&param)? {
            let from = func.layout.inst_block(inst)?;
            if !self.forms.contains_key(&arg) {
                continue;
            }
            let of_arg = self.form_at(flow, from, arg);
            form = match form {
                None => Some(of_arg),
                Some(form) if form == of_arg => Some(form),
                Some(_) => Some(self.varying(param)),
            };
        }
        match form {
            Some(Form::Bits | Form::Lanes) => Some(self.varying(param)),
            form => form,
        }
    }

    fn of_result(
        &self,
        func: &Function,
        flow: &Flow,
        block: Block,
        inst: Inst,
        result: Value,
        is_pure: &impl Fn(Inst) -> bool,
    ) -> Form {
        let args = func.dfg.inst_args(inst);
        let form = |value: Value| self.form_at(flow, block, value);
        let uniform = args.iter().all(|&arg| form(arg) == Form::Uniform);
        let varying = self.varying(result);
        let ty = func.dfg.value_type(result);
        match func.dfg.insts[inst].opcode() {
            Opcode::Call => match builtins::called(func, inst) {
                Some(Ok(Builtin::LaneId)) => Form::Linear(1),
                Some(Ok(
                    Builtin::Any
                    | Builtin::All
                    | Builtin::AllKnown
                    | Builtin::Ballot
                    | Builtin::BroadcastFirst(_)
                    | Builtin::Reduce(_, Extent::Reduce),
                )) => Form::Uniform,
                Some(Ok(_)) => varying,
                _ if uniform && is_pure(inst) => Form::Uniform,
                _ => varying,
            },
            Opcode::AtomicRmw | Opcode::AtomicCas => varying,
            Opcode::Iadd | Opcode::Isub | Opcode::Imul | Opcode::Ishl if ty == types::I32 && !uniform => {
                linear(func, inst, &form).unwrap_or(varying)
            }
            _ if uniform => Form::Uniform,
            _ => varying,
        }
    }

    /// Finds branches that diverge, and what follows from them. Returns whether there are new ones.
    fn find_branches(&mut self, func: &Function, flow: &Flow) -> bool {
        let before = self.divergent.len();
        for &block in &flow.order {
            let Some(inst) = func.layout.last_inst(block) else {
                continue;
            };
            let is_switch = matches!(func.dfg.insts[inst].opcode(), Opcode::Brif | Opcode::BrTable);
            let condition = func.dfg.inst_args(inst).first();
            if is_switch && condition.is_some_and(|&value| self.form_at(flow, block, value) != Form::Uniform) {
                self.divergent.insert(block);
            }
        }
        if self.divergent.len() == before {
            return false;
        }
        for block in self.divergent.clone() {
            let successors: BTreeSet<Block> = flow.cfg.succ_iter(block).collect();
            let end = flow.post.immediate_post_dominator(block);
            self.mark_joined(flow, &successors, end);
            self.mark_masked(flow, &successors, end);
            for around in flow.loops_of(block) {
                if !end.is_some_and(|end| flow.loops.is_in_loop(end, around)) && self.loops.insert(around) {
                    let targets = exit_targets(flow, around);
                    self.joined.extend(&targets);
                    self.mark_joined(flow, &targets, None);
                }
            }
        }
        true
    }

    /// Marks the blocks in which ways from different starts meet, up to the block `end`.
    fn mark_joined(&mut self, flow: &Flow, starts: &BTreeSet<Block>, end: Option<Block>) {
        let mut label: BTreeMap<Block, Block> = starts.iter().map(|&start| (start, start)).collect();
        for &block in &flow.order {
            let Some(&from) = label.get(&block) else {
                continue;
            };
            if Some(block) == end {
                continue;
            }
            for successor in flow.cfg.succ_iter(block) {
                if flow.is_back_edge(block, successor) {
                    continue;
                }
                match label.get(&successor) {
                    None => {
                        label.insert(successor, from);
                    }
                    Some(&other) if other != from => {
                        self.joined.insert(successor);
                        label.insert(successor, successor);
                    }
                    Some(_) => {}
                }
            }
        }
    }

    fn mark_masked(&mut self, flow: &Flow, starts: &BTreeSet<Block>, end: Option<Block>) {
        let mut stack: Vec<Block> = starts.iter().copied().collect();
        let mut seen = BTreeSet::new();
        while let Some(block) = stack.pop() {
            if Some(block) != end && seen.insert(block) {
                self.masked.insert(block);
                stack.extend(flow.cfg.succ_iter(block));
            }
        }
    }

    fn find_leaving(&mut self, func: &Function, flow: &Flow) {
        for &block in &flow.order {
            for inst in func.layout.block_insts(block) {
                for value in func.dfg.inst_values(inst) {
                    if self.leaves_loop(flow, block, value) {
                        self.leave_loops.insert(value);
                    }
                }
            }
        }
    }
}

/// Returns the blocks outside of a loop to which its blocks branch.
pub fn exit_targets(flow: &Flow, around: Loop) -> BTreeSet<Block> {
    let inside = flow.order.iter().filter(|&&block| flow.loops.is_in_loop(block, around));
    inside
        .flat_map(|&block| flow.cfg.succ_iter(block))
        .filter(|&target| !flow.loops.is_in_loop(target, around))
        .collect()
}

/// Returns the form of a sum or product of linear values, if it is linear or uniform.
fn linear(func: &Function, inst: Inst, form: &impl Fn(Value) -> Form) -> Option<Form> {
    let args = func.dfg.inst_args(inst);
    let stride = |value: Value| match form(value) {
        Form::Uniform => Some(0),
        Form::Linear(stride) => Some(stride),
        Form::Bits | Form::Lanes => None,
    };
    let (x, y) = (*args.first()?, *args.get(1)?);
    let by_constant = |value: Value, factor: Value| {
        let factor = facts::constant(func, factor)? as i32;
        Some(stride(value)?.wrapping_mul(factor))
    };
    let stride = match func.dfg.insts[inst].opcode() {
        Opcode::Iadd => stride(x)?.wrapping_add(stride(y)?),
        Opcode::Isub => stride(x)?.wrapping_sub(stride(y)?),
        Opcode::Imul => by_constant(x, y).or_else(|| by_constant(y, x))?,
        Opcode::Ishl => {
            let amount = facts::constant(func, y)?;
            stride(x)?.wrapping_mul(1_i32.checked_shl(u32::try_from(amount).ok()?)?)
        }
        _ => return None,
    };
    Some(if stride == 0 {
        Form::Uniform
    } else {
        Form::Linear(stride)
    })
}

/// Returns the type of sixteen lanes of a scalar type. Integers below 32 bits use lanes of 32 bits,
/// whose upper bits are undefined.
pub fn lanes_type(ty: Type) -> Option<Type> {
    if ty.is_int() && ty.bits() <= 32 {
        return Some(types::I32X16);
    }
    if ty.is_vector() {
        return None;
    }
    ty.by(16)
}

/// Returns the definition of a value, if it is an instruction.
pub fn definition(func: &Function, value: Value) -> Option<Inst> {
    match func.dfg.value_def(value) {
        ValueDef::Result(inst, _) => Some(inst),
        _ => None,
    }
}
