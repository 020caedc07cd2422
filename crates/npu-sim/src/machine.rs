//! The machine: cores, memory, barriers and console.

use crate::barrier::Barriers;
use crate::cache::Caches;
use crate::coherence::ports::Ports;
use crate::fill::Fill;
use crate::findings::{Finding, Findings};
use crate::memory::{Memory, MemoryFull};
use crate::parallel::Parallel;
use crate::predecode::CodeCache;
use crate::rest::{HangReason, Status};
use crate::shared::{Console, Shared};
use crate::sharing::Sharing;
use crate::thread::Thread;
use crate::topology::{CORE_LIMIT, Topology};
use npu_mc::machine::{CACHE_LINE, ControlRegister};
use std::collections::BTreeSet;

/// Hardware threads of a core.
pub const THREADS: usize = npu_mc::machine::THREADS_PER_CORE as usize;

/// The configuration of the machine and the strictness of the simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Whether to stop at the first erratum whose outcome depends on timing, instead of only
    /// collecting it. A strict machine with several cores also detects all faults of several cores
    /// (`docs/machine/several-cores.md`), which is slower.
    pub strict: bool,
    /// The maximum number of bytes of main memory that a program may write.
    pub memory_limit: u64,
    /// The number of cores, each with [`THREADS`] threads; clamped to the range from 1 to
    /// [`CORE_LIMIT`].
    pub cores: usize,
    /// Whether every load and store goes directly to main memory, as if no data caches existed;
    /// `flush` and `dcache_inv` then only check their alignment. Otherwise a store stays in the
    /// cache of its core until it is flushed or evicted, and the host does not see it before.
    pub coherent: bool,
    /// The tile id of the first core, control register 0; each further core is the next tile.
    pub tile: u32,
    /// The mesh of a machine with several cores. Numbers of tiles outside of it wrap.
    pub mesh: Topology,
    /// The core id, control register 1, the same in every tile.
    pub core: u32,
    /// The contents of memory, scratchpads and registers before the first write. Addresses of the
    /// I/O space and control registers have the reset values of the hardware.
    pub fill: Fill,
    /// The number of times that a backward branch, a call or a return has to reach a target before
    /// the target is translated to host code; `None` disables translation. The setting does not
    /// change results, and has no effect without the feature `jit`. Machines with data caches
    /// ([`Config::coherent`]), strict ones with several cores and timing models always interpret.
    pub translate_after: Option<u32>,
    /// The number of host threads that [`Machine::run_threads`] uses to run cores in parallel, at
    /// least 1. The setting does not change results. Machines with data caches
    /// ([`Config::coherent`]), strict ones, random schedules, traces and timing models always use
    /// one.
    pub host_threads: usize,
}

impl Config {
    /// Returns a configuration for tests of programs that have to work on the hardware: errata stop
    /// the program, and unwritten memory and registers hold random values.
    pub fn testing(seed: u64) -> Config {
        Config {
            strict: true,
            fill: Fill::Random(seed),
            ..Config::default()
        }
    }
}

impl Default for Config {
    /// Not strict, 1 GiB, one core, coherent, tile 0, core 0, zeros, translation after 5000
    /// iterations, one host thread.
    fn default() -> Config {
        Config {
            strict: false,
            memory_limit: 1 << 30,
            cores: 1,
            coherent: true,
            tile: 0,
            mesh: Topology::default(),
            core: 0,
            fill: Fill::Zero,
            translate_after: Some(5000),
            host_threads: 1,
        }
    }
}

