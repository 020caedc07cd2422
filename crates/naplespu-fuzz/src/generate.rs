//! Generates valid scalar CLIF from bytes, limited to features that the interpreter executes
//! correctly.
//!
//! Functions are text with one line per instruction and its results, because shrinking works on
//! lines. Control flow is structured (sequences, branches, tables, counted loops), so every program
//! ends. A function calls only functions with higher numbers.

use super::body::Body;
use arbitrary::{Result, Unstructured};
use cranelift_codegen::ir::immediates::{Ieee32, Ieee64};
use std::fmt::{self, Write};

/// A type of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ty {
    /// `i8`.
    I8,
    /// `i16`.
    I16,
    /// `i32`.
    I32,
    /// `i64`.
    I64,
    /// `i128`.
    I128,
    /// `f32`.
    F32,
    /// `f64`.
    F64,
}

impl Ty {
    /// The integer types.
    pub const INTS: [Self; 5] = [Self::I8, Self::I16, Self::I32, Self::I64, Self::I128];
    /// All types.
    pub const ALL: [Self; 7] = [
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::I128,
        Self::F32,
        Self::F64,
    ];

    /// Returns the width in bits.
    pub fn bits(self) -> u32 {
        match self {
            Self::I8 => 8,
            Self::I16 => 16,
            Self::I32 | Self::F32 => 32,
            Self::I64 | Self::F64 => 64,
            Self::I128 => 128,
        }
    }

    /// Returns whether the type is a float.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = if self.is_float() { 'f' } else { 'i' };
        write!(f, "{letter}{}", self.bits())
    }
}

/// The number of a value, and its type.
pub type Def = (u32, Ty);

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its results.
    pub defs: Vec<Def>,
    /// The text after the `=`.
    pub text: String,
    /// The text for the interpreter, if it differs.
    pub interpreted: Option<String>,
}

/// A block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Its parameters.
    pub params: Vec<Def>,
    /// Its instructions, without the terminator.
    pub lines: Vec<Line>,
    /// Its terminator.
    pub terminator: String,
    /// Whether the block is removed. Shrinking keeps the numbers of the other blocks.
    pub dropped: bool,
}

/// A function; its name is `%fN`, where N is its index in the case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Func {
    /// The types of the parameters.
    pub params: Vec<Ty>,
    /// The types of the results.
    pub returns: Vec<Ty>,
    /// The sizes of stack slots in bytes; all are powers of two.
    pub slots: Vec<u32>,
    /// The blocks in order; the first is the entry.
    pub blocks: Vec<Block>,
}

/// Functions, and arguments for calls of the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The functions.
    pub funcs: Vec<Func>,
    /// The sets of arguments, truncated to the types of the parameters.
    pub args: Vec<Vec<u128>>,
}

