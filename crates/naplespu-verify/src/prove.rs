//! Proves one function: symbolic execution of code and CLIF, trials, equal terms, and the solver.

use crate::abi::{FloatUnit, Layout};
use crate::answer::{Answer, Reason, Verdict};
use crate::clif::{Clif, ExitKind, Limits};
use crate::confirm::{self, Confirmation};
use crate::floats;
use crate::goals::{ANY_ADDRESS, Goals, goals};
use crate::machine::{self, Code};
use crate::path::all;
use crate::solver::{self, Memo, Solver};
use crate::sweep::Sweep;
use crate::term::eval::Evaluator;
use crate::term::smtlib::Detail;
use crate::term::{Op, Pool, Term, WORD};
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::Function;
use cranelift_naplespu::abi::sig::SigInfo;
use cranelift_naplespu::{CompileError, CompiledCode, Isa};
use npu_mc::errata::Erratum;
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Limits and settings of a proof.
#[derive(Clone, Debug)]
pub struct Options {
    /// The time limit of a function.
    pub timeout: Duration,
    /// The program of the solver.
    pub solver: String,
    /// The directory to which queries are written.
    pub dump: Option<PathBuf>,
    /// The maximum number of executions of a block in a loop.
    pub iterations: u32,
    /// The results of queries, which the proofs with these options share.
    pub memo: Arc<Memo>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(60),
            solver: solver::PROGRAM.to_owned(),
            dump: None,
            iterations: 16,
            memo: Arc::default(),
        }
    }
}

/// The maximum number of terms of a function.
const TERMS: usize = 1_500_000;
/// The factor between the execution limits of an instruction of the code and of a CLIF block.
const CODE_VISITS: u32 = 2;
/// The time of a query about a goal with uninterpreted products.
const ABSTRACT: Duration = Duration::from_secs(4);
/// The maximum number of counterexamples to try on the simulator.
const TRIED: usize = 12;
/// The number of variations of a counterexample that depends on float operations.
const VARIATIONS: u64 = 32;

/// Compiles a function and proves its code.
///
/// # Errors
///
/// The compilation fails.
pub fn prove(func: &Function, isa: &Arc<Isa>, options: &Options) -> Result<Answer, CompileError> {
    let mut ctx = Context::for_function(func.clone());
    let code = isa.compile(&mut ctx, &mut ControlPlane::default())?;
    Ok(prove_code(func, &code, isa, options))
}

/// Proves that code behaves like the function.
pub fn prove_code(func: &Function, code: &CompiledCode, isa: &Arc<Isa>, options: &Options) -> Answer {
    let start = Instant::now();
    let mut answer = Answer::new(func);
    let mut pool = Pool::new();
    let verdict = attempt(&mut pool, func, code, isa, options, start, &mut answer);
    answer.verdict = verdict.unwrap_or_else(Verdict::Undecided);
    answer.time = start.elapsed();
    answer.terms = pool.len();
    answer
}

fn attempt(
    pool: &mut Pool,
    func: &Function,
    code: &CompiledCode,
    isa: &Arc<Isa>,
    options: &Options,
    start: Instant,
    answer: &mut Answer,
) -> Result<Verdict, Reason> {
    let sig = SigInfo::new(&func.signature, &answer.name).map_err(|error| Reason::Unsupported(error.to_string()))?;
    let layout = Layout::new(pool, func, sig, code.frame.clone(), FloatUnit::of(isa.settings()));
    let limits = Limits {
        visits: options.iterations,
        terms: TERMS,
    };
    let clif = Clif::run(func, pool, &layout, limits).map_err(|why| Reason::Unsupported(why.0))?;
    if clif.cut {
        answer.bound = Some(options.iterations);
    }
    let code_limits = Limits {
        visits: options.iterations * CODE_VISITS,
        ..limits
    };
    let errata = Erratum::ALL.iter().copied();
    let mended: Vec<Erratum> = errata.filter(|&erratum| !isa.has_erratum(erratum)).collect();
    let ran = Code::run(func, code, pool, &layout, &clif.calls, code_limits, &mended)
        .map_err(|machine::Unsupported(why)| Reason::Unsupported(why))?;
    answer.assumes = ran.routines.iter().map(|name| format!("%{name}")).collect();
    let is_cut = ran.exits.iter().any(|(kind, _)| *kind == ExitKind::Cut);
    let goals = goals(pool, func, &layout, clif, ran).map_err(Reason::Unsupported)?;
    answer.goals = goals.list.len();
    Proof {
        pool,
        goals,
        is_cut,
        solver: Solver::new(
            &options.solver,
            options.memo.clone(),
            options.dump.clone(),
            &answer.name,
        ),
        deadline: start + options.timeout,
        start,
    }
    .run(func, code, isa, &layout, answer)
}

