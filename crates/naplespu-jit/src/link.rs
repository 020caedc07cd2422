//! Objects in the memory of the device, and the references between them.
//!
//! An object gets its address when it is defined. Its references wait until somebody links: those whose symbol is there are
//! written, the others go on waiting, so that what does not use a missing symbol can be called.

use super::error::{LinkError, Location, RunError};
use super::layout::{DEFAULT_ALIGN, Purpose};
use super::{Definition, NpuModule};
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::function::FunctionParameters;
use cranelift_codegen::ir::{ExternalName, LibCall};
use cranelift_module::{DataId, FuncId, FuncOrDataId, Linkage, ModuleRelocTarget};
use cranelift_naplespu::CompileError;
use cranelift_naplespu::code::{CompiledCode, RelocTarget};
use npu_mc::machine::INSTRUCTION_SIZE;
use npu_mc::reloc::Reloc as RelocKind;
use npu_mc::{Inst, Opcode, Operand, SReg};
use npu_sim::Machine;
use std::collections::HashSet;

/// What a reference names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Target {
    Func(FuncId),
    Data(DataId),
    Name(String),
}

/// How the names of a function's code are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    /// `u0:N` is the function and `u1:N` the data object with that number.
    Ids,
    /// `u0:N` is a name like any other.
    Text,
}

impl Target {
    /// What a relocation of compiled code names.
    pub(super) fn of_code(target: &RelocTarget, own: &Self, params: &FunctionParameters, names: Names) -> Self {
        match target {
            RelocTarget::Function => own.clone(),
            RelocTarget::Runtime(name) => Self::Name((*name).to_owned()),
            RelocTarget::Name(ExternalName::User(key)) => match (params.user_named_funcs().get(*key), names) {
                (Some(name), Names::Ids) => Self::of_ids(name.namespace, name.index),
                (Some(name), Names::Text) => Self::Name(name.to_string()),
                (None, _) => Self::Name(key.to_string()),
            },
            RelocTarget::Name(ExternalName::LibCall(call)) => Self::Name(libcall_name(*call)),
            RelocTarget::Name(name) => {
                let text = name.display(None).to_string();
                Self::Name(text.strip_prefix('%').map_or(text.clone(), str::to_owned))
            }
        }
    }

    /// What a relocation of a module names, and how far behind it.
    pub(super) fn of_module(target: &ModuleRelocTarget) -> (Self, u32) {
        match target {
            ModuleRelocTarget::User { namespace, index } => (Self::of_ids(*namespace, *index), 0),
            ModuleRelocTarget::FunctionOffset(func, offset) => (Self::Func(*func), *offset),
            ModuleRelocTarget::LibCall(call) => (Self::Name(libcall_name(*call)), 0),
            ModuleRelocTarget::KnownSymbol(symbol) => (Self::Name(symbol.to_string()), 0),
        }
    }

    fn of_ids(namespace: u32, index: u32) -> Self {
        match namespace {
            // The largest index is no id.
            0 if index < u32::MAX => Self::Func(FuncId::from_u32(index)),
            1 if index < u32::MAX => Self::Data(DataId::from_u32(index)),
            _ => Self::Name(format!("u{namespace}:{index}")),
        }
    }
}

fn libcall_name(call: LibCall) -> String {
    cranelift_module::default_libcall_names()(call)
}

/// A reference, to be written at an offset of an object.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) offset: u32,
    pub(super) kind: RelocKind,
    pub(super) target: Target,
    pub(super) addend: i64,
}

impl Link {
    /// Addresses have 32 bits, so an addend counts modulo 2^32.
    fn addend(&self) -> i32 {
        (self.addend & i64::from(u32::MAX)) as u32 as i32
    }
}

/// What an object is made of.
pub(super) struct Contents<'a> {
    pub(super) name: String,
    pub(super) purpose: Purpose,
    pub(super) align: Option<u64>,
    /// All of it; empty for an object of zeros.
    pub(super) bytes: &'a [u8],
    pub(super) size: u64,
    pub(super) links: Vec<Link>,
}

