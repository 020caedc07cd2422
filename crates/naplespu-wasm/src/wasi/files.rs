//! Files of WASI programs, in the folders of the host that a program may use. Paths do not lead out
//! of these folders, neither by `..` nor by links.

use super::{Args, EBADF, EIO, ENOSYS, Errno, Memory};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::UNIX_EPOCH;

/// The first descriptor after those of the console.
const FIRST: u32 = 3;
/// The maximum number of open files and folders.
const MOST_OPEN: usize = 1024;

const EACCES: i32 = 2;
const EEXIST: i32 = 20;
const EINVAL: i32 = 28;
const EISDIR: i32 = 31;
const EMFILE: i32 = 33;
const ENOENT: i32 = 44;
const ENOTDIR: i32 = 54;
const ENOTEMPTY: i32 = 55;

/// The types of files.
const UNKNOWN: u8 = 0;
const DIRECTORY: u8 = 3;
const REGULAR: u8 = 4;
const LINK: u8 = 7;

/// All rights to files and folders.
const RIGHTS: u64 = (1 << 30) - 1;
const READ: u64 = 1 << 1;
const WRITE: u64 = 1 << 6;

/// Flags of `path_open`.
const CREATE: u32 = 1;
const OPEN_DIRECTORY: u32 = 2;
const EXCLUSIVE: u32 = 4;
const TRUNCATE: u32 = 8;
/// The flag of a descriptor whose writes go to the end.
const APPEND: u32 = 1;

/// A folder of the host that a program may use.
#[derive(Debug)]
pub struct Folder {
    dir: Dir,
    name: String,
}

impl Folder {
    /// Opens a folder of the host, which the program finds under `name`.
    ///
    /// # Errors
    ///
    /// The folder cannot be opened.
    pub fn open(path: &Path, name: &str) -> io::Result<Self> {
        Ok(Self {
            dir: Dir::open_ambient_dir(path, ambient_authority())?,
            name: name.to_owned(),
        })
    }
}

/// An open file or folder.
enum Entry {
    /// A folder; with its name if the program was started with it.
    Folder(Dir, Option<String>),
    File(File),
}

/// The open files and folders, by descriptor from [`FIRST`] on.
pub(super) struct Files(Vec<Option<Entry>>);

impl Files {
    pub(super) fn new(folders: Vec<Folder>) -> Self {
        let entries = folders.into_iter();
        Self(
            entries
                .map(|folder| Some(Entry::Folder(folder.dir, Some(folder.name))))
                .collect(),
        )
    }

