//! The calling convention: where arguments and results live, and the code around calls (`docs/abi.md`).

pub mod limit;
pub mod registers;
pub mod sig;
pub mod slots;
