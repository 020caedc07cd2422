//! Turns a module into a program that runs without a host: its entry calls one function with
//! constant arguments and stores the results in memory.

use crate::error::{Result, WasmError};
use crate::items::{FuncItem, GlobalItem};
use crate::store::{STACK_ALIGN, Value};
use crate::types::Types;
use crate::{Config, Translated};
use cranelift_codegen::Context;
use cranelift_codegen::ir::{
    AbiParam, InstBuilder, MemFlagsData, Signature, UserFuncName, Value as ClifValue, condcodes::IntCC, types,
};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_module::{DataDescription, DataId, FuncId, Linkage, Module, ModuleError};
use npu_mc::machine::CACHE_LINE;

/// The call that a program makes.
#[derive(Clone, Debug)]
pub struct ProgramCall {
    /// The function.
    pub function: FuncItem,
    /// Its arguments, the same on every thread. The only reference allowed is null.
    pub args: Vec<Value>,
    /// The number of hardware threads of one core that run the program.
    pub threads: u32,
    /// The size of the shadow stack in bytes. The threads share it in equal parts.
    pub stack_bytes: u32,
}

/// The functions of a program in addition to those of the module.
pub struct Program {
    /// The symbol of the function that the start-up code calls on every thread.
    pub entry: String,
    /// The functions, with their CLIF.
    pub functions: Vec<(FuncId, Context)>,
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program")
            .field("entry", &self.entry)
            .field("functions", &self.functions.len())
            .finish()
    }
}

/// The section of constructors. The start-up code calls them before the entry, on the first thread
/// only.
const CONSTRUCTORS: &str = ".init_array";

/// The names of the generated symbols, after the prefix.
const ENTRY: &str = "wasm.program";
const CONSTRUCTOR: &str = "wasm.constructor";
const LIST: &str = "wasm.constructors";
const ARGUMENTS: &str = "wasm.arguments";
const RESULTS: &str = "wasm.results";

/// Makes the entry of a program, and the constructor that initializes the module.
///
/// The entry stores the results of each thread in the object `wasm.results`. Each thread has one or
/// more cache lines there, and each result is aligned to its size. The entry returns the address of
/// its results, which the start-up code reports to the host.
///
/// # Errors
///
/// [`WasmError::Define`] if a name is taken, [`WasmError::Internal`] if the arguments do not match
/// the function.
pub fn program(
    module: &mut dyn Module,
    translated: &Translated,
    types: &Types,
    config: &Config,
    call: &ProgramCall,
) -> Result<Program> {
    let ty = types.get(call.function.ty)?;
    if !(call.args.len() == ty.params.len() && call.args.iter().zip(&ty.params).all(|(arg, ty)| arg.fits(*ty))) {
        return Err(WasmError::internal("arguments that fit the function"));
    }
    let mut maker = Maker {
        module,
        prefix: &config.prefix,
        context: FunctionBuilderContext::new(),
        functions: Vec::new(),
    };
    maker.constructor(translated.init)?;

    let mut bytes = Vec::new();
    let mut places = Vec::new();
    for (arg, ty) in call.args.iter().zip(&ty.params) {
        let at = bytes.len().next_multiple_of(ty.bytes() as usize);
        bytes.resize(at + ty.bytes() as usize, 0);
        arg.to_clif().write_to_slice_le(&mut bytes[at..]);
        places.push((at as i32, ty.clif()));
    }
    let arguments = maker.object(ARGUMENTS, false, |data| data.define(bytes.into()))?;
    let mut slot = 0u32;
    let mut result_places = Vec::new();
    for ty in &ty.results {
        slot = slot.next_multiple_of(ty.bytes());
        result_places.push(slot as i32);
        slot += ty.bytes();
    }
    // Threads do not share cache lines, so that a write-back does not overwrite another thread's
    // results.
    let slot = slot.max(1).next_multiple_of(CACHE_LINE);
    let results = maker.object(RESULTS, true, |data| {
        data.define_zeroinit((slot * call.threads) as usize)
    })?;

    let entry = format!("{}{ENTRY}", config.prefix);
    let mut signature = Signature::new(CallConv::SystemV);
    signature.returns.push(AbiParam::new(types::I32));
    maker.define(&entry, Linkage::Export, signature, |module, builder| {
        let thread = match call.threads {
            1 => None,
            _ => Some(intrinsic(module, builder, "__builtin_npu_thread_id", &[], true)?),
        };
        if let (Some((global, first)), Some(Some(thread))) = (&translated.stack_pointer, thread) {
            own_stack(module, builder, *global, *first, thread, call);
        }
        let address = symbol(module, builder, arguments);
        let flags = MemFlagsData::trusted();
        let args: Vec<ClifValue> = places
            .iter()
            .map(|&(at, ty)| builder.ins().load(ty, flags, address, at))
            .collect();
        let callee = module.declare_func_in_func(call.function.id, builder.func);
        let called = builder.ins().call(callee, &args);
        let values = builder.inst_results(called).to_vec();
        let mut place = symbol(module, builder, results);
        if let Some(Some(thread)) = thread {
            let distance = builder.ins().imul_imm_u(thread, i64::from(slot));
            place = builder.ins().iadd(place, distance);
        }
        for (value, at) in values.into_iter().zip(result_places) {
            builder.ins().store(flags, value, place, at);
        }
        for line in (0..slot).step_by(CACHE_LINE as usize) {
            let address = builder.ins().iadd_imm_u(place, i64::from(line));
            intrinsic(module, builder, "__builtin_npu_flush", &[address], false)?;
        }
        builder.ins().return_(&[place]);
        Ok(())
    })?;
    Ok(Program {
        entry,
        functions: maker.functions,
    })
}

