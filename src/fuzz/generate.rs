//! Valid integer CLIF from bytes.
//!
//! Functions are made as text, a line an instruction with the results it defines, which is what shrinking works on.
//! Control flow is structured (sequences, branches, tables, counted loops), so every program ends; a function calls only
//! functions with higher numbers.

use arbitrary::{Result, Unstructured};
use std::fmt::Write;

/// A type of values, by its width in bits.
pub type Width = u8;

/// A value by number, and its type.
pub type Def = (u32, Width);

/// One instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The values it defines.
    pub defs: Vec<Def>,
    /// What stands behind the `=`.
    pub text: String,
    /// The same for the interpreter, where that needs another form.
    pub interpreted: Option<String>,
}

/// One block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Its parameters.
    pub params: Vec<Def>,
    /// Its instructions but the last.
    pub lines: Vec<Line>,
    /// The instruction that ends it.
    pub terminator: String,
    /// Whether it is left out: shrinking keeps the numbers of the others.
    pub dropped: bool,
}

/// One function, `%fN` by its place in the case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Func {
    /// Types of parameters.
    pub params: Vec<Width>,
    /// Types of results.
    pub returns: Vec<Width>,
    /// Sizes of stack slots in bytes, powers of two.
    pub slots: Vec<u32>,
    /// Blocks in order; the first is the entry.
    pub blocks: Vec<Block>,
}

/// Functions and arguments to call the first with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The functions.
    pub funcs: Vec<Func>,
    /// Sets of arguments, cut to the types of the parameters.
    pub args: Vec<Vec<u32>>,
}

fn list(types: &[Width]) -> String {
    types.iter().map(|w| format!("i{w}")).collect::<Vec<_>>().join(", ")
}

fn signature(func: &Func) -> String {
    let returns = if func.returns.is_empty() {
        String::new()
    } else {
        format!(" -> {}", list(&func.returns))
    };
    format!("({}){returns}", list(&func.params))
}

fn values(defs: &[Def]) -> String {
    defs.iter().map(|(v, _)| format!("v{v}")).collect::<Vec<_>>().join(", ")
}

impl Case {
    /// The CLIF, in the compiler's or the interpreter's form.
    pub fn text(&self, interpreted: bool) -> String {
        let mut out = String::new();
        for (index, func) in self.funcs.iter().enumerate() {
            // Writing to a string does not fail.
            let _ = self.write(&mut out, index, func, interpreted);
        }
        out
    }

    fn write(&self, out: &mut String, index: usize, func: &Func, interpreted: bool) -> std::fmt::Result {
        writeln!(out, "function %f{index}{} {{", signature(func))?;
        for (slot, size) in func.slots.iter().enumerate() {
            writeln!(out, "    ss{slot} = explicit_slot {size}")?;
        }
        for (other, callee) in self.funcs.iter().enumerate().skip(index + 1) {
            writeln!(out, "    sig{other} = {}", signature(callee))?;
            writeln!(out, "    fn{other} = %f{other} sig{other}")?;
        }
        for (number, block) in func.blocks.iter().enumerate().filter(|(_, b)| !b.dropped) {
            let params: Vec<String> = block.params.iter().map(|(v, w)| format!("v{v}: i{w}")).collect();
            let params = if params.is_empty() {
                String::new()
            } else {
                format!("({})", params.join(", "))
            };
            writeln!(out, "\nblock{number}{params}:")?;
            for line in &block.lines {
                let text = line.interpreted.as_ref().filter(|_| interpreted).unwrap_or(&line.text);
                let equals = if line.defs.is_empty() { "" } else { " = " };
                writeln!(out, "    {}{equals}{text}", values(&line.defs))?;
            }
            writeln!(out, "    {}", block.terminator)?;
        }
        writeln!(out, "}}\n")
    }
}

const WIDTHS: [Width; 3] = [8, 16, 32];

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
const CONDITIONS: &[&str] = &["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"];

