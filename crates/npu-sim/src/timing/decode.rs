//! The properties of instruction words that the pipeline uses.

use crate::alu::{self, Operation};
use crate::mem_op::{Move, is_store, is_vector_access, moves};
use crate::operands::Operands;
use crate::registers::PC;
use npu_mc::raw::{AluOp, CtrOp, Mem, MemOp, RawInst, Rr};
use npu_mc::{Reg, SReg, machine};

/// The resource that an instruction needs at issue, and the source of its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// An undecoded word, dropped at decode.
    Nop,
    /// The integer pipe, including reads of control registers.
    Int,
    /// Float pipe.
    Float,
    /// Main memory, cache control, I/O.
    Memory,
    /// Scratchpad.
    Scratchpad,
    /// A branch; the result of a call comes from the integer pipe.
    Branch,
    /// An instruction that writes no register and is in no queue.
    Control,
    /// A barrier, which waits until no operation of the thread is pending.
    Barrier,
}

/// A set of registers of a thread: bit *n* is scalar register *n*, bit 64 + *n* is vector register
/// *n*.
pub(crate) type Registers = u128;

/// No register.
pub(crate) const NO_REGISTER: u8 = 0xff;

/// A decoded word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decoded {
    /// The registers that must not be busy: sources and destination.
    pub needs: Registers,
    pub word: u32,
    pub route: Route,
    /// The destination as a bit number of [`Registers`], or [`NO_REGISTER`].
    pub destination: u8,
    /// Cycles from issue to the issue of a dependent instruction.
    pub latency: u8,
    /// The slot of the float port.
    pub slot: u8,
    /// Whether a memory or scratchpad access is a store.
    pub store: bool,
    /// Whether the lane mask applies, so that the instruction is part of the statistics of lane
    /// use.
    pub vector: bool,
    /// Whether the instruction is `flush`.
    pub flush: bool,
    /// Whether the instruction is `dcache_inv`.
    pub invalidate: bool,
    /// Whether the instruction is `read_cr`.
    pub reads_control: bool,
    /// Whether the instruction is a branch with several possible successors: conditional, or to a
    /// register.
    pub chooses: bool,
    /// The address of a memory access: base register and offset.
    pub base: u8,
    pub offset: i32,
}

impl Decoded {
    pub const EMPTY: Decoded = Decoded {
        needs: 0,
        word: u32::MAX,
        route: Route::Nop,
        destination: NO_REGISTER,
        latency: 0,
        slot: 0,
        store: false,
        vector: false,
        flush: false,
        invalidate: false,
        reads_control: false,
        chooses: false,
        base: PC,
        offset: 0,
    };

    /// Decodes `word`.
    pub fn new(word: u32) -> Decoded {
        let inst = npu_mc::split(word);
        let operands = Operands::of(&inst);
        let writes = registers(operands.scalar_writes, operands.vector_writes);
        let mut d = Decoded {
            needs: registers(operands.scalar_reads, operands.vector_reads) | writes,
            word,
            destination: if writes == 0 {
                NO_REGISTER
            } else {
                writes.trailing_zeros() as u8
            },
            ..Decoded::EMPTY
        };
        match inst {
            RawInst::Rr(i) => {
                d.operate(i.op);
                d.registers_only(i);
            }
            RawInst::RrUnassigned(i) => {
                d.operate_unassigned(i.op);
                d.registers_only(i);
            }
            RawInst::Ri(i) => {
                d.operate(i.op);
                d.vector = i.dst.is_vector() || i.src0.is_vector();
            }
            RawInst::RiUnassigned(i) => {
                d.operate_unassigned(i.op);
                d.vector = i.dst.is_vector() || i.src0.is_vector();
            }
            RawInst::Mvi(i) => {
                d.route = Route::Int;
                d.latency = i.op.latency();
                d.vector = i.dst.is_vector();
            }
            RawInst::MviUnassigned(i) => {
                d.route = Route::Control;
                d.vector = i.dst.is_vector();
            }
            RawInst::Mem(i) => {
                let store = matches!(moves(i.op), Move::Store(_));
                d.access(i, store, Some(i.op).filter(|_| !store));
                d.vector = is_vector_access(i.op);
            }
            RawInst::MemUnassigned(i) => d.access(i, is_store(i.op), None),
            RawInst::Ctr(i) => d.control(i.op),
            RawInst::CtrUnassigned(_) => d.route = Route::Control,
            RawInst::Jba(i) => {
                d.route = Route::Branch;
                d.chooses = true;
                d.latency = i.op.latency();
            }
            RawInst::JbaUnassigned(_) => {
                d.route = Route::Branch;
                d.chooses = true;
            }
            RawInst::Jra(i) => {
                d.route = Route::Branch;
                d.latency = i.op.latency();
            }
            RawInst::JraUnassigned(_) => d.route = Route::Branch,
            RawInst::Undefined => {}
        }
        d
    }

