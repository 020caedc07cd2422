//! The data of a program for debuggers and reports.

use super::{DebugError, Frames, Lines};
use crate::elf::{ElfError, EntryBinding, EntryKind, EntryPlace, contents};

/// The maximum number of threads of a program.
const MAX_THREADS: u32 = 128;

/// The number of threads of a tile.
const TILE_THREADS: u32 = 8;

/// A name for an address.
#[derive(Clone, Debug)]
struct Name {
    start: u32,
    /// Its end address: from the symbol's size, or the end of its section.
    end: u32,
    /// The rank among several names at an address; the highest is used.
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
    /// Whether the program may write it.
    pub write: bool,
}

/// The stacks of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stacks {
    /// The lowest address of the stack of thread 0.
    start: u32,
    /// The size of each stack.
    size: u32,
    /// The distance between those of two tiles, if each tile has those of its core.
    tile_bytes: Option<u32>,
}

impl Stacks {
    /// Returns the thread whose stack contains an address.
    fn thread(&self, address: u32) -> Option<u32> {
        let offset = address.checked_sub(self.start)?;
        let Some(bytes) = self.tile_bytes else {
            return offset.checked_div(self.size).filter(|&thread| thread < MAX_THREADS);
        };
        let thread = offset.checked_rem(bytes)?.checked_div(self.size)?;
        (thread < TILE_THREADS).then_some(offset / bytes * TILE_THREADS + thread)
    }
}

/// The data of an executable.
#[derive(Clone, Debug, Default)]
pub struct ProgramInfo {
    names: Vec<Name>,
    /// The sections in memory, without empty ones.
    pub sections: Vec<MappedSection>,
    /// The unwinding table.
    pub frames: Frames,
    /// The source lines.
    pub lines: Lines,
    /// Errors of damaged tables, which are omitted.
    pub damaged: Vec<DebugError>,
    stacks: Option<Stacks>,
}

impl ProgramInfo {
    /// Reads the data of an ELF file.
    ///
    /// # Errors
    ///
    /// Fails if the file is not for this machine, is truncated, or is inconsistent.
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
        let number = |name: &str| {
            let numbers = contents
                .named_symbols()
                .filter(|symbol| symbol.place == EntryPlace::Absolute);
            numbers
                .filter(|symbol| symbol.name == name)
                .map(|symbol| symbol.value)
                .next()
        };
        let stacks = number("__npu_stacks").zip(number("__npu_stack_size"));
        info.stacks = stacks.map(|(start, size)| Stacks {
            start,
            size,
            tile_bytes: number("__npu_tile_bytes"),
        });
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

    /// Returns the name of an address and the distance from the start of the name.
    pub fn name(&self, address: u32) -> Option<(&str, u32)> {
        let after = self.names.partition_point(|name| name.start <= address);
        let found = self
            .names
            .get(after.checked_sub(1)?)
            .filter(|name| address < name.end)?;
        Some((&found.name, address - found.start))
    }

    /// Returns the name of the variable or function at an address, else the thread whose stack it
    /// is, else the writable section. Threads are counted over all cores.
    pub fn variable(&self, address: u32) -> Option<String> {
        if let Some((name, _)) = self.name(address) {
            return Some(name.to_owned());
        }
        if let Some(section) = self.section(address) {
            // Other bytes outside of symbols are padding.
            return section.write.then(|| section.name.clone());
        }
        let thread = self.stacks?.thread(address)?;
        Some(format!("stack of thread {thread}"))
    }

    /// Returns the address of a name. Of several symbols, functions precede data, and global
    /// symbols precede local ones.
    pub fn address(&self, name: &str) -> Option<u32> {
        let all = self.names.iter().filter(|known| known.name == name);
        all.max_by_key(|known| known.rank).map(|known| known.start)
    }

    /// Returns the section that contains an address.
    pub fn section(&self, address: u32) -> Option<&MappedSection> {
        self.sections
            .iter()
            .find(|section| (section.start..section.end).contains(&address))
    }

    /// Describes a code address as text: name and distance, and the source line.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_belong_to_threads() {
        let mut stacks = Stacks {
            start: 0x8_0000,
            size: 0x3c00,
            tile_bytes: None,
        };
        assert_eq!(stacks.thread(0x8_0000 + 9 * 0x3c00), Some(9));
        assert_eq!(
            (stacks.thread(0x7_ffff), stacks.thread(0x8_0000 + 128 * 0x3c00)),
            (None, None)
        );
        stacks.tile_bytes = Some(1 << 28);
        assert_eq!(stacks.thread(0x1008_0000 + 2 * 0x3c00 - 1), Some(9));
        assert_eq!(
            (stacks.thread(0xf008_0000), stacks.thread(0x8_0000 + 8 * 0x3c00)),
            (Some(120), None)
        );
        stacks.size = 0;
        assert_eq!(stacks.thread(0x8_0000), None);
    }
}
