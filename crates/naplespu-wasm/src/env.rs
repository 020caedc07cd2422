//! Declares a module's imports, definitions and data in a Cranelift module.

use crate::config::{Config, PAGE};
use crate::error::{Result, WasmError};
use crate::items::{Base, Extern, FuncItem, GlobalItem, Imports, Keeper, MemoryItem, TableItem, TagItem};
use crate::lines::PREFIX;
use crate::parse::{ConstOp, Global, Import, ImportKind, Limits, Memory, ModuleInfo};
use crate::queue::{QUEUE_BYTES, Waiting};
use crate::types::{Types, ValueType};
use cranelift_codegen::ir::Signature;
use cranelift_module::{DataDescription, DataId, FuncId, FuncOrDataId, Linkage, Module, ModuleError};
use std::collections::{HashMap, HashSet};
use wasmparser::ExternalKind;

/// The size of a function record in bytes: the address of the code and the number of the type.
pub(crate) const RECORD_BYTES: u32 = 8;
/// The offset of the type's number in a record.
pub(crate) const RECORD_TYPE: i32 = 4;

/// The name of the function that initializes a module, unless it is taken. CLIF can call it.
const INIT: &str = "wasm_init";

/// A data or element segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub contents: DataId,
    /// The initial number of bytes or elements.
    pub count: u32,
    /// The word with the current number, 0 after the segment was dropped.
    pub left: DataId,
}

/// The context of the translation of functions.
pub(crate) struct Env<'a, 'm> {
    pub module: &'m mut dyn Module,
    pub info: &'a ModuleInfo<'a>,
    pub types: &'a Types,
    pub config: &'a Config,
    pub functions: Vec<FuncItem>,
    /// Function records, created at their first use.
    records: HashMap<u32, DataId>,
    pub globals: Vec<GlobalItem>,
    pub tables: Vec<TableItem>,
    pub memories: Vec<MemoryItem>,
    pub tags: Vec<TagItem>,
    /// The memory for copies of exceptions, created at its first use.
    pub keeper: Option<Keeper>,
    pub elements: Vec<Segment>,
    pub data: Vec<Segment>,
    /// The number of imported functions, which precede those of the module.
    pub imported_functions: usize,
    pub imported_globals: usize,
    pub imported_tables: usize,
    /// The thread-local shadow stack pointer and its initial value.
    pub stack_pointer: Option<(GlobalItem, u32)>,
    /// The functions that wait or wake, created at their first use.
    pub waiting: Vec<(Waiting, FuncId)>,
    names: HashSet<String>,
}

/// Returns whether a name has a meaning for the linker or the compiler.
fn is_reserved(name: &str) -> bool {
    name.starts_with("__npu_") || name.starts_with("__builtin_npu_") || {
        matches!(
            name,
            "memcpy" | "memmove" | "memset" | "memcmp" | "npu_throw" | "_start"
        )
    }
}

/// Returns a data object with these bytes, or zeros.
fn object(contents: Contents<'_>, align: u64) -> DataDescription {
    let mut description = DataDescription::new();
    match contents {
        Contents::Zeros(size) => description.define_zeroinit(size),
        Contents::Bytes(bytes) => description.define(bytes.into()),
    }
    description.set_align(align);
    description
}

#[derive(Clone, Copy)]
pub(crate) enum Contents<'a> {
    Zeros(usize),
    Bytes(&'a [u8]),
}

impl<'a, 'm> Env<'a, 'm> {
    /// Declares everything and defines all data with known contents.
    pub fn new(
        module: &'m mut dyn Module,
        info: &'a ModuleInfo<'a>,
        types: &'a Types,
        config: &'a Config,
        imports: &Imports,
    ) -> Result<Self> {
        let mut env = Self {
            module,
            info,
            types,
            config,
            functions: Vec::new(),
            records: HashMap::new(),
            globals: Vec::new(),
            tables: Vec::new(),
            memories: Vec::new(),
            tags: Vec::new(),
            keeper: None,
            elements: Vec::new(),
            data: Vec::new(),
            imported_functions: 0,
            imported_globals: 0,
            imported_tables: 0,
            stack_pointer: None,
            waiting: Vec::new(),
            names: HashSet::new(),
        };
        for import in &info.imports {
            env.import(import, imports)?;
        }
        env.imported_functions = env.functions.len();
        env.imported_globals = env.globals.len();
        env.imported_tables = env.tables.len();
        env.declare_functions()?;
        env.declare_tags()?;
        env.declare_memories()?;
        env.declare_tables()?;
        env.declare_globals()?;
        env.declare_segments()?;
        Ok(env)
    }

