//! The state that the threads of a core share: scratchpad, control registers, and the I/O space
//! with its console.

use crate::cache::Mode;
use crate::fill::Source;
use crate::rest::Status;
use crate::thread::Thread;
use npu_mc::machine::{self, ControlRegister};
use std::collections::VecDeque;

/// The number of bytes of the scratchpad of a core; addresses wrap at it.
pub const SCRATCHPAD_SIZE: usize = machine::SCRATCHPAD_SIZE as usize;

/// The number of debug registers of a core.
const DEBUG_REGISTERS: usize = 16;

/// The mask of a control-register id; the hardware ignores the other bits.
const CONTROL_ID_MASK: u32 = 63;

/// Returns whether `address` is in the I/O space.
pub(crate) fn is_io(address: u32) -> bool {
    (machine::IO_BASE..=machine::IO_LAST).contains(&address)
}

/// The console in the I/O space, shared by all cores.
#[derive(Clone, Debug, Default)]
pub(crate) struct Console {
    pub input: VecDeque<u8>,
    pub output: Vec<u8>,
}

impl Console {
    /// Reads a word. A read of the data address consumes a byte of input and returns it, or 0 if
    /// the input is empty.
    pub fn read(&mut self, address: u32) -> u32 {
        match address & !3 {
            machine::CONSOLE_DATA => u32::from(self.input.pop_front().unwrap_or(0)),
            machine::CONSOLE_STATUS => u32::from(!self.input.is_empty()),
            _ => 0,
        }
    }

    /// Performs a `store32`; returns whether the address was the data address, the only one that
    /// accepts writes.
    #[must_use]
    pub fn write(&mut self, address: u32, value: u32) -> bool {
        let taken = address & !3 == machine::CONSOLE_DATA;
        if taken {
            self.output.push(value as u8);
        }
        taken
    }
}

/// The shared state of a core, except main memory.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub scratchpad: Box<[u8]>,
    /// Whether a write to an I/O address without a device is stuck in the queue; it blocks all
    /// later I/O forever (`docs/machine/memory.md`).
    pub io_blocked: bool,
    pub tile: u32,
    pub core: u32,
    pub argc: u32,
    pub argv: u32,
    pub cpu_control: u32,
    /// The mode of the data cache, set by control registers 17 and 19.
    pub mode: Mode,
    pub debug: [u32; DEBUG_REGISTERS],
    /// The mask of threads that the host enabled.
    pub enabled: u32,
    /// The number of instructions that all threads of the core executed: the clock of the
    /// functional model.
    pub clock: u64,
    /// Control registers 7 and 8; only a timing model counts them.
    pub data_misses: u32,
    pub instruction_misses: u32,
    /// The part of [`Shared::clock`] during which a thread had status running or barrier.
    pub kernel_clock: u64,
}

impl Shared {
    /// Creates the state of core `core` in tile `tile`. The scratchpad has zeros, or the values of
    /// `source`.
    pub fn new(tile: u32, core: u32, source: Option<Source>) -> Shared {
        let mut scratchpad = vec![0; SCRATCHPAD_SIZE].into_boxed_slice();
        if let Some(mut source) = source {
            source.bytes(&mut scratchpad);
        }
        Shared {
            scratchpad,
            io_blocked: false,
            tile,
            core,
            argc: 0,
            argv: 0,
            cpu_control: 0,
            mode: Mode::default(),
            debug: [0; DEBUG_REGISTERS],
            enabled: 0,
            clock: 0,
            data_misses: 0,
            instruction_misses: 0,
            kernel_clock: 0,
        }
    }

    /// Returns the value that `read_cr` returns to `thread` (number `id`), or `None` if the
    /// register does not exist and its value is undefined.
    ///
    /// The functional model counts one cycle per instruction and no misses; its fetch PC is the PC.
    pub fn read_control(&self, register: u32, id: u32, thread: &Thread) -> Option<u32> {
        let register = control_register(register)?;
        Some(match register {
            ControlRegister::TileId => self.tile,
            ControlRegister::CoreId => self.core,
            ControlRegister::ThreadId => id,
            // The tile does not fit into the register, due to a hardware bug.
            ControlRegister::GlobalId => self.core << machine::THREADS_PER_CORE.trailing_zeros() | id,
            ControlRegister::CyclesLow => self.clock as u32,
            ControlRegister::CyclesHigh => (self.clock >> 32) as u32,
            ControlRegister::ThreadEnable => self.enabled,
            ControlRegister::DataMisses => self.data_misses,
            ControlRegister::InstructionMisses => self.instruction_misses,
            ControlRegister::Pc => thread.pc,
            ControlRegister::TrapReason => thread.trap.value(),
            ControlRegister::ThreadStatus if thread.waiting.is_some() => Status::BARRIER.code(),
            ControlRegister::ThreadStatus => thread.status.code(),
            ControlRegister::BlockedCycles => thread.blocked,
            ControlRegister::Argc => self.argc,
            ControlRegister::Argv => self.argv,
            ControlRegister::Threads => machine::THREADS_PER_CORE,
            ControlRegister::KernelCycles => self.kernel_clock as u32,
            ControlRegister::CpuControl => self.cpu_control,
            // `NonCoherent` is write-only; the hardware has no power counter.
            ControlRegister::NonCoherent | ControlRegister::PowerModel => 0,
            ControlRegister::Debug0 => self.debug[0],
            ControlRegister::Debug1 => self.debug[1],
            ControlRegister::Debug2 => self.debug[2],
            ControlRegister::Debug3 => self.debug[3],
            ControlRegister::Debug4 => self.debug[4],
            ControlRegister::Debug5 => self.debug[5],
            ControlRegister::Debug6 => self.debug[6],
            ControlRegister::Debug7 => self.debug[7],
            ControlRegister::Debug8 => self.debug[8],
            ControlRegister::Debug9 => self.debug[9],
            ControlRegister::Debug10 => self.debug[10],
            ControlRegister::Debug11 => self.debug[11],
            ControlRegister::Debug12 => self.debug[12],
            ControlRegister::Debug13 => self.debug[13],
            ControlRegister::Debug14 => self.debug[14],
            ControlRegister::Debug15 => self.debug[15],
        })
    }

