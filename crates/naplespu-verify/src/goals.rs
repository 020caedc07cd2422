//! The goals of a proof: results, memory, traps, and the guarantees of the calling convention.

use crate::abi::{Layout, initial_register, pieces, place_of_word, words_of};
use crate::clif::{self, ExitKind, Lanes};
use crate::machine;
use crate::memory::{LOCKS, Memory, Region};
use crate::path::any;
use crate::term::{Pool, Term, WORD};
use cranelift_codegen::ir::Function;
use cranelift_naplespu::abi::sig::Place;
use cranelift_naplespu::shape::vector_registers;
use npu_mc::cc::is_callee_saved;
use npu_mc::machine::LANES;
use npu_mc::{Reg, SReg, VReg};
use std::collections::BTreeSet;

/// A goal: the claim has to hold whenever the assumption holds.
#[derive(Clone, Debug)]
pub struct Goal {
    /// A description for messages.
    pub what: String,
    /// The condition under which the claim has to hold.
    pub assumption: Term,
    /// The claim.
    pub claim: Term,
}

/// All goals and their common assumptions.
pub struct Goals {
    /// Assumptions that the CLIF guarantees.
    pub assumptions: Vec<Term>,
    /// The goals.
    pub list: Vec<Goal>,
    /// The behavior of the CLIF, for trials.
    pub expected: Expected,
}

/// The behavior of a function by its CLIF.
#[derive(Default)]
pub struct Expected {
    /// Trap codes and their conditions.
    pub traps: Vec<(u8, Term)>,
    /// The results, if the function returns.
    pub results: Vec<Lanes>,
    /// Addresses in main memory that CLIF or code write, with their final contents by the CLIF.
    pub written: Vec<(Term, Term)>,
}

/// The name of the unknown that stands for every address at which memory is compared.
pub const ANY_ADDRESS: &str = "any_address";

/// Returns the condition that a region is equal in both memories, at an arbitrary address.
pub fn same_memory(pool: &mut Pool, a: &Memory, b: &Memory, region: Region) -> Term {
    if a.same(b, region) {
        return pool.bool(true);
    }
    let address = pool.var(ANY_ADDRESS, WORD);
    let (x, y) = (a.load(pool, region, address, 1), b.load(pool, region, address, 1));
    pool.eq(x, y)
}

/// Returns the condition that one of the exits of a kind is taken.
fn ends<S>(pool: &mut Pool, exits: &[(ExitKind, S)], kind: ExitKind, path: impl Fn(&S, &mut Pool) -> Term) -> Term {
    let mut all = Vec::new();
    for (of, state) in exits {
        if *of == kind {
            all.push(path(state, pool));
        }
    }
    any(pool, &all)
}

