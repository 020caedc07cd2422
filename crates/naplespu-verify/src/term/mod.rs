//! Bit-vector terms: hash-consed, and simplified during construction.
//!
//! # Contract
//!
//! A [`Pool`] owns terms; a [`Term`] is an index into its pool. Equal terms of a pool have the same
//! index. The constructors (`Pool::add`, `Pool::extract`, ...) return a normal form:
//!
//! - Sums, products, comparisons and selections wider than a word are built from 32-bit words with
//!   explicit carries.
//! - Sums are linear combinations. Products of two words have two kinds: the low word ([`Op::Mul`])
//!   and both words ([`Op::MulWide`]).
//! - Shifts by constants, extensions, and masks with few runs of bits are concatenations
//!   ([`Op::Concat`]).
//! - `or` is expressed by `and` and `not`.
//!
//! The evaluator ([`eval`]) and the SMT-LIB printer ([`smtlib`]) handle the few operations of
//! [`Op`].

mod arith;
mod bits;
mod bitwise;
mod compare;
mod division;
pub mod eval;
mod shape;
pub mod smtlib;
mod wide;

pub use bits::{Bits, MAX_WIDTH};

use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

/// The width of a machine word.
pub const WORD: u32 = 32;

/// A term of a [`Pool`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Term(u32);

impl Term {
    /// Returns the position in the pool. Operands have lower positions than their users.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// An unknown or uninterpreted function of a [`Pool`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Symbol(u32);

impl Symbol {
    /// Returns the position among the symbols of the pool.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The operation of a term. Operands are in [`Node::args`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// A constant.
    Const(Bits),
    /// An unknown.
    Var(Symbol),
    /// An uninterpreted function of its operands.
    App(Symbol),
    /// Bitwise complement.
    Not,
    /// Bitwise and of two terms.
    And,
    /// Bitwise exclusive or of two terms.
    Xor,
    /// The sum of a constant and of the operands, each times its coefficient. At most a word wide.
    Sum(SmallVec<[u32; 4]>, u32),
    /// The low bits of a product. At most a word wide.
    Mul,
    /// The two-word product of two words.
    MulWide,
    /// Unsigned quotient, all ones for a divisor of zero.
    Udiv,
    /// Unsigned remainder, the dividend for a divisor of zero.
    Urem,
    /// Signed quotient, rounded towards zero.
    Sdiv,
    /// Signed remainder, with the sign of the dividend.
    Srem,
    /// Shift left; zero for amounts from the width on.
    Shl,
    /// Logical shift right.
    Lshr,
    /// Arithmetic shift right.
    Ashr,
    /// Equality, one bit.
    Eq,
    /// Unsigned less-than, one bit.
    Ult,
    /// Signed less-than, one bit.
    Slt,
    /// The second operand if the first one is 1, otherwise the third.
    Ite,
    /// Bits of the operand, starting at this position.
    Extract(u32),
    /// The concatenation of all operands, the highest one first.
    Concat,
    /// Sign extension.
    Sext,
    /// The number of leading zeros of a word.
    Clz,
    /// The number of trailing zeros of a word.
    Ctz,
}

/// A term: operation, width in bits, operands.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Node {
    /// The operation.
    pub op: Op,
    /// The width of the value in bits.
    pub width: u32,
    /// The operands.
    pub args: SmallVec<[Term; 3]>,
}

/// The properties of a symbol.
#[derive(Clone, Debug)]
pub struct SymbolInfo {
    /// Its name, unique in the pool.
    pub name: String,
    /// The width of its value in bits.
    pub width: u32,
    /// The widths of its arguments; empty for an unknown.
    pub arguments: Vec<u32>,
}

/// The terms.
#[derive(Default)]
pub struct Pool {
    nodes: Vec<Node>,
    known: FxHashMap<Node, Term>,
    symbols: Vec<SymbolInfo>,
    names: FxHashMap<String, Symbol>,
    fresh: u32,
}

impl Pool {
    /// Creates an empty pool.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of terms.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns whether the pool is empty.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns the term at a position.
    pub fn at(&self, index: usize) -> Term {
        Term(index as u32)
    }

    /// Returns the node of a term.
    pub fn node(&self, term: Term) -> &Node {
        &self.nodes[term.index()]
    }

    /// Returns the width of a term in bits.
    pub fn width(&self, term: Term) -> u32 {
        self.node(term).width
    }

    /// Returns the operands of a term.
    pub fn args(&self, term: Term) -> &[Term] {
        &self.node(term).args
    }

    /// Returns the value, if the term is a constant.
    pub fn as_const(&self, term: Term) -> Option<Bits> {
        match self.node(term).op {
            Op::Const(bits) => Some(bits),
            _ => None,
        }
    }

    /// Returns the low 64 bits of the value, if the term is a constant.
    pub fn as_u64(&self, term: Term) -> Option<u64> {
        self.as_const(term).map(Bits::low)
    }

    /// Returns whether the term is a constant other than 0, such as the bit 1.
    pub fn is_true(&self, term: Term) -> bool {
        self.as_const(term).is_some_and(|bits| !bits.is_zero())
    }

    /// Returns whether the term is the constant 0.
    pub fn is_false(&self, term: Term) -> bool {
        self.as_const(term).is_some_and(Bits::is_zero)
    }

