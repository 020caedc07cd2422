//! Strength reduction of addresses: an address with a constant stride becomes an incremented
//! pointer.
//!
//! `base + (i << 2)` costs two instructions in each iteration, `p + 4` one. If `i` has only uses in
//! addresses and in the exit test, the pointer replaces it in the exit test as well. The pass
//! applies where the estimated number of executed instructions does not grow. [`super::check`]
//! states and checks the correctness conditions.

use super::access;
use super::check;
use super::edit;
use super::licm;
use super::linear::{self, LinearSum};
use super::loops::{self, CountedExit, InductionVariable, NaturalLoop};
use crate::Error;
use crate::Target;
use cranelift_codegen::Context;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Function, Inst, InstBuilder, InstructionData, Value, ValueDef, types};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::num::NonZeroU32;

/// The maximum number of pointers in one loop; limits register pressure.
const MAX_POINTERS: usize = 12;

/// Accesses whose addresses differ by constants.
#[derive(Debug)]
struct Group {
    variable: InductionVariable,
    /// The factor of the variable in the addresses.
    factor: u32,
    /// The loop-invariant terms.
    base: SmallVec<[(Value, u32); 4]>,
    /// A constant added to the pointer, so that all offsets are in range.
    constant: i32,
    /// The accesses, with the constant parts of their addresses.
    accesses: Vec<(Inst, i32)>,
}

/// Use lists of all values. An entry holds a user and the number of the next entry.
struct UseLists {
    first: SecondaryMap<Value, Option<NonZeroU32>>,
    list: Vec<(Inst, Option<NonZeroU32>)>,
}

impl UseLists {
    fn of(func: &Function) -> Self {
        let mut users = Self {
            first: SecondaryMap::with_capacity(func.dfg.num_values()),
            list: Vec::with_capacity(func.dfg.num_insts() * 2),
        };
        for block in func.layout.blocks() {
            for inst in func.layout.block_insts(block) {
                for value in func.dfg.inst_values(inst) {
                    let first = &mut users.first[func.dfg.resolve_aliases(value)];
                    users.list.push((inst, *first));
                    // Entries are numbered from 1.
                    *first = u32::try_from(users.list.len()).ok().and_then(NonZeroU32::new);
                }
            }
        }
        users
    }

    /// Iterates over the instructions that use the value, with one item for each use.
    fn of_value(&self, value: Value) -> impl Iterator<Item = Inst> {
        let mut next = self.first[value];
        std::iter::from_fn(move || {
            let &(inst, after) = self.list.get(next?.get() as usize - 1)?;
            next = after;
            Some(inst)
        })
    }
}

/// Reduces addresses in the loops, innermost first. Returns whether anything changed.
///
/// # Errors
///
/// [`Error::Internal`] if an invariant is broken.
pub fn run(ctx: &mut Context, target: &dyn Target, loops: &[NaturalLoop]) -> Result<bool, Error> {
    let mut known = None;
    let mut changed = false;
    for lp in loops.iter().rev() {
        changed |= reduce(ctx, target, lp, &mut known)?;
    }
    Ok(changed)
}

