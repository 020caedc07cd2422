//! The effects of an instruction, for all passes: the registers it reads and writes, its memory
//! access and its latency.

use super::func::{CallKind, McInst};
use crate::abi::registers::{RegisterSet, clobbered};
use crate::abi::sig::argument_registers;
use crate::inst::reg::{from_preg, machine};
use npu_mc::machine::{LOST_RESULT, VECTOR_SLOT, WORD_SLOT};
use npu_mc::{Inst, Opcode, OperandDesc, Reg, RegFile, SReg, Unit, VReg, cc};
use std::sync::{LazyLock, OnceLock};

/// A set of machine registers, one bit per register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegSet(u128);

/// The number of registers in both files.
pub const REGISTERS: usize = 128;

/// The number of scalar registers. They come first in a table of all registers.
pub const SCALARS: usize = 64;

/// Returns the index of a register in a table of all registers.
pub fn index_of(reg: Reg) -> usize {
    match reg {
        Reg::S(reg) => usize::from(reg.number() & 63),
        Reg::V(reg) => 64 | usize::from(reg.number() & 63),
    }
}

impl RegSet {
    /// The set of all registers.
    pub const ALL: Self = Self(u128::MAX);

    /// The empty set.
    pub const EMPTY: Self = Self(0);

    /// Returns the set of one register.
    pub fn one(reg: Reg) -> Self {
        // Shift 64-bit words, because shifts of 128 bits are slow.
        let word = |number: u8| u128::from(1u64 << (number & 63));
        match reg {
            Reg::S(reg) => Self(word(reg.number())),
            Reg::V(reg) => Self(word(reg.number()) << 64),
        }
    }

    /// Returns the set of the register at an index in a table of all registers.
    pub const fn at(index: usize) -> Self {
        Self(1 << index)
    }

    /// Returns the intersection.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns the union.
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the difference.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns whether the sets intersect.
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns whether the set contains the register.
    pub fn contains(self, reg: Reg) -> bool {
        self.meets(Self::one(reg))
    }

    /// Returns the number of registers in the set.
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Returns the scalar registers of the set.
    pub const fn scalars(self) -> Self {
        Self(self.0 & u64::MAX as u128)
    }

    /// Returns the indices of the scalars in a table of all registers, in rising order.
    pub fn scalar_indices(self) -> impl Iterator<Item = usize> {
        bits_of(self.0 as u64)
    }

    /// Returns the indices of the registers in a table of all registers, in rising order.
    pub fn indices(self) -> impl Iterator<Item = usize> {
        // Count zeros of 64-bit words, because counting zeros of 128 bits is slow.
        let vectors = bits_of((self.0 >> SCALARS) as u64).map(|index| SCALARS + index);
        self.scalar_indices().chain(vectors)
    }

    /// Returns the registers, scalars first.
    pub fn iter(self) -> impl Iterator<Item = Reg> {
        self.indices().filter_map(|index| {
            let number = u8::try_from(index & 63).ok()?;
            if index < 64 {
                SReg::new(number).map(Reg::S)
            } else {
                VReg::new(number).map(Reg::V)
            }
        })
    }
}

/// Returns the indices of the set bits, in rising order.
fn bits_of(mut left: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let index = left.trailing_zeros() as usize;
        let found = left != 0;
        left &= left.wrapping_sub(1);
        found.then_some(index)
    })
}

impl FromIterator<Reg> for RegSet {
    fn from_iter<T: IntoIterator<Item = Reg>>(regs: T) -> Self {
        regs.into_iter().fold(Self::EMPTY, |set, reg| set.or(Self::one(reg)))
    }
}

/// A memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Whether the access is a store.
    pub is_store: bool,
    /// Base register and offset in bytes. `None` for an access to an unknown address.
    pub at: Option<(Reg, i32)>,
    /// The maximum number of bytes accessed.
    pub bytes: i32,
}

