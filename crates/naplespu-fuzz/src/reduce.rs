//! Makes a function small that something goes wrong with, on the function itself: fewer instructions and blocks.

use super::anything::remove;
use cranelift_codegen::ir::{Block, Function, Inst, Opcode};
use cranelift_codegen::settings;
use cranelift_naplespu::verify_function;

/// Functions tried at most.
const TRIES: usize = 2000;

/// Reduces as long as `fails` says yes to a valid function. The result fails, if the function did.
pub fn reduce(func: Function, mut fails: impl FnMut(&Function) -> bool) -> Function {
    let flags = settings::Flags::new(settings::builder());
    let mut best = func;
    let mut tries = 0;
    loop {
        let mut progress = false;
        for pass in [without_inst, trap_for_end, without_extras] {
            let mut at = 0;
            while let Some(candidate) = pass(&best, at) {
                tries += 1;
                if tries > TRIES {
                    return best;
                }
                let smaller = size(&candidate) < size(&best);
                if smaller && verify_function(&candidate, &flags).is_ok() && fails(&candidate) {
                    best = candidate;
                    progress = true;
                } else {
                    at += 1;
                }
            }
        }
        if !progress {
            return best;
        }
    }
}

/// What has to become less: blocks, then instructions that are no constants, then the others, then what hangs on.
fn size(func: &Function) -> (usize, usize, usize, usize) {
    let insts = insts(func);
    let constants = insts
        .iter()
        .filter(|&&inst| is_constant(func.dfg.insts[inst].opcode()))
        .count();
    let extras = usize::from(func.dfg.values_labels.is_some())
        + usize::from(func.stack_limit.is_some())
        + usize::from(!func.debug_tags.is_empty())
        + insts.iter().filter(|&&inst| !func.srcloc(inst).is_default()).count();
    (func.layout.blocks().count(), insts.len() - constants, constants, extras)
}

fn is_constant(opcode: Opcode) -> bool {
    use Opcode::{F16const, F32const, F64const, F128const, Iconst, Vconst};
    matches!(opcode, Iconst | F16const | F32const | F64const | F128const | Vconst)
}

fn insts(func: &Function) -> Vec<Inst> {
    let blocks = func.layout.blocks();
    blocks.flat_map(|block| func.layout.block_insts(block)).collect()
}

/// Without the instruction of that number.
fn without_inst(func: &Function, at: usize) -> Option<Function> {
    let mut func = func.clone();
    let insts = insts(&func);
    // From the end: users go before what they use.
    let inst = *insts.iter().rev().nth(at)?;
    let opcode = func.dfg.insts[inst].opcode();
    if opcode.is_terminator() {
        return Some(func);
    }
    let used = func.dfg.inst_results(inst).iter().any(|&result| {
        let is_it = |value| func.dfg.resolve_aliases(value) == result;
        insts.iter().any(|&user| func.dfg.inst_values(user).any(is_it))
    });
    if used {
        remove(&mut func, inst);
    } else {
        func.layout.remove_inst(inst);
    }
    Some(func)
}

/// With a trap at the end of the block of that number, and without the blocks that nobody reaches then.
fn trap_for_end(func: &Function, at: usize) -> Option<Function> {
    let mut func = func.clone();
    let blocks: Vec<Block> = func.layout.blocks().collect();
    let last = func.layout.last_inst(*blocks.get(at)?)?;
    if func.dfg.insts[last].opcode() != Opcode::Trap {
        remove(&mut func, last);
    }
    let mut reached = vec![blocks[0]];
    let mut index = 0;
    while let Some(&block) = reached.get(index) {
        index += 1;
        let Some(last) = func.layout.last_inst(block) else {
            continue;
        };
        let targets = func.dfg.insts[last].branch_destination(&func.dfg.jump_tables, &func.dfg.exception_tables);
        let targets: Vec<Block> = targets.iter().map(|call| call.block(&func.dfg.value_lists)).collect();
        for target in targets {
            if !reached.contains(&target) {
                reached.push(target);
            }
        }
    }
    for block in blocks {
        if !reached.contains(&block) {
            while let Some(inst) = func.layout.last_inst(block) {
                func.layout.remove_inst(inst);
            }
            func.layout.remove_block(block);
        }
    }
    Some(func)
}

/// Without labels, source locations, tags or the stack limit.
fn without_extras(func: &Function, at: usize) -> Option<Function> {
    let mut func = func.clone();
    match at {
        0 => func.dfg.values_labels = None,
        1 => func.stack_limit = None,
        2 => func.debug_tags.clear(),
        3 => func.srclocs.clear(),
        _ => return None,
    }
    Some(func)
}
