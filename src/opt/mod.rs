//! The pipeline of passes over CLIF: Cranelift's machine-independent passes and ours.
//!
//! Cranelift's simplification visits each loop once. Unrolling follows it, and [`simplify`]
//! simplifies the copies in one walk, at a fraction of the cost; the later passes estimate costs on
//! the result. Passes share the shape of loops ([`loops`]), and edits of branches and copies of
//! blocks ([`clif_opt::edit`]).

mod egraph;
mod foreign;
mod target;
mod vectorize;
mod verify;

pub use verify::{verify, verify_function};

use crate::error::CompileError;
use crate::isa::Isa;
use crate::legalize::OpcodeSet;
use crate::passes::{Pass, Recorder, Stage};
use crate::timing::Step;
use clif_opt::clean::{self, resolve_aliases};
use clif_opt::loops::{self, NaturalLoop};
use clif_opt::{
    bits, compares, dead_params, iv_increments, licm, loop_exits, reassociation, redundant_params, selects, simplify,
    strength_reduction, unroll, versioning,
};
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::settings::OptLevel;

/// Optimizes the function and brings it into the form that lowering expects: without unreachable
/// code, constant block parameters and aliases, and with a loop analysis if optimization is
/// enabled.
///
/// # Errors
///
/// [`CompileError::Optimizer`] if a pass fails, or if the setting `verify_passes` is on and the
/// result of a pass is invalid.
pub fn run(ctx: &mut Context, isa: &Isa, ctrl: &mut ControlPlane, stages: &mut Recorder) -> Result<(), CompileError> {
    let optimize = isa.flags().opt_level() != OptLevel::None;
    if isa.settings().verify_passes {
        check(ctx, isa)?;
    }
    clean::run(ctx, isa)?;
    if optimize {
        ctx.compute_loop_analysis();
        // Parameters that only pass through loops.
        if ctx.loop_analysis.loops().len() > 1 && redundant_params::run(&mut ctx.func) {
            resolve_aliases(&mut ctx.func);
        }
    }
    stages.done(Step::Clean);
    let opcodes = if optimize {
        OpcodeSet::of(&ctx.func)
    } else {
        OpcodeSet::default()
    };
    if isa.runs(Pass::Compares) && opcodes.has_any(compares::OPCODES) && compares::run(&mut ctx.func) {
        check(ctx, isa)?;
    }
    stages.keep(Stage::Compares, || ctx.func.display().to_string());
    if isa.runs(Pass::Bits) && opcodes.has_any(bits::OPCODES) && bits::run(&mut ctx.func, isa.settings().has_fpu) {
        resolve_aliases(&mut ctx.func);
        check(ctx, isa)?;
    }
    stages.keep(Stage::Bits, || ctx.func.display().to_string());
    if isa.runs(Pass::Versioning)
        && versioning::may_have_guards(&ctx.func, opcodes.has_any(versioning::OPCODES))
        && has_loops(ctx)
        && versioning::run(ctx, isa)?
    {
        check(ctx, isa)?;
    }
    stages.keep(Stage::Versioning, || ctx.func.display().to_string());
    let mut vectorized = vectorize::Done::default();
    if isa.runs(Pass::Vectorize) && has_loops(ctx) {
        vectorized = vectorize::run(ctx, isa)?;
        if vectorized.changed() {
            check(ctx, isa)?;
        }
        stages.loops = vectorized.remarks;
    }
    stages.keep(Stage::Vectorize, || ctx.func.display().to_string());
    if isa.runs(Pass::Reassociation) && reassociation::run(ctx, isa) {
        check(ctx, isa)?;
    }
    stages.keep(Stage::Reassociation, || ctx.func.display().to_string());
    let simplified = isa.runs(Pass::Egraph) && egraph::is_small_enough(ctx);
    if simplified {
        egraph::run(ctx, isa.quiet_flags(), ctrl)?;
        check(ctx, isa)?;
    }
    stages.done(Step::Egraph);
    if isa.runs(Pass::Selects) && selects::run(&mut ctx.func, isa) {
        resolve_aliases(&mut ctx.func);
        check(ctx, isa)?;
    }
    stages.keep(Stage::Selects, || ctx.func.display().to_string());
    if simplified {
        // Cranelift's pass keeps the control-flow graph and the dominator tree valid.
        ctx.compute_loop_analysis();
    } else if optimize {
        // Passes may have made blocks unreachable.
        analyse(ctx);
    }
    let mut loops = if LOOP_PASSES.iter().any(|&pass| isa.runs(pass)) && has_loops(ctx) {
        loops::find(ctx)
    } else {
        Vec::new()
    };
    stages.done(Step::Loops);
    if isa.runs(Pass::Unroll) && unroll::run(ctx, isa, &mut loops, vectorized.remainders)? {
        check(ctx, isa)?;
    }
    stages.keep(Stage::Unroll, || ctx.func.display().to_string());
    if isa.runs(Pass::Simplify) {
        if simplify::run(ctx, isa) {
            clean::run(ctx, isa)?;
            ctx.compute_loop_analysis();
            loops = loops::find(ctx);
        }
        check(ctx, isa)?;
    }
    stages.keep(Stage::Simplify, || ctx.func.display().to_string());
    finish_loops(ctx, isa, &loops, stages)
}

