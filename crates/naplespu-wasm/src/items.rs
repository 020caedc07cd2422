//! What modules give each other: functions, memories, tables, globals and tags of exceptions, as the module of Cranelift knows them.

use crate::parse::{ConstOp, Limits};
use crate::types::{Reference, TypeId, ValueType};
use cranelift_module::{DataId, FuncId};
use std::collections::HashMap;

/// A function.
#[derive(Clone, Copy, Debug)]
pub struct FuncItem {
    /// In the module of Cranelift.
    pub id: FuncId,
    /// Its type.
    pub ty: TypeId,
}

/// A global.
#[derive(Clone, Copy, Debug)]
pub struct GlobalItem {
    /// The object that holds its value.
    pub data: DataId,
    /// The type of its value.
    pub ty: ValueType,
    /// Whether it can change.
    pub mutable: bool,
    /// Whether every hardware thread has a copy.
    pub thread_local: bool,
    /// What it always is, if that is known.
    pub(crate) known: Option<ConstOp>,
}

/// A tag of exceptions.
#[derive(Clone, Copy, Debug)]
pub struct TagItem {
    /// Different from that of every other tag: what `npu_throw` is called with.
    pub number: u32,
    /// The arguments are what the exceptions carry; there are no results.
    pub ty: TypeId,
    /// The object of each thread with what it throws.
    pub(crate) thrown: DataId,
}

/// A table: elements of one word each, and their number.
#[derive(Clone, Copy, Debug)]
pub struct TableItem {
    /// The elements: null is 0.
    pub elements: DataId,
    /// The word with their number.
    pub size: DataId,
    /// Their type.
    pub element: Reference,
    /// Elements at the start and at most, as declared.
    pub limits: Limits,
    /// Elements there is room for.
    pub reserved: u32,
    /// Whether it never grows.
    pub(crate) fixed: bool,
}

/// Where a memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// At this address.
    At(u32),
    /// In this data object.
    Data(DataId),
}

/// A linear memory.
#[derive(Clone, Copy, Debug)]
pub struct MemoryItem {
    /// Where its first byte is.
    pub base: Base,
    /// The word with its size in bytes.
    pub size: DataId,
    /// Pages at the start and at most, as declared.
    pub limits: Limits,
    /// Bytes that are reserved for it, a multiple of the page size.
    pub reserved: u32,
    /// Whether it never grows.
    pub(crate) fixed: bool,
    /// The threads that wait for something in it, if it is shared.
    pub(crate) queue: Option<DataId>,
}

impl MemoryItem {
    /// Whether threads share it, so that they can wait for one another there.
    pub fn is_shared(&self) -> bool {
        self.queue.is_some()
    }
}

/// Something that a module exports.
#[derive(Clone, Copy, Debug)]
pub enum Extern {
    /// A function.
    Func(FuncItem),
    /// A global.
    Global(GlobalItem),
    /// A table.
    Table(TableItem),
    /// A memory.
    Memory(MemoryItem),
    /// A tag of exceptions.
    Tag(TagItem),
}

/// What modules can import, by module and name.
#[derive(Clone, Debug, Default)]
pub struct Imports(HashMap<String, HashMap<String, Extern>>);

impl Imports {
    /// Offers something under a name of a module, in place of what had that name.
    pub fn define(&mut self, module: &str, name: &str, item: Extern) {
        self.0
            .entry(module.to_owned())
            .or_default()
            .insert(name.to_owned(), item);
    }

    /// What goes by this name.
    pub fn get(&self, module: &str, name: &str) -> Option<Extern> {
        self.0.get(module)?.get(name).copied()
    }
}

/// Memory for exceptions that are referred to, and the function that puts them there.
#[derive(Clone, Copy, Debug)]
pub struct Keeper {
    /// The function.
    pub function: FuncId,
    /// The memory.
    pub memory: DataId,
    /// The word with the bytes that are taken.
    pub used: DataId,
}
