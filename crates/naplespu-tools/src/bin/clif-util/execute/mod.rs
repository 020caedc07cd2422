//! The execution core of `run`, `sim` and `wasm`: their common options, and the [`Session`] that
//! observes a program and reports on it.

mod misses;
pub mod places;
mod profile;
pub mod report;
mod session;
mod trace;
mod waits;

pub use session::{ModuleSession, Session, finish};

use crate::Stop;
use crate::disasm::parse_address;
use crate::progress::Progress;
use npu_mc::machine::ControlRegister;
use npu_sim::{CORE_LIMIT, Config, QUANTUM, Schedule, THREADS, TimingConfig, Topology};
use std::path::PathBuf;
use trace::TraceArg;

/// The options of a run in the simulator.
#[derive(clap::Args)]
pub struct ExecuteArgs {
    /// Hardware threads: the first N of the device, which has as many cores as they need; with
    /// --cores the first N of each core; or with `0x` a mask with a bit for each thread of a core
    #[arg(long, value_name = "N|MASK", value_parser = parse_threads, default_value = "1")]
    threads: Threads,

    /// Number of cores, each with the same threads
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=CORE_LIMIT as i64))]
    cores: Option<u16>,

    /// Instructions of a thread's turn
    #[arg(long, value_name = "N", default_value_t = QUANTUM, value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "timing")]
    quantum: u32,

    /// Random turns: which thread is next, and for how many instructions, up to the quantum
    #[arg(long, value_name = "SEED", value_parser = parse_number, conflicts_with = "timing")]
    random_turns: Option<u64>,

    /// Maximum number of instructions of the program, line or call, all threads together; by
    /// default one thousand million in `sim`, 200 million in `run`, and unlimited in `wasm`
    #[arg(long, value_name = "N", value_parser = parse_number)]
    pub max_steps: Option<u64>,

    /// Simulate without data caches: every store is visible at once, without a flush, and the run
    /// is faster; `run` and `wasm` always do
    #[arg(long)]
    coherent: bool,

    /// Stop at the first erratum whose outcome depends on timing, instead of a warning
    #[arg(long)]
    strict: bool,

    /// Value of a control register that the host writes before the start; the register is a name or
    /// a number
    #[arg(long, value_name = "REGISTER=VALUE", value_parser = parse_control)]
    pub cr: Vec<(ControlRegister, u32)>,

    /// Print LEN bytes of memory from ADDR on after the program has stopped
    #[arg(long, value_name = "ADDR:LEN", value_parser = parse_range)]
    dump: Vec<(u32, u32)>,

    /// Print the registers after the program has stopped
    #[arg(long)]
    regs: bool,

    /// Wait on this port of the loopback interface for a debugger that uses GDB's protocol; 0 is
    /// any free port
    #[arg(long, value_name = "PORT", conflicts_with_all = ["trace", "timing", "profile"])]
    pub gdb: Option<u16>,

    /// Print every instruction with its effects; with --timing, print every issued instruction with
    /// its cycle, or write a trace for Konata (`kanata:FILE`) or Perfetto (`chrome:FILE`)
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "text", value_parser = trace::parse, conflicts_with = "profile")]
    trace: Option<TraceArg>,

    /// Interpret every instruction instead of translating hot loops to code of the host
    #[arg(long)]
    no_jit: bool,

    /// Host threads that run cores at the same time, with the results of cores in turns; by default
    /// those of the host
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=CORE_LIMIT as i64))]
    host_threads: Option<u16>,

    /// Run with the timing model, and report cycles and their causes
    #[arg(long)]
    timing: bool,

    /// The tiles of a row and the rows of the mesh, for several cores; by default those of the hardware
    #[arg(long, value_name = "WIDTHxHEIGHT", default_value_t = Topology::default())]
    mesh: Topology,

    /// The tile of the mesh with memory; by default the last one
    #[arg(long, value_name = "TILE")]
    memory_tile: Option<u32>,

    /// The tile of the mesh with the host; by default the one before the last
    #[arg(long, value_name = "TILE")]
    host_tile: Option<u32>,

    /// Additional cycles of each memory transaction, for --timing
    #[arg(long, value_name = "CYCLES", default_value_t = 0, requires = "timing")]
    memdelay: u32,

    /// Cycles of a hop between two tiles in each direction, for --timing with several cores
    #[arg(long, value_name = "CYCLES", default_value_t = TimingConfig::default().hop_delay, requires = "timing")]
    hopdelay: u32,

    /// Cycles that a flit occupies a link between two tiles, for --timing with several cores; with
    /// 0, links are never full
    #[arg(long, value_name = "CYCLES", default_value_t = TimingConfig::default().link_cycles, requires = "timing")]
    linkcycles: u32,

    /// Additional cycles of an access to a second-level cache, for --timing with several cores
    #[arg(long, value_name = "CYCLES", default_value_t = 0, requires = "timing")]
    l2delay: u32,

    /// Print the N longest waits of instructions with their causes; 0 is all
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "20", requires = "timing")]
    waits: Option<usize>,

    /// Write all waits to this file as JSON; with several calls, those of the last one
    #[arg(long, value_name = "FILE", requires = "timing")]
    waits_json: Option<PathBuf>,

    #[command(flatten)]
    misses: misses::MissArgs,

    #[command(flatten)]
    profile: profile::ProfileArgs,
}

