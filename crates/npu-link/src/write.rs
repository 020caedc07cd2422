//! Writes images to files.

use crate::ihex;
use crate::image::{BLOCK, Format, Image};
use std::fmt::{self, Write as _};

/// The maximum size in bytes of an image whose gaps are filled.
const LONGEST: u64 = 256 << 20;

/// Words per line of [`Format::HexWords`].
const WORDS: usize = 8;

/// Bytes per line of [`Format::Verilog`].
const VERILOG_ROW: usize = 16;

/// The size in bytes that the image would have with its gaps filled, which is too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong(pub u64);

impl std::error::Error for TooLong {}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the image would have {} bytes with its gaps, more than {LONGEST}",
            self.0
        )
    }
}

impl Image {
    /// Returns the contents of a file that [`Image::parse`] reads. Segments have to be in ascending
    /// order of address, without overlaps. [`Format::Flat`] starts at the first segment and
    /// [`Format::Mem`] at address 0; both fill gaps with zeros.
    ///
    /// # Errors
    ///
    /// Returns [`TooLong`] if the format fills gaps and the result would be too large.
    pub fn write(&self, format: Format) -> Result<Vec<u8>, TooLong> {
        match format {
            Format::HexWords => Ok(hex_words(self).into_bytes()),
            Format::Verilog => Ok(verilog(self).into_bytes()),
            Format::Flat => {
                let first = self.segments.first().map_or(0, |s| s.address);
                filled(self, u64::from(first))
            }
            Format::Mem => {
                let mut text = String::new();
                for block in filled(self, 0)?.chunks(BLOCK) {
                    let mut line = [0; BLOCK];
                    line[..block.len()].copy_from_slice(block);
                    line.reverse();
                    text.push_str(&hex(&line));
                    text.push('\n');
                }
                Ok(text.into_bytes())
            }
            Format::MemStandalone => Ok(standalone(self).into_bytes()),
            Format::IntelHex => Ok(ihex::write(self).into_bytes()),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Returns all bytes from an address to the end of the image, with zeros in gaps.
fn filled(image: &Image, first: u64) -> Result<Vec<u8>, TooLong> {
    let end = image
        .segments
        .last()
        .map_or(first, |s| u64::from(s.address) + s.bytes.len() as u64);
    let size = end - first;
    if size > LONGEST {
        return Err(TooLong(size));
    }
    let mut bytes = vec![0; size as usize];
    for segment in &image.segments {
        let at = (u64::from(segment.address) - first) as usize;
        if let Some(place) = bytes.get_mut(at..at + segment.bytes.len()) {
            place.copy_from_slice(&segment.bytes);
        }
    }
    Ok(bytes)
}

/// Returns aligned blocks of `size` bytes that cover the image, in ascending order of address, with
/// zeros in gaps.
fn blocks(image: &Image, size: usize) -> Vec<(u32, Vec<u8>)> {
    let mut blocks: Vec<(u32, Vec<u8>)> = Vec::new();
    for segment in &image.segments {
        let mut address = segment.address;
        let mut rest = segment.bytes.as_slice();
        while !rest.is_empty() {
            let within = address as usize % size;
            let start = address - within as u32;
            let (here, after) = rest.split_at(rest.len().min(size - within));
            if blocks.last().is_none_or(|(last, _)| *last != start) {
                blocks.push((start, vec![0; size]));
            }
            if let Some((_, bytes)) = blocks.last_mut() {
                bytes[within..within + here.len()].copy_from_slice(here);
            }
            address = address.wrapping_add(here.len() as u32);
            rest = after;
        }
    }
    blocks
}

fn hex_words(image: &Image) -> String {
    let mut text = String::new();
    let mut next = None;
    let mut column = 0;
    for (address, bytes) in blocks(image, 4) {
        if next != Some(address) {
            let gap = if column == 0 { "" } else { "\n" };
            let _ = write!(text, "{gap}@{address:08x}");
            column = WORDS;
        }
        let gap = if column == WORDS { "\n" } else { " " };
        column = column % WORDS + 1;
        let word = bytes.iter().rev().fold(0u32, |word, &b| word << 8 | u32::from(b));
        let _ = write!(text, "{gap}{word:08x}");
        next = Some(address.wrapping_add(4));
    }
    if column > 0 {
        text.push('\n');
    }
    text
}

/// Writes the image in the format of binutils.
fn verilog(image: &Image) -> String {
    let mut text = String::new();
    for segment in image.segments.iter().filter(|segment| !segment.bytes.is_empty()) {
        let _ = writeln!(text, "@{:08X}", segment.address);
        for row in segment.bytes.chunks(VERILOG_ROW) {
            let row: Vec<String> = row.iter().map(|byte| format!("{byte:02X}")).collect();
            let _ = writeln!(text, "{}", row.join(" "));
        }
    }
    text
}

fn standalone(image: &Image) -> String {
    let mut text = String::new();
    for (address, bytes) in blocks(image, BLOCK) {
        let _ = writeln!(text, "{address:#010x},0x{}", hex(&bytes));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Segment;

    #[test]
    fn what_is_written_is_read_back() {
        let image = Image {
            segments: [(0x40, 64), (0xc0, 4), (0x400, 128)]
                .map(|(address, size)| Segment {
                    address,
                    bytes: (0..size).map(|i| i as u8 + 1).collect(),
                })
                .to_vec(),
            entry: None,
        };
        let all = [
            Format::HexWords,
            Format::Verilog,
            Format::Flat,
            Format::Mem,
            Format::MemStandalone,
            Format::IntelHex,
        ];
        for format in all {
            let bytes = image.write(format).unwrap();
            assert!(format == Format::Flat || Format::detect(&bytes) == format, "{format:?}");
            let again = Image::parse(format, &bytes, 0x40).unwrap();
            for segment in &image.segments {
                let held = |s: &Segment| {
                    let at = segment.address.wrapping_sub(s.address) as usize;
                    s.bytes.get(at..at + segment.bytes.len()) == Some(&segment.bytes)
                };
                assert!(again.segments.iter().any(held), "{format:?}: {again:x?}");
            }
        }
    }

    /// The output of `objcopy -O verilog` of binutils for these bytes, with its line ends.
    #[test]
    fn verilog_is_that_of_binutils() {
        let segment = |address, bytes: Vec<u8>| Segment { address, bytes };
        let image = Image {
            segments: vec![segment(0x400, (0xa0..0xb2).collect()), segment(0x80_0000, vec![7])],
            entry: None,
        };
        let text = "@00000400\r\nA0 A1 A2 A3 A4 A5 A6 A7 A8 A9 AA AB AC AD AE AF\r\nB0 B1\r\n@00800000\r\n07\r\n";
        let written = String::from_utf8(image.write(Format::Verilog).unwrap()).unwrap();
        assert_eq!(written, text.replace('\r', ""));
        assert_eq!(Image::parse(Format::Verilog, text.as_bytes(), 0), Ok(image));
        let error = Image::parse(Format::Verilog, b"@0\n12 123", 0).unwrap_err();
        assert_eq!(error[0].to_string(), "2:4: `123` is not a 8-bit hexadecimal number");
    }

    #[test]
    fn gaps_have_a_limit() {
        let segments = [0, u32::MAX].map(|address| Segment {
            address,
            bytes: vec![1],
        });
        let image = Image {
            segments: segments.to_vec(),
            entry: None,
        };
        assert_eq!(image.write(Format::Flat), Err(TooLong(1 << 32)));
        assert!(image.write(Format::HexWords).is_ok());
    }
}
