//! Merges sections of the same kind and assigns addresses.

use super::error::ProgramError;
use super::exceptions;
use super::frames::{EH_FRAME, TERMINATOR};
use super::linking::Linking;
use super::relocations::Veneers;
use super::symbols::{COPY_BYTES, STACK_SIZE, STACKS, TILE_BYTES, UNWIND_COUNT, UNWIND_END, UNWIND_START};
use super::types::{OutputSection, Part, TILE_THREADS};
use crate::elf::LARGEST;
use crate::incremental::VENEER_SIZE;
use crate::startup;
use npu_mc::asm::Section;
use npu_mc::machine::{CACHE_LINE, INSTRUCTION_SIZE, SCRATCHPAD_SIZE};
use npu_mc::reloc::elf;
use std::collections::HashMap;

/// The barrier at which threads wait for the work of thread 0 before `main`: the last barrier of
/// tile 0.
const START_BARRIER: u32 = 31;

/// The bytes of memory whose home is one tile (`docs/machine/several-cores.md`).
pub(super) const HOME_BYTES: u32 = 1 << 28;

/// The section of all instructions.
pub(super) const TEXT: &str = ".text";

/// The section with the copies of all instructions, for all threads of a core except the first.
pub(super) const TEXT_COPIES: &str = ".text.copies";

/// The kinds of merged sections, in their order in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    TextCopies,
    ReadOnly,
    Frames,
    UnwindFrames,
    UnwindCalls,
    InitArray,
    Data,
    TlsImage,
    ScratchpadImage,
    Bss,
    TlsBlocks,
}

pub(super) const KINDS: [(Kind, &str); 12] = [
    (Kind::Text, TEXT),
    (Kind::TextCopies, TEXT_COPIES),
    (Kind::ReadOnly, ".rodata"),
    (Kind::Frames, EH_FRAME),
    (Kind::UnwindFrames, elf::UNWIND_FRAMES_SECTION),
    (Kind::UnwindCalls, elf::UNWIND_CALLS_SECTION),
    (Kind::InitArray, ".init_array"),
    (Kind::Data, ".data"),
    (Kind::TlsImage, ".tdata"),
    (Kind::ScratchpadImage, elf::SCRATCHPAD_SECTION),
    (Kind::Bss, ".bss"),
    (Kind::TlsBlocks, ".tls_blocks"),
];

fn kind_of(section: &Section) -> Kind {
    let family = |name: &str| {
        section.name == name
            || section
                .name
                .strip_prefix(name)
                .is_some_and(|rest| rest.starts_with('.'))
    };
    if section.name == elf::SCRATCHPAD_SECTION {
        Kind::ScratchpadImage
    } else if family(".tdata") || family(".tbss") {
        Kind::TlsImage
    } else if family(".init_array") {
        Kind::InitArray
    } else if section.name == EH_FRAME && !section.nobits {
        Kind::Frames
    } else if section.name == elf::UNWIND_FRAMES_SECTION && !section.nobits {
        Kind::UnwindFrames
    } else if family(elf::UNWIND_CALLS_SECTION) && !section.nobits {
        Kind::UnwindCalls
    } else if section.exec {
        Kind::Text
    } else if section.nobits {
        Kind::Bss
    } else if section.write {
        Kind::Data
    } else {
        Kind::ReadOnly
    }
}

/// The sections with their addresses.
pub(super) struct Plan {
    pub(super) sections: Vec<OutputSection>,
    /// For each section of each object, the start address of its symbols and the index of the
    /// program's section. For the scratchpad and for thread-local data, the start is an offset in
    /// the scratchpad or in a thread's block.
    pub(super) starts: Vec<Vec<Option<(u32, usize)>>>,
}

