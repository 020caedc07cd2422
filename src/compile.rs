//! The compilation pipeline: all steps for a function, in order.

use crate::abi::registers;
use crate::code::CompiledCode;
use crate::compiler::Buffers;
use crate::encode;
use crate::error::CompileError;
use crate::explaining::Explaining;
use crate::isa::Isa;
use crate::lower::{self, order::BlockOrder};
use crate::passes::{Pass, Recorder, Stage, StageRequest};
use crate::post_ra::effects::Conventions;
use crate::post_ra::{copyprop, expand, loop_copies, masks, relax, rename, rotation, sched, wrap};
use crate::provenance::RuleChains;
use crate::timing::Step;
use crate::vcode::{dce, presched};
use crate::{frame, intrinsics, legalize, opt, regalloc, validate};
use clif_opt::handlers::Handlers;
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use npu_mc::errata::Erratum;

/// Compiles the function in the context.
///
/// # Errors
///
/// See [`CompileError`].
pub fn run(
    isa: &Isa,
    ctx: &mut Context,
    ctrl: &mut ControlPlane,
    request: StageRequest,
    explaining: &mut Explaining,
    buffers: &mut Buffers,
) -> Result<CompiledCode, CompileError> {
    let mut stages = Recorder::new(request);

    // CLIF.
    opt::verify(ctx, isa.flags())?;
    stages.done(Step::Verify);
    let types = legalize::TypeSet::of(&ctx.func);
    // The functions that the program itself declares.
    let callees = ctx.func.dfg.ext_funcs.len();
    let refused = legalize::vectors(&mut ctx.func, isa, types)?;
    let (sig, callees, opcodes) = validate::run(&ctx.func, isa, types, callees, refused)?;
    stages.done(Step::Validate);
    let handlers = Handlers::find(&ctx.func);
    legalize::run(&mut ctx.func, isa, &opcodes)?;
    let expanded = intrinsics::expand(&mut ctx.func, isa);
    handlers.restore(&mut ctx.func);
    stages.keep(Stage::Legalize, || ctx.func.display().to_string());
    opt::run(ctx, isa, ctrl, &mut stages)?;
    intrinsics::finish(&mut ctx.func, &expanded);
    stages.keep(Stage::Opt, || ctx.func.display().to_string());

    // VCode on virtual registers.
    let conventions = Conventions::of(sig.registers, registers::pinned(isa.flags()));
    let env = registers::env(sig.registers, registers::pinned(isa.flags()));
    let register_set = sig.registers;
    let order = BlockOrder::new(ctx)?;
    stages.done(Step::Order);
    let mut vcode = lower::lower(ctx, isa, sig, callees, &order, RuleChains::new(explaining.is_wanted()))?;
    stages.keep(Stage::Vcode, || vcode.to_string());
    if isa.runs(Pass::Dce) {
        dce::run(&mut vcode);
    }
    stages.keep(Stage::Dce, || vcode.to_string());
    if isa.runs(Pass::Presched) {
        presched::run(&mut vcode);
    }
    stages.keep(Stage::Presched, || vcode.to_string());
    vcode.finish()?;
    explaining.vcode(&vcode);
    stages.done(Step::Operands);

    // Register allocation and the frame.
    let output = regalloc::run(&vcode, env, isa, &mut buffers.allocator)?;
    stages.keep(Stage::Regalloc, || regalloc::display(&vcode, output));
    // Runtime routines do not change `fp`. The routine that throws exceptions must not have a
    // frame.
    let frame_pointer = vcode.uses_frame_pointer || isa.flags().preserve_frame_pointers() && !isa.is_for_runtime();
    let frame = frame::layout(&ctx.func, &vcode, output, register_set, frame_pointer)?;
    let has_handlers = vcode.has_handlers;
    stages.done(Step::Frame);

    // Machine instructions.
    let rule_chains = std::mem::take(&mut vcode.rule_chains);
    let mut func = expand::expand(vcode, output, &frame, isa)?;
    stages.keep(Stage::Expand, || func.to_string());
    if isa.runs(Pass::Copyprop) {
        copyprop::run(&mut func, conventions);
    }
    stages.keep(Stage::Copyprop, || func.to_string());
    // The machine code has no control flow edges to handlers. Handlers read no registers from
    // before the throw, so passes on single basic blocks are correct. Passes that follow the
    // control flow are not.
    let runs = |pass: Pass| isa.runs(pass) && !has_handlers;
    // If the function removes its stack arguments, it must do so where it removes the frame.
    if runs(Pass::Wrap) && frame.layout.popped == 0 {
        wrap::run(&mut func, rename::free(register_set, []), conventions);
    }
    stages.keep(Stage::Wrap, || func.to_string());
    if isa.runs(Pass::Masks) {
        masks::run(&mut func);
    }
    stages.keep(Stage::Masks, || func.to_string());
    if runs(Pass::Rotation) {
        rotation::run(&mut func, conventions);
    }
    stages.keep(Stage::Rotation, || func.to_string());
    if runs(Pass::LoopCopies) {
        loop_copies::run(&mut func, conventions);
    }
    stages.keep(Stage::LoopCopies, || func.to_string());
    if isa.runs(Pass::Rename) {
        let saved = frame.layout.saved.iter().map(|&(reg, _)| reg);
        rename::run(&mut func, rename::free(register_set, saved), conventions);
    }
    stages.keep(Stage::Rename, || func.to_string());
    let loses_results = isa.has_erratum(Erratum::LostResultBeforeTakenBranch);
    if isa.runs(Pass::Sched) {
        sched::run(&mut func, loses_results);
    }
    if loses_results {
        sched::hazard::run(&mut func);
    }
    stages.keep(Stage::Sched, || func.to_string());
    relax::run(&mut func, isa.has_erratum(Erratum::IndirectCallLink))?;
    stages.keep(Stage::Relax, || func.to_string());

    explaining.code(&func, &rule_chains);
    let mut code = encode::encode(&func, &frame, &ctx.func)?;
    stages.done(Step::Encode);
    code.stages = stages.texts;
    code.loops = stages.loops;
    Ok(code)
}
