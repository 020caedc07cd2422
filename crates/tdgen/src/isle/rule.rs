//! Converts a pattern to ISLE rules: commuted variants, priorities, text.

use tablegen::{Dag, Diagnostic, Record, RecordKeeper, Span, ValueKind};

use super::constructors::{Constructor, Constructors, access};
use super::fault;
use super::node_pattern;
use super::operand::OperandKind;
use super::pattern::{Node, NodeId, NodeKind, Tree, has_property};
use super::result::{ResultWriter, Wanted};
use super::types::Check;

/// Generated rules have priorities below this; hand-written rules may have higher ones.
pub(super) const PRIORITY_LIMIT: i64 = 100;
/// The largest number of variants of a pattern, so that they fit between two complexities.
const MAX_VARIANTS: usize = 4;

/// The replacement of the matched instructions.
#[derive(Clone, Copy)]
enum Replacement<'a> {
    /// Instructions given in a `Pat`.
    Instructions(Dag<'a>),
    /// The instruction whose `Pattern` list the pattern is in.
    Own,
}

/// The ISLE term that a rule belongs to.
#[derive(Clone, Copy)]
enum Root<'a> {
    /// The term `lower`, on CLIF instructions.
    Lower,
    /// The constructor of a `ComplexPattern`, on values.
    Select(Record<'a>),
}

/// A pattern as written in td.
pub(super) struct Source<'a> {
    /// The `Pat`, or the instruction.
    pub record: Record<'a>,
    root: Root<'a>,
    records: &'a RecordKeeper,
    pattern: Dag<'a>,
    span: Span,
    replacement: Replacement<'a>,
    added_complexity: i64,
    /// The conditions; all of them have to hold.
    predicates: Vec<Record<'a>>,
}

/// Returns all patterns in order of definition: patterns of instructions first.
pub(super) fn sources<'a>(
    records: &'a RecordKeeper,
    constructors: &Constructors<'a>,
    faults: &mut Vec<Diagnostic>,
) -> Vec<Source<'a>> {
    let mut found = Vec::new();
    let mut keep = |result: Result<Vec<Source<'a>>, Box<Diagnostic>>| match result {
        Ok(sources) => found.extend(sources),
        Err(fault) => faults.push(*fault),
    };
    for constructor in constructors.of_class("Instruction") {
        keep(instruction_patterns(records, constructor));
    }
    for record in records.defs_derived_from("Pat") {
        if node_pattern::is_one(record) {
            continue;
        }
        keep(pat(records, record).map(|source| vec![source]));
    }
    found
}

fn pat<'a>(records: &'a RecordKeeper, record: Record<'a>) -> Result<Source<'a>, Box<Diagnostic>> {
    let root = if record.is_a("SelectPat") {
        Root::Select(record.def_field("Root").map_err(access)?)
    } else {
        Root::Lower
    };
    Ok(Source {
        record,
        root,
        records,
        pattern: record.dag("PatternToMatch").map_err(access)?,
        span: field_span(record, "PatternToMatch"),
        replacement: Replacement::Instructions(record.dag("ResultInstr").map_err(access)?),
        added_complexity: record.int("AddedComplexity").map_err(access)?,
        predicates: record.list_of_defs("Predicates").map_err(access)?,
    })
}

/// Returns the patterns in an instruction's own record: `(set GPR32:$dst, pattern)` or, without a
/// result, the pattern alone.
fn instruction_patterns<'a>(
    records: &'a RecordKeeper,
    constructor: &Constructor<'a>,
) -> Result<Vec<Source<'a>>, Box<Diagnostic>> {
    let record = constructor.record;
    let span = field_span(record, "Pattern");
    let mut found = Vec::new();
    for value in record.list("Pattern").map_err(access)? {
        let ValueKind::Dag(dag) = value.kind() else {
            return Err(fault(span, "an element of `Pattern` is not a dag"));
        };
        let is_set = dag.operator_def().is_some_and(|operator| operator.name() == "set");
        if is_set != constructor.output.is_some() {
            return Err(fault(
                span,
                format!(
                    "the pattern of `{}` must be `(set ...)` exactly if it has a result",
                    record.name()
                ),
            ));
        }
        let pattern = if is_set {
            let last = dag.args().into_iter().nth(1).map(|(value, _)| value.kind());
            let Some(ValueKind::Dag(inner)) = last else {
                return Err(fault(span, "`set` takes the result and a pattern"));
            };
            inner
        } else {
            dag
        };
        found.push(Source {
            record,
            root: Root::Lower,
            records,
            pattern,
            span,
            replacement: Replacement::Own,
            added_complexity: 0,
            predicates: Vec::new(),
        });
    }
    Ok(found)
}

