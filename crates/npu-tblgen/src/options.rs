//! The command line: spelt as llvm-tblgen's, so that scripts carry over. A long option may have one dash or two.

use std::path::PathBuf;

use tablegen::Options;

/// What is to be printed.
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

/// An action and where its output goes; standard output if nowhere in particular.
#[derive(Debug)]
pub struct Job {
    pub action: Action,
    pub output: Option<PathBuf>,
}

/// Everything asked for.
#[derive(Debug)]
pub struct Request {
    pub file: PathBuf,
    pub options: Options,
    pub jobs: Vec<Job>,
    /// `RECORD[.FIELD]` of `why`.
    pub why: Option<String>,
    pub class: String,
    pub dependencies: Option<PathBuf>,
    pub if_changed: bool,
}

/// What the command line comes to.
pub enum Parsed {
    Run(Box<Request>),
    Help,
    /// What is wrong with it.
    Wrong(String),
}

/// Shown by `--help`.
pub const HELP: &str = "\
npu-tblgen [OPTIONS] FILE              reads a TableGen program and prints what is asked for
npu-tblgen why RECORD[.FIELD] FILE     prints what gave a record its fields, or a field its value

Outputs; several may be asked for, each with an -o of its own after it:
  --print-records            all classes and records as text (the default)
  --print-detailed-records   the same with places, and with global variables
  --print-enums -class=C     the names of the records that derive from C
  --dump-json                all records as JSON
  --null-backend             nothing; only check the program
  --gen-instr-map            Rust tables of the InstrMapping records
  --gen-searchable-tables    Rust tables of the GenericEnum and GenericTable records
  --gen-isa-manual           the instruction set as a document in Markdown, of a program with the classes of td/

Options:
  -I DIR                     a folder in which `include` looks for files
  -D NAME                    define a macro for `#ifdef`
  -o FILE                    write to FILE instead of standard output
  -d FILE                    write the files that were read, as a rule for make; needs -o
  --write-if-changed         leave a file alone that has the right contents already
  --help                     this text

FILE may be `-` for standard input. Exit status: 0 good, 1 the program is wrong or a file cannot be read or written, 2 bad usage.
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

/// Reads the arguments after the name of the program.
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
    // An `-o` before all outputs belongs to the first.
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
            // What only concerns llvm-tblgen's warnings changes nothing here.
            "no-warn-on-unused-template-args" => {}
            _ => {
                // The value of a one-letter option may be glued to it.
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
