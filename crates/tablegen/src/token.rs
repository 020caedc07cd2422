//! Tokens, keywords and the names of the operators.

use crate::source::Span;
use crate::strings::Symbol;

macro_rules! keywords {
    ($($variant:ident = $text:literal),* $(,)?) => {
        /// The reserved words of the language.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
        pub(crate) enum Kw { $($variant),* }
        impl Kw {
            pub(crate) fn from_text(text: &str) -> Option<Kw> {
                // Reject most names, which are not keywords, by their first letter or their length.
                if !matches!(text.len(), 2..=10) || !text.as_bytes()[0].is_ascii_lowercase() {
                    return None;
                }
                match text { $($text => Some(Kw::$variant),)* _ => None }
            }
            pub(crate) fn text(self) -> &'static str {
                match self { $(Kw::$variant => $text),* }
            }
        }
    };
}

keywords! {
    Assert = "assert", Bit = "bit", Bits = "bits", Class = "class", Code = "code", Dag = "dag", Def = "def",
    Defm = "defm", Defset = "defset", Deftype = "deftype", Defvar = "defvar", Dump = "dump", Else = "else",
    False = "false", Field = "field", Foreach = "foreach", If = "if", In = "in", Include = "include", Int = "int",
    Let = "let", List = "list", Multiclass = "multiclass", String = "string", Then = "then", True = "true",
}

macro_rules! operators {
    ($($variant:ident = $text:literal $min:literal $max:expr;)*) => {
        /// The operators that start with `!`.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
        pub(crate) enum Bang { $($variant),* }
        impl Bang {
            /// Returns the operator with this name, without the `!`.
            pub(crate) fn from_text(text: &str) -> Option<Bang> {
                match text { $($text => Some(Bang::$variant),)* _ => None }
            }
            pub(crate) fn text(self) -> &'static str {
                match self { $(Bang::$variant => $text),* }
            }
            /// Returns the minimum and maximum number of arguments.
            pub(crate) fn arity(self) -> (usize, usize) {
                match self { $(Bang::$variant => ($min, $max)),* }
            }
            /// All names, for "did you mean".
            pub(crate) const NAMES: &'static [&'static str] = &[$($text),*];
        }
    };
}

const MANY: usize = usize::MAX;

operators! {
    Add = "add" 2 MANY; And = "and" 2 MANY; Cast = "cast" 1 1; Con = "con" 2 MANY; Cond = "cond" 1 MANY;
    Dag = "dag" 3 3; Div = "div" 2 2; Empty = "empty" 1 1; Eq = "eq" 2 2; Exists = "exists" 1 1;
    Filter = "filter" 3 3; Find = "find" 2 3; Foldl = "foldl" 5 5; Foreach = "foreach" 3 3; Ge = "ge" 2 2;
    GetDagArg = "getdagarg" 2 2; GetDagName = "getdagname" 2 2; GetDagOp = "getdagop" 1 1;
    GetDagOpName = "getdagopname" 1 1; Gt = "gt" 2 2; Head = "head" 1 1; If = "if" 3 3;
    Initialized = "initialized" 1 1; Instances = "instances" 0 1; Interleave = "interleave" 2 2; IsA = "isa" 1 1;
    Le = "le" 2 2; ListConcat = "listconcat" 2 MANY; ListFlatten = "listflatten" 1 1;
    ListRemove = "listremove" 2 2; ListSplat = "listsplat" 2 2; LogTwo = "logtwo" 1 1; Lt = "lt" 2 2;
    Match = "match" 2 2; Mul = "mul" 2 MANY; Ne = "ne" 2 2; Not = "not" 1 1; Or = "or" 2 MANY;
    Range = "range" 1 3; Repr = "repr" 1 1; SetDagArg = "setdagarg" 3 3; SetDagName = "setdagname" 3 3;
    SetDagOp = "setdagop" 2 2; SetDagOpName = "setdagopname" 2 2; Shl = "shl" 2 2; Size = "size" 1 1;
    Sort = "sort" 3 3; Sra = "sra" 2 2; Srl = "srl" 2 2; StrConcat = "strconcat" 2 MANY; Sub = "sub" 2 2;
    Subst = "subst" 3 3; Substr = "substr" 2 3; Switch = "switch" 2 MANY; Tail = "tail" 1 1;
    ToLower = "tolower" 1 1; ToUpper = "toupper" 1 1; Xor = "xor" 2 MANY;
}

/// The kind of a token, with its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tok {
    Ident(Symbol),
    Str(Symbol),
    Code(Symbol),
    /// `$name`.
    DagVar(Symbol),
    Int(i64),
    /// A `0b` literal, with its width.
    Binary {
        value: u64,
        width: u16,
    },
    Bang(Bang),
    /// `!name` with an unknown operator, which has been reported.
    UnknownBang,
    Kw(Kw),
    LBrace,
    RBrace,
    LSquare,
    RSquare,
    LParen,
    RParen,
    Less,
    Greater,
    Comma,
    Semi,
    Colon,
    Dot,
    Ellipsis,
    Equal,
    Question,
    Hash,
    Minus,
    Eof,
}

impl Tok {
    /// Describes the token for messages.
    pub(crate) fn describe(self) -> String {
        let text = match self {
            Tok::Ident(_) => return "an identifier".into(),
            Tok::Str(_) => return "a string".into(),
            Tok::Code(_) => return "a code fragment".into(),
            Tok::DagVar(_) => return "a `$name`".into(),
            Tok::Int(value) => return format!("`{value}`"),
            Tok::Binary { .. } => return "a binary literal".into(),
            Tok::Bang(op) => return format!("`!{}`", op.text()),
            Tok::UnknownBang => return "an unknown operator".into(),
            Tok::Kw(word) => return format!("`{}`", word.text()),
            Tok::Eof => return "the end of the file".into(),
            Tok::LBrace => "{",
            Tok::RBrace => "}",
            Tok::LSquare => "[",
            Tok::RSquare => "]",
            Tok::LParen => "(",
            Tok::RParen => ")",
            Tok::Less => "<",
            Tok::Greater => ">",
            Tok::Comma => ",",
            Tok::Semi => ";",
            Tok::Colon => ":",
            Tok::Dot => ".",
            Tok::Ellipsis => "...",
            Tok::Equal => "=",
            Tok::Question => "?",
            Tok::Hash => "#",
            Tok::Minus => "-",
        };
        format!("`{text}`")
    }
}

/// A token and its span.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Token {
    pub(crate) tok: Tok,
    pub(crate) span: Span,
}
