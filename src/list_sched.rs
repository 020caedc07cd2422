//! List scheduling of consecutive instructions by latency.
//!
//! The schedulers before and after register allocation build a dependence graph with latencies, and
//! this module computes the order. The core issues one instruction of a thread per cycle and stalls
//! until its operands are ready. So of the instructions that can issue, the one with the longest
//! chain after it comes first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The end of a list of edges.
const NONE: u32 = u32::MAX;

/// An instruction with its dependences.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// The first of the edges to later instructions.
    succs: u32,
    /// The number of unscheduled predecessors.
    waiting_for: u32,
    /// Cycles from the issue of this instruction to the end of the longest chain after it.
    height: u32,
    /// The earliest cycle of issue.
    ready: u32,
    /// The minimum number of cycles from its issue to the end of the sequence.
    to_end: u32,
    /// Whether the latency is too long to hide behind other threads.
    is_long: bool,
}

/// A dependent instruction, with the minimum distance in cycles.
#[derive(Clone, Copy, Debug)]
struct Edge {
    to: u32,
    distance: u32,
    next: u32,
}

/// An instruction that can issue: its height, then its position, earlier first. It is a single
/// word, because words compare fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ready(u64);

impl Ready {
    fn new(height: u32, index: u32) -> Self {
        Self(u64::from(height) << 32 | u64::from(!index))
    }

    /// Returns the number of the instruction.
    fn index(self) -> u32 {
        !(self.0 as u32)
    }
}

/// The dependence graph of a sequence of instructions, with buffers that the next sequence reuses.
#[derive(Debug, Default)]
pub struct ListScheduler {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    /// Ready in the current cycle, by height. The original order breaks ties.
    now: BinaryHeap<Ready>,
    /// Ready in a later cycle, by cycle.
    later: BinaryHeap<Reverse<(u32, u32)>>,
    order: Vec<usize>,
    /// An alternative order and its sort keys.
    other: Vec<usize>,
    keys: Vec<(u32, u32)>,
}

impl ListScheduler {
    /// Creates a scheduler with memory for this many instructions.
    pub fn with_capacity(insts: usize) -> Self {
        Self {
            nodes: Vec::with_capacity(insts),
            edges: Vec::with_capacity(2 * insts),
            now: BinaryHeap::with_capacity(insts),
            order: Vec::with_capacity(insts),
            ..Self::default()
        }
    }

    /// Removes all instructions.
    pub fn clear(&mut self) {
        self.nodes.clear();
        self.edges.clear();
    }

    /// Adds the next instruction. `to_end` is the minimum number of cycles from its issue to the
    /// end of the sequence. `is_long` marks a latency that is too long to hide behind other
    /// threads.
    pub fn add(&mut self, to_end: u32, is_long: bool) {
        self.nodes.push(Node {
            succs: NONE,
            waiting_for: 0,
            height: to_end,
            ready: 0,
            to_end,
            is_long,
        });
    }

    /// Adds a dependence: instruction `to` issues at least `distance` cycles after the earlier
    /// instruction `from`.
    pub fn depend(&mut self, from: u32, to: u32, distance: u32) {
        let next = self.nodes[from as usize].succs;
        self.nodes[from as usize].succs = self.edges.len() as u32;
        self.edges.push(Edge { to, distance, next });
        self.nodes[to as usize].waiting_for += 1;
    }

    /// Computes the order and returns the numbers of the instructions in it. The last instruction
    /// satisfies `may_be_last`, if possible.
    pub fn run(&mut self, may_be_last: impl Fn(usize) -> bool) -> &[usize] {
        // Compute the heights, last instruction first.
        for index in (0..self.nodes.len()).rev() {
            let mut height = self.nodes[index].height;
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
                self.now.push(Ready::new(node.height, index));
            }
        }
        let mut cycle = 0;
        loop {
            while let Some(&Reverse((ready, index))) = self.later.peek() {
                if ready > cycle {
                    break;
                }
                self.later.pop();
                self.now.push(Ready::new(self.nodes[index as usize].height, index));
            }
            let Some(index) = self.now.pop().map(Ready::index) else {
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
                    if node.ready <= cycle + 1 {
                        self.now.push(Ready::new(node.height, to));
                    } else {
                        self.later.push(Reverse((node.ready, to)));
                    }
                }
                edge = next;
            }
            cycle += 1;
        }
        self.start_early();
        if self.order.last().is_some_and(|&last| !may_be_last(last)) {
            // Move the latest instruction without dependents to the end.
            let ends = |&&index: &&usize| self.nodes[index].succs == NONE && may_be_last(index);
            if let Some(place) = self.order.iter().rposition(|index| ends(&index)) {
                self.order[place..].rotate_left(1);
            }
        }
        &self.order
    }

    /// Moves instructions with a long latency up to their operands, unless that takes longer for a
    /// single thread. The instructions that would have filled shorter stalls before them then fill
    /// the longer stalls after them.
    fn start_early(&mut self) {
        if !self.nodes.iter().any(|node| node.is_long) {
            return;
        }
        self.keys.clear();
        self.keys.resize(self.nodes.len(), (0, 0));
        for (place, &index) in (1..).zip(&self.order) {
            let node = self.nodes[index];
            // An existing key is that of the last operand.
            let key = if node.is_long {
                (self.keys[index].0, place)
            } else {
                (place, 0)
            };
            self.keys[index] = key;
            let mut edge = node.succs;
            while let Some(&Edge { to, next, .. }) = self.edges.get(edge as usize) {
                let later = &mut self.keys[to as usize];
                *later = (*later).max(key);
                edge = next;
            }
        }
        self.other.clone_from(&self.order);
        let keys = &self.keys;
        self.other.sort_by_key(|&index| keys[index]);
        if self.other != self.order && self.cycles(false) >= self.cycles(true) {
            std::mem::swap(&mut self.order, &mut self.other);
        }
    }

    /// Returns the number of cycles for a single thread in the computed order, or in the
    /// alternative one.
    fn cycles(&mut self, other: bool) -> u32 {
        for node in &mut self.nodes {
            node.ready = 0;
        }
        let order = if other { &self.other } else { &self.order };
        let (mut cycle, mut end) = (0, 0);
        for &index in order {
            let node = self.nodes[index];
            let issue = node.ready.max(cycle);
            cycle = issue + 1;
            end = end.max(issue + node.to_end);
            let mut edge = node.succs;
            while let Some(&Edge { to, distance, next }) = self.edges.get(edge as usize) {
                let later = &mut self.nodes[to as usize].ready;
                *later = (*later).max(issue + distance);
                edge = next;
            }
        }
        end.max(cycle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an order in which the second and third instruction wait for the first, which has a
    /// long latency.
    fn order(may_be_last: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut scheduler = ListScheduler::default();
        (0..4).for_each(|_| scheduler.add(1, false));
        scheduler.depend(0, 1, 5);
        scheduler.depend(0, 2, 5);
        scheduler.run(may_be_last).to_vec()
    }

    #[test]
    fn the_last_one_may_be_last() {
        assert_eq!(order(|_| true), [0, 3, 1, 2]);
        assert_eq!(order(|index| index != 2), [0, 3, 2, 1]);
        assert_eq!(order(|index| index == 3), [0, 1, 2, 3]);
        // The others wait for the first instruction, and no other may be last.
        assert_eq!(order(|index| index == 0), [0, 3, 1, 2]);
    }
}
