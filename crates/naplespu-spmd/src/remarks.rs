//! Remarks: what became of the accesses, branches, loops, divisions and calls of a kernel.

use crate::copy;
use crate::divergence::Form;
use cranelift_codegen::ir::{Block, Function, Inst, Opcode, SourceLoc, Type};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What became of an instruction in a version of the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The kernel or callee, as CLIF writes it.
    pub function: String,
    /// The instruction of that function; for a loop, its first one with a source location.
    pub inst: Inst,
    /// The source location of the instruction.
    pub location: SourceLoc,
    /// The number of loops around the instruction, including those over work-groups.
    pub loops: usize,
    /// The version of the code.
    pub version: Version,
    /// The instruction and its outcome.
    pub matter: Matter,
}

/// A copy of the code of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// The code for work-groups of a row in which the checks hold that are evaluated for the row.
    pub row: bool,
    /// The code for subgroups or iterations in which a check holds for all lanes.
    pub all_lanes: bool,
}

/// How a value differs between the lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Equal in all lanes.
    Uniform,
    /// An address that grows by the size of the access from lane to lane.
    Consecutive,
    /// A number that grows by this constant from lane to lane.
    Strided(i32),
    /// Anything else.
    Varying,
}

/// The kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of CLIF's opcodes")]
pub enum AccessKind {
    Load,
    Store,
    Atomic,
}

/// An instruction with its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Matter {
    /// A load, a store or an atomic operation.
    Access {
        /// Its kind.
        kind: AccessKind,
        /// Its size in bytes.
        bytes: u32,
        /// Whether it accesses the scratchpad.
        scratchpad: bool,
        /// The shape of its address.
        shape: Shape,
        /// What became of it.
        outcome: AccessOutcome,
    },
    /// A branch or a branch table.
    Branch {
        /// The shape of the condition.
        condition: Condition,
        /// What became of it.
        outcome: BranchOutcome,
    },
    /// A conditional trap.
    Trap(TrapOutcome),
    /// A loop.
    Loop(LoopOutcome),
    /// A division, or an operation without a vector form.
    Operation {
        /// The operation.
        opcode: Opcode,
        /// Its controlling type, usually that of its result.
        ty: Type,
        /// What became of it.
        outcome: OperationOutcome,
    },
    /// A call.
    Call {
        /// The name of the callee, or `None` for an indirect call.
        callee: Option<String>,
        /// What became of it.
        outcome: CallOutcome,
    },
}

/// The condition of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Equal in all lanes.
    Uniform,
    /// A compare of a number that depends on the work-item with a bound.
    Bound,
    /// Anything else.
    Varying,
}

/// What became of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessOutcome {
    /// One scalar access for all lanes.
    Scalar,
    /// One vector access.
    Vector,
    /// One vector access if all lanes are active, and one under a mask otherwise.
    MaskedVector,
    /// Two vector accesses: lane 0 need not be at the start of a cache line.
    TwoLines,
    /// One instruction with an address for each lane, in the scratchpad.
    Gather,
    /// One scalar access for each lane.
    Lanes(Reason),
}

/// Why an access is executed lane by lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Its addresses are not consecutive.
    NotConsecutive,
    /// It is a store whose lane 0 need not be at the start of a cache line.
    UnalignedStore,
    /// Only words have vector accesses.
    NotWord,
    /// The addresses need not be multiples of a word.
    NotAligned,
    /// All lanes store to one address, the last one last.
    OneAddress,
    /// It is an atomic operation.
    Atomic,
}

/// What became of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BranchOutcome {
    /// It stays a branch.
    Stays,
    /// It is evaluated once for a row of work-groups.
    Hoisted,
    /// A scalar test selects a copy of the code after it, without masks.
    Versioned,
    /// It became a mask of the lanes.
    Mask,
}

/// What became of a conditional trap whose condition depends on the work-item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrapOutcome {
    /// The condition is evaluated once for a row of work-groups.
    Hoisted,
    /// The condition is evaluated for all lanes at once.
    Vector,
}

/// What became of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopOutcome {
    /// All lanes leave it in the same iteration.
    Uniform,
    /// Iterations that all lanes execute have no masks.
    AllLanes,
    /// It continues while a lane is in it.
    WhileActive,
}

