//! Compiles the routines of the runtime for the default settings, so that programs need not read
//! and compile them.

#[path = "src/source.rs"]
mod source;

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{ExternalName, Function, UserFuncName};
use cranelift_codegen::settings::{self, Flags};
use cranelift_naplespu::code::{CompiledCode, RelocTarget};
use cranelift_naplespu::runtime::OTHER_LINE;
use cranelift_naplespu::{Isa, Pass, Triple, isa};
use npu_mc::asm;
use source::{CHECKS, SOURCES, SPLIT, made_from, parse, rare};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

/// Routines that negate the last argument of another routine; the sign is in its last word.
const DIFFERENCES: &[(&str, &str)] = &[
    ("__npu_f32_sub", "__npu_f32_add"),
    ("__npu_f64_sub", "__npu_f64_add"),
    ("__npu_f128_sub", "__npu_f128_add"),
];

/// Assembly routines, for operations that CLIF cannot express as well: a file each, whose first
/// label is the name of the routine.
const ASSEMBLY: &[&str] = &["atomic_enter.s", "machine_enter.s", "stack_switch.s"];

/// A routine: the routine with its text, the position of the text, and the function.
struct Routine {
    text_of: String,
    text: (usize, usize, usize),
    function: Function,
}

fn main() -> ExitCode {
    match build() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn build() -> Result<(), String> {
    println!("cargo::rerun-if-changed=src/source.rs");
    for (file, _) in SOURCES {
        println!("cargo::rerun-if-changed={}", file.trim_start_matches("runtime/"));
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let flags = Flags::new(settings::builder());
    let isa = isa::lookup(Triple::default())
        .finish(flags)
        .map_err(|e| e.to_string())?;
    let isa = isa.for_runtime();
    let mut code = Vec::new();
    let routines = routines()?;
    // Ordered by name.
    let mut rows = BTreeMap::new();
    for file in ASSEMBLY {
        let (name, bytes, relocs) = assembled(file)?;
        let start = code.len();
        code.extend(&bytes);
        let row = row(
            &name,
            "",
            (0, 0, 0),
            (start, code.len()),
            bytes.len(),
            &format!("{relocs:?}"),
            "[]",
        );
        if rows.insert(name.clone(), row).is_some() {
            return Err(format!("{file}: {name} is defined twice"));
        }
    }
    for (name, routine) in &routines {
        let compiled = compile(&isa, &routine.function).map_err(|error| format!("{name}: {error}"))?;
        let start = code.len();
        code.extend(&compiled.bytes);
        let relocs = relocs(&compiled).map_err(|error| format!("{name}: {error}"))?;
        let traps: Vec<(u32, u8)> = compiled
            .traps
            .iter()
            .map(|t| (t.offset, t.code.as_raw().get()))
            .collect();
        let row = row(
            name,
            &routine.text_of,
            routine.text,
            (start, code.len()),
            compiled.pool_start as usize,
            &format!("{relocs:?}"),
            &format!("{traps:?}"),
        );
        if rows.insert(name.clone(), row).is_some() {
            return Err(format!("{name} is defined twice"));
        }
    }
    let table: String = rows.values().map(String::as_str).collect();
    let flags = isa.flags().iter().filter(|flag| !CHECKS.contains(&flag.name));
    let flags: Vec<(&str, String)> = flags.map(|flag| (flag.name, flag.value_string())).collect();
    let passes = Pass::ALL.iter().filter(|pass| isa.runs(**pass));
    let passes: Vec<&str> = passes.map(|pass| pass.name()).collect();
    let text = format!(
        "use super::Built;\n\
         pub(crate) static CODE: &[u8] = include_bytes!(\"code.bin\");\n\
         pub(crate) static FLAGS: &[(&str, &str)] = &{flags:?};\n\
         pub(crate) static PASSES: &[&str] = &{passes:?};\n\
         pub(crate) static ROUTINES: [Built; {}] = [\n{table}];\n",
        rows.len()
    );
    for (name, contents) in [("code.bin", code), ("routines.rs", text.into_bytes())] {
        let path = out.join(name);
        std::fs::write(&path, contents).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(())
}

/// Returns a row of the table of routines.
fn row(
    name: &str,
    text_of: &str,
    text: (usize, usize, usize),
    code: (usize, usize),
    pool_start: usize,
    relocs: &str,
    traps: &str,
) -> String {
    format!(
        "    Built {{ name: {name:?}, text_of: {text_of:?}, text: {text:?}, code: {code:?}, pool_start: {pool_start}, relocs: &{relocs}, traps: &{traps} }},\n"
    )
}

/// Returns the name, bytes and references of an assembly routine.
fn assembled(file: &str) -> Result<(String, Vec<u8>, Vec<Reloc>), String> {
    println!("cargo::rerun-if-changed={file}");
    let root = std::env::var_os("CARGO_MANIFEST_DIR").ok_or("CARGO_MANIFEST_DIR is not set")?;
    let text = std::fs::read_to_string(PathBuf::from(root).join(file)).map_err(|e| format!("{file}: {e}"))?;
    let text = text.replace("OTHER_LINE", &OTHER_LINE.to_string());
    let object = asm::assemble(&text, &asm::Options::default()).map_err(|faults| format!("{file}: {faults:?}"))?;
    let ([first, ..], [section]) = (&object.symbols[..], &object.sections[..]) else {
        return Err(format!("{file}: not one section with a symbol"));
    };
    let bytes = section.bytes_at(0).to_vec();
    if bytes.len() as u64 != section.size || !matches!(first.value, asm::SymbolValue::Place { offset: 0, .. }) {
        return Err(format!("{file}: the routine is not the whole section"));
    }
    let reloc = |reloc: &asm::Relocation| match reloc.target {
        asm::Target::Symbol(symbol) => {
            let name = object.symbols.get(symbol.index()).map(|symbol| symbol.name.clone());
            Ok((reloc.offset, reloc.kind.number(), name, reloc.addend))
        }
        asm::Target::Section(_) => Err(format!("{file}: a reference to a section")),
    };
    let relocs: Result<Vec<Reloc>, String> = object.relocations.iter().map(reloc).collect();
    Ok((first.name.clone(), bytes, relocs?))
}

/// Returns all routines by name.
fn routines() -> Result<BTreeMap<String, Routine>, String> {
    let mut all = BTreeMap::new();
    for (number, (file, text)) in SOURCES.iter().enumerate() {
        // A function ends at the first brace at the start of a line.
        let mut at = 0;
        let starts_at = |at: usize| match text[at..].find("\nfunction %") {
            _ if text[at..].starts_with("function %") => Some(at),
            found => found.map(|found| at + found + 1),
        };
        while let Some(start) = starts_at(at) {
            let end = text[start..].find("\n}").map(|found| start + found + 2);
            at = end.ok_or_else(|| format!("{file}: a function does not end"))?;
            let function = parse(file, &text[start..at])?.pop();
            let function = function.ok_or_else(|| format!("{file}: no function at byte {start}"))?;
            let name = name(&function);
            let routine = Routine {
                text_of: name.clone(),
                text: (number, start, at),
                function,
            };
            if all.insert(name.clone(), routine).is_some() {
                return Err(format!("{file}: {name} is defined twice"));
            }
        }
        let (found, expected) = (
            all.values().filter(|r| r.text.0 == number).count(),
            parse(file, text)?.len(),
        );
        if found != expected {
            return Err(format!("{file}: found {found} of {expected} functions"));
        }
    }
    let derived = SPLIT
        .iter()
        .flat_map(|name| [(rare(name), *name), ((*name).to_owned(), *name)])
        .chain(DIFFERENCES.iter().map(|(name, sum)| ((*name).to_owned(), *sum)));
    let mut made = Vec::new();
    for (name, text_of) in derived {
        let missing = || format!("there is nothing to make {name} from");
        let whole = all.get(text_of).ok_or_else(missing)?;
        let routine = Routine {
            text_of: text_of.to_owned(),
            text: whole.text,
            function: made_from(&whole.function, text_of, &name).ok_or_else(missing)?,
        };
        made.push((name, routine));
    }
    all.extend(made);
    Ok(all)
}

fn name(function: &Function) -> String {
    match &function.name {
        UserFuncName::Testcase(name) => String::from_utf8_lossy(name.raw()).into_owned(),
        UserFuncName::User(name) => name.to_string(),
    }
}

fn compile(isa: &Isa, function: &Function) -> Result<CompiledCode, String> {
    let mut ctx = Context::for_function(function.clone());
    isa.compile(&mut ctx, &mut ControlPlane::default())
        .map_err(|error| error.to_string())
}

/// A relocation: offset, number of the kind, symbol (`None` for the function itself) and addend.
type Reloc = (u32, u8, Option<String>, i64);

fn relocs(code: &CompiledCode) -> Result<Vec<Reloc>, String> {
    let one = |reloc: &cranelift_naplespu::code::Reloc| {
        let symbol = match &reloc.target {
            RelocTarget::Function => None,
            RelocTarget::Runtime(name) => Some((*name).to_owned()),
            RelocTarget::Name(ExternalName::TestCase(name)) => Some(String::from_utf8_lossy(name.raw()).into_owned()),
            RelocTarget::Name(name) => return Err(format!("a reference to {name:?}")),
        };
        Ok((reloc.offset, reloc.kind.number(), symbol, reloc.addend))
    };
    code.relocs.iter().map(one).collect()
}
