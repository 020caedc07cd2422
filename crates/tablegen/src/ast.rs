//! The syntax tree, with a span for every part.

use crate::source::Span;
use crate::strings::Symbol;
use crate::token::Bang;

/// A name in the source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ident {
    pub(crate) name: Symbol,
    pub(crate) span: Span,
}

/// A type in the source.
#[derive(Clone, Debug)]
pub(crate) enum TypeExpr {
    Bit,
    Int,
    Str,
    Dag,
    Bits(i64, Span),
    List(Box<TypeExpr>),
    Named(Ident),
}

/// A value with its suffixes (`{7-0}`, `[1]`, `.field`).
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub(crate) kind: ExprKind,
    pub(crate) suffixes: Vec<Suffix>,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum ExprKind {
    Unset,
    Int(i64),
    Binary {
        value: u64,
        width: u16,
    },
    Str(Symbol),
    Code(Symbol),
    Ident(Symbol),
    Braces(Vec<Expr>),
    List {
        items: Vec<Expr>,
        ty: Option<Box<TypeExpr>>,
    },
    Dag(Box<DagExpr>),
    ClassCall {
        class: Ident,
        args: Vec<Arg>,
    },
    Bang {
        op: Bang,
        op_span: Span,
        ty: Option<Box<TypeExpr>>,
        args: Vec<Expr>,
    },
    /// `!cond(test: value, ...)`.
    Cond(Vec<(Expr, Expr)>),
    /// `!switch(key, case: value, ..., default)`.
    Switch {
        key: Box<Expr>,
        cases: Vec<(Expr, Expr)>,
        default: Box<Expr>,
    },
    /// `a # b # ...`; a trailing `#` leaves an empty string as the last part.
    Paste(Vec<Expr>),
    /// An erroneous expression, which has been reported.
    Error,
}

#[derive(Clone, Debug)]
pub(crate) struct DagExpr {
    pub(crate) operator: DagArg,
    pub(crate) args: Vec<DagArg>,
}

#[derive(Clone, Debug)]
pub(crate) struct DagArg {
    /// `None` for an argument that is only a `$name`.
    pub(crate) value: Option<Expr>,
    pub(crate) name: Option<Symbol>,
}

/// A template argument, positional or named.
#[derive(Clone, Debug)]
pub(crate) struct Arg {
    pub(crate) name: Option<Ident>,
    pub(crate) value: Expr,
}

#[derive(Clone, Debug)]
pub(crate) enum Suffix {
    Bits(Vec<Range>, Span),
    /// `[i]` or `[a, b...c]`. The flag marks a slice, even of one element (trailing comma).
    Items(Vec<Range>, bool, Span),
    Field(Ident),
}

/// `start` or `start...end`; the end is inclusive.
#[derive(Clone, Debug)]
pub(crate) struct Range {
    pub(crate) start: Expr,
    pub(crate) end: Option<Expr>,
}

/// A parent class or multiclass with its arguments.
#[derive(Clone, Debug)]
pub(crate) struct ClassRef {
    pub(crate) name: Ident,
    pub(crate) args: Vec<Arg>,
    pub(crate) span: Span,
}

/// A template parameter.
#[derive(Clone, Debug)]
pub(crate) struct Param {
    pub(crate) ty: TypeExpr,
    pub(crate) name: Ident,
    pub(crate) default: Option<Expr>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LetMode {
    Replace,
    Append,
    Prepend,
}

/// `let name{bits} = value`.
#[derive(Clone, Debug)]
pub(crate) struct LetItem {
    pub(crate) name: Ident,
    pub(crate) bits: Option<Vec<Range>>,
    pub(crate) value: Expr,
    pub(crate) mode: LetMode,
}

#[derive(Clone, Debug)]
pub(crate) enum BodyItem {
    Field {
        nonconcrete: bool,
        ty: TypeExpr,
        name: Ident,
        value: Option<Expr>,
    },
    Let(LetItem),
    Defvar {
        name: Ident,
        value: Expr,
    },
    Assert(AssertStmt),
    Dump(Expr),
}

#[derive(Clone, Debug)]
pub(crate) struct AssertStmt {
    pub(crate) condition: Expr,
    pub(crate) message: Expr,
}

/// The list that a `foreach` iterates over.
#[derive(Clone, Debug)]
pub(crate) enum LoopSource {
    Ranges(Vec<Range>),
    List(Expr),
}

#[derive(Clone, Debug)]
pub(crate) enum Stmt {
    Class {
        name: Ident,
        params: Vec<Param>,
        parents: Vec<ClassRef>,
        /// `None` for `class C;`.
        body: Option<Vec<BodyItem>>,
    },
    Def {
        /// `None` for an anonymous record.
        name: Option<Expr>,
        keyword: Span,
        parents: Vec<ClassRef>,
        body: Vec<BodyItem>,
    },
    Defm {
        name: Option<Expr>,
        parents: Vec<ClassRef>,
    },
    Multiclass {
        name: Ident,
        params: Vec<Param>,
        parents: Vec<ClassRef>,
        body: Vec<Stmt>,
    },
    Let {
        items: Vec<LetItem>,
        body: Vec<Stmt>,
    },
    Foreach {
        var: Ident,
        source: LoopSource,
        body: Vec<Stmt>,
    },
    If {
        condition: Expr,
        then: Vec<Stmt>,
        otherwise: Vec<Stmt>,
    },
    Defvar {
        name: Ident,
        value: Expr,
    },
    Defset {
        ty: TypeExpr,
        name: Ident,
        body: Vec<Stmt>,
    },
    Deftype {
        name: Ident,
        ty: TypeExpr,
    },
    Assert(AssertStmt),
    Dump(Expr),
}
