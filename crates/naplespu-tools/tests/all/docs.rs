//! Generates documents from the code: `docs/errata.md`, `docs/settings.md`, `docs/intrinsics.md`,
//! `docs/vectors.md` and `docs/clif-support.md`.
//!
//! Each test generates the text and compares it with the committed file. With
//! `CRANELIFT_TEST_BLESS=1` it writes the file instead. The last document needs the code of every
//! opcode of CLIF on every type, so its test also checks that valid CLIF is compiled or refused
//! without a panic.

#[path = "../../../../examples/embed.rs"]
mod embed;
mod forms;
mod imports;
mod once;
mod sessions;
mod vectors;

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{self, Opcode, Type};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_naplespu::code::RelocTarget;
use cranelift_naplespu::legalize::{self, Legality, LegalizeAction, LegalizeCondition};
use cranelift_naplespu::settings::Setting;
use cranelift_naplespu::shape::{Shape, is_other};
use cranelift_naplespu::{CompileError, Isa, isa};
use forms::{Access, Form};
use naplespu_filetests::expect;
use naplespu_reader::panics::caught;
use npu_mc::errata::Erratum;
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// Compares a document with the committed file, or writes it.
fn check_document(name: &str, text: &str) {
    check_file(&format!("docs/{name}"), text);
}

/// Compares a file of the repository with the generated text, or writes it.
fn check_file(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    if std::env::var_os("CRANELIFT_TEST_BLESS").is_some_and(|v| v == "1") {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == text,
        "{name} is not what the code says; CRANELIFT_TEST_BLESS=1 rewrites it\n--- committed\n+++ made from the code\n{}",
        expect::unified_diff(&committed, text)
    );
}

/// Returns the functions of the filetests in these folders, in the order of their files.
fn test_functions(folders: &[&str]) -> Vec<ir::Function> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../filetests");
    let mut all = Vec::new();
    for folder in folders {
        let entries = std::fs::read_dir(root.join(folder)).unwrap();
        let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        for file in files {
            // Cranelift's reader does not support the target in the header, so the header is
            // skipped.
            let text = std::fs::read_to_string(&file).unwrap();
            let functions = text.find("\nfunction ").map(|at| &text[at..]);
            let functions = functions.and_then(|text| cranelift_reader::parse_functions(text).ok());
            all.extend(functions.into_iter().flatten());
        }
    }
    assert!(all.len() > 200, "{} functions", all.len());
    all
}

/// Returns the code of a function, or `None` if it is refused.
fn code(isa: &Isa, func: &ir::Function) -> Option<Vec<u8>> {
    let mut ctx = Context::for_function(func.clone());
    let code = isa.compile(&mut ctx, &mut ControlPlane::default()).ok()?;
    Some(code.bytes)
}

/// A setting that never changes code would only be documentation.
#[test]
fn every_setting_of_an_erratum_changes_code() {
    let functions = test_functions(&["codegen", "intrinsics", "vector", "scratchpad"]);
    let target = |setting: Option<&str>| {
        let mut builder = isa::lookup_by_name("naplespu").unwrap();
        if let Some(name) = setting {
            builder.set(name, "false").unwrap();
        }
        builder.finish(settings::Flags::new(settings::builder())).unwrap()
    };
    let faulty = target(None);
    for erratum in Erratum::ALL {
        let name = format!("erratum_{}", erratum.name());
        let info = erratum.info();
        if !info.is_setting {
            assert!(
                isa::lookup_by_name("naplespu").unwrap().set(&name, "false").is_err(),
                "{name}"
            );
            assert!(faulty.has_erratum(*erratum), "{name}");
            continue;
        }
        let mended = target(Some(&name));
        assert!(faulty.has_erratum(*erratum) && !mended.has_erratum(*erratum));
        let differs = |func: &ir::Function| code(&faulty, func) != code(&mended, func);
        assert!(functions.iter().any(differs), "`{name}` changes no code");
    }
}

#[test]
fn short_vectors() {
    check_document("vectors.md", &vectors::document());
}

