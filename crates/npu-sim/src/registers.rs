//! Vector registers, and the scalar registers with a special meaning.

use npu_mc::SReg;

/// The number of lanes of a vector register.
pub const LANES: usize = npu_mc::machine::LANES as usize;

/// The number of the scalar register whose low half mirrors the lane mask.
pub(crate) const RM: u8 = SReg::RM.number();
/// The number of the return-address register.
pub(crate) const RA: u8 = SReg::RA.number();
/// The register number that reads as the address of the reading instruction.
pub(crate) const PC: u8 = SReg::PC.number();

/// A vector register: 16 lanes of 32 bits, lane 0 first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Lanes(pub [u32; LANES]);

impl Lanes {
    /// Returns a vector with the same value in every lane.
    pub const fn splat(value: u32) -> Lanes {
        Lanes([value; LANES])
    }

    /// Applies `f` to each lane.
    #[inline(always)]
    pub(crate) fn map(&self, f: impl Fn(u32) -> u32) -> Lanes {
        self.zip(self, |a, _| f(a))
    }

    /// Applies `f` to each lane and the same lane of `other`.
    #[inline(always)]
    pub(crate) fn zip(&self, other: &Lanes, f: impl Fn(u32, u32) -> u32) -> Lanes {
        let mut result = Lanes::default();
        for ((result, a), b) in result.0.iter_mut().zip(self.0).zip(other.0) {
            *result = f(a, b);
        }
        result
    }
}
