//! Symbol resolution and linking.
//!
//! An object gets its address when it is defined ([`npu_link::Linker`]). Its references wait until
//! the next linking. Then references to defined symbols are written and the others keep waiting, so
//! that functions without undefined symbols can be called.

use super::error::{LinkError, Location, RunError};
use super::layout::{TLS_BYTES, TLS_START, tls_block};
use super::npu_module::{Definition, NpuModule};
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::function::FunctionParameters;
use cranelift_module::{FuncOrDataId, Linkage};
use cranelift_naplespu::CompileError;
use cranelift_naplespu::code::CompiledCode;
use naplespu_object::front::{Names, Target};
use npu_link::{Contents, Memory, Purpose, Reference, Waiting};
use npu_mc::Inst;
use npu_mc::machine::INSTRUCTION_SIZE;
use npu_mc::reloc::Reloc;
use npu_sim::{Machine, MemoryFull};
use std::collections::HashSet;

/// The result of resolving a reference.
#[derive(Clone, Copy, Debug)]
pub(super) enum Resolved {
    Object(usize),
    Address(u32),
    /// A preemptible symbol without a definition; its address is 0.
    Absent,
}

impl Memory for Device<'_> {
    fn write(&mut self, purpose: Purpose, address: u32, bytes: &[u8]) -> Result<(), String> {
        match purpose {
            Purpose::Code | Purpose::Data => self.write_main(address, bytes),
            // Every thread has a copy.
            Purpose::ThreadLocal => {
                (0..self.0.threads()).try_for_each(|thread| self.write_main(tls_block(thread) + address, bytes))
            }
            // Addresses from the linker lie within the scratchpad. Every core has a scratchpad.
            Purpose::Scratchpad => {
                let start = address as usize;
                for core in 0..self.0.cores() {
                    let scratchpad = self.0.core_scratchpad_mut(core);
                    let place = scratchpad.get_mut(start..start + bytes.len());
                    let outside = || format!("{} bytes at {address:#x} do not lie in the scratchpad", bytes.len());
                    place.ok_or_else(outside)?.copy_from_slice(bytes);
                }
                Ok(())
            }
        }
    }

    fn clear(&mut self, purpose: Purpose, address: u32, size: u32) -> Result<(), String> {
        if matches!(purpose, Purpose::Scratchpad | Purpose::ThreadLocal) {
            return self.write(purpose, address, &vec![0; size as usize]);
        }
        clear_memory(self.0, address, size).map_err(|full| full.to_string())
    }

    fn read_word(&self, purpose: Purpose, address: u32) -> Result<[u8; 4], String> {
        match purpose {
            Purpose::Code | Purpose::Data => return Ok(self.0.memory().read_u32(address).to_le_bytes()),
            // All threads have the same contents there until the first call.
            Purpose::ThreadLocal => return Ok(self.0.memory().read_u32(tls_block(0) + address).to_le_bytes()),
            Purpose::Scratchpad => {}
        }
        let word = self.0.scratchpad().get(address as usize..);
        let word = word.and_then(|rest| rest.first_chunk()).copied();
        word.ok_or_else(|| format!("no word of the scratchpad is at {address:#x}"))
    }
}

/// The memories of the simulated device.
struct Device<'a>(&'a mut Machine);

impl Device<'_> {
    fn write_main(&mut self, address: u32, bytes: &[u8]) -> Result<(), String> {
        write_memory(self.0, address, bytes).map_err(|full| full.to_string())
    }
}

/// Writes main memory from the host. Dirty cache lines are written back before; a later write-back
/// would overwrite the host's data.
pub(super) fn write_memory(machine: &mut Machine, address: u32, bytes: &[u8]) -> Result<(), MemoryFull> {
    machine.write_back_caches()?;
    machine.memory_mut().write(address, bytes)
}

/// Zeroes main memory from the host, after a write-back of the caches.
pub(super) fn clear_memory(machine: &mut Machine, address: u32, size: u32) -> Result<(), MemoryFull> {
    machine.write_back_caches()?;
    machine.memory_mut().clear(address, size)
}

