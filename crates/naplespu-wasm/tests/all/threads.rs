//! Tests of shared memory and atomic instructions on several hardware threads at once.

use crate::{load, store_of_threads};
use naplespu_spmd::builtins::Builtin;
use naplespu_wasm::{CallError, Dispatch, Extern, Instance, Store, Value};
use npu_sim::{CORE_LIMIT, THREADS};

fn store(opt_level: &str, cores: usize) -> Store {
    let device = npu_sim::Config {
        cores,
        ..npu_sim::Config::default()
    };
    store_of_threads(&[("opt_level", opt_level)], device)
}

/// Calls a function on this many threads; returns the result of each.
fn call(store: &mut Store, instance: &Instance, name: &str, args: &[i32], threads: usize) -> Vec<Value> {
    let Some(Extern::Func(item)) = instance.export(name) else {
        panic!("no {name}");
    };
    let args: Vec<Value> = args.iter().map(|&arg| Value::I32(arg)).collect();
    let results = store.call_threads(instance, item, &args, &Vec::from_iter(0..threads), 0x1_0000);
    let results = results.unwrap_or_else(|error| panic!("{name}: {error}"));
    results
        .into_iter()
        .map(|values| values.first().copied().unwrap_or(Value::I32(0)))
        .collect()
}

/// Optimization levels, numbers of threads, and numbers of cores.
const CASES: [(&str, usize, usize); 4] = [("none", 1, 1), ("none", 8, 1), ("speed", 8, 1), ("speed", 12, 2)];

const COUNTERS: &str = r#"(module
    (memory (export "memory") 1 2 shared)
    (func (export "count") (param $times i32)
        (loop $again
            (drop (i32.atomic.rmw.add (i32.const 16) (i32.const 3)))
            (drop (i64.atomic.rmw.sub offset=24 (i32.const 0) (i64.const 0x1_0000_0001)))
            (drop (i32.atomic.rmw8.add_u (i32.const 33) (i32.const 0x101)))
            (drop (i64.atomic.rmw16.add_u (i32.const 34) (i64.const 0x1_0007)))
            (call $exchange)
            (local.set $times (i32.sub (local.get $times) (i32.const 1)))
            (br_if $again (local.get $times))))
    ;; A sum by compare-exchange of a byte; the expected value has different upper bits.
    (func $exchange (local $old i32)
        (loop $again
            (local.set $old (i32.atomic.load8_u (i32.const 40)))
            (br_if $again
                (i32.ne (local.get $old)
                    (i32.atomic.rmw8.cmpxchg_u (i32.const 40)
                        (i32.or (local.get $old) (i32.const 0xff00))
                        (i32.add (local.get $old) (i32.const 5)))))))
    (func (export "word") (param i32) (result i32) (i32.atomic.load (local.get 0)))
    (func (export "long") (param i32) (result i64) (i64.atomic.load (local.get 0)))
    (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
    (func (export "size") (result i32) (memory.size)))"#;

#[test]
fn every_change_counts() {
    const TIMES: i32 = 20;
    for (level, threads, cores) in CASES {
        let mut store = store(level, cores);
        let instance = load(&mut store, COUNTERS);
        call(&mut store, &instance, "count", &[TIMES], threads);
        let all = TIMES * threads as i32;
        let mut get = |name: &str, at| store.invoke(&instance, name, &[Value::I32(at)]).unwrap()[0];
        assert_eq!(get("word", 16), Value::I32(3 * all), "{level}, {threads}");
        assert_eq!(get("long", 24), Value::I64(-0x1_0000_0001 * i64::from(all)));
        let bytes = (all & 0xff) << 8 | ((7 * all) & 0xffff) << 16;
        assert_eq!(get("word", 32), Value::I32(bytes));
        assert_eq!(get("word", 40), Value::I32((5 * all) & 0xff));
    }
}

#[test]
fn one_thread_gets_the_last_page() {
    for (level, threads, cores) in CASES {
        let mut store = store(level, cores);
        let instance = load(&mut store, COUNTERS);
        let results = call(&mut store, &instance, "grow", &[1], threads);
        let won = results.iter().filter(|result| **result == Value::I32(1)).count();
        let lost = results.iter().filter(|result| **result == Value::I32(-1)).count();
        assert_eq!((won, lost), (1, threads - 1));
        assert_eq!(call(&mut store, &instance, "size", &[], 1), [Value::I32(2)]);
    }
}

