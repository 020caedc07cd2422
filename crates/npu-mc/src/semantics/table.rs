//! The types of the semantics tables: expressions are nodes that refer to earlier nodes, and
//! statements refer to nodes.

use super::{BinaryOp, FloatFunction, Space, UnaryOp};
use crate::errata::Erratum;
use crate::machine::TrapReason;

/// The index of a node.
pub(crate) type NodeId = u16;

/// The semantics of an instruction.
#[derive(Debug)]
pub(crate) struct Semantics {
    /// The nodes, in topological order: operands before their users.
    pub nodes: &'static [Node],
    pub does: &'static [Statement],
    /// The statements that replace `does` if the destination has number 63. `None` if td does not
    /// treat this number specially.
    pub at_63: Option<&'static [Statement]>,
}

/// A node and its width in bits.
#[derive(Debug)]
pub(crate) struct Node {
    pub width: u16,
    /// Whether the value may differ between lanes.
    pub per_lane: bool,
    pub kind: NodeKind,
}

#[derive(Debug)]
pub(crate) enum NodeKind {
    Constant(u64),
    /// The scalar register with this number.
    Register(u8),
    /// The scalar register with the same number as the register operand.
    Scalar(u8),
    /// A lane of the vector register with the same number as the register operand.
    Vector(u8),
    /// The operand as a 32-bit number.
    Immediate(u8),
    Pc,
    /// The lane number times a factor.
    Lane(u8),
    Mask,
    /// The lane's bit of the lane mask.
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
    /// The value of the first node in the lane whose 4-bit number is the second node.
    LaneOf(NodeId, NodeId),
    /// The values of all lanes concatenated, lane 0 in the low bits.
    Lanes(NodeId),
    /// The bytes at an address, if a condition holds.
    Load(Space, NodeId, NodeId),
    ReadControl(NodeId),
    /// The hardware's value, and the value without the erratum.
    Erratum(Erratum, NodeId, NodeId),
}

/// The destination of a result.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Output {
    /// The scalar register with this number.
    Register(u8),
    /// The scalar register with the same number as the register operand.
    Scalar(u8),
    /// The vector register with the same number as the register operand.
    Vector(u8),
}

#[derive(Debug)]
pub(crate) enum Statement {
    /// Writes a result. If the register has the number of `rm`, `mask` becomes the lane mask.
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
    /// Runs the statements once for each lane.
    EachLane(&'static [Statement]),
    /// If the condition holds and the machine follows the trap, runs the inner statements and skips
    /// the remaining ones.
    TrapIf {
        reason: TrapReason,
        condition: NodeId,
        does: &'static [Statement],
    },
    /// Skips the remaining statements if the condition holds and the machine follows this case.
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
    /// The hardware's statements, and the statements without the erratum.
    Erratum(Erratum, &'static [Statement], &'static [Statement]),
}
