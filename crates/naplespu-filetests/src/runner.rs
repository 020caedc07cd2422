//! Runs many files: finds them in folders, tests them on several threads, and reports in order.

use super::file::{self, Options};
use super::outcome::FileOutcome;
use naplespu_reader::diagnostic::{Diagnostic, Source};
use naplespu_reader::panics::{PanicIn, caught};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// The stack size of a thread that compiles. Unused pages do not consume memory.
pub const STACK_SIZE: usize = 256 << 20;

/// Returns the `.clif` files in `paths`, each of which is a file or a folder.
///
/// The files of a folder are sorted by name. Names that begin with a dot are skipped. Repeated
/// files are returned once, at their first position.
///
/// # Errors
///
/// Returns the first path that cannot be read, and why.
pub fn find(paths: &[PathBuf]) -> Result<Vec<PathBuf>, (PathBuf, io::Error)> {
    let mut found = Vec::new();
    for path in paths {
        let kind = fs::metadata(path).map_err(|e| (path.clone(), e))?;
        if kind.is_dir() {
            walk(path, &mut found)?;
        } else {
            found.push(path.clone());
        }
    }
    let mut seen = std::collections::HashSet::new();
    found.retain(|path| seen.insert(path.clone()));
    Ok(found)
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), (PathBuf, io::Error)> {
    let failed = |e| (folder.to_owned(), e);
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let kind = entry.file_type().map_err(failed)?;
        entries.push((entry.path(), kind));
    }
    entries.sort_by(|(a, _), (b, _)| a.cmp(b));
    for (path, kind) in entries {
        let hidden = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if hidden {
            continue;
        }
        // Symbolic links to folders are not followed, because they may form a cycle.
        if kind.is_dir() {
            walk(&path, found)?;
        } else if path.extension().is_some_and(|e| e == "clif") && path.is_file() {
            found.push(path);
        }
    }
    Ok(())
}

/// Tests one file on disk, and rewrites it if the options request it.
pub fn test_path(path: &Path, options: &Options) -> FileOutcome {
    let name = path.display().to_string();
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) => {
            let fault = Diagnostic::whole_file(format!("cannot read the file: {error}"));
            return FileOutcome::failed(Source::new(name, ""), vec![fault]);
        }
    };
    let mut outcome = match caught(|| file::test(&name, &bytes, options)) {
        Ok(outcome) => outcome,
        Err(panic) => {
            let fault = Diagnostic::whole_file("the runner panicked").panicked(PanicIn::Target, &panic);
            let text = String::from_utf8_lossy(&bytes);
            FileOutcome::failed(Source::new(name, text), vec![fault])
        }
    };
    if let Some(text) = &outcome.rewritten
        && let Err(error) = fs::write(path, text)
    {
        let fault = Diagnostic::whole_file(format!("cannot write the file: {error}"));
        outcome = FileOutcome::failed(outcome.source, vec![fault]);
    }
    outcome
}

/// Tests files on up to `threads` threads.
///
/// `done` is called for each file in the order of `files`, as soon as the file and all earlier ones
/// are finished. Its second argument is the number of files that are finished in any order.
///
/// # Errors
///
/// Returns an error if no thread can be started.
pub fn test_files(
    files: &[PathBuf],
    options: &Options,
    threads: usize,
    mut done: impl FnMut(&FileOutcome, usize),
    mut tick: impl FnMut(usize),
) -> io::Result<Vec<FileOutcome>> {
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..threads.clamp(1, files.len().max(1)) {
            let sender = sender.clone();
            let next = &next;
            thread::Builder::new()
                .stack_size(STACK_SIZE)
                .spawn_scoped(scope, move || {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(path) = files.get(index) else {
                            return;
                        };
                        if sender.send((index, test_path(path, options))).is_err() {
                            return;
                        }
                    }
                })?;
        }
        drop(sender);
        let mut waiting: Vec<Option<FileOutcome>> = Vec::new();
        waiting.resize_with(files.len(), || None);
        let mut outcomes = Vec::with_capacity(files.len());
        let mut finished = 0;
        for (index, outcome) in receiver {
            finished += 1;
            tick(finished);
            waiting[index] = Some(outcome);
            while let Some(outcome) = waiting.get_mut(outcomes.len()).and_then(Option::take) {
                done(&outcome, finished);
                outcomes.push(outcome);
            }
        }
        Ok(outcomes)
    })
}

/// Runs `work` on a thread with a large stack, which compilers need for hostile input.
///
/// # Errors
///
/// Returns an error if the thread cannot be started or panics.
pub fn with_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        thread::Builder::new()
            .stack_size(STACK_SIZE)
            .spawn_scoped(scope, work)?
            .join()
            .map_err(|_| io::Error::other("the thread panicked"))
    })
}

/// Calls `each` for all numbers below `count` and returns the results in order. Uses one thread
/// with a large stack for each processor of the host.
///
/// # Errors
///
/// Returns an error if a thread cannot be started or panics.
pub fn in_parallel<T: Send>(count: usize, each: impl Fn(usize) -> T + Sync) -> io::Result<Vec<T>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let taken = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&at| at < count));
        taken.map(|at| (at, each(at))).collect::<Vec<_>>()
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut all = thread::scope(|scope| {
        let started: Vec<_> = (0..threads).map(|_| scope.spawn(|| with_large_stack(work))).collect();
        let mut all = Vec::with_capacity(count);
        for thread in started {
            all.extend(thread.join().map_err(|_| io::Error::other("a thread panicked"))??);
        }
        io::Result::Ok(all)
    })?;
    all.sort_by_key(|&(at, _)| at);
    Ok(all.into_iter().map(|(_, result)| result).collect())
}

/// Returns the report: one line for each function with file, name, result and reason, separated by
/// tabs.
pub fn report(outcomes: &[FileOutcome]) -> String {
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut out = String::new();
    for file in outcomes {
        for function in &file.functions {
            out += &format!(
                "{}\t{}\t{}\t{}\n",
                flat(&file.source.name),
                flat(&function.name),
                function.verdict,
                flat(&function.reason)
            );
        }
    }
    out
}
