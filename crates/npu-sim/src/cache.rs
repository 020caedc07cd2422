//! The data caches, as far as a program or the host can observe them (`docs/machine/memory.md`,
//! `docs/machine/several-cores.md`).
//!
//! Each core has one data cache: write-back, write-allocate, one dirty bit per byte, and
//! round-robin replacement within a set. The host and instruction fetch read main memory. Main
//! memory changes only by evictions, `flush` and `dcache_inv`, or by every store in write-through
//! mode.
//!
//! The directory of the many-core system keeps lines coherent between cores: a store removes the
//! line from the other caches, and a load sees the changes of other cores. The regions of control
//! register 19 are an exception: there a core keeps its copy regardless of other cores. The
//! second-level cache counts as part of main memory.
//!
//! Invariant: a cache contains a line at most once, and at most one cache has dirty bytes of a
//! coherent line.

use crate::memory::{Memory, MemoryFull};
use npu_mc::machine;

/// Bytes of a line.
const LINE: usize = machine::CACHE_LINE as usize;
const SETS: usize = machine::DCACHE_SETS as usize;
const WAYS: usize = machine::DCACHE_WAYS as usize;

const _: () = assert!(
    SETS.is_power_of_two() && LINE == u64::BITS as usize,
    "a dirty bit a byte"
);

/// The bit of CPU control that enables write-through.
const WRITE_THROUGH: u32 = 1 << 31;

/// The number of regions of control register 19.
pub(crate) const REGIONS: usize = 8;

/// The cache mode of a core.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mode {
    pub write_through: bool,
    /// The values written to control register 19, by region number.
    pub regions: [u32; REGIONS],
}

impl Mode {
    /// Sets the mode from a write of CPU control.
    pub fn set_cpu_control(&mut self, value: u32) {
        self.write_through = value & WRITE_THROUGH != 0;
    }

    /// Performs a write of control register 19: region number, first and last unit of 4 MiB, and
    /// whether the region is enabled.
    pub fn set_region(&mut self, value: u32) {
        self.regions[(value >> 21) as usize % REGIONS] = value;
    }

    /// Returns whether the directory keeps the line of `address` coherent.
    pub fn coherent(&self, address: u32) -> bool {
        let unit = address >> 22;
        !self.regions.iter().any(|region| {
            let (first, last) = (region >> 11 & 0x3ff, region >> 1 & 0x3ff);
            region & 1 != 0 && (first..=last).contains(&unit)
        })
    }
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Bytes([u8; LINE]);

/// The state of a cache line, without its bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    /// The address of its first byte.
    address: u32,
    valid: bool,
    /// Whether the directory has no other cache with the line.
    exclusive: bool,
    /// The bytes that differ from main memory, one bit each.
    dirty: u64,
}

/// The data cache of a core.
#[derive(Clone)]
struct DataCache {
    /// The lines, ordered by set.
    lines: [Line; SETS * WAYS],
    bytes: Box<[Bytes]>,
    /// The way that the next fill replaces, for each set.
    victims: [u8; SETS],
}

fn line_of(address: u32) -> u32 {
    address & !(LINE as u32 - 1)
}

fn set_of(address: u32) -> usize {
    address as usize / LINE % SETS
}

/// Returns the dirty bits of `length` bytes at `offset` of a line.
#[inline(always)]
fn bits(offset: usize, length: usize) -> u64 {
    (u64::MAX >> (LINE - length)) << offset
}

impl DataCache {
    fn new() -> DataCache {
        DataCache {
            lines: [Line::default(); SETS * WAYS],
            bytes: vec![Bytes([0; LINE]); SETS * WAYS].into_boxed_slice(),
            victims: [0; SETS],
        }
    }

    /// Returns the index of the line that contains `address`.
    #[inline(always)]
    fn find(&self, address: u32) -> Option<usize> {
        let line = line_of(address);
        let first = set_of(address) * WAYS;
        (first..first + WAYS).find(|&k| self.lines[k].valid && self.lines[k].address == line)
    }

    /// Writes the dirty bytes of a line to memory; they stay dirty.
    fn write_back(&self, place: usize, memory: &mut Memory) -> Result<(), MemoryFull> {
        let Line { address, dirty, .. } = self.lines[place];
        let bytes = &self.bytes[place].0;
        let mut left = dirty;
        while left != 0 {
            let start = left.trailing_zeros() as usize;
            let length = (!(left >> start)).trailing_zeros() as usize;
            memory.write(address + start as u32, &bytes[start..start + length])?;
            left &= !bits(start, length);
        }
        Ok(())
    }
}

