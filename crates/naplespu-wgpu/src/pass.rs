//! Compute passes.

use crate::buffer::BufferInner;
use crate::command::{Command, Groups, Recording, stamp};
use crate::error::{Error, Result};
use crate::group::{BoundBuffer, Group};
use crate::layout::GroupLayout;
use crate::pipeline::{Compiled, PipelineInner};
use crate::query::Queries;
use crate::shared::Shared;
use crate::sink::lock;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use wgpu::custom::{
    ComputePassInterface, DispatchBindGroup, DispatchBuffer, DispatchComputePipeline, DispatchQuerySet,
    DispatchTextureView,
};
use wgpu::{BufferAddress, BufferTransition, BufferUsages, DynamicOffset, Features, TextureTransition};

/// The bytes of the numbers of work-groups of an indirect dispatch.
const INDIRECT_BYTES: u64 = 12;

/// The timestamps at the start and the end of a pass.
#[derive(Debug)]
pub(crate) struct Stamps {
    pub(crate) queries: Arc<Queries>,
    pub(crate) first: Option<u32>,
    pub(crate) last: Option<u32>,
}

impl Stamps {
    fn command(&self, index: Option<u32>) -> Option<Command> {
        let queries = Arc::clone(&self.queries);
        index.map(|index| Command::Stamp { queries, index })
    }

    /// Returns the command at the start of the pass.
    pub(crate) fn begin(&self) -> Option<Command> {
        self.command(self.first)
    }
}

/// A bind group in a slot, with the buffers at their dynamic offsets.
#[derive(Debug)]
struct Slot {
    group: Arc<Group>,
    buffers: Vec<BoundBuffer>,
}

/// A compute pass.
#[derive(Debug)]
pub(crate) struct ComputePass {
    shared: Arc<Shared>,
    recording: Arc<Mutex<Recording>>,
    stamps: Option<Stamps>,
    pipeline: Option<Arc<PipelineInner>>,
    slots: BTreeMap<u32, Slot>,
    debug_groups: u32,
}

impl ComputePass {
    pub(crate) fn new(shared: &Arc<Shared>, recording: &Arc<Mutex<Recording>>, stamps: Option<Stamps>) -> Self {
        Self {
            shared: Arc::clone(shared),
            recording: Arc::clone(recording),
            stamps,
            pipeline: None,
            slots: BTreeMap::new(),
            debug_groups: 0,
        }
    }

    /// Records the commands of a call, or its error.
    fn record(&self, call: &'static str, commands: Result<Vec<Command>>) {
        lock(&self.recording).add(call, commands);
    }

    fn set_group(&mut self, index: u32, group: Option<&DispatchBindGroup>, offsets: &[u32]) -> Result<()> {
        let limit = self.shared.limits.max_bind_groups.saturating_sub(1);
        Error::check_limit("the index of a bind group", index, limit)?;
        let Some(group) = group else {
            self.slots.remove(&index);
            return Ok(());
        };
        let group = Group::of(&self.shared, group)?;
        let buffers = group.with_offsets(offsets)?;
        self.slots.insert(index, Slot { group, buffers });
        Ok(())
    }

    fn dispatch(&self, groups: Groups) -> Result<Vec<Command>> {
        let Some(pipeline) = &self.pipeline else {
            return Err(Error::NoPipeline);
        };
        let compiled = pipeline.compiled()?;
        let mut bound = Vec::new();
        for (index, layout) in compiled.groups.iter().enumerate() {
            if let Some(layout) = layout.as_ref().filter(|layout| !layout.entries.is_empty()) {
                let index = index as u32;
                let slot = self.slot(index, layout)?;
                bound.extend(slot.buffers.iter().map(|one| (index, one.clone())));
            }
        }
        check_sizes(compiled, &bound)?;
        let mut uses: Vec<Use> = bound.iter().map(|(_, one)| Use::of(one)).collect();
        if let Groups::Indirect { buffer, offset } = &groups {
            uses.push(Use {
                buffer: Arc::clone(buffer),
                start: *offset,
                size: INDIRECT_BYTES,
                is_written: false,
            });
        }
        check_uses(&uses)?;
        Ok(vec![Command::Dispatch {
            pipeline: Arc::clone(pipeline),
            bound,
            groups,
        }])
    }

    /// Returns the bind group of a layout.
    fn slot(&self, index: u32, layout: &GroupLayout) -> Result<&Slot> {
        let Some(slot) = self.slots.get(&index) else {
            return Err(Error::NoBindGroup(index));
        };
        if slot.group.layout.is_compatible(layout) {
            return Ok(slot);
        }
        Err(Error::OtherLayout {
            group: slot.group.name(),
            index,
            exclusive: slot.group.layout.owner != layout.owner,
        })
    }

    fn direct(&self, groups: [u32; 3]) -> Result<Vec<Command>> {
        let limit = self.shared.limits.max_compute_workgroups_per_dimension;
        for count in groups {
            Error::check_limit("the number of work-groups in a dimension", count, limit)?;
        }
        self.dispatch(Groups::Direct(groups))
    }

    fn indirect(&self, buffer: &DispatchBuffer, offset: u64) -> Result<Vec<Command>> {
        let buffer = BufferInner::of(&self.shared, buffer)?;
        buffer.check_usage(BufferUsages::INDIRECT)?;
        Error::check_aligned("the offset of an indirect dispatch", offset, 4)?;
        buffer.check_range(offset, INDIRECT_BYTES)?;
        self.dispatch(Groups::Indirect { buffer, offset })
    }

