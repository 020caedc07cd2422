//! What a register allocator may use, a register class at a time.

use crate::reg::RegFile;

pub use crate::desc::ClassInfo;
pub use crate::generated::{GPR32, VR512W};

/// The class of a register file.
pub const fn class(file: RegFile) -> &'static ClassInfo {
    match file {
        RegFile::Scalar => &GPR32,
        RegFile::Vector => &VR512W,
    }
}
