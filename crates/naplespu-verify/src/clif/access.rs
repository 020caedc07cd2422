//! Loads, stores and addresses.

use super::{Clif, Lanes, State, Unsupported};
use crate::memory::{Memory, Region};
use crate::term::{Term, WORD};
use cranelift_codegen::ir::{
    self, AtomicRmwOp, Endianness, GlobalValueData, InstructionData, MemFlags, Opcode, Type, types,
};
use npu_mc::machine::{SCRATCHPAD_SPACE, SCRATCHPAD_SPACE_DOC};

/// The transfer of a load or store: the type in memory, and its conversion to the type of the
/// value.
struct Moved {
    lane_bits: u32,
    lanes: u32,
    signed: bool,
}

fn moved(op: Opcode, ty: Type) -> Moved {
    let (lane_bits, signed) = match op {
        Opcode::Uload8 | Opcode::Istore8 | Opcode::Uload8x8 => (8, false),
        Opcode::Sload8 | Opcode::Sload8x8 => (8, true),
        Opcode::Uload16 | Opcode::Istore16 | Opcode::Uload16x4 => (16, false),
        Opcode::Sload16 | Opcode::Sload16x4 => (16, true),
        Opcode::Uload32 | Opcode::Istore32 | Opcode::Uload32x2 => (32, false),
        Opcode::Sload32 | Opcode::Sload32x2 => (32, true),
        _ => (ty.lane_bits(), false),
    };
    Moved {
        lane_bits,
        lanes: ty.lane_count(),
        signed,
    }
}

