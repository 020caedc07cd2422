//! `clif-util objcopy`: converts programs from one format to another.

use crate::asm::OutputFormat;
use crate::disasm::{FormatArg, read_image};
use crate::{Outcome, Stop, output};
use std::path::{Path, PathBuf};

/// Convert a program to an image: from an ELF file, or from one image format to another
#[derive(clap::Args)]
pub struct Args {
    /// The program; `-` is standard input
    #[arg(value_name = "IN")]
    file: PathBuf,

    /// Output file for the image
    #[arg(value_name = "OUT")]
    output: PathBuf,

    /// The format of IN
    #[arg(short = 'I', long, value_enum, default_value_t = FormatArg::Auto, value_name = "FORMAT")]
    input_format: FormatArg,

    /// Format of OUT; by default that of its name: `_mem_standalone.hex`, `_mem.hex`, `.bin`,
    /// `.ihex` or `.ihx`, `.vh`, or hexadecimal words for all others
    #[arg(short = 'O', long, value_enum, value_name = "FORMAT")]
    output_format: Option<OutputFormat>,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Outcome {
    let mut image = read_image(&args.file, args.input_format, 0)?.image;
    image.segments.sort_by_key(|segment| segment.address);
    let format = args.output_format.unwrap_or_else(|| format_of(&args.output));
    let bytes = image.write(format.into());
    let bytes = bytes.map_err(|error| Stop::Fault(format!("{error}; `-O hex` leaves gaps out")))?;
    output::write(Some(&args.output), &bytes)
}

/// Returns the format for the name of a file.
pub fn format_of(path: &Path) -> OutputFormat {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name.ends_with("_mem_standalone.hex") {
        OutputFormat::Standalone
    } else if name.ends_with("_mem.hex") {
        OutputFormat::Mem
    } else if name.ends_with(".bin") {
        OutputFormat::Flat
    } else if name.ends_with(".ihex") || name.ends_with(".ihx") {
        OutputFormat::Ihex
    } else if name.ends_with(".vh") {
        OutputFormat::Verilog
    } else {
        OutputFormat::Hex
    }
}
