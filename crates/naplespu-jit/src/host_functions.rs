//! Definitions and calls of host functions of a module.

use super::error::{DefineError, LinkError, RunError};
use super::host::{Host, HostFunction};
use super::link::words;
use super::npu_module::{Definition, NpuModule};
use super::values::is_value_type;
use cranelift_codegen::ir::{Signature, Type};
use cranelift_module::{FuncId, Linkage, Module};
use cranelift_naplespu::abi::sig::SigInfo;
use npu_mc::{Inst, Opcode};
use npu_sim::Stop;

impl NpuModule {
    /// Defines a function that runs on the host; functions of the module call it like any other.
    /// Arguments and results have the form of those of [`NpuModule::call`]. All threads of the
    /// device are stopped during the call, and the call takes no simulated time.
    ///
    /// # Errors
    ///
    /// See [`DefineError`]; [`LinkError::HostType`] if the host has no value for a type of the
    /// signature.
    pub fn define_host_function(
        &mut self,
        name: &str,
        signature: &Signature,
        function: HostFunction,
    ) -> Result<FuncId, DefineError> {
        let types = |list: &[cranelift_codegen::ir::AbiParam]| list.iter().map(|param| param.value_type).collect();
        let (params, returns): (Vec<Type>, Vec<Type>) = (types(&signature.params), types(&signature.returns));
        if let Some(&ty) = params.iter().chain(&returns).find(|ty| !is_value_type(**ty)) {
            return Err(LinkError::HostType(name.to_owned(), ty).into());
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

    /// Runs the host function at which the thread has stopped. Returns `false` if the thread
    /// stopped for another reason.
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
