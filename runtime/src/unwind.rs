//! The words of the unwind table, which `npu_throw` reads; `runtime/unwind.clif` describes its use.
//!
//! A frame has [`FRAME_WORDS`] words: start and end of the function, the frame size in bytes, the
//! offset of the return address in it, the bytes of stack arguments that the function removes, and
//! the address of its calls, or zero. The calls are a list terminated by zero. A call has its
//! return address, the bytes of removed arguments, the number of handlers, and a tag and an address
//! for each handler.

use cranelift_naplespu::code::{CompiledCode, ExceptionHandler};
use npu_mc::reloc::elf::UNWIND_NONE;
use npu_mc::{Reg, SReg};

/// The number of words of a frame: five from [`frame`], and the address of the calls.
pub const FRAME_WORDS: u32 = npu_mc::reloc::elf::UNWIND_FRAME_WORDS as u32;

/// The tag of a handler of all exceptions, and the offset of a return address that is not saved.
const NONE: u32 = UNWIND_NONE as u32;

/// A word of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// A number.
    Number(u32),
    /// The address at this offset in the function.
    Code(u32),
}

/// Returns the words of a function's frame, except the address of its calls.
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

/// Returns the offset of the saved return address in bytes above the stack pointer of the body.
/// Returns `None` for a leaf function, which exceptions never unwind.
pub fn return_address(code: &CompiledCode) -> Option<u32> {
    let mut saved = code.frame.saved.iter();
    let found = saved.find(|(reg, _)| *reg == Reg::S(SReg::RA));
    found.map(|&(_, offset)| offset)
}

/// Returns the words of the calls of a function, with the terminating zero; empty if it has none.
pub fn calls(code: &CompiledCode) -> Vec<Word> {
    let mut words = Vec::new();
    for site in &code.call_sites {
        // Only the tag selects a handler; contexts have a meaning only for other unwinders.
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
