//! Copies of code for the threads of a core: the workaround for the erratum
//! `repeated_instruction_line_miss`.
//!
//! A thread can hang if another thread of its core requests the same instruction line and the code
//! occupies three lines of one cache set. A timed call of such code on several threads of a core
//! gives each of them its own copy of the functions that its code calls directly. A function has one
//! address, so all threads share a function that is called by its address, as calls of functions do
//! that are not `colocated`. Without the timing model threads cannot hang, and no copies are made.

use super::error::{LinkError, RunError};
use super::link::Resolved;
use super::npu_module::NpuModule;
use naplespu_object::front::Target;
use npu_link::{Contents, Purpose, Waiting};
use npu_mc::machine::{CACHE_LINE, ICACHE_SETS};
use npu_mc::reloc::Reloc;
use npu_sim::THREADS;
use std::collections::{BTreeSet, HashSet};

/// The number of lines in one set of the instruction cache from which a thread can hang.
const LINES_AT_RISK: usize = 3;

impl NpuModule {
    /// Returns the address at which each of these threads of the machine starts a timed call of a
    /// function, which is linked at `address`. Makes the copies that the threads need. The numbers
    /// are in ascending order.
    pub(super) fn entries(&mut self, start: &Target, address: u32, numbers: &[usize]) -> Result<Vec<u32>, RunError> {
        let Some(Resolved::Object(first)) = self.resolve(start) else {
            return Ok(vec![address; numbers.len()]);
        };
        let is_shared = numbers.array_windows().any(|[a, b]| a / THREADS == b / THREADS);
        if is_shared && self.can_hang(first) {
            let threads: BTreeSet<usize> = numbers.iter().map(|number| number % THREADS).collect();
            self.make_copies(first, &threads)?;
        }
        let own = |&number: &usize| {
            let copy = self.copies.copy(first, number % THREADS).filter(|_| is_shared);
            let object = self.linker.object(copy.unwrap_or(first));
            let missing = || LinkError::Internal(format!("object {first} of a call does not exist"));
            Ok(object.ok_or_else(missing)?.address)
        };
        numbers.iter().map(own).collect()
    }

    /// Returns whether the code that a function reaches has too many lines in a cache set.
    fn can_hang(&self, first: usize) -> bool {
        let mut lines = vec![HashSet::new(); ICACHE_SETS as usize];
        for index in self.reached(first, |_| true) {
            let Some(object) = self.linker.object(index) else {
                continue;
            };
            let (start, end) = object.room();
            for line in start / CACHE_LINE..end.div_ceil(CACHE_LINE) {
                lines[(line % ICACHE_SETS) as usize].insert(line);
            }
        }
        lines.iter().any(|set| set.len() >= LINES_AT_RISK)
    }

    /// Returns the code that a function reaches by references of the given kinds, without host
    /// functions.
    fn reached(&self, first: usize, follows: impl Fn(Reloc) -> bool) -> BTreeSet<usize> {
        let mut seen = BTreeSet::from([first]);
        let mut todo = vec![first];
        while let Some(object) = todo.pop().and_then(|index| self.linker.object(index)) {
            for reference in object.references.iter().filter(|reference| follows(reference.kind)) {
                let Some(Resolved::Object(next)) = self.resolve(&reference.target) else {
                    continue;
                };
                let is_code = self
                    .linker
                    .object(next)
                    .is_some_and(|next| next.purpose == Purpose::Code && !self.hosts.has(next.address));
                if is_code && seen.insert(next) {
                    todo.push(next);
                }
            }
        }
        seen
    }

    /// Copies a function and all code that it calls directly for these threads of a core, unless the
    /// copies exist. Thread 0 executes the originals.
    fn make_copies(&mut self, first: usize, threads: &BTreeSet<usize>) -> Result<(), LinkError> {
        let code = self.reached(first, |kind| kind == Reloc::Branch);
        let mut is_new = false;
        for &thread in threads.iter().filter(|&&thread| thread > 0) {
            for &index in &code {
                if self.copies.copy(index, thread).is_some() {
                    continue;
                }
                let copy = self.copy_object(index)?;
                self.copies.insert(index, thread, copy);
                is_new = true;
            }
        }
        if is_new {
            // Older copies may have branches to a function that had no copy before.
            let branches: Vec<Waiting> = self.copies.all().flat_map(|copy| self.branches(copy)).collect();
            let known: HashSet<Waiting> = self.linker.waiting().iter().copied().collect();
            self.linker
                .wait(branches.into_iter().filter(|branch| !known.contains(branch)));
            self.link()?;
        }
        Ok(())
    }

    /// Places the bytes of an object once more.
    fn copy_object(&mut self, index: usize) -> Result<usize, LinkError> {
        let missing = || LinkError::Internal(format!("there is no object {index} to be copied"));
        let object = self.linker.object(index).ok_or_else(missing)?;
        let (name, references) = (object.name.clone(), object.references.clone());
        let mut bytes = vec![0; object.size as usize];
        self.read_memory(object.address, &mut bytes);
        let copy = self.place(Contents {
            name,
            purpose: Purpose::Code,
            align: None,
            bytes: &bytes,
            size: bytes.len() as u64,
            references,
        })?;
        if let Some(code) = self.code.get(&index) {
            self.code.insert(copy, code.clone());
            self.unwind.is_stale = true;
        }
        Ok(copy)
    }

    /// Returns the address of the same instruction in the original, if `pc` is in a copy, and `pc`
    /// otherwise.
    pub(super) fn original(&self, pc: u32) -> u32 {
        let copy = self.linker.code_at(pc);
        let original = copy.and_then(|(index, _)| self.linker.object(self.copies.original(index)));
        original
            .zip(copy)
            .map_or(pc, |(original, (_, copy))| original.address + (pc - copy.address))
    }

    fn branches(&self, index: usize) -> impl Iterator<Item = Waiting> {
        let references = self.linker.object(index).map_or(&[][..], |object| &object.references);
        let branches = references
            .iter()
            .enumerate()
            .filter(|(_, reference)| reference.kind == Reloc::Branch);
        branches.map(move |(number, _)| (index, number))
    }
}
