//! Strength reduction: an address that grows by a constant in every round becomes a pointer that is incremented.
//!
//! `base + (i << 2)` takes two instructions in every round, `p + 4` one; and if `i` was only there for addresses and to count, the
//! pointer counts as well. It is done where at most as many instructions are executed in a round as before, counted as they are.
//! What has to hold afterwards, and is checked, stands in [`super::check`].

use super::addresses;
use super::check;
use super::edit;
use super::licm;
use super::linear::{self, Sum};
use super::loops::{self, CountedExit, Induction, NaturalLoop};
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

/// How many pointers one loop may get, so that enough registers are left.
const MOST: usize = 12;

/// Accesses whose addresses differ by constants.
#[derive(Debug)]
struct Group {
    variable: Induction,
    /// What the variable is multiplied by.
    factor: u32,
    /// What does not change in the loop.
    base: SmallVec<[(Value, u32); 4]>,
    /// What the pointer has on top, so that all offsets are in reach.
    constant: i32,
    /// The accesses, with the constant parts of their addresses.
    accesses: Vec<(Inst, i32)>,
}

/// Users of each value, as lists: a user, and the place of the next one.
struct Users {
    first: SecondaryMap<Value, Option<NonZeroU32>>,
    list: Vec<(Inst, Option<NonZeroU32>)>,
}

impl Users {
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
                    // Places are counted from 1.
                    *first = u32::try_from(users.list.len()).ok().and_then(NonZeroU32::new);
                }
            }
        }
        users
    }

    /// The instructions that use the value, each as often as it does.
    fn of_value(&self, value: Value) -> impl Iterator<Item = Inst> {
        let mut next = self.first[value];
        std::iter::from_fn(move || {
            let &(inst, after) = self.list.get(next?.get() as usize - 1)?;
            next = after;
            Some(inst)
        })
    }
}

/// Reduces addresses in the loops, from the innermost outwards. Gives whether anything changed.
///
/// # Errors
///
/// [`Error::Internal`].
pub fn run(ctx: &mut Context, target: &dyn Target, loops: &[NaturalLoop]) -> Result<bool, Error> {
    let mut known = None;
    let mut changed = false;
    for lp in loops.iter().rev() {
        changed |= reduce(ctx, target, lp, &mut known)?;
    }
    Ok(changed)
}

/// Reduces addresses in one loop. The users of values are those before the pass; they are found when they are asked for first.
fn reduce(ctx: &mut Context, target: &dyn Target, lp: &NaturalLoop, known: &mut Option<Users>) -> Result<bool, Error> {
    let func = &ctx.func;
    if lp.entries.len() != 1 {
        return Ok(false);
    }
    let variables: Vec<Induction> = loops::inductions(func, lp)
        .into_iter()
        .filter(|variable| variable.ty == types::I32)
        .collect();
    if variables.is_empty() {
        return Ok(false);
    }
    let groups = groups(ctx, target, lp, &variables);
    if groups.is_empty() || groups.len() > MOST || licm::calls(func, target, lp) {
        return Ok(false);
    }
    let users = &*known.get_or_insert_with(|| Users::of(func));
    let exits = loops::counted_exits(ctx, lp);
    // All of them, or those that are worth it alone.
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
    // Of the groups of a variable the one that can count does.
    let gone = dead(func, lp, &chosen, users);
    let counts: Vec<(usize, CountedExit)> = variables
        .iter()
        .filter_map(|variable| replaceable_exit(func, lp, variable, &chosen, users, &exits, &gone))
        .collect();
    let before = target.checks_loops().then(|| ctx.func.clone());
    for (number, group) in chosen.into_iter().enumerate() {
        let exit = counts.iter().find(|(counting, _)| *counting == number);
        apply(&mut ctx.func, lp, group, exit.map(|(_, exit)| exit))?;
    }
    if let Some(before) = before {
        check::pointers(&before, &ctx.func, lp)?;
    }
    Ok(true)
}

