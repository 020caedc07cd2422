//! Compares a function before and after a loop pass. [The module](super) states the conditions.

use super::eval::mix;
use super::execute::{Event, Machine, Outcome, Point};
use super::value_table::ValueTable;
use super::{Check, broken};
use crate::edit::{self, Edge};
use crate::loops::{NaturalLoop, mask};
use cranelift_codegen::ir::{Block, Function, InstructionData, Opcode, Type, Value};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::{Cell, RefCell};

/// The number of points at which a loop is compared, and the maximum number of points tried to
/// reach the changed loop.
const POINTS: u64 = 18;
const MAX_TRIED: u64 = 3 * POINTS;

/// The minimum and maximum number of instructions of a run, and the number per instruction of the
/// loop.
const MIN_STEPS: usize = 300;
const MAX_STEPS: usize = 1200;
const STEPS_PER_INSTRUCTION: usize = 8;

/// The number of instructions of a run at a boundary of the tests before a versioned loop, and the
/// maximum number of values that are varied to find boundaries.
const BOUNDARY_STEPS: usize = 6000;
const MAX_BOUNDARIES: usize = 6;

/// The maximum number of points with only extreme or small numbers that are tried for versioned
/// loops, and the number that is compared.
const MAX_SMALL_TRIED: u64 = 1500;
const SMALL_POINTS: usize = 250;

/// The maximum slowdown factor by a pass. The tests before a loop may be long, and an outer loop
/// may repeat them.
const MAX_SLOWDOWN: usize = 100;

/// The number of blocks before the loop that a run includes, to execute the tests that lead to it.
const BLOCKS_BEFORE: usize = 4;

/// The maximum number of constants of the function near which numbers are chosen.
const MAX_CONSTANTS: usize = 64;

/// The number of distinct values near a number.
const NEAR: u64 = 24;

/// The loads that a comparison observes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loads {
    /// Loads that may trap: the pass may move other loads.
    Trapping,
    /// All loads: the pass keeps them as they are.
    All,
}

/// Compares the effects of a loop before and after a pass.
///
/// # Errors
///
/// [`crate::Error::Internal`] if the effects differ at some point.
pub fn compare(pass: &'static str, before: &Function, after: &Function, lp: &NaturalLoop, loads: Loads) -> Check {
    let constants = constants(before, lp);
    let size: usize = lp
        .blocks
        .iter()
        .map(|&block| before.layout.block_insts(block).count())
        .sum();
    let pair = Pair {
        before,
        after,
        header: lp.header,
        loads: loads == Loads::All,
        memory: Cell::default(),
    };
    let steps = (size * STEPS_PER_INSTRUCTION).clamp(MIN_STEPS, MAX_STEPS);
    let versioned = loads == Loads::Trapping;
    let different = || broken(pass, lp.header, "the same effects as before the pass");
    for start in starts(before, lp) {
        let mut compared = 0;
        let mut inside = None;
        for seed in 0..MAX_TRIED {
            let point = SamplePoint::new(seed, &constants);
            let reaches = !versioned || pair.reaches_header(start, &point, steps);
            if versioned && reaches && inside.is_none() {
                inside = Some(SamplePoint::new(seed, &constants));
            }
            // A run that does not reach the header executes the original version of a versioned
            // loop.
            if !reaches && seed % 3 != 0 {
                continue;
            }
            if compared == POINTS {
                break;
            }
            compared += 1;
            if !pair.agrees(start, &point, steps) {
                return Err(different());
            }
        }
        if versioned {
            let small = (0..MAX_SMALL_TRIED).map(|seed| SamplePoint::small(seed, &constants));
            let reached = small.filter(|point| pair.reaches_header(start, point, steps));
            for point in reached.take(SMALL_POINTS) {
                if !pair.agrees(start, &point, MIN_STEPS) {
                    return Err(different());
                }
            }
        }
        let Some(inside) = inside else {
            continue;
        };
        for boundary in pair.boundaries(start, inside, steps) {
            if !pair.agrees(start, &boundary, BOUNDARY_STEPS) {
                return Err(different());
            }
        }
    }
    Ok(())
}

/// A function before and after a pass.
struct Pair<'a> {
    before: &'a Function,
    after: &'a Function,
    header: Block,
    loads: bool,
    memory: Cell<ValueTable>,
}

