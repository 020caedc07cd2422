//! What the compiler says about the loops of a function: which were vectorised, and why the others were not.
//!
//! The pass that vectorises collects these; [`CompiledCode::loops`](crate::CompiledCode::loops) carries them, and whoever wants
//! text prints them.

use cranelift_codegen::ir::{Block, Opcode, SourceLoc, Type};
use std::fmt;

/// What became of one innermost loop.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoopRemark {
    /// The block that every round of the loop begins with.
    pub header: Block,
    /// Where the first instruction of that block comes from; the default location if it does not say.
    pub srcloc: SourceLoc,
    /// What became of it.
    pub outcome: LoopOutcome,
}

impl fmt::Display for LoopRemark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.header, self.outcome)
    }
}

/// Whether a loop was vectorised.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoopOutcome {
    /// It does sixteen rounds at a time now.
    Vectorised(Vectorised),
    /// It is as it was.
    Scalar(Reason),
}

impl fmt::Display for LoopOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vectorised(how) => write!(f, "vectorised: {how}"),
            Self::Scalar(reason) => write!(f, "not vectorised: {reason}"),
        }
    }
}

/// How a loop was vectorised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Vectorised {
    /// Rounds that are done at a time.
    pub lanes: u32,
    /// How many rounds there are, if that is known.
    pub rounds: Option<u64>,
    /// Reductions: values that are one for each lane until the loop ends.
    pub reductions: usize,
    /// Loads of vectors that are put together from two lines.
    pub unaligned_loads: usize,
    /// Whether it is checked at run time that addresses are aligned.
    pub alignment_check: bool,
    /// How many pairs of arrays are checked at run time not to overlap.
    pub overlap_checks: usize,
    /// About how many machine instructions a round of the scalar loop has.
    pub scalar_cost: u32,
    /// About how many a round of the vector loop has, which does for `lanes` of those.
    pub vector_cost: u32,
}

impl fmt::Display for Vectorised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rounds at a time", self.lanes)?;
        match self.rounds {
            Some(rounds) => write!(f, " of {rounds}")?,
            None => write!(f, ", as many as there are")?,
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

/// Why a loop was not vectorised: the first reason that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The loop can be left in several places, or none of them counts.
    NotCounted,
    /// The variable that counts is not an i32, or grows by something else than a power of two.
    Counter(Type, i64),
    /// Branches within a round that are not a choice between values.
    Branches(Block),
    /// It calls, traps, or does something else that has its place.
    Effect(Opcode),
    /// There is no such operation on the lanes of this type.
    Operation(Opcode, Type),
    /// A value is carried from one round to the next, and is neither a variable that counts nor a reduction.
    Carried(Type),
    /// A float sum, which has to stay in order.
    FloatReduction(Opcode),
    /// Lanes would have different shift amounts.
    ShiftAmount(Opcode),
    /// Elements of different sizes meet in a way that has no form in lanes.
    MixedWidths(Opcode),
    /// An address that is not known to grow by a constant.
    Address(Opcode),
    /// An address that grows by so many bytes, where the element has so many.
    Stride(i32, u32),
    /// Every round stores to the same place.
    SamePlace,
    /// An element type that has no lanes.
    Element(Type),
    /// Accesses of the scratchpad, or in big-endian order.
    Memory(Opcode),
    /// A round needs what another one at this distance in bytes stores.
    Distance(i32),
    /// More pairs of arrays than may be checked at run time could overlap.
    Overlap(usize),
    /// An access that is known to be misaligned, or not known to be aligned, where that cannot be helped.
    Alignment(Opcode),
    /// There is nothing in memory to work on.
    NoArrays,
    /// There are at most so many rounds.
    FewRounds(u64),
    /// So many loops of the function are vectorised already.
    ManyLoops(usize),
    /// So many instructions as vectors would not be worth it in place of so many.
    Cost {
        /// About how many machine instructions the loop would have with vectors.
        vector: u32,
        /// About how many it has.
        scalar: u32,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotCounted => write!(f, "its rounds are not counted by one exit"),
            Self::Counter(ty, step) => write!(f, "it counts by {step} in {ty}, not by a power of two in i32"),
            Self::Branches(block) => write!(f, "the branch of {block} is no choice between values"),
            Self::Effect(opcode) => write!(f, "`{opcode}` has its place in each round"),
            Self::Operation(opcode, ty) => write!(f, "there is no `{opcode}` of {ty}"),
            Self::Carried(ty) => write!(
                f,
                "a value of {ty} goes from one round to the next, and is no count and no reduction"
            ),
            Self::FloatReduction(opcode) => write!(f, "`{opcode}` of floats has to stay in order"),
            Self::ShiftAmount(opcode) => write!(f, "the amount of `{opcode}` changes"),
            Self::MixedWidths(opcode) => write!(f, "`{opcode}` is on elements of different sizes"),
            Self::Address(opcode) => write!(f, "the address of a `{opcode}` is not known to grow by a constant"),
            Self::Stride(bytes, element) => write!(
                f,
                "an address grows by {bytes} bytes a round, its elements have {element}"
            ),
            Self::SamePlace => write!(f, "every round stores to the same place"),
            Self::Element(ty) => write!(f, "elements of {ty} have no lanes"),
            Self::Memory(opcode) => write!(f, "a `{opcode}` is in the scratchpad or big-endian"),
            Self::Distance(bytes) => write!(f, "a round needs what another one stores {bytes} bytes away"),
            Self::Overlap(pairs) => write!(f, "{pairs} pairs of arrays could overlap, too many to check"),
            Self::Alignment(opcode) => write!(f, "a `{opcode}` is not aligned as vectors have to be"),
            Self::NoArrays => write!(f, "it reads and writes no array"),
            Self::FewRounds(most) => write!(f, "it has at most {most} rounds"),
            Self::ManyLoops(loops) => write!(f, "{loops} loops of the function are vectorised already"),
            Self::Cost { vector, scalar } => write!(
                f,
                "about {vector} instructions with vectors are not worth it in place of {scalar}"
            ),
        }
    }
}
