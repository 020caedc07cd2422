//! The golden-timing programs: the cycles of the model beside those of the hardware, and issue traces line by line.
//!
//! With `--nocapture` the tests print a table, and where a trace first differs.

use super::common::{Golden, differences, goldens};
use npu_sim::{Config, Halt, Issue, Machine, Report, Timing, TimingConfig};

/// Instructions after which a program is given up.
const LIMIT: u64 = 1_000_000;

/// Percent that a program may be off, and all of them together: what README.md and docs/timing.md say.
const BAR: f64 = 3.0;
/// The program that is further off, and by how much at most.
const WORST: (&str, f64) = ("bar-mem-d10", 5.2);
const TOTAL_BAR: f64 = 0.1;

/// Programs that issue every instruction in the recorded cycle.
const EXACT: [&str; 5] = [
    "br-mix",
    "ic-cold-d10",
    "lat-int-mixed",
    "prog-matvec16-1",
    "thr-fpslots",
];

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

/// The first difference between the model's issues and a trace, with some lines around it.
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

fn percent(got: u64, expected: u64) -> f64 {
    100.0 * (got as f64 / expected as f64 - 1.0)
}

#[test]
fn cycles_are_near_those_of_the_hardware() {
    let mut failures = Vec::new();
    let (mut expected_sum, mut sum, mut exact) = (0, 0, 0);
    println!("{:<18} {:>8} {:>8} {:>8}", "program", "hardware", "model", "error");
    let all = Golden::folder("golden-timing");
    for golden in &all {
        let Run { machine, report, .. } = run(golden);
        let error = percent(report.cycles, golden.cycles);
        println!(
            "{:<18} {:>8} {:>8} {error:>6.2} %",
            golden.name, golden.cycles, report.cycles
        );
        expected_sum += golden.cycles;
        sum += report.cycles;
        exact += u32::from(report.cycles == golden.cycles);
        let bar = if golden.name == WORST.0 { WORST.1 } else { BAR };
        if error.abs() > bar {
            failures.push(format!("{}: {error:.2} %", golden.name));
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
    let error = percent(sum, expected_sum);
    println!("{:<18} {expected_sum:>8} {sum:>8} {error:>6.2} %", "total");
    println!("{exact} of {} programs exact", all.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(error.abs() <= TOTAL_BAR, "total: {error:.2} %");
    assert_eq!(all.len(), 73, "the documents name the number of programs");
    assert!(
        3 * exact as usize > 2 * all.len(),
        "two thirds of the programs are exact"
    );
}

#[test]
fn instructions_issue_in_the_recorded_cycles() {
    let mut compared = 0;
    for golden in Golden::folder("golden-timing") {
        let Some(trace) = trace(&golden.name) else { continue };
        let difference = first_difference(&run(&golden).issues, &trace);
        println!("{}: {}", golden.name, difference.as_deref().unwrap_or("equal"));
        if EXACT.contains(&golden.name.as_str()) {
            compared += 1;
            assert_eq!(difference, None, "{}", golden.name);
        }
    }
    assert_eq!(compared, EXACT.len());
}
