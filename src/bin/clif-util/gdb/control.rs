//! Who runs and when to stop: breakpoints, watchpoints and turns of the threads under a debugger.

use gdbstub::common::{Signal, Tid};
use gdbstub::stub::MultiThreadStopReason;
use gdbstub::target::ext::breakpoints::WatchKind;
use npu_sim::{LANES, Machine, Progress, Space, Status, Stop};
use std::collections::BTreeSet;

/// Instructions of a thread before the next one has its turn.
const QUANTUM: u32 = 128;

/// Why the threads stopped.
pub type Reason = MultiThreadStopReason<u32>;

/// What a thread does when the machine goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// It stays where it is.
    Stay,
    /// It runs.
    Continue,
    /// It executes one instruction.
    Step,
}

/// Memory that is watched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Watch {
    /// First byte.
    pub address: u32,
    /// Bytes.
    pub len: u32,
    /// Which accesses count.
    pub kind: WatchKind,
}

impl Watch {
    /// Where an access touches the watched bytes, if it counts.
    fn hit(&self, address: u32, size: u32, store: bool) -> Option<u32> {
        let counts = match self.kind {
            WatchKind::Write => store,
            WatchKind::Read => !store,
            WatchKind::ReadWrite => true,
        };
        let start = u64::from(self.address.max(address));
        let end = |address: u32, len: u32| u64::from(address) + u64::from(len);
        let before = end(self.address, self.len).min(end(address, size));
        (counts && start < before).then(|| self.address.max(address))
    }
}

/// The machine under control.
pub struct Control {
    /// The machine.
    pub machine: Machine,
    /// The threads that take part, by number.
    threads: Vec<usize>,
    actions: Vec<Action>,
    /// Which threads have an action of their own.
    told: Vec<bool>,
    /// Threads that have ended or hang, until somebody changes something.
    resting: Vec<bool>,
    breakpoints: BTreeSet<u32>,
    watches: Vec<Watch>,
    /// Whose turn it is, by its place among the threads, and for how many instructions.
    turn: usize,
    left: u32,
    /// The breakpoint that a thread has been stopped at last, and goes on from.
    stopped: Option<(usize, u32)>,
    console: usize,
}

/// The number under which GDB knows a thread: 0 would mean any.
pub fn tid(thread: usize) -> Tid {
    Tid::MIN.saturating_add(thread)
}

/// The thread of a number.
pub fn thread_of(tid: Tid) -> usize {
    tid.get() - 1
}

impl Control {
    /// Takes a machine over, with its enabled threads.
    pub fn new(machine: Machine) -> Self {
        let mut threads: Vec<usize> = (0..machine.threads()).filter(|&n| machine.is_enabled(n)).collect();
        if threads.is_empty() {
            threads.push(0);
        }
        let count = machine.threads();
        Self {
            machine,
            threads,
            actions: vec![Action::Continue; count],
            told: vec![false; count],
            resting: vec![false; count],
            breakpoints: BTreeSet::new(),
            watches: Vec::new(),
            turn: 0,
            left: QUANTUM,
            stopped: None,
            console: 0,
        }
    }

    /// The threads that take part.
    pub fn threads(&self) -> &[usize] {
        &self.threads
    }

    /// What all threads do next, until told otherwise.
    pub fn set_all(&mut self, action: Action) {
        self.actions.fill(action);
        self.told.fill(false);
    }

    /// What a thread does next.
    pub fn set_action(&mut self, thread: usize, action: Action) {
        if let Some(slot) = self.actions.get_mut(thread) {
            *slot = action;
            self.told[thread] = true;
        }
    }

    /// Of the threads, only those that have been told to go on do.
    pub fn lock_others(&mut self) {
        for (action, told) in self.actions.iter_mut().zip(&self.told) {
            if !told {
                *action = Action::Stay;
            }
        }
    }

    /// Before the threads go on: somebody may have changed what they hang at.
    pub fn resume(&mut self) {
        self.resting.fill(false);
    }

    /// Adds or removes a breakpoint; gives whether that changed anything.
    pub fn breakpoint(&mut self, address: u32, set: bool) -> bool {
        if set {
            self.breakpoints.insert(address)
        } else {
            self.breakpoints.remove(&address)
        }
    }

    /// Adds a watchpoint.
    pub fn watch(&mut self, watch: Watch) {
        self.watches.push(watch);
    }

