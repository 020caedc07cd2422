//! Prints terms as SMT-LIB text.

use super::{Op, Pool, Symbol, Term, WORD};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt::Write as _;

/// The detail of a query.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Detail {
    /// Products, quotients and functions of unknowns are unknowns; proofs without their semantics
    /// are sound.
    Abstract,
    /// All operations have their semantics.
    Full,
}

/// The text of a query, and its terms.
///
/// Names depend on the position of a term below the assertions only, so queries that differ in the
/// names of unknowns have the same text.
pub struct Query {
    /// Declarations and definitions, followed by one assertion for each root: the term is 1.
    pub text: String,
    /// The terms by the numbers in their names, operands first.
    pub order: Vec<Term>,
}

/// The names of terms and functions in a query.
struct Names {
    terms: FxHashMap<Term, usize>,
    functions: FxHashMap<Symbol, usize>,
}

impl Names {
    fn term(&self, term: Term) -> String {
        format!("t{}", self.terms.get(&term).copied().unwrap_or(usize::MAX))
    }

    fn function(&self, symbol: Symbol) -> String {
        format!("f{}", self.functions.get(&symbol).copied().unwrap_or(usize::MAX))
    }
}

/// Returns the query whether all assertions can be 1. Terms in `cut` count as unknowns.
pub fn query(pool: &Pool, assertions: &[Term], detail: Detail, cut: &FxHashSet<Term>) -> Query {
    let mut text = String::new();
    let order = visible(pool, assertions, cut);
    let mut names = Names {
        terms: order.iter().enumerate().map(|(number, &term)| (term, number)).collect(),
        functions: FxHashMap::default(),
    };
    let mut has = (false, false);
    for &term in &order {
        match pool.node(term).op {
            Op::App(symbol) if detail == Detail::Full && !cut.contains(&term) => {
                let number = names.functions.len();
                if names.functions.contains_key(&symbol) {
                    continue;
                }
                names.functions.insert(symbol, number);
                let info = pool.symbol(symbol);
                let args: Vec<String> = info.arguments.iter().map(|w| format!("(_ BitVec {w})")).collect();
                // Writing to a string cannot fail.
                let _ = writeln!(
                    text,
                    "(declare-fun f{number} ({}) (_ BitVec {}))",
                    args.join(" "),
                    info.width
                );
            }
            Op::Clz => has.0 = true,
            Op::Ctz => has.1 = true,
            _ => {}
        }
    }
    if has.0 {
        text += &count_zeros("clz32", |at| WORD - 1 - at);
    }
    if has.1 {
        text += &count_zeros("ctz32", |at| at);
    }
    for (number, &term) in order.iter().enumerate() {
        let width = pool.width(term);
        let is_unknown = cut.contains(&term) || is_abstract(pool, term, detail);
        let _ = match is_unknown {
            true => writeln!(text, "(declare-const t{number} (_ BitVec {width}))"),
            false => writeln!(
                text,
                "(define-fun t{number} () (_ BitVec {width}) {})",
                expression(pool, term, &names)
            ),
        };
    }
    for &term in assertions {
        let _ = writeln!(text, "(assert (= {} #b1))", names.term(term));
    }
    Query { text, order }
}

/// Returns whether the term is an unknown for the solver.
fn is_abstract(pool: &Pool, term: Term, detail: Detail) -> bool {
    match pool.node(term).op {
        Op::Var(_) => true,
        Op::App(_) | Op::Mul | Op::Udiv | Op::Urem | Op::Sdiv | Op::Srem => detail == Detail::Abstract,
        Op::MulWide => detail == Detail::Abstract,
        _ => false,
    }
}

