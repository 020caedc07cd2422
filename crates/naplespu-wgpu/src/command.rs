//! Commands, and the recording of an encoder.

use crate::buffer::BufferInner;
use crate::error::{Error, Result};
use crate::group::BoundBuffer;
use crate::pipeline::PipelineInner;
use crate::query::Queries;
use crate::shared::Shared;
use crate::sink::lock;
use std::sync::{Arc, Mutex};
use wgpu::custom::{CommandBufferInterface, DispatchQuerySet};

/// The work-groups of a dispatch.
#[derive(Debug)]
pub(crate) enum Groups {
    Direct([u32; 3]),
    /// Three words of a buffer.
    Indirect {
        buffer: Arc<BufferInner>,
        offset: u64,
    },
}

/// A checked command.
#[derive(Debug)]
pub(crate) enum Command {
    Copy {
        from: (Arc<BufferInner>, u64),
        to: (Arc<BufferInner>, u64),
        size: u64,
    },
    Clear {
        buffer: Arc<BufferInner>,
        offset: u64,
        size: u64,
    },
    Stamp {
        queries: Arc<Queries>,
        index: u32,
    },
    Resolve {
        queries: Arc<Queries>,
        first: u32,
        count: u32,
        to: (Arc<BufferInner>, u64),
    },
    Dispatch {
        pipeline: Arc<PipelineInner>,
        /// The bind groups with their buffers.
        bound: Vec<(u32, BoundBuffer)>,
        groups: Groups,
    },
}

/// The commands of an encoder.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    commands: Vec<Command>,
    /// The first failed call.
    failed: Option<(&'static str, Box<Error>)>,
    pub(crate) is_pass_open: bool,
    pub(crate) is_finished: bool,
    /// The open debug groups outside of passes.
    pub(crate) debug_groups: u32,
}

impl Recording {
    /// Adds the commands of a call, or its error, which `finish` reports.
    pub(crate) fn add(&mut self, call: &'static str, commands: Result<Vec<Command>>) {
        let commands = match self.is_finished {
            true => Err(Error::Finished),
            false => commands,
        };
        match commands {
            Ok(commands) => self.commands.extend(commands),
            Err(error) => {
                self.failed.get_or_insert((call, Box::new(error)));
            }
        }
    }

    /// Ends the recording.
    pub(crate) fn finish(&mut self) -> Result<Vec<Command>, (&'static str, Box<Error>)> {
        const FINISH: &str = "CommandEncoder::finish";
        self.is_finished = true;
        if let Some(failed) = self.failed.take() {
            return Err(failed);
        }
        if self.is_pass_open {
            return Err((FINISH, Box::new(Error::PassOpen)));
        }
        if self.debug_groups != 0 {
            return Err((FINISH, Box::new(Error::DebugGroups)));
        }
        Ok(std::mem::take(&mut self.commands))
    }
}

/// The commands of a finished encoder.
#[derive(Debug)]
pub(crate) struct CommandBuffer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) label: String,
    /// `None` if the recording failed, or after a submission.
    commands: Mutex<Option<Vec<Command>>>,
}

impl CommandBufferInterface for CommandBuffer {}

impl CommandBuffer {
    pub(crate) fn new(shared: Arc<Shared>, label: String, commands: Option<Vec<Command>>) -> Self {
        Self {
            shared,
            label,
            commands: Mutex::new(commands),
        }
    }

    /// Takes the commands.
    pub(crate) fn take(&self) -> Option<Vec<Command>> {
        lock(&self.commands).take()
    }
}

/// Returns the command that writes a timestamp.
pub(crate) fn stamp(shared: &Arc<Shared>, set: &DispatchQuerySet, index: u32) -> Result<Vec<Command>> {
    let queries = Queries::of(shared, set)?;
    queries.check_range(index, 1)?;
    Ok(vec![Command::Stamp { queries, index }])
}
