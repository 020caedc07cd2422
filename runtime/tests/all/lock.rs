//! Exhaustive exploration of the lock of a core (`atomics.clif`): every order of the threads' memory
//! accesses, one access in each step, as on the threads of a core.
//!
//! The test finds all reachable states. It checks that two threads never hold the lock in the same
//! state. It also checks that no thread starves in a run in which every thread that wants something
//! makes progress. The check for starvation is a search for cycles, which model checkers for actors
//! and for Rust's memory order do not offer; accesses are sequentially consistent here.
//!
//! The model is as large as a test allows: four threads, two of which share a word of flags, and a
//! tree of two levels. The real lock has eight threads, four of which share a word, and three
//! levels.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// The number of threads.
const THREADS: usize = 4;
/// The number of levels of the tree.
const LEVELS: u8 = 2;
/// The number of tries before a thread climbs the tree.
const TRIES: u8 = 1;

const IDLE: u8 = 0;
const WAITING: u8 = 1;
const ACTIVE: u8 = 2;

/// The next step of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    /// The thread requests the lock, or never will.
    Start,
    /// Reads a word of flags: first its own, then the other one; the flag records whether it saw
    /// another thread.
    First {
        word: u8,
        seen: bool,
    },
    Wait,
    /// Reads a word of flags, in order; the flag records whether it saw an active thread.
    Poll {
        tries: u8,
        word: u8,
        seen: bool,
    },
    Try {
        tries: u8,
    },
    Look {
        tries: u8,
        word: u8,
        seen: bool,
    },
    Retreat {
        tries: u8,
    },
    Come {
        level: u8,
    },
    Last {
        level: u8,
    },
    Node {
        level: u8,
    },
    Top,
    Drain {
        word: u8,
        seen: bool,
    },
    /// The thread holds the lock and leaves the node at this level.
    Descend {
        level: u8,
    },
    /// The thread holds the lock.
    Leave,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Node {
    there: [bool; 2],
    last: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct State {
    steps: [Step; THREADS],
    flags: [u8; THREADS],
    /// The nodes by number; 1 is the root.
    nodes: [Node; THREADS],
}

impl State {
    fn new() -> Self {
        Self {
            steps: [Step::Start; THREADS],
            flags: [IDLE; THREADS],
            nodes: [Node::default(); THREADS],
        }
    }

    /// Returns whether another thread's flag in the word is at least this value.
    fn sees(&self, thread: usize, word: u8, least: u8) -> bool {
        let half = THREADS / 2;
        (0..THREADS).any(|k| k != thread && k / half == usize::from(word) && self.flags[k] >= least)
    }

    /// Returns the node and side of a thread at a level of the tree.
    fn place(thread: usize, level: u8) -> (usize, usize) {
        let leaf = THREADS + thread;
        (leaf >> (level + 1), leaf >> level & 1)
    }

    fn has_lock(&self, thread: usize) -> bool {
        matches!(self.steps[thread], Step::Descend { .. } | Step::Leave)
    }

    /// Returns the state after a step of the thread.
    fn after(&self, thread: usize) -> Self {
        let mut next = *self;
        let own = (thread / (THREADS / 2)) as u8;
        let on = |tries: u8| {
            if tries == 0 {
                Step::Come { level: 0 }
            } else {
                Step::Poll {
                    tries,
                    word: 0,
                    seen: false,
                }
            }
        };
        next.steps[thread] = match self.steps[thread] {
            Step::Start => {
                next.flags[thread] = ACTIVE;
                Step::First { word: own, seen: false }
            }
            Step::First { word, seen } => {
                let seen = seen || self.sees(thread, word, WAITING);
                match (word == own, seen) {
                    (true, seen) => Step::First { word: 1 - own, seen },
                    (false, true) => Step::Wait,
                    (false, false) => Step::Leave,
                }
            }
            Step::Wait => {
                next.flags[thread] = WAITING;
                on(TRIES)
            }
            Step::Poll { tries, word, seen } => {
                let seen = seen || self.sees(thread, word, ACTIVE);
                match (word, seen) {
                    (0, seen) => Step::Poll { tries, word: 1, seen },
                    (_, true) => on(tries - 1),
                    (_, false) => Step::Try { tries: tries - 1 },
                }
            }
            Step::Try { tries } => {
                next.flags[thread] = ACTIVE;
                Step::Look {
                    tries,
                    word: 0,
                    seen: false,
                }
            }
            Step::Look { tries, word, seen } => {
                let seen = seen || self.sees(thread, word, ACTIVE);
                match (word, seen) {
                    (0, seen) => Step::Look { tries, word: 1, seen },
                    (_, true) => Step::Retreat { tries },
                    (_, false) => Step::Leave,
                }
            }
            Step::Retreat { tries } => {
                next.flags[thread] = WAITING;
                on(tries)
            }
            Step::Come { level } => {
                let (node, side) = Self::place(thread, level);
                next.nodes[node].there[side] = true;
                Step::Last { level }
            }
            Step::Last { level } => {
                let (node, side) = Self::place(thread, level);
                next.nodes[node].last = side as u8;
                Step::Node { level }
            }
            Step::Node { level } => {
                let (node, side) = Self::place(thread, level);
                let Node { there, last } = self.nodes[node];
                if there[1 - side] && usize::from(last) == side {
                    Step::Node { level }
                } else if level + 1 < LEVELS {
                    Step::Come { level: level + 1 }
                } else {
                    Step::Top
                }
            }
            Step::Top => {
                next.flags[thread] = ACTIVE;
                Step::Drain { word: 0, seen: false }
            }
            Step::Drain { word, seen } => {
                let seen = seen || self.sees(thread, word, ACTIVE);
                match (word, seen) {
                    (0, seen) => Step::Drain { word: 1, seen },
                    (_, true) => Step::Drain { word: 0, seen: false },
                    (_, false) => Step::Descend { level: LEVELS - 1 },
                }
            }
            Step::Descend { level } => {
                let (node, side) = Self::place(thread, level);
                next.nodes[node].there[side] = false;
                match level.checked_sub(1) {
                    Some(level) => Step::Descend { level },
                    None => Step::Leave,
                }
            }
            Step::Leave => {
                next.flags[thread] = IDLE;
                Step::Start
            }
        };
        next
    }
}

/// All reachable states, and the successors of each by a step of each thread.
struct Graph {
    states: Vec<State>,
    next: Vec<Vec<u32>>,
}

fn explore(threads: &[usize]) -> Graph {
    let mut numbers = HashMap::from([(State::new(), 0u32)]);
    let mut graph = Graph {
        states: vec![State::new()],
        next: Vec::new(),
    };
    while graph.next.len() < graph.states.len() {
        let state = graph.states[graph.next.len()];
        let mut row = Vec::with_capacity(threads.len());
        for &thread in threads {
            let after = state.after(thread);
            row.push(match numbers.entry(after) {
                Entry::Occupied(number) => *number.get(),
                Entry::Vacant(place) => {
                    let number = graph.states.len() as u32;
                    graph.states.push(after);
                    *place.insert(number)
                }
            });
        }
        graph.next.push(row);
    }
    graph
}

/// Computes the strongly connected components of the subgraph of the states in `inside`, by
/// Tarjan's algorithm without recursion. Returns the number of the component of each state.
fn components(graph: &Graph, inside: impl Fn(usize) -> bool) -> Vec<u32> {
    const NONE: u32 = u32::MAX;
    let count = graph.states.len();
    let (mut index, mut low, mut component) = (vec![NONE; count], vec![NONE; count], vec![NONE; count]);
    let (mut stack, mut path, mut found, mut made) = (Vec::new(), Vec::new(), 0, 0);
    for root in (0..count).filter(|&state| inside(state)) {
        if index[root] != NONE {
            continue;
        }
        path.push((root, 0));
        while let Some(&mut (state, ref mut edge)) = path.last_mut() {
            if *edge == 0 {
                index[state] = found;
                low[state] = found;
                found += 1;
                stack.push(state);
            }
            let row = &graph.next[state];
            if let Some(&to) = row.get(*edge) {
                *edge += 1;
                let to = to as usize;
                if !inside(to) {
                    continue;
                }
                if index[to] == NONE {
                    path.push((to, 0));
                } else if component[to] == NONE {
                    low[state] = low[state].min(index[to]);
                }
                continue;
            }
            path.pop();
            if let Some(&(above, _)) = path.last() {
                low[above] = low[above].min(low[state]);
            }
            if low[state] == index[state] {
                while let Some(member) = stack.pop() {
                    component[member] = made;
                    if member == state {
                        break;
                    }
                }
                made += 1;
            }
        }
    }
    component
}

/// Returns whether a thread can starve: whether a component exists in which the thread never holds
/// the lock, and every other thread takes a step or does not request the lock.
fn starves(graph: &Graph, threads: &[usize], victim: usize) -> bool {
    let waits =
        |state: usize| graph.states[state].steps[victim] != Step::Start && !graph.states[state].has_lock(victim);
    let component = components(graph, waits);
    let mut goes_on: HashMap<u32, usize> = HashMap::new();
    for state in (0..graph.states.len()).filter(|&state| waits(state)) {
        let own = component[state];
        let mask = goes_on.entry(own).or_default();
        for (place, &thread) in threads.iter().enumerate() {
            let to = graph.next[state][place] as usize;
            let idle = graph.states[state].steps[thread] == Step::Start;
            if idle || waits(to) && component[to] == own {
                *mask |= 1 << place;
            }
        }
    }
    goes_on.values().any(|&mask| mask == (1 << threads.len()) - 1)
}

fn check(threads: &[usize]) {
    let graph = explore(threads);
    for state in &graph.states {
        let holders = threads.iter().filter(|&&thread| state.has_lock(thread)).count();
        assert!(holders <= 1, "{state:?}");
        for &thread in threads.iter().filter(|&&thread| state.has_lock(thread)) {
            assert_eq!(state.flags[thread], ACTIVE, "{state:?}");
        }
    }
    for &victim in threads {
        assert!(!starves(&graph, threads, victim), "thread {victim} of {threads:?}");
    }
    println!("{threads:?}: {} states", graph.states.len());
}

#[test]
fn of_two_threads_one_has_the_lock_and_none_waits_for_ever() {
    check(&[0, 1]);
    check(&[1, 2]);
}

#[test]
fn of_three_threads_one_has_the_lock_and_none_waits_for_ever() {
    check(&[0, 1, 2]);
    check(&[1, 2, 3]);
}

#[test]
fn of_four_threads_one_has_the_lock_and_none_waits_for_ever() {
    check(&[0, 1, 2, 3]);
}
