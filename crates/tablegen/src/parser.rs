//! The parser: tokens to statements. After a fault, it skips the faulty statement or body item and
//! continues.
//!
//! Values are parsed in `parse_value`.

use crate::ast::{
    AssertStmt, BodyItem, ClassRef, Expr, Ident, LetItem, LetMode, LoopSource, Param, Range, Stmt, TypeExpr,
};
use crate::diagnostic::Diagnostic;
use crate::lexer::Lexer;
use crate::source::Span;
use crate::token::{Kw, Tok, Token};

/// The maximum nesting depth of brackets and statements. It bounds the stack use of the parser and
/// of all recursive functions on the tree.
const MAX_NESTING: u32 = 200;
/// The maximum number of faults in a file.
const MAX_ERRORS: usize = 200;

/// Consumed tokens are dropped at the next statement if there are more than this number.
const KEPT_TOKENS: usize = 1000;

/// A fault that has been added to the diagnostics.
#[derive(Debug)]
pub(crate) struct Reported;

pub(crate) type Parse<T> = Result<T, Reported>;

pub(crate) struct Parser<'a> {
    pub(crate) lexer: Lexer<'a>,
    /// The index of the current token in the lexer's list. It is always valid.
    at: usize,
    depth: u32,
    /// The number of faults so far, and the span of the last one.
    errors: usize,
    last_error: Option<Span>,
}

