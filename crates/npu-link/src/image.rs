//! Images of programs and their parsers: flat binaries, hexadecimal words, Intel HEX, and the two
//! memory dumps of the existing tools (`docs/machine/objects.md`).

use crate::ihex;
use std::fmt;

/// Bytes per line of the two dump formats.
pub(crate) const BLOCK: usize = 64;

/// Formats of an image file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Raw bytes, loaded at one base address.
    Flat,
    /// 32-bit words in hexadecimal, with optional `0x`, separated by white space or commas. `@` and
    /// a hexadecimal byte address set the address of the next word. `#`, `;` and `//` start a
    /// comment.
    HexWords,
    /// The format of Verilog's `$readmemh` with byte elements: pairs of hexadecimal digits, `@` and
    /// a hexadecimal address; comments as in [`Format::HexWords`].
    Verilog,
    /// `_mem.hex`: line *k* contains the 64 bytes at address 64 *k*, last byte first.
    Mem,
    /// `_mem_standalone.hex`: each line has `0xADDRESS,0x` and 64 bytes, first byte first.
    MemStandalone,
    /// Intel HEX, with the entry point.
    IntelHex,
}

impl Format {
    /// Guesses the format from the bytes: one of the hexadecimal text formats, else
    /// [`Format::Flat`].
    pub fn detect(bytes: &[u8]) -> Format {
        let Ok(text) = std::str::from_utf8(bytes) else {
            return Format::Flat;
        };
        let Some(first) = text.lines().map(strip_comment).find(|l| !l.is_empty()) else {
            return Format::Flat;
        };
        let is_hex = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_hexdigit());
        if first.strip_prefix(':').is_some_and(is_hex) {
            return Format::IntelHex;
        }
        if let Some((address, data)) = first.split_once(',')
            && let (Some(address), Some(data)) = (address.strip_prefix("0x"), data.strip_prefix("0x"))
            && is_hex(address)
            && is_hex(data)
            && data.len() == 2 * BLOCK
        {
            return Format::MemStandalone;
        }
        if first.len() == 2 * BLOCK && is_hex(first) {
            return Format::Mem;
        }
        let words = words_of(first);
        let looks_like_words = words.clone().next().is_some()
            && words.into_iter().all(|(_, w)| {
                let digits = w.strip_prefix('@').unwrap_or(w);
                let digits = digits.strip_prefix("0x").unwrap_or(digits);
                is_hex(digits) && digits.len() <= 8
            });
        // Words are usually written with eight digits, bytes with two. A first line with only an
        // address does not distinguish the formats.
        let rest = text.lines().map(strip_comment).flat_map(words_of).map(|(_, word)| word);
        let mut numbers = rest.filter(|word| !word.starts_with('@'));
        if looks_like_words && numbers.next().is_some_and(|number| number.len() == 2) {
            Format::Verilog
        } else if looks_like_words {
            Format::HexWords
        } else {
            Format::Flat
        }
    }
}

/// A run of bytes with its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Address of the first byte.
    pub address: u32,
    /// The bytes; they may wrap past the end of the address space.
    pub bytes: Vec<u8>,
}

/// A parsed image. Segments are in file order; later ones override earlier ones where they overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// The segments.
    pub segments: Vec<Segment>,
    /// The entry point, if the file has one.
    pub entry: Option<u32>,
}

/// An error in an image, with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageError {
    /// Line of the text, from 1.
    pub line: u32,
    /// Column in bytes, from 1.
    pub column: u32,
    /// The message.
    pub message: String,
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for ImageError {}

impl Image {
    /// Parses an image. `base` is the address of the first byte of [`Format::Flat`] and of the
    /// first number of [`Format::HexWords`] and [`Format::Verilog`]. The other formats contain
    /// their addresses.
    ///
    /// # Errors
    ///
    /// Returns all errors of the text, in order; the list is never empty.
    pub fn parse(format: Format, bytes: &[u8], base: u32) -> Result<Image, Vec<ImageError>> {
        let read: fn(&mut Reader, &str, u32) = match format {
            Format::Flat => {
                let segments = vec![Segment {
                    address: base,
                    bytes: bytes.to_vec(),
                }];
                return Ok(Image { segments, entry: None });
            }
            Format::HexWords => |reader, text, base| reader.hex::<4>(text, base),
            Format::Verilog => |reader, text, base| reader.hex::<1>(text, base),
            Format::Mem => |reader, text, _| reader.mem(text),
            Format::MemStandalone => |reader, text, _| reader.mem_standalone(text),
            Format::IntelHex => |reader, text, _| ihex::read(reader, text),
        };
        let text = std::str::from_utf8(bytes).map_err(|e| {
            let before = &bytes[..e.valid_up_to()];
            let line = before.iter().filter(|&&b| b == b'\n').count() as u32 + 1;
            let column = before.iter().rev().take_while(|&&b| b != b'\n').count() as u32 + 1;
            vec![ImageError {
                line,
                column,
                message: "not UTF-8 text".to_owned(),
            }]
        })?;
        let mut reader = Reader {
            image: Image::default(),
            errors: Vec::new(),
        };
        read(&mut reader, text, base);
        if reader.errors.is_empty() {
            Ok(reader.image)
        } else {
            Err(reader.errors)
        }
    }
}

