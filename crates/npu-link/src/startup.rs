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

/// The mark of a line for stacks that are adjacent, and the prefix of one for stacks in the memory of
/// each tile.
const ADJACENT: &str = "# adjacent";
const IN_TILES: &str = "#tile";

/// Returns the lines of the start-up code, for stacks in the memory of the tile of each core or for
/// adjacent ones.
fn text(stacks_in_tiles: bool) -> String {
    let lines = TEXT.lines().filter_map(|line| match line.strip_prefix(IN_TILES) {
        Some(rest) => stacks_in_tiles.then_some(rest),
        None => (!stacks_in_tiles || !line.ends_with(ADJACENT)).then_some(line),
    });
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// Returns the start-up code. With `stacks_in_tiles` the stacks of a core are in the memory of its
/// tile. The linker defines its symbols that start with `__npu_`.
///
/// # Errors
///
/// Returns the faults of the text. A test ensures that it has none.
pub(crate) fn object(stacks_in_tiles: bool) -> Result<Input, Vec<Fault>> {
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
    let object = asm::assemble(
        &format!("{definitions}{}", text(stacks_in_tiles)),
        &asm::Options::default(),
    )?;
    Ok(Input {
        name: "start-up code".to_owned(),
        object,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_assembles() {
        for in_tiles in [false, true] {
            let object = super::object(in_tiles).unwrap().object;
            assert!(object.symbols.iter().any(|symbol| symbol.name == super::START));
        }
        // The lines for one kind are not in the other.
        assert!(!super::text(false).contains("__npu_tile_bytes") && super::text(true).contains("__npu_tile_bytes"));
        assert!(super::text(false).contains("s55, s54, 1") && !super::text(true).contains("s55, s54, 1"));
    }
}
