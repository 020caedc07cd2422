//! The machine instructions of the VCode: the output of lowering and the input of register
//! allocation.
//!
//! Most instructions are [`MInst::Op`], one machine instruction whose td record contains its
//! operands, latency and flags. The other variants have no such record: instructions with a frame
//! address that is not final yet, branches to blocks, calls, and short sequences that register
//! allocation must treat as one instruction.

pub mod map;
pub mod operands;
pub mod ops;
pub mod print;
pub mod reg;

use crate::code::RelocTarget;
use cranelift_codegen::ir::{ExceptionTag, StackSlot, TrapCode};
use npu_mc::Opcode;
use reg::Reg;
use regalloc2::PRegSet;
use smallvec::SmallVec;

/// An instruction of the VCode. Its registers are virtual before register allocation and machine
/// registers after it.
#[derive(Clone, Debug)]
pub enum MInst {
    /// One machine instruction on registers and an immediate.
    Op {
        /// The instruction.
        op: Opcode,
        /// The register written, if it writes one.
        dst: Option<Reg>,
        /// The registers read, in the order of the td record. The old value of a tied destination
        /// comes last.
        srcs: Srcs,
        /// The immediate operand; 0 if it has none.
        imm: i32,
    },
    /// A load from memory into `dst`.
    Load {
        /// The instruction.
        op: Opcode,
        /// The register loaded.
        dst: Reg,
        /// The address.
        addr: AMode,
    },
    /// A store of `src` to memory.
    Store {
        /// The instruction.
        op: Opcode,
        /// The register stored.
        src: Reg,
        /// The address.
        addr: AMode,
    },
    /// `dst` := `src`, both of the same class.
    Move {
        /// The register written.
        dst: Reg,
        /// The register read.
        src: Reg,
    },
    /// `dst` := a constant, in one instruction if possible.
    Const {
        /// The register written.
        dst: Reg,
        /// The value.
        value: u32,
    },
    /// `dst` := a vector of the function's constant pool.
    PoolLoad {
        /// The register written.
        dst: Reg,
        /// The index of the vector.
        index: u32,
    },
    /// An operation on the lanes of a mask: sets `rm`, executes the operation, and sets `rm` to all
    /// ones again.
    Masked {
        /// The lanes.
        mask: LaneMask,
        /// The masked form of the instruction.
        op: Opcode,
        /// The register written.
        dst: Reg,
        /// The registers read. The register with the old values of the other lanes comes last.
        srcs: Srcs,
        /// The immediate operand; 0 if it has none.
        imm: i32,
    },
    /// A store of the lanes of a mask: sets `rm`, stores, and sets `rm` to all ones again.
    MaskedStore {
        /// The lanes. In a register, the bits above bit 15 are zero.
        mask: LaneMask,
        /// The masked form of the instruction.
        op: Opcode,
        /// The register stored.
        src: Reg,
        /// The address.
        addr: AMode,
    },
    /// `dst` := the address of a symbol.
    SymbolAddr {
        /// The register written.
        dst: Reg,
        /// The symbol.
        target: RelocTarget,
        /// The constant added to its address.
        addend: i64,
    },
    /// `dst` := an address.
    Address {
        /// The register written.
        dst: Reg,
        /// The address.
        addr: AMode,
    },
    /// Each `dst` := `cond` ? `if_true` : `if_false`, by one branch over moves. `dst` and `if_true`
    /// share a register.
    Select {
        /// The condition.
        cond: Cond,
        /// The selected values, one entry for each word.
        words: SmallVec<[SelectWord; 1]>,
    },
    /// Stops the thread with a trap code if the condition holds.
    TrapIf {
        /// The condition.
        cond: Cond,
        /// The reason.
        code: TrapCode,
    },
    /// Stops the thread.
    Trap {
        /// The reason.
        code: TrapCode,
    },
    /// Stops the thread. A debugger may resume it at the next instruction.
    DebugTrap {
        /// Scratch registers.
        tmps: [Reg; 2],
    },
    /// The arguments that arrive in registers.
    Args {
        /// Virtual registers, each with the argument register in which its value arrives.
        defs: Vec<(Reg, npu_mc::Reg)>,
    },
    /// Returns with values in registers.
    Return {
        /// Virtual registers, each with its result register.
        uses: Vec<(Reg, npu_mc::Reg)>,
    },
    /// A call.
    Call(Box<CallInfo>),
    /// A tail call: the frame of the function is removed before the callee starts.
    ReturnCall(Box<CallInfo>),
    /// A call that ends its block. Control continues at the last successor when the callee returns,
    /// and at one of the others when a handler catches an exception.
    TryCall(Box<TryCallInfo>),
    /// `dst` := the address of a block.
    BlockAddress {
        /// The register written.
        dst: Reg,
        /// The index of the block.
        block: usize,
    },
    /// A jump to the only successor of the block.
    Jump,
    /// A branch to the first successor if the condition holds, and to the second otherwise.
    CondBr {
        /// The condition.
        cond: Cond,
    },
    /// A jump to the successor that `entries` contains at `index`, or to successor 0 if `index` is
    /// out of range.
    BrTable {
        /// The index, an unsigned 32-bit number.
        index: Reg,
        /// A scratch register.
        tmp: Reg,
        /// A scratch register.
        base: Reg,
        /// The successor number of each table entry.
        entries: Vec<u32>,
        /// Whether the index is known to be in range.
        bounded: bool,
    },
    /// `dst` := the return address.
    ReturnAddress {
        /// The register written.
        dst: Reg,
    },
    /// Copies a structure to an area of the frame, in a loop.
    Copy {
        /// The area.
        area: u32,
        /// The address of the structure.
        src: Reg,
        /// Its size in bytes, at least one word.
        size: u32,
        /// Whether the structure is known to be word-aligned.
        aligned: bool,
        /// Scratch registers.
        tmps: [Reg; 4],
    },
    /// Loads and stores are not moved across it. Emits nothing: a thread's accesses happen in
    /// program order.
    Fence,
    /// A location that debug tags refer to. Emits nothing.
    SequencePoint,
}

