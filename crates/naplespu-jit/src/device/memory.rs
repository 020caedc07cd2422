//! Memory of a device: buffers, and copies from and to the host.

use super::{Device, DeviceError};
use crate::error::LinkError;
use crate::npu_module::NpuModule;
use cranelift_codegen::data_value::DataValue;
use npu_mc::machine::CACHE_LINE;
use std::collections::BTreeMap;
use std::ops;
use std::sync::atomic::{AtomicU64, Ordering};

/// A handle of memory from [`Device::allocate`]. It can be copied; the memory exists until
/// [`Device::free`] is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Buffer {
    address: u32,
    size: u32,
    /// Unique in the process.
    serial: u64,
}

impl Buffer {
    /// Returns the device address of the first byte. It is a multiple of 64 unless the buffer was
    /// [allocated](Device::allocate_aligned) with another alignment.
    pub fn address(self) -> u32 {
        self.address
    }

    /// Returns the size in bytes.
    pub fn size(self) -> u32 {
        self.size
    }

    /// Returns the address of a byte as an argument of a kernel.
    pub fn at(self, offset: u32) -> Arg {
        Arg::Address(self, offset)
    }
}

/// An argument of a kernel.
#[derive(Clone, Debug)]
pub enum Arg {
    /// A value. A vector of more than 128 bits is passed as its lanes; see
    /// [`host_types`](crate::host_types).
    Value(DataValue),
    /// The address of a byte of a buffer, as an `i32`. The launch checks that the buffer exists.
    Address(Buffer, u32),
}

impl From<Buffer> for Arg {
    fn from(buffer: Buffer) -> Self {
        buffer.at(0)
    }
}

impl<T: Into<DataValue>> From<T> for Arg {
    fn from(value: T) -> Self {
        Self::Value(value.into())
    }
}

/// A live buffer.
#[derive(Clone, Debug)]
struct Block {
    /// The name in reports.
    name: Option<String>,
    size: u32,
    /// Its share of the capacity, in bytes.
    taken: u64,
    serial: u64,
}

/// The buffers of a device.
#[derive(Debug)]
pub(super) struct Heap {
    /// The buffers by address.
    blocks: BTreeMap<u32, Block>,
    allocated: u64,
    capacity: u64,
}

impl Heap {
    pub(super) fn new(capacity: u64) -> Self {
        Self {
            blocks: BTreeMap::new(),
            allocated: 0,
            capacity,
        }
    }

    fn free(&self) -> u64 {
        self.capacity.saturating_sub(self.allocated)
    }

    fn has(&self, buffer: Buffer) -> bool {
        let block = self.blocks.get(&buffer.address);
        block.is_some_and(|block| block.serial == buffer.serial)
    }

    /// Returns the address of a range in a buffer.
    fn part(&self, buffer: Buffer, offset: u32, length: usize) -> Result<u32, DeviceError> {
        if !self.has(buffer) {
            return Err(DeviceError::NoBuffer(buffer));
        }
        let end = u64::from(offset) + length as u64;
        if end > u64::from(buffer.size) {
            return Err(DeviceError::OutOfRange { buffer, offset, length });
        }
        // The range lies within the buffer, so the address does not wrap.
        Ok(buffer.address.wrapping_add(offset))
    }

    /// Returns the buffer that contains a range of addresses, and its address.
    fn around(&self, address: u32, length: usize) -> Option<(u32, &Block)> {
        let (&start, block) = self.blocks.range(..=address).next_back()?;
        let end = u64::from(address) + length as u64;
        (end <= u64::from(start) + u64::from(block.size)).then_some((start, block))
    }
}

impl Device {
    /// Allocates a zeroed buffer. It is aligned to 64 bytes, the size of a cache line and of a
    /// vector.
    ///
    /// # Errors
    ///
    /// [`DeviceError::OutOfMemory`] if all buffers together would exceed
    /// [`Config::memory_limit`](npu_sim::Config::memory_limit), or no gap between them is large
    /// enough.
    pub fn allocate(&mut self, size: u32) -> Result<Buffer, DeviceError> {
        self.allocate_aligned(size, CACHE_LINE)
    }

    /// Allocates a zeroed buffer that is aligned to the larger of `align` and 64 bytes.
    ///
    /// # Errors
    ///
    /// See [`Device::allocate`]; [`DeviceError::Link`] if `align` is not a power of two, or more
    /// than 2^28.
    pub fn allocate_aligned(&mut self, size: u32, align: u32) -> Result<Buffer, DeviceError> {
        let align = align.max(CACHE_LINE);
        self.take(size, |module, whole| module.allocate(whole, align))
    }

