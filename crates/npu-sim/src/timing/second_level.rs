//! The tags of the second-level cache.
//!
//! The second level of each tile has 128 sets of 8 ways. It uses empty ways first, the data caches
//! of the cores do not (`docs/machine/several-cores.md`). Every message that the directory processes
//! counts as a use: of the way of its line, or of the next victim if the line is not there. The
//! network computes some messages before they arrive, so their uses wait for their cycle.

use npu_mc::machine;

const SETS: usize = machine::L2_SETS as usize;
const WAYS: usize = machine::L2_WAYS as usize;

/// An invalid line number.
const EMPTY: u32 = u32::MAX;

/// The bits by which a set chooses its victim, as measured. They are those of a tree of eight ways,
/// but some uses set the bit of another node.
#[derive(Clone, Copy, Debug, Default)]
struct Recency {
    /// Whether the victim is in the ways 4 to 7.
    upper: bool,
    /// Whether the victim of the ways 0 to 3 is 2 or 3, and of the ways 4 to 7, 6 or 7.
    second: [bool; 2],
    /// Whether the victim of each pair of ways is its second one.
    odd: [bool; 4],
}

impl Recency {
    fn victim(self) -> usize {
        let half = usize::from(self.upper);
        let pair = 2 * half + usize::from(self.second[half]);
        2 * pair + usize::from(self.odd[pair])
    }

    fn used(&mut self, way: usize) {
        let is_even = way.is_multiple_of(2);
        self.upper = way < 4;
        match way {
            0..2 => {
                self.odd[1] = self.second[0];
                self.second[0] = true;
                self.odd[0] = is_even;
            }
            2..4 => {
                self.odd[1] = self.second[0];
                self.second[0] = false;
            }
            4..6 => {
                self.odd[2] = true;
                self.second[1] = is_even;
            }
            _ => {
                self.odd[2] = false;
                self.odd[3] = is_even;
            }
        }
    }
}

/// A set.
#[derive(Clone, Copy, Debug)]
struct Set {
    lines: [u32; WAYS],
    /// The ways with the bytes of their lines, one bit each; a line that a core has modified has
    /// none.
    bytes: u8,
    recency: Recency,
}

impl Set {
    fn find(&self, line: u32) -> Option<usize> {
        self.lines.iter().position(|&other| other == line)
    }

    /// Returns the way of a line, or the one that it would get.
    fn way(&self, line: u32) -> usize {
        let place = self.find(line).or_else(|| self.find(EMPTY));
        place.unwrap_or_else(|| self.recency.victim())
    }
}

/// A use of a line by a message that arrives later.
#[derive(Clone, Copy, Debug)]
struct Use {
    at: u64,
    line: u32,
    /// Whether the message brings the bytes of the line.
    has_bytes: bool,
}

/// The tags of the second-level cache of a tile. It has an entry for each line that a data cache
/// holds, too.
#[derive(Clone)]
pub(super) struct SecondLevel {
    sets: Box<[Set; SETS]>,
    /// The uses that have not happened yet.
    later: Vec<Use>,
}

impl SecondLevel {
    pub fn new() -> SecondLevel {
        let set = Set {
            lines: [EMPTY; WAYS],
            bytes: 0,
            recency: Recency::default(),
        };
        SecondLevel {
            sets: Box::new([set; SETS]),
            later: Vec::new(),
        }
    }

    fn set(&mut self, line: u32) -> &mut Set {
        &mut self.sets[line as usize % SETS]
    }

    /// Returns whether the bytes of a line are there in cycle `at`.
    pub fn has_bytes(&mut self, line: u32, at: u64) -> bool {
        self.advance(at);
        let set = self.set(line);
        set.find(line).is_some_and(|way| set.bytes >> way & 1 != 0)
    }

    /// Records a use of a line by a message that the directory processes in cycle `at`. With
    /// `has_bytes`, it brings the bytes of the line.
    pub fn note(&mut self, line: u32, has_bytes: bool, at: u64) {
        self.later.push(Use { at, line, has_bytes });
    }

    /// Performs the uses up to cycle `at`, in order.
    fn advance(&mut self, at: u64) {
        while let Some(next) = (0..self.later.len()).min_by_key(|&k| self.later[k].at) {
            if self.later[next].at > at {
                return;
            }
            let Use { line, has_bytes, .. } = self.later.remove(next);
            let set = self.set(line);
            if let (Some(way), true) = (set.find(line), has_bytes) {
                set.bytes |= 1 << way;
            }
            set.recency.used(set.way(line));
        }
    }

    /// Inserts or uses a line in cycle `at`, with or without its bytes; returns a line that it
    /// evicts.
    #[must_use]
    pub fn put(&mut self, line: u32, has_bytes: bool, at: u64) -> Option<u32> {
        self.advance(at);
        let set = self.set(line);
        let way = set.way(line);
        let old = std::mem::replace(&mut set.lines[way], line);
        set.bytes = set.bytes & !(1 << way) | u8::from(has_bytes) << way;
        set.recency.used(way);
        (old != line && old != EMPTY).then_some(old)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_eight_lines() {
        let mut cache = SecondLevel::new();
        let line = |k: u32| 5 + k * machine::L2_SETS;
        assert!(!cache.has_bytes(line(0), 0));
        for k in 0..machine::L2_WAYS {
            assert_eq!(cache.put(line(k), true, 0), None);
        }
        assert!((0..machine::L2_WAYS).all(|k| cache.has_bytes(line(k), 0)));
        assert_eq!(cache.put(line(8), false, 0), Some(line(0)));
        assert!(!cache.has_bytes(line(0), 0));
        // A core has modified the line. Its bytes come in cycle 20.
        cache.note(line(8), true, 20);
        assert_eq!(cache.put(line(1), true, 19), None);
        assert!(!cache.has_bytes(line(8), 19));
        assert!(cache.has_bytes(line(8), 20));
    }

    /// The ways of the messages to one set, as the hardware description logged them while a core
    /// stored to twelve lines of the set in turn. A negative number is the way of a line that is
    /// there.
    #[test]
    fn victims_are_those_of_the_hardware() {
        let mut recency = Recency::default();
        (0..8).for_each(|way| recency.used(way));
        let logged = [
            0, 4, 2, 6, 1, 7, 2, -1, 6, 2, 7, 0, 6, 2, 7, 1, -3, 6, 0, 7, 2, 6, 1, 7, -5, 2, 5, -4, 0, 6, 2, 7,
        ];
        for (number, way) in logged.into_iter().enumerate() {
            if way >= 0 {
                assert_eq!(recency.victim() as i32, way, "message {number}");
            }
            recency.used(way.unsigned_abs() as usize);
        }
    }
}
