//! Tests of atomic operations by several threads of a core on the same memory, in many orders.

use super::*;
use npu_sim::{Config, Schedule, TimingConfig};

/// Returns the number of the thread in its core.
const THREAD: &str = "    sig9 = (i32) -> i32\n    fn9 = %__builtin_npu_read_control_reg sig9\n";

/// Returns schedules: instruction by instruction, in long turns, and random.
fn schedules() -> Vec<Schedule> {
    let mut all = vec![Schedule::default(), Schedule::round_robin(1), Schedule::round_robin(7)];
    all.extend((0..6).map(|seed| Schedule::random(seed, 1 + 9 * seed as u32)));
    all
}

/// Calls the function with a fresh buffer and a number, on this many threads, with each schedule
/// and with the timing model. `check` receives the results and the memory.
fn in_all_orders(clif: &str, number: i32, threads: usize, check: impl Fn(&[Vec<DataValue>], &NpuModule, u32)) {
    for level in ["none", "speed"] {
        let mut module = with_flags(&[("opt_level", level)]);
        let func = define(&mut module, clif);
        for iteration in 0..=schedules().len() {
            match schedules().get(iteration) {
                Some(schedule) => module.set_schedule(schedule.clone()),
                None => module.set_timing(Some(TimingConfig::default())),
            }
            let buffer = module.allocate(0x4000, 64).unwrap();
            let args = [DataValue::I32(buffer as i32), DataValue::I32(number)];
            let results = module.call_threads(func, &args, threads).unwrap();
            check(&results, &module, buffer);
        }
    }
}

fn word(value: &DataValue) -> u32 {
    match value {
        DataValue::I32(word) => *word as u32,
        other => panic!("{other}"),
    }
}

/// Returns a function that adds one repeatedly and returns the sum of the old values, so that a
/// value that two threads have read is detected.
fn counter(ty: &str, add: &str) -> String {
    let (extend, reduce) = match ty {
        "i32" => ("", ""),
        "i8" | "i16" => ("uextend.i32", ""),
        _ => ("", "ireduce.i32"),
    };
    let to_word = [extend, reduce].concat();
    let to_word = if to_word.is_empty() {
        "v8 = iadd v6, v4".to_owned()
    } else {
        format!("v9 = {to_word} v6\n    v8 = iadd v9, v4")
    };
    let one = if ty == "i128" {
        "v20 = iconst.i64 1\n    v21 = uextend.i128 v20".to_owned()
    } else {
        format!("v21 = iconst.{ty} 1")
    };
    format!(
        "function %count(i32, i32) -> i32 system_v {{
block0(v0: i32, v1: i32):
    v2 = iconst.i32 0
    {one}
    v22 = iconst.i32 1
    jump block1(v1, v2)
block1(v3: i32, v4: i32):
{add}
    {to_word}
    v7 = isub v3, v22
    brif v7, block1(v7, v8), block2
block2:
    return v8
}}"
    )
}

#[test]
fn no_count_is_lost() {
    for (ty, bits) in [("i8", 8), ("i16", 16), ("i32", 32), ("i64", 64), ("i128", 128)] {
        let rmw = format!("    v6 = atomic_rmw.{ty} add v0, v21");
        let cas = format!(
            "    jump block3
block3:
    v30 = atomic_load.{ty} v0
    v31 = iadd v30, v21
    v6 = atomic_cas.{ty} v0, v30, v31
    v32 = icmp eq v6, v30
    brif v32, block4, block3
block4:"
        );
        for add in [rmw, cas] {
            let count = 8 * 12;
            in_all_orders(&counter(ty, &add), 12, 8, |results, module, buffer| {
                assert_eq!(module.read_word(buffer), count, "{ty}");
                assert_eq!(module.read_words(buffer + bits / 8, 8), [0; 8], "{ty}");
                let sum: u32 = results.iter().map(|result| word(&result[0])).sum();
                assert_eq!(sum, count * (count - 1) / 2, "{ty}");
            });
        }
    }
}

