//! Tests of the machine-code layer: recorded tables, round trips, spot checks of the generated
//! tables.

mod abi;
mod asm;
mod asm_faults;
mod asm_fuzz;
mod common;
mod disasm;
mod goldens;
mod manual;
mod relations;
mod round_trip;
