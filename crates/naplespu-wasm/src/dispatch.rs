//! Dispatches: kernels of instances, executed over work-groups.

use crate::items::FuncItem;
use crate::kernel::{self, Kernel};
use crate::store::{CallError, Instance, Store, Value};
use cranelift_codegen::Context;
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{Function, UserFuncName};
use cranelift_module::{FuncId, Linkage, Module};
use naplespu_jit::RunError;
use naplespu_spmd::{LANE_COUNTS, Options, Remark};
use npu_mc::machine::CACHE_LINE;
use npu_sim::THREADS;
use std::collections::{BTreeMap, HashMap};

/// The work-groups of a dispatch, and the threads that execute them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// The numbers of work-groups in x, y and z.
    pub groups: [u32; 3],
    /// The work-items of a work-group in x, y and z.
    pub workgroup_size: [u32; 3],
    /// The bytes of the scratchpad, from address 0, that are zero when a work-group starts.
    pub workgroup_bytes: u32,
    /// The work-items that a thread executes at once: 1, 16, 32, 64 or 128. `None` is 16, or as many
    /// as a work-group needs whose work-items wait for each other.
    pub lanes: Option<u32>,
    /// The threads of each core, from thread 0 on.
    pub threads: usize,
    /// The cores, from core 0 on.
    pub cores: usize,
    /// The size of the shadow stack in bytes. The threads share it in equal parts.
    pub stack_bytes: u32,
}

/// The reason why a function cannot be dispatched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DispatchError {
    /// The function calls no work-item function.
    #[error("{0} is no kernel: it calls no function of `npu` that returns its work-item")]
    NoKernel(String),
    /// The kernel uses the shadow stack in another way than for a frame of constant size.
    #[error("{0} has variables in memory whose size is not constant, which a kernel cannot have")]
    ShadowStack(String),
    /// The frames of the lanes of a thread are larger than its part of the shadow stack.
    #[error("the variables in memory of the lanes of a thread have {needed} bytes; its stack has {available}")]
    StackSize {
        /// The bytes of the frames.
        needed: u32,
        /// The bytes of the stack.
        available: u32,
    },
    /// The kernel calls a function that is a kernel itself.
    #[error("{kernel} calls {callee}, which calls {operation}; only the kernel itself can call it, so inline {callee}")]
    CallsKernel {
        /// The kernel.
        kernel: String,
        /// Its callee.
        callee: String,
        /// The import that the callee calls.
        operation: String,
    },
    /// The store was created without [`Config::thread_stacks`](crate::Config::thread_stacks).
    #[error("the instance has no stack for each thread")]
    NoThreadStacks,
    /// The threads of a core do not execute a whole work-group at once, and its work-items wait for
    /// each other or share the scratchpad.
    #[error(
        "a work-group of {items} work-items needs {needed} threads of a core with {lanes} lanes, {threads} take part; \
         use more lanes or threads"
    )]
    WorkGroup {
        /// The work-items of a work-group.
        items: u32,
        /// The work-items that a thread executes at once.
        lanes: u32,
        /// The threads that are needed.
        needed: u32,
        /// The threads that take part.
        threads: usize,
    },
    /// The kernel has no form on lanes.
    #[error(transparent)]
    Spmd(#[from] naplespu_spmd::Error),
    /// The compiler refuses a function.
    #[error("{name}: {reason}")]
    Define {
        /// The name of the function.
        name: String,
        /// The reason.
        reason: String,
    },
}

/// The kernels of a store.
#[derive(Debug, Default)]
pub(crate) struct Kernels {
    kernels: HashMap<FuncId, Kernel>,
    /// The other functions of modules with kernels.
    functions: BTreeMap<FuncId, Function>,
    /// The dispatch functions by kernel and options, with whether work-groups are executed at once.
    compiled: Vec<(FuncId, Options, FuncId, bool)>,
}

