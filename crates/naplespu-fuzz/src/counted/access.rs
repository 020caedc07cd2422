//! Loads and stores at addresses that are sums of bases, counters and constants.

use super::params::Param;
use super::write::{Base, Counter, Writer};
use crate::generate::Ty;

/// The operands of an access.
pub struct Address {
    value: String,
    offset: i32,
    flags: String,
}

/// The terms of an address.
#[derive(Clone, Debug)]
pub struct Sum {
    size: u32,
    base: Base,
    index: Vec<String>,
    total: u32,
    align: u32,
}

/// Returns the largest power of two, up to 64, that divides the number.
fn low_bit(number: i64) -> u32 {
    1 << number.trailing_zeros().min(6)
}

impl Writer<'_, '_> {
    /// Adds a parameter that is a base.
    pub fn add_base(&mut self) {
        let bias = match self.dice.below(10) {
            0 => self.dice.one_of(&[0x7fff_fffc, 0x7fff_ffc0, 0x8000_0000, 0x7fff_fff0]),
            1..=3 => (1u32 << 31).wrapping_add(self.dice.range(-140, 140) as u32),
            4 => (self.dice.range(-300, 300) as u32) & !3,
            5 if self.dice.chance(1, 2) => self.dice.bits() as u32,
            _ => 0,
        };
        let align = match self.style.aligned {
            true => self.dice.one_of(&[1, 2, 4, 4, 4, 4, 4, 8, 8, 16, 32, 64, 64]),
            false => self.dice.one_of(&[1, 1, 2, 4, 4]),
        };
        let value = self.param(Param::Base { bias, align });
        self.bases.push(Base {
            value,
            bias,
            align,
            moves: None,
            depth: 0,
            slot: None,
            region: self.bases.len(),
        });
    }

    fn add_constant(&mut self, value: &str, constant: u32) -> String {
        if constant == 0 {
            return value.to_owned();
        }
        let signed = i64::from(constant.cast_signed());
        if self.dice.chance(1, 6) {
            let c = self.constant(Ty::I32, signed.wrapping_neg());
            return self.push(&format!("isub {value}, {c}"));
        }
        let c = self.constant(Ty::I32, signed);
        match self.dice.below(3) {
            0 => self.push(&format!("iadd {c}, {value}")),
            _ => self.push(&format!("iadd {value}, {c}")),
        }
    }

    /// Returns a counter as an i32, multiplied by `scale`.
    pub fn scaled(&mut self, counter: &Counter, scale: i64, within: i64) -> String {
        let mut value = match counter.ty {
            Ty::I32 => counter.value.clone(),
            Ty::I64 => self.push(&format!("ireduce.i32 {}", counter.value)),
            _ => {
                let negative = counter.start.is_none_or(|start| start < 0);
                let extend = if negative { "sextend" } else { "uextend" };
                self.push(&format!("{extend}.i32 {}", counter.value))
            }
        };
        if within != 0 {
            value = self.add_constant(&value, within as u32);
        }
        if scale == 1 {
            return value;
        }
        if scale > 0 && scale.count_ones() == 1 && self.dice.chance(1, 2) {
            let shift = self.constant(Ty::I32, scale.trailing_zeros().into());
            return self.push(&format!("ishl {value}, {shift}"));
        }
        let factor = self.constant(Ty::I32, scale);
        self.push(&format!("imul {value}, {factor}"))
    }

    fn scale(&mut self, counter: &Counter, size: i64) -> i64 {
        let even = size % counter.step == 0;
        if self.style.pure && even && !self.dice.chance(1, 40) {
            return size / counter.step;
        }
        match self.dice.below(20) {
            0 => 2 * size,
            1 => -size,
            2 => 3 * size,
            3 => self.dice.one_of(&[1, 2, 4, 8]),
            4 => 4 * size,
            _ if even => size / counter.step,
            5..12 => size * counter.step.signum(),
            _ => size,
        }
    }

    /// Chooses an offset in bytes that is small compared with the memory.
    fn small(&mut self, size: i64, align: u32, store: bool) -> i64 {
        if store && self.style.pure && self.dice.chance(9, 10) {
            // Vectorized stores need the same alignment.
            let unit = if self.dice.chance(7, 8) { 64 } else { 16 * size };
            return self.dice.range(-2, 8) * unit;
        }
        let number = match self.dice.below(if self.style.pure { 9 } else { 12 }) {
            0 | 1 => {
                self.dice
                    .one_of(&[1, 2, 3, 4, 8, 15, 16, 17, 31, 32, -1, -2, -3, -15, -16, -17, -32])
                    * size
            }
            2 => self.dice.range(-70, 70) * size,
            3 => self.dice.range(-20, 20) * size,
            4 => self.dice.range(-300, 300),
            5 => self.dice.range(0, 130) * 4,
            6 => self.dice.range(0, 70) * 8,
            _ => 0,
        };
        // Usually a multiple of the element size.
        match i64::from(align) >= size && self.dice.chance(9, 10) {
            true => number.div_euclid(size) * size,
            false => number,
        }
    }

