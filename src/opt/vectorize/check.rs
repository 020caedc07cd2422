//! The check of the vectorizer: see [the module](super) for what has to hold.

use clif_opt::Error;
use clif_opt::check::eval::mix;
use clif_opt::check::world::World;
use clif_opt::check::{Check, broken};
use clif_opt::edit::{self, Edge};
use clif_opt::loops::NaturalLoop;
use cranelift_codegen::ir::{AliasRegion, Block, Function, Inst, InstructionData, Opcode, Value, ValueDef};
use npu_mc::machine::{CACHE_LINE, LANES};
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

/// Iterations that are looked at: three of the vector loop.
const WINDOW: u64 = 3 * LANES as u64;
/// Iterations of the vector loop that are followed at most.
const MOST_TIMES: u64 = 64;
/// Distances of a pair of accesses that are tried at most.
const MOST_DISTANCES: usize = 400;
/// Points at which the loop is looked at, each with other values from outside of it.
const SEEDS: u64 = 2;
/// Points at which alignment is looked at: the values that place an access in its line are even and odd among them.
const ALIGNMENT_SEEDS: u64 = 4;
/// Bits of an address within a cache line, the largest alignment of a vector.
const LINE_BITS: u32 = CACHE_LINE.trailing_zeros();

/// The part of an access that a vector load or store does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The sixteen elements.
    Whole,
    /// The line that the last element is in.
    LastLine,
    /// The line that the first element is in, or the one before it.
    FirstLine,
}

/// One access of the scalar loop, and what the pass claims about it.
#[derive(Clone, Copy, Debug)]
pub struct AccessClaim {
    /// The load or store.
    pub inst: Inst,
    /// Whether it stores.
    pub store: bool,
    /// Bytes of an element in memory.
    pub size: u32,
    /// Bytes from one iteration to the next.
    pub stride: i32,
    /// Whether nothing writes what it reads while the function runs.
    pub readonly: bool,
    /// Its alias region.
    pub region: Option<AliasRegion>,
    /// Whether the load is done once, in front of the vector loop.
    pub hoisted: bool,
    /// Whether the load may use a line that an earlier iteration of the vector loop has loaded.
    pub carried: bool,
    /// For an access that is two lines: the index of its last element in that element's line, if it is a constant.
    pub last: Option<u32>,
}

/// The iterations of the scalar loop.
#[derive(Clone, Copy, Debug, Default)]
pub enum Total {
    /// As many as the vector loop does, or more: the scalar loop does the others.
    #[default]
    Unknown,
    /// So many.
    Constant(u64),
    /// As many as the value says.
    Counted(Value),
}

/// A vector loop, and what the pass claims about it.
#[derive(Debug, Default)]
pub struct VectorLoop {
    /// Blocks: the tests, what does not change, the vector loop, what follows it.
    pub decide: Option<Block>,
    /// The parameters of the block with the tests.
    pub params: Vec<Value>,
    /// The first block of the vector loop's setup.
    pub setup: Option<Block>,
    /// The vector loop.
    pub body: Option<Block>,
    /// The block after it.
    pub after: Option<Block>,
    /// The accesses of the scalar loop, in the order of the program.
    pub accesses: Vec<AccessClaim>,
    /// The vector loads and stores of the vector loop, each with its access.
    pub parts: Vec<(Inst, usize, Part)>,
    /// Conditions that hold only if there are enough iterations.
    pub counted: Vec<Value>,
    /// Conditions that hold only if addresses are aligned.
    pub aligned: Vec<Value>,
    /// The addresses that the conditions of alignment test, as places among the accesses.
    pub tested: Vec<usize>,
    /// Conditions that hold only if accesses do not meet.
    pub apart: Vec<Value>,
    /// The iterations of the scalar loop that the vector loop does.
    pub whole: Option<Value>,
    /// All iterations, if the loop may end with the vector loop.
    pub total: Total,
    /// Values of reductions: the parameter and what it is after an iteration.
    pub reductions: Vec<(Value, Value)>,
    /// Values of the loop that are taken from the vector loop where it is the end.
    pub escapes: Vec<Value>,
    /// The exit of the scalar loop.
    pub exit: Option<Edge>,
}

