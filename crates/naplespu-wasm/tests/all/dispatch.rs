//! Kernels of modules give the same results with any number of lanes and threads.

use crate::{load, store_of_threads};
use naplespu_wasm::{CallError, Dispatch, Extern, Instance, Store, Value, WasmError};

fn store(cores: usize) -> Store {
    let device = npu_sim::Config {
        cores,
        // Strict machines with several cores refuse cache lines that two cores write.
        strict: cores == 1,
        ..npu_sim::Config::default()
    };
    store_of_threads(&[("opt_level", "speed"), ("regalloc_checker", "true")], device)
}

/// Two work-groups of 48 work-items.
fn groups(lanes: u32, threads: usize, cores: usize) -> Dispatch {
    Dispatch {
        groups: [2, 1, 1],
        workgroup_size: [48, 1, 1],
        workgroup_bytes: 0,
        lanes: Some(lanes),
        threads,
        cores,
        stack_bytes: 0x8000,
    }
}

/// Dispatches a function.
fn dispatch(store: &mut Store, instance: &Instance, name: &str, args: &[i32], how: &Dispatch) -> Result<(), CallError> {
    let Some(Extern::Func(item)) = instance.export(name) else {
        panic!("no {name}");
    };
    let args: Vec<Value> = args.iter().map(|&arg| Value::I32(arg)).collect();
    store.dispatch(instance, item, &args, how)
}

/// Returns the first bytes of the memory.
fn memory(store: &Store, instance: &Instance) -> Vec<u8> {
    let Some(Extern::Memory(memory)) = instance.export("memory") else {
        panic!("no memory");
    };
    let mut bytes = vec![0; 0x1_0000];
    store.module().read_memory(store.base(memory.base).unwrap(), &mut bytes);
    bytes
}

const KERNELS: &str = r#"(module
    (import "npu" "global_id_x" (func $id (result i32)))
    (import "npu" "local_index" (func $local (result i32)))
    (import "npu" "workgroup_id_x" (func $group (result i32)))
    (import "npu" "workgroup_barrier" (func $barrier))
    (import "npu" "subgroup_any" (func $any (param i32) (result i32)))
    (import "npu" "scratchpad_load" (func $load (param i32) (result i32)))
    (import "npu" "scratchpad_store" (func $store (param i32 i32)))
    (memory (export "memory") 1 1 shared)
    (func $at (param $base i32) (param $index i32) (result i32)
        (i32.add (local.get $base) (i32.shl (local.get $index) (i32.const 2))))
    ;; to[i] = 2 * (i as float) + to[i], for i < count
    (func (export "saxpy") (param $to i32) (param $count i32) (local $i i32)
        (local.set $i (call $id))
        (if (i32.eqz (i32.ge_u (local.get $i) (local.get $count))) (then
            (f32.store (call $at (local.get $to) (local.get $i))
                (f32.add (f32.mul (f32.const 2) (f32.convert_i32_u (local.get $i)))
                    (f32.load (call $at (local.get $to) (local.get $i))))))))
    ;; Steps of Collatz, in a loop that lanes leave one after the other, and a division.
    (func (export "steps") (param $to i32) (param $divisor i32) (local $n i32) (local $s i32)
        (local.set $n (i32.rem_u (i32.mul (call $id) (i32.const 77)) (i32.const 100)))
        (block $done (loop $again
            (br_if $done (i32.lt_u (local.get $n) (i32.const 2)))
            (if (i32.and (local.get $n) (i32.const 1))
                (then (local.set $n (i32.add (i32.mul (local.get $n) (i32.const 3)) (i32.const 1))))
                (else (local.set $n (i32.shr_u (local.get $n) (i32.const 1)))))
            (local.set $s (i32.add (local.get $s) (i32.const 1)))
            (br $again)))
        (i32.store (call $at (local.get $to) (call $id))
            (i32.add (local.get $s) (i32.div_u (call $id) (local.get $divisor)))))
    (func (export "histogram") (param $to i32)
        (drop (i32.atomic.rmw.add
            (call $at (local.get $to) (i32.rem_u (i32.mul (call $id) (call $id)) (i32.const 11)))
            (i32.add (call $any (i32.const 3)) (call $group)))))
    ;; Each work-group reverses its numbers through the scratchpad.
    (func (export "reverse") (param $to i32)
        (call $store (i32.shl (call $local) (i32.const 2)) (call $id))
        (call $barrier)
        (i32.store (call $at (local.get $to) (call $id))
            (call $load (i32.shl (i32.sub (i32.const 47) (call $local)) (i32.const 2)))))
    (func (export "bytes") (param $to i32)
        (i32.store8 (i32.add (local.get $to) (call $id)) (call $id)))
    (func (export "odd") (param $to i32) (local $at i32)
        (local.set $at (call $at (local.get $to) (call $id)))
        (i32.store (local.get $at) (i32.add (i32.load (local.get $at)) (call $id))))
    ;; Each work-item has a frame of two words, as compilers lay it out, and calls a function with one.
    (global $stack (mut i32) (i32.const 0x10000))
    (func $twice (param $number i32) (result i32) (local $frame i32)
        (local.set $frame (i32.sub (global.get $stack) (i32.const 16)))
        (i32.store (local.get $frame) (local.get $number))
        (i32.add (local.get $number) (i32.load (local.get $frame))))
    (func (export "frames") (param $to i32) (local $frame i32)
        (global.set $stack (local.tee $frame (i32.sub (global.get $stack) (i32.const 16))))
        (i32.store offset=4 (local.get $frame) (call $id))
        (i32.store offset=8 (local.get $frame) (call $twice (call $id)))
        (i32.store (call $at (local.get $to) (call $id))
            (i32.add (i32.load offset=4 (local.get $frame)) (i32.load offset=8 (local.get $frame))))
        (global.set $stack (i32.add (local.get $frame) (i32.const 16))))
    (func (export "spaced") (param $to i32)
        (i32.store (i32.add (local.get $to) (i32.mul (call $id) (i32.const 12))) (call $id))))"#;