fn list(types: &[Ty]) -> String {
    types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
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
    /// Returns the CLIF for the compiler or for the interpreter.
    pub fn text(&self, interpreted: bool) -> String {
        let mut out = String::new();
        for (index, func) in self.funcs.iter().enumerate() {
            // Writing to a string cannot fail.
            let _ = self.write(&mut out, index, func, interpreted);
        }
        out
    }

    fn write(&self, out: &mut String, index: usize, func: &Func, interpreted: bool) -> std::fmt::Result {
        writeln!(out, "function %f{index}{} {{", signature(func))?;
        for (slot, size) in func.slots.iter().enumerate() {
            // The alignment that the widest access promises.
            writeln!(out, "    ss{slot} = explicit_slot {size}, align = 16")?;
        }
        for (other, callee) in self.funcs.iter().enumerate().skip(index + 1) {
            writeln!(out, "    sig{other} = {}", signature(callee))?;
            writeln!(out, "    fn{other} = %f{other} sig{other}")?;
        }
        for (number, block) in func.blocks.iter().enumerate().filter(|(_, b)| !b.dropped) {
            let params: Vec<String> = block.params.iter().map(|(v, w)| format!("v{v}: {w}")).collect();
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

/// Generates a case.
///
/// # Errors
///
/// Returns an error if the bytes cannot produce a choice. The end of the bytes is not an error.
pub fn generate(u: &mut Unstructured<'_>) -> Result<Case> {
    let count = u.int_in_range(1..=3usize)?;
    let mut funcs = Vec::new();
    for _ in 0..count {
        let many = u.ratio(1, 4)?;
        let params = types(u, if many { 14 } else { 4 })?;
        let mut returns = types(u, if many { 12 } else { 3 })?;
        if returns.is_empty() {
            returns.push(Ty::I32);
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
        for &param in &funcs[0].params {
            set.push(constant(u, param)?);
        }
        args.push(set);
    }
    Ok(Case { funcs, args })
}

/// Chooses at most `most` types.
pub(super) fn types(u: &mut Unstructured<'_>, most: usize) -> Result<Vec<Ty>> {
    let count = u.int_in_range(0..=most)?;
    (0..count).map(|_| ty(u)).collect()
}

/// Chooses a type; common types are more frequent.
pub(super) fn ty(u: &mut Unstructured<'_>) -> Result<Ty> {
    let often = [Ty::I8, Ty::I16, Ty::I32, Ty::I32, Ty::I64, Ty::I64];
    if u.arbitrary()? {
        u.choose(&often).copied()
    } else {
        u.choose(&Ty::ALL).copied()
    }
}

/// Chooses the bits of a number near edge cases of integers or floats.
pub(super) fn constant(u: &mut Unstructured<'_>, ty: Ty) -> Result<u128> {
    match ty {
        Ty::F32 => float(u, 32, 23),
        Ty::F64 => float(u, 64, 52),
        _ => integer(u, ty.bits()),
    }
}

fn integer(u: &mut Unstructured<'_>, bits: u32) -> Result<u128> {
    Ok(match u.int_in_range(0..=6)? {
        0 => u.int_in_range(0..=40)?,
        1 => u.int_in_range(0..=40u128)?.wrapping_neg(),
        2 => (1u128 << u.int_in_range(0..=bits - 1)?)
            .wrapping_add(u.int_in_range(0..=2)?)
            .wrapping_sub(1),
        3 => (1u128 << u.int_in_range(0..=bits - 1)?).wrapping_neg(),
        4 => u.arbitrary::<u128>()? >> u.int_in_range(0..=bits - 1)?,
        _ => u.arbitrary()?,
    })
}

/// Chooses a float with the given width and width of the fraction.
fn float(u: &mut Unstructured<'_>, bits: u32, fraction: u32) -> Result<u128> {
    let exponent_bits = bits - fraction - 1;
    let (bias, top) = ((1u128 << (exponent_bits - 1)) - 1, (1u128 << exponent_bits) - 1);
    let mantissa = match u.int_in_range(0..=4)? {
        0 | 1 => 0,
        2 => 1u128 << u.int_in_range(0..=fraction - 1)?,
        3 => (1 << fraction) - 1 - u.int_in_range(0..=2u128)?,
        _ => u.arbitrary::<u128>()? & ((1 << fraction) - 1),
    };
    let exponent = match u.int_in_range(0..=9)? {
        0 => 0,
        1 => top - u.int_in_range(0..=1u128)?,
        2 => u.int_in_range(0..=2)?,
        // Exponents of numbers in the range of the integer types.
        3..=7 => bias + u.int_in_range(0..=140u128)? - 10,
        _ => u.int_in_range(0..=top)?,
    };
    let sign = u128::from(u.arbitrary::<bool>()?);
    Ok(sign << (bits - 1) | exponent.min(top) << fraction | mantissa)
}

/// Returns the instructions that define a constant. The halves of an i128 are new values from
/// `fresh`.
pub fn constant_lines(def: Def, bits: u128, mut fresh: impl FnMut(Ty) -> Def) -> Vec<Line> {
    let line = |def: Def, text: String| Line {
        defs: vec![def],
        text,
        interpreted: None,
    };
    let text = match def.1 {
        Ty::I8 => format!("iconst.i8 {}", bits as i8),
        Ty::I16 => format!("iconst.i16 {}", bits as i16),
        Ty::I32 => format!("iconst.i32 {}", bits as i32),
        Ty::I64 => format!("iconst.i64 {}", bits as i64),
        Ty::F32 => format!("f32const {}", Ieee32::with_bits(bits as u32)),
        Ty::F64 => format!("f64const {}", Ieee64::with_bits(bits as u64)),
        Ty::I128 => {
            let (low, high) = (fresh(Ty::I64), fresh(Ty::I64));
            return vec![
                line(low, format!("iconst.i64 {}", bits as i64)),
                line(high, format!("iconst.i64 {}", (bits >> 64) as i64)),
                line(def, format!("iconcat v{}, v{}", low.0, high.0)),
            ];
        }
    };
    vec![line(def, text)]
}
