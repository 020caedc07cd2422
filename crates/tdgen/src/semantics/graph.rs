//! The semantics of instructions as graphs, and the operations that td declares.

use tablegen::Span;

/// Index of a node in [`Semantics::nodes`].
pub type NodeId = u16;

/// The semantics of an instruction.
#[derive(Debug, Default, Clone, PartialEq, Eq, Hash)]
pub struct Semantics {
    /// The nodes; each one is after its operands.
    pub nodes: Vec<Node>,
    /// The statements.
    pub does: Vec<Statement>,
    /// The statements if the destination has number 63, if td has separate ones for it.
    pub at_63: Option<Vec<Statement>>,
}

/// A value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Node {
    /// Its width in bits.
    pub width: u16,
    /// Whether the value can differ between lanes.
    pub per_lane: bool,
    /// The operation that computes it.
    pub kind: NodeKind,
}

/// The operation that computes a value. Operands, registers, errata and operations are indices into
/// the tables of the target.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// A number.
    Constant(u64),
    /// The scalar register with this number.
    Register(u8),
    /// The scalar register with the same number as a register operand.
    Scalar(u8),
    /// The lane of the vector register with the same number as a register operand.
    Vector(u8),
    /// An immediate operand.
    Immediate(u8),
    /// The address of the instruction.
    Pc,
    /// The number of the lane times a factor.
    Lane(u8),
    /// The lane mask.
    Mask,
    /// The bit of the current lane in the lane mask.
    Enabled,
    /// An operation on one value, by its index in [`Operations::unary`].
    Unary(usize, NodeId),
    /// An operation on two values, by its index in [`Operations::binary`].
    Binary(usize, NodeId, NodeId),
    /// The condition, the value if it is 1, the value if it is 0.
    Select(NodeId, NodeId, NodeId),
    /// The bits from the high bit (first) to the low bit (second) of a value.
    Extract(u16, u16, NodeId),
    /// The concatenation of a high part and a low part.
    Concat(NodeId, NodeId),
    /// Zero extension.
    ZeroExtend(NodeId),
    /// Sign extension.
    SignExtend(NodeId),
    /// An operation of the float unit.
    Float(usize, Vec<NodeId>),
    /// Undefined bits.
    Undefined,
    /// A value in the lane whose number is the second value.
    LaneOf(NodeId, NodeId),
    /// The values of all lanes.
    Lanes(NodeId),
    /// A load: the memory, the address, and the condition.
    Load(usize, NodeId, NodeId),
    /// A control register.
    ReadControl(NodeId),
    /// An erratum, and the alternatives with and without it.
    Erratum(usize, NodeId, NodeId),
}

/// The destination of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Output {
    /// The scalar register with this number.
    Register(u8),
    /// The scalar register with the same number as a register operand.
    Scalar(u8),
    /// The vector register with the same number as a register operand.
    Vector(u8),
}

/// A statement.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Statement {
    /// A result, and the new lane mask if its register has the number of `rm`.
    Set {
        /// The destination.
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
        /// The address.
        address: NodeId,
        /// The stored value.
        value: NodeId,
        /// The condition for the store.
        condition: NodeId,
    },
    /// Statements for each lane.
    EachLane(Vec<Statement>),
    /// A trap: the index of its reason, its condition, and the statements that it executes.
    TrapIf(usize, NodeId, Vec<Statement>),
    /// The instruction and its result never complete if the condition holds.
    NeverIf(NodeId, Option<Output>),
    /// A jump.
    Jump(NodeId),
    /// A branch: condition and target.
    Branch(NodeId, NodeId),
    /// A barrier: its number and the number of other participants.
    Barrier(NodeId, NodeId),
    /// A write of a control register: number and value.
    WriteControl(NodeId, NodeId),
    /// A write-back of the cache line of an address.
    Flush(NodeId),
    /// A write-back and invalidation of the cache line of an address.
    Invalidate(NodeId),
    /// An erratum, and the alternatives with and without it.
    Erratum(usize, Vec<Statement>, Vec<Statement>),
}

/// An operation on bit vectors or of the float unit, from td.
#[derive(Debug, Clone)]
pub struct Operation {
    /// Record name.
    pub record: String,
    /// Name of the Rust variant.
    pub variant: String,
    /// Its notation in texts.
    pub notation: String,
    /// One sentence.
    pub doc: String,
    /// Whether the result has one bit.
    pub compare: bool,
    /// Number of operands.
    pub operands: usize,
    /// The source location of the record.
    pub span: Span,
}

/// The operations that become enums in Rust.
#[derive(Debug, Default)]
pub struct Operations {
    /// Operations on one value.
    pub unary: Vec<Operation>,
    /// Operations on two values.
    pub binary: Vec<Operation>,
    /// Operations of the float unit.
    pub floats: Vec<Operation>,
    /// The memories.
    pub spaces: Vec<Operation>,
}
