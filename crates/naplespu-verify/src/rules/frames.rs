//! Frames, registers that survive calls, pools of constants, and functions that are longer than the
//! reach of a branch.

use super::instance::Instance;
use super::operation::{Small, TRAP};
use cranelift_codegen::ir::{
    AbiParam, Block, ConstantData, FuncRef, InstBuilder as _, JumpTableData, MemFlagsData, Signature, StackSlotData,
    StackSlotKind, Type, Value, types,
};
use cranelift_codegen::isa::CallConv;

/// Declares a function with these types.
fn callee(small: &mut Small, params: &[Type], returns: &[Type]) -> FuncRef {
    let mut signature = Signature::new(CallConv::SystemV);
    signature.params.extend(params.iter().copied().map(AbiParam::new));
    signature.returns.extend(returns.iter().copied().map(AbiParam::new));
    let signature = small.func.import_signature(signature);
    small.callee(signature)
}

/// The sizes of stack slots: around the limits of offsets and immediates.
const SIZES: [u32; 15] = [
    4, 60, 64, 124, 252, 256, 260, 508, 512, 1000, 4096, 32_760, 32_768, 65_536, 100_000,
];

/// Two slots whose first and last words are used, with and without a call between the uses.
fn slots() -> Vec<Instance> {
    let mut out = Vec::new();
    for size in SIZES {
        for align in [2, 4, 6, 8] {
            for calls in [false, true] {
                let mut small = Small::default();
                let values: Vec<Value> = (0..4).map(|_| small.param(types::I32)).collect();
                let mut addresses = Vec::new();
                for size in [size, 20] {
                    let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, size, align);
                    let slot = small.func.create_sized_stack_slot(slot);
                    for offset in [0, size.cast_signed() - 4] {
                        addresses.push((slot, offset));
                    }
                }
                let memory = MemFlagsData::new();
                for (&value, &(slot, offset)) in values.iter().zip(&addresses) {
                    let address = small.cursor().ins().stack_addr(types::I32, slot, offset);
                    small.cursor().ins().store(memory, value, address, 0);
                }
                if calls {
                    // More arguments than registers, so the frame has an area for them.
                    let callee = callee(&mut small, &[types::I32; 14], &[]);
                    small.cursor().ins().call(callee, &[values[0]; 14]);
                }
                let mut results = Vec::new();
                for &(slot, offset) in &addresses {
                    let address = small.cursor().ins().stack_addr(types::I32, slot, offset);
                    results.push(small.cursor().ins().load(types::I32, memory, address, 0));
                }
                small.ret(&results[..]);
                out.push(Instance::new(small, types::I32));
            }
        }
    }
    out
}

/// Values that live across a call, in saved registers and on the stack.
fn saved() -> Vec<Instance> {
    let mut out = Vec::new();
    for ty in [types::I32, types::I64, types::I32X16] {
        for count in [1, 4, 9, 30, 60] {
            if ty.is_vector() && count > 30 {
                continue;
            }
            let mut small = Small::default();
            let pointer = small.param(types::I32);
            let memory = MemFlagsData::new().with_aligned();
            let size = ty.bytes().cast_signed();
            let values: Vec<Value> = (0..count)
                .map(|at| small.cursor().ins().load(ty, memory, pointer, at * size))
                .collect();
            let callee = callee(&mut small, &[types::I32], &[types::I32]);
            let call = small.cursor().ins().call(callee, &[pointer]);
            let result = small.func.dfg.inst_results(call)[0];
            for (at, &value) in values.iter().enumerate() {
                small.cursor().ins().store(memory, value, pointer, at as i32 * size);
            }
            small.ret(&[result]);
            out.push(Instance::new(small, ty));
        }
    }
    out
}

/// Constants of vectors, so many that their pool is out of reach of one base.
fn pools() -> Vec<Instance> {
    let mut out = Vec::new();
    for count in [1, 4, 5, 12, 40] {
        let mut small = Small::default();
        let mut sum = small.param(types::I32X16);
        for number in 0..count {
            let bytes: Vec<u8> = (0..64u32).map(|at| (at * 7 + number * 29) as u8).collect();
            let handle = small.func.dfg.constants.insert(ConstantData::from(&bytes[..]));
            let constant = small.cursor().ins().vconst(types::I32X16, handle);
            sum = match number % 2 {
                0 => small.cursor().ins().bxor(sum, constant),
                _ => small.cursor().ins().iadd(sum, constant),
            };
        }
        small.ret(&[sum]);
        out.push(Instance::new(small, types::I32X16));
    }
    out
}

/// The number of instructions within the reach of a branch.
const REACH: usize = 1 << 15;

