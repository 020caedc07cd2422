//! Loops over arrays: all trip counts around multiples of the vector length, all alignments, and
//! all distances of overlapping arrays.

use super::{Pair, pattern};

/// A loop: in each iteration, `store = op(load, load)` with elements of the given types and
/// constant offsets.
struct Shape {
    name: &'static str,
    /// The loads from the first and second array, the operation and the store. `v20` is the
    /// induction variable, and `v0`, `v1` and `v2` are the arrays.
    body: &'static str,
    /// The size of the largest element in bytes.
    size: i32,
}

const SHAPES: [Shape; 12] = [
    Shape {
        name: "words",
        body: "    v30 = ishl v20, v92
    v31 = iadd v0, v30
    v32 = iadd v1, v30
    v33 = load.i32 v31
    v34 = iadd v33, v90
    store v34, v32",
        size: 4,
    },
    Shape {
        name: "bytes",
        body: "    v31 = iadd v0, v20
    v32 = iadd v1, v20
    v33 = load.i8 v31
    v34 = bxor v33, v95
    store v34, v32",
        size: 1,
    },
    Shape {
        name: "half words",
        body: "    v30 = ishl v20, v91
    v31 = iadd v0, v30
    v32 = iadd v1, v30
    v33 = sload16.i32 aligned v31
    v34 = iadd v33, v90
    istore16 aligned v34, v32",
        size: 2,
    },
    Shape {
        name: "neighbours",
        body: "    v30 = ishl v20, v92
    v31 = iadd v0, v30
    v32 = iadd v1, v30
    v33 = load.i32 v31
    v35 = load.i32 v31+4
    v36 = load.i32 v31+12
    v37 = iadd v33, v35
    v34 = isub v37, v36
    store v34, v32",
        size: 4,
    },
    Shape {
        name: "neighbouring bytes",
        body: "    v31 = iadd v0, v20
    v32 = iadd v1, v20
    v33 = uload8.i32 v31
    v35 = uload8.i32 v31+1
    v36 = sload8.i32 v31+17
    v37 = imul v33, v35
    v34 = iadd v37, v36
    istore8 v34, v32",
        size: 1,
    },
    Shape {
        name: "two sources",
        body: "    v30 = ishl v20, v92
    v31 = iadd v0, v30
    v32 = iadd v1, v30
    v35 = iadd v2, v30
    v33 = load.i32 v31
    v36 = load.i32 v35
    v34 = imul v33, v36
    store v34, v32",
        size: 4,
    },
    Shape {
        name: "an offset of the store",
        body: "    v30 = ishl v20, v92
    v31 = iadd v0, v30
    v32 = iadd v1, v30
    v33 = load.i32 v31+64
    v36 = load.i32 v31+20
    v34 = bxor v33, v36
    store v34, v32+8",
        size: 4,
    },
    Shape {
        name: "half words and bytes on one base",
        body: "    v30 = ishl v20, v91
    v31 = iadd v0, v30
    v32 = iadd v0, v20
    v33 = uload16.i32 aligned v31+64
    v34 = iadd v33, v90
    istore8 v34, v32+520",
        size: 2,
    },
    Shape {
        name: "words and bytes on one base",
        body: "    v30 = ishl v20, v92
    v31 = iadd v0, v30
    v32 = iadd v0, v20
    v33 = uload8.i32 v32
    v34 = imul v33, v33
    store v34, v31+260",
        size: 4,
    },
    Shape {
        name: "one place",
        body: "    v30 = ishl v20, v92
    v31 = iadd v0, v30
    v32 = iadd v1, v30
    v33 = load.i32 v31
    v35 = load.i32 v2
    v36 = load.i32 v2+12
    v37 = iadd v33, v35
    v34 = bxor v37, v36
    store v34, v32",
        size: 4,
    },
    Shape {
        name: "in place",
        body: "    v30 = ishl v20, v92
    v31 = iadd v0, v30
    v33 = load.i32 v31+60
    v35 = load.i32 v31
    v34 = isub v35, v33
    store v34, v31",
        size: 4,
    },
    Shape {
        name: "two stores",
        body: "    v30 = ishl v20, v92
    v31 = iadd v0, v30
    v32 = iadd v1, v30
    v33 = load.i32 v31
    v34 = iadd v33, v20
    store v34, v32
    v35 = load.i32 v31+4
    store v35, v32+128",
        size: 4,
    },
];

