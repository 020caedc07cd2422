//! The recorded counts in `benches/results/corpus.tsv`, and the comparison with them.

use crate::Error;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

/// The costs of one kernel, with the machine's own floats.
#[derive(Clone, Copy, Default)]
pub struct Counts {
    /// The code size in bytes at `opt_level=none`.
    pub bytes_none: u64,
    /// The code size in bytes at `speed`, like all following costs.
    pub bytes_speed: u64,
    /// The executed instructions of one thread.
    pub instructions: u64,
    /// The cycles with one thread.
    pub cycles_1: u64,
    /// The cycles with eight threads, each of which runs the whole kernel.
    pub cycles_8: u64,
}

/// The columns, in order.
const COLUMNS: [&str; 5] = ["bytes_none", "bytes_speed", "instructions", "cycles_1", "cycles_8"];

/// The factor by which a sum may exceed the recorded one.
const ALLOWED: f64 = 1.02;

impl Counts {
    fn columns(&self) -> [u64; COLUMNS.len()] {
        [
            self.bytes_none,
            self.bytes_speed,
            self.instructions,
            self.cycles_1,
            self.cycles_8,
        ]
    }
}

fn path() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/results/corpus.tsv"))
}

fn sums(counts: &BTreeMap<String, Counts>) -> [u64; COLUMNS.len()] {
    let mut sums = [0; COLUMNS.len()];
    for (sum, column) in sums.iter_mut().enumerate() {
        *column = counts.values().map(|kernel| kernel.columns()[sum]).sum();
    }
    sums
}

/// Prints the sum of each column.
pub fn print_sums(counts: &BTreeMap<String, Counts>) {
    for (name, sum) in COLUMNS.iter().zip(sums(counts)) {
        println!("{name}: {sum}");
    }
}

/// Writes the file.
pub fn write(counts: &BTreeMap<String, Counts>) -> Result<(), Error> {
    let mut text = format!("kernel\t{}\n", COLUMNS.join("\t"));
    for (kernel, counts) in counts {
        let columns = counts.columns().map(|count| count.to_string());
        writeln!(text, "{kernel}\t{}", columns.join("\t"))?;
    }
    Ok(std::fs::write(path(), text)?)
}

/// Compares the sums over the kernels of the file with the recorded ones.
///
/// # Errors
///
/// Columns that grew too much, kernels of the file that did not run, and kernels missing in the
/// file.
pub fn check(counts: &BTreeMap<String, Counts>) -> Result<(), Error> {
    let text = std::fs::read_to_string(path())?;
    let mut before = [0; COLUMNS.len()];
    let mut faults = Vec::new();
    let mut kernels = 0;
    for line in text.lines().skip(1) {
        let mut fields = line.split('\t');
        let kernel = fields.next().ok_or("a line without a kernel")?;
        if !counts.contains_key(kernel) {
            faults.push(format!("{kernel} did not run"));
        }
        for sum in &mut before {
            *sum += fields
                .next()
                .ok_or_else(|| format!("{kernel} has too few columns"))?
                .parse::<u64>()?;
        }
        kernels += 1;
    }
    if kernels != counts.len() {
        faults.push(format!("the file has {kernels} kernels, {} ran", counts.len()));
    }
    for ((name, before), now) in COLUMNS.iter().zip(before).zip(sums(counts)) {
        if now as f64 > before as f64 * ALLOWED {
            faults.push(format!("{name} grew from {before} to {now}"));
        }
    }
    if faults.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{}\nif that is meant: cargo bench --bench cycles -- --update",
        faults.join("\n")
    )
    .into())
}
