//! Calls with the timing model: their cost in cycles and its causes.

use super::cycles::CycleProfile;
use super::watch::Observers;
use npu_sim::{
    Halt, HangReason, Machine, Misses, MissesReport, NoSink, Report, Schedule, Sinks, Stop, THREADS, Timing,
    TimingConfig,
};

/// The timing model of a call, or of the calls of a module.
pub(super) struct Timed {
    pub(super) config: TimingConfig,
    pub(super) limit: Option<u64>,
    /// The pipelines of the last call.
    pub(super) timing: Timing,
    /// The costs of instructions, if requested.
    pub(super) profile: Option<CycleProfile>,
    /// The misses of several cores, if requested.
    pub(super) misses: Option<Misses>,
}

impl Timed {
    /// Creates a model for calls with at most `limit` cycles.
    pub(super) fn new(config: TimingConfig, limit: Option<u64>) -> Self {
        Self {
            config,
            limit,
            timing: Timing::new(config),
            profile: None,
            misses: None,
        }
    }

    /// Returns a model with the same settings that has not run, keeping the costs of instructions.
    pub(super) fn again(&self) -> Self {
        Self {
            profile: self.profile.clone(),
            ..Self::new(self.config, self.limit)
        }
    }

    /// Returns the limit of cycles of a call.
    pub(super) fn limit(&self) -> Option<u64> {
        self.limit
    }

    /// Returns the report of the call.
    pub(super) fn report(&self) -> Report {
        self.timing.report()
    }

    /// Returns the recorded misses of the call.
    pub(super) fn misses(&self) -> Option<MissesReport> {
        self.misses.as_ref().map(Misses::report)
    }

    fn run(&mut self, machine: &mut Machine, observers: &mut Observers, limit: u64) -> Halt {
        if let Some(run) = &mut observers.timed_run {
            return run(machine, &mut self.timing, limit);
        }
        match (&mut self.profile, &mut self.misses) {
            (Some(profile), Some(misses)) => {
                machine.run_timed(&mut self.timing, limit, &mut Sinks(vec![profile, misses]))
            }
            (Some(profile), None) => machine.run_timed(&mut self.timing, limit, profile),
            (None, Some(misses)) => machine.run_timed(&mut self.timing, limit, misses),
            (None, None) => machine.run_timed(&mut self.timing, limit, &mut NoSink),
        }
    }
}

/// Runs one thread.
pub(super) fn run_thread(
    machine: &mut Machine,
    timed: Option<&mut Timed>,
    observers: &mut Observers,
    number: usize,
    limit: u64,
) -> Stop {
    let Some(timed) = timed else {
        return match &mut observers.watcher {
            Some(watcher) => machine.run_traced(number, limit, watcher),
            None => machine.run(number, limit),
        };
    };
    for core in 0..machine.cores() {
        let mask = if core == number / THREADS {
            1 << (number % THREADS)
        } else {
            0
        };
        machine.enable(core, mask);
    }
    match timed.run(machine, observers, limit) {
        Halt::StepLimit => Stop::StepLimit,
        Halt::CycleLimit => Stop::CycleLimit,
        Halt::Thread { stop, .. } => stop,
        Halt::Internal { core } => Stop::Internal { core },
        Halt::Ended => Stop::Ended {
            status: machine.thread(number).status(),
        },
        Halt::Deadlock(deadlock) => match (deadlock.hung.first(), deadlock.waiting.first()) {
            (Some(hung), _) => Stop::Hang {
                pc: hung.pc,
                reason: hung.reason,
            },
            (None, Some(waiting)) => Stop::Hang {
                pc: waiting.pc,
                reason: HangReason::Barrier {
                    id: waiting.id,
                    missing: waiting.missing(),
                },
            },
            (None, None) => Stop::NoSuchThread,
        },
    }
}

/// Runs the enabled threads in turns, or in the order in which the pipelines issue them.
pub(super) fn run_threads(
    machine: &mut Machine,
    timed: Option<&mut Timed>,
    observers: &mut Observers,
    schedule: &mut Schedule,
    limit: u64,
) -> Halt {
    if let Some(timed) = timed {
        return timed.run(machine, observers, limit);
    }
    match &mut observers.watcher {
        Some(watcher) => machine.run_threads_traced(schedule, limit, watcher),
        None => machine.run_threads(schedule, limit),
    }
}
