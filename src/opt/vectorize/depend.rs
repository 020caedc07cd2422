//! Dependences between accesses of different iterations, and the run-time checks that exclude them.
//!
//! A vector iteration executes each instruction for sixteen scalar iterations before the next
//! instruction. This is correct if no later instruction accesses what an earlier instruction
//! accesses in one of the following fifteen iterations, unless both are loads.

use super::access::{Access, Form};
use crate::remarks::Reason;
use clif_opt::linear::LinearSum;
use clif_opt::loops::Ranges;
use cranelift_codegen::ir::{Function, Value};
use smallvec::SmallVec;

/// The maximum number of pairs of arrays that are checked at run time.
const MAX_CHECKS: usize = 6;

/// The maximum distance in bytes of accesses that share a check.
const MAX_SHARED_DISTANCE: u32 = 256;

/// A check at run time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// The distance of two addresses is not in a set of numbers, modulo 2^32.
    Distance {
        /// The accesses. The distance is the second address minus the first, both without their
        /// constants.
        pair: (usize, usize),
        /// The forbidden distances.
        forbidden: Distances,
    },
    /// The two ranges are disjoint over the whole loop. If the second access is invariant, its
    /// range has the given number of bytes.
    Disjoint(usize, usize, u32),
}

/// The numbers from `first` to `first + more`, modulo 2^32. Such an arc of the circle of 32-bit
/// numbers has no smallest element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Distances {
    /// The first number.
    pub first: u32,
    /// The number of further elements.
    pub more: u32,
}

impl Distances {
    /// Returns the numbers from `least` to `most`, each minus `offset`.
    fn new(least: i32, most: i32, offset: u32) -> Self {
        Self {
            first: least.cast_unsigned().wrapping_sub(offset),
            more: most.wrapping_sub(least).cast_unsigned(),
        }
    }

    /// Negates the numbers.
    fn negated(self) -> Self {
        Self {
            first: self.first.wrapping_add(self.more).wrapping_neg(),
            more: self.more,
        }
    }

    /// Returns the arc that covers both and the gap between them, or `None` if it would be half the
    /// circle or more.
    fn join(self, other: Self) -> Option<Self> {
        let from = |one: Self, two: Self| {
            let gap = u64::from(two.first.wrapping_sub(one.first));
            let more = u64::from(one.more).max(gap + u64::from(two.more));
            let more = u32::try_from(more)
                .ok()
                .filter(|&more| more <= i32::MAX.cast_unsigned())?;
            Some(Self { first: one.first, more })
        };
        // The result begins where one of the two begins.
        let arcs = [from(self, other), from(other, self)];
        arcs.into_iter().flatten().min_by_key(|arc| arc.more)
    }
}

/// The dependences of a loop.
#[derive(Debug, Default)]
pub struct Dependences {
    /// The checks at run time.
    pub checks: Vec<Check>,
    /// The loads that may reuse a line loaded in the previous vector iteration, because no store is
    /// near.
    pub may_carry: Vec<bool>,
}

/// Returns the terms of a sum, without its constant.
fn terms(sum: &LinearSum) -> &SmallVec<[(Value, u32); 4]> {
    &sum.terms
}

/// Finds the dependences.
///
/// # Errors
///
/// [`Reason::Distance`] or [`Reason::Overlap`].
pub fn find(
    func: &Function,
    accesses: &[Access],
    iterations: Option<u64>,
    ranges: &Ranges,
) -> Result<Dependences, Reason> {
    let mut found = Dependences {
        checks: Vec::new(),
        may_carry: vec![true; accesses.len()],
    };
    for (second, b) in accesses.iter().enumerate() {
        for (first, a) in accesses[..second].iter().enumerate() {
            if !a.store && !b.store
                || a.is_readonly()
                || b.is_readonly()
                || are_disjoint(func, a, b, iterations, ranges)
            {
                continue;
            }
            let same_stride = a.stride == b.stride;
            if a.form == Form::Invariant {
                found.add(Check::Disjoint(second, first, a.size()));
                continue;
            }
            if !same_stride || b.form == Form::Invariant {
                found.add(Check::Disjoint(first, second, b.size()));
                continue;
            }
            // The range in bytes of distances at which the later access conflicts with the earlier
            // one. A load that reuses the line of the previous vector iteration reads up to one
            // vector iteration early.
            let vector_bytes = a.bytes().cast_signed();
            let carries = matches!(a.form, Form::TwoLines(_)) || matches!(b.form, Form::TwoLines(_));
            let (mut least, mut most) = (1, vector_bytes - 1);
            let same_base = terms(&a.first) == terms(&b.first);
            if same_base {
                let distance = b.first.constant.wrapping_sub(a.first.constant).cast_signed();
                if (least..=most).contains(&distance) {
                    return Err(Reason::Distance(distance));
                }
                if distance.unsigned_abs() < 2 * vector_bytes.unsigned_abs() {
                    found.may_carry[first] = false;
                    found.may_carry[second] = false;
                }
                continue;
            }
            if carries {
                (least, most) = (1 - 2 * vector_bytes, 2 * vector_bytes - 1);
            }
            let constant = b.near.constant.wrapping_sub(a.near.constant);
            found.add(Check::Distance {
                pair: (first, second),
                forbidden: Distances::new(least, most, constant),
            });
        }
    }
    found.join(accesses);
    if found.checks.len() > MAX_CHECKS {
        return Err(Reason::Overlap(found.checks.len()));
    }
    Ok(found)
}

