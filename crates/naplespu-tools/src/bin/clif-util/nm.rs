//! `clif-util nm` and `clif-util size`: print symbols and sizes of object files, executables and
//! archives.

use crate::{Outcome, Stop, input, output};
use npu_link::Archive;
use npu_link::elf::{Contents, ElfError, SymbolEntry, contents};
use std::fmt::Write as _;
use std::path::PathBuf;

/// List the symbols of object files, executables and archives
#[derive(clap::Args)]
pub struct Args {
    /// Object files, executables and archives
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Sort by value instead of by name
    #[arg(short = 'n', long, alias = "numeric-sort")]
    numeric_sort: bool,

    /// Print the size of each symbol with a size
    #[arg(short = 'S', long)]
    print_size: bool,

    /// Print only undefined symbols
    #[arg(short = 'u', long)]
    undefined_only: bool,

    /// Print only defined symbols
    #[arg(short = 'U', long, conflicts_with = "undefined_only")]
    defined_only: bool,

    /// Print the names of C++ and Rust as in their source
    #[arg(short = 'C', long)]
    demangle: bool,
}

/// Print the bytes of code, data and zeros of object files, executables and members of archives
#[derive(clap::Args)]
pub struct SizeArgs {
    /// Object files, executables and archives
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

/// The contents of a file.
struct File {
    /// The name of the file or of the archive.
    name: String,
    /// The name of the member of an archive.
    member: Option<String>,
    contents: Contents,
}

/// Reads a file, or all members of an archive.
fn read(path: &std::path::Path) -> Result<Vec<File>, Stop> {
    let (name, bytes) = input::read(path)?;
    let fault = |error: ElfError| Stop::Fault(format!("{name}: {error}"));
    let file = |member, contents| File {
        name: name.clone(),
        member,
        contents,
    };
    if !Archive::is_archive(&bytes) {
        return Ok(vec![file(None, contents(&bytes).map_err(fault)?)]);
    }
    let members = Archive::list(&bytes).map_err(fault)?.into_iter().map(|member| {
        let contents = contents(member.bytes).map_err(|error| fault(member.error(error)))?;
        Ok(file(Some(member.name), contents))
    });
    members.collect()
}

fn read_all(paths: &[PathBuf]) -> Result<Vec<File>, Stop> {
    let mut files = Vec::new();
    for path in paths {
        files.extend(read(path)?);
    }
    Ok(files)
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Outcome {
    let mut text = String::new();
    let mut archive = None;
    for file in read_all(&args.files)? {
        // Writing to a string does not fail.
        if file.member.is_some() && archive.as_ref() != Some(&file.name) {
            if args.files.len() > 1 {
                let _ = writeln!(text, "\n{}:", file.name);
            }
            archive = Some(file.name.clone());
        }
        match &file.member {
            Some(member) => drop(writeln!(text, "\n{member}:")),
            None if args.files.len() > 1 => drop(writeln!(text, "\n{}:", file.name)),
            None => {}
        }
        let mut symbols: Vec<SymbolEntry> = file.contents.named_symbols().cloned().collect();
        let is_undefined = |letter: char| matches!(letter, 'U' | 'v' | 'w');
        symbols.retain(|symbol| match is_undefined(symbol.letter) {
            true => !args.defined_only,
            false => !args.undefined_only,
        });
        symbols.sort_by(|a, b| {
            let place = |of: &SymbolEntry| (!is_undefined(of.letter), of.value);
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
            let name = match args.demangle {
                true => naplespu_wasm::readable(&symbol.name),
                false => symbol.name.as_str().into(),
            };
            let _ = writeln!(text, "{value}{size} {} {name}", symbol.letter);
        }
    }
    output::print(text.as_bytes())
}

/// Runs the subcommand `size`.
pub fn size(args: &SizeArgs) -> Outcome {
    let mut text = "   text\t   data\t    bss\t    dec\t    hex\tfilename\n".to_owned();
    for File { name, member, contents } in read_all(&args.files)? {
        let name = member.map_or(name.clone(), |member| format!("{member} (ex {name})"));
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
