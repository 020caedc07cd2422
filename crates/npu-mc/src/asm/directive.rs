//! Directives: sections, symbols, data, space.

use super::assembler::{Assembler, Place};
use super::cursor::Cursor;
use super::expr::{self, Expr};
use super::fault::{Fault, Span, nearest};
use super::lexer::Kind;
use super::object::Section;
use super::symbol::{Binding, SectionId, SymbolId, SymbolKind};
use crate::encode::encode;
use crate::inst::{Inst, Opcode, Operands};
use crate::machine::INSTRUCTION_SIZE;
use crate::reloc::elf;

/// The action of a directive.
#[derive(Clone, Copy)]
enum Action {
    Section(&'static str),
    NamedSection,
    Bind(Binding),
    Type,
    Size,
    Assign,
    Data(u8),
    Text {
        zero: bool,
    },
    Space,
    Fill,
    Common,
    Align {
        power: bool,
    },
    Origin,
    /// A debug directive. It has no effect yet.
    Ignored,
}

const DIRECTIVES: &[(&str, Action)] = &[
    (".text", Action::Section(".text")),
    (".data", Action::Section(".data")),
    (".bss", Action::Section(".bss")),
    (".section", Action::NamedSection),
    (".globl", Action::Bind(Binding::Global)),
    (".global", Action::Bind(Binding::Global)),
    (".weak", Action::Bind(Binding::Weak)),
    (".local", Action::Bind(Binding::Local)),
    (".type", Action::Type),
    (".size", Action::Size),
    (".set", Action::Assign),
    (".equ", Action::Assign),
    (".long", Action::Data(4)),
    (".int", Action::Data(4)),
    (".4byte", Action::Data(4)),
    (".short", Action::Data(2)),
    (".2byte", Action::Data(2)),
    (".byte", Action::Data(1)),
    (".quad", Action::Data(8)),
    (".8byte", Action::Data(8)),
    (".ascii", Action::Text { zero: false }),
    (".asciz", Action::Text { zero: true }),
    (".string", Action::Text { zero: true }),
    (".zero", Action::Space),
    (".space", Action::Space),
    (".skip", Action::Space),
    (".fill", Action::Fill),
    (".comm", Action::Common),
    (".p2align", Action::Align { power: true }),
    (".align", Action::Align { power: false }),
    (".balign", Action::Align { power: false }),
    (".org", Action::Origin),
    (".file", Action::Ignored),
    (".loc", Action::Ignored),
    (".cfi_sections", Action::Ignored),
    (".cfi_startproc", Action::Ignored),
    (".cfi_endproc", Action::Ignored),
    (".cfi_personality", Action::Ignored),
    (".cfi_lsda", Action::Ignored),
    (".cfi_def_cfa", Action::Ignored),
    (".cfi_def_cfa_register", Action::Ignored),
    (".cfi_def_cfa_offset", Action::Ignored),
    (".cfi_adjust_cfa_offset", Action::Ignored),
    (".cfi_offset", Action::Ignored),
    (".cfi_rel_offset", Action::Ignored),
    (".cfi_register", Action::Ignored),
    (".cfi_restore", Action::Ignored),
    (".cfi_undefined", Action::Ignored),
    (".cfi_same_value", Action::Ignored),
    (".cfi_remember_state", Action::Ignored),
    (".cfi_restore_state", Action::Ignored),
    (".cfi_return_column", Action::Ignored),
    (".cfi_signal_frame", Action::Ignored),
    (".cfi_window_save", Action::Ignored),
    (".cfi_escape", Action::Ignored),
];

/// The largest alignment in bytes.
const MOST_ALIGN: u32 = 1 << 20;

/// Runs the directive whose name has just been read.
pub(super) fn run<'s>(
    asm: &mut Assembler<'s>,
    cursor: &mut Cursor<'_, 's>,
    name: &str,
    span: &Span,
) -> Result<(), Fault> {
    let lower = name.to_ascii_lowercase();
    let Some(&(_, action)) = DIRECTIVES.iter().find(|(known, _)| *known == lower) else {
        return Err(unknown(name, &lower, span));
    };
    match action {
        Action::Section(name) => {
            asm.section = default_section(asm, name);
            if cursor.at_end() {
                Ok(())
            } else {
                Err(cursor
                    .unexpected("the end of the statement")
                    .note("there are no subsections"))
            }
        }
        Action::NamedSection => named_section(asm, cursor),
        Action::Bind(binding) => each(asm, cursor, |asm, cursor| {
            let at = cursor.span();
            let id = symbol(asm, cursor)?;
            let entry = asm.symbols.get_mut(id);
            match entry.binding {
                Some(other) if other != binding => {
                    let message = format!(
                        "`{}` is {} and {}",
                        entry.name,
                        binding_name(other),
                        binding_name(binding)
                    );
                    Err(Fault::new(at, message, "a symbol has only one binding"))
                }
                _ => {
                    entry.binding = Some(binding);
                    Ok(())
                }
            }
        }),
        Action::Type => kind(asm, cursor),
        Action::Size => {
            let id = symbol(asm, cursor)?;
            cursor.expect(",")?;
            let here = asm.here();
            let (expr, _) = expr::parse(cursor, &mut asm.symbols, here)?;
            asm.symbols.get_mut(id).size = Some(expr);
            Ok(())
        }
        Action::Assign => {
            let at = cursor.span();
            let id = symbol(asm, cursor)?;
            cursor.expect(",")?;
            asm.assign(cursor, id, &at)
        }
        Action::Data(size) => {
            if cursor.at_end() {
                return Ok(());
            }
            each(asm, cursor, |asm, cursor| data(asm, cursor, size))
        }
        Action::Text { zero } => each(asm, cursor, |asm, cursor| {
            let at = cursor.span();
            let Kind::String(bytes) = cursor.kind() else {
                return Err(cursor.unexpected("a string"));
            };
            cursor.advance();
            asm.emit(bytes, &at)?;
            if zero { asm.emit(&[0], &at) } else { Ok(()) }
        }),
        Action::Space => {
            let (count, at) = asm.number(cursor, "the number of bytes")?;
            let count = length(count, &at)?;
            let fill = if cursor.take(",") { byte(asm, cursor)? } else { 0 };
            asm.emit_repeated(&[fill], count, span)
        }
        Action::Fill => fill(asm, cursor, span),
        Action::Common => common(asm, cursor),
        Action::Align { power } => align(asm, cursor, power, span),
        Action::Origin => {
            let (offset, at) = asm.number(cursor, "the offset")?;
            let here = asm.here().offset;
            match u32::try_from(offset) {
                Ok(offset) if offset >= here => {
                    asm.skip_to(offset);
                    Ok(())
                }
                Ok(_) => {
                    let message = format!("`.org` cannot move back from {here:#x} to {offset:#x}");
                    Err(Fault::new(at, message, "only a later offset is possible"))
                }
                Err(_) => Err(Fault::new(
                    at,
                    format!("{offset} is not an offset in a section"),
                    "0 to 4294967295",
                )),
            }
        }
        Action::Ignored => {
            cursor.skip_statement();
            Ok(())
        }
    }
}