/// Sets the shadow stack pointer of the thread to its part; the first thread has the uppermost
/// part.
fn own_stack(
    module: &mut dyn Module,
    builder: &mut FunctionBuilder<'_>,
    global: GlobalItem,
    first: u32,
    thread: ClifValue,
    call: &ProgramCall,
) {
    let part = (call.stack_bytes / call.threads.max(1)) & !(STACK_ALIGN - 1);
    let cell = module.declare_data_in_func(global.data, builder.func);
    let cell = builder.ins().tls_value(types::I32, cell);
    let below = builder.ins().imul_imm_u(thread, i64::from(part));
    let top = builder.ins().iconst(types::I32, i64::from(first));
    // A module linked without that stack has no parts for some threads. Such threads start at 0,
    // that is, at the end of the address space.
    let fits = builder.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, top, below);
    let zero = builder.ins().iconst(types::I32, 0);
    let pointer = builder.ins().isub(top, below);
    let pointer = builder.ins().select(fits, pointer, zero);
    builder.ins().store(MemFlagsData::trusted(), pointer, cell, 0);
}

fn symbol(module: &mut dyn Module, builder: &mut FunctionBuilder<'_>, data: DataId) -> ClifValue {
    let value = module.declare_data_in_func(data, builder.func);
    builder.ins().symbol_value(types::I32, value)
}

/// Emits a call of an intrinsic that has one word as its result, or none.
fn intrinsic(
    module: &mut dyn Module,
    builder: &mut FunctionBuilder<'_>,
    name: &str,
    args: &[ClifValue],
    result: bool,
) -> Result<Option<ClifValue>> {
    let mut signature = Signature::new(CallConv::SystemV);
    signature.params = args.iter().map(|_| AbiParam::new(types::I32)).collect();
    signature.returns = result.then(|| AbiParam::new(types::I32)).into_iter().collect();
    let id = module.declare_function(name, Linkage::Import, &signature);
    let id = id.map_err(|error| fault(name, error))?;
    let callee = module.declare_func_in_func(id, builder.func);
    let called = builder.ins().call(callee, args);
    Ok(builder.inst_results(called).first().copied())
}

fn fault(name: &str, error: ModuleError) -> WasmError {
    WasmError::Define {
        name: name.to_owned(),
        error: Box::new(error),
    }
}

/// Adds definitions to a Cranelift module.
struct Maker<'a> {
    module: &'a mut dyn Module,
    prefix: &'a str,
    context: FunctionBuilderContext,
    functions: Vec<(FuncId, Context)>,
}

impl Maker<'_> {
    /// Defines a function with one block.
    fn define(
        &mut self,
        name: &str,
        linkage: Linkage,
        signature: Signature,
        body: impl FnOnce(&mut dyn Module, &mut FunctionBuilder<'_>) -> Result<()>,
    ) -> Result<FuncId> {
        let id = self.module.declare_function(name, linkage, &signature);
        let id = id.map_err(|error| fault(name, error))?;
        let mut ctx = self.module.make_context();
        ctx.func.signature = signature;
        ctx.func.name = UserFuncName::user(0, id.as_u32());
        let frontend = self.module.target_config();
        let mut builder = FunctionBuilder::new(&mut ctx.func, &mut self.context);
        let block = builder.create_block();
        builder.switch_to_block(block);
        builder.seal_block(block);
        body(&mut *self.module, &mut builder)?;
        builder.finalize(frontend);
        self.functions.push((id, ctx));
        Ok(id)
    }

    fn object(&mut self, name: &str, writable: bool, contents: impl FnOnce(&mut DataDescription)) -> Result<DataId> {
        let name = format!("{}{name}", self.prefix);
        let linkage = if writable { Linkage::Export } else { Linkage::Local };
        let id = self.module.declare_data(&name, linkage, writable, false);
        let id = id.map_err(|error| fault(&name, error))?;
        let mut data = DataDescription::new();
        data.set_align(u64::from(CACHE_LINE));
        contents(&mut data);
        let defined = self.module.define_data(id, &data);
        defined.map_err(|error| fault(&name, error))?;
        Ok(id)
    }

    /// Registers a constructor that initializes the module. Constructors do not have the calling
    /// convention of a module with tail calls, hence the function in between.
    fn constructor(&mut self, init: FuncId) -> Result<()> {
        let name = format!("{}{CONSTRUCTOR}", self.prefix);
        let own = self.define(
            &name,
            Linkage::Local,
            Signature::new(CallConv::SystemV),
            |module, builder| {
                let callee = module.declare_func_in_func(init, builder.func);
                builder.ins().call(callee, &[]);
                builder.ins().return_(&[]);
                Ok(())
            },
        )?;
        let name = format!("{}{LIST}", self.prefix);
        let id = self.module.declare_data(&name, Linkage::Local, true, false);
        let id = id.map_err(|error| fault(&name, error))?;
        let mut data = DataDescription::new();
        data.define(vec![0; 4].into());
        data.set_align(4);
        data.set_custom_section(CONSTRUCTORS);
        let own = self.module.declare_func_in_data(own, &mut data);
        data.write_function_addr(0, own);
        let defined = self.module.define_data(id, &data);
        defined.map_err(|error| fault(&name, error))
    }
}
