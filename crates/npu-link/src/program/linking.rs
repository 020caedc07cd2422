//! The state of a link.

use super::error::ProgramError;
use super::types::{Input, LinkOptions};
use npu_mc::asm::SymbolId;
use std::collections::HashMap;

/// A definition: the indices of object and symbol.
pub(super) type Definition = (usize, SymbolId);

/// A program that is being linked.
pub(super) struct Linking<'a> {
    pub(super) options: &'a LinkOptions,
    pub(super) inputs: Vec<Input>,
    /// The chosen definition of each name.
    pub(super) globals: HashMap<String, Definition>,
    pub(super) errors: Vec<ProgramError>,
    /// The values of the linker's own symbols.
    pub(super) given: HashMap<&'static str, u32>,
}
