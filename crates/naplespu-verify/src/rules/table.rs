//! The proofs by rule.

use super::Proof;
use super::runs::{self, Runs};
use crate::answer::{Reason, Verdict};
use cranelift_codegen::ir::Function;
use cranelift_naplespu::Isa;
use cranelift_naplespu::explain::{RULES, Rule};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// The proofs of a rule.
#[derive(Clone, Default, Debug)]
pub struct RuleProofs {
    /// The number of proved functions that apply the rule.
    pub proved: usize,
    /// The types of these functions.
    pub types: BTreeSet<String>,
    /// The constant operands of these functions.
    pub constants: BTreeSet<i64>,
    /// The types of undecided functions, and the reason of one of them.
    pub undecided: BTreeMap<String, String>,
}

/// An undecided function that is a candidate for runs.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The function.
    pub func: Function,
    /// The settings.
    pub isa: Arc<Isa>,
    /// The applied rules.
    pub rules: Vec<u16>,
}

/// The state of a rule.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum State {
    /// A function that applies the rule is proved. Failures of others are in [`Table::failures`].
    Proved,
    /// All functions that apply the rule are undecided.
    Undecided,
    /// A function that applies the rule is wrong, and no function that applies it is proved.
    Refuted,
    /// No function applies the rule.
    Unapplied,
}

/// The proofs of all rules.
#[derive(Default, Debug)]
pub struct Table {
    rules: BTreeMap<u16, RuleProofs>,
    /// Undecided functions, by settings, type and rules. Functions that need more time are
    /// different for each text, since the optimizer may have changed them.
    undecided: BTreeMap<(String, String, Vec<u16>, String), Sample>,
    /// The number of functions that were not decided in time.
    late: usize,
    /// Functions whose code deviates, or whose counterexample the simulator does not confirm.
    pub failures: Vec<Proof>,
    /// Functions that the compiler fails to compile, and the errors. Refusals do not count.
    pub uncompiled: Vec<(String, String)>,
    /// The runs of functions that apply rules without a proof.
    pub runs: Runs,
}

impl Table {
    /// Adds a proof of a function for a target.
    pub fn add(&mut self, proof: Proof, isa: &Arc<Isa>) {
        if let Verdict::Undecided(reason) = &proof.answer.verdict {
            let text = match reason {
                Reason::Time(_) => {
                    self.late += 1;
                    proof.func.display().to_string()
                }
                _ => String::new(),
            };
            let key = (proof.settings.clone(), proof.ty.clone(), proof.rules.clone(), text);
            self.undecided.entry(key).or_insert_with(|| Sample {
                func: proof.func.clone(),
                isa: isa.clone(),
                rules: proof.rules.clone(),
            });
        }
        for &rule in &proof.rules {
            let entry = self.rules.entry(rule).or_default();
            match &proof.answer.verdict {
                Verdict::Proved => {
                    entry.proved += 1;
                    entry.types.insert(proof.ty.clone());
                    entry.constants.extend(proof.constant);
                }
                Verdict::Undecided(reason) => {
                    entry.undecided.insert(proof.ty.clone(), reason.to_string());
                }
                Verdict::Refuted { .. } => {}
            }
        }
        // No function of the families depends on addresses, but functions of files do.
        let on_places = matches!(proof.answer.verdict, Verdict::Undecided(Reason::OnPlaces(_)));
        if proof.answer.is_failure() || on_places && !proof.is_of_file {
            self.failures.push(proof);
        }
    }

    /// Executes undecided functions, and functions of files that apply rules without a proof.
    ///
    /// # Errors
    ///
    /// A path that cannot be read.
    pub fn run_unproved(&mut self, paths: &[PathBuf]) -> Result<(), String> {
        let unproved: BTreeSet<u16> = [State::Undecided, State::Unapplied]
            .into_iter()
            .flat_map(|state| self.in_state(state))
            .collect();
        let samples = self.undecided.values().cloned().collect();
        self.runs.merge(runs::random(samples));
        self.runs.merge(runs::files(paths, &unproved)?);
        Ok(())
    }

    /// Returns the proofs of a rule, if a function applies it.
    pub fn of(&self, rule: u16) -> Option<&RuleProofs> {
        self.rules.get(&rule)
    }

    /// Returns the state of a rule.
    pub fn state(&self, rule: u16) -> State {
        match self.of(rule) {
            None => State::Unapplied,
            Some(proofs) if proofs.proved > 0 => State::Proved,
            Some(proofs) if !proofs.undecided.is_empty() => State::Undecided,
            Some(_) => State::Refuted,
        }
    }

