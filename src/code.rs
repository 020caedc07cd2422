//! The result of a compilation: bytes and everything a loader, a debugger or a test wants to know about them.

use crate::passes::Stage;
use crate::remarks::LoopRemark;
use cranelift_codegen::ir::{self, ExceptionTag, ExternalName, SourceLoc, TrapCode, ValueLabel};
use std::collections::HashMap;

/// Machine code of one function.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CompiledCode {
    /// Instruction words, little-endian, and constants after them; a multiple of four bytes. If there are constants, the code
    /// has to be aligned to 64 bytes.
    pub bytes: Vec<u8>,
    /// Where the instructions end and the constants begin, aligned to 64 bytes if there are any.
    pub pool_start: u32,
    /// Places in `bytes` that wait for the address of a symbol, by rising offset.
    pub relocs: Vec<Reloc>,
    /// Instructions that may stop the thread on purpose, by rising offset.
    pub traps: Vec<Trap>,
    /// Which CLIF source location each stretch of code comes from, by rising offset, without gaps or overlaps between known locations.
    pub srclocs: Vec<SrcLocRange>,
    /// Which CLIF instruction each stretch of code comes from: the offset where it starts, by rising offset. `None` for what
    /// belongs to no instruction.
    pub insts: Vec<(u32, Option<ir::Inst>)>,
    /// Where the labelled values of the function live, and for which code offsets.
    pub value_labels_ranges: HashMap<ValueLabel, Vec<LabelRange>>,
    /// For each call with a user stack map where the live references are, by rising offset.
    pub stack_maps: Vec<StackMap>,
    /// The calls of which unwinding has to know more than that they are calls, by rising offset.
    pub call_sites: Vec<CallSite>,
    /// Debug tags of calls and sequence points, by rising offset.
    pub debug_tags: Vec<DebugTags>,
    /// The stack frame.
    pub frame: FrameLayout,
    /// Code offset of the start of each basic block, in layout order.
    pub block_starts: Vec<u32>,
    /// Text of the requested stages (see [`crate::Isa::compile_with_stages`]), in the order of the pipeline.
    pub stages: Vec<(Stage, String)>,
    /// What became of the innermost loops, where the pass that vectorises them ran.
    pub loops: Vec<LoopRemark>,
}

impl CompiledCode {
    /// The code and the constants after it: what has to be in memory, once the relocations are applied.
    pub fn code_buffer(&self) -> &[u8] {
        &self.bytes
    }

    /// The CLIF instruction that the code at an offset comes from.
    pub fn inst_at(&self, offset: u32) -> Option<ir::Inst> {
        let after = self.insts.partition_point(|&(start, _)| start <= offset);
        self.insts.get(after.checked_sub(1)?)?.1
    }

    /// The source location that the code at an offset comes from.
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
    /// What is addressed.
    pub target: RelocTarget,
    /// Constant added to the symbol's address, in bytes.
    pub addend: i64,
}

/// The symbol of a relocation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RelocTarget {
    /// A function or data object as CLIF names it. User names are resolved through the function's own table.
    Name(ExternalName),
    /// The start of the function itself.
    Function,
    /// A routine of the runtime, by name without `%`.
    Runtime(&'static str),
}

/// An instruction that stops the thread with a trap code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trap {
    /// Byte offset of the branch that leads to the trap.
    pub offset: u32,
    /// The reason.
    pub code: TrapCode,
    /// The CLIF instruction that traps.
    pub inst: Option<ir::Inst>,
    /// Its source location; the default one if it has none.
    pub srcloc: SourceLoc,
}

/// A stretch of code with one source location.
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

/// Where the garbage-collected values of a frame are while a call is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StackMap {
    /// The address that the callee returns to.
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
    /// Where it is: bytes above the stack pointer as it is in the body of the function, and at the callee's entry.
    pub offset: u32,
}

/// A call at which exceptions can be caught, or whose callee removes stack arguments.
///
/// A frame whose callee has returned, or been left by an exception, has its `sp` back when `popped` is taken away from where the
/// callee's `sp` was at its entry plus [`FrameLayout::popped`] of the callee. The caller of that frame is where the saved `ra` says, and
/// the frame's own `sp` at entry was its `sp` plus [`FrameLayout::size`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallSite {
    /// The address that the callee returns to.
    pub return_offset: u32,
    /// Bytes of stack arguments that the callee removes.
    pub popped: u32,
    /// The handlers, in the order in which they are asked.
    pub handlers: Vec<ExceptionHandler>,
}

/// An exception handler, by the offset of its code, or the context of some. There, the first registers for arguments have what the exception carries, the next one
/// the `sp` of the frame; nothing else is expected in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExceptionHandler {
    /// For exceptions with this tag.
    Tag(ExceptionTag, u32),
    /// For all.
    Default(u32),
    /// No handler: where the context of those behind it is, up to the next context. In bytes above the stack pointer as it is in the body of
    /// the function.
    Context(u32),
}

/// Debug tags, which the compiler hands on without a look.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DebugTags {
    /// The place they are attached to.
    pub offset: u32,
    /// Which side of the place.
    pub pos: DebugTagPos,
    /// The tags. Where a stack slot is, [`FrameLayout::stack_slots`] tells.
    pub tags: Vec<ir::DebugTag>,
}

/// To which side of a place debug tags belong. At the same offset, a return address and the instruction that follows the
/// call may each have their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DebugTagPos {
    /// The instruction that ends here: a call, by its return address.
    Post,
    /// The instruction that starts here: a sequence point, or the jump of a tail call.
    Pre,
}

/// Where a labelled value is during a stretch of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LabelRange {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
    /// The place.
    pub loc: LabelLoc,
}

/// Place of a labelled value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LabelLoc {
    /// In a register.
    Reg(npu_mc::Reg),
    /// In memory, at this many bytes above the stack pointer as it is after the prologue.
    Stack(i32),
}

/// The stack frame, from high to low addresses; all sizes in bytes (`docs/abi.md`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FrameLayout {
    /// Distance from the stack pointer in the body to the stack pointer at entry: the whole frame, 0 when there is none.
    pub size: u32,
    /// Bytes of arguments that the caller left above the frame.
    pub incoming_args: u32,
    /// Bytes at the top of the frame that are kept for stack arguments of tail calls, which need more room than the
    /// function's own.
    pub tail_args: u32,
    /// How much higher the stack pointer is when the function returns: with the convention `tail`, it removes its stack
    /// arguments.
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
