//! Tables of exception handlers: drops entries of functions that are not in the program, and sorts
//! the others by address.

use super::error::ProgramError;
use super::frames::is_kept;
use super::linking::Linking;
use super::symbols::{UNWIND_COUNT, UNWIND_END, UNWIND_START, symbol_of};
use super::types::OutputSection;
use crate::elf::contents_of;
use npu_mc::asm::{Piece, Relocation, Section, SymbolId, SymbolValue, Target};
use npu_mc::machine::WORD_SLOT;
use npu_mc::reloc::elf::{UNWIND_CALLS_SECTION, UNWIND_FRAME_WORDS, UNWIND_FRAMES_SECTION};

/// Size of a frame entry in bytes.
pub(super) const FRAME: u32 = UNWIND_FRAME_WORDS as u32 * WORD_SLOT;

/// Offset of the address of the call table in a frame entry.
const CALLS: u32 = FRAME - WORD_SLOT;

fn is_frames(section: &Section) -> bool {
    section.name == UNWIND_FRAMES_SECTION && section.alloc && !section.nobits
}

fn is_calls(section: &Section) -> bool {
    let rest = section.name.strip_prefix(UNWIND_CALLS_SECTION);
    section.alloc && !section.nobits && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

impl Linking<'_> {
    /// Drops the tables of functions that are not in the program; drops all tables if the program
    /// does not use them.
    pub(super) fn prune_exceptions(&mut self, kept: &mut [Vec<bool>]) {
        let is_read = self.is_read(kept);
        for (number, input) in self.inputs.iter_mut().enumerate() {
            let sections = &input.object.sections;
            let frames: Vec<usize> = (0..sections.len())
                .filter(|&index| is_frames(&sections[index]))
                .collect();
            for (section, kept) in sections.iter().zip(&mut kept[number]) {
                if is_frames(section) || is_calls(section) {
                    *kept = false;
                }
            }
            if !is_read || frames.is_empty() {
                continue;
            }
            let mut relocations: Vec<Vec<Relocation>> = vec![Vec::new(); sections.len()];
            input.object.relocations.retain(|relocation| {
                let section = relocation.section.index();
                if !frames.contains(&section) {
                    return true;
                }
                relocations[section].push(relocation.clone());
                false
            });
            for section in frames {
                let list = std::mem::take(&mut relocations[section]);
                if let Err((offset, message)) = prune(&mut input.object, section, list, &mut kept[number]) {
                    self.errors.push(ProgramError::Frames {
                        object: input.name.clone(),
                        section: UNWIND_FRAMES_SECTION,
                        offset,
                        message,
                    });
                }
            }
        }
    }

    /// Returns whether a kept section refers to the symbols of the tables.
    fn is_read(&self, kept: &[Vec<bool>]) -> bool {
        let names = [UNWIND_START, UNWIND_END, UNWIND_COUNT];
        self.inputs.iter().enumerate().any(|(number, input)| {
            input.object.relocations.iter().any(|relocation| {
                let section = relocation.section.index();
                let Target::Symbol(id) = relocation.target else {
                    return false;
                };
                let is_own = symbol_of(&self.inputs, (number, id)).is_some_and(|symbol| {
                    symbol.value == SymbolValue::Undefined && names.contains(&symbol.name.as_str())
                });
                is_own && kept[number].get(section).copied().unwrap_or(false)
            })
        })
    }
}

/// Rewrites the frame entries of an object, and keeps the sections with their call tables. An error
/// has the offset of the fault.
fn prune(
    object: &mut npu_mc::asm::Object,
    section: usize,
    mut relocations: Vec<Relocation>,
    kept: &mut [bool],
) -> Result<(), (usize, String)> {
    let bytes = contents_of(&object.sections[section]);
    if !bytes.len().is_multiple_of(FRAME as usize) {
        let whole = bytes.len() - bytes.len() % FRAME as usize;
        return Err((whole, format!("a frame is cut off: each has {FRAME} bytes")));
    }
    relocations.sort_by_key(|relocation| relocation.offset);
    let mut out: Vec<u8> = Vec::new();
    for (number, frame) in bytes.chunks_exact(FRAME as usize).enumerate() {
        let start = number as u32 * FRAME;
        let first = relocations.partition_point(|relocation| relocation.offset < start);
        let end = relocations.partition_point(|relocation| relocation.offset < start + FRAME);
        let own = &relocations[first..end];
        let Some(function) = own.first().filter(|relocation| relocation.offset == start) else {
            return Err((start as usize, "a frame without the address of its function".to_owned()));
        };
        if !is_kept(object, function.target, kept) {
            continue;
        }
        for relocation in own.iter().filter(|relocation| relocation.offset == start + CALLS) {
            let section = match relocation.target {
                Target::Section(id) => Some(id.index()),
                Target::Symbol(id) => place_of(object, id),
            };
            // A call table in another section needs no special handling: references keep that
            // section.
            if let Some(index) = section.filter(|&index| object.sections.get(index).is_some_and(is_calls)) {
                kept[index] = true;
            }
        }
        let moved = own.iter().map(|relocation| Relocation {
            offset: relocation.offset - start + out.len() as u32,
            ..relocation.clone()
        });
        object.relocations.extend(moved);
        out.extend_from_slice(frame);
    }
    kept[section] = !out.is_empty();
    let own = &mut object.sections[section];
    own.size = out.len() as u64;
    // Entries are contiguous.
    own.align = WORD_SLOT;
    own.pieces = vec![Piece { offset: 0, bytes: out }];
    Ok(())
}

/// Returns the index of the section in which an object defines a symbol.
fn place_of(object: &npu_mc::asm::Object, id: SymbolId) -> Option<usize> {
    match object.symbols.get(id.index())?.value {
        SymbolValue::Place { section, .. } => Some(section.index()),
        _ => None,
    }
}

/// Sorts the frame entries of a program by address, for the binary search at run time.
pub(super) fn sort(section: &mut OutputSection) {
    if section.name != UNWIND_FRAMES_SECTION || !section.alloc {
        return;
    }
    let start = |frame: &[u8]| frame.first_chunk().map_or(0, |word| u32::from_le_bytes(*word));
    let mut frames: Vec<&[u8]> = section.bytes.chunks(FRAME as usize).collect();
    frames.sort_by_key(|frame| start(frame));
    section.bytes = frames.concat();
}
