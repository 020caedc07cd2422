//! A nest twice: without the checks that a plan can do without, and, cold, as it was.

use super::emit::Emitter;
use super::plan::{Guard, Plan};
use crate::Error;
use crate::edit::{self, Copy, Edge};
use crate::loops::{self, NaturalLoop};
use cranelift_codegen::Context;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Block, BlockArg, Function, InstBuilder, Value};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::collections::VecDeque;

/// Whether all branches into the nest and out of it pass values only.
pub fn can_split(func: &Function, lp: &NaturalLoop) -> bool {
    lp.entries
        .iter()
        .chain(&lp.exits)
        .all(|&edge| edit::args(func, edge).is_some())
}

/// Splits the nest. Dominators must be those of the function, and are not afterwards. Gives the blocks behind the nest that have new
/// parameters, for what was defined in the nest.
///
/// # Errors
///
/// [`Error::Internal`] if a value of the nest reaches code around its exits, or if the nest is not one of [`can_split`].
pub fn run(ctx: &mut Context, lp: &NaturalLoop, plan: &Plan, uses: &Uses) -> Result<Vec<Block>, Error> {
    let escaping = uses.escaping(lp);
    let copy = Copy::make(&mut ctx.func, &lp.blocks, FxHashMap::default(), lp.header);
    for &block in &lp.blocks {
        ctx.func.layout.set_cold(copy.block(block));
    }
    let landings = land(ctx, lp, &copy, &escaping)?;
    let func = &mut ctx.func;
    let before = func.dfg.make_block();
    func.layout.insert_block(before, lp.header);
    let params: Vec<Value> = func.dfg.block_params(lp.header).to_vec();
    let mut here = FxHashMap::default();
    let mut own = Vec::new();
    for &param in &params {
        let ty = func.dfg.value_type(param);
        let value = func.dfg.append_block_param(before, ty);
        here.insert(param, value);
        own.push(value);
    }
    for &entry in &lp.entries {
        let args = edit::values(func, entry, "guards")?;
        edit::redirect(func, entry, before, &args);
    }
    let holds = Emitter::new(func, before, &lp.blocks, here).run(plan)?;
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
            Guard::Branch(inst, number) => edit::always(func, Edge { inst, number }),
        }
    }
    if escaping.is_empty() {
        return Ok(Vec::new());
    }
    let copied: FxHashSet<Block> = lp.blocks.iter().flat_map(|&block| [block, copy.block(block)]).collect();
    Joins::new(func, &copied).run(func, &escaping, &landings)
}

/// Uses of values in other blocks than those that define them.
pub struct Uses(Vec<(Value, Block, Block)>);

