//! The output of `--waits`: which instruction waited how long for what.

use super::instruction_text;
use super::places::Places;
use npu_mc::Reg;

use npu_sim::{Awaited, Place, Stall, Wait, WaitsReport, counted};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Bytes of a cache line; misses are reported by line number.
const LINE: u32 = npu_mc::machine::CACHE_LINE;

/// Returns the instruction at an address as text.
fn instruction(report: &WaitsReport, pc: u32) -> String {
    // Others may have waited for an instruction that never issued.
    let word = report.words.get(&pc);
    word.map_or_else(|| "an instruction".to_owned(), |&word| instruction_text(word))
}

/// Returns address, instruction, and the source location if it is known.
fn place<P: Places>(report: &WaitsReport, places: &P, pc: u32) -> String {
    let place = places.describe(pc).map_or(String::new(), |place| format!(", {place}"));
    format!("{pc:#010x} {}{place}", instruction(report, pc))
}

/// Describes an awaited event.
fn awaited<P: Places>(report: &WaitsReport, names: &P, what: Awaited) -> String {
    let place = |pc| place(report, names, pc);
    match what {
        Awaited::Fetch => "its turn in fetch".to_owned(),
        Awaited::Branch { pc } => format!("the target of {}", place(pc)),
        Awaited::InstructionLine { line } => format!("the line at {:#010x}", line.wrapping_mul(LINE)),
        Awaited::Result { pc, register } => format!("{} of {}", name(register), place(pc)),
        Awaited::Miss { pc, register } => format!("{} of {}, which missed", name(register), place(pc)),
        Awaited::FloatResult { thread, pc } => format!("the result of {}, thread {thread}", place(pc)),
        Awaited::Memory { pc } => format!("the end of {}", place(pc)),
        Awaited::Scratchpad { thread, pc } => format!("the start of {}, thread {thread}", place(pc)),
        Awaited::Arrival { thread } => format!("thread {thread}, the last one"),
        Awaited::Turn { thread } => format!("thread {thread}, which issued"),
        Awaited::WritePort => "the write port".to_owned(),
        Awaited::Unseen => "something from before".to_owned(),
    }
}

fn name(register: Reg) -> &'static str {
    match register {
        Reg::S(reg) => reg.name(),
        Reg::V(reg) => reg.name(),
    }
}

/// Returns the cycles that lines spent at each place of a system of several cores, most first.
fn places(wait: &Wait) -> Vec<(Place, u64)> {
    let mut places: Vec<(Place, u64)> = Place::ALL.iter().map(|&place| (place, wait.at(place))).collect();
    places.retain(|(_, cycles)| *cycles != 0);
    places.sort_by_key(|(_, cycles)| std::cmp::Reverse(*cycles));
    places
}

/// Returns these places as text.
fn places_text(wait: &Wait) -> String {
    let places = places(wait);
    let list: Vec<String> = places
        .iter()
        .map(|(place, cycles)| format!("{place} {cycles}"))
        .collect();
    list.join(", ")
}

