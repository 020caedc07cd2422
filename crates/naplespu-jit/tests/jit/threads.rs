//! Tests of calls on several hardware threads at once.

use super::*;
use naplespu_jit::StuckThread;
use npu_sim::{Config, Schedule, Waiting};

/// Routines of the device without a CLIF instruction, as words.
const ROUTINES: [(&str, &[u32]); 3] = [
    // The number of the thread over all cores: 8 times the tile, plus the number in the core.
    (
        "thread",
        &[
            0x6200_0000,
            0x6b00_0000,
            0x4b00_0018,
            0x6204_0008,
            0x6b04_1000,
            0x0400_0040,
            0x7300_0000,
        ],
    ),
    // barrier(id, participants - 1)
    ("barrier", &[0x6800_1000, 0x7300_0000]),
    ("flush", &[0x6a00_0000, 0x7300_0000]),
];

/// Returns a device with `cores` cores and these routines.
fn device(cores: usize, coherent: bool) -> NpuModule {
    let isa = isa::lookup_by_name("naplespu")
        .unwrap()
        .finish(settings::Flags::new(settings::builder()))
        .unwrap();
    let config = Config {
        cores,
        coherent,
        ..Config::testing(1)
    };
    let mut module = NpuModule::with_config(isa, config).unwrap();
    for (name, words) in ROUTINES {
        let address = module.allocate(4 * words.len() as u32, 64).unwrap();
        module.write_words(address, words).unwrap();
        module.define_symbol(name, address);
    }
    module
}

/// Each thread stores its number plus ten, waits for the others, and adds up all stored numbers.
/// Half of the values go over the stack.
const MEET: &str = "
function %meet(i32, i32) -> i32 system_v {
    ss0 = explicit_slot 4
    sig0 = () -> i32 system_v
    sig1 = (i32, i32) system_v
    fn0 = %thread sig0
    fn1 = %barrier sig1
block0(v0: i32, v1: i32):
    v2 = call fn0()
    v30 = stack_addr.i32 ss0
    store v2, v30
    v31 = iconst.i32 2
    v3 = ishl v2, v31
    v4 = iadd v0, v3
    v32 = iconst.i32 10
    v5 = iadd v2, v32
    store v5, v4
    v33 = iconst.i32 -1
    v6 = iadd v1, v33
    v7 = iconst.i32 42
    call fn1(v7, v6)
    v8 = load.i32 v30
    v20 = icmp ne v8, v2
    trapnz v20, user9
    v9 = iconst.i32 0
    jump block1(v9, v9)
block1(v10: i32, v11: i32):
    v12 = ishl v10, v31
    v13 = iadd v0, v12
    v14 = load.i32 v13
    v15 = iadd v11, v14
    v34 = iconst.i32 1
    v16 = iadd v10, v34
    v17 = icmp ult v16, v1
    brif v17, block1(v16, v15), block2
block2:
    return v15
}";

#[test]
fn threads_share_memory_and_meet() {
    for (cores, coherent) in [(1, true), (1, false), (2, true), (2, false)] {
        let mut module = device(cores, coherent);
        let meet = define(&mut module, MEET);
        for threads in [1, 2, 3, 8, 16].into_iter().filter(|n| *n <= 8 * cores) {
            for schedule in [Schedule::default(), Schedule::round_robin(1), Schedule::random(7, 20)] {
                module.set_schedule(schedule);
                let buffer = module.allocate(4 * 16, 64).unwrap();
                let args = [DataValue::I32(buffer as i32), DataValue::I32(threads as i32)];
                let results = module.call_threads(meet, &args, threads).unwrap();
                let sum = (10..10 + threads as i32).sum();
                assert_eq!(results, vec![vec![DataValue::I32(sum)]; threads]);
                assert!(module.steps() > 20 * threads as u64);
            }
        }
    }
}

#[test]
fn every_thread_has_its_own_arguments_and_results_in_memory() {
    // Ten arguments and ten results: some of both are on the stack.
    let mut module = device(1, true);
    let list = |prefix: &str, n: u32| (0..n).map(|k| format!("{prefix}{k}")).collect::<Vec<_>>().join(", ");
    let clif = format!(
        "function %many({params}) -> {returns} system_v {{
    sig0 = () -> i32 system_v
    fn0 = %thread sig0
block0({entry}):
    v20 = call fn0()
{body}    return {results}
}}",
        params = ["i32"; 10].join(", "),
        returns = ["i32"; 10].join(", "),
        entry = (0..10).map(|k| format!("v{k}: i32")).collect::<Vec<_>>().join(", "),
        body = (0..10)
            .map(|k| format!("    v3{k} = iadd v{k}, v20\n"))
            .collect::<String>(),
        results = list("v3", 10),
    );
    let many = define(&mut module, &clif);
    let args: Vec<_> = (0..10).map(|k| DataValue::I32(100 * k)).collect();
    let results = module.call_threads(many, &args, 8).unwrap();
    for (number, values) in results.iter().enumerate() {
        let expected: Vec<_> = (0..10).map(|k| DataValue::I32(100 * k + number as i32)).collect();
        assert_eq!(values, &expected, "thread {number}");
    }
}

/// Thread `v0` traps with a code, thread `v1` makes a misaligned load, thread `v2` never ends; all
/// others return.
const STUMBLE: &str = "
function %stumble(i32, i32, i32) -> i32 system_v {
    sig0 = () -> i32 system_v
    fn0 = %thread sig0
block0(v0: i32, v1: i32, v2: i32):
    v3 = call fn0()
    v4 = icmp eq v3, v0
    trapnz v4, user3
    v5 = icmp eq v3, v1
    brif v5, block1, block2
block1:
    v6 = iconst.i32 0x40000001
    v7 = load.i32 aligned v6
    return v7
block2:
    v8 = icmp eq v3, v2
    brif v8, block2, block3
block3:
    return v3
}";

