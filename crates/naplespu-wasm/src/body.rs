//! Translates function bodies: validates instructions and translates them in order; blocks,
//! branches and calls.

use crate::emit::Emitter;
use crate::error::{Result, WasmError};
use crate::exceptions::Callee;
use crate::memory::Place;
use crate::traps;
use crate::types::{ValueType, unsupported, value_type};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, BlockArg, Inst, InstBuilder, JumpTableData, SourceLoc, Value, types};
use cranelift_frontend::Variable;
use wasmparser::{
    BlockType, BrTable, FuncToValidate, FuncValidatorAllocations, FunctionBody, Operator, ValidatorResources,
};

/// An open block, loop or `if`.
pub(crate) struct Frame {
    /// The target of branches to it.
    pub target: Block,
    /// The number of values that branches to it pass.
    arity: usize,
    /// The block after it.
    end: Block,
    /// The height of the value stack below its operands.
    height: usize,
    /// The `else` arm of an `if` with its arguments, until the `else` is reached.
    other: Option<(Block, Vec<Value>)>,
    is_loop: bool,
    /// The handlers of a `try_table`.
    pub handlers: Vec<crate::exceptions::Handler>,
    /// The checks that dominate its arms and its end.
    checks: Place,
}

/// A function body during translation.
pub(crate) struct Body<'t, 'e, 'a, 'm, 'b> {
    pub emitter: &'t mut Emitter<'e, 'a, 'm, 'b>,
    locals: Vec<Variable>,
    stack: Vec<Value>,
    pub frames: Vec<Frame>,
    pub reachable: bool,
    /// The number of open blocks in unreachable code.
    skipped: usize,
    /// The offset of the current instruction.
    pub offset: u64,
    /// Blocks that are the target of a branch.
    reached: std::collections::HashSet<Block>,
}

fn args(values: &[Value]) -> Vec<BlockArg> {
    values.iter().map(|&value| BlockArg::Value(value)).collect()
}

impl<'t, 'e, 'a, 'm, 'b> Body<'t, 'e, 'a, 'm, 'b> {
    pub fn new(emitter: &'t mut Emitter<'e, 'a, 'm, 'b>) -> Self {
        Self {
            emitter,
            locals: Vec::new(),
            stack: Vec::new(),
            frames: Vec::new(),
            reachable: true,
            skipped: 0,
            offset: 0,
            reached: std::collections::HashSet::new(),
        }
    }

    /// Translates the body of a function with this type.
    pub fn translate(
        &mut self,
        func: FuncToValidate<ValidatorResources>,
        body: &FunctionBody<'_>,
        params: &[ValueType],
        results: &[ValueType],
        allocations: FuncValidatorAllocations,
    ) -> Result<FuncValidatorAllocations> {
        let mut validator = func.into_validator(allocations);
        let entry = self.emitter.builder.create_block();
        self.emitter.builder.append_block_params_for_function_params(entry);
        self.emitter.builder.switch_to_block(entry);
        self.emitter.builder.seal_block(entry);
        let values = self.emitter.builder.block_params(entry).to_vec();
        for (ty, value) in params.iter().zip(values) {
            self.declare_local(*ty, value);
        }
        let mut reader = body.get_binary_reader();
        validator.read_locals(&mut reader)?;
        let mut groups = body.get_locals_reader()?;
        for _ in 0..groups.get_count() {
            let offset = groups.original_position();
            let (count, ty) = groups.read()?;
            let ty = value_type(ty, &self.emitter.env.info.types, offset)?;
            for _ in 0..count {
                let zero = self.zero(ty);
                self.declare_local(ty, zero);
            }
        }
        let end = self.block(results);
        self.frames.push(Frame {
            target: end,
            arity: results.len(),
            end,
            height: 0,
            other: None,
            is_loop: false,
            handlers: Vec::new(),
            checks: self.emitter.checks.place(),
        });
        let mut ops = body.get_operators_reader()?;
        while !ops.eof() {
            let (op, offset) = ops.read_with_offset()?;
            self.offset = offset;
            validator.op(offset, &op)?;
            let location = u32::try_from(offset).map_or(SourceLoc::default(), SourceLoc::new);
            self.emitter.builder.set_srcloc(location);
            self.operator(&op)?;
        }
        ops.finish()?;
        Ok(validator.into_allocations())
    }

