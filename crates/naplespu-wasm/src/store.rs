//! Instances of modules on the simulator.

use crate::config::{Config, PAGE};
use crate::dispatch::{DispatchError, Kernels};
use crate::error::{Result, WasmError};
use crate::items::{Base, Extern, FuncItem, GlobalItem, Imports};
use crate::lines::{SourceLine, SourceLines, readable};
use crate::traps;
use crate::types::{FuncType, Target, Types, ValueType};
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::immediates::{Ieee32, Ieee64};
use cranelift_module::{FuncId, Linkage, Module};
use naplespu_jit::{CodeMap, HostFunction, LinkError, Location, NpuModule, RunError, TrapReport};
use std::collections::HashMap;
use std::fmt;

/// The symbol whose address is the lowest address of the stack.
const STACK_LIMIT: &str = "wasm.stack_limit";

/// A WebAssembly value on the host. Floats are represented by their bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// `i32`.
    I32(i32),
    /// `i64`.
    I64(i64),
    /// The bits of an `f32`.
    F32(u32),
    /// The bits of an `f64`.
    F64(u64),
    /// The bytes of a `v128`; the first byte is the lowest.
    V128(u128),
    /// A function, by the address of its record; `None` is null.
    Func(Option<u32>),
    /// A host reference, by its number; `None` is null.
    Extern(Option<u32>),
    /// An exception, by its address; `None` is null.
    Exn(Option<u32>),
}

impl Value {
    pub(crate) fn to_clif(self) -> DataValue {
        match self {
            Self::I32(value) => DataValue::I32(value),
            Self::I64(value) => DataValue::I64(value),
            Self::F32(bits) => DataValue::F32(Ieee32::with_bits(bits)),
            Self::F64(bits) => DataValue::F64(Ieee64::with_bits(bits)),
            Self::V128(bytes) => DataValue::V128(bytes.to_le_bytes()),
            Self::Func(address) | Self::Exn(address) => DataValue::I32(address.unwrap_or(0) as i32),
            Self::Extern(number) => DataValue::I32(number.map_or(0, |number| number.wrapping_add(1)) as i32),
        }
    }

    fn of_clif(value: &DataValue, ty: ValueType) -> Option<Self> {
        Some(match (value, ty) {
            (DataValue::I32(value), ValueType::I32) => Self::I32(*value),
            (DataValue::I64(value), ValueType::I64) => Self::I64(*value),
            (DataValue::F32(value), ValueType::F32) => Self::F32(value.bits()),
            (DataValue::F64(value), ValueType::F64) => Self::F64(value.bits()),
            (DataValue::V128(bytes), ValueType::V128) => Self::V128(u128::from_le_bytes(*bytes)),
            (DataValue::I32(value), ValueType::Ref(reference)) => {
                let word = *value as u32;
                match reference.target {
                    Target::Extern | Target::NoExtern => Self::Extern(word.checked_sub(1)),
                    Target::Func | Target::Typed(_) | Target::NoFunc => Self::Func((word != 0).then_some(word)),
                    Target::Exn | Target::NoExn => Self::Exn((word != 0).then_some(word)),
                }
            }
            _ => return None,
        })
    }

    /// Returns whether the value can have this type. The type of a function reference is not
    /// checked.
    pub(crate) fn fits(self, ty: ValueType) -> bool {
        let of_host = |target| matches!(target, Target::Extern | Target::NoExtern);
        let thrown = |target| matches!(target, Target::Exn | Target::NoExn);
        match (self, ty) {
            (Self::I32(_), ValueType::I32)
            | (Self::I64(_), ValueType::I64)
            | (Self::F32(_), ValueType::F32)
            | (Self::F64(_), ValueType::F64)
            | (Self::V128(_), ValueType::V128) => true,
            (Self::Func(_), ValueType::Ref(reference)) => !of_host(reference.target) && !thrown(reference.target),
            (Self::Exn(_), ValueType::Ref(reference)) => thrown(reference.target),
            (Self::Extern(_), ValueType::Ref(reference)) => of_host(reference.target),
            _ => false,
        }
    }
}