/// Returns a loop that executes the body for the induction variable from `v3` to `v4`, with this
/// step, condition and position of the test.
fn over(body: &str, (step, condition, at_start): (i32, &str, bool)) -> String {
    let head = match at_start {
        true => format!(
            "block1(v20: i32):
    v21 = icmp {condition} v20, v4
    brif v21, block3, block2
block3:
{body}
    v22 = iadd v20, v96
    jump block1(v22)"
        ),
        false => format!(
            "block1(v20: i32):
{body}
    v22 = iadd v20, v96
    v21 = icmp {condition} v22, v4
    brif v21, block1(v22), block2"
        ),
    };
    format!(
        "function %over(i32, i32, i32, i32, i32) {{
block0(v0: i32, v1: i32, v2: i32, v3: i32, v4: i32):
    v90 = iconst.i32 77
    v91 = iconst.i32 1
    v92 = iconst.i32 2
    v95 = iconst.i8 29
    v96 = iconst.i32 {step}
    jump block1(v3)
{head}
block2:
    return
}}"
    )
}

const COURSES: [(i32, &str, bool); 4] = [(1, "ne", false), (1, "slt", true), (1, "ult", false), (1, "sle", false)];

#[test]
fn every_count() {
    let memory = pattern();
    for shape in SHAPES {
        for course in COURSES {
            let mut pair = Pair::new(over(shape.body, course));
            for count in (1..=18).chain([31, 32, 33, 34, 47, 48, 49, 63, 64]) {
                for start in [0, 3, 16] {
                    pair.check(&memory, |memory| {
                        vec![memory, memory + 768, memory + 1280, start, start + count]
                    });
                }
            }
            assert!(pair.compared > 70, "{}", shape.name);
        }
    }
}

#[test]
fn every_alignment() {
    let memory = pattern();
    for shape in SHAPES {
        let mut pair = Pair::new(over(shape.body, COURSES[0]));
        let places = || (0..64).step_by(shape.size as usize);
        for first in places() {
            // Combines each alignment of one array with some alignments of the other, so that all
            // differences occur.
            for second in places().step_by(4).chain([first]) {
                for count in [16, 35] {
                    pair.check(&memory, |memory| {
                        vec![
                            memory + first,
                            memory + 768 + second,
                            memory + 1280 + (first ^ second),
                            0,
                            count,
                        ]
                    });
                }
            }
        }
        assert!(pair.compared > 100, "{}", shape.name);
    }
}

#[test]
fn every_overlap() {
    let memory = pattern();
    for shape in SHAPES {
        let mut pair = Pair::new(over(shape.body, COURSES[0]));
        for distance in (-208..=208).step_by(shape.size as usize) {
            for first in [0, 4] {
                let base = 512 + first;
                // Aligned and unaligned arrays. The third array, if the shape uses it, overlaps as
                // well.
                for third in [256, (distance / 2) & !3] {
                    pair.check(&memory, |memory| {
                        vec![memory + base, memory + base + distance, memory + base + third, 0, 33]
                    });
                }
            }
        }
        assert!(pair.compared > 400, "{}", shape.name);
    }
}

/// Offsets on both sides of 2^31, where the stores overlap with the loads.
#[test]
fn offsets_that_wrap() {
    let memory = pattern();
    for near in [i32::MAX - 3, i32::MAX - 63, i32::MIN] {
        let body = format!(
            "    v30 = ishl v20, v92
    v31 = iadd v0, v30
    v32 = iadd v1, v30
    v40 = iconst.i32 {near}
    v41 = iadd v31, v40
    v33 = load.i32 v41
    v42 = iconst.i32 {}
    v43 = iadd v31, v42
    v35 = load.i32 v43
    v34 = isub v33, v35
    store v34, v32",
            near.wrapping_add(8)
        );
        let mut pair = Pair::new(over(&body, COURSES[0]));
        for distance in (-144..=144i32).step_by(4) {
            pair.check(&memory, |memory| {
                let first = memory.wrapping_add(512);
                vec![first.wrapping_sub(near), first + distance, 0, 0, 40]
            });
        }
        assert!(pair.compared > 70);
    }
}

