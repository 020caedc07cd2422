//! Kernels on threads.

use super::{Arg, Device, DeviceError, Fault, ThreadId, ThreadSet, ThreadTrace};
use crate::error::RunError;
use crate::npu_module::STEP_LIMIT;
use crate::threads::{Run, RunOptions};
use crate::timed::Timed;
use cranelift_codegen::data_value::DataValue;
use cranelift_module::FuncId;
use npu_sim::{Report, Schedule, ThreadCounters, TimingConfig};
use std::fmt;

/// On which threads a kernel runs, how, and for how long at most.
#[derive(Clone, Debug)]
pub struct LaunchConfig {
    threads: ThreadSet,
    schedule: Schedule,
    instructions: u64,
    timing: Option<(TimingConfig, Option<u64>)>,
}

impl LaunchConfig {
    /// On these threads, without the timing model, and for one thousand million instructions at most.
    pub fn new(threads: ThreadSet) -> Self {
        Self {
            threads,
            schedule: Schedule::default(),
            instructions: STEP_LIMIT,
            timing: None,
        }
    }

    /// For so many instructions at most, of all threads together. A launch that takes more is [`RunError::Timeout`].
    #[must_use]
    pub fn instruction_limit(self, instructions: u64) -> Self {
        Self { instructions, ..self }
    }

    /// With the timing model, which counts cycles and says what they were spent on. It computes the same and takes about ten times as long.
    #[must_use]
    pub fn timed(self, config: TimingConfig) -> Self {
        Self {
            timing: Some((config, None)),
            ..self
        }
    }

    /// With the timing model, and for so many cycles at most, or some more in which nothing happens. A launch that takes more is
    /// [`RunError::CycleLimit`].
    #[must_use]
    pub fn timed_up_to(self, config: TimingConfig, cycles: u64) -> Self {
        Self {
            timing: Some((config, Some(cycles))),
            ..self
        }
    }

    /// With threads that take turns in this way. The timing model has a way of its own.
    #[must_use]
    pub fn schedule(self, schedule: Schedule) -> Self {
        Self { schedule, ..self }
    }
}

impl From<ThreadSet> for LaunchConfig {
    fn from(threads: ThreadSet) -> Self {
        Self::new(threads)
    }
}

/// What a thread executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadStatistics {
    /// The thread.
    pub thread: ThreadId,
    /// Instructions, of routines of the runtime too.
    pub instructions: u64,
    /// With the timing model, its counters: what it waited for, what the caches had for it.
    pub counters: Option<ThreadCounters>,
}

impl ThreadStatistics {
    /// With the timing model, the cycles in which it ran or waited.
    pub fn cycles(&self) -> Option<u64> {
        let counters = self.counters?;
        let waited: u64 = counters.stalls.iter().sum();
        Some(counters.instructions + counters.killed + waited)
    }
}

/// What a launch executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// Instructions of all threads together.
    pub instructions: u64,
    /// Each thread, by number.
    pub threads: Vec<ThreadStatistics>,
    /// With the timing model, all that it counted.
    pub timing: Option<Report>,
}

impl Statistics {
    /// With the timing model, the cycles from the first instruction to the end of the last thread.
    pub fn cycles(&self) -> Option<u64> {
        self.timing.as_ref().map(|report| report.cycles)
    }
}

/// What a launch that came to its end gives.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The results of the kernel on each thread, by number; vectors of more than 128 bits as their lanes.
    pub results: Vec<(ThreadId, Vec<DataValue>)>,
    /// What it executed.
    pub statistics: Statistics,
}

/// How far a launch is.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "one is made in many instructions of the kernel, and taken apart at once"
)]
pub enum Progress<'d> {
    /// It goes on from here.
    Running(Launch<'d>),
    /// All threads have returned.
    Finished(Finished),
}

/// A kernel that is on its way. Dropped, it is given up: what it has written by then stays written.
///
/// It borrows the device. To do something else meanwhile, [`wait`](Launch::wait) on another thread of the host, or go on step by step.
#[must_use = "a launch runs when it is waited for"]
pub struct Launch<'d> {
    device: &'d mut Device,
    run: Run,
}

impl fmt::Debug for Launch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launch")
            .field("threads", &self.run.numbers().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl Launch<'_> {
    /// Runs the kernel until all threads have returned.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Fault`]: a thread trapped or stopped otherwise, the threads wait for each other, a limit was reached, or a function of the host
    /// ended the launch. If several threads are to blame, it is about the first trap or stop by number; the others have run on as far as they could.
    pub fn wait(mut self) -> Result<Finished, DeviceError> {
        let over = self.device.module.advance(&mut self.run, u64::MAX);
        self.ended(over.map(|_| ()))
    }
}

