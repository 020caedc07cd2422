//! Checks of random expressions against bounds, which the pass hoists out of the work-items if they
//! hold for a row of work-groups. The expected results are computed here, since one work-item at a
//! time has the same hoisted checks.

use crate::kernels::parse;
use crate::run::{Case, options, run};
use fastrand::Rng;
use naplespu_spmd::Options;
use std::fmt::Write as _;

/// The seed of the first kernel; `NAPLESPU_SPMD_FIRST` replaces it.
const FIRST: u64 = 1;

/// The number of kernels; `NAPLESPU_SPMD_CASES` replaces it.
const CASES: u64 = 40;

/// Iterations of the loop around the check.
const ITERATIONS: u32 = 3;

/// Numbers with which sums and products wrap around.
const CONSTANTS: [u32; 8] = [
    0x10000,
    0x1000_0000,
    0x4000_0000,
    0x7fff_fff0,
    0x8000_0000,
    0xffff_0000,
    0xffff_fff0,
    0xffff_ffff,
];

/// The parameters of the kernel after its buffer.
const PARAMS: usize = 2;

/// An expression of `i32`.
enum Expr {
    Constant(u32),
    Param(usize),
    /// A built-in function without its prefix, and the axis.
    Id(&'static str, usize),
    Counter,
    Binary(&'static str, Box<Expr>, Box<Expr>),
}

/// A work-item.
struct Item {
    group: [u32; 2],
    local: [u32; 2],
    size: [u32; 2],
    counts: [u32; 2],
    params: [u32; PARAMS],
    counter: u32,
}

impl Expr {
    fn random(rng: &mut Rng, depth: u32, varies: bool) -> Self {
        if depth == 0 || rng.u32(..5) == 0 {
            return match rng.u32(..if varies { 8 } else { 3 }) {
                0 => Self::Param(rng.usize(..PARAMS)),
                1 => Self::Constant(rng.u32(..20)),
                2 => Self::Constant(CONSTANTS[rng.usize(..CONSTANTS.len())]),
                3 => Self::Counter,
                4 => Self::Id("local_id", rng.usize(..2)),
                5 => Self::Id("workgroup_id", rng.usize(..2)),
                6 => Self::Id("workgroup_count", rng.usize(..2)),
                _ => Self::Id("global_id", rng.usize(..2)),
            };
        }
        let operations = [
            "iadd", "iadd", "iadd", "isub", "imul", "ishl", "ushr", "udiv", "urem", "band", "umin", "umax", "select",
        ];
        let operation = operations[rng.usize(..operations.len())];
        let left = Box::new(Self::random(rng, depth - 1, varies));
        let right = match operation {
            "ishl" | "ushr" => Self::Constant(rng.u32(..5)),
            "udiv" | "urem" => Self::Constant(rng.u32(1..20)),
            "band" => Self::Constant(rng.u32(..64)),
            _ => Self::random(rng, depth - 1, varies),
        };
        Self::Binary(operation, left, Box::new(right))
    }

    fn value(&self, item: &Item) -> u32 {
        match self {
            Self::Constant(number) => *number,
            Self::Param(index) => item.params[*index],
            Self::Counter => item.counter,
            Self::Id("local_id", axis) => item.local[*axis],
            Self::Id("workgroup_id", axis) => item.group[*axis],
            Self::Id("workgroup_count", axis) => item.counts[*axis],
            Self::Id(_, axis) => item.group[*axis] * item.size[*axis] + item.local[*axis],
            Self::Binary(operation, left, right) => {
                let (x, y) = (left.value(item), right.value(item));
                match *operation {
                    "iadd" => x.wrapping_add(y),
                    "isub" => x.wrapping_sub(y),
                    "imul" => x.wrapping_mul(y),
                    "ishl" => x << y,
                    "ushr" => x >> y,
                    "udiv" => x / y,
                    "urem" => x % y,
                    "band" => x & y,
                    "umin" | "select" => x.min(y),
                    _ => x.max(y),
                }
            }
        }
    }

    /// Appends the instructions, and returns the number of the value.
    fn clif(&self, text: &mut String, next: &mut u32) -> u32 {
        let line = match self {
            Self::Constant(number) => format!("iconst.i32 {:#x}", number),
            Self::Param(index) => format!("iadd.i32 v{}, v9", 1 + index),
            Self::Counter => "iadd.i32 v10, v9".to_owned(),
            Self::Id(name, axis) => {
                let names = ["local_id", "workgroup_id", "workgroup_count", "global_id"];
                let function = 2 * names.iter().position(|other| other == name).unwrap_or(3) + axis;
                format!("call fn{function}()")
            }
            // The smaller number, by a select.
            Self::Binary("select", left, right) => {
                let (left, right) = (left.clif(text, next), right.clif(text, next));
                *next += 1;
                let _ = writeln!(text, "    v{next} = icmp ult v{left}, v{right}");
                format!("select v{next}, v{left}, v{right}")
            }
            Self::Binary(operation, left, right) => {
                let (left, right) = (left.clif(text, next), right.clif(text, next));
                format!("{operation} v{left}, v{right}")
            }
        };
        *next += 1;
        // Writing to a string does not fail.
        let _ = writeln!(text, "    v{next} = {line}");
        *next
    }
}

/// A kernel that checks an expression in a loop and stores which way it went.
struct Check {
    condition: &'static str,
    left: Expr,
    right: Expr,
    size: [u32; 2],
    counts: [u32; 2],
    params: [u32; PARAMS],
}

impl Check {
    fn random(rng: &mut Rng) -> Self {
        let conditions = ["ult", "ule", "ugt", "uge", "slt", "sle", "sge"];
        let sizes = [[64, 1], [16, 4], [48, 1], [8, 8], [20, 2]];
        let mut check = Self {
            condition: conditions[rng.usize(..conditions.len())],
            left: Expr::random(rng, 3, true),
            right: if rng.bool() {
                Expr::Param(1)
            } else {
                Expr::random(rng, 2, rng.clone().bool())
            },
            size: sizes[rng.usize(..sizes.len())],
            counts: [rng.u32(..4), rng.u32(1..3)],
            params: [
                if rng.bool() {
                    rng.u32(..40)
                } else {
                    CONSTANTS[rng.usize(..CONSTANTS.len())]
                },
                0,
            ],
        };
        // A bound near the values that occur.
        let mut values = Vec::new();
        check.each(|item| values.push(check.left.value(item)));
        values.sort_unstable();
        let near = if rng.u32(..4) == 0 {
            rng.choice(&values).copied()
        } else {
            values.last().copied()
        };
        let near = near.unwrap_or(0);
        check.params[1] = match rng.u32(..6) {
            0 => rng.u32(..200),
            1 => near.wrapping_sub(1),
            2 => near,
            3 => near.wrapping_add(1),
            4 => u32::MAX,
            _ => near.saturating_add(rng.u32(..100)),
        };
        check
    }

    /// Calls `visit` for each iteration of each work-item.
    fn each(&self, mut visit: impl FnMut(&Item)) {
        let places = |size: [u32; 2]| (0..size[1]).flat_map(move |y| (0..size[0]).map(move |x| [x, y]));
        for group in places(self.counts) {
            for local in places(self.size) {
                for counter in 0..ITERATIONS {
                    visit(&Item {
                        group,
                        local,
                        size: self.size,
                        counts: self.counts,
                        params: self.params,
                        counter,
                    });
                }
            }
        }
    }

    /// Returns the number of the work-item in the buffer.
    fn place(&self, item: &Item) -> usize {
        let [x, y] = [0, 1].map(|axis| item.group[axis] * self.size[axis] + item.local[axis]);
        (y * self.counts[0] * self.size[0] + x) as usize
    }

    fn holds(&self, item: &Item) -> bool {
        let (x, y) = (self.left.value(item), self.right.value(item));
        match self.condition {
            "ult" => x < y,
            "ule" => x <= y,
            "ugt" => x > y,
            "uge" => x >= y,
            "slt" => (x as i32) < y as i32,
            "sle" => x as i32 <= y as i32,
            _ => x as i32 >= y as i32,
        }
    }

    fn expected(&self) -> Vec<u32> {
        let [width, height] = [0, 1].map(|axis| self.counts[axis] * self.size[axis]);
        let mut memory = vec![0u32; (width * height).max(1) as usize];
        self.each(|item| {
            let word = &mut memory[self.place(item)];
            *word = *word * 3 + if self.holds(item) { 1 } else { 2 };
        });
        memory
    }

    fn clif(&self) -> String {
        let mut text = String::from("function %kernel(i32, i32, i32) system_v {\n");
        for (number, name) in ["local_id", "workgroup_id", "workgroup_count", "global_id"]
            .iter()
            .enumerate()
        {
            for (axis, letter) in ["x", "y"].iter().enumerate() {
                let function = 2 * number + axis;
                let _ = writeln!(text, "    fn{function} = %__builtin_npu_{name}_{letter}() -> i32");
            }
        }
        text += "block0(v0: i32, v1: i32, v2: i32):
    v9 = iconst.i32 0
    jump block1(v9, v9)
block1(v10: i32, v11: i32):
";
        let _ = writeln!(text, "    v12 = iconst.i32 {ITERATIONS}");
        text += "    v13 = icmp ult v10, v12
    brif v13, block2, block5
block2:
";
        let mut next = 100;
        let left = self.left.clif(&mut text, &mut next);
        let right = self.right.clif(&mut text, &mut next);
        let _ = writeln!(text, "    v14 = icmp {} v{left}, v{right}", self.condition);
        text += "    v15 = iconst.i32 3
    v16 = imul v11, v15
    v17 = iconst.i32 1
    brif v14, block3, block4
block3:
    v19 = iadd v16, v17
    jump block6(v19)
block4:
    v20 = iconst.i32 2
    v21 = iadd v16, v20
    jump block6(v21)
block6(v22: i32):
    v18 = iadd v10, v17
    jump block1(v18, v22)
block5:
    v30 = call fn6()
    v31 = call fn7()
    v32 = call fn4()
";
        let _ = writeln!(text, "    v33 = iconst.i32 {}", self.size[0]);
        text += "    v34 = imul v32, v33
    v35 = imul v31, v34
    v36 = iadd v35, v30
    v37 = iconst.i32 2
    v38 = ishl v36, v37
    v39 = iadd v0, v38
    store notrap aligned v11, v39
    return
}
";
        text
    }
}

/// Compares all words with the expected ones.
fn compare(check: &Check, runs: [(u32, usize); 2], name: &str) {
    let expected = check.expected();
    let text = check.clif();
    let functions = parse(&text);
    for (lanes, threads) in runs {
        let case = Case {
            functions: &functions,
            options: Options {
                workgroup_size: [check.size[0], check.size[1], 1],
                ..options(1, lanes)
            },
            counts: [check.counts[0], check.counts[1], 1],
            threads,
            memory: vec![0; expected.len()],
            numbers: &check.params.map(|number| number as i32),
            opt_level: "speed",
            timed: false,
        };
        let done = run(case).unwrap_or_else(|error| panic!("{name}, {lanes} lanes: {error}\n{text}"));
        assert_eq!(
            done.memory, expected,
            "{name}, {lanes} lanes, {threads} threads\n{text}"
        );
    }
}

#[test]
fn checks_that_hold_for_some_work_items_only() {
    let binary = |operation, left, right| Expr::Binary(operation, Box::new(left), Box::new(right));
    let index = || Expr::Id("global_id", 0);
    let cases = [
        ("a sum that wraps around", {
            let half = binary("iadd", index(), Expr::Constant(0x7fff_fff8));
            (binary("iadd", half, Expr::Constant(0x7fff_fff8)), Expr::Param(0), 100)
        }),
        ("a product that wraps around", {
            let next = binary("iadd", index(), Expr::Constant(1));
            (binary("imul", next, Expr::Constant(0x0400_0000)), Expr::Param(0), 5)
        }),
        (
            "a difference that wraps around",
            (binary("isub", index(), Expr::Constant(3)), Expr::Param(0), 100),
        ),
        ("the last iteration", (Expr::Counter, Expr::Param(0), ITERATIONS - 1)),
        (
            "the smaller of two bounds",
            (index(), binary("select", Expr::Param(0), Expr::Constant(5)), 100),
        ),
        ("the last work-group", (index(), Expr::Param(0), 40)),
    ];
    for (name, (left, right, bound)) in cases {
        let check = Check {
            condition: "ult",
            left,
            right,
            size: [16, 1],
            counts: [4, 1],
            params: [bound, 0],
        };
        compare(&check, [(1, 1), (16, 2)], name);
    }
}

#[test]
fn checks_of_random_expressions_are_right_for_every_work_item() {
    let number = |name: &str, default| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(default)
    };
    let first: u64 = number("NAPLESPU_SPMD_FIRST", FIRST);
    for seed in first..first + number("NAPLESPU_SPMD_CASES", CASES) {
        let check = Check::random(&mut Rng::with_seed(seed));
        let runs = if seed % 2 == 0 {
            [(1, 3), (16, 8)]
        } else {
            [(16, 1), (128, 3)]
        };
        compare(&check, runs, &format!("seed {seed}"));
    }
}
