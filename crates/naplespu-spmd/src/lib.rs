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
//! `conditions` simplifies conditions. `dispatch` adds the loops over work-groups and subgroups,
//! still as scalar CLIF. Work-groups for which checks of bounds hold, by the `ranges` of their
//! operands, execute a copy without them. `slots` lays out the stack slots of the lanes. `normalize` gives loops one preheader and one
//! latch, and the function one return. `versions` and `loop_versions` copy code that all lanes
//! execute in most subgroups (`copy`). `divergence` classifies values and branches, and `linearize`
//! orders the blocks. `emit` writes the vector function, with `memory` for accesses, `lane_loop` for
//! operations without a vector form, `ops` and `convert` for the others and `across` for operations
//! across lanes. `explain` adds `remarks` about what became of instructions. `facts` has constants,
//! booleans and alignment of scalar values, `builtins` the reserved names.

#![deny(missing_docs)]

mod across;
pub mod builtins;
mod conditions;
mod convert;
mod copy;
mod dispatch;
mod divergence;
mod emit;
mod error;
mod explain;
mod facts;
mod lane_loop;
mod linearize;
mod loop_versions;
mod memory;
mod names;
mod normalize;
mod ops;
mod options;
mod ranges;
mod remarks;
mod slots;
mod versions;

pub use dispatch::{DISPATCH_PARAMS, dispatch_arguments, needs_group};
pub use error::Error;
pub use options::{LANE_COUNTS, Options};
pub use remarks::{
    AccessKind, AccessOutcome, BranchOutcome, CallOutcome, Condition, LoopOutcome, Matter, OperationOutcome, Reason,
    Remark, Shape, TrapOutcome, Version, report,
};

use cranelift_codegen::ir::Function;
use cranelift_codegen::{settings, verify_function};
use names::name;
use remarks::Remarks;
use std::collections::{BTreeMap, VecDeque};

/// Returns the dispatch function of a kernel, followed by the vector versions of the callees that
/// it calls. Scalar versions of callees keep their names; the caller adds them itself.
///
/// # Errors
///
/// See [`Error`].
pub fn compile(kernel: &Function, callees: &[Function], options: &Options) -> Result<Vec<Function>, Error> {
    Ok(compile_explained(kernel, callees, options)?.0)
}

/// Like [`compile`], with remarks about the instructions that have a source location. If
/// [`Options::lanes`] is 1, they are only about checks that are evaluated for a row of work-groups.
///
/// # Errors
///
/// See [`Error`].
pub fn compile_explained(
    kernel: &Function,
    callees: &[Function],
    options: &Options,
) -> Result<(Vec<Function>, Vec<Remark>), Error> {
    if options.lanes != 1 && !LANE_COUNTS.contains(&options.lanes) {
        return Err(Error::Lanes(options.lanes));
    }
    for function in callees.iter().chain([kernel]) {
        verify(function)?;
    }
    let mut remarks = Remarks::default();
    let mut kernel = kernel.clone();
    conditions::run(&mut kernel, options);
    let scalar = dispatch::expand(&kernel, options, &mut remarks)?;
    if options.lanes == 1 {
        return Ok((vec![scalar], remarks.list));
    }
    let no_alignment = Options {
        alignment: Vec::new(),
        ..options.clone()
    };
    let callees: BTreeMap<Vec<u8>, &Function> = callees.iter().map(|callee| (name(callee), callee)).collect();
    let (kernel, called) = emit::vectorize(scalar, &callees, options, &mut remarks)?;
    let mut list = remarks.list;
    let mut functions = vec![kernel];
    let (mut queue, mut done): (VecDeque<_>, BTreeMap<_, ()>) = (called.into(), BTreeMap::new());
    while let Some(callee) = queue.pop_front() {
        if done.insert(callee.clone(), ()).is_some() {
            continue;
        }
        let Some(&function) = callees.get(&callee) else {
            continue;
        };
        let mut remarks = Remarks::default();
        let mut function = function.clone();
        conditions::run(&mut function, &no_alignment);
        let (vector, called) = emit::vectorize_callee(&function, &callees, options, &mut remarks)?;
        list.extend(remarks.list);
        functions.push(vector);
        queue.extend(called);
    }
    Ok((functions, list))
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
