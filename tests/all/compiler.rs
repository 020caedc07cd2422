//! Tests of a reused compiler: the code is the same, and it allocates little memory.

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::Function;
use cranelift_codegen::settings::{self, Configurable, Flags};
use cranelift_naplespu::{CompiledCode, Compiler, Isa, isa};
use naplespu_reader::ClifFile;
use std::path::Path;
use std::sync::Arc;

fn target(level: &str) -> Arc<Isa> {
    let mut flags = settings::builder();
    flags.set("opt_level", level).unwrap();
    flags.set("enable_verifier", "false").unwrap();
    let builder = isa::lookup_by_name("naplespu").unwrap();
    builder.finish(Flags::new(flags)).unwrap()
}

fn kernels() -> Vec<Function> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests/corpus");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    let parse = |path: &std::path::PathBuf| ClifFile::parse("", &std::fs::read(path).unwrap()).functions;
    paths.iter().flat_map(parse).map(|case| case.func).collect()
}

/// Compiles the function. Returns the code and the number of allocations.
fn counted(compiler: &mut Compiler, ctx: &mut Context, isa: &Isa, func: &Function) -> (CompiledCode, u64) {
    ctx.clear();
    ctx.func = func.clone();
    let mut code = None;
    let memory = allocation_counter::measure(|| {
        code = compiler.compile(isa, ctx, &mut ControlPlane::default()).ok();
    });
    (code.unwrap(), memory.count_total)
}

#[test]
fn the_code_does_not_depend_on_what_was_compiled_before() {
    let (mut compiler, mut ctx) = (Compiler::new(), Context::new());
    for isa in ["none", "speed"].map(target) {
        for func in kernels() {
            let (used, _) = counted(&mut compiler, &mut ctx, &isa, &func);
            let (fresh, _) = counted(&mut Compiler::new(), &mut Context::new(), &isa, &func);
            assert_eq!(used.bytes, fresh.bytes, "{}", func.name);
            assert_eq!(used.asm(None), fresh.asm(None), "{}", func.name);
        }
    }
}

/// The bounds are 10 % above the measured values. Lower them when the compiler allocates less.
#[test]
fn a_used_compiler_allocates_less() {
    for (level, bound) in [("none", 1.25), ("speed", 6.5)] {
        let isa = target(level);
        let (mut compiler, mut ctx) = (Compiler::new(), Context::new());
        let (mut used, mut fresh, mut clif) = (0, 0, 0);
        for func in kernels() {
            clif += func.dfg.num_insts();
            fresh += counted(&mut Compiler::new(), &mut Context::new(), &isa, &func).1;
            counted(&mut compiler, &mut ctx, &isa, &func);
            used += counted(&mut compiler, &mut ctx, &isa, &func).1;
        }
        let each = used as f64 / clif as f64;
        assert!(used < fresh, "{level}: {used} allocations, {fresh} of a new compiler");
        assert!(
            each < bound,
            "{level}: {each:.3} allocations a CLIF instruction ({fresh} fresh, {used} used, {clif})"
        );
    }
}
