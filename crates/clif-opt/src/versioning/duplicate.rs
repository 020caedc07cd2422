//! Duplicates a loop nest: one version without the guards of a plan, and the cold original.

use super::emit::Emitter;
use super::plan::{Guard, Plan};
use crate::Error;
use crate::edit::{self, BlockCopy, Edge};
use crate::loops::{self, NaturalLoop};
use cranelift_codegen::Context;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Block, BlockArg, Function, InstBuilder, Value};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::collections::VecDeque;

/// Returns whether all entry and exit edges of the nest pass only values.
pub fn can_duplicate(func: &Function, lp: &NaturalLoop) -> bool {
    lp.entries
        .iter()
        .chain(&lp.exits)
        .all(|&edge| edit::args(func, edge).is_some())
}

/// Duplicates the nest. Requires a valid dominator tree, and invalidates it. Returns the blocks
/// after the nest that got new parameters for values of the nest.
///
/// # Errors
///
/// [`Error::Internal`] if a value of the nest has a use that its exits do not dominate, or if
/// [`can_duplicate`] is false for the nest.
pub fn run(ctx: &mut Context, lp: &NaturalLoop, plan: &Plan, uses: &CrossBlockUses) -> Result<Vec<Block>, Error> {
    let escaping = uses.escaping(lp);
    let copy = BlockCopy::make(&mut ctx.func, &lp.blocks, FxHashMap::default(), lp.header);
    for &block in &lp.blocks {
        ctx.func.layout.set_cold(copy.block(block));
    }
    let exit_values = join_exits(ctx, lp, &copy, &escaping)?;
    let func = &mut ctx.func;
    let before = func.dfg.make_block();
    func.layout.insert_block(before, lp.header);
    let params: Vec<Value> = func.dfg.block_params(lp.header).to_vec();
    let mut mapped = FxHashMap::default();
    let mut own = Vec::new();
    for &param in &params {
        let ty = func.dfg.value_type(param);
        let value = func.dfg.append_block_param(before, ty);
        mapped.insert(param, value);
        own.push(value);
    }
    for &entry in &lp.entries {
        let args = edit::values(func, entry, "versioning")?;
        edit::redirect(func, entry, before, &args);
    }
    let holds = Emitter::new(func, before, &lp.blocks, mapped).run(plan)?;
    let args: Vec<BlockArg> = own.into_iter().map(BlockArg::Value).collect();
    let cold = copy.block(lp.header);
    let mut cursor = FuncCursor::new(func).at_bottom(before);
    match holds {
        Some(holds) => cursor.ins().brif(holds, lp.header, &args, cold, &args),
        None => cursor.ins().jump(lp.header, &args),
    };
    for &guard in &plan.guards {
        match guard {
            Guard::Trap(inst) => {
                func.layout.remove_inst(inst);
            }
            Guard::Branch(inst, number) => edit::make_unconditional(func, Edge { inst, number }),
        }
    }
    if escaping.is_empty() {
        return Ok(Vec::new());
    }
    let copied: FxHashSet<Block> = lp.blocks.iter().flat_map(|&block| [block, copy.block(block)]).collect();
    SsaRepair::new(func, &copied).run(func, &escaping, &exit_values)
}

/// Uses of values outside of their defining blocks: value, defining block, using block.
pub struct CrossBlockUses(Vec<(Value, Block, Block)>);

impl CrossBlockUses {
    /// Finds these uses in the function.
    pub fn of(func: &Function) -> Self {
        let mut uses = Vec::new();
        for block in func.layout.blocks() {
            for inst in func.layout.block_insts(block) {
                for value in func.dfg.inst_values(inst) {
                    let value = func.dfg.resolve_aliases(value);
                    let defined = loops::defining_block(func, value);
                    if defined != block {
                        uses.push((value, defined, block));
                    }
                }
            }
        }
        uses.sort_unstable();
        uses.dedup();
        Self(uses)
    }

    /// Returns the values of the nest that have uses outside of it.
    fn escaping(&self, lp: &NaturalLoop) -> Vec<Value> {
        let inside: FxHashSet<Block> = lp.blocks.iter().copied().collect();
        let out = |&&(_, defined, used): &&(Value, Block, Block)| inside.contains(&defined) && !inside.contains(&used);
        let mut found: Vec<Value> = self.0.iter().filter(out).map(|&(value, ..)| value).collect();
        found.dedup();
        found
    }
}

/// The value of each escaping value in the join blocks of both versions.
type ExitValues = FxHashMap<(Block, Value), Value>;

