//! The provenance of an instruction, from lowering to the final code.
//!
//! Each instruction has a [`Provenance`] in its [`Origin`](crate::vcode::Origin). With the feature
//! `explain` it records the lowering rules or the pass that produced the instruction, and the VCode
//! instruction from which it was expanded. [`crate::explain`] publishes it. Without the feature it
//! is an empty type without cost.

#[cfg(feature = "explain")]
pub use tracked::{ProducedBy, Provenance, RuleChains};
#[cfg(not(feature = "explain"))]
pub use untracked::{Provenance, RuleChains};

/// Parts of the compiler that produce instructions without a lowering rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Producer {
    /// The parser of machine functions, for tests.
    #[default]
    Text,
    /// Lowering of the function's arguments.
    Argument,
    /// Lowering of a constant.
    Constant,
    /// Lowering of an edge that needed a separate block.
    Edge,
    /// Lowering of a call with exception handlers.
    TryCall,
    /// Register allocation: a move between registers.
    Move,
    /// Register allocation: a store to a spill slot.
    Spill,
    /// Register allocation: a load from a spill slot.
    Reload,
    /// The prologue, including stack checks.
    Prologue,
    /// An epilogue.
    Epilogue,
    /// The entry of an exception handler.
    Landing,
    /// A trap sequence.
    Trap,
    /// The removal of loop-carried copies.
    LoopCopies,
    /// Loop rotation and tail duplication.
    Rotation,
    /// Relaxation of a branch or call that does not reach its target.
    Relax,
    /// The workaround for results lost before a branch.
    Hazard,
}

impl Producer {
    /// Returns the name in the output of `--explain`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "parsed text",
            Self::Argument => "argument",
            Self::Constant => "constant",
            Self::Edge => "edge between blocks",
            Self::TryCall => "call with handlers",
            Self::Move => "allocation move",
            Self::Spill => "spill",
            Self::Reload => "reload",
            Self::Prologue => "prologue",
            Self::Epilogue => "epilogue",
            Self::Landing => "handler entry",
            Self::Trap => "trap sequence",
            Self::LoopCopies => "loop-carried copy",
            Self::Rotation => "loop rotation",
            Self::Relax => "branch relaxation",
            Self::Hazard => "hazard workaround",
        }
    }
}

#[cfg(feature = "explain")]
mod tracked {
    use super::Producer;
    use crate::vcode::Origin;
    use cranelift_codegen::ir::Inst;
    use cranelift_codegen::packed_option::PackedOption;
    use regalloc2::VReg;
    use rustc_hash::{FxHashMap, FxHashSet};
    use smallvec::SmallVec;

    /// Rules by number, innermost first.
    pub type Chain = SmallVec<[u16; 4]>;

