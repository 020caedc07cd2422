//! `npu-tblgen`: reads a TableGen program once and writes all requested outputs.

mod options;
mod why;

use std::fs;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;
use std::process::ExitCode;

use options::{Action, Request};
use tablegen::{Parsed, dump_json, parse_file, parse_str, print_detailed_records, print_enums, print_records};

fn read(request: &Request) -> io::Result<Parsed> {
    if request.file.as_os_str() != "-" {
        return Ok(parse_file(&request.file, &request.options));
    }
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(parse_str("<stdin>", &text, &request.options))
}

/// Writes one output. An error of a back end contains its faults.
fn write(action: Action, request: &Request, parsed: &Parsed, out: &mut dyn Write) -> io::Result<()> {
    match action {
        Action::Records => print_records(&parsed.records, out),
        Action::DetailedRecords => print_detailed_records(&parsed.records, &parsed.sources, out),
        Action::Enums => print_enums(&parsed.records, &request.class, out),
        Action::Json => dump_json(&parsed.records, &parsed.sources, out),
        Action::Nothing => Ok(()),
        Action::InstrMap => generated(tdgen::instr_map(parsed), parsed, out),
        Action::SearchableTables => generated(tdgen::searchable_tables(parsed), parsed, out),
        Action::IsaManual => generated(tdgen::isa_manual(parsed), parsed, out),
    }
}

fn generated(
    result: Result<String, Vec<tablegen::Diagnostic>>,
    parsed: &Parsed,
    out: &mut dyn Write,
) -> io::Result<()> {
    match result {
        Ok(text) => out.write_all(text.as_bytes()),
        Err(faults) => {
            let text: String = faults
                .iter()
                .map(|fault| tablegen::render(fault, &parsed.sources))
                .collect();
            Err(io::Error::other(text))
        }
    }
}

fn write_file(path: &Path, action: Action, request: &Request, parsed: &Parsed) -> io::Result<()> {
    if !request.if_changed {
        let mut out = BufWriter::with_capacity(1 << 16, fs::File::create(path)?);
        write(action, request, parsed, &mut out)?;
        return out.flush();
    }
    let mut text = Vec::new();
    write(action, request, parsed, &mut text)?;
    if fs::read(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    fs::write(path, text)
}

/// Returns a rule for make that lists the files read besides the first one.
fn dependencies(target: &Path, parsed: &Parsed) -> String {
    let mut names: Vec<&str> = parsed.sources.files().skip(1).map(tablegen::SourceFile::name).collect();
    names.sort_unstable();
    let mut rule = format!("{}:", target.display());
    for name in names {
        rule.push(' ');
        rule.push_str(name);
    }
    rule.push('\n');
    rule
}

fn run(request: &Request) -> io::Result<ExitCode> {
    let parsed = read(request)?;
    eprint!("{}", parsed.render_diagnostics());
    if parsed.has_errors() {
        return Ok(ExitCode::FAILURE);
    }
    if let Some(what) = &request.why {
        let mut out = BufWriter::new(io::stdout().lock());
        why::why(&parsed, what, &mut out)?;
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    for job in &request.jobs {
        match &job.output {
            Some(path) if path.as_os_str() != "-" => write_file(path, job.action, request, &parsed)?,
            _ => {
                let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
                write(job.action, request, &parsed, &mut out)?;
                out.flush()?;
            }
        }
    }
    if let Some(path) = &request.dependencies {
        let target = request.jobs.iter().find_map(|job| job.output.as_deref());
        fs::write(path, dependencies(target.unwrap_or(path), &parsed))?;
    }
    // The records are needed until the process ends, so freeing them would only take time.
    std::mem::forget(parsed);
    Ok(ExitCode::SUCCESS)
}

fn main() -> ExitCode {
    let request = match options::parse(std::env::args().skip(1)) {
        options::Parsed::Run(request) => request,
        options::Parsed::Help => {
            print!("{}", options::HELP);
            return ExitCode::SUCCESS;
        }
        options::Parsed::Wrong(message) => {
            eprintln!("error: {message}\nsee `npu-tblgen --help`");
            return ExitCode::from(2);
        }
    };
    match run(&request) {
        Ok(code) => code,
        // The reader of a pipe may close it at any time.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let text = error.to_string();
            eprintln!(
                "{}{}",
                if text.starts_with("error") { "" } else { "error: " },
                text.trim_end()
            );
            ExitCode::FAILURE
        }
    }
}
