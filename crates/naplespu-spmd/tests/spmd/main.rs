//! Kernels give the same results on lanes as one work-item at a time.

mod across;
mod arithmetic;
mod checks;
mod cycles;
mod explain;
mod kernels;
mod random;
mod run;
