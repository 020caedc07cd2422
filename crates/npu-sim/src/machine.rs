//! A core with its memory: what an embedder holds.

use crate::exec::{Effect, Env, Flow, HangReason};
use crate::fast::{self, Exit, Watched};
use crate::findings::{Finding, Findings, Hazard};
use crate::image::Image;
use crate::memory::{Memory, MemoryFull};
use crate::operands::{Operands, scalar_name};
use crate::predecode::CodeCache;
use crate::shared::Shared;
use crate::thread::{Status, Thread};
use crate::trace::TraceEvent;
use npu_mc::machine::ControlRegister;
use npu_mc::raw::RawInst;
use std::collections::BTreeSet;

/// Hardware threads of a core.
pub const THREADS: usize = npu_mc::machine::THREADS_PER_CORE as usize;

/// How the machine is built and how strict the simulator is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Stop at the first erratum whose outcome depends on timing, instead of only collecting it.
    pub strict: bool,
    /// Bytes of main memory that a program may write before it is stopped.
    pub memory_limit: u64,
    /// Tile id, control register 0.
    pub tile: u32,
    /// Core id, control register 1.
    pub core: u32,
}

impl Default for Config {
    /// Not strict, 1 GiB, tile 0, core 0.
    fn default() -> Config {
        Config {
            strict: false,
            memory_limit: 1 << 30,
            tile: 0,
            core: 0,
        }
    }
}

/// Why a run stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The program set status 2 or 3 and jumps to itself.
    Ended {
        /// The status.
        status: Status,
    },
    /// The next instruction is at a stop address; it was not executed.
    Breakpoint {
        /// The stop address.
        pc: u32,
    },
    /// The given number of instructions was executed.
    StepLimit,
    /// The hardware thread would never go on.
    Hang {
        /// Address of the instruction it hangs at.
        pc: u32,
        /// Why.
        reason: HangReason,
    },
    /// With [`Config::strict`]: an erratum whose outcome depends on timing. The instruction has been executed.
    Erratum(Finding),
    /// The program wrote more memory than [`Config::memory_limit`].
    MemoryFull {
        /// Address of the instruction.
        pc: u32,
        /// Address of the write.
        address: u32,
    },
    /// There is no hardware thread with that number.
    NoSuchThread,
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Stop::Ended { status } => write!(f, "ended with status {} ({status})", status.code()),
            Stop::Breakpoint { pc } => write!(f, "stop address {pc:#010x}"),
            Stop::StepLimit => f.write_str("step limit"),
            Stop::Hang { pc, reason } => write!(f, "hang at {pc:#010x}: {reason}"),
            Stop::Erratum(finding) => write!(
                f,
                "erratum at {:#010x}: {}: {}",
                finding.pc, finding.hazard, finding.detail
            ),
            Stop::MemoryFull { pc, address } => {
                write!(f, "memory limit at {pc:#010x}, with the write at {address:#010x}")
            }
            Stop::NoSuchThread => f.write_str("no such hardware thread"),
        }
    }
}

/// One core: hardware threads, scratchpad, control registers, console, and main memory.
pub struct Machine {
    threads: Vec<Thread>,
    shared: Shared,
    memory: Memory,
    code: CodeCache,
    findings: Findings,
    /// Where each thread last stopped at a stop address, with its instruction count then: the next run steps over it.
    stopped_at: [Option<(u32, u64)>; THREADS],
}

impl std::fmt::Debug for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machine")
            .field("threads", &self.threads)
            .field("memory", &self.memory)
            .finish_non_exhaustive()
    }
}

impl Machine {
    /// A machine with empty memory; all registers 0, all masks 0 (as after reset), all PCs 0.
    pub fn new(config: Config) -> Machine {
        Machine {
            threads: vec![Thread::new(); THREADS],
            shared: Shared::new(config.tile, config.core),
            memory: Memory::new(config.memory_limit),
            code: CodeCache::new(),
            findings: Findings::new(config.strict),
            stopped_at: [None; THREADS],
        }
    }

    /// Main memory.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Main memory, to be changed at any time between runs, code included.
    pub fn memory_mut(&mut self) -> &mut Memory {
        &mut self.memory
    }

    /// Copies an image into main memory.
    ///
    /// # Errors
    ///
    /// [`MemoryFull`] when it is larger than [`Config::memory_limit`].
    pub fn load(&mut self, image: &Image) -> Result<(), MemoryFull> {
        image.load(&mut self.memory)
    }

    /// A hardware thread; numbers wrap modulo [`THREADS`].
    pub fn thread(&self, number: usize) -> &Thread {
        &self.threads[number % THREADS]
    }

