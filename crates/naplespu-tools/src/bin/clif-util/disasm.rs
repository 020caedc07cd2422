//! `clif-util disasm`: disassembles instruction words and compiled functions.

use crate::{Outcome, Stop, input, output};
use clap::ValueEnum;
use naplespu_reader::{Diagnostic, Source};
use naplespu_tools::assembly::add_function;
use npu_link::elf::EntryPlace;
use npu_link::{Format, Image, ImageError, elf};
use npu_mc::asm::symbol_text;
use npu_mc::disasm::{Input, Item, Row, Symbol, disassemble, source};
use npu_mc::machine::INSTRUCTION_SIZE;
use std::collections::HashSet;
use std::path::PathBuf;

/// Disassemble hexadecimal words, a flat binary, a memory image, or the code of a CLIF file
#[derive(clap::Args)]
pub struct Args {
    /// A file; `-` is standard input; a file named `.clif` is compiled first
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The format of the file
    #[arg(long, value_enum, default_value_t = FormatArg::Auto, value_name = "FORMAT")]
    format: FormatArg,

    /// Address of the first word of a flat binary, of hexadecimal words or of the code of a CLIF
    /// file
    #[arg(long, value_name = "ADDRESS", default_value = "0", value_parser = parse_base)]
    base: u32,

    /// File of symbols, one on a line: a hexadecimal address, an optional letter for its kind (`T`
    /// code, `D`, `B` or `R` data) and the name
    #[arg(long, value_name = "FILE")]
    symbols: Option<PathBuf>,

    /// Print only the assembly, which `asm` assembles to the same bytes
    #[arg(long)]
    plain: bool,
}

/// The formats of images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormatArg {
    /// Detect: an ELF file, hexadecimal text of one of the other formats, else a flat binary
    Auto,
    /// Little-endian words in the order of memory
    #[value(alias = "binary")]
    Flat,
    /// Hexadecimal 32-bit words as text; `@` sets the address
    Hex,
    /// Bytes in hexadecimal, as Verilog's `$readmemh` reads them; `@` sets the address
    Verilog,
    /// `_mem.hex`: lines of 64 bytes, last byte first
    Mem,
    /// `_mem_standalone.hex`: lines of an address and 64 bytes
    Standalone,
    /// Intel HEX
    Ihex,
    /// An executable ELF file
    Elf,
}

impl FormatArg {
    /// Returns the format, detected if necessary, or `None` for ELF files.
    fn of(self, bytes: &[u8]) -> Option<Format> {
        Some(match self {
            FormatArg::Auto if elf::is_elf(bytes) => return None,
            FormatArg::Elf => return None,
            FormatArg::Auto => Format::detect(bytes),
            FormatArg::Flat => Format::Flat,
            FormatArg::Hex => Format::HexWords,
            FormatArg::Verilog => Format::Verilog,
            FormatArg::Mem => Format::Mem,
            FormatArg::Standalone => Format::MemStandalone,
            FormatArg::Ihex => Format::IntelHex,
        })
    }
}

/// Parses an unsigned number of 32 bits, hexadecimal with `0x`.
pub fn parse_address(text: &str) -> Result<u32, String> {
    let digits = text.replace('_', "");
    let parsed = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) if hex.starts_with(['+', '-']) => None,
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => digits.parse().ok(),
    };
    parsed.ok_or_else(|| format!("`{text}` is not an address from 0 to 0xffffffff"))
}

/// Parses an address of an instruction.
pub fn parse_base(text: &str) -> Result<u32, String> {
    let address = parse_address(text)?;
    if !address.is_multiple_of(INSTRUCTION_SIZE) {
        return Err(format!(
            "addresses of instructions are multiples of {INSTRUCTION_SIZE}, and `{text}` is not"
        ));
    }
    Ok(address)
}

/// A loaded program.
pub struct Loaded {
    /// The name for messages.
    pub name: String,
    /// The contents of the file.
    pub bytes: Vec<u8>,
    /// Its format, or `None` for an ELF file.
    pub format: Option<Format>,
    /// The memory contents.
    pub image: Image,
}

