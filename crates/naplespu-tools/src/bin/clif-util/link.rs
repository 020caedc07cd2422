//! `clif-util link`: links objects and archives to a program.

use crate::disasm::parse_address;
use crate::{Outcome, Stop, input, output};
use naplespu_object::RuntimeLibrary;
use naplespu_reader::Config;
use npu_link::elf::{self, write_executable};
use npu_link::{Archive, Input, Library, LinkOptions, MemoryLayout, Program, ProgramError, link_program};
use std::fmt::Write as _;
use std::path::PathBuf;

/// Link object files and archives to an executable ELF file
#[derive(clap::Args)]
pub struct Args {
    /// Object files, and archives, whose members are linked if they are needed
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Output file
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,

    /// Memory layout: `default` (the testbench), `alveo` (the board), or a file with `code`,
    /// `data`, `stacks` and `stack_size`
    #[arg(long, value_name = "NAME|FILE", default_value = "default")]
    layout: String,

    /// The function that runs on every thread
    #[arg(long, value_name = "SYMBOL", default_value = "main")]
    entry: String,

    /// Remove sections without references
    #[arg(long)]
    gc_sections: bool,

    /// Write the sections, their contents and the symbols to a file
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,

    /// Threads that run the program, of all tiles together: all of them wait for constructors and
    /// the scratchpad's contents
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=128))]
    threads: u32,

    /// Give each of the eight threads of a core a copy of all instructions, so that no thread hangs
    /// by the erratum `repeated_instruction_line_miss`
    #[arg(long, conflicts_with = "nostdlib")]
    text_per_thread: bool,

    /// Put the stacks of each core into the memory of its tile; by default, one tile has all
    #[arg(long, conflicts_with = "nostdlib")]
    stacks_in_tiles: bool,

    /// Link neither the start-up code nor the runtime
    #[arg(long)]
    nostdlib: bool,

    /// The settings of the runtime
    #[command(flatten)]
    settings: input::SettingArgs,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Outcome {
    let layout = layout(&args.layout)?;
    let mut inputs = Vec::new();
    let mut archives = Vec::new();
    let mut unread = false;
    for path in &args.files {
        let (name, bytes) = input::read(path)?;
        let read = if Archive::is_archive(&bytes) {
            Archive::read(&name, &bytes).map(|archive| archives.push(archive))
        } else {
            elf::object(&bytes).map(|read| {
                inputs.push(Input {
                    name: name.clone(),
                    object: read.object,
                });
            })
        };
        if let Err(error) = read {
            let hint = match path.extension().and_then(|ending| ending.to_str()) {
                Some("clif") => "; `compile --emit=obj` makes an object file of it",
                Some("s") => "; `asm --emit=obj` makes an object file of it",
                Some("wasm" | "wat") => "; `wasm --emit=obj` makes an object file of it",
                _ => "",
            };
            output::report(&format!("error: {name}: {error}{hint}\n"));
            unread = true;
        }
    }
    if unread {
        return Err(Stop::Reported);
    }
    let options = LinkOptions {
        layout,
        entry: args.entry.clone(),
        startup: !args.nostdlib,
        gc_sections: args.gc_sections,
        threads: args.threads,
        text_per_thread: args.text_per_thread,
        stacks_in_tiles: args.stacks_in_tiles,
    };
    let mut config = Config::new();
    for setting in &args.settings.list() {
        config.set(setting).map_err(|error| Stop::Usage(error.to_string()))?;
    }
    let isa = config.isa().map_err(|error| Stop::Fault(error.to_string()))?;
    let mut runtime = RuntimeLibrary::new(&isa);
    let mut libraries: Vec<&mut dyn Library> = archives.iter_mut().map(|archive| archive as &mut dyn Library).collect();
    if !args.nostdlib {
        libraries.push(&mut runtime);
    }
    let program = link_program(inputs, &mut libraries, &options).map_err(|errors| {
        for error in errors {
            let hint = match &error {
                ProgramError::Undefined { symbol, .. } if *symbol == args.entry => entry_hint(args.nostdlib),
                _ => "",
            };
            output::report(&format!("error: {error}{hint}\n"));
        }
        Stop::Reported
    })?;
    let bytes = write_executable(&program).map_err(|error| Stop::Fault(error.to_string()))?;
    output::write_file(args.output.as_deref(), &bytes)?;
    match &args.map {
        Some(path) => output::write(Some(path), map(&program).as_bytes()),
        None => Ok(()),
    }
}

/// Returns a hint for a program without its entry function.
fn entry_hint(nostdlib: bool) -> &'static str {
    if nostdlib {
        "; the program starts there; `--entry` selects another function"
    } else {
        "; the start-up code calls it: `--entry` selects another function, `--nostdlib` leaves out the start-up code"
    }
}

/// Returns the layout with the name, or of the file.
fn layout(name: &str) -> Result<MemoryLayout, Stop> {
    match name {
        "default" => return Ok(MemoryLayout::DEFAULT),
        "alveo" => return Ok(MemoryLayout::ALVEO),
        _ => {}
    }
    let (name, bytes) = input::read(name.as_ref()).map_err(|stop| match stop {
        Stop::Fault(text) => Stop::Fault(format!("--layout names neither `default`, `alveo` nor a file: {text}")),
        other => other,
    })?;
    let fault = |what: String| Stop::Fault(format!("{name}: {what}"));
    let text = String::from_utf8(bytes).map_err(|_| fault("not UTF-8 text".to_owned()))?;
    let table: toml::Table = text
        .parse()
        .map_err(|error: toml::de::Error| fault(error.to_string()))?;
    let mut layout = MemoryLayout::DEFAULT;
    for (key, value) in &table {
        let number = match value {
            toml::Value::Integer(number) => u32::try_from(*number).map_err(|error| error.to_string()),
            toml::Value::String(text) => parse_address(text),
            _ => Err("not a number".to_owned()),
        };
        let number = number.map_err(|error| fault(format!("`{key}`: {error}")))?;
        match key.as_str() {
            "code" => layout.code = number,
            "data" => layout.data = number,
            "stacks" => layout.stacks = number,
            "stack_size" => layout.stack_size = number,
            _ => {
                let known = "the keys are `code`, `data`, `stacks` and `stack_size`";
                return Err(fault(format!("`{key}` is not part of a layout; {known}")));
            }
        }
    }
    let (line, word) = (npu_mc::machine::CACHE_LINE, npu_mc::machine::INSTRUCTION_SIZE);
    if !layout.code.is_multiple_of(word)
        || !layout.stacks.is_multiple_of(line)
        || !layout.stack_size.is_multiple_of(line)
    {
        return Err(fault(format!(
            "`code` must be a multiple of {word}, `stacks` and `stack_size` of {line}"
        )));
    }
    Ok(layout)
}

/// Returns the memory map as text.
fn map(program: &Program) -> String {
    let mut text = String::new();
    for section in program
        .sections
        .iter()
        .filter(|section| section.alloc && section.size > 0)
    {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{:08x} {:8x} {}", section.address, section.size, section.name);
        for part in &section.parts {
            let input = program.inputs.get(part.input).map_or("", String::as_str);
            let _ = writeln!(text, "{:08x} {:8x}     {input}", part.address, part.size);
        }
    }
    let mut symbols: Vec<_> = program.symbols.iter().collect();
    symbols.sort_by(|a, b| (a.address, &a.name).cmp(&(b.address, &b.name)));
    text.push('\n');
    for symbol in symbols {
        let _ = writeln!(text, "{:08x} {:8x} {}", symbol.address, symbol.size, symbol.name);
    }
    text
}
