//! The runtime: routines for operations without an instruction of the NaplesPU. They are written in
//! CLIF, or in assembly where CLIF cannot express them.
//!
//! # Contract
//!
//! Compiled code calls the routines by the names in [`cranelift_naplespu::runtime`]. A program is
//! linked with the routines that it refers to, transitively. [`compiled`] returns the code of a
//! routine, which the build script compiled for the default settings. For other settings,
//! [`function`] returns its CLIF, to be compiled with
//! [`Isa::for_runtime`](cranelift_naplespu::Isa::for_runtime). [`functions`] returns all of them.
//! References to other names are references to data objects: [`data`].
//!
//! # Invariants
//!
//! - Every routine of [`cranelift_naplespu::runtime::Routine`] and
//!   [`cranelift_naplespu::runtime::LaneRoutine`] exists, with the signature given there.
//! - [`compiled`] returns the same code as compiling [`function`].

#![deny(missing_docs)]

mod source;
pub mod unwind;

/// The output of the build script: the code of all routines and their positions in the sources.
mod built {
    include!(concat!(env!("OUT_DIR"), "/routines.rs"));
}

use built::{CODE, FLAGS, PASSES, ROUTINES};
use cranelift_codegen::ir::{Function, TrapCode};
use cranelift_naplespu::code::{CompiledCode, Reloc, RelocTarget, Trap};
use cranelift_naplespu::runtime::is_reserved;
use cranelift_naplespu::settings::TargetSettings;
use cranelift_naplespu::{Isa, Pass};
use npu_mc::machine::{BARRIER_COUNTERS, BARRIER_IDS, CACHE_LINE, WORD_SLOT};
use source::{CHECKS, SOURCES, made_from, parse};
use std::sync::OnceLock;

/// A data object of the runtime. It is in main memory and zero-initialized, unless the
/// documentation of its name says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// The size in bytes.
    pub size: u32,
    /// The alignment in bytes, a power of two.
    pub align: u32,
}

/// The name of the locks of atomic operations: a cache line for each tile. All locks are free
/// between the calls of a host, which releases the locks of threads that stopped early.
pub const ATOMIC_LOCKS: &str = "__npu_atomic_locks";

/// The size and alignment in bytes of the units of non-coherent memory (control register 19).
const NON_COHERENT_UNIT: u32 = 1 << 22;

/// The name of the lock of atomic operations between cores, which is free between calls as well. It
/// fills a unit of non-coherent memory, so no other data becomes non-coherent.
pub const MACHINE_LOCK: &str = "__npu_machine_lock";

/// The lines at the start of the lock between cores that are zero while it is free: one for each tile.
pub const MACHINE_LOCK_LINES: u32 = BARRIER_IDS / BARRIER_COUNTERS;

/// The name of two words about thread-local storage, which the loader of a program writes: the
/// address of the block of the first thread of the first tile, and the distance in bytes between
/// the blocks of consecutive threads. Every tile counts with the maximum number of threads of a
/// core.
pub const TLS: &str = "__npu_tls";

/// The name of the unwind table of exceptions: a word with the number of functions, and a word with
/// the address of their list. [`unwind`] computes the words of the list; the linker of a program
/// fills the table.
pub const UNWIND_TABLE: &str = "__npu_unwind_table";

/// Returns the data object of the runtime with this name, without `%`.
pub fn data(name: &str) -> Option<Data> {
    let (size, align) = match name {
        ATOMIC_LOCKS => (BARRIER_IDS / BARRIER_COUNTERS * CACHE_LINE, CACHE_LINE),
        MACHINE_LOCK => (NON_COHERENT_UNIT, NON_COHERENT_UNIT),
        TLS => (2 * WORD_SLOT, 2 * WORD_SLOT),
        UNWIND_TABLE => (2 * WORD_SLOT, WORD_SLOT),
        _ => return None,
    };
    Some(Data { size, align })
}

/// The names of Cranelift's library calls, and the routine that throws exceptions. Definitions of
/// the program take precedence.
const LIBRARY: &[&str] = &["memcpy", "memmove", "memset", "memcmp", "npu_throw"];

