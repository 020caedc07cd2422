//! Expansion of branches, branch tables, calls and the starts of exception handlers.

use super::expand::{Expander, WORD, machine_reg, too_large};
use super::func::{CallKind, CallSite, Fixup, Label, SiteHandler};
use crate::abi::sig::handler_stack_pointer;
use crate::error::CompileError;
use crate::inst::ops::{fits, load_op};
use crate::inst::reg::machine;
use crate::inst::{CallDest, Cond, MInst};
use crate::provenance::Producer;
use crate::vcode::Origin;
use npu_mc::errata::Erratum;
use npu_mc::reloc::Reloc as RelocKind;
use npu_mc::{Inst, Opcode, Operand, OperandKind, Reg, SReg};
use regalloc2::RegClass;

impl Expander<'_> {
    pub(super) fn jump(&mut self, target: Label) {
        self.push(Inst::new(Opcode::JMP, [Operand::Imm(0)]), Fixup::Branch(target));
    }

    pub(super) fn branch_if(&mut self, cond: Cond<Reg>, target: Label) {
        let inst = Inst::new(cond.branch(), [cond.reg.into(), Operand::Imm(0)]);
        self.push(inst, Fixup::Branch(target));
    }

    pub(super) fn branch(&mut self, inst: &MInst, succs: &[usize], next: Option<usize>) -> Result<(), CompileError> {
        let label = |block: usize| self.block_labels[block];
        match inst {
            MInst::CondBr { cond } if succs[0] != succs[1] => {
                let cond = cond.map(&mut machine_reg)?;
                let (taken, other) = (label(succs[0]), label(succs[1]));
                if next == Some(succs[0]) {
                    self.branch_if(cond.inverted(), other);
                } else {
                    self.branch_if(cond, taken);
                    if next != Some(succs[1]) {
                        self.jump(other);
                    }
                }
            }
            MInst::BrTable {
                index,
                tmp,
                base,
                entries,
                bounded,
            } if !entries.is_empty() => {
                let (index, tmp, base) = (machine_reg(*index)?, machine_reg(*tmp)?, machine_reg(*base)?);
                let labels: Vec<Label> = succs.iter().map(|&s| label(s)).collect();
                if !bounded {
                    self.check_index(index, tmp, base, entries, labels[0])?;
                }
                self.table(index, tmp, base, entries, &labels)?;
            }
            MInst::TryCall(info) => {
                self.jump_to_callee(&info.call.dest, CallKind::Call)?;
                let handlers = info.handlers.iter().map(|handler| {
                    let succ = succs.get(handler.succ);
                    let succ = succ.ok_or_else(|| CompileError::internal("expand", inst, "a block for every handler"));
                    let context = handler.context.map(|area| self.area_offset(area)).transpose()?;
                    Ok(SiteHandler {
                        tag: handler.tag,
                        block: self.block_labels[*succ?],
                        context,
                    })
                });
                let handlers = handlers.collect::<Result<_, CompileError>>()?;
                let back = succs.last().copied();
                let back = back.ok_or_else(|| CompileError::internal("expand", inst, "a block to return to"))?;
                self.call_site(info.call.popped, handlers);
                self.add_to_sp(-i64::from(info.call.popped));
                if next != Some(back) {
                    self.jump(self.block_labels[back]);
                }
            }
            _ => {
                if next != Some(succs[0]) {
                    self.jump(label(succs[0]));
                }
            }
        }
        Ok(())
    }

    /// Emits a branch to the default target for an index out of range.
    pub(super) fn check_index(
        &mut self,
        index: Reg,
        tmp: Reg,
        base: Reg,
        entries: &[u32],
        default: Label,
    ) -> Result<(), CompileError> {
        let count = u32::try_from(entries.len()).map_err(|_| too_large("a branch table has too many entries"))?;
        match i32::try_from(count).ok().filter(|&n| fits(OperandKind::Simm9, n)) {
            Some(n) => self.op(Opcode::SGEUISSI, [tmp.into(), index.into(), n.into()]),
            None => {
                self.constant(base, count);
                self.op(Opcode::SGEUISSS_32, [tmp.into(), index.into(), base.into()]);
            }
        }
        self.branch_if(
            Cond {
                reg: tmp,
                nonzero: true,
            },
            default,
        );
        Ok(())
    }

    /// Emits a branch table as a sequence of jumps. The index selects one of them. It needs no data
    /// and no relocation.
    pub(super) fn table(
        &mut self,
        index: Reg,
        tmp: Reg,
        base: Reg,
        entries: &[u32],
        labels: &[Label],
    ) -> Result<(), CompileError> {
        let scratch = tmp;
        let shift = WORD.trailing_zeros().cast_signed();
        self.op(Opcode::SLLSSI, [scratch.into(), index.into(), shift.into()]);
        // The distance to the table: three instructions, including this one.
        let distance = (3 * WORD).cast_signed();
        self.op(Opcode::ADDSSI, [base.into(), machine::PC.into(), distance.into()]);
        self.glue_last();
        self.op(Opcode::ADDSSS_32, [scratch.into(), scratch.into(), base.into()]);
        self.glue_last();
        self.op(Opcode::JUMPREG, [scratch.into()]);
        self.glue_last();
        let end = self.func.new_label();
        for &entry in entries {
            let Some(&target) = labels.get(entry as usize) else {
                let entry = format_args!("entry {entry} of a branch table");
                return Err(CompileError::internal("expand", entry, "a successor of the block"));
            };
            self.push(
                Inst::new(Opcode::JMP, [Operand::Imm(0)]),
                Fixup::TableEntry { target, end },
            );
            self.glue_last();
        }
        if let Some(last) = self.func.last_mut() {
            last.glued = false;
        }
        self.func.bind(end);
        Ok(())
    }

    /// Emits the jump of a call or tail call.
    pub(super) fn jump_to_callee(&mut self, dest: &CallDest, kind: CallKind) -> Result<(), CompileError> {
        match dest {
            CallDest::Near(target) => {
                let op = match kind {
                    CallKind::TailCall => Opcode::JMP,
                    CallKind::Call | CallKind::None => Opcode::JMPSR_OFF,
                };
                let fixup = Fixup::Reloc {
                    kind: RelocKind::Branch,
                    target: target.clone(),
                    addend: 0,
                };
                self.push(Inst::new(op, [Operand::Imm(0)]), fixup);
            }
            CallDest::Far(target) => {
                self.symbol(machine::SCRATCH, target, 0);
                self.jump_to_reg(machine::SCRATCH, kind);
            }
            CallDest::Reg(reg) => self.jump_to_reg(machine_reg(*reg)?, kind),
        }
        if let Some(last) = self.func.last_mut() {
            last.call = kind;
        }
        Ok(())
    }

    /// Records the return position of the call that was just emitted.
    pub(super) fn call_site(&mut self, popped: u32, handlers: Vec<SiteHandler>) {
        let after = self.func.new_label();
        self.func.bind(after);
        self.func.call_sites.push(CallSite {
            after,
            popped,
            handlers,
        });
    }

    /// Emits the start of a handler, which restores the stack pointer of the frame.
    pub(super) fn handler_landing(&mut self) -> Result<(), CompileError> {
        self.origin = Origin::produced_by(Producer::Landing);
        let register = handler_stack_pointer();
        let register = register.ok_or_else(|| CompileError::internal("expand", "a handler", "a register for sp"))?;
        self.move_reg(machine::SP, register);
        if self.frame.layout.frame_pointer {
            self.move_reg(machine::FP, machine::SP);
        }
        Ok(())
    }

    pub(super) fn jump_to_reg(&mut self, reg: Reg, kind: CallKind) {
        if kind == CallKind::TailCall {
            self.op(Opcode::JUMPREG, [reg.into()]);
        } else if self.isa.has_erratum(Erratum::IndirectCallLink) {
            // The hardware would link to the callee, so set the link explicitly: the address after
            // the jump.
            let distance = (2 * WORD).cast_signed();
            self.op(
                Opcode::ADDSSI,
                [machine::RA.into(), machine::PC.into(), distance.into()],
            );
            self.glue_last();
            self.op(Opcode::JUMPREG, [reg.into()]);
        } else {
            self.op(Opcode::JMPSR_REG, [reg.into()]);
        }
    }

    pub(super) fn return_address(&mut self, dst: Reg) {
        let ra = Reg::S(SReg::RA);
        match self.frame.layout.saved.iter().find(|(reg, _)| *reg == ra) {
            Some(&(_, offset)) => self.access(load_op(RegClass::Int), dst, machine::SP, offset.into()),
            None => self.move_reg(dst, ra),
        }
    }
}
