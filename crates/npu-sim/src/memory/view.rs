//! Views of a memory: what one core reads and writes of it while other cores run at the same time.
//!
//! A view takes over a page from its base when it is looked at first, and keeps what is written to it for itself. Afterwards
//! [`disjoint`] tells whether several views could have shared the base, and [`Memory::commit`] writes what one of them wrote.
//!
//! Invariants:
//! - An entry of the table with [`SHARED`] is a page with the contents of the base; one without was written in the view.
//! - Every page of the base that was looked at is in `slots` or in `looked_at`.
//! - Pages with predecoded words stay in a view from one base to the next while their bytes are the same.

use super::{CODE, MEMORY_INDEX, Memory, MemoryFull, PAGE_SHIFT, PAGE_SIZE, Page, READ_ONLY, SHARED, UNWRITTEN};
use crate::fill::Fill;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that a view can take over or write; programs that need more run without views.
const VIEW_LIMIT: u64 = 64 << 20;

/// What a view has beside its pages.
#[derive(Default)]
pub(super) struct View {
    /// The memory that it is a view of, between [`Memory::begin`] and [`Memory::end`].
    base: Option<Arc<Memory>>,
    /// Places in the table that have a page.
    slots: Vec<u32>,
    /// Those of them that were written, none of them twice.
    written: Vec<u32>,
    /// Indices of pages that no place has.
    free: Vec<u32>,
    /// Places of the base that were looked at without being taken over.
    looked_at: Mutex<Vec<u32>>,
}

impl View {
    pub(super) fn flags(&self, address: u32) -> u32 {
        self.base.as_ref().map_or(UNWRITTEN, |base| base.entry(address))
    }

    /// The page of the base, which is not taken over.
    pub(super) fn page(&self, address: u32) -> Option<&[u8; PAGE_SIZE as usize]> {
        let base = self.base.as_ref()?;
        let mut looked_at = self.looked_at.lock().unwrap_or_else(PoisonError::into_inner);
        looked_at.push(address >> PAGE_SHIFT);
        Some(base.page(address))
    }
}

impl Memory {
    /// A view without a base.
    pub(crate) fn view() -> Memory {
        Memory {
            view: Some(Box::default()),
            ..Memory::with_fill(VIEW_LIMIT, Fill::Zero)
        }
    }

    /// What stands for a memory that is elsewhere: it must not be used.
    pub(crate) fn nothing() -> Memory {
        Memory {
            table: Box::default(),
            ..Memory::new(0)
        }
    }

    /// Makes a view one of `base` as it is, with nothing looked at but code.
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
            // Predecoded words are those of another memory.
            self.identity = super::new_identity();
        }
        view.written.clear();
        view.looked_at.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
        self.read_only.clone_from(&base.read_only);
        view.base = Some(base);
    }

    /// Lets go of the base. What was written stays until the next [`Memory::begin`].
    pub(crate) fn end(&mut self) {
        if let Some(view) = &mut self.view {
            view.base = None;
        }
    }

    /// The index of the page of `address` in a view, which takes it over if it does not have it.
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

    /// The index of the page of `address`, which is about to be written in a view.
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

    /// Whether what the views wrote together fits.
    pub(crate) fn has_room_for<'a>(&self, views: impl Iterator<Item = &'a Memory>) -> bool {
        let written = views
            .filter_map(|memory| memory.view.as_ref())
            .flat_map(|view| &view.written);
        let new = written.filter(|&&slot| self.table[slot as usize] == UNWRITTEN).count();
        self.pages.len() - 1 + new <= self.page_limit
    }

    /// Writes what a view of this memory wrote.
    ///
    /// # Errors
    ///
    /// [`MemoryFull`] when the limit is reached, which [`Memory::has_room_for`] tells before.
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

/// Whether no view looked at a page that another one wrote.
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
