//! Compares the semantics of CLIF with Cranelift's interpreter: every operation on every integer
//! type, at corner values and random ones.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::Function;
use cranelift_interpreter::environment::FunctionStore;
use cranelift_interpreter::interpreter::{Interpreter, InterpreterState};
use cranelift_interpreter::step::{ControlFlow, CraneliftTrap};
use naplespu_verify::generate::generate;
use naplespu_verify::interpret::{Meaning, meaning};
use naplespu_verify::term::eval::mixed;

const TYPES: [u32; 5] = [8, 16, 32, 64, 128];

fn value(bits: u32, number: u128) -> DataValue {
    match bits {
        8 => DataValue::I8(number as i8),
        16 => DataValue::I16(number as i16),
        32 => DataValue::I32(number as i32),
        64 => DataValue::I64(number as i64),
        _ => DataValue::I128(number as i128),
    }
}

fn number(value: &DataValue) -> u128 {
    match *value {
        DataValue::I8(n) => u128::from(n as u8),
        DataValue::I16(n) => u128::from(n as u16),
        DataValue::I32(n) => u128::from(n as u32),
        DataValue::I64(n) => u128::from(n as u64),
        DataValue::I128(n) => n as u128,
        ref other => panic!("{other:?} is no integer"),
    }
}

fn interpreted(func: &Function, args: &[DataValue]) -> Meaning {
    let mut store = FunctionStore::default();
    store.add(func.name.to_string(), func);
    let state = InterpreterState::default().with_function_store(store);
    match Interpreter::new(state).call_by_name(&func.name.to_string(), args) {
        Ok(ControlFlow::Return(values)) => Meaning::Results(values.iter().map(number).collect()),
        Ok(ControlFlow::Trap(CraneliftTrap::User(code))) => Meaning::Trap(code.as_raw().get()),
        other => panic!("{func}: {other:?}"),
    }
}

/// Returns numbers at the limits of a type, and some in between.
fn numbers(bits: u32, seed: u64) -> Vec<u128> {
    let ones = u128::MAX >> (128 - bits);
    let sign = 1u128 << (bits - 1);
    let mut list = vec![0, 1, 2, 7, ones, ones - 1, sign, sign - 1, sign + 1, ones / 3];
    for i in 0..6 {
        let random = u128::from(mixed(seed + i)) << 64 | u128::from(mixed(seed + 100 + i));
        list.push((random >> (random as u32 % bits)) & ones);
    }
    list
}

/// Compares a function with the interpreter. `skip` selects arguments on which the interpreter is
/// known to be wrong.
fn compare(text: &str, types: &[u32], skip: impl Fn(&[u128]) -> bool) -> usize {
    let functions = cranelift_reader::parse_functions(text).unwrap_or_else(|error| panic!("{text}\n{error}"));
    let func = &functions[0];
    let lists: Vec<Vec<u128>> = types
        .iter()
        .enumerate()
        .map(|(i, &bits)| numbers(bits, 7 * i as u64))
        .collect();
    let mut count = 0;
    for first in 0..lists[0].len() {
        for second in 0..lists.get(1).map_or(1, Vec::len) {
            let args: Vec<u128> = lists
                .iter()
                .enumerate()
                .map(|(i, list)| match i {
                    0 => list[first],
                    1 => list[second],
                    _ => list[(first * 5 + second * 3) % list.len()],
                })
                .collect();
            if skip(&args) {
                continue;
            }
            let given: Vec<DataValue> = args.iter().zip(types).map(|(&n, &bits)| value(bits, n)).collect();
            let here = meaning(func, &args).unwrap_or_else(|why| panic!("{text}: {why}"));
            assert_eq!(here, interpreted(func, &given), "{text}\n{args:x?}");
            count += 1;
        }
    }
    assert!(count > 5, "{text}: too few comparisons");
    count
}

fn function(params: &[u32], returns: &str, body: &str) -> String {
    let names: Vec<String> = params.iter().map(|bits| format!("i{bits}")).collect();
    let values: Vec<String> = params
        .iter()
        .enumerate()
        .map(|(i, bits)| format!("v{i}: i{bits}"))
        .collect();
    format!(
        "function %f({}) -> {returns} {{\nblock0({}):\n    {body}\n}}\n",
        names.join(", "),
        values.join(", ")
    )
}

#[test]
fn two_operands() {
    for bits in TYPES {
        for op in [
            "iadd", "isub", "imul", "band", "bor", "bxor", "smin", "smax", "umin", "umax", "udiv", "sdiv", "urem",
            "srem", "umulhi", "smulhi",
        ] {
            let is_half = op.ends_with("hi");
            // The interpreter lacks the halves of 256-bit products, and traps where a remainder is
            // 0.
            if is_half && bits == 128 {
                continue;
            }
            let (least, minus_one) = (1u128 << (bits - 1), u128::MAX >> (128 - bits));
            let text = function(
                &[bits, bits],
                &format!("i{bits}"),
                &format!("v2 = {op} v0, v1\n    return v2"),
            );
            compare(&text, &[bits, bits], |args| op == "srem" && args == [least, minus_one]);
        }
        for cc in ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"] {
            let text = function(&[bits, bits], "i8", &format!("v2 = icmp {cc} v0, v1\n    return v2"));
            compare(&text, &[bits, bits], |_| false);
        }
        for op in [
            "uadd_overflow",
            "sadd_overflow",
            "usub_overflow",
            "ssub_overflow",
            "umul_overflow",
            "smul_overflow",
        ] {
            if op.contains("mul") && bits == 128 {
                continue;
            }
            let body = format!("v2, v3 = {op} v0, v1\n    return v2, v3");
            compare(
                &function(&[bits, bits], &format!("i{bits}, i8"), &body),
                &[bits, bits],
                |_| false,
            );
        }
        let body = "v2 = uadd_overflow_trap v0, v1, user3\n    return v2";
        if matches!(bits, 32 | 64) {
            compare(
                &function(&[bits, bits], &format!("i{bits}"), body),
                &[bits, bits],
                |_| false,
            );
        }
    }
}

