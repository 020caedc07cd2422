//! What has to hold for control to be at a place, and how two ways to it join.

use crate::term::{Pool, Term};

/// Conditions that all hold, in the order in which they were met.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Path(Vec<Term>);

impl Path {
    /// The path with one more condition. `None` if it contradicts what holds already.
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

    /// The conditions as one.
    pub fn condition(&self, pool: &mut Pool) -> Term {
        all(pool, &self.0)
    }

    /// The conditions.
    pub fn conditions(&self) -> &[Term] {
        &self.0
    }

    /// The path on which one of two is, of which exactly one is at a time, and a condition that is 1 on the first one and 0 on the
    /// second one.
    pub fn join(&self, other: &Self, pool: &mut Pool) -> (Self, Term) {
        let common = self.0.iter().zip(&other.0).take_while(|(a, b)| a == b).count();
        let (a, b) = (&self.0[common..], &other.0[common..]);
        let first = all(pool, a);
        let second = all(pool, b);
        // Of conditions that say the same here, CLIF and code take the same one.
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

/// Conditions as one.
pub fn all(pool: &mut Pool, conditions: &[Term]) -> Term {
    let mut out = pool.bool(true);
    for &condition in conditions {
        out = pool.and(out, condition);
    }
    out
}

/// Whether at least one of the conditions holds.
pub fn any(pool: &mut Pool, conditions: &[Term]) -> Term {
    let mut out = pool.bool(false);
    for &condition in conditions {
        out = pool.or(out, condition);
    }
    out
}