/// What became of a division or another operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationOutcome {
    /// It stays scalar.
    Scalar,
    /// It became shifts or masks.
    Shift,
    /// It became a multiplication by the reciprocal.
    Reciprocal,
    /// It is executed for each active lane: the divisor differs between the lanes, or the
    /// operation has no vector form.
    Lanes,
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// One call for all lanes.
    Scalar,
    /// A call of the vector version of the callee.
    Vector,
    /// A call for each active lane: the callee does not only compute its results.
    Lanes,
}

impl Shape {
    /// Returns the shape of the address of an access.
    pub(crate) fn of_address(form: Form, bytes: u32) -> Self {
        match form {
            Form::Uniform => Self::Uniform,
            Form::Linear(stride) if stride.cast_unsigned() == bytes => Self::Consecutive,
            Form::Linear(stride) => Self::Strided(stride),
            Form::Bits | Form::Lanes => Self::Varying,
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => f.write_str("uniform"),
            Self::Consecutive => f.write_str("consecutive"),
            Self::Strided(stride) => write!(f, "strided by {stride} bytes"),
            Self::Varying => f.write_str("varying"),
        }
    }
}

/// The cost of an outcome, compared with a scalar program for all lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cost {
    Scalar,
    Vector,
    Several,
    Lanes,
}

/// A line of a report, with its cost and the number of loops around it.
type Ranked = ((Cost, usize), String);

impl Matter {
    /// Returns the instruction and the shape of its operand, without the outcome.
    fn subject(&self) -> String {
        match self {
            Self::Access {
                kind,
                bytes,
                scratchpad,
                shape,
                ..
            } => {
                let kind = match kind {
                    AccessKind::Load => "load",
                    AccessKind::Store => "store",
                    AccessKind::Atomic => "atomic operation",
                };
                let place = if *scratchpad { " in the scratchpad" } else { "" };
                let size = if *bytes == 1 { "byte" } else { "bytes" };
                format!("{kind} of {bytes} {size}{place}, {shape}")
            }
            Self::Branch { condition, .. } => {
                let condition = match condition {
                    Condition::Uniform => "uniform",
                    Condition::Bound => "check of a bound",
                    Condition::Varying => "varying",
                };
                format!("branch, {condition}")
            }
            Self::Trap(_) => "conditional trap".to_owned(),
            Self::Loop(_) => "loop".to_owned(),
            Self::Operation { opcode, ty, .. } => format!("{opcode}.{ty}"),
            Self::Call { callee, .. } => match callee {
                Some(callee) => format!("call of {callee}"),
                None => "indirect call".to_owned(),
            },
        }
    }