    /// Returns the rules in a state, by number.
    pub fn in_state(&self, state: State) -> impl Iterator<Item = u16> + '_ {
        (0..RULES.len() as u16).filter(move |&rule| self.state(rule) == state)
    }

    /// Returns the rules of a failing function that no proved function of its type applies, or all
    /// its rules if there are none.
    pub fn suspects(&self, failure: &Proof) -> Vec<&'static Rule> {
        let is_proved = |rule: &u16| self.of(*rule).is_some_and(|proofs| proofs.types.contains(&failure.ty));
        let mut list: Vec<u16> = failure.rules.iter().copied().filter(|rule| !is_proved(rule)).collect();
        if list.is_empty() {
            list.clone_from(&failure.rules);
        }
        list.into_iter()
            .filter_map(|rule| RULES.get(usize::from(rule)))
            .collect()
    }

    /// Returns whether every function behaves like its CLIF.
    pub fn is_sound(&self) -> bool {
        self.failures.is_empty() && self.uncompiled.is_empty() && self.runs.failures.is_empty()
    }

    /// Returns the table as JSON: one object for each rule.
    pub fn to_json(&self) -> Value {
        let rows = RULES.iter().enumerate().map(|(number, rule)| {
            let number = number as u16;
            let empty = RuleProofs::default();
            let proofs = self.of(number).unwrap_or(&empty);
            json!({
                "term": rule.term,
                "place": rule.place,
                "state": self.state(number).to_string(),
                "functions": proofs.proved,
                "types": proofs.types,
                "constants": proofs.constants.len(),
                "undecided": proofs.undecided,
                "runs": self.runs.agreed.get(&number).copied().unwrap_or(0),
            })
        });
        Value::Array(rows.collect())
    }

    /// Writes the failures: rules, function, input and both results.
    pub fn write_failures(&self, f: &mut impl fmt::Write, most: usize) -> fmt::Result {
        for failure in self.failures.iter().take(most) {
            writeln!(f, "{}: {}", failure.settings, failure.answer)?;
            for rule in self.suspects(failure) {
                writeln!(f, "  by {rule}:")?;
                for line in rule.text.lines() {
                    writeln!(f, "    {line}")?;
                }
            }
            writeln!(f, "{}", failure.func.display())?;
        }
        for (func, error) in self.uncompiled.iter().take(most) {
            writeln!(f, "not compiled: {error}\n{func}")?;
        }
        for what in self.runs.failures.iter().take(most) {
            writeln!(f, "a run deviates: {what}")?;
        }
        let lengths = [self.failures.len(), self.uncompiled.len(), self.runs.failures.len()];
        let hidden: usize = lengths.into_iter().map(|length| length.saturating_sub(most)).sum();
        match hidden {
            0 => Ok(()),
            _ => writeln!(f, "... and {hidden} more"),
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Proved => "proved",
            Self::Undecided => "undecided",
            Self::Refuted => "refuted",
            Self::Unapplied => "not applied",
        })
    }
}

/// Returns the file of a rule.
fn file(rule: &Rule) -> &str {
    let place = rule.place.split(' ').next().unwrap_or(rule.place);
    place.split(':').next().unwrap_or(place)
}

impl fmt::Display for Table {
    /// Prints a row for each file, and the rules that are not proved.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut files: BTreeMap<&str, [usize; 5]> = BTreeMap::new();
        for (number, rule) in RULES.iter().enumerate() {
            let number = number as u16;
            let row = files.entry(file(rule)).or_default();
            row[0] += 1;
            match self.state(number) {
                State::Proved => row[1] += 1,
                State::Undecided => row[2] += 1,
                State::Refuted => row[3] += 1,
                State::Unapplied => row[4] += 1,
            }
        }
        writeln!(f, "| file | rules | proved | undecided | refuted | not applied |")?;
        writeln!(f, "|---|---|---|---|---|---|")?;
        let mut all = [0; 5];
        for (file, row) in &files {
            let [rules, proved, undecided, refuted, unapplied] = row;
            writeln!(
                f,
                "| `{file}` | {rules} | {proved} | {undecided} | {refuted} | {unapplied} |"
            )?;
            all.iter_mut().zip(row).for_each(|(sum, count)| *sum += count);
        }
        let [rules, proved, undecided, refuted, unapplied] = all;
        writeln!(
            f,
            "| all | {rules} | {proved} | {undecided} | {refuted} | {unapplied} |"
        )?;
        let refuted = self
            .failures
            .iter()
            .filter(|proof| matches!(proof.answer.verdict, Verdict::Refuted { .. }));
        let refuted = refuted.count();
        writeln!(
            f,
            "\nFunctions: {refuted} refuted, {} with an unconfirmed counterexample, {} not decided in time, \
             {} not compiled; {} runs deviate",
            self.failures.len() - refuted,
            self.late,
            self.uncompiled.len(),
            self.runs.failures.len()
        )?;
        for state in [State::Refuted, State::Undecided, State::Unapplied] {
            for number in self.in_state(state) {
                let Some(rule) = RULES.get(usize::from(number)) else {
                    continue;
                };
                write!(f, "\n{state}: {rule}")?;
                let reason = self.of(number).and_then(|proofs| proofs.undecided.iter().next());
                if let Some((ty, reason)) = reason {
                    write!(f, ": {ty}: {reason}")?;
                }
                match self.runs.agreed.get(&number) {
                    Some(count) => write!(f, "; checked by {count} runs")?,
                    None => write!(f, "; not checked by runs")?,
                }
            }
        }
        writeln!(f)
    }
}