    /// Allocates a zeroed buffer whose home is a tile: its misses go to the directory and the
    /// second-level cache of that tile. These are near the core of the tile, and are not shared
    /// with the buffers of other tiles. The core with index *n* is in tile *n*, unless
    /// [`Config::tile`](npu_sim::Config::tile) says otherwise. Other buffers have no particular
    /// home: all of them may share one.
    ///
    /// # Errors
    ///
    /// [`DeviceError::OutOfMemory`] if the buffer exceeds the capacity, or the memory of the tile is
    /// full. The memory of the host tile and of the memory tile has the stacks, and no room.
    pub fn allocate_at(&mut self, tile: u32, size: u32) -> Result<Buffer, DeviceError> {
        let here = self.addresses_at(tile);
        self.take(size, |module, whole| module.allocate_within(whole, &here))
    }

    /// Allocates a zeroed buffer in the memory of each tile, like [`Device::allocate_at`]. All
    /// buffers are at the same offset in the memory of their tile, so a kernel can compute the
    /// address of each from the address of one.
    ///
    /// # Errors
    ///
    /// See [`Device::allocate_at`]. Then nothing is allocated.
    pub fn allocate_parts(&mut self, tiles: ops::Range<u32>, size: u32) -> Result<Vec<Buffer>, DeviceError> {
        let mut offset = 0;
        loop {
            let mut parts: Vec<Buffer> = Vec::new();
            let Err(error) = self.parts_from(offset, tiles.clone(), size, &mut parts) else {
                return Ok(parts);
            };
            for &part in &parts {
                self.free(part)?;
            }
            // Another tile has something at the offset of the first part.
            let Some(first) = parts.first() else {
                return Err(error);
            };
            offset = u64::from(first.address) - self.addresses_at(tiles.start).start + u64::from(CACHE_LINE);
        }
    }

    /// Allocates a copy of `bytes` in the memory of each tile, at the same offset like
    /// [`Device::allocate_parts`]. It suits data that all cores read and none writes: each core
    /// reads its own copy, past no other tile.
    ///
    /// # Errors
    ///
    /// See [`Device::allocate_parts`] and [`Device::copy_in`]. Then nothing is allocated.
    pub fn replicate(&mut self, tiles: ops::Range<u32>, bytes: &[u8]) -> Result<Vec<Buffer>, DeviceError> {
        let parts: Vec<&[u8]> = tiles.clone().map(|_| bytes).collect();
        self.fill_parts(tiles, &parts)
    }

    /// Distributes `bytes` over the memory of the tiles: the first tile has the first part, and so
    /// on. All parts but the last have the same size, a multiple of the line size, and the same
    /// offset like [`Device::allocate_parts`]. It suits data that all cores read, but not each of
    /// them all of it: no tile serves all requests. Addresses of one tile are contiguous, so lines
    /// cannot alternate between tiles.
    ///
    /// # Errors
    ///
    /// See [`Device::allocate_parts`] and [`Device::copy_in`]. Then nothing is allocated.
    pub fn distribute(&mut self, tiles: ops::Range<u32>, bytes: &[u8]) -> Result<Vec<Buffer>, DeviceError> {
        let each = bytes.len().div_ceil(tiles.len().max(1)).max(1);
        let each = each.next_multiple_of(CACHE_LINE as usize);
        let mut parts: Vec<&[u8]> = bytes.chunks(each).collect();
        parts.resize(tiles.len(), &[]);
        self.fill_parts(tiles, &parts)
    }

    /// Allocates a part for each tile, as large as the first one of `parts`, and fills them.
    fn fill_parts(&mut self, tiles: ops::Range<u32>, parts: &[&[u8]]) -> Result<Vec<Buffer>, DeviceError> {
        let most = parts.iter().map(|part| part.len()).max().unwrap_or_default();
        let size = u32::try_from(most).map_err(|_| DeviceError::OutOfMemory {
            asked: u32::MAX,
            free: self.heap.free(),
        })?;
        let buffers = self.allocate_parts(tiles, size)?;
        let copied = buffers
            .iter()
            .zip(parts)
            .try_for_each(|(&buffer, part)| self.copy_in(buffer, 0, part));
        match copied {
            Ok(()) => Ok(buffers),
            Err(error) => {
                for buffer in buffers {
                    self.free(buffer)?;
                }
                Err(error)
            }
        }
    }