/// The requested threads.
#[derive(Clone, Copy, Debug)]
enum Threads {
    /// The first ones.
    First(usize),
    /// The threads of each core whose bit is set.
    Mask(u32),
}

/// The simulated device and the threads that run.
pub struct Device {
    /// The configuration of the machine.
    pub config: Config,
    /// The ascending numbers of the threads.
    pub threads: Vec<usize>,
}

impl ExecuteArgs {
    /// Returns the device.
    pub fn device(&self) -> Result<Device, Stop> {
        let each = |mask: u32, cores: usize| {
            let has_bit = |number: &usize| mask >> (number % THREADS) & 1 != 0;
            (cores, (0..cores * THREADS).filter(has_bit).collect())
        };
        let (cores, threads) = match (self.threads, self.cores.map(usize::from)) {
            (Threads::First(count), None) => (count.div_ceil(THREADS), (0..count).collect()),
            (Threads::First(count), Some(_)) if count > THREADS => {
                return Err(Stop::Usage(format!(
                    "with --cores, --threads is the number of threads of each core: at most {THREADS}"
                )));
            }
            (Threads::First(count), Some(cores)) => each((1 << count) - 1, cores),
            (Threads::Mask(mask), cores) => each(mask, cores.unwrap_or(1)),
        };
        self.misses.check(cores)?;
        let usual = Config::default();
        let mesh = self.mesh.with_places(
            self.memory_tile.unwrap_or(self.mesh.memory_tile()),
            self.host_tile.unwrap_or(self.mesh.host_tile()),
        );
        let mesh = mesh.map_err(|error| Stop::Usage(error.to_string()))?;
        if cores as u32 > mesh.tiles() {
            return Err(Stop::Usage(format!("a mesh of {mesh} has no {cores} cores")));
        }
        let config = Config {
            strict: self.strict,
            cores,
            mesh,
            coherent: self.coherent,
            translate_after: usual.translate_after.filter(|_| !self.no_jit),
            host_threads: match self.host_threads {
                Some(threads) => threads.into(),
                None => std::thread::available_parallelism().map_or(1, usize::from),
            },
            ..usual
        };
        Ok(Device { config, threads })
    }

    /// Returns the device for a command whose host calls functions of the device and sees the
    /// memory without the data caches.
    pub fn device_of_calls(&self) -> Result<Device, Stop> {
        if self.gdb.is_some() {
            return Err(Stop::Usage(
                "--gdb debugs a whole program: `link` one, or use `wasm --emit=elf`, and debug it with `sim`"
                    .to_owned(),
            ));
        }
        let mut device = self.device()?;
        device.config.coherent = true;
        Ok(device)
    }

    /// Starts the progress of a run, unless the run prints something else meanwhile.
    pub fn progress(&self) -> Option<Progress> {
        self.trace.is_none().then(|| Progress::spinner("the simulator runs"))
    }

