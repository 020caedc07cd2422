//! Kernels written by hand, one for each construct of the pass.

use crate::run::{Case, options, run};
use cranelift_codegen::ir::Function;
use cranelift_reader::parse_functions;
use naplespu_spmd::Options;

pub fn parse(text: &str) -> Vec<Function> {
    parse_functions(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Checks that a kernel computes `expected` with every number of lanes and threads.
fn check(text: &str, sizes: Options, memory: &[u32], numbers: &[i32], expected: impl Fn(&mut [u32])) {
    let functions = parse(text);
    let mut right = memory.to_vec();
    expected(&mut right);
    for (lanes, threads, opt_level) in [
        (1, 8, "speed"),
        (16, 1, "speed"),
        (16, 8, "none"),
        (32, 4, "speed"),
        (64, 2, "speed"),
        (128, 1, "speed"),
    ] {
        let options = Options { lanes, ..sizes.clone() };
        if naplespu_spmd::needs_group(&functions[0], &options) && options.subgroups() as usize > threads {
            continue;
        }
        let case = Case {
            functions: &functions,
            options,
            counts: [3, 1, 1],
            threads,
            memory: memory.to_vec(),
            numbers,
            opt_level,
            timed: true,
        };
        let done = run(case).unwrap_or_else(|error| panic!("{lanes} lanes, {threads} threads: {error}"));
        assert_eq!(done.memory, right, "{lanes} lanes, {threads} threads, {opt_level}");
    }
}

/// Declarations that kernels start with.
const GLOBAL_INDEX: &str = "
    fn0 = %__builtin_npu_workgroup_id_x() -> i32
    fn1 = %__builtin_npu_local_id_x() -> i32
block0(v0: i32, v1: i32):
    v2 = call fn0()
    v3 = call fn1()
    v104 = iconst.i32 48
    v4 = imul v2, v104
    v5 = iadd v4, v3
    v6 = iconst.i32 2
    v7 = ishl v5, v6
    v8 = iadd v0, v7
";

fn kernel(body: &str) -> String {
    format!("function %kernel(i32, i32) system_v {{{GLOBAL_INDEX}{body}}}")
}

fn memory() -> Vec<u32> {
    (0..256_u32).map(|index| index.wrapping_mul(0x9e37_79b9) >> 3).collect()
}

#[test]
fn a_conditional_store_writes_only_active_lanes() {
    let text = kernel(
        "
    v9 = load.i32 notrap aligned v8
    v10 = iconst.i32 1
    v11 = band v9, v10
    brif v11, block1, block2
block1:
    v12 = iadd v9, v5
    store notrap aligned v12, v8
    jump block2
block2:
    return
",
    );
    check(&text, options(48, 1), &memory(), &[0], |memory| {
        for (index, value) in memory[..144].iter_mut().enumerate() {
            if *value & 1 != 0 {
                *value = value.wrapping_add(index as u32);
            }
        }
    });
}

#[test]
fn lanes_leave_a_loop_in_different_iterations() {
    // Collatz steps: a divergent loop with a divergent branch and a uniform counter.
    let text = kernel(
        "
    v9 = load.i32 notrap aligned v8
    v10 = iconst.i32 0xfff
    v11 = band v9, v10
    v12 = iconst.i32 0
    jump block1(v11, v12)
block1(v13: i32, v14: i32):
    v15 = iconst.i32 2
    v16 = icmp ult v13, v15
    brif v16, block5, block2
block2:
    v17 = iconst.i32 1
    v18 = band v13, v17
    brif v18, block3, block4
block3:
    v1019 = iconst.i32 3
    v19 = imul v13, v1019
    v20 = iadd v19, v17
    v30 = iadd v14, v17
    jump block1(v20, v30)
block4:
    v21 = ushr v13, v17
    v31 = iadd v14, v17
    jump block1(v21, v31)
block5:
    store notrap aligned v14, v8
    return
",
    );
    check(&text, options(48, 1), &memory(), &[0], |memory| {
        for value in &mut memory[..144] {
            let (mut number, mut steps) = (*value & 0xfff, 0);
            while number >= 2 {
                number = if number & 1 != 0 { 3 * number + 1 } else { number / 2 };
                steps += 1;
            }
            *value = steps;
        }
    });
}

/// Some lanes leave a loop early, and the others leave it together by a uniform branch.
#[test]
fn lanes_that_left_a_loop_wait_for_its_uniform_exit() {
    let text = kernel(
        "
    v9 = load.i32 notrap aligned v8
    v10 = iconst.i32 0x3ff
    v11 = band v9, v10
    v12 = iconst.i32 0
    v13 = iconst.i32 100
    v14 = iconst.i32 700
    v15 = iconst.i32 4
    v16 = iconst.i32 1
    jump block1(v12, v11)
block1(v20: i32, v21: i32):
    v22 = icmp ult v20, v15
    brif v22, block2, block5(v21)
block2:
    v23 = iadd v21, v13
    v24 = icmp ugt v23, v14
    brif v24, block4, block3
block3:
    v25 = iadd v20, v16
    jump block1(v25, v23)
block4:
    v26 = imul v23, v15
    jump block5(v26)
block5(v27: i32):
    store notrap aligned v27, v8
    return
",
    );
    check(&text, options(48, 1), &memory(), &[0], |memory| {
        for value in &mut memory[..144] {
            let mut sum = *value & 0x3ff;
            for _ in 0..4 {
                sum += 100;
                if sum > 700 {
                    sum *= 4;
                    break;
                }
            }
            *value = sum;
        }
    });
}

/// Some lanes leave a loop in its middle. In the last iteration all others leave at its start, and
/// its rest is jumped over.
#[test]
fn lanes_that_left_a_loop_wait_for_code_that_is_jumped_over() {
    let text = kernel(
        "
    v9 = load.i32 notrap aligned v8
    v10 = iconst.i32 31
    v11 = band v9, v10
    v12 = iconst.i32 2
    v13 = iconst.i32 3
    v14 = iconst.i32 5
    v15 = iconst.i32 7
    v16 = iconst.i32 1
    v17 = icmp eq v11, v15
    brif v17, block8, block1(v12)
block1(v20: i32):
    v22 = icmp ult v20, v11
    brif v22, block2, block5
block2:
    v23 = band v11, v13
    v24 = icmp eq v23, v16
    brif v24, block4, block3
block3:
    v25 = iadd v20, v16
    jump block1(v25)
block4:
    jump block6(v14)
block5:
    jump block6(v15)
block6(v27: i32):
    store notrap aligned v27, v8
    jump block8
block8:
    return
",
    );
    check(&text, options(48, 1), &memory(), &[0], |memory| {
        for value in &mut memory[..144] {
            let number = *value & 31;
            if number != 7 {
                *value = if number > 2 && number & 3 == 1 { 5 } else { 7 };
            }
        }
    });
}

#[test]
fn lanes_that_left_a_loop_go_on_after_a_uniform_exit() {
    // The first 20 lanes leave one by one, the others together at the end of the loop.
    let text = kernel(
        "
    v9 = iconst.i32 0
    v10 = iconst.i32 20
    jump block1(v9)
block1(v11: i32):
    v12 = icmp ult v11, v10
    brif v12, block2, block4
block2:
    v13 = icmp eq v11, v3
    brif v13, block3, block5
block3:
    store notrap aligned v11, v8
    return
block4:
    v14 = iconst.i32 100
    store notrap aligned v14, v8
    return
block5:
    v15 = iconst.i32 1
    v16 = iadd v11, v15
    jump block1(v16)
",
    );
    check(&text, options(48, 1), &memory(), &[0], |memory| {
        for (index, value) in memory[..144].iter_mut().enumerate() {
            *value = match index as u32 % 48 {
                lane @ ..20 => lane,
                _ => 100,
            };
        }
    });
}

#[test]
fn a_uniform_loop_stays_scalar_in_divergent_code() {
    let text = kernel(
        "
    v9 = iconst.i32 100
    v10 = icmp ult v5, v9
    v11 = iconst.i32 0
    brif v10, block1(v11, v11), block3
block1(v12: i32, v13: i32):
    v14 = iconst.i32 2
    v15 = ishl v12, v14
    v16 = iadd v0, v15
    v17 = load.i32 notrap aligned v16+1000
    v18 = imul v17, v5
    v19 = iadd v13, v18
    v1020 = iconst.i32 1
    v20 = iadd v12, v1020
    v21 = icmp ult v20, v1
    brif v21, block1(v20, v19), block2
block2:
    store notrap aligned v19, v8
    jump block3
block3:
    return
",
    );
    check(&text, options(48, 1), &memory(), &[5], |memory| {
        let sum = memory[250..255]
            .iter()
            .fold(0, |sum: u32, &value| sum.wrapping_add(value));
        for (index, value) in memory[..100].iter_mut().enumerate() {
            *value = sum.wrapping_mul(index as u32);
        }
    });
}

#[test]
fn indirect_accesses_go_lane_by_lane() {
    let text = kernel(
        "
    v9 = load.i32 notrap aligned v8
    v10 = iconst.i32 63
    v11 = band v9, v10
    v12 = ishl v11, v6
    v13 = iadd v0, v12
    v14 = load.i32 notrap aligned v13+576
    v15 = iconst.i32 7
    v16 = icmp ugt v11, v15
    brif v16, block1, block2
block1:
    v17 = iadd v14, v15
    store notrap aligned v17, v8
    return
block2:
    v18 = udiv v5, v15
    store notrap aligned v18, v8
    return
",
    );
    check(&text, options(48, 1), &memory(), &[0], |memory| {
        for index in 0..144 {
            let number = memory[index] & 63;
            memory[index] = if number > 7 {
                memory[144 + number as usize].wrapping_add(7)
            } else {
                index as u32 / 7
            };
        }
    });
}

#[test]
fn every_lane_has_its_own_stack_slots() {
    let text = format!(
        "function %kernel(i32, i32) system_v {{
    ss0 = explicit_slot 32
{GLOBAL_INDEX}
    v9 = load.i32 notrap aligned v8
    v10 = stack_addr.i32 ss0
    v11 = iconst.i32 0
    jump block1(v11)
block1(v12: i32):
    v13 = ishl v12, v6
    v14 = iadd v10, v13
    v15 = iadd v9, v12
    store notrap aligned v15, v14
    v1016 = iconst.i32 1
    v16 = iadd v12, v1016
    v17 = iconst.i32 8
    v18 = icmp ult v16, v17
    brif v18, block1(v16), block2
block2:
    v19 = iconst.i32 7
    v20 = band v9, v19
    v21 = ishl v20, v6
    v22 = iadd v10, v21
    v23 = load.i32 notrap aligned v22
    store notrap aligned v23, v8
    return
}}"
    );
    check(&text, options(48, 1), &memory(), &[0], |memory| {
        for value in &mut memory[..144] {
            *value = value.wrapping_add(*value & 7);
        }
    });
}

