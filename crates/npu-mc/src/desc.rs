//! What the generated tables are made of: one type for the rows of each.
//!
//! These types only hold facts; the modules that they belong to publish them, and have the code that uses them.

use core::fmt;

use crate::generated::{Format, HwStatus, OperandKind, Unit, ValueType};
use crate::reg::{Reg, RegFile};

/// The name and numbers of one register as the td record gives them.
pub(crate) struct RegInfo {
    pub(crate) name: &'static str,
    pub(crate) dwarf: u16,
}

/// What a td `Instruction` record says about one opcode.
#[derive(Debug)]
pub struct InstDesc {
    /// The td record name.
    pub name: &'static str,
    /// Where td has the record: `td/FILE:LINE`, followed by ` from td/FILE:LINE` for each `defm` that made it.
    pub place: &'static str,
    /// The first word of the assembly text.
    pub mnemonic: &'static str,
    /// The td `AsmString`.
    pub asm: &'static str,
    /// The instruction format (`docs/machine/formats.md`).
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
    /// (`docs/machine/formats.md`).
    pub masked: bool,
    /// Accesses the scratchpad instead of main memory.
    pub scratchpad: bool,
    /// The execution unit.
    pub unit: Unit,
    /// Cycles from the issue of this instruction to the issue of one that needs its result, without contention
    /// and with cache hits (`docs/machine/pipeline.md`); 0 if it has no result.
    pub latency: u8,
    /// Slot of the float unit's write port: two float operations may not have equal issue cycle plus slot
    /// (`docs/machine/pipeline.md`). `None` for other units.
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

/// The allocator's view of a register class; numbers are encodings in the class's file.
#[derive(Debug)]
pub struct ClassInfo {
    /// The td record name.
    pub name: &'static str,
    /// The file of its registers.
    pub file: RegFile,
    /// Caller-saved registers in the order to prefer them.
    pub preferred: &'static [u8],
    /// Callee-saved registers, which cost a save, in the order to prefer them.
    pub non_preferred: &'static [u8],
    /// Registers never to be allocated: those with a role of their own, and those an erratum makes unusable.
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

/// A step of a convention; the first one that places the value ends the walk.
#[derive(Debug)]
pub(crate) enum Action {
    /// The inner action, for values of these types.
    IfType(&'static [ValueType], &'static Action),
    /// Goes on as another type.
    Promote(ValueType),
    /// Places this many parts one after the other, least significant first.
    Split { part: ValueType, count: u32 },
    /// The first free register.
    ToReg(&'static [Reg]),
    /// The next stack slot.
    ToStack { size: u32, align: u32 },
    /// Goes on with the actions of another convention.
    #[expect(dead_code, reason = "td offers it, the present conventions do not use it")]
    Delegate(&'static [Action]),
}

/// How a relocation's value is made: S symbol, A addend, P address of the place. All modulo 2^32.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Formula {
    /// Nothing is written.
    None,
    /// S + A
    Abs,
    /// S + A - P
    Pc,
    /// Bits 31-16 of S + A. The halves are independent: no carry is taken into account.
    AbsHigh,
    /// Bits 15-0 of S + A.
    AbsLow,
}

/// What td's `Reloc` record says.
#[derive(Debug)]
pub struct RelocInfo {
    /// The ELF name.
    pub name: &'static str,
    /// How the value is made.
    pub formula: Formula,
    /// Lowest bit of the field in the little-endian word at P.
    pub lsb: u8,
    /// Width of the field in bits, 0 for no field.
    pub width: u8,
    /// The value has to fit the field as a signed number; otherwise its low bits are taken.
    pub signed: bool,
}

/// What td's `HwOp` record says about an operation.
#[derive(Debug)]
pub struct HwOpInfo {
    /// The hardware's name.
    pub name: &'static str,
    /// The execution unit; for a memory operation that of main memory.
    pub unit: Unit,
    /// Cycles from issue to the issue of a dependent instruction (`docs/machine/pipeline.md`); 0 without a result.
    pub latency: u8,
    /// Slot of the float unit's write port (`docs/machine/pipeline.md`).
    pub fp_slot: Option<u8>,
    /// How well the hardware does it.
    pub status: HwStatus,
    /// How well it does it in the scratchpad.
    pub scratchpad_status: HwStatus,
    /// [`HwOpInfo::latency`] in the scratchpad.
    pub scratchpad_latency: u8,
    /// Bytes accessed in memory by a scalar, or by each lane of a vector; 0 for no access.
    pub access_bytes: u8,
    /// Alignment that the hardware checks in main memory, in bytes; 0 for no access.
    pub alignment: u8,
}

/// What td says about an erratum.
#[derive(Debug, PartialEq, Eq)]
pub struct ErratumInfo {
    /// Short name.
    pub name: &'static str,
    /// What goes wrong, one sentence.
    pub summary: &'static str,
    /// What happens to a program that is not prepared.
    pub effect: &'static str,
    /// What the compiler does about it.
    pub workaround: &'static str,
    /// Whether the compiler has a setting `erratum_<name>` that leaves the work-around out. The others need no code.
    pub is_setting: bool,
    /// Where the fact comes from.
    pub reference: &'static str,
}
