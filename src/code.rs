//! The result of a compilation: the bytes, and the metadata for loaders, debuggers and tests.

use crate::passes::Stage;
use crate::remarks::LoopRemark;
use cranelift_codegen::ir::{self, ExceptionTag, ExternalName, SourceLoc, TrapCode, ValueLabel};
use std::collections::HashMap;

/// The machine code of a function.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CompiledCode {
    /// Instruction words, little-endian, followed by constants. The length is a multiple of four
    /// bytes. If there are constants, the code must be aligned to 64 bytes.
    pub bytes: Vec<u8>,
    /// The offset at which the instructions end and the constants begin. It is a multiple of 64 if
    /// there are constants.
    pub pool_start: u32,
    /// The relocations in `bytes`, by rising offset.
    pub relocs: Vec<Reloc>,
    /// Instructions that may stop the thread intentionally, by rising offset.
    pub traps: Vec<Trap>,
    /// The CLIF source location of each range of code, by rising offset. The ranges do not overlap,
    /// and code without a source location is in none of them.
    pub srclocs: Vec<SrcLocRange>,
    /// The CLIF instruction of each range of code, with the start of the range, by rising offset.
    /// `None` for code of no CLIF instruction.
    pub insts: Vec<(u32, Option<ir::Inst>)>,
    /// The locations of labelled values, with ranges of code offsets.
    pub value_labels_ranges: HashMap<ValueLabel, Vec<LabelRange>>,
    /// For each call with a user stack map: the locations of its live references, by rising offset.
    pub stack_maps: Vec<StackMap>,
    /// The calls with additional unwind information, by rising offset.
    pub call_sites: Vec<CallSite>,
    /// Debug tags of calls and sequence points, by rising offset.
    pub debug_tags: Vec<DebugTags>,
    /// The stack frame.
    pub frame: FrameLayout,
    /// Code offset of the start of each basic block, in layout order.
    pub block_starts: Vec<u32>,
    /// Text of the requested stages ([`crate::Isa::compile_with_stages`]), in the order of the
    /// pipeline.
    pub stages: Vec<(Stage, String)>,
    /// Remarks on the innermost loops, if the vectorizer ran.
    pub loops: Vec<LoopRemark>,
}

impl CompiledCode {
    /// Returns the code and the constants after it, as they must be in memory after relocation.
    pub fn code_buffer(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the CLIF instruction of the code at an offset.
    pub fn inst_at(&self, offset: u32) -> Option<ir::Inst> {
        let after = self.insts.partition_point(|&(start, _)| start <= offset);
        self.insts.get(after.checked_sub(1)?)?.1
    }

    /// Returns the source location of the code at an offset.
    pub fn srcloc_at(&self, offset: u32) -> Option<SourceLoc> {
        let after = self.srclocs.partition_point(|range| range.start <= offset);
        let range = self.srclocs.get(after.checked_sub(1)?)?;
        (offset < range.end).then_some(range.loc)
    }
}

/// A relocation: `kind` applied at `offset` to symbol + addend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reloc {
    /// Byte offset of the instruction word in the function.
    pub offset: u32,
    /// Relocation type (`td/NaplesPURelocs.td`).
    pub kind: npu_mc::reloc::Reloc,
    /// The symbol.
    pub target: RelocTarget,
    /// Constant added to the symbol's address, in bytes.
    pub addend: i64,
}

/// The symbol of a relocation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RelocTarget {
    /// A function or data object by its CLIF name. User names are resolved through the function's
    /// own table.
    Name(ExternalName),
    /// The start of the function itself.
    Function,
    /// A routine of the runtime, by its name without `%`.
    Runtime(&'static str),
}

/// An instruction that stops the thread with a trap code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trap {
    /// Byte offset of the branch to the trap.
    pub offset: u32,
    /// The trap code.
    pub code: TrapCode,
    /// The CLIF instruction that traps.
    pub inst: Option<ir::Inst>,
    /// Its source location, or the default one if it has none.
    pub srcloc: SourceLoc,
}