#[test]
fn atomic_operations_count_every_active_lane() {
    let text = kernel(
        "
    v9 = load.i32 notrap aligned v8
    v10 = iconst.i32 3
    v11 = band v9, v10
    v12 = ishl v11, v6
    v13 = iadd v0, v12
    v1014 = iconst.i32 800
    v14 = iadd v13, v1014
    v15 = iconst.i32 1
    v16 = atomic_rmw.i32 aligned add v14, v15
    return
",
    );
    check(&text, options(48, 1), &memory(), &[0], |memory| {
        for index in 0..144 {
            memory[200 + (memory[index] & 3) as usize] += 1;
        }
    });
}

#[test]
fn workgroup_memory_is_zeroed_and_shared_after_a_barrier() {
    let text = format!(
        "function %kernel(i32, i32) system_v {{
    region0 = 68 \"scratchpad\"
    fn2 = %__builtin_npu_workgroup_barrier()
{GLOBAL_INDEX}
    v9 = load.i32 notrap aligned v8
    v10 = ishl v3, v6
    v11 = load.i32 notrap aligned region0 v10
    v12 = iadd v9, v11
    store notrap aligned region0 v12, v10
    call fn2()
    v13 = iconst.i32 47
    v14 = isub v13, v3
    v15 = ishl v14, v6
    v16 = load.i32 notrap aligned region0 v15
    store notrap aligned v16, v8
    return
}}"
    );
    let sizes = Options {
        workgroup_bytes: 192,
        ..options(48, 1)
    };
    check(&text, sizes, &memory(), &[0], |memory| {
        for group in memory[..144].chunks_mut(48) {
            group.reverse();
        }
    });
}

