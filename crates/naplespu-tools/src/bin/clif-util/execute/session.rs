//! Observes a run, and reports on it.

use super::ExecuteArgs;
use super::places::Places;
use super::profile::Profile;
use super::report;
use super::trace::Trace;
use super::waits;
use crate::{Outcome, Stop, output};
use naplespu_jit::{CodeMap, LinkError, NpuModule};
use npu_sim::{Halt, Machine, Misses, NoSink, Report, Sinks, Timing, TraceEvent, Waits};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The observation of a program's calls, with its names and lines.
pub struct Session<P> {
    places: P,
    profile: Option<Profile>,
    trace: Option<Trace>,
    waits: Option<Waits>,
    misses: Option<Misses>,
}

impl<P: Places> Session<P> {
    /// Creates a session for a program.
    pub fn new(args: &ExecuteArgs, places: P) -> Result<Self, Stop> {
        if args.timing().is_none() && args.trace.as_ref().is_some_and(|trace| trace.needs_timing()) {
            return Err(Stop::Usage(
                "a trace for a viewer shows cycles, so it needs --timing".to_owned(),
            ));
        }
        Ok(Self {
            places,
            profile: args.wants_profile().then(|| args.profile.start()),
            trace: None,
            waits: None,
            misses: None,
        })
    }

    /// Starts a call, or a program.
    pub fn start(&mut self, args: &ExecuteArgs) -> Outcome {
        if let Some(profile) = &mut self.profile {
            profile.start_over();
        }
        self.waits = (args.waits.is_some() || args.waits_json.is_some()).then(Waits::new);
        self.misses = args.misses.start();
        self.trace = args.trace.as_ref().map(|trace| trace.start()).transpose()?;
        Ok(())
    }

    /// Returns whether the session observes instructions without the timing model.
    pub fn observes(&self, args: &ExecuteArgs) -> bool {
        args.timing().is_none() && (args.trace.is_some() || self.profile.is_some())
    }

    /// Observes an executed instruction, without the timing model.
    pub fn event(&mut self, event: &TraceEvent<'_>) {
        if let Some(profile) = &mut self.profile {
            profile.count(event, &self.places);
        }
        if let Some(Trace::Text(text)) = &mut self.trace {
            text.event(event, &self.places);
        }
    }

    /// Runs the machine with the timing model.
    pub fn run_timed(&mut self, machine: &mut Machine, timing: &mut Timing, limit: u64) -> Halt {
        let mut sinks = Sinks::default();
        if let Some(waits) = &mut self.waits {
            sinks.0.push(waits);
        }
        if let Some(misses) = &mut self.misses {
            sinks.0.push(misses);
        }
        if let Some(trace) = &mut self.trace {
            sinks.0.push(trace.sink());
        }
        match sinks.0.is_empty() {
            true => machine.run_timed(timing, limit, &mut NoSink),
            false => machine.run_timed(timing, limit, &mut sinks),
        }
    }

    /// Ends a call: writes the files of its trace and of its waits. Returns the report of the
    /// timing model, if there is one, as text.
    pub fn end(&mut self, args: &ExecuteArgs, report: Option<Report>) -> Result<Option<String>, Stop> {
        if let Some(trace) = self.trace.take() {
            trace.finish()?;
        }
        let mut text = report.as_ref().map(Report::to_string);
        if let (Some(text), Some(waits)) = (&mut text, &self.waits) {
            let waits = waits.report();
            match args.waits {
                Some(0) => *text += &waits::text(&waits, &self.places, usize::MAX),
                Some(most) => *text += &waits::text(&waits, &self.places, most),
                None => {}
            }
            if args.waits_json.is_some() {
                output::write(args.waits_json.as_deref(), waits::json(&waits, &self.places).as_bytes())?;
            }
        }
        if let (Some(text), Some(misses), Some(report)) = (&mut text, &self.misses, &report) {
            *text += &args.misses.end(misses, report, &self.places)?;
        }
        Ok(text)
    }

