//! Writes objects and programs as ELF files.

use super::{ElfError, LARGEST, SHT_INIT_ARRAY};
use crate::program::types::Program;
use npu_mc::asm::{Binding, Object, Section, Symbol, SymbolId, SymbolKind, SymbolValue, Target};
use npu_mc::reloc::{Formula, elf as target};
use object::Endianness;
use object::elf;
use object::write::StringId;
use object::write::elf::{FileHeader, ProgramHeader, Rel, SectionHeader, SectionIndex, Sym, Writer};

/// Size of a page in bytes.
const PAGE_SIZE: u32 = target::PAGE_SIZE as u32;

/// A section to write.
struct Out<'a> {
    name: &'a str,
    sh_type: u32,
    flags: u32,
    address: u32,
    align: u32,
    size: u64,
    /// Empty for a section without contents.
    bytes: Vec<u8>,
    relocations: Vec<Rel>,
}

/// A symbol to write. Local symbols precede the others.
struct OutSymbol<'a> {
    name: Option<&'a str>,
    /// The index of its section.
    section: Option<usize>,
    /// The special section number if it has no section.
    special: u16,
    value: u32,
    size: u32,
    binding: u8,
    kind: u8,
}

/// Writes an object file.
///
/// # Errors
///
/// Fails if the object is too large or contains something that relocatable files cannot represent.
pub fn write_object(object: &Object) -> Result<Vec<u8>, ElfError> {
    let mut total = 0;
    let mut sections = Vec::with_capacity(object.sections.len());
    for section in &object.sections {
        total += if section.nobits { 0 } else { section.size };
        if total > LARGEST {
            return Err(ElfError::new(format!("the sections have more than {LARGEST} bytes")));
        }
        sections.push(Out {
            name: &section.name,
            sh_type: section_type(section),
            flags: flags(section.alloc, section.write, section.exec),
            address: 0,
            align: section.align.max(1),
            size: section.size,
            bytes: if section.nobits {
                Vec::new()
            } else {
                contents_of(section)
            },
            relocations: Vec::new(),
        });
    }
    // The section symbols come first, one for each section.
    let mut symbols: Vec<OutSymbol<'_>> = (0..sections.len()).map(section_symbol).collect();
    let mut number = vec![None; object.symbols.len()];
    for local in [true, false] {
        for (index, symbol) in object.symbols.iter().enumerate() {
            if is_local(symbol) == local && !symbol.private {
                number[index] = Some(symbols.len());
                symbols.push(out_symbol(symbol)?);
            }
        }
    }
    for relocation in &object.relocations {
        let (symbol, addend) = match relocation.target {
            Target::Section(id) => (id.index(), relocation.addend),
            Target::Symbol(id) => named(object, &number, id, relocation.addend)?,
        };
        let info = relocation.kind.info();
        if info.formula == Formula::Pc && relocation.kind != npu_mc::reloc::Reloc::Branch {
            let name = symbols
                .get(symbol)
                .and_then(|symbol| symbol.name)
                .unwrap_or("a section");
            return Err(ElfError::new(format!(
                "{} of {name}: object files cannot represent this soundly; load the address with `lea`",
                relocation.kind.name()
            )));
        }
        let out = sections
            .get_mut(relocation.section.index())
            .ok_or_else(|| ElfError::new("a relocation of a section that does not exist"))?;
        out.relocations.push(Rel {
            r_offset: relocation.offset.into(),
            r_sym: symbol as u32 + 1,
            r_type: relocation.kind.number().into(),
            r_addend: i64::from(addend as i32),
        });
    }
    write(elf::ET_REL, 0, &sections, &symbols)
}

/// Writes an executable file.
///
/// # Errors
///
/// Fails if the program is too large.
pub fn write_executable(program: &Program) -> Result<Vec<u8>, ElfError> {
    let sections: Vec<Out<'_>> = program
        .sections
        .iter()
        .map(|section| Out {
            name: &section.name,
            sh_type: if section.nobits {
                elf::SHT_NOBITS
            } else {
                elf::SHT_PROGBITS
            },
            flags: flags(section.alloc, section.write, section.exec),
            address: section.address,
            align: section.align.max(1),
            size: section.size.into(),
            bytes: section.bytes.clone(),
            relocations: Vec::new(),
        })
        .collect();
    let mut symbols = Vec::with_capacity(program.symbols.len());
    for local in [true, false] {
        for symbol in program
            .symbols
            .iter()
            .filter(|symbol| (symbol.binding == Binding::Local) == local)
        {
            symbols.push(OutSymbol {
                name: Some(&symbol.name),
                section: symbol.section,
                special: elf::SHN_ABS,
                value: symbol.address,
                size: symbol.size,
                binding: binding(symbol.binding),
                kind: kind(symbol.kind),
            });
        }
    }
    write(elf::ET_EXEC, program.entry, &sections, &symbols)
}

