//! Hot loops as code of the host (feature `jit`).
//!
//! Where backward branches, calls and returns went often enough a translation begins: all that is reached from there by
//! direct branches, calls and the returns from them, made of operations that [`region`] knows. Everything else leaves the translation,
//! with the state of the thread as the interpreter has it before that operation, and the interpreter goes on.
//!
//! Invariants:
//! - A translation is entered only without data caches, directly after a taken branch, when it touches nothing that may not hold its last result, and
//!   when of the registers that it touches just those have undriven halves that it was made for.
//! - It is a function of the predecoded operations it was made from. When [`CodeCache::generation`] has changed, these are
//!   compared with those of now before it is entered again. Stores to code leave it before they are done.
//! - It counts every instruction and begins nothing that the budget does not cover.

mod access;
mod host;
mod operations;
mod region;
mod state;
mod translate;
mod undriven;
mod units;
mod vectors;

use self::host::Host;
use self::region::Region;
use self::state::State;
use self::translate::Entry;
use crate::fast::Port;
use crate::memory::{Memory, PAGE_SIZE};
use crate::predecode::CodeCache;
use crate::shared::Shared;
use crate::thread::Thread;
use std::collections::BTreeSet;

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

/// Times that a translation was not made for what came, after which another is made.
const MISSES: u32 = 16;

/// Translations of one head, after which the last one stays whatever comes.
const CHANGES: u32 = 8;

/// A loop of the host's code.
struct Translation {
    head: u32,
    region: Region,
    entry: Entry,
    code: host::Code,
    /// Translations of that head before it.
    changes: u32,
    /// Times that it was not made for what came.
    misses: u32,
    /// Loads of words of which something else was undriven than they were made for.
    missed: BTreeSet<u32>,
    /// That of the code it was last compared with.
    generation: u64,
    /// Entries, up to [`TRIAL`].
    entries: u32,
    /// Instructions in those.
    executed: u64,
}

impl Translation {
    /// Whether it is made for what is followed and for the mask.
    fn fits(&self, thread: &Thread) -> bool {
        thread.watch.undriven_scalars() & self.region.touched() == self.entry.undriven
            && thread.watch.only_upper_halves(self.entry.undriven)
            && (self.entry.words || thread.watch.memory() == 0)
            && (self.entry.partial || !self.region.masked() || thread.mask == u16::MAX)
    }

    /// Runs it, if it fits and the budget is large enough.
    fn run(&mut self, machine: &mut Machine<'_>, budget: &mut u64) -> After {
        let Machine {
            memory, thread, shared, ..
        } = machine;
        let mut state = State::new(thread, &mut shared.scratchpad, memory.places(), *budget);
        host::run(self.code, &mut state);
        let State {
            left,
            pc,
            last_long,
            branched,
            last_branch,
            mask,
            undriven,
            reload,
            ..
        } = state;
        *budget = left;
        thread.pc = pc;
        if self.region.masked() {
            thread.mask = mask as u16;
        }
        thread.watch.last_long = last_long;
        // Addresses of branches are multiples of four.
        if last_branch != state::NO_BRANCH {
            thread.last_branch = Some(last_branch);
        }
        thread.watch.set_upper_halves(undriven ^ self.entry.undriven, undriven);
        if reload != state::NOWHERE {
            self.missed.insert(reload);
            self.misses += 1;
        }
        if branched != 0 { After::Branch } else { After::Operation }
    }
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

/// What translations of the code of a machine work on.
struct Machine<'a> {
    code: &'a CodeCache,
    memory: &'a mut Memory,
    thread: &'a mut Thread,
    shared: &'a mut Shared,
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

