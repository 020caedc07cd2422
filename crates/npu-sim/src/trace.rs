//! Disassembly for traces.

/// The text of a word, or a mark that the assembler has none for it.
pub(crate) fn disassemble(word: u32) -> String {
    format!(".word {word:#010x}")
}