impl NpuModule {
    /// Places an object. Its references wait for the next linking.
    pub(super) fn place(&mut self, contents: Contents<'_, Target>) -> Result<usize, LinkError> {
        let index = self.linker.place(&mut Device(&mut self.machine), contents)?;
        if let Some(object) = self.linker.object(index) {
            self.freed.reused(&mut self.machine, object.room());
        }
        self.changed();
        Ok(index)
    }

    /// Records that a symbol may have been defined.
    pub(super) fn changed(&mut self) {
        self.dirty = true;
        self.ready.clear();
    }

    /// Resolves a name outside the module.
    fn outside(&self, name: &str) -> Option<Resolved> {
        if let Some(&address) = self.symbols.get(name) {
            return Some(Resolved::Address(address));
        }
        if let Some(address) = self.lookup.as_ref().and_then(|lookup| lookup(name)) {
            return Some(Resolved::Address(address));
        }
        self.routine(name).filter(|_| self.can_import(name))
    }

    /// Resolves a placed routine of the runtime.
    fn routine(&self, name: &str) -> Option<Resolved> {
        match self.runtime.get(name) {
            Some(Definition::Object(index)) => Some(Resolved::Object(*index)),
            _ => None,
        }
    }

    /// Returns whether a name of the program may refer to the runtime's routine with that name.
    fn can_import(&self, name: &str) -> bool {
        self.imports_runtime || naplespu_runtime::is_library(name)
    }

    /// Returns the module's own definition of a target.
    fn definition(&self, target: &Target) -> Option<&Definition> {
        match target {
            Target::Func(id) => self.functions.get(*id),
            Target::Data(id) => self.data.get(*id),
            Target::Name(name) => match self.front.declarations().get_name(name)? {
                FuncOrDataId::Func(id) => self.functions.get(id),
                FuncOrDataId::Data(id) => self.data.get(id),
            },
            Target::Runtime(name) => self.runtime.get(name),
        }
    }

