//! Calls of one function by several hardware threads at once.
//!
//! Every thread makes a call on a stack of its own; what tells them apart is the number that each reads from the machine
//! (control register 2, and 0 for the tile of its core), and the arguments if they are given different ones. They share memory, meet at
//! barriers, and take turns by a [`Schedule`], so that a call repeats exactly. A thread that returns is out; the call is over when all are.

use super::call::{Call, call_info};
use super::error::{RunError, StuckThread};
use super::layout::RETURN_TO;
use super::npu_module::NpuModule;
use super::timed::{Timed, run_threads};
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::Signature;
use cranelift_module::FuncId;
use cranelift_naplespu::abi::sig::SigInfo;
use npu_sim::{Deadlock, Halt, Schedule, Stop, THREADS};

/// One of the threads of a call.
#[derive(Debug)]
struct Member {
    /// Number of the thread.
    number: usize,
    /// What it had executed before.
    before: u64,
    /// Why it stopped; `None` if it runs or waits at a barrier.
    stop: Option<Stop>,
}

/// How a call is run.
pub(super) struct RunOptions {
    /// How the threads take turns without the timing model.
    pub schedule: Schedule,
    /// The most instructions, by all threads together.
    pub limit: u64,
    /// The timing model.
    pub timed: Option<Timed>,
}

/// A call by several threads that is under way.
pub(super) struct Run {
    signature: Signature,
    info: SigInfo,
    members: Vec<Member>,
    options: RunOptions,
    /// Instructions that are left.
    left: u64,
    deadlock: Option<Deadlock>,
}

impl Run {
    /// The numbers of the threads.
    pub(super) fn numbers(&self) -> impl Iterator<Item = usize> {
        self.members.iter().map(|member| member.number)
    }

    /// The timing model, if the call has one.
    pub(super) fn timed(&self) -> Option<&Timed> {
        self.options.timed.as_ref()
    }
}

impl NpuModule {
    /// Calls a function on hardware threads 0 to `threads` - 1, all with the same arguments, and gives the results of each. Like
    /// [`NpuModule::call`] otherwise, which is this for one thread.
    ///
    /// Numbers go on from core to core, so a module of one core takes up to [`THREADS`]; see
    /// [`Config::cores`](npu_sim::Config::cores). Two stacks lie 256 bytes under 2 MiB apart, so that threads at the same depth use different sets of the cache; below that is
    /// the stack of the next thread.
    ///
    /// # Errors
    ///
    /// See [`RunError`]. What went wrong in one thread is an error of the call that names the thread: the first trap or wrong
    /// return by number, and only if there is none, that threads wait for each other for ever. The others have run on
    /// as far as they could.
    pub fn call_threads(
        &mut self,
        func: FuncId,
        args: &[DataValue],
        threads: usize,
    ) -> Result<Vec<Vec<DataValue>>, RunError> {
        let available = self.machine.threads();
        if threads == 0 || threads > available {
            return Err(RunError::Threads {
                asked: threads,
                available,
            });
        }
        if threads == 1 {
            return Ok(vec![self.call(func, args)?]);
        }
        let options = RunOptions {
            schedule: self.schedule.clone(),
            limit: self.step_limit,
            timed: self.timed.as_ref().map(Timed::again),
        };
        let mut run = self.begin(func, (0..threads).collect(), vec![args.to_vec(); threads], options)?;
        let over = self.advance(&mut run, u64::MAX);
        self.steps = self.executed(&run).map(|(_, instructions)| instructions).sum();
        let results = over.and_then(|_| self.finish(&run));
        if run.options.timed.is_some() {
            self.timed = run.options.timed;
        }
        results
    }

    /// Calls the function with this name on several threads.
    ///
    /// # Errors
    ///
    /// See [`NpuModule::call_threads`].
    pub fn call_threads_by_name(
        &mut self,
        name: &str,
        args: &[DataValue],
        threads: usize,
    ) -> Result<Vec<Vec<DataValue>>, RunError> {
        match self.function_by_name(name) {
            Some(func) => self.call_threads(func, args, threads),
            None => Err(RunError::NoSuchFunction(name.to_owned())),
        }
    }

    /// Sets how the threads of later calls take turns; each call starts with it anew.
    pub fn set_schedule(&mut self, schedule: Schedule) {
        self.schedule = schedule;
    }

    /// Makes threads of the machine ready to call a function, each with its arguments. The numbers rise.
    pub(super) fn begin(
        &mut self,
        func: FuncId,
        numbers: Vec<usize>,
        args: Vec<Vec<DataValue>>,
        mut options: RunOptions,
    ) -> Result<Run, RunError> {
        let (name, address, signature) = self.linked(func)?;
        let infos = args.iter().map(|args| call_info(&name, &signature, args));
        let Some(info) = infos.collect::<Result<Vec<_>, _>>()?.pop() else {
            return Err(RunError::Threads {
                asked: 0,
                available: self.machine.threads(),
            });
        };
        self.start_over()?;
        let mut members = Vec::with_capacity(numbers.len());
        for (&number, args) in numbers.iter().zip(&args) {
            Call::new(&mut self.machine, number, &info).set_up(&info, &signature, args, address)?;
            members.push(Member {
                number,
                before: self.machine.thread(number).instructions(),
                stop: None,
            });
        }
        if let Some(timed) = &mut options.timed {
            self.start_timing(timed);
        }
        Ok(Run {
            signature,
            info,
            members,
            left: options.limit,
            options,
            deadlock: None,
        })
    }

