//! Test support: evaluates straight-line integer functions on numbers near the limits of their
//! types.

use super::check::operate::operate;
use super::loops::mask;
use cranelift_codegen::ir::{Function, Opcode, Value};
use rustc_hash::FxHashMap;

/// Returns numbers near the limits of a type of this width.
pub fn numbers(width: u32) -> Vec<u64> {
    let all = u64::MAX >> (64 - width);
    let sign = 1u64 << (width - 1);
    [
        0,
        1,
        2,
        3,
        4,
        5,
        8,
        13,
        100,
        0x7f,
        0x80,
        0xff,
        0x100,
        sign - 1,
        sign,
        sign + 1,
        all - 1,
        all,
    ]
    .into_iter()
    .filter(|&number| number <= all)
    .collect()
}

/// Returns the values and results of a function of one block. Returns `None` if it traps or has an
/// instruction that [`operate`] does not support.
fn evaluate(func: &Function, args: &[u64]) -> Option<(FxHashMap<Value, u64>, Vec<u64>)> {
    let entry = func.layout.entry_block()?;
    let mut known: FxHashMap<Value, u64> = func
        .dfg
        .block_params(entry)
        .iter()
        .copied()
        .zip(args.iter().copied())
        .collect();
    for inst in func.layout.block_insts(entry) {
        let operands: Option<Vec<u64>> = func
            .dfg
            .inst_args(inst)
            .iter()
            .map(|&arg| known.get(&func.dfg.resolve_aliases(arg)).copied())
            .collect();
        let operands = operands?;
        if func.dfg.insts[inst].opcode() == Opcode::Return {
            return Some((known, operands));
        }
        let result = func.dfg.first_result(inst);
        let bits = operate(func, inst, &operands)? & mask(func.dfg.value_type(result));
        known.insert(result, bits);
    }
    None
}

/// Calls `each` with the values and results of the function for all combinations of arguments.
fn for_all(func: &Function, mut each: impl FnMut(&[u64], Option<(FxHashMap<Value, u64>, Vec<u64>)>)) {
    let entry = func.layout.entry_block().expect("a block");
    let params = func.dfg.block_params(entry);
    let choices: Vec<Vec<u64>> = params
        .iter()
        .map(|&param| numbers(func.dfg.value_type(param).bits()))
        .collect();
    let mut choice = vec![0; choices.len()];
    loop {
        let args: Vec<u64> = choice.iter().zip(&choices).map(|(&at, numbers)| numbers[at]).collect();
        each(&args, evaluate(func, &args));
        let Some(next) = (0..choice.len()).find(|&at| choice[at] + 1 < choices[at].len()) else {
            return;
        };
        choice[next] += 1;
        choice[..next].fill(0);
    }
}

fn parse(text: &str) -> Function {
    let mut functions = cranelift_reader::parse_functions(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    functions.remove(0)
}

/// Asserts that a pass does not change the results of a function. Returns whether the pass changed
/// anything.
pub fn check_results(text: &str, pass: impl FnOnce(&mut Function) -> bool) -> bool {
    let before = parse(text);
    let mut after = before.clone();
    if !pass(&mut after) {
        return false;
    }
    for_all(&before, |args, was| {
        let Some((_, was)) = was else { return };
        let is = evaluate(&after, args).map(|(_, results)| results);
        assert_eq!(Some(was), is, "arguments {args:x?}\n{before}\n{after}");
    });
    true
}

/// Asserts that a fact holds for each value of a function and its number.
pub fn check_values(text: &str, holds: impl Fn(&Function, Value, u64) -> bool) {
    let func = parse(text);
    for_all(&func, |args, found| {
        let Some((known, _)) = found else { return };
        for (value, number) in known {
            assert!(
                holds(&func, value, number),
                "arguments {args:x?}: {value} is {number:#x}\n{func}"
            );
        }
    });
}

/// Returns functions whose operands are masked by different constants.
pub fn masked(width: u32, last: impl Fn(&str, &str) -> String) -> Vec<String> {
    let masks = [(0, 0), (3, 7), (0x7f, 5), (12, 1), (-1, 3), (-1, -1)];
    let text = |(a, b): (i64, i64)| {
        let last = last("v4", "v5");
        format!(
            "function %f(i{width}, i{width}) -> i{width} {{\nblock0(v0: i{width}, v1: i{width}):\n    v2 = iconst.i{width} {a}\n    \
             v3 = iconst.i{width} {b}\n    v4 = band v0, v2\n    v5 = band v1, v3\n{last}\n    return v9\n}}"
        )
    };
    masks.map(text).to_vec()
}
