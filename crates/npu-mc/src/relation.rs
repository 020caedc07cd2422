//! From an opcode to a related one, by td's `InstrMapping` records. `None` where there is none.

pub use crate::generated::relations::*;
