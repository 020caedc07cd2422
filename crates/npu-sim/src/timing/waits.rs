//! Causes of waits: attributes each stall cycle of a thread to the stalled instruction and to the
//! awaited event.

use super::cache::line_of;
use super::decode::{Decoder, NO_REGISTER, Route};
use super::report::Stall;
use super::sink::{Issue, LineRequest, Sink};
use super::trip::{Leg, PLACES, Place};
use crate::machine::THREADS;
use npu_mc::{Reg, SReg, VReg};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The number of issues of a core that are kept to attribute lost turns.
const KEPT: usize = 1 << 12;

/// The event or resource for which a thread waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Awaited {
    /// Its turn in fetch, or the start of the thread.
    Fetch,
    /// The target of the taken branch at `pc`.
    Branch {
        /// The address of the branch.
        pc: u32,
    },
    /// The instruction line with this number.
    InstructionLine {
        /// The address divided by the line size.
        line: u32,
    },
    /// The result of the instruction at `pc`.
    Result {
        /// The address of the instruction.
        pc: u32,
        /// The destination register.
        register: Reg,
    },
    /// The result of the load at `pc`, which missed.
    Miss {
        /// The address of the load.
        pc: u32,
        /// The destination register.
        register: Reg,
    },
    /// The float result of the instruction at `pc`, which uses the float port in the same cycle.
    FloatResult {
        /// The thread of the instruction.
        thread: usize,
        /// The address of the instruction.
        pc: u32,
    },
    /// The previous access of the same thread to main memory, at `pc`.
    Memory {
        /// The address of the load, store, flush or invalidation.
        pc: u32,
    },
    /// The previous access of the core to the scratchpad, at `pc`.
    Scratchpad {
        /// The thread of the access.
        thread: usize,
        /// The address of the load or store instruction.
        pc: u32,
    },
    /// The last arrival of the other threads at a barrier.
    Arrival {
        /// The thread that arrived last; the waiting one itself if it was the last.
        thread: usize,
    },
    /// The issue slot, which another thread used.
    Turn {
        /// The thread that issued.
        thread: usize,
    },
    /// The write port: so many results were queued that nothing issued.
    WritePort,
    /// A result whose instruction issued before the receiver was attached.
    Unseen,
}

/// The cycles that one instruction of one thread waited for one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The number of the thread, counted over all cores.
    pub thread: usize,
    /// The address of the instruction that waited, or of the barrier.
    pub pc: u32,
    /// The cause in the stall counters.
    pub cause: Stall,
    /// The awaited event.
    pub awaited: Awaited,
    /// The total cycles.
    pub cycles: u64,
    /// The number of times that the instruction waited.
    pub times: u64,
    /// The numbers of the data lines that missed, without duplicates.
    pub lines: BTreeSet<u32>,
    /// The cycles of the wait during which the missing lines were at each place of a system of
    /// several cores, in the order of [`Place::ALL`]. The rest of [`Wait::cycles`] was spent in the
    /// core.
    pub places: [u64; PLACES],
}

impl Wait {
    /// Returns the cycles of the wait during which the missing lines were at `place`.
    pub fn at(&self, place: Place) -> u64 {
        self.places[place as usize]
    }
}

/// All waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitsReport {
    /// The waits by thread, instruction, cause and event, in descending order of cycles.
    pub waits: Vec<Wait>,
    /// The words of the instructions that waited or caused waits, by address, at their last issue.
    pub words: BTreeMap<u32, u32>,
}

impl WaitsReport {
    /// Returns the cycles that a thread waited for a cause, which equal its stall counter.
    pub fn stalled(&self, thread: usize, cause: Stall) -> u64 {
        let of_it = |wait: &&Wait| wait.thread == thread && wait.cause == cause;
        self.waits.iter().filter(of_it).map(|wait| wait.cycles).sum()
    }

