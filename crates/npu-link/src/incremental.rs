//! Linking of a growing program.
//!
//! An object gets its address when it is defined and keeps it until it is removed; then the address
//! can be reused. Its references wait until the user supplies the addresses of their symbols:
//! references with a known symbol are written, the others keep waiting. This module does not
//! resolve names: a reference has a target of a type that the user chooses.

use crate::layout::{DEFAULT_ALIGN, Layout, MAX_ALIGN, Purpose};
use npu_mc::machine::INSTRUCTION_SIZE;
use npu_mc::reloc::{self, Reloc};
use npu_mc::{EncodeError, Inst, Opcode, Operand, SReg};
use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::hash::Hash;
use std::ops;

/// Why an object cannot be placed or a reference cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkError {
    /// An alignment that is not a power of two, or larger than [`MAX_ALIGN`].
    Alignment {
        /// The object.
        name: String,
        /// The requested alignment.
        align: u64,
    },
    /// A relocation outside of its object.
    OutOfBounds {
        /// The object.
        name: String,
        /// The offset of the relocation.
        offset: u32,
    },
    /// A relocation whose value does not fit, and no veneer can reach the target.
    OutOfReach {
        /// The object.
        name: String,
        /// The value and its range.
        reason: String,
    },
    /// The address range is full, or the simulated memory cannot grow.
    MemoryFull(String),
    /// An internal fault of the linker or of its caller.
    Internal(String),
}

impl std::error::Error for LinkError {}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alignment { name, align } => {
                let max = MAX_ALIGN;
                write!(f, "%{name}: an alignment of {align} is not a power of two up to {max}")
            }
            Self::OutOfBounds { name, offset } => {
                write!(f, "%{name}: the relocation at {offset:#x} does not lie within it")
            }
            Self::OutOfReach { name, reason } => write!(f, "%{name}: {reason}"),
            Self::MemoryFull(what) => f.write_str(what),
            Self::Internal(what) => write!(f, "internal error: {what}"),
        }
    }
}

/// The memory that the linker writes objects to.
pub trait Memory {
    /// Writes bytes at an address of the memory for objects of this purpose.
    ///
    /// # Errors
    ///
    /// Returns why the memory has no room for them.
    fn write(&mut self, purpose: Purpose, address: u32, bytes: &[u8]) -> Result<(), String>;

    /// Sets `size` bytes to zero.
    ///
    /// # Errors
    ///
    /// Returns why the memory has no room for them.
    fn clear(&mut self, purpose: Purpose, address: u32, size: u32) -> Result<(), String>;

    /// Reads a word.
    ///
    /// # Errors
    ///
    /// Fails if the address does not exist.
    fn read_word(&self, purpose: Purpose, address: u32) -> Result<[u8; 4], String>;
}

/// A reference at an offset of an object.
#[derive(Clone, Debug)]
pub struct Reference<T> {
    /// The offset in the object.
    pub offset: u32,
    /// The type of the relocation.
    pub kind: Reloc,
    /// The target.
    pub target: T,
    /// The number that is added to the address of the target.
    pub addend: i64,
}

impl<T> Reference<T> {
    /// Returns the addend modulo 2^32, because addresses have 32 bits.
    fn addend(&self) -> i32 {
        (self.addend & i64::from(u32::MAX)) as u32 as i32
    }
}

/// A function or data object to place.
#[derive(Clone, Debug)]
pub struct Contents<'a, T> {
    /// The name, for messages.
    pub name: String,
    /// The purpose, which determines the memory.
    pub purpose: Purpose,
    /// Alignment in bytes; a cache line if it is `None`.
    pub align: Option<u64>,
    /// The contents; empty for an object of zeros.
    pub bytes: &'a [u8],
    /// Its size in bytes.
    pub size: u64,
    /// The references.
    pub references: Vec<Reference<T>>,
}