impl<'a> Parser<'a> {
    pub(crate) fn new(mut lexer: Lexer<'a>) -> Parser<'a> {
        lexer.more();
        Parser {
            lexer,
            at: 0,
            depth: 0,
            errors: 0,
            last_error: None,
        }
    }

    /// Parses the next statement of the file; returns `None` at its end.
    pub(crate) fn next_statement(&mut self) -> Option<Stmt> {
        // Drop the tokens of earlier statements. Messages may need the last one.
        if self.at > KEPT_TOKENS {
            self.lexer.drop_tokens(self.at - 1);
            self.at = 1;
        }
        let mut statements = Vec::new();
        while statements.is_empty() && self.peek() != Tok::Eof && self.errors < MAX_ERRORS {
            self.statement_into(&mut statements);
        }
        statements.pop()
    }

    pub(crate) fn peek(&self) -> Tok {
        self.lexer.tokens[self.at].tok
    }
    /// Returns the token after the current one.
    fn peek_second(&mut self) -> Tok {
        if self.at + 1 == self.lexer.tokens.len() {
            self.lexer.more();
        }
        self.lexer.tokens[self.at + 1].tok
    }
    /// Returns the span of the current token.
    pub(crate) fn here(&self) -> Span {
        self.lexer.tokens[self.at].span
    }
    /// Returns the span of the last consumed token.
    pub(crate) fn before(&self) -> Span {
        self.lexer.tokens[self.at.saturating_sub(1)].span
    }
    #[inline]
    pub(crate) fn advance(&mut self) -> Token {
        let token = self.lexer.tokens[self.at];
        if token.tok != Tok::Eof {
            self.at += 1;
            if self.at == self.lexer.tokens.len() {
                self.lexer.more();
            }
        }
        token
    }
    pub(crate) fn warn(&mut self, diagnostic: Diagnostic) {
        self.lexer.diagnostics.push(diagnostic);
    }
    #[inline(always)]
    pub(crate) fn eat(&mut self, tok: Tok) -> bool {
        let found = self.peek() == tok;
        if found {
            self.advance();
        }
        found
    }

    pub(crate) fn fail<T>(&mut self, diagnostic: Diagnostic) -> Parse<T> {
        // A second fault at the same span is only a consequence of the first one.
        let span = diagnostic.span();
        if span.is_none() || span != self.last_error {
            self.last_error = span;
            self.errors += 1;
            self.lexer.diagnostics.push(diagnostic);
        }
        Err(Reported)
    }

    /// Reports that the current token is not `what`.
    pub(crate) fn expected<T>(&mut self, what: &str) -> Parse<T> {
        let found = self.peek().describe();
        // A token missing at the end of a line is reported there, not at the start of the next
        // line.
        let (span, label) = (self.here(), format!("found {found}"));
        self.fail(Diagnostic::error(
            format!("expected {what}, found {found}"),
            span,
            label,
        ))
    }

    pub(crate) fn expect(&mut self, tok: Tok, context: &str) -> Parse<Span> {
        if self.peek() == tok {
            return Ok(self.advance().span);
        }
        let found = self.peek().describe();
        let what = tok.describe();
        let (here, before) = (self.here(), self.before());
        let diagnostic = Diagnostic::error(
            format!("expected {what} {context}, found {found}"),
            here,
            format!("found {found}"),
        );
        if tok != Tok::Semi || self.at == 0 {
            return self.fail(diagnostic);
        }
        let reported = self.fail(diagnostic.secondary(before.after(), "`;` missing here?"));
        // Parsing continues as if the `;` existed, so that its absence causes no follow-up errors.
        if self.starts_item() {
            return Ok(before.after());
        }
        reported
    }

    /// Returns whether a statement, a body item or the end of a body seems to start here.
    fn starts_item(&mut self) -> bool {
        match self.peek() {
            Tok::RBrace => true,
            Tok::Kw(word) => !matches!(word, Kw::Else | Kw::In | Kw::Then | Kw::True | Kw::False),
            // A field whose type is a class.
            Tok::Ident(_) => matches!(self.peek_second(), Tok::Ident(_)),
            _ => false,
        }
    }

    /// Runs `parse` one nesting level deeper, or reports that the input nests too deep.
    pub(crate) fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.depth >= MAX_NESTING {
            let span = self.here();
            return self.fail(Diagnostic::error(
                "nested too deeply",
                span,
                format!("more than {MAX_NESTING} levels up to here"),
            ));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    pub(crate) fn ident(&mut self, what: &str) -> Parse<Ident> {
        match self.peek() {
            Tok::Ident(name) => {
                let span = self.advance().span;
                Ok(Ident { name, span })
            }
            Tok::Kw(word) => {
                let span = self.here();
                self.fail(Diagnostic::error(
                    format!("expected {what}, found the reserved word `{}`", word.text()),
                    span,
                    "reserved",
                ))
            }
            _ => self.expected(what),
        }
    }

    /// Parses a statement, or recovers from a fault in it.
    fn statement_into(&mut self, out: &mut Vec<Stmt>) {
        let start = self.at;
        match self.nested(Self::statement) {
            Ok(statement) => out.push(statement),
            Err(Reported) => self.recover(start, true),
        }
    }

    /// Skips to the possible start of a statement or body item: after a `;`, before a closing brace
    /// of the enclosing body, or before a keyword that starts a statement.
    fn recover(&mut self, start: usize, statement: bool) {
        // Braces that the failed item opened are closed within it.
        let mut depth = 0i64;
        for token in &self.lexer.tokens[start..self.at] {
            match token.tok {
                Tok::LBrace => depth += 1,
                Tok::RBrace => depth -= 1,
                _ => {}
            }
        }
        loop {
            match self.peek() {
                Tok::Eof => break,
                Tok::LBrace => depth += 1,
                Tok::RBrace if depth <= 0 => {
                    if self.at == start && statement && self.depth == 0 {
                        // An unmatched brace at the top level.
                        self.advance();
                    }
                    break;
                }
                Tok::RBrace => {
                    depth -= 1;
                    if depth == 0 && statement {
                        self.advance();
                        break;
                    }
                }
                Tok::Semi if depth <= 0 => {
                    self.advance();
                    break;
                }
                Tok::Kw(Kw::Class | Kw::Def | Kw::Defm | Kw::Multiclass | Kw::Defset)
                    if self.at > start && statement =>
                {
                    break;
                }
                _ => {}
            }
            self.advance();
        }
        if self.at == start && statement && self.peek() != Tok::RBrace {
            self.advance();
        }
    }

    fn statement(&mut self) -> Parse<Stmt> {
        let Tok::Kw(word) = self.peek() else {
            if self.eat(Tok::Semi) {
                let span = self.before();
                return self.fail(Diagnostic::error("stray `;`", span, "no statement ends here"));
            }
            return self.expected("a statement (`class`, `def`, `defm`, `let`, `multiclass`, `foreach`, ...)");
        };
        let keyword = self.here();
        match word {
            Kw::Class => {
                self.advance();
                self.class()
            }
            Kw::Def => {
                self.advance();
                let name = self.object_name()?;
                let parents = self.parents()?;
                let body = self.body()?;
                Ok(Stmt::Def {
                    name,
                    keyword,
                    parents,
                    body,
                })
            }
            Kw::Defm => {
                self.advance();
                let name = self.object_name()?;
                self.expect(Tok::Colon, "before the multiclass of a `defm`")?;
                let parents = self.class_refs()?;
                self.expect(Tok::Semi, "at the end of a `defm`")?;
                Ok(Stmt::Defm { name, parents })
            }
            Kw::Multiclass => {
                self.advance();
                self.multiclass()
            }
            Kw::Let => {
                self.advance();
                let mut items = vec![self.let_item(true)?];
                while self.eat(Tok::Comma) {
                    items.push(self.let_item(true)?);
                }
                self.expect(Tok::Kw(Kw::In), "after the values of a `let` statement")?;
                let body = self.block()?;
                Ok(Stmt::Let { items, body })
            }
            Kw::Foreach => {
                self.advance();
                let var = self.ident("the name of the loop variable")?;
                self.expect(Tok::Equal, "after the loop variable")?;
                let source = self.loop_source()?;
                self.expect(Tok::Kw(Kw::In), "before the body of a `foreach`")?;
                let body = self.block()?;
                Ok(Stmt::Foreach { var, source, body })
            }
            Kw::If => {
                self.advance();
                self.if_statement()
            }
            Kw::Defvar => {
                self.advance();
                let (name, value) = self.defvar()?;
                Ok(Stmt::Defvar { name, value })
            }
            Kw::Defset => {
                self.advance();
                let ty = self.type_expr()?;
                let name = self.ident("the name of the set")?;
                self.expect(Tok::Equal, "after the name of a `defset`")?;
                if self.peek() != Tok::LBrace {
                    return self.expected("`{` after `defset ... =`");
                }
                let body = self.block()?;
                Ok(Stmt::Defset { ty, name, body })
            }
            Kw::Deftype => {
                self.advance();
                let name = self.ident("the name of the type")?;
                self.expect(Tok::Equal, "after the name of a `deftype`")?;
                let ty = self.type_expr()?;
                self.expect(Tok::Semi, "at the end of a `deftype`")?;
                Ok(Stmt::Deftype { name, ty })
            }
            Kw::Assert => {
                self.advance();
                Ok(Stmt::Assert(self.assert()?))
            }
            Kw::Dump => {
                self.advance();
                let value = self.value()?;
                self.expect(Tok::Semi, "at the end of a `dump`")?;
                Ok(Stmt::Dump(value))
            }
            _ => self.expected("a statement (`class`, `def`, `defm`, `let`, `multiclass`, `foreach`, ...)"),
        }
    }

    /// Parses `{ statements }` or one statement.
    fn block(&mut self) -> Parse<Vec<Stmt>> {
        let mut statements = Vec::new();
        if self.peek() == Tok::LBrace {
            let open = self.advance().span;
            while !matches!(self.peek(), Tok::RBrace | Tok::Eof) {
                if self.errors >= MAX_ERRORS {
                    return Err(Reported);
                }
                self.statement_into(&mut statements);
            }
            self.close_brace(open)?;
        } else {
            statements.push(self.nested(Self::statement)?);
        }
        Ok(statements)
    }

    fn close_brace(&mut self, open: Span) -> Parse<()> {
        if self.eat(Tok::RBrace) {
            return Ok(());
        }
        let (here, found) = (self.here(), self.peek().describe());
        self.fail(
            Diagnostic::error(format!("expected `}}`, found {found}"), here, format!("found {found}"))
                .secondary(open, "opened here"),
        )
    }

    fn class(&mut self) -> Parse<Stmt> {
        let name = self.ident("a class name")?;
        let params = self.params()?;
        let parents = self.parents()?;
        let body = if self.eat(Tok::Semi) {
            (!params.is_empty() || !parents.is_empty()).then(Vec::new)
        } else {
            Some(self.body()?)
        };
        Ok(Stmt::Class {
            name,
            params,
            parents,
            body,
        })
    }

    fn multiclass(&mut self) -> Parse<Stmt> {
        let name = self.ident("a multiclass name")?;
        let params = self.params()?;
        let parents = self.parents()?;
        let body = if !parents.is_empty() && self.eat(Tok::Semi) {
            Vec::new()
        } else if self.peek() == Tok::LBrace {
            self.block()?
        } else {
            return self.expected("the body of the multiclass");
        };
        Ok(Stmt::Multiclass {
            name,
            params,
            parents,
            body,
        })
    }

    fn params(&mut self) -> Parse<Vec<Param>> {
        let mut params = Vec::new();
        if !self.eat(Tok::Less) {
            return Ok(params);
        }
        loop {
            let ty = self.type_expr()?;
            let name = self.ident("the name of a template argument")?;
            let default = if self.eat(Tok::Equal) {
                Some(self.value()?)
            } else {
                None
            };
            params.push(Param { ty, name, default });
            if !self.eat(Tok::Comma) {
                break;
            }
        }
        self.expect(Tok::Greater, "at the end of the template arguments")?;
        Ok(params)
    }

    fn parents(&mut self) -> Parse<Vec<ClassRef>> {
        if self.eat(Tok::Colon) {
            self.class_refs()
        } else {
            Ok(Vec::new())
        }
    }

    fn class_refs(&mut self) -> Parse<Vec<ClassRef>> {
        let mut refs = Vec::new();
        loop {
            let name = self.ident("a class name")?;
            let args = if self.eat(Tok::Less) {
                self.template_args()?
            } else {
                Vec::new()
            };
            let span = name.span.to(self.before());
            refs.push(ClassRef { name, args, span });
            if !self.eat(Tok::Comma) {
                return Ok(refs);
            }
        }
    }

    /// Parses a body in braces, or `;`.
    fn body(&mut self) -> Parse<Vec<BodyItem>> {
        let mut items = Vec::new();
        if self.eat(Tok::Semi) {
            return Ok(items);
        }
        if self.peek() != Tok::LBrace {
            let reported = self.expected("`{`, `;` or `:` here");
            return if self.starts_item() { Ok(items) } else { reported };
        }
        let open = self.advance().span;
        while !matches!(self.peek(), Tok::RBrace | Tok::Eof) {
            if self.errors >= MAX_ERRORS {
                return Err(Reported);
            }
            let start = self.at;
            match self.body_item() {
                Ok(item) => items.push(item),
                Err(Reported) => {
                    self.recover(start, false);
                    if self.at == start {
                        self.advance();
                    }
                }
            }
        }
        self.close_brace(open)?;
        Ok(items)
    }

    fn body_item(&mut self) -> Parse<BodyItem> {
        match self.peek() {
            Tok::Kw(Kw::Let) => {
                self.advance();
                let item = self.let_item(false)?;
                self.expect(Tok::Semi, "after a `let`")?;
                return Ok(BodyItem::Let(item));
            }
            Tok::Kw(Kw::Defvar) => {
                self.advance();
                let (name, value) = self.defvar()?;
                return Ok(BodyItem::Defvar { name, value });
            }
            Tok::Kw(Kw::Assert) => {
                self.advance();
                return Ok(BodyItem::Assert(self.assert()?));
            }
            Tok::Kw(Kw::Dump) => {
                self.advance();
                let value = self.value()?;
                self.expect(Tok::Semi, "at the end of a `dump`")?;
                return Ok(BodyItem::Dump(value));
            }
            _ => {}
        }
        let nonconcrete = self.eat(Tok::Kw(Kw::Field));
        let ty = self.type_expr()?;
        let name = self.ident("a field name")?;
        let value = if self.eat(Tok::Equal) {
            Some(self.value()?)
        } else {
            None
        };
        self.expect(Tok::Semi, "after a field")?;
        Ok(BodyItem::Field {
            nonconcrete,
            ty,
            name,
            value,
        })
    }

    /// Parses `[append|prepend] name[bits] = value`, with bits in `<>` or `{}`.
    fn let_item(&mut self, statement: bool) -> Parse<LetItem> {
        let mut mode = LetMode::Replace;
        if let Tok::Ident(word) = self.peek()
            && let Tok::Ident(_) = self.peek_second()
        {
            mode = match self.lexer.strings.get(word) {
                "append" => LetMode::Append,
                "prepend" => LetMode::Prepend,
                _ => LetMode::Replace,
            };
            if mode != LetMode::Replace {
                self.advance();
            }
        }
        let name = self.ident("a field name")?;
        let bits = if self.eat(Tok::LBrace) {
            let ranges = self.ranges()?;
            self.expect(Tok::RBrace, "at the end of the bit range")?;
            Some(ranges)
        } else if statement && self.eat(Tok::Less) {
            let ranges = self.ranges()?;
            self.expect(Tok::Greater, "at the end of the bit range")?;
            Some(ranges)
        } else {
            None
        };
        self.expect(Tok::Equal, "in a `let`")?;
        let value = self.value()?;
        Ok(LetItem {
            name,
            bits,
            value,
            mode,
        })
    }

    fn defvar(&mut self) -> Parse<(Ident, Expr)> {
        let name = self.ident("the name of the variable")?;
        self.expect(Tok::Equal, "in a `defvar`")?;
        let value = self.value()?;
        self.expect(Tok::Semi, "at the end of a `defvar`")?;
        Ok((name, value))
    }

    fn assert(&mut self) -> Parse<AssertStmt> {
        let condition = self.value()?;
        self.expect(Tok::Comma, "between the condition and the message of an `assert`")?;
        let message = self.value()?;
        self.expect(Tok::Semi, "at the end of an `assert`")?;
        Ok(AssertStmt { condition, message })
    }

    fn loop_source(&mut self) -> Parse<LoopSource> {
        if self.eat(Tok::LBrace) {
            let ranges = self.ranges()?;
            self.expect(Tok::RBrace, "at the end of the ranges")?;
            return Ok(LoopSource::Ranges(ranges));
        }
        let start = self.value()?;
        Ok(match self.range_end(&start)? {
            Some(end) => LoopSource::Ranges(vec![Range { start, end: Some(end) }]),
            None => LoopSource::List(start),
        })
    }

    fn if_statement(&mut self) -> Parse<Stmt> {
        let condition = self.value()?;
        self.expect(Tok::Kw(Kw::Then), "after the condition of an `if`")?;
        let then = self.block()?;
        let otherwise = if self.eat(Tok::Kw(Kw::Else)) {
            self.block()?
        } else {
            Vec::new()
        };
        Ok(Stmt::If {
            condition,
            then,
            otherwise,
        })
    }

    pub(crate) fn type_expr(&mut self) -> Parse<TypeExpr> {
        let Tok::Kw(word) = self.peek() else {
            return match self.peek() {
                Tok::Ident(name) => {
                    let span = self.advance().span;
                    Ok(TypeExpr::Named(Ident { name, span }))
                }
                _ => self.expected("a type"),
            };
        };
        let ty = match word {
            Kw::Bit => TypeExpr::Bit,
            Kw::Int => TypeExpr::Int,
            Kw::String | Kw::Code => TypeExpr::Str,
            Kw::Dag => TypeExpr::Dag,
            Kw::Bits => {
                self.advance();
                self.expect(Tok::Less, "after `bits`")?;
                let Tok::Int(width) = self.peek() else {
                    return self.expected("the number of bits");
                };
                let span = self.advance().span;
                self.expect(Tok::Greater, "after the number of bits")?;
                return Ok(TypeExpr::Bits(width, span));
            }
            Kw::List => {
                self.advance();
                self.expect(Tok::Less, "after `list`")?;
                let element = self.nested(Self::type_expr)?;
                self.expect(Tok::Greater, "after the element type of a list")?;
                return Ok(TypeExpr::List(Box::new(element)));
            }
            _ => return self.expected("a type"),
        };
        self.advance();
        Ok(ty)
    }
}
