//! Recordings: stretches of a run of one core that are the same whenever the pipeline is in the same state.
//!
//! A stretch goes from one instruction that can go on at several places (a branch on a value, a jump to a register) to the next one of any
//! thread. What happens in it follows from the state of the pipeline at its beginning, as long as nothing misses, waits at a barrier or
//! asks the time: which instructions issue, when, what each thread waits for, how long it all takes. So when the pipeline comes to a state
//! in which a recording begins, only the instructions are executed, and the counts of the recording are added; where the last one goes
//! says which recording follows.
//!
//! Invariant: a run comes to the same with recordings and without. Whatever a recording does not say (a line that is missing, an
//! instruction that is for the definition, a store to code, a way that was not taken before) leaves it. Then the pipeline is brought to the
//! state at the beginning of the stretch and goes through it cycle by cycle; the instructions that are executed already are in
//! [`Core::done`], with all that the pipeline has to know of them.

use super::cache::{Hits, InstructionCache, line_of};
use super::core::Core;
use super::report::{Counters, ThreadCounters};
use crate::machine::{Machine, THREADS};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Instructions of a stretch in which nothing branches.
const LONGEST: usize = 48;
/// Words of all states that are kept; more than programs of a few thousand instructions come to.
const MOST_WORDS: usize = 4 << 20;
/// Times that a stretch is tried from one state. Those that are never complete are not tried for ever.
const TRIES: u8 = 4;
/// Stretches in a row that were not known, after which some are passed over: then it is not worth looking for them.
const PATIENCE: u32 = 512;
/// The most that are passed over before the next look.
const LONGEST_PAUSE: u32 = 8192;

/// What is executed at one go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// So many instructions that have nothing to do with memory, and of which none uses the lane mask.
    Plain(u32),
    /// One that uses the lanes which the mask has on.
    Vector,
    /// A load or store of main memory.
    Memory(Access),
    /// One that can go on at several places. It ends the stretch.
    Choice,
}

/// A load or store of main memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    /// Its address: register and number.
    pub base: u8,
    pub offset: i32,
    /// It uses the lanes which the mask has on.
    pub vector: bool,
}

/// What an instruction is to a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Executed {
    Plain,
    Vector,
    Memory(Access),
    Choice,
}

/// Instructions of one thread that issue one after the other.
#[derive(Clone, Copy, Debug)]
struct Step {
    thread: u8,
    action: Action,
}

/// Where an instruction went, if it was a taken branch.
type Target = Option<u32>;

/// An instruction that is executed before the pipeline issues it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    pub target: Target,
    /// Of a load or store.
    pub address: u32,
    /// Lanes that were on.
    pub lanes: u32,
}

/// What differs from one time that a stretch is gone through to the next.
#[derive(Clone, Copy, Debug)]
struct Noted {
    /// The number of the instruction in the stretch.
    index: usize,
    thread: u8,
    /// Of a load or store of main memory.
    address: Option<u32>,
    lanes: u32,
}

/// A stretch, once it is recorded.
#[derive(Debug)]
struct Stretch {
    steps: Box<[Step]>,
    /// Of each instruction.
    targets: Box<[Target]>,
    cycles: u64,
    /// The state of the instruction cache for which `hits` is right, as [`super::cache::InstructionCache::fills`] has it.
    fills: u64,
    /// The state of predecoded code for which it is right.
    code: u64,
    /// What was fetched: addresses and words.
    words: Box<[(u32, u32)]>,
    /// The lines that were fetched from, and the half of the cache's set in which each was.
    lines: Box<[(u32, bool)]>,
    hits: Hits,
    /// What to add for each thread that has anything.
    counted: Box<[(usize, ThreadCounters)]>,
    /// Thread, address and cycles of each instruction that issued.
    issued: Box<[(u8, u32, u64)]>,
    /// Where the last instruction went, and the state after that.
    next: Vec<(Target, usize)>,
    /// Times that it was gone through and not yet counted.
    count: u64,
}

impl Stretch {
    /// Adds what the times that it was gone through come to.
    fn count_into(&mut self, counters: &mut Counters) {
        let times = std::mem::take(&mut self.count);
        if times == 0 {
            return;
        }
        for (thread, counted) in &self.counted {
            counters.threads[*thread].add_times(counted, times);
        }
        for &(thread, pc, cycles) in &self.issued {
            counters.functions.issued(thread.into(), pc, times, cycles * times);
        }
    }

