//! Random counted loops over arrays, in a form that the vectorizer accepts.
//!
//! A function fills memory, runs the loop on two arrays whose positions are arguments, and returns
//! a hash of the memory and of the values that the loop computed. Trip counts, alignments and
//! distances of the arrays are edge cases of the vectorizer.

use super::{Failure, Outcome, Programs, argument, interpret, parse};
use arbitrary::{Result, Unstructured};
use cranelift_codegen::ir::types;
use naplespu_jit::Program;
use std::fmt::Write as _;

/// Trip counts to try.
const ROUNDS: [u32; 12] = [0, 1, 2, 15, 16, 17, 31, 32, 33, 48, 64, 100];

/// Byte offsets of the two arrays.
const PLACES: [(u32, u32); 16] = [
    (0, 2048),
    (0, 2048),
    (4, 2052),
    (0, 2052),
    (8, 2048),
    (60, 2048),
    (64, 0),
    (0, 64),
    (0, 4),
    (4, 0),
    (0, 0),
    (0, 60),
    (0, 128),
    (68, 0),
    (16, 2080),
    (128, 400),
];

/// Size of the memory in bytes.
const BYTES: u32 = 4096;

/// A loop and its calls.
#[derive(Clone, Debug)]
pub struct Case {
    /// The function.
    pub text: String,
    /// Trip count and array offsets of each call.
    pub calls: Vec<[u32; 3]>,
}

/// A loop body that is being written.
struct Body<'u, 'd> {
    u: &'u mut Unstructured<'d>,
    next: u32,
    text: String,
    /// The values of type i32.
    words: Vec<String>,
    /// The values of the narrow type.
    narrow: Vec<String>,
    /// The narrow type.
    element: &'static str,
}

