//! Expands intrinsics into CLIF: compares and memory accesses become CLIF instructions, and the
//! lane mask becomes a value.
//!
//! During the expansion, the mask lives in a stack slot. The optimizer forwards the stored values
//! to the loads of the slot. [`finish`] then removes the slot if no load is left.

use super::{PseudoCalls, Reserved, classify, uses_mask};
use crate::isa::Isa;
use crate::shape::vector_of;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{
    AliasRegionData, Block, Endianness, Function, Inst, InstBuilder, InstructionData, MemFlagsData, Opcode, StackSlot,
    StackSlotData, StackSlotKind, Type, Value, ValueDef, types,
};
use npu_mc::errata::Erratum;
use npu_mc::machine::{ControlRegister, LANES, SCRATCHPAD_SPACE, WORD_SLOT};
use npu_mc::tables::{IntrinsicInfo, IntrinsicKind};

/// A mask with one set bit for each lane.
const ALL_LANES: i64 = (1 << LANES) - 1;

/// The condition code of a compare.
pub(super) enum Condition {
    Int(IntCC),
    Float(FloatCC),
}

/// Parses the condition of a compare from its record.
pub(super) fn condition(info: &IntrinsicInfo) -> Option<Condition> {
    if info.params.starts_with('f') {
        info.condition.parse().ok().map(Condition::Float)
    } else {
        info.condition.parse().ok().map(Condition::Int)
    }
}

/// The state that [`expand`] passes to [`finish`].
pub struct Expanded {
    mask: Option<StackSlot>,
}

/// Expands the intrinsics of the function, except those that are machine instructions.
pub fn expand(func: &mut Function, isa: &Isa) -> Expanded {
    let calls = calls(func);
    if calls.is_empty() {
        return Expanded { mask: None };
    }
    let mask = calls.iter().any(|(_, info)| uses_mask(info)).then(|| mask_slot(func));
    let mut expander = Expander {
        isa,
        mask,
        calls: PseudoCalls::default(),
    };
    for (inst, info) in calls {
        let args: Vec<Value> = func.dfg.inst_args(inst).to_vec();
        let mut cursor = FuncCursor::new(func).at_inst(inst);
        cursor.use_srcloc(inst);
        let Some(value) = expander.one(&mut cursor, info, &args) else {
            continue;
        };
        let old = func.dfg.inst_results(inst).first().copied();
        func.dfg.clear_results(inst);
        if let (Some(old), Some(value)) = (old, value) {
            func.dfg.change_to_alias(old, value);
        }
        func.layout.remove_inst(inst);
    }
    Expanded { mask }
}

/// Removes the slot of the mask if the optimizer has forwarded all loads.
pub fn finish(func: &mut Function, expanded: &Expanded) {
    let Some(slot) = expanded.mask else {
        return;
    };
    let blocks: Vec<Block> = func.layout.blocks().collect();
    let insts: Vec<Inst> = blocks
        .iter()
        .flat_map(|&block| func.layout.block_insts(block))
        .collect();
    let is_address = |value: Value| match func.dfg.value_def(func.dfg.resolve_aliases(value)) {
        ValueDef::Result(inst, _) => {
            matches!(func.dfg.insts[inst], InstructionData::StackAddr { stack_slot, .. } if stack_slot == slot)
        }
        _ => false,
    };
    let (mut writes, mut others) = (Vec::new(), false);
    for inst in insts {
        if !func.dfg.inst_values(inst).any(is_address) {
            continue;
        }
        match func.dfg.insts[inst] {
            InstructionData::Store { args, .. } if !is_address(args[0]) => writes.push(inst),
            _ => others = true,
        }
    }
    if others {
        return;
    }
    for inst in writes {
        func.layout.remove_inst(inst);
    }
    func.sized_stack_slots[slot].size = 0;
}

fn calls(func: &Function) -> Vec<(Inst, &'static IntrinsicInfo)> {
    if !func.dfg.ext_funcs.keys().any(|callee| classify(func, callee).is_some()) {
        return Vec::new();
    }
    let insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
    insts
        .filter_map(|inst| match func.dfg.insts[inst] {
            InstructionData::Call { func_ref, .. } => match classify(func, func_ref)? {
                Reserved::Intrinsic(info) => Some((inst, info)),
                Reserved::Unknown(_) => None,
            },
            _ => None,
        })
        .collect()
}

/// Creates the slot of the mask and initializes it to all lanes at the entry of the function.
fn mask_slot(func: &mut Function) -> StackSlot {
    let align = WORD_SLOT.trailing_zeros() as u8;
    let slot = func.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, WORD_SLOT, align));
    if let Some(entry) = func.layout.entry_block() {
        let mut cursor = FuncCursor::new(func).at_first_insertion_point(entry);
        let all = cursor.ins().iconst(types::I32, ALL_LANES);
        write_slot(&mut cursor, slot, all);
    }
    slot
}

