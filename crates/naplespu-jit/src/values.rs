//! Conversion between host values and the locations of the calling convention.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::Type;
use cranelift_naplespu::abi::sig::{Place, Places};
use cranelift_naplespu::shape::{Shape, is_split, register_type};
use npu_mc::Reg;
use npu_mc::machine::{self, WORD_SLOT as WORD};
use npu_sim::{Machine, MemoryFull, THREADS};

/// The number of lanes of a vector register.
const LANES: usize = machine::LANES as usize;

/// The size in bytes of the largest [`DataValue`].
const VALUE_SIZE: usize = 16;

/// The fill byte of undefined bits. It is not zero, so that code that relies on zeros fails.
const NOTHING: u8 = 0xa5;

/// Returns the types of the host values for a value of this type: the type itself, or the lanes of
/// a vector that has no [`DataValue`].
pub fn host_types(ty: Type) -> impl Iterator<Item = Type> {
    let lanes = ty.is_vector() && ty.bytes() as usize > VALUE_SIZE;
    let (ty, count) = if lanes {
        (ty.lane_type(), ty.lane_count() as usize)
    } else {
        (ty, 1)
    };
    std::iter::repeat_n(ty, count)
}

/// Returns whether host values match a list of types.
pub(super) fn fit(types: impl Iterator<Item = Type>, values: &[DataValue]) -> bool {
    let types: Vec<Type> = types.flat_map(host_types).collect();
    // A vector value has only a size, no lane type.
    let fits = |ty: Type, value: &DataValue| {
        let given = value.ty();
        ty == given || ty.is_vector() && given.is_vector() && ty.bytes() == given.bytes()
    };
    types.len() == values.len() && types.iter().zip(values).all(|(ty, value)| fits(*ty, value))
}

/// Returns whether the host can pass and receive values of the type.
pub(super) fn is_value_type(ty: Type) -> bool {
    !ty.is_dynamic_vector() && Shape::of(ty).is_some()
}

/// Returns whether values of the type are in vector registers.
fn is_vector(ty: Type) -> bool {
    register_type(ty).is_some()
}

/// Returns the lanes of each register of a vector, from one value or from its lanes. Upper bits of
/// narrow lanes and unused lanes are undefined.
fn lanes_of(ty: Type, values: &[DataValue]) -> Vec<[u32; LANES]> {
    let width = ty.lane_bits() as usize / 8;
    let mut bytes = vec![0; ty.bytes() as usize];
    let each = bytes.len() / values.len().max(1);
    for (value, place) in values.iter().zip(bytes.chunks_exact_mut(each.max(1))) {
        value.write_to_slice_le(place);
    }
    let registers = bytes.chunks(width * LANES).map(|bytes| {
        let mut lanes = [u32::from_le_bytes([NOTHING; 4]); LANES];
        for (lane, bytes) in lanes.iter_mut().zip(bytes.chunks_exact(width)) {
            let mut word = [NOTHING; 4];
            word[..width].copy_from_slice(bytes);
            *lane = u32::from_le_bytes(word);
        }
        lanes
    });
    registers.collect()
}

/// Converts the bytes of a vector to host values.
fn values_of(ty: Type, bytes: &[u8]) -> Vec<DataValue> {
    let types: Vec<Type> = host_types(ty).collect();
    let each = bytes.len() / types.len();
    types
        .into_iter()
        .zip(bytes.chunks_exact(each))
        .map(|(ty, bytes)| DataValue::read_from_slice_le(bytes, ty))
        .collect()
}

/// Returns the size of a lane, and of the words that it occupies, in bytes.
fn lane_bytes(ty: Type) -> (usize, usize) {
    let size = ty.lane_type().bytes() as usize;
    (size, size.next_multiple_of(WORD as usize))
}

/// Returns the words of a vector that is passed by lanes, from one value or from its lanes.
fn split_words(ty: Type, values: &[DataValue]) -> Vec<u32> {
    let mut bytes = vec![0; ty.bytes() as usize];
    let each = bytes.len() / values.len().max(1);
    for (value, place) in values.iter().zip(bytes.chunks_exact_mut(each.max(1))) {
        value.write_to_slice_le(place);
    }
    let (size, padded) = lane_bytes(ty);
    let mut words = Vec::new();
    for lane in bytes.chunks_exact(size) {
        let mut own = lane.to_vec();
        own.resize(padded, NOTHING);
        words.extend(own.as_chunks().0.iter().map(|&word| u32::from_le_bytes(word)));
    }
    words
}

/// Converts the words of a vector that is passed by lanes to host values.
fn split_values(ty: Type, words: &[u32]) -> Vec<DataValue> {
    let (size, padded) = lane_bytes(ty);
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let lanes: Vec<u8> = bytes
        .chunks_exact(padded)
        .flat_map(|lane| lane[..size].to_vec())
        .collect();
    values_of(ty, &lanes)
}