#[test]
fn pure_callees_have_vector_versions() {
    let text = format!(
        "function %kernel(i32, i32) system_v {{
    fn2 = %triple(f32, i32) -> f32
{GLOBAL_INDEX}
    v9 = load.i32 notrap aligned v8
    v10 = iconst.i32 255
    v11 = band v9, v10
    v12 = fcvt_from_uint.f32 v11
    v13 = call fn2(v12, v5)
    store notrap aligned v13, v8
    return
}}
function %triple(f32, i32) -> f32 system_v {{
block0(v0: f32, v1: i32):
    v2 = iconst.i32 1
    v3 = band v1, v2
    brif v3, block1, block2
block1:
    v4 = f32const 0x1.8p1
    v5 = fmul v0, v4
    return v5
block2:
    v6 = fneg v0
    return v6
}}"
    );
    check(&text, options(48, 1), &memory(), &[0], |memory| {
        for (index, value) in memory[..144].iter_mut().enumerate() {
            let number = (*value & 255) as f32;
            *value = (if index % 2 == 1 { 3.0 * number } else { -number }).to_bits();
        }
    });
}

#[test]
fn values_of_other_widths_diverge() {
    let text = kernel(
        "
    v9 = load.i32 notrap aligned v8
    v10 = uextend.i64 v9
    v11 = iconst.i64 0x1_0000_0001
    v12 = imul v10, v11
    v13 = f64const 0x1.8p0
    v14 = fcvt_from_uint.f64 v5
    v15 = ireduce.i8 v9
    v16 = iconst.i8 100
    v17 = icmp slt v15, v16
    brif v17, block1, block2(v12, v14, v15)
block1:
    v18 = bnot v12
    v19 = fmul v14, v13
    v20 = imul v15, v16
    jump block2(v18, v19, v20)
block2(v21: i64, v22: f64, v23: i8):
    v24 = iconst.i64 32
    v25 = ushr v21, v24
    v26 = ireduce.i32 v25
    v27 = fcvt_to_sint_sat.i32 v22
    v28 = sextend.i32 v23
    v29 = iadd v26, v27
    v30 = iadd v29, v28
    store notrap aligned v30, v8
    return
",
    );
    check(&text, options(48, 1), &memory(), &[0], |memory| {
        for (index, value) in memory[..144].iter_mut().enumerate() {
            let product = u64::from(*value).wrapping_mul(0x1_0000_0001);
            let byte = *value as i8;
            let (wide, float, byte) = if byte < 100 {
                (!product, index as f64 * 1.5, byte.wrapping_mul(100))
            } else {
                (product, index as f64, byte)
            };
            *value = ((wide >> 32) as u32)
                .wrapping_add(float as i32 as u32)
                .wrapping_add(i32::from(byte) as u32);
        }
    });
}

