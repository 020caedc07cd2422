//! Timing facts that `docs/machine/pipeline.md` leaves open, one at a time: `facts/` has a program
//! for each, in the format of the goldens, with its source and the cycles of the hardware
//! description. The cycles do not depend on the initial contents of registers and memories.

use super::common::Golden;
use npu_sim::{Config, Halt, Machine, NoSink, Timing, TimingConfig};
use std::path::PathBuf;

/// The maximum number of instructions of a program.
const LIMIT: u64 = 1_000_000;

#[test]
fn each_fact_takes_the_cycles_of_the_hardware() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/sim/facts");
    let mut wrong = Vec::new();
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("the folder of facts") {
        let text = std::fs::read_to_string(entry.expect("an entry").path()).expect("a fact");
        let golden = Golden::parse(&text);
        let mut machine = Machine::new(Config::default());
        golden.start(&mut machine);
        let mut timing = Timing::new(TimingConfig {
            memory_delay: golden.memory_delay,
            ..TimingConfig::default()
        });
        assert_eq!(
            machine.run_timed(&mut timing, LIMIT, &mut NoSink),
            Halt::Ended,
            "{}",
            golden.name
        );
        let report = timing.report();
        let (got, expected) = (
            (report.cycles, report.total.instructions),
            (golden.cycles, golden.instructions),
        );
        if got != expected {
            wrong.push(format!(
                "{}: cycles and instructions {got:?}, the hardware's are {expected:?}",
                golden.name
            ));
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 19, "{count} facts");
}
