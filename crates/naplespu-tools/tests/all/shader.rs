//! The subcommand `shader`, with and without the translator.

use std::path::Path;
use std::process::{Command, Output};

/// Runs `clif-util shader` on an example.
fn shader(name: &str, arguments: &[&str]) -> Output {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/shaders");
    let mut command = Command::new(env!("CARGO_BIN_EXE_clif-util"));
    command.arg("shader").arg(name).args(arguments).current_dir(folder);
    command.output().unwrap()
}

#[cfg(not(feature = "shader"))]
#[test]
fn a_build_without_shaders_names_the_feature() {
    let output = shader("saxpy.wgsl", &[]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("--features naplespu-tools/shader"), "{text}");
}

#[cfg(feature = "shader")]
mod with_feature {
    use super::shader;

    const BUFFERS: [&str; 6] = [
        "--bind",
        "0=f32:1,2,3",
        "--bind",
        "0:1=f32:10,20,30",
        "--bind",
        "2=f32:2",
    ];

    fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn buffers_are_bound_printed_and_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("y.bin");
        let out = format!("1={}", path.display());
        let output = shader(
            "saxpy.wgsl",
            &[
                &BUFFERS[..],
                &["--print", "1=f32", "--out", &out, "--timing", "--threads", "2"],
            ]
            .concat(),
        );
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert_eq!(text(&output.stdout), "0:1: 12, 24, 36\n");
        assert!(text(&output.stderr).contains(" cycles, "), "{}", text(&output.stderr));
        let expected: Vec<u8> = [12f32, 24.0, 36.0].into_iter().flat_map(f32::to_le_bytes).collect();
        assert_eq!(std::fs::read(path).unwrap(), expected);
    }

    #[test]
    fn entry_points_and_code_are_printed() {
        let listed = shader("saxpy.wgsl", &["--list"]);
        assert_eq!(
            text(&listed.stdout),
            "saxpy: work-groups of 64 x 1 x 1\n  \
             0:0 x: storage, read, at least 4 bytes\n  \
             0:1 y: storage, read and written, at least 4 bytes\n  \
             0:2 parameters: uniform, at least 4 bytes\n"
        );
        let clif = shader("saxpy.wgsl", &["--emit=clif"]);
        assert!(
            text(&clif.stdout).contains("load.f32 notrap aligned"),
            "{}",
            text(&clif.stdout)
        );
        let explained = shader("mandelbrot.wgsl", &["--explain=spmd"]);
        let first = text(&explained.stdout).lines().next();
        assert_eq!(first, Some("mandelbrot.wgsl:23: loop: continues while a lane is in it"));
        assert!(text(&explained.stdout).contains(
            "mandelbrot.wgsl:16: branch, check of a bound: evaluated once for a row of work-groups; otherwise "
        ));
        let spmd = shader("saxpy.wgsl", &["--emit=spmd"]);
        assert!(text(&spmd.stdout).contains("f32x16"), "{}", text(&spmd.stdout));
    }

    #[test]
    fn errors_have_a_status_and_a_place() {
        let missing = shader("saxpy.wgsl", &["--bind", "0=f32:1"]);
        assert_eq!(missing.status.code(), Some(1));
        assert!(text(&missing.stderr).contains("no buffer is bound to binding 1 of group 0"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bad.wgsl");
        std::fs::write(&path, "@compute @workgroup_size(1) fn main() {\n    let x = 1 +;\n}\n").unwrap();
        let bad = shader(path.to_str().unwrap(), &[]);
        assert_eq!(bad.status.code(), Some(1));
        assert!(text(&bad.stderr).contains("bad.wgsl:2:16"), "{}", text(&bad.stderr));
    }
}
