//! `clif-util nm` and `clif-util size`: what object files and executables have.

use crate::{Outcome, Stop, input, output};
use npu_link::elf::{Contents, contents};
use std::fmt::Write as _;
use std::path::PathBuf;

/// List the symbols of object files and executables
#[derive(clap::Args)]
pub struct Args {
    /// Object files and executables
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Order by value instead of by name
    #[arg(short = 'n', long, alias = "numeric-sort")]
    numeric_sort: bool,

    /// Print the size of each symbol that has one
    #[arg(short = 'S', long)]
    print_size: bool,

    /// Leave out all but undefined symbols
    #[arg(short = 'u', long)]
    undefined_only: bool,
}

/// Print how many bytes of code, data and zeros object files and executables have
#[derive(clap::Args)]
pub struct SizeArgs {
    /// Object files and executables
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

fn read(path: &std::path::Path) -> Result<(String, Contents), Stop> {
    let (name, bytes) = input::read(path)?;
    let contents = contents(&bytes).map_err(|error| Stop::Fault(format!("{name}: {error}")))?;
    Ok((name, contents))
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Outcome {
    let mut text = String::new();
    for path in &args.files {
        let (name, contents) = read(path)?;
        if args.files.len() > 1 {
            // Writing to a string does not fail.
            let _ = writeln!(text, "\n{name}:");
        }
        let mut symbols = contents.symbols;
        let is_undefined = |letter: char| matches!(letter, 'U' | 'v' | 'w');
        symbols.retain(|symbol| !args.undefined_only || is_undefined(symbol.letter));
        symbols.sort_by(|a, b| {
            let place = |of: &npu_link::elf::SymbolEntry| (!is_undefined(of.letter), of.value);
            let by_value = if args.numeric_sort {
                place(a).cmp(&place(b))
            } else {
                std::cmp::Ordering::Equal
            };
            by_value.then_with(|| a.name.cmp(&b.name))
        });
        for symbol in symbols {
            let value = match is_undefined(symbol.letter) {
                true => " ".repeat(8),
                false => format!("{:08x}", symbol.value),
            };
            let size = match symbol.size {
                1.. if args.print_size => format!(" {:08x}", symbol.size),
                _ => String::new(),
            };
            let _ = writeln!(text, "{value}{size} {} {}", symbol.letter, symbol.name);
        }
    }
    output::print(text.as_bytes())
}

/// Runs the subcommand `size`.
pub fn size(args: &SizeArgs) -> Outcome {
    let mut text = "   text\t   data\t    bss\t    dec\t    hex\tfilename\n".to_owned();
    for path in &args.files {
        let (name, contents) = read(path)?;
        let (mut code, mut data, mut zeros) = (0u64, 0u64, 0u64);
        for section in contents.sections.iter().filter(|section| section.alloc) {
            let kind = match (section.nobits, section.write) {
                (true, _) => &mut zeros,
                (false, true) => &mut data,
                (false, false) => &mut code,
            };
            *kind += u64::from(section.size);
        }
        let all = code + data + zeros;
        // Writing to a string does not fail.
        let _ = writeln!(text, "{code:>7}\t{data:>7}\t{zeros:>7}\t{all:>7}\t{all:>7x}\t{name}");
    }
    output::print(text.as_bytes())
}
