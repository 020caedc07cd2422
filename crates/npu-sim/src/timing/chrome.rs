//! A trace for Perfetto and the tracing page of Chrome: JSON trace events, with a track for each
//! thread.
//!
//! A cycle is a microsecond in the viewer. Instructions and stalls are slices, cache misses are
//! instants, cores are processes.

use super::report::Stall;
use super::sink::{Issue, Sink, text};
use crate::machine::THREADS;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Writes the trace of a run.
pub struct ChromeTrace<W: Write> {
    out: W,
    /// Whether the name of each thread was written, by number.
    named: Vec<bool>,
    started: bool,
    line: String,
    failed: Option<io::Error>,
}

impl<W: Write> ChromeTrace<W> {
    /// Starts a trace.
    pub fn new(out: W) -> ChromeTrace<W> {
        ChromeTrace {
            out,
            named: Vec::new(),
            started: false,
            line: String::new(),
            failed: None,
        }
    }

    /// Writes the end of the trace.
    ///
    /// # Errors
    ///
    /// The first error of the output.
    pub fn finish(mut self) -> io::Result<()> {
        let head = if self.started { "" } else { "{\"traceEvents\":[" };
        self.write(&format!("{head}\n]}}\n"));
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

    /// Writes an event of `thread`: `name` and other members in JSON.
    fn event(&mut self, thread: usize, name: &str, members: std::fmt::Arguments<'_>) {
        if self.named.len() <= thread {
            self.named.resize(thread + 1, false);
        }
        if !self.named[thread] {
            self.named[thread] = true;
            let label = format!("\"ph\":\"M\",\"args\":{{\"name\":\"thread {thread}\"}}");
            self.event(thread, "thread_name", format_args!("{label}"));
        }
        let mut line = std::mem::take(&mut self.line);
        line.clear();
        line.push_str(if self.started { ",\n" } else { "{\"traceEvents\":[\n" });
        self.started = true;
        line.push_str("{\"name\":\"");
        for c in name.chars() {
            match c {
                '"' | '\\' => line.extend(['\\', c]),
                c if c.is_control() => line.push(' '),
                c => line.push(c),
            }
        }
        // Writing to a string does not fail.
        let _ = write!(
            line,
            "\",\"pid\":{},\"tid\":{},{members}}}",
            thread / THREADS,
            thread % THREADS
        );
        self.write(&line);
        self.line = line;
    }
}

impl<W: Write> Sink for ChromeTrace<W> {
    fn issue(&mut self, issue: &Issue) {
        let kind = if issue.killed { "killed" } else { "instruction" };
        let (cycle, pc) = (issue.cycle, issue.pc);
        self.event(
            issue.thread,
            &text(issue.word),
            format_args!("\"cat\":\"{kind}\",\"ph\":\"X\",\"ts\":{cycle},\"dur\":1,\"args\":{{\"pc\":\"{pc:#010x}\"}}"),
        );
    }

    fn stall(&mut self, thread: usize, cause: Stall, from: u64, to: u64) {
        let cycles = to.saturating_sub(from);
        self.event(
            thread,
            cause.name(),
            format_args!("\"cat\":\"wait\",\"ph\":\"X\",\"ts\":{from},\"dur\":{cycles}"),
        );
    }

    fn data_miss(&mut self, cycle: u64, thread: usize, line: u32) {
        self.event(
            thread,
            "data miss",
            format_args!(
                "\"cat\":\"miss\",\"ph\":\"i\",\"s\":\"t\",\"ts\":{cycle},\"args\":{{\"address\":\"{:#010x}\"}}",
                line.wrapping_mul(npu_mc::machine::CACHE_LINE)
            ),
        );
    }

    fn instruction_miss(&mut self, cycle: u64, thread: usize, pc: u32) {
        self.event(
            thread,
            "instruction miss",
            format_args!(
                "\"cat\":\"miss\",\"ph\":\"i\",\"s\":\"t\",\"ts\":{cycle},\"args\":{{\"address\":\"{pc:#010x}\"}}"
            ),
        );
    }
}