fn unknown(name: &str, lower: &str, span: &Span) -> Fault {
    let fault = Fault::new(span.clone(), format!("there is no directive `{name}`"), "unknown");
    match lower {
        // Other assemblers disagree on the size (2 to 8 bytes), so the assembler of this machine
        // never accepted them.
        ".word" | ".dword" | ".hword" | ".half" => fault.note(
            "its size differs between assemblers; `.byte`, `.short`, `.long` and `.quad` are 1, 2, 4 and 8 bytes here",
        ),
        _ => match nearest(lower, DIRECTIVES.iter().map(|(known, _)| *known)) {
            Some(near) => fault.note(format!("did you mean `{near}`?")),
            None => fault,
        },
    }
}

fn binding_name(binding: Binding) -> &'static str {
    match binding {
        Binding::Local => "local",
        Binding::Global => "global",
        Binding::Weak => "weak",
    }
}

/// Calls a function for each item of a comma-separated list.
fn each<'s>(
    asm: &mut Assembler<'s>,
    cursor: &mut Cursor<'_, 's>,
    mut item: impl FnMut(&mut Assembler<'s>, &mut Cursor<'_, 's>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    loop {
        item(asm, cursor)?;
        if cursor.at_end() {
            return Ok(());
        }
        if !cursor.take(",") {
            return Err(cursor.unexpected("`,` or the end of the statement"));
        }
    }
}

