//! Register allocation: the machine environment from td/, regalloc2 over the VCode, its checker when asked for.

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

/// What a block weighs beside an instruction in the size of a function.
const BLOCK: usize = 8;

/// Of how many live values at an instruction each weighs as much as the instruction.
const LIVE_VALUES: usize = 64;

/// Whether the function is larger than `limit`, by a size that the work of the backtracking allocator grows with: its instructions, eight
/// times its blocks, and one for every 64 instructions that a register is live at, from the first that names it to the last. Beyond some
/// 100,000 of these that work grows with the square of the size in some shapes; that of the other allocator never does.
fn is_larger(vcode: &VCode, limit: usize) -> bool {
    let (insts, blocks) = (vcode.insts.len(), vcode.blocks.len());
    let size = insts + BLOCK * blocks;
    // Live ranges need not be known of a function that is small even if everything is live everywhere.
    let most = insts.saturating_mul(vcode.num_vregs) / LIVE_VALUES;
    size > limit || size + most > limit && size + vcode.live_instructions() / LIVE_VALUES > limit
}

/// Runs regalloc2 as the flags say, in the memory of this context, which has the result afterwards.
///
/// # Errors
///
/// [`CompileError::Regalloc`] if it fails, or if the checker (flag `regalloc_checker`) finds a wrong assignment.
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
