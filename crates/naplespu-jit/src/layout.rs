//! Where things are in the memory of the device.
//!
//! Code, data and stack have a range each, and the scratchpad is a memory of its own. Nothing is ever freed, and what has an address keeps it.

use super::error::{LinkError, MAX_ALIGN};
use npu_mc::machine::{BOOT_PC, CACHE_LINE};
use npu_sim::{CORE_LIMIT, THREADS};

/// Where functions are placed, behind the trap vector and the boot address.
const CODE: (u32, u32) = (0x1000, 0x4000_0000);

/// Where data objects and buffers are placed.
const DATA: (u32, u32) = (0x4000_0000, 0xe000_0000);

/// Top of the stack of thread 0. Memory is sparse, so a stack that is alone has room to grow down to the data. Results that find
/// no register are written above it.
const STACK_TOP: u32 = 0xf000_0000;

/// Bytes between the stacks of two threads. Thread 0 has the uppermost.
const STACK_STRIDE: u32 = 0x20_0000;

// The stacks of all threads are above the data.
const _: () = assert!((CORE_LIMIT * THREADS) as u32 <= (STACK_TOP - DATA.1) / STACK_STRIDE);

/// Top of the stack of a thread.
pub(super) fn stack_top(thread: usize) -> u32 {
    STACK_TOP - thread as u32 * STACK_STRIDE
}

/// Where calls return to.
pub(super) const RETURN_TO: u32 = BOOT_PC;

/// Alignment of functions and data objects that ask for none: a cache line, which suits every access.
pub(super) const DEFAULT_ALIGN: u64 = CACHE_LINE as u64;

/// A range of addresses that fills from below.
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

/// What a piece of memory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Code,
    Data,
    /// Data in the scratchpad.
    Scratchpad,
}

/// Gives out addresses.
pub(super) struct Layout {
    code: Range,
    data: Range,
    scratchpad: Range,
}

impl Layout {
    pub(super) fn new(scratchpad_bytes: u32) -> Self {
        Self {
            code: Range::new(CODE),
            data: Range::new(DATA),
            scratchpad: Range::new((0, scratchpad_bytes)),
        }
    }

    /// An address for `size` bytes that nothing else has, not even if `size` is 0.
    pub(super) fn take(&mut self, purpose: Purpose, name: &str, size: u64, align: u64) -> Result<u32, LinkError> {
        if !align.is_power_of_two() || align > MAX_ALIGN {
            return Err(LinkError::Alignment {
                name: name.to_owned(),
                align,
            });
        }
        let range = match purpose {
            Purpose::Code => &mut self.code,
            Purpose::Data => &mut self.data,
            Purpose::Scratchpad => &mut self.scratchpad,
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
        let mut layout = Layout::new(0x100);
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
