//! Source files, byte spans and their translation into lines and columns.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;

/// The id of a file in a [`SourceMap`]. It is valid only with the map that created it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct FileId(pub(crate) u32);

/// A half-open range of bytes `start..end` in one file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Span {
    /// The file that contains the bytes.
    pub file: FileId,
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

impl Span {
    /// Creates the span `start..end` in `file`.
    pub fn new(file: FileId, start: u32, end: u32) -> Span {
        Span { file, start, end }
    }

    /// Returns the smallest span that covers `self` and `other`. If they are in different files (an
    /// `include` in the middle of a construct), returns `self`.
    pub fn to(self, other: Span) -> Span {
        if self.file != other.file {
            return self;
        }
        Span {
            file: self.file,
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }

    /// Returns the empty span at the end of `self`, where a missing token would have to be
    /// inserted.
    pub fn after(self) -> Span {
        Span {
            start: self.end,
            ..self
        }
    }
}

/// A location for messages: file name, line and column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Location<'a> {
    /// The name of the file as it was opened.
    pub file: &'a str,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

/// A loaded file.
#[derive(Debug)]
pub struct SourceFile {
    name: String,
    path: Option<PathBuf>,
    text: Arc<String>,
    line_starts: OnceLock<Vec<u32>>,
}

impl SourceFile {
    /// Returns its name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Returns its path, if it was read from the file system.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }
    /// Returns its text.
    pub fn text(&self) -> &str {
        &self.text
    }
    pub(crate) fn shared_text(&self) -> Arc<String> {
        Arc::clone(&self.text)
    }
    pub(crate) fn line_starts(&self) -> &[u32] {
        self.line_starts.get_or_init(|| {
            let ends = self.text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
            std::iter::once(0).chain(ends.map(|(at, _)| at as u32 + 1)).collect()
        })
    }
}

/// The files of a run. A file that is included several times is stored once.
#[derive(Debug, Default)]
pub struct SourceMap {
    files: Vec<SourceFile>,
    by_name: FxHashMap<String, FileId>,
}

impl SourceMap {
    /// Adds a file, or returns the existing file with the same name.
    pub(crate) fn add(&mut self, name: &str, path: Option<&Path>, text: String) -> FileId {
        if let Some(id) = self.by_name.get(name) {
            return *id;
        }
        let id = FileId(self.files.len() as u32);
        self.files.push(SourceFile {
            name: name.to_owned(),
            path: path.map(Path::to_owned),
            text: Arc::new(text),
            line_starts: OnceLock::new(),
        });
        self.by_name.insert(name.to_owned(), id);
        id
    }

    pub(crate) fn find(&self, name: &str) -> Option<FileId> {
        self.by_name.get(name).copied()
    }

    /// Returns the file with an id of this map.
    pub fn file(&self, id: FileId) -> Option<&SourceFile> {
        self.files.get(id.0 as usize)
    }

    /// Returns all files in the order in which they were opened first.
    pub fn files(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter()
    }

    /// Returns the location of a span's start. Offsets outside of the file are clamped to its end.
    pub fn location(&self, span: Span) -> Location<'_> {
        let Some(file) = self.file(span.file) else {
            return Location {
                file: "<unknown>",
                line: 1,
                column: 1,
            };
        };
        let at = (span.start as usize).min(file.text.len());
        let starts = file.line_starts();
        let line = starts.partition_point(|start| *start as usize <= at).max(1);
        let start = starts[line - 1] as usize;
        let column = file.text.get(start..at).map_or(at - start, |text| text.chars().count()) + 1;
        Location {
            file: &file.name,
            line,
            column,
        }
    }

    /// Returns the text of a span; empty if the span is not within its file.
    pub fn text(&self, span: Span) -> &str {
        self.file(span.file)
            .and_then(|file| file.text.get(span.start as usize..span.end as usize))
            .unwrap_or("")
    }
}
