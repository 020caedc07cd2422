//! The checker: all orders of the steps of a small program, and of the arrivals of its messages.
//!
//! A search in breadth finds all reachable states. It stores a 128-bit hash of each state, so two
//! states count as one with negligible probability. The order of completed stores determines the
//! value that a coherent load has to return: a correct protocol completes a store only when no other
//! copy exists.

use super::controller::{Access, Fault, Reply};
use super::message::{Bytes, Channel, Kind, Node};
use super::system::{Backing, System};
use crate::topology::Topology;
use npu_mc::machine;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

const LINE: u32 = machine::CACHE_LINE;

/// An operation of a core. Addresses are those of words; their low bits are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Loads a word and checks its value.
    Load(u32),
    /// Stores a word.
    Store(u32, u32),
    /// Stores a word plus one, in one step with the check of its old value. The core requests the line
    /// as for a store.
    Add(u32),
    /// `dcache_inv`.
    Invalidate(u32),
    /// `flush`.
    Flush(u32),
    /// The line leaves the cache, if it is there and in no transaction.
    Evict(u32),
    /// Makes all lines non-coherent for this core, or coherent again.
    NonCoherent(bool),
    /// Loads a word and removes its line by `dcache_inv`, until the word has the value.
    Await(u32, u32),
    /// Waits until all cores with a barrier as their next operation have reached it. Cores that have
    /// ended do not count.
    Barrier,
    /// Takes a lock that is not in memory.
    Lock,
    /// Releases the lock.
    Unlock,
}

/// A program for several cores. Core *n* is tile *n*.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// The operations of each core.
    pub cores: Vec<Vec<Operation>>,
    /// Whether any line of the same set can leave the cache whenever a line comes into it. A store
    /// that allocates a line of a non-coherent region then always replaces one, if there is one.
    pub evictions: bool,
}

/// A step of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A core performed or started an operation.
    Step {
        /// The core.
        core: u8,
        /// The operation.
        operation: Operation,
    },
    /// A message arrived.
    Message {
        /// The kind.
        kind: Kind,
        /// The address of the line.
        address: u32,
        /// The sender.
        from: Node,
        /// The receiver.
        to: Node,
        /// The address of the line that left the cache of the receiver.
        evicted: Option<u32>,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Step { core, operation } => write!(f, "core {core}: {operation:x?}"),
            Event::Message {
                kind,
                address,
                from,
                to,
                evicted,
            } => {
                write!(f, "{} {address:#x} from {from} to {to}", kind.name())?;
                match evicted {
                    Some(evicted) => write!(f, ", which evicts {evicted:#x}"),
                    None => Ok(()),
                }
            }
        }
    }
}

/// A wrong value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// A load returned a value other than that of the last completed store.
    Load {
        /// The core.
        core: u8,
        /// The address of the word.
        address: u32,
        /// The value.
        value: u32,
        /// The value of the last completed store.
        expected: u32,
    },
    /// At the end, a copy in the cache of a core differs from the last completed store.
    Copy {
        /// The core.
        core: u8,
        /// The address of the word.
        address: u32,
    },
    /// At the end, a new load would not return the value of the last completed store.
    Lost {
        /// The address of the word.
        address: u32,
    },
}

/// A failure, with the steps that lead to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The steps from the start, as few as possible.
    pub path: Vec<Event>,
    /// The wrong value; `None` if the program hangs: no order of further steps ends it.
    pub wrong: Option<Wrong>,
    /// The cores that never continue, with the fault if the controller of a core refuses to continue.
    pub hung: Vec<(u8, Option<Fault>)>,
}

/// The result of an exploration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explored {
    /// The number of states.
    pub states: usize,
    /// The number of states in which all cores have ended and no message is on its way.
    pub ends: usize,
    /// Whether all orders were explored; otherwise the limit of states was reached.
    pub is_complete: bool,
    /// The first state from which the program cannot end. It is unknown in an incomplete exploration,
    /// unless no step is possible from it.
    pub hang: Option<Failure>,
    /// The first wrong value.
    pub wrong: Option<Failure>,
}

