//! The mathematical functions on the simulator, in both modes of float arithmetic, against the
//! functions of the host on `f64`. The bounds are those of the table in `src/math.rs`.
//!
//! `cargo test --release -p naplespu-shader --test math -- --ignored` tests a sample that is 500
//! times larger, in about ten minutes.

use cranelift_codegen::data_value::DataValue::I32;
use cranelift_codegen::settings::{self, Configurable};
use naplespu_jit::Program;
use naplespu_shader::math;

/// Numbers of each function in the sample.
const SAMPLE: usize = 8192;

/// A function of the table.
struct Row {
    name: &'static str,
    /// The largest error in ulp.
    error: f64,
    /// Words of the compiled function.
    instructions: usize,
}

/// Returns the rows of the table.
fn table() -> Vec<Row> {
    let rows = include_str!("../src/math.rs").lines().filter_map(|line| {
        let cells: Vec<&str> = line.strip_prefix("//! | `")?.split(" | ").collect();
        let [name, _, error, instructions] = cells[..] else {
            panic!("{line}")
        };
        Some(Row {
            name: name.trim_matches('`'),
            error: error.parse().unwrap(),
            instructions: instructions.trim_matches([' ', '|']).parse().unwrap(),
        })
    });
    rows.collect()
}

/// Returns the function on `f64`, which ignores the second operand if the function has only one.
fn exact(name: &str) -> fn(f64, f64) -> f64 {
    match name {
        "sin" => |x, _| x.sin(),
        "cos" => |x, _| x.cos(),
        "tan" => |x, _| x.tan(),
        "asin" => |x, _| x.asin(),
        "acos" => |x, _| x.acos(),
        "atan" => |x, _| x.atan(),
        "atan2" => f64::atan2,
        "sinh" => |x, _| x.sinh(),
        "cosh" => |x, _| x.cosh(),
        "tanh" => |x, _| x.tanh(),
        "asinh" => |x, _| x.asinh(),
        "acosh" => |x, _| x.acosh(),
        "atanh" => |x, _| x.atanh(),
        "exp" => |x, _| x.exp(),
        "exp2" => |x, _| x.exp2(),
        "log" => |x, _| x.ln(),
        "log2" => |x, _| x.log2(),
        "pow" => f64::powf,
        "sqrt" => |x, _| x.sqrt(),
        "inverse_sqrt" => |x, _| x.sqrt().recip(),
        _ => panic!("no such function: {name}"),
    }
}

/// Returns the range of operands with interesting results.
fn domain(name: &str) -> f32 {
    match name {
        "sin" | "cos" | "tan" => 100.0,
        "asin" | "acos" | "atanh" => 1.0,
        "exp" | "sinh" | "cosh" => 90.0,
        "exp2" => 130.0,
        _ => 4.0,
    }
}

/// Returns pairs of operands: special numbers, random numbers of the domain, random bits.
fn operands(name: &str, count: usize) -> Vec<(f32, f32)> {
    let mut random = fastrand::Rng::with_seed(1);
    let (large, domain) = (1048575.9, domain(name));
    let special = [
        0.0,
        0.5,
        1.0,
        1.0 + f32::EPSILON,
        1.0 - f32::EPSILON,
        2.0,
        3.0,
        10.5,
        16777215.0,
        4294967296.0,
        f32::MIN_POSITIVE,
        f32::MAX,
        f32::INFINITY,
        f32::NAN,
    ];
    let signed: Vec<f32> = special.iter().flat_map(|&x| [x, -x]).collect();
    let mut pairs: Vec<_> = signed
        .iter()
        .flat_map(|&x| signed.iter().map(move |&y| (x, y)))
        .collect();
    for _ in 0..count / 4 {
        let mut near = || (random.f32() * 2.0 - 1.0) * domain;
        let (x, y) = (near(), near());
        // Powers whose results are spread over all exponents.
        let spread = (random.f32() * 250.0 - 125.0) / x.abs().log2();
        let bits = f32::from_bits(random.u32(..));
        pairs.extend([
            (x, y),
            (x, spread),
            (bits, f32::from_bits(random.u32(..))),
            (bits, y.round()),
        ]);
    }
    let reduced = matches!(name, "sin" | "cos" | "tan");
    let in_range = |x: f32| !(x.is_subnormal() || reduced && x.is_finite() && x.abs() > large);
    pairs.retain(|&(x, y)| in_range(x) && !y.is_subnormal());
    pairs
}

/// Returns the error of a result in ulp of the exact one, or infinity for a wrong kind of result.
fn error(result: f32, exact: f64) -> f64 {
    let rounded = exact as f32;
    if exact.is_nan() || result.is_nan() {
        return if exact.is_nan() && result.is_nan() {
            0.0
        } else {
            f64::INFINITY
        };
    }
    if result.is_sign_negative() != exact.is_sign_negative() {
        return f64::INFINITY;
    }
    if result.is_infinite() || rounded.is_infinite() {
        // The largest number and infinity are neighbors.
        let near = |x: f64| x.abs() >= f64::from(f32::MAX);
        return if near(result.into()) && near(exact) {
            0.0
        } else {
            f64::INFINITY
        };
    }
    if exact.abs() < f64::from(f32::MIN_POSITIVE) {
        return if result.abs() <= f32::MIN_POSITIVE {
            0.0
        } else {
            f64::INFINITY
        };
    }
    let ulp = f64::from(f32::EPSILON) * 2f64.powi(exact.abs().log2().floor() as i32);
    (f64::from(result) - exact).abs() / ulp
}

