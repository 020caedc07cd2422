//! Compute pipelines.

use crate::error::{Error, Result, label, named};
use crate::layout::{BindGroupLayout, Entry, GroupLayout, Groups, PipelineLayout};
use crate::shader::ShaderModule;
use crate::shared::{Freed, Shared};
use naplespu_shader::{Binding, BindingKind, Kernel, Module, Options, Runner};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use wgpu::custom::{ComputePipelineInterface, DispatchBindGroupLayout, DispatchComputePipeline};
use wgpu::{BufferBindingType, ComputePipelineDescriptor, Limits, ShaderStages};

/// The hardware threads of a dispatch.
pub(crate) const THREADS: u32 = 8;

static NEXT: AtomicU64 = AtomicU64::new(1);

/// A kernel on the device with its bind groups.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) runner: Runner,
    pub(crate) groups: Groups,
}

/// A compute pipeline, which commands share.
#[derive(Debug)]
pub(crate) struct PipelineInner {
    shared: Arc<Shared>,
    label: String,
    /// `None` if the creation failed.
    compiled: Option<Compiled>,
}

/// The handle of a pipeline.
#[derive(Debug)]
pub(crate) struct ComputePipeline(Arc<PipelineInner>);

impl Drop for PipelineInner {
    fn drop(&mut self) {
        if let Some(compiled) = self.compiled.take() {
            self.shared.free(Freed::Kernel(Box::new(compiled.runner)));
        }
    }
}

impl ComputePipeline {
    /// Creates a pipeline. If that fails, the pipeline is invalid, and the error is reported.
    pub(crate) fn create(shared: &Arc<Shared>, desc: &ComputePipelineDescriptor<'_>) -> Self {
        let compiled = compile(shared, desc);
        let compiled = compiled.map_err(|error| shared.report("Device::create_compute_pipeline", error));
        Self(Arc::new(PipelineInner {
            shared: Arc::clone(shared),
            label: label(desc.label),
            compiled: compiled.ok(),
        }))
    }
}

fn compile(shared: &Arc<Shared>, desc: &ComputePipelineDescriptor<'_>) -> Result<Compiled> {
    shared.check()?;
    let groups = match desc.layout {
        Some(layout) => Some(PipelineLayout::groups_of(shared, layout)?),
        None => None,
    };
    let (handle, module) = ShaderModule::of(shared, desc.module)?;
    let kernel = translate(handle, module, desc, &shared.limits)?;
    let groups = match groups {
        Some(groups) => {
            for binding in &kernel.bindings {
                check_binding(&groups, binding)?;
            }
            groups
        }
        None => derived(shared, &kernel.bindings)?,
    };
    let runner = Runner::new(&mut shared.machine().device, kernel)?;
    Ok(Compiled { runner, groups })
}

/// Translates the entry point, on as many lanes as its work-group needs.
fn translate(
    handle: &ShaderModule,
    module: &Module,
    desc: &ComputePipelineDescriptor<'_>,
    limits: &Limits,
) -> Result<Kernel> {
    let constants = desc.compilation_options.constants.iter();
    let options = Options {
        overrides: constants.map(|(name, value)| ((*name).to_owned(), *value)).collect(),
        ..Options::default()
    };
    let kernel = module.compile_for(THREADS, desc.entry_point, &options);
    let kernel = kernel.map_err(|error| handle.error(&error))?;
    let [x, y, z] = kernel.workgroup_size;
    Error::check_limit("the size of a work-group in x", x, limits.max_compute_workgroup_size_x)?;
    Error::check_limit("the size of a work-group in y", y, limits.max_compute_workgroup_size_y)?;
    Error::check_limit("the size of a work-group in z", z, limits.max_compute_workgroup_size_z)?;
    let items = u64::from(x) * u64::from(y) * u64::from(z);
    let limit = limits.max_compute_invocations_per_workgroup;
    Error::check_limit("the number of work-items of a work-group", items, limit)?;
    let limit = limits.max_compute_workgroup_storage_size;
    Error::check_limit("the workgroup memory in bytes", kernel.workgroup_bytes, limit)?;
    Ok(kernel)
}