/// Runs all kernels on a new instance and returns the memory.
fn run_all(lanes: u32, threads: usize, cores: usize) -> Vec<u8> {
    let mut store = store(cores);
    let instance = load(&mut store, KERNELS);
    let mut how = groups(lanes, threads, cores);
    let steps: [(&str, &[i32]); 8] = [
        ("saxpy", &[0x100, 90]),
        ("saxpy", &[0x104, 96]),
        ("steps", &[0x400, 5]),
        ("histogram", &[0x800]),
        ("bytes", &[0xc01]),
        ("odd", &[0x1001]),
        ("spaced", &[0x2000]),
        ("frames", &[0x3800]),
    ];
    for (name, args) in steps {
        let done = dispatch(&mut store, &instance, name, args, &how);
        done.unwrap_or_else(|error| panic!("{name}, {lanes} lanes, {threads} threads: {error}"));
    }
    how.workgroup_bytes = 48 * 4;
    how.lanes = None;
    dispatch(&mut store, &instance, "reverse", &[0x3000], &how).unwrap_or_else(|error| panic!("{error}"));
    memory(&store, &instance)
}

#[test]
fn lanes_and_threads_do_not_change_results() {
    let mut expected = vec![0_u8; 0x1_0000];
    let set = |memory: &mut [u8], at: u32, value: u32| {
        memory[at as usize..at as usize + 4].copy_from_slice(&value.to_le_bytes());
    };
    let get = |memory: &[u8], at: u32| u32::from_le_bytes(memory[at as usize..at as usize + 4].try_into().unwrap());
    // The two kernels run one after the other, not work-item by work-item.
    for id in 0..97_u32 {
        let first = if id < 90 { 2.0 * id as f32 } else { 0.0 };
        let second = if id > 0 { 2.0 * (id - 1) as f32 } else { 0.0 };
        set(&mut expected, 0x100 + 4 * id, (first + second).to_bits());
    }
    for id in 0..96_u32 {
        let (mut n, mut steps) = (id * 77 % 100, 0);
        while n >= 2 {
            n = if n % 2 == 1 { 3 * n + 1 } else { n / 2 };
            steps += 1;
        }
        set(&mut expected, 0x400 + 4 * id, steps + id / 5);
        let bin = 0x800 + 4 * (id * id % 11);
        let count = get(&expected, bin) + 1 + id / 48;
        set(&mut expected, bin, count);
        expected[0xc01 + id as usize] = id as u8;
        set(&mut expected, 0x1001 + 4 * id, id);
        set(&mut expected, 0x2000 + 12 * id, id);
        set(&mut expected, 0x3800 + 4 * id, 3 * id);
        set(&mut expected, 0x3000 + 4 * id, id / 48 * 48 + 47 - id % 48);
    }
    for (lanes, threads, cores) in [(1, 8, 1), (16, 8, 1), (16, 4, 2), (64, 1, 1)] {
        let found = run_all(lanes, threads, cores);
        // The upper half is the stack.
        let differs = (0..0x8000).find(|&at| found[at] != expected[at]);
        assert_eq!(differs, None, "{lanes} lanes, {threads} threads, {cores} cores");
    }
}

