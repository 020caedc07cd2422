//! Tests of traps, timeouts and refusals: their messages and locations.

use super::*;
use cranelift_codegen::ir::{SourceLoc, TrapCode};
use naplespu_jit::Location;

#[test]
fn a_refused_function_is_named_and_can_be_defined_again() {
    let mut module = module();
    let id = declare(&mut module, "shaky", Linkage::Local, &words(1, 1));
    let caller = define(
        &mut module,
        "function %caller(i32) -> i32 {
            fn0 = colocated u0:0(i32) -> i32 system_v
        block0(v0: i32):
            v1 = call fn0(v0)
            return v1
        }",
    );
    let refused = "function u0:0(i32) -> i32 system_v {
        gv0 = symbol colocated %everybodys
    block0(v0: i32):
        v1 = tls_value.i32 gv0
        return v1
    }";
    match body(&mut module, id, parse(refused)) {
        Err(ModuleError::Compilation(error)) => {
            let text = error.to_string();
            assert!(text.contains("%shaky") && text.contains("tls_value"), "{text}");
        }
        other => panic!("{other:?}"),
    }
    match call(&mut module, caller, &[1]) {
        Err(RunError::Refused { function, reason }) => {
            assert_eq!(function, "shaky");
            assert!(reason.contains("tls_value"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    let invalid = "function u0:0(i32) -> i32 system_v { block0(v0: i32): return }";
    match body(&mut module, id, parse(invalid)) {
        Err(ModuleError::Compilation(cranelift_codegen::CodegenError::Verifier(errors))) => {
            assert!(!errors.0.is_empty())
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(
        call(&mut module, caller, &[1]),
        Err(RunError::NotCompiled { .. })
    ));
    body(&mut module, id, parse(DOUBLE)).unwrap();
    assert_eq!(call(&mut module, caller, &[4]).unwrap(), 8);
}

#[test]
fn traps_say_where() {
    let mut module = module();
    define(
        &mut module,
        "function %check(i32) -> i32 {
        block0(v0: i32):
        @0011   trapz v0, user3
        @0012   v1 = iconst.i32 1000
        @0013   v2 = sdiv v1, v0
        @0014   v3 = isub v0, v1
        @0015   trapz v3, user3
        return v2
        }",
    );
    let caller = define(
        &mut module,
        "function %caller(i32) -> i32 {
            fn0 = %check(i32) -> i32 system_v
        block0(v0: i32):
        @0100   v1 = call fn0(v0)
            return v1
        }",
    );
    assert_eq!(call(&mut module, caller, &[10]).unwrap(), 100);
    for (arg, line) in [(0, 0x11), (1000, 0x15)] {
        match call(&mut module, caller, &[arg]) {
            Err(RunError::Trap(trap)) => {
                assert_eq!(trap.code, Some(TrapCode::unwrap_user(3)));
                assert_eq!(trap.function.as_deref(), Some("check"));
                assert_eq!(trap.srcloc, Some(SourceLoc::new(line)));
                assert!(trap.inst.is_some());
            }
            other => panic!("{other:?}"),
        }
    }
    // The next call is not affected.
    assert_eq!(call(&mut module, caller, &[10]).unwrap(), 100);
}

fn is_at(at: &Location, function: &str, line: u32) {
    assert_eq!(at.function.as_deref(), Some(function), "{at:?}");
    assert_eq!(at.srcloc, Some(SourceLoc::new(line)), "{at:?}");
    assert!(at.inst.is_some(), "{at:?}");
}

#[test]
fn timeouts_and_hangs_say_where() {
    let mut module = module();
    let count = define(
        &mut module,
        "function %count(i32) -> i32 {
        block0(v0: i32):
            jump block1(v0)
        block1(v1: i32):
        @0021   v2 = iconst.i32 1
        @0021   v3 = isub v1, v2
        @0021   brif v3, block1(v3), block2
        block2:
            return v3
        }",
    );
    assert_eq!(call(&mut module, count, &[100]).unwrap(), 0);
    // Less than a branch for each number, because loops are unrolled.
    assert!((50..1000).contains(&module.steps()), "{}", module.steps());
    module.set_step_limit(500);
    match call(&mut module, count, &[-1]) {
        Err(RunError::Timeout { steps: 500, at }) => {
            assert_eq!(at.function.as_deref(), Some("count"));
            assert!(
                at.inst.is_some() && at.srcloc.is_none_or(|loc| loc == SourceLoc::new(0x21)),
                "{at:?}"
            );
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(module.steps(), 500);
    assert_eq!(call(&mut module, count, &[100]).unwrap(), 0);

    let spin = define(
        &mut module,
        "function %spin() { block0: jump block1 block1: jump block1 }",
    );
    match module.call(spin, &[]) {
        Err(RunError::Stopped { reason, at }) => {
            assert!(reason.contains("endless jump"), "{reason}");
            assert_eq!(at.function.as_deref(), Some("spin"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn misaligned_accesses_say_where() {
    // The execution of the instruction after the access depends on timing, which is an erratum.
    let mut module = lenient_module();
    let load = define(
        &mut module,
        "function %load(i32) -> i32 {
        block0(v0: i32):
        @0031   v1 = load.i32 aligned v0+4
        @0032   v2 = load.i32 aligned v0+6
        @0033   v3 = iadd v1, v2
            return v3
        }",
    );
    match call(&mut module, load, &[0x4000_0000]) {
        Err(RunError::Misaligned(at)) => is_at(&at, "load", 0x32),
        other => panic!("{other:?}"),
    }
    match call(&mut module, load, &[0x4000_0001]) {
        Err(error @ RunError::Misaligned(_)) => {
            assert!(
                error.to_string().starts_with("misaligned access in %load at inst"),
                "{error}"
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn errors_name_anonymous_functions() {
    let mut module = module();
    let id = module.declare_anonymous_function(&words(0, 0)).unwrap();
    body(&mut module, id, parse("function %x() system_v { block0: trap user9 }")).unwrap();
    match module.call(id, &[]) {
        Err(RunError::Trap(trap)) => assert_eq!(trap.function.as_deref(), Some(".Lfn0")),
        other => panic!("{other:?}"),
    }
    let undefined = module.declare_anonymous_function(&words(0, 0)).unwrap();
    match module.call(undefined, &[]) {
        Err(RunError::Undefined { name, .. }) => assert_eq!(name, ".Lfn1"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_debugtrap_without_a_debugger() {
    let mut module = module();
    let stops = define(
        &mut module,
        "function %stops(i32) -> i32 system_v {
        block0(v0: i32):
            v1 = imul v0, v0
            debugtrap
            return v1
        }",
    );
    match module.call(stops, &[DataValue::I32(3)]) {
        Err(error @ RunError::DebugTrap(_)) => {
            assert_eq!(error.to_string(), "debugtrap without a debugger in %stops at inst1");
        }
        other => panic!("{other:?}"),
    }
}