impl Clif<'_> {
    /// Returns the low word of an address.
    fn word(&mut self, address: Term) -> Term {
        match self.pool.width(address) {
            width if width > WORD => self.pool.extract(WORD - 1, 0, address),
            _ => self.pool.zext(address, WORD),
        }
    }

    /// Returns an address plus a constant.
    fn displaced(&mut self, base: Term, offset: i32) -> Term {
        let base = self.word(base);
        let offset = self.pool.int(WORD, u64::from(offset as u32));
        self.pool.add(base, offset)
    }

    /// Returns the region of an access, and assumes the alignment that its flags guarantee.
    fn region(&mut self, state: &State, flags: MemFlags, address: Term, bytes: u32) -> Region {
        let data = self.func.dfg.mem_flags[flags];
        let unit = bytes.min(npu_mc::machine::CACHE_LINE);
        if data.aligned() && unit > 1 && unit.is_power_of_two() {
            let low = self.pool.extract(unit.trailing_zeros() - 1, 0, address);
            let zero = self.pool.int(unit.trailing_zeros(), 0);
            let aligned = self.pool.eq(low, zero);
            let here = state.path.condition(self.pool);
            let elsewhere = self.pool.not(here);
            let assumption = self.pool.or(elsewhere, aligned);
            self.out.assumptions.push(assumption);
        }
        let is_scratchpad = data.alias_region().is_some_and(|region| {
            let id = self.func.dfg.alias_regions[region].user_id;
            id == SCRATCHPAD_SPACE || id == SCRATCHPAD_SPACE_DOC
        });
        match is_scratchpad {
            true => Region::Scratchpad,
            false => Memory::region(self.pool, address, self.layout.sp),
        }
    }

    pub(super) fn is_big(&self, flags: MemFlags) -> bool {
        self.func.dfg.mem_flags[flags].endianness(Endianness::Little) == Endianness::Big
    }

    pub(super) fn swapped(&mut self, value: Term) -> Term {
        let bytes = self.pool.width(value) / 8;
        let pieces: Vec<Term> = (0..bytes)
            .map(|at| self.pool.extract(8 * at + 7, 8 * at, value))
            .collect();
        self.pool.concat(&pieces)
    }

    fn load_lanes(&mut self, state: &State, op: Opcode, ty: Type, flags: MemFlags, address: Term) -> Lanes {
        let moved = moved(op, ty);
        let bytes = moved.lane_bits / 8;
        let region = self.region(state, flags, address, bytes * moved.lanes);
        (0..moved.lanes)
            .map(|lane| {
                let offset = self.pool.int(WORD, u64::from(lane * bytes));
                let at = self.pool.add(address, offset);
                let mut value = state.memory.load(self.pool, region, at, bytes);
                if self.is_big(flags) {
                    value = self.swapped(value);
                }
                match moved.signed {
                    true => self.pool.sext(value, ty.lane_bits()),
                    false => self.pool.zext(value, ty.lane_bits()),
                }
            })
            .collect()
    }

    fn store_lanes(&mut self, state: &mut State, op: Opcode, ty: Type, flags: MemFlags, address: Term, value: &Lanes) {
        let moved = moved(op, ty);
        let bytes = moved.lane_bits / 8;
        let region = self.region(state, flags, address, bytes * moved.lanes);
        for (lane, &value) in value.iter().enumerate() {
            let offset = self.pool.int(WORD, lane as u64 * u64::from(bytes));
            let at = self.pool.add(address, offset);
            let mut value = self.pool.extract(moved.lane_bits - 1, 0, value);
            if self.is_big(flags) {
                value = self.swapped(value);
            }
            state.memory.store(self.pool, region, at, value);
        }
    }

    /// Returns the number that an atomic operation stores.
    fn modified(&mut self, operation: AtomicRmwOp, old: Term, operand: Term) -> Option<Term> {
        let op = match operation {
            AtomicRmwOp::Xchg => return Some(operand),
            AtomicRmwOp::Nand => {
                let both = self.pool.and(old, operand);
                return Some(self.pool.not(both));
            }
            AtomicRmwOp::Add => Opcode::Iadd,
            AtomicRmwOp::Sub => Opcode::Isub,
            AtomicRmwOp::And => Opcode::Band,
            AtomicRmwOp::Or => Opcode::Bor,
            AtomicRmwOp::Xor => Opcode::Bxor,
            AtomicRmwOp::Umin => Opcode::Umin,
            AtomicRmwOp::Umax => Opcode::Umax,
            AtomicRmwOp::Smin => Opcode::Smin,
            AtomicRmwOp::Smax => Opcode::Smax,
        };
        let outcome = super::scalar::binary(self.pool, op, old, operand)?;
        outcome.results.first().copied()
    }

    /// Executes an instruction that accesses memory. Atomic operations have the meaning that they
    /// have on one thread. Returns `None` for other instructions.
    pub(super) fn access(&mut self, inst: ir::Inst, state: &mut State) -> Result<Option<Vec<Lanes>>, Unsupported> {
        let data = self.func.dfg.insts[inst];
        let op = data.opcode();
        let results = self.func.dfg.inst_results(inst);
        let ty = results
            .first()
            .map_or(types::INVALID, |&value| self.func.dfg.value_type(value));
        Ok(Some(match data {
            InstructionData::Load { arg, flags, offset, .. } => {
                let base = self.number(state, arg)?;
                let address = self.displaced(base, offset.into());
                vec![self.load_lanes(state, op, ty, flags, address)]
            }
            InstructionData::Store {
                args, flags, offset, ..
            } => {
                let value = self.value(state, args[0])?;
                let base = self.number(state, args[1])?;
                let address = self.displaced(base, offset.into());
                let ty = self.func.dfg.value_type(args[0]);
                self.store_lanes(state, op, ty, flags, address, &value);
                Vec::new()
            }
            InstructionData::LoadNoOffset {
                opcode: Opcode::AtomicLoad,
                arg,
                flags,
            } => {
                let base = self.number(state, arg)?;
                let address = self.word(base);
                vec![self.load_lanes(state, op, ty, flags, address)]
            }
            InstructionData::StoreNoOffset {
                opcode: Opcode::AtomicStore,
                args,
                flags,
            } => {
                let value = self.value(state, args[0])?;
                let base = self.number(state, args[1])?;
                let address = self.word(base);
                let ty = self.func.dfg.value_type(args[0]);
                self.store_lanes(state, op, ty, flags, address, &value);
                Vec::new()
            }
            InstructionData::AtomicRmw {
                args,
                flags,
                op: operation,
                ..
            } => {
                let base = self.number(state, args[0])?;
                let (address, operand) = (self.word(base), self.number(state, args[1])?);
                let old = self.load_lanes(state, op, ty, flags, address);
                let new = self
                    .modified(operation, old[0], operand)
                    .ok_or_else(|| Unsupported::inst(op))?;
                self.store_lanes(state, op, ty, flags, address, &vec![new]);
                vec![old]
            }
            InstructionData::AtomicCas { args, flags, .. } => {
                let base = self.number(state, args[0])?;
                let address = self.word(base);
                let (expected, new) = (self.number(state, args[1])?, self.number(state, args[2])?);
                let old = self.load_lanes(state, op, ty, flags, address);
                let same = self.pool.eq(old[0], expected);
                let stored = self.pool.ite(same, new, old[0]);
                self.store_lanes(state, op, ty, flags, address, &vec![stored]);
                vec![old]
            }
            InstructionData::StackAddr { stack_slot, offset, .. } => {
                let slot = self.layout.slot(self.pool, stack_slot.as_u32());
                let Some(slot) = slot else {
                    return Err(Unsupported::inst("a stack slot that the frame lacks"));
                };
                let address = self.displaced(slot, offset.into());
                vec![vec![self.pool.zext(address, ty.bits())]]
            }
            InstructionData::UnaryGlobalValue {
                opcode: Opcode::SymbolValue,
                global_value,
            } => {
                let GlobalValueData::Symbol {
                    ref name,
                    offset,
                    tls: false,
                    ..
                } = self.func.global_values[global_value]
                else {
                    return Err(Unsupported::inst("symbol_value of something else than a symbol"));
                };
                let symbol = self.layout.symbol(self.pool, self.func, name);
                let address = self.displaced(symbol, i64::from(offset) as i32);
                vec![vec![self.pool.zext(address, ty.bits())]]
            }
            InstructionData::FuncAddr { func_ref, .. } => {
                let name = &self.func.dfg.ext_funcs[func_ref].name;
                let symbol = self.layout.symbol(self.pool, self.func, name);
                vec![vec![self.pool.zext(symbol, ty.bits())]]
            }
            _ => return Ok(None),
        }))
    }
}