    /// Calls a function. [`ENOSYS`] stands for one that has no implementation.
    pub(super) fn call(&mut self, name: &str, memory: &mut Memory<'_>, args: &Args<'_>) -> Errno<()> {
        let word = |k| args.word(k);
        let fd = word(0);
        match name {
            "fd_prestat_get" => {
                let length = self.start_name(fd)?.len() as u32;
                memory.write_word(word(1), 0)?;
                memory.write_word(word(1).wrapping_add(4), length)
            }
            "fd_prestat_dir_name" => {
                let name = self.start_name(fd)?.as_bytes();
                memory.write(word(1), name.get(..word(2) as usize).unwrap_or(name))
            }
            "fd_close" => {
                let entry = slot(fd).and_then(|slot| self.0.get_mut(slot)).ok_or(EBADF)?;
                entry.take().map(drop).ok_or(EBADF)
            }
            "fd_fdstat_get" => {
                let kind = match self.entry(fd)? {
                    Entry::Folder(..) => DIRECTORY,
                    Entry::File(_) => REGULAR,
                };
                let mut stat = [0; 24];
                stat[0] = kind;
                stat[8..16].copy_from_slice(&RIGHTS.to_le_bytes());
                stat[16..].copy_from_slice(&RIGHTS.to_le_bytes());
                memory.write(word(1), &stat)
            }
            "fd_filestat_get" => {
                let metadata = match self.entry(fd)? {
                    Entry::Folder(dir, _) => dir.dir_metadata(),
                    Entry::File(file) => file.metadata(),
                };
                memory.write(word(1), &stat(&metadata.map_err(errno)?))
            }
            "fd_filestat_set_size" => self.file(fd)?.set_len(args.long(1)).map_err(errno),
            "fd_sync" | "fd_datasync" => self.file(fd)?.sync_all().map_err(errno),
            "fd_tell" => {
                let at = self.file(fd)?.stream_position().map_err(errno)?;
                memory.write(word(1), &at.to_le_bytes())
            }
            "fd_seek" => {
                let offset = args.long(1) as i64;
                let to = match word(2) {
                    0 => SeekFrom::Start(args.long(1)),
                    1 => SeekFrom::Current(offset),
                    2 => SeekFrom::End(offset),
                    _ => return Err(EINVAL),
                };
                let at = self.file(fd)?.seek(to).map_err(errno)?;
                memory.write(word(3), &at.to_le_bytes())
            }
            "fd_read" => read(self.file(fd)?, memory, word(1), word(2), word(3)),
            "fd_write" => write(self.file(fd)?, memory, word(1), word(2), word(3)),
            "fd_pread" | "fd_pwrite" => {
                let file = self.file(fd)?;
                let before = file.stream_position().map_err(errno)?;
                file.seek(SeekFrom::Start(args.long(3))).map_err(errno)?;
                let transfer = if name == "fd_pread" { read } else { write };
                let done = transfer(file, memory, word(1), word(2), word(4));
                file.seek(SeekFrom::Start(before)).map_err(errno)?;
                done
            }
            "fd_readdir" => self.list(memory, args),
            "path_open" => {
                let opened = self.open(&memory.text(word(2), word(3))?, args)?;
                let free = self.0.iter().position(Option::is_none);
                let slot = free.unwrap_or(self.0.len());
                if slot >= MOST_OPEN {
                    return Err(EMFILE);
                }
                // The descriptor is used only if the program receives it.
                memory.write_word(word(8), slot as u32 + FIRST)?;
                match self.0.get_mut(slot) {
                    Some(place) => *place = Some(opened),
                    None => self.0.push(Some(opened)),
                }
                Ok(())
            }
            "path_filestat_get" => {
                let path = memory.text(word(2), word(3))?;
                let dir = self.folder(fd)?;
                let metadata = match word(1) & 1 {
                    0 => dir.symlink_metadata(path),
                    _ => dir.metadata(path),
                };
                memory.write(word(4), &stat(&metadata.map_err(errno)?))
            }
            "path_create_directory" | "path_remove_directory" | "path_unlink_file" => {
                let path = memory.text(word(1), word(2))?;
                let dir = self.folder(fd)?;
                let done = match name {
                    "path_create_directory" => dir.create_dir(path),
                    "path_remove_directory" => dir.remove_dir(path),
                    _ => dir.remove_file(path),
                };
                done.map_err(errno)
            }
            "path_rename" => {
                let (from, to) = (memory.text(word(1), word(2))?, memory.text(word(4), word(5))?);
                self.folder(fd)?.rename(from, self.folder(word(3))?, to).map_err(errno)
            }
            _ => Err(ENOSYS),
        }
    }

    fn entry(&self, fd: u32) -> Errno<&Entry> {
        let entry = slot(fd).and_then(|slot| self.0.get(slot)?.as_ref());
        entry.ok_or(EBADF)
    }

    fn folder(&self, fd: u32) -> Errno<&Dir> {
        match self.entry(fd)? {
            Entry::Folder(dir, _) => Ok(dir),
            Entry::File(_) => Err(ENOTDIR),
        }
    }

    /// Returns the name of a folder that the program was started with.
    fn start_name(&self, fd: u32) -> Errno<&str> {
        match self.entry(fd)? {
            Entry::Folder(_, Some(name)) => Ok(name),
            _ => Err(EBADF),
        }
    }

    fn file(&mut self, fd: u32) -> Errno<&mut File> {
        match slot(fd).and_then(|slot| self.0.get_mut(slot)?.as_mut()) {
            Some(Entry::File(file)) => Ok(file),
            Some(Entry::Folder(..)) => Err(EISDIR),
            None => Err(EBADF),
        }
    }

    fn open(&self, path: &str, args: &Args<'_>) -> Errno<Entry> {
        let dir = self.folder(args.word(0))?;
        let (flags, rights) = (args.word(4), args.long(5));
        let (reads, writes) = (rights & READ != 0, rights & WRITE != 0);
        let is_folder = flags & OPEN_DIRECTORY != 0 || dir.metadata(path).is_ok_and(|found| found.is_dir());
        if is_folder {
            if writes && flags & OPEN_DIRECTORY == 0 || flags & (CREATE | TRUNCATE) != 0 {
                return Err(EISDIR);
            }
            return Ok(Entry::Folder(dir.open_dir(path).map_err(errno)?, None));
        }
        let creates = flags & CREATE != 0;
        let is_exclusive = flags & EXCLUSIVE != 0;
        let appends = args.word(7) & APPEND != 0;
        let mut options = OpenOptions::new();
        options
            .read(reads || !writes)
            .write(writes || creates || flags & TRUNCATE != 0)
            .append(appends)
            .truncate(flags & TRUNCATE != 0)
            .create(creates && !is_exclusive)
            .create_new(creates && is_exclusive);
        Ok(Entry::File(dir.open_with(path, &options).map_err(errno)?))
    }