impl Kernels {
    /// Adds the kernels of a module, and its functions.
    pub fn add(&mut self, kernels: Vec<Kernel>, functions: &[(FuncId, Context)]) {
        if kernels.is_empty() {
            return;
        }
        self.functions
            .extend(functions.iter().map(|(id, ctx)| (*id, ctx.func.clone())));
        for kernel in kernels {
            self.functions.remove(&kernel.id);
            self.kernels.insert(kernel.id, kernel);
        }
    }

    /// Returns the kernels.
    pub fn iter(&self) -> impl Iterator<Item = &Kernel> {
        self.kernels.values()
    }
}

/// A kernel with its callees, as CLIF with names.
struct Prepared {
    kernel: Function,
    callees: Vec<Function>,
    options: Options,
    /// The bytes of the frames of all lanes on the shadow stack.
    frames: u32,
}

impl Store {
    /// Executes a kernel, which asks for its work-item by imports from `npu`, for all work-items of
    /// the work-groups. Its parameters are `i32`, equal for all work-items.
    ///
    /// The store needs [`Config::thread_stacks`](crate::Config::thread_stacks).
    ///
    /// # Errors
    ///
    /// [`CallError::Dispatch`], [`CallError::Arguments`], and those of [`Store::call_threads`].
    pub fn dispatch(
        &mut self,
        instance: &Instance,
        item: FuncItem,
        args: &[Value],
        dispatch: &Dispatch,
    ) -> Result<(), CallError> {
        if !(1..=THREADS).contains(&dispatch.threads) {
            let refused = RunError::Threads {
                asked: dispatch.threads,
                available: THREADS,
            };
            return Err(refused.into());
        }
        let prepared = self.prepare(item, args, dispatch)?;
        let (function, needs_group) = self.dispatch_function(item.id, &prepared)?;
        let options = &prepared.options;
        let threads = dispatch.threads;
        if needs_group && options.subgroups() as usize > threads {
            let refused = DispatchError::WorkGroup {
                items: options.work_items(),
                lanes: options.lanes,
                needed: options.subgroups(),
                threads,
            };
            return Err(refused.into());
        }
        let numbers = (0..dispatch.cores).flat_map(|core| (0..threads).map(move |thread| (core, thread)));
        let calls: BTreeMap<usize, Vec<DataValue>> = numbers
            .map(|(core, thread)| {
                let own = naplespu_spmd::dispatch_arguments(dispatch.groups, core, dispatch.cores, threads);
                let all = args.iter().map(|arg| arg.to_clif()).chain(own.map(DataValue::I32));
                (core * THREADS + thread, all.collect())
            })
            .collect();
        let numbers: Vec<usize> = calls.keys().copied().collect();
        self.divide_stack(instance, &numbers, dispatch.stack_bytes, prepared.frames)?;
        let called = self.module_mut().call_each(function, calls);
        called.map_err(|error| self.call_error(error))?;
        Ok(self.module_mut().write_back()?)
    }

    /// Returns what became of the instructions of a kernel. Locations are offsets in the binary
    /// module.
    ///
    /// # Errors
    ///
    /// [`CallError::Dispatch`] and [`CallError::Arguments`].
    pub fn remarks(&self, item: FuncItem, args: &[Value], dispatch: &Dispatch) -> Result<Vec<Remark>, CallError> {
        let prepared = self.prepare(item, args, dispatch)?;
        let explained = naplespu_spmd::compile_explained(&prepared.kernel, &prepared.callees, &prepared.options);
        let (_, remarks) = explained.map_err(DispatchError::from)?;
        Ok(remarks)
    }