    fn declare_local(&mut self, ty: ValueType, value: Value) {
        let variable = self.emitter.builder.declare_var(ty.clif());
        self.emitter.builder.def_var(variable, value);
        self.locals.push(variable);
    }

    fn zero(&mut self, ty: ValueType) -> Value {
        if ty == ValueType::V128 {
            return self.emitter.vector(ty.clif(), 0);
        }
        let ins = self.emitter.builder.ins();
        match ty {
            ValueType::F32 => ins.f32const(0.0),
            ValueType::F64 => ins.f64const(0.0),
            other => ins.iconst(other.clif(), 0),
        }
    }

    /// Creates a block with parameters of these types.
    fn block(&mut self, types: &[ValueType]) -> Block {
        let block = self.emitter.builder.create_block();
        for ty in types {
            self.emitter.builder.append_block_param(block, ty.clif());
        }
        block
    }

    pub fn internal(&self, what: &str) -> WasmError {
        WasmError::Internal {
            offset: self.offset,
            what: what.to_owned(),
        }
    }

    pub fn push(&mut self, value: Value) {
        self.stack.push(value);
    }

    pub fn pop(&mut self) -> Result<Value> {
        self.stack.pop().ok_or_else(|| self.internal("a value on the stack"))
    }

    /// Converts the topmost values to their types outside the value stack.
    fn settle(&mut self, count: usize) {
        for at in self.stack.len().saturating_sub(count)..self.stack.len() {
            self.stack[at] = self.emitter.settled(self.stack[at]);
        }
    }

    /// Pops the topmost values, in order, converted to their types outside the value stack.
    pub fn pop_all(&mut self, count: usize) -> Result<Vec<Value>> {
        self.settle(count);
        match self.stack.len().checked_sub(count) {
            Some(height) => Ok(self.stack.split_off(height)),
            None => Err(self.internal("values on the stack")),
        }
    }

    fn peek(&self, count: usize) -> Result<&[Value]> {
        let height = self.stack.len().checked_sub(count);
        let height = height.ok_or_else(|| self.internal("values on the stack"))?;
        Ok(&self.stack[height..])
    }

    pub fn frame(&self, depth: u32) -> Result<&Frame> {
        let index = self.frames.len().checked_sub(depth as usize + 1);
        let index = index.ok_or_else(|| self.internal("a block that a branch names"))?;
        Ok(&self.frames[index])
    }

    /// Returns the parameters and results of a block type.
    fn block_type(&self, ty: BlockType) -> Result<(Vec<ValueType>, Vec<ValueType>)> {
        let info = self.emitter.env.info;
        Ok(match ty {
            BlockType::Empty => (Vec::new(), Vec::new()),
            BlockType::Type(ty) => (Vec::new(), vec![value_type(ty, &info.types, self.offset)?]),
            BlockType::FuncType(index) => {
                let ty = self.emitter.env.types.get(info.type_at(index)?)?;
                (ty.params.clone(), ty.results.clone())
            }
        })
    }

    /// Continues in a block without other predecessors.
    pub fn go_on(&mut self, block: Block) {
        self.emitter.builder.switch_to_block(block);
        self.emitter.builder.seal_block(block);
    }

    /// Emits a jump with arguments; the caller pops them from the stack or leaves them.
    pub fn jump(&mut self, block: Block, values: &[Value]) {
        self.reached.insert(block);
        self.emitter.builder.ins().jump(block, &args(values));
    }

