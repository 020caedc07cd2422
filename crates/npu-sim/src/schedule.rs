//! Runs of all enabled threads, in turns, until none can continue.
//!
//! Turns depend only on the [`Schedule`] and on the threads, so that runs are repeatable. A run
//! that is split by its limit or by stop addresses has the same result as an unsplit one.

use crate::barrier::Waiting;
use crate::fill::split_mix;
use crate::machine::{Machine, Stop, THREADS};
use crate::parallel::Unjoined;
use crate::rest::{HangReason, Rest};
use crate::thread_list::thread_list;
use crate::trace::TraceEvent;
use std::fmt;

/// The default number of instructions in a turn.
pub const QUANTUM: u32 = 128;

/// The order and the length of turns. A run that continues another one needs the same schedule.
#[derive(Clone, Debug)]
pub struct Schedule {
    quantum: u32,
    /// The generator state of a random schedule.
    random: Option<u64>,
    /// The thread with the current or the last turn.
    current: Option<usize>,
    /// The number of instructions left in the turn.
    left: u32,
}

impl Default for Schedule {
    /// Round robin with [`QUANTUM`].
    fn default() -> Schedule {
        Schedule::round_robin(QUANTUM)
    }
}

impl Schedule {
    /// Creates a schedule of turns in the order of thread numbers, with `quantum` instructions
    /// each, at least 1.
    pub fn round_robin(quantum: u32) -> Schedule {
        Schedule {
            quantum: quantum.max(1),
            random: None,
            current: None,
            left: 0,
        }
    }

    /// Creates a schedule of random turns of 1 to `quantum` instructions, from a generator with
    /// this seed.
    pub fn random(seed: u64, quantum: u32) -> Schedule {
        Schedule {
            random: Some(seed),
            ..Schedule::round_robin(quantum)
        }
    }

    /// The maximum number of instructions in a turn.
    pub(crate) fn quantum(&self) -> u32 {
        self.quantum
    }

    /// Returns whether the next turn starts a round: the schedule is round-robin, and the thread
    /// with the highest number had the last turn.
    pub(crate) fn begins_round(&self, count: usize, ready: impl Fn(usize) -> bool) -> bool {
        let Some(current) = self.current else {
            return self.random.is_none();
        };
        let goes_on = self.left != 0 && ready(current);
        self.random.is_none() && !goes_on && !(current + 1..count).any(ready)
    }

    /// Records that `thread` had the last turn, with `left` instructions left.
    pub(crate) fn has_come_to(&mut self, thread: usize, left: u32) {
        self.current = Some(thread);
        self.left = left;
    }

    /// Returns the next number of the generator, below `bound`.
    fn draw(&mut self, bound: u64) -> Option<u64> {
        let number = split_mix(self.random.as_mut()?);
        Some(((u128::from(number) * u128::from(bound)) >> 64) as u64)
    }

    /// Returns the thread with the next turn among `count` threads, or `None` if no thread is
    /// `ready`.
    fn pick(&mut self, count: usize, ready: impl Fn(usize) -> bool) -> Option<usize> {
        if let Some(current) = self.current
            && self.left != 0
            && ready(current)
        {
            return Some(current);
        }
        let able = (0..count).filter(|&k| ready(k)).count() as u64;
        if able == 0 {
            return None;
        }
        let next = match self.draw(able) {
            Some(place) => (0..count).filter(|&k| ready(k)).nth(place as usize),
            None => {
                let first = self.current.map_or(0, |k| k + 1);
                (first..count).chain(0..first.min(count)).find(|&k| ready(k))
            }
        };
        self.current = next;
        self.left = match self.draw(u64::from(self.quantum)) {
            Some(length) => length as u32 + 1,
            None => self.quantum,
        };
        next
    }
}

/// A thread that can never continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hung {
    /// The number of the thread, counted over all cores.
    pub thread: usize,
    /// The address of the instruction.
    pub pc: u32,
    /// The reason.
    pub reason: HangReason,
}

impl Hung {
    /// Writes the end for all threads with these ascending numbers.
    fn write(&self, f: &mut fmt::Formatter<'_>, threads: &[usize]) -> fmt::Result {
        let Hung { pc, reason, .. } = self;
        let verb = if threads.len() == 1 { "hangs" } else { "hang" };
        write!(f, "{} {verb} at {pc:#010x}: {reason}", thread_list(threads))
    }
}

