//! Main memory: the whole 32-bit space, sparse, in pages of 4 KiB.
//!
//! Invariants:
//! - Page 0 of `pages` has the contents of unwritten memory and is never written. Every unwritten
//!   page maps to it, so that reads need no test. A page starts as a copy of it.
//! - A page marked as code ([`Memory::mark_code`]) records every write to it in a list. The
//!   interpreter drains the list before it executes the next instruction. It keeps predecoded words
//!   only for marked pages.
//! - Stores of programs to a page with protected bytes are checked by [`Memory::protected`].
//! - In a view ([`view`]), entry 0 marks pages that are not copied from the base. Page 0 of a view
//!   is never read.
//! - The limit given at creation bounds the number of pages; a write beyond it fails with
//!   [`MemoryFull`].

mod view;

use self::view::View;
pub(crate) use self::view::disjoint;
use crate::fill::Fill;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of bytes in a page, which is also the unit of predecoded code.
pub const PAGE_SIZE: u32 = 4096;

const PAGE_SHIFT: u32 = PAGE_SIZE.trailing_zeros();
const PAGE_COUNT: usize = 1 << (32 - PAGE_SHIFT);
const OFFSET_MASK: u32 = PAGE_SIZE - 1;

/// A flag of a page-table entry: predecoded words of the page exist.
const CODE: u32 = 1 << 31;

/// A flag of a page-table entry: programs must not write some bytes of the page.
const READ_ONLY: u32 = 1 << 30;

/// A flag of a page-table entry in a view: the page has the contents of the base.
const SHARED: u32 = 1 << 29;

/// The mask of the page index in a page-table entry.
pub(crate) const MEMORY_INDEX: u32 = !(CODE | READ_ONLY | SHARED);

/// The last page-table entry of a page that programs may write without further checks; the first is
/// [`UNWRITTEN`] + 1.
#[cfg(feature = "jit")]
pub(crate) const PLAIN_LAST: u32 = SHARED - 1;

/// The index of the page that all unwritten pages share.
const UNWRITTEN: u32 = 0;

/// The maximum number of recorded writes to code words; beyond it the whole code cache is dropped.
const DIRTY_LIMIT: usize = 4096;

/// The error of a write that exceeds the memory limit of [`crate::Config`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryFull {
    /// The address of the write that needed a new page.
    pub address: u32,
}

impl fmt::Display for MemoryFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the write at {:#010x} exceeds the memory limit of the simulation",
            self.address
        )
    }
}

impl std::error::Error for MemoryFull {}

#[repr(C, align(64))]
struct Page([u8; PAGE_SIZE as usize]);

/// The writes to predecoded code since the last [`Memory::take_code_writes`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum CodeWrites {
    /// No writes.
    #[default]
    None,
    /// Writes to these words (4-aligned addresses).
    Words(Vec<u32>),
    /// Too many writes to list: all predecoded code has to be dropped.
    All,
}

/// Sparse little-endian memory. Addresses wrap at 2^32.
pub struct Memory {
    /// A unique number, so that predecoded code of another memory is never used for this one.
    identity: u64,
    /// [`PAGE_COUNT`] entries, allocated as zeros: most of the 4 MiB is never touched.
    table: Box<[u32]>,
    pages: Vec<Page>,
    page_limit: usize,
    fill: Fill,
    /// The table indices that are marked as code.
    code_slots: Vec<u32>,
    code_writes: CodeWrites,
    /// The first and last addresses of the ranges that programs must not write.
    read_only: Vec<(u32, u32)>,
    /// The state of a view of another memory.
    view: Option<Box<View>>,
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory")
            .field("pages", &(self.pages.len() - 1))
            .finish_non_exhaustive()
    }
}

/// Returns a new identity.
fn new_identity() -> u64 {
    static IDENTITIES: AtomicU64 = AtomicU64::new(1);
    IDENTITIES.fetch_add(1, Ordering::Relaxed)
}

impl Memory {
    /// Creates empty memory (all zero) that may grow to `limit` bytes, rounded down to whole pages,
    /// at least one.
    pub fn new(limit: u64) -> Memory {
        Memory::with_fill(limit, Fill::Zero)
    }

