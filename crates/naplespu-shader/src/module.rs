//! Shader modules: parsing, validation, entry points and their bindings.

use crate::directives;
use crate::error::{Error, Result};
use crate::lines::Lines;
use crate::pointers::{Unchecked, is_used, separated};
use naga::front::{glsl, spv, wgsl};
use naga::proc::Layouter;
use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};
use naga::{AddressSpace, ShaderStage, StorageAccess};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A valid shader module.
pub struct Module {
    pub(crate) module: naga::Module,
    pub(crate) info: ModuleInfo,
    pub(crate) unchecked: Option<Unchecked>,
    pub(crate) lines: Lines,
}

impl std::fmt::Debug for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Module")
            .field("entry_points", &self.entry_points())
            .finish_non_exhaustive()
    }
}

/// A compute entry point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryPoint {
    /// The name.
    pub name: String,
    /// The size of a work-group before overrides.
    pub workgroup_size: [u32; 3],
    /// The buffers that the entry point uses, by group and number.
    pub bindings: Vec<Binding>,
}

/// The number of the group of immediate data (push constants), which an entry point reads from a buffer
/// at binding 0 of this group.
pub const IMMEDIATE_GROUP: u32 = u32::MAX;

/// A buffer that an entry point uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The number of the group, or [`IMMEDIATE_GROUP`].
    pub group: u32,
    /// The number in the group.
    pub binding: u32,
    /// The name of the variable, if it has one.
    pub name: Option<String>,
    /// The kind of the buffer.
    pub kind: BindingKind,
    /// The smallest size in bytes. An array that is sized at run time counts with one element.
    pub min_size: u32,
}

/// The kind of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindingKind {
    /// A uniform buffer, which the shader reads.
    Uniform,
    /// A storage buffer that the shader only reads.
    ReadOnlyStorage,
    /// A storage buffer that the shader reads and writes.
    Storage,
}

/// Runs a part of naga or of the translation. A panic there becomes an error.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result,
        Err(payload) => {
            let text = payload.downcast_ref::<String>().cloned();
            let text = text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Err(Error::FrontEnd(text.unwrap_or_default()))
        }
    }
}

impl Module {
    /// Parses and validates a WGSL text.
    ///
    /// # Errors
    ///
    /// [`Error::Wgsl`], [`Error::Invalid`].
    pub fn from_wgsl(text: &str) -> Result<Self> {
        let accepted = directives::accepted(text);
        let parsed = guarded(|| wgsl::parse_str(&accepted).map_err(Error::Wgsl))?;
        Self::validated(parsed, Lines::of(text))
    }

    /// Parses and validates a GLSL text of a compute shader.
    ///
    /// # Errors
    ///
    /// [`Error::Glsl`], [`Error::Invalid`].
    pub fn from_glsl(text: &str) -> Result<Self> {
        Self::from_glsl_with(text, &[])
    }

    /// Parses and validates a GLSL text of a compute shader, with these macros and their texts.
    ///
    /// # Errors
    ///
    /// See [`Module::from_glsl`].
    pub fn from_glsl_with(text: &str, macros: &[(&str, &str)]) -> Result<Self> {
        let mut options = glsl::Options::from(ShaderStage::Compute);
        let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        options.defines = macros.iter().map(owned).collect();
        let parsed = guarded(|| glsl::Frontend::default().parse(&options, text).map_err(Error::Glsl))?;
        Self::validated(parsed, Lines::of(text))
    }

    /// Parses and validates a SPIR-V module.
    ///
    /// # Errors
    ///
    /// [`Error::Spirv`], [`Error::Invalid`].
    pub fn from_spirv(bytes: &[u8]) -> Result<Self> {
        let options = spv::Options {
            adjust_coordinate_space: false,
            strict_capabilities: false,
            block_ctx_dump_prefix: None,
        };
        let parsed = guarded(|| spv::parse_u8_slice(bytes, &options).map_err(Error::Spirv))?;
        Self::validated(parsed, Lines::default())
    }

    fn validated(module: naga::Module, lines: Lines) -> Result<Self> {
        // Features without a translation are refused by the translation, which names them.
        let check = |module: &naga::Module| {
            let mut validator = Validator::new(ValidationFlags::all(), Capabilities::all());
            validator
                .validate(module)
                .map_err(|error| Error::Invalid(Box::new(error)))
        };
        let (info, unchecked) = match guarded(|| check(&module)) {
            Ok(info) => (info, None),
            Err(error) => {
                let Some((unchecked, stubs)) = guarded(|| Ok(separated(&module)))? else {
                    return Err(error);
                };
                (guarded(|| check(&stubs))?, Some(unchecked))
            }
        };
        Ok(Self {
            module,
            info,
            unchecked,
            lines,
        })
    }

    /// Returns the compute entry points.
    pub fn entry_points(&self) -> Vec<EntryPoint> {
        let compute = self.module.entry_points.iter().enumerate();
        compute
            .filter(|(_, entry)| entry.stage == ShaderStage::Compute)
            .map(|(index, entry)| EntryPoint {
                name: entry.name.clone(),
                workgroup_size: entry.workgroup_size,
                bindings: bindings(&self.module, &self.info, self.unchecked.as_ref(), index),
            })
            .collect()
    }
}

/// Returns the buffers of an entry point, sorted by group and number.
pub(crate) fn bindings(
    module: &naga::Module,
    info: &ModuleInfo,
    unchecked: Option<&Unchecked>,
    index: usize,
) -> Vec<Binding> {
    let mut layouter = Layouter::default();
    // A validated module has valid layouts.
    let has_layouts = layouter.update(module.to_ctx()).is_ok();
    let mut list = Vec::new();
    for (handle, variable) in module.global_variables.iter() {
        let Some((group, binding)) = place(variable) else {
            continue;
        };
        if !is_used(info, unchecked, index, handle) {
            continue;
        }
        let kind = match variable.space {
            AddressSpace::Uniform | AddressSpace::Immediate => BindingKind::Uniform,
            AddressSpace::Storage { access } if !access.contains(StorageAccess::STORE) => BindingKind::ReadOnlyStorage,
            AddressSpace::Storage { .. } => BindingKind::Storage,
            _ => continue,
        };
        list.push(Binding {
            group,
            binding,
            name: variable.name.clone(),
            kind,
            min_size: if has_layouts { layouter[variable.ty].size } else { 0 },
        });
    }
    list.sort_by_key(|one| (one.group, one.binding));
    list
}

/// Returns the group and the number in it at which a variable is bound.
pub(crate) fn place(variable: &naga::GlobalVariable) -> Option<(u32, u32)> {
    match variable.space {
        AddressSpace::Immediate => Some((IMMEDIATE_GROUP, 0)),
        _ => variable.binding.map(|at| (at.group, at.binding)),
    }
}
