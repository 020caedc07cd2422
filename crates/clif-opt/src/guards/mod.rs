//! Checks that leave loops: bounds and alignment of accesses, as compilers of safe languages and of WebAssembly make them.
//!
//! A guard is a trap on a compare of unsigned numbers, or a branch to cold code on such a compare or on low bits. What it tests is mostly a sum of
//! what is known before a nest of loops and of a step times the rounds of each. Then the nest is there twice: where a few compares before it say that no
//! guard can fail, without guards; and, cold, as it was. So nothing traps earlier or later than before, and it does not matter if a limit is
//! larger than it could be. Outer nests come first, as one test before them does for all of their rounds.
//!
//! What has to hold afterwards, and is checked, stands in [`super::check`].
//!
//! | file | what it knows |
//! |---|---|
//! | `form` | a number in a nest as a sum |
//! | `rounds` | how often loops go round at most, before they do |
//! | `plan` | which guards go, and what has to hold for that |
//! | `emit` | the compares before the nest |
//! | `split` | the nest twice, and what comes out of it |

mod emit;
mod form;
mod plan;
mod rounds;
mod split;
#[cfg(test)]
mod tests;

use super::check;
use super::edit::Edge;
use super::loops::{self, NaturalLoop};
use crate::Error;
use crate::Target;
use cranelift_codegen::Context;
use cranelift_codegen::ir::{Block, Function, Opcode};
use form::Nest;
use plan::Plan;
use rustc_hash::FxHashSet;
use split::Uses;

/// What is in functions with guards.
pub const OPCODES: &[Opcode] = &[Opcode::Trapnz, Opcode::Trapz];

/// Instructions of CLIF in the largest nest that is worth a copy.
const SIZE: usize = 400;

/// Instructions that all copies in a function may add, besides a part of what there is.
const GROWTH: usize = 1600;

/// How often everything is looked at: an inner nest may be split after the one around it.
const LEVELS: u32 = 8;

/// Whether there may be guards.
pub fn is_worth(func: &Function, has_traps: bool) -> bool {
    has_traps || func.layout.blocks().any(|block| func.layout.is_cold(block))
}

/// Splits the nests that are worth it. The loops of the function must have been found; they are afterwards. Gives whether anything changed.
///
/// # Errors
///
/// As [`clean::run`](crate::clean::run), and [`Error::Internal`].
pub fn run(ctx: &mut Context, target: &dyn Target) -> Result<bool, Error> {
    let mut left = GROWTH + ctx.func.dfg.num_insts() / 4;
    let mut seen: FxHashSet<Block> = FxHashSet::default();
    let mut changed = false;
    for _ in 0..LEVELS {
        let loops = loops::find(ctx);
        let split = sweep(ctx, target, &loops, &mut seen, &mut left)?;
        if !split {
            break;
        }
        changed = true;
        crate::clean::run(ctx, target)?;
        ctx.compute_loop_analysis();
    }
    Ok(changed)
}

/// Splits nests that have nothing to do with one another, outer ones first. Gives whether there was any.
fn sweep(
    ctx: &mut Context,
    target: &dyn Target,
    loops: &[NaturalLoop],
    seen: &mut FxHashSet<Block>,
    left: &mut usize,
) -> Result<bool, Error> {
    let inductions = form::inductions(&ctx.func, loops);
    let exits = rounds::exits(ctx, loops);
    let mut uses = None;
    // What is known of loops that share blocks with one that was split, or follow it directly, is out of date.
    let mut touched: FxHashSet<Block> = FxHashSet::default();
    for (top, lp) in loops.iter().enumerate() {
        let func = &ctx.func;
        let comes_from = |entry: &Edge| func.layout.inst_block(entry.inst);
        let mut around = lp
            .blocks
            .iter()
            .copied()
            .chain(lp.entries.iter().filter_map(comes_from));
        if around.any(|block| touched.contains(&block)) || !seen.insert(lp.header) || func.layout.is_cold(lp.header) {
            continue;
        }
        let size: usize = lp
            .blocks
            .iter()
            .map(|&block| func.layout.block_insts(block).count())
            .sum();
        if size > SIZE.min(*left) || !split::can_split(func, lp) {
            continue;
        }
        let written = form::written(func, lp);
        let nest = Nest {
            func,
            cfg: &ctx.cfg,
            loops,
            inductions: &inductions,
            top,
            written: written.as_ref(),
        };
        let plan = Plan::of(&nest, &exits);
        if plan.guards.is_empty() {
            continue;
        }
        *left -= size;
        let uses = uses.get_or_insert_with(|| Uses::of(&ctx.func));
        let before = target.checks_loops().then(|| ctx.func.clone());
        touched.extend(split::run(ctx, lp, &plan, uses)?);
        if let Some(before) = before {
            check::versioned(&before, &ctx.func, lp)?;
        }
        touched.extend(&lp.blocks);
    }
    Ok(!touched.is_empty())
}
