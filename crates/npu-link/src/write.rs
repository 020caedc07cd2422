//! Images as files.

use crate::image::{BLOCK, Format, Image};
use std::fmt::{self, Write as _};

/// Bytes of the longest image that is written with its gaps filled.
const LONGEST: u64 = 256 << 20;

/// Words in a line of hexadecimal words.
const WORDS: usize = 8;

/// The image with its gaps filled would have so many bytes.
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
    /// The contents of a file that [`Image::parse`] reads. Segments have to be in the order of their addresses, without overlaps.
    /// [`Format::Flat`] begins with the first segment and [`Format::Mem`] with address 0; both have zeros in gaps.
    ///
    /// # Errors
    ///
    /// [`TooLong`] with a format that fills gaps.
    pub fn write(&self, format: Format) -> Result<Vec<u8>, TooLong> {
        match format {
            Format::HexWords => Ok(hex_words(self).into_bytes()),
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

/// All bytes from an address to the end of the image, zeros in gaps.
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

/// Pieces of memory of a fixed size, each aligned to that size, by rising address; zeros where the image has nothing.
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
        for format in [Format::HexWords, Format::Flat, Format::Mem, Format::MemStandalone] {
            let bytes = image.write(format).unwrap();
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