#[test]
fn intrinsics() {
    let mut text = String::from(
        "# Intrinsics\n\n\
         Made from `td/NaplesPUIntrinsics.td` by `cargo test --test all docs::`; do not edit.\n\n\
         A call of one of these names is not a call: the compiler replaces it, mostly by one instruction.\n\
         Names, types and meaning are those of the C compiler's builtins: `i32x16` stands for `<16 x i32>`,\n\
         `f32x16` for `<16 x float>`, `i32` for pointers. In CLIF:\n\n\
         ```\n\
         function %identity() -> i32 {\n    fn0 = %__builtin_npu_thread_id() -> i32\nblock0:\n    v0 = call fn0()\n    return v0\n}\n\
         ```\n\n\
         In Rust, `intrinsics::Builder` declares and calls them by name\n\
         (`builder.call(function.ins(), \"thread_id\", &[])`) and checks the types. A wrong name or signature\n\
         is refused.\n\n\
         ## The mask\n\n\
         The mask is a state of the function. A function starts with all lanes enabled, and `write_mask_reg`\n\
         sets the mask. Called functions neither see nor change it. Intrinsics that end in `_masked`,\n\
         `vector_mix...` and `read_mask_reg` use the current mask. CLIF's own vector instructions ignore it\n\
         and act on all lanes.\n\n\
         Lanes that a masked load leaves out have any value. A masked store does not write the memory of the\n\
         lanes that it leaves out, not even another thread's old value. A vector access needs an address\n\
         aligned to its size.\n\n\
         ## All of them\n\n\
         All names begin with `__builtin_npu_`.\n\n\
         | name | arguments | result | meaning |\n|---|---|---|---|\n",
    );
    for info in cranelift_naplespu::intrinsics::all() {
        let short = info.name.trim_start_matches(cranelift_naplespu::intrinsics::PREFIX);
        let list = info.params.replace(' ', ", ");
        let _ = writeln!(text, "| `{short}` | {list} | {} | {} |", info.result, info.summary);
    }
    check_document("intrinsics.md", &text);
}

/// Returns the table of the erratum of lost results; `tests/rtl/lost_results.rs` runs its programs.
fn lost_results() -> String {
    let mut text = String::from(
        "\nEach row is a program. `cargo test -p naplespu-tools --test rtl lost_results` runs it on the\n\
         simulator, and on the hardware description that the variable `NPUSIM` names. The first instructions\n\
         are directly before the branch, the others at its target `T`. Initial values are s0 = 7, s1 = 3,\n\
         s3 = 7.0, s5 = 3.0, s9 = 1, s10 = 0, s2 = 100, and likewise v0 to v5; s6 addresses a word 3 that is\n\
         in the data cache, s8 a word 0 that is not. The result is s4 or lane 0 of v4, in hexadecimal. Several\n\
         threads have the same results if the instruction and the branch issue in adjacent cycles and the\n\
         target issues at once.\n\n\
         | program | before the branch | branch | at the target | hardware | right |\n|---|---|---|---|---|---|\n",
    );
    let rows = include_str!("../rtl/lost_results.tsv")
        .lines()
        .filter(|line| !line.starts_with('#'));
    for row in rows {
        let columns: Vec<&str> = row.split('\t').collect();
        if let [name, before, branch, target, machine, right] = columns[..] {
            let machine = if machine == right {
                right.to_owned()
            } else {
                format!("**{machine}**")
            };
            let before = if before.is_empty() {
                String::new()
            } else {
                format!("`{before}`")
            };
            let _ = writeln!(
                text,
                "| {name} | {before} | `{branch}` | `{target}` | {machine} | {right} |"
            );
        }
    }
    text
}

#[test]
fn errata() {
    let mut text = String::from(
        "# Errata\n\n\
         Made from `td/NaplesPUErrata.td` by `cargo test --test all docs::`; do not edit.\n\n\
         The hardware description has faults that affect compiled code. The compiler works around all of\n\
         them, around some only in part. A work-around that costs code has a setting, for a machine without\n\
         the fault: `--set erratum_NAME=false` on the command line, `Builder::set(\"erratum_NAME\", \"false\")`\n\
         in Rust, `target naplespu erratum_NAME=false` in a filetest. The other work-arounds are built in: a\n\
         register that is never allocated, an instruction that is never selected. The reference names a page\n\
         of the machine's manual.\n\n\
         The simulator always has the faults. So code for a machine without a fault (`erratum_NAME=false`)\n\
         returns wrong results on it, or does not end.\n\n\
         | erratum | work-around |\n|---|---|\n",
    );
    for erratum in Erratum::ALL {
        let info = erratum.info();
        let how = match info.is_setting {
            true => "setting",
            false if info.workaround.starts_with("In part:") => "in part",
            false => "built in",
        };
        let _ = writeln!(text, "| [{0}](#{0}) | {how} |", info.name);
    }
    for erratum in Erratum::ALL {
        let info = erratum.info();
        let _ = write!(text, "\n## {}\n\n{}\n\n", info.name, info.summary);
        if info.is_setting {
            let _ = writeln!(text, "- Setting: `erratum_{}`, `true` unless set", info.name);
        }
        let _ = write!(
            text,
            "- Effect: {}\n- What the compiler does: {}\n- Reference: {}\n",
            info.effect, info.workaround, info.reference
        );
        if *erratum == Erratum::LostResultBeforeTakenBranch {
            text += &lost_results();
        }
    }
    check_document("errata.md", &text);
}

