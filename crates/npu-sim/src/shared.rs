//! What the threads of a core share: scratchpad, control registers, console and I/O space.

use crate::thread::{Status, Thread};
use std::collections::VecDeque;

/// Bytes of scratchpad memory in a core (`microarch.md` 1); addresses wrap at it.
pub const SCRATCHPAD_SIZE: usize = 1 << 16;

/// First address of the I/O space.
pub const IO_FIRST: u32 = 0xff00_0000;
/// Last address of the I/O space; what lies above is ordinary memory again.
pub const IO_LAST: u32 = 0xffff_ff00;

/// Whether `address` is in the I/O space.
pub(crate) fn is_io(address: u32) -> bool {
    (IO_FIRST..=IO_LAST).contains(&address)
}

/// Control registers by number (`microarch.md` 7.1).
pub mod control {
    /// Tile id.
    pub const TILE_ID: u32 = 0;
    /// Core id.
    pub const CORE_ID: u32 = 1;
    /// Thread id within the core.
    pub const THREAD_ID: u32 = 2;
    /// `core id << 3 | thread id`; the tile id is lost.
    pub const GLOBAL_ID: u32 = 3;
    /// Cycle counter, low half.
    pub const CYCLES_LOW: u32 = 4;
    /// Cycle counter, high half.
    pub const CYCLES_HIGH: u32 = 5;
    /// Threads that may fetch.
    pub const ENABLED: u32 = 6;
    /// Data-cache misses.
    pub const DATA_MISSES: u32 = 7;
    /// Instruction-cache miss requests.
    pub const INSTRUCTION_MISSES: u32 = 8;
    /// Fetch PC of the thread.
    pub const PC: u32 = 9;
    /// Trap reason of the thread.
    pub const TRAP_REASON: u32 = 10;
    /// Status of the thread.
    pub const STATUS: u32 = 11;
    /// First word for the program, core-wide.
    pub const ARGC: u32 = 12;
    /// Second word for the program, core-wide.
    pub const ARGV: u32 = 13;
    /// Number of hardware threads.
    pub const THREADS: u32 = 14;
    /// Cycles that the load/store queue of the thread was not empty.
    pub const QUEUE_CYCLES: u32 = 15;
    /// Cycles with a thread running or at a barrier.
    pub const KERNEL_CYCLES: u32 = 16;
    /// CPU control, for the host; any control-register write of the host lands here too.
    pub const CPU_CONTROL: u32 = 17;
    /// First debug register.
    pub const DEBUG_FIRST: u32 = 20;
    /// Last debug register.
    pub const DEBUG_LAST: u32 = 35;
    /// Bits of an id register that count.
    pub(crate) const ID_MASK: u32 = 63;
}

/// The console behind the I/O space.
#[derive(Clone, Debug, Default)]
pub(crate) struct Console {
    pub input: VecDeque<u8>,
    pub output: Vec<u8>,
    /// A write to an address that nobody answers sits in the queue: all later I/O waits for ever (`microarch.md` 7.4).
    pub blocked: bool,
}

impl Console {
    /// A word read; reading the data address takes a byte of input, 0 when there is none.
    pub fn read(&mut self, address: u32) -> u32 {
        match address & !3 {
            IO_FIRST => u32::from(self.input.pop_front().unwrap_or(0)),
            0xff00_0004 => u32::from(!self.input.is_empty()),
            _ => 0,
        }
    }

    /// A `store32`; only the data address takes it.
    pub fn write(&mut self, address: u32, value: u32) {
        if address & !3 == IO_FIRST {
            self.output.push(value as u8);
        } else {
            self.blocked = true;
        }
    }
}

/// Shared state of a core, apart from main memory.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub scratchpad: Box<[u8]>,
    pub console: Console,
    pub tile: u32,
    pub core: u32,
    pub threads: u32,
    pub argc: u32,
    pub argv: u32,
    pub cpu_control: u32,
    pub debug: [u32; (control::DEBUG_LAST - control::DEBUG_FIRST + 1) as usize],
    /// Threads enabled by the host.
    pub enabled: u32,
    /// Instructions executed by all threads: the clock of the functional model.
    pub clock: u64,
    /// The part of [`Shared::clock`] with a thread in status running or at a barrier.
    pub kernel_clock: u64,
}

