//! Loops with checks of bounds and alignment in the body: calls on both sides of each bound, and
//! the stores before a trap.

use super::{Pair, pattern, target};
use cranelift_codegen::Context;
use cranelift_naplespu::passes::Stage;

/// The forms of a check in the body: `v40`, the number, against `v3`, the bound.
const CHECKS: [(&str, &str); 7] = [
    ("above", "    v50 = icmp ugt v40, v3\n    trapnz v50, heap_oob"),
    ("at or above", "    v50 = icmp uge v40, v3\n    trapnz v50, heap_oob"),
    ("not at most", "    v50 = icmp ule v40, v3\n    trapz v50, heap_oob"),
    ("not below", "    v50 = icmp ult v40, v3\n    trapz v50, heap_oob"),
    ("bound below", "    v50 = icmp ult v3, v40\n    trapnz v50, heap_oob"),
    (
        "bound at or below",
        "    v50 = icmp ule v3, v40\n    trapnz v50, heap_oob",
    ),
    (
        "branch",
        "    v50 = icmp ugt v40, v3\n    brif v50, block9, block8\nblock9 cold:\n    trap heap_oob\nblock8:",
    ),
];

/// The checked numbers, computed from the induction variable `v10` and the base `v4`.
const NUMBERS: [(&str, &str); 7] = [
    ("itself", "    v40 = iadd v10, v90"),
    ("with an offset", "    v41 = iconst.i32 8\n    v40 = iadd v10, v41"),
    ("times four", "    v41 = iconst.i32 4\n    v40 = imul v10, v41"),
    (
        "times four from a base",
        "    v41 = iconst.i32 2\n    v42 = ishl v10, v41\n    v40 = iadd v42, v4",
    ),
    ("away from a base", "    v40 = isub v4, v10"),
    (
        "four times away from a base",
        "    v41 = iconst.i32 2\n    v42 = ishl v10, v41\n    v40 = isub v4, v42",
    ),
    (
        "under the base",
        "    v41 = iconst.i32 -8\n    v42 = iadd v10, v41\n    v40 = iadd v42, v4",
    ),
];

/// Returns a loop from `v1` to `v2`. Each iteration checks a number against `v3`, and stores the
/// induction variable to the memory at `v0` if the check passes.
fn checked(number: &str, check: &str, step: i64, condition: &str) -> String {
    format!(
        "function %checked(i32, i32, i32, i32, i32) -> i32 {{
block0(v0: i32, v1: i32, v2: i32, v3: i32, v4: i32):
    v90 = iconst.i32 0
    v91 = iconst.i32 4
    v92 = iconst.i32 {step}
    v93 = iconst.i32 1020
    jump block1(v1, v90)
block1(v10: i32, v11: i32):
{number}
{check}
    v12 = band v11, v93
    v13 = iadd v0, v12
    store v10, v13
    v14 = iadd v11, v91
    v15 = iadd v10, v92
    v16 = icmp {condition} v15, v2
    brif v16, block1(v15, v14), block2
block2:
    return v14
}}"
    )
}

fn courses() -> Vec<(i64, &'static str)> {
    vec![
        (1, "ne"),
        (1, "ult"),
        (1, "slt"),
        (1, "ule"),
        (2, "ne"),
        (2, "ult"),
        (3, "ne"),
        (3, "ult"),
        (3, "slt"),
        (4, "sle"),
        (-1, "ne"),
        (-1, "ugt"),
        (-1, "sgt"),
        (-2, "sge"),
        (-3, "ugt"),
    ]
}

