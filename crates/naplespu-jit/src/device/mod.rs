//! The simulated machine as an accelerator: memory that is allocated and copied, kernels that are launched on threads of its cores.
//!
//! # Contract
//!
//! A [`Device`] owns an [`NpuModule`] and what its host needs around it. Kernels are functions of the module. A [`Launch`] has checked everything that can
//! be checked before anything runs: the kernel and all that it reaches, the arguments, the [`ThreadSet`]. It borrows the device, so that nothing
//! else touches its memory meanwhile; [`Launch::wait`] runs it to its end, [`Launch::advance`] a part of the way, and both may be called on any
//! thread of the host. The same launch on the same device gives the same results, statistics and errors.
//!
//! Everything that the host or a kernel does wrong is a [`DeviceError`]; the device is good for other launches afterwards.
//!
//! # Structure
//!
//! `memory` has buffers, `threads` names threads, `launch` runs kernels, `error` has all that can go wrong.
//!
//! # Invariants
//!
//! - A [`Buffer`] that was freed, or is another device's, is never taken for one of this device.
//! - Buffers do not share a cache line, so what a core holds back of one never gets into another.

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
use crate::program::function_name;
use crate::target::Names;
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{Function, Signature};
use cranelift_module::{FuncId, Linkage, Module};
use cranelift_naplespu::Isa;
use memory::Heap;
use std::sync::Arc;

/// An accelerator: cores with hardware threads, memory, and the functions that they can run.
#[derive(Debug)]
pub struct Device {
    module: NpuModule,
    heap: Heap,
}

impl Device {
    /// A device of one core.
    ///
    /// # Errors
    ///
    /// See [`NpuModule::new`].
    pub fn new(isa: Arc<Isa>) -> Result<Self, LinkError> {
        Self::with_config(isa, npu_sim::Config::default())
    }

    /// A device of this configuration: how many cores and how much memory, and whether the cores have data caches.
    /// [`Config::coherent`](npu_sim::Config::coherent) means that they have none, and every store is in memory at once. Without it the host finds what a kernel
    /// flushed, as on the hardware, and the rest [when it writes](NpuModule::write_memory) or launches something.
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

    /// The functions and data of the device.
    pub fn module(&self) -> &NpuModule {
        &self.module
    }

    /// The functions and data of the device, to be declared, defined, redefined and freed as in any module of Cranelift. Memory that the module
    /// itself allocates has nothing to do with [`Buffer`]s.
    pub fn module_mut(&mut self) -> &mut NpuModule {
        &mut self.module
    }

    /// How many cores there are.
    pub fn cores(&self) -> usize {
        self.module.machine().cores()
    }

    /// All threads of the device.
    pub fn threads(&self) -> ThreadSet {
        ThreadSet::first(self.module.machine().threads())
    }

    /// The function of this name, without `%`.
    pub fn function(&self, name: &str) -> Option<FuncId> {
        self.module.function_by_name(name)
    }

    /// Compiles functions of a text and adds them under their names, by which they also call each other. If together they are large enough for that,
    /// the threads of rayon's pool share the work; the device is the same as if they had been added one by one. The results are in the order of
    /// the functions; one that fails does not stop the others, and calls of it say why it failed.
    pub fn add_functions(&mut self, functions: &[Function]) -> Vec<Result<FuncId, DefineError>> {
        let isa = self.module.npu_isa().clone();
        let compiled = parallel::map(
            functions.iter().collect(),
            |func| func.dfg.num_insts(),
            |worker, func| worker.compile(&isa, func),
        );
        let add = |(func, code): (&Function, _)| {
            let id = self.declare(func)?;
            self.module.define_compiled(id, func, code)?;
            Ok(id)
        };
        functions.iter().zip(compiled).map(add).collect()
    }

    /// Compiles a function of a text and adds it under its name.
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

    /// Compiles a function of a text and puts it in the place of the one of its name; see [`NpuModule::redefine_function`].
    ///
    /// # Errors
    ///
    /// See [`DefineError`]. The old one stays then.
    pub fn replace_function(&mut self, function: &Function) -> Result<FuncId, DefineError> {
        let id = self.declare(function)?;
        let mut ctx = Context::for_function(function.clone());
        self.module.redefine(id, &mut ctx, Names::Text)?;
        Ok(id)
    }

    /// Takes a function out and gives its memory to others; see [`NpuModule::free_function`].
    ///
    /// # Errors
    ///
    /// See there.
    pub fn free_function(&mut self, function: FuncId) -> Result<(), LinkError> {
        self.module.free_function(function)
    }

    /// Defines a function that kernels call and the host computes; see [`NpuModule::define_host_function`]. It is asked by one thread at a time, while
    /// all threads stand still.
    ///
    /// # Errors
    ///
    /// See there.
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
