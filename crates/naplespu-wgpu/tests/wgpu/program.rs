//! A device with short forms of the calls that most tests make.

use crate::host::{open, read, wait};
use wgpu::util::DeviceExt;
use wgpu::{BufferUsages, Features};

/// The usages of most buffers.
pub const STORAGE: BufferUsages = BufferUsages::STORAGE
    .union(BufferUsages::COPY_SRC)
    .union(BufferUsages::COPY_DST);

/// A device and its queue.
pub struct Gpu {
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
}

/// Opens the NPU.
pub fn npu() -> Result<Gpu, String> {
    npu_with(Features::empty())
}

/// Opens the NPU with features. The machine's own float unit is faster to simulate.
pub fn npu_with(features: Features) -> Result<Gpu, String> {
    let config = naplespu_wgpu::Config {
        strict_float: false,
        ..naplespu_wgpu::Config::default()
    };
    let (device, queue) = open(&naplespu_wgpu::instance_with(config), features)?;
    Ok(Gpu { device, queue })
}

/// Returns the bytes of words.
pub fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Returns an error with a text unless both are equal.
pub fn expect<T: PartialEq + std::fmt::Debug>(found: T, expected: T) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    Err(format!("expected {expected:?}, found {found:?}"))
}

impl Gpu {
    /// Creates a buffer with contents.
    pub fn filled(&self, words: &[u32], usage: BufferUsages) -> wgpu::Buffer {
        self.device.create_buffer_init(&wgpu::util::BufferInitDescriptor {
            label: None,
            contents: &bytes(words),
            usage,
        })
    }

    /// Creates a buffer of zeros.
    pub fn empty(&self, size: u64, usage: BufferUsages) -> wgpu::Buffer {
        self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size,
            usage,
            mapped_at_creation: false,
        })
    }

    /// Creates a shader module.
    pub fn shader(&self, text: &str) -> wgpu::ShaderModule {
        self.device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: None,
            source: wgpu::ShaderSource::Wgsl(text.into()),
        })
    }

    /// Creates a pipeline whose layout is that of the shader.
    pub fn pipeline(&self, text: &str) -> wgpu::ComputePipeline {
        self.pipeline_with(&self.shader(text), None, &[])
    }

    /// Creates a pipeline with a layout and overrides.
    pub fn pipeline_with(
        &self,
        module: &wgpu::ShaderModule,
        layout: Option<&wgpu::PipelineLayout>,
        constants: &[(&str, f64)],
    ) -> wgpu::ComputePipeline {
        self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout,
            module,
            entry_point: None,
            compilation_options: wgpu::PipelineCompilationOptions {
                constants,
                ..wgpu::PipelineCompilationOptions::default()
            },
            cache: None,
        })
    }

    /// Creates group 0 of a pipeline from whole buffers, by number.
    pub fn group(&self, pipeline: &wgpu::ComputePipeline, buffers: &[&wgpu::Buffer]) -> wgpu::BindGroup {
        self.group_of(&pipeline.get_bind_group_layout(0), buffers)
    }

    /// Creates a bind group of a layout from whole buffers, by number.
    pub fn group_of(&self, layout: &wgpu::BindGroupLayout, buffers: &[&wgpu::Buffer]) -> wgpu::BindGroup {
        let entries: Vec<_> = buffers
            .iter()
            .enumerate()
            .map(|(binding, buffer)| wgpu::BindGroupEntry {
                binding: binding as u32,
                resource: buffer.as_entire_binding(),
            })
            .collect();
        self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout,
            entries: &entries,
        })
    }

    /// Creates an encoder.
    pub fn encoder(&self) -> wgpu::CommandEncoder {
        self.device
            .create_command_encoder(&wgpu::CommandEncoderDescriptor::default())
    }

    /// Records one compute pass and submits it.
    pub fn pass(&self, record: impl FnOnce(&mut wgpu::ComputePass<'_>)) {
        let mut encoder = self.encoder();
        record(&mut encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default()));
        self.queue.submit([encoder.finish()]);
    }

    /// Runs a pipeline with buffers of group 0.
    pub fn run(&self, pipeline: &wgpu::ComputePipeline, buffers: &[&wgpu::Buffer], groups: [u32; 3]) {
        let group = self.group(pipeline, buffers);
        self.pass(|pass| {
            pass.set_pipeline(pipeline);
            pass.set_bind_group(0, &group, &[]);
            pass.dispatch_workgroups(groups[0], groups[1], groups[2]);
        });
    }

    /// Returns the words of a buffer.
    pub fn read(&self, buffer: &wgpu::Buffer) -> Result<Vec<u32>, String> {
        read(&self.device, &self.queue, buffer)
    }

    /// Returns the error of some calls in a scope.
    pub fn caught(&self, filter: wgpu::ErrorFilter, work: impl FnOnce()) -> Option<wgpu::Error> {
        let scope = self.device.push_error_scope(filter);
        work();
        wait(scope.pop())
    }

    /// Returns the text of the validation error of some calls; empty without an error.
    pub fn refusal(&self, work: impl FnOnce()) -> String {
        let caught = self.caught(wgpu::ErrorFilter::Validation, work);
        caught.map(|error| error.to_string()).unwrap_or_default()
    }
}