fn section_type(section: &Section) -> u32 {
    if section.nobits {
        elf::SHT_NOBITS
    } else if section.name.starts_with(".init_array") {
        SHT_INIT_ARRAY
    } else {
        elf::SHT_PROGBITS
    }
}

fn flags(alloc: bool, write: bool, exec: bool) -> u32 {
    let bit = |is: bool, flag: u32| if is { flag } else { 0 };
    bit(alloc, elf::SHF_ALLOC) | bit(write, elf::SHF_WRITE) | bit(exec, elf::SHF_EXECINSTR)
}

/// Returns all bytes of a section, with zeros between the pieces.
pub(crate) fn contents_of(section: &Section) -> Vec<u8> {
    let mut bytes = vec![0; section.size as usize];
    for piece in &section.pieces {
        let start = piece.offset as usize;
        if let Some(place) = bytes.get_mut(start..start + piece.bytes.len()) {
            place.copy_from_slice(&piece.bytes);
        }
    }
    bytes
}

fn section_symbol(number: usize) -> OutSymbol<'static> {
    OutSymbol {
        name: None,
        section: Some(number),
        special: 0,
        value: 0,
        size: 0,
        binding: elf::STB_LOCAL,
        kind: elf::STT_SECTION,
    }
}

/// Returns whether the symbol is invisible in other files. An undefined symbol never is.
fn is_local(symbol: &Symbol) -> bool {
    symbol.binding == Binding::Local && symbol.value != SymbolValue::Undefined
}

fn out_symbol(symbol: &Symbol) -> Result<OutSymbol<'_>, ElfError> {
    let (section, special, value) = match symbol.value {
        SymbolValue::Undefined => (None, elf::SHN_UNDEF, 0),
        SymbolValue::Number(number) => (None, elf::SHN_ABS, number as u32),
        SymbolValue::Place { section, offset } => (Some(section.index()), 0, offset),
        SymbolValue::Near { .. } => {
            return Err(ElfError::new(format!(
                "the symbol `{}` is an offset from an undefined symbol, which object files cannot represent",
                symbol.name
            )));
        }
    };
    let own = match (is_local(symbol), symbol.binding) {
        (false, Binding::Local) => elf::STB_GLOBAL,
        (_, other) => binding(other),
    };
    Ok(OutSymbol {
        name: Some(&symbol.name),
        section,
        special,
        value,
        size: symbol.size.unwrap_or(0),
        binding: own,
        kind: kind(symbol.kind),
    })
}

fn binding(binding: Binding) -> u8 {
    match binding {
        Binding::Local => elf::STB_LOCAL,
        Binding::Global => elf::STB_GLOBAL,
        Binding::Weak => elf::STB_WEAK,
    }
}

fn kind(kind: SymbolKind) -> u8 {
    match kind {
        SymbolKind::None => elf::STT_NOTYPE,
        SymbolKind::Function => elf::STT_FUNC,
        SymbolKind::Object => elf::STT_OBJECT,
    }
}

/// Returns the symbol and addend of a relocation: the section symbol replaces a local symbol.
fn named(object: &Object, number: &[Option<usize>], id: SymbolId, addend: i64) -> Result<(usize, i64), ElfError> {
    let lost = || ElfError::new("a relocation of a symbol that does not exist");
    let symbol = object.symbols.get(id.index()).ok_or_else(lost)?;
    match symbol.value {
        SymbolValue::Place { section, offset } if symbol.binding == Binding::Local => {
            Ok((section.index(), addend + i64::from(offset)))
        }
        SymbolValue::Near { symbol, addend: more } if symbol != id => named(object, number, symbol, addend + more),
        _ => Ok((number.get(id.index()).copied().flatten().ok_or_else(lost)?, addend)),
    }
}