/// Returns the `most` longest waits, over all threads, as text.
pub fn text<P: Places>(report: &WaitsReport, names: &P, most: usize) -> String {
    let waits = report.by_instruction();
    let all: u64 = waits.iter().map(|wait| wait.cycles).sum();
    let mut out = format!("waits: {}\n", counted(all, "cycle"));
    let of_all = waits.iter().cloned().reduce(|mut sum, wait| {
        sum.places
            .iter_mut()
            .zip(wait.places)
            .for_each(|(sum, more)| *sum += more);
        sum
    });
    if let Some(list) = of_all.map(|sum| places_text(&sum)).filter(|list| !list.is_empty()) {
        let _ = writeln!(out, "lines on their way meanwhile: {list}");
    }
    // With several threads, each instruction waits for its turn. These waits are one entry, the last.
    let (turns, waits): (Vec<Wait>, Vec<Wait>) = waits.into_iter().partition(|wait| wait.cause == Stall::Fetch);
    for wait in waits.iter().take(most) {
        // Writing to a string does not fail, here and below.
        let _ = write!(
            out,
            "{:>10} {}, {}: {}\n{:12}{}: {}",
            wait.cycles,
            if wait.cycles == 1 { "cycle" } else { "cycles" },
            counted(wait.times, "time"),
            place(report, names, wait.pc),
            "",
            wait.cause,
            awaited(report, names, wait.awaited)
        );
        match (wait.lines.len(), wait.lines.first()) {
            (0, _) | (_, None) => {}
            (1, Some(line)) => {
                let _ = write!(out, "; line {:#010x}", line.wrapping_mul(LINE));
            }
            (count, Some(line)) => {
                let _ = write!(out, "; {count} lines from {:#010x} on", line.wrapping_mul(LINE));
            }
        }
        out.push('\n');
        let list = places_text(wait);
        if !list.is_empty() {
            let _ = writeln!(out, "{:12}on its way: {list}", "");
        }
    }
    if !turns.is_empty() {
        let (cycles, times) = turns.iter().fold((0, 0), |(cycles, times), wait| {
            (cycles + wait.cycles, times + wait.times)
        });
        let _ = writeln!(
            out,
            "{cycles:>10} {}, {}: {} in all\n{:12}fetch: its turn in fetch, which serves one thread a cycle",
            if cycles == 1 { "cycle" } else { "cycles" },
            counted(times, "time"),
            counted(turns.len() as u64, "instruction"),
            "",
        );
    }
    let rest: u64 = waits.iter().skip(most).map(|wait| wait.cycles).sum();
    if rest != 0 {
        let _ = writeln!(
            out,
            "{rest:>10} cycles in {}",
            counted((waits.len() - most) as u64, "other wait")
        );
    }
    out
}

/// Returns all waits, by thread, as JSON.
pub fn json<P: Places>(report: &WaitsReport, names: &P) -> String {
    let at = |pc: u32| {
        json!({
            "pc": pc,
            "instruction": instruction(report, pc),
            "place": names.describe(pc),
        })
    };
    let mut list = Vec::new();
    for wait in &report.waits {
        let mut awaited = match wait.awaited {
            Awaited::Fetch => json!({"kind": "fetch"}),
            Awaited::Branch { pc } => json!({"kind": "branch", "at": at(pc)}),
            Awaited::InstructionLine { line } => {
                json!({"kind": "instruction line", "address": line.wrapping_mul(LINE)})
            }
            Awaited::Result { pc, register } => json!({"kind": "result", "at": at(pc), "register": name(register)}),
            Awaited::Miss { pc, register } => json!({"kind": "miss", "at": at(pc), "register": name(register)}),
            Awaited::FloatResult { thread, pc } => json!({"kind": "float result", "at": at(pc), "thread": thread}),
            Awaited::Memory { pc } => json!({"kind": "memory", "at": at(pc)}),
            Awaited::Scratchpad { thread, pc } => json!({"kind": "scratchpad", "at": at(pc), "thread": thread}),
            Awaited::Arrival { thread } => json!({"kind": "arrival", "thread": thread}),
            Awaited::Turn { thread } => json!({"kind": "turn", "thread": thread}),
            Awaited::WritePort => json!({"kind": "write port"}),
            Awaited::Unseen => json!({"kind": "unseen"}),
        };
        if !wait.lines.is_empty() {
            let lines: Vec<u32> = wait.lines.iter().map(|line| line.wrapping_mul(LINE)).collect();
            awaited["lines"] = json!(lines);
        }
        let mut entry = json!({
            "thread": wait.thread,
            "at": at(wait.pc),
            "cause": wait.cause.name(),
            "awaited": awaited,
            "cycles": wait.cycles,
            "times": wait.times,
        });
        let places = places(wait);
        if !places.is_empty() {
            let places = places
                .into_iter()
                .map(|(place, cycles)| (place.name().to_owned(), json!(cycles)));
            entry["places"] = Value::Object(places.collect());
        }
        list.push(entry);
    }
    let mut threads: Vec<usize> = report.waits.iter().map(|wait| wait.thread).collect();
    threads.sort_unstable();
    threads.dedup();
    let accounts: Vec<Value> = threads
        .into_iter()
        .map(|thread| {
            let causes = Stall::ALL.iter().map(|&cause| (cause, report.stalled(thread, cause)));
            let causes: serde_json::Map<String, Value> = causes
                .filter(|(_, cycles)| *cycles != 0)
                .map(|(cause, cycles)| (cause.name().to_owned(), json!(cycles)))
                .collect();
            json!({"thread": thread, "cycles": causes})
        })
        .collect();
    format!("{:#}\n", json!({"threads": accounts, "waits": list}))
}
