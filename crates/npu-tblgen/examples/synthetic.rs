//! Writes a generated target description of the size of LLVM's largest ones: `synthetic wide|deep
//! [percent]`.

#[path = "../benches/synthetic.rs"]
mod synthetic;

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let kind = args.next().and_then(|name| synthetic::Kind::from_name(&name));
    let scale = args.next().map_or(Some(100), |scale| scale.parse().ok());
    let (Some(kind), Some(scale)) = (kind, scale) else {
        eprintln!("usage: synthetic wide|deep [percent]");
        return ExitCode::from(2);
    };
    match std::io::stdout().write_all(synthetic::program(kind, scale).as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