/// The passes after Cranelift's simplification that need the loops.
const LOOP_PASSES: [Pass; 5] = [
    Pass::Unroll,
    Pass::Licm,
    Pass::StrengthReduction,
    Pass::IvIncrements,
    Pass::LoopExits,
];

/// Runs the loop passes that follow simplification.
fn finish_loops(
    ctx: &mut Context,
    isa: &Isa,
    loops: &[NaturalLoop],
    stages: &mut Recorder,
) -> Result<(), CompileError> {
    let runs = |pass: Pass| !loops.is_empty() && isa.runs(pass);
    let mut changed = false;
    if runs(Pass::Licm) {
        changed |= licm::run(ctx, isa, loops);
    }
    stages.keep(Stage::Licm, || ctx.func.display().to_string());
    if runs(Pass::StrengthReduction) && strength_reduction::run(ctx, isa, loops)? {
        dead_params::run(&mut ctx.func);
        changed = true;
    }
    stages.keep(Stage::StrengthReduction, || ctx.func.display().to_string());
    if runs(Pass::IvIncrements) {
        changed |= iv_increments::run(&mut ctx.func, loops);
    }
    stages.keep(Stage::IvIncrements, || ctx.func.display().to_string());
    if runs(Pass::LoopExits) && loop_exits::run(ctx, loops) {
        analyse(ctx);
        changed = true;
    }
    if isa.flags().opt_level() != OptLevel::None {
        resolve_aliases(&mut ctx.func);
    }
    if changed {
        check(ctx, isa)?;
    }
    Ok(())
}

/// Recomputes the control-flow graph, the dominator tree and the loop analysis.
fn analyse(ctx: &mut Context) {
    ctx.compute_cfg();
    ctx.compute_domtree();
    ctx.compute_loop_analysis();
}

/// Returns whether the function has loops that passes can process. Functions with exception tables
/// are excluded: loop passes do not support calls with handlers.
fn has_loops(ctx: &Context) -> bool {
    ctx.loop_analysis.loops().len() > 0 && ctx.func.dfg.exception_tables.is_empty()
}

/// Verifies the result of a pass, if the setting `verify_passes` is on, or in builds with debug
/// assertions if the flag `enable_verifier` is on.
fn check(ctx: &Context, isa: &Isa) -> Result<(), CompileError> {
    let wanted = isa.settings().verify_passes || cfg!(debug_assertions) && isa.flags().enable_verifier();
    if !wanted {
        return Ok(());
    }
    let invalid = |errors| CompileError::Optimizer(format!("a pass left invalid CLIF:\n{errors}"));
    verify_function(&ctx.func, isa.flags()).map_err(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_codegen::settings::{self, Configurable, Flags};

    /// With the flag `enable_verifier` off, only the setting decides.
    #[test]
    fn a_setting_verifies_what_passes_make() {
        let text = "function %f(i32) -> i32 { block0(v0: i32): return v0 }";
        let mut func = cranelift_reader::parse_functions(text).unwrap().remove(0);
        func.signature.returns.clear();
        let ctx = Context::for_function(func);
        let result = |verifier: &str, passes: &str| {
            let mut flags = settings::builder();
            flags.set("enable_verifier", verifier).unwrap();
            let mut builder = crate::isa::lookup_by_name("naplespu").unwrap();
            builder.set("verify_passes", passes).unwrap();
            check(&ctx, &builder.finish(Flags::new(flags)).unwrap())
        };
        assert!(result("false", "false").is_ok());
        assert_eq!(result("true", "false").is_err(), cfg!(debug_assertions));
        for verifier in ["true", "false"] {
            let error = result(verifier, "true").unwrap_err();
            assert!(matches!(error, CompileError::Optimizer(_)), "{error}");
        }
    }
}