/// Returns the program with all functions, and a function `each_NAME` for each, which applies it
/// to `v3` pairs from `v0` and `v1` on, with the results from `v2` on.
fn program(strict_float: bool) -> Program {
    let mut flags = settings::builder();
    flags.set("opt_level", "speed").unwrap();
    let mut builder = cranelift_naplespu::isa::lookup_by_name("naplespu").unwrap();
    builder.set("strict_float", &strict_float.to_string()).unwrap();
    let isa = builder.finish(settings::Flags::new(flags)).unwrap();
    let mut program = Program::with_config(isa, npu_sim::Config::testing(1));
    for function in math::functions() {
        program.define(function).unwrap();
        let name = function.name.to_string();
        let (params, arguments) = match function.signature.params.len() {
            1 => ("f32", "v7"),
            _ => ("f32, f32", "v7, v8"),
        };
        let each = format!(
            "function %each_{}(i32, i32, i32, i32) system_v {{
                fn0 = {name}({params}) -> f32 system_v
            block0(v0: i32, v1: i32, v2: i32, v3: i32):
                jump block1(v0, v1, v2, v3)
            block1(v4: i32, v5: i32, v6: i32, v10: i32):
                v7 = load.f32 notrap aligned v4
                v8 = load.f32 notrap aligned v5
                v9 = call fn0({arguments})
                store notrap aligned v9, v6
                v11 = iconst.i32 4
                v12 = iadd v4, v11
                v13 = iadd v5, v11
                v14 = iadd v6, v11
                v15 = iconst.i32 -1
                v16 = iadd v10, v15
                brif v16, block1(v12, v13, v14, v16), block2
            block2:
                return
            }}",
            name.trim_start_matches("%npu_math_")
        );
        program
            .define(&cranelift_reader::parse_functions(&each).unwrap()[0])
            .unwrap();
    }
    program.set_step_limit(u64::MAX);
    program
}

/// Applies a function to all pairs.
fn apply(program: &mut Program, name: &str, pairs: &[(f32, f32)]) -> Vec<f32> {
    let (first, second): (Vec<u32>, Vec<u32>) = pairs.iter().map(|&(x, y)| (x.to_bits(), y.to_bits())).unzip();
    let module = program.module().unwrap();
    let size = first.len() as u32 * 4;
    let buffers = [(); 3].map(|()| module.allocate(size, 64).unwrap());
    module.write_words(buffers[0], &first).unwrap();
    module.write_words(buffers[1], &second).unwrap();
    let mut arguments = buffers.map(|address| I32(address as i32)).to_vec();
    arguments.push(I32(pairs.len() as i32));
    module.call_by_name(&format!("each_{name}"), &arguments).unwrap();
    let words = module.read_words(buffers[2], pairs.len());
    buffers.into_iter().for_each(|address| module.free(address).unwrap());
    words.into_iter().map(f32::from_bits).collect()
}

/// Checks all functions on so many pairs.
fn check(count: usize) {
    let (mut plain, mut strict) = (program(false), program(true));
    let mut failures = Vec::new();
    for row in table() {
        let exact = exact(row.name);
        let mut largest = (0.0, (0.0, 0.0), 0.0);
        for pairs in operands(row.name, count).chunks(1 << 16) {
            let results = apply(&mut plain, row.name, pairs);
            let same = apply(&mut strict, row.name, pairs);
            for ((&(x, y), &result), &same) in pairs.iter().zip(&results).zip(&same) {
                let error = error(result, exact(x.into(), y.into()));
                if error > largest.0 {
                    largest = (error, (x, y), result);
                }
                let equal = result.to_bits() == same.to_bits() || result.is_subnormal() || same.is_subnormal();
                assert!(
                    equal,
                    "{}({x:e}, {y:e}) depends on the mode: {result:e}, {same:e}",
                    row.name
                );
            }
        }
        let (error, (x, y), result) = largest;
        println!("{:12} {error:.3} ulp: ({x:e}, {y:e}) gives {result:e}", row.name);
        if error > row.error {
            failures.push(row.name);
        }
    }
    assert!(failures.is_empty(), "{failures:?}");
}

#[test]
fn the_results_are_as_precise_as_the_table_says() {
    check(SAMPLE);
}

#[test]
#[ignore = "takes minutes"]
fn a_large_sample_is_as_precise_as_the_table_says() {
    check(500 * SAMPLE);
}

#[test]
fn the_table_has_the_instructions_of_each_function() {
    let program = program(false);
    let rows = table();
    assert_eq!(rows.len(), math::functions().len());
    let mut wrong = Vec::new();
    for row in rows {
        let code = program.code(&format!("npu_math_{}", row.name)).unwrap();
        let words = code.bytes.len() / 4;
        println!("{:12} {words}", row.name);
        // Small changes of the compiler need no new table.
        if words.abs_diff(row.instructions) * 20 > words {
            wrong.push((row.name, words));
        }
    }
    assert!(wrong.is_empty(), "the table has other numbers than {wrong:?}");
}

#[test]
fn the_functions_are_one_block_without_calls_and_memory() {
    for function in math::functions() {
        assert_eq!(function.layout.blocks().count(), 1, "{}", function.name);
        for block in function.layout.blocks() {
            for inst in function.layout.block_insts(block) {
                let opcode = function.dfg.insts[inst].opcode();
                assert!(
                    !opcode.is_call() && !opcode.can_load() && !opcode.can_store(),
                    "{opcode}"
                );
            }
        }
    }
}
