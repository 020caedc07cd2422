//! Filetests of operations on vectors, made by the generators of `naplespu-fuzz`.

use naplespu_fuzz::lane::Arithmetic;
use naplespu_fuzz::operations::{operations, run_line, vectors};
use naplespu_fuzz::{Call, eval};
use naplespu_reader::config::Config;
use std::collections::BTreeMap;

/// Returns a filetest of the operations on each vector type, with results from the evaluator: its
/// name and its text.
///
/// # Errors
///
/// The message of a flag that Cranelift does not have.
pub fn vector_files() -> Result<BTreeMap<String, String>, String> {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    let mut config = Config::new();
    config.set("strict_float=true").map_err(|error| error.to_string())?;
    let isa = config.isa().map_err(|error| error.to_string())?;
    for (ty, case) in operations(&isa, vectors(), true) {
        let line = |call: &Call| {
            let results = eval::call(&case, call, Arithmetic::Ieee).0.ok()?;
            Some(run_line(&case.functions[0], &call.args, &results) + "\n")
        };
        let lines: String = case.calls.iter().filter_map(line).collect();
        // `cranelift-reader` does not read constants of more than 128 bits.
        let mut constants = case.functions.iter().flat_map(|func| func.dfg.constants.iter());
        if !lines.is_empty() && constants.all(|(_, data)| data.len() <= 16) {
            let header = || "test run\ntarget naplespu strict_float=true\n".to_owned();
            let file = files.entry(format!("{ty}.clif")).or_insert_with(header);
            *file += &format!("\n{}{lines}", case.text());
        }
    }
    Ok(files)
}
