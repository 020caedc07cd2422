//! Lowers CLIF to VCode, block by block.
//!
//! Visits blocks and instructions backwards, so that all uses are known before the definition. A
//! definition that all its users folded is never lowered.

use super::context::Lower;
use super::each_part;
use super::hoist::Hoist;
use super::order::{self, BlockOrder, LoweredBlock};
use super::try_call;
use crate::abi::limit::StackLimit;
use crate::abi::sig::{CalleeSignatures, SigInfo};
use crate::error::CompileError;
use crate::inst::MInst;
use crate::isa::Isa;
use crate::provenance::{Producer, Provenance, RuleChains};
use crate::spaces::{self, Space};
use crate::vcode::{LabelledRange, Origin, VBlock, VCode, VRegs};
use cranelift_codegen::Context;
use cranelift_codegen::ir::{self, Inst, Opcode, Value, ValueLabelAssignments};
use regalloc2::{Block, RegClass};
use smallvec::{SmallVec, smallvec};

/// Lowers the function in the context. Its control flow graph and dominator tree must be up to
/// date.
///
/// # Errors
///
/// [`CompileError::Unsupported`] for an instruction that no rule covers.
pub fn lower(
    ctx: &Context,
    isa: &Isa,
    sig: SigInfo,
    callees: CalleeSignatures,
    order: &BlockOrder,
    rule_chains: RuleChains,
) -> Result<VCode, CompileError> {
    let hoist = if ctx.loop_analysis.is_valid() {
        Hoist::new(ctx, order)
    } else {
        Hoist::default()
    };
    let mut lower = Lower::new(&ctx.func, isa, sig, callees, hoist, rule_chains);
    lower.run(order)?;
    Ok(lower.vcode)
}

/// Returns whether an instruction with the opcode can produce a [constant](Lower::wide_constant) or
/// a [constant vector](Lower::constant_vector).
fn makes_constants(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Iconst
            | Opcode::F16const
            | Opcode::F32const
            | Opcode::F64const
            | Opcode::F128const
            | Opcode::Vconst
            | Opcode::Uextend
            | Opcode::Sextend
            | Opcode::Iconcat
            | Opcode::Splat
            | Opcode::ScalarToVector
            | Opcode::Insertlane
            | Opcode::Bitcast
    )
}