/// Reduces addresses in one loop. `known` caches the use lists, which describe the function before
/// the pass.
fn reduce(
    ctx: &mut Context,
    target: &dyn Target,
    lp: &NaturalLoop,
    known: &mut Option<UseLists>,
) -> Result<bool, Error> {
    let func = &ctx.func;
    if lp.entries.len() != 1 {
        return Ok(false);
    }
    let variables: Vec<InductionVariable> = loops::induction_variables(func, lp)
        .into_iter()
        .filter(|variable| variable.ty == types::I32)
        .collect();
    if variables.is_empty() {
        return Ok(false);
    }
    let groups = groups(ctx, target, lp, &variables);
    if groups.is_empty() || groups.len() > MAX_POINTERS || licm::has_calls(func, target, lp) {
        return Ok(false);
    }
    let users = &*known.get_or_insert_with(|| UseLists::of(func));
    let exits = loops::counted_exits(ctx, lp);
    // Chooses all groups if that pays off, otherwise the groups that pay off alone.
    let all: Vec<&Group> = groups.iter().collect();
    let chosen: Vec<&Group> = if gain(func, lp, &all, users, &exits) >= 0 {
        all
    } else {
        groups
            .iter()
            .filter(|group| gain(func, lp, &[group], users, &exits) >= 0)
            .collect()
    };
    if chosen.is_empty() {
        return Ok(false);
    }
    // Only one group of each variable can replace it in the exit test.
    let dead = find_dead(func, lp, &chosen, users);
    let replaced_exits: Vec<(usize, CountedExit)> = variables
        .iter()
        .filter_map(|variable| replaceable_exit(func, lp, variable, &chosen, users, &exits, &dead))
        .collect();
    let before = target.checks_loops().then(|| ctx.func.clone());
    for (number, group) in chosen.into_iter().enumerate() {
        let exit = replaced_exits.iter().find(|(counting, _)| *counting == number);
        apply(&mut ctx.func, lp, group, exit.map(|(_, exit)| exit))?;
    }
    if let Some(before) = before {
        check::strength_reduced(&before, &ctx.func, lp)?;
    }
    Ok(true)
}

/// Groups the accesses of the loop that a pointer can replace. Ignores accesses in inner loops.
fn groups(ctx: &Context, target: &dyn Target, lp: &NaturalLoop, variables: &[InductionVariable]) -> Vec<Group> {
    let func = &ctx.func;
    let inside: FxHashSet<_> = lp.blocks.iter().copied().collect();
    let opens = |inst: Inst, _| {
        func.layout
            .inst_block(inst)
            .is_some_and(|block| inside.contains(&block))
    };
    let mut groups: Vec<Group> = Vec::new();
    for &block in &lp.blocks {
        if ctx.loop_analysis.innermost_loop(block) != Some(lp.id) {
            continue;
        }
        for inst in func.layout.block_insts(block) {
            let Some(sum) = access::address(func, inst).and_then(|pointer| LinearSum::of(func, pointer, &opens)) else {
                continue;
            };
            let is_variable = |value: Value| variables.iter().find(|variable| variable.param == value);
            let mut changing = sum
                .terms
                .iter()
                .filter(|term| inside.contains(&loops::defining_block(func, term.0)));
            let (Some(&(value, factor)), None) = (changing.next(), changing.next()) else {
                continue;
            };
            let Some(&variable) = is_variable(value) else {
                continue;
            };
            let base: SmallVec<[(Value, u32); 4]> = sum.terms.iter().copied().filter(|term| term.0 != value).collect();
            if base.is_empty() && factor == 1 {
                // The address is a pointer already.
                continue;
            }
            let offset = func.dfg.insts[inst].load_store_offset().unwrap_or(0);
            let offset = offset.wrapping_add(sum.constant.cast_signed());
            let same = |group: &&mut Group| {
                group.variable.param == value
                    && group.factor == factor
                    && group.base == base
                    && access::is_in_range(target, offset.wrapping_sub(group.constant))
            };
            match groups.iter_mut().find(same) {
                Some(group) => group.accesses.push((inst, offset)),
                None => groups.push(Group {
                    variable,
                    factor,
                    base,
                    constant: if access::is_in_range(target, offset) { 0 } else { offset },
                    accesses: vec![(inst, offset)],
                }),
            }
        }
    }
    groups
}

/// Returns the number of instructions that pointers for these groups save in each iteration.
fn gain(func: &Function, lp: &NaturalLoop, groups: &[&Group], users: &UseLists, exits: &[CountedExit]) -> isize {
    let dead = find_dead(func, lp, groups, users);
    let mut variables: Vec<&InductionVariable> = groups.iter().map(|group| &group.variable).collect();
    variables.dedup_by_key(|variable| variable.param);
    let removed_counters = variables
        .iter()
        .filter(|variable| replaceable_exit(func, lp, variable, groups, users, exits, &dead).is_some())
        .count();
    (dead.len() + removed_counters).cast_signed() - groups.len().cast_signed()
}

