//! The right side of a rule: instructions, nested or in sequence, with named operands.
//!
//! An operand is evaluated once: addresses, and any other operand that the result uses several
//! times, are bound before the instructions.

use std::collections::HashMap;

use tablegen::{Dag, Diagnostic, Record, RecordKeeper, Span, Value, ValueKind};

use super::constructors::{Constructor, Constructors, access};
use super::fault;
use super::operand::OperandKind;
use super::pattern::{Node, NodeKind, Tree, check_identifier};
use super::types::TypeVar;

/// The largest nesting depth of instructions.
const MAX_DEPTH: usize = 32;

/// The required result.
pub(super) enum Wanted<'a> {
    /// The results of the matched instruction, of these types.
    Results(Vec<TypeVar>),
    /// An operand of this kind.
    Operand(OperandKind<'a>),
}

/// An operand that has been evaluated.
struct Bound<'a> {
    kind: OperandKind<'a>,
    /// The ISLE variable.
    variable: String,
}

/// Writes the ISLE expression of a result.
pub(super) struct ResultWriter<'t, 'a> {
    records: &'a RecordKeeper,
    constructors: &'t Constructors<'a>,
    /// The matched pattern; `None` for the body of a fragment.
    tree: Option<&'t Tree<'a>>,
    bound: HashMap<String, Bound<'a>>,
    /// Bindings of the `let` around the result.
    bindings: Vec<String>,
    depth: usize,
}

impl<'t, 'a> ResultWriter<'t, 'a> {
    /// Creates a writer for the result of a pattern.
    pub fn new(records: &'a RecordKeeper, tree: &'t Tree<'a>, constructors: &'t Constructors<'a>) -> Self {
        ResultWriter {
            records,
            constructors,
            tree: Some(tree),
            bound: HashMap::new(),
            bindings: Vec::new(),
            depth: 0,
        }
    }

    /// Creates a writer for the body of a fragment, whose operands are the variables of these
    /// names.
    pub fn fragment(
        records: &'a RecordKeeper,
        fragment: &'t Constructor<'a>,
        constructors: &'t Constructors<'a>,
    ) -> Result<Self, Box<Diagnostic>> {
        let mut bound = HashMap::new();
        for input in &fragment.inputs {
            check_identifier(&input.name, fragment.record.span())?;
            let variable = input.name.clone();
            let kind = input.kind;
            bound.insert(input.name.clone(), Bound { kind, variable });
        }
        Ok(ResultWriter {
            records,
            constructors,
            tree: None,
            bound,
            bindings: Vec::new(),
            depth: 0,
        })
    }

    /// Writes the whole result.
    pub fn whole(&mut self, dag: Dag<'a>, wanted: &Wanted<'a>, span: Span) -> Result<String, Box<Diagnostic>> {
        self.bind_leaves(dag, span)?;
        let mut last = dag;
        if is_operator(dag, "seq") {
            let mut steps = dag.args();
            let Some((value, _)) = steps.pop() else {
                return Err(fault(span, "`seq` has no result"));
            };
            for (value, name) in steps {
                self.step(value, name, span)?;
            }
            let ValueKind::Dag(inner) = value.kind() else {
                return Err(fault(span, "the last element of `seq` must be a dag"));
            };
            last = inner;
        }
        let text = self.last(last, wanted, span)?;
        Ok(self.with_bindings(text))
    }

    /// Writes the result of a pattern in an instruction's own record: the instruction with its
    /// operands.
    pub fn own(
        &mut self,
        constructor: &Constructor<'a>,
        root: Option<TypeVar>,
        span: Span,
    ) -> Result<String, Box<Diagnostic>> {
        if let (Some(ty), Some(kind)) = (root, &constructor.output) {
            self.check_type(ty, kind, span)?;
        }
        let mut arguments = Vec::new();
        for (_, input) in constructor.term_order() {
            if let Some(tree) = self.tree
                && let Some(node) = tree.named(&input.name)
                && let NodeKind::Address { .. } = node.kind
            {
                self.bind_leaf(node, span)?;
            }
            arguments.push(self.named(&input.name, &input.kind, span)?);
        }
        let text = term(constructor.term, &arguments);
        Ok(self.with_bindings(text))
    }