impl Lower<'_> {
    fn run(&mut self, order: &BlockOrder) -> Result<(), CompileError> {
        self.count_uses(order);
        self.check()?;
        if self.sig.ret_area.is_some() {
            self.ret_area = Some(self.new_vreg(RegClass::Int));
        }
        let mut ends = vec![0usize; order.blocks.len()];
        let mut blocks: Vec<VBlock> = Vec::with_capacity(order.blocks.len());
        for (index, block) in order.blocks.iter().enumerate().rev() {
            self.block = index;
            let vblock = match block {
                LoweredBlock::Clif { block, succs } => self.lower_block(*block, succs, index == 0)?,
                LoweredBlock::Edge { call, target, from } => {
                    self.origin = Origin::produced_by(Producer::Edge);
                    self.origin.provenance = self.origin.provenance.with_user(self.func.layout.last_inst(*from));
                    self.emit(MInst::Jump);
                    self.flush_current();
                    let args = if self.try_calls.contains_key(from) {
                        let args = self.try_call_args(*from, call);
                        self.flush_current();
                        args
                    } else {
                        self.block_args(call)
                    };
                    self.end_constants();
                    VBlock {
                        insts: 0..0,
                        succs: smallvec![Block::new(*target)],
                        preds: SmallVec::new(),
                        params: SmallVec::new(),
                        branch_args: smallvec![args],
                        clif: None,
                    }
                }
            };
            self.check()?;
            ends[index] = self.reversed.len();
            blocks.push(vblock);
        }
        blocks.reverse();
        self.assemble(blocks, &ends)?;
        self.check()
    }

    /// Ends lowering at the first fault, because later code would use registers without a
    /// definition.
    fn check(&mut self) -> Result<(), CompileError> {
        match self.fault.take() {
            Some(fault) => Err(fault),
            None => Ok(()),
        }
    }

    /// Counts the uses of every value in reachable code and assigns registers to each value.
    fn count_uses(&mut self, order: &BlockOrder) {
        for block in &order.blocks {
            let LoweredBlock::Clif { block, succs } = block else {
                continue;
            };
            for &param in self.func.dfg.block_params(*block) {
                self.assign_regs(param);
            }
            for inst in self.func.layout.block_insts(*block) {
                let data = &self.func.dfg.insts[inst];
                for &value in data.arguments(&self.func.dfg.value_lists) {
                    self.uses[value] += 1;
                }
                let opcode = data.opcode();
                if opcode.is_branch() {
                    self.count_passed(inst);
                    if let Some(table) = data.exception_table() {
                        self.prepare_try_call(*block, inst, table, succs);
                    }
                }
                let constant = makes_constants(opcode);
                for &result in self.func.dfg.inst_results(inst) {
                    self.assign_regs(result);
                    self.may_be_constant[result] = constant;
                }
            }
        }
    }

    /// Counts the arguments that a branch passes.
    fn count_passed(&mut self, branch: Inst) {
        let dfg = &self.func.dfg;
        for call in dfg.insts[branch].branch_destination(&dfg.jump_tables, &dfg.exception_tables) {
            for value in call.args(&dfg.value_lists).filter_map(|arg| arg.as_value()) {
                self.uses[value] += 1;
            }
        }
    }

    fn lower_block(
        &mut self,
        block: ir::Block,
        succs: &[order::Successor],
        is_entry: bool,
    ) -> Result<VBlock, CompileError> {
        let mut branch_args = SmallVec::with_capacity(succs.len());
        let mut first = true;
        let mut inst_cursor = self.func.layout.last_inst(block);
        while let Some(inst) = inst_cursor {
            self.origin = Origin {
                srcloc: self.func.srcloc(inst),
                inst: Some(inst),
                // Rules lower all other instructions.
                provenance: Provenance::produced_by(Producer::TryCall),
            };
            if first {
                // The terminator is lowered first, and the arguments that it passes are uses just
                // before it.
                self.table = order::table_entries(self.func, inst)?;
            }
            if first || self.is_needed(inst) {
                self.lower_inst(inst)?;
            }
            if first {
                for succ in succs {
                    branch_args.push(if succ.split {
                        SmallVec::new()
                    } else {
                        self.block_args(&succ.call)
                    });
                }
                self.receive_constants();
                first = false;
            }
            inst_cursor = self.func.layout.prev_inst(inst);
        }
        self.origin = Origin::produced_by(Producer::Argument);
        self.end_constants();
        let mut params = SmallVec::new();
        if is_entry {
            self.label_params(block);
            self.lower_args(block);
        } else {
            self.label_params(block);
            for &param in self.func.dfg.block_params(block) {
                if let Some(regs) = self.value_regs[param] {
                    params.extend_from_slice(regs.as_slice());
                }
            }
        }
        Ok(VBlock {
            insts: 0..0,
            succs: succs.iter().map(|s| Block::new(s.index)).collect(),
            preds: SmallVec::new(),
            params,
            branch_args,
            clif: Some(block),
        })
    }

    /// Returns whether the instruction has side effects or a lowered instruction uses one of its
    /// results.
    fn is_needed(&self, inst: Inst) -> bool {
        let dfg = &self.func.dfg;
        let used = |result: &Value| self.lowered_uses[*result] > 0 || self.masks[*result].iter().any(Option::is_some);
        if dfg.inst_results(inst).iter().any(used) {
            return true;
        }
        let data = &dfg.insts[inst];
        let opcode = data.opcode();
        let traps = if opcode.can_load() {
            !data.memflags().is_some_and(|flags| dfg.mem_flags[flags].notrap())
        } else {
            opcode.can_trap()
        };
        traps || opcode.is_call() || opcode.is_terminator() || opcode.can_store() || opcode.other_side_effects()
    }

    fn lower_inst(&mut self, inst: Inst) -> Result<(), CompileError> {
        if self.func.dfg.insts[inst].opcode().is_call() && !crate::intrinsics::is_instruction(self.func, inst) {
            // Rematerializing a constant costs less than keeping it across a call.
            self.flush_all_constants();
        }
        let func = self.func;
        let results = func.dfg.inst_results(inst);
        self.label_results(results);
        self.space = spaces::of_data(self.func, &self.func.dfg.insts[inst]);
        let output = try_call::lower(self, inst).unwrap_or_else(|| each_part::lower(self, inst));
        self.space = Space::Main;
        self.check()?;
        let Some(output) = output else {
            return Err(self.refusal(inst));
        };
        if output.len() != results.len() {
            let instruction = self.func.dfg.display_inst(inst);
            return Err(CompileError::internal(
                "vcode",
                instruction,
                "registers for every result",
            ));
        }
        for (&result, regs) in results.iter().zip(&output) {
            let Some(own) = self.value_regs[result] else { continue };
            let (own, given) = (own.as_slice(), regs.as_slice());
            let mut pairs = own.iter().zip(given);
            if own.len() != given.len() || pairs.any(|(own, given)| own.class() != given.class()) {
                let instruction = self.func.dfg.display_inst(inst);
                return Err(CompileError::internal(
                    "vcode",
                    instruction,
                    "the registers that the type of a result has",
                ));
            }
            for (&from, &to) in own.iter().zip(given) {
                let to = self.resolve(to);
                if from != to {
                    self.aliases[from.vreg()] = to;
                }
            }
        }
        self.flush_current();
        self.flush_old_constants();
        Ok(())
    }

    /// Defines the remaining constants of the block, at its start or before the loop that contains
    /// it.
    fn end_constants(&mut self) {
        for (value, reg) in self.constants.take_all() {
            match self.hoist.take(self.block, value, reg) {
                Some(other) if other == reg => {}
                Some(other) => self.aliases[reg.vreg()] = self.resolve(other),
                None => self.define(value, reg),
            }
        }
    }

    /// Adds the constants that are hoisted out of loops into this block.
    fn receive_constants(&mut self) {
        let position = self.reversed.len();
        for (value, reg) in self.hoist.hoisted_into(self.block) {
            match self.constants.get(value, position) {
                Some(other) => self.aliases[reg.vreg()] = self.resolve(other),
                None => self.constants.insert(value, reg, position),
            }
        }
    }

    /// Defines the constants without a recent use here, before their first use.
    fn flush_old_constants(&mut self) {
        if self.hoist.hoists_from(self.block) {
            return;
        }
        let position = self.reversed.len();
        for (value, reg) in self.constants.take_older_than(position) {
            self.define(value, reg);
        }
    }

    fn flush_all_constants(&mut self) {
        for (value, reg) in self.constants.take_all() {
            self.define(value, reg);
        }
    }

    fn block_args(&mut self, call: &ir::BlockCall) -> VRegs {
        let func = self.func;
        let args = call.args(&func.dfg.value_lists);
        let mut regs = VRegs::new();
        for arg in args {
            match arg.as_value() {
                Some(value) => regs.extend_from_slice(self.put_in_regs(value).as_slice()),
                None => self.set_internal(format_args!("{arg:?}"), "a value as argument of a block"),
            }
        }
        regs
    }

    fn label_results(&mut self, results: &[Value]) {
        for &result in results {
            self.label_value(result);
        }
    }

    fn label_params(&mut self, block: ir::Block) {
        for &param in self.func.dfg.block_params(block) {
            self.label_value(param);
        }
    }

    /// Records the labels of a value that the next instructions define.
    fn label_value(&mut self, value: Value) {
        let Some(labels) = &self.func.dfg.values_labels else {
            return;
        };
        let starts = match labels.get(&value) {
            Some(ValueLabelAssignments::Starts(starts)) => starts,
            Some(ValueLabelAssignments::Alias { value, .. }) => match labels.get(value) {
                Some(ValueLabelAssignments::Starts(starts)) => starts,
                _ => return,
            },
            None => return,
        };
        let Some(regs) = self.value_regs[value] else { return };
        // A label has one location, so for a value in several registers it is the low word's.
        let Some(&low) = regs.as_slice().first() else { return };
        for start in starts {
            self.labels.push((low, self.reversed.len(), start.label));
        }
    }

    /// Reverses the list of instructions and resolves aliases.
    fn assemble(&mut self, mut blocks: Vec<VBlock>, ends: &[usize]) -> Result<(), CompileError> {
        let total = self.reversed.len();
        for (index, block) in blocks.iter_mut().enumerate() {
            let start = total - ends[index];
            let end = ends.get(index + 1).map_or(total, |&next| total - next);
            block.insts = self.place(start)?..self.place(end)?;
        }
        let mut labels: Vec<LabelledRange> = Vec::with_capacity(self.labels.len());
        for &(reg, reversed, label) in &self.labels {
            labels.push(LabelledRange {
                reg: self.resolve(reg),
                start: self.place(total - reversed)?,
                end: self.place(total)?,
                label,
            });
        }
        labels.retain(|label| label.start < label.end);
        labels.dedup();
        self.vcode.labels = labels;
        self.reversed.reverse();
        self.origins.reverse();
        self.vcode.insts = std::mem::take(&mut self.reversed);
        self.vcode.origins = std::mem::take(&mut self.origins);
        self.vcode.blocks = blocks;
        self.vcode.rule_chains = std::mem::take(&mut self.rule_chains);
        self.vcode.resolve(&self.aliases)?;
        self.vcode.incoming_args = self.sig.stack_args;
        self.vcode.popped = self.sig.popped;
        self.vcode.stack_limit = StackLimit::new(self.func, &self.sig)
            .map_err(|_| CompileError::internal("vcode", "stack_limit", "a stack limit that validation accepts"))?;
        Ok(())
    }

    fn place(&self, index: usize) -> Result<u32, CompileError> {
        u32::try_from(index).map_err(|_| CompileError::TooLarge("the function has too many instructions".to_owned()))
    }
}