/// Returns the instructions of the loop that are dead once the groups use pointers.
fn find_dead(func: &Function, lp: &NaturalLoop, groups: &[&Group], users: &UseLists) -> FxHashSet<Inst> {
    let accesses: FxHashSet<Inst> = groups
        .iter()
        .flat_map(|group| group.accesses.iter().map(|access| access.0))
        .collect();
    let mut dead: FxHashSet<Inst> = FxHashSet::default();
    let mut work: Vec<Value> = accesses
        .iter()
        .filter_map(|&inst| access::address(func, inst))
        .collect();
    while let Some(value) = work.pop() {
        let ValueDef::Result(inst, 0) = func.dfg.value_def(value) else {
            continue;
        };
        let inside = func.layout.inst_block(inst).is_some_and(|block| lp.contains(block));
        if !inside || dead.contains(&inst) || linear::linear_op(func, inst).is_none() {
            continue;
        }
        let becomes_dead = |user: Inst| {
            dead.contains(&user)
                || accesses.contains(&user) && {
                    // The user must use the value as its address, not as the stored value.
                    let operand = access::address_operand(&func.dfg.insts[user]);
                    let args = func.dfg.inst_args(user).iter().enumerate();
                    let mut values = args.map(|(number, &arg)| (number, func.dfg.resolve_aliases(arg)));
                    values.all(|(number, arg)| arg != value || Some(number) == operand)
                }
        };
        if users.of_value(value).all(becomes_dead) {
            dead.insert(inst);
            for &arg in func.dfg.inst_args(inst) {
                let arg = func.dfg.resolve_aliases(arg);
                if loops::constant(func, arg).is_none() {
                    work.push(arg);
                }
            }
        }
    }
    dead
}

/// Returns the exit that tests the variable, and the number of the group whose pointer can replace
/// the variable in that test. Returns `None` if the variable has other uses. `dead` are the
/// instructions that are dead once the groups use pointers.
fn replaceable_exit(
    func: &Function,
    lp: &NaturalLoop,
    variable: &InductionVariable,
    groups: &[&Group],
    users: &UseLists,
    exits: &[CountedExit],
    dead: &FxHashSet<Inst>,
) -> Option<(usize, CountedExit)> {
    let exit = exits.iter().find(|exit| exit.variable.param == variable.param)?;
    let trip_count = exit.count?;
    let counting = groups.iter().position(|group| {
        // The pointer must not reach its final value before the variable does.
        let stride = group.factor.wrapping_mul(variable.step as u32);
        let distance = trip_count.checked_mul(stride.cast_signed().unsigned_abs().into());
        group.variable.param == variable.param && stride != 0 && distance.is_some_and(|distance| distance < 1 << 32)
    })?;
    let InstructionData::Brif { arg, .. } = func.dfg.insts[exit.edge.inst] else {
        return None;
    };
    let test = func.dfg.value_def(func.dfg.resolve_aliases(arg)).inst();
    let next = edit::args(func, lp.back_edge)?.get(variable.index).copied()?;
    let next = func.dfg.resolve_aliases(next);
    // The only permitted uses of the variable and its increment are addresses, the exit test and
    // the increment.
    let mut work = vec![variable.param];
    let mut seen: FxHashSet<Value> = FxHashSet::default();
    while let Some(value) = work.pop() {
        if !seen.insert(value) {
            continue;
        }
        for user in users.of_value(value) {
            let is_test = Some(user) == test && users.of_value(func.dfg.first_result(user)).count() == 1;
            let is_back = user == lp.back_edge.inst && value == next && only_argument(func, lp, variable.index, value);
            let is_access = access::address(func, user) == Some(value)
                && groups
                    .iter()
                    .any(|group| group.accesses.iter().any(|access| access.0 == user));
            if dead.contains(&user) || is_test || is_back || is_access {
                continue;
            }
            let counts = linear::linear_op(func, user).is_some_and(|op| matches!(op, linear::LinearOp::AddConst(..)));
            if !counts || !func.layout.inst_block(user).is_some_and(|block| lp.contains(block)) {
                return None;
            }
            work.push(func.dfg.first_result(user));
        }
    }
    Some((counting, *exit))
}

