//! The module: functions and data in the memory of a simulated device.

use super::error::LinkError;
use super::layout::{layout, tls_block};
use super::link::{clear_memory, write_memory};
use super::target::Target;
use super::values::is_value_type;
use super::watch::Watcher;
use super::{freed, host, timed, unwind};
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::entity::PrimaryMap;
use cranelift_codegen::ir::Type;
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::Flags;
use cranelift_module::{DataId, FuncId, FuncOrDataId, ModuleDeclarations};
use cranelift_naplespu::CompiledCode;
use cranelift_naplespu::Compiler;
use cranelift_naplespu::Isa;
use npu_link::Linker;
use npu_sim::{Machine, Schedule};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use target_lexicon::{Architecture, Triple};

/// Instructions a call may execute unless set otherwise.
pub(super) const STEP_LIMIT: u64 = 1_000_000_000;

/// A function of the host that knows addresses of the device by name.
pub type SymbolLookup = Box<dyn Fn(&str) -> Option<u32> + Send>;

/// What became of a declaration.
#[derive(Clone, Debug)]
pub(super) enum Definition {
    /// Nothing yet.
    None,
    /// It did not compile.
    Failed { refused: bool, reason: String },
    /// An object of the module.
    Object(usize),
}

/// Functions and data in the memory of a simulated device.
pub struct NpuModule {
    pub(super) isa: Arc<Isa>,
    pub(super) stand_in: OwnedTargetIsa,
    pub(super) runtime_isa: Option<Isa>,
    /// Keeps the memory of one compilation for the next.
    pub(super) compiler: Compiler,
    pub(super) declarations: ModuleDeclarations,
    /// One entry a declared function.
    pub(super) functions: PrimaryMap<FuncId, Definition>,
    /// One entry a declared data object.
    pub(super) data: PrimaryMap<DataId, Definition>,
    /// The routines of the runtime that something refers to.
    pub(super) runtime: HashMap<String, Definition>,
    /// Whether names of the program may mean routines of the runtime.
    pub(super) imports_runtime: bool,
    pub(super) symbols: HashMap<String, u32>,
    pub(super) lookup: Option<SymbolLookup>,
    /// The objects, with the references between them.
    pub(super) linker: Linker<Target>,
    /// The code of objects that were compiled, by their numbers.
    pub(super) code: HashMap<usize, CompiledCode>,
    /// The table for exceptions.
    pub(super) unwind: unwind::UnwindTable,
    /// Which references were written with the addresses of which objects.
    pub(super) uses: freed::Uses,
    /// The functions that are gone.
    pub(super) freed: freed::Freed,
    /// The files that source locations are lines of.
    pub(super) source_files: HashMap<FuncId, String>,
    /// Whether a symbol that a reference waits for may have appeared.
    pub(super) dirty: bool,
    /// Objects from which nothing is reached that is missing.
    pub(super) ready: HashSet<usize>,
    pub(super) machine: Machine,
    pub(super) step_limit: u64,
    pub(super) steps: u64,
    pub(super) schedule: Schedule,
    pub(super) timed: Option<timed::Timed>,
    pub(super) watcher: Option<Watcher>,
    pub(super) hosts: host::Hosts,
}

impl fmt::Debug for NpuModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NpuModule")
            .field("isa", &self.isa)
            .field("declarations", &self.declarations)
            .field("objects", &self.linker.len())
            .finish_non_exhaustive()
    }
}

/// The published target that is shown where an interface of Cranelift insists on one.
fn stand_in(flags: &Flags) -> Result<OwnedTargetIsa, LinkError> {
    let triple = Triple {
        architecture: Architecture::Pulley32,
        ..Triple::unknown()
    };
    let builder = cranelift_codegen::isa::lookup(triple).map_err(|error| LinkError::NoStandIn(error.to_string()))?;
    let isa = builder.finish(flags.clone());
    isa.map_err(|error| LinkError::NoStandIn(error.to_string()))
}

impl NpuModule {
    /// An empty module for the target, on a device with the default configuration.
    ///
    /// # Errors
    ///
    /// [`LinkError::NoStandIn`] if `cranelift-codegen` comes without its target `pulley32`, which this crate's manifest excludes.
    pub fn new(isa: Arc<Isa>) -> Result<Self, LinkError> {
        Self::with_config(isa, npu_sim::Config::default())
    }

