//! From allocated VCode to the final machine instructions.
//!
//! [`expand`](mod@expand) turns every VCode instruction into machine instructions in basic blocks ([`func`]). Then come
//! passes over these, each of which may be left out but the last: [`copyprop`] drops moves, [`wrap`](mod@wrap) makes the frame where it is needed, [`masks`] merges regions under
//! one lane mask, [`jumps`] lays out branches so that fewer are executed, [`carried`] drops moves between rounds of loops, [`rename`] unties values that share a register, [`sched`] fills the time that results take and keeps the
//! order free of what the hardware gets wrong, [`relax`] replaces branches that do not reach. They share what an instruction
//! does ([`effects`]), the control flow ([`cfg`](mod@cfg)) and the way to change a function ([`edit`]); [`places`] follows labelled values
//! through all this, and [`text`] prints and reads it.

pub mod carried;
pub mod cfg;
pub mod copy_loop;
pub mod copyprop;
pub mod edit;
pub mod effects;
pub mod expand;
pub mod func;
pub mod jumps;
pub mod masks;
pub mod places;
pub mod prologue;
pub mod relax;
pub mod rename;
pub mod sched;
pub mod text;
pub mod wrap;

use crate::abi::registers::RegisterSet;
use crate::error::CompileError;
use effects::Conventions;
use func::MachFunction;

/// Runs one pass by its name, as a test of that pass wants it: `copyprop`, `wrap`, `masks`, `jumps`, `carried`, `rename`, `sched`, `hazard` or `relax`.
/// `registers` are those that the function may change.
///
/// # Errors
///
/// As the pass; [`CompileError::Internal`] for another name.
pub fn run_pass(name: &str, func: &mut MachFunction, registers: RegisterSet) -> Result<(), CompileError> {
    let conventions = Conventions::of(registers, None);
    match name {
        "copyprop" => copyprop::run(func, conventions),
        "wrap" => wrap::run(func, rename::free(registers, []), conventions),
        "masks" => masks::run(func),
        "jumps" => jumps::run(func, conventions),
        "carried" => carried::run(func, conventions),
        "rename" => rename::run(func, rename::free(registers, []), conventions),
        "sched" => sched::run(func, true),
        "hazard" => sched::hazard::run(func),
        "relax" => relax::run(func, true)?,
        _ => return Err(CompileError::internal("finish", name, "the name of a pass")),
    }
    Ok(())
}
