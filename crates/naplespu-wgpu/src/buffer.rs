//! Buffers and their mapping.
//!
//! The memory of a buffer is in the machine. A mapping is a copy of a range in the host, which is
//! written to the machine when the buffer is unmapped.

use crate::error::{Error, Result, label, named};
use crate::shared::{Freed, Machine, Shared, Waiting};
use crate::sink::lock;
use naplespu_jit::device::Buffer as Memory;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use wgpu::custom::{
    BufferInterface, BufferMapCallback, BufferMappedRangeInterface, DispatchBuffer, DispatchBufferMappedRange,
};
use wgpu::{
    BufferAddress, BufferAsyncError, BufferDescriptor, BufferUsages, COPY_BUFFER_ALIGNMENT, Features, MAP_ALIGNMENT,
    MapMode, MapRangeError, WriteOnly,
};

/// The memory of a buffer.
#[derive(Debug)]
enum Storage {
    Live(Memory),
    /// The creation failed.
    Invalid,
    Destroyed,
}

/// The mapping of a buffer.
enum Map {
    Unmapped,
    Pending {
        mode: MapMode,
        range: Range<u64>,
        callback: BufferMapCallback,
    },
    Mapped {
        mode: MapMode,
        range: Range<u64>,
        bytes: Vec<u8>,
    },
}

struct State {
    storage: Storage,
    map: Map,
    /// Whether the program asked for a mapping since the last unmap, as `wgpu` counts.
    asked: bool,
}

/// A buffer, which bind groups and commands share.
pub(crate) struct BufferInner {
    pub(crate) shared: Arc<Shared>,
    pub(crate) label: String,
    pub(crate) size: u64,
    pub(crate) usage: BufferUsages,
    state: Mutex<State>,
}

impl fmt::Debug for BufferInner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("label", &self.label)
            .field("size", &self.size)
            .field("usage", &self.usage)
            .finish_non_exhaustive()
    }
}

/// The handle of a buffer.
#[derive(Debug)]
pub(crate) struct Buffer(pub(crate) Arc<BufferInner>);

/// Returns an error unless a buffer can have the usages.
fn check_usage(usage: BufferUsages, features: Features) -> Result<()> {
    let ray_tracing = BufferUsages::BLAS_INPUT | BufferUsages::TLAS_INPUT;
    if usage.intersects(ray_tracing) {
        return Err(Error::NotCompute("a buffer for ray tracing"));
    }
    let read = BufferUsages::MAP_READ | BufferUsages::COPY_DST;
    let write = BufferUsages::MAP_WRITE | BufferUsages::COPY_SRC;
    let is_bad = |map: BufferUsages, allowed: BufferUsages| usage.contains(map) && !allowed.contains(usage);
    let restricted = !features.contains(Features::MAPPABLE_PRIMARY_BUFFERS);
    let is_mixed = is_bad(BufferUsages::MAP_READ, read) || is_bad(BufferUsages::MAP_WRITE, write);
    if usage.is_empty() || !BufferUsages::all().contains(usage) || (restricted && is_mixed) {
        return Err(Error::BadUsage(usage));
    }
    Ok(())
}

impl Buffer {
    /// Creates a buffer. If that fails, the buffer is invalid, and the error is reported.
    pub(crate) fn create(shared: &Arc<Shared>, desc: &BufferDescriptor<'_>) -> Self {
        let storage = match allocate(shared, desc) {
            Ok(memory) => Storage::Live(memory),
            Err(error) => {
                shared.report("Device::create_buffer", error);
                Storage::Invalid
            }
        };
        // An invalid buffer can be mapped at its creation as well, unless it is too large.
        let is_possible = desc.size <= shared.limits.max_buffer_size;
        let map = match desc.mapped_at_creation && is_possible {
            true => Map::Mapped {
                mode: MapMode::Write,
                range: 0..desc.size,
                bytes: vec![0; desc.size as usize],
            },
            false => Map::Unmapped,
        };
        Self(Arc::new(BufferInner {
            shared: Arc::clone(shared),
            label: label(desc.label),
            size: desc.size,
            usage: desc.usage,
            state: Mutex::new(State {
                storage,
                map,
                asked: desc.mapped_at_creation,
            }),
        }))
    }
}

/// Checks a descriptor and allocates the memory.
fn allocate(shared: &Shared, desc: &BufferDescriptor<'_>) -> Result<Memory> {
    shared.check()?;
    check_usage(desc.usage, shared.features)?;
    Error::check_limit("the size of a buffer", desc.size, shared.limits.max_buffer_size)?;
    if desc.mapped_at_creation {
        Error::check_aligned(
            "the size of a buffer that is mapped at creation",
            desc.size,
            COPY_BUFFER_ALIGNMENT,
        )?;
    }
    // The limit is below 4 GiB. A range at the end of an empty buffer has an address, too.
    let size = u32::try_from(desc.size.next_multiple_of(COPY_BUFFER_ALIGNMENT)).unwrap_or(u32::MAX);
    Ok(shared.machine().device.allocate(size.max(4))?)
}

