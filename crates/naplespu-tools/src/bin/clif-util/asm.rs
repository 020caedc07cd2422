//! `clif-util asm`: assembles to memory images and object files.

use crate::disasm::{parse_address, parse_base};
use crate::{Outcome, Stop, input, output};
use clap::ValueEnum;
use naplespu_reader::{Diagnostic, Source};
use npu_link::elf::write_object;
use npu_link::{Format, Linked, Placement, link, listing, show_encoding, symbol_map};
use npu_mc::asm::{self, Fault, Object};
use std::path::PathBuf;

/// Assemble a file to an image that `sim` and `disasm` read, or to an object file
#[derive(clap::Args)]
pub struct Args {
    /// An assembly file; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Output file for the image instead of standard output
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,

    /// The kind of output: an image, or a relocatable object file for `link`
    #[arg(long, value_enum, default_value_t = Emit::Image, value_name = "KIND")]
    emit: Emit,

    /// The format of the image
    #[arg(long, value_enum, default_value_t = OutputFormat::Hex, value_name = "FORMAT")]
    format: OutputFormat,

    /// Address of `.text`; the other sections follow
    #[arg(long, value_name = "ADDRESS", default_value = "0", value_parser = parse_base)]
    base: u32,

    /// Address of a section
    #[arg(long, value_name = "NAME=ADDRESS", value_parser = parse_section)]
    section: Vec<(String, u32)>,

    /// Print the program with the bytes of each instruction
    #[arg(long)]
    show_encoding: bool,

    /// Print line numbers, addresses and bytes beside the source
    #[arg(long)]
    listing: bool,

    /// Write the symbols with their addresses to a file that `disasm --symbols` reads
    #[arg(long, value_name = "FILE")]
    symbols: Option<PathBuf>,
}

/// The kind of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Emit {
    /// Bytes with addresses
    Image,
    /// A relocatable ELF file
    Obj,
}

/// The formats of written images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// Hexadecimal words, `@` and an address before each piece
    Hex,
    /// Verilog's `$readmemh`: bytes, `@` and an address before each piece
    Verilog,
    /// Little-endian words from the first to the last byte in memory, with zeros in gaps; also
    /// `binary`
    #[value(alias = "binary")]
    Flat,
    /// `_mem.hex`: lines of 64 bytes from address 0 on, last byte first
    Mem,
    /// `_mem_standalone.hex`: lines of an address and 64 bytes
    Standalone,
    /// Intel HEX, with the entry point of an ELF file
    Ihex,
}

impl From<OutputFormat> for Format {
    fn from(format: OutputFormat) -> Self {
        match format {
            OutputFormat::Hex => Self::HexWords,
            OutputFormat::Verilog => Self::Verilog,
            OutputFormat::Flat => Self::Flat,
            OutputFormat::Mem => Self::Mem,
            OutputFormat::Standalone => Self::MemStandalone,
            OutputFormat::Ihex => Self::IntelHex,
        }
    }
}

fn parse_section(text: &str) -> Result<(String, u32), String> {
    let (name, address) = text
        .split_once('=')
        .ok_or_else(|| format!("`{text}` is not of the form NAME=ADDRESS"))?;
    Ok((name.to_owned(), parse_address(address)?))
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Outcome {
    let (name, bytes) = input::read(&args.file)?;
    let source = text(name, bytes)?;
    if args.emit == Emit::Obj {
        let faults = |faults: Vec<Fault>| {
            let list: Vec<Diagnostic> = faults.into_iter().map(diagnostic).collect();
            output::report(&source.render(&list));
            Stop::Reported
        };
        let object = asm::assemble(&source.text, &asm::Options::default()).map_err(faults)?;
        warn(&source, &object);
        let bytes = write_object(&object).map_err(|error| Stop::Fault(format!("{}: {error}", source.name)))?;
        return output::write_file(args.output.as_deref(), &bytes);
    }
    let placement = Placement {
        base: args.base,
        sections: args.section.clone(),
    };
    let (object, linked) = assemble(&source, &placement).map_err(|faults| {
        output::report(&source.render(&faults));
        Stop::Reported
    })?;
    warn(&source, &object);
    if let Some(path) = &args.symbols {
        output::write(Some(path), symbol_map(&object, &linked).as_bytes())?;
    }
    if args.listing {
        output::print(listing(&source.text, &object, &linked).as_bytes())?;
    }
    if args.show_encoding {
        output::print(show_encoding(&source.text, &object, &linked).as_bytes())?;
    }
    // A listing replaces the image on standard output, but not an image in a file.
    if args.output.is_some() || !(args.listing || args.show_encoding) {
        let bytes = linked.image.write(args.format.into());
        let bytes = bytes.map_err(|error| Stop::Fault(format!("{error}; `--format hex` leaves gaps out")))?;
        output::write(args.output.as_deref(), &bytes)?;
    }
    Ok(())
}

/// Reports the hardware errata that a program meets. They are warnings, so the program is still
/// assembled.
fn warn(source: &Source, object: &Object) {
    let warnings: Vec<Diagnostic> = asm::warnings(object).into_iter().map(diagnostic).collect();
    output::report(&source.render_warnings(&warnings));
}

/// Returns the text of a source. Reports bytes that are not UTF-8.
fn text(name: String, bytes: Vec<u8>) -> Result<Source, Stop> {
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Source::new(name, text)),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
            let source = Source::new(name, text);
            let fault = Diagnostic::new("the file is not UTF-8 text", at..at, "here");
            output::report(&source.render(&[fault]));
            Err(Stop::Reported)
        }
    }
}

fn assemble(source: &Source, placement: &Placement) -> Result<(Object, Linked), Vec<Diagnostic>> {
    let diagnostics = |faults: Vec<Fault>| faults.into_iter().map(diagnostic).collect::<Vec<_>>();
    let object = asm::assemble(&source.text, &asm::Options::default()).map_err(diagnostics)?;
    let linked = link(&object, placement).map_err(diagnostics)?;
    Ok((object, linked))
}

fn diagnostic(fault: Fault) -> Diagnostic {
    // Errors of section placement have no source location.
    let nowhere = fault.label.is_empty() && fault.span.is_empty();
    Diagnostic {
        message: fault.message,
        span: (!nowhere).then_some(fault.span),
        label: fault.label,
        notes: fault.notes,
        panic: None,
    }
}
