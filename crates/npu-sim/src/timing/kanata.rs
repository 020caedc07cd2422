//! A trace for the Konata pipeline viewer, in the Kanata log format, version 4.
//!
//! Each instruction that issues has the stages `F` (fetch and decode), `Q` (in the buffer), `I`
//! (issue and operands) and `X` (until its result can be used, without contention). Killed
//! instructions are flushed. The log shows at most a window of some hundred cycles before an issue,
//! so that it can be written during the run.

use super::sink::{Issue, Sink, text};
use npu_mc::machine::{FETCH_TO_ISSUE, ISSUE_TO_EXECUTE};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// The maximum number of cycles before its issue for which an instruction is shown.
const WINDOW: u64 = 256;
/// The number of cycles for which an instruction without a result is shown to execute.
const SHORTEST: u64 = 1;

/// Writes the log of a run.
pub struct KanataTrace<W: Write> {
    out: W,
    /// Lines that are written when their cycle is complete.
    lines: BTreeMap<u64, String>,
    /// The cycle of the last line written.
    written: Option<u64>,
    next_id: u64,
    retired: u64,
    failed: Option<io::Error>,
}

impl<W: Write> KanataTrace<W> {
    /// Starts a log.
    pub fn new(out: W) -> KanataTrace<W> {
        KanataTrace {
            out,
            lines: BTreeMap::new(),
            written: None,
            next_id: 0,
            retired: 0,
            failed: None,
        }
    }

    /// Writes the rest of the log.
    ///
    /// # Errors
    ///
    /// The first error of the output.
    pub fn finish(mut self) -> io::Result<()> {
        self.flush(u64::MAX);
        if self.written.is_none() {
            self.write("Kanata\t0004\n");
        }
        match self.failed {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }

    fn write(&mut self, text: &str) {
        if self.failed.is_none() {
            self.failed = self.out.write_all(text.as_bytes()).err();
        }
    }

    fn add(&mut self, cycle: u64, line: &str) {
        // A line for an earlier cycle appears at the current cycle of the log.
        let cycle = cycle.max(self.written.unwrap_or(0));
        let lines = self.lines.entry(cycle).or_default();
        lines.push_str(line);
        lines.push('\n');
    }

    /// Writes the lines of cycles before `end`.
    fn flush(&mut self, end: u64) {
        while let Some(entry) = self.lines.first_entry() {
            let cycle = *entry.key();
            if cycle >= end {
                break;
            }
            let lines = entry.remove();
            let time = match self.written {
                None => format!("Kanata\t0004\nC=\t{cycle}\n"),
                Some(before) => format!("C\t{}\n", cycle - before),
            };
            self.written = Some(cycle);
            self.write(&time);
            self.write(&lines);
        }
    }
}

impl<W: Write> Sink for KanataTrace<W> {
    fn issue(&mut self, issue: &Issue) {
        self.flush(issue.cycle.saturating_sub(WINDOW));
        let id = self.next_id;
        self.next_id += 1;
        let fetched = issue.fetched.max(issue.cycle.saturating_sub(WINDOW));
        let buffered = (fetched + u64::from(FETCH_TO_ISSUE) - 1).min(issue.cycle);
        let executed = issue.cycle + u64::from(ISSUE_TO_EXECUTE);
        let end = (issue.cycle + u64::from(issue.latency)).max(executed + SHORTEST);
        let text = text(issue.word);
        let head = format!(
            "I\t{id}\t{id}\t{}\nL\t{id}\t0\t{:08x}: {text}\nS\t{id}\t0\tF",
            issue.thread, issue.pc
        );
        self.add(fetched, &head);
        if buffered < issue.cycle {
            self.add(buffered, &format!("S\t{id}\t0\tQ"));
        }
        self.add(issue.cycle, &format!("S\t{id}\t0\tI"));
        if issue.killed {
            self.add(executed, &format!("R\t{id}\t{}\t1", self.retired));
        } else {
            self.add(executed, &format!("S\t{id}\t0\tX"));
            self.add(end, &format!("R\t{id}\t{}\t0", self.retired));
            self.retired += 1;
        }
    }
}
