//! Functions of any size, in shapes that tend to be slow to compile.
//!
//! Each shape generates CLIF text with approximately a given number of instructions. The text is
//! deterministic.

use std::fmt::Write as _;

/// A named shape.
#[derive(Debug)]
pub struct Shape {
    /// The name in tables.
    pub name: &'static str,
    /// A description.
    pub about: &'static str,
    /// Returns the text of a function with about this many instructions.
    pub text: fn(usize) -> String,
}

/// All shapes.
pub const SHAPES: &[Shape] = &[
    Shape {
        name: "i32",
        about: "one block of integer operations, each on two of the last eight results",
        text: |count| straight(count, "i32", &["iadd", "imul", "bxor", "isub", "band", "bor"]),
    },
    Shape {
        name: "f32",
        about: "the same on floats",
        text: |count| straight(count, "f32", &["fadd", "fmul", "fsub"]),
    },
    Shape {
        name: "i64 memory",
        about: "one block that loads, changes and stores numbers of 64 bits",
        text: |count| wide_memory(count, " aligned"),
    },
    Shape {
        name: "i64 unaligned",
        about: "the same at addresses of which nothing is known, where this machine needs an access for each byte",
        text: |count| wide_memory(count, ""),
    },
    Shape {
        name: "loads, stores",
        about: "one block of accesses to 32 bits, half of them loads",
        text: memory,
    },
    Shape {
        name: "live values",
        about: "half of the instructions make values that the other half uses in the same order",
        text: live_values,
    },
    Shape {
        name: "blocks",
        about: "conditions one after the other, with a value that each may change",
        text: blocks,
    },
    Shape {
        name: "loops",
        about: "small loops one after the other",
        text: loops,
    },
    Shape {
        name: "nested loops",
        about: "loops eight deep, one such nest after the other",
        text: nests,
    },
    Shape {
        name: "br_table",
        about: "one table, each of whose entries leads to a block of its own",
        text: table,
    },
    Shape {
        name: "calls",
        about: "calls with sixteen arguments each",
        text: calls,
    },
    Shape {
        name: "vector selects",
        about: "one block of selects by lanes, each with a mask of its own",
        text: selects,
    },
    Shape {
        name: "vector constants",
        about: "one block with a constant vector, not a splat, for every sum",
        text: constants,
    },
];

/// Writing to a string cannot fail.
macro_rules! line {
    ($text:ident, $($arg:tt)*) => {
        let _ = writeln!($text, $($arg)*);
    };
}

fn straight(count: usize, ty: &str, opcodes: &[&str]) -> String {
    let mut text = format!("function %f({ty}, {ty}) -> {ty} {{\nblock0(v0: {ty}, v1: {ty}):\n");
    for number in 2..count + 1 {
        let opcode = opcodes[number % opcodes.len()];
        let older = number - 2.max(number * 7 % 9).min(number);
        line!(text, "    v{number} = {opcode} v{}, v{older}", number - 1);
    }
    line!(text, "    return v{count}\n}}");
    text
}

fn wide_memory(count: usize, flags: &str) -> String {
    let mut text = "function %f(i32, i64) {\nblock0(v0: i32, v1: i64):\n".to_owned();
    for iteration in 0..count / 3 {
        let (value, sum) = (2 + 2 * iteration, 3 + 2 * iteration);
        line!(text, "    v{value} = load.i64{flags} v0+{}", iteration % 1024 * 8);
        line!(text, "    v{sum} = iadd v{value}, v1");
        line!(text, "    store{flags} v{sum}, v0+{}", (iteration + 512) % 1024 * 8);
    }
    text + "    return\n}\n"
}

fn memory(count: usize) -> String {
    let mut text = "function %f(i32, i32) {\nblock0(v0: i32, v1: i32):\n".to_owned();
    for iteration in 0..count / 2 {
        line!(
            text,
            "    v{} = load.i32 aligned v0+{}",
            iteration + 2,
            iteration % 1024 * 4
        );
        line!(
            text,
            "    store aligned v{}, v1+{}",
            iteration + 2,
            iteration * 5 % 1024 * 4
        );
    }
    text + "    return\n}\n"
}

fn live_values(count: usize) -> String {
    let values = count / 2;
    let mut text = "function %f(i32) -> i32 {\nblock0(v0: i32):\n".to_owned();
    for number in 1..=values {
        line!(text, "    v{number} = imul v{}, v{}", number - 1, number / 2);
    }
    for number in 1..values {
        line!(
            text,
            "    v{} = bxor v{}, v{number}",
            values + number,
            values + number - 1
        );
    }
    line!(text, "    return v{}\n}}", 2 * values - 1);
    text
}

fn blocks(count: usize) -> String {
    let mut text = "function %f(i32, i32) -> i32 {\nblock0(v0: i32, v1: i32):\n".to_owned();
    let mut value = 0;
    for iteration in 0..count / 5 {
        let (then, next, new) = (2 * iteration + 1, 2 * iteration + 2, 2 + 4 * iteration);
        line!(text, "    v{new} = iconst.i32 {}", 1u32 << (iteration % 31));
        line!(text, "    v{} = band v1, v{new}", new + 1);
        line!(text, "    brif v{}, block{then}, block{next}(v{value})", new + 1);
        line!(text, "block{then}:");
        line!(text, "    v{} = iadd v{value}, v{}", new + 2, new + 1);
        line!(text, "    jump block{next}(v{})", new + 2);
        line!(text, "block{next}(v{}: i32):", new + 3);
        value = new + 3;
    }
    line!(text, "    return v{value}\n}}");
    text
}