    /// Performs a `write_cr` of `thread`; writes to read-only registers have no effect.
    pub fn write_control(&mut self, register: u32, value: u32, thread: &mut Thread) {
        match control_register(register) {
            Some(ControlRegister::ThreadStatus) => thread.status = Status::new(value),
            Some(ControlRegister::NonCoherent) => self.mode.set_region(value),
            Some(register) => self.write_common(register, value),
            None => {}
        }
    }

    /// Performs a control-register write of the host: it also writes CPU control, regardless of the
    /// register.
    pub fn host_write_control(&mut self, register: ControlRegister, value: u32) {
        self.cpu_control = value;
        self.mode.set_cpu_control(value);
        self.write_common(register, value);
    }

    fn write_common(&mut self, register: ControlRegister, value: u32) {
        match register {
            ControlRegister::Argc => self.argc = value,
            ControlRegister::Argv => self.argv = value,
            ControlRegister::Debug0 => self.debug[0] = value,
            ControlRegister::Debug1 => self.debug[1] = value,
            ControlRegister::Debug2 => self.debug[2] = value,
            ControlRegister::Debug3 => self.debug[3] = value,
            ControlRegister::Debug4 => self.debug[4] = value,
            ControlRegister::Debug5 => self.debug[5] = value,
            ControlRegister::Debug6 => self.debug[6] = value,
            ControlRegister::Debug7 => self.debug[7] = value,
            ControlRegister::Debug8 => self.debug[8] = value,
            ControlRegister::Debug9 => self.debug[9] = value,
            ControlRegister::Debug10 => self.debug[10] = value,
            ControlRegister::Debug11 => self.debug[11] = value,
            ControlRegister::Debug12 => self.debug[12] = value,
            ControlRegister::Debug13 => self.debug[13] = value,
            ControlRegister::Debug14 => self.debug[14] = value,
            ControlRegister::Debug15 => self.debug[15] = value,
            // Every host write goes to CPU control as well, per-thread registers are not common,
            // and the others are read-only.
            ControlRegister::CpuControl
            | ControlRegister::ThreadStatus
            | ControlRegister::NonCoherent
            | ControlRegister::PowerModel
            | ControlRegister::TileId
            | ControlRegister::CoreId
            | ControlRegister::ThreadId
            | ControlRegister::GlobalId
            | ControlRegister::CyclesLow
            | ControlRegister::CyclesHigh
            | ControlRegister::ThreadEnable
            | ControlRegister::DataMisses
            | ControlRegister::InstructionMisses
            | ControlRegister::Pc
            | ControlRegister::TrapReason
            | ControlRegister::BlockedCycles
            | ControlRegister::Threads
            | ControlRegister::KernelCycles => {}
        }
    }

    /// Reads `N` bytes of scratchpad; the address wraps and is rounded down to a multiple of `N`.
    pub fn scratchpad_load<const N: usize>(&self, address: u32) -> [u8; N] {
        let at = (address as usize & (SCRATCHPAD_SIZE - 1)) & !(N - 1);
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.scratchpad[at..at + N]);
        bytes
    }

    /// Returns `N` bytes of scratchpad from a wrapped address on, or `None` if they cross the end
    /// of the scratchpad.
    #[inline(always)]
    pub fn scratchpad_line<const N: usize>(&mut self, address: u32) -> Option<&mut [u8; N]> {
        let at = address as usize & (SCRATCHPAD_SIZE - 1);
        self.scratchpad.get_mut(at..)?.first_chunk_mut()
    }

    /// Stores `N` bytes to the scratchpad; addresses as in [`Shared::scratchpad_load`].
    pub fn scratchpad_store<const N: usize>(&mut self, address: u32, bytes: [u8; N]) {
        let at = (address as usize & (SCRATCHPAD_SIZE - 1)) & !(N - 1);
        self.scratchpad[at..at + N].copy_from_slice(&bytes);
    }
}

/// Returns the significant bits of a control-register id.
pub(crate) fn control_id(id: u32) -> u8 {
    (id & CONTROL_ID_MASK) as u8
}

/// Returns the control register with this id; only the low bits of the id count.
pub(crate) fn control_register(id: u32) -> Option<ControlRegister> {
    ControlRegister::from_number(control_id(id))
}