/// Returns arguments: start and end of the induction variable, bound and base. The bounds are close
/// to the numbers that the last iterations check.
fn arguments(number: &str, step: i64) -> Vec<[i32; 4]> {
    let factor = if number.contains("four") { 4 } else { 1 };
    let mut found = Vec::new();
    for iterations in [1, 3, 17] {
        for start in [0, 60] {
            let distance = iterations * step as i32;
            let start = if step < 0 { start - distance } else { start };
            let end = start + distance;
            let base = match number {
                "away from a base" => start.max(end) + 3,
                "four times away from a base" => 4 * start.max(end) + 3,
                _ => 40,
            };
            let last = end - step as i32;
            let checked = |variable: i32| match number {
                "itself" => variable,
                "with an offset" => variable + 8,
                "times four" => factor * variable,
                "times four from a base" => base + factor * variable,
                "under the base" => base + variable - 8,
                _ => base - factor * variable,
            };
            let largest = checked(start).max(checked(last));
            for bound in -2..=2 {
                found.push([start, end, largest + bound, base]);
            }
            found.push([start, end, 0, base]);
            found.push([start, end, -1, base]);
            // Numbers below zero, and a bound that almost all numbers pass.
            found.push([start, end, -1, checked(start) - base - 1]);
            found.push([start, end, 2000, base.wrapping_sub(largest).wrapping_sub(1)]);
            // The induction variable wraps around, or starts beyond its end.
            found.push([start.wrapping_sub(64), end, largest, base]);
            found.push([end, start, largest, base]);
            found.push([i32::MAX - 3, i32::MIN + 3, -1, base]);
            found.push([-4, 4, 100, base]);
            found.push([start, end + 1, largest + 3, base]);
            // A step that does not divide the distance, so that the induction variable wraps
            // around.
            found.push([start, end + 1, 2000, base]);
            found.push([start, i32::MAX, largest, base]);
            found.push([start, i32::MIN, largest, base]);
        }
    }
    found
}

#[test]
fn bounds_are_the_same() {
    let (mut compared, mut trapped, mut shapes) = (0, 0, 0);
    let memory = vec![0; 1024];
    for (name, number) in NUMBERS {
        for (place, (_, check)) in CHECKS.iter().enumerate() {
            for (turn, (step, condition)) in courses().into_iter().enumerate() {
                // Every check with every number. Each combination is tested with half of the
                // courses (step and condition).
                if (place + turn) % 2 != 0 {
                    continue;
                }
                let mut pair = Pair::new(checked(number, check, step, condition));
                for [start, end, bound, base] in arguments(name, step) {
                    pair.check(&memory, |memory| vec![memory, start, end, bound, base]);
                }
                shapes += 1;
                compared += pair.compared;
                trapped += pair.trapped;
            }
        }
    }
    assert!(compared > 50 * shapes, "{compared} calls of {shapes} shapes");
    assert!(
        trapped > compared / 4 && trapped < compared,
        "{trapped} of {compared} calls trap"
    );
}

