//! Exceptions: tags, throws, and blocks with handlers.
//!
//! A throw calls `npu_throw` of the runtime with the number of the tag, the address of an
//! *exception*, and its reference or 0. A call that may throw through a handler is a CLIF
//! `try_call`. An exception is a header with the tag and the size, followed by the values.
//!
//! A thrown exception is in a thread-local object of its tag: no code of the module runs between
//! the throw and the handler. Only a clause with a reference copies the exception to permanent
//! memory, since references may outlive the handler. A rethrow uses the copy. The permanent memory
//! is never freed; the thread traps when it is full.

use crate::body::Body;
use crate::emit::{Emitter, Region};
use crate::env::{Contents, Env, fault, get};
use crate::error::{Result, WasmError};
use crate::items::{Keeper, TagItem};
use crate::traps;
use crate::types::{TypeId, ValueType};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I32;
use cranelift_codegen::ir::{
    AbiParam, AtomicRmwOp, Block, BlockArg, ExceptionTableData, ExceptionTableItem, ExceptionTag, FuncRef, InstBuilder,
    SigRef, Signature, Value,
};
use cranelift_codegen::isa::CallConv;
use cranelift_module::{FuncId, Linkage};
use wasmparser::{Catch, TryTable};

/// The routine of the runtime that throws.
const THROW: &str = "npu_throw";
/// The offset of the tag in an exception.
const TAG: i32 = 0;
/// The offset of the size in an exception. The size is in bytes and includes the header.
const SIZE: i32 = 4;
/// The size of the header in bytes, and the alignment of exceptions: enough for a vector.
const HEADER: u32 = 16;
/// The size of a module's memory for referenced exceptions, in bytes. It exceeds the largest
/// exception.
const KEPT_BYTES: u32 = 1 << 20;

/// A clause of a block with handlers.
pub(crate) struct Handler {
    /// The caught tag, or `None` for all exceptions.
    tag: Option<TagItem>,
    /// Whether the clause also passes the reference.
    with_reference: bool,
    /// The target of the clause.
    target: Block,
    /// The landing block, created at its first use. Its parameters are the address of the exception
    /// and its reference.
    landing: Option<Block>,
}

/// Returns the offsets of the values in an exception and its size in bytes.
fn layout(types: &[ValueType]) -> (Vec<i32>, u32) {
    let mut end = HEADER;
    let mut places = Vec::with_capacity(types.len());
    for ty in types {
        end = end.next_multiple_of(ty.bytes());
        places.push(end as i32);
        end += ty.bytes();
    }
    (places, end.next_multiple_of(HEADER))
}

impl Env<'_, '_> {
    /// Declares the tags that the module defines.
    pub fn declare_tags(&mut self) -> Result<()> {
        for (index, &(ty, number)) in self.info.tags.iter().enumerate() {
            let (_, size) = layout(&self.types.get(ty)?.params);
            let contents = Contents::Zeros(size as usize);
            let thrown = self.object_of(&format!("tag{index}"), contents, HEADER.into(), true, true)?;
            self.tags.push(TagItem { number, ty, thrown });
        }
        Ok(())
    }

    fn throw_function(&mut self) -> Result<FuncId> {
        let mut signature = Signature::new(CallConv::Tail);
        signature.params = vec![AbiParam::new(I32); 3];
        self.function(THROW, Linkage::Import, &signature)
    }

    /// Returns the function that makes a reference to an exception; its body is emitted at the end.
    fn keeper(&mut self) -> Result<Keeper> {
        if let Some(keeper) = self.keeper {
            return Ok(keeper);
        }
        let name = self.fresh("keep_exception");
        let declared = self.module.declare_function(&name, Linkage::Local, &keeper_signature());
        let function = declared.map_err(|error| fault(&name, error))?;
        let contents = Contents::Zeros(KEPT_BYTES as usize);
        let keeper = Keeper {
            function,
            memory: self.object_of("exceptions", contents, HEADER.into(), true, false)?,
            used: self.object_of("exceptions.used", Contents::Zeros(4), 4, true, false)?,
        };
        self.keeper = Some(keeper);
        Ok(keeper)
    }
}

/// Returns the signature of the keeper: the address of an exception and its reference or 0 to the
/// reference.
pub(crate) fn keeper_signature() -> Signature {
    let mut signature = Signature::new(CallConv::SystemV);
    signature.params = vec![AbiParam::new(I32); 2];
    signature.returns = vec![AbiParam::new(I32)];
    signature
}

impl Emitter<'_, '_, '_, '_> {
    fn tag(&self, index: u32) -> Result<TagItem> {
        get(&self.env.tags, index, "a tag").copied()
    }

    fn word_of(&mut self, exception: Value, at: i32) -> Value {
        let flags = self.flags(Region::Exceptions).with_aligned();
        self.builder.ins().load(I32, flags, exception, at)
    }