/// Operations on a loop-carried value.
const REDUCTIONS: [(&str, &str); 8] = [
    ("sum", "    v41 = iadd v40, v33"),
    ("product", "    v41 = imul v40, v33"),
    ("and", "    v41 = band v40, v33"),
    ("or", "    v41 = bor v40, v33"),
    ("exclusive or", "    v41 = bxor v40, v33"),
    ("signed largest", "    v41 = smax v40, v33"),
    ("unsigned smallest", "    v41 = umin v40, v33"),
    (
        "last",
        "    v42 = icmp sgt v33, v90\n    v43 = select v42, v33, v90\n    v41 = iadd v40, v43",
    ),
];

#[test]
fn reductions_are_the_same() {
    let memory = pattern();
    for (name, operation) in REDUCTIONS {
        for (place, (condition, offset)) in [("ne", 0), ("slt", 0), ("sle", 0), ("ult", 4)].into_iter().enumerate() {
            let text = format!(
                "function %reduce(i32, i32, i32, i32) -> i32, i32, i32 {{
block0(v0: i32, v1: i32, v2: i32, v3: i32):
    v90 = iconst.i32 77
    v92 = iconst.i32 2
    v93 = iconst.i32 1
    jump block1(v1, v3)
block1(v20: i32, v40: i32):
    v30 = ishl v20, v92
    v31 = iadd v0, v30
    v33 = load.i32 v31+{offset}
{operation}
    v22 = iadd v20, v93
    v21 = icmp {condition} v22, v2
    brif v21, block1(v22, v41), block2
block2:
    return v41, v20, v33
}}"
            );
            let mut pair = Pair::new(text);
            for count in (1..=20).chain([31, 32, 33, 48, 49]) {
                for first in [0, 4, 32, 60] {
                    let start = place as i32;
                    pair.check(&memory, |memory| vec![memory + first, start, start + count, -5]);
                }
            }
            assert!(pair.compared > 90, "{name}");
        }
    }
}

