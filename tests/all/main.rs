//! All tests of the compiler except the filetests and unit tests.

mod compiler;
mod docs;
mod examples;
mod exceptions;
mod f64_operands;
mod growth;
mod imports;
mod labels;
mod large;
mod loops;
mod metadata;
mod runtime;
mod runtime_convert;
mod runtime_f128;
mod runtime_f32;
mod runtime_f64;
mod runtime_wide;
mod softfloat;
mod stack;
mod stages;
mod unwind;
