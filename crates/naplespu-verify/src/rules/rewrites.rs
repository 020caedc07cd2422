//! Functions that passes over CLIF rewrite: operations on numbers with known bounds, selects, and
//! pseudo-random functions of a few operations. Only functions that the optimizer changes are
//! proved.

use super::instance::Instance;
use super::operation::Small;
use super::unrolled;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder as _, InstructionData, MemFlagsData, Opcode, Type, Value, types};

/// The types of the functions.
const TYPES: [Type; 4] = [types::I8, types::I16, types::I32, types::I64];

/// Appends a binary operation.
fn binary(small: &mut Small, opcode: Opcode, a: Value, b: Value) -> Value {
    let ty = small.func.dfg.value_type(a);
    small.instruction(InstructionData::Binary { opcode, args: [a, b] }, ty)[0]
}

/// Appends a binary operation with a constant.
fn with_constant(small: &mut Small, opcode: Opcode, a: Value, constant: i64) -> Value {
    let ty = small.func.dfg.value_type(a);
    let narrow = if ty.bits() < 64 {
        constant & ((1 << ty.bits()) - 1)
    } else {
        constant
    };
    let constant = small.cursor().ins().iconst(ty, narrow);
    binary(small, opcode, a, constant)
}

/// Appends a number with a known bound.
fn bounded(small: &mut Small, ty: Type, kind: usize) -> Option<Value> {
    Some(match kind {
        0..6 => {
            let x = small.param(ty);
            with_constant(small, Opcode::Band, x, [1, 6, 0x3f, 0xff, 0x7fff, 0xffff][kind])
        }
        6 if ty.bits() > 8 => {
            let x = small.param(types::I8);
            small.cursor().ins().uextend(ty, x)
        }
        7 => {
            let (x, y) = (small.param(types::I32), small.param(types::I32));
            let bit = small.cursor().ins().icmp(IntCC::UnsignedLessThan, x, y);
            match ty {
                types::I8 => bit,
                _ => small.cursor().ins().uextend(ty, bit),
            }
        }
        8 => {
            let x = small.param(ty);
            with_constant(small, Opcode::Ushr, x, 5)
        }
        9 if ty.bits() >= 32 => {
            let p = small.param(types::I32);
            small.cursor().ins().uload8(ty, MemFlagsData::new(), p, 0)
        }
        10 if ty.bits() >= 32 => {
            let p = small.param(types::I32);
            small.cursor().ins().uload16(ty, MemFlagsData::new(), p, 0)
        }
        11 if ty.bits() == 64 => {
            let p = small.param(types::I32);
            small.cursor().ins().uload32(MemFlagsData::new(), p, 0)
        }
        12..15 => {
            let arg = small.param(ty);
            let opcode = [Opcode::Popcnt, Opcode::Clz, Opcode::Ctz][kind - 12];
            small.instruction(InstructionData::Unary { opcode, arg }, ty)[0]
        }
        15 => small.param(ty),
        _ => return None,
    })
}

/// Operations whose result has a bound that follows from the bounds of two operands.
const BOTH: [Opcode; 8] = [
    Opcode::Iadd,
    Opcode::Imul,
    Opcode::Band,
    Opcode::Bor,
    Opcode::Bxor,
    Opcode::Umin,
    Opcode::Umax,
    Opcode::Isub,
];
/// Operations with a constant.
const WITH_CONSTANT: [(Opcode, [i64; 4]); 6] = [
    (Opcode::Ushr, [1, 4, 31, 33]),
    (Opcode::Ishl, [1, 8, 25, 33]),
    (Opcode::Urem, [1, 5, 256, 300]),
    (Opcode::Udiv, [1, 2, 16, 300]),
    (Opcode::Iadd, [1, 255, -1, 0x7fff]),
    (Opcode::Imul, [2, 3, 255, 257]),
];
/// Masks that a bound may make redundant.
const MASKS: [i64; 9] = [1, 7, 0x3f, 0x7f, 0xff, 0x1ff, 0x7fff, 0xffff, 0x7fff_ffff];

