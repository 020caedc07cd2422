//! Compile errors as data.
//!
//! This module prints nothing and accesses no files. The command line and the filetest runner
//! convert these values to text.

use cranelift_codegen::verifier::VerifierErrors;
use cranelift_codegen::{CodegenError, ir};
use std::fmt;

/// The reason why a function was not compiled.
#[derive(Debug)]
#[non_exhaustive]
pub enum CompileError {
    /// The function is not valid CLIF. Contains all errors of the verifier.
    Verifier(VerifierErrors),
    /// The function is valid CLIF, but uses constructs that this target does not support. Never
    /// empty.
    Unsupported(Vec<Refusal>),
    /// The function needs more stack or code than 32-bit offsets can address.
    TooLarge(String),
    /// regalloc2 failed, or its checker found an incorrect result.
    Regalloc(String),
    /// An optimization pass of Cranelift failed.
    Optimizer(String),
    /// An invariant of the compiler is violated. This is always a bug of this crate, whatever the
    /// input is.
    Internal {
        /// The stage that detected the error, by its name for `--emit`.
        stage: &'static str,
        /// The instruction or table with the error, as text.
        instruction: String,
        /// The expected state.
        expected: &'static str,
    },
}

impl CompileError {
    /// Makes the error for a violated invariant: the stage, the instruction, and the expected
    /// state.
    pub(crate) fn internal(stage: &'static str, instruction: impl fmt::Display, expected: &'static str) -> Self {
        Self::Internal {
            stage,
            instruction: instruction.to_string(),
            expected,
        }
    }

    /// Returns whether this is a refusal of a construct, as opposed to invalid input or a failure.
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

/// Converts to an error of Cranelift. Variants without a counterpart become
/// [`CodegenError::Unsupported`] with the full text.
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

/// A construct that the target refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The name of the function, as CLIF prints it (`%name`).
    pub function: String,
    /// The refused instruction and its CLIF text, if an instruction is refused.
    pub inst: Option<(ir::Inst, String)>,
    /// The source location of the instruction, if it has one.
    pub srcloc: Option<ir::SourceLoc>,
    /// The refused construct: an opcode with its type, a type in the signature, or a calling
    /// convention.
    pub what: String,
    /// The nearest supported construct, for the author of the CLIF.
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
