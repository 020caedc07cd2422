//! The outcome of compiling every opcode of CLIF on every type, for `docs/clif-support.md` and
//! `td/NaplesPUCosts.td`.

use super::forms::{self, Access, Form};
use super::{check_document, check_file, limits};
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{self, Opcode, Type};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_naplespu::code::RelocTarget;
use cranelift_naplespu::legalize::{self, Legality, LegalizeAction, LegalizeCondition};
use cranelift_naplespu::settings::Setting;
use cranelift_naplespu::shape::{Shape, is_other};
use cranelift_naplespu::{CompileError, Isa, isa};
use naplespu_reader::panics::{self, caught};
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::sync::Arc;

/// The result of compiling a form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// The number of machine instructions without returns; none of them calls the runtime.
    Instructions(usize),
    /// The code calls the runtime.
    Runtime,
    /// The compiler refuses the form for this reason.
    Refused(String),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Instructions(1) => f.write_str("one instruction"),
            Outcome::Instructions(number) => write!(f, "{number} instructions"),
            Outcome::Runtime => f.write_str("a call of the runtime"),
            Outcome::Refused(why) => write!(f, "refused: {why}"),
        }
    }
}

/// Returns a target to compile forms for. It omits verification, because forms are verified when
/// they are built.
fn isa(opt_level: &str, separators: bool, strict: bool) -> Arc<Isa> {
    let mut flags = settings::builder();
    flags.set("opt_level", opt_level).unwrap();
    flags.set("enable_verifier", "false").unwrap();
    let mut builder = isa::lookup_by_name("naplespu").unwrap();
    builder
        .set("erratum_lost_result_before_taken_branch", &separators.to_string())
        .unwrap();
    builder.set("strict_float", &strict.to_string()).unwrap();
    builder.finish(settings::Flags::new(flags)).unwrap()
}

/// Returns targets with the other values of all settings that do not belong to errata. Conditions
/// in td depend on these settings.
fn other_settings() -> Vec<Arc<Isa>> {
    let mut all = Vec::new();
    for setting in Setting::ALL {
        let info = setting.info();
        let values = info.values.split(", ");
        if info.name.starts_with("erratum_") || info.values.contains(" to ") {
            continue;
        }
        for value in values.filter(|value| *value != info.default) {
            let mut flags = settings::builder();
            flags.set("enable_verifier", "false").unwrap();
            let mut builder = isa::lookup_by_name("naplespu").unwrap();
            builder.set(info.name, value).unwrap();
            all.push(builder.finish(settings::Flags::new(flags)).unwrap());
        }
    }
    all
}

/// Compiles a form. The error is a panic or any other result that is wrong for valid CLIF.
fn outcome(isa: &Isa, form: &Form) -> Result<Outcome, String> {
    let mut ctx = Context::for_function(form.func.clone());
    let compiled = caught(|| isa.compile(&mut ctx, &mut ControlPlane::default()));
    match compiled.map_err(|panic| format!("panic: {panic}"))? {
        Ok(code) => {
            if code.relocs.iter().any(|r| matches!(r.target, RelocTarget::Runtime(_))) {
                return Ok(Outcome::Runtime);
            }
            let [jret, nop] = [npu_mc::Opcode::JRET, npu_mc::Opcode::NOP]
                .map(|op| npu_mc::encode(&npu_mc::Inst::new(op, [])).unwrap().to_le_bytes());
            // Constants follow the code, and the padding to the end of the cache line is never
            // executed.
            let words = code.bytes[..code.pool_start as usize].chunks(4);
            let others = words.filter(|&word| *word != jret && *word != nop).count();
            let own = usize::from(form.func.dfg.insts[form.inst].opcode() == Opcode::Return);
            Ok(Outcome::Instructions(others + own))
        }
        Err(CompileError::Unsupported(refusals)) => {
            let own = refusals
                .iter()
                .find(|r| r.inst.as_ref().is_some_and(|(inst, _)| *inst == form.inst));
            let refusal = own.or(refusals.first()).ok_or("refused without a reason")?;
            let opcode = form.func.dfg.insts[form.inst].opcode().to_string();
            let what = match refusal.what.strip_prefix(&opcode) {
                Some("") => "the instruction",
                Some(rest) => rest.trim_start(),
                None => &refusal.what,
            };
            let help = refusal.help.as_ref().map_or(String::new(), |help| format!("; {help}"));
            Ok(Outcome::Refused(format!("{what}{help}")))
        }
        Err(other) => Err(other.to_string()),
    }
}

