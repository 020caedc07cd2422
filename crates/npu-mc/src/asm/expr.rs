//! Expressions: numbers, symbols and operators, with the precedences of the GNU assembler.
//!
//! The parser computes subexpressions without symbols immediately. It keeps the others as trees of
//! bounded depth until all symbols are known.

use super::cursor::Cursor;
use super::fault::{Fault, Span};
use super::lexer::Kind;
use super::symbol::{Definition, SectionId, SymbolId, Symbols};
use crate::reg::{Reg, SReg};

/// The maximum number of operators and parentheses in one expression.
const MOST_OPERATORS: u32 = 100;

/// A binary operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Shl,
    Shr,
    Or,
    Xor,
    And,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    LogicalAnd,
    LogicalOr,
}

impl Binary {
    /// Returns the operator of a mark, and its precedence.
    fn of(mark: &str) -> Option<(Binary, u8)> {
        Some(match mark {
            "||" => (Binary::LogicalOr, 1),
            "&&" => (Binary::LogicalAnd, 2),
            "==" => (Binary::Eq, 3),
            "!=" | "<>" => (Binary::Ne, 3),
            "<" => (Binary::Lt, 3),
            "<=" => (Binary::Le, 3),
            ">" => (Binary::Gt, 3),
            ">=" => (Binary::Ge, 3),
            "+" => (Binary::Add, 4),
            "-" => (Binary::Sub, 4),
            "|" => (Binary::Or, 5),
            "^" => (Binary::Xor, 5),
            "&" => (Binary::And, 5),
            "*" => (Binary::Mul, 6),
            "/" => (Binary::Div, 6),
            "%" => (Binary::Rem, 6),
            "<<" => (Binary::Shl, 6),
            ">>" => (Binary::Shr, 6),
            _ => return None,
        })
    }

    /// Computes the operator on two numbers.
    pub(super) fn compute(self, a: i128, b: i128) -> Result<i128, &'static str> {
        // True is all ones, as in the GNU assembler.
        let truth = |b: bool| -i128::from(b);
        let value = match self {
            Binary::Add => a.checked_add(b),
            Binary::Sub => a.checked_sub(b),
            Binary::Mul => a.checked_mul(b),
            Binary::Div if b == 0 => return Err("a division by zero"),
            Binary::Rem if b == 0 => return Err("a division by zero"),
            Binary::Div => a.checked_div(b),
            Binary::Rem => a.checked_rem(b),
            Binary::Shl | Binary::Shr if !(0..64).contains(&b) => return Err("a shift by less than 0 or more than 63"),
            Binary::Shl => a.checked_mul(1 << b),
            // A negative number is shifted as its 64 bits in memory.
            Binary::Shr => Some(i128::from(a as u64 >> b)),
            Binary::Or => Some(a | b),
            Binary::Xor => Some(a ^ b),
            Binary::And => Some(a & b),
            Binary::Eq => Some(truth(a == b)),
            Binary::Ne => Some(truth(a != b)),
            Binary::Lt => Some(truth(a < b)),
            Binary::Le => Some(truth(a <= b)),
            Binary::Gt => Some(truth(a > b)),
            Binary::Ge => Some(truth(a >= b)),
            Binary::LogicalAnd => Some(i128::from(a != 0 && b != 0)),
            Binary::LogicalOr => Some(i128::from(a != 0 || b != 0)),
        };
        value.filter(|v| fits(*v)).ok_or("a number of more than 64 bits")
    }
}

/// Returns whether a number has at most 64 bits, signed or unsigned.
fn fits(value: i128) -> bool {
    (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&value)
}

/// A unary operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unary {
    Minus,
    Not,
    LogicalNot,
}

impl Unary {
    pub(super) fn compute(self, a: i128) -> Result<i128, &'static str> {
        let value = match self {
            Unary::Minus => -a,
            Unary::Not => !a,
            Unary::LogicalNot => i128::from(a == 0),
        };
        // The complement of an unsigned 64-bit number complements its 64 bits.
        let value = if self == Unary::Not && !fits(value) {
            i128::from(!(a as u64))
        } else {
            value
        };
        Some(value).filter(|v| fits(*v)).ok_or("a number of more than 64 bits")
    }
}

/// An expression.
#[derive(Clone, Debug)]
pub(super) enum Expr {
    Number(i128),
    Symbol(SymbolId),
    /// A position in a section.
    Here(SectionId, u32),
    Unary(Unary, Box<Expr>),
    Binary(Binary, Box<Expr>, Box<Expr>),
}

/// The position of an expression: the value of `.`.
#[derive(Clone, Copy)]
pub(super) struct Here {
    pub(super) section: SectionId,
    pub(super) offset: u32,
}

/// Parses an expression.
pub(super) fn parse(cursor: &mut Cursor<'_, '_>, symbols: &mut Symbols, here: Here) -> Result<(Expr, Span), Fault> {
    let start = cursor.span().start;
    let mut parser = Parser {
        cursor,
        symbols,
        here,
        operators: 0,
    };
    let expr = parser.binary(0)?;
    let end = cursor.last_end().max(start);
    Ok((expr, start..end))
}

struct Parser<'c, 't, 's, 'y> {
    cursor: &'c mut Cursor<'t, 's>,
    symbols: &'y mut Symbols,
    here: Here,
    operators: u32,
}

impl Parser<'_, '_, '_, '_> {
    fn count(&mut self, span: &Span) -> Result<(), Fault> {
        self.operators += 1;
        if self.operators > MOST_OPERATORS {
            let most = format!("at most {MOST_OPERATORS} operators and parentheses");
            return Err(Fault::new(span.clone(), "this expression is too long", most));
        }
        Ok(())
    }