fn write_slot(cursor: &mut FuncCursor<'_>, slot: StackSlot, mask: Value) {
    let address = cursor.ins().stack_addr(types::I32, slot, 0);
    cursor.ins().store(MemFlagsData::trusted(), mask, address, 0);
}

struct Expander<'a> {
    isa: &'a Isa,
    mask: Option<StackSlot>,
    /// The functions that the expansion calls, by name and types.
    calls: PseudoCalls,
}

impl Expander<'_> {
    /// Expands one call and returns its replacement result. Returns `None` if the call stays.
    fn one(&mut self, cursor: &mut FuncCursor<'_>, info: &IntrinsicInfo, args: &[Value]) -> Option<Option<Value>> {
        let result = crate::intrinsics::signature(info)
            .returns
            .first()
            .map(|ty| ty.value_type);
        Some(match (info.kind, args) {
            (IntrinsicKind::Compare, &[a, b]) => {
                let lanes = match condition(info)? {
                    Condition::Int(cond) => cursor.ins().icmp(cond, a, b),
                    Condition::Float(cond) => cursor.ins().fcmp(cond, a, b),
                };
                Some(cursor.ins().vhigh_bits(types::I32, lanes))
            }
            (IntrinsicKind::ReadMask, []) => Some(self.read_mask(cursor)?),
            (IntrinsicKind::WriteMask, &[mask]) => {
                self.write_mask(cursor, mask)?;
                None
            }
            (IntrinsicKind::WriteMaskLanes, &[lanes]) => {
                // Moves the lowest bit to the sign bit.
                let amount = cursor.ins().iconst(types::I32, 31);
                let signs = cursor.ins().ishl(lanes, amount);
                let mask = cursor.ins().vhigh_bits(types::I32, signs);
                self.write_mask(cursor, mask)?;
                None
            }
            (IntrinsicKind::Mix, &[a, b]) => {
                let mask = self.read_mask(cursor)?;
                self.call(cursor, "__builtin_npu_lanes_mix", &[a, b, mask], result)
            }
            (IntrinsicKind::BlockLoad, &[pointer]) => Some(self.load(cursor, info, pointer, result?)),
            (IntrinsicKind::BlockStore, &[pointer, lanes]) => {
                self.store(cursor, info, pointer, lanes)?;
                None
            }
            (IntrinsicKind::Gather, &[addresses]) => {
                let addresses = if info.masked {
                    // Inactive lanes may load any value, but the load must not trap. They load from
                    // address 0.
                    let zero = cursor.ins().iconst(types::I32, 0);
                    let zeros = cursor.ins().splat(types::I32X16, zero);
                    let mask = self.read_mask(cursor)?;
                    self.call(
                        cursor,
                        "__builtin_npu_lanes_mix",
                        &[addresses, zeros, mask],
                        Some(types::I32X16),
                    )?
                } else {
                    addresses
                };
                let words = self.call(cursor, "__builtin_npu_gather_lanes", &[addresses], Some(types::I32X16))?;
                Some(cast(cursor, words, result?))
            }
            (IntrinsicKind::Scatter, &[addresses, lanes]) => {
                let mask = if info.masked {
                    self.read_mask(cursor)?
                } else {
                    cursor.ins().iconst(types::I32, ALL_LANES)
                };
                let words = cast(cursor, lanes, types::I32X16);
                self.call(cursor, "__builtin_npu_scatter_lanes", &[addresses, words, mask], None);
                None
            }
            (IntrinsicKind::ReadRegister, []) => Some(self.read_register(cursor, info.register)?),
            (IntrinsicKind::ReadCycles, []) => Some(self.read_cycles(cursor)?),
            _ => return None,
        })
    }

    fn read_mask(&self, cursor: &mut FuncCursor<'_>) -> Option<Value> {
        let address = cursor.ins().stack_addr(types::I32, self.mask?, 0);
        Some(cursor.ins().load(types::I32, MemFlagsData::trusted(), address, 0))
    }

    /// Writes the slot of the mask. The slot always contains one bit for each lane; the upper bits
    /// are zero.
    fn write_mask(&self, cursor: &mut FuncCursor<'_>, mask: Value) -> Option<()> {
        let dfg = &cursor.func.dfg;
        let clean = match dfg.value_def(dfg.resolve_aliases(mask)) {
            ValueDef::Result(inst, _) => dfg.insts[inst].opcode() == Opcode::VhighBits,
            _ => false,
        };
        let mask = if clean {
            mask
        } else {
            let all = cursor.ins().iconst(types::I32, ALL_LANES);
            cursor.ins().band(mask, all)
        };
        write_slot(cursor, self.mask?, mask);
        Some(())
    }

    /// Loads a whole vector. Inactive lanes may receive any value, so the mask is ignored.
    fn load(&mut self, cursor: &mut FuncCursor<'_>, info: &IntrinsicInfo, pointer: Value, result: Type) -> Value {
        let flags = flags(cursor, info);
        let bits = info.element_bits.into();
        let Some(packed) = packed_type(bits) else {
            return cursor.ins().load(result, flags, pointer, 0);
        };
        let elements = cursor.ins().load(packed, flags, pointer, 0);
        let Some(lanes) = self.call(cursor, "__builtin_npu_lanes_reinterpret", &[elements], Some(result)) else {
            return elements;
        };
        if info.signed {
            let amount = cursor.ins().iconst(types::I32, i64::from(32 - bits));
            let high = cursor.ins().ishl(lanes, amount);
            cursor.ins().sshr(high, amount)
        } else {
            let element = cursor.ins().iconst(types::I32, (1 << bits) - 1);
            let element = cursor.ins().splat(types::I32X16, element);
            cursor.ins().band(lanes, element)
        }
    }

    fn store(&mut self, cursor: &mut FuncCursor<'_>, info: &IntrinsicInfo, pointer: Value, lanes: Value) -> Option<()> {
        let bits: u32 = info.element_bits.into();
        if !info.masked {
            let flags = flags(cursor, info);
            let stored = match packed_type(bits) {
                Some(packed) => self.call(cursor, "__builtin_npu_lanes_reinterpret", &[lanes], Some(packed))?,
                None => lanes,
            };
            cursor.ins().store(flags, stored, pointer, 0);
            return Some(());
        }
        // Vector stores to main memory ignore the mask, and the scratchpad cannot store packed
        // elements. In these cases, a routine stores lane by lane.
        let apart = if info.scratchpad {
            packed_type(bits).is_some()
        } else {
            self.isa.has_erratum(Erratum::MainMemoryVectorStoreUnmasked)
        };
        let action = if apart { "store_lanes" } else { "lanes_store" };
        let space = if info.scratchpad { "_scratchpad" } else { "" };
        let name = format!("__builtin_npu_{action}_{bits}{space}");
        let mask = self.read_mask(cursor)?;
        let words = cast(cursor, lanes, types::I32X16);
        self.call(cursor, &name, &[pointer, words, mask], None);
        Some(())
    }

    fn read_register(&mut self, cursor: &mut FuncCursor<'_>, register: u8) -> Option<Value> {
        let number = cursor.ins().iconst(types::I32, i64::from(register));
        self.call(cursor, "__builtin_npu_read_control_reg", &[number], Some(types::I32))
    }

    /// Reads the 64-bit cycle counter in halves: high, low, high. If the high half changed in
    /// between, a low half with the sign bit set was read before the change and belongs to the
    /// first high half. Otherwise it belongs to the second.
    fn read_cycles(&mut self, cursor: &mut FuncCursor<'_>) -> Option<Value> {
        let mut read = |register: ControlRegister| self.read_register(cursor, register.number());
        let before = read(ControlRegister::CyclesHigh)?;
        let low = read(ControlRegister::CyclesLow)?;
        let after = read(ControlRegister::CyclesHigh)?;
        let zero = cursor.ins().iconst(types::I32, 0);
        let large = cursor.ins().icmp(IntCC::SignedLessThan, low, zero);
        let high = cursor.ins().select(large, before, after);
        Some(cursor.ins().iconcat(low, high))
    }

    /// Emits a call of a runtime routine, a pseudo-instruction, or another intrinsic.
    fn call(&mut self, cursor: &mut FuncCursor<'_>, name: &str, args: &[Value], result: Option<Type>) -> Option<Value> {
        self.calls.call(cursor, name, args, result)
    }
}

/// Returns the vector type in memory for elements smaller than a lane.
fn packed_type(bits: u32) -> Option<Type> {
    Type::int(bits as u16)
        .and_then(vector_of)
        .filter(|ty| ty.lane_bits() < 32)
}

fn cast(cursor: &mut FuncCursor<'_>, lanes: Value, to: Type) -> Value {
    if cursor.func.dfg.value_type(lanes) == to {
        return lanes;
    }
    let flags = MemFlagsData::new().with_endianness(Endianness::Little);
    cursor.ins().bitcast(to, flags, lanes)
}

/// Returns the flags for an access to a whole vector.
fn flags(cursor: &mut FuncCursor<'_>, info: &IntrinsicInfo) -> MemFlagsData {
    let flags = MemFlagsData::new().with_aligned();
    if !info.scratchpad {
        return flags;
    }
    let region = cursor.func.dfg.alias_regions.insert(AliasRegionData {
        user_id: SCRATCHPAD_SPACE,
        description: "scratchpad".into(),
    });
    flags.with_alias_region(Some(region))
}
