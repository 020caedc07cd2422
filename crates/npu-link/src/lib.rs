//! The linker: objects become images and programs.
//!
//! # Contract
//!
//! [`link`] gives the sections of an [`Object`](npu_mc::asm::Object) addresses, applies its relocations and gives an [`Image`] with the
//! addresses of all sections ([`Linked`]), or all faults, each with its place in the source of the object. An image is bytes with addresses; [`Image::parse`] and
//! [`Image::write`] know the file formats. [`listing`], [`show_encoding`] and [`symbol_map`] show what came out as text.
//!
//! [`link_program`] makes a [`Program`] of several objects, with what they need of libraries ([`Library`], [`Archive`]): it finds what names stand
//! for, puts sections of one kind together, and gives all faults at once, each with object and section. [`elf`] reads and writes object files
//! and executables.
//!
//! [`Linker`] links a program that grows, as a JIT wants it: an object never moves, and references wait for their symbols.
//!
//! # Objects
//!
//! There is one type for an object file as data, [`npu_mc::asm::Object`]: sections, symbols and relocations, with places in a source. It is
//! what [`link`] takes and what object files are written from. A growing program has none: a function comes with its bytes borrowed
//! ([`Contents`]), is copied into memory at once, and nothing but its address and its references stays ([`Placed`]). These refer to what
//! the user has for a name (an id of Cranelift's `Module`), since most functions of a JIT never have a text for one; and they may wait
//! for ever, which is a fault in [`link`]. What both do to a word is the same code, [`npu_mc::reloc::apply`].
//!
//! # Structure
//!
//! | file | what it does |
//! |---|---|
//! | `static_link` | addresses and relocations of one object |
//! | `program` | programs: `types` is what is linked and what comes of it, `linking` the state, `symbols` finds definitions, `addresses` places sections, `relocations` writes words and veneers, `copies` gives each thread instructions of its own, `frames` leaves out entries of `.eh_frame`, `exceptions` those of the tables of handlers |
//! | `startup` | the code before `main`, in `startup.s` |
//! | `elf` | ELF files to objects and images, and back; `inspect`: what one has |
//! | `archive` | archives as libraries |
//! | `debug` | what debuggers and reports want to know of a program: `info` all of it, `lines`, `frames` |
//! | `incremental` | a program that grows: objects with addresses, references that wait for symbols, veneers |
//! | `layout` | the addresses that a growing program takes |
//! | `file_kind` | what a file that is none of ours seems to be, for messages |
//! | `image`, `write` | images, from files and to files |
//! | `listing` | the result as text |
//!
//! # Invariants
//!
//! Nothing panics and nothing is read or written but the arguments; the same object gives the same image.

#![deny(missing_docs)]

mod archive;
pub mod debug;
pub mod elf;
mod file_kind;
#[doc(hidden)]
pub mod fuzz;
mod image;
mod incremental;
mod layout;
mod listing;
mod program;
mod startup;
mod static_link;
mod write;

pub use archive::{Archive, Member};
pub use file_kind::file_kind;
pub use image::{Format, Image, ImageError, Segment};
pub use incremental::{Contents, LinkError, Linker, Memory, Placed, Reference, Waiting};
pub use layout::{Layout, MAX_ALIGN, Purpose};
pub use listing::{listing, show_encoding, symbol_map};
pub use program::{
    Input, Library, LinkOptions, MemoryLayout, OutputSection, OutputSymbol, Part, Program, ProgramError, link_program,
};
pub use static_link::{Linked, Placement, link};
pub use write::TooLong;
