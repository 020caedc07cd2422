//! The cores with their memory: what an embedder holds.

use crate::barrier::Barriers;
use crate::cache::Caches;
use crate::fill::Fill;
use crate::findings::{Finding, Findings};
use crate::memory::{Memory, MemoryFull};
use crate::parallel::Parallel;
use crate::predecode::CodeCache;
use crate::rest::{HangReason, Status};
use crate::shared::{Console, Shared};
use crate::thread::Thread;
use npu_mc::machine::{CACHE_LINE, ControlRegister};
use std::collections::BTreeSet;

/// Hardware threads of a core.
pub const THREADS: usize = npu_mc::machine::THREADS_PER_CORE as usize;

/// Most cores of a machine: the tiles that the upper bits of a barrier id can name.
pub const CORE_LIMIT: usize = (npu_mc::machine::BARRIER_IDS / npu_mc::machine::BARRIER_COUNTERS) as usize;

/// How the machine is built and how strict the simulator is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Stop at the first erratum whose outcome depends on timing, instead of only collecting it.
    pub strict: bool,
    /// Bytes of main memory that a program may write before it is stopped.
    pub memory_limit: u64,
    /// Cores, each with [`THREADS`] threads; from 1 to [`CORE_LIMIT`], others are taken to the nearest of these.
    pub cores: usize,
    /// Every load and store goes to main memory at once, as if there were no data caches; `flush` and `dcache_inv` only check
    /// their alignment. Without it a store stays in the cache of its core until it is flushed or evicted, and the host sees
    /// it no sooner.
    pub coherent: bool,
    /// Tile id of the first core, control register 0; each further core is the next tile.
    pub tile: u32,
    /// Core id, control register 1, the same in every tile.
    pub core: u32,
    /// What memory, scratchpads and registers hold that nobody wrote. Addresses of the I/O space and control registers are as
    /// the hardware resets them.
    pub fill: Fill,
    /// What a backward branch, a call or a return went to so often becomes code of the host; `None`: everything is interpreted. Results do not
    /// depend on it, nor does anything without the feature `jit`. Machines with data caches ([`Config::coherent`]) and
    /// models of cycles interpret in any case.
    pub translate_after: Option<u32>,
    /// Threads of the host that [`Machine::run_threads`] uses for several cores at the same time; from 1 on. Results do not depend on it.
    /// Machines with data caches ([`Config::coherent`]), random schedules, traces and models of cycles use one in any case.
    pub host_threads: usize,
}

impl Config {
    /// For tests of programs that have to work on the hardware: an erratum stops them, and nothing is zero by chance.
    pub fn testing(seed: u64) -> Config {
        Config {
            strict: true,
            fill: Fill::Random(seed),
            ..Config::default()
        }
    }
}

impl Default for Config {
    /// Not strict, 1 GiB, one core, coherent, tile 0, core 0, zeros, translations after 5000 rounds, one thread of the host.
    fn default() -> Config {
        Config {
            strict: false,
            memory_limit: 1 << 30,
            cores: 1,
            coherent: true,
            tile: 0,
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
    /// The program set status 2 or 3 and jumps to itself.
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
    /// The timing model has come to [`Timing::set_cycle_limit`](crate::Timing::set_cycle_limit).
    CycleLimit,
    /// The hardware thread would never go on.
    Hang {
        /// Address of the instruction it hangs at.
        pc: u32,
        /// Why.
        reason: HangReason,
    },
    /// With [`Config::strict`]: an erratum whose outcome depends on timing. The instruction has been executed.
    Erratum(Finding),
    /// The program wrote more memory than [`Config::memory_limit`].
    MemoryFull {
        /// Address of the instruction.
        pc: u32,
        /// Address of the write.
        address: u32,
    },
    /// The program stores to what [`Machine::protect`] was said of. The instruction was not executed.
    ReadOnly {
        /// Address of the instruction.
        pc: u32,
        /// Address of the store.
        address: u32,
    },
    /// There is no hardware thread with that number.
    NoSuchThread,
    /// A fault of the simulator: what cores wrote at the same time ([`Config::host_threads`]) did not come together in main memory. The
    /// machine is of no use any more.
    Unjoined,
    /// A fault of the timing model, see [`Halt::Internal`](crate::Halt::Internal).
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
                write!(f, "the store at {pc:#010x} is to {address:#010x}, which is read-only")
            }
            Stop::MemoryFull { pc, address } => {
                write!(f, "memory limit at {pc:#010x}, with the write at {address:#010x}")
            }
            Stop::Unjoined => f.write_str("internal error: the writes of several cores did not come together"),
            Stop::NoSuchThread => f.write_str("no such hardware thread"),
            Stop::Internal { core } => write!(
                f,
                "internal error: the pipelines of core {core} lost something that is waited for"
            ),
        }
    }
}

