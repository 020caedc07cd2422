//! Translates compute shaders to CLIF for NaplesPU.
//!
//! # Contract
//!
//! A [`Module`] is a valid module in WGSL, GLSL or SPIR-V. [`Module::entry_points`] lists its
//! compute entry points and their buffers, and [`Module::compile`] translates one to a work-item
//! function ([`Kernel`]): scalar CLIF that computes one work-item, with calls of reserved names for
//! the numbers of the work-item, barriers and subgroup operations.
//!
//! Valid features without a translation are refused by name and place in the source
//! ([`Error::Unsupported`]). No input causes a panic.
//!
//! # Semantics
//!
//! - Integers wrap. `x / 0` and the quotient of the smallest integer by -1 are `x`, and both
//!   remainders are 0. Shift amounts are taken modulo the width. A conversion of a float out of
//!   range gives the nearest integer that both types have.
//! - An `f16` is rounded to nearest even after each operation; functions are computed on `f32` and
//!   rounded once.
//! - No access leaves its buffer or array. A load with an index out of range gives zero or some
//!   element. A store is skipped, or goes to another element of the same private array.
//! - Private variables are zero without an initial value; workgroup memory is zero when a
//!   work-group starts.
//!
//! # Structure
//!
//! `module` parses and lists, with `directives` for extensions that naga does not know, and
//! `pointers` for functions that it does not accept. `compile` resolves overrides, `emit` emits CLIF,
//! and `layout` has the types and their layouts in memory. `math` has the functions that translated
//! entry points call.
//! `run` makes dispatch functions and runs them on a device.

#![deny(missing_docs)]

mod compile;
mod directives;
mod emit;
mod error;
mod kernel;
mod layout;
mod lines;
pub mod math;
mod module;
mod pointers;
mod run;

pub use error::{Error, Result, Unsupported};
pub use kernel::{Kernel, Options, Parameter};
pub use module::{Binding, BindingKind, EntryPoint, IMMEDIATE_GROUP, Module};
pub use naplespu_spmd::LANE_COUNTS;
pub use run::{Bound, Dispatch, RunError, Runner};