    /// Returns an address for an element of `size` bytes. It is sometimes close to the last address
    /// for that size.
    pub fn address(&mut self, size: u32, store: bool) -> Address {
        let last = self.last.clone().filter(|last| last.size == size);
        let mut sum = match last {
            Some(last) if self.dice.chance(1, 3) => last,
            _ => self.sum(size, store),
        };
        self.last = Some(sum.clone());
        let small = self.small(i64::from(size), sum.align, store);
        sum.total = sum.total.wrapping_add(small as u32);
        sum.align = sum.align.min(low_bit(small));
        self.address_of(sum)
    }

    /// Chooses the terms of an address, without the small constant.
    fn sum(&mut self, size: u32, store: bool) -> Sum {
        let pure = self.style.pure;
        let depth = self.counters.len();
        let moving = |base: &Base| base.moves.filter(|_| base.depth == depth);
        let fits = |base: &&Base| !pure || moving(base).is_none_or(|step| step == i64::from(size));
        let fitting: Vec<Base> = self.bases.iter().filter(fits).cloned().collect();
        let mut base = self.dice.one_of(&fitting);
        if let Some(slot) = base.slot {
            let at = self.push(&format!("stack_addr.i32 ss{slot}"));
            base.value = self.push(&format!("load.i32 notrap aligned {at}"));
        }
        let bytes = i64::from(size);
        let mut total = base.bias;
        let mut align = base.align;
        let mut index: Vec<String> = Vec::new();
        let mut within_all = 0i64;
        let needs = match moving(&base) {
            Some(_) => !pure && self.dice.chance(1, 5),
            None => (store && pure) || !self.dice.chance(1, 10),
        };
        if needs && !self.counters.is_empty() {
            let last = self.counters.len() - 1;
            let at = if pure || self.dice.chance(5, 6) {
                last
            } else {
                self.dice.below(last + 1)
            };
            let counter = self.counters[at].clone();
            let scale = self.scale(&counter, bytes);
            let within = if !(pure && store) && self.dice.chance(1, 8) {
                self.dice.range(-3, 17)
            } else {
                0
            };
            within_all = within * scale;
            index.push(self.scaled(&counter, scale, within));
            align = align.min(low_bit(scale));
            if let Some(start) = counter.start.filter(|start| start.unsigned_abs() > 100) {
                total = total.wrapping_sub((start as u32).wrapping_mul(scale as u32));
            }
            if at > 0 && self.dice.chance(1, 3) {
                let outer = self.counters[self.dice.below(at)].clone();
                let scale = match pure && self.dice.chance(4, 5) {
                    true => self.dice.one_of(&[64, 128, 256]),
                    false => self.dice.one_of(&[bytes, 4, 64, 40, 12 * bytes, 100]),
                };
                index.push(self.scaled(&outer, scale, 0));
                align = align.min(low_bit(scale));
                if let Some(start) = outer.start.filter(|start| start.unsigned_abs() > 100) {
                    total = total.wrapping_sub((start as u32).wrapping_mul(scale as u32));
                }
            }
        }
        if !self.style.plain && self.dice.chance(1, 10) {
            // An index that is loaded or computed.
            let ty = self.some_type();
            let ty = if ty == Ty::F32 { Ty::I32 } else { ty };
            let value = self.any(ty);
            let word = self.convert(&value, ty, Ty::I32);
            let mask = self.constant(Ty::I32, 63);
            let low = self.push(&format!("band {word}, {mask}"));
            let shift = self.constant(Ty::I32, size.trailing_zeros().into());
            index.push(self.push(&format!("ishl {low}, {shift}")));
            align = align.min(size);
        }
        Sum {
            size,
            base,
            index,
            total,
            align: align.min(low_bit(within_all)),
        }
    }

