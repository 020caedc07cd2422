//! What a register allocator may use, a register class at a time.

use crate::reg::RegFile;

pub use crate::generated::{GPR32, VR512W};

/// The allocator's view of a register class; numbers are encodings in the class's file.
#[derive(Debug)]
pub struct ClassInfo {
    /// The td record name.
    pub name: &'static str,
    /// The file of its registers.
    pub file: RegFile,
    /// Caller-saved registers in the order to prefer them.
    pub preferred: &'static [u8],
    /// Callee-saved registers, which cost a save, in the order to prefer them.
    pub non_preferred: &'static [u8],
    /// Registers never to be allocated: those with a role of their own, and those an erratum makes unusable.
    pub reserved: &'static [u8],
    /// Bytes of a spill slot.
    pub spill_size: u32,
    /// Alignment of a spill slot in bytes.
    pub spill_align: u32,
}

/// The class of a register file.
pub const fn class(file: RegFile) -> &'static ClassInfo {
    match file {
        RegFile::Scalar => &GPR32,
        RegFile::Vector => &VR512W,
    }
}
