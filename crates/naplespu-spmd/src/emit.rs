//! Writes the vector function, block by block in linear order.
//!
//! Values that other blocks use are variables of `cranelift-frontend`, which makes them SSA again:
//! after linearization, a definition need not dominate its uses any more. The mask of a block is a
//! variable too, to which each edge into the block adds its lanes.

use crate::divergence::{Divergence, Form, definition, exit_targets, lanes_type};
use crate::error::Error;
use crate::linearize::Flow;
use crate::names::external_name;
use crate::options::Options;
use crate::remarks::Remarks;
use crate::{builtins, facts, normalize, slots, versions};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, Block, BlockArg, ExternalName, Function, Inst, InstBuilder, InstBuilderBase, InstructionData, Layout,
    Opcode, Signature, StackSlot, Type, UserFuncName, Value, types,
};
use cranelift_codegen::isa::TargetFrontendConfig;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use cranelift_naplespu::intrinsics;
use smallvec::{SmallVec, smallvec};
use std::collections::{BTreeMap, BTreeSet};

/// One value of the vector function for each sixteen lanes, or a single scalar.
pub type Parts = SmallVec<[Value; 4]>;

/// Lanes of a vector register.
pub const LANES: u32 = 16;

/// A mask of sixteen lanes, all active.
pub const ALL_LANES: i64 = 0xffff;

/// The functions that a kernel can call, by name.
pub type Callees<'a> = BTreeMap<Vec<u8>, &'a Function>;

/// Returns the vector version of a dispatch function, and the names of the callees of which it
/// calls vector versions.
pub fn vectorize(
    mut func: Function,
    callees: &Callees<'_>,
    options: &Options,
    remarks: &mut Remarks,
) -> Result<(Function, Vec<Vec<u8>>), Error> {
    slots::run(&mut func, options.lanes)?;
    let name = func.name.clone();
    emit(func, (callees, options), Form::Uniform, name, remarks)
}

/// Returns the vector version of a callee: each parameter and result is the vectors of all lanes.
pub fn vectorize_callee(
    func: &Function,
    callees: &Callees<'_>,
    options: &Options,
    remarks: &mut Remarks,
) -> Result<(Function, Vec<Vec<u8>>), Error> {
    let name = vector_name(&crate::names::name(func), options.lanes);
    emit(
        func.clone(),
        (callees, options),
        Form::Lanes,
        UserFuncName::testcase(name),
        remarks,
    )
}

/// Returns the name of the vector version of a callee.
fn vector_name(name: &[u8], lanes: u32) -> Vec<u8> {
    let mut name = name.to_vec();
    name.extend_from_slice(format!("_x{lanes}").as_bytes());
    name
}

/// Returns whether a function only computes its results from its arguments. Recursive functions
/// count as others.
pub fn is_pure(func: &Function, callees: &Callees<'_>) -> bool {
    let (mut waiting, mut seen) = (vec![func], BTreeSet::new());
    while let Some(func) = waiting.pop() {
        let insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
        for inst in insts {
            let opcode = func.dfg.insts[inst].opcode();
            if opcode == Opcode::Call {
                let callee = callee_name(func, inst).and_then(|name| callees.get(&name));
                match callee {
                    Some(callee) if seen.insert(crate::names::name(callee)) => waiting.push(callee),
                    // A callee that was seen before may be a recursive one.
                    _ => return false,
                }
                continue;
            }
            let effects = opcode.can_load() || opcode.can_store() || opcode.can_trap() || opcode.is_call();
            if effects || (opcode.other_side_effects() && !opcode.is_terminator()) {
                return false;
            }
        }
    }
    true
}

/// Returns the name of the function that an instruction calls.
pub fn callee_name(func: &Function, inst: Inst) -> Option<Vec<u8>> {
    let InstructionData::Call { func_ref, .. } = func.dfg.insts[inst] else {
        return None;
    };
    external_name(&func.dfg.ext_funcs[func_ref].name)
}

