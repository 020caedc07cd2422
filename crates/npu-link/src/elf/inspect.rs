//! What an ELF file has, to look at: objects and executables alike.

use super::ElfError;
use super::read::{Header, header};
use object::LittleEndian;
use object::elf;
use object::read::elf::{FileHeader as _, SectionHeader as _, Sym as _};

/// What an ELF file has.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// The sections, without the null section.
    pub sections: Vec<SectionEntry>,
    /// The symbols, without the null symbol and those of sections and files, in the order of the file.
    pub symbols: Vec<SymbolEntry>,
}

/// A section of a file.
#[derive(Clone, Debug)]
pub struct SectionEntry {
    /// The name.
    pub name: String,
    /// Where it is in memory; 0 in an object file.
    pub address: u32,
    /// Bytes, whether the file stores them or not.
    pub size: u32,
    /// It takes memory.
    pub alloc: bool,
    /// The program may write it.
    pub write: bool,
    /// It holds instructions.
    pub exec: bool,
    /// The file does not store it.
    pub nobits: bool,
}

/// A symbol of a file.
#[derive(Clone, Debug)]
pub struct SymbolEntry {
    /// The name.
    pub name: String,
    /// An address in an executable, in an object file the distance from the start of the section.
    pub value: u32,
    /// Bytes.
    pub size: u32,
    /// The letter that `nm` has for it.
    pub letter: char,
}

/// Reads what an object file or an executable has.
///
/// # Errors
///
/// The file is not one of this machine, is cut off, or contradicts itself.
pub fn contents(bytes: &[u8]) -> Result<Contents, ElfError> {
    let header: &Header = header(bytes)?;
    let table = header.sections(LittleEndian, bytes)?;
    let mut contents = Contents::default();
    for (_, section) in table.enumerate().skip(1) {
        let flags = section.sh_flags(LittleEndian);
        contents.sections.push(SectionEntry {
            name: String::from_utf8_lossy(table.section_name(LittleEndian, section)?).into_owned(),
            address: section.sh_addr(LittleEndian),
            size: section.sh_size(LittleEndian),
            alloc: flags & elf::SHF_ALLOC != 0,
            write: flags & elf::SHF_WRITE != 0,
            exec: flags & elf::SHF_EXECINSTR != 0,
            nobits: section.sh_type(LittleEndian) == elf::SHT_NOBITS,
        });
    }
    let symbols = table.symbols(LittleEndian, bytes, elf::SHT_SYMTAB)?;
    for (index, symbol) in symbols.enumerate().skip(1) {
        if matches!(symbol.st_type(), elf::STT_SECTION | elf::STT_FILE) {
            continue;
        }
        let section = match symbols.symbol_section(LittleEndian, symbol, index)? {
            Some(section) => Some(contents.sections.get(section.0.wrapping_sub(1)).ok_or_else(|| {
                ElfError::new(format!(
                    "symbol {} is in section {}, which does not exist",
                    index.0, section.0
                ))
            })?),
            None => None,
        };
        contents.symbols.push(SymbolEntry {
            name: String::from_utf8_lossy(symbol.name(LittleEndian, symbols.strings())?).into_owned(),
            value: symbol.st_value(LittleEndian),
            size: symbol.st_size(LittleEndian),
            letter: letter(
                section,
                symbol.st_shndx(LittleEndian),
                symbol.st_bind(),
                symbol.st_type(),
            ),
        });
    }
    Ok(contents)
}

/// The letter of `nm`: small for what only its file sees.
fn letter(section: Option<&SectionEntry>, special: u16, binding: u8, kind: u8) -> char {
    let weak = binding == elf::STB_WEAK;
    let letter = match section {
        None if special == elf::SHN_UNDEF => {
            return match (weak, kind) {
                (true, elf::STT_OBJECT) => 'v',
                (true, _) => 'w',
                (false, _) => 'U',
            };
        }
        None if special == elf::SHN_COMMON => return 'C',
        _ if weak => return if kind == elf::STT_OBJECT { 'V' } else { 'W' },
        None => 'A',
        Some(section) if section.exec => 'T',
        Some(section) if !section.alloc => 'N',
        Some(section) if section.nobits => 'B',
        Some(section) if section.write => 'D',
        Some(_) => 'R',
    };
    if binding == elf::STB_LOCAL {
        letter.to_ascii_lowercase()
    } else {
        letter
    }
}