    fn operator(&mut self, op: &Operator<'_>) -> Result<()> {
        if !self.reachable {
            return self.skip(op);
        }
        match op {
            Operator::Nop => {}
            Operator::Unreachable => self.trap(traps::UNREACHABLE),
            Operator::Block { blockty } => {
                let (params, results) = self.block_type(*blockty)?;
                let end = self.block(&results);
                self.open(end, results.len(), end, params.len(), None)?;
            }
            Operator::Loop { blockty } => self.begin_loop(*blockty)?,
            Operator::If { blockty } => self.begin_if(*blockty)?,
            Operator::TryTable { try_table } => {
                let handlers = self.handlers(try_table)?;
                let (params, results) = self.block_type(try_table.ty)?;
                let end = self.block(&results);
                self.open(end, results.len(), end, params.len(), None)?;
                if let Some(frame) = self.frames.last_mut() {
                    frame.handlers = handlers;
                }
            }
            Operator::Throw { tag_index } => self.throw(*tag_index)?,
            Operator::ThrowRef => self.throw_reference()?,
            Operator::Else => self.begin_else()?,
            Operator::End => self.end()?,
            Operator::Br { relative_depth } => {
                let frame = self.frame(*relative_depth)?;
                let (target, arity) = (frame.target, frame.arity);
                let values = self.pop_all(arity)?;
                self.jump(target, &values);
                self.reachable = false;
            }
            Operator::BrIf { relative_depth } => {
                let condition = self.pop()?;
                self.branch_if(condition, *relative_depth, false)?;
            }
            Operator::BrTable { targets } => self.branch_table(targets)?,
            Operator::Return => {
                let depth = self.frames.len() as u32 - 1;
                self.operator(&Operator::Br { relative_depth: depth })?;
            }
            Operator::BrOnNull { relative_depth } => {
                let reference = self.pop()?;
                let zero = self.emitter.word(0);
                let is_null = self.emitter.compare(IntCC::Equal, reference, zero);
                self.branch_if(is_null, *relative_depth, false)?;
                self.push(reference);
            }
            Operator::BrOnNonNull { relative_depth } => {
                let reference = *self.peek(1)?.first().ok_or_else(|| self.internal("a reference"))?;
                self.branch_if(reference, *relative_depth, true)?;
            }
            Operator::Call { function_index } => {
                let func = self.emitter.function(*function_index)?;
                let mut values = self.call_args(self.type_of(*function_index)?)?;
                self.emitter.checks.effect();
                if let Some(results) = self.emitter.operation(*function_index, &mut values, self.offset)? {
                    self.stack.extend(results);
                    return Ok(());
                }
                let results = self.call(Callee::Function(func), &values)?;
                self.stack.extend(results);
            }
            Operator::ReturnCall { function_index } => {
                let func = self.emitter.function(*function_index)?;
                let values = self.call_args(self.type_of(*function_index)?)?;
                self.emitter.builder.ins().return_call(func, &values);
                self.reachable = false;
            }
            Operator::CallIndirect {
                type_index,
                table_index,
            }
            | Operator::ReturnCallIndirect {
                type_index,
                table_index,
            } => {
                let index = self.pop()?;
                let record = self.emitter.callee(*table_index, index, *type_index)?;
                let is_tail = matches!(op, Operator::ReturnCallIndirect { .. });
                self.call_record(record, *type_index, is_tail)?;
            }
            Operator::CallRef { type_index } | Operator::ReturnCallRef { type_index } => {
                let record = self.pop()?;
                self.emitter.checks.effect();
                self.emitter.builder.ins().trapz(record, traps::NULL_FUNCTION);
                let is_tail = matches!(op, Operator::ReturnCallRef { .. });
                self.call_record(record, *type_index, is_tail)?;
            }
            Operator::Drop => drop(self.pop()?),
            Operator::Select | Operator::TypedSelect { .. } => {
                let [condition, mut b, mut a] = [self.pop()?, self.pop()?, self.pop()?];
                let ty = |value| self.emitter.builder.func.dfg.value_type(value);
                if ty(a) != ty(b) {
                    (a, b) = (self.emitter.settled(a), self.emitter.settled(b));
                }
                let value = self.emitter.builder.ins().select(condition, a, b);
                self.push(value);
            }
            Operator::LocalGet { local_index } => {
                let local = self.local(*local_index)?;
                let value = self.emitter.builder.use_var(local);
                self.push(value);
            }
            Operator::LocalSet { local_index } => {
                let local = self.local(*local_index)?;
                let value = self.pop()?;
                let value = self.emitter.settled(value);
                self.emitter.builder.def_var(local, value);
            }
            Operator::LocalTee { local_index } => {
                let local = self.local(*local_index)?;
                let value = self.pop()?;
                self.push(value);
                let value = self.emitter.settled(value);
                self.emitter.builder.def_var(local, value);
            }
            other => return self.plain(other),
        }
        Ok(())
    }

