//! What a function does before it has a frame: it checks the limit of the stack, and touches the pages of a large frame.
//!
//! Nothing has been written then, and no argument has left its place. The registers used here hold nothing at entry.

use super::expand::{Expander, real};
use crate::abi::limit::{Base, StackLimit, Step};
use crate::abi::sig::{Place, free_at_entry};
use crate::inst::Cond;
use crate::inst::ops::{fits, load_op, store_op};
use crate::inst::reg::Reg;
use cranelift_codegen::ir::TrapCode;
use npu_mc::machine::STACK_ALIGN;
use npu_mc::{Opcode, Operand, OperandKind, SReg};
use regalloc2::RegClass;

/// Pages that are touched one after the other without a loop.
const MAX_UNROLLED: u32 = 4;

/// A register that holds nothing at entry, beside the scratch register.
fn free(index: usize) -> Reg {
    Reg::scalar(free_at_entry().get(index).copied().unwrap_or(SReg::TR))
}

fn operand(reg: Reg) -> Operand {
    real(reg).into()
}

impl Expander<'_> {
    /// Checks and probes in front of the frame.
    pub(super) fn enter(&mut self) {
        let layout = &self.frame.layout;
        let size = layout.size;
        if size > 0 || self.vcode.has_calls || self.vcode.has_tail_calls {
            if let Some(limit) = &self.vcode.stack_limit {
                self.check_limit(limit, size);
            }
            let flags = self.isa.flags();
            if flags.enable_probestack() {
                // Frames are multiples of the stack's alignment, so smaller pages need no more probes than these.
                let page = 1u32
                    .checked_shl(flags.probestack_size_log2().into())
                    .map_or(u32::MAX, |page| page.max(STACK_ALIGN));
                self.probe(page, size / page);
            }
        }
    }

    /// Traps unless the frame lies above the limit. Neither the size of the frame nor the limit can make a sum or difference
    /// wrap around unseen.
    fn check_limit(&mut self, limit: &StackLimit, size: u32) {
        let limit = self.limit(limit);
        let scratch = operand(Reg::SCRATCH);
        let room = operand(free(0));
        if size == 0 {
            self.op(Opcode::SLTUISSS_32, [scratch, operand(Reg::SP), operand(limit)]);
        } else {
            self.op(Opcode::SUBSSS_32, [room, operand(Reg::SP), operand(limit)]);
            self.op(Opcode::SLTUISSS_32, [scratch, operand(Reg::SP), operand(limit)]);
            match i32::try_from(size).ok().filter(|&n| fits(OperandKind::Simm9, n)) {
                Some(n) => self.op(Opcode::SLTUISSI, [room, room, n.into()]),
                None => {
                    let needed = free(1);
                    self.constant(real(needed), size);
                    self.op(Opcode::SLTUISSS_32, [room, room, operand(needed)]);
                }
            }
            self.op(Opcode::ORSSS_32, [scratch, scratch, room]);
        }
        let label = self.trap_label(TrapCode::STACK_OVERFLOW);
        let too_low = Cond {
            reg: Reg::SCRATCH,
            nonzero: true,
        };
        self.branch_if(too_low, label);
        self.mark_trap(TrapCode::STACK_OVERFLOW);
    }

    /// The register that has the limit: the argument itself, or the scratch register.
    fn limit(&mut self, limit: &StackLimit) -> Reg {
        let mut at = match &limit.base {
            Base::Argument(Place::Reg(reg)) => Reg::Real(*reg),
            Base::Argument(Place::Memory(offset)) => {
                // `sp` is still where the caller left it.
                let load = load_op(RegClass::Int);
                self.access(load, real(Reg::SCRATCH), Reg::SP, i64::from(*offset));
                Reg::SCRATCH
            }
            Base::Symbol(target, addend) => {
                self.symbol(real(Reg::SCRATCH), target, *addend);
                Reg::SCRATCH
            }
        };
        for &step in &limit.steps {
            match step {
                Step::Add(0) => continue,
                Step::Add(number) => self.add_with(Reg::SCRATCH, at, number),
                Step::Load(offset) => {
                    let reach = fits(OperandKind::Offset9, offset);
                    if !reach {
                        self.add_with(Reg::SCRATCH, at, offset.into());
                        at = Reg::SCRATCH;
                    }
                    let rest = if reach { offset } else { 0 };
                    self.op(
                        load_op(RegClass::Int),
                        [operand(Reg::SCRATCH), operand(at), rest.into()],
                    );
                }
            }
            at = Reg::SCRATCH;
        }
        at
    }

    /// `dst` := `base` + a number, which may be the same register.
    fn add_with(&mut self, dst: Reg, base: Reg, number: i64) {
        let constant = free(0);
        self.constant(real(constant), (number & i64::from(u32::MAX)) as u32);
        self.op(Opcode::ADDSSS_32, [operand(dst), operand(base), operand(constant)]);
    }

    /// Stores a word to each page of the frame, from the first one down.
    fn probe(&mut self, page: u32, count: u32) {
        if count == 0 {
            return;
        }
        let (at, step, end, left) = (Reg::SCRATCH, free(0), free(1), free(2));
        let touch = |e: &mut Self, from: Reg| {
            e.op(Opcode::ADDSSS_32, [operand(at), operand(from), operand(step)]);
            e.op(store_op(RegClass::Int), [operand(step), operand(at), 0.into()]);
        };
        self.constant(real(step), page.wrapping_neg());
        if count <= MAX_UNROLLED {
            for number in 0..count {
                touch(self, if number == 0 { Reg::SP } else { at });
            }
            return;
        }
        self.constant(real(end), page.wrapping_mul(count).wrapping_neg());
        self.op(Opcode::ADDSSS_32, [operand(end), operand(Reg::SP), operand(end)]);
        self.move_reg(real(at), real(Reg::SP));
        let next = self.items.new_label();
        self.items.bind(next);
        touch(self, at);
        self.op(Opcode::SUBSSS_32, [operand(left), operand(at), operand(end)]);
        let more = Cond {
            reg: left,
            nonzero: true,
        };
        self.branch_if(more, next);
    }
}
