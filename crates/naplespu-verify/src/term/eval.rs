//! Evaluates terms for concrete values of the unknowns.

use super::{Bits, Op, Pool, Symbol, Term, WORD};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::rc::Rc;

/// The values of unknowns and terms.
///
/// Unset unknowns and uninterpreted functions have pseudo-random values, determined by the seed,
/// their name and their arguments.
#[derive(Clone)]
pub struct Evaluator {
    seed: u64,
    /// Values that unknowns often have.
    palette: Rc<[u64]>,
    known: FxHashMap<Symbol, Bits>,
    applied: FxHashMap<(Symbol, Vec<Bits>), Bits>,
    values: Vec<Option<Bits>>,
}

impl Evaluator {
    /// Creates an evaluator without set values.
    pub fn new(seed: u64) -> Self {
        Self::with_palette(seed, Rc::new([]))
    }

    /// Creates an evaluator without set values. Unknowns often have a value from the palette.
    pub fn with_palette(seed: u64, palette: Rc<[u64]>) -> Self {
        Self {
            seed,
            palette,
            known: FxHashMap::default(),
            applied: FxHashMap::default(),
            values: Vec::new(),
        }
    }

    /// Returns an evaluator in which about half of the set unknowns have other values.
    pub fn varied(&self, seed: u64) -> Self {
        let keeps = |symbol: &Symbol| mixed(seed << 32 | symbol.index() as u64) & 1 != 0;
        let known = self.known.iter().filter(|(symbol, _)| keeps(symbol));
        Self {
            known: known.map(|(&symbol, &bits)| (symbol, bits)).collect(),
            ..Self::with_palette(seed, self.palette.clone())
        }
    }

    /// Sets an unknown. Other terms are ignored.
    pub fn set(&mut self, pool: &Pool, term: Term, value: Bits) {
        if let Op::Var(symbol) = pool.node(term).op {
            self.known.insert(symbol, value.masked(pool.width(term)));
            self.values.clear();
        }
    }

    /// Sets the value of a function at these arguments.
    pub fn set_application(&mut self, symbol: Symbol, args: Vec<Bits>, value: Bits) {
        self.applied.insert((symbol, args), value);
        self.values.clear();
    }

    /// Returns the value of a term.
    pub fn value(&mut self, pool: &Pool, term: Term) -> Bits {
        self.values.resize(pool.len(), None);
        if let Some(value) = self.values[term.index()] {
            return value;
        }
        let mut stack = vec![term];
        while let Some(&top) = stack.last() {
            if self.values[top.index()].is_some() {
                stack.pop();
                continue;
            }
            let before = stack.len();
            for &arg in pool.args(top) {
                if self.values[arg.index()].is_none() {
                    stack.push(arg);
                }
            }
            if stack.len() == before {
                let args: Vec<Bits> = pool
                    .args(top)
                    .iter()
                    .map(|arg| self.values[arg.index()].unwrap_or_default())
                    .collect();
                self.values[top.index()] = Some(self.compute(pool, top, &args));
                stack.pop();
            }
        }
        self.values[term.index()].unwrap_or_default()
    }

    fn unknown(&self, pool: &Pool, symbol: Symbol, args: &[Bits]) -> Bits {
        let info = pool.symbol(symbol);
        let mut value = Bits::ZERO;
        for part in 0..info.width.div_ceil(64) {
            let mut hasher = FxHasher::default();
            (self.seed, &info.name, args, part).hash(&mut hasher);
            let random = mixed(hasher.finish());
            let number = if args.is_empty() { self.number(random) } else { random };
            value = value.or(Bits::from(number).shl(64 * part, super::MAX_WIDTH));
        }
        value.masked(info.width)
    }

    /// Returns a special or random number.
    fn number(&self, random: u64) -> u64 {
        let choice = mixed(random ^ self.seed.rotate_left(17));
        // In some trials all unknowns have the same value.
        let shared = mixed(self.seed);
        let random = if self.seed % 5 == 4 {
            mixed(shared ^ choice & 1)
        } else {
            random
        };
        match choice >> 8 & 7 {
            0 => random & 0xf,
            1 => [0, 1, u64::MAX, 1 << 31 | 1 << 15 | 1 << 7, 0x7fff_7fff_7fff_ff7f][(random % 5) as usize],
            2 if !self.palette.is_empty() => {
                let number = self.palette[(random >> 8) as usize % self.palette.len()];
                number.wrapping_add(random & 3).wrapping_sub(1)
            }
            3 => (random & 0xff).wrapping_sub(0x80),
            4 => (random as u32 >> (random >> 32 & 31)).into(),
            _ => random,
        }
    }

    /// Returns the value of a term whose operands have these values.
    fn compute(&self, pool: &Pool, term: Term, args: &[Bits]) -> Bits {
        let node = pool.node(term);
        let width = node.width;
        let inner = node.args.first().map_or(width, |&arg| pool.width(arg));
        let bit = |value: bool| Bits::from(u64::from(value));
        let (a, b) = match *args {
            [] => (Bits::ZERO, Bits::ZERO),
            [a] => (a, Bits::ZERO),
            [a, b, ..] => (a, b),
        };
        match &node.op {
            Op::Const(bits) => *bits,
            Op::Var(symbol) => match self.known.get(symbol) {
                Some(value) => *value,
                None => self.unknown(pool, *symbol, &[]),
            },
            Op::App(symbol) => match self.applied.get(&(*symbol, args.to_vec())) {
                Some(value) => *value,
                None => self.unknown(pool, *symbol, args),
            },
            Op::Not => a.not(width),
            Op::And => a.and(b),
            Op::Xor => a.xor(b),
            Op::Sum(coefficients, constant) => {
                let sum = args
                    .iter()
                    .zip(coefficients)
                    .fold(u64::from(*constant), |sum, (x, &by)| {
                        sum.wrapping_add(x.low().wrapping_mul(u64::from(by)))
                    });
                Bits::from(sum).masked(width)
            }
            Op::Mul | Op::MulWide => a.mul(b, width),
            Op::Udiv => a.udivrem(b, width).0,
            Op::Urem => a.udivrem(b, width).1,
            Op::Sdiv => a.sdivrem(b, width).0,
            Op::Srem => a.sdivrem(b, width).1,
            Op::Shl => a.shl(b.amount(width), width),
            Op::Lshr => a.lshr(b.amount(width)),
            Op::Ashr => a.ashr(b.amount(width), width),
            Op::Eq => bit(a == b),
            Op::Ult => bit(a.ult(b)),
            Op::Slt => bit(a.slt(b, inner)),
            Op::Ite => match (a.is_zero(), args) {
                (false, _) => b,
                (true, [_, _, c]) => *c,
                (true, _) => Bits::ZERO,
            },
            Op::Extract(low) => a.extract(low + width - 1, *low),
            Op::Concat => node
                .args
                .iter()
                .zip(args)
                .fold(Bits::ZERO, |value, (&arg, x)| value.shl(pool.width(arg), width).or(*x)),
            Op::Sext => a.sext(inner, width),
            Op::Clz => Bits::from(u64::from(a.clz(WORD))),
            Op::Ctz => Bits::from(u64::from(a.ctz(WORD))),
        }
    }
}

/// Mixes all bits of a hash.
pub fn mixed(mut x: u64) -> u64 {
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}