#[test]
fn checks_of_bounds_leave_out_the_last_lanes() {
    // The first check leaves early, the second one is signed and starts below zero.
    let text = kernel(
        "
    v9 = iconst.i32 100
    v10 = icmp uge v5, v9
    brif v10, block3, block1
block1:
    v11 = load.i32 notrap aligned v8
    v12 = iconst.i32 5
    v13 = iadd v11, v12
    store notrap aligned v13, v8
    v14 = iconst.i32 20
    v15 = isub v5, v14
    v16 = iconst.i32 30
    v17 = icmp slt v15, v16
    brif v17, block2, block3
block2:
    v18 = bnot v13
    store notrap aligned v18, v8
    jump block3
block3:
    return
",
    );
    check(&text, options(48, 1), &memory(), &[0], |memory| {
        for (index, value) in memory[..100].iter_mut().enumerate() {
            *value = value.wrapping_add(5);
            if index < 50 {
                *value = !*value;
            }
        }
    });
}

#[test]
fn code_that_no_lane_reaches_has_no_effect() {
    let text = kernel(
        "
    v9 = load.i32 notrap aligned v8
    v10 = icmp ugt v9, v1
    brif v10, block1, block2
block1:
    store notrap aligned v1, v0+800
    jump block2
block2:
    return
",
    );
    check(&text, options(48, 1), &memory(), &[i32::MAX], |_| {});
    check(&text, options(48, 1), &memory(), &[9], |memory| memory[200] = 9);
}