    fn import(&mut self, import: &Import<'_>, imports: &Imports) -> Result<()> {
        let item = match imports.get(import.module, import.name) {
            Some(item) => Some(item),
            None => crate::npu::import(self, import)?,
        };
        let Some(item) = item else {
            return Err(WasmError::UnknownImport {
                offset: import.offset,
                module: import.module.to_owned(),
                name: import.name.to_owned(),
            });
        };
        let why = match (import.kind, item) {
            (ImportKind::Func(ty), Extern::Func(item)) => {
                self.functions.push(item);
                (item.ty != ty).then(|| "a function of another type".to_owned())
            }
            (ImportKind::Global(ty, mutable), Extern::Global(item)) => {
                self.globals.push(item);
                let fits = if mutable {
                    item.ty == ty
                } else {
                    item.ty.is_subtype_of(ty)
                };
                (item.mutable != mutable || !fits).then(|| "a global of another type".to_owned())
            }
            (ImportKind::Table(limits, element), Extern::Table(item)) => {
                self.tables.push(TableItem { fixed: false, ..item });
                let fits = element == item.element;
                misfit(limits, item.limits).or_else(|| (!fits).then(|| "elements of another type".to_owned()))
            }
            (ImportKind::Memory(limits, shared), Extern::Memory(item)) => {
                self.memories.push(MemoryItem { fixed: false, ..item });
                let other = match (shared, item.is_shared()) {
                    (true, false) => Some("it is not shared".to_owned()),
                    (false, true) => Some("it is shared".to_owned()),
                    _ => None,
                };
                misfit(limits, item.limits).or(other)
            }
            (ImportKind::Tag(ty), Extern::Tag(item)) => {
                self.tags.push(item);
                (item.ty != ty).then(|| "a tag of another type".to_owned())
            }
            (asked, _) => {
                let kind = match asked {
                    ImportKind::Func(_) => "function",
                    ImportKind::Table(..) => "table",
                    ImportKind::Memory(..) => "memory",
                    ImportKind::Global(..) => "global",
                    ImportKind::Tag(_) => "tag",
                };
                Some(format!("it is not a {kind}"))
            }
        };
        match why {
            None => Ok(()),
            Some(why) => Err(WasmError::IncompatibleImport {
                offset: import.offset,
                module: import.module.to_owned(),
                name: import.name.to_owned(),
                why,
            }),
        }
    }

    /// Returns an unused name.
    pub fn fresh(&mut self, wish: &str) -> String {
        let mut name = format!("{}{PREFIX}{wish}", self.config.prefix);
        let mut number = 0;
        while self.names.contains(&name) || self.module.get_name(&name).is_some() {
            number += 1;
            name = format!("{}{PREFIX}{wish}.{number}", self.config.prefix);
        }
        self.names.insert(name.clone());
        name
    }

    fn declare_functions(&mut self) -> Result<()> {
        let mut exported: HashMap<u32, &str> = HashMap::new();
        if self.config.plain_exports {
            for &(name, kind, index) in &self.info.exports {
                if kind == ExternalKind::Func && !is_reserved(name) && !name.is_empty() {
                    exported.entry(index).or_insert(name);
                }
            }
        }
        for &ty in &self.info.functions {
            let index = self.functions.len() as u32;
            let free = |name: &&&str| {
                !matches!(
                    self.module.get_name(name),
                    Some(FuncOrDataId::Func(_) | FuncOrDataId::Data(_))
                )
            };
            let (name, linkage) = match exported.get(&index).filter(free) {
                Some(name) => ((*name).to_owned(), Linkage::Export),
                None => {
                    let wish = self.info.names.get(&index).filter(|name| !name.is_empty());
                    let wish = wish.map_or_else(|| format!("function{index}"), |name| (*name).to_owned());
                    (self.fresh(&wish), Linkage::Local)
                }
            };
            let signature = self.types.get(ty)?.signature(self.config.convention);
            let id = self.function(&name, linkage, &signature)?;
            self.functions.push(FuncItem { id, ty });
        }
        Ok(())
    }

