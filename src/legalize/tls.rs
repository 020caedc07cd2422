//! Addresses of thread-local symbols: the block of the thread, which a routine of the runtime finds, and the symbol's place in it,
//! which is what a linker takes for the address of the symbol.

use super::routines::import;
use crate::intrinsics::TLS_BLOCK;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{
    Function, GlobalValue, GlobalValueData, InstBuilder, InstructionData, Opcode, Value, types,
};
use cranelift_codegen::isa::CallConv;
use std::collections::HashMap;

/// What is rewritten here, of symbols that are thread-local.
pub(super) const OPCODES: [Opcode; 2] = [Opcode::TlsValue, Opcode::SymbolValue];

/// Whether a function has such symbols.
pub(super) fn has_symbols(func: &Function) -> bool {
    func.global_values.values().any(is_thread_local)
}

fn is_thread_local(data: &GlobalValueData) -> bool {
    matches!(data, GlobalValueData::Symbol { tls: true, .. })
}

/// Rewrites the function. Addresses in one block of it share one call.
pub(super) fn run(func: &mut Function) {
    let mut places = HashMap::new();
    let mut routine = None;
    let mut cursor = FuncCursor::new(func);
    while cursor.next_block().is_some() {
        let mut start = None;
        while let Some(inst) = cursor.next_inst() {
            let InstructionData::UnaryGlobalValue { global_value, .. } = cursor.func.dfg.insts[inst] else {
                continue;
            };
            if !is_thread_local(&cursor.func.global_values[global_value]) {
                continue;
            }
            cursor.use_srcloc(inst);
            let start = *start.get_or_insert_with(|| {
                let routine =
                    *routine.get_or_insert_with(|| import(cursor.func, TLS_BLOCK, CallConv::Probestack, 0, 1));
                let call = cursor.ins().call(routine, &[]);
                cursor.func.dfg.first_result(call)
            });
            let place = *places
                .entry(global_value)
                .or_insert_with(|| place_of(cursor.func, global_value));
            let place = cursor.ins().symbol_value(types::I32, place);
            address(&mut cursor, start, place);
        }
    }
}

/// Puts the sum in the place of the instruction at the cursor, in its type.
fn address(cursor: &mut FuncCursor<'_>, start: Value, place: Value) {
    let Some(inst) = cursor.current_inst() else { return };
    let ty = cursor.func.dfg.ctrl_typevar(inst);
    if ty == types::I32 {
        cursor.func.replace(inst).iadd(start, place);
    } else {
        let address = cursor.ins().iadd(start, place);
        cursor.func.replace(inst).uextend(ty, address);
    }
}

/// The symbol as one that is not thread-local.
fn place_of(func: &mut Function, global: GlobalValue) -> GlobalValue {
    let mut data = func.global_values[global].clone();
    if let GlobalValueData::Symbol { tls, .. } = &mut data {
        *tls = false;
    }
    func.create_global_value(data)
}