    /// Removes a watchpoint; gives whether there was one.
    pub fn unwatch(&mut self, watch: Watch) -> bool {
        let place = self.watches.iter().position(|w| *w == watch);
        place.map(|index| self.watches.swap_remove(index)).is_some()
    }

    /// What the program has printed since it was last asked for.
    pub fn new_output(&mut self) -> &[u8] {
        let output = self.machine.console_output();
        let start = self.console.min(output.len());
        self.console = output.len();
        &output[start..]
    }

    fn is_able(&self, thread: usize) -> bool {
        self.actions[thread] != Action::Stay && !self.resting[thread] && !self.machine.thread(thread).is_waiting()
    }

    /// The thread that goes next: one that shall step, else the one whose turn it is.
    fn next(&mut self) -> Option<usize> {
        let able = |thread: &usize| self.is_able(*thread);
        let stepping = |thread: &usize| self.actions[*thread] == Action::Step && self.is_able(*thread);
        if let Some(&thread) = self.threads.iter().find(|t| stepping(t)) {
            return Some(thread);
        }
        let count = self.threads.len();
        let same = self
            .threads
            .get(self.turn)
            .filter(|t| able(t) && self.left > 0)
            .copied();
        if let Some(thread) = same {
            self.left -= 1;
            return Some(thread);
        }
        let place = (1..=count)
            .map(|k| (self.turn + k) % count)
            .find(|&place| able(&self.threads[place]))?;
        self.turn = place;
        self.left = QUANTUM - 1;
        Some(self.threads[place])
    }

    /// Executes one instruction of one thread. Gives a reason if the threads shall stop.
    pub fn advance(&mut self) -> Option<Reason> {
        let Some(thread) = self.next() else {
            return Some(self.nobody());
        };
        let pc = self.machine.thread(thread).pc();
        let action = self.actions[thread];
        if action == Action::Continue && self.breakpoints.contains(&pc) && self.stopped != Some((thread, pc)) {
            self.stopped = Some((thread, pc));
            return Some(Reason::SwBreak(tid(thread)));
        }
        self.stopped = None;
        let signal = |signal| {
            Some(Reason::SignalWithThread {
                tid: tid(thread),
                signal,
            })
        };
        let step = match self.machine.step(thread) {
            Ok(step) => step,
            Err(Stop::MemoryFull { .. }) => return signal(Signal::SIGSEGV),
            // The erratum is shown by `monitor findings`.
            Err(_) => return signal(Signal::SIGTRAP),
        };
        if let Some(access) = step.effect.access.filter(|a| a.space == Space::Main) {
            let size = if access.vector {
                access.size * LANES as u32
            } else {
                access.size
            };
            let hit = |watch: &Watch| Some((watch.kind, watch.hit(access.address, size, access.store)?));
            if let Some((kind, addr)) = self.watches.iter().find_map(hit) {
                return Some(Reason::Watch {
                    tid: tid(thread),
                    kind,
                    addr,
                });
            }
        }
        match step.progress {
            Progress::Ended(_) => self.resting[thread] = true,
            Progress::Hang(_) => {
                self.resting[thread] = true;
                return signal(Signal::SIGILL);
            }
            Progress::Trap(_) => return signal(Signal::SIGBUS),
            Progress::Next | Progress::Taken | Progress::Waits | Progress::Opens => {}
        }
        if action == Action::Step {
            self.actions[thread] = Action::Stay;
            return signal(Signal::SIGTRAP);
        }
        None
    }

    /// Nobody can go on: all have ended, or those that are left wait for ever.
    fn nobody(&self) -> Reason {
        let status = |thread: &usize| self.machine.thread(*thread).status();
        let ended = |thread: &usize| [Status::ENDED, Status::TRAPPED].contains(&status(thread));
        if self.threads.iter().all(|t| self.resting[*t] && ended(t)) {
            let failed = self.threads.iter().map(status).find(|s| *s != Status::ENDED);
            return Reason::Exited(failed.map_or(0, |s| s.code().min(255) as u8));
        }
        let thread = self.threads.iter().find(|t| !ended(t)).or(self.threads.first());
        Reason::SignalWithThread {
            tid: tid(thread.copied().unwrap_or(0)),
            signal: Signal::SIGSTOP,
        }
    }
}