/// A function or data object that has an address and has been written to memory.
#[derive(Clone, Debug)]
pub struct Placed<T> {
    /// The name, for messages.
    pub name: String,
    /// Its address.
    pub address: u32,
    /// The purpose, which determines the memory.
    pub purpose: Purpose,
    /// Its size in bytes.
    pub size: u32,
    /// The references.
    pub references: Vec<Reference<T>>,
    /// Targets of branches. Space for a veneer to each of them follows the object.
    near: Vec<(T, i32)>,
    /// The address of the space for a second set of veneers, before the object. It exists if a
    /// branch at the object's start may not reach its end.
    front: Option<u32>,
}

impl<T> Placed<T> {
    /// Returns the first address of the object with its veneers, and the address after the last.
    pub fn room(&self) -> (u32, u32) {
        let veneers = VENEER_SIZE.saturating_mul(self.near.len() as u32);
        let end = u64::from(self.address) + u64::from(self.size).next_multiple_of(INSTRUCTION_SIZE.into());
        let end = u32::try_from(end).unwrap_or(u32::MAX).saturating_add(veneers);
        (self.front.unwrap_or(self.address), end)
    }
}

/// A waiting reference: the index of its object, and its index in the object's list.
pub type Waiting = (usize, usize);

/// Size of a veneer in bytes.
pub(crate) const VENEER_SIZE: u32 = 3 * INSTRUCTION_SIZE;

/// The objects of a program and the references between them.
#[derive(Debug)]
pub struct Linker<T> {
    layout: Layout,
    /// The objects by index; `None` for a removed object.
    objects: Vec<Option<Placed<T>>>,
    /// The free indices.
    vacant: Vec<usize>,
    /// The indices of code objects, in ascending order of address.
    code: Vec<usize>,
    /// The addresses of allocated blocks.
    blocks: BTreeSet<u32>,
    waiting: Vec<Waiting>,
}

impl<T: Clone + Eq + Hash> Linker<T> {
    /// Creates a program without objects, for memory of this layout.
    pub fn new(layout: Layout) -> Self {
        Self {
            layout,
            objects: Vec::new(),
            vacant: Vec::new(),
            code: Vec::new(),
            blocks: BTreeSet::new(),
            waiting: Vec::new(),
        }
    }

    /// Places an object and returns its index. Its references start waiting.
    ///
    /// # Errors
    ///
    /// Returns a [`LinkError`] other than [`LinkError::OutOfReach`].
    pub fn place(&mut self, memory: &mut impl Memory, contents: Contents<'_, T>) -> Result<usize, LinkError> {
        let Contents {
            name,
            purpose,
            align,
            bytes,
            size,
            references,
        } = contents;
        let align = align.unwrap_or(DEFAULT_ALIGN);
        if !align.is_power_of_two() {
            return Err(LinkError::Alignment { name, align });
        }
        let Ok(length) = u32::try_from(size) else {
            return Err(LinkError::MemoryFull(format!("%{name}: no room for {size} bytes")));
        };
        let outside = |reference: &&Reference<T>| u64::from(reference.offset) + 4 > size;
        if let Some(reference) = references.iter().find(outside) {
            return Err(LinkError::OutOfBounds {
                name,
                offset: reference.offset,
            });
        }
        let mut near = Vec::new();
        let mut seen = HashSet::new();
        for reference in references.iter().filter(|reference| reference.kind == Reloc::Branch) {
            if seen.insert((&reference.target, reference.addend())) {
                near.push((reference.target.clone(), reference.addend()));
            }
        }
        let align = match purpose {
            Purpose::Code => align.max(DEFAULT_ALIGN),
            Purpose::Data | Purpose::Scratchpad | Purpose::ThreadLocal => align,
        };
        let after = size.next_multiple_of(INSTRUCTION_SIZE.into());
        let room = u64::from(VENEER_SIZE) * near.len() as u64;
        let (_, reach) = Reloc::Branch.range();
        let before = if i64::try_from(after + room).is_ok_and(|end| end <= reach) {
            0
        } else {
            room.next_multiple_of(align)
        };
        let start = self.layout.take(purpose, &name, before + after + room, align)?;
        // Addresses of the layout have 32 bits.
        let Some(address) = u32::try_from(before).ok().and_then(|before| start.checked_add(before)) else {
            return Err(LinkError::MemoryFull(format!("%{name}: no room for {size} bytes")));
        };
        let written = if bytes.is_empty() {
            memory.clear(purpose, address, length)
        } else {
            memory.write(purpose, address, bytes)
        };
        if let Err(error) = written {
            self.layout.give_back(purpose, start);
            return Err(LinkError::MemoryFull(format!("%{name}: {error}")));
        }
        let placed = Placed {
            name,
            address,
            purpose,
            size: length,
            references,
            near,
            front: (before > 0).then_some(start),
        };
        Ok(self.insert(placed))
    }

