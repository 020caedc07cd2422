//! Programs of several objects: symbols are found, sections of one kind are put together and get addresses, relocations are applied.
//!
//! The order is that of a linker on a command line: objects come as they are given, and members of libraries as somebody needs one
//! of their symbols. What several objects define is a fault; a weak definition gives way to any other, and of the `COMMON` places of
//! one name the largest counts.

mod addresses;
mod copies;
mod error;
mod exceptions;
mod frames;
mod linking;
mod relocations;
mod symbols;
pub(crate) mod types;

pub use error::ProgramError;
pub use types::{Input, Library, LinkOptions, MemoryLayout, OutputSection, OutputSymbol, Part, Program};

use crate::startup;
use linking::Linking;
use std::collections::HashMap;

/// Links the objects, with what they need of the libraries.
///
/// # Errors
///
/// All faults: symbols without a definition or with several, relocations that do not fit, sections without room.
pub fn link_program(
    inputs: Vec<Input>,
    libraries: &mut [&mut dyn Library],
    options: &LinkOptions,
) -> Result<Program, Vec<ProgramError>> {
    let mut linking = Linking {
        options,
        inputs: Vec::new(),
        globals: HashMap::new(),
        errors: Vec::new(),
        given: HashMap::new(),
    };
    if options.startup {
        let start = startup::object();
        linking.add(start.map_err(|faults| {
            let texts = faults.into_iter().map(|fault| ProgramError::Internal(fault.message));
            texts.collect::<Vec<_>>()
        })?);
    }
    inputs.into_iter().for_each(|input| linking.add(input));
    linking.find_members(libraries);
    let mut kept = linking.kept();
    linking.prune_frames(&mut kept);
    linking.prune_exceptions(&mut kept);
    linking.check_undefined(&kept);
    if !linking.errors.is_empty() {
        return Err(linking.errors);
    }
    linking.place(&kept)
}