/// Parses the name of a symbol.
pub(super) fn symbol<'s>(asm: &mut Assembler<'s>, cursor: &mut Cursor<'_, 's>) -> Result<SymbolId, Fault> {
    let span = cursor.span();
    let name = match cursor.kind() {
        Kind::Word(".") => return Err(Fault::new(span, "`.` is the current address, not a symbol", "here")),
        Kind::Word(word) => match expr::register_fault(word, &span, "a symbol") {
            Some(fault) => return Err(fault),
            None => (*word).to_owned(),
        },
        Kind::String(bytes) => expr::symbol_name(bytes, &span)?,
        _ => return Err(cursor.unexpected("a symbol")),
    };
    cursor.advance();
    Ok(asm.symbols.named(&name, &span))
}

/// Returns whether a signed or unsigned value fits in this many bytes.
fn fits(value: i128, size: u8) -> bool {
    let bits = 8 * u32::from(size);
    (-(1i128 << (bits - 1))..1i128 << bits).contains(&value)
}

pub(super) fn data_fault(value: i128, size: u8, span: &Span) -> Result<[u8; 16], Fault> {
    if fits(value, size) {
        return Ok(value.to_le_bytes());
    }
    let plural = if size == 1 { "" } else { "s" };
    let message = format!("{value} does not fit in {size} byte{plural}");
    let (min, max) = (
        -(1i128 << (8 * u32::from(size) - 1)),
        (1i128 << (8 * u32::from(size))) - 1,
    );
    Err(Fault::new(span.clone(), message, format!("{min} to {max} fit")))
}

fn data<'s>(asm: &mut Assembler<'s>, cursor: &mut Cursor<'_, 's>, size: u8) -> Result<(), Fault> {
    let here = asm.here();
    let (expr, span) = expr::parse(cursor, &mut asm.symbols, here)?;
    let zero = [0; 8];
    if let Expr::Number(value) = expr {
        let bytes = data_fault(value, size, &span)?;
        return asm.emit(&bytes[..usize::from(size)], &span);
    }
    asm.emit(&zero[..usize::from(size)], &span)?;
    asm.fix(expr, span, here, Place::Data(size));
    Ok(())
}

fn length(count: i128, span: &Span) -> Result<u64, Fault> {
    u32::try_from(count).map(u64::from).map_err(|_| {
        Fault::new(
            span.clone(),
            format!("{count} is not a number of bytes"),
            "0 to 4294967295",
        )
    })
}

fn byte<'s>(asm: &mut Assembler<'s>, cursor: &mut Cursor<'_, 's>) -> Result<u8, Fault> {
    let (value, span) = asm.number(cursor, "the filling")?;
    data_fault(value, 1, &span).map(|bytes| bytes[0])
}

/// Assembles `.fill count, size, value`.
fn fill<'s>(asm: &mut Assembler<'s>, cursor: &mut Cursor<'_, 's>, span: &Span) -> Result<(), Fault> {
    let (count, at) = asm.number(cursor, "the number of items")?;
    let count = length(count, &at)?;
    let mut size = 1;
    let mut bytes = [0; 16];
    if cursor.take(",") {
        let (value, at) = asm.number(cursor, "the size of an item")?;
        size = match u8::try_from(value) {
            Ok(size @ 0..=8) => size,
            _ => {
                return Err(Fault::new(
                    at,
                    format!("{value} is not a size of an item"),
                    "0 to 8 bytes",
                ));
            }
        };
        if cursor.take(",") {
            let (value, at) = asm.number(cursor, "the filling")?;
            if size > 0 {
                bytes = data_fault(value, size, &at)?;
            }
        }
    }
    asm.emit_repeated(&bytes[..usize::from(size)], count, span)
}

fn power_of_two(value: i128, span: &Span) -> Result<u32, Fault> {
    match u32::try_from(value) {
        Ok(0) => Ok(1),
        Ok(value) if value.is_power_of_two() && value <= MOST_ALIGN => Ok(value),
        _ => Err(Fault::new(
            span.clone(),
            format!("{value} is not an alignment"),
            format!("a power of two up to {MOST_ALIGN}"),
        )),
    }
}