    /// The producer of an instruction.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ProducedBy {
        /// Lowering rules, by the number of their chain.
        Rules(u32),
        /// Another part of the compiler.
        Other(Producer),
    }

    /// The provenance of an instruction.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Provenance {
        /// The producer of the instruction.
        pub produced_by: ProducedBy,
        /// The number of the VCode instruction, or [`NONE`].
        vcode_inst: u32,
        /// The CLIF instruction for which a constant or an edge was lowered.
        user: PackedOption<Inst>,
    }

    /// No VCode instruction.
    const NONE: u32 = u32::MAX;

    impl Default for Provenance {
        fn default() -> Self {
            Self::produced_by(Producer::default())
        }
    }

    impl Provenance {
        /// Creates the provenance of an instruction that no rule produced.
        pub fn produced_by(producer: Producer) -> Self {
            Self {
                produced_by: ProducedBy::Other(producer),
                vcode_inst: NONE,
                user: PackedOption::default(),
            }
        }

        /// Sets the CLIF instruction that uses this one.
        #[must_use]
        pub fn with_user(self, inst: Option<Inst>) -> Self {
            Self {
                user: inst.into(),
                ..self
            }
        }

        /// Returns the CLIF instruction for which a constant or an edge was lowered.
        pub fn user(self) -> Option<Inst> {
            self.user.expand()
        }

        /// Sets the VCode instruction.
        #[must_use]
        pub fn with_vcode_inst(self, number: usize) -> Self {
            Self {
                vcode_inst: u32::try_from(number).unwrap_or(NONE),
                ..self
            }
        }

        /// Returns the number of the VCode instruction.
        pub fn vcode_inst(self) -> Option<usize> {
            (self.vcode_inst != NONE).then_some(self.vcode_inst as usize)
        }

        /// Replaces the producer.
        #[must_use]
        pub fn with_producer(self, producer: Producer) -> Self {
            Self {
                produced_by: ProducedBy::Other(producer),
                ..self
            }
        }
    }

    /// The lowering rules of the instructions of a function.
    #[derive(Clone, Debug, Default)]
    pub struct RuleChains {
        is_on: bool,
        /// For each emitted instruction of the current CLIF instruction its rules so far.
        current: Vec<Chain>,
        numbers: FxHashMap<Chain, u32>,
        /// The first user of each constant, by the constant's register. Lowering proceeds
        /// backwards, so it is the last one recorded.
        constant_users: FxHashMap<VReg, Inst>,
        /// The chains by number.
        pub chains: Vec<Chain>,
        /// The applied rules, including those that emitted nothing.
        pub applied: FxHashSet<u16>,
    }

    impl RuleChains {
        /// Creates an empty table. It records rules if `is_on`.
        pub fn new(is_on: bool) -> Self {
            Self {
                is_on,
                ..Self::default()
            }
        }

        /// Records that the rule produced the instructions from `started` to `end` of the current
        /// CLIF instruction.
        #[inline]
        pub fn record_rule(&mut self, started: usize, end: usize, rule: u16) {
            if self.is_on {
                self.push_rule(started, end, rule);
            }
        }

        #[cold]
        fn push_rule(&mut self, started: usize, end: usize, rule: u16) {
            self.applied.insert(rule);
            if started >= end {
                return;
            }
            if self.current.len() < end {
                self.current.resize(end, Chain::new());
            }
            self.current[started..end].iter_mut().for_each(|chain| chain.push(rule));
        }

        /// Records a use of the constant in this register by an instruction with this origin. The
        /// last call counts.
        #[inline]
        pub fn record_use(&mut self, origin: &Origin, constant: VReg) {
            if self.is_on {
                let inst = origin.inst.or(origin.provenance.user());
                self.constant_users.extend(inst.map(|inst| (constant, inst)));
            }
        }

        /// Returns the provenance of the constant in this register.
        #[inline]
        pub fn of_constant(&self, constant: VReg) -> Provenance {
            let user = if self.is_on {
                self.constant_users.get(&constant)
            } else {
                None
            };
            Provenance::produced_by(Producer::Constant).with_user(user.copied())
        }

        /// Appends the origins of `count` instructions in reverse order.
        #[inline]
        pub fn append_origins(&mut self, origins: &mut Vec<Origin>, count: usize, origin: Origin) {
            if self.is_on {
                self.append_with_chains(origins, count, origin);
            } else {
                origins.resize(origins.len() + count, origin);
            }
        }

        #[cold]
        fn append_with_chains(&mut self, origins: &mut Vec<Origin>, count: usize, origin: Origin) {
            self.current.resize(count, Chain::new());
            let mut chains = std::mem::take(&mut self.current);
            for chain in chains.drain(..).rev() {
                let mut provenance = origin.provenance;
                if !chain.is_empty() {
                    provenance.produced_by = ProducedBy::Rules(self.number_of(chain));
                }
                origins.push(Origin { provenance, ..origin });
            }
            self.current = chains;
        }

        fn number_of(&mut self, chain: Chain) -> u32 {
            // The number of chains fits 32 bits: more would not fit memory.
            let next = self.chains.len() as u32;
            *self.numbers.entry(chain).or_insert_with_key(|chain| {
                self.chains.push(chain.clone());
                next
            })
        }
    }
}

#[cfg(not(feature = "explain"))]
mod untracked {
    use super::Producer;
    use crate::vcode::Origin;
    use cranelift_codegen::ir::Inst;
    use regalloc2::VReg;

    /// An empty provenance.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Provenance;

    impl Provenance {
        /// Creates an empty provenance.
        #[inline]
        pub fn produced_by(_: Producer) -> Self {
            Self
        }

        /// Has no effect.
        #[inline]
        #[must_use]
        pub fn with_user(self, _: Option<Inst>) -> Self {
            self
        }

        /// Has no effect.
        #[inline]
        #[must_use]
        pub fn with_vcode_inst(self, _: usize) -> Self {
            self
        }

        /// Has no effect.
        #[inline]
        #[must_use]
        pub fn with_producer(self, _: Producer) -> Self {
            self
        }
    }

    /// An empty table.
    #[derive(Clone, Debug, Default)]
    pub struct RuleChains;

    impl RuleChains {
        /// Creates an empty table.
        #[inline]
        pub fn new(_: bool) -> Self {
            Self
        }

        /// Has no effect.
        #[inline]
        pub fn record_use(&mut self, _: &Origin, _: VReg) {}

        /// Returns an empty provenance.
        #[inline]
        pub fn of_constant(&self, _: VReg) -> Provenance {
            Provenance
        }

        /// Appends the origins of `count` instructions.
        #[inline]
        pub fn append_origins(&mut self, origins: &mut Vec<Origin>, count: usize, origin: Origin) {
            origins.resize(origins.len() + count, origin);
        }
    }
}
