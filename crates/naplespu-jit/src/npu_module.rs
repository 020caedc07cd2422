//! The module: functions and data in the memory of a simulated device.

use super::error::LinkError;
use super::layout::{layout, tls_block};
use super::link::{clear_memory, write_memory};
use super::values::is_value_type;
use super::watch::Observers;
use super::{copied, freed, host, timed, unwind};
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::entity::PrimaryMap;
use cranelift_codegen::ir::Type;
use cranelift_module::{DataId, FuncId, FuncOrDataId};
use cranelift_naplespu::CompiledCode;
use cranelift_naplespu::Isa;
use naplespu_object::front::{Front, Target};
use npu_link::Linker;
use npu_mc::machine::CACHE_LINE;
use npu_sim::{Machine, Schedule};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// The default limit of instructions of a call.
pub(super) const STEP_LIMIT: u64 = 1_000_000_000;

/// A host function that returns device addresses by symbol name.
pub type SymbolLookup = Box<dyn Fn(&str) -> Option<u32> + Send>;

/// The state of a declaration.
#[derive(Clone, Debug)]
pub(super) enum Definition {
    /// Not defined.
    None,
    /// Not compiled.
    Failed { refused: bool, reason: String },
    /// An object of the module.
    Object(usize),
}

/// Functions and data in the memory of a simulated device.
pub struct NpuModule {
    pub(super) front: Front,
    pub(super) runtime_isa: Option<Isa>,
    /// One entry for each declared function.
    pub(super) functions: PrimaryMap<FuncId, Definition>,
    /// One entry for each declared data object.
    pub(super) data: PrimaryMap<DataId, Definition>,
    /// The routines of the runtime that some code uses.
    pub(super) runtime: HashMap<String, Definition>,
    /// Whether names of the program may refer to routines of the runtime.
    pub(super) imports_runtime: bool,
    pub(super) symbols: HashMap<String, u32>,
    pub(super) lookup: Option<SymbolLookup>,
    /// The objects and the references between them.
    pub(super) linker: Linker<Target>,
    /// The compiled code of objects, by object number.
    pub(super) code: HashMap<usize, CompiledCode>,
    /// The copies of objects for threads of a core.
    pub(super) copies: copied::Copies,
    /// The unwind table of exceptions.
    pub(super) unwind: unwind::UnwindTable,
    /// The resolved references of each object.
    pub(super) uses: freed::Uses,
    /// The freed functions.
    pub(super) freed: freed::Freed,
    /// The source files of functions; source locations are lines of them.
    pub(super) source_files: HashMap<FuncId, String>,
    /// Whether a symbol of an unresolved reference may have been defined.
    pub(super) dirty: bool,
    /// Objects that reach no undefined symbol.
    pub(super) ready: HashSet<usize>,
    pub(super) machine: Machine,
    pub(super) step_limit: u64,
    pub(super) steps: u64,
    pub(super) schedule: Schedule,
    pub(super) timed: Option<timed::Timed>,
    pub(super) observers: Observers,
    pub(super) hosts: host::Hosts,
}

impl fmt::Debug for NpuModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NpuModule")
            .field("isa", &self.front.isa)
            .field("declarations", self.front.declarations())
            .field("objects", &self.linker.len())
            .finish_non_exhaustive()
    }
}

impl NpuModule {
    /// Creates an empty module for the target, on a device with the default configuration.
    ///
    /// # Errors
    ///
    /// [`LinkError::NoStandIn`] if `cranelift-codegen` lacks its target `pulley32`, which this
    /// crate's manifest excludes.
    pub fn new(isa: Arc<Isa>) -> Result<Self, LinkError> {
        Self::with_config(isa, npu_sim::Config::default())
    }

    /// Creates an empty module for the target, on a device with this configuration.
    ///
    /// # Errors
    ///
    /// See [`NpuModule::new`].
    pub fn with_config(isa: Arc<Isa>, config: npu_sim::Config) -> Result<Self, LinkError> {
        let layout = layout(isa.settings().scratchpad_bytes);
        let mut module = Self {
            front: Front::new(isa).map_err(LinkError::NoStandIn)?,
            runtime_isa: None,
            functions: PrimaryMap::new(),
            data: PrimaryMap::new(),
            runtime: HashMap::new(),
            imports_runtime: false,
            symbols: HashMap::new(),
            lookup: None,
            linker: Linker::new(layout),
            code: HashMap::new(),
            copies: copied::Copies::default(),
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
            observers: Observers::default(),
            hosts: host::Hosts::default(),
        };
        module.prepare_machine()?;
        Ok(module)
    }

    /// Returns the target that compiles. [`cranelift_module::Module::isa`] returns another one.
    pub fn npu_isa(&self) -> &Arc<Isa> {
        &self.front.isa
    }

    /// Defines a symbol at an address of the device. A definition with that name in the module
    /// takes precedence.
    pub fn define_symbol(&mut self, name: impl Into<String>, address: u32) {
        self.symbols.insert(name.into(), address);
        self.changed();
    }

    /// Sets the lookup of symbols that have neither a definition nor an address from
    /// [`NpuModule::define_symbol`].
    pub fn set_symbol_lookup(&mut self, lookup: SymbolLookup) {
        self.lookup = Some(lookup);
        self.changed();
    }

    /// Lets undefined functions resolve to the runtime's routines with their names, such as
    /// `__npu_udiv32`, for tests of the runtime. Compiled code finds its routines in any case, and
    /// a function of the program with such a name takes precedence.
    pub fn import_runtime(&mut self) {
        self.imports_runtime = true;
        self.changed();
    }

