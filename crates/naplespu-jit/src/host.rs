//! Functions of the host that code of the device calls.
//!
//! Such a function is one instruction on the device, a return, with a stop address. Whoever calls it stops there; the host takes the
//! arguments from where the convention puts them, puts the results where it wants them, and lets the thread go on with the return.

use super::error::{LinkError, RunError};
use super::values::{ThreadPlaces, fit};
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::Type;
use cranelift_naplespu::abi::sig::SigInfo;
use npu_mc::SReg;
use npu_sim::Machine;
use std::collections::HashMap;

/// What a function of the host is given beside its arguments.
#[derive(Debug)]
pub struct HostCall<'a> {
    /// The device, stopped in the call.
    pub machine: &'a mut Machine,
    /// The thread that calls.
    pub thread: usize,
}

impl HostCall<'_> {
    /// The core of the thread that calls.
    pub fn core(&self) -> usize {
        self.thread / npu_sim::THREADS
    }

    /// Copies memory of the device as the thread that calls would load it, whatever the data caches hold back.
    pub fn read(&self, address: u32, bytes: &mut [u8]) {
        self.machine.read_as_core(self.core(), address, bytes);
    }

    /// Writes memory of the device as the thread that calls would store it.
    ///
    /// # Errors
    ///
    /// [`HostStop::Fault`] if the simulation holds no more memory.
    pub fn write(&mut self, address: u32, bytes: &[u8]) -> Result<(), HostStop> {
        let core = self.core();
        let written = self.machine.write_as_core(core, address, bytes);
        written.map_err(|full| HostStop::Fault(full.to_string()))
    }
}

/// Why a function of the host does not return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostStop {
    /// The program is over, with this status.
    Exit(u32),
    /// Something went wrong.
    Fault(String),
}

/// A function of the host. Its results have to be those of its signature; vectors of more than 128 bits come and go as their lanes, see
/// [`host_types`](super::host_types).
pub type HostFunction = Box<dyn FnMut(HostCall<'_>, &[DataValue]) -> Result<Vec<DataValue>, HostStop> + Send>;

/// One of them on the device.
pub(super) struct Host {
    pub(super) name: String,
    pub(super) info: SigInfo,
    pub(super) params: Vec<Type>,
    pub(super) returns: Vec<Type>,
    pub(super) function: HostFunction,
}

/// All of them, by their addresses.
#[derive(Default)]
pub(super) struct Hosts(pub(super) HashMap<u32, Host>);

impl Hosts {
    /// Whether such a function is at an address.
    pub(super) fn has(&self, address: u32) -> bool {
        self.0.contains_key(&address)
    }

    /// Forgets the function at an address, if there is one.
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
