//! `compile --emit=html`: a page with all forms of each function side by side, and the provenance
//! of each instruction.
//!
//! [`sheet`] compiles a function and keeps the data of the page, [`timed`] executes the run lines
//! of the file with the timing model, and [`page`] writes the self-contained page.

mod clif;
mod page;
mod sheet;
mod timed;

use crate::{Outcome, compile, input, output};
use cranelift_naplespu::Isa;
use naplespu_jit::parallel;
use naplespu_reader::ClifFile;
use naplespu_reader::config::Config;
use naplespu_reader::panics::caught;
use std::path::Path;
use std::sync::Arc;

/// Writes the page of a file.
pub fn write(file: &ClifFile, config: &Config, isa: Isa, path: Option<&Path>) -> Outcome {
    let isa = Arc::new(isa);
    let mut faults = Vec::new();
    let mut sheets = Vec::new();
    let results = parallel::map(
        file.functions.iter().collect(),
        |case| case.func.dfg.num_insts(),
        |worker, case| caught(|| sheet::Sheet::new(&isa, worker, case)),
    );
    for (case, result) in file.functions.iter().zip(results) {
        match result {
            Ok(Ok(sheet)) => sheets.push(sheet),
            Ok(Err(error)) => faults.extend(compile::faults(file, case, &error)),
            Err(panic) => faults.push(input::panicked(file, case, "the compiler panicked", &panic)),
        }
    }
    input::report(file, &faults)?;
    let run = timed::run(file, config, &isa, &mut sheets)?;
    let title = page::Title {
        file: &file.source.name,
        settings: &config.to_string(),
        run: &run,
    };
    output::write(path, page::page(&title, &sheets).as_bytes())
}