    /// Whether what was fetched is still there, and in the same places of the cache.
    #[inline]
    fn is_right(&mut self, instructions: &InstructionCache, machine: &Machine) -> bool {
        (self.fills, self.code) == (instructions.fills(), machine.code_generation())
            || self.becomes_right(instructions, machine)
    }

    #[cold]
    fn becomes_right(&mut self, instructions: &InstructionCache, machine: &Machine) -> bool {
        let there = |&(line, lower): &(u32, bool)| instructions.half(line) == Some(lower);
        let stops = machine.breakpoints();
        let same = |&(pc, word): &(u32, u32)| machine.word_at(pc) == word && (stops.is_empty() || !stops.contains(&pc));
        let right = self.lines.iter().all(there) && self.words.iter().all(same);
        if right {
            (self.fills, self.code) = (instructions.fills(), machine.code_generation());
        }
        right
    }
}

/// A state in which a stretch begins.
#[derive(Debug)]
struct Node {
    state: Arc<[u64]>,
    stretch: Option<Stretch>,
    tries: u8,
}

/// A stretch that is being recorded.
#[derive(Debug)]
pub(super) struct Recording {
    node: usize,
    from: u64,
    fills: u64,
    steps: Vec<Step>,
    targets: Vec<Target>,
    hits: Vec<(u64, u32, bool)>,
    words: Vec<(u32, u32)>,
    before: [ThreadCounters; THREADS],
    issued: Vec<(u8, u32, u64)>,
}

impl Recording {
    /// An instruction was executed.
    pub fn executed(&mut self, thread: usize, what: Executed, target: Target) {
        self.targets.push(target);
        let thread = thread as u8;
        let action = match what {
            Executed::Plain => Action::Plain(1),
            Executed::Vector => Action::Vector,
            Executed::Memory(access) => Action::Memory(access),
            Executed::Choice => Action::Choice,
        };
        match self.steps.last_mut() {
            Some(Step {
                thread: last,
                action: Action::Plain(count),
            }) if *last == thread && what == Executed::Plain => *count += 1,
            _ => self.steps.push(Step { thread, action }),
        }
    }

    /// An instruction issued, executed or killed.
    pub fn issued(&mut self, thread: usize, pc: u32, cycles: u64) {
        self.issued.push((thread as u8, pc, cycles));
    }

    /// A fetch in cycle `now` of an address got this word; its line was in the lower half of its set, or in the upper one.
    pub fn fetched(&mut self, now: u64, lower: bool, word: (u32, u32)) {
        self.hits.push((now - self.from, line_of(word.0), lower));
        self.words.push(word);
    }

    /// Whether it is long enough to end without a branch.
    pub fn is_long(&self) -> bool {
        self.targets.len() >= LONGEST
    }
}

/// All recordings of a core.
#[derive(Debug, Default)]
pub(super) struct Recordings {
    nodes: Vec<Node>,
    by_state: FxHashMap<Arc<[u64]>, usize>,
    /// Words of all states.
    words: usize,
    /// Nodes with counts that are to be added.
    counted: Vec<usize>,
    /// Stretches in a row that were not known.
    unknown: u32,
    /// Ends of stretches to pass over.
    pause: u32,
    scratch: Vec<u64>,
    noted: Vec<Noted>,
    /// Instructions so far that were gone through.
    pub instructions: u64,
}

impl Recordings {
    fn forget(&mut self) {
        self.nodes.clear();
        self.by_state.clear();
        self.words = 0;
    }

    /// The node of the state in `scratch`.
    fn node(&mut self) -> usize {
        if let Some(&node) = self.by_state.get(self.scratch.as_slice()) {
            return node;
        }
        let state: Arc<[u64]> = self.scratch.as_slice().into();
        self.words += state.len();
        self.by_state.insert(Arc::clone(&state), self.nodes.len());
        self.nodes.push(Node {
            state,
            stretch: None,
            tries: 0,
        });
        self.nodes.len() - 1
    }
}

impl Core {
    /// Adds what was counted of recordings.
    pub(super) fn count_recordings(&mut self) {
        for node in std::mem::take(&mut self.recordings.counted) {
            if let Some(stretch) = &mut self.recordings.nodes[node].stretch {
                stretch.count_into(&mut self.counters);
            }
        }
    }