/// The data caches of all cores.
#[derive(Clone)]
pub(crate) struct Caches {
    cores: Vec<DataCache>,
}

impl Caches {
    /// Creates empty caches.
    pub fn new(cores: usize) -> Caches {
        Caches {
            cores: vec![DataCache::new(); cores],
        }
    }

    /// Reads `N` bytes at `address`, a multiple of `N`, if the cache of `core` contains the line.
    #[inline(always)]
    pub fn load_hit<const N: usize>(&self, core: usize, address: u32) -> Option<[u8; N]> {
        let cache = &self.cores[core];
        let offset = (address as usize % LINE) & !(N - 1);
        let mut bytes = [0; N];
        bytes.copy_from_slice(cache.bytes[cache.find(address)?].0.get(offset..offset + N)?);
        Some(bytes)
    }

    /// Stores `N` bytes at `address`, a multiple of `N`, if the cache of `core` contains the line
    /// for writing. Otherwise returns `false` and does nothing.
    #[inline(always)]
    #[must_use]
    pub fn store_hit<const N: usize>(&mut self, core: usize, address: u32, bytes: [u8; N]) -> bool {
        let cache = &mut self.cores[core];
        let Some(place) = cache.find(address) else { return false };
        let offset = (address as usize % LINE) & !(N - 1);
        let line = &mut cache.lines[place];
        let Some(old) = cache.bytes[place].0.get_mut(offset..offset + N) else {
            return false;
        };
        if !line.exclusive {
            return false;
        }
        old.copy_from_slice(&bytes);
        line.dirty |= bits(offset, N);
        true
    }

