//! The left side of a pattern: converts a td dag to a tree of nodes with their types.
//!
//! Fragments are expanded where they are used, so the tree has only CLIF nodes and leaves.

use std::collections::HashMap;

use tablegen::{Dag, Diagnostic, Record, RecordKeeper, Span, Value, ValueKind};

use super::constructors::access;
use super::fault;
use super::types::{TypeVar, Types};

/// The largest number of nodes of a pattern with fragments expanded. The limit stops fragments that
/// use themselves.
const MAX_NODES: usize = 256;
/// The largest number of combinations of alternatives of a pattern.
const MAX_ALTERNATIVES: usize = 64;
/// The largest nesting depth of operators.
const MAX_DEPTH: usize = 32;

/// The index of a node in its tree.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct NodeId(usize);

/// The kind of a node.
#[derive(Clone)]
pub(super) enum NodeKind<'a> {
    /// A CLIF instruction.
    Operation { node: Record<'a>, operands: Vec<NodeId> },
    /// A value in a register.
    Register { name: String },
    /// A register value with a known property (`PatLeaf`).
    Known { leaf: Record<'a>, name: String },
    /// A constant that fits an immediate (`ImmLeaf`).
    Immediate { leaf: Record<'a>, name: String },
    /// A value that a constructor converts to an operand (`ComplexPattern`).
    Selected { pattern: Record<'a>, name: String },
    /// An address (`AddrPattern`).
    Address { pattern: Record<'a>, name: String },
    /// A field of the CLIF instruction that is not a value (`ClifOperand`).
    Entity { operand: Record<'a>, name: String },
    /// Exactly this number.
    Number(i64),
    /// ISLE text (`CondCode`).
    Fixed(&'a str),
}

/// A node of a pattern.
#[derive(Clone)]
pub(super) struct Node<'a> {
    pub kind: NodeKind<'a>,
    /// The type of the value, or of the first result.
    pub ty: TypeVar,
    /// The types of the other results.
    pub more: Vec<TypeVar>,
    pub span: Span,
}

/// A pattern with its types inferred.
#[derive(Clone)]
pub(super) struct Tree<'a> {
    nodes: Vec<Node<'a>>,
    pub root: NodeId,
    pub types: Types<'a>,
    /// The named types, as in `(int32:$ty ...)`.
    type_names: Vec<(&'a str, TypeVar)>,
}

impl<'a> Tree<'a> {
    /// Reads a pattern: returns one tree for every choice among the alternatives of its fragments.
    /// `span` is used where the text has no location. Only the pattern of a
    /// [`ComplexPattern`](NodeKind::Selected)'s rule may be a leaf.
    pub fn parse(
        records: &'a RecordKeeper,
        dag: Dag<'a>,
        span: Span,
        leaf_allowed: bool,
    ) -> Result<Vec<Self>, Box<Diagnostic>> {
        let mut trees = Vec::new();
        let mut choices = Choices::default();
        loop {
            let mut reader = Reader {
                value_types: records.defs_derived_from("ValueType"),
                nodes: Vec::new(),
                types: Types::default(),
                type_names: Vec::new(),
                choices,
                depth: 0,
            };
            let root = reader.dag(dag, span, &Arguments::new())?;
            choices = reader.choices;
            let tree = Tree {
                nodes: reader.nodes,
                root,
                types: reader.types,
                type_names: reader.type_names,
            };
            tree.check_root(span, leaf_allowed)?;
            tree.check_names(span)?;
            trees.push(tree);
            if trees.len() > MAX_ALTERNATIVES {
                return Err(fault(
                    span,
                    format!("the pattern has more than {MAX_ALTERNATIVES} alternatives"),
                ));
            }
            if !choices.next() {
                return Ok(trees);
            }
        }
    }

    pub fn node(&self, id: NodeId) -> &Node<'a> {
        &self.nodes[id.0]
    }

    /// Returns all nodes with their indices.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &Node<'a>)> {
        self.nodes.iter().enumerate().map(|(i, node)| (NodeId(i), node))
    }

    /// Returns the leaf of this name.
    pub fn named(&self, name: &str) -> Option<&Node<'a>> {
        self.nodes.iter().find(|node| node.name() == Some(name))
    }

    /// Returns the same pattern with the operands of a two-operand node exchanged.
    pub fn swapped(&self, id: NodeId) -> Self {
        let mut tree = self.clone();
        if let NodeKind::Operation { operands, .. } = &mut tree.nodes[id.0].kind {
            operands.reverse();
        }
        tree
    }

    /// Returns the name of a type, if it has one.
    pub fn type_name(&self, var: TypeVar) -> Option<&'a str> {
        let class = self.types.class(var);
        let mut names = self.type_names.iter();
        names
            .find(|(_, named)| self.types.class(*named) == class)
            .map(|(name, _)| *name)
    }

    /// Returns the type of this name.
    pub fn type_named(&self, name: &str) -> Option<TypeVar> {
        self.type_names
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, var)| *var)
    }

    /// Returns the named types.
    pub fn named_types(&self) -> impl Iterator<Item = (&'a str, TypeVar)> {
        self.type_names.iter().copied()
    }

    fn check_root(&self, span: Span, leaf_allowed: bool) -> Result<(), Box<Diagnostic>> {
        for (id, node) in self.nodes() {
            let NodeKind::Operation { node: record, .. } = &node.kind else {
                if id == self.root && !leaf_allowed {
                    return Err(fault(span, "a pattern must start with a node, not a leaf"));
                }
                continue;
            };
            if id != self.root && has_property(*record, "SDNPMemOperand")? {
                return Err(fault(
                    node.span,
                    format!("`{}` accesses memory and can only be the outermost node", record.name()),
                ));
            }
        }
        Ok(())
    }

    fn check_names(&self, span: Span) -> Result<(), Box<Diagnostic>> {
        let mut seen = HashMap::new();
        for (name, _) in &self.type_names {
            check_identifier(name, span)?;
            if seen.insert(*name, span).is_some() {
                return Err(fault(span, format!("type `${name}` is named twice in the pattern")));
            }
        }
        for (_, node) in self.nodes() {
            let Some(name) = node.name() else { continue };
            check_identifier(name, node.span)?;
            if seen.insert(name, node.span).is_some() {
                return Err(fault(span, format!("operand `${name}` is used twice in the pattern")));
            }
        }
        Ok(())
    }
}