/// A range of code with one source location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SrcLocRange {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
    /// The location.
    pub loc: SourceLoc,
}

/// The locations of garbage-collected values of a frame during a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StackMap {
    /// The return address.
    pub return_offset: u32,
    /// The values, in the order of the CLIF instruction.
    pub entries: Vec<StackMapEntry>,
}

/// A value in a stack map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StackMapEntry {
    /// Its type.
    pub ty: ir::Type,
    /// Its location, in bytes above the stack pointer in the body of the function, which is also
    /// the stack pointer at the callee's entry.
    pub offset: u32,
}

/// A call that catches exceptions, or whose callee removes stack arguments.
///
/// To restore the `sp` of a frame whose callee has returned, or was left by an exception, take the
/// callee's `sp` at its entry, add [`FrameLayout::popped`] of the callee and subtract `popped`. The
/// saved `ra` identifies the caller of the frame, and the `sp` of the frame at entry was its `sp`
/// plus [`FrameLayout::size`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallSite {
    /// The return address.
    pub return_offset: u32,
    /// Bytes of stack arguments that the callee removes.
    pub popped: u32,
    /// The handlers, in the order in which they are tried.
    pub handlers: Vec<ExceptionHandler>,
}

/// An exception handler with the offset of its code, or the context of the handlers after it.
///
/// At the start of a handler, the first argument registers contain the payload of the exception,
/// and the next argument register contains the `sp` of the frame. The handler expects no other
/// values in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExceptionHandler {
    /// A handler for exceptions with this tag.
    Tag(ExceptionTag, u32),
    /// A handler for all exceptions.
    Default(u32),
    /// The context of the handlers up to the next context, as bytes above the stack pointer in the
    /// body of the function. It is not a handler.
    Context(u32),
}

/// Debug tags, which the compiler passes through unchanged.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DebugTags {
    /// The offset to which they are attached.
    pub offset: u32,
    /// The side of the offset to which they belong.
    pub pos: DebugTagPos,
    /// The tags. [`FrameLayout::stack_slots`] contains the location of a stack slot.
    pub tags: Vec<ir::DebugTag>,
}

/// The side of an offset to which debug tags belong. A return address and the instruction after the
/// call have the same offset and may each have tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DebugTagPos {
    /// The instruction that ends here: a call, by its return address.
    Post,
    /// The instruction that starts here: a sequence point, or the jump of a tail call.
    Pre,
}

/// The location of a labelled value in a range of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LabelRange {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
    /// The location.
    pub loc: LabelLoc,
}

/// A location of a labelled value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LabelLoc {
    /// A register.
    Reg(npu_mc::Reg),
    /// Memory at this many bytes above the stack pointer after the prologue.
    Stack(i32),
}

/// The stack frame, from high to low addresses. All sizes are in bytes (`docs/abi.md`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FrameLayout {
    /// Distance from the stack pointer in the body to the stack pointer at entry: the whole frame.
    /// 0 without a frame.
    pub size: u32,
    /// Bytes of arguments that the caller stored above the frame.
    pub incoming_args: u32,
    /// Bytes at the top of the frame for stack arguments of tail calls that need more room than the
    /// function's own.
    pub tail_args: u32,
    /// The increase of the stack pointer from entry to return: with the convention `tail`, the
    /// function removes its stack arguments.
    pub popped: u32,
    /// Saved registers with their offset from the stack pointer in the body, in save order.
    pub saved: Vec<(npu_mc::Reg, u32)>,
    /// Offset of the spill area from the stack pointer in the body, and its size.
    pub spills: (u32, u32),
    /// Offset of each stack slot of the function from the stack pointer in the body.
    pub stack_slots: Vec<u32>,
    /// Size of the area for outgoing arguments at the bottom of the frame.
    pub outgoing_args: u32,
    /// Whether `fp` is set up.
    pub frame_pointer: bool,
}