/// Returns the contradiction between td's action for a form and the form's outcome with this
/// target, or `None`.
fn contradiction(isa: &Isa, form: &Form, outcome: &Outcome, counts: bool) -> Option<String> {
    let dfg = &form.func.dfg;
    let unsupported = dfg.values().any(|value| Shape::of(dfg.value_type(value)).is_none());
    let action = match action(isa, form) {
        _ if unsupported => LegalizeAction::Refused,
        Some(action) => action,
        None => return Some("td/NaplesPULegalize.td has no record of it".to_owned()),
    };
    let right = match (action, outcome) {
        (LegalizeAction::Refused, Outcome::Refused(_)) => true,
        (LegalizeAction::LibCall | LegalizeAction::Scalarize, Outcome::Runtime) => true,
        (LegalizeAction::Scalarize, Outcome::Instructions(_)) => true,
        // The replacement of a split vector may take one instruction, several, or calls.
        (_, Outcome::Instructions(_) | Outcome::Runtime) if takes_apart(form) => action != LegalizeAction::Refused,
        (LegalizeAction::Legal, Outcome::Instructions(n)) => !counts || *n <= 1,
        (
            LegalizeAction::Promote | LegalizeAction::Expand | LegalizeAction::Split | LegalizeAction::Custom,
            Outcome::Instructions(_),
        ) => true,
        _ => false,
    };
    (!right).then(|| format!("td says {}, and it becomes {outcome}", action.name()))
}

/// Returns whether the form contains a vector that is split into other values.
fn takes_apart(form: &Form) -> bool {
    let dfg = &form.func.dfg;
    dfg.values().any(|value| is_other(dfg.value_type(value)))
}

/// Returns td's action for a form, or `None` if td does not have a rule for it.
fn action(isa: &Isa, form: &Form) -> Option<LegalizeAction> {
    let legality = Legality::new(isa.flags(), isa.settings());
    legality.rule(&form.func, form.inst).map(|rule| rule.action)
}

/// Computes the table's entry for an opcode and type: td's action and the outcome.
fn cell(
    isas: &[Arc<Isa>],
    opcode: Opcode,
    ty: Type,
    access: Access,
    faults: &mut Vec<String>,
) -> Vec<(Outcome, LegalizeAction)> {
    let mut compiled = Vec::new();
    let mut refused = Vec::new();
    for form in forms::forms(opcode, ty, access) {
        let mut report = |what: String| faults.push(format!("{opcode}.{ty}: {what}\n{}", form.func.display()));
        let mut first = None;
        for (index, isa) in isas.iter().enumerate() {
            match outcome(isa, &form) {
                Ok(result) => {
                    contradiction(isa, &form, &result, index == 0)
                        .into_iter()
                        .for_each(&mut report);
                    first.get_or_insert(result);
                }
                Err(what) => report(what),
            }
        }
        let types = form.func.dfg.values().map(|value| form.func.dfg.value_type(value));
        let all_supported = types.into_iter().all(|ty| Shape::of(ty).is_some());
        match (first, action(&isas[0], &form)) {
            (Some(Outcome::Refused(why)), _) => refused.push((why, all_supported)),
            (Some(good), Some(action)) => compiled.push((good, action)),
            _ => {}
        }
    }
    // Forms with other operands of unsupported types are not relevant for this type, nor are forms
    // between scalars and vectors.
    let lanes = |why: &str| why.starts_with("between types with different numbers of lanes");
    if !compiled.is_empty() {
        refused.retain(|(why, all_supported)| *all_supported && !lanes(why));
    }
    let refused = refused.into_iter();
    compiled.extend(refused.map(|(why, _)| (Outcome::Refused(why), LegalizeAction::Refused)));
    compiled.sort();
    compiled.dedup();
    compiled
}

/// Returns the mark before a number.
fn mark(action: LegalizeAction) -> &'static str {
    match action {
        LegalizeAction::Legal | LegalizeAction::Refused => "",
        LegalizeAction::Promote => "P",
        LegalizeAction::Expand => "E",
        LegalizeAction::Split => "S",
        LegalizeAction::Custom => "C",
        LegalizeAction::LibCall => "call",
        LegalizeAction::Scalarize => "lanes",
    }
}

