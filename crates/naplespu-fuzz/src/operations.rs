//! The instructions of generated functions: those that the interpreter executes correctly, on each
//! supported type.
//!
//! CLIF leaves the bits of a NaN open, so they must not become an integer: a NaN is replaced by
//! zero before a float is read as bits.

use super::body::Body;
use super::generate::{Line, Ty, constant, ty};
use arbitrary::Result;

const BINARY: &[&str] = &[
    "iadd", "isub", "imul", "band", "bor", "bxor", "umulhi", "smulhi", "smin", "smax", "umin", "umax",
];
const DIVISIONS: &[&str] = &["udiv", "urem", "sdiv", "srem"];
const SHIFTS: &[&str] = &["ishl", "ushr", "sshr", "rotl", "rotr"];
const UNARY: &[&str] = &["ineg", "iabs", "bnot", "clz", "ctz", "cls", "popcnt", "bitrev"];
const OVERFLOW: &[&str] = &[
    "uadd_overflow",
    "sadd_overflow",
    "usub_overflow",
    "ssub_overflow",
    "umul_overflow",
    "smul_overflow",
];
const FLOAT_BINARY: &[&str] = &["fadd", "fsub", "fmul", "fdiv", "fmin", "fmax"];
const FLOAT_UNARY: &[&str] = &["fneg", "fabs", "sqrt", "ceil", "floor", "trunc", "nearest"];

/// Returns the text of an instruction for the given names of its results.
type Writer = Box<dyn Fn(&str) -> String>;

impl Body<'_, '_> {
    /// Adds one instruction and the instructions that it needs.
    pub fn instruction(&mut self) -> Result<()> {
        let w = ty(self.u)?;
        if w.is_float() {
            return self.float(w);
        }
        match self.u.int_in_range(0..=17)? {
            0..=3 => {
                let (mut op, a, b) = (*self.u.choose(BINARY)?, self.value(w)?, self.value(w)?);
                if w == Ty::I128 && op.ends_with("mulhi") {
                    // The interpreter does not have a type for the full product.
                    op = "imul";
                }
                self.push(&[w], format!("{op} {a}, {b}"));
            }
            4 => {
                let (op, a, mut b) = (*self.u.choose(DIVISIONS)?, self.value(w)?, self.value(w)?);
                if self.u.ratio(9, 10)? {
                    let one = self.constant(w, 1);
                    b = format!("v{}", self.push(&[w], format!("bor {b}, v{one}"))[0].0);
                }
                let interpreted = if op == "srem" {
                    // The interpreter reports an overflow for the remainder of the smallest number
                    // by -1. The remainder by 1 is 0 as well.
                    let (one, minus_one) = (self.constant(w, 1), self.constant(w, u128::MAX));
                    let is_minus_one = self.hidden(Ty::I8, format!("icmp eq {b}, v{minus_one}"));
                    let divisor = self.hidden(w, format!("select v{is_minus_one}, v{one}, {b}"));
                    Some(format!("{op} {a}, v{divisor}"))
                } else {
                    None
                };
                self.push_with(&[w], format!("{op} {a}, {b}"), interpreted);
            }
            5 | 6 => {
                let amount = self.int()?;
                let (op, a, b) = (*self.u.choose(SHIFTS)?, self.value(w)?, self.value(amount)?);
                self.push(&[w], format!("{op} {a}, {b}"));
            }
            7 => {
                let (op, a) = (*self.u.choose(UNARY)?, self.value(w)?);
                let op = if w != Ty::I8 && self.u.ratio(1, 9)? {
                    "bswap"
                } else {
                    op
                };
                self.push(&[w], format!("{op} {a}"));
            }
            8 => {
                self.condition()?;
            }
            9 => self.select(w)?,
            10 => {
                let (c, a, b) = (self.value(w)?, self.value(w)?, self.value(w)?);
                self.push(&[w], format!("bitselect {c}, {a}, {b}"));
            }
            11 => self.convert(w)?,
            12 => self.overflow(w)?,
            13 | 14 => self.memory()?,
            15 => {
                let c = self.condition()?.0;
                if self.u.ratio(1, 8)? {
                    let op = if self.u.arbitrary()? { "trapz" } else { "trapnz" };
                    let code = self.u.int_in_range(1..=9)?;
                    self.push(&[], format!("{op} {c}, user{code}"));
                }
            }
            _ => self.call()?,
        }
        Ok(())
    }

    fn select(&mut self, w: Ty) -> Result<()> {
        let c = self.condition()?.0;
        let (a, b) = (self.value(w)?, self.value(w)?);
        let guard = !w.is_float() && self.u.ratio(1, 6)?;
        let op = if guard { "select_spectre_guard" } else { "select" };
        self.push(&[w], format!("{op} {c}, {a}, {b}"));
        Ok(())
    }