/// A store between the load and the store of another thread's operation would be lost.
#[test]
fn stores_do_not_come_between() {
    // Each thread sets its bit with `or`, and thread 0 stores 0 in between. The bit that a thread
    // reads never reverts.
    let clif = format!(
        "function %mix(i32, i32) -> i32 system_v {{
{THREAD}
block0(v0: i32, v1: i32):
    v2 = iconst.i32 2
    v3 = call fn9(v2)
    v4 = iconst.i32 1
    v5 = ishl v4, v3
    v6 = iconst.i32 0
    jump block1(v1)
block1(v7: i32):
    brif v3, block2, block3
block2:
    v8 = atomic_rmw.i32 or v0, v5
    jump block4
block3:
    atomic_store v6, v0
    v9 = atomic_rmw.i32 or v0, v5
    ; Only this thread sets or clears its bit.
    v10 = band v9, v5
    trapnz v10, user1
    jump block4
block4:
    v11 = isub v7, v4
    brif v11, block1(v11), block5
block5:
    return v6
}}"
    );
    in_all_orders(&clif, 20, 4, |_, _, _| ());
}

#[test]
fn a_queue_gives_everything_once() {
    // Tail, head and slots; a slot is empty until its value is stored.
    let clif = format!(
        "function %queue(i32, i32) -> i32 system_v {{
{THREAD}
block0(v0: i32, v1: i32):
    v2 = iconst.i32 2
    v3 = call fn9(v2)
    v4 = imul v3, v1
    v5 = iconst.i32 1
    v6 = iconst.i32 4
    v7 = iadd v0, v6
    v8 = iconst.i32 64
    v9 = iadd v0, v8
    v10 = iconst.i32 0
    jump block1(v1, v10)
block1(v11: i32, v12: i32):
    v13 = iadd v4, v11
    v14 = atomic_rmw.i32 add v0, v5
    v15 = ishl v14, v2
    v16 = iadd v9, v15
    atomic_store v13, v16
    v17 = atomic_rmw.i32 add v7, v5
    v18 = ishl v17, v2
    v19 = iadd v9, v18
    jump block2
block2:
    v20 = atomic_load.i32 v19
    brif v20, block3, block2
block3:
    v21 = iadd v12, v20
    v22 = isub v11, v5
    brif v22, block1(v22, v21), block4
block4:
    return v21
}}"
    );
    in_all_orders(&clif, 15, 8, |results, module, buffer| {
        let mut values = module.read_words(buffer + 64, 120);
        values.sort_unstable();
        assert_eq!(values, (1..=120).collect::<Vec<u32>>());
        let sum: u32 = results.iter().map(|result| word(&result[0])).sum();
        assert_eq!(sum, 120 * 121 / 2);
    });
}

#[test]
fn a_lock_free_list_keeps_every_node() {
    // Each thread pushes its nodes (address of the next, value), then pops as many. No node is
    // popped twice.
    let clif = format!(
        "function %list(i32, i32) -> i32 system_v {{
{THREAD}
block0(v0: i32, v1: i32):
    v2 = iconst.i32 2
    v3 = call fn9(v2)
    v4 = imul v3, v1
    v5 = iconst.i32 1
    v6 = iconst.i32 3
    v7 = iconst.i32 64
    v8 = iadd v0, v7
    v9 = iconst.i32 0
    jump block1(v1)
block1(v11: i32):
    v12 = iadd v4, v11
    v13 = ishl v12, v6
    v14 = iadd v8, v13
    store v12, v14+4
    jump block2
block2:
    v15 = atomic_load.i32 v0
    store v15, v14
    v16 = atomic_cas.i32 v0, v15, v14
    v17 = icmp eq v16, v15
    brif v17, block3, block2
block3:
    v18 = isub v11, v5
    brif v18, block1(v18), block4(v1, v9)
block4(v20: i32, v21: i32):
    jump block5
block5:
    v22 = atomic_load.i32 v0
    trapz v22, user1
    v23 = load.i32 v22
    v24 = atomic_cas.i32 v0, v22, v23
    v25 = icmp eq v24, v22
    brif v25, block6, block5
block6:
    v26 = load.i32 v22+4
    v27 = iadd v21, v26
    v28 = isub v20, v5
    brif v28, block4(v28, v27), block7
block7:
    return v27
}}"
    );
    in_all_orders(&clif, 10, 8, |results, module, buffer| {
        assert_eq!(module.read_word(buffer), 0, "the list is empty again");
        let sum: u32 = results.iter().map(|result| word(&result[0])).sum();
        assert_eq!(sum, 80 * 81 / 2);
    });
}

