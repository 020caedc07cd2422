//! The runtime: routines for what the NaplesPU has no instruction for, written in CLIF; in assembly where CLIF cannot say it.
//!
//! # Contract
//!
//! Compiled code calls the routines by the names that [`cranelift_naplespu::runtime`] has. Whoever links a program takes those that it
//! refers to, together with those that they refer to in turn: [`compiled`] gives the code of one, which the build script made for the
//! usual settings, without any work; [`function`] its CLIF, to be compiled with
//! [`Isa::for_runtime`](cranelift_naplespu::Isa::for_runtime) for others. [`functions`] gives all. What is referred to and is no
//! routine is a data object: [`data`].
//!
//! # Invariants
//!
//! - Every routine of [`cranelift_naplespu::runtime::Routine`] and [`cranelift_naplespu::runtime::LaneRoutine`] is here, with the signature given there.
//! - What [`compiled`] gives is what compiling [`function`] gives.

#![deny(missing_docs)]

mod source;
pub mod unwind;

/// What the build script made: the code of all routines and where each stands in the sources.
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

/// A data object of the runtime. It is in main memory, and zero when a program starts unless its name says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Bytes.
    pub size: u32,
    /// In bytes, a power of two.
    pub align: u32,
}

/// Name of the locks of atomic operations: a line for each tile. No thread has one between the calls of a host, which
/// clears what a thread leaves that stops half-way.
pub const ATOMIC_LOCKS: &str = "__npu_atomic_locks";

/// Name of the lock of atomic operations between cores, of which the same holds.
pub const MACHINE_LOCK: &str = "__npu_machine_lock";

/// Name of two words about thread-local storage, which whoever loads a program writes: the address of the block of the first thread
/// of the first tile, and the bytes from each block to that of the next thread. Tiles have as many threads as a core can have.
pub const TLS: &str = "__npu_tls";

/// Name of the table by which the routine that throws exceptions finds handlers: a word with the number of functions, and one with the
/// address of their list, of which [`unwind`] makes the words. Whoever links a program fills it.
pub const UNWIND_TABLE: &str = "__npu_unwind_table";

/// The data object of the runtime with this name, without `%`. Routines refer to it by that.
pub fn data(name: &str) -> Option<Data> {
    let (size, align) = match name {
        ATOMIC_LOCKS => (BARRIER_IDS / BARRIER_COUNTERS * CACHE_LINE, CACHE_LINE),
        MACHINE_LOCK => (2 * CACHE_LINE, CACHE_LINE),
        TLS => (2 * WORD_SLOT, 2 * WORD_SLOT),
        UNWIND_TABLE => (2 * WORD_SLOT, WORD_SLOT),
        _ => return None,
    };
    Some(Data { size, align })
}

/// Names that Cranelift's library calls have, and the routine that throws exceptions; the runtime offers them unless a program has its own.
const LIBRARY: &[&str] = &["memcpy", "memmove", "memset", "memcmp", "npu_throw"];

/// A routine as the build script leaves it.
struct Built {
    name: &'static str,
    /// The routine whose text this one is made from, mostly itself; empty if it is no CLIF.
    text_of: &'static str,
    /// The number of its source, and where its text starts and ends there.
    text: (usize, usize, usize),
    /// Where its code starts and ends in [`CODE`].
    code: (usize, usize),
    pool_start: u32,
    /// Offset, number of the kind, symbol (none for itself) and addend.
    relocs: &'static [(u32, u32, Option<&'static str>, i64)],
    /// Offset and trap code.
    traps: &'static [(u32, u8)],
}

impl Built {
    /// Whether it is CLIF, which is compiled for each target, and not assembly.
    fn is_clif(&self) -> bool {
        !self.text_of.is_empty()
    }
}

/// Whether the name is one of those that library calls have, which programs may use as well.
pub fn is_library(name: &str) -> bool {
    LIBRARY.contains(&name)
}

/// The place of a routine in the list.
fn find(name: &str) -> Option<usize> {
    if !is_reserved(name) && !is_library(name) {
        return None;
    }
    ROUTINES.binary_search_by(|routine| routine.name.cmp(name)).ok()
}

/// All functions of the runtime that are CLIF.
///
/// # Errors
///
/// The reader's message if a source is not CLIF, which a test of this crate excludes.
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

/// The function of the runtime with this name, without `%`, if it is CLIF. Its text is read once a process.
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

/// The code of the routine with this name, without `%`, as `isa` would compile it, if that is known without compiling: for a target
/// [for the runtime](Isa::for_runtime) with the settings and flags that are usual, or for any if the routine is assembly. Relocations name routines of the runtime; what a
/// debugger wants to know is not there.
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

/// Whether code for `isa` is that which the build script made.
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
