//! The linker: turns objects into images and programs.
//!
//! # Contract
//!
//! [`link`] assigns addresses to the sections of an [`Object`](npu_mc::asm::Object) and applies its
//! relocations. It returns an [`Image`] with the addresses of all sections ([`Linked`]), or all
//! faults, each with its position in the source of the object. An image consists of bytes with
//! addresses; [`Image::parse`] and [`Image::write`] read and write the file formats. [`listing`],
//! [`show_encoding`] and [`symbol_map`] print the result as text.
//!
//! [`link_program`] links several objects and the required members of libraries ([`Library`],
//! [`Archive`]) into a [`Program`]. It resolves names, merges sections of the same kind, and
//! returns all errors at once, each with object and section. [`elf`] reads and writes object files
//! and executables.
//!
//! [`Linker`] links a growing program for a JIT: objects never move, and references wait for their
//! symbols.
//!
//! # Objects
//!
//! One type represents the contents of an object file, [`npu_mc::asm::Object`]: sections, symbols
//! and relocations, with spans in a source. [`link`] reads it, and object files are written from
//! it. A growing program does not use it: a function arrives with borrowed bytes ([`Contents`]),
//! which are copied to memory immediately, and the linker keeps only its address and its references
//! ([`Placed`]). A reference names its target by the user's own type (an id of Cranelift's
//! `Module`), because most functions of a JIT never have a name as text. A reference may also wait
//! forever, which is a fault in [`link`]. Both linkers apply relocations by the same code,
//! [`npu_mc::reloc::apply`].
//!
//! # Structure
//!
//! | file | contents |
//! |---|---|
//! | `static_link` | addresses and relocations of one object |
//! | `program` | programs: `types` has inputs and results, `linking` the state, `symbols` finds definitions, `users` finds where an undefined symbol is used, `addresses` places sections, `relocations` writes words and veneers, `copies` gives each thread a copy of the instructions, `frames` drops entries of `.eh_frame`, `exceptions` drops entries of the handler tables |
//! | `startup` | the code before `main`, from `startup.s` |
//! | `elf` | ELF files to objects and images, and back; `inspect`: the contents of an ELF file |
//! | `archive` | archives as libraries |
//! | `debug` | data of a program for debuggers and reports: `info` has all of it, `lines`, `frames` |
//! | `incremental` | growing programs: objects with addresses, waiting references, veneers |
//! | `layout` | the allocation of addresses in a growing program |
//! | `file_kind` | recognition of foreign files, for messages |
//! | `image`, `write`, `ihex` | reading and writing of images |
//! | `listing` | the result as text |
//!
//! # Invariants
//!
//! No function panics. Nothing is read or written except the arguments, and the same object yields
//! the same image.

#![deny(missing_docs)]

mod archive;
pub mod debug;
pub mod elf;
mod file_kind;
#[doc(hidden)]
pub mod fuzz;
mod ihex;
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
    Input, Library, LinkOptions, MemoryLayout, OutputSection, OutputSymbol, Part, Program, ProgramError, User,
    link_program,
};
pub use static_link::{Linked, Placement, link};
pub use write::TooLong;