impl fmt::Display for Hung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, &[self.thread])
    }
}

/// Groups elements that differ only in their thread. Returns the first element of each group with
/// the numbers of its threads, in ascending order as in `list`.
pub fn by_thread<T: Clone + PartialEq>(list: &[T], thread: impl Fn(&mut T) -> &mut usize) -> Vec<(T, Vec<usize>)> {
    let mut groups: Vec<(T, Vec<usize>)> = Vec::new();
    for element in list {
        let mut moved = element.clone();
        let number = *thread(&mut moved);
        let same = groups.iter_mut().find(|(first, numbers)| {
            *thread(&mut moved) = numbers[0];
            moved == *first
        });
        match same {
            Some((_, numbers)) => numbers.push(number),
            None => groups.push((element.clone(), vec![number])),
        }
    }
    groups
}

/// The outcome of a run in which no thread can continue and not all have ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deadlock {
    /// The threads that wait at barriers, by number.
    pub waiting: Vec<Waiting>,
    /// The threads that hang elsewhere, by number.
    pub hung: Vec<Hung>,
    /// The numbers of the threads that have ended or trapped.
    pub ended: Vec<usize>,
}

impl fmt::Display for Deadlock {
    /// Formats one line for each group of threads with the same wait or hang, and one line for the
    /// threads that have ended.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no thread can go on")?;
        for (waiting, threads) in by_thread(&self.waiting, |waiting| &mut waiting.thread) {
            f.write_str("\n  ")?;
            waiting.write(f, &threads)?;
        }
        for (hung, threads) in by_thread(&self.hung, |hung| &mut hung.thread) {
            f.write_str("\n  ")?;
            hung.write(f, &threads)?;
        }
        if !self.ended.is_empty() {
            let numbers: Vec<String> = self.ended.iter().map(usize::to_string).collect();
            write!(f, "\n  ended: {}", numbers.join(", "))?;
        }
        Ok(())
    }
}

/// The reason why a run of all enabled threads stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Halt {
    /// Every enabled thread has set status 2 or 3 and jumps to itself; see
    /// [`Thread::status`](crate::Thread::status).
    Ended,
    /// No enabled thread can continue.
    Deadlock(Deadlock),
    /// The given number of instructions was executed, by all threads together.
    StepLimit,
    /// The timing model reached [`Timing::set_cycle_limit`](crate::Timing::set_cycle_limit).
    CycleLimit,
    /// One thread stopped the run: [`Stop::Breakpoint`], [`Stop::Erratum`] or [`Stop::MemoryFull`].
    Thread {
        /// The number of the thread, counted over all cores.
        thread: usize,
        /// The reason.
        stop: Stop,
    },
    /// An internal error of the timing model: a pipeline queue lost an entry, or a ready thread
    /// waits for nothing. The results of the run are invalid.
    Internal {
        /// The number of the core.
        core: usize,
    },
}

impl fmt::Display for Halt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Halt::Ended => f.write_str("all threads ended"),
            Halt::Deadlock(deadlock) => deadlock.fmt(f),
            Halt::StepLimit => f.write_str("step limit"),
            Halt::CycleLimit => f.write_str("cycle limit"),
            Halt::Thread { thread, stop } => write!(f, "thread {thread}: {stop}"),
            Halt::Internal { core } => Stop::Internal { core: *core }.fmt(f),
        }
    }
}

impl Machine {
    /// Runs the enabled threads in turns until none can continue, for at most `limit` instructions
    /// in total.
    ///
    /// Threads that have ended, trapped or hung remain so until they get a new PC; the other
    /// threads continue.
    pub fn run_threads(&mut self, schedule: &mut Schedule, limit: u64) -> Halt {
        self.drive(schedule, limit, true, &mut |machine, number, turn| {
            machine.run_on(number, turn)
        })
    }

