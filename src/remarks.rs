//! Remarks on the loops of a function: which loops were vectorized, and why the others were not.
//!
//! The vectorizer collects the remarks. [`CompiledCode::loops`](crate::CompiledCode::loops)
//! contains them, and callers may print them.

use cranelift_codegen::ir::{Block, Opcode, SourceLoc, Type};
use std::fmt;

/// The remark on one innermost loop.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoopRemark {
    /// The header of the loop.
    pub header: Block,
    /// The source location of the first instruction of the header, or the default location if it
    /// has none.
    pub srcloc: SourceLoc,
    /// The result of the vectorizer.
    pub outcome: LoopOutcome,
}

impl fmt::Display for LoopRemark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.header, self.outcome)
    }
}

/// Whether a loop was vectorized.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoopOutcome {
    /// The loop executes sixteen iterations at a time.
    Vectorized(Vectorized),
    /// The loop is unchanged.
    Scalar(Reason),
}

impl fmt::Display for LoopOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vectorized(how) => write!(f, "vectorized: {how}"),
            Self::Scalar(reason) => write!(f, "not vectorized: {reason}"),
        }
    }
}

/// How a loop was vectorized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Vectorized {
    /// The number of iterations that are executed at a time.
    pub lanes: u32,
    /// The trip count, if it is constant.
    pub trip_count: Option<u64>,
    /// The trip count from which the vector loop is executed, if the trip count is not constant.
    pub least_trip_count: u32,
    /// The number of reductions. Each has one partial result per lane until the loop ends.
    pub reductions: usize,
    /// The number of vector loads that are assembled from two cache lines.
    pub unaligned_loads: usize,
    /// Whether a run-time check tests the alignment of addresses.
    pub alignment_check: bool,
    /// The number of pairs of arrays that a run-time check tests for overlap.
    pub overlap_checks: usize,
    /// The approximate number of machine instructions in an iteration of the scalar loop.
    pub scalar_cost: u32,
    /// The approximate number of machine instructions in an iteration of the vector loop, which
    /// replaces `lanes` scalar iterations.
    pub vector_cost: u32,
}

impl fmt::Display for Vectorized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} iterations at a time", self.lanes)?;
        match self.trip_count {
            Some(count) => write!(f, ", trip count {count}")?,
            None => write!(f, ", for trip counts of {} or more", self.least_trip_count)?,
        }
        write!(
            f,
            "; about {} instructions in place of {}",
            self.vector_cost,
            self.scalar_cost * self.lanes
        )?;
        let count = |f: &mut fmt::Formatter<'_>, number: usize, one: &str, more: &str| match number {
            0 => Ok(()),
            1 => write!(f, "; 1 {one}"),
            _ => write!(f, "; {number} {more}"),
        };
        count(f, self.reductions, "reduction", "reductions")?;
        count(f, self.unaligned_loads, "unaligned load", "unaligned loads")?;
        if self.alignment_check {
            write!(f, "; if aligned at run time")?;
        }
        match self.overlap_checks {
            0 => Ok(()),
            1 => write!(f, "; if 1 pair of arrays does not overlap at run time"),
            pairs => write!(f, "; if {pairs} pairs of arrays do not overlap at run time"),
        }
    }
}

/// The first reason that was found why a loop was not vectorized.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The loop has several exits, or its only exit does not depend on an induction variable.
    NotCounted,
    /// The induction variable is not an i32, or its step is not a power of two.
    Counter(Type, i64),
    /// A branch in the body is not a choice between values.
    Branches(Block),
    /// The body contains a call, a trap, or another side effect that must stay in order.
    Effect(Opcode),
    /// The operation does not exist on lanes of this type.
    Operation(Opcode, Type),
    /// A loop-carried value is neither an induction variable nor a reduction.
    Carried(Type),
    /// A float sum, whose additions must stay in order.
    FloatReduction(Opcode),
    /// The lanes would have different shift amounts.
    ShiftAmount(Opcode),
    /// Elements of different sizes are combined in an operation without a vector form.
    MixedWidths(Opcode),
    /// An address that is not known to change by a constant in each iteration.
    Address(Opcode),
    /// The stride of an address in bytes, and the different size of the element.
    Stride(i32, u32),
    /// Every iteration stores to the same address.
    SameAddress,
    /// An element type without a lane type.
    Element(Type),
    /// An access to the scratchpad, or in big-endian order.
    Memory(Opcode),
    /// An iteration depends on a store of another iteration, at this distance in bytes.
    Distance(i32),
    /// The number of pairs of arrays that may overlap, which is too large for run-time checks.
    Overlap(usize),
    /// An access that is misaligned or may be misaligned, without a way to align it.
    Alignment(Opcode),
    /// The loop accesses no arrays.
    NoArrays,
    /// The maximum trip count, which is too small.
    TooFewIterations(u64),
    /// The number of loops of the function that are already vectorized, which has reached the
    /// limit.
    ManyLoops(usize),
    /// The vector loop would cost more than the scalar loop.
    Cost {
        /// The approximate number of machine instructions in an iteration of the vector loop.
        vector: u32,
        /// The approximate number of machine instructions before and after the vector loop.
        overhead: u32,
        /// The approximate number of machine instructions in sixteen iterations of the scalar loop.
        scalar: u32,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotCounted => write!(f, "no single exit determines its trip count"),
            Self::Counter(ty, step) => write!(f, "it counts by {step} in {ty}, not by a power of two in i32"),
            Self::Branches(block) => write!(f, "the branch of {block} does not select between values"),
            Self::Effect(opcode) => write!(f, "`{opcode}` has a side effect in each iteration"),
            Self::Operation(opcode, ty) => write!(f, "there is no `{opcode}` of {ty}"),
            Self::Carried(ty) => write!(
                f,
                "a value of {ty} is loop-carried, but no induction variable and no reduction"
            ),
            Self::FloatReduction(opcode) => write!(f, "`{opcode}` of floats must stay in order"),
            Self::ShiftAmount(opcode) => write!(f, "the amount of `{opcode}` changes"),
            Self::MixedWidths(opcode) => write!(f, "`{opcode}` is on elements of different sizes"),
            Self::Address(opcode) => write!(f, "the address of a `{opcode}` is not known to grow by a constant"),
            Self::Stride(bytes, element) => write!(
                f,
                "an address grows by {bytes} bytes per iteration, its elements have {element}"
            ),
            Self::SameAddress => write!(f, "every iteration stores to the same address"),
            Self::Element(ty) => write!(f, "elements of {ty} have no lanes"),
            Self::Memory(opcode) => write!(f, "a `{opcode}` is in the scratchpad or big-endian"),
            Self::Distance(bytes) => write!(f, "an iteration depends on a store of another one {bytes} bytes away"),
            Self::Overlap(pairs) => write!(f, "{pairs} pairs of arrays could overlap, too many to check"),
            Self::Alignment(opcode) => write!(f, "a `{opcode}` is not aligned as vectors have to be"),
            Self::NoArrays => write!(f, "it reads and writes no array"),
            Self::TooFewIterations(most) => write!(f, "its trip count is at most {most}"),
            Self::ManyLoops(loops) => write!(f, "{loops} loops of the function are vectorized already"),
            Self::Cost {
                vector,
                overhead,
                scalar,
            } => write!(
                f,
                "sixteen iterations have about {scalar} instructions, with vectors {vector} and {overhead} around the loop"
            ),
        }
    }
}
