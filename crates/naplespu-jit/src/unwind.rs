//! The table by which the routine `npu_throw` leaves frames and finds handlers: `runtime/unwind.clif` says what it looks like.

use super::NpuModule;
use super::error::LinkError;
use super::link::Target;
use cranelift_naplespu::code::{CompiledCode, ExceptionHandler};
use naplespu_runtime::UNWIND_TABLE;
use npu_mc::machine::WORD_SLOT as WORD;
use npu_mc::{Reg, SReg};

/// The tag of a handler that catches everything, and the place of a return address that is not saved.
const NONE: u32 = u32::MAX;

/// What is known of the table in memory.
#[derive(Debug, Default)]
pub(super) struct UnwindTable {
    /// Whether functions came or went since it was written.
    pub(super) is_stale: bool,
    /// The memory that it has.
    blocks: Vec<u32>,
}

impl NpuModule {
    /// Writes the table anew if there is one and functions came or went.
    pub(super) fn fill_unwind_table(&mut self) -> Result<(), LinkError> {
        let target = Target::Runtime(UNWIND_TABLE.to_owned());
        let Some(header) = self.address_of(&target).filter(|_| self.unwind.is_stale) else {
            return Ok(());
        };
        let mut functions: Vec<(u32, &CompiledCode)> = Vec::with_capacity(self.code.len());
        for (&index, code) in &self.code {
            functions.extend(self.linker.object(index).map(|object| (object.address, code)));
        }
        functions.sort_by_key(|&(address, _)| address);
        // The calls of all functions, and where those of each start among them.
        let mut calls = Vec::new();
        let mut list: Vec<([u32; 5], Option<usize>)> = Vec::with_capacity(functions.len());
        for (address, code) in functions {
            let start = (!code.call_sites.is_empty()).then_some(calls.len());
            list.push((frame(address, code), start));
            add_calls(&mut calls, address, code);
        }
        for block in std::mem::take(&mut self.unwind.blocks) {
            self.free(block)?;
        }
        let calls_address = self.allocate(bytes_of(calls.len()), WORD)?;
        self.unwind.blocks.push(calls_address);
        let mut words = Vec::with_capacity(6 * list.len());
        for (frame, start) in &list {
            words.extend(frame);
            words.push(start.map_or(0, |start| calls_address + start as u32 * WORD));
        }
        let address = self.allocate(bytes_of(words.len()), WORD)?;
        self.unwind.blocks.push(address);
        self.write_words(calls_address, &calls)?;
        self.write_words(address, &words)?;
        self.write_words(header, &[list.len() as u32, address])?;
        self.unwind.is_stale = false;
        Ok(())
    }
}

/// The bytes of so many words; one word at least, so that there is something to allocate.
fn bytes_of(words: usize) -> u32 {
    // The device's memory holds no more than 32 bits can count.
    (words.max(1) as u32).saturating_mul(WORD)
}

/// What the table has of a function but its calls: start, end, size of the frame, place of the return address, removed arguments.
fn frame(address: u32, code: &CompiledCode) -> [u32; 5] {
    let frame = &code.frame;
    let saved = frame.saved.iter().find(|(reg, _)| *reg == Reg::S(SReg::RA));
    let saved = saved.map_or(NONE, |&(_, offset)| offset);
    [address, address + code.pool_start, frame.size, saved, frame.popped]
}

/// Adds the calls of a function that the table has, and the zero at their end.
fn add_calls(calls: &mut Vec<u32>, address: u32, code: &CompiledCode) {
    if code.call_sites.is_empty() {
        return;
    }
    for site in &code.call_sites {
        // A tag alone decides: what a context means is known to whoever has an unwinder of its own.
        let handlers = site.handlers.iter().filter_map(|handler| match *handler {
            ExceptionHandler::Tag(tag, offset) => Some([tag.as_u32(), address + offset]),
            ExceptionHandler::Default(offset) => Some([NONE, address + offset]),
            ExceptionHandler::Context(_) => None,
        });
        let handlers: Vec<[u32; 2]> = handlers.collect();
        calls.extend([address + site.return_offset, site.popped, handlers.len() as u32]);
        calls.extend(handlers.into_iter().flatten());
    }
    calls.push(0);
}
