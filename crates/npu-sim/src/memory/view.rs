//! Views of a memory: one core works on a view while other cores run in parallel.
//!
//! A view copies a page from its base on the first access and keeps writes to itself. Afterwards
//! [`disjoint`] returns whether the views were independent, and [`Memory::commit`] writes the
//! changes of a view to the base.
//!
//! Invariants:
//! - A table entry with [`SHARED`] denotes a page with the contents of the base; other pages were
//!   written in the view.
//! - Every accessed page of the base is in `slots` or in `looked_at`.
//! - A view keeps pages with predecoded words across bases while their bytes are the same.

use super::{CODE, MEMORY_INDEX, Memory, MemoryFull, PAGE_SHIFT, PAGE_SIZE, Page, READ_ONLY, SHARED, UNWRITTEN};
use crate::fill::Fill;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The maximum number of bytes that a view can copy or write; programs that need more run without
/// views.
const VIEW_LIMIT: u64 = 64 << 20;

/// The state of a view besides its pages.
#[derive(Default)]
pub(super) struct View {
    /// The base, between [`Memory::begin`] and [`Memory::end`].
    base: Option<Arc<Memory>>,
    /// The table indices with a page.
    slots: Vec<u32>,
    /// The elements of `slots` that were written, without duplicates.
    written: Vec<u32>,
    /// The unused page indices.
    free: Vec<u32>,
    /// The table indices of base pages that were read without a copy.
    looked_at: Mutex<Vec<u32>>,
}

impl View {
    pub(super) fn flags(&self, address: u32) -> u32 {
        self.base.as_ref().map_or(UNWRITTEN, |base| base.entry(address))
    }

    /// Returns the page of the base without copying it.
    pub(super) fn page(&self, address: u32) -> Option<&[u8; PAGE_SIZE as usize]> {
        let base = self.base.as_ref()?;
        let mut looked_at = self.looked_at.lock().unwrap_or_else(PoisonError::into_inner);
        looked_at.push(address >> PAGE_SHIFT);
        Some(base.page(address))
    }
}

impl Memory {
    /// Creates a view without a base.
    pub(crate) fn view() -> Memory {
        Memory {
            view: Some(Box::default()),
            ..Memory::with_fill(VIEW_LIMIT, Fill::Zero)
        }
    }

    /// Creates a placeholder for a memory that was moved away: it must not be used.
    pub(crate) fn nothing() -> Memory {
        Memory {
            table: Box::default(),
            ..Memory::new(0)
        }
    }

    /// Makes a view of the current contents of `base`; only pages with code count as accessed.
    pub(crate) fn begin(&mut self, base: Arc<Memory>) {
        let Some(view) = &mut self.view else {
            return;
        };
        let mut forgotten = false;
        let (table, pages, free) = (&mut self.table, &self.pages, &mut view.free);
        view.slots.retain(|&slot| {
            let entry = &mut table[slot as usize];
            let index = *entry & MEMORY_INDEX;
            let address = slot << PAGE_SHIFT;
            let is_code = *entry & CODE != 0;
            if is_code && pages[index as usize].0 == *base.page(address) {
                *entry = index | CODE | SHARED | base.entry(address) & READ_ONLY;
                return true;
            }
            forgotten |= is_code;
            *entry = UNWRITTEN;
            free.push(index);
            false
        });
        if forgotten {
            // The predecoded words belong to other memory contents.
            self.identity = super::new_identity();
        }
        view.written.clear();
        view.looked_at.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
        self.read_only.clone_from(&base.read_only);
        view.base = Some(base);
    }

    /// Drops the reference to the base. Written pages stay until the next [`Memory::begin`].
    pub(crate) fn end(&mut self) {
        if let Some(view) = &mut self.view {
            view.base = None;
        }
    }

    /// Returns the index of the page of `address` in a view; copies the page from the base if
    /// necessary.
    #[cold]
    pub(super) fn page_in_view(&mut self, address: u32) -> Result<usize, MemoryFull> {
        match self.page_index(address) {
            0 => self.take_over(address),
            index => Ok(index),
        }
    }

    fn take_over(&mut self, address: u32) -> Result<usize, MemoryFull> {
        let full = MemoryFull { address };
        let View { base, slots, free, .. } = self.view.as_deref_mut().ok_or(full)?;
        let base = base.as_deref().ok_or(full)?;
        let index = match free.pop() {
            Some(index) => {
                self.pages[index as usize].0 = *base.page(address);
                index
            }
            None if self.pages.len() > self.page_limit => return Err(full),
            None => {
                self.pages.push(Page(*base.page(address)));
                self.pages.len() as u32 - 1
            }
        };
        let slot = address >> PAGE_SHIFT;
        self.table[slot as usize] = index | SHARED | base.entry(address) & READ_ONLY;
        slots.push(slot);
        Ok(index as usize)
    }

    /// Returns the index of the page of `address` in a view, for writing.
    pub(super) fn own_in_view(&mut self, address: u32) -> Result<usize, MemoryFull> {
        let index = self.page_in_view(address)?;
        let slot = address >> PAGE_SHIFT;
        let entry = &mut self.table[slot as usize];
        if *entry & SHARED != 0 {
            *entry &= !SHARED;
            if let Some(view) = &mut self.view {
                view.written.push(slot);
            }
        }
        Ok(index)
    }

