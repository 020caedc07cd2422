//! The documents that are made from the code: `docs/errata.md`, `docs/settings.md`, `docs/intrinsics.md` and `docs/clif-support.md`.
//!
//! Each test makes the text and compares it with the committed file. With `CRANELIFT_TEST_BLESS=1` it writes the file
//! instead. Making the last one compiles every opcode of CLIF on every type, so it is also the test that valid
//! CLIF is compiled or refused and never panics.

#[path = "../../../examples/embed.rs"]
mod embed;
#[path = "docs/forms.rs"]
mod forms;
#[path = "docs/sessions.rs"]
mod sessions;

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{self, Opcode, Type};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_naplespu::code::RelocTarget;
use cranelift_naplespu::settings::Setting;
use cranelift_naplespu::{CompileError, Isa, isa_builder, validate};
use forms::{Access, Form};
use naplespu_reader::panics::{self, caught};
use npu_mc::errata::Erratum;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

/// Compares a document with the committed file, or writes it.
fn check_document(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    if std::env::var_os("CRANELIFT_TEST_BLESS").is_some_and(|v| v == "1") {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let diff = similar::TextDiff::from_lines(committed.as_str(), text);
    assert!(
        committed == text,
        "docs/{name} is not what the code says; CRANELIFT_TEST_BLESS=1 rewrites it\n{}",
        diff.unified_diff().header("committed", "made from the code")
    );
}

/// The functions of the tests in these folders, in the order of their files.
fn test_functions(folders: &[&str]) -> Vec<ir::Function> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../filetests");
    let mut all = Vec::new();
    for folder in folders {
        let entries = std::fs::read_dir(root.join(folder)).unwrap();
        let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        for file in files {
            // Cranelift's reader does not know the target, which the header names.
            let text = std::fs::read_to_string(&file).unwrap();
            let functions = text.find("\nfunction ").map(|at| &text[at..]);
            let functions = functions.and_then(|text| cranelift_reader::parse_functions(text).ok());
            all.extend(functions.into_iter().flatten());
        }
    }
    assert!(all.len() > 200, "{} functions", all.len());
    all
}

/// The code of a function, unless it is refused.
fn code(isa: &Isa, func: &ir::Function) -> Option<Vec<u8>> {
    let mut ctx = Context::for_function(func.clone());
    let code = isa.compile(&mut ctx, &mut ControlPlane::default()).ok()?;
    Some(code.bytes)
}

