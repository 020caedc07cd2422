//! Cycles of kernels on lanes beside one work-item at a time.

use crate::kernels::parse;
use crate::run::{Case, options, run};
use naplespu_spmd::Options;

/// `y[i] = 1.5 * x[i] + y[i]` for `i < n`, with the checks of a front end before each access.
const SAXPY: &str = "function %saxpy(i32, i32) system_v {
    fn0 = %__builtin_npu_workgroup_id_x() -> i32
    fn1 = %__builtin_npu_local_id_x() -> i32
block0(v0: i32, v1: i32):
    v2 = call fn0()
    v3 = call fn1()
    v4 = iconst.i32 64
    v5 = imul v2, v4
    v6 = iadd v5, v3
    v7 = icmp ult v6, v1
    brif v7, block1, block2
block1:
    v8 = iconst.i32 2
    v9 = ishl v6, v8
    v10 = iadd v0, v9
    v11 = load.f32 notrap aligned v10
    v12 = load.f32 notrap aligned v10+4096
    v13 = f32const 0x1.8p0
    v14 = fmul v11, v13
    v15 = fadd v12, v14
    store notrap aligned v15, v10+4096
    jump block2
block2:
    return
}";

#[test]
fn sixteen_lanes_take_at_most_a_sixth_of_the_cycles() {
    let functions = parse(SAXPY);
    let memory: Vec<u32> = (0..2048).map(|index| (index as f32).to_bits()).collect();
    let mut cycles = Vec::new();
    for (lanes, threads) in [(1, 1), (16, 1), (32, 1), (64, 1), (16, 8), (64, 8)] {
        let case = Case {
            functions: &functions,
            options: Options {
                lanes,
                ..options(64, lanes)
            },
            counts: [16, 1, 1],
            threads,
            memory: memory.clone(),
            numbers: &[1000],
            opt_level: "speed",
            timed: true,
        };
        let done = run(case).unwrap_or_else(|error| panic!("{error}"));
        println!("{lanes} lanes, {threads} threads: {} cycles", done.cycles);
        cycles.push(done.cycles);
    }
    assert!(cycles[0] >= 6 * cycles[1], "{cycles:?}");
}