    /// Returns whether the new pages of all views together fit into the limit.
    pub(crate) fn has_room_for<'a>(&self, views: impl Iterator<Item = &'a Memory>) -> bool {
        let written = views
            .filter_map(|memory| memory.view.as_ref())
            .flat_map(|view| &view.written);
        let new = written.filter(|&&slot| self.table[slot as usize] == UNWRITTEN).count();
        self.pages.len() - 1 + new <= self.page_limit
    }

    /// Writes the changes of a view to this memory.
    ///
    /// # Errors
    ///
    /// [`MemoryFull`] if the limit is reached; [`Memory::has_room_for`] tests this in advance.
    pub(crate) fn commit(&mut self, other: &Memory) -> Result<(), MemoryFull> {
        let written = other.view.iter().flat_map(|view| &view.written);
        for &slot in written {
            let index = (other.table[slot as usize] & MEMORY_INDEX) as usize;
            let address = slot << PAGE_SHIFT;
            *self.page_mut(address, PAGE_SIZE)? = other.pages[index].0;
        }
        Ok(())
    }
}

/// Returns whether no view accessed a page that another one wrote.
pub(crate) fn disjoint<'a>(views: impl Iterator<Item = &'a Memory> + Clone) -> bool {
    let views = views.filter_map(|memory| memory.view.as_ref()).enumerate();
    let mut writers: FxHashMap<u32, usize> = FxHashMap::default();
    for (number, view) in views.clone() {
        for &slot in &view.written {
            if writers.insert(slot, number).is_some() {
                return false;
            }
        }
    }
    views.into_iter().all(|(number, view)| {
        let looked_at = view.looked_at.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = view.slots.iter().chain(looked_at.iter());
        all.all(|slot| writers.get(slot).is_none_or(|&writer| writer == number))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view_of(base: &Arc<Memory>) -> Memory {
        let mut view = Memory::view();
        view.begin(Arc::clone(base));
        view
    }

    #[test]
    fn a_view_reads_its_base_and_keeps_its_writes() {
        let mut base = Memory::with_fill(1 << 20, Fill::Random(3));
        base.write_u32(0x1004, 7).unwrap();
        let base = Arc::new(base);
        let mut view = view_of(&base);
        assert_eq!(view.read_u32(0x1004), 7);
        assert_eq!(view.read_u32(0x9000), base.read_u32(0x9000));
        assert!(
            !view.store(0x1000, [1; 4]),
            "a page of the base is not written in place"
        );
        view.write_u32(0x1000, 1).unwrap();
        assert!(view.store(0x1008, [2; 4]));
        assert_eq!(view.read_u32(0x1004), 7);
        let before = base.read_u32(0x1000);
        view.end();
        let mut base = Arc::into_inner(base).unwrap();
        assert_eq!(base.read_u32(0x1000), before);
        base.commit(&view).unwrap();
        assert_eq!(
            [0x1000, 0x1004, 0x1008].map(|at| base.read_u32(at)),
            [1, 7, 0x0202_0202]
        );
    }

    #[test]
    fn a_view_starts_again_with_what_the_base_is_then() {
        let mut base = Memory::new(1 << 20);
        base.write_u32(0x1000, 7).unwrap();
        let mut base = Arc::new(base);
        let mut view = view_of(&base);
        view.write_u32(0x1000, 8).unwrap();
        view.write_u32(0x5000, 9).unwrap();
        view.end();
        Arc::get_mut(&mut base).unwrap().write_u32(0x2000, 5).unwrap();
        view.begin(base);
        assert_eq!([0x1000, 0x2000, 0x5000].map(|at| view.read_u32(at)), [7, 5, 0]);
    }

    #[test]
    fn code_is_forgotten_when_the_base_has_other_words() {
        let mut base = Memory::new(1 << 20);
        base.write_u32(0x1000, 7).unwrap();
        let mut base = Arc::new(base);
        let mut view = view_of(&base);
        let index = view.mark_code(0x1000).unwrap();
        let identity = view.identity();
        view.end();
        view.begin(Arc::clone(&base));
        assert_eq!((view.identity(), view.page_index(0x1000)), (identity, index));
        view.end();
        Arc::get_mut(&mut base).unwrap().write_u32(0x1000, 8).unwrap();
        view.begin(base);
        assert_ne!(view.identity(), identity);
        assert_eq!(view.read_u32(0x1000), 8);
    }

    #[test]
    fn views_are_disjoint_unless_one_looks_at_what_another_writes() {
        let base = Arc::new(Memory::new(1 << 20));
        let [mut a, mut b] = [(); 2].map(|()| view_of(&base));
        let both = |a: &Memory, b: &Memory| disjoint([a, b].into_iter());
        a.write_u32(0x1000, 1).unwrap();
        b.write_u32(0x2000, 1).unwrap();
        a.bring(0x3000);
        b.bring(0x3000);
        assert!(both(&a, &b));
        assert_eq!(b.read_u32(0x1ffc), 0);
        assert!(!both(&a, &b), "a read of what the other wrote");
        let mut c = view_of(&base);
        c.write_u32(0x1800, 1).unwrap();
        assert!(!both(&a, &c), "two writes to a page");
    }

    #[test]
    fn there_is_room_for_new_pages_up_to_the_limit() {
        let mut base = Memory::new(3 << PAGE_SHIFT);
        base.write_u32(0x1000, 1).unwrap();
        let base = Arc::new(base);
        let [mut a, mut b] = [(); 2].map(|()| view_of(&base));
        a.write_u32(0x1000, 2).unwrap();
        a.write_u32(0x2000, 2).unwrap();
        b.write_u32(0x3000, 2).unwrap();
        assert!(base.has_room_for([&a, &b].into_iter()));
        b.write_u32(0x4000, 2).unwrap();
        assert!(!base.has_room_for([&a, &b].into_iter()));
    }
}
