//! Controls the threads under a debugger: breakpoints, watchpoints and turns.

use gdbstub::common::{Signal, Tid};
use gdbstub::stub::MultiThreadStopReason;
use gdbstub::target::ext::breakpoints::WatchKind;
use npu_link::debug::ProgramInfo;
use npu_mc::machine::INSTRUCTION_SIZE;
use npu_mc::{Opcode, SReg};
use npu_sim::{LANES, Machine, Progress, Space, Status, Stop};
use std::collections::BTreeSet;

/// Instructions of a thread's turn.
const QUANTUM: u32 = 128;

/// The reason of a stop.
pub type Reason = MultiThreadStopReason<u32>;

/// The action of a thread when the machine resumes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Stays stopped.
    Stay,
    /// Runs.
    Continue,
    /// Executes one instruction.
    Step,
}

/// A watched range of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Watch {
    /// First byte.
    pub address: u32,
    /// Bytes.
    pub len: u32,
    /// The accesses that count.
    pub kind: WatchKind,
}

impl Watch {
    /// Returns the first watched byte that an access touches, if the watchpoint covers this kind of
    /// access.
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
    /// Names, lines and frames of the program, if it has them.
    pub info: Option<ProgramInfo>,
    /// The enabled threads, by number.
    threads: Vec<usize>,
    actions: Vec<Action>,
    /// Whether each thread has its own action.
    set: Vec<bool>,
    /// Whether each thread has ended or hangs, until the debugger changes its state.
    resting: Vec<bool>,
    breakpoints: BTreeSet<u32>,
    watches: Vec<Watch>,
    /// The current thread as an index of `threads`, and the rest of its turn in instructions.
    turn: usize,
    left: u32,
    /// The breakpoint at which each thread stopped, and from which it resumes.
    stopped: Vec<Option<u32>>,
    console: usize,
}

/// Returns the number of a thread in GDB. GDB's 0 means any thread.
pub fn tid(thread: usize) -> Tid {
    Tid::MIN.saturating_add(thread)
}

/// Returns the thread with this number in GDB.
pub fn thread_of(tid: Tid) -> usize {
    tid.get() - 1
}

impl Control {
    /// Takes control of a machine with its enabled threads.
    pub fn new(machine: Machine, info: Option<ProgramInfo>) -> Self {
        let mut threads: Vec<usize> = (0..machine.threads()).filter(|&n| machine.is_enabled(n)).collect();
        if threads.is_empty() {
            threads.push(0);
        }
        let count = machine.threads();
        Self {
            machine,
            info,
            threads,
            actions: vec![Action::Continue; count],
            set: vec![false; count],
            resting: vec![false; count],
            breakpoints: BTreeSet::new(),
            watches: Vec::new(),
            turn: 0,
            left: QUANTUM,
            stopped: vec![None; count],
            console: 0,
        }
    }

    /// Returns the enabled threads.
    pub fn threads(&self) -> &[usize] {
        &self.threads
    }

    /// Sets the next action of all threads, until the next request.
    pub fn set_all(&mut self, action: Action) {
        self.actions.fill(action);
        self.set.fill(false);
    }

    /// Sets the next action of a thread.
    pub fn set_action(&mut self, thread: usize, action: Action) {
        if let Some(slot) = self.actions.get_mut(thread) {
            *slot = action;
            self.set[thread] = true;
        }
    }

    /// Stops all threads without an action of their own.
    pub fn lock_others(&mut self) {
        for (action, set) in self.actions.iter_mut().zip(&self.set) {
            if !set {
                *action = Action::Stay;
            }
        }
    }

    /// Prepares to resume: the debugger may have changed the state of hanging threads.
    pub fn resume(&mut self) {
        self.resting.fill(false);
    }

    /// Adds or removes a breakpoint. Returns whether this changed anything.
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

    /// Removes a watchpoint. Returns whether it existed.
    pub fn unwatch(&mut self, watch: Watch) -> bool {
        let place = self.watches.iter().position(|w| *w == watch);
        place.map(|index| self.watches.swap_remove(index)).is_some()
    }

    /// Returns the program's output since the last call.
    pub fn new_output(&mut self) -> &[u8] {
        let output = self.machine.console_output();
        let start = self.console.min(output.len());
        self.console = output.len();
        &output[start..]
    }

    fn is_able(&self, thread: usize) -> bool {
        self.actions[thread] != Action::Stay && !self.resting[thread] && !self.machine.thread(thread).is_waiting()
    }

    /// Returns the next thread: one that steps, else the one whose turn it is.
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

