//! The semantics of CLIF: a function as terms of its arguments, of memory and of the results of
//! calls.
//!
//! # Contract
//!
//! [`Clif::run`] executes a function symbolically, block by block in reverse postorder, and joins
//! the states of all paths into a block. A block is executed at most [`Limits::visits`] times;
//! longer paths end as [`ExitKind::Cut`]. The error names instructions without semantics here.
//!
//! Guarantees of CLIF are assumptions of the proof: the address of an access with the flag
//! `aligned` is aligned.

mod access;
pub mod across;
mod calls;
mod inst;
pub mod intrinsics;
pub mod scalar;

use crate::abi::Layout;
use crate::memory::Memory;
use crate::path::Path;
use crate::term::{Pool, Term};
use cranelift_codegen::ir::{self, Block, Function, InstructionData, Opcode, TrapCode};
use npu_mc::machine::LANES;
use std::collections::BTreeMap;

pub use calls::{Call, Callee, Device};

/// Limits of the execution of a function.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The maximum number of executions of a block.
    pub visits: u32,
    /// The maximum number of terms.
    pub terms: usize,
}

/// The kind of an exit of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExitKind {
    /// A return.
    Return,
    /// A trap with this code.
    Trap(u8),
    /// The limit of executions was reached.
    Cut,
}

/// A value: its lanes, the first one first. A scalar has one lane.
pub type Lanes = Vec<Term>;

/// The state at an exit, or during execution.
#[derive(Clone)]
pub struct State {
    /// The path condition.
    pub path: Path,
    /// Memory.
    pub memory: Memory,
    /// The values of the function, by number.
    values: Vec<Option<Lanes>>,
    /// The lane mask of intrinsics.
    mask: Term,
    /// The number of reads of counters.
    reads: u32,
    /// The results, if the function returned.
    pub results: Vec<Lanes>,
}

/// A construct without semantics here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unsupported(pub String);

impl Unsupported {
    fn inst(what: impl std::fmt::Display) -> Self {
        Self(format!("{what} has no meaning here"))
    }
}

/// The result of executing a function.
#[derive(Default)]
pub struct Outcome {
    /// The exits and their states.
    pub exits: Vec<(ExitKind, State)>,
    /// The assumptions of the proof.
    pub assumptions: Vec<Term>,
    /// The calls, in the order of their execution.
    pub calls: Vec<Call>,
    /// Whether a block reached the limit of executions.
    pub cut: bool,
}

/// A function during its execution.
pub struct Clif<'a> {
    func: &'a Function,
    pool: &'a mut Pool,
    layout: &'a Layout,
    limits: Limits,
    out: Outcome,
    waiting: BTreeMap<usize, State>,
    order: Vec<Option<usize>>,
    blocks: Vec<Block>,
    visits: Vec<u32>,
}

/// Returns the blocks in reverse postorder: every block comes after its predecessors, except for
/// back edges.
fn reverse_postorder(func: &Function) -> Vec<Block> {
    let mut seen = vec![false; func.dfg.num_blocks()];
    let mut out = Vec::new();
    let Some(entry) = func.layout.entry_block() else {
        return out;
    };
    let mut stack = vec![(entry, None::<std::vec::IntoIter<Block>>)];
    while let Some((block, successors)) = stack.last_mut() {
        let block = *block;
        if successors.is_none() {
            if std::mem::replace(&mut seen[block.as_u32() as usize], true) {
                stack.pop();
                continue;
            }
            let list: Vec<Block> = match func.layout.last_inst(block) {
                Some(inst) => func.dfg.insts[inst]
                    .branch_destination(&func.dfg.jump_tables, &func.dfg.exception_tables)
                    .iter()
                    .map(|call| call.block(&func.dfg.value_lists))
                    .collect(),
                None => Vec::new(),
            };
            *successors = Some(list.into_iter());
        }
        match successors.as_mut().and_then(Iterator::next) {
            Some(next) => {
                if !seen[next.as_u32() as usize] {
                    stack.push((next, None));
                }
            }
            None => {
                out.push(block);
                stack.pop();
            }
        }
    }
    out.reverse();
    out
}

