//! Control flow, stores and calls.

use crate::emit::emitter::{Emitter, Exit, Frame, Operand, Target, Typing, Values};
use crate::emit::facts::constant;
use crate::emit::places::{self, Indexed};
use crate::emit::pointer::Root;
use crate::error::{Error, Result};
use crate::layout::{Layout, Ty, register};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, Value};
use cranelift_frontend::Variable;
use naga::{
    AtomicFunction, Barrier, BinaryOperator, Expression, Handle, Literal, LocalVariable, ScalarKind, Statement,
    SwitchCase, SwitchValue,
};
use smallvec::SmallVec;
use std::collections::HashMap;

/// The deepest chain of inlined calls.
const MAX_DEPTH: u32 = 256;

impl<'m> Emitter<'m, '_> {
    /// Emits statements. Returns whether the end of the block is unreachable.
    pub(super) fn block(&mut self, block: &'m naga::Block) -> Result<bool> {
        let mark = self.facts.mark();
        let mut ended = false;
        for (statement, span) in block.span_iter() {
            self.at(*span);
            ended = self.statement(statement)?;
            if ended {
                break;
            }
        }
        self.facts.restore(mark);
        Ok(ended)
    }

    /// Emits a statement. Returns whether the code after it is unreachable.
    fn statement(&mut self, statement: &'m Statement) -> Result<bool> {
        self.check_size()?;
        match statement {
            Statement::Emit(range) => {
                for handle in range.clone() {
                    if self.frame.typing.is_unused(handle) {
                        continue;
                    }
                    let operand = self.evaluate(handle)?;
                    self.frame.values.insert(handle, operand);
                }
            }
            Statement::Block(block) => return self.block(block),
            Statement::If {
                condition,
                accept,
                reject,
            } => return self.branch(*condition, accept, reject),
            Statement::Switch { selector, cases } => return self.switch(*selector, cases),
            Statement::Loop {
                body,
                continuing,
                break_if,
            } => return self.repeat(body, continuing, *break_if),
            Statement::Break => return self.leave(false),
            Statement::Continue => return self.leave(true),
            Statement::Return { value } => return self.give_back(*value),
            Statement::Kill => return Err(self.unsupported("discard")),
            Statement::ControlBarrier(barrier) => self.barrier(*barrier)?,
            // Accesses of a core are in program order, and its threads share all memory.
            Statement::MemoryBarrier(_) => {}
            Statement::Store { pointer, value } => {
                let pointer = self.pointer(*pointer)?;
                let values = self.value(*value)?;
                self.store(&pointer, &values)?;
            }
            Statement::Atomic {
                pointer,
                fun,
                value,
                result,
            } => {
                let pointer = self.pointer(*pointer)?;
                let value = self.single(*value)?;
                let compare = match fun {
                    AtomicFunction::Exchange { compare: Some(compare) } => Some(self.single(*compare)?),
                    _ => None,
                };
                let found = self.atomic(&pointer, *fun, value, compare)?;
                if let Some(result) = result {
                    self.frame.values.insert(*result, Operand::Value(found));
                }
            }
            Statement::WorkGroupUniformLoad { pointer, result } => {
                self.workgroup_barrier()?;
                let pointer = self.pointer(*pointer)?;
                let found = self.load(&pointer)?;
                self.workgroup_barrier()?;
                self.frame.values.insert(*result, Operand::Value(found));
            }
            Statement::Call {
                function,
                arguments,
                result,
            } => return self.inline(*function, arguments, *result),
            Statement::SubgroupBallot { result, predicate } => self.ballot(*result, *predicate)?,
            Statement::SubgroupGather { mode, argument, result } => self.gather(*mode, *argument, *result)?,
            Statement::SubgroupCollectiveOperation {
                op,
                collective_op,
                argument,
                result,
            } => self.collective(*op, *collective_op, *argument, *result)?,
            Statement::ImageStore { .. } | Statement::ImageAtomic { .. } => {
                return Err(self.unsupported("an access to a texture"));
            }
            Statement::RayQuery { .. } => return Err(self.unsupported("a ray query")),
            Statement::RayPipelineFunction(_) => return Err(self.unsupported("a ray pipeline")),
            Statement::CooperativeStore { .. } => return Err(self.unsupported("a cooperative matrix")),
        }
        Ok(false)
    }

    fn barrier(&mut self, barrier: Barrier) -> Result<()> {
        // One thread executes a subgroup, so its lanes need not wait for each other.
        if barrier == Barrier::SUB_GROUP {
            return Ok(());
        }
        self.workgroup_barrier()
    }

    fn workgroup_barrier(&mut self) -> Result<()> {
        self.call("__builtin_npu_workgroup_barrier", &[], None)?;
        Ok(())
    }

    /// Starts a block that has all its predecessors.
    fn enter(&mut self, block: Block) {
        self.builder.switch_to_block(block);
        self.builder.seal_block(block);
    }

    fn jump(&mut self, block: Block) {
        self.builder.ins().jump(block, &[]);
    }

    fn branch(
        &mut self,
        condition: Handle<Expression>,
        accept: &'m naga::Block,
        reject: &'m naga::Block,
    ) -> Result<bool> {
        let condition = self.single(condition)?;
        if let Some(constant) = constant(self.dfg(), condition) {
            return self.block(if constant != 0 { accept } else { reject });
        }
        let logical = self.logical(accept, reject)?;
        if let Some(logical) = &logical
            && logical.is_cheap
        {
            self.without_branch(condition, logical, accept)?;
            return Ok(false);
        }
        let (then, other) = (self.builder.create_block(), self.builder.create_block());
        let mark = self.facts.mark();
        if reject.is_empty() {
            // The block after the statement is the target of the branch.
            self.builder.ins().brif(condition, then, &[], other, &[]);
            self.enter(then);
            self.assume(condition, true);
            let ended = self.block(accept)?;
            self.facts.restore(mark);
            if !ended {
                self.jump(other);
            }
            self.enter(other);
            if ended {
                self.assume(condition, false);
            }
            return Ok(false);
        }
        let after = self.builder.create_block();
        self.builder.ins().brif(condition, then, &[], other, &[]);
        self.enter(then);
        self.assume(condition, true);
        let then_ended = self.block(accept)?;
        self.facts.restore(mark);
        let stored = match &logical {
            Some(logical) => Some(self.builder.use_var(logical.variable)),
            None => None,
        };
        if !then_ended {
            self.jump(after);
        }
        self.enter(other);
        self.assume(condition, false);
        let other_ended = self.block(reject)?;
        self.facts.restore(mark);
        if !other_ended {
            self.jump(after);
        }
        if then_ended && other_ended {
            return Ok(true);
        }
        self.enter(after);
        match (then_ended, other_ended) {
            (true, false) => self.assume(condition, false),
            (false, true) => self.assume(condition, true),
            _ => {}
        }
        if let (Some(logical), Some(stored)) = (logical, stored) {
            let result = self.builder.use_var(logical.variable);
            self.facts.combine(result, logical.is_or, condition, stored);
        }
        Ok(false)
    }

    fn assume(&mut self, condition: Value, holds: bool) {
        self.facts.assume(&self.builder.func.dfg, condition, holds);
    }

    /// Recognizes the statement that naga makes of `a && b` and `a || b`:
    /// `if a { t = b; } else { t = false; }` and `if !a { t = b; } else { t = true; }`.
    fn logical(&mut self, accept: &'m naga::Block, reject: &'m naga::Block) -> Result<Option<Logical>> {
        let function = self.frame.function;
        let stored = |block: &'m naga::Block| -> Option<(Handle<LocalVariable>, Handle<Expression>, &'m [Statement])> {
            let (last, before) = block.split_last()?;
            let Statement::Store { pointer, value } = last else {
                return None;
            };
            match function.expressions[*pointer] {
                Expression::LocalVariable(variable) => Some((variable, *value, before)),
                _ => None,
            }
        };
        let (Some((variable, _, first)), Some((other, default, []))) = (stored(accept), stored(reject)) else {
            return Ok(None);
        };
        let Expression::Literal(Literal::Bool(is_or)) = function.expressions[default] else {
            return Ok(None);
        };
        if variable != other {
            return Ok(None);
        }
        let Some(Root::Registers(registers)) = self.frame.locals.get(&variable) else {
            return Ok(None);
        };
        let &[register] = &registers[..] else { return Ok(None) };
        Ok(Some(Logical {
            variable: register,
            is_or,
            is_cheap: first.iter().all(|statement| self.is_cheap(statement)),
        }))
    }

    /// Returns whether a statement only evaluates cheap expressions without access to memory.
    fn is_cheap(&self, statement: &Statement) -> bool {
        let Statement::Emit(range) = statement else {
            return false;
        };
        let function = self.frame.function;
        range.clone().all(|handle| match &function.expressions[handle] {
            Expression::Load { pointer } => match function.expressions[*pointer] {
                Expression::LocalVariable(variable) => {
                    matches!(self.frame.locals.get(&variable), Some(Root::Registers(_)))
                }
                _ => false,
            },
            Expression::Binary { op, .. } => !matches!(op, BinaryOperator::Divide | BinaryOperator::Modulo),
            Expression::Unary { .. }
            | Expression::AccessIndex { .. }
            | Expression::ArrayLength(_)
            | Expression::Literal(_)
            | Expression::Constant(_)
            | Expression::Select { .. } => true,
            _ => false,
        })
    }

    /// Emits `a && b` or `a || b` without a branch.
    fn without_branch(&mut self, condition: Value, logical: &Logical, accept: &'m naga::Block) -> Result<()> {
        self.block(accept)?;
        let value = self.builder.use_var(logical.variable);
        // The condition of `a || b` is `!a`, and the result without `b` is true.
        let result = match logical.is_or {
            false => self.builder.ins().band(condition, value),
            true => {
                let negated = self.not(condition);
                self.builder.ins().bor(negated, value)
            }
        };
        self.builder.def_var(logical.variable, result);
        Ok(())
    }

    fn leave(&mut self, continues: bool) -> Result<bool> {
        let mut targets = self.frame.targets.iter_mut().rev();
        let target = match continues {
            false => targets.next(),
            true => targets.find(|target| target.continuing.is_some()),
        };
        let Some(target) = target else {
            return Err(Error::Internal("a break without a loop".to_owned()));
        };
        let block = match (continues, target.continuing) {
            (true, Some(continuing)) => {
                target.continues = true;
                continuing
            }
            _ => {
                target.breaks = true;
                target.exit
            }
        };
        self.jump(block);
        Ok(true)
    }

    fn repeat(
        &mut self,
        body: &'m naga::Block,
        continuing: &'m naga::Block,
        break_if: Option<Handle<Expression>>,
    ) -> Result<bool> {
        let header = self.builder.create_block();
        let (latch, exit) = (self.builder.create_block(), self.builder.create_block());
        let bounded = self.bounded_variables(body, continuing);
        self.jump(header);
        self.builder.switch_to_block(header);
        for (variable, bound) in bounded {
            let value = self.builder.use_var(variable);
            self.facts.know(value, bound);
        }
        self.frame.targets.push(Target::new(exit, Some(latch)));
        let mark = self.facts.mark();
        let ended = self.block(body)?;
        if !ended {
            self.jump(latch);
        }
        let Some(mut target) = self.frame.targets.pop() else {
            return Err(Error::Internal("a loop without a target".to_owned()));
        };
        if !ended || target.continues {
            self.enter(latch);
            if !self.block(continuing)? {
                match break_if {
                    Some(condition) => {
                        let condition = self.single(condition)?;
                        target.breaks = true;
                        self.builder.ins().brif(condition, exit, &[], header, &[]);
                    }
                    None => self.jump(header),
                }
            }
        }
        self.facts.restore(mark);
        self.builder.seal_block(header);
        if target.breaks {
            self.enter(exit);
        }
        Ok(!target.breaks)
    }

    /// Returns bounds that variables in registers have at the start of each iteration.
    fn bounded_variables(&mut self, body: &'m naga::Block, continuing: &'m naga::Block) -> Vec<(Variable, u32)> {
        let mut found = Vec::new();
        let counters = places::counters(self.module, &self.frame, body, continuing);
        let shrinking = places::shrinking(self.module, &self.frame, body, continuing);
        let all = counters.into_iter().map(|one| (one, false));
        for (local, shrinks) in all.chain(shrinking.into_iter().map(|one| (one, true))) {
            let Some(Root::Registers(registers)) = self.frame.locals.get(&local) else {
                continue;
            };
            let &[register] = &registers[..] else { continue };
            let before = self.builder.use_var(register);
            if self.dfg().value_type(before) != cranelift_codegen::ir::types::I32 {
                continue;
            }
            let is_signed = self.types.of(self.frame.function.local_variables[local].ty, self.span);
            let is_signed = matches!(is_signed, Ok(Ty::Scalar(scalar)) if scalar.kind == ScalarKind::Sint);
            let bound = self.facts.bound(self.dfg(), before);
            let is_nonnegative = bound <= i32::MAX as u32;
            match (shrinks, is_signed) {
                (false, true) if is_nonnegative => found.push((register, i32::MAX as u32)),
                (true, true) if is_nonnegative => found.push((register, bound)),
                (true, false) => found.push((register, bound)),
                _ => {}
            }
        }
        found
    }

    fn switch(&mut self, selector: Handle<Expression>, cases: &'m [SwitchCase]) -> Result<bool> {
        let selector = self.single(selector)?;
        let exit = self.builder.create_block();
        // A case without statements that falls through is the same as the next one.
        let mut bodies: Vec<(Block, &'m SwitchCase, SmallVec<[u32; 2]>)> = Vec::new();
        let mut default = exit;
        let mut labels = SmallVec::<[u32; 2]>::new();
        let mut has_default = false;
        for (index, case) in cases.iter().enumerate() {
            match case.value {
                SwitchValue::I32(value) => labels.push(value as u32),
                SwitchValue::U32(value) => labels.push(value),
                SwitchValue::Default => has_default = true,
            }
            if case.body.is_empty() && case.fall_through && index + 1 < cases.len() {
                continue;
            }
            let block = self.builder.create_block();
            if std::mem::take(&mut has_default) {
                default = block;
                // All values without a case of their own go there as well.
                labels.clear();
            }
            bodies.push((block, case, std::mem::take(&mut labels)));
        }
        for (block, _, labels) in &bodies {
            if labels.is_empty() {
                continue;
            }
            let mut matches = None;
            for label in labels {
                let label = self.word(*label);
                let is_it = self.builder.ins().icmp(IntCC::Equal, selector, label);
                matches = Some(match matches {
                    Some(before) => self.builder.ins().bor(before, is_it),
                    None => is_it,
                });
            }
            let Some(matches) = matches else { continue };
            let next = self.builder.create_block();
            self.builder.ins().brif(matches, *block, &[], next, &[]);
            self.enter(next);
        }
        self.jump(default);
        self.frame.targets.push(Target::new(exit, None));
        let mut is_reached = default == exit;
        for (index, (block, case, _)) in bodies.iter().enumerate() {
            self.enter(*block);
            let ended = self.block(&case.body)?;
            if ended {
                continue;
            }
            match bodies.get(index + 1) {
                Some((next, ..)) if case.fall_through => self.jump(*next),
                _ => {
                    is_reached = true;
                    self.jump(exit);
                }
            }
        }
        is_reached |= self.frame.targets.pop().is_some_and(|target| target.breaks);
        if is_reached {
            self.enter(exit);
        }
        Ok(!is_reached)
    }

    fn give_back(&mut self, value: Option<Handle<Expression>>) -> Result<bool> {
        let values = match value {
            Some(value) => self.value(value)?,
            None => Values::new(),
        };
        match &mut self.frame.exit {
            Some(exit) => {
                exit.is_reached = true;
                let block = exit.block;
                let arguments: SmallVec<[BlockArg; 4]> = values.into_iter().map(BlockArg::Value).collect();
                self.builder.ins().jump(block, &arguments);
            }
            None => {
                self.builder.ins().return_(&[]);
            }
        }
        Ok(true)
    }

    /// Emits the body of a called function. Returns whether the function never returns.
    fn inline(
        &mut self,
        callee: Handle<naga::Function>,
        arguments: &[Handle<Expression>],
        result: Option<Handle<Expression>>,
    ) -> Result<bool> {
        let depth = self.frame.exit.map_or(0, |exit| exit.depth) + 1;
        if depth > MAX_DEPTH {
            return Err(self.too_large("a chain of calls", depth.into(), MAX_DEPTH.into(), "calls"));
        }
        let function = &self.module.functions[callee];
        let mut operands = Vec::with_capacity(arguments.len());
        for argument in arguments {
            operands.push(self.operand(*argument)?);
        }
        let typing = match self.unchecked.and_then(|unchecked| unchecked.types.get(&callee)) {
            Some(types) => Typing::Inferred(types),
            None => Typing::Checked(&self.info[callee]),
        };
        let block = self.builder.create_block();
        let frame = Frame {
            function,
            typing,
            arguments: operands,
            locals: HashMap::new(),
            values: HashMap::new(),
            targets: Vec::new(),
            exit: Some(Exit {
                block,
                is_reached: false,
                depth,
            }),
        };
        let mut found = Values::new();
        if let Some(result) = &function.result {
            let ty = self.types.of(result.ty, self.span)?;
            for (scalar, _) in self.types.scalars(ty, Layout::Words, self.span)? {
                let ty = register(scalar, self.span)?;
                found.push(self.builder.append_block_param(block, ty));
            }
        }
        let span = self.span;
        let caller = std::mem::replace(&mut self.frame, frame);
        self.add_locals(&Indexed::of(self.module, function))?;
        let ended = self.block(&function.body)?;
        if !ended {
            self.jump(block);
        }
        let frame = std::mem::replace(&mut self.frame, caller);
        self.at(span);
        if ended && !frame.exit.is_some_and(|exit| exit.is_reached) {
            return Ok(true);
        }
        self.enter(block);
        if let Some(result) = result {
            self.frame.values.insert(result, Operand::Value(found));
        }
        Ok(false)
    }
}

/// A statement for `a && b` or `a || b`.
struct Logical {
    variable: Variable,
    is_or: bool,
    /// Whether evaluating `b` in any case costs less than a branch.
    is_cheap: bool,
}