    /// Declares a function.
    pub fn function(&mut self, name: &str, linkage: Linkage, signature: &Signature) -> Result<FuncId> {
        let declared = self.module.declare_function(name, linkage, signature);
        declared.map_err(|error| fault(name, error))
    }

    /// Declares the function that initializes the module.
    pub fn init_function(&mut self) -> Result<FuncId> {
        let mut name = format!("{}{INIT}", self.config.prefix);
        if self.module.get_name(&name).is_some() {
            name = self.fresh("init");
        }
        let signature = Signature::new(self.config.convention);
        self.function(&name, Linkage::Export, &signature)
    }

    /// Returns whether a global is the thread-local shadow stack pointer.
    fn is_stack_pointer(&self, number: u32, global: &Global) -> bool {
        let index = self.imported_globals as u32 + number;
        let exported = |&(_, kind, at): &(&str, ExternalKind, u32)| kind == ExternalKind::Global && at == index;
        let fits = global.mutable && global.ty == ValueType::I32 && !self.info.exports.iter().any(exported);
        let named = self.info.stack_pointer.is_none_or(|named| named == index);
        self.config.thread_stacks && self.stack_pointer.is_none() && fits && named
    }

    fn object(&mut self, wish: &str, contents: Contents<'_>, align: u64, writable: bool) -> Result<DataId> {
        self.object_of(wish, contents, align, writable, false)
    }

    pub fn object_of(
        &mut self,
        wish: &str,
        contents: Contents<'_>,
        align: u64,
        writable: bool,
        thread_local: bool,
    ) -> Result<DataId> {
        let name = self.fresh(wish);
        let declared = self.module.declare_data(&name, Linkage::Local, writable, thread_local);
        let id = declared.map_err(|error| fault(&name, error))?;
        let defined = self.module.define_data(id, &object(contents, align));
        defined.map_err(|error| fault(&name, error))?;
        Ok(id)
    }

    fn word(&mut self, wish: &str, value: u32) -> Result<DataId> {
        self.object(wish, Contents::Bytes(&value.to_le_bytes()), 4, true)
    }

    fn declare_memories(&mut self) -> Result<()> {
        for (number, memory) in self.info.memories.iter().enumerate() {
            let &Memory { limits, shared, offset } = memory;
            let too_large = |pages: u32| WasmError::TooLarge {
                offset,
                what: format!(
                    "a memory of {pages} pages; {} bytes are reserved",
                    self.config.memory_reservation
                ),
            };
            let most = self.config.memory_reservation / PAGE;
            if limits.min > most {
                return Err(too_large(limits.min));
            }
            let fixed = self.info.is_memory_fixed(self.config);
            let pages = if fixed {
                limits.min
            } else {
                limits.max.map_or(most, |max| max.min(most))
            };
            let reserved = pages * PAGE;
            let base = match self.config.memory_bases.get(number) {
                Some(&address) => Base::At(address),
                None => {
                    // An empty memory still needs an object with an address.
                    let bytes = reserved.max(PAGE) as usize;
                    Base::Data(self.object(&format!("memory{number}"), Contents::Zeros(bytes), PAGE.into(), true)?)
                }
            };
            let size = self.word(&format!("memory{number}.size"), limits.min * PAGE)?;
            let queue = match shared {
                true => {
                    let zeros = Contents::Zeros(QUEUE_BYTES as usize);
                    Some(self.object(&format!("memory{number}.waiters"), zeros, 8, true)?)
                }
                false => None,
            };
            self.memories.push(MemoryItem {
                queue,
                base,
                size,
                limits,
                reserved,
                fixed,
            });
        }
        Ok(())
    }

    fn declare_tables(&mut self) -> Result<()> {
        for (number, table) in self.info.tables.iter().enumerate() {
            let exported = self
                .info
                .exports
                .iter()
                .any(|&(_, kind, _)| kind == ExternalKind::Table);
            let fixed = !self.info.grows_table && (self.config.closed || !exported);
            let most = self.config.table_reservation;
            if table.limits.min > most {
                return Err(WasmError::TooLarge {
                    offset: table.offset,
                    what: format!("a table of {} elements; there is room for {most}", table.limits.min),
                });
            }
            let reserved = if fixed {
                table.limits.min
            } else {
                table.limits.max.map_or(most, |max| max.min(most))
            };
            let bytes = reserved.max(1) as usize * 4;
            let elements = self.object(&format!("table{number}"), Contents::Zeros(bytes), 4, true)?;
            let size = self.word(&format!("table{number}.size"), table.limits.min)?;
            self.tables.push(TableItem {
                elements,
                size,
                element: table.element,
                limits: table.limits,
                reserved,
                fixed,
            });
        }
        Ok(())
    }