pub(crate) struct Reader {
    pub(crate) image: Image,
    errors: Vec<ImageError>,
}

impl Reader {
    pub(crate) fn error(&mut self, line: usize, column: usize, message: impl Into<String>) {
        self.errors.push(ImageError {
            line: line as u32 + 1,
            column: column as u32 + 1,
            message: message.into(),
        });
    }

    /// Adds bytes; extends the last segment if they directly follow it.
    pub(crate) fn put(&mut self, address: u32, bytes: &[u8]) {
        if let Some(last) = self.image.segments.last_mut()
            && last.address.wrapping_add(last.bytes.len() as u32) == address
        {
            last.bytes.extend_from_slice(bytes);
            return;
        }
        self.image.segments.push(Segment {
            address,
            bytes: bytes.to_vec(),
        });
    }

    /// Parses numbers of `SIZE` bytes, with byte addresses.
    fn hex<const SIZE: usize>(&mut self, text: &str, base: u32) {
        let mut at = base;
        for (number, line) in text.lines().enumerate() {
            for (column, word) in words_of(strip_comment(line)) {
                let (is_address, digits) = match word.strip_prefix('@') {
                    Some(rest) => (true, rest),
                    None => (false, word),
                };
                let digits = digits
                    .strip_prefix("0x")
                    .or_else(|| digits.strip_prefix("0X"))
                    .unwrap_or(digits);
                // `from_str_radix` would accept a sign, which is invalid in an image.
                let value = if digits.starts_with(['+', '-']) {
                    None
                } else {
                    u32::from_str_radix(digits, 16).ok()
                };
                match value {
                    Some(address) if is_address => at = address,
                    Some(value) if SIZE == 4 || value >> (8 * SIZE) == 0 => {
                        self.put(at, &value.to_le_bytes()[..SIZE]);
                        at = at.wrapping_add(SIZE as u32);
                    }
                    _ => {
                        let bits = if is_address { 32 } else { 8 * SIZE };
                        self.error(
                            number,
                            column,
                            format!("`{word}` is not a {bits}-bit hexadecimal number"),
                        );
                    }
                }
            }
        }
    }

    fn mem(&mut self, text: &str) {
        let mut at = 0u32;
        for (number, line) in text.lines().enumerate() {
            let line = strip_comment(line);
            if line.is_empty() {
                continue;
            }
            match block(line) {
                Ok(mut bytes) => {
                    bytes.reverse();
                    // A block of zeros is a gap in this format. Skipping it keeps a sparse memory
                    // sparse.
                    if bytes.iter().any(|&b| b != 0) {
                        self.put(at, &bytes);
                    }
                }
                Err((column, message)) => self.error(number, column, message),
            }
            at = at.wrapping_add(BLOCK as u32);
        }
    }

    fn mem_standalone(&mut self, text: &str) {
        for (number, line) in text.lines().enumerate() {
            let line = strip_comment(line);
            if line.is_empty() {
                continue;
            }
            let Some((address, data)) = line.split_once(',') else {
                self.error(number, 0, "expected `0xADDRESS,0xDATA`");
                continue;
            };
            let digits = address.strip_prefix("0x").unwrap_or("");
            let parsed = if digits.bytes().all(|b| b.is_ascii_hexdigit()) {
                u32::from_str_radix(digits, 16).ok()
            } else {
                None
            };
            let Some(at) = parsed else {
                self.error(number, 0, format!("`{address}` is not a 32-bit address"));
                continue;
            };
            let column = address.len() + 1;
            let Some(data) = data.strip_prefix("0x") else {
                self.error(number, column, "expected `0x` before the data");
                continue;
            };
            match block(data) {
                Ok(bytes) => self.put(at, &bytes),
                Err((inner, message)) => self.error(number, column + 2 + inner, message),
            }
        }
    }
}

