//! Runs the run lines of filetests on the hardware description and on the timing model.
//!
//! The functions of a file are compiled and linked once for each optimization level. The lines of
//! the file become one program. For each line a driver sets the registers and the stack as the host
//! does, calls the function, and stores results and callee-saved registers. All threads run all
//! lines and meet at a barrier before each one. Both machines run the same image, and the stored
//! values must be equal.
//!
//! A line is skipped if it traps, takes too long, or passes values through memory of the host; the
//! reasons are counted. Variables select a part: `RTL_FILTER` (a part of the file's path),
//! `RTL_PART` (`i/n`), `RTL_THREADS` (only 1 or 8).

use crate::{Outcome, memory_of, root};
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{Function, Opcode, Signature};
use naplespu_filetests::lines::{CallError, RunLines};
use naplespu_filetests::outcome::Finding;
use naplespu_filetests::runner;
use naplespu_jit::{Program, function_name};
use naplespu_reader::ClifFile;
use naplespu_reader::config::{Config, FileConfigs};
use npu_link::{Format, Linked, Placement, link};
use npu_mc::{Reg, SReg, VReg};
use npu_sim::{Halt, Hazard, Machine, NoSink, Timing, TimingConfig};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// Addresses of the driver, above the code of functions. If a line meets the erratum
/// `repeated_instruction_line_miss` because of the driver's first address, it is run again with the
/// second.
const DRIVERS: [u32; 2] = [0x2800_0000, 0x2800_0400];
/// The address of the results, and the size of each thread's page in bytes.
const RESULTS: u32 = 0x3000_0000;
const RESULT_PAGE: u32 = 0x1_0000;
/// The size of the results of a line in bytes.
const RESULT_BYTES: u32 = 512;
/// The limits of lines in one program, and of its instructions on one thread.
const MOST_LINES: usize = 100;
const MOST_STEPS: u64 = 400_000;
/// The limit of instructions of one line.
const LINE_STEPS: u64 = 60_000;
/// The limit of cycles on the hardware for each instruction of each thread.
const CYCLES_PER_STEP: u64 = 60;
/// The number of argument and result registers.
const PASSED: u8 = 8;
/// The memory ranges of a program: code, data, thread-local storage.
const RANGES: [u32; 3] = [0x1000, 0x4000_0000, 0xdf80_0000];
/// A range ends after this many bytes of zeros.
const GAP: usize = 0x2_0000;

/// A line that can run: the state at the entry of the function.
struct Line {
    name: String,
    entry: u32,
    scalars: Vec<(u8, u32)>,
    vectors: Vec<(u8, [u32; 16])>,
    steps: u64,
    /// The number of words and of vectors in the results.
    words: u32,
    returned_vectors: u32,
    /// Whether threads that run the line observe each other's stores.
    shares: bool,
}

/// The results of all lines.
#[derive(Default)]
pub struct Sum {
    ran: BTreeMap<u32, usize>,
    left_out: BTreeMap<&'static str, usize>,
    wrong: Vec<String>,
    /// Lines that end only with the driver at the second address.
    moved: usize,
    /// Lines that meet the erratum `repeated_instruction_line_miss`.
    hung: Vec<String>,
}

/// Returns the number of register words that a signature needs for values, or why the line is
/// skipped.
fn passed(signature: &Signature) -> Result<(u32, u32), &'static str> {
    let count = |types: &mut dyn Iterator<Item = cranelift_codegen::ir::Type>| {
        let (mut words, mut vectors) = (0, 0);
        for ty in types {
            match (ty.is_vector(), ty.lane_count()) {
                (true, 16) if ty.lane_bits() <= 32 => vectors += 1,
                (true, _) => return Err("vectors of other shapes than sixteen lanes"),
                (false, _) => words += ty.bits().div_ceil(32),
            }
        }
        Ok((words, vectors))
    };
    let (words, vectors) = count(&mut signature.params.iter().map(|param| param.value_type))?;
    if words > u32::from(PASSED) || vectors > u32::from(PASSED) {
        return Err("arguments in memory");
    }
    let (words, vectors) = count(&mut signature.returns.iter().map(|param| param.value_type))?;
    if words > 6 || vectors > 6 {
        return Err("results in memory");
    }
    Ok((words, vectors))
}

/// A program with the lines of a file that can run.
struct Batch {
    program: Program,
    lines: Vec<Line>,
}

