//! Prints terms as SMT-LIB text.

use super::{Op, Pool, Term, WORD};
use rustc_hash::FxHashSet;
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

/// Returns a query: declarations and definitions, then an assertion for each term that it is 1.
/// Terms in `cut` count as unknowns.
pub fn query(pool: &Pool, assertions: &[Term], detail: Detail, cut: &FxHashSet<Term>) -> String {
    let mut text = String::new();
    let order = visible(pool, assertions, cut);
    let mut functions = FxHashSet::default();
    let mut has = (false, false);
    for &term in &order {
        match pool.node(term).op {
            Op::App(symbol) if detail == Detail::Full && !cut.contains(&term) && functions.insert(symbol) => {
                let info = pool.symbol(symbol);
                let args: Vec<String> = info.arguments.iter().map(|w| format!("(_ BitVec {w})")).collect();
                // Writing to a string cannot fail.
                let _ = writeln!(
                    text,
                    "(declare-fun f{} ({}) (_ BitVec {}))",
                    symbol.index(),
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
    for &term in &order {
        let width = pool.width(term);
        let is_unknown = cut.contains(&term) || is_abstract(pool, term, detail);
        let _ = match is_unknown {
            true => writeln!(text, "(declare-const t{} (_ BitVec {width}))", term.index()),
            false => writeln!(
                text,
                "(define-fun t{} () (_ BitVec {width}) {})",
                term.index(),
                expression(pool, term)
            ),
        };
    }
    for &term in assertions {
        let _ = writeln!(text, "(assert (= t{} #b1))", term.index());
    }
    text
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

/// Returns the terms of a query, operands first, except terms only below cuts.
fn visible(pool: &Pool, roots: &[Term], cut: &FxHashSet<Term>) -> Vec<Term> {
    let mut seen = FxHashSet::default();
    let mut stack = roots.to_vec();
    while let Some(term) = stack.pop() {
        if seen.insert(term) && !cut.contains(&term) {
            stack.extend_from_slice(pool.args(term));
        }
    }
    let mut order: Vec<Term> = seen.into_iter().collect();
    order.sort_unstable();
    order
}

/// Returns the unknowns of a query, which the solver assigns.
pub fn unknowns(pool: &Pool, assertions: &[Term]) -> Vec<Term> {
    let order = visible(pool, assertions, &FxHashSet::default());
    order
        .into_iter()
        .filter(|&term| matches!(pool.node(term).op, Op::Var(_)))
        .collect()
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
fn expression(pool: &Pool, term: Term) -> String {
    let node = pool.node(term);
    let width = node.width;
    let arg = |at: usize| format!("t{}", node.args[at].index());
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
        Op::Var(symbol) => format!("f{}", symbol.index()),
        Op::App(symbol) => {
            let args: Vec<String> = (0..node.args.len()).map(arg).collect();
            format!("(f{} {})", symbol.index(), args.join(" "))
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
