//! Functions of the host that code of the device calls.
//!
//! Such a function is one instruction on the device, a return, with a stop address. Whoever calls it stops there; the host takes the
//! arguments from where the convention puts them, puts the results where it wants them, and lets the thread go on with the return.

use super::call;
use super::error::{DefineError, LinkError, RunError};
use super::link::words;
use super::{Definition, NpuModule};
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{Signature, Type};
use cranelift_module::{FuncId, Linkage, Module};
use cranelift_naplespu::abi::sig::{Place, SigInfo};
use npu_mc::{Inst, Opcode, Reg, SReg};
use npu_sim::{Machine, Stop};
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

/// A function of the host. Its results have to be those of its signature.
pub type HostFunction = Box<dyn FnMut(HostCall<'_>, &[DataValue]) -> Result<Vec<DataValue>, HostStop> + Send>;

/// One of them on the device.
struct Host {
    name: String,
    info: SigInfo,
    params: Vec<Type>,
    returns: Vec<Type>,
    function: HostFunction,
}

/// All of them, by their addresses.
#[derive(Default)]
pub(super) struct Hosts(HashMap<u32, Host>);

/// Bytes of the largest value that is passed.
const MOST_BYTES: usize = 16;

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

impl NpuModule {
    /// Defines a function that the host computes, which functions of the module call like any other. Arguments and results are
    /// integers, floats, and vectors of 16 bytes at most. The threads of the device stand still meanwhile, and no time passes for them.
    ///
    /// # Errors
    ///
    /// See [`DefineError`]; a signature with vectors of more than 16 bytes, or of lanes that are not those of the machine, is refused.
    pub fn define_host_function(
        &mut self,
        name: &str,
        signature: &Signature,
        function: HostFunction,
    ) -> Result<FuncId, DefineError> {
        let types = |list: &[cranelift_codegen::ir::AbiParam]| list.iter().map(|param| param.value_type).collect();
        let (params, returns): (Vec<Type>, Vec<Type>) = (types(&signature.params), types(&signature.returns));
        let is_passed =
            |ty: &Type| (ty.is_int() || ty.is_float() || call::is_vector(*ty)) && ty.bytes() as usize <= MOST_BYTES;
        if !params.iter().chain(&returns).all(is_passed) {
            let what =
                format!("%{name}: a function of the host takes and gives integers, floats, and vectors of 16 bytes");
            return Err(LinkError::Internal(what).into());
        }
        let info = SigInfo::new(signature, name).map_err(DefineError::Compile)?;
        let id = self.declare_function(name, Linkage::Export, signature)?;
        let code = words(&[Inst::new(Opcode::JRET, [])])?;
        self.define_function_bytes(id, 4, &code, &[])?;
        let address = match self.functions.get(id) {
            Some(&Definition::Object(index)) => self.linker.object(index).map(|object| object.address),
            _ => None,
        };
        let Some(address) = address else {
            return Err(LinkError::Internal(format!("%{name} has no address")).into());
        };
        self.machine.add_breakpoint(address);
        let host = Host {
            name: name.to_owned(),
            info,
            params,
            returns,
            function,
        };
        self.hosts.0.insert(address, host);
        Ok(id)
    }

    /// Computes the function of the host that the thread has stopped at; `false` if it stopped for another reason.
    pub(super) fn answer(&mut self, thread: usize, stop: &Stop) -> Result<bool, RunError> {
        let Stop::Breakpoint { pc } = stop else {
            return Ok(false);
        };
        match self.hosts.0.get_mut(pc) {
            Some(host) => host.answer(&mut self.machine, thread).map(|()| true),
            None => Ok(false),
        }
    }
}

impl Host {
    fn answer(&mut self, machine: &mut Machine, thread: usize) -> Result<(), RunError> {
        let sp = machine.thread(thread).scalar(SReg::SP);
        let core = thread / npu_sim::THREADS;
        let word = |machine: &Machine, place: &Place| match *place {
            Place::Reg(Reg::S(reg)) => machine.thread(thread).scalar(reg),
            Place::Reg(Reg::V(_)) => 0,
            Place::Memory(offset) => {
                let mut bytes = [0; 4];
                machine.read_as_core(core, sp.wrapping_add(offset), &mut bytes);
                u32::from_le_bytes(bytes)
            }
        };
        let mut args = Vec::with_capacity(self.params.len());
        for (ty, places) in self.params.iter().zip(&self.info.args) {
            if call::is_vector(*ty) {
                let lanes = match places.first() {
                    Some(&Place::Reg(Reg::V(reg))) => machine.thread(thread).vector(reg).0,
                    Some(&Place::Memory(offset)) => call::lanes_at(|at| word(machine, &Place::Memory(offset + at))),
                    _ => [0; call::LANES],
                };
                args.extend(call::values_of(*ty, &lanes));
                continue;
            }
            let mut bytes = [0; MOST_BYTES];
            for (place, bytes) in places.iter().zip(bytes.as_chunks_mut().0) {
                *bytes = word(machine, place).to_le_bytes();
            }
            args.push(DataValue::read_from_slice_le(&bytes, *ty));
        }
        let area = self.info.ret_area.as_ref().map(|place| word(machine, place));
        let results = (self.function)(HostCall { machine, thread }, &args);
        let results = results.map_err(|stop| match stop {
            HostStop::Exit(status) => RunError::Exit(status),
            HostStop::Fault(reason) => RunError::Host {
                function: self.name.clone(),
                reason,
            },
        })?;
        // A value of a vector knows its size alone.
        let fits = |value: &DataValue, ty: &Type| {
            let given = value.ty();
            given == *ty || given.is_vector() && ty.is_vector() && given.bytes() == ty.bytes()
        };
        let right = results.len() == self.returns.len();
        if !(right && results.iter().zip(&self.returns).all(|(value, ty)| fits(value, ty))) {
            return Err(RunError::Host {
                function: self.name.clone(),
                reason: "its results are not those of its signature".to_owned(),
            });
        }
        let area = area.unwrap_or(sp);
        let store = |machine: &mut Machine, offset: u32, word: u32| {
            let written = machine.write_as_core(core, area.wrapping_add(offset), &word.to_le_bytes());
            written.map_err(|full| LinkError::MemoryFull(full.to_string()))
        };
        for ((value, ty), places) in results.iter().zip(&self.returns).zip(&self.info.rets) {
            if call::is_vector(*ty) {
                let lanes = call::lanes_of(*ty, std::slice::from_ref(value));
                match places.first() {
                    Some(&Place::Reg(Reg::V(reg))) => {
                        machine.thread_mut(thread).set_vector(reg, npu_sim::Lanes(lanes));
                    }
                    Some(&Place::Memory(offset)) => {
                        for (lane, at) in lanes.into_iter().zip((offset..).step_by(4)) {
                            store(machine, at, lane)?;
                        }
                    }
                    _ => {}
                }
                continue;
            }
            let mut bytes = [0; MOST_BYTES];
            value.write_to_slice_le(&mut bytes);
            for (place, bytes) in places.iter().zip(bytes.as_chunks().0) {
                let word = u32::from_le_bytes(*bytes);
                match *place {
                    Place::Reg(Reg::S(reg)) => machine.thread_mut(thread).set_scalar(reg, word),
                    Place::Reg(Reg::V(_)) => {}
                    Place::Memory(offset) => store(machine, offset, word)?,
                }
            }
        }
        machine
            .thread_mut(thread)
            .set_scalar(SReg::SP, sp.wrapping_add(self.info.popped));
        Ok(())
    }
}
