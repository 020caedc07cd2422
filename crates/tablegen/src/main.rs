//! `npu-tblgen`: reads a TableGen program and prints its records.
//!
//! Exit codes: 0 good, 1 the program is wrong or a file cannot be read or written, 2 bad usage.

use std::io::{self, BufWriter, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command, value_parser};
use tablegen::{Options, Parsed, dump_json, parse_file, parse_str, print_records};

fn command() -> Command {
    Command::new("npu-tblgen")
        .about("Reads a TableGen program and prints its classes and records")
        .arg_required_else_help(true)
        .arg(
            Arg::new("file")
                .value_name("FILE")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("The program; `-` is standard input"),
        )
        .arg(
            Arg::new("print-records")
                .long("print-records")
                .action(ArgAction::SetTrue)
                .help("Print all classes and records as text (the default)"),
        )
        .arg(
            Arg::new("dump-json")
                .long("dump-json")
                .action(ArgAction::SetTrue)
                .help("Print all records as JSON"),
        )
        .arg(
            Arg::new("null-backend")
                .long("null-backend")
                .action(ArgAction::SetTrue)
                .help("Print nothing; only check the program"),
        )
        .group(ArgGroup::new("output-kind").args(["print-records", "dump-json", "null-backend"]))
        .arg(
            Arg::new("include")
                .short('I')
                .value_name("DIR")
                .action(ArgAction::Append)
                .value_parser(value_parser!(PathBuf))
                .help("A folder in which `include` looks for files"),
        )
        .arg(
            Arg::new("define")
                .short('D')
                .value_name("NAME")
                .action(ArgAction::Append)
                .help("Define a macro for `#ifdef`"),
        )
        .arg(
            Arg::new("output")
                .short('o')
                .value_name("OUT")
                .value_parser(value_parser!(PathBuf))
                .help("Write to a file instead of standard output"),
        )
}

fn read(matches: &ArgMatches) -> io::Result<Parsed> {
    let options = Options {
        include_dirs: matches
            .get_many::<PathBuf>("include")
            .map(|dirs| dirs.cloned().collect())
            .unwrap_or_default(),
        defines: matches
            .get_many::<String>("define")
            .map(|names| names.cloned().collect())
            .unwrap_or_default(),
        ..Options::default()
    };
    let default = PathBuf::from("-");
    let file = matches.get_one::<PathBuf>("file").unwrap_or(&default);
    if file.as_os_str() != "-" {
        return Ok(parse_file(file, &options));
    }
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(parse_str("<stdin>", &text, &options))
}

fn write(matches: &ArgMatches, parsed: &Parsed) -> io::Result<()> {
    let mut out: Box<dyn Write> = match matches.get_one::<PathBuf>("output") {
        Some(path) if path.as_os_str() != "-" => Box::new(BufWriter::new(std::fs::File::create(path)?)),
        _ => Box::new(BufWriter::new(io::stdout().lock())),
    };
    if matches.get_flag("dump-json") {
        dump_json(&parsed.records, &parsed.sources, &mut out)?;
    } else if !matches.get_flag("null-backend") {
        print_records(&parsed.records, &mut out)?;
    }
    out.flush()
}

fn main() -> ExitCode {
    let matches = command().get_matches();
    let result = read(&matches).and_then(|parsed| {
        eprint!("{}", parsed.render_diagnostics());
        if parsed.has_errors() {
            return Ok(ExitCode::FAILURE);
        }
        write(&matches, &parsed)?;
        // The records live to the end of the process; freeing them one by one would only take time.
        std::mem::forget(parsed);
        Ok(ExitCode::SUCCESS)
    });
    match result {
        Ok(code) => code,
        // The reader of a pipe may go away at any time.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
