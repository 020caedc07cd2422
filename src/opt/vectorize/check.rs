//! The checker of the vectorizer. [`clif_opt::check`] states the conditions.

use clif_opt::Error;
use clif_opt::check::eval::mix;
use clif_opt::check::loop_state::LoopState;
use clif_opt::check::{Check, broken};
use clif_opt::edit::{self, Edge};
use clif_opt::loops::NaturalLoop;
use cranelift_codegen::ir::{AliasRegion, Block, Function, Inst, InstructionData, Opcode, Value, ValueDef};
use npu_mc::machine::{CACHE_LINE, LANES};
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

/// The number of scalar iterations examined: three vector iterations.
const WINDOW: u64 = 3 * LANES as u64;
/// The maximum number of vector iterations followed.
const MAX_VECTOR_ITERATIONS: u64 = 64;
/// The maximum number of distances tried for a pair of accesses.
const MAX_DISTANCES: usize = 400;
/// The number of points with different values from outside of the loop.
const SEEDS: u64 = 2;
/// The number of points at which alignment is examined. Values that determine the position of an
/// access in its cache line are even at some of them and odd at others.
const ALIGNMENT_SEEDS: u64 = 4;
/// The number of address bits within a cache line, the largest alignment of a vector.
const LINE_BITS: u32 = CACHE_LINE.trailing_zeros();

/// The part of an access that a vector load or store covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All sixteen elements.
    Whole,
    /// The line of the last element.
    LastLine,
    /// The line of the first element, or the line before it.
    FirstLine,
}

/// The claims about an access of the scalar loop.
#[derive(Clone, Copy, Debug)]
pub struct AccessClaim {
    /// The load or store.
    pub inst: Inst,
    /// Whether it is a store.
    pub store: bool,
    /// The size of an element in memory, in bytes.
    pub size: u32,
    /// The stride in bytes per iteration.
    pub stride: i32,
    /// Whether the memory that it reads never changes while the function runs.
    pub readonly: bool,
    /// The alias region.
    pub region: Option<AliasRegion>,
    /// Whether the load executes once, before the vector loop.
    pub hoisted: bool,
    /// Whether the load may reuse a line that an earlier vector iteration loaded.
    pub carried: bool,
    /// For an access of two lines: the index of the last element in its line, if it is constant.
    pub last: Option<u32>,
}

/// The trip count of the scalar loop.
#[derive(Clone, Copy, Debug, Default)]
pub enum Total {
    /// At least the iterations of the vector loop: the scalar loop executes the remainder.
    #[default]
    Unknown,
    /// A constant.
    Constant(u64),
    /// A value computed at run time.
    Counted(Value),
}

/// The claims about a vector loop.
#[derive(Debug, Default)]
pub struct VectorLoop {
    /// The block with the tests.
    pub decide: Option<Block>,
    /// The parameters of the block with the tests.
    pub params: Vec<Value>,
    /// The first block of the setup.
    pub setup: Option<Block>,
    /// The vector loop.
    pub body: Option<Block>,
    /// The block after the vector loop.
    pub after: Option<Block>,
    /// The accesses of the scalar loop in program order.
    pub accesses: Vec<AccessClaim>,
    /// The loads and stores of the vector loop, each with the index of its access and the part.
    pub parts: Vec<(Inst, usize, Part)>,
    /// Conditions that imply that there are enough iterations.
    pub counted: Vec<Value>,
    /// Conditions that imply that addresses are aligned.
    pub aligned: Vec<Value>,
    /// The indices of the accesses whose addresses the alignment conditions test.
    pub tested: Vec<usize>,
    /// Conditions that imply that accesses do not overlap.
    pub disjoint: Vec<Value>,
    /// The number of scalar iterations that the vector loop executes.
    pub whole: Option<Value>,
    /// The trip count, if the scalar loop may be skipped.
    pub total: Total,
    /// Reductions: the parameter, and its value after an iteration.
    pub reductions: Vec<(Value, Value)>,
    /// Values that later code takes from the vector loop if the scalar loop is skipped.
    pub escapes: Vec<Value>,
    /// The exit of the scalar loop.
    pub exit: Option<Edge>,
}

