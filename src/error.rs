//! What can go wrong between a CLIF function and its machine code, as data.
//!
//! Nothing here prints or knows about files: the command line and the filetest runner turn these values into text.

use cranelift_codegen::verifier::VerifierErrors;
use cranelift_codegen::{CodegenError, ir};
use std::fmt;

/// Why a function was not compiled.
#[derive(Debug)]
#[non_exhaustive]
pub enum CompileError {
    /// The function is not valid CLIF. Every fault the verifier found is listed.
    Verifier(VerifierErrors),
    /// The function is valid CLIF, but uses something that this target does not offer (yet). Never empty.
    Unsupported(Vec<Refusal>),
    /// The function needs more stack or code than 32-bit offsets can describe.
    TooLarge(String),
    /// regalloc2 gave up, or its checker found its result to be wrong.
    Regalloc(String),
    /// An optimization pass of Cranelift failed.
    Optimizer(String),
    /// The compiler broke a promise that it gave itself: a fault of this crate, whatever the input was.
    Internal {
        /// The stage that noticed, as `--emit` names it.
        stage: &'static str,
        /// The instruction or table at fault, as text.
        instruction: String,
        /// What should have been there.
        expected: &'static str,
    },
}

impl CompileError {
    /// A broken invariant: in which stage, at which instruction, and what was expected.
    pub(crate) fn internal(stage: &'static str, instruction: impl fmt::Display, expected: &'static str) -> Self {
        Self::Internal {
            stage,
            instruction: instruction.to_string(),
            expected,
        }
    }

    /// Whether this is a refusal of a construct, as opposed to invalid input or a failure.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Unsupported(_))
    }
}

impl std::error::Error for CompileError {}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Verifier(errors) => write!(f, "invalid CLIF:\n{errors}"),
            Self::Unsupported(refusals) => {
                for (i, refusal) in refusals.iter().enumerate() {
                    if i > 0 {
                        writeln!(f)?;
                    }
                    write!(f, "{refusal}")?;
                }
                Ok(())
            }
            Self::TooLarge(what) => write!(f, "too large: {what}"),
            Self::Regalloc(what) => write!(f, "register allocation failed: {what}"),
            Self::Optimizer(what) => write!(f, "optimizer failed: {what}"),
            Self::Internal {
                stage,
                instruction,
                expected,
            } => write!(f, "internal error in {stage} at `{instruction}`: expected {expected}"),
        }
    }
}

/// For those who hold errors of Cranelift. What it has no variant for is [`CodegenError::Unsupported`] with the whole text.
impl From<CompileError> for CodegenError {
    fn from(error: CompileError) -> Self {
        match error {
            CompileError::Verifier(errors) => Self::Verifier(errors),
            CompileError::TooLarge(_) => Self::CodeTooLarge,
            CompileError::Unsupported(_)
            | CompileError::Regalloc(_)
            | CompileError::Optimizer(_)
            | CompileError::Internal { .. } => Self::Unsupported(error.to_string()),
        }
    }
}

impl From<VerifierErrors> for CompileError {
    fn from(errors: VerifierErrors) -> Self {
        Self::Verifier(errors)
    }
}

/// One construct that the target refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// Name of the function, as CLIF prints it (`%name`).
    pub function: String,
    /// The instruction, if it is one, and its text in CLIF.
    pub inst: Option<(ir::Inst, String)>,
    /// Source location of the instruction, if it has one.
    pub srcloc: Option<ir::SourceLoc>,
    /// What is refused: an opcode with its type, a type in the signature, a calling convention.
    pub what: String,
    /// The nearest thing that works, for the author of the CLIF.
    pub help: Option<String>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} is not supported on naplespu", self.function, self.what)?;
        if let Some((inst, text)) = &self.inst {
            write!(f, " ({inst}: {})", text.trim())?;
        }
        if let Some(help) = &self.help {
            write!(f, "; {help}")?;
        }
        Ok(())
    }
}
