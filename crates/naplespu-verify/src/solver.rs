//! Runs a solver as a process with a text interface.

use crate::term::eval::Evaluator;
use crate::term::smtlib::{self, Detail, Query};
use crate::term::{Bits, Op, Pool, Symbol, Term};
use easy_smt::{Context, ContextBuilder};
use rustc_hash::{FxHashMap, FxHashSet};
use sha2::{Digest as _, Sha256};
use std::cell::RefCell;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The default solver.
pub const PROGRAM: &str = "z3";

/// The memory limit of the solver, in megabytes.
const MEMORY: u32 = 4096;
/// The time that a query may exceed its limit at least, before the process terminates.
const GRACE: Duration = Duration::from_secs(1);
/// The seconds that a process lives longer than its first query may take. Z3 does not always stop at
/// the limit of a query; it always terminates at the limit of the process. Starting another process
/// takes 20 ms.
const LIFETIME: u64 = 2;

/// The solver's result of a query.
pub enum Verdict {
    /// No values satisfy all assertions.
    Unsatisfiable,
    /// These values satisfy the assertions, up to the detail of the query.
    Satisfiable(Box<Evaluator>),
    /// The solver has no answer or cannot be run.
    Unknown,
}

/// Results of earlier queries by their texts, shared by the proofs of many functions. Lanes, and
/// functions that differ in a few instructions, have many queries in common.
#[derive(Default, Debug)]
pub struct Memo(Mutex<FxHashMap<[u8; 32], Known>>);

/// The known result of a query.
#[derive(Clone, Debug)]
enum Known {
    /// No values satisfy the assertions.
    Unsatisfiable,
    /// These values of the unknowns satisfy the assertions, in the order of the query.
    Satisfiable(Vec<Bits>),
}

impl Memo {
    fn key(text: &str) -> [u8; 32] {
        Sha256::digest(text.as_bytes()).into()
    }

    fn get(&self, key: &[u8; 32]) -> Option<Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    fn put(&self, key: [u8; 32], known: Known) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key, known);
    }
}

/// A process of the solver.
struct Process {
    program: String,
    context: Context,
    /// The time at which it terminates by itself.
    ends: Instant,
    /// The number of queries so far. The context keeps the text of each one.
    queries: u32,
}

/// The maximum number of queries of a process.
const QUERIES: u32 = 500;

thread_local! {
    /// The process of the thread between the proofs of two functions.
    static IDLE: RefCell<Option<Process>> = const { RefCell::new(None) };
}

/// A solver, started at its first query.
pub struct Solver {
    program: String,
    memo: Arc<Memo>,
    process: Option<Process>,
    dump: Option<PathBuf>,
    name: String,
    /// The number of queries.
    pub queries: usize,
    /// The time spent in queries.
    pub spent: Duration,
    failed: bool,
}

