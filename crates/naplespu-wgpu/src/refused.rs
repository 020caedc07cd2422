//! Objects of parts of the API that are no compute. Their creation is reported as an error, and
//! their methods do nothing.

use crate::layout::{BindGroupLayout, GroupLayout};
use crate::shared::Shared;
use std::ops::Range;
use std::sync::Arc;
use wgpu::custom::{
    BlasCompactCallback, BlasInterface, DispatchBindGroup, DispatchBindGroupLayout, DispatchBuffer, DispatchQuerySet,
    DispatchRenderBundle, DispatchRenderPipeline, DispatchTextureView, ExternalTextureInterface,
    PipelineCacheInterface, RenderBundleEncoderInterface, RenderBundleInterface, RenderPassInterface,
    RenderPipelineInterface, SamplerInterface, TextureInterface, TextureViewInterface, TlasInterface,
};
use wgpu::{
    BlasAsyncError, BufferAddress, BufferSize, Color, DynamicOffset, IndexFormat, RenderBundleDescriptor,
    TextureViewDescriptor,
};

/// A texture.
#[derive(Debug)]
pub(crate) struct Texture;

impl TextureInterface for Texture {
    fn create_view(&self, _: &TextureViewDescriptor<'_>) -> DispatchTextureView {
        DispatchTextureView::custom(TextureView)
    }

    fn destroy(&self) {}
}

#[derive(Debug)]
struct TextureView;

impl TextureViewInterface for TextureView {}

/// A texture of a video.
#[derive(Debug)]
pub(crate) struct ExternalTexture;

impl ExternalTextureInterface for ExternalTexture {
    fn destroy(&self) {}
}

/// A sampler.
#[derive(Debug)]
pub(crate) struct Sampler;

impl SamplerInterface for Sampler {}

/// An acceleration structure of geometry.
#[derive(Debug)]
pub(crate) struct Blas;

impl BlasInterface for Blas {
    fn prepare_compact_async(&self, callback: BlasCompactCallback) {
        callback(Err(BlasAsyncError));
    }

    fn ready_for_compaction(&self) -> bool {
        false
    }
}

/// An acceleration structure of instances.
#[derive(Debug)]
pub(crate) struct Tlas;

impl TlasInterface for Tlas {}

/// A render pipeline.
#[derive(Debug)]
pub(crate) struct RenderPipeline {
    shared: Arc<Shared>,
}

impl RenderPipeline {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        let shared = Arc::clone(shared);
        Self { shared }
    }
}

impl RenderPipelineInterface for RenderPipeline {
    fn get_bind_group_layout(&self, _: u32) -> DispatchBindGroupLayout {
        DispatchBindGroupLayout::custom(BindGroupLayout(GroupLayout::invalid(&self.shared)))
    }
}

/// A cache of compiled pipelines.
#[derive(Debug)]
pub(crate) struct PipelineCache;

impl PipelineCacheInterface for PipelineCache {
    fn get_data(&self) -> Option<Vec<u8>> {
        None
    }
}

/// A render pass. The encoder has recorded its error.
#[derive(Debug)]
pub(crate) struct RenderPass;

// The trait requires an implementation of `Drop`.
impl Drop for RenderPass {
    fn drop(&mut self) {}
}

