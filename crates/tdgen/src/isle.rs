//! Generates ISLE from td: the enum of opcodes, a constructor for every machine instruction that
//! the hardware implements, and a lowering rule for every selection pattern.
//!
//! The output declares the enum `Op`, an external emitter for every instruction shape (`emit_s_ss`
//! and so on, see [`constructors`]) and the instructions. It uses terms that the compiler's prelude
//! declares: the types `Gpr Vec Simm9 Imm16 AMode Unit`, the extractors and constructors that td's
//! `TypeSet`, `ImmLeaf`, `ComplexPattern` and `Operand` records name, `value_type`, `const_i32`,
//! `lower`, and conversions from values to registers and from registers to the output of an
//! instruction.
//!
//! A comment before each rule has the td file and line of its pattern. The priority of a rule is
//! four times the complexity of the pattern, minus the number of the commuted variant. So the more
//! specific pattern wins, and the variants of a pattern have different priorities. If two patterns
//! of equal complexity overlap, the ISLE compiler refuses them; `AddedComplexity` resolves this.

mod constructors;
mod node_pattern;
mod operand;
mod pattern;
mod result;
mod rule;
mod types;

use tablegen::{Diagnostic, Parsed, Record, Severity, Span};

use constructors::Constructors;

/// A rule from a pattern or from a result fragment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// `td/FILE:LINE` of its record and of each `defm` that made it.
    pub place: String,
    /// The rule as ISLE.
    pub text: String,
    /// The CLIF instruction that it lowers; `None` for a rule of another term.
    pub opcode: Option<String>,
    /// The machine instructions in its result, in order of their names.
    pub instructions: Vec<String>,
}

/// Generates the ISLE text for a target.
///
/// # Errors
///
/// Returns all faults of the patterns, each with its location in td: unknown operators and leaves,
/// types that do not fit or are ambiguous, operands that are missing, used twice or of the wrong
/// kind, results with the wrong number of operands.
pub fn emit_isle(parsed: &Parsed) -> Result<String, Vec<Diagnostic>> {
    let (constructors, fragments, rules) = all_rules(parsed)?;
    let mut out = String::from(
        ";; Made from td/ by tdgen. Constructors of machine instructions, and a lowering rule\n\
         ;; for every selection pattern.\n\n",
    );
    out.push_str(&crate::routines::isle_type(parsed)?);
    constructors.write(&mut out);
    let write = |out: &mut String, rules: &[Rule]| {
        for rule in rules {
            out.push_str(&format!(";; {}\n{}\n", rule.place, rule.text));
        }
    };
    write(&mut out, &fragments);
    out.push_str("\n;;;; Rules from patterns ;;;;\n\n");
    write(&mut out, &rules);
    Ok(out)
}

/// Returns the rules that [`emit_isle`] writes: rules of fragments and of target nodes first, then
/// rules of CLIF.
///
/// # Errors
///
/// Returns the same faults as [`emit_isle`].
pub fn selection_rules(parsed: &Parsed) -> Result<Vec<Rule>, Vec<Diagnostic>> {
    let (_, mut fragments, rules) = all_rules(parsed)?;
    fragments.extend(rules);
    Ok(fragments)
}

/// Returns the names of the machine instructions in a piece of ISLE, in order.
pub fn named_instructions(text: &str, is_instruction: impl Fn(&str) -> bool) -> Vec<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let mut found: Vec<_> = words.filter(|word| is_instruction(word)).collect();
    found.sort_unstable();
    found.dedup();
    found
}

type Rules<'a> = (Constructors<'a>, Vec<Rule>, Vec<Rule>);

/// Returns constructors, rules of fragments and of target nodes, and rules of the other patterns.
fn all_rules(parsed: &Parsed) -> Result<Rules<'_>, Vec<Diagnostic>> {
    let mut faults = Vec::new();
    let constructors = Constructors::collect(&parsed.records, &mut faults);
    let rule = |record: Record<'_>, text: String| {
        let is_instruction = |word: &str| {
            constructors
                .get(word)
                .is_some_and(|constructor| constructor.record.is_a("Instruction"))
        };
        Rule {
            place: place(parsed, record),
            opcode: rule::opcode(&text).map(str::to_owned),
            instructions: named_instructions(&text, is_instruction)
                .into_iter()
                .map(str::to_owned)
                .collect(),
            text,
        }
    };
    let mut fragments = Vec::new();
    for fragment in constructors.of_class("OutPatFrag") {
        match rule::fragment_rule(&parsed.records, fragment, &constructors) {
            Ok(text) => fragments.push(rule(fragment.record, text)),
            Err(fault) => faults.push(*fault),
        }
    }
    for node in constructors.of_class("TargetNode") {
        match node_pattern::fold_rule(node) {
            Ok(text) => fragments.extend(text.map(|text| rule(node.record, text))),
            Err(fault) => faults.push(*fault),
        }
    }
    for record in parsed.records.defs_derived_from("Pat") {
        if !node_pattern::is_one(record) {
            continue;
        }
        match node_pattern::rules(&parsed.records, record, &constructors) {
            Ok(texts) => fragments.extend(texts.into_iter().map(|text| rule(record, text))),
            Err(fault) => faults.push(in_pattern(*fault, record)),
        }
    }
    let mut rules = Vec::new();
    for source in rule::sources(&parsed.records, &constructors, &mut faults) {
        match rule::rules(&source, &constructors) {
            Ok(texts) => rules.extend(texts.into_iter().map(|text| rule(source.record, text))),
            Err(fault) => faults.push(in_pattern(*fault, source.record)),
        }
    }
    if faults.is_empty() {
        Ok((constructors, fragments, rules))
    } else {
        Err(faults)
    }
}

/// Returns `td/FILE:LINE` of a record, and of each `defm` that made it.
pub(crate) fn place(parsed: &Parsed, record: Record<'_>) -> String {
    let mut text = short(parsed, record.span());
    for span in record.instantiations() {
        text.push_str(" from ");
        text.push_str(&short(parsed, span));
    }
    text
}

/// Returns file and line, with only the last part of the path, so that the output does not depend
/// on the location of the tree.
fn short(parsed: &Parsed, span: Span) -> String {
    let location = parsed.sources.location(span);
    let file = location.file.rsplit(['/', '\\']).next().unwrap_or(location.file);
    format!("td/{file}:{}", location.line)
}

/// Creates a fault with a location.
fn fault(span: Span, message: impl Into<String>) -> Box<Diagnostic> {
    Box::new(Diagnostic::new(Severity::Error, message).primary(span, ""))
}

/// Adds to a fault inside a pattern the location of the pattern and of the `defm`s that made it.
fn in_pattern(fault: Diagnostic, record: Record<'_>) -> Diagnostic {
    let span = record.span();
    let mut fault = fault;
    if fault.span() != Some(span) {
        fault = fault.secondary(span, "in this pattern");
    }
    for made_by in record.instantiations() {
        fault = fault.secondary(made_by, "made by this");
    }
    fault
}