impl Node<'_> {
    /// Returns the name of a leaf.
    pub fn name(&self) -> Option<&str> {
        match &self.kind {
            NodeKind::Register { name }
            | NodeKind::Known { name, .. }
            | NodeKind::Immediate { name, .. }
            | NodeKind::Selected { name, .. }
            | NodeKind::Address { name, .. }
            | NodeKind::Entity { name, .. } => Some(name),
            NodeKind::Operation { .. } | NodeKind::Number(_) | NodeKind::Fixed(_) => None,
        }
    }

    /// Returns whether it is a value whose type the rule has to check.
    pub fn is_value(&self) -> bool {
        matches!(
            self.kind,
            NodeKind::Register { .. } | NodeKind::Known { .. } | NodeKind::Selected { .. }
        )
    }
}

/// The chosen alternative of each fragment, in the order of reading.
#[derive(Default)]
struct Choices {
    /// The choice and the number of alternatives.
    taken: Vec<(usize, usize)>,
    position: usize,
}

impl Choices {
    /// Returns which of `count` alternatives to take.
    fn take(&mut self, count: usize) -> usize {
        if self.position == self.taken.len() {
            self.taken.push((0, count));
        }
        let (choice, _) = self.taken[self.position];
        self.position += 1;
        choice
    }

    /// Advances to the next combination; returns false after the last one.
    fn next(&mut self) -> bool {
        self.position = 0;
        while let Some((choice, count)) = self.taken.pop() {
            if choice + 1 < count {
                self.taken.push((choice + 1, count));
                return true;
            }
        }
        false
    }
}

/// Returns whether an SDNode has a property.
pub(super) fn has_property(node: Record<'_>, property: &str) -> Result<bool, Box<Diagnostic>> {
    let properties = node.list_of_defs("Properties").map_err(access)?;
    Ok(properties.iter().any(|p| p.name() == property))
}

/// Checks a name that becomes an ISLE variable.
pub(super) fn check_identifier(name: &str, span: Span) -> Result<(), Box<Diagnostic>> {
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic());
    let reserved = matches!(name, "flags" | "p" | "offset" | "inst") || name.ends_with("_in");
    if starts_well && !reserved && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        Ok(())
    } else if name.is_empty() {
        Err(fault(span, "a leaf of a pattern needs a name"))
    } else {
        Err(fault(span, format!("`${name}` cannot be the name of an ISLE variable")))
    }
}

/// The operands of the fragment that is being expanded, by their names.
type Arguments<'a> = HashMap<&'a str, NodeId>;