    /// Creates a writer for the result of a node's pattern, whose operands are the variables of
    /// these names.
    pub fn of_node(
        records: &'a RecordKeeper,
        operands: &[(String, OperandKind<'a>)],
        constructors: &'t Constructors<'a>,
    ) -> Self {
        let mut bound = HashMap::new();
        for (name, kind) in operands {
            let (variable, kind) = (name.clone(), *kind);
            bound.insert(name.clone(), Bound { kind, variable });
        }
        ResultWriter {
            records,
            constructors,
            tree: None,
            bound,
            bindings: Vec::new(),
            depth: 0,
        }
    }

    fn with_bindings(&self, result: String) -> String {
        if self.bindings.is_empty() {
            return result;
        }
        format!("(let ({})\n        {result})", self.bindings.join("\n            "))
    }

    /// Binds addresses, and operands that the result uses several times.
    fn bind_leaves(&mut self, dag: Dag<'a>, span: Span) -> Result<(), Box<Diagnostic>> {
        let Some(tree) = self.tree else { return Ok(()) };
        let mut uses = HashMap::new();
        count_uses(dag, false, &mut uses);
        for (_, node) in tree.nodes() {
            let Some(name) = node.name() else { continue };
            let used = uses.get(name).copied().unwrap_or_default();
            let bind = match &node.kind {
                NodeKind::Address { .. } => used.any > 0,
                // Operands other than registers (an address, a condition) are always bound before
                // the instructions.
                NodeKind::Selected { pattern, .. } => used.operand > usize::from(encoded(*pattern, span)?.is_register),
                NodeKind::Register { .. } | NodeKind::Known { .. } => used.operand > 1,
                _ => false,
            };
            if bind {
                self.bind_leaf(node, span)?;
            }
        }
        Ok(())
    }

    fn bind_leaf(&mut self, node: &Node<'a>, span: Span) -> Result<(), Box<Diagnostic>> {
        let Some(name) = node.name() else { return Ok(()) };
        let (kind, text) = match &node.kind {
            NodeKind::Register { .. } | NodeKind::Known { .. } => (self.value_kind(node.ty, span)?, name.to_owned()),
            NodeKind::Selected { pattern, .. } => {
                let select = pattern.string("SelectFunc").map_err(access)?;
                (encoded(*pattern, span)?, format!("({select} {name})"))
            }
            NodeKind::Address { pattern, .. } => {
                let select = pattern.string("SelectFunc").map_err(access)?;
                (encoded(*pattern, span)?, format!("({select} p offset)"))
            }
            _ => return Err(fault(span, format!("`${name}` is not an operand that can be bound"))),
        };
        let variable = format!("{name}_in");
        self.bind(name, variable, kind, &text);
        Ok(())
    }

    fn bind(&mut self, name: &str, variable: String, kind: OperandKind<'a>, text: &str) {
        self.bindings.push(format!("({variable} {} {text})", kind.isle_type));
        self.bound.insert(name.to_owned(), Bound { kind, variable });
    }

    /// Writes one element of `seq`.
    fn step(&mut self, value: Value<'a>, name: Option<&str>, span: Span) -> Result<(), Box<Diagnostic>> {
        let ValueKind::Dag(dag) = value.kind() else {
            return Err(fault(span, "an element of `seq` must be a dag"));
        };
        let (text, kind) = self.call(dag, span)?;
        match (name, kind) {
            (Some(name), Some(kind)) => {
                check_identifier(name, span)?;
                let known = self.bound.contains_key(name) || self.tree.is_some_and(|tree| tree.named(name).is_some());
                if known {
                    return Err(fault(span, format!("`${name}` is an operand already")));
                }
                self.bind(name, name.to_owned(), kind, &text);
            }
            (None, None) => self.bindings.push(format!("(_ Unit {text})")),
            (Some(name), None) => return Err(fault(span, format!("`${name}` has no value"))),
            (None, Some(_)) => return Err(fault(span, "an element of `seq` with a value needs a name")),
        }
        Ok(())
    }

    fn last(&mut self, dag: Dag<'a>, wanted: &Wanted<'a>, span: Span) -> Result<String, Box<Diagnostic>> {
        match wanted {
            Wanted::Operand(kind) => {
                let (text, found) = self.call_for(dag, Some(*kind), span)?;
                match found {
                    Some(found) if found.is(kind.record) => Ok(text),
                    _ => Err(fault(span, format!("the result is not a `{}`", kind.record.name()))),
                }
            }
            Wanted::Results(types) if is_operator(dag, "results") => {
                let given = dag.args();
                if given.len() != types.len() {
                    return Err(fault(
                        span,
                        format!("the pattern has {} results, {} are given", types.len(), given.len()),
                    ));
                }
                let mut texts = Vec::new();
                for ((value, name), ty) in given.into_iter().zip(types) {
                    let kind = self.register_kind(*ty, span)?;
                    texts.push(self.argument(value, name, &kind, span)?);
                }
                if texts.len() != 2 {
                    return Err(fault(span, "`results` needs two or more results"));
                }
                Ok(term("output_pair", &texts))
            }
            Wanted::Results(types) => {
                let expected = match types.as_slice() {
                    [] => None,
                    [ty] => Some(self.register_kind(*ty, span)?),
                    several => return Err(fault(span, format!("the pattern has {} results", several.len()))),
                };
                let (text, kind) = self.call_for(dag, expected, span)?;
                let name = dag.operator_def().map(|record| record.name()).unwrap_or_default();
                match (types.first(), &kind) {
                    (None, None) => Ok(text),
                    (Some(ty), Some(kind)) => {
                        self.check_type(*ty, kind, span)?;
                        Ok(text)
                    }
                    (Some(_), None) => Err(fault(
                        span,
                        format!("`{name}` has no result, but the pattern computes one"),
                    )),
                    (None, Some(_)) => Err(fault(
                        span,
                        format!("`{name}` has a result, but the pattern computes none"),
                    )),
                }
            }
        }
    }

    /// Writes an instruction with its operands, or a transformation of operands. Returns its text
    /// and the kind of its result.
    fn call(&mut self, dag: Dag<'a>, span: Span) -> Result<(String, Option<OperandKind<'a>>), Box<Diagnostic>> {
        self.call_for(dag, None, span)
    }

    /// Like `call`, with the required kind, which `COPY` needs.
    fn call_for(
        &mut self,
        dag: Dag<'a>,
        wanted: Option<OperandKind<'a>>,
        span: Span,
    ) -> Result<(String, Option<OperandKind<'a>>), Box<Diagnostic>> {
        let Some(operator) = dag.operator_def() else {
            return Err(fault(span, "the operator of a result must be an instruction"));
        };
        if self.depth >= MAX_DEPTH {
            return Err(fault(
                span,
                format!("the result nests more than {MAX_DEPTH} instructions"),
            ));
        }
        self.depth += 1;
        let result = if operator.is_a("SDNodeXForm") {
            self.transform(operator, dag, span)
        } else if operator.is_a("ComplexPattern") {
            self.select(operator, dag, span)
        } else if operator.name() == "COPY" {
            self.copy(dag, wanted, span)
        } else {
            self.instruction(operator, dag, span)
        };
        self.depth -= 1;
        result
    }

    fn copy(
        &mut self,
        dag: Dag<'a>,
        wanted: Option<OperandKind<'a>>,
        span: Span,
    ) -> Result<(String, Option<OperandKind<'a>>), Box<Diagnostic>> {
        let args = dag.args();
        let ([(value, name)], Some(kind)) = (args.as_slice(), wanted) else {
            return Err(fault(span, "`COPY` takes one operand and stands for the whole result"));
        };
        if let Some(name) = name
            && !self.bound.contains_key(*name)
            && let Some(tree) = self.tree
            && let Some(node) = tree.named(name)
            && node.is_value()
        {
            self.bind_leaf(node, span)?;
        }
        Ok((self.argument(*value, *name, &kind, span)?, Some(kind)))
    }

    fn transform(
        &mut self,
        form: Record<'a>,
        dag: Dag<'a>,
        span: Span,
    ) -> Result<(String, Option<OperandKind<'a>>), Box<Diagnostic>> {
        let given = dag.args();
        let wanted = form.int("NumOperands").map_err(access)?;
        check_count(form, usize::try_from(wanted).unwrap_or(0), given.len(), span)?;
        let mut arguments = Vec::new();
        for (value, name) in given {
            arguments.push(match (name, value.kind()) {
                (Some(name), _) => self.transformed(name, span)?,
                (None, ValueKind::Int(number)) => number.to_string(),
                (None, ValueKind::Dag(dag)) => self.call(dag, span)?.0,
                _ => return Err(fault(span, format!("this cannot be an operand of `{}`", form.name()))),
            });
        }
        let name = form.string("IsleName").map_err(access)?;
        Ok((term(name, &arguments), Some(encoded(form, span)?)))
    }

    /// Writes the term of a `ComplexPattern` that is applied to a value.
    fn select(
        &self,
        pattern: Record<'a>,
        dag: Dag<'a>,
        span: Span,
    ) -> Result<(String, Option<OperandKind<'a>>), Box<Diagnostic>> {
        let args = dag.args();
        let node = match args.as_slice() {
            [(_, Some(name))] => self.tree.and_then(|tree| tree.named(name)),
            _ => None,
        };
        let Some((node, name)) = node.and_then(|node| Some((node, node.name()?))) else {
            return Err(fault(
                span,
                format!("`{}` takes an operand of the pattern", pattern.name()),
            ));
        };
        if !node.is_value() {
            return Err(fault(span, format!("`${name}` is not a value")));
        }
        let select = pattern.string("SelectFunc").map_err(access)?;
        Ok((format!("({select} {name})"), Some(encoded(pattern, span)?)))
    }

    /// Writes an operand of a transformation: a type, or the match of a leaf.
    fn transformed(&self, name: &str, span: Span) -> Result<String, Box<Diagnostic>> {
        let Some(tree) = self.tree else {
            return match self.bound.get(name) {
                Some(bound) => Ok(bound.variable.clone()),
                None => Err(fault(span, format!("the fragment has no operand `${name}`"))),
            };
        };
        if tree.type_named(name).is_some() {
            return Ok(name.to_owned());
        }
        match (tree.named(name), self.bound.get(name)) {
            (Some(node), Some(bound)) if !node.is_value() => Ok(bound.variable.clone()),
            (Some(_), _) => Ok(name.to_owned()),
            (None, Some(bound)) => Ok(bound.variable.clone()),
            (None, None) => Err(no_operand(name, span)),
        }
    }

    fn instruction(
        &mut self,
        operator: Record<'a>,
        dag: Dag<'a>,
        span: Span,
    ) -> Result<(String, Option<OperandKind<'a>>), Box<Diagnostic>> {
        let constructor = self.constructors.get(operator.name()).ok_or_else(|| {
            let why = if operator.is_a("Instruction") {
                "an instruction that patterns cannot use"
            } else {
                "not an instruction"
            };
            fault(span, format!("`{}` is {why}", operator.name()))
        })?;
        let given = dag.args();
        check_count(constructor.record, constructor.inputs.len(), given.len(), span)?;
        let mut arguments = Vec::new();
        for (index, input) in constructor.term_order() {
            let Some((value, name)) = given.get(index) else {
                continue;
            };
            arguments.push(self.argument(*value, *name, &input.kind, span)?);
        }
        Ok((term(constructor.term, &arguments), constructor.output))
    }

    fn argument(
        &mut self,
        value: Value<'a>,
        name: Option<&str>,
        kind: &OperandKind<'a>,
        outer: Span,
    ) -> Result<String, Box<Diagnostic>> {
        if let Some(name) = name {
            return self.named(name, kind, outer);
        }
        match value.kind() {
            ValueKind::Int(number) => constant(number, kind, outer),
            ValueKind::Dag(dag) => {
                let (text, found) = self.call_for(dag, Some(*kind), outer)?;
                match found {
                    Some(found) if found.is(kind.record) => Ok(text),
                    _ => {
                        let inner = dag.operator_def().map(|record| record.name()).unwrap_or_default();
                        Err(fault(
                            outer,
                            format!("`{inner}` does not give a `{}`", kind.record.name()),
                        ))
                    }
                }
            }
            _ => Err(fault(outer, "this cannot be an operand of a result")),
        }
    }

    fn named(&self, name: &str, kind: &OperandKind<'a>, span: Span) -> Result<String, Box<Diagnostic>> {
        let node = self.tree.and_then(|tree| tree.named(name));
        // An operand of kind value gets the matched value, not the register.
        if let Some(node) = node
            && node.is_value()
            && kind.isle_type == "Value"
        {
            return Ok(name.to_owned());
        }
        if let Some(bound) = self.bound.get(name) {
            let fits = bound.kind.is(kind.record);
            return match (fits, node) {
                (true, _) => Ok(bound.variable.clone()),
                (false, Some(node)) => Err(wrong_kind(name, kind, node, span)),
                (false, None) => Err(fault(span, format!("`${name}` is not a `{}`", kind.record.name()))),
            };
        }
        if kind.isle_type == "Type"
            && let Some(tree) = self.tree
            && tree.type_named(name).is_some()
        {
            return Ok(name.to_owned());
        }
        let Some(node) = node else {
            return Err(no_operand(name, span));
        };
        match &node.kind {
            NodeKind::Register { .. } | NodeKind::Known { .. } => {
                if kind.class().is_none() {
                    return Err(wrong_kind(name, kind, node, span));
                }
                self.check_type(node.ty, kind, span)?;
                Ok(name.to_owned())
            }
            NodeKind::Immediate { leaf, .. } => {
                let encodes = leaf.def_field("Encodes").map_err(access)?;
                if !kind.is(encodes) {
                    return Err(wrong_kind(name, kind, node, span));
                }
                Ok(name.to_owned())
            }
            NodeKind::Selected { pattern, .. } => {
                let encodes = pattern.def_field("Encodes").map_err(access)?;
                if !kind.is(encodes) {
                    return Err(wrong_kind(name, kind, node, span));
                }
                let select = pattern.string("SelectFunc").map_err(access)?;
                Ok(format!("({select} {name})"))
            }
            NodeKind::Entity { operand, .. } if kind.is(*operand) => Ok(name.to_owned()),
            NodeKind::Entity { .. }
            | NodeKind::Address { .. }
            | NodeKind::Operation { .. }
            | NodeKind::Number(_)
            | NodeKind::Fixed(_) => Err(wrong_kind(name, kind, node, span)),
        }
    }

    /// Returns the register class for values of this type.
    fn register_kind(&self, ty: TypeVar, span: Span) -> Result<OperandKind<'a>, Box<Diagnostic>> {
        let Some(tree) = self.tree else {
            return Err(fault(span, "a fragment has no types"));
        };
        for class in self.records.defs_derived_from("RegisterClass") {
            let types = class.list_of_defs("RegTypes").map_err(access)?;
            if tree.types.fits(ty, &types)?
                && let Some(kind) = OperandKind::of(class)?
            {
                return Ok(kind);
            }
        }
        Err(fault(
            span,
            format!(
                "types do not fit: no register class has a value {}",
                tree.types.describe(ty)
            ),
        ))
    }

    /// Returns the kind of operand of a value of this type before an instruction needs it in a
    /// register.
    fn value_kind(&self, ty: TypeVar, span: Span) -> Result<OperandKind<'a>, Box<Diagnostic>> {
        let class = self.register_kind(ty, span)?;
        for operand in self.records.defs_derived_from("RegOperand") {
            if operand.bit("HoldsValues").map_err(access)?
                && let Some(kind) = OperandKind::of(operand)?
                && kind.is(class.record)
            {
                return Ok(kind);
            }
        }
        Ok(class)
    }