    /// Executes one instruction of one thread. Returns a reason if the threads must stop.
    pub fn advance(&mut self) -> Option<Reason> {
        let Some(thread) = self.next() else {
            return Some(self.nobody());
        };
        let pc = self.machine.thread(thread).pc();
        let action = self.actions[thread];
        if action == Action::Continue && self.breakpoints.contains(&pc) && self.stopped[thread] != Some(pc) {
            self.stopped[thread] = Some(pc);
            return Some(Reason::SwBreak(tid(thread)));
        }
        self.stopped[thread] = None;
        let signal = |signal| {
            Some(Reason::SignalWithThread {
                tid: tid(thread),
                signal,
            })
        };
        let step = match self.machine.step(thread) {
            Ok(step) => step,
            Err(Stop::MemoryFull { .. } | Stop::ReadOnly { .. }) => return signal(Signal::SIGSEGV),
            // `monitor findings` shows the erratum.
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
            // The thread is after the `debugtrap`, and resumes on request.
            Progress::Ended(Status::TRAPPED) if self.is_debugtrap(thread, step.word) => {
                self.machine
                    .thread_mut(thread)
                    .set_pc(pc.wrapping_add(INSTRUCTION_SIZE));
                return signal(Signal::SIGTRAP);
            }
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

    /// Returns whether a thread's jump to itself is that of a `debugtrap`: a jump without a trap
    /// code.
    fn is_debugtrap(&self, thread: usize, word: u32) -> bool {
        let is_branch = npu_mc::decode(word).is_ok_and(|inst| inst.opcode == Opcode::BNEZ);
        is_branch && self.machine.thread(thread).scalar(SReg::TR) == 0
    }

    /// Returns the stop reason if no thread can run: all have ended, or the rest waits forever.
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

#[cfg(test)]
mod tests {
    use super::*;
    use npu_link::{Placement, link};
    use npu_mc::asm::{Options, assemble};
    use npu_sim::Config;

    /// Returns a controlled machine with four threads at the start of a program.
    fn control(source: &str) -> Control {
        let object = assemble(source, &Options::default()).unwrap_or_else(|f| panic!("{f:#?}"));
        let image = link(&object, &Placement::default()).unwrap().image;
        let mut machine = Machine::new(Config::default());
        for segment in image.segments {
            machine.memory_mut().write(segment.address, &segment.bytes).unwrap();
        }
        machine.enable(0, 0b1111);
        Control::new(machine, None)
    }

    fn run(control: &mut Control) -> Reason {
        control.resume();
        (0..10_000).find_map(|_| control.advance()).expect("it stops")
    }

    #[test]
    fn a_debugtrap_is_gone_on_from() {
        let mut control = control(&format!(
            "movei s5, 1; movei tr, 0; movei s0, 3; movei s1, 11; write_cr s0, s1; bnez s0, .; movei s0, 1; write_cr s0, s1; movei s5, 2\n{END}"
        ));
        control.set_all(Action::Stay);
        control.set_action(1, Action::Continue);
        for (stop, value) in [(true, 1), (false, 2)] {
            let reason = run(&mut control);
            let expected = if stop { Signal::SIGTRAP } else { Signal::SIGSTOP };
            assert_eq!(
                reason,
                Reason::SignalWithThread {
                    tid: tid(if stop { 1 } else { 0 }),
                    signal: expected
                }
            );
            assert_eq!(control.machine.thread(1).scalar(SReg::S5), value);
        }
    }

    const END: &str = "movei s0, 2; movei s1, 11; write_cr s0, s1; jmp .\n";

    #[test]
    fn threads_meet_at_a_barrier_and_end() {
        let mut control = control(&format!(
            "movei s0, 5; movei s1, 3\nbarrier s0, s1\nafter: addi s2, s2, 1\n{END}"
        ));
        control.set_all(Action::Continue);
        assert_eq!(run(&mut control), Reason::Exited(0));
        assert!((0..4).all(|t| control.machine.thread(t).scalar(SReg::S2) == 1));
        assert_eq!(control.machine.thread(4).instructions(), 0, "not enabled");
    }

    #[test]
    fn a_barrier_that_nobody_opens_stops_all() {
        let mut control = control(&format!("movei s0, 5; movei s1, 6\nbarrier s0, s1\n{END}"));
        control.set_all(Action::Continue);
        let stop = Reason::SignalWithThread {
            tid: tid(0),
            signal: Signal::SIGSTOP,
        };
        assert_eq!(run(&mut control), stop);
        assert!((0..4).all(|t| control.machine.thread(t).is_waiting()));
    }

    #[test]
    fn every_thread_stops_at_a_breakpoint_once_a_pass() {
        let mut control = control(&format!("nop\nhere: nop\n{END}"));
        control.set_all(Action::Continue);
        control.breakpoint(4, true);
        let stops: Vec<Reason> = (0..5).map(|_| run(&mut control)).collect();
        let expected: Vec<Reason> = (0..4).map(|t| Reason::SwBreak(tid(t))).collect();
        assert_eq!(stops[..4], expected);
        assert_eq!(stops[4], Reason::Exited(0));
    }

    #[test]
    fn one_thread_steps_alone_if_the_others_are_locked() {
        let mut control = control(&format!("nop; nop; nop\n{END}"));
        for _ in 0..2 {
            control.set_all(Action::Continue);
            control.set_action(2, Action::Step);
            control.lock_others();
            let stop = Reason::SignalWithThread {
                tid: tid(2),
                signal: Signal::SIGTRAP,
            };
            assert_eq!(run(&mut control), stop);
        }
        let counts: Vec<u64> = (0..4).map(|t| control.machine.thread(t).instructions()).collect();
        assert_eq!(counts, [0, 0, 2, 0]);
    }

    #[test]
    fn watched_bytes_are_those_an_access_touches() {
        let watch = Watch {
            address: 0x100,
            len: 4,
            kind: WatchKind::Write,
        };
        assert_eq!(watch.hit(0xC0, 64, true), None);
        assert_eq!(watch.hit(0xC1, 64, true), Some(0x100));
        assert_eq!(watch.hit(0x103, 1, true), Some(0x103));
        assert_eq!(watch.hit(0x104, 4, true), None);
        assert_eq!(watch.hit(0x100, 4, false), None);
        let last = Watch {
            address: u32::MAX,
            len: 1,
            kind: WatchKind::ReadWrite,
        };
        assert_eq!(last.hit(u32::MAX - 3, 4, false), Some(u32::MAX));
    }
}
