//! Comparison of a function before and after a pass changed a loop: see [the module](super) for what has to hold.

use super::eval::mix;
use super::execute::{Event, Machine, Numbers as Values, Outcome, Point};
use super::{Check, broken};
use crate::edit::{self, Edge};
use crate::loops::{NaturalLoop, mask};
use cranelift_codegen::ir::{Block, Function, InstructionData, Opcode, Type, Value};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::{Cell, RefCell};

/// Points at which a loop is compared, and the most that are tried to find some at which its new form runs.
const POINTS: u64 = 18;
const TRIED: u64 = 3 * POINTS;

/// Instructions of a run, at least and at most, and how many per instruction of the loop.
const LEAST_STEPS: usize = 300;
const MOST_STEPS: usize = 1200;
const STEPS_EACH: usize = 8;

/// Instructions of a run at the last number for which the tests in front of a versioned loop hold, and numbers that are changed to find
/// such.
const BOUNDARY_STEPS: usize = 6000;
const BOUNDARIES: usize = 6;

/// Points for versioned loops at which all numbers are at the ends of their types or near 0, and how many of them are compared.
const SMALL_TRIED: u64 = 1500;
const SMALL_POINTS: usize = 250;

/// How many times more instructions a loop may take after the pass. Tests in front of a loop are many, and a loop around it may do them
/// often.
const SLOWER: usize = 100;

/// Blocks in front of the loop in which a run begins, so that it does the tests that lead to the loop.
const BLOCKS_BEFORE: usize = 4;

/// Constants of the function that numbers are near to.
const MOST_CONSTANTS: usize = 64;

/// How many different numbers are near another one.
const NEAR: u64 = 24;

/// What a comparison observes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loads {
    /// Loads that may trap: the pass may load earlier what does not trap.
    Trapping,
    /// All loads: the pass leaves them as they are.
    All,
}

