//! Functions and data that are freed, and functions that are defined anew.
//!
//! What refers to an object that is gone is linked again: it waits until there is something of that name, and gets its address. What only the
//! program knows, pointers in registers and memory, cannot be found: at the entry of a function that is gone the simulator stops, until others
//! have its memory.

use super::error::{DefineError, LinkError, name_refusals};
use super::npu_module::{Definition, NpuModule};
use super::target::Names;
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_module::{DataId, FuncId};
use npu_link::Waiting;
use npu_sim::Machine;
use std::collections::{BTreeMap, HashMap};

/// Which references have found which objects.
#[derive(Debug, Default)]
pub(super) struct Uses {
    /// The references to an object.
    of: HashMap<usize, Vec<Waiting>>,
    /// The objects that the references of an object have found.
    by: HashMap<usize, Vec<usize>>,
    /// The address that was written for a reference whose object is gone.
    before: HashMap<Waiting, u32>,
}

impl Uses {
    /// Notes that a reference was written, with the address of an object.
    pub(super) fn found(&mut self, reference: Waiting, object: usize) {
        self.before.remove(&reference);
        self.of.entry(object).or_default().push(reference);
        self.by.entry(reference.0).or_default().push(object);
    }

    /// Notes that a reference does not depend on an object any more.
    pub(super) fn forget(&mut self, reference: Waiting) {
        self.before.remove(&reference);
    }

    /// The address that was written for a reference whose object is gone.
    pub(super) fn before(&self, reference: Waiting) -> Option<u32> {
        self.before.get(&reference).copied()
    }

    /// Forgets an object that was at an address; gives the references to it, which wait again.
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

/// The functions that are gone whose memory nobody else has yet, by their addresses.
#[derive(Debug, Default)]
pub(super) struct Freed(BTreeMap<u32, String>);

impl Freed {
    /// The function that was there.
    pub(super) fn get(&self, address: u32) -> Option<&str> {
        self.0.get(&address).map(String::as_str)
    }

    fn insert(&mut self, machine: &mut Machine, address: u32, name: String) {
        machine.add_breakpoint(address);
        self.0.insert(address, name);
    }

    /// Somebody else has the memory from the first address to before the second.
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
    /// Takes a function out of the module, as if it had not been defined, and frees its memory for others. What refers to it waits: it
    /// cannot be called until there is a function of that name again, by [`cranelift_module::Module::define_function`] or another way.
    ///
    /// A pointer to the function that the program keeps is worth nothing from here on. A call of it is [`RunError::Freed`](super::RunError::Freed)
    /// until others have the memory.
    ///
    /// # Errors
    ///
    /// [`LinkError::NotDefined`] if the module has no code of it.
    pub fn free_function(&mut self, func: FuncId) -> Result<(), LinkError> {
        let Some(index) = Self::object(self.functions.get(func)) else {
            let declared = self
                .functions
                .is_valid(func)
                .then(|| self.declarations.get_function_decl(func));
            let name = declared.map_or_else(|| func.to_string(), |declared| declared.linkage_name(func).into_owned());
            return Err(LinkError::NotDefined(name));
        };
        self.set_function(func, Definition::None);
        self.remove(index)
    }

    /// Takes a data object out of the module and frees its memory, as [`NpuModule::free_function`] does with functions.
    ///
    /// # Errors
    ///
    /// [`LinkError::NotDefined`] if the module does not define it.
    pub fn free_data(&mut self, data: DataId) -> Result<(), LinkError> {
        let Some(index) = Self::object(self.data.get(data)) else {
            let declared = self.data.is_valid(data).then(|| self.declarations.get_data_decl(data));
            let name = declared.map_or_else(|| data.to_string(), |declared| declared.linkage_name(data).into_owned());
            return Err(LinkError::NotDefined(name));
        };
        if let Some(definition) = self.data.get_mut(data) {
            *definition = Definition::None;
        }
        self.remove(index)
    }

    /// Compiles a function and puts it in the place of the one that is there under this id, if there is one: everything that refers to it
    /// gets the new one, also words of data that still have the old address. The memory of the old one is freed. If it does not compile, or
    /// finds no room, the old one stays.
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
        let code = self.compiler.compile(&self.isa, ctx, &mut ControlPlane::default());
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

    /// Takes an object out that nobody is to find any more.
    fn remove(&mut self, index: usize) -> Result<(), LinkError> {
        let Some(object) = self.linker.remove(index) else {
            return Err(LinkError::Internal(format!("there is no object {index} to be freed")));
        };
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
