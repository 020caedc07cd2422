//! Where entries are kept: by key, as bytes without a meaning.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// A store of bytes by key, as Cranelift's trait of this name.
pub trait CacheKvStore {
    /// The bytes that were kept under the key, if there are any.
    fn get(&self, key: &[u8]) -> Option<Cow<'_, [u8]>>;

    /// Keeps bytes under a key, in place of others. A store that cannot leaves it.
    fn insert(&mut self, key: &[u8], val: Vec<u8>);
}

/// The names of the folder and of the entry of a key: its hexadecimal digits, in a folder of the first two.
pub(crate) fn names_of(key: &[u8]) -> (String, String) {
    let name = key.iter().fold(String::new(), |mut name, byte| {
        // Writing to a text does not fail.
        let _ = write!(name, "{byte:02x}");
        name
    });
    (name.get(..2).unwrap_or("_").to_owned(), name)
}

/// Keeps entries as long as it lives.
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

/// Keeps each entry as a file of a folder, which several processes may use at once.
///
/// The file of a key has its hexadecimal digits as name, in a folder of the first two. A file is written under another name and then renamed, so that
/// whoever reads finds all of it or nothing; of two processes that write the same, either wins.
#[derive(Clone, Debug)]
pub struct DiskStore {
    folder: PathBuf,
}

impl DiskStore {
    /// The store in this folder, which is made if there is none.
    ///
    /// # Errors
    ///
    /// If the folder cannot be made, or is a file.
    pub fn open(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        Ok(Self {
            folder: folder.to_owned(),
        })
    }

    /// The folder and the file of a key.
    fn place(&self, key: &[u8]) -> (PathBuf, PathBuf) {
        let (folder, name) = names_of(key);
        let folder = self.folder.join(folder);
        let file = folder.join(name);
        (folder, file)
    }

    fn write(&self, key: &[u8], val: &[u8]) -> io::Result<()> {
        let (folder, file) = self.place(key);
        fs::create_dir_all(&folder)?;
        // It is removed if anything fails.
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
        // A folder that is full or read-only is no reason not to compile: the entry is not found next time.
        let _ = self.write(key, &val);
    }
}
