//! The device.

use crate::buffer::Buffer;
use crate::encoder::CommandEncoder;
use crate::error::Error;
use crate::group::BindGroup;
use crate::info::info;
use crate::layout::{BindGroupLayout, PipelineLayout};
use crate::pipeline::ComputePipeline;
use crate::query::QuerySet;
use crate::refused::{
    Blas, ExternalTexture, PipelineCache, RenderBundleEncoder, RenderPipeline, Sampler, Texture, Tlas,
};
use crate::shader::ShaderModule;
use crate::shared::Shared;
use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;
use wgpu::custom::{
    BoxDeviceLostCallback, DeviceInterface, DispatchBindGroup, DispatchBindGroupLayout, DispatchBlas, DispatchBuffer,
    DispatchCommandEncoder, DispatchComputePipeline, DispatchExternalTexture, DispatchPipelineCache,
    DispatchPipelineLayout, DispatchQuerySet, DispatchRenderBundleEncoder, DispatchRenderPipeline, DispatchSampler,
    DispatchShaderModule, DispatchTexture, DispatchTlas, PopErrorScopeFuture,
};
use wgpu::{
    AdapterInfo, AllocatorReport, BindGroupDescriptor, BindGroupLayoutDescriptor, BlasGeometrySizeDescriptors,
    BufferDescriptor, BufferUsages, CommandEncoderDescriptor, ComputePipelineDescriptor, CreateBlasDescriptor,
    CreateTlasDescriptor, DeviceLostReason, ErrorFilter, ExternalTextureDescriptor, Features, InternalCounters, Limits,
    MapRangeError, MeshPipelineDescriptor, PipelineCacheDescriptor, PipelineLayoutDescriptor, PollError, PollStatus,
    QuerySetDescriptor, RenderBundleEncoderDescriptor, RenderPipelineDescriptor, SamplerDescriptor,
    ShaderModuleDescriptor, ShaderModuleDescriptorPassthrough, ShaderRuntimeChecks, TextureDescriptor, TextureView,
    UncapturedErrorHandler,
};

/// The handle of a device.
#[derive(Debug)]
pub(crate) struct Device {
    shared: Arc<Shared>,
}

impl Device {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Reports a call that is no compute.
    fn refuse(&self, call: &str, what: &'static str) {
        self.shared.report(call, Error::NotCompute(what));
    }
}

