//! `.eh_frame`: drops entries of functions that are not in the program.

use super::error::ProgramError;
use super::linking::Linking;
use super::types::Input;
use crate::elf::contents_of;
use npu_mc::asm::{Object, Piece, Relocation, SectionId, SymbolValue, Target};
use std::collections::{BTreeMap, HashMap};

/// The name of the section.
pub(super) const EH_FRAME: &str = ".eh_frame";

/// Size in bytes of the zero that ends the section in a program.
pub(super) const TERMINATOR: u64 = 4;

/// Size of a word in bytes.
const WORD: usize = 4;

impl Linking<'_> {
    /// Drops the entries of functions that are not kept.
    pub(super) fn prune_frames(&mut self, kept: &mut [Vec<bool>]) {
        for (number, input) in self.inputs.iter_mut().enumerate() {
            let own: Vec<usize> = (0..input.object.sections.len())
                .filter(|&index| {
                    let section = &input.object.sections[index];
                    section.name == EH_FRAME && section.alloc && !section.nobits
                })
                .collect();
            if own.is_empty() {
                continue;
            }
            let mut relocations: HashMap<usize, Vec<Relocation>> = HashMap::new();
            input.object.relocations.retain(|relocation| {
                let section = relocation.section.index();
                if !own.contains(&section) {
                    return true;
                }
                relocations.entry(section).or_default().push(relocation.clone());
                false
            });
            for section in own {
                let mut list = relocations.remove(&section).unwrap_or_default();
                list.sort_by_key(|relocation| relocation.offset);
                match prune(input, section, list, &kept[number]) {
                    Ok(any) => kept[number][section] = any,
                    Err((offset, message)) => self.errors.push(ProgramError::Frames {
                        object: input.name.clone(),
                        section: EH_FRAME,
                        offset,
                        message,
                    }),
                }
            }
        }
    }
}

/// Returns whether the target of an entry's first address is in the program.
pub(super) fn is_kept(object: &Object, target: Target, kept: &[bool]) -> bool {
    let section = match target {
        Target::Section(id) => id.index(),
        Target::Symbol(id) => match object.symbols.get(id.index()).map(|symbol| symbol.value) {
            Some(SymbolValue::Place { section, .. }) => section.index(),
            _ => return true,
        },
    };
    kept.get(section).copied().unwrap_or(false)
}

/// Rewrites a section. Returns whether an entry is left, or the offset of a fault with a message.
fn prune(
    input: &mut Input,
    section: usize,
    relocations: Vec<Relocation>,
    kept: &[bool],
) -> Result<bool, (usize, String)> {
    let bytes = contents_of(&input.object.sections[section]);
    let mut out: Vec<u8> = Vec::new();
    let mut moved = Vec::new();
    // The common information entries: the end of each, and its new offset if an entry uses it.
    let mut common: BTreeMap<usize, (usize, Option<usize>)> = BTreeMap::new();
    let own = |start: usize, end: usize| {
        let first = relocations.partition_point(|relocation| (relocation.offset as usize) < start);
        let last = relocations.partition_point(|relocation| (relocation.offset as usize) < end);
        relocations.get(first..last).unwrap_or_default()
    };
    let mut copy = |out: &mut Vec<u8>, start: usize, end: usize| {
        let place = out.len();
        out.extend_from_slice(&bytes[start..end]);
        moved.extend(own(start, end).iter().map(|relocation| Relocation {
            offset: (relocation.offset as usize - start + place) as u32,
            ..relocation.clone()
        }));
        place
    };
    let mut at = 0;
    while at < bytes.len() {
        let length = word(&bytes, at).ok_or((at, "an entry is cut off".to_owned()))? as usize;
        if length == 0 {
            at += WORD;
            continue;
        }
        let end = at + WORD + length;
        let (true, true, Some(id)) = (length >= WORD, end <= bytes.len(), word(&bytes, at + WORD)) else {
            return Err((at, format!("an entry of {length} bytes does not fit")));
        };
        if !end.is_multiple_of(WORD) {
            return Err((at, "an entry does not end at a word".to_owned()));
        }
        if id == 0 {
            // This project's exceptions are unwound by separate tables.
            let names = bytes[at + 2 * WORD..end]
                .split(|&byte| byte == 0)
                .next()
                .unwrap_or_default();
            let augmentation = names.get(1..).unwrap_or_default();
            if augmentation.contains(&b'P') || augmentation.contains(&b'L') {
                let what = "has exception handlers in an unsupported format";
                let text = String::from_utf8_lossy(augmentation).into_owned();
                return Err((at, format!("an entry (`{text}`) {what}")));
            }
            common.insert(at, (end, None));
        } else {
            let to = (at + WORD).checked_sub(id as usize);
            let found = to.and_then(|to| Some((to, common.get_mut(&to)?)));
            let Some((to, (common_end, place))) = found else {
                return Err((at, "an entry without a common information entry".to_owned()));
            };
            let first = own(at + 2 * WORD, at + 3 * WORD).first();
            if first.is_none_or(|first| is_kept(&input.object, first.target, kept)) {
                let place = *place.get_or_insert_with(|| copy(&mut out, to, *common_end));
                let here = copy(&mut out, at, end) + WORD;
                out[here..here + WORD].copy_from_slice(&((here - place) as u32).to_le_bytes());
            }
        }
        at = end;
    }
    let any = !out.is_empty();
    let own = &mut input.object.sections[section];
    own.size = out.len() as u64;
    // Entries are contiguous.
    own.align = WORD as u32;
    own.pieces = vec![Piece { offset: 0, bytes: out }];
    debug_assert!(
        moved
            .iter()
            .all(|relocation| relocation.section == SectionId::new(section as u32))
    );
    input.object.relocations.extend(moved);
    Ok(any)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}
