//! The text of a function: values, constants, operations.

use super::dice::Dice;
use super::params::Param;
use crate::generate::Ty;
use std::fmt::Write as _;

/// Values of the body have numbers from here on; parameters have those below.
const FIRST: u32 = 100;

/// What kind of loops a function has, so that each pass sees loops that it takes.
#[derive(Clone, Debug)]
pub struct Style {
    /// Types of elements in memory.
    pub elements: Vec<Ty>,
    /// Loops that can be vectorised: counters of 32 bits, steps that fit, no exits within.
    pub plain: bool,
    /// Plain, and every access goes from one element to the next.
    pub pure: bool,
    /// Checks of bounds that trap.
    pub checks: bool,
    /// Early exits.
    pub exits: bool,
    /// Float arithmetic, which needs `strict_float`.
    pub floats: bool,
    /// Accesses promise alias regions.
    pub regions: bool,
    /// Accesses promise alignment where it holds.
    pub aligned: bool,
    /// How deep loops nest.
    pub depth: usize,
}

/// A counter of a loop that is open.
#[derive(Clone, Debug)]
pub struct Counter {
    /// Its value.
    pub value: String,
    /// Its type.
    pub ty: Ty,
    /// Its first value, if that is a constant.
    pub start: Option<i64>,
    /// Its step.
    pub step: i64,
}

/// An address that accesses start from: `value + bias` is a place in the memory.
#[derive(Clone, Debug)]
pub struct Base {
    /// The value.
    pub value: String,
    /// What has to be added.
    pub bias: u32,
    /// The sum is a multiple of this.
    pub align: u32,
    /// By how many bytes it moves in an iteration by itself, so that no counter has to be added.
    pub moves: Option<i64>,
    /// How many loops are open in the one that it moves in.
    pub depth: usize,
    /// The stack slot that holds the address, if each access loads it.
    pub slot: Option<usize>,
    /// Its alias region.
    pub region: usize,
}

/// A loop that is open.
#[derive(Clone, Debug)]
pub struct Open {
    /// Where it leads.
    pub exit: u32,
    /// What it passes there: types, and values that are known in the whole loop.
    pub out: Vec<(Ty, String)>,
}

/// A function that is being written.
pub struct Writer<'u, 'd> {
    /// Choices.
    pub dice: Dice<'u, 'd>,
    /// Its style.
    pub style: Style,
    /// Blocks so far.
    pub text: String,
    /// Parameters so far.
    pub params: Vec<Param>,
    /// Values in scope.
    pub pool: Vec<(String, Ty)>,
    /// Counters in scope, the innermost last.
    pub counters: Vec<Counter>,
    /// Bases in scope.
    pub bases: Vec<Base>,
    /// Open loops.
    pub open: Vec<Open>,
    /// Sizes of stack slots.
    pub slots: Vec<u32>,
    /// The last address of the block.
    pub last: Option<super::access::Sum>,
    /// Statements that may still be written.
    pub budget: i64,
    next: u32,
    blocks: u32,
}

impl<'u, 'd> Writer<'u, 'd> {
    /// Nothing yet, in a style.
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

    /// A new parameter.
    pub fn param(&mut self, param: Param) -> String {
        self.params.push(param);
        format!("v{}", self.params.len() - 1)
    }

    /// The number of a new block.
    pub fn block(&mut self) -> u32 {
        self.blocks += 1;
        self.blocks - 1
    }

    /// Begins a block, and gives its parameters.
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
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "block{block}{list}:");
    }

    /// A new value.
    pub fn fresh(&mut self) -> String {
        self.next += 1;
        format!("v{}", self.next - 1)
    }

    /// An instruction without results.
    pub fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "    {text}");
    }

    /// An instruction with a result.
    pub fn push(&mut self, text: &str) -> String {
        let value = self.fresh();
        let _ = writeln!(self.text, "    {value} = {text}");
        value
    }

    /// A constant.
    pub fn constant(&mut self, ty: Ty, number: i64) -> String {
        if ty == Ty::F32 {
            let bits = (number as f32).to_bits();
            let float = cranelift_codegen::ir::immediates::Ieee32::with_bits(bits);
            return self.push(&format!("f32const {float}"));
        }
        let number = super::params::wrapped(number, ty);
        self.push(&format!("iconst.{ty} {number}"))
    }

    /// A value of the type: one in scope, the newer ones more often, or a constant.
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

    /// A value of the type made from one of another type, if there is one.
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

    /// A compare.
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

    /// The type of a value in scope, or i32.
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

    /// A reduction's operation.
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

    /// Computes something and adds it to the values in scope.
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
                // The interpreter traps at the remainder of the least number by -1.
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
