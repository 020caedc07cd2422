//! The state of a link.

use super::error::ProgramError;
use super::types::{Input, LinkOptions};
use npu_mc::asm::SymbolId;
use std::collections::HashMap;

/// Where a definition is: object and symbol.
pub(super) type Definition = (usize, SymbolId);

/// A program that is being linked.
pub(super) struct Linking<'a> {
    pub(super) options: &'a LinkOptions,
    pub(super) inputs: Vec<Input>,
    /// The definition that counts for each name.
    pub(super) globals: HashMap<String, Definition>,
    pub(super) errors: Vec<ProgramError>,
    /// What the linker's own symbols are.
    pub(super) given: HashMap<&'static str, u32>,
}