    /// An empty module for the target, on a device of this configuration.
    ///
    /// # Errors
    ///
    /// See [`NpuModule::new`].
    pub fn with_config(isa: Arc<Isa>, config: npu_sim::Config) -> Result<Self, LinkError> {
        let layout = layout(isa.settings().scratchpad_bytes);
        let mut module = Self {
            stand_in: stand_in(isa.flags())?,
            isa,
            runtime_isa: None,
            compiler: Compiler::new(),
            declarations: ModuleDeclarations::default(),
            functions: PrimaryMap::new(),
            data: PrimaryMap::new(),
            runtime: HashMap::new(),
            imports_runtime: false,
            symbols: HashMap::new(),
            lookup: None,
            linker: Linker::new(layout),
            code: HashMap::new(),
            unwind: unwind::UnwindTable::default(),
            uses: freed::Uses::default(),
            freed: freed::Freed::default(),
            source_files: HashMap::new(),
            dirty: false,
            ready: HashSet::new(),
            machine: Machine::new(config),
            step_limit: STEP_LIMIT,
            steps: 0,
            schedule: Schedule::default(),
            timed: None,
            watcher: None,
            hosts: host::Hosts::default(),
        };
        module.prepare_machine()?;
        Ok(module)
    }

    /// The target that compiles: this crate's own. [`cranelift_module::Module::isa`] shows another one.
    pub fn npu_isa(&self) -> &Arc<Isa> {
        &self.isa
    }

    /// Gives a symbol an address of the device, chosen by the host. A definition of that name in the module comes first.
    pub fn define_symbol(&mut self, name: impl Into<String>, address: u32) {
        self.symbols.insert(name.into(), address);
        self.changed();
    }

    /// Sets what is asked for the addresses of symbols that are neither defined nor given by [`NpuModule::define_symbol`].
    pub fn set_symbol_lookup(&mut self, lookup: SymbolLookup) {
        self.lookup = Some(lookup);
        self.changed();
    }

    /// Lets undefined functions stand for the routines of the runtime that have their names, such as `__npu_udiv32`: for those
    /// who test the runtime. Compiled code finds its routines in any case, and a program's function of such a name is its own.
    pub fn import_runtime(&mut self) {
        self.imports_runtime = true;
        self.changed();
    }

    /// Links everything that was defined so far, with the routines of the runtime that it needs. Calls link by themselves, so
    /// this is for those who want to know early.
    ///
    /// # Errors
    ///
    /// [`LinkError::Undefined`] with all symbols that are referred to and not there, or what else is wrong. What does not
    /// reach a missing symbol can be called nevertheless.
    pub fn finalize_definitions(&mut self) -> Result<(), LinkError> {
        self.link()?;
        let missing = self.missing();
        if missing.is_empty() {
            Ok(())
        } else {
            Err(LinkError::Undefined(missing))
        }
    }

    /// The number of the object that is defined.
    pub(super) fn object(definition: Option<&Definition>) -> Option<usize> {
        match definition? {
            Definition::Object(index) => Some(*index),
            _ => None,
        }
    }

    /// Code of a function that the module has compiled, as it was before linking.
    pub fn code(&self, func: FuncId) -> Option<&CompiledCode> {
        self.code.get(&Self::object(self.functions.get(func))?)
    }

    /// Address of a function in the memory of the device, if it is known yet.
    pub fn function_address(&self, func: FuncId) -> Option<u32> {
        self.address_of(&Target::Func(func))
    }

    /// Address of a data object in the memory of the device, if it is known yet; of a thread-local one, the distance from the
    /// start of each thread's block.
    pub fn data_address(&self, data: DataId) -> Option<u32> {
        self.address_of(&Target::Data(data))
    }

    /// Address of a thread's copy of a thread-local data object that the module defines, if there is such a thread.
    pub fn tls_address(&self, data: DataId, thread: usize) -> Option<u32> {
        let object = self.linker.object(Self::object(self.data.get(data))?)?;
        let has_copies = self.declarations.get_data_decl(data).tls && thread < self.machine.threads();
        has_copies.then(|| tls_block(thread) + object.address)
    }

    /// Size of a data object that the module defines, in bytes.
    pub fn data_size(&self, data: DataId) -> Option<u32> {
        Some(self.linker.object(Self::object(self.data.get(data))?)?.size)
    }

    /// Whether a range of addresses lies in one data object of the module that is in main memory.
    pub(crate) fn has_data(&self, address: u32, length: usize) -> bool {
        let objects = self
            .data
            .values()
            .filter_map(|definition| Self::object(Some(definition)));
        let mut objects = objects.filter_map(|index| self.linker.object(index));
        objects.any(|object| {
            let end = u64::from(address) + length as u64;
            let its_end = u64::from(object.address) + u64::from(object.size);
            object.purpose == npu_link::Purpose::Data && object.address <= address && end <= its_end
        })
    }

