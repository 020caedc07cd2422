//! Inputs of the record builder: template arguments, and changes of fields by `let`.

use smallvec::SmallVec;

use crate::ast::LetMode;
use crate::shape::Place;
use crate::source::Span;
use crate::strings::Symbol;
use crate::value::{ClassId, ValueId};

/// A template argument with its span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArgValue {
    /// The name of a named argument; none for a positional one.
    pub(crate) name: Symbol,
    pub(crate) value: ValueId,
    pub(crate) span: Span,
}

/// A short list of template arguments.
pub(crate) type Args = SmallVec<[ArgValue; 6]>;

/// Values of template parameters: the variable of each parameter, the argument and its span.
pub(crate) type Bound = SmallVec<[(Symbol, ValueId, Span); 8]>;

/// A class or multiclass with template parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Owner {
    Class(ClassId),
    Multiclass(usize),
    /// The parent of a multiclass. Its arguments are not converted to the types of the parameters.
    ParentMulticlass(usize),
}

/// A change of a field by `let`.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) name: Symbol,
    pub(crate) name_span: Span,
    /// The bit positions in source order, the most significant first.
    pub(crate) bits: Option<Vec<u32>>,
    pub(crate) value: ValueId,
    pub(crate) span: Span,
    pub(crate) place: Place,
    /// Whether it declares the field.
    pub(crate) declares: bool,
    pub(crate) mode: LetMode,
}