    /// Creates empty memory with other initial contents.
    pub fn with_fill(limit: u64, fill: Fill) -> Memory {
        let mut unwritten = Page([0; PAGE_SIZE as usize]);
        if let Some(mut source) = fill.source(0) {
            source.bytes(&mut unwritten.0);
        }
        let page_limit = usize::try_from(limit >> PAGE_SHIFT)
            .unwrap_or(PAGE_COUNT)
            .clamp(1, PAGE_COUNT);
        Memory {
            identity: new_identity(),
            table: vec![0; PAGE_COUNT].into_boxed_slice(),
            pages: vec![unwritten],
            page_limit,
            fill,
            code_slots: Vec::new(),
            code_writes: CodeWrites::None,
            read_only: Vec::new(),
            view: None,
        }
    }

    /// Makes `length` bytes from `address` on read-only for programs. Loaders and debuggers can
    /// still write them.
    ///
    /// # Errors
    ///
    /// [`MemoryFull`] if the limit is reached.
    pub(crate) fn protect(&mut self, address: u32, length: u32) -> Result<(), MemoryFull> {
        let Some(last) = length.checked_sub(1).map(|rest| address.saturating_add(rest)) else {
            return Ok(());
        };
        for slot in address >> PAGE_SHIFT..=last >> PAGE_SHIFT {
            self.own_page(slot << PAGE_SHIFT)?;
            self.table[slot as usize] |= READ_ONLY;
        }
        self.read_only.push((address, last));
        Ok(())
    }

    /// Returns the first address in the range that programs must not write, if any.
    pub(crate) fn protected(&self, address: u32, length: usize) -> Option<u32> {
        let last = address.saturating_add(u32::try_from(length).ok()?.checked_sub(1)?);
        if (self.flags(address) | self.flags(last)) & READ_ONLY == 0 {
            return None;
        }
        let hit = |&&(first, end): &&(u32, u32)| first <= last && address <= end;
        self.read_only.iter().find(hit).map(|&(first, _)| first.max(address))
    }

    /// Returns whether the page has bytes that programs must not write.
    pub(crate) fn is_guarded(&self, address: u32) -> bool {
        self.flags(address) & READ_ONLY != 0
    }

    /// The number of bytes in written pages.
    pub fn resident_bytes(&self) -> u64 {
        (self.pages.len() as u64 - 1) << PAGE_SHIFT
    }

    pub(crate) fn identity(&self) -> u64 {
        self.identity
    }

    /// Reads `bytes` from `address` on. Unwritten memory has the contents of its [`Fill`], zero by
    /// default.
    pub fn read(&self, address: u32, bytes: &mut [u8]) {
        let mut at = address;
        let mut rest = bytes;
        while !rest.is_empty() {
            let offset = (at & OFFSET_MASK) as usize;
            let length = rest.len().min(PAGE_SIZE as usize - offset);
            let (now, later) = rest.split_at_mut(length);
            now.copy_from_slice(&self.page(at)[offset..offset + length]);
            at = at.wrapping_add(length as u32);
            rest = later;
        }
    }

    /// Writes `bytes` from `address` on.
    ///
    /// # Errors
    ///
    /// [`MemoryFull`] if the limit is reached; bytes of earlier pages have then been written.
    pub fn write(&mut self, address: u32, bytes: &[u8]) -> Result<(), MemoryFull> {
        let mut at = address;
        let mut rest = bytes;
        while !rest.is_empty() {
            let offset = (at & OFFSET_MASK) as usize;
            let length = rest.len().min(PAGE_SIZE as usize - offset);
            let (now, later) = rest.split_at(length);
            self.page_mut(at, length as u32)?[offset..offset + length].copy_from_slice(now);
            at = at.wrapping_add(length as u32);
            rest = later;
        }
        Ok(())
    }

    /// Sets `length` bytes from `address` on to zero. Allocates no memory for unwritten pages that
    /// read as zero.
    ///
    /// # Errors
    ///
    /// [`MemoryFull`] if the limit is reached.
    pub fn clear(&mut self, address: u32, length: u32) -> Result<(), MemoryFull> {
        let (mut at, mut left) = (address, length);
        while left != 0 {
            let offset = at & OFFSET_MASK;
            let now = left.min(PAGE_SIZE - offset);
            if self.fill != Fill::Zero || self.page_index(at) != UNWRITTEN as usize {
                self.page_mut(at, now)?[offset as usize..(offset + now) as usize].fill(0);
            }
            at = at.wrapping_add(now);
            left -= now;
        }
        Ok(())
    }

