//! Reads ELF files as objects and images.

use super::{ElfError, LARGEST, MACHINE};
use crate::image::{Image, Segment};
use crate::layout::MAX_ALIGN;
use npu_mc::asm::{
    Binding, Object, Piece, Relocation, Section, SectionId, Symbol, SymbolId, SymbolKind, SymbolValue, Target,
};
use npu_mc::reloc::Reloc;
use object::elf::{self, FileHeader32, SectionHeader32, Sym32};
use object::read::elf::{FileHeader as _, ProgramHeader as _, Rela as _, SectionHeader as _, SectionTable, Sym as _};
use object::{LittleEndian, SectionIndex, SymbolIndex};
use std::collections::HashMap;

/// The section of common symbols (of C): several files may define such a symbol, and the largest
/// definition is used.
pub(crate) const COMMON: &str = "COMMON";

pub(super) type Header = FileHeader32<LittleEndian>;

/// An object file.
#[derive(Clone, Debug, Default)]
pub struct ReadObject {
    /// The contents. All source spans are 0.
    pub object: Object,
}

/// Returns whether the bytes start with the magic number of ELF files.
pub fn is_elf(bytes: &[u8]) -> bool {
    bytes.starts_with(&elf::ELFMAG)
}

pub(super) fn header(bytes: &[u8]) -> Result<&Header, ElfError> {
    if !is_elf(bytes) {
        let kind = crate::file_kind(bytes).map_or(String::new(), |kind| format!("; it seems to be {kind}"));
        return Err(ElfError::new(format!("not an ELF file{kind}")));
    }
    let header = Header::parse(bytes)?;
    if header.e_ident.class != elf::ELFCLASS32 || header.e_ident.data != elf::ELFDATA2LSB {
        return Err(ElfError::at(4, "not a 32-bit little-endian file"));
    }
    let machine = header.e_machine(LittleEndian);
    if machine != MACHINE {
        return Err(ElfError::at(
            18,
            format!("made for machine {machine}, not for NaplesPU, which is {MACHINE}"),
        ));
    }
    Ok(header)
}

/// Returns the segments of an executable file, with zeros after their stored contents, and the
/// entry point.
///
/// # Errors
///
/// Fails if the file is not an executable of this machine, is truncated, or needs too much memory.
pub fn executable(bytes: &[u8]) -> Result<Image, ElfError> {
    let header = header(bytes)?;
    if header.e_type(LittleEndian) != elf::ET_EXEC {
        return Err(ElfError::at(16, "not an executable: link it first"));
    }
    let mut segments = Vec::new();
    let mut total = 0;
    for segment in header.program_headers(LittleEndian, bytes)? {
        if segment.p_type(LittleEndian) != elf::PT_LOAD {
            continue;
        }
        let offset = u64::from(segment.p_offset(LittleEndian));
        let size = segment.p_memsz(LittleEndian);
        total += u64::from(size);
        if total > LARGEST {
            return Err(ElfError::at(
                offset,
                format!("the segments have more than {LARGEST} bytes"),
            ));
        }
        let stored_size = segment.p_filesz(LittleEndian);
        if stored_size > size {
            return Err(ElfError::at(
                offset,
                format!("a segment of {size} bytes has {stored_size} in the file"),
            ));
        }
        if u64::from(segment.p_vaddr(LittleEndian)) + u64::from(size) > 1 << 32 {
            return Err(ElfError::at(offset, "a segment goes past the end of memory"));
        }
        let stored = segment
            .data(LittleEndian, bytes)
            .map_err(|()| ElfError::at(offset, "a segment goes past the end of the file"))?;
        let mut contents = stored.to_vec();
        contents.resize(size as usize, 0);
        if !contents.is_empty() {
            segments.push(Segment {
                address: segment.p_vaddr(LittleEndian),
                bytes: contents,
            });
        }
    }
    segments.sort_by_key(|segment| segment.address);
    if segments.windows(2).any(|pair| {
        let [first, second] = pair else { return false };
        u64::from(first.address) + first.bytes.len() as u64 > u64::from(second.address)
    }) {
        return Err(ElfError::new("two segments overlap"));
    }
    Ok(Image {
        segments,
        entry: Some(header.e_entry(LittleEndian)),
    })
}