/// Appends stores, one instruction each.
fn fill(small: &mut Small, pointer: Value, values: [Value; 2], count: usize) {
    let memory = MemFlagsData::new().with_aligned();
    for at in 0..count {
        let offset = 4 * (at as i32 % 4);
        small.cursor().ins().store(memory, values[at / 4 % 2], pointer, offset);
    }
}

/// A function with a block of a given number of instructions.
struct Long {
    small: Small,
    pointer: Value,
    values: [Value; 2],
    entry: Block,
    count: usize,
}

impl Long {
    fn new(count: usize) -> Self {
        let mut small = Small::default();
        let pointer = small.param(types::I32);
        let values = [small.param(types::I32), small.param(types::I32)];
        let entry = small.block;
        Self {
            small,
            pointer,
            values,
            entry,
            count,
        }
    }

    /// Adds a block that returns a number.
    fn returning(&mut self, number: i64) -> Block {
        let block = self.small.next_block();
        let value = self.small.cursor().ins().iconst(types::I32, number);
        self.small.ret(&[value]);
        block
    }

    /// Adds the long block, which returns a number.
    fn long(&mut self, number: i64) -> Block {
        let block = self.small.next_block();
        fill(&mut self.small, self.pointer, self.values, self.count);
        let value = self.small.cursor().ins().iconst(types::I32, number);
        self.small.ret(&[value]);
        block
    }

    fn instance(self) -> Instance {
        Instance::new(self.small, types::I32)
    }
}

/// Branches over a long block, forwards and backwards, with both conditions.
fn over(count: usize, inverted: bool) -> Instance {
    let mut long = Long::new(count);
    let before = long.returning(1);
    let block = long.long(2);
    let after = long.small.next_block();
    long.small.cursor().ins().brif(long.values[1], before, &[], block, &[]);
    long.small.block = long.entry;
    let (then, other) = if inverted { (block, after) } else { (after, block) };
    long.small.cursor().ins().brif(long.values[0], then, &[], other, &[]);
    long.instance()
}

/// A branch table with entries beyond a long block.
fn table(count: usize) -> Instance {
    let mut long = Long::new(count);
    let near = long.returning(1);
    let block = long.long(2);
    let far = [long.returning(3), long.returning(4)];
    long.small.block = long.entry;
    let calls: Vec<_> = [near, far[0], block, far[1], far[0]]
        .into_iter()
        .map(|block| long.small.func.dfg.block_call(block, &[]))
        .collect();
    let table = JumpTableData::new(calls[1], &calls);
    let table = long.small.func.create_jump_table(table);
    long.small.cursor().ins().br_table(long.values[0], table);
    long.instance()
}

/// Traps and calls before and after a long block.
fn others(count: usize) -> Vec<Instance> {
    let mut out = Vec::new();
    let mut long = Long::new(count);
    long.small.cursor().ins().trapnz(long.values[0], TRAP);
    fill(&mut long.small, long.pointer, long.values, count);
    long.small.cursor().ins().trapz(long.values[1], TRAP);
    long.small.ret(&[]);
    out.push(long.instance());
    for is_indirect in [false, true] {
        let mut long = Long::new(count);
        let callee = callee(&mut long.small, &[types::I32], &[types::I32]);
        let mut results = Vec::new();
        for _ in 0..2 {
            let call = match is_indirect {
                false => long.small.cursor().ins().call(callee, &[long.values[0]]),
                true => {
                    let signature = long.small.func.dfg.ext_funcs[callee].signature;
                    let mut cursor = long.small.cursor();
                    cursor.ins().call_indirect(signature, long.pointer, &[long.values[0]])
                }
            };
            results.push(long.small.func.dfg.inst_results(call)[0]);
            if results.len() == 1 {
                fill(&mut long.small, long.pointer, long.values, count);
            }
        }
        long.small.ret(&results);
        out.push(long.instance());
    }
    out
}

/// Returns the instances of frames.
pub fn instances() -> Vec<Instance> {
    [slots(), saved(), pools()].concat()
}

/// Returns the instances of long functions. Each has more than 10,000 instructions.
pub fn long() -> Vec<Instance> {
    let mut out = Vec::new();
    for count in [REACH / 3, REACH + 100, 3 * REACH] {
        out.extend([false, true].map(|inverted| over(count, inverted)));
        out.push(table(count));
    }
    // Around the limit of the reach.
    out.extend((REACH - 8..REACH + 2).map(|count| over(count, count % 2 == 0)));
    for count in [REACH / 2 + 10, REACH + 100] {
        out.extend(others(count));
    }
    out
}
