//! The tags of the two caches (`microarch.md` 8). Data stays in main memory: only presence matters for time.

use npu_mc::machine;

/// No line has this number, since lines are addresses divided by the line size.
const EMPTY: u32 = u32::MAX;

/// The number of the cache line that holds `address`.
#[inline]
pub(crate) const fn line_of(address: u32) -> u32 {
    address / machine::CACHE_LINE
}

const INSTRUCTION_SETS: usize = machine::ICACHE_SETS as usize;
const INSTRUCTION_WAYS: usize = machine::ICACHE_WAYS as usize;
const DATA_SETS: usize = machine::DCACHE_SETS as usize;
const DATA_WAYS: usize = machine::DCACHE_WAYS as usize;

/// The instruction cache.
pub(crate) struct InstructionCache {
    tags: [[u32; INSTRUCTION_WAYS]; INSTRUCTION_SETS],
    /// The half of the ways that the next fill of a set takes.
    upper_half: [bool; INSTRUCTION_SETS],
    /// Which way of the half: one counter for all sets, which every hit turns. `microarch.md` 8 says that fills do too; then a
    /// program that does not fit would take a fifth longer than was recorded.
    odd: bool,
}

impl InstructionCache {
    pub fn new() -> InstructionCache {
        InstructionCache {
            tags: [[EMPTY; INSTRUCTION_WAYS]; INSTRUCTION_SETS],
            upper_half: [false; INSTRUCTION_SETS],
            odd: false,
        }
    }

    /// Looks a line up as a fetch does, which moves the replacement state.
    #[inline]
    pub fn fetch(&mut self, line: u32) -> bool {
        let set = line as usize % INSTRUCTION_SETS;
        match self.tags[set].iter().position(|&tag| tag == line) {
            Some(way) => {
                self.odd = !self.odd;
                self.upper_half[set] = way < INSTRUCTION_WAYS / 2;
                true
            }
            None => false,
        }
    }

    pub fn fill(&mut self, line: u32) {
        let set = line as usize % INSTRUCTION_SETS;
        let half = if self.upper_half[set] { INSTRUCTION_WAYS / 2 } else { 0 };
        self.tags[set][half + usize::from(self.odd)] = line;
        self.upper_half[set] = !self.upper_half[set];
    }
}

/// The data cache.
pub(crate) struct DataCache {
    tags: [[u32; DATA_WAYS]; DATA_SETS],
    /// The way that the next fill of a set takes.
    victim: [u8; DATA_SETS],
}

impl DataCache {
    pub fn new() -> DataCache {
        DataCache {
            tags: [[EMPTY; DATA_WAYS]; DATA_SETS],
            victim: [0; DATA_SETS],
        }
    }

    #[inline]
    pub fn holds(&self, line: u32) -> bool {
        self.tags[line as usize % DATA_SETS].contains(&line)
    }

    /// Puts a line in; gives whether another one had to leave, which costs a write to memory whether it is dirty or not.
    pub fn fill(&mut self, line: u32) -> bool {
        let set = line as usize % DATA_SETS;
        let way = usize::from(self.victim[set]);
        self.victim[set] = ((way + 1) % DATA_WAYS) as u8;
        let old = std::mem::replace(&mut self.tags[set][way], line);
        old != EMPTY
    }

    /// Takes a line out; gives whether it was there.
    pub fn invalidate(&mut self, line: u32) -> bool {
        let set = &mut self.tags[line as usize % DATA_SETS];
        match set.iter_mut().find(|tag| **tag == line) {
            Some(tag) => {
                *tag = EMPTY;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fifth_line_of_a_set_replaces_the_first() {
        let mut cache = DataCache::new();
        let line = |k: u32| 7 + k * machine::DCACHE_SETS;
        for k in 0..machine::DCACHE_WAYS {
            assert!(!cache.fill(line(k)));
        }
        assert!(cache.fill(line(machine::DCACHE_WAYS)));
        assert!(!cache.holds(line(0)));
        assert!(cache.holds(line(1)));
        assert!(cache.invalidate(line(1)));
        assert!(!cache.invalidate(line(1)));
    }

    #[test]
    fn instruction_lines_stay_until_a_set_is_full() {
        let mut cache = InstructionCache::new();
        cache.fill(3);
        assert!(cache.fetch(3));
        assert!(!cache.fetch(3 + machine::ICACHE_SETS));
        cache.fill(3 + machine::ICACHE_SETS);
        assert!(cache.fetch(3 + machine::ICACHE_SETS));
    }
}
