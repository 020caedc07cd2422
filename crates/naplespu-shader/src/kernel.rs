//! A translated entry point, and the options of the translation.

use crate::module::Binding;
use cranelift_codegen::ir::Function;
use std::collections::BTreeMap;

/// Options of the translation.
#[derive(Clone, Debug)]
pub struct Options {
    /// The work-items of a subgroup: 1, 16, 32, 64 or 128. One thread executes them at once.
    pub lanes: u32,
    /// Values of overrides, by name or, for overrides with a number, by the number in decimal.
    pub overrides: BTreeMap<String, f64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            lanes: 16,
            overrides: BTreeMap::new(),
        }
    }
}

/// A parameter of the work-item function, an `i32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// The address of the buffer with this index in [`Kernel::bindings`].
    Address(usize),
    /// The size in bytes of the buffer with this index in [`Kernel::bindings`].
    Size(usize),
}

/// A translated entry point.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The work-item function. Its parameters are [`Kernel::parameters`].
    pub function: Function,
    /// The meaning of each parameter.
    pub parameters: Vec<Parameter>,
    /// The buffers, by group and number.
    pub bindings: Vec<Binding>,
    /// The size of a work-group.
    pub workgroup_size: [u32; 3],
    /// The bytes of workgroup memory, from address 0 of the scratchpad on.
    pub workgroup_bytes: u32,
    /// The work-items of a subgroup.
    pub lanes: u32,
}

impl Kernel {
    /// See [`naplespu_spmd::Options::lanes_for`].
    pub(crate) fn lanes_for(&self, threads: u32) -> u32 {
        self.spmd_options().lanes_for(&self.function, threads)
    }
}
