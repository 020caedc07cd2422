//! `clif-util objdump`: prints object files, executables and archives in the format of binutils.

use crate::{Outcome, Stop, input, output};
use npu_link::Archive;
use npu_link::debug::ObjectLines;
use npu_link::elf::{Contents, ElfError, EntryBinding, EntryKind, EntryPlace, RelocationEntry, SectionEntry, contents};
use npu_mc::disasm::{branch_target, word_text};
use npu_mc::machine::INSTRUCTION_SIZE;
use npu_mc::reloc::Reloc;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Print the contents of object files, executables and archives
#[derive(clap::Args)]
#[command(disable_help_flag = true, group(clap::ArgGroup::new("what").required(true).multiple(true)))]
pub struct Args {
    /// Object files, executables and archives
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Instructions of the sections that contain code
    #[arg(short = 'd', long, group = "what")]
    disassemble: bool,

    /// All sections as instructions
    #[arg(short = 'D', long, group = "what")]
    disassemble_all: bool,

    /// Like -d, with source lines where they change
    #[arg(short = 'S', long, group = "what")]
    source: bool,

    /// Relocations; with -d, under the instructions
    #[arg(short = 'r', long, group = "what")]
    reloc: bool,

    /// Symbols
    #[arg(short = 't', long, group = "what")]
    syms: bool,

    /// Sections
    #[arg(short = 'h', long, alias = "headers", group = "what")]
    section_headers: bool,

    /// File header
    #[arg(short = 'f', long, group = "what")]
    file_headers: bool,

    /// All of -f -h -t -r
    #[arg(short = 'x', long, group = "what")]
    all_headers: bool,

    /// Only the sections with this name
    #[arg(short = 'j', long, value_name = "NAME")]
    section: Vec<String>,

    /// Print this help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Outcome {
    let mut text = String::new();
    for path in &args.files {
        let (name, bytes) = input::read(path)?;
        let fault = |error: ElfError| Stop::Fault(format!("{name}: {error}"));
        if !Archive::is_archive(&bytes) {
            file(args, &name, &bytes, &mut text).map_err(fault)?;
            continue;
        }
        // Writing to a string does not fail.
        let _ = writeln!(text, "In archive {name}:");
        for member in Archive::list(&bytes).map_err(fault)? {
            let dumped = file(args, &member.name, member.bytes, &mut text);
            dumped.map_err(|error| fault(member.error(error)))?;
        }
    }
    output::print(text.as_bytes())
}

/// Prints the requested parts of one file.
fn file(args: &Args, name: &str, bytes: &[u8], text: &mut String) -> Result<(), ElfError> {
    let contents = contents(bytes)?;
    let dump = Dump {
        args,
        contents: &contents,
        bytes,
        names: Names::new(&contents),
        lines: args.source.then(|| source_lines(&contents, bytes)).transpose()?,
    };
    let _ = writeln!(text, "\n{name}:     file format elf32-naplespu");
    if args.file_headers || args.all_headers {
        let kind = if contents.executable { "EXEC_P" } else { "HAS_RELOC" };
        let _ = writeln!(text, "architecture: naplespu, flags: {kind}, HAS_SYMS");
        let _ = writeln!(text, "start address {:#010x}", contents.entry);
    }
    text.push('\n');
    if args.section_headers || args.all_headers {
        dump.headers(text);
    }
    if args.syms || args.all_headers {
        dump.symbols(text);
    }
    let disassembles = args.disassemble || args.disassemble_all || args.source;
    if (args.reloc || args.all_headers) && !disassembles {
        dump.relocations(text);
    }
    if disassembles {
        dump.disassembly(text);
    }
    Ok(())
}

struct Dump<'a> {
    args: &'a Args,
    contents: &'a Contents,
    bytes: &'a [u8],
    names: Names<'a>,
    lines: Option<ObjectLines>,
}

impl<'a> Dump<'a> {
    /// Returns the selected sections with their numbers.
    fn sections(&self) -> impl Iterator<Item = (usize, &'a SectionEntry)> {
        let wanted = |section: &SectionEntry| {
            !section.table && (self.args.section.is_empty() || self.args.section.contains(&section.name))
        };
        let all = self.contents.sections.iter().enumerate();
        all.filter(move |(_, section)| wanted(section))
    }

