//! Addresses of loads and stores: the addressing mode.

use super::context::{Lower, sign_extend};
use super::words::{Word, WordRules};
use crate::abi::slots;
use crate::inst::ops::immediate_range;
use crate::inst::reg::Reg;
use crate::inst::{AMode, MInst};
use cranelift_codegen::ir::{InstructionData, Opcode, StackSlot, Value, ValueDef};
use npu_mc::OperandKind;
use npu_mc::machine::STACK_ALIGN;
use regalloc2::RegClass;

/// The number of definitions that are followed from an address.
const MAX_DEPTH: u32 = 8;

impl Lower<'_> {
    /// Returns the address `pointer` + `offset` modulo 2^32, and folds constants into the
    /// instruction's offset.
    ///
    /// All of the `bytes` at the address are within the range of the offset, so that an access can
    /// be split.
    pub fn address(&mut self, pointer: Value, offset: i32, bytes: u32) -> AMode {
        let (lowest, highest) = immediate_range(OperandKind::Offset9);
        let highest = i64::from(highest) + 1 - i64::from(bytes);
        let offset_of = |total: i64| {
            let offset = i32::try_from(total).ok()?;
            (lowest <= offset && total <= highest).then_some(offset)
        };
        let mut total = i64::from(offset);
        let mut pointer = pointer;
        // The base nearest to the origin whose offset is in range.
        let mut best = offset_of(total).map(|offset| (pointer, offset));
        for _ in 0..MAX_DEPTH {
            let ValueDef::Result(inst, 0) = self.func.dfg.value_def(pointer) else {
                break;
            };
            match self.func.dfg.insts[inst] {
                InstructionData::Binary {
                    opcode: Opcode::Iadd,
                    args,
                } => {
                    let Some((base, constant)) = self.split_constant(args) else {
                        break;
                    };
                    total += constant;
                    pointer = base;
                    if let Some(offset) = offset_of(total) {
                        best = Some((pointer, offset));
                    }
                }
                // Addresses have 32 bits, whatever the type of the computation.
                InstructionData::Unary {
                    opcode: Opcode::Uextend | Opcode::Sextend | Opcode::Ireduce,
                    arg,
                } if self.func.dfg.value_type(arg).bits() >= 32 => {
                    pointer = arg;
                    if let Some(offset) = offset_of(total) {
                        best = Some((pointer, offset));
                    }
                }
                InstructionData::StackAddr { stack_slot, offset, .. }
                    if !slots::is_over_aligned(&self.func.sized_stack_slots[stack_slot]) =>
                {
                    let within = total + i64::from(i32::from(offset));
                    if let Ok(offset) = i32::try_from(within) {
                        return AMode::Slot {
                            slot: stack_slot,
                            offset,
                        };
                    }
                    break;
                }
                _ => break,
            }
        }
        match best {
            Some((base, offset)) => {
                let base = self.put_in_regs(base).as_slice()[0];
                AMode::Reg {
                    base: Reg::Virtual(base),
                    offset,
                }
            }
            None => self.far_address(pointer, total),
        }
    }

    /// Returns a register with an address within a stack slot. A slot with a larger alignment than
    /// the stack's has spare room, and the code computes its aligned start at run time.
    pub fn address_of_slot(&mut self, slot: StackSlot, offset: i32) -> Reg {
        let data = &self.func.sized_stack_slots[slot];
        if !slots::is_over_aligned(data) {
            return self.emit_address(AMode::Slot { slot, offset });
        }
        let align = slots::slot_alignment(data);
        // Less than 2^31, because no alignment is larger than that.
        let room = (align - STACK_ALIGN).cast_signed();
        let last = self.emit_address(AMode::Slot { slot, offset: room });
        let start = self.word_and(Word::Reg(last), Word::Const(align.wrapping_neg()));
        let place = self.word_add(start, Word::Const(offset.cast_unsigned()));
        self.reg(place)
    }

    /// Returns a register with the address.
    pub fn address_reg(&mut self, addr: AMode) -> Reg {
        match addr {
            AMode::Reg { base, offset: 0 } => base,
            _ => self.emit_address(addr),
        }
    }

    fn emit_address(&mut self, addr: AMode) -> Reg {
        let dst = Reg::Virtual(self.new_vreg(RegClass::Int));
        self.emit(MInst::Address { dst, addr });
        dst
    }

    /// Returns an address whose offset is out of range: adds the high part of the offset. Adjacent
    /// addresses share its constant.
    fn far_address(&mut self, pointer: Value, total: i64) -> AMode {
        let total = (total & i64::from(u32::MAX)) as u32;
        let low = total & 0x7f;
        let base = self.put_in_regs(pointer).as_slice()[0];
        let sum = self.word_add(Word::Reg(Reg::Virtual(base)), Word::Const(total - low));
        AMode::Reg {
            base: self.reg(sum),
            offset: low.cast_signed(),
        }
    }

    fn split_constant(&self, args: [Value; 2]) -> Option<(Value, i64)> {
        let constant = |v| self.as_constant(v).map(|c| i64::from(sign_extend(c, 32).cast_signed()));
        match (constant(args[0]), constant(args[1])) {
            (_, Some(c)) => Some((args[0], c)),
            (Some(c), None) => Some((args[1], c)),
            (None, None) => None,
        }
    }
}

/// Returns the address plus some bytes. The range of the offset includes the bytes of one access.
pub fn plus(addr: AMode, bytes: i32) -> AMode {
    match addr {
        AMode::Reg { base, offset } => AMode::Reg {
            base,
            offset: offset + bytes,
        },
        AMode::Slot { slot, offset } => AMode::Slot {
            slot,
            offset: offset.wrapping_add(bytes),
        },
        AMode::Incoming { offset } => AMode::Incoming { offset: offset + bytes },
        AMode::Outgoing { offset } => AMode::Outgoing { offset: offset + bytes },
        AMode::Local { area, offset } => AMode::Local {
            area,
            offset: offset + bytes,
        },
    }
}
