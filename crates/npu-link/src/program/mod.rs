//! Programs of several objects: resolves symbols, merges sections of the same kind, assigns
//! addresses and applies relocations.
//!
//! Objects are linked in the order of the command line, as in other linkers. Members of libraries
//! follow in the order in which their symbols are needed. Two global definitions of a symbol are an
//! error, a weak definition yields to any other, and the largest of the `COMMON` definitions of a
//! name is used.

mod addresses;
mod copies;
mod error;
mod exceptions;
mod frames;
mod linking;
mod relocations;
mod symbols;
pub(crate) mod types;
mod users;

pub use error::{ProgramError, User};
pub use types::{Input, Library, LinkOptions, MemoryLayout, OutputSection, OutputSymbol, Part, Program};

use crate::startup;
use linking::Linking;
use std::collections::HashMap;

/// Links the objects with the required members of the libraries.
///
/// # Errors
///
/// Returns all errors: undefined and duplicate symbols, relocations that do not fit, sections
/// without room.
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
        let start = startup::object(options.stacks_in_tiles);
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
