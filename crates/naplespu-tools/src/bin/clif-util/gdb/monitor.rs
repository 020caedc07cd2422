//! The commands of GDB's `monitor`, for operations that the protocol lacks.

use super::control::{Control, tid};
use crate::execute::{instruction_text, report};
use npu_mc::machine::{ControlRegister, INSTRUCTION_SIZE};
use npu_sim::THREADS;
use std::fmt::Write as _;

const HELP: &str = "\
scratchpad ADDRESS [COUNT [CORE]]   print words of the scratchpad of a core
scratchpad set ADDRESS WORD [CORE]  write a word of the scratchpad
threads                             print the state of each thread
where [THREAD]                      print the call stack, innermost first, with names and lines
find NAME | ADDRESS                 print the address of a name, or the location of an address
code NAME | ADDRESS [COUNT]         print NPU instructions
control [THREAD]                    print the control registers of a thread
findings                            print the errata that the program met
";

/// The maximum number of words in one answer.
const MOST_WORDS: u32 = 1024;

/// Runs a command and returns its answer.
pub fn run(control: &mut Control, command: &str) -> String {
    let words: Vec<&str> = command.split_whitespace().collect();
    let answer = match words.as_slice() {
        ["scratchpad" | "spm", "set", address, value, core @ ..] if core.len() <= 1 => {
            set(control, address, value, core)
        }
        ["scratchpad" | "spm", address, rest @ ..] if rest.len() <= 2 => show(control, address, rest),
        ["threads"] => Ok(threads(control)),
        ["where"] => place(control, 1),
        ["where", thread] => number(thread).and_then(|n| place(control, n)),
        ["find", what] => find(control, what),
        ["code", place] => code(control, place, 1),
        ["code", place, count] => number(count).and_then(|count| code(control, place, count)),
        ["control"] => registers(control, 1),
        ["control", thread] => number(thread).and_then(|n| registers(control, n)),
        ["findings"] => Ok(findings(control)),
        ["help"] | [] => Ok(HELP.to_owned()),
        _ => Err(format!("unknown command; the commands are:\n{HELP}")),
    };
    answer.unwrap_or_else(|why| why.trim_end().to_owned() + "\n")
}

fn number(text: &str) -> Result<u32, String> {
    crate::disasm::parse_address(text)
}

fn core(control: &Control, text: Option<&&str>) -> Result<usize, String> {
    let core = text.map_or(Ok(0), |t| number(t))? as usize;
    if core < control.machine.cores() {
        Ok(core)
    } else {
        Err(format!(
            "the machine has {} cores, counted from 0",
            control.machine.cores()
        ))
    }
}

fn show(control: &Control, address: &str, rest: &[&str]) -> Result<String, String> {
    let address = number(address)?;
    let count = rest.first().map_or(Ok(1), |t| number(t))?.min(MOST_WORDS);
    let core = core(control, rest.get(1))?;
    let memory = control.machine.core_scratchpad(core);
    let mut out = String::new();
    for index in 0..count {
        let at = address.wrapping_add(4 * index) as usize;
        let Some(bytes) = memory.get(at..).and_then(|m| m.first_chunk()) else {
            let _ = writeln!(out, "the scratchpad has {:#x} bytes", memory.len());
            break;
        };
        let word = u32::from_le_bytes(*bytes);
        let _ = match index % 4 {
            0 => write!(out, "{at:08x}: {word:08x}"),
            _ => write!(out, " {word:08x}"),
        };
        if index % 4 == 3 || index + 1 == count {
            out.push('\n');
        }
    }
    Ok(out)
}

fn set(control: &mut Control, address: &str, value: &str, rest: &[&str]) -> Result<String, String> {
    let (address, value) = (number(address)?, number(value)?);
    let core = core(control, rest.first())?;
    let memory = control.machine.core_scratchpad_mut(core);
    let size = memory.len();
    let place = memory.get_mut(address as usize..).and_then(|m| m.first_chunk_mut());
    *place.ok_or_else(|| format!("the scratchpad has {size:#x} bytes"))? = value.to_le_bytes();
    Ok(String::new())
}

