//! What the routine that throws exceptions reads of each function: `runtime/unwind.clif` says how it uses it.
//!
//! A frame has [`FRAME_WORDS`] words: start, end, bytes of the frame, where the return address is in it, bytes of stack arguments that the function removes, and
//! the address of its calls, or zero. Its calls are a list that a zero ends; each is the address that it returns to, bytes of
//! arguments that were removed, the number of handlers, and for each handler a tag and an address.

use cranelift_naplespu::code::{CompiledCode, ExceptionHandler};
use npu_mc::reloc::elf::UNWIND_NONE;
use npu_mc::{Reg, SReg};

/// Words of a frame: five that [`frame`] gives, and the address of the calls.
pub const FRAME_WORDS: u32 = npu_mc::reloc::elf::UNWIND_FRAME_WORDS as u32;

/// The tag of a handler that catches everything, and the place of a return address that is not saved.
const NONE: u32 = UNWIND_NONE as u32;

/// A word of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// This number.
    Number(u32),
    /// The address so many bytes into the function.
    Code(u32),
}

/// What the table has of a function besides its calls.
pub fn frame(code: &CompiledCode) -> [Word; 5] {
    let frame = &code.frame;
    [
        Word::Code(0),
        Word::Code(code.pool_start),
        Word::Number(frame.size),
        Word::Number(return_address(code).unwrap_or(NONE)),
        Word::Number(frame.popped),
    ]
}

/// Where the function saves its return address, in bytes above the stack pointer of its body. One that does not calls nobody, and is left by no exception.
pub fn return_address(code: &CompiledCode) -> Option<u32> {
    let mut saved = code.frame.saved.iter();
    let found = saved.find(|(reg, _)| *reg == Reg::S(SReg::RA));
    found.map(|&(_, offset)| offset)
}

/// The calls of a function that the table has, with the zero at their end; nothing if there are none.
pub fn calls(code: &CompiledCode) -> Vec<Word> {
    let mut words = Vec::new();
    for site in &code.call_sites {
        // A tag alone decides: what a context means is known to whoever has an unwinder of its own.
        let handlers = site.handlers.iter().filter_map(|handler| match *handler {
            ExceptionHandler::Tag(tag, offset) => Some([Word::Number(tag.as_u32()), Word::Code(offset)]),
            ExceptionHandler::Default(offset) => Some([Word::Number(NONE), Word::Code(offset)]),
            ExceptionHandler::Context(_) => None,
        });
        let handlers: Vec<[Word; 2]> = handlers.collect();
        words.extend([
            Word::Code(site.return_offset),
            Word::Number(site.popped),
            Word::Number(handlers.len() as u32),
        ]);
        words.extend(handlers.into_iter().flatten());
    }
    if !words.is_empty() {
        words.push(Word::Number(0));
    }
    words
}
