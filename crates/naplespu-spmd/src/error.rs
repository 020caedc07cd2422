//! Refusals.

use cranelift_codegen::ir::{Block, SourceLoc, Type};

/// Why a function has no dispatch function.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// [`Options::lanes`](crate::Options::lanes) is neither 1 nor one of [`LANE_COUNTS`](crate::LANE_COUNTS).
    #[error("{0} lanes are not supported; use 1, 16, 32, 64 or 128")]
    Lanes(u32),
    /// A loop has more than one entry.
    #[error("the control flow of {function} is irreducible: {block} is the start of a loop with several entries")]
    Irreducible {
        /// The function.
        function: String,
        /// The target of the branch that does not leave a loop.
        block: Block,
    },
    /// An instruction has no form on lanes.
    #[error("`{instruction}` in {function} is not supported on lanes: {reason}")]
    Unsupported {
        /// The function.
        function: String,
        /// The instruction as text.
        instruction: String,
        /// Its source location.
        location: SourceLoc,
        /// The part that is not supported.
        reason: &'static str,
    },
    /// A call of a reserved name that does not exist or has other types.
    #[error("the call of %{name} in {function} does not match a built-in function")]
    Builtin {
        /// The function.
        function: String,
        /// The name of the callee.
        name: String,
    },
    /// A kernel has a result.
    #[error("the kernel {0} has results")]
    Results(String),
    /// A parameter of a kernel is not an `i32`.
    #[error("a parameter of the kernel {function} has the type {ty}; parameters are i32")]
    Parameter {
        /// The function.
        function: String,
        /// Its type.
        ty: Type,
    },
    /// The work-group has no work-items, or more than 2^16.
    #[error("a work-group of {0} work-items is not supported; the limit is 65536")]
    WorkgroupSize(u64),
    /// Workgroup memory does not fit the scratchpad.
    #[error("{0} bytes of workgroup memory do not fit the scratchpad of 65536 bytes")]
    WorkgroupMemory(u32),
    /// A function is not valid CLIF, or has no blocks.
    #[error("{function} is not valid: {reason}")]
    Invalid {
        /// The function.
        function: String,
        /// The errors of Cranelift's verifier.
        reason: String,
    },
    /// The stack slots of all lanes are larger than 4 GiB.
    #[error("the stack slots of {0} are too large for all lanes")]
    StackSlot(String),
    /// An expectation of the pass does not hold. This is a bug of the pass.
    #[error("internal error in {function}: {expected} is missing")]
    Internal {
        /// The function.
        function: String,
        /// The expectation.
        expected: &'static str,
    },
}
