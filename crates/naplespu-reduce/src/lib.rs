//! CLIF made small: functions, and files of them with run lines, that have less in them and still show what is wrong.
//!
//! # Contract
//!
//! [`function()`] and [`file()`] take something of which a condition holds, and give something smaller of which it still holds, if they find any.
//! Everything that they try is valid CLIF. What they try depends on nothing but their input and the answers, so that the same condition gives the same result.
//! A condition is asked at most as often as the caller allows.
//!
//! # Structure
//!
//! `passes` has the ways to make a function smaller, one function each; `edit` what they share; this file goes through them until none helps.

#![deny(missing_docs)]

mod edit;
mod passes;

pub use edit::{constant, remove};

use cranelift_codegen::ir::Function;
use cranelift_codegen::settings;
use cranelift_naplespu::verify_function;
use naplespu_reader::ClifFile;
use std::fmt;

/// A function and the run lines after it.
#[derive(Clone, Debug)]
pub struct Piece {
    /// The function.
    pub func: Function,
    /// Its run lines, each with its `;`.
    pub lines: Vec<String>,
}

/// A file that is being made smaller. As text it is a CLIF file.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// What stands before the first function, other than comments: `test`, `set` and `target` lines.
    pub header: String,
    /// The functions.
    pub pieces: Vec<Piece>,
}

impl Candidate {
    /// The content of a file, without comments other than run lines.
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
        // Run lines may stand ahead of all functions, and name theirs.
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
            write!(f, "{}", piece.func.display())?;
            for line in &piece.lines {
                writeln!(f, "{line}")?;
            }
        }
        Ok(())
    }
}

/// How often a condition may still be asked.
struct Budget(usize);

impl Budget {
    /// Takes one; false if there is none left.
    fn take(&mut self) -> bool {
        let left = self.0 > 0;
        self.0 = self.0.saturating_sub(1);
        left
    }
}

/// Makes a function smaller for which `holds`, and asks at most `tries` times.
pub fn function(func: Function, tries: usize, mut holds: impl FnMut(&Function) -> bool) -> Function {
    let mut budget = Budget(tries);
    let mut best = func;
    while shrink(&mut best, &mut budget, &mut holds) {}
    best
}

/// One round of all passes over a function. Whether it became smaller.
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

/// Makes a file smaller for which `holds`, and asks at most `tries` times: run lines and functions go first, then what is in the functions.
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
        // All, then the first half of what is left, and so on down to single ones.
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
