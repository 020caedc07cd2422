//! Finds functions and run lines of the filetests that notice something unique, and removes the
//! rest.
//!
//!     cargo run --release -p naplespu-filetests --example distill --features explain            # prints what it would remove
//!     cargo run --release -p naplespu-filetests --example distill --features explain -- --write # removes it
//!
//! Each function is compiled as in `test run`, at both optimization levels. Each instruction of its
//! code is then changed in several ways ([`mutate`]), and all run lines execute each changed form.
//! The lines that fail notice the change. A function also has [`features`]: the forms of its CLIF,
//! the rules and passes that made its code, relocations, the frame. Greedy [`cover`]s select:
//!
//! - functions, so that each feature occurs in as many functions as [`features`] requires. The
//!   features of a noticed change are the rule that emitted the instruction, the CLIF operation, the
//!   machine opcode and the kind of change;
//! - run lines of these functions, so that each change stays noticed, by two lines if two notice
//!   it;
//! - more lines, so that the machine instructions keep operands of all kinds, and functions keep
//!   arguments of these kinds;
//! - with `--routines`, more lines and functions, so that the same changes of the runtime's
//!   routines
//!   are noticed ([`routines`]). The routines have separate tests, and trying their changes takes
//!   long.
//!
//! Functions are kept if they have expectations other than run lines, trap, or are called by kept
//! functions. One function of each file is kept. With the feature `rule-switches`, rules of
//! lowering that affect the code are features, too.

#![deny(missing_docs)]

mod cases;
mod cover;
mod edit;
mod features;
#[path = "../generated/mod.rs"]
mod generated;
mod mutate;
mod observe;
mod routines;

use cases::Case;
use cover::Chosen;
use features::Feature;
use naplespu_filetests::runner;
use observe::{Observation, observe};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

/// The number of callers in which a function without run lines is changed as their callee.
const CALLERS: usize = 3;

/// A function.
pub struct Unit<'a> {
    /// The file.
    pub case: &'a Case,
    /// The index of the file.
    pub file: usize,
    /// The index of the function in the file.
    pub function: usize,
    /// The units of the function and of all its callees.
    pub closure: Vec<usize>,
    /// The number of lines of text.
    pub cost: usize,
    /// The observations of the function and its run lines.
    pub seen: Observation,
    /// Whether the function is kept.
    pub is_kept: bool,
    /// Whether each of its run lines is kept.
    pub lines: Vec<bool>,
}

/// Returns the units of all files, with observations.
fn units(cases: &[Case]) -> Result<Vec<Unit<'_>>, String> {
    let mut places = Vec::new();
    let mut callees = Vec::new();
    let mut firsts = Vec::new();
    for (file, case) in cases.iter().enumerate() {
        firsts.push(places.len());
        let mut callers = vec![0; case.file.functions.len()];
        for function in 0..case.file.functions.len() {
            places.push((file, function));
            let called = case.closure(function).into_iter().skip(1);
            let mut changed = Vec::new();
            for callee in called.filter(|&callee| case.lines_of[callee].is_empty()) {
                callers[callee] += 1;
                changed.extend((callers[callee] <= CALLERS).then_some(callee));
            }
            callees.push(changed);
        }
    }
    let seen = runner::in_parallel(places.len(), |at| {
        let (file, function) = places[at];
        if at % 500 == 0 {
            eprintln!("{at} of {} functions: {}", places.len(), cases[file].name);
        }
        observe(&cases[file], function, &callees[at])
    });
    let seen = seen.map_err(|error| error.to_string())?;
    let units = places.into_iter().zip(seen).map(|((file, function), seen)| {
        let case = &cases[file];
        let closure = case.closure(function);
        Unit {
            case,
            file,
            function,
            closure: closure.into_iter().map(|function| firsts[file] + function).collect(),
            cost: cost(case, function),
            lines: vec![false; case.lines_of[function].len()],
            is_kept: false,
            seen,
        }
    });
    Ok(units.collect())
}

