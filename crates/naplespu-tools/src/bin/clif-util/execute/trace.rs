//! The traces of `--trace`.

use super::instruction_text;
use super::places::Places;
use crate::{Outcome, Stop};
use npu_sim::{ChromeTrace, Issue, KanataTrace, Sink, TraceEvent};
use std::fs::File;
use std::io::{BufWriter, Stdout, Write as _};
use std::path::{Path, PathBuf};

/// The requested trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceArg {
    /// A line for each instruction on standard output.
    Text,
    /// A log for the Konata viewer.
    Kanata(PathBuf),
    /// JSON for Perfetto.
    Chrome(PathBuf),
}

/// Parses the argument of `--trace`.
pub fn parse(text: &str) -> Result<TraceArg, String> {
    match text.split_once(':') {
        None if text == "text" => Ok(TraceArg::Text),
        Some(("kanata", file)) if !file.is_empty() => Ok(TraceArg::Kanata(file.into())),
        Some(("chrome", file)) if !file.is_empty() => Ok(TraceArg::Chrome(file.into())),
        _ => Err("the forms are `text`, `kanata:FILE` and `chrome:FILE`".to_owned()),
    }
}

impl TraceArg {
    /// Returns whether the trace shows cycles.
    pub fn needs_timing(&self) -> bool {
        *self != Self::Text
    }

    /// Starts a trace.
    pub fn start(&self) -> Result<Trace, Stop> {
        let create = |path: &Path| match File::create(path) {
            Ok(file) => Ok(BufWriter::new(file)),
            Err(error) => Err(Stop::of_file(path, &error)),
        };
        Ok(match self {
            Self::Text => Trace::Text(TextTrace::default()),
            Self::Kanata(path) => Trace::Kanata(KanataTrace::new(create(path)?), path.clone()),
            Self::Chrome(path) => Trace::Chrome(ChromeTrace::new(create(path)?), path.clone()),
        })
    }
}

/// A trace of one call.
pub enum Trace {
    /// Lines on standard output.
    Text(TextTrace),
    /// A file for Konata.
    Kanata(KanataTrace<BufWriter<File>>, PathBuf),
    /// A file for Perfetto.
    Chrome(ChromeTrace<BufWriter<File>>, PathBuf),
}

impl Trace {
    /// Returns the receiver of the pipeline's events.
    pub fn sink(&mut self) -> &mut dyn Sink {
        match self {
            Self::Text(text) => text,
            Self::Kanata(trace, _) => trace,
            Self::Chrome(trace, _) => trace,
        }
    }

    /// Writes the rest of the trace.
    pub fn finish(self) -> Outcome {
        let (written, path) = match self {
            Self::Text(mut text) => {
                text.closed |= text.out.flush().is_err();
                return if text.closed { Err(Stop::Closed) } else { Ok(()) };
            }
            Self::Kanata(trace, path) => (trace.finish().map(drop), path),
            Self::Chrome(trace, path) => (trace.finish().map(drop), path),
        };
        written.map_err(|error| Stop::of_file(&path, &error))
    }
}

/// Prints a line for each instruction.
pub struct TextTrace {
    out: BufWriter<Stdout>,
    /// Whether the reader has ended.
    closed: bool,
    /// The thread of the last instruction, and its source location.
    last: Option<(usize, String)>,
}

impl Default for TextTrace {
    fn default() -> Self {
        Self {
            out: BufWriter::new(std::io::stdout()),
            closed: false,
            last: None,
        }
    }
}

impl TextTrace {
    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        self.closed = self.closed || writeln!(self.out, "{text}").is_err();
    }

    /// Prints an instruction with its effects, after its source location if that differs from the
    /// previous one.
    pub fn event<P: Places>(&mut self, event: &TraceEvent<'_>, places: &P) {
        let name = places.name(event.pc).map(|(name, _)| name);
        let line = places.line(event.pc).map(|(file, line)| format!(" at {file}:{line}"));
        if name.is_some() || line.is_some() {
            let place = format!("{}{}", name.unwrap_or("??"), line.unwrap_or_default());
            let place = (event.thread, place);
            if self.last.as_ref() != Some(&place) {
                self.line(format_args!("# {}", place.1));
                self.last = Some(place);
            }
        }
        self.line(format_args!("{event}"));
    }
}

/// Prints cycle, thread, address, word and text of each issued instruction, and `x` if it is
/// killed.
impl Sink for TextTrace {
    fn issue(&mut self, issue: &Issue) {
        let text = instruction_text(issue.word);
        let killed = if issue.killed { " x" } else { "" };
        let (cycle, thread, pc, word) = (issue.cycle, issue.thread, issue.pc, issue.word);
        self.line(format_args!("{cycle} {thread} {pc:08x} {word:08x}  {text}{killed}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_of_traces() {
        assert_eq!(parse("text"), Ok(TraceArg::Text));
        assert_eq!(parse("kanata:a:b"), Ok(TraceArg::Kanata("a:b".into())));
        assert_eq!(parse("chrome:out"), Ok(TraceArg::Chrome("out".into())));
        for text in ["", "kanata", "kanata:", "pdf:out", "text:out"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
