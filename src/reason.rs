//! Why an instruction is there, on its way from lowering to the code.
//!
//! An instruction carries a [`Why`] in its [`Origin`](crate::vcode::Origin). With the feature `explain` that is the rules that made it, or
//! what else did, and the instruction of the VCode that it was expanded from; [`crate::explain`] makes it public. Without the feature it
//! is nothing, and takes no space and no time.

#[cfg(feature = "explain")]
pub use tracked::{By, Reasons, Why};
#[cfg(not(feature = "explain"))]
pub use untracked::{Reasons, Why};

/// What makes instructions beside rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Maker {
    /// A function that was not lowered, but read as machine instructions.
    #[default]
    Text,
    /// Lowering, where arguments arrive.
    Argument,
    /// Lowering, for a constant that somebody needs.
    Constant,
    /// Lowering, on a way between two blocks that needed a block of its own.
    Edge,
    /// Lowering, for a call with exception handlers.
    TryCall,
    /// Register allocation: a value goes from one register to another.
    Move,
    /// Register allocation: a value goes to the frame.
    Spill,
    /// Register allocation: a value comes back from the frame.
    Reload,
    /// The start of the function: the frame is made, and before that checked.
    Prologue,
    /// An end of the function: the frame is removed.
    Epilogue,
    /// The start of an exception handler.
    Landing,
    /// What all traps with one code lead to.
    Trap,
    /// The pass that moves what rounds of a loop move.
    Carried,
    /// The pass that turns and copies jumps.
    Jumps,
    /// A branch or call whose target is out of reach.
    Relax,
    /// An erratum: a result may not come directly before a branch.
    Hazard,
}

impl Maker {
    /// In a few words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "read as text",
            Self::Argument => "argument",
            Self::Constant => "constant",
            Self::Edge => "edge between blocks",
            Self::TryCall => "call with handlers",
            Self::Move => "move of allocation",
            Self::Spill => "spill",
            Self::Reload => "reload",
            Self::Prologue => "prologue",
            Self::Epilogue => "epilogue",
            Self::Landing => "start of a handler",
            Self::Trap => "end of a trap",
            Self::Carried => "move out of a loop",
            Self::Jumps => "turned jump",
            Self::Relax => "branch out of reach",
            Self::Hazard => "erratum",
        }
    }
}

#[cfg(feature = "explain")]
mod tracked {
    use super::Maker;
    use crate::vcode::Origin;
    use cranelift_codegen::ir::Inst;
    use cranelift_codegen::packed_option::PackedOption;
    use regalloc2::VReg;
    use rustc_hash::FxHashMap;
    use smallvec::SmallVec;

    /// Rules by number, the innermost first.
    pub type Chain = SmallVec<[u16; 4]>;