    /// Decodes an instruction of the R format.
    fn registers_only<Op>(&mut self, inst: Rr<Op>) {
        self.vector = inst.dst.is_vector() || inst.src0.is_vector() || inst.src1.is_vector();
        // The scoreboard waits for both source fields, even if the operation ignores the second
        // one.
        self.needs |= match inst.src1 {
            Reg::S(SReg::PC) => 0,
            Reg::S(src1) => registers(1 << src1.number(), 0),
            Reg::V(src1) => registers(0, 1 << src1.number()),
        };
        if inst.dst.number() == PC {
            self.route = Route::Branch;
            self.chooses = true;
        }
    }

    fn operate(&mut self, op: AluOp) {
        self.latency = op.latency();
        self.route = match (alu::operation(op), op.info().fp_slot) {
            // The functional machine stops here.
            (Operation::Hang | Operation::NoUnit, _) => Route::Control,
            (_, Some(slot)) => {
                self.slot = slot;
                Route::Float
            }
            (_, None) => Route::Int,
        };
    }

    /// Decodes an unassigned opcode: those below 32 return 0, the others need missing float units,
    /// and the functional machine stops there.
    fn operate_unassigned(&mut self, op: u8) {
        self.route = if op >= 32 { Route::Control } else { Route::Int };
        self.latency = AluOp::Add.latency();
    }

    /// Decodes an access; `load` is the operation of a load that the hardware supports.
    fn access<Op>(&mut self, inst: Mem<Op>, store: bool, load: Option<MemOp>) {
        self.base = inst.base.number();
        self.offset = inst.offset;
        self.store = store;
        (self.route, self.latency) = if inst.shared {
            // Stores and unassigned opcodes use the write port like loads.
            let latency = load.unwrap_or(MemOp::Load32).info().scratchpad_latency;
            (Route::Scratchpad, latency)
        } else {
            (Route::Memory, MemOp::Load32.latency())
        };
    }

    fn control(&mut self, op: CtrOp) {
        self.route = match op {
            CtrOp::Barrier => Route::Barrier,
            CtrOp::ReadCr => {
                self.latency = op.latency();
                self.reads_control = true;
                Route::Int
            }
            CtrOp::Flush => {
                self.flush = true;
                Route::Memory
            }
            CtrOp::DcacheInv => {
                self.invalidate = true;
                Route::Memory
            }
            CtrOp::WriteCr | CtrOp::BarrierThread => Route::Control,
        };
    }
}

fn registers(scalars: u64, vectors: u64) -> Registers {
    Registers::from(scalars) | Registers::from(vectors) << 64
}

/// A cache of decoded words by address. An entry is valid for its word, regardless of the address.
pub(crate) struct Decoder {
    entries: Box<[Decoded; ENTRIES]>,
}

/// The number of entries of [`Decoder`], a power of two; more than two instruction caches hold.
const ENTRIES: usize = 4096;

impl Decoder {
    pub fn new() -> Decoder {
        Decoder {
            entries: Box::new([Decoded::EMPTY; ENTRIES]),
        }
    }

    /// Returns the decoded instruction `word` at `pc`.
    #[inline]
    pub fn get(&mut self, pc: u32, word: u32) -> &Decoded {
        let index = (pc / machine::INSTRUCTION_SIZE) as usize % ENTRIES;
        let entry = &mut self.entries[index];
        if entry.word != word {
            *entry = Decoded::new(word);
        }
        entry
    }
}
