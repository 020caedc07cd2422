//! In-order list scheduling of straight-line code.
//!
//! Latencies come from td. No instruction moves across the end of a block or across an instruction
//! with side effects, and branches keep their positions. Instructions that must not precede a
//! branch directly are a constraint of the order. [`hazard`] inserts separating instructions where
//! no order helps, and where scheduling is disabled.

pub mod hazard;

use super::edit::Editor;
use super::effects::{Access, Effects, REGISTERS, RegSet, index_of};
use super::func::MachFunction;
use crate::list_sched::ListScheduler;

/// The maximum length of a region that is scheduled at once. The search for memory conflicts is
/// quadratic.
const MAX_REGION: usize = 256;

/// Reorders every region of the function. `loses_results` is whether the hardware has the erratum
/// of [`hazard`].
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
            // Registers that are read right after the region should be ready in time.
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

/// The state of a register in the region so far.
#[derive(Clone, Copy)]
struct Register {
    /// The last instruction that wrote it.
    writer: u32,
    /// The first of the instructions that have read it since.
    readers: u32,
    /// The number of writes.
    version: u32,
}

const UNTOUCHED: Register = Register {
    writer: NONE,
    readers: NONE,
    version: 0,
};

/// A load or store with the version of its base. A store conflicts with accesses that may overlap
/// it.
struct Versioned {
    node: u32,
    access: Access,
    version: u32,
}

/// The dependence graph of a region, with buffers that every region reuses.
struct Scheduler {
    list: ListScheduler,
    readers: Vec<(u32, u32)>,
    registers: [Register; REGISTERS],
    accesses: Vec<Versioned>,
}

impl Scheduler {
    /// Creates a scheduler with memory for regions of this size.
    fn with_capacity(insts: usize) -> Self {
        Self {
            list: ListScheduler::with_capacity(insts),
            readers: Vec::with_capacity(2 * insts),
            registers: [UNTOUCHED; REGISTERS],
            accesses: Vec::with_capacity(insts),
        }
    }

    /// Builds the dependence graph of a region and the instruction after it, if that is in the same
    /// block.
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
                    // A second write waits for the first result, like a read.
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

/// Returns whether two accesses must stay in order: one of them is a store, and they may overlap.
fn conflict(a: &Versioned, b: &Versioned) -> bool {
    let (x, y) = (&a.access, &b.access);
    let disjoint = match (x.at, y.at) {
        (Some((base, start)), Some((other, other_start))) => {
            base == other
                && a.version == b.version
                && (start + x.bytes <= other_start || other_start + y.bytes <= start)
        }
        _ => false,
    };
    (x.is_store || y.is_store) && !disjoint
}