    /// Returns the waits summed over all threads, in descending order of cycles. [`Wait::thread`]
    /// is the thread with the longest wait.
    pub fn by_instruction(&self) -> Vec<Wait> {
        let mut sums: BTreeMap<(u32, Stall, Awaited), Wait> = BTreeMap::new();
        for wait in &self.waits {
            sums.entry((wait.pc, wait.cause, wait.awaited))
                .and_modify(|sum| {
                    sum.cycles += wait.cycles;
                    sum.times += wait.times;
                    sum.lines.extend(&wait.lines);
                    add_places(&mut sum.places, &wait.places);
                })
                .or_insert_with(|| wait.clone());
        }
        sorted(sums.into_values())
    }
}

fn add_places(sum: &mut [u64; PLACES], more: &[u64; PLACES]) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

fn sorted(waits: impl Iterator<Item = Wait>) -> Vec<Wait> {
    let mut waits: Vec<Wait> = waits.collect();
    waits.sort_by_key(|wait| {
        (
            std::cmp::Reverse(wait.cycles),
            wait.pc,
            wait.cause,
            wait.awaited,
            wait.thread,
        )
    });
    waits
}

/// The last writer of a register, and the line that it missed.
#[derive(Clone, Copy, Debug)]
struct Writer {
    pc: u32,
    missed: Option<u32>,
}

/// A reported stall whose instruction has not issued yet.
#[derive(Clone, Copy, Debug)]
struct Told {
    cause: Stall,
    from: u64,
    to: u64,
    register: u8,
}

#[derive(Clone, Debug, Default)]
struct ThreadState {
    told: Vec<Told>,
    /// The register of the next reported stall.
    register: Option<u8>,
    writers: BTreeMap<u8, Writer>,
    /// The last instruction of the correct path, and the last one that accesses main memory.
    executed: Option<u32>,
    memory: Option<u32>,
    /// The line that the last access to main memory missed.
    missed: Option<u32>,
    /// The instruction line that missed last.
    fetched: Option<u32>,
    /// The last thread that arrived at the barrier that the thread leaves next.
    last: Option<usize>,
}

/// An issue, for the attribution of lost turns.
#[derive(Clone, Copy, Debug)]
struct Taken {
    cycle: u64,
    thread: usize,
    pc: u32,
    /// The cycle in which a float result uses the float port.
    float: Option<u64>,
}

#[derive(Clone, Debug, Default)]
struct CoreState {
    taken: VecDeque<Taken>,
    scratchpad: Option<(usize, u32)>,
    /// The paths of the last requests for lines, by line number and whether they are instruction
    /// lines.
    reads: BTreeMap<(u32, bool), Vec<Leg>>,
}

impl CoreState {
    /// Returns the cycles of a stall during which a line was at each place.
    fn places(&self, read: (u32, bool), from: u64, to: u64) -> [u64; PLACES] {
        let mut places = [0; PLACES];
        for leg in self.reads.get(&read).into_iter().flatten() {
            places[leg.place as usize] += leg.within(from, to);
        }
        places
    }
}

/// The counters of a [`Wait`].
#[derive(Clone, Debug, Default)]
struct Sum {
    cycles: u64,
    times: u64,
    lines: BTreeSet<u32>,
    places: [u64; PLACES],
}

/// A receiver of events that attributes stalls to their causes.
#[derive(Default)]
pub struct Waits {
    threads: Vec<ThreadState>,
    cores: Vec<CoreState>,
    sums: BTreeMap<(usize, u32, Stall, Awaited), Sum>,
    words: BTreeMap<u32, u32>,
    decoder: Option<Decoder>,
}

impl std::fmt::Debug for Waits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waits")
            .field("sums", &self.sums.len())
            .finish_non_exhaustive()
    }
}

/// Returns the register with a number of the pipeline.
fn register(number: u8) -> Option<Reg> {
    match number.checked_sub(SReg::COUNT) {
        None => SReg::all().nth(number.into()).map(Reg::S),
        Some(vector) => VReg::all().nth(vector.into()).map(Reg::V),
    }
}

impl Waits {
    /// Creates a receiver without waits.
    pub fn new() -> Waits {
        Waits::default()
    }

