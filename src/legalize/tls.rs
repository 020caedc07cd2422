//! Addresses of thread-local symbols: the block of the thread, which a routine of the runtime finds, and the symbol's place in it,
//! which is what a linker takes for the address of the symbol.

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

/// What is rewritten here, of symbols that are thread-local.
pub(super) const OPCODES: [Opcode; 2] = [Opcode::TlsValue, Opcode::SymbolValue];

/// Whether a function has such symbols.
pub(super) fn has_symbols(func: &Function) -> bool {
    func.global_values.values().any(is_thread_local)
}

fn is_thread_local(data: &GlobalValueData) -> bool {
    matches!(data, GlobalValueData::Symbol { tls: true, .. })
}

/// Rewrites the function. A call for the block stands outside of all loops, and all that it dominates shares it; but where the
/// function switches stacks, and may go on on another thread, each address has its own.
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
    // What is found for a block where a call belongs.
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

/// For each block that can be reached the one where its addresses get the block of the thread: outside of loops, and as far up as
/// somebody needs it anyway.
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
