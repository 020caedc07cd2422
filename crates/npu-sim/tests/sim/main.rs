//! Compares the simulator with recorded programs and with itself, and tests each quirk.

mod coherence;
mod common;
mod facts;
mod faults;
mod flushes;
mod golden_fp;
mod golden_run;
mod golden_timing;
#[cfg(feature = "jit")]
mod jit;
mod loops;
mod mesh;
mod misses;
mod network;
mod operations;
mod parallel;
mod quirks;
mod random;
mod replay;
mod semantics;
mod threads;
mod timing;
mod waits;
mod words;
