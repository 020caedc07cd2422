//! Registers: a scalar file (32 bits) and a vector file (16 lanes of 32 bits), with 64 registers
//! each (`docs/machine/registers.md`).
//!
//! A register number does not determine the file. Each file therefore has its own type, and the
//! compiler rejects a mix-up.

use crate::generated;
use core::fmt;

/// A scalar register, one of the records of the td class `GPR32`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SReg(pub(crate) u8);

/// A vector register, one of the records of the td class `VR512W`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VReg(pub(crate) u8);

macro_rules! register_file {
    ($ty:ident, $table:ident, $what:literal) => {
        impl $ty {
            #[doc = concat!("The number of ", $what, " registers. The register numbers are `0..COUNT`.")]
            pub const COUNT: u8 = generated::$table.len() as u8;

            /// Returns the register with this encoding number, or `None` if it does not exist.
            pub const fn new(number: u8) -> Option<Self> {
                if number < Self::COUNT {
                    Some(Self(number))
                } else {
                    None
                }
            }

            /// Returns the register of a 6-bit field of an instruction, which can hold every
            /// register number. Higher bits of `bits` are dropped.
            pub const fn of_field(bits: u8) -> Self {
                Self(bits % Self::COUNT)
            }

            /// Returns its number in the 6-bit register fields of an instruction.
            pub const fn number(self) -> u8 {
                self.0
            }

            /// Returns the assembler's name. Registers have no aliases
            /// (`docs/machine/registers.md`).
            pub const fn name(self) -> &'static str {
                generated::$table[self.0 as usize].name
            }

            /// Returns the DWARF register number.
            pub const fn dwarf(self) -> u16 {
                generated::$table[self.0 as usize].dwarf
            }

            /// Returns the register with this exact, lower-case name.
            pub fn from_name(name: &str) -> Option<Self> {
                let number = generated::$table.iter().position(|r| r.name == name)?;
                Some(Self(number as u8))
            }

            /// Returns all registers of the file in encoding order.
            pub fn all() -> impl DoubleEndedIterator<Item = Self> + ExactSizeIterator {
                (0..Self::COUNT).map(Self)
            }
        }

        impl fmt::Display for $ty {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }

        impl fmt::Debug for $ty {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

register_file!(SReg, SREGS, "scalar");
register_file!(VReg, VREGS, "vector");

/// A register file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RegFile {
    /// 64 registers of 32 bits.
    Scalar,
    /// 64 registers of 16 lanes of 32 bits.
    Vector,
}

/// A register of either file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reg {
    /// A scalar register.
    S(SReg),
    /// A vector register.
    V(VReg),
}

impl Reg {
    /// Returns the register with this number in this file, or `None` if it does not exist.
    pub const fn new(file: RegFile, number: u8) -> Option<Reg> {
        match file {
            RegFile::Scalar => match SReg::new(number) {
                Some(r) => Some(Reg::S(r)),
                None => None,
            },
            RegFile::Vector => match VReg::new(number) {
                Some(r) => Some(Reg::V(r)),
                None => None,
            },
        }
    }

    /// Returns the register's file.
    pub const fn file(self) -> RegFile {
        match self {
            Reg::S(_) => RegFile::Scalar,
            Reg::V(_) => RegFile::Vector,
        }
    }

    /// Returns whether it is a vector register.
    pub const fn is_vector(self) -> bool {
        matches!(self, Reg::V(_))
    }

    /// Returns its number in the 6-bit register fields. Registers of different files may have the
    /// same number.
    pub const fn number(self) -> u8 {
        match self {
            Reg::S(r) => r.number(),
            Reg::V(r) => r.number(),
        }
    }

    /// Returns the assembler's name.
    pub const fn name(self) -> &'static str {
        match self {
            Reg::S(r) => r.name(),
            Reg::V(r) => r.name(),
        }
    }

    /// Returns the DWARF register number, which is unique across the files.
    pub const fn dwarf(self) -> u16 {
        match self {
            Reg::S(r) => r.dwarf(),
            Reg::V(r) => r.dwarf(),
        }
    }

    /// Returns the register with this exact name in either file.
    pub fn from_name(name: &str) -> Option<Reg> {
        SReg::from_name(name)
            .map(Reg::S)
            .or_else(|| VReg::from_name(name).map(Reg::V))
    }
}

impl From<SReg> for Reg {
    fn from(r: SReg) -> Reg {
        Reg::S(r)
    }
}

impl From<VReg> for Reg {
    fn from(r: VReg) -> Reg {
        Reg::V(r)
    }
}

impl fmt::Display for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Debug for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
