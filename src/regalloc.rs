//! Register allocation: the machine environment from td/, regalloc2 over the VCode, its checker when asked for.

use crate::error::CompileError;
use crate::inst::MInst;
use crate::inst::operands::OperandVisitor;
use crate::inst::reg::{Reg, from_preg};
use crate::vcode::VCode;
use cranelift_codegen::settings::{Flags, RegallocAlgorithm};
use regalloc2::{
    Algorithm, Allocation, Ctx, MachineEnv, OperandConstraint, OperandKind, OperandPos, Output, RegallocOptions,
};
use std::fmt::Write;

/// Writes the chosen registers into the operands.
struct Assign<'a>(std::slice::Iter<'a, Allocation>);

impl OperandVisitor for Assign<'_> {
    fn operand(&mut self, reg: &mut Reg, _: OperandConstraint, _: OperandKind, _: OperandPos) {
        if reg.as_virtual().is_some()
            && let Some(real) = self.0.next().and_then(|a| a.as_reg()).and_then(from_preg)
        {
            *reg = Reg::Real(real);
        }
    }
}

/// Writes the registers that were chosen, in the order in which the instruction shows its operands.
pub fn assign(inst: &mut MInst, allocations: &[Allocation]) {
    inst.visit_operands(&mut Assign(allocations.iter()));
}

/// The VCode with the registers that were chosen and the moves that were inserted.
pub fn display(vcode: &VCode, output: &Output) -> String {
    use regalloc2::{Edit, Function as _, InstOrEdit};
    let mut text = String::new();
    for index in 0..vcode.num_blocks() {
        let _ = writeln!(text, "block{index}:");
        for step in output.block_insts_and_edits(vcode, regalloc2::Block::new(index)) {
            let _ = match step {
                InstOrEdit::Edit(Edit::Move { from, to }) => writeln!(text, "    move {to}, {from}"),
                InstOrEdit::Inst(inst) => {
                    let mut allocated = vcode.insts[inst.index()].clone();
                    assign(&mut allocated, output.inst_allocs(inst));
                    writeln!(text, "    {allocated}")
                }
            };
        }
    }
    text
}

/// Runs regalloc2 as the flags say, in the memory of this context, which has the result afterwards.
///
/// # Errors
///
/// [`CompileError::Regalloc`] if it fails, or if the checker (flag `regalloc_checker`) finds a wrong assignment.
pub fn run<'a>(
    vcode: &VCode,
    env: &MachineEnv,
    flags: &Flags,
    context: &'a mut Ctx,
) -> Result<&'a Output, CompileError> {
    let options = RegallocOptions {
        verbose_log: flags.regalloc_verbose_logs(),
        validate_ssa: flags.regalloc_checker(),
        algorithm: match flags.regalloc_algorithm() {
            RegallocAlgorithm::Backtracking => Algorithm::Ion,
            RegallocAlgorithm::SinglePass => Algorithm::Fastalloc,
        },
    };
    let output = regalloc2::run_with_ctx(vcode, env, &options, context)
        .map_err(|error| CompileError::Regalloc(error.to_string()))?;
    if flags.regalloc_checker() {
        let mut checker = regalloc2::checker::Checker::new(vcode, env);
        checker.prepare(output);
        checker
            .run()
            .map_err(|errors| CompileError::Regalloc(format!("{errors:?}")))?;
    }
    Ok(output)
}