    /// Returns the relocations of a section by increasing offset.
    fn relocations_of(&self, number: usize) -> Vec<&'a RelocationEntry> {
        let all = self.contents.relocations.iter();
        let mut own: Vec<_> = all.filter(|relocation| relocation.section == number).collect();
        own.sort_by_key(|relocation| relocation.offset);
        own
    }

    fn headers(&self, text: &mut String) {
        text.push_str("Sections:\nIdx Name          Size      VMA       LMA       File off  Algn\n");
        for (place, (number, section)) in self.sections().enumerate() {
            let (address, size, offset) = (section.address, section.size, section.offset);
            let align = section.align.max(1).trailing_zeros();
            let name = &section.name;
            let _ = writeln!(
                text,
                "{place:3} {name:13} {size:08x}  {address:08x}  {address:08x}  {offset:08x}  2**{align}"
            );
            let relocated = self.contents.relocations.iter().any(|own| own.section == number);
            let flags = [
                (!section.nobits, "CONTENTS"),
                (section.alloc, "ALLOC"),
                (section.alloc && !section.nobits, "LOAD"),
                (relocated, "RELOC"),
                (!section.write && !section.nobits, "READONLY"),
                (section.exec, "CODE"),
                (section.alloc && !section.exec && !section.nobits, "DATA"),
                (section.name.starts_with(".debug_"), "DEBUGGING"),
                // Addresses in the section count bytes. Binutils print this flag since version
                // 2.35.
                (section.name.starts_with(".debug_"), "OCTETS"),
            ];
            let flags: Vec<&str> = flags.iter().filter(|(is, _)| *is).map(|(_, flag)| *flag).collect();
            let _ = writeln!(text, "                  {}", flags.join(", "));
        }
    }

    fn symbols(&self, text: &mut String) {
        text.push_str("SYMBOL TABLE:\n");
        if self.contents.symbols.is_empty() {
            text.push_str("no symbols\n");
        }
        for symbol in &self.contents.symbols {
            let section = match symbol.place {
                EntryPlace::Undefined => "*UND*",
                EntryPlace::Absolute => "*ABS*",
                EntryPlace::Common => "*COM*",
                EntryPlace::Section(number) => self.contents.sections.get(number).map_or("?", |own| &own.name),
            };
            let scope = match (symbol.binding, symbol.place) {
                (EntryBinding::Local, _) => 'l',
                (EntryBinding::Global, place) if !matches!(place, EntryPlace::Undefined | EntryPlace::Common) => 'g',
                _ => ' ',
            };
            let weak = if symbol.binding == EntryBinding::Weak { 'w' } else { ' ' };
            let debug = match symbol.kind {
                EntryKind::Section | EntryKind::File => 'd',
                _ => ' ',
            };
            let kind = match symbol.kind {
                EntryKind::Function => 'F',
                EntryKind::Object => 'O',
                EntryKind::File => 'f',
                EntryKind::Section | EntryKind::None => ' ',
            };
            let (value, size, name) = (symbol.value, symbol.size, &symbol.name);
            let _ = writeln!(
                text,
                "{value:08x} {scope}{weak}   {debug}{kind} {section}\t{size:08x} {name}"
            );
        }
        text.push_str("\n\n");
    }

    fn relocations(&self, text: &mut String) {
        for (number, section) in self.sections() {
            let own = self.relocations_of(number);
            if own.is_empty() {
                continue;
            }
            let _ = writeln!(
                text,
                "RELOCATION RECORDS FOR [{}]:\nOFFSET   TYPE              VALUE",
                section.name
            );
            for relocation in own {
                let (offset, kind) = (relocation.offset, kind_name(relocation.kind));
                let _ = writeln!(text, "{offset:08x} {kind:16}  {}", self.value(relocation));
            }
            text.push_str("\n\n");
        }
    }

    /// Returns symbol and addend of a relocation as text.
    fn value(&self, relocation: &RelocationEntry) -> String {
        let symbol = relocation.symbol.and_then(|symbol| self.contents.symbols.get(symbol));
        let name = symbol.map_or("*ABS*", |symbol| &symbol.name);
        match relocation.addend {
            0 => name.to_owned(),
            addend if addend < 0 => format!("{name}-{:#x}", addend.unsigned_abs()),
            addend => format!("{name}+{addend:#x}"),
        }
    }

    fn disassembly(&self, text: &mut String) {
        for (number, section) in self.sections() {
            let shown = section.exec || self.args.disassemble_all;
            let bytes = self.contents.bytes(section, self.bytes);
            if shown && !bytes.is_empty() {
                let _ = writeln!(text, "\nDisassembly of section {}:", section.name);
                self.section(number, section, bytes, text);
            }
        }
    }

    fn section(&self, number: usize, section: &SectionEntry, bytes: &[u8], text: &mut String) {
        let relocations = self.relocations_of(number);
        let mut relocations = relocations.into_iter().peekable();
        let last = section.address.wrapping_add(section.size);
        let width = if last > 0xffff { 8 } else { 4 };
        let start = if self.contents.executable { section.address } else { 0 };
        let mut labelled = false;
        let mut sources = Sources::default();
        // The index of the word at which skipped zeros end.
        let mut zeros_end = 0;
        for (index, word) in bytes.chunks(INSTRUCTION_SIZE as usize).enumerate() {
            let address = start.wrapping_add(index as u32 * INSTRUCTION_SIZE);
            let names = self.names.at(number, address);
            if let Some(name) = names.last() {
                let _ = writeln!(text, "\n{address:08x} <{name}>:");
                labelled = true;
            } else if !labelled {
                let _ = writeln!(text, "\n{address:08x} <{}>:", section.name);
                labelled = true;
            }
            let next = address.wrapping_add(INSTRUCTION_SIZE);
            let within = |relocation: &&RelocationEntry| relocation.offset < next;
            let waiting = relocations.peek().is_some_and(within);
            // Long runs of zeros are skipped.
            if index < zeros_end {
                continue;
            }
            let is_zero = |index: &usize| {
                let at = start.wrapping_add(*index as u32 * INSTRUCTION_SIZE);
                bytes.get(4 * index..4 * index + 4) == Some(&[0; 4]) && self.names.at(number, at).is_empty()
            };
            if word == [0; 4] && !waiting {
                let limit = relocations.peek().map_or(usize::MAX, |next| {
                    (next.offset.wrapping_sub(start) / INSTRUCTION_SIZE) as usize
                });
                zeros_end = (index + 1..limit).take_while(is_zero).last().unwrap_or(index) + 1;
                if zeros_end - index >= LEAST_ZEROS {
                    text.push_str("\t...\n");
                    continue;
                }
                zeros_end = index;
            }
            if let Some(lines) = &self.lines {
                sources.show(lines, number, address, text);
            }
            let _ = match <[u8; 4]>::try_from(word).map(u32::from_le_bytes) {
                Ok(word) => {
                    // The target of a branch with a relocation is not known yet.
                    let to = if waiting { None } else { branch_target(address, word) };
                    let at = to.and_then(|to| self.names.place(number, to));
                    let at = at.map_or_else(String::new, |place| format!(" <{place}>"));
                    writeln!(text, "{address:width$x}:\t{word:08x} \t{}{at}", word_text(word))
                }
                Err(_) => {
                    let digits: Vec<String> = word.iter().map(|byte| format!("{byte:#04x}")).collect();
                    writeln!(text, "{address:width$x}:\t{:8} \t.byte {}", "", digits.join(", "))
                }
            };
            while let Some(relocation) = relocations.next_if(within) {
                if self.args.reloc || self.args.all_headers {
                    let (at, kind) = (relocation.offset, kind_name(relocation.kind));
                    let _ = writeln!(text, "\t\t\t{at:x}: {kind}\t{}", self.value(relocation));
                }
            }
        }
    }
}

