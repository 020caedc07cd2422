//! Golden files and random words.

use npu_mc::Inst;
use npu_mc::asm::instruction;
use std::path::PathBuf;

/// Returns the folder named by `NAPLESPU_GOLDENS`, or the project's own copy.
pub fn golden_folder() -> PathBuf {
    std::env::var_os("NAPLESPU_GOLDENS").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/goldens"),
        PathBuf::from,
    )
}

/// Returns the text of a golden file.
pub fn golden(name: &str) -> String {
    let path = golden_folder().join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Returns the rows of a golden file as columns, without comments. If `header` is the first column
/// of the first row, that row is a heading and is omitted.
pub fn rows<'a>(text: &'a str, header: &str) -> Vec<Vec<&'a str>> {
    text.lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split('\t').collect::<Vec<_>>())
        .filter(|columns| columns[0] != header)
        .collect()
}

/// Assembles one instruction.
pub fn assemble(text: &str) -> Result<Inst, String> {
    instruction(text).map_err(|faults| faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}

/// A small generator of random numbers (a permuted counter), the same on every host.
pub struct Random(u64);

impl Random {
    /// Creates a generator with this seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Returns 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a random word.
    pub fn word(&mut self) -> u32 {
        self.bits() as u32
    }

    /// Returns a number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }
}
