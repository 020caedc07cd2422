//! Loop versioning: moves checks of bounds and alignment out of loop nests.
//!
//! Compilers of safe languages and of WebAssembly emit such checks. A guard is a trap on an
//! unsigned compare, or a branch to cold code on an unsigned compare or on low bits. It usually
//! tests a sum of values that are known before the loop nest, and of induction variables. The pass
//! duplicates the nest: a version without guards, and the cold original. A few compares before the
//! nest select the version without guards if no guard can fail. So traps happen neither earlier nor
//! later than before, and a limit may be larger than necessary. Outer nests are versioned first,
//! because one test before them covers all iterations of the inner loops.
//!
//! [`super::check`] states and checks the correctness conditions.
//!
//! | file | content |
//! |---|---|
//! | `form` | numbers in a nest as linear forms |
//! | `limits` | upper limits of trip counts and other variables, before the nest |
//! | `plan` | removable guards and their preconditions |
//! | `emit` | the compares before the nest |
//! | `duplicate` | duplication of the nest, and joins of its results |

mod duplicate;
mod emit;
mod form;
mod limits;
mod plan;
#[cfg(test)]
mod tests;

use super::check;
use super::edit::Edge;
use super::loops::{self, NaturalLoop};
use crate::Error;
use crate::Target;
use cranelift_codegen::Context;
use cranelift_codegen::ir::{Block, Function, Opcode};
use duplicate::CrossBlockUses;
use form::LoopNest;
use plan::Plan;
use rustc_hash::FxHashSet;

/// The opcodes of guards that trap.
pub const OPCODES: &[Opcode] = &[Opcode::Trapnz, Opcode::Trapz];

/// The maximum size of a nest that is duplicated, in CLIF instructions.
const MAX_NEST_SIZE: usize = 400;

/// The maximum growth of a function in CLIF instructions, in addition to a fraction of its size.
const MAX_GROWTH: usize = 1600;

/// The maximum number of sweeps: an inner nest may be versioned after the nest around it.
const MAX_LEVELS: u32 = 8;

/// Returns whether the function may contain guards.
pub fn may_have_guards(func: &Function, has_traps: bool) -> bool {
    has_traps || func.layout.blocks().any(|block| func.layout.is_cold(block))
}

/// Versions the profitable nests. Requires the loop analysis, and keeps it valid. Returns whether
/// anything changed.
///
/// # Errors
///
/// Those of [`clean::run`](crate::clean::run), and [`Error::Internal`].
pub fn run(ctx: &mut Context, target: &dyn Target) -> Result<bool, Error> {
    let mut left = MAX_GROWTH + ctx.func.dfg.num_insts() / 4;
    let mut seen: FxHashSet<Block> = FxHashSet::default();
    let mut changed = false;
    for _ in 0..MAX_LEVELS {
        let loops = loops::find(ctx);
        let duplicate = version_disjoint_nests(ctx, target, &loops, &mut seen, &mut left)?;
        if !duplicate {
            break;
        }
        changed = true;
        crate::clean::run(ctx, target)?;
        ctx.compute_loop_analysis();
    }
    Ok(changed)
}

/// Versions nests that are independent of one another, outer ones first. Returns whether there was
/// any.
fn version_disjoint_nests(
    ctx: &mut Context,
    target: &dyn Target,
    loops: &[NaturalLoop],
    seen: &mut FxHashSet<Block>,
    left: &mut usize,
) -> Result<bool, Error> {
    let induction_variables = form::induction_variables(&ctx.func, loops);
    let exits = limits::exits(ctx, loops);
    let mut uses = None;
    // The loop information is outdated for loops that share blocks with a versioned nest or
    // directly follow one.
    let mut touched: FxHashSet<Block> = FxHashSet::default();
    for (outermost, lp) in loops.iter().enumerate() {
        let func = &ctx.func;
        let source_block = |entry: &Edge| func.layout.inst_block(entry.inst);
        let mut around = lp
            .blocks
            .iter()
            .copied()
            .chain(lp.entries.iter().filter_map(source_block));
        if around.any(|block| touched.contains(&block)) || !seen.insert(lp.header) || func.layout.is_cold(lp.header) {
            continue;
        }
        let size: usize = lp
            .blocks
            .iter()
            .map(|&block| func.layout.block_insts(block).count())
            .sum();
        if size > MAX_NEST_SIZE.min(*left) || !duplicate::can_duplicate(func, lp) {
            continue;
        }
        let written = form::written(func, lp);
        let nest = LoopNest {
            func,
            cfg: &ctx.cfg,
            loops,
            induction_variables: &induction_variables,
            outermost,
            written: written.as_ref(),
        };
        let plan = Plan::of(&nest, &exits);
        if plan.guards.is_empty() {
            continue;
        }
        *left -= size;
        let uses = uses.get_or_insert_with(|| CrossBlockUses::of(&ctx.func));
        let before = target.checks_loops().then(|| ctx.func.clone());
        touched.extend(duplicate::run(ctx, lp, &plan, uses)?);
        if let Some(before) = before {
            check::versioned(&before, &ctx.func, lp)?;
        }
        touched.extend(&lp.blocks);
    }
    Ok(!touched.is_empty())
}
