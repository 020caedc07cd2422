//! Branches, branch tables, traps, calls and constants.

use super::instance::{Instance, constants_of};
use super::operation::{Small, TRAP, all_types};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::immediates::{Ieee16, Ieee32, Ieee64};
use cranelift_codegen::ir::{
    AbiParam, ArgumentPurpose, BlockCall, ConstantData, InstBuilder as _, JumpTableData, MemFlagsData, Opcode,
    Signature, StackSlotData, StackSlotKind, Value, types,
};
use cranelift_codegen::isa::CallConv;

/// Constants of every type.
fn constants() -> Vec<Instance> {
    let mut out = Vec::new();
    for ty in all_types() {
        for value in constants_of(ty.as_int()) {
            let mut small = Small::default();
            let value = match ty {
                types::F16 => small.cursor().ins().f16const(Ieee16::with_bits(value as u16)),
                types::F32 => small.cursor().ins().f32const(Ieee32::with_bits(value as u32)),
                types::F64 => small.cursor().ins().f64const(Ieee64::with_bits(value as u64)),
                _ if ty.is_vector() || ty == types::F128 => {
                    let bytes: Vec<u8> = (0..ty.bytes())
                        .map(|at| (value as u32).wrapping_mul(at * 2 + 1).to_le_bytes()[0])
                        .collect();
                    let handle = small.func.dfg.constants.insert(ConstantData::from(&bytes[..]));
                    match ty.is_vector() {
                        true => small.cursor().ins().vconst(ty, handle),
                        false => small.cursor().ins().f128const(handle),
                    }
                }
                _ => match small.constant(ty, value) {
                    Some(value) => value,
                    None => continue,
                },
            };
            small.ret(&[value]);
            out.push(Instance::new(small, ty));
        }
    }
    out
}

/// Traps, with and without a compare as condition.
fn traps() -> Vec<Instance> {
    let mut out = Vec::new();
    for ty in [types::I8, types::I16, types::I32, types::I64, types::I128] {
        for opcode in [Opcode::Trapz, Opcode::Trapnz] {
            let mut small = Small::default();
            let value = small.param(ty);
            match opcode {
                Opcode::Trapz => small.cursor().ins().trapz(value, TRAP),
                _ => small.cursor().ins().trapnz(value, TRAP),
            };
            small.ret(&[value]);
            out.push(Instance::new(small, ty));
        }
    }
    let mut small = Small::default();
    small.cursor().ins().trap(TRAP);
    out.push(Instance::new(small, types::INVALID));
    out
}

/// Branches on values and compares, with block parameters that are swapped on an edge.
fn branches() -> Vec<Instance> {
    let mut out = Vec::new();
    for ty in [
        types::I8,
        types::I16,
        types::I32,
        types::I64,
        types::I128,
        types::F32,
        types::F64,
    ] {
        let conditions = IntCC::all().iter().map(|&cc| Some(cc)).chain([None]);
        for condition in conditions.filter(|condition| ty.is_int() || condition.is_none()) {
            let mut small = Small::default();
            let (a, b) = (small.param(ty), small.param(ty));
            let entry = small.block;
            let join = small.next_block();
            let (x, y) = (
                small.func.dfg.append_block_param(join, ty),
                small.func.dfg.append_block_param(join, ty),
            );
            small.ret(&[x, y]);
            small.block = entry;
            let flag = match condition {
                Some(cc) => small.cursor().ins().icmp(cc, a, b),
                None if ty.is_int() => a,
                None => small.param(types::I32),
            };
            let (same, swapped) = ([a.into(), b.into()], [b.into(), a.into()]);
            small.cursor().ins().brif(flag, join, &same, join, &swapped);
            out.push(Instance::new(small, ty));
        }
    }
    out
}

/// Branches and traps on constants.
fn on_constants() -> Vec<Instance> {
    let mut out = Vec::new();
    for ty in [types::I8, types::I32, types::I64] {
        for number in [0, 1, 5] {
            let mut small = Small::default();
            let (a, b) = (small.param(types::I32), small.param(types::I32));
            let flag = small.cursor().ins().iconst(ty, number);
            let entry = small.block;
            let first = small.next_block();
            small.ret(&[a]);
            let second = small.next_block();
            small.cursor().ins().return_(&[b]);
            small.block = entry;
            small.cursor().ins().brif(flag, first, &[], second, &[]);
            out.push(Instance::new(small, ty));
        }
    }
    out
}

/// Branch tables of several sizes. The longest one is split into two tables.
fn tables() -> Vec<Instance> {
    let mut out = Vec::new();
    for count in [0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 40, 4100] {
        let mut small = Small::default();
        let index = small.param(types::I32);
        let entry = small.block;
        let join = small.next_block();
        let result = small.func.dfg.append_block_param(join, types::I32);
        small.ret(&[result]);
        let mut calls = Vec::new();
        for number in 0..=count.min(40) {
            let block = small.next_block();
            let value = small.cursor().ins().iconst(types::I32, 100 + number);
            small.cursor().ins().jump(join, &[value.into()]);
            calls.push(small.func.dfg.block_call(block, &[]));
        }
        small.block = entry;
        let default = calls.remove(calls.len() - 1);
        // In a long table, entries share blocks.
        let calls: Vec<BlockCall> = calls.iter().copied().cycle().take(count as usize).collect();
        let table = small.func.create_jump_table(JumpTableData::new(default, &calls));
        small.cursor().ins().br_table(index, table);
        out.push(Instance::new(small, types::I32));
    }
    out
}