    fn binary(&mut self, least: u8) -> Result<Expr, Fault> {
        let start = self.cursor.span().start;
        let mut left = self.unary()?;
        while let Kind::Mark(mark) = self.cursor.kind()
            && let Some((op, strength)) = Binary::of(mark)
            && strength > least
        {
            let at = self.cursor.span();
            self.count(&at)?;
            self.cursor.advance();
            let right = self.binary(strength)?;
            left = match (&left, &right) {
                (Expr::Number(a), Expr::Number(b)) => Expr::Number(op.compute(*a, *b).map_err(|what| {
                    Fault::new(
                        start..self.cursor.last_end(),
                        format!("{what} in an expression"),
                        "here",
                    )
                })?),
                _ => Expr::Binary(op, Box::new(left), Box::new(right)),
            };
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr, Fault> {
        let start = self.cursor.span();
        let op = match self.cursor.kind() {
            Kind::Mark("+") => None,
            Kind::Mark("-") => Some(Unary::Minus),
            Kind::Mark("~") => Some(Unary::Not),
            Kind::Mark("!") => Some(Unary::LogicalNot),
            _ => return self.primary(),
        };
        self.count(&start)?;
        self.cursor.advance();
        let inner = self.unary()?;
        let Some(op) = op else { return Ok(inner) };
        match inner {
            Expr::Number(a) => op.compute(a).map(Expr::Number).map_err(|what| {
                let span = start.start..self.cursor.last_end();
                Fault::new(span, format!("{what} in an expression"), "here")
            }),
            inner => Ok(Expr::Unary(op, Box::new(inner))),
        }
    }

    fn primary(&mut self) -> Result<Expr, Fault> {
        let span = self.cursor.span();
        match self.cursor.kind().clone() {
            Kind::Number(value) => {
                self.cursor.advance();
                Ok(Expr::Number(value))
            }
            Kind::Local { number, backward } => {
                self.cursor.advance();
                let id = self.symbols.local(number, backward, &span)?;
                Ok(Expr::Symbol(id))
            }
            Kind::Word(".") => {
                self.cursor.advance();
                Ok(Expr::Here(self.here.section, self.here.offset))
            }
            Kind::Word(word) => {
                if let Some(fault) = register_fault(word, &span, "an expression") {
                    return Err(fault);
                }
                self.cursor.advance();
                Ok(self.symbol(word, &span))
            }
            Kind::String(bytes) => {
                let name = symbol_name(&bytes, &span)?;
                self.cursor.advance();
                Ok(self.symbol(&name, &span))
            }
            Kind::Mark("(") => {
                self.count(&span)?;
                self.cursor.advance();
                let inner = self.binary(0)?;
                if *self.cursor.kind() != Kind::Mark(")") {
                    return Err(self
                        .cursor
                        .unexpected("`)`")
                        .note("it closes a parenthesis of this expression"));
                }
                self.cursor.advance();
                Ok(inner)
            }
            _ => Err(self.cursor.unexpected("a number, a symbol or an expression")),
        }
    }

    /// Returns the expression for a symbol, or its number if it has one already.
    fn symbol(&mut self, name: &str, span: &Span) -> Expr {
        let id = self.symbols.named(name, span);
        let entry = self.symbols.get_mut(id);
        if let Definition::Assigned(Expr::Number(value)) = entry.definition {
            return Expr::Number(value);
        }
        entry.awaited = true;
        Expr::Symbol(id)
    }
}

/// Returns the name of a quoted symbol, or a fault if it is not a valid name.
pub(super) fn symbol_name(bytes: &[u8], span: &Span) -> Result<String, Fault> {
    match core::str::from_utf8(bytes) {
        Ok("") => Err(Fault::new(span.clone(), "a symbol has no name", "empty")),
        Ok(name) if name.chars().any(char::is_control) => Err(Fault::new(
            span.clone(),
            "the name of a symbol has a control character",
            "here",
        )),
        Ok(name) => Ok(name.to_owned()),
        Err(_) => Err(Fault::new(span.clone(), "the name of a symbol is not UTF-8", "here")),
    }
}

/// Returns the fault for a word that cannot be a symbol because it is a register or looks like one.
pub(super) fn register_fault(word: &str, span: &Span, place: &str) -> Option<Fault> {
    if Reg::from_name(word).is_some() {
        let fault = Fault::new(
            span.clone(),
            format!("found the register `{word}` where {place} is expected"),
            "a register",
        );
        return Some(fault.note(format!("a symbol of this name would be written `\"{word}\"`")));
    }
    let right = register_meant(word)?;
    Some(Fault::new(span.clone(), format!("there is no register `{word}`"), right).note(
        "scalar registers are `s0` to `s57`, `tr`, `rm`, `fp`, `sp`, `ra` and `pc`, vector registers `v0` to `v63`, in lower case and without a prefix",
    ))
}

/// Returns a hint for a word that looks like a register and is none.
fn register_meant(word: &str) -> Option<String> {
    let bare = word.strip_prefix('$').unwrap_or(word);
    let lower = bare.to_ascii_lowercase();
    if let Some(reg) = Reg::from_name(&lower) {
        return Some(format!("write `{reg}`"));
    }
    let (file, digits) = lower.split_at_checked(1)?;
    if !matches!(file, "s" | "v") || digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some(match (file, digits.parse().ok().and_then(SReg::new)) {
        ("s", Some(reg)) => format!("number {digits} is `{reg}`"),
        _ => "no register has this number".to_owned(),
    })
}
