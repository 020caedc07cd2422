//! Intel HEX: lines of bytes with an address and a checksum.

use crate::image::{Image, Reader};
use std::fmt::Write as _;

/// Data bytes per written record, as in binutils.
const ROW: usize = 16;

/// The kinds of records.
const DATA: u8 = 0;
const END: u8 = 1;
const SEGMENT: u8 = 2;
const START_SEGMENT: u8 = 3;
const UPPER: u8 = 4;
const START: u8 = 5;

/// Writes an image with its entry point.
pub(crate) fn write(image: &Image) -> String {
    let mut text = String::new();
    let mut upper = 0;
    for segment in &image.segments {
        let mut address = segment.address;
        let mut rest = segment.bytes.as_slice();
        while !rest.is_empty() {
            if address >> 16 != upper {
                upper = address >> 16;
                record(&mut text, 0, UPPER, &(upper as u16).to_be_bytes());
            }
            // The upper half of the address is that of all bytes of a record.
            let room = 0x1_0000 - (address & 0xffff) as usize;
            let (row, after) = rest.split_at(rest.len().min(ROW).min(room));
            record(&mut text, address as u16, DATA, row);
            address = address.wrapping_add(row.len() as u32);
            rest = after;
        }
    }
    if let Some(entry) = image.entry {
        record(&mut text, 0, START, &entry.to_be_bytes());
    }
    record(&mut text, 0, END, &[]);
    text
}

fn record(text: &mut String, offset: u16, kind: u8, bytes: &[u8]) {
    let [high, low] = offset.to_be_bytes();
    let head = [bytes.len() as u8, high, low, kind];
    let sum = head.iter().chain(bytes).fold(0u8, |sum, byte| sum.wrapping_add(*byte));
    text.push(':');
    for byte in head.iter().chain(bytes).chain([&sum.wrapping_neg()]) {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02X}");
    }
    text.push('\n');
}

/// Parses the records up to the end record.
pub(crate) fn read(reader: &mut Reader, text: &str) {
    let mut base = 0u32;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_end();
        if line.is_empty() {
            continue;
        }
        let bytes = match parse(line) {
            Ok(bytes) => bytes,
            Err((column, message)) => {
                reader.error(number, column, message);
                continue;
            }
        };
        let [length, high, low, kind, data @ .., _] = bytes.as_slice() else {
            reader.error(number, 0, "a record has at least 5 bytes");
            continue;
        };
        if usize::from(*length) != data.len() {
            reader.error(
                number,
                1,
                format!("the record has {} data bytes, not {length}", data.len()),
            );
        } else if bytes.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)) != 0 {
            reader.error(number, line.len() - 2, "the checksum is wrong");
        } else {
            let value = data.iter().fold(0u32, |value, byte| value << 8 | u32::from(*byte));
            match (*kind, data.len()) {
                (DATA, _) => reader.put(base.wrapping_add(u32::from(u16::from_be_bytes([*high, *low]))), data),
                (END, _) => return,
                (SEGMENT, 2) => base = value << 4,
                (UPPER, 2) => base = value << 16,
                (START, 4) => reader.image.entry = Some(value),
                (START_SEGMENT, 4) => reader.image.entry = Some((value >> 16 << 4) + (value & 0xffff)),
                _ => reader.error(number, 7, format!("a record of the unknown kind {kind}")),
            }
        }
    }
}

/// Returns the bytes of a record.
fn parse(line: &str) -> Result<Vec<u8>, (usize, &'static str)> {
    let digits = line.strip_prefix(':').ok_or((0, "a record begins with `:`"))?;
    if let Some(bad) = digits.bytes().position(|byte| !byte.is_ascii_hexdigit()) {
        return Err((bad + 1, "not a hexadecimal digit"));
    }
    if digits.len() % 2 != 0 {
        return Err((line.len(), "the last byte has one digit"));
    }
    let value = |byte: u8| char::from(byte).to_digit(16).unwrap_or(0) as u8;
    let pairs = digits.as_bytes().chunks_exact(2);
    Ok(pairs.map(|pair| value(pair[0]) << 4 | value(pair[1])).collect())
}

#[cfg(test)]
mod tests {
    use crate::image::{Format, Image, Segment};

    /// The output of `objcopy -O ihex` of binutils for these bytes, with its line ends.
    const TEXT: &str = ":10040000A0A1A2A3A4A5A6A7A8A9AAABACADAEAF74\r\n:02041000B0B189\r\n:02000004008179\r\n\
                        :02FFFE000708F2\r\n:02000004008278\r\n:0100000009F6\r\n:040000050081000076\r\n:00000001FF\r\n";

    #[test]
    fn intel_hex_is_that_of_binutils() {
        let segment = |address, bytes: Vec<u8>| Segment { address, bytes };
        let image = Image {
            segments: vec![
                segment(0x400, (0xa0..0xb2).collect()),
                segment(0x81_fffe, vec![7, 8, 9]),
            ],
            entry: Some(0x81_0000),
        };
        let written = String::from_utf8(image.write(Format::IntelHex).unwrap()).unwrap();
        assert_eq!(written, TEXT.replace('\r', ""));
        assert_eq!(Format::detect(TEXT.as_bytes()), Format::IntelHex);
        assert_eq!(Image::parse(Format::IntelHex, TEXT.as_bytes(), 0), Ok(image));
    }

    #[test]
    fn errors_have_positions() {
        let text = ":0100000009F7\n:02000000090000F5\n:0100000G09F6\n:010\n0\n:0000000AF6\n:00\n:00000001FF\nend\n";
        let errors = Image::parse(Format::IntelHex, text.as_bytes(), 0).unwrap_err();
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            errors,
            [
                "1:12: the checksum is wrong",
                "2:2: the record has 3 data bytes, not 2",
                "3:9: not a hexadecimal digit",
                "4:5: the last byte has one digit",
                "5:1: a record begins with `:`",
                "6:8: a record of the unknown kind 10",
                "7:1: a record has at least 5 bytes",
            ]
        );
    }
}