impl fmt::Display for Value {
    /// Prints integers as signed decimals, floats as Rust prints them, and vectors as four words:
    /// `i32x4:0x00000001 0x00000002 0x00000003 0x00000004`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::I32(value) => value.fmt(f),
            Self::I64(value) => value.fmt(f),
            Self::F32(bits) => f32::from_bits(*bits).fmt(f),
            Self::F64(bits) => f64::from_bits(*bits).fmt(f),
            Self::V128(bytes) => {
                f.write_str("i32x4:")?;
                for (lane, separator) in (0..4).zip(["", " ", " ", " "]) {
                    write!(f, "{separator}{:#010x}", (bytes >> (32 * lane)) as u32)?;
                }
                Ok(())
            }
            Self::Func(None) | Self::Extern(None) | Self::Exn(None) => f.write_str("null"),
            Self::Func(Some(address)) => write!(f, "function {address:#010x}"),
            Self::Extern(Some(number)) => write!(f, "extern {number}"),
            Self::Exn(Some(address)) => write!(f, "exception {address:#010x}"),
        }
    }
}

/// The reason why a call returned no results.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The instance exports no function of this name.
    #[error("no exported function has the name '{0}'")]
    NoSuchFunction(String),
    /// The arguments do not match the type of the function.
    #[error("the function takes {expected:?}")]
    Arguments {
        /// The types of the parameters.
        expected: Vec<ValueType>,
    },
    /// A WebAssembly trap.
    #[error("trap: {what}{}{}{}", .function.as_ref().map_or(String::new(), |name| format!(" in {}", readable(name))), .offset.map_or(String::new(), |at| format!(" at offset {at:#x}")), .line.as_ref().map_or(String::new(), |line| format!(" ({line})")))]
    Trap {
        /// The name of the trap in the specification.
        what: &'static str,
        /// The name of the function on the device.
        function: Option<String>,
        /// The offset of the instruction in the binary module, in bytes.
        offset: Option<u32>,
        /// The source line, if the module has debug information.
        line: Option<SourceLine>,
    },
    /// A function for one work-item was called, not dispatched.
    #[error(
        "{operation} exists only in a dispatch, and {} calls it at offset {offset:#x}",
        readable(function)
    )]
    OutsideOfDispatch {
        /// The import that the function calls, such as `npu.global_id_x`.
        operation: String,
        /// The name of the function.
        function: String,
        /// The offset of the call in the binary module, in bytes.
        offset: u64,
    },
    /// The function cannot be dispatched.
    #[error(transparent)]
    Dispatch(#[from] DispatchError),
    /// The program exited with this status.
    #[error("the program ended with status {0}")]
    Exit(u32),
    /// Any other error during the call.
    #[error("{}", .0.with_places(&place))]
    Run(#[from] RunError),
    /// A bug in this crate.
    #[error("internal error: {0}")]
    Internal(String),
}

/// Formats a location as function and offset in the module, as in [`CallError::Trap`].
fn place(at: &Location) -> String {
    let function = at.function.as_ref();
    let function = function.map_or(String::new(), |name| format!(" in {}", readable(name)));
    let offset = at.srcloc.filter(|location| !location.is_default());
    let offset = offset.map_or(String::new(), |location| format!(" at offset {:#x}", location.bits()));
    function + &offset
}

/// An instance of a module.
#[derive(Clone, Debug, Default)]
pub struct Instance {
    exports: HashMap<String, Extern>,
    init: Option<FuncId>,
    stack_pointer: Option<(GlobalItem, u32)>,
}

impl Instance {
    /// Returns the export with this name.
    pub fn export(&self, name: &str) -> Option<Extern> {
        self.exports.get(name).copied()
    }

    /// Returns all exports with their names.
    pub fn exports(&self) -> impl Iterator<Item = (&str, Extern)> {
        self.exports.iter().map(|(name, item)| (name.as_str(), *item))
    }
}

/// Instances on one simulated device, and the items that they can import.
pub struct Store {
    module: NpuModule,
    types: Types,
    imports: Imports,
    config: Config,
    instances: usize,
    /// The source lines of the modules that have debug information; `lines_of` maps the name of a
    /// function on the device to its index here.
    lines: Vec<SourceLines>,
    lines_of: HashMap<String, usize>,
    pub(crate) kernels: Kernels,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("config", &self.config)
            .field("instances", &self.instances)
            .finish_non_exhaustive()
    }
}

/// Returns the error for results of other types than the declared ones.
fn undeclared() -> CallError {
    CallError::Internal("results of the types that were declared".to_owned())
}

impl Store {
    /// Creates an empty store on an unused module. Instances get memories at known addresses, a
    /// checked stack of 16 MiB for calls on one thread, and no instruction limit.
    pub fn new(mut module: NpuModule, mut config: Config) -> Self {
        module.set_step_limit(u64::MAX);
        if config.bounds_checks && !config.thread_stacks {
            module.define_symbol(STACK_LIMIT, naplespu_jit::stack_top(0) - STACK_BYTES);
            config.stack_limit = Some(STACK_LIMIT.to_owned());
        }
        Self {
            module,
            types: Types::default(),
            imports: Imports::default(),
            config,
            instances: 0,
            lines: Vec::new(),
            lines_of: HashMap::new(),
            kernels: Kernels::default(),
        }
    }

