//! Machine instructions of the VCode: what lowering produces and register allocation works on.
//!
//! Nearly everything is [`MInst::Op`], one instruction of the machine whose operands, latency and flags stand in its
//! td record. The other variants are what has no such record: instructions with a frame address that is not known
//! yet, branches to blocks, calls, and short sequences that register allocation must see as one.

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

/// An instruction of the VCode. Its registers are virtual ones up to register allocation, and those of the machine after it.
#[derive(Clone, Debug)]
pub enum MInst {
    /// One machine instruction on registers and an immediate.
    Op {
        /// The instruction.
        op: Opcode,
        /// The register written, if it writes one.
        dst: Option<Reg>,
        /// The registers read, in the order of the td record; a tied old value comes last.
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
    /// `dst` := `src`, of one class.
    Move {
        /// The register written.
        dst: Reg,
        /// The register read.
        src: Reg,
    },
    /// `dst` := the constant, in one instruction where one is enough.
    Const {
        /// The register written.
        dst: Reg,
        /// The value.
        value: u32,
    },
    /// `dst` := a vector of the function's pool.
    PoolLoad {
        /// The register written.
        dst: Reg,
        /// Which vector.
        index: u32,
    },
    /// One operation on the lanes of a mask: sets `rm`, works, and sets `rm` to all ones again.
    Masked {
        /// The lanes.
        mask: LaneMask,
        /// The masked form of the instruction.
        op: Opcode,
        /// The register written.
        dst: Reg,
        /// The registers read; the old value of the other lanes comes last.
        srcs: Srcs,
        /// The immediate operand; 0 if it has none.
        imm: i32,
    },
    /// A store of the lanes of a mask: sets `rm`, stores, and sets `rm` to all ones again.
    MaskedStore {
        /// The lanes. In a register, bits above the lanes are zero.
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
        /// Constant added to its address.
        addend: i64,
    },
    /// `dst` := the address itself.
    Address {
        /// The register written.
        dst: Reg,
        /// The address.
        addr: AMode,
    },
    /// Each `dst` := `cond` ? `if_true` : `if_false`, by one branch over moves. `dst` and `if_true` share a register.
    Select {
        /// The condition.
        cond: Cond,
        /// What is selected.
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
    /// Stops the thread; a debugger may let it go on behind.
    DebugTrap {
        /// Scratch.
        tmps: [Reg; 2],
    },
    /// The values that the caller put into registers.
    Args {
        /// Virtual register and the argument register it arrives in.
        defs: Vec<(Reg, npu_mc::Reg)>,
    },
    /// Return with values in registers.
    Return {
        /// Virtual register and the result register it leaves in.
        uses: Vec<(Reg, npu_mc::Reg)>,
    },
    /// A call.
    Call(Box<CallInfo>),
    /// A call that takes the place of the function: nothing of it is left when the callee starts.
    ReturnCall(Box<CallInfo>),
    /// A call that ends its block: to the last successor when the callee returns, to one of the others when an exception is caught.
    TryCall(Box<TryCallInfo>),
    /// `dst` := the address of the block with this index.
    BlockAddress {
        /// The register written.
        dst: Reg,
        /// Index of the block.
        block: usize,
    },
    /// To the only successor of the block.
    Jump,
    /// To the first successor if the condition holds, else to the second.
    CondBr {
        /// The condition.
        cond: Cond,
    },
    /// To successor `index + 1`, or to successor 0 if there is none such.
    BrTable {
        /// The index: a full 32-bit unsigned number.
        index: Reg,
        /// Scratch.
        tmp: Reg,
        /// Scratch.
        base: Reg,
        /// For each entry of the table, the successor.
        entries: Vec<u32>,
        /// Whether the index is known to be one of an entry.
        bounded: bool,
    },
    /// `dst` := the return address.
    ReturnAddress {
        /// The register written.
        dst: Reg,
    },
    /// Copies a structure to an area of the frame, by a loop.
    Copy {
        /// The area.
        area: u32,
        /// Where the structure is.
        src: Reg,
        /// Its size in bytes, at least a word.
        size: u32,
        /// Whether the structure is known to be aligned to a word.
        aligned: bool,
        /// Scratch.
        tmps: [Reg; 4],
    },
    /// Keeps loads and stores on their sides. Emits nothing: a thread's accesses happen in program order.
    Fence,
    /// A place that debug tags name. Emits nothing.
    SequencePoint,
}

/// Lanes of a vector register.
pub const LANES: usize = npu_mc::machine::LANES as usize;

/// All of them, as a mask.
pub const ALL_LANES: u16 = u16::MAX;

/// One bit per lane. Upper bits mean nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneMask<R = Reg> {
    /// In a scalar register.
    Reg(R),
    /// These lanes.
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
    /// The register.
    pub reg: R,
    /// Whether the condition holds when the register is not zero, or when it is.
    pub nonzero: bool,
}

impl<R> Cond<R> {
    /// The opposite condition.
    pub fn inverted(self) -> Self {
        Self {
            reg: self.reg,
            nonzero: !self.nonzero,
        }
    }