/// Checks the claims about a vector loop.
///
/// # Errors
///
/// [`Error::Internal`] if a claim is wrong.
pub fn check(func: &Function, all: &[NaturalLoop], lp: &NaturalLoop, made: &VectorLoop) -> Check {
    let (Some(exit), Some(whole), Some(body)) = (made.exit, made.whole, made.body) else {
        return Err(broken("vectorize", lp.header, "a vector loop with an exit and a count"));
    };
    let parts = Checker {
        func,
        all,
        lp,
        made,
        exit,
        whole,
        body,
    };
    parts.conjunction()?;
    parts.reductions()?;
    for &entry in &lp.entries {
        for number in 0..SEEDS {
            let seed = mix(number + 1);
            parts.addresses(entry, seed)?;
            parts.pairs(entry, seed)?;
            parts.counts(entry, number == 0)?;
            parts.continues(entry, seed)?;
        }
        for number in 0..ALIGNMENT_SEEDS {
            parts.alignment(entry, mix(number + 1))?;
        }
    }
    Ok(())
}

struct Checker<'a> {
    func: &'a Function,
    all: &'a [NaturalLoop],
    lp: &'a NaturalLoop,
    made: &'a VectorLoop,
    exit: Edge,
    whole: Value,
    body: Block,
}

impl<'a> Checker<'a> {
    fn state(&self, entry: Edge, seed: u64) -> LoopState<'a> {
        LoopState::new(self.func, self.all, self.lp, entry, &self.made.params, seed)
    }

    fn failed<T>(&self, at: impl std::fmt::Display, expected: &'static str) -> Result<T, Error> {
        Err(broken("vectorize", at, expected))
    }

    /// Returns the address of a load or store at the point, or `None` if it cannot be evaluated.
    fn address(&self, state: &mut LoopState<'_>, inst: Inst) -> Option<u32> {
        let (InstructionData::Load { offset, arg, .. }
        | InstructionData::Store {
            offset, args: [_, arg], ..
        }) = self.func.dfg.insts[inst]
        else {
            return None;
        };
        let pointer = state.eval.get(arg)? as u32;
        Some(pointer.wrapping_add(i32::from(offset).cast_unsigned()))
    }

    /// Returns the address operand of a load or store.
    fn pointer(&self, inst: Inst) -> Option<Value> {
        match self.func.dfg.insts[inst] {
            InstructionData::Load { arg, .. } | InstructionData::Store { args: [_, arg], .. } => Some(arg),
            _ => None,
        }
    }

    /// Checks that the branch enters the vector loop only if all conditions hold.
    fn conjunction(&self) -> Check {
        let made = self.made;
        let conditions = [made.counted.as_slice(), &made.aligned, &made.disjoint].concat();
        let last = made.decide.and_then(|block| self.func.layout.last_inst(block));
        let arg = match last.map(|inst| self.func.dfg.insts[inst]) {
            Some(InstructionData::Brif { arg, .. }) => arg,
            Some(InstructionData::Jump { .. }) if conditions.is_empty() => return Ok(()),
            _ => return self.failed(self.lp.header, "a branch on the tests"),
        };
        let mut open = vec![self.func.dfg.resolve_aliases(arg)];
        let mut tested: FxHashSet<Value> = FxHashSet::default();
        while let Some(value) = open.pop() {
            tested.insert(value);
            if let ValueDef::Result(inst, 0) = self.func.dfg.value_def(value)
                && let InstructionData::Binary {
                    opcode: Opcode::Band,
                    args,
                } = self.func.dfg.insts[inst]
                && !conditions.contains(&value)
            {
                open.extend(args.map(|arg| self.func.dfg.resolve_aliases(arg)));
            }
        }
        match conditions
            .iter()
            .all(|&one| tested.contains(&self.func.dfg.resolve_aliases(one)))
        {
            true => Ok(()),
            false => self.failed(self.lp.header, "a branch on all tests"),
        }
    }

    /// Checks that partial sums of a reduction are neither stored nor compared nor used after the
    /// loop, apart from the final sum.
    fn reductions(&self) -> Check {
        for &(param, result) in &self.made.reductions {
            let parts = self.parts_of(param)?;
            let result = self.func.dfg.resolve_aliases(result);
            let escapes = self
                .made
                .escapes
                .iter()
                .map(|&value| self.func.dfg.resolve_aliases(value));
            if let Some(value) = escapes
                .filter(|value| *value != result)
                .find(|value| parts.contains(value))
            {
                return self.failed(value, "a partial sum that is not used after the loop");
            }
        }
        Ok(())
    }

    /// Returns the header parameter and the values of the loop that depend on it.
    fn parts_of(&self, param: Value) -> Result<FxHashSet<Value>, Error> {
        let dfg = &self.func.dfg;
        let mut parts: FxHashSet<Value> = FxHashSet::default();
        parts.insert(param);
        for &block in &self.lp.blocks {
            for inst in self.func.layout.block_insts(block) {
                let is_part = |value: Value| parts.contains(&dfg.resolve_aliases(value));
                let mut more = Vec::new();
                if dfg.inst_args(inst).iter().any(|&arg| is_part(arg)) {
                    let opcode = dfg.insts[inst].opcode();
                    if opcode.can_store() || opcode.is_branch() {
                        return self.failed(inst, "a reduction that only the next iteration uses");
                    }
                    more.extend_from_slice(dfg.inst_results(inst));
                }
                for call in edit::destinations(self.func, inst) {
                    let to = call.block(&dfg.value_lists);
                    if to == self.lp.header || !self.lp.contains(to) {
                        continue;
                    }
                    let args = call.args(&dfg.value_lists);
                    let param_values = dfg.block_params(to).iter().zip(args);
                    more.extend(
                        param_values.filter_map(|(&param, arg)| arg.as_value().is_some_and(is_part).then_some(param)),
                    );
                }
                parts.extend(more);
            }
        }
        Ok(parts)
    }

    /// Checks that each address grows by its stride in every iteration, and that the vector loop
    /// accesses the same addresses.
    fn addresses(&self, entry: Edge, seed: u64) -> Check {
        let mut state = self.state(entry, seed);
        // The call assigns values from outside of the loop even if it fails.
        let aligned = self.assume_alignment(&mut state, None);
        let mut starts = Vec::new();
        for access in &self.made.accesses {
            starts.push(self.address(&mut state, access.inst));
        }
        if aligned {
            self.vector_addresses(&mut state, &starts)?;
        }
        state.enter();
        for iteration in 0..u32::try_from(WINDOW).unwrap_or(u32::MAX) {
            for (access, start) in self.made.accesses.iter().zip(&starts) {
                let (Some(start), Some(now)) = (*start, self.address(&mut state, access.inst)) else {
                    continue;
                };
                let way = access.stride.cast_unsigned().wrapping_mul(iteration);
                if now != start.wrapping_add(way) {
                    return self.failed(access.inst, "an address that grows by its stride");
                }
            }
            state.advance();
        }
        Ok(())
    }

    /// Checks the addresses of the vector loop against the scalar addresses of the first
    /// iterations.
    fn vector_addresses(&self, state: &mut LoopState<'_>, starts: &[Option<u32>]) -> Check {
        let whole = match self.known_iterations(state) {
            Some(known) => known,
            None => WINDOW,
        };
        state.eval.set(self.whole, whole);
        let times = (whole / u64::from(LANES)).min(MAX_VECTOR_ITERATIONS);
        let setup = self.made.setup.and_then(|block| self.func.layout.last_inst(block));
        let Some(setup) = setup else {
            return self.failed(self.lp.header, "a setup of the vector loop");
        };
        let last = self.func.layout.last_inst(self.body);
        let params = self.func.dfg.block_params(self.body);
        let mut edge = Edge { inst: setup, number: 0 };
        for iteration in 0..times as u32 {
            let args = edit::args(self.func, edge).unwrap_or_default();
            let values: Vec<Option<u64>> = args.iter().map(|&arg| state.eval.get(arg)).collect();
            for (&param, value) in params.iter().zip(values) {
                if let Some(value) = value {
                    state.eval.set(param, value);
                }
            }
            let Some(inst) = last else { break };
            edge = Edge { inst, number: 0 };
            let goes_on = u64::from(iteration + 1) * u64::from(LANES) < whole;
            if state.takes(edge).is_some_and(|takes| takes != goes_on) {
                return self.failed(inst, "a vector loop that does the counted iterations");
            }
            if u64::from(iteration * LANES) >= WINDOW {
                continue;
            }
            for &(inst, number, part) in &self.made.parts {
                let access = &self.made.accesses[number];
                let in_body = self.func.layout.inst_block(inst) == Some(self.body);
                let (Some(start), Some(is)) = (starts[number], self.address(state, inst)) else {
                    continue;
                };
                if !in_body && iteration > 0 {
                    continue;
                }
                let first = start.wrapping_add(access.stride.cast_unsigned().wrapping_mul(iteration * LANES));
                let bytes = access.size * LANES;
                let line = !(bytes - 1);
                let end = first.wrapping_add(bytes - access.size);
                let right = match part {
                    Part::Whole => is == first && first & !line == 0,
                    Part::LastLine => {
                        is == end & line && access.last.is_none_or(|last| last == (end & !line) / access.size)
                    }
                    // The vector is aligned at this point, so no element comes from this line.
                    Part::FirstLine => {
                        is == first & line || end & line == first & line && is == (first & line).wrapping_sub(bytes)
                    }
                };
                if !right {
                    return self.failed(inst, "a vector at the addresses of its elements");
                }
            }
        }
        Ok(())
    }

    /// Checks that the scalar loop continues with the correct values of the induction variables.
    fn continues(&self, entry: Edge, seed: u64) -> Check {
        let mut state = self.state(entry, seed);
        let whole = match self.known_iterations(&mut state) {
            Some(known) if known > 4 * WINDOW => return Ok(()),
            Some(known) => known,
            None => WINDOW,
        };
        state.eval.set(self.whole, whole);
        let last = self.made.after.and_then(|block| self.func.layout.last_inst(block));
        let Some(last) = last else {
            return self.failed(self.lp.header, "a block after the vector loop");
        };
        let reductions = |param: Value| self.made.reductions.iter().any(|&(reduction, _)| reduction == param);
        let params = self.func.dfg.block_params(self.lp.header);
        if let Total::Counted(all) = self.made.total {
            for remainder in [0, 1, u64::from(LANES) - 1] {
                state.eval.set(all, whole + remainder);
                if state.takes(Edge { inst: last, number: 0 }) != Some(remainder == 0) {
                    return self.failed(last, "an end after the vector loop only if no iteration is left");
                }
            }
        }
        let mut continued = Vec::new();
        for (number, call) in edit::destinations(self.func, last).iter().enumerate() {
            if call.block(&self.func.dfg.value_lists) == self.lp.header {
                let args = edit::args(self.func, Edge { inst: last, number }).unwrap_or_default();
                let variables = params.iter().zip(args).filter(|(param, _)| !reductions(**param));
                continued.extend(variables.map(|(&param, arg)| (param, state.eval.get(arg))));
            }
        }
        for _ in 0..whole {
            state.advance();
        }
        for (param, expected) in continued {
            if state.eval.get(param) != expected {
                return self.failed(param, "a variable that goes on after the vector loop");
            }
        }
        Ok(())
    }

    /// Changes leaves so that the alignment tests succeed. Does not change leaves that `access`
    /// depends on. Returns whether the tests succeed.
    fn assume_alignment(&self, state: &mut LoopState<'_>, access: Option<usize>) -> bool {
        let kept: Vec<Value> = access
            .and_then(|access| self.pointer(self.made.accesses[access].inst))
            .map(|pointer| state.free_leaves(pointer))
            .unwrap_or_default();
        for &tested in &self.made.tested {
            let inst = self.made.accesses[tested].inst;
            let Some(pointer) = self.pointer(inst) else { continue };
            let mut leaves = state.free_leaves(pointer);
            leaves.retain(|leaf| !kept.contains(leaf));
            let address = |state: &mut LoopState<'_>| self.address(state, inst);
            if let Some(linear_leaf) = LinearLeaf::find(state, &leaves, &address) {
                linear_leaf.assign(state, 0, LINE_BITS, &address);
            }
        }
        self.made
            .aligned
            .iter()
            .all(|&condition| state.eval.get(condition) == Some(1))
    }

    /// Checks that every vector is aligned if the alignment tests succeed, for all positions of an
    /// access in its cache line.
    fn alignment(&self, entry: Edge, seed: u64) -> Check {
        for (number, access) in self.made.accesses.iter().enumerate() {
            let Some(pointer) = self.pointer(access.inst).filter(|_| !access.hoisted) else {
                continue;
            };
            let mut state = self.state(entry, seed);
            let leaves = state.free_leaves(pointer);
            let address = |state: &mut LoopState<'_>| self.address(state, access.inst);
            let linear_leaf = LinearLeaf::find(&mut state, &leaves, &address);
            for position in (0..1 << LINE_BITS).step_by(access.size as usize) {
                if let Some(linear_leaf) = linear_leaf {
                    linear_leaf.assign(&mut state, position, LINE_BITS, &address);
                }
                if self.assume_alignment(&mut state, Some(number)) {
                    self.aligned(&mut state)?;
                }
                if linear_leaf.is_none() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Checks that whole vectors start at multiples of their size.
    fn aligned(&self, state: &mut LoopState<'_>) -> Check {
        for &(_, number, part) in &self.made.parts {
            let access = &self.made.accesses[number];
            let Some(address) = self.address(state, access.inst) else {
                continue;
            };
            let bytes = access.size * LANES;
            let last = (address.wrapping_add(bytes - access.size) & (bytes - 1)) / access.size;
            let right = match part {
                Part::Whole => address.is_multiple_of(bytes),
                _ => access
                    .last
                    .is_none_or(|position| position == last && address.is_multiple_of(access.size)),
            };
            if !right {
                return self.failed(access.inst, "a vector that is aligned if the tests succeed");
            }
        }
        Ok(())
    }

    /// Checks that the scalar loop executes at least the iterations of the vector loop if the count
    /// tests succeed. If the scalar loop may be skipped, the counts must be equal.
    fn counts(&self, entry: Edge, up: bool) -> Check {
        let mut state = self.state(entry, 1);
        let InstructionData::Brif { arg: condition, .. } = self.func.dfg.insts[self.exit.inst] else {
            return self.failed(self.exit.inst, "an exit with a condition");
        };
        // The operands of the exit test: induction variables and invariant values.
        let header = self.func.dfg.block_params(self.lp.header);
        let leaves = state.eval.leaves(condition);
        let counters: Vec<usize> = (0..header.len())
            .filter(|&position| leaves.contains(&header[position]))
            .collect();
        let bounds: Vec<Value> = leaves.into_iter().filter(|leaf| !header.contains(leaf)).collect();
        let counted = |position: usize| self.made.params.get(position).copied();
        let starts: &[u64] = &[0, 5, 0x7fff_fff0, 0x7fff_ffff, 0x8000_0000, 0xffff_ffc0, 0xffff_ffff];
        let ways = (0..70).chain([127, 1000, 0x7fff_ffff, 0x8000_0000, 0xffff_fff0, 0xffff_ffff]);
        let ways: Vec<u64> = ways.collect();
        for &start in starts {
            for &way in &ways {
                state.enter();
                for &position in &counters {
                    // Constant start values are kept.
                    let (Some(param), Some(known)) = (counted(position), state.eval.get(header[position])) else {
                        continue;
                    };
                    let args = edit::args(self.func, entry).unwrap_or_default();
                    let constant = args.get(position).is_some_and(|&arg| state.eval.leaves(arg).is_empty());
                    let start = if constant { known } else { start };
                    state.eval.set(param, start);
                    state.eval.set(header[position], start);
                }
                let first = counters
                    .first()
                    .and_then(|&position| state.eval.get(header[position]))
                    .unwrap_or(0);
                for &bound in &bounds {
                    let bits = if up {
                        first.wrapping_add(way)
                    } else {
                        first.wrapping_sub(way)
                    };
                    state.eval.set(bound, bits);
                }
                let holds = self.made.counted.iter().all(|&one| state.eval.get(one) == Some(1));
                if holds {
                    self.count(&mut state)?;
                }
                if bounds.is_empty() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Checks the count at a point where the tests succeed.
    fn count(&self, state: &mut LoopState<'_>) -> Check {
        let Some(whole) = state.eval.get(self.whole) else {
            return Ok(());
        };
        let all = match self.made.total {
            Total::Unknown => None,
            Total::Constant(all) => Some(all),
            Total::Counted(all) => state.eval.get(all),
        };
        if whole == 0 || !whole.is_multiple_of(u64::from(LANES)) || all.is_some_and(|all| all < whole) {
            return self.failed(self.lp.header, "a multiple of sixteen iterations");
        }
        // If the scalar loop may be skipped, the exit test is at the end of the iteration.
        let stays = all.map_or(whole, |all| all - 1);
        for _ in 0..stays.min(2 * WINDOW) {
            match state.takes(self.exit) {
                Some(false) => state.advance(),
                Some(true) => {
                    return self.failed(self.exit.inst, "a scalar loop with the iterations of the vector loop");
                }
                None => return Ok(()),
            }
        }
        if all.is_some() && stays <= 2 * WINDOW && state.takes(self.exit) == Some(false) {
            return self.failed(self.exit.inst, "a scalar loop that ends after the counted iterations");
        }
        Ok(())
    }

    /// Checks that the vector loop does not reorder overlapping accesses if the tests succeed.
    fn pairs(&self, entry: Edge, seed: u64) -> Check {
        let accesses = &self.made.accesses;
        for second in 0..accesses.len() {
            for first in 0..second {
                let (a, b) = (&accesses[first], &accesses[second]);
                let regions = a.region.is_some() && b.region.is_some() && a.region != b.region;
                if (a.store || b.store) && !a.readonly && !b.readonly && !regions {
                    self.pair(entry, seed, first, second)?;
                }
            }
        }
        Ok(())
    }

    fn pair(&self, entry: Edge, seed: u64, first: usize, second: usize) -> Check {
        let (a, b) = (&self.made.accesses[first], &self.made.accesses[second]);
        let mut state = self.state(entry, seed);
        let distance = |state: &mut LoopState<'_>| {
            let (from, to) = (self.address(state, a.inst)?, self.address(state, b.inst)?);
            Some(to.wrapping_sub(from))
        };
        let Some(start) = distance(&mut state) else {
            return Ok(());
        };
        let known = self.known_iterations(&mut state);
        let bad = conflicting_distances(a, b, known.map_or(WINDOW, |known| known.min(WINDOW)));
        let mut leaves = Vec::new();
        for pointer in [a.inst, b.inst].into_iter().filter_map(|inst| self.pointer(inst)) {
            leaves.extend(state.free_leaves(pointer));
        }
        leaves.sort_unstable();
        leaves.dedup();
        let linear_leaf = LinearLeaf::find(&mut state, &leaves, &distance);
        let step = bad.len().div_ceil(MAX_DISTANCES).max(1);
        for &wanted in bad.iter().step_by(step).chain(bad.last()) {
            let found = match linear_leaf {
                Some(linear_leaf) => linear_leaf.assign(&mut state, wanted, 32, &distance),
                None => start == wanted,
            };
            if !found {
                continue;
            }
            if known.is_none() {
                state.eval.set(self.whole, WINDOW);
            }
            if self.made.disjoint.iter().all(|&one| state.eval.get(one) == Some(1)) {
                return self.failed(b.inst, "accesses that do not meet if the tests succeed");
            }
        }
        Ok(())
    }

    /// Returns the number of vector iterations, if it is constant.
    fn known_iterations(&self, state: &mut LoopState<'_>) -> Option<u64> {
        state
            .eval
            .leaves(self.whole)
            .is_empty()
            .then(|| state.eval.get(self.whole))?
    }
}

/// A leaf that controls a number: the number is linear in it with an odd factor, modulo 2^32.
#[derive(Clone, Copy)]
struct LinearLeaf {
    leaf: Value,
    /// The inverse of the factor.
    inverse: u32,
}

impl LinearLeaf {
    /// Finds a leaf that controls the number at this point.
    fn find(
        state: &mut LoopState<'_>,
        leaves: &[Value],
        number: &impl Fn(&mut LoopState<'_>) -> Option<u32>,
    ) -> Option<Self> {
        leaves.iter().find_map(|&leaf| {
            let old = state.eval.get(leaf)?;
            let before = number(state)?;
            state.eval.set(leaf, old.wrapping_add(1));
            state.enter();
            let after = number(state);
            state.eval.set(leaf, old);
            state.enter();
            let factor = after?.wrapping_sub(before);
            // Each step doubles the number of correct bits of the inverse.
            let inverse = (0..5).fold(factor, |x, _| x.wrapping_mul(2u32.wrapping_sub(factor.wrapping_mul(x))));
            (factor & 1 == 1).then_some(Self { leaf, inverse })
        })
    }

    /// Assigns the leaf so that the lowest `bits` of the number equal those of `wanted`. Returns
    /// `false` if the number is not linear in the leaf.
    fn assign(
        self,
        state: &mut LoopState<'_>,
        wanted: u32,
        bits: u32,
        number: &impl Fn(&mut LoopState<'_>) -> Option<u32>,
    ) -> bool {
        let (Some(old), Some(now)) = (state.eval.get(self.leaf), number(state)) else {
            return false;
        };
        let unused = 32 - bits;
        let wanted = now ^ (now ^ wanted) << unused >> unused;
        let change = wanted.wrapping_sub(now).wrapping_mul(self.inverse);
        state.eval.set(self.leaf, old.wrapping_add(u64::from(change)));
        state.enter();
        number(state) == Some(wanted)
    }
}

/// Returns the distances (second address minus first, in the first iteration) at which two accesses
/// overlap in the wrong order.
fn conflicting_distances(a: &AccessClaim, b: &AccessClaim, iterations: u64) -> BTreeSet<u32> {
    let lanes = u64::from(LANES);
    // The vector iteration in which an element is accessed; 0 is before the vector loop.
    let times = |access: &AccessClaim, iteration: u64| {
        let own = iteration / lanes + 1;
        match (access.hoisted, access.carried) {
            (true, _) => (0, 0),
            (_, true) => (own - 1, own),
            _ => (own, own),
        }
    };
    let mut found = BTreeSet::new();
    for i in 0..iterations {
        for j in 0..iterations {
            let (early, late) = (times(a, i), times(b, j));
            // In the scalar loop, the first access precedes the second one of the same iteration.
            let wrong = if i <= j {
                // It must execute first, or in the same vector iteration.
                late.0 < early.1
            } else {
                late.1 >= early.0
            };
            if !wrong {
                continue;
            }
            let stride = |stride: i32, iteration: u64| stride.cast_unsigned().wrapping_mul(iteration as u32);
            let gap = stride(a.stride, i).wrapping_sub(stride(b.stride, j));
            for bytes in 1..b.size + a.size {
                found.insert(gap.wrapping_add(bytes).wrapping_sub(b.size));
            }
        }
    }
    found
}
