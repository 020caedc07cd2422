//! Every `.clif` file under `filetests/` is a test of its own. `CRANELIFT_TEST_BLESS=1` rewrites `precise-output` expectations.
//!
//! A file that the target refuses fails here unless it stands in a list of what is not compiled yet, and a file in the list
//! fails once it passes.

use cranelift_naplespu::filetest::{Options, Verdict, runner};
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Files that are refused, because of types that are not compiled.
const REFUSED: &[&str] = &[];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests");
    let files = match runner::find(std::slice::from_ref(&root)) {
        Ok(files) => files,
        Err((path, error)) => {
            eprintln!("{}: {error}", path.display());
            return ExitCode::FAILURE;
        }
    };
    let trials = files.into_iter().map(|path| trial(&root, path)).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn trial(root: &Path, path: PathBuf) -> Trial {
    let name = path.strip_prefix(root).unwrap_or(&path);
    let name = name.with_extension("").display().to_string().replace('\\', "/");
    let refused = REFUSED.contains(&name.as_str());
    Trial::test(name, move || {
        let options = Options {
            bless: std::env::var_os("CRANELIFT_TEST_BLESS").is_some_and(|v| v == "1"),
            ..Options::default()
        };
        let outcome = runner::with_large_stack(|| runner::test_path(&path, &options))?;
        match outcome.verdict {
            Verdict::Failed => Err(Failed::from(outcome.render())),
            Verdict::Refused if !refused => Err(Failed::from(format!("refused:\n{}", outcome.render()))),
            Verdict::Passed if refused => Err(Failed::from("this passes: take it out of the list of refused files")),
            _ => Ok(()),
        }
    })
}
