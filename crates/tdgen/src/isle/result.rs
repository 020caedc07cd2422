//! The right side of a pattern: instructions, nested, with operands by name.

use tablegen::{Dag, Diagnostic, Record, Span, Value, ValueKind};

use super::constructors::{Constructor, Constructors, OperandKind, access};
use super::fault;
use super::pattern::{Node, NodeKind, Tree};
use super::types::TypeVar;

/// Instructions nest this deep at most.
const MAX_DEPTH: usize = 32;

/// Makes the ISLE expression of a result.
pub(super) struct ResultWriter<'t, 'a> {
    pub tree: &'t Tree<'a>,
    pub constructors: &'t Constructors<'a>,
}

impl<'t, 'a> ResultWriter<'t, 'a> {
    pub fn new(tree: &'t Tree<'a>, constructors: &'t Constructors<'a>) -> Self {
        ResultWriter { tree, constructors }
    }

    /// The whole result. `root` is the type the pattern computes, if it computes one.
    pub fn whole(&self, dag: Dag<'a>, root: Option<TypeVar>, span: Span) -> Result<String, Box<Diagnostic>> {
        let constructor = self.instruction(dag, span)?;
        match (root, &constructor.output) {
            (None, None) => {}
            (Some(ty), Some(kind)) => self.check_type(ty, kind, span)?,
            (Some(_), None) => {
                return Err(fault(
                    span,
                    format!(
                        "`{}` has no result, but the pattern computes one",
                        constructor.record.name()
                    ),
                ));
            }
            (None, Some(_)) => {
                return Err(fault(
                    span,
                    format!(
                        "`{}` has a result, but the pattern computes none",
                        constructor.record.name()
                    ),
                ));
            }
        }
        self.call(dag, span, 0)
    }

    /// The result of a pattern in an instruction's own record: the instruction on its operands.
    pub fn own(
        &self,
        constructor: &Constructor<'a>,
        root: Option<TypeVar>,
        span: Span,
    ) -> Result<String, Box<Diagnostic>> {
        if let (Some(ty), Some(kind)) = (root, &constructor.output) {
            self.check_type(ty, kind, span)?;
        }
        let mut arguments = Vec::new();
        for (_, input) in constructor.term_order() {
            arguments.push(self.named(&input.name, &input.kind, span)?);
        }
        Ok(term(constructor.record.name(), &arguments))
    }

    fn instruction(&self, dag: Dag<'a>, span: Span) -> Result<&'t Constructor<'a>, Box<Diagnostic>> {
        let Some(operator) = dag.operator_def() else {
            return Err(fault(span, "the operator of a result must be an instruction"));
        };
        self.constructors.get(operator.name()).ok_or_else(|| {
            let why = if operator.is_a("Instruction") {
                "an instruction that patterns cannot use"
            } else {
                "no instruction"
            };
            fault(span, format!("`{}` is {why}", operator.name()))
        })
    }

    fn call(&self, dag: Dag<'a>, span: Span, depth: usize) -> Result<String, Box<Diagnostic>> {
        if depth >= MAX_DEPTH {
            return Err(fault(
                span,
                format!("the result nests more than {MAX_DEPTH} instructions"),
            ));
        }
        let constructor = self.instruction(dag, span)?;
        let given: Vec<_> = dag.args().into_iter().collect();
        if given.len() != constructor.inputs.len() {
            return Err(fault(
                span,
                format!(
                    "`{}` takes {} operands, {} are given",
                    constructor.record.name(),
                    constructor.inputs.len(),
                    given.len()
                ),
            ));
        }
        let mut arguments = Vec::new();
        for (index, input) in constructor.term_order() {
            let Some((value, name)) = given.get(index) else {
                continue;
            };
            arguments.push(self.argument(*value, *name, &input.kind, span, depth)?);
        }
        Ok(term(constructor.record.name(), &arguments))
    }