impl Explored {
    /// Returns whether all orders were explored and none failed.
    pub fn passes(&self) -> bool {
        self.is_complete && self.hang.is_none() && self.wrong.is_none()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Memory(BTreeMap<u32, Bytes>);

impl Backing for Memory {
    type Error = std::convert::Infallible;

    fn read_line(&self, line: u32) -> Bytes {
        self.0.get(&line).copied().unwrap_or([0; size_of::<Bytes>()])
    }

    fn write_line(&mut self, line: u32, data: &Bytes, mask: u64) -> Result<(), Self::Error> {
        let bytes = self.0.entry(line).or_insert([0; size_of::<Bytes>()]);
        for (k, (byte, new)) in bytes.iter_mut().zip(data).enumerate() {
            if mask >> k & 1 != 0 {
                *byte = *new;
            }
        }
        Ok(())
    }
}

/// The state of a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Core {
    /// The number of completed operations.
    done: usize,
    waits: bool,
    fault: Option<Fault>,
    non_coherent: bool,
}

/// The last completed store to a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Stored {
    value: u32,
    core: u8,
    coherent: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    system: System,
    memory: Memory,
    cores: Vec<Core>,
    holder: Option<u8>,
    stored: BTreeMap<u32, Stored>,
}

/// A successor of a state.
struct Successor {
    event: Event,
    state: State,
    wrong: Option<Wrong>,
}

fn word_in(data: &Bytes, address: u32) -> u32 {
    let offset = (address % LINE) as usize & !3;
    data.iter()
        .skip(offset)
        .take(4)
        .rev()
        .fold(0, |word, &byte| word << 8 | u32::from(byte))
}

impl State {
    fn new(cores: usize) -> State {
        State {
            system: System::new(cores, 0, Topology::default()),
            memory: Memory::default(),
            cores: vec![Core::default(); cores],
            holder: None,
            stored: BTreeMap::new(),
        }
    }

    fn hash(&self) -> u128 {
        let [low, high] = [0u8, 1].map(|salt| {
            let mut hasher = DefaultHasher::new();
            salt.hash(&mut hasher);
            Hash::hash(self, &mut hasher);
            hasher.finish()
        });
        u128::from(high) << 64 | u128::from(low)
    }

    fn operation(&self, program: &Program, core: u8) -> Option<Operation> {
        let operations = program.cores.get(usize::from(core))?;
        operations.get(self.cores[usize::from(core)].done).copied()
    }

    fn has_ended(&self, program: &Program) -> bool {
        let mut numbers = 0..self.cores.len() as u8;
        self.system.is_quiet() && numbers.all(|core| self.operation(program, core).is_none())
    }

    /// Performs or starts the next operation of a core. Returns whether the state changed, and a wrong
    /// value.
    fn step(&mut self, program: &Program, number: u8) -> (bool, Option<Wrong>) {
        let index = usize::from(number);
        let Core {
            fault, non_coherent, ..
        } = self.cores[index];
        let Some(operation) = self.operation(program, number).filter(|_| fault.is_none()) else {
            return (false, None);
        };
        let (access, address) = match operation {
            Operation::Load(address) | Operation::Await(address, _) => (Access::Load, address),
            Operation::Store(address, _) | Operation::Add(address) => (Access::Store, address),
            Operation::Invalidate(address) => (Access::Invalidate, address),
            Operation::Flush(address) => (Access::Flush, address),
            Operation::Evict(address) => {
                self.system.evict(number, address / LINE);
                self.cores[index].done += 1;
                return (true, None);
            }
            Operation::NonCoherent(is) => {
                self.cores[index].non_coherent = is;
                self.cores[index].done += 1;
                return (true, None);
            }
            Operation::Lock => return (self.lock(number), None),
            Operation::Unlock => {
                self.holder = None;
                self.cores[index].done += 1;
                return (true, None);
            }
            Operation::Barrier => return (self.meet(program), None),
        };
        let address = address & !3;
        let (reply, allocates) = self.system.access(number, 0, access, address, !non_coherent);
        match reply {
            Reply::Ready => {}
            Reply::Waits => {
                self.cores[index].waits = true;
                return (true, None);
            }
            Reply::Hangs(fault) => {
                self.cores[index].fault = Some(fault);
                return (true, None);
            }
        }
        if allocates {
            let set = address / LINE % machine::DCACHE_SETS;
            let mut others = self.system.victims(number, set).filter(|&line| line != address / LINE);
            let replaced = others.next();
            drop(others);
            if let Some(line) = replaced.filter(|_| program.evictions) {
                self.system.evict(number, line);
                self.system.stick(number);
            }
        }
        self.perform(operation, number, address)
    }

