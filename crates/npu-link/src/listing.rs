//! Prints the result of an assembly: instructions with their encoding, a listing, and the symbols
//! with their addresses.

use crate::static_link::Linked;
use npu_mc::asm::{Binding, Line, Object, Section, SymbolId, SymbolValue, Target, symbol_text};
use npu_mc::machine::INSTRUCTION_SIZE;
use std::fmt::Write;

/// Bytes per row of the listing.
const ROW: usize = 8;

/// The maximum number of rows for one statement.
const MOST_ROWS: usize = 8;

/// The column of the encodings.
const COLUMN: usize = 40;

/// Returns the bytes at an address.
fn bytes_at(linked: &Linked, address: u32, len: usize) -> &[u8] {
    let next = linked.image.segments.partition_point(|s| s.address <= address);
    let Some(segment) = next.checked_sub(1).map(|i| &linked.image.segments[i]) else {
        return &[];
    };
    let rest = segment
        .bytes
        .get((address - segment.address) as usize..)
        .unwrap_or_default();
    &rest[..len.min(rest.len())]
}

/// Returns the statement on one line.
fn one_line(source: &str, line: &Line) -> String {
    let text = source.get(line.span.clone()).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the program as a source. Each instruction has its bytes and, if it refers to a symbol,
/// its relocation.
pub fn show_encoding(source: &str, object: &Object, linked: &Linked) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let mut labels: Vec<(u32, u32, &str)> = object
        .symbols
        .iter()
        .filter_map(|s| match s.value {
            SymbolValue::Place { section, offset } => Some((section.index() as u32, offset, s.name.as_str())),
            _ => None,
        })
        .collect();
    labels.sort_by_key(|&(section, offset, _)| (section, offset));
    let mut done = vec![false; labels.len()];
    let mut relocations = object.relocations.iter().peekable();
    for line in &object.lines {
        let at = (line.section.index() as u32, line.offset);
        let first = labels.partition_point(|&(s, o, _)| (s, o) < at);
        for (index, label) in labels
            .iter()
            .enumerate()
            .skip(first)
            .take_while(|(_, l)| (l.0, l.1) == at)
        {
            if !done[index] {
                done[index] = true;
                let numeric = label
                    .2
                    .strip_suffix(['b', 'f'])
                    .filter(|n| n.bytes().all(|b| b.is_ascii_digit()));
                let name = numeric.map_or_else(|| symbol_text(label.2), str::to_owned);
                let _ = writeln!(out, "{name}:");
            }
        }
        let text = one_line(source, line);
        let start = linked.addresses.get(line.section.index()).copied().flatten();
        let bytes = start.map_or(&[][..], |s| {
            bytes_at(linked, s.wrapping_add(line.offset), line.len as usize)
        });
        match (line.inst, start) {
            (Some(_), Some(_)) if bytes.len() == INSTRUCTION_SIZE as usize => {
                let list: Vec<String> = bytes.iter().map(|b| format!("{b:#04x}")).collect();
                let width = COLUMN - 8;
                let _ = writeln!(out, "        {text:<width$} # encoding: [{}]", list.join(","));
            }
            _ => {
                let _ = writeln!(out, "        {text}");
            }
        }
        while let Some(relocation) = relocations.next_if(|r| r.span.end <= line.span.end) {
            let target = match relocation.target {
                Target::Section(id) => object.sections.get(id.index()).map_or("?", |s| s.name.as_str()),
                Target::Symbol(id) => object.symbols.get(id.index()).map_or("?", |s| s.name.as_str()),
            };
            let text = format!("{}, {target}{:+}", relocation.kind.name(), relocation.addend);
            let _ = writeln!(out, "        {:width$} # relocation: {text}", "", width = COLUMN - 8);
        }
    }
    out
}

/// Returns line number, address, bytes and text of each source line.
pub fn listing(source: &str, object: &Object, linked: &Linked) -> String {
    let mut out = String::new();
    let mut items = object.lines.iter().peekable();
    let mut start = 0;
    for (number, text) in source.split('\n').enumerate() {
        if text.is_empty() && start == source.len() {
            break;
        }
        let end = start + text.len();
        let mut rows: Vec<(u32, String)> = Vec::new();
        while let Some(line) = items.next_if(|l| l.span.start <= end) {
            let Some(base) = linked.addresses.get(line.section.index()).copied().flatten() else {
                continue;
            };
            rows_of(line, base, linked, &mut rows);
        }
        let mut rows = rows.into_iter();
        let text = text.trim_end();
        let number = number + 1;
        let _ = match rows.next() {
            Some((address, bytes)) => {
                writeln!(
                    out,
                    "{}",
                    format!("{number:5} {address:08x} {bytes:<16}  {text}").trim_end()
                )
            }
            None => writeln!(out, "{}", format!("{number:5} {:25}  {text}", "").trim_end()),
        };
        for (address, bytes) in rows {
            let _ = writeln!(out, "{}", format!("{number:5} {address:08x} {bytes}").trim_end());
        }
        start = end + 1;
    }
    out
}

fn rows_of(line: &Line, base: u32, linked: &Linked, rows: &mut Vec<(u32, String)>) {
    let address = base.wrapping_add(line.offset);
    let bytes = bytes_at(linked, address, line.len as usize);
    if line.inst.is_some() && bytes.len() == INSTRUCTION_SIZE as usize {
        let word = bytes.iter().rev().fold(0u32, |word, &b| word << 8 | u32::from(b));
        rows.push((address, format!("{word:08x}")));
        return;
    }
    for (index, chunk) in bytes.chunks(ROW).enumerate() {
        let at = address.wrapping_add((index * ROW) as u32);
        if index == MOST_ROWS {
            rows.push((at, format!("... {} bytes", bytes.len() - index * ROW)));
            break;
        }
        rows.push((at, chunk.iter().map(|b| format!("{b:02x}")).collect()));
    }
}

/// Returns one line for each non-private symbol, in ascending order of address: address, a letter
/// for the kind (`T` code, `D` data, `B` zeros, `A` a number; lower case if it is local), name.
pub fn symbol_map(object: &Object, linked: &Linked) -> String {
    let mut lines: Vec<(u32, String)> = Vec::new();
    for (index, symbol) in object.symbols.iter().enumerate() {
        if symbol.private {
            continue;
        }
        let Some(address) = linked.symbol(object, SymbolId::new(index as u32)) else {
            continue;
        };
        let letter = match symbol.value {
            SymbolValue::Place { section, .. } => object.sections.get(section.index()).map_or('?', section_letter),
            _ => 'A',
        };
        let letter = if symbol.binding == Binding::Local {
            letter.to_ascii_lowercase()
        } else {
            letter
        };
        lines.push((
            address,
            format!("{address:08x} {letter} {}\n", symbol_text(&symbol.name)),
        ));
    }
    lines.sort();
    lines.into_iter().map(|(_, line)| line).collect()
}

fn section_letter(section: &Section) -> char {
    match section {
        s if s.exec => 'T',
        s if s.nobits => 'B',
        _ => 'D',
    }
}