    /// Returns the device and its code.
    pub fn module(&self) -> &NpuModule {
        &self.module
    }

    /// Returns the device and its code for changes.
    pub fn module_mut(&mut self) -> &mut NpuModule {
        &mut self.module
    }

    /// Makes an item importable by modules that are loaded later.
    pub fn define(&mut self, module: &str, name: &str, item: Extern) {
        self.imports.define(module, name, item);
    }

    /// Makes all exports of an instance importable under a module name.
    pub fn register(&mut self, module: &str, instance: &Instance) {
        for (name, item) in instance.exports() {
            self.imports.define(module, name, item);
        }
    }

    /// Declares a function that the Cranelift module defines under this name, so that modules can
    /// import it.
    ///
    /// # Errors
    ///
    /// [`WasmError::Define`] if the name is declared differently.
    pub fn function(&mut self, name: &str, ty: &FuncType) -> Result<FuncItem> {
        let signature = ty.signature(self.config.convention);
        let declared = self.module.declare_function(name, Linkage::Import, &signature);
        let id = declared.map_err(|error| crate::env::fault(name, error))?;
        Ok(FuncItem {
            id,
            ty: self.types.intern(ty.clone()),
        })
    }

    /// Defines a function that runs on the host, so that modules can import it.
    ///
    /// # Errors
    ///
    /// [`WasmError::Define`] if the name is taken.
    pub fn host_function(&mut self, name: &str, ty: &FuncType, function: HostFunction) -> Result<FuncItem> {
        let signature = ty.signature(self.config.convention);
        let id = match self.module.define_host_function(name, &signature, function) {
            Ok(id) => id,
            Err(error) => return Err(crate::env::fault(name, error.into())),
        };
        Ok(FuncItem {
            id,
            ty: self.types.intern(ty.clone()),
        })
    }

    /// Translates and compiles a binary module, and links it with the importable items.
    /// [`Store::start`] initializes the instance.
    ///
    /// # Errors
    ///
    /// See [`WasmError`].
    pub fn load(&mut self, bytes: &[u8]) -> Result<Instance> {
        let info = crate::parse::parse(bytes, &mut self.types)?;
        let mut config = self.config.clone();
        if self.instances > 0 || !config.closed {
            config.prefix = format!("{}i{}.", config.prefix, self.instances);
            config.plain_exports = false;
        }
        self.instances += 1;
        for &crate::parse::Memory { limits, offset, .. } in &info.memories {
            let most = if info.is_memory_fixed(&config) {
                limits.min
            } else {
                limits.max.unwrap_or(u32::MAX).min(config.memory_reservation / PAGE)
            };
            let size = most.max(limits.min).max(1).checked_mul(PAGE);
            let size = size.filter(|_| limits.min <= config.memory_reservation / PAGE);
            let base = size.and_then(|size| self.module.allocate(size, PAGE).ok());
            config.memory_bases.push(base.ok_or_else(|| WasmError::TooLarge {
                offset,
                what: format!(
                    "a memory of {} pages; the limit is {} for each memory, if the device has room",
                    limits.min,
                    config.memory_reservation / PAGE
                ),
            })?);
        }
        let mut imports = Imports::default();
        for import in &info.imports {
            if let Some(item) = self.imports.get(import.module, import.name) {
                imports.define(import.module, import.name, self.as_it_is(item));
            }
        }
        let mut translated = crate::translate(&mut self.module, bytes, &config, &mut self.types, &imports)?;
        if let Some(lines) = SourceLines::new(bytes) {
            for (func, _) in &translated.functions {
                let name = self.module.declarations().get_function_decl(*func).linkage_name(*func);
                self.lines_of.insert(name.into_owned(), self.lines.len());
            }
            self.lines.push(lines);
        }
        self.kernels
            .add(std::mem::take(&mut translated.kernels), &translated.functions);
        let compiled = self.module.compile_functions(&mut translated.functions);
        for ((func, _), result) in translated.functions.iter().zip(compiled) {
            result.map_err(|error| {
                let declaration = self.module.declarations().get_function_decl(*func);
                WasmError::Define {
                    name: declaration.linkage_name(*func).into_owned(),
                    error: Box::new(error.into()),
                }
            })?;
        }
        Ok(Instance {
            exports: translated.exports.into_iter().collect(),
            init: Some(translated.init),
            stack_pointer: translated.stack_pointer,
        })
    }