/// Assembles `.align bytes, filling, most` or `.p2align power, filling, most`.
fn align<'s>(asm: &mut Assembler<'s>, cursor: &mut Cursor<'_, 's>, power: bool, span: &Span) -> Result<(), Fault> {
    let (value, at) = asm.number(cursor, "the alignment")?;
    let align = match value {
        0..=20 if power => 1 << value,
        _ if power => {
            return Err(Fault::new(
                at,
                format!("2 to the {value} is not an alignment"),
                "0 to 20",
            ));
        }
        _ => power_of_two(value, &at)?,
    };
    let mut filling = None;
    let mut most = None;
    if cursor.take(",") {
        if !matches!(cursor.kind(), Kind::Mark(",")) {
            filling = Some(byte(asm, cursor)?);
        }
        if cursor.take(",") {
            let (value, at) = asm.number(cursor, "the number of bytes")?;
            most = Some(length(value, &at)?);
        }
    }
    let offset = asm.here().offset;
    let section = asm.current();
    section.align = section.align.max(align);
    let Some(end) = offset.checked_next_multiple_of(align) else {
        return Err(Fault::new(span.clone(), "the section is larger than 4 GiB", "here"));
    };
    let count = end - offset;
    if most.is_some_and(|most| u64::from(count) > most) {
        return Ok(());
    }
    match filling {
        None if asm.current().exec => pad_code(asm, count, span),
        filling => asm.emit_repeated(&[filling.unwrap_or(0)], u64::from(count), span),
    }
}

/// Fills code with `nop`, because zeros encode another instruction.
fn pad_code(asm: &mut Assembler<'_>, count: u32, span: &Span) -> Result<(), Fault> {
    let odd = count % INSTRUCTION_SIZE;
    asm.emit_repeated(&[0], u64::from(odd), span)?;
    let nop = Inst {
        opcode: Opcode::NOP,
        operands: Operands::new(),
    };
    let word = encode(&nop).map_err(|e| Fault::new(span.clone(), e.to_string(), "here"))?;
    asm.emit_repeated(&word.to_le_bytes(), u64::from(count / INSTRUCTION_SIZE), span)
}

/// Assembles `.comm name, size, align`.
fn common<'s>(asm: &mut Assembler<'s>, cursor: &mut Cursor<'_, 's>) -> Result<(), Fault> {
    let at = cursor.span();
    let id = symbol(asm, cursor)?;
    cursor.expect(",")?;
    let (size, size_span) = asm.number(cursor, "the size")?;
    let size = length(size, &size_span)?;
    let mut align = 1;
    if cursor.take(",") {
        let (value, span) = asm.number(cursor, "the alignment")?;
        align = power_of_two(value, &span)?;
    }
    let before = asm.section;
    asm.section = default_section(asm, ".bss");
    let section = asm.current();
    section.align = section.align.max(align);
    let padding = section.size.next_multiple_of(u64::from(align)) - section.size;
    let result = asm
        .reserve(padding, &at)
        .and_then(|()| asm.define(id, &at))
        .and_then(|()| asm.reserve(size, &size_span));
    asm.section = before;
    result?;
    let entry = asm.symbols.get_mut(id);
    entry.binding.get_or_insert(Binding::Global);
    entry.kind = SymbolKind::Object;
    entry.size = Some(Expr::Number(i128::from(size)));
    Ok(())
}

/// Assembles `.type name, @function`.
fn kind<'s>(asm: &mut Assembler<'s>, cursor: &mut Cursor<'_, 's>) -> Result<(), Fault> {
    let id = symbol(asm, cursor)?;
    cursor.expect(",")?;
    let prefixed = cursor.take("@") || cursor.take("%");
    let kind = match cursor.kind() {
        Kind::Word("function" | "STT_FUNC") => SymbolKind::Function,
        Kind::Word("object" | "STT_OBJECT") => SymbolKind::Object,
        Kind::Word("notype" | "STT_NOTYPE") => SymbolKind::None,
        Kind::String(bytes) if !prefixed && bytes == b"function" => SymbolKind::Function,
        Kind::String(bytes) if !prefixed && bytes == b"object" => SymbolKind::Object,
        Kind::String(bytes) if !prefixed && bytes == b"notype" => SymbolKind::None,
        _ => return Err(cursor.unexpected("`@function`, `@object` or `@notype`")),
    };
    cursor.advance();
    asm.symbols.get_mut(id).kind = kind;
    Ok(())
}

/// The flags of a section: `alloc`, `write`, `exec`, `nobits`.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Flags {
    alloc: bool,
    write: bool,
    exec: bool,
    nobits: bool,
}