/// The registers of a thread and its memory, as its core sees it.
#[derive(Debug)]
pub(super) struct ThreadPlaces<'a> {
    pub machine: &'a mut Machine,
    pub thread: usize,
    /// The base address of offsets.
    pub base: u32,
}

impl ThreadPlaces<'_> {
    fn core(&self) -> usize {
        self.thread / THREADS
    }

    /// Reads the word in a location.
    pub(super) fn word(&self, place: Place) -> u32 {
        match place {
            Place::Reg(Reg::S(reg)) => self.machine.thread(self.thread).scalar(reg),
            // Words are never in vector registers.
            Place::Reg(Reg::V(_)) => 0,
            Place::Memory(offset) => {
                let mut word = [0; 4];
                let address = self.base.wrapping_add(offset);
                self.machine.read_as_core(self.core(), address, &mut word);
                u32::from_le_bytes(word)
            }
        }
    }

    /// Writes a word to a location.
    pub(super) fn set_word(&mut self, place: Place, word: u32) -> Result<(), MemoryFull> {
        match place {
            Place::Reg(Reg::S(reg)) => self.machine.thread_mut(self.thread).set_scalar(reg, word),
            Place::Reg(Reg::V(_)) => {}
            Place::Memory(offset) => {
                let (core, address) = (self.core(), self.base.wrapping_add(offset));
                self.machine.write_as_core(core, address, &word.to_le_bytes())?;
            }
        }
        Ok(())
    }

    fn lanes(&self, place: Place) -> [u32; LANES] {
        match place {
            Place::Reg(Reg::V(reg)) => self.machine.thread(self.thread).vector(reg).0,
            Place::Reg(Reg::S(_)) => [0; LANES],
            Place::Memory(offset) => std::array::from_fn(|lane| self.word(Place::Memory(offset + lane as u32 * WORD))),
        }
    }

    fn set_lanes(&mut self, place: Place, lanes: [u32; LANES]) -> Result<(), MemoryFull> {
        match place {
            Place::Reg(Reg::V(reg)) => {
                let thread = self.machine.thread_mut(self.thread);
                thread.set_vector(reg, npu_sim::Lanes(lanes));
            }
            Place::Reg(Reg::S(_)) => {}
            Place::Memory(offset) => {
                for (lane, at) in lanes.into_iter().zip(0..) {
                    self.set_word(Place::Memory(offset + at * WORD), lane)?;
                }
            }
        }
        Ok(())
    }

    /// Reads a value as host values.
    pub(super) fn get(&self, ty: Type, places: &[Place]) -> Vec<DataValue> {
        if is_vector(ty) {
            let lanes: Vec<u32> = places.iter().flat_map(|&place| self.lanes(place)).collect();
            let width = ty.lane_bits() as usize / 8;
            let used = lanes.iter().take(ty.lane_count() as usize);
            let bytes: Vec<u8> = used
                .flat_map(|lane| lane.to_le_bytes().into_iter().take(width))
                .collect();
            return values_of(ty, &bytes);
        }
        let words = places.iter().map(|&place| self.word(place));
        if is_split(ty) {
            return split_values(ty, &words.collect::<Vec<_>>());
        }
        let mut bytes = [0; VALUE_SIZE];
        for (word, bytes) in words.zip(bytes.as_chunks_mut().0) {
            *bytes = word.to_le_bytes();
        }
        vec![DataValue::read_from_slice_le(&bytes, ty)]
    }

    /// Reads a list of values as host values.
    pub(super) fn get_all(&self, types: impl Iterator<Item = Type>, places: &[Places]) -> Vec<DataValue> {
        types
            .zip(places)
            .flat_map(|(ty, places)| self.get(ty, places))
            .collect()
    }

    /// Writes host values to the locations of a value.
    pub(super) fn set(&mut self, ty: Type, places: &[Place], values: &[DataValue]) -> Result<(), MemoryFull> {
        let Some(first) = values.first() else { return Ok(()) };
        if is_vector(ty) {
            for (&place, lanes) in places.iter().zip(lanes_of(ty, values)) {
                self.set_lanes(place, lanes)?;
            }
            return Ok(());
        }
        let words = if is_split(ty) {
            split_words(ty, values)
        } else {
            let mut bytes = [NOTHING; VALUE_SIZE];
            first.write_to_slice_le(&mut bytes);
            bytes
                .as_chunks()
                .0
                .iter()
                .map(|&word| u32::from_le_bytes(word))
                .collect()
        };
        for (&place, word) in places.iter().zip(words) {
            self.set_word(place, word)?;
        }
        Ok(())
    }

    /// Writes host values to the locations of a list of values.
    pub(super) fn set_all(
        &mut self,
        types: impl Iterator<Item = Type>,
        places: &[Places],
        mut values: &[DataValue],
    ) -> Result<(), MemoryFull> {
        for (ty, places) in types.zip(places) {
            let (own, rest) = values.split_at(host_types(ty).count().min(values.len()));
            values = rest;
            self.set(ty, places, own)?;
        }
        Ok(())
    }
}