#[test]
fn a_thread_that_traps_does_not_keep_the_lock() {
    let operations = [
        ("i32", "v9 = atomic_rmw.i32 add v8, v20"),
        ("i32", "v9 = atomic_cas.i32 v8, v20, v20"),
        ("i32", "atomic_store.i32 v20, v8"),
        ("i16", "v9 = atomic_rmw.i16 smax v8, v20"),
        ("i16", "atomic_store.i16 v20, v8"),
        ("i64", "v9 = atomic_load.i64 v8"),
        ("i64", "atomic_store.i64 v20, v8"),
        ("i64", "v9 = atomic_rmw.i64 xor v8, v20"),
    ];
    for (ty, operation) in operations {
        for level in ["none", "speed"] {
            // In strict mode, the possible execution of the instruction after the access is a
            // separate error.
            let mut module = on_device(&[("opt_level", level)], Config::default());
            let clif = format!(
                "function %f(i32, i32) -> i32 system_v {{
{THREAD}
block0(v0: i32, v1: i32):
    v2 = iconst.i32 2
    v3 = call fn9(v2)
    v20 = iconst.{ty} 1
    v4 = icmp eq v3, v1
    v5 = uextend.i32 v4
    v6 = iconst.i32 30
    jump block1(v6)
block1(v7: i32):
    v10 = iconst.i32 15
    v11 = icmp ult v7, v10
    v12 = uextend.i32 v11
    v13 = band v12, v5
    v8 = iadd v0, v13
    {operation}
    v14 = iconst.i32 -1
    v15 = iadd v7, v14
    brif v15, block1(v15), block2
block2:
    return v3
}}"
            );
            let func = define(&mut module, &clif);
            let buffer = module.allocate(64, 64).unwrap();
            let mut call = |bad| module.call_threads(func, &[DataValue::I32(buffer as i32), DataValue::I32(bad)], 4);
            // The other threads finish; otherwise the error would be a timeout.
            let error = call(2).unwrap_err();
            let RunError::Thread { thread: 2, error } = error else {
                panic!("{operation}: {error}")
            };
            assert!(matches!(*error, RunError::Misaligned(_)), "{operation}: {error}");
            assert_eq!(call(-1).unwrap().len(), 4);
        }
    }
}

#[test]
fn a_call_that_is_cut_off_leaves_no_lock() {
    let mut module = with_flags(&[("opt_level", "speed")]);
    let func = define(&mut module, &counter("i32", "    v6 = atomic_rmw.i32 add v0, v21"));
    let buffer = module.allocate(64, 64).unwrap();
    let args = [DataValue::I32(buffer as i32), DataValue::I32(10)];
    module.set_schedule(Schedule::round_robin(1));
    for limit in (20..300).step_by(7) {
        module.set_step_limit(limit);
        let error = module.call_threads(func, &args, 2).unwrap_err();
        assert!(error.to_string().contains("no result"), "{error}");
        module.set_step_limit(1_000_000);
        module.write_word(buffer, 0).unwrap();
        module.call_threads(func, &args, 8).unwrap();
        assert_eq!(module.read_word(buffer), 80);
    }
}