/// The cores, with hardware threads, scratchpad and control registers each; barriers, console and main memory.
///
/// Threads are numbered over all cores: thread *t* of core *c* has number [`THREADS`] *c* + *t*.
pub struct Machine {
    /// Of all cores, by number.
    pub(crate) threads: Vec<Thread>,
    pub(crate) cores: Vec<Shared>,
    pub(crate) barriers: Barriers,
    pub(crate) console: Console,
    pub(crate) memory: Memory,
    /// `None` in a coherent machine.
    pub(crate) caches: Option<Caches>,
    pub(crate) code: CodeCache,
    #[cfg(feature = "jit")]
    pub(crate) jit: crate::jit::Jit,
    pub(crate) findings: Findings,
    /// An instruction did something that is seen by other cores and is not in memory, or depends on them.
    pub(crate) met_others: bool,
    /// For runs by several threads of the host.
    pub(crate) parallel: Option<Box<Parallel>>,
    fill: Fill,
    /// Times that registers were filled.
    fills: u64,
    /// Where each thread last stopped at a stop address, with its instruction count then: the next run steps over it.
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
    /// A machine with empty memory; all registers 0 or as [`Config::fill`] says, all masks 0 (as after reset), all PCs 0.
    pub fn new(config: Config) -> Machine {
        let cores = config.cores.clamp(1, CORE_LIMIT);
        let tiles = (0..cores as u32).map(|k| config.tile.wrapping_add(k));
        let shared = |tile: u32| Shared::new(tile, config.core, config.fill.source(1 + u64::from(tile)));
        let mut machine = Machine {
            threads: vec![Thread::new(); cores * THREADS],
            cores: tiles.map(shared).collect(),
            barriers: Barriers::new(cores > 1),
            console: Console::default(),
            memory: Memory::with_fill(config.memory_limit, config.fill),
            caches: (!config.coherent).then(|| Caches::new(cores)),
            code: CodeCache::new(),
            #[cfg(feature = "jit")]
            jit: crate::jit::Jit::new(config.translate_after, false),
            findings: Findings::new(config.strict),
            met_others: false,
            parallel: Parallel::new(&config, cores).map(Box::new),
            fill: config.fill,
            fills: 0,
            stopped_at: vec![None; cores * THREADS],
        };
        for number in 0..machine.threads() {
            machine.refill_registers(number);
        }
        machine
    }

    /// A machine of one core whose memory is a view, without a base yet.
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

    /// Times that translated code was entered.
    #[cfg(feature = "jit")]
    pub fn translations_entered(&self) -> u64 {
        self.jit.entered()
    }

    /// Instructions that translated code executed, of those that [`Thread::instructions`] counts.
    #[cfg(feature = "jit")]
    pub fn translated_instructions(&self) -> u64 {
        self.jit.executed()
    }

    /// Main memory. Without [`Config::coherent`] it lacks what the data caches hold back.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Main memory, to be changed at any time between runs, code included.
    pub fn memory_mut(&mut self) -> &mut Memory {
        &mut self.memory
    }

    /// Fills `bytes` with what loads of a core would find from `address` on, and changes nothing; numbers of cores wrap. I/O
    /// space reads as memory.
    pub fn read_as_core(&self, core: usize, address: u32, bytes: &mut [u8]) {
        match &self.caches {
            None => self.memory.read(address, bytes),
            Some(caches) => caches.read(core % self.cores.len(), &self.memory, address, bytes),
        }
    }

    /// Writes bytes as stores of a core would, so that the core finds them whatever its data cache has; numbers of cores wrap. I/O space is
    /// written as memory.
    ///
    /// # Errors
    ///
    /// [`MemoryFull`] when the limit of memory is reached; bytes before that are written.
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

    /// Writes what the data caches hold back to main memory, core by core, and empties them. Nothing on the hardware does this;
    /// it is for looking at what a program computed, flushed or not.
    ///
    /// # Errors
    ///
    /// [`MemoryFull`] when that exceeds [`Config::memory_limit`].
    pub fn write_back_caches(&mut self) -> Result<(), MemoryFull> {
        match &mut self.caches {
            None => Ok(()),
            Some(caches) => caches.write_back_all(&mut self.memory),
        }
    }

    /// Empties the data caches, and forgets what they hold back: as after reset.
    pub fn clear_caches(&mut self) {
        if let Some(caches) = &mut self.caches {
            caches.clear();
        }
    }

    /// Copies an image into main memory.
    ///
    /// # Errors
    ///
    /// [`MemoryFull`] when it is larger than [`Config::memory_limit`].
    pub fn load(&mut self, image: &npu_link::Image) -> Result<(), MemoryFull> {
        for segment in &image.segments {
            self.memory.write(segment.address, &segment.bytes)?;
        }
        Ok(())
    }

