//! Host functions, which code of the device calls.
//!
//! On the device, a host function is one return instruction with a breakpoint. A caller stops
//! there. The host reads the arguments by the calling convention, runs the function, writes the
//! results, and resumes the thread at the return.

use super::error::{LinkError, RunError};
use super::values::{ThreadPlaces, fit};
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::Type;
use cranelift_naplespu::abi::sig::SigInfo;
use npu_mc::SReg;
use npu_sim::Machine;
use std::collections::HashMap;

/// The context of a host function, in addition to its arguments.
#[derive(Debug)]
pub struct HostCall<'a> {
    /// The device, stopped in the call.
    pub machine: &'a mut Machine,
    /// The calling thread.
    pub thread: usize,
}

impl HostCall<'_> {
    /// Returns the core of the calling thread.
    pub fn core(&self) -> usize {
        self.thread / npu_sim::THREADS
    }

    /// Reads memory of the device as a load of the calling thread would, including dirty cache
    /// lines.
    pub fn read(&self, address: u32, bytes: &mut [u8]) {
        self.machine.read_as_core(self.core(), address, bytes);
    }

    /// Writes memory of the device as a store of the calling thread would.
    ///
    /// # Errors
    ///
    /// [`HostStop::Fault`] if the simulated memory is full.
    pub fn write(&mut self, address: u32, bytes: &[u8]) -> Result<(), HostStop> {
        let core = self.core();
        let written = self.machine.write_as_core(core, address, bytes);
        written.map_err(|full| HostStop::Fault(full.to_string()))
    }
}

/// The reason why a host function does not return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostStop {
    /// The program ends with this status.
    Exit(u32),
    /// The function failed.
    Fault(String),
}

/// A host function. Its results have to match its signature. Vectors of more than 128 bits are
/// passed as their lanes; see [`host_types`](super::host_types).
pub type HostFunction = Box<dyn FnMut(HostCall<'_>, &[DataValue]) -> Result<Vec<DataValue>, HostStop> + Send>;

/// A host function on the device.
pub(super) struct Host {
    pub(super) name: String,
    pub(super) info: SigInfo,
    pub(super) params: Vec<Type>,
    pub(super) returns: Vec<Type>,
    pub(super) function: HostFunction,
}

/// All host functions by address.
#[derive(Default)]
pub(super) struct Hosts(pub(super) HashMap<u32, Host>);

impl Hosts {
    /// Returns whether a host function is at an address.
    pub(super) fn has(&self, address: u32) -> bool {
        self.0.contains_key(&address)
    }

    /// Removes the function at an address, if one exists.
    pub(super) fn remove(&mut self, address: u32) {
        self.0.remove(&address);
    }
}

impl Host {
    pub(super) fn answer(&mut self, machine: &mut Machine, thread: usize) -> Result<(), RunError> {
        let sp = machine.thread(thread).scalar(SReg::SP);
        let places = ThreadPlaces {
            machine: &mut *machine,
            thread,
            base: sp,
        };
        let args = places.get_all(self.params.iter().copied(), &self.info.args);
        let area = self.info.ret_area.map(|place| places.word(place));
        let results = (self.function)(HostCall { machine, thread }, &args);
        let results = results.map_err(|stop| match stop {
            HostStop::Exit(status) => RunError::Exit(status),
            HostStop::Fault(reason) => RunError::Host {
                function: self.name.clone(),
                reason,
            },
        })?;
        if !fit(self.returns.iter().copied(), &results) {
            return Err(RunError::Host {
                function: self.name.clone(),
                reason: "its results are not those of its signature".to_owned(),
            });
        }
        let mut places = ThreadPlaces {
            machine: &mut *machine,
            thread,
            base: area.unwrap_or(sp),
        };
        let written = places.set_all(self.returns.iter().copied(), &self.info.rets, &results);
        written.map_err(|full| LinkError::MemoryFull(full.to_string()))?;
        let popped = sp.wrapping_add(self.info.popped);
        machine.thread_mut(thread).set_scalar(SReg::SP, popped);
        Ok(())
    }
}
