//! Output of results.

use crate::Stop;
use std::fs;
use std::io::Write as _;
use std::path::Path;

/// Writes bytes to a file, or to standard output.
pub fn write(path: Option<&Path>, bytes: &[u8]) -> Result<(), Stop> {
    match path {
        Some(path) if path.as_os_str() != "-" => fs::write(path, bytes).map_err(|error| Stop::of_file(path, &error)),
        _ => print(bytes),
    }
}

/// Writes bytes that are not text. Writes to standard output only if it is named explicitly.
pub fn write_file(path: Option<&Path>, bytes: &[u8]) -> Result<(), Stop> {
    match path {
        Some(path) => write(Some(path), bytes),
        None => Err(Stop::Usage(
            "the output is not text: pass `-o OUT`, or `-o -` for standard output".to_owned(),
        )),
    }
}

/// Writes bytes to standard output.
pub fn print(bytes: &[u8]) -> Result<(), Stop> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()?;
    Ok(())
}

/// Writes to standard error. Errors are ignored: the exit status still shows the result.
pub fn report(text: &str) {
    let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
}
