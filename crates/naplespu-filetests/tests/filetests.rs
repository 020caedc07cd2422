//! Runs each `.clif` file under `filetests/` as a separate test.
//!
//! `CRANELIFT_TEST_BLESS=1` rewrites `precise-output` expectations. The initial contents of memory
//! and registers are random; `NAPLESPU_FILL_SEED=n` sets the seed.
//!
//! A refused function fails unless the header of the file announces it. Kernels of the corpus must
//! not announce refusals.

use libtest_mimic::{Arguments, Failed, Trial};
use naplespu_filetests::{Options, Verdict, runner};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../filetests");
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
    let whole = name.starts_with("corpus/");
    Trial::test(name, move || {
        let options = Options {
            bless: std::env::var_os("CRANELIFT_TEST_BLESS").is_some_and(|v| v == "1"),
            fill_seed: std::env::var("NAPLESPU_FILL_SEED").map_or(Ok(1), |seed| seed.parse())?,
            ..Options::default()
        };
        let outcome = runner::with_large_stack(|| runner::test_path(&path, &options))?;
        let functions = outcome.functions.iter().map(|f| (&f.name, f.verdict));
        let lines = outcome.lines.iter().map(|l| (&l.text, l.verdict));
        let partial = functions.chain(lines).find(|(_, verdict)| *verdict != Verdict::Passed);
        match (outcome.verdict, partial) {
            (Verdict::Failed, _) => Err(Failed::from(format!(
                "{}\nNAPLESPU_FILL_SEED={}",
                outcome.render(),
                options.fill_seed
            ))),
            (Verdict::Skipped, _) => Err(Failed::from("the file is for other machines")),
            (_, Some((what, verdict))) if whole => Err(Failed::from(format!("{what}: {verdict}"))),
            _ => Ok(()),
        }
    })
}