    fn prepare(&self, item: FuncItem, args: &[Value], dispatch: &Dispatch) -> Result<Prepared, CallError> {
        self.check_arguments(item, args)?;
        let name_of = |id| self.name_of(id);
        let Some(kernel) = self.kernels.kernels.get(&item.id) else {
            return Err(DispatchError::NoKernel(name_of(item.id)).into());
        };
        if !self.has_thread_stacks() {
            return Err(DispatchError::NoThreadStacks.into());
        }
        let mut callee = kernel::callees(&kernel.function).filter_map(|id| self.kernels.kernels.get(&id));
        if let Some(callee) = callee.next() {
            let refused = DispatchError::CallsKernel {
                kernel: name_of(item.id),
                callee: name_of(callee.id),
                operation: callee.operation.clone(),
            };
            return Err(refused.into());
        }
        let alignment = |arg: &Value| match arg {
            Value::I32(number) => 1 << number.trailing_zeros().min(CACHE_LINE.trailing_zeros()),
            _ => 1,
        };
        let functions = self.kernels.functions.iter();
        let stack_pointer = kernel.stack_pointer;
        let mut kernel = kernel::with_names(&kernel.function, item.id, name_of);
        let mut options = Options {
            workgroup_size: dispatch.workgroup_size,
            workgroup_bytes: dispatch.workgroup_bytes,
            lanes: dispatch.lanes.unwrap_or(LANE_COUNTS[0]),
            alignment: args.iter().map(alignment).collect(),
        };
        if dispatch.lanes.is_none() {
            options.lanes = options.lanes_for(&kernel, dispatch.threads as u32);
        }
        let mut frames = 0;
        if let Some(pointer) = stack_pointer {
            let divided = kernel::divide_frame(&mut kernel, pointer, options.lanes);
            frames = divided.ok_or_else(|| DispatchError::ShadowStack(name_of(item.id)))?;
        }
        Ok(Prepared {
            kernel,
            callees: functions
                .map(|(&id, func)| kernel::with_names(func, id, name_of))
                .collect(),
            options,
            frames,
        })
    }

    /// Compiles a kernel for a dispatch, unless it is compiled already.
    fn dispatch_function(&mut self, id: FuncId, prepared: &Prepared) -> Result<(FuncId, bool), CallError> {
        let Prepared {
            kernel,
            callees,
            options,
            ..
        } = prepared;
        let known = self
            .kernels
            .compiled
            .iter()
            .find(|one| one.0 == id && one.1 == *options);
        if let Some(&(_, _, function, needs_group)) = known {
            return Ok((function, needs_group));
        }
        let functions = naplespu_spmd::compile(kernel, callees, options).map_err(DispatchError::from)?;
        let mut compiled = Vec::with_capacity(functions.len());
        for (index, mut func) in functions.into_iter().enumerate() {
            let mut name = func.name.to_string().trim_start_matches('%').to_owned();
            if index == 0 {
                name = format!("{name}.dispatch{}", self.kernels.compiled.len());
                self.name_lines(&self.name_of(id), &name);
                // Each thread has a stack of its own, below the limit of the first one.
                func.stack_limit = None;
            } else if self.module().function_by_name(&name).is_some() {
                continue;
            }
            let declared = self
                .module_mut()
                .declare_function(&name, Linkage::Export, &func.signature);
            let id = declared.map_err(|error| define_error(&name, &error))?;
            func.name = UserFuncName::user(0, id.as_u32());
            compiled.push((id, Context::for_function(func)));
        }
        let results = self.module_mut().compile_functions(&mut compiled);
        for ((id, _), result) in compiled.iter().zip(results) {
            result.map_err(|error| define_error(&self.name_of(*id), &error))?;
        }
        let Some(&(function, _)) = compiled.first() else {
            return Err(CallError::Internal("a dispatch function".to_owned()));
        };
        let needs_group = naplespu_spmd::needs_group(kernel, options);
        self.kernels.compiled.push((id, options.clone(), function, needs_group));
        Ok((function, needs_group))
    }
}

fn define_error(name: &str, error: &dyn std::fmt::Display) -> CallError {
    let refused = DispatchError::Define {
        name: name.to_owned(),
        reason: error.to_string(),
    };
    refused.into()
}
