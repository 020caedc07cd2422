//! Sections written by `gimli`, with their relocations.

use crate::builder::{Builder, Purpose};
use gimli::write::{EndianVec, Error, RelocateWriter, Relocation, RelocationTarget};
use gimli::{LittleEndian, SectionId as DebugSection};
use npu_mc::asm::{self, SectionId, Target};
use npu_mc::machine::WORD_SLOT;
use npu_mc::reloc::Reloc;
use std::collections::HashMap;

/// The contents of a section. Symbols are section numbers of the object.
#[derive(Clone, Debug)]
pub struct Relocated {
    bytes: EndianVec<LittleEndian>,
    relocations: Vec<Relocation>,
}

impl Default for Relocated {
    fn default() -> Self {
        Self {
            bytes: EndianVec::new(LittleEndian),
            relocations: Vec::new(),
        }
    }
}

impl RelocateWriter for Relocated {
    type Writer = EndianVec<LittleEndian>;

    fn writer(&self) -> &Self::Writer {
        &self.bytes
    }

    fn writer_mut(&mut self) -> &mut Self::Writer {
        &mut self.bytes
    }

    fn relocate(&mut self, relocation: Relocation) {
        self.relocations.push(relocation);
    }
}

/// The sections of the object that hold debug sections.
pub type RelocationTargets = HashMap<DebugSection, SectionId>;

impl Relocated {
    /// Returns whether the section has no contents.
    pub fn is_empty(&self) -> bool {
        self.bytes.slice().is_empty()
    }

    /// Appends the contents to the section with this name.
    ///
    /// # Errors
    ///
    /// A relocation is not a word, or refers to a section that does not exist.
    pub fn append(
        self,
        builder: &mut Builder,
        name: &str,
        alloc: bool,
        align: u32,
        targets: &RelocationTargets,
    ) -> Result<(), Error> {
        let purpose = if alloc { Purpose::ReadOnly } else { Purpose::Debug };
        let section = builder.section(name, purpose);
        let mut relocations = Vec::with_capacity(self.relocations.len());
        for relocation in &self.relocations {
            if u32::from(relocation.size) != WORD_SLOT {
                return Err(Error::UnsupportedWordSize(relocation.size));
            }
            let target = match relocation.target {
                RelocationTarget::Symbol(number) => SectionId::new(number as u32),
                RelocationTarget::Section(own) => *targets.get(&own).ok_or(Error::InvalidReference)?,
            };
            relocations.push(asm::Relocation {
                section,
                offset: u32::try_from(relocation.offset).map_err(|_| Error::LengthOutOfBounds)?,
                kind: Reloc::Abs32,
                target: Target::Section(target),
                addend: relocation.addend,
                span: 0..0,
            });
        }
        builder.append(section, self.bytes.into_vec(), align, relocations);
        Ok(())
    }
}
