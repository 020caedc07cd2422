//! The allocation of addresses for objects.
//!
//! Code and data have separate ranges of addresses, and the scratchpad is a separate memory. An
//! address stays allocated until it is released.

use crate::incremental::LinkError;
use npu_mc::machine::CACHE_LINE;
use std::collections::BTreeMap;
use std::ops;

/// The largest alignment of a function or data object, in bytes.
pub const MAX_ALIGN: u64 = 1 << 28;

/// The alignment of functions and data objects without a requested one: a cache line, which is
/// sufficient for every access.
pub(crate) const DEFAULT_ALIGN: u64 = CACHE_LINE as u64;

/// A range of addresses that is filled from its start. Released addresses are reused first, the
/// lowest ones first.
///
/// Addresses ascend until one is released. Padding for alignment stays unused; it is released
/// together with the object after it.
#[derive(Clone, Debug)]
struct Range {
    /// The end of the used part: all addresses from here on are free.
    next: u64,
    end: u64,
    /// Start and end of the free gaps below `next`. No two gaps are adjacent.
    gaps: BTreeMap<u64, u64>,
    /// The allocated objects by start address: the start of the padding before each, and its end.
    taken: BTreeMap<u64, (u64, u64)>,
}

impl Range {
    fn new((start, end): (u32, u32)) -> Self {
        Self {
            next: start.into(),
            end: end.into(),
            gaps: BTreeMap::new(),
            taken: BTreeMap::new(),
        }
    }

    fn take(&mut self, size: u64, align: u64) -> Option<u32> {
        let fit = |from: u64, end: u64| {
            let start = from.checked_next_multiple_of(align)?;
            let after = start.checked_add(size)?;
            (after <= end).then_some((start, after))
        };
        let mut gaps = self.gaps.iter();
        if let Some((from, end, (start, after))) = gaps.find_map(|(&from, &end)| Some((from, end, fit(from, end)?))) {
            self.gaps.remove(&from);
            if from < start {
                self.gaps.insert(from, start);
            }
            if after < end {
                self.gaps.insert(after, end);
            }
            self.taken.insert(start, (start, after));
            return u32::try_from(start).ok();
        }
        let (start, after) = fit(self.next, self.end)?;
        self.taken.insert(start, (self.next, after));
        self.next = after;
        u32::try_from(start).ok()
    }

    /// Like [`Range::take`], with all addresses in `within`. The lowest free place is used.
    fn take_within(&mut self, size: u64, align: u64, within: &ops::Range<u64>) -> Option<u32> {
        let free = self.gaps.iter().map(|(&from, &end)| (from, end));
        let free = free.chain([(self.next, self.end)]);
        let (from, end, start, after) = free.into_iter().find_map(|(from, end)| {
            let start = from.max(within.start).checked_next_multiple_of(align)?;
            let after = start.checked_add(size)?;
            (after <= end.min(within.end)).then_some((from, end, start, after))
        })?;
        if from == self.next {
            self.next = after;
        } else {
            self.gaps.remove(&from);
            if after < end {
                self.gaps.insert(after, end);
            }
        }
        if from < start {
            self.gaps.insert(from, start);
        }
        self.taken.insert(start, (start, after));
        u32::try_from(start).ok()
    }

    /// Releases the object at an address. Returns `false` if the address is not allocated.
    fn give_back(&mut self, start: u32) -> bool {
        let Some((mut from, mut end)) = self.taken.remove(&u64::from(start)) else {
            return false;
        };
        if let Some((&before, &its_end)) = self.gaps.range(..from).next_back()
            && its_end == from
        {
            self.gaps.remove(&before);
            from = before;
        }
        if let Some(its_end) = self.gaps.remove(&end) {
            end = its_end;
        }
        if end == self.next {
            self.next = from;
        } else {
            self.gaps.insert(from, end);
        }
        true
    }
}

/// The purpose of an object, which determines its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Code, in main memory.
    Code,
    /// Data in main memory.
    Data,
    /// Data in the scratchpad.
    Scratchpad,
    /// Thread-local data. Its address is an offset in each thread's block.
    ThreadLocal,
}