impl Linking<'_> {
    pub(super) fn plan(&mut self, kept: &[Vec<bool>], veneers: &Veneers) -> Result<Plan, Vec<ProgramError>> {
        let layout = self.options.layout;
        let mut plan = Plan {
            sections: Vec::new(),
            starts: self
                .inputs
                .iter()
                .map(|input| vec![None; input.object.sections.len()])
                .collect(),
        };
        let mut next = u64::from(layout.code);
        let mut errors = Vec::new();
        let mut stored = 0;
        for (kind, name) in KINDS {
            if kind == Kind::TextCopies {
                match self.copies(&plan) {
                    Ok(Some(own)) => {
                        next = u64::from(own.address) + u64::from(own.size);
                        plan.sections.push(own);
                    }
                    Ok(None) => {}
                    Err(error) => errors.push(error),
                }
                continue;
            }
            if kind == Kind::InitArray {
                // Writable sections start at the data address of the layout.
                next = next.max(layout.data.into());
            }
            let mut own = OutputSection {
                name: name.to_owned(),
                align: INSTRUCTION_SIZE,
                alloc: true,
                write: !matches!(
                    kind,
                    Kind::Text | Kind::ReadOnly | Kind::Frames | Kind::UnwindFrames | Kind::UnwindCalls
                ),
                exec: kind == Kind::Text,
                nobits: matches!(kind, Kind::Bss | Kind::TlsBlocks),
                ..OutputSection::default()
            };
            let moves = matches!(kind, Kind::ScratchpadImage | Kind::TlsImage);
            if kind != Kind::Text {
                // Align to cache lines: start-up code copies whole lines, and no two sections may
                // share one.
                own.align = CACHE_LINE;
            }
            // The first section in memory stays at the address of the layout. The others start at
            // their largest alignment, so that their parts remain aligned after a copy to another
            // address.
            if kind != Kind::Text {
                own.align = self.largest_align(kept, kind).max(own.align);
            }
            let start = next.next_multiple_of(own.align.into());
            let mut end = start;
            if kind == Kind::TlsBlocks {
                end += self.tls_blocks(&plan, start)?;
            }
            for (number, input) in self.inputs.iter().enumerate() {
                for (index, section) in input.object.sections.iter().enumerate() {
                    if !kept[number][index] || !section.alloc || kind_of(section) != kind {
                        continue;
                    }
                    let at = end.next_multiple_of(section.align.max(INSTRUCTION_SIZE).into());
                    end = at + section.size;
                    let symbols = if moves { at - start } else { at };
                    let fits = |address: u64| u32::try_from(address).ok();
                    let (Some(address), Some(symbols), Some(size)) = (fits(at), fits(symbols), fits(section.size))
                    else {
                        errors.push(ProgramError::Layout(format!(
                            "{}:({}) goes past the end of memory",
                            input.name, section.name
                        )));
                        continue;
                    };
                    plan.starts[number][index] = Some((symbols, plan.sections.len()));
                    own.parts.push(Part {
                        input: number,
                        section: index,
                        address,
                        size,
                    });
                    if let Some(own) = veneers.get(&(number, index)) {
                        end = end.next_multiple_of(INSTRUCTION_SIZE.into()) + u64::from(VENEER_SIZE) * own.len() as u64;
                    }
                }
            }
            if moves {
                end = end.next_multiple_of(4);
            }
            if kind == Kind::Frames && !own.parts.is_empty() {
                end += TERMINATOR;
            }
            if kind == Kind::TlsImage && own.align > CACHE_LINE {
                let align = own.align;
                errors.push(ProgramError::Layout(format!(
                    "`{name}` requires an alignment of {align}, more than the {CACHE_LINE} of the threads' blocks"
                )));
            }
            // The last address and the address after it both have to fit in 32 bits.
            let (Ok(address), Ok(size), Ok(_)) = (u32::try_from(start), u32::try_from(end - start), u32::try_from(end))
            else {
                errors.push(ProgramError::Layout(format!("`{name}` goes past the end of memory")));
                break;
            };
            stored += if own.nobits { 0 } else { u64::from(size) };
            if stored > LARGEST {
                errors.push(ProgramError::Layout(format!(
                    "up to `{name}` the program has more than {LARGEST} bytes"
                )));
                break;
            }
            if kind == Kind::ScratchpadImage && size > SCRATCHPAD_SIZE {
                errors.push(ProgramError::Layout(format!(
                    "the scratchpad has {SCRATCHPAD_SIZE} bytes, its data {size}"
                )));
            }
            own.address = address;
            own.size = size;
            next = end;
            plan.sections.push(own);
        }
        self.place_debug(&mut plan, kept, &mut errors);
        self.check_stacks(&plan, &mut errors);
        if !errors.is_empty() {
            return Err(errors);
        }
        self.give(&plan);
        Ok(plan)
    }

    /// Merges debug sections by name. They do not occupy memory.
    fn place_debug(&self, plan: &mut Plan, kept: &[Vec<bool>], errors: &mut Vec<ProgramError>) {
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        let mut stored = 0;
        for (number, input) in self.inputs.iter().enumerate() {
            for (index, section) in input.object.sections.iter().enumerate() {
                if section.alloc || section.nobits || !kept[number][index] {
                    continue;
                }
                let out = *numbers.entry(&section.name).or_insert_with(|| {
                    plan.sections.push(OutputSection {
                        name: section.name.clone(),
                        align: 1,
                        ..OutputSection::default()
                    });
                    plan.sections.len() - 1
                });
                let own = &mut plan.sections[out];
                let start = u64::from(own.size).next_multiple_of(section.align.max(1).into());
                stored += section.size;
                let (Ok(address), Ok(end)) = (u32::try_from(start), u32::try_from(start + section.size)) else {
                    errors.push(ProgramError::Layout(format!("`{}` is too large", own.name)));
                    return;
                };
                if stored > LARGEST {
                    errors.push(ProgramError::Layout(format!(
                        "the sections for debuggers have more than {LARGEST} bytes"
                    )));
                    return;
                }
                own.align = own.align.max(section.align);
                own.size = end;
                plan.starts[number][index] = Some((address, out));
                own.parts.push(Part {
                    input: number,
                    section: index,
                    address,
                    size: end - address,
                });
            }
        }
    }

    /// Returns the largest alignment among the sections of a kind.
    fn largest_align(&self, kept: &[Vec<bool>], kind: Kind) -> u32 {
        let all = self
            .inputs
            .iter()
            .zip(kept)
            .flat_map(|(input, kept)| input.object.sections.iter().zip(kept));
        let own = all.filter(|&(section, &kept)| kept && kind_of(section) == kind);
        own.map(|(section, _)| section.align).max().unwrap_or(1)
    }

    /// Returns the number of threads with a stack and a block of thread-local storage: all threads
    /// of each tile.
    fn blocks(&self) -> u64 {
        u64::from(self.options.threads)
            .max(1)
            .next_multiple_of(TILE_THREADS.into())
    }

    /// Returns the total size of the blocks of thread-local storage in bytes.
    fn tls_blocks(&self, plan: &Plan, start: u64) -> Result<u64, Vec<ProgramError>> {
        let size = u64::from(self.tls_size(plan));
        let bytes = size.saturating_mul(self.blocks());
        if start.saturating_add(bytes) > 1 << 32 {
            return Err(vec![ProgramError::Layout(
                "thread-local storage goes past the end of memory".to_owned(),
            )]);
        }
        Ok(bytes)
    }

    /// Returns the distance between two blocks of thread-local storage in bytes.
    fn tls_size(&self, plan: &Plan) -> u32 {
        section(plan, Kind::TlsImage).map_or(0, |image| image.size.next_multiple_of(CACHE_LINE))
    }

    fn check_stacks(&self, plan: &Plan, errors: &mut Vec<ProgramError>) {
        let layout = self.options.layout;
        let first = u64::from(layout.stacks);
        let in_tiles = self.options.stacks_in_tiles;
        let blocks = if in_tiles { TILE_THREADS.into() } else { self.blocks() };
        let last = first.saturating_add(u64::from(layout.stack_size).saturating_mul(blocks));
        if in_tiles && self.options.startup && last > HOME_BYTES.into() {
            errors.push(ProgramError::Layout(format!(
                "stacks from {first:#010x} to {last:#010x} are not in the memory of tile 0, as stacks in the memory of each tile require"
            )));
            return;
        }
        let tiles = if in_tiles {
            self.blocks() / u64::from(TILE_THREADS)
        } else {
            1
        };
        for section in plan
            .sections
            .iter()
            .filter(|section| self.options.startup && section.alloc && section.size > 0)
        {
            let (start, end) = (
                u64::from(section.address),
                u64::from(section.address) + u64::from(section.size),
            );
            for offset in (0..tiles).map(|tile| tile * u64::from(HOME_BYTES)) {
                let (first, last) = (first + offset, last + offset);
                if start < last && first < end {
                    errors.push(ProgramError::Layout(format!(
                        "`{}`, {start:#010x} to {end:#010x}, overlaps the stacks, {first:#010x} to {last:#010x}",
                        section.name
                    )));
                }
            }
        }
    }

    /// Defines the linker's own symbols.
    fn give(&mut self, plan: &Plan) {
        let range = |kind: Kind| section(plan, kind).map_or((0, 0), |own| (own.address, own.address + own.size));
        let (tls, tls_end) = range(Kind::TlsImage);
        let (scratchpad, scratchpad_end) = range(Kind::ScratchpadImage);
        let (constructors, constructors_end) = range(Kind::InitArray);
        let (unwind, unwind_end) = range(Kind::UnwindFrames);
        let waits = scratchpad != scratchpad_end || constructors != constructors_end;
        let waiting = if waits && self.options.threads > 1 {
            self.options.threads
        } else {
            0
        };
        let layout = self.options.layout;
        let values = [
            ("__npu_tile_threads", TILE_THREADS),
            (STACK_SIZE, layout.stack_size),
            (STACKS, layout.stacks),
            (TILE_BYTES, HOME_BYTES),
            ("__npu_tls_image", tls),
            ("__npu_tls_bytes", tls_end - tls),
            ("__npu_tls_start", range(Kind::TlsBlocks).0),
            ("__npu_tls_size", self.tls_size(plan)),
            ("__scratchpad_data_start", scratchpad),
            ("__scratchpad_data_end", scratchpad_end),
            ("__init_array_start", constructors),
            ("__init_array_end", constructors_end),
            (UNWIND_START, unwind),
            (UNWIND_END, unwind_end),
            (UNWIND_COUNT, (unwind_end - unwind) / exceptions::FRAME),
            ("__npu_waiting", waiting),
            ("__npu_start_barrier", START_BARRIER),
            (COPY_BYTES, self.copy_bytes(plan)),
        ];
        self.given = values.into_iter().collect();
        let entry = self.globals.get(&self.options.entry).copied();
        if let Some(entry) = entry.and_then(|entry| self.value(plan, entry)) {
            self.given.insert(startup::MAIN, entry);
        }
    }
}

pub(super) fn section(plan: &Plan, kind: Kind) -> Option<&OutputSection> {
    let (_, name) = KINDS.iter().find(|(known, _)| *known == kind)?;
    plan.sections.iter().find(|section| section.name == *name)
}
