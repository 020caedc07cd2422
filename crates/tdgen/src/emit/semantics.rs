//! Generates Rust source of the semantics: enums of the operations, one table per instruction, and
//! the texts.

use super::line;
use crate::load::pascal;
use crate::model::Target;
use crate::semantics::graph::{Node, NodeId, NodeKind, Operation, Output, Semantics, Statement};
use crate::semantics::operation_text;
use std::collections::HashMap;

/// Generates a part of the module `semantics` of `npu-mc`.
pub fn emit_semantics(target: &Target) -> String {
    let mut out = String::new();
    line!(out, "// Made from the target description in td/ by tdgen.");
    line!(
        out,
        "use super::table::{{Node, NodeKind, Output, Semantics, Statement}};"
    );
    line!(out, "use super::{{Erratum, Space, TrapReason}};");
    let operations = &target.operations;
    operation_enum(&mut out, "UnaryOp", "Operations on one bit vector.", &operations.unary);
    operation_enum(
        &mut out,
        "BinaryOp",
        "Operations on two bit vectors of one width.",
        &operations.binary,
    );
    operation_enum(
        &mut out,
        "FloatFunction",
        "Operations of the float unit, one lane each.",
        &operations.floats,
    );
    let emitter = Emitter { target };
    // Instructions with equal semantics share one table.
    let mut tables: HashMap<&Semantics, usize> = HashMap::new();
    let mut table_of = Vec::new();
    for instruction in &target.instructions {
        let next = tables.len();
        let index = *tables.entry(&instruction.semantics).or_insert(next);
        if index == next {
            emitter.table(&mut out, index, &instruction.semantics);
        }
        table_of.push(index);
    }
    line!(out, "pub(super) static SEMANTICS: [&Semantics; {}] = [", table_of.len());
    for index in table_of {
        line!(out, "    &TABLE_{index},");
    }
    line!(out, "];");
    line!(out, "\n/// The semantics of an instruction as readable text.");
    line!(
        out,
        "pub fn operation(opcode: crate::Opcode) -> &'static str {{\n    OPERATIONS.get(opcode.index()).copied().unwrap_or_default()\n}}"
    );
    line!(out, "static OPERATIONS: [&str; {}] = [", target.instructions.len());
    for instruction in &target.instructions {
        line!(out, "    {:?},", operation_text(target, instruction));
    }
    line!(out, "];");
    out
}

fn operation_enum(out: &mut String, name: &str, doc: &str, operations: &[Operation]) {
    line!(out, "\n/// {doc}");
    line!(
        out,
        "#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]"
    );
    line!(out, "pub enum {name} {{");
    for one in operations {
        line!(out, "    /// {}", one.doc);
        line!(out, "    {},", one.variant);
    }
    line!(out, "}}");
    line!(out, "impl {name} {{");
    let all: Vec<String> = operations.iter().map(|o| format!("{name}::{}", o.variant)).collect();
    line!(out, "    /// All of them in td's order.");
    line!(out, "    pub const ALL: &'static [{name}] = &[{}];", all.join(", "));
    if operations.iter().any(|o| o.compare) {
        let compares: Vec<String> = operations
            .iter()
            .filter(|o| o.compare)
            .map(|o| format!("{name}::{}", o.variant))
            .collect();
        line!(out, "    /// The result has one bit.");
        line!(out, "    pub const fn is_compare(self) -> bool {{");
        line!(out, "        matches!(self, {})\n    }}", compares.join(" | "));
    }
    line!(out, "}}");
}

struct Emitter<'t> {
    target: &'t Target,
}

