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
        /// The type.
        reloc: Reloc,
        /// The value.
        value: i64,
        /// Smallest value that fits.
        min: i64,
        /// Largest value that fits.
        max: i64,
    },
    /// The place has fewer than four bytes.
    Short {
        /// The type.
        reloc: Reloc,
        /// How many bytes there are.
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
                    "{}: {len} bytes are left at the place, 4 are needed",
                    reloc.info().name
                )
            }
        }
    }
}

impl core::error::Error for RelocError {}

impl Reloc {
    /// The number in an ELF file.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The name, `R_NPU_...`.
    pub const fn name(self) -> &'static str {
        self.info().name
    }

    /// Whether the value depends on where the word stands: it is a distance.
    pub const fn is_pc_relative(self) -> bool {
        matches!(self.info().formula, Formula::Pc)
    }

    /// The type with this number.
    pub fn from_number(number: u32) -> Option<Reloc> {
        Reloc::ALL.iter().copied().find(|r| u32::from(r.number()) == number)
    }

    /// The type of this name.
    pub fn from_name(name: &str) -> Option<Reloc> {
        Reloc::ALL.iter().copied().find(|r| r.name() == name)
    }

    /// The values that fit the field; for types that take low bits only, every 32-bit value.
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

/// Applies a relocation: computes its value from symbol, addend and place, and puts it into the word at the
/// beginning of `place`. The field's bits are replaced, the others stay.
///
/// # Errors
///
/// The value does not fit, or `place` is shorter than a word. `place` is unchanged then.
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
