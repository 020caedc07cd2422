//! Tests of exceptions between functions that are defined at different times, and on several
//! threads.

use super::*;
use naplespu_jit::RunError;
use npu_sim::Schedule;

/// Calls itself `v0` times, with a value in a callee-saved register each time, and throws tag `v1`.
const DEEP: &str = "
function %deep(i32, i32, i32) -> i32 system_v {
    sig0 = (i32, i32, i32) -> i32 system_v
    fn0 = %deep sig0
    sig1 = (i32, i32, i32) tail
    fn1 = %npu_throw sig1
block0(v0: i32, v1: i32, v2: i32):
    brif v0, block1, block2
block1:
    v3 = iconst.i32 1
    v4 = isub v0, v3
    v5 = iadd v2, v0
    v6 = call fn0(v4, v1, v5)
    v7 = iadd v6, v5
    return v7
block2:
    call fn1(v1, v2, v1)
    trap user1
}";

/// A loop with `v0` iterations. Each iteration catches an exception thrown at a depth of the
/// remaining iterations.
fn iterations(name: &str, tag: u32) -> String {
    format!(
        "function %{name}(i32, i32) -> i32 system_v {{
    sig0 = (i32, i32, i32) -> i32 system_v
    fn0 = %deep sig0
block0(v0: i32, v1: i32):
    v2 = iconst.i32 1
    v3 = iconst.i32 0
    v20 = splat.i32x16 v0
    jump block1(v0, v3)
block1(v4: i32, v5: i32):
    v6 = band v4, v2
    v7 = iconst.i32 {tag}
    v8 = iadd v6, v7
    try_call fn0(v4, v8, v1), sig0, block2(ret0), [ tag{tag}: block2(exn0), default: block2(exn1) ]
block2(v9: i32):
    v10 = iadd v5, v9
    v11 = isub v4, v2
    brif v11, block1(v11, v10), block3
block3:
    v12 = extractlane v20, 11
    v13 = iadd v10, v12
    return v13
}}"
    )
}

/// Returns its result.
fn expected(iterations: i32, start: i32, tag: i32) -> i32 {
    let iteration = |left: i32| match left % 2 {
        // Thrown with the sum of the depths.
        0 => start + left * (left + 1) / 2,
        _ => tag + 1,
    };
    (1..=iterations).map(iteration).sum::<i32>() + iterations
}

#[test]
fn a_function_that_is_defined_later_catches() {
    let mut module = module();
    let first = define(&mut module, &iterations("first", 3));
    define(&mut module, DEEP);
    let args = [5, 100].map(DataValue::I32);
    assert_eq!(
        module.call(first, &args).unwrap(),
        [DataValue::I32(expected(5, 100, 3))]
    );
    let second = define(&mut module, &iterations("second", 8));
    assert_eq!(
        module.call(second, &args).unwrap(),
        [DataValue::I32(expected(5, 100, 8))]
    );
    assert_eq!(
        module.call(first, &args).unwrap(),
        [DataValue::I32(expected(5, 100, 3))]
    );
}

#[test]
fn a_function_that_is_defined_anew_catches() {
    let mut module = module();
    let first = define(&mut module, &iterations("first", 3));
    define(&mut module, DEEP);
    let args = [5, 100].map(DataValue::I32);
    let mut room = Vec::new();
    for tag in [3, 8, 3, 8] {
        let mut ctx = Context::for_function(parse(&iterations("first", tag as u32)));
        module.redefine_function(first, &mut ctx).unwrap();
        let results = module.call(first, &args).unwrap();
        assert_eq!(results, [DataValue::I32(expected(5, 100, tag))]);
        // The unwind table is rewritten each time, and the old one is freed.
        let address = module.allocate(4, 4).unwrap();
        module.free(address).unwrap();
        room.push(address);
    }
    assert_eq!(room[0], room[3]);
}

#[test]
fn what_nobody_catches_stops_the_thread() {
    let mut module = module();
    let deep = define(&mut module, DEEP);
    match module.call(deep, &[3, 4, 5].map(DataValue::I32)) {
        Err(RunError::Trap(trap)) => assert_eq!(trap.code.map(|code| code.to_string()), Some("user250".to_owned())),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_thread_unwinds_its_own_stack() {
    for algorithm in ["backtracking", "single_pass"] {
        let mut module = with_flags(&[("opt_level", "speed"), ("regalloc_algorithm", algorithm)]);
        define(&mut module, DEEP);
        let iterations = define(&mut module, &iterations("iterations", 5));
        for schedule in [Schedule::default(), Schedule::round_robin(1), Schedule::random(3, 20)] {
            module.set_schedule(schedule);
            let results = module
                .call_threads(iterations, &[9, 1000].map(DataValue::I32), 8)
                .unwrap();
            assert_eq!(results, vec![vec![DataValue::I32(expected(9, 1000, 5))]; 8]);
        }
    }
}