impl Emitter<'_> {
    fn table(&self, out: &mut String, index: usize, semantics: &Semantics) {
        line!(out, "static TABLE_{index}: Semantics = Semantics {{");
        let nodes: Vec<String> = semantics.nodes.iter().map(|node| self.node(node)).collect();
        line!(out, "    nodes: &[{}],", nodes.join(", "));
        line!(out, "    does: {},", self.statements(&semantics.does));
        match &semantics.at_63 {
            Some(list) => line!(out, "    at_63: Some({}),", self.statements(list)),
            None => line!(out, "    at_63: None,"),
        }
        line!(out, "}};");
    }

    fn erratum(&self, index: usize) -> String {
        format!("Erratum::{}", pascal(&self.target.errata[index].name))
    }

    fn space(&self, index: usize) -> String {
        format!("Space::{}", self.target.operations.spaces[index].variant)
    }

    fn node(&self, node: &Node) -> String {
        let operations = &self.target.operations;
        let kind = match &node.kind {
            NodeKind::Constant(bits) => format!("Constant({bits:#x})"),
            NodeKind::Register(number) => format!("Register({number})"),
            NodeKind::Scalar(operand) => format!("Scalar({operand})"),
            NodeKind::Vector(operand) => format!("Vector({operand})"),
            NodeKind::Immediate(operand) => format!("Immediate({operand})"),
            NodeKind::Pc => "Pc".to_owned(),
            NodeKind::Lane(factor) => format!("Lane({factor})"),
            NodeKind::Mask => "Mask".to_owned(),
            NodeKind::Enabled => "Enabled".to_owned(),
            NodeKind::Unary(op, a) => format!("Unary(UnaryOp::{}, {a})", operations.unary[*op].variant),
            NodeKind::Binary(op, a, b) => {
                format!("Binary(BinaryOp::{}, {a}, {b})", operations.binary[*op].variant)
            }
            NodeKind::Select(condition, then, other) => format!("Select({condition}, {then}, {other})"),
            NodeKind::Extract(high, low, a) => format!("Extract({high}, {low}, {a})"),
            NodeKind::Concat(high, low) => format!("Concat({high}, {low})"),
            NodeKind::ZeroExtend(a) => format!("ZeroExtend({a})"),
            NodeKind::SignExtend(a) => format!("SignExtend({a})"),
            NodeKind::Float(op, operands) => {
                let operands: Vec<String> = operands.iter().map(NodeId::to_string).collect();
                let function = &operations.floats[*op].variant;
                format!("Float(FloatFunction::{function}, &[{}])", operands.join(", "))
            }
            NodeKind::Undefined => "Undefined".to_owned(),
            NodeKind::LaneOf(value, index) => format!("LaneOf({value}, {index})"),
            NodeKind::Lanes(value) => format!("Lanes({value})"),
            NodeKind::Load(space, address, condition) => {
                format!("Load({}, {address}, {condition})", self.space(*space))
            }
            NodeKind::ReadControl(number) => format!("ReadControl({number})"),
            NodeKind::Erratum(erratum, is, ought) => format!("Erratum({}, {is}, {ought})", self.erratum(*erratum)),
        };
        format!(
            "Node {{ width: {}, per_lane: {}, kind: NodeKind::{kind} }}",
            node.width, node.per_lane
        )
    }

    fn statements(&self, list: &[Statement]) -> String {
        let texts: Vec<String> = list
            .iter()
            .map(|one| format!("Statement::{}", self.statement(one)))
            .collect();
        format!("&[{}]", texts.join(", "))
    }

    fn statement(&self, statement: &Statement) -> String {
        match statement {
            Statement::Set { output, value, mask } => {
                format!(
                    "Set {{ output: {}, value: {value}, mask: {mask} }}",
                    self.output(output)
                )
            }
            Statement::Store {
                space,
                bytes,
                address,
                value,
                condition,
            } => format!(
                "Store {{ space: {}, bytes: {bytes}, address: {address}, value: {value}, condition: {condition} }}",
                self.space(*space)
            ),
            Statement::EachLane(inner) => format!("EachLane({})", self.statements(inner)),
            Statement::TrapIf(reason, condition, inner) => format!(
                "TrapIf {{ reason: TrapReason::{}, condition: {condition}, does: {} }}",
                pascal(&self.target.trap_reasons[*reason].name),
                self.statements(inner)
            ),
            Statement::NeverIf(condition, output) => {
                let output = match output {
                    Some(output) => format!("Some({})", self.output(output)),
                    None => "None".to_owned(),
                };
                format!("NeverIf {{ condition: {condition}, output: {output} }}")
            }
            Statement::Jump(target) => format!("Jump({target})"),
            Statement::Branch(condition, target) => format!("Branch({condition}, {target})"),
            Statement::Barrier(number, others) => format!("Barrier({number}, {others})"),
            Statement::WriteControl(number, value) => format!("WriteControl({number}, {value})"),
            Statement::Flush(address) => format!("Flush({address})"),
            Statement::Invalidate(address) => format!("Invalidate({address})"),
            Statement::Erratum(erratum, is, ought) => format!(
                "Erratum({}, {}, {})",
                self.erratum(*erratum),
                self.statements(is),
                self.statements(ought)
            ),
        }
    }

    fn output(&self, output: &Output) -> String {
        match output {
            Output::Register(number) => format!("Output::Register({number})"),
            Output::Scalar(operand) => format!("Output::Scalar({operand})"),
            Output::Vector(operand) => format!("Output::Vector({operand})"),
        }
    }
}