/// A function or data object in the memory of the device.
pub(super) struct Object {
    pub(super) name: String,
    pub(super) address: u32,
    purpose: Purpose,
    pub(super) size: u32,
    pub(super) code: Option<CompiledCode>,
    links: Vec<Link>,
    /// What branches go to: there is room for a detour to each of them behind the object.
    near: Vec<(Target, i32)>,
    /// Where there is room for another set of detours in front of the object, as a branch at its start may not reach its end.
    front: Option<u32>,
}

/// What a reference leads to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Resolved {
    Object(usize),
    Address(u32),
    /// Preemptible and not defined, for which 0 stands until it is.
    Absent,
}

/// Writes bytes of an object into the memory that objects of this kind are in.
fn write(machine: &mut Machine, purpose: Purpose, address: u32, bytes: &[u8]) -> Result<(), npu_sim::MemoryFull> {
    if purpose != Purpose::Scratchpad {
        return machine.memory_mut().write(address, bytes);
    }
    // What has been given an address there lies within it. Every core has its own.
    let start = address as usize;
    for core in 0..machine.cores() {
        if let Some(place) = machine.core_scratchpad_mut(core).get_mut(start..start + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }
    Ok(())
}

/// The word of an object that a reference stands in.
fn read_word(machine: &Machine, purpose: Purpose, address: u32) -> [u8; 4] {
    if purpose != Purpose::Scratchpad {
        return machine.memory().read_u32(address).to_le_bytes();
    }
    let word = machine.scratchpad().get(address as usize..);
    word.and_then(|rest| rest.first_chunk()).copied().unwrap_or_default()
}

/// Bytes of a detour.
const DETOUR_SIZE: u32 = 3 * INSTRUCTION_SIZE;

impl NpuModule {
    /// Places an object. Its references wait for the next linking.
    pub(super) fn place(&mut self, contents: Contents<'_>) -> Result<usize, LinkError> {
        let Contents {
            name,
            purpose,
            align,
            bytes,
            size,
            links,
        } = contents;
        let align = align.unwrap_or(DEFAULT_ALIGN);
        if !align.is_power_of_two() {
            return Err(LinkError::Alignment { name, align });
        }
        if size > u32::MAX.into() {
            return Err(LinkError::MemoryFull(format!("%{name}: no room for {size} bytes")));
        }
        let outside = |link: &&Link| u64::from(link.offset) + 4 > size;
        if let Some(link) = links.iter().find(outside) {
            return Err(LinkError::OutOfBounds {
                name,
                offset: link.offset,
            });
        }
        let mut near = Vec::new();
        let mut seen = HashSet::new();
        for link in links.iter().filter(|link| link.kind == RelocKind::Branch) {
            if seen.insert((&link.target, link.addend())) {
                near.push((link.target.clone(), link.addend()));
            }
        }
        let align = match purpose {
            Purpose::Code => align.max(DEFAULT_ALIGN),
            Purpose::Data | Purpose::Scratchpad => align,
        };
        let behind = size.next_multiple_of(INSTRUCTION_SIZE.into());
        let room = u64::from(DETOUR_SIZE) * near.len() as u64;
        let (_, reach) = RelocKind::Branch.range();
        let in_front = if i64::try_from(behind + room).is_ok_and(|end| end <= reach) {
            0
        } else {
            room.next_multiple_of(align)
        };
        let start = self.layout.take(purpose, &name, in_front + behind + room, align)?;
        // What fits into the layout fits into 32 bits.
        let address = start + u32::try_from(in_front).unwrap_or(0);
        let object = Object {
            address,
            purpose,
            size: u32::try_from(size).unwrap_or(u32::MAX),
            code: None,
            links,
            near,
            front: (in_front > 0).then_some(start),
            name,
        };
        let full = |error: npu_sim::MemoryFull| LinkError::MemoryFull(format!("%{}: {error}", object.name));
        write(&mut self.machine, purpose, address, bytes).map_err(full)?;
        let index = self.objects.len();
        self.pending.extend((0..object.links.len()).map(|link| (index, link)));
        if purpose == Purpose::Code {
            self.code_objects.push(index);
        }
        self.objects.push(object);
        self.changed();
        Ok(index)
    }

    /// Notes that a symbol may have appeared.
    pub(super) fn changed(&mut self) {
        self.dirty = true;
        self.ready.clear();
    }

    /// What a name stands for outside of the module.
    fn outside(&self, name: &str) -> Option<Resolved> {
        if let Some(&address) = self.symbols.get(name) {
            return Some(Resolved::Address(address));
        }
        if let Some(address) = self.lookup.as_ref().and_then(|lookup| lookup(name)) {
            return Some(Resolved::Address(address));
        }
        match self.runtime.get(name) {
            Some(Definition::Object(index)) => Some(Resolved::Object(*index)),
            _ => None,
        }
    }

    /// What the module itself has for a reference.
    fn definition(&self, target: &Target) -> Option<&Definition> {
        match target {
            Target::Func(id) => self.functions.get(*id),
            Target::Data(id) => self.data.get(*id),
            Target::Name(name) => match self.declarations.get_name(name)? {
                FuncOrDataId::Func(id) => self.functions.get(id),
                FuncOrDataId::Data(id) => self.data.get(id),
            },
        }
    }

    /// Name and linkage, if the target is declared and has a name.
    fn declared<'a>(&'a self, target: &'a Target) -> (Option<&'a str>, Option<Linkage>) {
        let id = match target {
            Target::Func(id) => FuncOrDataId::Func(*id),
            Target::Data(id) => FuncOrDataId::Data(*id),
            Target::Name(name) => match self.declarations.get_name(name) {
                Some(id) => id,
                None => return (Some(name), None),
            },
        };
        match id {
            FuncOrDataId::Func(id) if self.functions.is_valid(id) => {
                let declaration = self.declarations.get_function_decl(id);
                (declaration.name.as_deref(), Some(declaration.linkage))
            }
            FuncOrDataId::Data(id) if self.data.is_valid(id) => {
                let declaration = self.declarations.get_data_decl(id);
                (declaration.name.as_deref(), Some(declaration.linkage))
            }
            _ => (None, None),
        }
    }

    /// A name for people, without `%`.
    pub(super) fn target_name(&self, target: &Target) -> String {
        match target {
            Target::Name(name) => name.clone(),
            Target::Func(id) if self.functions.is_valid(*id) => {
                self.declarations.get_function_decl(*id).linkage_name(*id).into_owned()
            }
            Target::Data(id) if self.data.is_valid(*id) => {
                self.declarations.get_data_decl(*id).linkage_name(*id).into_owned()
            }
            Target::Func(id) => id.to_string(),
            Target::Data(id) => id.to_string(),
        }
    }

    /// What is there for a reference now: a definition of the module, an address that the host gave, or a routine of the
    /// runtime that is linked.
    pub(super) fn resolve(&self, target: &Target) -> Option<Resolved> {
        if let Some(Definition::Object(index)) = self.definition(target) {
            return Some(Resolved::Object(*index));
        }
        let (name, linkage) = self.declared(target);
        let found = name.and_then(|name| self.outside(name));
        found.or((linkage == Some(Linkage::Preemptible)).then_some(Resolved::Absent))
    }

    /// The address of what a reference leads to.
    pub(super) fn address_of(&self, target: &Target) -> Option<u32> {
        self.resolve(target).map(|resolved| self.resolved_address(resolved))
    }

    fn resolved_address(&self, resolved: Resolved) -> u32 {
        match resolved {
            Resolved::Object(index) => self.objects.get(index).map_or(0, |object| object.address),
            Resolved::Address(address) => address,
            Resolved::Absent => 0,
        }
    }

    /// Compiles and places the routine of the runtime that a reference may mean.
    pub(super) fn add_runtime(&mut self, target: &Target) {
        let (Some(name), _) = self.declared(target) else {
            return;
        };
        if self.runtime.contains_key(name) {
            return;
        }
        let name = name.to_owned();
        let definition = match naplespu_runtime::function(&name) {
            Ok(None) => return,
            Ok(Some(function)) => self.compile_runtime(&name, function),
            Err(reason) => Definition::Failed { refused: false, reason },
        };
        self.runtime.insert(name, definition);
    }

    fn compile_runtime(&mut self, name: &str, function: &cranelift_codegen::ir::Function) -> Definition {
        let isa = self.runtime_isa.get_or_insert_with(|| self.isa.for_runtime());
        let mut ctx = Context::for_function(function.clone());
        let code = match isa.compile(&mut ctx, &mut ControlPlane::default()) {
            Ok(code) => code,
            Err(error) => return Definition::failed(&error),
        };
        let own = Target::Name(name.to_owned());
        let link = |reloc: &cranelift_naplespu::code::Reloc| Link {
            offset: reloc.offset,
            kind: reloc.kind,
            target: Target::of_code(&reloc.target, &own, &ctx.func.params, Names::Text),
            addend: reloc.addend,
        };
        let links = code.relocs.iter().map(link).collect();
        match self.place_code(name.to_owned(), code, links) {
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
        links: Vec<Link>,
    ) -> Result<usize, LinkError> {
        let index = self.place(Contents {
            name,
            purpose: Purpose::Code,
            align: None,
            bytes: &code.bytes,
            size: code.bytes.len() as u64,
            links,
        })?;
        if let Some(object) = self.objects.get_mut(index) {
            object.code = Some(code);
        }
        Ok(index)
    }

    /// Writes all references that can be resolved, with the routines of the runtime that they need.
    pub(super) fn link(&mut self) -> Result<(), LinkError> {
        if !self.dirty {
            return Ok(());
        }
        let mut waiting = Vec::new();
        let mut result = Ok(());
        // A routine of the runtime comes with references of its own.
        while !self.pending.is_empty() && result.is_ok() {
            for (object, link) in std::mem::take(&mut self.pending) {
                let written = if result.is_ok() {
                    self.link_one(object, link)
                } else {
                    Ok(false)
                };
                match written {
                    Ok(true) => {}
                    Ok(false) => waiting.push((object, link)),
                    Err(error) => {
                        waiting.push((object, link));
                        result = Err(error);
                    }
                }
            }
        }
        self.pending.append(&mut waiting);
        self.dirty = result.is_err();
        result
    }

    /// Writes one reference; gives whether that is final.
    fn link_one(&mut self, object: usize, link: usize) -> Result<bool, LinkError> {
        let Some(target) = self.link_target(object, link) else {
            return Ok(true);
        };
        let resolved = match self.resolve(target) {
            found @ Some(Resolved::Object(_) | Resolved::Address(_)) => found,
            Some(Resolved::Absent) | None => {
                let target = target.clone();
                self.add_runtime(&target);
                self.resolve(&target)
            }
        };
        match resolved {
            Some(resolved) => {
                let symbol = self.resolved_address(resolved);
                self.write_reference(object, link, symbol)?;
                Ok(!matches!(resolved, Resolved::Absent))
            }
            None => Ok(false),
        }
    }

    fn link_target(&self, object: usize, link: usize) -> Option<&Target> {
        Some(&self.objects.get(object)?.links.get(link)?.target)
    }

    fn write_reference(&mut self, object: usize, link: usize, symbol: u32) -> Result<(), LinkError> {
        let Some(object) = self.objects.get(object) else {
            return Ok(());
        };
        let Some(link) = object.links.get(link) else {
            return Ok(());
        };
        let place = object.address + link.offset;
        let mut word = read_word(&self.machine, object.purpose, place);
        let mut apply = |symbol: u32, addend: i32| npu_mc::reloc::apply(link.kind, &mut word, symbol, addend, place);
        let full = |error: npu_sim::MemoryFull| LinkError::MemoryFull(format!("%{}: {error}", object.name));
        if let Err(error) = apply(symbol, link.addend()) {
            let out_of_reach = || LinkError::OutOfReach {
                name: object.name.clone(),
                reason: error.to_string(),
            };
            let (at, goal) = object
                .detours(link, symbol)
                .find(|&(at, _)| apply(at, 0).is_ok())
                .ok_or_else(out_of_reach)?;
            write(&mut self.machine, object.purpose, at, &detour(goal)).map_err(full)?;
        }
        write(&mut self.machine, object.purpose, place, &word).map_err(full)
    }

    /// The references that no symbol was found for: what is missing, and what refers to it.
    pub(super) fn missing(&self) -> Vec<(String, String)> {
        let mut list: Vec<(String, String)> = Vec::new();
        for &(object, link) in &self.pending {
            let (Some(target), Some(object)) = (self.link_target(object, link), self.objects.get(object)) else {
                continue;
            };
            if self.resolve(target).is_some() {
                continue;
            }
            list.push((self.target_name(target), object.name.clone()));
        }
        list.sort();
        list.dedup_by(|a, b| a.0 == b.0);
        list
    }

    /// Whether everything is there that code can get to from a symbol.
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
            let Some(object) = self.objects.get(index) else {
                continue;
            };
            for link in &object.links {
                match self.resolve(&link.target) {
                    Some(Resolved::Object(next)) => {
                        if seen.insert(next) {
                            todo.push(next);
                        }
                    }
                    Some(Resolved::Address(_) | Resolved::Absent) => {}
                    None => return Err(self.why_missing(&link.target, Some(&object.name))),
                }
            }
        }
        // What is reached from an object that is ready is ready too.
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

    /// The object with the code at an address.
    pub(super) fn code_at(&self, pc: u32) -> Option<&Object> {
        // Code is placed at rising addresses.
        let starts_behind = |&index: &usize| self.objects.get(index).is_some_and(|object| object.address <= pc);
        let position = self.code_objects.partition_point(starts_behind);
        let object = self.objects.get(*self.code_objects.get(position.checked_sub(1)?)?)?;
        (pc - object.address < object.size).then_some(object)
    }

    /// What is known about the code at an address.
    pub(super) fn location(&self, pc: u32) -> Location {
        let Some(object) = self.code_at(pc) else {
            return Location::default();
        };
        let offset = pc - object.address;
        Location {
            function: Some(object.name.clone()),
            inst: object.code.as_ref().and_then(|code| code.inst_at(offset)),
            srcloc: object.code.as_ref().and_then(|code| code.srcloc_at(offset)),
        }
    }
}