    fn argument(
        &self,
        value: Value<'a>,
        name: Option<&str>,
        kind: &OperandKind<'a>,
        outer: Span,
        depth: usize,
    ) -> Result<String, Box<Diagnostic>> {
        if let Some(name) = name {
            return self.named(name, kind, outer);
        }
        match value.kind() {
            ValueKind::Int(number) => constant(number, kind, outer),
            ValueKind::Dag(dag) => {
                let inner = self.instruction(dag, outer)?;
                let fits = inner
                    .output
                    .is_some_and(|output| output.record.name() == kind.record.name());
                if !fits {
                    return Err(fault(
                        outer,
                        format!("`{}` does not give a `{}`", inner.record.name(), kind.record.name()),
                    ));
                }
                self.call(dag, outer, depth + 1)
            }
            _ => Err(fault(outer, "this cannot be an operand of a result")),
        }
    }

    fn named(&self, name: &str, kind: &OperandKind<'a>, span: Span) -> Result<String, Box<Diagnostic>> {
        let Some(node) = self.tree.named(name) else {
            return Err(fault(span, format!("the pattern has no operand `${name}`")));
        };
        match &node.kind {
            NodeKind::Register { .. } => {
                if !kind.is_register {
                    return Err(wrong_kind(name, kind, node, span));
                }
                self.check_type(node.ty, kind, span)?;
                Ok(name.to_owned())
            }
            NodeKind::Immediate { leaf, .. } => {
                let encodes = leaf.def_field("Encodes").map_err(access)?;
                if encodes.name() != kind.record.name() {
                    return Err(wrong_kind(name, kind, node, span));
                }
                Ok(name.to_owned())
            }
            NodeKind::Address { pattern, .. } => {
                let encodes = pattern.def_field("Encodes").map_err(access)?;
                if encodes.name() != kind.record.name() {
                    return Err(wrong_kind(name, kind, node, span));
                }
                Ok(name.to_owned())
            }
            NodeKind::Operation { .. } | NodeKind::Number(_) | NodeKind::Fixed(_) => {
                Err(wrong_kind(name, kind, node, span))
            }
        }
    }

    fn check_type(&self, ty: TypeVar, kind: &OperandKind<'a>, span: Span) -> Result<(), Box<Diagnostic>> {
        let class = kind.record;
        if !kind.is_register {
            return Err(fault(span, format!("`{}` is no register class", class.name())));
        }
        let types = class.list_of_defs("RegTypes").map_err(access)?;
        if self.tree.types.fits(ty, &types)? {
            return Ok(());
        }
        Err(fault(
            span,
            format!(
                "types do not fit: a value {} is not in a register of `{}`",
                self.tree.types.describe(ty),
                class.name()
            ),
        ))
    }
}

fn term(name: &str, arguments: &[String]) -> String {
    let mut text = format!("({name}");
    for argument in arguments {
        text.push(' ');
        text.push_str(argument);
    }
    text.push(')');
    text
}

/// A number written in a result.
fn constant(number: i64, kind: &OperandKind<'_>, span: Span) -> Result<String, Box<Diagnostic>> {
    let operand: Record<'_> = kind.record;
    let maker = match operand.field("IsleConst") {
        Some(_) => operand.string("IsleConst").map_err(access)?,
        None => "",
    };
    if maker.is_empty() {
        return Err(fault(
            span,
            format!("a number cannot be an operand of kind `{}` here", operand.name()),
        ));
    }
    let least = operand.int("MinValue").map_err(access)?;
    let most = operand.int("MaxValue").map_err(access)?;
    if number < least || number > most {
        return Err(fault(
            span,
            format!("{number} is not in the range {least} to {most} of `{}`", operand.name()),
        ));
    }
    Ok(format!("({maker} {number})"))
}

fn wrong_kind(name: &str, kind: &OperandKind<'_>, node: &Node<'_>, span: Span) -> Box<Diagnostic> {
    let diagnostic = fault(
        span,
        format!("operand `${name}` of the pattern is no `{}`", kind.record.name()),
    );
    Box::new(diagnostic.secondary(node.span, "matched here"))
}