impl Pair<'_> {
    /// Returns whether both functions have the same effects at the point.
    fn agrees(&self, start: Block, point: &SamplePoint<'_>, steps: usize) -> bool {
        let run = |func, steps| {
            let mut machine = Machine::new(func, point, self.header, self.loads, self.memory.take());
            let outcome = machine.run(start, steps);
            self.memory.set(machine.values);
            (outcome, machine.events, machine.steps)
        };
        let (was, old, taken) = run(self.before, steps);
        let (mut is, mut new, _) = run(self.after, steps);
        if was == Outcome::Finished && is == Outcome::OutOfSteps {
            (is, new, _) = run(self.after, steps.max(taken * MAX_SLOWDOWN));
        }
        let known = was != Outcome::Unknown && is != Outcome::Unknown;
        !known || effects_agree((was, &old), (is, &new))
    }

    /// Returns whether the function after the pass reaches the header of the loop.
    fn reaches_header(&self, start: Block, point: &SamplePoint<'_>, steps: usize) -> bool {
        let machine = Machine::new(self.after, point, self.header, false, self.memory.take());
        let (reaches, memory) = machine.reaches_watched(start, steps);
        self.memory.set(memory);
        reaches
    }

    /// Returns points at which the run reaches the header, but would not if one number were one
    /// more or one less.
    fn boundaries<'n>(&self, start: Block, inside: SamplePoint<'n>, steps: usize) -> Vec<SamplePoint<'n>> {
        let reaches = |point: &SamplePoint<'_>| self.reaches_header(start, point, steps);
        inside.requested.borrow_mut().clear();
        reaches(&inside);
        let mut requested = inside.requested.borrow().clone();
        requested.retain(|(_, ty, _)| ty.is_int() && ty.bits() <= 64);
        requested.truncate(MAX_BOUNDARIES);
        let mut found = Vec::new();
        for &(value, ty, number) in &requested {
            for down in [false, true] {
                let at = |distance: u64| {
                    let other = if down {
                        number.wrapping_sub(distance)
                    } else {
                        number.wrapping_add(distance)
                    };
                    inside.with(value, other & mask(ty))
                };
                // The run reaches the header at distance `near`, and does not at distance `far`.
                let (mut near, mut far) = (0, 1);
                while far <= mask(ty) / 2 && reaches(&at(far)) {
                    (near, far) = (far, far * 2);
                }
                if far > mask(ty) / 2 {
                    continue;
                }
                while far - near > 1 {
                    let middle = near + (far - near) / 2;
                    if reaches(&at(middle)) {
                        near = middle;
                    } else {
                        far = middle;
                    }
                }
                found.push(at(near));
            }
        }
        found
    }
}

/// Returns whether two runs agree in their common prefix, and the second run ends where the first
/// does.
fn effects_agree((was, old): (Outcome, &[Event]), (is, new): (Outcome, &[Event])) -> bool {
    let both = old.len().min(new.len());
    let finished = |outcome| outcome == Outcome::Finished;
    let ends = match (finished(was), finished(is)) {
        (true, true) => old.len() == new.len(),
        // The second run had many times as many steps and still did not finish.
        (true, false) => false,
        (false, true) => old.len() <= new.len(),
        (false, false) => true,
    };
    old[..both] == new[..both] && ends
}

/// Returns the start blocks of runs: a few blocks before each entry of the loop.
fn starts(func: &Function, lp: &NaturalLoop) -> Vec<Block> {
    let mut preds: FxHashMap<Block, Vec<Block>> = FxHashMap::default();
    for block in func.layout.blocks() {
        let Some(inst) = func.layout.last_inst(block) else {
            continue;
        };
        for number in 0..edit::destinations(func, inst).len() {
            if let Some(to) = edit::target(func, Edge { inst, number }) {
                preds.entry(to).or_default().push(block);
            }
        }
    }
    let mut found = Vec::new();
    for entry in &lp.entries {
        let Some(mut block) = func.layout.inst_block(entry.inst) else {
            continue;
        };
        for _ in 0..BLOCKS_BEFORE {
            match preds.get(&block).map(Vec::as_slice) {
                Some(&[only]) if only != block => block = only,
                _ => break,
            }
        }
        if !found.contains(&block) {
            found.push(block);
        }
    }
    found
}

