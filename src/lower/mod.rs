//! Lowers CLIF to VCode.
//!
//! [`driver`] visits the function backwards and calls the rules in [`isle`] for each live
//! instruction. `crates/tdgen` generates rules from the patterns in `td/`; the others are in
//! `isle/`. Rules call the algorithms in the other modules. All of them use [`context`], which
//! imports none of them.

pub mod access;
pub mod address;
pub mod call;
mod called_terms;
pub mod constants;
pub mod context;
pub mod driver;
mod each_part;
pub mod facts;
pub mod hoist;
pub mod intrinsics;
pub mod isle;
pub mod order;
pub mod structs;
pub mod tail;
mod try_call;
pub mod values;
pub mod vector;
mod word_rules;
pub mod words;

pub use driver::lower;
