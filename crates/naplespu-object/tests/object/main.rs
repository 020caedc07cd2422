//! Object files, linked and run: the whole way from source to memory.

mod common;
mod copies;
mod corpus;
mod debug;
mod exceptions;
mod files;
mod programs;
mod symbols;
mod unwind;