/// The accesses of the loop, without those of inner loops, that a pointer could do, by pointer.
fn groups(ctx: &Context, target: &dyn Target, lp: &NaturalLoop, variables: &[Induction]) -> Vec<Group> {
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
            let Some(sum) = addresses::pointer(func, inst).and_then(|pointer| Sum::of(func, pointer, &opens)) else {
                continue;
            };
            let is_variable = |value: Value| variables.iter().find(|variable| variable.param == value);
            let mut changing = sum
                .terms
                .iter()
                .filter(|term| inside.contains(&loops::definition(func, term.0)));
            let (Some(&(value, factor)), None) = (changing.next(), changing.next()) else {
                continue;
            };
            let Some(&variable) = is_variable(value) else {
                continue;
            };
            let base: SmallVec<[(Value, u32); 4]> = sum.terms.iter().copied().filter(|term| term.0 != value).collect();
            if base.is_empty() && factor == 1 {
                // It is a pointer already.
                continue;
            }
            let offset = func.dfg.insts[inst].load_store_offset().unwrap_or(0);
            let offset = offset.wrapping_add(sum.constant.cast_signed());
            let same = |group: &&mut Group| {
                group.variable.param == value
                    && group.factor == factor
                    && group.base == base
                    && addresses::in_reach(target, offset.wrapping_sub(group.constant))
            };
            match groups.iter_mut().find(same) {
                Some(group) => group.accesses.push((inst, offset)),
                None => groups.push(Group {
                    variable,
                    factor,
                    base,
                    constant: if addresses::in_reach(target, offset) { 0 } else { offset },
                    accesses: vec![(inst, offset)],
                }),
            }
        }
    }
    groups
}

/// How many instructions fewer a round has with pointers for these groups.
fn gain(func: &Function, lp: &NaturalLoop, groups: &[&Group], users: &Users, exits: &[CountedExit]) -> isize {
    let dead = dead(func, lp, groups, users);
    let mut variables: Vec<&Induction> = groups.iter().map(|group| &group.variable).collect();
    variables.dedup_by_key(|variable| variable.param);
    let counters = variables
        .iter()
        .filter(|variable| replaceable_exit(func, lp, variable, groups, users, exits, &dead).is_some())
        .count();
    (dead.len() + counters).cast_signed() - groups.len().cast_signed()
}

