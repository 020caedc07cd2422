//! Hot loops as code of the host (feature `jit`).
//!
//! A backward branch that was taken often enough makes its target the head of a translation: all that is reached from there by
//! direct branches inside the page, made of operations that [`translate`] knows. Everything else leaves the translation, with the
//! state of the thread as the interpreter has it before that operation, and the interpreter goes on.
//!
//! Invariants:
//! - A translation is entered only with nothing watched, no data caches, and directly after a taken branch.
//! - It is a function of the predecoded operations it was made from. When [`CodeCache::generation`] has changed, these are
//!   compared with those of now before it is entered again. Stores to code leave it before they are done.
//! - It counts every instruction and begins no block that the budget does not cover.

mod host;
mod translate;

use self::host::{Host, State};
use self::translate::Region;
use crate::fast::Port;
use crate::memory::{Memory, PAGE_SIZE};
use crate::predecode::CodeCache;
use crate::thread::Thread;

/// Heads that are known at a time; a power of two. Others that fall on the same place wait until it is free.
const PLACES: usize = 1024;

/// Translations of one machine, after which no more are made: programs that change their loops all the time are interpreted.
const TRANSLATIONS: u32 = 2048;

/// Instructions that must be left for an entry to be worth it.
const LEAST: u64 = 16;

/// What is known about a head.
enum Place {
    Free,
    /// Taken this often.
    Counted {
        head: u32,
        times: u32,
    },
    Translated {
        head: u32,
        region: Region,
        code: host::Code,
        generation: u64,
    },
    /// Not worth a translation while the code stays as it is.
    Refused {
        head: u32,
        generation: u64,
    },
}

/// Translations of the code of a machine.
pub(crate) struct Jit {
    places: Vec<Place>,
    /// Made for the first translation; `None` again when the host has no code generator.
    host: Option<Host>,
    left: u32,
    /// Taken backward branches before a translation; `None`: no translations.
    after: Option<u32>,
    entered: u64,
}

impl Jit {
    pub fn new() -> Jit {
        Jit {
            places: Vec::new(),
            host: None,
            left: TRANSLATIONS,
            after: Some(DEFAULT_AFTER),
            entered: 0,
        }
    }

    pub fn set_after(&mut self, after: Option<u32>) {
        self.after = after;
    }

    /// Times that a translation was entered.
    pub fn entered(&self) -> u64 {
        self.entered
    }

    /// Translates the loop at `head`.
    fn translate(&mut self, code: &CodeCache, memory: &Memory, head: u32) -> Place {
        let refused = Place::Refused {
            head,
            generation: code.generation(),
        };
        let index = memory.page_index(head);
        let region = match code.page(index) {
            // Index 0 is shared by all pages never written.
            Some(page) if index != 0 => Region::find(page, head),
            _ => None,
        };
        let Some(region) = region else {
            return refused;
        };
        if self.left == 0 {
            return refused;
        }
        self.left -= 1;
        if self.host.is_none() {
            self.host = Host::new();
        }
        let Some(code_of_host) = self.host.as_mut().and_then(|host| host.compile(&region)) else {
            // A host without a code generator has none later on.
            self.after = None;
            return refused;
        };
        Place::Translated {
            head,
            region,
            code: code_of_host,
            generation: code.generation(),
        }
    }

    /// A backward branch to `pc` was taken. Gives whether a translation ran, and has changed thread, memory and budget.
    #[inline]
    fn turned(
        &mut self,
        code: &CodeCache,
        memory: &mut Memory,
        thread: &mut Thread,
        pc: u32,
        budget: &mut u64,
    ) -> bool {
        let Some(after) = self.after else {
            return false;
        };
        if *budget < LEAST || pc & 3 != 0 {
            return false;
        }
        if self.places.is_empty() {
            self.places.resize_with(PLACES, || Place::Free);
        }
        let number = (pc >> 2) as usize % PLACES;
        match &mut self.places[number] {
            Place::Translated {
                head,
                region,
                code: code_of_host,
                generation,
            } if *head == pc => {
                if *generation != code.generation() {
                    let page = code.page(memory.page_index(pc));
                    if !page.is_some_and(|page| region.is_of(page)) {
                        self.places[number] = Place::Free;
                        return false;
                    }
                    *generation = code.generation();
                }
                let mut state = State::new(&mut thread.scalars, memory.places(), *budget);
                host::run(*code_of_host, &mut state);
                thread.pc = state.pc;
                thread.watch.last_long = state.last_long;
                // Addresses of branches are multiples of four.
                if state.last_branch != translate::NO_BRANCH {
                    thread.last_branch = Some(state.last_branch);
                }
                *budget = state.left;
                self.entered += 1;
                true
            }
            Place::Counted { head, times } if *head == pc => {
                *times += 1;
                if *times >= after {
                    self.places[number] = self.translate(code, memory, pc);
                }
                false
            }
            Place::Refused { head, generation } if *head == pc => {
                if *generation != code.generation() {
                    self.places[number] = Place::Free;
                }
                false
            }
            // A translation keeps its place.
            Place::Translated { generation, .. } if *generation == code.generation() => false,
            Place::Free | Place::Counted { .. } | Place::Refused { .. } | Place::Translated { .. } => {
                self.places[number] = Place::Counted { head: pc, times: 1 };
                false
            }
        }
    }
}

/// Rounds of a loop that are interpreted before it is translated, which takes about as long as a million instructions.
const DEFAULT_AFTER: u32 = 2000;

/// Main memory itself, with translations.
pub(crate) struct Translating<'a> {
    pub memory: &'a mut Memory,
    pub jit: &'a mut Jit,
}

impl Port for Translating<'_> {
    #[inline(always)]
    fn memory(&self) -> &Memory {
        self.memory
    }

    #[inline(always)]
    fn load<const N: usize>(&self, address: u32) -> Option<[u8; N]> {
        Some(Memory::load(self.memory, address))
    }

    #[inline(always)]
    fn store<const N: usize>(&mut self, address: u32, bytes: [u8; N]) -> bool {
        Memory::store(self.memory, address, bytes)
    }

    #[inline(always)]
    fn turned(&mut self, code: &CodeCache, thread: &mut Thread, pc: u32, budget: &mut u64) -> bool {
        self.jit.turned(code, self.memory, thread, pc, budget)
    }
}

const _: () = assert!(
    PAGE_SIZE == 4096,
    "translations have the page size in their shifts and masks"
);
