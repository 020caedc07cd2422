//! Unrolls loops, to save exit tests and branches and to let [`super::simplify`] fold constants in
//! the copies.
//!
//! The loop always ends in the original body, so later uses of its values stay valid.
//!
//! * A loop with a small constant trip count is unrolled fully.
//! * A loop with a larger constant trip count is unrolled partially. The factor divides the trip
//!   count if possible, otherwise one copy keeps the exit test.
//! * A loop whose trip count can be computed or bounded at run time is preceded by an unrolled
//!   loop, which executes while more than one group of iterations remains.
//!
//! [`super::check`] states and checks the correctness conditions.
//!
//! Loops with calls, including calls of runtime routines, are not unrolled: the call dominates the
//! cost.

use super::check;
use super::edit::{self, BlockCopy, Edge};
use super::loops::{self, Bound, CountedExit, NaturalLoop, Ranges};
use crate::Error;
use crate::Target;
use cranelift_codegen::Context;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{Block, Function, Inst, InstBuilder, Type, Value};
use rustc_hash::{FxHashMap, FxHashSet};

/// The maximum estimated size of a fully unrolled loop, in machine instructions.
const FULL_BUDGET: u32 = 128;

/// The maximum number of loads in a fully unrolled loop. Cranelift's simplification sinks sums
/// towards their uses, so all loads may precede the first sum, and their results occupy registers.
const FULL_LOADS: u64 = 24;

/// The maximum estimated size of all copies in an unrolled loop, in machine instructions.
const COPIES_BUDGET: u32 = 128;

/// The same if [`COPIES`] divides the trip count: no second loop executes the remainder.
const EXACT_BUDGET: u32 = 208;

/// The same if the trip count is unknown: a second loop executes up to three iterations, which may
/// be all.
const RUNTIME_BUDGET: u32 = 40;

/// The default unroll factor.
const COPIES: u64 = 4;

/// Up to this trip count, a loop with a trip count computed at run time is unrolled by 2.
const FEW_ITERATIONS: u64 = 8;

/// The maximum number of sweeps: unrolling inner loops changes the bodies of outer ones.
const LEVELS: u32 = 4;

/// Unrolls the profitable loops, except those with headers in `done`. `loops` must be the loops of
/// the function and is updated. Returns whether anything changed.
///
/// # Errors
///
/// See [`clean::run`](crate::clean::run).
pub fn run(
    ctx: &mut Context,
    target: &dyn Target,
    loops: &mut Vec<NaturalLoop>,
    mut done: FxHashSet<Block>,
) -> Result<bool, Error> {
    if loops.is_empty() {
        return Ok(false);
    }
    let mut changed = false;
    for _ in 0..LEVELS {
        let mut touched: FxHashSet<Block> = FxHashSet::default();
        // Inner loops first. A loop that shares blocks with a changed one waits for the next
        // analysis.
        let ranges = loops::ranges(ctx, loops);
        for lp in loops.iter().rev() {
            let is_cold = ctx.func.layout.is_cold(lp.header);
            // The copies of an unrolled loop may enter a following loop by edges that its `entries`
            // lack. In reducible control flow, this order visits the following loop first.
            let from = lp
                .entries
                .iter()
                .filter_map(|entry| ctx.func.layout.inst_block(entry.inst));
            let mut around = lp.blocks.iter().copied().chain(from);
            if is_cold || around.any(|block| touched.contains(&block)) || !done.insert(lp.header) {
                continue;
            }
            if let Some(headers) = unroll(ctx, target, lp, &ranges)? {
                touched.extend(&lp.blocks);
                done.extend(headers);
            }
        }
        if touched.is_empty() {
            break;
        }
        changed = true;
        crate::clean::run(ctx, target)?;
        ctx.compute_loop_analysis();
        *loops = loops::find(ctx);
    }
    Ok(changed)
}

/// How a loop is unrolled.
enum Strategy {
    /// Unrolls all iterations; the field is the trip count.
    Full(u64),
    /// Unrolls a loop with a constant trip count by a factor: trip count and factor.
    Partial(u64, u64),
    /// Adds an unrolled loop before the loop: its exit test and factor.
    Runtime(GroupTest, u64),
}

