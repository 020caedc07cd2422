//! Tests value labels: they do not change the code, and their locations contain the values.
//!
//! In a function without loops, each value is computed once. Therefore, all locations of a value
//! contain the same number at every instruction of a run.

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{Function, Value, ValueLabel, ValueLabelAssignments, ValueLabelStart};
use cranelift_codegen::settings::{self, Configurable, Flags};
use cranelift_naplespu::code::LabelLoc;
use cranelift_naplespu::{CompiledCode, isa};
use npu_mc::{Reg, SReg};
use npu_sim::{Config, Machine, Stop};
use std::collections::HashMap;
use std::fmt::Write;

const CODE: u32 = 0x1000;
const RETURN_TO: u32 = 0x400;
const STACK: u32 = 0x10_0000;

/// Returns a function with a branch whose two sides compute chains of operations on a growing
/// number of values. All values are live at the end.
fn text(seed: u64, steps: u32, convention: &str) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut pick = |below: u32| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        u32::try_from(state >> 33).expect("31 bits") % below
    };
    let mut out = format!(
        "function %f(i32, i32, i32, i32) -> i32 {convention} {{
    ss0 = explicit_slot 16
block0(v0: i32, v1: i32, v2: i32, v3: i32):\n"
    );
    let mut next = 4;
    let mut half = |out: &mut String, next: &mut u32| {
        for _ in 0..steps {
            let (a, b) = (pick(*next), pick(*next));
            let _ = match pick(9) {
                0 => writeln!(out, "    v{next} = imul v{a}, v{b}"),
                1 => writeln!(out, "    v{next} = isub v{a}, v{b}"),
                2 => writeln!(out, "    v{next} = bxor v{a}, v{b}"),
                3 => writeln!(out, "    v{next} = smax v{a}, v{b}"),
                4 => writeln!(out, "    v{next} = select v{a}, v{b}, v{}", pick(*next)),
                5 => writeln!(out, "    v{next} = ushr v{a}, v{b}"),
                6 => writeln!(out, "    v{next} = clz v{a}"),
                _ => writeln!(out, "    v{next} = iadd v{a}, v{b}"),
            };
            *next += 1;
        }
    };
    half(&mut out, &mut next);
    let _ = writeln!(
        out,
        "    brif v{}, block1(v{}), block2\nblock1(v{next}: i32):",
        next - 1,
        next - 2
    );
    next += 1;
    half(&mut out, &mut next);
    fold(&mut out, &mut next);
    let _ = writeln!(out, "block2:\n    v{next} = stack_addr.i32 ss0\n    store v0, v{next}");
    let _ = writeln!(
        out,
        "    v{} = load.i32 v{next}\n    return v{}\n}}",
        next + 1,
        next + 1
    );
    out
}

/// Adds up all values so far and returns the sum.
fn fold(out: &mut String, next: &mut u32) {
    let count = *next;
    let mut sum = 0;
    for value in 1..count {
        let _ = writeln!(out, "    v{next} = iadd v{sum}, v{value}");
        sum = *next;
        *next += 1;
    }
    let _ = writeln!(out, "    return v{sum}");
}

fn labelled(mut function: Function) -> Function {
    function.dfg.collect_debug_info();
    let values: Vec<Value> = function.dfg.values().collect();
    if let Some(labels) = &mut function.dfg.values_labels {
        for value in values {
            let start = ValueLabelStart {
                from: Default::default(),
                label: ValueLabel::from_u32(value.as_u32()),
            };
            labels.insert(value, ValueLabelAssignments::Starts(vec![start]));
        }
    }
    function
}

fn compile(function: Function, opt_level: &str, algorithm: &str) -> CompiledCode {
    let mut flags = settings::builder();
    for (name, value) in [("opt_level", opt_level), ("regalloc_algorithm", algorithm)] {
        flags.set(name, value).expect("a flag");
    }
    let isa = isa::lookup_by_name("naplespu")
        .expect("the target")
        .finish(Flags::new(flags))
        .expect("the target");
    isa.compile(&mut Context::for_function(function), &mut ControlPlane::default())
        .expect("code")
}

/// Runs the function and reads every location before each instruction. Returns the number of reads.
fn observe(code: &CompiledCode, args: [u32; 4]) -> usize {
    let mut machine = Machine::new(Config::testing(1));
    machine.memory_mut().write(CODE, &code.bytes).expect("memory");
    machine.add_breakpoint(RETURN_TO);
    let thread = machine.thread_mut(0);
    thread.set_mask(u16::MAX);
    thread.set_pc(CODE);
    thread.set_scalar(SReg::SP, STACK);
    thread.set_scalar(SReg::RA, RETURN_TO);
    for (number, arg) in (0..).zip(args) {
        thread.set_scalar(SReg::new(number).expect("a register"), arg);
    }
    let mut seen: HashMap<ValueLabel, (u32, u32)> = HashMap::new();
    let mut looks = 0;
    for _ in 0..100_000 {
        if machine.thread(0).pc() == RETURN_TO {
            return looks;
        }
        let offset = machine.thread(0).pc() - CODE;
        for (label, ranges) in &code.value_labels_ranges {
            for range in ranges.iter().filter(|r| (r.start..r.end).contains(&offset)) {
                let number = match range.loc {
                    LabelLoc::Reg(Reg::S(reg)) => machine.thread(0).scalar(reg),
                    LabelLoc::Stack(at) => {
                        let sp = machine.thread(0).scalar(SReg::SP);
                        machine.memory().read_u32(sp.wrapping_add_signed(at))
                    }
                    other => panic!("a scalar in {other:?}"),
                };
                looks += 1;
                let (first, place) = *seen.entry(*label).or_insert((number, offset));
                assert_eq!(
                    number,
                    first,
                    "v{} is {first:#x} at {place:#x} and {number:#x} at {offset:#x}; {ranges:?}\n{}",
                    label.as_u32(),
                    code.disassemble(None)
                );
            }
        }
        let stop = machine.run(0, 1);
        assert!(matches!(stop, Stop::StepLimit | Stop::Breakpoint { .. }), "{stop}");
    }
    panic!("no end")
}

#[test]
fn labels_change_nothing_and_tell_the_truth() {
    for (seed, steps) in (1..40).zip([3, 10, 25, 40].into_iter().cycle()) {
        // The runtime's convention has few registers, and a separate pass distributes values over
        // them.
        let convention = if seed % 3 == 0 { "probestack" } else { "system_v" };
        let function = cranelift_reader::parse_functions(&text(seed, steps, convention))
            .expect("CLIF")
            .remove(0);
        for (opt_level, algorithm) in [
            ("none", "backtracking"),
            ("speed", "backtracking"),
            ("speed", "single_pass"),
        ] {
            let plain = compile(function.clone(), opt_level, algorithm);
            let code = compile(labelled(function.clone()), opt_level, algorithm);
            assert_eq!(plain.bytes, code.bytes, "{opt_level} {algorithm}, seed {seed}");
            assert!(plain.value_labels_ranges.is_empty());
            let args = [0x1234_5678, 3, 0xffff_fff0, u32::try_from(seed).expect("small")];
            let looks = observe(&code, args) + observe(&code, [0; 4]);
            if algorithm == "backtracking" {
                // Most values are live for a long time, so many locations must have been read.
                assert!(looks > code.bytes.len() / 4, "{looks} looks, seed {seed}");
            }
        }
    }
}