/// The instructions of the loop that nobody needs once the groups have pointers.
fn dead(func: &Function, lp: &NaturalLoop, groups: &[&Group], users: &Users) -> FxHashSet<Inst> {
    let accesses: FxHashSet<Inst> = groups
        .iter()
        .flat_map(|group| group.accesses.iter().map(|access| access.0))
        .collect();
    let mut dead: FxHashSet<Inst> = FxHashSet::default();
    let mut work: Vec<Value> = accesses
        .iter()
        .filter_map(|&inst| addresses::pointer(func, inst))
        .collect();
    while let Some(value) = work.pop() {
        let ValueDef::Result(inst, 0) = func.dfg.value_def(value) else {
            continue;
        };
        let inside = func.layout.inst_block(inst).is_some_and(|block| lp.contains(block));
        if !inside || dead.contains(&inst) || linear::step(func, inst).is_none() {
            continue;
        }
        let goes = |user: Inst| {
            dead.contains(&user)
                || accesses.contains(&user) && {
                    // As an address, not as what is stored.
                    let place = addresses::pointer_place(&func.dfg.insts[user]);
                    let args = func.dfg.inst_args(user).iter().enumerate();
                    let mut values = args.map(|(number, &arg)| (number, func.dfg.resolve_aliases(arg)));
                    values.all(|(number, arg)| arg != value || Some(number) == place)
                }
        };
        if users.of_value(value).all(goes) {
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

/// The exit that counts by the variable, and the number of the group whose pointer can do that, if nobody else needs the variable
/// then. `dead` are the instructions that nobody needs once the groups have pointers.
fn replaceable_exit(
    func: &Function,
    lp: &NaturalLoop,
    variable: &Induction,
    groups: &[&Group],
    users: &Users,
    exits: &[CountedExit],
    dead: &FxHashSet<Inst>,
) -> Option<(usize, CountedExit)> {
    let exit = exits.iter().find(|exit| exit.variable.param == variable.param)?;
    let rounds = exit.count?;
    let counting = groups.iter().position(|group| {
        // The pointer must not come back to where it ends before the variable does.
        let stride = group.factor.wrapping_mul(variable.step as u32);
        let distance = rounds.checked_mul(stride.cast_signed().unsigned_abs().into());
        group.variable.param == variable.param && stride != 0 && distance.is_some_and(|distance| distance < 1 << 32)
    })?;
    let InstructionData::Brif { arg, .. } = func.dfg.insts[exit.edge.inst] else {
        return None;
    };
    let test = func.dfg.value_def(func.dfg.resolve_aliases(arg)).inst();
    let next = edit::args(func, lp.back)?.get(variable.index).copied()?;
    let next = func.dfg.resolve_aliases(next);
    // The variable and what it becomes are needed by the addresses, by the test and to count, and by nothing else.
    let mut work = vec![variable.param];
    let mut seen: FxHashSet<Value> = FxHashSet::default();
    while let Some(value) = work.pop() {
        if !seen.insert(value) {
            continue;
        }
        for user in users.of_value(value) {
            let is_test = Some(user) == test && users.of_value(func.dfg.first_result(user)).count() == 1;
            let is_back = user == lp.back.inst && value == next && only_argument(func, lp, variable.index, value);
            let is_access = addresses::pointer(func, user) == Some(value)
                && groups
                    .iter()
                    .any(|group| group.accesses.iter().any(|access| access.0 == user));
            if dead.contains(&user) || is_test || is_back || is_access {
                continue;
            }
            let counts = linear::step(func, user).is_some_and(|step| matches!(step, linear::Step::Plus(..)));
            if !counts || !func.layout.inst_block(user).is_some_and(|block| lp.contains(block)) {
                return None;
            }
            work.push(func.dfg.first_result(user));
        }
    }
    Some((counting, *exit))
}

/// Whether the value is an argument of the back edge's branch only as what the variable becomes.
fn only_argument(func: &Function, lp: &NaturalLoop, index: usize, value: Value) -> bool {
    let resolve = |arg: Value| func.dfg.resolve_aliases(arg);
    let times = func
        .dfg
        .inst_values(lp.back.inst)
        .filter(|&arg| resolve(arg) == value)
        .count();
    let own = edit::args(func, lp.back).and_then(|args| args.get(index).copied());
    times == 1 && own.map(resolve) == Some(value)
}

/// Gives the group its pointer; the exit is taken by it, if given.
fn apply(func: &mut Function, lp: &NaturalLoop, group: &Group, exit: Option<&CountedExit>) -> Result<(), Error> {
    let &[entry] = lp.entries.as_slice() else {
        return Err(Error::internal("pointers", lp.header, "a loop with one entry"));
    };
    let args = edit::values(func, entry, "pointers")?;
    let mut cursor = FuncCursor::new(func).at_inst(entry.inst);
    let word = |number: u64| i64::from((number & u64::from(u32::MAX)) as u32 as i32);
    // Where the pointer begins.
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
        // Before the increment, which can then take the pointer's register and does not hold up the branch.
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
    cursor.goto_inst(lp.back.inst);
    let step = number(&mut cursor, word(stride));
    let next = cursor.ins().iadd(pointer, step);
    edit::append_argument(cursor.func, lp.back, next);
    for &(inst, offset) in &group.accesses {
        addresses::set_address(cursor.func, inst, pointer, offset.wrapping_sub(group.constant));
    }
    Ok(())
}