/// Unrolls one loop. Returns the headers of the resulting loops.
fn unroll(
    ctx: &mut Context,
    target: &dyn Target,
    lp: &NaturalLoop,
    ranges: &Ranges,
) -> Result<Option<Vec<Block>>, Error> {
    let Some((exit, strategy)) = choose(ctx, target, lp, ranges) else {
        return Ok(None);
    };
    let before = target.checks_loops().then(|| ctx.func.clone());
    if !close_exits(ctx, lp) {
        return Ok(None);
    }
    let func = &mut ctx.func;
    let headers = match strategy {
        Strategy::Full(count) => unroll_fully(func, lp, &exit, count)?,
        Strategy::Partial(count, copies) => unroll_partially(func, lp, &exit, count, copies)?,
        Strategy::Runtime(test, copies) => unroll_at_runtime(func, lp, &exit, test, copies)?,
    };
    if let Some(before) = before {
        check::unrolled(&before, func, lp)?;
    }
    Ok(Some(headers))
}

/// Chooses the strategy and the exit that determines the trip count. Returns `None` if unrolling is
/// not profitable.
fn choose(ctx: &Context, target: &dyn Target, lp: &NaturalLoop, ranges: &Ranges) -> Option<(CountedExit, Strategy)> {
    let size = size(&ctx.func, target, lp)?;
    if size > FULL_BUDGET {
        return None;
    }
    let exits = loops::counted_exits(ctx, lp);
    let known = exits
        .iter()
        .filter_map(|exit| Some((*exit, exit.count?)))
        .min_by_key(|(_, count)| *count);
    if let Some((exit, count)) = known {
        let fits = |each: u64, max: u64| count.saturating_mul(each) <= max;
        if fits(size.into(), FULL_BUDGET.into()) && fits(loads(&ctx.func, lp), FULL_LOADS) {
            return Some((exit, Strategy::Full(count)));
        }
        if !lp.innermost {
            return None;
        }
        return Some((exit, Strategy::Partial(count, factor(count, size)?)));
    }
    if !lp.innermost {
        return None;
    }
    let mut copies = copies(size, RUNTIME_BUDGET)?;
    let max = exits
        .iter()
        .filter_map(|exit| loops::max_trip_count(&ctx.func, lp, exit, ranges))
        .min();
    match max {
        Some(..2) => return None,
        Some(..=FEW_ITERATIONS) => copies = 2,
        _ => {}
    }
    exits
        .iter()
        .find_map(|exit| Some((*exit, Strategy::Runtime(group_test(exit, copies)?, copies))))
}

/// Estimates the number of machine instructions of the loop. Returns `None` if a block contains a
/// call or cannot be copied.
fn size(func: &Function, target: &dyn Target, lp: &NaturalLoop) -> Option<u32> {
    let mut sum = 0u32;
    for &block in &lp.blocks {
        for inst in func.layout.block_insts(block) {
            sum = sum.saturating_add(target.instructions(func, inst)?);
        }
    }
    Some(sum)
}

/// Returns the number of loads in the loop.
fn loads(func: &Function, lp: &NaturalLoop) -> u64 {
    let insts = lp.blocks.iter().flat_map(|&block| func.layout.block_insts(block));
    insts
        .map(|inst| u64::from(func.dfg.insts[inst].opcode().can_load()))
        .sum()
}

/// Returns the profitable factor for a body of this size: [`COPIES`] if that many copies are within
/// `budget`, 2 if two copies are within [`COPIES_BUDGET`].
fn copies(size: u32, budget: u32) -> Option<u64> {
    [(COPIES, budget), (2, COPIES_BUDGET)]
        .into_iter()
        .find_map(|(copies, budget)| (copies * u64::from(size) <= u64::from(budget)).then_some(copies))
}

/// Returns the profitable factor for a body of this size and this trip count.
fn factor(count: u64, size: u32) -> Option<u64> {
    let is_exact = count.is_multiple_of(COPIES);
    copies(size, if is_exact { EXACT_BUDGET } else { COPIES_BUDGET })
}

