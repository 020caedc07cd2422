//! Random CLIF on words, floats and vectors of sixteen lanes against a model that computes lane by
//! lane.
//!
//! The functions contain calls, intrinsics and uses of the lane mask. If the compiler uses the
//! machine's float instructions, the model computes with [`npu_sim::fp`], otherwise by IEEE 754.
//!
//! A function is a list of lines, from which both its text and its results are computed. `eval`
//! defines the operations. All constants are arguments, because the optimizer folds float constants
//! by IEEE 754 under all settings.

pub(crate) mod eval;

use super::{Config, FILL_SEED, Failure, Programs, STEPS, config, parse};
use arbitrary::{Result, Unstructured};
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::immediates::Ieee32;
use eval::{Arithmetic, Machine};
use naplespu_jit::Program;
use std::fmt::Write;

/// Number of lanes of a vector.
const LANES: usize = 16;

/// A value: one lane or sixteen.
type Lanes = [u32; LANES];

/// A type of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// `i32`
    Int,
    /// `f32`
    Float,
    /// `i32x16`
    Ints,
    /// `f32x16`
    Floats,
    /// `i8x16`
    Bytes,
}

use Kind::{Bytes, Float, Floats, Int, Ints};

impl Kind {
    const ALL: [Kind; 7] = [Int, Int, Float, Ints, Ints, Floats, Bytes];

    fn name(self) -> &'static str {
        match self {
            Int => "i32",
            Float => "f32",
            Ints => "i32x16",
            Floats => "f32x16",
            Bytes => "i8x16",
        }
    }
}