    /// Returns the properties of a symbol.
    pub fn symbol(&self, symbol: Symbol) -> &SymbolInfo {
        &self.symbols[symbol.index()]
    }

    /// Returns all symbols, in the order of their positions.
    pub fn symbols(&self) -> &[SymbolInfo] {
        &self.symbols
    }

    fn raw(&mut self, op: Op, width: u32, args: SmallVec<[Term; 3]>) -> Term {
        let node = Node { op, width, args };
        if let Some(&term) = self.known.get(&node) {
            return term;
        }
        let term = Term(self.nodes.len() as u32);
        self.nodes.push(node.clone());
        self.known.insert(node, term);
        term
    }

    fn raw1(&mut self, op: Op, width: u32, a: Term) -> Term {
        self.raw(op, width, smallvec![a])
    }

    fn raw2(&mut self, op: Op, width: u32, a: Term, b: Term) -> Term {
        self.raw(op, width, smallvec![a, b])
    }

    /// Returns a constant.
    pub fn constant(&mut self, width: u32, value: Bits) -> Term {
        self.raw(Op::Const(value.masked(width)), width, smallvec![])
    }

    /// Returns a constant with at most 64 significant bits.
    pub fn int(&mut self, width: u32, value: u64) -> Term {
        self.constant(width, Bits::from(value))
    }

    /// Returns a one-bit constant.
    pub fn bool(&mut self, value: bool) -> Term {
        self.int(1, u64::from(value))
    }

    fn symbol_named(&mut self, name: &str, width: u32, arguments: &[u32]) -> Symbol {
        if let Some(&symbol) = self.names.get(name) {
            let known = &self.symbols[symbol.index()];
            if known.width == width && known.arguments == arguments {
                return symbol;
            }
            // The same name with another signature is another function.
            return self.symbol_named(&format!("{name}'"), width, arguments);
        }
        let symbol = Symbol(self.symbols.len() as u32);
        self.names.insert(name.to_owned(), symbol);
        self.symbols.push(SymbolInfo {
            name: name.to_owned(),
            width,
            arguments: arguments.to_vec(),
        });
        symbol
    }

    /// Returns the unknown with this name.
    pub fn var(&mut self, name: &str, width: u32) -> Term {
        let symbol = self.symbol_named(name, width, &[]);
        self.raw(Op::Var(symbol), width, smallvec![])
    }

    /// Returns a new unknown.
    pub fn fresh(&mut self, name: &str, width: u32) -> Term {
        self.fresh += 1;
        let name = format!("{name}#{}", self.fresh);
        self.var(&name, width)
    }

    /// Returns an application of an uninterpreted function.
    pub fn app(&mut self, name: &str, width: u32, args: &[Term]) -> Term {
        let widths: Vec<u32> = args.iter().map(|&arg| self.width(arg)).collect();
        let symbol = self.symbol_named(name, width, &widths);
        self.raw(Op::App(symbol), width, args.iter().copied().collect())
    }

    /// Rebuilds the term with other operands.
    pub fn rebuild(&mut self, term: Term, args: &[Term]) -> Term {
        let node = self.node(term);
        if node.args.as_slice() == args {
            return term;
        }
        let (op, width) = (node.op.clone(), node.width);
        let (a, b) = match *args {
            [] => return term,
            [a] => (a, a),
            [a, b, ..] => (a, b),
        };
        match op {
            Op::Const(_) | Op::Var(_) => term,
            Op::App(symbol) => {
                let args = args.iter().copied().collect();
                self.raw(Op::App(symbol), width, args)
            }
            Op::Not => self.not(a),
            Op::And => self.and(a, b),
            Op::Xor => self.xor(a, b),
            Op::Sum(coefficients, constant) => self.sum(width, args, &coefficients, constant),
            Op::Mul => self.mul(a, b),
            Op::MulWide => self.mul_wide(a, b),
            Op::Udiv => self.udiv(a, b),
            Op::Urem => self.urem(a, b),
            Op::Sdiv => self.sdiv(a, b),
            Op::Srem => self.srem(a, b),
            Op::Shl => self.shl(a, b),
            Op::Lshr => self.lshr(a, b),
            Op::Ashr => self.ashr(a, b),
            Op::Eq => self.eq(a, b),
            Op::Ult => self.ult(a, b),
            Op::Slt => self.slt(a, b),
            Op::Ite => match *args {
                [condition, then, other] => self.ite(condition, then, other),
                _ => term,
            },
            Op::Extract(low) => self.extract(low + width - 1, low, a),
            Op::Concat => self.concat(args),
            Op::Sext => self.sext(a, width),
            Op::Clz => self.clz32(a),
            Op::Ctz => self.ctz32(a),
        }
    }

    /// Returns all terms below the roots, operands first.
    pub fn cone(&self, roots: &[Term]) -> Vec<Term> {
        let mut seen = vec![false; self.nodes.len()];
        let mut stack = roots.to_vec();
        let mut out = Vec::new();
        while let Some(term) = stack.pop() {
            if !std::mem::replace(&mut seen[term.index()], true) {
                out.push(term);
                stack.extend_from_slice(self.args(term));
            }
        }
        out.sort_unstable();
        out
    }
}