/// Returns whether the loop has been versioned: the checks are done before it, for one of its two
/// copies.
fn is_versioned(text: &str) -> bool {
    let functions = cranelift_reader::parse_functions(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut ctx = Context::for_function(functions[0].clone());
    let request = [Stage::Bits, Stage::Versioning].into_iter().collect();
    let code = target("speed")
        .compile_with_stages(&mut ctx, &mut Default::default(), request)
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    let after = |wanted: Stage| {
        code.stages
            .iter()
            .find(|(stage, _)| *stage == wanted)
            .map(|(_, text)| text)
    };
    assert!(after(Stage::Versioning).is_some());
    after(Stage::Bits) != after(Stage::Versioning)
}

#[test]
fn every_way_to_write_a_check_is_known() {
    for (name, check) in CHECKS {
        let text = checked(NUMBERS[0].1, check, 1, "ult");
        assert!(is_versioned(&text), "{name}\n{text}");
    }
    let others = NESTS.iter().filter(|text| !is_versioned(text));
    let names: Vec<&str> = others.filter_map(|text| text.split(['%', '(']).nth(1)).collect();
    assert_eq!(names, ["loaded", "leaves", "steps_above", "odd"]);
}

/// Loops with several checks: two accesses with one bound, at a distance, and with two bounds; rows
/// and columns; and a test of alignment.
const NESTS: [&str; 11] = [
    // Several offsets from one index.
    "function %offsets(i32, i32, i32, i32) -> i32 {
block0(v0: i32, v1: i32, v2: i32, v3: i32):
    v90 = iconst.i32 0
    v91 = iconst.i32 1
    v92 = iconst.i32 5
    v93 = iconst.i32 -3
    v94 = iconst.i32 4
    jump block1(v1, v90)
block1(v10: i32, v11: i32):
    v12 = icmp ugt v10, v3
    trapnz v12, user1
    v13 = iadd v10, v92
    v14 = icmp ugt v13, v3
    trapnz v14, user2
    v15 = iadd v10, v93
    v16 = icmp ugt v15, v3
    trapnz v16, user3
    v17 = imul v11, v94
    v18 = iadd v0, v17
    store v10, v18
    v19 = iadd v11, v91
    v20 = iadd v10, v91
    v21 = icmp slt v20, v2
    brif v21, block1(v20, v19), block2
block2:
    return v19
}",
    // Two constant bounds for one index, the larger one first.
    "function %constants(i32, i32, i32, i32) -> i32 {
block0(v0: i32, v1: i32, v2: i32, v3: i32):
    v90 = iconst.i32 0
    v91 = iconst.i32 1
    v92 = iconst.i32 30
    v93 = iconst.i32 25
    v94 = iconst.i32 4
    jump block1(v1, v90)
block1(v10: i32, v11: i32):
    v12 = icmp ugt v10, v92
    trapnz v12, user1
    v14 = icmp ugt v10, v93
    trapnz v14, user2
    v17 = imul v11, v94
    v18 = iadd v0, v17
    store v10, v18
    v19 = iadd v11, v91
    v20 = iadd v10, v91
    v21 = icmp slt v20, v2
    brif v21, block1(v20, v19), block2
block2:
    return v19
}",
    // Two numbers with one base and different strides, in an inner loop that is entered several
    // times.
    "function %paces(i32, i32, i32, i32) -> i32 {
block0(v0: i32, v1: i32, v2: i32, v3: i32):
    v90 = iconst.i32 0
    v91 = iconst.i32 1
    v92 = iconst.i32 2
    v93 = icmp ne v2, v90
    brif v93, block1(v90), block4(v90)
block1(v9: i32):
    jump block2(v90)
block2(v10: i32):
    v12 = iadd v1, v10
    v13 = icmp ugt v12, v3
    trapnz v13, user1
    v14 = ishl v10, v92
    v15 = iadd v1, v14
    v16 = icmp ugt v15, v3
    trapnz v16, user2
    v17 = iadd v0, v14
    store v10, v17
    v20 = iadd v10, v91
    v21 = icmp ult v20, v2
    brif v21, block2(v20), block3
block3:
    v22 = iadd v9, v91
    v23 = icmp ult v22, v92
    brif v23, block1(v22), block4(v10)
block4(v24: i32):
    return v24
}",
    // A constant trip count, and a number that wraps around.
    "function %wraps(i32, i32, i32, i32) -> i32 {
block0(v0: i32, v1: i32, v2: i32, v3: i32):
    v90 = iconst.i32 0
    v91 = iconst.i32 1
    v92 = iconst.i32 0x0e000000
    v93 = iconst.i32 2
    v94 = iconst.i32 20
    v95 = iconst.i32 24
    v96 = ishl v3, v95
    jump block1(v90)
block1(v9: i32):
    jump block2(v90)
block2(v10: i32):
    v12 = imul v10, v92
    v13 = icmp ugt v12, v96
    trapnz v13, user1
    v14 = ishl v10, v93
    v17 = iadd v0, v14
    store v10, v17
    v20 = iadd v10, v91
    v21 = icmp ne v20, v94
    brif v21, block2(v20), block3
block3:
    v22 = iadd v9, v91
    v23 = icmp ult v22, v93
    brif v23, block1(v22), block4
block4:
    return v10
}",
    // A number with a term that the loop loads and changes.
    "function %loaded(i32, i32, i32, i32) -> i32 {
block0(v0: i32, v1: i32, v2: i32, v3: i32):
    v90 = iconst.i32 0
    v91 = iconst.i32 1
    v92 = iconst.i32 3
    jump block1(v90)
