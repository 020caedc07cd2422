//! Where objects are in memory.
//!
//! Code and data have a range of addresses each, and the scratchpad is a memory of its own. Nothing is ever freed, and what has an address keeps it.

use crate::incremental::LinkError;
use npu_mc::machine::CACHE_LINE;

/// Largest alignment of a function or data object, in bytes.
pub const MAX_ALIGN: u64 = 1 << 28;

/// Alignment of functions and data objects that ask for none: a cache line, which suits every access.
pub(crate) const DEFAULT_ALIGN: u64 = CACHE_LINE as u64;

/// A range of addresses that fills from below.
#[derive(Clone, Debug)]
struct Range {
    next: u64,
    end: u64,
}

impl Range {
    fn new((start, end): (u32, u32)) -> Self {
        Self {
            next: start.into(),
            end: end.into(),
        }
    }

    fn take(&mut self, size: u64, align: u64) -> Option<u32> {
        let start = self.next.checked_next_multiple_of(align)?;
        let end = start.checked_add(size)?;
        if end > self.end {
            return None;
        }
        self.next = end;
        u32::try_from(start).ok()
    }
}

/// What an object is, which decides where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Code, in main memory.
    Code,
    /// Data in main memory.
    Data,
    /// Data in the scratchpad.
    Scratchpad,
    /// Thread-local data. Its address is a distance from the start of each thread's block.
    ThreadLocal,
}

/// Gives out addresses.
#[derive(Clone, Debug)]
pub struct Layout {
    code: Range,
    data: Range,
    scratchpad: Range,
    thread_local: Range,
}

impl Layout {
    /// Code and data are placed from the first address of their range on, and end before the second one.
    pub fn new(code: (u32, u32), data: (u32, u32), scratchpad_bytes: u32) -> Self {
        Self {
            code: Range::new(code),
            data: Range::new(data),
            scratchpad: Range::new((0, scratchpad_bytes)),
            thread_local: Range::new((0, 0)),
        }
    }

    /// With blocks of so many bytes for thread-local data, which start at multiples of a cache line.
    #[must_use]
    pub fn with_thread_local(self, bytes: u32) -> Self {
        Self {
            thread_local: Range::new((0, bytes)),
            ..self
        }
    }

    /// An address for `size` bytes that nothing else has, not even if `size` is 0.
    ///
    /// # Errors
    ///
    /// [`LinkError::Alignment`] and [`LinkError::MemoryFull`].
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
        let range = match purpose {
            Purpose::Code => &mut self.code,
            Purpose::Data => &mut self.data,
            Purpose::Scratchpad => &mut self.scratchpad,
            Purpose::ThreadLocal => &mut self.thread_local,
        };
        range
            .take(size.max(1), align)
            .ok_or_else(|| LinkError::MemoryFull(format!("%{name}: no room for {size} bytes")))
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