    /// Names a buffer in reports ([`Device::variable`]).
    ///
    /// # Errors
    ///
    /// [`DeviceError::NoBuffer`].
    pub fn set_name(&mut self, buffer: Buffer, name: impl Into<String>) -> Result<(), DeviceError> {
        let block = self.heap.blocks.get_mut(&buffer.address);
        let block = block.filter(|block| block.serial == buffer.serial);
        block.ok_or(DeviceError::NoBuffer(buffer))?.name = Some(name.into());
        Ok(())
    }

    /// Returns the name of the buffer, data object or function at an address, or the thread whose
    /// stack or thread-local storage it is, for [`npu_sim::MissesReport`]. It is slow: use
    /// [`Device::variables`] for many addresses.
    pub fn variable(&self, address: u32) -> Option<String> {
        self.variables()(address)
    }

    /// Returns a function with the results of [`Device::variable`].
    pub fn variables(&self) -> impl Fn(u32) -> Option<String> {
        let code = self.module.code_map();
        move |address| match self.heap.around(address, 1) {
            Some((_, Block { name: Some(name), .. })) => Some(name.clone()),
            Some((start, block)) => Some(format!("buffer of {} bytes at {start:#010x}", block.size)),
            None => code.variable(address),
        }
    }

    /// Adds the parts of the tiles: the first at the lowest free offset that is not below `offset`.
    fn parts_from(
        &mut self,
        offset: u64,
        tiles: ops::Range<u32>,
        size: u32,
        parts: &mut Vec<Buffer>,
    ) -> Result<(), DeviceError> {
        for tile in tiles.clone() {
            let here = self.addresses_at(tile);
            let within = match parts.first() {
                None => here.start + offset..here.end,
                Some(first) => {
                    let start = here.start + u64::from(first.address) - self.addresses_at(tiles.start).start;
                    start..start + u64::from(size.max(1)).next_multiple_of(CACHE_LINE.into())
                }
            };
            parts.push(self.take(size, |module, whole| module.allocate_within(whole, &within))?);
        }
        Ok(())
    }

    fn addresses_at(&self, tile: u32) -> ops::Range<u64> {
        self.module.machine().topology().addresses_at(tile)
    }

    /// Allocates a buffer in whole cache lines, at the address that `allocate` returns.
    fn take(
        &mut self,
        size: u32,
        allocate: impl FnOnce(&mut NpuModule, u32) -> Result<u32, LinkError>,
    ) -> Result<Buffer, DeviceError> {
        static SERIALS: AtomicU64 = AtomicU64::new(0);
        // Buffers do not share cache lines.
        let taken = u64::from(size.max(1)).next_multiple_of(CACHE_LINE.into());
        let free = self.heap.free();
        let full = || DeviceError::OutOfMemory { asked: size, free };
        let whole = u32::try_from(taken).ok().filter(|_| taken <= free).ok_or_else(full)?;
        let address = match allocate(&mut self.module, whole) {
            Ok(address) => address,
            Err(LinkError::MemoryFull(_)) => return Err(full()),
            Err(error) => return Err(error.into()),
        };
        let serial = SERIALS.fetch_add(1, Ordering::Relaxed);
        let block = Block {
            name: None,
            size,
            taken,
            serial,
        };
        self.heap.blocks.insert(address, block);
        self.heap.allocated += taken;
        Ok(Buffer { address, size, serial })
    }

    /// Allocates a buffer and copies bytes into it.
    ///
    /// # Errors
    ///
    /// See [`Device::allocate`] and [`Device::copy_in`].
    pub fn allocate_from(&mut self, bytes: &[u8]) -> Result<Buffer, DeviceError> {
        let size = u32::try_from(bytes.len()).map_err(|_| DeviceError::OutOfMemory {
            asked: u32::MAX,
            free: self.heap.free(),
        })?;
        let buffer = self.allocate(size)?;
        match self.copy_in(buffer, 0, bytes) {
            Ok(()) => Ok(buffer),
            Err(error) => {
                self.free(buffer)?;
                Err(error)
            }
        }
    }

    /// Frees a buffer.
    ///
    /// # Errors
    ///
    /// [`DeviceError::NoBuffer`] if it was freed already, or belongs to another device.
    pub fn free(&mut self, buffer: Buffer) -> Result<(), DeviceError> {
        if !self.heap.has(buffer) {
            return Err(DeviceError::NoBuffer(buffer));
        }
        self.module.free(buffer.address)?;
        if let Some(block) = self.heap.blocks.remove(&buffer.address) {
            self.heap.allocated -= block.taken;
        }
        Ok(())
    }

