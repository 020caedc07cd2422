//! In-order list scheduling of straight-line code.
//!
//! The core issues one instruction of a thread each cycle and waits where an operand is not ready, so independent
//! instructions belong between a long operation and its user. Latencies come from td. Nothing moves across a label, a
//! branch or an instruction with effects of its own; branches keep their places. What may not stand before a branch is a
//! constraint of the order ([`hazard`]), also where nothing else is scheduled.

pub mod hazard;

use super::edit::Editor;
use super::effects::{Access, Effects, REGISTERS, RegSet, index_of};
use super::func::MachFunction;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Longest region that is scheduled at once: the search for memory conflicts is quadratic.
const MAX_REGION: usize = 256;

/// Reorders every region of the function.
pub fn run(func: &mut MachFunction) {
    let mut edit = Editor::new(func);
    let mut scheduler = Scheduler::default();
    for block in 0..edit.func().block_count() {
        let range = edit.func().block_range(block);
        let mut start = range.start;
        while start < range.end {
            let region = edit.region(start, range.end.min(start + MAX_REGION));
            start = region.end;
            if region.len() > 1 {
                // A branch after the region reads registers that should be ready in time.
                let branch = edit.effects()[..range.end].get(region.end);
                scheduler.schedule(&edit.effects()[region.clone()], branch);
                edit.reorder(region, &scheduler.order);
            }
        }
    }
    edit.finish();
}

/// The end of a list.
const NONE: u32 = u32::MAX;

/// An instruction and what has to wait for it.
#[derive(Clone, Copy)]
struct Node {
    /// The first of the edges to later instructions.
    succs: u32,
    /// Earlier instructions that have not been placed.
    waiting_for: u32,
    /// Cycles from the issue of this one to the end of the longest chain after it.
    height: u32,
    /// Earliest cycle.
    ready: u32,
}

/// A later instruction with the least distance in cycles.
#[derive(Clone, Copy)]
struct Edge {
    to: u32,
    distance: u32,
    next: u32,
}

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
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    readers: Vec<(u32, u32)>,
    registers: [Register; REGISTERS],
    accesses: Vec<Versioned>,
    /// Ready now, by height. The original order breaks ties.
    now: BinaryHeap<(u32, Reverse<u32>)>,
    /// Ready later, by cycle.
    later: BinaryHeap<Reverse<(u32, u32)>>,
    /// The order in which the instructions now stand, in terms of the old one.
    order: Vec<usize>,
}

impl Default for Scheduler {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            edges: Vec::new(),
            readers: Vec::new(),
            registers: [UNTOUCHED; REGISTERS],
            accesses: Vec::new(),
            now: BinaryHeap::new(),
            later: BinaryHeap::new(),
            order: Vec::new(),
        }
    }
}

impl Scheduler {
    /// Finds the order of a region before a branch, if one follows.
    fn schedule(&mut self, region: &[Effects], branch: Option<&Effects>) {
        self.dependences(region);
        // Heights, last first; what the branch reads is as urgent as its latency.
        for index in (0..region.len()).rev() {
            let mut height = match branch {
                Some(branch) if region[index].writes.meets(branch.reads) => region[index].latency,
                _ => 1,
            };
            let mut edge = self.nodes[index].succs;
            while let Some(&Edge { to, distance, next }) = self.edges.get(edge as usize) {
                height = height.max(self.nodes[to as usize].height + distance);
                edge = next;
            }
            self.nodes[index].height = height;
        }
        self.order.clear();
        self.now.clear();
        self.later.clear();
        for (index, node) in (0..).zip(&self.nodes) {
            if node.waiting_for == 0 {
                self.now.push((node.height, Reverse(index)));
            }
        }
        let mut cycle = 0;
        loop {
            while let Some(&Reverse((ready, index))) = self.later.peek() {
                if ready > cycle {
                    break;
                }
                self.later.pop();
                self.now.push((self.nodes[index as usize].height, Reverse(index)));
            }
            let Some((_, Reverse(index))) = self.now.pop() else {
                match self.later.peek() {
                    Some(&Reverse((ready, _))) => cycle = ready,
                    None => break,
                }
                continue;
            };
            self.order.push(index as usize);
            let mut edge = self.nodes[index as usize].succs;
            while let Some(&Edge { to, distance, next }) = self.edges.get(edge as usize) {
                let node = &mut self.nodes[to as usize];
                node.ready = node.ready.max(cycle + distance);
                node.waiting_for -= 1;
                if node.waiting_for == 0 {
                    self.later.push(Reverse((node.ready, to)));
                }
                edge = next;
            }
            cycle += 1;
        }
    }

    fn dependences(&mut self, region: &[Effects]) {
        self.nodes.clear();
        let node = Node {
            succs: NONE,
            waiting_for: 0,
            height: 0,
            ready: 0,
        };
        self.nodes.resize(region.len(), node);
        self.edges.clear();
        self.readers.clear();
        self.accesses.clear();
        let mut touched = RegSet::EMPTY;
        for (index, effects) in (0u32..).zip(region) {
            let depends_on = effects.depends_on();
            touched = touched.or(depends_on).or(effects.writes);
            for place in depends_on.indices() {
                let Register { writer, readers, .. } = self.registers[place];
                if let Some(earlier) = region.get(writer as usize) {
                    self.edge(writer, index, earlier.latency);
                }
                self.registers[place].readers = self.readers.len() as u32;
                self.readers.push((index, readers));
            }
            let access = effects.access.map(|access| Versioned {
                node: index,
                access,
                version: access.base.map_or(0, |base| self.registers[index_of(base)].version),
            });
            for place in effects.writes.indices() {
                let Register {
                    writer,
                    mut readers,
                    version,
                } = self.registers[place];
                if let Some(earlier) = region.get(writer as usize) {
                    // Writing again waits for the first result, like reading it.
                    self.edge(writer, index, earlier.latency);
                }
                while let Some(&(reader, next)) = self.readers.get(readers as usize) {
                    if reader != index {
                        self.edge(reader, index, 1);
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
                for number in 0..self.accesses.len() {
                    if conflict(&self.accesses[number], &access) {
                        self.edge(self.accesses[number].node, index, 1);
                    }
                }
                self.accesses.push(access);
            }
        }
        for place in touched.indices() {
            self.registers[place] = UNTOUCHED;
        }
    }

    fn edge(&mut self, from: u32, to: u32, distance: u32) {
        let next = self.nodes[from as usize].succs;
        self.nodes[from as usize].succs = self.edges.len() as u32;
        self.edges.push(Edge { to, distance, next });
        self.nodes[to as usize].waiting_for += 1;
    }
}

/// Whether two accesses must stay in order: one of them stores, and they may overlap.
fn conflict(a: &Versioned, b: &Versioned) -> bool {
    let (x, y) = (&a.access, &b.access);
    let apart = x.base.is_some()
        && x.base == y.base
        && a.version == b.version
        && (x.offset + x.bytes <= y.offset || y.offset + y.bytes <= x.offset);
    (x.is_store || y.is_store) && !apart
}