    /// Returns the waits up to now. Stalls before an instruction that has not issued are not
    /// included, as in the counters of its thread.
    pub fn report(&self) -> WaitsReport {
        let waits = self.sums.iter().map(|(&(thread, pc, cause, awaited), sum)| Wait {
            thread,
            pc,
            cause,
            awaited,
            cycles: sum.cycles,
            times: sum.times,
            lines: sum.lines.clone(),
            places: sum.places,
        });
        WaitsReport {
            waits: sorted(waits),
            words: self.words.clone(),
        }
    }

    fn thread(&mut self, thread: usize) -> &mut ThreadState {
        if self.threads.len() <= thread {
            self.threads.resize_with(thread + 1, ThreadState::default);
            self.cores
                .resize_with(self.threads.len().div_ceil(THREADS), CoreState::default);
        }
        &mut self.threads[thread]
    }

    fn add(&mut self, thread: usize, pc: u32, cause: Stall, awaited: Awaited, cycles: u64, line: Option<u32>) {
        if cycles != 0 {
            let sum = self.sums.entry((thread, pc, cause, awaited)).or_default();
            sum.cycles += cycles;
            sum.times += 1;
            sum.lines.extend(line);
        }
    }

    /// Adds the cycles during which a missing line was at each place to an existing wait.
    fn add_places(&mut self, thread: usize, pc: u32, told: Told, awaited: Awaited, read: (u32, bool)) {
        let places = self.cores[thread / THREADS].places(read, told.from, told.to);
        if let Some(sum) = self.sums.get_mut(&(thread, pc, told.cause, awaited)) {
            add_places(&mut sum.places, &places);
        }
    }

    /// Attributes a stall of an issuing instruction to its cause.
    fn resolve(&mut self, told: Told, issue: &Issue) {
        let (thread, pc) = (issue.thread, issue.pc);
        let state = &self.threads[thread];
        let core = &self.cores[thread / THREADS];
        let cycles = told.to - told.from;
        let (awaited, line) = match told.cause {
            Stall::Fetch => (Awaited::Fetch, None),
            Stall::Branch => (state.executed.map_or(Awaited::Fetch, |pc| Awaited::Branch { pc }), None),
            Stall::InstructionMiss => {
                let line = state.fetched.unwrap_or(line_of(pc));
                (Awaited::InstructionLine { line }, None)
            }
            Stall::Integer | Stall::Float | Stall::Load | Stall::Scratchpad => {
                match (register(told.register), state.writers.get(&told.register)) {
                    (Some(register), Some(&Writer { pc, missed: None })) => (Awaited::Result { pc, register }, None),
                    (Some(register), Some(&Writer { pc, missed })) => (Awaited::Miss { pc, register }, missed),
                    _ => (Awaited::Unseen, None),
                }
            }
            Stall::FloatSlot => {
                // The last refused cycle conflicted with a float result that uses the port in the
                // cycle of this result.
                let leaves = told.to - 1 + u64::from(issue.latency);
                let blocker = core.taken.iter().rev().find(|taken| taken.float == Some(leaves));
                let awaited = blocker.map(|taken| Awaited::FloatResult {
                    thread: taken.thread,
                    pc: taken.pc,
                });
                (awaited.unwrap_or(Awaited::Unseen), None)
            }
            Stall::MemoryQueue => match state.memory {
                Some(pc) => (Awaited::Memory { pc }, state.missed),
                None => (Awaited::Unseen, None),
            },
            Stall::ScratchpadQueue => match core.scratchpad {
                Some((thread, pc)) => (Awaited::Scratchpad { thread, pc }, None),
                None => (Awaited::Unseen, None),
            },
            // The event is reported when the thread leaves the barrier.
            Stall::Barrier => return,
            Stall::Turn => {
                self.turns(told, issue);
                return;
            }
        };
        self.add(thread, pc, told.cause, awaited, cycles, line);
        // A load that hits may have waited for a missing access of its thread.
        let missed = self.threads[thread].missed.filter(|_| told.cause == Stall::Load);
        let read = if let Awaited::InstructionLine { line } = awaited {
            Some((line, true))
        } else {
            line.or(missed).map(|line| (line, false))
        };
        if let Some(read) = read {
            self.add_places(thread, pc, told, awaited, read);
        }
    }

