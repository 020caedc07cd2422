//! `clif-util disasm`: instruction words to assembly.

use crate::{Outcome, Stop, input, output};
use clap::ValueEnum;
use npu_sim::image::{Format, Image, ImageError};
use std::fmt::Write as _;
use std::path::PathBuf;

/// Disassemble hexadecimal words, a flat binary or a memory image
#[derive(clap::Args)]
pub struct Args {
    /// A file; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// What the file is
    #[arg(long, value_enum, default_value_t = FormatArg::Auto, value_name = "FORMAT")]
    format: FormatArg,

    /// Address of the first word
    #[arg(long, value_name = "ADDRESS", default_value = "0", value_parser = parse_address)]
    base: u32,

    /// Only the assembly, without addresses and words
    #[arg(long)]
    plain: bool,
}

/// Formats of images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormatArg {
    /// Guess: text of one of the other formats, else a flat binary
    Auto,
    /// Little-endian words as they stand in memory
    Flat,
    /// Hexadecimal 32-bit words as text; `@` and an address moves on
    Hex,
    /// `_mem.hex`: 64 bytes a line, last byte first
    Mem,
    /// `_mem_standalone.hex`: address and 64 bytes a line
    Standalone,
}

impl FormatArg {
    /// The format, guessed if need be.
    pub fn of(self, bytes: &[u8]) -> Format {
        match self {
            FormatArg::Auto => Format::detect(bytes),
            FormatArg::Flat => Format::Flat,
            FormatArg::Hex => Format::HexWords,
            FormatArg::Mem => Format::Mem,
            FormatArg::Standalone => Format::MemStandalone,
        }
    }
}

/// An unsigned number of 32 bits, hexadecimal with `0x`.
pub fn parse_address(text: &str) -> Result<u32, String> {
    let digits = text.replace('_', "");
    let parsed = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) if hex.starts_with(['+', '-']) => None,
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => digits.parse().ok(),
    };
    parsed.ok_or_else(|| format!("`{text}` is no address from 0 to 0xffffffff"))
}

/// Reads an image. Its faults are told.
pub fn read_image(path: &std::path::Path, format: FormatArg, base: u32) -> Result<(Format, Image), Stop> {
    let (name, bytes) = input::read(path)?;
    let format = format.of(&bytes);
    let image = Image::parse(format, &bytes, base).map_err(|errors: Vec<ImageError>| {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let source = cranelift_naplespu::filetest::Source::new(name, text);
        let faults: Vec<_> = errors
            .into_iter()
            .map(|error| {
                let line = source.line_span(error.line as usize);
                let start = (line.start + (error.column as usize).saturating_sub(1)).min(line.end);
                let rest = &source.text.as_bytes()[start..line.end];
                let stop = rest.iter().position(|b| b.is_ascii_whitespace() || *b == b',');
                let end = start + stop.unwrap_or(rest.len());
                cranelift_naplespu::filetest::Diagnostic::new(error.message, start..end, "here")
            })
            .collect();
        output::complain(&source.render(&faults));
        Stop::Told
    })?;
    Ok((format, image))
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Outcome {
    let (format, image) = read_image(&args.file, args.format, args.base)?;
    let mut text = String::new();
    for segment in &image.segments {
        for (index, bytes) in segment.bytes.chunks(4).enumerate() {
            let address = segment.address.wrapping_add(4 * index as u32);
            let line = line(address, bytes, args.plain);
            // Writing to a string does not fail.
            let _ = writeln!(text, "{line}");
        }
    }
    output::print(text.as_bytes())?;
    let size: usize = image.segments.iter().map(|s| s.bytes.len()).sum();
    if format == Format::Flat && !size.is_multiple_of(4) {
        let name = args.file.display();
        return Err(Stop::Fault(format!(
            "{name}: {} bytes behind the last whole word: instructions are 4 bytes long",
            size % 4
        )));
    }
    Ok(())
}

fn line(address: u32, bytes: &[u8], plain: bool) -> String {
    let Ok(word) = <[u8; 4]>::try_from(bytes).map(u32::from_le_bytes) else {
        let list: Vec<String> = bytes.iter().map(|b| format!("{b:#04x}")).collect();
        return format!("{address:08x}:           .byte {}", list.join(", "));
    };
    let text = match npu_mc::decode(word) {
        Ok(inst) => inst.to_string(),
        Err(_) => format!(".long {word:#010x}"),
    };
    if plain {
        text
    } else {
        format!("{address:08x}: {word:08x}  {text}")
    }
}
