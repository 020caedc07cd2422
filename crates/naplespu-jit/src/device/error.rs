//! What can go wrong between a host and its device.

use super::{Buffer, Statistics, ThreadId};
use crate::error::{LinkError, RunError};
use crate::trace::Frame;
use std::fmt;

/// Why a device did not do what it was asked for.
#[derive(Debug)]
pub enum DeviceError {
    /// There is no room for a buffer.
    OutOfMemory {
        /// Its size in bytes.
        asked: u32,
        /// Bytes that buffers may still take, in pieces perhaps.
        free: u64,
    },
    /// The buffer was freed, or is another device's.
    NoBuffer(Buffer),
    /// A part of a buffer that does not lie within it.
    OutOfRange {
        /// The buffer.
        buffer: Buffer,
        /// Where the part begins.
        offset: u32,
        /// Its bytes.
        length: usize,
    },
    /// An address where there is no buffer and no data object, or not as many bytes of one.
    BadAddress {
        /// The address.
        address: u32,
        /// How many bytes were asked for.
        length: usize,
    },
    /// A launch on no threads.
    NoThreads,
    /// A launch on a thread that the device does not have.
    NoSuchThread {
        /// The thread.
        thread: ThreadId,
        /// How many cores the device has.
        cores: usize,
    },
    /// The kernel cannot be launched: it is missing or something that it reaches is, or the arguments do not fit.
    Launch(RunError),
    /// The kernel did not come to its end.
    Fault(Box<Fault>),
    /// What was defined could not be linked, or the simulation holds no more memory.
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
            Self::NoThreads => f.write_str("a launch on no threads"),
            Self::NoSuchThread { thread, cores } => {
                write!(f, "there is no {thread}: the device has {cores} cores of 8 threads")
            }
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

/// How a launch failed.
#[derive(Debug)]
pub struct Fault {
    /// What went wrong: a trap, a limit, threads that wait for each other, a function of the host that failed.
    pub error: RunError,
    /// What the threads were doing that the error is about, by number.
    pub traces: Vec<ThreadTrace>,
    /// What was executed until then.
    pub statistics: Statistics,
}

impl std::error::Error for Fault {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl fmt::Display for Fault {
    /// The error, and a line for each place of the back traces.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)?;
        for trace in &self.traces {
            write!(f, "\n{trace}")?;
        }
        Ok(())
    }
}

/// What a thread was doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadTrace {
    /// The thread.
    pub thread: ThreadId,
    /// The calls under way, from the instruction that it stands at outwards.
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