impl BufferInner {
    /// Returns the buffer of a handle.
    pub(crate) fn of(shared: &Arc<Shared>, buffer: &DispatchBuffer) -> Result<Arc<Self>> {
        Self::on(shared, buffer.as_custom::<Buffer>())
    }

    /// Returns the buffer of a handle that a program has.
    pub(crate) fn of_user(shared: &Arc<Shared>, buffer: &wgpu::Buffer) -> Result<Arc<Self>> {
        Self::on(shared, buffer.as_custom::<Buffer>())
    }

    fn on(shared: &Arc<Shared>, buffer: Option<&Buffer>) -> Result<Arc<Self>> {
        let found = buffer.filter(|buffer| Arc::ptr_eq(&buffer.0.shared, shared));
        let Some(Buffer(inner)) = found else {
            return Err(Error::OtherDevice("the buffer".to_owned()));
        };
        if matches!(lock(&inner.state).storage, Storage::Invalid) {
            return Err(Error::Invalid(inner.name()));
        }
        Ok(Arc::clone(inner))
    }

    pub(crate) fn name(&self) -> String {
        named("buffer", &self.label)
    }

    /// Returns an error if a usage is missing.
    pub(crate) fn check_usage(&self, needed: BufferUsages) -> Result<()> {
        if self.usage.contains(needed) {
            return Ok(());
        }
        Err(Error::Usage {
            buffer: self.name(),
            needed,
        })
    }

    /// Returns the end of a range, or an error if it is outside of the buffer.
    pub(crate) fn check_range(&self, offset: u64, size: u64) -> Result<u64> {
        match offset.checked_add(size) {
            Some(end) if end <= self.size => Ok(end),
            end => Err(Error::OutOfRange {
                of: self.name(),
                range: offset..end.unwrap_or(u64::MAX),
                size: self.size,
                unit: "bytes",
            }),
        }
    }

    /// Returns the memory for a command of the queue, or an error if the buffer is mapped or
    /// destroyed.
    pub(crate) fn memory(&self) -> Result<Memory> {
        let state = lock(&self.state);
        let memory = match state.storage {
            Storage::Live(memory) => memory,
            Storage::Invalid => return Err(Error::Invalid(self.name())),
            Storage::Destroyed => return Err(Error::Destroyed(self.name())),
        };
        match state.map {
            Map::Unmapped => Ok(memory),
            _ => Err(Error::Mapped(self.name())),
        }
    }

    /// Checks a request to map a range.
    fn check_map(&self, state: &State, mode: MapMode, range: &Range<u64>) -> Result<()> {
        self.shared.check()?;
        match state.storage {
            Storage::Live(_) => {}
            Storage::Invalid => return Err(Error::Invalid(self.name())),
            Storage::Destroyed => return Err(Error::Destroyed(self.name())),
        }
        self.check_usage(match mode {
            MapMode::Read => BufferUsages::MAP_READ,
            MapMode::Write => BufferUsages::MAP_WRITE,
        })?;
        Error::check_aligned("the start of a mapping", range.start, MAP_ALIGNMENT)?;
        let size = range.end.saturating_sub(range.start);
        Error::check_aligned("the size of a mapping", size, COPY_BUFFER_ALIGNMENT)?;
        self.check_range(range.start, size)?;
        match state.map {
            Map::Unmapped => Ok(()),
            _ => Err(Error::Mapped(self.name())),
        }
    }

    /// Maps the buffer if a mapping is pending, and calls its callback.
    pub(crate) fn finish_map(&self) {
        let machine = self.shared.machine();
        let mut state = lock(&self.state);
        let (mode, range, callback) = match std::mem::replace(&mut state.map, Map::Unmapped) {
            Map::Pending { mode, range, callback } => (mode, range, callback),
            other => {
                state.map = other;
                return;
            }
        };
        let bytes = match &state.storage {
            Storage::Live(memory) => read(&machine, *memory, &range),
            _ => Err(Error::Destroyed(self.name())),
        };
        let result = bytes.map(|bytes| state.map = Map::Mapped { mode, range, bytes });
        drop(state);
        drop(machine);
        match result {
            Ok(()) => callback(Ok(())),
            Err(error) => {
                self.shared.report("Buffer::map_async", error);
                callback(Err(BufferAsyncError));
            }
        }
    }

