//! Passes after register allocation: from allocated VCode to the final machine instructions.
//!
//! [`expand`](mod@expand) turns every VCode instruction into machine instructions in basic blocks
//! ([`func`]). These passes follow, in this order; all but the last can be disabled:
//!
//! - [`copyprop`] removes moves.
//! - [`wrap`](mod@wrap) shrink-wraps the frame.
//! - [`masks`] merges regions under one lane mask.
//! - [`rotation`] rotates loops and duplicates tails, so that fewer branches are executed.
//! - [`loop_copies`] removes loop-carried copies.
//! - [`rename`] gives independent values different registers.
//! - [`sched`] hides latencies and avoids instruction orders that meet an erratum.
//! - [`relax`] replaces branches that do not reach their targets.
//!
//! The passes share the effects of instructions ([`effects`]), the control flow ([`cfg`](mod@cfg))
//! and the editor ([`edit`]). [`value_locations`] follows labelled values through all passes.
//! [`text`] prints and parses functions.

pub mod cfg;
mod control_flow;
pub mod copy_loop;
pub mod copyprop;
pub mod edit;
pub mod effects;
pub mod expand;
pub mod func;
pub mod loop_copies;
pub mod masks;
pub mod prologue;
pub mod relax;
pub mod rename;
pub mod rotation;
pub mod sched;
pub mod text;
pub mod value_locations;
pub mod wrap;

use crate::abi::registers::RegisterSet;
use crate::error::CompileError;
use effects::Conventions;
use func::MachFunction;

/// Runs a single pass by its name, for tests: `copyprop`, `wrap`, `masks`, `rotation`,
/// `loop_copies`, `rename`, `sched`, `hazard` or `relax`. `registers` are the registers that the
/// function may change.
///
/// # Errors
///
/// The errors of the pass, or [`CompileError::Internal`] for an unknown name.
pub fn run_pass(name: &str, func: &mut MachFunction, registers: RegisterSet) -> Result<(), CompileError> {
    let conventions = Conventions::of(registers, None);
    match name {
        "copyprop" => copyprop::run(func, conventions),
        "wrap" => wrap::run(func, rename::free(registers, []), conventions),
        "masks" => masks::run(func),
        "rotation" => rotation::run(func, conventions),
        "loop_copies" => loop_copies::run(func, conventions),
        "rename" => rename::run(func, rename::free(registers, []), conventions),
        "sched" => sched::run(func, true),
        "hazard" => sched::hazard::run(func),
        "relax" => relax::run(func, true)?,
        _ => return Err(CompileError::internal("post_ra", name, "the name of a pass")),
    }
    Ok(())
}
