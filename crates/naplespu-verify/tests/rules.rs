//! A sample of the proofs of lowering rules; `naplespu-verify rules` has all of them.
//!
//! The test is ignored if no solver is installed.

use cranelift_codegen::settings::{self, Configurable as _, Flags};
use cranelift_naplespu::Isa;
use cranelift_naplespu::explain::RULES;
use libtest_mimic::{Arguments, Failed, Trial};
use naplespu_verify::prove::Options;
use naplespu_verify::rules::instances::Family;
use naplespu_verify::rules::table::State;
use naplespu_verify::rules::{Prover, Scope};
use naplespu_verify::solver;
use std::sync::Arc;
use std::time::Duration;

fn isa(level: &str) -> Result<Arc<Isa>, Failed> {
    let mut flags = settings::builder();
    flags.set("opt_level", level)?;
    let target = cranelift_naplespu::isa::lookup_by_name("naplespu")?;
    Ok(target.finish(Flags::new(flags))?)
}

/// Every operation on parameters, branches, calls and traps: no function deviates, and most rules
/// are proved.
fn rules_are_proved(level: &str) -> Result<(), Failed> {
    let mut prover = Prover::new(Options {
        timeout: Duration::from_secs(2),
        ..Options::default()
    });
    let isa = isa(level)?;
    for family in [Family::Plain, Family::Control] {
        let counts = prover.family(family, &isa, level, Scope::Types);
        if counts.compared == 0 {
            return Err(format!("no function of the family `{}` was compared", family.name()).into());
        }
    }
    let table = &prover.table;
    let mut failures = String::new();
    table.write_failures(&mut failures, 5)?;
    let proved = table.in_state(State::Proved).count();
    match table.is_sound() && proved > RULES.len() / 4 {
        true => Ok(()),
        false => Err(format!("{failures}\n{proved} of {} rules are proved\n{table}", RULES.len()).into()),
    }
}

fn main() {
    let arguments = Arguments::from_args();
    let is_missing = !solver::is_installed(solver::PROGRAM);
    let trials = ["none", "speed"].map(|level| {
        Trial::test(format!("rules_are_proved_at_{level}"), move || rules_are_proved(level))
            .with_ignored_flag(is_missing)
    });
    libtest_mimic::run(&arguments, trials.into()).exit();
}
