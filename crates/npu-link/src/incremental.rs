//! Linking as a program grows.
//!
//! An object gets its address when it is defined, and keeps it until it is removed; then others get it. Its references wait until somebody
//! says where their symbols are: those whose symbol is there are written, the others go on waiting. What a name stands for is not known here;
//! a reference carries a target of its user's choice.

use crate::layout::{DEFAULT_ALIGN, Layout, MAX_ALIGN, Purpose};
use npu_mc::machine::INSTRUCTION_SIZE;
use npu_mc::reloc::{self, Reloc};
use npu_mc::{EncodeError, Inst, Opcode, Operand, SReg};
use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::hash::Hash;

/// Why an object cannot be placed, or a reference not be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkError {
    /// An alignment that is not a power of two, or larger than [`MAX_ALIGN`].
    Alignment {
        /// The object.
        name: String,
        /// What was asked for.
        align: u64,
    },
    /// A relocation outside of the object it stands in.
    OutOfBounds {
        /// The object.
        name: String,
        /// Where the relocation is.
        offset: u32,
    },
    /// A relocation that does not fit, with no veneer that would help.
    OutOfReach {
        /// The object.
        name: String,
        /// What does not fit.
        reason: String,
    },
    /// No room, or no more memory to simulate.
    MemoryFull(String),
    /// A fault of the linker or of what drives it.
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

/// The memory that objects are written to.
pub trait Memory {
    /// Writes bytes at an address of the memory that objects of this purpose are in.
    ///
    /// # Errors
    ///
    /// Why there is no room for them.
    fn write(&mut self, purpose: Purpose, address: u32, bytes: &[u8]) -> Result<(), String>;

    /// Makes `size` bytes zero.
    ///
    /// # Errors
    ///
    /// Why there is no room for them.
    fn clear(&mut self, purpose: Purpose, address: u32, size: u32) -> Result<(), String>;

    /// The bytes of a word there.
    ///
    /// # Errors
    ///
    /// That there is no such address.
    fn read_word(&self, purpose: Purpose, address: u32) -> Result<[u8; 4], String>;
}

/// A reference, to be written at an offset of an object.
#[derive(Clone, Debug)]
pub struct Reference<T> {
    /// Where in the object.
    pub offset: u32,
    /// What is done to the word there.
    pub kind: Reloc,
    /// What it refers to.
    pub target: T,
    /// Added to the address of the target.
    pub addend: i64,
}

impl<T> Reference<T> {
    /// Addresses have 32 bits, so an addend counts modulo 2^32.
    fn addend(&self) -> i32 {
        (self.addend & i64::from(u32::MAX)) as u32 as i32
    }
}

/// A function or data object to be placed.
#[derive(Clone, Debug)]
pub struct Contents<'a, T> {
    /// The name, for messages.
    pub name: String,
    /// Which memory it goes to.
    pub purpose: Purpose,
    /// Alignment in bytes; a cache line if it is not given.
    pub align: Option<u64>,
    /// All of it; empty for an object of zeros.
    pub bytes: &'a [u8],
    /// Its size in bytes.
    pub size: u64,
    /// The places that refer to something.
    pub references: Vec<Reference<T>>,
}

/// A function or data object that has got its address and its bytes into memory: what is left of it here.
#[derive(Clone, Debug)]
pub struct Placed<T> {
    /// The name, for messages.
    pub name: String,
    /// Its address.
    pub address: u32,
    /// Which memory it is in.
    pub purpose: Purpose,
    /// Its size in bytes.
    pub size: u32,
    /// The places that refer to something.
    pub references: Vec<Reference<T>>,
    /// What branches go to: there is room for a veneer to each of them after the object.
    near: Vec<(T, i32)>,
    /// Where there is room for another set of veneers before the object, as a branch at its start may not reach its end.
    front: Option<u32>,
}

impl<T> Placed<T> {
    /// First address of the room that the object has with its veneers, and one past the last.
    pub fn room(&self) -> (u32, u32) {
        let veneers = VENEER_SIZE.saturating_mul(self.near.len() as u32);
        let end = u64::from(self.address) + u64::from(self.size).next_multiple_of(INSTRUCTION_SIZE.into());
        let end = u32::try_from(end).unwrap_or(u32::MAX).saturating_add(veneers);
        (self.front.unwrap_or(self.address), end)
    }
}