    /// Returns the outcome and its reason.
    fn outcome(&self) -> &'static str {
        match self {
            Self::Access { kind, outcome, .. } => match outcome {
                AccessOutcome::Scalar => "one scalar access",
                AccessOutcome::Vector => "one vector access",
                AccessOutcome::MaskedVector => "one vector access, under a mask unless all lanes are active",
                AccessOutcome::TwoLines => "two vector accesses: lane 0 need not be at the start of a cache line",
                AccessOutcome::Gather if *kind == AccessKind::Load => "gather",
                AccessOutcome::Gather => "scatter",
                AccessOutcome::Lanes(Reason::NotConsecutive) => "lane by lane: the addresses are not consecutive",
                AccessOutcome::Lanes(Reason::UnalignedStore) => {
                    "lane by lane: lane 0 need not be at the start of a cache line"
                }
                AccessOutcome::Lanes(Reason::NotWord) => "lane by lane: only words have vector accesses",
                AccessOutcome::Lanes(Reason::NotAligned) => "lane by lane: the addresses need not be multiples of 4",
                AccessOutcome::Lanes(Reason::OneAddress) => "lane by lane: all lanes store to one address",
                AccessOutcome::Lanes(Reason::Atomic) => "lane by lane: it is atomic",
            },
            Self::Branch { outcome, .. } => match outcome {
                BranchOutcome::Stays => "stays a branch",
                BranchOutcome::Hoisted => HOISTED,
                BranchOutcome::Versioned => "a copy without masks if all lanes take the same side",
                BranchOutcome::Mask => "a mask",
            },
            Self::Trap(TrapOutcome::Hoisted) => HOISTED,
            Self::Trap(TrapOutcome::Vector) => "evaluated for all lanes at once",
            Self::Loop(outcome) => match outcome {
                LoopOutcome::Uniform => "all lanes leave it in the same iteration",
                LoopOutcome::AllLanes => "no masks in iterations of all lanes",
                LoopOutcome::WhileActive => "continues while a lane is in it",
            },
            Self::Operation { opcode, outcome, .. } => match outcome {
                OperationOutcome::Scalar => "stays scalar",
                OperationOutcome::Shift => "shifts or masks on vectors",
                OperationOutcome::Reciprocal => "multiplication by the reciprocal on vectors",
                OperationOutcome::Lanes if is_division(*opcode) => {
                    "lane by lane: the divisor differs between the lanes, or is no word"
                }
                OperationOutcome::Lanes => "lane by lane: it has no vector form",
            },
            Self::Call { outcome, .. } => match outcome {
                CallOutcome::Scalar => "one scalar call",
                CallOutcome::Vector => "vector version",
                CallOutcome::Lanes => "lane by lane: the callee does not only compute its results",
            },
        }
    }

    fn cost(&self) -> Cost {
        match self {
            Self::Access { outcome, .. } => match outcome {
                AccessOutcome::Scalar => Cost::Scalar,
                AccessOutcome::Vector => Cost::Vector,
                AccessOutcome::MaskedVector | AccessOutcome::TwoLines | AccessOutcome::Gather => Cost::Several,
                AccessOutcome::Lanes(_) => Cost::Lanes,
            },
            Self::Branch { outcome, .. } => match outcome {
                BranchOutcome::Stays | BranchOutcome::Hoisted => Cost::Scalar,
                BranchOutcome::Versioned => Cost::Vector,
                BranchOutcome::Mask => Cost::Several,
            },
            Self::Trap(TrapOutcome::Hoisted) => Cost::Scalar,
            Self::Trap(TrapOutcome::Vector) => Cost::Vector,
            Self::Loop(outcome) => match outcome {
                LoopOutcome::Uniform => Cost::Scalar,
                LoopOutcome::AllLanes => Cost::Vector,
                LoopOutcome::WhileActive => Cost::Several,
            },
            Self::Operation { outcome, .. } => match outcome {
                OperationOutcome::Scalar => Cost::Scalar,
                OperationOutcome::Shift => Cost::Vector,
                OperationOutcome::Reciprocal => Cost::Several,
                OperationOutcome::Lanes => Cost::Lanes,
            },
            Self::Call { outcome, .. } => match outcome {
                CallOutcome::Scalar => Cost::Scalar,
                CallOutcome::Vector => Cost::Vector,
                CallOutcome::Lanes => Cost::Lanes,
            },
        }
    }
}

/// The outcome of checks that are evaluated for a row.
const HOISTED: &str = "evaluated once for a row of work-groups";

/// Returns whether an opcode is an integer division.
pub(crate) fn is_division(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Udiv | Opcode::Sdiv | Opcode::Urem | Opcode::Srem)
}

