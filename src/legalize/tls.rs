//! Expands addresses of thread-local symbols.
//!
//! A routine of the runtime returns the address of the thread's block. The linker resolves the
//! symbol to its offset in the block. The sum is the address.

use super::routines::import;
use crate::intrinsics::TLS_BLOCK;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::entity::packed_option::PackedOption;
use cranelift_codegen::entity::{EntitySet, SecondaryMap};
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{
    Block, Function, GlobalValue, GlobalValueData, Inst, InstBuilder, InstructionData, Opcode, Value, types,
};
use cranelift_codegen::isa::CallConv;
use cranelift_codegen::loop_analysis::LoopAnalysis;
use std::collections::HashMap;

/// The opcodes that this file rewrites, if their symbols are thread-local.
pub(super) const OPCODES: [Opcode; 2] = [Opcode::TlsValue, Opcode::SymbolValue];

/// Returns whether a function has thread-local symbols.
pub(super) fn has_symbols(func: &Function) -> bool {
    func.global_values.values().any(is_thread_local)
}

fn is_thread_local(data: &GlobalValueData) -> bool {
    matches!(data, GlobalValueData::Symbol { tls: true, .. })
}

/// Rewrites the function. The call that reads the block's address is outside of all loops, and all
/// accesses that it dominates share it. If the function switches stacks, it may continue on another
/// thread, so each access has its own call.
pub(super) fn run(func: &mut Function, switches_stacks: bool) {
    let mut accesses = Vec::new();
    for block in func.layout.blocks() {
        for inst in func.layout.block_insts(block) {
            if let InstructionData::UnaryGlobalValue { global_value, .. } = func.dfg.insts[inst]
                && is_thread_local(&func.global_values[global_value])
            {
                accesses.push((block, inst, global_value));
            }
        }
    }
    if accesses.is_empty() {
        return;
    }
    let routine = import(func, TLS_BLOCK, CallConv::Probestack, 0, 1);
    let call_at = |func: &mut Function, inst: Inst| {
        let mut cursor = FuncCursor::new(func).at_inst(inst);
        cursor.use_srcloc(inst);
        let call = cursor.ins().call(routine, &[]);
        cursor.func.dfg.first_result(call)
    };
    // For each block with accesses: the block of the call.
    let homes = if switches_stacks {
        SecondaryMap::new()
    } else {
        homes(func, &accesses)
    };
    let mut starts = HashMap::new();
    let mut places = HashMap::new();
    for &(block, inst, _) in &accesses {
        starts.entry(block).or_insert(inst);
    }
    let first_in = |block: Block| starts.get(&block).copied();
    let mut calls: HashMap<Block, Value> = HashMap::new();
    for &(block, inst, global) in &accesses {
        let start = match homes[block].expand() {
            None => call_at(func, inst),
            Some(home) => match (calls.get(&home), first_in(home).or(func.layout.last_inst(home))) {
                (Some(&start), _) => start,
                (None, Some(before)) => *calls.entry(home).or_insert(call_at(func, before)),
                (None, None) => call_at(func, inst),
            },
        };
        let place = *places.entry(global).or_insert_with(|| place_of(func, global));
        let mut cursor = FuncCursor::new(func).at_inst(inst);
        cursor.use_srcloc(inst);
        let place = cursor.ins().symbol_value(types::I32, place);
        address(&mut cursor, start, place);
    }
}

/// Returns, for each reachable block, the block with the call whose result its accesses use.
/// Candidates are the blocks of accesses, or the nearest dominators outside of loops. Of the
/// candidates that dominate an access, the highest one has the call.
fn homes(func: &Function, accesses: &[(Block, Inst, GlobalValue)]) -> SecondaryMap<Block, PackedOption<Block>> {
    let cfg = ControlFlowGraph::with_function(func);
    let dominators = DominatorTree::with_function(func, &cfg);
    let mut loops = LoopAnalysis::new();
    loops.compute(func, &cfg, &dominators);
    let mut before_loop = HashMap::new();
    let mut is_home = EntitySet::new();
    for &(block, ..) in accesses.iter().filter(|(block, ..)| dominators.is_reachable(*block)) {
        let (mut at, mut path) = (block, Vec::new());
        while let Some(around) = loops.innermost_loop(at) {
            if let Some(&known) = before_loop.get(&around) {
                at = known;
                break;
            }
            path.push(around);
            let header = loops.loop_header(around);
            let Some(above) = dominators.idom(header) else {
                at = header;
                break;
            };
            at = above;
        }
        before_loop.extend(path.into_iter().map(|around| (around, at)));
        is_home.insert(at);
    }
    let mut homes: SecondaryMap<Block, PackedOption<Block>> = SecondaryMap::new();
    for &block in dominators.cfg_rpo() {
        let above = dominators.idom(block).and_then(|above| homes[above].expand());
        homes[block] = above.or(is_home.contains(block).then_some(block)).into();
    }
    homes
}

/// Replaces the instruction at the cursor by the sum, extended to its type.
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

/// Declares a copy of the symbol that is not marked thread-local.
fn place_of(func: &mut Function, global: GlobalValue) -> GlobalValue {
    let mut data = func.global_values[global].clone();
    if let GlobalValueData::Symbol { tls, .. } = &mut data {
        *tls = false;
    }
    func.create_global_value(data)
}
