//! What the kernels in `filetests/corpus/` cost on the machine: cycles of the timing model, beside those of the LLVM compiler for
//! NaplesPU on the hardware (`benches/data/llvm-cycles.tsv`).
//!
//! `cargo bench --bench cycles` prints a line for each kernel and number of threads, and the geometric means. Kernels that are
//! not compiled, or end otherwise than by returning, are named.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::settings::{self, Configurable, Flags};
use cranelift_naplespu::isa_builder;
use naplespu_jit::Program;
use npu_sim::TimingConfig;
use std::path::Path;

/// Cycles of a call of `kernel` with `arg` on `threads` threads.
fn cycles(kernel: &str, arg: &str, threads: usize) -> Result<u64, Box<dyn std::error::Error>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests/corpus");
    let text = std::fs::read_to_string(path.join(kernel).with_extension("clif"))?;
    let start = text.find("function").ok_or("no function")?;
    let mut flags = settings::builder();
    flags.set("opt_level", "speed")?;
    let mut program = Program::new(isa_builder("naplespu".parse()?).finish(Flags::new(flags)));
    for function in cranelift_reader::parse_functions(&text[start..])? {
        program.define(&function)?;
    }
    program.set_timing(Some(TimingConfig::default()));
    let args = [DataValue::I32(arg.parse::<u32>()? as i32)];
    program.module()?.call_threads_by_name(kernel, &args, threads)?;
    let report = program.timing_report().ok_or("no report")?;
    Ok(report.cycles)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/data/llvm-cycles.tsv");
    let table = std::fs::read_to_string(table)?;
    let mut logs: [(f64, u32); 2] = [(0.0, 0); 2];
    println!(
        "{:<20} {:>7} {:>10} {:>10} {:>6}",
        "kernel", "threads", "LLVM", "ours", "ratio"
    );
    for line in table.lines().filter(|l| !l.starts_with('#')).skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let &[kernel, arg, threads, llvm] = fields.as_slice() else {
            return Err(format!("`{line}` has not four fields").into());
        };
        let llvm: u64 = llvm.parse()?;
        match cycles(kernel, arg, threads.parse()?) {
            Ok(ours) => {
                let ratio = ours as f64 / llvm as f64;
                println!("{kernel:<20} {threads:>7} {llvm:>10} {ours:>10} {ratio:>6.3}");
                let (sum, count) = &mut logs[usize::from(threads != "1")];
                *sum += ratio.ln();
                *count += 1;
            }
            Err(error) => println!(
                "{kernel:<20} {threads:>7} {llvm:>10} {}",
                error.to_string().replace('\n', "; ")
            ),
        }
    }
    for (name, (sum, count)) in ["one thread", "eight threads"].iter().zip(logs) {
        println!(
            "{name}: geometric mean of {count} ratios {:.3}",
            (sum / f64::from(count.max(1))).exp()
        );
    }
    Ok(())
}
