//! Settings of the translation.

use cranelift_codegen::isa::CallConv;

/// The module name of imports that are operations of the machine.
pub(crate) const NPU: &str = "npu";

/// The size of a page of linear memory, in bytes.
pub const PAGE: u32 = 0x1_0000;

/// Settings of a translation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The prefix of all symbols except plain exports, so that several modules can share one
    /// Cranelift module.
    pub prefix: String,
    /// Whether exported functions keep their names, without the prefix. Names with a meaning in the
    /// Cranelift module, such as `memcpy`, are never kept.
    pub plain_exports: bool,
    /// The size in bytes that each memory may grow to. A memory with a lower maximum reserves only
    /// that.
    pub memory_reservation: u32,
    /// The addresses of the memories that the module defines, in order. A memory without an entry
    /// is a data object.
    pub memory_bases: Vec<u32>,
    /// The number of elements that each table may grow to.
    pub table_reservation: u32,
    /// Whether accesses to memory are bounds-checked. Without checks, an access outside the memory
    /// reaches whatever the device has at that address.
    pub bounds_checks: bool,
    /// The name of the symbol at the lowest address of the stack. Without it, stack overflows go
    /// undetected.
    pub stack_limit: Option<String>,
    /// Whether only the module itself can grow its exported memories and tables.
    pub closed: bool,
    /// Whether each hardware thread has its own shadow stack. The shadow stack pointer is the
    /// global with the name `__stack_pointer` in the name section, or else the first mutable global
    /// of type `i32` that is not exported. Each thread has a copy of it; the host sets the copies.
    pub thread_stacks: bool,
    /// The calling convention of all functions. Modules with tail calls need [`CallConv::Tail`].
    pub convention: CallConv,
}

impl Default for Config {
    /// Returns the default: no prefix, plain exports, 64 MiB and 64 Ki elements, bounds checks,
    /// closed.
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