const WAITING: &str = r#"(module
    (import "npu" "thread_id" (func $thread (result i32)))
    (import "npu" "tile_id" (func $tile (result i32)))
    (memory (export "memory") 1 1 shared)
    (func $lock
        (if (i32.atomic.rmw.cmpxchg (i32.const 64) (i32.const 0) (i32.const 1))
            (then
                (loop $again
                    (if (i32.atomic.rmw.xchg (i32.const 64) (i32.const 2))
                        (then
                            (drop (memory.atomic.wait32 (i32.const 64) (i32.const 2) (i64.const -1)))
                            (br $again)))))))
    (func $unlock
        (if (i32.eq (i32.atomic.rmw.xchg (i32.const 64) (i32.const 0)) (i32.const 2))
            (then (drop (memory.atomic.notify (i32.const 64) (i32.const 1))))))
    ;; A non-atomic sum under a blocking lock.
    (func (export "guarded") (param $times i32)
        (loop $again
            (call $lock)
            (i32.store (i32.const 128) (i32.add (i32.load (i32.const 128)) (i32.const 1)))
            (call $unlock)
            (local.set $times (i32.sub (local.get $times) (i32.const 1)))
            (br_if $again (local.get $times))))
    (func (export "sum") (result i32) (i32.load (i32.const 128)))
    ;; The other threads wait on a 64-bit value, and the first thread wakes them, a few at a time.
    ;; Returns the number of woken threads, or the result of the wait.
    (func (export "gather") (param $others i32) (param $each i32) (result i32) (local $woken i32)
        (if (i32.or (call $thread) (call $tile))
            (then (return (memory.atomic.wait64 offset=192 (i32.const 8) (i64.const 0) (i64.const -1)))))
        (block $done
            (loop $again
                (br_if $done (i32.eq (local.get $woken) (local.get $others)))
                ;; No thread waits there.
                (if (memory.atomic.notify (i32.const 192) (i32.const -1)) (then unreachable))
                (local.set $woken (i32.add (local.get $woken)
                    (memory.atomic.notify (i32.const 200) (local.get $each))))
                (br $again)))
        (local.get $woken))
    (func (export "wait32") (param i32 i32 i64) (result i32)
        (memory.atomic.wait32 (local.get 0) (local.get 1) (local.get 2)))
    (func (export "wait64") (param i32 i64 i64) (result i32)
        (memory.atomic.wait64 (local.get 0) (local.get 1) (local.get 2)))
    (func (export "notify") (param i32 i32) (result i32)
        (memory.atomic.notify (local.get 0) (local.get 1)))
    (func (export "late") (result i32)
        (memory.atomic.wait32 (i32.const 256) (i32.const 0) (i64.const 20000))))"#;

#[test]
fn a_lock_that_waits() {
    const TIMES: i32 = 10;
    for (level, threads, cores) in CASES {
        let mut store = store(level, cores);
        let instance = load(&mut store, WAITING);
        call(&mut store, &instance, "guarded", &[TIMES], threads);
        let all = TIMES * threads as i32;
        assert_eq!(call(&mut store, &instance, "sum", &[], 1), [Value::I32(all)]);
        // All threads of the machine at once.
        if cores > 1 {
            let mut store = self::store(level, CORE_LIMIT);
            // 128 threads that wait for the lock between cores execute many instructions.
            store.module_mut().set_step_limit(20_000_000_000);
            let instance = load(&mut store, WAITING);
            let others = CORE_LIMIT * THREADS - 1;
            let results = call(&mut store, &instance, "gather", &[others as i32, -1], others + 1);
            assert_eq!(results[0], Value::I32(others as i32));
        }
    }
}

#[test]
fn as_many_are_woken_as_asked_for() {
    for (level, threads, cores) in CASES {
        for each in [1, 3, -1] {
            let mut store = store(level, cores);
            let instance = load(&mut store, WAITING);
            let others = threads as i32 - 1;
            let results = call(&mut store, &instance, "gather", &[others, each], threads);
            assert_eq!(results[0], Value::I32(others));
            assert!(
                results[1..].iter().all(|result| *result == Value::I32(0)),
                "{results:?}"
            );
        }
    }
}

#[test]
fn waits_that_end_by_themselves() {
    for (level, threads, cores) in CASES {
        let mut store = store(level, cores);
        let instance = load(&mut store, WAITING);
        // All at once, so that the queue is emptied in any order.
        let results = call(&mut store, &instance, "late", &[], threads);
        assert_eq!(results, vec![Value::I32(2); threads]);
        let mut call = |name: &str, args: &[Value]| store.invoke(&instance, name, args);
        let long = Value::I64;
        let word = Value::I32;
        assert_eq!(call("wait32", &[word(256), word(1), long(-1)]).unwrap(), [word(1)]);
        assert_eq!(call("wait32", &[word(256), word(0), long(0)]).unwrap(), [word(2)]);
        assert_eq!(
            call("wait64", &[word(256), long(1 << 40), long(-1)]).unwrap(),
            [word(1)]
        );
        assert_eq!(call("wait64", &[word(256), long(0), long(999)]).unwrap(), [word(2)]);
        // The queue is empty.
        assert_eq!(call("notify", &[word(256), word(-1)]).unwrap(), [word(0)]);
        for (name, args) in [
            ("wait32", [word(258), word(0), long(0)]),
            ("wait64", [word(260), long(0), long(0)]),
        ] {
            let error = call(name, &args).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("trap: unaligned atomic in {name} at offset 0x")),
                "{error}"
            );
        }
        let error = call("notify", &[word(0x1_0000), word(0)]).unwrap_err();
        assert!(matches!(
            error,
            CallError::Trap {
                what: "out of bounds memory access",
                ..
            }
        ));
    }
}