/// Returns whether the latency is too long to hide: loads that may miss, and operations of more
/// than [`LOST_RESULT`] cycles.
fn is_long(opcode: Opcode) -> bool {
    let desc = opcode.desc();
    desc.flags.may_load() && !desc.scratchpad || u32::from(desc.latency) > LOST_RESULT
}

/// How a taken branch directly after an instruction can lose its result (`sched::hazard`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The instruction has no result, or its result always arrives in time.
    Never,
    /// The result is late if results of the float unit occupy the write port. They have priority.
    AfterFloats,
    /// The latency alone makes the result late, or the instruction is a load that may miss.
    Always,
}

/// Returns how the result of an opcode can be lost. The float unit has priority at the write port,
/// so its latencies are exact.
fn loss_of(opcode: Opcode) -> Loss {
    let desc = opcode.desc();
    if desc.flags.may_load() || u32::from(desc.latency) >= LOST_RESULT {
        Loss::Always
    } else if desc.unit == Unit::Fp {
        Loss::Never
    } else {
        Loss::AfterFloats
    }
}

/// The effects of an instruction, except for the value it computes.
#[derive(Clone, Copy, Debug)]
pub struct Effects {
    /// The registers it reads, without `rm`.
    pub reads: RegSet,
    /// The registers it writes.
    pub writes: RegSet,
    /// Whether it depends on `rm`: it writes a vector register, or stores a vector to the
    /// scratchpad.
    pub obeys_mask: bool,
    /// Its memory access.
    pub access: Option<Access>,
    /// Whether it may change the program counter.
    pub is_branch: bool,
    /// Whether it has an effect that no other field describes.
    pub is_barrier: bool,
    /// Cycles from its issue to the issue of an instruction that uses the result, at least 1.
    pub latency: u32,
    /// Whether the latency of the result is too long to hide: long operations, and loads that may
    /// miss.
    pub is_long: bool,
    /// How a taken branch directly after the instruction can lose its result.
    pub loss: Loss,
    /// Whether the float unit computes the result.
    pub is_float: bool,
}

impl Effects {
    /// Returns the effects of an instruction.
    pub fn of(inst: &Inst) -> Self {
        let common = Self::of_opcode(inst.opcode);
        let mut effects = *common;
        effects.add_registers(inst, common);
        effects.is_long &= !effects.writes.is_empty();
        if effects.writes.is_empty() {
            effects.loss = Loss::Never;
        }
        effects
    }

    /// Recomputes the registers after the operands of the instruction were renamed.
    pub fn find_registers(&mut self, inst: &Inst) {
        self.add_registers(inst, Self::of_opcode(inst.opcode));
    }

    /// Sets the registers to the implicit registers of the opcode and the operands.
    fn add_registers(&mut self, inst: &Inst, common: &Self) {
        let desc = inst.desc();
        let (mut reads, mut writes) = (common.reads, common.writes);
        for (described, operand) in desc.operands.iter().zip(inst.operands.iter()) {
            let Some(reg) = operand.reg() else { continue };
            let one = RegSet::one(reg);
            if !described.is_def || desc.reads_dst {
                reads = reads.or(one);
            }
            if described.is_def {
                writes = writes.or(one);
            }
        }
        self.reads = reads;
        self.writes = writes;
        if let Some(access) = &mut self.access {
            // Memory operands are last: base, then offset.
            access.at = match inst.operands.as_ref() {
                [.., base, offset] => base.reg().zip(offset.imm()),
                _ => None,
            };
        }
    }

