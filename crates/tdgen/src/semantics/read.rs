//! Reads values: converts dags to nodes; checks names, numbers of operands and widths.

use super::graph::{Node, NodeId, NodeKind, Operations, Output, Statement};
use crate::load::{also, fault};
use crate::model::{OperandRange, RegFile, Target};
use std::collections::HashMap;
use tablegen::{Dag, Diagnostic, Record, Span, Value, ValueKind};

/// The width of a register and of a lane, in bits.
pub(super) const WORD: u16 = 32;
/// The largest width of a value, in bits: all lanes of a register.
const WIDEST: u16 = 512;
/// Lanes of a vector register.
pub(super) const LANES: u16 = 16;
/// Limits on time and stack use, in case a description makes no sense.
const DEPTH: u32 = 100;
const NODES: usize = 4000;
pub(super) const STATEMENTS: usize = 1000;

/// The properties of an instruction that its semantics refer to.
pub(crate) struct Context<'a, 't> {
    pub target: &'t Target,
    pub operations: &'t Operations,
    /// The operands of the instruction.
    pub operands: &'t [crate::model::Operand],
    /// The values that the operation names.
    pub inputs: Option<Dag<'a>>,
    pub output: Option<Dag<'a>>,
    /// Whether the statements have a `do_set_of_lanes`.
    pub of_lanes: bool,
    /// The location for faults.
    pub span: Span,
}

pub(crate) type Fallible<T> = Result<T, Box<Diagnostic>>;

/// An argument of a dag, with its name.
pub(super) type Arg<'a> = (Value<'a>, Option<&'a str>);

/// Creates nodes; equal values share one node.
pub(crate) struct Reader<'a, 't> {
    pub(super) context: Context<'a, 't>,
    pub(super) nodes: Vec<Node>,
    index: HashMap<Node, NodeId>,
    known: HashMap<(Value<'a>, Option<u16>), NodeId>,
    depth: u32,
    /// The number of statements so far.
    pub(super) statements: usize,
}

impl<'a, 't> Reader<'a, 't> {
    pub(crate) fn new(context: Context<'a, 't>) -> Self {
        Reader {
            context,
            nodes: Vec::new(),
            index: HashMap::new(),
            known: HashMap::new(),
            depth: 0,
            statements: 0,
        }
    }

    pub(super) fn wrong<T>(&self, message: impl Into<String>) -> Fallible<T> {
        Err(Box::new(fault(self.context.span, message)))
    }

    fn make(&mut self, width: u16, per_lane: bool, kind: NodeKind) -> Fallible<NodeId> {
        if width == 0 || width > WIDEST {
            return self.wrong(format!("a value has {width} bits, not 1 to {WIDEST}"));
        }
        let node = Node { width, per_lane, kind };
        if let Some(id) = self.index.get(&node) {
            return Ok(*id);
        }
        if self.nodes.len() >= NODES {
            return self.wrong(format!("the semantics have more than {NODES} values"));
        }
        let id = self.nodes.len() as NodeId;
        self.nodes.push(node.clone());
        self.index.insert(node, id);
        Ok(id)
    }

    pub(super) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[usize::from(id)]
    }

    pub(super) fn width(&self, id: NodeId) -> u16 {
        self.node(id).width
    }

    pub(super) fn constant(&mut self, width: u16, number: i64) -> Fallible<NodeId> {
        let fits = match width {
            0 => false,
            1..=62 => (-(1 << (width - 1))..1 << width).contains(&number),
            _ => true,
        };
        if !fits {
            return self.wrong(format!("{number} does not fit {width} bits"));
        }
        let bits = match width {
            1..=63 => number as u64 & ((1 << width) - 1),
            64 => number as u64,
            _ if number < 0 => return self.wrong(format!("{number} is negative, and has more than 64 bits here")),
            _ => number as u64,
        };
        self.make(width, false, NodeKind::Constant(bits))
    }

    /// Returns the arguments of a dag, which must be exactly `N`.
    pub(super) fn arguments<const N: usize>(&self, dag: Dag<'a>) -> Fallible<[Arg<'a>; N]> {
        let args = dag.args();
        let count = args.len();
        match <[Arg<'a>; N]>::try_from(args) {
            Ok(args) => Ok(args),
            Err(_) => self.wrong(format!("`{}` has {count} operands, not {N}", operator_name(dag))),
        }
    }