    /// Iterates over the written pages and the addresses of their first bytes, in ascending order
    /// of address. A view has only the pages that it copied from its base.
    pub fn written_pages(&self) -> impl Iterator<Item = (u32, &[u8])> {
        let slots = (0u32..).zip(&self.table);
        slots.filter_map(|(slot, entry)| match (entry & MEMORY_INDEX) as usize {
            0 => None,
            index => Some((slot << PAGE_SHIFT, &self.pages[index].0[..])),
        })
    }

    /// Reads the byte at `address`.
    pub fn read_u8(&self, address: u32) -> u8 {
        self.page(address)[(address & OFFSET_MASK) as usize]
    }

    /// Reads the little-endian half word at `address`, aligned or not.
    pub fn read_u16(&self, address: u32) -> u16 {
        u16::from_le_bytes(self.read_array(address))
    }

    /// Reads the little-endian word at `address`, aligned or not.
    pub fn read_u32(&self, address: u32) -> u32 {
        u32::from_le_bytes(self.read_array(address))
    }

    /// Writes a byte.
    ///
    /// # Errors
    ///
    /// [`MemoryFull`] if the limit is reached.
    pub fn write_u8(&mut self, address: u32, value: u8) -> Result<(), MemoryFull> {
        self.write(address, &[value])
    }

    /// Writes a little-endian half word, aligned or not.
    ///
    /// # Errors
    ///
    /// [`MemoryFull`] if the limit is reached.
    pub fn write_u16(&mut self, address: u32, value: u16) -> Result<(), MemoryFull> {
        self.write(address, &value.to_le_bytes())
    }

    /// Writes a little-endian word, aligned or not.
    ///
    /// # Errors
    ///
    /// [`MemoryFull`] if the limit is reached.
    pub fn write_u32(&mut self, address: u32, value: u32) -> Result<(), MemoryFull> {
        self.write(address, &value.to_le_bytes())
    }

    fn read_array<const N: usize>(&self, address: u32) -> [u8; N] {
        let mut bytes = [0; N];
        self.read(address, &mut bytes);
        bytes
    }

    fn entry(&self, address: u32) -> u32 {
        self.table[(address >> PAGE_SHIFT) as usize]
    }

    /// Returns the index of the page that contains `address`, or 0 if the page is unwritten. A
    /// nonzero index never changes.
    #[inline]
    pub(crate) fn page_index(&self, address: u32) -> usize {
        (self.entry(address) & MEMORY_INDEX) as usize
    }

    /// Returns the page-table entry of an address; a view without the page returns that of its
    /// base.
    fn flags(&self, address: u32) -> u32 {
        match (self.entry(address), &self.view) {
            (UNWRITTEN, Some(view)) => view.flags(address),
            (entry, _) => entry,
        }
    }

    /// Returns whether the page is unwritten, in this memory and in the base of a view.
    pub(crate) fn is_unwritten(&self, address: u32) -> bool {
        let entry = self.entry(address);
        match &self.view {
            None => entry == UNWRITTEN,
            Some(view) => (entry == UNWRITTEN || entry & SHARED != 0) && view.flags(address) == UNWRITTEN,
        }
    }

    pub(crate) fn is_view(&self) -> bool {
        self.view.is_some()
    }

    #[inline(always)]
    fn page(&self, address: u32) -> &[u8; PAGE_SIZE as usize] {
        match self.page_index(address) {
            0 => self.unwritten(address),
            index => &self.pages[index].0,
        }
    }

    /// Returns the page of an address without an entry.
    #[cold]
    fn unwritten(&self, address: u32) -> &[u8; PAGE_SIZE as usize] {
        let from_base = self.view.as_ref().and_then(|view| view.page(address));
        from_base.unwrap_or(&self.pages[UNWRITTEN as usize].0)
    }

    /// Copies the page of `address` from the base into a view, so that loads find it in the table;
    /// does nothing in other memories.
    #[inline(always)]
    pub(crate) fn bring(&mut self, address: u32) {
        if self.page_index(address) == UNWRITTEN as usize && self.view.is_some() {
            // If the view is full, the definition reads the base instead.
            let _ = self.page_in_view(address);
        }
    }

    /// Returns the page table and the pages, for translated code. Both pointers are valid until the
    /// next write to memory through `self`.
    #[cfg(feature = "jit")]
    pub(crate) fn places(&mut self) -> (*const u32, *mut u8) {
        (self.table.as_ptr(), self.pages.as_mut_ptr().cast())
    }

