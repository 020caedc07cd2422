//! Analyzes whether the control flow of a loop permits vectorization: one counted exit, and
//! iterations on a fixed path apart from selects between values.

use crate::remarks::Reason;
use clif_opt::edit::{self, Edge};
use clif_opt::loops::{self, CountedExit, NaturalLoop};
use cranelift_codegen::Context;
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Value, types};
use rustc_hash::FxHashMap;

/// The value of a block parameter within an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamValue {
    /// A single value.
    Same(Value),
    /// One of two values.
    Either {
        /// The condition.
        condition: Value,
        /// The value if the condition is nonzero.
        yes: Value,
        /// The value if the condition is 0.
        no: Value,
    },
}

/// The kind of exit test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitTest {
    /// The loop exits when the variable equals the bound.
    Equality,
    /// The loop continues while variable and bound satisfy the condition.
    Order(IntCC),
}

/// The control flow of a loop that can be vectorized.
#[derive(Debug)]
pub struct Shape {
    /// The blocks of an iteration, in order.
    pub blocks: Vec<Block>,
    /// Blocks that some iterations skip. They must not have side effects.
    pub optional: Vec<Block>,
    /// The values of parameters of blocks other than the header.
    pub param_values: FxHashMap<Value, ParamValue>,
    /// The exit.
    pub exit: CountedExit,
    /// The kind of exit test.
    pub exit_test: ExitTest,
    /// The logarithm of the step, which is a power of two.
    pub shift: u32,
    /// Whether the variable counts up.
    pub up: bool,
    /// Whether the exit test is at the end of an iteration, so that all iterations are complete.
    pub at_end: bool,
}

impl Shape {
    /// Analyzes an innermost loop.
    ///
    /// # Errors
    ///
    /// The reason why the loop cannot be vectorized.
    pub fn of(ctx: &Context, lp: &NaturalLoop) -> Result<Self, Reason> {
        let func = &ctx.func;
        if lp.exits.len() != 1 {
            return Err(Reason::NotCounted);
        }
        let exits = loops::counted_exits(ctx, lp);
        let &[exit] = exits.as_slice() else {
            return Err(Reason::NotCounted);
        };
        let variable = exit.variable;
        let step = variable.signed_step();
        let size = step.unsigned_abs();
        if variable.ty != types::I32 || !size.is_power_of_two() || size >= 1 << 24 {
            return Err(Reason::Counter(variable.ty, step));
        }
        let up = step > 0;
        let exit_test = exit_test(&exit, up)?;
        let mut walk = Walk {
            func,
            lp,
            exit: exit.edge,
            blocks: Vec::new(),
            optional: Vec::new(),
            param_values: FxHashMap::default(),
        };
        walk.run()?;
        let only_jumps = |block: Block| func.layout.first_inst(block) == func.layout.last_inst(block);
        let exit_block = func.layout.inst_block(exit.edge.inst);
        let after = walk.blocks.iter().rev().take_while(|&&block| Some(block) != exit_block);
        let at_end = after.copied().all(only_jumps);
        Ok(Self {
            blocks: walk.blocks,
            optional: walk.optional,
            param_values: walk.param_values,
            exit,
            exit_test,
            shift: size.trailing_zeros(),
            up,
            at_end,
        })
    }

    /// Returns the constant trip count, minus one.
    pub fn known(&self) -> Option<u64> {
        self.exit.count.map(|count| count - 1)
    }

    /// Returns whether the trip count computed at run time is exact, not a lower bound.
    pub fn is_exact(&self) -> bool {
        let strict = match self.exit_test {
            ExitTest::Equality => true,
            ExitTest::Order(condition) => condition == condition.without_equal(),
        };
        self.exit.count.is_some() || strict && self.shift == 0
    }
}

/// Returns the kind of exit test, if it determines a trip count.
fn exit_test(exit: &CountedExit, up: bool) -> Result<ExitTest, Reason> {
    if exit.leaves == IntCC::Equal {
        return Ok(ExitTest::Equality);
    }
    let stays = exit.leaves.complement();
    let grows = match stays {
        IntCC::UnsignedLessThan
        | IntCC::UnsignedLessThanOrEqual
        | IntCC::SignedLessThan
        | IntCC::SignedLessThanOrEqual => true,
        IntCC::Equal | IntCC::NotEqual => return Err(Reason::NotCounted),
        _ => false,
    };
    if grows == up {
        Ok(ExitTest::Order(stays))
    } else {
        Err(Reason::NotCounted)
    }
}

