//! Vectorisation: sixteen rounds of an innermost loop become one of vectors.
//!
//! A loop in front of the scalar one does sixteen rounds at a time, as long as there are as many; the scalar one does what is left,
//! or everything, where a check at run time finds that addresses are not aligned or arrays overlap. What is not certain to be
//! right, or not worth it, stays as it is, and [`crate::remarks`] says why.
//!
//! | file | what it knows |
//! |---|---|
//! | `shape` | the way through a round, and how rounds are counted |
//! | `access` | loads and stores: bases, strides, alignment |
//! | `depend` | which of them may meet |
//! | `reduction` | what rounds add up |
//! | `values` | what each value is as a vector |
//! | `cost` | whether it is worth it |
//! | `plan` | all of that about one loop |
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

/// How many loops of a function are vectorised at most: after each, everything is looked at again.
const MOST_LOOPS: usize = 64;

/// What the pass did.
#[derive(Debug, Default)]
pub struct Done {
    /// What is to be said about the loops, in the order in which they were looked at: inner ones of later code first.
    pub remarks: Vec<LoopRemark>,
    /// The scalar loops that do a few rounds at most: no more copies of them are worth it.
    pub rests: FxHashSet<Block>,
}

impl Done {
    /// Whether anything changed.
    pub fn changed(&self) -> bool {
        self.remarks
            .iter()
            .any(|remark| matches!(remark.outcome, LoopOutcome::Vectorised(_)))
    }
}

/// Vectorises what is worth it. The loops of the function must have been found.
///
/// # Errors
///
/// As [`clean::run`].
pub fn run(ctx: &mut Context, isa: &Isa) -> Result<Done, CompileError> {
    let legality = Legality::new(isa.flags(), isa.settings());
    let mut done = Done::default();
    let mut seen: FxHashSet<Block> = FxHashSet::default();
    let mut vectorised = 0;
    // What is known of the other loops is out of date once one is changed.
    loop {
        let loops = loops::find(ctx);
        let ranges = loops::ranges(ctx, &loops);
        let mut changed = false;
        // Copies of cold loops are not worth their size.
        let warm = |lp: &&NaturalLoop| lp.innermost && !ctx.func.layout.is_cold(lp.header);
        for lp in loops.iter().rev().filter(warm).collect::<Vec<_>>() {
            if !seen.insert(lp.header) {
                continue;
            }
            let plan = if vectorised < MOST_LOOPS {
                Plan::of(ctx, legality, &loops, &ranges, lp)
            } else {
                Err(Reason::ManyLoops(MOST_LOOPS))
            };
            let outcome = match plan {
                Ok(plan) => {
                    vectorised += 1;
                    let made = emit::run(&mut ctx.func, &plan)?;
                    if isa.checks_loops() {
                        check::check(&ctx.func, &loops, lp, &made)?;
                    }
                    seen.extend(made.body);
                    changed = true;
                    let summary = plan.summary;
                    if !summary.alignment_check && summary.overlap_checks == 0 {
                        done.rests.insert(lp.header);
                    }
                    LoopOutcome::Vectorised(summary)
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