#[test]
fn narrow_values_are_shifted_with_their_sign() {
    let text = kernel(
        "
    v9 = load.i32 notrap aligned v8
    v10 = ireduce.i8 v9
    v11 = iconst.i8 3
    v12 = sshr v10, v11
    v13 = ushr v10, v11
    v14 = sextend.i32 v12
    v15 = uextend.i32 v13
    v16 = imul v14, v15
    store notrap aligned v16, v8
    return
",
    );
    check(&text, options(48, 1), &memory(), &[0], |memory| {
        for value in &mut memory[..144] {
            let (signed, unsigned) = (i32::from(*value as i8 >> 3), i32::from(*value as u8 >> 3));
            *value = (signed * unsigned) as u32;
        }
    });
}

#[test]
fn every_work_item_calls_a_function_with_effects() {
    let text = kernel(
        "
    v9 = iconst.i32 3
    v10 = band v3, v9
    v11 = iconst.i32 800
    v12 = iadd v0, v11
    brif v10, block1, block2
block1:
    call fn2(v12)
    jump block2
block2:
    return
",
    );
    let text = text.replacen("fn0 =", "fn2 = %bump(i32)\n    fn0 =", 1)
        + "
function %bump(i32) system_v {
block0(v0: i32):
    v1 = iconst.i32 2
    v2 = atomic_rmw.i32 aligned add v0, v1
    return
}";
    check(&text, options(48, 1), &memory(), &[0], |memory| memory[200] += 2 * 108);
}

#[test]
fn invalid_functions_are_refused() {
    for text in [
        "function %kernel(i32) system_v {}",
        "function %kernel(i32) system_v { block0: return }",
    ] {
        let error = naplespu_spmd::compile(&parse(text)[0], &[], &options(16, 16)).map(|_| ());
        assert!(matches!(error, Err(naplespu_spmd::Error::Invalid { .. })), "{error:?}");
    }
}

#[test]
fn irreducible_control_flow_is_refused() {
    let text = "function %kernel(i32) system_v {
block0(v0: i32):
    brif v0, block1, block2
block1:
    jump block2
block2:
    brif v0, block1, block3
block3:
    return
}";
    let error = naplespu_spmd::compile(&parse(text)[0], &[], &options(16, 16)).map(|_| ());
    assert!(
        matches!(error, Err(naplespu_spmd::Error::Irreducible { .. })),
        "{error:?}"
    );
}
