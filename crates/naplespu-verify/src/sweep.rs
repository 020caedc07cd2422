//! Finds equal terms bottom-up, so that the goals become small.
//!
//! Two terms with the same value in many trials are candidates. If the solver proves them equal,
//! one replaces the other in all terms above. Code and CLIF compute similar values in the same
//! order, so each query covers only a few operations, regardless of the operands below.

use crate::solver::{Solver, Verdict};
use crate::term::eval::Evaluator;
use crate::term::smtlib::Detail;
use crate::term::{Bits, Op, Pool, Term};
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The initial number of trials.
const TRIALS: u64 = 48;
/// The maximum number of trials after counterexamples are added.
const MOST_TRIALS: usize = 400;
/// The maximum number of candidates that are queried for each term.
const CANDIDATES: usize = 3;
/// The initial time of a query about a few operations.
const SHORT: Duration = Duration::from_millis(500);
/// The initial time of a query about complete terms.
const LONG: Duration = Duration::from_millis(1000);
/// The factor of query times between consecutive passes.
const PATIENCE: u32 = 6;
/// The number of seeds to try for trials in a context, and the minimum number of such trials.
const SEARCHED: u64 = 2000;
const FEWEST: usize = 6;
/// The maximum number of useful passes.
const PASSES: u32 = 4;

/// The trials, and the representatives of terms.
pub struct Sweep {
    trials: Vec<Evaluator>,
    representative: FxHashMap<Term, Term>,
    classes: FxHashMap<(u32, u64), Vec<Term>>,
    members: Vec<Term>,
    /// A condition that holds wherever the terms matter.
    context: Option<Term>,
    /// The number of the pass, from 0.
    pass: u32,
    /// Whether a query of this pass had no answer.
    pub is_unsure: bool,
}

/// Returns the constants in terms, which unknowns are likely to be compared with.
fn palette(pool: &Pool, cone: &[Term]) -> Rc<[u64]> {
    let mut numbers: Vec<u64> = cone
        .iter()
        .filter_map(|&term| match &pool.node(term).op {
            Op::Const(bits) => Some(bits.low()),
            Op::Sum(_, constant) => Some(u64::from(constant.wrapping_neg())),
            _ => None,
        })
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.into()
}

impl Sweep {
    /// Creates trials for these terms.
    pub fn new(pool: &Pool, roots: &[Term]) -> Self {
        let palette = palette(pool, &pool.cone(roots));
        Self {
            trials: (0..TRIALS)
                .map(|seed| Evaluator::with_palette(seed, palette.clone()))
                .collect(),
            representative: FxHashMap::default(),
            classes: FxHashMap::default(),
            members: Vec::new(),
            context: None,
            pass: 0,
            is_unsure: false,
        }
    }

    /// Creates trials that satisfy the context, for terms that matter only there. Returns `None` if
    /// too few are found.
    pub fn in_context(pool: &Pool, roots: &[Term], context: Term) -> Option<Self> {
        let palette = palette(pool, &pool.cone(roots));
        let mut out = Self {
            context: Some(context),
            ..Self::new(pool, roots)
        };
        out.trials = (0..SEARCHED)
            .map(|seed| Evaluator::with_palette(seed, palette.clone()))
            .filter_map(|mut trial| (!trial.value(pool, context).is_zero()).then_some(trial))
            .take(TRIALS as usize)
            .collect();
        (out.trials.len() >= FEWEST).then_some(out)
    }

    /// Starts another pass that keeps the results and has more time for each query.
    pub fn next_pass(&mut self) {
        self.pass += 1;
        self.is_unsure = false;
        self.classes.clear();
        self.members.clear();
        // Terms without a representative are classified again.
        self.representative.retain(|term, to| term != to);
    }

    /// Returns the trials.
    pub fn trials(&mut self) -> &mut [Evaluator] {
        &mut self.trials
    }

    /// Returns the term that replaces this one, or the term itself.
    pub fn representative(&self, term: Term) -> Term {
        self.representative.get(&term).copied().unwrap_or(term)
    }

    fn signature(&mut self, pool: &Pool, term: Term) -> u64 {
        let mut hasher = FxHasher::default();
        for trial in &mut self.trials {
            trial.value(pool, term).hash(&mut hasher);
        }
        crate::term::eval::mixed(hasher.finish())
    }

