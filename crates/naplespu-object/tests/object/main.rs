//! Tests of object files that are linked and run: from source to memory.

mod common;
mod copies;
mod corpus;
mod debug;
mod exceptions;
mod files;
mod programs;
mod symbols;
mod unwind;
