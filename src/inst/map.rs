//! Conversion of the register type of addresses, masks and conditions.

use super::{AMode, Cond, LaneMask};

impl<R> AMode<R> {
    /// Replaces the register of the address.
    ///
    /// # Errors
    ///
    /// Returns the error of `reg`.
    pub fn map<S, E>(self, reg: &mut impl FnMut(R) -> Result<S, E>) -> Result<AMode<S>, E> {
        Ok(match self {
            Self::Reg { base, offset } => AMode::Reg {
                base: reg(base)?,
                offset,
            },
            Self::Slot { slot, offset } => AMode::Slot { slot, offset },
            Self::Incoming { offset } => AMode::Incoming { offset },
            Self::Outgoing { offset } => AMode::Outgoing { offset },
            Self::Local { area, offset } => AMode::Local { area, offset },
        })
    }
}

impl<R> LaneMask<R> {
    /// Replaces the register of the mask.
    ///
    /// # Errors
    ///
    /// Returns the error of `reg`.
    pub fn map<S, E>(self, reg: &mut impl FnMut(R) -> Result<S, E>) -> Result<LaneMask<S>, E> {
        Ok(match self {
            Self::Reg(mask) => LaneMask::Reg(reg(mask)?),
            Self::Lanes(lanes) => LaneMask::Lanes(lanes),
        })
    }
}

impl<R> Cond<R> {
    /// Replaces the register of the condition.
    ///
    /// # Errors
    ///
    /// Returns the error of `reg`.
    pub fn map<S, E>(self, reg: &mut impl FnMut(R) -> Result<S, E>) -> Result<Cond<S>, E> {
        Ok(Cond {
            reg: reg(self.reg)?,
            nonzero: self.nonzero,
        })
    }
}