/// Why a run stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The program set status 2 or 3 and reached a jump to itself.
    Ended {
        /// The status.
        status: Status,
    },
    /// The next instruction is at a stop address; it was not executed.
    Breakpoint {
        /// The stop address.
        pc: u32,
    },
    /// The given number of instructions was executed.
    StepLimit,
    /// The timing model reached [`Timing::set_cycle_limit`](crate::Timing::set_cycle_limit).
    CycleLimit,
    /// The hardware thread can never continue.
    Hang {
        /// The address of the instruction at which it hangs.
        pc: u32,
        /// The reason.
        reason: HangReason,
    },
    /// The program met an erratum whose outcome depends on timing, with [`Config::strict`]. The
    /// instruction was executed.
    Erratum(Finding),
    /// The program wrote more memory than [`Config::memory_limit`].
    MemoryFull {
        /// Address of the instruction.
        pc: u32,
        /// Address of the write.
        address: u32,
    },
    /// The program stores to memory that [`Machine::protect`] covers. The instruction was not
    /// executed.
    ReadOnly {
        /// Address of the instruction.
        pc: u32,
        /// Address of the store.
        address: u32,
    },
    /// The thread number is out of range.
    NoSuchThread,
    /// An internal error of the simulator: parallel writes of several cores
    /// ([`Config::host_threads`]) could not be merged into main memory. The machine is not usable
    /// any more.
    Unjoined,
    /// An internal error of the timing model, see [`Halt::Internal`](crate::Halt::Internal).
    Internal {
        /// Number of the core.
        core: usize,
    },
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Stop::Ended { status } => write!(f, "ended with status {} ({status})", status.code()),
            Stop::Breakpoint { pc } => write!(f, "stop address {pc:#010x}"),
            Stop::StepLimit => f.write_str("step limit"),
            Stop::CycleLimit => f.write_str("cycle limit"),
            Stop::Hang { pc, reason } => write!(f, "hang at {pc:#010x}: {reason}"),
            Stop::Erratum(finding) => write!(
                f,
                "erratum at {:#010x}: {}: {}",
                finding.pc, finding.hazard, finding.detail
            ),
            Stop::ReadOnly { pc, address } => {
                write!(
                    f,
                    "the store at {pc:#010x} writes to {address:#010x}, which is read-only"
                )
            }
            Stop::MemoryFull { pc, address } => {
                write!(f, "the write to {address:#010x} at {pc:#010x} exceeds the memory limit")
            }
            Stop::Unjoined => f.write_str("internal error: the parallel writes of several cores could not be merged"),
            Stop::NoSuchThread => f.write_str("no such hardware thread"),
            Stop::Internal { core } => write!(
                f,
                "internal error: a thread of core {core} waits for an event that the timing model lost"
            ),
        }
    }
}

/// The machine: cores with hardware threads, scratchpad and control registers; barriers, console
/// and main memory.
///
/// Threads are numbered over all cores: thread *t* of core *c* has number [`THREADS`] *c* + *t*.
pub struct Machine {
    /// The threads of all cores, by number.
    pub(crate) threads: Vec<Thread>,
    pub(crate) cores: Vec<Shared>,
    pub(crate) barriers: Barriers,
    pub(crate) console: Console,
    pub(crate) memory: Memory,
    /// `None` in a coherent machine.
    pub(crate) caches: Option<Caches>,
    /// The data caches with the protocol of the hardware, during a run with it.
    pub(crate) ports: Option<Box<Ports>>,
    pub(crate) code: CodeCache,
    #[cfg(feature = "jit")]
    pub(crate) jit: crate::jit::Jit,
    pub(crate) findings: Findings,
    /// Detects faults that involve several cores. Exists only in a strict machine with several
    /// cores.
    pub(crate) sharing: Option<Box<Sharing>>,
    /// Whether an instruction depended on other cores, or had an effect on them other than through
    /// memory.
    pub(crate) met_others: bool,
    /// State for runs on several host threads.
    pub(crate) parallel: Option<Box<Parallel>>,
    topology: Topology,
    fill: Fill,
    /// How often registers were filled.
    fills: u64,
    /// For each thread its last stop address and its instruction count at this stop: the next run
    /// steps over it.
    pub(crate) stopped_at: Vec<Option<(u32, u64)>>,
}

impl std::fmt::Debug for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machine")
            .field("threads", &self.threads)
            .field("memory", &self.memory)
            .finish_non_exhaustive()
    }
}

impl Machine {
    /// Creates a machine with empty memory. All registers are 0 or have the contents of
    /// [`Config::fill`], all lane masks are 0 (as after reset), all PCs are 0.
    pub fn new(config: Config) -> Machine {
        let cores = config.cores.clamp(1, CORE_LIMIT);
        let tiles = (0..cores as u32).map(|k| config.tile.wrapping_add(k));
        let shared = |tile: u32| Shared::new(tile, config.core, config.fill.source(1 + u64::from(tile)));
        let mut machine = Machine {
            threads: vec![Thread::new(); cores * THREADS],
            cores: tiles.map(shared).collect(),
            barriers: Barriers::new(
                (cores > 1).then_some(config.tile..config.tile.saturating_add(cores as u32)),
                config.mesh.core_tiles(),
            ),
            console: Console::default(),
            memory: Memory::with_fill(config.memory_limit, config.fill),
            caches: (!config.coherent).then(|| Caches::new(cores)),
            ports: None,
            code: CodeCache::new(),
            #[cfg(feature = "jit")]
            jit: crate::jit::Jit::new(config.translate_after, false),
            findings: Findings::new(config.strict),
            sharing: (config.strict && cores > 1).then(|| Box::new(Sharing::new(cores, config.mesh))),
            met_others: false,
            parallel: Parallel::new(&config, cores).map(Box::new),
            topology: config.mesh,
            fill: config.fill,
            fills: 0,
            stopped_at: vec![None; cores * THREADS],
        };
        for number in 0..machine.threads() {
            machine.refill_registers(number);
        }
        machine
    }