    fn check_type(&self, ty: TypeVar, kind: &OperandKind<'a>, span: Span) -> Result<(), Box<Diagnostic>> {
        let Some(class) = kind.class() else {
            return Err(fault(span, format!("`{}` is not a register class", kind.record.name())));
        };
        let Some(tree) = self.tree else {
            return Ok(());
        };
        let types = class.list_of_defs("RegTypes").map_err(access)?;
        if tree.types.fits(ty, &types)? {
            return Ok(());
        }
        Err(fault(
            span,
            format!(
                "types do not fit: a value {} is not in a register of `{}`",
                tree.types.describe(ty),
                class.name()
            ),
        ))
    }
}

/// The number of uses of an operand in a result.
#[derive(Clone, Copy, Default)]
struct Uses {
    any: usize,
    /// Uses as an operand of an instruction.
    operand: usize,
}

fn count_uses<'a>(dag: Dag<'a>, in_transform: bool, uses: &mut HashMap<&'a str, Uses>) {
    let operator = dag.operator_def();
    let transform = operator.is_some_and(|record| record.is_a("SDNodeXForm") || record.is_a("ComplexPattern"));
    for (value, name) in dag.args() {
        match (name, value.kind()) {
            (_, ValueKind::Dag(inner)) => count_uses(inner, transform, uses),
            (Some(name), _) => {
                let entry = uses.entry(name).or_default();
                entry.any += 1;
                entry.operand += usize::from(!transform && !in_transform);
            }
            (None, _) => {}
        }
    }
}