    /// Ends the mapping. Bytes that were mapped for writes go to the machine. Returns the callback
    /// of a pending mapping.
    fn end_map(&self, machine: &mut Machine) -> Result<Option<BufferMapCallback>> {
        let mut state = lock(&self.state);
        state.asked = false;
        match std::mem::replace(&mut state.map, Map::Unmapped) {
            Map::Pending { callback, .. } => Ok(Some(callback)),
            Map::Mapped {
                mode: MapMode::Write,
                range,
                bytes,
            } => {
                if let Storage::Live(memory) = state.storage {
                    machine.device.copy_in(memory, range.start as u32, &bytes)?;
                }
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// Copies bytes of a view into the mapping.
    fn store(&self, start: u64, bytes: &[u8]) {
        if let Map::Mapped {
            range, bytes: mapped, ..
        } = &mut lock(&self.state).map
        {
            let from = start.saturating_sub(range.start) as usize;
            if let Some(to) = mapped.get_mut(from..from + bytes.len()) {
                to.copy_from_slice(bytes);
            }
        }
    }
}

/// Reads bytes of the machine.
fn read(machine: &Machine, memory: Memory, range: &Range<u64>) -> Result<Vec<u8>> {
    let mut bytes = vec![0; (range.end - range.start) as usize];
    machine.device.copy_out(memory, range.start as u32, &mut bytes)?;
    Ok(bytes)
}

impl Drop for BufferInner {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Storage::Live(memory) = state.storage {
            self.shared.free(Freed::Buffer(memory));
        }
        if let Map::Pending { callback, .. } = std::mem::replace(&mut state.map, Map::Unmapped) {
            callback(Err(BufferAsyncError));
        }
    }
}

impl BufferInterface for Buffer {
    fn map_async(&self, mode: MapMode, range: Range<BufferAddress>, callback: BufferMapCallback) {
        let mut state = lock(&self.0.state);
        if let Err(error) = self.0.check_map(&state, mode, &range) {
            // `wgpu` counts a failed request as a mapping until the buffer is unmapped.
            state.asked = true;
            drop(state);
            self.0.shared.report("Buffer::map_async", error);
            callback(Err(BufferAsyncError));
            return;
        }
        state.asked = true;
        state.map = Map::Pending { mode, range, callback };
        drop(state);
        self.0.shared.wait(Waiting::Map(Arc::downgrade(&self.0)));
    }

    fn get_mapped_range(&self, sub_range: Range<BufferAddress>) -> Result<DispatchBufferMappedRange, MapRangeError> {
        let view = |bytes| {
            DispatchBufferMappedRange::custom(MappedRange {
                bytes,
                start: sub_range.start,
                is_written: false,
                buffer: Arc::clone(&self.0),
            })
        };
        let state = lock(&self.0.state);
        if let Map::Mapped { range, bytes, .. } = &state.map
            && range.start <= sub_range.start
            && sub_range.start.is_multiple_of(MAP_ALIGNMENT)
            && (sub_range.end - sub_range.start).is_multiple_of(COPY_BUFFER_ALIGNMENT)
        {
            let first = (sub_range.start - range.start) as usize;
            let end = (sub_range.end - range.start) as usize;
            if let Some(bytes) = bytes.get(first..end) {
                return Ok(view(bytes.to_vec()));
            }
        }
        let asked = state.asked;
        drop(state);
        // Without a request for a mapping, `wgpu` refuses the view itself.
        match asked.then(|| (self.0.shared.range_error)(&self.0.shared)).flatten() {
            Some(error) => Err(error),
            None => Ok(view(Vec::new())),
        }
    }

    fn unmap(&self) {
        let mut machine = self.0.shared.machine();
        let ended = self.0.end_map(&mut machine);
        drop(machine);
        match ended {
            Ok(Some(callback)) => callback(Err(BufferAsyncError)),
            Ok(None) => {}
            Err(error) => self.0.shared.report("Buffer::unmap", error),
        }
    }

    fn destroy(&self) {
        self.unmap();
        let mut state = lock(&self.0.state);
        if let Storage::Live(memory) = state.storage {
            state.storage = Storage::Destroyed;
            self.0.shared.free(Freed::Buffer(memory));
        }
    }
}

/// A view of a mapping, with its own copy of the bytes. Written bytes go back when it is dropped;
/// `wgpu` keeps views that are written apart from all others.
#[derive(Debug)]
struct MappedRange {
    bytes: Vec<u8>,
    start: u64,
    is_written: bool,
    buffer: Arc<BufferInner>,
}

impl Drop for MappedRange {
    fn drop(&mut self) {
        if self.is_written {
            self.buffer.store(self.start, &self.bytes);
        }
    }
}

impl BufferMappedRangeInterface for MappedRange {
    fn len(&self) -> usize {
        self.bytes.len()
    }

    unsafe fn read_slice(&self) -> &[u8] {
        &self.bytes
    }

    unsafe fn write_slice(&mut self) -> WriteOnly<'_, [u8]> {
        self.is_written = true;
        WriteOnly::from_mut(&mut self.bytes)
    }
}