fn emit(
    mut func: Function,
    (callees, options): (&Callees<'_>, &Options),
    params: Form,
    name: UserFuncName,
    remarks: &mut Remarks,
) -> Result<(Function, Vec<Vec<u8>>), Error> {
    normalize::run(&mut func)?;
    let is_pure_call = |func: &Function, inst: Inst| match callee_name(func, inst) {
        Some(name) if is_uniform_intrinsic(&name) => true,
        Some(name) => callees.get(&name).is_some_and(|callee| is_pure(callee, callees)),
        None => false,
    };
    if params == Form::Uniform {
        versions::run(&mut func, is_pure_call, remarks)?;
        normalize::run(&mut func)?;
    }
    let flow = Flow::new(&func);
    let divergence = Divergence::new(&func, &flow, params, |inst| is_pure_call(&func, inst));
    let alignment = facts::alignment(&func, &flow.order, options, facts::ALIGN_OF_LANE_0);
    let mut new = func.clone();
    new.layout = Layout::new();
    new.name = name;
    let parts = (options.lanes / LANES) as usize;
    if params == Form::Lanes {
        new.signature = vector_signature(&func, &func.signature, parts)?;
    }
    let mut context = FunctionBuilderContext::new();
    let mut emitter = Emitter {
        old: &func,
        flow: &flow,
        divergence: &divergence,
        alignment: &alignment,
        callees,
        lanes: options.lanes,
        parts,
        builder: FunctionBuilder::new(&mut new, &mut context),
        intrinsics: intrinsics::Builder::new(),
        vars: BTreeMap::new(),
        left: BTreeMap::new(),
        masks: BTreeMap::new(),
        blocks: BTreeMap::new(),
        waiting: BTreeMap::new(),
        first_edge: BTreeMap::new(),
        locals: BTreeMap::new(),
        materialized: BTreeMap::new(),
        block: flow.order.first().copied().unwrap_or(Block::from_u32(0)),
        mask: None,
        slots: Vec::new(),
        called: BTreeSet::new(),
        imports: BTreeMap::new(),
        remarks,
    };
    emitter.run()?;
    let called = std::mem::take(&mut emitter.called);
    let Emitter { mut builder, .. } = emitter;
    builder.seal_all_blocks();
    builder.finalize(frontend_config());
    Ok((new, called.into_iter().collect()))
}

/// Returns the facts that `FunctionBuilder::finalize` wants; addresses have 32 bits.
fn frontend_config() -> TargetFrontendConfig {
    TargetFrontendConfig {
        default_call_conv: cranelift_codegen::isa::CallConv::SystemV,
        pointer_width: target_lexicon::PointerWidth::U32,
        page_size_align_log2: 0,
    }
}

/// Returns whether an intrinsic of the machine has the same result in all lanes.
pub fn is_uniform_intrinsic(name: &[u8]) -> bool {
    let Some(name) = name.strip_prefix(builtins::PREFIX.as_bytes()) else {
        return false;
    };
    let uniform: [&[u8]; 6] = [
        b"thread_id",
        b"tile_id",
        b"core_id",
        b"thread_count",
        b"read_control_reg",
        b"barrier",
    ];
    uniform.contains(&name)
}

/// Returns the signature of the vector version of a function.
pub fn vector_signature(func: &Function, scalar: &Signature, parts: usize) -> Result<Signature, Error> {
    let mut vector = Signature::new(scalar.call_conv);
    let of = |params: &[AbiParam]| -> Result<Vec<AbiParam>, Error> {
        let mut all = Vec::new();
        for param in params {
            let ty = lanes_type(param.value_type).ok_or_else(|| Error::Internal {
                function: func.name.to_string(),
                expected: "a vector type",
            })?;
            all.extend((0..parts).map(|_| AbiParam::new(ty)));
        }
        Ok(all)
    };
    vector.params = of(&scalar.params)?;
    vector.returns = of(&scalar.returns)?;
    Ok(vector)
}

/// The state while the vector function is written.
pub struct Emitter<'a> {
    pub old: &'a Function,
    pub flow: &'a Flow,
    pub divergence: &'a Divergence,
    pub alignment: &'a BTreeMap<Value, u32>,
    pub callees: &'a Callees<'a>,
    pub lanes: u32,
    /// Vectors of a varying value.
    pub parts: usize,
    pub builder: FunctionBuilder<'a>,
    pub intrinsics: intrinsics::Builder,
    /// Variables of values that other blocks use.
    vars: BTreeMap<Value, SmallVec<[Variable; 4]>>,
    /// Variables of values after a loop that the lanes leave in different iterations.
    left: BTreeMap<Value, SmallVec<[Variable; 4]>>,
    masks: BTreeMap<Block, SmallVec<[Variable; 4]>>,
    blocks: BTreeMap<Block, Block>,
    /// Positions of the blocks for which lanes wait while this block is executed.
    waiting: BTreeMap<Block, BTreeSet<usize>>,
    /// The first forward predecessor of each block in linear order.
    first_edge: BTreeMap<Block, Block>,
    /// Values of the current block.
    locals: BTreeMap<Value, Parts>,
    /// Vectors of uniform, linear and boolean values in the current block.
    materialized: BTreeMap<Value, Parts>,
    /// The current block of the old function.
    pub block: Block,
    /// The active lanes of the current block; all if `None`.
    pub mask: Option<Parts>,
    /// Stack slots for the lanes of values, reused from one operation to the next.
    pub slots: Vec<StackSlot>,
    /// Names of callees of which vector versions are called.
    pub called: BTreeSet<Vec<u8>>,
    /// Declared vector versions.
    pub imports: BTreeMap<Vec<u8>, cranelift_codegen::ir::FuncRef>,
    pub remarks: &'a mut Remarks,
}

