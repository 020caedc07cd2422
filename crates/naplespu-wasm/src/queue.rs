//! The layout of the queue of threads that wait on a shared memory, and its two functions.
//!
//! A queue begins with a ticket lock: the next ticket and the served ticket. The number of entries,
//! the entries, and one word for each thread follow.

use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{AbiParam, Signature, Type};
use cranelift_codegen::isa::CallConv;
use npu_sim::{CORE_LIMIT, THREADS};

/// The maximum number of waiting threads: all threads of the machine.
const WAITERS: u32 = (CORE_LIMIT * THREADS) as u32;
/// The offset of the next ticket of the lock.
pub const NEXT_TICKET: u32 = 0;
/// The offset of the ticket that holds the lock.
pub const SERVED: i32 = 4;
/// The offset of the number of entries.
pub const COUNT: i32 = 8;
/// The offset of the entries.
pub const ENTRIES: u32 = 16;
/// The size of an entry in bytes: an address and the number of a thread.
pub const ENTRY_BYTES: u32 = 8;
/// The offset of the words of the threads. The word of a thread becomes 1 when it is woken.
pub const WOKEN: u32 = ENTRIES + WAITERS * ENTRY_BYTES;
/// The size of a queue in bytes.
pub const QUEUE_BYTES: u32 = WOKEN + WAITERS * 4;

/// A function that waits or wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Waits. The parameters are the queue, a device address, the expected value as 64 bits,
    /// whether the access has 64 bits, and the timeout in nanoseconds (negative: none). The result
    /// is that of the instruction.
    Wait,
    /// Wakes threads. The parameters are the queue, a device address, and the maximum number of
    /// threads. The result is the number of woken threads.
    Notify,
}

impl Waiting {
    /// Returns its signature.
    pub fn signature(self) -> Signature {
        let params: &[Type] = match self {
            Self::Wait => &[I32, I32, I64, I32, I64],
            Self::Notify => &[I32, I32, I32],
        };
        Signature {
            params: params.iter().map(|&ty| AbiParam::new(ty)).collect(),
            returns: vec![AbiParam::new(I32)],
            call_conv: CallConv::SystemV,
        }
    }
}