/// The operation of a line. Names are those of CLIF or of intrinsics.
#[derive(Clone, Debug)]
enum Op {
    /// An instruction whose operands are all values.
    Plain(&'static str),
    /// A shift by a constant.
    Shift(&'static str, u32),
    /// `icmp` or `fcmp`. The result is a vector of lanes of ones or zeros, or a number for scalars.
    Compare(&'static str, &'static str),
    /// A conversion or cast to another type.
    Convert(&'static str),
    /// `splat` of a float or of the low bits of an integer.
    Splat,
    /// `extractlane`
    Extract(usize),
    /// `insertlane`
    Insert(usize),
    /// `shuffle`
    Shuffle([u8; LANES]),
    /// `vany_true`, `vall_true`, `vhigh_bits`
    Test(&'static str),
    /// A call of an intrinsic.
    Intrinsic(&'static str),
    /// Stores a vector to the stack, stores another one over it under the lane mask, and loads the
    /// result.
    MaskedStore,
    /// Stores a vector to the stack, overwrites one of its lanes, and loads the result.
    StoredLane(usize),
    /// A call of another function; the second number selects one of its results.
    Call(usize, usize),
    /// A branch on whether the operand is zero, with two lists of lines and the value that each
    /// passes to the join.
    Choose(Box<[(Vec<Line>, usize); 2]>),
    /// A loop with one loop-carried value.
    Loop(Box<Loop>),
}

/// A loop. Its lines see a counter and the loop-carried value after all values outside.
#[derive(Clone, Debug)]
struct Loop {
    /// The trip count.
    count: u32,
    lines: Vec<Line>,
    /// The next value of the loop-carried value.
    next: usize,
}

/// An operation with its operands. Values are numbered: parameters first, then the lines in scope.
#[derive(Clone, Debug)]
struct Line {
    op: Op,
    args: Vec<usize>,
    kind: Kind,
}

/// A function; its name is `%fN`, where N is its index.
#[derive(Clone, Debug)]
struct Func {
    params: Vec<Kind>,
    results: Vec<Kind>,
    lines: Vec<Line>,
    /// The values that it returns.
    last: Vec<usize>,
}

/// Functions, and arguments for a call of the first.
#[derive(Clone, Debug)]
pub struct Case {
    funcs: Vec<Func>,
    args: Vec<Lanes>,
}

const BINARY: &[&str] = &[
    "iadd", "isub", "imul", "band", "bor", "bxor", "smin", "smax", "umin", "umax", "smulhi", "umulhi",
];
const ON_BYTES: &[&str] = &["iadd", "isub", "band", "bor", "bxor", "smin", "smax", "umin", "umax"];
const UNARY: &[&str] = &["bnot", "ineg", "iabs", "popcnt"];
const SHIFTS: &[&str] = &["ishl", "ushr", "sshr"];
const CONDITIONS: &[&str] = &["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"];
const FLOAT_CONDITIONS: &[&str] = &[
    "eq", "ne", "lt", "le", "gt", "ge", "ord", "uno", "one", "ueq", "ult", "ule", "ugt", "uge",
];
const FLOAT_BINARY: &[&str] = &[
    "fadd",
    "fsub",
    "fmul",
    "fdiv",
    "fadd",
    "fsub",
    "fmul",
    "fdiv",
    "fmin",
    "fmax",
    "fcopysign",
];
const FLOAT_UNARY: &[&str] = &["fneg", "fabs", "sqrt", "ceil", "floor", "trunc", "nearest"];

/// Intrinsics: name, types of arguments, type of the result.
const INTRINSICS: &[(&str, &[Kind], Option<Kind>)] = &[
    ("shufflei32", &[Ints, Ints], Some(Ints)),
    ("shufflef32", &[Floats, Ints], Some(Floats)),
    ("vector_mixi32", &[Ints, Ints], Some(Ints)),
    ("vector_mixf32", &[Floats, Floats], Some(Floats)),
    ("read_mask_reg", &[], Some(Int)),
    ("createmaskv16i32", &[Ints], Some(Int)),
    ("clzv16i32", &[Ints], Some(Ints)),
    ("ctzv16i32", &[Ints], Some(Ints)),
    ("clzi32", &[Int], Some(Int)),
    ("ctzi32", &[Int], Some(Int)),
    ("mask_cmpi32_eq", &[Ints, Ints], Some(Int)),
    ("mask_cmpi32_sgt", &[Ints, Ints], Some(Int)),
    ("mask_cmpi32_ule", &[Ints, Ints], Some(Int)),
    ("mask_cmpf32_lt", &[Floats, Floats], Some(Int)),
    ("mask_cmpf32_ne", &[Floats, Floats], Some(Int)),
    ("raw_fadd", &[Int, Int], Some(Int)),
    ("raw_fmul", &[Int, Int], Some(Int)),
    ("raw_fdiv", &[Int, Int], Some(Int)),
    ("raw_itof", &[Int], Some(Int)),
    ("raw_ftoi", &[Int], Some(Int)),
    ("write_mask_reg", &[Int], None),
    ("write_mask_regv16i32", &[Ints], None),
    ("block_storev16i32_masked", &[Int, Ints], None),
];

struct Generator<'a, 'b> {
    u: &'a mut Unstructured<'b>,
    funcs: &'a [Func],
    index: usize,
    /// Types of the values in scope.
    scope: Vec<Kind>,
}

impl Generator<'_, '_> {
    /// Chooses a value of the type, if one exists; recent values are more frequent.
    fn pick(&mut self, kind: Kind) -> Result<Option<usize>> {
        let fitting: Vec<usize> = (0..self.scope.len()).filter(|&v| self.scope[v] == kind).collect();
        if fitting.is_empty() {
            return Ok(None);
        }
        let near = self.u.ratio(2u8, 3)?;
        let from = if near { fitting.len().saturating_sub(5) } else { 0 };
        Ok(Some(fitting[self.u.int_in_range(from..=fitting.len() - 1)?]))
    }

    /// Adds a line if its operands exist.
    ///
    /// Two operands of the same type are different values where possible, because the optimizer
    /// folds operations on equal operands.
    fn add(&mut self, lines: &mut Vec<Line>, op: Op, params: &[Kind], kind: Kind) -> Result<bool> {
        let mut args = Vec::new();
        for &param in params {
            let Some(mut arg) = self.pick(param)? else {
                return Ok(false);
            };
            for _ in 0..4 {
                if args.contains(&arg) {
                    arg = self.pick(param)?.unwrap_or(arg);
                }
            }
            if args.contains(&arg) {
                return Ok(false);
            }
            args.push(arg);
        }
        lines.push(Line { op, args, kind });
        self.scope.push(kind);
        Ok(true)
    }

    fn line(&mut self, lines: &mut Vec<Line>, depth: u32) -> Result<bool> {
        let vector = self.u.arbitrary::<bool>()?;
        let (int, float) = if vector { (Ints, Floats) } else { (Int, Float) };
        let lane = self.u.int_in_range(0..=LANES - 1)?;
        let (op, params, kind): (Op, Vec<Kind>, Kind) = match self.u.int_in_range(0..=23)? {
            0..=2 => (Op::Plain(self.u.choose(BINARY)?), vec![int; 2], int),
            3 => (Op::Plain(self.u.choose(UNARY)?), vec![int], int),
            4 => (
                Op::Shift(self.u.choose(SHIFTS)?, self.u.int_in_range(0..=31)?),
                vec![int],
                int,
            ),
            5 => (Op::Compare("icmp", self.u.choose(CONDITIONS)?), vec![int; 2], int),
            6 => (
                Op::Compare("fcmp", self.u.choose(FLOAT_CONDITIONS)?),
                vec![float; 2],
                int,
            ),
            7..=10 => (Op::Plain(self.u.choose(FLOAT_BINARY)?), vec![float; 2], float),
            11 => (Op::Plain(self.u.choose(FLOAT_UNARY)?), vec![float], float),
            12 => (Op::Plain("fma"), vec![float; 3], float),
            13 => {
                let to_float = *self.u.choose(&["fcvt_from_sint", "fcvt_from_uint", "bitcast"])?;
                (Op::Convert(to_float), vec![int], float)
            }
            14 => {
                let to_int = *self.u.choose(&["fcvt_to_sint_sat", "fcvt_to_uint_sat", "bitcast"])?;
                (Op::Convert(to_int), vec![float], int)
            }
            15 => match self.u.int_in_range(0..=2)? {
                0 => (Op::Splat, vec![Int], Ints),
                1 => (Op::Splat, vec![Float], Floats),
                _ => (Op::Splat, vec![Int], Bytes),
            },
            16 => match self.u.int_in_range(0..=2)? {
                0 => (Op::Extract(lane), vec![Ints], Int),
                1 => (Op::Extract(lane), vec![Floats], Float),
                _ => (Op::Extract(lane), vec![Bytes], Int),
            },
            17 => match self.u.arbitrary()? {
                true => (Op::Insert(lane), vec![Ints, Int], Ints),
                false => (Op::Insert(lane), vec![Floats, Float], Floats),
            },
            18 => match self.u.int_in_range(0..=2)? {
                0 => {
                    let mut lanes = [0; LANES];
                    for lane in &mut lanes {
                        *lane = self.u.int_in_range(0..=31)?;
                    }
                    (Op::Shuffle(lanes), vec![Bytes; 2], Bytes)
                }
                1 => (Op::Plain("swizzle"), vec![Bytes; 2], Bytes),
                _ => (Op::Plain(self.u.choose(ON_BYTES)?), vec![Bytes; 2], Bytes),
            },
            19 => {
                let kind = *self.u.choose(&Kind::ALL)?;
                (Op::Plain("select"), vec![Int, kind, kind], kind)
            }
            20 => match self.u.int_in_range(0..=4)? {
                0 => (Op::Plain("bitselect"), vec![Ints; 3], Ints),
                1 => (Op::MaskedStore, vec![Ints; 2], Ints),
                2 => (Op::StoredLane(lane), vec![Ints, Int], Ints),
                _ => {
                    let test = *self.u.choose(&["vany_true", "vall_true", "vhigh_bits"])?;
                    (Op::Test(test), vec![Ints], Int)
                }
            },
            21 | 22 if self.u.ratio(2u8, 3)? => {
                let (name, params, result) = *self.u.choose(INTRINSICS)?;
                match result {
                    Some(kind) => (Op::Intrinsic(name), params.to_vec(), kind),
                    // Later lines execute under the new mask. The result is the operand.
                    None if name.starts_with("write_mask") => (Op::Intrinsic(name), params.to_vec(), params[0]),
                    None => return Ok(false),
                }
            }
            21..=22 if self.index + 1 < self.funcs.len() => {
                let callee = self.u.int_in_range(self.index + 1..=self.funcs.len() - 1)?;
                let func = &self.funcs[callee];
                let result = self.u.int_in_range(0..=func.results.len() - 1)?;
                (Op::Call(callee, result), func.params.clone(), func.results[result])
            }
            _ if depth == 0 && self.u.arbitrary()? => return self.repeat(lines),
            _ if depth == 0 => return self.choose(lines),
            _ => return Ok(false),
        };
        self.add(lines, op, &params, kind)
    }

    /// Adds a loop. The loop-carried value may be the result of a branch inside.
    fn repeat(&mut self, lines: &mut Vec<Line>) -> Result<bool> {
        let kind = *self.u.choose(&Kind::ALL)?;
        let outer = self.scope.len();
        let Some(first) = self.pick(kind)? else {
            return Ok(false);
        };
        self.scope.extend([Int, kind]);
        let mut body = Vec::new();
        for _ in 0..self.u.int_in_range(1..=6)? {
            self.line(&mut body, 1)?;
        }
        let next = self.pick(kind)?;
        self.scope.truncate(outer);
        let Some(next) = next else { return Ok(false) };
        let count = self.u.int_in_range(1..=9)?;
        lines.push(Line {
            op: Op::Loop(Box::new(Loop {
                count,
                lines: body,
                next,
            })),
            args: vec![first],
            kind,
        });
        self.scope.push(kind);
        Ok(true)
    }

    /// Adds a branch with two lists of lines.
    fn choose(&mut self, lines: &mut Vec<Line>) -> Result<bool> {
        let kind = *self.u.choose(&Kind::ALL)?;
        let outer = self.scope.len();
        let Some(condition) = self.pick(Int)? else {
            return Ok(false);
        };
        let mut arms = Vec::new();
        for _ in 0..2 {
            let mut arm = Vec::new();
            for _ in 0..self.u.int_in_range(0..=5)? {
                self.line(&mut arm, 1)?;
            }
            let last = self.pick(kind)?;
            self.scope.truncate(outer);
            let Some(last) = last else { return Ok(false) };
            arms.push((arm, last));
        }
        if let Ok(arms) = <[_; 2]>::try_from(arms) {
            lines.push(Line {
                op: Op::Choose(Box::new(arms)),
                args: vec![condition],
                kind,
            });
            self.scope.push(kind);
        }
        Ok(true)
    }
}

/// Chooses bits near edge cases of integers and floats.
fn word(u: &mut Unstructured<'_>) -> Result<u32> {
    let bits: u32 = u.arbitrary()?;
    Ok(match u.int_in_range(0..=7)? {
        0 => bits,
        1 => bits % 41,
        2 => (bits % 41).wrapping_neg(),
        3 => (1u32 << (bits & 31)).wrapping_sub(bits >> 31),
        // Floats in the range of integers, with short and long fractions; then edge cases.
        4 | 5 => (100 + bits % 60) << 23 | bits & 0x8070_0000,
        6 => (100 + bits % 60) << 23 | bits & 0x807f_ffff,
        _ => *u.choose(&[
            0,
            1 << 31,
            0x7f80_0000,
            0xff80_0000,
            0x7fc0_0000,
            0x7f7f_ffff,
            1,
            0x007f_ffff,
            0x7f80_0001,
        ])?,
    })
}

/// Generates a case from bytes.
///
/// # Errors
///
/// Returns an error if the bytes cannot produce a choice. The end of the bytes is not an error.
pub fn generate(u: &mut Unstructured<'_>) -> Result<Case> {
    let count = u.int_in_range(1..=3)?;
    let mut funcs = Vec::new();
    for _ in 0..count {
        // Each kind at least once, so that every operation has operands.
        let mut params = vec![Int, Float, Ints, Floats, Bytes];
        for _ in 0..u.int_in_range(2..=5)? {
            params.push(*u.choose(&Kind::ALL)?);
        }
        let mut results = Vec::new();
        for _ in 0..*u.choose(&[1, 1, 2, 3, 6])? {
            results.push(*u.choose(&Kind::ALL)?);
        }
        funcs.push(Func {
            params,
            results,
            lines: Vec::new(),
            last: Vec::new(),
        });
    }
    for index in (0..count).rev() {
        let mut generator = Generator {
            u,
            funcs: &funcs,
            index,
            scope: funcs[index].params.clone(),
        };
        let mut lines = Vec::new();
        for _ in 0..generator.u.int_in_range(4..=24)? {
            generator.line(&mut lines, 0)?;
        }
        // The last value of the kind first; a parameter of each kind exists.
        let mut last = Vec::new();
        for &kind in &funcs[index].results {
            let late = generator.scope.iter().rposition(|&other| other == kind);
            let any = generator.pick(kind)?;
            last.extend(if last.is_empty() { late } else { any });
        }
        funcs[index].lines = lines;
        funcs[index].last = last;
    }
    let mut args = Vec::new();
    for &kind in &funcs[0].params {
        let mut lanes = [0; LANES];
        for lane in &mut lanes {
            *lane = word(u)?;
            if kind == Bytes {
                *lane &= 0xff;
            }
        }
        args.push(lanes);
    }
    Ok(Case { funcs, args })
}

/// Writes the text of a function.
struct Writer<'a> {
    funcs: &'a [Func],
    out: String,
    /// Names and kinds of the values in scope.
    names: Vec<(String, Kind)>,
    next: usize,
    blocks: usize,
}

impl Writer<'_> {
    fn name(&mut self) -> String {
        self.next += 1;
        format!("v{}", self.next - 1)
    }

    fn put(&mut self, text: &str) {
        self.out += "    ";
        self.out += text;
        self.out += "\n";
    }

    fn lines(&mut self, lines: &[Line]) {
        for line in lines {
            let name = self.line(line);
            self.names.push((name, line.kind));
        }
    }

    /// Writes a line and returns the name of its value.
    fn line(&mut self, line: &Line) -> String {
        let args: Vec<String> = line.args.iter().map(|&arg| self.names[arg].0.clone()).collect();
        let (list, kind) = (args.join(", "), line.kind.name());
        let name = self.name();
        match &line.op {
            Op::Plain(op) => self.put(&format!("{name} = {op} {list}")),
            Op::Shift(op, by) => {
                let amount = self.name();
                self.put(&format!("{amount} = iconst.i32 {by}"));
                self.put(&format!("{name} = {op} {list}, {amount}"));
            }
            Op::Compare(op, condition) if line.kind == Ints => self.put(&format!("{name} = {op} {condition} {list}")),
            Op::Compare(op, condition) => {
                let truth = self.name();
                self.put(&format!("{truth} = {op} {condition} {list}"));
                self.put(&format!("{name} = uextend.i32 {truth}"));
            }
            Op::Convert("bitcast") if matches!(line.kind, Ints | Floats) => {
                self.put(&format!("{name} = bitcast.{kind} little {list}"));
            }
            Op::Convert(op) => self.put(&format!("{name} = {op}.{kind} {list}")),
            Op::Splat if line.kind == Bytes => {
                let byte = self.name();
                self.put(&format!("{byte} = ireduce.i8 {list}"));
                self.put(&format!("{name} = splat.i8x16 {byte}"));
            }
            Op::Splat => self.put(&format!("{name} = splat.{kind} {list}")),
            Op::Extract(lane) => {
                // Only the lanes of bytes are narrower than words.
                if self.names[line.args[0]].1 == Bytes {
                    let value = self.name();
                    self.put(&format!("{value} = extractlane {list}, {lane}"));
                    self.put(&format!("{name} = uextend.i32 {value}"));
                } else {
                    self.put(&format!("{name} = extractlane {list}, {lane}"));
                }
            }
            Op::Insert(lane) => self.put(&format!("{name} = insertlane {list}, {lane}")),
            Op::Shuffle(lanes) => {
                let mask: String = lanes.iter().rev().map(|lane| format!("{lane:02x}")).collect();
                self.put(&format!("{name} = shuffle {list}, 0x{mask}"));
            }
            Op::Test("vhigh_bits") => self.put(&format!("{name} = vhigh_bits.i32 {list}")),
            Op::Test(op) => {
                let truth = self.name();
                self.put(&format!("{truth} = {op} {list}"));
                self.put(&format!("{name} = uextend.i32 {truth}"));
            }
            Op::Intrinsic(op) => {
                let number = intrinsic_number(op);
                if op.starts_with("write_mask") {
                    self.put(&format!("call fn{number}({list})"));
                    self.next -= 1;
                    return args[0].clone();
                }
                if op.starts_with("shuffle") {
                    // An index above 15 is undefined.
                    let (fifteen, all, index) = (self.name(), self.name(), self.name());
                    self.put(&format!("{fifteen} = iconst.i32 15"));
                    self.put(&format!("{all} = splat.i32x16 {fifteen}"));
                    self.put(&format!("{index} = band {}, {all}", args[1]));
                    self.put(&format!("{name} = call fn{number}({}, {index})", args[0]));
                } else {
                    self.put(&format!("{name} = call fn{number}({list})"));
                }
            }
            Op::MaskedStore => {
                let address = self.name();
                let number = intrinsic_number("block_storev16i32_masked");
                self.put(&format!("{address} = stack_addr.i32 ss0"));
                self.put(&format!("store notrap aligned {}, {address}", args[0]));
                self.put(&format!("call fn{number}({address}, {})", args[1]));
                self.put(&format!("{name} = load.i32x16 notrap aligned {address}"));
            }
            Op::StoredLane(lane) => {
                let address = self.name();
                self.put(&format!("{address} = stack_addr.i32 ss0"));
                self.put(&format!("store notrap aligned {}, {address}+64", args[0]));
                self.put(&format!("store notrap {}, {address}+{}", args[1], 64 + 4 * lane));
                self.put(&format!("{name} = load.i32x16 notrap aligned {address}+64"));
            }
            Op::Call(callee, result) => {
                let count = self.funcs[*callee].results.len();
                let names: Vec<String> = (0..count)
                    .map(|number| if number == *result { name.clone() } else { self.name() })
                    .collect();
                self.put(&format!("{} = call fn{callee}({list})", names.join(", ")));
            }
            Op::Loop(inner) => {
                let block = self.blocks;
                self.blocks += 2;
                let (zero, counter, carried) = (self.name(), self.name(), self.name());
                self.put(&format!("{zero} = iconst.i32 0"));
                self.put(&format!("jump block{block}({zero}, {list})"));
                self.out += &format!("block{block}({counter}: i32, {carried}: {kind}):\n");
                let outer = self.names.len();
                self.names.push((counter.clone(), Int));
                self.names.push((carried, line.kind));
                self.lines(&inner.lines);
                let next = self.names[inner.next].0.clone();
                self.names.truncate(outer);
                let (one, count, rest, more) = (self.name(), self.name(), self.name(), self.name());
                self.put(&format!("{one} = iconst.i32 1"));
                self.put(&format!("{count} = iadd {counter}, {one}"));
                self.put(&format!("{rest} = iconst.i32 {}", inner.count));
                self.put(&format!("{more} = icmp ult {count}, {rest}"));
                self.put(&format!(
                    "brif {more}, block{block}({count}, {next}), block{}({next})",
                    block + 1
                ));
                self.out += &format!("block{}({name}: {kind}):\n", block + 1);
            }
            Op::Choose(arms) => {
                let block = self.blocks;
                self.blocks += 3;
                self.put(&format!("brif {list}, block{block}, block{}", block + 1));
                for (number, (lines, last)) in arms.iter().enumerate() {
                    let outer = self.names.len();
                    self.out += &format!("block{}:\n", block + number);
                    self.lines(lines);
                    let last = self.names[*last].0.clone();
                    self.names.truncate(outer);
                    self.put(&format!("jump block{}({last})", block + 2));
                }
                self.out += &format!("block{}({name}: {kind}):\n", block + 2);
            }
        }
        name
    }
}

/// Returns the number by which functions refer to an intrinsic.
fn intrinsic_number(name: &str) -> usize {
    let number = INTRINSICS.iter().position(|(other, ..)| *other == name);
    100 + number.unwrap_or_else(|| panic!("no intrinsic `{name}`"))
}

fn signature(params: &[Kind], results: &[Kind]) -> String {
    let [params, results] = [params, results].map(|list| {
        let names: Vec<&str> = list.iter().map(|kind| kind.name()).collect();
        names.join(", ")
    });
    let arrow = if results.is_empty() { "" } else { " -> " };
    format!("({params}){arrow}{results}")
}

impl Case {
    /// Returns the functions as CLIF.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for (index, func) in self.funcs.iter().enumerate() {
            let mut writer = Writer {
                funcs: &self.funcs,
                out: format!("function %f{index}{} {{\n", signature(&func.params, &func.results)),
                names: Vec::new(),
                next: 0,
                blocks: 1,
            };
            writer.put("ss0 = explicit_slot 128, align = 64");
            for (number, callee) in writer.funcs.iter().enumerate().skip(index + 1) {
                let text = format!("fn{number} = %f{number}{}", signature(&callee.params, &callee.results));
                writer.put(&text);
            }
            for (name, params, result) in INTRINSICS {
                let number = intrinsic_number(name);
                writer.put(&format!(
                    "fn{number} = %__builtin_npu_{name}{}",
                    signature(params, result.as_slice())
                ));
            }
            let mut params = Vec::new();
            for kind in &func.params {
                let name = writer.name();
                params.push(format!("{name}: {}", kind.name()));
                writer.names.push((name, *kind));
            }
            writer.out += &format!("\nblock0({}):\n", params.join(", "));
            writer.lines(&func.lines);
            let last: Vec<&str> = func.last.iter().map(|&value| writer.names[value].0.as_str()).collect();
            let last = last.join(", ");
            writer.put(&format!("return {last}"));
            out += &writer.out;
            out += "}\n\n";
        }
        out
    }

    /// Returns the expected results of a call.
    fn expected(&self, arithmetic: Arithmetic) -> Vec<DataValue> {
        let funcs = &self.funcs;
        let results = Machine { funcs, arithmetic }.call(0, &self.args);
        let kinds = funcs[0].results.iter();
        kinds
            .zip(&results)
            .flat_map(|(&kind, lanes)| host_values(kind, lanes))
            .collect()
    }
}

/// Returns the values by which the host passes and receives a value.
fn host_values(kind: Kind, lanes: &Lanes) -> Vec<DataValue> {
    let int = |lane: &u32| DataValue::I32(lane.cast_signed());
    let float = |lane: &u32| DataValue::F32(Ieee32::with_bits(*lane));
    match kind {
        Int => lanes.iter().take(1).map(int).collect(),
        Float => lanes.iter().take(1).map(float).collect(),
        Ints => lanes.iter().map(int).collect(),
        Floats => lanes.iter().map(float).collect(),
        Bytes => vec![DataValue::V128(lanes.map(|lane| lane as u8))],
    }
}

/// Returns compilers with the machine's floats, at both optimization levels with both register
/// allocators, and compilers with strict floats.
///
/// # Errors
///
/// The message of an unknown flag or setting.
pub fn configs() -> std::result::Result<Vec<Config>, String> {
    let mut all = Vec::new();
    for (level, algorithm, strict) in [
        ("none", "backtracking", "false"),
        ("none", "single_pass", "false"),
        ("speed", "backtracking", "false"),
        ("speed", "single_pass", "false"),
        ("speed", "backtracking", "true"),
        ("none", "single_pass", "true"),
    ] {
        let flags = [("opt_level", level), ("regalloc_algorithm", algorithm)];
        all.push(config(&flags, &[("strict_float", strict)])?);
    }
    Ok(all)
}

/// Compares compiler and model under all given settings.
///
/// # Errors
///
/// Returns the first disagreement.
pub fn check(case: &Case, programs: &Programs) -> std::result::Result<(), Failure> {
    let functions = parse(&case.text())?;
    let args: Vec<DataValue> = case.funcs[0]
        .params
        .iter()
        .zip(&case.args)
        .flat_map(|(&kind, lanes)| host_values(kind, lanes))
        .collect();
    for (config, isa) in &programs.0 {
        let mismatch = |message: String| Failure::Mismatch {
            config: config.clone(),
            message,
        };
        let arithmetic = if isa.settings().strict_float {
            Arithmetic::Ieee
        } else {
            Arithmetic::Machine
        };
        let expected = case.expected(arithmetic);
        let mut program = Program::with_config(isa.clone(), npu_sim::Config::testing(FILL_SEED));
        program.set_step_limit(STEPS);
        for function in &functions {
            let defined = program.define(function);
            defined.map_err(|error| mismatch(format!("{} did not compile: {error}", function.name)))?;
        }
        match program.call("f0", &args) {
            Ok(values)
                if values.len() == expected.len() && values.iter().zip(&expected).all(|(a, b)| a.bitwise_eq(b)) => {}
            Ok(values) => {
                let mut text = format!("{} values, expected {}\n", values.len(), expected.len());
                for (lane, (value, expected)) in values.iter().zip(&expected).enumerate() {
                    if !value.bitwise_eq(expected) {
                        // Writing to a string cannot fail.
                        let _ = writeln!(text, "value {lane}: {value:?}, expected {expected:?}");
                    }
                }
                return Err(mismatch(format!("called with {args:?}\n{text}")));
            }
            Err(error) => return Err(mismatch(format!("called with {args:?}\n{error}"))),
        }
    }
    Ok(())
}

/// Generates a case from bytes and checks it.
///
/// # Errors
///
/// Returns a report for a human reader.
pub fn run(data: &[u8], programs: &Programs) -> std::result::Result<(), String> {
    // The generator reads zeros after the end of the bytes, so an error is not a failure of the
    // compiler.
    let Ok(case) = generate(&mut Unstructured::new(data)) else {
        return Ok(());
    };
    check(&case, programs).map_err(|failure| format!("{failure}\n\n{}", case.text()))
}
