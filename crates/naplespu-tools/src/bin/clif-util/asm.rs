//! `clif-util asm`: assembly to memory images.

use crate::disasm::parse_address;
use crate::{Outcome, Stop, input, output};
use clap::ValueEnum;
use naplespu_reader::{Diagnostic, Source};
use npu_mc::asm::{self, Fault, Image, Object, Placement};
use std::fmt::Write as _;
use std::path::PathBuf;

/// Assemble a file to an image that `sim` and `disasm` read
#[derive(clap::Args)]
pub struct Args {
    /// An assembly file; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Where to write the image to instead of standard output
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,

    /// What to write
    #[arg(long, value_enum, default_value_t = OutputFormat::Hex, value_name = "FORMAT")]
    format: OutputFormat,

    /// Address of `.text`; the other sections follow
    #[arg(long, value_name = "ADDRESS", default_value = "0", value_parser = parse_address)]
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

/// Formats of images that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// Hexadecimal words, `@` and an address in front of each piece
    Hex,
    /// Little-endian words as they stand in memory, from the first to the last byte, zeros in gaps
    Flat,
    /// `_mem.hex`: 64 bytes a line from address 0 on, last byte first
    Mem,
    /// `_mem_standalone.hex`: address and 64 bytes a line
    Standalone,
}

/// Bytes of the longest image that is written with its gaps filled.
const LONGEST: u64 = 256 << 20;

/// Bytes of a line of the two dump formats.
const BLOCK: usize = 64;

/// Words in a line of hexadecimal words.
const WORDS: usize = 8;

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
    let placement = Placement {
        base: args.base,
        sections: args.section.clone(),
    };
    let (object, image) = assemble(&source, &placement).map_err(|faults| {
        output::complain(&source.render(&faults));
        Stop::Told
    })?;
    if let Some(path) = &args.symbols {
        output::write(Some(path), asm::symbol_map(&object, &image).as_bytes())?;
    }
    if args.listing {
        output::print(asm::listing(&source.text, &object, &image).as_bytes())?;
    }
    if args.show_encoding {
        output::print(asm::show_encoding(&source.text, &object, &image).as_bytes())?;
    }
    // What is printed is instead of the image, unless that goes to a file.
    if args.output.is_some() || !(args.listing || args.show_encoding) {
        output::write(args.output.as_deref(), &encode(args.format, &image)?)?;
    }
    Ok(())
}

/// The text of a source. That it is not UTF-8 is told.
fn text(name: String, bytes: Vec<u8>) -> Result<Source, Stop> {
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Source::new(name, text)),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
            let source = Source::new(name, text);
            let fault = Diagnostic::new("the file is not UTF-8 text", at..at, "here");
            output::complain(&source.render(&[fault]));
            Err(Stop::Told)
        }
    }
}

fn assemble(source: &Source, placement: &Placement) -> Result<(Object, Image), Vec<Diagnostic>> {
    let told = |faults: Vec<Fault>| faults.into_iter().map(diagnostic).collect::<Vec<_>>();
    let object = asm::assemble(&source.text, &asm::Options::default()).map_err(told)?;
    let image = object.place(placement).map_err(told)?;
    Ok((object, image))
}

fn diagnostic(fault: Fault) -> Diagnostic {
    // Faults of placing have no place in the source.
    let nowhere = fault.label.is_empty() && fault.span.is_empty();
    Diagnostic {
        message: fault.message,
        span: (!nowhere).then_some(fault.span),
        label: fault.label,
        notes: fault.notes,
        panic: None,
    }
}

/// An image as a file.
fn encode(format: OutputFormat, image: &Image) -> Result<Vec<u8>, Stop> {
    match format {
        OutputFormat::Hex => Ok(hex_words(image).into_bytes()),
        OutputFormat::Flat => {
            let first = image.segments.first().map_or(0, |s| s.address);
            filled(image, u64::from(first))
        }
        OutputFormat::Mem => {
            let mut text = String::new();
            for block in filled(image, 0)?.chunks(BLOCK) {
                let mut line = [0; BLOCK];
                line[..block.len()].copy_from_slice(block);
                line.reverse();
                text.push_str(&hex(&line));
                text.push('\n');
            }
            Ok(text.into_bytes())
        }
        OutputFormat::Standalone => Ok(standalone(image).into_bytes()),
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// All bytes from an address to the end of the image, zeros in gaps.
fn filled(image: &Image, first: u64) -> Result<Vec<u8>, Stop> {
    let end = image
        .segments
        .last()
        .map_or(first, |s| u64::from(s.address) + s.bytes.len() as u64);
    let size = end - first;
    if size > LONGEST {
        return Err(Stop::Fault(format!(
            "the image would have {size} bytes with its gaps, more than {LONGEST}; `--format hex` leaves gaps out"
        )));
    }
    let mut bytes = vec![0; size as usize];
    for segment in &image.segments {
        let at = (u64::from(segment.address) - first) as usize;
        if let Some(place) = bytes.get_mut(at..at + segment.bytes.len()) {
            place.copy_from_slice(&segment.bytes);
        }
    }
    Ok(bytes)
}

/// Pieces of memory of a fixed size, each aligned to that size, by rising address; zeros where the image has nothing.
fn blocks(image: &Image, size: usize) -> Vec<(u32, Vec<u8>)> {
    let mut blocks: Vec<(u32, Vec<u8>)> = Vec::new();
    for segment in &image.segments {
        let mut address = segment.address;
        let mut rest = segment.bytes.as_slice();
        while !rest.is_empty() {
            let within = address as usize % size;
            let start = address - within as u32;
            let (here, behind) = rest.split_at(rest.len().min(size - within));
            if blocks.last().is_none_or(|(last, _)| *last != start) {
                blocks.push((start, vec![0; size]));
            }
            if let Some((_, bytes)) = blocks.last_mut() {
                bytes[within..within + here.len()].copy_from_slice(here);
            }
            address = address.wrapping_add(here.len() as u32);
            rest = behind;
        }
    }
    blocks
}

fn hex_words(image: &Image) -> String {
    let mut text = String::new();
    let mut next = None;
    let mut column = 0;
    for (address, bytes) in blocks(image, 4) {
        if next != Some(address) {
            let gap = if column == 0 { "" } else { "\n" };
            let _ = write!(text, "{gap}@{address:08x}");
            column = WORDS;
        }
        let gap = if column == WORDS { "\n" } else { " " };
        column = column % WORDS + 1;
        let word = bytes.iter().rev().fold(0u32, |word, &b| word << 8 | u32::from(b));
        let _ = write!(text, "{gap}{word:08x}");
        next = Some(address.wrapping_add(4));
    }
    if column > 0 {
        text.push('\n');
    }
    text
}

fn standalone(image: &Image) -> String {
    let mut text = String::new();
    for (address, bytes) in blocks(image, BLOCK) {
        let _ = writeln!(text, "{address:#010x},0x{}", hex(&bytes));
    }
    text
}