    /// Creates a machine of one core whose memory is a view without a base.
    pub(crate) fn view(config: &Config) -> Machine {
        let mut machine = Machine::new(Config {
            cores: 1,
            host_threads: 1,
            ..*config
        });
        machine.memory = Memory::view();
        #[cfg(feature = "jit")]
        {
            machine.jit = crate::jit::Jit::new(config.translate_after, true);
        }
        machine
    }

    /// How often translated code was entered.
    #[cfg(feature = "jit")]
    pub fn translations_entered(&self) -> u64 {
        self.jit.entered()
    }

    /// The number of instructions that translated code executed, included in
    /// [`Thread::instructions`].
    #[cfg(feature = "jit")]
    pub fn translated_instructions(&self) -> u64 {
        self.jit.executed()
    }

    /// The mesh of the tiles.
    pub fn topology(&self) -> Topology {
        self.topology
    }

    /// Main memory. Without [`Config::coherent`] it lacks the dirty bytes of the data caches.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Main memory. The host may change it at any time between runs, code included.
    pub fn memory_mut(&mut self) -> &mut Memory {
        &mut self.memory
    }

    /// Reads `bytes` from `address` on as loads of a core would, without side effects. Core numbers
    /// wrap. The I/O space reads as memory.
    pub fn read_as_core(&self, core: usize, address: u32, bytes: &mut [u8]) {
        match &self.caches {
            None => self.memory.read(address, bytes),
            Some(caches) => caches.read(core % self.cores.len(), &self.memory, address, bytes),
        }
    }

    /// Writes bytes as stores of a core would: the core sees them whatever its data cache contains.
    /// Core numbers wrap. The I/O space is written as memory.
    ///
    /// # Errors
    ///
    /// [`MemoryFull`] if the memory limit is reached; earlier bytes have then been written.
    pub fn write_as_core(&mut self, core: usize, address: u32, bytes: &[u8]) -> Result<(), MemoryFull> {
        let core = core % self.cores.len();
        let Some(caches) = &mut self.caches else {
            return self.memory.write(address, bytes);
        };
        let mode = &self.cores[core].mode;
        let (mut at, mut rest) = (address, bytes);
        while !rest.is_empty() {
            let to_line_end = (CACHE_LINE - at % CACHE_LINE) as usize;
            let (now, later) = rest.split_at(to_line_end.min(rest.len()));
            caches.store(core, mode, &mut self.memory, at, now)?;
            at = at.wrapping_add(now.len() as u32);
            rest = later;
        }
        Ok(())
    }

    /// Writes the dirty bytes of the data caches to main memory, core by core, and empties the
    /// caches. The hardware has no such operation; it is for inspecting the results of a program
    /// whether it flushed them or not.
    ///
    /// # Errors
    ///
    /// [`MemoryFull`] if memory exceeds [`Config::memory_limit`].
    pub fn write_back_caches(&mut self) -> Result<(), MemoryFull> {
        match &mut self.caches {
            None => Ok(()),
            Some(caches) => caches.write_back_all(&mut self.memory),
        }
    }

    /// Empties the data caches and discards their dirty bytes, as after reset.
    pub fn clear_caches(&mut self) {
        if let Some(caches) = &mut self.caches {
            caches.clear();
        }
        if let Some(sharing) = &mut self.sharing {
            sharing.clear();
        }
    }

    /// Copies an image into main memory.
    ///
    /// # Errors
    ///
    /// [`MemoryFull`] if the image is larger than [`Config::memory_limit`].
    pub fn load(&mut self, image: &npu_link::Image) -> Result<(), MemoryFull> {
        for segment in &image.segments {
            self.memory.write(segment.address, &segment.bytes)?;
        }
        Ok(())
    }

    /// Makes `length` bytes from `address` on read-only for programs: stores to them end with
    /// [`Stop::ReadOnly`]. This is for code and constant data; the hardware would perform such
    /// stores. Call this before the program runs.
    ///
    /// # Errors
    ///
    /// [`MemoryFull`] if the memory limit is reached.
    pub fn protect(&mut self, address: u32, length: u32) -> Result<(), MemoryFull> {
        self.memory.protect(address, length)
    }

    /// The number of hardware threads, over all cores.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// The number of cores.
    pub fn cores(&self) -> usize {
        self.cores.len()
    }

    /// Returns a hardware thread; numbers wrap modulo [`Machine::threads`].
    pub fn thread(&self, number: usize) -> &Thread {
        &self.threads[number % self.threads.len()]
    }

