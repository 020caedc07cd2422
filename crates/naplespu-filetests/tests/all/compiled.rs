//! The functions of the filetests, the corpus and the runtime, and their code, which several tests
//! read.

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::Function;
use cranelift_codegen::settings::{self, Configurable, Flags};
use cranelift_naplespu::{CompiledCode, Isa, isa};
use naplespu_filetests::runner;
use naplespu_reader::ClifFile;
use std::path::Path;
use std::sync::{Arc, LazyLock};

/// All functions. Those of `test verifier` are invalid on purpose and left out.
pub static FUNCTIONS: LazyLock<Vec<Function>> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../filetests");
    let mut functions = naplespu_runtime::functions().expect("the runtime");
    for path in runner::find(&[root]).expect("the folder") {
        let file = ClifFile::parse(&path.display().to_string(), &std::fs::read(&path).expect("a file"));
        assert!(file.faults.is_empty(), "{}", file.source.render(&file.faults));
        if !file.header.has_test("verifier") {
            functions.extend(file.functions.into_iter().map(|case| case.func));
        }
    }
    functions
});

/// Returns a target with settings.
pub fn isa(opt_level: &str, target: &[(&str, &str)]) -> Arc<Isa> {
    let mut flags = settings::builder();
    flags.set("opt_level", opt_level).expect("a level");
    let mut builder = isa::lookup_by_name("naplespu").expect("the target");
    for (name, value) in target {
        builder.set(name, value).expect("a setting");
    }
    builder.finish(Flags::new(flags)).expect("settings that go together")
}

/// Compiles all functions. Returns `None` for a refused function.
pub fn compile(isa: &Isa) -> Vec<Option<CompiledCode>> {
    let compile = |function: &Function| {
        let mut ctx = Context::for_function(function.clone());
        match isa.compile(&mut ctx, &mut ControlPlane::default()) {
            Ok(code) => Some(code),
            Err(error) if error.is_refusal() => None,
            Err(error) => panic!("{}: {error}", ctx.func.name),
        }
    };
    let codes: Vec<_> = FUNCTIONS.iter().map(compile).collect();
    // Only few functions are meant to be refused.
    let count = codes.iter().flatten().count();
    assert!(
        count > 2000 && count > codes.len() * 9 / 10,
        "{count} of {}",
        codes.len()
    );
    codes
}

/// Returns the code of all functions with the default settings at an optimization level.
pub fn codes(opt_level: &str) -> &'static [Option<CompiledCode>] {
    static NONE: LazyLock<Vec<Option<CompiledCode>>> = LazyLock::new(|| compile(&isa("none", &[])));
    static SPEED: LazyLock<Vec<Option<CompiledCode>>> = LazyLock::new(|| compile(&isa("speed", &[])));
    match opt_level {
        "none" => &NONE,
        _ => &SPEED,
    }
}
