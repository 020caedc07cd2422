//! The target description of the NaplesPU: the `.td` files in the folder of this crate, which `NaplesPU.td` includes all.
//!
//! # Contract
//!
//! The crate is data. It exists so that the description is packaged with its readers: build scripts
//! ask for the [`directory`] and give it to a reader of TableGen as a folder for `include`. The
//! files are there wherever Cargo put the sources of this crate.

#![deny(missing_docs)]

use std::path::Path;

/// The folder with the files.
pub fn directory() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_description_is_there() {
        assert!(super::directory().join("NaplesPU.td").is_file());
    }
}
