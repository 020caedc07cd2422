//! Operations across lanes: widening, narrowing, sums of neighbors, lookups of lanes.

use super::{Clif, Lanes, State, Unsupported};
use crate::term::{Bits, Pool, Term};
use cranelift_codegen::ir::{self, Opcode};

/// Saturates a signed number to a type of fewer bits, signed or unsigned.
pub fn saturated(pool: &mut Pool, a: Term, bits: u32, signed: bool) -> Term {
    let width = pool.width(a);
    let (least, most) = match signed {
        true => (Bits::ones(width).shl(bits - 1, width), Bits::ones(bits - 1)),
        false => (Bits::ZERO, Bits::ones(bits)),
    };
    let (least, most) = (pool.constant(width, least), pool.constant(width, most));
    let (below, above) = (pool.slt(a, least), pool.slt(most, a));
    let inner = pool.ite(above, most, a);
    let inner = pool.ite(below, least, inner);
    pool.extract(bits - 1, 0, inner)
}

/// Saturates an unsigned number to an unsigned type of fewer bits.
pub fn saturated_unsigned(pool: &mut Pool, a: Term, bits: u32) -> Term {
    let width = pool.width(a);
    let most = pool.constant(width, Bits::ones(bits));
    let above = pool.ult(most, a);
    let inner = pool.ite(above, most, a);
    pool.extract(bits - 1, 0, inner)
}

/// Returns the product of two fixed-point numbers with one bit before the point, rounded to
/// nearest, and saturated or truncated.
pub fn fixed_point_product(pool: &mut Pool, a: Term, b: Term, saturates: bool) -> Term {
    let width = pool.width(a);
    let wide = 2 * width;
    let (x, y) = (pool.sext(a, wide), pool.sext(b, wide));
    let product = pool.mul(x, y);
    let half = pool.constant(wide, Bits::bit(width - 2));
    let rounded = pool.add(product, half);
    let shifted = pool.ashr_const(rounded, width - 1);
    match saturates {
        true => saturated(pool, shifted, width, true),
        false => pool.extract(width - 1, 0, shifted),
    }
}

/// Returns the lane with this index, or zero if the index is out of range.
fn lookup(pool: &mut Pool, lanes: &[Term], index: Term) -> Term {
    let width = lanes.first().map_or(1, |&lane| pool.width(lane));
    let mut found = pool.int(width, 0);
    for (number, &lane) in lanes.iter().enumerate() {
        let number = pool.int(pool.width(index), number as u64);
        let same = pool.eq(index, number);
        found = pool.ite(same, lane, found);
    }
    found
}

impl Clif<'_> {
    /// Executes an operation across lanes. Returns `None` for other operations.
    pub(super) fn across(&mut self, inst: ir::Inst, state: &State) -> Result<Option<Lanes>, Unsupported> {
        let dfg = &self.func.dfg;
        let op = dfg.insts[inst].opcode();
        let args = dfg.inst_args(inst).to_vec();
        let Some(&result) = dfg.inst_results(inst).first() else {
            return Ok(None);
        };
        let ty = dfg.value_type(result);
        let bits = ty.lane_bits();
        let a = || self.value(state, args[0]);
        let both = || Ok::<_, Unsupported>((self.value(state, args[0])?, self.value(state, args[1])?));
        Ok(Some(match op {
            Opcode::SwidenLow | Opcode::SwidenHigh | Opcode::UwidenLow | Opcode::UwidenHigh => {
                let a = a()?;
                let half = a.len() / 2;
                let lanes = match op {
                    Opcode::SwidenLow | Opcode::UwidenLow => &a[..half],
                    _ => &a[half..],
                };
                let signed = matches!(op, Opcode::SwidenLow | Opcode::SwidenHigh);
                let extend = |&lane: &Term| match signed {
                    true => self.pool.sext(lane, bits),
                    false => self.pool.zext(lane, bits),
                };
                lanes.iter().map(extend).collect()
            }
            Opcode::Snarrow | Opcode::Unarrow | Opcode::Uunarrow => {
                let (a, b) = both()?;
                let narrow = |lane| match op {
                    Opcode::Uunarrow => saturated_unsigned(self.pool, lane, bits),
                    _ => saturated(self.pool, lane, bits, op == Opcode::Snarrow),
                };
                a.into_iter().chain(b).map(narrow).collect()
            }
            Opcode::IaddPairwise => {
                let (a, b) = both()?;
                let all = [a, b].concat();
                all.chunks_exact(2)
                    .map(|pair| self.pool.add(pair[0], pair[1]))
                    .collect()
            }
            Opcode::X86Pmaddubsw => {
                let (a, b) = both()?;
                let mut products = Vec::new();
                for (x, y) in a.into_iter().zip(b) {
                    let (x, y) = (self.pool.sext(x, 2 * bits), self.pool.zext(y, 2 * bits));
                    products.push(self.pool.mul(x, y));
                }
                let sum = |pair: &[Term]| {
                    let sum = self.pool.add(pair[0], pair[1]);
                    saturated(self.pool, sum, bits, true)
                };
                products.chunks_exact(2).map(sum).collect()
            }
            Opcode::Swizzle | Opcode::X86Pshufb => {
                let (a, b) = both()?;
                let find = |index| {
                    let found = match op {
                        Opcode::Swizzle => return lookup(self.pool, &a, index),
                        _ => {
                            let low = self.pool.extract(3, 0, index);
                            lookup(self.pool, &a, low)
                        }
                    };
                    let top = self.pool.extract(bits - 1, bits - 1, index);
                    let zero = self.pool.int(bits, 0);
                    self.pool.ite(top, zero, found)
                };
                b.into_iter().map(find).collect()
            }
            _ => return Ok(None),
        }))
    }
}