block1(v10: i32):
    v11 = load.i32 v0
    v12 = iadd v10, v11
    v13 = icmp ugt v12, v3
    trapnz v13, user1
    v14 = ishl v10, v92
    store v14, v0
    v20 = iadd v10, v91
    v21 = icmp ult v20, v2
    brif v21, block1(v20), block2
block2:
    return v10
}",
    // The loop exits where the tests hold: the induction variable is above its bound, not below.
    "function %leaves(i32, i32, i32, i32) -> i32 {
block0(v0: i32, v1: i32, v2: i32, v3: i32):
    v90 = iconst.i32 0
    v91 = iconst.i32 1
    v92 = iconst.i32 5
    v93 = iconst.i32 1020
    v94 = icmp ult v1, v2
    brif v94, block2(v1), block1(v1, v90)
block1(v10: i32, v11: i32):
    v13 = icmp ugt v10, v3
    trapnz v13, user1
    v14 = band v11, v93
    v17 = iadd v0, v14
    store v10, v17
    v18 = load.i32 v17
    v19 = band v18, v91
    v20 = isub v10, v91
    v22 = isub v20, v19
    v23 = iadd v11, v92
    v24 = icmp ult v22, v2
    brif v24, block2(v22), block1(v22, v23)
block2(v30: i32):
    return v30
}",
    // A step that is not constant, and a test whose second successor is the back edge.
    "function %steps(i32, i32, i32, i32) -> i32 {
block0(v0: i32, v1: i32, v2: i32, v3: i32):
    v90 = iconst.i32 0
    v92 = iconst.i32 4
    v93 = iconst.i32 1020
    v94 = icmp uge v1, v2
    brif v94, block2(v90), block1(v1, v90)
block1(v10: i32, v11: i32):
    v13 = icmp ugt v10, v3
    trapnz v13, user1
    v14 = band v11, v93
    v17 = iadd v0, v14
    store v10, v17
    v22 = iadd v10, v1
    v23 = iadd v11, v92
    v24 = icmp uge v22, v2
    brif v24, block2(v22), block1(v22, v23)
block2(v30: i32):
    return v30
}",
    // The same, but the back edge is taken where the induction variable is not below the bound.
    "function %steps_above(i32, i32, i32, i32) -> i32 {
block0(v0: i32, v1: i32, v2: i32, v3: i32):
    v90 = iconst.i32 0
    v92 = iconst.i32 4
    v93 = iconst.i32 1020
    jump block1(v1, v90)
block1(v10: i32, v11: i32):
    v13 = icmp ugt v10, v3
    trapnz v13, user1
    v14 = band v11, v93
    v17 = iadd v0, v14
    store v10, v17
    v22 = iadd v10, v1
    v23 = iadd v11, v92
    v24 = icmp ult v22, v2
    brif v24, block2(v22), block1(v22, v23)
block2(v30: i32):
    return v30
}",
    // Rows and columns: the bound applies to the sum of both induction variables.
    "function %rows(i32, i32, i32, i32) -> i32 {
block0(v0: i32, v1: i32, v2: i32, v3: i32):
    v90 = iconst.i32 0
    v91 = iconst.i32 1
    v92 = iconst.i32 7
    v93 = iconst.i32 1020
    v94 = iconst.i32 4
    v95 = icmp ne v2, v90
    brif v95, block1(v90, v90), block4(v90)
block1(v10: i32, v11: i32):
    jump block2(v90, v11)
block2(v20: i32, v21: i32):
    v22 = imul v10, v92
    v23 = iadd v22, v20
    v24 = icmp uge v23, v3
    trapnz v24, heap_oob
    v25 = band v21, v93
    v26 = iadd v0, v25
    store v23, v26
    v27 = iadd v21, v94
    v28 = iadd v20, v91
    v29 = icmp ult v28, v1
    brif v29, block2(v28, v27), block3
block3:
    v30 = iadd v10, v91
    v31 = icmp ult v30, v2
    brif v31, block1(v30, v27), block4(v27)
block4(v40: i32):
    return v40
}",
    // If the address is not aligned, the cold path is taken.
    "function %aligned(i32, i32, i32, i32) -> i32 {