impl<'a> Clif<'a> {
    /// Executes the function.
    ///
    /// # Errors
    ///
    /// The construct without semantics.
    pub fn run(
        func: &'a Function,
        pool: &'a mut Pool,
        layout: &'a Layout,
        limits: Limits,
    ) -> Result<Outcome, Unsupported> {
        let blocks = reverse_postorder(func);
        let mut order = vec![None; func.dfg.num_blocks()];
        for (at, block) in blocks.iter().enumerate() {
            order[block.as_u32() as usize] = Some(at);
        }
        let visits = vec![0; func.dfg.num_blocks()];
        let mut clif = Self {
            func,
            pool,
            layout,
            limits,
            out: Outcome::default(),
            waiting: BTreeMap::new(),
            order,
            blocks,
            visits,
        };
        let state = clif.start()?;
        clif.waiting.insert(0, state);
        while let Some((at, state)) = clif.waiting.pop_first() {
            clif.block(at, state)?;
            if clif.pool.len() > clif.limits.terms {
                return Err(Unsupported(
                    "the function is too large: it has too many terms".to_owned(),
                ));
            }
        }
        Ok(clif.out)
    }

    fn start(&mut self) -> Result<State, Unsupported> {
        let mut state = State {
            path: Path::default(),
            memory: Memory::default(),
            values: vec![None; self.func.dfg.num_values()],
            mask: self.pool.int(LANES, (1 << LANES) - 1),
            reads: 0,
            results: Vec::new(),
        };
        let Some(entry) = self.func.layout.entry_block() else {
            return Err(Unsupported::inst("a function without blocks"));
        };
        let params = self.func.dfg.block_params(entry).to_vec();
        let args = self.layout.arguments(self.pool, &self.func.signature);
        for (param, value) in params.into_iter().zip(args) {
            let value = self.lanes_of(self.func.dfg.value_type(param), value);
            state.values[param.as_u32() as usize] = Some(value);
        }
        Ok(state)
    }

    /// Splits a value into lanes of its type, given its bits in pieces, the first one first.
    fn lanes_of(&mut self, ty: ir::Type, pieces: Vec<Term>) -> Lanes {
        if !ty.is_vector() {
            return vec![self.pool.of_words(&pieces)];
        }
        pieces
    }

