//! The values of expressions: numbers, and addresses relative to sections or symbols.

use super::expr::{Binary, Expr, Unary};
use super::fault::{Fault, Span};
use super::symbol::{Binding, Definition, SectionId, SymbolId, Symbols};
use std::collections::HashMap;

/// The maximum length of a chain of assigned symbols.
const DEEPEST: u32 = 16;

/// The base of an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Base {
    /// The start of a section.
    Section(SectionId),
    /// A symbol.
    Symbol(SymbolId),
}

/// The value of an expression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Value {
    Number(i128),
    Address { base: Base, addend: i128 },
}

/// Computes expressions with the values in the symbol table.
pub(super) struct Evaluator<'a> {
    symbols: &'a Symbols,
    /// Values of assigned symbols that have been computed already.
    known: HashMap<SymbolId, Result<Value, String>>,
}

impl<'a> Evaluator<'a> {
    pub(super) fn new(symbols: &'a Symbols) -> Self {
        let known = HashMap::new();
        Self { symbols, known }
    }

    /// Returns the value of an expression, or a fault with its span.
    pub(super) fn value(&mut self, expr: &Expr, span: &Span) -> Result<Value, Fault> {
        self.compute(expr, 0).map_err(|why| {
            let label = if matches!(expr, Expr::Symbol(_)) {
                "this symbol"
            } else {
                "this expression"
            };
            Fault::new(span.clone(), why, label)
        })
    }

    fn compute(&mut self, expr: &Expr, depth: u32) -> Result<Value, String> {
        match expr {
            Expr::Number(value) => Ok(Value::Number(*value)),
            Expr::Here(section, offset) => Ok(Value::Address {
                base: Base::Section(*section),
                addend: i128::from(*offset),
            }),
            Expr::Symbol(id) => self.symbol(*id, depth),
            Expr::Unary(op, inner) => match self.compute(inner, depth)? {
                Value::Number(a) => op
                    .compute(a)
                    .map(Value::Number)
                    .map_err(|e| format!("{e} in an expression")),
                Value::Address { .. } => {
                    let what = match op {
                        Unary::Minus => "negated",
                        Unary::Not | Unary::LogicalNot => "complemented",
                    };
                    Err(format!("an address cannot be {what}: it is not known before linking"))
                }
            },
            Expr::Binary(op, left, right) => {
                let left = self.compute(left, depth)?;
                let right = self.compute(right, depth)?;
                self.binary(*op, left, right)
            }
        }
    }

    fn binary(&self, op: Binary, left: Value, right: Value) -> Result<Value, String> {
        let number = |op: Binary, a, b| op.compute(a, b).map_err(|e| format!("{e} in an expression"));
        match (op, left, right) {
            (op, Value::Number(a), Value::Number(b)) => number(op, a, b).map(Value::Number),
            (Binary::Add, Value::Address { base, addend }, Value::Number(n))
            | (Binary::Add, Value::Number(n), Value::Address { base, addend })
            | (Binary::Sub, Value::Address { base, addend }, Value::Number(n)) => {
                let addend = number(op, addend, n)?;
                Ok(Value::Address { base, addend })
            }
            (_, Value::Address { base: a, addend: m }, Value::Address { base: b, addend: n })
                if !matches!(op, Binary::Add | Binary::Mul) =>
            {
                // Two addresses in one section have a known distance and order.
                let distance = if a == b {
                    Some((m, n))
                } else {
                    let (a, b) = (self.place(a), self.place(b));
                    a.zip(b).filter(|(a, b)| a.0 == b.0).map(|(a, b)| (m + a.1, n + b.1))
                };
                match (op, distance) {
                    (
                        Binary::Sub | Binary::Eq | Binary::Ne | Binary::Lt | Binary::Le | Binary::Gt | Binary::Ge,
                        Some((a, b)),
                    ) => number(op, a, b).map(Value::Number),
                    (Binary::Sub, None) => Err(format!(
                        "the distance from {} to {} is not known: they are not in the same section",
                        self.describe(b),
                        self.describe(a)
                    )),
                    _ => Err("this operation is impossible on addresses: they are not known before linking".into()),
                }
            }
            (Binary::Add, Value::Address { .. }, Value::Address { .. }) => {
                Err("two addresses cannot be added".to_owned())
            }
            (Binary::Sub, Value::Number(_), Value::Address { .. }) => {
                Err("an address cannot be subtracted from a number".to_owned())
            }
            _ => Err("this operation is impossible on addresses: they are not known before linking".to_owned()),
        }
    }

    /// Returns the section and offset of a base, if they are final.
    pub(super) fn place(&self, base: Base) -> Option<(SectionId, i128)> {
        match base {
            Base::Section(section) => Some((section, 0)),
            Base::Symbol(id) => {
                let entry = self.symbols.get(id);
                match entry.definition {
                    // The definition of a weak symbol may be replaced.
                    Definition::Label { section, offset } if entry.binding != Some(Binding::Weak) => {
                        Some((section, i128::from(offset)))
                    }
                    _ => None,
                }
            }
        }
    }

    /// Returns whether the symbol is visible outside of the source.
    pub(super) fn is_global(&self, base: Base) -> bool {
        match base {
            Base::Section(_) => false,
            Base::Symbol(id) => matches!(self.symbols.get(id).binding, Some(Binding::Global | Binding::Weak)),
        }
    }

    /// Describes a base in words.
    pub(super) fn describe(&self, base: Base) -> String {
        match base {
            Base::Section(_) => "this place".to_owned(),
            Base::Symbol(id) => format!("`{}`", self.symbols.get(id).name),
        }
    }

    fn symbol(&mut self, id: SymbolId, depth: u32) -> Result<Value, String> {
        let base = Base::Symbol(id);
        let entry = self.symbols.get(id);
        let Definition::Assigned(expr) = &entry.definition else {
            return Ok(Value::Address { base, addend: 0 });
        };
        if let Some(known) = self.known.get(&id) {
            return known.clone();
        }
        if depth > DEEPEST {
            return Err(format!(
                "the value of `{}` depends on itself, or on a chain of more than {DEEPEST} other symbols",
                entry.name
            ));
        }
        let value = self.compute(expr, depth + 1);
        self.known.insert(id, value.clone());
        value
    }
}
