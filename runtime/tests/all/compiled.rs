//! The code from the build script equals the output of the compiler.

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{ExternalName, UserFuncName};
use cranelift_codegen::settings::{self, Configurable, Flags};
use cranelift_naplespu::code::RelocTarget;
use cranelift_naplespu::{Isa, Pass, Triple, isa};

fn target(flags: &[(&str, &str)], setting: Option<(&str, &str)>) -> Isa {
    let mut builder = settings::builder();
    for (name, value) in flags {
        builder.set(name, value).unwrap();
    }
    let mut target = isa::lookup(Triple::default());
    if let Some((name, value)) = setting {
        target.set(name, value).unwrap();
    }
    target.finish(Flags::new(builder)).unwrap().for_runtime()
}

#[test]
fn it_is_what_the_compiler_makes() {
    let isa = target(&[], None);
    for function in naplespu_runtime::functions().unwrap() {
        let UserFuncName::Testcase(name) = &function.name else {
            panic!("{}", function.name)
        };
        let name = std::str::from_utf8(name.raw()).unwrap();
        assert_eq!(
            naplespu_runtime::function(name).unwrap().unwrap().to_string(),
            function.to_string()
        );
        let built = naplespu_runtime::compiled(&isa, name).unwrap();
        let mut ctx = Context::for_function(function.clone());
        let fresh = isa.compile(&mut ctx, &mut ControlPlane::default()).unwrap();
        assert_eq!(
            (&built.bytes, built.pool_start),
            (&fresh.bytes, fresh.pool_start),
            "{name}"
        );
        let symbol = |target: &RelocTarget| match target {
            RelocTarget::Function => None,
            RelocTarget::Runtime(name) => Some((*name).to_owned()),
            RelocTarget::Name(ExternalName::TestCase(name)) => Some(String::from_utf8(name.raw().to_vec()).unwrap()),
            RelocTarget::Name(other) => panic!("{name}: {other:?}"),
        };
        assert_eq!(built.relocs.len(), fresh.relocs.len(), "{name}");
        for (built, fresh) in built.relocs.iter().zip(&fresh.relocs) {
            let place = |reloc: &cranelift_naplespu::code::Reloc| (reloc.offset, reloc.kind, reloc.addend);
            assert_eq!(
                (place(built), symbol(&built.target)),
                (place(fresh), symbol(&fresh.target)),
                "{name}"
            );
        }
        let traps = |code: &cranelift_naplespu::CompiledCode| -> Vec<_> {
            code.traps.iter().map(|trap| (trap.offset, trap.code)).collect()
        };
        assert_eq!(traps(&built), traps(&fresh), "{name}");
    }
}

#[test]
fn other_settings_are_compiled_for() {
    let name = "__npu_udiv32";
    let known = |isa: &Isa| naplespu_runtime::compiled(isa, name).is_some();
    assert!(known(&target(&[], None)));
    assert!(known(&target(
        &[("opt_level", "speed"), ("enable_verifier", "false")],
        None
    )));
    assert!(!known(&target(&[("regalloc_algorithm", "single_pass")], None)));
    assert!(!known(&target(&[], Some(("strict_float", "true")))));
    assert!(!known(&target(&[], None).without_pass(Pass::Sched)));
    assert!(naplespu_runtime::compiled(&target(&[], None), "udiv32").is_none());
}
