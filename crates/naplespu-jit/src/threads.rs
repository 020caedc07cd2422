//! Calls of one function on several hardware threads at once.
//!
//! Every thread has its own stack. Threads differ in the number that they read from the machine
//! (control register 2; control register 0 for the tile of their core), and in their arguments if
//! the caller passes different ones. They share memory, synchronize at barriers, and take turns by
//! a [`Schedule`], so that a call is reproducible. The call ends when all threads have returned.

use super::call::{Call, call_info};
use super::error::{RunError, StuckThread};
use super::layout::RETURN_TO;
use super::npu_module::NpuModule;
use super::timed::{Timed, run_threads};
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::Signature;
use cranelift_module::FuncId;
use cranelift_naplespu::abi::sig::SigInfo;
use naplespu_object::front::Target;
use npu_sim::{Deadlock, Halt, Schedule, Stop, THREADS};
use std::collections::{BTreeMap, BTreeSet};

/// A thread of a call.
#[derive(Debug)]
struct Member {
    /// The number of the thread.
    number: usize,
    /// The number of instructions that the thread had executed before the call.
    before: u64,
    /// The reason why it stopped; `None` if it runs or waits at a barrier.
    stop: Option<Stop>,
}

/// The options of a call.
pub(super) struct RunOptions {
    /// The order of turns without the timing model.
    pub schedule: Schedule,
    /// The limit of instructions of all threads together.
    pub limit: u64,
    /// The timing model.
    pub timed: Option<Timed>,
}

/// A running call on several threads.
pub(super) struct Run {
    signature: Signature,
    info: SigInfo,
    members: Vec<Member>,
    options: RunOptions,
    /// The number of remaining instructions.
    left: u64,
    deadlock: Option<Deadlock>,
}

impl Run {
    /// Returns the numbers of the threads.
    pub(super) fn numbers(&self) -> impl Iterator<Item = usize> {
        self.members.iter().map(|member| member.number)
    }

    /// Returns the timing model, if the call has one.
    pub(super) fn timed(&self) -> Option<&Timed> {
        self.options.timed.as_ref()
    }
}

impl NpuModule {
    /// Calls a function on the hardware threads 0 to `threads` - 1, all with the same arguments,
    /// and returns the results of each. [`NpuModule::call`] is the same for one thread.
    ///
    /// Threads are numbered from core to core, so a module with one core has at most [`THREADS`];
    /// see [`Config::cores`](npu_sim::Config::cores). The stacks of adjacent threads are 256 bytes
    /// less than 2 MiB apart, so that threads at the same depth use different cache sets. A stack
    /// that grows further overlaps the next one.
    ///
    /// # Errors
    ///
    /// See [`RunError`]. An error in one thread is the error of the call and contains the thread:
    /// the trap or wrong return of the lowest thread number, or else a deadlock. The other threads
    /// ran on as far as they could.
    pub fn call_threads(
        &mut self,
        func: FuncId,
        args: &[DataValue],
        threads: usize,
    ) -> Result<Vec<Vec<DataValue>>, RunError> {
        let available = self.machine.threads();
        if threads > available {
            return Err(RunError::Threads {
                asked: threads,
                available,
            });
        }
        self.call_on(func, args, &Vec::from_iter(0..threads))
    }

    /// Calls a function like [`NpuModule::call_threads`], on the hardware threads with these
    /// numbers. The results are in the order of the numbers.
    ///
    /// # Errors
    ///
    /// See [`NpuModule::call_threads`].
    pub fn call_on(
        &mut self,
        func: FuncId,
        args: &[DataValue],
        threads: &[usize],
    ) -> Result<Vec<Vec<DataValue>>, RunError> {
        let available = self.machine.threads();
        let threads: Vec<usize> = BTreeSet::from_iter(threads.iter().copied()).into_iter().collect();
        let asked = threads.last().map_or(0, |&last| last.saturating_add(1));
        if asked == 0 || asked > available {
            return Err(RunError::Threads { asked, available });
        }
        if threads == [0] {
            return Ok(vec![self.call(func, args)?]);
        }
        let args = vec![args.to_vec(); threads.len()];
        self.call_each(func, threads.into_iter().zip(args).collect())
    }

