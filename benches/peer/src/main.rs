//! Counts host instructions of compiling CLIF, with this compiler and with Cranelift for
//! `pulley32`. Callgrind counts them, so that the figures do not depend on the load of the machine.
//!
//! ```text
//! cargo run --release --manifest-path benches/peer/Cargo.toml [FOLDER OR FILE ...]
//! cargo run --release --manifest-path benches/peer/Cargo.toml growth [LEVEL ALLOCATOR [SHAPE]]
//! cargo run --release --manifest-path benches/peer/Cargo.toml text SHAPE INSTRUCTIONS
//! cargo run --release --manifest-path benches/peer/Cargo.toml slowest LEVEL ALLOCATOR [GENERATIONS [SEED]]
//! ```
//!
//! Without an argument the files are those of `filetests/corpus/`. Functions that one of the
//! compilers refuses (pulley32 has no vectors of sixteen lanes) are skipped for both, and their
//! number is printed. A figure is the difference between a run that compiles every function twice
//! and one that compiles each once; this removes start-up and parsing. The program needs
//! `valgrind`. `DISABLE_PASS=unroll,rename` disables passes of this compiler, like
//! `clif-util compile --disable-pass`. Both compilers are reused for all functions and keep their
//! memory; allocations are those of the second run.

mod growth;
mod memory;
mod slowest;

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::Function;
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable, Flags};
use naplespu_reader::ClifFile;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;

type Error = Box<dyn std::error::Error>;

const LEVELS: [&str; 2] = ["none", "speed"];
/// The environment variable with the disabled passes of this compiler.
const DISABLE: &str = "DISABLE_PASS";
const ALLOCATORS: [&str; 2] = ["backtracking", "single_pass"];

/// One of the two compilers.
enum Compiler {
    Ours(Arc<cranelift_naplespu::Isa>, Box<cranelift_naplespu::Compiler>),
    Pulley(OwnedTargetIsa),
}

impl Compiler {
    fn new(name: &str, level: &str, allocator: &str) -> Result<Compiler, Error> {
        let mut flags = settings::builder();
        flags.set("opt_level", level)?;
        flags.set("regalloc_algorithm", allocator)?;
        flags.set("enable_verifier", "false")?;
        let flags = Flags::new(flags);
        match name {
            "ours" => {
                let mut isa = cranelift_naplespu::isa::lookup_by_name("naplespu")?.finish(flags)?;
                for pass in std::env::var(DISABLE).unwrap_or_default().split_terminator(',') {
                    isa = Arc::new(isa.without_pass(pass.parse()?));
                }
                Ok(Compiler::Ours(isa, Box::default()))
            }
            "pulley32" => Ok(Compiler::Pulley(
                cranelift_codegen::isa::lookup_by_name("pulley32")?.finish(flags)?,
            )),
            other => Err(format!("there is no compiler `{other}`").into()),
        }
    }

    /// Compiles the function in the context. Returns whether it was accepted.
    fn accepts(&mut self, ctx: &mut Context) -> bool {
        let mut ctrl = ControlPlane::default();
        match self {
            Compiler::Ours(isa, compiler) => compiler.compile(isa, ctx, &mut ctrl).is_ok(),
            Compiler::Pulley(isa) => ctx.compile(&**isa, &mut ctrl).is_ok(),
        }
    }

    /// Returns the number of machine instructions of the function in the context.
    fn instructions(&mut self, ctx: &mut Context) -> Result<usize, Error> {
        let mut ctrl = ControlPlane::default();
        match self {
            Compiler::Ours(isa, compiler) => Ok(compiler.compile(isa, ctx, &mut ctrl)?.bytes.len() / 4),
            Compiler::Pulley(isa) => {
                ctx.set_disasm(true);
                let code = ctx.compile(&**isa, &mut ctrl).map_err(|error| error.inner)?;
                let text = code.vcode.as_deref().ok_or("no text of the machine code")?;
                Ok(text.lines().filter(|line| line.starts_with("  ")).count())
            }
        }
    }
}

/// Returns the CLIF files at a path, ordered by name.
fn files(path: &Path) -> Result<Vec<PathBuf>, Error> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut all = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let path = entry?.path();
        if path.is_dir() {
            all.extend(files(&path)?);
        } else if path.extension().is_some_and(|ext| ext == "clif") {
            all.push(path);
        }
    }
    all.sort();
    Ok(all)
}

/// Returns the functions in the files at the paths, and the number of functions that a compiler
/// refuses.
fn functions(paths: &[String]) -> Result<(Vec<Function>, usize), Error> {
    let mut compilers = [
        Compiler::new("ours", "none", "single_pass")?,
        Compiler::new("pulley32", "none", "single_pass")?,
    ];
    let (mut kept, mut left_out) = (Vec::new(), 0);
    for path in paths {
        for path in files(Path::new(path))? {
            let file = ClifFile::parse(&path.display().to_string(), &std::fs::read(&path)?);
            for case in file.functions {
                let both = compilers
                    .iter_mut()
                    .all(|compiler| compiler.accepts(&mut Context::for_function(case.func.clone())));
                if both {
                    kept.push(case.func);
                } else {
                    left_out += 1;
                }
            }
        }
    }
    Ok((kept, left_out))
}