fn is_operator(dag: Dag<'_>, name: &str) -> bool {
    dag.operator_def().is_some_and(|operator| operator.name() == name)
}

/// Returns the kind of operand that a leaf or transformation produces.
fn encoded<'a>(record: Record<'a>, span: Span) -> Result<OperandKind<'a>, Box<Diagnostic>> {
    let encodes = record.def_field("Encodes").map_err(access)?;
    OperandKind::of(encodes)?.ok_or_else(|| fault(span, format!("`{}` has no ISLE type", encodes.name())))
}

fn check_count(operator: Record<'_>, wanted: usize, given: usize, span: Span) -> Result<(), Box<Diagnostic>> {
    if wanted == given {
        return Ok(());
    }
    Err(fault(
        span,
        format!("`{}` takes {wanted} operands, {given} are given", operator.name()),
    ))
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

/// Writes a number of a result.
fn constant(number: i64, kind: &OperandKind<'_>, span: Span) -> Result<String, Box<Diagnostic>> {
    let operand: Record<'_> = kind.record;
    // A pseudo-instruction takes the number unchanged.
    let range = match kind.isle_type {
        "u32" => Some((0, u32::MAX.into())),
        "i32" => Some((i32::MIN.into(), i32::MAX.into())),
        _ => None,
    };
    if let Some((least, most)) = range
        && (least..=most).contains(&number)
    {
        return Ok(number.to_string());
    }
    let maker = operand.string("IsleConst").map_err(access)?;
    if maker.is_empty() {
        return Err(fault(
            span,
            format!("a number cannot be an operand of kind `{}` here", operand.name()),
        ));
    }
    let whole = kind.class().is_some();
    let (least, most) = if whole {
        (i32::MIN.into(), u32::MAX.into())
    } else {
        (
            operand.int("MinValue").map_err(access)?,
            operand.int("MaxValue").map_err(access)?,
        )
    };
    if number < least || number > most {
        return Err(fault(
            span,
            format!("{number} is not in the range {least} to {most} of `{}`", operand.name()),
        ));
    }
    if whole {
        return Ok(format!("({maker} {:#x})", number & i64::from(u32::MAX)));
    }
    Ok(format!("({maker} {number})"))
}

fn no_operand(name: &str, span: Span) -> Box<Diagnostic> {
    fault(span, format!("the pattern has no operand `${name}`"))
}

fn wrong_kind(name: &str, kind: &OperandKind<'_>, node: &Node<'_>, span: Span) -> Box<Diagnostic> {
    let diagnostic = fault(
        span,
        format!("operand `${name}` of the pattern is not a `{}`", kind.record.name()),
    );
    Box::new(diagnostic.secondary(node.span, "matched here"))
}
