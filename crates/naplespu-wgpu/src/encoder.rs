//! Command encoders. Errors of calls are reported when the encoder is finished, as in WebGPU.

use crate::buffer::BufferInner;
use crate::command::{Command, CommandBuffer, Recording, stamp};
use crate::error::{Error, Result, label};
use crate::pass::{ComputePass, Stamps};
use crate::query::Queries;
use crate::refused::RenderPass;
use crate::shared::Shared;
use crate::sink::lock;
use std::sync::{Arc, Mutex};
use wgpu::custom::{
    CommandEncoderInterface, DispatchBuffer, DispatchCommandBuffer, DispatchComputePass, DispatchQuerySet,
    DispatchRenderPass, DispatchTexture,
};
use wgpu::{
    Blas, BlasBuildEntry, BufferAddress, BufferTransition, BufferUsages, COPY_BUFFER_ALIGNMENT,
    CommandEncoderDescriptor, ComputePassDescriptor, ComputePassTimestampWrites, Extent3d, Features,
    ImageSubresourceRange, QUERY_RESOLVE_BUFFER_ALIGNMENT, QUERY_SIZE, RenderPassDescriptor, TexelCopyBufferInfo,
    TexelCopyTextureInfo, TextureTransition, Tlas,
};

/// A command encoder.
#[derive(Debug)]
pub(crate) struct CommandEncoder {
    shared: Arc<Shared>,
    label: String,
    recording: Arc<Mutex<Recording>>,
}

impl CommandEncoder {
    pub(crate) fn new(shared: &Arc<Shared>, desc: &CommandEncoderDescriptor<'_>) -> Self {
        Self {
            shared: Arc::clone(shared),
            label: label(desc.label),
            recording: Arc::default(),
        }
    }

    /// Records the command of a call outside of passes.
    fn record(&self, call: &'static str, command: impl FnOnce() -> Result<Vec<Command>>) {
        let mut recording = lock(&self.recording);
        let command = match recording.is_pass_open {
            true => Err(Error::PassOpen),
            false => command(),
        };
        recording.add(call, command);
    }

    fn refuse(&self, call: &'static str, what: &'static str) {
        self.record(call, || Err(Error::NotCompute(what)));
    }

    fn copy(
        &self,
        (source, source_offset): (&DispatchBuffer, u64),
        (target, target_offset): (&DispatchBuffer, u64),
        size: Option<u64>,
    ) -> Result<Vec<Command>> {
        let source = BufferInner::of(&self.shared, source)?;
        let target = BufferInner::of(&self.shared, target)?;
        source.check_usage(BufferUsages::COPY_SRC)?;
        target.check_usage(BufferUsages::COPY_DST)?;
        let size = size.unwrap_or_else(|| source.size.saturating_sub(source_offset));
        Error::check_aligned("the size of a copy", size, COPY_BUFFER_ALIGNMENT)?;
        Error::check_aligned("the source offset of a copy", source_offset, COPY_BUFFER_ALIGNMENT)?;
        Error::check_aligned("the destination offset of a copy", target_offset, COPY_BUFFER_ALIGNMENT)?;
        source.check_range(source_offset, size)?;
        target.check_range(target_offset, size)?;
        if Arc::ptr_eq(&source, &target) {
            return Err(Error::CopyToItself(source.name()));
        }
        Ok(vec![Command::Copy {
            from: (source, source_offset),
            to: (target, target_offset),
            size,
        }])
    }

    fn clear(&self, buffer: &DispatchBuffer, offset: u64, size: Option<u64>) -> Result<Vec<Command>> {
        let buffer = BufferInner::of(&self.shared, buffer)?;
        buffer.check_usage(BufferUsages::COPY_DST)?;
        let size = size.unwrap_or_else(|| buffer.size.saturating_sub(offset));
        Error::check_aligned("the offset of a clear", offset, COPY_BUFFER_ALIGNMENT)?;
        Error::check_aligned("the size of a clear", size, COPY_BUFFER_ALIGNMENT)?;
        buffer.check_range(offset, size)?;
        Ok(vec![Command::Clear { buffer, offset, size }])
    }

    fn resolve(
        &self,
        set: &DispatchQuerySet,
        (first, count): (u32, u32),
        (target, offset): (&DispatchBuffer, u64),
    ) -> Result<Vec<Command>> {
        let queries = Queries::of(&self.shared, set)?;
        let target = BufferInner::of(&self.shared, target)?;
        queries.check_range(first, count)?;
        target.check_usage(BufferUsages::QUERY_RESOLVE)?;
        let alignment = QUERY_RESOLVE_BUFFER_ALIGNMENT;
        Error::check_aligned("the destination offset of resolved queries", offset, alignment)?;
        target.check_range(offset, u64::from(count) * u64::from(QUERY_SIZE))?;
        Ok(vec![Command::Resolve {
            queries,
            first,
            count,
            to: (target, offset),
        }])
    }

    /// Returns the timestamps of a pass.
    fn stamps(&self, writes: &ComputePassTimestampWrites<'_>) -> Result<Stamps> {
        if !self.shared.features.contains(Features::TIMESTAMP_QUERY) {
            return Err(Error::MissingFeature("TIMESTAMP_QUERY"));
        }
        let queries = Queries::of_user(&self.shared, writes.query_set)?;
        let stamps = Stamps {
            queries,
            first: writes.beginning_of_pass_write_index,
            last: writes.end_of_pass_write_index,
        };
        for index in stamps.first.iter().chain(&stamps.last) {
            stamps.queries.check_range(*index, 1)?;
        }
        Ok(stamps)
    }
}