    /// Performs an access whose line is in the cache.
    fn perform(&mut self, operation: Operation, number: u8, address: u32) -> (bool, Option<Wrong>) {
        let index = usize::from(number);
        let coherent = !self.cores[index].non_coherent;
        let loaded = self
            .system
            .cached(number, address / LINE)
            .map(|data| word_in(data, address));
        let mut wrong = None;
        if let (Operation::Load(_) | Operation::Add(_), Some(value)) = (operation, loaded) {
            let stored = self.stored.get(&address).copied();
            let expected = match stored {
                Some(stored) if stored.coherent == coherent && (coherent || stored.core == number) => {
                    Some(stored.value)
                }
                None => Some(0),
                Some(_) => None,
            };
            wrong = expected
                .filter(|&expected| expected != value)
                .map(|expected| Wrong::Load {
                    core: number,
                    address,
                    value,
                    expected,
                });
        }
        let value = match operation {
            Operation::Store(_, value) => Some(value),
            Operation::Add(_) => loaded.map(|value| value.wrapping_add(1)),
            Operation::Load(_)
            | Operation::Invalidate(_)
            | Operation::Flush(_)
            | Operation::Evict(_)
            | Operation::NonCoherent(_)
            | Operation::Await(..)
            | Operation::Barrier
            | Operation::Lock
            | Operation::Unlock => None,
        };
        if let Some(value) = value {
            self.system.write(number, address, &value.to_le_bytes());
            let stored = Stored {
                value,
                core: number,
                coherent,
            };
            self.stored.insert(address, stored);
        }
        if let Operation::Await(_, value) = operation {
            let _ = self.system.access(number, 0, Access::Invalidate, address, coherent);
            if loaded != Some(value) {
                return (true, wrong);
            }
        }
        self.cores[index].done += 1;
        (true, wrong)
    }

    fn lock(&mut self, number: u8) -> bool {
        if self.holder.is_some() {
            return false;
        }
        self.holder = Some(number);
        self.cores[usize::from(number)].done += 1;
        true
    }

    /// Opens the barrier if all cores that have not ended are at it.
    fn meet(&mut self, program: &Program) -> bool {
        let numbers = 0..self.cores.len() as u8;
        let mut next = numbers.filter_map(|core| self.operation(program, core));
        if !next.all(|operation| operation == Operation::Barrier) {
            return false;
        }
        for core in 0..self.cores.len() {
            if self.operation(program, core as u8).is_some() {
                self.cores[core].done += 1;
            }
        }
        true
    }

    fn successors(&self, program: &Program) -> Vec<Successor> {
        let mut found = Vec::new();
        for core in 0..self.cores.len() as u8 {
            let Some(operation) = self.operation(program, core) else {
                continue;
            };
            if self.cores[usize::from(core)].waits {
                continue;
            }
            let mut state = self.clone();
            let (changed, wrong) = state.step(program, core);
            if changed {
                let event = Event::Step { core, operation };
                found.push(Successor { event, state, wrong });
            }
        }
        let channels: Vec<Channel> = self.system.deliverable().map(|(channel, _)| channel).collect();
        for channel in channels {
            self.deliver(program, channel, &mut found);
        }
        found
    }

    /// Delivers a message. If a line comes into a cache, each line of the set can leave it.
    fn deliver(&self, program: &Program, channel: Channel, found: &mut Vec<Successor>) {
        let Some(message) = self.system.head(channel) else {
            return;
        };
        let (kind, line) = (message.kind, message.line);
        let mut state = self.clone();
        let Ok(delivered) = state.system.deliver(channel, &mut state.memory);
        let mut victims = vec![None];
        if let Some(core) = delivered.core.filter(|_| program.evictions && delivered.fills) {
            let set = line % machine::DCACHE_SETS;
            victims.extend(state.system.victims(core, set).filter(|&other| other != line).map(Some));
        }
        for victim in victims {
            let mut state = state.clone();
            let mut wrong = None;
            if let Some(core) = delivered.core {
                if let Some(victim) = victim {
                    state.system.evict(core, victim);
                }
                if !delivered.woken.is_empty() {
                    state.cores[usize::from(core)].waits = false;
                    wrong = state.step(program, core).1;
                }
            }
            let event = Event::Message {
                kind,
                address: line * LINE,
                from: channel.from,
                to: channel.to,
                evicted: victim.map(|victim| victim * LINE),
            };
            found.push(Successor { event, state, wrong });
        }
    }

