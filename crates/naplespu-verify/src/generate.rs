//! Generates random functions without loops, on integers of 8 to 64 bits, to measure the prover.

use std::fmt::Write as _;

/// A random number generator.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        crate::term::eval::mixed(self.0)
    }

    fn below(&mut self, count: usize) -> usize {
        (self.next() >> 16) as usize % count.max(1)
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    /// Returns a constant of a type: often small, a power of two, or near a limit.
    fn constant(&mut self, bits: u32) -> i64 {
        let value = match self.below(7) {
            0 => self.below(17) as i64 - 8,
            1 => 1i64.wrapping_shl(self.below(bits as usize) as u32),
            2 => i64::MAX >> self.below(64),
            3 => i64::MIN >> self.below(64),
            4 => self.below(1000) as i64,
            5 => -1,
            _ => self.next() as i64,
        };
        value << (64 - bits) >> (64 - bits)
    }
}

const WIDTHS: [u32; 4] = [8, 16, 32, 64];
/// The size of the stack slot in bytes.
const SLOT: usize = 32;
/// The number of bytes used behind a pointer.
const AREA: usize = 48;

/// A value: its number and the bits of its type.
type Value = (usize, u32);

struct Generator {
    random: Random,
    text: String,
    values: Vec<Value>,
    next: usize,
    blocks: usize,
    pointer: Option<usize>,
    depth: usize,
}

/// Returns the CLIF text of a function from a seed. Its name is `%f` with the seed appended.
pub fn generate(seed: u64) -> String {
    let mut random = Random(seed);
    random.next();
    let generator = Generator {
        random,
        text: String::new(),
        values: Vec::new(),
        next: 0,
        blocks: 1,
        pointer: None,
        depth: 0,
    };
    generator.function(seed)
}

impl Generator {
    fn fresh(&mut self, bits: u32) -> usize {
        let number = self.next;
        self.next += 1;
        self.values.push((number, bits));
        number
    }

