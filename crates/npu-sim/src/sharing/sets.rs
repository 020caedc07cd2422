//! The lines in the sets of a data cache, and the lines that an access may evict.

use crate::replacement::{used, victim};
use npu_mc::machine;

const SETS: usize = machine::DCACHE_SETS as usize;
const WAYS: usize = machine::DCACHE_WAYS as usize;

/// The number of other lines of a set whose accesses can make a line the next victim: one in the
/// other way of its half, one in the other half, and the line that is filled.
const OTHERS: usize = 3;

/// After the eviction of a line in this run, another order of the accesses may evict it up to this
/// many fills later. This many fills without hits in between evict every line of a set.
const LATE: u32 = WAYS as u32;

/// An invalid line number.
const EMPTY: u32 = u32::MAX;

/// A line that the core has accessed.
#[derive(Clone, Debug)]
struct Resident {
    line: u32,
    /// Other lines of the set with accesses since the last one to this line, at most [`OTHERS`].
    others: Vec<u32>,
    /// The number of fills of the set since the line was evicted in the order of the run.
    late: Option<u32>,
}

/// A set.
#[derive(Clone, Debug)]
struct Set {
    ways: [u32; WAYS],
    tree: u8,
    residents: Vec<Resident>,
}

/// The sets of a data cache.
#[derive(Clone, Debug)]
pub(super) struct Sets(Vec<Set>);

impl Sets {
    pub fn new() -> Sets {
        let empty = Set {
            ways: [EMPTY; WAYS],
            tree: 0,
            residents: Vec::new(),
        };
        Sets(vec![empty; SETS])
    }

    fn of(&mut self, line: u32) -> &mut Set {
        &mut self.0[line as usize % SETS]
    }

    /// Uses a line that the core has. It evicts none.
    pub fn hit(&mut self, line: u32) -> Vec<(u32, bool)> {
        let set = self.of(line);
        if let Some(way) = set.ways.iter().position(|&other| other == line) {
            set.tree = used(set.tree, WAYS, way);
        }
        set.note(line);
        Vec::new()
    }

    /// Inserts a line. Returns the lines that this may evict, and whether it evicts them in the order
    /// of the run. A victim is chosen whether a way is empty or not.
    pub fn fill(&mut self, line: u32) -> Vec<(u32, bool)> {
        let set = self.of(line);
        if let Some(old) = set.ways.iter_mut().find(|other| **other == line) {
            *old = EMPTY;
        }
        let way = victim(set.tree, WAYS);
        let old = std::mem::replace(&mut set.ways[way], line);
        set.tree = used(set.tree, WAYS, way);
        set.note(line);
        let mut evicted = Vec::new();
        for resident in &mut set.residents {
            if resident.line == old {
                resident.late = Some(0);
                evicted.push((old, true));
            } else if let Some(late) = &mut resident.late {
                *late += 1;
                evicted.push((resident.line, false));
            } else if resident.others.len() >= OTHERS {
                evicted.push((resident.line, false));
            }
        }
        set.residents
            .retain(|resident| resident.late.is_none_or(|late| late < LATE));
        evicted
    }

    /// Returns whether the set of a line may have other lines.
    pub fn has_others(&mut self, line: u32) -> bool {
        self.of(line).residents.iter().any(|resident| resident.line != line)
    }

    /// Drops a line.
    pub fn drop(&mut self, line: u32) {
        let set = self.of(line);
        if let Some(old) = set.ways.iter_mut().find(|other| **other == line) {
            *old = EMPTY;
        }
        set.residents.retain(|resident| resident.line != line);
    }
}

impl Set {
    /// Records an access.
    fn note(&mut self, line: u32) {
        self.residents.retain(|resident| resident.line != line);
        for resident in &mut self.residents {
            if resident.others.len() < OTHERS && !resident.others.contains(&line) {
                resident.others.push(line);
            }
        }
        self.residents.push(Resident {
            line,
            others: Vec::new(),
            late: None,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: u32) -> u32 {
        7 + number * machine::DCACHE_SETS
    }

    #[test]
    fn three_other_lines_of_the_set_may_evict_a_line() {
        let mut sets = Sets::new();
        for number in 0..3 {
            assert_eq!(sets.fill(line(number)), []);
        }
        assert_eq!(sets.hit(line(1)), []);
        // Line 0 is the victim although a way is empty.
        assert_eq!(sets.fill(line(3)), [(line(0), true)]);
        assert_eq!(sets.fill(8), []);
        assert_eq!(sets.hit(line(1)), []);
        assert_eq!(sets.fill(line(0)), [(line(2), true)]);
        // Line 4 takes an empty way. In another order, line 2 leaves only now, and line 3 leaves
        // because three other lines were accessed since.
        assert_eq!(sets.fill(line(4)), [(line(2), false), (line(3), false)]);
    }

    #[test]
    fn a_line_that_comes_again_takes_another_way() {
        let mut sets = Sets::new();
        assert_eq!(sets.fill(line(0)), []);
        for _ in 0..3 {
            assert_eq!(sets.fill(line(1)), []);
        }
        assert_eq!(sets.fill(line(1)), [(line(0), true)]);
        // In another order, line 0 may leave later.
        for _ in 0..LATE {
            assert_eq!(sets.fill(line(1)), [(line(0), false)]);
        }
        assert_eq!(sets.fill(line(1)), []);
    }
}