    /// Translates the loop at `head`, for the state of the thread; `last` is the translation that is not made for that.
    #[cold]
    fn translate(&mut self, machine: &Machine<'_>, head: u32, last: Option<&Translation>) -> Place {
        let Machine {
            code, memory, thread, ..
        } = machine;
        let generation = code.generation();
        let refused = Place::Refused { head, generation };
        if self.left == 0 {
            return refused;
        }
        let register = |number: u8| thread.scalars[usize::from(number)];
        let Some(region) = Region::find(head, |pc| code.op(pc, memory), register) else {
            return refused;
        };
        let undriven = thread.watch.undriven_scalars() & region.touched();
        if !thread.watch.only_upper_halves(undriven) {
            return Place::Counted { head, times: 0 };
        }
        let entry = Entry {
            undriven,
            words: thread.watch.memory() != 0 || last.is_some_and(|last| last.entry.words),
            partial: region.masked() && (thread.mask != u16::MAX || last.is_some_and(|last| last.entry.partial)),
            reloads: last.map_or_else(BTreeSet::new, |last| {
                // Both what it took to be undriven and was not, and the other way round.
                last.entry.reloads.symmetric_difference(&last.missed).copied().collect()
            }),
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
        match host.compile(&region, &entry, self.views) {
            None => refused,
            Some(code) => Place::Translated(Box::new(Translation {
                head,
                region,
                entry,
                code,
                changes: last.map_or(0, |last| last.changes + 1),
                misses: 0,
                missed: BTreeSet::new(),
                generation,
                entries: 0,
                executed: 0,
            })),
        }
    }

    /// A branch to `pc` was taken that may begin something hot. Gives whether translations ran, and have changed thread, memory and budget.
    fn turned(&mut self, machine: &mut Machine<'_>, pc: u32, budget: &mut u64) -> bool {
        if *budget < LEAST {
            return false;
        }
        let (mut pc, mut ran) = (pc, false);
        loop {
            match self.enter(machine, pc, budget) {
                After::Nothing => return ran,
                After::Operation => return true,
                // It has done at least that branch.
                After::Branch => {
                    ran = true;
                    pc = machine.thread.pc;
                }
            }
        }
    }

    /// Runs the translation with the head `pc` if there is one, or counts.
    fn enter(&mut self, machine: &mut Machine<'_>, pc: u32, budget: &mut u64) -> After {
        let Some(after) = self.after else {
            return After::Nothing;
        };
        if !pc.is_multiple_of(4) {
            return After::Nothing;
        }
        if self.places.is_empty() {
            self.places.resize_with(PLACES, || Place::Free);
        }
        let generation = machine.code.generation();
        let slot = (pc >> 2) as usize % PLACES;
        let place = &mut self.places[slot];
        match place {
            Place::Translated(translation) if translation.head == pc => {
                if translation.generation != generation {
                    if !translation.region.is_of(|pc| machine.code.op(pc, machine.memory)) {
                        *place = Place::Free;
                        return After::Nothing;
                    }
                    translation.generation = generation;
                }
                if *budget < u64::from(translation.region.least())
                    || translation.region.touched() & machine.thread.watch.unsettled() != 0
                {
                    return After::Nothing;
                }
                let fits = translation.fits(machine.thread);
                if !fits {
                    translation.misses += 1;
                }
                if translation.misses >= MISSES && translation.changes < CHANGES && self.left != 0 {
                    let last = std::mem::replace(place, Place::Free);
                    if let Place::Translated(last) = last {
                        self.places[slot] = self.translate(machine, pc, Some(&last));
                    }
                    return After::Nothing;
                }
                if !fits {
                    return After::Nothing;
                }
                let before = *budget;
                let after = translation.run(machine, budget);
                let executed = before - *budget;
                self.entered += 1;
                self.executed += executed;
                if translation.entries < TRIAL {
                    translation.entries += 1;
                    translation.executed += executed;
                    if translation.entries == TRIAL && translation.executed < WORTH * u64::from(TRIAL) {
                        *place = Place::Refused { head: pc, generation };
                    }
                }
                after
            }
            Place::Counted { head, times } if *head == pc => {
                *times += 1;
                if *times >= after {
                    self.places[slot] = self.translate(machine, pc, None);
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
    fn turned(
        &mut self,
        code: &CodeCache,
        thread: &mut Thread,
        shared: &mut Shared,
        pc: u32,
        budget: &mut u64,
    ) -> bool {
        let mut machine = Machine {
            code,
            memory: self.memory,
            thread,
            shared,
        };
        self.jit.turned(&mut machine, pc, budget)
    }
}

const _: () = assert!(
    PAGE_SIZE == 4096,
    "translations have the page size in their shifts and masks"
);
