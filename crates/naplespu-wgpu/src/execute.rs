//! The execution of commands on the machine.

use crate::buffer::BufferInner;
use crate::command::{Command, Groups};
use crate::error::Result;
use crate::group::BoundBuffer;
use crate::pipeline::{PipelineInner, THREADS};
use crate::shared::{Machine, Shared};
use naplespu_jit::device::Buffer as Memory;
use naplespu_shader::{Bound, Dispatch};
use wgpu::Features;

/// Returns an error if an object of the command is mapped or destroyed.
pub(crate) fn check(command: &Command) -> Result<()> {
    let check = |buffer: &BufferInner| buffer.memory().map(|_| ());
    match command {
        Command::Copy { from, to, .. } => {
            check(&from.0)?;
            check(&to.0)
        }
        Command::Clear { buffer, .. } => check(buffer),
        Command::Stamp { queries, .. } => queries.check(),
        Command::Resolve { queries, to, .. } => {
            queries.check()?;
            check(&to.0)
        }
        Command::Dispatch { bound, groups, .. } => {
            for (_, one) in bound {
                check(&one.buffer)?;
            }
            match groups {
                Groups::Direct(_) => Ok(()),
                Groups::Indirect { buffer, .. } => check(buffer),
            }
        }
    }
}

/// Executes a checked command. Offsets and sizes are in their buffers, which are below 4 GiB.
pub(crate) fn execute(shared: &Shared, machine: &mut Machine, command: &Command) -> Result<()> {
    match command {
        Command::Copy { from, to, size } => {
            let (source, target) = (from.0.memory()?, to.0.memory()?);
            let (source, target) = ((source, from.1 as u32), (target, to.1 as u32));
            Ok(machine.device.copy(source, target, *size as u32)?)
        }
        Command::Clear { buffer, offset, size } => {
            let memory = buffer.memory()?;
            Ok(machine.device.fill(memory, *offset as u32, *size as u32, 0)?)
        }
        Command::Stamp { queries, index } => {
            queries.write(*index, machine.cycles);
            Ok(())
        }
        Command::Resolve {
            queries,
            first,
            count,
            to,
        } => {
            let memory = to.0.memory()?;
            let bytes = queries.read(*first, *count);
            Ok(machine.device.copy_in(memory, to.1 as u32, &bytes)?)
        }
        Command::Dispatch {
            pipeline,
            bound,
            groups,
        } => {
            let groups = match groups {
                Groups::Direct(groups) => *groups,
                Groups::Indirect { buffer, offset } => indirect(machine, buffer.memory()?, *offset as u32)?,
            };
            let limit = shared.limits.max_compute_workgroups_per_dimension;
            // An indirect dispatch above the limit does nothing, as in WebGPU.
            if groups.iter().any(|count| *count == 0 || *count > limit) {
                return Ok(());
            }
            dispatch(shared, machine, pipeline, bound, groups)
        }
    }
}

/// Reads the numbers of work-groups.
fn indirect(machine: &Machine, memory: Memory, offset: u32) -> Result<[u32; 3]> {
    let words = machine.device.copy_words_out(memory, offset, 3)?;
    Ok(std::array::from_fn(|axis| words.get(axis).copied().unwrap_or(0)))
}

fn dispatch(
    shared: &Shared,
    machine: &mut Machine,
    pipeline: &PipelineInner,
    bound: &[(u32, BoundBuffer)],
    groups: [u32; 3],
) -> Result<()> {
    let mut buffers = Vec::with_capacity(bound.len());
    for (group, one) in bound {
        buffers.push(Bound {
            group: *group,
            binding: one.binding,
            buffer: one.buffer.memory()?,
            offset: one.offset as u32,
            size: one.size as u32,
        });
    }
    let is_timed = shared.features.contains(Features::TIMESTAMP_QUERY);
    let dispatch = Dispatch {
        timing: is_timed.then_some(shared.config.timing),
        instruction_limit: Some(shared.config.instruction_limit),
        ..Dispatch::new(groups, THREADS as usize)
    };
    let runner = &pipeline.compiled()?.runner;
    let statistics = runner.dispatch(&mut machine.device, &dispatch, &buffers)?;
    machine.cycles += statistics.cycles().unwrap_or(0);
    Ok(())
}
