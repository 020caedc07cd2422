//! What statements hand to the builder of records: template arguments, and changes of fields by `let`.

use smallvec::SmallVec;

use crate::ast::LetMode;
use crate::shape::Place;
use crate::source::Span;
use crate::strings::Symbol;
use crate::value::{ClassId, ValueId};

/// A template argument with its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArgValue {
    /// Named arguments only.
    pub(crate) name: Symbol,
    pub(crate) value: ValueId,
    pub(crate) span: Span,
}

/// A few template arguments.
pub(crate) type Args = SmallVec<[ArgValue; 6]>;

/// Template arguments by the names of their variables, with their places.
pub(crate) type Bound = SmallVec<[(Symbol, ValueId, Span); 8]>;

/// What has template parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Owner {
    Class(ClassId),
    Multiclass(usize),
    /// A multiclass that another one builds on: its arguments are taken as they are written, whatever the types of its parameters.
    ParentMulticlass(usize),
}

/// A change of a field by `let`.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) name: Symbol,
    pub(crate) name_span: Span,
    /// In the order written, the most significant first.
    pub(crate) bits: Option<Vec<u32>>,
    pub(crate) value: ValueId,
    pub(crate) span: Span,
    pub(crate) place: Place,
    /// It is the declaration of the field.
    pub(crate) declares: bool,
    pub(crate) mode: LetMode,
}
