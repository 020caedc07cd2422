//! What an instruction reads and writes and when its result is there: the one place that says it to all passes.

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

/// How many registers there are in both files.
pub const REGISTERS: usize = 128;

/// How many of them are scalars; they come first in a table of all.
pub const SCALARS: usize = 64;

/// The position of a register in a table of all.
pub fn index_of(reg: Reg) -> usize {
    match reg {
        Reg::S(reg) => usize::from(reg.number() & 63),
        Reg::V(reg) => 64 | usize::from(reg.number() & 63),
    }
}

impl RegSet {
    /// All registers.
    pub const ALL: Self = Self(u128::MAX);

    /// No register.
    pub const EMPTY: Self = Self(0);

    /// This register alone.
    pub fn one(reg: Reg) -> Self {
        // A word each: shifts of 128 bits are slow.
        let word = |number: u8| u128::from(1u64 << (number & 63));
        match reg {
            Reg::S(reg) => Self(word(reg.number())),
            Reg::V(reg) => Self(word(reg.number()) << 64),
        }
    }

    /// The register at this position in a table of all.
    pub const fn at(index: usize) -> Self {
        Self(1 << index)
    }

    /// Those in both.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Those in one of them.
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those that are not in the other one.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether a register is in both.
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether the register is one of them.
    pub fn contains(self, reg: Reg) -> bool {
        self.meets(Self::one(reg))
    }

    /// How many there are.
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// The scalar registers of the set.
    pub const fn scalars(self) -> Self {
        Self(self.0 & u64::MAX as u128)
    }

    /// The positions of its scalars in a table of all, in rising order.
    pub fn scalar_indices(self) -> impl Iterator<Item = usize> {
        bits_of(self.0 as u64)
    }

    /// The positions of the registers in a table of all, in rising order.
    pub fn indices(self) -> impl Iterator<Item = usize> {
        // Counting zeros of 128 bits is slow.
        let vectors = bits_of((self.0 >> SCALARS) as u64).map(|index| SCALARS + index);
        self.scalar_indices().chain(vectors)
    }

    /// The registers, scalars first.
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

/// The numbers of the bits that are set, in rising order.
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

/// An access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Whether it writes.
    pub is_store: bool,
    /// Base register and offset in bytes; without, it may be anywhere.
    pub at: Option<(Reg, i32)>,
    /// How many bytes it touches at most.
    pub bytes: i32,
}

/// Whether other instructions cannot be expected to fill the time until the result is there: long operations, and loads, which may miss.
fn is_long(opcode: Opcode) -> bool {
    let desc = opcode.desc();
    desc.flags.may_load() && !desc.scratchpad || u32::from(desc.latency) > LOST_RESULT
}

/// How a taken branch directly after an instruction can lose its result (`sched::hazard`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The instruction has no result, or the result is always there in time.
    Never,
    /// The result is late if the write port is taken by results of the float unit, which go first.
    BehindFloats,
    /// The latency alone is enough, or the result is that of a load, which may miss.
    Always,
}

/// How the result of an opcode can be lost. The float unit has the first turn at the write port, so its latencies are exact.
fn loss_of(opcode: Opcode) -> Loss {
    let desc = opcode.desc();
    if desc.flags.may_load() || u32::from(desc.latency) >= LOST_RESULT {
        Loss::Always
    } else if desc.unit == Unit::Fp {
        Loss::Never
    } else {
        Loss::BehindFloats
    }
}

/// What an instruction does, apart from what it computes.
#[derive(Clone, Copy, Debug)]
pub struct Effects {
    /// The registers that it reads, `rm` not counted.
    pub reads: RegSet,
    /// The registers that it writes.
    pub writes: RegSet,
    /// What it does depends on `rm`: it writes a vector register, or a vector to the scratchpad.
    pub obeys_mask: bool,
    /// Where it accesses memory.
    pub access: Option<Access>,
    /// It may change the program counter.
    pub is_branch: bool,
    /// It has an effect that nothing else here tells.
    pub is_barrier: bool,
    /// Cycles from its issue to that of an instruction that needs the result, at least 1.
    pub latency: u32,
    /// The result takes long: long operations, and loads, which may miss.
    pub is_long: bool,
    /// How a taken branch directly after the instruction can lose the result.
    pub loss: Loss,
    /// The float unit computes the result.
    pub is_float: bool,
}

impl Effects {
    /// The effects of an instruction.
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

    /// Finds the registers again, after those of the instruction were renamed.
    pub fn find_registers(&mut self, inst: &Inst) {
        self.add_registers(inst, Self::of_opcode(inst.opcode));
    }

    /// Sets the registers to those that all instructions with the opcode have in common, and the operands.
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
            // Memory operands stand last: base, then offset.
            access.at = match inst.operands.as_ref() {
                [.., base, offset] => base.reg().zip(offset.imm()),
                _ => None,
            };
        }
    }

    /// What all instructions with the opcode have in common: the registers are those that are no operands.
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

    /// The registers that it depends on, the mask included.
    pub fn depends_on(&self) -> RegSet {
        if self.obeys_mask {
            self.reads.or(RegSet::one(machine::MASK))
        } else {
            self.reads
        }
    }

    /// Whether it accesses memory or has an effect that nothing else tells.
    pub fn touches_memory(&self) -> bool {
        self.access.is_some() || self.is_barrier
    }
}

/// What calls and returns read, which no operand says.
#[derive(Clone, Copy, Debug)]
pub struct Conventions {
    arguments: RegSet,
    at_return: RegSet,
    /// Registers with a meaning of their own, which a move is there to set: everybody may read them.
    special: RegSet,
}

impl Conventions {
    /// The conventions of a function that may change these registers, made once for each kind.
    pub fn of(registers: RegisterSet, pinned: Option<SReg>) -> &'static Self {
        static ALL: [OnceLock<Conventions>; 4] = [const { OnceLock::new() }; 4];
        let kind = usize::from(registers == RegisterSet::PreserveAll) * 2 + usize::from(pinned.is_some());
        ALL[kind].get_or_init(|| Self::new(registers, pinned))
    }

    fn new(registers: RegisterSet, pinned: Option<SReg>) -> Self {
        let changed: RegSet = clobbered(registers).into_iter().filter_map(from_preg).collect();
        let mut results = cc::State::new();
        let mut places = Vec::new();
        while results.assign(&cc::RETURNS, cc::ValueType::I32, &mut places).is_ok() {}
        let returned: RegSet = places
            .iter()
            .filter_map(|place| match place.loc {
                cc::Loc::Reg(reg) => Some(reg),
                cc::Loc::Stack { .. } => None,
            })
            .collect();
        let reserved = npu_mc::env::GPR32.reserved.iter();
        let reserved = reserved.filter_map(|&number| SReg::new(number));
        Self {
            arguments: argument_registers().iter().copied().collect(),
            // Whatever the caller may count on, and the results.
            at_return: RegSet(u128::MAX).without(changed).or(returned).scalars(),
            special: reserved.chain(pinned).map(Reg::S).collect(),
        }
    }

    /// Whether the register has a meaning of its own.
    pub fn is_special(&self, reg: SReg) -> bool {
        self.special.contains(Reg::S(reg))
    }

    /// The scalars that an instruction needs, arguments of calls and results of the function included.
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
