//! Calls of one function by several hardware threads at once.
//!
//! Every thread makes the same call, on a stack of its own; what tells them apart is the number that each reads from the machine
//! (control register 2, and 0 for the tile of its core). They share memory, meet at barriers, and take turns by a
//! [`Schedule`], so that a call repeats exactly. A thread that returns is out; the call is over when all are.

use super::NpuModule;
use super::call::{Call, call_info};
use super::error::{RunError, StuckThread};
use super::layout::RETURN_TO;
use super::timed::run_threads;
use cranelift_codegen::data_value::DataValue;
use cranelift_module::FuncId;
use npu_sim::{Deadlock, Halt, Machine, Schedule, Stop, THREADS};

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
        let (name, address, signature) = self.linked(func)?;
        let info = call_info(&name, &signature, args)?;
        let pinned = cranelift_naplespu::abi::registers::pinned(self.isa.flags());
        self.start_over()?;
        for number in 0..threads {
            Call::new(&mut self.machine, number, &info).set_up(&info, &signature, args, address)?;
        }
        self.start_timing();
        let before = self.instructions(threads);
        let end = self.run_until_all_return(threads);
        self.steps = self.instructions(threads) - before;
        let end = end?;
        let mut results = Vec::with_capacity(threads);
        for (number, stop) in end.stops.iter().enumerate() {
            match stop {
                Some(Stop::Breakpoint { pc: RETURN_TO }) => {
                    let call = Call::new(&mut self.machine, number, &info);
                    let kept = call.check_preserved(info.popped, pinned);
                    kept.map_err(|error| error.of_thread(number))?;
                    results.push(call.results(&info, &signature));
                }
                Some(stop) => return Err(self.stopped(number, stop).of_thread(number)),
                // It waits; whether it is to blame is known when all have been looked at.
                None => {}
            }
        }
        match end.deadlock {
            Some(deadlock) => Err(self.stuck(&deadlock)),
            None => Ok(results),
        }
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

    /// Runs the first `threads` threads until each has returned, stopped or come to wait for ever.
    fn run_until_all_return(&mut self, threads: usize) -> Result<End, RunError> {
        let mut end = End {
            stops: vec![None; threads],
            deadlock: None,
        };
        let mut schedule = self.schedule.clone();
        let mut left = self.step_limit;
        loop {
            // Those that have returned are out.
            for core in 0..self.machine.cores() {
                let first = core * THREADS;
                let still = |number: &usize| end.stops.get(*number).is_some_and(Option::is_none);
                let mask = (first..first + THREADS)
                    .filter(still)
                    .fold(0, |mask, k| mask | 1 << (k - first));
                self.machine.enable(core, mask);
            }
            let before = self.instructions(threads);
            let halt = run_threads(&mut self.machine, self.timed.as_mut(), &mut schedule, left);
            left = left.saturating_sub(self.instructions(threads) - before);
            match halt {
                Halt::Thread { thread, stop } if self.answer(thread, &stop)? => {}
                Halt::Thread { thread, stop } => match end.stops.get_mut(thread) {
                    Some(place) => *place = Some(stop),
                    // Only the first threads are enabled.
                    None => return Ok(end),
                },
                Halt::Ended => {
                    end.note_ended(&self.machine);
                    return Ok(end);
                }
                Halt::Deadlock(deadlock) => {
                    end.note_ended(&self.machine);
                    for hung in &deadlock.hung {
                        if let Some(place) = end.stops.get_mut(hung.thread) {
                            *place = Some(Stop::Hang {
                                pc: hung.pc,
                                reason: hung.reason,
                            });
                        }
                    }
                    end.deadlock = (!deadlock.waiting.is_empty()).then_some(deadlock);
                    return Ok(end);
                }
                Halt::Internal { core } => return Err(self.stopped(core * THREADS, &Stop::Internal { core })),
                Halt::StepLimit => {
                    end.note_ended(&self.machine);
                    let busy = |&k: &usize| end.stops.get(k).is_some_and(Option::is_none);
                    let mut busy = (0..threads)
                        .filter(busy)
                        .filter(|&k| !self.machine.thread(k).is_waiting());
                    let number = busy.next().unwrap_or(0);
                    return Err(self.stopped(number, &Stop::StepLimit).of_thread(number));
                }
            }
        }
    }

    fn instructions(&self, threads: usize) -> u64 {
        let each = (0..threads).map(|number| self.machine.thread(number).instructions());
        each.sum()
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

/// How the threads of a call came to their ends.
struct End {
    /// Why each stopped; `None` if it waits at a barrier.
    stops: Vec<Option<Stop>>,
    deadlock: Option<Deadlock>,
}

impl End {
    /// Notes the threads that have set their status and jump to themselves: nothing but a trap does so here.
    fn note_ended(&mut self, machine: &Machine) {
        for (number, stop) in self.stops.iter_mut().enumerate() {
            if stop.is_none()
                && let Some(status) = machine.thread(number).ended()
            {
                *stop = Some(Stop::Ended { status });
            }
        }
    }
}
