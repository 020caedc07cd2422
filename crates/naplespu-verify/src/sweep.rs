//! Finds terms that are equal, from the operands up, so that what is to be shown becomes small.
//!
//! Two terms that have the same value in many trials are candidates; the solver says whether they are equal, and then one takes the
//! place of the other in all terms above. Code and CLIF compute much the same values in the same order, so that each question is
//! about a few operations, whatever stands below.

use crate::solver::{Solver, Verdict};
use crate::term::eval::Evaluator;
use crate::term::smtlib::Detail;
use crate::term::{Bits, Op, Pool, Term};
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Trials at first.
const TRIALS: u64 = 48;
/// Trials that counterexamples may add.
const MOST_TRIALS: usize = 400;
/// How many terms with the same values are asked about for each term.
const CANDIDATES: usize = 3;
/// Time of a question about a few operations, at first.
const SHORT: Duration = Duration::from_millis(500);
/// Time of a question about all that the terms are made of, at first.
const LONG: Duration = Duration::from_millis(1000);
/// How much longer each pass over the terms asks than the one before.
const PATIENCE: u32 = 6;
/// Seeds that are tried to find trials in a context, and trials that suffice.
const SEARCHED: u64 = 2000;
const FEWEST: usize = 6;
/// Passes that make a difference.
const PASSES: u32 = 4;

/// Trials, and which terms are equal to which.
pub struct Sweep {
    trials: Vec<Evaluator>,
    representative: FxHashMap<Term, Term>,
    classes: FxHashMap<(u32, u64), Vec<Term>>,
    members: Vec<Term>,
    /// What holds wherever the terms count.
    context: Option<Term>,
    /// Which pass this is, from 0.
    pass: u32,
    /// Whether a question had no answer in this pass.
    pub is_unsure: bool,
}

/// The constants in terms, as numbers that unknowns are likely to be compared with.
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
    /// Trials for these terms.
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

    /// Trials in which the context holds, for terms that count only there. `None` if hardly any are found.
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

    /// Starts over with what is known, and more time for each question.
    pub fn next_pass(&mut self) {
        self.pass += 1;
        self.is_unsure = false;
        self.classes.clear();
        self.members.clear();
        // Terms that stand for themselves are looked at again.
        self.representative.retain(|term, to| term != to);
    }

    /// The trials.
    pub fn trials(&mut self) -> &mut [Evaluator] {
        &mut self.trials
    }

    /// The term in place of which it is to be used, if one was found.
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

    /// The value that the term has in all trials, if it is always the same.
    fn constant(&mut self, pool: &Pool, term: Term) -> Option<Bits> {
        let mut values = self.trials.iter_mut().map(|trial| trial.value(pool, term));
        let first = values.next()?;
        values.all(|value| value == first).then_some(first)
    }

    /// Goes through all terms below the roots until `deadline`.
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

    /// The representative of a term, all of whose operands are representatives.
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
                // A counterexample tells others apart too.
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
        // What both are made of counts as unknown at first.
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

    /// One more trial, by which classes fall apart.
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
