//! Bind groups.

use crate::buffer::BufferInner;
use crate::error::{Error, Result, label, named};
use crate::layout::{Entry, GroupLayout};
use crate::shared::Shared;
use std::collections::BTreeMap;
use std::sync::Arc;
use wgpu::custom::{BindGroupInterface, DispatchBindGroup};
use wgpu::{BindGroupDescriptor, BindingResource, BufferBinding, BufferUsages, Limits};

/// The bytes of a buffer in a bind group.
#[derive(Clone, Debug)]
pub(crate) struct BoundBuffer {
    pub(crate) binding: u32,
    pub(crate) entry: Entry,
    pub(crate) buffer: Arc<BufferInner>,
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

/// A bind group, which passes share.
#[derive(Debug)]
pub(crate) struct Group {
    shared: Arc<Shared>,
    label: String,
    pub(crate) layout: Arc<GroupLayout>,
    /// The buffers by number; `None` if the creation failed.
    buffers: Option<Vec<BoundBuffer>>,
}

/// The handle of a bind group.
#[derive(Debug)]
pub(crate) struct BindGroup(Arc<Group>);

impl BindGroupInterface for BindGroup {}

impl BindGroup {
    /// Creates a bind group. If that fails, the group is invalid, and the error is reported.
    pub(crate) fn create(shared: &Arc<Shared>, desc: &BindGroupDescriptor<'_>) -> Self {
        let created = shared.check().and_then(|()| {
            let layout = GroupLayout::of(shared, desc.layout)?;
            let buffers = buffers(shared, &layout, desc)?;
            Ok((layout, Some(buffers)))
        });
        let (layout, buffers) = created.unwrap_or_else(|error| {
            shared.report("Device::create_bind_group", error);
            (GroupLayout::invalid(shared), None)
        });
        Self(Arc::new(Group {
            shared: Arc::clone(shared),
            label: label(desc.label),
            layout,
            buffers,
        }))
    }
}

/// Checks the entries of a bind group and returns its buffers.
fn buffers(shared: &Arc<Shared>, layout: &GroupLayout, desc: &BindGroupDescriptor<'_>) -> Result<Vec<BoundBuffer>> {
    let mut buffers = BTreeMap::new();
    for one in desc.entries {
        let Some(entry) = layout.entries.get(&one.binding) else {
            return Err(Error::ExtraBinding(one.binding));
        };
        let binding = match &one.resource {
            BindingResource::Buffer(binding) => binding,
            BindingResource::BufferArray(_) => return Err(Error::Unsupported("an array of buffers")),
            BindingResource::Sampler(_) | BindingResource::SamplerArray(_) => {
                return Err(Error::NotCompute("a sampler"));
            }
            BindingResource::AccelerationStructure(_) | BindingResource::AccelerationStructureArray(_) => {
                return Err(Error::NotCompute("an acceleration structure"));
            }
            _ => return Err(Error::NotCompute("a texture")),
        };
        let bound = bound(shared, one.binding, entry, binding)?;
        if buffers.insert(one.binding, bound).is_some() {
            return Err(Error::Twice(one.binding));
        }
    }
    match layout.entries.keys().find(|binding| !buffers.contains_key(binding)) {
        Some(binding) => Err(Error::MissingBinding(*binding)),
        None => Ok(buffers.into_values().collect()),
    }
}

/// Checks one buffer of a bind group.
fn bound(shared: &Arc<Shared>, number: u32, entry: &Entry, binding: &BufferBinding<'_>) -> Result<BoundBuffer> {
    let buffer = BufferInner::of_user(shared, binding.buffer)?;
    let (usage, largest) = match entry.is_uniform() {
        true => (BufferUsages::UNIFORM, shared.limits.max_uniform_buffer_binding_size),
        false => (BufferUsages::STORAGE, shared.limits.max_storage_buffer_binding_size),
    };
    buffer.check_usage(usage)?;
    let offset = binding.offset;
    Error::check_aligned("the offset of a binding", offset, alignment(&shared.limits, entry))?;
    let size = match binding.size {
        Some(size) => size.get(),
        None => buffer.size.saturating_sub(offset),
    };
    buffer.check_range(offset, size)?;
    Error::check_limit("the size of a binding", size, largest)?;
    if !entry.is_uniform() {
        Error::check_aligned("the size of a storage buffer's binding", size, 4)?;
    }
    let least = entry.min_size.max(1);
    if size < least {
        return Err(Error::TooSmall {
            binding: number,
            size,
            least,
        });
    }
    Ok(BoundBuffer {
        binding: number,
        entry: entry.clone(),
        buffer,
        offset,
        size,
    })
}

/// Returns the alignment of offsets of a binding.
fn alignment(limits: &Limits, entry: &Entry) -> u64 {
    u64::from(match entry.is_uniform() {
        true => limits.min_uniform_buffer_offset_alignment,
        false => limits.min_storage_buffer_offset_alignment,
    })
}

impl Group {
    /// Returns the bind group of a handle.
    pub(crate) fn of(shared: &Arc<Shared>, group: &DispatchBindGroup) -> Result<Arc<Self>> {
        let group = group.as_custom::<BindGroup>();
        match group.filter(|group| Arc::ptr_eq(&group.0.shared, shared)) {
            Some(group) => Ok(Arc::clone(&group.0)),
            None => Err(Error::OtherDevice("the bind group".to_owned())),
        }
    }

    pub(crate) fn name(&self) -> String {
        named("bind group", &self.label)
    }

    /// Returns the buffers with dynamic offsets added.
    pub(crate) fn with_offsets(&self, offsets: &[u32]) -> Result<Vec<BoundBuffer>> {
        let Some(buffers) = &self.buffers else {
            return Err(Error::Invalid(self.name()));
        };
        let mut buffers = buffers.clone();
        let needed = buffers.iter().filter(|bound| bound.entry.is_dynamic).count();
        if needed != offsets.len() {
            return Err(Error::DynamicOffsets {
                group: self.name(),
                found: offsets.len(),
                needed,
            });
        }
        let dynamic = buffers.iter_mut().filter(|bound| bound.entry.is_dynamic);
        for (bound, &offset) in dynamic.zip(offsets) {
            let alignment = alignment(&self.shared.limits, &bound.entry);
            Error::check_aligned("a dynamic offset", offset.into(), alignment)?;
            bound.offset += u64::from(offset);
            bound.buffer.check_range(bound.offset, bound.size)?;
        }
        Ok(buffers)
    }
}