/// Returns whether the back edge passes the value only as the next value of the variable.
fn only_argument(func: &Function, lp: &NaturalLoop, index: usize, value: Value) -> bool {
    let resolve = |arg: Value| func.dfg.resolve_aliases(arg);
    let times = func
        .dfg
        .inst_values(lp.back_edge.inst)
        .filter(|&arg| resolve(arg) == value)
        .count();
    let own = edit::args(func, lp.back_edge).and_then(|args| args.get(index).copied());
    times == 1 && own.map(resolve) == Some(value)
}

/// Creates the pointer of the group. The pointer replaces the variable in `exit`, if given.
fn apply(func: &mut Function, lp: &NaturalLoop, group: &Group, exit: Option<&CountedExit>) -> Result<(), Error> {
    let &[entry] = lp.entries.as_slice() else {
        return Err(Error::internal(
            "strength_reduction",
            lp.header,
            "a loop with one entry",
        ));
    };
    let args = edit::values(func, entry, "strength_reduction")?;
    let mut cursor = FuncCursor::new(func).at_inst(entry.inst);
    let word = |number: u64| i64::from((number & u64::from(u32::MAX)) as u32 as i32);
    // The start value of the pointer.
    let mut constant = group.constant;
    let mut terms = group.base.to_vec();
    match group.variable.start {
        Some(start) => constant = constant.wrapping_add(group.factor.wrapping_mul(start as u32).cast_signed()),
        None => terms.push((args[group.variable.index], group.factor)),
    }
    let first = linear::add_terms(&mut cursor, None, &terms);
    let number = |cursor: &mut FuncCursor<'_>, number: i64| cursor.ins().iconst(types::I32, number);
    let start = match (first, constant) {
        (Some(first), 0) => first,
        (Some(first), constant) => {
            let constant = number(&mut cursor, i64::from(constant));
            cursor.ins().iadd(first, constant)
        }
        (None, constant) => number(&mut cursor, i64::from(constant)),
    };
    let stride = u64::from(group.factor).wrapping_mul(group.variable.step);
    let end = exit.and_then(|exit| exit.count).map(|count| {
        let distance = number(&mut cursor, word(stride.wrapping_mul(count - 1)));
        cursor.ins().iadd(start, distance)
    });
    let pointer = cursor.func.dfg.append_block_param(lp.header, types::I32);
    edit::append_argument(cursor.func, entry, start);
    if let (Some(exit), Some(end)) = (exit, end) {
        // Before the increment: the increment can then reuse the pointer's register, and the branch
        // does not wait for it.
        cursor.goto_inst(exit.edge.inst);
        let condition = if exit.edge.number == 0 {
            IntCC::Equal
        } else {
            IntCC::NotEqual
        };
        let test = cursor.ins().icmp(condition, pointer, end);
        if let InstructionData::Brif { arg, .. } = &mut cursor.func.dfg.insts[exit.edge.inst] {
            *arg = test;
        }
    }
    cursor.goto_inst(lp.back_edge.inst);
    let step = number(&mut cursor, word(stride));
    let next = cursor.ins().iadd(pointer, step);
    edit::append_argument(cursor.func, lp.back_edge, next);
    for &(inst, offset) in &group.accesses {
        access::set_address(cursor.func, inst, pointer, offset.wrapping_sub(group.constant));
    }
    Ok(())
}