/// Returns whether a function stores to the scratchpad, which the threads of a core share, and
/// loads from it.
fn shares(func: &Function) -> bool {
    let insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
    let mut opcodes = insts.map(|inst| func.dfg.insts[inst].opcode());
    opcodes.any(|opcode| matches!(opcode, Opcode::AtomicRmw | Opcode::AtomicCas))
        && func.display().to_string().contains("\"scratchpad\"")
}

fn batch(file: &ClifFile, config: &Config, sum: &mut Sum) -> Outcome<Batch> {
    let mut program = Program::new(config.isa()?);
    for case in &file.functions {
        // The error of a refused function is reported when the function is called.
        let _ = program.define(&case.func);
    }
    let mut lines: Vec<Line> = Vec::new();
    let mut left_out = |why: &'static str| *sum.left_out.entry(why).or_default() += 1;
    each_line(file, |name, func, args| {
        let (words, returned_vectors) = match passed(&func.signature) {
            Ok(passed) => passed,
            Err(why) => {
                left_out(why);
                return;
            }
        };
        // A call without steps links all required functions and sets the state at the entry.
        program.set_step_limit(0);
        let _ = program.call(name, args);
        let Ok(module) = program.module() else { return };
        let thread = module.machine().thread(0);
        let entry = thread.pc();
        let kept = npu_mc::cc::CALLEE_SAVED.iter().filter_map(|reg| match reg {
            Reg::S(reg) if !matches!(*reg, SReg::RA | SReg::RM | SReg::SP) => Some(*reg),
            _ => None,
        });
        let scalars = (0..PASSED).filter_map(SReg::new).chain(kept).chain([SReg::SP]);
        let scalars = scalars.map(|reg| (reg.number(), thread.scalar(reg))).collect();
        let vectors = (0..PASSED)
            .filter_map(VReg::new)
            .map(|reg| (reg.number(), thread.vector(reg).0));
        let vectors = vectors.filter(|(_, lanes)| *lanes != [0; 16]).collect();
        program.set_step_limit(LINE_STEPS);
        let result = program.call(name, args);
        match result {
            Ok(_) => lines.push(Line {
                name: format!(
                    "{name}({})",
                    args.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
                ),
                entry,
                scalars,
                vectors,
                steps: program.steps(),
                words,
                returned_vectors,
                shares: shares(func),
            }),
            Err(naplespu_jit::RunError::Timeout { .. }) => left_out("too many instructions"),
            Err(naplespu_jit::RunError::Trap(_)) => left_out("traps"),
            Err(_) => left_out("refused, or does not return on the simulator"),
        }
    });
    Ok(Batch { program, lines })
}

/// Calls `each` for each run line, with the name of the function, the function and the arguments.
fn each_line(file: &ClifFile, mut each: impl FnMut(&str, &Function, &[DataValue])) {
    let mut faults = Vec::new();
    let mut lines = RunLines::collect(file, false, &mut faults);
    let mut findings = vec![Finding::default(); file.functions.len()];
    lines.execute(file, "", &mut findings, &mut Vec::new(), |case, args| {
        each(&function_name(&case.func.name), &case.func, args);
        Err(CallError::Refused(String::new()))
    });
}