    /// Who made an instruction.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum By {
        /// Rules: the number of a chain.
        Rules(u32),
        /// Something else.
        Maker(Maker),
    }

    /// Why an instruction is there.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Why {
        /// Who made it.
        pub by: By,
        /// The instruction of the VCode.
        vcode: u32,
        /// The instruction that wants what belongs to none: a constant, or a way between blocks.
        wanted_by: PackedOption<Inst>,
    }

    /// No instruction of the VCode.
    const NONE: u32 = u32::MAX;

    impl Default for Why {
        fn default() -> Self {
            Self::made_by(Maker::default())
        }
    }

    impl Why {
        /// Not by a rule.
        pub fn made_by(maker: Maker) -> Self {
            Self {
                by: By::Maker(maker),
                vcode: NONE,
                wanted_by: PackedOption::default(),
            }
        }

        /// The same, wanted by this instruction.
        #[must_use]
        pub fn wanted(self, inst: Option<Inst>) -> Self {
            Self {
                wanted_by: inst.into(),
                ..self
            }
        }

        /// The instruction that wants what belongs to none.
        pub fn wanted_by(self) -> Option<Inst> {
            self.wanted_by.expand()
        }

        /// From this instruction of the VCode.
        #[must_use]
        pub fn of_vcode(self, number: usize) -> Self {
            Self {
                vcode: u32::try_from(number).unwrap_or(NONE),
                ..self
            }
        }

        /// The instruction of the VCode.
        pub fn vcode(self) -> Option<usize> {
            (self.vcode != NONE).then_some(self.vcode as usize)
        }

        /// The same instruction of the VCode, but something else made it.
        #[must_use]
        pub fn remade_by(self, maker: Maker) -> Self {
            Self {
                by: By::Maker(maker),
                ..self
            }
        }
    }

    /// The rules of the instructions of a function.
    #[derive(Clone, Debug, Default)]
    pub struct Reasons {
        is_on: bool,
        /// For each instruction of the CLIF instruction at hand the rules so far.
        current: Vec<Chain>,
        numbers: FxHashMap<Chain, u32>,
        /// For the registers of constants the first instruction that wants them.
        wanted: FxHashMap<VReg, Inst>,
        /// The rules of the chains by number.
        pub chains: Vec<Chain>,
    }

    impl Reasons {
        /// Notes rules if they are wanted.
        pub fn new(is_on: bool) -> Self {
            Self {
                is_on,
                ..Self::default()
            }
        }

        /// The rule has made the instructions from `started` to `end`, of those at hand.
        #[inline]
        pub fn rule_done(&mut self, started: usize, end: usize, rule: u16) {
            if self.is_on && started < end {
                self.note(started, end, rule);
            }
        }

        #[cold]
        fn note(&mut self, started: usize, end: usize, rule: u16) {
            if self.current.len() < end {
                self.current.resize(end, Chain::new());
            }
            self.current[started..end].iter_mut().for_each(|chain| chain.push(rule));
        }

        /// An instruction with this origin wants the constant in this register. The last one that is told counts.
        #[inline]
        pub fn wants(&mut self, origin: &Origin, constant: VReg) {
            if self.is_on {
                let inst = origin.inst.or(origin.why.wanted_by());
                self.wanted.extend(inst.map(|inst| (constant, inst)));
            }
        }

        /// Why the constant in this register is there.
        #[inline]
        pub fn constant(&self, constant: VReg) -> Why {
            let wanted_by = if self.is_on { self.wanted.get(&constant) } else { None };
            Why::made_by(Maker::Constant).wanted(wanted_by.copied())
        }

        /// Appends the origins of `count` instructions, the last of which comes first.
        #[inline]
        pub fn flush(&mut self, origins: &mut Vec<Origin>, count: usize, origin: Origin) {
            if self.is_on {
                self.flush_chains(origins, count, origin);
            } else {
                origins.resize(origins.len() + count, origin);
            }
        }

        #[cold]
        fn flush_chains(&mut self, origins: &mut Vec<Origin>, count: usize, origin: Origin) {
            self.current.resize(count, Chain::new());
            let mut chains = std::mem::take(&mut self.current);
            for chain in chains.drain(..).rev() {
                let mut why = origin.why;
                if !chain.is_empty() {
                    why.by = By::Rules(self.number(chain));
                }
                origins.push(Origin { why, ..origin });
            }
            self.current = chains;
        }

        fn number(&mut self, chain: Chain) -> u32 {
            // A function with more kinds of chains than 32 bits count does not fit into memory.
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
    use super::Maker;
    use crate::vcode::Origin;
    use cranelift_codegen::ir::Inst;
    use regalloc2::VReg;

    /// Nothing is known.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Why;

    impl Why {
        /// Nothing.
        #[inline]
        pub fn made_by(_: Maker) -> Self {
            Self
        }

        /// Nothing.
        #[inline]
        #[must_use]
        pub fn wanted(self, _: Option<Inst>) -> Self {
            self
        }

        /// Nothing.
        #[inline]
        #[must_use]
        pub fn of_vcode(self, _: usize) -> Self {
            self
        }

        /// Nothing.
        #[inline]
        #[must_use]
        pub fn remade_by(self, _: Maker) -> Self {
            self
        }
    }

    /// Nothing is noted.
    #[derive(Clone, Debug, Default)]
    pub struct Reasons;

    impl Reasons {
        /// Notes nothing.
        #[inline]
        pub fn new(_: bool) -> Self {
            Self
        }

        /// Nothing is noted.
        #[inline]
        pub fn wants(&mut self, _: &Origin, _: VReg) {}

        /// Nothing.
        #[inline]
        pub fn constant(&self, _: VReg) -> Why {
            Why
        }

        /// Appends the origins of `count` instructions.
        #[inline]
        pub fn flush(&mut self, origins: &mut Vec<Origin>, count: usize, origin: Origin) {
            origins.resize(origins.len() + count, origin);
        }
    }
}