/// Returns the goals of a function and its code.
///
/// # Errors
///
/// The results of the signature cannot be compared.
pub fn goals(
    pool: &mut Pool,
    func: &Function,
    layout: &Layout,
    clif: clif::Outcome,
    machine: machine::Outcome,
) -> Result<Goals, String> {
    let mut list = Vec::new();
    let clif_path = |state: &clif::State, pool: &mut Pool| state.path.condition(pool);
    let machine_path = |state: &machine::State, pool: &mut Pool| state.path.condition(pool);
    let always = pool.bool(true);
    let mut assumptions = clif.assumptions;
    let mut expected = Expected::default();

    // The caller aligns the area for results to its contents.
    if let Some(area) = result_area(pool, layout) {
        let in_memory = layout.sig.rets.iter().zip(&func.signature.returns);
        let sizes = in_memory.filter_map(|(places, param)| match places.last()? {
            Place::Memory(_) if vector_registers(param.value_type).is_some() => Some(LANES * WORD / 8),
            Place::Memory(_) => Some(WORD / 8),
            Place::Reg(_) => None,
        });
        let mask = pool.int(WORD, u64::from(sizes.max().unwrap_or(1) - 1));
        let rest = pool.and(area, mask);
        let zero = pool.int(WORD, 0);
        assumptions.push(pool.eq(rest, zero));
    }

    // Paths with too many iterations are excluded.
    let cut = ends(pool, &clif.exits, ExitKind::Cut, clif_path);
    assumptions.push(pool.not(cut));

    // Both have the same kinds of exits under the same conditions.
    let kinds: BTreeSet<Option<u8>> = clif
        .exits
        .iter()
        .map(|exit| exit.0)
        .chain(machine.exits.iter().map(|exit| exit.0))
        .filter_map(|kind| match kind {
            ExitKind::Return => Some(None),
            ExitKind::Trap(code) => Some(Some(code)),
            ExitKind::Cut => None,
        })
        .collect();
    for kind in kinds {
        let (kind, what) = match kind {
            None => (ExitKind::Return, "when the function returns".to_owned()),
            Some(code) => (
                ExitKind::Trap(code),
                format!("when the function traps with code {code}"),
            ),
        };
        let a = ends(pool, &clif.exits, kind, clif_path);
        let b = ends(pool, &machine.exits, kind, machine_path);
        let claim = pool.eq(a, b);
        if let ExitKind::Trap(code) = kind {
            expected.traps.push((code, a));
        }
        list.push(Goal {
            what,
            assumption: always,
            claim,
        });
    }

    // Callee-saved state at every return.
    for (_, state) in machine.exits.iter().filter(|exit| exit.0 == ExitKind::Return) {
        let path = state.path.condition(pool);
        preserved(pool, layout, state, path, &mut list);
        released(pool, state, path, &mut list);
    }

    // Results and memory at the joined returns.
    let returned = ends(pool, &clif.exits, ExitKind::Return, clif_path);
    let mut wanted = clif.exits.into_iter().filter(|exit| exit.0 == ExitKind::Return);
    let mut given = machine.exits.into_iter().filter(|exit| exit.0 == ExitKind::Return);
    if let (Some((_, a)), Some((_, b))) = (wanted.next(), given.next()) {
        let a = wanted.fold(a, |a, (_, b)| a.join(b, pool));
        let b = given.fold(b, |a, (_, b)| a.join(b, pool));
        expected.results = a.results.clone();
        let both = a.memory.written(Region::Main).chain(b.memory.written(Region::Main));
        let written: BTreeSet<Term> = both.map(|(address, _)| address).collect();
        for address in written {
            let value = a.memory.load(pool, Region::Main, address, 1);
            expected.written.push((address, value));
        }
        results(pool, func, layout, a, &b, returned, &mut list)?;
    }

    for obligation in machine.obligations {
        list.push(Goal {
            what: obligation.what,
            assumption: obligation.path,
            claim: obligation.claim,
        });
    }

    // Every call of the CLIF happens exactly once.
    for (number, (call, paths)) in clif.calls.iter().zip(&machine.calls).enumerate() {
        let path = call.path.condition(pool);
        let done = any(pool, paths);
        list.push(Goal {
            what: format!("call {number} happens"),
            assumption: path,
            claim: done,
        });
        for (at, &first) in paths.iter().enumerate() {
            for &second in &paths[at + 1..] {
                let both = pool.and(first, second);
                let claim = pool.not(both);
                list.push(Goal {
                    what: format!("call {number} happens once"),
                    assumption: always,
                    claim,
                });
            }
        }
    }
    Ok(Goals {
        assumptions,
        list,
        expected,
    })
}

/// Adds goals that callee-saved registers are preserved.
fn preserved(pool: &mut Pool, layout: &Layout, state: &machine::State, path: Term, list: &mut Vec<Goal>) {
    let mut goal = |pool: &mut Pool, what: String, value: Term, expected: Term| {
        let claim = pool.eq(value, expected);
        list.push(Goal {
            what,
            assumption: path,
            claim,
        });
    };
    for reg in SReg::all() {
        let kept = match layout.sig.registers {
            cranelift_naplespu::abi::registers::RegisterSet::All => is_callee_saved(Reg::S(reg)),
            cranelift_naplespu::abi::registers::RegisterSet::PreserveAll => {
                !crate::abi::is_clobbered(&layout.sig, Reg::S(reg)) && reg != SReg::PC
            }
        };
        // `ra` is checked as the target of the return.
        if !kept || reg == SReg::RM || reg == SReg::RA || reg == SReg::SP {
            continue;
        }
        let before = initial_register(pool, Reg::S(reg), 0);
        goal(pool, format!("{reg} is preserved"), state.get(Reg::S(reg), 0), before);
    }
    for reg in VReg::all() {
        if crate::abi::is_clobbered(&layout.sig, Reg::V(reg))
            || !npu_mc::env::VR512W.non_preferred.contains(&reg.number())
        {
            continue;
        }
        for lane in 0..LANES {
            let before = initial_register(pool, Reg::V(reg), lane);
            goal(
                pool,
                format!("{reg} is preserved"),
                state.get(Reg::V(reg), lane),
                before,
            );
        }
    }
    let popped = pool.int(WORD, u64::from(layout.sig.popped));
    let sp = pool.add(layout.sp, popped);
    goal(
        pool,
        "sp is that of the caller".to_owned(),
        state.get(Reg::S(SReg::SP), 0),
        sp,
    );
    let ones = pool.int(LANES, (1 << LANES) - 1);
    goal(pool, "rm is all ones".to_owned(), state.mask(), ones);

    // The caller's part of the stack, above the arguments or the bytes that the function removes.
    let own = layout.sig.stack_args.max(layout.sig.popped);
    let distance = pool.var("any_distance", WORD);
    let above = pool.add(layout.sp, distance);
    let touched = state
        .memory
        .written(Region::Frame)
        .any(|(address, _)| match pool.difference(address, layout.sp) {
            Some(offset) => (offset as i32) >= own as i32,
            None => true,
        });
    if touched {
        let now = state.memory.load(pool, Region::Frame, above, 1);
        let before = Memory::default().load(pool, Region::Frame, above, 1);
        let bound = pool.int(WORD, u64::from(own));
        let argument = pool.ult(distance, bound);
        let negative = pool.extract(WORD - 1, WORD - 1, distance);
        let mut claim = pool.eq(now, before);
        for excluded in [argument, negative] {
            claim = pool.or(claim, excluded);
        }
        list.push(Goal {
            what: "the caller's stack is not written".to_owned(),
            assumption: path,
            claim,
        });
    }
}

