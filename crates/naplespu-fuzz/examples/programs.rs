//! Random programs of the differential tests.
//!
//! ```text
//! cargo run --release -p naplespu-fuzz --example programs -- KIND run [SECONDS] [FIRST SEED]
//! cargo run -p naplespu-fuzz --example programs -- KIND show SEED
//! cargo run -p naplespu-fuzz --example programs -- KIND write NUMBER FOLDER
//! ```
//!
//! KIND is `scalars`, `loops` or `vectors`. `run` tests new seeds for some time, and prints each
//! failing seed with its shrunk functions and the effects of the loop passes. `show` prints a
//! program. `write` writes programs as CLIF files, named after their seeds.

use naplespu_fuzz::shares::Shares;
use naplespu_fuzz::{Config, Seen, Strategy, bytes, configs, run};
use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

/// The effects of the passes are sampled once per this many programs.
const SAMPLE: u64 = 8;

fn test(strategy: Strategy, configs: &[Config], speed: &Config, seconds: u64, first: u64) {
    let start = Instant::now();
    let (mut seed, mut failures) = (first, 0);
    let (mut seen, mut shares) = (Seen::default(), Shares::default());
    while start.elapsed() < Duration::from_secs(seconds) {
        match run(strategy, &bytes(seed), configs, seed) {
            Ok(more) => seen.add(more),
            Err(report) => {
                failures += 1;
                println!("seed {seed} after {:.1?}: {report}\n", start.elapsed());
            }
        }
        if seed.is_multiple_of(SAMPLE) {
            // A failure to compile was reported above.
            let _ = shares.add(&strategy.case(&bytes(seed), &speed.1), &speed.1);
        }
        seed += 1;
    }
    let rate = (seed - first) as f64 / start.elapsed().as_secs_f64();
    println!("{rate:.1} programs a second, {failures} failures, {seen:?}\n{shares:#?}");
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let strategy = match args.first() {
        Some(&"scalars") => Strategy::Scalars,
        Some(&"loops") => Strategy::Loops,
        Some(&"vectors") => Strategy::Vectors,
        _ => return Err("usage: programs scalars|loops|vectors run|show|write ..".into()),
    };
    let configs = configs()?;
    let speed = configs.iter().find(|(name, _)| name.contains("opt_level=speed"));
    let speed = speed.ok_or("no optimizing compiler")?;
    let number = |at: usize, default: u64| args.get(at).map_or(Ok(default), |arg| arg.parse());
    match (args.get(1), args.get(3)) {
        (Some(&"show"), _) => println!("{}", strategy.case(&bytes(number(2, 0)?), &speed.1).text()),
        (Some(&"write"), Some(folder)) => {
            std::fs::create_dir_all(folder)?;
            for seed in 0..number(2, 0)? {
                let text = strategy.case(&bytes(seed), &speed.1).text();
                std::fs::write(Path::new(folder).join(format!("{seed:05}.clif")), text)?;
            }
        }
        _ => test(strategy, &configs, speed, number(2, 60)?, number(3, 1_000_000)?),
    }
    Ok(())
}
