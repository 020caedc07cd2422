//! All that reports want to know of a program.

use super::{DebugError, Frames, Lines};
use crate::elf::{ElfError, EntryBinding, EntryKind, EntryPlace, contents};

/// A name for a place.
#[derive(Clone, Debug)]
struct Name {
    start: u32,
    /// Where it ends, or its section if it does not say.
    end: u32,
    /// Of several at a place, the highest counts.
    rank: (bool, bool),
    name: String,
}

/// A section in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedSection {
    /// The name.
    pub name: String,
    /// Its first address.
    pub start: u32,
    /// One past its last.
    pub end: u32,
    /// The program may write it.
    pub write: bool,
}

/// What an executable says of itself.
#[derive(Clone, Debug, Default)]
pub struct ProgramInfo {
    names: Vec<Name>,
    /// The sections in memory that are not empty.
    pub sections: Vec<MappedSection>,
    /// How to unwind.
    pub frames: Frames,
    /// The lines of the source.
    pub lines: Lines,
    /// Tables that could not be read, and are left out.
    pub damaged: Vec<DebugError>,
}

impl ProgramInfo {
    /// Reads what an ELF file says.
    ///
    /// # Errors
    ///
    /// The file is not one of this machine, is cut off, or contradicts itself.
    pub fn read(bytes: &[u8]) -> Result<Self, ElfError> {
        let contents = contents(bytes)?;
        let mut info = Self::default();
        for section in contents
            .sections
            .iter()
            .filter(|section| section.alloc && section.size > 0)
        {
            info.sections.push(MappedSection {
                name: section.name.clone(),
                start: section.address,
                end: section.address.saturating_add(section.size),
                write: section.write,
            });
        }
        for symbol in contents.named_symbols().filter(|symbol| !symbol.name.is_empty()) {
            let EntryPlace::Section(section) = symbol.place else {
                continue;
            };
            let Some(section) = contents.sections.get(section).filter(|section| section.alloc) else {
                continue;
            };
            let end = match symbol.size {
                0 => section.address.saturating_add(section.size),
                size => symbol.value.saturating_add(size),
            };
            info.names.push(Name {
                start: symbol.value,
                end,
                rank: (
                    symbol.kind == EntryKind::Function,
                    symbol.binding != EntryBinding::Local,
                ),
                name: symbol.name.clone(),
            });
        }
        info.names.sort_by_key(|name| (name.start, name.rank));
        let section = |name: &str| contents.sections.iter().find(|section| section.name == name);
        if let Some(frames) = section(".eh_frame") {
            match Frames::new(contents.bytes(frames, bytes), frames.address) {
                Ok(frames) => info.frames = frames,
                Err(error) => info.damaged.push(error),
            }
        }
        match Lines::new(&|name| section(name).map_or(&[], |section| contents.bytes(section, bytes))) {
            Ok(lines) => info.lines = lines,
            Err(error) => info.damaged.push(error),
        }
        Ok(info)
    }

    /// The name of a place and the distance from it.
    pub fn name(&self, address: u32) -> Option<(&str, u32)> {
        let after = self.names.partition_point(|name| name.start <= address);
        let found = self
            .names
            .get(after.checked_sub(1)?)
            .filter(|name| address < name.end)?;
        Some((&found.name, address - found.start))
    }

    /// The address of a name; of several the one that ranks first: functions before data, global before local.
    pub fn address(&self, name: &str) -> Option<u32> {
        let all = self.names.iter().filter(|known| known.name == name);
        all.max_by_key(|known| known.rank).map(|known| known.start)
    }

    /// The section that an address is in.
    pub fn section(&self, address: u32) -> Option<&MappedSection> {
        self.sections
            .iter()
            .find(|section| (section.start..section.end).contains(&address))
    }

    /// A place of the code as text: name and distance, and the line of the source.
    pub fn describe(&self, address: u32) -> Option<String> {
        let name = self.name(address).map(|(name, distance)| match distance {
            0 => name.to_owned(),
            _ => format!("{name}+{distance:#x}"),
        });
        let line = self.lines.at(address).map(|(file, line)| format!("{file}:{line}"));
        match (name, line) {
            (Some(name), Some(line)) => Some(format!("{name} at {line}")),
            (name, line) => name.or(line),
        }
    }
}