/// Returns the message of a dispatch that fails.
fn failure(text: &str, name: &str, args: &[i32], threads: usize) -> String {
    let mut store = store(1);
    let instance = load(&mut store, text);
    let done = dispatch(&mut store, &instance, name, args, &groups(16, threads, 1));
    done.unwrap_err().to_string()
}

#[test]
fn traps_and_refusals_name_the_cause() {
    let outside = failure(KERNELS, "saxpy", &[0xff00, 96], 8);
    let expected = "trap: out of bounds memory access in saxpy.dispatch0 at offset 0x";
    assert!(outside.starts_with(expected), "{outside}");
    assert!(failure(KERNELS, "steps", &[0, 0], 8).starts_with("trap: integer divide by zero in steps.dispatch0"));
    assert!(failure(KERNELS, "reverse", &[0], 2).contains("needs 3 threads of a core with 16 lanes, 2 take part"));
    for threads in [0, 9] {
        let refused = format!("the call needs {threads} threads; the device has 8");
        assert_eq!(failure(KERNELS, "saxpy", &[0, 96], threads), refused);
    }
    let others = r#"(module
        (import "npu" "global_id_x" (func $id (result i32)))
        (memory 1)
        (global $stack (mut i32) (i32.const 65536))
        (func $helper (result i32) (call $id))
        (func (export "plain") (param i32))
        (func (export "calls") (i32.store (call $id) (call $helper)))
        (func (export "local") (i32.store (i32.sub (global.get $stack) (call $id)) (call $id)))
        (func (export "large") (i32.store (i32.sub (global.get $stack) (i32.const 1020)) (call $id)))
        (func (export "result") (result i32) (call $id)))"#;
    assert_eq!(
        failure(others, "plain", &[0], 8),
        "plain is no kernel: it calls no function of `npu` that returns its work-item"
    );
    assert!(
        failure(others, "calls", &[], 8).contains("which calls npu.global_id_x; only the kernel itself can call it")
    );
    assert!(failure(others, "local", &[], 8).starts_with("local has variables in memory whose size is not constant"));
    assert_eq!(
        failure(others, "large", &[], 8),
        "the variables in memory of the lanes of a thread have 16384 bytes; its stack has 4096"
    );
    assert_eq!(failure(others, "result", &[], 8), "the kernel %result has results");
}

#[test]
fn a_kernel_cannot_be_called() {
    let mut store = store(1);
    let instance = load(&mut store, KERNELS);
    let error = store.invoke(&instance, "bytes", &[Value::I32(0)]).unwrap_err();
    assert!(matches!(&error, CallError::OutsideOfDispatch { operation, .. } if operation == "npu.global_id_x"));
    assert!(
        error
            .to_string()
            .starts_with("npu.global_id_x exists only in a dispatch, and bytes calls it at offset 0x"),
        "{error}"
    );
    let wrong = wat::parse_str(r#"(module (import "npu" "lane_id" (func (param i32))))"#).unwrap();
    assert!(matches!(store.load(&wrong), Err(WasmError::IncompatibleImport { .. })));
}
