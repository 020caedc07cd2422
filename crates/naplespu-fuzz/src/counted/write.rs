//! Writes the text of a function: values, constants, operations.

use super::dice::Dice;
use super::params::Param;
use crate::generate::Ty;
use std::fmt::Write as _;

/// The first number of a value in the body. Parameters have lower numbers.
const FIRST: u32 = 100;

/// The kinds of loops in a function, chosen so that each pass receives loops that it can transform.
#[derive(Clone, Debug)]
pub struct Style {
    /// The types of elements in memory.
    pub elements: Vec<Ty>,
    /// Loops can be vectorized: 32-bit counters, steps that fit, no early exits.
    pub plain: bool,
    /// `plain` holds, and every access moves by one element per iteration.
    pub pure: bool,
    /// Bounds checks that trap.
    pub checks: bool,
    /// Early exits.
    pub exits: bool,
    /// Float arithmetic, which needs `strict_float`.
    pub floats: bool,
    /// Accesses promise alias regions.
    pub regions: bool,
    /// Accesses promise alignment where it holds.
    pub aligned: bool,
    /// The largest depth of a loop nest.
    pub depth: usize,
}

/// A counter of an open loop.
#[derive(Clone, Debug)]
pub struct Counter {
    /// The value.
    pub value: String,
    /// The type.
    pub ty: Ty,
    /// The first value, if it is constant.
    pub start: Option<i64>,
    /// The increment of each iteration.
    pub step: i64,
}

/// A base for addresses: `value + bias` lies within the memory.
#[derive(Clone, Debug)]
pub struct Base {
    /// The value.
    pub value: String,
    /// The constant to add.
    pub bias: u32,
    /// The alignment of the sum in bytes.
    pub align: u32,
    /// The increment per iteration in bytes if the base is an induction variable; addresses then
    /// need no counter.
    pub moves: Option<i64>,
    /// The number of open loops around the base's definition, if it is an induction variable.
    pub depth: usize,
    /// The stack slot that holds the address, if each access reloads it.
    pub slot: Option<usize>,
    /// The alias region.
    pub region: usize,
}

/// An open loop.
#[derive(Clone, Debug)]
pub struct Open {
    /// The block after the loop.
    pub exit: u32,
    /// The arguments for that block: types, and values that dominate the whole loop.
    pub out: Vec<(Ty, String)>,
}

/// The state of a function that is being written.
pub struct Writer<'u, 'd> {
    /// The source of choices.
    pub dice: Dice<'u, 'd>,
    /// The style.
    pub style: Style,
    /// The text of the blocks so far.
    pub text: String,
    /// The parameters so far.
    pub params: Vec<Param>,
    /// The values in scope.
    pub pool: Vec<(String, Ty)>,
    /// The counters in scope, the innermost last.
    pub counters: Vec<Counter>,
    /// The bases in scope.
    pub bases: Vec<Base>,
    /// The open loops.
    pub open: Vec<Open>,
    /// The sizes of stack slots in bytes.
    pub slots: Vec<u32>,
    /// The last address that the current block computed.
    pub last: Option<super::access::Sum>,
    /// The number of statements that may still be added.
    pub budget: i64,
    next: u32,
    blocks: u32,
}

impl<'u, 'd> Writer<'u, 'd> {
    /// Creates an empty function.
    pub fn new(dice: Dice<'u, 'd>, style: Style) -> Self {
        Self {
            dice,
            style,
            text: String::new(),
            params: Vec::new(),
            pool: Vec::new(),
            counters: Vec::new(),
            bases: Vec::new(),
            open: Vec::new(),
            slots: Vec::new(),
            last: None,
            budget: 40,
            next: FIRST,
            blocks: 1,
        }
    }

    /// Adds a parameter and returns its value.
    pub fn param(&mut self, param: Param) -> String {
        self.params.push(param);
        format!("v{}", self.params.len() - 1)
    }

    /// Returns the number of a new block.
    pub fn block(&mut self) -> u32 {
        self.blocks += 1;
        self.blocks - 1
    }

    /// Begins a block and returns its parameters.
    pub fn begin(&mut self, block: u32, types: &[Ty]) -> Vec<String> {
        let values: Vec<String> = types.iter().map(|_| self.fresh()).collect();
        self.begin_with(block, &values, types);
        values
    }

