//! Writes generated programs of the differential test as CLIF files: small functions on integers of
//! all widths and floats.
//!
//! ```text
//! cargo run -p naplespu-fuzz --example programs -- NUMBER FOLDER
//! ```
//!
//! Each program is in a separate file, named after its seed.

use arbitrary::Unstructured;
use naplespu_fuzz::generate::generate;
use std::path::Path;
use std::process::ExitCode;

fn write(number: u64, folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
    std::fs::create_dir_all(folder)?;
    for seed in 0..number {
        let case = generate(&mut Unstructured::new(&naplespu_fuzz::bytes(seed)))?;
        std::fs::write(folder.join(format!("{seed:05}.clif")), case.text(false))?;
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let written = match arguments.as_slice() {
        [number, folder] => match number.parse() {
            Ok(number) => write(number, Path::new(folder)).map_err(|error| error.to_string()),
            Err(error) => Err(format!("{number}: {error}")),
        },
        _ => Err("usage: programs NUMBER FOLDER".to_owned()),
    };
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
