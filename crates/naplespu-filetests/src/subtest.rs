//! The subtests and their options, read from `test` lines.

use cranelift_naplespu::Stage;
use naplespu_reader::diagnostic::Diagnostic;
use naplespu_reader::header::{Header, TestLine};

/// What a `test` line asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subtest {
    /// The function as CLIF, parsed and printed again.
    Cat,
    /// The control-flow graph in the language of Graphviz.
    PrintCfg,
    /// The errors that the verifier finds are those that `; error:` comments announce.
    Verifier,
    /// CLIF after the optimizations that need no machine, or after one of them.
    Optimize {
        /// Print the function as it is after this one.
        stage: Option<Stage>,
        /// Compare with the whole expectation after the function.
        precise: bool,
    },
    /// Assembly text of the compiled function.
    Compile {
        /// As above.
        precise: bool,
        /// The function has to be refused or to fail; the checks run on the message.
        expect_fail: bool,
    },
    /// Disassembly of the compiled function with offsets, bytes, relocations and traps.
    Disasm {
        /// As above.
        precise: bool,
    },
    /// The run lines, compiled and simulated.
    Run {
        /// Try all values of the settings that matter most and that the file does not mention.
        matrix: bool,
    },
    /// The run lines in Cranelift's interpreter.
    Interpret,
    /// A subtest of Cranelift that this target does not have.
    Foreign,
}

/// Cranelift's subtests that make no sense here, or are not there.
const FOREIGN: [&str; 9] = [
    "alias-analysis",
    "domtree",
    "inline",
    "legalizer",
    "licm",
    "regalloc",
    "safepoint",
    "unwind",
    "wasm",
];

impl Subtest {
    /// Reads the `test` lines. With `lenient`, Cranelift's other subtests are taken as [`Subtest::Foreign`] and options nobody
    /// knows are ignored.
    pub fn read(header: &Header, lenient: bool, faults: &mut Vec<Diagnostic>) -> Vec<Subtest> {
        header
            .tests
            .iter()
            .filter_map(|line| Subtest::from_line(line, lenient, faults))
            .collect()
    }

    fn from_line(line: &TestLine, lenient: bool, faults: &mut Vec<Diagnostic>) -> Option<Subtest> {
        let mut left: Vec<_> = line.options.iter().collect();
        let mut take = |name: &str| {
            let before = left.len();
            left.retain(|o| o.text != name);
            left.len() < before
        };
        let subtest = match line.name.text.as_str() {
            "cat" => Subtest::Cat,
            "print-cfg" => Subtest::PrintCfg,
            "verifier" => Subtest::Verifier,
            "interpret" => Subtest::Interpret,
            "optimize" => {
                let precise = take("precise-output");
                let named = |text: &str| Stage::ALL.iter().copied().find(|stage| text == stage.name());
                let stage = left.iter().find_map(|option| named(&option.text));
                if let Some(stage) = stage {
                    left.retain(|option| option.text != stage.name());
                }
                Subtest::Optimize { stage, precise }
            }
            "compile" => Subtest::Compile {
                precise: take("precise-output"),
                expect_fail: take("expect-fail"),
            },
            "disasm" => Subtest::Disasm {
                precise: take("precise-output"),
            },
            "run" => Subtest::Run {
                matrix: !take("single"),
            },
            name if lenient && FOREIGN.contains(&name) => return Some(Subtest::Foreign),
            name => {
                faults.push(
                    Diagnostic::new(format!("unknown subtest `{name}`"), line.name.span.clone(), "")
                        .note("known are cat, compile, disasm, interpret, optimize, print-cfg, run and verifier"),
                );
                return None;
            }
        };
        if !lenient {
            for option in left {
                faults.push(Diagnostic::new(
                    format!("`test {}` has no option `{}`", line.name.text, option.text),
                    option.span.clone(),
                    "",
                ));
            }
        }
        Some(subtest)
    }

    /// Whether it compiles for the target.
    pub fn needs_isa(self) -> bool {
        matches!(
            self,
            Self::Compile { .. } | Self::Disasm { .. } | Self::Run { .. } | Self::Foreign
        )
    }

    /// Whether the functions have to be valid CLIF.
    pub fn needs_verifier(self) -> bool {
        !matches!(self, Self::Cat | Self::Verifier)
    }

    /// Whether it executes run lines.
    pub fn executes(self) -> bool {
        matches!(self, Self::Run { .. } | Self::Interpret)
    }

    /// Whether it prints functions, for filecheck directives.
    pub fn prints(self) -> bool {
        !self.executes() && !matches!(self, Self::Verifier | Self::Foreign)
    }

    /// Whether it has a whole expectation.
    pub fn is_precise(self) -> bool {
        matches!(
            self,
            Self::Optimize { precise: true, .. } | Self::Compile { precise: true, .. } | Self::Disasm { precise: true }
        )
    }
}