pub(super) fn field_span(record: Record<'_>, field: &str) -> Span {
    record.field(field).map_or_else(|| record.span(), |f| f.span())
}

/// Returns the CLIF instruction at the root of a rule of `lower`.
pub(super) fn opcode(rule: &str) -> Option<&str> {
    let (_, root) = rule.split_once("(lower ")?;
    let root = root.strip_prefix("inst @ ").unwrap_or(root).strip_prefix('(')?;
    root.split([' ', ')']).next()
}

/// Returns the ISLE rules of a pattern, one for every choice of alternatives and every commuted
/// variant.
pub(super) fn rules(source: &Source<'_>, constructors: &Constructors<'_>) -> Result<Vec<String>, Box<Diagnostic>> {
    let leaf_allowed = matches!(source.root, Root::Select(_));
    let mut rules = Vec::new();
    for tree in Tree::parse(source.records, source.pattern, source.span, leaf_allowed)? {
        for (variant, tree) in variants(tree, source.span)?.iter().enumerate() {
            rules.push(rule(source, tree, variant, constructors)?);
        }
    }
    Ok(rules)
}

fn rule(
    source: &Source<'_>,
    tree: &Tree<'_>,
    variant: usize,
    constructors: &Constructors<'_>,
) -> Result<String, Box<Diagnostic>> {
    let complexity = complexity(tree, tree.root)? + source.added_complexity;
    let priority = complexity * 4 - i64::try_from(variant).unwrap_or(0);
    if !(-PRIORITY_LIMIT..PRIORITY_LIMIT).contains(&priority) {
        return Err(fault(
            source.span,
            format!("the pattern's complexity {complexity} gives the rule a priority outside -100 to 99"),
        ));
    }
    let mut matcher = Matcher {
        tree,
        checked: Vec::new(),
        conditions: Vec::new(),
    };
    let mut looks_at_inst = false;
    for predicate in &source.predicates {
        let name = predicate.string("IsleName").map_err(access)?;
        let of_inst = predicate.is_a("InstPredicate");
        looks_at_inst |= of_inst;
        let mut arguments = String::from(if of_inst { " inst" } else { "" });
        if predicate.is_a("OperandPredicate") {
            for operand in predicate.list("Operands").map_err(access)? {
                let operand = operand.as_str().unwrap_or_default();
                if !tree.named(operand).is_some_and(Node::is_value) {
                    return Err(fault(
                        source.span,
                        format!(
                            "`{}` is about `${operand}`, which is not a value of the pattern",
                            predicate.name()
                        ),
                    ));
                }
                arguments.push(' ');
                arguments.push_str(operand);
            }
        }
        matcher.conditions.push(format!("(if-let _ ({name}{arguments}))"));
    }
    let pattern = matcher.node(tree.root)?;
    matcher.everything_checked(source.span)?;
    let (term, inst) = match source.root {
        Root::Lower if looks_at_inst => ("lower", "inst @ "),
        Root::Lower => ("lower", ""),
        Root::Select(_) if looks_at_inst => {
            return Err(fault(
                source.span,
                "only the pattern of an instruction can have an InstPredicate",
            ));
        }
        Root::Select(pattern) => (pattern.string("SelectFunc").map_err(access)?, ""),
    };
    let result = replacement(source, tree, constructors)?;
    let mut text = format!("(rule {priority} ({term} {inst}{pattern})");
    for condition in &matcher.conditions {
        text.push_str("\n      ");
        text.push_str(condition);
    }
    if matcher.conditions.is_empty() && !result.starts_with("(let ") {
        text.push(' ');
    } else {
        text.push_str("\n      ");
    }
    text.push_str(&result);
    text.push(')');
    Ok(text)
}

