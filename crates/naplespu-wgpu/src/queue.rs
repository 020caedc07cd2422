//! The queue. A submission runs to its end in `submit`.

use crate::buffer::BufferInner;
use crate::command::{Command, CommandBuffer};
use crate::error::{Error, Result, named};
use crate::execute::{check, execute};
use crate::refused::Blas;
use crate::shared::{Shared, Waiting};
use naplespu_jit::RunError as Stop;
use naplespu_jit::device::DeviceError;
use naplespu_shader::RunError;
use std::sync::Arc;
use wgpu::custom::{
    BoxSubmittedWorkDoneCallback, DispatchBlas, DispatchBuffer, DispatchCommandBuffer, DispatchQueueWriteBuffer,
    DispatchSurfaceOutputDetail, QueueInterface, QueueWriteBufferInterface,
};
use wgpu::{
    BufferAddress, BufferSize, BufferUsages, COPY_BUFFER_ALIGNMENT, DeviceLostReason, Extent3d, TexelCopyBufferLayout,
    TexelCopyTextureInfo, WriteOnly,
};

/// Nanoseconds of a cycle at the 100 MHz of the hardware.
const CYCLE_NANOSECONDS: f32 = 10.0;

/// The handle of a device's queue.
#[derive(Debug)]
pub(crate) struct Queue {
    shared: Arc<Shared>,
}

impl Queue {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Returns the buffer of a write, after checks.
    fn check_write(&self, buffer: &DispatchBuffer, offset: u64, size: u64) -> Result<Arc<BufferInner>> {
        self.shared.check()?;
        let buffer = BufferInner::of(&self.shared, buffer)?;
        buffer.check_usage(BufferUsages::COPY_DST)?;
        Error::check_aligned("the size of a write", size, COPY_BUFFER_ALIGNMENT)?;
        Error::check_aligned("the offset of a write", offset, COPY_BUFFER_ALIGNMENT)?;
        buffer.check_range(offset, size)?;
        Ok(buffer)
    }

    fn write(&self, buffer: &DispatchBuffer, offset: u64, data: &[u8]) -> Result<()> {
        let buffer = self.check_write(buffer, offset, data.len() as u64)?;
        let mut machine = self.shared.machine();
        let memory = buffer.memory()?;
        Ok(machine.device.copy_in(memory, offset as u32, data)?)
    }

    /// Returns the commands of command buffers that are all valid.
    fn commands(&self, buffers: Vec<DispatchCommandBuffer>) -> Result<Vec<Command>> {
        let mut all = Vec::new();
        self.shared.check()?;
        for buffer in buffers {
            let custom = buffer.as_custom::<CommandBuffer>();
            let Some(custom) = custom.filter(|custom| Arc::ptr_eq(&custom.shared, &self.shared)) else {
                return Err(Error::OtherDevice("the command buffer".to_owned()));
            };
            let commands = custom.take();
            all.extend(commands.ok_or_else(|| Error::Invalid(named("command buffer", &custom.label)))?);
        }
        Ok(all)
    }

    fn run(&self, commands: &[Command]) -> Result<()> {
        let mut machine = self.shared.machine();
        for command in commands {
            check(command)?;
        }
        for command in commands {
            execute(&self.shared, &mut machine, command)?;
        }
        Ok(())
    }
}

/// Returns the message about a kernel that does not end.
fn hung(error: &Error) -> Option<String> {
    let Error::Run(RunError::Device(DeviceError::Fault(fault))) = error else {
        return None;
    };
    let mut cause = &fault.error;
    while let Stop::Thread { error, .. } = cause {
        cause = error;
    }
    let is_hung = matches!(
        cause,
        Stop::Timeout { .. } | Stop::CycleLimit { .. } | Stop::Stopped { .. } | Stop::Deadlock(_)
    );
    is_hung.then(|| fault.error.to_string())
}

impl QueueInterface for Queue {
    fn write_buffer(&self, buffer: &DispatchBuffer, offset: BufferAddress, data: &[u8]) {
        if let Err(error) = self.write(buffer, offset, data) {
            self.shared.report("Queue::write_buffer", error);
        }
    }

    fn create_staging_buffer(&self, size: BufferSize) -> Option<DispatchQueueWriteBuffer> {
        let bytes = vec![0; usize::try_from(size.get()).ok()?];
        Some(DispatchQueueWriteBuffer::custom(StagingBuffer(bytes)))
    }

    fn validate_write_buffer(&self, buffer: &DispatchBuffer, offset: BufferAddress, size: BufferSize) -> Option<()> {
        match self.check_write(buffer, offset, size.get()) {
            Ok(_) => Some(()),
            Err(error) => {
                self.shared.report("Queue::write_buffer_with", error);
                None
            }
        }
    }

    fn write_staging_buffer(
        &self,
        buffer: &DispatchBuffer,
        offset: BufferAddress,
        staging_buffer: &DispatchQueueWriteBuffer,
    ) {
        let written = match staging_buffer.as_custom::<StagingBuffer>() {
            Some(StagingBuffer(bytes)) => self.write(buffer, offset, bytes),
            None => Err(Error::OtherDevice("the staging buffer".to_owned())),
        };
        if let Err(error) = written {
            self.shared.report("Queue::write_buffer_with", error);
        }
    }

    fn write_texture(&self, _: TexelCopyTextureInfo<'_>, _: &[u8], _: TexelCopyBufferLayout, _: Extent3d) {
        self.shared
            .report("Queue::write_texture", Error::NotCompute("a texture"));
    }

    fn submit(&self, command_buffers: &mut dyn Iterator<Item = DispatchCommandBuffer>) -> u64 {
        let buffers: Vec<DispatchCommandBuffer> = command_buffers.collect();
        let ended = self.commands(buffers).and_then(|commands| self.run(&commands));
        if let Err(error) = ended {
            match hung(&error) {
                Some(message) => self.shared.lose(DeviceLostReason::Unknown, message),
                None => self.shared.report("Queue::submit", error),
            }
        }
        // Callbacks of earlier calls run in `submit` as well as in `poll`.
        self.shared.poll();
        self.shared.count_submission()
    }

    fn get_timestamp_period(&self) -> f32 {
        CYCLE_NANOSECONDS
    }

    fn on_submitted_work_done(&self, callback: BoxSubmittedWorkDoneCallback) {
        self.shared.wait(Waiting::Done(callback));
    }

    fn compact_blas(&self, _: &DispatchBlas) -> (Option<u64>, DispatchBlas) {
        self.shared
            .report("Queue::compact_blas", Error::NotCompute("an acceleration structure"));
        (None, DispatchBlas::custom(Blas))
    }

    fn present(&self, _: &DispatchSurfaceOutputDetail) {
        self.shared.report("Queue::present", Error::NotCompute("a surface"));
    }
}

/// Bytes of the host that a program fills for a write.
#[derive(Debug)]
struct StagingBuffer(Vec<u8>);

impl QueueWriteBufferInterface for StagingBuffer {
    fn len(&self) -> usize {
        self.0.len()
    }

    unsafe fn write_slice(&mut self) -> WriteOnly<'_, [u8]> {
        WriteOnly::from_mut(&mut self.0)
    }
}
