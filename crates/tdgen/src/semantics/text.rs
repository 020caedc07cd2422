//! Semantics as readable text: `dst[i] = src0[i] + src1[i] for lanes i in rm`.

use super::graph::{Node, NodeId, NodeKind, Output, Statement};
use crate::model::{Instruction, Target};
use std::cell::Cell;

/// The largest number of values in the text of an instruction. A shared value counts at each use.
const PARTS: u32 = 500;

/// Returns the semantics of an instruction as one line.
pub fn operation_text(target: &Target, instruction: &Instruction) -> String {
    let left = Cell::new(PARTS);
    let text = Text {
        target,
        instruction,
        left,
    };
    let mut parts = text.statements(&instruction.semantics.does);
    if parts.is_empty() {
        parts.push("nothing".to_owned());
    }
    parts.join("; ")
}

struct Text<'t> {
    target: &'t Target,
    instruction: &'t Instruction,
    /// The number of values that may still be shown.
    left: Cell<u32>,
}

impl Text<'_> {
    fn node(&self, id: NodeId) -> &Node {
        &self.instruction.semantics.nodes[usize::from(id)]
    }

    fn statements(&self, list: &[Statement]) -> Vec<String> {
        list.iter().flat_map(|statement| self.statement(statement)).collect()
    }

    fn operand(&self, index: u8) -> &str {
        &self.instruction.operands[usize::from(index)].name
    }

    fn register(&self, number: u8) -> String {
        let mut registers = self.target.registers.iter();
        registers
            .find(|r| r.number == number && r.file == crate::model::RegFile::Scalar)
            .map_or_else(String::new, |r| r.asm_name.clone())
    }

    fn statement(&self, statement: &Statement) -> Vec<String> {
        let value = |id: &NodeId| self.value(*id);
        let one = match statement {
            Statement::Set { output, value, mask } => return self.set(output, *value, *mask),
            Statement::Store {
                space,
                bytes,
                address,
                value: stored,
                condition,
            } => {
                let memory = &self.target.operations.spaces[*space].notation;
                let store = format!(
                    "{memory}[{}, {}] = {}",
                    self.bare(*address),
                    byte_count(*bytes),
                    self.bare(*stored)
                );
                match self.node(*condition).kind {
                    NodeKind::Constant(1) => store,
                    _ => format!("{store} if {}", self.bare(*condition)),
                }
            }
            Statement::EachLane(inner) => format!("for lanes i: {}", self.statements(inner).join(", ")),
            Statement::TrapIf(reason, condition, _) => format!(
                "trap {} if {}",
                self.target.trap_reasons[*reason].name,
                self.bare(*condition)
            ),
            Statement::NeverIf(condition, _) => match self.node(*condition).kind {
                NodeKind::Constant(1) => "never completes".to_owned(),
                _ => format!("never completes if {}", self.bare(*condition)),
            },
            Statement::Jump(target) => format!("jump to {}", self.bare(*target)),
            Statement::Branch(condition, target) => {
                format!("jump to {} if {}", self.bare(*target), self.bare(*condition))
            }
            Statement::Barrier(number, others) => {
                format!("barrier {} with {} other threads", value(number), value(others))
            }
            Statement::WriteControl(number, stored) => {
                format!("control register {} = {}", value(number), self.bare(*stored))
            }
            Statement::Flush(address) => format!("write back the cache line of {}", value(address)),
            Statement::Invalidate(address) => format!("write back and drop the cache line of {}", value(address)),
            Statement::Erratum(_, is, _) => return self.statements(is),
        };
        vec![one]
    }

    fn set(&self, output: &Output, value: NodeId, mask: NodeId) -> Vec<String> {
        let text = self.bare(value);
        let mut parts = vec![match output {
            Output::Register(number) => format!("{} = {text}", self.register(*number)),
            Output::Scalar(operand) => format!("{} = {text}", self.operand(*operand)),
            Output::Vector(operand) => format!("{}[i] = {text} for lanes i in rm", self.operand(*operand)),
        }];
        let of_result = matches!(self.node(mask).kind, NodeKind::Extract(15, 0, from) if from == value);
        if !of_result {
            parts.push(format!("if that is rm, the lane mask = {}", self.bare(mask)));
        }
        parts
    }

    /// Returns a value as text, in parentheses if needed.
    fn value(&self, id: NodeId) -> String {
        let text = self.bare(id);
        match self.node(self.shown(id)).kind {
            NodeKind::Binary(..) | NodeKind::Select(..) | NodeKind::Concat(..) => format!("({text})"),
            _ => text,
        }
    }

    /// Returns the node that is shown for a node: for an erratum, the alternative of the hardware.
    fn shown(&self, id: NodeId) -> NodeId {
        match self.node(id).kind {
            NodeKind::Erratum(_, is, _) => self.shown(is),
            _ => id,
        }
    }

    fn bare(&self, id: NodeId) -> String {
        let id = self.shown(id);
        let Some(left) = self.left.get().checked_sub(1) else {
            return "...".to_owned();
        };
        self.left.set(left);
        let operations = &self.target.operations;
        match &self.node(id).kind {
            NodeKind::Constant(bits) => number(*bits, self.node(id).width),
            NodeKind::Register(number) => self.register(*number),
            NodeKind::Scalar(operand) => self.scalar(*operand),
            NodeKind::Vector(operand) => format!("{}[i]", self.operand(*operand)),
            NodeKind::Immediate(operand) => self.operand(*operand).to_owned(),
            NodeKind::Pc => "pc".to_owned(),
            NodeKind::Lane(1) => "i".to_owned(),
            NodeKind::Lane(factor) => format!("{factor} * i"),
            NodeKind::Mask => "rm[15:0]".to_owned(),
            NodeKind::Enabled => "rm[i]".to_owned(),
            NodeKind::Unary(op, a) => {
                let notation = &operations.unary[*op].notation;
                match notation.starts_with(char::is_alphabetic) {
                    true => format!("{notation}({})", self.bare(*a)),
                    false => format!("{notation}{}", self.value(*a)),
                }
            }
            NodeKind::Binary(op, a, b) => {
                format!(
                    "{} {} {}",
                    self.value(*a),
                    operations.binary[*op].notation,
                    self.value(*b)
                )
            }
            NodeKind::Select(condition, then, other) => {
                let condition = self.value(*condition);
                format!("{condition} ? {} : {}", self.value(*then), self.value(*other))
            }
            NodeKind::Extract(high, low, a) if high == low => format!("{}[{high}]", self.value(*a)),
            NodeKind::Extract(high, low, a) => format!("{}[{high}:{low}]", self.value(*a)),
            NodeKind::Concat(high, low) => format!("{} ++ {}", self.value(*high), self.value(*low)),
            NodeKind::ZeroExtend(a) => format!("zext{}({})", self.node(id).width, self.bare(*a)),
            NodeKind::SignExtend(a) => format!("sext{}({})", self.node(id).width, self.bare(*a)),
            NodeKind::Float(op, operands) => {
                let operands: Vec<String> = operands.iter().map(|id| self.bare(*id)).collect();
                format!("{}({})", operations.floats[*op].notation, operands.join(", "))
            }
            NodeKind::Undefined => format!("undefined{}", self.node(id).width),
            NodeKind::LaneOf(value, index) => {
                let index = self.bare(*index);
                format!("{} at lane {index}", self.bare(*value))
            }
            NodeKind::Lanes(value) => format!("{{{} for lanes i}}", self.bare(*value)),
            NodeKind::Load(space, address, _) => {
                let bytes = byte_count(self.node(id).width / 8);
                format!(
                    "{}[{}, {bytes}]",
                    operations.spaces[*space].notation,
                    self.bare(*address)
                )
            }
            NodeKind::ReadControl(number) => format!("control register {}", self.value(*number)),
            NodeKind::Erratum(..) => String::new(),
        }
    }

    /// Returns the text of a scalar register. If the operand is a vector register, the text names
    /// the scalar register with the same number.
    fn scalar(&self, operand: u8) -> String {
        let described = &self.instruction.operands[usize::from(operand)];
        match self.target.operand_kinds[described.kind].range {
            crate::model::OperandRange::Register(crate::model::RegFile::Vector) => {
                format!("scalar {}", described.name)
            }
            _ => described.name.clone(),
        }
    }
}

fn byte_count(bytes: u16) -> String {
    let unit = if bytes == 1 { "byte" } else { "bytes" };
    format!("{bytes} {unit}")
}

/// Returns a number as text; a small negative number has its sign.
fn number(bits: u64, width: u16) -> String {
    let negative = match width {
        64.. => 0,
        width => (1_u64 << width).wrapping_sub(bits),
    };
    match (bits, negative) {
        (0..=255, _) => bits.to_string(),
        (_, 1..=255) => format!("-{negative}"),
        _ => format!("{bits:#x}"),
    }
}
