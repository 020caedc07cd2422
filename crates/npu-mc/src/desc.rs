//! The row types of the generated tables.
//!
//! These types only hold data. Other modules re-export them and contain the code that uses them.

use core::fmt;

use crate::generated::{Format, HwStatus, Opcode, OperandKind, Unit, ValueType};
use crate::reg::{Reg, RegFile};

/// The name and numbers of a register, from its td record.
pub(crate) struct RegInfo {
    pub(crate) name: &'static str,
    pub(crate) dwarf: u16,
}

/// The description of an opcode, from its td `Instruction` record.
#[derive(Debug)]
pub struct InstDesc {
    /// The td record name.
    pub name: &'static str,
    /// The source location of the record: `td/FILE:LINE`, followed by ` from td/FILE:LINE` for each
    /// `defm` that instantiated it.
    pub place: &'static str,
    /// The first word of the assembly text.
    pub mnemonic: &'static str,
    /// The td `AsmString`.
    pub asm: &'static str,
    /// The instruction format (`docs/machine/formats.md`).
    pub format: Format,
    /// The encoded operands in assembly order. A memory operand counts as two, base then offset.
    /// The tied old value of a masked instruction is not included.
    pub operands: &'static [OperandDesc],
    /// The number of operands that the instruction writes: those with [`OperandDesc::is_def`].
    pub num_defs: u8,
    /// Whether the destination's old value is also an input (a tied operand in td).
    pub reads_dst: bool,
    /// Registers read in addition to the operands (td `Uses`).
    pub implicit_uses: &'static [Reg],
    /// Registers written in addition to the operands (td `Defs`).
    pub implicit_defs: &'static [Reg],
    /// Whether this is a `.m` form, which names the lane mask as an input. The hardware decides by
    /// the vector bits instead whether to mask (`docs/machine/formats.md`).
    pub masked: bool,
    /// Whether it accesses the scratchpad instead of main memory.
    pub scratchpad: bool,
    /// The execution unit.
    pub unit: Unit,
    /// Cycles from the issue of this instruction to the issue of a dependent one, without
    /// contention and with cache hits (`docs/machine/pipeline.md`); 0 if it has no result.
    pub latency: u8,
    /// Slot of the float unit's write port (`docs/machine/pipeline.md`). The sums of issue cycle
    /// and slot of two float operations must differ. `None` for other units.
    pub fp_slot: Option<u8>,
    /// Properties of the instruction.
    pub flags: InstFlags,
    /// The encoding with all operand fields 0.
    pub base: u32,
    /// The bits in which a word has to equal [`InstDesc::base`] to be this instruction.
    pub fixed: u32,
    /// The bits that neither an operand nor the decoder uses. The encoder writes those of `base`,
    /// or the sign of an operand that extends into them.
    pub ignored: u32,
    /// Whether `decode` returns this opcode. If not, it returns another opcode with the same
    /// encoding.
    pub decodable: bool,
    /// The assembly text in pieces.
    pub(crate) print: &'static [AsmPiece],
}

impl InstDesc {
    /// Returns the encoding as 32 characters, bit 31 first: `0` or `1` for a fixed bit, the
    /// operand's index as a letter for an operand bit (`a` for the first operand in assembly
    /// order), and `-` for an ignored bit.
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
    /// The kind of operand that is allowed.
    pub kind: OperandKind,
    /// Whether the instruction writes it.
    pub is_def: bool,
    /// The positions of its bits in the word.
    pub(crate) runs: &'static [BitRun],
}

impl OperandDesc {
    /// Returns the bits of the word that hold the operand.
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
    /// Number of bits.
    pub(crate) width: u8,
}

impl BitRun {
    pub(crate) const fn mask(&self) -> u32 {
        ((1_u64 << self.width) - 1) as u32
    }
}

/// A piece of an instruction's text.
#[derive(Debug)]
pub(crate) enum AsmPiece {
    /// Literal text.
    Text(&'static str),
    /// The operand with this index.
    Operand(u8),
    /// The operand with this index; no text if it is the immediate 0.
    OperandUnlessZero(u8),
}

/// The values that an operand kind accepts, from the td operand class of the same name.
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
        /// Significant bits in the encoding.
        bits: u8,
        /// Whether a decoded value is sign-extended from `bits`.
        signed: bool,
    },
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
    8, SIDE_EFFECTS, has_side_effects, "Has an effect that its operands and memory flags do not say.";
    9, COMMUTABLE, is_commutable, "The two sources may be swapped.";
    10, COMPARE, is_compare, "Gives a truth value, or one per lane.";
    11, MOVE, is_move, "Copies a register to another of the same file.";
}

