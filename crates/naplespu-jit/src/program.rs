//! Runs the functions of a CLIF file in the simulator, under their names in the file.
//!
//! A [`Program`] is an [`NpuModule`] for CLIF text: functions need no declarations, references are
//! by name, and a refused function does not stop the others. A call of a refused function, or of
//! one that reaches it, reports the reason.

use super::error::{DefineError, LinkError, RunError};
use super::npu_module::NpuModule;
use super::trace::Frame;
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::Function;
use cranelift_module::{Linkage, Module};
use cranelift_naplespu::{CompileError, CompiledCode, Isa};
use naplespu_object::front::{Names, function_name};
use npu_sim::{Report, TimingConfig};
use std::sync::Arc;

/// The functions of a CLIF file in the simulator.
pub struct Program {
    isa: Arc<Isa>,
    /// The context, kept to reuse its memory.
    ctx: Option<Context>,
    /// Created by the first definition.
    module: Option<NpuModule>,
    step_limit: Option<u64>,
    config: npu_sim::Config,
    timing: Option<TimingConfig>,
}

impl Program {
    /// Creates an empty program for the target.
    pub fn new(isa: Arc<Isa>) -> Self {
        Self::with_config(isa, npu_sim::Config::default())
    }

    /// Creates an empty program for the target, on a device with this configuration.
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

    /// Returns the module with the functions, under their names without `%`: for data objects,
    /// symbols and memory.
    ///
    /// # Errors
    ///
    /// See [`NpuModule::new`].
    pub fn module(&mut self) -> Result<&mut NpuModule, LinkError> {
        match self.module {
            Some(ref mut module) => Ok(module),
            None => {
                let mut module = NpuModule::with_config(self.isa.clone(), self.config)?;
                if let Some(steps) = self.step_limit {
                    module.set_step_limit(steps);
                }
                module.set_timing(self.timing);
                Ok(self.module.insert(module))
            }
        }
    }

    /// Compiles and adds a function.
    ///
    /// # Errors
    ///
    /// The compilation failed, or a function with this name exists. The program records a failure
    /// and reports it to calls of the function.
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

    /// Adds a function that was compiled elsewhere for the program's target, for example on several
    /// threads ([`parallel`](super::parallel)). The program is the same as after
    /// [`Program::define`].
    ///
    /// # Errors
    ///
    /// See [`Program::define`].
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

    /// Sets the file whose lines are the source locations of a function; see
    /// [`NpuModule::set_source_file`]. Has no effect if the function does not exist.
    pub fn set_source_file(&mut self, name: &str, file: &str) {
        if let Some(module) = &mut self.module
            && let Some(func) = module.function_by_name(name)
        {
            module.set_source_file(func, file);
        }
    }

    /// Returns the back trace of a thread in the last call, if it did not return; see
    /// [`NpuModule::back_trace`].
    pub fn back_trace(&self, thread: usize) -> Vec<Frame> {
        self.module
            .as_ref()
            .map_or_else(Vec::new, |module| module.back_trace(thread))
    }

    /// Returns the code of a compiled function.
    pub fn code(&self, name: &str) -> Option<&CompiledCode> {
        let module = self.module.as_ref()?;
        module.code(module.function_by_name(name)?)
    }

    /// Returns the address of a function in the simulated memory.
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

    /// Reads a word of the device's memory. Unwritten memory has the configured contents.
    ///
    /// # Errors
    ///
    /// [`RunError::Link`] if the device could not be created.
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

    /// Turns the timing model of later calls on or off; see [`NpuModule::set_timing`].
    pub fn set_timing(&mut self, config: Option<TimingConfig>) {
        self.timing = config;
        if let Some(module) = &mut self.module {
            module.set_timing(config);
        }
    }

    /// Returns the report of the timing model on the last call.
    pub fn timing_report(&self) -> Option<Report> {
        self.module.as_ref()?.timing_report()
    }

    /// Returns the number of instructions of the last call.
    pub fn steps(&self) -> u64 {
        self.module.as_ref().map_or(0, NpuModule::steps)
    }

    /// Calls a function with a fresh stack. Memory keeps the contents of earlier calls.
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

    /// Calls a function on several threads and returns the results of each; see
    /// [`NpuModule::call_threads`].
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

    /// Calls a function on the threads with these numbers; see [`NpuModule::call_on`].
    ///
    /// # Errors
    ///
    /// See [`RunError`].
    pub fn call_on(
        &mut self,
        name: &str,
        args: &[DataValue],
        threads: &[usize],
    ) -> Result<Vec<Vec<DataValue>>, RunError> {
        let module = self.module.as_mut();
        let function = module.and_then(|module| Some((module.function_by_name(name)?, module)));
        match function {
            Some((function, module)) => module.call_on(function, args, threads),
            None => Err(RunError::NoSuchFunction(name.to_owned())),
        }
    }
}