    /// Reads an argument that is a plain number, such as a number of bits or bytes.
    pub(super) fn number(&self, dag: Dag<'a>, arg: Arg<'a>, range: std::ops::RangeInclusive<i64>) -> Fallible<u16> {
        match arg.0.as_int() {
            Some(number) if range.contains(&number) => Ok(number as u16),
            _ => self.wrong(format!(
                "`{}` in `{}` has to be a number from {} to {}",
                arg_text(arg),
                operator_name(dag),
                range.start(),
                range.end()
            )),
        }
    }

    /// Reads a value, which must have this width.
    pub(super) fn value_of(&mut self, arg: Arg<'a>, width: u16) -> Fallible<NodeId> {
        let id = self.value(arg, Some(width))?;
        match self.width(id) {
            found if found == width => Ok(id),
            found => self.wrong(format!("`{}` has {found} bits, not {width}", arg_text(arg))),
        }
    }

    /// Reads a value. A number gets the requested width.
    pub(super) fn value(&mut self, arg: Arg<'a>, width: Option<u16>) -> Fallible<NodeId> {
        let (value, name) = arg;
        if let Some(dag) = value.as_dag() {
            if let Some(id) = self.known.get(&(value, width)) {
                return Ok(*id);
            }
            if self.depth >= DEPTH {
                return self.wrong(format!("the semantics are nested more than {DEPTH} deep"));
            }
            self.depth += 1;
            let id = self.operation(dag, width);
            self.depth -= 1;
            let id = id?;
            self.known.insert((value, width), id);
            return Ok(id);
        }
        match (value.kind(), name, width) {
            (ValueKind::Unset, Some(name), _) => self.input(name, width),
            (ValueKind::Int(number), _, Some(width)) => self.constant(width, number),
            (ValueKind::Int(number), _, None) => self.wrong(format!(
                "the number {number} has no width here; write `(bv_const WIDTH, {number})`"
            )),
            _ => self.wrong(format!("`{}` is not a value", arg_text(arg))),
        }
    }

    /// Reads a value by its name in `Inputs`.
    fn input(&mut self, name: &str, width: Option<u16>) -> Fallible<NodeId> {
        let args = self.context.inputs.map(|dag| dag.args()).unwrap_or_default();
        match args.iter().find(|(_, known)| *known == Some(name)) {
            Some((value, _)) => self.value((*value, None), width),
            None => {
                let names: Vec<String> = args
                    .iter()
                    .filter_map(|(_, name)| name.map(|n| format!("`${n}`")))
                    .collect();
                let known = if names.is_empty() {
                    "`Inputs` has no names".to_owned()
                } else {
                    format!("`Inputs` has {}", names.join(", "))
                };
                self.wrong(format!("`${name}` is not a name of `Inputs`: {known}"))
            }
        }
    }

    fn operation(&mut self, dag: Dag<'a>, width: Option<u16>) -> Fallible<NodeId> {
        let Some(operator) = dag.operator_def() else {
            return self.wrong(format!("`{}` is not an operation", operator_name(dag)));
        };
        let operations = self.context.operations;
        if let Some(op) = Operations::find(&operations.unary, operator) {
            let [a] = self.arguments(dag)?;
            let a = self.value(a, width)?;
            let Node { width, per_lane, .. } = *self.node(a);
            return self.make(width, per_lane, NodeKind::Unary(op, a));
        }
        if let Some(op) = Operations::find(&operations.binary, operator) {
            let compare = operations.binary[op].compare;
            let [a, b] = self.arguments(dag)?;
            let (a, b) = self.pair(dag, a, b, if compare { None } else { width })?;
            let width = if compare { 1 } else { self.width(a) };
            return self.make(width, self.any(&[a, b]), NodeKind::Binary(op, a, b));
        }
        if let Some(op) = Operations::find(&operations.floats, operator) {
            let (args, wanted) = (dag.args(), operations.floats[op].operands);
            if args.len() != wanted {
                let (name, count) = (operator_name(dag), args.len());
                return self.wrong(format!("`{name}` has {count} operands, not {wanted}"));
            }
            let mut ids = Vec::new();
            for arg in args {
                ids.push(self.value_of(arg, WORD)?);
            }
            let per_lane = self.any(&ids);
            return self.make(WORD, per_lane, NodeKind::Float(op, ids));
        }
        self.special(operator, dag, width)
    }