    /// Lets stores of programs to `length` bytes from `address` on be errors, [`Stop::ReadOnly`]: code, and data that is only read. The
    /// hardware would do them. Say so before the program runs.
    ///
    /// # Errors
    ///
    /// [`MemoryFull`] when the limit of memory is reached.
    pub fn protect(&mut self, address: u32, length: u32) -> Result<(), MemoryFull> {
        self.memory.protect(address, length)
    }

    /// Number of hardware threads, over all cores.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Number of cores.
    pub fn cores(&self) -> usize {
        self.cores.len()
    }

    /// A hardware thread; numbers wrap modulo [`Machine::threads`].
    pub fn thread(&self, number: usize) -> &Thread {
        &self.threads[number % self.threads.len()]
    }

    /// A hardware thread, to be changed between runs; numbers wrap modulo [`Machine::threads`].
    pub fn thread_mut(&mut self, number: usize) -> &mut Thread {
        let count = self.threads.len();
        &mut self.threads[number % count]
    }

    /// Gives all registers of a thread values that nobody wrote, other ones each time, but for `rm`, which a write would make the
    /// lane mask; numbers wrap. Nothing happens with [`Fill::Zero`].
    pub fn refill_registers(&mut self, number: usize) {
        self.fills += 1;
        if let Some(source) = self.fill.source(self.fills << 32) {
            self.thread_mut(number).fill(source);
        }
    }

    /// The core of a thread; numbers of threads wrap.
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

    /// The scratchpad of a core; numbers of cores wrap.
    pub fn core_scratchpad(&self, core: usize) -> &[u8] {
        &self.cores[core % self.cores.len()].scratchpad
    }

    /// The scratchpad of a core, always [`SCRATCHPAD_SIZE`](crate::SCRATCHPAD_SIZE) bytes; numbers of cores wrap.
    pub fn core_scratchpad_mut(&mut self, core: usize) -> &mut [u8] {
        let count = self.cores.len();
        &mut self.cores[core % count].scratchpad
    }

    /// Bytes written to the console so far, by all cores.
    pub fn console_output(&self) -> &[u8] {
        &self.console.output
    }

    /// Bytes for the console input, after those not yet read.
    pub fn push_console_input(&mut self, bytes: &[u8]) {
        self.console.input.extend(bytes);
    }

    /// A control register as thread `number` reads it; numbers wrap.
    pub fn control_register(&self, number: usize, register: ControlRegister) -> u32 {
        let thread = self.thread(number);
        let id = (number % THREADS) as u32;
        let value = self.core_of(number).read_control(register.number().into(), id, thread);
        value.unwrap_or(0)
    }

    /// A control-register write by the host to every core, with the side effect on CPU control (`docs/machine/control.md`).
    pub fn set_control_register(&mut self, register: ControlRegister, value: u32) {
        for core in &mut self.cores {
            core.host_write_control(register, value);
        }
    }

    /// Sets the PC of a thread, as the host's BOOT message does; numbers wrap.
    pub fn boot(&mut self, number: usize, pc: u32) {
        self.thread_mut(number).set_pc(pc);
    }

    /// Sets the threads that a core may run, one bit each, as the host's ENABLE message does: the mask replaces the one
    /// before. Numbers of cores wrap.
    pub fn enable(&mut self, core: usize, mask: u32) {
        let count = self.cores.len();
        self.cores[core % count].enabled = mask & ((1 << THREADS) - 1);
    }

    /// Forgets all arrivals at barriers, as after reset. Threads that wait go on waiting until they get a new PC.
    pub fn reset_barriers(&mut self) {
        self.barriers.reset();
    }

    /// Whether a thread is enabled; numbers wrap.
    pub fn is_enabled(&self, number: usize) -> bool {
        self.core_of(number).enabled >> (number % THREADS) & 1 != 0
    }

    /// Errata whose outcome depends on timing that the program met so far, one entry an address and kind.
    pub fn findings(&self) -> &[Finding] {
        self.findings.list()
    }

    /// Forgets the findings.
    pub fn clear_findings(&mut self) {
        self.findings.clear();
    }

    /// Makes `address` a stop address for all threads; gives whether it was one.
    pub fn add_breakpoint(&mut self, address: u32) -> bool {
        self.code.set_breakpoint(address, true, &self.memory)
    }

    /// Undoes [`Machine::add_breakpoint`]; gives whether it was a stop address.
    pub fn remove_breakpoint(&mut self, address: u32) -> bool {
        self.code.set_breakpoint(address, false, &self.memory)
    }

    /// All stop addresses.
    pub fn breakpoints(&self) -> &BTreeSet<u32> {
        self.code.breakpoints()
    }
}
