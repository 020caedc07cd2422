//! The queue of threads that wait at a shared memory, and the two functions that use it.
//!
//! A queue begins with a lock: the next ticket and the ticket that is served. The number of entries, the entries, and a word for each
//! thread follow.

use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{AbiParam, Signature, Type};
use cranelift_codegen::isa::CallConv;
use npu_sim::{CORE_LIMIT, THREADS};

/// Most threads that can wait: all that there are.
const WAITERS: u32 = (CORE_LIMIT * THREADS) as u32;
/// Offset of the next ticket of the lock.
pub const NEXT_TICKET: u32 = 0;
/// Offset of the ticket that has the lock.
pub const SERVED: i32 = 4;
/// Offset of the number of entries.
pub const COUNT: i32 = 8;
/// Offset of the entries.
pub const ENTRIES: u32 = 16;
/// Bytes of an entry: an address and the number of a thread.
pub const ENTRY_BYTES: u32 = 8;
/// Offset of a word for each thread, which becomes 1 when the thread is woken.
pub const WOKEN: u32 = ENTRIES + WAITERS * ENTRY_BYTES;
/// Bytes of a queue.
pub const QUEUE_BYTES: u32 = WOKEN + WAITERS * 4;

/// A function that waits or wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Of the queue, an address on the device, the value that is expected there as 64 bits, whether there are so many, and nanoseconds,
    /// negative for ever; gives what the instruction gives.
    Wait,
    /// Of the queue, an address, and how many threads at most; gives how many it was.
    Notify,
}

impl Waiting {
    /// Its signature.
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
