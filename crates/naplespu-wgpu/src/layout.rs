//! Layouts of bind groups and pipelines.

use crate::error::{Error, Result, label, named};
use crate::shared::Shared;
use std::collections::BTreeMap;
use std::sync::Arc;
use wgpu::custom::{BindGroupLayoutInterface, PipelineLayoutInterface};
use wgpu::{
    BindGroupLayoutDescriptor, BindGroupLayoutEntry, BindingType, BufferBindingType, Limits, PipelineLayoutDescriptor,
    ShaderStages,
};

/// A buffer in the layout of a bind group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) visibility: ShaderStages,
    pub(crate) ty: BufferBindingType,
    pub(crate) is_dynamic: bool,
    /// The least size in bytes; 0 if the dispatch decides.
    pub(crate) min_size: u64,
}

impl Entry {
    pub(crate) fn is_uniform(&self) -> bool {
        self.ty == BufferBindingType::Uniform
    }

    /// Returns whether shaders write the buffer.
    pub(crate) fn is_written(&self) -> bool {
        self.ty == BufferBindingType::Storage { read_only: false }
    }
}

/// The layout of a bind group.
#[derive(Debug)]
pub(crate) struct GroupLayout {
    shared: Arc<Shared>,
    label: String,
    pub(crate) entries: BTreeMap<u32, Entry>,
    /// The number of the pipeline that the layout was derived from, whose other groups alone it
    /// fits to.
    pub(crate) owner: Option<u64>,
    is_valid: bool,
}

/// The handle of a bind group's layout.
#[derive(Debug)]
pub(crate) struct BindGroupLayout(pub(crate) Arc<GroupLayout>);

impl BindGroupLayoutInterface for BindGroupLayout {}

impl GroupLayout {
    /// Returns the layout of a handle.
    pub(crate) fn of(shared: &Arc<Shared>, layout: &wgpu::BindGroupLayout) -> Result<Arc<Self>> {
        let layout = layout.as_custom::<BindGroupLayout>();
        let Some(BindGroupLayout(inner)) = layout.filter(|layout| Arc::ptr_eq(&layout.0.shared, shared)) else {
            return Err(Error::OtherDevice("the bind group layout".to_owned()));
        };
        if !inner.is_valid {
            return Err(Error::Invalid(inner.name()));
        }
        Ok(Arc::clone(inner))
    }

    pub(crate) fn name(&self) -> String {
        named("bind group layout", &self.label)
    }

    /// Returns whether a bind group of one layout fits to the other.
    pub(crate) fn is_compatible(&self, other: &Self) -> bool {
        self.entries == other.entries && self.owner == other.owner
    }

    /// Returns a layout that a pipeline derived from its shader.
    pub(crate) fn derived(shared: &Arc<Shared>, owner: u64, entries: BTreeMap<u32, Entry>) -> Arc<Self> {
        Arc::new(Self {
            shared: Arc::clone(shared),
            label: String::new(),
            entries,
            owner: Some(owner),
            is_valid: true,
        })
    }

    /// Returns a layout that no bind group can have.
    pub(crate) fn invalid(shared: &Arc<Shared>) -> Arc<Self> {
        Arc::new(Self {
            shared: Arc::clone(shared),
            label: String::new(),
            entries: BTreeMap::new(),
            owner: None,
            is_valid: false,
        })
    }
}

impl BindGroupLayout {
    /// Creates a layout. If that fails, the layout is invalid, and the error is reported.
    pub(crate) fn create(shared: &Arc<Shared>, desc: &BindGroupLayoutDescriptor<'_>) -> Self {
        let entries = shared.check().and_then(|()| entries(&shared.limits, desc.entries));
        let (entries, is_valid) = match entries {
            Ok(entries) => (entries, true),
            Err(error) => {
                shared.report("Device::create_bind_group_layout", error);
                (BTreeMap::new(), false)
            }
        };
        Self(Arc::new(GroupLayout {
            shared: Arc::clone(shared),
            label: label(desc.label),
            entries,
            owner: None,
            is_valid,
        }))
    }
}

/// Checks the entries of a layout.
fn entries(limits: &Limits, list: &[BindGroupLayoutEntry]) -> Result<BTreeMap<u32, Entry>> {
    let mut entries = BTreeMap::new();
    for one in list {
        let limit = limits.max_bindings_per_bind_group;
        Error::check_limit("the number of a binding", one.binding, limit.saturating_sub(1))?;
        if entries.insert(one.binding, entry(one)?).is_some() {
            return Err(Error::Twice(one.binding));
        }
    }
    check_counts(limits, entries.values())?;
    Ok(entries)
}

