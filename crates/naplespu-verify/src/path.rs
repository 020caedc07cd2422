//! Path conditions, and their join.

use crate::term::{Pool, Term};

/// The conditions of a path, in the order in which they occurred; all of them hold.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Path(Vec<Term>);

impl Path {
    /// Returns the path with one more condition, or `None` if it contradicts the path.
    pub fn with(&self, pool: &mut Pool, condition: Term) -> Option<Self> {
        if pool.is_true(condition) || self.0.contains(&condition) {
            return Some(self.clone());
        }
        let not = pool.not(condition);
        if pool.is_false(condition) || self.0.contains(&not) {
            return None;
        }
        let mut out = self.clone();
        out.0.push(condition);
        Some(out)
    }

    /// Returns the conjunction of the conditions.
    pub fn condition(&self, pool: &mut Pool) -> Term {
        all(pool, &self.0)
    }

    /// Returns the conditions.
    pub fn conditions(&self) -> &[Term] {
        &self.0
    }

    /// Joins two mutually exclusive paths. Returns the joined path, and a condition that is 1 on
    /// `self` and 0 on `other`.
    pub fn join(&self, other: &Self, pool: &mut Pool) -> (Self, Term) {
        let common = self.0.iter().zip(&other.0).take_while(|(a, b)| a == b).count();
        let (a, b) = (&self.0[common..], &other.0[common..]);
        let first = all(pool, a);
        let second = all(pool, b);
        // A canonical choice among equivalent selectors, so that CLIF and code use the same one.
        let selector = match (a.len(), first) <= (b.len(), second) {
            true => first,
            false => pool.not(second),
        };
        let mut out = Self(self.0[..common].to_vec());
        let either = pool.or(first, second);
        if !pool.is_true(either) {
            out.0.push(either);
        }
        (out, selector)
    }
}

/// Returns the conjunction of conditions.
pub fn all(pool: &mut Pool, conditions: &[Term]) -> Term {
    let mut out = pool.bool(true);
    for &condition in conditions {
        out = pool.and(out, condition);
    }
    out
}

/// Returns the disjunction of conditions.
pub fn any(pool: &mut Pool, conditions: &[Term]) -> Term {
    let mut out = pool.bool(false);
    for &condition in conditions {
        out = pool.or(out, condition);
    }
    out
}
