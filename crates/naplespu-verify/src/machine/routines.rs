//! The semantics of the runtime's routines, as documented in `src/runtime.rs` of the compiler.
//!
//! Integer routines are CLIF operations, and compares of floats are exact. Other float routines are
//! uninterpreted functions, the same ones as in `floats.rs`.

use super::State;
use super::calls::{clobber, region};
use crate::floats;
use crate::memory::Memory;
use crate::term::{Bits, Pool, Term, WORD};
use cranelift_codegen::ir::types;
use cranelift_naplespu::abi::sig::{Place, Places};
use cranelift_naplespu::runtime::Routine;

/// The maximum length in bytes of a modeled copy.
const MOST_COPIED: u64 = 1024;

/// Splits the words of the arguments into two numbers.
fn halves(pool: &mut Pool, words: &[Term]) -> (Term, Term) {
    let (a, b) = words.split_at(words.len() / 2);
    (pool.of_words(a), pool.of_words(b))
}

/// Applies `f` to a number and a shift amount; the amount is the last word.
fn shifted(pool: &mut Pool, words: &[Term], f: impl Fn(&mut Pool, Term, Term) -> Term) -> Term {
    let (amount, number) = match words.split_last() {
        Some((&amount, number)) => (amount, pool.of_words(number)),
        None => return pool.int(1, 0),
    };
    let width = pool.width(number);
    let low = pool.extract(width.trailing_zeros() - 1, 0, amount);
    let by = pool.zext(low, width);
    f(pool, number, by)
}

/// Returns the result of a routine with an exact meaning and its preconditions, or `None` for other routines.
fn integers(pool: &mut Pool, routine: Routine, words: &[Term]) -> Option<(Term, Vec<Term>)> {
    let mut claims = Vec::new();
    let result = match routine {
        Routine::Udiv32 | Routine::Udiv64 | Routine::Udiv128 => {
            let (a, b) = halves(pool, words);
            claims.push(not_zero(pool, b));
            pool.udiv(a, b)
        }
        Routine::Urem32 | Routine::Urem64 | Routine::Urem128 => {
            let (a, b) = halves(pool, words);
            claims.push(not_zero(pool, b));
            pool.urem(a, b)
        }
        Routine::Sdiv32 | Routine::Sdiv64 | Routine::Sdiv128 => {
            let (a, b) = halves(pool, words);
            claims.push(not_zero(pool, b));
            let width = pool.width(a);
            let least = pool.constant(width, Bits::bit(width - 1));
            let minus_one = pool.constant(width, Bits::ones(width));
            let (x, y) = (pool.eq(a, least), pool.eq(b, minus_one));
            let over = pool.and(x, y);
            claims.push(pool.not(over));
            pool.sdiv(a, b)
        }
        Routine::Srem32 | Routine::Srem64 | Routine::Srem128 => {
            let (a, b) = halves(pool, words);
            claims.push(not_zero(pool, b));
            pool.srem(a, b)
        }
        Routine::Umulhi64 | Routine::Umulhi128 => {
            let (a, b) = halves(pool, words);
            pool.umulhi(a, b)
        }
        Routine::Smulhi64 | Routine::Smulhi128 => {
            let (a, b) = halves(pool, words);
            pool.smulhi(a, b)
        }
        Routine::Mul128 => {
            let (a, b) = halves(pool, words);
            pool.mul(a, b)
        }
        Routine::F64Compare | Routine::F128Compare => {
            let (a, b) = halves(pool, words);
            let relation = floats::relation(pool, a, b);
            let bits = [relation.unordered, relation.greater, relation.equal, relation.less];
            let bits = pool.concat(&bits);
            pool.zext(bits, WORD)
        }
        Routine::Shl128 => shifted(pool, words, Pool::shl),
        Routine::Ushr128 => shifted(pool, words, Pool::lshr),
        Routine::Sshr128 => shifted(pool, words, Pool::ashr),
        Routine::Rotl128 => shifted(pool, words, Pool::rotl),
        _ => return None,
    };
    Some((result, claims))
}

fn not_zero(pool: &mut Pool, a: Term) -> Term {
    let zero = pool.int(pool.width(a), 0);
    let same = pool.eq(a, zero);
    pool.not(same)
}

/// Applies a routine to the state of its caller. Returns the preconditions of the routine.
///
/// # Errors
///
/// The routine has no semantics here.
pub fn call(pool: &mut Pool, name: &'static str, sp: Term, state: &mut State) -> Result<Vec<Term>, String> {
    let unknown = || format!("the routine {name} has no meaning here");
    let routine = Routine::named(name).ok_or_else(unknown)?;
    let sig = routine.signature().ok_or_else(unknown)?;
    let register = |places: &Places| match places.first() {
        Some(&Place::Reg(reg)) => Ok(reg),
        _ => Err(unknown()),
    };
    let mut words = Vec::new();
    for places in &sig.args {
        words.push(state.get(register(places)?, 0));
    }
    let mut claims = Vec::new();
    let mut results = Vec::new();
    match routine {
        Routine::Copy | Routine::Store16 => copy(pool, routine, &words, sp, state).ok_or_else(unknown)?,
        _ => match integers(pool, routine, &words) {
            Some((result, more)) => {
                claims = more;
                results = pool.words(result);
            }
            None => {
                let short = name.strip_prefix("__npu_").unwrap_or(name);
                let width = match short.starts_with("f16_") {
                    true => types::F16.bits(),
                    false => WORD * sig.rets.len() as u32,
                };
                let all = operands(pool, short, &words);
                let mut result = pool.app(short, width.max(1), &all);
                if width < WORD {
                    let open = pool.fresh("undefined", WORD - width);
                    result = pool.concat(&[open, result]);
                }
                results = pool.words(result);
            }
        },
    }
    clobber(pool, sig, state);
    for (places, word) in sig.rets.iter().zip(results) {
        state.set(register(places)?, 0, word);
    }
    Ok(claims)
}

/// Returns the operands of a float operation, each with as many words as the type in the name.
fn operands(pool: &mut Pool, name: &str, words: &[Term]) -> Vec<Term> {
    let source = name.split_once("_from_").map_or(name, |(_, source)| source);
    let digits: String = source
        .chars()
        .skip_while(|c| !c.is_ascii_digit())
        .take_while(char::is_ascii_digit)
        .collect();
    let bits: u32 = digits.parse().unwrap_or(WORD);
    let each = bits.div_ceil(WORD) as usize;
    let mut number = |chunk: &[Term]| {
        let whole = pool.of_words(chunk);
        match bits < pool.width(whole) {
            true => pool.extract(bits - 1, 0, whole),
            false => whole,
        }
    };
    words.chunks(each.max(1)).map(&mut number).collect()
}

/// Copies bytes: the length is the third argument, or sixteen.
fn copy(pool: &mut Pool, routine: Routine, words: &[Term], sp: Term, state: &mut State) -> Option<()> {
    let (&to, &from) = (words.first()?, words.get(1)?);
    let count = match routine {
        Routine::Store16 => 16,
        _ => pool.as_u64(*words.get(2)?)?,
    };
    if count > MOST_COPIED {
        return None;
    }
    let (target, source) = (region(pool, to, sp), region(pool, from, sp));
    let before: Memory = state.memory.clone();
    for at in 0..count {
        let offset = pool.int(WORD, at);
        let (read, written) = (pool.add(from, offset), pool.add(to, offset));
        let byte = before.load(pool, source, read, 1);
        state.memory.store(pool, target, written, byte);
    }
    Some(())
}