#[test]
fn target_settings() {
    let mut text = String::from(
        "# Settings of the target\n\n\
         Made from `td/NaplesPUSettings.td` and `td/NaplesPUErrata.td` by `cargo test --test all docs::`; do not edit.\n\n\
         `--set NAME=VALUE` on the command line, `Builder::set(\"NAME\", \"VALUE\")` in Rust, `target naplespu NAME=VALUE` in a filetest. Where\n\
         to read on: [floats.md](floats.md), [atomics.md](atomics.md), [errata.md](errata.md).\n\n\
         | setting | values | unless set | effect |\n|---|---|---|---|\n",
    );
    for setting in Setting::ALL {
        let info = setting.info();
        let values = format!("`{}`", info.values.replace(", ", "`, `").replace(" to ", "` to `"));
        let _ = writeln!(
            text,
            "| `{}` | {values} | `{}` | {} |",
            info.name, info.default, info.description
        );
    }
    check_document("settings.md", &text);
}

#[test]
fn embedding() {
    embed::main().unwrap();
    fn can_be_shared<T: Send + Sync>() {}
    can_be_shared::<Isa>();
}

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
    let mut text = String::new();
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
    super::silence_caught_panics();
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
    let notes = notes.text();
    let terms = terms();
    let limits = sessions::limits(&isas[0]);
    let text = format!(
        "{HEAD}\n{limits}\n{LEGEND}\n{terms}\nReasons:\n\n{notes}\n## Instructions with a type\n\n{typed}\n## Instructions without a type\n\n{plain}"
    );
    check_document("clif-support.md", &text);
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

const HEAD: &str = "\
# CLIF support

Made from `td/NaplesPULegalize.td` by `cargo test --test all docs::`, which compiles every opcode on every type and fails where the
compiler does something else; do not edit.

A function is compiled as a whole or refused as a whole, with all reasons. A refusal names the function, the instruction and
the nearest form that works, where there is one.

## What holds for all instructions

- Values are integers of 8 to 128 bits, floats of 16 to 128 bits, and vectors of them. This goes for every value of a function, its arguments and its
  results. Floats are as `docs/floats.md` says; the tables are for `strict_float=false`.
- `i8x16`, `i16x16`, `i32x16` and `f32x16` are held in a vector register, and so are vectors of fewer of these lanes, `i32x4` among them, for which most
  operations take as many instructions ([vectors.md](vectors.md) has the numbers). Vectors of 32 and 64 such lanes are
  held in two and four registers, and an operation takes as many times the instructions. **All other vectors are taken apart: each lane is a scalar**, and what is
  done to the vector is done to each: `i64x2`, `f64x2`, `f16x8`, and vectors of more than sixty-four lanes. Vectors of dynamic size have four times the lanes that their type names: `i32x4xN` has sixteen.
- Addresses have 32 bits. A load or store takes an address of any integer type and uses its low word.
- Integers are exact, and everything that CLIF leaves to the width (shift amounts, narrow compares, overflow) is as CLIF says.
  Upper bits of `i8` and `i16` arguments and results are undefined unless the signature says `uext` or `sext`.
- `load` and `store` without the flag `aligned` work at any address: they access single bytes unless the address is known to
  be aligned; vectors of sixteen bytes take the lines that they are in and are stored by a routine, larger ones are copied by a
  routine. With the flag, an address that is not aligned stops the thread, a little later than the
  access. Vectors are aligned to their size in memory, such as 16, 32 or 64 bytes; those of words in the scratchpad to 4.
- A compare of vectors is one bit per lane in a scalar register. The tables count it with the lanes of all ones that CLIF says it
  makes; `bitselect`, `vany_true`, `vall_true`, `vhigh_bits`, logic on compares and sums with them take the bits.

## What is refused

Beside what a setting refuses (`atomics=refuse`, registers without `enable_pinned_reg`), and compares of vectors of dynamic size, to which Cranelift gives a result of one `i8`:
";

const LEGEND: &str = "\
## How to read the tables

The test makes a function of one block with this one instruction, its operands as parameters and its results as results,
and compiles it at `opt_level=none` with `strict_float=false`. (For the numbers, the work-around of the erratum `lost_result_before_taken_branch` is off: it
may put one more instruction between a load and the return.)

- A number is the number of machine instructions beside the returns; `0`: nothing has to be done. A range: it depends on the other
  operands' types. The numbers contain what the instruction brings with it: the frame of a call, the code after a trap, the rows
  of a branch table with two entries, constants.
- An empty cell: CLIF has no such form.
- A letter in italics: refused for this reason.

The type is the controlling type of the instruction: that of the result or, where results say nothing, of the first operand.
`other vectors` are those with 2, 4, 8 or 32 lanes, and those of dynamic size; `lanes` may mean instructions in line or a call for each. The terms are LLVM's; `legalize::rules` of the
library answers with them. With the work-around, with `strict_float=true` and at `opt_level=speed` the test compiles the same
forms and compares with what td says then; so it does with every other value of a setting.

| in the table | term | meaning |
|---|---|---|";