/// Masks of numbers with known bounds.
fn bounds() -> Vec<Instance> {
    let mut out = Vec::new();
    let mut add = |ty: Type, build: &dyn Fn(&mut Small) -> Option<Value>| {
        for mask in MASKS {
            let mut small = Small::default();
            let Some(value) = build(&mut small) else { return };
            let result = with_constant(&mut small, Opcode::Band, value, mask);
            small.ret(&[result]);
            out.push(Instance::new(small, ty));
        }
        if ty.bits() >= 32 {
            let mut small = Small::default();
            let Some(value) = build(&mut small) else { return };
            let result = small.cursor().ins().fcvt_from_uint(types::F32, value);
            small.ret(&[result]);
            out.push(Instance::new(small, ty));
        }
    };
    for ty in [types::I32, types::I64] {
        for first in 0..15 {
            add(ty, &|small| bounded(small, ty, first));
            for second in [0, 1, 3, 6, 8, 12, 15] {
                for opcode in BOTH {
                    add(ty, &|small| {
                        let (a, b) = (bounded(small, ty, first)?, bounded(small, ty, second)?);
                        Some(binary(small, opcode, a, b))
                    });
                }
                // The bound of a union decides about the bound of a sum with it.
                for opcode in [Opcode::Bor, Opcode::Bxor] {
                    add(ty, &|small| {
                        let (a, b) = (bounded(small, ty, first)?, bounded(small, ty, second)?);
                        let both = binary(small, opcode, a, b);
                        Some(with_constant(small, Opcode::Iadd, both, 1))
                    });
                }
                add(ty, &|small| {
                    let condition = small.param(types::I8);
                    let (a, b) = (bounded(small, ty, first)?, bounded(small, ty, second)?);
                    Some(small.cursor().ins().select(condition, a, b))
                });
            }
            for (opcode, constants) in WITH_CONSTANT {
                for constant in constants {
                    add(ty, &|small| {
                        let a = bounded(small, ty, first)?;
                        Some(with_constant(small, opcode, a, constant))
                    });
                }
            }
        }
    }
    out
}

/// Pairs of constants of a select.
const CHOICES: [(i64, i64); 14] = [
    (8, 0),
    (0, 8),
    (1, 0),
    (0, 1),
    (-1, 0),
    (0, -1),
    (5, 0),
    (0, 6),
    (5, 3),
    (3, 5),
    (8, 12),
    (100, -100),
    (7, 8),
    (0x1234, 0x1230),
];

/// The number of kinds of conditions.
const CONDITIONS: usize = 11;

/// A condition: a compare, its extension, a bit of a number, a test of a bit, a number.
fn condition(small: &mut Small, kind: usize) -> Value {
    let (x, y) = (small.param(types::I32), small.param(types::I32));
    match kind {
        0 => small.cursor().ins().icmp(IntCC::SignedLessThan, x, y),
        1 => small.cursor().ins().icmp(IntCC::Equal, x, y),
        2 => {
            let bit = small.cursor().ins().icmp(IntCC::UnsignedGreaterThanOrEqual, x, y);
            small.cursor().ins().uextend(types::I32, bit)
        }
        3 => with_constant(small, Opcode::Band, x, 1),
        4 => with_constant(small, Opcode::Band, x, 3),
        5..9 => {
            let bit = with_constant(small, Opcode::Band, x, [1, 4, 0x100, 4][kind - 5]);
            let zero = small.cursor().ins().iconst(types::I32, 0);
            let condition = if kind < 8 { IntCC::NotEqual } else { IntCC::Equal };
            small.cursor().ins().icmp(condition, bit, zero)
        }
        9 => with_constant(small, Opcode::Band, x, 4),
        _ => x,
    }
}