#[test]
fn memory_that_is_not_shared() {
    let text = r#"(module
        (memory 1 1)
        (func (export "notify") (result i32) (memory.atomic.notify (i32.const 0) (i32.const 1)))
        (func (export "add") (result i32) (i32.atomic.rmw.add (i32.const 0) (i32.const 1)))
        (func (export "fence") atomic.fence)
        (func (export "wait") (result i32) (memory.atomic.wait32 (i32.const 0) (i32.const 0) (i64.const 0))))"#;
    let mut store = store("speed", 1);
    let instance = load(&mut store, text);
    let mut call = |name: &str| store.invoke(&instance, name, &[]);
    assert_eq!(call("notify").unwrap(), [Value::I32(0)]);
    assert_eq!(call("add").unwrap(), [Value::I32(0)]);
    assert_eq!(call("add").unwrap(), [Value::I32(1)]);
    assert_eq!(call("fence").unwrap(), []);
    let error = call("wait").unwrap_err().to_string();
    assert!(error.starts_with("trap: expected shared memory in wait"), "{error}");
}

/// Returns the declarations of `include/npu.h` as imports, a function that calls each operation of
/// the machine once, and a kernel that calls the others. Numbers are 0, and a pointer points into a
/// word.
fn declared() -> String {
    let header = include_str!("../../../../include/npu.h");
    let (mut imports, mut of_machine, mut of_kernels) = (String::new(), String::new(), String::new());
    for line in header.lines().filter_map(|line| line.strip_prefix("NPU_IMPORT(")) {
        let (name, rest) = line.split_once(") ").expect(line);
        let (result, rest) = rest.split_once(&format!(" npu_{name}(")).expect(line);
        let params = rest.strip_suffix(");").expect(line);
        let calls = match Builtin::parse(name) {
            Some(_) => &mut of_kernels,
            None => &mut of_machine,
        };
        imports += &format!("(import \"npu\" \"{name}\" (func ${name}");
        for param in params.split(", ").filter(|param| *param != "void") {
            let (ty, arg) = match param {
                _ if param.contains('*') => ("i32", "i32.const 77 "),
                _ if param.starts_with("float ") => ("f32", "f32.const 0 "),
                _ => ("i32", "i32.const 0 "),
            };
            imports += &format!(" (param {ty})");
            *calls += arg;
        }
        *calls += &format!("call ${name}\n");
        match result {
            "void" => {}
            "int" | "unsigned" => {
                imports += " (result i32)";
                *calls += "drop\n";
            }
            "long long" => {
                imports += " (result i64)";
                *calls += "drop\n";
            }
            "float" => {
                imports += " (result f32)";
                *calls += "drop\n";
            }
            other => panic!("{other} in {line}"),
        }
        imports += "))\n";
    }
    format!(
        "(module {imports}(memory 1)\n(func (export \"all\")\n{of_machine})\n(func (export \"kernel\")\n{of_kernels}))"
    )
}

/// All declarations of the header exist with these types, and accept the address of any byte.
#[test]
fn the_header_declares_what_there_is() {
    let text = declared();
    assert!(
        text.contains("$flush (param i32)") && text.contains("$cycles (result i64)"),
        "{text}"
    );
    for (level, threads, cores) in CASES {
        let mut store = store(level, cores);
        let instance = load(&mut store, &text);
        call(&mut store, &instance, "all", &[], threads);
        let Some(Extern::Func(kernel)) = instance.export("kernel") else {
            panic!("no kernel");
        };
        let dispatch = Dispatch {
            groups: [2, 1, 1],
            workgroup_size: [16 * threads.min(THREADS) as u32, 1, 1],
            workgroup_bytes: 0,
            lanes: Some(16),
            threads: threads.min(THREADS),
            cores,
            stack_bytes: 0x1_0000,
        };
        let done = store.dispatch(&instance, kernel, &[], &dispatch);
        done.unwrap_or_else(|error| panic!("{error}"));
    }
}

/// A cache line is flushed and invalidated by the address of any byte of a word.
#[test]
fn a_line_has_the_addresses_of_its_bytes() {
    let text = r#"(module
        (import "npu" "flush" (func $flush (param i32)))
        (import "npu" "dcache_inv" (func $drop_line (param i32)))
        (memory 1)
        (func (export "through") (param $at i32) (result i32)
            (i32.store offset=60 (i32.const 64) (i32.add (local.get $at) (i32.const 5)))
            (call $flush (local.get $at))
            (call $drop_line (local.get $at))
            (i32.load offset=60 (i32.const 64))))"#;
    for (level, _, cores) in CASES {
        let mut store = store(level, cores);
        let instance = load(&mut store, text);
        for at in [64, 65, 66, 67, 127] {
            let came = call(&mut store, &instance, "through", &[at], 1);
            assert_eq!(came, [Value::I32(at + 5)], "{level} {at}");
        }
    }
}
