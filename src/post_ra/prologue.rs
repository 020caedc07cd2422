//! Prologue code before the allocation of the frame: the check of the stack limit, and stack
//! probes.
//!
//! This code runs before any store and before any argument moves. The registers it uses are free at
//! entry.

use super::expand::Expander;
use crate::abi::limit::{Base, StackLimit, Step};
use crate::abi::sig::{Place, free_at_entry};
use crate::error::CompileError;
use crate::inst::Cond;
use crate::inst::ops::{fits, load_op, store_op};
use crate::inst::reg::machine;
use cranelift_codegen::ir::TrapCode;
use npu_mc::machine::STACK_ALIGN;
use npu_mc::{Opcode, OperandKind, Reg};
use regalloc2::RegClass;

/// The maximum number of pages that are probed without a loop.
const MAX_UNROLLED: u32 = 4;

/// Returns a register that is free at entry, in addition to the scratch register.
fn free_reg(index: usize) -> Result<Reg, CompileError> {
    let reg = free_at_entry().get(index).copied().map(Reg::S);
    reg.ok_or_else(|| CompileError::internal("expand", "the prologue", "three scalars that hold nothing at entry"))
}

/// Frames of less than this many bytes are added to the address of the symbol in a check of the
/// stack limit.
const SMALL_FRAME: u32 = 32 << 10;

impl Expander<'_> {
    /// Emits the check of the stack limit and the stack probes.
    pub(super) fn check_stack(&mut self) -> Result<(), CompileError> {
        let layout = &self.frame.layout;
        let size = layout.size;
        if size > 0 || self.vcode.has_calls || self.vcode.has_tail_calls {
            if let Some(limit) = &self.vcode.stack_limit {
                self.check_limit(limit, size)?;
            }
            let flags = self.isa.flags();
            if flags.enable_probestack() {
                // A frame size is a multiple of the stack alignment, so pages smaller than that
                // need no more probes.
                let page = 1u32
                    .checked_shl(flags.probestack_size_log2().into())
                    .map_or(u32::MAX, |page| page.max(STACK_ALIGN));
                self.probe(page, size / page)?;
            }
        }
        Ok(())
    }

    /// Emits a trap for a frame that does not lie above the limit.
    ///
    /// Neither the size of the frame nor a computed limit can make a sum or difference wrap around
    /// undetected.
    fn check_limit(&mut self, limit: &StackLimit, size: u32) -> Result<(), CompileError> {
        let scratch = machine::SCRATCH.into();
        let room = free_reg(0)?.into();
        // As on Cranelift's other targets, a symbol lies so far below the end of memory that a
        // small frame above it does not wrap around.
        let symbol = match &limit.base {
            Base::Symbol(target, addend) if limit.steps.is_empty() && size < SMALL_FRAME => Some((target, addend)),
            _ => None,
        };
        let limit = match symbol {
            Some((target, addend)) => {
                self.symbol(machine::SCRATCH, target, addend + i64::from(size));
                machine::SCRATCH
            }
            None => self.limit(limit)?,
        };
        if size == 0 || symbol.is_some() {
            self.op(Opcode::SLTUISSS_32, [scratch, machine::SP.into(), limit.into()]);
        } else {
            self.op(Opcode::SUBSSS_32, [room, machine::SP.into(), limit.into()]);
            self.op(Opcode::SLTUISSS_32, [scratch, machine::SP.into(), limit.into()]);
            match i32::try_from(size).ok().filter(|&n| fits(OperandKind::Simm9, n)) {
                Some(n) => self.op(Opcode::SLTUISSI, [room, room, n.into()]),
                None => {
                    let needed = free_reg(1)?;
                    self.constant(needed, size);
                    self.op(Opcode::SLTUISSS_32, [room, room, needed.into()]);
                }
            }
            self.op(Opcode::ORSSS_32, [scratch, scratch, room]);
        }
        let label = self.trap_label(TrapCode::STACK_OVERFLOW);
        let too_low = Cond {
            reg: machine::SCRATCH,
            nonzero: true,
        };
        self.branch_if(too_low, label);
        self.mark_trap(TrapCode::STACK_OVERFLOW);
        Ok(())
    }

    /// Returns the register with the limit: the argument's own register, or the scratch register.
    fn limit(&mut self, limit: &StackLimit) -> Result<Reg, CompileError> {
        let mut at = match &limit.base {
            Base::Argument(Place::Reg(reg)) => *reg,
            Base::Argument(Place::Memory(offset)) => {
                // `sp` still has its value at entry.
                let load = load_op(RegClass::Int);
                self.access(load, machine::SCRATCH, machine::SP, i64::from(*offset));
                machine::SCRATCH
            }
            Base::Symbol(target, addend) => {
                self.symbol(machine::SCRATCH, target, *addend);
                machine::SCRATCH
            }
        };
        for &step in &limit.steps {
            match step {
                Step::Add(0) => continue,
                Step::Add(number) => self.add_with(machine::SCRATCH, at, number)?,
                Step::Load(offset) => {
                    let reach = fits(OperandKind::Offset9, offset);
                    if !reach {
                        self.add_with(machine::SCRATCH, at, offset.into())?;
                        at = machine::SCRATCH;
                    }
                    let rest = if reach { offset } else { 0 };
                    self.op(
                        load_op(RegClass::Int),
                        [machine::SCRATCH.into(), at.into(), rest.into()],
                    );
                }
            }
            at = machine::SCRATCH;
        }
        Ok(at)
    }

    /// Emits `dst` := `base` + `number`. `dst` and `base` may be the same register.
    fn add_with(&mut self, dst: Reg, base: Reg, number: i64) -> Result<(), CompileError> {
        let constant = free_reg(0)?;
        self.constant(constant, (number & i64::from(u32::MAX)) as u32);
        self.op(Opcode::ADDSSS_32, [dst.into(), base.into(), constant.into()]);
        Ok(())
    }

    /// Emits a store of a word to each page of the frame, from the highest page down.
    fn probe(&mut self, page: u32, count: u32) -> Result<(), CompileError> {
        if count == 0 {
            return Ok(());
        }
        let (at, step, end, left) = (machine::SCRATCH, free_reg(0)?, free_reg(1)?, free_reg(2)?);
        let touch = |e: &mut Self, from: Reg| {
            e.op(Opcode::ADDSSS_32, [at.into(), from.into(), step.into()]);
            e.op(store_op(RegClass::Int), [step.into(), at.into(), 0.into()]);
        };
        self.constant(step, page.wrapping_neg());
        if count <= MAX_UNROLLED {
            for number in 0..count {
                touch(self, if number == 0 { machine::SP } else { at });
            }
            return Ok(());
        }
        self.constant(end, page.wrapping_mul(count).wrapping_neg());
        self.op(Opcode::ADDSSS_32, [end.into(), machine::SP.into(), end.into()]);
        self.move_reg(at, machine::SP);
        let next = self.func.new_label();
        self.func.bind(next);
        touch(self, at);
        self.op(Opcode::SUBSSS_32, [left.into(), at.into(), end.into()]);
        let more = Cond {
            reg: left,
            nonzero: true,
        };
        self.branch_if(more, next);
        Ok(())
    }
}
