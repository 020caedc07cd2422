//! Lines that notice changes of the runtime's routines, which are shared by all functions.

use super::Unit;
use super::cover::{self, Chosen};
use super::features::{Feature, Kind, feature};
use super::mutate::mutants;
use super::observe::{is_routine, passes, program, trace, write};
use naplespu_filetests::runner;
use naplespu_reader::panics::caught;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

/// Lines of a function that are tried for a change that nothing has noticed so far.
const TRIES: usize = 12;

/// A change of a routine: the number of the feature for name, place and kind.
type Change = Feature;

/// What lines notice: changes that were tried, and for each noticed one the first line.
#[derive(Default)]
struct Noticed {
    tried: HashSet<Change>,
    by: BTreeMap<Change, usize>,
}

/// Runs those lines of a function that `wanted` has on changed forms of the routines that they execute, except for changes that `skip` has.
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

/// The lines of a unit that stay, or those that do not.
fn lines(unit: &Unit<'_>, kept: bool) -> Vec<usize> {
    (0..unit.lines.len())
        .filter(|&line| (unit.is_kept && unit.lines[line]) == kept)
        .collect()
}

/// Keeps further lines, so that all changes of routines are noticed that any line notices.
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
    // What the lines that stay notice is settled. The others are looked at for the rest alone, whatever the order.
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
        "changes of routines: {tried} tried, {count} noticed by lines that stay, {} more by {} lines that stay for them",
        covered.len(),
        restored.len()
    );
    for (at, line) in restored {
        units[at].lines[line] = true;
        for member in units[at].closure.clone() {
            if !units[member].is_kept {
                units[member].is_kept = true;
                chosen.add(&units[member].seen.features);
                // Its own lines went with it; one says that it is called.
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