impl RenderPassInterface for RenderPass {
    fn set_pipeline(&mut self, _: &DispatchRenderPipeline) {}
    fn set_bind_group(&mut self, _: u32, _: Option<&DispatchBindGroup>, _: &[DynamicOffset]) {}
    fn set_index_buffer(&mut self, _: &DispatchBuffer, _: IndexFormat, _: BufferAddress, _: Option<BufferSize>) {}
    fn set_vertex_buffer(&mut self, _: u32, _: Option<&DispatchBuffer>, _: BufferAddress, _: Option<BufferSize>) {}
    fn set_immediates(&mut self, _: u32, _: &[u8]) {}
    fn set_blend_constant(&mut self, _: Color) {}
    fn set_scissor_rect(&mut self, _: u32, _: u32, _: u32, _: u32) {}
    fn set_viewport(&mut self, _: f32, _: f32, _: f32, _: f32, _: f32, _: f32) {}
    fn set_stencil_reference(&mut self, _: u32) {}
    fn draw(&mut self, _: Range<u32>, _: Range<u32>) {}
    fn draw_indexed(&mut self, _: Range<u32>, _: i32, _: Range<u32>) {}
    fn draw_mesh_tasks(&mut self, _: u32, _: u32, _: u32) {}
    fn draw_indirect(&mut self, _: &DispatchBuffer, _: BufferAddress) {}
    fn draw_indexed_indirect(&mut self, _: &DispatchBuffer, _: BufferAddress) {}
    fn draw_mesh_tasks_indirect(&mut self, _: &DispatchBuffer, _: BufferAddress) {}
    fn multi_draw_indirect(&mut self, _: &DispatchBuffer, _: BufferAddress, _: u32) {}
    fn multi_draw_indexed_indirect(&mut self, _: &DispatchBuffer, _: BufferAddress, _: u32) {}
    fn multi_draw_indirect_count(
        &mut self,
        _: &DispatchBuffer,
        _: BufferAddress,
        _: &DispatchBuffer,
        _: BufferAddress,
        _: u32,
    ) {
    }
    fn multi_draw_mesh_tasks_indirect(&mut self, _: &DispatchBuffer, _: BufferAddress, _: u32) {}
    fn multi_draw_indexed_indirect_count(
        &mut self,
        _: &DispatchBuffer,
        _: BufferAddress,
        _: &DispatchBuffer,
        _: BufferAddress,
        _: u32,
    ) {
    }
    fn multi_draw_mesh_tasks_indirect_count(
        &mut self,
        _: &DispatchBuffer,
        _: BufferAddress,
        _: &DispatchBuffer,
        _: BufferAddress,
        _: u32,
    ) {
    }
    fn insert_debug_marker(&mut self, _: &str) {}
    fn push_debug_group(&mut self, _: &str) {}
    fn pop_debug_group(&mut self) {}
    fn write_timestamp(&mut self, _: &DispatchQuerySet, _: u32) {}
    fn begin_occlusion_query(&mut self, _: u32) {}
    fn end_occlusion_query(&mut self) {}
    fn begin_pipeline_statistics_query(&mut self, _: &DispatchQuerySet, _: u32) {}
    fn end_pipeline_statistics_query(&mut self) {}
    fn execute_bundles(&mut self, _: &mut dyn Iterator<Item = &DispatchRenderBundle>) {}
}

/// An encoder of a render bundle. The device has reported its error.
#[derive(Debug)]
pub(crate) struct RenderBundleEncoder;

impl RenderBundleEncoderInterface for RenderBundleEncoder {
    fn set_pipeline(&mut self, _: &DispatchRenderPipeline) {}
    fn set_bind_group(&mut self, _: u32, _: Option<&DispatchBindGroup>, _: &[DynamicOffset]) {}
    fn set_index_buffer(&mut self, _: &DispatchBuffer, _: IndexFormat, _: BufferAddress, _: Option<BufferSize>) {}
    fn set_vertex_buffer(&mut self, _: u32, _: Option<&DispatchBuffer>, _: BufferAddress, _: Option<BufferSize>) {}
    fn set_immediates(&mut self, _: u32, _: &[u8]) {}
    fn draw(&mut self, _: Range<u32>, _: Range<u32>) {}
    fn draw_indexed(&mut self, _: Range<u32>, _: i32, _: Range<u32>) {}
    fn draw_indirect(&mut self, _: &DispatchBuffer, _: BufferAddress) {}
    fn draw_indexed_indirect(&mut self, _: &DispatchBuffer, _: BufferAddress) {}

    fn finish(self, _: &RenderBundleDescriptor<'_>) -> DispatchRenderBundle {
        DispatchRenderBundle::custom(RenderBundle)
    }

    fn finish_boxed(self: Box<Self>, desc: &RenderBundleDescriptor<'_>) -> DispatchRenderBundle {
        (*self).finish(desc)
    }
}

#[derive(Debug)]
struct RenderBundle;

impl RenderBundleInterface for RenderBundle {}
