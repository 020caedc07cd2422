//! Prints the programs of [`super::compiled`] as C.

use super::compiled::{Expr, Func, Loop, PARAMS, Place, Program, Shape, Stmt, Trips, VARS};
use std::fmt::Write;

/// Elements of any alignment, and wrapping operations.
const HEAD: &str = "\
typedef unsigned char u8; typedef signed char s8;
typedef unsigned short u16 __attribute__((aligned(1), may_alias)); typedef short s16 __attribute__((aligned(1), may_alias));
typedef int s32 __attribute__((aligned(1), may_alias)); typedef unsigned u32 __attribute__((aligned(1), may_alias));
typedef long long s64 __attribute__((aligned(1), may_alias)); typedef unsigned long long u64 __attribute__((aligned(1), may_alias));
static int add(int a, int b) { return (int)((unsigned)a + (unsigned)b); }
static int sub(int a, int b) { return (int)((unsigned)a - (unsigned)b); }
static int mul(int a, int b) { return (int)((unsigned)a * (unsigned)b); }
static int and(int a, int b) { return a & b; }
static int or(int a, int b) { return a | b; }
static int xor(int a, int b) { return a ^ b; }
static int shl(int a, int b) { return (int)((unsigned)a << (b & 31)); }
static int shr_u(int a, int b) { return (int)((unsigned)a >> (b & 31)); }
static int shr_s(int a, int b) { return a >> (b & 31); }
static int rotl(int a, int b) { return (int)((unsigned)a << (b & 31) | (unsigned)a >> (-b & 31)); }
static int lt_s(int a, int b) { return a < b; }
static int gt_u(int a, int b) { return (unsigned)a > (unsigned)b; }
static int eq(int a, int b) { return a == b; }
static int ne(int a, int b) { return a != b; }
__attribute__((export_name(\"a_fill\"))) void a_fill(void) { for (int i = 2048; i < 65536; i++) *(volatile u8 *)i = (u8)(i * 37); }
";

impl Program {
    /// Returns C for `clang --target=wasm32 -nostdlib`.
    pub fn c(&self) -> String {
        let mut text = HEAD.to_owned();
        for (number, func) in self.funcs.iter().enumerate() {
            function(&mut text, number, func);
        }
        text
    }
}

fn function(text: &mut String, number: usize, func: &Func) {
    write!(
        text,
        "__attribute__((noinline)) static int g{number}(u8 *p0, u8 *p1, int p2, int p3) {{\nint v0 = 0, v1 = 0, v2 = 0;\n"
    )
    .expect("strings grow");
    assert_eq!((PARAMS, VARS), (4, 3), "as many as are declared here");
    statements(text, &func.body);
    text.push_str("return xor(add(v0, v1), v2);\n}\n");
    for (call, [p, q, n, m]) in func.calls.iter().enumerate() {
        writeln!(
            text,
            "__attribute__((export_name(\"f{number}_{call}\"))) int f{number}_{call}(void) {{ \
             return g{number}((u8 *){}u, (u8 *){}u, (int){}u, {m}); }}",
            *p as u32,
            *q as u32,
            // If clang removes all accesses of a loop, the loop runs until its full trip count.
            (*n as u32).min(1000)
        )
        .expect("strings grow");
    }
}

fn statements(text: &mut String, all: &[Stmt]) {
    for stmt in all {
        match stmt {
            Stmt::Store(to, value) => {
                let line = format!("{} = {};\n", place(to), expr(value));
                text.push_str(&line);
            }
            Stmt::Set(var, value) => text.push_str(&format!("v{var} = {};\n", expr(value))),
            Stmt::If(condition, then) => {
                text.push_str(&format!("if ({}) {{\n", expr(condition)));
                statements(text, then);
                text.push_str("}\n");
            }
            Stmt::Break(condition) => text.push_str(&format!("if ({}) break;\n", expr(condition))),
            Stmt::Grow => text.push_str("__builtin_wasm_memory_grow(0, 1);\n"),
            Stmt::Loop(inner) => nest(text, inner),
        }
    }
}

fn nest(text: &mut String, all: &Loop) {
    let i = format!("i{}", all.depth);
    let trips = match all.trips {
        Trips::Param(param) => format!("p{param}"),
        Trips::Number(number) => number.to_string(),
    };
    let head = match all.shape {
        Shape::Indexed => format!("for (int {i} = 0; {i} < {trips}; {i}++) {{\n"),
        Shape::Pointers => format!("for (unsigned {i} = 0; {i} != (unsigned){trips}; {i}++) {{\n"),
        Shape::Bytes => format!("for (unsigned {i} = 0; {i} < (unsigned){trips}; {i}++) {{\n"),
    };
    text.push_str(&head);
    statements(text, &all.body);
    text.push_str("}\n");
}

fn place(place: &Place) -> String {
    let sign = if place.element.signed { "s" } else { "u" };
    let mut sum = format!("p{}", place.base);
    for (depth, factor) in &place.terms {
        sum.push_str(&format!(" + (int)i{depth} * {factor}"));
    }
    format!("*({sign}{} *)({sum} + {}u)", 8 * place.element.size, place.offset)
}

fn expr(value: &Expr) -> String {
    match value {
        Expr::Number(number) => format!("(int){}u", *number as u32),
        Expr::Var(var) => format!("v{var}"),
        Expr::Counter(depth) => format!("(int)i{depth}"),
        Expr::Load(from) => format!("(int){}", place(from)),
        Expr::Binary(operation, a, b) => format!("{operation}({}, {})", expr(a), expr(b)),
    }
}
