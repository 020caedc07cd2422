//! The semantics of the runtime's routines, as documented in `src/runtime.rs` of the compiler.
//!
//! Integer routines are CLIF operations, and compares of floats are exact. Other float routines are
//! functions of `floats`.

use super::State;
use super::calls::{clobber, region};
use crate::abi::Layout;
use crate::floats;
use crate::memory::{LOCKS, Memory, Region};
use crate::term::{Bits, Pool, Term, WORD};
use cranelift_codegen::ir::{AbiParam, Signature, Type, types};
use cranelift_codegen::isa::CallConv;
use cranelift_naplespu::abi::sig::{Place, Places, SigInfo};
use cranelift_naplespu::runtime::{LaneRoutine, Routine};
use npu_mc::machine::LANES;

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
pub fn call(pool: &mut Pool, name: &'static str, layout: &Layout, state: &mut State) -> Result<Vec<Term>, String> {
    let unknown = || format!("the routine {name} has no meaning here");
    if let Some(special) = Special::named(name) {
        return special.call(pool, layout, state).ok_or_else(unknown);
    }
    let sp = layout.sp;
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
                let mut result = float(pool, routine, &words);
                let width = pool.width(result);
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

/// Returns the result of a routine for floats: the result of f16 with 16 bits, others with whole
/// words.
fn float(pool: &mut Pool, routine: Routine, words: &[Term]) -> Term {
    let name = routine.name();
    let short = name.strip_prefix("__npu_").unwrap_or(name);
    let (_, results) = routine.words();
    let width = match short.starts_with("f16_") {
        true => types::F16.bits(),
        false => WORD * (results as u32).max(1),
    };
    let all = operands(pool, short, words);
    floats::apply(pool, short, width, &all)
}

/// A routine that the legalization calls, that replaces an intrinsic, or that serves all lanes.
#[derive(Clone, Copy)]
enum Special {
    /// Applies a routine, by its address, to each lane of this number of vectors.
    Lanes(usize),
    /// Takes the lock of the core, or between cores.
    Enter { between_cores: bool },
    /// Loads a word of the scratchpad for each lane.
    Gather,
    /// Stores a word of each lane of the mask to the scratchpad.
    Scatter,
    /// Stores elements of the lanes of the mask to consecutive addresses.
    Store { bits: u32, scratchpad: bool },
}

impl Special {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "__npu_atomic_enter" => Self::Enter { between_cores: false },
            "__npu_machine_enter" => Self::Enter { between_cores: true },
            "__npu_gather" => Self::Gather,
            "__npu_scatter" => Self::Scatter,
            _ if let Some(vectors) = (1..=3).find(|&vectors| LaneRoutine::of(vectors).name() == name) => {
                Self::Lanes(vectors)
            }
            _ => {
                let rest = name.strip_prefix("__npu_store_lanes_")?;
                let (bits, scratchpad) = match rest.strip_suffix("_scratchpad") {
                    Some(bits) => (bits, true),
                    None => (rest, false),
                };
                Self::Store {
                    bits: bits.parse().ok()?,
                    scratchpad,
                }
            }
        })
    }

    /// Returns the types of the arguments and results.
    fn types(self) -> (&'static [Type], &'static [Type]) {
        use types::{I32, I32X16};
        match self {
            Self::Lanes(vectors) => (&[I32, I32X16, I32X16, I32X16][..1 + vectors], &[I32X16]),
            Self::Enter { .. } => (&[I32], &[I32, I32]),
            Self::Gather => (&[I32X16], &[I32X16]),
            Self::Scatter => (&[I32X16, I32X16, I32], &[]),
            Self::Store { .. } => (&[I32, I32X16, I32], &[]),
        }
    }

    /// Applies the routine. Returns its preconditions, or `None` if its signature has no locations.
    fn call(self, pool: &mut Pool, layout: &Layout, state: &mut State) -> Option<Vec<Term>> {
        let sp = layout.sp;
        let (args, results) = self.types();
        let mut signature = Signature::new(CallConv::Probestack);
        signature.params.extend(args.iter().copied().map(AbiParam::new));
        signature.returns.extend(results.iter().copied().map(AbiParam::new));
        let sig = SigInfo::new(&signature, "a routine").ok()?;
        let mut values = Vec::new();
        for (places, ty) in sig.args.iter().zip(args) {
            let Some(&Place::Reg(reg)) = places.first() else {
                return None;
            };
            values.push(
                (0..ty.lane_count())
                    .map(|lane| state.get(reg, lane))
                    .collect::<Vec<_>>(),
            );
        }
        let mut claims = Vec::new();
        let mut out: Vec<Vec<Term>> = Vec::new();
        let one = |values: &[Vec<Term>], at: usize| values.get(at)?.first().copied();
        match self {
            Self::Lanes(vectors) => {
                let address = one(&values, 0)?;
                let mut scalars = Routine::ALL.iter().filter(|routine| routine.words().0 == vectors);
                let routine = scalars.find(|routine| {
                    let symbol = layout.symbol_named(pool, &format!("%{}", routine.name()));
                    symbol == address
                })?;
                let lane_of = |lane: usize| values[1..].iter().map(|lanes| lanes[lane]).collect::<Vec<Term>>();
                let results = (0..LANES as usize).map(|lane| {
                    let result = float(pool, *routine, &lane_of(lane));
                    pool.extract(WORD - 1, 0, result)
                });
                out.push(results.collect());
            }
            Self::Enter { between_cores } => {
                let pointer = one(&values, 0)?;
                let low = pool.extract(1, 0, pointer);
                let zero = pool.int(2, 0);
                claims.push(pool.eq(low, zero));
                let area = region(pool, pointer, sp);
                let word = state.memory.load(pool, area, pointer, WORD / 8);
                let taken = pool.int(8, 1);
                let locks = LOCKS.map(|lock| pool.var(lock, WORD));
                for &lock in &locks[..1 + usize::from(between_cores)] {
                    state.memory.store(pool, Region::Locks, lock, taken);
                }
                out = match between_cores {
                    false => vec![vec![locks[0]], vec![word]],
                    true => vec![vec![locks[1]], vec![locks[0]]],
                };
            }
            Self::Gather => {
                let addresses = values.first()?.clone();
                let words = addresses
                    .into_iter()
                    .map(|address| state.memory.load(pool, Region::Scratchpad, address, WORD / 8));
                out.push(words.collect());
            }
            Self::Scatter => {
                let mask = one(&values, 2)?;
                for lane in 0..LANES as usize {
                    let (&address, &word) = (values[0].get(lane)?, values[1].get(lane)?);
                    store_lane(pool, state, Region::Scratchpad, address, word, mask, lane as u32);
                }
            }
            Self::Store { bits, scratchpad } => {
                let (pointer, mask) = (one(&values, 0)?, one(&values, 2)?);
                let area = match scratchpad {
                    true => Region::Scratchpad,
                    false => region(pool, pointer, sp),
                };
                let above = pool.extract(WORD - 1, LANES, mask);
                let zero = pool.int(WORD - LANES, 0);
                claims.push(pool.eq(above, zero));
                for lane in 0..LANES {
                    let offset = pool.int(WORD, u64::from(lane * bits / 8));
                    let address = pool.add(pointer, offset);
                    let element = pool.extract(bits - 1, 0, *values[1].get(lane as usize)?);
                    store_lane(pool, state, area, address, element, mask, lane);
                }
            }
        }
        clobber(pool, &sig, state);
        for (places, lanes) in sig.rets.iter().zip(out) {
            let Some(&Place::Reg(reg)) = places.first() else {
                return None;
            };
            for (lane, value) in lanes.into_iter().enumerate() {
                state.set(reg, lane as u32, value);
            }
        }
        Some(claims)
    }
}

/// Stores an element if the mask has its lane.
fn store_lane(pool: &mut Pool, state: &mut State, area: Region, address: Term, element: Term, mask: Term, lane: u32) {
    let enabled = pool.extract(lane, lane, mask);
    let bytes = pool.width(element) / 8;
    let old = match pool.is_true(enabled) {
        true => element,
        false => state.memory.load(pool, area, address, bytes),
    };
    let value = pool.ite(enabled, element, old);
    state.memory.store(pool, area, address, value);
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
