//! The golden-timing programs: compares the cycles of the model with those of the hardware, and
//! issue traces line by line.
//!
//! With `--nocapture` the tests print a table, and the first difference of each trace.

use super::common::{Golden, differences, goldens};
use npu_sim::{Config, Halt, Issue, Machine, Report, Timing, TimingConfig};

/// The maximum number of instructions of a program.
const LIMIT: u64 = 1_000_000;

struct Run {
    machine: Machine,
    report: Report,
    issues: Vec<Line>,
}

/// A line of an issue trace: cycle from the first issue, thread, PC, killed.
type Line = (u64, usize, u32, bool);

fn run(golden: &Golden) -> Run {
    let mut machine = Machine::new(Config::default());
    golden.start(&mut machine);
    let mut timing = Timing::new(TimingConfig {
        memory_delay: golden.memory_delay,
        ..TimingConfig::default()
    });
    let mut issues: Vec<Issue> = Vec::new();
    let halt = machine.run_timed(&mut timing, LIMIT, &mut |issue: &Issue| issues.push(*issue));
    assert_eq!(halt, Halt::Ended, "{}", golden.name);
    let first = timing.first_issue().expect("something issued");
    Run {
        machine,
        report: timing.report(),
        issues: issues
            .iter()
            .map(|i| (i.cycle - first, i.thread, i.pc, i.killed))
            .collect(),
    }
}

fn trace(name: &str) -> Option<Vec<Line>> {
    let text = std::fs::read_to_string(goldens().join("golden-timing").join(format!("{name}.trace"))).ok()?;
    let lines = text.lines().filter(|l| !l.starts_with('#'));
    Some(
        lines
            .map(|line| {
                let mut fields = line.split_whitespace();
                let mut next = || fields.next().expect("a field");
                let cycle = next().parse().expect("cycle");
                let thread = next().parse().expect("thread");
                let pc = u32::from_str_radix(next(), 16).expect("pc");
                (cycle, thread, pc, fields.next() == Some("x"))
            })
            .collect(),
    )
}

/// Returns the first difference between the issues of the model and a trace, with some surrounding
/// lines.
fn first_difference(issues: &[Line], trace: &[Line]) -> Option<String> {
    let at = (0..trace.len()).find(|&k| issues.get(k) != Some(&trace[k]))?;
    let mut text = String::new();
    for k in at.saturating_sub(12)..(at + 8).min(trace.len()) {
        let show = |line: Option<&Line>| match line {
            Some((cycle, thread, pc, killed)) => {
                format!("{cycle:>6} {thread} {pc:08x}{}", if *killed { " x" } else { "  " })
            }
            None => "nothing".to_owned(),
        };
        let mark = if k == at { ">" } else { " " };
        text += &format!("{mark} {}   model {}\n", show(trace.get(k)), show(issues.get(k)));
    }
    Some(text)
}

#[test]
fn cycles_are_those_of_the_hardware() {
    let mut failures = Vec::new();
    println!("{:<18} {:>8} {:>8}", "program", "hardware", "model");
    let all = Golden::folder("golden-timing");
    for golden in &all {
        let Run { machine, report, .. } = run(golden);
        println!("{:<18} {:>8} {:>8}", golden.name, golden.cycles, report.cycles);
        if report.cycles != golden.cycles {
            let (got, expected) = (report.cycles, golden.cycles);
            failures.push(format!("{}: {got} cycles, expected {expected}", golden.name));
        }
        if report.total.instructions != golden.instructions {
            let (got, expected) = (report.total.instructions, golden.instructions);
            failures.push(format!("{}: {got} instructions, expected {expected}", golden.name));
        }
        let found = differences(golden, &machine);
        if !found.is_empty() {
            failures.push(format!("{}: {found:#?}", golden.name));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(all.len(), 73, "the documents name the number of programs");
}

#[test]
fn instructions_issue_in_the_recorded_cycles() {
    let mut compared = 0;
    for golden in Golden::folder("golden-timing") {
        let Some(trace) = trace(&golden.name) else { continue };
        let difference = first_difference(&run(&golden).issues, &trace);
        println!("{}: {}", golden.name, difference.as_deref().unwrap_or("equal"));
        compared += 1;
        assert_eq!(difference, None, "{}", golden.name);
    }
    assert_eq!(compared, 7, "traces");
}