/// Selects between constants, between a number and an operation on it, and their equivalents.
fn selects() -> Vec<Instance> {
    let mut out = Vec::new();
    let mut add = |ty: Type, build: &dyn Fn(&mut Small) -> Vec<Value>| {
        let mut small = Small::default();
        let results = build(&mut small);
        small.ret(&results);
        out.push(Instance::new(small, ty));
    };
    let operations = [
        Opcode::Iadd,
        Opcode::Isub,
        Opcode::Bor,
        Opcode::Bxor,
        Opcode::Band,
        Opcode::Ishl,
        Opcode::Ushr,
        Opcode::Sshr,
        Opcode::Imul,
    ];
    for ty in TYPES {
        for kind in 0..CONDITIONS {
            for (a, b) in CHOICES {
                add(ty, &|small| {
                    let flag = condition(small, kind);
                    let (Some(a), Some(b)) = (small.constant(ty, a), small.constant(ty, b)) else {
                        return Vec::new();
                    };
                    vec![small.cursor().ins().select(flag, a, b)]
                });
            }
            for opcode in operations {
                for swapped in [false, true] {
                    for (number, constant) in [None, Some(1), Some(4), Some(5), Some(-3), Some(8)]
                        .into_iter()
                        .enumerate()
                    {
                        add(ty, &|small| {
                            let flag = condition(small, kind);
                            let x = small.param(ty);
                            let changed = match constant {
                                Some(constant) => with_constant(small, opcode, x, constant),
                                None => {
                                    let y = small.param(ty);
                                    binary(small, opcode, x, y)
                                }
                            };
                            let (a, b) = if swapped { (x, changed) } else { (changed, x) };
                            let chosen = small.cursor().ins().select(flag, a, b);
                            // In some functions, the operation has another use.
                            match number {
                                2 => vec![chosen, changed],
                                _ => vec![chosen],
                            }
                        });
                    }
                }
            }
            for swapped in [false, true] {
                add(ty, &|small| {
                    let flag = condition(small, kind);
                    let x = small.param(ty);
                    let zero = small.cursor().ins().iconst(ty, 0);
                    let (a, b) = if swapped { (zero, x) } else { (x, zero) };
                    vec![small.cursor().ins().select(flag, a, b)]
                });
            }
            // The negated bit as a mask.
            if ty.bits() >= 32 {
                for swapped in [false, true] {
                    add(ty, &|small| {
                        let flag = condition(small, kind);
                        let from = small.func.dfg.value_type(flag);
                        let wide = if from.bits() < ty.bits() {
                            small.cursor().ins().uextend(ty, flag)
                        } else {
                            flag
                        };
                        let mask = small.cursor().ins().ineg(wide);
                        let x = small.param(ty);
                        let (a, b) = if swapped { (mask, x) } else { (x, mask) };
                        vec![binary(small, Opcode::Band, a, b)]
                    });
                }
            }
        }
        for opcode in [Opcode::Smin, Opcode::Smax, Opcode::Umin, Opcode::Umax] {
            for constant in [0, 1, -1] {
                add(ty, &|small| {
                    let x = small.param(ty);
                    vec![with_constant(small, opcode, x, constant)]
                });
            }
        }
    }
    out
}

/// A generator of pseudo-random functions.
struct Generator {
    seed: u64,
    small: Small,
    values: Vec<Value>,
    pointer: Value,
}

impl Generator {
    fn new(seed: u64) -> Self {
        let mut small = Small::default();
        let pointer = small.param(types::I32);
        let mut values = Vec::new();
        for ty in [types::I32, types::I32, types::I8, types::I16, types::I64] {
            values.push(small.param(ty));
        }
        Self {
            seed: seed.wrapping_mul(0xd134_2543_de82_ef95),
            small,
            values,
            pointer,
        }
    }