/// Returns the source lines of an object or executable.
fn source_lines(contents: &Contents, file: &[u8]) -> Result<ObjectLines, ElfError> {
    let sections = contents.sections.iter().map(|section| {
        let is_placed = contents.executable || !section.alloc;
        let size = if is_placed { 0 } else { section.size };
        (section.name.as_str(), contents.bytes(section, file), size)
    });
    let sections: Vec<_> = sections.collect();
    let table = sections.iter().position(|section| section.0 == ".debug_line");
    let places = contents.relocations.iter().filter_map(|relocation| {
        let symbol = contents.symbols.get(relocation.symbol?)?;
        let EntryPlace::Section(section) = symbol.place else {
            return None;
        };
        let is_place = Some(relocation.section) == table && Reloc::from_number(relocation.kind) == Some(Reloc::Abs32);
        let value = symbol.value.wrapping_add_signed(relocation.addend);
        is_place.then_some((relocation.offset, section, value))
    });
    ObjectLines::new(&sections, places).map_err(|error| ElfError {
        offset: None,
        message: error.to_string(),
    })
}

/// The source files that were read, and the line that was printed last.
#[derive(Default)]
struct Sources {
    files: HashMap<String, Vec<String>>,
    last: Option<(String, u32)>,
}

impl Sources {
    /// Prints the source line of an address if it changed; only its number if the file is missing.
    fn show(&mut self, lines: &ObjectLines, section: usize, address: u32, text: &mut String) {
        let Some((file, line)) = lines.at(section, address) else {
            return;
        };
        if self
            .last
            .as_ref()
            .is_some_and(|(own, number)| (own.as_str(), *number) == (file, line))
        {
            return;
        }
        let known = self.files.entry(file.to_owned()).or_insert_with(|| {
            let read = std::fs::read(file).unwrap_or_default();
            String::from_utf8_lossy(&read).lines().map(str::to_owned).collect()
        });
        // Writing to a string does not fail.
        let _ = match known.get((line as usize).wrapping_sub(1)) {
            Some(source) => writeln!(text, "{source}"),
            None => writeln!(text, "{file}:{line}"),
        };
        self.last = Some((file.to_owned(), line));
    }
}

