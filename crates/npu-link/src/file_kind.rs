//! Recognizes foreign file formats, for error messages.

/// Formats with a magic number.
const MAGIC: [(&[u8], &str); 9] = [
    (b"\x7fELF", "an ELF file"),
    (b"!<arch>\n", "an archive"),
    (b"\0asm", "a WebAssembly module"),
    (b"BC\xc0\xde", "LLVM bitcode"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O file"),
    (b"\x89PNG", "a PNG picture"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b\x08", "compressed by gzip"),
];

/// Returns the likely format of a file. Returns `None` if its bytes fit several formats, as those
/// of a flat binary do.
pub fn file_kind(bytes: &[u8]) -> Option<&'static str> {
    if let Some((_, kind)) = MAGIC.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return Some(kind);
    }
    if bytes.is_empty() {
        return Some("empty");
    }
    let text = std::str::from_utf8(bytes).ok()?;
    // A flat binary of instructions contains zeros and other control characters early.
    let is_text = |c: char| !c.is_control() || matches!(c, '\t' | '\n' | '\r' | '\x0c');
    text.chars().all(is_text).then_some("text")
}

#[cfg(test)]
mod tests {
    use super::file_kind;

    #[test]
    fn kinds() {
        assert_eq!(file_kind(b"\0asm\x01\0\0\0"), Some("a WebAssembly module"));
        assert_eq!(file_kind(b"!<arch>\nk.o/"), Some("an archive"));
        assert_eq!(file_kind(b"int main() {\r\n\treturn 0;\n}\n"), Some("text"));
        assert_eq!(file_kind(b""), Some("empty"));
        assert_eq!(file_kind(&[0x0c, 0, 0xc8, 0x62]), None);
        assert_eq!(file_kind(b"a\0b"), None);
    }
}