/// Ensures that later code uses values of the loop only through parameters of a common exit block,
/// or that the loop has one exit. Returns `false` if that is not possible.
fn close_exits(ctx: &mut Context, lp: &NaturalLoop) -> bool {
    if lp.exits.len() == 1 {
        return true;
    }
    let func = &mut ctx.func;
    let inside: FxHashSet<Block> = lp.blocks.iter().copied().collect();
    let mut escaping: Vec<Value> = Vec::new();
    let mut seen: FxHashSet<Value> = FxHashSet::default();
    for block in func.layout.blocks().filter(|block| !inside.contains(block)) {
        for inst in func.layout.block_insts(block) {
            for value in func.dfg.inst_values(inst) {
                let value = func.dfg.resolve_aliases(value);
                if inside.contains(&loops::defining_block(func, value)) && seen.insert(value) {
                    escaping.push(value);
                }
            }
        }
    }
    if escaping.is_empty() {
        return true;
    }
    let Some(first) = lp.exits.first().and_then(|&exit| edit::target(func, exit)) else {
        return false;
    };
    let one_target = lp.exits.iter().all(|&exit| edit::target(func, exit) == Some(first));
    let only_exits = ctx.cfg.pred_iter(first).all(|pred| inside.contains(&pred.block));
    if !one_target || !only_exits {
        return false;
    }
    let mut outside: FxHashMap<Value, Value> = FxHashMap::default();
    for value in escaping {
        let ty = func.dfg.value_type(value);
        outside.insert(value, func.dfg.append_block_param(first, ty));
        for &exit in &lp.exits {
            edit::append_argument(func, exit, value);
        }
    }
    let blocks: Vec<Block> = func.layout.blocks().filter(|block| !inside.contains(block)).collect();
    for block in blocks {
        let insts: Vec<Inst> = func.layout.block_insts(block).collect();
        for inst in insts {
            let mapped: Vec<Value> = func
                .dfg
                .inst_values(inst)
                .map(|value| {
                    let value = func.dfg.resolve_aliases(value);
                    outside.get(&value).copied().unwrap_or(value)
                })
                .collect();
            func.dfg.overwrite_inst_values(inst, mapped.into_iter());
        }
    }
    true
}

/// Returns the other edge of the exit branch, which stays in the loop.
fn staying_edge(exit: &CountedExit) -> Edge {
    Edge {
        number: 1 - exit.edge.number,
        ..exit.edge
    }
}

/// Returns the back edge of a copy whose counted exit is never taken.
fn back_edge(lp: &NaturalLoop, exit: &CountedExit, copy: &BlockCopy) -> Edge {
    let back = copy.edge(lp.back_edge);
    if lp.back_edge.inst == exit.edge.inst {
        Edge { number: 0, ..back }
    } else {
        back
    }
}

/// Returns the arguments of the edge.
fn values(func: &Function, edge: Edge) -> Result<Vec<Value>, Error> {
    edit::values(func, edge, "unroll")
}

/// A chain of bodies under construction. The original body must not change before the last copy.
struct Chain {
    /// The header's parameters.
    params: Vec<Value>,
    /// The edges that leave the chain so far and do not have a target yet.
    open: Vec<Edge>,
    /// The arguments of the open edge, if only one edge is open.
    args: Option<Vec<Value>>,
    /// Edges to connect: the edge, its target, and whether it passes no arguments.
    links: Vec<(Edge, Block, bool)>,
    /// The values of the original header's parameters, if each has one value.
    known: Option<Vec<Value>>,
}

impl Chain {
    /// Creates a chain that begins at these edges to the header.
    fn from(func: &Function, lp: &NaturalLoop, open: Vec<Edge>) -> Self {
        let args = match open.as_slice() {
            &[edge] => edit::args(func, edge),
            _ => None,
        };
        Self {
            params: func.dfg.block_params(lp.header).to_vec(),
            open,
            args,
            links: Vec::new(),
            known: None,
        }
    }

    /// Appends a copy of the body whose counted exit is never taken. With `params`, the copy of the
    /// header always has parameters.
    fn add_copy(&mut self, func: &mut Function, lp: &NaturalLoop, exit: &CountedExit, params: bool) -> Block {
        let args = self.args.take().filter(|_| !params);
        let direct = args.is_some();
        let known = args.map(|args| self.params.iter().copied().zip(args).collect());
        let copy = BlockCopy::make(func, &lp.blocks, known.unwrap_or_default(), lp.header);
        edit::make_unconditional(func, copy.edge(staying_edge(exit)));
        let header = copy.block(lp.header);
        self.lead_to(header, direct);
        let back = back_edge(lp, exit, &copy);
        self.args = edit::args(func, back);
        self.open = vec![back];
        header
    }

    /// Appends the original body.
    fn add_original(&mut self, func: &Function, lp: &NaturalLoop) {
        self.known = self.args.take();
        self.lead_to(lp.header, self.known.is_some());
        self.args = edit::args(func, lp.back_edge);
        self.open = vec![lp.back_edge];
    }

    /// Connects the open edges to the block, without arguments if `direct`.
    fn lead_to(&mut self, block: Block, direct: bool) {
        self.links.extend(self.open.drain(..).map(|edge| (edge, block, direct)));
    }

