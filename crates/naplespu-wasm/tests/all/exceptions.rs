//! Tests of exceptions: their values, their handlers, and references to them.

use cranelift_codegen::settings::{self, Configurable};
use cranelift_naplespu::isa::lookup_by_name;
use naplespu_jit::NpuModule;
use naplespu_wasm::{CallError, Config, Instance, Store, Value};

fn store(level: &str, allocator: &str) -> Store {
    let mut flags = settings::builder();
    flags.set("opt_level", level).unwrap();
    flags.set("regalloc_algorithm", allocator).unwrap();
    flags.set("regalloc_checker", "true").unwrap();
    let isa = lookup_by_name("naplespu").unwrap();
    let isa = isa.finish(settings::Flags::new(flags)).unwrap();
    Store::new(NpuModule::new(isa).unwrap(), Config::default())
}

fn load(store: &mut Store, text: &str) -> Instance {
    let instance = store.load(&wat::parse_str(text).unwrap()).unwrap();
    store.start(&instance).unwrap();
    instance
}

/// Runs a test with every register allocator and optimization level.
fn everywhere(test: impl Fn(&mut Store)) {
    for level in ["none", "speed"] {
        for allocator in ["backtracking", "single_pass"] {
            test(&mut store(level, allocator));
        }
    }
}

#[test]
fn every_type_is_carried() {
    let text = r#"(module
        (tag $all (param i32 v128 i64 f32 v128 f64 funcref i32))
        (func $id (export "id"))
        (func $throw (param i32)
            (if (local.get 0) (then (call $throw (i32.sub (local.get 0) (i32.const 1))) (return)))
            (throw $all (i32.const -7) (v128.const i32x4 1 2 3 4) (i64.const -0x123456789abcdef) (f32.const 1.5)
                (v128.const i32x4 5 6 7 8) (f64.const -2.25) (ref.func $id) (i32.const 99)))
        (func (export "caught") (param i32) (result i32 v128 i64 f32 v128 f64 funcref i32)
            (block $here (result i32 v128 i64 f32 v128 f64 funcref i32)
                (try_table (catch $all $here) (call $throw (local.get 0)))
                (unreachable)))
        (func (export "kept") (param i32) (result i32 v128 i64 f32 v128 f64 funcref i32)
            (local $e exnref)
            (block $first (result exnref)
                (try_table (catch_all_ref $first) (call $throw (local.get 0)))
                (unreachable))
            (local.set $e)
            ;; Another exception with this tag must not change the copy.
            (block $other (result i32 v128 i64 f32 v128 f64 funcref i32)
                (try_table (catch $all $other)
                    (throw $all (i32.const 0) (v128.const i32x4 0 0 0 0) (i64.const 0) (f32.const 0)
                        (v128.const i32x4 0 0 0 0) (f64.const 0) (ref.null func) (i32.const 0)))
                (unreachable))
            (drop) (drop) (drop) (drop) (drop) (drop) (drop) (drop)
            (block $here (result i32 v128 i64 f32 v128 f64 funcref i32)
                (try_table (catch $all $here) (throw_ref (local.get $e)))
                (unreachable)))
        )"#;
    everywhere(|store| {
        let instance = load(store, text);
        for (name, depth) in [("caught", 0), ("caught", 5), ("kept", 0), ("kept", 3)] {
            let values = store.invoke(&instance, name, &[Value::I32(depth)]).unwrap();
            let words = |words: [u32; 4]| {
                words
                    .iter()
                    .rev()
                    .fold(0u128, |all, &word| all << 32 | u128::from(word))
            };
            assert!(matches!(values[6], Value::Func(Some(_))), "{values:?}");
            let expected = [
                Value::I32(-7),
                Value::V128(words([1, 2, 3, 4])),
                Value::I64(-0x0123_4567_89ab_cdef),
                Value::F32(1.5f32.to_bits()),
                Value::V128(words([5, 6, 7, 8])),
                Value::F64((-2.25f64).to_bits()),
                values[6],
                Value::I32(99),
            ];
            assert_eq!(values, expected, "{name} {depth}");
        }
    });
}

