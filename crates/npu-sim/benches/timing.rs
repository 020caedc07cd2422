//! The speed of the timing model in instructions per second, on loops of instruction words, with
//! one thread and with eight.
//!
//! Each loop runs for a fixed number of instructions, several times; the least processor time
//! counts. It also runs with a listening sink, which disables recordings. The functional model runs
//! the same instructions; the ratio of both times depends less on the host than the rates.
//!
//! `cargo bench -p npu-sim --bench timing -- NAME THREADS INSTRUCTIONS` runs one loop once in the
//! timing model, for counting host instructions: the difference of two runs of different lengths is
//! the cost of the loop alone.

#[path = "speed/words.rs"]
mod words;

use npu_mc::SReg;
use npu_sim::{Config, Halt, Issue, Machine, NoSink, Schedule, THREADS, Timing, TimingConfig};
use std::time::Instant;
use words::{looped, mem, mixed, ri, rr};

const BASE: u32 = 0x1000;
const INSTRUCTIONS: u64 = 20_000_000;
const ITERATIONS: u32 = 3;
/// The factor by which the functional model executes more instructions, because its time would be
/// too short to measure.
const FUNCTIONAL: u64 = 2;

/// Returns the processor time of this process if the system reports it; it excludes other work on
/// the machine.
fn processor_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_whitespace().skip(11);
    let (user, system): (f64, f64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some((user + system) / 100.0)
}

/// Creates a machine with a loop of `body` in each of `threads`.
fn prepared(threads: u32, body: &[u32]) -> Option<Machine> {
    let mut machine = Machine::new(Config::default());
    for (word, address) in looped(body).iter().zip((BASE..).step_by(4)) {
        machine.memory_mut().write_u32(address, *word).ok()?;
    }
    for number in 0..THREADS {
        let thread = machine.thread_mut(number);
        thread.set_scalar(SReg::RM, 0xffff);
        thread.set_scalar(SReg::S40, 0x10_0000 + 0x100 * number as u32);
        machine.boot(number, BASE);
    }
    machine.enable(0, (1 << threads) - 1);
    Some(machine)
}

/// Returns the processor time of `run`.
fn time_of(run: impl FnOnce()) -> f64 {
    let (start, wall) = (processor_seconds(), Instant::now());
    run();
    match (start, processor_seconds()) {
        (Some(start), Some(end)) if end > start => end - start,
        _ => wall.elapsed().as_secs_f64(),
    }
}

fn measure(name: &str, threads: u32, body: &[u32]) {
    let (mut best, mut listening, mut functional, mut ipc) = (f64::INFINITY, f64::INFINITY, f64::INFINITY, 0.0);
    for _ in 0..ITERATIONS {
        let [Some(mut machine), Some(mut listened_to), Some(mut other)] = [(); 3].map(|()| prepared(threads, body))
        else {
            return;
        };
        let mut timing = Timing::new(TimingConfig::default());
        best = best.min(time_of(|| {
            let halt = machine.run_timed(&mut timing, INSTRUCTIONS, &mut NoSink);
            assert_eq!(halt, Halt::StepLimit, "{name}");
        }));
        ipc = timing.report().ipc();
        let mut each = Timing::new(TimingConfig::default());
        listening = listening.min(time_of(|| {
            let halt = listened_to.run_timed(&mut each, INSTRUCTIONS, &mut |_: &Issue| {});
            assert_eq!(halt, Halt::StepLimit, "{name}");
        }));
        assert_eq!(each.report(), timing.report(), "{name}");
        functional = functional.min(time_of(|| {
            let halt = other.run_threads(&mut Schedule::default(), FUNCTIONAL * INSTRUCTIONS);
            assert_eq!(halt, Halt::StepLimit, "{name}");
        }));
    }
    let [rate, each] = [best, listening].map(|time| INSTRUCTIONS as f64 / time / 1e6);
    let ratio = best / (functional / FUNCTIONAL as f64);
    println!(
        "{name:<38} {threads} threads {rate:>7.1} million instructions a second, {each:.1} without recordings, \
         {ipc:.3} a cycle, {ratio:>5.1} times the functional model's time"
    );
}

fn main() {
    let chain: Vec<u32> = (0..8).map(|_| ri(4, 2, 2, 1)).collect();
    let apart: Vec<u32> = (10..18).map(|r| ri(4, r, 2, 1)).collect();
    let floats: Vec<u32> = (0..4).flat_map(|_| [rr(33, 3, 3, 4, 0), rr(35, 5, 5, 4, 0)]).collect();
    let memory = [mem(2, 3, 40, 0), mem(2, 4, 40, 4), rr(4, 5, 3, 4, 0), mem(34, 5, 40, 8)];
    let vectors = [
        mem(9, 3, 40, 0),
        rr(4, 4, 4, 3, 7),
        rr(6, 5, 4, 3, 7),
        mem(38, 5, 40, 64),
    ];
    let mixed = mixed();
    let loops: [(&str, &[u32]); 6] = [
        ("dependent additions", &chain),
        ("independent additions", &apart),
        ("float additions, products", &floats),
        ("loads and stores", &memory),
        ("vectors", &vectors),
        ("integers, a branch that depends on them", &mixed),
    ];
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if let [name, threads, instructions] = arguments.as_slice() {
        let body = loops.iter().find(|(n, _)| n == name).map(|(_, body)| body);
        let machine = threads
            .parse()
            .ok()
            .zip(body)
            .and_then(|(threads, body)| prepared(threads, body));
        if let (Some(mut machine), Ok(limit)) = (machine, instructions.parse()) {
            machine.run_timed(&mut Timing::new(TimingConfig::default()), limit, &mut NoSink);
        }
        return;
    }
    for threads in [1, 8] {
        for (name, body) in loops {
            measure(name, threads, body);
        }
    }
}