/// Returns the object in a relocatable file.
///
/// # Errors
///
/// Fails if the file is not a relocatable file of this machine, is truncated, or is inconsistent.
pub fn object(bytes: &[u8]) -> Result<ReadObject, ElfError> {
    let header = header(bytes)?;
    if header.e_type(LittleEndian) != elf::ET_REL {
        return Err(ElfError::at(16, "not a relocatable object file"));
    }
    let table = header.sections(LittleEndian, bytes)?;
    let mut reader = Reader {
        bytes,
        table: &table,
        object: Object::default(),
        sections: HashMap::new(),
        total: 0,
    };
    reader.sections()?;
    reader.symbols()?;
    reader.relocations()?;
    Ok(ReadObject { object: reader.object })
}

struct Reader<'a> {
    bytes: &'a [u8],
    table: &'a SectionTable<'a, Header>,
    object: Object,
    /// The sections of the object by their numbers in the file.
    sections: HashMap<usize, SectionId>,
    /// The size of all sections so far in bytes.
    total: u64,
}

/// Returns whether a section that does not occupy memory is a debug section.
fn is_debug(name: &str) -> bool {
    name.starts_with(".debug_")
}

/// Returns whether a section can have this alignment.
fn is_align(align: u32) -> bool {
    align.is_power_of_two() && u64::from(align) <= MAX_ALIGN
}

