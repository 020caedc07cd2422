//! The mathematical functions of shading languages, in CLIF.
//!
//! [`functions`] returns one function `%npu_math_NAME` for each name of the table below, of type
//! `(f32) -> f32` or `(f32, f32) -> f32`. They are one block without calls and memory accesses, so
//! the pass for work-items turns them into functions on sixteen lanes.
//!
//! # Arithmetic
//!
//! The float unit of the machine rounds sums and products in its own way, and with
//! `strict_float=true` each of them is a call of a routine. Therefore the functions work on the
//! bits of the floats, with fixed-point numbers in `i32` and the upper words of products
//! (`umulhi`). Every operation except the quotient is exact or has a known rounding, and takes one
//! or two instructions for sixteen lanes. Functions with a quotient use one `fdiv`, which is
//! correctly rounded in both modes.
//!
//! So the results do not depend on `strict_float`. The only exception is `atan2` with a subnormal
//! operand.
//!
//! # Results
//!
//! Infinities, NaNs, zeros and their signs are handled as in C, including `pow` with a negative
//! base and an integral exponent. NaN results are quiet and have no particular payload. Subnormal
//! numbers:
//!
//! - `sqrt`, `inverse_sqrt`, `log`, `log2`, `pow` and the divisor of `atan2` treat them as zeros.
//! - `exp`, `exp2` and `pow` return 0 instead of a subnormal number.
//! - The odd functions return a subnormal operand unchanged.
//!
//! `sin`, `cos` and `tan` are precise below 2^20. Above, they return a value of their range without
//! relation to the operand.
//!
//! # Precision and cost
//!
//! The error is in units in the last place (ulp) of the exact result, for normal results; it is an
//! upper bound for all samples of `tests/math.rs`. The instructions are those of the compiled scalar
//! function at `opt_level=speed`, including constants and the return. The tests compare both columns
//! with the functions.
//!
//! | name | method | error (ulp) | instructions |
//! |---|---|---|---|
//! | `sin` | reduction by 96 bits of 1 / (2 pi), degree 4 | 0.63 | 116 |
//! | `cos` | the same | 0.63 | 118 |
//! | `tan` | quotient of both | 2.1 | 156 |
//! | `asin` | degree 4, square root above 1/2 | 0.8 | 126 |
//! | `acos` | the same | 0.8 | 138 |
//! | `atan` | quotient, degree 7 | 1.1 | 93 |
//! | `atan2` | the same | 1.7 | 128 |
//! | `sinh` | two powers of 2; degree 2 below 1 | 1.4 | 125 |
//! | `cosh` | two powers of 2 | 1.4 | 93 |
//! | `tanh` | quotient of a power of 2; degree 4 below 0.55 | 1.3 | 149 |
//! | `asinh` | quotient, square root, logarithm; degree 4 below 1/2 | 1.2 | 223 |
//! | `acosh` | the same; degree 5 below 2 | 0.9 | 234 |
//! | `atanh` | quotient, logarithm; degree 5 below 1/2 | 1.4 | 180 |
//! | `exp` | power of 2 with degree 5 | 1.4 | 71 |
//! | `exp2` | the same | 1.0 | 68 |
//! | `log` | degree 8 | 1.0 | 131 |
//! | `log2` | degree 8 | 1.1 | 128 |
//! | `pow` | logarithm of degree 12 with 32 bits, power of 2 | 2.8 | 236 |
//! | `sqrt` | degree 4, Newton's method, remainder | 0.5 | 75 |
//! | `inverse_sqrt` | degree 4, Newton's method | 0.7 | 70 |

use cranelift_codegen::ir::Function;
use std::sync::LazyLock;

/// The name and text of each source.
macro_rules! sources {
    ($($name:literal),* $(,)?) => {
        [$((
            concat!("src/math/", $name, ".clif"),
            include_str!(concat!("math/", $name, ".clif")),
        ),)*]
    };
}

/// The sources, by file.
const SOURCES: [(&str, &str); 8] = sources![
    "trigonometric",
    "inverse_trigonometric",
    "hyperbolic",
    "inverse_hyperbolic",
    "exponential",
    "logarithm",
    "power",
    "roots",
];

/// The conversions between floats and halves.
const HALVES: [(&str, &str); 1] = sources!["half"];

fn parsed(sources: &[(&str, &str)]) -> Vec<Function> {
    let parsed = |(file, text): &(&str, &str)| {
        cranelift_reader::parse_functions(text).unwrap_or_else(|error| panic!("{file}:{error}"))
    };
    sources.iter().flat_map(parsed).collect()
}

static FUNCTIONS: LazyLock<Vec<Function>> = LazyLock::new(|| parsed(&SOURCES));

static LIBRARY: LazyLock<Vec<Function>> = LazyLock::new(|| {
    let mut all = FUNCTIONS.clone();
    all.extend(parsed(&HALVES));
    all
});

/// Returns the functions of the table, in no particular order. They are parsed once.
pub fn functions() -> &'static [Function] {
    &FUNCTIONS
}

/// Returns all functions that translated entry points call: those of the table, and the conversions
/// `%npu_half_bits(f32) -> i32`, `%npu_half_value(i32) -> f32` and `%npu_half_round(f32) -> f32`
/// between floats and half-precision floats.
pub fn library() -> &'static [Function] {
    &LIBRARY
}