/// Returns the legend of the actions and conditions.
fn terms() -> String {
    let mut text = String::from("| in the table | term | meaning |\n|---|---|---|\n");
    for &(action, meaning) in legalize::actions() {
        let mark = mark(action);
        let mark = match action {
            LegalizeAction::Legal => "a number alone".to_owned(),
            LegalizeAction::Refused => "*a letter*".to_owned(),
            _ => format!("`{mark}`"),
        };
        let _ = writeln!(text, "| {mark} | {} | {meaning} |", action.name());
    }
    text.push_str(
        "\nWhat depends on more than opcode and type:\n\n| condition | becomes | instructions |\n|---|---|---|\n",
    );
    for &(condition, meaning) in legalize::conditions() {
        for &(action, _) in legalize::actions() {
            let says = |rules: &[legalize::Rule]| rules.iter().any(|r| (r.when, r.action) == (condition, action));
            let of = |opcode: &Opcode| {
                let typed = legalize::types().chain([ir::types::INVALID]);
                typed.into_iter().any(|ty| says(legalize::rules(*opcode, ty)))
            };
            let opcodes: Vec<String> = Opcode::all()
                .iter()
                .filter(|op| of(op))
                .map(|op| format!("`{op}`"))
                .collect();
            if condition != LegalizeCondition::Always && !opcodes.is_empty() {
                let meaning = meaning.trim_end_matches('.');
                let _ = writeln!(text, "| {meaning} | {} | {} |", action.name(), opcodes.join(", "));
            }
        }
    }
    text
}

/// Returns `a` to `z`, then `aa` to `zz`.
fn letter(number: usize) -> String {
    let letter = char::from(b'a' + u8::try_from(number % 26).unwrap());
    letter.to_string().repeat(1 + number / 26)
}

/// The reasons of refusals, with their letters in the table.
#[derive(Default)]
struct Footnotes(BTreeMap<String, usize>);

impl Footnotes {
    fn mark(&mut self, reason: &str) -> String {
        // The types are visible in the table and in the CLIF, so the footnote omits them.
        let general = match reason
            .strip_prefix("with a value of type ")
            .and_then(|rest| rest.split_once(';'))
        {
            Some((_, help)) => format!("a value has a type that is not compiled;{help}"),
            None if reason.starts_with('.') => match reason.split_once(';') {
                Some((_, help)) => format!("the instruction with this type;{help}"),
                None => "the instruction with this type".to_owned(),
            },
            None => reason.to_owned(),
        };
        let next = self.0.len();
        let number = *self.0.entry(general).or_insert(next);
        format!("*{}*", letter(number))
    }

    fn text(&self) -> String {
        let mut list: Vec<_> = self.0.iter().map(|(reason, number)| (*number, reason)).collect();
        list.sort();
        let mut text = String::new();
        for (number, reason) in list {
            let _ = writeln!(text, "- *{}*: {reason}", letter(number));
        }
        text
    }
}

fn show(outcomes: &[(Outcome, LegalizeAction)], notes: &mut Footnotes) -> String {
    let mut counts: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut calls = Vec::new();
    let mut refusals = Vec::new();
    for (outcome, action) in outcomes {
        match outcome {
            Outcome::Instructions(n) => counts.entry(mark(*action)).or_default().push(*n),
            Outcome::Runtime => calls.push(mark(*action).to_owned()),
            Outcome::Refused(reason) => refusals.push(notes.mark(reason)),
        }
    }
    let mut parts = Vec::new();
    for (mark, counts) in counts {
        let range = match (counts.iter().min(), counts.iter().max()) {
            (Some(least), Some(most)) if least != most => format!("{least}–{most}"),
            (Some(only), _) => only.to_string(),
            _ => continue,
        };
        parts.push(format!("{mark} {range}").trim().to_owned());
    }
    for mark in calls.into_iter().chain(refusals) {
        if !parts.contains(&mark) {
            parts.push(mark);
        }
    }
    parts.join(" ")
}

