//! Verdicts on files with refusals, with functions that no line reaches, and with panics.

use naplespu_filetests::{Options, Verdict, file};
use naplespu_reader::panics::{self, PanicIn};

/// A refused or unexecuted function is a failure unless the header announces it. An announced
/// refusal must occur.
#[test]
fn nothing_is_left_out_unannounced() {
    let functions = "\nfunction %f(f32) -> i32 {\nblock0(v0: f32):\n    v1 = get_pinned_reg.i32\n    return v1\n}\n; run: %f(0x1.0) == 1\n\n\
                     function %g() {\nblock0:\n    return\n}\n; run: %g() == []\n";
    let verdict = |header: &str| {
        let outcome = file::test("t", format!("{header}\n{functions}").as_bytes(), &Options::default());
        assert_eq!(outcome.verdict == Verdict::Failed, !outcome.failures.is_empty());
        (
            outcome.verdict,
            outcome.lines.iter().map(|line| line.verdict).collect::<Vec<_>>(),
        )
    };
    use Verdict::{Failed, Passed, Refused, Skipped};
    assert_eq!(verdict("test run"), (Failed, vec![Failed, Passed]));
    assert_eq!(verdict("test run\nexpect refused %f"), (Passed, vec![Refused, Passed]));
    assert_eq!(
        verdict("test run\nexpect refused %f %g"),
        (Failed, vec![Refused, Passed])
    );
    assert_eq!(verdict("test run\nexpect refused %f %h").0, Failed);
    assert_eq!(verdict("test cat"), (Failed, vec![Failed, Failed]));
    assert_eq!(
        verdict("test cat\nexpect skipped\n; check: function"),
        (Passed, vec![Skipped, Skipped])
    );
    assert_eq!(verdict("test run\ntarget x86_64"), (Skipped, vec![Skipped, Skipped]));
}

/// The interpreter does not implement `umulhi` of i128 and panics.
#[test]
fn a_panic_is_a_flag() {
    panics::silence_caught();
    let text = "test interpret\n\nfunction %f(i128) -> i128 {\nblock0(v0: i128):\n    v1 = FUNC v0, v0\n    return v1\n}\n; run: %f(1) == 1\n";
    let [bad, good] = ["umulhi", "isub"].map(|opcode| text.replace("FUNC", opcode));
    let outcome = file::test("t", bad.as_bytes(), &Options::default());
    assert_eq!(
        outcome.panics().collect::<Vec<_>>(),
        [PanicIn::Interpreter],
        "{}",
        outcome.render()
    );
    assert_eq!(outcome.verdict, Verdict::Failed);
    // The file fails without a panic.
    let outcome = file::test("t", good.as_bytes(), &Options::default());
    assert_eq!((outcome.panics().count(), outcome.verdict), (0, Verdict::Failed));
}
