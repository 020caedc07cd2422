//! Answers by the content of a function and its code, in memory and in a file.

use crate::answer::{Reason, Verdict};
use rustc_hash::FxHashMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

/// A hash of everything on which an answer depends, besides the prover.
pub type Key = [u8; 32];

/// The answers "proved" and "not decided in time".
#[derive(Default, Debug)]
pub struct Known {
    answers: FxHashMap<Key, Answered>,
}

#[derive(Clone, Debug)]
enum Answered {
    Proved,
    /// The goal that was not decided in this number of seconds.
    Time(u64, String),
}

/// Returns the first line of a file of answers: the fingerprint of the prover.
fn header() -> String {
    format!("naplespu-verify {}", env!("NAPLESPU_PROVER"))
}

impl Known {
    /// Reads a file of answers. The result is empty if the file does not exist, or if another
    /// prover wrote it. Lines that are no answers are ignored.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn read(path: &Path) -> io::Result<Self> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error),
        };
        Ok(Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let mut lines = text.lines();
        if lines.next() != Some(header().as_str()) {
            return Self::default();
        }
        Self {
            answers: lines.filter_map(parse_line).collect(),
        }
    }

    /// Writes all answers to a file, in the order of their keys.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut lines: Vec<String> = self.answers.iter().map(line).collect();
        lines.sort_unstable();
        fs::write(path, format!("{}\n{}", header(), lines.concat()))
    }

    /// Returns the verdict for a key. A proof that was not decided in less than `seconds` does not
    /// count.
    pub fn get(&self, key: &Key, seconds: u64) -> Option<Verdict> {
        match self.answers.get(key)? {
            Answered::Proved => Some(Verdict::Proved),
            Answered::Time(limit, goal) if *limit >= seconds => Some(Verdict::Undecided(Reason::Time(goal.clone()))),
            Answered::Time(..) => None,
        }
    }

    /// Records a verdict that took at most `seconds`. Refutations and constructs without semantics
    /// are not recorded: they take little time.
    pub fn add(&mut self, key: Key, verdict: &Verdict, seconds: u64) {
        let answered = match verdict {
            Verdict::Proved => Answered::Proved,
            Verdict::Undecided(Reason::Time(goal)) => Answered::Time(seconds, goal.clone()),
            _ => return,
        };
        self.answers.insert(key, answered);
    }
}

/// Returns the line of an answer: the key in hexadecimal, and for a goal that was not decided the
/// seconds and the goal.
fn line((key, answered): (&Key, &Answered)) -> String {
    let mut line = String::new();
    for byte in key {
        let _ = write!(line, "{byte:02x}");
    }
    if let Answered::Time(seconds, goal) = answered {
        let _ = write!(line, " {seconds} {}", goal.replace('\n', " "));
    }
    line.push('\n');
    line
}

fn parse_line(line: &str) -> Option<(Key, Answered)> {
    let (digits, rest) = line.split_once(' ').unwrap_or((line, ""));
    if digits.len() != 64 || !digits.is_ascii() {
        return None;
    }
    let mut key = [0; 32];
    for (at, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    let answered = match rest {
        "" => Answered::Proved,
        _ => {
            let (seconds, goal) = rest.split_once(' ')?;
            Answered::Time(seconds.parse().ok()?, goal.to_owned())
        }
    };
    Some((key, answered))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_keeps_the_answers() {
        let mut known = Known::default();
        let time = Verdict::Undecided(Reason::Time("result 0: no answer".to_owned()));
        known.add([0xa5; 32], &Verdict::Proved, 5);
        known.add([7; 32], &time, 5);
        known.add([8; 32], &Verdict::Undecided(Reason::Unsupported("fma".to_owned())), 5);
        let lines: String = known.answers.iter().map(line).collect();
        let read = Known::parse(&format!("{}\n{lines}no answer\n", header()));
        assert_eq!(read.get(&[0xa5; 32], 100), Some(Verdict::Proved));
        assert_eq!(read.get(&[7; 32], 5), Some(time));
        assert_eq!(read.get(&[7; 32], 6), None);
        assert_eq!(read.get(&[8; 32], 1), None);
        assert!(Known::parse(&format!("naplespu-verify 0\n{lines}")).answers.is_empty());
    }
}