    /// Returns the index of the page of `address`; allocates an unwritten page first.
    pub(crate) fn own_page(&mut self, address: u32) -> Result<usize, MemoryFull> {
        if self.view.is_some() {
            return self.own_in_view(address);
        }
        let entry = &mut self.table[(address >> PAGE_SHIFT) as usize];
        if *entry == UNWRITTEN {
            if self.pages.len() > self.page_limit {
                return Err(MemoryFull { address });
            }
            *entry = self.pages.len() as u32;
            self.pages.push(Page(self.pages[UNWRITTEN as usize].0));
        }
        Ok((*entry & MEMORY_INDEX) as usize)
    }

    /// Returns the page of `address` for a write of `length` bytes within the page.
    fn page_mut(&mut self, address: u32, length: u32) -> Result<&mut [u8; PAGE_SIZE as usize], MemoryFull> {
        let index = self.own_page(address)?;
        if self.entry(address) & CODE != 0 {
            self.note_code_write(address, length);
        }
        Ok(&mut self.pages[index].0)
    }

    #[cold]
    fn note_code_write(&mut self, address: u32, length: u32) {
        let first = address & !3;
        let words = (address - first + length).div_ceil(4);
        match &mut self.code_writes {
            CodeWrites::All => {}
            CodeWrites::Words(list) if list.len() + words as usize > DIRTY_LIMIT => {
                self.code_writes = CodeWrites::All;
            }
            CodeWrites::Words(list) => list.extend((0..words).map(|k| first + 4 * k)),
            CodeWrites::None => {
                self.code_writes = CodeWrites::Words((0..words).map(|k| first + 4 * k).collect());
            }
        }
    }

    /// Marks a page as code: [`Memory::take_code_writes`] then returns later writes to it. An
    /// unwritten page is allocated first, and a view first copies a page that it does not have.
    pub(crate) fn mark_code(&mut self, address: u32) -> Result<usize, MemoryFull> {
        let index = if self.is_view() {
            self.page_in_view(address)?
        } else {
            self.own_page(address)?
        };
        let slot = address >> PAGE_SHIFT;
        let entry = &mut self.table[slot as usize];
        if *entry & CODE == 0 {
            *entry |= CODE;
            self.code_slots.push(slot);
        }
        Ok(index)
    }

    /// Removes all marks; the caller drops its predecoded code.
    pub(crate) fn unmark_all_code(&mut self) {
        for slot in self.code_slots.drain(..) {
            self.table[slot as usize] &= !CODE;
        }
    }

    /// Returns whether the page of an address is marked as code.
    pub(crate) fn holds_code(&self, address: u32) -> bool {
        self.table[(address >> PAGE_SHIFT) as usize] & CODE != 0
    }

    /// Returns whether a marked page was written since the last [`Memory::take_code_writes`].
    #[inline]
    pub(crate) fn code_written(&self) -> bool {
        self.code_writes != CodeWrites::None
    }

    pub(crate) fn take_code_writes(&mut self) -> CodeWrites {
        std::mem::take(&mut self.code_writes)
    }

    /// Reads the `N` bytes at `address` rounded down to a multiple of `N` (a power of two up to
    /// 64).
    #[inline]
    pub(crate) fn load<const N: usize>(&self, address: u32) -> [u8; N] {
        let offset = (address & OFFSET_MASK & !(N as u32 - 1)) as usize;
        let mut bytes = [0; N];
        if let Some(found) = self.page(address).get(offset..offset + N) {
            bytes.copy_from_slice(found);
        }
        bytes
    }