/// Returns the host instructions of this program with these arguments.
fn count(arguments: &[&str], paths: &[String]) -> Result<u64, Error> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe()?)
        .args(arguments)
        .args(paths)
        .output()
        .map_err(|error| format!("valgrind: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(text.into_owned().into());
    }
    let figure = text
        .lines()
        .find_map(|line| line.split_once("Collected :"))
        .ok_or("callgrind printed no count")?
        .1;
    Ok(figure.trim().parse()?)
}

/// Compiles every function `iterations` times, under callgrind.
fn compile(name: &str, level: &str, allocator: &str, iterations: u32, paths: &[String]) -> Result<(), Error> {
    let mut compiler = Compiler::new(name, level, allocator)?;
    let (functions, _) = functions(paths)?;
    let mut ctx = Context::new();
    for _ in 0..iterations {
        for function in &functions {
            ctx.clear();
            ctx.func.clone_from(function);
            if !compiler.accepts(&mut ctx) {
                return Err(format!("{name} refuses {}", function.name).into());
            }
        }
    }
    Ok(())
}

/// Counts allocations during compilation, with a compiler and a context that have compiled the
/// functions once.
fn allocations(compiler: &mut Compiler, functions: &[Function]) -> u64 {
    let mut ctx = Context::new();
    let mut sum = 0;
    for iteration in 0..2 {
        for function in functions {
            ctx.clear();
            ctx.func = function.clone();
            let before = memory::allocations();
            compiler.accepts(&mut ctx);
            if iteration > 0 {
                sum += memory::allocations() - before;
            }
        }
    }
    sum
}

/// Prints the table.
fn table(paths: &[String]) -> Result<(), Error> {
    let (functions, left_out) = functions(paths)?;
    let clif: usize = functions.iter().map(|func| func.dfg.num_insts()).sum();
    println!(
        "{} functions, {clif} CLIF instructions; {left_out} functions left out",
        functions.len()
    );
    println!(
        "{:<6} {:<13} {:>12} {:>12} {:>7} {:>9} {:>9} {:>7} {:>10} {:>10}",
        "level", "allocator", "ours", "pulley32", "speed", "ours/mi", "peer/mi", "speed", "ours/alloc", "peer/alloc"
    );
    for level in LEVELS {
        for allocator in ALLOCATORS {
            let mut figures = [(0, 0, 0); 2];
            for (name, (host, machine, blocks)) in ["ours", "pulley32"].into_iter().zip(&mut figures) {
                let once = count(&["--iterations", "1", name, level, allocator], paths)?;
                let twice = count(&["--iterations", "2", name, level, allocator], paths)?;
                *host = twice - once;
                let mut compiler = Compiler::new(name, level, allocator)?;
                *blocks = allocations(&mut compiler, &functions);
                for function in &functions {
                    *machine += compiler.instructions(&mut Context::for_function(function.clone()))? as u64;
                }
            }
            let [(ours, our_code, our_blocks), (theirs, their_code, their_blocks)] = figures;
            println!(
                "{level:<6} {allocator:<13} {ours:>12} {theirs:>12} {:>7.3} {:>9} {:>9} {:>7.3} {:>10.2} {:>10.2}",
                theirs as f64 / ours as f64,
                ours / our_code,
                theirs / their_code,
                theirs as f64 / their_code as f64 / (ours as f64 / our_code as f64),
                our_blocks as f64 / clif as f64,
                their_blocks as f64 / clif as f64,
            );
        }
    }
    println!(
        "speed: pulley32's host instructions over ours; above 1, this compiler is the faster one. mi: machine instruction. alloc: allocations for a CLIF instruction."
    );
    Ok(())
}

fn run() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, iterations, name, level, allocator, paths @ ..] = arguments.as_slice()
        && flag == "--iterations"
    {
        return compile(name, level, allocator, iterations.parse()?, paths);
    }
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["text", shape, size] => {
            print!("{}", growth::text(shape, size.parse()?)?);
            return Ok(());
        }
        ["slowest", level, allocator] => return slowest::search(level, allocator, slowest::GENERATIONS, 0),
        ["slowest", level, allocator, generations] => {
            return slowest::search(level, allocator, generations.parse()?, 0);
        }
        ["slowest", level, allocator, generations, seed] => {
            return slowest::search(level, allocator, generations.parse()?, seed.parse()?);
        }
        [slowest::COUNTED, level, allocator, file] => return slowest::compile_all(level, allocator, Path::new(file)),
        ["growth"] => return growth::table("speed", "backtracking", ""),
        ["growth", level, allocator] => return growth::table(level, allocator, ""),
        ["growth", level, allocator, part] => return growth::table(level, allocator, part),
        _ => {}
    }
    if arguments.is_empty() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../filetests/corpus");
        return table(&[corpus.display().to_string()]);
    }
    table(&arguments)
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