    /// Reads `N` bytes at `address` rounded down to a multiple of `N`.
    pub fn load<const N: usize>(
        &mut self,
        core: usize,
        mode: &Mode,
        memory: &mut Memory,
        address: u32,
    ) -> Result<[u8; N], MemoryFull> {
        let place = self.fetch(core, mode, memory, address, false)?;
        let offset = (address as usize % LINE) & !(N - 1);
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.cores[core].bytes[place].0[offset..offset + N]);
        Ok(bytes)
    }

    /// Stores `bytes` at `address`. They must not cross a line boundary.
    pub fn store(
        &mut self,
        core: usize,
        mode: &Mode,
        memory: &mut Memory,
        address: u32,
        bytes: &[u8],
    ) -> Result<(), MemoryFull> {
        if bytes.is_empty() {
            return Ok(());
        }
        let place = self.fetch(core, mode, memory, address, true)?;
        let offset = address as usize % LINE;
        let cache = &mut self.cores[core];
        cache.bytes[place].0[offset..offset + bytes.len()].copy_from_slice(bytes);
        cache.lines[place].dirty |= bits(offset, bytes.len());
        if mode.write_through {
            cache.write_back(place, memory)?;
        }
        Ok(())
    }

    /// Brings the line of `address` into the cache of `core`, for writing if `own` is set, and
    /// returns its index.
    fn fetch(
        &mut self,
        core: usize,
        mode: &Mode,
        memory: &mut Memory,
        address: u32,
        own: bool,
    ) -> Result<usize, MemoryFull> {
        let coherent = self.cores.len() > 1 && mode.coherent(address);
        let found = self.cores[core].find(address);
        if let Some(place) = found
            && (!own || self.cores[core].lines[place].exclusive)
        {
            return Ok(place);
        }
        let others = coherent && self.recall(core, memory, address, own)?;
        let cache = &mut self.cores[core];
        let place = match found {
            Some(place) => place,
            None => {
                let set = set_of(address);
                let way = usize::from(cache.victims[set]);
                let place = set * WAYS + way;
                if cache.lines[place].valid && !mode.write_through {
                    cache.write_back(place, memory)?;
                }
                memory.read(line_of(address), &mut cache.bytes[place].0);
                cache.victims[set] = ((way + 1) % WAYS) as u8;
                cache.lines[place] = Line {
                    address: line_of(address),
                    valid: true,
                    exclusive: false,
                    dirty: 0,
                };
                place
            }
        };
        // The definition handles stores to lines of pages with protected bytes.
        cache.lines[place].exclusive = (own || !others) && !memory.is_guarded(address);
        Ok(place)
    }

    /// Writes the changes of the other cores in the line of `address` to memory. With `take` it
    /// invalidates the line in their caches. Returns whether other caches still contain the line.
    fn recall(&mut self, core: usize, memory: &mut Memory, address: u32, take: bool) -> Result<bool, MemoryFull> {
        let mut kept = false;
        for (number, cache) in self.cores.iter_mut().enumerate() {
            if number == core {
                continue;
            }
            let Some(place) = cache.find(address) else { continue };
            cache.write_back(place, memory)?;
            let line = &mut cache.lines[place];
            line.dirty = 0;
            line.exclusive = false;
            line.valid = !take;
            kept |= !take;
        }
        Ok(kept)
    }

    /// Performs a `flush`: writes dirty bytes to memory and does not change the line. Does nothing
    /// in write-through mode.
    pub fn flush(&mut self, core: usize, mode: &Mode, memory: &mut Memory, address: u32) -> Result<(), MemoryFull> {
        let cache = &self.cores[core];
        match cache.find(address) {
            Some(place) if !mode.write_through => cache.write_back(place, memory),
            _ => Ok(()),
        }
    }

    /// Performs a `dcache_inv`: writes dirty bytes to memory and invalidates the line. With one core,
    /// a hardware bug clears the dirty bits of way 0 of the set, unless the line was in way 0; the
    /// controller of several cores lacks it. Returns the address of the line in way 0 if it lost
    /// dirty bits.
    pub fn invalidate(&mut self, core: usize, memory: &mut Memory, address: u32) -> Result<Option<u32>, MemoryFull> {
        let is_only_core = self.cores.len() == 1;
        let cache = &mut self.cores[core];
        let Some(place) = cache.find(address) else {
            return Ok(None);
        };
        cache.write_back(place, memory)?;
        cache.lines[place].valid = false;
        if !is_only_core {
            return Ok(None);
        }
        let first = set_of(address) * WAYS;
        let victim = &mut cache.lines[first];
        let lost = place != first && victim.valid && victim.dirty != 0;
        if place != first {
            victim.dirty = 0;
        }
        Ok(lost.then_some(victim.address))
    }

    /// Reads `bytes` from `address` on as `core` sees them, without side effects.
    pub fn read(&self, core: usize, memory: &Memory, address: u32, bytes: &mut [u8]) {
        memory.read(address, bytes);
        for (byte, at) in bytes.iter_mut().zip(0..) {
            if let Some([cached]) = self.load_hit(core, address.wrapping_add(at)) {
                *byte = cached;
            }
        }
    }

    /// Writes all dirty bytes to memory, core by core, and empties the caches.
    pub fn write_back_all(&mut self, memory: &mut Memory) -> Result<(), MemoryFull> {
        for cache in &mut self.cores {
            for place in 0..cache.lines.len() {
                if cache.lines[place].valid {
                    cache.write_back(place, memory)?;
                    cache.lines[place] = Line::default();
                }
            }
        }
        Ok(())
    }

    /// Empties the caches and discards their dirty bytes.
    pub fn clear(&mut self) {
        for cache in &mut self.cores {
            cache.lines.fill(Line::default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SET_STRIDE: u32 = (SETS * LINE) as u32;
    const PLAIN: Mode = Mode {
        write_through: false,
        regions: [0; REGIONS],
    };

    fn word(caches: &mut Caches, core: usize, mode: &Mode, memory: &mut Memory, address: u32) -> u32 {
        u32::from_le_bytes(caches.load(core, mode, memory, address).unwrap())
    }

    fn put(caches: &mut Caches, core: usize, mode: &Mode, memory: &mut Memory, address: u32, value: u32) {
        caches.store(core, mode, memory, address, &value.to_le_bytes()).unwrap();
    }

    #[test]
    fn memory_has_a_store_after_a_flush_or_an_eviction() {
        let mut memory = Memory::new(1 << 20);
        let mut caches = Caches::new(1);
        put(&mut caches, 0, &PLAIN, &mut memory, 0x1004, 7);
        assert_eq!(memory.read_u32(0x1004), 0);
        assert_eq!(word(&mut caches, 0, &PLAIN, &mut memory, 0x1004), 7);
        caches.flush(0, &PLAIN, &mut memory, 0x1000).unwrap();
        assert_eq!(memory.read_u32(0x1004), 7);
        // The line stays dirty, so that a second flush overwrites the value of the host.
        memory.write_u32(0x1004, 9).unwrap();
        caches.flush(0, &PLAIN, &mut memory, 0x1000).unwrap();
        assert_eq!(memory.read_u32(0x1004), 7);
        put(&mut caches, 0, &PLAIN, &mut memory, 0x1008, 8);
        for k in 1..=WAYS as u32 {
            assert_eq!(memory.read_u32(0x1008), 0);
            word(&mut caches, 0, &PLAIN, &mut memory, 0x1000 + k * SET_STRIDE);
        }
        assert_eq!(memory.read_u32(0x1008), 8);
    }

    #[test]
    fn only_dirty_bytes_are_written() {
        let mut memory = Memory::new(1 << 20);
        let mut caches = Caches::new(1);
        caches.store(0, &PLAIN, &mut memory, 0x2001, &[1]).unwrap();
        caches.store(0, &PLAIN, &mut memory, 0x203f, &[2]).unwrap();
        memory.write(0x2000, &[9; LINE]).unwrap();
        caches.write_back_all(&mut memory).unwrap();
        let mut line = [0; LINE];
        memory.read(0x2000, &mut line);
        let mut expected = [9; LINE];
        expected[1] = 1;
        expected[LINE - 1] = 2;
        assert_eq!(line, expected);
    }

    #[test]
    fn invalidation_outside_of_way_0_loses_what_way_0_has() {
        let mut memory = Memory::new(1 << 20);
        let mut caches = Caches::new(1);
        put(&mut caches, 0, &PLAIN, &mut memory, 0x1000, 1);
        put(&mut caches, 0, &PLAIN, &mut memory, 0x1000 + SET_STRIDE, 2);
        let lost = caches.invalidate(0, &mut memory, 0x1000 + SET_STRIDE).unwrap();
        assert_eq!(lost, Some(0x1000));
        assert_eq!(memory.read_u32(0x1000 + SET_STRIDE), 2);
        assert_eq!(caches.invalidate(0, &mut memory, 0x1000), Ok(None));
        assert_eq!(memory.read_u32(0x1000), 0);
    }

    #[test]
    fn write_through_stores_reach_memory_and_evictions_do_not() {
        let mut memory = Memory::new(1 << 20);
        let mut caches = Caches::new(1);
        put(&mut caches, 0, &PLAIN, &mut memory, 0x1000, 1);
        let mut through = PLAIN;
        through.set_cpu_control(WRITE_THROUGH);
        caches.flush(0, &through, &mut memory, 0x1000).unwrap();
        for k in 1..=WAYS as u32 {
            word(&mut caches, 0, &through, &mut memory, 0x1000 + k * SET_STRIDE);
        }
        assert_eq!(memory.read_u32(0x1000), 0);
        put(&mut caches, 0, &through, &mut memory, 0x1000, 3);
        assert_eq!(memory.read_u32(0x1000), 3);
    }

    #[test]
    fn the_directory_keeps_cores_coherent_outside_of_regions() {
        let mut memory = Memory::new(1 << 20);
        let mut caches = Caches::new(2);
        let mut mode = PLAIN;
        // Region 2 consists of unit 3 of 4 MiB.
        mode.set_region(2 << 21 | 3 << 11 | 3 << 1 | 1);
        for base in [0x1000, 0x00c0_0000] {
            assert_eq!(word(&mut caches, 1, &mode, &mut memory, base), 0);
            put(&mut caches, 0, &mode, &mut memory, base, 5);
            let coherent = base == 0x1000;
            let seen = word(&mut caches, 1, &mode, &mut memory, base);
            assert_eq!(seen == 5, coherent);
            put(&mut caches, 1, &mode, &mut memory, base + 4, 6);
            put(&mut caches, 0, &mode, &mut memory, base + 8, 7);
            let seen = word(&mut caches, 0, &mode, &mut memory, base + 4);
            assert_eq!(seen == 6, coherent);
        }
        // Each core flushes its own bytes, and sees those of the other core after an invalidation.
        for core in 0..2 {
            caches.flush(core, &mode, &mut memory, 0x00c0_0000).unwrap();
        }
        caches.invalidate(1, &mut memory, 0x00c0_0000).unwrap();
        assert_eq!(word(&mut caches, 1, &mode, &mut memory, 0x00c0_0000), 5);
        assert_eq!(word(&mut caches, 1, &mode, &mut memory, 0x00c0_0008), 7);
    }
}
