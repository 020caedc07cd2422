//! `clif-util sim`: runs programs in the simulator.

use crate::disasm::{FormatArg, Loaded, parse_address, read_image};
use crate::profile::{Profile, ProfileArgs};
use crate::sim_report;
use crate::sim_trace::{Files, Trace};
use crate::speed_args::SpeedArgs;
use crate::timing_args::TimingArgs;
use crate::{Outcome, Stop, output};
use npu_link::debug::ProgramInfo;
use npu_link::{Image, Segment};
use npu_mc::machine::ControlRegister;
use npu_mc::{SReg, VReg};
use npu_sim::{
    Both, CORE_LIMIT, ChromeTrace, Config, Halt, Issue, KanataTrace, Machine, NoSink, QUANTUM, Schedule, Sink, Status,
    Stop as End, THREADS, Timing, TraceEvent, Waits,
};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

/// Run a program in the simulator: an ELF file, a flat binary, a hex word file or a memory image
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    files: Files,

    /// Start address; by default that of an ELF file, else the boot address 0x400 if the image
    /// contains it, else the first word of the image
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    pc: Option<u32>,

    /// The format of the image
    #[arg(long, value_enum, default_value_t = FormatArg::Auto, value_name = "FORMAT")]
    format: FormatArg,

    /// Load address of flat binaries and hex words; by default 0, or the start address if the image
    /// would not contain it
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    base: Option<u32>,

    #[command(flatten)]
    timing: TimingArgs,

    /// Wait on this port of the loopback interface for a debugger that uses GDB's protocol; 0 is
    /// any free port
    #[arg(long, value_name = "PORT", conflicts_with_all = ["trace", "timing", "profile"])]
    gdb: Option<u16>,

    #[command(flatten)]
    profile: ProfileArgs,

    /// Threads of each core to run: the first N, or with `0x` a mask with a bit for each thread
    #[arg(long, value_name = "N|MASK", value_parser = parse_threads, default_value = "1")]
    threads: u32,

    /// Number of cores
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=CORE_LIMIT as i64))]
    cores: u16,

    /// Instructions of a thread's turn
    #[arg(long, value_name = "N", default_value_t = QUANTUM, value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "timing")]
    quantum: u32,

    /// Random turns: which thread is next, and for how many instructions, up to the quantum
    #[arg(long, value_name = "SEED", conflicts_with = "timing")]
    random_turns: Option<u64>,

    /// Simulate without data caches: every store is visible at once, without a flush, and the run
    /// is faster
    #[arg(long)]
    coherent: bool,

    /// Value of a control register that the host writes before the start; the register is a name or
    /// a number
    #[arg(long, value_name = "REGISTER=VALUE", value_parser = parse_control)]
    cr: Vec<(ControlRegister, u32)>,

    /// Maximum number of instructions, all threads together
    #[arg(long, value_name = "N", default_value_t = 1_000_000_000)]
    max_steps: u64,

    /// Print LEN bytes of memory from ADDR on after the program has stopped
    #[arg(long, value_name = "ADDR:LEN", value_parser = parse_range)]
    dump: Vec<(u32, u32)>,

    /// Print the registers after the program has stopped
    #[arg(long)]
    regs: bool,

    /// Stop at the first erratum whose outcome depends on timing, instead of a warning
    #[arg(long)]
    strict: bool,

    #[command(flatten)]
    speed: SpeedArgs,
}

fn parse_threads(text: &str) -> Result<u32, String> {
    let number = parse_address(text)?;
    if text.starts_with("0x") || text.starts_with("0X") {
        return match number {
            1..=ALL_THREADS => Ok(number),
            _ => Err(format!("a core has {THREADS} threads, and at least one must run")),
        };
    }
    match number {
        1..=THREAD_COUNT => Ok((1 << number) - 1),
        _ => Err(format!("a core has 1 to {THREADS} threads; masks begin with `0x`")),
    }
}

fn parse_control(text: &str) -> Result<(ControlRegister, u32), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| format!("`{text}` is not of the form REGISTER=VALUE"))?;
    let by_number = name.parse().ok().and_then(ControlRegister::from_number);
    let register = by_number.or_else(|| ControlRegister::ALL.iter().copied().find(|r| r.name() == name));
    let register = register.ok_or_else(|| format!("there is no control register `{name}`"))?;
    Ok((register, parse_address(value)?))
}

