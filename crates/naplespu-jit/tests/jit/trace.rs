//! Tests of back traces of stopped threads.

use super::*;
use naplespu_jit::{Frame, HostStop};

/// Three levels of calls, with lines of a text as source locations. The first argument selects the
/// action of the innermost one: a trap, a misaligned load, a division by zero, a barrier without
/// other threads, an infinite loop, or a call of the host.
const LEVELS: &str = "
function %first(i32, i32) -> i32 system_v {
    fn0 = %second(i32, i32) -> i32 system_v
block0(v0: i32, v1: i32):
@0010    v2 = call fn0(v0, v1)
@0011    v3 = iadd v2, v1
@0012    return v3
}
function %second(i32, i32) -> i32 system_v {
    ss0 = explicit_slot 200
    fn0 = %third(i32, i32) -> i32 system_v
block0(v0: i32, v1: i32):
@0020    v2 = stack_addr.i32 ss0
@0021    store v1, v2
@0022    v3 = call fn0(v0, v1)
@0023    v4 = load.i32 v2
@0024    v5 = iadd v3, v4
@0025    return v5
}
function %third(i32, i32) -> i32 system_v {
    fn0 = %__builtin_npu_barrier(i32, i32) system_v
    fn1 = %host(i32) -> i32 system_v
block0(v0: i32, v1: i32):
@0030    br_table v0, block7, [block1, block2, block3, block4, block5, block6]
block1:
@0031    trapz v1, heap_oob
@0032    return v1
block2:
@0033    v2 = iconst.i32 0x40000001
@0034    v3 = load.i32 aligned v2
@0035    return v3
block3:
@0036    v4 = uextend.i64 v1
@0037    v5 = udiv v4, v4
@0038    v6 = ireduce.i32 v5
@0039    return v6
block4:
@003a    v7 = iconst.i32 3
@003b    call fn0(v7, v7)
@003c    return v7
block5:
@003d    jump block5
block6:
@003e    v8 = call fn1(v1)
@003f    return v8
block7:
@0040    return v0
}";

fn levels(config: npu_sim::Config, level: &str) -> (NpuModule, FuncId) {
    let mut module = on_device(&[("opt_level", level)], config);
    let fault = |_: naplespu_jit::HostCall<'_>, _: &[DataValue]| Err(HostStop::Fault("no".to_owned()));
    module
        .define_host_function("host", &words(1, 1), Box::new(fault))
        .unwrap();
    let mut ids = Vec::new();
    for func in cranelift_reader::parse_functions(LEVELS).unwrap() {
        let name = func.name.to_string();
        let id = declare(
            &mut module,
            name.trim_start_matches('%'),
            Linkage::Export,
            &func.signature,
        );
        body(&mut module, id, func).unwrap();
        ids.push(id);
    }
    module.set_source_file(ids[0], "levels.clif");
    module.set_source_file(ids[2], "levels.clif");
    module.set_step_limit(10_000);
    (module, ids[0])
}

/// Returns the functions of a back trace with their source locations.
fn places(frames: &[Frame]) -> Vec<(String, Option<u32>)> {
    let place = |frame: &Frame| {
        (
            frame.function.clone().unwrap_or_default(),
            frame.srcloc.map(|at| at.bits()),
        )
    };
    frames.iter().map(place).collect()
}

fn at(function: &str, line: u32) -> (String, Option<u32>) {
    (function.to_owned(), Some(line))
}

#[test]
fn every_way_to_stop_in_the_third_call() {
    for level in ["none", "speed"] {
        for coherent in [true, false] {
            let config = npu_sim::Config {
                coherent,
                ..npu_sim::Config::testing(1)
            };
            for (what, line) in [(0, 0x31), (1, 0x34), (2, 0x37), (3, 0x3b), (4, 0x3d), (5, 0x3e)] {
                let (mut module, first) = levels(config, level);
                let error = call(&mut module, first, &[what, 0]).unwrap_err();
                let places = places(&module.back_trace(0));
                let known = places.iter().position(|(function, _)| function == "third");
                let known = known.unwrap_or_else(|| panic!("{level} {what}: {error}: {places:?}"));
                // The host function has a frame too.
                assert_eq!(known, usize::from(what == 5), "{level} {what}: {places:?}");
                let expected = [at("third", line), at("second", 0x22), at("first", 0x10)];
                assert_eq!(places[known..], expected, "{level} {what}: {error}");
                if what == 5 {
                    assert_eq!(places[0].0, "host");
                }
            }
        }
    }
}

