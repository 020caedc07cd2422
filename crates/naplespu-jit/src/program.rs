//! The functions of a CLIF file in the simulator, by the names they have there.
//!
//! A [`Program`] is an [`NpuModule`] for text: functions come without declarations, references go by name, and a function that
//! is refused does not stop the others. Calling it, or one that reaches it, says why.

use super::error::{DefineError, LinkError, RunError};
use super::npu_module::NpuModule;
use super::target::Names;
use super::trace::Frame;
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{Function, UserFuncName};
use cranelift_module::{Linkage, Module};
use cranelift_naplespu::{CompileError, CompiledCode, Isa};
use npu_sim::{Report, TimingConfig};
use std::sync::Arc;

/// Functions on their way into the simulator.
pub struct Program {
    isa: Arc<Isa>,
    /// Its memory is kept from one function to the next.
    ctx: Option<Context>,
    /// Made by the first definition.
    module: Option<NpuModule>,
    step_limit: Option<u64>,
    config: npu_sim::Config,
    timing: Option<TimingConfig>,
}

/// The name under which a function can be called: without the `%`.
pub fn function_name(name: &UserFuncName) -> String {
    let text = name.to_string();
    text.strip_prefix('%').map_or(text.clone(), str::to_owned)
}

impl Program {
    /// An empty program for the target.
    pub fn new(isa: Arc<Isa>) -> Self {
        Self::with_config(isa, npu_sim::Config::default())
    }

    /// An empty program for the target, on a device of this configuration.
    pub fn with_config(isa: Arc<Isa>, config: npu_sim::Config) -> Self {
        Self {
            isa,
            ctx: None,
            module: None,
            step_limit: None,
            config,
            timing: None,
        }
    }

    /// The module that holds the functions, under their names without `%`: for data objects, symbols, memory.
    ///
    /// # Errors
    ///
    /// See [`NpuModule::new`].
    pub fn module(&mut self) -> Result<&mut NpuModule, LinkError> {
        let module = match self.module.take() {
            Some(module) => module,
            None => {
                let mut module = NpuModule::with_config(self.isa.clone(), self.config)?;
                if let Some(steps) = self.step_limit {
                    module.set_step_limit(steps);
                }
                module.set_timing(self.timing);
                module
            }
        };
        Ok(self.module.insert(module))
    }

    /// Compiles a function and adds it.
    ///
    /// # Errors
    ///
    /// Why it was not compiled, or that there is a function of this name; the program remembers the former for those who call
    /// the function.
    pub fn define(&mut self, func: &Function) -> Result<(), DefineError> {
        let mut ctx = self.ctx.take().unwrap_or_else(Context::new);
        ctx.clear();
        ctx.func = func.clone();
        let module = self.module()?;
        let name = function_name(&func.name);
        let id = module.declare_function(&name, Linkage::Export, &func.signature)?;
        let result = module.compile(id, &mut ctx, &mut ControlPlane::default(), Names::Text);
        self.ctx = Some(ctx);
        result
    }

    /// Adds a function that was compiled for the program's target elsewhere, for example by several threads
    /// ([`parallel`](super::parallel)): the program is the same as after [`Program::define`].
    ///
    /// # Errors
    ///
    /// As [`Program::define`].
    pub fn define_compiled(
        &mut self,
        func: &Function,
        code: Result<CompiledCode, CompileError>,
    ) -> Result<(), DefineError> {
        let module = self.module()?;
        let name = function_name(&func.name);
        let id = module.declare_function(&name, Linkage::Export, &func.signature)?;
        module.define_compiled(id, func, code)
    }

    /// Says that source locations of a function are lines of this file; see [`NpuModule::set_source_file`]. Without such a function nothing
    /// happens.
    pub fn set_source_file(&mut self, name: &str, file: &str) {
        if let Some(module) = &mut self.module
            && let Some(func) = module.function_by_name(name)
        {
            module.set_source_file(func, file);
        }
    }

    /// What a thread was doing in the last call that did not return; see [`NpuModule::back_trace`].
    pub fn back_trace(&self, thread: usize) -> Vec<Frame> {
        self.module
            .as_ref()
            .map_or_else(Vec::new, |module| module.back_trace(thread))
    }

    /// Code of a compiled function.
    pub fn code(&self, name: &str) -> Option<&CompiledCode> {
        let module = self.module.as_ref()?;
        module.code(module.function_by_name(name)?)
    }

    /// Address of a function in the simulated memory.
    pub fn address(&self, name: &str) -> Option<u32> {
        self.module.as_ref()?.symbol_address(name)
    }

    /// Writes memory of the device.
    ///
    /// # Errors
    ///
    /// [`RunError::Link`] if the simulated memory is full.
    pub fn write_memory(&mut self, address: u32, bytes: &[u8]) -> Result<(), RunError> {
        Ok(self.module()?.write_memory(address, bytes)?)
    }

    /// Reads a word of the device's memory: as the device is configured where nothing was written.
    ///
    /// # Errors
    ///
    /// [`RunError::Link`] if the device could not be made.
    pub fn read_word(&mut self, address: u32) -> Result<u32, RunError> {
        Ok(self.module()?.read_word(address))
    }

    /// Limits the instructions of each call.
    pub fn set_step_limit(&mut self, steps: u64) {
        self.step_limit = Some(steps);
        if let Some(module) = &mut self.module {
            module.set_step_limit(steps);
        }
    }

    /// Runs later calls with the timing model, or without it again; see [`NpuModule::set_timing`].
    pub fn set_timing(&mut self, config: Option<TimingConfig>) {
        self.timing = config;
        if let Some(module) = &mut self.module {
            module.set_timing(config);
        }
    }

    /// What the last call took, with the timing model.
    pub fn timing_report(&self) -> Option<Report> {
        self.module.as_ref()?.timing_report()
    }

    /// Instructions executed by the last call.
    pub fn steps(&self) -> u64 {
        self.module.as_ref().map_or(0, NpuModule::steps)
    }

    /// Calls a function with a fresh stack. Memory that earlier calls wrote stays as it is.
    ///
    /// # Errors
    ///
    /// See [`RunError`].
    pub fn call(&mut self, name: &str, args: &[DataValue]) -> Result<Vec<DataValue>, RunError> {
        match &mut self.module {
            Some(module) => module.call_by_name(name, args),
            None => Err(RunError::NoSuchFunction(name.to_owned())),
        }
    }

    /// Calls a function on several threads, and gives the results of each; see [`NpuModule::call_threads`].
    ///
    /// # Errors
    ///
    /// See [`RunError`].
    pub fn call_threads(
        &mut self,
        name: &str,
        args: &[DataValue],
        threads: usize,
    ) -> Result<Vec<Vec<DataValue>>, RunError> {
        match &mut self.module {
            Some(module) => module.call_threads_by_name(name, args, threads),
            None => Err(RunError::NoSuchFunction(name.to_owned())),
        }
    }
}
