//! A step in the history of a field's value, in the representation of the evaluator.

use crate::source::Span;
use crate::strings::Symbol;
use crate::value::ValueId;

/// The kind of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum StepKind {
    /// The declaration of the field.
    Declared,
    /// A declaration of a field that existed already.
    Redeclared,
    /// A `let` in a body.
    Let,
    /// A `let ... in` around the class or record.
    EnclosingLet,
    /// Template arguments of a parent class.
    Arguments,
    /// A later parent class that has the field too.
    Inherited,
    /// Arguments of a multiclass, or the variable of a loop.
    Multiplied,
    /// The last resolution, which substitutes the final values of other fields.
    Resolved,
}

impl StepKind {
    /// Describes the step in a few words.
    pub fn text(self) -> &'static str {
        match self {
            StepKind::Declared => "declared",
            StepKind::Redeclared => "declared again",
            StepKind::Let => "set by a `let` in the body",
            StepKind::EnclosingLet => "set by an enclosing `let`",
            StepKind::Arguments => "template arguments substituted",
            StepKind::Inherited => "inherited again",
            StepKind::Multiplied => "arguments of a multiclass or a loop variable substituted",
            StepKind::Resolved => "values of other fields substituted",
        }
    }
}

/// A recorded step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepData {
    pub(crate) field: Symbol,
    pub(crate) kind: StepKind,
    pub(crate) span: Span,
    pub(crate) value: ValueId,
}