/// Shows that the claims about a vector loop hold.
///
/// # Errors
///
/// [`Error::Internal`] if one does not.
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
    fn world(&self, entry: Edge, seed: u64) -> World<'a> {
        World::new(self.func, self.all, self.lp, entry, &self.made.params, seed)
    }

    fn failed<T>(&self, at: impl std::fmt::Display, expected: &'static str) -> Result<T, Error> {
        Err(broken("vectorize", at, expected))
    }

    /// The address of a load or store at the point; `None` if it cannot be evaluated.
    fn address(&self, world: &mut World<'_>, inst: Inst) -> Option<u32> {
        let (InstructionData::Load { offset, arg, .. }
        | InstructionData::Store {
            offset, args: [_, arg], ..
        }) = self.func.dfg.insts[inst]
        else {
            return None;
        };
        let pointer = world.eval.get(arg)? as u32;
        Some(pointer.wrapping_add(i32::from(offset).cast_unsigned()))
    }

    /// The pointer of a load or store.
    fn pointer(&self, inst: Inst) -> Option<Value> {
        match self.func.dfg.insts[inst] {
            InstructionData::Load { arg, .. } | InstructionData::Store { args: [_, arg], .. } => Some(arg),
            _ => None,
        }
    }

    /// The branch of the tests goes to the vector loop only if all conditions hold.
    fn conjunction(&self) -> Check {
        let made = self.made;
        let conditions = [made.counted.as_slice(), &made.aligned, &made.apart].concat();
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

    /// A lane of a reduction has a part of the sum, which is no value of any iteration: it is neither stored nor compared nor used after
    /// the loop, but for the sum at the end.
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

    /// The values of the loop that depend on a parameter of its header, that one included.
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
                    let passed = dfg.block_params(to).iter().zip(args);
                    more.extend(
                        passed.filter_map(|(&param, arg)| arg.as_value().is_some_and(is_part).then_some(param)),
                    );
                }
                parts.extend(more);
            }
        }
        Ok(parts)
    }

    /// Each address grows by its stride in every iteration; the vector loop accesses the same addresses.
    fn addresses(&self, entry: Edge, seed: u64) -> Check {
        let mut world = self.world(entry, seed);
        // Assigns values ahead of the loop even where it fails in the end.
        let aligned = self.assume_alignment(&mut world, None);
        let mut starts = Vec::new();
        for access in &self.made.accesses {
            starts.push(self.address(&mut world, access.inst));
        }
        if aligned {
            self.vector_addresses(&mut world, &starts)?;
        }
        world.enter();
        for iteration in 0..u32::try_from(WINDOW).unwrap_or(u32::MAX) {
            for (access, start) in self.made.accesses.iter().zip(&starts) {
                let (Some(start), Some(now)) = (*start, self.address(&mut world, access.inst)) else {
                    continue;
                };
                let way = access.stride.cast_unsigned().wrapping_mul(iteration);
                if now != start.wrapping_add(way) {
                    return self.failed(access.inst, "an address that grows by its stride");
                }
            }
            world.advance();
        }
        Ok(())
    }

    /// The loads and stores of the vector loop are where the scalar ones are, in the first iterations.
    fn vector_addresses(&self, world: &mut World<'_>, starts: &[Option<u32>]) -> Check {
        let whole = match self.known_iterations(world) {
            Some(known) => known,
            None => WINDOW,
        };
        world.eval.set(self.whole, whole);
        let times = (whole / u64::from(LANES)).min(MOST_TIMES);
        let setup = self.made.setup.and_then(|block| self.func.layout.last_inst(block));
        let Some(setup) = setup else {
            return self.failed(self.lp.header, "a setup of the vector loop");
        };
        let last = self.func.layout.last_inst(self.body);
        let params = self.func.dfg.block_params(self.body);
        let mut edge = Edge { inst: setup, number: 0 };
        for iteration in 0..times as u32 {
            let args = edit::args(self.func, edge).unwrap_or_default();
            let values: Vec<Option<u64>> = args.iter().map(|&arg| world.eval.get(arg)).collect();
            for (&param, value) in params.iter().zip(values) {
                if let Some(value) = value {
                    world.eval.set(param, value);
                }
            }
            let Some(inst) = last else { break };
            edge = Edge { inst, number: 0 };
            let goes_on = u64::from(iteration + 1) * u64::from(LANES) < whole;
            if world.takes(edge).is_some_and(|takes| takes != goes_on) {
                return self.failed(inst, "a vector loop that does the counted iterations");
            }
            if u64::from(iteration * LANES) >= WINDOW {
                continue;
            }
            for &(inst, number, part) in &self.made.parts {
                let access = &self.made.accesses[number];
                let in_body = self.func.layout.inst_block(inst) == Some(self.body);
                let (Some(start), Some(is)) = (starts[number], self.address(world, inst)) else {
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
                    // Of a vector that is aligned after all, nothing is taken from this line.
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

    /// The scalar loop goes on with the variables of the iteration that follows those of the vector loop.
    fn continues(&self, entry: Edge, seed: u64) -> Check {
        let mut world = self.world(entry, seed);
        let whole = match self.known_iterations(&mut world) {
            Some(known) if known > 4 * WINDOW => return Ok(()),
            Some(known) => known,
            None => WINDOW,
        };
        world.eval.set(self.whole, whole);
        let last = self.made.after.and_then(|block| self.func.layout.last_inst(block));
        let Some(last) = last else {
            return self.failed(self.lp.header, "a block after the vector loop");
        };
        let reductions = |param: Value| self.made.reductions.iter().any(|&(reduction, _)| reduction == param);
        let params = self.func.dfg.block_params(self.lp.header);
        if let Total::Counted(all) = self.made.total {
            for rest in [0, 1, u64::from(LANES) - 1] {
                world.eval.set(all, whole + rest);
                if world.takes(Edge { inst: last, number: 0 }) != Some(rest == 0) {
                    return self.failed(last, "an end after the vector loop only if no iteration is left");
                }
            }
        }
        let mut continued = Vec::new();
        for (number, call) in edit::destinations(self.func, last).iter().enumerate() {
            if call.block(&self.func.dfg.value_lists) == self.lp.header {
                let args = edit::args(self.func, Edge { inst: last, number }).unwrap_or_default();
                let variables = params.iter().zip(args).filter(|(param, _)| !reductions(**param));
                continued.extend(variables.map(|(&param, arg)| (param, world.eval.get(arg))));
            }
        }
        for _ in 0..whole {
            world.advance();
        }
        for (param, expected) in continued {
            if world.eval.get(param) != expected {
                return self.failed(param, "a variable that goes on after the vector loop");
            }
        }
        Ok(())
    }

    /// Changes leaves so that the tests of alignment succeed, but not those that `access` depends on. Whether they succeed.
    fn assume_alignment(&self, world: &mut World<'_>, access: Option<usize>) -> bool {
        let kept: Vec<Value> = access
            .and_then(|access| self.pointer(self.made.accesses[access].inst))
            .map(|pointer| world.free_leaves(pointer))
            .unwrap_or_default();
        for &tested in &self.made.tested {
            let inst = self.made.accesses[tested].inst;
            let Some(pointer) = self.pointer(inst) else { continue };
            let mut leaves = world.free_leaves(pointer);
            leaves.retain(|leaf| !kept.contains(leaf));
            let address = |world: &mut World<'_>| self.address(world, inst);
            if let Some(lever) = Lever::find(world, &leaves, &address) {
                lever.pull(world, 0, LINE_BITS, &address);
            }
        }
        self.made
            .aligned
            .iter()
            .all(|&condition| world.eval.get(condition) == Some(1))
    }

    /// Wherever an access begins in its line: if the tests of alignment succeed, every vector is aligned.
    fn alignment(&self, entry: Edge, seed: u64) -> Check {
        for (number, access) in self.made.accesses.iter().enumerate() {
            let Some(pointer) = self.pointer(access.inst).filter(|_| !access.hoisted) else {
                continue;
            };
            let mut world = self.world(entry, seed);
            let leaves = world.free_leaves(pointer);
            let address = |world: &mut World<'_>| self.address(world, access.inst);
            let lever = Lever::find(&mut world, &leaves, &address);
            for place in (0..1 << LINE_BITS).step_by(access.size as usize) {
                if let Some(lever) = lever {
                    lever.pull(&mut world, place, LINE_BITS, &address);
                }
                if self.assume_alignment(&mut world, Some(number)) {
                    self.aligned(&mut world)?;
                }
                if lever.is_none() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// The vectors that are loaded or stored as a whole begin at multiples of their size.
    fn aligned(&self, world: &mut World<'_>) -> Check {
        for &(_, number, part) in &self.made.parts {
            let access = &self.made.accesses[number];
            let Some(address) = self.address(world, access.inst) else {
                continue;
            };
            let bytes = access.size * LANES;
            let last = (address.wrapping_add(bytes - access.size) & (bytes - 1)) / access.size;
            let right = match part {
                Part::Whole => address.is_multiple_of(bytes),
                _ => access
                    .last
                    .is_none_or(|place| place == last && address.is_multiple_of(access.size)),
            };
            if !right {
                return self.failed(access.inst, "a vector that is aligned if the tests succeed");
            }
        }
        Ok(())
    }

    /// If the tests of the count succeed, the scalar loop does at least the iterations of the vector loop, and if the vector loop may be
    /// the end, no more than were counted.
    fn counts(&self, entry: Edge, up: bool) -> Check {
        let mut world = self.world(entry, 1);
        let InstructionData::Brif { arg: condition, .. } = self.func.dfg.insts[self.exit.inst] else {
            return self.failed(self.exit.inst, "an exit with a condition");
        };
        // What the exit compares: the variables of the loop, and what does not change in it.
        let header = self.func.dfg.block_params(self.lp.header);
        let leaves = world.eval.leaves(condition);
        let counters: Vec<usize> = (0..header.len())
            .filter(|&place| leaves.contains(&header[place]))
            .collect();
        let bounds: Vec<Value> = leaves.into_iter().filter(|leaf| !header.contains(leaf)).collect();
        let counted = |place: usize| self.made.params.get(place).copied();
        let starts: &[u64] = &[0, 5, 0x7fff_fff0, 0x7fff_ffff, 0x8000_0000, 0xffff_ffc0, 0xffff_ffff];
        let ways = (0..70).chain([127, 1000, 0x7fff_ffff, 0x8000_0000, 0xffff_fff0, 0xffff_ffff]);
        let ways: Vec<u64> = ways.collect();
        for &start in starts {
            for &way in &ways {
                world.enter();
                for &place in &counters {
                    // A start that is known stays as it is.
                    let (Some(param), Some(known)) = (counted(place), world.eval.get(header[place])) else {
                        continue;
                    };
                    let args = edit::args(self.func, entry).unwrap_or_default();
                    let constant = args.get(place).is_some_and(|&arg| world.eval.leaves(arg).is_empty());
                    let start = if constant { known } else { start };
                    world.eval.set(param, start);
                    world.eval.set(header[place], start);
                }
                let first = counters
                    .first()
                    .and_then(|&place| world.eval.get(header[place]))
                    .unwrap_or(0);
                for &bound in &bounds {
                    let bits = if up {
                        first.wrapping_add(way)
                    } else {
                        first.wrapping_sub(way)
                    };
                    world.eval.set(bound, bits);
                }
                let holds = self.made.counted.iter().all(|&one| world.eval.get(one) == Some(1));
                if holds {
                    self.count(&mut world)?;
                }
                if bounds.is_empty() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// The check of the count at one point where the tests succeed.
    fn count(&self, world: &mut World<'_>) -> Check {
        let Some(whole) = world.eval.get(self.whole) else {
            return Ok(());
        };
        let all = match self.made.total {
            Total::Unknown => None,
            Total::Constant(all) => Some(all),
            Total::Counted(all) => world.eval.get(all),
        };
        if whole == 0 || !whole.is_multiple_of(u64::from(LANES)) || all.is_some_and(|all| all < whole) {
            return self.failed(self.lp.header, "a multiple of sixteen iterations");
        }
        // The test of an iteration comes at its end where the vector loop may be the end of the loop.
        let stays = all.map_or(whole, |all| all - 1);
        for _ in 0..stays.min(2 * WINDOW) {
            match world.takes(self.exit) {
                Some(false) => world.advance(),
                Some(true) => {
                    return self.failed(self.exit.inst, "a scalar loop with the iterations of the vector loop");
                }
                None => return Ok(()),
            }
        }
        if all.is_some() && stays <= 2 * WINDOW && world.takes(self.exit) == Some(false) {
            return self.failed(self.exit.inst, "a scalar loop that ends after the counted iterations");
        }
        Ok(())
    }

    /// If the tests succeed, no two accesses meet whose order the vector loop changes.
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
        let mut world = self.world(entry, seed);
        let distance = |world: &mut World<'_>| {
            let (from, to) = (self.address(world, a.inst)?, self.address(world, b.inst)?);
            Some(to.wrapping_sub(from))
        };
        let Some(start) = distance(&mut world) else {
            return Ok(());
        };
        let known = self.known_iterations(&mut world);
        let bad = meetings(a, b, known.map_or(WINDOW, |known| known.min(WINDOW)));
        let mut leaves = Vec::new();
        for pointer in [a.inst, b.inst].into_iter().filter_map(|inst| self.pointer(inst)) {
            leaves.extend(world.free_leaves(pointer));
        }
        leaves.sort_unstable();
        leaves.dedup();
        let lever = Lever::find(&mut world, &leaves, &distance);
        let step = bad.len().div_ceil(MOST_DISTANCES).max(1);
        for &wanted in bad.iter().step_by(step).chain(bad.last()) {
            let found = match lever {
                Some(lever) => lever.pull(&mut world, wanted, 32, &distance),
                None => start == wanted,
            };
            if !found {
                continue;
            }
            if known.is_none() {
                world.eval.set(self.whole, WINDOW);
            }
            if self.made.apart.iter().all(|&one| world.eval.get(one) == Some(1)) {
                return self.failed(b.inst, "accesses that do not meet if the tests succeed");
            }
        }
        Ok(())
    }

    /// The iterations of the vector loop, if they are a constant.
    fn known_iterations(&self, world: &mut World<'_>) -> Option<u64> {
        world
            .eval
            .leaves(self.whole)
            .is_empty()
            .then(|| world.eval.get(self.whole))?
    }
}

/// A leaf that moves a number: the number grows by an odd factor with it, modulo 2^32.
#[derive(Clone, Copy)]
struct Lever {
    leaf: Value,
    /// The inverse of the factor.
    inverse: u32,
}

impl Lever {
    /// One of the leaves that moves the number at this point.
    fn find(world: &mut World<'_>, leaves: &[Value], number: &impl Fn(&mut World<'_>) -> Option<u32>) -> Option<Self> {
        leaves.iter().find_map(|&leaf| {
            let old = world.eval.get(leaf)?;
            let before = number(world)?;
            world.eval.set(leaf, old.wrapping_add(1));
            world.enter();
            let after = number(world);
            world.eval.set(leaf, old);
            world.enter();
            let factor = after?.wrapping_sub(before);
            // Each step doubles the bits of the inverse that are right.
            let inverse = (0..5).fold(factor, |x, _| x.wrapping_mul(2u32.wrapping_sub(factor.wrapping_mul(x))));
            (factor & 1 == 1).then_some(Self { leaf, inverse })
        })
    }

    /// Assigns the leaf so that the lowest `bits` of the number become those of `wanted`. Whether that worked: not if the number is no
    /// linear function of the leaf.
    fn pull(
        self,
        world: &mut World<'_>,
        wanted: u32,
        bits: u32,
        number: &impl Fn(&mut World<'_>) -> Option<u32>,
    ) -> bool {
        let (Some(old), Some(now)) = (world.eval.get(self.leaf), number(world)) else {
            return false;
        };
        let unused = 32 - bits;
        let wanted = now ^ (now ^ wanted) << unused >> unused;
        let change = wanted.wrapping_sub(now).wrapping_mul(self.inverse);
        world.eval.set(self.leaf, old.wrapping_add(u64::from(change)));
        world.enter();
        number(world) == Some(wanted)
    }
}

/// The distances of two accesses, the second address minus the first in the first iteration, at which they meet in a wrong order.
fn meetings(a: &AccessClaim, b: &AccessClaim, iterations: u64) -> BTreeSet<u32> {
    let lanes = u64::from(LANES);
    // When an element is accessed in the vector loop: the iteration of the vector loop, where 0 is in front of it.
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
            // In the scalar loop, the first access of an iteration comes before the second.
            let wrong = if i <= j {
                // It has to come first, and may be in the same iteration of the vector loop.
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
