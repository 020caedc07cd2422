//! Reduces a failing case: fewer functions, blocks and instructions, simpler constants.

use super::generate::{Block, Case, Def, Func, Line, constant_lines};
use std::collections::HashSet;

/// The largest number of cases to try.
const TRIES: usize = 4000;

type Pass = fn(&Case, usize) -> Option<Case>;

const PASSES: [Pass; 6] = [
    fewer_arguments,
    fewer_functions,
    simpler_terminators,
    tidy_blocks,
    constant_results,
    no_unused,
];

/// Shrinks the case as long as `fails` returns true. The result fails if the case failed.
pub fn shrink(case: Case, mut fails: impl FnMut(&Case) -> bool) -> Case {
    let mut best = case;
    let mut tries = 0;
    loop {
        let before = best.clone();
        for pass in PASSES {
            let mut at = 0;
            while let Some(candidate) = pass(&best, at) {
                tries += 1;
                if tries > TRIES {
                    return best;
                }
                // The pass removed the item at this index, so the same index is tried again.
                if candidate != best && fails(&candidate) {
                    best = candidate;
                } else {
                    at += 1;
                }
            }
        }
        if best == before {
            return best;
        }
    }
}

fn fewer_arguments(case: &Case, at: usize) -> Option<Case> {
    let mut case = case.clone();
    if at >= case.args.len() || case.args.len() == 1 {
        return None;
    }
    case.args.remove(at);
    Some(case)
}

/// Removes the last function if it has no callers.
fn fewer_functions(case: &Case, at: usize) -> Option<Case> {
    let mut case = case.clone();
    if at > 0 || case.funcs.len() < 2 {
        return None;
    }
    case.funcs.pop();
    Some(case)
}

/// Replaces the terminator by a jump to one of its targets.
fn simpler_terminators(case: &Case, at: usize) -> Option<Case> {
    let mut case = case.clone();
    let mut index = at / 2;
    for func in &mut case.funcs {
        if index >= func.blocks.len() {
            index -= func.blocks.len();
            continue;
        }
        let terminator = func.blocks[index].terminator.clone();
        if terminator.starts_with("brif") {
            let first = terminator.find("block")?;
            // Arguments contain commas, so the word `block` separates the targets.
            let second = first + 5 + terminator[first + 5..].find("block")?;
            let targets = [
                terminator[first..second].trim_end_matches([',', ' ']),
                &terminator[second..],
            ];
            func.blocks[index].terminator = format!("jump {}", targets[at % 2]);
        } else if terminator.starts_with("br_table") {
            let first = terminator.find("block")?;
            let end = first + terminator[first..].find(',')?;
            func.blocks[index].terminator = format!("jump {}", &terminator[first..end]);
        }
        return Some(case);
    }
    None
}

fn targets(block: &Block) -> impl Iterator<Item = usize> + '_ {
    let split = block.terminator.split(|c: char| !c.is_ascii_alphanumeric());
    split.filter_map(|word| word.strip_prefix("block")?.parse().ok())
}

/// Removes unreachable blocks and merges straight-line successors.
fn tidy_blocks(case: &Case, at: usize) -> Option<Case> {
    let mut case = case.clone();
    let func = case.funcs.get_mut(at)?;
    let mut count = vec![0; func.blocks.len()];
    let mut todo = vec![0];
    while let Some(index) = todo.pop() {
        count[index] += 1;
        if count[index] == 1 {
            todo.extend(targets(&func.blocks[index]));
        }
    }
    for (block, &count) in func.blocks.iter_mut().zip(&count) {
        block.dropped |= count == 0;
    }
    for from in 0..func.blocks.len() {
        let Some(to) = func.blocks[from].terminator.strip_prefix("jump block") else {
            continue;
        };
        let Ok(to) = to.parse::<usize>() else { continue };
        if to != from && count[to] == 1 && !func.blocks[from].dropped && func.blocks[to].params.is_empty() {
            let next = std::mem::take(&mut func.blocks[to]);
            func.blocks[to].dropped = true;
            func.blocks[from].lines.extend(next.lines);
            func.blocks[from].terminator = next.terminator;
        }
    }
    Some(case)
}

fn line_at(case: &mut Case, mut at: usize) -> Option<(&mut Vec<Line>, usize)> {
    for func in &mut case.funcs {
        for block in &mut func.blocks {
            if at < block.lines.len() {
                return Some((&mut block.lines, at));
            }
            at -= block.lines.len();
        }
    }
    None
}

/// Replaces an instruction by constants, or removes it if it has no results.
fn constant_results(case: &Case, at: usize) -> Option<Case> {
    let mut case = case.clone();
    let mut next = case.funcs.iter().flat_map(last_value).max().unwrap_or(0);
    let (lines, at) = line_at(&mut case, at)?;
    let constants: Vec<Line> = lines[at]
        .defs
        .iter()
        .flat_map(|&def| {
            constant_lines(def, 0, |ty| {
                next += 1;
                (next, ty)
            })
        })
        .collect();
    // The constants are one and zero, the simplest ones.
    lines.splice(at..=at, constants);
    Some(case)
}

/// Returns the highest value number that an instruction or block defines.
fn last_value(func: &Func) -> Option<u32> {
    let of_block = |block: &Block| -> Vec<Def> {
        let lines = block.lines.iter().flat_map(|line| line.defs.iter().copied());
        lines.chain(block.params.iter().copied()).collect()
    };
    func.blocks.iter().flat_map(of_block).map(|def| def.0).max()
}

/// Removes a dead instruction.
fn no_unused(case: &Case, at: usize) -> Option<Case> {
    let mut case = case.clone();
    let text: Vec<HashSet<String>> = case.funcs.iter().map(words).collect();
    let mut index = at;
    for (func, used) in case.funcs.iter_mut().zip(text) {
        for block in &mut func.blocks {
            if index >= block.lines.len() {
                index -= block.lines.len();
                continue;
            }
            if block.lines[index]
                .defs
                .iter()
                .all(|d| !used.contains(&format!("v{}", d.0)))
            {
                block.lines.remove(index);
            }
            return Some(case);
        }
    }
    None
}

/// Returns all names that the instructions of a function use.
fn words(func: &Func) -> HashSet<String> {
    let lines = func
        .blocks
        .iter()
        .flat_map(|b| b.lines.iter().map(|l| &l.text).chain([&b.terminator]));
    let split = |c: char| !c.is_ascii_alphanumeric();
    lines
        .flat_map(|text| text.split(split).map(str::to_owned).collect::<Vec<_>>())
        .collect()
}
