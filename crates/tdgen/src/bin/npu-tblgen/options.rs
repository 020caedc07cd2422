//! The command line. Options have llvm-tblgen's names, so that scripts can be reused. A long option
//! may have one dash or two.

use std::path::PathBuf;

use tablegen::Options;

/// A kind of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Records,
    DetailedRecords,
    Enums,
    Json,
    Nothing,
    InstrMap,
    SearchableTables,
    IsaManual,
}

/// An output and its file; `None` means standard output.
#[derive(Debug)]
pub struct Job {
    pub action: Action,
    pub output: Option<PathBuf>,
}

/// The parsed command line.
#[derive(Debug)]
pub struct Request {
    pub file: PathBuf,
    pub options: Options,
    pub jobs: Vec<Job>,
    /// The argument of `why`: `RECORD[.FIELD]`.
    pub why: Option<String>,
    pub class: String,
    pub dependencies: Option<PathBuf>,
    pub if_changed: bool,
}

/// The result of parsing the command line.
pub enum Parsed {
    Run(Box<Request>),
    Help,
    /// The message for an invalid command line.
    Wrong(String),
}

/// The text of `--help`.
pub const HELP: &str = "\
npu-tblgen [OPTIONS] FILE              reads a TableGen program and prints the requested outputs
npu-tblgen why RECORD[.FIELD] FILE     prints how a record's fields, or one field, got their values

Outputs; several may be requested, each followed by its own -o:
  --print-records            all classes and records as text (the default)
  --print-detailed-records   the same with source locations, and with global variables
  --print-enums -class=C     the names of the records that derive from C
  --dump-json                all records as JSON
  --null-backend             nothing; only check the program
  --gen-instr-map            Rust tables of the InstrMapping records
  --gen-searchable-tables    Rust tables of the GenericEnum and GenericTable records
  --gen-isa-manual           the instruction set as a Markdown document; the program needs the classes of td/

Options:
  -I DIR                     a folder in which `include` looks for files
  -D NAME                    define a macro for `#ifdef`
  -o FILE                    write to FILE instead of standard output
  -d FILE                    write the files that were read, as a rule for make; needs -o
  --write-if-changed         do not write a file that already has the right contents
  --help                     this text

FILE may be `-` for standard input. Exit status: 0 success, 1 the program has errors or a file cannot be read or written, 2 wrong usage.
";

fn action(name: &str) -> Option<Action> {
    Some(match name {
        "print-records" => Action::Records,
        "print-detailed-records" => Action::DetailedRecords,
        "print-enums" => Action::Enums,
        "dump-json" => Action::Json,
        "null-backend" => Action::Nothing,
        "gen-instr-map" => Action::InstrMap,
        "gen-searchable-tables" => Action::SearchableTables,
        "gen-isa-manual" => Action::IsaManual,
        _ => return None,
    })
}

/// Parses the arguments after the name of the program.
pub fn parse(args: impl Iterator<Item = String>) -> Parsed {
    let mut args = args.peekable();
    let mut request = Request {
        file: PathBuf::new(),
        options: Options::default(),
        jobs: Vec::new(),
        why: None,
        class: String::new(),
        dependencies: None,
        if_changed: false,
    };
    let mut file = None;
    // An `-o` before all outputs belongs to the first output.
    let mut early_output = None;
    if args.peek().is_some_and(|first| first == "why") {
        args.next();
        match args.next() {
            Some(what) => request.why = Some(what),
            None => return Parsed::Wrong("`why` needs a record: `npu-tblgen why RECORD[.FIELD] FILE`".into()),
        }
    }
    while let Some(arg) = args.next() {
        let Some(option) = arg.strip_prefix('-').filter(|rest| !rest.is_empty()) else {
            if file.replace(PathBuf::from(&arg)).is_some() {
                return Parsed::Wrong(format!("more than one file: `{arg}`"));
            }
            continue;
        };
        let long = option.strip_prefix('-').unwrap_or(option);
        let (name, mut value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (long, None),
        };
        if let Some(action) = action(name) {
            request.jobs.push(Job { action, output: None });
            continue;
        }
        match name {
            "help" | "h" => return Parsed::Help,
            "write-if-changed" => request.if_changed = true,
            // This option controls warnings that only llvm-tblgen has.
            "no-warn-on-unused-template-args" => {}
            _ => {
                // A one-letter option may be followed by its value without a space.
                let letter = if name == "class" {
                    "class"
                } else {
                    option.get(..1).unwrap_or("")
                };
                if letter != "class" && option.len() > 1 {
                    value = Some(option[1..].trim_start_matches('=').to_owned());
                }
                if !["class", "I", "D", "d", "o"].contains(&letter) || long.len() != option.len() && letter != "class" {
                    return Parsed::Wrong(format!("unknown option `{arg}`"));
                }
                let Some(value) = value.or_else(|| args.next()) else {
                    return Parsed::Wrong(format!("`{arg}` needs a value"));
                };
                match letter {
                    "I" => request.options.include_dirs.push(PathBuf::from(value)),
                    "D" => request.options.defines.push(value),
                    "d" => request.dependencies = Some(PathBuf::from(value)),
                    "class" => request.class = value,
                    _ => match request.jobs.last_mut() {
                        Some(job) if job.output.is_none() => job.output = Some(PathBuf::from(value)),
                        Some(_) => return Parsed::Wrong("two `-o` for one output".into()),
                        None => early_output = Some(PathBuf::from(value)),
                    },
                }
            }
        }
    }
    let Some(file) = file else {
        return Parsed::Wrong("no file to read".into());
    };
    request.file = file;
    request.options.trace = request.why.is_some();
    if request.jobs.is_empty() {
        request.jobs.push(Job {
            action: Action::Records,
            output: None,
        });
    }
    if let Some(output) = early_output {
        let Some(job) = request.jobs.iter_mut().find(|job| job.output.is_none()) else {
            return Parsed::Wrong("two `-o` for one output".into());
        };
        job.output = Some(output);
    }
    if request.dependencies.is_some() && request.jobs.iter().all(|job| job.output.is_none()) {
        return Parsed::Wrong("`-d` needs `-o`: the rule is for that file".into());
    }
    Parsed::Run(Box::new(request))
}