    /// Returns whether one of the values can differ between lanes.
    fn any(&self, ids: &[NodeId]) -> bool {
        ids.iter().any(|id| self.node(*id).per_lane)
    }

    /// Reads two values of the same width; a number gets the width of the other value.
    fn pair(&mut self, dag: Dag<'a>, a: Arg<'a>, b: Arg<'a>, width: Option<u16>) -> Fallible<(NodeId, NodeId)> {
        let number = |arg: Arg<'a>| matches!(arg.0.kind(), ValueKind::Int(_));
        let (a_id, b_id) = if number(a) && !number(b) {
            let b_id = self.value(b, width)?;
            (self.value(a, Some(self.width(b_id)))?, b_id)
        } else {
            let a_id = self.value(a, width)?;
            let same = number(b).then(|| self.width(a_id)).or(width);
            (a_id, self.value(b, same)?)
        };
        let (left, right) = (self.width(a_id), self.width(b_id));
        if left != right {
            return self.wrong(format!(
                "`{}` of different widths: `{}` has {left} bits, `{}` has {right}",
                operator_name(dag),
                arg_text(a),
                arg_text(b)
            ));
        }
        Ok((a_id, b_id))
    }

    fn special(&mut self, operator: Record<'a>, dag: Dag<'a>, width: Option<u16>) -> Fallible<NodeId> {
        match operator.name() {
            "bv_const" => {
                let [bits, number] = self.arguments(dag)?;
                let bits = self.number(dag, bits, 1..=i64::from(WIDEST))?;
                self.value_of(number, bits)
            }
            "bv_copy" => {
                let [a] = self.arguments(dag)?;
                self.value(a, width)
            }
            "bv_select" => {
                let [condition, then, other] = self.arguments(dag)?;
                let condition = self.value_of(condition, 1)?;
                let (then, other) = self.pair(dag, then, other, width)?;
                let per_lane = self.any(&[condition, then, other]);
                self.make(self.width(then), per_lane, NodeKind::Select(condition, then, other))
            }
            "bv_extract" => self.extract(dag),
            "bv_concat" => {
                let [high, low] = self.arguments(dag)?;
                let (high, low) = (self.value(high, None)?, self.value(low, None)?);
                let width = self.width(high) + self.width(low);
                self.make(width, self.any(&[high, low]), NodeKind::Concat(high, low))
            }
            "bv_zext" => self.extend(dag, NodeKind::ZeroExtend),
            "bv_sext" => self.extend(dag, NodeKind::SignExtend),
            "bv_undefined" => {
                let [bits] = self.arguments(dag)?;
                let bits = self.number(dag, bits, 1..=i64::from(WIDEST))?;
                self.make(bits, false, NodeKind::Undefined)
            }
            "bv_erratum" => {
                let [name, is, ought] = self.arguments(dag)?;
                let erratum = self.erratum(name)?;
                let (is, ought) = self.pair(dag, is, ought, width)?;
                let per_lane = self.any(&[is, ought]);
                self.make(self.width(is), per_lane, NodeKind::Erratum(erratum, is, ought))
            }
            _ => self.state(operator, dag, width),
        }
    }

    fn extract(&mut self, dag: Dag<'a>) -> Fallible<NodeId> {
        let [value, high, low] = self.arguments(dag)?;
        let text = arg_text(value);
        let value = self.value(value, None)?;
        let bits = self.width(value);
        let high = self.number(dag, high, 0..=i64::from(WIDEST) - 1)?;
        let low = self.number(dag, low, 0..=i64::from(WIDEST) - 1)?;
        if high < low || high >= bits {
            return self.wrong(format!(
                "`{text}` has {bits} bits; bits {high} to {low} are out of range"
            ));
        }
        if high - low + 1 == bits {
            return Ok(value);
        }
        let per_lane = self.node(value).per_lane;
        self.make(high - low + 1, per_lane, NodeKind::Extract(high, low, value))
    }

    fn extend(&mut self, dag: Dag<'a>, kind: fn(NodeId) -> NodeKind) -> Fallible<NodeId> {
        let [bits, value] = self.arguments(dag)?;
        let bits = self.number(dag, bits, 1..=i64::from(WIDEST))?;
        let text = arg_text(value);
        let value = self.value(value, None)?;
        let Node { width, per_lane, .. } = *self.node(value);
        match width {
            width if width == bits => Ok(value),
            width if width < bits => self.make(bits, per_lane, kind(value)),
            _ => self.wrong(format!("`{text}` has {width} bits and cannot be extended to {bits}")),
        }
    }