    fn line(&mut self, text: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "    {text}");
    }

    fn define(&mut self, bits: u32, text: &str) -> usize {
        let value = self.fresh(bits);
        self.line(&format!("v{value} = {text}"));
        value
    }

    /// Returns a value of a type: an existing one, preferably recent, or a constant.
    fn value(&mut self, bits: u32) -> usize {
        let fitting: Vec<usize> = self
            .values
            .iter()
            .filter(|value| value.1 == bits)
            .map(|value| value.0)
            .collect();
        if fitting.is_empty() || self.random.chance(15) {
            let constant = self.random.constant(bits);
            return self.define(bits, &format!("iconst.i{bits} {constant}"));
        }
        let from = if self.random.chance(60) {
            fitting.len().saturating_sub(4)
        } else {
            0
        };
        fitting[from + self.random.below(fitting.len() - from)]
    }

    /// Returns the last value of a type.
    fn last(&mut self, bits: u32) -> usize {
        let last = self
            .values
            .iter()
            .rev()
            .find(|value| value.1 == bits)
            .map(|value| value.0);
        last.unwrap_or_else(|| self.value(bits))
    }

    fn function(mut self, seed: u64) -> String {
        let count = 1 + self.random.below(4);
        let mut types: Vec<u32> = (0..count).map(|_| self.random.of(&WIDTHS)).collect();
        let has_pointer = self.random.chance(40);
        if has_pointer {
            types.push(32);
        }
        let params: Vec<String> = types
            .iter()
            .map(|&bits| {
                let value = self.fresh(bits);
                format!("v{value}: i{bits}")
            })
            .collect();
        if has_pointer {
            // The pointer is not an operand of arithmetic.
            self.pointer = self.values.pop().map(|value| value.0);
        }
        let returns: Vec<u32> = (0..1 + self.random.below(3)).map(|_| self.random.of(&WIDTHS)).collect();
        let size = 4 + self.random.below(30);
        self.statements(size);
        self.gather();
        let results: Vec<String> = returns.iter().map(|&bits| format!("v{}", self.last(bits))).collect();
        self.line(&format!("return {}", results.join(", ")));
        let of = |types: &[u32]| {
            let names: Vec<String> = types.iter().map(|bits| format!("i{bits}")).collect();
            names.join(", ")
        };
        format!(
            "function %f{seed}({}) -> {} {{\n    ss0 = explicit_slot {SLOT}\nblock0({}):\n{}}}\n",
            of(&types),
            of(&returns),
            params.join(", "),
            self.text
        )
    }

    /// Gives most values a use: the first result of each type combines all values of that type.
    fn gather(&mut self) {
        for bits in WIDTHS {
            let all: Vec<usize> = self
                .values
                .iter()
                .filter(|value| value.1 == bits)
                .map(|value| value.0)
                .collect();
            let Some((&first, rest)) = all.split_first() else {
                continue;
            };
            let mut sum = first;
            for &value in rest {
                if self.random.chance(75) {
                    let operation = self.random.of(&["bxor", "iadd", "isub", "bxor"]);
                    sum = self.define(bits, &format!("{operation} v{sum}, v{value}"));
                }
            }
        }
    }

    fn statements(&mut self, count: usize) {
        for _ in 0..count {
            match self.random.below(100) {
                0..6 if self.depth < 3 => self.branch(),
                6..8 if self.depth < 3 => self.table(),
                8..11 => self.trap(),
                11..20 => self.memory(),
                20..32 => self.convert(),
                32..40 => {
                    self.compare();
                }
                40..46 => self.select(),
                46..52 => self.unary(),
                52..57 => self.divide(),
                57..62 => self.overflow(),
                _ => self.binary(),
            }
        }
    }

    fn binary(&mut self) {
        let bits = self.random.of(&WIDTHS);
        let operation = self.random.of(&[
            "iadd", "isub", "imul", "band", "bor", "bxor", "ishl", "ushr", "sshr", "rotl", "rotr", "iadd", "isub",
            "imul", "umulhi", "smulhi", "smin", "umin", "smax", "umax", "ishl", "ushr", "sshr",
        ]);
        let a = self.value(bits);
        let is_shift = ["ishl", "ushr", "sshr", "rotl", "rotr"].contains(&operation);
        let amount = if is_shift { self.random.of(&WIDTHS) } else { bits };
        let b = self.value(amount);
        self.define(bits, &format!("{operation} v{a}, v{b}"));
    }

    fn unary(&mut self) {
        let bits = self.random.of(&WIDTHS);
        let operation = self.random.of(&[
            "ineg", "bnot", "iabs", "clz", "ctz", "cls", "popcnt", "bitrev", "bswap", "ineg", "bnot",
        ]);
        let bits = if operation == "bswap" && bits == 8 { 32 } else { bits };
        let a = self.value(bits);
        self.define(bits, &format!("{operation} v{a}"));
    }

    fn divide(&mut self) {
        let bits = self.random.of(&WIDTHS);
        let operation = self.random.of(&["udiv", "sdiv", "urem", "srem"]);
        let a = self.value(bits);
        let b = match self.random.below(3) {
            0 => self.value(bits),
            1 => {
                let any = self.value(bits);
                let one = self.define(bits, &format!("iconst.i{bits} 1"));
                self.define(bits, &format!("bor v{any}, v{one}"))
            }
            _ => {
                let constant = match self.random.constant(bits) {
                    0 => 3,
                    constant => constant,
                };
                self.define(bits, &format!("iconst.i{bits} {constant}"))
            }
        };
        self.define(bits, &format!("{operation} v{a}, v{b}"));
    }

    fn overflow(&mut self) {
        let bits = self.random.of(&WIDTHS);
        let operation = self.random.of(&[
            "uadd_overflow",
            "sadd_overflow",
            "usub_overflow",
            "ssub_overflow",
            "umul_overflow",
            "smul_overflow",
        ]);
        let (a, b) = (self.value(bits), self.value(bits));
        let (value, flag) = (self.next, self.next + 1);
        self.next += 2;
        self.line(&format!("v{value}, v{flag} = {operation} v{a}, v{b}"));
        self.values.extend([(value, bits), (flag, 8)]);
    }

    fn convert(&mut self) {
        let from = self.random.of(&WIDTHS);
        let to = self.random.of(&WIDTHS);
        let a = self.value(from);
        if to < from {
            self.define(to, &format!("ireduce.i{to} v{a}"));
        } else if to > from {
            let operation = self.random.of(&["uextend", "sextend"]);
            self.define(to, &format!("{operation}.i{to} v{a}"));
        } else {
            let to = self.random.of(&WIDTHS);
            self.define(to, &format!("bmask.i{to} v{a}"));
        }
    }

    fn compare(&mut self) -> usize {
        let bits = self.random.of(&WIDTHS);
        let condition = self
            .random
            .of(&["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]);
        let (a, b) = (self.value(bits), self.value(bits));
        self.define(8, &format!("icmp {condition} v{a}, v{b}"))
    }

    fn select(&mut self) {
        let condition = if self.random.chance(70) {
            self.compare()
        } else {
            self.value(8)
        };
        let bits = self.random.of(&WIDTHS);
        let (a, b) = (self.value(bits), self.value(bits));
        match self.random.below(5) {
            0 => {
                let mask = self.value(bits);
                self.define(bits, &format!("bitselect v{mask}, v{a}, v{b}"));
            }
            _ => {
                self.define(bits, &format!("select v{condition}, v{a}, v{b}"));
            }
        }
    }

    fn trap(&mut self) {
        let condition = self.compare();
        let code = 1 + self.random.below(4);
        let operation = self.random.of(&["trapz", "trapnz"]);
        self.line(&format!("{operation} v{condition}, user{code}"));
    }

    /// Emits a load or store, to the stack slot or behind the pointer.
    fn memory(&mut self) {
        let bits = self.random.of(&WIDTHS);
        let bytes = bits as usize / 8;
        let (base, room) = match self.pointer.filter(|_| self.random.chance(60)) {
            Some(pointer) => (pointer, AREA),
            None => {
                let base = self.define(32, "stack_addr.i32 ss0");
                // An address in the frame is not an operand of arithmetic.
                self.values.pop();
                // Reads only initialized memory.
                let zero = self.value(64);
                for at in (0..SLOT).step_by(8) {
                    if self.depth == 0 && self.random.chance(50) || at == 0 {
                        self.line(&format!("store v{zero}, v{base}+{at}"));
                    }
                }
                (base, 8)
            }
        };
        let offset = self.random.below(room / bytes) * bytes;
        if self.random.chance(50) {
            let value = self.value(bits);
            let flags = self.random.of(&["", "", "notrap ", "big "]);
            let flags = if bits == 8 { "" } else { flags };
            self.line(&format!("store {flags}v{value}, v{base}+{offset}"));
        } else if self.random.chance(30) {
            let (operation, width) = self
                .random
                .of(&[("uload8", 8), ("sload8", 8), ("uload16", 16), ("sload16", 16)]);
            let offset = offset.min(room - width / 8);
            self.define(64, &format!("{operation}.i64 v{base}+{offset}"));
        } else {
            self.define(bits, &format!("load.i{bits} v{base}+{offset}"));
        }
    }

    /// Emits a branch with two arms that join, with a block argument from each.
    fn branch(&mut self) {
        let condition = if self.random.chance(70) {
            self.compare()
        } else {
            self.value(8)
        };
        let bits = self.random.of(&WIDTHS);
        let first = self.blocks;
        self.blocks += 3;
        self.line(&format!("brif v{condition}, block{first}, block{}", first + 1));
        self.ways(first, 2, bits);
    }

    /// Emits a branch by a table.
    fn table(&mut self) {
        let index = self.value(32);
        let bits = self.random.of(&WIDTHS);
        let ways = 2 + self.random.below(3);
        let first = self.blocks;
        self.blocks += ways + 1;
        let entries: Vec<String> = (1..ways).map(|way| format!("block{}", first + way)).collect();
        self.line(&format!("br_table v{index}, block{first}, [{}]", entries.join(", ")));
        self.ways(first, ways, bits);
    }

    fn ways(&mut self, first: usize, ways: usize, bits: u32) {
        let join = first + ways;
        self.depth += 1;
        for way in 0..ways {
            let _ = writeln!(self.text, "block{}:", first + way);
            let known = self.values.len();
            let size = self.random.below(5);
            self.statements(size);
            let value = self.value(bits);
            self.line(&format!("jump block{join}(v{value})"));
            self.values.truncate(known);
        }
        self.depth -= 1;
        let value = self.fresh(bits);
        let _ = writeln!(self.text, "block{join}(v{value}: i{bits}):");
    }
}
