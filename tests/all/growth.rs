//! Tests that large functions compile, and that the memory for it grows linearly with their size.
//!
//! The tests measure memory, which is the same on every machine. `cargo run --release
//! --manifest-path benches/peer/Cargo.toml growth` measures the time, too.

#[path = "../../benches/growth/shapes.rs"]
mod shapes;

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::Function;
use cranelift_codegen::settings::{self, Configurable, Flags};
use cranelift_naplespu::remarks::{LoopOutcome, LoopRemark, Reason};
use cranelift_naplespu::{Compiler, Isa, isa};
use naplespu_jit::Program;
use shapes::{SHAPES, Shape};
use std::sync::Arc;

fn target(level: &str, allocator: &str, single_pass_above: u32) -> Arc<Isa> {
    let mut flags = settings::builder();
    flags.set("opt_level", level).unwrap();
    flags.set("regalloc_algorithm", allocator).unwrap();
    flags.set("enable_verifier", "false").unwrap();
    let mut builder = isa::lookup_by_name("naplespu").unwrap();
    builder
        .set("single_pass_above", &single_pass_above.to_string())
        .unwrap();
    builder.finish(Flags::new(flags)).unwrap()
}

fn function(shape: &str, count: usize) -> Function {
    let shape = SHAPES.iter().find(|known| known.name == shape).unwrap();
    let mut functions = cranelift_reader::parse_functions(&(shape.text)(count)).unwrap();
    functions.pop().unwrap()
}

fn bytes(isa: &Isa, func: &Function) -> Vec<u8> {
    let mut ctx = Context::for_function(func.clone());
    isa.compile(&mut ctx, &mut ControlPlane::default()).unwrap().bytes
}

/// Returns the memory that a new compiler allocates for each CLIF instruction of the function:
/// blocks, bytes in total, and peak bytes.
fn memory(isa: &Isa, func: &Function) -> [f64; 3] {
    let mut ctx = Context::for_function(func.clone());
    let memory = allocation_counter::measure(|| {
        let code = Compiler::new().compile(isa, &mut ctx, &mut ControlPlane::default());
        drop(code.unwrap());
    });
    let clif = func.dfg.num_insts() as f64;
    [memory.count_total, memory.bytes_total, memory.bytes_max].map(|figure| figure as f64 / clif)
}

/// Four times the code takes about four times the memory, and not sixteen times.
#[test]
fn memory_grows_with_the_code() {
    let mut faults = String::new();
    for Shape { name, about, text: _ } in SHAPES {
        for level in ["none", "speed"] {
            let isa = target(level, "backtracking", 2_000);
            let [small, large] = [3_000, 12_000].map(|size| memory(&isa, &function(name, size)));
            for (figure, (small, large)) in ["blocks", "bytes", "peak"]
                .into_iter()
                .zip(small.into_iter().zip(large))
            {
                // Some of the memory of Cranelift's simplification grows quadratically with the
                // number of basic blocks.
                if level == "speed" && figure == "bytes" {
                    continue;
                }
                // Branch relaxation copies all instructions again. A growing table may have just
                // doubled.
                let factor = match figure {
                    "blocks" => 1.5,
                    "peak" => 2.0,
                    _ => 2.5,
                };
                if large > factor * small + 1.0 {
                    faults += &format!(
                        "{name} ({about}), {level}: {figure} for a CLIF instruction: {small:.1}, then {large:.1}\n"
                    );
                }
            }
        }
    }
    assert!(faults.is_empty(), "{faults}");
}

/// Tables of this length with distant targets were once refused, or did not terminate.
#[test]
fn long_branch_tables() {
    for entries in [8_000i32, 9_000, 33_000] {
        let func = function("br_table", 4 * entries as usize);
        assert_eq!(
            func.dfg.jump_tables.values().next().unwrap().as_slice().len(),
            entries as usize
        );
        for level in ["none", "speed"] {
            let mut program = Program::new(target(level, "single_pass", 0));
            program.define(&func).unwrap();
            let mut call = |x: i32| {
                let results = program.call("f", &[DataValue::I32(x), DataValue::I32(3)]).unwrap();
                let [DataValue::I32(result)] = results[..] else {
                    panic!("{results:?}")
                };
                result
            };
            for x in [0, 1, 4_095, 4_096, 4_097, 7_999, 8_191, 8_192, entries - 1] {
                let expected = if x < entries { x.wrapping_mul(3) ^ x } else { 3 };
                assert_eq!(call(x), expected, "{entries} entries, {level}: {x}");
            }
            for x in [entries, entries + 1, 65_536, i32::MAX, i32::MIN, -1] {
                assert_eq!(call(x), 3, "{entries} entries, {level}: {x}");
            }
        }
    }
}