/// Returns the rule of a result fragment.
pub(super) fn fragment_rule<'a>(
    records: &'a RecordKeeper,
    fragment: &Constructor<'a>,
    constructors: &Constructors<'a>,
) -> Result<String, Box<Diagnostic>> {
    let record = fragment.record;
    let span = field_span(record, "ResultInstr");
    let wanted = match fragment.output {
        Some(kind) => Wanted::Operand(kind),
        None => Wanted::Results(Vec::new()),
    };
    let mut writer = ResultWriter::fragment(records, fragment, constructors)?;
    let dag = record.dag("ResultInstr").map_err(access)?;
    let result = writer.whole(dag, &wanted, span)?;
    let names: String = fragment.inputs.iter().map(|input| format!(" {}", input.name)).collect();
    Ok(format!("(rule ({}{names})\n      {result})", fragment.term))
}

fn replacement<'a>(
    source: &Source<'a>,
    tree: &Tree<'a>,
    constructors: &Constructors<'a>,
) -> Result<String, Box<Diagnostic>> {
    let root = tree.node(tree.root);
    let mut writer = ResultWriter::new(source.records, tree, constructors);
    let span = field_span(source.record, "ResultInstr");
    if let (Root::Select(pattern), Replacement::Instructions(dag)) = (source.root, source.replacement) {
        let encodes = pattern.def_field("Encodes").map_err(access)?;
        let kind =
            OperandKind::of(encodes)?.ok_or_else(|| fault(span, format!("`{}` has no ISLE type", encodes.name())))?;
        return writer.whole(dag, &Wanted::Operand(kind), span);
    }
    let NodeKind::Operation { node, .. } = &root.kind else {
        return Err(fault(source.span, "a pattern must start with a node, not a leaf"));
    };
    let profile = node.def_field("TypeProfile").map_err(access)?;
    let has_result = profile.int("NumResults").map_err(access)? > 0;
    let mut types: Vec<_> = has_result.then_some(root.ty).into_iter().collect();
    types.extend(&root.more);
    match source.replacement {
        Replacement::Instructions(dag) => writer.whole(dag, &Wanted::Results(types), span),
        Replacement::Own => match constructors.get(source.record.name()) {
            Some(constructor) => writer.own(constructor, types.first().copied(), source.span),
            None => Err(fault(source.span, "patterns cannot use this instruction")),
        },
    }
}

/// Returns the pattern and its commuted forms that match something else.
fn variants<'a>(tree: Tree<'a>, span: Span) -> Result<Vec<Tree<'a>>, Box<Diagnostic>> {
    let mut swaps: Vec<NodeId> = Vec::new();
    for (id, node) in tree.nodes() {
        if let NodeKind::Operation { node, operands } = &node.kind
            && let [first, second] = operands.as_slice()
            && has_property(*node, "SDNPCommutative")?
            && !alike(&tree, *first, *second)
        {
            swaps.push(id);
        }
    }
    let mut all = vec![tree];
    for id in swaps {
        let swapped: Vec<_> = all.iter().map(|tree| tree.swapped(id)).collect();
        all.extend(swapped);
        if all.len() > MAX_VARIANTS {
            return Err(fault(
                span,
                format!("the pattern has more than {MAX_VARIANTS} commuted variants"),
            ));
        }
    }
    Ok(all)
}