    /// Runs like [`Machine::run_threads`] and calls `trace` after every instruction. This is much
    /// slower.
    pub fn run_threads_traced(
        &mut self,
        schedule: &mut Schedule,
        limit: u64,
        trace: &mut dyn FnMut(&TraceEvent<'_>),
    ) -> Halt {
        self.drive(schedule, limit, false, &mut |machine, number, turn| {
            machine.trace_on(number, turn, trace)
        })
    }

    fn drive(
        &mut self,
        schedule: &mut Schedule,
        limit: u64,
        ahead: bool,
        turn: &mut dyn FnMut(&mut Machine, usize, u64) -> Stop,
    ) -> Halt {
        let mut left = limit;
        loop {
            if ahead {
                match self.run_ahead(schedule, left) {
                    Ok(executed) => left = left.saturating_sub(executed),
                    Err(Unjoined) => {
                        let stop = Stop::Unjoined;
                        return Halt::Thread { thread: 0, stop };
                    }
                }
            }
            let count = self.threads.len();
            let Some(number) = schedule.pick(count, |k| self.can_go_on(k)) else {
                return self.all_at_rest();
            };
            if left == 0 {
                return Halt::StepLimit;
            }
            let before = self.threads[number].instructions;
            let stop = turn(self, number, u64::from(schedule.left).min(left));
            let executed = self.threads[number].instructions - before;
            left = left.saturating_sub(executed);
            schedule.left = schedule
                .left
                .saturating_sub(u32::try_from(executed).unwrap_or(u32::MAX));
            // Other threads may still be able to continue.
            if !matches!(stop, Stop::StepLimit | Stop::Ended { .. } | Stop::Hang { .. }) {
                return Halt::Thread { thread: number, stop };
            }
        }
    }

    /// Returns whether a thread has ended or hangs.
    pub(crate) fn at_rest(&self, number: usize) -> bool {
        self.threads[number].rest.is_some()
    }

    pub(crate) fn can_go_on(&self, number: usize) -> bool {
        let thread = &self.threads[number];
        thread.waiting.is_none()
            && thread.rest.is_none()
            && self.cores[number / THREADS].enabled >> (number % THREADS) & 1 != 0
    }

    /// Returns the outcome of a run in which no enabled thread can continue.
    pub(crate) fn all_at_rest(&self) -> Halt {
        let mut report = Deadlock::default();
        for number in (0..self.threads.len()).filter(|&k| self.is_enabled(k)) {
            match self.threads[number].rest {
                Some(Rest::Ended(_)) => report.ended.push(number),
                Some(Rest::Hung { pc, reason }) => report.hung.push(Hung {
                    thread: number,
                    pc,
                    reason,
                }),
                None => report.waiting.extend(self.waiting(number)),
            }
        }
        if report.waiting.is_empty() && report.hung.is_empty() {
            Halt::Ended
        } else {
            Halt::Deadlock(report)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(mut schedule: Schedule, ready: &[bool]) -> Vec<(usize, u32)> {
        (0..6)
            .filter_map(|_| {
                let thread = schedule.pick(ready.len(), |k| ready[k])?;
                let length = schedule.left;
                schedule.left = 0;
                Some((thread, length))
            })
            .collect()
    }

    #[test]
    fn round_robin_passes_by_those_that_cannot() {
        let ready = [false, true, false, true, true];
        let expected = [(1, 9), (3, 9), (4, 9), (1, 9), (3, 9), (4, 9)];
        assert_eq!(turns(Schedule::round_robin(9), &ready), expected);
        assert_eq!(turns(Schedule::round_robin(9), &[false; 3]), []);
    }

    #[test]
    fn a_random_schedule_repeats_and_reaches_all() {
        let ready = [true, false, true];
        let first = turns(Schedule::random(5, 7), &ready);
        assert_eq!(first, turns(Schedule::random(5, 7), &ready));
        assert_ne!(first, turns(Schedule::random(6, 7), &ready));
        assert!(first.iter().all(|&(k, n)| ready[k] && (1..=7).contains(&n)));
        assert!(first.iter().any(|&(k, _)| k == 0) && first.iter().any(|&(k, _)| k == 2));
    }

    #[test]
    fn a_turn_that_was_cut_goes_on() {
        let mut schedule = Schedule::round_robin(10);
        assert_eq!(schedule.pick(2, |_| true), Some(0));
        schedule.left = 3;
        assert_eq!(schedule.pick(2, |_| true), Some(0));
        assert_eq!(schedule.pick(2, |k| k == 1), Some(1));
        assert_eq!(schedule.left, 10);
    }
}