    /// Writes the connections to the function.
    fn finish(self, func: &mut Function, lp: &NaturalLoop) -> Result<(), Error> {
        for (edge, block, direct) in self.links {
            let args = if direct { Vec::new() } else { values(func, edge)? };
            edit::redirect(func, edge, block, &args);
        }
        if let Some(known) = self.known {
            edit::replace_params(func, lp.header, &known);
        }
        Ok(())
    }
}

/// Unrolls fully; the `count`th execution of the exit test leaves.
fn unroll_fully(func: &mut Function, lp: &NaturalLoop, exit: &CountedExit, count: u64) -> Result<Vec<Block>, Error> {
    let mut chain = Chain::from(func, lp, lp.entries.clone());
    for _ in 1..count {
        chain.add_copy(func, lp, exit, false);
    }
    if count > 1 {
        chain.add_original(func, lp);
    }
    // The code after the last exit test is unreachable; its back edge must not pass arguments to a
    // header without parameters.
    chain.open = vec![lp.back_edge];
    chain.lead_to(lp.header, chain.known.is_some());
    chain.finish(func, lp)?;
    edit::make_unconditional(func, exit.edge);
    Ok(vec![lp.header])
}

/// Unrolls a loop with a constant trip count. The original body is the copy that the last iteration
/// executes.
fn unroll_partially(
    func: &mut Function,
    lp: &NaturalLoop,
    exit: &CountedExit,
    count: u64,
    copies: u64,
) -> Result<Vec<Block>, Error> {
    let last = (count - 1) % copies;
    let mut header = lp.header;
    let mut chain = if last == 0 {
        Chain::from(func, lp, vec![lp.back_edge])
    } else {
        let mut chain = Chain::from(func, lp, lp.entries.clone());
        header = chain.add_copy(func, lp, exit, true);
        chain
    };
    for number in 1..copies {
        if number == last {
            chain.add_original(func, lp);
        } else {
            chain.add_copy(func, lp, exit, false);
        }
    }
    chain.lead_to(header, false);
    chain.finish(func, lp)?;
    Ok(vec![header, lp.header])
}

/// The exit test of a loop that executes a group of iterations at a time.
#[derive(Clone, Copy, Debug)]
enum GroupTest {
    /// The step is a power of two and the exit tests for equality: the trip count can be computed.
    Equality {
        /// The logarithm of the step.
        shift: u32,
        /// Whether the variable counts up.
        up: bool,
    },
    /// The exit tests an order: the loop continues while the comparison of the variable with a
    /// limit holds.
    Order {
        /// The condition under which the loop continues.
        stays: IntCC,
    },
}

/// Returns the exit test for groups of iterations, if one exists.
fn group_test(exit: &CountedExit, copies: u64) -> Option<GroupTest> {
    let step = exit.variable.signed_step();
    let up = step > 0;
    if exit.leaves == IntCC::Equal {
        let size = step.unsigned_abs();
        let small = size.is_power_of_two() && size < 1 << (exit.variable.ty.bits() - 4);
        return small.then(|| GroupTest::Equality {
            shift: size.trailing_zeros(),
            up,
        });
    }
    let stays = exit.leaves.complement();
    let grows = matches!(
        stays,
        IntCC::UnsignedLessThan | IntCC::UnsignedLessThanOrEqual | IntCC::SignedLessThan | IntCC::SignedLessThanOrEqual
    );
    // The variable's distance over two groups must not come close to the range of its type.
    let far = i128::from(step.unsigned_abs()) * i128::from(2 * copies);
    let fits = far < 1 << (exit.variable.ty.bits() - 2);
    (stays != IntCC::Equal && stays != IntCC::NotEqual && grows == up && fits).then_some(GroupTest::Order { stays })
}

