//! Tests of object files that are linked and run: from source to memory.

mod coherence;
mod common;
mod copies;
mod corpus;
mod debug;
mod exceptions;
mod files;
mod programs;
mod symbols;
mod unwind;
