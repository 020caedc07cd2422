//! How a module is translated.

use cranelift_codegen::isa::CallConv;

/// Bytes of a page of linear memory.
pub const PAGE: u32 = 0x1_0000;

/// Settings of a translation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Stands before the names of everything that is no exported function, so that several modules can share one module of
    /// Cranelift.
    pub prefix: String,
    /// Whether exported functions go by their names in the module of Cranelift, without the prefix. Names that mean
    /// something there, such as `memcpy`, are never used.
    pub plain_exports: bool,
    /// Bytes that each memory may grow to; what a module asks for less than this is not reserved.
    pub memory_reservation: u32,
    /// Addresses of the memories that the module defines, in order. A memory without one is a data object.
    pub memory_bases: Vec<u32>,
    /// Elements that each table may grow to.
    pub table_reservation: u32,
    /// Whether accesses to memory are checked. Without it an access outside of the memory does whatever the device does there.
    pub bounds_checks: bool,
    /// The name of a symbol whose address is the lowest one of the stack; without it a stack may overflow unnoticed.
    pub stack_limit: Option<String>,
    /// Whether nobody but the module itself can grow its memories and tables, though they are exported.
    pub closed: bool,
    /// Whether each hardware thread has its own shadow stack: the global `__stack_pointer` by the name section, or else the first
    /// that is mutable, of type `i32` and not exported, has a copy in every thread. The host sets the copies.
    pub thread_stacks: bool,
    /// The convention of all functions. Modules with tail calls need [`CallConv::Tail`].
    pub convention: CallConv,
}

impl Default for Config {
    /// No prefix, plain exports, 64 MiB and 64 Ki elements, checked, closed.
    fn default() -> Self {
        Self {
            prefix: String::new(),
            plain_exports: true,
            memory_reservation: 64 << 20,
            memory_bases: Vec::new(),
            table_reservation: 1 << 16,
            bounds_checks: true,
            stack_limit: None,
            closed: true,
            thread_stacks: false,
            convention: CallConv::SystemV,
        }
    }
}
