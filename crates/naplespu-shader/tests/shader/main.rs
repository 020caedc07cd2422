//! Shaders on the simulator, compared with computations in Rust.

mod functions;
mod kernels;
mod languages;
mod run;
mod semantics;
mod types;