    /// Calls a function on hardware threads, each with its own arguments. The results are in the
    /// order of the numbers.
    ///
    /// # Errors
    ///
    /// See [`NpuModule::call_threads`].
    pub fn call_each(
        &mut self,
        func: FuncId,
        threads: BTreeMap<usize, Vec<DataValue>>,
    ) -> Result<Vec<Vec<DataValue>>, RunError> {
        let available = self.machine.threads();
        let asked = threads.last_key_value().map_or(0, |(&last, _)| last.saturating_add(1));
        if asked == 0 || asked > available {
            return Err(RunError::Threads { asked, available });
        }
        let options = RunOptions {
            schedule: self.schedule.clone(),
            limit: self.step_limit,
            timed: self.timed.as_ref().map(Timed::again),
        };
        let (numbers, args) = threads.into_iter().unzip();
        let mut run = self.begin(func, numbers, args, options)?;
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

    /// Sets the order in which the threads of later calls take turns; each call restarts it.
    pub fn set_schedule(&mut self, schedule: Schedule) {
        self.schedule = schedule;
    }

    /// Prepares threads of the machine to call a function, each with its arguments. Their numbers
    /// are ascending.
    pub(super) fn begin(
        &mut self,
        func: FuncId,
        numbers: Vec<usize>,
        args: Vec<Vec<DataValue>>,
        mut options: RunOptions,
    ) -> Result<Run, RunError> {
        let (name, address, signature) = self.linked(func)?;
        let entries = match &options.timed {
            Some(_) => self.entries(&Target::Func(func), address, &numbers)?,
            None => vec![address; numbers.len()],
        };
        let infos = args.iter().map(|args| call_info(&name, &signature, args));
        let Some(info) = infos.collect::<Result<Vec<_>, _>>()?.pop() else {
            return Err(RunError::Threads {
                asked: 0,
                available: self.machine.threads(),
            });
        };
        self.start_over()?;
        let mut members = Vec::with_capacity(numbers.len());
        for ((&number, args), &address) in numbers.iter().zip(&args).zip(&entries) {
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

    /// Runs the threads until each has returned, stopped or is blocked, for at most this many
    /// instructions or a few more. Returns whether all have ended; [`NpuModule::finish`] returns
    /// the outcome.
    pub(super) fn advance(&mut self, run: &mut Run, instructions: u64) -> Result<bool, RunError> {
        let mut budget = instructions.min(run.left);
        loop {
            // Disables threads that have returned.
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
                &mut self.observers,
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

    /// Returns the error for a call that reached a limit, with the location of the first busy
    /// thread.
    fn out_of_time(&self, run: &mut Run, limit: u64, stop: &Stop) -> RunError {
        self.note_ended(run);
        let mut left = run.members.iter().filter(|member| member.stop.is_none());
        let first = left.clone().next();
        let busy = left.find(|member| !self.machine.thread(member.number).is_waiting());
        let number = busy.or(first).map_or(0, |member| member.number);
        self.over_limit(number, limit, stop).of_thread(number)
    }

    /// Returns the results of each thread, if all have returned.
    pub(super) fn finish(&mut self, run: &Run) -> Result<Vec<Vec<DataValue>>, RunError> {
        let pinned = cranelift_naplespu::abi::registers::pinned(self.front.isa.flags());
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
                // It waits. It is reported below, after all threads have been checked.
                None => {}
            }
        }
        match &run.deadlock {
            Some(deadlock) => Err(self.stuck(deadlock)),
            None => Ok(results),
        }
    }

    /// Returns the number of each thread and its executed instructions.
    pub(super) fn executed(&self, run: &Run) -> impl Iterator<Item = (usize, u64)> {
        let count = |member: &Member| self.machine.thread(member.number).instructions() - member.before;
        run.members.iter().map(move |member| (member.number, count(member)))
    }

    fn total(&self, run: &Run) -> u64 {
        self.executed(run).map(|(_, instructions)| instructions).sum()
    }

    /// Records the threads that have set their status and jump to themselves: only traps do so
    /// here.
    fn note_ended(&self, run: &mut Run) {
        for member in &mut run.members {
            if member.stop.is_none()
                && let Some(status) = self.machine.thread(member.number).ended()
            {
                member.stop = Some(Stop::Ended { status });
            }
        }
    }

    /// Returns the error of a deadlock.
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
