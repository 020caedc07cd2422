//! The provenance of each instruction of the code: the rules or the pass that produced it. Requires
//! the feature `explain`.
//!
//! [`Compiler::compile_explained`](crate::Compiler::compile_explained) returns it with the code,
//! which is the same as without it.
//!
//! ```
//! use cranelift_codegen::{Context, control::ControlPlane, settings};
//! use cranelift_naplespu::{Compiler, StageRequest, explain::Reason};
//!
//! let functions = cranelift_reader::parse_functions(
//!     "function %add(i32, i32) -> i32 { block0(v0: i32, v1: i32): v2 = iadd v0, v1  return v2 }",
//! )?;
//! let isa = cranelift_naplespu::isa::lookup_by_name("naplespu")?.finish(settings::Flags::new(settings::builder()))?;
//! let mut ctx = Context::for_function(functions[0].clone());
//! let (code, explanation) =
//!     Compiler::new().compile_explained(&isa, &mut ctx, &mut ControlPlane::default(), StageRequest::default())?;
//! assert_eq!(explanation.insts.len(), code.bytes.len() / 4);
//! let Reason::Rules(rules) = &explanation.insts[0].reason else { panic!("{:?}", explanation.insts[0]) };
//! assert!(rules[0].term == "lower" && rules[0].place.starts_with("td/NaplesPUPatterns.td:"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::post_ra::func::{FrameStep, MachFunction};
use crate::provenance::{ProducedBy, Provenance, RuleChains};
use crate::vcode::VCode;
use cranelift_codegen::ir::Inst;
use std::fmt;

pub use crate::provenance::Producer;

include!(concat!(env!("OUT_DIR"), "/rules.rs"));

/// A lowering rule, generated from a td pattern or written in ISLE.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// The term that the rule defines: `lower`, `lower_words` or `lower_by_routine` for a rule of
    /// CLIF instructions.
    pub term: &'static str,
    /// Source position: `td/FILE:LINE`, followed by ` from td/FILE:LINE` for each `defm` that made
    /// it, or `isle/FILE:LINE`.
    pub place: &'static str,
    /// The rule in ISLE.
    pub text: &'static str,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.term, self.place)
    }
}

/// The producer of an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The rule that emitted the instruction, then the rule that invoked it, and so on, usually up
    /// to a rule of `lower`, `lower_words` or `lower_by_routine`. Not empty.
    Rules(Vec<&'static Rule>),
    /// A part of the compiler other than the rules.
    Producer(Producer),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rules(rules) => {
                for (number, rule) in rules.iter().enumerate() {
                    write!(f, "{}{rule}", if number == 0 { "" } else { " in " })?;
                }
                Ok(())
            }
            Self::Producer(producer) => f.write_str(producer.name()),
        }
    }
}

/// The provenance of an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explained {
    /// The producer of the instruction.
    pub reason: Reason,
    /// The instruction of the optimized function from which it was compiled. For a constant it is
    /// the first user, for an edge its branch.
    pub inst: Option<Inst>,
    /// The number of the VCode instruction from which it was expanded ([`Line::number`]).
    pub vcode: Option<usize>,
}

/// A line of the printed VCode.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Line {
    /// The text.
    pub text: String,
    /// The number of the instruction. `None` for the label of a block.
    pub number: Option<usize>,
}

/// The provenance of the instructions of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// The instructions of the code, in order.
    pub insts: Vec<Explained>,
    /// The printed VCode, as input of register allocation.
    pub vcode: Vec<Line>,
    /// The instructions of the VCode, by number.
    pub vcode_insts: Vec<Explained>,
    /// The numbers in [`RULES`] of the applied rules, in ascending order, including rules that
    /// emitted no instruction.
    pub applied: Vec<u16>,
}

impl Explanation {
    /// Creates the explanation of complete VCode.
    pub(crate) fn of_vcode(vcode: &VCode) -> Self {
        let mut lines = Vec::new();
        vcode.lines(|number, text| lines.push(Line { text, number }));
        let known = |(number, origin): (usize, &crate::vcode::Origin)| Explained {
            reason: reason(origin.provenance, &vcode.rule_chains),
            inst: origin.inst.or(origin.provenance.user()),
            vcode: Some(number),
        };
        let mut applied: Vec<u16> = vcode.rule_chains.applied.iter().copied().collect();
        applied.sort_unstable();
        Self {
            applied,
            insts: Vec::new(),
            vcode_insts: vcode.origins.iter().enumerate().map(known).collect(),
            vcode: lines,
        }
    }

    /// Adds the machine instructions.
    pub(crate) fn add(&mut self, func: &MachFunction, rule_chains: &RuleChains) {
        self.insts.extend(func.insts().iter().map(|inst| Explained {
            reason: match inst.frame {
                FrameStep::Enter => Reason::Producer(Producer::Prologue),
                FrameStep::Leave => Reason::Producer(Producer::Epilogue),
                FrameStep::None => reason(inst.origin.provenance, rule_chains),
            },
            inst: inst.origin.inst.or(inst.origin.provenance.user()),
            vcode: inst.origin.provenance.vcode_inst(),
        }));
    }
}

fn reason(provenance: Provenance, rule_chains: &RuleChains) -> Reason {
    match provenance.produced_by {
        ProducedBy::Other(producer) => Reason::Producer(producer),
        ProducedBy::Rules(number) => {
            let chain = rule_chains.chains.get(number as usize).into_iter().flatten();
            Reason::Rules(chain.filter_map(|&rule| RULES.get(usize::from(rule))).collect())
        }
    }
}
