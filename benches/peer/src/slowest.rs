//! Searches the slowest kilobyte of CLIF by an evolutionary algorithm: random functions over all of
//! CLIF, with a limited text size, selected by the host instructions of their compilation.
//! Callgrind counts these, so that the same seed finds the same function on every machine.

use super::{Compiler, Error};
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::Function;
use naplespu_fuzz::Strategy;
use naplespu_reader::panics;
use std::path::Path;
use std::process::Command;

/// The first argument of the run under callgrind.
pub const COUNTED: &str = "--slowest-counted";

/// The default number of generations.
pub const GENERATIONS: u32 = 60;

/// The maximum size of a function's text, in bytes.
const TEXT: usize = 1024;

/// The number of candidates in a generation.
const CHILDREN: usize = 100;

/// The number of best candidates, over all generations, that have children.
const PARENTS: usize = 20;

/// The maximum number of bytes from which a function is generated: with more bytes, few texts are
/// short enough.
const MOST_BYTES: usize = 600;

/// xorshift64*, since the search must depend only on the seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: usize) -> usize {
        // A `usize` has at most 64 bits here.
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// The bytes that generate a function, and the cost of compiling it.
struct Candidate {
    bytes: Vec<u8>,
    cost: u64,
}

/// Returns the function generated from bytes, if it compiles and its text is short.
fn function(bytes: &[u8], compiler: &mut Compiler) -> Option<Function> {
    let Compiler::Ours(isa, own) = compiler else {
        return None;
    };
    let case = panics::caught(|| Strategy::Anything.case(bytes, isa)).ok()??;
    let func = case.functions.into_iter().next()?;
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
        // Another function.
        0 => bytes = new[..random.below(MOST_BYTES)].to_vec(),
        // The start of one and the end of another.
        1 => {
            let other = &parents[random.below(parents.len())].bytes;
            let cut = random.below(bytes.len().min(other.len()));
            bytes.truncate(cut);
            bytes.extend_from_slice(&other[cut..]);
        }
        // Duplicates a piece.
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

/// A compilation that callgrind counts, followed by a dump. (Its two options need different
/// patterns, because only the first of equal patterns takes effect.)
#[inline(never)]
fn one_compilation(compiler: &mut Compiler, ctx: &mut Context) {
    compiler.accepts(ctx);
}

/// Compiles the function of each line of a file, which contains bytes as hexadecimal digits, under
/// callgrind.
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

/// Returns the host instructions of compiling each function, in order.
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
    // The generator may create functions that panic the reader or compiler.
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
        // Otherwise duplicates would take over.
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