    /// The branch that is taken when the condition holds.
    pub fn branch(self) -> Opcode {
        if self.nonzero { Opcode::BNEZ } else { Opcode::BEQZ }
    }
}

/// How a number in memory is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// By one instruction.
    Plain,
    /// Byte by byte, the lowest first.
    Little,
    /// Byte by byte, the highest first.
    Big,
}

/// An address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AMode<R = Reg> {
    /// Register plus offset in bytes; the offset fits the instruction.
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
    /// In the area where the caller left stack arguments.
    Incoming {
        /// Bytes from its start.
        offset: i32,
    },
    /// In the area for arguments of the calls this function makes.
    Outgoing {
        /// Bytes from its start.
        offset: i32,
    },
    /// In an area that lowering reserved in the frame, such as the results of a call in memory.
    Local {
        /// Which area.
        area: u32,
        /// Bytes from its start.
        offset: i32,
    },
}

/// Virtual registers and the registers that a convention wants them in.
pub type CallRegs = SmallVec<[(Reg, npu_mc::Reg); 4]>;

/// Everything about a call.
#[derive(Clone, Debug)]
pub struct CallInfo {
    /// Who is called.
    pub dest: CallDest,
    /// Arguments in registers.
    pub uses: CallRegs,
    /// Results in registers.
    pub defs: CallRegs,
    /// Registers that hold garbage afterwards, results excluded.
    pub clobbers: PRegSet,
    /// Bytes of stack arguments that the callee removes.
    pub popped: u32,
}

/// Everything about a call with handlers.
#[derive(Clone, Debug)]
pub struct TryCallInfo {
    /// The call. Among the registers it writes are those of what an exception carries.
    pub call: CallInfo,
    /// The handlers, in the order in which they are asked.
    pub handlers: SmallVec<[Handler; 2]>,
}

/// An exception handler of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handler {
    /// The exceptions that it catches; all if there is none.
    pub tag: Option<ExceptionTag>,
    /// The number of the successor that it is.
    pub succ: usize,
    /// The area of the frame that holds its context.
    pub context: Option<u32>,
}

/// Target of a call.
#[derive(Clone, Debug)]
pub enum CallDest {
    /// A symbol within reach of a direct call.
    Near(RelocTarget),
    /// A symbol that may be anywhere.
    Far(RelocTarget),
    /// An address in a register.
    Reg(Reg),
}

impl MInst {
    /// Whether this ends a block by going to successors.
    pub fn is_branch(&self) -> bool {
        matches!(
            self,
            Self::Jump | Self::CondBr { .. } | Self::BrTable { .. } | Self::TryCall(_)
        )
    }

    /// Whether this ends a block that has no successors.
    pub fn is_exit(&self) -> bool {
        matches!(self, Self::Return { .. } | Self::ReturnCall(_) | Self::Trap { .. })
    }
}
