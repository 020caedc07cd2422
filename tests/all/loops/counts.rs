//! Trip counts: all forms of induction variables, with few iterations, at both ends of the number
//! range.

use super::{End, Pair};

/// Returns a loop that counts from `v0` to `v1` by `step` while `condition` holds, with the test at
/// the end or at the start. The loop sums up a polynomial of the induction variable, so every
/// iteration changes the result.
fn counting(ty: &str, step: i64, condition: &str, offset: i64, at_start: bool) -> String {
    let narrow = |value: &str, name: &str| match ty {
        "i32" => format!("    {name} = iadd {value}, v90"),
        "i64" => format!("    {name} = sextend.i64 {value}"),
        _ => format!("    {name} = ireduce.{ty} {value}"),
    };
    let word = match ty {
        "i32" => "    v20 = iadd v3, v90",
        "i64" => "    v20 = ireduce.i32 v3",
        _ => "    v20 = sextend.i32 v3",
    };
    let start = narrow("v0", "v10");
    let bound = narrow("v1", "v11");
    let body = format!(
        "{word}
    v21 = iconst.i32 31
    v22 = imul v4, v21
    v23 = iadd v22, v20
    v24 = iconst.{ty} {step}
    v25 = iadd v3, v24"
    );
    let test = |tested: &str| {
        format!(
            "    v30 = iconst.{ty} {offset}
    v31 = iadd {tested}, v30
    v32 = icmp {condition} v31, v11"
        )
    };
    let blocks = match at_start {
        false => format!(
            "block1(v3: {ty}, v4: i32):
{body}
{}
    brif v32, block1(v25, v23), block2(v23)",
            test("v25")
        ),
        true => format!(
            "block1(v3: {ty}, v4: i32):
{}
    brif v32, block3, block2(v4)
block3:
{body}
    jump block1(v25, v23)",
            test("v3")
        ),
    };
    format!(
        "function %count(i32, i32) -> i32 {{
block0(v0: i32, v1: i32):
    v90 = iconst.i32 0
{start}
{bound}
    jump block1(v10, v90)
{blocks}
block2(v40: i32):
    return v40
}}"
    )
}

/// Returns pairs of start and bound: close to each other, and close to the ends of the number
/// range.
fn ends(step: i64) -> Vec<(i32, i32)> {
    let mut found = Vec::new();
    for start in [
        0,
        1,
        100,
        -3,
        i32::MAX - 20,
        i32::MIN + 20,
        i32::MAX,
        i32::MIN,
        125,
        -126,
    ] {
        for distance in (-2..=21).chain([40, 41]) {
            let distance = distance * step.unsigned_abs() as i32 / 2 * step.signum() as i32;
            found.push((start, i32::wrapping_add(start, distance)));
        }
    }
    found.dedup();
    found
}

#[test]
fn rounds_are_the_same() {
    let (mut compared, mut shapes) = (0, 0);
    for (ty, step) in [
        ("i32", 1),
        ("i32", -1),
        ("i32", 2),
        ("i32", -4),
        ("i32", 3),
        ("i32", -5),
        ("i64", 1),
        ("i64", -2),
        ("i16", 1),
        ("i8", 1),
        ("i8", -3),
    ] {
        let compares = match step > 0 {
            true => ["ne", "slt", "sle", "ult", "ule"],
            false => ["ne", "sgt", "sge", "ugt", "uge"],
        };
        for condition in compares {
            for (offset, at_start) in [(0, false), (0, true), (7, false), (-2, true)] {
                if offset != 0 && !matches!(ty, "i32" | "i8") {
                    continue;
                }
                let mut pair = Pair::new(counting(ty, step, condition, offset, at_start));
                for (start, bound) in ends(step) {
                    pair.check(&[], |_| vec![start, bound]);
                }
                shapes += 1;
                compared += pair.compared;
            }
        }
    }
    assert!(compared > 100 * shapes, "{compared} calls of {shapes} shapes");
}