    /// Initializes the memories and tables of an instance and runs its start function.
    ///
    /// # Errors
    ///
    /// See [`CallError`]. Writes before the error stay.
    pub fn start(&mut self, instance: &Instance) -> std::result::Result<(), CallError> {
        match instance.init {
            Some(init) => {
                let called = self.module.call(init, &[]);
                called.map(drop).map_err(|error| self.call_error(error))
            }
            None => Ok(()),
        }
    }

    /// Returns a memory or table with its current size as its minimum.
    fn as_it_is(&self, mut item: Extern) -> Extern {
        let word = |data| self.module.data_address(data).map(|at| self.module.read_word(at));
        match &mut item {
            Extern::Memory(memory) => {
                if let Some(bytes) = word(memory.size) {
                    memory.limits.min = bytes / PAGE;
                }
            }
            Extern::Table(table) => {
                if let Some(size) = word(table.size) {
                    table.limits.min = size;
                }
            }
            Extern::Func(_) | Extern::Global(_) | Extern::Tag(_) => {}
        }
        item
    }

    /// Calls an exported function.
    ///
    /// # Errors
    ///
    /// See [`CallError`].
    pub fn invoke(
        &mut self,
        instance: &Instance,
        name: &str,
        args: &[Value],
    ) -> std::result::Result<Vec<Value>, CallError> {
        match instance.export(name) {
            Some(Extern::Func(item)) => self.call(item, args),
            _ => Err(CallError::NoSuchFunction(name.to_owned())),
        }
    }

    /// Returns the type of a function.
    ///
    /// # Errors
    ///
    /// [`WasmError::Internal`] if the function is not in this store.
    pub fn type_of(&self, item: FuncItem) -> Result<&FuncType> {
        self.types.get(item.ty)
    }

    /// Calls a function.
    ///
    /// # Errors
    ///
    /// See [`CallError`].
    pub fn call(&mut self, item: FuncItem, args: &[Value]) -> std::result::Result<Vec<Value>, CallError> {
        let mut results = self.call_on_threads(item, args, &[0])?;
        results.pop().ok_or_else(undeclared)
    }

    /// Calls a function on several hardware threads at once and returns the results of each thread.
    /// With [`Config::thread_stacks`] the threads share the shadow stack of the instance,
    /// `stack_bytes` long, in equal parts. The numbers of the threads are ascending.
    ///
    /// # Errors
    ///
    /// See [`CallError`].
    pub fn call_threads(
        &mut self,
        instance: &Instance,
        item: FuncItem,
        args: &[Value],
        threads: &[usize],
        stack_bytes: u32,
    ) -> std::result::Result<Vec<Vec<Value>>, CallError> {
        self.divide_stack(instance, threads, stack_bytes, 0)?;
        self.call_on_threads(item, args, threads)
    }

    /// Gives each thread its part of the shadow stack of an instance, below `frames` bytes for its
    /// lanes.
    pub(crate) fn divide_stack(
        &mut self,
        instance: &Instance,
        threads: &[usize],
        stack_bytes: u32,
        frames: u32,
    ) -> std::result::Result<(), CallError> {
        if let Some((global, first)) = instance.stack_pointer {
            let part = stack_bytes / u32::try_from(threads.len().max(1)).unwrap_or(u32::MAX);
            let part = part & !(STACK_ALIGN - 1);
            if frames > part {
                let refused = DispatchError::StackSize {
                    needed: frames,
                    available: part,
                };
                return Err(refused.into());
            }
            for (&thread, number) in threads.iter().zip(0..) {
                if let Some(address) = self.module.tls_address(global.data, thread) {
                    self.module
                        .write_word(address, first.saturating_sub(part * number + frames))?;
                }
            }
        }
        Ok(())
    }

    fn call_on_threads(
        &mut self,
        item: FuncItem,
        args: &[Value],
        threads: &[usize],
    ) -> std::result::Result<Vec<Vec<Value>>, CallError> {
        self.check_arguments(item, args)?;
        let args: Vec<DataValue> = args.iter().map(|arg| arg.to_clif()).collect();
        let results = self.module.call_on(item.id, &args, threads);
        let results = results.map_err(|error| self.call_error(error))?;
        let ty = self.function_type(item)?;
        let values = |list: &Vec<DataValue>| {
            let values = list.iter().zip(&ty.results);
            values.map(|(value, ty)| Value::of_clif(value, *ty)).collect()
        };
        let results: Option<Vec<Vec<Value>>> = results.iter().map(values).collect();
        results.ok_or_else(undeclared)
    }

