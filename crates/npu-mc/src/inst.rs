//! Opcodes, their descriptors, and instructions as opcode plus operands.

use crate::generated;
use crate::reg::{Reg, RegFile, SReg, VReg};
use core::fmt;
use core::ops::Deref;

pub use crate::desc::{InstDesc, InstFlags, OperandDesc, OperandRange};
pub use crate::generated::{Format, MAX_OPERANDS, Opcode, OperandKind, Unit};

impl OperandKind {
    /// Returns the values that the kind accepts.
    pub const fn range(self) -> OperandRange {
        generated::OPERAND_RANGES[self as usize]
    }

    /// Returns the register file, if the kind is a register.
    pub const fn register_file(self) -> Option<RegFile> {
        match self.range() {
            OperandRange::Register(file) => Some(file),
            OperandRange::Immediate { .. } => None,
        }
    }
}

impl Opcode {
    /// Returns the descriptor.
    pub const fn desc(self) -> &'static InstDesc {
        &generated::DESCS[self as usize]
    }

    /// Returns the td record name.
    pub const fn name(self) -> &'static str {
        self.desc().name
    }

    /// Returns the opcode with this td record name.
    pub fn from_name(name: &str) -> Option<Opcode> {
        let by_name = &generated::OPCODES_BY_NAME;
        let at = by_name.binary_search_by(|op| op.name().cmp(name)).ok()?;
        Some(by_name[at])
    }

    /// Returns the position in [`Opcode::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// An operand of an [`Inst`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operand {
    /// A scalar register.
    S(SReg),
    /// A vector register.
    V(VReg),
    /// An integer: immediate, byte offset, or byte distance from the instruction's own address.
    Imm(i32),
}

impl Operand {
    /// Returns the register, if it is one.
    pub const fn reg(self) -> Option<Reg> {
        match self {
            Operand::S(r) => Some(Reg::S(r)),
            Operand::V(r) => Some(Reg::V(r)),
            Operand::Imm(_) => None,
        }
    }

    /// Returns the integer, if it is one.
    pub const fn imm(self) -> Option<i32> {
        match self {
            Operand::Imm(value) => Some(value),
            Operand::S(_) | Operand::V(_) => None,
        }
    }
}

impl From<SReg> for Operand {
    fn from(r: SReg) -> Operand {
        Operand::S(r)
    }
}

impl From<VReg> for Operand {
    fn from(r: VReg) -> Operand {
        Operand::V(r)
    }
}

impl From<Reg> for Operand {
    fn from(r: Reg) -> Operand {
        match r {
            Reg::S(r) => Operand::S(r),
            Reg::V(r) => Operand::V(r),
        }
    }
}

impl From<i32> for Operand {
    fn from(value: i32) -> Operand {
        Operand::Imm(value)
    }
}

/// A list of at most [`MAX_OPERANDS`] operands, stored inline. It dereferences to a slice.
#[derive(Clone, Copy)]
pub struct Operands {
    items: [Operand; MAX_OPERANDS],
    len: u8,
}

impl Operands {
    /// Creates an empty list.
    pub const fn new() -> Operands {
        Operands {
            items: [Operand::Imm(0); MAX_OPERANDS],
            len: 0,
        }
    }

    /// Returns the operands of a slice, or `None` if it is longer than [`MAX_OPERANDS`].
    pub fn from_slice(operands: &[Operand]) -> Option<Operands> {
        let mut list = Operands::new();
        list.items.get_mut(..operands.len())?.copy_from_slice(operands);
        list.len = operands.len() as u8;
        Some(list)
    }

    /// Replaces the operand at `index`, if it exists.
    pub fn set(&mut self, index: usize, operand: Operand) {
        if let Some(slot) = self.items[..usize::from(self.len)].get_mut(index) {
            *slot = operand;
        }
    }

    /// Appends an operand; returns `false` if the list is full.
    pub fn push(&mut self, operand: Operand) -> bool {
        match self.items.get_mut(usize::from(self.len)) {
            Some(slot) => {
                *slot = operand;
                self.len += 1;
                true
            }
            None => false,
        }
    }
}

impl Default for Operands {
    fn default() -> Operands {
        Operands::new()
    }
}

impl Deref for Operands {
    type Target = [Operand];

    fn deref(&self) -> &[Operand] {
        &self.items[..usize::from(self.len)]
    }
}

impl PartialEq for Operands {
    fn eq(&self, other: &Operands) -> bool {
        **self == **other
    }
}

impl Eq for Operands {}

impl core::hash::Hash for Operands {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl fmt::Debug for Operands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// An instruction: an opcode and its encoded operands in assembly order.
///
/// It may be ill-formed (wrong operand kinds, values out of range); [`encode`](crate::encode())
/// reports this. Its `Display` is the assembler's text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Inst {
    /// The opcode.
    pub opcode: Opcode,
    /// The operands, as many as [`InstDesc::operands`] if the instruction is well-formed.
    pub operands: Operands,
}

impl Inst {
    /// Creates an instruction from a fixed number of operands. A number above [`MAX_OPERANDS`] is a
    /// compile-time error.
    pub fn new<const N: usize>(opcode: Opcode, operands: [Operand; N]) -> Inst {
        const { assert!(N <= MAX_OPERANDS) };
        let mut list = Operands::new();
        list.items[..N].copy_from_slice(&operands);
        list.len = N as u8;
        Inst { opcode, operands: list }
    }

    /// Returns the opcode's descriptor.
    pub const fn desc(&self) -> &'static InstDesc {
        self.opcode.desc()
    }

    /// Returns the registers written: first the operands, then the implicit ones.
    pub fn defs(&self) -> impl Iterator<Item = Reg> {
        let desc = self.desc();
        let named = desc.operands.iter().zip(self.operands.iter());
        named
            .filter(|(d, _)| d.is_def)
            .filter_map(|(_, o)| o.reg())
            .chain(desc.implicit_defs.iter().copied())
    }

    /// Returns the registers read: first the operands, then the tied destination, then the implicit
    /// ones.
    pub fn uses(&self) -> impl Iterator<Item = Reg> {
        let desc = self.desc();
        let operands = self.operands;
        let named = desc.operands.iter().enumerate();
        let sources = named.filter_map(move |(i, d)| {
            let is_use = !d.is_def;
            operands.get(i).filter(|_| is_use)?.reg()
        });
        let named = desc.operands.iter().enumerate();
        let tied = named.filter_map(move |(i, d)| {
            let is_tied = d.is_def && desc.reads_dst;
            operands.get(i).filter(|_| is_tied)?.reg()
        });
        sources.chain(tied).chain(desc.implicit_uses.iter().copied())
    }
}