/// Constant trip counts: full unrolling, unroll factors that divide the trip count or not, and an
/// induction variable that is used after the loop.
#[test]
fn known_rounds_are_the_same() {
    for step in [1i64, -1, 3, -4] {
        for iterations in (1..=26).chain([31, 32, 33, 47, 48, 64, 65, 100, 127, 128, 129]) {
            for start in [0, 5, -7] {
                let last = start + step * iterations;
                for (condition, bound) in [
                    ("ne", last),
                    (if step > 0 { "slt" } else { "sgt" }, last),
                    (if step > 0 { "sle" } else { "sge" }, last - step.signum()),
                ] {
                    let text = format!(
                        "function %known(i32) -> i32, i32 {{
block0(v0: i32):
    v1 = iconst.i32 {start}
    v2 = iconst.i32 {bound}
    v3 = iconst.i32 {step}
    v4 = iconst.i32 31
    jump block1(v1, v0)
block1(v5: i32, v6: i32):
    v7 = imul v6, v4
    v8 = iadd v7, v5
    v9 = iadd v5, v3
    v10 = icmp {condition} v9, v2
    brif v10, block1(v9, v8), block2
block2:
    return v8, v5
}}"
                    );
                    Pair::new(text).check(&[], |_| vec![1]);
                }
            }
        }
    }
}

/// Returns a loop with another form of the test: exchanged operands of the compare, a subtracted
/// step, a bound that changes, or a test that not every iteration executes.
fn written(way: usize, step: i64, condition: &str) -> String {
    let text = counting("i32", step, condition, 0, false);
    let test = format!("icmp {condition} v31, v11");
    assert!(text.contains(&test) && text.contains("    brif v32,"));
    match way {
        0 => {
            let swapped = match condition.split_at(1) {
                (sign, "lt") => format!("{sign}gt"),
                (sign, "le") => format!("{sign}ge"),
                (sign, "gt") => format!("{sign}lt"),
                (sign, "ge") => format!("{sign}le"),
                _ => condition.to_owned(),
            };
            text.replace(&test, &format!("icmp {swapped} v11, v31"))
        }
        1 => text.replace("v25 = iadd v3, v24", "v25 = isub v3, v24").replace(
            &format!("v24 = iconst.i32 {step}\n"),
            &format!("v24 = iconst.i32 {}\n", -step),
        ),
        2 => text.replace(&test, &format!("icmp {condition} v31, v52")).replace(
            "    v32 =",
            "    v50 = iconst.i32 3\n    v51 = band v23, v50\n    v52 = iadd v11, v51\n    v32 =",
        ),
        _ => text
            .replace(
                "    brif v32, block1(v25, v23), block2(v23)",
                "    brif v32, block5, block2(v23)\nblock5:\n    jump block1(v25, v23)",
            )
            .replace(
                "    v30 =",
                "    v60 = iconst.i32 1\n    v61 = band v20, v60\n    brif v61, block4, block5\nblock4:\n    v30 =",
            ),
    }
}

#[test]
fn other_ways_to_count_are_the_same() {
    for step in [1, -1, 3] {
        let compares = match step > 0 {
            true => ["ne", "slt", "ule"],
            false => ["ne", "sge", "ugt"],
        };
        for condition in compares {
            for way in 0..4 {
                if condition == "ne" && way > 1 {
                    // The loop may not terminate.
                    continue;
                }
                let mut pair = Pair::new(written(way, step, condition));
                for (start, bound) in ends(step) {
                    if bound.wrapping_sub(start).abs() < 64 {
                        pair.check(&[], |_| vec![start, bound]);
                    }
                }
                assert!(pair.compared > 50, "{} calls", pair.compared);
            }
        }
    }
}

/// A loop whose induction variable steps over its bound never terminates, whatever it stores.
#[test]
fn loops_without_an_end_have_none() {
    let text = "function %endless(i32, i32) {
block0(v0: i32, v1: i32):
    v2 = iconst.i32 0
    v3 = iconst.i32 4
    v4 = iconst.i32 1024
    jump block1(v2)
block1(v5: i32):
    v6 = iadd v0, v5
    v7 = load.i32 aligned v6
    v8 = bxor v7, v4
    v9 = imul v8, v7
    v10 = iadd v6, v4
    store aligned v9, v10
    v11 = iadd v5, v3
    v12 = icmp ne v11, v1
    brif v12, block1(v11), block2
block2:
    return
}";
    let mut pair = Pair::new(text.to_owned());
    // The loop terminates only with the first bound.
    for (bound, end) in [
        (256, End::Returned(Vec::new())),
        (1, End::Unknown),
        (257, End::Unknown),
        (514, End::Unknown),
    ] {
        let memory = pair.memory();
        for (level, at) in pair.levels.iter_mut().zip(memory) {
            assert_eq!(level.call(&[], &[at, bound]).0, end, "bound {bound}");
        }
    }
}