fn kind(binding: &Binding) -> BufferBindingType {
    match binding.kind {
        BindingKind::Uniform => BufferBindingType::Uniform,
        BindingKind::ReadOnlyStorage => BufferBindingType::Storage { read_only: true },
        BindingKind::Storage => BufferBindingType::Storage { read_only: false },
    }
}

/// Returns an error unless the layout has a binding of the shader.
fn check_binding(groups: &Groups, binding: &Binding) -> Result<()> {
    let wrong = |problem| {
        Err(Error::ShaderBinding {
            group: binding.group,
            binding: binding.binding,
            problem,
        })
    };
    let layout = groups.get(binding.group as usize).and_then(Option::as_ref);
    let Some(entry) = layout.and_then(|layout| layout.entries.get(&binding.binding)) else {
        return wrong("is missing in the pipeline layout");
    };
    if !entry.visibility.contains(ShaderStages::COMPUTE) {
        return wrong("is not visible to compute shaders in the pipeline layout");
    }
    if entry.ty != kind(binding) {
        return wrong("has another type in the pipeline layout");
    }
    if entry.min_size != 0 && entry.min_size < u64::from(binding.min_size) {
        return wrong("is larger than the least size in the pipeline layout");
    }
    Ok(())
}

/// Returns the layout that fits the shader.
fn derived(shared: &Arc<Shared>, bindings: &[Binding]) -> Result<Groups> {
    let owner = NEXT.fetch_add(1, Ordering::Relaxed);
    let count = bindings.iter().map(|one| u64::from(one.group) + 1).max().unwrap_or(0);
    Error::check_limit("the number of bind groups", count, shared.limits.max_bind_groups)?;
    let mut groups = vec![BTreeMap::new(); count as usize];
    for one in bindings {
        let entry = Entry {
            visibility: ShaderStages::COMPUTE,
            ty: kind(one),
            is_dynamic: false,
            min_size: one.min_size.into(),
        };
        // Naga refuses two variables with the same binding in an entry point.
        groups[one.group as usize].insert(one.binding, entry);
    }
    let layouts = groups.into_iter();
    Ok(layouts
        .map(|entries| Some(GroupLayout::derived(shared, owner, entries)))
        .collect())
}

impl PipelineInner {
    /// Returns the pipeline of a handle.
    pub(crate) fn of(shared: &Arc<Shared>, pipeline: &DispatchComputePipeline) -> Result<Arc<Self>> {
        let pipeline = pipeline.as_custom::<ComputePipeline>();
        match pipeline.filter(|pipeline| Arc::ptr_eq(&pipeline.0.shared, shared)) {
            Some(pipeline) => Ok(Arc::clone(&pipeline.0)),
            None => Err(Error::OtherDevice("the compute pipeline".to_owned())),
        }
    }

    /// Returns the kernel, or an error if the pipeline is invalid.
    pub(crate) fn compiled(&self) -> Result<&Compiled> {
        let invalid = || Error::Invalid(named("compute pipeline", &self.label));
        self.compiled.as_ref().ok_or_else(invalid)
    }
}

impl ComputePipelineInterface for ComputePipeline {
    fn get_bind_group_layout(&self, index: u32) -> DispatchBindGroupLayout {
        let layout = self.0.compiled().and_then(|compiled| {
            let count = compiled.groups.len() as u64;
            let layout = compiled.groups.get(index as usize).and_then(Option::as_ref);
            layout.cloned().ok_or_else(|| Error::OutOfRange {
                of: named("compute pipeline", &self.0.label),
                range: index.into()..u64::from(index) + 1,
                size: count,
                unit: "bind groups",
            })
        });
        let layout = layout.unwrap_or_else(|error| {
            self.0.shared.report("ComputePipeline::get_bind_group_layout", error);
            GroupLayout::invalid(&self.0.shared)
        });
        DispatchBindGroupLayout::custom(BindGroupLayout(layout))
    }
}