struct Reader<'a> {
    value_types: Vec<Record<'a>>,
    nodes: Vec<Node<'a>>,
    types: Types<'a>,
    type_names: Vec<(&'a str, TypeVar)>,
    choices: Choices,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn add(&mut self, kind: NodeKind<'a>, span: Span) -> Result<NodeId, Box<Diagnostic>> {
        if self.nodes.len() >= MAX_NODES {
            return Err(fault(span, format!("the pattern has more than {MAX_NODES} nodes")));
        }
        let ty = self.types.fresh();
        self.nodes.push(Node {
            kind,
            ty,
            more: Vec::new(),
            span,
        });
        Ok(NodeId(self.nodes.len() - 1))
    }

    fn dag(&mut self, dag: Dag<'a>, span: Span, arguments: &Arguments<'a>) -> Result<NodeId, Box<Diagnostic>> {
        let Some(operator) = dag.operator_def() else {
            return Err(fault(span, "the operator of a pattern must be a record"));
        };
        if self.depth >= MAX_DEPTH {
            return Err(fault(
                span,
                format!("the pattern nests more than {MAX_DEPTH} operators; does a fragment use itself?"),
            ));
        }
        self.depth += 1;
        let result = if operator.is_a("ValueType") || operator.is_a("TypeSet") {
            self.annotated(operator, dag, span, arguments)
        } else if operator.is_a("PatFrag") || operator.is_a("PatFrags") {
            self.fragment(operator, dag, span, arguments)
        } else if operator.is_a("SDNode") {
            self.operation(operator, dag, span, arguments)
        } else {
            Err(fault(
                span,
                format!(
                    "`{}` is not a node, fragment or type, so it cannot be matched",
                    operator.name()
                ),
            ))
        };
        self.depth -= 1;
        result
    }

    fn value(
        &mut self,
        value: Value<'a>,
        name: Option<&'a str>,
        outer: Span,
        arguments: &Arguments<'a>,
    ) -> Result<NodeId, Box<Diagnostic>> {
        let span = span_or(value, outer);
        match value.kind() {
            ValueKind::Dag(dag) => self.dag(dag, span, arguments),
            ValueKind::Int(number) => self.add(NodeKind::Number(number), span),
            ValueKind::Def(record) => self.leaf(record, name, span, arguments),
            _ => Err(fault(span, "this is not allowed in a pattern")),
        }
    }

    fn leaf(
        &mut self,
        record: Record<'a>,
        name: Option<&'a str>,
        span: Span,
        arguments: &Arguments<'a>,
    ) -> Result<NodeId, Box<Diagnostic>> {
        if record.name() == "node" {
            let argument = name.and_then(|name| arguments.get(name));
            return argument.copied().ok_or_else(|| {
                fault(
                    span,
                    format!("`node:${}` is not an operand of the fragment", name.unwrap_or_default()),
                )
            });
        }
        if record.is_a("CondCode") {
            let text = record.string("IsleName").map_err(access)?;
            return self.add(NodeKind::Fixed(text), span);
        }
        let name = name.unwrap_or_default().to_owned();
        if record.is_a("RegisterClass") {
            let id = self.add(NodeKind::Register { name }, span)?;
            let types = record.list_of_defs("RegTypes").map_err(access)?;
            self.types.restrict(self.nodes[id.0].ty, &types, span)?;
            return Ok(id);
        }
        if record.is_a("ValueType") || record.is_a("TypeSet") {
            let id = self.add(NodeKind::Register { name }, span)?;
            self.types.annotate(self.nodes[id.0].ty, record, span)?;
            return Ok(id);
        }
        let kind = if record.is_a("PatLeaf") {
            NodeKind::Known { leaf: record, name }
        } else if record.is_a("ImmLeaf") {
            NodeKind::Immediate { leaf: record, name }
        } else if record.is_a("ComplexPattern") {
            NodeKind::Selected { pattern: record, name }
        } else if record.is_a("AddrPattern") {
            NodeKind::Address { pattern: record, name }
        } else if record.is_a("ClifOperand") {
            NodeKind::Entity { operand: record, name }
        } else {
            return Err(fault(
                span,
                format!(
                    "`{}` is not a register class, type or class of leaves, so it cannot be a leaf",
                    record.name()
                ),
            ));
        };
        let has_types = matches!(kind, NodeKind::Known { .. } | NodeKind::Selected { .. });
        let id = self.add(kind, span)?;
        if has_types {
            let types = record.def_field("Types").map_err(access)?;
            self.types.annotate(self.nodes[id.0].ty, types, span)?;
        }
        Ok(id)
    }

    /// Reads an annotated pattern: `(i32 pattern)`.
    fn annotated(
        &mut self,
        ty: Record<'a>,
        dag: Dag<'a>,
        span: Span,
        arguments: &Arguments<'a>,
    ) -> Result<NodeId, Box<Diagnostic>> {
        let mut inner = dag.args().into_iter();
        let (Some((value, name)), None) = (inner.next(), inner.next()) else {
            return Err(fault(span, format!("`({} ...)` takes one pattern", ty.name())));
        };
        let id = self.value(value, name, span, arguments)?;
        self.types.annotate(self.nodes[id.0].ty, ty, span)?;
        if let Some(name) = dag.operator_name() {
            self.type_names.push((name, self.nodes[id.0].ty));
        }
        Ok(id)
    }

    fn fragment(
        &mut self,
        fragment: Record<'a>,
        dag: Dag<'a>,
        span: Span,
        arguments: &Arguments<'a>,
    ) -> Result<NodeId, Box<Diagnostic>> {
        let parameters = fragment.dag("Operands").map_err(access)?;
        let names: Vec<_> = parameters.args().into_iter().map(|(_, name)| name).collect();
        let given = dag.args();
        let given: Vec<_> = given.into_iter().collect();
        if names.len() != given.len() {
            return Err(wrong_count(fragment, names.len(), given.len(), span));
        }
        let mut own = Arguments::new();
        for (parameter, (value, name)) in names.into_iter().zip(given) {
            let id = self.value(value, name, span, arguments)?;
            own.insert(parameter.unwrap_or_default(), id);
        }
        let body = if fragment.is_a("PatFrag") {
            fragment.dag("Fragment").map_err(access)?
        } else {
            let bodies = fragment.list("Fragments").map_err(access)?;
            let choice = self.choices.take(bodies.len());
            let Some(ValueKind::Dag(body)) = bodies.get(choice).map(|body| body.kind()) else {
                return Err(fault(
                    span,
                    format!("`{}` has no alternative that is a dag", fragment.name()),
                ));
            };
            body
        };
        self.dag(body, span, &own)
    }

    fn operation(
        &mut self,
        node: Record<'a>,
        dag: Dag<'a>,
        span: Span,
        arguments: &Arguments<'a>,
    ) -> Result<NodeId, Box<Diagnostic>> {
        let profile = node.def_field("TypeProfile").map_err(access)?;
        let wanted = profile.int("NumOperands").map_err(access)?;
        let given: Vec<_> = dag.args().into_iter().collect();
        if usize::try_from(wanted) != Ok(given.len()) {
            return Err(wrong_count(
                node,
                usize::try_from(wanted).unwrap_or(0),
                given.len(),
                span,
            ));
        }
        let mut operands = Vec::new();
        for (value, name) in given {
            operands.push(self.value(value, name, span, arguments)?);
        }
        let id = self.add(
            NodeKind::Operation {
                node,
                operands: operands.clone(),
            },
            span,
        )?;
        // The types that constraints refer to by number: results, then operands.
        let mut numbered = Vec::new();
        for result in 0..profile.int("NumResults").map_err(access)? {
            let ty = if result == 0 {
                self.nodes[id.0].ty
            } else {
                let ty = self.types.fresh();
                self.nodes[id.0].more.push(ty);
                ty
            };
            numbered.push((ty, span));
        }
        numbered.extend(operands.iter().map(|id| (self.nodes[id.0].ty, self.nodes[id.0].span)));
        for constraint in profile.list_of_defs("Constraints").map_err(access)? {
            self.constrain(node, constraint, &numbered, span)?;
        }
        Ok(id)
    }

    fn constrain(
        &mut self,
        node: Record<'a>,
        constraint: Record<'a>,
        numbered: &[(TypeVar, Span)],
        span: Span,
    ) -> Result<(), Box<Diagnostic>> {
        let var = |field: &str| -> Result<(TypeVar, Span), Box<Diagnostic>> {
            let number = constraint.int(field).map_err(access)?;
            let found = usize::try_from(number).ok().and_then(|n| numbered.get(n));
            found
                .copied()
                .ok_or_else(|| fault(constraint.span(), format!("`{}` has no operand {number}", node.name())))
        };
        let (ty, at) = var("OperandNum")?;
        if constraint.is_a("SDTCisInt") {
            let all = std::mem::take(&mut self.value_types);
            let result = self.types.restrict_to_integers(ty, &all, at);
            self.value_types = all;
            result
        } else if constraint.is_a("SDTCisVT") {
            let vt = constraint.def_field("VT").map_err(access)?;
            self.types.restrict(ty, &[vt], at)
        } else if constraint.is_a("SDTCisSameAs") {
            let (other, _) = var("OtherOperandNum")?;
            self.types.unify(ty, other, span)
        } else {
            Err(fault(
                constraint.span(),
                "this type constraint is not known (SDTCisInt, SDTCisVT, SDTCisSameAs are)",
            ))
        }
    }
}

/// Returns the location of a value, or the location of its context.
fn span_or(value: Value<'_>, outer: Span) -> Span {
    let span = value.span();
    if span.end > span.start { span } else { outer }
}

fn wrong_count(operator: Record<'_>, wanted: usize, given: usize, span: Span) -> Box<Diagnostic> {
    fault(
        span,
        format!("`{}` takes {wanted} operands, {given} are given", operator.name()),
    )
}
