//! The start-up code, which runs before the program, as an object.

use crate::program::types::Input;
use npu_mc::asm::{self, Fault};
use npu_mc::machine::{ControlRegister, ThreadStatus};

/// The name of the first instruction.
pub(crate) const START: &str = "_start";

/// The function that the start-up code calls.
pub(crate) const MAIN: &str = "__npu_entry";

/// The cache line whose write-backs the host counts (`docs/machine/control.md`).
const END_LINE: u32 = 0xffff_ffc0;

const TEXT: &str = include_str!("startup.s");

/// Returns the start-up code. The linker defines its symbols that start with `__npu_`.
///
/// # Errors
///
/// Returns the faults of the text. A test ensures that it has none.
pub(crate) fn object() -> Result<Input, Vec<Fault>> {
    let numbers = [
        ("CR_TILE", u32::from(ControlRegister::TileId.number())),
        ("CR_THREAD", u32::from(ControlRegister::ThreadId.number())),
        ("CR_STATUS", u32::from(ControlRegister::ThreadStatus.number())),
        ("CR_ARGC", u32::from(ControlRegister::Argc.number())),
        ("CR_ARGV", u32::from(ControlRegister::Argv.number())),
        ("BOOTING", ThreadStatus::Booting as u32),
        ("RUNNING", ThreadStatus::Running as u32),
        ("ENDED", ThreadStatus::End as u32),
        ("END_LINE", END_LINE),
    ];
    let definitions: String = numbers
        .iter()
        .map(|(name, number)| format!(".set {name}, {number}\n"))
        .collect();
    let object = asm::assemble(&format!("{definitions}{TEXT}"), &asm::Options::default())?;
    Ok(Input {
        name: "start-up code".to_owned(),
        object,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_assembles() {
        let object = super::object().unwrap().object;
        assert!(object.symbols.iter().any(|symbol| symbol.name == super::START));
    }
}