    /// Runs the threads until each has returned, stopped or come to wait for ever, for at most so many instructions or a few more. Gives
    /// whether they have; what became of them is for [`NpuModule::finish`].
    pub(super) fn advance(&mut self, run: &mut Run, instructions: u64) -> Result<bool, RunError> {
        let mut budget = instructions.min(run.left);
        loop {
            // Those that have returned are out.
            let mut masks = vec![0; self.machine.cores()];
            for member in run.members.iter().filter(|member| member.stop.is_none()) {
                if let Some(mask) = masks.get_mut(member.number / THREADS) {
                    *mask |= 1 << (member.number % THREADS);
                }
            }
            for (core, mask) in masks.into_iter().enumerate() {
                self.machine.enable(core, mask);
            }
            let before = self.total(run);
            let options = &mut run.options;
            let halt = run_threads(
                &mut self.machine,
                options.timed.as_mut(),
                self.watcher.as_mut(),
                &mut options.schedule,
                budget,
            );
            let executed = self.total(run) - before;
            budget = budget.saturating_sub(executed);
            run.left = run.left.saturating_sub(executed);
            match halt {
                Halt::Thread { thread, stop } => {
                    if self.answer(thread, &stop).map_err(|error| error.of_thread(thread))? {
                        continue;
                    }
                    let member = run.members.iter_mut().find(|member| member.number == thread);
                    let Some(member) = member else {
                        return Err(self.stopped(thread, &Stop::NoSuchThread).of_thread(thread));
                    };
                    member.stop = Some(stop);
                }
                Halt::Ended => {
                    self.note_ended(run);
                    return Ok(true);
                }
                Halt::Deadlock(deadlock) => {
                    self.note_ended(run);
                    for hung in &deadlock.hung {
                        if let Some(member) = run.members.iter_mut().find(|member| member.number == hung.thread) {
                            member.stop = Some(Stop::Hang {
                                pc: hung.pc,
                                reason: hung.reason,
                            });
                        }
                    }
                    run.deadlock = (!deadlock.waiting.is_empty()).then_some(deadlock);
                    return Ok(true);
                }
                Halt::Internal { core } => return Err(self.stopped(core * THREADS, &Stop::Internal { core })),
                Halt::StepLimit if run.left > 0 => return Ok(false),
                Halt::StepLimit => return Err(self.out_of_time(run, run.options.limit, &Stop::StepLimit)),
                Halt::CycleLimit => {
                    let limit = run.timed().and_then(Timed::limit).unwrap_or_default();
                    return Err(self.out_of_time(run, limit, &Stop::CycleLimit));
                }
            }
        }
    }

    /// A limit is reached: the first thread that is busy says where.
    fn out_of_time(&self, run: &mut Run, limit: u64, stop: &Stop) -> RunError {
        self.note_ended(run);
        let mut left = run.members.iter().filter(|member| member.stop.is_none());
        let first = left.clone().next();
        let busy = left.find(|member| !self.machine.thread(member.number).is_waiting());
        let number = busy.or(first).map_or(0, |member| member.number);
        self.over_limit(number, limit, stop).of_thread(number)
    }

    /// The results of each thread, if all came back.
    pub(super) fn finish(&mut self, run: &Run) -> Result<Vec<Vec<DataValue>>, RunError> {
        let pinned = cranelift_naplespu::abi::registers::pinned(self.isa.flags());
        let mut results = Vec::with_capacity(run.members.len());
        for member in &run.members {
            let number = member.number;
            match &member.stop {
                Some(Stop::Breakpoint { pc: RETURN_TO }) => {
                    let mut call = Call::new(&mut self.machine, number, &run.info);
                    let kept = call.check_preserved(run.info.popped, pinned);
                    kept.map_err(|error| error.of_thread(number))?;
                    results.push(call.results(&run.info, &run.signature));
                }
                Some(stop) => return Err(self.stopped(number, stop).of_thread(number)),
                // It waits; whether it is to blame is known when all have been looked at.
                None => {}
            }
        }
        match &run.deadlock {
            Some(deadlock) => Err(self.stuck(deadlock)),
            None => Ok(results),
        }
    }

    /// The instructions that each thread has executed, with its number.
    pub(super) fn executed(&self, run: &Run) -> impl Iterator<Item = (usize, u64)> {
        let count = |member: &Member| self.machine.thread(member.number).instructions() - member.before;
        run.members.iter().map(move |member| (member.number, count(member)))
    }

    fn total(&self, run: &Run) -> u64 {
        self.executed(run).map(|(_, instructions)| instructions).sum()
    }

    /// Notes the threads that have set their status and jump to themselves: nothing but a trap does so here.
    fn note_ended(&self, run: &mut Run) {
        for member in &mut run.members {
            if member.stop.is_none()
                && let Some(status) = self.machine.thread(member.number).ended()
            {
                member.stop = Some(Stop::Ended { status });
            }
        }
    }

    /// Who waits where.
    fn stuck(&self, deadlock: &Deadlock) -> RunError {
        let threads = deadlock.waiting.iter().map(|waiting| StuckThread {
            thread: waiting.thread,
            barrier: waiting.id,
            arrived: waiting.arrived,
            expected: waiting.expected,
            at: self.location(waiting.pc),
        });
        RunError::Deadlock(threads.collect())
    }
}
