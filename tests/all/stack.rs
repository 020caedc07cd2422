//! Tests the stack limit and the stack probes of large frames: which accesses trap, and which
//! memory has been written before.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::TrapCode;
use cranelift_codegen::settings::{self, Configurable, Flags};
use cranelift_naplespu::isa;
use naplespu_jit::{Program, RunError};

/// The settings of every test: `opt_level` and `regalloc_algorithm`.
const SETTINGS: [(&str, &str); 2] = [("none", "single_pass"), ("speed", "backtracking")];

/// The stack pointer at the start of a call.
const TOP: u32 = 0xf000_0000;

fn program(text: &str, (opt_level, algorithm): (&str, &str), more: &[(&str, &str)]) -> Program {
    let mut flags = settings::builder();
    let common = [("opt_level", opt_level), ("regalloc_algorithm", algorithm)];
    for (name, value) in common.iter().chain(more) {
        flags.set(name, value).expect("a flag");
    }
    let isa = isa::lookup_by_name("naplespu")
        .expect("the target")
        .finish(Flags::new(flags))
        .expect("the target");
    // Memory is zero, so that the tests can find writes.
    let config = npu_sim::Config {
        strict: true,
        ..npu_sim::Config::default()
    };
    let mut program = Program::with_config(isa, config);
    for function in cranelift_reader::parse_functions(text).expect("CLIF") {
        program.define(&function).expect("code");
    }
    program
}

fn call(program: &mut Program, name: &str, args: &[i32]) -> Result<Vec<DataValue>, RunError> {
    let args: Vec<DataValue> = args.iter().copied().map(DataValue::I32).collect();
    program.call(name, &args)
}

fn is_overflow(result: &Result<Vec<DataValue>, RunError>) -> bool {
    matches!(result, Err(RunError::Trap(report)) if report.code == Some(TrapCode::STACK_OVERFLOW))
}

/// `%try(room)` calls `%limited` with a limit `room` bytes below its stack pointer, and
/// `%try_at(limit)` calls it with this limit. `%limited` has a stack slot of the given size, writes
/// it and calls another function.
fn limited(size: u32, limit: &str) -> String {
    format!(
        "
        function %nothing() {{
        block0:
            return
        }}
        function %limited(i32 vmctx, i32) -> i32 {{
            {limit}
            fn0 = %nothing()
            ss0 = explicit_slot {size}
        block0(v0: i32, v1: i32):
            v2 = stack_addr.i32 ss0
            store v1, v2
            call fn0()
            v3 = load.i32 v2
            v4 = iadd v3, v1
            return v4
        }}
        function %try_at(i32) -> i32 {{
            fn0 = colocated %limited(i32 vmctx, i32) -> i32
            ss0 = explicit_slot 8
        block0(v0: i32):
            v1 = stack_addr.i32 ss0
            store v0, v1+4
            store v1, v1
            v2 = iconst.i32 21
            v3 = call fn0(v1, v2)
            return v3
        }}
        function %try(i32) -> i32 {{
            fn0 = colocated %limited(i32 vmctx, i32) -> i32
            ss0 = explicit_slot 8
        block0(v0: i32):
            v1 = stack_addr.i32 ss0
            v4 = get_stack_pointer.i32
            v5 = isub v4, v0
            store v5, v1+4
            store v1, v1
            v2 = iconst.i32 21
            v3 = call fn0(v1, v2)
            return v3
        }}"
    )
}

/// Different computations of the word at offset 4 from the context pointer.
const LIMITS: [&str; 2] = [
    "gv0 = vmctx gv1 = load.i32 notrap aligned gv0+4 stack_limit = gv1",
    "gv0 = vmctx
     gv1 = load.i32 notrap aligned gv0
     gv2 = iadd_imm.i32 gv1, -1000
     gv3 = load.i32 notrap aligned gv2+1004
     stack_limit = gv3",
];

#[test]
fn a_frame_that_reaches_below_the_limit_traps() {
    for settings in SETTINGS {
        for limit in LIMITS {
            for size in [4, 200, 1000, 70_000, 20_000_000] {
                let mut program = program(&limited(size, limit), settings, &[]);
                let frame = program.code("limited").expect("code").frame.size.cast_signed();
                for room in [frame, frame + 1, i32::MAX] {
                    let result = call(&mut program, "try", &[room]);
                    assert_eq!(result.expect("room enough"), [DataValue::I32(42)]);
                }
                for room in [frame - 1, frame / 2, 0, -4, -100_000] {
                    let result = call(&mut program, "try", &[room]);
                    assert!(is_overflow(&result), "room {room}, frame {frame}: {result:?}");
                }
            }
        }
    }
}