    fn declare_globals(&mut self) -> Result<()> {
        for (number, global) in self.info.globals.iter().enumerate() {
            let value = known(&global.init, &self.globals);
            let bytes = match value {
                Some(ConstOp::I32(value)) => value.to_le_bytes().to_vec(),
                Some(ConstOp::I64(value)) => value.to_le_bytes().to_vec(),
                Some(ConstOp::F32(bits)) => bits.to_le_bytes().to_vec(),
                Some(ConstOp::F64(bits)) => bits.to_le_bytes().to_vec(),
                Some(ConstOp::V128(bytes)) => bytes.to_le_bytes().to_vec(),
                // The initialization function writes it.
                _ => vec![0; global.ty.bytes() as usize],
            };
            let first = match value {
                Some(ConstOp::I32(first)) if self.is_stack_pointer(number as u32, global) => Some(first as u32),
                _ => None,
            };
            let contents = Contents::Bytes(&bytes);
            let name = format!("global{number}");
            let align = global.ty.bytes().max(8).into();
            let data = self.object_of(&name, contents, align, true, first.is_some())?;
            let item = GlobalItem {
                data,
                ty: global.ty,
                mutable: global.mutable,
                thread_local: first.is_some(),
                known: value.filter(|_| !global.mutable),
            };
            self.stack_pointer = self.stack_pointer.or(first.map(|first| (item, first)));
            self.globals.push(item);
        }
        Ok(())
    }

    fn declare_segments(&mut self) -> Result<()> {
        for (number, data) in self.info.data.iter().enumerate() {
            let count = u32::try_from(data.bytes.len()).map_err(|_| WasmError::TooLarge {
                offset: data.offset,
                what: "a data segment".to_owned(),
            })?;
            let bytes = if data.bytes.is_empty() { &[0][..] } else { data.bytes };
            let contents = self.object(&format!("data{number}"), Contents::Bytes(bytes), 4, false)?;
            let left = self.word(&format!("data{number}.size"), count)?;
            self.data.push(Segment { contents, count, left });
        }
        for (number, segment) in self.info.elements.iter().enumerate() {
            let count = u32::try_from(segment.items.len()).map_err(|_| WasmError::TooLarge {
                offset: segment.offset,
                what: "an element segment".to_owned(),
            })?;
            let mut description = object(Contents::Zeros(segment.items.len().max(1) * 4), 4);
            let mut places = Vec::new();
            for (item, at) in segment.items.iter().zip((0..).step_by(4)) {
                if let [ConstOp::Func(index)] = item[..] {
                    places.push((at, self.record(index)?));
                }
            }
            // A zero-filled object cannot have relocations.
            if !places.is_empty() {
                description = object(Contents::Bytes(&vec![0; segment.items.len() * 4]), 4);
            }
            for (at, record) in places {
                let value = self.module.declare_data_in_data(record, &mut description);
                description.write_data_addr(at, value, 0);
            }
            let name = self.fresh(&format!("elements{number}"));
            let declared = self.module.declare_data(&name, Linkage::Local, true, false);
            let contents = declared.map_err(|error| fault(&name, error))?;
            let defined = self.module.define_data(contents, &description);
            defined.map_err(|error| fault(&name, error))?;
            let left = self.word(
                &format!("elements{number}.size"),
                if segment.declared { 0 } else { count },
            )?;
            self.elements.push(Segment { contents, count, left });
        }
        Ok(())
    }

