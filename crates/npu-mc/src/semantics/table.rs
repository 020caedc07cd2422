//! The tables of semantics: expressions as nodes that name earlier nodes, and statements over them.

use super::{BinaryOp, FloatFunction, Space, UnaryOp};
use crate::errata::Erratum;
use crate::machine::TrapReason;

/// The index of a node.
pub(crate) type NodeId = u16;

/// What an instruction does.
#[derive(Debug)]
pub(crate) struct Semantics {
    /// Nodes after the nodes that they name.
    pub nodes: &'static [Node],
    pub does: &'static [Statement],
    /// In place of `does` if the destination has number 63, for instructions of which td says it.
    pub at_63: Option<&'static [Statement]>,
}

/// A node with its width.
#[derive(Debug)]
pub(crate) struct Node {
    pub width: u16,
    /// It can be another value in each lane.
    pub per_lane: bool,
    pub kind: NodeKind,
}

#[derive(Debug)]
pub(crate) enum NodeKind {
    Constant(u64),
    /// The scalar register with this number.
    Register(u8),
    /// The scalar register with the number of this operand.
    Scalar(u8),
    /// The lane of the vector register with the number of this operand.
    Vector(u8),
    /// The operand as a number of 32 bits.
    Immediate(u8),
    Pc,
    /// The number of the lane, times a factor.
    Lane(u8),
    Mask,
    /// The bit of the mask of this lane.
    Enabled,
    Unary(UnaryOp, NodeId),
    Binary(BinaryOp, NodeId, NodeId),
    Select(NodeId, NodeId, NodeId),
    Extract(u16, u16, NodeId),
    Concat(NodeId, NodeId),
    ZeroExtend(NodeId),
    SignExtend(NodeId),
    Float(FloatFunction, &'static [NodeId]),
    Undefined,
    /// The value that the first node has in the lane that the second one numbers, 4 bits.
    LaneOf(NodeId, NodeId),
    /// The values of all lanes, lane 0 in the low bits.
    Lanes(NodeId),
    /// Bytes at an address, if a condition holds.
    Load(Space, NodeId, NodeId),
    ReadControl(NodeId),
    /// What the hardware gives, and what it would give without the erratum.
    Erratum(Erratum, NodeId, NodeId),
}

/// Where a result goes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Output {
    /// The scalar register with this number.
    Register(u8),
    /// The scalar register with the number of this operand.
    Scalar(u8),
    /// The vector register with the number of this operand.
    Vector(u8),
}

#[derive(Debug)]
pub(crate) enum Statement {
    /// Writes a result. `mask` becomes the lane mask if the register has the number of `rm`.
    Set {
        output: Output,
        value: NodeId,
        mask: NodeId,
    },
    Store {
        space: Space,
        bytes: u16,
        address: NodeId,
        value: NodeId,
        condition: NodeId,
    },
    /// Statements, once for each lane.
    EachLane(&'static [Statement]),
    /// If the condition holds and the machine follows that, the inner statements in place of those that follow.
    TrapIf {
        reason: TrapReason,
        condition: NodeId,
        does: &'static [Statement],
    },
    /// Ends the instruction if the condition holds.
    NeverIf {
        condition: NodeId,
        output: Option<Output>,
    },
    Jump(NodeId),
    Branch(NodeId, NodeId),
    Barrier(NodeId, NodeId),
    WriteControl(NodeId, NodeId),
    Flush(NodeId),
    Invalidate(NodeId),
    /// What the hardware does, and what it would do without the erratum.
    Erratum(Erratum, &'static [Statement], &'static [Statement]),
}