/// Compares the effects of a loop before and after a pass.
///
/// # Errors
///
/// [`crate::Error::Internal`] if they differ at some point.
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
    let steps = (size * STEPS_EACH).clamp(LEAST_STEPS, MOST_STEPS);
    let versioned = loads == Loads::Trapping;
    let different = || broken(pass, lp.header, "the same effects as before the pass");
    for start in starts(before, lp) {
        let mut compared = 0;
        let mut inside = None;
        for seed in 0..TRIED {
            let point = Numbers::new(seed, &constants);
            let comes = !versioned || pair.comes(start, &point, steps);
            if versioned && comes && inside.is_none() {
                inside = Some(Numbers::new(seed, &constants));
            }
            // The copy of a versioned loop away from the header is the loop as it was.
            if !comes && seed % 3 != 0 {
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
            let small = (0..SMALL_TRIED).map(|seed| Numbers::small(seed, &constants));
            let reached = small.filter(|point| pair.comes(start, point, steps));
            for point in reached.take(SMALL_POINTS) {
                if !pair.agrees(start, &point, LEAST_STEPS) {
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
    memory: Cell<Values>,
}

impl Pair<'_> {
    /// Whether both have the same effects at the point.
    fn agrees(&self, start: Block, point: &Numbers<'_>, steps: usize) -> bool {
        let run = |func, steps| {
            let mut machine = Machine::new(func, point, self.header, self.loads, self.memory.take());
            let outcome = machine.run(start, steps);
            self.memory.set(machine.values);
            (outcome, machine.events, machine.steps)
        };
        let (was, old, taken) = run(self.before, steps);
        let (mut is, mut new, _) = run(self.after, steps);
        if was == Outcome::Finished && is == Outcome::OutOfSteps {
            (is, new, _) = run(self.after, steps.max(taken * SLOWER));
        }
        let known = was != Outcome::Unknown && is != Outcome::Unknown;
        !known || agree((was, &old), (is, &new))
    }

    /// Whether the function comes to the header of the loop after the pass.
    fn comes(&self, start: Block, point: &Numbers<'_>, steps: usize) -> bool {
        let machine = Machine::new(self.after, point, self.header, false, self.memory.take());
        let (comes, memory) = machine.comes_to_watched(start, steps);
        self.memory.set(memory);
        comes
    }

    /// Points at which the run comes to the header as it does at this one, and would not if one number were one more or one less.
    fn boundaries<'n>(&self, start: Block, inside: Numbers<'n>, steps: usize) -> Vec<Numbers<'n>> {
        let comes = |point: &Numbers<'_>| self.comes(start, point, steps);
        inside.asked.borrow_mut().clear();
        comes(&inside);
        let mut asked = inside.asked.borrow().clone();
        asked.retain(|(_, ty, _)| ty.is_int() && ty.bits() <= 64);
        asked.truncate(BOUNDARIES);
        let mut found = Vec::new();
        for &(value, ty, number) in &asked {
            for down in [false, true] {
                let at = |distance: u64| {
                    let other = if down {
                        number.wrapping_sub(distance)
                    } else {
                        number.wrapping_add(distance)
                    };
                    inside.with(value, other & mask(ty))
                };
                // Up to `near` the header is reached, at `far` it is not.
                let (mut near, mut far) = (0, 1);
                while far <= mask(ty) / 2 && comes(&at(far)) {
                    (near, far) = (far, far * 2);
                }
                if far > mask(ty) / 2 {
                    continue;
                }
                while far - near > 1 {
                    let middle = near + (far - near) / 2;
                    if comes(&at(middle)) {
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

/// Whether the effects of two runs agree as far as both have come, and the second one does not stop earlier or go on longer.
fn agree((was, old): (Outcome, &[Event]), (is, new): (Outcome, &[Event])) -> bool {
    let both = old.len().min(new.len());
    let finished = |outcome| outcome == Outcome::Finished;
    let ends = match (finished(was), finished(is)) {
        (true, true) => old.len() == new.len(),
        // It has had many times the steps.
        (true, false) => false,
        (false, true) => old.len() <= new.len(),
        (false, false) => true,
    };
    old[..both] == new[..both] && ends
}

/// Blocks from which all entries of the loop are reached: up to some blocks in front of each.
fn starts(func: &Function, lp: &NaturalLoop) -> Vec<Block> {
    let mut into: FxHashMap<Block, Vec<Block>> = FxHashMap::default();
    for block in func.layout.blocks() {
        let Some(inst) = func.layout.last_inst(block) else {
            continue;
        };
        for number in 0..edit::destinations(func, inst).len() {
            if let Some(to) = edit::target(func, Edge { inst, number }) {
                into.entry(to).or_default().push(block);
            }
        }
    }
    let mut found = Vec::new();
    for entry in &lp.entries {
        let Some(mut block) = func.layout.inst_block(entry.inst) else {
            continue;
        };
        for _ in 0..BLOCKS_BEFORE {
            match into.get(&block).map(Vec::as_slice) {
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

/// The constants of the loop, then those of the rest of the function.
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
            && found.len() < MOST_CONSTANTS
            && seen.insert(imm.bits())
        {
            found.push(imm.bits().cast_unsigned());
        }
    }
    found
}

/// Numbers that are near to one another, to constants, and to the ends of their types.
struct Numbers<'a> {
    seed: u64,
    constants: &'a [u64],
    /// All numbers are at the ends of their types or near 0.
    is_small: bool,
    /// A value with a number of its own.
    assigned: Option<(Value, u64)>,
    /// The values that were asked for, with their numbers.
    asked: RefCell<Vec<(Value, Type, u64)>>,
}

impl<'a> Numbers<'a> {
    fn new(seed: u64, constants: &'a [u64]) -> Self {
        Self {
            seed,
            constants,
            is_small: false,
            assigned: None,
            asked: RefCell::new(Vec::new()),
        }
    }

    /// Numbers from 0 to 7; from -4 to 3; or of both kinds and around the ends of signed numbers.
    fn small(seed: u64, constants: &'a [u64]) -> Self {
        Self {
            is_small: true,
            ..Self::new(seed, constants)
        }
    }

    /// The same, but for the number of one value.
    fn with(&self, value: Value, number: u64) -> Self {
        Self {
            assigned: Some((value, number)),
            is_small: self.is_small,
            ..Self::new(self.seed, self.constants)
        }
    }

    /// What most numbers of a type are near to at this point.
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
            .map_or(0, |place| self.constants[place as usize])
    }
}

impl Point for Numbers<'_> {
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
        self.asked.borrow_mut().push((value, ty, number & mask(ty)));
        number & mask(ty)
    }

    fn byte(&self, place: u64) -> u8 {
        let hash = mix(self.seed ^ place);
        match self.seed % 3 {
            0 => 0,
            // Mostly small numbers of any size.
            1 if hash & 7 != 0 => 0,
            1 => (hash >> 8) as u8 & 15,
            _ => hash as u8,
        }
    }
}
