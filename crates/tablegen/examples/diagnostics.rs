//! Prints diagnostics from data, as an editor would show them: `cargo run -p tablegen --example
//! diagnostics -- FILE`.

use std::path::Path;
use std::process::ExitCode;

use tablegen::{Options, parse_file};

fn main() -> ExitCode {
    let Some(file) = std::env::args().nth(1) else {
        eprintln!("usage: diagnostics FILE");
        return ExitCode::from(2);
    };
    let parsed = parse_file(Path::new(&file), &Options::default());
    for diagnostic in &parsed.diagnostics {
        println!("{:?}: {}", diagnostic.severity, diagnostic.message);
        for label in &diagnostic.labels {
            let place = parsed.sources.location(label.span);
            let text = parsed.sources.text(label.span);
            println!(
                "    {}:{}:{}: `{text}` {}",
                place.file, place.line, place.column, label.message
            );
        }
        for note in &diagnostic.notes {
            println!("    {note}");
        }
    }
    if parsed.has_errors() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}
