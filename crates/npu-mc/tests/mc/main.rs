//! Tests of the machine-code layer: recorded tables, round trips, spot values of the generated tables.

mod abi;
mod common;
mod goldens;
mod relations;
mod round_trip;
