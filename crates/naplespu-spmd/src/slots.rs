//! Lays out stack slots so that each lane has its own.
//!
//! If a slot is only accessed by words, the words of the lanes lie side by side: equal offsets are
//! then one access to a vector. Otherwise the copies of the slot follow each other.

use crate::builtins::Builtin;
use crate::error::Error;
use crate::options::Options;
use crate::{builtins, facts};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{
    Block, FuncRef, Function, Inst, InstBuilder, InstructionData, Opcode, StackSlot, Value, types,
};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a word.
const WORD: u32 = 4;

/// Alignment of a slot for all lanes: that of a vector.
const ALIGN_SHIFT: u8 = 6;

/// Lays out the slots of the function for this number of lanes.
pub fn run(func: &mut Function, lanes: u32) -> Result<(), Error> {
    func.dfg.resolve_all_aliases();
    let addresses: Vec<Inst> = insts(func)
        .filter(|&inst| func.dfg.insts[inst].opcode() == Opcode::StackAddr)
        .collect();
    if addresses.is_empty() {
        return Ok(());
    }
    let pointers = Pointers::new(func, &addresses);
    let lane_id = builtins::import(func, "lane_id", Builtin::LaneId);
    let slots: BTreeSet<StackSlot> = addresses.iter().filter_map(|&inst| slot_of(func, inst)).collect();
    for slot in slots {
        let interleaved = !pointers.escaping.contains(&slot);
        let name = func.name.to_string();
        let data = &mut func.sized_stack_slots[slot];
        let align = 1_u32.checked_shl(data.align_shift.into()).unwrap_or(0);
        let size = data.size.checked_next_multiple_of(align.max(WORD));
        let sizes = size.and_then(|size| Some((size, size.checked_mul(lanes)?)));
        let (size, all) = sizes.ok_or(Error::StackSlot(name))?;
        data.size = all;
        data.align_shift = data.align_shift.max(ALIGN_SHIFT);
        if interleaved {
            pointers.interleave(func, slot, lanes);
        }
        let stride = if interleaved { WORD } else { size };
        for &inst in &addresses {
            if slot_of(func, inst) == Some(slot) {
                add_lane(func, inst, lane_id, stride);
            }
        }
    }
    Ok(())
}

fn insts(func: &Function) -> impl Iterator<Item = Inst> + '_ {
    func.layout.blocks().flat_map(|block| func.layout.block_insts(block))
}

fn slot_of(func: &Function, inst: Inst) -> Option<StackSlot> {
    match func.dfg.insts[inst] {
        InstructionData::StackAddr { stack_slot, .. } => Some(stack_slot),
        _ => None,
    }
}

/// The values that are addresses in slots.
struct Pointers {
    of: BTreeMap<Value, StackSlot>,
    /// Slots with other uses than accesses to words.
    escaping: BTreeSet<StackSlot>,
}

impl Pointers {
    fn new(func: &Function, addresses: &[Inst]) -> Self {
        let mut of: BTreeMap<Value, StackSlot> = BTreeMap::new();
        let mut escaping = BTreeSet::new();
        for &inst in addresses {
            if let InstructionData::StackAddr { stack_slot, offset, .. } = func.dfg.insts[inst] {
                of.insert(func.dfg.first_result(inst), stack_slot);
                if i32::from(offset) % WORD as i32 != 0 {
                    escaping.insert(stack_slot);
                }
            }
        }
        let order: Vec<Block> = func.layout.blocks().collect();
        let options = Options {
            workgroup_size: [1; 3],
            workgroup_bytes: 0,
            lanes: 1,
            alignment: Vec::new(),
        };
        let alignment = facts::alignment(func, &order, &options, 1);
        let is_word_offset = |value: &Value| alignment.get(value).is_some_and(|&align| align >= WORD);
        loop {
            let before = of.len();
            for inst in insts(func) {
                let used: Vec<StackSlot> = func
                    .dfg
                    .inst_values(inst)
                    .filter_map(|value| of.get(&value).copied())
                    .collect();
                let Some(&slot) = used.first() else {
                    continue;
                };
                match func.dfg.insts[inst] {
                    InstructionData::Binary {
                        opcode: Opcode::Iadd,
                        args,
                    } if used.len() == 1 => {
                        let offset = if of.contains_key(&args[0]) { args[1] } else { args[0] };
                        of.insert(func.dfg.first_result(inst), slot);
                        if !is_word_offset(&offset) {
                            escaping.insert(slot);
                        }
                    }
                    InstructionData::Load {
                        opcode: Opcode::Load,
                        offset,
                        ..
                    } if is_word(func, func.dfg.first_result(inst)) && i32::from(offset) % WORD as i32 == 0 => {}
                    InstructionData::Store {
                        opcode: Opcode::Store,
                        args,
                        offset,
                        ..
                    } if !of.contains_key(&args[0])
                        && is_word(func, args[0])
                        && i32::from(offset) % WORD as i32 == 0 => {}
                    _ => escaping.extend(used),
                }
            }
            if of.len() == before {
                return Self { of, escaping };
            }
        }
    }

    /// Multiplies the offsets in a slot.
    fn interleave(&self, func: &mut Function, slot: StackSlot, lanes: u32) {
        let factor = lanes as i32;
        for inst in insts(func).collect::<Vec<_>>() {
            let is_pointer = |value: &Value| self.of.get(value) == Some(&slot);
            match &mut func.dfg.insts[inst] {
                InstructionData::StackAddr { stack_slot, offset, .. } if *stack_slot == slot => {
                    *offset = i32::from(*offset).wrapping_mul(factor).into();
                }
                InstructionData::Load { arg, offset, .. } if is_pointer(arg) => {
                    *offset = i32::from(*offset).wrapping_mul(factor).into();
                }
                InstructionData::Store { args, offset, .. } if is_pointer(&args[1]) => {
                    *offset = i32::from(*offset).wrapping_mul(factor).into();
                }
                InstructionData::Binary { args, .. } if args.iter().any(is_pointer) => {
                    let index = usize::from(is_pointer(&args[0]));
                    let offset = args[index];
                    let mut cursor = FuncCursor::new(func).at_inst(inst);
                    cursor.use_srcloc(inst);
                    let shift = cursor.ins().iconst(types::I32, i64::from(lanes.trailing_zeros()));
                    let scaled = cursor.ins().ishl(offset, shift);
                    if let InstructionData::Binary { args, .. } = &mut func.dfg.insts[inst] {
                        args[index] = scaled;
                    }
                }
                _ => {}
            }
        }
    }
}

fn is_word(func: &Function, value: Value) -> bool {
    matches!(func.dfg.value_type(value), types::I32 | types::F32)
}

/// Adds the offset of the lane to an address.
fn add_lane(func: &mut Function, inst: Inst, lane_id: FuncRef, stride: u32) {
    let old = func.dfg.first_result(inst);
    let ty = func.dfg.value_type(old);
    let base = func.dfg.replace_result(old, ty);
    let mut cursor = FuncCursor::new(func).after_inst(inst);
    cursor.use_srcloc(inst);
    let call = cursor.ins().call(lane_id, &[]);
    let lane = cursor.func.dfg.first_result(call);
    let stride = cursor.ins().iconst(types::I32, i64::from(stride));
    let offset = cursor.ins().imul(lane, stride);
    let address = cursor.ins().iadd(base, offset);
    cursor.func.dfg.change_to_alias(old, address);
}
