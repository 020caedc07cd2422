//! Compares the outputs with those of llvm-tblgen of release 22, which `LLVM_TBLGEN` names. The
//! inputs are the tests' programs, `td/`, LLVM's own files below the folder `LLVM_INCLUDE`, and the
//! target descriptions and TableGen tests in the sources of LLVM 19, `LLVM_SOURCES` (the folder
//! `llvm` of the release). Tests whose variables are not set are reported as ignored.

use libtest_mimic::{Arguments, Failed, Trial};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Test programs that release 22 rejects or interprets differently.
const EXCEPT: [&str; 2] = ["differs", "later-releases"];

/// The compared target descriptions of LLVM, with their main files.
const TARGETS: [(&str, &str); 11] = [
    ("X86", "X86.td"),
    ("AArch64", "AArch64.td"),
    ("AMDGPU", "AMDGPU.td"),
    ("ARM", "ARM.td"),
    ("RISCV", "RISCV.td"),
    ("PowerPC", "PPC.td"),
    ("Mips", "Mips.td"),
    ("Hexagon", "Hexagon.td"),
    ("SystemZ", "SystemZ.td"),
    ("Sparc", "Sparc.td"),
    ("WebAssembly", "WebAssembly.td"),
];

/// The compared outputs.
const OUTPUTS: [&[&str]; 4] = [
    &["--print-records"],
    &["--print-detailed-records"],
    &["--dump-json"],
    &["--print-enums", "--class=CLASS"],
];

/// A program, and the folders for its includes.
#[derive(Clone)]
struct Program {
    path: PathBuf,
    include_dirs: Vec<PathBuf>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Adds the `.td` files of a folder and its subfolders.
fn files(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), Failed> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "td") {
            found.push(path);
        }
    }
    found.sort();
    Ok(())
}

fn of_the_tests() -> Result<Vec<Program>, Failed> {
    let tests = root().join("crates/tablegen/tests");
    let mut paths = Vec::new();
    for folder in ["pass", "json", "detailed"] {
        files(&tests.join(folder), &mut paths)?;
    }
    paths.retain(|path| {
        !EXCEPT
            .iter()
            .any(|name| path.file_stem().is_some_and(|stem| stem == *name))
    });
    let include_dirs = vec![tests.join("include")];
    let program = |path| Program {
        path,
        include_dirs: include_dirs.clone(),
    };
    Ok(paths.into_iter().map(program).collect())
}

fn the_target() -> Vec<Program> {
    let folder = root().join("td");
    vec![Program {
        path: folder.join("NaplesPU.td"),
        include_dirs: vec![folder],
    }]
}

fn of_llvm(include: &Path) -> Result<Vec<Program>, Failed> {
    let mut paths = Vec::new();
    files(include, &mut paths)?;
    let program = |path: PathBuf| Program {
        include_dirs: [Some(include), path.parent()]
            .into_iter()
            .flatten()
            .map(Path::to_owned)
            .collect(),
        path,
    };
    Ok(paths.into_iter().map(program).collect())
}

/// Returns the targets in the sources of LLVM.
fn targets_of_llvm(sources: &Path) -> Vec<Program> {
    let program = |&(folder, file): &(&str, &str)| {
        let folder = sources.join("lib/Target").join(folder);
        Program {
            path: folder.join(file),
            include_dirs: vec![sources.join("include"), folder],
        }
    };
    TARGETS.iter().map(program).collect()
}

/// Returns LLVM's own tests of TableGen.
fn suite_of_llvm(sources: &Path) -> Result<Vec<Program>, Failed> {
    let suite = sources.join("test/TableGen");
    let mut paths = Vec::new();
    files(&suite, &mut paths)?;
    let include_dirs = vec![sources.join("include"), suite];
    let program = |path| Program {
        path,
        include_dirs: include_dirs.clone(),
    };
    Ok(paths.into_iter().map(program).collect())
}

/// Returns the output of a program, or `None` if it rejects the file.
fn output(command: OsString, options: &[String], program: &Program) -> Result<Option<Vec<u8>>, Failed> {
    let mut command = Command::new(command);
    command.args(options).arg(&program.path);
    for folder in &program.include_dirs {
        command.arg("-I").arg(folder);
    }
    let output = command.output()?;
    Ok(output.status.success().then_some(output.stdout))
}

/// Returns whether both outputs are equal. After detailed records, llvm-tblgen may print statistics
/// on its memory, which are ignored.
fn same(ours: &[u8], theirs: &[u8], output_options: &[&str]) -> bool {
    if output_options == ["--print-detailed-records"] {
        let rest = theirs
            .strip_prefix(ours)
            .and_then(|rest| std::str::from_utf8(rest).ok());
        !ours.is_empty() && ours.ends_with(b"\n") && rest.is_some_and(|rest| rest.lines().all(is_statistic))
    } else {
        ours == theirs
    }
}

/// Returns whether a line is a heading or a count of allocations, such as `TheBitsInitPool size =
/// 12`. Lines of records differ: fields are indented, and names and fields have locations between
/// bars.
fn is_statistic(line: &str) -> bool {
    let is_count = line
        .rsplit_once('=')
        .is_some_and(|(name, count)| !name.starts_with(' ') && count.trim().parse::<u64>().is_ok());
    let is_heading = line.trim_matches('-').is_empty() || line.to_ascii_lowercase().contains("allocat");
    !line.contains('|') && (is_count || is_heading)
}