/// Makes a case.
///
/// # Errors
///
/// When the bytes cannot give what is asked; running out of them is no error.
pub fn generate(u: &mut Unstructured<'_>) -> Result<Case> {
    let count = u.int_in_range(1..=3usize)?;
    let mut funcs = Vec::new();
    for _ in 0..count {
        let many = u.ratio(1, 4)?;
        let params = widths(u, if many { 14 } else { 4 })?;
        let mut returns = widths(u, if many { 12 } else { 3 })?;
        if returns.is_empty() {
            returns.push(32);
        }
        let mut slots = Vec::new();
        for _ in 0..u.int_in_range(0..=2)? {
            slots.push(4u32 << u.int_in_range(0..=7)?);
        }
        funcs.push(Func {
            params,
            returns,
            slots,
            blocks: Vec::new(),
        });
    }
    for index in (0..count).rev() {
        let blocks = Body::new(u, &funcs, index).function()?;
        funcs[index].blocks = blocks;
    }
    let mut args = Vec::new();
    for _ in 0..3 {
        let mut set = Vec::new();
        for _ in 0..funcs[0].params.len() {
            set.push(constant(u)?);
        }
        args.push(set);
    }
    Ok(Case { funcs, args })
}

fn widths(u: &mut Unstructured<'_>, most: usize) -> Result<Vec<Width>> {
    let count = u.int_in_range(0..=most)?;
    (0..count).map(|_| u.choose(&WIDTHS).copied()).collect()
}

/// Numbers near the interesting ones.
fn constant(u: &mut Unstructured<'_>) -> Result<u32> {
    Ok(match u.int_in_range(0..=5)? {
        0 => u.int_in_range(0..=40)?,
        1 => u.int_in_range(0..=40u32)?.wrapping_neg(),
        2 => (1u32 << u.int_in_range(0..=31)?)
            .wrapping_add(u.int_in_range(0..=2)?)
            .wrapping_sub(1),
        3 => (1u32 << u.int_in_range(0..=31)?).wrapping_neg(),
        _ => u.arbitrary()?,
    })
}

/// A constant as CLIF of the width.
pub fn iconst(width: Width, value: u32) -> String {
    let value = match width {
        8 => i32::from(value as i8),
        16 => i32::from(value as i16),
        _ => value.cast_signed(),
    };
    format!("iconst.i{width} {value}")
}

struct Body<'a, 'u> {
    u: &'a mut Unstructured<'u>,
    funcs: &'a [Func],
    index: usize,
    blocks: Vec<Block>,
    /// Block that instructions go to.
    current: usize,
    /// Values that dominate the current point.
    scope: Vec<Def>,
    next: u32,
    /// Instructions that may still be made.
    budget: u32,
}

impl<'a, 'u> Body<'a, 'u> {
    fn new(u: &'a mut Unstructured<'u>, funcs: &'a [Func], index: usize) -> Self {
        Self {
            u,
            funcs,
            index,
            blocks: Vec::new(),
            current: 0,
            scope: Vec::new(),
            next: 0,
            budget: 60,
        }
    }

    fn function(mut self) -> Result<Vec<Block>> {
        let params: Vec<Def> = self.funcs[self.index].params.iter().map(|&w| self.fresh(w)).collect();
        self.scope.extend(&params);
        self.blocks.push(Block {
            params,
            ..Block::default()
        });
        for slot in 0..self.funcs[self.index].slots.len() {
            self.fill(slot)?;
        }
        self.region(0)?;
        let returns = self.funcs[self.index].returns.clone();
        let mut results = Vec::new();
        for width in returns {
            results.push(self.value(width)?);
        }
        self.end(format!("return {}", results.join(", ")));
        Ok(self.blocks)
    }

    fn fresh(&mut self, width: Width) -> Def {
        self.next += 1;
        (self.next - 1, width)
    }

    fn push(&mut self, defs: &[Width], text: String) -> Vec<Def> {
        self.push_with(defs, text, None)
    }

    fn push_with(&mut self, defs: &[Width], text: String, interpreted: Option<String>) -> Vec<Def> {
        let defs: Vec<Def> = defs.iter().map(|&w| self.fresh(w)).collect();
        self.scope.extend(&defs);
        self.blocks[self.current].lines.push(Line {
            defs: defs.clone(),
            text,
            interpreted,
        });
        defs
    }

    fn end(&mut self, terminator: String) {
        self.blocks[self.current].terminator = terminator;
    }

    fn block(&mut self, params: &[Width]) -> (usize, Vec<Def>) {
        let params: Vec<Def> = params.iter().map(|&w| self.fresh(w)).collect();
        self.blocks.push(Block {
            params: params.clone(),
            ..Block::default()
        });
        (self.blocks.len() - 1, params)
    }