/// Returns remarks as text, one line for each instruction. `place` returns the place of a source
/// location, such as `file:7`.
///
/// The instructions of a place are together. Places with slow instructions, and in them those in
/// inner loops, come first. The outcomes of several versions of the code are separated by
/// "otherwise", the fastest version first.
pub fn report(remarks: &[Remark], place: impl Fn(SourceLoc) -> String) -> String {
    let mut merged: BTreeMap<(&str, Inst, bool), Vec<&Remark>> = BTreeMap::new();
    for remark in remarks {
        let is_loop = matches!(remark.matter, Matter::Loop(_));
        let key = (remark.function.as_str(), remark.inst, is_loop);
        merged.entry(key).or_default().push(remark);
    }
    let mut places: BTreeMap<u32, Vec<Ranked>> = BTreeMap::new();
    for mut versions in merged.into_values() {
        versions.sort_by_key(|one| (!one.version.row, !one.version.all_lanes));
        let Some(first) = versions.first() else {
            continue;
        };
        let mut outcomes: Vec<&str> = Vec::new();
        for one in &versions {
            if !outcomes.contains(&one.matter.outcome()) {
                outcomes.push(one.matter.outcome());
            }
        }
        let text = format!("{}: {}", first.matter.subject(), outcomes.join("; otherwise "));
        let lines = places.entry(first.location.bits()).or_default();
        let rank = (first.matter.cost(), first.loops);
        match lines.iter_mut().find(|(_, other)| *other == text) {
            Some((other, _)) => *other = rank.max(*other),
            None => lines.push((rank, text)),
        }
    }
    let mut places: Vec<_> = places.into_iter().collect();
    for (_, lines) in &mut places {
        lines.sort_by_key(|(rank, _)| std::cmp::Reverse(*rank));
    }
    places.sort_by_key(|(_, lines)| std::cmp::Reverse(lines.first().map(|(rank, _)| *rank)));
    let lines = places.into_iter().flat_map(|(location, lines)| {
        let place = place(SourceLoc::new(location));
        lines.into_iter().map(move |(_, text)| format!("{place}: {text}\n"))
    });
    lines.collect()
}

/// Remarks while a function is compiled, and the copies that were made of its code.
#[derive(Debug, Default)]
pub(crate) struct Remarks {
    /// The remarks so far.
    pub list: Vec<Remark>,
    /// The originals of copied instructions.
    originals: BTreeMap<Inst, Inst>,
    row: BTreeSet<Inst>,
    all_lanes: BTreeSet<Inst>,
    /// The blocks and instructions of the kernel and their copies, without those that the pass adds;
    /// all if `None`.
    pub own: Option<(BTreeSet<Block>, BTreeSet<Inst>)>,
    /// Headers of loops that contain only iterations of all lanes.
    pub all_lanes_loops: BTreeSet<Block>,
}

impl Remarks {
    /// Records a copy for the work-groups of a row in which checks hold, or else for subgroups in
    /// which a check holds for all lanes.
    pub fn copied(&mut self, copy: &copy::Copy, for_row: bool) {
        if let Some((blocks, insts)) = &mut self.own {
            add_copies(blocks, &copy.blocks);
            add_copies(insts, &copy.insts);
        }
        for (&old, &new) in &copy.insts {
            let original = self.original(old);
            self.originals.insert(new, original);
            if for_row || self.row.contains(&old) {
                self.row.insert(new);
            }
            if !for_row || self.all_lanes.contains(&old) {
                self.all_lanes.insert(new);
            }
        }
    }

    /// Returns whether a loop with this header is one of the kernel, not over work-groups.
    pub fn is_own_loop(&self, header: Block) -> bool {
        self.own.as_ref().is_none_or(|(blocks, _)| blocks.contains(&header))
    }

    /// Returns whether an instruction gets remarks: it is one of the kernel, with a source location.
    pub fn is_located(&self, func: &Function, inst: Inst) -> bool {
        let is_own = self.own.as_ref().is_none_or(|(_, insts)| insts.contains(&inst));
        is_own && !func.srcloc(inst).is_default()
    }

    fn original(&self, inst: Inst) -> Inst {
        self.originals.get(&inst).copied().unwrap_or(inst)
    }

    /// Returns the version of the code that an instruction is in.
    pub fn version(&self, inst: Inst) -> Version {
        Version {
            row: self.row.contains(&inst),
            all_lanes: self.all_lanes.contains(&inst),
        }
    }

    /// Adds a remark about an instruction, if it gets remarks.
    pub fn add(&mut self, func: &Function, inst: Inst, loops: usize, version: Version, matter: Matter) {
        if self.is_located(func, inst) {
            self.list.push(Remark {
                function: func.name.to_string(),
                inst: self.original(inst),
                location: func.srcloc(inst),
                loops,
                version,
                matter,
            });
        }
    }
}

/// Adds the copies of the members of a set.
fn add_copies<T: Copy + Ord>(set: &mut BTreeSet<T>, copies: &BTreeMap<T, T>) {
    let new: Vec<T> = copies
        .iter()
        .filter(|(old, _)| set.contains(old))
        .map(|(_, &new)| new)
        .collect();
    set.extend(new);
}