/// Strides, decreasing induction variables, stack slots of known size, and choices in the body.
const OTHERS: [(&str, &str); 7] = [
    (
        "every second word",
        "function %every_second(i32, i32, i32) {
block0(v0: i32, v1: i32, v2: i32):
    v90 = iconst.i32 0
    v91 = iconst.i32 1
    v92 = iconst.i32 3
    jump block1(v90)
block1(v20: i32):
    v30 = ishl v20, v92
    v31 = iadd v0, v30
    v33 = load.i32 aligned v31
    v34 = bnot v33
    v32 = iadd v1, v30
    store aligned v34, v32
    v22 = iadd v20, v91
    v21 = icmp ult v22, v2
    brif v21, block1(v22), block2
block2:
    return
}",
    ),
    (
        "down",
        "function %down(i32, i32, i32) {
block0(v0: i32, v1: i32, v2: i32):
    v90 = iconst.i32 -1
    v92 = iconst.i32 2
    jump block1(v2)
block1(v20: i32):
    v30 = ishl v20, v92
    v31 = iadd v0, v30
    v33 = load.i32 v31
    v34 = bnot v33
    v32 = iadd v1, v30
    store v34, v32
    v22 = iadd v20, v90
    v91 = iconst.i32 0
    v21 = icmp sge v22, v91
    brif v21, block1(v22), block2
block2:
    return
}",
    ),
    (
        "by two",
        "function %by_two(i32, i32, i32) {
block0(v0: i32, v1: i32, v2: i32):
    v90 = iconst.i32 2
    v91 = iconst.i32 1
    v93 = iconst.i32 0
    jump block1(v93)
block1(v20: i32):
    v30 = ishl v20, v91
    v31 = iadd v0, v30
    v33 = load.i32 v31
    v34 = bnot v33
    v32 = iadd v1, v30
    store v34, v32
    v22 = iadd v20, v90
    v21 = icmp ult v22, v2
    brif v21, block1(v22), block2
block2:
    return
}",
    ),
    (
        "by two to another",
        "function %meets(i32, i32, i32) {
block0(v0: i32, v1: i32, v2: i32):
    v90 = iconst.i32 2
    v91 = iconst.i32 1
    v93 = iconst.i32 0
    v94 = iconst.i32 96
    jump block1(v93)
block1(v20: i32):
    v30 = ishl v20, v91
    v31 = iadd v0, v30
    v33 = load.i32 v31
    v34 = bnot v33
    v32 = iadd v1, v30
    store v34, v32
    v22 = iadd v20, v90
    v23 = icmp ult v22, v94
    v21 = icmp ne v22, v2
    v24 = band v21, v23
    brif v24, block1(v22), block2
block2:
    return
}",
    ),
    (
        "a pointer to its end",
        "function %pointer(i32, i32, i32) -> i32 {
block0(v0: i32, v1: i32, v2: i32):
    v90 = iconst.i32 4
    v92 = iconst.i32 2
    v93 = ishl v2, v92
    v94 = iadd v0, v93
    jump block1(v0, v1)
block1(v20: i32, v21: i32):
    v33 = load.i32 v20
    v34 = ineg v33
    store v34, v21
    v22 = iadd v20, v90
    v23 = iadd v21, v90
    v24 = icmp ult v22, v94
    brif v24, block1(v22, v23), block2
block2:
    return v20
}",
    ),
    (
        "a choice",
        "function %choice(i32, i32, i32) {
block0(v0: i32, v1: i32, v2: i32):
    v90 = iconst.i32 0
    v91 = iconst.i32 1
    v92 = iconst.i32 2
    jump block1(v90)
block1(v20: i32):
    v30 = ishl v20, v92
    v31 = iadd v0, v30
    v33 = load.i32 v31
    v40 = icmp slt v33, v90
    brif v40, block3, block4(v33)
block3:
    v41 = ineg v33
    jump block4(v41)
block4(v34: i32):
    v32 = iadd v1, v30
    store v34, v32
    v22 = iadd v20, v91
    v21 = icmp ult v22, v2
    brif v21, block1(v22), block2
block2:
    return
}",
    ),
    (
        "slots",
        "function %slots(i32, i32, i32) -> i32 {
    ss0 = explicit_slot 256, align = 4
    ss1 = explicit_slot 256, align = 4
block0(v0: i32, v1: i32, v2: i32):
    v90 = iconst.i32 0
    v91 = iconst.i32 1
    v92 = iconst.i32 2
    v93 = iconst.i32 64
    v94 = stack_addr.i32 ss0
    v95 = stack_addr.i32 ss1
    jump block1(v90)
block1(v20: i32):
    v30 = ishl v20, v92
    v31 = iadd v0, v30
    v33 = load.i32 v31
    v32 = iadd v94, v30
    v39 = iadd v95, v30
    store v33, v32
    store v20, v39
    v22 = iadd v20, v91
    v21 = icmp ult v22, v93
    brif v21, block1(v22), block5
block5:
    jump block6(v90, v2)
block6(v50: i32, v51: i32):
    v60 = ishl v50, v92
    v61 = iadd v94, v60
    v62 = load.i32 v61
    v63 = iadd v95, v60
    v64 = load.i32 v63
    v65 = imul v62, v64
    v66 = iadd v51, v65
    v67 = iadd v50, v91
    v68 = icmp ne v67, v93
    brif v68, block6(v67, v66), block2
block2:
    return v66
}",
    ),
];

#[test]
fn other_courses_are_the_same() {
    let memory = pattern();
    for (name, text) in OTHERS {
        let mut pair = Pair::new(text.to_owned());
        for count in (1..=20).chain([31, 32, 33, 34, 62, 63, 64, 65, 66, 67]) {
            for first in (0..64).step_by(12) {
                for distance in [768, 4, -64] {
                    pair.check(&memory, |memory| {
                        vec![memory + 256 + first, memory + 256 + first + distance, count]
                    });
                }
            }
        }
        assert!(pair.compared > 400, "{name}");
    }
}

/// Two loads from fixed addresses in each iteration, the higher address first or last. The
/// addresses are near or in the array that the loop writes.
#[test]
fn single_places_are_the_same() {
    let memory = pattern();
    for [first, second] in [[8, 0], [0, 8], [40, 0], [0, 0], [4, 60]] {
        for regions in ["", "region0 "] {
            let text = format!(
                "function %places(i32, i32, i32) {{
    region0 = 1 \"one\"
block0(v0: i32, v1: i32, v2: i32):
    v3 = iconst.i32 0
    v4 = iconst.i32 1
    v5 = iconst.i32 2
    jump block1(v3)
block1(v20: i32):
    v30 = ishl v20, v5
    v31 = iadd v1, v30
    v32 = load.i32 {regions}aligned v0+{first}
    v33 = load.i32 {regions}aligned v0+{second}
    v34 = imul v32, v33
    v35 = iadd v34, v20
    store {regions}aligned v35, v31
    v36 = iadd v20, v4
    v37 = icmp ult v36, v2
    brif v37, block1(v36), block2
block2:
    return
}}"
            );
            let mut pair = Pair::new(text);
            for count in [1, 16, 17, 40] {
                for distance in (-72..=16).step_by(4).chain([100, 156, 160, 600]) {
                    pair.check(&memory, |memory| vec![memory + 512 + distance, memory + 512, count]);
                }
            }
        }
    }
}