/// Reads an image. Reports its errors.
pub fn read_image(path: &std::path::Path, format: FormatArg, base: u32) -> Result<Loaded, Stop> {
    let (name, bytes) = input::read(path)?;
    let guessed = format == FormatArg::Auto;
    let Some(format) = format.of(&bytes) else {
        let image = elf::executable(&bytes);
        let image = image.map_err(|error| Stop::Fault(format!("{name}: {error}")))?;
        return Ok(Loaded {
            name,
            bytes,
            format: None,
            image,
        });
    };
    if guessed
        && format == Format::Flat
        && !bytes.is_empty()
        && let Some(kind) = npu_link::file_kind(&bytes)
    {
        let advice = "pass its format if it is a flat binary";
        // For text that starts like an image, the first error is more helpful than the kind of the
        // file.
        if kind == "text"
            && let Err(mut errors) = Image::parse(Format::HexWords, &bytes, base)
            && starts_as_words(&bytes, &errors)
        {
            errors.truncate(1);
            report_image(&name, &bytes, errors, Some(format!("this is not an image; {advice}")));
            return Err(Stop::Reported);
        }
        let advice = match std::path::Path::new(&name)
            .extension()
            .and_then(|ending| ending.to_str())
        {
            Some("clif") => "`run` executes CLIF, and `disasm` and `compile` show its code",
            Some("s") => "`asm` makes an image of it",
            Some("wasm" | "wat") => "`wasm` runs it",
            Some("o" | "a") => "`link` makes a program of it",
            _ => advice,
        };
        return Err(Stop::Fault(format!(
            "{name}: not an image, it seems to be {kind}; {advice}"
        )));
    }
    let image = Image::parse(format, &bytes, base).map_err(|errors| {
        report_image(&name, &bytes, errors, None);
        Stop::Reported
    })?;
    Ok(Loaded {
        name,
        bytes,
        format: Some(format),
        image,
    })
}

/// Returns whether a text has hexadecimal words before its first error.
fn starts_as_words(bytes: &[u8], errors: &[ImageError]) -> bool {
    let Some(first) = errors.first() else { return false };
    let lines = bytes.split(|&byte| byte == b'\n').take(first.line as usize);
    let mut lines: Vec<&[u8]> = lines.collect();
    if let Some(last) = lines.last_mut() {
        *last = &last[..last.len().min((first.column as usize).saturating_sub(1))];
    }
    let before = Image::parse(Format::HexWords, &lines.join(&b'\n'), 0);
    before.is_ok_and(|image| !image.segments.is_empty())
}