    /// A hardware thread, to be changed between runs; numbers wrap modulo [`THREADS`].
    pub fn thread_mut(&mut self, number: usize) -> &mut Thread {
        &mut self.threads[number % THREADS]
    }

    /// The scratchpad of the core.
    pub fn scratchpad(&self) -> &[u8] {
        &self.shared.scratchpad
    }

    /// The scratchpad of the core, always [`SCRATCHPAD_SIZE`](crate::SCRATCHPAD_SIZE) bytes.
    pub fn scratchpad_mut(&mut self) -> &mut [u8] {
        &mut self.shared.scratchpad
    }

    /// Bytes written to the console so far.
    pub fn console_output(&self) -> &[u8] {
        &self.shared.console.output
    }

    /// Bytes for the console input, behind those not yet read.
    pub fn push_console_input(&mut self, bytes: &[u8]) {
        self.shared.console.input.extend(bytes);
    }

    /// A control register as thread `number` reads it.
    pub fn control_register(&self, number: usize, register: ControlRegister) -> u32 {
        let number = number % THREADS;
        let thread = &self.threads[number];
        let value = self
            .shared
            .read_control(register.number().into(), number as u32, thread);
        value.unwrap_or(0)
    }

    /// A control-register write by the host, with the side effect on CPU control (`microarch.md` 7.1).
    pub fn set_control_register(&mut self, register: ControlRegister, value: u32) {
        self.shared.host_write_control(register, value);
    }

    /// Errata whose outcome depends on timing that the program met so far, one entry an address and kind.
    pub fn findings(&self) -> &[Finding] {
        self.findings.list()
    }

    /// Forgets the findings.
    pub fn clear_findings(&mut self) {
        self.findings.clear();
    }

    /// Makes `address` a stop address for all threads; gives whether it was one.
    pub fn add_breakpoint(&mut self, address: u32) -> bool {
        self.code.set_breakpoint(address, true, &self.memory)
    }

    /// Undoes [`Machine::add_breakpoint`]; gives whether it was a stop address.
    pub fn remove_breakpoint(&mut self, address: u32) -> bool {
        self.code.set_breakpoint(address, false, &self.memory)
    }

    /// All stop addresses.
    pub fn breakpoints(&self) -> &BTreeSet<u32> {
        self.code.breakpoints()
    }

    /// Runs thread `number` for at most `limit` instructions.
    ///
    /// A stop address under the PC stops the run before anything is executed, except directly after a stop at that same
    /// address: then the run goes on from it. The state of the thread is complete whatever the reason to stop.
    pub fn run(&mut self, number: usize, limit: u64) -> Stop {
        if number >= THREADS {
            return Stop::NoSuchThread;
        }
        self.shared.enabled |= 1 << number;
        let mut left = limit;
        let mut step_over =
            self.stopped_at[number].take() == Some((self.threads[number].pc, self.threads[number].instructions));
        loop {
            self.code.update(&mut self.memory);
            if left == 0 {
                return Stop::StepLimit;
            }
            let exit = if step_over {
                Exit::Slow
            } else {
                match self.run_fast(number, &mut left) {
                    Ok(exit) => exit,
                    Err(full) => {
                        return Stop::MemoryFull {
                            pc: self.threads[number].pc,
                            address: full.address,
                        };
                    }
                }
            };
            step_over = false;
            match exit {
                Exit::Budget | Exit::NeedPage => {}
                Exit::Break => return self.stopped(number),
                Exit::Slow => {
                    left -= 1;
                    if let Err(stop) = self.step(number) {
                        return stop;
                    }
                }
            }
        }
    }