    fn below(&mut self, count: usize) -> usize {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (crate::term::eval::mixed(self.seed) >> 20) as usize % count
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    fn ty(&mut self) -> Type {
        self.of(&[types::I32, types::I32, types::I32, types::I64, types::I8, types::I16])
    }

    fn constant(&mut self, ty: Type) -> Value {
        let value = self.of(&[
            0i64, 1, -1, 2, 3, 4, 7, 8, 16, 31, 100, 127, 128, 255, -128, -8, 0x7fff, 0xffff, 65536,
        ]);
        let keep = 64 - ty.bits();
        let narrow = ((value << keep) as u64 >> keep).cast_signed();
        self.small.cursor().ins().iconst(ty, narrow)
    }

    /// Returns a value of a type, preferably a recent one, or a constant.
    fn value(&mut self, ty: Type) -> Value {
        let is_fitting = |value: &Value| self.small.func.dfg.value_type(*value) == ty;
        let fitting: Vec<Value> = self.values.iter().copied().filter(is_fitting).collect();
        if fitting.is_empty() || self.below(5) == 0 {
            return self.constant(ty);
        }
        let recent = fitting.len().saturating_sub(3);
        let from = if self.below(3) > 0 { recent } else { 0 };
        fitting[from + self.below(fitting.len() - from)]
    }

    fn compare(&mut self) -> Value {
        let ty = self.ty();
        let (a, b) = (self.value(ty), self.value(ty));
        let condition = self.of(IntCC::all());
        self.small.cursor().ins().icmp(condition, a, b)
    }

    fn step(&mut self, may_branch: bool) {
        let ty = self.ty();
        let value = match self.below(if may_branch { 14 } else { 13 }) {
            0..5 => {
                let opcode = self.of(&[
                    Opcode::Iadd,
                    Opcode::Isub,
                    Opcode::Iadd,
                    Opcode::Isub,
                    Opcode::Band,
                    Opcode::Bor,
                    Opcode::Bxor,
                    Opcode::Umin,
                    Opcode::Umax,
                    Opcode::Smin,
                    Opcode::Smax,
                ]);
                let a = self.value(ty);
                let b = if self.below(2) == 0 {
                    self.constant(ty)
                } else {
                    self.value(ty)
                };
                binary(&mut self.small, opcode, a, b)
            }
            5..7 => {
                let opcode = self.of(&[Opcode::Ishl, Opcode::Ushr, Opcode::Sshr, Opcode::Imul, Opcode::Rotl]);
                let (a, b) = (self.value(ty), self.constant(ty));
                binary(&mut self.small, opcode, a, b)
            }
            7 => self.compare(),
            8..10 => {
                let flag = match self.below(3) {
                    0 => self.value(types::I8),
                    _ => self.compare(),
                };
                let (a, b) = (self.value(ty), self.value(ty));
                self.small.cursor().ins().select(flag, a, b)
            }
            10 => self.convert(ty),
            11 => {
                let arg = self.value(ty);
                let opcode = self.of(&[Opcode::Ineg, Opcode::Bnot, Opcode::Popcnt, Opcode::Clz]);
                self.small.instruction(InstructionData::Unary { opcode, arg }, ty)[0]
            }
            12 => {
                self.access(ty);
                return;
            }
            _ => {
                self.branch();
                return;
            }
        };
        self.values.push(value);
    }

    fn convert(&mut self, to: Type) -> Value {
        let from = self.ty();
        let value = self.value(from);
        let signed = self.below(2) == 0;
        let mut cursor = self.small.cursor();
        match from.bits().cmp(&to.bits()) {
            std::cmp::Ordering::Less if signed => cursor.ins().sextend(to, value),
            std::cmp::Ordering::Less => cursor.ins().uextend(to, value),
            std::cmp::Ordering::Equal => cursor.ins().bnot(value),
            std::cmp::Ordering::Greater => cursor.ins().ireduce(to, value),
        }
    }

    /// Appends loads or stores near one address.
    fn access(&mut self, ty: Type) {
        let offset = self.of(&[0, 0, 4, 8, 1]);
        let flags = MemFlagsData::new();
        let pointer = match self.below(3) {
            0 => with_constant(&mut self.small, Opcode::Iadd, self.pointer, 4),
            _ => self.pointer,
        };
        let value = self.value(ty);
        let word = self.value(types::I32);
        let choice = self.below(8);
        let mut cursor = self.small.cursor();
        let loaded = match choice {
            0 => {
                cursor.ins().store(flags, value, pointer, offset);
                return;
            }
            1 => {
                cursor.ins().istore8(flags, word, pointer, offset);
                return;
            }
            2 => {
                cursor.ins().istore16(flags, word, pointer, offset);
                return;
            }
            3 => cursor.ins().uload8(types::I32, flags, pointer, offset),
            4 => cursor.ins().sload16(types::I32, flags, pointer, offset),
            _ => cursor.ins().load(ty, flags, pointer, offset),
        };
        self.values.push(loaded);
    }

    /// Appends a branch whose two arms join in one block with a parameter.
    fn branch(&mut self) {
        let flag = self.compare();
        let ty = self.ty();
        let from = self.small.block;
        let known = self.values.len();
        let mut ends = Vec::new();
        for _ in 0..2 {
            let block = self.small.next_block();
            for _ in 0..self.below(3) {
                self.step(false);
            }
            let value = self.value(ty);
            ends.push((block, self.small.block, value));
            self.values.truncate(known);
        }
        let join = self.small.next_block();
        let param = self.small.func.dfg.append_block_param(join, ty);
        for &(_, end, value) in &ends {
            self.small.block = end;
            self.small.cursor().ins().jump(join, &[value.into()]);
        }
        self.small.block = from;
        self.small.cursor().ins().brif(flag, ends[0].0, &[], ends[1].0, &[]);
        self.small.block = join;
        self.values.push(param);
    }
}

/// The number of pseudo-random functions.
const RANDOM: u64 = 8_000;

fn random(seed: u64) -> Instance {
    let mut generator = Generator::new(seed);
    for at in 0..5 + seed % 7 {
        generator.step(at % 4 == 1);
    }
    let mut results: Vec<Value> = generator.values.iter().rev().take(3).copied().collect();
    results.dedup();
    let mut small = generator.small;
    small.ret(&results);
    Instance::new(small, types::INVALID)
}

/// Pairs of compares of the same operands, which must not become one.
fn compares() -> Vec<Instance> {
    let mut out = Vec::new();
    let both = |ty: Type, build: &dyn Fn(&mut Small, Value, Value) -> [Value; 2]| {
        let mut small = Small::default();
        let (a, b) = (small.param(ty), small.param(ty));
        let results = build(&mut small, a, b);
        small.ret(&results);
        Instance::new(small, ty)
    };
    for &first in IntCC::all() {
        for &second in IntCC::all() {
            out.push(both(types::I32, &|small, a, b| {
                [first, second].map(|condition| small.cursor().ins().icmp(condition, a, b))
            }));
        }
    }
    for &first in FloatCC::all() {
        for &second in FloatCC::all() {
            out.push(both(types::F32, &|small, a, b| {
                [first, second].map(|condition| small.cursor().ins().fcmp(condition, a, b))
            }));
        }
    }
    out
}

/// Sums with constants, their multiples, differences and compares.
fn sums() -> Vec<Instance> {
    let mut out = Vec::new();
    let scale = [
        (Opcode::Ishl, 2),
        (Opcode::Ishl, 33),
        (Opcode::Imul, 12),
        (Opcode::Iadd, -5),
        (Opcode::Isub, 7),
    ];
    for (inner, first) in scale {
        for (middle, second) in scale {
            for (outer, third) in [(Opcode::Iadd, 16), (Opcode::Isub, -9), (Opcode::Imul, 3)] {
                let mut small = Small::default();
                let x = small.param(types::I32);
                let a = with_constant(&mut small, inner, x, first);
                let b = with_constant(&mut small, middle, a, second);
                let c = with_constant(&mut small, outer, b, third);
                // The parts have other uses.
                let loaded = small.cursor().ins().load(types::I32, MemFlagsData::new(), b, 4);
                small.ret(&[c, loaded, a]);
                out.push(Instance::new(small, types::I32));
            }
        }
    }
    for opcode in [Opcode::Iadd, Opcode::Isub] {
        for (first, second) in [(5, 5), (5, 8), (-1, 4)] {
            for is_same in [false, true] {
                let mut small = Small::default();
                let x = small.param(types::I32);
                let y = if is_same { x } else { small.param(types::I32) };
                let a = with_constant(&mut small, Opcode::Iadd, x, first);
                let b = with_constant(&mut small, Opcode::Iadd, y, second);
                let sum = binary(&mut small, opcode, a, b);
                let mut results = vec![sum];
                for &condition in IntCC::all() {
                    results.push(small.cursor().ins().icmp(condition, a, b));
                }
                small.ret(&results);
                out.push(Instance::new(small, types::I32));
            }
        }
    }
    // An extension of a number that becomes a constant by a select of equal constants.
    for ty in [types::I8, types::I16, types::I32] {
        for constant in [-1, 100, -128, 127] {
            for opcode in [Opcode::Sextend, Opcode::Uextend] {
                let mut small = Small::default();
                let x = small.param(ty);
                let zero = with_constant(&mut small, Opcode::Band, x, 0);
                let value = with_constant(&mut small, Opcode::Iadd, zero, constant);
                let wide = small.instruction(InstructionData::Unary { opcode, arg: value }, types::I64)[0];
                small.ret(&[wide]);
                out.push(Instance::new(small, types::I64));
            }
        }
    }
    out
}

/// Returns the instances of rewrites.
pub fn instances() -> Vec<Instance> {
    let mut out = bounds();
    out.extend(selects());
    out.extend(compares());
    out.extend(sums());
    out.extend(unrolled::instances());
    out.extend((0..RANDOM).map(random));
    out
}
