//! Runs translated entry points on a device.

use crate::kernel::{Kernel, Parameter};
use crate::module::BindingKind;
use cranelift_codegen::ir::{Function, UserFuncName};
use cranelift_module::FuncId;
use naplespu_jit::device::{Arg, Buffer, DeviceError, LaunchConfig, Statistics, ThreadSet};
use naplespu_jit::{DefineError, Device, function_name};
use npu_sim::TimingConfig;

/// The alignment of buffers in bytes.
const BUFFER_ALIGNMENT: u32 = 64;

/// The reason why an entry point does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The work-item function has no dispatch function.
    #[error(transparent)]
    Spmd(#[from] naplespu_spmd::Error),
    /// A function was not compiled.
    #[error("{name}: {error}")]
    Define {
        /// The name of the function.
        name: String,
        /// The reason.
        error: Box<DefineError>,
    },
    /// A buffer of the entry point is not bound.
    #[error("no buffer is bound to binding {binding} of group {group}")]
    Missing {
        /// The number of the group.
        group: u32,
        /// The number in the group.
        binding: u32,
    },
    /// A bound buffer is too small.
    #[error("the buffer at binding {binding} of group {group} has {size} bytes, at least {least} are needed")]
    TooSmall {
        /// The number of the group.
        group: u32,
        /// The number in the group.
        binding: u32,
        /// The size of the buffer in bytes.
        size: u32,
        /// The least size in bytes.
        least: u32,
    },
    /// A buffer that the entry point writes is bound twice.
    #[error("the buffer at binding {binding} of group {group} is written, and bound a second time")]
    Aliased {
        /// The number of the group.
        group: u32,
        /// The number in the group.
        binding: u32,
    },
    /// The work-items of a work-group wait for each other, and the threads execute fewer at once.
    #[error("a work-group of {items} work-items needs {needed} threads of {lanes} lanes, the dispatch has {threads}")]
    TooFewThreads {
        /// The work-items of a work-group.
        items: u32,
        /// The needed threads of a core.
        needed: u32,
        /// The lanes of a thread.
        lanes: u32,
        /// The threads of each core in the dispatch.
        threads: usize,
    },
    /// The launch failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// The work-groups of a dispatch, and the threads that execute them.
#[derive(Clone, Debug)]
pub struct Dispatch {
    /// The numbers of work-groups in x, y and z.
    pub groups: [u32; 3],
    /// The threads of each core, from thread 0 on.
    pub threads: usize,
    /// The cores, from core 0 on.
    pub cores: usize,
    /// The timing model, which counts cycles.
    pub timing: Option<TimingConfig>,
    /// The largest number of instructions of all threads together, if it is limited by the caller.
    pub instruction_limit: Option<u64>,
}

impl Dispatch {
    /// Returns a dispatch on these threads of one core, without the timing model.
    pub fn new(groups: [u32; 3], threads: usize) -> Self {
        Self {
            groups,
            threads,
            cores: 1,
            timing: None,
            instruction_limit: None,
        }
    }
}

/// A buffer for a binding.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// The number of the group.
    pub group: u32,
    /// The number in the group.
    pub binding: u32,
    /// The buffer.
    pub buffer: Buffer,
}

/// An entry point that is compiled on a device.
#[derive(Debug)]
pub struct Runner {
    kernel: Kernel,
    function: FuncId,
}

impl Kernel {
    /// Returns the options for the dispatch function.
    pub fn spmd_options(&self) -> naplespu_spmd::Options {
        let alignment = |parameter: &Parameter| match parameter {
            Parameter::Address(_) => BUFFER_ALIGNMENT,
            Parameter::Size(_) => 1,
        };
        naplespu_spmd::Options {
            workgroup_size: self.workgroup_size,
            workgroup_bytes: self.workgroup_bytes,
            lanes: self.lanes,
            alignment: self.parameters.iter().map(alignment).collect(),
        }
    }

    /// Returns the dispatch function, followed by the functions that it calls.
    ///
    /// # Errors
    ///
    /// See [`naplespu_spmd::Error`].
    pub fn dispatch_functions(&self) -> Result<Vec<Function>, naplespu_spmd::Error> {
        let library = crate::math::functions();
        let mut functions = naplespu_spmd::compile(&self.function, library, &self.spmd_options())?;
        let called = called_scalars(&functions, library);
        functions.extend(called);
        Ok(functions)
    }
}

/// Returns the functions of the library that other functions call, directly or not.
fn called_scalars(functions: &[Function], library: &[Function]) -> Vec<Function> {
    let mut found: Vec<Function> = Vec::new();
    let mut waiting: Vec<String> = functions.iter().flat_map(callees).collect();
    while let Some(name) = waiting.pop() {
        if found.iter().any(|one| function_name(&one.name) == name) {
            continue;
        }
        let of_library = library.iter().find(|one| function_name(&one.name) == name);
        if let Some(function) = of_library {
            waiting.extend(callees(function));
            found.push(function.clone());
        }
    }
    found
}