/// Adds a loop before the loop that executes `copies` iterations at a time while more than those
/// remain.
fn unroll_at_runtime(
    func: &mut Function,
    lp: &NaturalLoop,
    exit: &CountedExit,
    test: GroupTest,
    copies: u64,
) -> Result<Vec<Block>, Error> {
    let variable = exit.variable;
    let ty = variable.ty;
    // The test block has the parameters of the header.
    let test_block = func.dfg.make_block();
    func.layout.insert_block(test_block, lp.header);
    let types: Vec<Type> = func.dfg.block_param_types(lp.header).collect();
    let params: Vec<Value> = types
        .iter()
        .map(|&ty| func.dfg.append_block_param(test_block, ty))
        .collect();
    for &entry in &lp.entries {
        let args = values(func, entry)?;
        edit::redirect(func, entry, test_block, &args);
    }
    let mut cursor = FuncCursor::new(func).at_bottom(test_block);
    let bound = match exit.bound {
        Bound::Constant(number) => number_of(&mut cursor, ty, number),
        Bound::Value(value) => value,
    };
    let start = params[variable.index];
    let group_step = variable.step.wrapping_mul(copies) & loops::mask(ty);
    // Whether to enter the unrolled loop, and the limit for the variable in its exit test.
    let (enters, limit) = match test {
        GroupTest::Equality { shift, up } => {
            let offset = number_of(&mut cursor, ty, exit.offset);
            let end = cursor.ins().isub(bound, offset);
            let distance = if up {
                cursor.ins().isub(end, start)
            } else {
                cursor.ins().isub(start, end)
            };
            // The distance over all iterations but the last, rounded down to a multiple of the
            // group.
            let group = copies << shift;
            let whole = number_of(&mut cursor, ty, (group - 1) ^ loops::mask(ty));
            let covered = cursor.ins().band(distance, whole);
            let end = if up {
                cursor.ins().iadd(start, covered)
            } else {
                cursor.ins().isub(start, covered)
            };
            let mut enters = covered;
            if shift > 0 {
                enters = cursor.ins().icmp(IntCC::NotEqual, end, start);
                let odd = number_of(&mut cursor, ty, (1 << shift) - 1);
                let remainder = cursor.ins().band(distance, odd);
                let zero = number_of(&mut cursor, ty, 0);
                let divides = cursor.ins().icmp(IntCC::Equal, remainder, zero);
                enters = cursor.ins().band(enters, divides);
            }
            let group_step = number_of(&mut cursor, ty, group_step);
            (enters, cursor.ins().isub(end, group_step))
        }
        GroupTest::Order { stays } => {
            let remainder = number_of(
                &mut cursor,
                ty,
                group_step.wrapping_sub(variable.step) & loops::mask(ty),
            );
            let first_limit = cursor.ins().isub(bound, remainder);
            let group_step = number_of(&mut cursor, ty, group_step);
            let limit = cursor.ins().isub(first_limit, group_step);
            // The limit must not have wrapped around.
            let fits = cursor.ins().icmp(stays.without_equal(), limit, bound);
            let first = plus(&mut cursor, ty, start, exit.offset);
            let below = cursor.ins().icmp(stays, first, first_limit);
            (cursor.ins().band(fits, below), limit)
        }
    };
    let branch = cursor.ins().brif(enters, lp.header, &[], lp.header, &[]);
    edit::redirect(
        func,
        Edge {
            inst: branch,
            number: 1,
        },
        lp.header,
        &params,
    );

    let into = Edge {
        inst: branch,
        number: 0,
    };
    edit::redirect(func, into, lp.header, &params);
    let mut chain = Chain::from(func, lp, vec![into]);
    let header = chain.add_copy(func, lp, exit, true);
    for _ in 1..copies {
        chain.add_copy(func, lp, exit, false);
    }
    // A latch after the last copy contains the exit test.
    let args = chain.args.take();
    let args = args.ok_or_else(|| Error::internal("unroll", lp.header, "the arguments of the last copy"))?;
    let latch = func.dfg.make_block();
    func.layout.insert_block(latch, lp.header);
    chain.lead_to(latch, true);
    chain.finish(func, lp)?;
    let mut cursor = FuncCursor::new(func).at_bottom(latch);
    // The test uses the current value of the variable, so that it does not wait for the increment.
    let now = cursor.func.dfg.block_params(header)[variable.index];
    let enters = match test {
        GroupTest::Equality { .. } => cursor.ins().icmp(IntCC::NotEqual, now, limit),
        GroupTest::Order { stays } => {
            let tested = plus(&mut cursor, ty, now, exit.offset);
            cursor.ins().icmp(stays, tested, limit)
        }
    };
    let branch = cursor.ins().brif(enters, header, &[], lp.header, &[]);
    edit::redirect(
        func,
        Edge {
            inst: branch,
            number: 0,
        },
        header,
        &args,
    );
    edit::redirect(
        func,
        Edge {
            inst: branch,
            number: 1,
        },
        lp.header,
        &args,
    );
    Ok(vec![header, lp.header])
}

fn number_of(cursor: &mut FuncCursor<'_>, ty: Type, number: u64) -> Value {
    let unused = 64 - ty.bits();
    cursor.ins().iconst(ty, (number << unused).cast_signed() >> unused)
}

fn plus(cursor: &mut FuncCursor<'_>, ty: Type, value: Value, number: u64) -> Value {
    if number == 0 {
        return value;
    }
    let number = number_of(cursor, ty, number);
    cursor.ins().iadd(value, number)
}
