//! The items that modules import and export, with their identity in the Cranelift module.

use crate::parse::{ConstOp, Limits};
use crate::types::{Reference, TypeId, ValueType};
use cranelift_module::{DataId, FuncId};
use std::collections::HashMap;

/// A function.
#[derive(Clone, Copy, Debug)]
pub struct FuncItem {
    /// Its identity in the Cranelift module.
    pub id: FuncId,
    /// Its type.
    pub ty: TypeId,
}

/// A global.
#[derive(Clone, Copy, Debug)]
pub struct GlobalItem {
    /// The object that holds its value.
    pub data: DataId,
    /// The type of the value.
    pub ty: ValueType,
    /// Whether it is mutable.
    pub mutable: bool,
    /// Whether each hardware thread has a copy.
    pub thread_local: bool,
    /// Its value, if it is constant and known.
    pub(crate) known: Option<ConstOp>,
}

/// An exception tag.
#[derive(Clone, Copy, Debug)]
pub struct TagItem {
    /// The unique number of the tag, an argument of `npu_throw`.
    pub number: u32,
    /// The type of the tag. Its parameters are the values of an exception; it has no results.
    pub ty: TypeId,
    /// The thread-local object that holds the exception while it is thrown.
    pub(crate) thrown: DataId,
}

/// A table: an array of one-word elements, and a cell for their number.
#[derive(Clone, Copy, Debug)]
pub struct TableItem {
    /// The array of elements; null is 0.
    pub elements: DataId,
    /// The word with the number of elements.
    pub size: DataId,
    /// The type of the elements.
    pub element: Reference,
    /// The declared minimum and maximum number of elements.
    pub limits: Limits,
    /// The number of elements that fit in the reserved space.
    pub reserved: u32,
    /// Whether its size is constant.
    pub(crate) fixed: bool,
}

/// The location of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// A known address.
    At(u32),
    /// A data object.
    Data(DataId),
}

/// A linear memory.
#[derive(Clone, Copy, Debug)]
pub struct MemoryItem {
    /// The location of its first byte.
    pub base: Base,
    /// The word with the size in bytes.
    pub size: DataId,
    /// The declared minimum and maximum size, in pages.
    pub limits: Limits,
    /// The reserved size in bytes, a multiple of the page size.
    pub reserved: u32,
    /// Whether its size is constant.
    pub(crate) fixed: bool,
    /// The queue of threads that wait on its addresses, if it is shared.
    pub(crate) queue: Option<DataId>,
}

impl MemoryItem {
    /// Returns whether threads share the memory, so that they can wait on its addresses.
    pub fn is_shared(&self) -> bool {
        self.queue.is_some()
    }
}

/// An exported item.
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
    /// An exception tag.
    Tag(TagItem),
}

/// The items that modules can import, by module and name.
#[derive(Clone, Debug, Default)]
pub struct Imports(HashMap<String, HashMap<String, Extern>>);

impl Imports {
    /// Defines an item under a module and name, replacing an earlier item with that name.
    pub fn define(&mut self, module: &str, name: &str, item: Extern) {
        self.0
            .entry(module.to_owned())
            .or_default()
            .insert(name.to_owned(), item);
    }

    /// Returns the item with this module and name.
    pub fn get(&self, module: &str, name: &str) -> Option<Extern> {
        self.0.get(module)?.get(name).copied()
    }
}

/// Memory for copies of referenced exceptions, and the function that copies them there.
#[derive(Clone, Copy, Debug)]
pub struct Keeper {
    /// The function that copies.
    pub function: FuncId,
    /// The memory.
    pub memory: DataId,
    /// The word with the number of used bytes.
    pub used: DataId,
}