    /// Writes the entries of a folder, sorted by name, from the requested one on.
    fn list(&self, memory: &mut Memory<'_>, args: &Args<'_>) -> Errno<()> {
        let mut entries = vec![(".".to_owned(), DIRECTORY), ("..".to_owned(), DIRECTORY)];
        for entry in self.folder(args.word(0))?.entries().map_err(errno)? {
            let entry = entry.map_err(errno)?;
            let kind = entry.file_type().map_or(UNKNOWN, |kind| match kind {
                kind if kind.is_dir() => DIRECTORY,
                kind if kind.is_file() => REGULAR,
                kind if kind.is_symlink() => LINK,
                _ => UNKNOWN,
            });
            // A program cannot open names that are not UTF-8.
            entries.extend(entry.file_name().into_string().ok().map(|name| (name, kind)));
        }
        entries[2..].sort();
        let length = args.word(2) as usize;
        let mut bytes = Vec::new();
        let first = usize::try_from(args.long(3)).unwrap_or(usize::MAX);
        for (number, (name, kind)) in (1u64..).zip(&entries).skip(first) {
            if bytes.len() >= length {
                break;
            }
            // The number of the next entry, that of the file, the length of the name, and the type.
            bytes.extend_from_slice(&number.to_le_bytes());
            bytes.extend_from_slice(&number.to_le_bytes());
            bytes.extend_from_slice(&(name.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&u32::from(*kind).to_le_bytes());
            bytes.extend_from_slice(name.as_bytes());
        }
        bytes.truncate(length);
        memory.write(args.word(1), &bytes)?;
        memory.write_word(args.word(4), bytes.len() as u32)
    }
}

/// Returns the index of a descriptor.
fn slot(fd: u32) -> Option<usize> {
    Some(fd.checked_sub(FIRST)? as usize)
}

fn read(file: &mut File, memory: &mut Memory<'_>, at: u32, count: u32, taken: u32) -> Errno<()> {
    let mut sum = 0u32;
    for (at, count) in memory.pieces(at, count)? {
        memory.address(at, count)?;
        let mut bytes = vec![0; count as usize];
        let got = file.read(&mut bytes).map_err(errno)?;
        memory.write(at, bytes.get(..got).ok_or(EIO)?)?;
        sum = sum.wrapping_add(got as u32);
        if got < count as usize {
            break;
        }
    }
    memory.write_word(taken, sum)
}

fn write(file: &mut File, memory: &mut Memory<'_>, at: u32, count: u32, written: u32) -> Errno<()> {
    let mut sum = 0u32;
    for (at, count) in memory.pieces(at, count)? {
        file.write_all(&memory.read(at, count)?).map_err(errno)?;
        sum = sum.wrapping_add(count);
    }
    memory.write_word(written, sum)
}

/// Returns the description of a file: type, size and the time of its last change.
fn stat(metadata: &Metadata) -> [u8; 64] {
    let mut stat = [0; 64];
    stat[16] = match metadata.file_type() {
        kind if kind.is_dir() => DIRECTORY,
        kind if kind.is_file() => REGULAR,
        kind if kind.is_symlink() => LINK,
        _ => UNKNOWN,
    };
    let changed = metadata.modified().ok().map(cap_std::time::SystemTime::into_std);
    let changed = changed.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let changed = changed.map_or(0, |time| time.as_nanos() as u64);
    stat[24..32].copy_from_slice(&1u64.to_le_bytes());
    stat[32..40].copy_from_slice(&metadata.len().to_le_bytes());
    for time in stat[40..].chunks_exact_mut(8) {
        time.copy_from_slice(&changed.to_le_bytes());
    }
    stat
}

#[expect(clippy::needless_pass_by_value, reason = "the argument of `map_err`")]
fn errno(error: io::Error) -> i32 {
    match error.kind() {
        ErrorKind::NotFound => ENOENT,
        ErrorKind::PermissionDenied => EACCES,
        ErrorKind::AlreadyExists => EEXIST,
        ErrorKind::NotADirectory => ENOTDIR,
        ErrorKind::IsADirectory => EISDIR,
        ErrorKind::DirectoryNotEmpty => ENOTEMPTY,
        ErrorKind::InvalidInput => EINVAL,
        _ => EIO,
    }
}