fn loops(count: usize) -> String {
    let mut text = "function %f(i32, i32) -> i32 {\nblock0(v0: i32, v1: i32):\n    v2 = iconst.i32 1\n".to_owned();
    let mut value = 0;
    for iteration in 0..count / 5 {
        let (body, next, new) = (2 * iteration + 1, 2 * iteration + 2, 3 + 5 * iteration);
        line!(text, "    jump block{body}(v{value}, v1)");
        line!(text, "block{body}(v{new}: i32, v{}: i32):", new + 1);
        line!(text, "    v{} = imul v{new}, v1", new + 2);
        line!(text, "    v{} = iadd v{}, v{}", new + 3, new + 2, new + 1);
        line!(text, "    v{} = isub v{}, v2", new + 4, new + 1);
        line!(
            text,
            "    brif v{0}, block{body}(v{1}, v{0}), block{next}",
            new + 4,
            new + 3
        );
        line!(text, "block{next}:");
        value = new + 3;
    }
    line!(text, "    return v{value}\n}}");
    text
}

fn nests(count: usize) -> String {
    const DEPTH: usize = 8;
    let mut text = "function %f(i32, i32) -> i32 {\nblock0(v0: i32, v1: i32):\n    v2 = iconst.i32 1\n".to_owned();
    let (mut value, mut next, mut block) = (0, 3, 1);
    for _ in 0..count / (4 * DEPTH + 1) {
        let mut heads = Vec::new();
        for _ in 0..DEPTH {
            line!(text, "    jump block{block}(v{value}, v1)");
            line!(text, "block{block}(v{next}: i32, v{}: i32):", next + 1);
            heads.push((block, next + 1));
            (value, next, block) = (next, next + 2, block + 1);
        }
        line!(text, "    v{next} = imul v{value}, v1");
        (value, next) = (next, next + 1);
        for (head, counter) in heads.into_iter().rev() {
            line!(text, "    v{next} = isub v{counter}, v2");
            line!(text, "    v{} = bxor v{value}, v{next}", next + 1);
            line!(
                text,
                "    brif v{next}, block{head}(v{}, v{next}), block{block}",
                next + 1
            );
            line!(text, "block{block}:");
            (value, next, block) = (next + 1, next + 2, block + 1);
        }
    }
    line!(text, "    return v{value}\n}}");
    text
}

fn table(count: usize) -> String {
    let entries = count / 4;
    let mut text = "function %f(i32, i32) -> i32 {\nblock0(v0: i32, v1: i32):\n    br_table v0, block1, [".to_owned();
    for entry in 0..entries {
        let separator = if entry == 0 { "" } else { ", " };
        let _ = write!(text, "{separator}block{}", entry + 2);
    }
    line!(text, "]\nblock1:\n    return v1");
    for entry in 0..entries {
        let new = 2 + 3 * entry;
        line!(text, "block{}:\n    v{new} = iconst.i32 {entry}", entry + 2);
        line!(
            text,
            "    v{} = imul v{new}, v1\n    v{} = bxor v{0}, v0\n    return v{1}",
            new + 1,
            new + 2
        );
    }
    text + "}\n"
}

fn calls(count: usize) -> String {
    const ARGUMENTS: usize = 16;
    let types = vec!["i32"; ARGUMENTS].join(", ");
    let mut text = format!("function %f({types}) -> i32 {{\n    fn0 = %g({types}) -> i32\nblock0(");
    let params: Vec<String> = (0..ARGUMENTS).map(|number| format!("v{number}: i32")).collect();
    line!(text, "{}):", params.join(", "));
    for iteration in 0..count {
        let args: Vec<String> = (0..ARGUMENTS)
            .map(|number| format!("v{}", iteration + number))
            .collect();
        line!(text, "    v{} = call fn0({})", iteration + ARGUMENTS, args.join(", "));
    }
    line!(text, "    return v{}\n}}", count + ARGUMENTS - 1);
    text
}

fn selects(count: usize) -> String {
    let mut text = "function %f(i32x16, i32x16) -> i32x16 {\nblock0(v0: i32x16, v1: i32x16):\n".to_owned();
    let mut value = 0;
    for iteration in 0..count / 2 {
        let new = 2 + 2 * iteration;
        line!(text, "    v{new} = icmp sgt v{value}, v1");
        line!(
            text,
            "    v{} = bitselect v{new}, v{value}, v{}",
            new + 1,
            iteration % 2
        );
        value = new + 1;
    }
    line!(text, "    return v{value}\n}}");
    text
}

fn constants(count: usize) -> String {
    let mut text = "function %f(i32x16) -> i32x16 {\nblock0(v0: i32x16):\n    v1 = iconst.i32 1\n".to_owned();
    let mut value = 0;
    for number in 0..count / 4 {
        let new = 2 + 4 * number;
        line!(text, "    v{new} = iconst.i32 {}", 2 + number);
        line!(text, "    v{} = splat.i32x16 v{new}", new + 1);
        line!(text, "    v{} = insertlane v{}, v1, 5", new + 2, new + 1);
        line!(text, "    v{} = iadd v{value}, v{}", new + 3, new + 2);
        value = new + 3;
    }
    line!(text, "    return v{value}\n}}");
    text
}