/// Returns whether exchanging the two operands matches the same.
fn alike(tree: &Tree<'_>, a: NodeId, b: NodeId) -> bool {
    match (&tree.node(a).kind, &tree.node(b).kind) {
        (NodeKind::Register { .. }, NodeKind::Register { .. }) => true,
        (NodeKind::Immediate { leaf: x, .. }, NodeKind::Immediate { leaf: y, .. })
        | (NodeKind::Known { leaf: x, .. }, NodeKind::Known { leaf: y, .. })
        | (NodeKind::Selected { pattern: x, .. }, NodeKind::Selected { pattern: y, .. }) => x.name() == y.name(),
        (NodeKind::Number(x), NodeKind::Number(y)) => x == y,
        _ => false,
    }
}

/// Computes the complexity of a pattern by LLVM's formula: 3 per node, 5 per number, 4 per
/// immediate leaf (a node with a predicate), 3 per operand of an address.
fn complexity(tree: &Tree<'_>, id: NodeId) -> Result<i64, Box<Diagnostic>> {
    Ok(match &tree.node(id).kind {
        NodeKind::Operation { operands, .. } => {
            let mut sum = 3;
            for operand in operands {
                sum += complexity(tree, *operand)?;
            }
            sum
        }
        NodeKind::Register { .. } | NodeKind::Selected { .. } | NodeKind::Entity { .. } | NodeKind::Fixed(_) => 0,
        NodeKind::Number(_) => 5,
        NodeKind::Immediate { .. } | NodeKind::Known { .. } => 4,
        NodeKind::Address { pattern, .. } => 3 * pattern.int("NumOperands").map_err(access)?.clamp(0, 8),
    })
}

/// Writes the left side of a rule.
struct Matcher<'t, 'a> {
    tree: &'t Tree<'a>,
    /// The type classes that the text so far checks.
    checked: Vec<usize>,
    /// `if-let` clauses.
    conditions: Vec<String>,
}

impl Matcher<'_, '_> {
    fn node(&mut self, id: NodeId) -> Result<String, Box<Diagnostic>> {
        let tree = self.tree;
        let node = tree.node(id);
        match &node.kind {
            NodeKind::Operation { node, operands } => self.operation(id, *node, operands),
            NodeKind::Register { name } | NodeKind::Selected { name, .. } => Ok(match self.check_once(id)? {
                Some(check) => format!("{name} @ (value_type {check})"),
                None => name.clone(),
            }),
            NodeKind::Known { leaf, name } => {
                let extractor = leaf.string("Extractor").map_err(access)?;
                Ok(match self.check_once(id)? {
                    Some(check) => format!("{name} @ (and (value_type {check}) ({extractor} _))"),
                    None => format!("{name} @ ({extractor} _)"),
                })
            }
            NodeKind::Entity { name, .. } => Ok(name.clone()),
            NodeKind::Immediate { leaf, name } => {
                let extractor = leaf.string("Extractor").map_err(access)?;
                Ok(format!("({extractor} {name})"))
            }
            NodeKind::Number(number) => Ok(format!("(const_i32 {number})")),
            NodeKind::Fixed(text) => Ok((*text).to_owned()),
            NodeKind::Address { name, .. } => Err(fault(
                node.span,
                format!("`${name}` can only be the last operand of a node that accesses memory"),
            )),
        }
    }

    /// Returns the check of a node's type, unless it is already made or not needed.
    fn check_once(&mut self, id: NodeId) -> Result<Option<String>, Box<Diagnostic>> {
        let node = self.tree.node(id);
        let class = self.tree.types.class(node.ty);
        if self.checked.contains(&class) {
            return Ok(None);
        }
        self.checked.push(class);
        let check = self.tree.types.check(node.ty, node.span)?;
        Ok(check.pattern(self.tree.type_name(node.ty)))
    }