/// Returns the assembly of a driver for some lines.
fn driver(lines: &[&Line], threads: u32) -> Outcome<String> {
    let mut text = String::new();
    let set = |text: &mut String, register: &str, value: u32| {
        writeln!(
            text,
            "moveih {register}, {}\nmoveil {register}, {}",
            value >> 16,
            value & 0xffff
        )
    };
    let name = |number: u8| SReg::of_field(number).name();
    let stride = naplespu_jit::stack_top(0) - naplespu_jit::stack_top(1);
    let mut data = String::new();
    for (number, line) in lines.iter().enumerate() {
        // No line depends on registers of the line before.
        text += "movei rm, 0xffff\nmovei s40, 1\n";
        writeln!(
            text,
            "movei s41, {}\nbarrier s40, s41\nmovei s40, 2\nread_cr s41, s40",
            threads - 1
        )?;
        for (at, (register, lanes)) in line.vectors.iter().enumerate() {
            writeln!(
                text,
                "leah s42, V{number}_{at}\nleal s42, V{number}_{at}\nload_v16i32 v{register}, (s42)"
            )?;
            let words: Vec<String> = lanes.iter().map(|lane| format!("{lane:#x}")).collect();
            writeln!(data, "V{number}_{at}: .long {}", words.join(", "))?;
        }
        set(&mut text, "s42", stride)?;
        text += "mull_i32 s42, s42, s41\n";
        for &(register, value) in &line.scalars {
            set(&mut text, name(register), value)?;
        }
        text += "sub_i32 sp, sp, s42\n";
        set(&mut text, "s43", line.entry)?;
        // The `movei` between the write of `ra` and the jump prevents the loss of the return
        // address.
        text += "addi ra, pc, 12\nmovei tr, 0\njmp s43\nmovei s40, 2\nread_cr s41, s40\nshli s41, s41, 16\n";
        set(&mut text, "s42", RESULTS + number as u32 * RESULT_BYTES)?;
        text += "add_i32 s42, s42, s41\n";
        for word in 0..line.words {
            writeln!(text, "store32 s{word}, {}(s42)", 4 * word)?;
        }
        for (place, &(register, _)) in line.scalars.iter().skip(usize::from(PASSED)).enumerate() {
            if register != SReg::SP.number() {
                writeln!(text, "store32 {}, {}(s42)", name(register), 32 + 4 * place)?;
            }
        }
        writeln!(text, "addi s42, s42, 128")?;
        for vector in 0..line.returned_vectors {
            writeln!(text, "store_v16i32 v{vector}, (s42)\naddi s42, s42, 64")?;
        }
    }
    writeln!(
        text,
        "movei s50, 2\nmovei s51, 11\nwrite_cr s50, s51\njmp .\n.balign 64\n{data}"
    )?;
    Ok(text)
}

/// Returns the nonzero words of a program's memory by address.
fn image(program: &mut Program) -> Outcome<BTreeMap<u32, u32>> {
    let module = program.module()?;
    let mut words = BTreeMap::new();
    for start in RANGES {
        let mut at = start;
        loop {
            let mut bytes = vec![0; GAP];
            module.read_memory(at, &mut bytes);
            let before = words.len();
            for (place, word) in (0u32..).step_by(4).zip(bytes.chunks_exact(4)) {
                let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
                if word != 0 {
                    words.insert(at + place, word);
                }
            }
            at += GAP as u32;
            if words.len() == before {
                break;
            }
        }
    }
    Ok(words)
}

/// Assembles a driver.
fn assemble(text: &str, base: u32) -> Outcome<Linked> {
    let faults = |faults: Vec<npu_mc::asm::Fault>| format!("{faults:?}");
    let object = npu_mc::asm::assemble(text, &npu_mc::asm::Options::default()).map_err(faults)?;
    let placement = Placement {
        base,
        sections: Vec::new(),
    };
    Ok(link(&object, &placement).map_err(faults)?)
}

/// The results of a machine, by thread.
struct Results {
    threads: Vec<Vec<u32>>,
}

fn on_the_model(
    words: &BTreeMap<u32, u32>,
    linked: &Linked,
    base: u32,
    threads: u32,
    bytes: u32,
) -> Outcome<Option<Results>> {
    let mut machine = Machine::new(npu_sim::Config::default());
    for (&address, &word) in words {
        machine.memory_mut().write_u32(address, word)?;
    }
    machine.load(&linked.image)?;
    for thread in 0..threads as usize {
        machine.boot(thread, base);
    }
    machine.enable(0, (1 << threads) - 1);
    // Threads that wait for a lock execute far more instructions than one thread alone.
    let limit = 20 * MOST_STEPS * u64::from(threads);
    match machine.run_timed(&mut Timing::new(TimingConfig::default()), limit, &mut NoSink) {
        Halt::Ended => {}
        // Other threads may wait for a thread that hangs.
        _ if machine
            .findings()
            .iter()
            .any(|finding| finding.hazard == Hazard::RepeatedLineMiss) =>
        {
            return Ok(None);
        }
        halt => {
            let places: Vec<String> = (0..threads as usize)
                .map(|thread| format!("{:#x}", machine.thread(thread).pc()))
                .collect();
            return Err(format!("the simulator does not end: {halt}, threads at {}", places.join(", ")).into());
        }
    }
    let read = |thread: u32| {
        let start = RESULTS + thread * RESULT_PAGE;
        (start..start + bytes)
            .step_by(4)
            .map(|address| machine.memory().read_u32(address))
            .collect()
    };
    Ok(Some(Results {
        threads: (0..threads).map(read).collect(),
    }))
}