    fn end(&mut self) -> Result<Vec<Command>> {
        if self.debug_groups != 0 {
            return Err(Error::DebugGroups);
        }
        let stamps = self.stamps.take();
        let command = stamps.and_then(|stamps| stamps.command(stamps.last));
        Ok(command.into_iter().collect())
    }
}

/// Returns an error if bound bytes are fewer than the shader needs.
fn check_sizes(compiled: &Compiled, bound: &[(u32, BoundBuffer)]) -> Result<()> {
    for needed in &compiled.runner.kernel().bindings {
        let is_it = |(group, one): &&(u32, BoundBuffer)| (*group, one.binding) == (needed.group, needed.binding);
        if let Some((_, found)) = bound.iter().find(is_it)
            && found.size < u64::from(needed.min_size)
        {
            return Err(Error::TooSmall {
                binding: needed.binding,
                size: found.size,
                least: needed.min_size.into(),
            });
        }
    }
    Ok(())
}

/// The use of a buffer by a dispatch.
struct Use {
    buffer: Arc<BufferInner>,
    start: u64,
    size: u64,
    is_written: bool,
}

impl Use {
    fn of(bound: &BoundBuffer) -> Self {
        Self {
            buffer: Arc::clone(&bound.buffer),
            start: bound.offset,
            size: bound.size,
            is_written: bound.entry.is_written(),
        }
    }

    /// Returns whether one of two uses of a buffer writes it, and they are not writes of separate
    /// bytes.
    fn conflicts(&self, other: &Self) -> bool {
        let is_apart = self.start + self.size <= other.start || other.start + other.size <= self.start;
        Arc::ptr_eq(&self.buffer, &other.buffer)
            && (self.is_written || other.is_written)
            && !(self.is_written && other.is_written && is_apart)
    }
}

/// Returns an error if a buffer is written, and has another use.
fn check_uses(uses: &[Use]) -> Result<()> {
    for (index, one) in uses.iter().enumerate() {
        if uses[index + 1..].iter().any(|other| one.conflicts(other)) {
            return Err(Error::Conflict(one.buffer.name()));
        }
    }
    Ok(())
}

impl ComputePassInterface for ComputePass {
    fn set_pipeline(&mut self, pipeline: &DispatchComputePipeline) {
        let pipeline = PipelineInner::of(&self.shared, pipeline);
        let checked = pipeline.and_then(|pipeline| pipeline.compiled().map(|_| Arc::clone(&pipeline)));
        match checked {
            Ok(pipeline) => self.pipeline = Some(pipeline),
            Err(error) => self.record("ComputePass::set_pipeline", Err(error)),
        }
    }

    fn set_bind_group(&mut self, index: u32, bind_group: Option<&DispatchBindGroup>, offsets: &[DynamicOffset]) {
        if let Err(error) = self.set_group(index, bind_group, offsets) {
            self.record("ComputePass::set_bind_group", Err(error));
        }
    }

    fn set_immediates(&mut self, _: u32, _: &[u8]) {
        let refused = Error::Unsupported("immediate data (push constants)");
        self.record("ComputePass::set_immediates", Err(refused));
    }

    fn insert_debug_marker(&mut self, _: &str) {}

    fn push_debug_group(&mut self, _: &str) {
        self.debug_groups += 1;
    }

    fn pop_debug_group(&mut self) {
        match self.debug_groups.checked_sub(1) {
            Some(groups) => self.debug_groups = groups,
            None => self.record("ComputePass::pop_debug_group", Err(Error::DebugGroups)),
        }
    }

    fn write_timestamp(&mut self, query_set: &DispatchQuerySet, query_index: u32) {
        let feature = Features::TIMESTAMP_QUERY_INSIDE_PASSES;
        let commands = match self.shared.features.contains(feature) {
            true => stamp(&self.shared, query_set, query_index),
            false => Err(Error::MissingFeature("TIMESTAMP_QUERY_INSIDE_PASSES")),
        };
        self.record("ComputePass::write_timestamp", commands);
    }

    fn begin_pipeline_statistics_query(&mut self, _: &DispatchQuerySet, _: u32) {
        let refused = Error::Unsupported("a query of pipeline statistics");
        self.record("ComputePass::begin_pipeline_statistics_query", Err(refused));
    }

    fn end_pipeline_statistics_query(&mut self) {
        let refused = Error::Unsupported("a query of pipeline statistics");
        self.record("ComputePass::end_pipeline_statistics_query", Err(refused));
    }

    fn dispatch_workgroups(&mut self, x: u32, y: u32, z: u32) {
        self.record("ComputePass::dispatch_workgroups", self.direct([x, y, z]));
    }

    fn dispatch_workgroups_indirect(&mut self, indirect_buffer: &DispatchBuffer, indirect_offset: BufferAddress) {
        let commands = self.indirect(indirect_buffer, indirect_offset);
        self.record("ComputePass::dispatch_workgroups_indirect", commands);
    }

    /// Does nothing: the machine has one memory.
    fn transition_resources<'a>(
        &mut self,
        _: &mut dyn Iterator<Item = BufferTransition<&'a DispatchBuffer>>,
        _: &mut dyn Iterator<Item = TextureTransition<&'a DispatchTextureView>>,
    ) {
    }
}

impl Drop for ComputePass {
    fn drop(&mut self) {
        let commands = self.end();
        let mut recording = lock(&self.recording);
        recording.is_pass_open = false;
        if !recording.is_finished {
            recording.add("ComputePass", commands);
        }
    }
}