    /// Ends the session: writes the profile, prints the program's output and the requested final
    /// state, and warns of errata. `name` is the program's.
    pub fn finish(&self, args: &ExecuteArgs, machine: &Machine, threads: &[usize], name: &str) -> Outcome {
        if let Some(profile) = &self.profile {
            output::write(args.profile.path(), args.profile.text(profile, name).as_bytes())?;
        }
        let console = machine.console_output();
        output::print(console)?;
        let mut text = String::new();
        if console.last().is_some_and(|&last| last != b'\n') {
            text.push('\n');
        }
        if args.regs {
            report::registers(machine, threads, &mut text);
        }
        for &(address, length) in &args.dump {
            report::dump(machine, address, length, &mut text);
        }
        output::print(text.as_bytes())?;
        for &(address, length) in &args.dump {
            output::report(&report::unflushed(machine, address, length));
        }
        for finding in machine.findings() {
            let place = self.places.describe(finding.pc);
            let place = place.map_or_else(String::new, |place| format!(" in {place}"));
            output::report(&format!(
                "warning: erratum {} at {:#010x}{place}: {}\n",
                finding.hazard, finding.pc, finding.detail
            ));
        }
        Ok(())
    }
}

/// A session whose host calls functions of a module.
pub struct ModuleSession<'a> {
    args: &'a ExecuteArgs,
    threads: Vec<usize>,
    shared: Arc<Mutex<Session<CodeMap>>>,
}

/// Links a module after all definitions.
pub fn finish(module: &mut NpuModule) -> Outcome {
    match module.finalize_definitions() {
        // Calls that reach an undefined symbol report it themselves.
        Ok(()) | Err(LinkError::Undefined(_)) => Ok(()),
        Err(error) => Err(Stop::Fault(error.to_string())),
    }
}

impl<'a> ModuleSession<'a> {
    /// Prepares a linked module with its names and lines for calls on these threads. `max_steps` is
    /// the default limit of instructions.
    pub fn new(
        args: &'a ExecuteArgs,
        module: &mut NpuModule,
        map: CodeMap,
        threads: &[usize],
        max_steps: u64,
    ) -> Result<Self, Stop> {
        let session = Session::new(args, map)?;
        let observes = session.observes(args);
        let shared = Arc::new(Mutex::new(session));
        module.set_step_limit(args.max_steps.unwrap_or(max_steps));
        module.set_schedule(args.schedule());
        module.set_timing(args.timing());
        for &(register, value) in &args.cr {
            module.machine_mut().set_control_register(register, value);
        }
        let own = Self {
            args,
            threads: threads.to_vec(),
            shared,
        };
        if observes {
            let shared = own.shared.clone();
            module.set_watcher(Some(Box::new(move |event| locked(&shared).event(event))));
        }
        let shared = own.shared.clone();
        module.set_timed_run(Some(Box::new(move |machine, timing, limit| {
            locked(&shared).run_timed(machine, timing, limit)
        })));
        Ok(own)
    }

    /// Returns the threads of calls.
    pub fn threads(&self) -> &[usize] {
        &self.threads
    }

    /// Starts a call.
    pub fn start(&self) -> Outcome {
        locked(&self.shared).start(self.args)
    }

    /// Ends a call; see [`Session::end`].
    pub fn end(&self, module: &NpuModule) -> Result<Option<String>, Stop> {
        locked(&self.shared).end(self.args, module.timing_report())
    }

    /// Ends the session; see [`Session::finish`].
    pub fn finish(&self, module: &NpuModule, name: &str) -> Outcome {
        locked(&self.shared).finish(self.args, module.machine(), &self.threads, name)
    }
}

fn locked<P>(session: &Mutex<Session<P>>) -> MutexGuard<'_, Session<P>> {
    session.lock().unwrap_or_else(PoisonError::into_inner)
}
