//! List scheduling: an order for instructions in a row, by the cycles that results take.
//!
//! Stages before and after register allocation say what waits for what, and for how long; the order is found here. The core
//! issues one instruction of a thread each cycle and waits where an operand is not ready, so among the instructions that can
//! issue, the one comes first after which the longest chain follows.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The end of a list of edges.
const NONE: u32 = u32::MAX;

/// An instruction and what has to wait for it.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// The first of the edges to later instructions.
    succs: u32,
    /// Earlier instructions that have not been placed.
    waiting_for: u32,
    /// Cycles from the issue of this one to the end of the longest chain after it.
    height: u32,
    /// Earliest cycle.
    ready: u32,
    /// Cycles from its issue to the end of all at least.
    to_end: u32,
    /// Whether its result takes so long that other threads do not fill the time.
    is_long: bool,
}

/// A later instruction with the least distance in cycles.
#[derive(Clone, Copy, Debug)]
struct Edge {
    to: u32,
    distance: u32,
    next: u32,
}

/// An instruction that can issue: its height, then how early it stands. One word, because words compare fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ready(u64);

impl Ready {
    fn new(height: u32, index: u32) -> Self {
        Self(u64::from(height) << 32 | u64::from(!index))
    }

    /// The number of the instruction.
    fn index(self) -> u32 {
        !(self.0 as u32)
    }
}

/// The dependences of some instructions, and the memory that the next ones use again.
#[derive(Debug, Default)]
pub struct ListScheduler {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    /// Ready now, by height. The original order breaks ties.
    now: BinaryHeap<Ready>,
    /// Ready later, by cycle.
    later: BinaryHeap<Reverse<(u32, u32)>>,
    order: Vec<usize>,
    /// Another order, and the keys that it is sorted by.
    other: Vec<usize>,
    keys: Vec<(u32, u32)>,
}

impl ListScheduler {
    /// A scheduler with memory for this many instructions in a row.
    pub fn with_capacity(insts: usize) -> Self {
        Self {
            nodes: Vec::with_capacity(insts),
            edges: Vec::with_capacity(2 * insts),
            now: BinaryHeap::with_capacity(insts),
            order: Vec::with_capacity(insts),
            ..Self::default()
        }
    }

    /// Forgets the instructions of before.
    pub fn clear(&mut self) {
        self.nodes.clear();
        self.edges.clear();
    }

    /// Adds the next instruction: at least this many cycles have to pass from its issue to the end. Its result may be one for
    /// which a thread waits even if others run meanwhile.
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

    /// The instruction with the number `to` issues at least `distance` cycles after the one before it with the number `from`.
    pub fn depend(&mut self, from: u32, to: u32, distance: u32) {
        let next = self.nodes[from as usize].succs;
        self.nodes[from as usize].succs = self.edges.len() as u32;
        self.edges.push(Edge { to, distance, next });
        self.nodes[to as usize].waiting_for += 1;
    }

    /// Finds the order: the numbers of the instructions as they shall stand. The last one is one that `may_be_last`, if any
    /// can.
    pub fn run(&mut self, may_be_last: impl Fn(usize) -> bool) -> &[usize] {
        // Heights, last first.
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
            // The latest that nothing waits for gives up its place.
            let ends = |&&index: &&usize| self.nodes[index].succs == NONE && may_be_last(index);
            if let Some(place) = self.order.iter().rposition(|index| ends(&index)) {
                self.order[place..].rotate_left(1);
            }
        }
        &self.order
    }

    /// Moves instructions whose results take long up to what they wait for, unless one thread alone then takes longer. The
    /// instructions that would have filled shorter waits before them fill the long ones after them.
    fn start_early(&mut self) {
        if !self.nodes.iter().any(|node| node.is_long) {
            return;
        }
        self.keys.clear();
        self.keys.resize(self.nodes.len(), (0, 0));
        for (place, &index) in (1..).zip(&self.order) {
            let node = self.nodes[index];
            // A key that is set already is that of the last instruction it waits for.
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

    /// How many cycles one thread takes in the order found, or the other one.
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

    /// An order in which the second and third wait for the first one, which takes long.
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
        // The others wait for the first one, and nothing else may be last.
        assert_eq!(order(|index| index == 0), [0, 3, 1, 2]);
    }
}
