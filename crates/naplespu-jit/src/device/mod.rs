//! The simulated machine as an accelerator: the host allocates and copies memory, and launches
//! kernels on threads of the cores.
//!
//! # Contract
//!
//! A [`Device`] owns an [`NpuModule`] and its buffers. Kernels are functions of the module.
//! Creating a [`Launch`] checks everything that can be checked in advance: the kernel and all
//! symbols that it reaches, the arguments, and the [`ThreadSet`]. A launch borrows the device, so
//! that its memory cannot change meanwhile. [`Launch::wait`] runs it to the end,
//! [`Launch::advance`] in steps; any host thread may call them. Launches are deterministic: the
//! same launch on the same device has the same results, statistics and errors.
//!
//! Every error of the host or of a kernel is a [`DeviceError`]; the device stays usable.
//!
//! # Structure
//!
//! `memory` has buffers, `threads` sets of threads, `launch` launches, `error` errors.
//!
//! # Invariants
//!
//! - A freed [`Buffer`], or a buffer of another device, is never mistaken for a valid one.
//! - Buffers do not share cache lines, so a write-back of one never changes another.

mod error;
mod launch;
mod memory;
mod threads;

pub use error::{DeviceError, Fault, ThreadTrace};
pub use launch::{Finished, Launch, LaunchConfig, Progress, Statistics, ThreadStatistics};
pub use memory::{Arg, Buffer};
pub use threads::{ThreadId, ThreadSet};

use crate::error::{DefineError, LinkError};
use crate::host::HostFunction;
use crate::npu_module::NpuModule;
use crate::parallel;
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{Function, Signature};
use cranelift_module::{FuncId, Linkage, Module};
use cranelift_naplespu::{CompileError, Isa, inlining};
use memory::Heap;
use naplespu_object::front::Names;
use naplespu_object::front::function_name;
use std::sync::Arc;

/// An accelerator: cores with hardware threads, memory, and functions.
#[derive(Debug)]
pub struct Device {
    module: NpuModule,
    heap: Heap,
}

impl Device {
    /// Creates a device with one core.
    ///
    /// # Errors
    ///
    /// See [`NpuModule::new`].
    pub fn new(isa: Arc<Isa>) -> Result<Self, LinkError> {
        Self::with_config(isa, npu_sim::Config::default())
    }

    /// Creates a device with this configuration of cores, memory and data caches.
    ///
    /// With [`Config::coherent`](npu_sim::Config::coherent) the cores have no data caches, so every
    /// store reaches memory at once. Otherwise the host reads what kernels flushed, as on the
    /// hardware. Other data is written back when the host [writes memory](NpuModule::write_memory)
    /// or launches a kernel.
    ///
    /// # Errors
    ///
    /// See [`NpuModule::new`].
    pub fn with_config(isa: Arc<Isa>, config: npu_sim::Config) -> Result<Self, LinkError> {
        Ok(Self {
            module: NpuModule::with_config(isa, config)?,
            heap: Heap::new(config.memory_limit),
        })
    }

    /// Returns the functions and data of the device.
    pub fn module(&self) -> &NpuModule {
        &self.module
    }

    /// Returns the functions and data of the device for changes, as in any Cranelift module. Memory
    /// that the module allocates is separate from [`Buffer`]s.
    pub fn module_mut(&mut self) -> &mut NpuModule {
        &mut self.module
    }

    /// Returns the number of cores.
    pub fn cores(&self) -> usize {
        self.module.machine().cores()
    }

    /// Returns all threads of the device.
    pub fn threads(&self) -> ThreadSet {
        ThreadSet::first(self.module.machine().threads())
    }

    /// Returns the function with this name, without `%`.
    pub fn function(&self, name: &str) -> Option<FuncId> {
        self.module.function_by_name(name)
    }

    /// Compiles functions of a CLIF text and adds them under their names, which are also the
    /// targets of their calls. The threads of rayon's pool share the work if the functions are
    /// large enough; the device is the same as after adding them one by one. The results are in the
    /// order of the functions. A failed function does not stop the others; calls of it report the
    /// reason. Calls between the functions are [inlined](cranelift_naplespu::inlining) if the
    /// target does so.
    pub fn add_functions(&mut self, functions: &[Function]) -> Vec<Result<FuncId, DefineError>> {
        let isa = self.module.npu_isa().clone();
        let mut inlined = functions.to_vec();
        if let Err(error) = inlining::inline_text(&isa, &mut inlined) {
            return functions
                .iter()
                .map(|_| Err(CompileError::from(error.clone()).into()))
                .collect();
        }
        let compiled = parallel::map(
            inlined.iter().collect(),
            |func| func.dfg.num_insts(),
            |worker, func| worker.compile(&isa, func),
        );
        let add = |(func, code): (&Function, _)| {
            let id = self.declare(func)?;
            self.module.define_compiled(id, func, code)?;
            Ok(id)
        };
        inlined.iter().zip(compiled).map(add).collect()
    }

    /// Compiles a function of a CLIF text and adds it under its name.
    ///
    /// # Errors
    ///
    /// See [`DefineError`].
    pub fn add_function(&mut self, function: &Function) -> Result<FuncId, DefineError> {
        let id = self.declare(function)?;
        let mut ctx = Context::for_function(function.clone());
        self.module
            .compile(id, &mut ctx, &mut ControlPlane::default(), Names::Text)?;
        Ok(id)
    }

    /// Compiles a function of a CLIF text and replaces the one with its name; see
    /// [`NpuModule::redefine_function`].
    ///
    /// # Errors
    ///
    /// See [`DefineError`]. The old function stays on errors.
    pub fn replace_function(&mut self, function: &Function) -> Result<FuncId, DefineError> {
        let id = self.declare(function)?;
        let mut ctx = Context::for_function(function.clone());
        self.module.redefine(id, &mut ctx, Names::Text)?;
        Ok(id)
    }

    /// Removes a function and frees its memory; see [`NpuModule::free_function`].
    ///
    /// # Errors
    ///
    /// See [`NpuModule::free_function`].
    pub fn free_function(&mut self, function: FuncId) -> Result<(), LinkError> {
        self.module.free_function(function)
    }

    /// Defines a host function, which kernels call; see [`NpuModule::define_host_function`]. It
    /// runs for one thread at a time, while all threads are stopped.
    ///
    /// # Errors
    ///
    /// See [`NpuModule::define_host_function`].
    pub fn add_host_function(
        &mut self,
        name: &str,
        signature: &Signature,
        function: HostFunction,
    ) -> Result<FuncId, DefineError> {
        self.module.define_host_function(name, signature, function)
    }

    fn declare(&mut self, function: &Function) -> Result<FuncId, DefineError> {
        let name = function_name(&function.name);
        Ok(self
            .module
            .declare_function(&name, Linkage::Export, &function.signature)?)
    }
}
