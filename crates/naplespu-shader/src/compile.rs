//! The translation of an entry point: overrides get their values, and `emit` the rest.

use crate::emit;
use crate::error::{Error, Result};
use crate::kernel::{Kernel, Options};
use crate::module::{Module, bindings, guarded};
use naga::ShaderStage;
use naga::back::PipelineConstants;
use naga::back::pipeline_constants::process_overrides;
use std::borrow::Cow;

impl Module {
    /// Translates a compute entry point. `name` may be `None` if there is only one.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub fn compile(&self, name: Option<&str>, options: &Options) -> Result<Kernel> {
        let found: Vec<String> = self.entry_points().into_iter().map(|entry| entry.name).collect();
        let name = match (name, &found[..]) {
            (Some(name), _) if found.iter().any(|one| one == name) => name.to_owned(),
            (None, [one]) => one.clone(),
            (None, [_, _, ..]) => return Err(Error::AmbiguousEntryPoint { found }),
            (name, _) => {
                let name = name.unwrap_or("main").to_owned();
                return Err(Error::NoEntryPoint { name, found });
            }
        };
        compile(self, &name, options)
    }

    /// Translates a compute entry point for a number of threads of a core. The kernel has more lanes
    /// than `options` if the threads do not execute a work-group at once otherwise, and the
    /// work-items wait for each other or have workgroup memory.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub fn compile_for(&self, threads: u32, name: Option<&str>, options: &Options) -> Result<Kernel> {
        let kernel = self.compile(name, options)?;
        let lanes = kernel.lanes_for(threads);
        if lanes == kernel.lanes {
            return Ok(kernel);
        }
        let options = Options {
            lanes,
            ..options.clone()
        };
        self.compile(name, &options)
    }
}

/// Translates an entry point by name.
fn compile(module: &Module, name: &str, options: &Options) -> Result<Kernel> {
    if options.lanes != 1 && !naplespu_spmd::LANE_COUNTS.contains(&options.lanes) {
        return Err(Error::Lanes(options.lanes));
    }
    let mut constants = PipelineConstants::default();
    for (name, value) in &options.overrides {
        constants.insert(name.clone(), *value);
    }
    let entry = Some((ShaderStage::Compute, name));
    let unchecked = module.unchecked.as_ref();
    let (resolved, info) = match (unchecked, constants.keys().next()) {
        // This module has no overrides, and resolving would validate it again.
        (Some(_), None) => (Cow::Borrowed(&module.module), Cow::Borrowed(&module.info)),
        _ => guarded(|| {
            process_overrides(&module.module, &module.info, entry, &constants)
                .map_err(|error| Error::Override(Box::new(error)))
        })?,
    };
    let is_entry = |entry: &naga::EntryPoint| entry.stage == ShaderStage::Compute && entry.name == name;
    let Some(index) = resolved.entry_points.iter().position(is_entry) else {
        return Err(Error::Internal(format!("the entry point {name} was removed")));
    };
    let bindings = bindings(&resolved, &info, unchecked, index);
    let input = emit::Input {
        module: &resolved,
        info: &info,
        unchecked,
        index,
        lines: &module.lines,
        lanes: options.lanes,
        bindings,
    };
    guarded(|| emit::entry_point(&input)).map_err(|error| match error {
        // Without the validator, the translation finds such errors.
        Error::Internal(text) | Error::FrontEnd(text) if unchecked.is_some() => Error::Pointers(text),
        error => error,
    })
}
