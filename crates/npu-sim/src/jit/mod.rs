//! Hot loops as code of the host (feature `jit`).
//!
//! Where backward branches, calls and returns went often enough a translation begins: all that is reached from there by
//! direct branches, calls and the returns from them, made of operations that [`region`] knows. Everything else leaves the translation,
//! with the state of the thread as the interpreter has it before that operation, and the interpreter goes on.
//!
//! Invariants:
//! - A translation is entered only without data caches, directly after a taken branch, and when it touches nothing that is watched.
//! - It is a function of the predecoded operations it was made from. When [`CodeCache::generation`] has changed, these are
//!   compared with those of now before it is entered again. Stores to code leave it before they are done.
//! - It counts every instruction and begins nothing that the budget does not cover.

mod host;
mod region;
mod translate;
mod units;
mod vectors;

use self::host::{Host, State};
use self::region::Region;
use crate::fast::{Port, Watched};
use crate::memory::{Memory, PAGE_SIZE};
use crate::predecode::CodeCache;
use crate::thread::Thread;

/// Heads that are known at a time; a power of two. Others that fall on the same place wait until it is free.
const PLACES: usize = 1024;

/// Translations of one machine, after which no more are made: programs that change their loops all the time are interpreted.
const TRANSLATIONS: u32 = 512;

/// Instructions that must be left for a look at translations.
const LEAST: u64 = 8;

/// Entries of a translation after which it is asked whether it is worth them.
const TRIAL: u32 = 64;

/// Instructions an entry, in the mean, for a translation to be worth it: reading and writing back registers takes about as long.
const WORTH: u64 = 16;

/// A loop of the host's code.
struct Translation {
    head: u32,
    region: Region,
    code: host::Code,
    /// That of the code it was last compared with.
    generation: u64,
    /// Entries, up to [`TRIAL`].
    entries: u32,
    /// Instructions in those.
    executed: u64,
}

/// What is known about a head.
enum Place {
    Free,
    /// Taken this often.
    Counted {
        head: u32,
        times: u32,
    },
    Translated(Box<Translation>),
    /// Not worth a translation while the code stays as it is.
    Refused {
        head: u32,
        generation: u64,
    },
}

/// What a translation came to.
enum After {
    /// There was none.
    Nothing,
    /// An operation that is for the interpreter.
    Operation,
    /// A branch out of it, which was taken.
    Branch,
}

/// Translations of the code of a machine.
pub(crate) struct Jit {
    places: Vec<Place>,
    /// Made for the first translation.
    host: Option<Host>,
    left: u32,
    /// For views of memory, whose pages may still have to be taken over when they are read.
    views: bool,
    /// Taken backward branches before a translation; `None`: no translations.
    after: Option<u32>,
    entered: u64,
    executed: u64,
}

impl Jit {
    /// `after`: see [`crate::Config::translate_after`]. `views`: memory is a view.
    pub fn new(after: Option<u32>, views: bool) -> Jit {
        Jit {
            places: Vec::new(),
            host: None,
            left: TRANSLATIONS,
            views,
            after,
            entered: 0,
            executed: 0,
        }
    }

    /// Times that a translation was entered.
    pub fn entered(&self) -> u64 {
        self.entered
    }

    /// Instructions that translations executed.
    pub fn executed(&self) -> u64 {
        self.executed
    }

    /// Forgets the counts and gives them: entries and instructions.
    pub fn take_counts(&mut self) -> (u64, u64) {
        (std::mem::take(&mut self.entered), std::mem::take(&mut self.executed))
    }

    /// Adds the counts of other translations.
    pub fn add_counts(&mut self, (entered, executed): (u64, u64)) {
        self.entered += entered;
        self.executed += executed;
    }

    /// Translates the loop at `head`.
    #[cold]
    fn translate(&mut self, code: &CodeCache, memory: &Memory, thread: &Thread, head: u32) -> Place {
        let generation = code.generation();
        let refused = Place::Refused { head, generation };
        if self.left == 0 {
            return refused;
        }
        let register = |number: u8| thread.scalars[usize::from(number)];
        let Some(region) = Region::find(head, |pc| code.op(pc, memory), register) else {
            return refused;
        };
        self.left -= 1;
        if self.host.is_none() {
            self.host = Host::new();
        }
        let Some(host) = &mut self.host else {
            // A host without a code generator has none later on.
            self.after = None;
            return refused;
        };
        match host.compile(&region, self.views) {
            None => refused,
            Some(code) => Place::Translated(Box::new(Translation {
                head,
                region,
                code,
                generation,
                entries: 0,
                executed: 0,
            })),
        }
    }