/// Writes the file: headers, sections, relocations, symbols, names.
fn write(e_type: u16, entry: u32, sections: &[Out<'_>], symbols: &[OutSymbol<'_>]) -> Result<Vec<u8>, ElfError> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(Endianness::Little, false, &mut bytes);
    writer.reserve_file_header();
    let loaded: Vec<&Out<'_>> = sections
        .iter()
        .filter(|section| e_type == elf::ET_EXEC && section.size > 0 && section.flags & elf::SHF_ALLOC != 0)
        .collect();
    writer.reserve_program_headers(loaded.len() as u32);
    writer.reserve_null_section_index();
    let names: Vec<StringId> = sections
        .iter()
        .map(|section| writer.add_section_name(section.name.as_bytes()))
        .collect();
    let indices: Vec<SectionIndex> = sections.iter().map(|_| writer.reserve_section_index()).collect();
    let mut offsets = Vec::with_capacity(sections.len());
    for section in sections {
        // The offset in a page is the same in the file and in memory, as loaders require.
        let align = if e_type == elf::ET_EXEC {
            PAGE_SIZE
        } else {
            section.align
        };
        let loads = e_type == elf::ET_EXEC && section.flags & elf::SHF_ALLOC != 0;
        if loads && !section.bytes.is_empty() {
            let here = writer.reserved_len() as u32;
            let shift = (section.address % align + align - here % align) % align;
            writer.reserve_until((here + shift) as usize);
        }
        let align = if e_type == elf::ET_EXEC { 1 } else { align as usize };
        offsets.push(writer.reserve(section.bytes.len(), align));
    }
    let rela_names: Vec<String> = sections
        .iter()
        .map(|section| format!(".rela{}", section.name))
        .collect();
    let mut relas = Vec::new();
    for (number, section) in sections.iter().enumerate() {
        if !section.relocations.is_empty() {
            let name = writer.add_section_name(rela_names[number].as_bytes());
            writer.reserve_section_index();
            relas.push((
                number,
                name,
                writer.reserve_relocations(section.relocations.len(), true),
            ));
        }
    }
    writer.reserve_null_symbol_index();
    let mut string_ids = Vec::with_capacity(symbols.len());
    for symbol in symbols {
        string_ids.push(symbol.name.map(|name| writer.add_string(name.as_bytes())));
        writer.reserve_symbol_index(symbol.section.map(|section| indices[section]));
    }
    let symtab = writer.reserve_symtab_section_index();
    if writer.symtab_shndx_needed() {
        writer.reserve_symtab_shndx_section_index();
    }
    writer.reserve_symtab();
    writer.reserve_symtab_shndx();
    writer.reserve_strtab_section_index();
    writer.reserve_strtab();
    writer.reserve_shstrtab_section_index();
    writer.reserve_shstrtab();
    writer.reserve_section_headers();

    writer
        .write_file_header(&FileHeader {
            os_abi: elf::ELFOSABI_NONE,
            abi_version: 0,
            e_type,
            e_machine: super::MACHINE,
            e_entry: entry.into(),
            e_flags: target::FLAGS as u32,
        })
        .map_err(|error| ElfError::new(error.to_string()))?;
    writer.write_align_program_headers();
    for section in &loaded {
        let place = sections
            .iter()
            .position(|other| std::ptr::eq(other, *section))
            .map_or(0, |at| offsets[at]);
        let bit = |is: u32, flag: u32| if section.flags & is != 0 { flag } else { 0 };
        writer.write_program_header(&ProgramHeader {
            p_type: elf::PT_LOAD,
            p_flags: elf::PF_R | bit(elf::SHF_WRITE, elf::PF_W) | bit(elf::SHF_EXECINSTR, elf::PF_X),
            p_offset: place as u64,
            p_vaddr: section.address.into(),
            p_paddr: section.address.into(),
            p_filesz: section.bytes.len() as u64,
            p_memsz: section.size,
            p_align: if section.bytes.is_empty() { 1 } else { PAGE_SIZE.into() },
        });
    }
    for (section, &offset) in sections.iter().zip(&offsets) {
        writer.pad_until(offset);
        writer.write(&section.bytes);
    }
    for &(number, _, _) in &relas {
        writer.write_align_relocation();
        for relocation in &sections[number].relocations {
            writer.write_relocation(true, relocation);
        }
    }
    writer.write_null_symbol();
    for (symbol, name) in symbols.iter().zip(&string_ids) {
        writer.write_symbol(&Sym {
            name: *name,
            section: symbol.section.map(|section| indices[section]),
            st_info: symbol.binding << 4 | symbol.kind,
            st_other: elf::STV_DEFAULT,
            st_shndx: symbol.special,
            st_value: symbol.value.into(),
            st_size: symbol.size.into(),
        });
    }
    writer.write_symtab_shndx();
    writer.write_strtab();
    writer.write_shstrtab();
    writer.write_null_section_header();
    for (number, section) in sections.iter().enumerate() {
        writer.write_section_header(&SectionHeader {
            name: Some(names[number]),
            sh_type: section.sh_type,
            sh_flags: section.flags.into(),
            sh_addr: section.address.into(),
            sh_offset: offsets[number] as u64,
            sh_size: section.size,
            sh_link: 0,
            sh_info: 0,
            sh_addralign: section.align.into(),
            sh_entsize: if section.sh_type == SHT_INIT_ARRAY { 4 } else { 0 },
        });
    }
    for &(number, name, offset) in &relas {
        let count = sections[number].relocations.len();
        writer.write_relocation_section_header(name, indices[number], symtab, offset, count, true);
    }
    let locals = symbols.iter().filter(|symbol| symbol.binding == elf::STB_LOCAL).count();
    writer.write_symtab_section_header(locals as u32 + 1);
    writer.write_symtab_shndx_section_header();
    writer.write_strtab_section_header();
    writer.write_shstrtab_section_header();
    Ok(bytes)
}
