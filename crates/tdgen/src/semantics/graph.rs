//! The model: graphs of what instructions do, and the operations that td declares.

use tablegen::Span;

/// Index of a node in [`Semantics::nodes`].
pub type NodeId = u16;

/// What an instruction does.
#[derive(Debug, Default, Clone, PartialEq, Eq, Hash)]
pub struct Semantics {
    /// Nodes after the nodes that they name.
    pub nodes: Vec<Node>,
    /// The statements.
    pub does: Vec<Statement>,
    /// The statements in place of these if the destination has number 63, where td says something about it.
    pub at_63: Option<Vec<Statement>>,
}

/// A value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Node {
    /// Its width in bits.
    pub width: u16,
    /// It can be another value in each lane.
    pub per_lane: bool,
    /// How it is made.
    pub kind: NodeKind,
}

/// How a value is made. Operands, registers, errata and operations are indices into the tables of the target.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// A number.
    Constant(u64),
    /// The scalar register with this number.
    Register(u8),
    /// The scalar register with the number of an operand.
    Scalar(u8),
    /// The lane of the vector register with the number of an operand.
    Vector(u8),
    /// An operand that is a number.
    Immediate(u8),
    /// The address of the instruction.
    Pc,
    /// The number of the lane times a factor.
    Lane(u8),
    /// The lane mask.
    Mask,
    /// The bit of the lane mask of the lane.
    Enabled,
    /// An operation of [`Operation`]s on one value.
    Unary(usize, NodeId),
    /// One on two values.
    Binary(usize, NodeId, NodeId),
    /// Condition, value if it is 1, value if it is 0.
    Select(NodeId, NodeId, NodeId),
    /// High bit, low bit, value.
    Extract(u16, u16, NodeId),
    /// High part, low part.
    Concat(NodeId, NodeId),
    /// Zeros above.
    ZeroExtend(NodeId),
    /// Copies of the sign above.
    SignExtend(NodeId),
    /// An operation of the float unit.
    Float(usize, Vec<NodeId>),
    /// Undefined bits.
    Undefined,
    /// A value in the lane that another one numbers.
    LaneOf(NodeId, NodeId),
    /// The values of all lanes.
    Lanes(NodeId),
    /// Memory at an address, if a condition holds.
    Load(usize, NodeId, NodeId),
    /// A control register.
    ReadControl(NodeId),
    /// With an erratum, without it.
    Erratum(usize, NodeId, NodeId),
}

/// Where a result goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Output {
    /// The scalar register with this number.
    Register(u8),
    /// The scalar register with the number of an operand.
    Scalar(u8),
    /// The vector register with the number of an operand.
    Vector(u8),
}

/// A statement.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Statement {
    /// A result, and what the lane mask becomes if its register has the number of `rm`.
    Set {
        /// Where it goes.
        output: Output,
        /// The result.
        value: NodeId,
        /// The lane mask.
        mask: NodeId,
    },
    /// A store.
    Store {
        /// Index of the memory.
        space: usize,
        /// Bytes stored.
        bytes: u16,
        /// Where.
        address: NodeId,
        /// What.
        value: NodeId,
        /// Whether.
        condition: NodeId,
    },
    /// Statements for each lane.
    EachLane(Vec<Statement>),
    /// A trap (index of its reason), and what is done then.
    TrapIf(usize, NodeId, Vec<Statement>),
    /// The instruction never completes, and its result with it.
    NeverIf(NodeId, Option<Output>),
    /// A jump.
    Jump(NodeId),
    /// Condition and target.
    Branch(NodeId, NodeId),
    /// Number and participants.
    Barrier(NodeId, NodeId),
    /// Number and value.
    WriteControl(NodeId, NodeId),
    /// Address.
    Flush(NodeId),
    /// Address.
    Invalidate(NodeId),
    /// With an erratum, without it.
    Erratum(usize, Vec<Statement>, Vec<Statement>),
}

/// An operation on bit vectors or of the float unit, as td declares it.
#[derive(Debug, Clone)]
pub struct Operation {
    /// Record name.
    pub record: String,
    /// Name of the Rust variant.
    pub variant: String,
    /// How it looks in texts.
    pub notation: String,
    /// One sentence.
    pub doc: String,
    /// The result has one bit.
    pub compare: bool,
    /// Number of operands.
    pub operands: usize,
    /// The record.
    pub span: Span,
}

/// The operations that are enums in Rust.
#[derive(Debug, Default)]
pub struct Operations {
    /// On one value.
    pub unary: Vec<Operation>,
    /// On two values.
    pub binary: Vec<Operation>,
    /// Of the float unit.
    pub floats: Vec<Operation>,
    /// Memories.
    pub spaces: Vec<Operation>,
}
