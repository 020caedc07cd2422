//! Single steps, for callers that schedule the threads themselves.
//!
//! Timing models, debuggers and schedulers drive [`Machine::step`]. It uses the definition alone,
//! allocates nothing, and returns the outcome as a value.

use crate::barrier::Waiting;
use crate::exec::{Effect, Env, Flow, Space};
use crate::findings::Hazard;
use crate::late::{self, After};
use crate::machine::{Machine, Stop};
use crate::operands::Operands;
use crate::rest::{HangReason, Rest, Status};
use crate::thread::Thread;
use npu_mc::SReg;
use npu_mc::machine::{THREADS_PER_CORE, TrapReason};
use npu_mc::raw::RawInst;

/// The outcome of one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The address of the instruction.
    pub pc: u32,
    /// The instruction word.
    pub word: u32,
    /// The word, decoded as in the hardware.
    pub inst: RawInst,
    /// The PC of the thread after the instruction.
    pub next_pc: u32,
    /// How the thread continues.
    pub progress: Progress,
    /// The effects of the instruction.
    pub effect: Effect,
}

impl Step {
    /// Returns whether the instruction was a taken branch.
    pub fn taken(&self) -> bool {
        matches!(self.progress, Progress::Taken | Progress::Ended(_))
            || matches!(self.progress, Progress::Hang(HangReason::SelfJump))
    }
}

/// How a thread continues after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// At the next instruction.
    Next,
    /// At the target of a taken branch.
    Taken,
    /// At the trap vector: the access was misaligned, but was performed.
    Trap(TrapReason),
    /// The thread waits at a barrier ([`Thread::is_waiting`]) until a step of another thread opens
    /// it. Its PC is after the barrier.
    Waits,
    /// This arrival opened the barrier: every thread that waits with the same full id is ready
    /// again.
    Opens,
    /// The thread set status 2 or 3 and jumps to itself. Further steps only repeat the jump.
    Ended(Status),
    /// The thread never continues. Except for [`HangReason::SelfJump`], the instruction was not
    /// executed and the PC did not change; another step has the same outcome.
    Hang(HangReason),
}

impl Machine {
    /// Marks a thread as hung at its current PC.
    pub(crate) fn hang(&mut self, number: usize, reason: HangReason) {
        let thread = &mut self.threads[number];
        thread.rest = Some(Rest::Hung {
            pc: thread.pc(),
            reason,
        });
    }

    /// Returns the address of the next instruction of thread `number`, and the instruction; numbers
    /// wrap.
    pub fn next_instruction(&self, number: usize) -> (u32, RawInst) {
        let pc = self.thread(number).pc;
        (pc, npu_mc::split(self.word_at(pc)))
    }

    /// Fetches the word at `pc`; the low bits of the address are ignored.
    #[inline]
    pub(crate) fn word_at(&self, pc: u32) -> u32 {
        u32::from_le_bytes(self.memory.load(pc))
    }

    /// Executes one instruction of thread `number`, counted over all cores, regardless of stop
    /// addresses and the enable mask.
    ///
    /// # Errors
    ///
    /// - [`Stop::NoSuchThread`];
    /// - [`Stop::Hang`] with [`HangReason::Barrier`] if the thread waits at a barrier: nothing was
    ///   executed;
    /// - [`Stop::MemoryFull`], [`Stop::ReadOnly`]: the instruction was not executed;
    /// - [`Stop::Erratum`] in a strict machine: the instruction was executed.
    pub fn step(&mut self, number: usize) -> Result<Step, Stop> {
        match self.threads.get(number) {
            None => Err(Stop::NoSuchThread),
            Some(thread) if thread.waiting.is_some() => Err(self.waits(number)),
            Some(_) => self.execute(number),
        }
    }

    /// Returns the barrier at which thread `number` waits; numbers wrap.
    pub fn waiting(&self, number: usize) -> Option<Waiting> {
        let thread = number % self.threads.len();
        let (id, pc) = self.threads[thread].waiting?;
        let (arrived, expected) = self.barriers.account(id);
        Some(Waiting {
            thread,
            id,
            pc,
            arrived,
            expected,
        })
    }

    /// Returns the reason why a run of a waiting thread alone stops.
    pub(crate) fn waits(&self, number: usize) -> Stop {
        match self.waiting(number) {
            Some(waiting) => Stop::Hang {
                pc: waiting.pc,
                reason: HangReason::Barrier {
                    id: waiting.id,
                    missing: waiting.missing(),
                },
            },
            None => Stop::NoSuchThread,
        }
    }