#[test]
fn clif_support() {
    // Some forms have no types in Cranelift, which panics.
    panics::silence_caught();
    // Only the first target determines the number of instructions. Separators would count an extra
    // instruction between a load and the return.
    let mut isas = vec![
        isa("none", false, false),
        isa("none", true, true),
        isa("speed", true, false),
    ];
    isas.extend(other_settings());
    let columns = forms::columns();
    let others = forms::other_vectors();
    let mut notes = Footnotes::default();
    let mut faults = Vec::new();
    let mut measured = Counts::default();
    let mut typed = String::from("| opcode |");
    for ty in &columns {
        let _ = write!(typed, " {ty} |");
    }
    let _ = writeln!(typed, " other vectors |\n|---|{}---|", "---|".repeat(columns.len()));
    let mut plain = String::from("| opcode | |\n|---|---|\n");
    for &opcode in Opcode::all() {
        for &access in Access::of(opcode) {
            let name = format!("`{opcode}`{}", access.note());
            if !opcode.constraints().is_polymorphic() {
                let outcomes = cell(&isas, opcode, ir::types::INVALID, access, &mut faults);
                measured.add(opcode, ir::types::INVALID, &outcomes);
                if outcomes.is_empty() {
                    faults.push(format!("{opcode}: no form that the verifier accepts"));
                }
                let _ = writeln!(plain, "| {name} | {} |", show(&outcomes, &mut notes));
                continue;
            }
            let mut cells: Vec<Vec<(Outcome, LegalizeAction)>> = columns
                .iter()
                .map(|&ty| cell(&isas, opcode, ty, access, &mut faults))
                .collect();
            for (&ty, outcomes) in columns.iter().zip(&cells) {
                measured.add(opcode, ty, outcomes);
            }
            let mut rest: Vec<(Outcome, LegalizeAction)> = others
                .iter()
                .flat_map(|&ty| cell(&isas, opcode, ty, access, &mut faults))
                .collect();
            rest.sort();
            rest.dedup();
            cells.push(rest);
            if cells.iter().all(Vec::is_empty) {
                faults.push(format!("{opcode}: no form that the verifier accepts"));
            }
            let shown: Vec<String> = cells.iter().map(|cell| show(cell, &mut notes)).collect();
            let _ = writeln!(typed, "| {name} | {} |", shown.join(" | "));
        }
    }
    let shown: Vec<&str> = faults.iter().take(20).map(String::as_str).collect();
    assert!(
        faults.is_empty(),
        "{} faults, the first are:\n{}",
        faults.len(),
        shown.join("\n")
    );
    check_document(
        "clif-support.md",
        &[
            ("limits", &limits::limits(&isas[0])),
            ("terms", &terms()),
            ("reasons", &notes.text()),
            ("typed", &typed),
            ("plain", &plain),
        ],
    );
    check_file("td/NaplesPUCosts.td", &measured.text());
}

/// The smallest number of machine instructions of each opcode for each type column of td's table.
#[derive(Default)]
struct Counts(BTreeMap<String, BTreeMap<usize, usize>>);

impl Counts {
    fn add(&mut self, opcode: Opcode, ty: ir::Type, outcomes: &[(Outcome, LegalizeAction)]) {
        let column = legalize::types()
            .chain([ir::types::INVALID])
            .position(|known| known == ty);
        let counts = outcomes.iter().filter_map(|(outcome, _)| match outcome {
            Outcome::Instructions(count) => Some(*count),
            Outcome::Runtime | Outcome::Refused(_) => None,
        });
        if let (Some(column), Some(count)) = (column, counts.min()) {
            let known = self.0.entry(opcode.to_string()).or_default();
            let least = known.entry(column).or_insert(count);
            *least = count.min(*least);
        }
    }

    fn text(&self) -> String {
        // The last column is for all other types.
        let columns = legalize::types().count() + 2;
        let mut text = COSTS.to_owned();
        for (opcode, known) in &self.0 {
            let count = |column| known.get(&column).map_or("-1".to_owned(), usize::to_string);
            let counts: Vec<String> = (0..columns).map(count).collect();
            let _ = writeln!(text, "def : InstructionCounts<{opcode:?}, [{}]>;", counts.join(", "));
        }
        text
    }
}

const COSTS: &str = "\
//===- NaplesPUCosts.td - how many machine instructions CLIF instructions are -===//
//
// Made by `cargo test --test all docs::`, which measures what this compiler makes; do not edit. The columns are those of NaplesPUTypes.
//
//===----------------------------------------------------------------------===//

";
