//! The state of one hardware thread.

use crate::fill::Source;
use crate::hazard::Watch;
use crate::registers::{Lanes, RM};
use crate::rest::{Rest, Status};
use npu_mc::machine::TrapReason;
use npu_mc::{SReg, VReg};
use std::fmt;

/// One hardware thread: registers, lane mask, PC, status.
///
/// Registers are named by `npu_mc` newtypes. Register 63 is never read by an instruction: as a source it gives the address of
/// that instruction.
#[derive(Clone)]
pub struct Thread {
    /// Scalar registers by number. The index space is that of a byte, so that predecoded operands need no range check; only
    /// the first 64 are registers.
    pub(crate) scalars: [u32; 256],
    pub(crate) vectors: [Lanes; 64],
    pub(crate) mask: u16,
    pub(crate) pc: u32,
    /// Address of the last taken branch that did not go to itself.
    pub(crate) last_branch: Option<u32>,
    pub(crate) status: Status,
    pub(crate) trap: TrapReason,
    /// Address of the access that trapped last.
    pub(crate) trap_pc: Option<u32>,
    pub(crate) instructions: u64,
    /// Id and address of the barrier it stands at.
    pub(crate) waiting: Option<(u32, u32)>,
    /// How it came to rest, if it did.
    pub(crate) rest: Option<Rest>,
    /// Control register 15, which a timing model counts.
    pub(crate) blocked: u32,
    pub(crate) watch: Watch,
}

impl Thread {
    pub(crate) fn new() -> Thread {
        Thread {
            scalars: [0; 256],
            vectors: [Lanes::default(); 64],
            mask: 0,
            pc: 0,
            last_branch: None,
            status: Status::IDLE,
            trap: TrapReason::None,
            trap_pc: None,
            instructions: 0,
            waiting: None,
            rest: None,
            blocked: 0,
            watch: Watch::default(),
        }
    }

    /// Address of the next instruction.
    pub fn pc(&self) -> u32 {
        self.pc
    }

    /// Address of the last taken branch, jumps to themselves aside: where a thread came from that has stopped.
    pub fn last_branch(&self) -> Option<u32> {
        self.last_branch
    }

    /// Address of the instruction that took the last trap, which the hardware keeps nowhere.
    pub fn trap_pc(&self) -> Option<u32> {
        self.trap_pc
    }

    /// Continues at `pc`. Forgets the instructions that came before, as far as errata depend on them, and a barrier it waits
    /// at; what it counted there stays counted.
    pub fn set_pc(&mut self, pc: u32) {
        self.pc = pc;
        self.waiting = None;
        self.rest = None;
        self.last_branch = None;
        self.trap_pc = None;
        crate::late::settle(self);
        self.watch.restart();
    }

    /// The lane mask in force, bit *i* = lane *i*. It follows the low half of `rm` except after the odd writes of
    /// `docs/machine/registers.md`.
    pub fn mask(&self) -> u16 {
        self.mask
    }

    /// Sets the lane mask without touching `rm`.
    pub fn set_mask(&mut self, mask: u16) {
        self.mask = mask;
    }

    /// Control register 11 as the program wrote it.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Whether it stands at a barrier and cannot go on.
    pub fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// The status it ended with, if it has set 2 or 3 and come to jump to itself.
    pub fn ended(&self) -> Option<Status> {
        match self.rest {
            Some(Rest::Ended(status)) => Some(status),
            _ => None,
        }
    }

    /// Sets control register 15, the cycles it was blocked on memory, for a timing model: nothing here counts them.
    pub fn set_blocked_cycles(&mut self, cycles: u32) {
        self.blocked = cycles;
    }

    /// Sets control register 11.
    pub fn set_status(&mut self, status: Status) {
        self.status = status;
    }

    /// Control register 10.
    pub fn trap_reason(&self) -> TrapReason {
        self.trap
    }

    /// Sets control register 10, which hardware only does on a trap.
    pub fn set_trap_reason(&mut self, reason: TrapReason) {
        self.trap = reason;
    }

    /// Instructions executed since creation; undecoded words (`nop`) count.
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    /// A scalar register. That of `pc` is a register no instruction can read; see [`Thread::pc`].
    pub fn scalar(&self, register: SReg) -> u32 {
        self.s(register.number())
    }

    /// Sets a scalar register. `rm` sets the lane mask too, as an instruction would.
    pub fn set_scalar(&mut self, register: SReg, value: u32) {
        let number = register.number();
        self.scalars[usize::from(number)] = value;
        if number == RM {
            self.mask = value as u16;
        }
        self.watch.scalar_set(number);
    }

    /// A vector register.
    pub fn vector(&self, register: VReg) -> &Lanes {
        self.v(register.number())
    }

    /// Sets all lanes of a vector register, whatever the mask; `v59` leaves the mask alone.
    pub fn set_vector(&mut self, register: VReg, value: Lanes) {
        let number = register.number();
        self.vectors[usize::from(number & 63)] = value;
        self.watch.vector_set(number);
    }

    /// Values for all registers but `rm`, as if nobody had written them.
    pub(crate) fn fill(&mut self, mut source: Source) {
        for number in 0..64 {
            if number != RM {
                self.scalars[usize::from(number)] = source.word();
                self.watch.scalar_set(number);
            }
            let lanes = std::array::from_fn(|_| source.word());
            self.vectors[usize::from(number)] = Lanes(lanes);
            self.watch.vector_set(number);
        }
    }

    /// Scalar register by number.
    pub(crate) fn s(&self, number: u8) -> u32 {
        self.scalars[usize::from(number)]
    }

    /// Vector register by number, modulo 64.
    pub(crate) fn v(&self, number: u8) -> &Lanes {
        &self.vectors[usize::from(number & 63)]
    }
}

impl fmt::Debug for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Thread")
            .field("pc", &format_args!("{:#010x}", self.pc))
            .field("mask", &format_args!("{:#06x}", self.mask))
            .field("status", &self.status)
            .field("trap", &self.trap)
            .field("instructions", &self.instructions)
            .finish_non_exhaustive()
    }
}
