//! Tests of thread-local data: each thread has a copy with the initial contents of the object.

use super::*;
use npu_sim::{Config, Schedule};

/// A counter of each thread, and the address of a word in main memory. Each thread counts to its
/// number plus ten.
const COUNT: &str = "
function %count(i32) -> i32, i32 system_v {
    gv0 = symbol tls u1:0
    gv1 = symbol colocated tls u1:1+4
    sig9 = (i32) -> i32
    fn9 = %__builtin_npu_read_control_reg sig9
block0(v0: i32):
    v1 = iconst.i32 2
    v2 = call fn9(v1)
    v3 = iadd v2, v0
    v4 = iconst.i32 1
    jump block1(v3)
block1(v5: i32):
    v6 = tls_value.i32 gv0
    v7 = load.i32 aligned v6
    v8 = iadd v7, v4
    store aligned v8, v6
    v9 = symbol_value.i64 gv1
    v10 = load.i32 aligned v9
    v11 = iadd v10, v2
    store aligned v11, v9
    v12 = isub v5, v4
    brif v12, block1(v12), block2
block2:
    v13 = tls_value.i64 gv0
    v14 = load.i32 aligned v13
    v15 = symbol_value.i32 gv1
    v16 = load.i32 aligned v15
    return v14, v16
}";

fn on_cores(cores: usize, level: &str) -> NpuModule {
    let config = Config {
        cores,
        ..Config::testing(1)
    };
    on_device(&[("opt_level", level), ("regalloc_checker", "true")], config)
}

fn tls_data(module: &mut NpuModule, name: &str, bytes: &[u8], align: u64) -> DataId {
    let id = module.declare_data(name, Linkage::Local, true, true).unwrap();
    let mut description = DataDescription::new();
    description.define(bytes.into());
    description.set_align(align);
    module.define_data(id, &description).unwrap();
    id
}

#[test]
fn every_thread_has_its_own() {
    for (cores, level) in [(1, "none"), (1, "speed"), (2, "speed")] {
        let mut module = on_cores(cores, level);
        let counter = tls_data(&mut module, "counter", &7u32.to_le_bytes(), 4);
        let pair = tls_data(&mut module, "pair", &[0xaa, 0xaa, 0xaa, 0xaa, 100, 0, 0, 0], 64);
        let count = define(&mut module, COUNT);
        let threads = 8 * cores;
        let number = |value: &DataValue| match value {
            DataValue::I32(number) => *number as usize,
            other => panic!("{other}"),
        };
        module.set_schedule(Schedule::random(3, 5));
        for iteration in 1..=2 {
            let results = module.call_threads(count, &[DataValue::I32(10)], threads).unwrap();
            for (thread, result) in results.iter().enumerate() {
                let iterations = iteration * (thread % 8 + 10);
                assert_eq!(number(&result[0]), 7 + iterations, "thread {thread}");
                assert_eq!(number(&result[1]), 100 + iterations * (thread % 8), "thread {thread}");
                let copy = |data| module.tls_address(data, thread).unwrap();
                assert_eq!(module.read_word(copy(counter)) as usize, 7 + iterations);
                assert_eq!(module.read_word(copy(pair)), 0xaaaa_aaaa);
                assert!(copy(pair).is_multiple_of(64));
            }
        }
        assert_eq!(module.tls_address(counter, threads), None);
        // A single-threaded call runs on thread 0, whose copy keeps its contents.
        let results = module.call(count, &[DataValue::I32(10)]).unwrap();
        assert_eq!(number(&results[0]), 7 + 30);
    }
}

#[test]
fn what_is_defined_later_and_refers_to_others_is_in_every_block() {
    let mut module = on_cores(1, "speed");
    let first = tls_data(&mut module, "first", &[1], 1);
    let count = define(
        &mut module,
        "function %value() -> i32, i32 system_v {
            gv0 = symbol tls u1:1
            gv1 = symbol tls u1:0
        block0:
            v0 = tls_value.i32 gv0
            v1 = load.i32 v0
            v2 = load.i32 v1
            v3 = tls_value.i32 gv1
            v4 = uload8.i32 v3
            return v2, v4
        }",
    );
    let later = module.declare_data("later", Linkage::Local, true, true).unwrap();
    let shared = module.declare_data("shared", Linkage::Local, true, false).unwrap();
    assert!(matches!(module.call(count, &[]), Err(RunError::Undefined { .. })));
    let mut description = DataDescription::new();
    description.define_zeroinit(4);
    let target = module.declare_data_in_data(shared, &mut description);
    description.write_data_addr(0, target, 0);
    module.define_data(later, &description).unwrap();
    let mut description = DataDescription::new();
    description.define(41u32.to_le_bytes().into());
    module.define_data(shared, &description).unwrap();
    let results = module.call_threads(count, &[], 8).unwrap();
    assert_eq!(results, vec![vec![DataValue::I32(41), DataValue::I32(1)]; 8]);
    assert_eq!(module.tls_address(shared, 0), None);
    assert!(module.tls_address(first, 0) < module.tls_address(later, 0));
}

#[test]
fn what_does_not_fit_into_a_block_is_refused() {
    let mut module = on_cores(1, "none");
    let mut define = |name: &str, size: usize, align: u64, section: &str| {
        let id = module.declare_data(name, Linkage::Local, true, true).unwrap();
        let mut description = DataDescription::new();
        description.define_zeroinit(size);
        description.set_align(align);
        description.set_custom_section(section);
        module.define_data(id, &description).map_err(|error| error.to_string())
    };
    assert!(define("a", 0x8000, 64, "").is_ok());
    assert!(
        define("b", 0x8000, 64, "")
            .unwrap_err()
            .contains("no room for 32768 bytes")
    );
    assert!(define("c", 4, 128, "").unwrap_err().contains("alignment of 128"));
    assert!(define("d", 4, 4, "scratchpad").unwrap_err().contains("scratchpad"));
    assert!(define("e", 4, 4, "").is_ok());
}