    fn block(&mut self, at: usize, mut state: State) -> Result<(), Unsupported> {
        let block = self.blocks[at];
        let visits = &mut self.visits[block.as_u32() as usize];
        *visits += 1;
        if *visits > self.limits.visits {
            self.out.cut = true;
            self.out.exits.push((ExitKind::Cut, state));
            return Ok(());
        }
        let insts: Vec<ir::Inst> = self.func.layout.block_insts(block).collect();
        for inst in insts {
            match self.inst(inst, state)? {
                Some(next) => state = next,
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// Returns the term of a CLIF value.
    fn value(&self, state: &State, value: ir::Value) -> Result<Lanes, Unsupported> {
        let value = self.func.dfg.resolve_aliases(value);
        state.values[value.as_u32() as usize]
            .clone()
            .ok_or_else(|| Unsupported(format!("{value} is used where it has no value")))
    }

    /// Returns the term of a scalar CLIF value.
    fn number(&self, state: &State, value: ir::Value) -> Result<Term, Unsupported> {
        let lanes = self.value(state, value)?;
        match lanes[..] {
            [one] => Ok(one),
            _ => Err(Unsupported::inst(format!(
                "a vector where {} expects a number",
                self.func.dfg.value_type(value)
            ))),
        }
    }

    fn set(&self, state: &mut State, inst: ir::Inst, results: Vec<Lanes>) {
        for (&value, lanes) in self.func.dfg.inst_results(inst).iter().zip(results) {
            state.values[value.as_u32() as usize] = Some(lanes);
        }
    }

    /// Ends the path with a trap where the condition holds, and returns the state of the other
    /// path.
    fn trap_if(&mut self, state: State, condition: Term, code: TrapCode) -> Option<State> {
        let not = self.pool.not(condition);
        if let Some(path) = state.path.with(self.pool, condition) {
            let mut trapped = state.clone();
            trapped.path = path;
            let kind = ExitKind::Trap(code.as_raw().get());
            self.out.exits.push((kind, trapped));
        }
        let path = state.path.with(self.pool, not)?;
        Some(State { path, ..state })
    }

    /// Continues in a block, if the condition can hold.
    fn jump(&mut self, state: &State, condition: Term, call: ir::BlockCall) -> Result<(), Unsupported> {
        let Some(path) = state.path.with(self.pool, condition) else {
            return Ok(());
        };
        let target = call.block(&self.func.dfg.value_lists);
        let args: Vec<ir::BlockArg> = call.args(&self.func.dfg.value_lists).collect();
        let params = self.func.dfg.block_params(target).to_vec();
        let mut next = state.clone();
        next.path = path;
        next.memory.seal();
        for (param, arg) in params.into_iter().zip(args) {
            let ir::BlockArg::Value(value) = arg else {
                return Err(Unsupported::inst("a block argument that is no value"));
            };
            next.values[param.as_u32() as usize] = Some(self.value(state, value)?);
        }
        let Some(at) = self.order[target.as_u32() as usize] else {
            return Err(Unsupported::inst("a block that nothing leads to"));
        };
        let next = match self.waiting.remove(&at) {
            Some(other) => other.join(next, self.pool),
            None => next,
        };
        self.waiting.insert(at, next);
        Ok(())
    }

    /// Executes a terminator.
    fn terminator(&mut self, inst: ir::Inst, state: State) -> Result<(), Unsupported> {
        let always = self.pool.bool(true);
        match self.func.dfg.insts[inst] {
            InstructionData::Jump { destination, .. } => self.jump(&state, always, destination),
            InstructionData::Brif { arg, blocks, .. } => {
                let value = self.number(&state, arg)?;
                let condition = scalar::is_true(self.pool, value);
                self.jump(&state, condition, blocks[0])?;
                let not = self.pool.not(condition);
                self.jump(&state, not, blocks[1])
            }
            InstructionData::BranchTable { arg, table, .. } => {
                let value = self.number(&state, arg)?;
                let width = self.pool.width(value);
                let table = &self.func.dfg.jump_tables[table];
                let entries = table.as_slice().to_vec();
                let default = table.default_block();
                // The default comes first, so that the index is in range for every entry.
                let count = self.pool.int(width, entries.len() as u64);
                let inside = self.pool.ult(value, count);
                let outside = self.pool.not(inside);
                self.jump(&state, outside, default)?;
                let Some(path) = state.path.with(self.pool, inside) else {
                    return Ok(());
                };
                let state = State { path, ..state };
                for (number, call) in entries.into_iter().enumerate() {
                    let number = self.pool.int(width, number as u64);
                    let same = self.pool.eq(value, number);
                    self.jump(&state, same, call)?;
                }
                Ok(())
            }
            InstructionData::Trap { code, .. } => {
                let kind = ExitKind::Trap(code.as_raw().get());
                self.out.exits.push((kind, state));
                Ok(())
            }
            InstructionData::MultiAry {
                opcode: Opcode::Return, ..
            } => {
                let args = self.func.dfg.inst_args(inst).to_vec();
                let mut state = state;
                state.results = args
                    .into_iter()
                    .map(|arg| self.value(&state, arg))
                    .collect::<Result<_, _>>()?;
                self.out.exits.push((ExitKind::Return, state));
                Ok(())
            }
            ref other => Err(Unsupported::inst(other.opcode())),
        }
    }
}

impl State {
    /// Joins the states of two mutually exclusive paths.
    pub fn join(self, other: Self, pool: &mut Pool) -> Self {
        let (path, selector) = self.path.join(&other.path, pool);
        let memory = self.memory.merge(&other.memory, pool, selector);
        let mut values = self.values;
        for (value, second) in values.iter_mut().zip(other.values) {
            match (value.as_mut(), second) {
                (Some(a), Some(b)) if *a != b => {
                    for (x, y) in a.iter_mut().zip(b) {
                        *x = pool.ite(selector, *x, y);
                    }
                }
                (None, second) => *value = second,
                _ => {}
            }
        }
        let results = self
            .results
            .into_iter()
            .zip(other.results)
            .map(|(a, b)| a.into_iter().zip(b).map(|(x, y)| pool.ite(selector, x, y)).collect())
            .collect();
        Self {
            path,
            memory,
            values,
            mask: pool.ite(selector, self.mask, other.mask),
            reads: self.reads.max(other.reads),
            results,
        }
    }
}