#[test]
fn the_innermost_clause_that_fits_catches() {
    // The result shows which clause of which block caught. A local that was set before the call
    // keeps its value.
    let text = r#"(module
        (tag $a (param i32)) (tag $b (param i32)) (tag $c)
        (func $throw (param i32)
            (block $none
                (block $c (block $b (block $a (br_table $a $b $c $none (local.get 0)))
                    (throw $a (i32.const 1))) (throw $b (i32.const 2))) (throw $c)))
        (table funcref (elem $throw))
        (func (export "which") (param i32 i32) (result i32)
            (local $kept i32)
            (local.set $kept (i32.mul (local.get 0) (i32.const 1000)))
            (block $outer (result i32)
                (block $all
                    (try_table (catch $b $outer) (catch_all $all)
                        (block $inner (result i32)
                            (try_table (catch $a $inner) (catch $a $outer)
                                (local.set $kept (i32.add (local.get $kept) (i32.const 100)))
                                (if (local.get 1)
                                    (then (call_indirect (param i32) (local.get 0) (i32.const 0)))
                                    (else (call $throw (local.get 0))))
                                (local.set $kept (i32.add (local.get $kept) (i32.const 100))))
                            (return (i32.add (local.get $kept) (i32.const 5))))
                        (return (i32.add (i32.add (local.get $kept) (i32.const 10))))))
                (return (i32.add (local.get $kept) (i32.const 30))))
            (i32.add (i32.add (local.get $kept) (i32.const 20)))))"#;
    everywhere(|store| {
        let instance = load(store, text);
        for indirect in [0, 1] {
            for (which, expected) in [(0, 111), (1, 1122), (2, 2130), (3, 3205)] {
                let args = [Value::I32(which), Value::I32(indirect)];
                let values = store.invoke(&instance, "which", &args).unwrap();
                assert_eq!(values, [Value::I32(expected)], "{which} {indirect}");
            }
        }
    });
}

#[test]
fn tags_are_those_of_instances() {
    let exporter = r#"(module (tag (export "t") (param i32))
        (func (export "throw") (param i32) (throw 0 (local.get 0))))"#;
    let importer = r#"(module (import "m" "t" (tag $theirs (param i32))) (tag $own (param i32))
        (import "m" "throw" (func $throw (param i32)))
        (func (export "catch") (param i32) (result i32)
            (block $o (result i32)
                (block $t (result i32)
                    (try_table (catch $own $o) (catch $theirs $t) (call $throw (local.get 0)))
                    (return (i32.const -1)))
                (return))
            (return (i32.const -2))))"#;
    everywhere(|store| {
        let first = load(store, exporter);
        store.register("m", &first);
        let second = load(store, importer);
        let values = store.invoke(&second, "catch", &[Value::I32(12)]).unwrap();
        assert_eq!(values, [Value::I32(12)]);
        let other = wat::parse_str(r#"(module (import "m" "t" (tag (param i64))))"#).unwrap();
        let error = store.load(&other).unwrap_err().to_string();
        assert!(error.contains("a tag of another type"), "{error}");
    });
}

#[test]
fn what_nobody_catches_traps() {
    everywhere(|store| {
        let instance = load(
            store,
            r#"(module (tag $t) (tag $u)
                (func (export "throw") (block $h (try_table (catch $u $h) (throw $t))))
                (func (export "null") (throw_ref (ref.null exn)))
                (func (export "divide") (result i32)
                    (block $h (try_table (catch_all $h) (return (i32.div_s (i32.const 1) (i32.const 0))))) (i32.const 1)))"#,
        );
        for (name, expected) in [
            ("throw", "uncaught exception"),
            ("null", "null exception reference"),
            ("divide", "integer divide by zero"),
        ] {
            let error = store.invoke(&instance, name, &[]).unwrap_err();
            assert!(
                matches!(&error, CallError::Trap { what, .. } if *what == expected),
                "{name}: {error}"
            );
        }
    });
}

#[test]
fn memory_for_references_ends_with_a_trap() {
    let mut store = store("speed", "backtracking");
    let instance = load(
        &mut store,
        r#"(module (tag $t (param i32))
            (func (export "without") (param i32) (result i32) (local i32)
                (loop $again
                    (block $h (result i32) (try_table (catch $t $h) (throw $t (local.get 0))) (unreachable))
                    (local.set 1 (i32.add (local.get 1)))
                    (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
                (local.get 1))
            (func (export "with") (param i32)
                (loop $again
                    (block $h (result i32 exnref) (try_table (catch_ref $t $h) (throw $t (local.get 0))) (unreachable))
                    (drop) (drop)
                    (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))
            (func $again (param i32)
                (block $h (result exnref)
                    (try_table (catch_all_ref $h)
                        (if (local.get 0) (then (call $again (i32.sub (local.get 0) (i32.const 1)))))
                        (throw $t (local.get 0)))
                    (unreachable))
                (throw_ref))
            (func (export "once") (param i32) (result i32)
                (block $h (result i32) (try_table (catch $t $h) (call $again (local.get 0))) (unreachable))))"#,
    );
    let values = store.invoke(&instance, "without", &[Value::I32(50_000)]).unwrap();
    assert_eq!(values, [Value::I32(1_250_025_000)]);
    // A hundred frames catch and rethrow one exception.
    for _ in 0..20 {
        let values = store.invoke(&instance, "once", &[Value::I32(100)]).unwrap();
        assert_eq!(values, [Value::I32(0)]);
    }
    // A mebibyte holds exceptions of 32 bytes, of which 20 exist already.
    let fits = (1 << 20) / 32 - 20;
    store.invoke(&instance, "with", &[Value::I32(fits)]).unwrap();
    let error = store.invoke(&instance, "with", &[Value::I32(1)]).unwrap_err();
    assert!(
        matches!(
            &error,
            CallError::Trap {
                what: "out of memory for exceptions",
                ..
            }
        ),
        "{error}"
    );
}