    /// Like [`Machine::run`], with a call of `trace` after every instruction. Much slower.
    pub fn run_traced(&mut self, number: usize, limit: u64, trace: &mut dyn FnMut(&TraceEvent<'_>)) -> Stop {
        if number >= THREADS {
            return Stop::NoSuchThread;
        }
        self.shared.enabled |= 1 << number;
        let mut step_over =
            self.stopped_at[number].take() == Some((self.threads[number].pc, self.threads[number].instructions));
        for _ in 0..limit {
            let pc = self.threads[number].pc;
            let mut here = self.code.breakpoints().range(pc & !3..=pc | 3);
            if !step_over && here.next().is_some() {
                return self.stopped(number);
            }
            step_over = false;
            let word = self.memory.read_u32(pc & !3);
            let result = self.step(number);
            let (effect, stop) = match result {
                Ok(effect) => (effect, None),
                Err(stop) => (Effect::default(), Some(stop)),
            };
            trace(&TraceEvent {
                thread: number,
                pc,
                word,
                effect,
                state: &self.threads[number],
            });
            if let Some(stop) = stop {
                return stop;
            }
        }
        Stop::StepLimit
    }

    fn stopped(&mut self, number: usize) -> Stop {
        let thread = &self.threads[number];
        self.stopped_at[number] = Some((thread.pc, thread.instructions));
        Stop::Breakpoint { pc: thread.pc }
    }

    /// Runs predecoded operations until one needs something else.
    fn run_fast(&mut self, number: usize, left: &mut u64) -> Result<Exit, MemoryFull> {
        let thread = &mut self.threads[number];
        let index = self.code.prepare(thread.pc, &mut self.memory)?;
        let Some(page) = self.code.page(index) else {
            // `prepare` has just made it.
            return Ok(Exit::Slow);
        };
        let budget = (*left).min(thread.watch.horizon());
        let mut rest = budget;
        let exit = if thread.watch.active() {
            if thread.watch.mask_matters() {
                // Masked operations read `rm` without naming it.
                return Ok(Exit::Slow);
            }
            let watched = Watched {
                registers: thread.watch.scalars() | thread.watch.vectors(),
                memory: thread.watch.memory(),
            };
            fast::run::<true>(
                &self.code,
                page,
                thread,
                &mut self.shared,
                &mut self.memory,
                watched,
                &mut rest,
            )
        } else {
            fast::run::<false>(
                &self.code,
                page,
                thread,
                &mut self.shared,
                &mut self.memory,
                Watched::default(),
                &mut rest,
            )
        };
        let executed = budget - rest;
        *left -= executed;
        self.account(number, executed);
        Ok(exit)
    }

    /// Advances the clocks.
    fn account(&mut self, number: usize, executed: u64) {
        let thread = &mut self.threads[number];
        thread.instructions += executed;
        thread.watch.advance(executed);
        self.shared.clock += executed;
        if matches!(thread.status, Status::RUNNING | Status::BARRIER) {
            self.shared.kernel_clock += executed;
        }
    }

    /// Executes the instruction under the PC by its definition.
    fn step(&mut self, number: usize) -> Result<Effect, Stop> {
        let thread = &mut self.threads[number];
        let pc = thread.pc;
        let word = self.memory.read_u32(pc & !3);
        let inst = npu_mc::split(word);
        let id = number as u32;
        let mut env = Env {
            thread,
            id,
            shared: &mut self.shared,
            memory: &mut self.memory,
            findings: &mut self.findings,
            pc,
            effect: Effect::default(),
        };
        if env.thread.watch.active() {
            env.watch(&inst).map_err(|reason| Stop::Hang { pc, reason })?;
        }
        let flow = env.execute(&inst);
        let effect = env.effect;
        let thread = &mut self.threads[number];
        let mut ended = None;
        match flow {
            Flow::Hang(reason) => return Err(Stop::Hang { pc, reason }),
            Flow::MemoryFull(full) => {
                return Err(Stop::MemoryFull {
                    pc,
                    address: full.address,
                });
            }
            Flow::Next => {
                thread.pc = pc.wrapping_add(4);
                thread.watch.note_executed(pc, &inst);
            }
            Flow::Trap => {
                thread.pc = npu_mc::machine::TRAP_VECTOR;
                thread.trap_pc = Some(pc);
                thread.watch.forget_long();
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
                let repeats = !matches!(inst, RawInst::Jba { .. }) || effect.scalar.is_none();
                if target == pc && repeats {
                    ended = Some(match thread.status {
                        status @ (Status::ENDED | Status::TRAPPED) => Stop::Ended { status },
                        _ => Stop::Hang {
                            pc,
                            reason: HangReason::SelfJump,
                        },
                    });
                }
            }
        }
        self.account(number, 1);
        if self.memory.code_written() {
            self.code.update(&mut self.memory);
        }
        if let Some(finding) = self.findings.pending.take() {
            return Err(Stop::Erratum(finding));
        }
        match ended {
            Some(stop) => Err(stop),
            None => Ok(effect),
        }
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
        let used = watch.follow_undriven(inst, |number| {
            if number == crate::thread::PC {
                pc
            } else {
                scalars[usize::from(number)]
            }
        });
        if let Some(register) = used {
            self.report(Hazard::UndrivenBits, || {
                format!(
                    "the upper half of a vector compare's result, which nothing drives, is used through {}",
                    scalar_name(register)
                )
            });
        }
        Ok(())
    }
}
