//! The public part of `clif-util`: compiled functions as assembly ([`assembly`]).

#![deny(missing_docs)]

pub mod assembly;
