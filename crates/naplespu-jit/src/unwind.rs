//! The table for `npu_throw`, which unwinds frames and finds handlers. `naplespu_runtime::unwind`
//! computes its words.

use super::error::LinkError;
use super::npu_module::NpuModule;
use cranelift_naplespu::code::CompiledCode;
use naplespu_object::front::Target;
use naplespu_runtime::UNWIND_TABLE;
use naplespu_runtime::unwind::{FRAME_WORDS, Word, calls, frame};
use npu_mc::machine::WORD_SLOT as WORD;

/// The state of the table in memory.
#[derive(Debug, Default)]
pub(super) struct UnwindTable {
    /// Whether functions were added or removed since it was written.
    pub(super) is_stale: bool,
    /// Its memory.
    blocks: Vec<u32>,
}

impl NpuModule {
    /// Rewrites the table if it exists and functions were added or removed.
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
        // The calls of all functions, and the start of each function's calls among them.
        let mut all_calls = Vec::new();
        let mut list: Vec<([u32; 5], Option<usize>)> = Vec::with_capacity(functions.len());
        for (address, code) in functions {
            let own = calls(code);
            list.push((
                frame(code).map(at(address)),
                (!own.is_empty()).then_some(all_calls.len()),
            ));
            all_calls.extend(own.into_iter().map(at(address)));
        }
        for block in std::mem::take(&mut self.unwind.blocks) {
            self.free(block)?;
        }
        let calls_address = self.allocate(bytes_of(all_calls.len()), WORD)?;
        self.unwind.blocks.push(calls_address);
        let mut words = Vec::with_capacity(FRAME_WORDS as usize * list.len());
        for (frame, start) in &list {
            words.extend(frame);
            words.push(start.map_or(0, |start| calls_address + start as u32 * WORD));
        }
        let address = self.allocate(bytes_of(words.len()), WORD)?;
        self.unwind.blocks.push(address);
        self.write_words(calls_address, &all_calls)?;
        self.write_words(address, &words)?;
        self.write_words(header, &[list.len() as u32, address])?;
        self.unwind.is_stale = false;
        Ok(())
    }
}

/// Returns the size of this many words in bytes, at least one word: allocations are not empty.
fn bytes_of(words: usize) -> u32 {
    // The device's memory is smaller than 2^32 bytes, so the size fits.
    (words.max(1) as u32).saturating_mul(WORD)
}

/// Returns the words of a function at an address.
fn at(address: u32) -> impl Fn(Word) -> u32 {
    move |word| match word {
        Word::Number(number) => number,
        Word::Code(offset) => address + offset,
    }
}