/// Reports the errors of an image, each with its source location.
fn report_image(name: &str, bytes: &[u8], errors: Vec<ImageError>, note: Option<String>) {
    let source = Source::new(name.to_owned(), String::from_utf8_lossy(bytes).into_owned());
    let faults: Vec<_> = errors
        .into_iter()
        .map(|error| {
            let line = source.line_span(error.line as usize);
            let start = (line.start + (error.column as usize).saturating_sub(1)).min(line.end);
            let rest = &source.text.as_bytes()[start..line.end];
            let stop = rest.iter().position(|b| b.is_ascii_whitespace() || *b == b',');
            let end = start + stop.unwrap_or(rest.len());
            let fault = Diagnostic::new(error.message, start..end, "here");
            match &note {
                Some(note) => fault.note(note.clone()),
                None => fault,
            }
        })
        .collect();
    output::report(&source.render(&faults));
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Outcome {
    let is_clif = args.file.extension().is_some_and(|e| e == "clif");
    let (mut odd, mut whole) = (0, 0);
    let mut input = if is_clif {
        compiled(args)?
    } else {
        let loaded = read_image(&args.file, args.format, args.base)?;
        let size: usize = loaded.image.segments.iter().map(|s| s.bytes.len()).sum();
        if loaded.format == Some(Format::Flat) {
            odd = size % INSTRUCTION_SIZE as usize;
            whole = size - odd;
        }
        let symbols = match loaded.format {
            None => elf_symbols(&loaded)?,
            Some(_) => Vec::new(),
        };
        Input {
            segments: loaded
                .image
                .segments
                .into_iter()
                .map(|s| (s.address, s.bytes))
                .collect(),
            symbols,
            ..Input::default()
        }
    };
    if let Some(path) = &args.symbols {
        input.symbols.extend(read_symbols(path)?);
    }
    let rows = disassemble(&input);
    let text = if args.plain {
        source(&rows)
    } else {
        rows.iter().map(line).collect()
    };
    output::print(text.as_bytes())?;
    if odd != 0 {
        let name = args.file.display();
        let ending = if odd == 1 { "" } else { "s" };
        return Err(Stop::Fault(format!(
            "{name}: {odd} byte{ending} after the last whole word, from offset {whole:#x} on: instructions are {INSTRUCTION_SIZE} bytes long"
        )));
    }
    Ok(())
}

/// Returns the symbols of an executable. Of several symbols with one name, only the first is kept,
/// because a source can define a name only once.
fn elf_symbols(file: &Loaded) -> Result<Vec<Symbol>, Stop> {
    let contents = elf::contents(&file.bytes).map_err(|error| Stop::Fault(format!("{}: {error}", file.name)))?;
    let mut seen = HashSet::new();
    let symbols = contents.named_symbols().filter_map(|symbol| {
        let EntryPlace::Section(section) = symbol.place else {
            return None;
        };
        let section = contents.sections.get(section).filter(|section| section.alloc)?;
        let is_name = !symbol.name.is_empty() && !symbol.name.contains(char::is_control);
        (is_name && seen.insert(symbol.name.clone())).then(|| Symbol {
            name: symbol.name.clone(),
            address: symbol.value,
            data: !section.exec,
        })
    });
    Ok(symbols.collect())
}

fn line(row: &Row) -> String {
    let address = row.address;
    match &row.item {
        Item::Gap => String::new(),
        Item::Label(name) => format!("{}:\n", symbol_text(name)),
        Item::Bytes(bytes, text) => match <[u8; 4]>::try_from(bytes.as_slice()).map(u32::from_le_bytes) {
            Ok(word) => format!("{address:08x}: {word:08x}  {text}\n"),
            Err(_) => format!("{address:08x}:           {text}\n"),
        },
    }
}

/// Returns the functions of a CLIF file in order, with their names and the references between them.
fn compiled(args: &Args) -> Result<Input, Stop> {
    let input::Loaded { file, isa, .. } = input::load(&args.file, &[])?;
    let functions = input::inlined(&file, &isa, |case| case.func.clone())?;
    let codes = input::compile_all(&file, &functions, |worker, _, func| worker.compile(&isa, func))?;
    let mut input = Input::default();
    let mut address = args.base;
    for (function, code) in functions.iter().zip(codes) {
        add_function(&mut input, function, &code, address);
        address = address.wrapping_add(code.bytes.len() as u32);
    }
    Ok(input)
}

/// Reads a file of symbols. Reports its errors.
fn read_symbols(path: &std::path::Path) -> Result<Vec<Symbol>, Stop> {
    let (name, bytes) = input::read(path)?;
    let source = Source::new(name, String::from_utf8_lossy(&bytes).into_owned());
    let mut symbols = Vec::new();
    let mut faults = Vec::new();
    let mut start = 0;
    for line in source.text.split_inclusive('\n') {
        let text = line.trim();
        let span = start + (line.len() - line.trim_start().len())..start + line.trim_end().len();
        start += line.len();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        match symbol_line(text) {
            Ok(symbol) => symbols.extend(symbol),
            Err(why) => faults.push(
                Diagnostic::new(why, span, "expected `ADDRESS LETTER NAME`").note("for example `00000400 T main`"),
            ),
        }
    }
    if faults.is_empty() {
        return Ok(symbols);
    }
    output::report(&source.render(&faults));
    Err(Stop::Reported)
}

/// Parses a line of a file of symbols. Returns `None` for a number that is not an address.
fn symbol_line(text: &str) -> Result<Option<Symbol>, String> {
    let (address, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let digits = address.strip_prefix("0x").unwrap_or(address);
    let parsed = match digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        true => u32::from_str_radix(digits, 16).ok(),
        false => None,
    };
    let address = parsed.ok_or_else(|| format!("`{address}` is not a hexadecimal address of 32 bits"))?;
    let rest = rest.trim_start();
    let (letter, name) = match rest.split_once(char::is_whitespace) {
        Some((letter, name)) if letter.len() == 1 => (letter, name.trim_start()),
        _ => ("T", rest),
    };
    let name = match name.strip_prefix('"').and_then(|n| n.strip_suffix('"')) {
        Some(quoted) => quoted.replace("\\\"", "\"").replace("\\\\", "\\"),
        None => name.to_owned(),
    };
    if name.is_empty() || name.contains(char::is_control) {
        return Err("a symbol has no name".to_owned());
    }
    let data = match letter.to_ascii_uppercase().as_str() {
        "T" | "W" => false,
        "D" | "B" | "R" => true,
        "A" | "U" => return Ok(None),
        _ => {
            return Err(format!(
                "`{letter}` says nothing of a symbol: `T` is code, `D`, `B` and `R` are data"
            ));
        }
    };
    Ok(Some(Symbol { name, address, data }))
}