    /// A branch to `pc` was taken that may begin something hot. Gives whether translations ran, and have changed thread, memory and budget.
    fn turned(
        &mut self,
        code: &CodeCache,
        memory: &mut Memory,
        thread: &mut Thread,
        watched: &Watched,
        pc: u32,
        budget: &mut u64,
    ) -> bool {
        if *budget < LEAST {
            return false;
        }
        let (mut pc, mut ran) = (pc, false);
        loop {
            match self.enter(code, memory, thread, watched, pc, budget) {
                After::Nothing => return ran,
                After::Operation => return true,
                // It has done at least that branch.
                After::Branch => {
                    ran = true;
                    pc = thread.pc;
                }
            }
        }
    }

    /// Runs the translation with the head `pc` if there is one, or counts.
    fn enter(
        &mut self,
        code: &CodeCache,
        memory: &mut Memory,
        thread: &mut Thread,
        watched: &Watched,
        pc: u32,
        budget: &mut u64,
    ) -> After {
        let Some(after) = self.after else {
            return After::Nothing;
        };
        if !pc.is_multiple_of(4) {
            return After::Nothing;
        }
        if self.places.is_empty() {
            self.places.resize_with(PLACES, || Place::Free);
        }
        let generation = code.generation();
        let place = &mut self.places[(pc >> 2) as usize % PLACES];
        match place {
            Place::Translated(translation) if translation.head == pc => {
                if translation.generation != generation {
                    if !translation.region.is_of(|pc| code.op(pc, memory)) {
                        *place = Place::Free;
                        return After::Nothing;
                    }
                    translation.generation = generation;
                }
                let region = &translation.region;
                if *budget < u64::from(region.least())
                    || region.touched() & (watched.unsettled | watched.undriven) != 0
                    || watched.memory != 0
                    || (region.masked() && thread.mask != u16::MAX)
                {
                    return After::Nothing;
                }
                let mask = thread.mask;
                let mut state = State::new(&mut thread.scalars, &mut thread.vectors, memory.places(), *budget);
                host::run(translation.code, &mut state);
                let State {
                    left,
                    pc: next,
                    last_long,
                    branched,
                    last_branch,
                    mask: new_mask,
                    ..
                } = state;
                thread.pc = next;
                thread.mask = if region.masked() { new_mask as u16 } else { mask };
                thread.watch.last_long = last_long;
                // Addresses of branches are multiples of four.
                if last_branch != translate::NO_BRANCH {
                    thread.last_branch = Some(last_branch);
                }
                let executed = *budget - left;
                *budget = left;
                self.entered += 1;
                self.executed += executed;
                if translation.entries < TRIAL {
                    translation.entries += 1;
                    translation.executed += executed;
                    if translation.entries == TRIAL && translation.executed < WORTH * u64::from(TRIAL) {
                        *place = Place::Refused { head: pc, generation };
                    }
                }
                if branched != 0 { After::Branch } else { After::Operation }
            }
            Place::Counted { head, times } if *head == pc => {
                *times += 1;
                if *times >= after {
                    let translated = self.translate(code, memory, thread, pc);
                    self.places[(pc >> 2) as usize % PLACES] = translated;
                }
                After::Nothing
            }
            Place::Refused { head, generation: then } if *head == pc => {
                if *then != generation {
                    *place = Place::Free;
                }
                After::Nothing
            }
            // A translation keeps its place.
            Place::Translated(translation) if translation.generation == generation => After::Nothing,
            Place::Free | Place::Counted { .. } | Place::Refused { .. } | Place::Translated(_) => {
                *place = Place::Counted { head: pc, times: 1 };
                After::Nothing
            }
        }
    }
}

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
    fn load<const N: usize>(&mut self, address: u32) -> Option<[u8; N]> {
        self.memory.bring(address);
        Some(Memory::load(self.memory, address))
    }

    #[inline(always)]
    fn store<const N: usize>(&mut self, address: u32, bytes: [u8; N]) -> bool {
        Memory::store(self.memory, address, bytes)
    }

    #[inline(always)]
    fn turned(&mut self, code: &CodeCache, thread: &mut Thread, watched: &Watched, pc: u32, budget: &mut u64) -> bool {
        self.jit.turned(code, self.memory, thread, watched, pc, budget)
    }
}

const _: () = assert!(
    PAGE_SIZE == 4096,
    "translations have the page size in their shifts and masks"
);