/// The minimum number of zero words that are skipped.
const LEAST_ZEROS: usize = 3;

fn kind_name(kind: u32) -> String {
    Reloc::from_number(kind).map_or_else(|| format!("*unknown {kind}*"), |kind| kind.name().to_owned())
}

/// Symbols by section and address.
struct Names<'a>(Vec<(usize, u32, &'a str)>);

impl<'a> Names<'a> {
    fn new(contents: &'a Contents) -> Self {
        let named = contents.named_symbols().filter_map(|symbol| match symbol.place {
            EntryPlace::Section(section) if !symbol.name.is_empty() => {
                // Of several names for an address, functions and visible symbols take precedence.
                let rank = (
                    symbol.kind == EntryKind::Function,
                    symbol.binding != EntryBinding::Local,
                );
                Some((section, symbol.value, rank, symbol.name.as_str()))
            }
            _ => None,
        });
        let mut list: Vec<_> = named.collect();
        list.sort();
        Self(
            list.into_iter()
                .map(|(section, value, _, name)| (section, value, name))
                .collect(),
        )
    }

    /// Returns the names of an address; the last one is the best.
    fn at(&self, section: usize, address: u32) -> Vec<&'a str> {
        let first = self.0.partition_point(|&(s, a, _)| (s, a) < (section, address));
        let own = self.0.iter().skip(first);
        own.take_while(|&&(s, a, _)| (s, a) == (section, address))
            .map(|&(_, _, name)| name)
            .collect()
    }

    /// Returns an address as the last name before it and the distance.
    fn place(&self, section: usize, address: u32) -> Option<String> {
        let after = self.0.partition_point(|&(s, a, _)| (s, a) <= (section, address));
        let &(_, start, name) = self.0.get(after.checked_sub(1)?).filter(|own| own.0 == section)?;
        Some(match address - start {
            0 => name.to_owned(),
            distance => format!("{name}+{distance:#x}"),
        })
    }
}
