//! Opcodes, their descriptors, and instructions as opcode plus operands.

use crate::generated;
use crate::reg::{Reg, RegFile, SReg, VReg};
use core::fmt;
use core::ops::Deref;

pub use crate::generated::{Format, MAX_OPERANDS, Opcode, OperandKind, Unit};

/// What a td `Instruction` record says about one opcode.
#[derive(Debug)]
pub struct InstDesc {
    /// The td record name.
    pub name: &'static str,
    /// The first word of the assembly text.
    pub mnemonic: &'static str,
    /// The td `AsmString`.
    pub asm: &'static str,
    /// The instruction format (`isa-abi.md` section 2).
    pub format: Format,
    /// The encoded operands in assembly order. A memory operand is two of them, base and then offset. The tied
    /// old value of a masked instruction is not among them.
    pub operands: &'static [OperandDesc],
    /// How many operands are written; they are the ones with [`OperandDesc::is_def`].
    pub num_defs: u8,
    /// The destination's old value is an input as well (a tied operand in td).
    pub reads_dst: bool,
    /// Registers read beside the operands (td `Uses`).
    pub implicit_uses: &'static [Reg],
    /// Registers written beside the operands (td `Defs`).
    pub implicit_defs: &'static [Reg],
    /// The `.m` form, which names the lane mask as an input. The hardware masks by the vector bits instead
    /// (`isa-abi.md` 2.1).
    pub masked: bool,
    /// Accesses the scratchpad instead of main memory.
    pub scratchpad: bool,
    /// The execution unit.
    pub unit: Unit,
    /// Cycles from the issue of this instruction to the issue of one that needs its result, without contention
    /// and with cache hits (`microarch.md` 9.2); 0 if it has no result.
    pub latency: u8,
    /// Slot of the float unit's write port: two float operations may not have equal issue cycle plus slot
    /// (`microarch.md` 9.3). `None` for other units.
    pub fp_slot: Option<u8>,
    /// What kind of instruction it is.
    pub flags: InstFlags,
    /// The encoding with all operand fields 0.
    pub base: u32,
    /// The bits that have to equal those of [`InstDesc::base`] for a word to be this instruction.
    pub fixed: u32,
    /// The bits that neither an operand nor the decoder looks at. The encoder writes those of `base`, or the
    /// sign of the operand that extends into them.
    pub ignored: u32,
    /// Comes out of `decode`. Otherwise another opcode with the same encoding does.
    pub decodable: bool,
    /// The assembly text in pieces.
    pub(crate) print: &'static [AsmPiece],
}

impl InstDesc {
    /// The encoding as 32 characters, bit 31 first: `0`, `1`, for an operand bit the operand's index as a letter
    /// (`a` for the first in assembly order), and `-` for another ignored bit.
    pub fn template(&self) -> String {
        (0..32u32)
            .rev()
            .map(|bit| {
                let at = |mask: u32| (mask >> bit) & 1 == 1;
                let operand = ('a'..).zip(self.operands).find(|(_, o)| at(o.mask()));
                match operand {
                    Some((letter, _)) => letter,
                    None if at(self.ignored) => '-',
                    None if at(self.base) => '1',
                    None => '0',
                }
            })
            .collect()
    }
}

/// One encoded operand of an opcode.
#[derive(Debug)]
pub struct OperandDesc {
    /// The operand's name in td.
    pub name: &'static str,
    /// What may stand here.
    pub kind: OperandKind,
    /// The instruction writes it.
    pub is_def: bool,
    /// Where its bits go.
    pub(crate) runs: &'static [BitRun],
}

impl OperandDesc {
    /// The bits of the word that hold the operand.
    pub fn mask(&self) -> u32 {
        let runs = self.runs.iter();
        runs.fold(0, |mask, run| mask | run.mask() << run.inst_lsb)
    }
}

/// A run of consecutive operand bits in the instruction word.
#[derive(Debug)]
pub(crate) struct BitRun {
    /// Lowest bit in the word.
    pub(crate) inst_lsb: u8,
    /// Lowest bit in the operand's value.
    pub(crate) value_lsb: u8,
    /// How many bits.
    pub(crate) width: u8,
}

impl BitRun {
    pub(crate) const fn mask(&self) -> u32 {
        if self.width >= 32 {
            u32::MAX
        } else {
            (1 << self.width) - 1
        }
    }
}

/// A piece of an instruction's text.
#[derive(Debug)]
pub(crate) enum AsmPiece {
    /// Literal text.
    Text(&'static str),
    /// The operand with this index.
    Operand(u8),
    /// The operand with this index, nothing if it is the immediate 0.
    OperandUnlessZero(u8),
}

/// The set of values an operand kind accepts, from the td operand class of the same name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OperandRange {
    /// A register of this file.
    Register(RegFile),
    /// An integer.
    Immediate {
        /// Smallest value.
        min: i32,
        /// Largest value.
        max: i32,
        /// Significant bits in the encoding; a decoded value is sign-extended from there if `signed`.
        bits: u8,
        /// A decoded value is sign-extended.
        signed: bool,
    },
}

impl OperandKind {
    /// What the kind accepts.
    pub const fn range(self) -> OperandRange {
        generated::OPERAND_RANGES[self as usize]
    }

    /// The register file, if the kind is a register.
    pub const fn register_file(self) -> Option<RegFile> {
        match self.range() {
            OperandRange::Register(file) => Some(file),
            OperandRange::Immediate { .. } => None,
        }
    }
}

