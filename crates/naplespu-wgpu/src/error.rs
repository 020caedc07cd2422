//! The errors of the backend, which error scopes deliver.

use naplespu_jit::device::DeviceError;
use naplespu_shader::RunError;
use std::ops::Range;
use wgpu::{BufferUsages, ErrorFilter, QueryType, ShaderStages};

/// The reason why a call of `wgpu` failed: the source of a [`wgpu::Error`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A part of the API that is no compute.
    #[error("{0} is not supported: the device only computes")]
    NotCompute(&'static str),
    /// A part of the API for compute that the backend lacks.
    #[error("{0} is not supported")]
    Unsupported(&'static str),
    /// A feature that the device was created without.
    #[error("the device was created without the feature {0}")]
    MissingFeature(&'static str),
    /// An object whose creation failed.
    #[error("{0} is invalid")]
    Invalid(String),
    /// An object of another device or backend.
    #[error("{0} belongs to another device")]
    OtherDevice(String),
    /// A destroyed object.
    #[error("{0} is destroyed")]
    Destroyed(String),
    /// A value above the device's limit.
    #[error("{what} is {value}, and the limit is {limit}")]
    Limit {
        /// The value's meaning.
        what: &'static str,
        /// The value.
        value: u64,
        /// The limit.
        limit: u64,
    },
    /// An offset or size that is not a multiple of the alignment.
    #[error("{what} is {value}, not a multiple of {alignment}")]
    Unaligned {
        /// The value's meaning.
        what: &'static str,
        /// The value.
        value: u64,
        /// The alignment.
        alignment: u64,
    },
    /// A range outside of its object.
    #[error("{}..{} is outside of {of}, which has {size} {unit}", .range.start, .range.end)]
    OutOfRange {
        /// The object.
        of: String,
        /// The range.
        range: Range<u64>,
        /// The size of the object.
        size: u64,
        /// The unit of the range and the size.
        unit: &'static str,
    },
    /// A set of usages that a buffer cannot have.
    #[error("a buffer cannot have the usage {0:?}")]
    BadUsage(BufferUsages),
    /// A buffer lacks a usage.
    #[error("{buffer} lacks the usage {needed:?}")]
    Usage {
        /// The buffer.
        buffer: String,
        /// The usage.
        needed: BufferUsages,
    },
    /// A buffer is mapped, or waits to be.
    #[error("{0} is mapped")]
    Mapped(String),
    /// A copy whose source is its destination.
    #[error("{0} is the source and the destination")]
    CopyToItself(String),
    /// A buffer is written by a dispatch, and used a second time by the same one.
    #[error("{0} is written by the dispatch and has another use in it")]
    Conflict(String),
    /// A binding number occurs twice.
    #[error("binding {0} occurs twice")]
    Twice(u32),
    /// The visibility of a binding has unknown stages.
    #[error("the visibility {0:?} has unknown stages")]
    Visibility(ShaderStages),
    /// A bind group lacks a binding of its layout.
    #[error("the layout has binding {0}, and the bind group lacks it")]
    MissingBinding(u32),
    /// A bind group has a binding that its layout lacks.
    #[error("the bind group has binding {0}, and the layout lacks it")]
    ExtraBinding(u32),
    /// Bytes that are bound are too few.
    #[error("binding {binding} has {size} bytes, and at least {least} are needed")]
    TooSmall {
        /// The number of the binding.
        binding: u32,
        /// The number of bound bytes.
        size: u64,
        /// The least number.
        least: u64,
    },
    /// A binding of the shader has no equal in the layout.
    #[error("the shader's binding {binding} of group {group} {problem}")]
    ShaderBinding {
        /// The number of the group.
        group: u32,
        /// The number in the group.
        binding: u32,
        /// The difference.
        problem: &'static str,
    },
    /// A dispatch without a pipeline.
    #[error("no pipeline is set")]
    NoPipeline,
    /// A dispatch without a bind group of its pipeline.
    #[error("the pipeline needs bind group {0}, and none is set")]
    NoBindGroup(u32),
    /// A bind group whose layout is not that of the pipeline.
    #[error("{group} at index {index} has another layout than the pipeline{}", if *.exclusive { ", which has a layout of its own" } else { "" })]
    OtherLayout {
        /// The bind group.
        group: String,
        /// The index.
        index: u32,
        /// Whether one of the layouts belongs to one pipeline.
        exclusive: bool,
    },
    /// A layout that a pipeline derived from its shader, in a layout for other pipelines.
    #[error("{0} is that of a pipeline without an explicit layout")]
    DerivedLayout(String),
    /// A wrong number of dynamic offsets.
    #[error("{found} dynamic offsets are given, and {group} has {needed}")]
    DynamicOffsets {
        /// The bind group.
        group: String,
        /// The number of offsets.
        found: usize,
        /// The number of bindings with a dynamic offset.
        needed: usize,
    },
    /// An encoder is used or finished while a pass is open.
    #[error("a compute pass of the encoder is open")]
    PassOpen,
    /// A pass or encoder is used after the encoder was finished.
    #[error("the encoder is finished")]
    Finished,
    /// A debug group is closed that is not open, or the other way around.
    #[error("the debug groups are not balanced")]
    DebugGroups,
    /// A query set of another type than needed.
    #[error("a query set of the type {0:?} is not supported: the device only computes")]
    QueryType(QueryType),
    /// A shader that is malformed, or that has no translation.
    #[error("{0}")]
    Shader(String),
    /// A kernel that does not compile or does not run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The simulated device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The device is lost. Scopes do not report this error; the callback of the device does.
    #[error("the device is lost")]
    Lost,
}

impl Error {
    /// Returns the scopes that catch the error, or `None` if no scope does.
    pub(crate) fn filter(&self) -> Option<ErrorFilter> {
        match self {
            Self::Lost => None,
            Self::Device(DeviceError::OutOfMemory { .. }) => Some(ErrorFilter::OutOfMemory),
            Self::Run(_) | Self::Device(_) => Some(ErrorFilter::Internal),
            _ => Some(ErrorFilter::Validation),
        }
    }

    /// Returns an error unless `value` is a multiple of `alignment`.
    pub(crate) fn check_aligned(what: &'static str, value: u64, alignment: u64) -> Result<()> {
        if value.is_multiple_of(alignment) {
            return Ok(());
        }
        Err(Self::Unaligned { what, value, alignment })
    }

    /// Returns an error if `value` is above `limit`.
    pub(crate) fn check_limit(what: &'static str, value: impl Into<u64>, limit: impl Into<u64>) -> Result<()> {
        let (value, limit) = (value.into(), limit.into());
        if value <= limit {
            return Ok(());
        }
        Err(Self::Limit { what, value, limit })
    }
}

/// The result of a fallible function of this crate.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// Returns a kind of object with its label for messages.
pub(crate) fn named(kind: &str, label: &str) -> String {
    if label.is_empty() {
        format!("the {kind}")
    } else {
        format!("the {kind} `{label}`")
    }
}

/// Returns a label, which is empty by default.
pub(crate) fn label(label: Option<&str>) -> String {
    label.unwrap_or_default().to_owned()
}
