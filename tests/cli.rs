//! The command line: every file under `tests/cli/` is a session with its expected output. `TRYCMD=overwrite` rewrites them.

#[test]
fn command_line() {
    trycmd::TestCases::new()
        .default_bin_name("clif-util")
        .case("tests/cli/*.trycmd")
        .case("tests/cli/*.toml");
}