fn entry(one: &BindGroupLayoutEntry) -> Result<Entry> {
    if !ShaderStages::all().contains(one.visibility) {
        return Err(Error::Visibility(one.visibility));
    }
    if one.count.is_some() {
        return Err(Error::Unsupported("an array of bindings"));
    }
    match one.ty {
        BindingType::Buffer {
            ty,
            has_dynamic_offset,
            min_binding_size,
        } => Ok(Entry {
            visibility: one.visibility,
            ty,
            is_dynamic: has_dynamic_offset,
            min_size: min_binding_size.map_or(0, u64::from),
        }),
        BindingType::Sampler(_) => Err(Error::NotCompute("a sampler")),
        BindingType::Texture { .. } => Err(Error::NotCompute("a texture")),
        BindingType::StorageTexture { .. } => Err(Error::NotCompute("a storage texture")),
        BindingType::AccelerationStructure { .. } => Err(Error::NotCompute("an acceleration structure")),
        BindingType::ExternalTexture => Err(Error::NotCompute("an external texture")),
    }
}

/// Checks the numbers of buffers in a bind group or pipeline.
fn check_counts<'e>(limits: &Limits, entries: impl Iterator<Item = &'e Entry> + Clone) -> Result<()> {
    let count = |is_counted: fn(&Entry) -> bool| {
        let counted = entries.clone().filter(|entry| is_counted(entry));
        counted.count() as u64
    };
    let is_visible = |entry: &Entry| entry.visibility.contains(ShaderStages::COMPUTE);
    Error::check_limit(
        "the number of uniform buffers of the stage",
        count(|entry| entry.is_uniform() && entry.visibility.contains(ShaderStages::COMPUTE)),
        limits.max_uniform_buffers_per_shader_stage,
    )?;
    let storage = entries.clone().filter(|entry| !entry.is_uniform() && is_visible(entry));
    Error::check_limit(
        "the number of storage buffers of the stage",
        storage.count() as u64,
        limits.max_storage_buffers_per_shader_stage,
    )?;
    Error::check_limit(
        "the number of uniform buffers with a dynamic offset",
        count(|entry| entry.is_uniform() && entry.is_dynamic),
        limits.max_dynamic_uniform_buffers_per_pipeline_layout,
    )?;
    Error::check_limit(
        "the number of storage buffers with a dynamic offset",
        count(|entry| !entry.is_uniform() && entry.is_dynamic),
        limits.max_dynamic_storage_buffers_per_pipeline_layout,
    )
}

/// The layouts of a pipeline's bind groups, by index.
pub(crate) type Groups = Vec<Option<Arc<GroupLayout>>>;

/// The layout of a pipeline.
#[derive(Debug)]
pub(crate) struct PipelineLayout {
    shared: Arc<Shared>,
    label: String,
    /// `None` if the creation failed.
    groups: Option<Groups>,
}

impl PipelineLayoutInterface for PipelineLayout {}

impl PipelineLayout {
    /// Creates a layout. If that fails, the layout is invalid, and the error is reported.
    pub(crate) fn create(shared: &Arc<Shared>, desc: &PipelineLayoutDescriptor<'_>) -> Self {
        let groups = match groups(shared, desc) {
            Ok(groups) => Some(groups),
            Err(error) => {
                shared.report("Device::create_pipeline_layout", error);
                None
            }
        };
        Self {
            shared: Arc::clone(shared),
            label: label(desc.label),
            groups,
        }
    }

    /// Returns the bind groups of a layout.
    pub(crate) fn groups_of(shared: &Arc<Shared>, layout: &wgpu::PipelineLayout) -> Result<Groups> {
        let layout = layout.as_custom::<Self>();
        let Some(layout) = layout.filter(|layout| Arc::ptr_eq(&layout.shared, shared)) else {
            return Err(Error::OtherDevice("the pipeline layout".to_owned()));
        };
        match &layout.groups {
            Some(groups) => Ok(groups.clone()),
            None => Err(Error::Invalid(named("pipeline layout", &layout.label))),
        }
    }
}

fn groups(shared: &Arc<Shared>, desc: &PipelineLayoutDescriptor<'_>) -> Result<Groups> {
    shared.check()?;
    if desc.immediate_size != 0 {
        return Err(Error::Unsupported("immediate data (push constants)"));
    }
    let limit = shared.limits.max_bind_groups;
    Error::check_limit("the number of bind groups", desc.bind_group_layouts.len() as u64, limit)?;
    let mut groups = Groups::new();
    for layout in desc.bind_group_layouts {
        groups.push(match layout {
            Some(layout) => Some(GroupLayout::of(shared, layout)?),
            None => None,
        });
    }
    if let Some(derived) = groups.iter().flatten().find(|layout| layout.owner.is_some()) {
        return Err(Error::DerivedLayout(derived.name()));
    }
    check_counts(
        &shared.limits,
        groups.iter().flatten().flat_map(|layout| layout.entries.values()),
    )?;
    Ok(groups)
}