/// A reference that waits: its object and its place in the object's list.
pub type Waiting = (usize, usize);

/// Bytes of a veneer.
pub(crate) const VENEER_SIZE: u32 = 3 * INSTRUCTION_SIZE;

/// The objects of a program and the references between them.
#[derive(Debug)]
pub struct Linker<T> {
    layout: Layout,
    /// By their numbers; none where an object was removed.
    objects: Vec<Option<Placed<T>>>,
    /// The numbers that are free.
    vacant: Vec<usize>,
    /// Those that are code, by rising address.
    code: Vec<usize>,
    /// What was allocated.
    blocks: BTreeSet<u32>,
    waiting: Vec<Waiting>,
}

impl<T: Clone + Eq + Hash> Linker<T> {
    /// A program without objects, for memory of this layout.
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

    /// Places an object and gives its number. Its references wait.
    ///
    /// # Errors
    ///
    /// [`LinkError`], except for [`LinkError::OutOfReach`].
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
        // What fits into the layout fits into 32 bits.
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

    /// Gives an object its number.
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

    /// Whether an object begins at an address or before it.
    fn starts_by(&self, index: usize, address: u32) -> bool {
        self.object(index).is_some_and(|object| object.address <= address)
    }

    /// Takes an object out and gives it back. Its addresses and its number are given to others; what refers to it has to be written anew.
    /// Its bytes stay in memory until somebody else has them.
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

    /// An address for `size` bytes of data that nothing else uses.
    ///
    /// # Errors
    ///
    /// [`LinkError::Alignment`] and [`LinkError::MemoryFull`].
    pub fn allocate(&mut self, name: &str, size: u64, align: u64) -> Result<u32, LinkError> {
        let address = self.layout.take(Purpose::Data, name, size, align)?;
        self.blocks.insert(address);
        Ok(address)
    }

    /// Gives back what [`Linker::allocate`] gave; gives whether it was that.
    pub fn release(&mut self, address: u32) -> bool {
        self.blocks.remove(&address) && self.layout.give_back(Purpose::Data, address)
    }

    /// The object of this number.
    pub fn object(&self, index: usize) -> Option<&Placed<T>> {
        self.objects.get(index)?.as_ref()
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.objects.len() - self.vacant.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The objects that are code, by rising address, with their numbers.
    pub fn code(&self) -> impl Iterator<Item = (usize, &Placed<T>)> {
        self.code.iter().filter_map(|&index| Some((index, self.object(index)?)))
    }

    /// The object with the code at an address, and its number.
    pub fn code_at(&self, pc: u32) -> Option<(usize, &Placed<T>)> {
        let position = self.code.partition_point(|&index| self.starts_by(index, pc));
        let index = *self.code.get(position.checked_sub(1)?)?;
        let object = self.object(index)?;
        (pc - object.address < object.size).then_some((index, object))
    }

    /// The references that wait.
    pub fn waiting(&self) -> &[Waiting] {
        &self.waiting
    }

    /// The references that wait, to be written. Those that cannot be are given back by [`Linker::wait`].
    pub fn take_waiting(&mut self) -> Vec<Waiting> {
        std::mem::take(&mut self.waiting)
    }

    /// Lets references wait again.
    pub fn wait(&mut self, references: impl IntoIterator<Item = Waiting>) {
        self.waiting.extend(references);
    }

    /// A reference.
    pub fn reference(&self, (object, reference): Waiting) -> Option<&Reference<T>> {
        self.object(object)?.references.get(reference)
    }

    /// Writes a reference, now that its symbol has an address. A branch that does not reach it goes through a veneer.
    ///
    /// # Errors
    ///
    /// [`LinkError::OutOfReach`] and [`LinkError::MemoryFull`]; [`LinkError::Internal`] if there is no such reference, or if its place
    /// cannot be read.
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
    /// Where a veneer for a reference can be, and where it has to lead.
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

/// A jump to any address, by the register that compiled code leaves to the emitter.
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