/// Returns the terms of a query, operands first, except terms only below cuts. The order depends
/// on the structure below the roots only.
fn visible(pool: &Pool, roots: &[Term], cut: &FxHashSet<Term>) -> Vec<Term> {
    let mut seen = FxHashSet::default();
    let mut order = Vec::new();
    let mut stack: Vec<(Term, bool)> = roots.iter().rev().map(|&root| (root, false)).collect();
    while let Some((term, is_done)) = stack.pop() {
        if is_done {
            order.push(term);
        } else if seen.insert(term) {
            stack.push((term, true));
            if !cut.contains(&term) {
                stack.extend(pool.args(term).iter().rev().map(|&arg| (arg, false)));
            }
        }
    }
    order
}

/// Returns the definition of a function that counts zeros from the end where `position` starts.
fn count_zeros(name: &str, position: impl Fn(u32) -> u32) -> String {
    let mut body = format!("(_ bv{WORD} {WORD})");
    for at in (0..WORD).rev() {
        let bit = position(at);
        body = format!("(ite (= ((_ extract {bit} {bit}) x) #b1) (_ bv{at} {WORD}) {body})");
    }
    format!("(define-fun {name} ((x (_ BitVec {WORD}))) (_ BitVec {WORD}) {body})\n")
}

/// Returns the definition of a term by its operands.
fn expression(pool: &Pool, term: Term, names: &Names) -> String {
    let node = pool.node(term);
    let width = node.width;
    let arg = |at: usize| names.term(node.args[at]);
    let inner = |at: usize| pool.width(node.args[at]);
    let two = |name: &str| format!("({name} {} {})", arg(0), arg(1));
    let bit = |name: &str| format!("(ite {} #b1 #b0)", two(name));
    match &node.op {
        Op::Const(bits) => {
            let digits: String = (0..width)
                .rev()
                .map(|at| if bits.get(at) { '1' } else { '0' })
                .collect();
            format!("#b{digits}")
        }
        // A query declares unknowns and does not define them.
        Op::Var(_) => names.term(term),
        Op::App(symbol) => {
            let args: Vec<String> = (0..node.args.len()).map(arg).collect();
            format!("({} {})", names.function(*symbol), args.join(" "))
        }
        Op::Not => format!("(bvnot {})", arg(0)),
        Op::And => two("bvand"),
        Op::Xor => two("bvxor"),
        Op::Sum(coefficients, constant) => {
            let mut sum = format!("(_ bv{constant} {width})");
            for (at, &by) in coefficients.iter().enumerate() {
                let part = match by {
                    1 => arg(at),
                    _ if u64::from(by) == super::Bits::ones(width).low() => format!("(bvneg {})", arg(at)),
                    _ => format!("(bvmul (_ bv{by} {width}) {})", arg(at)),
                };
                sum = format!("(bvadd {sum} {part})");
            }
            sum
        }
        Op::Mul => two("bvmul"),
        Op::MulWide => format!(
            "(bvmul ((_ zero_extend {WORD}) {}) ((_ zero_extend {WORD}) {}))",
            arg(0),
            arg(1)
        ),
        Op::Udiv => two("bvudiv"),
        Op::Urem => two("bvurem"),
        Op::Sdiv => two("bvsdiv"),
        Op::Srem => two("bvsrem"),
        Op::Shl => two("bvshl"),
        Op::Lshr => two("bvlshr"),
        Op::Ashr => two("bvashr"),
        Op::Eq => bit("="),
        Op::Ult => bit("bvult"),
        Op::Slt => bit("bvslt"),
        Op::Ite => format!("(ite (= {} #b1) {} {})", arg(0), arg(1), arg(2)),
        Op::Extract(low) => format!("((_ extract {} {low}) {})", low + width - 1, arg(0)),
        Op::Concat => {
            let args: Vec<String> = (0..node.args.len()).map(arg).collect();
            format!("(concat {})", args.join(" "))
        }
        Op::Sext => format!("((_ sign_extend {}) {})", width - inner(0), arg(0)),
        Op::Clz => format!("(clz32 {})", arg(0)),
        Op::Ctz => format!("(ctz32 {})", arg(0)),
    }
}