/// Returns the default flags of a section with this name.
fn default_flags(name: &str) -> Flags {
    let family = |prefix: &str| {
        name.strip_prefix(prefix)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let (alloc, write, exec, nobits) = if family(".text") {
        (true, false, true, false)
    } else if family(".data") || name == elf::SCRATCHPAD_SECTION {
        (true, true, false, false)
    } else if family(".bss") {
        (true, true, false, true)
    } else if family(".rodata") {
        (true, false, false, false)
    } else {
        (false, false, false, false)
    };
    Flags {
        alloc,
        write,
        exec,
        nobits,
    }
}

/// Returns the section with this name; creates it with default flags if it does not exist.
pub(super) fn default_section(asm: &mut Assembler<'_>, name: &str) -> SectionId {
    match asm.section_names.get(name) {
        Some(&id) => id,
        None => add_section(asm, name, default_flags(name)),
    }
}

fn add_section(asm: &mut Assembler<'_>, name: &str, flags: Flags) -> SectionId {
    // The number of sections is less than the number of bytes in the source.
    let id = SectionId(asm.sections.len() as u32);
    asm.section_names.insert(name.to_owned(), id);
    asm.sections.push(Section {
        name: name.to_owned(),
        alloc: flags.alloc,
        write: flags.write,
        exec: flags.exec,
        nobits: flags.nobits,
        align: if flags.exec { INSTRUCTION_SIZE } else { 1 },
        size: 0,
        pieces: Vec::new(),
    });
    id
}

/// Assembles `.section name, "flags", @type`.
fn named_section<'s>(asm: &mut Assembler<'s>, cursor: &mut Cursor<'_, 's>) -> Result<(), Fault> {
    let start = cursor.span();
    let name = if let Kind::String(bytes) = cursor.kind() {
        cursor.advance();
        expr::symbol_name(bytes, &start)?
    } else {
        // A name like `.note.GNU-stack` consists of several tokens.
        while !cursor.at_end() && !matches!(cursor.kind(), Kind::Mark(",")) {
            cursor.advance();
        }
        let text = asm.source.get(start.start..cursor.last_end()).unwrap_or_default();
        if text.is_empty() || text.contains(|c: char| c.is_whitespace() || c == '"') {
            return Err(Fault::new(start, "expected the name of a section", "here"));
        }
        text.to_owned()
    };
    let mut flags = default_flags(&name);
    let mut said = false;
    let mut at = start;
    if cursor.take(",") {
        at = cursor.span();
        let Kind::String(letters) = cursor.kind() else {
            return Err(cursor.unexpected("the section's flags in quotes"));
        };
        said = true;
        flags = Flags {
            alloc: false,
            write: false,
            exec: false,
            nobits: flags.nobits,
        };
        for letter in letters {
            match letter {
                b'a' => flags.alloc = true,
                b'w' => flags.write = true,
                b'x' => flags.exec = true,
                // Mergeable strings. Merging is optional, and the linker does not merge them.
                b'M' | b'S' => {}
                _ => {
                    let message = format!("`{}` is not a flag of a section", letter.escape_ascii());
                    return Err(Fault::new(at, message, "`a` memory, `w` writable, `x` code"));
                }
            }
        }
        cursor.advance();
        if cursor.take(",") {
            if !cursor.take("@") && !cursor.take("%") {
                return Err(cursor.unexpected("`@progbits`, `@nobits` or `@note`"));
            }
            flags.nobits = match cursor.kind() {
                Kind::Word("progbits" | "note") => false,
                Kind::Word("nobits") => true,
                _ => return Err(cursor.unexpected("`progbits`, `nobits` or `note`")),
            };
            cursor.advance();
            if cursor.take(",") {
                // The size of the mergeable items.
                asm.number(cursor, "the size of an item")?;
            }
        }
    }
    asm.section = match asm.section_names.get(&name) {
        None => add_section(asm, &name, flags),
        Some(&id) => {
            let s = &asm.sections[id.index()];
            let old = Flags {
                alloc: s.alloc,
                write: s.write,
                exec: s.exec,
                nobits: s.nobits,
            };
            if said && old != flags {
                let message = format!("the section `{name}` has other flags than before");
                return Err(Fault::new(at, message, "these"));
            }
            id
        }
    };
    Ok(())
}
