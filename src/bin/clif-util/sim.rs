//! `clif-util sim`: memory images in the simulator.

use crate::disasm::{FormatArg, parse_address, read_image};
use crate::{Outcome, Stop, output};
use npu_mc::{SReg, VReg};
use npu_sim::image::{Image, Segment};
use npu_sim::{Config, Machine, Status, Stop as Halt, TraceEvent};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;

/// Run a flat binary, a hex word file or a memory image on thread 0
#[derive(clap::Args)]
pub struct Args {
    /// The image; `-` is standard input
    #[arg(value_name = "IMAGE")]
    image: PathBuf,

    /// Address to start at; the boot address 0x400 if the image has something there, else its first word
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    pc: Option<u32>,

    /// What the image is
    #[arg(long, value_enum, default_value_t = FormatArg::Auto, value_name = "FORMAT")]
    format: FormatArg,

    /// Address to load flat binaries and hex words to; 0, or the start address if the image would not reach it
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    base: Option<u32>,

    /// Print every instruction with what it changes
    #[arg(long)]
    trace: bool,

    /// Instructions to execute at most
    #[arg(long, value_name = "N", default_value_t = 1_000_000_000)]
    max_steps: u64,

    /// Print LEN bytes of memory from ADDR on when the program has stopped
    #[arg(long, value_name = "ADDR:LEN", value_parser = parse_range)]
    dump: Vec<(u32, u32)>,

    /// Print the registers when the program has stopped
    #[arg(long)]
    regs: bool,

    /// Stop at the first erratum whose outcome depends on timing, instead of only telling of it
    #[arg(long)]
    strict: bool,
}

/// Longest dump, in bytes.
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

/// Runs the subcommand.
pub fn run(args: &Args) -> Outcome {
    let (_, mut image) = read_image(&args.image, args.format, args.base.unwrap_or(0))?;
    if let (Some(pc), None) = (args.pc, args.base)
        && !holds(&image, pc)
        && let [only] = image.segments.as_mut_slice()
        && only.address == 0
    {
        // A piece of code without an address of its own, to be run there.
        only.address = pc;
    }
    let Some(first) = image.segments.iter().find(|s| !s.bytes.is_empty()).map(|s| s.address) else {
        return Err(Stop::Fault("the image is empty".to_owned()));
    };
    let boot = npu_mc::machine::BOOT_PC;
    let start = args.pc.unwrap_or(if holds(&image, boot) { boot } else { first });
    if !start.is_multiple_of(npu_mc::machine::INSTRUCTION_SIZE) {
        return Err(Stop::Fault(format!("{start:#010x} is no address of an instruction")));
    }
    let mut machine = Machine::new(Config {
        strict: args.strict,
        ..Config::default()
    });
    machine.load(&image).map_err(|full| {
        Stop::Fault(format!(
            "the image is larger than the memory limit, at {:#010x}",
            full.address
        ))
    })?;
    machine.thread_mut(0).set_pc(start);
    let halt = if args.trace {
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        let mut closed = false;
        let halt = machine.run_traced(0, args.max_steps, &mut |event: &TraceEvent<'_>| {
            closed = closed || writeln!(out, "{event}").is_err();
        });
        if closed {
            return Err(Stop::Closed);
        }
        out.flush()?;
        halt
    } else {
        machine.run(0, args.max_steps)
    };
    let console = machine.console_output();
    output::print(console)?;
    let mut text = String::new();
    if console.last().is_some_and(|&last| last != b'\n') {
        text.push('\n');
    }
    if args.regs {
        registers(&machine, &mut text);
    }
    for &(address, length) in &args.dump {
        dump(&machine, address, length, &mut text);
    }
    let steps = machine.thread(0).instructions();
    // Writing to a string does not fail.
    let _ = writeln!(text, "{halt}, {steps} instructions");
    output::print(text.as_bytes())?;
    for finding in machine.findings() {
        output::complain(&format!(
            "warning: erratum {} at {:#010x}: {}\n",
            finding.hazard, finding.pc, finding.detail
        ));
    }
    match halt {
        Halt::Ended { status } if status == Status::ENDED => Ok(()),
        Halt::Breakpoint { .. } => Ok(()),
        _ => Err(Stop::Told),
    }
}

/// Whether the image has a byte for this address.
fn holds(image: &Image, address: u32) -> bool {
    let inside = |s: &Segment| (address.wrapping_sub(s.address) as usize) < s.bytes.len();
    image.segments.iter().any(inside)
}

fn registers(machine: &Machine, text: &mut String) {
    let thread = machine.thread(0);
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
        // Most programs leave most vectors alone.
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