    /// Begins a block with these parameters.
    pub fn begin_with(&mut self, block: u32, values: &[String], types: &[Ty]) {
        let params: Vec<String> = values.iter().zip(types).map(|(v, ty)| format!("{v}: {ty}")).collect();
        let list = if params.is_empty() {
            String::new()
        } else {
            format!("({})", params.join(", "))
        };
        self.last = None;
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "block{block}{list}:");
    }

    /// Returns a new value number.
    pub fn fresh(&mut self) -> String {
        self.next += 1;
        format!("v{}", self.next - 1)
    }

    /// Adds an instruction without results.
    pub fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "    {text}");
    }

    /// Adds an instruction and returns its result.
    pub fn push(&mut self, text: &str) -> String {
        let value = self.fresh();
        let _ = writeln!(self.text, "    {value} = {text}");
        value
    }

    /// Adds a constant.
    pub fn constant(&mut self, ty: Ty, number: i64) -> String {
        if ty == Ty::F32 {
            let bits = (number as f32).to_bits();
            let float = cranelift_codegen::ir::immediates::Ieee32::with_bits(bits);
            return self.push(&format!("f32const {float}"));
        }
        let number = super::params::wrapped(number, ty);
        self.push(&format!("iconst.{ty} {number}"))
    }

    /// Returns a value of the type: a constant, or one in scope, where recent values are more
    /// frequent.
    pub fn any(&mut self, ty: Ty) -> String {
        let fitting: Vec<usize> = (0..self.pool.len()).filter(|&at| self.pool[at].1 == ty).collect();
        if fitting.is_empty() || self.dice.chance(1, 12) {
            let number = match self.dice.below(4) {
                0 => super::params::number(&mut self.dice),
                _ => self.dice.range(-9, 100),
            };
            return self.constant(ty, if ty == Ty::F32 { number.clamp(-100, 100) } else { number });
        }
        let newer = fitting.len().saturating_sub(4);
        let from = if self.dice.chance(2, 3) {
            &fitting[newer..]
        } else {
            &fitting[..]
        };
        self.pool[self.dice.one_of(from)].0.clone()
    }

    /// Converts a value to another type, if the type differs.
    pub fn convert(&mut self, value: &str, from: Ty, to: Ty) -> String {
        match (from, to) {
            _ if from == to => value.to_owned(),
            (Ty::F32, _) => {
                let value = match self.style.floats {
                    true => self.number_only(value),
                    false => value.to_owned(),
                };
                let word = self.push(&format!("bitcast.i32 {value}"));
                self.convert(&word, Ty::I32, to)
            }
            (_, Ty::F32) => {
                let small = self.convert(value, from, Ty::I16);
                self.push(&format!("fcvt_from_sint.f32 {small}"))
            }
            _ if from.bits() > to.bits() => self.push(&format!("ireduce.{to} {value}")),
            _ => {
                let extend = self.dice.one_of(&["uextend", "sextend"]);
                self.push(&format!("{extend}.{to} {value}"))
            }
        }
    }

    /// Adds a comparison.
    pub fn compare(&mut self) -> String {
        let ty = self.some_type();
        if ty == Ty::F32 {
            let (a, b) = (self.any(ty), self.any(ty));
            let code = self
                .dice
                .one_of(&["eq", "ne", "lt", "le", "gt", "ge", "uno", "ord", "ult", "one"]);
            return self.push(&format!("fcmp {code} {a}, {b}"));
        }
        let a = self.any(ty);
        let b = match self.dice.below(3) {
            0 => {
                let number = self.dice.range(-3, 200);
                self.constant(ty, number)
            }
            _ => self.any(ty),
        };
        let code = self
            .dice
            .one_of(&["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]);
        self.push(&format!("icmp {code} {a}, {b}"))
    }

    /// Returns the type of a recent value in scope, or i32.
    pub fn some_type(&mut self) -> Ty {
        match self.pool.len() {
            0 => Ty::I32,
            count => {
                let low = count.saturating_sub(8);
                let at = self.dice.range(low as i64, count as i64 - 1);
                self.pool[at as usize].1
            }
        }
    }

    /// Adds the operation of a reduction.
    pub fn reduce(&mut self, ty: Ty, sum: &str, value: &str) -> String {
        if ty == Ty::F32 {
            return match self.style.floats {
                true => {
                    let opcode = self.dice.one_of(&["fadd", "fsub", "fmul", "fmin", "fmax"]);
                    self.push(&format!("{opcode} {sum}, {value}"))
                }
                false => {
                    let test = self.push(&format!("fcmp lt {sum}, {value}"));
                    self.push(&format!("select {test}, {sum}, {value}"))
                }
            };
        }
        let opcode = self.dice.one_of(&[
            "iadd", "iadd", "isub", "imul", "band", "bor", "bxor", "bxor", "smin", "smax", "umin", "umax",
        ]);
        match self.dice.below(6) {
            0 if opcode != "isub" => self.push(&format!("{opcode} {value}, {sum}")),
            1 if !self.style.pure => {
                let code = self.dice.one_of(&["slt", "sgt", "ult", "uge"]);
                let test = self.push(&format!("icmp {code} {sum}, {value}"));
                match self.dice.below(2) {
                    0 => self.push(&format!("select {test}, {sum}, {value}")),
                    _ => self.push(&format!("select {test}, {value}, {sum}")),
                }
            }
            _ => self.push(&format!("{opcode} {sum}, {value}")),
        }
    }

    /// Adds an operation and puts its result into scope.
    pub fn operation(&mut self) {
        let ty = self.some_type();
        let (result, ty) = if ty == Ty::F32 {
            self.on_floats()
        } else {
            self.on_integers(ty)
        };
        self.pool.push((result, ty));
    }

    fn on_floats(&mut self) -> (String, Ty) {
        let ty = Ty::F32;
        let (a, b) = (self.any(ty), self.any(ty));
        if self.style.floats && self.dice.chance(1, 2) {
            let opcode = self.dice.one_of(&["fadd", "fsub", "fmul", "fmin", "fmax"]);
            return (self.push(&format!("{opcode} {a}, {b}")), ty);
        }
        match self.dice.below(5) {
            0 => (self.push(&format!("fneg {a}")), ty),
            1 => (self.push(&format!("fabs {a}")), ty),
            2 => (self.push(&format!("fcopysign {a}, {b}")), ty),
            3 => (self.convert(&a, ty, Ty::I32), Ty::I32),
            _ => {
                let test = self.compare();
                (self.push(&format!("select {test}, {a}, {b}")), ty)
            }
        }
    }

    fn on_integers(&mut self, ty: Ty) -> (String, Ty) {
        let (a, b) = (self.any(ty), self.any(ty));
        let text = match self.dice.below(if self.style.plain { 20 } else { 26 }) {
            0 | 1 => {
                let amount = self.dice.range(0, 40);
                let amount = self.constant(Ty::I32, amount);
                let shift = self.dice.one_of(&["ishl", "ushr", "sshr", "rotl", "rotr"]);
                format!("{shift} {a}, {amount}")
            }
            2 | 3 => {
                let test = self.compare();
                format!("select {test}, {a}, {b}")
            }
            4 => {
                let (test, other) = (self.compare(), self.compare());
                let logic = self.dice.one_of(&["band", "bor", "bxor"]);
                let both = self.push(&format!("{logic} {test}, {other}"));
                match self.dice.below(2) {
                    0 => format!("select {both}, {a}, {b}"),
                    _ if ty == Ty::I8 => format!("iadd {both}, {a}"),
                    _ => format!("uextend.{ty} {both}"),
                }
            }
            5 => {
                let one = self.dice.one_of(&["ineg", "bnot", "iabs"]);
                format!("{one} {a}")
            }
            6 | 7 => {
                let to = match self.style.plain {
                    true => self.dice.one_of(&[Ty::I8, Ty::I16, Ty::I32, Ty::I32]),
                    false => self.dice.one_of(&[Ty::I8, Ty::I16, Ty::I32, Ty::I64]),
                };
                return (self.convert(&a, ty, to), to);
            }
            8 => {
                let number = super::params::number(&mut self.dice);
                let c = self.constant(ty, number);
                let opcode = self.dice.one_of(&["iadd", "band", "bor", "bxor", "imul", "isub"]);
                format!("{opcode} {a}, {c}")
            }
            9 | 10 if self.style.elements.contains(&Ty::F32) && ty.bits() < 32 => {
                return (self.push(&format!("fcvt_from_sint.f32 {a}")), Ty::F32);
            }
            20 => {
                let amount = self.some_type();
                let amount = if amount == Ty::F32 { Ty::I32 } else { amount };
                let amount = self.any(amount);
                let shift = self.dice.one_of(&["ishl", "ushr", "sshr", "rotl", "rotr"]);
                format!("{shift} {a}, {amount}")
            }
            21 => {
                let opcode = self.dice.one_of(&["clz", "ctz", "popcnt", "cls"]);
                format!("{opcode} {a}")
            }
            22 => {
                let number = self.dice.one_of(&[1, 2, 3, 5, 7, 8, 10, 16, 100, -3]);
                let c = self.constant(ty, number);
                // The interpreter traps on the remainder of the smallest number by -1.
                let opcode = self.dice.one_of(&["udiv", "urem", "sdiv", "srem"]);
                format!("{opcode} {a}, {c}")
            }
            23 => {
                let one = self.constant(ty, 1);
                let mask = self.constant(ty, 0x7f);
                let small = self.push(&format!("band {b}, {mask}"));
                let divisor = match self.style.checks {
                    true => small,
                    false => self.push(&format!("bor {small}, {one}")),
                };
                let opcode = self.dice.one_of(&["udiv", "urem", "sdiv", "srem"]);
                format!("{opcode} {a}, {divisor}")
            }
            24 => {
                let opcode = self.dice.one_of(&["umulhi", "smulhi"]);
                format!("{opcode} {a}, {b}")
            }
            25 => {
                let c = self.any(ty);
                format!("bitselect {a}, {b}, {c}")
            }
            _ => {
                let opcode = self.dice.one_of(&[
                    "iadd", "iadd", "isub", "imul", "band", "bor", "bxor", "smin", "smax", "umin", "umax",
                ]);
                format!("{opcode} {a}, {b}")
            }
        };
        (self.push(&text), ty)
    }
}
