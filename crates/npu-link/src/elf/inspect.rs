//! The contents of an ELF file, object or executable, for inspection.

use super::read::{Header, header};
use super::{ElfError, LARGEST};
use object::LittleEndian;
use object::elf;
use object::read::elf::{FileHeader as _, Rela as _, SectionHeader as _, Sym as _};
use std::ops::Range;

/// The contents of an ELF file.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// Whether it is an executable. The symbols of an executable are addresses.
    pub executable: bool,
    /// The entry point.
    pub entry: u32,
    /// The sections, without the null section.
    pub sections: Vec<SectionEntry>,
    /// The symbols in the order of the file, without the null symbol.
    pub symbols: Vec<SymbolEntry>,
    /// The relocations by section, in the order of the file.
    pub relocations: Vec<RelocationEntry>,
}

impl Contents {
    /// Returns the symbols except those of sections and files.
    pub fn named_symbols(&self) -> impl Iterator<Item = &SymbolEntry> {
        let named = |symbol: &&SymbolEntry| !matches!(symbol.kind, EntryKind::Section | EntryKind::File);
        self.symbols.iter().filter(named)
    }

    /// Returns the stored bytes of a section in its file; empty if they are not in `file`.
    pub fn bytes<'a>(&self, section: &SectionEntry, file: &'a [u8]) -> &'a [u8] {
        file.get(section.file.clone()).unwrap_or_default()
    }
}

/// A section of a file.
#[derive(Clone, Debug)]
pub struct SectionEntry {
    /// The name.
    pub name: String,
    /// The address in memory; 0 in an object file.
    pub address: u32,
    /// Size in bytes, stored or not.
    pub size: u32,
    /// The range of the stored bytes in the file; empty if there are none.
    pub file: Range<usize>,
    /// The offset in the file, even if no bytes are stored.
    pub offset: u32,
    /// Alignment in bytes.
    pub align: u32,
    /// Whether it occupies memory.
    pub alloc: bool,
    /// Whether the program may write it.
    pub write: bool,
    /// Whether it contains instructions.
    pub exec: bool,
    /// Whether the file does not store its contents.
    pub nobits: bool,
    /// Whether it describes the file, not the program: symbols, names and relocations.
    pub table: bool,
}

/// The kind of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// Unspecified.
    None,
    /// A function.
    Function,
    /// Data.
    Object,
    /// A section.
    Section,
    /// A source file.
    File,
}

/// The location of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryPlace {
    /// Undefined: defined elsewhere.
    Undefined,
    /// A number.
    Absolute,
    /// A common symbol: several files may define it, and the largest definition is used.
    Common,
    /// In the section with this number in [`Contents::sections`].
    Section(usize),
}

/// The visibility of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryBinding {
    /// Visible in its own file.
    Local,
    /// Visible in all files.
    Global,
    /// Visible in all files, but a global definition replaces it.
    Weak,
}

/// A symbol of a file.
#[derive(Clone, Debug)]
pub struct SymbolEntry {
    /// The name; for the symbol of a section, the name of the section.
    pub name: String,
    /// An address in an executable; an offset in the section in an object file.
    pub value: u32,
    /// Size in bytes.
    pub size: u32,
    /// The kind.
    pub kind: EntryKind,
    /// The location.
    pub place: EntryPlace,
    /// The visibility.
    pub binding: EntryBinding,
    /// The letter that `nm` prints for it.
    pub letter: char,
}

/// A relocation of a file.
#[derive(Clone, Debug)]
pub struct RelocationEntry {
    /// The index of the section in [`Contents::sections`].
    pub section: usize,
    /// The offset in the section; an address in an executable.
    pub offset: u32,
    /// The number of the relocation type.
    pub kind: u32,
    /// The index of the symbol in [`Contents::symbols`]; `None` for the null symbol.
    pub symbol: Option<usize>,
    /// The number that is added to the value of the symbol.
    pub addend: i32,
}

