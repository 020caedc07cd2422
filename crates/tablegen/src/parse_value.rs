//! The parser of values: literals, lists, dags, operators, class values, suffixes and paste.

use crate::ast::{Arg, DagArg, DagExpr, Expr, ExprKind, Ident, Range, Suffix};
use crate::diagnostic::Diagnostic;
use crate::parser::{Parse, Parser};
use crate::source::Span;
use crate::strings::Symbol;
use crate::token::{Bang, Kw, Tok};

/// The context of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Value,
    /// The name of a `def` or `defm`: `{` starts the body.
    Name,
}

fn expr(kind: ExprKind, span: Span) -> Expr {
    Expr {
        kind,
        suffixes: Vec::new(),
        span,
    }
}

impl Parser<'_> {
    /// Parses a value.
    pub(crate) fn value(&mut self) -> Parse<Expr> {
        self.nested(|parser| parser.pasted(Mode::Value))
    }

    /// Parses the name of a `def` or `defm`, if it has one.
    pub(crate) fn object_name(&mut self) -> Parse<Option<Expr>> {
        match self.peek() {
            Tok::Colon | Tok::Semi | Tok::LBrace => Ok(None),
            _ => self.nested(|parser| parser.pasted(Mode::Name)).map(Some),
        }
    }

    fn pasted(&mut self, mode: Mode) -> Parse<Expr> {
        if self.peek() == Tok::Hash {
            let span = self.advance().span;
            self.warn(Diagnostic::warning(
                "a value cannot start with `#`",
                span,
                "ignored, as old releases did",
            ));
        }
        let first = self.suffixed(mode)?;
        if self.peek() != Tok::Hash {
            return Ok(first);
        }
        let start = first.span;
        let mut parts = vec![first];
        while self.eat(Tok::Hash) {
            match self.peek() {
                Tok::Colon | Tok::Semi | Tok::LBrace => {
                    let span = self.before();
                    parts.push(expr(ExprKind::Str(Symbol::EMPTY), span));
                    break;
                }
                Tok::Hash => {
                    let span = self.here();
                    self.warn(Diagnostic::warning(
                        "`#` follows `#`",
                        span,
                        "ignored, as old releases did",
                    ));
                }
                _ => parts.push(self.suffixed(mode)?),
            }
        }
        Ok(expr(ExprKind::Paste(parts), start.to(self.before())))
    }

    fn suffixed(&mut self, mode: Mode) -> Parse<Expr> {
        let mut value = self.simple()?;
        loop {
            let start = self.here();
            match self.peek() {
                Tok::LBrace if mode == Mode::Value => {
                    self.advance();
                    let ranges = self.ranges()?;
                    let end = self.expect(Tok::RBrace, "at the end of a bit range")?;
                    value.suffixes.push(Suffix::Bits(ranges, start.to(end)));
                }
                Tok::LSquare => {
                    self.advance();
                    let (ranges, trailing) = self.slice_ranges()?;
                    let end = self.expect(Tok::RSquare, "at the end of a list slice")?;
                    value.suffixes.push(Suffix::Items(ranges, trailing, start.to(end)));
                }
                Tok::Dot => {
                    self.advance();
                    let field = self.ident("a field name after `.`")?;
                    value.suffixes.push(Suffix::Field(field));
                }
                _ => return Ok(value),
            }
            value.span = value.span.to(self.before());
        }
    }

    /// Parses ranges: `a, b-c, d...e`.
    pub(crate) fn ranges(&mut self) -> Parse<Vec<Range>> {
        let mut ranges = Vec::new();
        loop {
            ranges.push(self.range()?);
            if !self.eat(Tok::Comma) {
                return Ok(ranges);
            }
        }
    }

    fn slice_ranges(&mut self) -> Parse<(Vec<Range>, bool)> {
        let mut ranges = Vec::new();
        loop {
            ranges.push(self.range()?);
            if !self.eat(Tok::Comma) {
                return Ok((ranges, false));
            }
            if self.peek() == Tok::RSquare {
                return Ok((ranges, true));
            }
        }
    }

    fn range(&mut self) -> Parse<Range> {
        let start = self.value()?;
        let end = self.range_end(&start)?;
        Ok(Range { start, end })
    }

    /// Parses the end of a range after its start. In `1-5` the lexer has already made `-5` one
    /// number.
    pub(crate) fn range_end(&mut self, start: &Expr) -> Parse<Option<Expr>> {
        match self.peek() {
            Tok::Ellipsis | Tok::Minus => {
                self.advance();
                self.value().map(Some)
            }
            Tok::Int(value) if value < 0 || self.is_negative_zero() => {
                let span = self.advance().span;
                let span = start.span.to(span);
                Ok(Some(expr(ExprKind::Int(value.wrapping_neg()), span)))
            }
            _ => Ok(None),
        }
    }

    /// Returns whether the token is the `-0` of `3-0`, which the lexer splits into `3` and `-0`.
    fn is_negative_zero(&self) -> bool {
        let span = self.here();
        matches!(self.peek(), Tok::Int(0)) && span.end - span.start > 1
    }

    fn simple(&mut self) -> Parse<Expr> {
        let span = self.here();
        let kind = match self.peek() {
            Tok::Question => ExprKind::Unset,
            Tok::Int(value) => ExprKind::Int(value),
            Tok::Kw(Kw::True) => ExprKind::Int(1),
            Tok::Kw(Kw::False) => ExprKind::Int(0),
            Tok::Binary { value, width } => ExprKind::Binary { value, width },
            Tok::Code(text) => ExprKind::Code(text),
            Tok::Str(_) => return Ok(self.string()),
            Tok::Ident(name) => {
                self.advance();
                if self.peek() == Tok::Less {
                    return self.class_call(Ident { name, span });
                }
                return Ok(expr(ExprKind::Ident(name), span));
            }
            Tok::LBrace => {
                self.advance();
                let items = self.items(Tok::RBrace)?;
                let end = self.expect(Tok::RBrace, "at the end of the bits")?;
                return Ok(expr(ExprKind::Braces(items), span.to(end)));
            }
            Tok::LSquare => {
                self.advance();
                let items = self.items(Tok::RSquare)?;
                let mut end = self.expect(Tok::RSquare, "at the end of the list")?;
                let ty = if self.peek() == Tok::Less {
                    self.advance();
                    let ty = self.type_expr()?;
                    end = self.expect(Tok::Greater, "after the element type of a list")?;
                    Some(Box::new(ty))
                } else {
                    None
                };
                return Ok(expr(ExprKind::List { items, ty }, span.to(end)));
            }
            Tok::LParen => return self.dag(),
            Tok::Bang(Bang::Cond) => return self.cond(),
            Tok::Bang(Bang::Switch) => return self.switch(),
            Tok::Bang(op) => return self.bang(op),
            Tok::UnknownBang => {
                self.advance();
                if self.eat(Tok::Less) {
                    self.type_expr()?;
                    self.expect(Tok::Greater, "after the type of an operator")?;
                }
                self.expect(Tok::LParen, "after an operator")?;
                self.items(Tok::RParen)?;
                let end = self.expect(Tok::RParen, "at the end of an operator")?;
                return Ok(expr(ExprKind::Error, span.to(end)));
            }
            _ => return self.expected("a value"),
        };
        self.advance();
        Ok(expr(kind, span))
    }

    /// Parses one string, or several adjacent ones, which are concatenated.
    fn string(&mut self) -> Expr {
        let first = self.advance();
        let Tok::Str(symbol) = first.tok else {
            return expr(ExprKind::Error, first.span);
        };
        let value = expr(ExprKind::Str(symbol), first.span);
        if !matches!(self.peek(), Tok::Str(_)) {
            return value;
        }
        let mut parts = vec![value];
        while let Tok::Str(symbol) = self.peek() {
            let span = self.advance().span;
            parts.push(expr(ExprKind::Str(symbol), span));
        }
        let span = first.span.to(self.before());
        // Adjacent literals are represented as a paste. This is equivalent, because no identifier
        // is involved.
        expr(ExprKind::Paste(parts), span)
    }

    fn items(&mut self, close: Tok) -> Parse<Vec<Expr>> {
        let mut items = Vec::new();
        while self.peek() != close {
            items.push(self.value()?);
            if !self.eat(Tok::Comma) {
                break;
            }
        }
        Ok(items)
    }

    fn class_call(&mut self, class: Ident) -> Parse<Expr> {
        self.advance();
        let args = self.template_args()?;
        let span = class.span.to(self.before());
        Ok(expr(ExprKind::ClassCall { class, args }, span))
    }

    /// Parses template arguments after `<`, up to and including `>`.
    pub(crate) fn template_args(&mut self) -> Parse<Vec<Arg>> {
        let mut args: Vec<Arg> = Vec::new();
        while self.peek() != Tok::Greater {
            let value = self.value()?;
            if self.eat(Tok::Equal) {
                let ExprKind::Ident(name) = value.kind else {
                    return self.fail(Diagnostic::error(
                        "the name of a template argument must be an identifier",
                        value.span,
                        "not an identifier",
                    ));
                };
                let name = Ident { name, span: value.span };
                let value = self.value()?;
                args.push(Arg {
                    name: Some(name),
                    value,
                });
            } else {
                if args.last().is_some_and(|last| last.name.is_some()) {
                    let span = value.span;
                    return self.fail(Diagnostic::error(
                        "a positional argument follows a named one",
                        span,
                        "needs a name",
                    ));
                }
                args.push(Arg { name: None, value });
            }
            if !self.eat(Tok::Comma) {
                break;
            }
        }
        self.expect(Tok::Greater, "at the end of the template arguments")?;
        Ok(args)
    }

    fn dag(&mut self) -> Parse<Expr> {
        let open = self.advance().span;
        // llvm-tblgen accepts only these operators, because the types of other operators are
        // unknown until the record is built.
        if !matches!(
            self.peek(),
            Tok::Ident(_) | Tok::Question | Tok::LSquare | Tok::Bang(Bang::Cast | Bang::GetDagOp)
        ) {
            return self.expected("a name, `?`, a list, `!cast` or `!getdagop` as the operator of a dag");
        }
        let value = self.value()?;
        let name = self.dag_name()?;
        let operator = DagArg {
            value: Some(value),
            name,
        };
        let mut args = Vec::new();
        if self.peek() != Tok::RParen {
            loop {
                if let Tok::DagVar(name) = self.peek() {
                    self.advance();
                    args.push(DagArg {
                        value: None,
                        name: Some(name),
                    });
                } else {
                    let value = self.value()?;
                    let name = self.dag_name()?;
                    args.push(DagArg {
                        value: Some(value),
                        name,
                    });
                }
                if !self.eat(Tok::Comma) {
                    break;
                }
            }
        }
        let end = self.expect(Tok::RParen, "at the end of the dag")?;
        let dag = Box::new(DagExpr { operator, args });
        Ok(expr(ExprKind::Dag(dag), open.to(end)))
    }

    fn dag_name(&mut self) -> Parse<Option<Symbol>> {
        if !self.eat(Tok::Colon) {
            return Ok(None);
        }
        match self.peek() {
            Tok::DagVar(name) => {
                self.advance();
                Ok(Some(name))
            }
            _ => self.expected("a `$name` after `:`"),
        }
    }

    fn cond(&mut self) -> Parse<Expr> {
        let start = self.advance().span;
        self.expect(Tok::LParen, "after `!cond`")?;
        let mut cases = Vec::new();
        while self.peek() != Tok::RParen {
            let test = self.value()?;
            self.expect(Tok::Colon, "after a condition of `!cond`")?;
            let value = self.value()?;
            cases.push((test, value));
            if !self.eat(Tok::Comma) {
                break;
            }
        }
        let end = self.expect(Tok::RParen, "at the end of `!cond`")?;
        if cases.is_empty() {
            return self.fail(Diagnostic::error(
                "`!cond` without a condition",
                start.to(end),
                "at least one `condition: value` is needed",
            ));
        }
        Ok(expr(ExprKind::Cond(cases), start.to(end)))
    }

    fn switch(&mut self) -> Parse<Expr> {
        let start = self.advance().span;
        self.expect(Tok::LParen, "after `!switch`")?;
        let key = self.value()?;
        self.expect(Tok::Comma, "after the key of `!switch`")?;
        let mut cases = Vec::new();
        loop {
            let value = self.value()?;
            if self.eat(Tok::Colon) {
                cases.push((value, self.value()?));
                self.expect(Tok::Comma, "before the next case or the default of `!switch`")?;
                continue;
            }
            self.eat(Tok::Comma);
            let end = self.expect(Tok::RParen, "after the default of `!switch`")?;
            let kind = ExprKind::Switch {
                key: Box::new(key),
                cases,
                default: Box::new(value),
            };
            return Ok(expr(kind, start.to(end)));
        }
    }

    fn bang(&mut self, op: Bang) -> Parse<Expr> {
        let op_span = self.advance().span;
        let ty = if self.eat(Tok::Less) {
            if self.peek() == Tok::Kw(Kw::Code) {
                return self.expected("a type (`string` is the one of code fragments)");
            }
            let ty = self.type_expr()?;
            self.expect(Tok::Greater, "after the type of an operator")?;
            Some(Box::new(ty))
        } else {
            None
        };
        self.expect(Tok::LParen, "after an operator")?;
        let mut args = Vec::new();
        if self.peek() != Tok::RParen {
            loop {
                args.push(self.value()?);
                if !self.eat(Tok::Comma) {
                    break;
                }
            }
        }
        let end = self.expect(Tok::RParen, "at the end of the operator's arguments")?;
        let span = op_span.to(end);
        let (least, most) = op.arity();
        if args.len() < least || args.len() > most {
            let count = match (least, most) {
                (least, usize::MAX) => format!("at least {least}"),
                (least, most) if least == most => format!("{least}"),
                (least, most) => format!("{least} to {most}"),
            };
            return self.fail(Diagnostic::error(
                format!("`!{}` takes {count} arguments, not {}", op.text(), args.len()),
                span,
                format!("{} given", args.len()),
            ));
        }
        let kind = ExprKind::Bang { op, op_span, ty, args };
        Ok(expr(kind, span))
    }
}
