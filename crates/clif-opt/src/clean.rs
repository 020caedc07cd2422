//! Removes unreachable code, constant block parameters and aliases, and merges blocks.

use crate::{Error, Target, merge};
use cranelift_codegen::Context;
use cranelift_codegen::entity::{EntityRef, packed_option::ReservedValue};
use cranelift_codegen::ir::{Function, Value};
use cranelift_codegen::settings::OptLevel;

/// Cleans up a function. The control-flow graph and the dominator tree are valid afterwards. With
/// `opt_level=none`, block parameters and blocks remain.
///
/// # Errors
///
/// [`Error::Cranelift`] if one of Cranelift's passes fails.
pub fn run(ctx: &mut Context, target: &dyn Target) -> Result<(), Error> {
    let flags = target.flags();
    let failed = |error: cranelift_codegen::CodegenError| Error::Cranelift(error.to_string());
    ctx.compute_cfg();
    ctx.compute_domtree();
    ctx.eliminate_unreachable_code(flags).map_err(failed)?;
    if flags.opt_level() != OptLevel::None {
        ctx.remove_constant_phis(flags).map_err(failed)?;
        if merge::run(&mut ctx.func) {
            ctx.compute_cfg();
            ctx.compute_domtree();
        }
    }
    resolve_aliases(&mut ctx.func);
    Ok(())
}

/// Replaces uses of aliases by uses of the aliased values.
pub fn resolve_aliases(func: &mut Function) {
    let dfg = &func.dfg;
    // Unused aliases remain as values with a reserved target.
    let stands_for = |value| dfg.value_alias_dest_for_serialization(Value::new(value));
    if (0..dfg.num_values()).any(|value| stands_for(value).is_some_and(|to| !to.is_reserved_value())) {
        func.dfg.resolve_all_aliases();
    }
}