    /// Skips an instruction in unreachable code, tracking only the block structure.
    fn skip(&mut self, op: &Operator<'_>) -> Result<()> {
        match op {
            Operator::Block { .. } | Operator::Loop { .. } | Operator::If { .. } | Operator::TryTable { .. } => {
                self.skipped += 1;
            }
            // The parts of a legacy `try` end with other operators, so its blocks cannot be counted
            // here.
            Operator::Try { .. } => return Err(self.refuse(op)),
            Operator::Else if self.skipped == 0 => return self.begin_else(),
            Operator::End if self.skipped == 0 => return self.end(),
            Operator::End => self.skipped -= 1,
            _ => {}
        }
        Ok(())
    }

    fn begin_loop(&mut self, blockty: BlockType) -> Result<()> {
        let (params, results) = self.block_type(blockty)?;
        let (head, end) = (self.block(&params), self.block(&results));
        let values = self.pop_all(params.len())?;
        self.jump(head, &values);
        self.emitter.builder.switch_to_block(head);
        // Checks before the loop hold in every iteration.
        self.emitter.checks.effect();
        let values = self.emitter.builder.block_params(head).to_vec();
        self.stack.extend(values);
        self.open(head, params.len(), end, params.len(), None)?;
        if let Some(frame) = self.frames.last_mut() {
            frame.is_loop = true;
        }
        Ok(())
    }

    fn begin_if(&mut self, blockty: BlockType) -> Result<()> {
        let condition = self.pop()?;
        let (params, results) = self.block_type(blockty)?;
        let end = self.block(&results);
        let [then, other] = [(); 2].map(|()| self.emitter.builder.create_block());
        self.emitter.checks.effect();
        // Converted before the branch, because both arms use the values.
        self.settle(params.len());
        self.emitter.builder.ins().brif(condition, then, &[], other, &[]);
        self.emitter.builder.seal_block(other);
        self.go_on(then);
        let values = self.peek(params.len())?.to_vec();
        self.open(end, results.len(), end, params.len(), Some((other, values)))?;
        Ok(())
    }

    fn local(&self, index: u32) -> Result<Variable> {
        let local = self.locals.get(index as usize).copied();
        local.ok_or_else(|| self.internal("a local"))
    }

    /// Ends the block with a trap.
    pub fn trap(&mut self, code: cranelift_codegen::ir::TrapCode) {
        self.emitter.builder.ins().trap(code);
        self.reachable = false;
    }

    fn open(
        &mut self,
        target: Block,
        arity: usize,
        end: Block,
        params: usize,
        other: Option<(Block, Vec<Value>)>,
    ) -> Result<()> {
        let height = self.stack.len().checked_sub(params);
        let height = height.ok_or_else(|| self.internal("arguments of a block"))?;
        self.frames.push(Frame {
            target,
            arity,
            end,
            height,
            other,
            is_loop: false,
            handlers: Vec::new(),
            checks: self.emitter.checks.place(),
        });
        Ok(())
    }

    /// Ends a frame. Its results are the values on the stack above `height`.
    fn leave(&mut self, end: Block, height: usize) {
        if self.reachable {
            self.settle(self.stack.len().saturating_sub(height));
            let values = self.stack.split_off(height.min(self.stack.len()));
            self.jump(end, &values);
        }
        self.stack.truncate(height);
    }