    /// Returns the common effects of all instructions with the opcode. Its registers are the
    /// implicit ones.
    fn of_opcode(opcode: Opcode) -> &'static Self {
        static ALL: LazyLock<Vec<Effects>> =
            LazyLock::new(|| Opcode::ALL.iter().copied().map(Effects::common).collect());
        &ALL[opcode.index()]
    }

    fn common(opcode: Opcode) -> Self {
        let desc = opcode.desc();
        let flags = desc.flags;
        let is_vector = |operand: &OperandDesc| operand.kind.register_file() == Some(RegFile::Vector);
        let obeys_mask = |operand: &OperandDesc| operand.is_def || desc.scratchpad && flags.may_store();
        let bytes = if desc.operands.first().is_some_and(is_vector) {
            VECTOR_SLOT
        } else {
            WORD_SLOT
        };
        Self {
            reads: desc.implicit_uses.iter().copied().collect(),
            writes: desc.implicit_defs.iter().copied().collect(),
            obeys_mask: desc
                .operands
                .iter()
                .any(|operand| is_vector(operand) && obeys_mask(operand)),
            access: (flags.may_load() || flags.may_store()).then(|| Access {
                is_store: flags.may_store(),
                at: None,
                bytes: bytes.cast_signed(),
            }),
            is_branch: flags.is_branch(),
            is_barrier: flags.has_side_effects(),
            latency: u32::from(desc.latency).max(1),
            is_long: is_long(opcode),
            loss: loss_of(opcode),
            is_float: desc.unit == Unit::Fp,
        }
    }

    /// Returns the registers the instruction depends on, including the mask.
    pub fn depends_on(&self) -> RegSet {
        if self.obeys_mask {
            self.reads.or(RegSet::one(machine::MASK))
        } else {
            self.reads
        }
    }

    /// Returns whether the instruction accesses memory or is a barrier.
    pub fn touches_memory(&self) -> bool {
        self.access.is_some() || self.is_barrier
    }
}

/// The implicit register reads of calls and returns.
#[derive(Clone, Copy, Debug)]
pub struct Conventions {
    arguments: RegSet,
    at_return: RegSet,
    /// Registers with a special role. A move to one of them is never redundant, because any
    /// instruction may read it.
    special: RegSet,
}

impl Conventions {
    /// Returns the conventions of a function that may change these registers. They are computed
    /// once for each kind.
    pub fn of(registers: RegisterSet, pinned: Option<SReg>) -> &'static Self {
        static ALL: [OnceLock<Conventions>; 4] = [const { OnceLock::new() }; 4];
        let kind = usize::from(registers == RegisterSet::PreserveAll) * 2 + usize::from(pinned.is_some());
        ALL[kind].get_or_init(|| Self::new(registers, pinned))
    }

    fn new(registers: RegisterSet, pinned: Option<SReg>) -> Self {
        let changed: RegSet = clobbered(registers).into_iter().filter_map(from_preg).collect();
        let mut results = cc::State::new();
        let mut locations = Vec::new();
        while results.assign(&cc::RETURNS, cc::ValueType::I32, &mut locations).is_ok() {}
        let returned: RegSet = locations
            .iter()
            .filter_map(|location| match location.loc {
                cc::Loc::Reg(reg) => Some(reg),
                cc::Loc::Stack { .. } => None,
            })
            .collect();
        let reserved = npu_mc::env::GPR32.reserved.iter();
        let reserved = reserved.filter_map(|&number| SReg::new(number));
        Self {
            arguments: argument_registers().iter().copied().collect(),
            // The registers that the caller relies on, and the results.
            at_return: RegSet(u128::MAX).without(changed).or(returned).scalars(),
            special: reserved.chain(pinned).map(Reg::S).collect(),
        }
    }

    /// Returns whether the register has a special role.
    pub fn is_special(&self, reg: SReg) -> bool {
        self.special.contains(Reg::S(reg))
    }

    /// Returns the scalars that an instruction reads, including arguments of calls and results of
    /// the function.
    pub fn needs(&self, inst: &McInst, effects: &Effects) -> RegSet {
        let named = effects.reads.scalars();
        if !effects.is_branch {
            return named;
        }
        match inst.inst.opcode {
            Opcode::JRET => named.or(self.at_return),
            _ if inst.call == CallKind::TailCall => named.or(self.arguments).or(self.at_return),
            Opcode::JMPSR_OFF | Opcode::JMPSR_REG | Opcode::JUMPREG => named.or(self.arguments),
            _ => named,
        }
    }
}