/// A walk along the blocks of an iteration.
struct Walk<'a> {
    func: &'a Function,
    lp: &'a NaturalLoop,
    exit: Edge,
    blocks: Vec<Block>,
    optional: Vec<Block>,
    param_values: FxHashMap<Value, ParamValue>,
}

impl Walk<'_> {
    fn run(&mut self) -> Result<(), Reason> {
        let mut at = self.lp.header;
        loop {
            self.blocks.push(at);
            let branches = Reason::Branches(at);
            let last = self.func.layout.last_inst(at).ok_or(branches.clone())?;
            let edge = |number| Edge { inst: last, number };
            let next = match self.func.dfg.insts[last] {
                InstructionData::Jump { .. } => self.follow(edge(0)),
                InstructionData::Brif { .. } if last == self.exit.inst => self.follow(edge(1 - self.exit.number)),
                InstructionData::Brif { arg, .. } => self.choose(arg, last),
                _ => None,
            };
            match next {
                Some(next) if next == self.lp.header => break,
                Some(next) if !self.blocks.contains(&next) => at = next,
                _ => return Err(branches),
            }
        }
        // Blocks that remain would be unreachable.
        if self.blocks.len() == self.lp.blocks.len() {
            Ok(())
        } else {
            Err(Reason::Branches(self.lp.header))
        }
    }

    /// Follows an edge that is always taken.
    fn follow(&mut self, edge: Edge) -> Option<Block> {
        let to = edit::target(self.func, edge)?;
        if to != self.lp.header {
            let args = edit::args(self.func, edge)?;
            let params = self.func.dfg.block_params(to);
            self.param_values.extend(
                params
                    .iter()
                    .zip(args)
                    .map(|(&param, arg)| (param, ParamValue::Same(arg))),
            );
        }
        Some(to)
    }

    /// Follows both destinations of a branch to the block where they join: the next block or the
    /// one after it.
    fn choose(&mut self, condition: Value, branch: Inst) -> Option<Block> {
        let edges = [0, 1].map(|number| Edge { inst: branch, number });
        let [first, second] = edges.map(|edge| edit::target(self.func, edge));
        let (first, second) = (first?, second?);
        let after = |block: Block| {
            let last = self.func.layout.last_inst(block)?;
            let jump = matches!(self.func.dfg.insts[last], InstructionData::Jump { .. });
            let edge = Edge { inst: last, number: 0 };
            let to = edit::target(self.func, edge).filter(|_| jump)?;
            Some((edge, to))
        };
        // A block on only one of the paths has the branch as its single predecessor.
        let (path_edges, join) = match (after(first), after(second)) {
            _ if first == second => (edges, first),
            (Some((edge, to)), _) if to == second => ([edge, edges[1]], second),
            (_, Some((edge, to))) if to == first => ([edges[0], edge], first),
            (Some((one, to)), Some((other, same))) if to == same => ([one, other], to),
            _ => return None,
        };
        for (path_edge, edge) in path_edges.into_iter().zip(edges) {
            if path_edge != edge {
                let block = edit::target(self.func, edge)?;
                if block == self.lp.header || !self.lp.contains(block) || self.predecessors(block) != 1 {
                    return None;
                }
                self.follow(edge)?;
                self.blocks.push(block);
                self.optional.push(block);
            }
        }
        if join == self.lp.header || self.predecessors(join) != 2 {
            return None;
        }
        let (yes, no) = (
            edit::args(self.func, path_edges[0])?,
            edit::args(self.func, path_edges[1])?,
        );
        for ((&param, yes), no) in self.func.dfg.block_params(join).iter().zip(yes).zip(no) {
            self.param_values
                .insert(param, ParamValue::Either { condition, yes, no });
        }
        Some(join)
    }

    /// Returns the number of edges in the loop that lead to the block.
    fn predecessors(&self, block: Block) -> usize {
        let calls = self
            .lp
            .blocks
            .iter()
            .filter_map(|&from| self.func.layout.last_inst(from));
        calls
            .flat_map(|inst| edit::destinations(self.func, inst))
            .filter(|call| call.block(&self.func.dfg.value_lists) == block)
            .count()
    }
}