impl Uses {
    /// Those of the function.
    pub fn of(func: &Function) -> Self {
        let mut uses = Vec::new();
        for block in func.layout.blocks() {
            for inst in func.layout.block_insts(block) {
                for value in func.dfg.inst_values(inst) {
                    let value = func.dfg.resolve_aliases(value);
                    let defined = loops::definition(func, value);
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

    /// The values of the nest that code outside of it uses.
    fn escaping(&self, lp: &NaturalLoop) -> Vec<Value> {
        let inside: FxHashSet<Block> = lp.blocks.iter().copied().collect();
        let out = |&&(_, defined, used): &&(Value, Block, Block)| inside.contains(&defined) && !inside.contains(&used);
        let mut found: Vec<Value> = self.0.iter().filter(out).map(|&(value, ..)| value).collect();
        found.dedup();
        found
    }
}

/// What each escaping value is in blocks that both ways lead to.
type Landings = FxHashMap<(Block, Value), Value>;

/// Where values escape, both ways out of the nest lead to a block that takes them as parameters.
fn land(ctx: &mut Context, lp: &NaturalLoop, copy: &Copy, escaping: &[Value]) -> Result<Landings, Error> {
    let mut landings = Landings::default();
    if escaping.is_empty() {
        return Ok(landings);
    }
    let mut targets: Vec<Block> = Vec::new();
    for &exit in &lp.exits {
        let target = edit::target(&ctx.func, exit);
        targets.extend(target.filter(|target| !targets.contains(target)));
    }
    for target in targets {
        let leads_here = |exit: &&Edge| edit::target(&ctx.func, **exit) == Some(target);
        let exits: Vec<Edge> = lp.exits.iter().filter(leads_here).copied().collect();
        // Of a value that some way to the block does not define, no use can follow.
        let reaches = |value: &&Value| {
            let defined = loops::definition(&ctx.func, **value);
            let dominates = |exit: &Edge| {
                let block = ctx.func.layout.inst_block(exit.inst);
                block.is_some_and(|block| ctx.domtree.block_dominates(defined, block))
            };
            exits.iter().all(dominates)
        };
        let values: Vec<Value> = escaping.iter().filter(reaches).copied().collect();
        let func = &mut ctx.func;
        let landing = func.dfg.make_block();
        func.layout.insert_block(landing, target);
        if func.layout.is_cold(target) {
            func.layout.set_cold(landing);
        }
        let types: Vec<_> = func
            .dfg
            .block_params(target)
            .iter()
            .map(|&param| func.dfg.value_type(param))
            .collect();
        let args: Vec<BlockArg> = types
            .into_iter()
            .map(|ty| BlockArg::Value(func.dfg.append_block_param(landing, ty)))
            .collect();
        for &value in &values {
            let ty = func.dfg.value_type(value);
            landings.insert((landing, value), func.dfg.append_block_param(landing, ty));
        }
        FuncCursor::new(func).at_bottom(landing).ins().jump(target, &args);
        for &exit in &exits {
            let mut args = edit::values(func, exit, "guards")?;
            args.extend(&values);
            edit::redirect(func, exit, landing, &args);
            let args: Vec<Value> = args
                .into_iter()
                .map(|value| copy.value(func.dfg.resolve_aliases(value)))
                .collect();
            edit::redirect(func, copy.edge(exit), landing, &args);
        }
    }
    Ok(landings)
}

/// Puts parameters where ways from different landings meet.
struct Joins<'a> {
    /// The edges to each block from outside of the nest.
    preds: SecondaryMap<Block, SmallVec<[Edge; 2]>>,
    copied: &'a FxHashSet<Block>,
    /// What the value is where the block begins.
    known: Landings,
    /// Blocks that have got a parameter for a value, and lack its arguments.
    open: VecDeque<(Block, Value)>,
}

impl<'a> Joins<'a> {
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
            known: Landings::default(),
            open: VecDeque::new(),
        }
    }

    /// Uses outside of the nest become those of what reaches them.
    fn run(mut self, func: &mut Function, escaping: &[Value], landings: &Landings) -> Result<Vec<Block>, Error> {
        self.known.clone_from(landings);
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
                        true => self.at(func, block, value)?,
                        false => value,
                    });
                }
                func.dfg.overwrite_inst_values(inst, own.into_iter());
            }
        }
        // The first first, so that the arguments of a block are in the order of its parameters.
        let mut joins = Vec::new();
        while let Some((block, value)) = self.open.pop_front() {
            joins.push(block);
            for edge in self.preds[block].clone() {
                let from = func.layout.inst_block(edge.inst);
                let from = from.ok_or_else(|| broken(value))?;
                let argument = self.at(func, from, value)?;
                edit::append_argument(func, edge, argument);
            }
        }
        Ok(joins)
    }

    /// What the value is in the block.
    fn at(&mut self, func: &mut Function, mut block: Block, value: Value) -> Result<Value, Error> {
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
                    self.open.push_back((block, value));
                    return Ok(param);
                }
            }
        }
    }
}

fn broken(value: Value) -> Error {
    Error::internal("guards", value, "a value of a loop to be used only behind its exits")
}