/// Loads and stores of one alias region with overlapping arrays.
#[test]
fn arrays_of_one_region_are_the_same() {
    let memory = pattern();
    let text = "function %region(i32, i32, i32) {
    region0 = 1 \"one\"
block0(v0: i32, v1: i32, v2: i32):
    v3 = iconst.i32 0
    v4 = iconst.i32 1
    v5 = iconst.i32 2
    jump block1(v3)
block1(v20: i32):
    v30 = ishl v20, v5
    v31 = iadd v0, v30
    v32 = iadd v1, v30
    v33 = load.i32 region0 aligned v31
    v34 = iadd v33, v20
    store region0 aligned v34, v32
    v36 = iadd v20, v4
    v37 = icmp ult v36, v2
    brif v37, block1(v36), block2
block2:
    return
}";
    let mut pair = Pair::new(text.to_owned());
    for count in [16, 33, 64] {
        for distance in (-128..=128).step_by(4) {
            pair.check(&memory, |memory| vec![memory + 512, memory + 512 + distance, count]);
        }
    }
}

/// Constant trip counts around multiples of the vector length: nothing is written after the last
/// element.
#[test]
fn known_counts_are_the_same() {
    let memory = pattern();
    for count in (1..=50).chain([63, 64, 65, 95, 96, 97]) {
        let text = format!(
            "function %known(i32, i32) {{
block0(v0: i32, v1: i32):
    v3 = iconst.i32 0
    v4 = iconst.i32 1
    v5 = iconst.i32 2
    v6 = iconst.i32 {count}
    jump block1(v3)
block1(v20: i32):
    v30 = ishl v20, v5
    v31 = iadd v0, v30
    v32 = iadd v1, v30
    v33 = load.i32 aligned v31
    v34 = bnot v33
    store aligned v34, v32
    v36 = iadd v20, v4
    v37 = icmp ne v36, v6
    brif v37, block1(v36), block2
block2:
    return
}}"
        );
        let mut pair = Pair::new(text);
        for first in [0, 4, 60] {
            pair.check(&memory, |memory| vec![memory + first, memory + 1024 + first]);
        }
    }
}

/// Rows of a stack slot whose offset is a product. Its alignment is the product of the alignments
/// of both factors, and no more.
#[test]
fn rows_at_products_are_the_same() {
    for (left, right) in [(0, 2), (1, 2), (2, 2), (2, 3), (3, 3), (4, 2)] {
        let text = format!(
            "function %rows(i32, i32, i32) -> i32 {{
    ss0 = explicit_slot 1024, align = 64
block0(v0: i32, v1: i32, v2: i32):
    v3 = iconst.i32 0
    v4 = iconst.i32 1
    v5 = iconst.i32 2
    v6 = iconst.i32 {left}
    v7 = iconst.i32 {right}
    v8 = stack_addr.i32 ss0
    v9 = ishl v0, v6
    v10 = ishl v1, v7
    v11 = imul v9, v10
    v14 = iadd v8, v11
    jump block1(v3)
block1(v20: i32):
    v30 = ishl v20, v5
    v31 = iadd v14, v30
    v34 = imul v20, v2
    store aligned v34, v31
    v36 = iadd v20, v4
    v37 = icmp ult v36, v2
    brif v37, block1(v36), block3(v3, v3)
block3(v40: i32, v41: i32):
    v42 = ishl v40, v5
    v43 = iadd v14, v42
    v44 = load.i32 aligned v43
    v45 = iadd v41, v44
    v46 = iadd v40, v4
    v47 = icmp ult v46, v2
    brif v47, block3(v46, v45), block4
block4:
    return v45
}}"
        );
        let mut pair = Pair::new(text);
        for (a, b) in [(0, 1), (1, 1), (1, 3), (3, 1), (1, 2), (2, 1)] {
            if (a << left) * (b << right) > 400 || (a << left) * (b << right) % 4 != 0 {
                continue;
            }
            for count in [15, 16, 40, 64] {
                pair.check(&[], |_| vec![a, b, count]);
            }
        }
        assert!(pair.compared > 0);
    }
}
