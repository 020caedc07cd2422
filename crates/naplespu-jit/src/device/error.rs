//! Errors of devices.

use super::{Buffer, Statistics, ThreadId};
use crate::error::{LinkError, RunError};
use crate::trace::Frame;
use std::fmt;

/// The reason why an operation of a device failed.
#[derive(Debug)]
pub enum DeviceError {
    /// A buffer does not fit into memory.
    OutOfMemory {
        /// The requested size in bytes.
        asked: u32,
        /// The free memory for buffers in bytes, possibly fragmented.
        free: u64,
    },
    /// The buffer was freed, or belongs to another device.
    NoBuffer(Buffer),
    /// A range exceeds its buffer.
    OutOfRange {
        /// The buffer.
        buffer: Buffer,
        /// The start of the range.
        offset: u32,
        /// The length of the range in bytes.
        length: usize,
    },
    /// A range of addresses that does not lie in one buffer or data object.
    BadAddress {
        /// The address.
        address: u32,
        /// The length in bytes.
        length: usize,
    },
    /// A launch without threads.
    NoThreads,
    /// A launch on a thread that the device does not have.
    NoSuchThread {
        /// The thread.
        thread: ThreadId,
        /// The number of cores of the device.
        cores: usize,
    },
    /// A dispatch on other threads than the first ones of the first cores, equally many on each.
    Threads,
    /// The work-items of a work-group wait for each other, and the threads execute fewer at once.
    WorkGroup {
        /// The work-items of a work-group.
        items: u32,
        /// The work-items that a thread executes at once.
        lanes: u32,
        /// The threads of a core that a work-group needs.
        needed: u32,
        /// The threads of each core in the dispatch.
        threads: usize,
    },
    /// The kernel cannot be launched: it is undefined or reaches an undefined symbol, or the
    /// arguments do not match.
    Launch(RunError),
    /// The kernel failed.
    Fault(Box<Fault>),
    /// Linking failed, or the simulated memory is full.
    Link(LinkError),
}

impl std::error::Error for DeviceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Launch(error) => Some(error),
            Self::Fault(fault) => Some(&fault.error),
            Self::Link(error) => Some(error),
            Self::OutOfMemory { .. }
            | Self::NoBuffer(_)
            | Self::OutOfRange { .. }
            | Self::BadAddress { .. }
            | Self::NoThreads
            | Self::Threads
            | Self::WorkGroup { .. }
            | Self::NoSuchThread { .. } => None,
        }
    }
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfMemory { asked, free } => {
                write!(f, "no room for {asked} bytes on the device; {free} bytes are free")
            }
            Self::NoBuffer(buffer) => write!(
                f,
                "the buffer of {} bytes at {:#010x} was freed, or is another device's",
                buffer.size(),
                buffer.address()
            ),
            Self::OutOfRange { buffer, offset, length } => write!(
                f,
                "{length} bytes from {offset:#x} on do not lie in the buffer of {} bytes at {:#010x}",
                buffer.size(),
                buffer.address()
            ),
            Self::BadAddress { address, length } => {
                write!(
                    f,
                    "{length} bytes at {address:#010x} are in no buffer and no data object"
                )
            }
            Self::NoThreads => f.write_str("the launch has no threads"),
            Self::NoSuchThread { thread, cores } => {
                write!(f, "{thread} does not exist: the device has {cores} cores of 8 threads")
            }
            Self::Threads => {
                f.write_str("a dispatch needs the first threads of the first cores, the same number on each core")
            }
            Self::WorkGroup {
                items,
                lanes,
                needed,
                threads,
            } => write!(
                f,
                "a work-group of {items} work-items needs {needed} threads of {lanes} lanes; the dispatch has {threads}"
            ),
            Self::Launch(error) => error.fmt(f),
            Self::Fault(fault) => fault.fmt(f),
            Self::Link(error) => error.fmt(f),
        }
    }
}

impl From<LinkError> for DeviceError {
    fn from(error: LinkError) -> Self {
        Self::Link(error)
    }
}

/// A failed launch.
#[derive(Debug)]
pub struct Fault {
    /// The error: a trap, a limit, a deadlock, or a failed host function.
    pub error: RunError,
    /// The back traces of the threads that the error is about, by number.
    pub traces: Vec<ThreadTrace>,
    /// The statistics up to the failure.
    pub statistics: Statistics,
}

impl std::error::Error for Fault {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl fmt::Display for Fault {
    /// Prints the error, and a line for each frame of the back traces.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)?;
        for trace in &self.traces {
            write!(f, "\n{trace}")?;
        }
        Ok(())
    }
}

/// The back trace of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadTrace {
    /// The thread.
    pub thread: ThreadId,
    /// The frames, innermost first.
    pub frames: Vec<Frame>,
}

impl fmt::Display for ThreadTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.thread)?;
        for (depth, frame) in self.frames.iter().enumerate() {
            write!(f, "\n  #{depth:<3} {frame}")?;
        }
        Ok(())
    }
}