/// Runs a program on the hardware. Returns `None` if it hangs.
fn on_the_hardware(
    simulator: &Path,
    image: &Path,
    base: u32,
    threads: u32,
    bytes: u32,
    cycles: u64,
) -> Outcome<Option<Results>> {
    let mut command = Command::new(simulator);
    command
        .arg("--image")
        .arg(image)
        .args(["--hex", "--pc", &format!("{base:#x}"), "--seed", "5"]);
    command.args([
        "--threads",
        &format!("{:#x}", (1u32 << threads) - 1),
        "--max-cycles",
        &cycles.to_string(),
    ]);
    for thread in 0..threads {
        command.args(["--dump", &format!("{:#x}:{bytes}", RESULTS + thread * RESULT_PAGE)]);
    }
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        if text.starts_with("hang: ") {
            return Ok(None);
        }
        let first: Vec<&str> = text.lines().take(10).collect();
        return Err(format!("the hardware does not end: {}", first.join("; ")).into());
    }
    let parts: Vec<&str> = text.split("mem:").skip(1).collect();
    let threads = parts
        .iter()
        .map(|part| memory_of(&format!("mem:{part}")))
        .collect::<Outcome<Vec<_>>>()?;
    Ok(Some(Results { threads }))
}

/// The comparison of some lines.
enum Compared {
    /// The lines whose results differ.
    Ended(Vec<String>),
    /// A thread stops fetching: on the model, or on the hardware when several lines run in one
    /// program.
    Hangs,
}

/// Runs some lines on the model, and on the hardware if it is available.
fn compare(
    simulator: Option<&Path>,
    words: &BTreeMap<u32, u32>,
    lines: &[&Line],
    threads: u32,
    base: u32,
) -> Outcome<Compared> {
    let linked = assemble(&driver(lines, threads)?, base)?;
    let bytes = lines.len() as u32 * RESULT_BYTES;
    let Some(expected) = on_the_model(words, &linked, base, threads, bytes).transpose() else {
        return Ok(Compared::Hangs);
    };
    let Some(simulator) = simulator else {
        return expected.map(|_| Compared::Ended(Vec::new()));
    };
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("lines.hex");
    // An access that traps ends its thread.
    let mut text = String::from("@00000380\n62e8000c 6200002c 6ce80000 78000000\n");
    for (address, word) in words {
        // The simulator ignores a word on the line of an address.
        writeln!(text, "@{address:08x}\n{word:08x}")?;
    }
    text += &String::from_utf8(linked.image.write(Format::HexWords)?)?;
    std::fs::write(&path, text)?;
    let steps: u64 = lines.iter().map(|line| line.steps + 300).sum();
    let cycles = steps * CYCLES_PER_STEP + 100_000;
    let found = on_the_hardware(simulator, &path, base, threads, bytes, cycles);
    let expected = match expected {
        Ok(expected) => expected,
        Err(error) => {
            let hardware = match found {
                Ok(Some(_)) => "the hardware ends".to_owned(),
                Ok(None) => "the hardware hangs".to_owned(),
                Err(error) => error.to_string(),
            };
            return Err(format!("{error}; {hardware}").into());
        }
    };
    let found = match found? {
        Some(found) => found,
        // With locks, the cycles of hardware and model differ, so possibly only the hardware meets
        // the erratum. Each line is then run separately.
        None if lines.len() > 1 => return Ok(Compared::Hangs),
        None => return Err("the hardware hangs, and the model ends".into()),
    };
    let mut wrong = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let range = number * RESULT_BYTES as usize / 4..(number + 1) * RESULT_BYTES as usize / 4;
        for (thread, (found, expected)) in found.threads.iter().zip(&expected.threads).enumerate() {
            let (found, expected) = (found.get(range.clone()), expected.get(range.clone()));
            if found != expected {
                wrong.push(format!(
                    "{} on thread {thread} of {threads}: {found:x?} instead of {expected:x?}",
                    line.name
                ));
                break;
            }
        }
    }
    Ok(Compared::Ended(wrong))
}