    /// Stores an object at a free index and returns the index.
    fn insert(&mut self, placed: Placed<T>) -> usize {
        let index = self.vacant.pop().unwrap_or(self.objects.len());
        self.waiting
            .extend((0..placed.references.len()).map(|reference| (index, reference)));
        if placed.purpose == Purpose::Code {
            let position = self
                .code
                .partition_point(|&other| self.starts_by(other, placed.address));
            self.code.insert(position, index);
        }
        match self.objects.get_mut(index) {
            Some(place) => *place = Some(placed),
            None => self.objects.push(Some(placed)),
        }
        index
    }

    /// Returns whether an object starts at or before an address.
    fn starts_by(&self, index: usize, address: u32) -> bool {
        self.object(index).is_some_and(|object| object.address <= address)
    }

    /// Removes an object and returns it. Its addresses and its index can be reused, and references
    /// to it have to be written again. Its bytes stay in memory until they are overwritten.
    pub fn remove(&mut self, index: usize) -> Option<Placed<T>> {
        let removed = self.objects.get_mut(index)?.take()?;
        self.vacant.push(index);
        if removed.purpose == Purpose::Code {
            self.code.retain(|&other| other != index);
        }
        self.waiting.retain(|&(object, _)| object != index);
        let (start, _) = removed.room();
        self.layout.give_back(removed.purpose, start);
        Some(removed)
    }

    /// Allocates `size` bytes of data and returns their address.
    ///
    /// # Errors
    ///
    /// Returns [`LinkError::Alignment`] or [`LinkError::MemoryFull`].
    pub fn allocate(&mut self, name: &str, size: u64, align: u64) -> Result<u32, LinkError> {
        let address = self.layout.take(Purpose::Data, name, size, align)?;
        self.blocks.insert(address);
        Ok(address)
    }

    /// Allocates `size` bytes of data with all addresses in `within`, in the range of data or of code.
    /// Returns `None` if no place is free.
    pub fn allocate_within(&mut self, size: u64, align: u64, within: &ops::Range<u64>) -> Option<u32> {
        let address = self.layout.take_within(size, align, within)?;
        self.blocks.insert(address);
        Some(address)
    }

    /// Releases a block that [`Linker::allocate`] or [`Linker::allocate_within`] returned. Returns
    /// `false` if the address is no such block.
    pub fn release(&mut self, address: u32) -> bool {
        self.blocks.remove(&address) && self.layout.give_back_within(address)
    }

    /// Returns the object with this index.
    pub fn object(&self, index: usize) -> Option<&Placed<T>> {
        self.objects.get(index)?.as_ref()
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.objects.len() - self.vacant.len()
    }

    /// Returns whether the program has no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the code objects with their indices, in ascending order of address.
    pub fn code(&self) -> impl Iterator<Item = (usize, &Placed<T>)> {
        self.code.iter().filter_map(|&index| Some((index, self.object(index)?)))
    }

    /// Returns the code object that contains an address, and its index.
    pub fn code_at(&self, pc: u32) -> Option<(usize, &Placed<T>)> {
        let position = self.code.partition_point(|&index| self.starts_by(index, pc));
        let index = *self.code.get(position.checked_sub(1)?)?;
        let object = self.object(index)?;
        (pc - object.address < object.size).then_some((index, object))
    }

