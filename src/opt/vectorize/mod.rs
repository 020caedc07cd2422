//! Loop vectorization: sixteen iterations of an innermost loop become one iteration on vectors.
//!
//! The vector loop precedes the scalar loop and executes sixteen iterations at a time while at
//! least sixteen remain. The scalar loop executes the remainder, or everything if a test at run
//! time finds too few iterations to be profitable, unaligned addresses or overlapping arrays. A loop remains scalar if vectorization may
//! be wrong or is not profitable; [`crate::remarks`] reports the reason.
//!
//! | file | content |
//! |---|---|
//! | `shape` | control flow of an iteration, and the exit test |
//! | `access` | loads and stores: bases, strides, alignment |
//! | `depend` | dependences between accesses |
//! | `reduction` | reductions |
//! | `values` | each value as a vector |
//! | `cost` | profitability |
//! | `plan` | the decisions about one loop |
//! | `emit`, `lanes` | the vector loop |

mod access;
mod check;
mod cost;
mod depend;
mod emit;
mod lanes;
mod plan;
mod reduction;
mod shape;
mod values;

#[cfg(test)]
mod tests;

use crate::error::CompileError;
use crate::isa::Isa;
use crate::legalize::Legality;
use crate::remarks::{LoopOutcome, LoopRemark, Reason};
use clif_opt::Target;
use clif_opt::clean;
use clif_opt::loops::{self, NaturalLoop};
use cranelift_codegen::Context;
use cranelift_codegen::ir::Block;
use plan::Plan;
use rustc_hash::FxHashSet;

/// The maximum number of vectorized loops in a function; limits compile time, since the analyses
/// are repeated after each.
const MAX_LOOPS: usize = 64;

/// The result of the pass.
#[derive(Debug, Default)]
pub struct Done {
    /// Remarks about the loops in the order of their analysis: inner loops of later code first.
    pub remarks: Vec<LoopRemark>,
    /// Scalar loops that execute only a few remaining iterations, so that unrolling is not
    /// profitable.
    pub remainders: FxHashSet<Block>,
}

impl Done {
    /// Returns whether the function changed.
    pub fn changed(&self) -> bool {
        self.remarks
            .iter()
            .any(|remark| matches!(remark.outcome, LoopOutcome::Vectorized(_)))
    }
}

/// Vectorizes the profitable loops. Requires the loop analysis.
///
/// # Errors
///
/// See [`clean::run`].
pub fn run(ctx: &mut Context, isa: &Isa) -> Result<Done, CompileError> {
    let legality = Legality::new(isa.flags(), isa.settings());
    let mut done = Done::default();
    let mut seen: FxHashSet<Block> = FxHashSet::default();
    let mut vectorized = 0;
    // A change of one loop invalidates the information about the others.
    loop {
        let loops = loops::find(ctx);
        let ranges = loops::ranges(ctx, &loops);
        let mut changed = false;
        // Cold loops are not worth their code size.
        let warm = |lp: &&NaturalLoop| lp.innermost && !ctx.func.layout.is_cold(lp.header);
        for lp in loops.iter().rev().filter(warm).collect::<Vec<_>>() {
            if !seen.insert(lp.header) {
                continue;
            }
            let plan = if vectorized < MAX_LOOPS {
                Plan::of(ctx, legality, &loops, &ranges, lp)
            } else {
                Err(Reason::ManyLoops(MAX_LOOPS))
            };
            let outcome = match plan {
                Ok(plan) => {
                    vectorized += 1;
                    let made = emit::run(&mut ctx.func, &plan)?;
                    if isa.checks_loops() {
                        check::check(&ctx.func, &loops, lp, &made)?;
                    }
                    seen.extend(made.body);
                    changed = true;
                    let summary = plan.summary;
                    if !summary.alignment_check
                        && summary.overlap_checks == 0
                        && summary.least_trip_count == summary.lanes
                    {
                        done.remainders.insert(lp.header);
                    }
                    LoopOutcome::Vectorized(summary)
                }
                Err(reason) => LoopOutcome::Scalar(reason),
            };
            let srcloc = ctx.func.layout.first_inst(lp.header).map(|inst| ctx.func.srcloc(inst));
            done.remarks.push(LoopRemark {
                header: lp.header,
                srcloc: srcloc.unwrap_or_default(),
                outcome,
            });
            if changed {
                break;
            }
        }
        if !changed {
            break;
        }
        clean::run(ctx, isa)?;
        ctx.compute_loop_analysis();
    }
    Ok(done)
}
