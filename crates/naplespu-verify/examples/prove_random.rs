//! Measures how many functions of `generate` the prover decides.
//!
//! `cargo run --release -p naplespu-verify --example prove_random -- LEVEL FIRST COUNT [SECONDS]`

use cranelift_codegen::settings::{self, Configurable as _, Flags};
use naplespu_verify::answer::Verdict;
use naplespu_verify::generate::generate;
use naplespu_verify::prove::{Options, prove};
use std::error::Error;
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [level, first, count, rest @ ..] = &args[..] else {
        return Err("LEVEL FIRST COUNT [SECONDS] are expected".into());
    };
    let (first, count): (u64, u64) = (first.parse()?, count.parse()?);
    let mut flags = settings::builder();
    flags.set("opt_level", level)?;
    let isa = cranelift_naplespu::isa::lookup_by_name("naplespu")?.finish(Flags::new(flags))?;
    let mut options = Options::default();
    if let [seconds] = rest {
        options.timeout = Duration::from_secs(seconds.parse()?);
    }
    let (mut proved, mut refuted, mut undecided, mut simple) = (0, 0, 0, 0);
    let mut longest = Duration::ZERO;
    let start = Instant::now();
    for seed in first..first + count {
        let text = generate(seed);
        for func in cranelift_reader::parse_functions(&text)? {
            let answer = prove(&func, &isa, &options)?;
            longest = longest.max(answer.time);
            match answer.verdict {
                Verdict::Proved => proved += 1,
                Verdict::Refuted { .. } => refuted += 1,
                Verdict::Undecided(_) => undecided += 1,
            }
            simple += usize::from(answer.open == 0 && answer.verdict == Verdict::Proved);
            if answer.verdict != Verdict::Proved {
                println!("{answer}");
            }
        }
    }
    println!(
        "{level}: {proved} proved ({simple} without a solver), {refuted} refuted, {undecided} undecided, \
         {:.1} s, longest {:.1} s",
        start.elapsed().as_secs_f64(),
        longest.as_secs_f64()
    );
    Ok(())
}
