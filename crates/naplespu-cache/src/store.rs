//! Stores of entries, as bytes by key.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// A store of bytes by key, like Cranelift's trait of this name.
pub trait CacheKvStore {
    /// Returns the bytes stored under the key, if any.
    fn get(&self, key: &[u8]) -> Option<Cow<'_, [u8]>>;

    /// Stores bytes under a key, replacing earlier ones. A store may fail silently.
    fn insert(&mut self, key: &[u8], val: Vec<u8>);
}

/// Returns the directory and the name of a key's entry: its hexadecimal digits, in a directory
/// named by the first two.
pub(crate) fn names_of(key: &[u8]) -> (String, String) {
    let name = key.iter().fold(String::new(), |mut name, byte| {
        // Writing to a string cannot fail.
        let _ = write!(name, "{byte:02x}");
        name
    });
    (name.get(..2).unwrap_or("_").to_owned(), name)
}

/// Keeps entries in memory.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    entries: HashMap<Vec<u8>, Vec<u8>>,
}

impl CacheKvStore for MemoryStore {
    fn get(&self, key: &[u8]) -> Option<Cow<'_, [u8]>> {
        self.entries.get(key).map(|entry| Cow::Borrowed(entry.as_slice()))
    }

    fn insert(&mut self, key: &[u8], val: Vec<u8>) {
        self.entries.insert(key.to_vec(), val);
    }
}

/// Keeps each entry as a file of a directory, which several processes may use at once.
///
/// The file of a key is named by its hexadecimal digits, in a directory named by the first two. A
/// file is written under another name and then renamed, so that readers see all of it or nothing.
/// If two processes write the same file, either one prevails.
#[derive(Clone, Debug)]
pub struct DiskStore {
    folder: PathBuf,
}

impl DiskStore {
    /// Opens the store in this directory, which is created if it does not exist.
    ///
    /// # Errors
    ///
    /// The directory cannot be created, or is a file.
    pub fn open(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        Ok(Self {
            folder: folder.to_owned(),
        })
    }

    /// Returns the directory and the file of a key.
    fn place(&self, key: &[u8]) -> (PathBuf, PathBuf) {
        let (folder, name) = names_of(key);
        let folder = self.folder.join(folder);
        let file = folder.join(name);
        (folder, file)
    }

    fn write(&self, key: &[u8], val: &[u8]) -> io::Result<()> {
        let (folder, file) = self.place(key);
        fs::create_dir_all(&folder)?;
        // Removed automatically on errors.
        let mut temporary = tempfile::NamedTempFile::new_in(&folder)?;
        temporary.write_all(val)?;
        temporary.persist(file)?;
        Ok(())
    }
}

impl CacheKvStore for DiskStore {
    fn get(&self, key: &[u8]) -> Option<Cow<'_, [u8]>> {
        fs::read(self.place(key).1).ok().map(Cow::Owned)
    }

    fn insert(&mut self, key: &[u8], val: Vec<u8>) {
        // Compilation does not fail if the directory is full or read-only; the next lookup misses.
        let _ = self.write(key, &val);
    }
}
