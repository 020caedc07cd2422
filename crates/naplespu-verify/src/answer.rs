//! The answers of the prover.

use cranelift_codegen::ir::Function;
use serde_json::{Value, json};
use std::fmt;
use std::time::Duration;

/// The reason why a function is undecided.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reason {
    /// A construct has no semantics here; the text names it.
    Unsupported(String),
    /// The solver timed out; the text names the goal.
    Time(String),
    /// The solver cannot be run, but is needed; the text names the goal.
    NoSolver(String),
    /// The simulator does not confirm a counterexample: it involves an undefined value, or the
    /// prover has a bug.
    Unconfirmed(String),
    /// The result of the CLIF in a counterexample depends on the address of the stack or a symbol, so
    /// the simulator cannot confirm it; the text names the goal.
    OnPlaces(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported(what) => f.write_str(what),
            Self::Time(what) => write!(f, "not decided in time: {what}"),
            Self::NoSolver(what) => write!(
                f,
                "the solver cannot be run, and simplification alone does not prove: {what}"
            ),
            Self::OnPlaces(what) => write!(
                f,
                "the CLIF result in a counterexample depends on the address of the stack or a symbol: {what}"
            ),
            Self::Unconfirmed(what) => write!(f, "the simulator does not confirm a counterexample: {what}"),
        }
    }
}

/// An input for which the code on the simulator deviates from the CLIF.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Example {
    /// The arguments in CLIF syntax.
    pub arguments: Vec<String>,
    /// The behavior of the CLIF, in words.
    pub expected: String,
    /// The behavior of the simulator, in words.
    pub found: String,
    /// A failing run line, if the input can be written as a run line.
    pub run_line: Option<String>,
    /// Memory before the call: addresses and contents.
    pub memory: Vec<(u32, Vec<u8>)>,
}

/// The answer about a function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The code behaves like the CLIF for all inputs.
    Proved,
    /// The code deviates from the CLIF.
    Refuted {
        /// The first goal that fails.
        what: String,
        /// An input for which it fails.
        example: Example,
    },
    /// Neither was proved.
    Undecided(Reason),
}

/// The answer about a function, with statistics.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The name of the function, with `%`.
    pub name: String,
    /// The answer.
    pub verdict: Verdict,
    /// Routines of the runtime that are assumed to be correct.
    pub assumes: Vec<String>,
    /// The number of iterations up to which the answer holds, if loops were cut.
    pub bound: Option<u32>,
    /// The total time.
    pub time: Duration,
    /// The number of solver queries.
    pub queries: usize,
    /// The time of the solver queries.
    pub solving: Duration,
    /// The number of goals.
    pub goals: usize,
    /// The number of goals that simplification did not prove.
    pub open: usize,
    /// The number of terms.
    pub terms: usize,
}

impl Answer {
    /// Creates an undecided answer.
    pub fn new(func: &Function) -> Self {
        Self {
            name: func.name.to_string(),
            verdict: Verdict::Undecided(Reason::Unsupported("not processed".to_owned())),
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
    /// Returns whether the code is wrong, or the prover is wrong: the simulator does not confirm a
    /// counterexample.
    pub fn is_failure(&self) -> bool {
        matches!(
            self.verdict,
            Verdict::Refuted { .. } | Verdict::Undecided(Reason::Unconfirmed(_))
        )
    }

    /// Returns the answer as one word.
    pub fn word(&self) -> &'static str {
        match self.verdict {
            Verdict::Proved => "proved",
            Verdict::Refuted { .. } => "refuted",
            Verdict::Undecided(_) => "undecided",
        }
    }

    /// Returns the answer as JSON.
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

    /// Parses the answer of a proved function from JSON. Returns `None` for other answers.
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
    /// Prints one line, and more for refuted functions.
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
