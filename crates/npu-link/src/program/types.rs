//! The inputs, options and results of the linker.

use crate::image::{Image, Segment};
use npu_mc::asm::{Binding, Object, SymbolKind};
use npu_mc::machine::{BOOT_PC, CACHE_LINE, DCACHE_SETS};

/// The number of numbered threads of a tile.
pub(super) const TILE_THREADS: u32 = 8;

/// An object, with its name for messages.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// The name: a file, or a member of an archive.
    pub name: String,
    /// The object.
    pub object: Object,
}

/// A library. The linker takes objects out of it that define undefined symbols.
pub trait Library {
    /// Returns the object that defines the symbol, if it exists. The linker calls it once for each
    /// symbol.
    ///
    /// # Errors
    ///
    /// Returns why the object cannot be read.
    fn member(&mut self, symbol: &str) -> Result<Option<Input>, String>;
}

/// The memory layout of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLayout {
    /// Address of the first instruction.
    pub code: u32,
    /// Address of the data.
    pub data: u32,
    /// Lowest address of the stacks.
    pub stacks: u32,
    /// Size of each thread's stack in bytes.
    pub stack_size: u32,
}

impl MemoryLayout {
    /// The layout of the hardware's testbench (`docs/machine/memory.md`).
    pub const DEFAULT: Self = Self {
        code: BOOT_PC,
        data: 0x0080_0000,
        stacks: 0x0008_0000,
        // Not a multiple of the cache's size, because the threads of a core use the same stack
        // depths at the same time.
        stack_size: 0x4000 - DCACHE_SETS * CACHE_LINE / TILE_THREADS,
    };

    /// The layout of the Alveo board.
    pub const ALVEO: Self = Self {
        code: Self::DEFAULT.code + Self::BOARD,
        data: Self::DEFAULT.data + Self::BOARD,
        stacks: Self::DEFAULT.stacks + Self::BOARD + 0x8_0000,
        ..Self::DEFAULT
    };

    /// The start of the board's memory.
    const BOARD: u32 = 0x2000_0000;
}

/// Options of the linker.
#[derive(Clone, Debug)]
pub struct LinkOptions {
    /// The memory layout.
    pub layout: MemoryLayout,
    /// The function that the start-up code calls; without start-up code, the first instruction.
    pub entry: String,
    /// Whether the start-up code is linked.
    pub startup: bool,
    /// Whether unreferenced sections are dropped.
    pub gc_sections: bool,
    /// The number of threads that run the program, in all tiles together. They wait for
    /// constructors and for the initialization of the scratchpad.
    pub threads: u32,
    /// Whether each thread of a core has its own copy of all instructions, so that two threads
    /// never wait for the same line of the instruction cache (erratum
    /// `repeated_instruction_line_miss`). All threads of a core get copies, independent of
    /// `threads`. The option requires start-up code and a program without exceptions.
    pub text_per_thread: bool,
    /// Whether the stacks of a core are in the memory of its tile, at the addresses of the layout
    /// plus 2^28 for each tile. Otherwise the stacks of all tiles are adjacent, so that one tile
    /// serves their misses. The option requires a layout whose stacks are in the memory of tile 0,
    /// and memory of the other tiles. Thread-local storage stays adjacent.
    pub stacks_in_tiles: bool,
}

impl Default for LinkOptions {
    fn default() -> Self {
        Self {
            layout: MemoryLayout::DEFAULT,
            entry: "main".to_owned(),
            startup: true,
            gc_sections: false,
            threads: 1,
            text_per_thread: false,
            stacks_in_tiles: false,
        }
    }
}

/// A section of a program.
#[derive(Clone, Debug, Default)]
pub struct OutputSection {
    /// The name.
    pub name: String,
    /// The load address.
    pub address: u32,
    /// Size in bytes.
    pub size: u32,
    /// The largest alignment of its parts.
    pub align: u32,
    /// Whether it occupies memory. If not, it is a debug section at address 0.
    pub alloc: bool,
    /// Whether the program may write it.
    pub write: bool,
    /// Whether it contains instructions.
    pub exec: bool,
    /// Whether it contains only zeros, which are not stored.
    pub nobits: bool,
    /// The contents.
    pub bytes: Vec<u8>,
    /// The sections of objects that it consists of.
    pub parts: Vec<Part>,
}

/// A section of an object in a section of a program.
#[derive(Clone, Debug)]
pub struct Part {
    /// The index of the object, in link order.
    pub input: usize,
    /// The index of the section in the object.
    pub section: usize,
    /// The address.
    pub address: u32,
    /// Size in bytes.
    pub size: u32,
}

/// A symbol of a program.
#[derive(Clone, Debug)]
pub struct OutputSymbol {
    /// The name.
    pub name: String,
    /// The address or the number.
    pub address: u32,
    /// Size in bytes.
    pub size: u32,
    /// The index of its section; `None` for a number and for scratchpad or thread-local data.
    pub section: Option<usize>,
    /// The visibility.
    pub binding: Binding,
    /// The kind.
    pub kind: SymbolKind,
}

/// A linked program.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Address of the first instruction.
    pub entry: u32,
    /// The sections in ascending order of address.
    pub sections: Vec<OutputSection>,
    /// The named symbols.
    pub symbols: Vec<OutputSymbol>,
    /// The names of the objects.
    pub inputs: Vec<String>,
}

impl Program {
    /// Returns the contents of memory, including zeros.
    pub fn image(&self) -> Image {
        let loaded = self.sections.iter().filter(|section| section.alloc && section.size > 0);
        let segments = loaded.map(|section| {
            let mut bytes = section.bytes.clone();
            bytes.resize(section.size as usize, 0);
            Segment {
                address: section.address,
                bytes,
            }
        });
        Image {
            segments: segments.collect(),
            entry: Some(self.entry),
        }
    }
}
