//! Translation of hot loops to host code (feature `jit`).
//!
//! A translation starts at a frequent target of backward branches, calls or returns. It contains
//! all operations that [`region`] supports and that are reachable from this target by direct
//! branches, calls and their returns. Every other operation leaves the translation. The thread then
//! has the state of the interpreter before this operation, and the interpreter continues.
//!
//! Invariants:
//! - A translation is entered only without data caches and directly after a taken branch. None of
//!   its registers may lack its last result, and the set of its registers with undriven halves must
//!   be the one for which it was made.
//! - A translation depends only on the predecoded operations from which it was made. If
//!   [`CodeCache::generation`] has changed, these are compared with the current ones before the
//!   next entry. Stores to code leave the translation before they execute.
//! - A translation counts every instruction and starts no operation that exceeds the budget.

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

/// The number of slots for heads; a power of two. Heads that share a slot wait until it is free.
const PLACES: usize = 1024;

/// The maximum number of translations of one machine: programs that change their loops continuously
/// are interpreted afterwards.
const TRANSLATIONS: u32 = 512;

/// The minimum budget, in instructions, for entering a translation.
const LEAST: u64 = 8;

/// The number of entries after which the benefit of a translation is evaluated.
const TRIAL: u32 = 64;

/// The minimum mean number of instructions per entry of a useful translation: reading and writing
/// back registers has about this cost.
const WORTH: u64 = 16;

/// The number of mismatches between a translation and the thread after which another one is made.
const MISSES: u32 = 16;

/// The maximum number of times that the translation of a head is replaced.
const CHANGES: u32 = 8;

/// A translated region.
struct Translation {
    head: u32,
    region: Region,
    entry: Entry,
    code: host::Code,
    /// The number of earlier translations of this head.
    changes: u32,
    /// The number of entries with a state for which the translation was not made.
    misses: u32,
    /// The loads whose words had other undriven bits than expected.
    missed: BTreeSet<u32>,
    /// The generation of the code when it was last compared.
    generation: u64,
    /// The number of entries, up to [`TRIAL`].
    entries: u32,
    /// The number of instructions in these entries.
    executed: u64,
}

impl Translation {
    /// Returns whether the translation was made for the undriven bits and the lane mask of the
    /// thread.
    fn fits(&self, thread: &Thread) -> bool {
        thread.watch.undriven_scalars() & self.region.touched() == self.entry.undriven
            && thread.watch.only_upper_halves(self.entry.undriven)
            && (self.entry.words || thread.watch.memory() == 0)
            && (self.entry.partial || !self.region.masked() || thread.mask == u16::MAX)
    }

    /// Runs the translation. It has to fit, and the budget has to suffice for its head.
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
        // Addresses of branches are multiples of 4.
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

/// The state of a head.
enum Place {
    Free,
    /// The number of times that a branch reached it.
    Counted {
        head: u32,
        times: u32,
    },
    Translated(Box<Translation>),
    /// A translation has no benefit, unless the code changes.
    Refused {
        head: u32,
        generation: u64,
    },
}

/// The reason why a translation ended.
enum After {
    /// No translation ran.
    Nothing,
    /// The next operation requires the interpreter.
    Operation,
    /// A taken branch left the translation.
    Branch,
}

/// The state that translations work on.
struct Machine<'a> {
    code: &'a CodeCache,
    memory: &'a mut Memory,
    thread: &'a mut Thread,
    shared: &'a mut Shared,
}

/// The translations of a machine.
pub(crate) struct Jit {
    places: Vec<Place>,
    /// Created for the first translation.
    host: Option<Host>,
    left: u32,
    /// Whether memory is a view, which may have to copy a page before a read.
    views: bool,
    /// The number of taken branches to a target before its translation; `None` disables
    /// translation.
    after: Option<u32>,
    entered: u64,
    executed: u64,
}

impl Jit {
    /// Creates the state without translations. See [`crate::Config::translate_after`] for `after`;
    /// `views` states that memory is a view.
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

    /// The number of entries of translations.
    pub fn entered(&self) -> u64 {
        self.entered
    }

    /// The number of instructions that translations executed.
    pub fn executed(&self) -> u64 {
        self.executed
    }

    /// Returns the numbers of entries and instructions, and resets them.
    pub fn take_counts(&mut self) -> (u64, u64) {
        (std::mem::take(&mut self.entered), std::mem::take(&mut self.executed))
    }

    /// Adds the counts of other translations.
    pub fn add_counts(&mut self, (entered, executed): (u64, u64)) {
        self.entered += entered;
        self.executed += executed;
    }

    /// Translates the region at `head` for the state of the thread; `last` is an earlier
    /// translation for another state.
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
                // The loads that unexpectedly had undriven halves, and the loads that were expected
                // to have them and did.
                last.entry.reloads.symmetric_difference(&last.missed).copied().collect()
            }),
        };
        self.left -= 1;
        if self.host.is_none() {
            self.host = Host::new();
        }
        let Some(host) = &mut self.host else {
            // A host without a code generator will not get one later.
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

    /// Handles a taken branch to `pc` that may start hot code. Returns whether translations ran,
    /// and thereby changed thread, memory and budget.
    fn turned(&mut self, machine: &mut Machine<'_>, pc: u32, budget: &mut u64) -> bool {
        if *budget < LEAST {
            return false;
        }
        let (mut pc, mut ran) = (pc, false);
        loop {
            match self.enter(machine, pc, budget) {
                After::Nothing => return ran,
                After::Operation => return true,
                // The translation executed at least this branch.
                After::Branch => {
                    ran = true;
                    pc = machine.thread.pc;
                }
            }
        }
    }

    /// Runs the translation with head `pc` if it exists; otherwise counts the branch.
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
            // A current translation keeps its slot.
            Place::Translated(translation) if translation.generation == generation => After::Nothing,
            Place::Free | Place::Counted { .. } | Place::Refused { .. } | Place::Translated(_) => {
                *place = Place::Counted { head: pc, times: 1 };
                After::Nothing
            }
        }
    }
}

/// Main memory with translations.
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