    /// A value of the width: mostly one in scope, the late ones more often.
    fn value(&mut self, width: Width) -> Result<String> {
        let fitting: Vec<u32> = self.scope.iter().filter(|d| d.1 == width).map(|d| d.0).collect();
        if fitting.is_empty() || self.u.ratio(1, 8)? {
            let value = constant(self.u)?;
            let def = self.push(&[width], iconst(width, value));
            return Ok(format!("v{}", def[0].0));
        }
        let recent = fitting.len().saturating_sub(6);
        let from = if self.u.ratio(2, 3)? {
            &fitting[recent..]
        } else {
            &fitting[..]
        };
        Ok(format!("v{}", self.u.choose(from)?))
    }

    fn width(&mut self) -> Result<Width> {
        self.u.choose(&WIDTHS).copied()
    }

    fn region(&mut self, depth: u32) -> Result<()> {
        for _ in 0..self.u.int_in_range(1..=3)? {
            for _ in 0..self.u.int_in_range(1..=8)? {
                if self.budget == 0 {
                    return Ok(());
                }
                self.budget -= 1;
                self.instruction()?;
            }
            if depth < 3 {
                match self.u.int_in_range(0..=4)? {
                    0 | 1 => self.branch(depth)?,
                    2 => self.counted_loop(depth)?,
                    3 => self.table(depth)?,
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Fills an arm and leaves it for the join with its values.
    fn arm(&mut self, block: usize, join: usize, params: &[Width], depth: u32) -> Result<()> {
        let outer = self.scope.len();
        self.current = block;
        self.region(depth + 1)?;
        if self.u.ratio(1, 30)? {
            let code = self.u.int_in_range(1..=9)?;
            self.end(format!("trap user{code}"));
        } else {
            let args = self.arguments(params)?;
            self.end(format!("jump block{join}{args}"));
        }
        self.scope.truncate(outer);
        Ok(())
    }

    fn arguments(&mut self, params: &[Width]) -> Result<String> {
        let args: Result<Vec<String>> = params.iter().map(|&w| self.value(w)).collect();
        let args = args?;
        Ok(if args.is_empty() {
            String::new()
        } else {
            format!("({})", args.join(", "))
        })
    }

    fn branch(&mut self, depth: u32) -> Result<()> {
        let condition = self.condition()?;
        let params = widths(self.u, 3)?;
        let direct = self.u.ratio(1, 4)?;
        let outside = if direct {
            self.arguments(&params)?
        } else {
            String::new()
        };
        let origin = self.current;
        let (then, _) = self.block(&[]);
        let (join, merged) = self.block(&params);
        if direct {
            self.blocks[origin].terminator = format!("brif {condition}, block{then}, block{join}{outside}");
        } else {
            let (other, _) = self.block(&[]);
            self.blocks[origin].terminator = format!("brif {condition}, block{then}, block{other}");
            self.arm(other, join, &params, depth)?;
        }
        self.arm(then, join, &params, depth)?;
        self.current = join;
        // Arms have taken their values out of scope again; what is left dominates the join.
        self.scope.extend(merged);
        Ok(())
    }

    fn table(&mut self, depth: u32) -> Result<()> {
        let index = self.value(32)?;
        let index = if self.u.ratio(2, 3)? {
            let mask = self.push(&[32], iconst(32, 3))[0].0;
            format!("v{}", self.push(&[32], format!("band {index}, v{mask}"))[0].0)
        } else {
            index
        };
        let params = widths(self.u, 2)?;
        let origin = self.current;
        let (join, merged) = self.block(&params);
        let mut arms = Vec::new();
        for _ in 0..self.u.int_in_range(1..=4)? {
            arms.push(self.block(&[]).0);
        }
        let entries: Vec<String> = arms[1..].iter().map(|b| format!("block{b}")).collect();
        self.blocks[origin].terminator = format!("br_table {index}, block{}, [{}]", arms[0], entries.join(", "));
        for arm in arms {
            self.arm(arm, join, &params, depth)?;
        }
        self.current = join;
        // Arms have taken their values out of scope again; what is left dominates the join.
        self.scope.extend(merged);
        Ok(())
    }

    fn counted_loop(&mut self, depth: u32) -> Result<()> {
        let mut params = vec![32];
        params.extend(widths(self.u, 4)?);
        let fuel = self.u.int_in_range(1..=4)?;
        let count = self.push(&[32], iconst(32, fuel))[0].0;
        let rest = self.arguments(&params[1..])?;
        let rest = rest.trim_matches(['(', ')']).to_owned();
        let first = if rest.is_empty() {
            format!("v{count}")
        } else {
            format!("v{count}, {rest}")
        };
        let (header, carried) = self.block(&params);
        self.end(format!("jump block{header}({first})"));
        self.current = header;
        self.scope.extend(&carried);
        let outer = self.scope.len();
        self.region(depth + 1)?;
        let one = self.push(&[32], iconst(32, 1))[0].0;
        let left = self.push(&[32], format!("isub v{}, v{one}", carried[0].0))[0].0;
        let rest = self.arguments(&params[1..])?;
        let rest = rest.trim_matches(['(', ')']).to_owned();
        let again = if rest.is_empty() {
            format!("v{left}")
        } else {
            format!("v{left}, {rest}")
        };
        let (exit, _) = self.block(&[]);
        self.end(format!("brif v{left}, block{header}({again}), block{exit}"));
        // The last block of the body dominates the exit, but not all that is in it may: keep to what surely does.
        self.scope.truncate(outer);
        self.current = exit;
        Ok(())
    }

    /// A value to branch on: mostly a compare.
    fn condition(&mut self) -> Result<String> {
        let width = self.width()?;
        if self.u.ratio(1, 4)? {
            return self.value(width);
        }
        let (a, b) = (self.value(width)?, self.value(width)?);
        let cc = self.u.choose(CONDITIONS)?;
        Ok(format!("v{}", self.push(&[8], format!("icmp {cc} {a}, {b}"))[0].0))
    }

    fn instruction(&mut self) -> Result<()> {
        let w = self.width()?;
        match self.u.int_in_range(0..=17)? {
            0..=3 => {
                let (op, a, b) = (*self.u.choose(BINARY)?, self.value(w)?, self.value(w)?);
                self.push(&[w], format!("{op} {a}, {b}"));
            }
            4 => {
                let (op, a, mut b) = (*self.u.choose(DIVISIONS)?, self.value(w)?, self.value(w)?);
                if self.u.ratio(9, 10)? {
                    let one = self.push(&[w], iconst(w, 1))[0].0;
                    b = format!("v{}", self.push(&[w], format!("bor {b}, v{one}"))[0].0);
                }
                self.push(&[w], format!("{op} {a}, {b}"));
            }
            5 | 6 => {
                let amount = self.width()?;
                let (op, a, b) = (*self.u.choose(SHIFTS)?, self.value(w)?, self.value(amount)?);
                self.push(&[w], format!("{op} {a}, {b}"));
            }
            7 => {
                let (op, a) = (*self.u.choose(UNARY)?, self.value(w)?);
                let op = if w > 8 && self.u.ratio(1, 9)? { "bswap" } else { op };
                self.push(&[w], format!("{op} {a}"));
            }
            8 => {
                self.condition()?;
            }
            9 => {
                let c = self.condition()?;
                let (a, b) = (self.value(w)?, self.value(w)?);
                let op = if self.u.ratio(1, 6)? {
                    "select_spectre_guard"
                } else {
                    "select"
                };
                self.push(&[w], format!("{op} {c}, {a}, {b}"));
            }
            10 => {
                let (c, a, b) = (self.value(w)?, self.value(w)?, self.value(w)?);
                self.push(&[w], format!("bitselect {c}, {a}, {b}"));
            }
            11 => self.convert(w)?,
            12 => self.overflow(w)?,
            13 | 14 => self.memory()?,
            15 => {
                let c = self.condition()?;
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

    fn convert(&mut self, w: Width) -> Result<()> {
        let to = self.width()?;
        let a = self.value(w)?;
        let text = match to.cmp(&w) {
            std::cmp::Ordering::Less => format!("ireduce.i{to} {a}"),
            std::cmp::Ordering::Equal => format!("bmask.i{to} {a}"),
            std::cmp::Ordering::Greater => {
                let op = if self.u.arbitrary()? { "uextend" } else { "sextend" };
                format!("{op}.i{to} {a}")
            }
        };
        self.push(&[to], text);
        Ok(())
    }

    fn overflow(&mut self, w: Width) -> Result<()> {
        let (a, b) = (self.value(w)?, self.value(w)?);
        match self.u.int_in_range(0..=8)? {
            0 | 1 => {
                let carry = self.condition()?;
                let op = if self.u.arbitrary()? {
                    "uadd_overflow_cin"
                } else {
                    "usub_overflow_bin"
                };
                // A condition may be of any width; the carry is a truth value of i8.
                let width = self
                    .scope
                    .iter()
                    .find(|d| format!("v{}", d.0) == carry)
                    .map_or(8, |d| d.1);
                let zero = self.push(&[width], iconst(width, 0))[0].0;
                let carry = self.push(&[8], format!("icmp ne {carry}, v{zero}"))[0].0;
                self.push(&[w, 8], format!("{op} {a}, {b}, v{carry}"));
            }
            2 if w == 32 => {
                self.push(&[w], format!("uadd_overflow_trap {a}, {b}, user7"));
            }
            _ => {
                let op = *self.u.choose(OVERFLOW)?;
                self.push(&[w, 8], format!("{op} {a}, {b}"));
            }
        }
        Ok(())
    }

    /// Gives a slot known contents.
    fn fill(&mut self, slot: usize) -> Result<()> {
        let size = self.funcs[self.index].slots[slot];
        let (address, word) = (self.fresh(32), constant(self.u)?);
        let line = Line {
            defs: vec![address],
            text: format!("stack_addr.i32 ss{slot}"),
            interpreted: None,
        };
        self.blocks[self.current].lines.push(line);
        let word = self.push(&[32], iconst(32, word))[0].0;
        for offset in (0..size).step_by(4) {
            self.push(&[], format!("store v{word}, v{}+{offset}", address.0));
        }
        Ok(())
    }

    /// A load or store somewhere in a slot. Addresses never become numbers to compute with: they differ from the
    /// interpreter's.
    fn memory(&mut self) -> Result<()> {
        let slots = &self.funcs[self.index].slots;
        if slots.is_empty() {
            return Ok(());
        }
        let slot = self.u.choose_index(slots.len())?;
        let size = slots[slot];
        let (width, bytes) = *self.u.choose(&[(8u8, 1u32), (16, 2), (32, 4)])?;
        let dynamic = self.u.arbitrary()?;
        // A computed index takes the lower half of the slot, the offset the upper.
        let room = size - bytes.min(size);
        let (span, offset) = if dynamic && size >= 8 {
            (size / 2, self.u.int_in_range(0..=size / 2 - bytes)?)
        } else {
            (0, self.u.int_in_range(0..=room)?)
        };
        let start = if span == 0 { self.u.int_in_range(0..=offset)? } else { 0 };
        let mut address = self.hidden(format!("stack_addr.i32 ss{slot}+{start}"));
        if span > 0 {
            let index = self.value(32)?;
            let mask = self.push(&[32], iconst(32, span - 1))[0].0;
            let index = self.push(&[32], format!("band {index}, v{mask}"))[0].0;
            address = self.hidden(format!("iadd v{address}, v{index}"));
        }
        let at = format!("v{address}+{}", offset - start);
        let aligned = span == 0 && offset % bytes == 0 && self.u.arbitrary()?;
        let flags = if aligned { " aligned" } else { "" };
        let wide = *self.u.choose(&[8u8, 16, 32])?;
        if self.u.arbitrary()? {
            if wide > width {
                let value = self.value(wide)?;
                self.push(&[], format!("istore{width}{flags} {value}, {at}"));
            } else {
                let value = self.value(width)?;
                self.push(&[], format!("store{flags} {value}, {at}"));
            }
        } else if wide > width {
            let sign = if self.u.arbitrary()? { "u" } else { "s" };
            self.push(&[wide], format!("{sign}load{width}.i{wide}{flags} {at}"));
        } else {
            self.push(&[width], format!("load.i{width}{flags} {at}"));
        }
        Ok(())
    }

    /// A value that later instructions do not pick up.
    fn hidden(&mut self, text: String) -> u32 {
        let def = self.fresh(32);
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
            let address = self.fresh(32);
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