    /// Attributes cycles in which the instruction could have issued to the threads that issued
    /// instead.
    fn turns(&mut self, told: Told, issue: &Issue) {
        let core = &self.cores[issue.thread / THREADS];
        let mut by_thread = [0u64; THREADS];
        let recent = core.taken.iter().rev().skip_while(|taken| taken.cycle >= told.to);
        for taken in recent.take_while(|taken| taken.cycle >= told.from) {
            by_thread[taken.thread % THREADS] += 1;
        }
        let first = issue.thread / THREADS * THREADS;
        let mut rest = told.to - told.from;
        for (thread, cycles) in by_thread.into_iter().enumerate() {
            rest -= cycles;
            let awaited = Awaited::Turn { thread: first + thread };
            self.add(issue.thread, issue.pc, told.cause, awaited, cycles, None);
        }
        self.add(issue.thread, issue.pc, told.cause, Awaited::WritePort, rest, None);
    }
}

impl Sink for Waits {
    fn issue(&mut self, issue: &Issue) {
        let told = std::mem::take(&mut self.thread(issue.thread).told);
        for told in told {
            self.resolve(told, issue);
        }
        self.words.insert(issue.pc, issue.word);
        let decoder = self.decoder.get_or_insert_with(Decoder::new);
        let decoded = *decoder.get(issue.pc, issue.word);
        let core = &mut self.cores[issue.thread / THREADS];
        if core.taken.len() == KEPT {
            core.taken.pop_front();
        }
        let is_float = decoded.route == Route::Float;
        core.taken.push_back(Taken {
            cycle: issue.cycle,
            thread: issue.thread,
            pc: issue.pc,
            float: is_float.then_some(issue.cycle + u64::from(decoded.latency)),
        });
        if decoded.route == Route::Scratchpad && !issue.killed {
            core.scratchpad = Some((issue.thread, issue.pc));
        }
        let state = &mut self.threads[issue.thread];
        if decoded.destination != NO_REGISTER {
            let writer = Writer {
                pc: issue.pc,
                missed: None,
            };
            state.writers.insert(decoded.destination, writer);
        }
        if !issue.killed {
            state.executed = Some(issue.pc);
            if decoded.route == Route::Memory {
                (state.memory, state.missed) = (Some(issue.pc), None);
            }
        }
    }

    fn operand(&mut self, thread: usize, register: u8) {
        self.thread(thread).register = Some(register);
    }

    fn stall(&mut self, thread: usize, cause: Stall, from: u64, to: u64) {
        let state = self.thread(thread);
        let register = state.register.take().unwrap_or(NO_REGISTER);
        let told = Told {
            cause,
            from,
            to,
            register,
        };
        state.told.push(told);
    }

    fn barrier_opens(&mut self, thread: usize, last: usize) {
        self.thread(thread).last = Some(last);
    }

    fn left_barrier(&mut self, thread: usize, from: u64, to: u64) {
        // The next issue may never happen: the barrier itself is the instruction that waited.
        let state = self.thread(thread);
        let last = state.last.unwrap_or(thread);
        if let Some(pc) = state.executed {
            let awaited = Awaited::Arrival { thread: last };
            self.add(thread, pc, Stall::Barrier, awaited, to - from, None);
        }
    }

    fn data_miss(&mut self, _: u64, thread: usize, line: u32) {
        self.thread(thread).missed = Some(line);
    }

    fn load_missed(&mut self, thread: usize, register: u8, line: u32) {
        if let Some(writer) = self.thread(thread).writers.get_mut(&register) {
            writer.missed = Some(line);
        }
    }

    fn instruction_miss(&mut self, _: u64, thread: usize, pc: u32) {
        self.thread(thread).fetched = Some(line_of(pc));
    }

    fn line_requested(&mut self, request: &LineRequest<'_>) {
        self.thread(request.core * THREADS);
        let read = (request.line, request.is_code());
        self.cores[request.core].reads.insert(read, request.legs.to_vec());
    }
}
