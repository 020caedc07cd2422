//! Loops that can be done several rounds at a time as far as their control flow goes: one exit that counts, and rounds that always
//! take the same way, but for choices between values.

use crate::remarks::Reason;
use clif_opt::edit::{self, Edge};
use clif_opt::loops::{self, CountedExit, NaturalLoop};
use cranelift_codegen::Context;
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Value, types};
use rustc_hash::FxHashMap;

/// What a parameter of a block within a round is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// Always this value.
    Same(Value),
    /// One of two.
    Either {
        /// What decides.
        condition: Value,
        /// The value if it is not 0.
        yes: Value,
        /// The value if it is 0.
        no: Value,
    },
}

/// How the loop counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Until the variable meets the bound.
    Meets,
    /// As long as variable and bound compare so.
    Stays(IntCC),
}

/// A loop of this kind.
#[derive(Debug)]
pub struct Shape {
    /// The blocks of a round, in order.
    pub blocks: Vec<Block>,
    /// Those that are not passed in every round; what they do must not be seen.
    pub optional: Vec<Block>,
    /// What parameters of blocks other than the header are.
    pub passed: FxHashMap<Value, Passed>,
    /// The exit.
    pub exit: CountedExit,
    /// How it counts.
    pub pace: Pace,
    /// The power of two that the variable moves by.
    pub shift: u32,
    /// Whether the variable counts up.
    pub up: bool,
    /// Whether the loop is left at the end of a round, so that all rounds are whole.
    pub at_end: bool,
}

impl Shape {
    /// The shape of an innermost loop.
    ///
    /// # Errors
    ///
    /// What is in the way.
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
        let pace = pace(&exit, up)?;
        let mut walk = Walk {
            func,
            lp,
            exit: exit.edge,
            blocks: Vec::new(),
            optional: Vec::new(),
            passed: FxHashMap::default(),
        };
        walk.run()?;
        let only_jumps = |block: Block| func.layout.first_inst(block) == func.layout.last_inst(block);
        let exit_block = func.layout.inst_block(exit.edge.inst);
        let after = walk.blocks.iter().rev().take_while(|&&block| Some(block) != exit_block);
        let at_end = after.copied().all(only_jumps);
        Ok(Self {
            blocks: walk.blocks,
            optional: walk.optional,
            passed: walk.passed,
            exit,
            pace,
            shift: size.trailing_zeros(),
            up,
            at_end,
        })
    }

    /// How many rounds there are from the start of one to the test that leaves, without the one that it is in, if that is known.
    pub fn known(&self) -> Option<u64> {
        self.exit.count.map(|count| count - 1)
    }

    /// Whether the number of rounds that is computed at run time is the number that there are, and not fewer.
    pub fn is_exact(&self) -> bool {
        let strict = match self.pace {
            Pace::Meets => true,
            Pace::Stays(condition) => condition == condition.without_equal(),
        };
        self.exit.count.is_some() || strict && self.shift == 0
    }
}

/// How the exit counts, if a number of rounds follows from it.
fn pace(exit: &CountedExit, up: bool) -> Result<Pace, Reason> {
    if exit.leaves == IntCC::Equal {
        return Ok(Pace::Meets);
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
        Ok(Pace::Stays(stays))
    } else {
        Err(Reason::NotCounted)
    }
}

/// A walk along the blocks of a round.
struct Walk<'a> {
    func: &'a Function,
    lp: &'a NaturalLoop,
    exit: Edge,
    blocks: Vec<Block>,
    optional: Vec<Block>,
    passed: FxHashMap<Value, Passed>,
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
        // What is left would be reached from nowhere.
        if self.blocks.len() == self.lp.blocks.len() {
            Ok(())
        } else {
            Err(Reason::Branches(self.lp.header))
        }
    }

    /// Goes along an edge that is always taken.
    fn follow(&mut self, edge: Edge) -> Option<Block> {
        let to = edit::target(self.func, edge)?;
        if to != self.lp.header {
            let args = edit::args(self.func, edge)?;
            let params = self.func.dfg.block_params(to);
            self.passed
                .extend(params.iter().zip(args).map(|(&param, arg)| (param, Passed::Same(arg))));
        }
        Some(to)
    }

    /// Goes along both ways of a branch until they meet again, in the next block or the one after that.
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
        // A block on one way alone has one way in: the branch.
        let (ways, join) = match (after(first), after(second)) {
            _ if first == second => (edges, first),
            (Some((edge, to)), _) if to == second => ([edge, edges[1]], second),
            (_, Some((edge, to))) if to == first => ([edges[0], edge], first),
            (Some((one, to)), Some((other, same))) if to == same => ([one, other], to),
            _ => return None,
        };
        for (way, edge) in ways.into_iter().zip(edges) {
            if way != edge {
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
        let (yes, no) = (edit::args(self.func, ways[0])?, edit::args(self.func, ways[1])?);
        for ((&param, yes), no) in self.func.dfg.block_params(join).iter().zip(yes).zip(no) {
            self.passed.insert(param, Passed::Either { condition, yes, no });
        }
        Some(join)
    }

    /// How many edges of the loop lead to the block.
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
