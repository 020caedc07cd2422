//! Tests of determinism, errata and single passes. The filetests are a separate test program.

mod determinism;
mod errata;
mod passes;
mod post_ra;