/// Returns whether a program exists and prints its version.
pub fn is_installed(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

impl Solver {
    /// Creates a solver for the queries of one function. With `dump`, queries are written to that
    /// directory, in files named after `name`.
    pub fn new(program: &str, memo: Arc<Memo>, dump: Option<PathBuf>, name: &str) -> Self {
        let name = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .collect();
        Self {
            program: program.to_owned(),
            memo,
            process: None,
            dump,
            name,
            queries: 0,
            spent: Duration::ZERO,
            failed: false,
        }
    }

    /// Returns whether the solver could not be run.
    pub fn is_missing(&self) -> bool {
        self.failed
    }

    fn context(&mut self, time: Duration) -> Option<&mut Context> {
        if self.failed {
            return None;
        }
        if self.process.is_none() {
            self.process = IDLE.take().filter(|idle| idle.program == self.program);
        }
        let is_usable = |process: &Process| process.queries < QUERIES && process.ends > Instant::now() + time + GRACE;
        if !self.process.as_ref().is_some_and(is_usable) {
            let seconds = time.as_secs() + LIFETIME;
            let mut builder = ContextBuilder::new();
            builder.solver(&self.program).solver_args([
                "-smt2".to_owned(),
                "-in".to_owned(),
                format!("-T:{seconds}"),
                format!("-memory:{MEMORY}"),
            ]);
            match builder.build() {
                Ok(context) => {
                    self.process = Some(Process {
                        program: self.program.clone(),
                        context,
                        ends: Instant::now() + Duration::from_secs(seconds),
                        queries: 0,
                    });
                }
                Err(_) => {
                    self.failed = true;
                    return None;
                }
            }
        }
        let process = self.process.as_mut()?;
        process.queries += 1;
        Some(&mut process.context)
    }

    /// Queries whether all assertions can hold. Terms in `cut` count as unknowns.
    pub fn check(
        &mut self,
        pool: &Pool,
        assertions: &[Term],
        detail: Detail,
        cut: &FxHashSet<Term>,
        time: Duration,
    ) -> Verdict {
        let start = Instant::now();
        let verdict = self.ask(pool, assertions, detail, cut, time);
        self.spent += start.elapsed();
        verdict.unwrap_or(Verdict::Unknown)
    }

    fn ask(
        &mut self,
        pool: &Pool,
        assertions: &[Term],
        detail: Detail,
        cut: &FxHashSet<Term>,
        time: Duration,
    ) -> Option<Verdict> {
        let query = smtlib::query(pool, assertions, detail, cut);
        let key = Memo::key(&query.text);
        match self.memo.get(&key) {
            Some(Known::Unsatisfiable) => return Some(Verdict::Unsatisfiable),
            Some(Known::Satisfiable(values)) => return Some(satisfied(pool, &query, &values)),
            None => {}
        }
        let logic = match query.text.contains("(declare-fun ") {
            true => "QF_UFBV",
            false => "QF_BV",
        };
        let text = format!("(set-logic {logic})\n{}(check-sat)", query.text);
        if let Some(folder) = &self.dump {
            let file = folder.join(format!("{}-{}.smt2", self.name, self.queries));
            // A failure to write the query does not prevent it.
            let _ = std::fs::write(file, format!("{text}\n"));
        }
        self.queries += 1;
        let milliseconds = time.as_millis().max(1);
        let text = format!("(reset)\n(set-option :print-success false)\n(set-option :timeout {milliseconds})\n{text}");
        let context = self.context(time)?;
        let command = context.atom(text);
        let mut answer = context.raw_send(command).and_then(|()| context.raw_recv());
        // The solver still acknowledges the first commands, because it was started in that mode.
        while let Ok(line) = answer
            && context.get_atom(line) == Some("success")
        {
            answer = context.raw_recv();
        }
        let answer = match answer {
            Ok(answer) => context.get_atom(answer).map(str::to_owned),
            Err(_) => {
                self.process = None;
                return None;
            }
        };
        match answer.as_deref() {
            Some("unsat") => {
                self.memo.put(key, Known::Unsatisfiable);
                Some(Verdict::Unsatisfiable)
            }
            Some("sat") => {
                let verdict = self.model(pool, &query, cut)?;
                if let Verdict::Satisfiable(values) = &verdict
                    && !has_functions(pool, &query)
                {
                    let unknowns = unknowns(pool, &query);
                    let mut values = values.clone();
                    let values = unknowns.map(|term| values.value(pool, term)).collect();
                    self.memo.put(key, Known::Satisfiable(values));
                }
                Some(verdict)
            }
            Some("unknown") => None,
            _ => {
                // After an error, the state of the process is undefined.
                self.process = None;
                None
            }
        }
    }

    /// Reads the values that satisfy the last query. Functions are read at the arguments that they
    /// have with these values.
    fn model(&mut self, pool: &Pool, query: &Query, cut: &FxHashSet<Term>) -> Option<Verdict> {
        let mut values = Evaluator::new(0);
        if !cut.is_empty() {
            return Some(Verdict::Satisfiable(Box::new(values)));
        }
        let numbered = query.order.iter().copied().enumerate();
        let asked: Vec<(usize, Term)> = numbered
            .filter(|&(_, term)| matches!(pool.node(term).op, Op::Var(_) | Op::App(_)))
            .collect();
        if asked.is_empty() {
            return Some(Verdict::Satisfiable(Box::new(values)));
        }
        let names: Vec<String> = asked.iter().map(|(number, _)| format!("t{number}")).collect();
        let context = &mut self.process.as_mut()?.context;
        let command = context.atom(format!("(get-value ({}))", names.join(" ")));
        let answer = context.raw_send(command).and_then(|()| context.raw_recv()).ok()?;
        let pairs = context.get_list(answer)?.to_vec();
        let mut applications: Vec<(Symbol, Term, Bits)> = Vec::new();
        for (pair, (_, term)) in pairs.into_iter().zip(asked) {
            let value = context.get_list(pair)?.get(1).copied()?;
            let value = parse(context.get_atom(value)?)?;
            match pool.node(term).op {
                Op::App(symbol) => applications.push((symbol, term, value)),
                _ => values.set(pool, term, value),
            }
        }
        for (symbol, term, value) in applications {
            let args: Vec<Bits> = pool.args(term).iter().map(|&arg| values.value(pool, arg)).collect();
            values.set_application(symbol, args, value);
        }
        Some(Verdict::Satisfiable(Box::new(values)))
    }
}

impl Drop for Solver {
    fn drop(&mut self) {
        if let Some(process) = self.process.take() {
            IDLE.set(Some(process));
        }
    }
}

/// Returns whether functions of unknowns occur in a query.
fn has_functions(pool: &Pool, query: &Query) -> bool {
    query.order.iter().any(|&term| matches!(pool.node(term).op, Op::App(_)))
}

/// Returns the unknowns of a query, in its order.
fn unknowns<'a>(pool: &'a Pool, query: &'a Query) -> impl Iterator<Item = Term> + 'a {
    let is_unknown = |term: &Term| matches!(pool.node(*term).op, Op::Var(_));
    query.order.iter().copied().filter(is_unknown)
}

/// Returns the verdict that the unknowns of a query have these values.
fn satisfied(pool: &Pool, query: &Query, known: &[Bits]) -> Verdict {
    let mut values = Evaluator::new(0);
    for (term, &value) in unknowns(pool, query).zip(known) {
        values.set(pool, term, value);
    }
    Verdict::Satisfiable(Box::new(values))
}

/// Parses a constant in the solver's syntax.
fn parse(text: &str) -> Option<Bits> {
    let (digits, bits) = match text.strip_prefix("#x") {
        Some(digits) => (digits, 4),
        None => (text.strip_prefix("#b")?, 1),
    };
    let mut value = Bits::ZERO;
    for digit in digits.chars() {
        let digit = digit.to_digit(1 << bits)?;
        value = value.shl(bits, crate::term::MAX_WIDTH).or(Bits::from(u64::from(digit)));
    }
    Some(value)
}