    /// Goes through recordings from cycle [`Core::now`] on, where a stretch has ended, if that is known and ends before cycle `until`,
    /// with as many instructions as `budget` leaves; otherwise records what comes.
    pub(super) fn replay(&mut self, machine: &mut Machine, until: u64, budget: u64) {
        let mut recorded = self.recording.take();
        if self.recordings.pause != 0 {
            self.recordings.pause -= 1;
            return;
        }
        if !self.done.is_empty() || !self.is_calm() {
            return;
        }
        if self.recordings.words > MOST_WORDS {
            self.count_recordings();
            self.recordings.forget();
            recorded = None;
        }
        let node = self.find_here();
        if let Some(recording) = recorded {
            self.finish(*recording, node, machine);
        }
        if self.recordings.nodes[node].stretch.is_none() {
            self.recordings.unknown += 1;
            if self.recordings.unknown > PATIENCE {
                self.recordings.pause = (self.recordings.unknown - PATIENCE).min(LONGEST_PAUSE);
            }
            self.record(node);
            return;
        }
        let mut recordings = std::mem::take(&mut self.recordings);
        let (node, went) = self.go_through(&mut recordings, node, machine, until, budget);
        self.recordings = recordings;
        if went != 0 {
            self.recordings.unknown = self.recordings.unknown.saturating_sub(went);
        }
        // It has left what is recorded, if it is not the limits that end the run.
        self.record(node);
    }

    /// The node of the state at the beginning of cycle [`Core::now`].
    fn find_here(&mut self) -> usize {
        let mut scratch = std::mem::take(&mut self.recordings.scratch);
        self.write_state(&mut scratch);
        self.recordings.scratch = scratch;
        self.recordings.node()
    }

    /// Records what comes from the state of `node`, which is that of the pipeline.
    fn record(&mut self, node: usize) {
        let found = &mut self.recordings.nodes[node];
        if found.stretch.is_none() {
            if found.tries == TRIES {
                return;
            }
            found.tries += 1;
        }
        self.recording = Some(Box::new(Recording {
            node,
            from: self.now,
            fills: self.instructions.fills(),
            steps: Vec::new(),
            targets: Vec::new(),
            hits: Vec::new(),
            words: Vec::new(),
            before: self.counters.threads,
            issued: Vec::new(),
        }));
    }

    /// A recording ends in the state of `next`.
    fn finish(&mut self, recording: Recording, next: usize, machine: &Machine) {
        let Some(&went) = recording.targets.last() else { return };
        let mut counted = Vec::new();
        for (thread, (now, before)) in self.counters.threads.iter().zip(&recording.before).enumerate() {
            let mut counters = now.since(before);
            if counters.data_misses | counters.instruction_misses != 0 {
                return;
            }
            // That depends on the mask.
            counters.lanes = 0;
            if counters != ThreadCounters::default() {
                counted.push((thread, counters));
            }
        }
        if recording.fills != self.instructions.fills() {
            return;
        }
        let node = &mut self.recordings.nodes[recording.node];
        if let Some(stretch) = &mut node.stretch
            && stretch.is_right(&self.instructions, machine)
        {
            // What is recorded again is the same: otherwise the state leaves out something that matters.
            debug_assert_eq!(stretch.cycles, self.now - recording.from);
            debug_assert_eq!(stretch.issued.as_ref(), recording.issued.as_slice());
            debug_assert!(stretch.next.iter().all(|&(to, node)| to != went || node == next));
            if stretch.next.iter().all(|&(to, _)| to != went) {
                stretch.next.push((went, next));
            }
            return;
        }
        // One of other code, or of another state of the cache, gives way.
        if let Some(stretch) = &mut node.stretch {
            stretch.count_into(&mut self.counters);
        }
        let mut lines: Vec<(u32, bool)> = recording.hits.iter().map(|&(_, line, lower)| (line, lower)).collect();
        lines.sort_unstable();
        lines.dedup();
        let mut words = recording.words;
        words.sort_unstable();
        words.dedup();
        node.stretch = Some(Stretch {
            steps: recording.steps.into(),
            targets: recording.targets.into(),
            cycles: self.now - recording.from,
            fills: recording.fills,
            code: machine.code_generation(),
            words: words.into(),
            lines: lines.into(),
            hits: Hits::of(&recording.hits),
            counted: counted.into(),
            issued: recording.issued.into(),
            next: vec![(went, next)],
            count: 0,
        });
    }