#[test]
fn an_error_names_the_thread() {
    let mut module = device(1, true);
    let stumble = define(&mut module, STUMBLE);
    let mut attempt = |who: [i32; 3]| {
        module.set_step_limit(10_000);
        let error = module.call_threads(stumble, &who.map(DataValue::I32), 8).unwrap_err();
        (error.to_string(), error)
    };
    let (text, error) = attempt([5, 6, -1]);
    assert!(matches!(&error, RunError::Trap(report) if report.thread == 5), "{text}");
    assert_eq!(text, "trap: user3 in %stumble at inst2 (thread 5)");
    let (text, error) = attempt([-1, 6, -1]);
    let RunError::Thread { thread: 6, error } = error else {
        panic!("{text}")
    };
    assert!(matches!(*error, RunError::Misaligned(_)), "{text}");
    assert_eq!(text, "thread 6: misaligned access in %stumble at inst6");
    let (text, _) = attempt([-1, -1, 2]);
    assert!(
        text.starts_with("thread 2: no result after 10000 instructions in %stumble"),
        "{text}"
    );
    let results = module
        .call_threads(stumble, &[-1, -1, -1].map(DataValue::I32), 8)
        .unwrap();
    assert_eq!(results[7], [DataValue::I32(7)]);
}

#[test]
fn equal_waits_of_threads_are_one_entry() {
    let mut module = device(1, true);
    let meet = define(&mut module, MEET);
    let buffer = module.allocate(4 * 16, 64).unwrap();
    let args = |count| [DataValue::I32(buffer as i32), DataValue::I32(count)];
    let error = module.call_threads(meet, &args(4), 3).unwrap_err();
    let RunError::Deadlock(list) = &error else {
        panic!("{error}")
    };
    let waiting = |k| module.machine().waiting(k);
    for (number, stuck) in list.iter().enumerate() {
        let StuckThread {
            thread,
            barrier,
            arrived,
            expected,
            at,
        } = stuck;
        assert_eq!((*thread, *barrier, *arrived, *expected), (number, 42, 3, 4));
        // The routine is not the module's, so its location has no name.
        assert_eq!(at.function, None);
        assert!(matches!(waiting(number), Some(Waiting { id: 42, .. })));
    }
    assert_eq!(list.len(), 3);
    assert_eq!(
        error.to_string(),
        "the threads wait for each other; threads 0-2 wait at barrier 42, 3 of 4 arrived"
    );
    // The barrier is reset for the next call.
    assert!(module.call_threads(meet, &args(3), 3).is_ok());
    assert!(matches!(module.call(meet, &args(2)), Err(RunError::Stopped { .. })));
    assert!(module.call(meet, &args(1)).is_ok());
}

#[test]
fn the_number_of_threads_has_limits() {
    let mut module = device(2, true);
    let stumble = define(&mut module, STUMBLE);
    let args = [-1, -1, -1].map(DataValue::I32);
    for asked in [0, 17] {
        let error = module.call_threads(stumble, &args, asked).unwrap_err();
        assert!(matches!(error, RunError::Threads { available: 16, .. }), "{error}");
    }
    assert_eq!(
        module.call_threads(stumble, &args, 16).unwrap()[15],
        [DataValue::I32(15)]
    );
    assert!(matches!(
        module.call_threads_by_name("nobody", &args, 2),
        Err(RunError::NoSuchFunction(_))
    ));
    assert!(matches!(
        module.call_threads(stumble, &args[1..], 2),
        Err(RunError::Signature(_))
    ));
}

/// A call runs on the threads with the given numbers, also on one that is not the first.
#[test]
fn threads_are_chosen() {
    let mut module = device(2, true);
    let stumble = define(&mut module, STUMBLE);
    let args = [-1, -1, -1].map(DataValue::I32);
    for chosen in [&[3][..], &[0], &[1, 6], &[7, 8, 15]] {
        let results = module.call_on(stumble, &args, chosen).unwrap();
        let expected: Vec<_> = chosen
            .iter()
            .map(|&thread| vec![DataValue::I32(thread as i32)])
            .collect();
        assert_eq!(results, expected);
    }
    for wrong in [&[][..], &[16], &[2, usize::MAX]] {
        let error = module.call_on(stumble, &args, wrong).unwrap_err();
        assert!(matches!(error, RunError::Threads { available: 16, .. }), "{error}");
    }
}

/// Stores 5 and 6 to two cache lines and flushes the first.
const FLUSH: &str = "
function %publish(i32) system_v {
    sig0 = (i32) system_v
    fn0 = %flush sig0
block0(v0: i32):
    v1 = iconst.i32 5
    store v1, v0
    v2 = iconst.i32 6
    store v2, v0+64
    call fn0(v0)
    return
}";

#[test]
fn without_coherence_the_host_sees_what_was_flushed() {
    for coherent in [true, false] {
        let mut module = device(1, coherent);
        let publish = define(&mut module, FLUSH);
        let buffer = module.allocate(128, 64).unwrap();
        module
            .call_threads(publish, &[DataValue::I32(buffer as i32)], 4)
            .unwrap();
        assert_eq!(module.read_word(buffer), 5);
        assert_eq!(module.read_word(buffer + 64), if coherent { 6 } else { 0 });
    }
}
