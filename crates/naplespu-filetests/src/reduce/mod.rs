//! Reduces CLIF functions, and files with run lines, that reproduce a failure.
//!
//! # Contract
//!
//! [`function()`] and [`file()`] take an input that satisfies a condition, and return a smaller one
//! that still satisfies it, if they find one. All candidates are valid CLIF. The candidates depend
//! only on the input and the answers of the condition, so the reduction is deterministic. The
//! caller limits the number of evaluations of the condition.
//!
//! # Structure
//!
//! `passes` has the reductions, one function each. `edit` has their common parts. This file
//! iterates the passes to a fixed point.

mod edit;
mod passes;

pub use edit::{constant, insts, remove};

use cranelift_codegen::ir::Function;
use cranelift_codegen::settings;
use cranelift_naplespu::verify_function;
use naplespu_reader::{ClifFile, function_text};
use std::fmt;

/// A function and its run lines.
#[derive(Clone, Debug)]
pub struct Piece {
    /// The function.
    pub func: Function,
    /// The run lines, each with its `;`.
    pub lines: Vec<String>,
}

/// A file during reduction. Its text is a CLIF file.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The text before the first function, without comments: `test`, `set` and `target` lines.
    pub header: String,
    /// The functions.
    pub pieces: Vec<Piece>,
}

impl Candidate {
    /// Returns the contents of a file, without comments other than run lines.
    pub fn of(file: &ClifFile) -> Self {
        let text = &file.source.text;
        let is_header = |line: &&str| {
            let word = line.split_whitespace().next().unwrap_or_default();
            ["test", "set", "target", "feature"].contains(&word)
        };
        let header = text
            .lines()
            .take_while(|line| !line.starts_with("function "))
            .filter(is_header)
            .map(|line| format!("{line}\n"))
            .collect();
        let is_run_line = |text: &&str| {
            let bare = text.trim_start_matches(';').trim_start();
            bare.starts_with("run:") || bare.starts_with("print:") || bare == "run" || bare == "print"
        };
        let lines = |comments: &[naplespu_reader::parse::Comment]| -> Vec<String> {
            let texts = comments.iter().map(|comment| comment.text.as_str());
            texts.filter(is_run_line).map(str::to_owned).collect()
        };
        let mut pieces: Vec<Piece> = file
            .functions
            .iter()
            .map(|case| Piece {
                func: case.func.clone(),
                lines: lines(&case.comments),
            })
            .collect();
        // Run lines may precede all functions and call them by name.
        if let Some(last) = pieces.last_mut() {
            last.lines.extend(lines(&file.preamble));
        }
        Self { header, pieces }
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.header)?;
        for (number, piece) in self.pieces.iter().enumerate() {
            if number > 0 || !self.header.is_empty() {
                writeln!(f)?;
            }
            f.write_str(&function_text(&piece.func))?;
            for line in &piece.lines {
                writeln!(f, "{line}")?;
            }
        }
        Ok(())
    }
}

/// The remaining evaluations of the condition.
struct Budget(usize);

impl Budget {
    /// Takes one evaluation; returns `false` if none is left.
    fn take(&mut self) -> bool {
        let left = self.0 > 0;
        self.0 = self.0.saturating_sub(1);
        left
    }
}

/// Reduces a function that satisfies `holds`, with at most `tries` evaluations.
pub fn function(func: Function, tries: usize, mut holds: impl FnMut(&Function) -> bool) -> Function {
    let mut budget = Budget(tries);
    let mut best = func;
    while shrink(&mut best, &mut budget, &mut holds) {}
    best
}

/// Runs all passes over a function once. Returns whether it became smaller.
fn shrink(best: &mut Function, budget: &mut Budget, holds: &mut dyn FnMut(&Function) -> bool) -> bool {
    let flags = settings::Flags::new(settings::builder());
    let mut progress = false;
    for pass in passes::ALL {
        let mut at = 0;
        while let Some(mut candidate) = pass(best, at) {
            candidate.dfg.resolve_all_aliases();
            let smaller = passes::size(&candidate) < passes::size(best);
            if smaller && verify_function(&candidate, &flags).is_ok() {
                if !budget.take() {
                    return false;
                }
                if holds(&candidate) {
                    *best = candidate;
                    progress = true;
                    continue;
                }
            }
            at += 1;
        }
    }
    progress
}

/// Reduces a file that satisfies `holds`, with at most `tries` evaluations. Removes run lines and
/// functions first, then reduces the functions.
pub fn file(candidate: Candidate, tries: usize, mut holds: impl FnMut(&Candidate) -> bool) -> Candidate {
    let mut budget = Budget(tries);
    let mut best = candidate;
    loop {
        let mut progress = without_lines(&mut best, &mut budget, &mut holds);
        progress |= without_functions(&mut best, &mut budget, &mut holds);
        for number in 0..best.pieces.len() {
            let rest = best.clone();
            let mut with = |func: &Function| {
                let mut candidate = rest.clone();
                candidate.pieces[number].func = func.clone();
                holds(&candidate)
            };
            progress |= shrink(&mut best.pieces[number].func, &mut budget, &mut with);
        }
        if !progress {
            return best;
        }
    }
}

fn without_lines(best: &mut Candidate, budget: &mut Budget, holds: &mut impl FnMut(&Candidate) -> bool) -> bool {
    let mut progress = false;
    for number in 0..best.pieces.len() {
        // Removes all, then the first half of the rest, down to single lines.
        let mut chunk = best.pieces[number].lines.len();
        while chunk > 0 {
            let mut at = 0;
            while at < best.pieces[number].lines.len() && budget.take() {
                let mut candidate = best.clone();
                let lines = &mut candidate.pieces[number].lines;
                lines.drain(at..(at + chunk).min(lines.len()));
                if holds(&candidate) {
                    *best = candidate;
                    progress = true;
                } else {
                    at += chunk;
                }
            }
            chunk /= 2;
        }
    }
    progress
}

fn without_functions(best: &mut Candidate, budget: &mut Budget, holds: &mut impl FnMut(&Candidate) -> bool) -> bool {
    let mut progress = false;
    let mut at = best.pieces.len();
    while at > 0 && best.pieces.len() > 1 && budget.take() {
        at -= 1;
        let mut candidate = best.clone();
        candidate.pieces.remove(at);
        if holds(&candidate) {
            *best = candidate;
            progress = true;
        }
    }
    progress
}