/// A proof in progress.
struct Proof<'a> {
    pool: &'a mut Pool,
    goals: Goals,
    /// Whether paths of the code end at the limit of visits.
    is_cut: bool,
    solver: Solver,
    start: Instant,
    deadline: Instant,
}

impl Proof<'_> {
    /// Returns the condition under which a goal fails.
    fn failure(&mut self, goal: &Open) -> Term {
        let not = self.pool.not(goal.claim);
        self.pool.and(goal.context, not)
    }

    fn run(
        mut self,
        func: &Function,
        code: &CompiledCode,
        isa: &Arc<Isa>,
        layout: &Layout,
        answer: &mut Answer,
    ) -> Result<Verdict, Reason> {
        let common = all(self.pool, &self.goals.assumptions);
        let list = self.goals.list.clone();
        let mut open: Vec<Open> = Vec::new();
        for goal in list {
            let context = self.pool.and(common, goal.assumption);
            let goal = Open {
                what: goal.what,
                context,
                claim: goal.claim,
            };
            let failure = self.failure(&goal);
            if !self.pool.is_false(failure) {
                open.push(goal);
            }
        }
        answer.open = open.len();
        if open.is_empty() {
            return Ok(Verdict::Proved);
        }
        let roots: Vec<Term> = open.iter().map(|goal| self.failure(goal)).collect();
        let mut sweep = Sweep::new(self.pool, &roots);
        self.make_pointers(&mut sweep, &roots);
        let run = Simulated {
            func,
            code,
            isa,
            layout,
        };

        // Trials with numbers find most errors.
        let mut unconfirmed = None;
        let mut tried = 0;
        for (goal, &failure) in open.iter().zip(&roots) {
            for at in 0..sweep.trials().len() {
                let values = &mut sweep.trials()[at];
                if tried >= TRIED || values.value(self.pool, failure).is_zero() {
                    continue;
                }
                tried += 1;
                let values = values.clone();
                match self.confirm_example(&run, &goal.what, failure, &values) {
                    Err(why @ Reason::Unconfirmed(_)) => unconfirmed = Some(why),
                    Err(why @ Reason::Unsupported(_)) => unconfirmed = unconfirmed.or(Some(why)),
                    other => return other,
                }
            }
        }
        if let Some(why) = unconfirmed {
            return Err(why);
        }
        let result = self.decide(&mut sweep, &roots, open, &run);
        answer.queries = self.solver.queries;
        answer.solving = self.solver.spent;
        match result {
            Ok(None) => Ok(Verdict::Proved),
            Ok(Some(reason)) => Err(reason),
            Err(ended) => ended,
        }
    }

    /// Proves the goals by equal terms and by queries with increasing time limits. Returns the
    /// reason why a goal is still open, if any.
    #[expect(
        clippy::result_large_err,
        reason = "an error ends the proof of a function: there is one"
    )]
    fn decide(
        &mut self,
        sweep: &mut Sweep,
        roots: &[Term],
        mut open: Vec<Open>,
        run: &Simulated<'_>,
    ) -> Result<Option<Reason>, Ended> {
        let quarter = (self.deadline - self.start) / 4;
        let (first, second, third) = (self.start + quarter, self.start + 2 * quarter, self.start + 3 * quarter);
        sweep.run(self.pool, &mut self.solver, roots, first);
        let mut why;
        (open, why) = self.settle_all(Some(sweep), open, ABSTRACT, run)?;
        if !open.is_empty() && !self.solver.is_missing() {
            // Searches terms that are equal only in the context of a goal.
            self.sweep_in_context(&mut open, second);
            (open, why) = self.settle_all(None, open, ABSTRACT, run)?;
        }
        while !open.is_empty() && sweep.is_unsure && !self.solver.is_missing() && Instant::now() < third {
            sweep.next_pass();
            sweep.run(self.pool, &mut self.solver, roots, third);
            (open, why) = self.settle_all(Some(sweep), open, ABSTRACT, run)?;
        }
        if !open.is_empty() && !self.solver.is_missing() {
            (open, why) = self.settle_all(None, open, Duration::MAX, run)?;
        }
        Ok(why.filter(|_| !open.is_empty()))
    }

    /// Replaces equal terms and queries each goal. Returns the open goals, and the reason why the
    /// last one is open.
    #[expect(
        clippy::result_large_err,
        reason = "an error ends the proof of a function: there is one"
    )]
    fn settle_all(
        &mut self,
        sweep: Option<&Sweep>,
        open: Vec<Open>,
        most: Duration,
        run: &Simulated<'_>,
    ) -> Result<(Vec<Open>, Option<Reason>), Ended> {
        let mut left = Vec::new();
        let mut reason = None;
        for goal in open {
            let mut failure = self.failure(&goal);
            if let Some(sweep) = sweep {
                failure = sweep.representative(failure);
            }
            if self.pool.is_false(failure) {
                continue;
            }
            match self.settle(failure, most) {
                Settled::Never => continue,
                Settled::Unknown(why) => reason = Some(self.unknown(&goal.what, why)),
                Settled::Example(values) => return Err(self.confirm_example(run, &goal.what, failure, &values)),
            }
            left.push(goal);
        }
        Ok((left, reason))
    }

    /// Replaces terms in the claims of goals by terms that are equal in the context of the goal.
    fn sweep_in_context(&mut self, open: &mut [Open], deadline: Instant) {
        let contexts: BTreeSet<Term> = open.iter().map(|goal| goal.context).collect();
        for context in contexts {
            let claims: Vec<Term> = open
                .iter()
                .filter(|goal| goal.context == context)
                .map(|goal| goal.claim)
                .collect();
            let Some(mut sweep) = Sweep::in_context(self.pool, &claims, context) else {
                continue;
            };
            sweep.run(self.pool, &mut self.solver, &claims, deadline);
            for goal in open.iter_mut().filter(|goal| goal.context == context) {
                goal.claim = sweep.representative(goal.claim);
            }
        }
    }

    /// Runs a counterexample on the simulator. If it depends on float operations, whose results are
    /// arbitrary, inputs that have some of its values are tried as well.
    fn confirm_example(
        &mut self,
        run: &Simulated<'_>,
        what: &str,
        failure: Term,
        example: &Evaluator,
    ) -> Result<Verdict, Reason> {
        let mut result = self.confirm(run, what, failure, &mut example.clone());
        for seed in 0..VARIATIONS {
            if !matches!(result, Err(Reason::Unsupported(_))) || !self.has_float_functions() {
                break;
            }
            let mut values = example.varied(seed);
            if !values.value(self.pool, failure).is_zero() {
                result = self.confirm(run, what, failure, &mut values);
            }
        }
        result
    }

    /// Runs a counterexample on the simulator. Returns the refutation, or the reason why it does
    /// not count.
    fn confirm(
        &mut self,
        run: &Simulated<'_>,
        what: &str,
        failure: Term,
        values: &mut Evaluator,
    ) -> Result<Verdict, Reason> {
        match confirm::confirm(
            self.pool,
            run.func,
            run.code,
            run.isa,
            run.layout,
            &self.goals.expected,
            values,
        ) {
            Confirmation::Confirmed(example) => Ok(Verdict::Refuted {
                what: what.to_owned(),
                example,
            }),
            Confirmation::Not(_)
                if self.has_float_functions() && !confirm::fails_on_the_unit(self.pool, failure, values) =>
            {
                Err(Reason::Unsupported(format!(
                    "{what}: the result depends on float operations without a meaning here"
                )))
            }
            Confirmation::OnPlaces => Err(Reason::OnPlaces(what.to_owned())),
            // A path of the code can have more visits of an instruction than its CLIF has of a block.
            Confirmation::Not(_) if self.is_cut => Err(Reason::Unsupported(format!(
                "{what}: the code has more iterations of its loops than the limit"
            ))),
            Confirmation::Not(why) => Err(Reason::Unconfirmed(format!("{what}: {why}"))),
        }
    }

    /// Returns whether code or CLIF contain uninterpreted float operations.
    fn has_float_functions(&self) -> bool {
        self.pool
            .symbols()
            .iter()
            .any(|symbol| floats::is_function(&symbol.name))
    }

    fn unknown(&self, what: &str, why: &str) -> Reason {
        match self.solver.is_missing() {
            true => Reason::NoSolver(what.to_owned()),
            false => Reason::Time(format!("{what}: {why}")),
        }
    }

    /// In half of the trials, sets the unknowns that are part of addresses to valid addresses.
    fn make_pointers(&mut self, sweep: &mut Sweep, roots: &[Term]) {
        let mut pointers: FxHashSet<Term> = FxHashSet::default();
        let mut addresses: Vec<Term> = self.goals.expected.written.iter().map(|written| written.0).collect();
        for term in self.pool.cone(roots) {
            if let Op::App(symbol) = self.pool.node(term).op
                && self.pool.symbol(symbol).name == crate::memory::initial_name(crate::memory::Region::Main)
            {
                addresses.extend_from_slice(self.pool.args(term));
            }
        }
        for address in addresses {
            for (term, by) in self.pool.summands(address).0 {
                if by == 1 && matches!(self.pool.node(term).op, Op::Var(_)) {
                    pointers.insert(term);
                }
            }
        }
        let mut pointers: Vec<Term> = pointers.into_iter().collect();
        pointers.sort_unstable();
        let any_address = self.pool.var(ANY_ADDRESS, WORD);
        let written: Vec<Term> = self.goals.expected.written.iter().map(|written| written.0).collect();
        for (number, trial) in sweep.trials().iter_mut().enumerate() {
            if number % 2 == 0 {
                for (at, &pointer) in pointers.iter().enumerate() {
                    // Some areas overlap, and not all are aligned.
                    let offset = (number as u32 * 7 * at as u32) % 256;
                    let offset = if number % 4 == 0 { offset & !63 } else { offset };
                    trial.set(self.pool, pointer, u64::from(confirm::MEMORY + offset).into());
                }
            }
            // Memory differs at written addresses.
            if !written.is_empty() {
                let address = trial.value(self.pool, written[number % written.len()]);
                trial.set(self.pool, any_address, address);
            }
        }
    }

    /// Queries whether a goal can fail.
    fn settle(&mut self, failure: Term, most: Duration) -> Settled {
        let none = FxHashSet::default();
        for (detail, limit) in [(Detail::Abstract, ABSTRACT), (Detail::Full, most)] {
            let left = self.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Settled::Unknown("no time is left");
            }
            match self.solver.check(self.pool, &[failure], detail, &none, left.min(limit)) {
                solver::Verdict::Unsatisfiable => return Settled::Never,
                solver::Verdict::Satisfiable(mut values) => {
                    if !values.value(self.pool, failure).is_zero() {
                        return Settled::Example(values);
                    }
                }
                solver::Verdict::Unknown => {}
            }
        }
        Settled::Unknown("the solver found no answer in time")
    }
}

/// An open goal: the claim has to hold in the context.
struct Open {
    what: String,
    context: Term,
    claim: Term,
}

/// The answer after a counterexample was found.
type Ended = Result<Verdict, Reason>;

/// The inputs of a run on the simulator.
struct Simulated<'a> {
    func: &'a Function,
    code: &'a CompiledCode,
    isa: &'a Arc<Isa>,
    layout: &'a Layout,
}

/// The solver's result about a goal.
enum Settled {
    /// The goal cannot fail.
    Never,
    /// The goal fails with these values.
    Example(Box<Evaluator>),
    /// There is no answer.
    Unknown(&'static str),
}