impl Body<'_, '_> {
    fn push(&mut self, text: &str) -> String {
        let value = format!("v{}", self.next);
        self.next += 1;
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "    {value} = {text}");
        value
    }

    fn constant(&mut self, ty: &str) -> Result<String> {
        let number = self.u.int_in_range(-9..=100)?;
        Ok(self.push(&format!("iconst.{ty} {number}")))
    }

    fn pick(&mut self, narrow: bool) -> Result<String> {
        let from = if narrow { &self.narrow } else { &self.words };
        match from.len() {
            0 => self.constant(if narrow { self.element } else { "i32" }),
            count => {
                let index = self.u.int_in_range(0..=count - 1)?;
                Ok(from[index].clone())
            }
        }
    }

    /// Returns the address of an element and a constant offset. The address has one of several
    /// equivalent forms.
    fn address(&mut self, base: &str, index: &str, bytes: u32) -> Result<(String, u32)> {
        let shift = bytes.trailing_zeros();
        let scaled = if self.u.arbitrary()? {
            let shift = self.push(&format!("iconst.i32 {shift}"));
            self.push(&format!("ishl {index}, {shift}"))
        } else {
            let factor = self.push(&format!("iconst.i32 {bytes}"));
            self.push(&format!("imul {index}, {factor}"))
        };
        let sum = self.push(&format!("iadd {base}, {scaled}"));
        let away = if self.u.ratio(1, 2)? {
            0
        } else {
            *self.u.choose(&[1, 2, 3, 4, 15, 16, 17, 32])?
        };
        Ok((sum, away * bytes))
    }

    /// Returns the size of the narrow type in bytes.
    fn narrow_bytes(&self) -> u32 {
        if self.element == "i8" { 1 } else { 2 }
    }

    /// Adds a load from one of the arrays.
    fn load(&mut self) -> Result<()> {
        let base = *self.u.choose(&["v51", "v52"])?;
        match self.u.int_in_range(0..=5)? {
            0 => {
                let (address, offset) = self.address(base, "v60", self.narrow_bytes())?;
                let loaded = self.push(&format!("load.{} notrap aligned {address}+{offset}", self.element));
                self.narrow.push(loaded);
            }
            1 => {
                let (address, offset) = self.address(base, "v60", self.narrow_bytes())?;
                let sign = *self.u.choose(&["u", "s"])?;
                let bits = self.narrow_bytes() * 8;
                let loaded = self.push(&format!("{sign}load{bits}.i32 notrap aligned {address}+{offset}"));
                self.words.push(loaded);
            }
            2 => {
                let offset = 4 * self.u.int_in_range(0..=20)?;
                let loaded = self.push(&format!("load.i32 notrap aligned {base}+{offset}"));
                self.words.push(loaded);
            }
            _ => {
                let (address, offset) = self.address(base, "v60", 4)?;
                let loaded = self.push(&format!("load.i32 notrap aligned {address}+{offset}"));
                self.words.push(loaded);
            }
        }
        Ok(())
    }

    /// Adds a store to one of the arrays.
    fn store(&mut self) -> Result<()> {
        let base = *self.u.choose(&["v52", "v52", "v51"])?;
        if self.narrow.is_empty() || self.u.ratio(2, 3)? {
            let value = self.pick(false)?;
            let (address, offset) = self.address(base, "v60", 4)?;
            let _ = writeln!(self.text, "    store notrap aligned {value}, {address}+{offset}");
        } else {
            let mut value = self.pick(true)?;
            if self.element == "i8" && self.u.ratio(1, 3)? {
                // The result of a comparison.
                let narrow = self.u.arbitrary()?;
                let (a, b) = (self.pick(narrow)?, self.pick(narrow)?);
                let code = *self.u.choose(&["eq", "ne", "slt", "uge"])?;
                value = self.push(&format!("icmp {code} {a}, {b}"));
            }
            let (address, offset) = self.address(base, "v60", self.narrow_bytes())?;
            let _ = writeln!(self.text, "    store notrap aligned {value}, {address}+{offset}");
        }
        Ok(())
    }

    fn operation(&mut self) -> Result<()> {
        let narrow = self.u.ratio(1, 3)? && !self.narrow.is_empty();
        let ty = if narrow { self.element } else { "i32" };
        let (a, b) = (self.pick(narrow)?, self.pick(narrow)?);
        let made = match self.u.int_in_range(0..=9)? {
            0 => {
                let amount = self.u.int_in_range(0..=40)?;
                let amount = self.push(&format!("iconst.i32 {amount}"));
                let shift = *self.u.choose(&["ishl", "ushr", "sshr", "rotl", "rotr"])?;
                self.push(&format!("{shift} {a}, {amount}"))
            }
            1 => {
                let code = *self.u.choose(&["eq", "ne", "slt", "sge", "ult", "ugt"])?;
                let test = self.push(&format!("icmp {code} {a}, {b}"));
                let c = self.pick(narrow)?;
                self.push(&format!("select {test}, {c}, {b}"))
            }
            2 => {
                let test = self.push(&format!("icmp ult {a}, {b}"));
                let other = self.push(&format!("icmp sle {b}, {a}"));
                let logic = *self.u.choose(&["band", "bor", "bxor"])?;
                let both = self.push(&format!("{logic} {test}, {other}"));
                if narrow {
                    self.push(&format!("select {both}, {a}, {b}"))
                } else {
                    self.push(&format!("uextend.i32 {both}"))
                }
            }
            3 => {
                let one = *self.u.choose(&["ineg", "bnot", "iabs"])?;
                self.push(&format!("{one} {a}"))
            }
            4 if narrow => {
                let extend = *self.u.choose(&["uextend", "sextend"])?;
                let wide = self.push(&format!("{extend}.i32 {a}"));
                self.words.push(wide);
                return Ok(());
            }
            4 => {
                let element = self.element;
                let low = self.push(&format!("ireduce.{element} {a}"));
                self.narrow.push(low);
                return Ok(());
            }
            5 => {
                let constant = self.constant(ty)?;
                self.push(&format!("iadd {a}, {constant}"))
            }
            _ => {
                let all = [
                    "iadd", "isub", "imul", "band", "bor", "bxor", "smin", "smax", "umin", "umax",
                ];
                let opcode = *self.u.choose(&all)?;
                self.push(&format!("{opcode} {a}, {b}"))
            }
        };
        if narrow { &mut self.narrow } else { &mut self.words }.push(made);
        Ok(())
    }
}

