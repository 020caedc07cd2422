//! Unrolling: copies of a loop's body, so that fewer rounds count, compare and branch, and what is known about each copy can be
//! computed ahead.
//!
//! The original body always is the copy in which the loop ends, so what later code takes from the loop is still the same value.
//!
//! * A loop whose number of rounds is known and small is laid out whole.
//! * One with a known number of rounds that is large is copied so often that the number of copies divides the rounds, if that
//!   works out; otherwise only the copy in which it ends still counts.
//! * One whose number of rounds can be computed or bounded at run time gets a second loop ahead of it, which does several rounds
//!   as long as none of them is the last.
//!
//! What has to hold afterwards, and is checked, stands in [`super::check`].
//!
//! Loops that call are left alone, routines of the runtime included: the call costs more than what is saved.

use super::check;
use super::edit::{self, Copy, Edge};
use super::loops::{self, Bound, CountedExit, NaturalLoop, Ranges};
use crate::Error;
use crate::Target;
use cranelift_codegen::Context;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{Block, Function, Inst, InstBuilder, Type, Value};
use rustc_hash::{FxHashMap, FxHashSet};

/// Machine instructions, about, that a loop laid out whole may have.
const WHOLE_BUDGET: u32 = 128;

/// Loads that a loop laid out whole may have. Cranelift's simplification computes as late as it can, so that all of them may be
/// done before any sum, and their results have to wait in registers.
const WHOLE_LOADS: u64 = 24;

/// The cost that all copies of a body may have that remains a loop.
const COPIES_BUDGET: u32 = 128;

/// The same if the trip count is a multiple of the copies: no second loop does the remainder.
const EXACT_BUDGET: u32 = 208;

/// The number of copies if nothing is in the way.
const COPIES: u64 = 4;

/// With so many rounds at most, a loop whose rounds are computed at run time does two at a time.
const FEW: u64 = 8;

/// How often loops are looked for again after some were unrolled: the outer ones have other bodies then.
const LEVELS: u32 = 4;

