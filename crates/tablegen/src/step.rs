//! One step on the way of a field to its value, as the evaluator keeps it.

use crate::source::Span;
use crate::strings::Symbol;
use crate::value::ValueId;

/// What a step was.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum StepKind {
    /// The declaration of the field.
    Declared,
    /// A declaration of a field that was there already.
    Redeclared,
    /// A `let` in a body.
    Let,
    /// A `let ... in` around the class or record.
    EnclosingLet,
    /// Template arguments, where something derives from a class.
    Arguments,
    /// A class that was inherited after the field was there, and has it too.
    Inherited,
    /// The arguments of a multiclass, or the variable of a loop.
    Multiplied,
    /// The last resolution, which puts the final values of other fields in.
    Resolved,
}

impl StepKind {
    /// The step in a few words.
    pub fn text(self) -> &'static str {
        match self {
            StepKind::Declared => "declared",
            StepKind::Redeclared => "declared again",
            StepKind::Let => "set by a `let` in the body",
            StepKind::EnclosingLet => "set by an enclosing `let`",
            StepKind::Arguments => "template arguments put in",
            StepKind::Inherited => "inherited once more",
            StepKind::Multiplied => "arguments of a multiclass or a loop variable put in",
            StepKind::Resolved => "values of other fields put in",
        }
    }
}

/// A step as it is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepData {
    pub(crate) field: Symbol,
    pub(crate) kind: StepKind,
    pub(crate) span: Span,
    pub(crate) value: ValueId,
}