/// If values escape, redirects the exits of both versions to join blocks with parameters for them.
fn join_exits(ctx: &mut Context, lp: &NaturalLoop, copy: &BlockCopy, escaping: &[Value]) -> Result<ExitValues, Error> {
    let mut exit_values = ExitValues::default();
    if escaping.is_empty() {
        return Ok(exit_values);
    }
    let mut targets: Vec<Block> = Vec::new();
    for &exit in &lp.exits {
        let target = edit::target(&ctx.func, exit);
        targets.extend(target.filter(|target| !targets.contains(target)));
    }
    for target in targets {
        let leads_here = |exit: &&Edge| edit::target(&ctx.func, **exit) == Some(target);
        let exits: Vec<Edge> = lp.exits.iter().filter(leads_here).copied().collect();
        // If an exit to the block is not dominated by the value, the value has no use after the
        // block.
        let reaches = |value: &&Value| {
            let defined = loops::defining_block(&ctx.func, **value);
            let dominates = |exit: &Edge| {
                let block = ctx.func.layout.inst_block(exit.inst);
                block.is_some_and(|block| ctx.domtree.block_dominates(defined, block))
            };
            exits.iter().all(dominates)
        };
        let values: Vec<Value> = escaping.iter().filter(reaches).copied().collect();
        let func = &mut ctx.func;
        let join = func.dfg.make_block();
        func.layout.insert_block(join, target);
        if func.layout.is_cold(target) {
            func.layout.set_cold(join);
        }
        let types: Vec<_> = func
            .dfg
            .block_params(target)
            .iter()
            .map(|&param| func.dfg.value_type(param))
            .collect();
        let args: Vec<BlockArg> = types
            .into_iter()
            .map(|ty| BlockArg::Value(func.dfg.append_block_param(join, ty)))
            .collect();
        for &value in &values {
            let ty = func.dfg.value_type(value);
            exit_values.insert((join, value), func.dfg.append_block_param(join, ty));
        }
        FuncCursor::new(func).at_bottom(join).ins().jump(target, &args);
        for &exit in &exits {
            let mut args = edit::values(func, exit, "versioning")?;
            args.extend(&values);
            edit::redirect(func, exit, join, &args);
            let args: Vec<Value> = args
                .into_iter()
                .map(|value| copy.value(func.dfg.resolve_aliases(value)))
                .collect();
            edit::redirect(func, copy.edge(exit), join, &args);
        }
    }
    Ok(exit_values)
}

/// Restores SSA form: inserts block parameters where different definitions of a value meet.
struct SsaRepair<'a> {
    /// The edges to each block from outside of the nest.
    preds: SecondaryMap<Block, SmallVec<[Edge; 2]>>,
    copied: &'a FxHashSet<Block>,
    /// The value at the start of a block.
    known: ExitValues,
    /// Blocks with a new parameter for a value that still lacks its arguments.
    pending: VecDeque<(Block, Value)>,
}

impl<'a> SsaRepair<'a> {
    fn new(func: &Function, copied: &'a FxHashSet<Block>) -> Self {
        let mut preds: SecondaryMap<Block, SmallVec<[Edge; 2]>> = SecondaryMap::new();
        for block in func.layout.blocks() {
            let Some(inst) = func.layout.last_inst(block) else {
                continue;
            };
            for number in 0..edit::destinations(func, inst).len() {
                let edge = Edge { inst, number };
                if let Some(target) = edit::target(func, edge) {
                    preds[target].push(edge);
                }
            }
        }
        Self {
            preds,
            copied,
            known: ExitValues::default(),
            pending: VecDeque::new(),
        }
    }

    /// Replaces uses of escaping values outside of the nest by their reaching definitions.
    fn run(mut self, func: &mut Function, escaping: &[Value], exit_values: &ExitValues) -> Result<Vec<Block>, Error> {
        self.known.clone_from(exit_values);
        let escaping: FxHashSet<Value> = escaping.iter().copied().collect();
        let blocks: Vec<Block> = func
            .layout
            .blocks()
            .filter(|block| !self.copied.contains(block))
            .collect();
        for block in blocks {
            let mut next = func.layout.first_inst(block);
            while let Some(inst) = next {
                next = func.layout.next_inst(inst);
                let resolved = |value| func.dfg.resolve_aliases(value);
                if !func
                    .dfg
                    .inst_values(inst)
                    .any(|value| escaping.contains(&resolved(value)))
                {
                    continue;
                }
                let values: Vec<Value> = func.dfg.inst_values(inst).map(resolved).collect();
                let mut own = Vec::with_capacity(values.len());
                for value in values {
                    own.push(match escaping.contains(&value) {
                        true => self.reaching_value(func, block, value)?,
                        false => value,
                    });
                }
                func.dfg.overwrite_inst_values(inst, own.into_iter());
            }
        }
        // In order of insertion, so that arguments are in the order of the parameters.
        let mut joins = Vec::new();
        while let Some((block, value)) = self.pending.pop_front() {
            joins.push(block);
            for edge in self.preds[block].clone() {
                let from = func.layout.inst_block(edge.inst);
                let from = from.ok_or_else(|| broken(value))?;
                let argument = self.reaching_value(func, from, value)?;
                edit::append_argument(func, edge, argument);
            }
        }
        Ok(joins)
    }

    /// Returns the definition of the value that reaches the block.
    fn reaching_value(&mut self, func: &mut Function, mut block: Block, value: Value) -> Result<Value, Error> {
        loop {
            if let Some(&known) = self.known.get(&(block, value)) {
                return Ok(known);
            }
            match self.preds[block].as_slice() {
                _ if self.copied.contains(&block) => return Err(broken(value)),
                [] => return Err(broken(value)),
                [only] => block = func.layout.inst_block(only.inst).ok_or_else(|| broken(value))?,
                _ => {
                    let ty = func.dfg.value_type(value);
                    let param = func.dfg.append_block_param(block, ty);
                    self.known.insert((block, value), param);
                    self.pending.push_back((block, value));
                    return Ok(param);
                }
            }
        }
    }
}

fn broken(value: Value) -> Error {
    Error::internal(
        "versioning",
        value,
        "a value of a loop to be used only behind its exits",
    )
}
