//! What the pipeline needs to know of an instruction word.

use crate::alu::{self, Operation};
use crate::mem_op::{is_store, is_vector_access};
use crate::operands::Operands;
use crate::registers::PC;
use npu_mc::machine;
use npu_mc::raw::{AluOp, CtrOp, JbaOp, JraOp, MemOp, MviOp, RawInst};

/// What an instruction waits for at issue, and where its result comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// Dropped at decode.
    Nop,
    /// Integer pipe, and control registers that are read.
    Int,
    /// Float pipe.
    Float,
    /// Main memory, cache control, I/O.
    Memory,
    /// Scratchpad.
    Scratchpad,
    /// A branch; the result of a call comes from the integer pipe.
    Branch,
    /// No result and nothing to wait for.
    Control,
    /// Waits until nothing of the thread is pending.
    Barrier,
}

/// The registers of a thread as a set: scalar register *n* is bit *n*, vector register *n* is bit 64 + *n*.
pub(crate) type Registers = u128;

/// No register.
pub(crate) const NO_REGISTER: u8 = 0xff;

/// A word as the pipeline sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decoded {
    /// Registers that must not be busy: sources and destination.
    pub needs: Registers,
    pub word: u32,
    pub route: Route,
    /// Destination as a bit number of [`Registers`], or [`NO_REGISTER`].
    pub destination: u8,
    /// Issue to issue of a dependent instruction.
    pub latency: u8,
    /// Slot of the float unit's port.
    pub slot: u8,
    /// A store, for memory and scratchpad.
    pub store: bool,
    /// Lanes are masked: the instruction counts for lane use.
    pub vector: bool,
    /// `flush`.
    pub flush: bool,
    /// `dcache_inv`.
    pub invalidate: bool,
    /// `read_cr`.
    pub reads_control: bool,
    /// A branch that can go on at several places: on a value, or to where a register says.
    pub chooses: bool,
    /// Address of a memory access: register and number.
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

    /// Takes `word` apart.
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
            RawInst::Rr {
                op,
                dst,
                src1,
                dst_v,
                src0_v,
                src1_v,
                ..
            } => {
                d.vector = dst_v || src0_v || src1_v;
                // The scoreboard waits for both source fields, whether the operation reads the second or not.
                d.needs |= match (src1_v, src1) {
                    (true, _) => registers(0, 1 << src1),
                    (false, PC) => 0,
                    (false, _) => registers(1 << src1, 0),
                };
                d.operate(op);
                if dst == PC {
                    d.route = Route::Branch;
                    d.chooses = true;
                }
            }
            RawInst::Ri { op, dst_v, src0_v, .. } => {
                d.vector = dst_v || src0_v;
                d.operate(op);
            }
            RawInst::Mvi { op, dst_v, .. } => {
                d.vector = dst_v;
                match MviOp::from_code(op) {
                    Some(op) => {
                        d.route = Route::Int;
                        d.latency = op.latency();
                    }
                    None => d.route = Route::Control,
                }
            }
            RawInst::Mem {
                op,
                base,
                offset,
                shared,
                ..
            } => {
                d.base = base;
                d.offset = offset;
                d.store = is_store(op);
                d.vector = is_vector_access(op);
                let known = MemOp::from_code(op);
                if shared {
                    d.route = Route::Scratchpad;
                    // Stores, and what is not an operation, take a turn at the write port like loads.
                    d.latency = match known {
                        Some(op) if !d.store => op.info().scratchpad_latency,
                        _ => MemOp::Load32.info().scratchpad_latency,
                    };
                } else {
                    d.route = Route::Memory;
                    d.latency = MemOp::Load32.latency();
                }
            }
            RawInst::Ctr { op, .. } => {
                d.route = match CtrOp::from_code(op) {
                    Some(CtrOp::Barrier) => Route::Barrier,
                    Some(op @ CtrOp::ReadCr) => {
                        d.latency = op.latency();
                        d.reads_control = true;
                        Route::Int
                    }
                    Some(CtrOp::Flush) => {
                        d.flush = true;
                        Route::Memory
                    }
                    Some(CtrOp::DcacheInv) => {
                        d.invalidate = true;
                        Route::Memory
                    }
                    Some(CtrOp::WriteCr | CtrOp::BarrierThread) | None => Route::Control,
                };
            }
            RawInst::Jba { op, .. } => {
                let op = JbaOp::from_code(op);
                d.route = Route::Branch;
                d.chooses = true;
                d.latency = op.map_or(0, JbaOp::latency);
            }
            RawInst::Jra { op, .. } => {
                let op = JraOp::from_code(op);
                d.route = Route::Branch;
                d.latency = op.map_or(0, JraOp::latency);
            }
            RawInst::Undefined => {}
        }
        d
    }

    fn operate(&mut self, code: u8) {
        let op = AluOp::from_code(code);
        self.route = Route::Int;
        self.latency = op.map_or(AluOp::Add.latency(), AluOp::latency);
        if let Some(slot) = op.and_then(|op| op.info().fp_slot) {
            self.route = Route::Float;
            self.slot = slot;
        }
        let stops = match op.map(alu::operation) {
            // Numbers below 32 give 0, those above go to float units that were not built.
            None => code >= 32,
            Some(Operation::Hang | Operation::NoUnit) => true,
            Some(
                Operation::Unary(_)
                | Operation::Binary(_)
                | Operation::Compare(_)
                | Operation::FloatUnary(_)
                | Operation::FloatBinary(_)
                | Operation::FloatCompare(_)
                | Operation::Shuffle
                | Operation::GetLane
                | Operation::Mask,
            ) => false,
        };
        if stops {
            // The functional machine stops there.
            self.route = Route::Control;
        }
    }
}

fn registers(scalars: u64, vectors: u64) -> Registers {
    Registers::from(scalars) | Registers::from(vectors) << 64
}

/// Predecoded words, found by address; an entry is valid for the word it was made from, wherever that stands.
pub(crate) struct Decoder {
    entries: Box<[Decoded; ENTRIES]>,
}

/// Entries of [`Decoder`], a power of two; more than two instruction caches hold.
const ENTRIES: usize = 4096;

impl Decoder {
    pub fn new() -> Decoder {
        Decoder {
            entries: Box::new([Decoded::EMPTY; ENTRIES]),
        }
    }

    /// The instruction `word` that stands at `pc`.
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