    /// Returns the value of a term, if it is the same in all trials.
    fn constant(&mut self, pool: &Pool, term: Term) -> Option<Bits> {
        let mut values = self.trials.iter_mut().map(|trial| trial.value(pool, term));
        let first = values.next()?;
        values.all(|value| value == first).then_some(first)
    }

    /// Classifies all terms below the roots, until `deadline`.
    pub fn run(&mut self, pool: &mut Pool, solver: &mut Solver, roots: &[Term], deadline: Instant) {
        for term in pool.cone(roots) {
            if self.representative.contains_key(&term) {
                continue;
            }
            let args: Vec<Term> = pool
                .args(term)
                .to_vec()
                .into_iter()
                .map(|arg| self.representative(arg))
                .collect();
            let rebuilt = pool.rebuild(term, &args);
            let mut known = self.representative(rebuilt);
            if !self.representative.contains_key(&rebuilt) && Instant::now() < deadline {
                known = self.classify(pool, solver, rebuilt, deadline);
                self.representative.insert(rebuilt, known);
            }
            self.representative.insert(term, known);
        }
    }

    /// Returns the representative of a term whose operands are representatives.
    fn classify(&mut self, pool: &mut Pool, solver: &mut Solver, term: Term, deadline: Instant) -> Term {
        if matches!(pool.node(term).op, Op::Const(_) | Op::Not) {
            return term;
        }
        let mut rounds = 0;
        loop {
            rounds += 1;
            let before = self.trials.len();
            let mut candidates = Vec::new();
            if let Some(value) = self.constant(pool, term) {
                candidates.push(pool.constant(pool.width(term), value));
            }
            let key = (pool.width(term), self.signature(pool, term));
            candidates.extend(self.classes.get(&key).into_iter().flatten().take(CANDIDATES));
            for candidate in candidates {
                if Instant::now() >= deadline {
                    break;
                }
                if self.are_equal(pool, solver, term, candidate) {
                    return candidate;
                }
                // The counterexample may distinguish other candidates too.
                if self.trials.len() != before {
                    break;
                }
            }
            if self.trials.len() == before || rounds > 8 {
                break;
            }
        }
        let key = (pool.width(term), self.signature(pool, term));
        self.classes.entry(key).or_default().push(term);
        self.members.push(term);
        term
    }

    fn are_equal(&mut self, pool: &mut Pool, solver: &mut Solver, a: Term, b: Term) -> bool {
        let both = matches!(
            (&pool.node(a).op, &pool.node(b).op),
            (Op::Var(_), Op::Var(_) | Op::Const(_))
        );
        if both {
            return false;
        }
        let same = pool.eq(a, b);
        if let Some(value) = pool.as_const(same) {
            return !value.is_zero();
        }
        let differ = pool.not(same);
        let patience = PATIENCE.pow(self.pass.min(PASSES));
        // Common subterms count as unknowns at first.
        let (x, y) = (pool.cone(&[a]), pool.cone(&[b]));
        let of_a: FxHashSet<Term> = x.into_iter().filter(|&term| term != a).collect();
        let cut: FxHashSet<Term> = y
            .into_iter()
            .filter(|term| of_a.contains(term) && pool.as_const(*term).is_none())
            .collect();
        let none = FxHashSet::default();
        if !cut.is_empty() {
            match solver.check(pool, &[differ], Detail::Abstract, &cut, SHORT * patience) {
                Verdict::Unsatisfiable => return true,
                Verdict::Satisfiable(_) | Verdict::Unknown => {}
            }
        }
        let mut assertions = vec![differ];
        assertions.extend(self.context);
        for detail in [Detail::Abstract, Detail::Full] {
            match solver.check(pool, &assertions, detail, &none, LONG * patience) {
                Verdict::Unsatisfiable => return true,
                Verdict::Satisfiable(values) => {
                    let mut values = *values;
                    if assertions.iter().all(|&term| !values.value(pool, term).is_zero()) {
                        self.add_trial(pool, values);
                        return false;
                    }
                }
                Verdict::Unknown => {
                    self.is_unsure = true;
                    return false;
                }
            }
        }
        false
    }

    /// Adds a trial, which splits classes.
    fn add_trial(&mut self, pool: &Pool, values: Evaluator) {
        if self.trials.len() >= MOST_TRIALS {
            return;
        }
        self.trials.push(values);
        let members = self.members.clone();
        self.classes.clear();
        for term in members {
            let key = (pool.width(term), self.signature(pool, term));
            self.classes.entry(key).or_default().push(term);
        }
    }
}
