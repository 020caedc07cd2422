//! The slowest kilobyte of CLIF that a search finds: random functions over all of CLIF whose text has at most so many bytes, bred for the host
//! instructions that compiling them takes. Those are counted by callgrind, so that the same seed finds the same function anywhere.

use super::{Compiler, Error};
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::Function;
use naplespu_fuzz::compiles;
use naplespu_reader::panics;
use std::path::Path;
use std::process::Command;

/// The first argument of the run that callgrind looks at.
pub const COUNTED: &str = "--slowest-counted";

/// Generations of a search that is not told how many.
pub const GENERATIONS: u32 = 60;

/// Bytes of text that a function may have.
const TEXT: usize = 1024;

/// Candidates of a generation.
const CHILDREN: usize = 100;

/// How many of all that were seen have children.
const PARENTS: usize = 20;

/// Bytes that a function is made from, at most: with more of them hardly a text is short enough.
const MOST_BYTES: usize = 600;

/// xorshift64*: which function is found has to depend on the seed alone.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: usize) -> usize {
        // A usize has at most 64 bits here.
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// Bytes, and what compiling the function that they give takes.
struct Candidate {
    bytes: Vec<u8>,
    cost: u64,
}

/// The function that bytes give, if it compiles and its text is short.
fn function(bytes: &[u8], compiler: &mut Compiler) -> Option<Function> {
    let Compiler::Ours(isa, own) = compiler else {
        return None;
    };
    let func = compiles::function(bytes, isa).ok()??;
    if func.display().to_string().len() > TEXT {
        return None;
    }
    let mut ctx = Context::for_function(func.clone());
    own.compile(isa, &mut ctx, &mut ControlPlane::default()).ok()?;
    Some(func)
}

fn child(parents: &[Candidate], random: &mut Random) -> Vec<u8> {
    let mut fresh = |length: usize| -> Vec<u8> { (0..length).map(|_| random.next() as u8).collect() };
    if parents.is_empty() {
        return fresh(MOST_BYTES / 2);
    }
    let new = fresh(MOST_BYTES);
    let mut bytes = parents[random.below(parents.len())].bytes.clone();
    match random.below(5) {
        // Another function altogether.
        0 => bytes = new[..random.below(MOST_BYTES)].to_vec(),
        // The start of one and the end of another.
        1 => {
            let other = &parents[random.below(parents.len())].bytes;
            let cut = random.below(bytes.len().min(other.len()));
            bytes.truncate(cut);
            bytes.extend_from_slice(&other[cut..]);
        }
        // A piece twice.
        2 if !bytes.is_empty() => {
            let from = random.below(bytes.len());
            let piece = bytes[from..(from + 1 + random.below(40)).min(bytes.len())].to_vec();
            bytes.splice(from..from, piece);
            bytes.truncate(MOST_BYTES);
        }
        _ => {
            for _ in 0..=random.below(8) {
                let place = random.below(bytes.len());
                if let Some(byte) = bytes.get_mut(place) {
                    *byte = new[place];
                }
            }
        }
    }
    bytes
}

/// One compilation: what callgrind counts, and after which it writes down what it has. (Its two options want different patterns: of equal ones
/// only the first counts.)
#[inline(never)]
fn one_compilation(compiler: &mut Compiler, ctx: &mut Context) {
    compiler.accepts(ctx);
}

/// Compiles the function of each line of a file of bytes as hexadecimal digits: what callgrind looks at.
pub fn compile_all(level: &str, allocator: &str, file: &Path) -> Result<(), Error> {
    std::panic::set_hook(panics::hook(std::panic::take_hook()));
    let mut compiler = Compiler::new("ours", level, allocator)?;
    for line in std::fs::read_to_string(file)?.lines() {
        let digits = |place: usize| u8::from_str_radix(&line[place..place + 2], 16);
        let bytes = (0..line.len()).step_by(2).map(digits).collect::<Result<Vec<u8>, _>>()?;
        let func = function(&bytes, &mut compiler).ok_or("a function that is not the same each time")?;
        let mut ctx = Context::for_function(func);
        one_compilation(&mut compiler, &mut ctx);
    }
    Ok(())
}

/// Host instructions of compiling the function of each, in order.
fn costs(level: &str, allocator: &str, all: &[Vec<u8>]) -> Result<Vec<u64>, Error> {
    let folder = tempfile::tempdir()?;
    let (list, dump) = (folder.path().join("list"), folder.path().join("dump"));
    let lines: String = all
        .iter()
        .map(|bytes| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + "\n")
        .collect();
    std::fs::write(&list, lines)?;
    let output = Command::new("valgrind")
        .args([
            "--tool=callgrind",
            "--toggle-collect=*slowest::one_compilation*",
            "--dump-after=*one_compilation*",
        ])
        .arg(format!("--callgrind-out-file={}", dump.display()))
        .arg(std::env::current_exe()?)
        .args([COUNTED, level, allocator])
        .arg(&list)
        .output()
        .map_err(|error| format!("valgrind: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let cost = |number: usize| {
        let text = std::fs::read_to_string(folder.path().join(format!("dump.{}", number + 1)))?;
        let totals = text.lines().find_map(|line| line.strip_prefix("totals:"));
        Ok(totals.ok_or("callgrind wrote no total")?.trim().parse()?)
    };
    (0..all.len()).map(cost).collect()
}

/// Searches, and prints the slowest function with its cost.
pub fn search(level: &str, allocator: &str, generations: u32, seed: u64) -> Result<(), Error> {
    // The generator of functions tries what may panic.
    std::panic::set_hook(panics::hook(std::panic::take_hook()));
    let mut compiler = Compiler::new("ours", level, allocator)?;
    let mut random = Random(seed.wrapping_mul(2).wrapping_add(0x9e37_79b9_7f4a_7c15));
    let mut best: Vec<Candidate> = Vec::new();
    for generation in 0..generations {
        let mut children = Vec::new();
        while children.len() < CHILDREN {
            let bytes = child(&best, &mut random);
            if function(&bytes, &mut compiler).is_some() {
                children.push(bytes);
            }
        }
        let costs = costs(level, allocator, &children)?;
        best.extend(
            children
                .into_iter()
                .zip(costs)
                .map(|(bytes, cost)| Candidate { bytes, cost }),
        );
        best.sort_by(|a, b| b.cost.cmp(&a.cost).then_with(|| a.bytes.cmp(&b.bytes)));
        // Twins would soon be all there is.
        best.dedup_by_key(|candidate| candidate.cost);
        best.truncate(PARENTS);
        eprintln!(
            "generation {generation}: {} host instructions",
            best.first().map_or(0, |first| first.cost)
        );
    }
    if let Some(func) = best.first().and_then(|first| function(&first.bytes, &mut compiler)) {
        println!("{}", func.display());
    }
    Ok(())
}