/// Unrolls what is worth it among the loops, which are those of the function, then as before, apart from those with the headers of
/// `done`. Gives whether anything changed.
///
/// # Errors
///
/// As [`clean::run`](crate::clean::run).
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
        // Inner loops first; what shares blocks with one that was changed waits for the next analysis.
        let ranges = loops::ranges(ctx, loops);
        for lp in loops.iter().rev() {
            let is_cold = ctx.func.layout.is_cold(lp.header);
            // Copies of a loop that was unrolled enter what the loop entered, by edges that `entries` does not have. In reducible
            // control flow the entered loop comes first.
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
enum Way {
    /// All iterations, so many, are laid out.
    Whole(u64),
    /// A loop of so many copies does so many iterations.
    Parts(u64, u64),
    /// A loop of so many copies does most iterations, the loop itself the others.
    Ahead(Pace, u64),
}

/// Unrolls one loop. Gives the headers of the loops that it became.
fn unroll(
    ctx: &mut Context,
    target: &dyn Target,
    lp: &NaturalLoop,
    ranges: &Ranges,
) -> Result<Option<Vec<Block>>, Error> {
    let Some((exit, way)) = choose(ctx, target, lp, ranges) else {
        return Ok(None);
    };
    let before = target.checks_loops().then(|| ctx.func.clone());
    if !close(ctx, lp) {
        return Ok(None);
    }
    let func = &mut ctx.func;
    let headers = match way {
        Way::Whole(count) => whole(func, lp, &exit, count)?,
        Way::Parts(count, copies) => in_parts(func, lp, &exit, count, copies)?,
        Way::Ahead(pace, copies) => ahead(func, lp, &exit, pace, copies)?,
    };
    if let Some(before) = before {
        check::unrolled(&before, func, lp)?;
    }
    Ok(Some(headers))
}

/// How the loop is unrolled, and the exit that counts; `None` if it is left alone.
fn choose(ctx: &Context, target: &dyn Target, lp: &NaturalLoop, ranges: &Ranges) -> Option<(CountedExit, Way)> {
    let size = size(&ctx.func, target, lp)?;
    if size > WHOLE_BUDGET {
        return None;
    }
    let exits = loops::counted_exits(ctx, lp);
    let known = exits
        .iter()
        .filter_map(|exit| Some((*exit, exit.count?)))
        .min_by_key(|(_, count)| *count);
    if let Some((exit, count)) = known {
        let fits = |each: u64, most: u64| count.saturating_mul(each) <= most;
        if fits(size.into(), WHOLE_BUDGET.into()) && fits(loads(&ctx.func, lp), WHOLE_LOADS) {
            return Some((exit, Way::Whole(count)));
        }
        if !lp.innermost {
            return None;
        }
        return Some((exit, Way::Parts(count, factor(count, size)?)));
    }
    if !lp.innermost {
        return None;
    }
    let mut copies = copies(size)?;
    let most = exits
        .iter()
        .filter_map(|exit| loops::most_rounds(&ctx.func, lp, exit, ranges))
        .min();
    match most {
        Some(..2) => return None,
        Some(..=FEW) => copies = 2,
        _ => {}
    }
    exits
        .iter()
        .find_map(|exit| Some((*exit, Way::Ahead(pace(exit, copies)?, copies))))
}

/// About how many machine instructions the loop's blocks are; `None` if one of them calls or cannot be copied.
fn size(func: &Function, target: &dyn Target, lp: &NaturalLoop) -> Option<u32> {
    let mut sum = 0u32;
    for &block in &lp.blocks {
        for inst in func.layout.block_insts(block) {
            sum = sum.saturating_add(target.instructions(func, inst)?);
        }
    }
    Some(sum)
}

/// How many loads the loop has.
fn loads(func: &Function, lp: &NaturalLoop) -> u64 {
    let insts = lp.blocks.iter().flat_map(|&block| func.layout.block_insts(block));
    insts
        .map(|inst| u64::from(func.dfg.insts[inst].opcode().can_load()))
        .sum()
}

/// How many copies of a body of this size are worth it, if the rounds are not known.
fn copies(size: u32) -> Option<u64> {
    [COPIES, 2]
        .into_iter()
        .find(|&copies| copies * u64::from(size) <= u64::from(COPIES_BUDGET))
}

/// How many copies of a body of this size are worth it for so many rounds: best is a number that divides them.
fn factor(count: u64, size: u32) -> Option<u64> {
    let most = (u64::from(EXACT_BUDGET) / u64::from(size.max(1))).min(COPIES);
    let divides = (3..=most).rev().find(|&copies| count.is_multiple_of(copies));
    divides.or_else(|| copies(size))
}

/// Makes sure that later code takes values of the loop only as parameters of the block to which all exits lead, or that there is
/// only one exit.
fn close(ctx: &mut Context, lp: &NaturalLoop) -> bool {
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
                if inside.contains(&loops::definition(func, value)) && seen.insert(value) {
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

/// The edge that stays in the loop where the exit may leave it.
fn staying(exit: &CountedExit) -> Edge {
    Edge {
        number: 1 - exit.edge.number,
        ..exit.edge
    }
}

/// Where the back edge of a copy is, once its counted exit never leaves.
fn back_edge(lp: &NaturalLoop, exit: &CountedExit, copy: &Copy) -> Edge {
    let back = copy.edge(lp.back);
    if lp.back.inst == exit.edge.inst {
        Edge { number: 0, ..back }
    } else {
        back
    }
}

/// What the edge passes.
fn values(func: &Function, edge: Edge) -> Result<Vec<Value>, Error> {
    edit::values(func, edge, "unroll")
}

/// A chain of bodies that is being made. The original is not touched before all copies of it exist.
struct Chain {
    /// The header's parameters.
    params: Vec<Value>,
    /// The edges that lead on from what there is.
    open: Vec<Edge>,
    /// What they pass, if there is one.
    args: Option<Vec<Value>>,
    /// Edges, the block that each has to lead to, and whether without arguments.
    links: Vec<(Edge, Block, bool)>,
    /// What the parameters of the original are, if they are known.
    known: Option<Vec<Value>>,
}

impl Chain {
    /// A chain that begins at these edges to the header.
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

    /// Adds a copy of the body in which the counted exit does not leave. With `params`, its header has parameters whatever is known.
    fn add_copy(&mut self, func: &mut Function, lp: &NaturalLoop, exit: &CountedExit, params: bool) -> Block {
        let args = self.args.take().filter(|_| !params);
        let direct = args.is_some();
        let known = args.map(|args| self.params.iter().copied().zip(args).collect());
        let copy = Copy::make(func, &lp.blocks, known.unwrap_or_default(), lp.header);
        edit::always(func, copy.edge(staying(exit)));
        let header = copy.block(lp.header);
        self.lead_to(header, direct);
        let back = back_edge(lp, exit, &copy);
        self.args = edit::args(func, back);
        self.open = vec![back];
        header
    }

    /// Adds the body itself.
    fn add_original(&mut self, func: &Function, lp: &NaturalLoop) {
        self.known = self.args.take();
        self.lead_to(lp.header, self.known.is_some());
        self.args = edit::args(func, lp.back);
        self.open = vec![lp.back];
    }

    /// The open edges will lead to the block, without arguments if its parameters are known.
    fn lead_to(&mut self, block: Block, direct: bool) {
        self.links.extend(self.open.drain(..).map(|edge| (edge, block, direct)));
    }

    /// Links what was made.
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

/// Lays the loop out whole: the exit is taken when it is reached for the `count`th time.
fn whole(func: &mut Function, lp: &NaturalLoop, exit: &CountedExit, count: u64) -> Result<Vec<Block>, Error> {
    let mut chain = Chain::from(func, lp, lp.entries.clone());
    for _ in 1..count {
        chain.add_copy(func, lp, exit, false);
    }
    if count > 1 {
        chain.add_original(func, lp);
    }
    // What follows the exit in the last round is not reached any more; it must not come round to a header without parameters.
    chain.open = vec![lp.back];
    chain.lead_to(lp.header, chain.known.is_some());
    chain.finish(func, lp)?;
    edit::always(func, exit.edge);
    Ok(vec![lp.header])
}

/// Makes a loop of several copies for a known number of rounds. The original is the copy that the last round falls to.
fn in_parts(
    func: &mut Function,
    lp: &NaturalLoop,
    exit: &CountedExit,
    count: u64,
    copies: u64,
) -> Result<Vec<Block>, Error> {
    let last = (count - 1) % copies;
    let mut header = lp.header;
    let mut chain = if last == 0 {
        Chain::from(func, lp, vec![lp.back])
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

/// How a loop of several rounds at a time knows whether there are as many left.
#[derive(Clone, Copy, Debug)]
enum Pace {
    /// The variable moves by a power of two, up or down, to a number that it has to meet: the rounds can be computed.
    Meets {
        /// The power.
        shift: u32,
        /// Whether it counts up.
        up: bool,
    },
    /// The variable moves by the constant towards a bound: the loop goes on while the sum compares so with it.
    Passes {
        /// The compare.
        stays: IntCC,
    },
}

/// How the exit can be tested once for several rounds.
fn pace(exit: &CountedExit, copies: u64) -> Option<Pace> {
    let step = exit.variable.signed_step();
    let up = step > 0;
    if exit.leaves == IntCC::Equal {
        let size = step.unsigned_abs();
        let small = size.is_power_of_two() && size < 1 << (exit.variable.ty.bits() - 4);
        return small.then(|| Pace::Meets {
            shift: size.trailing_zeros(),
            up,
        });
    }
    let stays = exit.leaves.complement();
    let grows = matches!(
        stays,
        IntCC::UnsignedLessThan | IntCC::UnsignedLessThanOrEqual | IntCC::SignedLessThan | IntCC::SignedLessThanOrEqual
    );
    // The distance of some rounds has to be a small number of the type.
    let far = i128::from(step.unsigned_abs()) * i128::from(2 * copies);
    let fits = far < 1 << (exit.variable.ty.bits() - 2);
    (stays != IntCC::Equal && stays != IntCC::NotEqual && grows == up && fits).then_some(Pace::Passes { stays })
}

/// Makes a loop before the loop that does `copies` rounds at a time while more than those are left.
fn ahead(
    func: &mut Function,
    lp: &NaturalLoop,
    exit: &CountedExit,
    pace: Pace,
    copies: u64,
) -> Result<Vec<Block>, Error> {
    let variable = exit.variable;
    let ty = variable.ty;
    // The block that decides has the parameters of the header.
    let decide = func.dfg.make_block();
    func.layout.insert_block(decide, lp.header);
    let types: Vec<Type> = func.dfg.block_param_types(lp.header).collect();
    let params: Vec<Value> = types
        .iter()
        .map(|&ty| func.dfg.append_block_param(decide, ty))
        .collect();
    for &entry in &lp.entries {
        let args = values(func, entry)?;
        edit::redirect(func, entry, decide, &args);
    }
    let mut cursor = FuncCursor::new(func).at_bottom(decide);
    let bound = match exit.bound {
        Bound::Constant(number) => number_of(&mut cursor, ty, number),
        Bound::Value(value) => value,
    };
    let start = params[variable.index];
    let round = variable.step.wrapping_mul(copies) & loops::mask(ty);
    // Whether a first round of copies is done, and what the variable is compared with in each of them to do another one.
    let (goes, limit) = match pace {
        Pace::Meets { shift, up } => {
            let offset = number_of(&mut cursor, ty, exit.offset);
            let end = cursor.ins().isub(bound, offset);
            let distance = if up {
                cursor.ins().isub(end, start)
            } else {
                cursor.ins().isub(start, end)
            };
            // Rounds before the last one, down to a multiple of the copies, as a distance.
            let group = copies << shift;
            let whole = number_of(&mut cursor, ty, (group - 1) ^ loops::mask(ty));
            let covered = cursor.ins().band(distance, whole);
            let end = if up {
                cursor.ins().iadd(start, covered)
            } else {
                cursor.ins().isub(start, covered)
            };
            let mut goes = covered;
            if shift > 0 {
                goes = cursor.ins().icmp(IntCC::NotEqual, end, start);
                let odd = number_of(&mut cursor, ty, (1 << shift) - 1);
                let rest = cursor.ins().band(distance, odd);
                let zero = number_of(&mut cursor, ty, 0);
                let meets = cursor.ins().icmp(IntCC::Equal, rest, zero);
                goes = cursor.ins().band(goes, meets);
            }
            let round = number_of(&mut cursor, ty, round);
            (goes, cursor.ins().isub(end, round))
        }
        Pace::Passes { stays } => {
            let rest = number_of(&mut cursor, ty, round.wrapping_sub(variable.step) & loops::mask(ty));
            let first_limit = cursor.ins().isub(bound, rest);
            let round = number_of(&mut cursor, ty, round);
            let limit = cursor.ins().isub(first_limit, round);
            // The limit must not have wrapped around.
            let fits = cursor.ins().icmp(stays.without_equal(), limit, bound);
            let first = plus(&mut cursor, ty, start, exit.offset);
            let below = cursor.ins().icmp(stays, first, first_limit);
            (cursor.ins().band(fits, below), limit)
        }
    };
    let branch = cursor.ins().brif(goes, lp.header, &[], lp.header, &[]);
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
    // The block after the last copy decides whether to go round.
    let args = chain.args.take();
    let args = args.ok_or_else(|| Error::internal("unroll", lp.header, "the arguments of the last copy"))?;
    let again = func.dfg.make_block();
    func.layout.insert_block(again, lp.header);
    chain.lead_to(again, true);
    chain.finish(func, lp)?;
    let mut cursor = FuncCursor::new(func).at_bottom(again);
    // What the variable was in this round tells as well as what it is in the next one, and nothing has to wait for that.
    let now = cursor.func.dfg.block_params(header)[variable.index];
    let goes = match pace {
        Pace::Meets { .. } => cursor.ins().icmp(IntCC::NotEqual, now, limit),
        Pace::Passes { stays } => {
            let tested = plus(&mut cursor, ty, now, exit.offset);
            cursor.ins().icmp(stays, tested, limit)
        }
    };
    let branch = cursor.ins().brif(goes, header, &[], lp.header, &[]);
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
