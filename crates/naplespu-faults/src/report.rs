//! Reports the results.

use crate::list::Fault;
use crate::run::Outcome;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// The result for one fault.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The fault.
    pub fault: Fault,
    /// The test that noticed it, and how; `None` if none did.
    pub noticed: Option<(String, Outcome)>,
    /// The run time of its tests.
    pub time: Duration,
}

impl Verdict {
    /// Returns one line about the result.
    pub fn line(&self) -> String {
        let seconds = self.time.as_secs_f64();
        let name = &self.fault.name;
        match (&self.noticed, &self.fault.equivalent) {
            (Some((test, outcome)), None) => {
                let how = match outcome {
                    Outcome::TimedOut => ", out of time",
                    Outcome::TooLarge => ", out of memory",
                    _ => "",
                };
                format!("noticed    {name}: {test}{how} ({seconds:.1} s)")
            }
            (None, None) => format!("UNNOTICED  {name}: {} ({seconds:.1} s)", self.fault.file),
            (None, Some(why)) => format!("equivalent {name}: {why} ({seconds:.1} s)"),
            (Some((test, _)), Some(_)) => format!("NOT EQUIVALENT {name}: {test} ({seconds:.1} s)"),
        }
    }

    /// Returns whether the result matches the list: noticed, or equivalent and not noticed.
    pub fn is_right(&self) -> bool {
        self.noticed.is_some() == self.fault.equivalent.is_none()
    }
}

/// Returns the summary: counts by topic and by test, and the faults that no test noticed.
pub fn summary(verdicts: &[Verdict]) -> String {
    let mut topics: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    let mut tests: BTreeMap<String, (usize, Duration)> = BTreeMap::new();
    for verdict in verdicts {
        let figures = topics.entry(&verdict.fault.topic).or_default();
        let column = match (&verdict.noticed, &verdict.fault.equivalent) {
            (Some((test, _)), None) => {
                let mut words = test.split(' ');
                let target = format!("{} {}", words.next().unwrap_or(""), words.next().unwrap_or(""));
                let entry = tests.entry(target).or_default();
                entry.0 += 1;
                entry.1 += verdict.time;
                0
            }
            (None, Some(_)) => 1,
            _ => 2,
        };
        figures[column] += 1;
    }
    let mut text = String::new();
    let mut line = |words: std::fmt::Arguments<'_>| {
        // Writing to a string cannot fail.
        let _ = text.write_fmt(words);
        text.push('\n');
    };
    line(format_args!(
        "{:<16} {:>6} {:>8} {:>11} {:>10}",
        "topic", "faults", "noticed", "equivalent", "unnoticed"
    ));
    let mut total = [0; 3];
    for (topic, [noticed, equivalent, unnoticed]) in topics {
        let all = noticed + equivalent + unnoticed;
        line(format_args!(
            "{topic:<16} {all:>6} {noticed:>8} {equivalent:>11} {unnoticed:>10}"
        ));
        total = [total[0] + noticed, total[1] + equivalent, total[2] + unnoticed];
    }
    let [noticed, equivalent, unnoticed] = total;
    let all = noticed + equivalent + unnoticed;
    line(format_args!(
        "{:<16} {all:>6} {noticed:>8} {equivalent:>11} {unnoticed:>10}",
        "all"
    ));
    line(format_args!(
        "\n{:<44} {:>8} {:>12}",
        "noticed by", "faults", "seconds each"
    ));
    for (test, (count, time)) in tests {
        let each = time.as_secs_f64() / count as f64;
        line(format_args!("{test:<44} {count:>8} {each:>12.1}"));
    }
    let wrong: Vec<&Verdict> = verdicts.iter().filter(|verdict| !verdict.is_right()).collect();
    if !wrong.is_empty() {
        line(format_args!(""));
    }
    for verdict in wrong {
        line(format_args!("{}", verdict.line()));
    }
    text
}
