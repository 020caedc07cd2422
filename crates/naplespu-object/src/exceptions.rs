//! The unwind tables of exceptions: frames of functions, and handlers of their calls.

use crate::builder::{Builder, Purpose};
use cranelift_naplespu::CompiledCode;
use naplespu_runtime::unwind::{FRAME_WORDS, Word, calls, frame, return_address};
use npu_mc::asm::{Relocation, SectionId, Target};
use npu_mc::machine::WORD_SLOT;
use npu_mc::reloc::Reloc;
use npu_mc::reloc::elf::{UNWIND_CALLS_SECTION, UNWIND_FRAMES_SECTION};
use std::collections::HashMap;

/// The words of a section, with relocations.
#[derive(Debug, Default)]
struct Words {
    bytes: Vec<u8>,
    /// Relocations: the offset in the section, and the target section and offset.
    addresses: Vec<(u32, SectionId, i64)>,
}

impl Words {
    fn push(&mut self, word: Word, (section, offset): (SectionId, u32)) {
        let number = match word {
            Word::Number(number) => number,
            Word::Code(inner) => {
                let place = i64::from(offset) + i64::from(inner);
                self.addresses.push((self.bytes.len() as u32, section, place));
                0
            }
        };
        self.bytes.extend(number.to_le_bytes());
    }

    /// Appends the words to an empty section.
    fn append(self, builder: &mut Builder, section: SectionId) {
        let relocations = self.addresses.into_iter().map(|(offset, target, addend)| Relocation {
            section,
            offset,
            kind: Reloc::Abs32,
            target: Target::Section(target),
            addend,
            span: 0..0,
        });
        builder.append(section, self.bytes, WORD_SLOT, relocations.collect());
    }
}

/// The tables of the functions of an object.
#[derive(Debug, Default)]
pub struct Exceptions {
    frames: Words,
    /// The tables of calls, by section: one for all of `.text`, or one for each function with its
    /// own section, so that the linker can drop it with the function.
    calls: Vec<(SectionId, Words)>,
    /// The index of each of these sections in the list.
    places: HashMap<usize, usize>,
}

impl Exceptions {
    /// Adds the function at an offset of the section with this name. A function without calls has
    /// no entry.
    pub fn add(&mut self, builder: &mut Builder, place: (SectionId, u32), section: &str, code: &CompiledCode) {
        if return_address(code).is_none() {
            return;
        }
        for word in frame(code) {
            self.frames.push(word, place);
        }
        let own = calls(code);
        if own.is_empty() {
            return self.frames.push(Word::Number(0), place);
        }
        let name = format!(
            "{UNWIND_CALLS_SECTION}{}",
            section.strip_prefix(".text").unwrap_or_default()
        );
        let id = builder.section(&name, Purpose::ReadOnly);
        let at = *self.places.entry(id.index()).or_insert_with(|| {
            self.calls.push((id, Words::default()));
            self.calls.len() - 1
        });
        let (_, list) = &mut self.calls[at];
        // The last word of a frame is the address of its calls.
        self.frames.push(Word::Code(0), (id, list.bytes.len() as u32));
        own.into_iter().for_each(|word| list.push(word, place));
    }

    /// Writes the sections, if they are not empty.
    pub fn write(self, builder: &mut Builder) {
        debug_assert!(
            self.frames
                .bytes
                .len()
                .is_multiple_of((FRAME_WORDS * WORD_SLOT) as usize)
        );
        if self.frames.bytes.is_empty() {
            return;
        }
        let frames = builder.section(UNWIND_FRAMES_SECTION, Purpose::ReadOnly);
        self.frames.append(builder, frames);
        for (section, words) in self.calls {
            words.append(builder, section);
        }
    }
}