/// The number of lanes of a vector register.
pub const LANES: usize = npu_mc::machine::LANES as usize;

/// A mask of all lanes.
pub const ALL_LANES: u16 = u16::MAX;

/// A mask with one bit for each lane. The upper bits are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneMask<R = Reg> {
    /// In a scalar register.
    Reg(R),
    /// A constant mask.
    Lanes(u16),
}

/// One word of a select.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelectWord {
    /// The register written.
    pub dst: Reg,
    /// The value if the condition holds.
    pub if_true: Reg,
    /// The value otherwise.
    pub if_false: Reg,
}

/// Source registers of one instruction, at most three.
pub type Srcs = SmallVec<[Reg; 3]>;

/// A condition: a 32-bit register compared with zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cond<R = Reg> {
    /// The register that is compared.
    pub reg: R,
    /// Whether the condition is `reg != 0`; otherwise it is `reg == 0`.
    pub nonzero: bool,
}

impl<R> Cond<R> {
    /// Returns the opposite condition.
    pub fn inverted(self) -> Self {
        Self {
            reg: self.reg,
            nonzero: !self.nonzero,
        }
    }

    /// Returns the branch opcode that is taken if the condition holds.
    pub fn branch(self) -> Opcode {
        if self.nonzero { Opcode::BNEZ } else { Opcode::BEQZ }
    }
}

/// The instructions that access a number in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// One instruction.
    Plain,
    /// Byte by byte, the lowest byte first.
    Little,
    /// Byte by byte, the highest byte first.
    Big,
}

/// An address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AMode<R = Reg> {
    /// Register plus offset in bytes. The offset fits into the instruction.
    Reg {
        /// The base.
        base: R,
        /// The offset.
        offset: i32,
    },
    /// In a stack slot of the function.
    Slot {
        /// The slot.
        slot: StackSlot,
        /// Bytes from its start.
        offset: i32,
    },
    /// In the area of the stack arguments that the caller passed.
    Incoming {
        /// Bytes from its start.
        offset: i32,
    },
    /// In the area for the stack arguments of this function's calls.
    Outgoing {
        /// Bytes from its start.
        offset: i32,
    },
    /// In an area of the frame that lowering reserved, for example for results in memory.
    Local {
        /// The number of the area.
        area: u32,
        /// Bytes from its start.
        offset: i32,
    },
}

/// Virtual registers, each with the register that the calling convention assigns.
pub type CallRegs = SmallVec<[(Reg, npu_mc::Reg); 4]>;

/// The operands of a call.
#[derive(Clone, Debug)]
pub struct CallInfo {
    /// The callee.
    pub dest: CallDest,
    /// Arguments in registers.
    pub uses: CallRegs,
    /// Results in registers.
    pub defs: CallRegs,
    /// The registers that the call may change, without the results.
    pub clobbers: PRegSet,
    /// The bytes of stack arguments that the callee removes.
    pub popped: u32,
}

/// A call with exception handlers.
#[derive(Clone, Debug)]
pub struct TryCallInfo {
    /// The call. Its results include the registers of the exception payload.
    pub call: CallInfo,
    /// The handlers, in the order in which the unwinder tries them.
    pub handlers: SmallVec<[Handler; 2]>,
}

/// An exception handler of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handler {
    /// The tag of the exceptions that it catches. `None` catches all.
    pub tag: Option<ExceptionTag>,
    /// The number of the successor at which the handler starts.
    pub succ: usize,
    /// The area of the frame that contains its context.
    pub context: Option<u32>,
}

/// Target of a call.
#[derive(Clone, Debug)]
pub enum CallDest {
    /// A symbol within reach of a direct call.
    Near(RelocTarget),
    /// A symbol at any distance.
    Far(RelocTarget),
    /// An address in a register.
    Reg(Reg),
}

impl MInst {
    /// Returns whether this ends a block and continues at a successor.
    pub fn is_branch(&self) -> bool {
        matches!(
            self,
            Self::Jump | Self::CondBr { .. } | Self::BrTable { .. } | Self::TryCall(_)
        )
    }

    /// Returns whether this ends a block without successors.
    pub fn is_exit(&self) -> bool {
        matches!(self, Self::Return { .. } | Self::ReturnCall(_) | Self::Trap { .. })
    }
}