/// The allocator of addresses.
#[derive(Clone, Debug)]
pub struct Layout {
    code: Range,
    data: Range,
    scratchpad: Range,
    thread_local: Range,
}

impl Layout {
    /// Creates a layout. Each range is given by its first address and the address after its end.
    pub fn new(code: (u32, u32), data: (u32, u32), scratchpad_bytes: u32) -> Self {
        Self {
            code: Range::new(code),
            data: Range::new(data),
            scratchpad: Range::new((0, scratchpad_bytes)),
            thread_local: Range::new((0, 0)),
        }
    }

    /// Adds blocks of `bytes` bytes for thread-local data, aligned to cache lines.
    #[must_use]
    pub fn with_thread_local(self, bytes: u32) -> Self {
        Self {
            thread_local: Range::new((0, bytes)),
            ..self
        }
    }

    /// Allocates `size` bytes. The address is unique even if `size` is 0.
    ///
    /// # Errors
    ///
    /// Returns [`LinkError::Alignment`] or [`LinkError::MemoryFull`].
    pub fn take(&mut self, purpose: Purpose, name: &str, size: u64, align: u64) -> Result<u32, LinkError> {
        let most = match purpose {
            Purpose::ThreadLocal => CACHE_LINE.into(),
            Purpose::Code | Purpose::Data | Purpose::Scratchpad => MAX_ALIGN,
        };
        if !align.is_power_of_two() || align > most {
            return Err(LinkError::Alignment {
                name: name.to_owned(),
                align,
            });
        }
        self.range(purpose)
            .take(size.max(1), align)
            .ok_or_else(|| LinkError::MemoryFull(format!("%{name}: no room for {size} bytes")))
    }

    /// Allocates `size` bytes of data with all addresses in `within`, which may lie in the range of
    /// code, too. Returns `None` if no place is free. `align` is a power of two.
    pub fn take_within(&mut self, size: u64, align: u64, within: &ops::Range<u64>) -> Option<u32> {
        let size = size.max(1);
        [&mut self.data, &mut self.code]
            .into_iter()
            .find_map(|range| range.take_within(size, align, within))
    }

    /// Releases an address that [`Layout::take_within`] returned. Returns `false` if the address is
    /// not allocated.
    pub fn give_back_within(&mut self, address: u32) -> bool {
        self.data.give_back(address) || self.code.give_back(address)
    }

    /// Releases an address that [`Layout::take`] returned. Returns `false` if the address is not
    /// allocated for this purpose.
    pub fn give_back(&mut self, purpose: Purpose, address: u32) -> bool {
        self.range(purpose).give_back(address)
    }

