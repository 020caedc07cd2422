//! Tests of determinism, errata, single passes, provenance, the verdicts on files, and
//! the reduction of failing files. The filetests are a separate test program.

mod compiled;
mod determinism;
mod errata;
#[cfg(feature = "explain")]
mod explain;
mod hostile;
mod passes;
mod post_ra;
mod reduce;
mod verdicts;
