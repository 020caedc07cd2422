//! Launches kernels on threads.

use super::{Arg, Device, DeviceError, Fault, ThreadId, ThreadSet, ThreadTrace};
use crate::error::RunError;
use crate::npu_module::STEP_LIMIT;
use crate::threads::{Run, RunOptions};
use crate::timed::Timed;
use cranelift_codegen::data_value::DataValue;
use cranelift_module::FuncId;
use npu_sim::{Misses, MissesReport, Report, Schedule, ThreadCounters, TimingConfig};
use std::fmt;

/// The threads of a launch, their scheduling, and limits.
#[derive(Clone, Debug)]
pub struct LaunchConfig {
    threads: ThreadSet,
    schedule: Schedule,
    instructions: u64,
    timing: Option<(TimingConfig, Option<u64>)>,
    misses: bool,
}

impl LaunchConfig {
    /// Returns the threads.
    pub fn threads(&self) -> &ThreadSet {
        &self.threads
    }

    /// Runs on these threads without the timing model, limited to one billion instructions.
    pub fn new(threads: ThreadSet) -> Self {
        Self {
            threads,
            schedule: Schedule::default(),
            instructions: STEP_LIMIT,
            timing: None,
            misses: false,
        }
    }

    /// Limits the instructions of all threads together. A launch that exceeds the limit fails with
    /// [`RunError::Timeout`].
    #[must_use]
    pub fn instruction_limit(self, instructions: u64) -> Self {
        Self { instructions, ..self }
    }

    /// Uses the timing model, which counts cycles and their causes. Results are the same; the
    /// simulation takes about ten times as long.
    #[must_use]
    pub fn timed(self, config: TimingConfig) -> Self {
        Self {
            timing: Some((config, None)),
            ..self
        }
    }

    /// Uses the timing model with a limit of cycles, which idle cycles may exceed slightly. A
    /// launch that exceeds the limit fails with [`RunError::CycleLimit`].
    #[must_use]
    pub fn timed_up_to(self, config: TimingConfig, cycles: u64) -> Self {
        Self {
            timing: Some((config, Some(cycles))),
            ..self
        }
    }

    /// Records the misses of several cores with the timing model: [`Statistics::misses`]. The
    /// simulation takes longer. Without [`timed`](Self::timed) it has no effect.
    #[must_use]
    pub fn with_misses(self) -> Self {
        Self { misses: true, ..self }
    }

    /// Sets the order in which threads take turns. The timing model has its own order.
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

/// The statistics of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadStatistics {
    /// The thread.
    pub thread: ThreadId,
    /// The number of instructions, including those of routines of the runtime.
    pub instructions: u64,
    /// The counters of the timing model: stalls, cache hits and misses.
    pub counters: Option<ThreadCounters>,
}

impl ThreadStatistics {
    /// Returns the cycles in which the thread ran or waited, with the timing model.
    pub fn cycles(&self) -> Option<u64> {
        let counters = self.counters?;
        let waited: u64 = counters.stalls.iter().sum();
        Some(counters.instructions + counters.killed + waited)
    }
}

/// The statistics of a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// The number of instructions of all threads together.
    pub instructions: u64,
    /// The statistics of each thread, by number.
    pub threads: Vec<ThreadStatistics>,
    /// The report of the timing model.
    pub timing: Option<Report>,
    /// The misses of several cores, with [`LaunchConfig::with_misses`]. [`Device::variable`] has the
    /// names of their addresses.
    pub misses: Option<MissesReport>,
}

impl Statistics {
    /// Returns the cycles from the first instruction to the end of the last thread, with the timing
    /// model.
    pub fn cycles(&self) -> Option<u64> {
        self.timing.as_ref().map(|report| report.cycles)
    }
}

/// The result of a completed launch.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The results of the kernel on each thread, by number. Vectors of more than 128 bits are given
    /// as their lanes.
    pub results: Vec<(ThreadId, Vec<DataValue>)>,
    /// Its statistics.
    pub statistics: Statistics,
}

/// The progress of a launch.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "one is made in many instructions of the kernel, and taken apart at once"
)]
pub enum Progress<'d> {
    /// The launch can continue.
    Running(Launch<'d>),
    /// All threads have returned.
    Finished(Finished),
}

/// A launch that has not ended. Nothing runs in the background: [`wait`](Launch::wait) and
/// [`advance`](Launch::advance) run the kernel on the calling host thread, and without a call of
/// one of them it does not run. Dropping a launch cancels it; memory keeps its writes.
///
/// It borrows the device. To do other work meanwhile, call [`wait`](Launch::wait) on another host
/// thread, or [`advance`](Launch::advance) in steps.
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
    /// Runs the kernel on the calling host thread until all threads of the launch have returned.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Fault`] if a thread trapped or stopped, the threads are deadlocked, a limit
    /// was reached, or a host function ended the launch. If several threads failed, the error is
    /// about the failed thread with the lowest number; the others ran on as far as they could.
    pub fn wait(mut self) -> Result<Finished, DeviceError> {
        let over = self.device.module.advance(&mut self.run, u64::MAX);
        self.ended(over.map(|_| ()))
    }
}

impl<'d> Launch<'d> {
    /// Runs the kernel for this many instructions of all threads together, or a few more. A launch
    /// in steps has the same result as without steps.
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

    /// Returns the statistics so far.
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
            misses: self.run.timed().and_then(Timed::misses),
        }
    }

    /// Returns the result of a launch that has ended.
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
    /// Prepares threads to run a kernel, all with the same arguments, each with a fresh stack. The
    /// kernel starts with [`Launch::wait`] or [`Launch::advance`].
    ///
    /// # Errors
    ///
    /// - [`DeviceError::NoThreads`] and [`DeviceError::NoSuchThread`] for an invalid set of
    ///   threads.
    /// - [`DeviceError::Launch`] if the kernel, or a symbol that it reaches, is undefined, or the
    ///   arguments do not match its signature.
    /// - [`DeviceError::NoBuffer`] and [`DeviceError::OutOfRange`] for an invalid address argument.
    pub fn launch(
        &mut self,
        kernel: FuncId,
        config: impl Into<LaunchConfig>,
        args: &[Arg],
    ) -> Result<Launch<'_>, DeviceError> {
        self.launch_each(kernel, config, |_, _| args.to_vec())
    }

    /// Prepares threads to run a kernel with separate arguments. `args` returns the arguments from
    /// the thread's index in the launch, counted from 0, and the thread.
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
            misses,
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
            timed: timing.map(|(config, limit)| Timed {
                misses: misses.then(Misses::new),
                ..Timed::new(config, limit)
            }),
        };
        let begun = self.module.begin(kernel, numbers, values, options);
        let run = begun.map_err(DeviceError::Launch)?;
        Ok(Launch { device: self, run })
    }
}