/// Returns whether two accesses are known not to overlap.
fn are_disjoint(func: &Function, a: &Access, b: &Access, iterations: Option<u64>, ranges: &Ranges) -> bool {
    if let (Some(one), Some(other)) = (a.flags.alias_region(), b.flags.alias_region())
        && one != other
    {
        return true;
    }
    let range = |access: &Access| access.slot_range(func, iterations?, ranges);
    match (range(a), range(b)) {
        (Some((one, low, high)), Some((other, from, to))) => one != other || high <= from || to <= low,
        _ => false,
    }
}

impl Dependences {
    fn add(&mut self, check: Check) {
        self.checks.push(check);
    }

    /// Combines the checks of each pair of arrays into one that forbids the union and the gaps.
    fn join(&mut self, accesses: &[Access]) {
        let mut joined: Vec<Check> = Vec::new();
        'next: for check in self.checks.drain(..) {
            for known in &mut joined {
                match (&mut *known, &check) {
                    (
                        Check::Distance { pair, forbidden },
                        &Check::Distance {
                            pair: (first, second),
                            forbidden: more,
                        },
                    ) => {
                        let base = |number: usize| terms(&accesses[number].near);
                        let more = if base(pair.0) == base(first) && base(pair.1) == base(second) {
                            more
                        } else if base(pair.0) == base(second) && base(pair.1) == base(first) {
                            more.negated()
                        } else {
                            continue;
                        };
                        let Some(arc) = forbidden.join(more) else { continue };
                        *forbidden = arc;
                        continue 'next;
                    }
                    (Check::Disjoint(store, position, bytes), &Check::Disjoint(other, next, more)) => {
                        let (near, next_near) = (&accesses[*position].near, &accesses[next].near);
                        let same_place = near.terms == next_near.terms
                            && [*position, next].iter().all(|&at| accesses[at].form == Form::Invariant);
                        if accesses[*store].near != accesses[other].near
                            || accesses[*store].size() != accesses[other].size()
                            || !same_place
                        {
                            continue;
                        }
                        // The range from the lower access to the end of the higher one, if they are
                        // near.
                        let distance = next_near.constant.wrapping_sub(near.constant).cast_signed();
                        if distance.unsigned_abs() > MAX_SHARED_DISTANCE {
                            continue;
                        }
                        let end = i64::from(*bytes).max(i64::from(distance) + i64::from(more));
                        let low = i64::from(distance.min(0));
                        if distance < 0 {
                            *position = next;
                        }
                        *bytes = (end - low) as u32;
                        continue 'next;
                    }
                    _ => {}
                }
            }
            joined.push(check);
        }
        self.checks = joined;
    }
}

#[cfg(test)]
mod tests {
    use super::Distances;

    fn contains(arc: Distances, number: u32) -> bool {
        number.wrapping_sub(arc.first) <= arc.more
    }

    #[test]
    fn joined_arcs_contain_both_wherever_they_lie_on_the_circle() {
        let firsts = [
            0,
            1,
            100,
            i32::MAX as u32 - 3,
            i32::MAX as u32 + 1,
            u32::MAX - 20,
            u32::MAX,
        ];
        let mut joined = 0;
        for first in firsts {
            for other in firsts {
                for (more, others) in [(14, 14), (0, 126), (254, 1)] {
                    let (a, b) = (
                        Distances { first, more },
                        Distances {
                            first: other,
                            more: others,
                        },
                    );
                    for b in [b, b.negated()] {
                        let Some(arc) = a.join(b) else { continue };
                        joined += 1;
                        for part in [a, b] {
                            for step in 0..=part.more {
                                assert!(contains(arc, part.first.wrapping_add(step)), "{a:?} {b:?} {arc:?}");
                            }
                        }
                        assert!(arc.more <= i32::MAX as u32);
                    }
                }
            }
        }
        assert!(joined > 200, "{joined}");
    }

    #[test]
    fn negated_distances_are_those_in_the_other_direction() {
        let arc = Distances::new(1, 15, 2_147_483_644);
        for step in 0..=arc.more {
            assert!(contains(arc.negated(), arc.first.wrapping_add(step).wrapping_neg()));
        }
        assert_eq!(arc.negated().negated(), arc);
    }
}
