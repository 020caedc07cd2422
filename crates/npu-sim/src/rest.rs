//! The status that a program reports for its thread, and the reasons why a thread stops.

use crate::findings::Hazard;
use npu_mc::Reg;
use npu_mc::machine::ThreadStatus;
use std::fmt;

/// Control register 11, a software flag without effect on execution (`docs/machine/control.md`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Status(u8);

impl Status {
    /// The program has not written a status.
    pub const IDLE: Status = Status::new(ThreadStatus::Idle.value());
    /// The program runs.
    pub const RUNNING: Status = Status::new(ThreadStatus::Running.value());
    /// The program ended.
    pub const ENDED: Status = Status::new(ThreadStatus::End.value());
    /// The program gave up: in the trap handler or in a compiled trap.
    pub const TRAPPED: Status = Status::new(ThreadStatus::Trapped.value());
    /// The thread waits at a barrier.
    pub const BARRIER: Status = Status::new(ThreadStatus::Barrier.value());
    /// The start-up code runs.
    pub const BOOTING: Status = Status::new(ThreadStatus::Booting.value());

    /// Returns the status that a write of `value` sets: its low three bits.
    pub const fn new(value: u32) -> Status {
        Status((value & 7) as u8)
    }

    /// The number, 0 to 7.
    pub const fn code(self) -> u32 {
        self.0 as u32
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match ThreadStatus::from_value(self.code()) {
            Some(status) => f.write_str(status.name()),
            None => write!(f, "{}", self.0),
        }
    }
}

/// The reason why a thread can never continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HangReason {
    /// The operation needs a float unit that the hardware lacks; the thread waits at issue.
    MissingUnit {
        /// The opcode of the R format.
        op: u8,
    },
    /// The register is the destination of an operation that never completes.
    BusyRegister {
        /// The register.
        register: Reg,
    },
    /// A barrier that has not opened, in a run of this thread alone.
    Barrier {
        /// The barrier id, 9 bits.
        id: u32,
        /// The number of missing arrivals.
        missing: u32,
    },
    /// A barrier with a pending operation that never completes, so that the thread never sends its
    /// arrival.
    PendingAtBarrier,
    /// An earlier write to an address without a device blocks the I/O queue.
    BlockedIo,
    /// A taken branch to itself, while the status is neither ended nor trapped.
    SelfJump,
    /// The access never completes ([`coherence`](crate::coherence) only).
    Line {
        /// The address of the line.
        address: u32,
        /// The fault of the hardware that the line met first.
        hazard: Option<Hazard>,
    },
    /// The instruction line arrived without waking the thread (erratum
    /// `repeated_instruction_line_miss`; timing model only).
    InstructionLine,
}

impl fmt::Display for HangReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HangReason::MissingUnit { op } => {
                write!(f, "operation {op} goes to a float unit that does not exist")
            }
            HangReason::BusyRegister { register } => {
                write!(f, "{} waits for an operation that never completes", register.name())
            }
            HangReason::Barrier { id, missing } => {
                write!(f, "barrier {id} waits for {missing} more threads")
            }
            HangReason::PendingAtBarrier => f.write_str("a barrier waits for an operation that never completes"),
            HangReason::BlockedIo => f.write_str("an earlier write without a device blocks the I/O queue"),
            HangReason::SelfJump => f.write_str("endless jump to itself"),
            HangReason::Line { address, hazard } => {
                write!(f, "the access to the line at {address:#010x} never completes")?;
                match hazard {
                    Some(hazard) => write!(f, " (erratum {hazard})"),
                    None => Ok(()),
                }
            }
            HangReason::InstructionLine => {
                f.write_str("its instruction line arrived without waking it (erratum repeated_instruction_line_miss)")
            }
        }
    }
}

/// How a thread stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    Ended(Status),
    Hung { pc: u32, reason: HangReason },
}
