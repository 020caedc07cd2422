//! Vector registers, and the scalar registers that are more than storage.

use npu_mc::SReg;

/// Lanes of a vector register.
pub const LANES: usize = npu_mc::machine::LANES as usize;

/// Number of the scalar register whose low half shadows the lane mask.
pub(crate) const RM: u8 = SReg::RM.number();
/// Number of the return-address register.
pub(crate) const RA: u8 = SReg::RA.number();
/// Number that reads as the address of the reading instruction.
pub(crate) const PC: u8 = SReg::PC.number();

/// A vector register: 16 lanes of 32 bits, lane 0 first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Lanes(pub [u32; LANES]);

impl Lanes {
    /// The same value in every lane.
    pub const fn splat(value: u32) -> Lanes {
        Lanes([value; LANES])
    }

    /// Each lane by itself.
    #[inline(always)]
    pub(crate) fn map(&self, f: impl Fn(u32) -> u32) -> Lanes {
        self.zip(self, |a, _| f(a))
    }

    /// Each lane with that of `other`.
    #[inline(always)]
    pub(crate) fn zip(&self, other: &Lanes, f: impl Fn(u32, u32) -> u32) -> Lanes {
        let mut result = Lanes::default();
        for ((result, a), b) in result.0.iter_mut().zip(self.0).zip(other.0) {
            *result = f(a, b);
        }
        result
    }
}