    /// Returns the record of a function; references to the function are the address of its record.
    pub fn record(&mut self, index: u32) -> Result<DataId> {
        if let Some(&record) = self.records.get(&index) {
            return Ok(record);
        }
        let item = *get(&self.functions, index, "a function")?;
        let mut bytes = [0; RECORD_BYTES as usize];
        bytes[RECORD_TYPE as usize..].copy_from_slice(&item.ty.0.to_le_bytes());
        let mut description = object(Contents::Bytes(&bytes), 8);
        let code = self.module.declare_func_in_data(item.id, &mut description);
        description.write_function_addr(0, code);
        let name = self.fresh(&format!("record{index}"));
        let declared = self.module.declare_data(&name, Linkage::Local, false, false);
        let record = declared.map_err(|error| fault(&name, error))?;
        let defined = self.module.define_data(record, &description);
        defined.map_err(|error| fault(&name, error))?;
        self.records.insert(index, record);
        Ok(record)
    }

    /// Returns the exports of the module.
    pub fn exports(&self) -> Result<Vec<(String, Extern)>> {
        let mut exports = Vec::new();
        for &(name, kind, index) in &self.info.exports {
            let item = match kind {
                ExternalKind::Func | ExternalKind::FuncExact => {
                    Extern::Func(*get(&self.functions, index, "a function")?)
                }
                ExternalKind::Table => Extern::Table(*get(&self.tables, index, "a table")?),
                ExternalKind::Memory => Extern::Memory(*get(&self.memories, index, "a memory")?),
                ExternalKind::Global => Extern::Global(*get(&self.globals, index, "a global")?),
                ExternalKind::Tag => Extern::Tag(*get(&self.tags, index, "a tag")?),
            };
            exports.push((name.to_owned(), item));
        }
        Ok(exports)
    }
}

/// Returns why the limits of an item do not match those that an import requests.
fn misfit(asked: Limits, given: Limits) -> Option<String> {
    if given.min < asked.min {
        return Some(format!("its minimum is {}, but {} is required", given.min, asked.min));
    }
    match (asked.max, given.max) {
        (Some(asked), Some(given)) if given > asked => Some(format!("its maximum is {given}, but {asked} is allowed")),
        (Some(_), None) => Some("it has no maximum".to_owned()),
        _ => None,
    }
}

/// Evaluates a constant expression, if its value is known during translation.
pub(crate) fn known(ops: &[ConstOp], globals: &[GlobalItem]) -> Option<ConstOp> {
    let mut stack: Vec<ConstOp> = Vec::new();
    for &op in ops {
        let value = match op {
            ConstOp::I32(_)
            | ConstOp::I64(_)
            | ConstOp::F32(_)
            | ConstOp::F64(_)
            | ConstOp::V128(_)
            | ConstOp::Null => op,
            ConstOp::Global(index) => globals.get(index as usize)?.known?,
            ConstOp::Func(_) => return None,
            ConstOp::Add32 | ConstOp::Sub32 | ConstOp::Mul32 | ConstOp::Add64 | ConstOp::Sub64 | ConstOp::Mul64 => {
                let (b, a) = (stack.pop()?, stack.pop()?);
                match (op, a, b) {
                    (ConstOp::Add32, ConstOp::I32(a), ConstOp::I32(b)) => ConstOp::I32(a.wrapping_add(b)),
                    (ConstOp::Sub32, ConstOp::I32(a), ConstOp::I32(b)) => ConstOp::I32(a.wrapping_sub(b)),
                    (ConstOp::Mul32, ConstOp::I32(a), ConstOp::I32(b)) => ConstOp::I32(a.wrapping_mul(b)),
                    (ConstOp::Add64, ConstOp::I64(a), ConstOp::I64(b)) => ConstOp::I64(a.wrapping_add(b)),
                    (ConstOp::Sub64, ConstOp::I64(a), ConstOp::I64(b)) => ConstOp::I64(a.wrapping_sub(b)),
                    (ConstOp::Mul64, ConstOp::I64(a), ConstOp::I64(b)) => ConstOp::I64(a.wrapping_mul(b)),
                    _ => return None,
                }
            }
        };
        stack.push(value);
    }
    stack.pop()
}

/// Returns an entry of a list; the validator has checked the index.
pub(crate) fn get<'t, T>(list: &'t [T], index: u32, what: &str) -> Result<&'t T> {
    let entry = list.get(index as usize);
    entry.ok_or_else(|| WasmError::internal(format!("{what} with number {index}")))
}

pub(crate) fn fault(name: &str, error: ModuleError) -> WasmError {
    WasmError::Define {
        name: name.to_owned(),
        error: Box::new(error),
    }
}