    fn convert(&mut self, w: Ty) -> Result<()> {
        let to = self.int()?;
        let a = self.value(w)?;
        if self.u.ratio(1, 6)? {
            if w == Ty::I128 {
                self.push(&[Ty::I64, Ty::I64], format!("isplit {a}"));
            } else {
                let (low, high) = (self.value(Ty::I64)?, self.value(Ty::I64)?);
                self.push(&[Ty::I128], format!("iconcat {low}, {high}"));
            }
            return Ok(());
        }
        let text = match to.cmp(&w) {
            std::cmp::Ordering::Less => format!("ireduce.{to} {a}"),
            std::cmp::Ordering::Equal => format!("bmask.{to} {a}"),
            std::cmp::Ordering::Greater => {
                let op = if self.u.arbitrary()? { "uextend" } else { "sextend" };
                format!("{op}.{to} {a}")
            }
        };
        self.push(&[to], text);
        Ok(())
    }

    fn overflow(&mut self, w: Ty) -> Result<()> {
        let (a, b) = (self.value(w)?, self.value(w)?);
        match self.u.int_in_range(0..=8)? {
            0 | 1 => {
                let (carry, of) = self.condition()?;
                let op = if self.u.arbitrary()? {
                    "uadd_overflow_cin"
                } else {
                    "usub_overflow_bin"
                };
                // A condition has any width; a carry is 0 or 1 as an i8.
                let zero = self.constant(of, 0);
                let carry = self.push(&[Ty::I8], format!("icmp ne {carry}, v{zero}"))[0].0;
                self.push(&[w, Ty::I8], format!("{op} {a}, {b}, v{carry}"));
            }
            2 if matches!(w, Ty::I32 | Ty::I64) => {
                self.push(&[w], format!("uadd_overflow_trap {a}, {b}, user7"));
            }
            _ => {
                let mut op = *self.u.choose(OVERFLOW)?;
                if w == Ty::I128 && op.contains("mul") {
                    // CLIF does not have this form.
                    op = "sadd_overflow";
                }
                self.push(&[w, Ty::I8], format!("{op} {a}, {b}"));
            }
        }
        Ok(())
    }

    /// Replaces a NaN by zero.
    fn no_nan(&mut self, w: Ty, value: &str) -> u32 {
        let nan = self.push(&[Ty::I8], format!("fcmp uno {value}, {value}"))[0].0;
        let zero = self.constant(w, 0);
        self.push(&[w], format!("select v{nan}, v{zero}, {value}"))[0].0
    }

    fn float(&mut self, w: Ty) -> Result<()> {
        let a = self.value(w)?;
        match self.u.int_in_range(0..=13)? {
            0..=3 => {
                let (op, b) = (*self.u.choose(FLOAT_BINARY)?, self.value(w)?);
                self.push(&[w], format!("{op} {a}, {b}"));
            }
            4 | 5 => {
                let op = *self.u.choose(FLOAT_UNARY)?;
                self.push(&[w], format!("{op} {a}"));
            }
            6 => {
                let (b, c) = (self.value(w)?, self.value(w)?);
                self.push(&[w], format!("fma {a}, {b}, {c}"));
            }
            7 => {
                let b = self.value(w)?;
                let b = self.no_nan(w, &b);
                self.push(&[w], format!("fcopysign {a}, v{b}"));
            }
            8 => self.select(w)?,
            9 => {
                let bits = if w == Ty::F32 { Ty::I32 } else { Ty::I64 };
                if self.u.arbitrary()? {
                    let a = self.no_nan(w, &a);
                    self.push(&[bits], format!("bitcast.{bits} v{a}"));
                } else {
                    let a = self.value(bits)?;
                    self.push(&[w], format!("bitcast.{w} {a}"));
                }
            }
            10 => {
                if w == Ty::F32 {
                    self.push(&[Ty::F64], format!("fpromote.f64 {a}"));
                } else {
                    self.push(&[Ty::F32], format!("fdemote.f32 {a}"));
                }
            }
            11 => {
                let from = self.int()?;
                let (sign, a) = (self.sign()?, self.value(from)?);
                self.push(&[w], format!("fcvt_from_{sign}int.{w} {a}"));
            }
            12 => self.int_from_float(&a)?,
            _ => {
                // A constant in the range where conversions and sums are not trivial.
                let bits = constant(self.u, w)?;
                self.constant(w, bits);
            }
        }
        Ok(())
    }

    fn sign(&mut self) -> Result<char> {
        Ok(if self.u.arbitrary()? { 'u' } else { 's' })
    }

    fn int_from_float(&mut self, a: &str) -> Result<()> {
        let (to, mut sign) = (self.int()?, self.sign()?);
        // The interpreter computes all of them in an i128.
        let saturates = to == Ty::I128 || self.u.ratio(5, 6)?;
        if to == Ty::I128 {
            sign = 's';
        }
        let suffix = if saturates { "_sat" } else { "" };
        self.push(&[to], format!("fcvt_to_{sign}int{suffix}.{to} {a}"));
        Ok(())
    }