    fn function_type(&self, item: FuncItem) -> std::result::Result<&FuncType, CallError> {
        let ty = self.types.get(item.ty);
        ty.map_err(|error| CallError::Internal(error.to_string()))
    }

    /// Checks the types of the arguments of a function.
    pub(crate) fn check_arguments(&self, item: FuncItem, args: &[Value]) -> std::result::Result<(), CallError> {
        let ty = self.function_type(item)?;
        if args.len() != ty.params.len() || !args.iter().zip(&ty.params).all(|(arg, ty)| arg.fits(*ty)) {
            return Err(CallError::Arguments {
                expected: ty.params.clone(),
            });
        }
        Ok(())
    }

    /// Returns the name of a function on the device.
    pub(crate) fn name_of(&self, id: FuncId) -> String {
        let declaration = self.module.declarations().get_function_decl(id);
        declaration.linkage_name(id).into_owned()
    }

    /// Returns whether each thread has a shadow stack.
    pub(crate) fn has_thread_stacks(&self) -> bool {
        self.config.thread_stacks
    }

    /// Gives a function the source lines of another one.
    pub(crate) fn name_lines(&mut self, function: &str, other: &str) {
        if let Some(&lines) = self.lines_of.get(function) {
            self.lines_of.insert(other.to_owned(), lines);
        }
    }

    /// Returns the value of a global.
    pub fn global(&self, item: GlobalItem) -> Option<Value> {
        let address = self.module.data_address(item.data)?;
        let value = self.module.read_value(address, item.ty.clif())?;
        Value::of_clif(&value, item.ty)
    }

    /// Returns the address of a memory's first byte on the device.
    pub fn base(&self, base: Base) -> Option<u32> {
        match base {
            Base::At(address) => Some(address),
            Base::Data(data) => self.module.data_address(data),
        }
    }

    /// Returns the source line of an instruction, if the module of the function has debug
    /// information. `function` is the name on the device, and `offset` is the offset of the
    /// instruction in the binary module.
    pub fn source_line(&self, function: &str, offset: u32) -> Option<SourceLine> {
        let lines = self.lines.get(*self.lines_of.get(function)?)?;
        lines.at(offset)
    }

    /// Returns the names of the current code and data, with the source lines of modules that have
    /// debug information; see [`NpuModule::code_map`].
    pub fn code_map(&self) -> CodeMap {
        self.module.code_map().with_lines(|function, location| {
            let SourceLine { file, line, .. } = self.source_line(function, location.bits())?;
            Some(naplespu_jit::SourceLine { file, line })
        })
    }

    /// Names WebAssembly traps as the specification does.
    pub(crate) fn call_error(&self, error: RunError) -> CallError {
        match error {
            RunError::Trap(report) if report.code == Some(traps::OUTSIDE_OF_DISPATCH) => self.outside(report),
            RunError::Trap(report) => match report.code.and_then(traps::describe) {
                Some(what) => {
                    let offset = report.srcloc.map(|location| location.bits());
                    let place = report.function.as_deref().zip(offset);
                    // The trap is in a routine of the runtime; the back trace has its caller.
                    let thrown = report.code == Some(traps::UNCAUGHT_EXCEPTION);
                    CallError::Trap {
                        what,
                        line: place.and_then(|(function, offset)| self.source_line(function, offset)),
                        function: report.function.filter(|_| !thrown),
                        offset: offset.filter(|_| !thrown),
                    }
                }
                None => CallError::Run(RunError::Trap(report)),
            },
            RunError::Exit(status) => CallError::Exit(status),
            other => CallError::Run(other),
        }
    }

    /// Returns the error of a kernel that was called.
    fn outside(&self, report: TrapReport) -> CallError {
        let kernel = self
            .kernels
            .iter()
            .find(|kernel| report.function == Some(self.name_of(kernel.id)));
        match kernel {
            Some(kernel) => CallError::OutsideOfDispatch {
                operation: kernel.operation.clone(),
                function: self.name_of(kernel.id),
                offset: kernel.offset,
            },
            None => CallError::Run(RunError::Trap(report)),
        }
    }

    /// Returns the number of a function type; equal types have the same number.
    pub fn intern(&mut self, ty: FuncType) -> crate::types::TypeId {
        self.types.intern(ty)
    }
}

/// The alignment of the shadow stack that compilers assume, in bytes.
pub(crate) const STACK_ALIGN: u32 = 16;

/// The stack size of a call on one thread, in bytes.
const STACK_BYTES: u32 = 16 << 20;

impl From<LinkError> for CallError {
    fn from(error: LinkError) -> Self {
        Self::Run(error.into())
    }
}
