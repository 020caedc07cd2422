//! Programs for `wgpu` on the backend, and the rules of its API.

#[path = "../host/mod.rs"]
mod host;

mod errors;
mod mapping;
mod pipelines;
mod program;
mod programs;
mod rules;
mod timestamps;