    /// Reads an operation on the state of the thread.
    fn state(&mut self, operator: Record<'a>, dag: Dag<'a>, width: Option<u16>) -> Fallible<NodeId> {
        match operator.name() {
            "bv_reg" => {
                let [operand] = self.arguments(dag)?;
                match self.operand(operand)? {
                    (index, OperandRange::Register(RegFile::Scalar)) => self.make(WORD, false, NodeKind::Scalar(index)),
                    (index, OperandRange::Register(RegFile::Vector)) => self.make(WORD, true, NodeKind::Vector(index)),
                    (_, OperandRange::Immediate { .. }) => {
                        self.wrong(format!("the operand `{}` is not a register", arg_text(operand)))
                    }
                }
            }
            "bv_scalar" => {
                let [operand] = self.arguments(dag)?;
                match self.operand(operand)? {
                    (index, OperandRange::Register(_)) => self.make(WORD, false, NodeKind::Scalar(index)),
                    _ => self.wrong(format!("the operand `{}` is not a register", arg_text(operand))),
                }
            }
            "bv_imm" => {
                let [operand] = self.arguments(dag)?;
                match self.operand(operand)? {
                    (index, OperandRange::Immediate { .. }) => self.make(WORD, false, NodeKind::Immediate(index)),
                    _ => self.wrong(format!("the operand `{}` is not a number", arg_text(operand))),
                }
            }
            "bv_register" => {
                let number = self.register(dag)?;
                self.make(WORD, false, NodeKind::Register(number))
            }
            "bv_pc" => {
                let [] = self.arguments(dag)?;
                self.make(WORD, false, NodeKind::Pc)
            }
            "bv_lane" => {
                let [factor] = self.arguments(dag)?;
                let factor = self.number(dag, factor, 1..=64)?;
                self.make(WORD, true, NodeKind::Lane(factor as u8))
            }
            "bv_mask" => {
                let [] = self.arguments(dag)?;
                self.make(LANES, false, NodeKind::Mask)
            }
            "bv_lane_enabled" => {
                let [] = self.arguments(dag)?;
                self.make(1, true, NodeKind::Enabled)
            }
            "bv_lane_of" => {
                let [value, index] = self.arguments(dag)?;
                let value = self.value(value, width)?;
                let index = self.value_of(index, LANES.trailing_zeros() as u16)?;
                // The index selects the lane, so only the index makes the result differ between
                // lanes.
                let per_lane = self.node(index).per_lane;
                self.make(self.width(value), per_lane, NodeKind::LaneOf(value, index))
            }
            "bv_lanes" => {
                let [value] = self.arguments(dag)?;
                let value = self.value(value, None)?;
                let width = self.width(value).saturating_mul(LANES);
                self.make(width, false, NodeKind::Lanes(value))
            }
            "bv_load" => {
                let args = dag.args();
                if !(3..=4).contains(&args.len()) {
                    return self.wrong(format!("`bv_load` has {} operands, not 3 or 4", args.len()));
                }
                let space = self.space(args[0])?;
                let bytes = self.number(dag, args[1], 1..=64)?;
                let address = self.value_of(args[2], WORD)?;
                let condition = self.condition(args.get(3))?;
                let per_lane = self.any(&[address, condition]);
                self.make(bytes * 8, per_lane, NodeKind::Load(space, address, condition))
            }
            "bv_read_control" => {
                let [number] = self.arguments(dag)?;
                let number = self.value_of(number, 6)?;
                let per_lane = self.node(number).per_lane;
                self.make(WORD, per_lane, NodeKind::ReadControl(number))
            }
            name => self.wrong(format!("`{name}` is not an operation on bit vectors")),
        }
    }

    /// Reads an optional condition; 1 if it is left out.
    pub(super) fn condition(&mut self, arg: Option<&Arg<'a>>) -> Fallible<NodeId> {
        match arg {
            Some(arg) => self.value_of(*arg, 1),
            None => self.constant(1, 1),
        }
    }

    pub(super) fn space(&self, arg: Arg<'a>) -> Fallible<usize> {
        let record = arg.0.as_def();
        match record.and_then(|record| Operations::find(&self.context.operations.spaces, record)) {
            Some(space) => Ok(space),
            None => self.wrong(format!("`{}` is not a memory", arg_text(arg))),
        }
    }