/// Returns the first class of a JSON dump that has records.
fn class_with_records(json: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(json).ok()?;
    let classes = text.split_once("\"!instanceof\":{")?.1.split_once('}')?.0;
    let member = classes.split(']').find(|member| !member.trim_end().ends_with('['))?;
    let name = member.split_once(':')?.0;
    Some(name.rsplit_once('"')?.0.rsplit_once('"')?.1.to_owned())
}

/// The expected result for programs that llvm-tblgen rejects.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Refused {
    /// llvm-tblgen must not reject a program.
    Fails,
    /// Any result.
    Passes,
    /// `npu-tblgen` rejects the program too.
    Agrees,
}

/// Compares one output for all programs that llvm-tblgen accepts.
fn compare(peer: &OsString, output_options: &[&str], programs: &[Program], refused: Refused) -> Result<(), Failed> {
    let ours = OsString::from(env!("CARGO_BIN_EXE_npu-tblgen"));
    let (mut different, mut compared) = (Vec::new(), 0);
    for program in programs {
        let mut options: Vec<String> = output_options.iter().map(|&option| option.to_owned()).collect();
        if options.iter().any(|option| option.contains("CLASS")) {
            let json = output(ours.clone(), &["--dump-json".to_owned()], program)?;
            let Some(class) = json.as_deref().and_then(class_with_records) else {
                continue;
            };
            options
                .iter_mut()
                .for_each(|option| *option = option.replace("CLASS", &class));
        }
        let Some(theirs) = output(peer.clone(), &options, program)? else {
            let here = || output(ours.clone(), &options, program).map(|output| output.is_some());
            if refused == Refused::Fails || refused == Refused::Agrees && here()? {
                different.push(format!("{}: llvm-tblgen refuses it", program.path.display()));
            }
            continue;
        };
        compared += 1;
        let ours = output(ours.clone(), &options, program)?;
        if !ours.is_some_and(|ours| same(&ours, &theirs, output_options)) {
            different.push(program.path.display().to_string());
        }
    }
    println!("{output_options:?}: {compared} of {} files compared", programs.len());
    if compared == 0 {
        return Err(Failed::from("nothing was compared"));
    }
    if different.is_empty() {
        Ok(())
    } else {
        Err(Failed::from(format!(
            "other output than llvm-tblgen:\n{}",
            different.join("\n")
        )))
    }
}

/// Checks that the comparison notices a record that only one of the two outputs has.
fn a_record_more_is_noticed() -> Result<(), Failed> {
    const DETAILED: &[&str] = &["--print-detailed-records"];
    let ours = b"A  |a.td:1|\n  Fields:\n    int x = 5  |a.td:1|\n";
    let with = |rest: &str| [ours, rest.as_bytes()].concat();
    let statistics = "------- Allocation Stats -------\nTheBitsInitPool size = 12\nAnonCounter = 0\n\n";
    for (theirs, wanted) in [
        (ours.to_vec(), true),
        (with(statistics), true),
        (with("\nB  |a.td:2|\n"), false),
        (with("    int y = 5  |a.td:1|\n"), false),
        (with("  Superclasses: (none)\n"), false),
        (ours[..ours.len() - 1].to_vec(), false),
    ] {
        if same(ours, &theirs, DETAILED) != wanted {
            return Err(Failed::from(String::from_utf8_lossy(&theirs).into_owned()));
        }
    }
    if same(&ours[..12], ours, DETAILED) || same(b"", ours, DETAILED) {
        return Err(Failed::from("a prefix passes"));
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let peer = std::env::var_os("LLVM_TBLGEN");
    let include = std::env::var_os("LLVM_INCLUDE");
    let sources = std::env::var_os("LLVM_SOURCES");
    let mut trials = vec![Trial::test("a_record_more_is_noticed", a_record_more_is_noticed)];
    for options in OUTPUTS {
        let no_peer = peer.is_none().then_some("LLVM_TBLGEN is not set");
        let no_include = include.is_none().then_some("LLVM_INCLUDE is not set");
        let no_sources = sources.is_none().then_some("LLVM_SOURCES is not set");
        for (name, missing) in [
            ("programs_of_the_tests", no_peer),
            ("target_description", no_peer),
            ("files_of_llvm", no_peer.or(no_include)),
            ("targets_of_llvm", no_peer.or(no_sources)),
            ("suite_of_llvm", no_peer.or(no_sources)),
        ] {
            // The targets are large, so only two outputs of each are compared.
            if name == "targets_of_llvm" && !["--print-records", "--dump-json"].contains(&options[0]) {
                continue;
            }
            let (peer, include) = (peer.clone().unwrap_or_default(), include.clone().unwrap_or_default());
            let sources = PathBuf::from(sources.clone().unwrap_or_default());
            let trial = Trial::test(format!("{name} {}", options[0]), move || match name {
                "programs_of_the_tests" => compare(&peer, options, &of_the_tests()?, Refused::Fails),
                "target_description" => compare(&peer, options, &the_target(), Refused::Fails),
                "targets_of_llvm" => compare(&peer, options, &targets_of_llvm(&sources), Refused::Fails),
                "suite_of_llvm" => compare(&peer, options, &suite_of_llvm(&sources)?, Refused::Agrees),
                _ => compare(&peer, options, &of_llvm(Path::new(&include))?, Refused::Passes),
            });
            trials.push(
                trial
                    .with_ignored_flag(missing.is_some())
                    .with_kind(missing.unwrap_or_default()),
            );
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}