/// The single-pass allocator is used only above the size that the setting contains.
#[test]
fn large_functions_are_allocated_in_a_single_pass() {
    for (shape, small, large) in [
        ("i32", 2_000, 120_000),
        ("live values", 500, 8_000),
        ("blocks", 500, 30_000),
        ("nested loops", 500, 30_000),
    ] {
        let backtracking = |above| target("none", "backtracking", above);
        let single_pass = target("none", "single_pass", 0);
        let func = function(shape, small);
        let [usual, never] = [100_000, 0].map(|above| bytes(&backtracking(above), &func));
        let always = bytes(&single_pass, &func);
        assert_eq!(usual, never, "{shape}");
        assert_eq!(bytes(&backtracking(100), &func), always, "{shape}");
        assert_ne!(usual, always, "{shape}");
        let func = function(shape, large);
        assert_eq!(
            bytes(&backtracking(100_000), &func),
            bytes(&single_pass, &func),
            "{shape}"
        );
    }
}

/// No recursion depends on the size of the function: a small stack is sufficient for all shapes.
#[test]
fn a_small_stack_is_enough() {
    let work = || {
        for shape in SHAPES {
            for level in ["none", "speed"] {
                bytes(&target(level, "backtracking", 2_000), &function(shape.name, 6_000));
            }
        }
    };
    std::thread::Builder::new()
        .stack_size(256 << 10)
        .spawn(work)
        .unwrap()
        .join()
        .unwrap();
}

/// Returns a function with this number of consecutive loops over arrays.
fn array_loops(count: usize) -> Function {
    let mut text = "function %loops(i32, i32) {\nblock0(v0: i32, v1: i32):\n    jump block1\n".to_owned();
    for number in 0..count {
        let (entry, body, value) = (2 * number + 1, 2 * number + 2, 10 * (number + 1));
        let [zero, index, at, old, new, four, next, goes_on] = std::array::from_fn(|place| value + place);
        text += &format!(
            "block{entry}:
                v{zero} = iconst.i32 0
                jump block{body}(v{zero})
            block{body}(v{index}: i32):
                v{at} = iadd v0, v{index}
                v{old} = load.i32 notrap aligned v{at}
                v{new} = iadd v{old}, v1
                store notrap aligned v{new}, v{at}
                v{four} = iconst.i32 4
                v{next} = iadd v{index}, v{four}
                v{goes_on} = icmp ult v{next}, v1
                brif v{goes_on}, block{body}(v{next}), block{}\n",
            entry + 2
        );
    }
    text += &format!("block{}:\n    return\n}}\n", 2 * count + 1);
    cranelift_reader::parse_functions(&text).unwrap().pop().unwrap()
}

/// The vectorizer examines all loops again after each vectorized loop, so the number of vectorized
/// loops is limited. The remarks on the other loops contain this reason.
#[test]
fn not_all_of_many_loops_are_vectorized() {
    let isa = target("speed", "backtracking", 0);
    let mut ctx = Context::for_function(array_loops(70));
    let code = isa.compile(&mut ctx, &mut ControlPlane::default()).unwrap();
    let vectorized = |remark: &&LoopRemark| matches!(remark.outcome, LoopOutcome::Vectorized(_));
    assert_eq!(code.loops.iter().filter(vectorized).count(), 64);
    let others: Vec<LoopOutcome> = code
        .loops
        .iter()
        .filter(|remark| !vectorized(remark))
        .map(|remark| remark.outcome.clone())
        .collect();
    assert_eq!(others, vec![LoopOutcome::Scalar(Reason::ManyLoops(64)); 6]);
}