    pub(super) fn erratum(&self, arg: Arg<'a>) -> Fallible<usize> {
        let errata = &self.context.target.errata;
        let found = arg
            .0
            .as_str()
            .and_then(|name| errata.iter().position(|e| e.name == name));
        match found {
            Some(erratum) => Ok(erratum),
            None => self.wrong(format!("{} is not the name of an erratum", arg_text(arg))),
        }
    }

    /// Returns the number of the scalar register that is the only argument.
    fn register(&self, dag: Dag<'a>) -> Fallible<u8> {
        let [register] = self.arguments(dag)?;
        let found = register.0.as_def().and_then(|record| {
            let registers = &self.context.target.registers;
            registers
                .iter()
                .find(|r| r.record == record.name() && r.file == RegFile::Scalar)
        });
        match found {
            Some(register) => Ok(register.number),
            None => self.wrong(format!("`{}` is not a scalar register", arg_text(register))),
        }
    }

    /// Returns the index and kind of the operand that an argument names.
    fn operand(&self, arg: Arg<'a>) -> Fallible<(u8, &'t OperandRange)> {
        let operands = self.context.operands;
        let found = arg
            .1
            .and_then(|name| operands.iter().position(|operand| operand.name == name));
        match found {
            Some(index) => {
                let kind = &self.context.target.operand_kinds[operands[index].kind];
                Ok((index as u8, &kind.range))
            }
            None => self.wrong(format!("`{}` is not an operand of the instruction", arg_text(arg))),
        }
    }

    /// Returns the register of the result.
    pub(super) fn output(&self) -> Fallible<Output> {
        let Some(dag) = self.context.output else {
            return self.wrong("there is a result, but `Output` is unset");
        };
        match dag.operator_def().map(|operator| operator.name()) {
            Some("bv_register") => Ok(Output::Register(self.register(dag)?)),
            Some(name @ ("bv_reg" | "bv_scalar")) => {
                let [operand] = self.arguments(dag)?;
                match (self.operand(operand)?, name) {
                    ((index, OperandRange::Register(RegFile::Vector)), "bv_reg") => Ok(Output::Vector(index)),
                    ((index, OperandRange::Register(_)), _) => Ok(Output::Scalar(index)),
                    _ => self.wrong(format!("the operand `{}` is not a register", arg_text(operand))),
                }
            }
            _ => self.wrong(format!(
                "`Output` is `{}`, which is not a register",
                arg_text((dag.value(), None))
            )),
        }
    }

    /// Returns the low half of a value: a write to `rm` makes it the lane mask.
    pub(super) fn low_half(&mut self, id: NodeId) -> Fallible<NodeId> {
        let per_lane = self.node(id).per_lane;
        self.make(LANES, per_lane, NodeKind::Extract(LANES - 1, 0, id))
    }

    /// Returns the semantics of the instruction.
    pub(crate) fn finish(self, does: Vec<Statement>, at_63: Option<Vec<Statement>>) -> super::Semantics {
        super::Semantics {
            nodes: self.nodes,
            does,
            at_63,
        }
    }
}

/// Returns the operator of a dag as text.
pub(super) fn operator_name(dag: Dag<'_>) -> String {
    match dag.operator_def() {
        Some(record) => record.name().to_owned(),
        None => "?".to_owned(),
    }
}

/// Returns an argument as text. Nested operands are left out, since a value can be arbitrarily
/// large.
pub(super) fn arg_text(arg: Arg<'_>) -> String {
    brief(arg, 2)
}

fn brief(arg: Arg<'_>, depth: u32) -> String {
    match arg {
        (value, Some(name)) if value.is_unset() => format!("${name}"),
        (value, _) => match value.as_dag() {
            Some(dag) if depth == 0 => format!("({} ...)", operator_name(dag)),
            Some(dag) => {
                let args: Vec<String> = dag.args().into_iter().map(|arg| brief(arg, depth - 1)).collect();
                let space = if args.is_empty() { "" } else { " " };
                format!("({}{space}{})", operator_name(dag), args.join(", "))
            }
            None => value.to_string(),
        },
    }
}

/// Adds the operation to a fault of an instruction.
pub(crate) fn in_operation(fault: Diagnostic, operation: Option<Record<'_>>) -> Diagnostic {
    match operation {
        Some(record) if fault.span() != Some(record.span()) => {
            also(fault, record.span(), format!("in the operation `{}`", record.name()))
        }
        _ => fault,
    }
}
