//! What the threads of a core share: scratchpad, control registers, and the I/O space with its console.

use crate::cache::Mode;
use crate::thread::{Status, Thread};
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

/// The console behind the I/O space, one for all cores.
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
    /// A write to an I/O address that nobody answers sits in the queue: all later I/O waits for ever (`microarch.md` 7.4).
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
    pub fn new(tile: u32, core: u32) -> Shared {
        Shared {
            scratchpad: vec![0; SCRATCHPAD_SIZE].into_boxed_slice(),
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
            _ => debug_index(register).map_or(0, |index| self.debug[index]),
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
            _ => {
                if let Some(index) = debug_index(register) {
                    self.debug[index] = value;
                }
            }
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

/// The bits of an id that count.
pub(crate) fn control_id(id: u32) -> u8 {
    (id & CONTROL_ID_MASK) as u8
}

/// The control register that an id names, by its low bits.
pub(crate) fn control_register(id: u32) -> Option<ControlRegister> {
    ControlRegister::from_number(control_id(id))
}

/// Place among the debug registers.
fn debug_index(register: ControlRegister) -> Option<usize> {
    let index = register.number().checked_sub(ControlRegister::Debug0.number())?;
    (usize::from(index) < DEBUG_REGISTERS).then_some(index.into())
}
