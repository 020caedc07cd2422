//! Finds parts of td that have no effect: makes one change after the other and runs all back ends.
//!
//!     cargo run --release -p tdgen --example probe                    # removes each `def` and `defm`
//!     cargo run --release -p tdgen --example probe -- Errata          # in files whose name contains this
//!     cargo run --release -p tdgen --example probe -- --changes       # changes numbers and texts, removes elements of lists
//!     cargo run --release -p tdgen --example probe -- --changes=7     # every seventh of them
//!     cargo run --release -p tdgen --example probe -- --builds=200 --seed=1 --tree=FOLDER
//!
//! A part decides something if the description is refused after the change, or if the generated
//! text changes. All other parts are printed with file and line.
//!
//! `--builds` draws that many changes and removals at random. If a change is not refused, it is put
//! into the clone of the repository in FOLDER, where the compiler is built, the code of all
//! filetests is compared, and all tests run, until one of these notices it. The clone keeps its
//! build.

#![deny(missing_docs)]

mod builds;
mod changes;

use changes::{Change, changes, statements};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tdgen::build::Generated;

/// The description, and a copy of it that is changed.
struct Description {
    copy: PathBuf,
    /// The files `*.td` with their texts, by name.
    files: Vec<(String, String)>,
    /// What the back ends generate without a change.
    whole: Generated,
}

/// What the back ends do after a change.
enum Effect {
    Refused,
    Changed,
    Nothing,
}

impl Description {
    fn read() -> Result<Self, String> {
        let td = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../td");
        let copy = std::env::temp_dir().join(format!("td-{}", std::process::id()));
        std::fs::create_dir_all(&copy).map_err(|error| format!("{}: {error}", copy.display()))?;
        let mut files = Vec::new();
        let entries = std::fs::read_dir(&td).map_err(|error| format!("{}: {error}", td.display()))?;
        for entry in entries {
            let path = entry.map_err(|error| error.to_string())?.path();
            if path.extension().is_some_and(|extension| extension == "td") {
                let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                std::fs::write(copy.join(&name), &text).map_err(|error| format!("{name}: {error}"))?;
                files.push((name, text));
            }
        }
        files.sort();
        let whole = tdgen::build::all(&copy)?;
        Ok(Self { copy, files, whole })
    }

    /// Makes a change, runs the back ends, and takes the change back.
    fn effect(&self, name: &str, text: &str, change: &Change) -> Result<Effect, String> {
        let path = self.copy.join(name);
        let write = |text: &str| std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()));
        write(&change.apply(text))?;
        let effect = match tdgen::build::all(&self.copy) {
            Err(_) => Effect::Refused,
            Ok(generated) if generated != self.whole => Effect::Changed,
            Ok(_) => Effect::Nothing,
        };
        write(text)?;
        Ok(effect)
    }
}

impl Drop for Description {
    fn drop(&mut self) {
        // A copy that cannot be removed stays in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.copy);
    }
}

/// Returns the place of a change and the part of its line that is changed.
fn describe(name: &str, text: &str, change: &Change) -> String {
    let line = text.lines().nth(change.line - 1).unwrap_or_default().trim();
    let part = text[change.start..change.end].trim();
    if line.starts_with(part.lines().next().unwrap_or_default()) {
        format!("td/{name}:{}: {line}", change.line)
    } else {
        format!("td/{name}:{}: `{part}` of {line}", change.line)
    }
}

/// The arguments of the command line.
struct Args {
    /// Every so many changes of numbers, texts and lists, in place of removals.
    step: Option<usize>,
    /// The number of random changes that are built.
    builds: Option<usize>,
    seed: u64,
    tree: Option<PathBuf>,
    /// A part of the names of the files that are changed.
    filter: String,
}

impl Args {
    fn parse() -> Result<Self, String> {
        let mut args = Self {
            step: None,
            builds: None,
            seed: 0,
            tree: None,
            filter: String::new(),
        };
        for argument in std::env::args().skip(1) {
            let number = |text: &str| text.parse().map_err(|error| format!("{argument}: {error}"));
            match argument.split_once('=').unwrap_or((&argument, "")) {
                ("--changes", "") => args.step = Some(1),
                ("--changes", step) => args.step = Some(number(step)?),
                ("--builds", count) => args.builds = Some(number(count)?),
                ("--seed", seed) => args.seed = number(seed)? as u64,
                ("--tree", tree) => args.tree = Some(PathBuf::from(tree)),
                (option, _) if option.starts_with('-') => return Err(format!("{option}: no such option")),
                _ => args.filter = argument,
            }
        }
        Ok(args)
    }
}

fn main() -> ExitCode {
    let run = || {
        let args = Args::parse()?;
        let description = Description::read()?;
        match args.builds {
            None => probe(&description, &args),
            Some(count) => {
                let tree = args
                    .tree
                    .ok_or("--builds needs --tree=FOLDER, a clone of the repository")?;
                builds::campaign(&description, &tree, &args.filter, count, args.seed)
            }
        }
    };
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Makes each change and prints those that have no effect.
fn probe(description: &Description, args: &Args) -> Result<(), String> {
    let (mut refused, mut changed, mut nothing) = (0, 0, 0);
    for (name, text) in &description.files {
        if !name.contains(&args.filter) {
            continue;
        }
        let all = match args.step {
            Some(_) => changes(text),
            None => statements(text),
        };
        for change in all.iter().step_by(args.step.unwrap_or(1)) {
            match description.effect(name, text, change)? {
                Effect::Refused => refused += 1,
                Effect::Changed => changed += 1,
                Effect::Nothing => {
                    nothing += 1;
                    eprintln!("{}", describe(name, text, change));
                }
            }
        }
    }
    eprintln!("{refused} changes are refused, {changed} change what is generated, {nothing} decide nothing");
    Ok(())
}