/// Runs the lines of one file at one optimization level.
fn file_at(simulator: Option<&Path>, path: &Path, level: &str, threads: &[u32], sum: &mut Sum) -> Outcome<()> {
    let file = ClifFile::parse(&path.display().to_string(), &std::fs::read(path)?);
    if !file.faults.is_empty() || !file.header.has_test("run") {
        return Ok(());
    }
    let configs = FileConfigs::read(&file.header, None, &[], &mut Vec::new());
    let mut config = configs.list.first().cloned().unwrap_or_default();
    if configs.foreign || config.to_string().contains("erratum_") {
        each_line(&file, |_, _, _| {
            *sum.left_out.entry("for another machine").or_default() += 1
        });
        return Ok(());
    }
    config.set(&format!("opt_level={level}"))?;
    let mut batch = batch(&file, &config, sum)?;
    if batch.lines.is_empty() {
        return Ok(());
    }
    let words = image(&mut batch.program)?;
    for &threads in threads {
        let (chosen, left_out): (Vec<_>, Vec<_>) = batch.lines.iter().partition(|line| threads == 1 || !line.shares);
        if !left_out.is_empty() {
            *sum.left_out.entry("on several threads at once").or_default() += left_out.len();
        }
        let mut rest = chosen.as_slice();
        while !rest.is_empty() {
            let mut steps = 0;
            let fits = |line: &&&Line| {
                steps += line.steps;
                steps <= MOST_STEPS
            };
            let count = rest.iter().take(MOST_LINES).take_while(fits).count().max(1);
            let (part, next) = rest.split_at(count);
            rest = next;
            let [first, second] = DRIVERS;
            let compared = compare(simulator, &words, part, threads, first);
            if let Ok(Compared::Hangs) = compared {
                // The code of one line can evict that of another from the instruction cache, so
                // each line is run separately.
                for line in part.chunks(1) {
                    let mut compared = compare(simulator, &words, line, threads, first);
                    if let Ok(Compared::Hangs) = compared {
                        sum.moved += 1;
                        compared = compare(simulator, &words, line, threads, second);
                    }
                    sum.add(compared, path, level, line, threads);
                }
            } else {
                sum.add(compared, path, level, part, threads);
            }
        }
    }
    Ok(())
}

impl Sum {
    /// Adds the result of some lines.
    fn add(&mut self, result: Outcome<Compared>, path: &Path, level: &str, part: &[&Line], threads: u32) {
        let names: Vec<&str> = part.iter().map(|line| line.name.as_str()).collect();
        let place = format!("{} at opt_level={level}", path.display());
        match result {
            Ok(Compared::Ended(wrong)) => self
                .wrong
                .extend(wrong.into_iter().map(|line| format!("{place}: {line}"))),
            Ok(Compared::Hangs) => self.hung.push(format!("{place} on {threads} threads: {names:?}")),
            Err(error) => self
                .wrong
                .push(format!("{place} on {threads} threads: {error}; lines: {names:?}")),
        }
        *self.ran.entry(threads).or_default() += part.len();
    }
}

/// Runs all filetests, or the part that the variables select.
pub fn filetests(simulator: Option<&Path>) -> Outcome<()> {
    let filter = std::env::var("RTL_FILTER").unwrap_or_default();
    let part = std::env::var("RTL_PART").unwrap_or_else(|_| "1/1".to_owned());
    let (index, of) = part.split_once('/').ok_or("RTL_PART is i/n")?;
    let (index, of): (usize, usize) = (index.parse()?, of.parse()?);
    let threads = match std::env::var("RTL_THREADS") {
        Ok(threads) => vec![threads.parse()?],
        Err(_) => vec![1, 8],
    };
    let files =
        runner::find(&[root().join("filetests")]).map_err(|(path, error)| format!("{}: {error}", path.display()))?;
    let chosen = files.iter().filter(|path| path.display().to_string().contains(&filter));
    let mut sum = Sum::default();
    for path in chosen.skip(index.saturating_sub(1)).step_by(of.max(1)) {
        for level in ["none", "speed"] {
            file_at(simulator, path, level, &threads, &mut sum)?;
        }
    }
    for (threads, count) in &sum.ran {
        println!("{count} run lines on {threads} threads");
    }
    for (why, count) in &sum.left_out {
        println!("{count} do not fit: {why}");
    }
    println!(
        "{} end only with the driver in another place",
        sum.moved - sum.hung.len()
    );
    for line in &sum.hung {
        println!("repeated_instruction_line_miss: {line}");
    }
    if sum.ran.is_empty() {
        return Err("no line ran".into());
    }
    if sum.wrong.is_empty() && sum.hung.is_empty() {
        return Ok(());
    }
    let (wrong, hung) = (sum.wrong.len(), sum.hung.len());
    Err(format!("{wrong} lines are wrong, {hung} hang:\n{}", sum.wrong.join("\n")).into())
}
