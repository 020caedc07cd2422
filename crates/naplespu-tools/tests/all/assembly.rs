//! Compiled functions printed as assembly assemble to the same bytes and relocations.

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_naplespu::{CompileError, isa};
use naplespu_filetests::runner;
use naplespu_reader::ClifFile;
use naplespu_tools::assembly::add_function;
use npu_mc::asm::{Object, Options, SymbolId, SymbolValue, Target, assemble};
use npu_mc::disasm::{Input, disassemble, source};
use npu_mc::reloc::{self, Reloc};
use std::collections::HashMap;
use std::path::Path;

/// Returns the code of all functions of a file that compile.
fn compiled(file: &ClifFile, opt_level: &str) -> Input {
    let mut flags = settings::builder();
    flags.set("opt_level", opt_level).unwrap();
    let isa = isa::lookup_by_name("naplespu")
        .unwrap()
        .finish(settings::Flags::new(flags))
        .unwrap();
    let mut input = Input::default();
    let mut address = 0;
    for case in &file.functions {
        let mut ctx = Context::for_function(case.func.clone());
        match isa.compile(&mut ctx, &mut ControlPlane::default()) {
            Ok(code) => {
                add_function(&mut input, &case.func, &code, address);
                address += code.bytes.len() as u32;
            }
            Err(CompileError::Unsupported(_)) => {}
            Err(error) => panic!("{}: {error}", case.name),
        }
    }
    input
}

/// Returns the symbol or section offset that a relocation refers to.
fn target(object: &Object, target: Target, addend: i64) -> (String, i64) {
    let at = |id: SymbolId| &object.symbols[id.index()];
    match target {
        Target::Section(_) => (String::new(), addend),
        Target::Symbol(id) => match at(id).value {
            SymbolValue::Place { offset, .. } => (String::new(), i64::from(offset) + addend),
            _ => (at(id).name.clone(), addend),
        },
    }
}

fn check(name: &str, file: &ClifFile, opt_level: &str) -> usize {
    let input = compiled(file, opt_level);
    let text = source(&disassemble(&input));
    let object = assemble(&text, &Options::default()).unwrap_or_else(|f| panic!("{name}: {f:#?}\n{text}"));
    let mut expected: Vec<u8> = input.segments.iter().flat_map(|s| s.1.clone()).collect();
    // The assembler resolves references between functions of one source, as a linker does.
    let symbols: HashMap<&str, u32> = input.symbols.iter().map(|s| (s.name.as_str(), s.address)).collect();
    let mut references = Vec::new();
    for r in &input.references {
        match symbols.get(r.symbol.as_str()) {
            Some(&symbol) if r.kind == Reloc::Branch => {
                let place = &mut expected[r.address as usize..];
                reloc::apply(r.kind, place, symbol, r.addend as i32, r.address).unwrap();
            }
            Some(&symbol) => references.push((r.address, r.kind, (String::new(), i64::from(symbol) + r.addend))),
            None => references.push((r.address, r.kind, (r.symbol.clone(), r.addend))),
        }
    }
    references.sort_by_key(|r| r.0);
    let found: Vec<_> = object
        .relocations
        .iter()
        .map(|r| (r.offset, r.kind, target(&object, r.target, r.addend)))
        .collect();
    assert_eq!(found, references, "{name}");
    assert!(
        object.sections[0].bytes_at(0) == expected,
        "{name}: other bytes\n{text}"
    );
    expected.len() / 4
}

#[test]
fn the_code_of_all_filetests_assembles_back() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../filetests");
    let files = runner::find(std::slice::from_ref(&root)).unwrap();
    let instructions = runner::with_large_stack(|| {
        let mut instructions = 0;
        for path in &files {
            let name = path.strip_prefix(&root).unwrap().display().to_string();
            let file = ClifFile::parse(&name, &std::fs::read(path).unwrap());
            // Some files are invalid on purpose.
            if file.faults.is_empty() {
                let invalid = name.contains("refused") || name.contains("tools");
                for opt_level in ["none", "speed"] {
                    if !invalid {
                        instructions += check(&name, &file, opt_level);
                    }
                }
            }
        }
        instructions
    })
    .unwrap();
    println!("{instructions} instructions");
    assert!(instructions > 10_000);
}
