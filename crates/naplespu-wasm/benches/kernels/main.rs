//! Compares the cost of code from WebAssembly with the same kernels in CLIF, and the cost of
//! translation with `wasmtime`.
//!
//! `cargo bench -p naplespu-wasm --bench kernels` prints
//!
//! - for each kernel of `kernels.c` and `vectors.c` the cycles and instructions of one thread on
//!   the timing model: for its CLIF in `filetests/corpus/`, and for WebAssembly with and without
//!   bounds checks. Each result is compared with that of the run line.
//! - for real modules, the size of the code and of the module, and the ratio of the translation
//!   times here and in `wasmtime`. Both run on one thread; `wasmtime` compiles for the host.
//!
//! All floats are IEEE 754 floats, and `opt_level` is `speed` on both sides.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::isa::CallConv;
use cranelift_codegen::settings::{self, Configurable, Flags};
use cranelift_naplespu::Isa;
use naplespu_jit::{NpuModule, Program};
use naplespu_reader::ClifFile;
use naplespu_wasm::wasi::{Wasi, World};
use naplespu_wasm::{Config, Store, Value, has_tail_calls};
use npu_sim::{Report, TimingConfig};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

type Error = Box<dyn std::error::Error>;

const KERNELS: &[u8] = include_bytes!("kernels.wasm");

/// The vector kernels.
const VECTORS: &[u8] = include_bytes!("vectors.wasm");

/// The kernels, with the argument and result of one of their run lines.
const CALLS: [(&str, i32, i32); 31] = [
    ("base64", 7, 483_666_892),
    ("bitcount", 7, 1_414_156_992),
    ("bytecode_vm", 7, 233_696_750),
    ("conv2d_i32", 7, -13_253_181),
    ("crc32_bitwise", 7, 474_880_155),
    ("crc32_table", 7, 1_673_808_553),
    ("dct8x8_i32", 7, 727_129_109),
    ("div64", 7, -1_539_509_521),
    ("dot_v16", 7, -79_769_085),
    ("fib_rec", 15, 610),
    ("fir_i32", 7, -316_505_643),
    ("fnv1a64", 7, 1_943_648_241),
    ("funcptr", 7, 2_057_103_670),
    ("life", 7, 1_250_787_022),
    ("lu_f32", 7, 2_068_579_732),
    ("lu_fixed", 7, -907_614_390),
    ("mandelbrot_f32", 8, 334_183_805),
    ("mandelbrot_v16", 4, 1_807_719_230),
    ("matmul_f32", 7, 163_076),
    ("matmul_i32", 7, -572_747_816),
    ("matmul_v16", 7, -572_747_816),
    ("modpow", 7, -2_020_820_764),
    ("nbody_f32", 7, 1_888_681_238),
    ("newton_f64", 7, -1_540_997_912),
    ("nqueens", 7, 40),
    ("quicksort", 7, -1_980_366_181),
    ("saxpy_v16", 7, -622_325_354),
    ("sieve", 2048, 289_176),
    ("strsearch", 7, 521_153_644),
    ("transpose", 7, 265_093_628),
    ("xtea", 7, 175_748_723),
];

/// The modules whose translation is timed, by name in the directory of the command line's tests.
const MODULES: [&str; 3] = ["ordinary_c", "ordinary_cpp", "ordinary_rust"];

/// The number of translations of each; the minimum counts.
const ITERATIONS: usize = 9;

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn isa() -> Result<Arc<Isa>, Error> {
    let mut flags = settings::builder();
    flags.set("opt_level", "speed")?;
    flags.set("enable_verifier", "false")?;
    let mut builder = cranelift_naplespu::isa::lookup_by_name("naplespu")?;
    builder.set("strict_float", "true")?;
    Ok(builder.finish(Flags::new(flags))?)
}

/// Fails unless a result matches the run line.
fn expect(name: &str, found: i32, expected: i32) -> Result<(), Error> {
    match found == expected {
        true => Ok(()),
        false => Err(format!("{name} gives {found}, not {expected}").into()),
    }
}

/// Runs a kernel in CLIF.
fn in_clif(name: &str, argument: i32, expected: i32) -> Result<Report, Error> {
    let path = repository().join(format!("filetests/corpus/{name}.clif"));
    let mut program = Program::new(isa()?);
    program.set_timing(Some(TimingConfig::default()));
    let file = ClifFile::parse(name, &std::fs::read(path)?);
    if !file.faults.is_empty() {
        return Err(file.source.render(&file.faults).into());
    }
    for case in &file.functions {
        program.define(&case.func)?;
    }
    match program.call(name, &[DataValue::I32(argument)])?[..] {
        [DataValue::I32(found)] => expect(name, found, expected)?,
        _ => return Err(format!("{name} has one result").into()),
    }
    program.timing_report().ok_or_else(|| "there was no timed run".into())
}

