//! Runs translated entry points on a device.

use crate::kernel::{Kernel, Parameter};
use crate::module::BindingKind;
use cranelift_codegen::ir::{Function, UserFuncName};
use naplespu_jit::device::{Arg, Buffer, DeviceError, LaunchConfig, Statistics, ThreadSet};
use naplespu_jit::dispatch::KernelError;
use naplespu_jit::{Device, function_name};
use npu_sim::TimingConfig;

/// The alignment of buffers in bytes.
const BUFFER_ALIGNMENT: u32 = 64;

/// The reason why an entry point does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The work-item function is not a kernel of the device.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// A buffer of the entry point is not bound.
    #[error("no buffer is bound to binding {binding} of group {group}")]
    Missing {
        /// The number of the group.
        group: u32,
        /// The number in the group.
        binding: u32,
    },
    /// The bound bytes are too few.
    #[error("the buffer at binding {binding} of group {group} has {size} bytes, at least {least} are needed")]
    TooSmall {
        /// The number of the group.
        group: u32,
        /// The number in the group.
        binding: u32,
        /// The number of bound bytes.
        size: u32,
        /// The least size in bytes.
        least: u32,
    },
    /// Bytes that the entry point writes are bound twice.
    #[error("the buffer at binding {binding} of group {group} is written, and bound a second time")]
    Aliased {
        /// The number of the group.
        group: u32,
        /// The number in the group.
        binding: u32,
    },
    /// The first bound byte is not at a multiple of 64.
    #[error("the buffer at binding {binding} of group {group} is bound at {address:#x}, not a multiple of 64")]
    Unaligned {
        /// The number of the group.
        group: u32,
        /// The number in the group.
        binding: u32,
        /// The address of the first bound byte.
        address: u32,
    },
    /// The bound bytes are not in the buffer.
    #[error("{size} bytes from {offset} on are bound to binding {binding} of group {group}, outside of the buffer")]
    OutOfRange {
        /// The number of the group.
        group: u32,
        /// The number in the group.
        binding: u32,
        /// The first bound byte.
        offset: u32,
        /// The number of bound bytes.
        size: u32,
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
    /// The largest number of instructions of all threads together; one billion by default.
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

/// Bytes of a buffer for a binding.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// The number of the group.
    pub group: u32,
    /// The number in the group.
    pub binding: u32,
    /// The buffer.
    pub buffer: Buffer,
    /// The first byte, a multiple of 64.
    pub offset: u32,
    /// The number of bytes, which is the size of the buffer for the shader.
    pub size: u32,
}

impl Bound {
    /// Binds all bytes of a buffer.
    pub fn whole(group: u32, binding: u32, buffer: Buffer) -> Self {
        Self {
            group,
            binding,
            buffer,
            offset: 0,
            size: buffer.size(),
        }
    }

    /// Returns whether the two have bytes in common.
    fn overlaps(&self, other: &Self) -> bool {
        let end = |one: &Self| u64::from(one.offset) + u64::from(one.size);
        let starts_before = |a: &Self, b: &Self| u64::from(a.offset) < end(b);
        self.buffer == other.buffer && starts_before(self, other) && starts_before(other, self)
    }
}

/// An entry point that is compiled on a device.
#[derive(Debug)]
pub struct Runner {
    kernel: Kernel,
    compiled: naplespu_jit::dispatch::Kernel,
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

    /// Returns what became of the instructions of the entry point, with lines of the source as
    /// locations (for SPIR-V, offsets).
    ///
    /// # Errors
    ///
    /// See [`naplespu_spmd::Error`].
    pub fn remarks(&self) -> Result<Vec<naplespu_spmd::Remark>, naplespu_spmd::Error> {
        let library = crate::math::library();
        let explained = naplespu_spmd::compile_explained(&self.function, library, &self.spmd_options());
        explained.map(|(_, remarks)| remarks)
    }

    /// Returns the dispatch function, followed by vector versions of the functions that it calls.
    ///
    /// # Errors
    ///
    /// See [`naplespu_spmd::Error`].
    pub fn dispatch_functions(&self) -> Result<Vec<Function>, naplespu_spmd::Error> {
        naplespu_spmd::compile(&self.function, crate::math::library(), &self.spmd_options())
    }
}

impl Runner {
    /// Compiles an entry point on a device. Its name gets a number if it is taken.
    ///
    /// # Errors
    ///
    /// [`RunError::Kernel`].
    pub fn new(device: &mut Device, mut kernel: Kernel) -> Result<Self, RunError> {
        let name = function_name(&kernel.function.name);
        let mut free = name.clone();
        let mut number = 1;
        while device.function(&free).is_some() {
            number += 1;
            free = format!("{name}_{number}");
        }
        kernel.function.name = UserFuncName::testcase(free.as_bytes());
        let library = crate::math::library();
        let compiled = device.add_kernel(&kernel.function, library, &kernel.spmd_options())?;
        Ok(Self { kernel, compiled })
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
        let mut arguments: Vec<Arg> = Vec::new();
        for parameter in &self.kernel.parameters {
            arguments.push(match *parameter {
                Parameter::Address(index) => buffers[index].buffer.at(buffers[index].offset),
                Parameter::Size(index) => Arg::from(buffers[index].size.cast_signed()),
            });
        }
        let mut config = LaunchConfig::new(ThreadSet::on_cores(0..dispatch.cores, dispatch.threads));
        if let Some(timing) = &dispatch.timing {
            config = config.timed(*timing);
        }
        if let Some(limit) = dispatch.instruction_limit {
            config = config.instruction_limit(limit);
        }
        let finished = device.dispatch(&self.compiled, dispatch.groups, config, &arguments)?;
        Ok(finished.statistics)
    }

    /// Removes the dispatch function from the device.
    ///
    /// # Errors
    ///
    /// [`RunError::Device`] if it is another device.
    pub fn free(self, device: &mut Device) -> Result<(), RunError> {
        let freed = device.free_function(self.compiled.function());
        freed.map_err(|error| RunError::Device(error.into()))
    }

    /// Returns the buffer of each binding.
    fn buffers(&self, bound: &[Bound]) -> Result<Vec<Bound>, RunError> {
        let mut buffers = Vec::with_capacity(self.kernel.bindings.len());
        for one in &self.kernel.bindings {
            let (group, binding) = (one.group, one.binding);
            let found = bound
                .iter()
                .find(|bound| (bound.group, bound.binding) == (group, binding));
            let Some(&found) = found else {
                return Err(RunError::Missing { group, binding });
            };
            let Bound {
                buffer, offset, size, ..
            } = found;
            if u64::from(offset) + u64::from(size) > u64::from(buffer.size()) {
                return Err(RunError::OutOfRange {
                    group,
                    binding,
                    offset,
                    size,
                });
            }
            let address = buffer.address().wrapping_add(offset);
            if !address.is_multiple_of(BUFFER_ALIGNMENT) {
                return Err(RunError::Unaligned {
                    group,
                    binding,
                    address,
                });
            }
            if size < one.min_size {
                return Err(RunError::TooSmall {
                    group,
                    binding,
                    size,
                    least: one.min_size,
                });
            }
            buffers.push(found);
        }
        for (index, one) in self.kernel.bindings.iter().enumerate() {
            let others = buffers.iter().enumerate().filter(|(other, _)| *other != index);
            let mut same = others.filter(|(_, other)| other.overlaps(&buffers[index]));
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
