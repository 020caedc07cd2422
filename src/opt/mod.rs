//! What happens to a function as CLIF: Cranelift's passes that need no machine, and ours, in order.
//!
//! Cranelift's simplification sees each loop once. Unrolling comes after it, and what it copied is simplified in one walk, a fraction
//! of the time ([`simplify`]); the passes after that count what is left. Each is a file; what they share is the shape of loops
//! ([`loops`]) and how branches are changed and blocks copied ([`edit`]).

mod egraph;
mod foreign;
mod target;
mod vectorize;
mod verify;

pub use verify::{verify, verify_function};

use crate::error::CompileError;
use crate::isa::Isa;
use crate::passes::{Pass, Recorder, Stage};
use crate::timing::Step;
use clif_opt::clean::{self, resolve_aliases};
use clif_opt::loops::{self, NaturalLoop};
use clif_opt::{
    addresses, bits, compares, exits, guards, increments, licm, params, phis, pointers, selects, simplify, unroll,
};
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{Function, Opcode};
use cranelift_codegen::settings::OptLevel;

/// Brings the function into the form that is lowered: without unreachable code and constant block parameters, with what the
/// passes of the target make of it, with its loops known if anything is optimized, and with aliases that nobody uses any more.
///
/// # Errors
///
/// [`CompileError::Optimizer`] if a pass fails, or its result is verified (setting `verify_passes`) and not valid.
pub fn run(ctx: &mut Context, isa: &Isa, ctrl: &mut ControlPlane, stages: &mut Recorder) -> Result<(), CompileError> {
    let optimize = isa.flags().opt_level() != OptLevel::None;
    if isa.settings().verify_passes {
        check(ctx, isa)?;
    }
    clean::run(ctx, isa)?;
    if optimize {
        ctx.compute_loop_analysis();
        // What only loops hand on.
        if ctx.loop_analysis.loops().len() > 1 && phis::run(&mut ctx.func) {
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
    if isa.runs(Pass::Guards)
        && guards::is_worth(&ctx.func, opcodes.has_any(guards::OPCODES))
        && has_loops(ctx)
        && guards::run(ctx, isa)?
    {
        check(ctx, isa)?;
    }
    stages.keep(Stage::Guards, || ctx.func.display().to_string());
    let mut vectorized = vectorize::Done::default();
    if isa.runs(Pass::Vectorize) && has_loops(ctx) {
        vectorized = vectorize::run(ctx, isa)?;
        if vectorized.changed() {
            check(ctx, isa)?;
        }
        stages.loops = vectorized.remarks;
    }
    stages.keep(Stage::Vectorize, || ctx.func.display().to_string());
    if isa.runs(Pass::Addresses) && addresses::run(ctx, isa) {
        check(ctx, isa)?;
    }
    stages.keep(Stage::Addresses, || ctx.func.display().to_string());
    let simplified = isa.runs(Pass::Egraph) && egraph::is_worth(ctx);
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
        // Cranelift's pass leaves control flow and dominators as they are now.
        ctx.compute_loop_analysis();
    } else if optimize {
        // The passes may leave blocks that nothing reaches any more.
        analyse(ctx);
    }
    let mut loops = if LOOP_PASSES.iter().any(|&pass| isa.runs(pass)) && has_loops(ctx) {
        loops::find(ctx)
    } else {
        Vec::new()
    };
    stages.done(Step::Loops);
    if isa.runs(Pass::Unroll) && unroll::run(ctx, isa, &mut loops, vectorized.rests)? {
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

/// The passes after Cranelift's simplification that want to know the loops.
const LOOP_PASSES: [Pass; 5] = [Pass::Unroll, Pass::Licm, Pass::Pointers, Pass::Increments, Pass::Exits];

/// The passes over loops that count what is left after simplification.
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
    if runs(Pass::Pointers) && pointers::run(ctx, isa, loops)? {
        params::run(&mut ctx.func);
        changed = true;
    }
    stages.keep(Stage::Pointers, || ctx.func.display().to_string());
    if runs(Pass::Increments) {
        changed |= increments::run(&mut ctx.func, loops);
    }
    stages.keep(Stage::Increments, || ctx.func.display().to_string());
    if runs(Pass::Exits) && exits::run(ctx, loops) {
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

/// Which opcodes a function has: a pass that looks for one of a few need not walk over the others.
#[derive(Clone, Copy, Debug, Default)]
struct OpcodeSet([u64; 4]);

impl OpcodeSet {
    fn of(func: &Function) -> Self {
        let mut set = [0; 4];
        for block in func.layout.blocks() {
            for inst in func.layout.block_insts(block) {
                let opcode = func.dfg.insts[inst].opcode() as u8;
                set[usize::from(opcode >> 6)] |= 1 << (opcode & 63);
            }
        }
        Self(set)
    }

    /// Whether one of these is among them.
    fn has_any(self, opcodes: &[Opcode]) -> bool {
        let has = |&opcode: &Opcode| self.0[usize::from(opcode as u8 >> 6)] >> (opcode as u8 & 63) & 1 != 0;
        opcodes.iter().any(has)
    }
}

/// Finds the loops.
fn analyse(ctx: &mut Context) {
    ctx.compute_cfg();
    ctx.compute_domtree();
    ctx.compute_loop_analysis();
}

/// Whether there are loops to work on. What passes over loops know of branches does not hold for calls with handlers.
fn has_loops(ctx: &Context) -> bool {
    ctx.loop_analysis.loops().len() > 0 && ctx.func.dfg.exception_tables.is_empty()
}

/// Verifies what a pass made: with the setting `verify_passes`, and in builds with debug assertions unless the flag `enable_verifier` is off.
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

    /// The setting alone decides if the flag of the verifier is off.
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
