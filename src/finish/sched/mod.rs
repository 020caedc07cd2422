//! In-order list scheduling of straight-line code.
//!
//! Latencies come from td. Nothing moves across the end of a block or an instruction with effects of its own; branches keep
//! their places. What may not stand before a branch is a constraint of the order; [`hazard`] inserts what separates them
//! where no order helps, and where nothing is scheduled.

pub mod hazard;

use super::edit::Editor;
use super::effects::{Access, Effects, REGISTERS, RegSet, index_of};
use super::func::MachFunction;
use crate::list_sched::ListScheduler;

/// Longest region that is scheduled at once: the search for memory conflicts is quadratic.
const MAX_REGION: usize = 256;

/// Reorders every region of the function. `loses_results` says whether the hardware has the erratum of [`hazard`].
pub fn run(func: &mut MachFunction, loses_results: bool) {
    let has_floats = hazard::has_floats(func);
    let mut edit = Editor::new(func);
    let mut scheduler = Scheduler::with_capacity(MAX_REGION.min(edit.insts().len()));
    for block in 0..edit.func().block_count() {
        let range = edit.func().block_range(block);
        let mut start = range.start;
        while start < range.end {
            let region = edit.region(start, range.end.min(start + MAX_REGION));
            start = region.end;
            if region.len() < 2 {
                continue;
            }
            let effects = &edit.effects()[..range.end];
            // Registers that are read after the region should be ready in time.
            let next = effects.get(region.end);
            scheduler.dependences(&effects[region.clone()], next);
            let branch = next.filter(|next| loses_results && next.is_branch);
            let touched = match branch {
                Some(_) => hazard::touched_at_target(edit.func(), region.end, has_floats),
                None => RegSet::EMPTY,
            };
            let is_lost = |index: usize| {
                branch.is_some_and(|branch| hazard::is_lost(&effects[region.start + index], branch, touched))
            };
            let order = scheduler.list.run(|index| !is_lost(index));
            edit.reorder(region, order);
        }
    }
    edit.finish();
}

/// The end of a list.
const NONE: u32 = u32::MAX;

/// A register in the region so far.
#[derive(Clone, Copy)]
struct Register {
    /// The last instruction that wrote it.
    writer: u32,
    /// The first of the instructions that have read it since.
    readers: u32,
    /// How often it was written.
    version: u32,
}

const UNTOUCHED: Register = Register {
    writer: NONE,
    readers: NONE,
    version: 0,
};

/// A load or store, with the version of its base. Stores conflict with what may overlap.
struct Versioned {
    node: u32,
    access: Access,
    version: u32,
}

/// The dependences of one region, and the memory that every region uses again.
struct Scheduler {
    list: ListScheduler,
    readers: Vec<(u32, u32)>,
    registers: [Register; REGISTERS],
    accesses: Vec<Versioned>,
}

impl Scheduler {
    /// A scheduler with memory for regions of this size.
    fn with_capacity(insts: usize) -> Self {
        Self {
            list: ListScheduler::with_capacity(insts),
            readers: Vec::with_capacity(2 * insts),
            registers: [UNTOUCHED; REGISTERS],
            accesses: Vec::with_capacity(insts),
        }
    }

    /// Finds what waits for what in a region, and in the instruction after it, if that is in the same block.
    fn dependences(&mut self, region: &[Effects], next: Option<&Effects>) {
        self.list.clear();
        self.readers.clear();
        self.accesses.clear();
        let mut touched = RegSet::EMPTY;
        for (index, effects) in (0u32..).zip(region) {
            let is_awaited = next.is_some_and(|next| effects.writes.meets(next.reads));
            self.list
                .add(if is_awaited { effects.latency } else { 1 }, effects.is_long);
            let depends_on = effects.depends_on();
            touched = touched.or(depends_on).or(effects.writes);
            for place in depends_on.indices() {
                let Register { writer, readers, .. } = self.registers[place];
                if let Some(earlier) = region.get(writer as usize) {
                    self.list.depend(writer, index, earlier.latency);
                }
                self.registers[place].readers = self.readers.len() as u32;
                self.readers.push((index, readers));
            }
            let access = effects.access.map(|access| Versioned {
                node: index,
                access,
                version: access.at.map_or(0, |(base, _)| self.registers[index_of(base)].version),
            });
            for place in effects.writes.indices() {
                let Register {
                    writer,
                    mut readers,
                    version,
                } = self.registers[place];
                if let Some(earlier) = region.get(writer as usize) {
                    // Writing again waits for the first result, like reading it.
                    self.list.depend(writer, index, earlier.latency);
                }
                while let Some(&(reader, next)) = self.readers.get(readers as usize) {
                    if reader != index {
                        self.list.depend(reader, index, 1);
                    }
                    readers = next;
                }
                self.registers[place] = Register {
                    writer: index,
                    readers: NONE,
                    version: version + 1,
                };
            }
            if let Some(access) = access {
                for earlier in &self.accesses {
                    if conflict(earlier, &access) {
                        self.list.depend(earlier.node, index, 1);
                    }
                }
                self.accesses.push(access);
            }
        }
        for place in touched.indices() {
            self.registers[place] = UNTOUCHED;
        }
    }
}

/// Whether two accesses must stay in order: one of them stores, and they may overlap.
fn conflict(a: &Versioned, b: &Versioned) -> bool {
    let (x, y) = (&a.access, &b.access);
    let apart = match (x.at, y.at) {
        (Some((base, start)), Some((other, other_start))) => {
            base == other
                && a.version == b.version
                && (start + x.bytes <= other_start || other_start + y.bytes <= start)
        }
        _ => false,
    };
    (x.is_store || y.is_store) && !apart
}
