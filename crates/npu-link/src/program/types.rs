//! What is linked, how, and what comes of it.

use crate::image::{Image, Segment};
use npu_mc::asm::{Binding, Object, SymbolKind};
use npu_mc::machine::{BOOT_PC, CACHE_LINE, DCACHE_SETS};

/// Threads of a tile that have numbers.
pub(super) const TILE_THREADS: u32 = 8;

/// An object with the name that messages have for it.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// The name: a file, or a member of an archive.
    pub name: String,
    /// What is in it.
    pub object: Object,
}

/// A library: the linker takes an object out of it to define a symbol that is undefined so far.
pub trait Library {
    /// The object that defines the symbol, if there is one. It is asked for once for each symbol.
    ///
    /// # Errors
    ///
    /// Why that object cannot be read.
    fn member(&mut self, symbol: &str) -> Result<Option<Input>, String>;
}

/// Where what goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLayout {
    /// Address of the first instruction.
    pub code: u32,
    /// Address of the data.
    pub data: u32,
    /// Lowest address of the stacks.
    pub stacks: u32,
    /// Bytes of the stack of each thread.
    pub stack_size: u32,
}

impl MemoryLayout {
    /// That of the hardware's testbench (`docs/machine/memory.md`).
    pub const DEFAULT: Self = Self {
        code: BOOT_PC,
        data: 0x0080_0000,
        stacks: 0x0008_0000,
        // Not a multiple of the cache's size: the threads of a core use the same depths at the same time.
        stack_size: 0x4000 - DCACHE_SETS * CACHE_LINE / TILE_THREADS,
    };

    /// That of the Alveo board.
    pub const ALVEO: Self = Self {
        code: Self::DEFAULT.code + Self::BOARD,
        data: Self::DEFAULT.data + Self::BOARD,
        stacks: Self::DEFAULT.stacks + Self::BOARD + 0x8_0000,
        ..Self::DEFAULT
    };

    /// Where the memory of the board begins.
    const BOARD: u32 = 0x2000_0000;
}

/// How a program is made.
#[derive(Clone, Debug)]
pub struct LinkOptions {
    /// Where what goes.
    pub layout: MemoryLayout,
    /// The function that the start-up code calls; without start-up code, the first instruction.
    pub entry: String,
    /// Whether the start-up code is linked.
    pub startup: bool,
    /// Whether sections that nothing refers to are left out.
    pub gc_sections: bool,
    /// How many threads run the program, of all tiles together: they wait for constructors and for the scratchpad.
    pub threads: u32,
    /// Whether each thread of a core has a copy of all instructions for itself, so that no two threads ever wait for the same line of
    /// the instruction cache (erratum `repeated_instruction_line_miss`). There are copies for all threads that a core has, whatever `threads`
    /// says. It wants start-up code, and programs without exceptions.
    pub text_per_thread: bool,
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
        }
    }
}

/// A section of a program.
#[derive(Clone, Debug, Default)]
pub struct OutputSection {
    /// The name.
    pub name: String,
    /// Where it is loaded.
    pub address: u32,
    /// Bytes.
    pub size: u32,
    /// The largest alignment of what is in it.
    pub align: u32,
    /// It takes memory; others are for debuggers, and have the address 0.
    pub alloc: bool,
    /// The program may write it.
    pub write: bool,
    /// It holds instructions.
    pub exec: bool,
    /// It holds nothing but zeros, which are not stored.
    pub nobits: bool,
    /// The contents.
    pub bytes: Vec<u8>,
    /// Where each part comes from.
    pub parts: Vec<Part>,
}

/// What an object has in a section of a program.
#[derive(Clone, Debug)]
pub struct Part {
    /// The object's number, in the order in which objects were linked.
    pub input: usize,
    /// The section's number in the object.
    pub section: usize,
    /// Address.
    pub address: u32,
    /// Bytes.
    pub size: u32,
}

/// A symbol of a program.
#[derive(Clone, Debug)]
pub struct OutputSymbol {
    /// The name.
    pub name: String,
    /// What it stands for.
    pub address: u32,
    /// Bytes.
    pub size: u32,
    /// Number of its section; none for a number, and for what is in the scratchpad or thread-local.
    pub section: Option<usize>,
    /// Who sees it.
    pub binding: Binding,
    /// What it is.
    pub kind: SymbolKind,
}

/// A linked program.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Address of the first instruction.
    pub entry: u32,
    /// The sections, by rising address.
    pub sections: Vec<OutputSection>,
    /// The symbols with names.
    pub symbols: Vec<OutputSymbol>,
    /// Names of the objects.
    pub inputs: Vec<String>,
}

impl Program {
    /// What has to be in memory, zeros included.
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
