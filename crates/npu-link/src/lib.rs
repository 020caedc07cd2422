//! The linker: objects become images.
//!
//! # Contract
//!
//! [`link`] gives the sections of an [`Object`](npu_mc::asm::Object) addresses, applies its relocations and gives an [`Image`] with the
//! addresses of all sections ([`Linked`]), or all faults, each with its place in the source of the object. An image is bytes with addresses; [`Image::parse`] and
//! [`Image::write`] know the file formats. [`listing`], [`show_encoding`] and [`symbol_map`] show what came out as text.
//!
//! # Structure
//!
//! | file | what it does |
//! |---|---|
//! | `static_link` | addresses and relocations of one object |
//! | `image`, `write` | images, from files and to files |
//! | `listing` | the result as text |
//!
//! # Invariants
//!
//! Nothing panics and nothing is read or written but the arguments; the same object gives the same image.

#![deny(missing_docs)]

#[doc(hidden)]
pub mod fuzz;
mod image;
mod listing;
mod static_link;
mod write;

pub use image::{Format, Image, ImageError, Segment};
pub use listing::{listing, show_encoding, symbol_map};
pub use static_link::{Linked, Placement, link};
pub use write::TooLong;
