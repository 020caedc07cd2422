//! Tests passes on VCode by text: the input is a CLIF function, the output is the stage after the
//! pass.

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_naplespu::passes::{Stage, StageRequest};
use cranelift_naplespu::{Isa, isa};

fn target() -> Isa {
    let mut flags = settings::builder();
    flags.set("opt_level", "speed").unwrap();
    let isa = isa::lookup_by_name("naplespu").unwrap();
    let isa = isa.finish(settings::Flags::new(flags)).unwrap();
    // All passes run on runtime routines.
    isa.for_runtime()
}

/// Returns the function before and after a pass: a list of instructions without indentation.
fn stages(clif: &str, before: Stage, after: Stage) -> [Vec<String>; 2] {
    let function = cranelift_reader::parse_functions(clif).unwrap().remove(0);
    let mut ctx = Context::for_function(function);
    let request = StageRequest::from_iter([before, after]);
    let code = target()
        .compile_with_stages(&mut ctx, &mut ControlPlane::default(), request)
        .unwrap();
    [before, after].map(|wanted| {
        let (_, text) = code.stages.iter().find(|(stage, _)| *stage == wanted).unwrap();
        let lines = text.lines().filter(|line| line.starts_with(' '));
        lines.map(|line| line.trim().to_owned()).collect()
    })
}

#[test]
fn dce_drops_words_that_nobody_needs() {
    // Only the low word of the product is used.
    let clif = "function %low(i32, i32, i32) -> i32 {
    block0(v0: i32, v1: i32, v2: i32):
        v3 = uextend.i64 v0
        v4 = iconcat v1, v2
        v5 = imul v3, v4
        v6 = ireduce.i32 v5
        return v6
    }";
    let [before, after] = stages(clif, Stage::Vcode, Stage::Dce);
    let all = [
        "args %0=s0, %1=s1, %2=s2",
        "mull_i32 %10, %0, %2",
        "mulhu_i32 %11, %0, %1",
        "add_i32 %12, %11, %10",
        "mull_i32 %13, %0, %1",
        "return %13=s0",
    ];
    assert_eq!(before, all);
    assert_eq!(after, [all[0], all[4], all[5]]);
}

#[test]
fn presched_starts_the_longest_chain_first() {
    let clif = "function %chains(i32, i32) -> i32 {
    block0(v0: i32, v1: i32):
        v2 = iadd v0, v1
        v3 = imul v0, v1
        v4 = imul v3, v3
        v5 = imul v4, v4
        v6 = isub v5, v2
        return v6
    }";
    let [before, after] = stages(clif, Stage::Dce, Stage::Presched);
    let written = [
        "args %0=s0, %1=s1",
        "add_i32 %11, %0, %1",
        "mull_i32 %10, %0, %1",
        "mull_i32 %9, %10, %10",
        "mull_i32 %8, %9, %9",
        "sub_i32 %7, %8, %11",
        "return %7=s0",
    ];
    assert_eq!(before, written);
    assert_eq!(after, [0, 2, 1, 3, 4, 5, 6].map(|line| written[line]));
}