#[test]
fn a_frame_says_all_that_is_known() {
    let (mut module, first) = levels(npu_sim::Config::default(), "none");
    let error = call(&mut module, first, &[0, 0]).unwrap_err();
    let frames = module.back_trace(0);
    for frame in &frames {
        let function = module.function_by_name(frame.function.as_deref().unwrap()).unwrap();
        let start = module.function_address(function).unwrap();
        assert_eq!(frame.address, start + frame.offset.unwrap());
        assert!(frame.inst.is_some());
    }
    let text: Vec<String> = frames.iter().map(|frame| frame.to_string()).collect();
    assert!(
        text[0].starts_with("0x0000") && text[0].contains(" in %third+0x"),
        "{text:?}"
    );
    assert!(text[0].ends_with(" at levels.clif:49"), "{text:?}");
    assert!(
        text[1].contains(" in %second+0x") && text[1].ends_with(" @0022"),
        "{text:?}"
    );
    assert!(text[2].ends_with(" at levels.clif:16"), "{text:?}");
    assert!(
        error.to_string().ends_with(" in %third at levels.clif:49 (thread 0)"),
        "{error}"
    );
    // Threads that returned or do not exist have no back trace.
    call(&mut module, first, &[0, 1]).unwrap();
    assert!(module.back_trace(0).is_empty() && module.back_trace(8).is_empty());
}

#[test]
fn routines_of_the_runtime_are_in_it() {
    let mut module = module();
    let thrower = define(
        &mut module,
        "function %thrower(i32) -> i32 system_v {
            fn0 = %npu_throw(i32, i32, i32) tail
        block0(v0: i32):
            call fn0(v0, v0, v0)
            return v0
        }",
    );
    call(&mut module, thrower, &[5]).unwrap_err();
    let places = places(&module.back_trace(0));
    assert_eq!(
        places,
        [("__npu_unwind".to_owned(), None), ("thrower".to_owned(), None)]
    );
}

#[test]
fn every_thread_has_one() {
    let (mut module, first) = levels(npu_sim::Config::testing(3), "speed");
    let error = module.call_threads(first, &[word(3), word(0)], 3).unwrap_err();
    assert!(matches!(error, RunError::Deadlock(_)), "{error}");
    for thread in 0..3 {
        let expected = [at("third", 0x3b), at("second", 0x22), at("first", 0x10)];
        assert_eq!(places(&module.back_trace(thread)), expected);
    }
}

#[test]
fn deep_and_damaged_stacks_end() {
    let mut module = module();
    let down = define(
        &mut module,
        "function %down(i32) -> i32 system_v {
            fn0 = %down(i32) -> i32 system_v
        block0(v0: i32):
            trapz v0, user1
            v1 = iconst.i32 -1
            v2 = iadd v0, v1
            v3 = call fn0(v2)
            v4 = iadd v3, v0
            return v4
        }",
    );
    call(&mut module, down, &[20]).unwrap_err();
    assert_eq!(module.back_trace(0).len(), 21);
    call(&mut module, down, &[5000]).unwrap_err();
    assert_eq!(module.back_trace(0).len(), 1000);
    // Overwrites its frame and the frames above, then traps.
    let smash = define(
        &mut module,
        "function %smash(i32) -> i32 system_v {
            ss0 = explicit_slot 4
            fn0 = %down(i32) -> i32 system_v
        block0(v0: i32):
            v1 = stack_addr.i32 ss0
            v9 = iconst.i32 0
            jump block1(v9)
        block1(v2: i32):
            v3 = iadd v1, v2
            store v0, v3
            v4 = iconst.i32 4
            v5 = iadd v2, v4
            v6 = iconst.i32 400
            v7 = icmp ult v5, v6
            brif v7, block1(v5), block2
        block2:
            v8 = call fn0(v9)
            return v8
        }",
    );
    for word in [0, -4, 0x1000, 0x4000_0000] {
        call(&mut module, smash, &[word]).unwrap_err();
        let frames = module.back_trace(0);
        assert!(
            frames.len() < 1000 && frames[0].function.as_deref() == Some("down"),
            "{frames:?}"
        );
    }
}