block0(v0: i32, v1: i32, v2: i32, v3: i32):
    v90 = iconst.i32 0
    v91 = iconst.i32 1
    v92 = iconst.i32 2
    v93 = iconst.i32 3
    v94 = iconst.i32 256
    jump block1(v1, v90)
block1(v10: i32, v11: i32):
    v12 = ishl v10, v92
    v13 = iadd v12, v3
    v14 = band v13, v93
    brif v14, block3, block4
block3 cold:
    v15 = iadd v11, v94
    jump block5(v15)
block4:
    v16 = iadd v11, v91
    jump block5(v16)
block5(v17: i32):
    v18 = ishl v17, v92
    v19 = band v18, v94
    v20 = iadd v0, v19
    store v13, v20
    v21 = iadd v10, v91
    v22 = icmp ult v21, v2
    brif v22, block1(v21, v17), block2
block2:
    return v17
}",
    // The same with low bits that change in each iteration.
    "function %odd(i32, i32, i32, i32) -> i32 {
block0(v0: i32, v1: i32, v2: i32, v3: i32):
    v90 = iconst.i32 0
    v91 = iconst.i32 1
    v92 = iconst.i32 2
    v93 = iconst.i32 3
    v94 = iconst.i32 256
    jump block1(v1, v90)
block1(v10: i32, v11: i32):
    v12 = ishl v10, v91
    v13 = iadd v12, v3
    v14 = band v13, v93
    brif v14, block3, block4
block3 cold:
    v15 = iadd v11, v94
    jump block5(v15)
block4:
    v16 = iadd v11, v91
    jump block5(v16)
block5(v17: i32):
    v18 = ishl v17, v92
    v19 = band v18, v94
    v20 = iadd v0, v19
    store v13, v20
    v21 = iadd v10, v91
    v22 = icmp ult v21, v2
    brif v22, block1(v21, v17), block2
block2:
    return v17
}",
];

#[test]
fn bounds_of_several_are_the_same() {
    let memory = vec![0; 1024];
    for text in NESTS {
        let mut pair = Pair::new(text.to_owned());
        for first in [0, 1, 2, 3, 4, 7, 23] {
            for second in [0, 1, 2, 3, 5, 8, 24, 25, 26, 27, 30, 31] {
                for bound in [
                    0, 1, 5, 6, 7, 8, 13, 14, 15, 28, 29, 30, 31, 34, 35, 36, 48, 49, 50, 55, 56, 57, -1,
                ] {
                    pair.check(&memory, |memory| vec![memory, first, second, bound]);
                }
            }
        }
        assert!(pair.compared > 1000);
    }
}

/// A bound in memory that the loop writes, or a bound in an alias region that the loop does not
/// write.
#[test]
fn bounds_in_memory_are_the_same() {
    for (region, other) in [("region0", "region0"), ("region0", "region1")] {
        let text = format!(
            "function %memory(i32, i32, i32) -> i32 {{
    region0 = 1 \"bounds\"
    region1 = 2 \"data\"
block0(v0: i32, v1: i32, v2: i32):
    v90 = iconst.i32 0
    v91 = iconst.i32 1
    jump block1(v90)
block1(v10: i32):
    v11 = load.i32 {region} aligned v0
    v12 = icmp ugt v10, v11
    trapnz v12, heap_oob
    store {other} aligned v2, v0+64
    store {other} aligned v2, v1
    v13 = iadd v10, v91
    v14 = iconst.i32 20
    v15 = icmp ult v13, v14
    brif v15, block1(v13), block2
block2:
    return v13
}}"
        );
        let mut pair = Pair::new(text);
        let mut memory = pattern();
        for bound in [0u32, 1, 18, 19, 20, 21] {
            memory[..4].copy_from_slice(&bound.to_le_bytes());
            for written in [0, 5, 19, 30] {
                // With two regions, the second address differs, as the flags promise.
                let near = if region == other { 0 } else { 128 };
                pair.check(&memory, |memory| vec![memory, memory + near, written]);
            }
        }
    }
}
