//! A position in the tokens of a source.

use super::fault::{Fault, Span};
use super::lexer::{Kind, Token};

/// Reads tokens in order, never past the last [`Kind::End`].
pub(super) struct Cursor<'t, 's> {
    tokens: &'t [Token<'s>],
    at: usize,
}

impl<'t, 's> Cursor<'t, 's> {
    /// Creates a cursor at the first token.
    pub(super) fn new(tokens: &'t [Token<'s>]) -> Self {
        Self { tokens, at: 0 }
    }

    fn token(&self, ahead: usize) -> Option<&'t Token<'s>> {
        self.tokens.get(self.at + ahead)
    }

    /// Returns the current token.
    pub(super) fn kind(&self) -> &'t Kind<'s> {
        self.kind_ahead(0)
    }

    /// Returns the token `ahead` tokens after the current one.
    pub(super) fn kind_ahead(&self, ahead: usize) -> &'t Kind<'s> {
        self.token(ahead).map_or(&Kind::End, |t| &t.kind)
    }

    /// Returns the span of the current token; it is empty at the end of a line.
    pub(super) fn span(&self) -> Span {
        match self.token(0) {
            Some(token) if token.kind == Kind::End => token.span.start..token.span.start,
            Some(token) => token.span.clone(),
            None => self.last_end()..self.last_end(),
        }
    }

    /// Returns the end of the previous token.
    pub(super) fn last_end(&self) -> usize {
        let last = self.at.checked_sub(1).and_then(|i| self.tokens.get(i));
        last.map_or(0, |t| t.span.end)
    }

    /// Returns whether the current token ends the statement.
    pub(super) fn at_end(&self) -> bool {
        *self.kind() == Kind::End
    }

    /// Returns whether all tokens have been read.
    pub(super) fn is_done(&self) -> bool {
        self.at >= self.tokens.len()
    }

    pub(super) fn advance(&mut self) {
        self.at += 1;
    }

    /// Consumes the mark if it is the current token; returns whether it was.
    pub(super) fn take(&mut self, mark: &str) -> bool {
        let here = matches!(self.kind(), Kind::Mark(m) if *m == mark);
        if here {
            self.advance();
        }
        here
    }

    /// Consumes the mark, or fails if it is not the current token.
    pub(super) fn expect(&mut self, mark: &str) -> Result<(), Fault> {
        if self.take(mark) {
            Ok(())
        } else {
            Err(self.unexpected(&format!("`{mark}`")))
        }
    }

    /// Moves to the end of the statement.
    pub(super) fn skip_statement(&mut self) {
        while !self.at_end() {
            self.advance();
        }
    }

    /// Returns whether a fault in the rest of the statement has been reported already.
    pub(super) fn bad_ahead(&self) -> bool {
        let rest = self.tokens.get(self.at..).unwrap_or_default();
        rest.iter()
            .take_while(|t| t.kind != Kind::End)
            .any(|t| t.kind == Kind::Bad)
    }

    /// Returns the fault for an unexpected token.
    pub(super) fn unexpected(&self, expected: &str) -> Fault {
        let found = match self.kind() {
            Kind::Word(word) => format!("`{word}`"),
            Kind::Number(_) => "a number".to_owned(),
            Kind::Local { .. } => "a numeric label".to_owned(),
            Kind::String(_) => "a string".to_owned(),
            Kind::Mark(mark) => format!("`{mark}`"),
            Kind::End => "the end of the statement".to_owned(),
            Kind::Bad => "something unreadable".to_owned(),
        };
        let message = format!("expected {expected}, found {found}");
        Fault::new(self.span(), message, format!("expected {expected}"))
    }
}