impl Definition {
    /// What is remembered of a function that did not compile.
    pub(super) fn failed(error: &CompileError) -> Self {
        Self::Failed {
            refused: error.is_refusal(),
            reason: error.to_string(),
        }
    }
}

impl Object {
    /// Where a detour for a reference can be, and where it has to lead.
    fn detours(&self, link: &Link, symbol: u32) -> impl Iterator<Item = (u32, u32)> {
        let wanted = (link.kind == RelocKind::Branch).then(|| link.addend());
        let slot = wanted.and_then(|addend| self.near.iter().position(|near| *near == (link.target.clone(), addend)));
        let behind = self.address + self.size.next_multiple_of(INSTRUCTION_SIZE);
        let goal = symbol.wrapping_add_signed(link.addend());
        [Some(behind), self.front]
            .into_iter()
            .flatten()
            .filter_map(move |base| Some((base + DETOUR_SIZE * u32::try_from(slot?).ok()?, goal)))
    }
}

/// A jump to any address, by the register that compiled code leaves to the emitter.
fn detour(target: u32) -> Vec<u8> {
    let half = |n: u32| Operand::Imm((n & 0xffff).cast_signed());
    let scratch = Operand::S(SReg::TR);
    words(&[
        Inst::new(Opcode::MOVEIHSI, [scratch, half(target >> 16)]),
        Inst::new(Opcode::MOVEILSI, [scratch, half(target)]),
        Inst::new(Opcode::JUMPREG, [scratch]),
    ])
}

/// Instructions as bytes.
pub(super) fn words(insts: &[Inst]) -> Vec<u8> {
    insts
        .iter()
        .filter_map(|inst| npu_mc::encode(inst).ok())
        .flat_map(u32::to_le_bytes)
        .collect()
}