/// Runs a kernel through WebAssembly.
fn in_wasm(name: &str, argument: i32, expected: i32, bounds_checks: bool) -> Result<Report, Error> {
    let config = Config {
        bounds_checks,
        ..Config::default()
    };
    let mut store = Store::new(NpuModule::new(isa()?)?, config);
    let instance = store.load(if name.ends_with("_v16") { VECTORS } else { KERNELS })?;
    store.start(&instance)?;
    store.module_mut().set_timing(Some(TimingConfig::default()));
    match store.invoke(&instance, name, &[Value::I32(argument)])?[..] {
        [Value::I32(found)] => expect(name, found, expected)?,
        _ => return Err(format!("{name} has one result").into()),
    }
    store
        .module()
        .timing_report()
        .ok_or_else(|| "there was no timed run".into())
}

fn geometric_mean(ratios: &[f64]) -> f64 {
    (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp()
}

fn kernels() -> Result<(), Error> {
    println!(
        "| kernel | CLIF: cycles | instructions | wasm, checked: cycles | instructions | trusted: cycles | instructions |"
    );
    println!("|---|---|---|---|---|---|---|");
    let mut through = Vec::new();
    let mut checks = Vec::new();
    for (name, argument, expected) in CALLS {
        let clif = in_clif(name, argument, expected)?;
        let checked = in_wasm(name, argument, expected, true)?;
        let trusted = in_wasm(name, argument, expected, false)?;
        print!("| `{name}` |");
        for report in [&clif, &checked, &trusted] {
            print!(" {} | {} |", report.cycles, report.total.instructions);
        }
        println!();
        through.push(trusted.cycles as f64 / clif.cycles as f64);
        checks.push(checked.cycles as f64 / trusted.cycles as f64);
    }
    println!(
        "\nCycles, geometric means: trusted beside CLIF {:.3}, checked beside trusted {:.3}.\n",
        geometric_mean(&through),
        geometric_mean(&checks)
    );
    Ok(())
}

/// Returns the minimum time of several runs.
fn least(mut iteration: impl FnMut() -> Result<(), Error>) -> Result<Duration, Error> {
    let mut least = Duration::MAX;
    for _ in 0..ITERATIONS {
        let start = Instant::now();
        iteration()?;
        least = least.min(start.elapsed());
    }
    Ok(least)
}

/// Returns the size of the code of a module here, in bytes, and the translation time.
fn translated(bytes: &[u8]) -> Result<(u64, Duration), Error> {
    let mut size = 0;
    let isa = isa()?;
    let time = least(|| {
        let mut config = Config::default();
        if has_tail_calls(bytes)? {
            config.convention = CallConv::Tail;
        }
        let mut store = Store::new(NpuModule::new(isa.clone())?, config);
        let world = World {
            args: Vec::new(),
            environment: Vec::new(),
            input: Box::new(std::io::empty()),
            output: Box::new(std::io::sink()),
            errors: Box::new(std::io::sink()),
            seed: 0,
            folders: Vec::new(),
        };
        Wasi::define(&mut store, bytes, world)?;
        store.load(bytes)?;
        let module = store.module();
        let functions = cranelift_module::Module::declarations(module).get_functions();
        size = functions
            .filter_map(|(id, _)| module.code(id))
            .map(|code| code.code_buffer().len() as u64)
            .sum();
        Ok(())
    })?;
    Ok((size, time))
}

/// Returns the translation time of `wasmtime` for the same module.
fn of_peer(bytes: &[u8]) -> Result<Duration, Error> {
    let engine = wasmtime::Engine::default();
    least(|| {
        wasmtime::Module::new(&engine, bytes)?;
        Ok(())
    })
}

fn modules() -> Result<(), Error> {
    println!("| module | bytes | bytes of code | times the speed of this translation that wasmtime has |");
    println!("|---|---|---|---|");
    // `wasmtime` uses one thread as well.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    for name in MODULES {
        let path = repository().join(format!("crates/naplespu-tools/tests/cli/inputs/wasm/{name}.wasm"));
        let bytes = std::fs::read(path)?;
        // Errors leave the pool's thread as text, since not all of them are `Send`.
        let (size, here) = pool.install(|| translated(&bytes).map_err(|error| error.to_string()))?;
        let there = of_peer(&bytes)?;
        println!(
            "| `{name}.wasm` | {} | {size} | {:.2} |",
            bytes.len(),
            here.as_secs_f64() / there.as_secs_f64()
        );
    }
    Ok(())
}

fn main() -> Result<(), Error> {
    kernels()?;
    modules()
}