/// What changes no code is no setting, but documentation.
#[test]
fn every_setting_of_an_erratum_changes_code() {
    let functions = test_functions(&["codegen", "intrinsics", "vector", "scratchpad"]);
    let target = |setting: Option<&str>| {
        let mut builder = isa_builder("naplespu".parse().unwrap());
        if let Some(name) = setting {
            builder.set(name, "false").unwrap();
        }
        builder.finish(settings::Flags::new(settings::builder()))
    };
    let faulty = target(None);
    for erratum in Erratum::ALL {
        let name = format!("erratum_{}", erratum.name());
        let info = erratum.info();
        if !info.is_setting {
            assert!(
                isa_builder("naplespu".parse().unwrap()).set(&name, "false").is_err(),
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
fn intrinsics() {
    let mut text = String::from(
        "# Intrinsics\n\n\
         Made from `td/NaplesPUIntrinsics.td` by `cargo test --test docs`; do not edit.\n\n\
         A call to one of these names is no call: the compiler answers it, mostly with one instruction. Names, types and meaning are\n\
         those of the C compiler's builtins: `i32x16` stands for `<16 x i32>`, `f32x16` for `<16 x float>`, `i32` for pointers. In CLIF:\n\n\
         ```\n\
         function %identity() -> i32 {\n    fn0 = %__builtin_npu_thread_id() -> i32\nblock0:\n    v0 = call fn0()\n    return v0\n}\n\
         ```\n\n\
         In Rust, `intrinsics::Builder` declares and calls them by name (`builder.call(function.ins(), \"thread_id\", &[])`) and\n\
         checks the types. A wrong name or signature is refused.\n\n\
         ## The mask\n\n\
         The mask is a state of the function: all lanes at its start, set by `write_mask_reg`, and neither seen nor changed by the\n\
         functions that it calls. Intrinsics that end in `_masked`, `vector_mix...` and `read_mask_reg` obey the mask as it is where they\n\
         stand. CLIF's own vector instructions act on all lanes whatever it is. Where a load leaves out lanes, they have any value; where a\n\
         store does, their memory is not written, also not by another thread's old value. An access of a vector wants an address aligned to\n\
         its size.\n\n\
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

#[test]
fn errata() {
    let mut text = String::from(
        "# Errata\n\n\
         Made from `td/NaplesPUErrata.td` by `cargo test --test docs`; do not edit.\n\n\
         The hardware description has faults that reach compiled code, and the compiler works around all of them. Where that takes\n\
         code, there is a setting, for a machine where the fault is corrected: `--set erratum_NAME=false` on the command line,\n\
         `Builder::set(\"erratum_NAME\", \"false\")` in Rust, `target naplespu erratum_NAME=false` in a filetest. In the other cases the\n\
         work-around is built in: a register that is never allocated, an instruction that is never selected. The reference names a\n\
         section of the machine documents.\n\n\
         | erratum | work-around |\n|---|---|\n",
    );
    for erratum in Erratum::ALL {
        let info = erratum.info();
        let how = if info.is_setting { "setting" } else { "built in" };
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
    }
    check_document("errata.md", &text);
}

#[test]
fn target_settings() {
    let mut text = String::from(
        "# Settings of the target\n\n\
         Made from `td/NaplesPUSettings.td` and `td/NaplesPUErrata.td` by `cargo test --test docs`; do not edit.\n\n\
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

/// What became of a form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// So many machine instructions beside the returns, none of them a call of the runtime.
    Instructions(usize),
    /// A call of the runtime.
    Runtime,
    /// Refused for this reason.
    Refused(String),
}

/// A target for which forms are compiled. They are verified when they are made.
fn isa(opt_level: &str, separators: bool, strict: bool) -> Arc<Isa> {
    let mut flags = settings::builder();
    flags.set("opt_level", opt_level).unwrap();
    flags.set("enable_verifier", "false").unwrap();
    let mut builder = isa_builder("naplespu".parse().unwrap());
    builder
        .set("erratum_lost_result_before_taken_branch", &separators.to_string())
        .unwrap();
    builder.set("strict_float", &strict.to_string()).unwrap();
    builder.finish(settings::Flags::new(flags))
}

/// Compiles a form. The error is a panic, or anything else that must not happen to valid CLIF.
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
            // Constants stand behind the code, and what fills it up to a line is never executed.
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

/// All that the table says about one opcode and type.
fn cell(isas: &[Arc<Isa>], opcode: Opcode, ty: Type, access: Access, faults: &mut Vec<String>) -> Vec<Outcome> {
    let mut compiled = Vec::new();
    let mut refused = Vec::new();
    for form in forms::forms(opcode, ty, access) {
        let mut told = |what: String| faults.push(format!("{opcode}.{ty}: {what}\n{}", form.func.display()));
        let mut results = Vec::new();
        for isa in isas {
            match outcome(isa, &form) {
                Ok(result) => results.push(result),
                Err(what) => told(what),
            }
        }
        let refusals = results.iter().filter(|r| matches!(r, Outcome::Refused(_))).count();
        if refusals != 0 && refusals != results.len() {
            told(format!(
                "compiled with some settings and refused with others: {results:?}"
            ));
        }
        let types = form.func.dfg.values().map(|value| form.func.dfg.value_type(value));
        let all_covered = types.into_iter().all(validate::is_covered);
        match results.into_iter().next() {
            Some(Outcome::Refused(why)) => refused.push((why, all_covered)),
            Some(good) => compiled.push(good),
            None => {}
        }
    }
    // A form with another operand of a type that is not covered says nothing about this one; f128 is covered, but not by
    // conversions.
    let f128 = |why: &str| why.starts_with("with a value of type f128");
    let lanes = |why: &str| why.starts_with("between types with different numbers of lanes");
    let unexplained = |(why, all_covered): &(String, bool)| *all_covered && !f128(why) && !lanes(why);
    if !compiled.is_empty() && refused.iter().any(unexplained) {
        faults.push(format!(
            "{opcode}.{ty}: some forms on covered types are refused: {refused:?}"
        ));
    }
    let mut all = compiled;
    if all.is_empty() || refused.iter().any(|(why, _)| f128(why)) {
        refused.retain(|(why, _)| all.is_empty() || f128(why));
        all.extend(refused.into_iter().map(|(why, _)| Outcome::Refused(why)));
    }
    all.sort();
    all.dedup();
    all
}

/// `a` to `z`, then `aa` to `zz`.
fn letter(number: usize) -> String {
    let letter = char::from(b'a' + u8::try_from(number % 26).unwrap());
    letter.to_string().repeat(1 + number / 26)
}

/// Reasons of refusals with the letters that stand for them in the table.
#[derive(Default)]
struct Footnotes(BTreeMap<String, usize>);

impl Footnotes {
    fn mark(&mut self, reason: &str) -> String {
        // The reader sees the types in the table and in the CLIF.
        let general = match reason
            .strip_prefix("with a value of type ")
            .and_then(|rest| rest.split_once(';'))
        {
            Some((_, help)) => format!("a value has a type that is not compiled;{help}"),
            None if reason.starts_with('.') => "the instruction with this type".to_owned(),
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

fn show(outcomes: &[Outcome], notes: &mut Footnotes) -> String {
    let count = |outcome: &Outcome| {
        if let Outcome::Instructions(n) = outcome {
            Some(*n)
        } else {
            None
        }
    };
    let counts: Vec<usize> = outcomes.iter().filter_map(count).collect();
    let mut parts = Vec::new();
    match (counts.first(), counts.last()) {
        (Some(least), Some(most)) if least == most => parts.push(least.to_string()),
        (Some(least), Some(most)) => parts.push(format!("{least}–{most}")),
        _ => {}
    }
    if outcomes.contains(&Outcome::Runtime) {
        parts.push("call".to_owned());
    }
    for outcome in outcomes {
        if let Outcome::Refused(reason) = outcome {
            let mark = notes.mark(reason);
            if !parts.contains(&mark) {
                parts.push(mark);
            }
        }
    }
    parts.join(" ")
}

#[test]
fn clif_support() {
    // Forms are made that Cranelift cannot give types.
    std::panic::set_hook(panics::hook(std::panic::take_hook()));
    // The first one counts: the instruction that keeps a load away from the return is not the load's.
    let isas = [
        isa("none", false, false),
        isa("none", true, true),
        isa("speed", true, false),
    ];
    let columns = forms::columns();
    let others = forms::other_vectors();
    let mut notes = Footnotes::default();
    let mut faults = Vec::new();
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
                if outcomes.is_empty() {
                    faults.push(format!("{opcode}: no form that the verifier accepts"));
                }
                let _ = writeln!(plain, "| {name} | {} |", show(&outcomes, &mut notes));
                continue;
            }
            let mut cells: Vec<Vec<Outcome>> = columns
                .iter()
                .map(|&ty| cell(&isas, opcode, ty, access, &mut faults))
                .collect();
            let mut rest: Vec<Outcome> = others
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
    let limits = sessions::limits(&isas[0]);
    let text = format!(
        "{HEAD}\n{limits}\n{LEGEND}\n{notes}\n## Instructions with a type\n\n{typed}\n## Instructions without a type\n\n{plain}"
    );
    check_document("clif-support.md", &text);
}

const HEAD: &str = "\
# CLIF support

Made by `cargo test --test docs`, which compiles every opcode on every type; do not edit.

A function is compiled as a whole or refused as a whole, with all reasons. A refusal names the function, the instruction and
the nearest form that works, where there is one.

## What holds for all instructions

- Values are integers of 8 to 128 bits, floats of 16 to 128 bits, and vectors of sixteen lanes, `i8x16`, `i16x16`, `i32x16` and
  `f32x16`. This goes for every value of a function, its arguments and its results. Floats are as `docs/floats.md` says; the tables are for `strict_float=false`.
- Addresses have 32 bits. A load or store takes an address of any integer type and uses its low word.
- Integers are exact, and everything that CLIF leaves to the width (shift amounts, narrow compares, overflow) is as CLIF says.
  Upper bits of `i8` and `i16` arguments and results are undefined unless the signature says `uext` or `sext`.
- `load` and `store` without the flag `aligned` work at any address: they access single bytes unless the address is known to
  be aligned, and copy vectors by a routine. With the flag, an address that is not aligned stops the thread, a little later than the
  access. Vectors are aligned to 16, 32 or 64 bytes, their size in memory; those of words in the scratchpad to 4. In big-endian order they are refused.
- A compare of vectors is a bit a lane in a scalar register. The tables count it with the lanes of all ones that CLIF says it
  makes; `bitselect`, `vany_true`, `vall_true`, `vhigh_bits`, logic on compares and sums with them take the bits.
- Other things that do not compile:
";

const LEGEND: &str = "\
## How to read the tables

The test makes a function of one block with this one instruction, its operands as parameters and its results as results,
and compiles it at `opt_level=none` with `strict_float=false`. (For the numbers, the work-around of the erratum `lost_result_before_taken_branch` is off: it
may put one more instruction between a load and the return.)

- A number is the number of machine instructions beside the returns. `1`: the instruction is native. `0`: nothing has to be
  done. More: a sequence. A range: it depends on the other operands' types. The numbers contain what the instruction brings
  with it: the frame of a call, the code behind a trap, the rows of a branch table with two entries, constants.
- `call`: a routine of the runtime is called.
- An empty cell: CLIF has no such form.
- A letter: refused for this reason. With the work-around, with `strict_float=true` and at `opt_level=speed`, the same forms are
  compiled and refused; the test checks it.

The type is the controlling type of the instruction: that of the result or, where results say nothing, of the first operand.
`other vectors` are those with 2, 4, 8 or 32 lanes, and those of dynamic size.

Reasons:
";
