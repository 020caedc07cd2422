//! Lines of a source.

/// The starts of the lines of a source, for source locations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines(Vec<u32>);

impl Lines {
    /// Returns the lines of a text.
    pub fn of(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self(std::iter::once(0).chain(ends.map(|(at, _)| at as u32 + 1)).collect())
    }

    /// Returns the line of an offset, counted from 1. Without text, it returns the offset.
    pub fn line(&self, offset: u32) -> u32 {
        match self.0.is_empty() {
            true => offset,
            false => self.0.partition_point(|&start| start <= offset) as u32,
        }
    }
}
