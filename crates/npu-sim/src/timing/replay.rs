//! Recordings of stretches: parts of the run of one core that repeat whenever the pipeline is in
//! the same state.
//!
//! A stretch extends from one instruction with several possible successors (a conditional branch, a
//! jump to a register) to the next one of any thread. The state of the pipeline at its beginning
//! determines which instructions issue, their cycles, the stalls of each thread and the total time,
//! unless a thread misses, waits at a barrier or reads the time. Therefore, if the pipeline reaches
//! the initial state of a recording, only the instructions are executed, and the counts of the
//! recording are added. The target of the last instruction selects the next recording.
//!
//! Invariant: a run has the same results with recordings and without. Every event outside of a
//! recording leaves it: a missing line, an instruction that requires the definition, a store to
//! code, a path that was not taken before. The pipeline is then reset to the state at the beginning
//! of the stretch and simulates it cycle by cycle. [`Core::done`] contains the instructions that
//! are already executed, with all information that the pipeline needs.

use super::cache::{Hits, InstructionCache, line_of};
use super::core::Core;
use super::report::{Counters, ThreadCounters};
use crate::machine::{Machine, THREADS};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The maximum number of instructions of a stretch without branches.
const LONGEST: usize = 48;
/// The maximum number of words in all recorded states; programs of a few thousand instructions need
/// fewer.
const MOST_WORDS: usize = 4 << 20;
/// The maximum number of attempts to record a stretch from one state, in case it never completes.
const TRIES: u8 = 4;
/// The number of consecutive unknown stretches after which some are skipped, because recording does
/// not pay.
const PATIENCE: u32 = 512;
/// The maximum number of stretches that are skipped before the next attempt.
const LONGEST_PAUSE: u32 = 8192;

/// A unit of execution in a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// This number of instructions without memory accesses and without use of the lane mask.
    Plain(u32),
    /// An instruction that uses the lane mask.
    Vector,
    /// A load or store of main memory.
    Memory(Access),
    /// An instruction with several possible successors. It ends the stretch.
    Choice,
}

/// A load or store of main memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    /// The address: base register and offset.
    pub base: u8,
    pub offset: i32,
    /// Whether the access uses the lane mask.
    pub vector: bool,
}

/// The class of an instruction in a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Executed {
    Plain,
    Vector,
    Memory(Access),
    Choice,
}

/// Instructions of one thread that issue consecutively.
#[derive(Clone, Copy, Debug)]
struct Step {
    thread: u8,
    action: Action,
}

/// The target of an instruction, if it was a taken branch.
type Target = Option<u32>;

/// An instruction that was executed before its issue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    pub target: Target,
    /// The address of a load or store.
    pub address: u32,
    /// The number of lanes that were on.
    pub lanes: u32,
}

/// The variable part of an execution of a stretch.
#[derive(Clone, Copy, Debug)]
struct Noted {
    /// The index of the instruction in the stretch.
    index: usize,
    thread: u8,
    /// The address of a load or store of main memory.
    address: Option<u32>,
    lanes: u32,
}

/// A recorded stretch.
#[derive(Debug)]
struct Stretch {
    steps: Box<[Step]>,
    /// The target of each instruction.
    targets: Box<[Target]>,
    cycles: u64,
    /// The state of the instruction cache for which `hits` is valid, as returned by
    /// [`super::cache::InstructionCache::fills`].
    fills: u64,
    /// The generation of predecoded code for which the recording is valid.
    code: u64,
    /// The addresses and words of the fetches.
    words: Box<[(u32, u32)]>,
    /// The lines of the fetches, and whether each was in the lower half of its set.
    lines: Box<[(u32, bool)]>,
    hits: Hits,
    /// The counts of each thread with nonzero counts.
    counted: Box<[(usize, ThreadCounters)]>,
    /// The thread, the address, whether it was killed, and the cycles of each instruction that
    /// issued.
    issued: Box<[(u8, u32, bool, u64)]>,
    /// The targets of the last instruction, and the states after them.
    next: Vec<(Target, usize)>,
    /// The number of replays that are not yet added to the counters.
    count: u64,
}

impl Stretch {
    /// Adds the counts of all replays to `counters`.
    fn count_into(&mut self, counters: &mut Counters) {
        let times = std::mem::take(&mut self.count);
        if times == 0 {
            return;
        }
        for (thread, counted) in &self.counted {
            counters.threads[*thread].add_times(counted, times);
        }
        for &(thread, pc, killed, cycles) in &self.issued {
            let executed = if killed { 0 } else { times };
            counters.functions.issued(thread.into(), pc, executed, cycles * times);
        }
    }

