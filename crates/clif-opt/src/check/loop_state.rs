//! The state of a loop in an iteration, for concrete values from outside of the loop.

use super::eval::{Evaluator, mix};
use crate::edit::{self, Edge};
use crate::loops::{self, NaturalLoop};
use cranelift_codegen::ir::{Function, InstructionData, Value, ValueDef};
use rustc_hash::FxHashMap;

/// A function whose execution has reached a loop through the loops around it.
pub struct LoopState<'a> {
    /// The evaluator of values in this state.
    pub eval: Evaluator<'a>,
    func: &'a Function,
    /// The loops from the outermost one to the current one, each with the edge that enters it.
    nest: Vec<(&'a NaturalLoop, Edge)>,
    /// The number of completed iterations of each loop at entry.
    completed: Vec<u64>,
    /// Parameters of a block before the loop that are passed on to the header.
    mirrors: &'a [Value],
    iteration: u64,
}

impl<'a> LoopState<'a> {
    /// Enters the loop `lp` by the edge `entry`. The seed selects how many iterations the outer
    /// loops have completed. `mirrors` are the parameters of a block before the loop that receives
    /// the same arguments.
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
        let mut nest: Vec<_> = around
            .filter_map(|outer| Some((outer, *outer.entries.first()?)))
            .collect();
        nest.sort_by_key(|(outer, _)| std::cmp::Reverse(outer.blocks.len()));
        nest.push((lp, entry));
        let completed = (0..nest.len() as u64).map(|number| mix(seed ^ number) % 4).collect();
        let mut state = Self {
            eval: Evaluator::new(func, &lp.blocks, seed),
            func,
            nest,
            completed,
            mirrors,
            iteration: 0,
        };
        state.enter();
        state
    }

    /// Enters the loop again, after values outside of it were assigned.
    pub fn enter(&mut self) {
        self.iteration = 0;
        self.eval.set_iteration(0);
        for depth in 0..self.nest.len() {
            let (lp, entry) = self.nest[depth];
            self.pass(lp, entry);
            if depth + 1 == self.nest.len() {
                for (&mirror, &param) in self.mirrors.iter().zip(self.func.dfg.block_params(lp.header)) {
                    if let Some(bits) = self.eval.get(param) {
                        self.eval.set(mirror, bits);
                    }
                }
                break;
            }
            for _ in 0..self.completed[depth] {
                if lp.exits.iter().any(|&exit| self.takes(exit) != Some(false)) {
                    break;
                }
                self.pass(lp, lp.back_edge);
            }
        }
    }

    /// Advances to the next iteration of the current loop, even if an exit would leave.
    pub fn advance(&mut self) {
        if let Some(&(lp, _)) = self.nest.last() {
            self.pass(lp, lp.back_edge);
        }
        self.iteration += 1;
        self.eval.set_iteration(self.iteration);
    }

    /// Sets the integer parameters of the header to the arguments of the edge.
    fn pass(&mut self, lp: &NaturalLoop, edge: Edge) {
        let args = edit::args(self.func, edge).unwrap_or_default();
        let values: Vec<Option<u64>> = args.iter().map(|&arg| self.eval.get(arg)).collect();
        for (&param, value) in self.func.dfg.block_params(lp.header).iter().zip(values) {
            if let Some(value) = value {
                self.eval.set(param, value);
            }
        }
    }

    /// Returns whether a branch takes the edge, or `None` if its condition is unknown.
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

    /// Returns the leaves outside of the loops that a value depends on. A caller may assign them.
    pub fn free_leaves(&self, value: Value) -> Vec<Value> {
        let mut params: FxHashMap<Value, Value> = FxHashMap::default();
        for &(lp, entry) in &self.nest {
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

    /// Returns whether the value is an integer from outside of all loops of the nest.
    fn is_free(&self, value: Value) -> bool {
        let ty = self.func.dfg.value_type(value);
        let inside = |value| {
            let block = loops::defining_block(self.func, value);
            self.nest.iter().any(|(lp, _)| lp.contains(block))
        };
        let union = matches!(self.func.dfg.value_def(value), ValueDef::Union(..));
        ty.is_int() && ty.bits() <= 64 && !union && !inside(value)
    }
}