    /// Returns a wrong value in the final state.
    fn check_end(&self) -> Option<Wrong> {
        for (&address, stored) in self.stored.iter().filter(|(_, stored)| stored.coherent) {
            let line = address / LINE;
            let current = self.system.current(line).copied();
            let current = current.unwrap_or_else(|| self.memory.read_line(line));
            if word_in(&current, address) != stored.value {
                return Some(Wrong::Lost { address });
            }
            let mut copies = self.system.copies(line);
            let stale = copies.find(|(_, data)| word_in(data, address) != stored.value);
            if let Some((core, _)) = stale {
                return Some(Wrong::Copy { core, address });
            }
        }
        None
    }

    /// Returns the cores that have not ended, and their faults.
    fn unfinished(&self, program: &Program) -> Vec<(u8, Option<Fault>)> {
        let numbers = 0..self.cores.len() as u8;
        let unfinished = numbers.filter(|&core| self.operation(program, core).is_some());
        unfinished
            .map(|core| (core, self.cores[usize::from(core)].fault))
            .collect()
    }
}

/// The graph of the explored states.
#[derive(Default)]
struct Graph {
    /// The predecessor of each state and the step from it.
    origins: Vec<Option<(u32, Event)>>,
    edges: Vec<(u32, u32)>,
    ends: Vec<u32>,
}

impl Graph {
    fn path_to(&self, state: u32) -> Vec<Event> {
        let mut path = Vec::new();
        let mut at = state;
        while let Some(Some((origin, event))) = self.origins.get(at as usize) {
            path.push(*event);
            at = *origin;
        }
        path.reverse();
        path
    }

    /// Returns the first state from which no end can be reached.
    fn first_dead(&self) -> Option<u32> {
        let count = self.origins.len();
        let mut before = vec![Vec::new(); count];
        for &(from, to) in &self.edges {
            before[to as usize].push(from);
        }
        let mut reaches = vec![false; count];
        let mut open = self.ends.clone();
        for &end in &open {
            reaches[end as usize] = true;
        }
        while let Some(state) = open.pop() {
            for &from in &before[state as usize] {
                if !std::mem::replace(&mut reaches[from as usize], true) {
                    open.push(from);
                }
            }
        }
        let dead = reaches.iter().position(|reaches| !reaches);
        dead.map(|state| state as u32)
    }
}

/// Explores all orders of a program, up to `limit` states.
pub fn explore(program: &Program, limit: usize) -> Explored {
    let start = State::new(program.cores.len().min(crate::topology::CORE_LIMIT));
    let mut numbers = FxHashMap::from_iter([(start.hash(), 0u32)]);
    let mut graph = Graph {
        origins: vec![None],
        ..Graph::default()
    };
    let mut open = std::collections::VecDeque::from([start]);
    let (mut number, mut is_complete) = (0, true);
    let (mut hang, mut wrong): (Option<Failure>, Option<Failure>) = (None, None);
    while let Some(state) = open.pop_front() {
        if state.has_ended(program) {
            graph.ends.push(number);
            if let Some(found) = state.check_end().filter(|_| wrong.is_none()) {
                wrong = Some(Failure {
                    path: graph.path_to(number),
                    wrong: Some(found),
                    hung: Vec::new(),
                });
            }
        }
        let successors = state.successors(program);
        if successors.is_empty() && hang.is_none() && !state.has_ended(program) {
            hang = Some(Failure {
                path: graph.path_to(number),
                wrong: None,
                hung: state.unfinished(program),
            });
        }
        for successor in successors {
            let count = graph.origins.len();
            let to = match numbers.entry(successor.state.hash()) {
                Entry::Occupied(place) => *place.get(),
                Entry::Vacant(_) if count >= limit => {
                    is_complete = false;
                    continue;
                }
                Entry::Vacant(place) => {
                    graph.origins.push(Some((number, successor.event)));
                    open.push_back(successor.state);
                    *place.insert(count as u32)
                }
            };
            graph.edges.push((number, to));
            if let Some(found) = successor.wrong.filter(|_| wrong.is_none()) {
                let mut path = graph.path_to(number);
                path.push(successor.event);
                wrong = Some(Failure {
                    path,
                    wrong: Some(found),
                    hung: Vec::new(),
                });
            }
        }
        number += 1;
    }
    if hang.is_none()
        && is_complete
        && let Some(dead) = graph.first_dead()
    {
        hang = Some(Failure {
            path: graph.path_to(dead),
            wrong: None,
            hung: Vec::new(),
        });
    }
    Explored {
        states: graph.origins.len(),
        ends: graph.ends.len(),
        is_complete,
        hang,
        wrong,
    }
}
