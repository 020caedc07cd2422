//! What the threads of a core share: scratchpad, control registers, and the I/O space with its console.

use crate::cache::Mode;
use crate::fill::Source;
use crate::rest::Status;
use crate::thread::Thread;
use npu_mc::machine::{self, ControlRegister};
use std::collections::VecDeque;

/// Bytes of scratchpad memory in a core; addresses wrap at it.
pub const SCRATCHPAD_SIZE: usize = machine::SCRATCHPAD_SIZE as usize;

/// Debug registers of a core.
const DEBUG_REGISTERS: usize = 16;

/// Bits of an id register that count.
const CONTROL_ID_MASK: u32 = 63;

/// Whether `address` is in the I/O space.
pub(crate) fn is_io(address: u32) -> bool {
    (machine::IO_BASE..=machine::IO_LAST).contains(&address)
}

/// The console in the I/O space, one for all cores.
#[derive(Clone, Debug, Default)]
pub(crate) struct Console {
    pub input: VecDeque<u8>,
    pub output: Vec<u8>,
}

impl Console {
    /// A word read; reading the data address takes a byte of input, 0 when there is none.
    pub fn read(&mut self, address: u32) -> u32 {
        match address & !3 {
            machine::CONSOLE_DATA => u32::from(self.input.pop_front().unwrap_or(0)),
            machine::CONSOLE_STATUS => u32::from(!self.input.is_empty()),
            _ => 0,
        }
    }

    /// A `store32`; gives whether it was to the data address, which alone takes it.
    #[must_use]
    pub fn write(&mut self, address: u32, value: u32) -> bool {
        let taken = address & !3 == machine::CONSOLE_DATA;
        if taken {
            self.output.push(value as u8);
        }
        taken
    }
}

/// Shared state of a core, apart from main memory.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub scratchpad: Box<[u8]>,
    /// A write to an I/O address without a device stays in the queue and blocks all later I/O for ever (`docs/machine/memory.md`).
    pub io_blocked: bool,
    pub tile: u32,
    pub core: u32,
    pub argc: u32,
    pub argv: u32,
    pub cpu_control: u32,
    /// What the data cache of the core takes from control registers 17 and 19.
    pub mode: Mode,
    pub debug: [u32; DEBUG_REGISTERS],
    /// Threads enabled by the host.
    pub enabled: u32,
    /// Instructions executed by all threads of the core: the clock of the functional model.
    pub clock: u64,
    /// Control registers 7 and 8, which a timing model counts.
    pub data_misses: u32,
    pub instruction_misses: u32,
    /// The part of [`Shared::clock`] with a thread in status running or at a barrier.
    pub kernel_clock: u64,
}

impl Shared {
    /// Of core `core` in tile `tile`, with a scratchpad of zeros unless there is a source of its contents.
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

    /// What `read_cr` gives to `thread` (number `id`); `None` for a register that does not exist and reads as anything.
    ///
    /// The functional model counts one cycle an instruction, no misses, and the fetch PC is the PC.
    pub fn read_control(&self, register: u32, id: u32, thread: &Thread) -> Option<u32> {
        let register = control_register(register)?;
        Some(match register {
            ControlRegister::TileId => self.tile,
            ControlRegister::CoreId => self.core,
            ControlRegister::ThreadId => id,
            // The tile does not fit, by a fault of the hardware.
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
            // It is written only; there is no such counter.
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

    /// `write_cr` by `thread`; registers that a core cannot write ignore it.
    pub fn write_control(&mut self, register: u32, value: u32, thread: &mut Thread) {
        match control_register(register) {
            Some(ControlRegister::ThreadStatus) => thread.status = Status::new(value),
            Some(ControlRegister::NonCoherent) => self.mode.set_region(value),
            Some(register) => self.write_common(register, value),
            None => {}
        }
    }

    /// A control-register write by the host: the registers of the core, and CPU control whatever the register is.
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
            // The host writes CPU control whatever the register is; a thread's own registers are not common. The rest cannot be written.
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

    /// `N` bytes of scratchpad; the address wraps and is taken down to a multiple of `N`.
    pub fn scratchpad_load<const N: usize>(&self, address: u32) -> [u8; N] {
        let at = (address as usize & (SCRATCHPAD_SIZE - 1)) & !(N - 1);
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.scratchpad[at..at + N]);
        bytes
    }

    /// `N` bytes of scratchpad from an address on, which wraps; `None` when they do.
    #[inline(always)]
    pub fn scratchpad_line<const N: usize>(&mut self, address: u32) -> Option<&mut [u8; N]> {
        let at = address as usize & (SCRATCHPAD_SIZE - 1);
        self.scratchpad.get_mut(at..)?.first_chunk_mut()
    }

    /// Stores `N` bytes to scratchpad; addressing as in [`Shared::scratchpad_load`].
    pub fn scratchpad_store<const N: usize>(&mut self, address: u32, bytes: [u8; N]) {
        let at = (address as usize & (SCRATCHPAD_SIZE - 1)) & !(N - 1);
        self.scratchpad[at..at + N].copy_from_slice(&bytes);
    }
}

/// The bits of an id that count.
pub(crate) fn control_id(id: u32) -> u8 {
    (id & CONTROL_ID_MASK) as u8
}

/// The control register that an id names, by its low bits.
pub(crate) fn control_register(id: u32) -> Option<ControlRegister> {
    ControlRegister::from_number(control_id(id))
}