    /// Stores the values of an exception; returns its address.
    fn exception(&mut self, tag: TagItem, values: &[Value]) -> Result<Value> {
        let (places, size) = layout(&self.env.types.get(tag.ty)?.params);
        let address = self.thread_cell(tag.thrown);
        let flags = self.flags(Region::Exceptions).with_aligned();
        for (word, at) in [(tag.number, TAG), (size, SIZE)] {
            let word = self.word(word);
            self.builder.ins().store(flags, word, address, at);
        }
        for (&value, at) in values.iter().zip(places) {
            self.builder.ins().store(flags, value, address, at);
        }
        Ok(address)
    }

    /// Loads the values of an exception of this type.
    fn values_of(&mut self, exception: Value, ty: TypeId) -> Result<Vec<Value>> {
        let types = self.env.types.get(ty)?.params.clone();
        let (places, _) = layout(&types);
        let flags = self.flags(Region::Exceptions).with_aligned();
        let values = types.iter().zip(places);
        Ok(values
            .map(|(ty, at)| self.builder.ins().load(ty.clif(), flags, exception, at))
            .collect())
    }

    /// Emits the function that makes a reference to an exception.
    pub fn make_keeper(&mut self, keeper: Keeper) -> Result<()> {
        let [entry, make, head, copy, done] = [(); 5].map(|()| self.builder.create_block());
        self.builder.append_block_params_for_function_params(entry);
        self.builder.switch_to_block(entry);
        let &[exception, reference] = self.builder.block_params(entry) else {
            return Err(WasmError::internal(
                "the arguments of the function that keeps exceptions",
            ));
        };
        let result = self.builder.append_block_param(done, I32);
        let left = self.builder.append_block_param(head, I32);
        let known = [BlockArg::Value(reference)];
        self.builder.ins().brif(reference, done, &known, make, &[]);

        self.builder.switch_to_block(make);
        let size = self.word_of(exception, SIZE);
        let used = self.symbol(keeper.used);
        let flags = self.flags(Region::Exceptions);
        let start = self.builder.ins().atomic_rmw(I32, flags, AtomicRmwOp::Add, used, size);
        let limit = self.word(KEPT_BYTES);
        let last = self.builder.ins().isub(limit, size);
        let is_full = self.compare(IntCC::UnsignedGreaterThan, start, last);
        self.trap_if(is_full, traps::TOO_MANY_EXCEPTIONS);
        let memory = self.symbol(keeper.memory);
        let kept = self.builder.ins().iadd(memory, start);
        self.builder.ins().jump(head, &[BlockArg::Value(size)]);

        // Copies words from the last to the first.
        self.builder.switch_to_block(head);
        let made = [BlockArg::Value(kept)];
        self.builder.ins().brif(left, copy, &[], done, &made);
        self.builder.switch_to_block(copy);
        let next = self.add(left, 4u32.wrapping_neg());
        let from = self.builder.ins().iadd(exception, next);
        let to = self.builder.ins().iadd(kept, next);
        let word = self.word_of(from, 0);
        let flags = self.flags(Region::Exceptions).with_aligned();
        self.builder.ins().store(flags, word, to, 0);
        self.builder.ins().jump(head, &[BlockArg::Value(next)]);

        self.builder.switch_to_block(done);
        self.builder.ins().return_(&[result]);
        self.builder.seal_all_blocks();
        Ok(())
    }
}

/// The callee of a call.
#[derive(Clone, Copy)]
pub(crate) enum Callee {
    Function(FuncRef),
    /// Code at an address.
    Code(SigRef, Value),
}

