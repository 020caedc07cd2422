//! Time by stage, as `cranelift_codegen::timing` has it for Cranelift's own targets.
//!
//! It is off unless [`set_enabled`] switches it on, for the whole process; then every function that is compiled, on any thread, adds
//! to what [`take`] gives. Off, it is one look at a flag for each stage.
//!
//! Cranelift's passes that the pipeline uses count as part of the stage that calls them: `clean` is its removal of unreachable code
//! and of constant block parameters, `egraph` its simplification.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

static ENABLED: AtomicBool = AtomicBool::new(false);

static TOTAL: Mutex<PassTimes> = Mutex::new(PassTimes { stages: Vec::new() });

/// Switches timing on or off, from the next function on.
pub fn set_enabled(enabled: bool) {
    ENABLED.store(enabled, Ordering::Relaxed);
}

/// What was spent since the last time, by all threads together.
pub fn take() -> PassTimes {
    std::mem::take(&mut *lock())
}

/// A thread that panicked with the lock left sums of durations, which are as good as before.
fn lock() -> std::sync::MutexGuard<'static, PassTimes> {
    TOTAL.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Time by stage, in the order of the pipeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PassTimes {
    stages: Vec<(&'static str, Duration)>,
}

impl PassTimes {
    /// The stages by name, with the time that each took.
    pub fn stages(&self) -> impl Iterator<Item = (&'static str, Duration)> {
        self.stages.iter().copied()
    }

    /// The time of all stages.
    pub fn total(&self) -> Duration {
        self.stages.iter().map(|&(_, time)| time).sum()
    }

    /// Adds the times of `other`.
    pub fn add(&mut self, other: &Self) {
        let mut place = 0;
        for &(name, time) in &other.stages {
            match self.stages.iter().position(|&(known, _)| known == name) {
                Some(found) => {
                    self.stages[found].1 += time;
                    place = found + 1;
                }
                // A function that ended early has not seen all stages.
                None => {
                    self.stages.insert(place, (name, time));
                    place += 1;
                }
            }
        }
    }
}

/// A table in the form of Cranelift's, in seconds.
impl fmt::Display for PassTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = "============ =======  ==================================";
        let total = self.total();
        let share = |time: Duration| 100.0 * time.as_secs_f64() / total.as_secs_f64().max(f64::MIN_POSITIVE);
        writeln!(f, "{rule}")?;
        writeln!(f, "       Total       %  Pass")?;
        writeln!(f, "{}", rule.replace('=', "-"))?;
        for (name, time) in self.stages() {
            writeln!(f, "{:12.6} {:7.1}  {name}", time.as_secs_f64(), share(time))?;
        }
        writeln!(f, "{}", rule.replace('=', "-"))?;
        writeln!(f, "{:12.6} {:7.1}  all", total.as_secs_f64(), share(total))?;
        writeln!(f, "{rule}")
    }
}

/// What is done between two forms of a function that can be printed, or before the first.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Cranelift's verifier.
    Verify,
    /// What the target has not.
    Validate,
    /// Legalization and intrinsics.
    Legalize,
    /// Unreachable code, constant block parameters, aliases, blocks that follow one another; control flow.
    Clean,
    /// Cranelift's simplification.
    Egraph,
    /// Loops, after it.
    Loops,
    /// The order of blocks.
    Order,
    /// What the register allocator is shown.
    Operands,
    /// The layout of the frame.
    Frame,
    /// Bytes, and what is said about them.
    Encode,
}

impl Step {
    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Verify => "verify",
            Self::Validate => "validate",
            Self::Legalize => "legalize",
            Self::Clean => "clean",
            Self::Egraph => "egraph",
            Self::Loops => "loops",
            Self::Order => "order",
            Self::Operands => "operands",
            Self::Frame => "frame",
            Self::Encode => "encode",
        }
    }
}

/// The clock of one function. Its times count when it is dropped, so also those of a function that does not compile.
#[derive(Debug)]
pub(crate) struct Clock {
    times: PassTimes,
    since: Instant,
}

impl Clock {
    /// A clock that runs from now on, if timing is enabled.
    pub fn start() -> Option<Self> {
        ENABLED.load(Ordering::Relaxed).then(|| Self {
            times: PassTimes::default(),
            since: Instant::now(),
        })
    }

    /// Leaves out the time since the last call.
    pub fn skip(&mut self) {
        self.since = Instant::now();
    }

    /// What was done since the last call has this name.
    pub fn done(&mut self, name: &'static str) {
        let now = Instant::now();
        let time = now.saturating_duration_since(self.since);
        self.since = now;
        match self.times.stages.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum += time,
            None => self.times.stages.push((name, time)),
        }
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        lock().add(&self.times);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_stay_in_the_order_of_the_pipeline() {
        let ms = Duration::from_millis;
        let mut sum = PassTimes {
            stages: vec![("verify", ms(1))],
        };
        sum.add(&PassTimes {
            stages: vec![("verify", ms(1)), ("lower", ms(2)), ("encode", ms(4))],
        });
        sum.add(&PassTimes {
            stages: vec![("verify", ms(1)), ("order", ms(8)), ("lower", ms(2))],
        });
        let expected = [("verify", ms(3)), ("order", ms(8)), ("lower", ms(4)), ("encode", ms(4))];
        assert!(sum.stages().eq(expected), "{sum}");
        assert_eq!(sum.total(), ms(19));
        assert!(sum.to_string().contains("    0.008000    42.1  order\n"), "{sum}");
    }
}
