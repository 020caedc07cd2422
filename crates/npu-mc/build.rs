//! Generates the tables of this crate from the target description.

use std::path::Path;

fn main() {
    let td = Path::new("../../td/NaplesPU.td");
    tdgen::build::run(td, "mc.rs", tdgen::build::Backend::MachineCode);
}