/// Returns the 64 bytes of 128 hexadecimal digits, in the order of the text.
fn block(digits: &str) -> Result<[u8; BLOCK], (usize, String)> {
    let raw = digits.as_bytes();
    if let Some(bad) = raw.iter().position(|b| !b.is_ascii_hexdigit()) {
        return Err((bad, "not a hexadecimal digit".to_owned()));
    }
    if raw.len() != 2 * BLOCK {
        return Err((
            raw.len().min(2 * BLOCK),
            format!("a line holds {} digits, this one {}", 2 * BLOCK, raw.len()),
        ));
    }
    let mut bytes = [0; BLOCK];
    for (byte, pair) in bytes.iter_mut().zip(raw.chunks_exact(2)) {
        let value = |b: u8| (b as char).to_digit(16).unwrap_or(0) as u8;
        *byte = value(pair[0]) << 4 | value(pair[1]);
    }
    Ok(bytes)
}

fn strip_comment(line: &str) -> &str {
    let end = ["#", ";", "//"]
        .iter()
        .filter_map(|mark| line.find(mark))
        .min()
        .unwrap_or(line.len());
    line[..end].trim_end()
}

/// Returns the words of a line with their columns in bytes.
fn words_of(line: &str) -> impl Iterator<Item = (usize, &str)> + Clone {
    line.split(|c: char| c.is_whitespace() || c == ',')
        .filter(|w| !w.is_empty())
        .map(|w| (w.as_ptr() as usize - line.as_ptr() as usize, w))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The memory after loading: zero where the image has no contents.
    struct Memory(Image);

    impl Memory {
        fn read_u8(&self, address: u32) -> u8 {
            let segments = self.0.segments.iter().rev();
            let mut found = segments.filter_map(|s| s.bytes.get(address.wrapping_sub(s.address) as usize));
            found.next().copied().unwrap_or_default()
        }

        fn read_u32(&self, address: u32) -> u32 {
            u32::from_le_bytes([0, 1, 2, 3].map(|i| self.read_u8(address.wrapping_add(i))))
        }
    }

    fn loaded(format: Format, text: &str, base: u32) -> Memory {
        Memory(Image::parse(format, text.as_bytes(), base).unwrap())
    }

    #[test]
    fn hex_words_follow_address_marks() {
        let text = "62c8000c 0x62cc002c, # comment\n@400\n ffffffff // end\n";
        assert_eq!(Format::detect(text.as_bytes()), Format::HexWords);
        let memory = loaded(Format::HexWords, text, 0x380);
        assert_eq!(memory.read_u32(0x380), 0x62c8_000c);
        assert_eq!(memory.read_u32(0x384), 0x62cc_002c);
        assert_eq!(memory.read_u32(0x400), 0xffff_ffff);
    }

    #[test]
    fn mem_lines_are_last_byte_first() {
        let mut line = "0".repeat(120);
        line.push_str("0a0b0c0d");
        let text = format!("{}\n{line}\n", "0".repeat(128));
        assert_eq!(Format::detect(text.as_bytes()), Format::Mem);
        let memory = loaded(Format::Mem, &text, 0);
        assert_eq!(memory.read_u32(64), 0x0a0b_0c0d);
    }

    #[test]
    fn standalone_lines_are_first_byte_first() {
        let text = format!("0x00000440,0x0d0c0b0a{}\n", "f".repeat(120));
        assert_eq!(Format::detect(text.as_bytes()), Format::MemStandalone);
        let memory = loaded(Format::MemStandalone, &text, 0);
        assert_eq!(memory.read_u32(0x440), 0x0a0b_0c0d);
        assert_eq!(memory.read_u8(0x47f), 0xff);
    }

    #[test]
    fn flat_bytes_go_to_the_base() {
        let image = Image::parse(Format::Flat, &[1, 2, 3, 4, 5], 0x1000).unwrap();
        assert_eq!(image.segments[0].address, 0x1000);
        assert_eq!(Format::detect(&[0xff, 0, 1]), Format::Flat);
        assert_eq!(Format::detect(b""), Format::Flat);
    }

    #[test]
    fn every_fault_is_reported_with_its_place() {
        let errors = Image::parse(Format::HexWords, b"12 xyz\n+5\n123456789\n", 0).unwrap_err();
        let places: Vec<_> = errors.iter().map(|e| (e.line, e.column)).collect();
        assert_eq!(places, [(1, 4), (2, 1), (3, 1)]);
        let errors = Image::parse(Format::MemStandalone, b"nonsense\n0x4,123\n", 0).unwrap_err();
        assert_eq!(errors.len(), 2);
        let errors = Image::parse(Format::Mem, b"12\n\xff", 0).unwrap_err();
        assert_eq!((errors[0].line, errors[0].column), (2, 1));
    }
}
