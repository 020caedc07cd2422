//! `compile --emit=html`: a page with all forms of each function side by side, and the provenance
//! of each instruction.
//!
//! [`sheet`] compiles a function and keeps the data of the page, [`timed`] executes the run lines
//! of the file with the timing model, and [`page`] writes the self-contained page.

mod clif;
mod page;
mod sheet;
mod timed;

use crate::{Outcome, input, output};
use cranelift_naplespu::Isa;
use naplespu_reader::ClifFile;
use naplespu_reader::config::Config;
use std::path::Path;
use std::sync::Arc;

/// Writes the page of a file.
pub fn write(file: &ClifFile, config: &Config, isa: Isa, path: Option<&Path>) -> Outcome {
    let isa = Arc::new(isa);
    let functions = input::inlined(file, &isa, |case| case.func.clone())?;
    let mut sheets = input::compile_all(file, &functions, |worker, case, func| {
        sheet::Sheet::new(&isa, worker, case, func)
    })?;
    let run = timed::run(file, config, &isa, &mut sheets)?;
    let title = page::Title {
        file: &file.source.name,
        settings: &config.to_string(),
        run: &run,
    };
    output::write(path, page::page(&title, &sheets).as_bytes())
}