    /// Executes the instruction at the PC by its definition. The thread has to exist and must not
    /// wait.
    pub(crate) fn execute(&mut self, number: usize) -> Result<Step, Stop> {
        let core = number / THREADS_PER_CORE as usize;
        let thread = &mut self.threads[number];
        thread.rest = None;
        let pc = thread.pc;
        let word = u32::from_le_bytes(self.memory.load(pc));
        let inst = npu_mc::split(word);
        let memory = &self.memory;
        let before = late::before(thread, pc, &inst, |address| {
            npu_mc::split(memory.read_u32(address & !3))
        });
        let mut env = Env {
            thread,
            id: number as u32 % THREADS_PER_CORE,
            number: number as u32,
            shared: &mut self.cores[core],
            console: &mut self.console,
            memory: &mut self.memory,
            caches: self.caches.as_mut().map(|caches| (caches, core)),
            ports: self.ports.as_deref_mut().map(|ports| (ports, core as u8)),
            findings: &mut self.findings,
            sharing: self.sharing.as_deref_mut(),
            pc,
            effect: Effect::default(),
        };
        let watched = if env.thread.watch.active() {
            env.watch(&inst)
        } else {
            Ok(())
        };
        let flow = match watched {
            Ok(()) => env.execute(&inst),
            Err(reason) => Flow::Hang(reason),
        };
        let effect = env.effect;
        self.met_others |=
            matches!(flow, Flow::Arrive { .. }) || effect.access.is_some_and(|access| access.space == Space::Io);
        let thread = &mut self.threads[number];
        if !matches!(flow, Flow::Next | Flow::Jump(_)) {
            late::after(thread, &inst, before, After::Settled);
        } else if matches!(flow, Flow::Next) {
            late::after(thread, &inst, before, After::Next);
        } else {
            let memory = &self.memory;
            let word = |address: u32| npu_mc::split(memory.read_u32(address & !3));
            late::after(thread, &inst, before, After::Taken(late::producer(pc, &word)));
        }
        let progress = match flow {
            Flow::Hang(reason) => {
                thread.rest = Some(Rest::Hung { pc, reason });
                return Ok(Step {
                    pc,
                    word,
                    inst,
                    next_pc: pc,
                    progress: Progress::Hang(reason),
                    effect: Effect::default(),
                });
            }
            Flow::ReadOnly(address) => return Err(Stop::ReadOnly { pc, address }),
            Flow::MemoryFull(full) => {
                return Err(Stop::MemoryFull {
                    pc,
                    address: full.address,
                });
            }
            Flow::Next => {
                thread.pc = pc.wrapping_add(4);
                thread.watch.note_executed(pc, &inst);
                Progress::Next
            }
            Flow::Arrive { id, others } => {
                thread.pc = pc.wrapping_add(4);
                thread.waiting = Some((id, pc));
                if !self.barriers.has_master(id) {
                    let hazard = Hazard::BarrierWithoutMaster;
                    self.findings
                        .report(number as u32, pc, hazard, || self.barriers.without_master(number, id));
                }
                if self.barriers.arrive(id, others) {
                    self.release(id);
                    Progress::Opens
                } else {
                    Progress::Waits
                }
            }
            Flow::Trap => {
                thread.pc = npu_mc::machine::TRAP_VECTOR;
                thread.trap_pc = Some(pc);
                thread.watch.forget_long();
                Progress::Trap(thread.trap)
            }
            Flow::Jump(target) => {
                let memory = &self.memory;
                thread
                    .watch
                    .note_taken(pc, |address| npu_mc::split(memory.read_u32(address & !3)));
                thread.pc = target;
                if target != pc {
                    thread.last_branch = Some(pc);
                }
                // A call through `ra` changes its own target; any other jump to itself is endless.
                let repeats = !matches!(inst, RawInst::Jba(_)) || effect.scalar.is_none();
                if target == pc && repeats {
                    let (rest, progress) = match thread.status {
                        status @ (Status::ENDED | Status::TRAPPED) => (Rest::Ended(status), Progress::Ended(status)),
                        _ => {
                            let reason = HangReason::SelfJump;
                            (Rest::Hung { pc, reason }, Progress::Hang(reason))
                        }
                    };
                    thread.rest = Some(rest);
                    progress
                } else {
                    Progress::Taken
                }
            }
        };
        let next_pc = self.threads[number].pc;
        self.account(number, 1);
        if self.memory.code_written() {
            self.code.update(&mut self.memory);
        }
        if let Some(finding) = self.findings.pending.take() {
            return Err(Stop::Erratum(finding));
        }
        Ok(Step {
            pc,
            word,
            inst,
            next_pc,
            progress,
            effect,
        })
    }

    /// Makes the threads that wait at barrier `id` ready.
    fn release(&mut self, id: u32) {
        let waits = |thread: &Thread| thread.waiting.is_some_and(|(waits, _)| waits == id);
        if let Some(sharing) = &mut self.sharing {
            let numbers = 0..self.threads.len();
            let threads: Vec<usize> = numbers.filter(|&number| waits(&self.threads[number])).collect();
            sharing.meet(&threads);
        }
        for thread in &mut self.threads {
            if waits(thread) {
                thread.waiting = None;
            }
        }
    }

    /// Sets the clock of a core, which control registers 4 and 5 return, for a timing model.
    /// Without one the clock counts the instructions of the core. Core numbers wrap.
    pub fn set_cycles(&mut self, core: usize, cycles: u64) {
        let count = self.cores.len();
        self.cores[core % count].clock = cycles;
    }

    /// Sets control registers 16, 7 and 8 of a core, for a timing model: kernel cycles, misses of
    /// the data cache and of the instruction cache. Core numbers wrap.
    pub fn set_counters(&mut self, core: usize, kernel_cycles: u64, data_misses: u32, instruction_misses: u32) {
        let count = self.cores.len();
        let core = &mut self.cores[core % count];
        core.kernel_clock = kernel_cycles;
        core.data_misses = data_misses;
        core.instruction_misses = instruction_misses;
    }
}

impl Env<'_> {
    /// Checks the tracked registers before an instruction executes.
    fn watch(&mut self, inst: &RawInst) -> Result<(), HangReason> {
        let operands = Operands::of(inst);
        if let Some(register) = self.thread.watch.stuck_use(&operands) {
            return Err(HangReason::BusyRegister { register });
        }
        if let Some(detail) = self.thread.watch.lost_use(&operands) {
            self.report(Hazard::LostResult, || detail);
        }
        let pc = self.pc;
        let Thread { watch, scalars, .. } = &mut *self.thread;
        let used = watch.follow_undriven(inst, |register| match register {
            SReg::PC => pc,
            register => scalars[usize::from(register.number())],
        });
        if let Some(register) = used {
            self.report(Hazard::UndrivenBits, || {
                format!("{register} has undriven bits: the upper half of the result of a vector compare")
            });
        }
        Ok(())
    }
}
