//! Reduced functions and files are small and still satisfy the condition.

use cranelift_codegen::ir::{Function, Opcode};
use naplespu_filetests::reduce::{Candidate, file, function};
use naplespu_reader::ClifFile;

const FUNCTION: &str = "function %f(i32, i32, i64x2, f64) -> i32 {
    ss0 = explicit_slot 8
    ss1 = explicit_slot 16
    gv0 = symbol %data
    sig0 = (i32) -> i32
    fn0 = %g(i32) -> i32
    fn1 = %h(f64)
block0(v0: i32, v1: i32, v2: i64x2, v3: f64):
    v4 = iconst.i32 1000
    v5 = stack_addr.i32 ss0
    store notrap aligned v4, v5
    v6 = call fn0(v0)
    call fn1(v3)
    v7 = iadd v2, v2
    br_table v6, block4(v4), [block1(v6), block2(v7), block1(v1)]
block1(v8: i32):
    v9 = udiv v8, v1
    brif v9, block3(v9), block4(v8)
block2(v10: i64x2):
    v11 = extractlane v10, 1
    v12 = ireduce.i32 v11
    jump block3(v12)
block3(v13: i32):
    v14 = symbol_value.i32 gv0
    v15 = load.i32 notrap aligned v14
    v16 = imul v13, v15
    jump block4(v16)
block4(v17: i32):
    v18 = load.i32 notrap aligned v5
    v19 = bxor v17, v18
    return v19
}
";

fn parse(text: &str) -> Function {
    cranelift_reader::parse_functions(text).unwrap().remove(0)
}

fn has(func: &Function, opcode: Opcode) -> bool {
    func.layout.blocks().any(|block| {
        func.layout
            .block_insts(block)
            .any(|inst| func.dfg.insts[inst].opcode() == opcode)
    })
}

fn insts(func: &Function) -> usize {
    func.layout
        .blocks()
        .map(|block| func.layout.block_insts(block).count())
        .sum()
}

/// For every opcode of the function: one block, the instruction, its operands and a terminator.
#[test]
fn one_instruction_is_left() {
    for opcode in [
        Opcode::Udiv,
        Opcode::Imul,
        Opcode::Call,
        Opcode::Extractlane,
        Opcode::SymbolValue,
        Opcode::Store,
        Opcode::Bxor,
    ] {
        let small = function(parse(FUNCTION), 5000, |func| has(func, opcode));
        assert!(has(&small, opcode));
        assert_eq!(small.layout.blocks().count(), 1, "{opcode}: {}", small.display());
        assert!(insts(&small) <= 5, "{opcode}: {}", small.display());
        let text = small.display().to_string();
        assert!(!text.contains(" -> v"), "{text}");
        parse(&text);
    }
}

#[test]
fn branches_stay_where_they_matter() {
    let small = function(parse(FUNCTION), 5000, |func| {
        has(func, Opcode::BrTable) && has(func, Opcode::Brif)
    });
    assert!(has(&small, Opcode::BrTable) && has(&small, Opcode::Brif));
    let params: usize = small
        .layout
        .blocks()
        .skip(1)
        .map(|block| small.dfg.block_params(block).len())
        .sum();
    assert_eq!(params, 0, "{}", small.display());
    assert!(small.sized_stack_slots.is_empty() && small.dfg.ext_funcs.is_empty() && small.global_values.is_empty());
}

#[test]
fn a_constant_becomes_small() {
    let is_large = |func: &Function| {
        let text = func.display().to_string();
        text.lines().any(|line| {
            let number = line
                .split_once("iconst.i32 ")
                .and_then(|(_, rest)| rest.split_whitespace().next());
            number
                .and_then(|number| number.parse::<i32>().ok())
                .is_some_and(|number| number > 60)
        })
    };
    let small = function(parse(FUNCTION), 5000, is_large).display().to_string();
    assert!(small.contains("iconst.i32 62"), "{small}");
}

/// The condition is evaluated at most as often as allowed, and the reduction is deterministic.
#[test]
fn tries_are_counted() {
    for tries in [0, 1, 7, 30] {
        let mut asked: [Vec<String>; 2] = Default::default();
        for asked in &mut asked {
            function(parse(FUNCTION), tries, |func| {
                asked.push(func.display().to_string());
                has(func, Opcode::Imul)
            });
        }
        assert_eq!(asked[0].len(), tries);
        assert_eq!(asked[0], asked[1]);
    }
}

/// Irrelevant functions and run lines are removed; header lines stay.
#[test]
fn files() {
    let text = format!(
        "test run\nset opt_level=speed\ntarget naplespu\n\n; A comment.\n{FUNCTION}; run: %f(1, 2) == 3\n; run: %f(4, 5) == 6\n\
         function %other() {{\nblock0:\n    return\n}}\n; run: %other()\n"
    );
    let whole = ClifFile::parse("f.clif", text.as_bytes());
    let whole = Candidate::of(&whole);
    assert_eq!(whole.pieces.len(), 2);
    let small = file(whole, 5000, |candidate| candidate.to_string().contains("run: %f(4"));
    let expected = "test run\nset opt_level=speed\ntarget naplespu\n\n\
        function %f(i32, i32, i64x2, f64) -> i32 system_v {\nblock0(v0: i32, v1: i32, v2: i64x2, v3: f64):\n    trap user1\n}\n; run: %f(4, 5) == 6\n";
    assert_eq!(small.to_string(), expected);
}