impl<'d> Launch<'d> {
    /// Runs the kernel for so many instructions, by all threads together, or a few more. A launch in steps gives what the same launch gives at once.
    ///
    /// # Errors
    ///
    /// See [`Launch::wait`].
    pub fn advance(mut self, instructions: u64) -> Result<Progress<'d>, DeviceError> {
        match self.device.module.advance(&mut self.run, instructions) {
            Ok(false) => Ok(Progress::Running(self)),
            over => self.ended(over.map(|_| ())).map(Progress::Finished),
        }
    }

    /// What was executed so far.
    pub fn statistics(&self) -> Statistics {
        let timing = self.run.timed().map(Timed::report);
        let counters = |number: usize| {
            let report = timing.as_ref()?;
            let found = report.threads.iter().find(|(thread, _)| *thread == number);
            Some(found.map_or_else(ThreadCounters::default, |(_, counters)| *counters))
        };
        let executed = self.device.module.executed(&self.run);
        let threads: Vec<ThreadStatistics> = executed
            .map(|(number, instructions)| ThreadStatistics {
                thread: ThreadId::from_number(number),
                instructions,
                counters: counters(number),
            })
            .collect();
        Statistics {
            instructions: threads.iter().map(|thread| thread.instructions).sum(),
            threads,
            timing,
        }
    }

    /// What came of a launch that is over.
    fn ended(self, over: Result<(), RunError>) -> Result<Finished, DeviceError> {
        let statistics = self.statistics();
        let module = &mut self.device.module;
        match over.and_then(|()| module.finish(&self.run)) {
            Ok(results) => {
                let threads = self.run.numbers().map(ThreadId::from_number);
                Ok(Finished {
                    results: threads.zip(results).collect(),
                    statistics,
                })
            }
            Err(error) => {
                let trace = |number| ThreadTrace {
                    thread: ThreadId::from_number(number),
                    frames: module.back_trace(number),
                };
                let traces = error.threads().into_iter().map(trace);
                let traces = traces.filter(|trace| !trace.frames.is_empty()).collect();
                Err(DeviceError::Fault(Box::new(Fault {
                    error,
                    traces,
                    statistics,
                })))
            }
        }
    }
}

impl Device {
    /// Makes threads ready to run a kernel, all with the same arguments. Each has a fresh stack. Nothing runs before [`Launch::wait`] or
    /// [`Launch::advance`].
    ///
    /// # Errors
    ///
    /// [`DeviceError::NoThreads`], [`DeviceError::NoSuchThread`]; [`DeviceError::Launch`] if the kernel, or what it reaches, is not there, or the arguments do not
    /// fit its signature; [`DeviceError::NoBuffer`] and [`DeviceError::OutOfRange`] for an argument that is the address of none.
    pub fn launch(
        &mut self,
        kernel: FuncId,
        config: impl Into<LaunchConfig>,
        args: &[Arg],
    ) -> Result<Launch<'_>, DeviceError> {
        self.launch_each(kernel, config, |_, _| args.to_vec())
    }

    /// The same with arguments for each thread, which `args` makes from its place among the threads of the launch, counted from 0, and the thread.
    ///
    /// # Errors
    ///
    /// See [`Device::launch`].
    pub fn launch_each(
        &mut self,
        kernel: FuncId,
        config: impl Into<LaunchConfig>,
        mut args: impl FnMut(usize, ThreadId) -> Vec<Arg>,
    ) -> Result<Launch<'_>, DeviceError> {
        let LaunchConfig {
            threads,
            schedule,
            instructions,
            timing,
        } = config.into();
        let cores = self.cores();
        if threads.is_empty() {
            return Err(DeviceError::NoThreads);
        }
        let missing = |thread: &ThreadId| thread.core >= cores || thread.thread >= npu_sim::THREADS;
        if let Some(thread) = threads.iter().find(missing) {
            return Err(DeviceError::NoSuchThread { thread, cores });
        }
        let mut values = Vec::with_capacity(threads.len());
        for (place, thread) in threads.iter().enumerate() {
            let own = args(place, thread).into_iter().map(|arg| self.value_of(arg));
            values.push(own.collect::<Result<Vec<_>, _>>()?);
        }
        let numbers = threads.iter().map(ThreadId::number).collect();
        let options = RunOptions {
            schedule,
            limit: instructions,
            timed: timing.map(|(config, limit)| Timed::new(config, limit)),
        };
        let begun = self.module.begin(kernel, numbers, values, options);
        let run = begun.map_err(DeviceError::Launch)?;
        Ok(Launch { device: self, run })
    }
}
