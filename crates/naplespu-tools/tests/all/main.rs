//! All tests of the crate except those that need a debugger or a simulation of the hardware.

mod assembly;
mod cache;
mod cli;
mod docs;
mod gdb;
mod html;
mod link;
mod shader;
mod waits;
