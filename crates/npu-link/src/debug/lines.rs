//! Source lines by address, from `.debug_line`.

use super::DebugError;
use gimli::{AttributeValue, DebugLine, DebugLineOffset, DebugLineStr, DebugStr, EndianSlice, LittleEndian};
use std::collections::HashMap;

/// The maximum total length of all file names in bytes.
const MOST_NAMES: usize = 16 << 20;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// The lines of a program.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    files: Vec<String>,
    rows: Vec<Row>,
}

/// A range of code from one source line.
#[derive(Clone, Copy, Debug)]
struct Row {
    start: u32,
    end: u32,
    file: usize,
    line: u32,
}

/// The string sections that contain file names.
struct Strings<'a> {
    lines: DebugLineStr<Slice<'a>>,
    others: DebugStr<Slice<'a>>,
}

impl<'a> Strings<'a> {
    fn get(&self, value: &AttributeValue<Slice<'a>>) -> Option<Slice<'a>> {
        match *value {
            AttributeValue::String(text) => Some(text),
            AttributeValue::DebugLineStrRef(offset) => self.lines.get_str(offset).ok(),
            AttributeValue::DebugStrRef(offset) => self.others.get_str(offset).ok(),
            _ => None,
        }
    }
}

impl Lines {
    /// Reads the lines from the sections that `section` returns.
    ///
    /// # Errors
    ///
    /// Fails if a table is damaged.
    pub fn new<'a>(section: &dyn Fn(&str) -> &'a [u8]) -> Result<Self, DebugError> {
        let bytes = section(TABLE);
        let strings = Strings {
            lines: DebugLineStr::from(EndianSlice::new(section(".debug_line_str"), LittleEndian)),
            others: DebugStr::from(EndianSlice::new(section(".debug_str"), LittleEndian)),
        };
        let table = DebugLine::from(EndianSlice::new(bytes, LittleEndian));
        let mut lines = Self::default();
        let mut files = HashMap::new();
        let mut names = 0;
        let mut at = 0;
        while at < bytes.len() {
            let error = |error: gimli::Error| DebugError {
                section: TABLE.to_owned(),
                offset: Some(at as u64),
                message: error.to_string(),
            };
            let program = table.program(DebugLineOffset(at), 4, None, None).map_err(error)?;
            let header = program.header();
            // The line programs are adjacent.
            let length = header.unit_length() + usize::from(header.format().initial_length_size());
            let mut of_program = HashMap::new();
            let mut rows = program.rows();
            let mut open: Option<Row> = None;
            while let Some((header, row)) = rows.next_row().map_err(error)? {
                let address = u32::try_from(row.address()).unwrap_or(u32::MAX);
                if let Some(before) = open.take()
                    && before.start < address
                {
                    lines.rows.push(Row { end: address, ..before });
                }
                if row.end_sequence() {
                    continue;
                }
                let file = match of_program.get(&row.file_index()) {
                    Some(&file) => file,
                    None => {
                        let entry = header.file(row.file_index());
                        let name = entry.and_then(|entry| strings.get(&entry.path_name()));
                        let folder = entry.and_then(|entry| strings.get(&entry.directory(header)?));
                        let name = full_name(folder, name);
                        names += name.len();
                        if names > MOST_NAMES {
                            return Err(DebugError {
                                section: TABLE.to_owned(),
                                offset: Some(at as u64),
                                message: format!("the names of files have more than {MOST_NAMES} bytes"),
                            });
                        }
                        let next = files.len();
                        let file = *files.entry(name.clone()).or_insert_with(|| {
                            lines.files.push(name);
                            next
                        });
                        of_program.insert(row.file_index(), file);
                        file
                    }
                };
                open = Some(Row {
                    start: address,
                    end: address,
                    file,
                    line: row.line().and_then(|line| u32::try_from(line.get()).ok()).unwrap_or(0),
                });
            }
            at += length;
        }
        lines.rows.sort_by_key(|row| (row.start, row.end));
        Ok(lines)
    }

    /// Returns file and line of the code at an address.
    pub fn at(&self, address: u32) -> Option<(&str, u32)> {
        let after = self.rows.partition_point(|row| row.start <= address);
        let row = self.rows.get(after.checked_sub(1)?)?;
        let known = address < row.end && row.line > 0;
        known.then(|| (self.files.get(row.file).map_or("", String::as_str), row.line))
    }
}

/// The section with the line table.
const TABLE: &str = ".debug_line";

/// The source lines of an object file, whose sections have no addresses yet. They count as if they
/// followed each other in memory.
#[derive(Clone, Debug)]
pub struct ObjectLines {
    lines: Lines,
    /// The offset to add to an address in each section.
    starts: Vec<u32>,
}

impl ObjectLines {
    /// Reads the lines of an object. `sections` has the name, the bytes and the size in memory of
    /// each section; the size is 0 for sections that are not loaded, and in executables. `places`
    /// has the words of `.debug_line` that are relocated: offset, and section and offset of the
    /// place.
    ///
    /// # Errors
    ///
    /// Fails if a table is damaged.
    pub fn new(
        sections: &[(&str, &[u8], u32)],
        places: impl Iterator<Item = (u32, usize, u32)>,
    ) -> Result<Self, DebugError> {
        let mut next = 0u32;
        let starts = sections.iter().map(|(_, _, size)| {
            let start = next;
            next = next.saturating_add(*size);
            if *size == 0 { 0 } else { start }
        });
        let starts: Vec<u32> = starts.collect();
        let bytes_of = |name: &str| {
            let found = sections.iter().find(|section| section.0 == name);
            found.map_or(&[][..], |section| section.1)
        };
        let mut table = bytes_of(TABLE).to_vec();
        for (offset, section, value) in places {
            let start = starts.get(section).copied().unwrap_or(0);
            let word = table
                .get_mut(offset as usize..)
                .and_then(|bytes| bytes.first_chunk_mut());
            if let Some(word) = word {
                *word = start.wrapping_add(value).to_le_bytes();
            }
        }
        let lines = Lines::new(&|name| if name == TABLE { &table[..] } else { bytes_of(name) })?;
        Ok(Self { lines, starts })
    }

    /// Returns file and line of the code at an address in a section.
    pub fn at(&self, section: usize, address: u32) -> Option<(&str, u32)> {
        let start = self.starts.get(section).copied().unwrap_or(0);
        self.lines.at(start.wrapping_add(address))
    }
}

/// Returns the name of a file, with its directory if that is not empty.
fn full_name(folder: Option<Slice<'_>>, name: Option<Slice<'_>>) -> String {
    let text = |part: Option<Slice<'_>>| part.map_or_else(String::new, |part| part.to_string_lossy().into_owned());
    let (folder, name) = (text(folder), text(name));
    if folder.is_empty() || folder == "." || name.starts_with('/') {
        name
    } else {
        format!("{folder}/{name}")
    }
}