    /// Address of a function, data object or symbol of the host by name.
    pub fn symbol_address(&self, name: &str) -> Option<u32> {
        self.address_of(&Target::Name(name.to_owned()))
    }

    /// Makes room in the memory of the device that nothing else uses until [`NpuModule::free`] is called. It is zero.
    ///
    /// # Errors
    ///
    /// [`LinkError`] if `align` is not a power of two or the memory is used up.
    pub fn allocate(&mut self, size: u32, align: u32) -> Result<u32, LinkError> {
        let address = self.linker.allocate("allocate", size.into(), align.into())?;
        if let Err(full) = clear_memory(&mut self.machine, address, size) {
            self.linker.release(address);
            return Err(LinkError::MemoryFull(full.to_string()));
        }
        Ok(address)
    }

    /// Gives memory back that [`NpuModule::allocate`] made room for, so that others get it.
    ///
    /// # Errors
    ///
    /// [`LinkError::NotAllocated`] if no such room begins there.
    pub fn free(&mut self, address: u32) -> Result<(), LinkError> {
        if self.linker.release(address) {
            Ok(())
        } else {
            Err(LinkError::NotAllocated(address))
        }
    }

    /// Copies memory of the device; where nothing was written it is as [`npu_sim::Config::fill`] says.
    pub fn read_memory(&self, address: u32, bytes: &mut [u8]) {
        self.machine.memory().read(address, bytes);
    }

    /// Writes memory of the device. What data caches hold back is written before that.
    ///
    /// # Errors
    ///
    /// [`LinkError::MemoryFull`] if the simulation holds no more memory ([`npu_sim::Config::memory_limit`]).
    pub fn write_memory(&mut self, address: u32, bytes: &[u8]) -> Result<(), LinkError> {
        let written = write_memory(&mut self.machine, address, bytes);
        written.map_err(|full| LinkError::MemoryFull(full.to_string()))
    }

    /// Reads a word of the device's memory.
    pub fn read_word(&self, address: u32) -> u32 {
        self.machine.memory().read_u32(address)
    }

    /// Writes a word of the device's memory.
    ///
    /// # Errors
    ///
    /// See [`NpuModule::write_memory`].
    pub fn write_word(&mut self, address: u32, word: u32) -> Result<(), LinkError> {
        self.write_memory(address, &word.to_le_bytes())
    }

    /// Reads `count` words from the device's memory.
    pub fn read_words(&self, address: u32, count: usize) -> Vec<u32> {
        let mut bytes = vec![0; count.saturating_mul(4)];
        self.read_memory(address, &mut bytes);
        let (words, _) = bytes.as_chunks();
        words.iter().map(|&word| u32::from_le_bytes(word)).collect()
    }

    /// Writes words to the device's memory.
    ///
    /// # Errors
    ///
    /// See [`NpuModule::write_memory`].
    pub fn write_words(&mut self, address: u32, words: &[u32]) -> Result<(), LinkError> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.write_memory(address, &bytes)
    }

    /// Reads a value of any type that a [`DataValue`] can have.
    pub fn read_value(&self, address: u32, ty: Type) -> Option<DataValue> {
        if !is_value_type(ty) {
            return None;
        }
        let mut bytes = [0; 16];
        self.read_memory(address, bytes.get_mut(..ty.bytes() as usize)?);
        Some(DataValue::read_from_slice_le(&bytes, ty))
    }

    /// Writes a value.
    ///
    /// # Errors
    ///
    /// See [`NpuModule::write_memory`].
    pub fn write_value(&mut self, address: u32, value: &DataValue) -> Result<(), LinkError> {
        let mut bytes = [0; 16];
        value.write_to_slice_le(&mut bytes);
        let size = (value.ty().bytes() as usize).min(bytes.len());
        self.write_memory(address, &bytes[..size])
    }

    /// The simulated cores, for what this type has no function for: scratchpad, console, control registers.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The simulated cores.
    pub fn machine_mut(&mut self) -> &mut Machine {
        &mut self.machine
    }

    /// Limits the instructions of each call, by all its threads together: one thousand million unless set.
    pub fn set_step_limit(&mut self, steps: u64) {
        self.step_limit = steps;
    }

    /// Instructions executed by the last call, by all its threads together.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The function of this name, if it is declared.
    pub fn function_by_name(&self, name: &str) -> Option<FuncId> {
        match self.declarations.get_name(name)? {
            FuncOrDataId::Func(id) => Some(id),
            FuncOrDataId::Data(_) => None,
        }
    }
}