/// Returns an error for a range that is not mapped; see [`Shared`].
pub(crate) fn range_error(shared: &Arc<Shared>) -> Option<MapRangeError> {
    let device = wgpu::Device::from_custom(Device::new(Arc::clone(shared)));
    let buffer = device.create_buffer(&BufferDescriptor {
        label: None,
        size: 0,
        usage: BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    buffer.get_mapped_range(..).err()
}

impl DeviceInterface for Device {
    fn features(&self) -> Features {
        self.shared.features
    }

    fn limits(&self) -> Limits {
        self.shared.limits.clone()
    }

    fn adapter_info(&self) -> AdapterInfo {
        info()
    }

    /// The checks of bounds are always compiled.
    fn create_shader_module(&self, desc: ShaderModuleDescriptor<'_>, _: ShaderRuntimeChecks) -> DispatchShaderModule {
        DispatchShaderModule::custom(ShaderModule::create(&self.shared, &desc))
    }

    unsafe fn create_shader_module_passthrough(
        &self,
        _: &ShaderModuleDescriptorPassthrough<'_>,
    ) -> DispatchShaderModule {
        let refused = Error::Unsupported("a shader that bypasses wgpu");
        self.shared.report("Device::create_shader_module_passthrough", refused);
        DispatchShaderModule::custom(ShaderModule::invalid(&self.shared))
    }

    fn create_bind_group_layout(&self, desc: &BindGroupLayoutDescriptor<'_>) -> DispatchBindGroupLayout {
        DispatchBindGroupLayout::custom(BindGroupLayout::create(&self.shared, desc))
    }

    fn create_bind_group(&self, desc: &BindGroupDescriptor<'_>) -> DispatchBindGroup {
        DispatchBindGroup::custom(BindGroup::create(&self.shared, desc))
    }

    fn create_pipeline_layout(&self, desc: &PipelineLayoutDescriptor<'_>) -> DispatchPipelineLayout {
        DispatchPipelineLayout::custom(PipelineLayout::create(&self.shared, desc))
    }

    fn create_render_pipeline(&self, _: &RenderPipelineDescriptor<'_>) -> DispatchRenderPipeline {
        self.refuse("Device::create_render_pipeline", "a render pipeline");
        DispatchRenderPipeline::custom(RenderPipeline::new(&self.shared))
    }

    fn create_mesh_pipeline(&self, _: &MeshPipelineDescriptor<'_>) -> DispatchRenderPipeline {
        self.refuse("Device::create_mesh_pipeline", "a mesh pipeline");
        DispatchRenderPipeline::custom(RenderPipeline::new(&self.shared))
    }

    fn create_compute_pipeline(&self, desc: &ComputePipelineDescriptor<'_>) -> DispatchComputePipeline {
        DispatchComputePipeline::custom(ComputePipeline::create(&self.shared, desc))
    }

    unsafe fn create_pipeline_cache(&self, _: &PipelineCacheDescriptor<'_>) -> DispatchPipelineCache {
        let missing = Error::MissingFeature("PIPELINE_CACHE");
        self.shared.report("Device::create_pipeline_cache", missing);
        DispatchPipelineCache::custom(PipelineCache)
    }

    fn create_buffer(&self, desc: &BufferDescriptor<'_>) -> DispatchBuffer {
        DispatchBuffer::custom(Buffer::create(&self.shared, desc))
    }

    fn create_texture(&self, _: &TextureDescriptor<'_>) -> DispatchTexture {
        self.refuse("Device::create_texture", "a texture");
        DispatchTexture::custom(Texture)
    }

    fn create_external_texture(
        &self,
        _: &ExternalTextureDescriptor<'_>,
        _: &[&TextureView],
    ) -> DispatchExternalTexture {
        self.refuse("Device::create_external_texture", "an external texture");
        DispatchExternalTexture::custom(ExternalTexture)
    }

    fn create_blas(&self, _: &CreateBlasDescriptor<'_>, _: BlasGeometrySizeDescriptors) -> (Option<u64>, DispatchBlas) {
        self.refuse("Device::create_blas", "an acceleration structure");
        (None, DispatchBlas::custom(Blas))
    }

    fn create_tlas(&self, _: &CreateTlasDescriptor<'_>) -> DispatchTlas {
        self.refuse("Device::create_tlas", "an acceleration structure");
        DispatchTlas::custom(Tlas)
    }

    fn create_sampler(&self, _: &SamplerDescriptor<'_>) -> DispatchSampler {
        self.refuse("Device::create_sampler", "a sampler");
        DispatchSampler::custom(Sampler)
    }

    fn create_query_set(&self, desc: &QuerySetDescriptor<'_>) -> DispatchQuerySet {
        DispatchQuerySet::custom(QuerySet::create(&self.shared, desc))
    }

    fn create_command_encoder(&self, desc: &CommandEncoderDescriptor<'_>) -> DispatchCommandEncoder {
        DispatchCommandEncoder::custom(CommandEncoder::new(&self.shared, desc))
    }

    fn create_render_bundle_encoder(&self, _: &RenderBundleEncoderDescriptor<'_>) -> DispatchRenderBundleEncoder {
        self.refuse("Device::create_render_bundle_encoder", "a render bundle");
        DispatchRenderBundleEncoder::custom(RenderBundleEncoder)
    }

    fn set_device_lost_callback(&self, device_lost_callback: BoxDeviceLostCallback) {
        self.shared.on_loss(device_lost_callback);
    }

    fn on_uncaptured_error(&self, handler: Arc<dyn UncapturedErrorHandler>) {
        self.shared.sink.set_handler(handler);
    }

    fn push_error_scope(&self, filter: ErrorFilter) -> u32 {
        self.shared.sink.push(filter)
    }

    fn pop_error_scope(&self, index: u32) -> Pin<Box<dyn PopErrorScopeFuture>> {
        Box::pin(ready(self.shared.sink.pop(index)))
    }

    unsafe fn start_graphics_debugger_capture(&self) {}

    unsafe fn stop_graphics_debugger_capture(&self) {}

    fn poll(&self, poll_type: wgpu::wgt::PollType<u64>) -> Result<PollStatus, PollError> {
        if let wgpu::wgt::PollType::Wait {
            submission_index: Some(index),
            ..
        } = poll_type
        {
            let last = self.shared.last_submission();
            if index > last {
                return Err(PollError::WrongSubmissionIndex(index, last));
            }
        }
        self.shared.poll();
        Ok(PollStatus::QueueEmpty)
    }

    fn get_internal_counters(&self) -> InternalCounters {
        InternalCounters::default()
    }

    fn generate_allocator_report(&self) -> Option<AllocatorReport> {
        None
    }

    fn destroy(&self) {
        self.shared
            .lose(DeviceLostReason::Destroyed, "the device was destroyed".to_owned());
    }
}