    /// Returns the waiting references.
    pub fn waiting(&self) -> &[Waiting] {
        &self.waiting
    }

    /// Takes all waiting references to write them. [`Linker::wait`] returns those that cannot be
    /// written yet.
    pub fn take_waiting(&mut self) -> Vec<Waiting> {
        std::mem::take(&mut self.waiting)
    }

    /// Adds references to the waiting ones.
    pub fn wait(&mut self, references: impl IntoIterator<Item = Waiting>) {
        self.waiting.extend(references);
    }

    /// Returns a waiting reference.
    pub fn reference(&self, (object, reference): Waiting) -> Option<&Reference<T>> {
        self.object(object)?.references.get(reference)
    }

    /// Writes a reference whose symbol has an address. A branch that does not reach the symbol gets
    /// a veneer.
    ///
    /// # Errors
    ///
    /// Returns [`LinkError::OutOfReach`] or [`LinkError::MemoryFull`], or [`LinkError::Internal`]
    /// if the reference does not exist or its word cannot be read.
    pub fn apply(&self, memory: &mut impl Memory, (object, reference): Waiting, symbol: u32) -> Result<(), LinkError> {
        let found = self.object(object);
        let found = found.and_then(|object| Some((object, object.references.get(reference)?)));
        let Some((object, reference)) = found else {
            let what = format!("object {object} has no reference {reference}");
            return Err(LinkError::Internal(what));
        };
        let place = object.address + reference.offset;
        let internal = |error: String| LinkError::Internal(format!("%{}: {error}", object.name));
        let mut word = memory.read_word(object.purpose, place).map_err(internal)?;
        let mut apply = |symbol: u32, addend: i32| reloc::apply(reference.kind, &mut word, symbol, addend, place);
        let full = |error: String| LinkError::MemoryFull(format!("%{}: {error}", object.name));
        let out_of_reach = |reason: String| LinkError::OutOfReach {
            name: object.name.clone(),
            reason,
        };
        if let Err(error) = apply(symbol, reference.addend()) {
            let (at, goal) = object
                .veneers(reference, symbol)
                .find(|&(at, _)| apply(at, 0).is_ok())
                .ok_or_else(|| out_of_reach(error.to_string()))?;
            let code = veneer(goal).map_err(|error| out_of_reach(error.to_string()))?;
            memory.write(object.purpose, at, &code).map_err(full)?;
        }
        memory.write(object.purpose, place, &word).map_err(full)
    }
}

impl<T: Clone + Eq> Placed<T> {
    /// Returns the possible addresses of a veneer for a reference, each with the target of the
    /// veneer.
    fn veneers(&self, reference: &Reference<T>, symbol: u32) -> impl Iterator<Item = (u32, u32)> {
        let wanted = (reference.kind == Reloc::Branch).then(|| (&reference.target, reference.addend()));
        let slot = wanted.and_then(|wanted| {
            self.near
                .iter()
                .position(|(target, addend)| (target, *addend) == wanted)
        });
        let after = self.address + self.size.next_multiple_of(INSTRUCTION_SIZE);
        let goal = symbol.wrapping_add_signed(reference.addend());
        [Some(after), self.front]
            .into_iter()
            .flatten()
            .filter_map(move |base| Some((base + VENEER_SIZE * u32::try_from(slot?).ok()?, goal)))
    }
}

/// Returns a jump to any address. It uses the register that compiled code reserves for the emitter.
pub(crate) fn veneer(target: u32) -> Result<Vec<u8>, EncodeError> {
    let half = |n: u32| Operand::Imm((n & 0xffff).cast_signed());
    let scratch = Operand::S(SReg::TR);
    let jump = [
        Inst::new(Opcode::MOVEIHSI, [scratch, half(target >> 16)]),
        Inst::new(Opcode::MOVEILSI, [scratch, half(target)]),
        Inst::new(Opcode::JUMPREG, [scratch]),
    ];
    let mut bytes = Vec::new();
    for inst in &jump {
        bytes.extend(npu_mc::encode(inst)?.to_le_bytes());
    }
    Ok(bytes)
}
