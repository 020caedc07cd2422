//! Loads and stores of the fast interpreter.

use super::lanes;
use super::{Done, Exit, Port, Run};
use crate::hazard::word_bit;
use crate::mem_op::{alignment, lane_extension};
use crate::predecode::Op;
use crate::registers::{LANES, Lanes};
use npu_mc::raw::MemOp;

/// Returns whether an address is in the I/O space or in the few ordinary lines above it; the
/// definition distinguishes them.
#[inline(always)]
fn may_be_io(address: u32) -> bool {
    address >= npu_mc::machine::IO_BASE
}

/// Returns the words of a line as a set, by [`word_bit`].
#[inline(always)]
fn line_bits(address: u32) -> u64 {
    0xffff_u64.rotate_left(address >> 2 & 63)
}

impl<const WATCH: bool, P: Port> Run<'_, WATCH, P> {
    /// Returns the address of an access, if the fast path supports it.
    #[inline(always)]
    fn address(&self, op: &Op, alignment: u32) -> Result<u32, Exit> {
        let address = self.scalar(op.a).wrapping_add(op.imm as u32);
        if !address.is_multiple_of(alignment) || may_be_io(address) {
            return Err(Exit::Slow);
        }
        Ok(address)
    }

    /// Leaves if these words, by [`word_bit`], may have undriven bits.
    #[inline(always)]
    fn watch(&self, words: u64) -> Done {
        if WATCH && self.watched.memory & words != 0 {
            return Err(Exit::Slow);
        }
        Ok(())
    }

    #[inline(always)]
    pub(super) fn load<const N: usize>(&mut self, op: &Op, convert: impl Fn([u8; N]) -> u32) -> Done {
        let address = self.address(op, N as u32)?;
        self.watch(word_bit(address))?;
        let bytes = self.port.load::<N>(address).ok_or(Exit::Slow)?;
        self.can_be_lost();
        self.set(op, convert(bytes))
    }

    #[inline(always)]
    pub(super) fn store<const N: usize>(&mut self, op: &Op, convert: impl Fn(u32) -> [u8; N]) -> Done {
        let address = self.address(op, N as u32)?;
        self.watch(word_bit(address))?;
        self.stored(address, convert(self.scalar(op.d)))?;
        self.next()
    }

    #[inline(always)]
    fn stored<const N: usize>(&mut self, address: u32, bytes: [u8; N]) -> Done {
        if self.port.store(address, bytes) {
            Ok(())
        } else {
            Err(Exit::Slow)
        }
    }

    #[inline(always)]
    pub(super) fn load_word(&mut self, op: &Op) -> Done {
        let address = self.address(op, 4)?;
        let bytes = self.port.load::<4>(address).ok_or(Exit::Slow)?;
        self.can_be_lost();
        self.thread.scalars[usize::from(op.d)] = u32::from_le_bytes(bytes);
        self.word_moved(MemOp::Load32, op.d, address)
    }

    #[inline(always)]
    pub(super) fn store_word(&mut self, op: &Op) -> Done {
        let address = self.address(op, 4)?;
        self.stored(address, self.scalar(op.d).to_le_bytes())?;
        self.word_moved(MemOp::Store32, op.d, address)
    }

    /// Propagates undriven bits through a completed move of a word.
    #[inline(always)]
    fn word_moved(&mut self, kind: MemOp, register: u8, address: u32) -> Done {
        let has_undriven = self.watched.undriven >> (register & 63) & 1 != 0;
        if WATCH && (self.watched.memory & word_bit(address) != 0 || has_undriven) {
            self.thread.watch.word_moved(kind, register, address);
            self.watched.memory = self.thread.watch.memory();
            self.watched.undriven = self.thread.watch.undriven_scalars();
        }
        self.next()
    }

    #[inline(always)]
    pub(super) fn load_vector(&mut self, op: &Op) -> Done {
        let address = self.address(op, 64)?;
        self.watch(line_bits(address))?;
        let line = self.port.load::<64>(address).ok_or(Exit::Slow)?;
        self.can_be_lost();
        self.set_lanes(op, &from_line(&line))
    }

    #[inline(always)]
    pub(super) fn store_vector(&mut self, op: &Op) -> Done {
        let address = self.address(op, 64)?;
        self.watch(line_bits(address))?;
        self.stored(address, to_line(self.vector(op.d)))?;
        self.next()
    }

    /// Returns the operation and the address of an access to a packed vector.
    #[inline(always)]
    fn narrow_address(&self, op: &Op) -> Result<(MemOp, u32), Exit> {
        let kind = MemOp::from_code(op.b).ok_or(Exit::Slow)?;
        let address = self.address(op, alignment(kind))?;
        // The words of the line, and the words after it that the definition includes.
        self.watch(line_bits(address) | line_bits(address & !63))?;
        Ok((kind, address))
    }

    #[inline(always)]
    pub(super) fn load_narrow(&mut self, op: &Op) -> Done {
        let (kind, address) = self.narrow_address(op)?;
        let line = self.port.load::<64>(address & !63).ok_or(Exit::Slow)?;
        self.can_be_lost();
        self.set_lanes(op, &lanes::extend(lane_extension(kind), &from_line(&line)))
    }

    #[inline(always)]
    pub(super) fn store_narrow(&mut self, op: &Op) -> Done {
        let (kind, address) = self.narrow_address(op)?;
        let lanes = *self.vector(op.d);
        if kind == MemOp::StoreV16i8 {
            self.stored(address, lanes.0.map(|lane| lane as u8))?;
        } else {
            let mut bytes = [0; 2 * LANES];
            for (place, lane) in bytes.chunks_exact_mut(2).zip(lanes.0) {
                place.copy_from_slice(&(lane as u16).to_le_bytes());
            }
            self.stored(address, bytes)?;
        }
        self.next()
    }

    /// Returns the address of a word of the scratchpad.
    #[inline(always)]
    fn scratchpad_address(&self, op: &Op) -> Result<u32, Exit> {
        let address = self.scalar(op.a).wrapping_add(op.imm as u32);
        if address & 3 == 0 { Ok(address) } else { Err(Exit::Slow) }
    }

    #[inline(always)]
    pub(super) fn load_scratchpad(&mut self, op: &Op) -> Done {
        let address = self.scratchpad_address(op)?;
        self.set(op, u32::from_le_bytes(self.shared.scratchpad_load(address)))
    }

    #[inline(always)]
    pub(super) fn store_scratchpad(&mut self, op: &Op) -> Done {
        let address = self.scratchpad_address(op)?;
        let value = self.scalar(op.d);
        self.shared.scratchpad_store(address, value.to_le_bytes());
        self.next()
    }

    /// Returns 64 bytes of the scratchpad that do not wrap.
    #[inline(always)]
    fn scratchpad_line(&mut self, op: &Op) -> Result<&mut [u8; 64], Exit> {
        let address = self.scratchpad_address(op)?;
        if self.thread.mask == 0 {
            // The access never completes.
            return Err(Exit::Slow);
        }
        self.shared.scratchpad_line::<64>(address).ok_or(Exit::Slow)
    }

    #[inline(always)]
    pub(super) fn load_vector_scratchpad(&mut self, op: &Op) -> Done {
        let lanes = from_line(self.scratchpad_line(op)?);
        self.set_lanes(op, &lanes)
    }

    #[inline(always)]
    pub(super) fn store_vector_scratchpad(&mut self, op: &Op) -> Done {
        let (mask, new) = (self.thread.mask, *self.vector(op.d));
        let line = self.scratchpad_line(op)?;
        let mut lanes = from_line(line);
        lanes::write(&mut lanes, mask, &new);
        *line = to_line(&lanes);
        self.next()
    }
}

#[inline(always)]
fn from_line(line: &[u8; 64]) -> Lanes {
    let mut lanes = Lanes::default();
    for (lane, bytes) in lanes.0.iter_mut().zip(line.chunks_exact(4)) {
        *lane = bytes.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte));
    }
    lanes
}

#[inline(always)]
fn to_line(lanes: &Lanes) -> [u8; 64] {
    let mut line = [0; 64];
    for (bytes, lane) in line.chunks_exact_mut(4).zip(lanes.0) {
        bytes.copy_from_slice(&lane.to_le_bytes());
    }
    line
}