impl CommandEncoderInterface for CommandEncoder {
    fn copy_buffer_to_buffer(
        &self,
        source: &DispatchBuffer,
        source_offset: BufferAddress,
        destination: &DispatchBuffer,
        destination_offset: BufferAddress,
        copy_size: Option<BufferAddress>,
    ) {
        self.record("CommandEncoder::copy_buffer_to_buffer", || {
            self.copy((source, source_offset), (destination, destination_offset), copy_size)
        });
    }

    fn copy_buffer_to_texture(&self, _: TexelCopyBufferInfo<'_>, _: TexelCopyTextureInfo<'_>, _: Extent3d) {
        self.refuse("CommandEncoder::copy_buffer_to_texture", "a texture");
    }

    fn copy_texture_to_buffer(&self, _: TexelCopyTextureInfo<'_>, _: TexelCopyBufferInfo<'_>, _: Extent3d) {
        self.refuse("CommandEncoder::copy_texture_to_buffer", "a texture");
    }

    fn copy_texture_to_texture(&self, _: TexelCopyTextureInfo<'_>, _: TexelCopyTextureInfo<'_>, _: Extent3d) {
        self.refuse("CommandEncoder::copy_texture_to_texture", "a texture");
    }

    fn begin_compute_pass(&self, desc: &ComputePassDescriptor<'_>) -> DispatchComputePass {
        let stamps = desc.timestamp_writes.as_ref().map(|writes| self.stamps(writes));
        let (stamps, failed) = match stamps.transpose() {
            Ok(stamps) => (stamps, None),
            Err(error) => (None, Some(error)),
        };
        self.record("CommandEncoder::begin_compute_pass", || match failed {
            Some(error) => Err(error),
            None => Ok(stamps.iter().flat_map(Stamps::begin).collect()),
        });
        lock(&self.recording).is_pass_open = true;
        let pass = ComputePass::new(&self.shared, &self.recording, stamps);
        DispatchComputePass::custom(pass)
    }

    fn begin_render_pass(&self, _: &RenderPassDescriptor<'_>) -> DispatchRenderPass {
        self.refuse("CommandEncoder::begin_render_pass", "a render pass");
        DispatchRenderPass::custom(RenderPass)
    }

    fn finish(&mut self) -> DispatchCommandBuffer {
        let commands = lock(&self.recording).finish();
        let commands = commands.map_err(|(call, error)| self.shared.report(call, *error));
        let shared = Arc::clone(&self.shared);
        let label = std::mem::take(&mut self.label);
        DispatchCommandBuffer::custom(CommandBuffer::new(shared, label, commands.ok()))
    }

    fn clear_texture(&self, _: &DispatchTexture, _: &ImageSubresourceRange) {
        self.refuse("CommandEncoder::clear_texture", "a texture");
    }

    fn clear_buffer(&self, buffer: &DispatchBuffer, offset: BufferAddress, size: Option<BufferAddress>) {
        self.record("CommandEncoder::clear_buffer", || self.clear(buffer, offset, size));
    }

    fn insert_debug_marker(&self, _: &str) {
        self.record("CommandEncoder::insert_debug_marker", || Ok(Vec::new()));
    }

    fn push_debug_group(&self, _: &str) {
        self.record("CommandEncoder::push_debug_group", || Ok(Vec::new()));
        lock(&self.recording).debug_groups += 1;
    }

    fn pop_debug_group(&self) {
        let mut recording = lock(&self.recording);
        match recording.debug_groups.checked_sub(1) {
            Some(groups) => recording.debug_groups = groups,
            None => recording.add("CommandEncoder::pop_debug_group", Err(Error::DebugGroups)),
        }
    }

    fn write_timestamp(&self, query_set: &DispatchQuerySet, query_index: u32) {
        self.record("CommandEncoder::write_timestamp", || {
            if !self.shared.features.contains(Features::TIMESTAMP_QUERY_INSIDE_ENCODERS) {
                return Err(Error::MissingFeature("TIMESTAMP_QUERY_INSIDE_ENCODERS"));
            }
            stamp(&self.shared, query_set, query_index)
        });
    }

    fn resolve_query_set(
        &self,
        query_set: &DispatchQuerySet,
        first_query: u32,
        query_count: u32,
        destination: &DispatchBuffer,
        destination_offset: BufferAddress,
    ) {
        self.record("CommandEncoder::resolve_query_set", || {
            self.resolve(query_set, (first_query, query_count), (destination, destination_offset))
        });
    }

    fn mark_acceleration_structures_built<'a>(
        &self,
        _: &mut dyn Iterator<Item = &'a Blas>,
        _: &mut dyn Iterator<Item = &'a Tlas>,
    ) {
        self.refuse(
            "CommandEncoder::mark_acceleration_structures_built",
            "an acceleration structure",
        );
    }

    fn build_acceleration_structures<'a>(
        &self,
        _: &mut dyn Iterator<Item = &'a BlasBuildEntry<'a>>,
        _: &mut dyn Iterator<Item = &'a Tlas>,
    ) {
        self.refuse(
            "CommandEncoder::build_acceleration_structures",
            "an acceleration structure",
        );
    }

    /// Does nothing: the machine has one memory.
    fn transition_resources<'a>(
        &mut self,
        _: &mut dyn Iterator<Item = BufferTransition<&'a DispatchBuffer>>,
        _: &mut dyn Iterator<Item = TextureTransition<&'a DispatchTexture>>,
    ) {
    }
}
