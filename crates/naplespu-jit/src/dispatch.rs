//! Dispatches: kernels that are written for one work-item, compiled and executed on a [`Device`].

use crate::device::{Arg, Device, DeviceError, Finished, LaunchConfig, ThreadSet};
use crate::error::DefineError;
use cranelift_codegen::ir::Function;
use cranelift_module::FuncId;
use naplespu_object::front::function_name;
use naplespu_spmd::Options;

/// A kernel that is compiled on a device: a work-item function with its dispatch function.
#[derive(Clone, Debug)]
pub struct Kernel {
    function: FuncId,
    options: Options,
    needs_group: bool,
}

/// The reason why a work-item function is not a kernel of a device.
#[derive(Debug)]
pub enum KernelError {
    /// The function has no dispatch function.
    Spmd(naplespu_spmd::Error),
    /// The compiler refuses a function.
    Define {
        /// The name of the function.
        name: String,
        /// The reason.
        error: Box<DefineError>,
    },
}

impl std::error::Error for KernelError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Spmd(error) => Some(error),
            Self::Define { error, .. } => Some(error),
        }
    }
}

impl std::fmt::Display for KernelError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Spmd(error) => error.fmt(f),
            Self::Define { name, error } => write!(f, "{name}: {error}"),
        }
    }
}

impl From<naplespu_spmd::Error> for KernelError {
    fn from(error: naplespu_spmd::Error) -> Self {
        Self::Spmd(error)
    }
}

impl Kernel {
    /// Returns the dispatch function, which the device can also [launch](Device::launch).
    pub fn function(&self) -> FuncId {
        self.function
    }

    /// Returns the options that the kernel was compiled with.
    pub fn options(&self) -> &Options {
        &self.options
    }
}

impl Device {
    /// Compiles a work-item function ([`naplespu_spmd`] has its contract) and the functions that it
    /// calls. Callees that the device already has under their names are not compiled again.
    ///
    /// # Errors
    ///
    /// See [`KernelError`].
    pub fn add_kernel(
        &mut self,
        kernel: &Function,
        callees: &[Function],
        options: &Options,
    ) -> Result<Kernel, KernelError> {
        let functions = naplespu_spmd::compile(kernel, callees, options)?;
        let (dispatch, vector) = functions.split_at(1);
        let scalar = called(&functions, callees);
        let others = vector.iter().cloned().chain(scalar);
        let is_new = |function: &Function| self.function(&function_name(&function.name)).is_none();
        let all: Vec<Function> = dispatch.iter().cloned().chain(others.filter(is_new)).collect();
        let mut ids = Vec::with_capacity(all.len());
        for (added, function) in self.add_functions(&all).into_iter().zip(&all) {
            ids.push(added.map_err(|error| KernelError::Define {
                name: function_name(&function.name),
                error: Box::new(error),
            })?);
        }
        let &[function, ..] = &ids[..] else {
            return Err(KernelError::Spmd(naplespu_spmd::Error::Internal {
                function: kernel.name.to_string(),
                expected: "a dispatch function",
            }));
        };
        Ok(Kernel {
            function,
            needs_group: naplespu_spmd::needs_group(kernel, options),
            options: options.clone(),
        })
    }

    /// Executes all work-items of `groups` work-groups (in x, y and z) and writes the data caches
    /// back, so that the host can read the buffers. `args` are the arguments of the kernel.
    ///
    /// The threads of `config` have to be the first threads of the first cores, the same number on
    /// each core. The cores share the work-groups.
    ///
    /// # Errors
    ///
    /// - [`DeviceError::Threads`] if `config` has other threads.
    /// - [`DeviceError::WorkGroup`] if the threads of a core do not execute a whole work-group at
    ///   once, and the kernel has barriers or workgroup memory.
    /// - Those of [`Device::launch`] and [`Launch::wait`](crate::device::Launch::wait).
    pub fn dispatch(
        &mut self,
        kernel: &Kernel,
        groups: [u32; 3],
        config: impl Into<LaunchConfig>,
        args: &[Arg],
    ) -> Result<Finished, DeviceError> {
        let config = config.into();
        let (cores, threads) = shape(config.threads())?;
        let needed = kernel.options.subgroups();
        if kernel.needs_group && needed as usize > threads {
            return Err(DeviceError::WorkGroup {
                items: kernel.options.work_items(),
                lanes: kernel.options.lanes,
                needed,
                threads,
            });
        }
        let launch = self.launch_each(kernel.function, config, |_, thread| {
            let own = naplespu_spmd::dispatch_arguments(groups, thread.core, cores, threads);
            args.iter().cloned().chain(own.map(Arg::from)).collect()
        })?;
        let finished = launch.wait()?;
        self.module_mut().write_back()?;
        Ok(finished)
    }
}

/// Returns the number of cores and of threads of each core.
fn shape(threads: &ThreadSet) -> Result<(usize, usize), DeviceError> {
    let cores = threads.iter().map(|thread| thread.core + 1).max().unwrap_or(0);
    let of_core = threads.iter().filter(|thread| thread.core == 0).count();
    if cores == 0 {
        return Err(DeviceError::NoThreads);
    }
    if *threads != ThreadSet::on_cores(0..cores, of_core) {
        return Err(DeviceError::Threads);
    }
    Ok((cores, of_core))
}

/// Returns the callees that functions call by their scalar names, directly or not.
fn called(functions: &[Function], callees: &[Function]) -> Vec<Function> {
    let mut found: Vec<Function> = Vec::new();
    let names = |function: &Function| -> Vec<String> {
        let callees = function.dfg.ext_funcs.values();
        callees
            .map(|callee| callee.name.display(Some(&function.params)).to_string())
            .map(|name| name.trim_start_matches('%').to_owned())
            .collect()
    };
    let mut waiting: Vec<String> = functions.iter().flat_map(names).collect();
    while let Some(name) = waiting.pop() {
        if found.iter().any(|function| function_name(&function.name) == name) {
            continue;
        }
        if let Some(callee) = callees.iter().find(|callee| function_name(&callee.name) == name) {
            waiting.extend(names(callee));
            found.push(callee.clone());
        }
    }
    found
}