#[test]
fn every_core_has_a_lock() {
    // One counter for each tile.
    let clif = counter("i32", "    v6 = atomic_rmw.i32 add v43, v21").replace(
        "block0(v0: i32, v1: i32):\n",
        &format!(
            "{THREAD}block0(v0: i32, v1: i32):
    v40 = iconst.i32 0
    v41 = call fn9(v40)
    v44 = iconst.i32 7
    v42 = ishl v41, v44
    v43 = iadd v0, v42\n"
        ),
    );
    for coherent in [true, false] {
        let isa = isa::lookup_by_name("naplespu").unwrap();
        let isa = isa.finish(settings::Flags::new(settings::builder())).unwrap();
        let config = Config {
            cores: 3,
            coherent,
            ..Config::testing(1)
        };
        let mut module = NpuModule::with_config(isa, config).unwrap();
        let func = define(&mut module, &clif);
        for schedule in schedules() {
            module.set_schedule(schedule);
            let buffer = module.allocate(0x4000, 64).unwrap();
            let args = [DataValue::I32(buffer as i32), DataValue::I32(12)];
            module.call_threads(func, &args, 24).unwrap();
            module.call_threads(func, &args, 1).unwrap();
            // Caches are written back when the next call starts.
            let other = module.allocate(0x4000, 64).unwrap();
            module
                .call(func, &[DataValue::I32(other as i32), DataValue::I32(1)])
                .unwrap();
            let counts: Vec<u32> = (0..3).map(|tile| module.read_word(buffer + 128 * tile)).collect();
            assert_eq!(counts, [108, 96, 96]);
        }
    }
}

/// On cores with coherent caches, or without caches.
#[test]
fn no_count_is_lost_between_cores() {
    let operations = [
        ("i32", "    v6 = atomic_rmw.i32 add v0, v21"),
        ("i8", "    v6 = atomic_rmw.i8 add v0, v21"),
        ("i128", "    v6 = atomic_rmw.i128 add v0, v21"),
    ];
    for (coherent, cores) in [(true, 2), (false, 3), (false, 16)] {
        for (ty, operation) in operations {
            let mut flags = settings::builder();
            flags.set("opt_level", "speed").unwrap();
            let mut isa = isa::lookup_by_name("naplespu").unwrap();
            isa.set("atomics", "machine").unwrap();
            let config = Config {
                cores,
                coherent,
                ..Config::testing(1)
            };
            let mut module = NpuModule::with_config(isa.finish(settings::Flags::new(flags)).unwrap(), config).unwrap();
            let func = define(&mut module, &counter(ty, operation));
            for schedule in schedules().into_iter().step_by(2) {
                module.set_schedule(schedule);
                let buffer = module.allocate(0x4000, 64).unwrap();
                let args = |number| [DataValue::I32(buffer as i32), DataValue::I32(number)];
                let threads = 8 * cores as u32;
                let results = module.call_threads(func, &args(1), threads as usize).unwrap();
                let sum: u32 = results.iter().map(|result| word(&result[0])).sum();
                assert_eq!(sum, threads * (threads - 1) / 2, "{ty}");
                // An operation writes its lines to memory.
                module.call(func, &args(1)).unwrap();
                module.call(func, &args(1)).unwrap();
                assert_eq!(module.read_word(buffer) & 0xff, (threads + 2) & 0xff, "{ty}");
            }
        }
    }
}

/// The costs in `docs/atomics.md`, in cycles of the timing model.
#[test]
fn the_lock_costs_what_is_said() {
    let cycles = |setting: &str, threads: usize| {
        let mut flags = settings::builder();
        flags.set("opt_level", "speed").unwrap();
        let mut builder = isa::lookup_by_name("naplespu").unwrap();
        builder.set("atomics", setting).unwrap();
        let mut module = NpuModule::new(builder.finish(settings::Flags::new(flags)).unwrap()).unwrap();
        module.set_timing(Some(TimingConfig::default()));
        let func = define(&mut module, &counter("i32", "    v6 = atomic_rmw.i32 add v0, v21"));
        let buffer = module.allocate(64, 64).unwrap();
        let args = [DataValue::I32(buffer as i32), DataValue::I32(400)];
        module.call_threads(func, &args, threads).unwrap();
        module.timing_report().unwrap().cycles / (400 * threads as u64)
    };
    let plain = cycles("single_thread", 1);
    let measured = [1, 2, 4, 8].map(|threads| cycles("core", threads) - plain);
    let machine = cycles("machine", 1) - plain;
    println!(
        "{plain} without the lock; with it, and 1, 2, 4, 8 threads, {measured:?} more; with that of the machine {machine}"
    );
    for (measured, said) in measured.into_iter().chain([machine]).zip([78, 90, 144, 217, 1138]) {
        assert!(measured <= said + said / 10, "{measured} cycles, {said} expected");
    }
}
