//! Patterns of target nodes.
//!
//! A target node (`TargetNode`) is between CLIF and machine instructions: results of patterns use
//! it if the form of an instruction depends on its operands. Its operands have kinds, not types, so
//! no types are inferred. An element of the left side is an operand of the node's own kind, a leaf
//! that matches a property of it (`OperandLeaf`), a number, or a type.

use tablegen::{Diagnostic, Record, RecordKeeper, Span, Value, ValueKind};

use super::constructors::{Constructor, Constructors, access};
use super::fault;
use super::operand::OperandKind;
use super::pattern::{check_identifier, has_property};
use super::result::{ResultWriter, Wanted};
use super::rule::{PRIORITY_LIMIT, field_span};

/// The priority of constant folding: above all patterns.
const FOLD_PRIORITY: i64 = PRIORITY_LIMIT;

/// An operand on the left side of a rule.
struct Operand<'a> {
    text: String,
    complexity: i64,
    /// The name on the right side and its kind.
    binding: Option<(String, OperandKind<'a>)>,
    /// The form of the operand. Exchanging operands of equal forms matches the same.
    form: String,
}

/// Returns whether the pattern starts with a target node.
pub(super) fn is_one(record: Record<'_>) -> bool {
    let dag = record.dag("PatternToMatch");
    dag.is_ok_and(|dag| dag.operator_def().is_some_and(|operator| operator.is_a("TargetNode")))
}

/// Returns the constant-folding rule, if td names the instruction that computes the node.
pub(super) fn fold_rule(node: &Constructor<'_>) -> Result<Option<String>, Box<Diagnostic>> {
    let record = node.record;
    let Some(instruction) = record.opt_def("FoldedBy").map_err(access)? else {
        return Ok(None);
    };
    let fold = record.string("Fold").map_err(access)?;
    let mut operands = String::new();
    let mut names = String::new();
    for (index, input) in node.inputs.iter().enumerate() {
        let extractor = number_extractor(&input.kind, record.span())?;
        operands.push_str(&format!(" ({extractor} c{index})"));
        names.push_str(&format!(" c{index}"));
    }
    Ok(Some(format!(
        "(rule {FOLD_PRIORITY} ({}{operands})\n      (if-let result ({fold} (Op.{}){names}))\n      result)",
        node.term,
        instruction.name()
    )))
}

/// Returns the rules of a pattern: one, and a second one if operands can be exchanged.
pub(super) fn rules<'a>(
    records: &'a RecordKeeper,
    record: Record<'a>,
    constructors: &Constructors<'a>,
) -> Result<Vec<String>, Box<Diagnostic>> {
    let span = field_span(record, "PatternToMatch");
    let dag = record.dag("PatternToMatch").map_err(access)?;
    let node = dag
        .operator_def()
        .and_then(|operator| constructors.get(operator.name()));
    let Some(node) = node else {
        return Err(fault(span, "a pattern must start with a node"));
    };
    let given = dag.args();
    if given.len() != node.inputs.len() {
        return Err(fault(
            span,
            format!(
                "`{}` takes {} operands, {} are given",
                node.record.name(),
                node.inputs.len(),
                given.len()
            ),
        ));
    }
    let mut operands = Vec::new();
    for (input, (value, name)) in node.inputs.iter().zip(given) {
        operands.push(operand(&input.kind, value, name, span)?);
    }
    let mut texts = vec![rule(records, record, node, &operands, 0, constructors)?];
    if has_property(node.record, "SDNPCommutative")?
        && let Some(first) = exchangeable(node)
        && operands[first].form != operands[first + 1].form
    {
        operands.swap(first, first + 1);
        texts.push(rule(records, record, node, &operands, 1, constructors)?);
    }
    Ok(texts)
}

