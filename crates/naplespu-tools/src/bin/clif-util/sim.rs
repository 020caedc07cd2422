//! `clif-util sim`: runs programs in the simulator.

use crate::disasm::{FormatArg, Loaded, parse_address, read_image};
use crate::execute::{Device, ExecuteArgs, Session, report};
use crate::{Outcome, Stop, TRAPPED, output};
use npu_link::debug::ProgramInfo;
use npu_link::{Image, Segment};
use npu_sim::coherence::Coherence;
use npu_sim::{Halt, HangReason, Machine, Status, Stop as End, THREADS, Timing, TraceEvent};
use std::fmt::Write as _;
use std::path::PathBuf;

/// Run a program in the simulator: an ELF file, a flat binary, a hex word file or a memory image
#[derive(clap::Args)]
pub struct Args {
    /// The image; `-` is standard input
    #[arg(value_name = "IMAGE")]
    image: PathBuf,

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

    /// The coherence of the data caches of several cores: `simple` has the effect of a load or store
    /// at once; `hardware` sends the messages of the hardware in a random order, and has its faults
    #[arg(long, value_enum, default_value_t = CoherenceArg::Simple, value_name = "MODEL")]
    coherence: CoherenceArg,

    /// The order of the messages and threads with --coherence=hardware
    #[arg(long, value_name = "SEED", default_value_t = 0, requires = "coherence")]
    coherence_seed: u64,

    #[command(flatten)]
    execute: ExecuteArgs,
}

/// A model of the coherence of data caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum CoherenceArg {
    /// Loads and stores have their effect at once.
    Simple,
    /// The protocol of the hardware with its faults.
    Hardware,
}

/// The default limit of instructions.
const MAX_STEPS: u64 = 1_000_000_000;

/// Loads the image. Returns the machine with the threads at the start address.
fn boot(args: &Args, device: &Device, mut image: Image, info: Option<&ProgramInfo>) -> Result<Machine, Stop> {
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
    let mut machine = Machine::new(device.config);
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
    for &(register, value) in &args.execute.cr {
        machine.set_control_register(register, value);
    }
    for core in 0..machine.cores() {
        let own = device.threads.iter().filter(|&&number| number / THREADS == core);
        machine.enable(core, own.fold(0, |mask, number| mask | 1 << (number % THREADS)));
    }
    for &number in &device.threads {
        machine.boot(number, start);
    }
    Ok(machine)
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Outcome {
    let loaded = read_image(&args.image, args.format, args.base.unwrap_or(0))?;
    let info = program_info(&loaded);
    let device = args.execute.device()?;
    let is_hardware = args.coherence == CoherenceArg::Hardware;
    if let Some(option) = args.execute.needs_own_order().filter(|_| is_hardware) {
        return Err(Stop::Usage(format!("{option} does not work with --coherence=hardware")));
    }
    let mut machine = boot(args, &device, loaded.image, info.as_ref())?;
    if let Some(port) = args.execute.gdb {
        return crate::gdb::serve(machine, info, port);
    }
    if args.execute.wants_profile() && info.is_none() {
        return Err(Stop::Fault(
            "a profile needs the symbols of an executable ELF file".to_owned(),
        ));
    }
    let mut session = Session::new(&args.execute, info.as_ref())?;
    session.start(&args.execute)?;
    let mut timing = args.execute.timing().map(Timing::new);
    let limit = args.execute.max_steps.unwrap_or(MAX_STEPS);
    let progress = args.execute.progress();
    let halt = match (&mut timing, device.threads.as_slice()) {
        _ if is_hardware => {
            let mut coherence = Coherence::new(&machine, args.coherence_seed);
            Execution::Many(machine.run_coherence(&mut coherence, limit))
        }
        (Some(timing), _) => Execution::Many(session.run_timed(&mut machine, timing, limit)),
        (None, &[number]) if session.observes(&args.execute) => {
            Execution::One(machine.run_traced(number, limit, &mut |event| session.event(event)))
        }
        (None, &[number]) => Execution::One(machine.run(number, limit)),
        (None, _) if session.observes(&args.execute) => {
            let observe = &mut |event: &TraceEvent<'_>| session.event(event);
            Execution::Many(machine.run_threads_traced(&mut args.execute.schedule(), limit, observe))
        }
        (None, _) => Execution::Many(machine.run_threads(&mut args.execute.schedule(), limit)),
    };
    drop(progress);
    let text = session.end(&args.execute, timing.map(|timing| timing.report()))?;
    session.finish(&args.execute, &machine, &device.threads, &loaded.name)?;
    let summary = summary(&machine, &device.threads, &halt) + &text.unwrap_or_default();
    output::print(summary.as_bytes())?;
    if let Some(info) = &info {
        for &number in &device.threads {
            let stop = match &halt {
                Execution::One(stop) => Some(stop),
                Execution::Many(Halt::Thread { thread, stop }) if *thread == number => Some(stop),
                Execution::Many(_) => None,
            };
            let stop = stop.cloned().or_else(|| lost_access(&halt, number));
            if let Some(text) = report::thread(&machine, number, stop.as_ref(), info) {
                output::report(&text);
            }
        }
    }
    let ended = |&number: &usize| machine.thread(number).status() == Status::ENDED;
    match halt {
        Execution::One(End::Ended { status }) if status == Status::ENDED => Ok(()),
        Execution::Many(Halt::Ended) if device.threads.iter().all(ended) => Ok(()),
        _ if device
            .threads
            .iter()
            .any(|&number| machine.thread(number).status() == Status::TRAPPED) =>
        {
            Err(Stop::Exit(TRAPPED))
        }
        _ => Err(Stop::Reported),
    }
}

/// Returns the end of a thread whose access to the data cache never completes.
fn lost_access(halt: &Execution, number: usize) -> Option<End> {
    let Execution::Many(Halt::Deadlock(deadlock)) = halt else {
        return None;
    };
    let hung = deadlock.hung.iter().find(|hung| hung.thread == number)?;
    let (pc, reason) = (hung.pc, hung.reason);
    matches!(reason, HangReason::Line { .. }).then_some(End::Hang { pc, reason })
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

/// Returns the last lines: the reason of the end and the number of instructions.
fn summary(machine: &Machine, numbers: &[usize], halt: &Execution) -> String {
    let halt = match halt {
        Execution::One(stop) => {
            let steps: u64 = numbers.iter().map(|&n| machine.thread(n).instructions()).sum();
            return format!("{stop}, {steps} instructions\n");
        }
        Execution::Many(halt) => halt,
    };
    let mut text = String::new();
    for &number in numbers {
        let thread = machine.thread(number);
        let (pc, status, steps) = (thread.pc(), thread.status(), thread.instructions());
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "thread {number}: at {pc:#010x}, status {} ({status}), {steps} instructions",
            status.code()
        );
    }
    format!("{text}{halt}\n")
}

/// Returns whether the image has a byte at this address.
fn holds(image: &Image, address: u32) -> bool {
    let inside = |s: &Segment| (address.wrapping_sub(s.address) as usize) < s.bytes.len();
    image.segments.iter().any(inside)
}
