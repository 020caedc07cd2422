//! The program, which is the same for both devices but for their instances.

use crate::case::Case;
use crate::host::{open, read, wait};
use wgpu::BufferUsages;
use wgpu::util::DeviceExt;

/// A device and its queue.
pub struct Gpu {
    device: wgpu::Device,
    queue: wgpu::Queue,
}

impl Gpu {
    fn new(instance: &wgpu::Instance) -> Result<Self, String> {
        let (device, queue) = open(instance, wgpu::Features::empty())?;
        Ok(Self { device, queue })
    }

    /// Opens the NPU.
    pub fn npu() -> Result<Self, String> {
        Self::new(&naplespu_wgpu::instance())
    }

    /// Opens Vulkan, or returns why there is none.
    pub fn vulkan() -> Result<Self, String> {
        if !cfg!(feature = "vulkan") {
            return Err("built without the feature vulkan".to_owned());
        }
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
            backends: wgpu::Backends::VULKAN,
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        });
        Self::new(&instance).map_err(|_| "no Vulkan driver".to_owned())
    }

    /// Runs a shader and returns its buffers.
    pub fn run(&self, shader: &str, case: &Case) -> Result<Vec<Vec<u32>>, String> {
        let scopes = [
            self.device.push_error_scope(wgpu::ErrorFilter::Internal),
            self.device.push_error_scope(wgpu::ErrorFilter::Validation),
        ];
        let buffers = self.submit(shader, case);
        for scope in scopes.into_iter().rev() {
            if let Some(error) = wait(scope.pop()) {
                return Err(error.to_string());
            }
        }
        buffers
            .iter()
            .map(|buffer| read(&self.device, &self.queue, buffer))
            .collect()
    }

    fn submit(&self, shader: &str, case: &Case) -> Vec<wgpu::Buffer> {
        let module = self.device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: None,
            source: wgpu::ShaderSource::Wgsl(shader.into()),
        });
        let constants: Vec<(&str, f64)> = case.overrides.iter().map(|(name, value)| (&**name, *value)).collect();
        let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: None,
            compilation_options: wgpu::PipelineCompilationOptions {
                constants: &constants,
                ..wgpu::PipelineCompilationOptions::default()
            },
            cache: None,
        });
        let mut buffers = Vec::new();
        for buffer in &case.buffers {
            let contents: Vec<u8> = buffer.words.iter().flat_map(|word| word.to_le_bytes()).collect();
            buffers.push(self.device.create_buffer_init(&wgpu::util::BufferInitDescriptor {
                label: None,
                contents: &contents,
                usage: buffer.usage | BufferUsages::COPY_SRC,
            }));
        }
        let entries: Vec<wgpu::BindGroupEntry<'_>> = case
            .buffers
            .iter()
            .zip(&buffers)
            .map(|(described, buffer)| wgpu::BindGroupEntry {
                binding: described.binding,
                resource: buffer.as_entire_binding(),
            })
            .collect();
        let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &entries,
        });
        let mut encoder = self
            .device
            .create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups(case.groups[0], case.groups[1], case.groups[2]);
        drop(pass);
        self.queue.submit([encoder.finish()]);
        buffers
    }
}