    /// Stores `N` bytes at `address`, rounded down as in [`Memory::load`], if the page needs no
    /// further checks. Otherwise returns `false` and does nothing; the caller then has to use
    /// [`Memory::write`].
    #[inline]
    #[must_use]
    pub(crate) fn store<const N: usize>(&mut self, address: u32, bytes: [u8; N]) -> bool {
        let entry = self.entry(address);
        // One comparison for all exceptions: an unwritten page has entry 0, the others have one of
        // the top bits set.
        if entry.wrapping_sub(1) >= SHARED - 1 {
            return false;
        }
        let offset = (address & OFFSET_MASK & !(N as u32 - 1)) as usize;
        if let Some(place) = self.pages[entry as usize].0.get_mut(offset..offset + N) {
            place.copy_from_slice(&bytes);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unwritten_memory_is_zero_and_costs_nothing() {
        let memory = Memory::new(1 << 20);
        assert_eq!(memory.read_u32(0xffff_fffe), 0);
        assert_eq!(memory.resident_bytes(), 0);
    }

    #[test]
    fn unwritten_memory_holds_what_it_was_filled_with() {
        let [mut memory, same, other] = [1, 1, 2].map(|seed| Memory::with_fill(1 << 20, Fill::Random(seed)));
        let before = memory.read_u32(0x1008);
        assert_eq!(before, same.read_u32(0x1008));
        assert_ne!(before, other.read_u32(0x1008));
        memory.write_u32(0x1004, 7).unwrap();
        assert_eq!([memory.read_u32(0x1004), memory.read_u32(0x1008)], [7, before]);
        memory.clear(0x1ffe, 4).unwrap();
        assert_eq!(memory.read_u32(0x1ffe), 0);
        assert_ne!(memory.read_u32(0x2002), 0);
    }

    #[test]
    fn what_is_cleared_is_zero_and_its_neighbours_stay() {
        let mut memory = Memory::new(3 << 12);
        memory.write(0x1ffc, &[9; 0x1008]).unwrap();
        memory.clear(0x1ffe, 0x1004).unwrap();
        assert_eq!(
            [memory.read_u32(0x1ffc), memory.read_u32(0x3000)],
            [0x0909, 0x0909_0000]
        );
        assert_eq!([memory.read_u32(0x2000), memory.read_u32(0x2ffc)], [0, 0]);
        memory.clear(0, u32::MAX).unwrap();
        assert_eq!(memory.read_u32(0x1ffc), 0);
        assert_eq!(memory.resident_bytes(), 3 << 12);
    }

    #[test]
    fn writes_cross_pages_and_wrap() {
        let mut memory = Memory::new(1 << 20);
        let bytes: Vec<u8> = (0..100).collect();
        memory.write(0xffff_ffd0, &bytes).unwrap();
        let mut back = [0; 100];
        memory.read(0xffff_ffd0, &mut back);
        assert_eq!(&back[..], &bytes[..]);
        assert_eq!(memory.read_u8(0), 48);
        assert_eq!(memory.read_u16(0xffff_ffff), 47 | 48 << 8);
    }

    #[test]
    fn the_limit_holds() {
        let mut memory = Memory::new(8192);
        memory.write_u32(0, 1).unwrap();
        memory.write_u32(0x10_0000, 2).unwrap();
        assert_eq!(memory.write_u32(0x20_0000, 3), Err(MemoryFull { address: 0x20_0000 }));
        assert_eq!(memory.read_u32(0x20_0000), 0);
    }

    #[test]
    fn what_is_protected_is_not_stored_to_by_the_way() {
        let mut memory = Memory::new(1 << 20);
        memory.write_u32(0x1000, 7).unwrap();
        memory.protect(0x1004, 8).unwrap();
        assert!(!memory.store(0x1000, [1, 2, 3, 4]));
        let cases = [
            (0x1000, 4, None),
            (0x1000, 8, Some(0x1004)),
            (0x100b, 1, Some(0x100b)),
            (0x100c, 64, None),
        ];
        for (address, length, wanted) in cases {
            assert_eq!(memory.protected(address, length), wanted, "{address:#x}");
        }
        assert_eq!(memory.read_u32(0x1000), 7);
        memory.write_u32(0x1004, 8).unwrap();
        assert_eq!(memory.read_u32(0x1004), 8);
    }

    #[test]
    fn code_pages_report_the_words_written() {
        let mut memory = Memory::new(1 << 20);
        memory.write_u32(0x1000, 7).unwrap();
        memory.mark_code(0x1000).unwrap();
        assert!(!memory.store(0x1000, [1, 2, 3, 4]));
        memory.write(0x1003, &[9, 9]).unwrap();
        assert!(memory.code_written());
        assert_eq!(memory.take_code_writes(), CodeWrites::Words(vec![0x1000, 0x1004]));
        assert!(!memory.code_written());
        memory.unmark_all_code();
        assert!(memory.store(0x1000, [1, 2, 3, 4]));
        assert_eq!(memory.read_u32(0x1000), 0x0403_0201);
    }
}
