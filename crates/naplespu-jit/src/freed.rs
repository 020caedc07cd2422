//! Freed functions and data, and redefined functions.
//!
//! References to a removed object are linked again: they wait for a new definition of the name and
//! then get its address. Pointers in registers and in memory that the program computed cannot be
//! found. Until the memory of a removed function is reused, the simulator stops at its entry.

use super::error::{DefineError, LinkError, name_refusals};
use super::npu_module::{Definition, NpuModule};
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_module::{DataId, FuncId};
use naplespu_object::front::Names;
use npu_link::Waiting;
use npu_sim::Machine;
use std::collections::{BTreeMap, HashMap};

/// The resolved references of objects.
#[derive(Debug, Default)]
pub(super) struct Uses {
    /// The references to each object.
    of: HashMap<usize, Vec<Waiting>>,
    /// The objects that the references of each object have resolved to.
    by: HashMap<usize, Vec<usize>>,
    /// The last written address of each reference whose object was removed.
    before: HashMap<Waiting, u32>,
}

impl Uses {
    /// Records that a reference was written with the address of an object.
    pub(super) fn found(&mut self, reference: Waiting, object: usize) {
        self.before.remove(&reference);
        self.of.entry(object).or_default().push(reference);
        self.by.entry(reference.0).or_default().push(object);
    }

    /// Records that a reference no longer depends on an object.
    pub(super) fn forget(&mut self, reference: Waiting) {
        self.before.remove(&reference);
    }

    /// Returns the last written address of a reference whose object was removed.
    pub(super) fn before(&self, reference: Waiting) -> Option<u32> {
        self.before.get(&reference).copied()
    }

    /// Removes an object at an address; returns the references to it, which wait again.
    fn remove(&mut self, object: usize, address: u32) -> Vec<Waiting> {
        for found in self.by.remove(&object).unwrap_or_default() {
            if let Some(users) = self.of.get_mut(&found) {
                users.retain(|&(user, _)| user != object);
            }
        }
        self.before.retain(|&(user, _), _| user != object);
        let users = self.of.remove(&object).unwrap_or_default();
        for &user in &users {
            self.before.insert(user, address);
            if let Some(found) = self.by.get_mut(&user.0) {
                found.retain(|&other| other != object);
            }
        }
        users
    }
}

/// The freed functions by address, until their memory is reused.
#[derive(Debug, Default)]
pub(super) struct Freed(BTreeMap<u32, String>);

impl Freed {
    /// Returns the freed function at this address.
    pub(super) fn get(&self, address: u32) -> Option<&str> {
        self.0.get(&address).map(String::as_str)
    }

    fn insert(&mut self, machine: &mut Machine, address: u32, name: String) {
        machine.add_breakpoint(address);
        self.0.insert(address, name);
    }

    /// Records that the memory from `start` up to `end` is reused.
    pub(super) fn reused(&mut self, machine: &mut Machine, (start, end): (u32, u32)) {
        let inside: Vec<u32> = self
            .0
            .range(start..end.max(start))
            .map(|(&address, _)| address)
            .collect();
        for address in inside {
            self.0.remove(&address);
            machine.remove_breakpoint(address);
        }
    }
}

impl NpuModule {
    /// Removes the definition of a function and frees its memory. References to it wait: they
    /// cannot be called until a new definition with this name exists, by
    /// [`cranelift_module::Module::define_function`] or otherwise.
    ///
    /// Pointers to the function become invalid. A call through such a pointer is
    /// [`RunError::Freed`](super::RunError::Freed) until the memory is reused.
    ///
    /// # Errors
    ///
    /// [`LinkError::NotDefined`] if the module has no code of the function.
    pub fn free_function(&mut self, func: FuncId) -> Result<(), LinkError> {
        let Some(index) = Self::object(self.functions.get(func)) else {
            let declared = self
                .functions
                .is_valid(func)
                .then(|| self.front.declarations().get_function_decl(func));
            let name = declared.map_or_else(|| func.to_string(), |declared| declared.linkage_name(func).into_owned());
            return Err(LinkError::NotDefined(name));
        };
        self.set_function(func, Definition::None);
        self.remove(index)
    }

    /// Removes a data object and frees its memory, like [`NpuModule::free_function`].
    ///
    /// # Errors
    ///
    /// [`LinkError::NotDefined`] if the module does not define it.
    pub fn free_data(&mut self, data: DataId) -> Result<(), LinkError> {
        let Some(index) = Self::object(self.data.get(data)) else {
            let declared = self
                .data
                .is_valid(data)
                .then(|| self.front.declarations().get_data_decl(data));
            let name = declared.map_or_else(|| data.to_string(), |declared| declared.linkage_name(data).into_owned());
            return Err(LinkError::NotDefined(name));
        };
        if let Some(definition) = self.data.get_mut(data) {
            *definition = Definition::None;
        }
        self.remove(index)
    }

    /// Compiles a function and replaces the definition with this id, if one exists. All references
    /// get the new address, including words of data that still contain the old one. The memory of
    /// the old function is freed. If the new one does not compile or memory is full, the old one
    /// stays.
    ///
    /// # Errors
    ///
    /// See [`DefineError`].
    pub fn redefine_function(&mut self, func: FuncId, ctx: &mut Context) -> Result<(), DefineError> {
        self.redefine(func, ctx, Names::Ids)
    }

    pub(crate) fn redefine(&mut self, func: FuncId, ctx: &mut Context, names: Names) -> Result<(), DefineError> {
        let old = Self::object(self.functions.get(func));
        let name = self.prepare_anew(func, ctx, names)?;
        let code = self
            .front
            .compiler
            .compile(&self.front.isa, ctx, &mut ControlPlane::default());
        let code = code.map_err(|mut error| {
            if names == Names::Ids {
                name_refusals(&mut error, &name);
            }
            error
        })?;
        self.define_code(func, name, &ctx.func, Ok(code), names)?;
        match old {
            Some(old) => Ok(self.remove(old)?),
            None => Ok(()),
        }
    }

    /// Removes an object so that nothing resolves to it.
    fn remove(&mut self, index: usize) -> Result<(), LinkError> {
        let Some(object) = self.linker.remove(index) else {
            return Err(LinkError::Internal(format!("there is no object {index} to be freed")));
        };
        for copy in self.copies.remove(index) {
            self.remove(copy)?;
        }
        let users = self.uses.remove(index, object.address);
        self.linker.wait(users);
        if self.code.remove(&index).is_some() {
            self.unwind.is_stale = true;
        }
        if object.purpose == npu_link::Purpose::Code {
            self.hosts.remove(object.address);
            self.freed.insert(&mut self.machine, object.address, object.name);
        }
        self.changed();
        Ok(())
    }
}
