//! `clif-util cat`: prints CLIF in normal form. `clif-util print-cfg`: prints control-flow graphs
//! for Graphviz.

use crate::{Outcome, input, output};
use cranelift_codegen::cfg_printer::CFGPrinter;
use naplespu_reader::function_text;
use std::path::PathBuf;

/// Files to print.
#[derive(clap::Args)]
pub struct Args {
    /// CLIF files; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Prints functions.
pub fn cat(args: &Args) -> Outcome {
    let mut text = String::new();
    for path in &args.files {
        for case in input::read_clif(path)?.functions {
            if !text.is_empty() {
                text.push('\n');
            }
            text += &function_text(&case.func);
        }
    }
    output::print(text.as_bytes())
}

/// Prints control-flow graphs. Functions must be valid.
pub fn cfg(args: &Args) -> Outcome {
    let mut text = String::new();
    for path in &args.files {
        let file = input::read_clif(path)?;
        let config = input::config_of(&file, &[])?;
        input::report(&file, &input::verify(&file, &config))?;
        for case in &file.functions {
            text += &CFGPrinter::new(&case.func).to_string();
        }
    }
    output::print(text.as_bytes())
}