    /// Returns the bytes of all buffers, in whole cache lines.
    pub fn allocated(&self) -> u64 {
        self.heap.allocated
    }

    /// Returns the capacity for buffers in bytes.
    pub fn capacity(&self) -> u64 {
        self.heap.capacity
    }

    /// Copies bytes from the host into a buffer, starting at an offset.
    ///
    /// # Errors
    ///
    /// [`DeviceError::NoBuffer`], [`DeviceError::OutOfRange`], and [`DeviceError::Link`] if the
    /// simulated memory is full. If the range is invalid, nothing is copied.
    pub fn copy_in(&mut self, buffer: Buffer, offset: u32, bytes: &[u8]) -> Result<(), DeviceError> {
        let address = self.heap.part(buffer, offset, bytes.len())?;
        Ok(self.module.write_memory(address, bytes)?)
    }

    /// Copies bytes from a buffer to the host, starting at an offset.
    ///
    /// # Errors
    ///
    /// [`DeviceError::NoBuffer`] and [`DeviceError::OutOfRange`].
    pub fn copy_out(&self, buffer: Buffer, offset: u32, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let address = self.heap.part(buffer, offset, bytes.len())?;
        self.module.read_memory(address, bytes);
        Ok(())
    }

    /// Copies words from the host into a buffer, starting at a byte offset.
    ///
    /// # Errors
    ///
    /// See [`Device::copy_in`].
    pub fn copy_words_in(&mut self, buffer: Buffer, offset: u32, words: &[u32]) -> Result<(), DeviceError> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.copy_in(buffer, offset, &bytes)
    }

    /// Copies `count` words from a buffer to the host, starting at a byte offset.
    ///
    /// # Errors
    ///
    /// See [`Device::copy_out`].
    pub fn copy_words_out(&self, buffer: Buffer, offset: u32, count: usize) -> Result<Vec<u32>, DeviceError> {
        let address = self.heap.part(buffer, offset, count.saturating_mul(4))?;
        Ok(self.module.read_words(address, count))
    }

    /// Copies bytes from one buffer to another, or within a buffer.
    ///
    /// # Errors
    ///
    /// See [`Device::copy_in`].
    pub fn copy(&mut self, from: (Buffer, u32), to: (Buffer, u32), length: u32) -> Result<(), DeviceError> {
        let from = self.heap.part(from.0, from.1, length as usize)?;
        let to = self.heap.part(to.0, to.1, length as usize)?;
        let mut bytes = vec![0; length as usize];
        self.module.read_memory(from, &mut bytes);
        Ok(self.module.write_memory(to, &bytes)?)
    }

    /// Sets `length` bytes of a buffer to one value, starting at an offset.
    ///
    /// # Errors
    ///
    /// See [`Device::copy_in`].
    pub fn fill(&mut self, buffer: Buffer, offset: u32, length: u32, byte: u8) -> Result<(), DeviceError> {
        let address = self.heap.part(buffer, offset, length as usize)?;
        Ok(self.module.write_memory(address, &vec![byte; length as usize])?)
    }

    /// Copies bytes to the host from an address that a kernel returned. The bytes must lie in one
    /// buffer or in one data object of the module.
    ///
    /// # Errors
    ///
    /// [`DeviceError::BadAddress`].
    pub fn read(&self, address: u32, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.check_address(address, bytes.len())?;
        self.module.read_memory(address, bytes);
        Ok(())
    }

    /// Copies bytes from the host to an address in a buffer or in a data object of the module.
    ///
    /// # Errors
    ///
    /// [`DeviceError::BadAddress`], and [`DeviceError::Link`] if the simulated memory is full.
    pub fn write(&mut self, address: u32, bytes: &[u8]) -> Result<(), DeviceError> {
        self.check_address(address, bytes.len())?;
        Ok(self.module.write_memory(address, bytes)?)
    }

    fn check_address(&self, address: u32, length: usize) -> Result<(), DeviceError> {
        if self.heap.around(address, length).is_some() || self.module.has_data(address, length) {
            Ok(())
        } else {
            Err(DeviceError::BadAddress { address, length })
        }
    }

    /// Returns the value of an argument.
    pub(super) fn value_of(&self, arg: Arg) -> Result<DataValue, DeviceError> {
        match arg {
            Arg::Value(value) => Ok(value),
            Arg::Address(buffer, offset) => {
                let address = self.heap.part(buffer, offset, 0)?;
                Ok(DataValue::I32(address.cast_signed()))
            }
        }
    }
}