impl Emitter<'_> {
    fn run(&mut self) -> Result<(), Error> {
        self.declare()?;
        let order = self.flow.order.clone();
        for (index, &block) in order.iter().enumerate() {
            let new = self.blocks[&block];
            self.builder.switch_to_block(new);
            self.locals.clear();
            self.materialized.clear();
            self.block = block;
            self.builder.set_srcloc(Default::default());
            if index == 0 {
                self.enter_function(block)?;
            }
            self.load_mask(block);
            self.skip_if_empty(block)?;
            self.reset_inner(self.flow.starts(block), block)?;
            self.explain_loop(block);
            let params = self.old.dfg.block_params(block).to_vec();
            for param in params {
                self.update_left(param)?;
            }
            let insts: Vec<Inst> = self.old.layout.block_insts(block).collect();
            for inst in insts {
                self.builder.set_srcloc(self.old.srcloc(inst));
                if self.old.dfg.insts[inst].opcode().is_terminator() {
                    self.terminator(inst)?;
                } else {
                    self.instruction(inst)?;
                }
            }
        }
        Ok(())
    }

    /// Declares blocks and variables.
    fn declare(&mut self) -> Result<(), Error> {
        let mut outside = BTreeSet::new();
        for &block in &self.flow.order {
            let new = self.builder.create_block();
            self.blocks.insert(block, new);
            for inst in self.old.layout.block_insts(block) {
                for value in self.old.dfg.inst_values(inst) {
                    let defined = definition(self.old, value).and_then(|inst| self.old.layout.inst_block(inst));
                    if defined != Some(block) {
                        outside.insert(value);
                    }
                }
            }
            let mut preds: Vec<Block> = self.flow.cfg.pred_iter(block).map(|pred| pred.block).collect();
            preds.retain(|&pred| !self.flow.is_back_edge(pred, block));
            if let Some(&first) = preds.iter().min_by_key(|pred| self.flow.position[pred]) {
                self.first_edge.insert(block, first);
            }
            if self.divergence.masked.contains(&block) {
                let mask = (0..self.parts).map(|_| self.builder.declare_var(types::I32)).collect();
                self.masks.insert(block, mask);
            }
            outside.extend(self.old.dfg.block_params(block));
        }
        for value in outside {
            let vars = self.declare_as(value, self.divergence.form(value))?;
            self.vars.insert(value, vars);
        }
        for &value in &self.divergence.leave_loops {
            let vars = self.declare_as(value, self.divergence.varying(value))?;
            self.left.insert(value, vars);
        }
        Ok(())
    }

    fn declare_as(&mut self, value: Value, form: Form) -> Result<SmallVec<[Variable; 4]>, Error> {
        let ty = self.old.dfg.value_type(value);
        Ok(match form {
            Form::Uniform | Form::Linear(_) => smallvec![self.builder.declare_var(ty)],
            Form::Bits => (0..self.parts).map(|_| self.builder.declare_var(types::I32)).collect(),
            Form::Lanes => {
                let ty = self.lanes_of(value)?;
                (0..self.parts).map(|_| self.builder.declare_var(ty)).collect()
            }
        })
    }

    /// Returns the type of a vector of lanes of this value.
    pub fn lanes_of(&self, value: Value) -> Result<Type, Error> {
        let ty = self.old.dfg.value_type(value);
        lanes_type(ty).ok_or_else(|| match definition(self.old, value) {
            Some(inst) => self.unsupported(inst, "a vector that differs between the lanes"),
            None => self.internal("a vector type"),
        })
    }

    fn enter_function(&mut self, block: Block) -> Result<(), Error> {
        let new = self.blocks[&block];
        self.builder.append_block_params_for_function_params(new);
        let mut values = self.builder.block_params(new).to_vec().into_iter();
        let params = self.old.dfg.block_params(block).to_vec();
        for &param in &params {
            let (count, form) = match self.divergence.form(param) {
                form @ (Form::Uniform | Form::Linear(_)) => (1, form),
                form => (self.parts, form),
            };
            let mut given: Parts = values.by_ref().take(count).collect();
            if form == Form::Bits {
                given = self.nonzero(&given, types::I8);
            }
            self.define(param, given)?;
        }
        self.reset_inner(None, block)
    }

    /// Clears the masks, and the parameters of joined blocks, of the blocks whose innermost loop is
    /// `around`; `None` stands for the blocks outside of loops. The headers of loops in `around`
    /// are included, the header of `around` is not.
    fn reset_inner(
        &mut self,
        around: Option<cranelift_codegen::loop_analysis::Loop>,
        block: Block,
    ) -> Result<(), Error> {
        if around.is_none() && self.flow.order.first() != Some(&block) {
            return Ok(());
        }
        for inner in self.flow.order.clone() {
            let of_inner = match self.flow.starts(inner) {
                Some(starts) => self.flow.loops.loop_parent(starts),
                None => self.flow.loops.innermost_loop(inner),
            };
            if of_inner != around || inner == block {
                continue;
            }
            if let Some(mask) = self.masks.get(&inner).cloned() {
                let zero = self.builder.ins().iconst(types::I32, 0);
                for part in mask {
                    self.builder.def_var(part, zero);
                }
            }
            if self.divergence.joined.contains(&inner) {
                for param in self.old.dfg.block_params(inner).to_vec() {
                    let zero = self.zero_of(param)?;
                    self.assign_vars(&self.vars[&param].clone(), &zero);
                }
            }
        }
        Ok(())
    }

    fn zero_of(&mut self, value: Value) -> Result<Parts, Error> {
        let zero = match self.divergence.form(value) {
            Form::Lanes => {
                let ty = self.lanes_of(value)?;
                self.zero_vector(ty)
            }
            Form::Bits => self.builder.ins().iconst(types::I32, 0),
            Form::Uniform | Form::Linear(_) => return Err(self.internal("a varying parameter of a joined block")),
        };
        Ok(smallvec![zero; self.parts])
    }

    fn assign_vars(&mut self, vars: &[Variable], values: &[Value]) {
        for (&var, &value) in vars.iter().zip(values) {
            self.builder.def_var(var, value);
        }
    }

    fn load_mask(&mut self, block: Block) {
        self.mask = self
            .masks
            .get(&block)
            .cloned()
            .map(|vars| vars.iter().map(|&var| self.builder.use_var(var)).collect());
    }

    /// Jumps over the block if no lane is active and that is worth a branch or necessary.
    fn skip_if_empty(&mut self, block: Block) -> Result<(), Error> {
        let waiting = self.waiting.get(&block).cloned().unwrap_or_default();
        let Some(mask) = self.mask.clone() else {
            return Ok(());
        };
        if waiting.is_empty() || !self.needs_lane(block) {
            return Ok(());
        }
        let any = self.any(&mask);
        let body = self.builder.create_block();
        let next = self.go_to(waiting)?;
        self.builder.ins().brif(any, body, &[], next, &[]);
        self.builder.switch_to_block(body);
        Ok(())
    }

    /// Returns whether a block must not be executed, or costs too much, if no lane is active.
    fn needs_lane(&self, block: Block) -> bool {
        let insts: Vec<Inst> = self.old.layout.block_insts(block).collect();
        let plain = |&inst: &Inst| {
            let opcode = self.old.dfg.insts[inst].opcode();
            opcode == Opcode::Jump
                || !(opcode.is_terminator()
                    || opcode.is_call()
                    || opcode.can_load()
                    || opcode.can_store()
                    || opcode.can_trap()
                    || opcode.other_side_effects())
        };
        let leaves = self
            .flow
            .cfg
            .succ_iter(block)
            .any(|successor| self.flow.is_back_edge(block, successor) || self.flow.starts(successor).is_some());
        leaves || insts.len() > MAX_UNGUARDED || !insts.iter().all(plain)
    }

    /// Returns the block that is executed next if lanes go to these positions or wait there, and
    /// records that the others wait. If a loop ends with that, the lanes that left it in earlier
    /// iterations wait as well.
    fn go_to(&mut self, mut targets: BTreeSet<usize>) -> Result<Block, Error> {
        if let Some(&first) = targets.first() {
            targets.extend(self.left_before(self.flow.order[first]));
        }
        let Some(first) = targets.pop_first() else {
            return Err(self.internal("a next block"));
        };
        let next = self.flow.order[first];
        self.waiting.entry(next).or_default().extend(targets);
        Ok(self.blocks[&next])
    }

    /// Returns the positions of the blocks to which lanes may have left in earlier iterations of
    /// the loops that contain this block but not `target`.
    fn left_before(&self, target: Block) -> BTreeSet<usize> {
        let left = self
            .flow
            .loops_of(self.block)
            .filter(|&around| self.divergence.loops.contains(&around) && !self.flow.loops.is_in_loop(target, around));
        let targets = left.flat_map(|around| exit_targets(self.flow, around));
        let positions = targets.map(|target| self.flow.position[&target]);
        positions.filter(|&at| at > self.flow.position[&self.block]).collect()
    }

    fn terminator(&mut self, inst: Inst) -> Result<(), Error> {
        let block = self.block;
        if let InstructionData::Brif { arg, .. } | InstructionData::BranchTable { arg, .. } = self.old.dfg.insts[inst] {
            self.explain_branch(inst, arg);
        }
        let waiting = self.waiting.get(&block).cloned().unwrap_or_default();
        let mask = self.mask.clone();
        match self.old.dfg.insts[inst] {
            InstructionData::Jump { .. } => {
                let (target, args) = self.edge(inst, 0);
                self.take_edge(mask.as_ref(), target, &args, false)?;
                self.jump_on(target, waiting)
            }
            InstructionData::Brif { arg, .. } if !self.divergence.divergent.contains(&block) => {
                let condition = self.scalar(arg)?;
                let [then, other] = std::array::from_fn(|_| self.builder.create_block());
                self.builder.ins().brif(condition, then, &[], other, &[]);
                let (locals, materialized) = (self.locals.clone(), self.materialized.clone());
                for (index, edge_block) in [then, other].into_iter().enumerate() {
                    self.builder.switch_to_block(edge_block);
                    self.locals.clone_from(&locals);
                    self.materialized.clone_from(&materialized);
                    let (target, args) = self.edge(inst, index);
                    self.take_edge(mask.as_ref(), target, &args, false)?;
                    self.jump_on(target, waiting.clone())?;
                }
                Ok(())
            }
            InstructionData::Brif { arg, .. } => {
                let condition = self.condition(arg)?;
                let taken = self.and_mask(mask.as_ref(), &condition);
                let not_taken = self.and_not_mask(mask.as_ref(), &condition);
                self.diverge(inst, &[taken, not_taken], waiting)
            }
            InstructionData::BranchTable { arg, table, .. } => self.switch(inst, arg, table, waiting),
            _ => self.end(inst, &waiting),
        }
    }

    /// Ends the function: a return or a trap.
    fn end(&mut self, inst: Inst, waiting: &BTreeSet<usize>) -> Result<(), Error> {
        let data = self.old.dfg.insts[inst];
        match data.opcode() {
            Opcode::Return => {
                if !waiting.is_empty() {
                    return Err(self.internal("a return without waiting lanes"));
                }
                let mut values = Vec::new();
                for value in self.old.dfg.inst_args(inst).to_vec() {
                    values.extend(self.vectors(value)?);
                }
                self.builder.ins().return_(&values);
                Ok(())
            }
            Opcode::Trap => {
                self.builder.ins().build(data, types::INVALID);
                Ok(())
            }
            _ => Err(self.unsupported(inst, "a branch of this kind")),
        }
    }

    fn switch(
        &mut self,
        inst: Inst,
        arg: Value,
        table: cranelift_codegen::ir::JumpTable,
        waiting: BTreeSet<usize>,
    ) -> Result<(), Error> {
        let count = self.old.dfg.jump_tables[table].as_slice().len();
        let mask = self.mask.clone();
        if !self.divergence.divergent.contains(&self.block) {
            let index = self.scalar(arg)?;
            let edges: Vec<Block> = (0..=count).map(|_| self.builder.create_block()).collect();
            let calls: Vec<_> = edges
                .iter()
                .map(|&edge| self.builder.func.dfg.block_call(edge, &[]))
                .collect();
            let data = cranelift_codegen::ir::JumpTableData::new(calls[0], &calls[1..]);
            let new_table = self.builder.create_jump_table(data);
            self.builder.ins().br_table(index, new_table);
            let (locals, materialized) = (self.locals.clone(), self.materialized.clone());
            for (number, edge_block) in edges.into_iter().enumerate() {
                self.builder.switch_to_block(edge_block);
                self.locals.clone_from(&locals);
                self.materialized.clone_from(&materialized);
                let (target, args) = self.edge(inst, number);
                self.take_edge(mask.as_ref(), target, &args, false)?;
                self.jump_on(target, waiting.clone())?;
            }
            return Ok(());
        }
        // The lanes of each entry; the default, which is edge 0, has the others.
        let index = self.vectors(arg)?;
        let all = self.builder.ins().iconst(types::I32, ALL_LANES);
        let mut rest = mask.clone().unwrap_or_else(|| smallvec![all; self.parts]);
        let mut lanes = vec![Parts::new()];
        for entry in 0..count {
            let number = self.builder.ins().iconst(types::I32, entry as i64);
            let number = self.builder.ins().splat(types::I32X16, number);
            let mut of_entry = Parts::new();
            for part in 0..self.parts {
                let equal = self.builder.ins().icmp(IntCC::Equal, index[part], number);
                let equal = self.builder.ins().vhigh_bits(types::I32, equal);
                let taken = self.builder.ins().band(rest[part], equal);
                rest[part] = self.builder.ins().bxor(rest[part], taken);
                of_entry.push(taken);
            }
            lanes.push(of_entry);
        }
        lanes[0] = rest;
        self.diverge(inst, &lanes, waiting)
    }

    /// Takes all edges of a branch at once, each with its lanes.
    fn diverge(&mut self, inst: Inst, lanes: &[Parts], mut targets: BTreeSet<usize>) -> Result<(), Error> {
        let mut seen = BTreeSet::new();
        for (number, lanes) in lanes.iter().enumerate() {
            let (target, args) = self.edge(inst, number);
            self.take_edge(Some(lanes), target, &args, !seen.insert(target))?;
            targets.insert(self.flow.position[&target]);
        }
        let next = self.go_to(targets)?;
        self.builder.ins().jump(next, &[]);
        Ok(())
    }

    /// Jumps to a block, or first to blocks before it in which lanes wait. At the end of a loop
    /// that lanes leave in different iterations, this is a branch on whether lanes are left.
    fn jump_on(&mut self, target: Block, mut waiting: BTreeSet<usize>) -> Result<(), Error> {
        if self.flow.is_back_edge(self.block, target) {
            let header = self.blocks[&target];
            let divergent = self
                .flow
                .starts(target)
                .is_some_and(|around| self.divergence.loops.contains(&around));
            match self.mask.clone() {
                Some(mask) if divergent && !waiting.is_empty() => {
                    let any = self.any(&mask);
                    let next = self.go_to(waiting)?;
                    self.builder.ins().brif(any, header, &[], next, &[]);
                }
                _ => {
                    self.builder.ins().jump(header, &[]);
                }
            }
            return Ok(());
        }
        waiting.insert(self.flow.position[&target]);
        let next = self.go_to(waiting)?;
        self.builder.ins().jump(next, &[]);
        Ok(())
    }

    fn edge(&self, inst: Inst, number: usize) -> (Block, Vec<BlockArg>) {
        let dfg = &self.old.dfg;
        let call = dfg.insts[inst].branch_destination(&dfg.jump_tables, &dfg.exception_tables)[number];
        (call.block(&dfg.value_lists), call.args(&dfg.value_lists).collect())
    }

    /// Passes arguments and lanes to a block. `again` is set if the same branch has passed others
    /// to it.
    fn take_edge(&mut self, lanes: Option<&Parts>, target: Block, args: &[BlockArg], again: bool) -> Result<(), Error> {
        let params = self.old.dfg.block_params(target).to_vec();
        let mut values = Vec::new();
        for (&param, arg) in params.iter().zip(args) {
            let arg = arg
                .as_value()
                .ok_or_else(|| self.internal("a value as block argument"))?;
            values.push(self.as_form(arg, self.divergence.form(param))?);
        }
        let from = self.block;
        // Lanes that left the loop in earlier iterations are already in the target.
        let accumulates = self
            .flow
            .loops_of(from)
            .any(|around| self.divergence.loops.contains(&around) && !self.flow.loops.is_in_loop(target, around));
        let back = self.flow.is_back_edge(from, target);
        let joined = self.divergence.joined.contains(&target) && !back;
        let first = self.first_edge.get(&target) == Some(&from) && !again;
        let plain = back || !joined || (first && !accumulates);
        for (param, new) in params.into_iter().zip(values) {
            let vars = self.vars[&param].clone();
            let new = match lanes {
                Some(lanes) if !plain => {
                    let old: Parts = vars.iter().map(|&var| self.builder.use_var(var)).collect();
                    self.mix(lanes, &new, &old)?
                }
                _ => new,
            };
            self.assign_vars(&vars, &new);
        }
        if let Some(vars) = self.masks.get(&target).cloned() {
            let all = self.builder.ins().iconst(types::I32, ALL_LANES);
            let lanes = lanes.cloned().unwrap_or_else(|| smallvec![all; self.parts]);
            for (&var, &lanes) in vars.iter().zip(&lanes) {
                let lanes = if plain {
                    lanes
                } else {
                    let old = self.builder.use_var(var);
                    self.builder.ins().bor(old, lanes)
                };
                self.builder.def_var(var, lanes);
            }
        }
        Ok(())
    }

    /// Defines a value in its own form.
    pub fn define(&mut self, value: Value, parts: Parts) -> Result<(), Error> {
        if let Some(vars) = self.vars.get(&value).cloned() {
            self.assign_vars(&vars, &parts);
        }
        self.locals.insert(value, parts);
        self.update_left(value)
    }

    /// Records the value for lanes that may leave the loop in this iteration.
    fn update_left(&mut self, value: Value) -> Result<(), Error> {
        let Some(vars) = self.left.get(&value).cloned() else {
            return Ok(());
        };
        let new = self.as_form(value, self.divergence.varying(value))?;
        let new = match self.mask.clone() {
            Some(mask) => {
                let old: Parts = vars.iter().map(|&var| self.builder.use_var(var)).collect();
                self.mix(&mask, &new, &old)?
            }
            None => new,
        };
        self.assign_vars(&vars, &new);
        Ok(())
    }

    /// Returns a value in the form that it has in the current block.
    pub fn get(&mut self, value: Value) -> Result<Parts, Error> {
        if self.divergence.leaves_loop(self.flow, self.block, value) {
            let vars = self
                .left
                .get(&value)
                .cloned()
                .ok_or_else(|| self.internal("a value after its loop"))?;
            return Ok(vars.iter().map(|&var| self.builder.use_var(var)).collect());
        }
        if let Some(parts) = self.locals.get(&value) {
            return Ok(parts.clone());
        }
        let vars = self
            .vars
            .get(&value)
            .cloned()
            .ok_or_else(|| self.internal("a definition before its use"))?;
        let parts: Parts = vars.iter().map(|&var| self.builder.use_var(var)).collect();
        self.locals.insert(value, parts.clone());
        Ok(parts)
    }

    /// Returns the form of a value in the current block.
    pub fn form(&self, value: Value) -> Form {
        self.divergence.form_at(self.flow, self.block, value)
    }

    /// Returns a uniform value, or lane 0 of a linear one.
    pub fn scalar(&mut self, value: Value) -> Result<Value, Error> {
        match self.form(value) {
            Form::Uniform | Form::Linear(_) => Ok(self.get(value)?[0]),
            Form::Bits | Form::Lanes => Err(self.internal("a uniform value")),
        }
    }

    fn as_form(&mut self, value: Value, form: Form) -> Result<Parts, Error> {
        match form {
            Form::Lanes => self.vectors(value),
            Form::Bits => self.condition(value),
            Form::Uniform | Form::Linear(_) => Ok(smallvec![self.scalar(value)?]),
        }
    }

    /// Returns a value as vectors.
    pub fn vectors(&mut self, value: Value) -> Result<Parts, Error> {
        let form = self.form(value);
        if form == Form::Lanes {
            return self.get(value);
        }
        if let Some(parts) = self.materialized.get(&value) {
            return Ok(parts.clone());
        }
        let raw = self.get(value)?;
        let ty = self.lanes_of(value)?;
        let parts: Parts = match form {
            Form::Lanes => raw,
            Form::Uniform => {
                let scalar = self.widened(raw[0]);
                let vector = self.builder.ins().splat(ty, scalar);
                smallvec![vector; self.parts]
            }
            Form::Linear(stride) => {
                let base = self.builder.ins().splat(ty, raw[0]);
                let steps = self.steps(stride);
                steps.iter().map(|&step| self.builder.ins().iadd(base, step)).collect()
            }
            Form::Bits => {
                let [one, zero] = [1, 0].map(|bit| {
                    let bit = self.builder.ins().iconst(types::I32, bit);
                    self.builder.ins().splat(types::I32X16, bit)
                });
                let (ones, zeros) = (smallvec![one; self.parts], smallvec![zero; self.parts]);
                self.mix(&raw, &ones, &zeros)?
            }
        };
        self.materialized.insert(value, parts.clone());
        Ok(parts)
    }

    /// Returns a value as lanes for which it is not zero. Bits of inactive lanes are undefined.
    pub fn condition(&mut self, value: Value) -> Result<Parts, Error> {
        let raw = self.get(value)?;
        let ty = self.old.dfg.value_type(value);
        Ok(match self.form(value) {
            Form::Bits => raw,
            Form::Uniform => {
                let all = self.builder.ins().iconst(types::I32, ALL_LANES);
                let none = self.builder.ins().iconst(types::I32, 0);
                let lanes = self.builder.ins().select(raw[0], all, none);
                smallvec![lanes; self.parts]
            }
            Form::Linear(_) | Form::Lanes => {
                let vectors = self.vectors(value)?;
                self.nonzero(&vectors, ty)
            }
        })
    }

    /// Returns an error about an instruction of the old function.
    pub fn unsupported(&self, inst: Inst, reason: &'static str) -> Error {
        Error::Unsupported {
            function: self.old.name.to_string(),
            instruction: self.old.dfg.display_inst(inst).to_string(),
            location: self.old.srcloc(inst),
            reason,
        }
    }

    /// Returns an internal error.
    pub fn internal(&self, expected: &'static str) -> Error {
        Error::Internal {
            function: self.old.name.to_string(),
            expected,
        }
    }

    /// Returns the vector version of a callee, declared in the new function.
    pub fn vector_callee(
        &mut self,
        name: &[u8],
        signature: &Signature,
    ) -> Result<cranelift_codegen::ir::FuncRef, Error> {
        if let Some(&callee) = self.imports.get(name) {
            return Ok(callee);
        }
        let signature = vector_signature(self.old, signature, self.parts)?;
        let signature = self.builder.import_signature(signature);
        let callee = self.builder.import_function(cranelift_codegen::ir::ExtFuncData {
            name: ExternalName::testcase(vector_name(name, self.lanes)),
            signature,
            colocated: true,
            patchable: false,
        });
        self.imports.insert(name.to_vec(), callee);
        self.called.insert(name.to_vec());
        Ok(callee)
    }
}

/// Number of instructions of a block that is executed even if no lane is active: fewer than the
/// test and branch around it cost when it is taken.
const MAX_UNGUARDED: usize = 8;