    /// Returns the name and linkage of a target, if it is declared and has a name.
    fn declared<'a>(&'a self, target: &'a Target) -> (Option<&'a str>, Option<Linkage>) {
        let id = match target {
            Target::Func(id) => FuncOrDataId::Func(*id),
            Target::Data(id) => FuncOrDataId::Data(*id),
            Target::Name(name) => match self.front.declarations().get_name(name) {
                Some(id) => id,
                None => return (Some(name), None),
            },
            Target::Runtime(_) => return (None, None),
        };
        match id {
            FuncOrDataId::Func(id) if self.functions.is_valid(id) => {
                let declaration = self.front.declarations().get_function_decl(id);
                (declaration.name.as_deref(), Some(declaration.linkage))
            }
            FuncOrDataId::Data(id) if self.data.is_valid(id) => {
                let declaration = self.front.declarations().get_data_decl(id);
                (declaration.name.as_deref(), Some(declaration.linkage))
            }
            _ => (None, None),
        }
    }

    /// Returns a readable name of a target, without `%`.
    pub(super) fn target_name(&self, target: &Target) -> String {
        match target {
            Target::Name(name) | Target::Runtime(name) => name.clone(),
            Target::Func(id) if self.functions.is_valid(*id) => self
                .front
                .declarations()
                .get_function_decl(*id)
                .linkage_name(*id)
                .into_owned(),
            Target::Data(id) if self.data.is_valid(*id) => self
                .front
                .declarations()
                .get_data_decl(*id)
                .linkage_name(*id)
                .into_owned(),
            Target::Func(id) => id.to_string(),
            Target::Data(id) => id.to_string(),
        }
    }

    /// Resolves a target to a definition of the module, an address from the host, or a placed
    /// routine of the runtime.
    pub(super) fn resolve(&self, target: &Target) -> Option<Resolved> {
        if let Some(Definition::Object(index)) = self.definition(target) {
            return Some(Resolved::Object(*index));
        }
        let (name, linkage) = self.declared(target);
        let found = name.and_then(|name| self.outside(name));
        found.or((linkage == Some(Linkage::Preemptible)).then_some(Resolved::Absent))
    }

    /// Returns the address of a target, if it resolves.
    pub(super) fn address_of(&self, target: &Target) -> Option<u32> {
        self.resolved_address(self.resolve(target)?)
    }

    /// Returns the address, or `None` if the object does not exist.
    fn resolved_address(&self, resolved: Resolved) -> Option<u32> {
        match resolved {
            Resolved::Object(index) => self.linker.object(index).map(|object| object.address),
            Resolved::Address(address) => Some(address),
            Resolved::Absent => Some(0),
        }
    }

    /// Compiles and places the routine of the runtime that a target may refer to.
    pub(super) fn add_runtime(&mut self, target: &Target) {
        let name = match (target, self.declared(target)) {
            (Target::Runtime(name), _) => name,
            (_, (Some(name), _)) if self.can_import(name) => name,
            _ => return,
        };
        if self.runtime.contains_key(name) {
            return;
        }
        let name = name.to_owned();
        if let Some(data) = naplespu_runtime::data(&name) {
            let definition = self.place_runtime_data(&name, data);
            self.runtime.insert(name, definition);
            return;
        }
        let isa = self.runtime_isa.get_or_insert_with(|| self.front.isa.for_runtime());
        let definition = match naplespu_runtime::compiled(isa, &name) {
            Some(code) => self.place_routine(&name, code, &FunctionParameters::new()),
            None => match naplespu_runtime::function(&name) {
                Ok(None) => return,
                Ok(Some(function)) => self.compile_runtime(&name, function),
                Err(reason) => Definition::Failed { refused: false, reason },
            },
        };
        self.runtime.insert(name, definition);
    }

    fn place_runtime_data(&mut self, name: &str, data: naplespu_runtime::Data) -> Definition {
        let bytes: Vec<u8> = match name {
            naplespu_runtime::TLS => [TLS_START, TLS_BYTES].into_iter().flat_map(u32::to_le_bytes).collect(),
            _ => Vec::new(),
        };
        let contents = Contents {
            name: name.to_owned(),
            purpose: Purpose::Data,
            align: Some(data.align.into()),
            bytes: &bytes,
            size: data.size.into(),
            references: Vec::new(),
        };
        match self.place(contents) {
            Ok(index) => Definition::Object(index),
            Err(error) => Definition::Failed {
                refused: false,
                reason: error.to_string(),
            },
        }
    }

    /// Releases the locks of atomic operations, which a thread of a failed call may still hold.
    pub(super) fn free_locks(&mut self) -> Result<(), LinkError> {
        for name in [naplespu_runtime::ATOMIC_LOCKS, naplespu_runtime::MACHINE_LOCK] {
            let Some(Definition::Object(index)) = self.runtime.get(name) else {
                continue;
            };
            if let Some(object) = self.linker.object(*index) {
                // The rest of the memory of the lock between cores is unused.
                let size = match name {
                    naplespu_runtime::MACHINE_LOCK => {
                        naplespu_runtime::MACHINE_LOCK_LINES * npu_mc::machine::CACHE_LINE
                    }
                    _ => object.size,
                };
                let (address, zeros) = (object.address, vec![0; size as usize]);
                self.write_memory(address, &zeros)?;
            }
        }
        Ok(())
    }

    fn compile_runtime(&mut self, name: &str, function: &cranelift_codegen::ir::Function) -> Definition {
        let isa = self.runtime_isa.get_or_insert_with(|| self.front.isa.for_runtime());
        let mut ctx = Context::for_function(function.clone());
        let code = match self.front.compiler.compile(isa, &mut ctx, &mut ControlPlane::default()) {
            Ok(code) => code,
            Err(error) => return Definition::failed(&error),
        };
        self.place_routine(name, code, &ctx.func.params)
    }

    fn place_routine(&mut self, name: &str, code: CompiledCode, params: &FunctionParameters) -> Definition {
        let own = Target::Runtime(name.to_owned());
        let reference = |reloc: &cranelift_naplespu::code::Reloc| Reference {
            offset: reloc.offset,
            kind: reloc.kind,
            target: Target::of_code(&reloc.target, &own, params, Names::Runtime),
            addend: reloc.addend,
        };
        let references = code.relocs.iter().map(reference).collect();
        match self.place_code(name.to_owned(), code, references) {
            Ok(index) => Definition::Object(index),
            Err(error) => Definition::Failed {
                refused: false,
                reason: error.to_string(),
            },
        }
    }

    /// Places compiled code.
    pub(super) fn place_code(
        &mut self,
        name: String,
        code: CompiledCode,
        references: Vec<Reference<Target>>,
    ) -> Result<usize, LinkError> {
        let index = self.place(Contents {
            name,
            purpose: Purpose::Code,
            align: None,
            bytes: &code.bytes,
            size: code.bytes.len() as u64,
            references,
        })?;
        self.code.insert(index, code);
        self.unwind.is_stale = true;
        Ok(index)
    }

    /// Writes all references that resolve, adding the routines of the runtime that they need.
    pub(super) fn link(&mut self) -> Result<(), LinkError> {
        if !self.dirty {
            return Ok(());
        }
        let mut waiting = Vec::new();
        let mut result = Ok(());
        // A routine of the runtime has references itself.
        while !self.linker.waiting().is_empty() && result.is_ok() {
            for reference in self.linker.take_waiting() {
                let written = if result.is_ok() {
                    self.link_one(reference)
                } else {
                    Ok(false)
                };
                match written {
                    Ok(true) => {}
                    Ok(false) => waiting.push(reference),
                    Err(error) => {
                        waiting.push(reference);
                        result = Err(error);
                    }
                }
            }
        }
        self.linker.wait(waiting);
        if result.is_ok() {
            result = self.fill_unwind_table();
        }
        self.dirty = result.is_err();
        result
    }

    /// Writes one reference; returns whether it is final.
    fn link_one(&mut self, waiting: Waiting) -> Result<bool, LinkError> {
        let Some(reference) = self.linker.reference(waiting) else {
            let (object, reference) = waiting;
            let what = format!("object {object} has no reference {reference}");
            return Err(LinkError::Internal(what));
        };
        let (target, kind) = (&reference.target, reference.kind);
        let resolved = match self.resolve(target) {
            found @ Some(Resolved::Object(_) | Resolved::Address(_)) => found,
            Some(Resolved::Absent) | None => {
                let target = target.clone();
                self.add_runtime(&target);
                self.resolve(&target)
            }
        };
        let resolved = resolved.map(|resolved| match resolved {
            Resolved::Object(index) => Resolved::Object(self.copies.target(waiting.0, kind, index)),
            other => other,
        });
        match resolved {
            Some(resolved) => {
                let missing = || LinkError::Internal(format!("{resolved:?} is defined, and not linked"));
                let symbol = self.resolved_address(resolved).ok_or_else(missing)?;
                if self.is_changed(waiting)? {
                    return Ok(true);
                }
                self.linker.apply(&mut Device(&mut self.machine), waiting, symbol)?;
                match resolved {
                    Resolved::Object(index) => self.uses.found(waiting, index),
                    Resolved::Address(_) => self.uses.forget(waiting),
                    Resolved::Absent => return Ok(false),
                }
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// Returns whether the program has changed a word of data that had the address of a removed
    /// object. The linker must not overwrite such a word.
    fn is_changed(&mut self, waiting: Waiting) -> Result<bool, LinkError> {
        let Some(before) = self.uses.before(waiting) else {
            return Ok(false);
        };
        let (Some(object), Some(reference)) = (self.linker.object(waiting.0), self.linker.reference(waiting)) else {
            return Ok(false);
        };
        if reference.kind != Reloc::Abs32 || object.purpose == Purpose::Code {
            return Ok(false);
        }
        let (purpose, place) = (object.purpose, object.address + reference.offset);
        let linked = before.wrapping_add(reference.addend as u32);
        let word = Device(&mut self.machine).read_word(purpose, place);
        let word = word.map_err(|error| LinkError::Internal(format!("%{}: {error}", object.name)))?;
        let is_changed = u32::from_le_bytes(word) != linked;
        if is_changed {
            self.uses.forget(waiting);
        }
        Ok(is_changed)
    }

    /// Returns the undefined symbols, each with the name of one user.
    pub(super) fn missing(&self) -> Vec<(String, String)> {
        let mut list: Vec<(String, String)> = Vec::new();
        for &waiting in self.linker.waiting() {
            let (Some(reference), Some(object)) = (self.linker.reference(waiting), self.linker.object(waiting.0))
            else {
                continue;
            };
            let target = &reference.target;
            if self.resolve(target).is_some() {
                continue;
            }
            list.push((self.target_name(target), object.name.clone()));
        }
        list.sort();
        list.dedup_by(|a, b| a.0 == b.0);
        list
    }

    /// Checks that all symbols are defined that code can reach from a target.
    pub(super) fn check_reachable(&mut self, start: &Target) -> Result<(), RunError> {
        let first = match self.resolve(start) {
            Some(Resolved::Object(index)) => index,
            Some(Resolved::Address(_)) => return Ok(()),
            Some(Resolved::Absent) | None => return Err(self.why_missing(start, None)),
        };
        if self.ready.contains(&first) {
            return Ok(());
        }
        let mut seen = HashSet::from([first]);
        let mut todo = vec![first];
        while let Some(index) = todo.pop() {
            let Some(object) = self.linker.object(index) else {
                continue;
            };
            for reference in &object.references {
                match self.resolve(&reference.target) {
                    Some(Resolved::Object(next)) => {
                        if seen.insert(next) {
                            todo.push(next);
                        }
                    }
                    Some(Resolved::Address(_) | Resolved::Absent) => {}
                    None => return Err(self.why_missing(&reference.target, Some(&object.name))),
                }
            }
        }
        // All objects that a ready object reaches are ready.
        self.ready.extend(seen);
        Ok(())
    }

    fn why_missing(&self, target: &Target, user: Option<&str>) -> RunError {
        let name = self.target_name(target);
        let definition = self.definition(target).filter(|d| !matches!(d, Definition::None));
        match definition.or_else(|| self.runtime.get(&name)) {
            Some(Definition::Failed { refused: true, reason }) => RunError::Refused {
                function: name,
                reason: reason.clone(),
            },
            Some(Definition::Failed { refused: false, reason }) => RunError::NotCompiled {
                function: name,
                reason: reason.clone(),
            },
            _ => RunError::Undefined {
                name,
                user: user.map(str::to_owned),
            },
        }
    }

    /// Returns the location of the code at an address.
    pub(super) fn location(&self, pc: u32) -> Location {
        let Some((index, object)) = self.linker.code_at(pc) else {
            return Location::default();
        };
        let offset = pc - object.address;
        let code = self.code.get(&index);
        let srcloc = code.and_then(|code| code.srcloc_at(offset));
        Location {
            function: Some(object.name.clone()),
            inst: code.and_then(|code| code.inst_at(offset)),
            srcloc,
            line: self.source_line(index, srcloc),
        }
    }
}

impl Definition {
    /// Returns the state of a function that did not compile.
    pub(super) fn failed(error: &CompileError) -> Self {
        Self::Failed {
            refused: error.is_refusal(),
            reason: error.to_string(),
        }
    }
}

/// Encodes instructions.
///
/// # Errors
///
/// [`LinkError::Internal`] if an instruction has no encoding.
pub(super) fn words(insts: &[Inst]) -> Result<Vec<u8>, LinkError> {
    let mut bytes = Vec::with_capacity(insts.len() * INSTRUCTION_SIZE as usize);
    for inst in insts {
        let word = npu_mc::encode(inst).map_err(|error| LinkError::Internal(format!("{inst}: {error}")))?;
        bytes.extend(word.to_le_bytes());
    }
    Ok(bytes)
}
