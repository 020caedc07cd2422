//! What `clif-util` is made of, as far as it is of use to others: compiled functions as assembly ([`assembly`]).

#![deny(missing_docs)]

pub mod assembly;