    /// Returns the node's form with its type and operands substituted.
    fn operation(&mut self, id: NodeId, node: Record<'_>, operands: &[NodeId]) -> Result<String, Box<Diagnostic>> {
        let form = node.string("IsleForm").map_err(access)?;
        let memory = has_property(node, "SDNPMemOperand")?;
        if memory {
            self.address(id, node, operands)?;
        }
        self.fixed_types(id, node, operands)?;
        let mut used = vec![false; operands.len()];
        if memory && let Some(last) = used.last_mut() {
            *last = true;
        }
        let mut text = String::new();
        let mut rest = form;
        while let Some((before, after)) = rest.split_once('$') {
            text.push_str(before);
            let end = after.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(after.len());
            let (name, tail) = after.split_at(end);
            rest = tail;
            if name == "ty" {
                text.push_str(&self.result_type(id)?);
                continue;
            }
            let index = name.parse::<usize>().ok().filter(|i| *i < operands.len());
            let Some((index, operand)) = index.and_then(|i| operands.get(i).map(|o| (i, *o))) else {
                return Err(bad_form(node, format!("`${name}` is not an operand")));
            };
            if std::mem::replace(&mut used[index], true) {
                return Err(bad_form(node, format!("`${name}` occurs twice")));
            }
            text.push_str(&self.node(operand)?);
        }
        text.push_str(rest);
        if let Some(missing) = used.iter().position(|used| !used) {
            return Err(bad_form(node, format!("`${missing}` is missing")));
        }
        Ok(text)
    }

    /// Marks types that the node always has: they need no check.
    fn fixed_types(&mut self, id: NodeId, node: Record<'_>, operands: &[NodeId]) -> Result<(), Box<Diagnostic>> {
        let profile = node.def_field("TypeProfile").map_err(access)?;
        let results = profile.int("NumResults").map_err(access)?;
        for constraint in profile.list_of_defs("Constraints").map_err(access)? {
            if !constraint.is_a("SDTCisVT") {
                continue;
            }
            let number = constraint.int("OperandNum").map_err(access)?;
            let fixed = if number == 0 && results > 0 {
                Some(id)
            } else {
                usize::try_from(number - results)
                    .ok()
                    .and_then(|i| operands.get(i).copied())
            };
            if let Some(fixed) = fixed {
                let class = self.tree.types.class(self.tree.node(fixed).ty);
                if self.tree.type_name(self.tree.node(fixed).ty).is_none() {
                    self.checked.push(class);
                }
            }
        }
        Ok(())
    }

    fn result_type(&mut self, id: NodeId) -> Result<String, Box<Diagnostic>> {
        Ok(self.check_once(id)?.unwrap_or_else(|| "_".to_owned()))
    }

    /// Adds the condition on the address of a memory node.
    fn address(&mut self, id: NodeId, node: Record<'_>, operands: &[NodeId]) -> Result<(), Box<Diagnostic>> {
        let last = operands.last().map(|last| &self.tree.node(*last).kind);
        let Some(NodeKind::Address { pattern, .. }) = last else {
            return Err(fault(
                self.tree.node(id).span,
                format!("the last operand of `{}` must be an AddrPattern", node.name()),
            ));
        };
        let predicate = pattern.string("Predicate").map_err(access)?;
        let align = pattern.int("Alignment").map_err(access)?;
        if !predicate.is_empty() {
            self.conditions
                .push(format!("(if-let _ ({predicate} flags p offset {align}))"));
        }
        Ok(())
    }

    /// Checks that the rule tests every type that the pattern states and binds every type that it
    /// names.
    fn everything_checked(&self, span: Span) -> Result<(), Box<Diagnostic>> {
        for (_, node) in self.tree.nodes() {
            let class = self.tree.types.class(node.ty);
            // Constants of any type match; their extractors test the type themselves.
            let matters = node.is_value();
            if matters && !self.checked.contains(&class) && self.tree.types.check(node.ty, node.span)? != Check::None {
                return Err(fault(node.span, "the rule does not check the type of this"));
            }
        }
        for (name, ty) in self.tree.named_types() {
            if !self.checked.contains(&self.tree.types.class(ty)) {
                return Err(fault(span, format!("the rule does not bind the type `${name}`")));
            }
        }
        Ok(())
    }
}

fn bad_form(node: Record<'_>, what: String) -> Box<Diagnostic> {
    fault(
        field_span(node, "IsleForm"),
        format!("in the form of `{}`: {what}", node.name()),
    )
}
