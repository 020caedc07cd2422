//! A loop at concrete points: what its variables are in an iteration, given what was assigned outside of it.

use super::eval::{Evaluator, mix};
use crate::edit::{self, Edge};
use crate::loops::{self, NaturalLoop};
use cranelift_codegen::ir::{Function, InstructionData, Value, ValueDef};
use rustc_hash::FxHashMap;

/// A function in which control has come to a loop, by way of the loops around it.
pub struct World<'a> {
    /// Evaluates values at this point.
    pub eval: Evaluator<'a>,
    func: &'a Function,
    /// The loops around the one at hand and that one, the outermost first, each with the edge that enters it.
    way: Vec<(&'a NaturalLoop, Edge)>,
    /// How many iterations of each were done before.
    before: Vec<u64>,
    /// Parameters of a block in front of the loop that are passed on to the header.
    mirrors: &'a [Value],
    iteration: u64,
}

impl<'a> World<'a> {
    /// A point where the loop `lp` was just entered by the edge `entry`. Loops around it have done a few iterations, as the seed says.
    /// `mirrors` are the parameters of a block in front of the loop that gets the same arguments, if there is one.
    pub fn new(
        func: &'a Function,
        all: &'a [NaturalLoop],
        lp: &'a NaturalLoop,
        entry: Edge,
        mirrors: &'a [Value],
        seed: u64,
    ) -> Self {
        let around = all
            .iter()
            .filter(|outer| outer.id != lp.id && outer.contains(lp.header));
        let mut way: Vec<_> = around
            .filter_map(|outer| Some((outer, *outer.entries.first()?)))
            .collect();
        way.sort_by_key(|(outer, _)| std::cmp::Reverse(outer.blocks.len()));
        way.push((lp, entry));
        let before = (0..way.len() as u64).map(|number| mix(seed ^ number) % 4).collect();
        let mut world = Self {
            eval: Evaluator::new(func, &lp.blocks, seed),
            func,
            way,
            before,
            mirrors,
            iteration: 0,
        };
        world.enter();
        world
    }

    /// Enters the loop again, after something outside of it was assigned.
    pub fn enter(&mut self) {
        self.iteration = 0;
        self.eval.set_iteration(0);
        for place in 0..self.way.len() {
            let (lp, entry) = self.way[place];
            self.pass(lp, entry);
            if place + 1 == self.way.len() {
                for (&mirror, &param) in self.mirrors.iter().zip(self.func.dfg.block_params(lp.header)) {
                    if let Some(bits) = self.eval.get(param) {
                        self.eval.set(mirror, bits);
                    }
                }
                break;
            }
            for _ in 0..self.before[place] {
                if lp.exits.iter().any(|&exit| self.takes(exit) != Some(false)) {
                    break;
                }
                self.pass(lp, lp.back);
            }
        }
    }

    /// Goes on to the next iteration of the loop at hand, whether its exits leave it or not.
    pub fn advance(&mut self) {
        if let Some(&(lp, _)) = self.way.last() {
            self.pass(lp, lp.back);
        }
        self.iteration += 1;
        self.eval.set_iteration(self.iteration);
    }

    /// Sets the integer parameters of the header to what the edge passes.
    fn pass(&mut self, lp: &NaturalLoop, edge: Edge) {
        let args = edit::args(self.func, edge).unwrap_or_default();
        let values: Vec<Option<u64>> = args.iter().map(|&arg| self.eval.get(arg)).collect();
        for (&param, value) in self.func.dfg.block_params(lp.header).iter().zip(values) {
            if let Some(value) = value {
                self.eval.set(param, value);
            }
        }
    }

    /// Whether a conditional branch takes the edge; `None` if its condition is unknown.
    pub fn takes(&mut self, edge: Edge) -> Option<bool> {
        match self.func.dfg.insts[edge.inst] {
            InstructionData::Brif { arg, .. } => {
                let condition = self.eval.get(arg)?;
                Some((edge.number == 0) == (condition != 0))
            }
            InstructionData::Jump { .. } => Some(true),
            _ => None,
        }
    }

    /// The leaves from outside of the loops that a value depends on: what a caller may assign to change it.
    pub fn free_leaves(&self, value: Value) -> Vec<Value> {
        let mut params: FxHashMap<Value, Value> = FxHashMap::default();
        for &(lp, entry) in &self.way {
            let args = edit::args(self.func, entry).unwrap_or_default();
            params.extend(self.func.dfg.block_params(lp.header).iter().copied().zip(args));
        }
        let mut open = vec![value];
        let mut seen = Vec::new();
        let mut found = Vec::new();
        while let Some(value) = open.pop() {
            for leaf in self.eval.leaves(value) {
                if seen.contains(&leaf) {
                    continue;
                }
                seen.push(leaf);
                match params.get(&leaf) {
                    Some(&start) if start != leaf => open.push(start),
                    _ if self.is_free(leaf) => found.push(leaf),
                    _ => {}
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Whether the value comes from outside of all loops on the way.
    fn is_free(&self, value: Value) -> bool {
        let ty = self.func.dfg.value_type(value);
        let inside = |value| {
            let block = loops::definition(self.func, value);
            self.way.iter().any(|(lp, _)| lp.contains(block))
        };
        let union = matches!(self.func.dfg.value_def(value), ValueDef::Union(..));
        ty.is_int() && ty.bits() <= 64 && !union && !inside(value)
    }
}
