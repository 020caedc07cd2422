//! Maps between related opcodes, from td's `InstrMapping` records. The functions return `None` if
//! an opcode has no related one.

pub use crate::generated::relations::*;
