//! The same code every time, what errata ask of it, and single passes; the filetests themselves are a test of their own.

mod determinism;
mod errata;
mod passes;
mod post_ra;
