//! Registers as the back end sees them: virtual ones before register allocation, machine registers after it.

use npu_mc::{SReg, VReg as VectorReg};
use regalloc2::{PReg, RegClass, VReg};
use std::fmt;

/// A register operand of a machine instruction.
///
/// Reserved registers (`sp`, `fp`, ...) are [`Reg::Real`] from the start and never shown to regalloc2.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reg {
    /// To be assigned by regalloc2.
    Virtual(VReg),
    /// A register of the machine.
    Real(npu_mc::Reg),
}

impl Reg {
    /// The scalar register `reg`.
    pub const fn scalar(reg: SReg) -> Self {
        Self::Real(npu_mc::Reg::S(reg))
    }

    /// The stack pointer.
    pub const SP: Self = Self::scalar(SReg::SP);

    /// The frame pointer.
    pub const FP: Self = Self::scalar(SReg::FP);

    /// The emitter's scratch register. `tr` is never allocated, and the hardware neither reads nor writes it; it
    /// carries the trap code only once a thread is about to stop.
    pub const SCRATCH: Self = Self::scalar(SReg::TR);

    /// The virtual register, if it is one.
    pub fn as_virtual(self) -> Option<VReg> {
        match self {
            Self::Virtual(v) => Some(v),
            Self::Real(_) => None,
        }
    }

    /// The machine register, if it is one.
    pub fn as_real(self) -> Option<npu_mc::Reg> {
        match self {
            Self::Virtual(_) => None,
            Self::Real(r) => Some(r),
        }
    }
}

impl fmt::Display for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Virtual(v) if v.class() == RegClass::Vector => write!(f, "%w{}", v.vreg()),
            Self::Virtual(v) => write!(f, "%{}", v.vreg()),
            Self::Real(r) => write!(f, "{}", r.name()),
        }
    }
}

impl fmt::Debug for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The reserved registers as the machine has them.
pub mod machine {
    use npu_mc::{Reg, SReg};

    /// The stack pointer.
    pub const SP: Reg = Reg::S(SReg::SP);
    /// The frame pointer.
    pub const FP: Reg = Reg::S(SReg::FP);
    /// The link register.
    pub const RA: Reg = Reg::S(SReg::RA);
    /// The emitter's scratch register. `tr` is never allocated, and the hardware neither reads nor writes it; it
    /// carries the trap code only once a thread is about to stop.
    pub const SCRATCH: Reg = Reg::S(SReg::TR);
    /// The lane mask.
    pub const MASK: Reg = Reg::S(SReg::RM);
    /// The program counter, which reads as the address of the reading instruction.
    pub const PC: Reg = Reg::S(SReg::PC);
}

/// A register that holds a scalar: a wrong class is a type error in ISLE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gpr(pub Reg);

/// A register that holds a vector of sixteen lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vector(pub Reg);

/// The machine register as regalloc2 names it.
pub fn to_preg(reg: npu_mc::Reg) -> PReg {
    match reg {
        npu_mc::Reg::S(s) => PReg::new(usize::from(s.number()), RegClass::Int),
        npu_mc::Reg::V(v) => PReg::new(usize::from(v.number()), RegClass::Vector),
    }
}

/// The machine register that regalloc2 means. `None` for a number or class that this machine lacks.
pub fn from_preg(preg: PReg) -> Option<npu_mc::Reg> {
    let number = u8::try_from(preg.hw_enc()).ok()?;
    match preg.class() {
        RegClass::Int => SReg::new(number).map(npu_mc::Reg::S),
        RegClass::Vector => VectorReg::new(number).map(npu_mc::Reg::V),
        RegClass::Float => None,
    }
}