const THREAD_COUNT: u32 = THREADS as u32;
const ALL_THREADS: u32 = (1 << THREADS) - 1;

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

/// Loads the image. Returns the machine and the threads that run, each at the start address.
fn boot(args: &Args, mut image: Image, info: Option<&ProgramInfo>) -> Result<(Machine, Vec<usize>), Stop> {
    if let (Some(pc), None) = (args.pc, args.base)
        && !holds(&image, pc)
        && let [only] = image.segments.as_mut_slice()
        && only.address == 0
    {
        // An image without addresses is loaded at the start address.
        only.address = pc;
    }
    let Some(first) = image.segments.iter().find(|s| !s.bytes.is_empty()).map(|s| s.address) else {
        return Err(Stop::Fault("the image is empty".to_owned()));
    };
    let boot = npu_mc::machine::BOOT_PC;
    let said = args.pc.or(image.entry);
    let start = said.unwrap_or(if holds(&image, boot) { boot } else { first });
    if !start.is_multiple_of(npu_mc::machine::INSTRUCTION_SIZE) {
        return Err(Stop::Fault(format!(
            "{start:#010x} is not an address of an instruction"
        )));
    }
    let mut machine = Machine::new(Config {
        strict: args.strict,
        cores: args.cores.into(),
        coherent: args.coherent,
        ..args.speed.config()
    });
    machine.load(&image).map_err(|full| {
        Stop::Fault(format!(
            "the image is larger than the memory limit, at {:#010x}",
            full.address
        ))
    })?;
    let sections = info.iter().flat_map(|info| &info.sections);
    for section in sections.filter(|section| !section.write) {
        let protected = machine.protect(section.start, section.end - section.start);
        protected.map_err(|full| Stop::Fault(full.to_string()))?;
    }
    for &(register, value) in &args.cr {
        machine.set_control_register(register, value);
    }
    for core in 0..machine.cores() {
        machine.enable(core, args.threads);
    }
    let numbers: Vec<usize> = (0..machine.threads()).filter(|&n| machine.is_enabled(n)).collect();
    for &number in &numbers {
        machine.boot(number, start);
    }
    Ok((machine, numbers))
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Outcome {
    if args.profile.wanted() && args.files.trace != Trace::None {
        return Err(Stop::Usage("--profile and --trace cannot be used together".to_owned()));
    }
    let loaded = read_image(&args.files.image, args.format, args.base.unwrap_or(0))?;
    let info = program_info(&loaded);
    let (mut machine, numbers) = boot(args, loaded.image, info.as_ref())?;
    if let Some(port) = args.gdb {
        return crate::gdb::serve(machine, info, port);
    }
    let (mut report, mut waits) = (None, None);
    let mut profile = match (args.profile.wanted(), &info) {
        (false, _) => None,
        (true, Some(info)) => Some(Profile::new(info, args.profile.by())),
        (true, None) => {
            return Err(Stop::Fault(
                "a profile needs the symbols of an executable ELF file".to_owned(),
            ));
        }
    };
    let halt = if let Some(profile) = &mut profile {
        execute(args, &mut machine, &numbers, Some(&mut |event| profile.count(event)))
    } else if let Some(config) = args.timing.config() {
        let mut timing = Timing::new(config);
        let mut found = args.timing.wants_waits().then(Waits::new);
        let halt = execute_timed(args, &mut machine, &mut timing, found.as_mut())?;
        waits = found.map(|found| found.report());
        report = Some(timing.report());
        halt
    } else if let Trace::Kanata(_) | Trace::Chrome(_) = args.files.trace {
        return Err(Stop::Fault(
            "a trace for a viewer shows cycles, so it needs --timing".to_owned(),
        ));
    } else if args.files.trace == Trace::Text {
        execute_traced(args, &mut machine, &numbers, info.as_ref())?
    } else {
        execute(args, &mut machine, &numbers, None)
    };
    if let Some(profile) = &profile {
        args.profile.write(profile, &loaded.name)?;
    }
    let console = machine.console_output();
    output::print(console)?;
    let mut text = String::new();
    if console.last().is_some_and(|&last| last != b'\n') {
        text.push('\n');
    }
    if args.regs {
        for &number in &numbers {
            if numbers.len() > 1 {
                // Writing to a string does not fail.
                let _ = writeln!(text, "thread {number}");
            }
            registers(&machine, number, &mut text);
        }
    }
    for &(address, length) in &args.dump {
        dump(&machine, address, length, &mut text);
    }
    report_execution(&machine, &numbers, &halt, &mut text);
    if let Some(report) = report {
        let _ = write!(text, "{report}");
    }
    if let Some(waits) = &waits {
        let place = |pc| info.as_ref().map(|info| sim_report::place(info, pc));
        text += &args.timing.waits_text(waits, &place);
        args.timing.write_waits(waits, &place)?;
    }
    output::print(text.as_bytes())?;
    for finding in machine.findings() {
        output::report(&format!(
            "warning: erratum {} at {:#010x}: {}\n",
            finding.hazard, finding.pc, finding.detail
        ));
    }
    if let Some(info) = &info {
        for &number in &numbers {
            let stop = match &halt {
                Execution::One(stop) => Some(stop),
                Execution::Many(Halt::Thread { thread, stop }) if *thread == number => Some(stop),
                Execution::Many(_) => None,
            };
            if let Some(text) = sim_report::thread(&machine, number, stop, info) {
                output::report(&text);
            }
        }
    }
    match halt {
        Execution::One(End::Ended { status }) if status == Status::ENDED => Ok(()),
        Execution::Many(Halt::Ended) if numbers.iter().all(|&n| machine.thread(n).status() == Status::ENDED) => Ok(()),
        _ => Err(Stop::Reported),
    }
}

/// Returns the debug information of an ELF file. Leaves out damaged parts with a warning.
fn program_info(loaded: &Loaded) -> Option<ProgramInfo> {
    if loaded.format.is_some() {
        return None;
    }
    let warn = |text: String| output::report(&format!("warning: {}: {text}\n", loaded.name));
    match ProgramInfo::read(&loaded.bytes) {
        Ok(info) => {
            info.damaged.iter().for_each(|error| warn(error.to_string()));
            Some(info)
        }
        Err(error) => {
            warn(error.to_string());
            None
        }
    }
}

/// The end of a run of one thread or of several.
enum Execution {
    One(End),
    Many(Halt),
}

fn execute(
    args: &Args,
    machine: &mut Machine,
    numbers: &[usize],
    trace: Option<&mut dyn FnMut(&TraceEvent<'_>)>,
) -> Execution {
    if let &[number] = numbers {
        return Execution::One(match trace {
            Some(trace) => machine.run_traced(number, args.max_steps, trace),
            None => machine.run(number, args.max_steps),
        });
    }
    let mut schedule = match args.random_turns {
        Some(seed) => Schedule::random(seed, args.quantum),
        None => Schedule::round_robin(args.quantum),
    };
    Execution::Many(match trace {
        Some(trace) => machine.run_threads_traced(&mut schedule, args.max_steps, trace),
        None => machine.run_threads(&mut schedule, args.max_steps),
    })
}

/// Runs and prints each instruction, and its source location where that changes.
fn execute_traced(
    args: &Args,
    machine: &mut Machine,
    numbers: &[usize],
    info: Option<&ProgramInfo>,
) -> Result<Execution, Stop> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut closed = false;
    let mut places = sim_report::Places::new(info);
    let halt = execute(
        args,
        machine,
        numbers,
        Some(&mut |event| {
            if let Some(place) = places.next(event.thread, event.pc) {
                closed = closed || writeln!(out, "# {place}").is_err();
            }
            closed = closed || writeln!(out, "{event}").is_err();
        }),
    );
    if closed {
        return Err(Stop::Closed);
    }
    out.flush()?;
    Ok(halt)
}

/// Runs with the timing model and writes the requested trace.
fn execute_timed(
    args: &Args,
    machine: &mut Machine,
    timing: &mut Timing,
    mut waits: Option<&mut Waits>,
) -> Result<Execution, Stop> {
    let create = |path: &Path| {
        let file = std::fs::File::create(path);
        let file = file.map_err(|e| Stop::Fault(format!("{}: {e}", path.display())))?;
        Ok::<_, Stop>(std::io::BufWriter::new(file))
    };
    let written =
        |path: &Path, result: std::io::Result<()>| result.map_err(|e| Stop::Fault(format!("{}: {e}", path.display())));
    Ok(Execution::Many(match &args.files.trace {
        Trace::None => timed(&mut NoSink, machine, timing, args.max_steps, &mut waits),
        Trace::Text => {
            let mut text = IssueLines::default();
            let halt = timed(&mut text, machine, timing, args.max_steps, &mut waits);
            if text.closed {
                return Err(Stop::Closed);
            }
            halt
        }
        Trace::Kanata(path) => {
            let mut trace = KanataTrace::new(create(path)?);
            let halt = timed(&mut trace, machine, timing, args.max_steps, &mut waits);
            written(path, trace.finish())?;
            halt
        }
        Trace::Chrome(path) => {
            let mut trace = ChromeTrace::new(create(path)?);
            let halt = timed(&mut trace, machine, timing, args.max_steps, &mut waits);
            written(path, trace.finish())?;
            halt
        }
    }))
}

/// Runs with a sink for events and optionally one for waits.
fn timed<S: Sink>(
    sink: &mut S,
    machine: &mut Machine,
    timing: &mut Timing,
    limit: u64,
    waits: &mut Option<&mut Waits>,
) -> Halt {
    match waits {
        Some(waits) => machine.run_timed(timing, limit, &mut Both(*waits, sink)),
        None => machine.run_timed(timing, limit, sink),
    }
}

/// Prints a line for each issued instruction: cycle, thread, address, word, text, and `x` if it is
/// killed.
#[derive(Default)]
struct IssueLines {
    closed: bool,
}

impl Sink for IssueLines {
    fn issue(&mut self, issue: &Issue) {
        let text = match npu_mc::decode(issue.word) {
            Ok(inst) => inst.to_string(),
            Err(_) => format!(".word {:#010x}", issue.word),
        };
        let killed = if issue.killed { " x" } else { "" };
        let (cycle, thread, pc, word) = (issue.cycle, issue.thread, issue.pc, issue.word);
        let line = format!("{cycle} {thread} {pc:08x} {word:08x}  {text}{killed}\n");
        self.closed = self.closed || output::print(line.as_bytes()).is_err();
    }
}

/// Appends the last lines: the reason of the end and the number of instructions.
fn report_execution(machine: &Machine, numbers: &[usize], halt: &Execution, text: &mut String) {
    // Writing to a string does not fail.
    let _ = match halt {
        Execution::One(stop) => {
            let steps: u64 = numbers.iter().map(|&n| machine.thread(n).instructions()).sum();
            writeln!(text, "{stop}, {steps} instructions")
        }
        Execution::Many(halt) => {
            for &number in numbers {
                let thread = machine.thread(number);
                let (pc, status, steps) = (thread.pc(), thread.status(), thread.instructions());
                let _ = writeln!(
                    text,
                    "thread {number}: at {pc:#010x}, status {} ({status}), {steps} instructions",
                    status.code()
                );
            }
            writeln!(text, "{halt}")
        }
    };
}

/// Returns whether the image has a byte at this address.
fn holds(image: &Image, address: u32) -> bool {
    let inside = |s: &Segment| (address.wrapping_sub(s.address) as usize) < s.bytes.len();
    image.segments.iter().any(inside)
}

fn registers(machine: &Machine, number: usize, text: &mut String) {
    let thread = machine.thread(number);
    let scalars: Vec<_> = SReg::all().filter(|&r| r != SReg::PC).collect();
    for row in scalars.chunks(4) {
        let cells: Vec<String> = row
            .iter()
            .map(|r| format!("{:>4} {:08x}", r.name(), thread.scalar(*r)))
            .collect();
        let _ = writeln!(text, "{}", cells.join("  "));
    }
    let _ = writeln!(text, "  pc {:08x}  mask {:04x}", thread.pc(), thread.mask());
    for reg in VReg::all() {
        let lanes: Vec<String> = thread.vector(reg).0.iter().map(|l| format!("{l:08x}")).collect();
        // Most programs leave most vectors zero.
        if lanes.iter().any(|l| l != "00000000") {
            let _ = writeln!(text, "{:>4} {}", reg.name(), lanes.join(" "));
        }
    }
}

fn dump(machine: &Machine, address: u32, length: u32, text: &mut String) {
    for row in (0..length).step_by(16) {
        let at = address.wrapping_add(row);
        let mut bytes = [0; 16];
        let bytes = &mut bytes[..(length - row).min(16) as usize];
        machine.memory().read(at, bytes);
        let list: Vec<String> = bytes.iter().map(|b| format!("{b:02x}")).collect();
        let _ = writeln!(text, "{at:08x}: {}", list.join(" "));
    }
}
