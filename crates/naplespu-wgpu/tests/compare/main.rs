//! Shaders on the NPU and on Vulkan, by the same program for `wgpu`.
//!
//! Each shader of `tests/compare/shaders` and of `examples/shaders` is a test. A shader is added as
//! a file, with lines about its run (`case.rs`) in its first comment; those of examples are in
//! `tests/compare/examples`. Inputs are numbers of a generator with a fixed start.
//!
//! Integers are compared bit for bit, and floats with the tolerance of the shader's lines. The NPU
//! computes with IEEE floats.
//!
//! Without the feature `vulkan` or a driver, the tests are reported as ignored. With Debian's
//! software driver:
//!
//! ```text
//! apt-get install mesa-vulkan-drivers
//! cargo test -p naplespu-wgpu --features vulkan --test compare
//! ```

mod case;
#[path = "../host/mod.rs"]
mod host;
mod program;

use case::Case;
use libtest_mimic::{Arguments, Trial};
use program::Gpu;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Returns the shaders of a folder, by name.
fn shaders(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let listed = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths = Vec::new();
    for entry in listed {
        paths.push(entry.map_err(|error| error.to_string())?.path());
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "wgsl"));
    paths.sort();
    Ok(paths)
}

fn text(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Runs a shader on both devices and compares all buffers.
fn compare(vulkan: &Gpu, shader: &str, lines: &str) -> Result<(), String> {
    let case = Case::parse(lines)?;
    let npu = Gpu::npu()?;
    let found = npu.run(shader, &case).map_err(|error| format!("NPU: {error}"))?;
    let expected = vulkan.run(shader, &case).map_err(|error| format!("Vulkan: {error}"))?;
    for ((buffer, found), expected) in case.buffers.iter().zip(found).zip(expected) {
        buffer.compare(&found, &expected, &case.tolerance)?;
    }
    Ok(())
}

fn trials() -> Result<Vec<Trial>, String> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compare");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/shaders");
    let vulkan = Gpu::vulkan().map(Arc::new);
    let mut trials = Vec::new();
    for path in shaders(&own.join("shaders"))?.into_iter().chain(shaders(&examples)?) {
        let shader = text(&path)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let lines = match path.starts_with(&own) {
            true => shader.clone(),
            false => text(&own.join("examples").join(format!("{name}.txt")))?,
        };
        trials.push(match &vulkan {
            Ok(vulkan) => {
                let vulkan = Arc::clone(vulkan);
                Trial::test(name, move || Ok(compare(&vulkan, &shader, &lines)?))
            }
            Err(reason) => Trial::test(name, || Ok(()))
                .with_kind(reason.clone())
                .with_ignored_flag(true),
        });
    }
    Ok(trials)
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    match trials() {
        Ok(trials) => libtest_mimic::run(&arguments, trials).exit_code(),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