impl InstFlags {
    /// Returns the empty set of flags.
    pub const fn empty() -> InstFlags {
        InstFlags(0)
    }

    /// Returns the union of both sets.
    pub const fn union(self, other: InstFlags) -> InstFlags {
        InstFlags(self.0 | other.0)
    }

    /// Returns whether all flags of `other` are set.
    pub const fn contains(self, other: InstFlags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A register class for the register allocator. The numbers are encodings in the class's register
/// file.
#[derive(Debug)]
pub struct ClassInfo {
    /// The td record name.
    pub name: &'static str,
    /// The file of its registers.
    pub file: RegFile,
    /// Caller-saved registers in order of preference.
    pub preferred: &'static [u8],
    /// Callee-saved registers, which cost a save and a restore, in order of preference.
    pub non_preferred: &'static [u8],
    /// Registers that must not be allocated: registers with a special role, and registers unusable
    /// because of an erratum.
    pub reserved: &'static [u8],
    /// Bytes of a spill slot.
    pub spill_size: u32,
    /// Alignment of a spill slot in bytes.
    pub spill_align: u32,
}

/// A calling convention from td.
#[derive(Debug)]
pub struct Convention {
    /// The td record name.
    pub name: &'static str,
    pub(crate) actions: &'static [Action],
}

/// A step of a convention. The walk ends at the first step that assigns a location.
#[derive(Debug)]
pub(crate) enum Action {
    /// Performs the inner action for values of these types.
    IfType(&'static [ValueType], &'static Action),
    /// Continues with another type.
    Promote(ValueType),
    /// Assigns locations to this many parts one after the other, least significant first.
    Split { part: ValueType, count: u32 },
    /// Assigns the first free register.
    ToReg(&'static [Reg]),
    /// Assigns the next stack slot.
    ToStack { size: u32, align: u32 },
    /// Continues with the actions of another convention.
    #[expect(dead_code, reason = "td supports it, but no current convention uses it")]
    Delegate(&'static [Action]),
}

/// The formula of a relocation's value, modulo 2^32: S is the symbol, A the addend, P the address
/// of the word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Formula {
    /// Nothing is written.
    None,
    /// S + A
    Abs,
    /// S + A - P
    Pc,
    /// Bits 31-16 of S + A. The halves are independent: there is no carry from the low half.
    AbsHigh,
    /// Bits 15-0 of S + A.
    AbsLow,
}

/// The description of a relocation, from its td `Reloc` record.
#[derive(Debug)]
pub struct RelocInfo {
    /// The ELF name.
    pub name: &'static str,
    /// The formula of the value.
    pub formula: Formula,
    /// Lowest bit of the field in the little-endian word at P.
    pub lsb: u8,
    /// Width of the field in bits, 0 for no field.
    pub width: u8,
    /// Whether the value has to fit in the field as a signed number. If not, the field gets its low
    /// bits.
    pub signed: bool,
}

/// The description of a hardware operation, from its td `HwOp` record.
#[derive(Debug)]
pub struct HwOpInfo {
    /// The hardware's name.
    pub name: &'static str,
    /// The execution unit; for a memory operation that of main memory.
    pub unit: Unit,
    /// Cycles from issue to the issue of a dependent instruction (`docs/machine/pipeline.md`); 0 if
    /// it has no result.
    pub latency: u8,
    /// Slot of the float unit's write port (`docs/machine/pipeline.md`).
    pub fp_slot: Option<u8>,
    /// How well the hardware implements it.
    pub status: HwStatus,
    /// How well the hardware implements it for the scratchpad.
    pub scratchpad_status: HwStatus,
    /// [`HwOpInfo::latency`] for the scratchpad.
    pub scratchpad_latency: u8,
    /// Bytes accessed in memory by a scalar, or by each lane of a vector; 0 if it does not access
    /// memory.
    pub access_bytes: u8,
    /// Alignment that the hardware checks in main memory, in bytes; 0 if it does not access memory.
    pub alignment: u8,
}

/// The description of an erratum, from its td record.
#[derive(Debug, PartialEq, Eq)]
pub struct ErratumInfo {
    /// Short name.
    pub name: &'static str,
    /// One sentence about the fault.
    pub summary: &'static str,
    /// The effect on a program without the workaround.
    pub effect: &'static str,
    /// The compiler's workaround.
    pub workaround: &'static str,
    /// Whether the compiler has a setting `erratum_<name>` that disables the workaround. The other
    /// errata need no code.
    pub is_setting: bool,
    /// The source of this information.
    pub reference: &'static str,
    /// The instructions that the erratum concerns; empty if it does not concern particular ones.
    pub instructions: &'static [Opcode],
}
