//! The optional passes, and the stages at which a function can be printed.

use crate::remarks::LoopRemark;
use crate::timing::{Clock, Step};
use std::fmt;
use std::str::FromStr;

macro_rules! named {
    ($(#[$doc:meta])* $type:ident: $what:literal { $(#[doc = $about:literal] $variant:ident = $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum $type {
            $(#[doc = $about] $variant,)*
        }

        impl $type {
            /// All variants, in the order of the pipeline.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns its name on command lines.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Returns a short description.
            pub fn about(self) -> &'static str {
                let about = match self {
                    $(Self::$variant => $about,)*
                };
                about.trim().trim_end_matches('.')
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }

        impl FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let found = Self::ALL.iter().find(|known| known.name() == text);
                found.copied().ok_or_else(|| {
                    let known: Vec<&str> = Self::ALL.iter().map(|known| known.name()).collect();
                    format!("`{text}` is not a {}; there are {}", $what, known.join(", "))
                })
            }
        }
    };
}

named! {
    /// An optional pass: code is correct without it.
    Pass: "pass that can be left out" {
        /// Inlining of calls between the functions of a CLIF file.
        Inline = "inline",
        /// Compares of floats with constants.
        Compares = "compares",
        /// Simplification by upper bounds of integers.
        Bits = "bits",
        /// Loop versioning: checks of bounds and alignment before loops.
        Versioning = "versioning",
        /// Loop vectorization: sixteen iterations at a time.
        Vectorize = "vectorize",
        /// Reassociation of addresses in loops.
        Reassociation = "reassociation",
        /// Cranelift's simplification.
        Egraph = "egraph",
        /// Selects as arithmetic.
        Selects = "selects",
        /// Loop unrolling.
        Unroll = "unroll",
        /// Simplification after unrolling, and offsets of accesses.
        Simplify = "simplify",
        /// Loop-invariant code motion.
        Licm = "licm",
        /// Strength reduction of addresses.
        StrengthReduction = "strength_reduction",
        /// Increments of induction variables at the ends of latches.
        IvIncrements = "iv_increments",
        /// Splitting of exit edges of loops.
        LoopExits = "loop_exits",
        /// Dead code elimination on VCode.
        Dce = "dce",
        /// Scheduling before register allocation.
        Presched = "presched",
        /// Copy propagation.
        Copyprop = "copyprop",
        /// Shrink-wrapping of the frame.
        Wrap = "wrap",
        /// Merging of regions under one lane mask.
        Masks = "masks",
        /// Loop rotation and tail duplication.
        Rotation = "rotation",
        /// Removal of loop-carried copies.
        LoopCopies = "loop_copies",
        /// Register renaming.
        Rename = "rename",
        /// List scheduling.
        Sched = "sched",
    }
}

named! {
    /// A stage of the pipeline after which a function can be printed.
    Stage: "stage" {
        /// CLIF after legalization and the expansion of intrinsics, before the optimizer.
        Legalize = "legalize",
        /// CLIF with integer compares in place of compares of floats with constants.
        Compares = "compares",
        /// CLIF simplified by upper bounds of integers.
        Bits = "bits",
        /// CLIF with versioned loops.
        Versioning = "versioning",
        /// CLIF with vectorized loops.
        Vectorize = "vectorize",
        /// The same with addresses reassociated.
        Reassociation = "reassociation",
        /// The same, simplified, with selects as arithmetic.
        Selects = "selects",
        /// The same with loops unrolled.
        Unroll = "unroll",
        /// The same, simplified, with constants in addresses as offsets.
        Simplify = "simplify",
        /// The same after loop-invariant code motion.
        Licm = "licm",
        /// The same after strength reduction of addresses.
        StrengthReduction = "strength_reduction",
        /// The same with increments at the ends of latches.
        IvIncrements = "iv_increments",
        /// CLIF as it is lowered.
        Opt = "opt",
        /// Machine instructions on virtual registers, as lowering emits them.
        Vcode = "vcode",
        /// The same without dead code.
        Dce = "dce",
        /// The same after scheduling.
        Presched = "presched",
        /// The same with allocated registers.
        Regalloc = "regalloc",
        /// Machine instructions in basic blocks.
        Expand = "expand",
        /// The same after copy propagation.
        Copyprop = "copyprop",
        /// The same after shrink-wrapping of the frame.
        Wrap = "wrap",
        /// The same with mask regions merged.
        Masks = "masks",
        /// The same with loops rotated and tails duplicated.
        Rotation = "rotation",
        /// The same without loop-carried copies.
        LoopCopies = "loop_copies",
        /// The same after register renaming.
        Rename = "rename",
        /// The same after scheduling and the removal of hazards.
        Sched = "sched",
        /// The same with every branch in reach of its target.
        Relax = "relax",
    }
}

/// A set of passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passes(u32);

impl Passes {
    /// Returns whether the set contains the pass.
    pub fn contains(self, pass: Pass) -> bool {
        self.0 & 1 << pass as u32 != 0
    }

    /// Returns the set without one pass.
    #[must_use]
    pub fn without(self, pass: Pass) -> Self {
        Self(self.0 & !(1 << pass as u32))
    }
}

impl FromIterator<Pass> for Passes {
    fn from_iter<T: IntoIterator<Item = Pass>>(passes: T) -> Self {
        Self(passes.into_iter().fold(0, |set, pass| set | 1 << pass as u32))
    }
}

/// The set of stages to keep as text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageRequest(u32);

impl StageRequest {
    /// Returns whether the stage is requested.
    pub fn contains(self, stage: Stage) -> bool {
        self.0 & 1 << stage as u32 != 0
    }
}

impl FromIterator<Stage> for StageRequest {
    fn from_iter<T: IntoIterator<Item = Stage>>(stages: T) -> Self {
        Self(stages.into_iter().fold(0, |set, stage| set | 1 << stage as u32))
    }
}

/// Collects the text of the requested stages, and the time of each stage if [timing](crate::timing)
/// is enabled.
#[derive(Debug, Default)]
pub struct Recorder {
    request: StageRequest,
    /// The text of the requested stages, in the order of the pipeline.
    pub texts: Vec<(Stage, String)>,
    /// The remarks on loops.
    pub loops: Vec<LoopRemark>,
    clock: Option<Clock>,
}

impl Recorder {
    /// Creates a recorder of these stages.
    pub fn new(request: StageRequest) -> Self {
        Self {
            request,
            texts: Vec::new(),
            loops: Vec::new(),
            clock: Clock::start(),
        }
    }

    /// Records that the function has reached a stage.
    pub fn keep(&mut self, stage: Stage, text: impl FnOnce() -> String) {
        if let Some(clock) = &mut self.clock {
            clock.done(stage.name());
        }
        if self.request.contains(stage) {
            self.texts.push((stage, text()));
            if let Some(clock) = &mut self.clock {
                clock.skip();
            }
        }
    }

    /// Records that a step is complete.
    pub(crate) fn done(&mut self, step: Step) {
        if let Some(clock) = &mut self.clock {
            clock.done(step.name());
        }
    }
}
