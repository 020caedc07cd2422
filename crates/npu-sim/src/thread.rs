//! The state of one hardware thread.

use crate::fill::Source;
use crate::hazard::Watch;
use crate::registers::{Lanes, RM};
use crate::rest::{Rest, Status};
use npu_mc::machine::TrapReason;
use npu_mc::{SReg, VReg};
use std::fmt;

/// A hardware thread: registers, lane mask, PC, status.
///
/// `npu_mc` newtypes name the registers. As a source operand, register 63 is the address of the
/// instruction; no instruction can read the stored register.
#[derive(Clone)]
pub struct Thread {
    /// Scalar registers by number. The array covers all byte indices, so that predecoded operands
    /// need no range check; only the first 64 are registers.
    pub(crate) scalars: [u32; 256],
    pub(crate) vectors: [Lanes; 64],
    pub(crate) mask: u16,
    pub(crate) pc: u32,
    /// The address of the last taken branch, except branches to themselves.
    pub(crate) last_branch: Option<u32>,
    pub(crate) status: Status,
    pub(crate) trap: TrapReason,
    /// The address of the last access that trapped.
    pub(crate) trap_pc: Option<u32>,
    pub(crate) instructions: u64,
    /// The id and address of the barrier at which the thread waits.
    pub(crate) waiting: Option<(u32, u32)>,
    /// The reason why the thread stopped, if it did.
    pub(crate) rest: Option<Rest>,
    /// Control register 15; only a timing model counts it.
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

    /// The address of the next instruction.
    pub fn pc(&self) -> u32 {
        self.pc
    }

    /// The address of the last taken branch, except jumps to themselves: the origin of a thread
    /// that has stopped.
    pub fn last_branch(&self) -> Option<u32> {
        self.last_branch
    }

    /// The address of the instruction that trapped last; the hardware does not record it.
    pub fn trap_pc(&self) -> Option<u32> {
        self.trap_pc
    }

    /// Sets the PC. Resets the tracking of errata that depend on earlier instructions, and ends
    /// waiting at a barrier; an arrival that the barrier has counted remains counted.
    pub fn set_pc(&mut self, pc: u32) {
        self.pc = pc;
        self.waiting = None;
        self.rest = None;
        self.last_branch = None;
        self.trap_pc = None;
        crate::late::settle(self);
        self.watch.restart();
    }

    /// The lane mask, bit *i* = lane *i*. It equals the low half of `rm` except after the irregular
    /// writes that `docs/machine/registers.md` describes.
    pub fn mask(&self) -> u16 {
        self.mask
    }

    /// Sets the lane mask without changing `rm`.
    pub fn set_mask(&mut self, mask: u16) {
        self.mask = mask;
    }

    /// Control register 11, as the program wrote it.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Returns whether the thread waits at a barrier.
    pub fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// The final status, if the thread has set status 2 or 3 and reached a jump to itself.
    pub fn ended(&self) -> Option<Status> {
        match self.rest {
            Some(Rest::Ended(status)) => Some(status),
            _ => None,
        }
    }

    /// Sets control register 15, the number of cycles that the thread was blocked on memory. The
    /// functional simulator does not count them.
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

    /// Sets control register 10, which the hardware does only on a trap.
    pub fn set_trap_reason(&mut self, reason: TrapReason) {
        self.trap = reason;
    }

    /// The number of executed instructions since creation, including undecoded words (`nop`).
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    /// Returns a scalar register. Register 63 (`pc`) is storage that no instruction can read; see
    /// [`Thread::pc`].
    pub fn scalar(&self, register: SReg) -> u32 {
        self.s(register.number())
    }

    /// Sets a scalar register. A write to `rm` sets the lane mask too, as in an instruction.
    pub fn set_scalar(&mut self, register: SReg, value: u32) {
        let number = register.number();
        self.scalars[usize::from(number)] = value;
        if number == RM {
            self.mask = value as u16;
        }
        self.watch.scalar_set(number);
    }

    /// Returns a vector register.
    pub fn vector(&self, register: VReg) -> &Lanes {
        self.v(register.number())
    }

    /// Sets all lanes of a vector register, regardless of the lane mask; `v59` does not change the
    /// lane mask.
    pub fn set_vector(&mut self, register: VReg, value: Lanes) {
        let number = register.number();
        self.vectors[usize::from(number & 63)] = value;
        self.watch.vector_set(number);
    }

    /// Fills all registers except `rm` with unwritten contents.
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

    /// Returns a scalar register by number.
    pub(crate) fn s(&self, number: u8) -> u32 {
        self.scalars[usize::from(number)]
    }

    /// Returns a vector register by number, modulo 64.
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
