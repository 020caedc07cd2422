//! Progress of long runs, on standard error if that is a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// The duration after which a run shows its progress.
const PATIENCE: Duration = Duration::from_secs(2);

/// The time between two pictures of a spinner.
const TICK: Duration = Duration::from_millis(200);

/// The visible progress. A run within a run shows none of its own.
static ACTIVE: Mutex<Option<ProgressBar>> = Mutex::new(None);

fn active() -> MutexGuard<'static, Option<ProgressBar>> {
    ACTIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The progress of a run, until it is dropped.
pub struct Progress(Option<ProgressBar>);

impl Progress {
    /// Starts a run of this many steps.
    pub fn bar(steps: usize, unit: &str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(steps as u64), ProgressDrawTarget::hidden());
        Self::start(bar, &format!("{{wide_bar}} {{pos}}/{{len}} {unit}, {{eta}} left"))
    }

    /// Starts a run of unknown length.
    pub fn spinner(action: &str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        Self::start(bar, &format!("{{spinner}} {action}, {{elapsed}}"))
    }

    fn start(bar: ProgressBar, template: &str) -> Self {
        let mut active = active();
        if active.is_some() || !std::io::stderr().is_terminal() {
            return Self(None);
        }
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        *active = Some(bar.clone());
        let later = bar.clone();
        thread::spawn(move || {
            thread::sleep(PATIENCE);
            if !later.is_finished() {
                later.set_draw_target(ProgressDrawTarget::stderr());
                later.enable_steady_tick(TICK);
            }
        });
        Self(Some(bar))
    }

    /// Counts a step.
    pub fn step(&self) {
        if let Some(bar) = &self.0 {
            bar.inc(1);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = self.0.take() {
            *active() = None;
            bar.finish_and_clear();
        }
    }
}

/// Hides the progress during output.
pub fn suspended<T>(output: impl FnOnce() -> T) -> T {
    let bar = active().clone();
    match bar {
        Some(bar) => bar.suspend(output),
        None => output(),
    }
}