    /// Returns whether the fetched words are unchanged and the lines are in the same positions of
    /// the cache.
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

/// A stretch in the process of recording.
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
    issued: Vec<(u8, u32, bool, u64)>,
}

impl Recording {
    /// Records the execution of an instruction.
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

    /// Records the issue of an instruction, executed or killed.
    pub fn issued(&mut self, thread: usize, pc: u32, killed: bool, cycles: u64) {
        self.issued.push((thread as u8, pc, killed, cycles));
    }

    /// Records a fetch in cycle `now`: its address and word, and whether its line was in the
    /// `lower` half of its set.
    pub fn fetched(&mut self, now: u64, lower: bool, word: (u32, u32)) {
        self.hits.push((now - self.from, line_of(word.0), lower));
        self.words.push(word);
    }

    /// Returns whether the recording is long enough to end without a branch.
    pub fn is_long(&self) -> bool {
        self.targets.len() >= LONGEST
    }
}

/// All recordings of a core.
#[derive(Debug, Default)]
pub(super) struct Recordings {
    nodes: Vec<Node>,
    by_state: FxHashMap<Arc<[u64]>, usize>,
    /// The number of words of all states.
    words: usize,
    /// The nodes with replays that are not yet added to the counters.
    counted: Vec<usize>,
    /// The number of consecutive unknown stretches.
    unknown: u32,
    /// The number of ends of stretches to skip.
    pause: u32,
    scratch: Vec<u64>,
    noted: Vec<Noted>,
    /// The number of replayed instructions.
    pub instructions: u64,
}

impl Recordings {
    fn forget(&mut self) {
        self.nodes.clear();
        self.by_state.clear();
        self.words = 0;
    }

    /// Returns the node of the state in `scratch`, and creates it if necessary.
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
    /// Adds the counts of all replays to the counters of the core.
    pub(super) fn count_recordings(&mut self) {
        for node in std::mem::take(&mut self.recordings.counted) {
            if let Some(stretch) = &mut self.recordings.nodes[node].stretch {
                stretch.count_into(&mut self.counters);
            }
        }
    }

    /// Replays recordings from cycle [`Core::now`] on, at the end of a stretch. A recording has to
    /// end before cycle `until`, with at most `budget` executed instructions. Afterwards starts the
    /// next recording.
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
        // No recording continues from this state, or a limit of the run was reached.
        self.record(node);
    }

    /// Returns the node of the state at the beginning of cycle [`Core::now`].
    fn find_here(&mut self) -> usize {
        let mut scratch = std::mem::take(&mut self.recordings.scratch);
        self.write_state(&mut scratch);
        self.recordings.scratch = scratch;
        self.recordings.node()
    }

    /// Starts recording; the pipeline is in the state of `node`.
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

    /// Completes a recording; the pipeline is in the state of `next`.
    fn finish(&mut self, recording: Recording, next: usize, machine: &Machine) {
        let Some(&went) = recording.targets.last() else { return };
        let mut counted = Vec::new();
        for (thread, (now, before)) in self.counters.threads.iter().zip(&recording.before).enumerate() {
            let mut counters = now.since(before);
            if counters.data_misses | counters.instruction_misses != 0 {
                return;
            }
            // The number of lanes depends on the lane mask.
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
            // A repeated recording has to be equal: otherwise the state lacks something relevant.
            debug_assert_eq!(stretch.cycles, self.now - recording.from);
            debug_assert_eq!(stretch.issued.as_ref(), recording.issued.as_slice());
            debug_assert!(stretch.next.iter().all(|&(to, node)| to != went || node == next));
            if stretch.next.iter().all(|&(to, _)| to != went) {
                stretch.next.push((went, next));
            }
            return;
        }
        // Replaces a recording for other code or for another state of the cache.
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

    /// Replays stretches from the state of `node` on. Returns the node of the final state of the
    /// pipeline, or of the state from which it has to simulate the instructions in [`Core::done`],
    /// and the number of replayed stretches.
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

    /// Passes the executed instructions of a stretch to the pipeline, which has to simulate the
    /// stretch cycle by cycle.
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

    /// Executes the instructions of a stretch and records its variable part. Returns the number of
    /// executed instructions, and the target of the last one if all were executed.
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