    /// Initializes a stack slot with known contents.
    pub fn fill(&mut self, slot: usize) -> Result<()> {
        let size = self.funcs[self.index].slots[slot];
        let word = constant(self.u, Ty::I32)?;
        let address = self.hidden(Ty::I32, format!("stack_addr.i32 ss{slot}"));
        let word = self.constant(Ty::I32, word);
        for offset in (0..size).step_by(4) {
            self.push(&[], format!("store v{word}, v{address}+{offset}"));
        }
        Ok(())
    }

    /// Adds a load or store at a random position of a slot. Addresses never become operands of
    /// arithmetic, because they differ from the interpreter's.
    fn memory(&mut self) -> Result<()> {
        let slots = &self.funcs[self.index].slots;
        if slots.is_empty() {
            return Ok(());
        }
        let slot = self.u.choose_index(slots.len())?;
        let size = slots[slot];
        let (access, wide) = (ty(self.u)?, self.int()?);
        let bytes = access.bits() / 8;
        if bytes > size {
            return Ok(());
        }
        let dynamic = self.u.arbitrary()?;
        // The computed index selects within the lower half of the slot, and the constant offset
        // selects the upper half.
        let (span, offset) = if dynamic && size >= 2 * bytes {
            (size / 2, self.u.int_in_range(0..=size / 2 - bytes)?)
        } else {
            (0, self.u.int_in_range(0..=size - bytes)?)
        };
        let start = if span == 0 { self.u.int_in_range(0..=offset)? } else { 0 };
        let mut address = self.hidden(Ty::I32, format!("stack_addr.i32 ss{slot}+{start}"));
        if span > 0 {
            let index = self.value(Ty::I32)?;
            let mask = self.constant(Ty::I32, u128::from(span - 1));
            let index = self.push(&[Ty::I32], format!("band {index}, v{mask}"))[0].0;
            address = self.hidden(Ty::I32, format!("iadd v{address}, v{index}"));
        }
        let at = format!("v{address}+{}", offset - start);
        // The interpreter does not align its slots, so only the compiler's text has the flag.
        let aligned = span == 0 && offset % bytes == 0 && self.u.arbitrary()?;
        let flags = if aligned { " aligned" } else { "" };
        let narrow = !access.is_float() && wide > access && wide <= Ty::I64;
        let (defs, make): (Vec<Ty>, Writer) = if self.u.arbitrary()? {
            if narrow {
                let value = self.value(wide)?;
                (
                    vec![],
                    Box::new(move |flags| format!("istore{}{flags} {value}, {at}", access.bits())),
                )
            } else {
                let mut value = self.value(access)?;
                if access.is_float() {
                    value = format!("v{}", self.no_nan(access, &value));
                }
                (vec![], Box::new(move |flags| format!("store{flags} {value}, {at}")))
            }
        } else if narrow && access != Ty::I32 {
            // The interpreter treats `uload32` and `sload32` as loads of an i32 if the address is
            // an i32.
            let (sign, bits) = (self.sign()?, access.bits());
            (
                vec![wide],
                Box::new(move |flags| format!("{sign}load{bits}.{wide}{flags} {at}")),
            )
        } else {
            (
                vec![access],
                Box::new(move |flags| format!("load.{access}{flags} {at}")),
            )
        };
        self.push_with(&defs, make(flags), Some(make("")));
        Ok(())
    }

    /// Adds a value that later instructions do not use.
    pub fn hidden(&mut self, ty: Ty, text: String) -> u32 {
        let def = self.fresh(ty);
        self.blocks[self.current].lines.push(Line {
            defs: vec![def],
            text,
            interpreted: None,
        });
        def.0
    }

    fn call(&mut self) -> Result<()> {
        let first = self.index + 1;
        if first >= self.funcs.len() {
            return Ok(());
        }
        let callee = self.u.int_in_range(first..=self.funcs.len() - 1)?;
        let (params, returns) = (self.funcs[callee].params.clone(), self.funcs[callee].returns.clone());
        let args: Result<Vec<String>> = params.iter().map(|&w| self.value(w)).collect();
        let args = args?.join(", ");
        let direct = format!("call fn{callee}({args})");
        if self.u.ratio(1, 3)? {
            let address = self.fresh(Ty::I32);
            let interpreted = Some("iconst.i32 0".to_owned());
            let line = Line {
                defs: vec![address],
                text: format!("func_addr.i32 fn{callee}"),
                interpreted,
            };
            self.blocks[self.current].lines.push(line);
            let indirect = format!("call_indirect sig{callee}, v{}({args})", address.0);
            self.push_with(&returns, indirect, Some(direct));
        } else {
            self.push(&returns, direct);
        }
        Ok(())
    }
}
