//! Parses subtests and their options from `test` lines.

use cranelift_naplespu::Stage;
use naplespu_reader::diagnostic::Diagnostic;
use naplespu_reader::header::{Header, TestLine};

/// The subtest of a `test` line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subtest {
    /// Prints the parsed function as CLIF.
    Cat,
    /// Prints the control-flow graph in the language of Graphviz.
    PrintCfg,
    /// Compares the verifier's errors with the `; error:` comments.
    Verifier,
    /// Prints the CLIF after the optimizations on CLIF, or after one of them.
    Optimize {
        /// The optimization after which the function is printed.
        stage: Option<Stage>,
        /// Compare with the complete expectation after the function.
        precise: bool,
    },
    /// Prints the assembly text of the compiled function.
    Compile {
        /// Compare with the complete expectation after the function.
        precise: bool,
        /// The function must be refused or fail; the checks apply to the message.
        expect_fail: bool,
    },
    /// Prints the disassembly of the compiled function with offsets, bytes, relocations and traps.
    Disasm {
        /// Compare with the complete expectation after the function.
        precise: bool,
    },
    /// Executes the run lines, compiled and simulated.
    Run {
        /// Try all values of the most important settings that the file does not set.
        matrix: bool,
    },
    /// Executes the run lines in Cranelift's interpreter.
    Interpret,
    /// A subtest of Cranelift that this target does not have.
    Foreign,
}

/// Cranelift's subtests that do not exist here.
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
    /// Parses the `test` lines. With `lenient`, other subtests of Cranelift become
    /// [`Subtest::Foreign`] and unknown options are ignored.
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
                    Diagnostic::new(format!("unknown subtest `{name}`"), line.name.span.clone(), "").note(
                        "the subtests are cat, compile, disasm, interpret, optimize, print-cfg, run and verifier",
                    ),
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

    /// Returns whether the subtest compiles for the target.
    pub fn needs_isa(self) -> bool {
        matches!(
            self,
            Self::Compile { .. } | Self::Disasm { .. } | Self::Run { .. } | Self::Foreign
        )
    }

    /// Returns whether the functions must be valid CLIF.
    pub fn needs_verifier(self) -> bool {
        !matches!(self, Self::Cat | Self::Verifier)
    }

    /// Returns whether the subtest executes run lines.
    pub fn executes(self) -> bool {
        matches!(self, Self::Run { .. } | Self::Interpret)
    }

    /// Returns whether the subtest prints functions, for filecheck directives.
    pub fn prints(self) -> bool {
        !self.executes() && !matches!(self, Self::Verifier | Self::Foreign)
    }

    /// Returns whether the expectation must match the whole output (`precise-output`).
    pub fn is_precise(self) -> bool {
        matches!(
            self,
            Self::Optimize { precise: true, .. } | Self::Compile { precise: true, .. } | Self::Disasm { precise: true }
        )
    }
}