/// Returns the names of the external functions of a function.
fn callees(function: &Function) -> Vec<String> {
    let names = function.dfg.ext_funcs.values();
    names
        .map(|callee| callee.name.display(Some(&function.params)).to_string())
        .map(|name| name.trim_start_matches('%').to_owned())
        .collect()
}

impl Runner {
    /// Compiles an entry point on a device. Its name gets a number if it is taken.
    ///
    /// # Errors
    ///
    /// [`RunError::Spmd`] and [`RunError::Define`].
    pub fn new(device: &mut Device, mut kernel: Kernel) -> Result<Self, RunError> {
        let name = function_name(&kernel.function.name);
        let mut free = name.clone();
        let mut number = 1;
        while device.function(&free).is_some() {
            number += 1;
            free = format!("{name}_{number}");
        }
        kernel.function.name = UserFuncName::testcase(free.as_bytes());
        let functions = kernel.dispatch_functions()?;
        let is_new = |function: &&Function| device.function(&function_name(&function.name)).is_none();
        let new: Vec<Function> = functions.iter().filter(is_new).cloned().collect();
        let mut dispatch = None;
        for (added, function) in device.add_functions(&new).into_iter().zip(&new) {
            let name = function_name(&function.name);
            match added {
                Ok(id) if name == free => dispatch = Some(id),
                Ok(_) => {}
                Err(error) => {
                    let error = Box::new(error);
                    return Err(RunError::Define { name, error });
                }
            }
        }
        match dispatch {
            Some(function) => Ok(Self { kernel, function }),
            None => Err(RunError::Spmd(naplespu_spmd::Error::Internal {
                function: free,
                expected: "the dispatch function",
            })),
        }
    }

    /// Returns the entry point.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Runs the work-groups of a dispatch, and writes the data caches back, so that the host can
    /// read the buffers.
    ///
    /// # Errors
    ///
    /// See [`RunError`]. The device stays usable.
    pub fn dispatch(&self, device: &mut Device, dispatch: &Dispatch, bound: &[Bound]) -> Result<Statistics, RunError> {
        let buffers = self.buffers(bound)?;
        let options = self.kernel.spmd_options();
        let needed = options.subgroups();
        if naplespu_spmd::needs_group(&self.kernel.function, &options) && needed as usize > dispatch.threads {
            return Err(RunError::TooFewThreads {
                items: options.work_items(),
                needed,
                lanes: options.lanes,
                threads: dispatch.threads,
            });
        }
        let mut arguments: Vec<Arg> = Vec::new();
        for parameter in &self.kernel.parameters {
            arguments.push(match *parameter {
                Parameter::Address(index) => buffers[index].into(),
                Parameter::Size(index) => Arg::from(buffers[index].size() as i32),
            });
        }
        arguments.extend(dispatch.groups.map(|count| Arg::from(count as i32)));
        let mut config = LaunchConfig::new(ThreadSet::on_cores(0..dispatch.cores, dispatch.threads));
        if let Some(timing) = &dispatch.timing {
            config = config.timed(timing.clone());
        }
        if let Some(limit) = dispatch.instruction_limit {
            config = config.instruction_limit(limit);
        }
        let (cores, threads) = (dispatch.cores, dispatch.threads);
        let launch = device.launch_each(self.function, config, |_, thread| {
            let mut all = arguments.clone();
            all.extend([thread.core, cores, threads].map(|number| Arg::from(number as i32)));
            all
        })?;
        let finished = launch.wait()?;
        // A write to memory by the host writes the caches back; an empty one does nothing else.
        if let Some(&buffer) = buffers.first() {
            device.copy_in(buffer, 0, &[])?;
        }
        Ok(finished.statistics)
    }

    /// Returns the buffer of each binding.
    fn buffers(&self, bound: &[Bound]) -> Result<Vec<Buffer>, RunError> {
        let mut buffers = Vec::with_capacity(self.kernel.bindings.len());
        for one in &self.kernel.bindings {
            let (group, binding) = (one.group, one.binding);
            let found = bound
                .iter()
                .find(|bound| (bound.group, bound.binding) == (group, binding));
            let Some(found) = found else {
                return Err(RunError::Missing { group, binding });
            };
            let size = found.buffer.size();
            if size < one.min_size {
                return Err(RunError::TooSmall {
                    group,
                    binding,
                    size,
                    least: one.min_size,
                });
            }
            buffers.push(found.buffer);
        }
        for (index, one) in self.kernel.bindings.iter().enumerate() {
            let others = buffers.iter().enumerate().filter(|(other, _)| *other != index);
            let mut same = others.filter(|(_, other)| **other == buffers[index]);
            if one.kind == BindingKind::Storage && same.next().is_some() {
                return Err(RunError::Aliased {
                    group: one.group,
                    binding: one.binding,
                });
            }
        }
        Ok(buffers)
    }
}