/// Describes the state of a thread.
pub fn thread_state(control: &Control, thread: usize) -> String {
    let state = control.machine.thread(thread);
    let place = format!("core {} thread {}", thread / THREADS, thread % THREADS);
    match control.machine.waiting(thread) {
        Some(waiting) => format!(
            "{place}: waits at barrier {}, {} missing",
            waiting.id,
            waiting.missing()
        ),
        None => format!("{place}: {}", state.status()),
    }
}

fn threads(control: &Control) -> String {
    let mut out = String::new();
    for &thread in control.threads() {
        let state = control.machine.thread(thread);
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "{} {} pc {:08x} mask {:04x}, {} instructions",
            tid(thread),
            thread_state(control, thread),
            state.pc(),
            state.mask(),
            state.instructions()
        );
    }
    out
}

/// The message for a program without names.
const NO_INFO: &str = "the program has no symbols, because it is not an executable ELF file";

/// Returns the index of a thread. `thread` is its number in GDB, which starts at 1.
fn known(control: &Control, thread: u32) -> Result<usize, String> {
    let thread = (thread as usize).wrapping_sub(1);
    if control.threads().contains(&thread) {
        return Ok(thread);
    }
    let known: Vec<String> = control.threads().iter().map(|&n| tid(n).to_string()).collect();
    Err(format!("no such thread; the threads are {}", known.join(", ")))
}

/// Returns the call stack of a thread. `thread` is its number in GDB, which starts at 1.
fn place(control: &Control, thread: u32) -> Result<String, String> {
    let info = control.info.as_ref().ok_or(NO_INFO)?;
    let thread = known(control, thread)?;
    let pc = control.machine.thread(thread).pc();
    let mut out = String::new();
    for (depth, pc) in report::back_trace(&control.machine, thread, pc, info)
        .into_iter()
        .enumerate()
    {
        let _ = writeln!(out, "#{depth:<3} {pc:#010x} in {}", report::place(info, pc));
    }
    Ok(out)
}

/// Parses an address: a name or a number.
fn address(control: &Control, what: &str) -> Result<u32, String> {
    let named = control.info.as_ref().and_then(|info| info.address(what));
    named.map_or_else(
        || number(what).map_err(|_| format!("the program has no symbol `{what}`")),
        Ok,
    )
}

/// Disassembles instructions.
fn code(control: &Control, place: &str, count: u32) -> Result<String, String> {
    let start = address(control, place)?;
    let mut out = String::new();
    for index in 0..count.min(MOST_WORDS) {
        let at = start.wrapping_add(INSTRUCTION_SIZE.wrapping_mul(index));
        let mut bytes = [0; size_of::<u32>()];
        control.machine.read_as_core(0, at, &mut bytes);
        let word = u32::from_le_bytes(bytes);
        let _ = writeln!(out, "{at:#010x}: {word:08x}  {}", instruction_text(word));
    }
    Ok(out)
}

fn find(control: &Control, what: &str) -> Result<String, String> {
    let info = control.info.as_ref().ok_or(NO_INFO)?;
    let address = address(control, what)?;
    Ok(format!("{address:#010x} in {}\n", report::place(info, address)))
}

/// Returns the control registers of a thread. `thread` is its number in GDB, which starts at 1.
fn registers(control: &Control, thread: u32) -> Result<String, String> {
    let thread = known(control, thread)?;
    let mut out = String::new();
    for &register in ControlRegister::ALL {
        let value = control.machine.control_register(thread, register);
        let _ = writeln!(out, "{:>2} {:<16} {value:08x}", register.number(), register.name());
    }
    Ok(out)
}

fn findings(control: &Control) -> String {
    let mut out = String::new();
    for finding in control.machine.findings() {
        let _ = writeln!(
            out,
            "erratum {} at {:#010x}: {}",
            finding.hazard, finding.pc, finding.detail
        );
    }
    if out.is_empty() {
        out.push_str("none\n");
    }
    out
}
