//! The registers of the back end: virtual before register allocation, machine registers after it.

use npu_mc::{SReg, VReg as VectorReg};
use regalloc2::{PReg, RegClass, VReg};
use std::fmt;

/// A register operand of a machine instruction.
///
/// Reserved registers (`sp`, `fp`, ...) are [`Reg::Real`] from the start and invisible to
/// regalloc2.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reg {
    /// A register that regalloc2 assigns.
    Virtual(VReg),
    /// A machine register.
    Real(npu_mc::Reg),
}

impl Reg {
    /// Makes the operand for a scalar register.
    pub const fn scalar(reg: SReg) -> Self {
        Self::Real(npu_mc::Reg::S(reg))
    }

    /// The stack pointer.
    pub const SP: Self = Self::scalar(SReg::SP);

    /// The frame pointer.
    pub const FP: Self = Self::scalar(SReg::FP);

    /// The emitter's scratch register. `tr` is never allocated, and the hardware neither reads nor
    /// writes it. It carries the trap code just before a thread stops.
    pub const SCRATCH: Self = Self::scalar(SReg::TR);

    /// Returns the virtual register, or `None` if it is a machine register.
    pub fn as_virtual(self) -> Option<VReg> {
        match self {
            Self::Virtual(v) => Some(v),
            Self::Real(_) => None,
        }
    }

    /// Returns the machine register, or `None` if it is virtual.
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

/// The reserved registers as machine registers.
pub mod machine {
    use npu_mc::{Reg, SReg};

    /// The stack pointer.
    pub const SP: Reg = Reg::S(SReg::SP);
    /// The frame pointer.
    pub const FP: Reg = Reg::S(SReg::FP);
    /// The link register.
    pub const RA: Reg = Reg::S(SReg::RA);
    /// The emitter's scratch register. `tr` is never allocated, and the hardware neither reads nor
    /// writes it. It carries the trap code just before a thread stops.
    pub const SCRATCH: Reg = Reg::S(SReg::TR);
    /// The lane mask.
    pub const MASK: Reg = Reg::S(SReg::RM);
    /// The program counter. A read returns the address of the reading instruction.
    pub const PC: Reg = Reg::S(SReg::PC);
}

/// A register that holds a scalar. The type lets ISLE reject a register of the wrong class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gpr(pub Reg);

/// A register that holds a vector of sixteen lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vector(pub Reg);

/// Converts a machine register to a register of regalloc2.
pub fn to_preg(reg: npu_mc::Reg) -> PReg {
    match reg {
        npu_mc::Reg::S(s) => PReg::new(usize::from(s.number()), RegClass::Int),
        npu_mc::Reg::V(v) => PReg::new(usize::from(v.number()), RegClass::Vector),
    }
}

/// Converts a register of regalloc2 to a machine register. Returns `None` for a number or class
/// that the machine does not have.
pub fn from_preg(preg: PReg) -> Option<npu_mc::Reg> {
    let number = u8::try_from(preg.hw_enc()).ok()?;
    match preg.class() {
        RegClass::Int => SReg::new(number).map(npu_mc::Reg::S),
        RegClass::Vector => VectorReg::new(number).map(npu_mc::Reg::V),
        RegClass::Float => None,
    }
}
