//! Answers.

use cranelift_codegen::ir::Function;
use serde_json::{Value, json};
use std::fmt;
use std::time::Duration;

/// Why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reason {
    /// Something has no meaning here; what.
    Unsupported(String),
    /// The solver needs more time; for what.
    Time(String),
    /// A solver is needed and there is none; for what.
    NoSolver(String),
    /// An example was found with which the simulator does what CLIF says: a value that nothing defines, or a fault of this prover.
    Unconfirmed(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported(what) => f.write_str(what),
            Self::Time(what) => write!(f, "not decided in time: {what}"),
            Self::NoSolver(what) => write!(
                f,
                "the solver cannot be run, and simplification alone does not show: {what}"
            ),
            Self::Unconfirmed(what) => write!(f, "an example that the simulator does not confirm: {what}"),
        }
    }
}

/// An input with which code does something else than CLIF says, on the simulator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Example {
    /// The arguments as CLIF writes them.
    pub arguments: Vec<String>,
    /// What CLIF says, in words.
    pub expected: String,
    /// What the simulator does, in words.
    pub found: String,
    /// A line for the file that fails, if the input can be said in one.
    pub run_line: Option<String>,
    /// Bytes of memory before the call: address and contents.
    pub memory: Vec<(u32, Vec<u8>)>,
}

/// The answer about a function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The code does what CLIF says for all inputs.
    Proved,
    /// It does not.
    Refuted {
        /// What is wrong first.
        what: String,
        /// For which input.
        example: Example,
    },
    /// Neither was shown.
    Undecided(Reason),
}

/// What is known of a function.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The function, with `%`.
    pub name: String,
    /// The answer.
    pub verdict: Verdict,
    /// Routines of the runtime that are trusted to do what they are for.
    pub assumes: Vec<String>,
    /// If loops were cut: the number of iterations up to which the answer holds.
    pub bound: Option<u32>,
    /// Time taken.
    pub time: Duration,
    /// Questions to the solver.
    pub queries: usize,
    /// Time that they took.
    pub solving: Duration,
    /// What had to be shown.
    pub goals: usize,
    /// How much of that simplification left open.
    pub open: usize,
    /// Terms made.
    pub terms: usize,
}

impl Answer {
    /// Nothing is known.
    pub fn new(func: &Function) -> Self {
        Self {
            name: func.name.to_string(),
            verdict: Verdict::Undecided(Reason::Unsupported("nothing was done".to_owned())),
            assumes: Vec::new(),
            bound: None,
            time: Duration::ZERO,
            queries: 0,
            solving: Duration::ZERO,
            goals: 0,
            open: 0,
            terms: 0,
        }
    }
}

impl Answer {
    /// The answer as one word.
    pub fn word(&self) -> &'static str {
        match self.verdict {
            Verdict::Proved => "proved",
            Verdict::Refuted { .. } => "refuted",
            Verdict::Undecided(_) => "undecided",
        }
    }

    /// The answer as JSON.
    pub fn to_json(&self) -> Value {
        let mut out = json!({
            "function": self.name,
            "answer": self.word(),
            "assumes": self.assumes,
            "seconds": self.time.as_secs_f64(),
            "solver_seconds": self.solving.as_secs_f64(),
            "queries": self.queries,
            "goals": self.goals,
            "open_after_simplification": self.open,
        });
        if let Some(bound) = self.bound {
            out["iterations"] = bound.into();
        }
        match &self.verdict {
            Verdict::Proved => {}
            Verdict::Refuted { what, example } => {
                out["what"] = what.as_str().into();
                out["arguments"] = json!(example.arguments);
                out["expected"] = example.expected.as_str().into();
                out["found"] = example.found.as_str().into();
                out["run_line"] = json!(example.run_line);
                let memory = example
                    .memory
                    .iter()
                    .map(|(address, bytes)| json!({"address": address, "bytes": bytes}));
                out["memory"] = memory.collect();
            }
            Verdict::Undecided(reason) => out["reason"] = reason.to_string().into(),
        }
        out
    }

    /// The answer that a function is proved, from JSON.
    pub fn proved_from_json(func: &Function, value: &Value) -> Option<Self> {
        if value.get("answer")?.as_str()? != "proved" {
            return None;
        }
        let number = |key: &str| value.get(key).and_then(Value::as_u64).unwrap_or(0) as usize;
        let seconds = |key: &str| {
            let seconds = value.get(key).and_then(Value::as_f64).unwrap_or(0.0);
            Duration::try_from_secs_f64(seconds).unwrap_or_default()
        };
        let assumes = value.get("assumes")?.as_array()?.iter();
        Some(Self {
            verdict: Verdict::Proved,
            assumes: assumes.filter_map(Value::as_str).map(str::to_owned).collect(),
            bound: match value.get("iterations") {
                Some(bound) => Some(u32::try_from(bound.as_u64()?).ok()?),
                None => None,
            },
            time: seconds("seconds"),
            solving: seconds("solver_seconds"),
            queries: number("queries"),
            goals: number("goals"),
            open: number("open_after_simplification"),
            ..Self::new(func)
        })
    }
}

impl fmt::Display for Answer {
    /// One line, and more for what was refuted.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.word())?;
        if let Some(bound) = self.bound {
            write!(f, ", for at most {bound} iterations of each loop")?;
        }
        if !self.assumes.is_empty() {
            write!(f, ", assumes: {}", self.assumes.join(", "))?;
        }
        match &self.verdict {
            Verdict::Proved => Ok(()),
            Verdict::Undecided(reason) => write!(f, ": {reason}"),
            Verdict::Refuted { what, example } => {
                write!(f, ": {what}")?;
                write!(f, "\n  arguments: {}", example.arguments.join(", "))?;
                for (address, bytes) in &example.memory {
                    let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                    write!(f, "\n  memory at {address:#x}: {}", bytes.join(" "))?;
                }
                write!(f, "\n  CLIF: {}\n  simulator: {}", example.expected, example.found)?;
                match &example.run_line {
                    Some(line) => write!(f, "\n  {line}"),
                    None => Ok(()),
                }
            }
        }
    }
}
