//! `clif-util cat`: CLIF, read and printed again.

use crate::{Outcome, input, output};
use std::path::PathBuf;

/// Print CLIF files in normal form
#[derive(clap::Args)]
pub struct Args {
    /// CLIF files; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Outcome {
    let mut text = String::new();
    for path in &args.files {
        for case in input::read_clif(path)?.functions {
            if !text.is_empty() {
                text.push('\n');
            }
            text += &case.func.display().to_string();
        }
    }
    output::print(text.as_bytes())
}