impl Body<'_, '_, '_, '_, '_> {
    /// Returns the clauses of a block. Their labels count from outside the block.
    pub fn handlers(&mut self, table: &TryTable) -> Result<Vec<Handler>> {
        let clauses = table.catches.iter().map(|clause| {
            let (tag, with_reference, label) = match *clause {
                Catch::One { tag, label } => (Some(tag), false, label),
                Catch::OneRef { tag, label } => (Some(tag), true, label),
                Catch::All { label } => (None, false, label),
                Catch::AllRef { label } => (None, true, label),
            };
            Ok(Handler {
                tag: tag.map(|tag| self.emitter.tag(tag)).transpose()?,
                with_reference,
                target: self.frame(label)?.target,
                landing: None,
            })
        });
        clauses.collect()
    }

    /// Emits a call, with exception edges if a block has handlers; returns the results.
    pub fn call(&mut self, callee: Callee, args: &[Value]) -> Result<Vec<Value>> {
        let handlers = self.landings();
        if handlers.is_empty() {
            let ins = self.emitter.builder.ins();
            let call = match callee {
                Callee::Function(function) => ins.call(function, args),
                Callee::Code(signature, code) => ins.call_indirect(signature, code, args),
            };
            return Ok(self.emitter.builder.inst_results(call).to_vec());
        }
        let builder = &mut self.emitter.builder;
        let signature = match callee {
            Callee::Function(function) => builder.func.dfg.ext_funcs[function].signature,
            Callee::Code(signature, _) => signature,
        };
        let next = builder.create_block();
        let returns = builder.func.dfg.signatures[signature].returns.clone();
        let results: Vec<Value> = returns
            .iter()
            .map(|param| builder.append_block_param(next, param.value_type))
            .collect();
        let returned: Vec<BlockArg> = (0..).zip(&results).map(|(at, _)| BlockArg::TryCallRet(at)).collect();
        let dfg = &mut builder.func.dfg;
        let next_call = dfg.block_call(next, &returned);
        let thrown = [BlockArg::TryCallExn(0), BlockArg::TryCallExn(1)];
        let items: Vec<ExceptionTableItem> = handlers
            .into_iter()
            .map(|(tag, landing)| {
                let landing = dfg.block_call(landing, &thrown);
                match tag {
                    Some(tag) => ExceptionTableItem::Tag(ExceptionTag::from_u32(tag), landing),
                    None => ExceptionTableItem::Default(landing),
                }
            })
            .collect();
        let table = dfg
            .exception_tables
            .push(ExceptionTableData::new(signature, next_call, items));
        match callee {
            Callee::Function(function) => builder.ins().try_call(function, args, table),
            Callee::Code(_, code) => builder.ins().try_call_indirect(code, args, table),
        };
        self.go_on(next);
        Ok(results)
    }

    /// Returns the handlers at this position, innermost first: each tag once, then possibly the
    /// handler of all other exceptions.
    fn landings(&mut self) -> Vec<(Option<u32>, Block)> {
        let mut found: Vec<(Option<u32>, Block)> = Vec::new();
        for frame in self.frames.iter_mut().rev() {
            for handler in &mut frame.handlers {
                let tag = handler.tag.map(|tag| tag.number);
                if found.iter().any(|&(known, _)| known == tag) {
                    continue;
                }
                let builder = &mut self.emitter.builder;
                let landing = *handler.landing.get_or_insert_with(|| {
                    let landing = builder.create_block();
                    builder.append_block_param(landing, I32);
                    builder.append_block_param(landing, I32);
                    builder.set_cold_block(landing);
                    landing
                });
                found.push((tag, landing));
                if tag.is_none() {
                    return found;
                }
            }
        }
        found
    }

    /// Emits the landing blocks of the handlers, at the end of their block.
    pub fn land(&mut self, handlers: &[Handler]) -> Result<()> {
        for handler in handlers {
            let Some(landing) = handler.landing else { continue };
            self.go_on(landing);
            let &[exception, reference] = self.emitter.builder.block_params(landing) else {
                return Err(self.internal("what a handler takes"));
            };
            let mut values = match handler.tag {
                Some(tag) => self.emitter.values_of(exception, tag.ty)?,
                None => Vec::new(),
            };
            if handler.with_reference {
                let keeper = self.emitter.env.keeper()?.function;
                let keeper = self
                    .emitter
                    .env
                    .module
                    .declare_func_in_func(keeper, self.emitter.builder.func);
                let call = self.emitter.builder.ins().call(keeper, &[exception, reference]);
                values.extend(self.emitter.builder.inst_results(call));
            }
            self.jump(handler.target, &values);
        }
        Ok(())
    }

    pub fn throw(&mut self, tag: u32) -> Result<()> {
        let tag = self.emitter.tag(tag)?;
        let count = self.emitter.env.types.get(tag.ty)?.params.len();
        let values = self.pop_all(count)?;
        self.emitter.checks.effect();
        let exception = self.emitter.exception(tag, &values)?;
        let none = self.emitter.word(0);
        let handlers = self.landings();
        let mut here = handlers.iter();
        if let Some(&(_, landing)) = here.find(|(known, _)| known.is_none_or(|known| known == tag.number)) {
            // Only this handler catches it.
            self.jump(landing, &[exception, none]);
            self.reachable = false;
            return Ok(());
        }
        let number = self.emitter.word(tag.number);
        self.throw_on([number, exception, none])
    }

    pub fn throw_reference(&mut self) -> Result<()> {
        let exception = self.pop()?;
        self.emitter.checks.effect();
        self.emitter.builder.ins().trapz(exception, traps::NULL_EXCEPTION);
        let tag = self.emitter.word_of(exception, TAG);
        self.throw_on([tag, exception, exception])
    }

    fn throw_on(&mut self, args: [Value; 3]) -> Result<()> {
        let function = self.emitter.env.throw_function()?;
        let module = &mut self.emitter.env.module;
        let function = module.declare_func_in_func(function, self.emitter.builder.func);
        self.call(Callee::Function(function), &args)?;
        // The call does not return.
        self.trap(traps::UNREACHABLE);
        Ok(())
    }
}
