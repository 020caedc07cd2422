//! Integers of several words: i64 and i128.
//!
//! Every operation is said once for any number of words. What is too long to stand in line is a routine of the runtime;
//! `isle/wide.isle` says which is which.

pub mod arithmetic;
pub mod bits;
pub mod compare;
pub mod divide;
pub mod memory;
