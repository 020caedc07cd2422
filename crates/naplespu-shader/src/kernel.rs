//! The translation of an entry point: options, parameters and the result.

use crate::emit;
use crate::error::{Error, Result};
use crate::module::{Binding, Module, bindings, guarded};
use cranelift_codegen::ir::Function;
use naga::ShaderStage;
use naga::back::PipelineConstants;
use naga::back::pipeline_constants::process_overrides;
use std::collections::BTreeMap;

/// Options of the translation.
#[derive(Clone, Debug)]
pub struct Options {
    /// The work-items of a subgroup: 1, 16, 32 or 64. One thread executes them at once.
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
    /// Whether the work-items of a work-group wait for each other or share workgroup memory.
    pub cooperates: bool,
}

/// Translates an entry point by name.
pub(crate) fn compile(module: &Module, name: &str, options: &Options) -> Result<Kernel> {
    if !matches!(options.lanes, 1 | 16 | 32 | 64) {
        return Err(Error::Lanes(options.lanes));
    }
    let mut constants = PipelineConstants::default();
    for (name, value) in &options.overrides {
        constants.insert(name.clone(), *value);
    }
    let entry = Some((ShaderStage::Compute, name));
    let (resolved, info) = guarded(|| {
        process_overrides(&module.module, &module.info, entry, &constants)
            .map_err(|error| Error::Override(Box::new(error)))
    })?;
    let is_entry = |entry: &naga::EntryPoint| entry.stage == ShaderStage::Compute && entry.name == name;
    let Some(index) = resolved.entry_points.iter().position(is_entry) else {
        return Err(Error::Internal(format!("the entry point {name} was removed")));
    };
    let bindings = bindings(&resolved, &info, index);
    emit::entry_point(&emit::Input {
        module: &resolved,
        info: &info,
        index,
        lines: &module.lines,
        lanes: options.lanes,
        bindings,
    })
}