/// A routine in the output of the build script.
struct Built {
    name: &'static str,
    /// The routine from whose text this one is made, usually itself; empty for assembly.
    text_of: &'static str,
    /// The number of its source, and the start and end of its text there.
    text: (usize, usize, usize),
    /// The start and end of its code in [`CODE`].
    code: (usize, usize),
    pool_start: u32,
    /// Offset, number of the kind, symbol (`None` for the routine itself) and addend.
    relocs: &'static [(u32, u32, Option<&'static str>, i64)],
    /// Offset and trap code.
    traps: &'static [(u32, u8)],
}

impl Built {
    /// Returns whether it is CLIF, which is compiled for each target, not assembly.
    fn is_clif(&self) -> bool {
        !self.text_of.is_empty()
    }
}

/// Returns whether the name is one of the library calls, which programs may call too.
pub fn is_library(name: &str) -> bool {
    LIBRARY.contains(&name)
}

/// Returns the index of a routine in the list.
fn find(name: &str) -> Option<usize> {
    if !is_reserved(name) && !is_library(name) {
        return None;
    }
    ROUTINES.binary_search_by(|routine| routine.name.cmp(name)).ok()
}

/// Returns all functions of the runtime in CLIF.
///
/// # Errors
///
/// The reader's message if a source is invalid, which a test of this crate excludes.
pub fn functions() -> Result<Vec<Function>, String> {
    ROUTINES.iter().filter(|routine| routine.is_clif()).map(read).collect()
}

fn read(routine: &Built) -> Result<Function, String> {
    let (file, from, to) = routine.text;
    let found = SOURCES
        .get(file)
        .and_then(|(name, text)| Some((name, text.get(from..to)?)));
    let (file, text) = found.ok_or_else(|| format!("the runtime has no text of {}", routine.name))?;
    let function = parse(file, text)?.pop();
    let function = function.ok_or_else(|| format!("{file} has no function {}", routine.text_of))?;
    made_from(&function, routine.text_of, routine.name)
        .ok_or_else(|| format!("{} cannot be made from {}", routine.name, routine.text_of))
}

/// Returns the function of the runtime with this name, without `%`, if it is CLIF. Its text is
/// parsed once in a process.
///
/// # Errors
///
/// See [`functions`].
pub fn function(name: &str) -> Result<Option<&'static Function>, String> {
    static READ: [OnceLock<Result<Function, String>>; ROUTINES.len()] = [const { OnceLock::new() }; ROUTINES.len()];
    let Some(index) = find(name).filter(|&index| ROUTINES[index].is_clif()) else {
        return Ok(None);
    };
    let function = READ[index].get_or_init(|| read(&ROUTINES[index]));
    function.as_ref().map(Some).map_err(Clone::clone)
}

/// Returns the code of the routine with this name, without `%`, as `isa` would compile it, if it is
/// available without compilation: for a target [for the runtime](Isa::for_runtime) with default
/// settings and flags, or for any target if the routine is assembly. Relocations name routines of
/// the runtime; debug information is missing.
pub fn compiled(isa: &Isa, name: &str) -> Option<CompiledCode> {
    let routine = &ROUTINES[find(name)?];
    if routine.is_clif() && !is_usual(isa) {
        return None;
    }
    let mut code = CompiledCode::default();
    code.bytes = CODE.get(routine.code.0..routine.code.1)?.to_vec();
    code.pool_start = routine.pool_start;
    for &(offset, kind, symbol, addend) in routine.relocs {
        code.relocs.push(Reloc {
            offset,
            kind: npu_mc::reloc::Reloc::from_number(kind)?,
            target: symbol.map_or(RelocTarget::Function, RelocTarget::Runtime),
            addend,
        });
    }
    for &(offset, number) in routine.traps {
        code.traps.push(Trap {
            offset,
            code: TrapCode::from_raw(number.try_into().ok()?),
            inst: None,
            srcloc: cranelift_codegen::ir::SourceLoc::default(),
        });
    }
    Some(code)
}

/// Returns whether the build script's code is valid for `isa`.
fn is_usual(isa: &Isa) -> bool {
    let flags = || isa.flags().iter().filter(|flag| !CHECKS.contains(&flag.name));
    *isa.settings() == TargetSettings::default()
        && Pass::ALL
            .iter()
            .all(|pass| isa.runs(*pass) == PASSES.contains(&pass.name()))
        && flags().count() == FLAGS.len()
        && flags()
            .zip(FLAGS)
            .all(|(flag, usual)| (flag.name, flag.value_string().as_str()) == *usual)
}