#[test]
fn limits_at_the_ends_of_memory() {
    for settings in SETTINGS {
        let mut program = program(&limited(1 << 29, LIMITS[0]), settings, &[]);
        let result = call(&mut program, "try_at", &[0]);
        assert_eq!(result.expect("room enough"), [DataValue::I32(42)]);
        // The sum of limit and size would wrap around.
        for limit in [-1, -64, -(1 << 29)] {
            assert!(is_overflow(&call(&mut program, "try_at", &[limit])));
        }
    }
}

#[test]
fn nothing_is_written_before_the_limit_is_checked() {
    for settings in SETTINGS {
        let probes = [("enable_probestack", "true"), ("probestack_strategy", "inline")];
        let mut program = program(&limited(100_000, LIMITS[0]), settings, &probes);
        let frame = program.code("limited").expect("code").frame.size;
        assert!(is_overflow(&call(&mut program, "try", &[8])));
        let sp = TOP - program.code("try").expect("code").frame.size;
        let dirty: Vec<u32> = (sp - frame..sp)
            .step_by(4)
            .filter(|&address| program.read_word(address).unwrap() != 0)
            .collect();
        assert!(dirty.is_empty(), "written: {dirty:x?}");
    }
}

#[test]
fn leaves_without_a_frame_are_not_checked() {
    let text = "
        function %leaf(i32 vmctx) -> i32 {
            gv0 = vmctx
            stack_limit = gv0
        block0(v0: i32):
            return v0
        }";
    for settings in SETTINGS {
        let result = call(&mut program(text, settings, &[]), "leaf", &[-1]);
        assert_eq!(result.expect("no check"), [DataValue::I32(-1)]);
    }
}

#[test]
fn a_limit_checked_in_a_chain_of_calls() {
    // Every recursion level uses some of the stack until the limit is reached.
    let text = "
        function %down(i32 vmctx, i32) -> i32 {
            gv0 = vmctx
            stack_limit = gv0
            fn0 = colocated %down(i32 vmctx, i32) -> i32
            ss0 = explicit_slot 100
        block0(v0: i32, v1: i32):
            brif v1, block1, block2
        block1:
            v2 = iconst.i32 -1
            v3 = iadd v1, v2
            v4 = call fn0(v0, v3)
            v5 = iadd v4, v1
            return v5
        block2:
            return v1
        }";
    for settings in SETTINGS {
        let mut program = program(text, settings, &[]);
        let frame = program.code("down").expect("code").frame.size.cast_signed();
        let top = TOP.cast_signed();
        let room = |levels: i32| top - levels * frame;
        let result = call(&mut program, "down", &[room(100), 99]);
        assert_eq!(result.expect("room enough"), [DataValue::I32(4950)]);
        assert!(is_overflow(&call(&mut program, "down", &[room(100), 100])));
        assert!(is_overflow(&call(&mut program, "down", &[room(100) + 1, 99])));
    }
}

#[test]
fn every_page_of_a_frame_is_touched() {
    for settings in SETTINGS {
        for (page_log2, size) in [
            (12, 4096),
            (12, 16_384),
            (12, 100_000),
            (6, 640),
            (0, 256),
            (16, 300_000),
            (31, 4096),
        ] {
            let text = format!(
                "
                function %big() -> i32 {{
                    ss0 = explicit_slot {size}
                block0:
                    v0 = stack_addr.i32 ss0
                    return v0
                }}"
            );
            let log2 = page_log2.to_string();
            let probes = [
                ("enable_probestack", "true"),
                ("probestack_strategy", "inline"),
                ("probestack_size_log2", &log2),
            ];
            let mut program = program(&text, settings, &probes);
            let frame = program.code("big").expect("code").frame.size;
            let result = call(&mut program, "big", &[]).expect("a result");
            let [DataValue::I32(bottom)] = result[..] else {
                panic!("{result:?}")
            };
            let bottom = bottom.cast_unsigned();
            let page = (1u32 << page_log2).max(64);
            let touched: Vec<u32> = (bottom..bottom + frame)
                .step_by(4)
                .filter(|&address| program.read_word(address).unwrap() != 0)
                .collect();
            let expected: Vec<u32> = (1..=frame / page).rev().map(|n| bottom + frame - n * page).collect();
            assert_eq!(touched, expected, "page {page}, frame {frame}");
        }
    }
}