/// Generates a loop from bytes.
///
/// # Errors
///
/// Returns an error at the end of the bytes, which [`Unstructured`] avoids by reading zeros.
pub fn generate(u: &mut Unstructured<'_>) -> Result<Case> {
    let element = *u.choose(&["i8", "i16"])?;
    let start = u.int_in_range(0..=3u32)?;
    let known = u.ratio(1, 3)?.then(|| u.choose(&ROUNDS).copied()).transpose()?;
    let at_start: bool = u.arbitrary()?;
    let reduces: bool = u.arbitrary()?;
    let mut body = Body {
        u,
        next: 100,
        text: String::new(),
        words: Vec::new(),
        narrow: Vec::new(),
        element,
    };
    if body.u.ratio(1, 4)? {
        body.words.push("v60".to_owned());
    }
    if body.u.ratio(1, 4)? {
        body.words.push("v0".to_owned());
    }
    for _ in 0..body.u.int_in_range(1..=3)? {
        body.load()?;
    }
    for _ in 0..body.u.int_in_range(1..=6)? {
        body.operation()?;
    }
    for _ in 0..body.u.int_in_range(0..=2)? {
        body.store()?;
        // A later iteration may store to the address that this one loads from.
        if body.u.ratio(1, 3)? {
            body.operation()?;
        }
    }
    let sum = if reduces {
        let opcode = *body
            .u
            .choose(&["iadd", "isub", "imul", "bxor", "band", "bor", "smin", "umax"])?;
        let value = body.pick(false)?;
        body.push(&format!("{opcode} v61, {value}"))
    } else {
        "v61".to_owned()
    };
    let late = match body.words.last() {
        Some(last) if body.u.ratio(1, 3)? && !at_start => last.clone(),
        _ => sum.clone(),
    };
    let one = body.push("iconst.i32 1");
    let next = body.push(&format!("iadd v60, {one}"));
    let (round, next_value) = (body.text.clone(), body.next);
    let condition = *u.choose(&["slt", "ult", "ne"])?;
    let bound = match known {
        Some(rounds) => format!("iconst.i32 {}", start + rounds),
        None => "iadd v0, v53".to_owned(),
    };
    let tested = if at_start { "v60" } else { &next };
    let test = format!("v{next_value} = icmp {condition} {tested}, v54\n");
    let run = if at_start {
        format!(
            "    jump block4(v53, v55)\nblock4(v60: i32, v61: i32):\n    {test}    brif v{next_value}, block5, block6(v61, v60)\n\
             block5:\n{round}    jump block4({next}, {sum})\n"
        )
    } else {
        format!(
            "    v56 = icmp ult v53, v54\n    brif v56, block4(v53, v55), block6(v55, v53)\nblock4(v60: i32, v61: i32):\n{round}    {test}    \
             brif v{next_value}, block4({next}, {sum}), block6({late}, {next})\n"
        )
    };
    let text = format!(
        "function %f0(i32, i32, i32) -> i32 {{
    ss0 = explicit_slot {BYTES}, align = 64
block0(v0: i32, v1: i32, v2: i32):
    v3 = stack_addr.i32 ss0
    v4 = iconst.i32 0
    v5 = iconst.i32 12345
    jump block1(v4, v5)
block1(v10: i32, v11: i32):
    v12 = iconst.i32 1664525
    v13 = imul v11, v12
    v14 = iconst.i32 1013904223
    v15 = iadd v13, v14
    v16 = iconst.i32 3
    v17 = ushr v15, v16
    v18 = iadd v3, v10
    store notrap aligned v17, v18
    v19 = iconst.i32 4
    v20 = iadd v10, v19
    v21 = iconst.i32 {BYTES}
    v22 = icmp eq v20, v21
    brif v22, block2, block1(v20, v15)
block2:
    v51 = iadd v3, v1
    v52 = iadd v3, v2
    v53 = iconst.i32 {start}
    v54 = {bound}
    v55 = iconst.i32 77
{run}block6(v62: i32, v63: i32):
    v64 = iadd v62, v63
    jump block7(v4, v64)
block7(v70: i32, v71: i32):
    v72 = iadd v3, v70
    v73 = load.i32 notrap aligned v72
    v74 = iconst.i32 33
    v75 = imul v71, v74
    v76 = bxor v75, v73
    v77 = iconst.i32 4
    v78 = iadd v70, v77
    v79 = iconst.i32 {BYTES}
    v80 = icmp eq v78, v79
    brif v80, block8, block7(v78, v76)
block8:
    return v76
}}
"
    );
    let mut calls = Vec::new();
    for _ in 0..5 {
        let (x, y) = *u.choose(&PLACES)?;
        calls.push([*u.choose(&ROUNDS)?, x, y]);
    }
    Ok(Case { text, calls })
}

/// Generates a loop from bytes and compares compiler and interpreter on it.
///
/// # Errors
///
/// Returns a report of the first disagreement.
pub fn run(data: &[u8], programs: &Programs) -> std::result::Result<(), String> {
    let Ok(case) = generate(&mut Unstructured::new(data)) else {
        return Ok(());
    };
    check(&case, programs).map_err(|failure| format!("{failure}\n\n{}", case.text))
}

fn check(case: &Case, programs: &Programs) -> std::result::Result<(), Failure> {
    let functions = parse(&case.text)?;
    for (config, isa) in &programs.0 {
        let mut program = Program::with_config(isa.clone(), npu_sim::Config::testing(super::FILL_SEED));
        program.set_step_limit(super::STEPS);
        let mismatch = |message: String| Failure::Mismatch {
            config: config.clone(),
            message,
        };
        for function in &functions {
            program
                .define(function)
                .map_err(|error| mismatch(format!("did not compile: {error}")))?;
        }
        for call in &case.calls {
            let args: Vec<_> = call.iter().map(|&arg| argument(types::I32, arg.into())).collect();
            let Some(expected) = interpret(&functions, &args)? else {
                continue;
            };
            let actual = program
                .call("f0", &args)
                .map(Outcome::Results)
                .map_err(|error| error.to_string());
            if !actual.as_ref().is_ok_and(|actual| actual.same(&expected)) {
                let got = actual.map_or_else(|error| error, |outcome| outcome.to_string());
                return Err(mismatch(format!("%f0{call:?} gives {got}, expected {expected}")));
            }
        }
    }
    Ok(())
}
