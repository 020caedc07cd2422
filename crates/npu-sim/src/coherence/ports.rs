//! The data caches as the instructions of a run see them.

use super::message::Bytes;
use super::system::{Backing, System};
use crate::memory::{Memory, MemoryFull};
use npu_mc::machine;
use rustc_hash::FxHashMap;

const LINE: u32 = machine::CACHE_LINE;

impl Backing for Memory {
    type Error = MemoryFull;

    fn read_line(&self, line: u32) -> Bytes {
        let mut bytes = [0; size_of::<Bytes>()];
        self.read(line * LINE, &mut bytes);
        bytes
    }

    fn write_line(&mut self, line: u32, data: &Bytes, mask: u64) -> Result<(), MemoryFull> {
        let mut left = mask;
        while left != 0 {
            let start = left.trailing_zeros() as usize;
            let length = (!(left >> start)).trailing_zeros() as usize;
            self.write(line * LINE + start as u32, &data[start..start + length])?;
            left &= !((u64::MAX >> (size_of::<Bytes>() - length)) << start);
        }
        Ok(())
    }
}

/// The data caches of a run, and the last completed store to each byte.
#[derive(Clone, Debug)]
pub(crate) struct Ports {
    pub system: System,
    /// The bytes of each line after the last completed store; `None` if a core has stored to the line
    /// in a non-coherent region.
    stored: FxHashMap<u32, Option<Box<Bytes>>>,
}

impl Ports {
    pub fn new(system: System) -> Ports {
        Ports {
            system,
            stored: FxHashMap::default(),
        }
    }

    /// Loads bytes at an address rounded down to a multiple of `N`, if the core has the line.
    pub fn load<const N: usize>(&self, core: u8, address: u32) -> Option<[u8; N]> {
        let offset = (address % LINE) as usize & !(N - 1);
        let data = self.system.cached(core, address / LINE)?;
        data.get(offset..offset + N)?.try_into().ok()
    }

    /// Stores bytes of one line, which the core has.
    pub fn store(&mut self, core: u8, address: u32, bytes: &[u8]) {
        let line = address / LINE;
        let before = self.system.cached(core, line).copied();
        self.system.write(core, address, bytes);
        let Some(before) = before else { return };
        let stored = self.stored.entry(line).or_insert_with(|| Some(Box::new(before)));
        if let Some(stored) = stored {
            let offset = (address % LINE) as usize;
            for (old, new) in stored.iter_mut().skip(offset).zip(bytes) {
                *old = *new;
            }
        }
    }

    /// Records that a core stores to a line of a non-coherent region.
    pub fn forget(&mut self, line: u32) {
        self.stored.insert(line, None);
    }

    /// Returns the first byte at an address whose value in the cache of a core is older than the last
    /// completed store.
    pub fn stale(&self, core: u8, address: u32, length: u32) -> Option<u32> {
        let line = address / LINE;
        let stored = self.stored.get(&line)?.as_deref()?;
        let cached = self.system.cached(core, line)?;
        let offset = address % LINE;
        let end = (offset + length).min(LINE);
        let differs = |&at: &u32| stored.get(at as usize) != cached.get(at as usize);
        let first = (offset..end).find(differs)?;
        Some(line * LINE + first)
    }

    /// Writes the lines to memory as a load would get them. No message may be on its way.
    pub fn write_back(&self, memory: &mut Memory) -> Result<(), MemoryFull> {
        for line in self.system.lines() {
            if let Some(data) = self.system.current(line) {
                memory.write_line(line, data, u64::MAX)?;
            }
        }
        Ok(())
    }
}
