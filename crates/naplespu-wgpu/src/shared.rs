//! The state of a device that its objects share.
//!
//! Locks are taken in this order: the machine, a buffer or query set, and then those that no other
//! lock is taken under (freed objects, callbacks, error scopes). User callbacks run without locks.

use crate::buffer::BufferInner;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::sink::{Sink, lock};
use cranelift_codegen::settings::{self, Configurable};
use naplespu_jit::Device;
use naplespu_jit::device::Buffer;
use naplespu_shader::Runner;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use wgpu::custom::{BoxDeviceLostCallback, BoxSubmittedWorkDoneCallback};
use wgpu::{DeviceLostReason, Features, Limits, MapRangeError};

/// Returns an error for a range that is not mapped. Only `wgpu` can create one, for a buffer whose
/// mapping no program requested.
pub(crate) type RangeError = fn(&Arc<Shared>) -> Option<MapRangeError>;

/// The simulated machine of a device.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) device: Device,
    /// The cycles of all dispatches, with the timing model.
    pub(crate) cycles: u64,
}

/// Memory of the machine without an owner.
#[derive(Debug)]
pub(crate) enum Freed {
    Buffer(Buffer),
    Kernel(Box<Runner>),
}

/// A callback that waits for a poll.
pub(crate) enum Waiting {
    Map(Weak<BufferInner>),
    Done(BoxSubmittedWorkDoneCallback),
}

/// Whether the device is lost, and who asks.
#[derive(Default)]
struct Loss {
    lost: Option<(DeviceLostReason, String)>,
    callback: Option<BoxDeviceLostCallback>,
}

/// The state of a device.
pub(crate) struct Shared {
    machine: Mutex<Machine>,
    freed: Mutex<Vec<Freed>>,
    waiting: Mutex<Vec<Waiting>>,
    loss: Mutex<Loss>,
    submissions: AtomicU64,
    pub(crate) sink: Sink,
    pub(crate) config: Config,
    pub(crate) features: Features,
    pub(crate) limits: Limits,
    pub(crate) range_error: RangeError,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("config", &self.config)
            .field("features", &self.features)
            .finish_non_exhaustive()
    }
}

/// The reason why there is no machine.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error(transparent)]
    Target(#[from] cranelift_naplespu::isa::LookupError),
    #[error(transparent)]
    Flag(#[from] settings::SetError),
    #[error(transparent)]
    Setting(#[from] cranelift_naplespu::settings::SetError),
    #[error("{0}")]
    Isa(String),
    #[error(transparent)]
    Link(#[from] naplespu_jit::LinkError),
}

/// Creates a machine with one core.
fn start(config: &Config) -> Result<Device, StartError> {
    let mut flags = settings::builder();
    flags.set("opt_level", "speed")?;
    let mut builder = cranelift_naplespu::isa::lookup_by_name("naplespu")?;
    builder.set("strict_float", if config.strict_float { "true" } else { "false" })?;
    let isa = builder
        .finish(settings::Flags::new(flags))
        .map_err(|error| StartError::Isa(error.to_string()))?;
    let machine = npu_sim::Config {
        memory_limit: config.memory,
        ..npu_sim::Config::default()
    };
    Ok(Device::with_config(isa, machine)?)
}

impl Shared {
    pub(crate) fn new(
        config: Config,
        features: Features,
        limits: Limits,
        range_error: RangeError,
    ) -> Result<Self, StartError> {
        let machine = Machine {
            device: start(&config)?,
            cycles: 0,
        };
        Ok(Self {
            machine: Mutex::new(machine),
            freed: Mutex::default(),
            waiting: Mutex::default(),
            loss: Mutex::default(),
            submissions: AtomicU64::new(0),
            sink: Sink::default(),
            config,
            features,
            limits,
            range_error,
        })
    }

    /// Locks the machine, after it released all freed objects.
    pub(crate) fn machine(&self) -> MutexGuard<'_, Machine> {
        let mut machine = lock(&self.machine);
        let freed = std::mem::take(&mut *lock(&self.freed));
        for one in freed {
            // Each object is freed once, so an error is impossible; and a leak is harmless.
            match one {
                Freed::Buffer(buffer) => drop(machine.device.free(buffer)),
                Freed::Kernel(runner) => drop(runner.free(&mut machine.device)),
            }
        }
        machine
    }

    /// Frees an object of the machine. May be called under any lock.
    pub(crate) fn free(&self, freed: Freed) {
        lock(&self.freed).push(freed);
    }

    /// Reports the error of a call, unless the device is lost.
    pub(crate) fn report(&self, call: &str, error: Error) {
        if self.check().is_ok() {
            self.sink.report(call, error);
        }
    }

    /// Returns an error if the device is lost.
    pub(crate) fn check(&self) -> Result<()> {
        if lock(&self.loss).lost.is_some() {
            return Err(Error::Lost);
        }
        Ok(())
    }

    /// Loses the device, once, and calls the callback.
    pub(crate) fn lose(&self, reason: DeviceLostReason, message: String) {
        let callback = {
            let mut loss = lock(&self.loss);
            if loss.lost.is_some() {
                return;
            }
            loss.lost = Some((reason, message.clone()));
            loss.callback.take()
        };
        if let Some(callback) = callback {
            callback(reason, message);
        }
    }

    /// Sets the callback. If the device is lost, it is called at once.
    pub(crate) fn on_loss(&self, callback: BoxDeviceLostCallback) {
        let lost = {
            let mut loss = lock(&self.loss);
            match loss.lost.clone() {
                Some(lost) => lost,
                None => {
                    loss.callback = Some(callback);
                    return;
                }
            }
        };
        callback(lost.0, lost.1);
    }

    pub(crate) fn wait(&self, waiting: Waiting) {
        lock(&self.waiting).push(waiting);
    }

    /// Calls the callbacks that wait. Submissions end in `submit`, so all of them can be called.
    pub(crate) fn poll(&self) {
        let waiting = std::mem::take(&mut *lock(&self.waiting));
        for one in waiting {
            match one {
                Waiting::Map(buffer) => {
                    if let Some(buffer) = buffer.upgrade() {
                        buffer.finish_map();
                    }
                }
                Waiting::Done(callback) => callback(),
            }
        }
    }

    /// Counts a submission and returns its index.
    pub(crate) fn count_submission(&self) -> u64 {
        self.submissions.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns the index of the last submission.
    pub(crate) fn last_submission(&self) -> u64 {
        self.submissions.load(Ordering::Relaxed)
    }
}