#[test]
fn shifts_by_every_type() {
    for bits in TYPES {
        for amount in TYPES {
            for op in ["ishl", "ushr", "sshr", "rotl", "rotr"] {
                let body = format!("v2 = {op} v0, v1\n    return v2");
                compare(
                    &function(&[bits, amount], &format!("i{bits}"), &body),
                    &[bits, amount],
                    |_| false,
                );
            }
        }
    }
}

#[test]
fn one_operand_and_conversions() {
    for bits in TYPES {
        for op in ["ineg", "bnot", "iabs", "clz", "ctz", "cls", "popcnt", "bitrev", "bswap"] {
            if op == "bswap" && bits == 8 {
                continue;
            }
            let body = format!("v1 = {op} v0\n    return v1");
            compare(&function(&[bits], &format!("i{bits}"), &body), &[bits], |_| false);
        }
        for to in TYPES {
            let ops: &[&str] = match bits.cmp(&to) {
                std::cmp::Ordering::Less => &["uextend", "sextend"],
                std::cmp::Ordering::Greater => &["ireduce"],
                std::cmp::Ordering::Equal => &["bmask"],
            };
            for op in ops {
                let body = format!("v1 = {op}.i{to} v0\n    return v1");
                compare(&function(&[bits], &format!("i{to}"), &body), &[bits], |_| false);
            }
        }
        // Three 128-bit numbers do not fit in registers.
        if bits == 128 {
            continue;
        }
        let text = function(
            &[8, bits, bits],
            &format!("i{bits}"),
            "v3 = select v0, v1, v2\n    return v3",
        );
        compare(&text, &[8, bits, bits], |_| false);
        let text = function(
            &[bits, bits, bits],
            &format!("i{bits}"),
            "v3 = bitselect v0, v1, v2\n    return v3",
        );
        compare(&text, &[bits, bits, bits], |_| false);
        for op in ["uadd_overflow_cin", "usub_overflow_bin"] {
            let body = format!("v3, v4 = {op} v0, v1, v2\n    return v3, v4");
            // The interpreter uses the lowest bit of the carry.
            compare(
                &function(&[bits, bits, 8], &format!("i{bits}, i8"), &body),
                &[bits, bits, 8],
                |args| args[2] > 1,
            );
        }
    }
    let text = function(&[128], "i64, i64", "v1, v2 = isplit v0\n    return v1, v2");
    compare(&text, &[128], |_| false);
    let text = function(&[64, 64], "i128", "v2 = iconcat v0, v1\n    return v2");
    compare(&text, &[64, 64], |_| false);
}

#[test]
fn compares_of_floats() {
    for bits in [32, 64] {
        for cc in [
            "ord", "uno", "eq", "ne", "one", "ueq", "lt", "le", "gt", "ge", "ult", "ule", "ugt", "uge",
        ] {
            let body = format!(
                "v2 = bitcast.f{bits} v0\n    v3 = bitcast.f{bits} v1\n    v4 = fcmp {cc} v2, v3\n    return v4"
            );
            compare(&function(&[bits, bits], "i8", &body), &[bits, bits], |_| false);
        }
    }
}

/// Complete functions, whose terms simplify one another.
#[test]
fn random_functions() {
    let mut count = 0;
    for seed in 0..400 {
        let text = generate(seed);
        // The interpreter has no memory behind 32-bit pointers, and traps where a remainder is 0.
        if ["load", "store", "srem"].iter().any(|word| text.contains(word)) {
            continue;
        }
        let functions = cranelift_reader::parse_functions(&text).unwrap_or_else(|error| panic!("{text}\n{error}"));
        let params = functions[0].signature.params.iter();
        let types: Vec<u32> = params.map(|param| param.value_type.bits()).collect();
        if types.iter().sum::<u32>() > 256 {
            continue;
        }
        count += compare(&text, &types, |_| false);
    }
    assert!(count > 3000, "{count}");
}

#[test]
fn branches_and_traps() {
    let text = "function %f(i32, i8) -> i32 {
block0(v0: i32, v1: i8):
    v9 = iconst.i8 5
    v2 = icmp ult v1, v9
    trapz v2, user7
    br_table v0, block3, [block1, block2, block1]
block1:
    v3 = iconst.i32 100
    v4 = udiv v3, v0
    jump block4(v4)
block2:
    brif v1, block3, block4(v0)
block3:
    v6 = bnot v0
    jump block4(v6)
block4(v5: i32):
    return v5
}
";
    compare(text, &[32, 8], |_| false);
}
