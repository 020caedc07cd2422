//! Register allocation: runs regalloc2 on the VCode with the machine environment from td, and its
//! checker if the flag is set.

use crate::error::CompileError;
use crate::inst::MInst;
use crate::inst::operands::OperandVisitor;
use crate::inst::reg::{Reg, from_preg};
use crate::isa::Isa;
use crate::vcode::VCode;
use cranelift_codegen::settings::RegallocAlgorithm;
use regalloc2::{
    Algorithm, Allocation, Ctx, MachineEnv, OperandConstraint, OperandKind, OperandPos, Output, RegallocOptions,
};
use std::fmt::Write;

/// A visitor that writes the assigned registers into the operands.
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

/// Writes the assigned registers into the operands. The order of `allocations` is the order in
/// which the instruction visits its operands.
pub fn assign(inst: &mut MInst, allocations: &[Allocation]) {
    inst.visit_operands(&mut Assign(allocations.iter()));
}

/// Prints the VCode with the assigned registers and the inserted moves.
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

/// The weight of a basic block in the size of a function; an instruction has weight 1.
const BLOCK: usize = 8;

/// The number of live values at an instruction that together have the weight of one instruction.
const LIVE_VALUES: usize = 64;

/// Returns whether the function is larger than `limit`. The size estimates the time of the
/// backtracking allocator: the number of instructions, plus eight times the number of basic blocks,
/// plus one for every 64 instructions at which a register is live, counted from the first to the
/// last instruction that names it. Beyond about 100,000, the time grows quadratically for some
/// functions. The time of the single-pass allocator never does.
fn is_larger(vcode: &VCode, limit: usize) -> bool {
    let (insts, blocks) = (vcode.insts.len(), vcode.blocks.len());
    let size = insts + BLOCK * blocks;
    // The live ranges need not be computed if the function is small even with every value live
    // everywhere.
    let most = insts.saturating_mul(vcode.num_vregs) / LIVE_VALUES;
    size > limit || size + most > limit && size + vcode.live_instructions() / LIVE_VALUES > limit
}

/// Runs regalloc2 with the algorithm that the flags select, in the memory of `context`. The result
/// is in `context`, too.
///
/// # Errors
///
/// Returns [`CompileError::Regalloc`] if regalloc2 fails, or if the checker (flag
/// `regalloc_checker`) finds a wrong assignment.
pub fn run<'a>(vcode: &VCode, env: &MachineEnv, isa: &Isa, context: &'a mut Ctx) -> Result<&'a Output, CompileError> {
    let flags = isa.flags();
    let limit = isa.settings().single_pass_above as usize;
    let options = RegallocOptions {
        verbose_log: flags.regalloc_verbose_logs(),
        validate_ssa: flags.regalloc_checker(),
        algorithm: match flags.regalloc_algorithm() {
            RegallocAlgorithm::Backtracking if limit > 0 && is_larger(vcode, limit) => Algorithm::Fastalloc,
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