/// Properties of an opcode, the bits of td's `Instruction` class.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct InstFlags(u16);

macro_rules! flags {
    ($($bit:expr, $name:ident, $test:ident, $doc:literal;)*) => {
        impl InstFlags {
            $(
                #[doc = $doc]
                pub const $name: InstFlags = InstFlags(1 << $bit);
            )*
            $(
                #[doc = $doc]
                pub const fn $test(self) -> bool {
                    self.contains(InstFlags::$name)
                }
            )*
        }

        impl fmt::Debug for InstFlags {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut set = f.debug_set();
                $(
                    if self.$test() {
                        set.entry(&format_args!("{}", stringify!($name)));
                    }
                )*
                set.finish()
            }
        }
    };
}

flags! {
    0, BRANCH, is_branch, "May change the program counter.";
    1, TERMINATOR, is_terminator, "Ends a basic block.";
    2, BARRIER, is_barrier, "Control never falls through (not the thread barrier).";
    3, CALL, is_call, "Calls a function.";
    4, RETURN, is_return, "Returns from a function.";
    5, INDIRECT, is_indirect, "Jumps to an address held in a register.";
    6, LOAD, may_load, "May read memory.";
    7, STORE, may_store, "May write memory.";
    8, SIDE_EFFECTS, has_side_effects, "Has an effect that its operands and memory flags do not tell.";
    9, COMMUTABLE, is_commutable, "The two sources may be swapped.";
    10, COMPARE, is_compare, "Gives a truth value, or one a lane.";
    11, MOVE, is_move, "Copies a register to another of the same file.";
}

impl InstFlags {
    /// No flag.
    pub const fn empty() -> InstFlags {
        InstFlags(0)
    }

    /// The flags of both.
    pub const fn union(self, other: InstFlags) -> InstFlags {
        InstFlags(self.0 | other.0)
    }

    /// Whether all flags of `other` are set.
    pub const fn contains(self, other: InstFlags) -> bool {
        self.0 & other.0 == other.0
    }
}

impl Opcode {
    /// The descriptor.
    pub const fn desc(self) -> &'static InstDesc {
        &generated::DESCS[self as usize]
    }

    /// The td record name.
    pub const fn name(self) -> &'static str {
        self.desc().name
    }

    /// The opcode of this td record name.
    pub fn from_name(name: &str) -> Option<Opcode> {
        let by_name = &generated::OPCODES_BY_NAME;
        let at = by_name.binary_search_by(|op| op.name().cmp(name)).ok()?;
        Some(by_name[at])
    }

    /// The position in [`Opcode::ALL`].
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
    /// The register, if it is one.
    pub const fn reg(self) -> Option<Reg> {
        match self {
            Operand::S(r) => Some(Reg::S(r)),
            Operand::V(r) => Some(Reg::V(r)),
            Operand::Imm(_) => None,
        }
    }

    /// The integer, if it is one.
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

/// A list of at most [`MAX_OPERANDS`] operands, stored inline. Reads as a slice.
#[derive(Clone, Copy)]
pub struct Operands {
    items: [Operand; MAX_OPERANDS],
    len: u8,
}

impl Operands {
    /// No operand.
    pub const fn new() -> Operands {
        Operands {
            items: [Operand::Imm(0); MAX_OPERANDS],
            len: 0,
        }
    }

    /// The operands of a slice, or `None` if it is longer than [`MAX_OPERANDS`].
    pub fn from_slice(operands: &[Operand]) -> Option<Operands> {
        let mut list = Operands::new();
        list.items.get_mut(..operands.len())?.copy_from_slice(operands);
        list.len = operands.len() as u8;
        Some(list)
    }

    /// Replaces an operand, if there is one at the place.
    pub fn set(&mut self, index: usize, operand: Operand) {
        if let Some(slot) = self.items[..usize::from(self.len)].get_mut(index) {
            *slot = operand;
        }
    }

    /// Appends an operand; false if the list is full.
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
/// It may be ill-formed (wrong operand kinds, values out of range); [`encode`](crate::encode()) says so. Its
/// `Display` is the assembler's text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Inst {
    /// The opcode.
    pub opcode: Opcode,
    /// The operands, as many as [`InstDesc::operands`] if the instruction is well-formed.
    pub operands: Operands,
}

impl Inst {
    /// An instruction from a fixed number of operands; more than [`MAX_OPERANDS`] do not compile.
    pub fn new<const N: usize>(opcode: Opcode, operands: [Operand; N]) -> Inst {
        const { assert!(N <= MAX_OPERANDS) };
        let mut list = Operands::new();
        list.items[..N].copy_from_slice(&operands);
        list.len = N as u8;
        Inst { opcode, operands: list }
    }

    /// The opcode's descriptor.
    pub const fn desc(&self) -> &'static InstDesc {
        self.opcode.desc()
    }

    /// The registers written, operands first, then the implicit ones.
    pub fn defs(&self) -> impl Iterator<Item = Reg> {
        let desc = self.desc();
        let named = desc.operands.iter().zip(self.operands.iter());
        named
            .filter(|(d, _)| d.is_def)
            .filter_map(|(_, o)| o.reg())
            .chain(desc.implicit_defs.iter().copied())
    }

    /// The registers read, operands first, then the tied destination, then the implicit ones.
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
