//! Measures compile speed: CLIF instructions per second for the kernels in `filetests/corpus/`, at
//! both optimization levels, on one thread.
//!
//! `cargo bench --bench compile` prints a line for each level, and a line for each pass over
//! machine instructions: its cost for straight-line code, and the factor of that cost for four
//! times the code, which should be about four. It fails if a kernel does not compile.

#[path = "growth/passes.rs"]
mod passes;

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::Function;
use cranelift_codegen::settings::{self, Configurable, Flags};
use cranelift_naplespu::abi::registers::RegisterSet;
use cranelift_naplespu::internals::{parse_function, run_pass};
use cranelift_naplespu::{Compiler, isa};
use naplespu_reader::ClifFile;
use passes::{PASSES, straight_line};
use std::path::Path;
use std::time::{Duration, Instant};

/// The measuring time of each level.
const TIME: Duration = Duration::from_secs(3);

fn kernels() -> Result<Vec<Function>, Box<dyn std::error::Error>> {
    let mut functions = Vec::new();
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests/corpus"))? {
        let path = entry?.path();
        let file = ClifFile::parse(&path.display().to_string(), &std::fs::read(&path)?);
        if !file.faults.is_empty() {
            return Err(file.source.render(&file.faults).into());
        }
        functions.extend(file.functions.into_iter().map(|case| case.func));
    }
    Ok(functions)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let functions = kernels()?;
    let (mut compiler, mut ctx) = (Compiler::new(), Context::new());
    for level in ["none", "speed"] {
        let mut flags = settings::builder();
        flags.set("opt_level", level)?;
        flags.set("enable_verifier", "false")?;
        let isa = isa::lookup_by_name("naplespu")?.finish(Flags::new(flags))?;
        let per_iteration: usize = functions.iter().map(|f| f.dfg.num_insts()).sum();
        let (mut spent, mut iterations, mut bytes) = (Duration::ZERO, 0, 0);
        while spent < TIME {
            for function in &functions {
                ctx.clear();
                ctx.func = function.clone();
                let start = Instant::now();
                let code = compiler.compile(&isa, &mut ctx, &mut ControlPlane::default())?;
                spent += start.elapsed();
                bytes += code.bytes.len();
            }
            iterations += 1;
        }
        let rate = (per_iteration * iterations) as f64 / spent.as_secs_f64();
        println!(
            "opt_level={level}: {} functions, {per_iteration} CLIF instructions, {} bytes of code, {rate:.0} CLIF instructions a second",
            functions.len(),
            bytes / iterations,
        );
    }
    for pass in PASSES {
        let mut times = [Duration::MAX; 2];
        for (time, iterations) in times.iter_mut().zip([300, 1200]) {
            let source = parse_function(&straight_line(iterations))?;
            // The minimum of several runs, since the machine may be busy.
            for _ in 0..20 {
                let mut func = source.clone();
                let start = Instant::now();
                run_pass(pass, &mut func, RegisterSet::PreserveAll)?;
                *time = start.elapsed().min(*time);
            }
        }
        let [small, large] = times.map(|time| time.as_secs_f64() * 1e6);
        println!(
            "pass {pass}: {small:.0} µs for 3901 instructions, {:.1} times that for four times as many",
            large / small
        );
    }
    Ok(())
}