    /// Returns a hardware thread, for changes between runs; numbers wrap modulo
    /// [`Machine::threads`].
    pub fn thread_mut(&mut self, number: usize) -> &mut Thread {
        let count = self.threads.len();
        &mut self.threads[number % count]
    }

    /// Gives all registers of a thread except `rm` new unwritten contents ([`Config::fill`]),
    /// different ones on each call. `rm` is excluded because a write sets the lane mask. Numbers
    /// wrap. Does nothing with [`Fill::Zero`].
    pub fn refill_registers(&mut self, number: usize) {
        self.fills += 1;
        if let Some(source) = self.fill.source(self.fills << 32) {
            self.thread_mut(number).fill(source);
        }
    }

    /// Returns the core of a thread; thread numbers wrap.
    fn core_of(&self, number: usize) -> &Shared {
        &self.cores[number % self.threads.len() / THREADS]
    }

    /// The scratchpad of the first core.
    pub fn scratchpad(&self) -> &[u8] {
        self.core_scratchpad(0)
    }

    /// The scratchpad of the first core, always [`SCRATCHPAD_SIZE`](crate::SCRATCHPAD_SIZE) bytes.
    pub fn scratchpad_mut(&mut self) -> &mut [u8] {
        self.core_scratchpad_mut(0)
    }

    /// The scratchpad of a core; core numbers wrap.
    pub fn core_scratchpad(&self, core: usize) -> &[u8] {
        &self.cores[core % self.cores.len()].scratchpad
    }

    /// The scratchpad of a core, always [`SCRATCHPAD_SIZE`](crate::SCRATCHPAD_SIZE) bytes; core
    /// numbers wrap.
    pub fn core_scratchpad_mut(&mut self, core: usize) -> &mut [u8] {
        let count = self.cores.len();
        &mut self.cores[core % count].scratchpad
    }

    /// The bytes that all cores have written to the console.
    pub fn console_output(&self) -> &[u8] {
        &self.console.output
    }

    /// Appends bytes to the console input.
    pub fn push_console_input(&mut self, bytes: &[u8]) {
        self.console.input.extend(bytes);
    }

    /// Returns a control register as thread `number` reads it; numbers wrap.
    pub fn control_register(&self, number: usize, register: ControlRegister) -> u32 {
        let thread = self.thread(number);
        let id = (number % THREADS) as u32;
        let value = self.core_of(number).read_control(register.number().into(), id, thread);
        value.unwrap_or(0)
    }

    /// Writes a control register of every core as the host does, with the side effect on CPU
    /// control (`docs/machine/control.md`).
    pub fn set_control_register(&mut self, register: ControlRegister, value: u32) {
        for core in &mut self.cores {
            core.host_write_control(register, value);
        }
    }

    /// Sets the PC of a thread, as the BOOT message of the host does; numbers wrap.
    pub fn boot(&mut self, number: usize, pc: u32) {
        if let Some(sharing) = &mut self.sharing {
            sharing.boot(number % self.threads.len());
        }
        self.thread_mut(number).set_pc(pc);
    }

    /// Sets the mask of threads that a core may run, one bit each, as the ENABLE message of the
    /// host does. The mask replaces the previous one. Core numbers wrap.
    pub fn enable(&mut self, core: usize, mask: u32) {
        let count = self.cores.len();
        self.cores[core % count].enabled = mask & ((1 << THREADS) - 1);
    }

    /// Discards all arrivals at barriers, as after reset. Waiting threads keep waiting until they
    /// get a new PC.
    pub fn reset_barriers(&mut self) {
        self.barriers.reset();
    }

    /// Returns whether a thread is enabled; numbers wrap.
    pub fn is_enabled(&self, number: usize) -> bool {
        self.core_of(number).enabled >> (number % THREADS) & 1 != 0
    }

    /// The errata that the program met and whose outcome depends on timing: one entry for each
    /// address and kind.
    pub fn findings(&self) -> &[Finding] {
        self.findings.list()
    }

    /// Discards the findings.
    pub fn clear_findings(&mut self) {
        self.findings.clear();
    }

    /// Makes `address` a stop address for all threads; returns whether it was one before.
    pub fn add_breakpoint(&mut self, address: u32) -> bool {
        self.code.set_breakpoint(address, true, &self.memory)
    }

    /// Removes a stop address; returns whether `address` was one.
    pub fn remove_breakpoint(&mut self, address: u32) -> bool {
        self.code.set_breakpoint(address, false, &self.memory)
    }

    /// All stop addresses.
    pub fn breakpoints(&self) -> &BTreeSet<u32> {
        self.code.breakpoints()
    }
}