/// Returns the constants of the loop, followed by those of the rest of the function.
fn constants(func: &Function, lp: &NaturalLoop) -> Vec<u64> {
    let mut seen = FxHashSet::default();
    let mut found = Vec::new();
    let others = func.layout.blocks().filter(|block| !lp.contains(*block));
    for inst in lp
        .blocks
        .iter()
        .copied()
        .chain(others)
        .flat_map(|block| func.layout.block_insts(block))
    {
        if let InstructionData::UnaryImm {
            opcode: Opcode::Iconst,
            imm,
        } = func.dfg.insts[inst]
            && found.len() < MAX_CONSTANTS
            && seen.insert(imm.bits())
        {
            found.push(imm.bits().cast_unsigned());
        }
    }
    found
}

/// Numbers near one another, near constants, and near the limits of their types.
struct SamplePoint<'a> {
    seed: u64,
    constants: &'a [u64],
    /// Whether all numbers are small or near the limits of their types.
    is_small: bool,
    /// A value with an assigned number.
    assigned: Option<(Value, u64)>,
    /// The values that a run requested, with their numbers.
    requested: RefCell<Vec<(Value, Type, u64)>>,
}

impl<'a> SamplePoint<'a> {
    fn new(seed: u64, constants: &'a [u64]) -> Self {
        Self {
            seed,
            constants,
            is_small: false,
            assigned: None,
            requested: RefCell::new(Vec::new()),
        }
    }

    /// Returns numbers from 0 to 7, from -4 to 3, or of both kinds and near the signed limits.
    fn small(seed: u64, constants: &'a [u64]) -> Self {
        Self {
            is_small: true,
            ..Self::new(seed, constants)
        }
    }

    /// Returns the same point with another number for one value.
    fn with(&self, value: Value, number: u64) -> Self {
        Self {
            assigned: Some((value, number)),
            is_small: self.is_small,
            ..Self::new(self.seed, self.constants)
        }
    }

    /// Returns the number near which most numbers of a type are at this point.
    fn base(&self, ty: Type) -> u64 {
        let hash = mix(self.seed ^ 0x5eed);
        let end = 1u64 << (ty.bits().min(64) - 1);
        match self.seed % 6 {
            0 | 1 => 0,
            2 => end.wrapping_sub(NEAR / 2),
            3 => 0u64.wrapping_sub(NEAR / 2),
            4 => self.constant(hash).wrapping_sub(hash >> 32 & 7) >> (hash >> 48 & 3),
            _ => hash & !0x3f,
        }
    }

    fn constant(&self, hash: u64) -> u64 {
        let count = self.constants.len() as u64;
        hash.checked_rem(count)
            .map_or(0, |index| self.constants[index as usize])
    }
}

impl Point for SamplePoint<'_> {
    fn value(&self, value: Value, ty: Type) -> u64 {
        let hash = mix(self.seed.wrapping_mul(0x9e37_79b9) ^ u64::from(value.as_u32()) << 32);
        if let Some((_, number)) = self.assigned.filter(|known| known.0 == value) {
            return number;
        }
        if ty.bits() > 64 {
            return hash;
        }
        let more = hash >> 8;
        let number = match hash & 15 {
            _ if self.is_small => {
                let end = 1u64 << (ty.bits() - 1);
                match (self.seed % 3, hash & 3) {
                    (0, _) | (2, 0) => more % 8,
                    (1, _) | (2, 1) => (more % 8).wrapping_sub(4),
                    (_, 2) => (more % 8).wrapping_add(end).wrapping_sub(4),
                    _ => more % 3,
                }
            }
            0..=8 => self.base(ty).wrapping_add(more % NEAR),
            9..=11 => self.constant(more).wrapping_add((hash >> 40) % 5).wrapping_sub(2),
            12 => (1u64 << (ty.bits() - 1)).wrapping_add(more % 3).wrapping_sub(1),
            13 => (more % 3).wrapping_sub(1),
            14 => more & !3,
            _ => more,
        };
        self.requested.borrow_mut().push((value, ty, number & mask(ty)));
        number & mask(ty)
    }

    fn byte(&self, index: u64) -> u8 {
        let hash = mix(self.seed ^ index);
        match self.seed % 3 {
            0 => 0,
            // Mostly small numbers of any width.
            1 if hash & 7 != 0 => 0,
            1 => (hash >> 8) as u8 & 15,
            _ => hash as u8,
        }
    }
}