/// Calls with parameters and results of each type, in registers and on the stack.
fn calls() -> Vec<Instance> {
    let mut out = Vec::new();
    let plain = |ty| AbiParam::new(ty);
    let narrow = [types::I8, types::I16].into_iter();
    let extended = narrow.flat_map(|ty| [AbiParam::new(ty).uext(), AbiParam::new(ty).sext()]);
    for param in all_types().map(plain).chain(extended) {
        let ty = param.value_type;
        for count in [1, 2, 9] {
            for indirect in [false, true] {
                let mut small = Small::default();
                small.func.signature.returns.push(param);
                let mut sig = Signature::new(CallConv::SystemV);
                sig.params.extend(vec![param; count]);
                sig.returns.push(param);
                let sig_ref = small.func.import_signature(sig);
                let args: Vec<Value> = (0..count).map(|_| small.param(ty)).rev().collect();
                let call = if indirect {
                    let callee = small.param(types::I32);
                    small.cursor().ins().call_indirect(sig_ref, callee, &args)
                } else {
                    let callee = small.callee(sig_ref);
                    small.cursor().ins().call(callee, &args)
                };
                let results = small.func.dfg.inst_results(call).to_vec();
                small.ret(&results);
                out.push(Instance::new(small, ty));
            }
        }
    }
    out
}

/// Calls with more results than registers, and than the offsets of a load reach.
fn many_results() -> Vec<Instance> {
    let mut out = Vec::new();
    for (ty, count) in [
        (types::I32, 20),
        (types::I32, 150),
        (types::I64, 80),
        (types::I32X16, 12),
    ] {
        let mut small = Small::default();
        let mut sig = Signature::new(CallConv::SystemV);
        sig.returns.extend(vec![AbiParam::new(ty); count]);
        let sig_ref = small.func.import_signature(sig);
        let callee = small.callee(sig_ref);
        let call = small.cursor().ins().call(callee, &[]);
        let results = small.func.dfg.inst_results(call).to_vec();
        // Some of them, in the other order.
        let some: Vec<Value> = results.into_iter().rev().step_by(count / 10).collect();
        small
            .func
            .signature
            .returns
            .extend(some.iter().map(|_| AbiParam::new(ty)));
        small.ret(&some);
        out.push(Instance::new(small, ty));
    }
    out
}

/// Selects on one condition; an operand of the second one is the result of the first one.
fn chained_selects() -> Vec<Instance> {
    let mut out = Vec::new();
    for ty in [types::I8, types::I32, types::I64, types::I128, types::F32, types::F64] {
        for order in 0..4 {
            let mut small = Small::default();
            let flag = small.param(types::I8);
            let (a, b, c) = (small.param(ty), small.param(ty), small.param(ty));
            let first = small.cursor().ins().select(flag, a, b);
            let args = [(first, c), (c, first), (first, a), (b, first)][order];
            let second = small.cursor().ins().select(flag, args.0, args.1);
            let third = small.cursor().ins().select(flag, c, a);
            small.ret(&[first, second, third]);
            out.push(Instance::new(small, ty));
        }
    }
    out
}

/// Calls with structures as arguments: of several sizes, at addresses of several alignments.
fn structs() -> Vec<Instance> {
    let mut out = Vec::new();
    for size in [1, 4, 6, 8, 12, 20, 64, 100] {
        for offset in [None, Some(0), Some(2), Some(4)] {
            let mut small = Small::default();
            let mut sig = Signature::new(CallConv::SystemV);
            sig.params
                .push(AbiParam::special(types::I32, ArgumentPurpose::StructArgument(size)));
            sig.params.push(AbiParam::new(types::I32));
            let sig_ref = small.func.import_signature(sig);
            let number = small.param(types::I32);
            let source = match offset {
                None => small.param(types::I32),
                Some(offset) => {
                    let data = StackSlotData::new(StackSlotKind::ExplicitSlot, size + 8, 3);
                    let slot = small.func.create_sized_stack_slot(data);
                    let source = small.cursor().ins().stack_addr(types::I32, slot, offset);
                    small.cursor().ins().istore8(MemFlagsData::new(), number, source, 0);
                    source
                }
            };
            let callee = small.callee(sig_ref);
            small.cursor().ins().call(callee, &[source, number]);
            small.ret(&[number]);
            out.push(Instance::new(small, types::I32));
        }
    }
    out
}

/// Tail calls with arguments in registers and on the stack.
fn tail_calls() -> Vec<Instance> {
    let mut out = Vec::new();
    for ty in [types::I8, types::I32, types::I64, types::F32, types::I32X16] {
        for (own, count) in [(0, 0), (1, 1), (2, 9), (9, 2), (3, 20), (20, 3), (20, 20)] {
            for indirect in [false, true] {
                let mut small = Small::default();
                small.func.signature.call_conv = CallConv::Tail;
                small.func.signature.returns.push(AbiParam::new(ty));
                let mut sig = Signature::new(CallConv::Tail);
                sig.params.extend(vec![AbiParam::new(ty); count]);
                sig.returns.push(AbiParam::new(ty));
                let sig_ref = small.func.import_signature(sig);
                let address = small.param(types::I32);
                let params: Vec<Value> = (0..own.max(1)).map(|_| small.param(ty)).collect();
                let args: Vec<Value> = (0..count).map(|at| params[(at * 7 + 1) % params.len()]).collect();
                if indirect {
                    small.cursor().ins().return_call_indirect(sig_ref, address, &args);
                } else {
                    let callee = small.callee(sig_ref);
                    small.cursor().ins().return_call(callee, &args);
                }
                out.push(Instance::new(small, ty));
            }
        }
    }
    out
}

/// Returns the instances of control flow.
pub fn instances() -> Vec<Instance> {
    let calls = [calls(), many_results(), structs(), tail_calls()].concat();
    let branches = [branches(), on_constants(), tables()].concat();
    [constants(), traps(), branches, chained_selects(), calls].concat()
}
