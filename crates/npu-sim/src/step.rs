//! One instruction of one thread, for those who decide themselves which thread goes next.
//!
//! [`Machine::step`] is what a timing model, a debugger or a scheduler drives. It executes by the definition alone, allocates
//! nothing, and returns what happened as a value.

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

/// What came of one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Address of the instruction.
    pub pc: u32,
    /// The word at that address.
    pub word: u32,
    /// The word taken apart as the hardware does it.
    pub inst: RawInst,
    /// Where the thread is now.
    pub next_pc: u32,
    /// How it goes on.
    pub progress: Progress,
    /// What the instruction changed.
    pub effect: Effect,
}

impl Step {
    /// Whether it was a taken branch.
    pub fn taken(&self) -> bool {
        matches!(self.progress, Progress::Taken | Progress::Ended(_))
            || matches!(self.progress, Progress::Hang(HangReason::SelfJump))
    }
}

/// How a thread goes on after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// At the next instruction.
    Next,
    /// At the target of a taken branch.
    Taken,
    /// At the trap vector: the access was misaligned. It has been performed all the same.
    Trap(TrapReason),
    /// It stands at a barrier ([`Thread::is_waiting`]) until another thread's step opens it. Its PC is after the barrier.
    Waits,
    /// The barrier opened with this arrival: every thread that waits with the same full id is ready again.
    Opens,
    /// It set status 2 or 3 and jumps to itself. It may be stepped again and only jumps again.
    Ended(Status),
    /// It never goes on. Unless it jumps to itself ([`HangReason::SelfJump`]) the instruction was not executed and the PC is
    /// still at it; stepping again gives the same.
    Hang(HangReason),
}

impl Machine {
    /// Lets a thread hang where it is.
    pub(crate) fn hang(&mut self, number: usize, reason: HangReason) {
        let thread = &mut self.threads[number];
        thread.rest = Some(Rest::Hung {
            pc: thread.pc(),
            reason,
        });
    }

    /// The address of the instruction that thread `number` executes next, and that instruction; numbers wrap.
    pub fn next_instruction(&self, number: usize) -> (u32, RawInst) {
        let pc = self.thread(number).pc;
        (pc, npu_mc::split(self.word_at(pc)))
    }

    /// The word that is fetched at `pc`, whose low bits do not count.
    #[inline]
    pub(crate) fn word_at(&self, pc: u32) -> u32 {
        u32::from_le_bytes(self.memory.load(pc))
    }

    /// Executes one instruction of thread `number`, counted over all cores, wherever it is: stop addresses and the enable
    /// mask do not count here.
    ///
    /// # Errors
    ///
    /// - [`Stop::NoSuchThread`];
    /// - [`Stop::Hang`] with [`HangReason::Barrier`] for a thread that waits at a barrier: nothing was executed;
    /// - [`Stop::MemoryFull`], [`Stop::ReadOnly`]: the instruction was not executed;
    /// - [`Stop::Erratum`]: it was, and the machine is strict.
    pub fn step(&mut self, number: usize) -> Result<Step, Stop> {
        match self.threads.get(number) {
            None => Err(Stop::NoSuchThread),
            Some(thread) if thread.waiting.is_some() => Err(self.waits(number)),
            Some(_) => self.execute(number),
        }
    }

    /// The barrier that thread `number` stands at; numbers wrap.
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

    /// Why a run of a waiting thread alone stops.
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

    /// Executes the instruction under the PC by its definition. The thread exists and does not wait.
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
            findings: &mut self.findings,
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
                if self.barriers.arrive(id, others) {
                    for thread in &mut self.threads {
                        if thread.waiting.is_some_and(|(waits, _)| waits == id) {
                            thread.waiting = None;
                        }
                    }
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
                // A call through `ra` changes its own target; every other jump to itself is for ever.
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

    /// Sets the clock of a core, which control registers 4 and 5 read, for a timing model: by itself it counts the
    /// instructions of the core. Numbers of cores wrap.
    pub fn set_cycles(&mut self, core: usize, cycles: u64) {
        let count = self.cores.len();
        self.cores[core % count].clock = cycles;
    }

    /// Sets control registers 16, 7 and 8 of a core, for a timing model: kernel cycles, misses of the data cache and of the
    /// instruction cache. Numbers of cores wrap.
    pub fn set_counters(&mut self, core: usize, kernel_cycles: u64, data_misses: u32, instruction_misses: u32) {
        let count = self.cores.len();
        let core = &mut self.cores[core % count];
        core.kernel_clock = kernel_cycles;
        core.data_misses = data_misses;
        core.instruction_misses = instruction_misses;
    }
}

impl Env<'_> {
    /// What the watched registers mean for an instruction about to execute.
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
                format!("the upper half of a vector compare's result, which nothing drives, is used through {register}")
            });
        }
        Ok(())
    }
}