impl Shared {
    pub fn new(tile: u32, core: u32, threads: u32) -> Shared {
        Shared {
            scratchpad: vec![0; SCRATCHPAD_SIZE].into_boxed_slice(),
            console: Console::default(),
            tile,
            core,
            threads,
            argc: 0,
            argv: 0,
            cpu_control: 0,
            debug: [0; 16],
            enabled: 0,
            clock: 0,
            kernel_clock: 0,
        }
    }

    /// What `read_cr` gives to `thread` (number `id`); `None` for a register that does not exist and reads as anything.
    ///
    /// The functional model counts one cycle an instruction and has no caches, so 7, 8 and 15 read 0 and 9 is the PC.
    pub fn read_control(&self, register: u32, id: u32, thread: &Thread) -> Option<u32> {
        Some(match register & control::ID_MASK {
            control::TILE_ID => self.tile,
            control::CORE_ID => self.core,
            control::THREAD_ID => id,
            control::GLOBAL_ID => self.core << 3 | id,
            control::CYCLES_LOW => self.clock as u32,
            control::CYCLES_HIGH => (self.clock >> 32) as u32,
            control::ENABLED => self.enabled,
            control::DATA_MISSES | control::INSTRUCTION_MISSES | control::QUEUE_CYCLES => 0,
            control::PC => thread.pc,
            control::TRAP_REASON => thread.trap.code(),
            control::STATUS => thread.status.code(),
            control::ARGC => self.argc,
            control::ARGV => self.argv,
            control::THREADS => self.threads,
            control::KERNEL_CYCLES => self.kernel_clock as u32,
            control::CPU_CONTROL => self.cpu_control,
            // Power model and region map, which read as 0.
            18 | 19 => 0,
            debug @ control::DEBUG_FIRST..=control::DEBUG_LAST => self.debug[(debug - control::DEBUG_FIRST) as usize],
            _ => return None,
        })
    }

    /// `write_cr` by `thread`; registers that a core cannot write ignore it.
    pub fn write_control(&mut self, register: u32, value: u32, thread: &mut Thread) {
        match register & control::ID_MASK {
            control::STATUS => thread.status = Status::new(value),
            control::ARGC => self.argc = value,
            control::ARGV => self.argv = value,
            debug @ control::DEBUG_FIRST..=control::DEBUG_LAST => {
                self.debug[(debug - control::DEBUG_FIRST) as usize] = value;
            }
            _ => {}
        }
    }

    /// A control-register write by the host: the same registers, and CPU control whatever the register is.
    pub fn host_write_control(&mut self, register: u32, value: u32) {
        self.cpu_control = value;
        match register & control::ID_MASK {
            control::ARGC => self.argc = value,
            control::ARGV => self.argv = value,
            debug @ control::DEBUG_FIRST..=control::DEBUG_LAST => {
                self.debug[(debug - control::DEBUG_FIRST) as usize] = value;
            }
            _ => {}
        }
    }

    /// `N` bytes of scratchpad; the address wraps and is taken down to a multiple of `N`.
    pub fn scratchpad_load<const N: usize>(&self, address: u32) -> [u8; N] {
        let at = (address as usize & (SCRATCHPAD_SIZE - 1)) & !(N - 1);
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.scratchpad[at..at + N]);
        bytes
    }

    /// Stores `N` bytes to scratchpad; addressing as in [`Shared::scratchpad_load`].
    pub fn scratchpad_store<const N: usize>(&mut self, address: u32, bytes: [u8; N]) {
        let at = (address as usize & (SCRATCHPAD_SIZE - 1)) & !(N - 1);
        self.scratchpad[at..at + N].copy_from_slice(&bytes);
    }
}