    fn range(&mut self, purpose: Purpose) -> &mut Range {
        match purpose {
            Purpose::Code => &mut self.code,
            Purpose::Data => &mut self.data,
            Purpose::Scratchpad => &mut self.scratchpad,
            Purpose::ThreadLocal => &mut self.thread_local,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_end() {
        let mut range = Range::new((0x1000, 0x2000));
        assert_eq!(range.take(1, 64), Some(0x1000));
        assert_eq!(range.take(0xfc0, 64), Some(0x1040));
        assert_eq!(range.take(1, 1), None);
        assert_eq!(range.take(u64::MAX, 1), None);
        assert_eq!(range.take(0, 1), Some(0x2000));
    }

    #[test]
    fn what_is_given_back_is_taken_again() {
        let mut range = Range::new((0x1000, 0x2000));
        let [a, b, c, d] = [0x100; 4].map(|size| range.take(size, 64).unwrap());
        assert_eq!([a, b, c, d], [0x1000, 0x1100, 0x1200, 0x1300]);
        assert!(range.give_back(b) && !range.give_back(b) && !range.give_back(0x1101));
        // The first size exceeds the gap. The next ones fill the gap from its start.
        assert_eq!(range.take(0x101, 64), Some(0x1400));
        assert_eq!(range.take(0x40, 64), Some(0x1100));
        assert_eq!(range.take(0x40, 128), Some(0x1180));
        assert_eq!(range.take(0x40, 64), Some(0x1140));
        for start in [c, 0x1180, a, 0x1100] {
            assert!(range.give_back(start));
        }
        // One gap remains from 0x1000 to d, interrupted by the object at 0x1140.
        assert_eq!(
            range.gaps.iter().collect::<Vec<_>>(),
            [(&0x1000, &0x1140), (&0x1180, &0x1300)]
        );
        for start in [0x1140, 0x1400, d] {
            assert!(range.give_back(start));
        }
        assert_eq!((range.next, range.gaps.len(), range.taken.len()), (0x1000, 0, 0));
    }

    #[test]
    fn padding_is_given_back_with_what_it_is_before() {
        let mut range = Range::new((0x1000, 0x3000));
        let first = range.take(1, 1).unwrap();
        let second = range.take(0x1000, 0x1000).unwrap();
        assert_eq!((first, second), (0x1000, 0x2000));
        assert_eq!(range.take(1, 1), None);
        assert!(range.give_back(second));
        assert_eq!(range.take(0x1fff, 1), Some(0x1001));
    }

    #[test]
    fn a_place_in_a_part_of_the_range() {
        let mut range = Range::new((0x1000, 0x9000));
        assert_eq!(range.take_within(0x100, 64, &(0x4010..0x5000)), Some(0x4040));
        assert_eq!(range.take_within(0x100, 64, &(0x4010..0x5000)), Some(0x4140));
        assert_eq!(range.take_within(0x1000, 64, &(0x4010..0x5000)), None);
        // Other objects use the gap below.
        assert_eq!(range.take(0x3040, 64), Some(0x1000));
        assert_eq!(range.take(0x100, 64), Some(0x4240));
        assert!(range.give_back(0x4040));
        assert_eq!(range.take_within(0x80, 64, &(0x1000..0x9000)), Some(0x4040));
        for start in [0x1000, 0x4040, 0x4140, 0x4240] {
            assert!(range.give_back(start), "{start:#x}");
        }
        assert_eq!((range.next, range.gaps.len(), range.taken.len()), (0x1000, 0, 0));
    }

    /// Random steps, compared with a list of the allocated ranges.
    #[test]
    fn nothing_overlaps_whatever_is_given_back() {
        let mut range = Range::new((0x1000, 0x9000));
        let mut taken: Vec<(u32, u32)> = Vec::new();
        let mut state = 1u32;
        let mut random = |bound: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) % bound
        };
        for _ in 0..20_000 {
            if !taken.is_empty() && random(2) == 0 {
                let (start, _) = taken.swap_remove(random(taken.len() as u32) as usize);
                assert!(range.give_back(start));
                continue;
            }
            let (size, align) = (1 + random(0x400), 1 << random(9));
            let from = 0x1000 + random(0x8000);
            let within = from.into()..u64::from(from) + 0x2000;
            let place = match random(3) {
                0 => range.take_within(size.into(), align.into(), &within),
                _ => range.take(size.into(), align.into()),
            };
            if let Some(start) = place {
                let end = start + size;
                assert!(start.is_multiple_of(align) && start >= 0x1000 && end <= 0x9000);
                assert!(taken.iter().all(|&(from, to)| end <= from || to <= start));
                taken.push((start, end));
            }
        }
        for (start, _) in taken {
            assert!(range.give_back(start));
        }
        assert_eq!((range.next, range.gaps.len()), (0x1000, 0));
    }

    #[test]
    fn nothing_shares_an_address() {
        let mut layout = Layout::new((0x1000, 0x4000_0000), (0x4000_0000, 0xe000_0000), 0x100);
        let empty = layout.take(Purpose::Data, "a", 0, 64).unwrap();
        assert_ne!(layout.take(Purpose::Data, "b", 0, 64).unwrap(), empty);
        assert!(layout.take(Purpose::Data, "c", 1, 3).is_err());
        assert!(layout.take(Purpose::Data, "c", 1, 0).is_err());
        assert!(layout.take(Purpose::Data, "c", 1, MAX_ALIGN * 2).is_err());
        assert!(layout.take(Purpose::Data, "c", 1, MAX_ALIGN).is_ok());
        assert!(layout.take(Purpose::Code, "d", 1 << 31, 1).is_err());
        assert_eq!(layout.take(Purpose::Scratchpad, "e", 0x100, 64).ok(), Some(0));
        assert!(layout.take(Purpose::Scratchpad, "f", 0, 1).is_err());
    }
}
