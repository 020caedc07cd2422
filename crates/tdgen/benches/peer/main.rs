//! Time and memory for programs of the size of LLVM's largest targets, compared with llvm-tblgen if
//! it is installed: in `LLVM_TBLGEN`, on the search path, or in Debian's folder. `cargo bench -p
//! tdgen --bench peer -- [wide|deep] [percent of full size]`.
//!
//! Wall and processor time are the minimum of a few alternating runs, because other load on the
//! machine only increases them. Processor time has a resolution of a hundredth of a second and is 0
//! if the system does not report it. Peak memory is the system's count for the process.

mod synthetic;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use synthetic::Kind;

const ITERATIONS: usize = 5;

/// The cost of a run.
#[derive(Clone, Copy)]
struct Cost {
    time: Duration,
    /// Processor time of all threads, in user and kernel mode; 0 if the system does not report it.
    processor: Duration,
    /// Peak memory in KiB; 0 if the system does not report it.
    memory: u64,
}

fn peer() -> Option<PathBuf> {
    let names = ["llvm-tblgen-22", "llvm-tblgen"];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(
        (14..40)
            .rev()
            .map(|release| format!("/usr/lib/llvm-{release}/bin").into()),
    );
    let found = folders.flat_map(|folder| names.map(|name| folder.join(name)));
    std::env::var_os("LLVM_TBLGEN")
        .map(PathBuf::from)
        .into_iter()
        .chain(found)
        .find(|file| file.is_file())
}

/// Returns the peak memory of a running process so far.
fn peak(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Returns the processor time of all finished child processes.
fn processor() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program is in parentheses and may contain any character. The fields from the
    // third on follow it.
    let fields = stat.get(stat.rfind(')')? + 1..)?;
    let ticks: Option<Vec<u64>> = fields
        .split_whitespace()
        .skip(13)
        .take(2)
        .map(|field| field.parse().ok())
        .collect();
    Some(Duration::from_millis(ticks?.iter().sum::<u64>() * 10))
}

fn run(program: &Path, mode: &str, input: &Path) -> Option<Cost> {
    let before = processor().unwrap_or_default();
    let start = Instant::now();
    let mut command = Command::new(program);
    command.arg(mode).arg(input).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let mut memory = 0;
    loop {
        if let Some(status) = child.try_wait().ok()? {
            let time = start.elapsed();
            let processor = processor().unwrap_or_default().saturating_sub(before);
            return status.success().then_some(Cost {
                time,
                processor,
                memory,
            });
        }
        memory = memory.max(peak(child.id()).unwrap_or(0));
        std::thread::sleep(Duration::from_micros(500));
    }
}

/// Returns the minimum times and the maximum memory of several runs of each program. The runs
/// alternate, so that other load affects all programs equally.
fn least(programs: &[&Path], mode: &str, input: &Path) -> Vec<Option<Cost>> {
    let mut best: Vec<Option<Cost>> = vec![None; programs.len()];
    for _ in 0..ITERATIONS {
        for (program, best) in programs.iter().zip(&mut best) {
            if let Some(cost) = run(program, mode, input) {
                *best = Some(best.map_or(cost, |old| Cost {
                    time: old.time.min(cost.time),
                    processor: old.processor.min(cost.processor),
                    memory: old.memory.max(cost.memory),
                }));
            }
        }
    }
    best
}

fn show(label: &str, costs: &[Option<Cost>]) {
    print!("{label:<28}");
    for cost in costs {
        match cost {
            Some(cost) => print!(
                "{:>8.3} s ({:>5.2} s) {:>6} MiB",
                cost.time.as_secs_f64(),
                cost.processor.as_secs_f64(),
                cost.memory / 1024
            ),
            None => print!("{:>30}", "failed"),
        }
    }
    if let [Some(own), Some(other)] = costs {
        let times = |of: fn(&Cost) -> Duration| of(other).as_secs_f64() / of(own).as_secs_f64();
        print!(
            "   {:.1} ({:.1}) times as fast, {:.2} of the memory",
            times(|cost| cost.time),
            times(|cost| cost.processor),
            own.memory as f64 / other.memory.max(1) as f64
        );
    }
    println!();
}

/// Returns the cost of an output without the cost of reading the program.
fn beyond(all: &[Option<Cost>], reading: &[Option<Cost>]) -> Vec<Option<Cost>> {
    let minus = |all: Cost, reading: Cost| Cost {
        time: all.time.saturating_sub(reading.time),
        processor: all.processor.saturating_sub(reading.processor),
        memory: all.memory.saturating_sub(reading.memory),
    };
    all.iter()
        .zip(reading)
        .map(|(all, reading)| Some(minus((*all)?, (*reading)?)))
        .collect()
}

fn main() -> std::io::Result<()> {
    let kinds: Vec<Kind> = std::env::args().filter_map(|arg| Kind::from_name(&arg)).collect();
    let kinds = if kinds.is_empty() {
        vec![Kind::Wide, Kind::Deep]
    } else {
        kinds
    };
    let scale = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(100);
    let own = PathBuf::from(env!("CARGO_BIN_EXE_npu-tblgen"));
    let peer = peer();
    let mut programs = vec![own.as_path()];
    match &peer {
        Some(peer) => {
            println!("npu-tblgen | {}", peer.display());
            programs.push(peer);
        }
        None => println!("npu-tblgen alone: no llvm-tblgen is installed"),
    }
    println!("wall time (processor time), peak memory");
    for kind in kinds {
        let text = synthetic::program(kind, scale);
        let input = std::env::temp_dir().join(format!("synthetic-{kind:?}-{}.td", std::process::id()));
        std::fs::write(&input, &text)?;
        println!("{kind:?}: {} lines, {} KiB", text.lines().count(), text.len() / 1024);
        let reading = least(&programs, "--null-backend", &input);
        show("  read", &reading);
        for (label, mode) in [("print records", "--print-records"), ("dump JSON", "--dump-json")] {
            let all = least(&programs, mode, &input);
            show(&format!("  read and {label}"), &all);
            show(&format!("  {label} alone"), &beyond(&all, &reading));
        }
        std::fs::remove_file(&input)?;
    }
    Ok(())
}