    fn begin_else(&mut self) -> Result<()> {
        let frame = self.frames.last_mut();
        let parts = frame.map(|frame| (frame.end, frame.height, frame.other.take(), frame.checks));
        let Some((end, height, other, checks)) = parts else {
            return Err(self.internal("a condition"));
        };
        let (other, values) = other.ok_or_else(|| self.internal("a condition"))?;
        self.leave(end, height);
        self.emitter.builder.switch_to_block(other);
        self.emitter.checks.back_to(checks);
        self.stack.extend(values);
        self.reachable = true;
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        let frame = self.frames.pop().ok_or_else(|| self.internal("a block"))?;
        self.leave(frame.end, frame.height);
        if let Some((other, values)) = frame.other {
            self.emitter.builder.switch_to_block(other);
            self.jump(frame.end, &values);
        }
        if frame.is_loop {
            self.emitter.builder.seal_block(frame.target);
        }
        self.emitter.checks.back_to(frame.checks);
        self.land(&frame.handlers)?;
        self.reachable = self.reached.contains(&frame.end);
        if !self.reachable {
            return Ok(());
        }
        self.go_on(frame.end);
        let values = self.emitter.builder.block_params(frame.end).to_vec();
        if self.frames.is_empty() {
            self.emitter.builder.ins().return_(&values);
        } else {
            self.stack.extend(values);
        }
        Ok(())
    }

    /// Branches with values that stay on the stack. With `drops_last`, the last value is only for
    /// the branch and is dropped on fallthrough.
    fn branch_if(&mut self, condition: Value, depth: u32, drops_last: bool) -> Result<()> {
        let frame = self.frame(depth)?;
        let (target, arity) = (frame.target, frame.arity);
        self.settle(arity);
        let values = args(self.peek(arity)?);
        let next = self.emitter.builder.create_block();
        self.emitter.checks.effect();
        self.reached.insert(target);
        self.emitter.builder.ins().brif(condition, target, &values, next, &[]);
        self.go_on(next);
        if drops_last {
            self.pop()?;
        }
        Ok(())
    }

    fn branch_table(&mut self, targets: &BrTable<'_>) -> Result<()> {
        let index = self.pop()?;
        let frame = self.frame(targets.default())?;
        let (default, arity) = (frame.target, frame.arity);
        let values = args(&self.pop_all(arity)?);
        let mut blocks = vec![default];
        for depth in targets.targets() {
            blocks.push(self.frame(depth?)?.target);
        }
        self.reached.extend(&blocks);
        let pool = &mut self.emitter.builder.func.dfg;
        let mut calls = blocks.into_iter().map(|block| pool.block_call(block, &values));
        let default = calls.next();
        let rest: Vec<_> = calls.collect();
        let default = default.ok_or_else(|| self.internal("a default"))?;
        let table = self
            .emitter
            .builder
            .create_jump_table(JumpTableData::new(default, &rest));
        self.emitter.builder.ins().br_table(index, table);
        self.reachable = false;
        Ok(())
    }

    fn type_of(&self, function: u32) -> Result<usize> {
        let item = crate::env::get(&self.emitter.env.functions, function, "a function")?;
        Ok(self.emitter.env.types.get(item.ty)?.params.len())
    }

    fn call_args(&mut self, count: usize) -> Result<Vec<Value>> {
        self.pop_all(count)
    }

    pub fn push_results(&mut self, call: Inst) {
        let results = self.emitter.builder.inst_results(call).to_vec();
        self.stack.extend(results);
    }

    fn call_record(&mut self, record: Value, type_index: u32, is_tail: bool) -> Result<()> {
        let signature = self.emitter.signature(type_index)?;
        let ty = self.emitter.env.info.type_at(type_index)?;
        let count = self.emitter.env.types.get(ty)?.params.len();
        let code = self.emitter.code_of(record);
        let values = self.call_args(count)?;
        self.emitter.checks.effect();
        if is_tail {
            self.emitter
                .builder
                .ins()
                .return_call_indirect(signature, code, &values);
            self.reachable = false;
        } else {
            let results = self.call(Callee::Code(signature, code), &values)?;
            self.stack.extend(results);
        }
        Ok(())
    }

    /// Pushes a condition as an `i32`.
    pub fn push_condition(&mut self, condition: Value) {
        let number = self.emitter.builder.ins().uextend(types::I32, condition);
        self.push(number);
    }

    pub fn refuse(&self, op: &Operator<'_>) -> WasmError {
        // Only the name of the variant; the operands do not help.
        let text = format!("{op:?}");
        let name = text.split([' ', '{', '(']).next().unwrap_or_default();
        unsupported(&format!("the instruction {name}"), self.offset)
    }
}