impl Reader<'_> {
    fn name(&self, section: &SectionHeader32<LittleEndian>) -> Result<String, ElfError> {
        let name = self.table.section_name(LittleEndian, section)?;
        Ok(String::from_utf8_lossy(name).into_owned())
    }

    fn sections(&mut self) -> Result<(), ElfError> {
        for (index, section) in self.table.enumerate() {
            let kind = section.sh_type(LittleEndian);
            let flags = section.sh_flags(LittleEndian);
            let holds = matches!(
                kind,
                elf::SHT_PROGBITS
                    | elf::SHT_NOBITS
                    | elf::SHT_INIT_ARRAY
                    | elf::SHT_FINI_ARRAY
                    | elf::SHT_PREINIT_ARRAY
            );
            let alloc = flags & elf::SHF_ALLOC != 0;
            if !holds {
                continue;
            }
            let offset = u64::from(section.sh_offset(LittleEndian));
            let name = self.name(section)?;
            // A section that does not occupy memory is a debug section or has no use.
            if !alloc && !is_debug(&name) {
                continue;
            }
            let align = section.sh_addralign(LittleEndian).max(1);
            if !is_align(align) {
                return Err(ElfError::at(offset, format!("the alignment of `{name}` is {align}")));
            }
            let size = u64::from(section.sh_size(LittleEndian));
            let nobits = kind == elf::SHT_NOBITS;
            self.total += size;
            if self.total > LARGEST {
                return Err(ElfError::at(
                    offset,
                    format!("the sections have more than {LARGEST} bytes"),
                ));
            }
            let data = section
                .data(LittleEndian, self.bytes)
                .map_err(|_| ElfError::at(offset, format!("the section `{name}` goes past the end of the file")))?;
            let id = SectionId::new(self.object.sections.len() as u32);
            self.sections.insert(index.0, id);
            self.object.sections.push(Section {
                name,
                alloc,
                write: flags & elf::SHF_WRITE != 0,
                exec: flags & elf::SHF_EXECINSTR != 0,
                nobits,
                align,
                size,
                pieces: match data.is_empty() {
                    true => Vec::new(),
                    false => vec![Piece {
                        offset: 0,
                        bytes: data.to_vec(),
                    }],
                },
            });
        }
        Ok(())
    }

    /// Reads all symbols of the file. The index of each is its number in the file minus one.
    fn symbols(&mut self) -> Result<(), ElfError> {
        let symbols = self.table.symbols(LittleEndian, self.bytes, elf::SHT_SYMTAB)?;
        for (index, symbol) in symbols.enumerate().skip(1) {
            let name = symbol.name(LittleEndian, symbols.strings())?;
            let name = String::from_utf8_lossy(name).into_owned();
            let place = symbols.symbol_section(LittleEndian, symbol, index)?;
            let own = self.symbol(symbol, name, place)?;
            self.object.symbols.push(own);
        }
        Ok(())
    }

    fn symbol(
        &mut self,
        symbol: &Sym32<LittleEndian>,
        name: String,
        place: Option<SectionIndex>,
    ) -> Result<Symbol, ElfError> {
        let value = symbol.st_value(LittleEndian);
        let size = symbol.st_size(LittleEndian);
        let mut binding = match symbol.st_bind() {
            elf::STB_LOCAL => Binding::Local,
            elf::STB_GLOBAL => Binding::Global,
            elf::STB_WEAK => Binding::Weak,
            other => {
                return Err(ElfError::new(format!(
                    "the symbol `{name}` has the unknown binding {other}"
                )));
            }
        };
        let value = match (place, symbol.st_shndx(LittleEndian)) {
            (Some(section), _) if section.0 >= self.table.len() => {
                return Err(ElfError::new(format!(
                    "the symbol `{name}` is in section {}, which does not exist",
                    section.0
                )));
            }
            (Some(section), _) => match self.sections.get(&section.0) {
                Some(&id) => {
                    let inside = self.object.sections[id.index()].size;
                    if u64::from(value) > inside {
                        return Err(ElfError::new(format!(
                            "the symbol `{name}` lies outside of its section"
                        )));
                    }
                    SymbolValue::Place {
                        section: id,
                        offset: value,
                    }
                }
                // A symbol of a debug section, at address 0.
                None => SymbolValue::Number(value.into()),
            },
            (None, elf::SHN_ABS) => SymbolValue::Number(value.into()),
            (None, elf::SHN_COMMON) => {
                if !is_align(value) {
                    return Err(ElfError::new(format!(
                        "the alignment of the symbol `{name}` is {value}"
                    )));
                }
                binding = Binding::Weak;
                self.total += u64::from(size);
                if self.total > LARGEST {
                    return Err(ElfError::new(format!("the sections have more than {LARGEST} bytes")));
                }
                self.common(size, value)
            }
            (None, elf::SHN_UNDEF) => SymbolValue::Undefined,
            (None, other) => {
                return Err(ElfError::new(format!(
                    "the symbol `{name}` is in the unknown section {other:#x}"
                )));
            }
        };
        Ok(Symbol {
            name,
            value,
            binding,
            kind: match symbol.st_type() {
                elf::STT_FUNC => SymbolKind::Function,
                elf::STT_OBJECT | elf::STT_COMMON => SymbolKind::Object,
                _ => SymbolKind::None,
            },
            size: Some(size),
            private: symbol.st_type() == elf::STT_SECTION || symbol.st_type() == elf::STT_FILE,
            span: 0..0,
        })
    }

    /// Creates a separate section for a common symbol, because one of several definitions will be
    /// used.
    fn common(&mut self, size: u32, align: u32) -> SymbolValue {
        let section = SectionId::new(self.object.sections.len() as u32);
        self.object.sections.push(Section {
            name: COMMON.to_owned(),
            alloc: true,
            write: true,
            exec: false,
            nobits: true,
            align,
            size: size.into(),
            pieces: Vec::new(),
        });
        SymbolValue::Place { section, offset: 0 }
    }

    fn relocations(&mut self) -> Result<(), ElfError> {
        for (_, section) in self.table.enumerate() {
            let kind = section.sh_type(LittleEndian);
            let Some(&to) = self.sections.get(&(section.sh_info(LittleEndian) as usize)) else {
                continue;
            };
            let start = u64::from(section.sh_offset(LittleEndian));
            if kind == elf::SHT_REL {
                return Err(ElfError::at(
                    start,
                    "relocations without addends, which this machine does not have",
                ));
            }
            let Some((list, _)) = section.rela(LittleEndian, self.bytes)? else {
                continue;
            };
            for (number, rela) in list.iter().enumerate() {
                let at = start + 12 * number as u64;
                let kind = rela.r_type(LittleEndian);
                let kind = Reloc::from_number(kind)
                    .ok_or_else(|| ElfError::at(at, format!("{kind} is not a kind of relocation")))?;
                if kind == Reloc::None {
                    continue;
                }
                let offset = rela.r_offset(LittleEndian);
                let inside = &self.object.sections[to.index()];
                if u64::from(offset) + 4 > inside.size || inside.nobits {
                    return Err(ElfError::at(
                        at,
                        format!("a relocation at {offset:#x}, outside of `{}`", inside.name),
                    ));
                }
                let symbol = match rela.r_sym(LittleEndian) {
                    0 => return Err(ElfError::at(at, "a relocation without a symbol")),
                    symbol => SymbolIndex(symbol as usize),
                };
                // The list does not include the null symbol.
                let id = SymbolId::new(symbol.0 as u32 - 1);
                if id.index() >= self.object.symbols.len() {
                    return Err(ElfError::at(at, format!("there is no symbol {}", symbol.0)));
                }
                self.object.relocations.push(Relocation {
                    section: to,
                    offset,
                    kind,
                    target: Target::Symbol(id),
                    addend: rela.r_addend(LittleEndian).into(),
                    span: 0..0,
                });
            }
        }
        Ok(())
    }
}
