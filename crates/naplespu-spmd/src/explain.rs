//! Remarks about the instructions of the vector function.

use crate::builtins::PREFIX;
use crate::divergence::{Form, exit_targets};
use crate::emit::{Emitter, callee_name};
use crate::memory::Space;
use crate::remarks::{
    AccessKind, AccessOutcome, BranchOutcome, CallOutcome, Condition, LoopOutcome, Matter, OperationOutcome, Shape,
    TrapOutcome,
};
use crate::versions;
use cranelift_codegen::ir::{Block, Inst, Opcode, Value};

impl Emitter<'_> {
    /// Adds a remark about an instruction of the current block.
    fn explain(&mut self, inst: Inst, matter: Matter) {
        let loops = self.flow.loops_of(self.block).count();
        let version = self.remarks.version(inst);
        self.remarks.add(self.old, inst, loops, version, matter);
    }

    /// Adds a remark about the loop that a block starts, at its first instruction with a location.
    pub fn explain_loop(&mut self, header: Block) {
        let Some(around) = self.flow.starts(header).filter(|_| self.remarks.is_own_loop(header)) else {
            return;
        };
        let inside = self
            .flow
            .order
            .iter()
            .filter(|&&block| self.flow.loops.is_in_loop(block, around));
        let mut insts = inside.flat_map(|&block| self.old.layout.block_insts(block));
        let Some(inst) = insts.find(|&inst| self.remarks.is_located(self.old, inst)) else {
            return;
        };
        let outcome = if self.divergence.loops.contains(&around) {
            LoopOutcome::WhileActive
        } else if self.remarks.all_lanes_loops.contains(&header) {
            LoopOutcome::AllLanes
        } else {
            LoopOutcome::Uniform
        };
        self.explain(inst, Matter::Loop(outcome));
    }

    /// Adds a remark about a branch.
    pub fn explain_branch(&mut self, inst: Inst, condition: Value) {
        let analysis = (self.flow, self.divergence);
        let bound =
            |negated| versions::is_bound(self.old, analysis, self.block, condition, negated, versions::MAX_DEPTH);
        let condition = match self.form(condition) {
            Form::Uniform => Condition::Uniform,
            _ if bound(false) || bound(true) => Condition::Bound,
            _ => Condition::Varying,
        };
        // The remark about the loop is enough for its uniform exits.
        let around = self.flow.loops.innermost_loop(self.block);
        let leaves = |around| {
            exit_targets(self.flow, around)
                .iter()
                .any(|&to| self.flow.cfg.succ_iter(self.block).any(|next| next == to))
        };
        if condition == Condition::Uniform && around.is_some_and(leaves) {
            return;
        }
        let outcome = if self.divergence.divergent.contains(&self.block) {
            BranchOutcome::Mask
        } else {
            BranchOutcome::Stays
        };
        self.explain(inst, Matter::Branch { condition, outcome });
    }

    /// Adds a remark about an access.
    pub fn explain_access(&mut self, inst: Inst, address: Value, outcome: AccessOutcome) {
        let data = self.old.dfg.insts[inst];
        let opcode = data.opcode();
        let kind = match opcode {
            Opcode::AtomicRmw | Opcode::AtomicCas | Opcode::AtomicStore | Opcode::AtomicLoad => AccessKind::Atomic,
            _ if opcode.can_store() => AccessKind::Store,
            _ => AccessKind::Load,
        };
        let bytes = match opcode {
            Opcode::Uload8 | Opcode::Sload8 | Opcode::Istore8 => 1,
            Opcode::Uload16 | Opcode::Sload16 | Opcode::Istore16 => 2,
            _ => self.old.dfg.ctrl_typevar(inst).bytes(),
        };
        let flags = data.memflags().map(|flags| self.old.dfg.mem_flags[flags]);
        let matter = Matter::Access {
            kind,
            bytes,
            scratchpad: flags.is_some_and(|flags| self.space(flags) == Space::Scratchpad),
            shape: Shape::of_address(self.form(address), bytes),
            outcome,
        };
        self.explain(inst, matter);
    }

    /// Adds a remark about a division or another operation.
    pub fn explain_operation(&mut self, inst: Inst, outcome: OperationOutcome) {
        let opcode = self.old.dfg.insts[inst].opcode();
        let ty = self.old.dfg.ctrl_typevar(inst);
        self.explain(inst, Matter::Operation { opcode, ty, outcome });
    }

    /// Adds a remark about a trap.
    pub fn explain_trap(&mut self, inst: Inst) {
        self.explain(inst, Matter::Trap(TrapOutcome::Vector));
    }

    /// Adds a remark about a call.
    pub fn explain_call(&mut self, inst: Inst, outcome: CallOutcome) {
        let callee = callee_name(self.old, inst).map(|name| String::from_utf8_lossy(&name).into_owned());
        if callee.as_ref().is_some_and(|name| name.starts_with(PREFIX)) {
            return;
        }
        self.explain(inst, Matter::Call { callee, outcome });
    }
}
