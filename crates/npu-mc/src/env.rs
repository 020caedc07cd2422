//! The register classes for register allocators: which registers they may use.

use crate::reg::RegFile;

pub use crate::desc::ClassInfo;
pub use crate::generated::{GPR32, VR512W};

/// Returns the class of a register file.
pub const fn class(file: RegFile) -> &'static ClassInfo {
    match file {
        RegFile::Scalar => &GPR32,
        RegFile::Vector => &VR512W,
    }
}
