//! Why each instruction of the code is there: the rules that made it, or what else did. With the feature `explain`.
//!
//! [`Compiler::compile_explained`](crate::Compiler::compile_explained) gives it beside the code, which is the same.
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

use crate::finish::func::{FrameStep, MachFunction};
use crate::reason::{By, Reasons, Why};
use crate::vcode::VCode;
use cranelift_codegen::ir::Inst;
use std::fmt;

pub use crate::reason::Maker;

include!(concat!(env!("OUT_DIR"), "/rules.rs"));

/// A rule of lowering: made from a pattern of td, or written in ISLE.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// The term that it is a rule of: `lower`, `lower_words` or `lower_by_routine` for a rule of CLIF instructions.
    pub term: &'static str,
    /// Where it stands: `td/FILE:LINE`, followed by ` from td/FILE:LINE` for each `defm` that made it, or `isle/FILE:LINE`.
    pub place: &'static str,
    /// Its text in ISLE.
    pub text: &'static str,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.term, self.place)
    }
}

/// Why an instruction is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The rule that emitted it, then the rule in whose result that one stands, and so on, mostly up to one of `lower`, `lower_words` or `lower_by_routine`. There is at least one.
    Rules(Vec<&'static Rule>),
    /// No rule made it.
    Maker(Maker),
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
            Self::Maker(maker) => f.write_str(maker.name()),
        }
    }
}

/// What is known of an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explained {
    /// Why it is there.
    pub reason: Reason,
    /// The instruction of the optimized function that it comes from; for a constant the first one that wants it, for an edge its branch.
    pub inst: Option<Inst>,
    /// The number of the instruction of the VCode that it comes from, as [`Line::number`] has it.
    pub vcode: Option<usize>,
}

/// A line of the VCode.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Line {
    /// The text.
    pub text: String,
    /// The number of the instruction; none for the start of a block.
    pub number: Option<usize>,
}

/// Why the instructions of a function are there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// One for each instruction of the code, in its order.
    pub insts: Vec<Explained>,
    /// The function as machine instructions on virtual registers, as register allocation got it.
    pub vcode: Vec<Line>,
    /// One for each instruction of it, by number.
    pub vcode_insts: Vec<Explained>,
}

impl Explanation {
    /// Of the VCode. It is to be complete.
    pub(crate) fn of_vcode(vcode: &VCode) -> Self {
        let mut lines = Vec::new();
        vcode.lines(|number, text| lines.push(Line { text, number }));
        let known = |(number, origin): (usize, &crate::vcode::Origin)| Explained {
            reason: reason(origin.why, &vcode.reasons),
            inst: origin.inst.or(origin.why.wanted_by()),
            vcode: Some(number),
        };
        Self {
            insts: Vec::new(),
            vcode_insts: vcode.origins.iter().enumerate().map(known).collect(),
            vcode: lines,
        }
    }

    /// Adds the instructions of the machine.
    pub(crate) fn add(&mut self, func: &MachFunction, reasons: &Reasons) {
        self.insts.extend(func.insts().iter().map(|inst| Explained {
            reason: match inst.frame {
                FrameStep::Enter => Reason::Maker(Maker::Prologue),
                FrameStep::Leave => Reason::Maker(Maker::Epilogue),
                FrameStep::None => reason(inst.origin.why, reasons),
            },
            inst: inst.origin.inst.or(inst.origin.why.wanted_by()),
            vcode: inst.origin.why.vcode(),
        }));
    }
}

fn reason(why: Why, reasons: &Reasons) -> Reason {
    match why.by {
        By::Maker(maker) => Reason::Maker(maker),
        By::Rules(number) => {
            let chain = reasons.chains.get(number as usize).into_iter().flatten();
            Reason::Rules(chain.filter_map(|&rule| RULES.get(usize::from(rule))).collect())
        }
    }
}
