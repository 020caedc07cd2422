//! Compile time by stage, like `cranelift_codegen::timing` for Cranelift's own targets.
//!
//! Timing is off by default. [`set_enabled`] switches it on for the whole process; then every
//! compiled function, on any thread, adds to the result of [`take`]. When it is off, each stage
//! only reads a flag.
//!
//! The time of Cranelift's passes is part of the stage that calls them: `clean` includes its
//! removal of unreachable code and of constant block parameters, `egraph` its simplification.

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

/// Returns the time since the last call, as the sum over all threads, and resets it.
pub fn take() -> PassTimes {
    std::mem::take(&mut *lock())
}

/// Locks the total. A thread that panicked with the lock leaves sums of durations, which are still
/// valid.
fn lock() -> std::sync::MutexGuard<'static, PassTimes> {
    TOTAL.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Time by stage, in the order of the pipeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PassTimes {
    stages: Vec<(&'static str, Duration)>,
}

impl PassTimes {
    /// Returns the stages by name, with their times.
    pub fn stages(&self) -> impl Iterator<Item = (&'static str, Duration)> {
        self.stages.iter().copied()
    }

    /// Returns the total time of all stages.
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
                // A function with an error has no times for later stages.
                None => {
                    self.stages.insert(place, (name, time));
                    place += 1;
                }
            }
        }
    }
}

/// Prints a table in Cranelift's format, in seconds.
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

/// A part of the pipeline that is not followed by a printable stage, or precedes the first one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Cranelift's verifier.
    Verify,
    /// Validation of target limits.
    Validate,
    /// Removal of unreachable code, constant block parameters and aliases, merging of blocks, and
    /// control flow.
    Clean,
    /// Cranelift's simplification.
    Egraph,
    /// The loop passes after it.
    Loops,
    /// The block order.
    Order,
    /// The operands for the register allocator.
    Operands,
    /// The layout of the frame.
    Frame,
    /// Encoding and metadata.
    Encode,
}

impl Step {
    /// Returns its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Verify => "verify",
            Self::Validate => "validate",
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

/// The clock of one function. Its times are added when it is dropped, including those of a function
/// with an error.
#[derive(Debug)]
pub(crate) struct Clock {
    times: PassTimes,
    since: Instant,
}

impl Clock {
    /// Starts a clock, if timing is enabled.
    pub fn start() -> Option<Self> {
        ENABLED.load(Ordering::Relaxed).then(|| Self {
            times: PassTimes::default(),
            since: Instant::now(),
        })
    }

    /// Ignores the time since the last call.
    pub fn skip(&mut self) {
        self.since = Instant::now();
    }

    /// Adds the time since the last call to the stage with this name.
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
