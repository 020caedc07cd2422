//! Compute shaders for NaplesPU.

#![deny(missing_docs)]

pub mod math;