    /// Returns whether a profile is requested.
    pub fn wants_profile(&self) -> bool {
        self.profile.path().is_some()
    }

    /// Returns an option that determines or observes the order of instructions.
    pub fn needs_own_order(&self) -> Option<&'static str> {
        let options = [
            (self.timing, "--timing"),
            (self.trace.is_some(), "--trace"),
            (self.wants_profile(), "--profile"),
            (self.gdb.is_some(), "--gdb"),
            (self.random_turns.is_some(), "--random-turns"),
            (self.coherent, "--coherent"),
        ];
        given(&options)
    }

    /// Returns an option that dispatches of CLIF files do not have.
    pub fn not_of_dispatch(&self) -> Option<&'static str> {
        let options = [
            (self.trace.is_some(), "--trace"),
            (self.wants_profile(), "--profile"),
            (self.gdb.is_some(), "--gdb"),
            (self.random_turns.is_some(), "--random-turns"),
            (!self.dump.is_empty(), "--dump"),
            (self.regs, "--regs"),
            (!self.cr.is_empty(), "--cr"),
            (self.waits.is_some() || self.waits_json.is_some(), "--waits"),
            (self.misses.start().is_some(), "--misses"),
        ];
        given(&options)
    }

    /// Returns the order of turns without the timing model.
    pub fn schedule(&self) -> Schedule {
        match self.random_turns {
            Some(seed) => Schedule::random(seed, self.quantum),
            None => Schedule::round_robin(self.quantum),
        }
    }

    /// Returns the configuration of memory and network, or `None` without the timing model.
    pub fn timing(&self) -> Option<TimingConfig> {
        self.timing.then_some(TimingConfig {
            memory_delay: self.memdelay,
            hop_delay: self.hopdelay,
            link_cycles: self.linkcycles,
            second_level_delay: self.l2delay,
        })
    }
}

/// Returns the first given option.
fn given(options: &[(bool, &'static str)]) -> Option<&'static str> {
    let mut given = options.iter().filter(|(is_given, _)| *is_given);
    given.next().map(|(_, option)| *option)
}

/// Returns an instruction word as text.
pub fn instruction_text(word: u32) -> String {
    npu_mc::decode(word).map_or_else(|_| npu_mc::disasm::data_text(word), |inst| inst.to_string())
}

fn parse_threads(text: &str) -> Result<Threads, String> {
    const ALL: u32 = (1 << THREADS) - 1;
    const MOST: u32 = (CORE_LIMIT * THREADS) as u32;
    match (text.starts_with("0x") || text.starts_with("0X"), parse_address(text)?) {
        (true, mask @ 1..=ALL) => Ok(Threads::Mask(mask)),
        (true, _) => Err(format!("a core has {THREADS} threads, and at least one must run")),
        (false, count @ 1..=MOST) => Ok(Threads::First(count as usize)),
        (false, _) => Err(format!("a device has 1 to {MOST} threads; masks begin with `0x`")),
    }
}

fn parse_number(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is not a decimal number below 2^64"))
}

fn parse_control(text: &str) -> Result<(ControlRegister, u32), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| format!("`{text}` is not of the form REGISTER=VALUE"))?;
    let by_number = name.parse().ok().and_then(ControlRegister::from_number);
    let register = by_number.or_else(|| ControlRegister::ALL.iter().copied().find(|r| r.name() == name));
    let register = register.ok_or_else(|| {
        let known: Vec<&str> = ControlRegister::ALL.iter().map(|register| register.name()).collect();
        format!("there is no control register `{name}`; there are {}", known.join(", "))
    })?;
    Ok((register, parse_address(value)?))
}

/// The maximum size of a dump, in bytes.
const MAX_DUMP: u32 = 64 << 20;

fn parse_range(text: &str) -> Result<(u32, u32), String> {
    let (address, length) = text
        .split_once(':')
        .ok_or_else(|| format!("`{text}` is not of the form ADDR:LEN"))?;
    let length = parse_address(length)?;
    if length > MAX_DUMP {
        return Err(format!("at most {MAX_DUMP} bytes"));
    }
    Ok((parse_address(address)?, length))
}
