//! Finds lines that notice changes of the runtime's routines, which all functions share.

use super::Unit;
use super::cover::{self, Chosen};
use super::features::{Feature, Kind, feature};
use super::mutate::mutants;
use super::observe::{is_routine, passes, program, trace, write};
use naplespu_filetests::runner;
use naplespu_reader::panics::caught;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

/// The number of lines of a function that are tried for a change that is not noticed yet.
const TRIES: usize = 12;

/// A change of a routine: the feature of its name, position and kind.
type Change = Feature;

/// The tried changes, and the first line that notices each noticed one.
#[derive(Default)]
struct Noticed {
    tried: HashSet<Change>,
    by: BTreeMap<Change, usize>,
}

/// Runs the lines `wanted` of a function on changed forms of the routines that they execute, except
/// for changes with `skip`.
fn notice(unit: &Unit<'_>, wanted: &[usize], skip: &(dyn Fn(Change) -> bool + Sync)) -> Result<Noticed, String> {
    let mut found = Noticed::default();
    let Some(target) = unit.case.targets.last().filter(|_| unit.seen.has_routines) else {
        return Ok(found);
    };
    let case = unit.case;
    let mut program = program(case, target, unit.function)?;
    let known = Arc::new(Mutex::new(HashMap::new()));
    let mut traces = Vec::new();
    for &line in wanted {
        let (seen, steps) =
            trace(case, &mut program, case.lines_of[unit.function][line], &known).ok_or("a line fails")?;
        traces.push((line, seen.words, steps));
    }
    let map = program.module().map_err(|error| error.to_string())?.code_map();
    let mut words = BTreeMap::new();
    traces
        .iter()
        .for_each(|(_, seen, _)| words.extend(seen.iter().map(|(&pc, &word)| (pc, word))));
    for (pc, word) in words {
        let Some((name, offset)) = map.name(pc).filter(|(name, _)| is_routine(name)) else {
            continue;
        };
        for mutant in mutants(word) {
            let change = feature(Kind::Routine, ("routine", name, offset, mutant.kind));
            found.tried.insert(change);
            if skip(change) {
                continue;
            }
            write(&mut program, pc, mutant.word)?;
            let executing = traces
                .iter()
                .filter(|(_, words, _)| words.contains_key(&pc))
                .take(TRIES);
            for (line, _, steps) in executing {
                if !passes(
                    case,
                    &mut program,
                    case.lines_of[unit.function][*line],
                    steps * 3 + 2000,
                ) {
                    found.by.insert(change, *line);
                    break;
                }
            }
            write(&mut program, pc, word)?;
        }
    }
    Ok(found)
}

/// Returns the kept lines of a unit, or the others.
fn lines(unit: &Unit<'_>, kept: bool) -> Vec<usize> {
    (0..unit.lines.len())
        .filter(|&line| (unit.is_kept && unit.lines[line]) == kept)
        .collect()
}

/// Keeps more lines, so that each change of a routine that any line notices stays noticed.
pub fn restore(units: &mut [Unit<'_>], chosen: &mut Chosen) -> Result<(), String> {
    let all: &[Unit<'_>] = units;
    let (noticed, tried) = (Mutex::new(HashSet::new()), Mutex::new(HashSet::new()));
    let run = |at: usize, kept: bool| {
        let unit = &all[at];
        let wanted = lines(unit, kept);
        if wanted.is_empty() || unit.seen.failure.is_some() {
            return Ok(Noticed::default());
        }
        let known: HashSet<Change> = noticed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        caught(|| notice(unit, &wanted, &|change| known.contains(&change)))
            .unwrap_or_else(|panic| Err(panic.to_string()))
            .map_err(|why| format!("{}: {why}", unit.case.name))
    };
    let results = runner::in_parallel(all.len(), |at| {
        let found = run(at, true)?;
        noticed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(found.by.keys());
        tried.lock().unwrap_or_else(PoisonError::into_inner).extend(found.tried);
        Ok::<(), String>(())
    });
    results
        .map_err(|error| error.to_string())?
        .into_iter()
        .collect::<Result<(), _>>()?;
    let count = noticed.lock().unwrap_or_else(PoisonError::into_inner).len();
    // The changes that kept lines notice are complete. The other lines are tried only for the
    // remaining changes, so the order does not matter.
    let results = runner::in_parallel(all.len(), |at| {
        let found = run(at, false)?;
        tried
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(&found.tried);
        Ok::<_, String>(found.by)
    });
    let results = results.map_err(|error| error.to_string())?;
    let mut candidates: BTreeMap<(usize, usize), Vec<Feature>> = BTreeMap::new();
    for (at, found) in results.into_iter().enumerate() {
        for (change, line) in found? {
            candidates.entry((at, line)).or_default().push(change);
        }
    }
    let candidates: Vec<((usize, usize), Vec<Feature>)> = candidates.into_iter().collect();
    let mut restored = Vec::new();
    let mut covered = Chosen::default();
    cover::greedy(
        candidates.len(),
        &mut covered,
        |covered, number| (covered.gain(&candidates[number].1), 1),
        |covered, number| {
            covered.add(&candidates[number].1);
            restored.push(candidates[number].0);
        },
    );
    let tried = tried.into_inner().unwrap_or_else(PoisonError::into_inner).len();
    println!(
        "changes of routines: {tried} tried, {count} noticed by kept lines, {} more by {} additional lines",
        covered.len(),
        restored.len()
    );
    for (at, line) in restored {
        units[at].lines[line] = true;
        for member in units[at].closure.clone() {
            if !units[member].is_kept {
                units[member].is_kept = true;
                chosen.add(&units[member].seen.features);
                // The run lines of this callee were removed; one is kept, because a run line must
                // call it.
                if member != units[at].closure[0]
                    && !units[member].lines.is_empty()
                    && !units[member].lines.contains(&true)
                {
                    units[member].lines[0] = true;
                }
            }
        }
    }
    Ok(())
}
