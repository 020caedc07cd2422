//! Relocations and ELF constants (`docs/machine/objects.md`).

use core::fmt;

pub use crate::desc::{Formula, RelocInfo};
pub use crate::generated::Reloc;
pub use crate::generated::elf;

/// Why a relocation cannot be applied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RelocError {
    /// The value does not fit the field.
    Range {
        /// The relocation type.
        reloc: Reloc,
        /// The value.
        value: i64,
        /// Smallest value that fits.
        min: i64,
        /// Largest value that fits.
        max: i64,
    },
    /// Fewer than four bytes are left at the relocated address.
    Short {
        /// The relocation type.
        reloc: Reloc,
        /// The number of bytes left.
        len: usize,
    },
}

impl fmt::Display for RelocError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            RelocError::Range { reloc, value, min, max } => {
                write!(f, "{}: {value} is not in {min}..={max}", reloc.info().name)
            }
            RelocError::Short { reloc, len } => {
                write!(
                    f,
                    "{}: {len} bytes are left at the address, 4 are needed",
                    reloc.info().name
                )
            }
        }
    }
}

impl core::error::Error for RelocError {}

impl Reloc {
    /// Returns its number in ELF files.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Returns the name, `R_NPU_...`.
    pub const fn name(self) -> &'static str {
        self.info().name
    }

    /// Returns whether the value is relative to the address of the word.
    pub const fn is_pc_relative(self) -> bool {
        matches!(self.info().formula, Formula::Pc)
    }

    /// Returns the relocation type with this number.
    pub fn from_number(number: u32) -> Option<Reloc> {
        Reloc::ALL.iter().copied().find(|r| u32::from(r.number()) == number)
    }

    /// Returns the relocation type with this name.
    pub fn from_name(name: &str) -> Option<Reloc> {
        Reloc::ALL.iter().copied().find(|r| r.name() == name)
    }

    /// Returns the range of values that fit in the field. For a type that takes only the low bits,
    /// this is every 32-bit value, signed or unsigned.
    pub const fn range(self) -> (i64, i64) {
        let info = self.info();
        if info.signed {
            let half = 1i64 << (info.width - 1);
            (-half, half - 1)
        } else {
            (i32::MIN as i64, u32::MAX as i64)
        }
    }
}

/// Applies a relocation: computes its value from the symbol, the addend and the address, and writes
/// it to the field in the first word of `place`. The other bits of the word are unchanged.
///
/// # Errors
///
/// Fails if the value does not fit or `place` is shorter than a word. `place` is unchanged then.
pub fn apply(reloc: Reloc, place: &mut [u8], symbol: u32, addend: i32, address: u32) -> Result<(), RelocError> {
    let info = reloc.info();
    let target = symbol.wrapping_add_signed(addend);
    let value = match info.formula {
        Formula::None => return Ok(()),
        Formula::Abs => target,
        Formula::Pc => target.wrapping_sub(address),
        Formula::AbsHigh => target >> 16,
        Formula::AbsLow => target & 0xFFFF,
    };
    let len = place.len();
    let Some(bytes) = place.first_chunk_mut::<4>() else {
        return Err(RelocError::Short { reloc, len });
    };
    if info.signed {
        let value = i64::from(value as i32);
        let (min, max) = reloc.range();
        if !(min..=max).contains(&value) {
            return Err(RelocError::Range { reloc, value, min, max });
        }
    }
    let ones = if info.width >= 32 {
        u32::MAX
    } else {
        (1 << info.width) - 1
    };
    let mask = ones << info.lsb;
    let word = u32::from_le_bytes(*bytes) & !mask | value << info.lsb & mask;
    *bytes = word.to_le_bytes();
    Ok(())
}
