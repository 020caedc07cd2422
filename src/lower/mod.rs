//! CLIF to VCode.
//!
//! [`driver`] visits the function backwards and asks, for each instruction that something needs, the rules in [`isle`]: those
//! that `crates/tdgen` makes from the patterns in `td/`, and those in `isle/`. Rules call the algorithms beside them. All work on
//! one [`context`], which imports none of them.

pub mod address;
pub mod call;
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
