//! Kernels for one work-item, executed on the lanes and threads of the machine.
//!
//! # Contract
//!
//! [`compile`] takes a *work-item function*: scalar CLIF with uniform parameters, which asks for
//! its work-item by calls of the [reserved names](builtins::Builtin). It returns a *dispatch
//! function*, which has six more parameters ([`DISPATCH_PARAMS`]) and executes all work-items of
//! the work-groups that its core is responsible for. Each thread executes [`Options::lanes`]
//! work-items at once. If the lanes are more than one, varying values are vectors of sixteen
//! lanes and divergent branches are lane masks.
//!
//! The results are those of executing the work-items of a work-group one after another, in any
//! order between barriers. Accesses of two work-items to the same location are concurrent unless
//! a barrier separates them or both are atomic.
//!
//! Constructs that the pass does not support are refused with an [`Error`]. No input panics.
//!
//! # Structure
//!
//! `dispatch` adds the loops over work-groups and subgroups, still as scalar CLIF. `slots` lays
//! out the stack slots of the lanes. `normalize` gives loops one preheader and one latch, and the
//! function one return. `versions` copies
//! code after checks of bounds. `divergence` classifies values and branches, and `linearize` orders the
//! blocks. `emit` writes the vector function, with `memory` for accesses, `lane_loop` for
//! operations without a vector form and `across` for operations across lanes.

#![deny(missing_docs)]

mod across;
pub mod builtins;
mod dispatch;
mod divergence;
mod emit;
mod error;
mod facts;
mod lane_loop;
mod linearize;
mod memory;
mod normalize;
mod ops;
mod slots;
mod versions;

pub use dispatch::{DISPATCH_PARAMS, needs_group};
pub use error::Error;

use cranelift_codegen::ir::{ExternalName, Function};
use cranelift_codegen::{settings, verify_function};
use std::collections::{BTreeMap, VecDeque};

/// How a work-item function becomes a dispatch function.
#[derive(Clone, Debug)]
pub struct Options {
    /// Work-items of a work-group in each dimension.
    pub workgroup_size: [u32; 3],
    /// Bytes of scratchpad, from address 0, that are zeroed when a work-group starts.
    pub workgroup_bytes: u32,
    /// Work-items that a thread executes at once: 1, 16, 32 or 64.
    pub lanes: u32,
    /// Known alignment of each parameter in bytes, a power of two; 1 for missing entries.
    pub alignment: Vec<u32>,
}

impl Options {
    /// Returns the number of work-items in a work-group.
    pub fn work_items(&self) -> u32 {
        self.workgroup_size
            .iter()
            .fold(1, |items: u32, &size| items.saturating_mul(size))
    }

    /// Returns the number of subgroups in a work-group: the threads that execute it at once.
    pub fn subgroups(&self) -> u32 {
        self.work_items().div_ceil(self.lanes.max(1))
    }
}

/// Returns the dispatch function of a kernel, followed by the vector versions of the callees that
/// it calls. Scalar versions of callees keep their names; the caller adds them itself.
///
/// # Errors
///
/// See [`Error`].
pub fn compile(kernel: &Function, callees: &[Function], options: &Options) -> Result<Vec<Function>, Error> {
    if !matches!(options.lanes, 1 | 16 | 32 | 64) {
        return Err(Error::Lanes(options.lanes));
    }
    for function in callees.iter().chain([kernel]) {
        verify(function)?;
    }
    let scalar = dispatch::expand(kernel, options)?;
    if options.lanes == 1 {
        return Ok(vec![scalar]);
    }
    let callees: BTreeMap<Vec<u8>, &Function> = callees.iter().map(|callee| (name(callee), callee)).collect();
    let (kernel, called) = emit::vectorize(scalar, &callees, options)?;
    let mut functions = vec![kernel];
    let (mut queue, mut done): (VecDeque<_>, BTreeMap<_, ()>) = (called.into(), BTreeMap::new());
    while let Some(callee) = queue.pop_front() {
        if done.insert(callee.clone(), ()).is_some() {
            continue;
        }
        let Some(&function) = callees.get(&callee) else {
            continue;
        };
        let (vector, called) = emit::vectorize_callee(function, &callees, options)?;
        functions.push(vector);
        queue.extend(called);
    }
    Ok(functions)
}

fn verify(function: &Function) -> Result<(), Error> {
    let invalid = |reason: String| Error::Invalid {
        function: function.name.to_string(),
        reason,
    };
    if function.layout.entry_block().is_none() {
        return Err(invalid("it has no blocks".to_owned()));
    }
    let flags = settings::Flags::new(settings::builder());
    verify_function(function, &flags).map_err(|errors| invalid(errors.to_string()))
}

/// Returns the name of a function of a CLIF text.
pub(crate) fn name(function: &Function) -> Vec<u8> {
    function.name.to_string().trim_start_matches('%').as_bytes().to_vec()
}

/// Returns the name of an external function of a CLIF text.
pub(crate) fn external_name(name: &ExternalName) -> Option<Vec<u8>> {
    match name {
        ExternalName::TestCase(name) => Some(name.raw().to_vec()),
        _ => None,
    }
}