/// Adds goals that the locks of atomic operations are released.
fn released(pool: &mut Pool, state: &machine::State, path: Term, list: &mut Vec<Goal>) {
    if state.memory.written(Region::Locks).next().is_none() {
        return;
    }
    for lock in LOCKS {
        let address = pool.var(lock, WORD);
        let now = state.memory.load(pool, Region::Locks, address, 1);
        let before = Memory::default().load(pool, Region::Locks, address, 1);
        let zero = pool.int(8, 0);
        let (free, same) = (pool.eq(now, zero), pool.eq(now, before));
        let claim = pool.or(free, same);
        list.push(Goal {
            what: format!("the lock at {lock} is released"),
            assumption: path,
            claim,
        });
    }
}

/// Returns the address of the area for results in memory.
fn result_area(pool: &mut Pool, layout: &Layout) -> Option<Term> {
    Some(match layout.sig.ret_area? {
        Place::Reg(reg) => initial_register(pool, reg, 0),
        Place::Memory(offset) => {
            let offset = pool.int(WORD, u64::from(offset));
            let address = pool.add(layout.sp, offset);
            Memory::default().load(pool, Region::Frame, address, WORD / 8)
        }
    })
}

/// Adds goals for results and memory.
fn results(
    pool: &mut Pool,
    func: &Function,
    layout: &Layout,
    mut clif: clif::State,
    machine: &machine::State,
    returned: Term,
    list: &mut Vec<Goal>,
) -> Result<(), String> {
    let sig = &layout.sig;
    let area = result_area(pool, layout);
    let values = std::mem::take(&mut clif.results);
    for (number, ((param, places), lanes)) in func.signature.returns.iter().zip(&sig.rets).zip(&values).enumerate() {
        let words = words_of(pool, param, lanes);
        for (at, &word) in words.iter().enumerate() {
            match place_of_word(param.value_type, places, at as u32) {
                Some((Place::Reg(reg), lane)) => {
                    let have = machine.get(reg, lane);
                    let have = pool.extract(pool.width(word) - 1, 0, have);
                    let claim = pool.eq(word, have);
                    list.push(Goal {
                        what: format!("result {number}, word {at}, in {reg}"),
                        assumption: returned,
                        claim,
                    });
                }
                Some((Place::Memory(offset), lane)) => {
                    let area = area.ok_or("a result is in memory, but the caller passes no area")?;
                    let offset = pool.int(WORD, u64::from(offset + 4 * lane));
                    let address = pool.add(area, offset);
                    clif.memory.store(pool, Region::Main, address, word);
                    // The bytes above a narrow result are undefined.
                    for at in pool.width(word) / 8..WORD / 8 {
                        let at = pool.int(WORD, u64::from(at));
                        let address = pool.add(address, at);
                        let byte = machine.memory.load(pool, Region::Main, address, 1);
                        clif.memory.store(pool, Region::Main, address, byte);
                    }
                }
                None => return Err("a result has no location".to_owned()),
            }
        }
    }
    if let Some((index, reg)) = sig.returned_pointer {
        let places = sig.args.get(index).ok_or("the returned pointer is no argument")?;
        let param = func.signature.params[index].value_type;
        let pointer = pieces(pool, param, places, |pool, place, lane| match place {
            Place::Reg(reg) => initial_register(pool, reg, lane),
            Place::Memory(_) => pool.fresh("undefined", WORD),
        });
        let have = machine.get(reg, 0);
        if let [pointer] = pointer[..] {
            let claim = pool.eq(pointer, have);
            list.push(Goal {
                what: "the pointer that the function returns".to_owned(),
                assumption: returned,
                claim,
            });
        }
    }
    for (region, what) in [(Region::Main, "memory"), (Region::Scratchpad, "the scratchpad")] {
        let claim = same_memory(pool, &clif.memory, &machine.memory, region);
        list.push(Goal {
            what: what.to_owned(),
            assumption: returned,
            claim,
        });
    }
    Ok(())
}