    fn address_of(&mut self, sum: Sum) -> Address {
        let Sum {
            size,
            mut base,
            mut index,
            total,
            align,
        } = sum;
        // The constant is in the instruction's offset, is added before or after the index, or is
        // split.
        let (before, after, offset) = match self.dice.below(8) {
            0 => (total, 0, 0),
            1 => (0, total, 0),
            2 => {
                let part = self.dice.range(0, 4) as u32 * 4;
                (total.wrapping_sub(part), 0, part)
            }
            3 => (base.bias, 0, total.wrapping_sub(base.bias)),
            4 => (0, base.bias, total.wrapping_sub(base.bias)),
            _ => (0, 0, total),
        };
        let region = base.region;
        base.value = self.add_constant(&base.value.clone(), before);
        let mut value = base.value;
        if self.dice.chance(1, 6) {
            index.reverse();
        }
        for term in index {
            value = match self.dice.below(5) {
                0 => self.push(&format!("iadd {term}, {value}")),
                _ => self.push(&format!("iadd {value}, {term}")),
            };
        }
        value = self.add_constant(&value, after);
        let mut flags = String::new();
        if self.dice.chance(2, 3) {
            flags += " notrap";
        }
        if align >= size && self.style.aligned && self.dice.chance(15, 16) {
            flags += " aligned";
        }
        if self.style.regions {
            flags += &format!(" region{region}");
        }
        Address {
            value,
            offset: offset.cast_signed(),
            flags,
        }
    }

    fn element(&mut self) -> Ty {
        self.dice.one_of(&self.style.elements.clone())
    }

    /// Adds a load.
    pub fn load(&mut self) {
        let element = self.element();
        let address = self.address(element.bits() / 8, false);
        let loaded = self.load_from(&address, element);
        self.pool.push(loaded);
    }

    fn load_from(&mut self, address: &Address, element: Ty) -> (String, Ty) {
        let Address { value, offset, flags } = address;
        let wider: &[Ty] = match (element, self.style.plain) {
            (Ty::I8 | Ty::I16, true) => &[Ty::I32],
            (Ty::I8, false) => &[Ty::I32, Ty::I16, Ty::I64],
            (Ty::I16, false) => &[Ty::I32, Ty::I64],
            (Ty::I32, false) => &[Ty::I64],
            _ => &[],
        };
        let often = element != Ty::I32;
        if !wider.is_empty() && self.dice.chance(if often { 3 } else { 1 }, 6) {
            let ty = self.dice.one_of(wider);
            let sign = self.dice.one_of(&["u", "s"]);
            let text = format!("{sign}load{}.{ty}{flags} {value}{offset:+}", element.bits());
            return (self.push(&text), ty);
        }
        let text = format!("load.{element}{flags} {value}{offset:+}");
        (self.push(&text), element)
    }

    /// Adds a store. The stored value sometimes depends on a load from the same address.
    pub fn store(&mut self) {
        let element = self.element();
        let address = self.address(element.bits() / 8, true);
        if self.dice.chance(1, 5) {
            let loaded = self.load_from(&address, element);
            self.pool.push(loaded);
            self.operation();
        }
        let Address { value, offset, flags } = &address;
        let narrows = !self.style.plain && element.bits() < 64 && element != Ty::F32 && self.dice.chance(1, 4);
        if narrows {
            let from: Vec<Ty> = [Ty::I16, Ty::I32, Ty::I64]
                .into_iter()
                .filter(|ty| ty.bits() > element.bits())
                .collect();
            let from = self.dice.one_of(&from);
            let stored = self.any(from);
            self.line(&format!("istore{}{flags} {stored}, {value}{offset:+}", element.bits()));
            return;
        }
        let stored = self.stored(element);
        self.line(&format!("store{flags} {stored}, {value}{offset:+}"));
        if self.dice.chance(1, 8) {
            let loaded = self.load_from(&address, element);
            self.pool.push(loaded);
        }
    }

    /// Returns a value of the type that may be stored. The bits of a computed NaN must not reach
    /// memory.
    fn stored(&mut self, element: Ty) -> String {
        let has = self.pool.iter().any(|(_, ty)| *ty == element);
        let value = match has || self.pool.is_empty() || self.dice.chance(1, 8) {
            true => self.any(element),
            false => {
                let from = self.some_type();
                let value = self.any(from);
                self.convert(&value, from, element)
            }
        };
        if element == Ty::F32 && self.style.floats {
            return self.number_only(&value);
        }
        value
    }

    /// Adds a base whose address is in a stack slot and is reloaded for each access.
    pub fn pointer_in_slot(&mut self) {
        let base = self.dice.one_of(&self.bases.clone());
        let slot = self.slots.len();
        self.slots.push(4);
        let at = self.push(&format!("stack_addr.i32 ss{slot}"));
        self.line(&format!("store notrap aligned {}, {at}", base.value));
        self.bases.push(Base {
            slot: Some(slot),
            ..base
        });
    }

    /// Returns the float, or 1.0 if it is a NaN.
    pub fn number_only(&mut self, value: &str) -> String {
        let test = self.push(&format!("fcmp eq {value}, {value}"));
        let one = self.constant(Ty::F32, 1);
        self.push(&format!("select {test}, {value}, {one}"))
    }
}