/// Returns the lines of text of a function without its run lines. A function with comments other
/// than run lines costs half.
fn cost(case: &Case, function: usize) -> usize {
    let functions = &case.file.functions;
    let next = functions
        .get(function + 1)
        .map_or_else(|| case.file.source.text.lines().count(), |next| next.line);
    let lines = next - functions[function].line;
    let comments = functions[function].comments.iter();
    let is_described = comments.clone().count() > case.lines_of[function].len();
    let own = lines.saturating_sub(case.lines_of[function].len()) + 4;
    if is_described { own / 2 } else { own }
}

/// Selects functions.
fn choose_functions(units: &mut [Unit<'_>]) -> Chosen {
    let mut chosen = Chosen::default();
    let keep = |units: &mut [Unit<'_>], chosen: &mut Chosen, at: usize| {
        for member in units[at].closure.clone() {
            if !units[member].is_kept {
                units[member].is_kept = true;
                chosen.add(&units[member].seen.features);
            }
        }
    };
    for at in 0..units.len() {
        let unit = &units[at];
        if unit.case.stays[unit.function] || unit.case.is_frozen || unit.seen.failure.is_some() {
            keep(units, &mut chosen, at);
        }
    }
    // The first function of each file is kept, because the file may exist for another reason.
    let mut kept_files: Vec<bool> = Vec::new();
    for at in 0..units.len() {
        let unit = &units[at];
        kept_files.resize(kept_files.len().max(unit.file + 1), false);
        if !kept_files[unit.file] && !unit.lines.is_empty() {
            kept_files[unit.file] = true;
            keep(units, &mut chosen, at);
        }
    }
    let cells = std::cell::RefCell::new(&mut *units);
    let count = cells.borrow().len();
    cover::greedy(
        count,
        &mut chosen,
        |chosen, at| {
            let units = cells.borrow();
            // A function that no run line calls is only kept with its callers.
            if units[at].lines.is_empty() {
                return (0, 1);
            }
            let fresh = units[at].closure.iter().filter(|&&member| !units[member].is_kept);
            let parts = fresh.map(|&member| {
                (
                    chosen.gain_of_function(&units[member].seen.features),
                    units[member].cost,
                )
            });
            parts.fold((0, 0), |(gain, cost), (more, costs)| (gain + more, cost + costs))
        },
        |chosen, at| keep(&mut cells.borrow_mut(), chosen, at),
    );
    chosen
}

/// Selects run lines of the kept functions.
fn choose_lines(units: &mut [Unit<'_>]) {
    let mut chosen = Chosen::default();
    for unit in units.iter_mut().filter(|unit| unit.is_kept) {
        let count = unit.lines.len();
        if unit.case.is_frozen || unit.seen.failure.is_some() {
            unit.lines.fill(true);
        } else {
            unit.lines = cover::lines(count, &unit.seen.noticed);
            // A function without a call is not checked.
            if count > 0 && !unit.lines.contains(&true) {
                unit.lines[0] = true;
            }
        }
        for (features, _) in unit.seen.lines.iter().zip(&unit.lines).filter(|(_, kept)| **kept) {
            chosen.add(features);
        }
    }
    let candidates: Vec<(usize, usize)> = units
        .iter()
        .enumerate()
        .filter(|(_, unit)| unit.is_kept)
        .flat_map(|(at, unit)| (0..unit.lines.len()).map(move |line| (at, line)))
        .filter(|&(at, line)| !units[at].lines[line])
        .collect();
    let cells = std::cell::RefCell::new(&mut *units);
    cover::greedy(
        candidates.len(),
        &mut chosen,
        |chosen, number| {
            let (at, line) = candidates[number];
            let units = cells.borrow();
            match units[at].lines[line] {
                true => (0, 1),
                false => (chosen.gain(&units[at].seen.lines[line]), 1),
            }
        },
        |chosen, number| {
            let (at, line) = candidates[number];
            let mut units = cells.borrow_mut();
            units[at].lines[line] = true;
            let features: Vec<Feature> = units[at].seen.lines[line].clone();
            chosen.add(&features);
        },
    );
}

/// Prints for each folder: functions, run lines and lines of text, before and after.
fn print_folders(units: &[Unit<'_>], texts: &[(usize, usize)], cases: &[Case]) {
    let mut folders: BTreeMap<&str, [usize; 6]> = BTreeMap::new();
    let folder = |case: &Case| -> usize { case.name.find('/').unwrap_or(0) };
    for unit in units {
        let sums = folders.entry(&unit.case.name[..folder(unit.case)]).or_default();
        sums[0] += 1;
        sums[1] += usize::from(unit.is_kept);
        sums[2] += unit.lines.len();
        sums[3] += unit.lines.iter().filter(|kept| **kept).count();
    }
    for (case, (before, after)) in cases.iter().zip(texts) {
        let sums = folders.entry(&case.name[..folder(case)]).or_default();
        sums[4] += before;
        sums[5] += after;
    }
    let mut all = [0; 6];
    println!("{:14}{:>18}{:>18}{:>20}", "", "functions", "run lines", "lines of text");
    for (name, sums) in &folders {
        all.iter_mut().zip(sums).for_each(|(all, sum)| *all += sum);
        let [a, b, c, d, e, f] = sums;
        println!("{name:14}{a:9}{b:9}{c:9}{d:9}{e:10}{f:10}");
    }
    let [a, b, c, d, e, f] = all;
    println!("{:14}{a:9}{b:9}{c:9}{d:9}{e:10}{f:10}", "all");
}

/// Prints the changes that were noticed before and that are noticed now.
fn print_noticed(units: &[Unit<'_>], chosen: &Chosen) {
    let mut before = Chosen::default();
    let (mut tried, mut noticed, mut still) = (0, 0, 0);
    for unit in units {
        before.add(&unit.seen.features);
        tried += unit.seen.tried;
        noticed += unit.seen.noticed.len();
        let kept = |lines: &&Vec<u16>| lines.iter().any(|&line| unit.lines[usize::from(line)]);
        still += unit.seen.noticed.iter().filter(kept).count();
    }
    println!("changes: {tried} tried, {noticed} noticed, kept lines still notice {still} of them");
    println!("features: {} before, {} after", before.len(), chosen.len());
    for (kind, (count, missing)) in chosen.kinds(&before) {
        println!("{kind:14}{count:9}, {missing} required occurrences are missing");
    }
}

fn run() -> Result<(), String> {
    let (mut write, mut with_routines) = (false, false);
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--write" => write = true,
            "--routines" => with_routines = true,
            other => return Err(format!("what is `{other}`? there are `--write` and `--routines`")),
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../filetests");
    let cases = cases::load(&root)?;
    let mut units = units(&cases)?;
    for unit in &units {
        if let Some(failure) = unit.seen.failure.as_ref().filter(|_| !unit.case.is_frozen) {
            let first = failure.lines().next().unwrap_or_default();
            eprintln!(
                "{} {}: {first}",
                unit.case.name, unit.case.file.functions[unit.function].name
            );
        }
    }
    let mut chosen = choose_functions(&mut units);
    choose_lines(&mut units);
    if with_routines {
        routines::restore(&mut units, &mut chosen)?;
    }
    let mut texts = Vec::new();
    let mut at = 0;
    for case in &cases {
        let own = &units[at..at + case.file.functions.len()];
        at += own.len();
        let functions: Vec<bool> = own.iter().map(|unit| unit.is_kept).collect();
        let mut lines = vec![false; case.lines.list().len()];
        for unit in own {
            for (&line, &kept) in case.lines_of[unit.function].iter().zip(&unit.lines) {
                lines[line] = kept && unit.is_kept;
            }
        }
        let old = &case.file.source.text;
        let is_whole = case.is_frozen || !functions.iter().chain(&lines).any(|kept| !kept);
        let new = if is_whole {
            old.clone()
        } else {
            edit::text(case, &functions, &lines)
        };
        texts.push((old.lines().count(), new.lines().count()));
        if write && new != *old {
            std::fs::write(&case.path, new).map_err(|error| format!("{}: {error}", case.name))?;
        }
    }
    print_folders(&units, &texts, &cases);
    print_noticed(&units, &chosen);
    Ok(())
}

fn main() -> ExitCode {
    // Panics are results here, so they print nothing.
    std::panic::set_hook(Box::new(|_| {}));
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}