/// Reads the contents of an object file or an executable.
///
/// # Errors
///
/// Fails if the file is not for this machine, is truncated, or is inconsistent.
pub fn contents(bytes: &[u8]) -> Result<Contents, ElfError> {
    let header: &Header = header(bytes)?;
    let table = header.sections(LittleEndian, bytes)?;
    let mut contents = Contents {
        executable: header.e_type(LittleEndian) == elf::ET_EXEC,
        entry: header.e_entry(LittleEndian),
        ..Contents::default()
    };
    // Symbols may share one long name, so the total length is limited.
    let mut names = 0;
    let mut text = |name: &[u8]| {
        names += name.len() as u64;
        match names > LARGEST {
            true => Err(ElfError::new(format!("the names have more than {LARGEST} bytes"))),
            false => Ok(String::from_utf8_lossy(name).into_owned()),
        }
    };
    for (_, section) in table.enumerate().skip(1) {
        let flags = section.sh_flags(LittleEndian);
        let kind = section.sh_type(LittleEndian);
        let offset = section.sh_offset(LittleEndian);
        let size = section.sh_size(LittleEndian);
        let nobits = kind == elf::SHT_NOBITS;
        let name = text(table.section_name(LittleEndian, section)?)?;
        let file = match section.file_range(LittleEndian) {
            Some((start, length)) => start as usize..start as usize + length as usize,
            None => 0..0,
        };
        if file.end > bytes.len() {
            return Err(ElfError::at(
                offset.into(),
                format!("the section `{name}` goes past the end of the file"),
            ));
        }
        contents.sections.push(SectionEntry {
            name,
            address: section.sh_addr(LittleEndian),
            size,
            file,
            offset,
            align: section.sh_addralign(LittleEndian),
            alloc: flags & elf::SHF_ALLOC != 0,
            write: flags & elf::SHF_WRITE != 0,
            exec: flags & elf::SHF_EXECINSTR != 0,
            nobits,
            table: matches!(
                kind,
                elf::SHT_SYMTAB
                    | elf::SHT_STRTAB
                    | elf::SHT_RELA
                    | elf::SHT_REL
                    | elf::SHT_SYMTAB_SHNDX
                    | elf::SHT_NULL
            ),
        });
    }
    let symbols = table.symbols(LittleEndian, bytes, elf::SHT_SYMTAB)?;
    for (index, symbol) in symbols.enumerate().skip(1) {
        let place = match symbols.symbol_section(LittleEndian, symbol, index)? {
            Some(section) => EntryPlace::Section(section.0.wrapping_sub(1)),
            None => match symbol.st_shndx(LittleEndian) {
                elf::SHN_UNDEF => EntryPlace::Undefined,
                elf::SHN_COMMON => EntryPlace::Common,
                _ => EntryPlace::Absolute,
            },
        };
        let section = match place {
            EntryPlace::Section(number) => Some(contents.sections.get(number).ok_or_else(|| {
                ElfError::new(format!(
                    "symbol {} is in section {}, which does not exist",
                    index.0,
                    number.wrapping_add(1)
                ))
            })?),
            _ => None,
        };
        let kind = match symbol.st_type() {
            elf::STT_FUNC => EntryKind::Function,
            elf::STT_OBJECT | elf::STT_COMMON => EntryKind::Object,
            elf::STT_SECTION => EntryKind::Section,
            elf::STT_FILE => EntryKind::File,
            _ => EntryKind::None,
        };
        let binding = match symbol.st_bind() {
            elf::STB_LOCAL => EntryBinding::Local,
            elf::STB_WEAK => EntryBinding::Weak,
            _ => EntryBinding::Global,
        };
        let name = match (kind, section) {
            (EntryKind::Section, Some(section)) => text(section.name.as_bytes())?,
            _ => text(symbol.name(LittleEndian, symbols.strings())?)?,
        };
        contents.symbols.push(SymbolEntry {
            name,
            value: symbol.st_value(LittleEndian),
            size: symbol.st_size(LittleEndian),
            letter: letter(section, place, binding, kind),
            kind,
            place,
            binding,
        });
    }
    let mut total = 0;
    for (_, section) in table.enumerate() {
        let Some((list, _)) = section.rela(LittleEndian, bytes)? else {
            continue;
        };
        let start = u64::from(section.sh_offset(LittleEndian));
        // Relocation tables of several sections must not overlap.
        total += size_of_val(list);
        if total > bytes.len() {
            return Err(ElfError::at(start, "the relocations overlap"));
        }
        let to = (section.sh_info(LittleEndian) as usize).wrapping_sub(1);
        if to >= contents.sections.len() {
            return Err(ElfError::at(start, "relocations of a section that does not exist"));
        }
        for (number, rela) in list.iter().enumerate() {
            let at = start + 12 * number as u64;
            let symbol = (rela.r_sym(LittleEndian) as usize).checked_sub(1);
            if let Some(symbol) = symbol
                && symbol >= contents.symbols.len()
            {
                return Err(ElfError::at(at, format!("there is no symbol {}", symbol + 1)));
            }
            contents.relocations.push(RelocationEntry {
                section: to,
                offset: rela.r_offset(LittleEndian),
                kind: rela.r_type(LittleEndian),
                symbol,
                addend: rela.r_addend(LittleEndian),
            });
        }
    }
    Ok(contents)
}

/// Returns the letter of `nm`: lower case for a local symbol.
fn letter(section: Option<&SectionEntry>, place: EntryPlace, binding: EntryBinding, kind: EntryKind) -> char {
    let weak = binding == EntryBinding::Weak;
    let letter = match section {
        None if place == EntryPlace::Undefined => {
            return match (weak, kind) {
                (true, EntryKind::Object) => 'v',
                (true, _) => 'w',
                (false, _) => 'U',
            };
        }
        None if place == EntryPlace::Common => return 'C',
        _ if weak => return if kind == EntryKind::Object { 'V' } else { 'W' },
        None => 'A',
        Some(section) if section.exec => 'T',
        Some(section) if !section.alloc => 'N',
        Some(section) if section.nobits => 'B',
        Some(section) if section.write => 'D',
        Some(_) => 'R',
    };
    if binding == EntryBinding::Local {
        letter.to_ascii_lowercase()
    } else {
        letter
    }
}
