//! Which accesses of different rounds may be to the same place, and what has to be checked at run time so that none are.
//!
//! Sixteen rounds at a time, each instruction is done for all of them before the next one. That is as good as round after round as
//! long as no later instruction of a round accesses what an earlier one accesses in one of the next fifteen rounds, if one of
//! the two stores.

use super::access::{Access, Form};
use crate::remarks::Reason;
use clif_opt::linear::Sum;
use clif_opt::loops::Ranges;
use cranelift_codegen::ir::{Function, Value};
use smallvec::SmallVec;

/// How many pairs of arrays are checked at run time at most.
const MOST: usize = 6;

/// Places that are so many bytes apart at most are checked together.
const FAR: u32 = 256;

/// A check at run time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// The distance of two addresses is not one of some numbers, modulo 2^32.
    Apart {
        /// The accesses whose addresses, without their constants, are meant: the second minus the first is the distance.
        pair: (usize, usize),
        /// The forbidden distances.
        forbidden: Distances,
    },
    /// What the first access has in all rounds does not overlap with what the second one has there, or with so many bytes from
    /// there on if that is the same in all rounds.
    Disjoint(usize, usize, u32),
}

/// The numbers from `first` to `first + more`, modulo 2^32: an arc of the circle of 32-bit numbers, which has no smallest element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Distances {
    /// The first number.
    pub first: u32,
    /// How many numbers follow it.
    pub more: u32,
}

impl Distances {
    /// The numbers from `least` to `most`, each minus `offset`.
    fn new(least: i32, most: i32, offset: u32) -> Self {
        Self {
            first: least.cast_unsigned().wrapping_sub(offset),
            more: most.wrapping_sub(least).cast_unsigned(),
        }
    }

    /// The negated numbers.
    fn negated(self) -> Self {
        Self {
            first: self.first.wrapping_add(self.more).wrapping_neg(),
            more: self.more,
        }
    }

    /// The arc of both and the gap between them; `None` if it would be half the circle or more.
    fn join(self, other: Self) -> Option<Self> {
        let from = |one: Self, two: Self| {
            let gap = u64::from(two.first.wrapping_sub(one.first));
            let more = u64::from(one.more).max(gap + u64::from(two.more));
            let more = u32::try_from(more)
                .ok()
                .filter(|&more| more <= i32::MAX.cast_unsigned())?;
            Some(Self { first: one.first, more })
        };
        // The arc begins where one of them begins.
        let arcs = [from(self, other), from(other, self)];
        arcs.into_iter().flatten().min_by_key(|arc| arc.more)
    }
}

/// What is known of the accesses of a loop.
#[derive(Debug, Default)]
pub struct Dependences {
    /// What is checked at run time.
    pub checks: Vec<Check>,
    /// The loads that may take over from a round what it loaded for the next one: no store comes near.
    pub may_carry: Vec<bool>,
}

/// A sum without its constant.
fn terms(sum: &Sum) -> &SmallVec<[(Value, u32); 4]> {
    &sum.terms
}

/// Looks for dependences.
///
/// # Errors
///
/// [`Reason::Distance`] and [`Reason::Overlap`].
pub fn find(func: &Function, accesses: &[Access], rounds: Option<u64>, ranges: &Ranges) -> Result<Dependences, Reason> {
    let mut found = Dependences {
        checks: Vec::new(),
        may_carry: vec![true; accesses.len()],
    };
    for (second, b) in accesses.iter().enumerate() {
        for (first, a) in accesses[..second].iter().enumerate() {
            if !a.store && !b.store || a.is_readonly() || b.is_readonly() || are_apart(func, a, b, rounds, ranges) {
                continue;
            }
            let same_stride = a.stride == b.stride;
            if a.form == Form::OnePlace {
                found.add(Check::Disjoint(second, first, a.size()));
                continue;
            }
            if !same_stride || b.form == Form::OnePlace {
                found.add(Check::Disjoint(first, second, b.size()));
                continue;
            }
            // In bytes, from the earlier access on, where the later one must not be. A load that uses the previous iteration's line
            // reads up to an iteration of the vector loop early.
            let round = a.bytes().cast_signed();
            let carries = matches!(a.form, Form::TwoLines(_)) || matches!(b.form, Form::TwoLines(_));
            let (mut least, mut most) = (1, round - 1);
            let same_base = terms(&a.first) == terms(&b.first);
            if same_base {
                let distance = b.first.constant.wrapping_sub(a.first.constant).cast_signed();
                if (least..=most).contains(&distance) {
                    return Err(Reason::Distance(distance));
                }
                if distance.unsigned_abs() < 2 * round.unsigned_abs() {
                    found.may_carry[first] = false;
                    found.may_carry[second] = false;
                }
                continue;
            }
            if carries {
                (least, most) = (1 - 2 * round, 2 * round - 1);
            }
            let constant = b.near.constant.wrapping_sub(a.near.constant);
            found.add(Check::Apart {
                pair: (first, second),
                forbidden: Distances::new(least, most, constant),
            });
        }
    }
    found.join(accesses);
    if found.checks.len() > MOST {
        return Err(Reason::Overlap(found.checks.len()));
    }
    Ok(found)
}

/// Whether two accesses are known never to meet.
fn are_apart(func: &Function, a: &Access, b: &Access, rounds: Option<u64>, ranges: &Ranges) -> bool {
    if let (Some(one), Some(other)) = (a.flags.alias_region(), b.flags.alias_region())
        && one != other
    {
        return true;
    }
    let range = |access: &Access| access.slot_range(func, rounds?, ranges);
    match (range(a), range(b)) {
        (Some((one, low, high)), Some((other, from, to))) => one != other || high <= from || to <= low,
        _ => false,
    }
}

impl Dependences {
    fn add(&mut self, check: Check) {
        self.checks.push(check);
    }

    /// Checks of the same two arrays become one that forbids all that either forbids, and what lies between.
    fn join(&mut self, accesses: &[Access]) {
        let mut joined: Vec<Check> = Vec::new();
        'next: for check in self.checks.drain(..) {
            for known in &mut joined {
                match (&mut *known, &check) {
                    (
                        Check::Apart { pair, forbidden },
                        &Check::Apart {
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
                    (Check::Disjoint(store, place, bytes), &Check::Disjoint(other, next, more)) => {
                        let (near, next_near) = (&accesses[*place].near, &accesses[next].near);
                        let same_place = near.terms == next_near.terms
                            && [*place, next].iter().all(|&at| accesses[at].form == Form::OnePlace);
                        if accesses[*store].near != accesses[other].near
                            || accesses[*store].size() != accesses[other].size()
                            || !same_place
                        {
                            continue;
                        }
                        // From the lower one to the end of the higher one, as long as that is not far.
                        let distance = next_near.constant.wrapping_sub(near.constant).cast_signed();
                        if distance.unsigned_abs() > FAR {
                            continue;
                        }
                        let end = i64::from(*bytes).max(i64::from(distance) + i64::from(more));
                        let low = i64::from(distance.min(0));
                        if distance < 0 {
                            *place = next;
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