/// Returns the first of the two operands that a commutative node can exchange: neighbours of the
/// same kind.
fn exchangeable(node: &Constructor<'_>) -> Option<usize> {
    let same = |pair: &[super::constructors::Input<'_>]| pair[0].kind.record.name() == pair[1].kind.record.name();
    node.inputs.windows(2).position(same)
}

fn rule<'a>(
    records: &'a RecordKeeper,
    record: Record<'a>,
    node: &Constructor<'a>,
    operands: &[Operand<'a>],
    variant: i64,
    constructors: &Constructors<'a>,
) -> Result<String, Box<Diagnostic>> {
    let span = field_span(record, "ResultInstr");
    let complexity: i64 = operands.iter().map(|operand| operand.complexity).sum();
    let priority = (3 + complexity + record.int("AddedComplexity").map_err(access)?) * 4 - variant;
    if !(0..PRIORITY_LIMIT).contains(&priority) {
        return Err(fault(
            span,
            format!("the rule has the priority {priority}, which is not in 0 to 99"),
        ));
    }
    let mut bindings: Vec<(String, OperandKind<'a>)> = Vec::new();
    let mut left = format!("({}", node.term);
    for operand in operands {
        left.push(' ');
        left.push_str(&operand.text);
        bindings.extend(operand.binding.clone());
    }
    left.push(')');
    for predicate in record.list_of_defs("Predicates").map_err(access)? {
        let name = predicate.string("IsleName").map_err(access)?;
        left.push_str(&format!("\n      (if-let _ ({name}))"));
    }
    let wanted = node.output.map_or_else(|| Wanted::Results(Vec::new()), Wanted::Operand);
    let mut writer = ResultWriter::of_node(records, &bindings, constructors);
    let dag = record.dag("ResultInstr").map_err(access)?;
    let result = writer.whole(dag, &wanted, span)?;
    Ok(format!("(rule {priority} {left}\n      {result})"))
}

/// Returns the ISLE extractor for a number in place of an operand of this kind.
fn number_extractor<'a>(kind: &OperandKind<'a>, span: Span) -> Result<&'a str, Box<Diagnostic>> {
    let record = kind.record;
    let extractor = match record.field("IsleMatch") {
        Some(_) => record.string("IsleMatch").map_err(access)?,
        None => "",
    };
    if extractor.is_empty() {
        return Err(fault(
            span,
            format!("a number cannot be matched by `{}`", record.name()),
        ));
    }
    Ok(extractor)
}

fn operand<'a>(
    kind: &OperandKind<'a>,
    value: Value<'a>,
    name: Option<&str>,
    span: Span,
) -> Result<Operand<'a>, Box<Diagnostic>> {
    let plain = |text: String, complexity| Operand {
        form: text.clone(),
        text,
        complexity,
        binding: None,
    };
    match value.kind() {
        ValueKind::Int(number) => {
            let extractor = number_extractor(kind, span)?;
            Ok(plain(format!("({extractor} {:#x})", number & i64::from(u32::MAX)), 5))
        }
        ValueKind::Def(ty) if ty.is_a("ValueType") && kind.isle_type == "Type" => {
            Ok(plain(format!("${}", ty.string("IsleName").map_err(access)?), 5))
        }
        ValueKind::Def(leaf) => {
            let name = name.unwrap_or_default();
            check_identifier(name, span)?;
            let form = leaf.name().to_owned();
            if leaf.is_a("OperandLeaf") {
                let of = leaf.def_field("Of").map_err(access)?;
                let encodes = leaf.def_field("Encodes").map_err(access)?;
                let extractor = leaf.string("Extractor").map_err(access)?;
                let Some(encoded) = OperandKind::of(encodes)?.filter(|_| of.name() == kind.record.name()) else {
                    return Err(fault(
                        span,
                        format!("`{}` is not a leaf of `{}`", leaf.name(), kind.record.name()),
                    ));
                };
                return Ok(Operand {
                    text: format!("({extractor} {name})"),
                    complexity: leaf.int("Complexity").map_err(access)?,
                    binding: Some((name.to_owned(), encoded)),
                    form,
                });
            }
            if leaf.name() != kind.record.name() {
                return Err(fault(
                    span,
                    format!(
                        "`{}` cannot be matched where the node has a `{}`",
                        leaf.name(),
                        kind.record.name()
                    ),
                ));
            }
            Ok(Operand {
                text: name.to_owned(),
                complexity: 0,
                binding: Some((name.to_owned(), *kind)),
                form,
            })
        }
        _ => Err(fault(span, "this is not allowed in the pattern of a target node")),
    }
}
