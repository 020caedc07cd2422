//! Copies of all instructions, one for each thread of a core: a workaround for the erratum
//! `repeated_instruction_line_miss`.
//!
//! A copy has the bytes of the linked section, moved by whole cache lines. Branches within the
//! section and absolute addresses stay valid, so a function has one address: that in the first
//! copy. PC-relative distances to other sections are recomputed for each copy. The start-up code
//! jumps to the copy of its thread and calls the entry there.

use super::addresses::{Kind, Plan, TEXT, TEXT_COPIES, section};
use super::error::ProgramError;
use super::linking::Linking;
use super::types::{OutputSection, OutputSymbol, TILE_THREADS};
use crate::elf::LARGEST;
use npu_mc::asm::{Binding, SymbolKind};
use npu_mc::machine::CACHE_LINE;
use npu_mc::reloc::{self, Reloc};

/// A PC-relative word of the section: its address, relocation type, target and addend.
pub(super) struct Distance {
    pub(super) place: u32,
    pub(super) kind: Reloc,
    pub(super) target: u32,
    pub(super) addend: i32,
}

impl Linking<'_> {
    /// Returns the distance between two copies in bytes; 0 if only one copy exists.
    pub(super) fn copy_bytes(&self, plan: &Plan) -> u32 {
        match section(plan, Kind::Text) {
            Some(text) if self.options.text_per_thread => whole_lines(text).unwrap_or(0),
            _ => 0,
        }
    }

    /// Returns the empty section for the copies.
    pub(super) fn copies(&self, plan: &Plan) -> Result<Option<OutputSection>, ProgramError> {
        let Some(text) = section(plan, Kind::Text).filter(|_| self.options.text_per_thread) else {
            return Ok(None);
        };
        if !self.options.startup {
            let what = "instructions for each thread need the start-up code, which picks them";
            return Err(ProgramError::Layout(what.to_owned()));
        }
        let past = || ProgramError::Layout(format!("`{TEXT_COPIES}` goes past the end of memory"));
        let bytes = whole_lines(text).ok_or_else(past)?;
        let address = text.address.checked_add(bytes).ok_or_else(past)?;
        // All threads of a core need a copy: without its own copy, a thread's start-up code would
        // jump past the last one.
        let size = bytes.checked_mul(TILE_THREADS - 1).ok_or_else(past)?;
        address.checked_add(size).ok_or_else(past)?;
        if u64::from(size) > LARGEST {
            let what = format!("`{TEXT_COPIES}` has more than {LARGEST} bytes");
            return Err(ProgramError::Layout(what));
        }
        Ok(Some(OutputSection {
            name: TEXT_COPIES.to_owned(),
            address,
            size,
            align: text.align,
            alloc: true,
            exec: true,
            ..OutputSection::default()
        }))
    }
}

/// Returns the size of all cache lines that the section touches. Two copies at this distance share
/// no line.
fn whole_lines(text: &OutputSection) -> Option<u32> {
    let before = text.address % CACHE_LINE;
    before.checked_add(text.size)?.checked_next_multiple_of(CACHE_LINE)
}

/// Fills the copies with the bytes of the section. `distances` lists its PC-relative words;
/// `veneers` lists address and target of each veneer.
pub(super) fn fill(
    plan: &mut Plan,
    bytes: u32,
    distances: &[Distance],
    veneers: &[(u32, u32)],
) -> Result<(), ProgramError> {
    let Some(text) = section(plan, Kind::Text) else {
        return Ok(());
    };
    let (start, end, original) = (text.address, text.address + text.size, text.bytes.clone());
    let inside = |address: u32| (start..end).contains(&address);
    if let Some(frames) = section(plan, Kind::UnwindFrames).filter(|frames| frames.size > 0) {
        let what = format!("`{}` supports only one copy of the instructions", frames.name);
        return Err(ProgramError::Layout(what));
    }
    let Some(own) = plan.sections.iter_mut().find(|own| own.name == TEXT_COPIES) else {
        return Ok(());
    };
    own.bytes = vec![0; own.size as usize];
    for (number, copy) in (1..).zip(own.bytes.chunks_mut(bytes as usize)) {
        let moved = number * bytes;
        copy[..original.len()].copy_from_slice(&original);
        for distance in distances.iter().filter(|distance| !inside(distance.target)) {
            let at = (distance.place - start) as usize;
            let place = distance.place + moved;
            let words = copy.get_mut(at..).unwrap_or_default();
            reloc::apply(distance.kind, words, distance.target, distance.addend, place).map_err(|error| {
                ProgramError::Layout(format!("a copy of the word at {:#010x}: {error}", distance.place))
            })?;
        }
        for &(address, target) in veneers.iter().filter(|(_, target)| inside(*target)) {
            let code = crate::incremental::veneer(target + moved);
            let code = code.map_err(|error| ProgramError::Internal(error.to_string()))?;
            let at = (address - start) as usize;
            let place = copy.get_mut(at..at + code.len());
            let place =
                place.ok_or_else(|| ProgramError::Internal(format!("no room for a veneer at {address:#010x}")))?;
            place.copy_from_slice(&code);
        }
    }
    Ok(())
}

/// Returns the functions of the copies. The copies of `f` are named `f.1`, `f.2` and so on.
pub(super) fn symbols(plan: &Plan, bytes: u32, list: &[OutputSymbol]) -> Vec<OutputSymbol> {
    let number = |name: &str| plan.sections.iter().position(|own| own.name == name);
    let (Some(text), Some(copies)) = (number(TEXT), number(TEXT_COPIES)) else {
        return Vec::new();
    };
    let of_copy = |copy: u32| {
        let functions = list
            .iter()
            .filter(move |symbol| symbol.section == Some(text) && symbol.kind == SymbolKind::Function);
        functions.map(move |symbol| OutputSymbol {
            name: format!("{}.{copy}", symbol.name),
            address: symbol.address + copy * bytes,
            section: Some(copies),
            binding: Binding::Local,
            ..symbol.clone()
        })
    };
    (1..=plan.sections[copies].size.checked_div(bytes).unwrap_or(0))
        .flat_map(of_copy)
        .collect()
}