    /// Goes through stretches from that of `node` on; gives the node of the state that the pipeline is in then, or at which it begins to
    /// go through what is in [`Core::done`], and how many there were.
    fn go_through(
        &mut self,
        recordings: &mut Recordings,
        mut node: usize,
        machine: &mut Machine,
        until: u64,
        budget: u64,
    ) -> (usize, u32) {
        let mut went = 0;
        loop {
            recordings.noted.clear();
            let found = &mut recordings.nodes[node];
            let Some(stretch) = &mut found.stretch else { break };
            let length = stretch.targets.len() as u64;
            if self.now.saturating_add(stretch.cycles) >= until || self.executed.saturating_add(length) > budget {
                break;
            }
            if !stretch.is_right(&self.instructions, machine) {
                stretch.count_into(&mut self.counters);
                found.stretch = None;
                break;
            }
            let (executed, went_to) = self.execute_stretch(stretch, &mut recordings.noted, machine);
            let known = |went_to: Target| stretch.next.iter().find(|&&(to, _)| to == went_to);
            let Some(&(_, next)) = went_to.and_then(known) else {
                self.done_before(stretch, executed, went_to, &recordings.noted);
                break;
            };
            for noted in &recordings.noted {
                let thread = usize::from(noted.thread);
                if let Some(address) = noted.address {
                    self.pipes[thread].ask(line_of(address));
                }
                self.counters.threads[thread].lanes += u64::from(noted.lanes);
            }
            self.executed += length;
            recordings.instructions += length;
            self.instructions.fetch_all(&stretch.hits, self.now);
            self.now += stretch.cycles;
            if stretch.count == 0 {
                recordings.counted.push(node);
            }
            stretch.count += 1;
            went += 1;
            node = next;
        }
        if went != 0 {
            self.read_state(&recordings.nodes[node].state);
        }
        (node, went)
    }

    /// Leaves to the pipeline what is executed of a stretch that it has to go through cycle by cycle.
    fn done_before(&mut self, stretch: &Stretch, executed: usize, went_to: Option<Target>, noted: &[Noted]) {
        let none = |&target: &Target| Done {
            target,
            address: 0,
            lanes: 0,
        };
        self.done.extend(stretch.targets.iter().take(executed).map(none));
        for noted in noted {
            if let Some(done) = self.done.get_mut(noted.index) {
                (done.address, done.lanes) = (noted.address.unwrap_or(0), noted.lanes);
            }
        }
        if let (Some(went_to), Some(done)) = (went_to, self.done.back_mut()) {
            done.target = went_to;
        }
    }

    /// Executes the instructions of a stretch and notes what differs from time to time; gives how many were executed, and where the last
    /// one went if they are all.
    fn execute_stretch(
        &self,
        stretch: &Stretch,
        noted: &mut Vec<Noted>,
        machine: &mut Machine,
    ) -> (usize, Option<Target>) {
        let mut index = 0;
        for step in &stretch.steps {
            let number = self.global(step.thread.into());
            let (address, vector) = match step.action {
                Action::Plain(count) => {
                    let executed = machine.run_common(number, count.into());
                    index += executed as usize;
                    if executed != u64::from(count) {
                        return (index, None);
                    }
                    continue;
                }
                Action::Choice => {
                    let Some(taken) = machine.step_common(number) else {
                        return (index, None);
                    };
                    return (index + 1, Some(taken.then(|| machine.threads[number].pc())));
                }
                Action::Vector => (None, true),
                Action::Memory(access) => {
                    let address = machine.threads[number]
                        .s(access.base)
                        .wrapping_add(access.offset as u32);
                    if !self.data.holds(line_of(address)) {
                        return (index, None);
                    }
                    (Some(address), access.vector)
                }
            };
            let lanes = if vector {
                machine.threads[number].mask().count_ones()
            } else {
                0
            };
            if machine.run_common(number, 1) != 1 {
                return (index, None);
            }
            noted.push(Noted {
                index,
                thread: step.thread,
                address,
                lanes,
            });
            index += 1;
        }
        (index, stretch.targets.last().copied())
    }
}