    /// Links all definitions with the routines of the runtime that they need. Calls link
    /// implicitly, so this only reports errors earlier.
    ///
    /// # Errors
    ///
    /// [`LinkError::Undefined`] with all undefined symbols, or another error. Functions that reach
    /// no undefined symbol can still be called.
    pub fn finalize_definitions(&mut self) -> Result<(), LinkError> {
        self.link()?;
        let missing = self.missing();
        if missing.is_empty() {
            Ok(())
        } else {
            Err(LinkError::Undefined(missing))
        }
    }

    /// Returns the number of a definition's object.
    pub(super) fn object(definition: Option<&Definition>) -> Option<usize> {
        match definition? {
            Definition::Object(index) => Some(*index),
            _ => None,
        }
    }

    /// Returns the code of a function that the module has compiled, before linking.
    pub fn code(&self, func: FuncId) -> Option<&CompiledCode> {
        self.code.get(&Self::object(self.functions.get(func))?)
    }

    /// Returns the device address of a function, if known.
    pub fn function_address(&self, func: FuncId) -> Option<u32> {
        self.address_of(&Target::Func(func))
    }

    /// Returns the device address of a data object, if known. For a thread-local object, it is the
    /// offset in each thread's block.
    pub fn data_address(&self, data: DataId) -> Option<u32> {
        self.address_of(&Target::Data(data))
    }

    /// Returns the address of a thread's copy of a thread-local data object. Returns `None` if the
    /// module does not define the object or the device lacks the thread.
    pub fn tls_address(&self, data: DataId, thread: usize) -> Option<u32> {
        let object = self.linker.object(Self::object(self.data.get(data))?)?;
        let has_copies = self.front.declarations().get_data_decl(data).tls && thread < self.machine.threads();
        has_copies.then(|| tls_block(thread) + object.address)
    }

    /// Returns the size in bytes of a data object that the module defines.
    pub fn data_size(&self, data: DataId) -> Option<u32> {
        Some(self.linker.object(Self::object(self.data.get(data))?)?.size)
    }

    /// Returns whether a range of addresses lies in one data object of the module in main memory.
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

    /// Returns the address of a function, data object or host symbol by name.
    pub fn symbol_address(&self, name: &str) -> Option<u32> {
        self.address_of(&Target::Name(name.to_owned()))
    }

    /// Allocates zeroed memory of the device, until [`NpuModule::free`] is called.
    ///
    /// # Errors
    ///
    /// [`LinkError`] if `align` is not a power of two or the memory is exhausted.
    pub fn allocate(&mut self, size: u32, align: u32) -> Result<u32, LinkError> {
        let address = self.linker.allocate("allocate", size.into(), align.into())?;
        self.clear(address, size)
    }

    /// Sets an allocated block to zeros, or releases it if the memory is exhausted.
    fn clear(&mut self, address: u32, size: u32) -> Result<u32, LinkError> {
        if let Err(full) = clear_memory(&mut self.machine, address, size) {
            self.linker.release(address);
            return Err(LinkError::MemoryFull(full.to_string()));
        }
        Ok(address)
    }

    /// Allocates zeroed memory whose addresses are in `within`, like [`NpuModule::allocate`]. The
    /// range of addresses whose home is a tile is [`Topology::addresses_at`](npu_sim::Topology::addresses_at).
    ///
    /// # Errors
    ///
    /// [`LinkError::MemoryFull`] if no place there is free.
    pub fn allocate_within(&mut self, size: u32, within: &Range<u64>) -> Result<u32, LinkError> {
        let address = self.linker.allocate_within(size.into(), CACHE_LINE.into(), within);
        let full = || LinkError::MemoryFull(format!("no room for {size} bytes in {within:#x?}"));
        self.clear(address.ok_or_else(full)?, size)
    }

    /// Frees memory from [`NpuModule::allocate`].
    ///
    /// # Errors
    ///
    /// [`LinkError::NotAllocated`] if no allocation starts at the address.
    pub fn free(&mut self, address: u32) -> Result<(), LinkError> {
        if self.linker.release(address) {
            Ok(())
        } else {
            Err(LinkError::NotAllocated(address))
        }
    }

    /// Reads memory of the device. Unwritten memory has the contents of [`npu_sim::Config::fill`].
    pub fn read_memory(&self, address: u32, bytes: &mut [u8]) {
        self.machine.memory().read(address, bytes);
    }

    /// Writes memory of the device. Dirty lines of data caches are written back before.
    ///
    /// # Errors
    ///
    /// [`LinkError::MemoryFull`] if the simulation's memory is full
    /// ([`npu_sim::Config::memory_limit`]).
    pub fn write_memory(&mut self, address: u32, bytes: &[u8]) -> Result<(), LinkError> {
        let written = write_memory(&mut self.machine, address, bytes);
        written.map_err(|full| LinkError::MemoryFull(full.to_string()))
    }

    /// Writes dirty lines of data caches back to memory.
    ///
    /// # Errors
    ///
    /// See [`NpuModule::write_memory`].
    pub fn write_back(&mut self) -> Result<(), LinkError> {
        let written = self.machine.write_back_caches();
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

    /// Returns the simulated cores, for access to scratchpad, console and control registers.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Returns the simulated cores for changes.
    pub fn machine_mut(&mut self) -> &mut Machine {
        &mut self.machine
    }

    /// Limits the instructions of each call, over all its threads. The default is one billion.
    pub fn set_step_limit(&mut self, steps: u64) {
        self.step_limit = steps;
    }

    /// Returns the number of instructions of the last call, over all its threads.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Returns the function with this name, if it is declared.
    pub fn function_by_name(&self, name: &str) -> Option<FuncId> {
        match self.front.declarations().get_name(name)? {
            FuncOrDataId::Func(id) => Some(id),
            FuncOrDataId::Data(_) => None,
        }
    }
}
